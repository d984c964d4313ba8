/* Convolution: operands brought into the result's layout, then to cuDNN, else to the own kernel. */
#include <string.h>
#include "dnn.h"

static void strides_of(const ty_tensor *t, int64_t s[4]) { memcpy(s, t->stride, sizeof(int64_t) * 4); }

ty_status ty_cuda_conv(ty_call *c) {
  const int id = c->op->id, first = id != TY_OP_conv2d;
  const ty_attr *a = c->at + first;
  ty_tensor *o = c->out[0], *p = NULL, *q = NULL;
  int gpu;
  cudaStream_t s;
  bool taken = false;
  TY_TRY(ty_begin(c, &gpu, &s));
  if (ty_numel(o) == 0) return TY_OK;
  ty_status st = ty_is_dense(c->in[0].t) ? (p = c->in[0].t, TY_OK) : ty_contiguous(c->ctx, c->in[0].t, &p);
  if (st == TY_OK) st = ty_is_dense(c->in[1].t) ? (q = c->in[1].t, TY_OK) : ty_contiguous(c->ctx, c->in[1].t, &q);
  if (st == TY_OK) {
    const ty_tensor *x = id == TY_OP_conv2d ? p : id == TY_OP_conv2d_backward_input ? o : q, *w = id == TY_OP_conv2d_backward_weight ? o : q, *y = id == TY_OP_conv2d ? o : p;
    const ty_tensor *bias = id == TY_OP_conv2d ? c->in[2].t : NULL;
    ty_k_convolution k = {.op = id, .dtype = o->dtype, .n = x->shape[0], .c = x->shape[1], .h = x->shape[2], .w = x->shape[3], .o = w->shape[0], .oh = y->shape[2], .ow = y->shape[3],
                          .kh = w->shape[2], .kw = w->shape[3], .groups = a[3].i, .x = ty_data(x), .weight = ty_data(w), .y = ty_data(y), .bias = bias ? ty_data(bias) : NULL,
                          .bias_step = bias ? bias->stride[0] : 0};
    for (int i = 0; i < 2; i++) { k.stride[i] = a[0].v[i]; k.padding[i] = a[1].v[i]; k.dilation[i] = a[2].v[i]; }
    strides_of(x, k.xs);
    strides_of(w, k.ws);
    strides_of(y, k.ys);
    if (k.n && k.c && ty_numel(y)) st = ty_dnn_convolve(c, gpu, &k, ty_stream_of(c->ctx, gpu), &taken);
    if (st == TY_OK && !taken) st = ty_launched(c, gpu, ty_k_convolve(&k, s));
  }
  if (p != c->in[0].t) ty_release(p);
  if (q != c->in[1].t) ty_release(q);
  return st;
}
