/* What fuse*.c and fused.c ask about steps and values.
 *
 * Idea: fuse_reorder.c moves steps, fuse.c forms groups of them, fuse_split.c and fuse_recompute.c change groups, fuse_joint.c finds steps
 * that a backend runs at once, and fused.c writes a group's kernel down. Invariant: a group computes what its steps would. */
#ifndef TY_FUSE_H
#define TY_FUSE_H
#include "program_parts.h"

int ty_joint_at(const ty_recording *r, const int *touches, int at, int *step, ty_joint *kind);   /* fuse_joint.c */
ty_status ty_fuse_again(ty_ctx *ctx, ty_recording *r);   /* fuse_recompute.c */

#define TY_FUSED_PER_STEP 3   /* nodes that a step takes: a guess */

static inline bool ty_is_flat(const ty_tensor *t, int64_t n) { return ty_numel(t) == 1 || (ty_numel(t) == n && ty_is_contiguous(t)); }

/* Whether two values are the same elements in the same order. */
static inline bool ty_same_elements(const ty_recording *r, int v, int w) {
  const ty_tensor *a = &r->value[v].like, *b = &r->value[w].like;
  return v == w ||
    (r->value[v].store == r->value[w].store && a->offset == b->offset && a->dtype == b->dtype &&
      ty_numel(a) == ty_numel(b) && ty_is_contiguous(a) && ty_is_contiguous(b));
}

static inline bool ty_is_copy(int id) { return id == TY_OP_cast || id == TY_OP_clone || id == TY_OP_copy; }

/* Whether the call changes operand i, other than by an in-place form. */
static inline bool ty_mutates_operand(const ty_call *c, int i) {
  return ty_mutates(c->op, c->at) && ty_operand_param(c->op, ty_slot_of(c, i))->mutated;
}

/* Whether a step writes to the store. */
static inline bool ty_writes(const ty_recording *r, const step *k, int store) {
  for (int j = 0; j < TY_MAXOUT; j++)
    if (k->vout[j] >= 0 && r->value[k->vout[j]].store == store) return true;
  for (int i = 0; i < k->call.nin; i++)
    if (k->vin[i] >= 0 && r->value[k->vin[i]].store == store && ty_mutates_operand(&k->call, i)) return true;
  return false;
}

/* Whether the result depends on operand i. */
static inline bool ty_reads(const ty_op *op, int i) { return i > 0 || (op->id != TY_OP_fill && op->id != TY_OP_copy); }
/* fuse_reorder.c. writes: the steps that write each store, else those that read it. ty_maker_of goes by r->writes, which is found anew
 * after each change of steps. */
ty_status ty_find_uses(ty_ctx *ctx, const ty_recording *r, bool writes, ty_uses *out);
int ty_maker_of(const ty_recording *r, int v, int before);
#endif
