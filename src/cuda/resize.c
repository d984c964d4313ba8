/* interpolate, by kernels/resize.cu. Invariant: results have the infer rule's strides; the kernels take any strides. */
#include "cuda.h"
#include "grid_points.h"

ty_status ty_cuda_resize(ty_call *c) {
  const bool back = c->op->id == TY_OP_resize_backward;
  const ty_tensor *x = back ? c->out[0] : c->in[0].t, *y = back ? c->in[0].t : c->out[0];
  const ty_sampling_options how = ty_sampling_options_of(c);
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  ty_k_resizing k = {.dtype = x->dtype, .mode = how.mode, .corners = how.corners, .back = back, .n = x->shape[0],
                     .c = x->shape[1], .in = {x->shape[2], x->shape[3]}, .out = {y->shape[2], y->shape[3]},
                     .factor = {how.factor[0], how.factor[1]}, .x = ty_data(x), .y = ty_data(y)};
  ty_cuda_plane_strides(x, k.xs);
  ty_cuda_plane_strides(y, k.ys);
  return ty_numel(c->out[0]) ? ty_cuda_launched(c, gpu, ty_k_resize(&k, s)) : TY_OK;
}
