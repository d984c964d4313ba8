/* Infer rules of matrix products, attention, recurrent layers, normalisation, losses, ctc_loss and distances. As in shape.c, they make
 * every check of arguments. */
#include <string.h>
#include "shape.h"

/* ---- matrix products ---- */

/* BLAS counts rows and columns in int. */
static ty_status blas_sizes(ty_call *c, const ty_tensor *t) {
  for (int i = 0; i < t->ndim; i++)
    if (t->shape[i] > INT32_MAX) return ty_fail(c, "dim %d of shape %s is too large", i + 1, ty_shape_of(t));
  return TY_OK;
}

ty_status ty_infer_matmul(ty_call *c) {
  const ty_tensor *a = c->in[0].t, *b = c->in[1].t;
  ty_meta *m = &c->meta[0];
  if (a->ndim == 0 || b->ndim == 0) return ty_fail(c, "argument %d is a 0-dim tensor; matrices or vectors are needed", a->ndim ? 2 : 1);
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  if (a->dtype == TY_BOOL) return ty_fail(c, "dtype bool can't be multiplied");
  TY_TRY(blas_sizes(c, a));
  TY_TRY(blas_sizes(c, b));
  int db = b->ndim > 1 ? b->ndim - 2 : 0;
  int64_t k = a->shape[a->ndim - 1];
  if (b->shape[db] != k)
    return ty_fail(c, "argument 2 has shape %s; dim %d must be %lld to match argument 1 of shape %s",
      ty_shape_of(b), db + 1, (long long)k, ty_shape_of(a));
  int nd = 0;
  ty_tensor ba = *a, bb = *b;  /* their batch dims only */
  ba.ndim = (uint8_t)TY_MAX(a->ndim - 2, 0);
  bb.ndim = (uint8_t)TY_MAX(b->ndim - 2, 0);
  if (ty_broadcast(c, m->shape, &nd, &ba, a) != TY_OK || ty_broadcast(c, m->shape, &nd, &bb, a) != TY_OK)
    return ty_fail(c, "the batches of shapes %s and %s don't broadcast", ty_shape_of(a), ty_shape_of(b));
  if (a->ndim > 1) m->shape[nd++] = a->shape[a->ndim - 2];
  if (b->ndim > 1) m->shape[nd++] = b->shape[b->ndim - 1];
  ty_set_shape(m, a->dtype, nd, m->shape);
  return TY_OK;
}

ty_status ty_infer_linear(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *w = c->in[1].t, *b = c->in[2].t;
  for (int i = 0; i < 3; i++) {
    TY_TRY(ty_need_float(c, i));
    if (i) TY_TRY(ty_need_same_dtype(c, i, 0));
  }
  TY_TRY(ty_need_dims(c, 1, 2));
  TY_TRY(ty_need_dims(c, 2, 1));
  TY_TRY(blas_sizes(c, w));
  if (ty_numel(x) / TY_MAX(w->shape[1], 1) > INT32_MAX) return ty_fail(c, "argument 1 of shape %s has too many rows", ty_shape_of(x));
  if (x->ndim == 0 || x->shape[x->ndim - 1] != w->shape[1])
    return ty_fail(c, "argument 1 has shape %s; its last dim must be %lld to match argument 2 of shape %s",
      ty_shape_of(x), (long long)w->shape[1], ty_shape_of(w));
  if (b && b->shape[0] != w->shape[0])
    return ty_fail(c, "argument 3 has shape %s; it must have %lld elements to match argument 2 of shape %s",
      ty_shape_of(b), (long long)w->shape[0], ty_shape_of(w));
  ty_set_shape(&c->meta[0], x->dtype, x->ndim, x->shape);
  c->meta[0].shape[x->ndim - 1] = w->shape[0];
  return TY_OK;
}

