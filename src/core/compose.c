/* Ops that are made of other ops, the same on every device.
 *
 * Invariant: these go through apply, so they are checked, recorded and fused as if the user had called them. */
#include "shape.h"

/* ---- a power by a plainer op ---- */

ty_op *ty_plainer_op(const ty_call *c) {
  static const struct { double by; ty_op_id id; } plainer[] = {{2, TY_OP_square}, {3, TY_OP_cube}, {0.5, TY_OP_sqrt},
    {-0.5, TY_OP_rsqrt}, {-1, TY_OP_reciprocal}, {1, TY_OP_mul}};
  const ty_operand *x = &c->in[0], *b = &c->in[1];
  if (c->op->id != TY_OP_pow || !x->t || !ty_is_float(x->t->dtype) || (b->kind != TY_INT && b->kind != TY_FLOAT)) return NULL;
  for (unsigned i = 0; i < sizeof plainer / sizeof *plainer; i++)
    if ((b->kind == TY_INT ? (double)b->i : b->f) == plainer[i].by) return &ty_ops[plainer[i].id];
  return NULL;
}

/* ---- batch_norm_apply ---- */

/* *y = op(*y, b), where b is operand i: one value per channel of x, cast to x's compute type. *y NULL: *y = b. No operand i: no change. */
static ty_status with_channels(const ty_call *c, ty_op_id op, int i, ty_tensor **y) {
  const ty_tensor *x = c->in[0].t;
  ty_tensor *t, *by, *next;
  if (!c->in[i].t) return TY_OK;
  if (!(t = ty_alias(c->in[i].t))) return ty_no_memory(c->ctx, NULL);
  t->ndim = x->ndim - 1;
  for (int d = 1; d < t->ndim; d++) { t->shape[d] = 1; t->stride[d] = 1; }
  ty_status s = ty_cast(c->ctx, t, ty_compute_dtype(x->dtype), &by);
  ty_release(t);
  if (s != TY_OK) return s;
  if (!*y) { *y = by; return TY_OK; }
  s = ty_call_op2(c->ctx, op, ty_operand_tensor(*y), ty_operand_tensor(by), NULL, NULL, &next);
  ty_release(by);
  if (s != TY_OK) return s;
  ty_release(*y);
  *y = next;
  return TY_OK;
}

ty_status ty_normalize_channels(ty_call *c) {
  ty_tensor *y = ty_retain(c->in[0].t), *scale = NULL, *next = NULL;
  ty_status s = with_channels(c, TY_OP_sub, 1, &y);
  if (s == TY_OK) s = with_channels(c, TY_OP_mul, 2, &scale);
  if (s == TY_OK) s = with_channels(c, TY_OP_mul, 3, &scale);
  if (s == TY_OK) s = ty_call_op2(c->ctx, TY_OP_mul, ty_operand_tensor(y), ty_operand_tensor(scale), NULL, NULL, &next);
  if (s == TY_OK) s = with_channels(c, TY_OP_add, 4, &next);
  if (s == TY_OK) s = ty_copy_into(c->ctx, c->out[0], next);
  ty_release(y);
  ty_release(scale);
  ty_release(next);
  return s;
}
