/* Batch, layer and root-mean-square normalisation, forward and backward in two passes over the data each.
 *
 * Batch norm takes its data as a matrix of rows: where channels are dense in memory (channels-last), a row is one pixel's
 * channels; else a row is one channel of one image. Sums run in float64 across rows. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

typedef struct {
  int k, size;
  int64_t c, n, inner;       /* channels; images; elements of a channel of an image */
  bool last;                 /* channels-last */
  const ty_loops *l;
} rows;

static void *element(const ty_tensor *t, int64_t i) { return (char *)ty_data(t) + i * t->stride[0] * ty_itemsize(t); }
static double opt(const ty_tensor *t, int64_t i, double otherwise) { return t ? ty_get(element(t, i), (ty_dtype)t->dtype) : otherwise; }

static rows rows_of(const ty_tensor *x) {
  rows r = {.k = ty_k(ty_compute_dtype((ty_dtype)x->dtype)), .c = x->shape[1], .n = x->shape[0], .last = ty_is_channels_last(x), .l = ty_cpu_loops()};
  r.size = ty_ksize[r.k];
  r.inner = r.n && r.c ? ty_numel(x) / (r.n * r.c) : 0;
  return r;
}

/* s1[c], s2[c]: sums over images and pixels of (x - shift) and its square or, with g, of g and g * (x - shift). */
static ty_status sums(ty_call *c, const rows *r, const char *g, const char *x, const void *shift, double *s1, double *s2) {
  memset(s1, 0, sizeof(double) * (size_t)r->c);
  memset(s2, 0, sizeof(double) * (size_t)r->c);
  int threads = ty_threads_for(r->n * r->c * r->inner);
  if (!r->last) {
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t ch = 0; ch < r->c; ch++)
      for (int64_t n = 0; n < r->n; n++) {
        int64_t off = (n * r->c + ch) * r->inner * r->size;
        if (g) r->l->dots[r->k](g + off, x + off, r->inner, at(shift, r->k, ch), &s1[ch], &s2[ch]);
        else r->l->moments[r->k](x + off, r->inner, at(shift, r->k, ch), &s1[ch], &s2[ch]);
      }
    return TY_OK;
  }
  int64_t total = r->n * r->inner, chunk = 64, parts = TY_MIN(64, (total + chunk - 1) / chunk);   /* a fixed number: the bits don't depend on threads */
  double *acc = ty_scratch(sizeof(double) * (size_t)(2 * r->c * parts));
  char *tile = ty_scratch((size_t)(2 * r->c * r->size * threads));
  if (!acc || !tile) { ty_scratch_free(acc); ty_scratch_free(tile); return ty_fail(c, "out of memory"), TY_OOM; }
  memset(acc, 0, sizeof(double) * (size_t)(2 * r->c * parts));
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t p = 0; p < parts; p++) {
    char *t1 = tile + 2 * r->c * r->size * omp_get_thread_num(), *t2 = t1 + r->c * r->size;
    double *a1 = acc + 2 * r->c * p, *a2 = a1 + r->c;
    for (int64_t i = total * p / parts, end = total * (p + 1) / parts; i < end;) {
      int64_t stop = TY_MIN(end, i + chunk);
      memset(t1, 0, (size_t)(2 * r->c * r->size));
      int64_t off = i * r->c * r->size;
      if (g) r->l->dots_columns[r->k](g + off, x + off, stop - i, r->c, shift, t1, t2);
      else r->l->moments_columns[r->k](x + off, stop - i, r->c, shift, t1, t2);
      i = stop;
      for (int64_t ch = 0; ch < r->c; ch++) { a1[ch] += at(t1, r->k, ch); a2[ch] += at(t2, r->k, ch); }
    }
  }
  for (int64_t p = 0; p < parts; p++)
    for (int64_t ch = 0; ch < r->c; ch++) { s1[ch] += acc[2 * r->c * p + ch]; s2[ch] += acc[2 * r->c * p + r->c + ch]; }
  ty_scratch_free(acc);
  ty_scratch_free(tile);
  return TY_OK;
}

