/* The parts of a recorded program (program.h).
 *
 * Idea: a recording holds events (what the function asked for) and steps (the kernels that ran). Steps read and write values; a value is
 * a geometry in a store, and a store is one recorded storage. A group is steps that run as one kernel. "In check" means: in the call that
 * is being compared. Invariant: the arrays refer to each other by index (-1: none), since they move as they grow. */
#ifndef TY_PROGRAM_PARTS_H
#define TY_PROGRAM_PARTS_H
#include <stdio.h>
#include "fused.h"
#include "optim_formulas.h"
#include "program.h"
#include "table.h"

/* The memory of one recorded storage. */
typedef struct {
  uint64_t id;             /* the recorded storage's */
  size_t nbytes;
  const ty_backend *backend;
  int first, last, value;  /* the first and last step (from fuse.c on: group) that touch it; the newest value in it */
  bool internal, visible;  /* internal: a step made it; visible: the function has seen it, and may keep it after the call */
  bool input;              /* an argument's: its values are that argument and views of it */
  bool constant;           /* made within the call, but by no step: from the function's own numbers */
  uint64_t given;          /* of a constant on a GPU: id of the storage that stands for it in check */
  ty_tensor *memory;       /* of internal stores, from program_memory.c on: keeps the memory; if visible, no other store has its storage */
  bool idle;               /* visible, and unwritten when program_memory.c gave out memory: it is in a scrap block that nothing writes to */
  bool moved_out;          /* it has left memory that it shared: someone holds it, or a step writes it */
  int users;               /* values whose tensors are in it */
  bool unwritten;          /* not stored: only kernels that compute its values themselves use these */
  bool held;               /* unwritten, but stored after all: someone holds it */
  bool placed;             /* unwritten, but has memory: storing what someone holds may split the kernel that computes it */
  bool pinned;             /* its contents are needed after the run */
} store;

typedef struct {
  ty_tensor like;          /* its geometry; holds no references */
  ty_tensor *leaf;         /* the leaf that it is, if any: gradients flow to it, so later calls must bring the same tensor */
  ty_tensor *plain;        /* external values: the first tensor recorded for it that needed no gradient */
  ty_tensor *t;            /* external values: the tensor; internal ones: set by program_memory.c */
  int store, next;         /* next: the next older value in the same store, or -1 */
  /* the leaf whose gradient, made outside the call, it was; later calls may bring another tensor. The recording doesn't count as a holder
     of its memory (storage.lent). */
  ty_tensor *grad_of;
} value;

typedef struct {
  ty_call call;            /* owns in and at; program_memory.c fills in the tensors */
  const ty_backend *backend;
  ty_status (*run)(ty_call *c, const ty_backend *b);
  int *vin, vout[TY_MAXOUT];   /* the values of call.in and call.out */
  /* An optimizer's step on a GPU reads its numbers there, since a graph fixes arguments. rate: the learning rate, rate_now: what it should
     be; set: what call.settings holds. A changed one is written before the next run. */
  ty_tensor *rate;
  double rate_now, set[TY_OPTIM_NUMBERS];
  bool rate_changed, set_changed;
} step;
bool ty_step_init(step *k, const ty_call *c);            /* c without its tensors; false: out of memory, *k is empty */
void ty_step_free(step *k);

/* A context's, but for streams, which a replay chooses. place: the device that `device` stood for. */
typedef struct { bool grad_enabled; uint8_t autocast[2]; int device, place; } modes;

typedef enum { EVENT_APPLY, EVENT_BACKWARD, EVENT_GRAD, EVENT_DETACH, EVENT_FUNCTION, EVENT_LEAF, EVENT_REACHED, EVENT_RULE } event_kind;

/* What an event does to one leaf's gradient. */
typedef struct {
  ty_tensor *leaf, *placeholder;
  int before, after, own, at;   /* before, after: its values; own: the leaf's place in ty_recording.own, or -1; at: the event due then */
  int same;                          /* 1 + the operand of the pass that the gradient is itself, with its history; or 0 */
  bool scaled, kept, needs, given;   /* kept: added to in place; needs: it has a history; given: handed out, in check */
} leaf_change;

