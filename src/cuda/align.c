/* ctc_loss's paths and their gradient, by kernels/align.cu. */
#include "cuda.h"

ty_status ty_cuda_align(ty_call *c) {
  const bool back = c->op->id == TY_OP_ctc_backward;
  ty_tensor *in[5] = {NULL};               /* logs, skips, lengths; backward: grad before them, reached after */
  int gpu;
  cudaStream_t s;
  if (ty_numel(c->out[0]) == 0) return TY_OK;
  ty_status st = ty_contiguous_operands(c, in);
  if (st == TY_OK) st = ty_cuda_begin(c, &gpu, &s);
  if (st == TY_OK) {
    const ty_tensor *x = in[back];
    const ty_k_ctc k = {.dtype = x->dtype, .steps = x->shape[0], .n = x->shape[1], .s = x->shape[2], .logs = ty_data(x),
      .skips = ty_data(in[back + 1]), .lengths = ty_data(in[back + 2]), .grad = back ? ty_data(in[0]) : NULL,
      .reached = ty_data(back ? in[4] : c->out[1]), .last = back ? NULL : ty_data(c->out[0]), .slopes = back ? ty_data(c->out[0]) : NULL};
    st = ty_cuda_launched(c, gpu, ty_k_ctc_paths(&k, s));
  }
  for (int i = 0; i < 5; i++) ty_release(in[i]);
  return st;
}
