/* Shape functions that models call all the time: reshape, flatten, squeeze, unsqueeze, narrow, transpose, t.
 *
 * Idea: they are described like rows of ops.def, but only compute sizes and then call the ops view, slice, permute and clone; tapes and
 * programs see only these. Invariant: an error names the function that the user called. */
#include <string.h>
#include "shape.h"

ty_status ty_view(ty_ctx *ctx, ty_tensor *t, int n, const int64_t *size, ty_tensor **out) {
  ty_attr at = {.set = true, .n = (uint8_t)n};
  memcpy(at.v, size, sizeof(int64_t) * (size_t)n);
  return ty_call_op2(ctx, TY_OP_view, ty_operand_tensor(t), (ty_operand){0}, &at, NULL, out);
}

/* asked: size as the user gave it; a program that records the view keeps its -1. */
static ty_status reshape_to(ty_call *c, int n, const int64_t *size, const int64_t *asked) {
  ty_tensor *t = c->in[0].t, *copy = NULL;
  ty_attr at = {.set = true, .i = TY_CONTIGUOUS};
  int64_t stride[TY_MAXDIM];
  if (!t->own_layout && !ty_view_strides(t, size, n, stride))
    TY_TRY(ty_call_op2(c->ctx, TY_OP_clone, ty_operand_tensor(t), (ty_operand){0}, &at, NULL, &copy));
  const ty_status s = ty_view(c->ctx, copy ? copy : t, n, asked, &c->out[0]);
  ty_release(copy);
  return s;
}

ty_status ty_reshape(ty_ctx *ctx, ty_tensor *t, int n, const int64_t *size, ty_tensor **out) {
  ty_operand in = ty_operand_tensor(t);
  ty_call c = {.ctx = ctx, .in = &in, .nin = 1};
  const ty_status s = reshape_to(&c, n, size, size);
  *out = c.out[0];
  return s;
}

static ty_status reshape(ty_call *c) {
  ty_attr *size = &c->at[0];
  int64_t asked[TY_MAXDIM];
  memcpy(asked, size->v, sizeof asked);
  TY_TRY(ty_fill_size(c, ty_numel(c->in[0].t), size->v, size->n));
  return reshape_to(c, size->n, size->v, asked);
}

static ty_status flatten(ty_call *c) {
  ty_tensor *x = c->in[0].t;
  int64_t *first = &c->at[0].i, *last = &c->at[1].i, size[TY_MAXDIM] = {1}, asked[TY_MAXDIM];
  int n = 0;
  TY_TRY(ty_norm_dim(c, first, x->ndim, x));
  TY_TRY(ty_norm_dim(c, last, x->ndim, x));
  if (*first > *last) return ty_fail(c, "first dim %lld is after last dim %lld", (long long)*first + 1, (long long)*last + 1);
  for (int d = 0; d < x->ndim; d++)
    if (d > *first && d <= *last) size[n - 1] *= x->shape[d];
    else size[n++] = x->shape[d];
  memcpy(asked, size, sizeof asked);
  if (ty_numel(x) && *first < *last) asked[*first] = -1;   /* for a program: whatever size this is */
  return reshape_to(c, TY_MAX(n, 1), size, asked);
}

static ty_status squeeze(ty_call *c) {
  ty_tensor *x = c->in[0].t;
  ty_attr *dims = &c->at[0];
  int64_t size[TY_MAXDIM];
  unsigned drop = dims->set ? 0 : ~0u;
  int n = 0;
  for (int i = 0; dims->set && i < dims->n; i++) {
    TY_TRY(ty_norm_dim(c, &dims->v[i], x->ndim, x));
    drop |= 1u << dims->v[i];
  }
  for (int d = 0; d < x->ndim; d++)
    if (x->shape[d] != 1 || !(drop >> d & 1)) size[n++] = x->shape[d];
  if (n && ty_numel(x)) size[n - 1] = -1;  /* for a program, as in flatten */
  return ty_view(c->ctx, x, n, size, &c->out[0]);
}

