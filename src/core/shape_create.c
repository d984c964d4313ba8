/* Infer rules of creation and of random numbers.
 *
 * Idea: there are only sizes and numbers to check; the dtype is the one that is asked for, else a default. Invariant: as in
 * shape.c. */
#include <math.h>
#include <string.h>
#include "augment.h"
#include "draws.h"
#include "shape.h"

/* ---- creation ---- */

static ty_dtype created_dtype(const ty_attr *a, ty_dtype otherwise) { return a->set ? a->i : otherwise; }

static ty_status check_sizes(ty_call *c, const int64_t *v, int n) {
  for (int i = 0; i < n; i++)
    if (v[i] < 0) return ty_fail(c, "size %lld is negative", (long long)v[i]);
  return TY_OK;
}

ty_status ty_infer_create(ty_call *c) {
  const ty_attr *s = &c->at[TY_AT_zeros_size];
  bool full = c->op->id == TY_OP_full;
  ty_dtype d = full && c->at[TY_AT_full_value].n == TY_BOOLEAN ? TY_BOOL : TY_F32;
  TY_TRY(check_sizes(c, s->v, s->n));
  ty_set_shape(&c->meta[0], created_dtype(&c->at[full ? TY_AT_full_dtype : TY_AT_zeros_dtype], d), s->n, s->v);
  if (c->op->id == TY_OP_empty && c->at[TY_AT_empty_memory_format].i) {
    if (s->n != 4) return ty_fail(c, "channels_last needs 4 sizes, got shape %s", ty_shape_text(s->v, s->n));
    ty_lay_channels_last(&c->meta[0]);
  }
  const double value = !full ? 0 : c->at[TY_AT_full_value].n == TY_FLOAT ? c->at[TY_AT_full_value].f : (double)c->at[TY_AT_full_value].i;
  if (!ty_fits(value, c->meta[0].dtype))
    return ty_fail(c, "argument 2 (value) %.14g is out of range for %s", value, ty_dtype_names[c->meta[0].dtype]);
  if (c->op->cls == TY_C_RANDOM && !ty_is_float(c->meta[0].dtype))
    return ty_fail(c, "dtype must be floating, got %s", ty_dtype_names[c->meta[0].dtype]);
  return TY_OK;
}

ty_status ty_infer_range(ty_call *c) {
  double first = c->at[TY_AT_range_first].f, last = c->at[TY_AT_range_last].f, step = c->at[TY_AT_range_step].f;
  if (!(step != 0) || !isfinite(first) || !isfinite(last) || !isfinite(step))
    return ty_fail(c, "first %g, last %g and step %g must be finite, and step not 0", first, last, step);
  double n = floor((last - first) / step * (1 + 1e-12)) + 1;
  if (n > 1e15) return ty_fail(c, "%g elements are too many", n);
  int64_t size = n < 0 ? 0 : (int64_t)n;
  ty_set_shape(&c->meta[0], created_dtype(&c->at[TY_AT_range_dtype], TY_F32), 1, &size);
  return TY_OK;
}

ty_status ty_infer_linspace(ty_call *c) {
  TY_TRY(check_sizes(c, &c->at[TY_AT_linspace_steps].i, 1));
  const ty_dtype d = created_dtype(&c->at[TY_AT_linspace_dtype], TY_F32);
  ty_set_shape(&c->meta[0], d, 1, &c->at[TY_AT_linspace_steps].i);
  ty_attr *first = &c->at[TY_AT_linspace_first], *last = &c->at[TY_AT_linspace_last];
  if (!ty_is_float(d)) { first->f = trunc(first->f); last->f = trunc(last->f); }            /* whole dtypes: ends are cut first */
  return TY_OK;
}

ty_status ty_infer_eye(ty_call *c) {
  int64_t s[2] = {c->at[TY_AT_eye_n].i, c->at[TY_AT_eye_m].set ? c->at[TY_AT_eye_m].i : c->at[TY_AT_eye_n].i};
  TY_TRY(check_sizes(c, s, 2));
  ty_set_shape(&c->meta[0], created_dtype(&c->at[TY_AT_eye_dtype], TY_F32), 2, s);
  return TY_OK;
}

