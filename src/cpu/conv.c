/* Convolution. float32, and bfloat16 where the CPU computes in it, go channels-last to depthwise.c or oneDNN (dnnl.c), where these can.
 * This file has the plain way for the rest: each image's windows become columns of a matrix, and each group a matrix product, some rows of
 * windows at a time.
 * Invariant: each of the three ways takes any geometry that the infer rule allows, or says that it doesn't. */
#include <omp.h>
#include <string.h>
#include "cpu.h"

typedef struct {
  ty_loop_type k;
  int size;
  int64_t n, c, h, w, o, oh, ow, kh, kw, groups;
  ty_windows v;
} geometry;

static geometry geometry_of(const ty_call *c, const int64_t *x, const int64_t *w, const int64_t *y, ty_loop_type k) {
  const ty_windows v = ty_windows_of(c);
  return (geometry){.k = k, .size = ty_loop_size[k], .n = x[0], .c = x[1], .h = x[2], .w = x[3], .o = w[0], .kh = w[2],
                    .kw = w[3], .oh = y[2], .ow = y[3], .v = v, .groups = v.groups};
}

/* The places of one column of the windows (kx, ky) within the picture: j * step + offset, for j from first to end - 1. */
typedef struct { int64_t offset, first, end; } places;
static places places_of(int64_t kernel, int64_t dilation, int64_t padding, int64_t step, int64_t size, int64_t count) {
  const int64_t offset = kernel * dilation - padding;
  const int64_t end = offset >= size ? 0 : TY_MIN((size - 1 - offset) / step + 1, count);
  return (places){offset, TY_MIN(offset < 0 ? (step - 1 - offset) / step : 0, end), end};
}

/* For one group of one image at x, and `many` rows of windows from the first on: col (c/groups * kh * kw rows of many * ow, ld apart) = the
   windows; back: adds col to x instead. */
#define COLUMNS(T, name) \
  static void name(const geometry *g, T *x, T *col, int64_t ld, int64_t first, int64_t many, bool back) { \
    const int64_t step = g->v.stride[1]; \
    _Pragma("omp parallel for num_threads(ty_threads_for(g->c / g->groups * g->kh * g->kw * ld)) schedule(static)") \
    for (int64_t ch = 0; ch < g->c / g->groups; ch++) { \
      T *const plane = x + ch * g->h * g->w, *row = col + ch * g->kh * g->kw * ld; \
      for (int64_t ky = 0; ky < g->kh; ky++) \
        for (int64_t kx = 0; kx < g->kw; kx++, row += ld) { \
          T *line = row; \
          const places p = places_of(kx, g->v.dilation[1], g->v.padding[1], step, g->w, g->ow); \
          for (int64_t i = first; i < first + many; i++, line += g->ow) { \
            const int64_t y = i * g->v.stride[0] - g->v.padding[0] + ky * g->v.dilation[0]; \
            const bool within = y >= 0 && y < g->h; \
            const int64_t from = within ? p.first : g->ow, to = within ? p.end : g->ow; \
            T *const at = plane + (within ? y * g->w : 0) + p.offset; \
            if (back && step == 1) { _Pragma("omp simd") for (int64_t j = from; j < to; j++) at[j] += line[j]; } \
            else if (back) for (int64_t j = from; j < to; j++) at[j * step] += line[j]; \
            else { \
              memset(line, 0, sizeof(T) * (size_t)from); \
              if (step == 1) memcpy(line + from, at + from, sizeof(T) * (size_t)(to - from)); \
              else for (int64_t j = from; j < to; j++) line[j] = at[j * step]; \
              memset(line + to, 0, sizeof(T) * (size_t)(g->ow - to)); \
            } \
          } \
        } \
    } }
COLUMNS(float, columns_f32)
COLUMNS(double, columns_f64)
#undef COLUMNS

static void columns(const geometry *g, char *x, char *col, int64_t ld, int64_t first, int64_t many, bool back) {
  if (g->k == TY_IN_F32) columns_f32(g, (float *)x, (float *)col, ld, first, many, back);
  else columns_f64(g, (double *)x, (double *)col, ld, first, many, back);
}

/* Rows of n elements of o, stride apart, are each filled with the bias's next element, or 0. */
static void fill_rows(ty_loop_type k, char *o, int64_t stride, const char *bias, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = r * stride; i < r * stride + n; i++)
      if (k == TY_IN_F32) ((float *)o)[i] = bias ? ((const float *)bias)[r] : 0;
      else ((double *)o)[i] = bias ? ((const double *)bias)[r] : 0;
}

