/* Fourier transforms: lines of contiguous elements, and work space for long ones' passes, for kernels/fourier.cu. */
#include <string.h>
#include "cuda.h"
#include "fourier.h"

static ty_status transforms(ty_call *c) {
  ty_tensor *x, *work[2] = {NULL, NULL}, *o = c->out[0];
  const int kind = (int)c->at[TY_AT_fourier_kind].i;
  const int64_t n = c->at[TY_AT_fourier_n].i;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (ty_numel(o) == 0) return TY_OK;
  const int64_t in = ty_fourier_in(kind, n);
  ty_k_fourier k = {.kind = kind, .dtype = o->dtype, .n = n, .m = ty_fourier_size(kind, n), .in = in, .out = ty_fourier_out(kind, n),
                    .inner = 1, .scale = c->at[TY_AT_fourier_scale].f, .o = ty_data(o)};
  for (int d = o->ndim - ty_fourier_to_pairs(kind) - 1, i = (int)c->at[TY_AT_fourier_inner].i; i > 0; i--) k.inner *= o->shape[d--];
  k.elements = ty_fourier_from_pairs(kind) ? k.m : n / 2 + 1;
  k.lines = ty_numel(o) / k.out;
  if (k.inner > 1) TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  else TY_TRY(ty_lines(c->ctx, c->in[0].t, in, &x, &k.in));
  k.x = ty_data(x);
  ty_status st = TY_OK;
  for (int i = 0; i < 2 && st == TY_OK && k.m > (int64_t)(TY_K_FOURIER_SHARED * sizeof(float)) / ty_itemsize(o); i++) {
    st = ty_cuda_new(c, gpu, o->dtype, 1, &(int64_t){2 * k.m * k.lines}, &work[i]);
    if (st == TY_OK) k.work[i] = ty_data(work[i]);
  }
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_fourier_lines(&k, s));
  ty_release(x);
  for (int i = 0; i < 2; i++) ty_release(work[i]);
  return st;
}

static ty_status multiply(ty_call *c) {
  ty_tensor *o = c->out[0];
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (ty_numel(o) == 0) return TY_OK;
  ty_k_pairs k = {.dtype = o->dtype, .ndim = o->ndim - 1, .n = ty_numel(o) / 2, .conjugate = c->at[TY_AT_pairs_product_conjugate].i != 0,
                  .o = ty_data(o)};
  memcpy(k.shape, o->shape, sizeof(int64_t) * (size_t)k.ndim);
  for (int i = 0; i < 2; i++) {
    const ty_tensor *t = c->in[i].t;
    k.x[i] = ty_data(t);
    k.between[i] = t->stride[t->ndim - 1];
    for (int d = 0; d < t->ndim - 1; d++)
      if (t->shape[d] > 1) k.stride[i][d + o->ndim - t->ndim] = t->stride[d];
  }
  return ty_cuda_launched(c, gpu, ty_k_pairs_product(&k, s));
}

ty_status ty_cuda_fourier(ty_call *c) { return c->op->id == TY_OP_fourier ? transforms(c) : multiply(c); }
