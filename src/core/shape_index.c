/* Infer rules of index ops, sorting and scans. As in shape.c, they make every check of arguments, but for the values
 * of index tensors, which the kernels check before they write. */
#include <string.h>
#include "shape.h"

/* ---- indices ---- */

/* Checks the index tensors, operand `list`; puts their common shape in shape and *ndim. */
static ty_status index_shape(ty_call *c, const ty_tensor *x, int list, ty_attr *dims, int64_t *shape, int *ndim) {
  int n = c->span[list].count;
  const ty_operand *idx = c->in + c->span[list].start;
  if (n != dims->n || n == 0) return ty_fail(c, "%d index tensors for %d dims", n, dims->n);
  *ndim = 0;
  for (int i = 0; i < n; i++) {
    TY_TRY(ty_norm_dim(c, &dims->v[i], x->ndim, x));
    if (i && dims->v[i] <= dims->v[i - 1]) return ty_fail(c, "dims must ascend");
    if (idx[i].t->dtype != TY_I64) return ty_fail(c, "index tensors must have dtype int64, got %s", ty_dtype_names[idx[i].t->dtype]);
    TY_TRY(ty_broadcast(c, shape, ndim, idx[i].t, idx[0].t));
  }
  if (x->ndim == 0) return ty_fail(c, "a 0-dim tensor can't be indexed");
  if (*ndim + x->ndim - n > TY_MAXDIM) return ty_fail(c, "the result has more than %d dims", TY_MAXDIM);
  return TY_OK;
}

/* Index dims take the place of x's indexed dims if those are adjacent; else they come first. */
int ty_index_place(const ty_attr *dims) {
  for (int i = 1; i < dims->n; i++)
    if (dims->v[i] != dims->v[i - 1] + 1) return 0;
  return (int)dims->v[0];
}

static void indexed_shape(const ty_tensor *x, const ty_attr *dims, const int64_t *ishape, int inum, ty_meta *m) {
  int place = ty_index_place(dims), nd = 0, rest = 0;
  for (int i = 0; i <= x->ndim; i++) {
    if (rest == place) {
      memcpy(m->shape + nd, ishape, sizeof(int64_t) * (size_t)inum);
      nd += inum;
      place = -1;
    }
    bool indexed = i == x->ndim;
    for (int j = 0; j < dims->n; j++) indexed = indexed || dims->v[j] == i;
    if (!indexed) { m->shape[nd++] = x->shape[i]; rest++; }
  }
  m->ndim = (uint8_t)nd;
}

ty_status ty_infer_index(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  int64_t ishape[TY_MAXDIM];
  int inum;
  TY_TRY(index_shape(c, x, 1, &c->at[TY_AT_index_dims], ishape, &inum));
  c->meta[0].dtype = x->dtype;
  c->meta[0].has_stride = c->meta[0].own_layout = false;
  indexed_shape(x, &c->at[TY_AT_index_dims], ishape, inum, &c->meta[0]);
  return TY_OK;
}

ty_status ty_infer_index_put(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *v = c->in[1].t;
  int64_t ishape[TY_MAXDIM];
  int inum;
  ty_meta want = {0};
  TY_TRY(index_shape(c, x, 2, &c->at[TY_AT_index_put_dims], ishape, &inum));
  indexed_shape(x, &c->at[TY_AT_index_put_dims], ishape, inum, &want);
  TY_TRY(ty_need_fitting(c, 1, x->dtype));
  if (v && !ty_broadcasts_to(v, want.ndim, want.shape))
    return ty_fail(c, "a value of shape %s doesn't broadcast to the indexed shape %s", ty_shape_of(v),
      ty_shape_text(want.shape, want.ndim));
  ty_meta_of(x, &c->meta[0]);
  return TY_OK;
}

