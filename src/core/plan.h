/* What program.c, events.c, rules.c, differ.c and plan.c share: a program's parts. */
#ifndef TY_PLAN_H
#define TY_PLAN_H
#include <stdio.h>
#include "fused.h"
#include "optim_formulas.h"
#include "program.h"
#include "table.h"

/* Memory that values share. Internal: a step made it; its contents matter from step first to step last, or, visible, from call to call. */
typedef struct {
  uint64_t id;             /* of the storage that was recorded */
  size_t nbytes;
  const ty_backend *backend;
  int first, last, value;  /* value: the newest one in it */
  bool internal, visible;
  bool input;              /* an argument's: only it and views of it are in it */
  bool constant;           /* the function made it without a step: of numbers of its own */
  uint64_t given;          /* of a constant on a GPU: the storage that the call in check has in its place */
  ty_tensor *memory;       /* internal ones', from plan.c on: what keeps it; a visible store's has a storage of its own */
  bool idle;               /* visible and unwritten when memory was given out: in a place that nothing is written to */
  bool moved_out;          /* it shared memory with others until someone kept it */
  int users;               /* values in it */
  /* only kernels that make its values themselves touch them: they are never stored, but where someone holds one
     (held) */
  bool unwritten;
  bool held;
  bool placed;             /* unwritten, but it has memory: its kernel may have to be given up for what is held */
  bool pinned;             /* its contents are needed after the steps */
} store;

typedef struct {
  ty_tensor like;          /* its geometry; no references */
  ty_tensor *leaf;         /* the leaf that it was, where it needed a gradient: gradients flow to this one and no other */
  ty_tensor *plain;        /* external ones': the first tensor that it was where it needed none */
  ty_tensor *t;            /* external values: the tensor; internal ones': from plan.c on */
  int store, next;         /* next: an older value in the same store, or -1 */
  /* the leaf whose gradient, from outside of the call, it was: the next call's may be another tensor. Of its memory it is no holder whom
     others would make room for (storage.lent). */
  ty_tensor *grad_of;
} value;

typedef struct {
  ty_call call;            /* with in and at of its own; tensors are filled in by plan.c */
  const ty_backend *backend;
  ty_status (*run)(ty_call *c, const ty_backend *b);
  int *vin, vout[TY_MAXOUT];
  /* on a GPU, of an optimizer's step: where the learning rate and the settings' numbers live, and what they are */
  ty_tensor *rate;
  double rate_now, set[TY_OPTIM_NUMBERS];
  bool rate_changed, set_changed;
} step;
bool ty_step_init(step *k, const ty_call *c);            /* arrays of its own, and no values yet; false: no memory, and *k holds nothing */
void ty_step_free(step *k);

/* of a context; streams apart, which replays choose anew. place: the device that `device` meant then. */
typedef struct { bool grad_enabled; uint8_t autocast[2]; int device, place; } modes;

typedef enum { EVENT_APPLY, EVENT_BACKWARD, EVENT_GRAD, EVENT_DETACH, EVENT_FUNCTION, EVENT_LEAF, EVENT_REACHED, EVENT_RULE } event_kind;

/* kept: the gradient was added to in place; needs: it has a history; own: the leaf's place among those
   made within the call, or -1 */
/* at: the event after those that came before; given: it has been handed out, in the call in check */
typedef struct { ty_tensor *leaf, *placeholder; int before, after, own, at; bool scaled, kept, needs, given; } leaf_change;

typedef enum { NO_GRADIENT, ITS_HISTORY_DOES, IS_LEAF, OWN_LEAF } need;

typedef struct {
  event_kind kind;
  ty_op *op;
  int nin, first;          /* first: its first step */
  int end;                 /* the event after it, and after those within it: a backward pass has users' functions, and they what they do */
  int of;                  /* of a rule: whose it is, a function's event */
  bool *wanted;            /* of a rule: which gradients are */
  ty_operand *in;
  int *vin;                /* values, or -1 */
  int *needs;              /* what they need: a need, or one more for each leaf made within the call */
  ty_span *span;
  ty_attr *at;
  int into;
  bool into_needs, out_needs[TY_MAXOUT], own_layout[TY_MAXOUT];
  bool based, moves, gains;  /* the result is a view with its base's history; into's base has another one after; and gets its first */
  bool anew;                 /* into, which is no view, has another history after: its views take theirs anew */
  int vout[TY_MAXOUT];
  modes modes;
  void *stream[TY_MAXGPU];
  ty_backward_opts opts;   /* backward: roots, their gradients, inputs are the operands */
  int nroot, nresult;      /* nroot, of a function: how many of its operands are what it was given; reached: how many are outputs;
                              of a rule: how many gradients it gives */
  ty_function function;
  bool with_inputs, on;    /* on, of a leaf: whether it is one from here on */
  int own;                 /* its place among those made within the call, or -1 */
  ty_tensor *had;          /* its gradient then, of the call in check */
  int *vresult;
  bool *result_needs;      /* reached: what was found of the leaves, and of others */
  leaf_change *leaf;
  int nleaf, leaf_room;
  char *failed;            /* the op failed, with this message, and had done nothing; of a rule, in check: it did */
  int last;                /* of a rule: the event after those within it that agreed, in check */
  /* of the call in check, references: */
  ty_tensor **actual, *target, *placeholder[TY_MAXOUT], **result_placeholder;
  ty_node *node;           /* of a function: its own */
} event;