/* linear's gradients of weight and bias; grad and x are matrices. */
ty_status ty_infer_linear_backward_weight(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t;
  const int64_t shape[2] = {g->ndim == 2 ? g->shape[1] : 0, x->ndim == 2 ? x->shape[1] : 0};
  TY_TRY(ty_need_float(c, 0));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  TY_TRY(ty_need_dims(c, 0, 2));
  TY_TRY(ty_need_dims(c, 1, 2));
  TY_TRY(blas_sizes(c, x));
  if (g->shape[0] != x->shape[0])
    return ty_fail(c, "arguments 1 and 2 have shapes %s and %s; they must have as many rows", ty_shape_of(g), ty_shape_of(x));
  c->compute = ty_compute_dtype(g->dtype);
  ty_set_shape(&c->meta[0], g->dtype, 2, shape);
  ty_set_shape(&c->meta[1], g->dtype, 1, shape);
  return TY_OK;
}

/* ---- attention: q (N,H,Lq,D), k (N,H,Lk,D), v (N,H,Lk,Dv) ---- */

static ty_status attention_operands(ty_call *c, int first) {
  const ty_tensor *q = c->in[first].t, *k = c->in[first + 1].t, *v = c->in[first + 2].t, *m = c->in[first + 3].t;
  for (int i = first; i < first + 3; i++) {
    TY_TRY(ty_need_float(c, i));
    TY_TRY(ty_need_dims(c, i, 4));
    if (i > first) TY_TRY(ty_need_same_dtype(c, i, first));
  }
  bool fits = k->shape[0] == q->shape[0] && v->shape[0] == q->shape[0] && k->shape[1] == q->shape[1] &&
    v->shape[1] == q->shape[1] && k->shape[3] == q->shape[3] && k->shape[2] == v->shape[2];
  if (!fits)
    return ty_fail(c, "query, key and value have shapes %s, %s and %s; (N,H,L,D), (N,H,S,D) and (N,H,S,E) are needed",
      ty_shape_of(q), ty_shape_of(k), ty_shape_of(v));
  if (m && (m->ndim != 4 || m->shape[0] != q->shape[0] || m->shape[1] != q->shape[1] ||
      m->shape[2] != q->shape[2] || m->shape[3] != k->shape[2]))
    return ty_fail(c, "the mask has shape %s; it must be %lldx%lldx%lldx%lld", ty_shape_of(m), (long long)q->shape[0],
      (long long)q->shape[1], (long long)q->shape[2], (long long)k->shape[2]);
  if (m && m->dtype != TY_BOOL && m->dtype != q->dtype)
    return ty_fail(c, "the mask has dtype %s; it must be bool or %s as the query", ty_dtype_names[m->dtype],
      ty_dtype_names[q->dtype]);
  const double dropout = c->at[TY_AT_attention_dropout].f;
  if (!(dropout >= 0 && dropout < 1)) return ty_fail(c, "dropout must be in 0..1 (1 excluded), got %g", dropout);
  return TY_OK;
}

/* Lays (N,H,L,D) out in the order (N,L,H,D), in which a projection gives it and the next one takes it: neither has to copy. */
static void heads_within_rows(ty_meta *m) {
  const int64_t h = TY_MAX(m->shape[1], 1), l = TY_MAX(m->shape[2], 1), d = TY_MAX(m->shape[3], 1), stride[4] = {l * h * d, d, h * d, 1};
  m->has_stride = m->own_layout = true;
  memcpy(m->stride, stride, sizeof stride);
}

ty_status ty_infer_attention(ty_call *c) {
  const ty_tensor *q = c->in[0].t;
  TY_TRY(attention_operands(c, 0));
  int64_t shape[4] = {q->shape[0], q->shape[1], q->shape[2], c->in[2].t->shape[3]}, two = 2;
  ty_set_shape(&c->meta[0], q->dtype, 4, shape);
  heads_within_rows(&c->meta[0]);
  ty_set_shape(&c->meta[1], ty_compute_dtype(q->dtype), 3, shape);
  ty_set_shape(&c->meta[2], TY_I64, 1, &two);
  return TY_OK;
}

