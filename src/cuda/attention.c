/* Attention: operands to the kernels' struct, strides as they are; to cuDNN, else to the own kernel. */
#include <string.h>
#include "dnn.h"

static ty_k_heads heads_of(const ty_tensor *t) {
  ty_k_heads h = {.p = ty_data(t)};
  memcpy(h.stride, t->stride, sizeof h.stride);
  return h;
}

ty_status ty_cuda_attention(ty_call *c) {
  const bool back = c->op->id == TY_OP_attention_backward;
  const ty_operand *in = c->in + back;
  const ty_tensor *q = in[0].t, *k = in[1].t, *v = in[2].t, *mask = in[3].t;
  ty_tensor *delta = NULL;
  bool taken = false;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_begin(c, &gpu, &s));
  ty_k_attention a = {.dtype = q->dtype, .causal = (int)c->at[0].i, .scale = c->at[1].f, .dropout = c->at[2].f,
                      .heads = q->shape[0] * q->shape[1], .h = q->shape[1], .lq = q->shape[2], .lk = k->shape[2],
                      .d = q->shape[3], .dv = v->shape[3], .q = heads_of(q), .k = heads_of(k), .v = heads_of(v)};
  if (mask) { a.mask = heads_of(mask); a.mask_dtype = mask->dtype; }
  if (!back) {
    a.o = heads_of(c->out[0]);
    a.lse = ty_data(c->out[1]);
    a.rng = ty_data(c->out[2]);
    if (a.heads * a.lq == 0) return ty_launched(c, gpu, cudaMemsetAsync(a.rng, 0, 2 * sizeof(int64_t), s));
    TY_TRY(ty_dnn_attend(c, gpu, &a, ty_stream_of(c->ctx, gpu), &taken));
    return ty_launched(c, gpu,
      taken ? cudaMemsetAsync(a.rng, 0, 2 * sizeof(int64_t), s)
      : ty_generator_end(gpu, ty_k_attend(&a, ty_generator_begin(c->ctx, gpu), s)));
  }
  a.g = heads_of(c->in[0].t);
  a.o = heads_of(c->in[5].t);
  a.lse = ty_data(c->in[6].t);
  a.rng = ty_data(c->in[7].t);
  a.dq = heads_of(c->out[0]);
  a.dk = heads_of(c->out[1]);
  a.dvalue = heads_of(c->out[2]);
  if (a.heads * a.lq * a.lk == 0) {        /* nobody attends to anything */
    for (int i = 0; i < 3; i++) TY_TRY(ty_launched(c, gpu, ty_fill_number(c->out[i], ty_op_int(0), s)));
    return TY_OK;
  }
  TY_TRY(ty_dnn_attend(c, gpu, &a, ty_stream_of(c->ctx, gpu), &taken));
  if (taken) return TY_OK;
  const ty_meta m = {.dtype = c->in[6].t->dtype, .ndim = 1, .shape = {a.heads * a.lq}};
  TY_TRY(ty_empty(c->ctx, &ty_gpus[gpu], &m, &delta));
  a.delta = ty_data(delta);
  ty_status st = ty_launched(c, gpu, ty_k_attend(&a, NULL, s));
  ty_release(delta);
  return st;
}
