/* What fuse.c and fused.c both ask of steps and values. */
#ifndef TY_FUSE_H
#define TY_FUSE_H
#include "plan.h"

#define TY_FUSED_PER_STEP 3   /* nodes, as a guess */

static inline bool ty_is_flat(const ty_tensor *t, int64_t n) { return ty_numel(t) == 1 || (ty_numel(t) == n && ty_is_contiguous(t)); }

/* Whether two values are the same elements in the same order. */
static inline bool ty_same_elements(const ty_program *p, int v, int w) {
  const ty_tensor *a = &p->value[v].like, *b = &p->value[w].like;
  return v == w || (p->value[v].store == p->value[w].store && a->offset == b->offset && a->dtype == b->dtype && ty_numel(a) == ty_numel(b) && ty_is_contiguous(a) && ty_is_contiguous(b));
}

static inline bool ty_is_copy(int id) { return id == TY_OP_cast || id == TY_OP_clone || id == TY_OP_copy; }

/* Whether numbers among the operands are first rounded to their common dtype, as PyTorch does. */
static inline bool ty_chooses(const ty_call *c) { return ty_is_half(c->common) && (c->op->dtype == TY_D_BOOL || c->op->id == TY_OP_maximum || c->op->id == TY_OP_minimum); }

/* Whether the result depends on operand i. */
static inline bool ty_reads(const ty_op *op, int i) { return i > 0 || (op->id != TY_OP_fill && op->id != TY_OP_copy); }
#endif
