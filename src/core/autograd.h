/* The tape: recorded calls, and backward passes over them.
 *
 * Idea: a result points to the node of the call that made it, and the node to its operands' nodes and leaves. Invariant: a node saves
 * aliases without history, so that no cycle arises. */
#ifndef TY_AUTOGRAD_H
#define TY_AUTOGRAD_H

#include "op.h"

typedef struct { ty_node *node; int out; ty_tensor *leaf; } ty_edge;  /* at most one of node and leaf is set */

/* Kept for backward: t, an alias without history (so no cycle arises), or packed, what saved_tensors_hooks made of it. */
typedef struct { ty_tensor *t; ty_hooks *packed; uint64_t from; uint32_t version; } ty_saved;   /* from, version: its storage's */

struct ty_node {
  atomic_int refs;
  ty_op *op;
  uint64_t seq;            /* grows with creation: a node's operands are older than the node */
  uint64_t key;            /* autograd.Function: key of its Lua context */
  bool internal;           /* autograd.Function: the library's own (see ty_function); it keeps nothing that its backward makes */
  bool ran, done;          /* ran: a pass that did not retain the graph has run it; done: and what it saved is gone */
  const ty_backend *gpu;   /* the GPU that it was recorded on; NULL: the CPU */
  void *stream;            /* that GPU's current stream at the time */
  int nin, nout, nattr;
  ty_edge *edge;           /* nin: where each operand's gradient goes */
  ty_operand *in;          /* nin: kinds, and the numbers among the operands; .t is never set */
  ty_saved *saved;         /* nin operands, then nout results */
  ty_meta *meta;           /* nin operands, then nout results: shape and dtype */
  ty_span span[TY_MAXPARAM];
  ty_attr *at;             /* nattr */
  ty_hooks **hook;         /* nout: each result's hooks, or NULL */
  ty_node *next;           /* worklist while freeing */
  char *location;          /* the call's line in the user's program, while anomalies are looked for; else NULL */
};

bool ty_needs_grad(const ty_tensor *t);
ty_status ty_history(ty_ctx *ctx, ty_tensor *t);         /* a view: brings its node up to date with its base */
int ty_slot_of(const ty_call *c, int i);                 /* the slot of c->in[i]; the tensors of a list share one */
bool ty_will_record(const ty_call *c);
enum { TY_SAVED_OUT = 24 };                             /* in ty_save_mask: bit s: operand slot s; bit TY_SAVED_OUT + j: result j */
uint32_t ty_save_mask(const ty_call *c);
ty_status ty_record(ty_call *c);
/* A change in place is recorded in two steps, so that nothing can fail once the target has changed: prepare allocates, then commit or
 * abandon ends it. c->out[0] is the target; before: copies of operands that are about to be overwritten. */
typedef struct { ty_node *call, *put; } ty_pending;
ty_status ty_prepare_inplace(ty_call *c, ty_tensor *target, ty_tensor *const *before, ty_pending *p);
void ty_commit_inplace(ty_tensor *target, ty_pending *p);
void ty_abandon_inplace(ty_pending *p);
/* An autograd.Function; key: of its context in Lua. internal: the library's own, whose node saves its first `kept` operands. */
typedef struct { uint64_t key; bool internal; int kept; } ty_function;
ty_status ty_record_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout);
ty_node *ty_node_retain(ty_node *n);      /* n may be NULL */
void ty_node_release(ty_node *n);
bool ty_mark_graph_used(ty_tensor *t);                            /* gives t a node that backward has run already; false: out of memory */
/* Makes t a leaf that requires grad, or one that doesn't. No effect on a result that has a node. */
ty_status ty_set_requires_grad(ty_ctx *ctx, ty_tensor *t, bool on);
void ty_node_finish(ty_node *n);                         /* n's rule has run for the last time: its saved tensors go */
/* The saved operand i, or result i, as it was when the call ran; a new reference. */
ty_status ty_saved_in(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out);
ty_status ty_saved_out(ty_ctx *ctx, ty_node *n, int i, ty_tensor **out);
/* accumulate: inputs are leaves, and only they get their .grad; within: the inputs' hooks are left to the pass around this one */
typedef struct { bool retain_graph, create_graph, accumulate, within; } ty_backward_opts;
/* Sets the modes of a backward pass; gives the previous ones, to be restored. */
typedef struct { bool grad_enabled, scaled, retains; uint8_t autocast[2]; } ty_pass_modes;
ty_pass_modes ty_enter_pass(ty_ctx *ctx, ty_backward_opts o);
void ty_leave_pass(ty_ctx *ctx, ty_pass_modes was);
/* A backward pass: gradients of the roots flow to leaves' .grad or, where inputs are given, into result[] as new references (NULL for an
 * unused input). grad: the roots' gradients; NULL: 1, for roots of one element. */
typedef struct {
  ty_tensor **root, **grad;
  int nroot;
  ty_tensor **input, **result;             /* ninput; or NULL */
  int ninput;
  ty_backward_opts o;
} ty_backward_call;
ty_status ty_backward(ty_ctx *ctx, const ty_backward_call *b);
/* Which leaves a backward pass from roots would reach; *others: whether it would reach leaves that aren't listed. */
ty_status ty_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others);
/* Bytes that the graphs of roots keep for backward, in storages whose id is `since` (from ty_next_storage) or larger. */
ty_status ty_kept(ty_ctx *ctx, ty_tensor **roots, int nroot, uint64_t since, long long *bytes);
#endif
