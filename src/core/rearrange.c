/* Ops that rearrange elements: pad, flip, cat, stack, strided take and put, overlap-add.
 *
 * Idea: each only sets up strided views; the devices' copies, fills and sums do the work. Invariant: every element of the result is
 * written; sums start from 0. */
#include <string.h>
#include "tycho.h"

/* Narrows t's dim to count elements, from first on, step apart. */
static void window(ty_tensor *t, int dim, int64_t first, int64_t count, int64_t step) {
  t->offset += first * t->stride[dim];
  t->shape[dim] = count;
  t->stride[dim] *= step;
}

static ty_status pad(ty_call *c) {
  ty_tensor src = *c->in[0].t, dst = *c->out[0];
  const ty_attr *p = &c->at[TY_AT_pad_constant_pad];
  TY_TRY(ty_fill_into(c->ctx, c->out[0], ty_operand_float(c->at[TY_AT_pad_constant_value].f)));
  for (int k = 0; k < p->n / 2; k++) {     /* negative padding crops the source */
    const int d = src.ndim - 1 - k;
    const int64_t lo = p->v[2 * k], hi = p->v[2 * k + 1], n = src.shape[d], from = TY_MAX(-lo, 0), to = n - TY_MAX(-hi, 0);
    if (to <= from) return TY_OK;
    window(&src, d, from, to - from, 1);
    window(&dst, d, TY_MAX(lo, 0), to - from, 1);
  }
  return ty_copy_into(c->ctx, &dst, &src);
}

static ty_status flip(ty_call *c) {
  ty_tensor src = *c->in[0].t;
  for (int i = 0; i < c->at[TY_AT_flip_dims].n; i++) {
    const int d = (int)c->at[TY_AT_flip_dims].v[i];
    if (src.ndim && src.shape[d]) window(&src, d, src.shape[d] - 1, src.shape[d], -1);
  }
  return ty_copy_into(c->ctx, c->out[0], &src);
}

static ty_status cat(ty_call *c) {
  const int d = (int)c->at[TY_AT_cat_dim].i;
  int64_t first = 0;
  for (int i = 0; i < c->nin; i++) {
    ty_tensor *t = c->in[i].t, part = *c->out[0];
    if (t->ndim != part.ndim) continue;    /* an empty tensor({}) */
    window(&part, d, first, t->shape[d], 1);
    if (t->shape[d]) TY_TRY(ty_copy_into(c->ctx, &part, t));
    first += t->shape[d];
  }
  return TY_OK;
}

static ty_status stack(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const int d = (int)c->at[TY_AT_stack_dim].i;
  ty_tensor part = *o;                     /* without the new dim */
  part.ndim--;
  for (int k = d; k < part.ndim; k++) {
    part.shape[k] = o->shape[k + 1];
    part.stride[k] = o->stride[k + 1];
  }
  for (int i = 0; i < c->nin; i++, part.offset += o->stride[d]) TY_TRY(ty_copy_into(c->ctx, &part, c->in[i].t));
  return TY_OK;
}

/* A copy of t with exactly the given strides, which may make it overlap itself. */
static ty_status copy_with(ty_call *c, ty_tensor *t, const int64_t *stride, ty_tensor **out) {
  ty_meta m = {.dtype = t->dtype, .ndim = 1, .shape = {1}};
  for (int i = 0; i < t->ndim; i++) m.shape[0] += TY_MAX(t->shape[i] - 1, 0) * stride[i];
  TY_TRY(ty_empty(c->ctx, ty_device_of(t), &m, out));
  ty_status s = m.shape[0] == ty_numel(t) ? TY_OK : ty_fill_into(c->ctx, *out, ty_operand_int(0));         /* the layout has holes */
  (*out)->ndim = t->ndim;
  memcpy((*out)->shape, t->shape, sizeof(int64_t) * t->ndim);
  memcpy((*out)->stride, stride, sizeof(int64_t) * t->ndim);
  if (s == TY_OK) s = ty_copy_into(c->ctx, *out, t);
  if (s != TY_OK) { ty_release(*out); *out = NULL; }
  return s;
}

/* Whether t lies in the layout that the op's size, stride and offset refer to. */
static bool lies_so(const ty_tensor *t, const ty_attr *layout) {
  if (!layout->n) return ty_is_contiguous(t);
  for (int i = 0; i < layout->n; i++)
    if (t->shape[i] > 1 && t->stride[i] != layout->v[i]) return false;
  return true;
}

