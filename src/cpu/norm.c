/* Batch, group, layer and root-mean-square normalisation, forward and backward in two passes over the data each.
 *
 * Idea: batch norm takes its data as a matrix of rows: where channels are innermost in memory (channels-last), a row is one pixel's
 * channels; else a row is one channel of one image. Sums across rows are float64. 16-bit data is converted block by block.
 * Invariant: sums are cut into a fixed number of parts, so that bits don't depend on the number of threads. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "cpu.h"

typedef struct {
  ty_loop_type k;
  int size;
  int64_t c, n, inner;       /* channels; images; elements of one channel of one image */
  bool last;                 /* channels-last */
  const ty_loops *l;
  void (*load)(void *, const void *, int64_t, int64_t);       /* 16-bit data to float32, or NULL; and back */
  void (*store)(void *, int64_t, const void *, int64_t);
} rows;

#define WIDE 4096           /* 16-bit elements converted at a time */

static void *element(const ty_tensor *t, int64_t i) { return (char *)ty_data(t) + i * t->stride[0] * ty_itemsize(t); }
static double opt(const ty_tensor *t, int64_t i, double otherwise) { return t ? ty_get(element(t, i), t->dtype) : otherwise; }

static rows rows_of(const ty_tensor *x) {
  rows r = {.k = ty_loop_type_of(x->dtype), .c = x->shape[1], .n = x->shape[0],
    .last = ty_is_channels_last(x), .l = ty_cpu_loops()};
  r.size = ty_itemsize(x);
  if (ty_is_16bit(x->dtype)) { r.load = r.l->load[x->dtype][TY_IN_F32]; r.store = r.l->store[x->dtype][TY_IN_F32]; }
  r.inner = r.n && r.c ? ty_numel(x) / (r.n * r.c) : 0;
  return r;
}

