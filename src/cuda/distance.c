/* Distances between the rows of two matrices, and their gradients, by kernels/distance.cu. Invariant: the kernels get contiguous
 * operands. */
#include "cuda.h"

ty_status ty_cuda_distance(ty_call *c) {
  const bool back = c->op->id == TY_OP_distances_backward;
  ty_tensor *in[4] = {NULL}, *o = c->out[0];
  int gpu;
  cudaStream_t s;
  if (ty_numel(o) == 0) return TY_OK;
  ty_status st = ty_contiguous_operands(c, in);
  if (st == TY_OK) st = ty_cuda_begin(c, &gpu, &s);
  if (st == TY_OK) {
    const ty_tensor *a = in[back], *b = in[back + 1];
    ty_k_distance k = {.dtype = o->dtype, .batch = 1, .n = a->shape[a->ndim - 2], .m = b->shape[b->ndim - 2], .d = a->shape[a->ndim - 1],
      .p = back ? c->at[TY_AT_distances_backward_p].f : c->at[TY_AT_distances_p].f, .a = ty_data(a), .b = ty_data(b), .o = ty_data(o)};
    for (int i = 0; i < a->ndim - 2; i++) k.batch *= a->shape[i];
    if (back) {
      k.g = ty_data(in[0]);
      k.norms = ty_data(in[3]);
    }
    st = ty_cuda_launched(c, gpu, ty_k_distances(&k, s));
  }
  for (int i = 0; i < 4; i++) ty_release(in[i]);
  return st;
}
