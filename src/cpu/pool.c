/* Pooling over the last two dims: a walk over result cells and their windows. Channels-last, the innermost loop runs over channels;
 * else each channel of an image is a plane of its own. What a row or column of windows reads is worked out once. */
#include <math.h>
#include <string.h>
#include "cpu.h"

typedef struct { int64_t lo, hi, count; } span;   /* what a window reads along a dim, every step-th; count: the divisor's part */

typedef struct {
  int id;
  const ty_attr *at;
  const span *rows, *cols;
  int64_t n, c, h, w, oh, ow;              /* n * c planes of h x w, windows oh x ow */
  int64_t dh, dw;                          /* dilation */
  double divisor;                          /* 0: the window's size */
  int64_t xs[4], ys[4];                    /* strides of the large and the small tensor: n, c, h, w */
} pools;

static span window(const pools *p, int dim, int64_t i) {
  int64_t size = dim ? p->w : p->h, out = dim ? p->ow : p->oh;
  if (p->id == TY_OP_adaptive_avg_pool2d || p->id == TY_OP_adaptive_avg_pool2d_backward || p->id == TY_OP_adaptive_max_pool2d_indices) {
    int64_t lo = i * size / out, hi = ((i + 1) * size + out - 1) / out;
    return (span){lo, hi, hi - lo};
  }
  const ty_attr *a = p->at + (p->id == TY_OP_avg_pool2d_backward);
  bool max = p->id == TY_OP_max_pool2d_indices, padded = !max && a[4].i;
  int64_t d = max ? a[4].v[dim] : 1, from = i * a[1].v[dim] - a[2].v[dim], to = from + d * (a[0].v[dim] - 1) + 1;
  int64_t lo = from < 0 ? from + (-from + d - 1) / d * d : from, hi = TY_MIN(to, size);
  return (span){lo, hi, padded ? TY_MIN(to, size + a[2].v[dim]) - from : hi - lo};
}

static void strides_of(const ty_tensor *t, int64_t s[4]) {
  int k = t->ndim - 3;
  s[0] = k ? t->stride[0] : 0;
  for (int i = 0; i < 3; i++) s[i + 1] = t->stride[k + i];
}

/* Where j counts cells of a row: those whose window's column at offset c from stride * j lies within 0 .. w - 1. */
static void inside(int64_t c, int64_t stride, int64_t w, int64_t *from, int64_t *to) {
  *from = TY_MAX(c < 0 ? (-c + stride - 1) / stride : 0, *from);
  *to = TY_MIN(c < w ? (w - 1 - c) / stride + 1 : 0, *to);
}

/* compiled for each instruction set, picked by what a CPU has: "arch=" would go by its model, which virtual machines hide */
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__      /* needs ifunc */
#define CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CLONES
#endif
#define SOME 64
/* A row of cells: of a plane, side by side (max_row); of channels-last memory, each cell's channels side by side (max_cells). Positions
 * count from 1; 0 stands where a window is all padding. No branch depends on the data, so both become vector code. */