ty_status ty_infer_random(ty_call *c) {
  const ty_attr *a = c->at;
  TY_TRY(ty_infer_same(c));
  if (c->op->id == TY_OP_uniform) {
    const double low = a[TY_AT_uniform_low].f, high = a[TY_AT_uniform_high].f;
    if (!(low <= high)) return ty_fail(c, "low %g is above high %g", low, high);
  } else if (c->op->id == TY_OP_normal) {
    const double std = a[TY_AT_normal_std].f;
    if (!(std >= 0)) return ty_fail(c, "std must be a number from 0, got %g", std);
  } else if (c->op->id == TY_OP_exponential) {
    const double rate = a[TY_AT_exponential_lambd].f;
    if (!(rate > 0)) return ty_fail(c, "lambd must be a number above 0, got %g", rate);
  }
  return TY_OK;
}

ty_status ty_infer_randint(ty_call *c) {
  const ty_attr *s = &c->at[TY_AT_randint_size];
  const int64_t low = c->at[TY_AT_randint_low].i, high = c->at[TY_AT_randint_high].i;
  TY_TRY(check_sizes(c, s->v, s->n));
  if (low > high) return ty_fail(c, "low %lld is above high %lld", (long long)low, (long long)high);
  ty_set_shape(&c->meta[0], created_dtype(&c->at[TY_AT_randint_dtype], TY_I64), s->n, s->v);
  const int d = c->meta[0].dtype;
  const int64_t most = ty_whole_last(d), least = ty_whole_first(d);
  if (!ty_is_float(d) && (low < least || high > most))
    return ty_fail(c, "%s holds %lld to %lld, but %lld to %lld are asked for", ty_dtype_names[d], (long long)least,
      (long long)most, (long long)low, (long long)high);
  return TY_OK;
}

/* A generator's state: seed and offset. */
ty_status ty_infer_rng_state(ty_call *c) {
  ty_set_shape(&c->meta[0], TY_I64, 1, (int64_t[]){2});
  return TY_OK;
}

ty_status ty_infer_set_rng_state(ty_call *c) {
  const ty_tensor *t = c->in[0].t;
  return t->dtype == TY_I64 && t->ndim == 1 && t->shape[0] == 2 ? TY_OK
    : ty_fail(c, "argument 1 must be a generator's state, two int64, got %s of shape %s", ty_dtype_names[t->dtype], ty_shape_of(t));
}

ty_status ty_infer_randperm(ty_call *c) {
  TY_TRY(check_sizes(c, &c->at[TY_AT_randperm_n].i, 1));
  ty_set_shape(&c->meta[0], created_dtype(&c->at[TY_AT_randperm_dtype], TY_I64), 1, &c->at[TY_AT_randperm_n].i);
  const int d = c->meta[0].dtype;
  if (!ty_is_float(d) && c->at[TY_AT_randperm_n].i > ty_whole_last(d))
    return ty_fail(c, "%s holds numbers up to %lld, but %lld are asked for", ty_dtype_names[d], (long long)ty_whole_last(d),
      (long long)c->at[TY_AT_randperm_n].i);
  return TY_OK;
}

ty_status ty_infer_multinomial(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(ty_need_float(c, 0));
  int64_t n = c->at[TY_AT_multinomial_n].i, shape[2] = {x->ndim == 2 ? x->shape[0] : n, n};
  if (x->ndim != 1 && x->ndim != 2) return ty_fail(c, "argument 1 must have 1 or 2 dims, got shape %s", ty_shape_of(x));
  int64_t most = x->shape[x->ndim - 1];
  if (n < 1) return ty_fail(c, "n must be at least 1, got %lld", (long long)n);
  if (most < 1 || (n > most && !c->at[TY_AT_multinomial_replacement].i))
    return ty_fail(c, "%lld indices can't be drawn from %lld without replacement", (long long)n, (long long)most);
  ty_set_shape(&c->meta[0], TY_I64, x->ndim, shape);
  return TY_OK;
}