ty_status ty_infer_attention_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *q = c->in[1].t, *o = c->in[5].t, *lse = c->in[6].t, *rng = c->in[7].t;
  TY_TRY(attention_operands(c, 1));
  bool fits = g->ndim == 4 && g->dtype == q->dtype && o->dtype == q->dtype && TY_SAME_SHAPE(g, o) &&
              !memcmp(g->shape, q->shape, sizeof(int64_t) * 3) &&
              g->shape[3] == c->in[3].t->shape[3] && lse->ndim == 3 && !memcmp(lse->shape, q->shape, sizeof(int64_t) * 3) &&
              lse->dtype == ty_compute_dtype(q->dtype) && ty_is_contiguous(lse) && rng->dtype == TY_I64 &&
              rng->ndim == 1 && rng->shape[0] == 2 && ty_is_contiguous(rng);
  if (!fits) return ty_fail(c, "a gradient of shape %s doesn't belong to a query of shape %s", ty_shape_of(g), ty_shape_of(q));
  for (int i = 0; i < 3; i++) {
    ty_meta_of(c->in[1 + i].t, &c->meta[i]);
    if (!ty_is_contiguous(c->in[1 + i].t)) heads_within_rows(&c->meta[i]);
  }
  if (c->op->id == TY_OP_attention_backward_with_mask) ty_set_shape(&c->meta[3], q->dtype, 4, c->in[4].t->shape);
  return TY_OK;
}

/* ---- recurrent layers ---- */

ty_recurrence ty_recurrence_of(const ty_call *c) {
  static const int gates[] = {1, 1, 3, 4}, kept[] = {0, 0, 4, 5};
  const bool back = c->op->id == TY_OP_recurrent_backward;
  const ty_tensor *h0 = c->in[back ? 2 : 3].t, *x = c->in[back ? 4 : 0].t;
  const int kind = (int)c->at[TY_AT_recurrent_kind].i;
  return (ty_recurrence){.kind = kind, .gates = gates[kind], .kept = kept[kind], .reverse = c->at[TY_AT_recurrent_reverse].i,
    .steps = x->shape[0] - (back && kind == TY_LSTM), .n = h0->shape[0], .h = h0->shape[1]};
}

static ty_status need_shape(ty_call *c, int slot, int ndim, const int64_t *shape) {
  const ty_tensor *t = c->in[slot].t;
  if (!t) return ty_fail(c, "%s is missing", ty_operand_param(c->op, slot)->name);
  TY_TRY(ty_need_float(c, slot));
  TY_TRY(ty_need_same_dtype(c, slot, 0));
  if (t->ndim != ndim || memcmp(t->shape, shape, sizeof(int64_t) * (size_t)ndim))
    return ty_fail(c, "%s has shape %s; it must be %s", ty_operand_param(c->op, slot)->name, ty_shape_of(t), ty_shape_text(shape, ndim));
  return TY_OK;
}

ty_status ty_infer_recurrent(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const bool lstm = c->at[TY_AT_recurrent_kind].i == TY_LSTM;
  TY_TRY(ty_need_float(c, 0));
  TY_TRY(ty_need_dims(c, 0, 3));
  TY_TRY(ty_need_dims(c, 3, 2));
  const ty_recurrence r = ty_recurrence_of(c);
  const int64_t whole[3] = {r.steps, r.n, r.gates * r.h}, weight[2] = {whole[2], r.h};
  if (r.steps == 0) return ty_fail(c, "there must be at least one step, got shape %s", ty_shape_of(x));
  TY_TRY(need_shape(c, 0, 3, whole));
  TY_TRY(need_shape(c, 1, 2, weight));
  if (c->in[2].t) TY_TRY(need_shape(c, 2, 1, weight));
  TY_TRY(need_shape(c, 3, 2, (int64_t[2]){r.n, r.h}));
  if (lstm) TY_TRY(need_shape(c, 4, 2, (int64_t[2]){r.n, r.h}));
  else if (c->in[4].t) return ty_fail(c, "c0 is only for an LSTM");
  const bool keep = c->ctx->grad_enabled && ty_will_record(c);
  ty_set_shape(&c->meta[0], x->dtype, 3, (int64_t[3]){r.steps + lstm, r.n, r.h});
  ty_set_shape(&c->meta[1], x->dtype, 3, (int64_t[3]){keep ? r.steps : 0, r.n, r.kept * r.h});
  return TY_OK;
}

