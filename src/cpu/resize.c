/* Resizing of images: each result is a weighted sum of up to four neighbours along each of the last two dims.
 *
 * Idea: where an output index reads along a dim, and with what weights, is the same for every line, so it is worked out once
 * (core/taps.h); forward gathers and backward scatters by the same table. */
#include <omp.h>
#include <string.h>
#include "cpu.h"
#include "taps.h"

typedef struct { int32_t *at[4]; double *w[4]; } taps;      /* by tap, then by output index */

/* in and out: a dim's sizes; factor: as ty_taps takes it */
static void make_taps(const taps *t, int64_t in, int64_t out, int mode, bool corners, double factor) {
  int64_t at[4];
  double w[4];
  for (int64_t i = 0; i < out; i++) {
    ty_taps(in, out, mode, corners, factor, i, at, w);
    for (int j = 0; j < ty_taps_of(mode); j++) {
      t->at[j][i] = (int32_t)at[j];
      t->w[j][i] = w[j];
    }
  }
}

/* A plane of pixels of u neighbouring numbers: rows are blended into a line as wide as the input, then its columns; backward the other
 * way. s: strides of x's rows and pixels, of y's; a pixel's numbers lie side by side. */
#define PLANES(T) \
  static inline void blend_##T(T *restrict to, const T *restrict from, T k, int64_t n, bool first) { \
    if (first) { _Pragma("omp simd") for (int64_t j = 0; j < n; j++) to[j] = 0 + k * from[j]; } \
    else { _Pragma("omp simd") for (int64_t j = 0; j < n; j++) to[j] += k * from[j]; } } \
  static void forward_##T(const T *x, T *y, T *line, const taps *rows, const taps *cols, int n, const int64_t *s, int64_t w, \
                          int64_t oh, int64_t ow, int64_t u) { \
    for (int64_t i = 0; i < oh; i++) { \
      T *o = y + i * s[2]; \
      for (int r = 0; r < n; r++) { \
        const T *q = x + rows->at[r][i] * s[0]; const T k = (T)rows->w[r][i]; \
        if (s[1] == u) blend_##T(line, q, k, w * u, !r); \
        else if (u > 1) for (int64_t j = 0; j < w; j++) blend_##T(line + j * u, q + j * s[1], k, u, !r); \
        else for (int64_t j = 0; j < w; j++) line[j] = (r ? line[j] : 0) + k * q[j * s[1]]; } \
      for (int r = 0; r < n; r++) { \
        const int32_t *at = cols->at[r]; const double *k = cols->w[r]; \
        if (u > 1) for (int64_t j = 0; j < ow; j++) blend_##T(o + j * s[3], line + at[j] * u, (T)k[j], u, !r); \
        else for (int64_t j = 0; j < ow; j++) o[j * s[3]] = (r ? o[j * s[3]] : 0) + (T)k[j] * line[at[j]]; } } } \
  static void backward_##T(T *x, const T *g, T *line, const taps *rows, const taps *cols, int n, const int64_t *s, int64_t w, \
                           int64_t oh, int64_t ow, int64_t u) { \
    for (int64_t i = 0; i < oh; i++) { \
      const T *p = g + i * s[2]; \
      memset(line, 0, sizeof(T) * (size_t)(w * u)); \
      if (u > 1) for (int64_t j = 0; j < ow; j++) \
        for (int r = 0; r < n; r++) blend_##T(line + cols->at[r][j] * u, p + j * s[3], (T)cols->w[r][j], u, false); \
      else for (int64_t j = 0; j < ow; j++) for (int r = 0; r < n; r++) line[cols->at[r][j]] += (T)cols->w[r][j] * p[j * s[3]]; \
      for (int r = 0; r < n; r++) { \
        T *q = x + rows->at[r][i] * s[0]; const T k = (T)rows->w[r][i]; \
        if (s[1] == u) blend_##T(q, line, k, w * u, false); \
        else if (u > 1) for (int64_t j = 0; j < w; j++) blend_##T(q + j * s[1], line + j * u, k, u, false); \
        else for (int64_t j = 0; j < w; j++) q[j * s[1]] += k * line[j]; } } }
PLANES(float)
PLANES(double)

static ty_status run(ty_call *c) {
  bool back = c->op->id == TY_OP_resize_backward;
  ty_tensor *x = back ? c->out[0] : c->in[0].t, *y = back ? c->in[0].t : c->out[0];   /* x: the input's side, y: the result's */
  const ty_sampling_options how = ty_sampling_options_of(c);
  int mode = how.mode, n = ty_taps_of(mode), size = ty_itemsize(x);
  int64_t h = x->shape[2], w = x->shape[3], oh = y->shape[2], ow = y->shape[3];
  const int64_t s[4] = {x->stride[2], x->stride[3], y->stride[2], y->stride[3]};
  if (back && x->storage->nbytes) memset(ty_data(x), 0, x->storage->nbytes);
  if (ty_numel(y) == 0) return TY_OK;
  int threads = ty_threads_for(ty_numel(y) * 8);
  /* channels that lie side by side go together, as far as threads find work */
  const int64_t channels = x->shape[1], side = x->stride[1] == 1 && y->stride[1] == 1 && channels > 1 ? channels : 1;
  const int64_t u = side == 1 || x->shape[0] >= threads ? side : TY_MIN(side, TY_MAX((side + threads - 1) / threads, 16));
  const int64_t parts = (channels + u - 1) / u, planes = x->shape[0] * parts;
  size_t line = ((size_t)(w * u * size) + 63) / 64 * 64;
  if (h > INT32_MAX || w > INT32_MAX) return ty_fail(c, "images of %lldx%lld are too large", (long long)h, (long long)w);
  size_t each = sizeof(double) * (size_t)(oh + ow) * 4, table = each + each / 2;
  char *room = ty_scratch(table + line * (size_t)threads), *lines = room + table;
  if (!room) return ty_no_memory(c->ctx, c->op->shown);
  taps rows, cols;
  for (int i = 0; i < 4; i++) {
    rows.w[i] = (double *)(void *)room + i * (oh + ow);
    cols.w[i] = rows.w[i] + oh;
    rows.at[i] = (int32_t *)(void *)(room + each) + i * (oh + ow);
    cols.at[i] = rows.at[i] + oh;
  }
  make_taps(&rows, h, oh, mode, how.corners, how.factor[0]);
  make_taps(&cols, w, ow, mode, how.corners, how.factor[1]);
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t p = 0; p < planes; p++) {
    const int64_t img = p / parts, ch = p % parts * u, m = TY_MIN(u, channels - ch);
    char *px = (char *)ty_data(x) + (img * x->stride[0] + ch * x->stride[1]) * size,
      *py = (char *)ty_data(y) + (img * y->stride[0] + ch * y->stride[1]) * size;
    void *buf = lines + line * (size_t)omp_get_thread_num();
    if (size == 4) {
      if (back)
        backward_float((float *)(void *)px, (float *)(void *)py, buf, &rows, &cols, n, s, w, oh, ow, m);
      else
        forward_float((float *)(void *)px, (float *)(void *)py, buf, &rows, &cols, n, s, w, oh, ow, m);
    }
    else if (back) backward_double((double *)(void *)px, (double *)(void *)py, buf, &rows, &cols, n, s, w, oh, ow, m);
    else forward_double((double *)(void *)px, (double *)(void *)py, buf, &rows, &cols, n, s, w, oh, ow, m);
  }
  ty_scratch_free(room);
  return TY_OK;
}

ty_status ty_cpu_resize(ty_call *c) { return ty_numel(c->out[0]) ? ty_widened(c, run) : TY_OK; }