/* What an operand needs; OWN_LEAF + i: it is leaf i of ty_recording.own. */
typedef enum { NO_GRADIENT, ITS_HISTORY_DOES, IS_LEAF, OWN_LEAF } need;

typedef struct {
  event_kind kind;
  ty_op *op;
  int nin, first;          /* first: an op's first step */
  int end;                 /* the event after it and those within it (a pass contains rules, a rule what it does) */
  int of;                  /* of a rule: its function's event */
  bool *wanted;            /* of a rule: which gradients are wanted */
  ty_operand *in;
  int *vin;                /* values, or -1 */
  int *needs;              /* of each operand: see need */
  ty_span *span;
  ty_attr *at;
  int into;                /* the value changed in place, or -1 */
  bool into_needs, out_needs[TY_MAXOUT], own_layout[TY_MAXOUT];
  bool based, moves, gains;  /* the result is a view with its base's history; into's base gets a new one; its first one */
  bool anew;                 /* into, no view, gets a new history: its views must update theirs */
  int vout[TY_MAXOUT];
  modes modes;
  void *stream[TY_MAXGPU];
  ty_backward_opts opts;   /* of backward, whose operands are roots, their gradients, inputs */
  int nroot, nresult;      /* nroot, of backward, reached: roots; of a function: arguments among in; of a rule: gradients given */
  ty_function function;
  bool with_inputs, on;    /* on, of a leaf: requires_grad from here on */
  int own;                 /* a leaf's place in ty_recording.own, or -1 */
  ty_tensor *had;          /* a leaf's gradient before, in check */
  int *vresult;            /* values of the gradients that backward or a rule gives; -1: none; -2 - k: the pass's operand k itself */
  bool *result_needs;      /* whether these need gradients; reached: the answers, by leaf, then for others */
  leaf_change *leaf;
  int nleaf, leaf_room;
  char *failed;            /* the error of an op that failed before it did anything; of a rule, in check */
  int last;                /* of a rule, in check: the event after those within it that agreed */
  /* in check, references: operands, into, what was handed out */
  ty_tensor **actual, *target, *placeholder[TY_MAXOUT], **result_placeholder;
  ty_node *node;           /* of a function */
} event;

typedef struct { ty_tensor *leaf, *grad; bool scaled; } entry;   /* a leaf, and its gradient when the call began */

/* Steps that run as one kernel (fused, or the backend's joint), else one by one. */
typedef struct {
  int *step, nstep, nagain;   /* the first nagain are other groups', computed again here */
  bool pointwise;          /* fusable: pointwise, or over rows */
  ty_joint joint;          /* the backend's kernel for exactly these steps, or TY_JOINT_NONE */
  bool single;             /* no kernel can be made, for the reason in why */
  int ndim, nred;          /* of the kernel, as in fused.h */
  int64_t shape[TY_MAXDIM];
  ty_fused *fused;
  char why[96];            /* why there is no kernel, or no larger one */
} group;

typedef struct ty_recording ty_recording;

/* Steps by store, each once, in order: those of store s are step[first[s]] .. step[first[s + 1] - 1]. */
typedef struct { int *first, *step; } ty_uses;

/* One way that the function can go: a call's events, their steps and, from program_memory.c on, the memory of these. */
struct ty_recording {
  ty_program *program;
  ty_recording *other;        /* the next in the program's list, most recently used first */
  int number;              /* never used again in its program */
  uint64_t last, tried;    /* the latest call that agreed with it (or made it); that was compared with it */
  bool fuses;
  bool gpu, stale;         /* gpu: some steps are on a GPU; stale: addresses or numbers in its graph have changed */
  bool captured;           /* it has such a graph */
  ty_uses writes;          /* while it is planned: the steps that write each store */
  int home;                /* that GPU; steps on the CPU exchange no data with it */
  uint64_t begun;          /* the first storage id of its call */
  bool follows;            /* some values have grad_of */
  bool asks;               /* the function must run each time: it switches leaves, or sets gradients within backward */
  int hooks, calls, leaf_hooks;    /* the counters of program.h when it was recorded; leaf_hooks: when its leaves were last looked at */
  bool unmade;             /* ty_fuse_make ran out of memory, and must be repeated */
  modes recorded;          /* when its call began */
  store *store;  int nstore, store_room;
  ty_map map;              /* storage id -> store */
  value *value;  int nvalue, value_room;
  step *step;    int nstep, step_room;
  event *event;  int nevent, event_room;
  group *group;  int ngroup, group_room;   /* every step once, in the order of the run */
  int *input, ninput, *result, nresult;   /* values */
  ty_tensor **own; int nown, own_room;    /* leaves that the function makes, other ones in each call; NULL outside of calls */
  entry *entry;  int nentry, entry_room;   /* leaves whose gradients it changes */
  ty_tensor **block; int nblock, block_room;   /* memory that stores share, across recordings too */
};