ty_status ty_infer_recurrent_backward(ty_call *c) {
  const bool lstm = c->at[TY_AT_recurrent_backward_kind].i == TY_LSTM, gru = c->at[TY_AT_recurrent_backward_kind].i == TY_GRU;
  TY_TRY(ty_need_dims(c, 2, 2));
  TY_TRY(ty_need_dims(c, 4, 3));
  const ty_recurrence r = ty_recurrence_of(c);
  const int64_t out[3] = {r.steps + lstm, r.n, r.h}, state[2] = {r.n, r.h}, saved[3] = {r.steps, r.n, r.kept * r.h},
    weight[2] = {r.gates * r.h, r.h};
  TY_TRY(need_shape(c, 0, 3, out));
  TY_TRY(need_shape(c, 1, 2, weight));
  TY_TRY(need_shape(c, 2, 2, state));
  if (lstm) TY_TRY(need_shape(c, 3, 2, state));
  TY_TRY(need_shape(c, 4, 3, out));
  TY_TRY(need_shape(c, 5, 3, saved));
  const ty_dtype d = c->in[0].t->dtype;
  ty_set_shape(&c->meta[0], d, 3, (int64_t[3]){r.steps, r.n, r.gates * r.h});
  ty_set_shape(&c->meta[1], d, 3, (int64_t[3]){gru ? r.steps : 0, r.n, r.gates * r.h});
  ty_set_shape(&c->meta[2], d, 2, state);
  ty_set_shape(&c->meta[3], d, 2, (int64_t[2]){lstm ? r.n : 0, r.h});
  return TY_OK;
}

/* ---- normalisation ---- */

/* A result with x's shape and dtype, and channels-last where x is. */
static void images_like(const ty_tensor *x, ty_meta *m) {
  ty_meta_of(x, m);
  if (ty_is_channels_last(x)) ty_keep_layout(m, x);
}

ty_status ty_infer_batch_norm(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(ty_need_float(c, 0));
  if (x->ndim < 2) return ty_fail(c, "argument 1 must have at least 2 dims (batch, channels, ...), got shape %s", ty_shape_of(x));
  int64_t n = x->shape[1];
  for (int i = 1; i < 5; i++) {
    const ty_tensor *t = c->in[i].t;
    if (t && i < 3 && c->at[TY_AT_batch_norm_stats_training].i && ty_overlaps_itself(t))
      return ty_fail(c, "%s can't be changed in place, as its elements share memory: clone it", ty_operand_param(c->op, i)->name);
    if (t && (t->ndim != 1 || t->shape[0] != n))
      return ty_fail(c, "%s has shape %s; it must have %lld elements to match argument 1 of shape %s",
        ty_operand_param(c->op, i)->name, ty_shape_of(t), (long long)n, ty_shape_of(x));
    TY_TRY(ty_need_float(c, i));
  }
  const ty_tensor *rm = c->in[1].t, *rv = c->in[2].t, *tracked = c->in[5].t;
  if (rm && rv && rm->dtype != rv->dtype)
    return ty_fail(c, "mean has dtype %s, var %s; they must agree", ty_dtype_names[rm->dtype], ty_dtype_names[rv->dtype]);
  if (tracked && (tracked->dtype != TY_I64 || ty_numel(tracked) != 1))
    return ty_fail(c, "num_batches_tracked must be an int64 tensor of one element, got %s of shape %s",
      ty_dtype_names[tracked->dtype], ty_shape_of(tracked));
  bool training = c->at[TY_AT_batch_norm_stats_training].i;
  if (!training && (!c->in[1].t || !c->in[2].t)) return ty_fail(c, "mean and var are needed where training is false");
  if (training && n && ty_numel(x) == n) return ty_fail(c, "training needs more than one value a channel, got shape %s", ty_shape_of(x));
  images_like(x, &c->meta[0]);
  ty_dtype stat = ty_compute_dtype(x->dtype);
  ty_set_shape(&c->meta[1], stat, 1, &n);
  ty_set_shape(&c->meta[2], stat, 1, &n);
  return TY_OK;
}

