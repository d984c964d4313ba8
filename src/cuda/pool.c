/* Pooling, by kernels/pool.cu. Invariant: results have the infer rule's strides; the kernels take any strides. */
#include "cuda.h"

void ty_cuda_plane_strides(const ty_tensor *t, int64_t s[4]) {
  const int k = t->ndim - 3;
  s[0] = k ? t->stride[0] : 0;
  for (int i = 0; i < 3; i++) s[i + 1] = t->stride[k + i];
}

/* Sets k to a call's geometry: pixels (large), windows (small), positions of maxima. */
void ty_cuda_pooling_of(const ty_call *c, const ty_tensor *large, const ty_tensor *small, const ty_tensor *places, ty_k_pooling *k) {
  const int d = large->ndim - 3;
  const ty_windows v = ty_windows_of(c);
  *k = (ty_k_pooling){.dtype = large->dtype, .max = v.max, .back = v.back, .n = d ? large->shape[0] : 1,
    .c = large->shape[d], .h = large->shape[d + 1], .w = large->shape[d + 2], .oh = small->shape[d + 1],
    .ow = small->shape[d + 2], .adaptive = !v.kernel[0], .include_pad = v.include_pad, .divisor = v.divisor,
    .x = ty_data(large), .y = ty_data(small),
    .places = places ? ty_data(places) : NULL};
  for (int i = 0; i < 2; i++) {
    k->kernel[i] = v.kernel[i];
    k->stride[i] = v.stride[i];
    k->padding[i] = v.padding[i];
    k->dilation[i] = v.dilation[i];
  }
  ty_cuda_plane_strides(large, k->xs);
  ty_cuda_plane_strides(small, k->ys);
  if (places) ty_cuda_plane_strides(places, k->is);
}

ty_status ty_cuda_pool(ty_call *c) {
  const ty_windows v = ty_windows_of(c);
  const ty_tensor *places = v.max && v.back ? c->in[1].t : c->op->nout > 1 ? c->out[1] : NULL;
  int gpu;
  cudaStream_t s;
  ty_k_pooling k;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  ty_cuda_pooling_of(c, v.back ? c->out[0] : c->in[0].t, v.back ? c->in[0].t : c->out[0], places, &k);
  return ty_numel(c->out[0]) ? ty_cuda_launched(c, gpu, ty_k_pool(&k, s)) : TY_OK;
}
