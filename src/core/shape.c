/* Infer rules of pointwise ops, reductions and copies: from arguments to the results' shapes and dtypes.
 *
 * Idea: an op's infer rule makes every check of its arguments, so backends may trust what they get.
 * Invariant: after TY_OK, dims and indices among the attributes count from 0 and are not negative. */
#include <math.h>
#include <string.h>
#include "shape.h"

/* ---- helpers shared by the rules ---- */

ty_status ty_norm_dim(ty_call *c, int64_t *dim, int ndim, const ty_tensor *x) {
  int64_t d = *dim, n = ndim ? ndim : 1;
  if (d < -n || d >= n)
    return ty_fail(c, "dim %lld is out of range for shape %s", (long long)(d < 0 ? d : d + 1), ty_shape_of(x));
  *dim = d < 0 ? d + n : d;
  return TY_OK;
}

ty_status ty_broadcast(ty_call *c, int64_t *shape, int *ndim, const ty_tensor *t, const ty_tensor *first) {
  if (t->ndim > *ndim) {
    int shift = t->ndim - *ndim;
    memmove(shape + shift, shape, sizeof(int64_t) * (size_t)*ndim);
    for (int i = 0; i < shift; i++) shape[i] = 1;
    *ndim = t->ndim;
  }
  for (int i = 0; i < t->ndim; i++) {
    int64_t *s = &shape[*ndim - t->ndim + i], n = t->shape[i];
    if (*s == 1) *s = n;
    else if (n != 1 && n != *s)
      return ty_fail(c, "shapes %s and %s don't broadcast: dim %d has %lld and %lld elements", ty_shape_of(first), ty_shape_of(t),
                     *ndim - t->ndim + i + 1, (long long)*s, (long long)n);
  }
  return TY_OK;
}

ty_status ty_fill_size(ty_call *c, int64_t numel, int64_t *shape, int ndim) {
  int64_t known = 1, open = -1;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] == -1 && open < 0) open = i;
    else if (shape[i] < 0)
      return ty_fail(c, "size %lld %s", (long long)shape[i],
        open >= 0 && shape[i] == -1 ? "is there twice: only one can be inferred" : "in argument 'size' is negative");
    else if (__builtin_mul_overflow(known, shape[i], &known)) return ty_fail(c, "size overflows");
  }
  if (open >= 0) {
    if (known == 0 || numel % known)
      return ty_fail(c, "the tensor's %lld elements, of shape %s, don't fill size %s", (long long)numel,
        ty_shape_of(c->in[0].t), ty_shape_text(shape, ndim));
    shape[open] = numel / known;
  } else if (known != numel)
    return ty_fail(c, "size %s asks for %lld elements, the tensor of shape %s has %lld", ty_shape_text(shape, ndim),
      (long long)known, ty_shape_of(c->in[0].t), (long long)numel);
  return TY_OK;
}

/* Normalises a list of dims, none of which may be named twice. */
ty_status ty_distinct_dims(ty_call *c, ty_attr *a, const ty_tensor *x) {
  unsigned seen = 0;
  for (int i = 0; i < a->n; i++) {
    TY_TRY(ty_norm_dim(c, &a->v[i], x->ndim, x));
    if (seen >> a->v[i] & 1) return ty_fail(c, "dim %lld is named twice", (long long)a->v[i] + 1);
    seen |= 1u << a->v[i];
  }
  return TY_OK;
}

int ty_position(const ty_call *c, int slot) {
  return (int)(ty_operand_param(c->op, slot) - c->op->param) + 1;
}

ty_status ty_need_float(ty_call *c, int slot) {
  const ty_tensor *t = c->in[slot].t;
  if (t && !ty_is_float(t->dtype))
    return ty_fail(c, "argument %d must have a floating dtype, got %s", ty_position(c, slot), ty_dtype_names[t->dtype]);
  return TY_OK;
}