ty_status ty_infer_gather(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *idx = c->in[1].t;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_gather_dim].i, x->ndim, x));
  TY_TRY(ty_need_index(c, 1));
  if (idx->ndim != x->ndim)
    return ty_fail(c, "argument 3 has shape %s; it must have as many dims as argument 1 of shape %s", ty_shape_of(idx),
      ty_shape_of(x));
  for (int i = 0; i < x->ndim; i++)
    if (i != c->at[TY_AT_gather_dim].i && idx->shape[i] > x->shape[i])
      return ty_fail(c, "argument 3 has shape %s; dim %d must be at most %lld to fit argument 1 of shape %s",
        ty_shape_of(idx), i + 1, (long long)x->shape[i], ty_shape_of(x));
  ty_set_shape(&c->meta[0], x->dtype, idx->ndim, idx->shape);
  return TY_OK;
}

ty_status ty_infer_scatter(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *idx = c->in[1].t, *src = c->in[2].t;
  TY_TRY(ty_infer_gather(c));
  const int64_t dim = c->at[TY_AT_gather_dim].i;
  if (x->ndim && !x->shape[dim] && ty_numel(idx))      /* backends don't read an index into nothing */
    return ty_fail(c, "argument 3 has indices into dim %lld of shape %s, which is empty", (long long)dim + 1, ty_shape_of(x));
  if (!src) TY_TRY(ty_need_fitting(c, 2, x->dtype));
  else {
    TY_TRY(ty_need_same_dtype(c, 2, 0));
    bool fits = src->ndim == idx->ndim;
    for (int i = 0; fits && i < idx->ndim; i++) fits = idx->shape[i] <= src->shape[i];
    if (!fits) return ty_fail(c, "argument 4 of shape %s is smaller than argument 3 of shape %s", ty_shape_of(src), ty_shape_of(idx));
  }
  ty_meta_of(x, &c->meta[0]);
  return TY_OK;
}

ty_status ty_infer_bag(ty_call *c) {
  const ty_tensor *w = c->in[0].t, *ids = c->in[1].t, *starts = c->in[2].t, *scale = c->in[3].t;
  TY_TRY(ty_need_float(c, 0));
  TY_TRY(ty_need_dims(c, 0, 2));
  for (int i = 1; i < 3; i++) {
    TY_TRY(ty_need_dims(c, i, 1));
    if (c->in[i].t->dtype != TY_I64)
      return ty_fail(c, "argument %d must be int64, got %s", ty_position(c, i), ty_dtype_names[c->in[i].t->dtype]);
  }
  if (scale) TY_TRY(ty_need_same_dtype(c, 3, 0));
  if (scale && (scale->ndim != 1 || scale->shape[0] != ids->shape[0]))
    return ty_fail(c, "argument 4 has shape %s; it must have argument 2's, %s", ty_shape_of(scale), ty_shape_of(ids));
  const int64_t shape[2] = {starts->shape[0], w->shape[1]};
  ty_set_shape(&c->meta[0], w->dtype, 2, shape);
  return TY_OK;
}

/* The number of rows depends on the data. */
ty_status ty_infer_nonzero(ty_call *c) {
  c->late = 1;
  return TY_OK;
}

/* ---- sorting ---- */

/* Values and their indices along a dim. */
static void ordered(ty_call *c, const ty_tensor *x, ty_meta *m) {
  ty_set_shape(&m[0], x->dtype, x->ndim, x->shape);
  ty_set_shape(&m[1], TY_I64, x->ndim, x->shape);
  c->compute = ty_compute_dtype(x->dtype);
}

ty_status ty_infer_sort(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_sort_dim].i, x->ndim, x));
  ordered(c, x, c->meta);
  return TY_OK;
}

ty_status ty_infer_topk(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  int64_t k = c->at[TY_AT_topk_k].i;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_topk_dim].i, x->ndim, x));
  int64_t n = x->ndim ? x->shape[c->at[TY_AT_topk_dim].i] : 1;
  if (!x->ndim && k != 1) return ty_fail(c, "k %lld must be 1 for a tensor without dims", (long long)k);
  if (k < 0 || k > n)
    return ty_fail(c, "k %lld must be in 0..%lld, the size of dim %lld of shape %s", (long long)k, (long long)n,
      (long long)c->at[TY_AT_topk_dim].i + 1, ty_shape_of(x));
  ordered(c, x, c->meta);
  if (x->ndim) c->meta[0].shape[c->at[TY_AT_topk_dim].i] = c->meta[1].shape[c->at[TY_AT_topk_dim].i] = k;
  return TY_OK;
}

