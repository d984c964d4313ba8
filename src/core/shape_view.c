/* Infer rules of views: the shape and strides under which a view sees x's memory; apply.c makes the view. As in shape.c, they make
 * every check of arguments. Invariant: a view reaches no element outside of its base. */
#include <string.h>
#include "shape.h"

/* A view of x with ndim dims, whose shape and strides are to be set. */
static void view_of(ty_meta *m, const ty_tensor *x, int ndim) {
  m->dtype = x->dtype;
  m->ndim = (uint8_t)ndim;
  m->has_stride = true;
  m->own_layout = false;
}

ty_status ty_infer_view(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_attr *s = &c->at[TY_AT_view_size];
  ty_meta *m = &c->meta[0];
  TY_TRY(ty_fill_size(c, ty_numel(x), s->v, s->n));
  ty_set_shape(m, x->dtype, s->n, s->v);
  m->has_stride = ty_view_strides(x, s->v, s->n, m->stride);
  m->own_layout = m->has_stride && x->own_layout;
  if (!m->has_stride && !x->own_layout)
    return ty_fail(c, "a tensor of shape %s and strides %s can't be viewed as %s without a copy: use reshape", ty_shape_of(x),
                   ty_shape_text(x->stride, x->ndim), ty_shape_text(s->v, s->n));
  return TY_OK;
}

ty_status ty_infer_permute(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_attr *a = &c->at[TY_AT_permute_dims];
  ty_meta *m = &c->meta[0];
  if (a->n != x->ndim) return ty_fail(c, "%d dims given for shape %s", a->n, ty_shape_of(x));
  TY_TRY(ty_distinct_dims(c, a, x));
  view_of(m, x, x->ndim);
  for (int i = 0; i < x->ndim; i++) {
    m->shape[i] = x->shape[a->v[i]];
    m->stride[i] = x->stride[a->v[i]];
  }
  return TY_OK;
}

ty_status ty_infer_expand(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_attr *a = &c->at[TY_AT_expand_size];
  ty_meta *m = &c->meta[0];
  int shift = a->n - x->ndim;
  if (shift < 0) return ty_fail(c, "size %s has fewer dims than shape %s", ty_shape_text(a->v, a->n), ty_shape_of(x));
  view_of(m, x, a->n);
  for (int i = 0; i < a->n; i++) {
    int64_t have = i < shift ? 1 : x->shape[i - shift], want = a->v[i];
    if (want == -1 && i < shift)
      return ty_fail(c, "size -1 keeps a dim of the tensor, but shape %s has none for dim %d of %s", ty_shape_of(x), i + 1,
        ty_shape_text(a->v, a->n));
    if (want == -1) want = a->v[i] = have;
    if (want < 0 || (have != 1 && have != want))
      return ty_fail(c, "shape %s doesn't expand to %s: dim %d has %lld elements", ty_shape_of(x),
        ty_shape_text(a->v, a->n), i + 1, (long long)have);
    m->shape[i] = want;
    m->stride[i] = have == want && i >= shift ? x->stride[i - shift] : 0;
  }
  return TY_OK;
}

/* first and last are 1-based and included; negative ones count from the end; ends past the size are clamped. After this
 * rule the attribute first is the 0-based first element, and last the number of elements. */
ty_status ty_infer_slice(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_attr *a = c->at;
  ty_meta *m = &c->meta[0];
  if (x->ndim == 0) return ty_fail(c, "a 0-dim tensor has nothing to slice");
  TY_TRY(ty_norm_dim(c, &a[TY_AT_slice_dim].i, x->ndim, x));
  const int64_t d = a[TY_AT_slice_dim].i, n = x->shape[d], step = a[TY_AT_slice_step].i;
  int64_t first = a[TY_AT_slice_first].set ? a[TY_AT_slice_first].i : 1, last = a[TY_AT_slice_last].set ? a[TY_AT_slice_last].i : n;
  if (step < 1) return ty_fail(c, "step must be at least 1, got %lld", (long long)step);
  if (first == 0 || (last == 0 && first != 1)) return ty_fail(c, "index 0: indices begin at 1");
  if (first < 0) first = TY_MAX(first + n + 1, 1);
  if (last < 0) last += n + 1;
  last = TY_MIN(last, n);
  int64_t count = last < first ? 0 : (last - first) / step + 1;
  memcpy(m->shape, x->shape, sizeof(int64_t) * x->ndim);
  memcpy(m->stride, x->stride, sizeof(int64_t) * x->ndim);
  view_of(m, x, x->ndim);
  m->own_layout = x->own_layout;
  m->shape[d] = count;
  m->stride[d] = x->stride[d] * TY_MIN(step, TY_MAX(n, 1));        /* a longer step takes one index as well */
  a[TY_AT_slice_first].set = a[TY_AT_slice_last].set = true;
  a[TY_AT_slice_first].i = count ? first - 1 : 0;
  a[TY_AT_slice_last].i = count;
  return TY_OK;
}