struct ty_program {
  ty_program_mode mode;
  bool refused;            /* the call can't be recorded; it goes on uncompiled */
  bool broken;             /* the call can't go on: what had agreed failed when done again, and placeholders stay without data. Or, for a
                              while: a user's function differs within a backward pass, which is left and done again */
  bool ends;               /* then: that function did what can't be recorded */
  bool fuses;
  bool trusting;           /* guard = "inputs": arguments may be in memory that others can write to */
  int most;                /* recordings that are kept */
  int within, inner, backward, redoing;  /* depths: of kernels; of recorded applies, backward passes; of events that are done again */
  int at, agreed;          /* the next event to compare, and the last that agreed */
  int pass;                /* the event of the backward pass being recorded */
  int rules;               /* depth of passes in check that ask users' functions */
  ty_recording *told;      /* while a pass is done again: the recording that has its functions' answers */
  int told_first, tell, told_end;          /* these answers' events; tell: the next one */
  uint64_t calls, checked, node;   /* the call's number; its first storage and node */
  uint64_t detached;       /* ty_detached when it began */
  void *stream[TY_MAXGPU]; /* each GPU's current stream when it began */
  int numbers;             /* recordings that have been numbered */
  ty_ctx *ctx;             /* of the coroutine that records or compares; NULL at rest */
  struct ty_recall *recall;   /* in force where the call differs, while what agreed is redone */
  ty_program *next;        /* in the list account->active */
  modes called;            /* when the call began */
  uint64_t readable;       /* the storage that the host was last allowed to read (ty_program_may_read), */
  int readable_at;         /* when there were so many events */
  char why[256];           /* why the call is refused, or how it last differed, and at which line of the user's */
  ty_recording *r;            /* made or compared now; at rest, used last; NULL: none */
};

/* The store of result j of the group's step number `step`; NULL: there is no such result. */
static inline store *ty_stored_by(ty_recording *r, const group *g, int step, int j) {
  const int v = r->step[g->step[step]].vout[j];
  return v >= 0 ? &r->store[r->value[v].store] : NULL;
}

ty_status ty_program_no_memory(ty_ctx *ctx);
ty_status ty_program_broken(ty_ctx *ctx);
ty_status ty_program_refuse(ty_program *p, const char *why);     /* the call can't be recorded; TY_OK */
int ty_own_leaf(const ty_recording *r, const ty_tensor *t);      /* t's index among the leaves that the call has made, or -1 */
typedef enum { TY_SEEN, TY_MADE, TY_DERIVED } ty_how;   /* see ty_value_of */
int ty_value_of(ty_program *p, ty_tensor *t, ty_how how);
int ty_visible(ty_program *p, ty_tensor *t);             /* its value, whose store becomes visible; -1: out of memory */
bool ty_is_value(const ty_program *p, int v, const ty_tensor *t);   /* whether value v stands for t in this call */
bool ty_is_rate(const ty_op *op, int slot);              /* whether operand slot is a learning rate */
bool ty_is_number(const ty_operand *o);
event *ty_program_event_new(ty_ctx *ctx, ty_program *p, event_kind kind, int nin);
event *ty_next_event(ty_program *p);
void ty_agreed(ty_program *p);
bool ty_note_operand(ty_program *p, event *e, int i, ty_tensor *t);
bool ty_is_operand(const ty_program *p, const event *e, int i, const ty_tensor *t);
bool ty_same_operands(ty_program *p, const event *e, ty_tensor **a, int na, ty_tensor **b, int nb);   /* a's and then b's */
bool ty_note_operands(ty_program *p, event *e, ty_tensor **a, int na, ty_tensor **b, int nb);
void ty_hold_operands(event *e, ty_tensor **a, int na, ty_tensor **b, int nb);
bool ty_in_modes(const ty_ctx *ctx, const event *e);
ty_tensor *ty_new_placeholder(ty_program *p, int v, bool needs);
ty_status ty_note_gradients(ty_ctx *ctx, ty_program *p, event *e, int n, ty_tensor **result);
bool ty_gradients_follow(const ty_program *p);   /* whether leaves have the gradients that the recording reads: values bound to them */
void ty_note_passed(event *e, ty_tensor **grads, ty_tensor **result, int ninput);
/* The backward pass e has agreed: leaves whose gradients it changed before event `to` get placeholders; a gradient that it added to in
 * place gets a pending change. */