/* t in that layout: itself, or a copy. */
static ty_status laid_out(ty_call *c, ty_tensor *t, ty_tensor **out) {
  const ty_attr *layout = &c->at[TY_AT_strided_take_layout];
  if (lies_so(t, layout)) return (*out = ty_retain(t), TY_OK);
  return layout->n ? copy_with(c, t, layout->v, out) : ty_contiguous(c->ctx, t, out);
}

/* The view of t (as laid_out) that size, stride and offset describe. */
static ty_tensor picked(const ty_call *c, const ty_tensor *t) {
  ty_tensor v = *t;
  v.ndim = c->at[TY_AT_strided_take_size].n;
  memcpy(v.shape, c->at[TY_AT_strided_take_size].v, sizeof(int64_t) * v.ndim);
  memcpy(v.stride, c->at[TY_AT_strided_take_stride].v, sizeof(int64_t) * v.ndim);
  v.offset += c->at[TY_AT_strided_take_offset].i;
  return v;
}

static ty_status strided_take(ty_call *c) {
  ty_tensor *x;
  TY_TRY(laid_out(c, c->in[0].t, &x));
  ty_tensor v = picked(c, x);
  ty_status s = ty_copy_into(c->ctx, c->out[0], &v);
  ty_release(x);
  return s;
}

/* Into the result, which is contiguous, or a copy in that layout. */
static ty_status strided_put(ty_call *c) {
  ty_tensor *o = c->out[0], *x = NULL;
  const ty_attr *layout = &c->at[TY_AT_strided_put_layout];
  ty_status s = lies_so(o, layout) ? ty_copy_into(c->ctx, x = ty_retain(o), c->in[0].t) : copy_with(c, c->in[0].t, layout->v, &x);
  if (s != TY_OK) { ty_release(x); return s; }
  ty_tensor v = picked(c, x);
  s = c->in[1].t ? ty_copy_into(c->ctx, &v, c->in[1].t) : ty_fill_into(c->ctx, &v, c->in[1]);
  if (s == TY_OK && x != o) s = ty_copy_into(c->ctx, o, x);
  ty_release(x);
  return s;
}

/* Adds one window at a time, or the k-th element of all windows at a time, whichever takes fewer sums. */
static ty_status add_windows(ty_call *c, const ty_tensor *x, const ty_tensor *sum) {
  const int d = (int)c->at[TY_AT_overlap_add_dim].i, last = x->ndim - 1;
  const int64_t step = c->at[TY_AT_overlap_add_step].i, dilation = c->at[TY_AT_overlap_add_dilation].i;
  const int64_t count = x->shape[d], size = x->shape[last];
  const bool whole = count < size;
  for (int64_t k = 0; k < TY_MIN(count, size); k++) {
    ty_tensor src = *x, dst = *sum;
    if (whole) {
      window(&src, d, k, size, 1);
      src.stride[d] = x->stride[last];
      window(&dst, d, k * step, size, dilation);
    } else {
      src.offset += k * x->stride[last];
      window(&dst, d, k * dilation, count, step);
    }
    src.ndim = (uint8_t)last;
    TY_TRY(ty_add_into(c->ctx, &dst, &src));
  }
  return TY_OK;
}

static ty_status overlap_add(ty_call *c) {
  ty_tensor *x = c->in[0].t, *o = c->out[0], *wide, *sum = NULL;
  TY_TRY(ty_fill_into(c->ctx, o, ty_operand_float(0)));
  if (x->dtype != TY_F16 && x->dtype != TY_BF16) return add_windows(c, x, o);
  TY_TRY(ty_cast(c->ctx, x, TY_F32, &wide));                 /* to round only the final sum */
  ty_status s = ty_cast(c->ctx, o, TY_F32, &sum);
  if (s == TY_OK) s = add_windows(c, wide, sum);
  if (s == TY_OK) s = ty_copy_into(c->ctx, o, sum);
  ty_release(sum);
  ty_release(wide);
  return s;
}

ty_status ty_rearrange(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_pad_constant: return pad(c);
    case TY_OP_flip: return flip(c);
    case TY_OP_cat: return cat(c);
    case TY_OP_stack: return stack(c);
    case TY_OP_strided_take: return strided_take(c);
    case TY_OP_strided_put: return strided_put(c);
    case TY_OP_overlap_add: return overlap_add(c);
    default: return ty_fail(c, "is no rearrangement");
  }
}