ty_status ty_need_dims(ty_call *c, int slot, int ndim) {
  const ty_tensor *t = c->in[slot].t;
  if (t && t->ndim != ndim)
    return ty_fail(c, "argument %d must have %d dims, got shape %s", ty_position(c, slot), ndim, ty_shape_of(t));
  return TY_OK;
}

ty_status ty_need_dtype(ty_call *c, int slot, ty_dtype d) {
  const ty_tensor *t = c->in[slot].t;
  if (t && t->dtype != d)
    return ty_fail(c, "argument %d must have dtype %s, got %s", ty_position(c, slot), ty_dtype_names[d], ty_dtype_names[t->dtype]);
  return TY_OK;
}

ty_status ty_need_same_dtype(ty_call *c, int slot, int with) {
  const ty_tensor *t = c->in[slot].t, *w = c->in[with].t;
  if (t && w && t->dtype != w->dtype)
    return ty_fail(c, "argument %d has dtype %s; it must be %s as argument %d's", ty_position(c, slot),
      ty_dtype_names[t->dtype], ty_dtype_names[w->dtype], ty_position(c, with));
  return TY_OK;
}

ty_status ty_need_fitting(ty_call *c, int slot, ty_dtype d) {
  const ty_operand *v = &c->in[slot];
  const double n = v->kind == TY_FLOAT ? v->f : (double)v->i;
  if ((v->kind != TY_FLOAT && v->kind != TY_INT) || ty_fits(n, d)) return TY_OK;
  const char *name = ty_operand_param(c->op, slot)->name;
  if (n != n) return ty_fail(c, "argument %d (%s) is NaN, which %s can't hold", ty_position(c, slot), name, ty_dtype_names[d]);
  return ty_fail(c, "argument %d (%s) %.14g is out of range for %s", ty_position(c, slot), name, n, ty_dtype_names[d]);
}

ty_status ty_need_index(ty_call *c, int slot) {
  const ty_tensor *t = c->in[slot].t;
  if (t && t->dtype != TY_I64 && t->dtype != TY_I32 && t->dtype != TY_U8)
    return ty_fail(c, "argument %d must hold indices (int64), got %s%s", ty_position(c, slot), ty_dtype_names[t->dtype],
      ty_is_float(t->dtype) ? ": long() makes it int64" : "");
  return TY_OK;
}

int64_t ty_count(const ty_meta *m) {
  int64_t n = 1;
  bool none = false;
  for (int i = 0; i < m->ndim; i++) {
    if (m->shape[i] < 0 || __builtin_mul_overflow(n, TY_MAX(m->shape[i], 1), &n) || n > TY_MOST) return -1;
    none = none || m->shape[i] == 0;
  }
  return none ? 0 : n;
}

void ty_set_shape(ty_meta *m, ty_dtype d, int ndim, const int64_t *shape) {
  m->dtype = d;
  m->ndim = (uint8_t)ndim;
  m->has_stride = m->own_layout = false;
  memmove(m->shape, shape, sizeof(int64_t) * (size_t)ndim);
}

void ty_keep_order(ty_meta *m, const ty_tensor *x) {
  int order[TY_MAXDIM];
  int64_t n = 1;
  ty_sort_dims(x, order);
  for (int i = x->ndim - 1; i >= 0; i--) { m->stride[order[i]] = n; n *= TY_MAX(m->shape[order[i]], 1); }
  m->has_stride = true;
  m->own_layout = x->own_layout;
}

/* Keeps x's order of dims in memory where x is dense, or part of a tensor in an op's own layout. Users don't choose that layout, so they
 * must find a part as fast as the whole. */
void ty_keep_layout(ty_meta *m, const ty_tensor *x) {
  if (x->ndim < 2 || ty_is_contiguous(x)) return;
  if (ty_is_dense(x)) {
    memcpy(m->stride, x->stride, sizeof(int64_t) * x->ndim);
    m->has_stride = true;
    m->own_layout = x->own_layout;
  } else if (x->own_layout) ty_keep_order(m, x);
}

