/* Recorded programs: the core of tycho.compile. A program records what a function does, and replays it.
 *
 * Idea: while a program records, apply keeps two lists. Events are what the function asked for: op calls, backward passes, assigned
 * gradients, leaves made. Steps are the kernels that ran for them, those of gradient rules too. A later call runs the function in check:
 * each op is only compared with the next event, and gives a placeholder for its result. When all events have agreed, the steps run over
 * fixed memory. A function may go several ways (every fourth call steps the optimizer), so a program has several recordings. At the first
 * difference the events so far are compared with the next recording, whose placeholders replace those handed out. Where none is left, the
 * events are executed, placeholders become the results, and a new recording begins.
 *
 * Invariants: outside of record and check a program is at rest; a placeholder has data only once the steps have run; memory that somebody
 * keeps is never shared between two values, while a program's recordings share all other memory. What can't be recorded (a value that the
 * host reads, a hook, a size that depends on data) makes the program refuse the call, which goes on as if the function had never been
 * compiled. */
#ifndef TY_PROGRAM_H
#define TY_PROGRAM_H
#include "tycho.h"

/* Changes that recordings don't see, counted, so that they can be compared: hooks of backward passes registered or removed; hooks of
 * leaves; other hooks, and optimizers' groups and states, which matter to a recording that runs without its function. */
extern _Atomic int ty_hooks_registered, ty_leaf_hooks_registered, ty_calls_changed;
extern _Atomic uint64_t ty_detached;                     /* how many tensors detach() has made */

typedef enum { TY_IDLE, TY_RECORD, TY_CHECK } ty_program_mode;

ty_status ty_programs_interrupt(ty_ctx *ctx);            /* ctx's coroutine is about to compute: programs of other ones settle */

/* trusting: arguments may be in memory that others can write to (guard = "inputs"); fuses: pointwise steps may run as one kernel; most: how
   many recordings are kept. NULL: out of memory. */
ty_program *ty_program_new(bool trusting, bool fuses, int most);
void ty_program_abandon(ty_program *p);                  /* the coroutine that was in its call will not go on */
void ty_program_free(ty_program *p);
/* Before a call's arguments are copied to where its steps read them: the current stream waits for the one of the call before. */
void ty_program_follow(ty_ctx *ctx, ty_program *p);
/* From here to ty_program_end, what ctx's coroutine does is compared, or recorded where there is no recording. input: the function's tensor
 * arguments, in distinct storages, none of which needs a gradient. In check they replace the recorded ones, and must have their dtype,
 * device, shape and strides. */
ty_status ty_program_begin(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput);
/* Whether an input shares memory with another external tensor of a recording: then its steps' order can't be relied on. */
bool ty_program_aliased(const ty_program *p, const ty_tensor *input);
/* ok: the function didn't fail. result: tensors among its results; graph: whether they may still need their graph. *run: the events agreed
 * with a recording, so its steps must run. */
ty_status ty_program_end(ty_ctx *ctx, ty_program *p, bool ok, ty_tensor **result, int nresult, bool graph, bool *run);
/* Instead of begin, the call and end: as if the function had been called, and agreed with the recording used last. *run false: nothing was
 * done, since leaves, modes or hooks are not as that recording needs them. */
ty_status ty_program_trust(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput, bool *run);
/* Before each run, once the call's own handles are released: fused values that someone still holds are stored from now on, and memory that
   someone holds is no longer shared. */
ty_status ty_program_ready(ty_ctx *ctx, ty_program *p);
ty_status ty_program_run(ty_ctx *ctx, ty_program *p);
/* Runs the GPU's steps, for a graph to capture; and does what follows each of its launches: the CPU's steps, versions. */
ty_status ty_program_capture(ty_ctx *ctx, ty_program *p);
ty_status ty_program_ran(ty_ctx *ctx, ty_program *p);
ty_tensor *ty_program_result(const ty_program *p, int i);        /* result i of end's; a new reference. NULL: out of memory */
/* Sets the learning rate of the i-th optimizer step. */
void ty_program_set_rate(ty_program *p, int i, double v);
/* Before a run, on the current stream and outside its graph: writes optimizers' numbers that live on a GPU. */
ty_status ty_program_write_rates(ty_ctx *ctx, ty_program *p);
bool ty_program_recorded(const ty_program *p);           /* there is a recording that no later hook invalidates */

/* ---- what apply and the tape ask where ctx->program is set ---- */
typedef ty_status (*ty_apply_now)(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out);
typedef ty_status (*ty_backward_now)(ty_ctx *ctx, const ty_backward_call *b);
ty_status ty_program_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now);
ty_status ty_program_kernel(ty_call *c, const ty_backend *b, ty_status (*run)(ty_call *c, const ty_backend *b));
ty_status ty_program_backward(ty_ctx *ctx, const ty_backward_call *b, ty_backward_now now);
typedef ty_status (*ty_reached_now)(ty_ctx *, ty_tensor **, int, ty_tensor **, int, bool *, bool *);
ty_status ty_program_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others,
                             ty_reached_now now);
/* backward has set leaf's gradient; before: the previous one */
ty_status ty_program_leaf(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *before);
ty_status ty_program_grad(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *grad);       /* grad, or NULL, is being assigned */
ty_status ty_program_requires(ty_ctx *ctx, ty_tensor *t, bool on);              /* requires_grad of t is being set to on */
ty_status ty_program_detach(ty_ctx *ctx, ty_tensor *t, ty_tensor **out);         /* an alias of t without history */
ty_status ty_program_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout);  /* as ty_record_function */
/* Asks a user's function for its gradients, as host->rule does. */
ty_status ty_program_rule(ty_ctx *ctx, ty_node *n, ty_tensor **gout, const bool *needs, ty_tensor **gin);
bool ty_needs_graph(const ty_tensor *t);      /* a backward pass may still come: it can reach a leaf by nodes that none has used up */
bool ty_program_is_broken(const ty_ctx *ctx);            /* the call can't go on, or the backward pass will be done again */
/* Whether t, no leaf and no leaf's gradient, has memory that was made in the call that ctx's coroutine records or compares. */
bool ty_program_made(const ty_ctx *ctx, const ty_tensor *t);
/* Whether only t and its program hold t's memory: then t can keep it, as the next run takes other memory. Never on a GPU, where a graph
 * would have to be captured anew. */
bool ty_program_gives(const ty_tensor *t);
/* How many tensors and graphs, other than the program's recordings, hold the memory of the input t. */
int ty_program_input_holders(const ty_program *p, const ty_tensor *t);
/* Whether the host may read t's values though steps are pending: no step of the recording has t's memory, which is older than the call. The
 * function reads them in each call, and what they change is seen. */
bool ty_program_may_read(ty_program *p, const ty_tensor *t);
/* Something can't be recorded, or the host wants values: the events that have agreed are executed, and the call is refused. */
ty_status ty_program_settle(ty_ctx *ctx, const char *what);
#endif