#define KEEP_LARGER(from, k, pos) { __typeof__(best[0]) u = from; const bool up = (u > best[k]) | (u != u) | !at[k]; best[k] = up ? u : best[k]; at[k] = up ? (int32_t)(pos) : at[k]; }
#define POOLS(T) \
  static void max_row_##T(const T *x, T *y, int64_t *idx, const pools *p, int64_t n, int64_t i) { \
    const int64_t sw = p->at[1].v[1], pw = p->at[2].v[1], kw = p->at[0].v[1], st = sw * p->xs[3], out = p->ys[3]; \
    for (int64_t j0 = 0; j0 < p->ow; j0 += SOME) { \
      int64_t m = TY_MIN(SOME, p->ow - j0), o = n * p->ys[0] + i * p->ys[2] + j0 * out; T best[SOME]; int32_t at[SOME]; \
      for (int64_t j = 0; j < m; j++) { best[j] = -INFINITY; at[j] = 0; } \
      for (int64_t a = p->rows[i].lo; a < p->rows[i].hi; a += p->dh) for (int64_t b = 0; b < kw; b++) { \
        const int64_t c = j0 * sw - pw + b * p->dw; int64_t from = 0, to = m; \
        inside(c, sw, p->w, &from, &to); \
        const T *v = x + n * p->xs[0] + a * p->xs[2] + (c + from * sw) * p->xs[3]; const int32_t pos = (int32_t)(a * p->w + c + from * sw + 1); \
        for (int64_t j = from; j < to; j++) KEEP_LARGER(v[(j - from) * st], j, pos + (j - from) * sw) } \
      for (int64_t j = 0; j < m; j++) { y[o + j * out] = best[j]; idx[o + j * out] = at[j]; } } } \
  CLONES static void max_cells_##T(const T *x, T *y, int64_t *idx, const pools *p, int64_t n, int64_t i) { \
    for (int64_t j = 0; j < p->ow; j++) for (int64_t c0 = 0; c0 < p->c; c0 += SOME) { \
      int64_t m = TY_MIN(SOME, p->c - c0), st = p->xs[1], out = p->ys[1], o = n * p->ys[0] + c0 * out + i * p->ys[2] + j * p->ys[3]; T best[SOME]; int32_t at[SOME]; \
      for (int64_t k = 0; k < m; k++) { best[k] = -INFINITY; at[k] = 0; } \
      for (int64_t a = p->rows[i].lo; a < p->rows[i].hi; a += p->dh) for (int64_t b = p->cols[j].lo; b < p->cols[j].hi; b += p->dw) { \
        const T *v = x + n * p->xs[0] + c0 * st + a * p->xs[2] + b * p->xs[3]; const int64_t pos = a * p->w + b + 1; \
        if (st == 1) for (int64_t k = 0; k < m; k++) KEEP_LARGER(v[k], k, pos) \
        else for (int64_t k = 0; k < m; k++) KEEP_LARGER(v[k * st], k, pos) } \
      for (int64_t k = 0; k < m; k++) { y[o + k * out] = best[k]; idx[o + k * out] = at[k]; } } } \
  static void avg_##T(const T *x, T *y, const pools *p, int64_t n, int64_t i, int64_t j) { \
    const int64_t hlo = p->rows[i].lo, hhi = p->rows[i].hi, wlo = p->cols[j].lo, whi = p->cols[j].hi, hc = p->rows[i].count, wc = p->cols[j].count; \
    T r = (T)1 / (p->divisor ? (T)p->divisor : (T)(hc * wc)); \
    for (int64_t k = 0; k < p->c; k++) { T sum = 0; \
      const T *v = x + n * p->xs[0] + k * p->xs[1]; \
      for (int64_t a = hlo; a < hhi; a++) for (int64_t b = wlo; b < whi; b++) sum += v[a * p->xs[2] + b * p->xs[3]]; \
      y[n * p->ys[0] + k * p->ys[1] + i * p->ys[2] + j * p->ys[3]] = sum * r; } } \
  static void avg_back_##T(T *x, const T *g, const pools *p, int64_t n) { \
    for (int64_t i = 0; i < p->oh; i++) for (int64_t j = 0; j < p->ow; j++) { \
      const int64_t hlo = p->rows[i].lo, hhi = p->rows[i].hi, wlo = p->cols[j].lo, whi = p->cols[j].hi, hc = p->rows[i].count, wc = p->cols[j].count; \
      T r = (T)1 / (p->divisor ? (T)p->divisor : (T)(hc * wc)); \
      for (int64_t a = hlo; a < hhi; a++) for (int64_t b = wlo; b < whi; b++) for (int64_t k = 0; k < p->c; k++) \
        x[n * p->xs[0] + k * p->xs[1] + a * p->xs[2] + b * p->xs[3]] += r * g[n * p->ys[0] + k * p->ys[1] + i * p->ys[2] + j * p->ys[3]]; } } \
  static void max_back_##T(T *x, const T *g, const int64_t *idx, const int64_t is[4], const pools *p, int64_t n) { \
    const bool flat = p->xs[2] == p->w * p->xs[3];       /* rows follow one another: a position is an offset */ \
    for (int64_t i = 0; i < p->oh; i++) for (int64_t j = 0; j < p->ow; j++) for (int64_t k = 0; k < p->c; k++) { \
      int64_t pos = idx[n * is[0] + k * is[1] + i * is[2] + j * is[3]] - 1; \
      if (pos < 0 || pos >= p->h * p->w) continue; \
      int64_t off = flat ? pos * p->xs[3] : pos / p->w * p->xs[2] + pos % p->w * p->xs[3]; \
      x[n * p->xs[0] + k * p->xs[1] + off] += g[n * p->ys[0] + k * p->ys[1] + i * p->ys[2] + j * p->ys[3]]; } }