/* Whether x lies channels-last: of 4 dims; or, in an op's own layout, of 3 or 4, also where x is only a part of such a tensor. */
static bool like_pictures(const ty_tensor *x) {
  int order[TY_MAXDIM];
  if (x->ndim < (x->own_layout ? 3 : 4) || x->ndim > 4 || ty_is_contiguous(x)) return false;
  if (!x->own_layout) return ty_is_channels_last(x);
  ty_sort_dims(x, order);
  return order[0] == 0 && order[1] == 2 && order[x->ndim - 1] == 1;
}
/* Lays m, of another size than x, channels-last where x is. */
static void keep_channels_last(ty_meta *m, const ty_tensor *x) {
  if (!like_pictures(x)) return;
  ty_lay_channels_last(m);
  m->own_layout = x->own_layout;
}

/* ---- pointwise ---- */

static ty_dtype number_dtype(ty_kind k) { return k == TY_INT ? TY_I64 : k == TY_BOOLEAN ? TY_BOOL : TY_F32; }

/* PyTorch's categories: tensors with dims (high) outweigh 0-dim tensors, these outweigh numbers, unless low is of a higher kind
 * (bool, whole, float). -1: no operand is in the category. */
static ty_dtype combine(int high, int low) {
  if (high < 0) return low;
  if (low < 0 || ty_is_float(high)) return high;
  if (high == TY_BOOL || ty_is_float(low)) return ty_promote(high, low);
  return high;
}

ty_dtype ty_result_dtype(const ty_operand *in, int n) {
  int best[3] = {-1, -1, -1};
  if (n == 2 && in[0].t && in[1].t && in[0].t->dtype == in[1].t->dtype) return in[0].t->dtype;
  for (int i = 0; i < n; i++) {
    if (in[i].kind == TY_NONE) continue;
    int k = in[i].kind != TY_TENSOR ? 2 : in[i].t->ndim == 0;
    ty_dtype d = in[i].kind == TY_TENSOR ? in[i].t->dtype : number_dtype(in[i].kind);
    best[k] = best[k] < 0 ? (int)d : (int)ty_promote(best[k], d);
  }
  int low = best[1] < 0 ? best[2] : best[2] < 0 ? best[1] : (int)combine(best[1], best[2]);
  return combine(best[0], low);
}

/* A number that no element exceeds becomes the dtype's last one: it doesn't matter to a minimum; lower ones likewise to a maximum. */
static void within(ty_operand *v, ty_dtype d, bool minimum) {
  if (minimum && v->i > ty_whole_last(d)) *v = ty_operand_int(ty_whole_last(d));
  if (!minimum && v->i < ty_whole_first(d)) *v = ty_operand_int(ty_whole_first(d));
}