typedef struct { ty_tensor *leaf, *grad; bool scaled; } entry;

/* Steps that run as one kernel, or, where fused is NULL, one after another. */
typedef struct {
  int *step, nstep, nagain;   /* the first nagain are another group's, done again here; those of its own follow */
  bool pointwise;          /* or of rows: fusable */
  ty_joint joint;          /* what the backend does of the steps at once */
  bool single;             /* there can be no kernel: why says it */
  int ndim, nred;          /* of fused, with shape */
  int64_t shape[TY_MAXDIM];
  ty_fused *fused;
  char why[96];            /* there is no kernel, or not a larger one */
} group;

typedef struct ty_recording ty_recording;

/* A way that the function has gone: a call's events, the steps that did them and, from plan.c on, the memory that these run over. */
struct ty_recording {
  ty_program *program;     /* whose it is */
  ty_recording *other;        /* the one that was last run before it */
  int number;              /* no other of its program ever has it */
  uint64_t last, tried;    /* the calls that last agreed with it, or made it, and that were last compared with it */
  bool fuses;
  bool gpu, moved;         /* gpu: there are steps on one, whose number is home; others may be on the CPU, but pass nothing to those */
  int home;
  uint64_t begun;          /* the first storage that was made in it */
  bool follows;            /* there are values with grad_of */
  bool asks;               /* the function must be asked each time: it switches leaves, or sets gradients within backward */
  int hooks, leaf_hooks;   /* how many hooks had been registered; on leaves, when its own were last looked at */
  bool unmade;             /* kernels have been left half-made: memory has ended */
  modes recorded;          /* at its begin */
  store *store;  int nstore, store_room;
  ty_map map;              /* storage id -> store */
  value *value;  int nvalue, value_room;
  step *step;    int nstep, step_room;
  event *event;  int nevent, event_room;
  group *group;  int ngroup, group_room;   /* every step once, in the order of the run */
  int *input, ninput, *result, nresult;   /* their values */
  ty_tensor **own; int nown, own_room;    /* leaves that the function makes, which are others in each call; NULL outside of calls */
  entry *entry;  int nentry, entry_room;   /* leaves that the record gives gradients, and those they had when the call began */
  ty_tensor **block; int nblock, block_room;   /* memory that values share, also those of the program's other records */
};

struct ty_program {
  ty_program_mode mode;
  bool dead;               /* the call can't be recorded */
  bool broken;             /* nor go on: what had agreed failed when it was asked for again, and placeholders stay what they are; or, for
                              the time being, a user's function within a backward pass differs, which is to be done again */
  bool ends;               /* what a user's function did then can't be recorded */
  bool fuses;
  bool trusting;           /* guard = "inputs": arguments may be memory that others can write to */
  int most;                /* so many records are kept */
  int within, inner, backward;   /* depth of kernels, of apply, of backward passes */
  int at, agreed;          /* the next event to compare, and the last that agreed */
  int pass;                /* the event of the backward pass that records */
  int rules;               /* depth of users' functions that are compared within one */
  ty_recording *told;      /* where such functions' answers are from while a pass is done again: events from told_first up to told_end, */
  int told_first, tell, told_end;          /* of which tell is next */
  uint64_t calls, checked, node;   /* this call's number; the first storage and the first node that were made in it */
  uint64_t detached;       /* how many tensors detach() had made before it */
  int numbers;             /* that records have got */
  ty_ctx *ctx;             /* the coroutine's that records or compares */
  ty_program *next;        /* of those that do so on this thread */
  modes called;            /* at the begin of the call */
  char why[160];
  ty_recording *r;            /* the one that is made or compared; at rest, that was run last. NULL: there is none */
};

/* The store of what the group's step gives as its j-th result; NULL: it gives none. */
static inline store *ty_stored_by(ty_recording *r, const group *g, int step, int j) {
  const int v = r->step[g->step[step]].vout[j];
  return v >= 0 ? &r->store[r->value[v].store] : NULL;
}

