/* grid_sample and its gradients, by kernels/sample.cu. Invariant: the kernels get contiguous operands. */
#include "cuda.h"
#include "grid_points.h"

ty_status ty_cuda_sample(ty_call *c) {
  const int id = c->op->id;
  const ty_sample_kind kind = id == TY_OP_grid_sample_take ? TY_SAMPLE_TAKE :
    id == TY_OP_grid_sample_backward_grid ? TY_SAMPLE_BACKWARD_GRID : TY_SAMPLE_BACKWARD_X;
  const ty_sampling_options how = ty_sampling_options_of(c);
  ty_tensor *in[3] = {NULL}, *o = c->out[0];
  int gpu;
  cudaStream_t s;
  if (ty_numel(o) == 0) return TY_OK;
  ty_status st = ty_contiguous_operands(c, in);
  if (st == TY_OK) st = ty_cuda_begin(c, &gpu, &s);
  if (st == TY_OK) {
    const ty_tensor *x = kind == TY_SAMPLE_TAKE ? in[0] : kind == TY_SAMPLE_BACKWARD_GRID ? in[1] : o;
    const ty_tensor *y = kind == TY_SAMPLE_TAKE ? o : in[0];
    const ty_tensor *grid = in[kind == TY_SAMPLE_BACKWARD_GRID ? 2 : 1];
    const ty_k_sampling k = {.kind = kind, .dtype = o->dtype, .nearest = how.mode == TY_GRID_NEAREST, .padding = how.padding,
      .corners = how.corners, .ordered = ty_core->flags->deterministic,
      .n = x->shape[0], .c = x->shape[1], .h = x->shape[2], .w = x->shape[3],
      .points = grid->shape[1] * grid->shape[2], .x = ty_data(x), .y = ty_data(y), .slopes = ty_data(o), .grid = ty_data(grid)};
    const size_t bytes = ty_nbytes(o);
    if (kind == TY_SAMPLE_BACKWARD_X) st = ty_cuda_launched(c, gpu, cudaMemsetAsync(ty_data(o), 0, bytes, s));
    if (st == TY_OK && k.points) st = ty_cuda_launched(c, gpu, ty_k_sample(&k, s));
  }
  for (int i = 0; i < 3; i++) ty_release(in[i]);
  return st;
}