ty_status ty_infer_pointwise(ty_call *c) {
  ty_meta *m = &c->meta[0];
  const ty_tensor *first = NULL;
  ty_dtype_rule rule = c->op->dtype;
  int ndim = 0;
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = c->in[i].t;
    if (!t) continue;
    if (!first) {
      first = t;
      ndim = t->ndim;
      memcpy(m->shape, t->shape, sizeof(int64_t) * t->ndim);
    } else if (t->ndim != ndim || memcmp(m->shape, t->shape, sizeof(int64_t) * (size_t)ndim))
      TY_TRY(ty_broadcast(c, m->shape, &ndim, t, first));
  }
  if (!first) return ty_fail(c, "no argument is a tensor");
  m->ndim = (uint8_t)ndim;
  m->has_stride = m->own_layout = false;
  if (rule == TY_D_WHERE) TY_TRY(ty_need_dtype(c, 0, TY_BOOL));
  if (c->op->id == TY_OP_masked_fill) TY_TRY(ty_need_dtype(c, 1, TY_BOOL));
  ty_dtype d = rule == TY_D_FIRST ? c->in[0].t->dtype
             : rule == TY_D_WHERE ? ty_result_dtype(c->in + 1, 2) : ty_result_dtype(c->in, c->nin);
  if (rule == TY_D_FLOAT && !ty_is_float(d)) d = TY_F32;
  if (rule == TY_D_WHOLE && ty_is_float(d)) return ty_fail(c, "operands must be whole numbers or booleans, got %s", ty_dtype_names[d]);
  if (d == TY_BOOL && (c->op->id == TY_OP_sub || c->op->id == TY_OP_neg))
    return ty_fail(c, "bool operands can't be subtracted or negated: use logical_xor or logical_not");
  ty_operand *value = &c->in[c->nin - 1];
  const double power = value->kind == TY_FLOAT ? value->f : (double)value->i;
  if (c->op->id == TY_OP_pow && !ty_is_float(d) && !value->t && power < 0)
    return ty_fail(c, "argument 2 is %g; whole numbers (%s) have no negative powers: use x:float()", power, ty_dtype_names[d]);
  if (d == TY_BOOL && c->op->id == TY_OP_square) d = TY_I64;
  if (rule == TY_D_FIRST) TY_TRY(ty_need_fitting(c, c->nin - 1, d));
  const bool picks = rule == TY_D_WHERE || c->op->id == TY_OP_maximum || c->op->id == TY_OP_minimum;       /* the result is an operand */
  for (int i = 0; picks && !ty_is_float(d) && i < c->nin; i++) {
    if (c->in[i].kind != TY_INT) continue;
    if (rule != TY_D_WHERE) within(&c->in[i], d, c->op->id == TY_OP_minimum);
    TY_TRY(ty_need_fitting(c, i, d));
    if (d == TY_U8 && c->in[i].i < 0)                    /* which fills may have */
      return ty_fail(c, "argument %d (%s) %lld is out of range for %s", ty_position(c, i), ty_operand_param(c->op, i)->name,
        (long long)c->in[i].i, ty_dtype_names[d]);
  }
  if (rule == TY_D_FIRST && d == TY_BOOL && value->kind == TY_FLOAT) *value = ty_operand_int(value->f != 0);   /* a fraction is true, too */
  c->compute = ty_compute_dtype(d);
  for (int i = 0; c->compute == TY_I64 && i < c->op->nparam; i++) {
    const ty_param *p = &c->op->param[i];
    if (p->type == TY_P_NUMBER && isfinite(c->at[p->slot].f) && c->at[p->slot].f != floor(c->at[p->slot].f))
      return ty_fail(c, "argument %d (%s) must be whole for dtype %s, got %g", i + 1, p->name, ty_dtype_names[d], c->at[p->slot].f);
  }
  c->common = d;
  m->dtype = rule == TY_D_BOOL ? TY_BOOL : d;
  for (int i = 0; i < c->nin; i++) {        /* the layout of the first operand of the result's shape */
    const ty_tensor *t = c->in[i].t;
    if (t && t->ndim == ndim && !memcmp(m->shape, t->shape, sizeof(int64_t) * (size_t)ndim)) { ty_keep_layout(m, t); break; }
  }
  return TY_OK;
}

/* ---- reductions, scans ---- */

/* Dims to reduce as a bit mask; nil means all. */
static ty_status reduce_dims(ty_call *c, ty_attr *a, const ty_tensor *x, unsigned *mask) {
  *mask = 0;
  if (!a->set || a->n == 0) {
    *mask = (1u << x->ndim) - 1;
    a->set = false;
    return TY_OK;
  }
  for (int i = 0; i < a->n; i++) {
    TY_TRY(ty_norm_dim(c, &a->v[i], x->ndim, x));
    if (*mask >> a->v[i] & 1 && x->ndim) return ty_fail(c, "dim %lld is named twice", (long long)a->v[i] + 1);
    *mask |= 1u << a->v[i];
  }
  if (x->ndim == 0) *mask = 0;
  return TY_OK;
}

