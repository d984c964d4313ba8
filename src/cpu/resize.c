/* Resizing of images: each result is a weighted sum of up to four neighbours along each of the last two dims.
 *
 * Idea: where an output index reads along a dim, and with what weights, is the same for every line, so it is computed once
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

/* How planes are resized: the tables, with n taps a dim; x's width w and y's size oh by ow; the strides of rows and pixels. */
typedef struct {
  taps rows, cols;
  int n;
  int64_t w, oh, ow, x_row, x_pixel, y_row, y_pixel;
} resizing;

/* A plane of pixels, each of u contiguous numbers: rows are blended into a line as wide as the input, then the line's columns into y;
 * backward the other way. first: what is blended into counts as 0. */
#define ALWAYS inline __attribute__((always_inline))
#define PLANES(T) \
  static inline void numbers_##T(T *restrict to, const T *restrict from, T k, int64_t n, bool first) { \
    if (first) { _Pragma("omp simd") for (int64_t j = 0; j < n; j++) to[j] = 0 + k * from[j]; } \
    else { _Pragma("omp simd") for (int64_t j = 0; j < n; j++) to[j] += k * from[j]; } } \
  static ALWAYS void pixel_##T(T *to, const T *from, T k, int64_t u, bool first) { \
    if (u > 1) numbers_##T(to, from, k, u, first); else *to = (first ? 0 : *to) + k * *from; } \
  static ALWAYS void row_##T(T *to, int64_t to_pixel, const T *from, int64_t from_pixel, T k, int64_t w, int64_t u, bool first) { \
    if (to_pixel == u && from_pixel == u) numbers_##T(to, from, k, w * u, first); \
    else for (int64_t j = 0; j < w; j++) pixel_##T(to + j * to_pixel, from + j * from_pixel, k, u, first); } \
  static ALWAYS void gather_##T(const resizing *p, const T *x, T *y, T *line, int64_t u) { \
    for (int64_t i = 0; i < p->oh; i++, y += p->y_row) { \
      for (int r = 0; r < p->n; r++) \
        row_##T(line, u, x + p->rows.at[r][i] * p->x_row, p->x_pixel, (T)p->rows.w[r][i], p->w, u, !r); \
      for (int r = 0; r < p->n; r++) { \
        const int32_t *at = p->cols.at[r]; const double *k = p->cols.w[r]; \
        for (int64_t j = 0; j < p->ow; j++) pixel_##T(y + j * p->y_pixel, line + at[j] * u, (T)k[j], u, !r); } } } \
  static ALWAYS void scatter_##T(const resizing *p, T *x, const T *y, T *line, int64_t u) { \
    for (int64_t i = 0; i < p->oh; i++, y += p->y_row) { \
      memset(line, 0, sizeof(T) * (size_t)(p->w * u)); \
      for (int64_t j = 0; j < p->ow; j++) for (int r = 0; r < p->n; r++) \
        pixel_##T(line + p->cols.at[r][j] * u, y + j * p->y_pixel, (T)p->cols.w[r][j], u, false); \
      for (int r = 0; r < p->n; r++) \
        row_##T(x + p->rows.at[r][i] * p->x_row, p->x_pixel, line, u, (T)p->rows.w[r][i], p->w, u, false); } } \
  static void forward_##T(const resizing *p, const T *x, T *y, T *line, int64_t u) { \
    if (u == 1) gather_##T(p, x, y, line, 1); else gather_##T(p, x, y, line, u); }         /* u is a constant for single numbers */ \
  static void backward_##T(const resizing *p, T *x, const T *y, T *line, int64_t u) { \
    if (u == 1) scatter_##T(p, x, y, line, 1); else scatter_##T(p, x, y, line, u); }
PLANES(float)
PLANES(double)

static ty_status run(ty_call *c) {
  bool back = c->op->id == TY_OP_resize_backward;
  ty_tensor *x = back ? c->out[0] : c->in[0].t, *y = back ? c->in[0].t : c->out[0];   /* x: the input's side, y: the result's */
  const ty_sampling_options how = ty_sampling_options_of(c);
  const int mode = how.mode, size = ty_itemsize(x);
  const int64_t h = x->shape[2], w = x->shape[3], oh = y->shape[2], ow = y->shape[3];
  resizing plan = {.n = ty_taps_of(mode), .w = w, .oh = oh, .ow = ow, .x_row = x->stride[2], .x_pixel = x->stride[3],
    .y_row = y->stride[2], .y_pixel = y->stride[3]};
  if (back && x->storage->nbytes) memset(ty_data(x), 0, x->storage->nbytes);
  if (ty_numel(y) == 0) return TY_OK;
  int threads = ty_threads_for(ty_numel(y) * 8);
  /* channels that lie side by side are done together, as long as all threads have work */
  const int64_t channels = x->shape[1], side = x->stride[1] == 1 && y->stride[1] == 1 && channels > 1 ? channels : 1;
  const int64_t u = side == 1 || x->shape[0] >= threads ? side : TY_MIN(side, TY_MAX((side + threads - 1) / threads, 16));
  const int64_t parts = (channels + u - 1) / u, planes = x->shape[0] * parts;
  size_t line = ((size_t)(w * u * size) + 63) / 64 * 64;
  if (h > INT32_MAX || w > INT32_MAX) return ty_fail(c, "images of %lldx%lld are too large", (long long)h, (long long)w);
  size_t each = sizeof(double) * (size_t)(oh + ow) * 4, table = each + each / 2;
  char *room = ty_scratch(table + line * (size_t)threads), *lines = room + table;
  if (!room) return ty_no_memory(c->ctx, c->op->shown);
  for (int i = 0; i < 4; i++) {
    plan.rows.w[i] = (double *)(void *)room + i * (oh + ow);
    plan.cols.w[i] = plan.rows.w[i] + oh;
    plan.rows.at[i] = (int32_t *)(void *)(room + each) + i * (oh + ow);
    plan.cols.at[i] = plan.rows.at[i] + oh;
  }
  make_taps(&plan.rows, h, oh, mode, how.corners, how.factor[0]);
  make_taps(&plan.cols, w, ow, mode, how.corners, how.factor[1]);
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t j = 0; j < planes; j++) {
    const int64_t img = j / parts, ch = j % parts * u, m = TY_MIN(u, channels - ch);
    void *px = (char *)ty_data(x) + (img * x->stride[0] + ch * x->stride[1]) * size,
      *py = (char *)ty_data(y) + (img * y->stride[0] + ch * y->stride[1]) * size,
      *buf = lines + line * (size_t)omp_get_thread_num();
    if (size == 4 && back) backward_float(&plan, px, py, buf, m);
    else if (size == 4) forward_float(&plan, px, py, buf, m);
    else if (back) backward_double(&plan, px, py, buf, m);
    else forward_double(&plan, px, py, buf, m);
  }
  ty_scratch_free(room);
  return TY_OK;
}

ty_status ty_cpu_resize(ty_call *c) { return ty_numel(c->out[0]) ? ty_widened(c, run) : TY_OK; }