/* batch_norm_stats' first result, made from its others. */
ty_status ty_infer_batch_norm_apply(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  for (int i = 1; i < 5; i++)
    if (c->in[i].t && (x->ndim < 2 || c->in[i].t->ndim != 1 || c->in[i].t->shape[0] != x->shape[1]))
      return ty_fail(c, "%s has shape %s; it must have a value for each channel (dim 2) of argument 1, of shape %s",
        ty_operand_param(c->op, i)->name, ty_shape_of(c->in[i].t), ty_shape_of(x));
  images_like(x, &c->meta[0]);
  return TY_OK;
}

/* layer_norm, rms_norm */
ty_status ty_infer_layer_norm(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const ty_attr *s = &c->at[TY_AT_layer_norm_stats_size];
  TY_TRY(ty_need_float(c, 0));
  bool fits = s->n >= 1 && s->n <= x->ndim;
  for (int i = 0; fits && i < s->n; i++) fits = x->shape[x->ndim - s->n + i] == s->v[i];
  if (!fits) return ty_fail(c, "argument 1 has shape %s; its last dims must be %s", ty_shape_of(x), ty_shape_text(s->v, s->n));
  for (int i = 1; i < c->op->nin; i++) {
    const ty_tensor *t = c->in[i].t;
    if (t && (t->ndim != s->n || memcmp(t->shape, s->v, sizeof(int64_t) * s->n)))
      return ty_fail(c, "%s has shape %s; it must be %s", ty_operand_param(c->op, i)->name, ty_shape_of(t), ty_shape_text(s->v, s->n));
    TY_TRY(ty_need_float(c, i));
    if (t && ty_compute_dtype(t->dtype) != ty_compute_dtype(x->dtype))
      return ty_fail(c, "%s has dtype %s, which doesn't fit an input of %s",
        ty_operand_param(c->op, i)->name, ty_dtype_names[t->dtype], ty_dtype_names[x->dtype]);
  }
  ty_meta_of(x, &c->meta[0]);
  ty_dtype stat = ty_compute_dtype(x->dtype);
  ty_set_shape(&c->meta[1], stat, x->ndim - s->n, x->shape);
  if (c->op->nout < 3) return TY_OK;       /* rms_norm has one statistic */
  ty_set_shape(&c->meta[2], stat, x->ndim - s->n, x->shape);
  return TY_OK;
}

/* A float32 weight's gradient stays float32 with 16-bit data: sums over the data would overflow in 16 bits. */
static ty_dtype weight_gradient(const ty_tensor *x, const ty_tensor *w) {
  return w && w->dtype == TY_F32 && ty_is_16bit(x->dtype) ? TY_F32 : x->dtype;
}

static ty_status misfits(ty_call *c, const ty_tensor *g, const ty_tensor *x, const ty_tensor *statistics) {
  return ty_fail(c, "the gradient, the input and the statistics don't belong together: shapes %s, %s and %s", ty_shape_of(g),
    ty_shape_of(x), ty_shape_of(statistics));
}

/* Whether t may be a statistic that a norm of x saved. */
static bool is_statistic_of(const ty_tensor *t, const ty_tensor *x) {
  return t->dtype == ty_compute_dtype(x->dtype) && ty_is_contiguous(t);
}