static void reduced_shape(ty_meta *m, const ty_tensor *x, unsigned mask, bool keepdim) {
  m->ndim = 0;
  m->has_stride = m->own_layout = false;
  for (int i = 0; i < x->ndim; i++)
    if (!(mask >> i & 1)) m->shape[m->ndim++] = x->shape[i];
    else if (keepdim) m->shape[m->ndim++] = 1;
}

ty_status ty_infer_reduce(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_meta *m = &c->meta[0];
  unsigned mask;
  int id = c->op->id;
  TY_TRY(reduce_dims(c, &c->at[TY_AT_sum_dim], x, &mask));
  if (id == TY_OP_amax || id == TY_OP_amin)
    for (int i = 0; i < x->ndim; i++)
      if (mask >> i & 1 && x->shape[i] == 0) return ty_fail(c, "dim %d of shape %s is empty: no minimum or maximum", i + 1, ty_shape_of(x));
  if (c->op->dtype == TY_D_FLOAT) TY_TRY(ty_need_float(c, 0));
  reduced_shape(m, x, mask, c->at[TY_AT_sum_keepdim].i);
  ty_dtype d = x->dtype;
  bool adds = id == TY_OP_sum || id == TY_OP_nansum || id == TY_OP_prod;
  m->dtype = c->op->dtype == TY_D_BOOL ? TY_BOOL : adds && !ty_is_float(d) ? TY_I64 : d;
  c->compute = ty_compute_dtype(d);
  return TY_OK;
}

ty_status ty_infer_index_reduce(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_max_dim_dim].i, x->ndim, x));
  int64_t d = c->at[TY_AT_max_dim_dim].i;
  if (x->ndim && x->shape[d] == 0)
    return ty_fail(c, "dim %lld of shape %s is empty: no minimum or maximum", (long long)d + 1, ty_shape_of(x));
  for (int k = 0; k < 2; k++) {
    reduced_shape(&c->meta[k], x, x->ndim ? 1u << d : 0, c->at[TY_AT_max_dim_keepdim].i);
    c->meta[k].dtype = k ? TY_I64 : x->dtype;
  }
  c->compute = ty_compute_dtype(x->dtype);
  return TY_OK;
}

ty_status ty_infer_softmax(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(ty_need_float(c, 0));
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_softmax_dim].i, x->ndim, x));
  if (c->nin == 2) {                       /* backward: gradient and result */
    const ty_tensor *y = c->in[1].t;
    TY_TRY(ty_need_same_dtype(c, 1, 0));
    if (!TY_SAME_SHAPE(y, x)) return ty_fail(c, "a gradient of shape %s doesn't fit a result of shape %s", ty_shape_of(x), ty_shape_of(y));
  }
  ty_set_shape(&c->meta[0], x->dtype, x->ndim, x->shape);
  const ty_tensor *like = c->nin == 2 ? c->in[1].t : x;      /* backward keeps forward's layout */
  if (like->own_layout) ty_keep_layout(&c->meta[0], like);   /* else contiguous, as PyTorch's */
  return TY_OK;
}

/* ---- copies ---- */

ty_status ty_infer_same(ty_call *c) {
  TY_TRY(ty_need_float(c, 0));
  ty_meta_of(c->in[0].t, &c->meta[0]);
  return TY_OK;
}

static ty_status copied(ty_call *c, ty_dtype d, int64_t format) {
  ty_meta_of(c->in[0].t, &c->meta[0]);
  c->meta[0].dtype = (uint8_t)d;
  if (format == TY_PRESERVE) ty_keep_layout(&c->meta[0], c->in[0].t);
  if (format != TY_CHANNELS_LAST) return TY_OK;
  TY_TRY(ty_need_dims(c, 0, 4));
  ty_lay_channels_last(&c->meta[0]);
  return TY_OK;
}
ty_status ty_infer_clone(ty_call *c) { return copied(c, c->in[0].t->dtype, c->at[TY_AT_clone_memory_format].i); }
ty_status ty_infer_cast(ty_call *c) { return copied(c, c->at[TY_AT_cast_dtype].i, c->at[TY_AT_cast_memory_format].i); }