/* o = a[c] g + b[c] x + d[c]; without b: o = a[c] x + d[c] */
static void affine(const rows *r, char *o, const char *g, const char *x, const void *a, const void *b, const void *d) {
  int threads = ty_threads_for(r->n * r->c * r->inner);
  if (r->last) {
    const int64_t total = r->n * r->inner, chunk = TY_MAX(1, TY_BLOCK * 8 / r->c);
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < total; i += chunk) {
      const int64_t off = i * r->c * r->size, n = TY_MIN(chunk, total - i);
      if (b) r->l->affine2_columns[r->k](o + off, g + off, x + off, n, r->c, a, b, d);
      else r->l->affine_columns[r->k](o + off, x + off, n, r->c, a, d);
    }
    return;
  }
  const int64_t len = r->inner;
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < r->n * r->c; i++) {
    int64_t off = i * len * r->size, ch = i % r->c;
    if (b) r->l->affine2[r->k](o + off, g + off, x + off, len, at(a, r->k, ch), at(b, r->k, ch), at(d, r->k, ch));
    else r->l->affine[r->k](o + off, x + off, len, at(a, r->k, ch), at(d, r->k, ch));
  }
}

static ty_status batch_norm(ty_call *c) {
  ty_tensor *o = c->out[0], *mean = c->out[1], *rstd = c->out[2], *rm = c->in[1].t, *rv = c->in[2].t, *w = c->in[3].t, *b = c->in[4].t, *x;
  bool training = c->at[0].i;
  double momentum = c->at[1].f, eps = c->at[2].f;
  if (o) TY_TRY(ty_laid_out_as(c->ctx, c->in[0].t, o, &x));
  else if (ty_is_channels_last(c->in[0].t)) x = ty_retain(c->in[0].t);
  else TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  rows r = rows_of(x);
  int64_t n = r.c, count = r.n * r.inner;
  char *mem = ty_scratch((size_t)(n * 8 * 5 + 8));
  if (!mem) { ty_release(x); return ty_fail(c, "out of memory"), TY_OOM; }
  double *s1 = (double *)mem, *s2 = s1 + n, *shift = s2 + n, *a = shift + n, *d = a + n;
  ty_status s = TY_OK;
  if (training && count) {
    for (int64_t ch = 0; ch < n; ch++) put(shift, r.k, ch, at(ty_data(x), r.k, r.last ? ch : ch * r.inner));
    s = sums(c, &r, NULL, ty_data(x), shift, s1, s2);
  }
  for (int64_t ch = 0; ch < n && s == TY_OK; ch++) {
    double m = 0, v = 0;
    if (!training) { m = opt(rm, ch, 0); v = opt(rv, ch, 1); }
    else if (count) {
      double e = s1[ch] / (double)count;
      m = e + at(shift, r.k, ch);
      v = TY_MAX(s2[ch] / (double)count - e * e, 0);
      if (s1[ch] != s1[ch] || s2[ch] != s2[ch]) v = NAN;
      if (rm) ty_set(element(rm, ch), (ty_dtype)rm->dtype, (1 - momentum) * opt(rm, ch, 0) + momentum * m);
      if (rv) ty_set(element(rv, ch), (ty_dtype)rv->dtype, (1 - momentum) * opt(rv, ch, 0) + momentum * v * (double)count / (double)TY_MAX(count - 1, 1));
    }
    double rs = 1 / sqrt(v + eps), g = opt(w, ch, 1) * rs;
    put(ty_data(mean), r.k, ch, m);
    put(ty_data(rstd), r.k, ch, rs);
    put(a, r.k, ch, g);
    put(d, r.k, ch, opt(b, ch, 0) - m * g);
  }
  if (s == TY_OK && o) affine(&r, ty_data(o), NULL, ty_data(x), a, NULL, d);
  ty_scratch_free(mem);
  ty_release(x);
  return s;
}