/* Whether it has a value for each row of x, and w, if given, one for each of a row's elements. */
static bool fits_rows(const ty_tensor *t, const ty_tensor *x, const ty_tensor *w) {
  return is_statistic_of(t, x) && t->ndim < x->ndim && !memcmp(t->shape, x->shape, sizeof(int64_t) * t->ndim) &&
    (!w || (ty_compute_dtype(w->dtype) == ty_compute_dtype(x->dtype) && w->ndim == x->ndim - t->ndim &&
      !memcmp(w->shape, x->shape + t->ndim, sizeof(int64_t) * w->ndim)));
}

/* Gradients of x, weight and bias, (C) each. */
ty_status ty_infer_batch_norm_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t, *w = c->in[2].t, *mean = c->in[3].t, *rstd = c->in[4].t;
  for (int i = 0; i < 5; i++) TY_TRY(ty_need_float(c, i));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  if (!TY_SAME_SHAPE(g, x) || !is_statistic_of(mean, x) || !is_statistic_of(rstd, x) || !TY_SAME_SHAPE(mean, rstd) || x->ndim < 2 ||
      mean->ndim != 1 || mean->shape[0] != x->shape[1] || (w && !TY_SAME_SHAPE(w, mean)))
    return misfits(c, g, x, mean);
  images_like(x, &c->meta[0]);
  for (int k = 1; k < 3; k++) ty_set_shape(&c->meta[k], weight_gradient(x, w), 1, &x->shape[1]);
  return TY_OK;
}

/* Gradients of x, weight and bias, which have the shape of a row. */
ty_status ty_infer_layer_norm_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t, *w = c->in[2].t, *mean = c->in[3].t, *rstd = c->in[4].t;
  for (int i = 0; i < 5; i++) TY_TRY(ty_need_float(c, i));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  if (!TY_SAME_SHAPE(g, x) || !fits_rows(mean, x, w) || !is_statistic_of(rstd, x) || !TY_SAME_SHAPE(mean, rstd))
    return misfits(c, g, x, mean);
  ty_meta_of(x, &c->meta[0]);
  for (int k = 1; k < 3; k++) ty_set_shape(&c->meta[k], weight_gradient(x, w), x->ndim - mean->ndim, x->shape + mean->ndim);
  return TY_OK;
}

/* x (N,C,...), weight and bias (C); statistics (N,groups) */
static ty_status group_norm_weight(ty_call *c, int i, const char *name) {
  const ty_tensor *x = c->in[c->op->id == TY_OP_group_norm_backward].t, *t = c->in[i].t;
  if (t && (t->ndim != 1 || t->shape[0] != x->shape[1] ||
      ty_compute_dtype(t->dtype) != ty_compute_dtype(x->dtype)))
    return ty_fail(c, "%s, of shape %s and dtype %s, must have a value for each channel (dim 2) of argument 1, of shape %s and dtype %s",
      name, ty_shape_of(t), ty_dtype_names[t->dtype], ty_shape_of(x), ty_dtype_names[x->dtype]);
  return TY_OK;
}

ty_status ty_infer_group_norm(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const int64_t groups = c->at[TY_AT_group_norm_stats_groups].i;
  TY_TRY(ty_need_float(c, 0));
  if (x->ndim < 2 || groups < 1 || x->shape[1] % groups)
    return ty_fail(c, "the number of channels of shape %s must be a multiple of %lld", ty_shape_of(x), (long long)groups);
  TY_TRY(group_norm_weight(c, 1, "weight"));
  TY_TRY(group_norm_weight(c, 2, "bias"));
  images_like(x, &c->meta[0]);
  for (int k = 1; k < 3; k++) ty_set_shape(&c->meta[k], ty_compute_dtype(x->dtype), 2, (int64_t[2]){x->shape[0], groups});
  return TY_OK;
}