ty_status ty_infer_select(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_meta *m = &c->meta[0];
  if (x->ndim == 0) return ty_fail(c, "a 0-dim tensor can't be indexed");
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_select_dim].i, x->ndim, x));
  int64_t d = c->at[TY_AT_select_dim].i, i = c->at[TY_AT_select_index].i, n = x->shape[d];
  if (i == 0) return ty_fail(c, "index 0: indices begin at 1");
  if (i > n || i < -n)
    return ty_fail(c, "index %lld is out of range for dim %lld of shape %s", (long long)i, (long long)d + 1, ty_shape_of(x));
  c->at[TY_AT_select_index].i = i < 0 ? i + n : i - 1;
  view_of(m, x, 0);
  m->own_layout = x->own_layout;
  for (int k = 0; k < x->ndim; k++)
    if (k != d) {
      m->shape[m->ndim] = x->shape[k];
      m->stride[m->ndim++] = x->stride[k];
    }
  return TY_OK;
}

/* The elements whose positions in dims a and b differ by offset, along a new last dim. */
ty_status ty_infer_diagonal(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_meta *m = &c->meta[0];
  int64_t *a = &c->at[TY_AT_diagonal_dim1].i, *b = &c->at[TY_AT_diagonal_dim2].i, off = c->at[TY_AT_diagonal_offset].i;
  if (x->ndim < 2) return ty_fail(c, "argument 1 must have at least 2 dims, got shape %s", ty_shape_of(x));
  TY_TRY(ty_norm_dim(c, a, x->ndim, x));
  TY_TRY(ty_norm_dim(c, b, x->ndim, x));
  if (*a == *b) return ty_fail(c, "dim %lld is named twice", (long long)*a + 1);
  int64_t na = x->shape[*a] + TY_MIN(off, 0), nb = x->shape[*b] - TY_MAX(off, 0);
  view_of(m, x, 0);
  for (int i = 0; i < x->ndim; i++)
    if (i != *a && i != *b) { m->shape[m->ndim] = x->shape[i]; m->stride[m->ndim++] = x->stride[i]; }
  m->shape[m->ndim] = TY_MAX(TY_MIN(na, nb), 0);
  m->stride[m->ndim++] = x->stride[*a] + x->stride[*b];
  return TY_OK;
}

/* How many windows of size elements, dilation apart, each a step after the last, fit n elements; -1: none. */
static int64_t windows(int64_t n, int64_t size, int64_t step, int64_t dilation) {
  int64_t reach;                           /* from a window's first element to its last one */
  if (__builtin_mul_overflow(TY_MAX(size, 1) - 1, dilation, &reach) || reach >= n + (size == 0)) return -1;
  return (n - reach - (size > 0)) / step + 1;
}

static ty_status need_steps(ty_call *c, int64_t step, int64_t dilation) {
  if (step < 1) return ty_fail(c, "step must be at least 1, got %lld", (long long)step);
  if (dilation < 1) return ty_fail(c, "dilation must be at least 1, got %lld", (long long)dilation);
  return TY_OK;
}

/* Windows of size elements of dim, dilation apart, every step-th, along a new last dim. */
ty_status ty_infer_unfold(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_meta *m = &c->meta[0];
  const int64_t size = c->at[TY_AT_unfold_size].i, step = c->at[TY_AT_unfold_step].i, dilation = c->at[TY_AT_unfold_dilation].i;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_unfold_dim].i, x->ndim, x));
  if (x->ndim == 0 || x->ndim == TY_MAXDIM)
    return ty_fail(c, "argument 1 must have 1 to %d dims, got shape %s", TY_MAXDIM - 1, ty_shape_of(x));
  TY_TRY(need_steps(c, step, dilation));
  const int64_t d = c->at[TY_AT_unfold_dim].i, n = x->shape[d], count = size < 0 ? -1 : windows(n, size, step, dilation);
  if (count < 0 && dilation > 1)
    return ty_fail(c, "%lld elements, %lld apart, don't fit dim %lld of size %lld", (long long)size, (long long)dilation, (long long)d + 1,
      (long long)n);
  if (count < 0)
    return ty_fail(c, "size %lld must be in 0..%lld, the size of dim %lld", (long long)size, (long long)n, (long long)d + 1);
  view_of(m, x, x->ndim + 1);
  memcpy(m->shape, x->shape, sizeof(int64_t) * x->ndim);
  memcpy(m->stride, x->stride, sizeof(int64_t) * x->ndim);
  m->shape[d] = count;
  m->stride[d] = x->stride[d] * TY_MIN(step, TY_MAX(n, 1));   /* a longer step: one window, any stride */
  m->shape[x->ndim] = size;
  m->stride[x->ndim] = x->stride[d] * TY_MIN(dilation, TY_MAX(n, 1));
  return TY_OK;
}