bool ty_copies_to(const ty_tensor *src, const ty_tensor *x) {
  const int lead = src->ndim - x->ndim;
  bool fits = true;
  for (int i = 0; i < src->ndim; i++)
    fits = fits && (src->shape[i] == 1 || (i >= lead && src->shape[i] == x->shape[i - lead]));
  return fits;
}
ty_status ty_infer_copy(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *src = c->in[1].t;
  ty_meta_of(x, &c->meta[0]);
  if (!src) return ty_need_fitting(c, 1, x->dtype);
  return ty_copies_to(src, x) ? TY_OK : ty_fail(c, "shape %s doesn't broadcast to %s", ty_shape_of(src), ty_shape_of(x));
}

ty_status ty_infer_matrices(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  if (x->ndim < 2) return ty_fail(c, "argument 1 must have at least 2 dims, got shape %s", ty_shape_of(x));
  ty_meta_of(x, &c->meta[0]);
  return TY_OK;
}

ty_status ty_infer_dims_same(ty_call *c) {
  TY_TRY(ty_distinct_dims(c, &c->at[TY_AT_flip_dims], c->in[0].t));
  ty_meta_of(c->in[0].t, &c->meta[0]);
  return TY_OK;
}

ty_status ty_infer_pad(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const ty_attr *p = &c->at[TY_AT_pad_constant_pad];
  ty_meta *m = &c->meta[0];
  if (p->n % 2 || p->n / 2 > x->ndim) return ty_fail(c, "argument 2 has %d numbers; it needs two for each of up to %d dims", p->n, x->ndim);
  ty_meta_of(x, m);
  for (int k = 0; k < p->n / 2; k++) {
    int64_t *s = &m->shape[x->ndim - 1 - k];
    if (__builtin_add_overflow(*s, p->v[2 * k], s) || __builtin_add_overflow(*s, p->v[2 * k + 1], s) || *s < 0)
      return ty_fail(c, "padding %lld and %lld makes dim %d of shape %s negative", (long long)p->v[2 * k],
        (long long)p->v[2 * k + 1], x->ndim - k, ty_shape_of(x));
  }
  keep_channels_last(m, x);
  return TY_OK;
}

/* Whatever size, stride and offset pick must lie in a tensor of x's shape and of strides layout (none: contiguous). */
static ty_status strided_fits(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const ty_attr *lay = &c->at[TY_AT_strided_take_layout], *size = &c->at[TY_AT_strided_take_size];
  const ty_attr *stride = &c->at[TY_AT_strided_take_stride];
  int64_t extent = 1, reach = c->at[TY_AT_strided_take_offset].i, own[TY_MAXDIM], step;
  bool ok = (lay->n == 0 || lay->n == x->ndim) && size->n == stride->n && reach >= 0, empty = false;
  ty_contiguous_strides(x->shape, x->ndim, own);
  for (int i = 0; ok && i < x->ndim; i++) {
    int64_t st = lay->n ? lay->v[i] : own[i];
    ok = st >= 0 && !__builtin_mul_overflow(TY_MAX(x->shape[i] - 1, 0), st, &step) && !__builtin_add_overflow(extent, step, &extent);
  }
  for (int i = 0; ok && i < size->n; i++) {
    empty = empty || size->v[i] == 0;
    ok = size->v[i] >= 0 && stride->v[i] >= 0 && !__builtin_mul_overflow(TY_MAX(size->v[i] - 1, 0), stride->v[i], &step) &&
      !__builtin_add_overflow(reach, step, &reach);
  }
  if (!ok || extent > (int64_t)1 << 44 || (!empty && (reach >= extent || ty_numel(x) == 0)))
    return ty_fail(c, "size, stride and offset reach beyond the shape %s", ty_shape_of(x));
  return TY_OK;
}