ty_status ty_infer_group_norm_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t, *w = c->in[2].t, *mean = c->in[3].t, *rstd = c->in[4].t;
  for (int i = 0; i < 2; i++) TY_TRY(ty_need_float(c, i));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  TY_TRY(group_norm_weight(c, 2, "weight"));
  if (!TY_SAME_SHAPE(g, x) || x->ndim < 2 || !is_statistic_of(mean, x) || !is_statistic_of(rstd, x) || !TY_SAME_SHAPE(mean, rstd) ||
      mean->ndim != 2 || mean->shape[0] != x->shape[0] || mean->shape[1] < 1 || x->shape[1] % mean->shape[1])
    return misfits(c, g, x, mean);
  images_like(x, &c->meta[0]);
  for (int k = 1; k < 3; k++) ty_set_shape(&c->meta[k], weight_gradient(x, w), 1, &x->shape[1]);
  return TY_OK;
}

ty_status ty_infer_rms_norm_backward(ty_call *c) {
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t, *w = c->in[2].t, *rstd = c->in[3].t;
  for (int i = 0; i < 4; i++) TY_TRY(ty_need_float(c, i));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  if (!TY_SAME_SHAPE(g, x) || !fits_rows(rstd, x, w)) return misfits(c, g, x, rstd);
  ty_meta_of(x, &c->meta[0]);
  ty_set_shape(&c->meta[1], weight_gradient(x, w), x->ndim - rstd->ndim, x->shape + rstd->ndim);
  return TY_OK;
}

/* ---- losses ---- */

/* Whether t has one element for each place of the scores x (N, C, ...): x's shape without the class dim. */
static bool of_places(const ty_tensor *t, const ty_tensor *x) {
  return t->ndim == x->ndim - 1 && t->shape[0] == x->shape[0] &&
    !memcmp(t->shape + 1, x->shape + 2, sizeof(int64_t) * (size_t)(t->ndim - 1));
}

ty_status ty_infer_cross_entropy(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *y = c->in[1].t, *w = c->in[2].t;
  const double eps = ty_loss_options_of(c).label_smoothing;
  TY_TRY(ty_need_float(c, 0));
  if (x->ndim < 2) return ty_fail(c, "argument 1 must have dims (N, C, ...), got shape %s", ty_shape_of(x));
  TY_TRY(ty_need_dtype(c, 1, TY_I64));
  if (!of_places(y, x))
    return ty_fail(c, "argument 2 has shape %s; it must be that of argument 1, %s, without dim 2", ty_shape_of(y), ty_shape_of(x));
  if (w && (w->ndim != 1 || w->shape[0] != x->shape[1] || w->dtype != x->dtype))
    return ty_fail(c, "weight must hold %lld elements of dtype %s, got shape %s of %s", (long long)x->shape[1],
      ty_dtype_names[x->dtype], ty_shape_of(w), ty_dtype_names[w->dtype]);
  if (!(eps >= 0 && eps <= 1)) return ty_fail(c, "label_smoothing must be in 0..1, got %g", eps);
  ty_dtype d = ty_compute_dtype(x->dtype);
  /* the loss; each place's log-sum-exp, in float64 since backward subtracts it from scores that may be large; the places' total weight */
  const bool mean = c->op->id == TY_OP_cross_entropy_mean;
  ty_set_shape(&c->meta[0], d, mean ? 0 : y->ndim, y->shape);
  ty_set_shape(&c->meta[1], TY_F64, y->ndim, y->shape);
  if (mean) ty_set_shape(&c->meta[2], d, 0, x->shape);
  return TY_OK;
}

ty_status ty_infer_cross_entropy_backward(ty_call *c) {
  const bool mean = c->op->id == TY_OP_cross_entropy_mean_backward;
  const ty_tensor *g = c->in[0].t, *x = c->in[1].t, *y = c->in[2].t, *l = c->in[3].t, *w = c->in[4 + mean].t,
    *total = mean ? c->in[4].t : NULL;
  TY_TRY(ty_need_float(c, 0));
  TY_TRY(ty_need_float(c, 1));
  TY_TRY(ty_need_dtype(c, 2, TY_I64));
  const bool of_mean = mean && g->ndim == 0 && total->ndim == 0 && total->dtype == ty_compute_dtype(x->dtype);
  bool fits = x->ndim >= 2 && (mean ? of_mean : of_places(g, x)) &&
              of_places(y, x) && of_places(l, x) && l->dtype == TY_F64 && ty_is_contiguous(l) &&
              (!w || (w->ndim == 1 && w->shape[0] == x->shape[1] && w->dtype == x->dtype));
  if (!fits)
    return ty_fail(c, "the gradient, the input and the labels don't belong together: shapes %s, %s and %s",
      ty_shape_of(g), ty_shape_of(x), ty_shape_of(y));
  ty_meta_of(x, &c->meta[0]);
  if (x->ndim == 4 && !ty_is_contiguous(x) && ty_is_channels_last(x)) ty_lay_channels_last(&c->meta[0]);
  return TY_OK;
}