static ty_status batch_norm_backward(ty_call *c) {
  ty_tensor *dx = c->out[0], *w = c->in[2].t, *mean = c->in[3].t, *rstd = c->in[4].t, *g, *x;
  bool training = c->at[0].i;
  TY_TRY(ty_laid_out_as(c->ctx, c->in[0].t, dx, &g));
  ty_status s = ty_laid_out_as(c->ctx, c->in[1].t, dx, &x);
  if (s != TY_OK) { ty_release(g); return s; }
  rows r = rows_of(dx);
  int64_t n = r.c;
  double count = (double)(r.n * r.inner);
  char *mem = ty_scratch((size_t)(n * 8 * 5 + 8));
  if (!mem) s = (ty_fail(c, "out of memory"), TY_OOM);
  double *s1 = (double *)mem, *s2 = s1 + n, *a = s2 + n, *b = a + n, *d = b + n;
  if (s == TY_OK) s = sums(c, &r, ty_data(g), ty_data(x), ty_data(mean), s1, s2);
  for (int64_t ch = 0; ch < n && s == TY_OK; ch++) {
    double m = at(ty_data(mean), r.k, ch), rs = at(ty_data(rstd), r.k, ch), gain = opt(w, ch, 1) * rs;
    put(ty_data(c->out[1]), r.k, ch, s2[ch] * rs);
    put(ty_data(c->out[2]), r.k, ch, s1[ch]);
    double slope = training && count > 0 ? -gain * rs * rs * s2[ch] / count : 0;
    put(a, r.k, ch, gain);
    put(b, r.k, ch, slope);
    put(d, r.k, ch, (training && count > 0 ? -gain * s1[ch] / count : 0) - slope * m);
  }
  if (s == TY_OK) affine(&r, ty_data(dx), ty_data(g), ty_data(x), a, b, d);
  ty_scratch_free(mem);
  ty_release(g);
  ty_release(x);
  return s;
}

/* ---- layer norm ---- */

static ty_status layer_norm(ty_call *c) {
  ty_tensor *o = c->out[0], *mean = c->out[1], *rstd = c->out[2], *x, *w = NULL, *b = NULL;
  int k = ty_k(ty_compute_dtype((ty_dtype)o->dtype)), size = ty_ksize[k];
  int64_t m = ty_numel(mean), n = m ? ty_numel(o) / m : 0;
  const ty_loops *l = ty_cpu_loops();
  double eps = c->at[1].f;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  ty_status s = TY_OK;
  if (c->in[1].t) s = ty_contiguous(c->ctx, c->in[1].t, &w);
  if (s == TY_OK && c->in[2].t) s = ty_contiguous(c->ctx, c->in[2].t, &b);
  #pragma omp parallel for num_threads(ty_threads_for(m * n)) schedule(static)
  for (int64_t i = 0; i < m; i++) {
    if (s != TY_OK || n == 0) continue;
    char *xi = (char *)ty_data(x) + i * n * size;
    double shift = at(xi, k, 0), s1 = 0, s2 = 0;
    l->moments[k](xi, n, shift, &s1, &s2);
    double e = s1 / (double)n, v = s2 / (double)n - e * e, r = 1 / sqrt((v < 0 ? 0 : v) + eps);
    put(ty_data(mean), k, i, shift + e);
    put(ty_data(rstd), k, i, r);
    l->layer_norm[k]((char *)ty_data(o) + i * n * size, xi, w ? ty_data(w) : NULL, b ? ty_data(b) : NULL, n, shift + e, r);
  }
  ty_release(x);
  ty_release(w);
  ty_release(b);
  return s;
}

#define LN_PARTS 16          /* partial sums of the weights' gradients: a fixed number, whatever the threads */

static ty_status layer_norm_backward(ty_call *c) {
  ty_tensor *dx = c->out[0], *dw = c->out[1], *db = c->out[2], *mean = c->in[3].t, *rstd = c->in[4].t, *g, *x, *w = NULL;
  int k = ty_k(ty_compute_dtype((ty_dtype)dx->dtype)), size = ty_ksize[k];
  int64_t m = ty_numel(mean), n = ty_numel(dw);
  const ty_loops *l = ty_cpu_loops();
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &g));
  ty_status s = ty_contiguous(c->ctx, c->in[1].t, &x);
  if (s != TY_OK) { ty_release(g); return s; }
  if (c->in[2].t) s = ty_contiguous(c->ctx, c->in[2].t, &w);
  int64_t parts = TY_MIN(LN_PARTS, TY_MAX(m, 1));
  char *acc = s == TY_OK ? ty_scratch((size_t)(2 * parts * n * size + 8)) : NULL;
  if (s == TY_OK && !acc) s = (ty_fail(c, "out of memory"), TY_OOM);
  if (s == TY_OK) {
    memset(acc, 0, (size_t)(2 * parts * n * size));
    #pragma omp parallel for num_threads(ty_threads_for(m * n)) schedule(static)
    for (int64_t p = 0; p < parts; p++)
      for (int64_t i = m * p / parts; i < m * (p + 1) / parts; i++) {
        int64_t off = i * n * size;
        char *a = acc + 2 * p * n * size;
        l->layer_norm_backward[k]((char *)ty_data(dx) + off, a, a + n * size, (char *)ty_data(g) + off, (char *)ty_data(x) + off, w ? ty_data(w) : NULL, n,
                                  at(ty_data(mean), k, i), at(ty_data(rstd), k, i));
      }
    for (int64_t i = 0; i < n; i++) {
      double a = 0, b = 0;
      for (int64_t p = 0; p < parts; p++) { a += at(acc, k, 2 * p * n + i); b += at(acc, k, (2 * p + 1) * n + i); }
      put(ty_data(dw), k, i, a);
      put(ty_data(db), k, i, b);
    }
  }
  ty_scratch_free(acc);
  ty_release(g);
  ty_release(x);
  ty_release(w);
  return s;
}