/* n elements at p: in place, or, 16-bit ones, converted into room. */
static const void *wide(const rows *r, const char *p, int64_t n, void *room) {
  if (!r->load) return p;
  r->load(room, p, 1, n);
  return room;
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
        int64_t off = (n * r->c + ch) * r->inner * r->size, most = r->load ? WIDE : r->inner;
        float a[WIDE], b[WIDE];
        for (int64_t i = 0; i < r->inner; i += most, off += most * r->size) {
          const int64_t m = TY_MIN(most, r->inner - i);
          if (g) r->l->dots[r->k](wide(r, g + off, m, a), wide(r, x + off, m, b), m, at(shift, r->k, ch), &s1[ch], &s2[ch]);
          else r->l->moments[r->k](wide(r, x + off, m, b), m, at(shift, r->k, ch), &s1[ch], &s2[ch]);
        }
      }
    return TY_OK;
  }
  /* a number of parts that doesn't depend on threads */
  int64_t total = r->n * r->inner, chunk = 64, parts = TY_MIN(64, (total + chunk - 1) / chunk);
  double *acc = ty_scratch(sizeof(double) * (size_t)(2 * r->c * parts));
  /* few: rows at a time */
  const int64_t size = ty_loop_size[r->k], few = r->load ? TY_MAX(1, WIDE / r->c) : chunk,
    room = 2 * r->c * size + (r->load ? 2 * few * r->c * 4 : 0);
  char *tile = ty_scratch((size_t)(room * threads));
  if (!acc || !tile) { ty_scratch_free(acc); ty_scratch_free(tile); return ty_no_memory(c->ctx, c->op->shown); }
  memset(acc, 0, sizeof(double) * (size_t)(2 * r->c * parts));
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t p = 0; p < parts; p++) {
    char *t1 = tile + room * omp_get_thread_num(), *t2 = t1 + r->c * size, *wg = t2 + r->c * size, *wx = wg + few * r->c * 4;
    double *a1 = acc + 2 * r->c * p, *a2 = a1 + r->c;
    for (int64_t i = total * p / parts, end = total * (p + 1) / parts; i < end;) {
      int64_t stop = TY_MIN(end, i + chunk);
      memset(t1, 0, (size_t)(2 * r->c * size));
      for (; i < stop; i += few) {
        const int64_t off = i * r->c * r->size, m = TY_MIN(few, stop - i);
        if (g) r->l->dots_columns[r->k](wide(r, g + off, m * r->c, wg), wide(r, x + off, m * r->c, wx), m, r->c, shift, t1, t2);
        else r->l->moments_columns[r->k](wide(r, x + off, m * r->c, wx), m, r->c, shift, t1, t2);
      }
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

/* Whether the shift was so far from the mean that the variance, as a difference of large sums, has lost its digits. */
static bool far_off(double s1, double s2, double n) { return s1 * s1 / n > 16 * (s2 - s1 * s1 / n); }

/* Forward's sums, with shifts that cost no digits: each channel's first element, or, if one of these was far off, the means. */
static ty_status moments(ty_call *c, const rows *r, ty_dtype d, const char *x, void *shift, double *s1, double *s2) {
  const double n = (double)(r->n * r->inner);
  bool again = false;
  for (int64_t ch = 0; ch < r->c; ch++) put(shift, r->k, ch, ty_get(x + (r->last ? ch : ch * r->inner) * r->size, d));
  TY_TRY(sums(c, r, NULL, x, shift, s1, s2));
  for (int64_t ch = 0; ch < r->c; ch++) again = again || far_off(s1[ch], s2[ch], n);
  if (!again) return TY_OK;
  for (int64_t ch = 0; ch < r->c; ch++) put(shift, r->k, ch, at(shift, r->k, ch) + s1[ch] / n);
  return sums(c, r, NULL, x, shift, s1, s2);
}

/* o = a[c] g + b[c] x + d[c]; without g: o = (x - b[c]) a[c] + d[c]. For n rows of channels (last), or n elements of channel ch. */
static void affine_part(const rows *r, char *o, const char *g, const char *x, int64_t n, int64_t ch, const void *a,
  const void *b, const void *d) {
  const int64_t all = r->last ? n * r->c : n;
  float wg[WIDE], wx[WIDE];
  void *out = r->load ? (void *)wx : o;
  const void *xs = wide(r, x, all, wx), *gs = g ? wide(r, g, all, wg) : NULL;
  if (r->last && g) r->l->affine2_columns[r->k](out, gs, xs, n, r->c, a, b, d);
  else if (r->last) r->l->centered_columns[r->k](out, xs, n, r->c, b, a, d);
  else if (g) r->l->affine2[r->k](out, gs, xs, n, at(a, r->k, ch), at(b, r->k, ch), at(d, r->k, ch));
  else r->l->centered[r->k](out, xs, n, at(b, r->k, ch), at(a, r->k, ch), at(d, r->k, ch));
  if (r->load) r->store(o, 1, wx, all);
}

/* 16-bit rows of more than WIDE channels are done in pieces: coefficients are per column, so a piece is a narrower matrix of one row. */
static void affine_row(const rows *r, char *o, const char *g, const char *x, const char *a, const char *b, const char *d) {
  const int64_t size = ty_loop_size[r->k];
  for (int64_t ch = 0; ch < r->c; ch += WIDE) {
    rows piece = *r;
    piece.c = TY_MIN(WIDE, r->c - ch);
    affine_part(&piece, o + ch * r->size, g ? g + ch * r->size : NULL, x + ch * r->size, 1, 0, a + ch * size, b + ch * size, d + ch * size);
  }
}

static void affine(const rows *r, char *o, const char *g, const char *x, const void *a, const void *b, const void *d) {
  int threads = ty_threads_for(r->n * r->c * r->inner);
  if (r->last) {
    const int64_t total = r->n * r->inner, chunk = TY_MAX(1, WIDE / r->c);
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < total; i += chunk) {
      const int64_t off = i * r->c * r->size, n = TY_MIN(chunk, total - i);
      if (r->load && r->c > WIDE) affine_row(r, o + off, g ? g + off : NULL, x + off, a, b, d);
      else affine_part(r, o + off, g ? g + off : NULL, x + off, n, 0, a, b, d);
    }
    return;
  }
  const int64_t most = r->load ? WIDE : TY_MAX(r->inner, 1);
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < r->n * r->c; i++)
    for (int64_t j = 0; j < r->inner; j += most) {
      const int64_t off = (i * r->inner + j) * r->size;
      affine_part(r, o + off, g ? g + off : NULL, x + off, TY_MIN(most, r->inner - j), i % r->c, a, b, d);
    }
}