POOLS(float)
POOLS(double)

static ty_status run(ty_call *c) {
  int id = c->op->id;
  bool back = id == TY_OP_max_pool2d_backward || id == TY_OP_avg_pool2d_backward || id == TY_OP_adaptive_avg_pool2d_backward;
  ty_tensor *large = back ? c->out[0] : c->in[0].t, *small = back ? c->in[0].t : c->out[0], *idx = id == TY_OP_max_pool2d_backward ? c->in[1].t : NULL;
  int d = large->ndim - 3;
  bool f32 = large->dtype == TY_F32, max = id == TY_OP_max_pool2d_indices || id == TY_OP_adaptive_max_pool2d_indices;
  pools p = {.id = id, .at = c->at, .n = d ? large->shape[0] : 1, .c = large->shape[d], .h = large->shape[d + 1], .w = large->shape[d + 2],
             .oh = small->shape[d + 1], .ow = small->shape[d + 2], .dh = 1, .dw = 1};
  if (id == TY_OP_max_pool2d_indices) { p.dh = c->at[4].v[0]; p.dw = c->at[4].v[1]; }
  if (id == TY_OP_avg_pool2d || id == TY_OP_avg_pool2d_backward) p.divisor = (double)c->at[5 + (id == TY_OP_avg_pool2d_backward)].i;
  int64_t is[4] = {0};
  strides_of(large, p.xs);
  strides_of(small, p.ys);
  if (idx) strides_of(idx, is);
  if (p.xs[1] != 1 && p.xs[0] == p.c * p.xs[1] && p.ys[0] == p.c * p.ys[1] && (!idx || is[0] == p.c * is[1])) {   /* planes one after another */
    p.n *= p.c;
    p.c = 1;
    p.xs[0] = p.xs[1];
    p.ys[0] = p.ys[1];
    is[0] = is[1];
  }
  if (max && p.h * p.w >= INT32_MAX) return ty_fail(c, "planes of %lld elements are too large", (long long)(p.h * p.w));
  span *spans = ty_scratch(sizeof(span) * (size_t)(p.oh + p.ow));
  if (!spans) return ty_fail(c, "out of memory"), TY_OOM;
  for (int64_t i = 0; i < p.oh; i++) spans[i] = window(&p, 0, i);
  for (int64_t j = 0; j < p.ow; j++) spans[p.oh + j] = window(&p, 1, j);
  p.rows = spans;
  p.cols = spans + p.oh;
  void *x = ty_data(large), *y = ty_data(small);
  if (back && large->storage->nbytes) memset(x, 0, large->storage->nbytes);
  int threads = ty_threads_for(ty_numel(large) * 2);
  if (back) {
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t n = 0; n < p.n; n++)
      if (idx) { if (f32) max_back_float(x, y, ty_data(idx), is, &p, n); else max_back_double(x, y, ty_data(idx), is, &p, n); }
      else if (f32) avg_back_float(x, y, &p, n);
      else avg_back_double(x, y, &p, n);
    ty_scratch_free(spans);
    return TY_OK;
  }
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t r = 0; r < p.n * p.oh; r++) {
    const int64_t n = r / p.oh, i = r % p.oh;
    if (max && p.c == 1 && id == TY_OP_max_pool2d_indices) { if (f32) max_row_float(x, y, ty_data(c->out[1]), &p, n, i); else max_row_double(x, y, ty_data(c->out[1]), &p, n, i); }
    else if (max) { if (f32) max_cells_float(x, y, ty_data(c->out[1]), &p, n, i); else max_cells_double(x, y, ty_data(c->out[1]), &p, n, i); }
    else for (int64_t j = 0; j < p.ow; j++)
      if (f32) avg_float(x, y, &p, n, i, j);
      else avg_double(x, y, &p, n, i, j);
  }
  ty_scratch_free(spans);
  return TY_OK;
}

ty_status ty_cpu_pool(ty_call *c) { return ty_numel(c->out[0]) ? ty_widened(c, run) : TY_OK; }