void ty_augment_of(const ty_call *c, ty_augment *out) {
  const int64_t *s = c->in[0].t->shape;
  const int64_t *size = c->at[TY_AT_augment_size].v;
  *out = (ty_augment){s[0], s[1], s[2], s[3], size[0], size[1], c->in[1].t->shape[0], (int)c->at[TY_AT_augment_padding].i,
    (int)c->at[TY_AT_augment_cutout].i, c->at[TY_AT_augment_random].i != 0, (float)c->at[TY_AT_augment_flip].f};
}

ty_status ty_infer_augment(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *index = c->in[1].t;
  const int64_t *size = c->at[TY_AT_augment_size].v, padding = c->at[TY_AT_augment_padding].i, cutout = c->at[TY_AT_augment_cutout].i;
  if (x->dtype != TY_U8 || x->ndim != 4)
    return ty_fail(c, "pictures must be uint8 of shape NxCxHxW, got %s of %s", ty_dtype_names[x->dtype], ty_shape_of(x));
  if (index->dtype != TY_I64 || index->ndim != 1)
    return ty_fail(c, "positions must be int64 in 1 dim, got %s of %s", ty_dtype_names[index->dtype], ty_shape_of(index));
  for (int k = 2; k < 4; k++) {
    const ty_tensor *t = c->in[k].t;
    if (t->dtype != TY_F32 || t->ndim != 1 || t->shape[0] != x->shape[1])
      return ty_fail(c, "mean and std must be float32 with one element for each of %lld channels, got %s of %s",
        (long long)x->shape[1], ty_dtype_names[t->dtype], ty_shape_of(t));
  }
  if (padding < 0 || padding > 1 << 15 || cutout < 0 || cutout > 1 << 15) return ty_fail(c, "padding and cutout must be from 0 to 32768");
  if (size[0] < 1 || size[1] < 1 || size[0] > x->shape[2] + 2 * padding || size[1] > x->shape[3] + 2 * padding)
    return ty_fail(c, "a crop of %lldx%lld doesn't fit pictures of %lldx%lld with a padding of %lld",
      (long long)size[0], (long long)size[1], (long long)x->shape[2], (long long)x->shape[3], (long long)padding);
  const double flip = c->at[TY_AT_augment_flip].f;
  if (!(flip >= 0 && flip <= 1)) return ty_fail(c, "flip must be a probability from 0 to 1, got %g", flip);
  const int64_t shape[4] = {index->shape[0], x->shape[1], size[0], size[1]};
  ty_set_shape(&c->meta[0], created_dtype(&c->at[TY_AT_augment_dtype], TY_F32), 4, shape);
  return ty_is_float(c->meta[0].dtype) ? TY_OK : ty_fail(c, "dtype must be floating, got %s", ty_dtype_names[c->meta[0].dtype]);
}

ty_status ty_infer_drawn(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *y = c->in[1].t;
  if (x->dtype != TY_F64 || !y == (c->at[TY_AT_drawn_kind].i == TY_DRAW_BINOMIAL) ||
      (y && (y->dtype != TY_F64 || y->ndim != x->ndim || memcmp(y->shape, x->shape, sizeof *x->shape * x->ndim))))
    return ty_fail(c, "parameters must be float64, two of one shape or one");
  return ty_infer_same(c);
}

ty_status ty_infer_dropout(ty_call *c) {
  TY_TRY(ty_need_float(c, 0));
  const double p = c->at[TY_AT_dropout_mask_p].f;
  if (!(p >= 0 && p <= 1)) return ty_fail(c, "p must be in 0..1, got %g", p);
  ty_meta_of(c->in[0].t, &c->meta[0]);
  c->meta[1] = c->meta[0];
  c->meta[1].dtype = TY_BOOL;
  return TY_OK;
}