static ty_status batch_norm(ty_call *c) {
  ty_tensor *o = c->out[0], *mean = c->out[1], *rstd = c->out[2], *rm = c->in[1].t, *rv = c->in[2].t, *w = c->in[3].t, *b = c->in[4].t, *x;
  bool training = c->at[TY_AT_batch_norm_stats_training].i;
  double momentum = c->at[TY_AT_batch_norm_stats_momentum].f, eps = c->at[TY_AT_batch_norm_stats_eps].f;
  if (o) TY_TRY(ty_laid_out_as(c->ctx, c->in[0].t, o, &x));
  else if (ty_is_channels_last(c->in[0].t)) x = ty_retain(c->in[0].t);
  else TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  rows r = rows_of(x);
  int64_t n = r.c, count = r.n * r.inner;
  char *mem = ty_scratch((size_t)(n * 8 * 5 + 8));
  if (!mem) { ty_release(x); return ty_no_memory(c->ctx, c->op->shown); }
  double *s1 = (double *)mem, *s2 = s1 + n, *shift = s2 + n, *a = shift + n, *d = a + n;
  ty_status s = TY_OK;
  if (training && count) s = moments(c, &r, x->dtype, ty_data(x), shift, s1, s2);
  for (int64_t ch = 0; ch < n && s == TY_OK; ch++) {
    double m = 0, v = 0;
    if (!training) { m = opt(rm, ch, 0); v = opt(rv, ch, 1); }
    else if (count) {
      double e = s1[ch] / (double)count;
      m = e + at(shift, r.k, ch);
      v = TY_MAX(s2[ch] / (double)count - e * e, 0);
      if (s1[ch] != s1[ch] || s2[ch] != s2[ch]) v = NAN;
      if (rm) ty_set(element(rm, ch), rm->dtype, (1 - momentum) * opt(rm, ch, 0) + momentum * m);
      if (rv)
        ty_set(element(rv, ch), rv->dtype,
          (1 - momentum) * opt(rv, ch, 0) + momentum * v * (double)count / (double)TY_MAX(count - 1, 1));
    }
    put(ty_data(mean), r.k, ch, m);
    put(ty_data(rstd), r.k, ch, 1 / sqrt(v + eps));
    put(a, r.k, ch, opt(w, ch, 1));        /* rounds where batch_norm_apply does */
    put(a, r.k, ch, at(a, r.k, ch) * at(ty_data(rstd), r.k, ch));
    put(d, r.k, ch, opt(b, ch, -0.0));     /* adding -0 changes nothing; 0 would change -0 */
  }
  if (s == TY_OK && training && c->in[5].t) ++*(int64_t *)ty_data(c->in[5].t);
  if (s == TY_OK && o) affine(&r, ty_data(o), NULL, ty_data(x), a, ty_data(mean), d);
  ty_scratch_free(mem);
  ty_release(x);
  return s;
}