ty_status ty_infer_strided_take(ty_call *c) {
  TY_TRY(strided_fits(c));
  ty_set_shape(&c->meta[0], c->in[0].t->dtype, c->at[TY_AT_strided_take_size].n, c->at[TY_AT_strided_take_size].v);
  return TY_OK;
}

ty_status ty_infer_strided_put(ty_call *c) {
  const ty_tensor *src = c->in[1].t;
  const ty_attr *size = &c->at[TY_AT_strided_put_size];
  TY_TRY(strided_fits(c));
  if (src && !ty_broadcasts_to(src, size->n, size->v))
    return ty_fail(c, "shape %s doesn't broadcast to %s", ty_shape_of(src), ty_shape_text(size->v, size->n));
  ty_meta_of(c->in[0].t, &c->meta[0]);
  return TY_OK;
}

ty_status ty_infer_cat(ty_call *c) {
  int n = c->span[0].count, start = c->span[0].start;
  if (n == 0) return ty_fail(c, "argument 1 is an empty list");
  int first = 0;                           /* tensor({}), with which lists begin to grow, fits any shape */
  while (first < n - 1 && c->in[start + first].t->ndim == 1 && c->in[start + first].t->shape[0] == 0) first++;
  const ty_tensor *x = c->in[start + first].t;
  ty_meta *m = &c->meta[0];
  if (x->ndim == 0) return ty_fail(c, "0-dim tensors can't be joined: use stack");
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_cat_dim].i, x->ndim, x));
  int64_t d = c->at[TY_AT_cat_dim].i;
  ty_meta_of(x, m);
  for (int i = first + 1; i < n; i++) {
    const ty_tensor *y = c->in[start + i].t;
    bool same = y->ndim == x->ndim;
    if (y->ndim == 1 && y->shape[0] == 0) continue;
    for (int k = 0; same && k < x->ndim; k++) same = k == d || y->shape[k] == x->shape[k];
    if (!same)
      return ty_fail(c, "tensor %d has shape %s; apart from dim %lld it must match tensor %d of shape %s", i + 1,
        ty_shape_of(y), (long long)d + 1, first + 1, ty_shape_of(x));
    if (__builtin_add_overflow(m->shape[d], y->shape[d], &m->shape[d]))
      return ty_fail(c, "the sizes along dim %lld overflow", (long long)d + 1);
  }
  m->dtype = ty_result_dtype(c->in + start, n);
  keep_channels_last(m, x);
  for (int i = first + 1; i < n && m->has_stride; i++) {
    const ty_tensor *y = c->in[start + i].t;
    m->has_stride = like_pictures(y) || ty_is_channels_last(y);
  }
  m->own_layout = m->own_layout && m->has_stride;
  return TY_OK;
}

ty_status ty_infer_stack(ty_call *c) {
  const int n = c->span[0].count, start = c->span[0].start;
  if (n == 0) return ty_fail(c, "argument 1 is an empty list");
  const ty_tensor *x = c->in[start].t;
  ty_meta *m = &c->meta[0];
  TY_TRY(ty_norm_dim(c, &c->at[TY_AT_stack_dim].i, x->ndim + 1, x));
  if (x->ndim == TY_MAXDIM) return ty_fail(c, "a tensor has at most %d dims", TY_MAXDIM);
  for (int i = 1; i < n; i++)
    if (!TY_SAME_SHAPE(c->in[start + i].t, x))
      return ty_fail(c, "tensor %d has shape %s; it must be %s as tensor 1's", i + 1, ty_shape_of(c->in[start + i].t), ty_shape_of(x));
  int64_t shape[TY_MAXDIM];
  for (int k = 0, d = (int)c->at[TY_AT_stack_dim].i; k <= x->ndim; k++) shape[k] = k == d ? n : x->shape[k - (k > d)];
  ty_set_shape(m, ty_result_dtype(c->in + start, n), x->ndim + 1, shape);
  return TY_OK;
}