ty_status ty_infer_order_statistics(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *ranks = c->in[1].t;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_order_statistics_dim].i, x->ndim, x));
  const int64_t dim = c->at[TY_AT_order_statistics_dim].i;
  TY_TRY(ty_need_dtype(c, 1, TY_I64));
  bool fits = x->ndim && ranks->ndim == x->ndim && (x->shape[dim] || !ranks->shape[dim]);
  for (int i = 0; fits && i < x->ndim; i++) fits = i == dim || ranks->shape[i] == x->shape[i];
  if (!fits) return ty_fail(c, "argument 3 of shape %s doesn't fit argument 1 of shape %s", ty_shape_of(ranks), ty_shape_of(x));
  ordered(c, x, c->meta);
  c->meta[0].shape[dim] = c->meta[1].shape[dim] = ranks->shape[dim];
  return TY_OK;
}

/* Distinct values, inverse (of x's shape), counts: how many values depends on the data. */
ty_status ty_infer_unique(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  c->late = 1 | 4;
  ty_set_shape(&c->meta[1], TY_I64, x->ndim, x->shape);
  c->compute = ty_compute_dtype(x->dtype);
  return TY_OK;
}

ty_status ty_infer_searchsorted(ty_call *c) {
  const ty_tensor *s = c->in[0].t, *v = c->in[1].t;
  bool fits = s->ndim == 1 || (s->ndim > 1 && s->ndim == v->ndim);
  for (int i = 0; fits && s->ndim > 1 && i < s->ndim - 1; i++) fits = s->shape[i] == v->shape[i];
  if (!fits)
    return ty_fail(c, "argument 1 has shape %s; it must be a vector or match argument 2 of shape %s in all but the last dim",
      ty_shape_of(s), ty_shape_of(v));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  ty_set_shape(&c->meta[0], TY_I64, v->ndim, v->shape);
  c->compute = ty_compute_dtype(s->dtype);
  return TY_OK;
}

ty_status ty_infer_bincount(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *w = c->in[1].t;
  TY_TRY(ty_need_index(c, 0));
  TY_TRY(ty_need_dims(c, 0, 1));
  if (w && (w->ndim != 1 || w->shape[0] != x->shape[0]))
    return ty_fail(c, "weights have shape %s; they must have argument 1's, %s", ty_shape_of(w), ty_shape_of(x));
  if (c->at[TY_AT_bincount_minlength].i < 0) return ty_fail(c, "minlength %lld is negative", (long long)c->at[TY_AT_bincount_minlength].i);
  c->late = 1;
  return TY_OK;
}

/* ---- scans ---- */

ty_status ty_infer_scan(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  int id = c->op->id;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_cumsum_dim].i, x->ndim, x));
  if (id == TY_OP_logcumsumexp) TY_TRY(ty_need_float(c, 0));
  bool picks = id == TY_OP_cummax || id == TY_OP_cummin;
  ty_set_shape(&c->meta[0], picks || ty_is_float(x->dtype) ? x->dtype : TY_I64, x->ndim, x->shape);
  if (picks) ty_set_shape(&c->meta[1], TY_I64, x->ndim, x->shape);
  c->compute = ty_compute_dtype(x->dtype);
  return TY_OK;
}

ty_status ty_infer_cumprod_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t;
  for (int i = 0; i < 2; i++) TY_TRY(ty_need_float(c, i));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_cumprod_backward_dim].i, x->ndim, x));
  if (!TY_SAME_SHAPE(g, x)) return ty_fail(c, "a gradient of shape %s for an operand of shape %s", ty_shape_of(g), ty_shape_of(x));
  ty_meta_of(x, &c->meta[0]);
  c->compute = ty_compute_dtype(x->dtype);
  return TY_OK;
}