static ty_status batch_norm_backward(ty_call *c) {
  ty_tensor *dx = c->out[0], *w = c->in[2].t, *mean = c->in[3].t, *rstd = c->in[4].t, *g, *x;
  bool training = c->at[TY_AT_batch_norm_backward_training].i;
  TY_TRY(ty_laid_out_as(c->ctx, c->in[0].t, dx, &g));
  ty_status s = ty_laid_out_as(c->ctx, c->in[1].t, dx, &x);
  if (s != TY_OK) { ty_release(g); return s; }
  rows r = rows_of(dx);
  int64_t n = r.c;
  double count = (double)(r.n * r.inner);
  char *mem = ty_scratch((size_t)(n * 8 * 5 + 8));
  if (!mem) s = ty_no_memory(c->ctx, c->op->shown);
  double *s1 = (double *)mem, *s2 = s1 + n, *a = s2 + n, *b = a + n, *d = b + n;
  if (s == TY_OK) s = sums(c, &r, ty_data(g), ty_data(x), ty_data(mean), s1, s2);
  for (int64_t ch = 0; ch < n && s == TY_OK; ch++) {
    double m = at(ty_data(mean), r.k, ch), rs = at(ty_data(rstd), r.k, ch), gain = opt(w, ch, 1) * rs;
    ty_set(element(c->out[1], ch), c->out[1]->dtype, s2[ch] * rs);
    ty_set(element(c->out[2], ch), c->out[2]->dtype, s1[ch]);
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

/* ---- layer norm, and root mean square ---- */

#define ROWS 64              /* short rows whose moments are found at once */

static ty_status row_norm(ty_call *c) {
  const bool rms = c->op->id == TY_OP_rms_norm_stats;
  const double eps = c->at[TY_AT_layer_norm_stats_eps].f;                /* in both ops at the same place (ops.c) */
  ty_tensor *o = c->out[0], *mean = rms ? NULL : c->out[1], *rstd = c->out[rms ? 1 : 2], *in[3] = {NULL};   /* x, weight, bias */
  const ty_loop_type k = ty_loop_type_of(o->dtype);
  const int64_t m = ty_numel(rstd), n = m ? ty_numel(o) / m : 0, bytes = n * ty_loop_size[k];
  const ty_loops *l = ty_cpu_loops();
  const ty_status s = ty_contiguous_operands(c, in);
  const void *w = s == TY_OK && in[1] ? ty_data(in[1]) : NULL, *b = s == TY_OK && in[2] ? ty_data(in[2]) : NULL;
  const bool small = n && n <= TY_NORM_ROW;
  const int64_t each = small ? ROWS : 1;   /* rows at a time */
  #pragma omp parallel for num_threads(ty_threads_for(m * n)) schedule(static)
  for (int64_t i = 0; i < (s == TY_OK ? m : 0); i += each) {
    double middle = 0, r = 0;              /* for rows of no elements */
    const char *x = (char *)ty_data(in[0]) + i * bytes;
    char *y = (char *)ty_data(o) + i * bytes;
    const int64_t end = TY_MIN(i + each, m);
    if (small) l->moments_of_rows[k](x, end - i, n, eps, mean ? (char *)ty_data(mean) + i * ty_loop_size[k] : NULL,
      (char *)ty_data(rstd) + i * ty_loop_size[k]);
    else {
      if (n) l->row_moments[k](x, n, eps, !rms, &middle, &r);
      if (mean) put(ty_data(mean), k, i, middle);
      put(ty_data(rstd), k, i, r);
    }
    for (int64_t j = i; j < end; j++, x += bytes, y += bytes)
      if (rms) l->rms_norm[k](y, x, w, n, at(ty_data(rstd), k, j));
      else l->layer_norm[k](y, x, w, b, n, at(ty_data(mean), k, j), at(ty_data(rstd), k, j));
  }
  for (int i = 0; i < 3; i++) ty_release(in[i]);
  return s;
}

#define LN_PARTS 16          /* partial sums of the weights' gradients: a fixed number, whatever the threads */

/* Rows from .. end - 1 of layer norm's gradient; in: grad, x, weight, mean, rstd. */
static void short_rows_backward(ty_tensor *const *in, char *dx, char *dw, char *db, ty_loop_type k, int64_t n, int64_t from, int64_t end) {
  const ty_loops *l = ty_cpu_loops();
  const int size = ty_loop_size[k];
  const void *w = in[2] ? ty_data(in[2]) : NULL;
  const char *g = ty_data(in[0]), *x = ty_data(in[1]), *mean = ty_data(in[3]), *rstd = ty_data(in[4]);
  for (; from < end; from += ROWS) {
    const int64_t rows = TY_MIN(ROWS, end - from), off = from * n * size;
    double ma[ROWS], mb[ROWS];             /* of the loop's type */
    l->layer_norm_means[k](ma, mb, g + off, x + off, w, rows, n, mean + from * size, rstd + from * size);
    for (int64_t i = 0; i < rows; i++) {
      const int64_t o = off + i * n * size;
      l->layer_norm_slopes[k](dx + o, dw, db, g + o, x + o, w, n, at(mean, k, from + i), at(rstd, k, from + i), at(ma, k, i),
        at(mb, k, i));
    }
  }
}

static ty_status row_norm_backward(ty_call *c) {
  const bool rms = c->op->id == TY_OP_rms_norm_backward;
  ty_tensor *dx = c->out[0], *in[5] = {NULL};              /* grad, x, weight, mean (not RMS), rstd */
  const ty_loop_type k = ty_loop_type_of(dx->dtype);
  const int size = ty_loop_size[k], sums = rms ? 1 : 2;    /* the weight's gradient; the bias's */
  const int64_t n = ty_numel(c->out[1]), m = ty_numel(c->in[rms ? 3 : 4].t), parts = TY_MIN(LN_PARTS, TY_MAX(m, 1));
  const ty_loops *l = ty_cpu_loops();
  ty_status s = ty_contiguous_operands(c, in);
  char *acc = s == TY_OK ? ty_scratch((size_t)(sums * parts * n * size + 8)) : NULL;
  if (s == TY_OK && !acc) s = ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK) {
    const void *w = in[2] ? ty_data(in[2]) : NULL;
    memset(acc, 0, (size_t)(sums * parts * n * size));
    #pragma omp parallel for num_threads(ty_threads_for(m * n)) schedule(static)
    for (int64_t p = 0; p < parts; p++) {
      const int64_t from = m * p / parts, end = m * (p + 1) / parts;
      char *a = acc + sums * p * n * size;
      const bool small = !rms && n && n <= TY_NORM_ROW;
      if (small) short_rows_backward(in, ty_data(dx), a, a + n * size, k, n, from, end);
      for (int64_t i = from; i < end && !small; i++) {
        const int64_t off = i * n * size;
        char *d = (char *)ty_data(dx) + off;
        const char *g = (char *)ty_data(in[0]) + off, *x = (char *)ty_data(in[1]) + off;
        if (rms) l->rms_norm_backward[k](d, a, g, x, w, n, at(ty_data(in[3]), k, i));
        else l->layer_norm_backward[k](d, a, a + n * size, g, x, w, n, at(ty_data(in[3]), k, i), at(ty_data(in[4]), k, i));
      }
    }
    for (int j = 0; j < sums; j++)
      for (int64_t i = 0; i < n; i++) {
        double a = 0;
        for (int64_t p = 0; p < parts; p++) a += at(acc, k, (sums * p + j) * n + i);
        put(ty_data(c->out[1 + j]), k, i, a);
      }
  }
  ty_scratch_free(acc);
  for (int i = 0; i < 5; i++) ty_release(in[i]);
  return s;
}

/* ---- group norm ----
 * In planes, a group's elements are contiguous, and with short planes it is done as layer norm, with weights repeated for each pixel. Else
 * each image's channels are summed as batch norm's and joined to groups: planes of all images as one image's channels; channels-last
 * images one by one. */

#define SMALL_PLANE 32           /* pixels, below which a plane isn't worth a call */

typedef struct { rows r; int64_t times, step; } images;     /* times: runs; step: elements from one to the next */

/* As rows_of; for one pixel, planes and channels-last are the same, and planes are taken. */
static rows planes_of(const ty_tensor *x) {
  rows r = rows_of(x);
  r.last = r.last && r.inner > 1;
  return r;
}
static images images_of(const ty_tensor *x) {
  images m = {.r = planes_of(x), .times = 1};
  if (m.r.last) m.times = m.r.n;
  else m.r.c *= m.r.n;
  m.r.n = 1;
  m.step = m.r.c * m.r.inner;
  return m;
}
/* g NULL: forward, which also chooses the shifts */
static ty_status sums_of_images(ty_call *c, const images *m, const char *g, const ty_tensor *x, char *shift, double *s1, double *s2) {
  for (int64_t t = 0; t < m->times; t++) {
    const int64_t at = t * m->r.c, off = t * m->step * m->r.size;
    const char *from = (char *)ty_data(x) + off;
    char *by = shift + at * ty_loop_size[m->r.k];
    TY_TRY(g ? sums(c, &m->r, g + off, from, by, s1 + at, s2 + at) : moments(c, &m->r, x->dtype, from, by, s1 + at, s2 + at));
  }
  return TY_OK;
}
static void affine_of_images(const images *m, char *o, const char *g, const char *x, const char *a, const char *b, const char *d) {
  for (int64_t t = 0; t < m->times; t++) {
    const int64_t at = t * m->r.c * ty_loop_size[m->r.k], off = t * m->step * m->r.size;
    affine(&m->r, o + off, g ? g + off : NULL, x + off, a + at, b + at, d + at);
  }
}

/* Each of t's `channels` elements `repeat` times, in the loops' type, to be freed; *out NULL: t is NULL. */
static ty_status repeated(ty_call *c, const ty_tensor *t, ty_loop_type k, int64_t channels, int64_t repeat, char **out) {
  *out = NULL;
  if (!t) return TY_OK;
  if (!(*out = ty_scratch((size_t)(channels * repeat * ty_loop_size[k])))) return ty_no_memory(c->ctx, c->op->shown);
  for (int64_t ch = 0; ch < channels; ch++) {
    const double v = opt(t, ch, 0);
    for (int64_t p = 0; p < repeat; p++) put(*out, k, ch * repeat + p, v);
  }
  return TY_OK;
}

static ty_status group_norm_rows(ty_call *c, const rows *r, const char *x, double eps) {
  const ty_tensor *mean = c->out[1], *rstd = c->out[2];
  const ty_loop_type k = r->k;
  const bool small = r->inner < SMALL_PLANE;
  const int64_t groups = mean->shape[1], per = r->c / groups, n = per * r->inner, step = n * r->size, repeat = small ? r->inner : 1;
  char *w, *b = NULL, *o = ty_data(c->out[0]);
  ty_status s = repeated(c, c->in[1].t, k, r->c, repeat, &w);
  if (s == TY_OK) s = repeated(c, c->in[2].t, k, r->c, repeat, &b);
  #pragma omp parallel for num_threads(ty_threads_for(r->n * r->c * r->inner)) schedule(static)
  for (int64_t i = 0; i < (s == TY_OK ? r->n * groups : 0); i++) {
    const int64_t first = i % groups * per;
    double m, rs;
    r->l->row_moments[k](x + i * step, n, eps, true, &m, &rs);
    put(ty_data(mean), k, i, m);
    put(ty_data(rstd), k, i, rs);
    if (small) {
      const int64_t at = first * repeat * r->size;
      r->l->layer_norm[k](o + i * step, x + i * step, w ? w + at : NULL, b ? b + at : NULL, n, m, rs);
    } else
      for (int64_t j = 0; j < per; j++) {
        const int64_t off = i * step + j * r->inner * r->size;
        r->l->centered[k](o + off, x + off, r->inner, m, (w ? at(w, k, first + j) : 1) * rs, b ? at(b, k, first + j) : -0.0);
      }
  }
  ty_scratch_free(w);
  ty_scratch_free(b);
  return s;
}

static ty_status group_norm_columns(ty_call *c, const ty_tensor *x, double eps) {
  const ty_tensor *mean = c->out[1], *rstd = c->out[2], *w = c->in[1].t, *b = c->in[2].t;
  const images m = images_of(x);
  const ty_loop_type k = m.r.k;
  const int64_t channels = m.r.c, all = channels * m.times, per = channels / mean->shape[1];
  const double pixels = (double)m.r.inner;
  char *mem = ty_scratch((size_t)(all * 8 * 5 + 8));
  if (!mem) return ty_no_memory(c->ctx, c->op->shown);
  double *s1 = (double *)mem, *s2 = s1 + all, *shift = s2 + all, *a = shift + all, *d = a + all;
  ty_status s = sums_of_images(c, &m, NULL, x, (char *)shift, s1, s2);
  for (int64_t i = 0; i < all / per && s == TY_OK; i++) {
    double e = 0, v = 0;
    for (int64_t j = i * per; j < (i + 1) * per; j++) e += s1[j] / pixels + at(shift, k, j);
    e /= (double)per;
    for (int64_t j = i * per; j < (i + 1) * per; j++) {
      const double own = s1[j] / pixels, apart = own + at(shift, k, j) - e;
      v += s2[j] - s1[j] * own + pixels * apart * apart;
    }
    v = v > 0 || v != v ? v / (pixels * (double)per) : 0;
    put(ty_data(mean), k, i, e);
    put(ty_data(rstd), k, i, 1 / sqrt(v + eps));
    for (int64_t j = i * per; j < (i + 1) * per; j++) {
      put(shift, k, j, at(ty_data(mean), k, i));
      put(a, k, j, opt(w, j % channels, 1) * at(ty_data(rstd), k, i));
      put(d, k, j, opt(b, j % channels, -0.0));
    }
  }
  if (s == TY_OK) affine_of_images(&m, ty_data(c->out[0]), NULL, ty_data(x), (char *)a, (char *)shift, (char *)d);
  ty_scratch_free(mem);
  return s;
}

static ty_status group_norm(ty_call *c) {
  const double eps = c->at[TY_AT_group_norm_stats_eps].f;
  ty_tensor *x;
  if (ty_numel(c->out[0]) == 0) {          /* groups of no elements */
    for (int j = 1; j < 3; j++) memset(ty_data(c->out[j]), 0, ty_nbytes(c->out[j]));
    return TY_OK;
  }
  TY_TRY(ty_laid_out_as(c->ctx, c->in[0].t, c->out[0], &x));
  const rows r = planes_of(x);
  const ty_status s = r.last ? group_norm_columns(c, x, eps) : group_norm_rows(c, &r, ty_data(x), eps);
  ty_release(x);
  return s;
}

static ty_status group_norm_backward_rows(ty_call *c, const rows *r, const char *g, const char *x) {
  const ty_tensor *mean = c->in[3].t, *rstd = c->in[4].t;
  const ty_loop_type k = r->k;
  const int64_t groups = mean->shape[1], n = r->c / groups * r->inner, all = groups * n, parts = TY_MIN(LN_PARTS, r->n);
  char *w, *dx = ty_data(c->out[0]), *acc = ty_scratch((size_t)(2 * parts * all * r->size));
  ty_status s = repeated(c, c->in[2].t, k, r->c, r->inner, &w);
  if (s == TY_OK && !acc) s = ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK) {
    memset(acc, 0, (size_t)(2 * parts * all * r->size));
    #pragma omp parallel for num_threads(ty_threads_for(r->n * all)) schedule(static)
    for (int64_t p = 0; p < parts; p++)
      for (int64_t i = r->n * p / parts * groups; i < r->n * (p + 1) / parts * groups; i++) {
        const int64_t off = i * n * r->size, at_group = i % groups * n * r->size;
        char *dw = acc + 2 * p * all * r->size + at_group;
        r->l->layer_norm_backward[k](dx + off, dw, dw + all * r->size, g + off, x + off, w ? w + at_group : NULL, n,
          at(ty_data(mean), k, i), at(ty_data(rstd), k, i));
      }
    for (int64_t ch = 0; ch < r->c; ch++) {
      double a = 0, b = 0;
      for (int64_t p = 0; p < parts; p++)
        for (int64_t j = ch * r->inner; j < (ch + 1) * r->inner; j++) {
          a += at(acc, k, 2 * p * all + j);
          b += at(acc, k, (2 * p + 1) * all + j);
        }
      ty_set(element(c->out[1], ch), c->out[1]->dtype, a);
      ty_set(element(c->out[2], ch), c->out[2]->dtype, b);
    }
  }
  ty_scratch_free(acc);
  ty_scratch_free(w);
  return s;
}