/* ---- root mean square ---- */

static ty_status rms_norm(ty_call *c) {
  ty_tensor *o = c->out[0], *rstd = c->out[1], *x, *w = NULL;
  int k = ty_k(ty_compute_dtype((ty_dtype)o->dtype)), size = ty_ksize[k];
  int64_t m = ty_numel(rstd), n = m ? ty_numel(o) / m : 0;
  const ty_loops *l = ty_cpu_loops();
  double eps = c->at[1].f;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  ty_status s = c->in[1].t ? ty_contiguous(c->ctx, c->in[1].t, &w) : TY_OK;
  #pragma omp parallel for num_threads(ty_threads_for(m * n)) schedule(static)
  for (int64_t i = 0; i < m; i++) {
    if (s != TY_OK || n == 0) continue;
    char *xi = (char *)ty_data(x) + i * n * size;
    double s1 = 0, s2 = 0;
    l->moments[k](xi, n, 0, &s1, &s2);
    double r = 1 / sqrt(s2 / (double)n + eps);
    put(ty_data(rstd), k, i, r);
    l->rms_norm[k]((char *)ty_data(o) + i * n * size, xi, w ? ty_data(w) : NULL, n, r);
  }
  ty_release(x);
  ty_release(w);
  return s;
}

static ty_status rms_norm_backward(ty_call *c) {
  ty_tensor *dx = c->out[0], *dw = c->out[1], *rstd = c->in[3].t, *g, *x = NULL, *w = NULL;
  int k = ty_k(ty_compute_dtype((ty_dtype)dx->dtype)), size = ty_ksize[k];
  int64_t m = ty_numel(rstd), n = ty_numel(dw), parts = TY_MIN(LN_PARTS, TY_MAX(m, 1));
  const ty_loops *l = ty_cpu_loops();
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &g));
  ty_status s = ty_contiguous(c->ctx, c->in[1].t, &x);
  if (s == TY_OK && c->in[2].t) s = ty_contiguous(c->ctx, c->in[2].t, &w);
  char *acc = s == TY_OK ? ty_scratch((size_t)(parts * n * size + 8)) : NULL;
  if (s == TY_OK && !acc) s = (ty_fail(c, "out of memory"), TY_OOM);
  if (s == TY_OK) {
    memset(acc, 0, (size_t)(parts * n * size));
    #pragma omp parallel for num_threads(ty_threads_for(m * n)) schedule(static)
    for (int64_t p = 0; p < parts; p++)
      for (int64_t i = m * p / parts; i < m * (p + 1) / parts; i++) {
        int64_t off = i * n * size;
        l->rms_norm_backward[k]((char *)ty_data(dx) + off, acc + p * n * size, (char *)ty_data(g) + off, (char *)ty_data(x) + off, w ? ty_data(w) : NULL, n, at(ty_data(rstd), k, i));
      }
    for (int64_t i = 0; i < n; i++) {
      double a = 0;
      for (int64_t p = 0; p < parts; p++) a += at(acc, k, p * n + i);
      put(ty_data(dw), k, i, a);
    }
  }
  ty_scratch_free(acc);
  ty_release(g);
  ty_release(x);
  ty_release(w);
  return s;
}

static ty_status run(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_batch_norm_stats: return batch_norm(c);
    case TY_OP_batch_norm_backward: return batch_norm_backward(c);
    case TY_OP_layer_norm_stats: return layer_norm(c);
    case TY_OP_layer_norm_backward: return layer_norm_backward(c);
    case TY_OP_rms_norm_stats: return rms_norm(c);
    default: return rms_norm_backward(c);
  }
}

ty_status ty_cpu_norm(ty_call *c) { return ty_widened(c, run); }
