/* Convolution: operands brought into the layout that is fast, then to cuDNN, else to the own kernel.
 *
 * Idea: 16-bit tensors go channels-last, since Tensor Cores read them so; others as they lie, if dense. */
#include <string.h>
#include "dnn.h"

static void channels_last(const int64_t *shape, int64_t s[4]) {
  s[1] = 1;
  s[3] = shape[1];
  s[2] = shape[3] * s[3];
  s[0] = shape[2] * s[2];
}

/* Of a tensor in one of the two layouts; dims of size 1 have the strides that they would have otherwise. */
static void strides_of(const ty_tensor *t, bool last, int64_t s[4]) {
  const int64_t rows[4] = {t->shape[1] * t->shape[2] * t->shape[3], t->shape[2] * t->shape[3], t->shape[3], 1};
  if (last || !ty_is_contiguous(t)) channels_last(t->shape, s);
  else memcpy(s, rows, sizeof rows);
}

/* t, or a copy of it, in one of the two layouts. */
static ty_status laid_out(ty_call *c, bool last, ty_tensor *t, ty_tensor **out) {
  return last ? ty_channels_last(c->ctx, t, out) : ty_laid_out_as(c->ctx, t, t, out);
}

ty_status ty_cuda_conv(ty_call *c) {
  const int id = c->op->id, first = id != TY_OP_conv2d;
  const ty_attr *a = c->at + first;
  ty_tensor *p = NULL, *q = NULL, *r = NULL, *bias = NULL, *out = c->out[0];
  const bool last = ty_is_half((ty_dtype)out->dtype);
  int gpu;
  cudaStream_t s;
  bool taken = false;
  TY_TRY(ty_begin(c, &gpu, &s));
  if (ty_numel(out) == 0) return TY_OK;
  ty_status st = laid_out(c, last, c->in[0].t, &p);
  if (st == TY_OK) st = laid_out(c, last, c->in[1].t, &q);
  if (st == TY_OK && id == TY_OP_conv2d && c->in[2].t) st = ty_contiguous(c->ctx, c->in[2].t, &bias);      /* cuDNN ignores the strides of what it spreads */
  if (st == TY_OK && last && !ty_is_channels_last(out)) {
    ty_meta m = {.dtype = out->dtype, .ndim = 4, .has_stride = true};
    memcpy(m.shape, out->shape, sizeof m.shape);
    channels_last(out->shape, m.stride);
    st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &r);
  }
  if (st == TY_OK) {
    const ty_tensor *o = r ? r : out, *x = id == TY_OP_conv2d ? p : id == TY_OP_conv2d_backward_input ? o : q, *w = id == TY_OP_conv2d_backward_weight ? o : q, *y = id == TY_OP_conv2d ? o : p;
    ty_k_convolution k = {.op = id, .dtype = o->dtype, .n = x->shape[0], .c = x->shape[1], .h = x->shape[2], .w = x->shape[3], .o = w->shape[0], .oh = y->shape[2], .ow = y->shape[3],
                          .kh = w->shape[2], .kw = w->shape[3], .groups = a[3].i, .x = ty_data(x), .weight = ty_data(w), .y = ty_data(y), .bias = bias ? ty_data(bias) : NULL};
    for (int i = 0; i < 2; i++) { k.stride[i] = a[0].v[i]; k.padding[i] = a[1].v[i]; k.dilation[i] = a[2].v[i]; }
    strides_of(x, last, k.xs);
    strides_of(w, last, k.ws);
    strides_of(y, last, k.ys);
    if (k.n && k.c && ty_numel(y)) st = ty_dnn_convolve(c, gpu, &k, ty_stream_of(c->ctx, gpu), &taken);
    if (st == TY_OK && !taken) st = ty_launched(c, gpu, ty_k_convolve(&k, s));
    if (st == TY_OK && r) st = ty_launched(c, gpu, ty_convert(out, r, s));
  }
  ty_release(p);
  ty_release(q);
  ty_release(r);
  ty_release(bias);
  return st;
}