ty_status ty_hand_out_leaves(ty_ctx *ctx, ty_program *p, event *e, int to);
/* program_rules.c: asks the users' functions within e, a backward pass. *known: the event after those that have answered. */
ty_status ty_ask_rules(ty_ctx *ctx, ty_program *p, event *e, ty_backward_opts o, int *known);
/* A backward pass whose functions' answers come from events first up to end of `by`. now NULL: as ty_backward. */
ty_status ty_told(ty_ctx *ctx, ty_program *p, ty_recording *by, int first, int end, const ty_backward_call *b, ty_backward_now now);
/* program_differ.c: the call differs. What agreed is compared with a recording that hasn't been tried, or recorded anew. */
ty_status ty_diverge(ty_ctx *ctx, ty_program *p, const char *why);
/* As ty_diverge, for the events before n, a backward pass in which a user's function differs. The caller does the pass again, then calls
 * ty_recording_let_go. Within another such function: an error, and the outer pass does this. */
ty_status ty_part_ways(ty_ctx *ctx, ty_program *p, int n);
ty_status ty_redo(ty_ctx *ctx, ty_program *p, ty_recording *was, int i);   /* does event i, which had agreed, again */
/* From now on the call is compared with r, or recorded; p->r is that recording. */
ty_status ty_compare(ty_ctx *ctx, ty_program *p, ty_recording *r, ty_tensor **input, int ninput);
ty_status ty_record_anew(ty_ctx *ctx, ty_program *p, ty_tensor **input, int ninput);
void ty_rewind_grads(ty_recording *r);                   /* leaves get back the gradients of the call's begin */
void ty_forget_grads(ty_recording *r);
void ty_take_leaf(ty_recording *r, int own, ty_tensor *t);  /* t (or NULL) becomes leaf own of r->own */
void ty_become(ty_tensor *h, ty_tensor *t);             /* placeholder h takes t's memory and history */
void ty_clear_pending(ty_recording *r);

modes ty_modes_now(const ty_ctx *ctx);
bool ty_modes_same(const ty_ctx *ctx, const modes *m);
void ty_modes_set(ty_ctx *ctx, const modes *m);

void ty_uses_free(ty_uses *u);                           /* fuse_reorder.c */
ty_status ty_fuse_exchange(ty_ctx *ctx, ty_recording *r);   /* fuse_reorder.c */
ty_status ty_fuse_split(ty_ctx *ctx, ty_recording *r);   /* fuse_split.c */
ty_status ty_fuse_groups(ty_ctx *ctx, ty_recording *r);  /* forms the groups */
ty_status ty_fuse_make(ty_ctx *ctx, ty_recording *r);    /* makes the kernels, again where what is held has changed */
void ty_fuse_places(ty_recording *r);                    /* gives kernels the values' tensors */
void ty_fuse_free(ty_recording *r);
ty_status ty_recording_prepare(ty_ctx *ctx, ty_recording *r);    /* memory for the values, tensors for the steps */
ty_status ty_recording_ready(ty_ctx *ctx, ty_recording *r);   /* see ty_program_ready */
ty_status ty_recording_write_rates(ty_ctx *ctx, ty_recording *r);
ty_status ty_recording_evict(ty_ctx *ctx, ty_recording *r);   /* leaves memory of the last call to whoever still holds it */
void ty_recording_set_rate(ty_recording *r, int first, int operand, double v);
void ty_recording_let_go(ty_recording *r);                    /* drops what events hold of the call in check */
void ty_recording_free(ty_recording *r);
#endif
