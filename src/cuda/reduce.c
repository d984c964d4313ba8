/* Reductions: dims are sorted into kept and reduced ones, and merged, for kernels/reduce.cu. */
#include "cuda.h"

/* Adds a dim, merged with the last one where that is possible. */
static void add_dim(int64_t *shape, int64_t *step, int *n, int64_t size, int64_t stride) {
  const bool merges = *n && step[*n - 1] == size * stride;
  if (!merges) shape[(*n)++] = 1;
  shape[*n - 1] *= size;
  step[*n - 1] = stride;
}

/* Reduces x's dims in mask; o is contiguous. */
static ty_status reduce(ty_call *c, int gpu, cudaStream_t s, int op, ty_loop_type k, const ty_tensor *x, unsigned mask, void *o,
  int out_dtype, int64_t outputs) {
  ty_k_reduction r = {.op = op, .k = k, .dtype = x->dtype, .out_dtype = out_dtype, .outputs = outputs, .length = 1,
    .x = ty_data(x), .o = o};
  if (r.outputs == 0) return TY_OK;
  for (int i = 0; i < x->ndim; i++) {
    const bool gone = mask >> i & 1;
    if (x->shape[i] == 1) continue;
    if (gone) { add_dim(r.reduce, r.reduce_stride, &r.nreduce, x->shape[i], x->stride[i]); r.length *= x->shape[i]; }
    else add_dim(r.keep, r.keep_stride, &r.nkeep, x->shape[i], x->stride[i]);
  }
  r.splits = ty_k_reduce_splits(&r);
  ty_tensor *partial = NULL, *made = NULL;
  ty_status st = TY_OK;
  if (r.splits > 1) {
    TY_TRY(ty_cuda_new(c, gpu, TY_F64, 1, &(int64_t){r.outputs * r.splits}, &partial));
    r.partial = ty_data(partial);
    st = ty_stream_tickets(c, gpu, &r.ticket, &made);
  }
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_reduce(&r, s));
  ty_release(partial);                     /* goes back to this stream: its later work runs after the kernel */
  ty_release(made);
  return st;
}

ty_status ty_cuda_reduce(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *o = c->out[0];
  int gpu;
  cudaStream_t s;
  unsigned mask = 0;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (!c->at[TY_AT_sum_dim].set) mask = ~0u;
  else for (int i = 0; i < c->at[TY_AT_sum_dim].n; i++) mask |= 1u << c->at[TY_AT_sum_dim].v[i];
  return reduce(c, gpu, s, c->op->id, ty_loop_type_of(c->compute), x, mask, ty_data(o), o->dtype, ty_numel(o));
}

ty_status ty_cuda_reduce_into(ty_call *c, int gpu, cudaStream_t s, int op, const ty_tensor *x, unsigned dims, void *o, ty_dtype d,
  int64_t n) {
  return reduce(c, gpu, s, op, ty_loop_type_of(x->dtype), x, dims, o, d, n);
}
