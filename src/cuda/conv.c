/* Convolution: brings operands into the fast layout, then calls cuDNN, or the own kernel where cuDNN doesn't take it.
 *
 * Idea: 16-bit tensors become channels-last, with a multiple of 8 channels, as Tensor Cores read them; others stay as they are, if dense.
 * Invariant: the own kernel takes whatever the library doesn't, with the same operands. */
#include <string.h>
#include "dnn.h"

/* The strides of a tensor in one of the two layouts; dims of size 1 get the strides that a larger size would have. */
static void strides_of(const ty_tensor *t, bool last, int64_t s[4]) {
  const int64_t rows[4] = {t->shape[1] * t->shape[2] * t->shape[3], t->shape[2] * t->shape[3], t->shape[3], 1};
  if (last || !ty_is_contiguous(t)) ty_channels_last_strides(t->shape, 4, s);
  else memcpy(s, rows, sizeof rows);
}

/* t, or a copy of it, in one of the two layouts. */
static ty_status laid_out(ty_call *c, bool last, ty_tensor *t, ty_tensor **out) {
  return last ? ty_channels_last(c->ctx, t, out) : ty_laid_out_as(c->ctx, t, t, out);
}

/* 16-bit images of few channels get more channels, of 0, up to a multiple of WHOLE, so that Tensor Cores read whole packs. */
#define WHOLE 8
#define FEWEST 3                 /* for 1 the library's own kernels were faster; 2 was not tried */
#define FEW 32                   /* for more channels the library does it itself, at little cost */

/* A new channels-last tensor of t's shape but with so many channels. */
static ty_status widened(ty_call *c, int gpu, const ty_tensor *t, int64_t channels, ty_tensor **out) {
  ty_meta m = {.dtype = t->dtype, .ndim = 4, .has_stride = true};
  memcpy(m.shape, t->shape, sizeof m.shape);
  m.shape[1] = channels;
  ty_channels_last_strides(m.shape, 4, m.stride);
  return ty_empty(c->ctx, &ty_gpus[gpu], &m, out);
}

/* Its first channels, a view. */
static ty_tensor first_channels(const ty_tensor *t, int64_t channels) {
  ty_tensor w = *t;
  w.shape[1] = channels;
  return w;
}

/* t as cuDNN is to read it: in the fast layout, with so many channels. */
static ty_status operand(ty_call *c, int gpu, cudaStream_t s, bool last, ty_tensor *t, int64_t channels, ty_tensor **out) {
  if (t->shape[1] == channels) return laid_out(c, last, t, out);
  TY_TRY(widened(c, gpu, t, channels, out));
  ty_k_widening w = {.n = t->shape[0], .c = t->shape[1], .h = t->shape[2], .w = t->shape[3], .channels = channels,
    .x = ty_data(t), .o = ty_data(*out)};
  memcpy(w.stride, t->stride, sizeof w.stride);
  return ty_cuda_launched(c, gpu, ty_k_widen(&w, s));
}

ty_status ty_cuda_conv(ty_call *c) {
  const int id = c->op->id;
  const ty_windows v = ty_windows_of(c);
  ty_tensor *p = NULL, *q = NULL, *r = NULL, *bias = NULL, *out = c->out[0];
  const bool last = ty_is_16bit(out->dtype);
  int gpu;
  cudaStream_t s;
  bool taken = false;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (ty_numel(out) == 0) return TY_OK;
  /* the image and the weight have equally many channels; the second operand is one of them, the result or the first operand the other */
  const int64_t few = c->in[1].t->shape[1],
    channels = last && v.groups == 1 && few >= FEWEST && few <= FEW ? (few + WHOLE - 1) / WHOLE * WHOLE : few;
  const bool into = channels != few && id != TY_OP_conv2d;           /* r gets more channels than the result has */
  ty_status st = operand(c, gpu, s, last, c->in[0].t, c->in[0].t->shape[1] + (id == TY_OP_conv2d ? channels - few : 0), &p);
  if (st == TY_OK) st = operand(c, gpu, s, last, c->in[1].t, channels, &q);
  /* cuDNN ignores the strides of an operand that it broadcasts */
  if (st == TY_OK && id == TY_OP_conv2d && c->in[2].t) st = ty_contiguous(c->ctx, c->in[2].t, &bias);
  if (st == TY_OK) st = ty_cuda_align_data(c, gpu, s, &p);
  if (st == TY_OK) st = ty_cuda_align_data(c, gpu, s, &q);
  if (st == TY_OK) st = ty_cuda_align_data(c, gpu, s, &bias);
  if (st == TY_OK && (into || (last && !ty_is_channels_last(out)))) st = widened(c, gpu, out, into ? channels : out->shape[1], &r);
  if (st == TY_OK) {
    const ty_tensor *o = r ? r : out, *x = id == TY_OP_conv2d ? p : id == TY_OP_conv2d_backward_input ? o : q,
      *w = id == TY_OP_conv2d_backward_weight ? o : q, *y = id == TY_OP_conv2d ? o : p;
    ty_k_convolution k = {.op = id, .dtype = o->dtype, .n = x->shape[0], .c = x->shape[1], .h = x->shape[2],
                          .w = x->shape[3], .o = w->shape[0], .oh = y->shape[2], .ow = y->shape[3], .kh = w->shape[2],
                          .kw = w->shape[3], .groups = v.groups, .x = ty_data(x), .weight = ty_data(w), .y = ty_data(y),
                          .bias = bias ? ty_data(bias) : NULL};
    for (int i = 0; i < 2; i++) { k.stride[i] = v.stride[i]; k.padding[i] = v.padding[i]; k.dilation[i] = v.dilation[i]; }
    strides_of(x, last, k.xs);
    strides_of(w, last, k.ws);
    strides_of(y, last, k.ys);
    if (k.n && k.c && ty_numel(y)) st = ty_dnn_convolve(c, gpu, &k, ty_stream_of(c->ctx, gpu), &taken);
    if (st == TY_OK && !taken) st = ty_cuda_launched(c, gpu, ty_k_convolve(&k, s));
    if (st == TY_OK && r) {
      const ty_tensor w = first_channels(r, out->shape[1]);
      st = ty_cuda_launched(c, gpu, ty_cuda_convert(out, &w, s));
    }
  }
  ty_release(p);
  ty_release(q);
  ty_release(r);
  ty_release(bias);
  return st;
}
