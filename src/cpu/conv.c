/* Convolution. float32, and bfloat16 where the CPU computes in it, go channels-last to depthwise.c or oneDNN (dnnl.c), where these can.
 * This file has the plain way for the rest: each image's windows become columns of a matrix, and each group a matrix product.
 * Invariant: each of the three ways takes any geometry that the infer rule allows, or says that it doesn't. */
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

/* col (c/groups * kh * kw x oh * ow) = the windows of one group of one image at x; back: adds col to x instead. */
static void columns(const geometry *g, char *x, char *col, bool back) {
  int64_t cg = g->c / g->groups;
  for (int64_t r = 0; r < cg * g->kh * g->kw; r++) {
    int64_t kx = r % g->kw, ky = r / g->kw % g->kh, ch = r / (g->kw * g->kh);
    char *plane = x + ch * g->h * g->w * g->size, *row = col + r * g->oh * g->ow * g->size;
    for (int64_t i = 0; i < g->oh; i++)
      for (int64_t j = 0; j < g->ow; j++) {
        int64_t y = i * g->v.stride[0] - g->v.padding[0] + ky * g->v.dilation[0];
        int64_t z = j * g->v.stride[1] - g->v.padding[1] + kx * g->v.dilation[1];
        bool in = y >= 0 && y < g->h && z >= 0 && z < g->w;
        int64_t at = i * g->ow + j, px = y * g->w + z;
        if (g->k == TY_IN_F32) {
          if (!back)
            ((float *)row)[at] = in ? ((float *)plane)[px] : 0;
          else if (in)
            ((float *)plane)[px] += ((float *)row)[at];
        }
        else { if (!back) ((double *)row)[at] = in ? ((double *)plane)[px] : 0; else if (in) ((double *)plane)[px] += ((double *)row)[at]; }
      }
  }
}

static ty_status plain(ty_call *c) {
  const int id = c->op->id;
  const ty_loop_type k = ty_loop_type_of((ty_dtype)c->out[0]->dtype);
  ty_tensor *a, *b, *bias = NULL, *o = c->out[0];
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &a));
  ty_status s = ty_contiguous(c->ctx, c->in[1].t, &b);
  if (s != TY_OK) { ty_release(a); return s; }
  if (id == TY_OP_conv2d && c->in[2].t && (s = ty_contiguous(c->ctx, c->in[2].t, &bias)) != TY_OK) {
    ty_release(a);
    ty_release(b);
    return s;
  }
  geometry g = id == TY_OP_conv2d ? geometry_of(c, a->shape, b->shape, o->shape, k)
             : id == TY_OP_conv2d_backward_input ? geometry_of(c, o->shape, b->shape, a->shape, k)
             : geometry_of(c, b->shape, o->shape, a->shape, k);
  int64_t rows = g.c / g.groups * g.kh * g.kw, px = g.oh * g.ow, og = g.o / g.groups, plane = g.c / g.groups * g.h * g.w;
  char *col = ty_scratch((size_t)TY_MAX(rows * px * g.size, 1)), *dst = ty_data(o);
  const char *pa = ty_data(a), *pb = ty_data(b);
  if (!col) s = ty_no_memory(c->ctx, c->op->shown);
  if (s == TY_OK && id != TY_OP_conv2d && o->storage->nbytes) memset(dst, 0, o->storage->nbytes);
  for (int64_t n = 0; n < g.n && s == TY_OK; n++)
    for (int64_t q = 0; q < g.groups; q++) {
      /* element offsets of this image and group */
      int64_t gy = (n * g.o + q * og) * px, gx = (n * g.groups + q) * plane, gw = q * og * rows;
      if (id == TY_OP_conv2d) {
        columns(&g, (char *)pa + gx * g.size, col, false);
        for (int64_t i = 0; i < og * px; i++)
          if (k == TY_IN_F32) ((float *)dst)[gy + i] = bias ? ((float *)ty_data(bias))[q * og + i / px] : 0;
          else ((double *)dst)[gy + i] = bias ? ((double *)ty_data(bias))[q * og + i / px] : 0;
        ty_gemm(k, 0, 0, og, px, rows, pb + gw * g.size, rows, col, px, 1, dst + gy * g.size, px);
      } else if (id == TY_OP_conv2d_backward_input) {
        ty_gemm(k, 1, 0, rows, px, og, pb + gw * g.size, rows, pa + gy * g.size, px, 0, col, px);
        columns(&g, dst + gx * g.size, col, true);
      } else {
        columns(&g, (char *)pb + gx * g.size, col, false);
        ty_gemm(k, 0, 1, og, rows, px, pa + gy * g.size, px, col, px, 1, dst + gw * g.size, rows);
      }
    }
  ty_scratch_free(col);
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