/* The operands of the plain way: the two that are read, and the result. */
typedef struct {
  geometry g;
  int id;
  const char *a, *b, *bias;
  char *o;
  int64_t many;                            /* rows of windows at a time, so that their columns stay in the cache */
  int64_t ld;                              /* elements from one row of the columns to the next */
  size_t room;                             /* bytes of the columns */
} plain_work;

/* Image n, group q, and the rows of windows from the first on; col: room for their columns. */
static void plain_part(const plain_work *w, int64_t n, int64_t q, int64_t first, char *col) {
  const geometry *g = &w->g;
  const int64_t rows = g->c / g->groups * g->kh * g->kw, px = g->oh * g->ow, og = g->o / g->groups;
  const int64_t many = TY_MIN(w->many, g->oh - first), here = many * g->ow;
  /* offsets of this image and group */
  const int64_t gy = ((n * g->o + q * og) * px + first * g->ow) * g->size, gw = q * og * rows * g->size,
    gx = (n * g->groups + q) * (g->c / g->groups) * g->h * g->w * g->size;
  if (w->id == TY_OP_conv2d) {
    columns(g, (char *)w->a + gx, col, w->ld, first, many, false);
    fill_rows(g->k, w->o + gy, px, w->bias ? w->bias + q * og * g->size : NULL, og, here);
    ty_gemm(g->k, 0, 0, og, here, rows, w->b + gw, rows, col, w->ld, 1, w->o + gy, px);
  } else if (w->id == TY_OP_conv2d_backward_input) {
    ty_gemm(g->k, 1, 0, rows, here, og, w->b + gw, rows, w->a + gy, px, 0, col, w->ld);
    columns(g, w->o + gx, col, w->ld, first, many, true);
  } else {
    columns(g, (char *)w->b + gx, col, w->ld, first, many, false);
    ty_gemm(g->k, 0, 1, og, rows, here, w->a + gy, px, col, w->ld, 1, w->o + gw, rows);
  }
}

/* Parts whose results don't meet (forward: blocks of rows of windows; for the input: an image's groups; for the weight: groups) are shared
 * among the threads, if there are enough of them; else each product is. Each thread has columns of its own, of a row of windows at least,
 * which may be long. */
static bool plain_parts(const plain_work *w) {
  enum { ROOM = 1 << 26 };                 /* bytes, of all threads' columns */
  const geometry *g = &w->g;
  const bool forward = w->id == TY_OP_conv2d, weight = w->id == TY_OP_conv2d_backward_weight;
  const int64_t blocks = (g->oh + w->many - 1) / w->many;      /* of rows of windows, of each image and group */
  const int64_t apart = (weight ? 1 : g->n) * g->groups * (forward ? blocks : 1);
  const int most = ty_threads_for(g->n * g->oh * w->ld / w->many * (g->c * g->kh * g->kw)),
    threads = 2 * apart >= most && w->room * (size_t)most <= ROOM ? (int)TY_MIN(apart, most) : 1;
  char *memory = ty_scratch(w->room * (size_t)threads);
  if (!memory) return false;
  #pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t t = 0; t < apart; t++) {
    char *const col = memory + w->room * (size_t)omp_get_thread_num();
    const int64_t part = forward ? t / blocks : t, block = forward ? t % blocks : 0, n = weight ? 0 : part / g->groups;
    for (int64_t i = n; i < (weight ? g->n : n + 1); i++)
      for (int64_t j = block; j < (forward ? block + 1 : blocks); j++) plain_part(w, i, part % g->groups, j * w->many, col);
  }
  ty_scratch_free(memory);
  return true;
}