static ty_status unsqueeze(ty_call *c) {
  ty_tensor *x = c->in[0].t;
  int64_t d = c->at[0].i, size[TY_MAXDIM];
  const int n = x->ndim + 1;
  if (d < -n || d >= n) return ty_fail(c, "dim %lld is out of range for %d dims", (long long)(d < 0 ? d : d + 1), n);
  if (n > TY_MAXDIM) return ty_fail(c, "at most %d dims are supported", TY_MAXDIM);
  d = d < 0 ? d + n : d;
  for (int i = 0; i < n; i++) size[i] = i == d ? 1 : x->shape[i - (i > d)];
  if (n > 1 && ty_numel(x)) size[d == n - 1 ? n - 2 : n - 1] = -1;       /* for a program, as in flatten */
  return ty_view(c->ctx, x, n, size, &c->out[0]);
}

static ty_status narrow(ty_call *c) {
  ty_tensor *x = c->in[0].t;
  const int64_t length = c->at[2].i;
  int64_t first = c->at[1].i;
  const int64_t start = first;
  if (x->ndim == 0) return ty_fail(c, "a 0-dim tensor has nothing to narrow");
  TY_TRY(ty_norm_dim(c, &c->at[0].i, x->ndim, x));
  const int64_t n = x->shape[c->at[0].i];
  if (first == 0) return ty_fail(c, "argument 3 (start) is index 0: indices begin at 1");
  if (first < 0) first += n + 1;
  if (first < 1 || length < 0 || length > n || first - 1 > n - length)
    return ty_fail(c, "a start of %lld and a length of %lld are out of range for dim %lld of shape %s", (long long)start, (long long)length,
      (long long)c->at[0].i + 1, ty_shape_of(x));
  ty_attr at[4] = {[TY_AT_slice_dim] = {.set = true, .i = c->at[0].i}, [TY_AT_slice_first] = {.set = true, .i = first},
    [TY_AT_slice_last] = {.set = true, .i = first + length - 1}, [TY_AT_slice_step] = {.set = true, .i = 1}};
  if (!length) at[TY_AT_slice_first].i = 1, at[TY_AT_slice_last].i = 0;
  return ty_call_op2(c->ctx, TY_OP_slice, ty_operand_tensor(x), (ty_operand){0}, at, NULL, &c->out[0]);
}

/* x with dims a and b exchanged. */
static ty_status swapped(ty_call *c, int64_t a, int64_t b) {
  ty_tensor *x = c->in[0].t;
  ty_attr at = {.set = true, .n = x->ndim};
  for (int d = 0; d < x->ndim; d++) at.v[d] = d == a ? b : d == b ? a : d;
  return ty_call_op2(c->ctx, TY_OP_permute, ty_operand_tensor(x), (ty_operand){0}, &at, NULL, &c->out[0]);
}

static ty_status transpose(ty_call *c) {
  TY_TRY(ty_norm_dim(c, &c->at[0].i, c->in[0].t->ndim, c->in[0].t));
  TY_TRY(ty_norm_dim(c, &c->at[1].i, c->in[0].t->ndim, c->in[0].t));
  return swapped(c, c->at[0].i, c->at[1].i);
}

static ty_status t(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  if (x->ndim > 2) return ty_fail(c, "argument 1 must have at most 2 dims, got shape %s", ty_shape_of(x));
  return x->ndim == 2 ? swapped(c, 0, 1) : swapped(c, 0, 0);
}

ty_op ty_shape_functions[] = {
  {.name = "reshape", .made = reshape, .sig = "x, size:sizes",
    .doc = "the elements in another shape; a view where that is possible, else a copy"},
  {.name = "flatten", .made = flatten, .sig = "x, start_dim:dim=1, end_dim:dim=-1", .doc = "dims start_dim to end_dim as one"},
  {.name = "squeeze", .made = squeeze, .sig = "x, dim:dims?", .doc = "without dims of size 1 (all of them where dim is nil)"},
  {.name = "unsqueeze", .made = unsqueeze, .sig = "x, dim:dim", .doc = "with a dim of size 1 more, at dim"},
  {.name = "narrow", .made = narrow, .sig = "x, dim:dim, start:int, length:int", .doc = "length elements of dim from start on"},
  {.name = "transpose", .made = transpose, .sig = "x, dim0:dim, dim1:dim", .doc = "dims dim0 and dim1 exchanged"},
  {.name = "t", .made = t, .sig = "x", .doc = "a matrix transposed"}, {0}};