/* Operands: log probabilities (T, N, S) of S states of N sequences in T steps, then skips and lengths of the sequences. Backward: grad
 * comes before them, and ctc_paths' second result after them. */
ty_status ty_infer_ctc(ty_call *c) {
  const bool back = c->op->id == TY_OP_ctc_backward;
  const ty_tensor *x = c->in[back].t, *skips = c->in[back + 1].t, *lengths = c->in[back + 2].t;
  const ty_tensor *const sides[2] = {skips, back ? c->in[0].t : skips};
  bool fits = x->ndim == 3 && x->shape[0] && (x->dtype == TY_F32 || x->dtype == TY_F64) && skips->dtype == TY_BOOL;
  fits = fits && lengths->dtype == TY_I64 && lengths->ndim == 1 && lengths->shape[0] == x->shape[1];
  for (int i = 0; i < 2 && fits; i++) fits = sides[i]->ndim == 2 && !memcmp(sides[i]->shape, x->shape + 1, 2 * sizeof *x->shape);
  if (fits && back) fits = c->in[0].t->dtype == x->dtype && c->in[4].t->dtype == x->dtype && TY_SAME_SHAPE(c->in[4].t, x);
  if (!fits)
    return ty_fail(c,
      "logs must be floating (T, N, S) of at least one step, skips bool (N, S), lengths int64 (N)%s; got %s %s, %s %s, %s %s",
      back ? ", grad (N, S) and reached as logs" : "", ty_dtype_names[x->dtype], ty_shape_of(x), ty_dtype_names[skips->dtype],
      ty_shape_of(skips), ty_dtype_names[lengths->dtype], ty_shape_of(lengths));
  ty_meta_of(x, &c->meta[back ? 0 : 1]);
  if (!back) ty_set_shape(&c->meta[0], x->dtype, 2, x->shape + 1);
  return TY_OK;
}

/* ---- distances ---- */

/* The rows of a and b have one width and one batch; backward: grad and norms, for each pair of rows, besides. */
ty_status ty_infer_distances(ty_call *c) {
  const bool back = c->op->id == TY_OP_distances_backward;
  const ty_tensor *a = c->in[back].t, *b = c->in[back + 1].t;
  const int n = a->ndim;
  bool fits = n >= 2 && b->ndim == n && (a->dtype == TY_F32 || a->dtype == TY_F64) && b->dtype == a->dtype;
  fits = fits && a->shape[n - 1] == b->shape[n - 1] && !memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)(n - 2));
  for (int i = 0; back && fits && i < 4; i += 3) {
    const ty_tensor *g = c->in[i].t;
    fits = g->dtype == a->dtype && g->ndim == n && g->shape[n - 1] == b->shape[n - 2] &&
      !memcmp(g->shape, a->shape, sizeof *a->shape * (size_t)(n - 1));
  }
  if (!fits) return ty_fail(c, "arguments must be float32 or float64, with rows of equal width and equal batch dims");
  ty_meta_of(a, &c->meta[0]);
  if (!back) {
    int64_t shape[TY_MAXDIM];
    memcpy(shape, a->shape, sizeof *shape * (size_t)n);
    shape[n - 1] = b->shape[n - 2];
    ty_set_shape(&c->meta[0], a->dtype, n, shape);
  }
  return TY_OK;
}