ty_status ty_infer_as_strided(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const ty_attr *size = &c->at[TY_AT_as_strided_size], *stride = &c->at[TY_AT_as_strided_stride];
  const int64_t first = c->at[TY_AT_as_strided_storage_offset].i, n = ty_numel(x);
  ty_meta *m = &c->meta[0];
  int64_t last = first, count = 1;
  if (!ty_is_contiguous(x)) return ty_fail(c, "argument 1 must be contiguous: call contiguous()");
  if (size->n != stride->n) return ty_fail(c, "%d sizes and %d strides are given", size->n, stride->n);
  view_of(m, x, size->n);
  for (int i = 0; i < size->n; i++) {
    int64_t reach;
    if (size->v[i] < 0 || stride->v[i] < 0)
      return ty_fail(c, "sizes and strides must not be negative, got %lld and %lld", (long long)size->v[i], (long long)stride->v[i]);
    if (size->v[i] && (__builtin_mul_overflow(size->v[i] - 1, stride->v[i], &reach) || __builtin_add_overflow(last, reach, &last)))
      last = n;
    if (__builtin_mul_overflow(count, size->v[i], &count)) return ty_fail(c, "size %s is too large", ty_shape_text(size->v, size->n));
    m->shape[i] = size->v[i];
    m->stride[i] = stride->v[i];
  }
  if (!count && first >= 0) c->at[TY_AT_as_strided_storage_offset].i = 0;          /* an empty view */
  if (first < 0 || (count && last >= n))
    return ty_fail(c, "size %s at strides %s from storage_offset %lld reaches outside of %lld elements", ty_shape_text(size->v, size->n),
      ty_shape_text(stride->v, stride->n), (long long)first, (long long)n);
  return TY_OK;
}

/* unfold's transpose: windows along dim, with their elements along the last dim, are summed into n elements. */
ty_status ty_infer_overlap_add(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const int last = x->ndim - 1;
  const int64_t n = c->at[TY_AT_overlap_add_n].i;
  if (last < 1) return ty_fail(c, "argument 1 must have at least 2 dims, got shape %s", ty_shape_of(x));
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_overlap_add_dim].i, last, x));
  TY_TRY(need_steps(c, c->at[TY_AT_overlap_add_step].i, c->at[TY_AT_overlap_add_dilation].i));
  const int64_t d = c->at[TY_AT_overlap_add_dim].i;
  if (n < 0 || windows(n, x->shape[last], c->at[TY_AT_overlap_add_step].i, c->at[TY_AT_overlap_add_dilation].i) != x->shape[d])
    return ty_fail(c, "shape %s doesn't hold the windows of %lld elements", ty_shape_of(x), (long long)n);
  ty_set_shape(&c->meta[0], x->dtype, last, x->shape);
  c->meta[0].shape[d] = n;
  return TY_OK;
}

int64_t ty_view_offset(const ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  if (c->op->id == TY_OP_diagonal && ty_numel(x)) {
    const int64_t off = c->at[TY_AT_diagonal_offset].i, row = c->at[TY_AT_diagonal_dim1].i, col = c->at[TY_AT_diagonal_dim2].i;
    const int64_t a = TY_MIN(TY_MAX(-off, 0), x->shape[row] - 1), b = TY_MIN(TY_MAX(off, 0), x->shape[col] - 1);
    return x->offset + a * x->stride[row] + b * x->stride[col];
  }
  if (c->op->id == TY_OP_slice || c->op->id == TY_OP_select)      /* same attributes at the front */
    return x->offset + c->at[TY_AT_select_index].i * x->stride[c->at[TY_AT_select_dim].i];
  if (c->op->id == TY_OP_as_strided) return x->offset + c->at[TY_AT_as_strided_storage_offset].i;
  return x->offset;
}