ty_status ty_program_no_memory(ty_ctx *ctx);
ty_status ty_program_broken(ty_ctx *ctx);
ty_status ty_program_die(ty_program *p, const char *why);
typedef enum { TY_SEEN, TY_MADE, TY_DERIVED } ty_how;   /* see ty_value_of */
int ty_value_of(ty_program *p, ty_tensor *t, ty_how how);
int ty_visible(ty_program *p, ty_tensor *t);             /* as ty_value_of, of what the function can see */
bool ty_is_value(const ty_program *p, int v, const ty_tensor *t);   /* whether t is what value v stood for */
bool ty_is_rate(const ty_op *op, int slot);              /* whether that operand is a learning rate */
bool ty_is_number(const ty_operand *o);
event *ty_event_new(ty_ctx *ctx, ty_program *p, event_kind kind, int nin);
event *ty_next_event(ty_program *p);
void ty_agreed(ty_program *p);
bool ty_note_operand(ty_program *p, event *e, int i, ty_tensor *t);
bool ty_is_operand(const ty_program *p, const event *e, int i, const ty_tensor *t);
bool ty_same_operands(ty_program *p, const event *e, ty_tensor **a, int na, ty_tensor **b, int nb);   /* those of a and then of b */
bool ty_note_operands(ty_program *p, event *e, ty_tensor **a, int na, ty_tensor **b, int nb);
void ty_hold_operands(event *e, ty_tensor **a, int na, ty_tensor **b, int nb);
bool ty_in_modes(const ty_ctx *ctx, const event *e);
ty_tensor *ty_new_placeholder(ty_program *p, int v, bool needs);
ty_status ty_note_gradients(ty_ctx *ctx, ty_program *p, event *e, int n, ty_tensor **result);
/* Backward, which e is, has agreed: its leaves get placeholders, or, where it added to a gradient in place, that is still to come.
 * Those whose turn came before event `to`, and have not been. */
ty_status ty_hand_out_leaves(ty_ctx *ctx, ty_program *p, event *e, int to);
/* rules.c. *known: the event after those functions within e, a backward pass, that have answered. */
ty_status ty_ask_rules(ty_ctx *ctx, ty_program *p, event *e, ty_backward_opts o, int *known);
/* The pass, with functions' answers from events of `by`. now NULL: as if the caller asked for it. */
ty_status ty_told(ty_ctx *ctx, ty_program *p, ty_recording *by, int first, int end, ty_tensor **roots, ty_tensor **grads, int nroot,
  ty_tensor **inputs, int ninput, ty_tensor **result, ty_backward_opts o, ty_backward_now now);
/* The call has gone another way (differ.c): what agreed so far is compared with a recording that it hasn't been, or recorded anew. */
ty_status ty_diverge(ty_ctx *ctx, ty_program *p, const char *why);
/* A user's function within the backward pass that is event n isn't as recorded: the same of what was before the pass. The pass and
 * ty_plan_let_go are left to the caller; all of it, which an error says, where such a function is within another one. */
ty_status ty_part_ways(ty_ctx *ctx, ty_program *p, int n);
ty_status ty_redo(ty_ctx *ctx, ty_program *p, ty_recording *was, int i);   /* one event that had agreed is asked for again */
/* The call is to be compared with r, which comes first then; or, in a new one, recorded. */
ty_status ty_compare(ty_ctx *ctx, ty_program *p, ty_recording *r, ty_tensor **input, int ninput);
ty_status ty_record_anew(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput);
void ty_rewind_grads(ty_recording *r);                   /* the leaves have their gradients of the call's begin */
void ty_forget_grads(ty_recording *r);
void ty_take_leaf(ty_recording *r, int own, ty_tensor *t);  /* t, or none, is this leaf of those that are made within the call */
void ty_become(ty_tensor *h, ty_tensor *t);             /* h, a placeholder, is what t is from now on */
void ty_clear_pending(ty_recording *r);

modes ty_modes_now(const ty_ctx *ctx);
bool ty_modes_same(const ty_ctx *ctx, const modes *m);
void ty_modes_set(ty_ctx *ctx, const modes *m);

ty_status ty_fuse_exchange(ty_ctx *ctx, ty_recording *r);   /* fuse_reorder.c */
int ty_joint_at(const ty_recording *r, const int *touches, int at, int *step, ty_joint *kind);   /* fuse_joint.c */
ty_status ty_fuse_split(ty_ctx *ctx, ty_recording *r);   /* fuse_split.c */
ty_status ty_fuse_groups(ty_ctx *ctx, ty_recording *r);  /* which steps run together */
ty_status ty_fuse_again(ty_ctx *ctx, ty_recording *r);   /* fuse_recompute.c */
ty_status ty_fuse_make(ty_ctx *ctx, ty_recording *r);    /* kernels, anew where what is held has changed */
void ty_fuse_places(ty_recording *r);                    /* values have their tensors: kernels get them */
void ty_fuse_free(ty_recording *r);
ty_status ty_plan_make(ty_ctx *ctx, ty_recording *r);    /* memory for the values, tensors for the steps */
ty_status ty_plan_ready(ty_ctx *ctx, ty_recording *r);   /* see ty_program_ready */
ty_status ty_plan_rates(ty_ctx *ctx, ty_recording *r);
ty_status ty_plan_evict(ty_ctx *ctx, ty_recording *r);   /* memory that someone still holds from the last call is left to them */
void ty_plan_rate(ty_recording *r, int first, int operand, double v);
void ty_plan_let_go(ty_recording *r);                    /* of the call in check */
void ty_plan_free(ty_recording *r);
#endif