static ty_status group_norm_backward(ty_call *c) {
  ty_tensor *dx = c->out[0], *w = c->in[2].t, *mean = c->in[3].t, *rstd = c->in[4].t, *g, *x;
  if (ty_numel(dx) == 0) {
    for (int k = 1; k < 3; k++) memset(ty_data(c->out[k]), 0, ty_nbytes(c->out[k]));
    return TY_OK;
  }
  TY_TRY(ty_laid_out_as(c->ctx, c->in[0].t, dx, &g));
  ty_status s = ty_laid_out_as(c->ctx, c->in[1].t, dx, &x);
  if (s != TY_OK) { ty_release(g); return s; }
  const rows r = planes_of(dx);
  if (!r.last && r.inner < SMALL_PLANE) {
    s = group_norm_backward_rows(c, &r, ty_data(g), ty_data(x));
    ty_release(g);
    ty_release(x);
    return s;
  }
  const images m = images_of(dx);
  const ty_loop_type k = m.r.k;
  const int64_t channels = dx->shape[1], all = m.r.c * m.times, per = channels / mean->shape[1];
  const double count = (double)(per * m.r.inner);
  char *mem = ty_scratch((size_t)(all * 8 * 6 + 8));
  if (!mem) s = ty_no_memory(c->ctx, c->op->shown);
  double *s1 = (double *)mem, *s2 = s1 + all, *shift = s2 + all, *a = shift + all, *b = a + all, *d = b + all;
  for (int64_t j = 0; j < all && s == TY_OK; j++) put(shift, k, j, at(ty_data(mean), k, j / per));
  if (s == TY_OK) s = sums_of_images(c, &m, ty_data(g), x, (char *)shift, s1, s2);
  for (int64_t i = 0; i < all / per && s == TY_OK; i++) {
    const double r = at(ty_data(rstd), k, i);
    double all1 = 0, all2 = 0;
    for (int64_t j = i * per; j < (i + 1) * per; j++) {
      const double gain = opt(w, j % channels, 1);
      all1 += gain * s1[j];
      all2 += gain * s2[j];
    }
    for (int64_t j = i * per; j < (i + 1) * per; j++) {
      const double slope = -r * r * r * all2 / count;
      put(a, k, j, opt(w, j % channels, 1) * r);
      put(b, k, j, slope);
      put(d, k, j, -r * all1 / count - slope * at(shift, k, j));
    }
  }
  for (int64_t ch = 0; ch < channels && s == TY_OK; ch++) {
    double dw = 0, db = 0;
    for (int64_t j = ch; j < all; j += channels) { dw += s2[j] * at(ty_data(rstd), k, j / per); db += s1[j]; }
    ty_set(element(c->out[1], ch), c->out[1]->dtype, dw);
    ty_set(element(c->out[2], ch), c->out[2]->dtype, db);
  }
  if (s == TY_OK) affine_of_images(&m, ty_data(dx), ty_data(g), ty_data(x), (char *)a, (char *)b, (char *)d);
  ty_scratch_free(mem);
  ty_release(g);
  ty_release(x);
  return s;
}

static ty_status run(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_batch_norm_stats: return batch_norm(c);
    case TY_OP_batch_norm_backward: return batch_norm_backward(c);
    case TY_OP_group_norm_stats: return group_norm(c);
    case TY_OP_group_norm_backward: return group_norm_backward(c);
    case TY_OP_layer_norm_stats: case TY_OP_rms_norm_stats: return row_norm(c);
    default: return row_norm_backward(c);
  }
}

ty_status ty_cpu_norm(ty_call *c) {
  return c->op->id == TY_OP_batch_norm_stats || c->op->id == TY_OP_batch_norm_backward ? run(c) : ty_widened(c, run);
}
