/* Recorded programs: what a function did, so that it can be done again without asking it anew.
 *
 * Idea: while a program records, apply keeps two lists. Events are what the function asked for: op calls, backward passes, gradients
 * assigned, leaves made. Steps are what the devices did for it, gradient rules and all. A later call of the function is compared with the
 * events, and each op hands out a placeholder for its result; when all agreed, the steps run over fixed memory. A function may go several
 * ways (every fourth call steps the optimizer), so a program has several recordings. At the first difference the events so far are
 * compared with another one, whose placeholders take the places of those that were handed out; where none is left they are done as if
 * nothing had been recorded, the placeholders become their results, and recording begins anew.
 *
 * Invariants: outside of record and check a program is at rest; a placeholder's data is there only once the steps have run; memory that
 * somebody has kept is never shared between two values, and recordings of one program share all other. What can't be recorded (a value
 * that the host reads, a hook, a size that depends on data) makes the program dead for the call, which then goes on as if the function had
 * never been compiled. */
#ifndef TY_PROGRAM_H
#define TY_PROGRAM_H
#include "tycho.h"

/* What a recorded backward pass, or step, doesn't know of: hooks on modules and optimizers, by anyone; and on leaves. */
extern _Atomic int ty_hooks_registered, ty_leaf_hooks_registered;
extern _Atomic uint64_t ty_detached;                     /* tensors that detach() has made */

typedef enum { TY_IDLE, TY_RECORD, TY_CHECK } ty_program_mode;

ty_status ty_programs_interrupt(ty_ctx *ctx);            /* another coroutine than theirs is about to compute: they settle */

/* trusting: its function's arguments are taken as they are (guard = "inputs"); fuses: pointwise steps may run as one
   kernel; most: recordings that are kept. NULL: out of memory. */
ty_program *ty_program_new(bool trusting, bool fuses, int most);
void ty_program_abandon(ty_program *p);                  /* the coroutine in whose call it is will not go on */
void ty_program_free(ty_program *p);
/* Records, or compares where there is a recording, what ctx's coroutine does from here to ty_program_end. input: the function's tensors, of
 * distinct storages; those of a call that is compared take the places of the recorded ones; dtype, device, shape and
 * strides are theirs, and none needs a gradient. */
ty_status ty_program_begin(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput);
/* Whether an input is in memory that a recording has as another tensor's: then its steps' order can't be relied on. */
bool ty_program_aliased(const ty_program *p, const ty_tensor *input);
/* ok false: the function failed. result: tensors among its results; graph: they may need one still. *run: the events agreed with a
 * recording, which ty_program_run and the others are about from here on. */
ty_status ty_program_end(ty_ctx *ctx, ty_program *p, bool ok, ty_tensor **result, int nresult, bool graph, bool *run);
/* In the place of begin, comparing and end: as if the function had been called and agreed as it did last. *run false: the leaves' gradients
 * aren't what they were when that was recorded, and nothing was done. */
ty_status ty_program_trust(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput, bool *run);
/* Before each run, when the call's own handles have gone: what someone holds of values that fused steps don't store is
   stored from now on. */
ty_status ty_program_ready(ty_ctx *ctx, ty_program *p);
ty_status ty_program_run(ty_ctx *ctx, ty_program *p);
/* The GPU's steps for a graph that captures them; and what follows each of its launches: the CPU's steps, for one. */
ty_status ty_program_capture(ty_ctx *ctx, ty_program *p);
ty_status ty_program_ran(ty_ctx *ctx, ty_program *p);
ty_tensor *ty_program_result(const ty_program *p, int i);        /* of those that end was given; a new reference. NULL: out of memory */
/* The learning rate of the i-th optimizer step. */
void ty_program_rate(ty_program *p, int i, double v);
/* Before a run outside of it, in the order of the current stream: learning rates that live on a device. */
ty_status ty_program_rates(ty_ctx *ctx, ty_program *p);
bool ty_program_recorded(const ty_program *p);           /* there is a recording, and no hook has been registered since */

/* ---- what apply and the tape ask where ctx->program is set ---- */
typedef ty_status (*ty_apply_now)(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out);
typedef ty_status (*ty_backward_now)(ty_ctx *, ty_tensor **, ty_tensor **, int, ty_tensor **, int, ty_tensor **, ty_backward_opts);
ty_status ty_program_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now);
ty_status ty_program_kernel(ty_call *c, const ty_backend *b, ty_status (*run)(ty_call *c, const ty_backend *b));
ty_status ty_program_backward(ty_ctx *ctx, ty_tensor **roots, ty_tensor **grads, int nroot, ty_tensor **inputs,
                              int ninput, ty_tensor **result, ty_backward_opts o, ty_backward_now now);
typedef ty_status (*ty_reached_now)(ty_ctx *, ty_tensor **, int, ty_tensor **, int, bool *, bool *);
ty_status ty_program_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others,
                             ty_reached_now now);
/* backward has given leaf its gradient; before: the one it had */
ty_status ty_program_leaf(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *before);
ty_status ty_program_grad(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *grad);       /* grad, or NULL, is being assigned */
ty_status ty_program_requires(ty_ctx *ctx, ty_tensor *t, bool on);              /* t is about to become a leaf, or none */
ty_status ty_program_detach(ty_ctx *ctx, ty_tensor *t, ty_tensor **out);         /* an alias of t without history */
ty_status ty_program_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout);  /* as ty_record_function */
/* A user's function is asked for its gradients, as by the host's rule. */
ty_status ty_program_rule(ty_ctx *ctx, ty_node *n, ty_tensor **gout, const bool *needs, ty_tensor **gin);
/* The modes of a backward pass, and those that there were. */
typedef struct { bool grad_enabled, scaled, retains; uint8_t autocast[2]; } ty_pass_modes;
ty_pass_modes ty_enter_pass(ty_ctx *ctx, ty_backward_opts o);
void ty_leave_pass(ty_ctx *ctx, ty_pass_modes was);
static inline bool ty_needs_graph(const ty_tensor *t) { return t->node && !t->node->ran; }       /* for a backward pass to come */
bool ty_program_is_broken(const ty_ctx *ctx);            /* what is done now will be done again */
/* Whether t alone holds its memory beside its program, which takes other memory if t is still there when it runs next. Not on a GPU, where
 * its graph would be made anew. */
bool ty_program_gives(const ty_tensor *t);
/* How many hold the memory of t, an input, but for the program's recordings: tensors, graphs. */
int ty_program_input_holders(const ty_program *p, const ty_tensor *t);
/* Something happens that a program can't hold, or the host wants values: what is due is done, and the program is dead. */
ty_status ty_program_settle(ty_ctx *ctx, const char *what);
#endif