static ty_status plain(ty_call *c) {
  enum { CACHED = 1 << 20 };               /* bytes */
  const int id = c->op->id;
  const ty_loop_type k = ty_loop_type_of(c->out[0]->dtype);
  ty_tensor *a, *b, *bias = NULL, *o = c->out[0];
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &a));
  ty_status s = ty_contiguous(c->ctx, c->in[1].t, &b);
  if (s != TY_OK) { ty_release(a); return s; }
  if (id == TY_OP_conv2d && c->in[2].t && (s = ty_contiguous(c->ctx, c->in[2].t, &bias)) != TY_OK) {
    ty_release(a);
    ty_release(b);
    return s;
  }
  plain_work w = {.id = id, .a = ty_data(a), .b = ty_data(b), .bias = bias ? ty_data(bias) : NULL, .o = ty_data(o),
    .g = id == TY_OP_conv2d ? geometry_of(c, a->shape, b->shape, o->shape, k)
       : id == TY_OP_conv2d_backward_input ? geometry_of(c, o->shape, b->shape, a->shape, k)
       : geometry_of(c, b->shape, o->shape, a->shape, k)};
  const int64_t rows = w.g.c / w.g.groups * w.g.kh * w.g.kw;
  w.many = TY_MIN(TY_MAX(CACHED / TY_MAX(rows * w.g.ow * w.g.size, 1), 1), w.g.oh);
  w.ld = w.many * w.g.ow;
  if (w.g.o / w.g.groups >= 8 && w.ld % 128 == 0) w.ld += 16;          /* else rows would lie in the same few cache sets */
  w.room = (size_t)TY_MAX(rows * w.ld * w.g.size, 1);
  if (id != TY_OP_conv2d && o->storage->nbytes) memset(w.o, 0, o->storage->nbytes);
  if (w.g.n && !plain_parts(&w)) s = ty_no_memory(c->ctx, c->op->shown);
  ty_release(a);
  ty_release(b);
  ty_release(bias);
  return s;
}

/* By depthwise.c or oneDNN, channels-last; *done false: neither could. */
static ty_status channels_last(ty_call *c, bool *done) {
  const int id = c->op->id;
  ty_tensor *o = c->out[0], *a = c->in[0].t, *b = c->in[1].t, *bias = id == TY_OP_conv2d ? c->in[2].t : NULL;
  ty_tensor *x = id == TY_OP_conv2d ? a : id == TY_OP_conv2d_backward_input ? o : b, *y = id == TY_OP_conv2d ? o : a,
    *w = id == TY_OP_conv2d_backward_weight ? o : b;
  ty_convolution v = {.which = o == y ? TY_CONV_Y : o == x ? TY_CONV_X : TY_CONV_W, .x = x, .w = w, .y = y, .windows = ty_windows_of(c)};
  const bool own = ty_depthwise_takes(&v);
  *done = false;
  if (ty_numel(x) == 0 || ty_numel(w) == 0 || ty_numel(y) == 0 || (own && o->dtype != TY_F32)) return TY_OK;
  v.x = v.w = v.y = NULL;
  ty_status s = ty_channels_last(c->ctx, x, &v.x);
  if (s == TY_OK) s = ty_channels_last(c->ctx, y, &v.y);
  if (s == TY_OK) s = ty_contiguous(c->ctx, w, &v.w);
  if (s == TY_OK && bias) s = ty_contiguous(c->ctx, bias, &v.b);
  if (s == TY_OK) *done = own ? ty_depthwise_slopes(&v) : ty_dnnl_conv(&v);
  ty_tensor *const made = o == y ? v.y : o == x ? v.x : v.w;
  if (*done && made != o) s = ty_copy_into(c->ctx, o, made);           /* apply gave the result another layout */
  ty_release(v.x);
  ty_release(v.y);
  ty_release(v.w);
  ty_release(v.b);
  return s;
}

static ty_status run(ty_call *c) {
  ty_tensor *o = c->out[0];
  if (ty_numel(o) == 0) return TY_OK;
  if (o->dtype == TY_F32) {
    bool done;
    TY_TRY(channels_last(c, &done));
    if (done) return TY_OK;
  }
  if (ty_is_contiguous(o)) return plain(c);
  ty_meta m;                               /* the plain way writes contiguous results */
  ty_meta_of(o, &m);
  ty_call k = *c;
  TY_TRY(ty_empty(c->ctx, o->storage->backend, &m, &k.out[0]));
  ty_status s = plain(&k);
  if (s == TY_OK) s = ty_copy_into(c->ctx, o, k.out[0]);
  ty_release(k.out[0]);
  return s;
}

ty_status ty_cpu_conv(ty_call *c) {
  if (c->out[0]->dtype == TY_BF16 && ty_native_bf16(-1)) {
    bool done;
    TY_TRY(channels_last(c, &done));
    if (done) return TY_OK;
  }
  return ty_widened(c, run);
}
