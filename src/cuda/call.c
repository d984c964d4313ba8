/* How an op's call on a GPU begins and ends: device, stream, the memory it uses, errors that its kernels and earlier ones have reported.
 *
 * Invariant: nothing waits, except where set_sync_debug asks for it or an error is returned anyway. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "cuda.h"

/* What a kernel found wrong. earlier: it may have been an earlier op's kernel. */
static ty_status reported(ty_ctx *ctx, int gpu, bool earlier) {
  ty_k_fault *f = ty_cuda_fault_of(gpu);        /* NULL: the device was never opened */
  if (!f || f->fault == TY_FAULT_NONE) return TY_OK;
  atomic_thread_fence(memory_order_acquire);       /* the kernel wrote fault last (report in kernels/device.cuh) */
  const long long value = f->value, limit = f->limit;
  const int fault = f->fault;
  char name[240];
  ty_cuda_site_text(f->site, gpu, earlier, name, sizeof name);
  if (ty_cuda_wait(false) != cudaSuccess) cudaGetLastError();          /* else kernels still running could report it again */
  f->fault = TY_FAULT_NONE;
  f->epoch++;
  switch (fault) {
    case TY_FAULT_PROBABILITY:
      return ty_error(ctx, "%s: row %lld has an element that isn't a probability, finite and not negative",
        name, value);
    case TY_FAULT_TOO_FEW:
      return ty_error(ctx, "%s: row %lld has %lld elements above 0; more indices can't be drawn from it", name, value, limit);
    case TY_FAULT_LABEL:
      return value == 0 ? ty_error(ctx, "%s: label 0: class labels begin at 1", name)
        : ty_error(ctx, "%s: label %lld is not one of %lld classes", name, value, limit);
    default:
      return value == 0 ? ty_error(ctx, "%s: index 0: indices begin at 1", name)
        : ty_error(ctx, "%s: index %lld is out of range 1 to %lld", name, value, limit);
  }
}

ty_status ty_cuda_reported(ty_ctx *ctx, int gpu) { return reported(ctx, gpu, true); }

void ty_cuda_uses_of(const ty_call *c, ty_stream *s) {
  for (int i = 0; i < c->nin; i++)
    if (c->in[i].t && ty_device_of(c->in[i].t)->gpu >= 0) ty_cuda_uses(s, c->in[i].t->storage);
  for (int j = 0; j < TY_MAXOUT; j++)
    if (c->out[j]) ty_cuda_uses(s, c->out[j]->storage);
}

ty_status ty_cuda_enter(ty_ctx *ctx, int gpu, ty_stream **s) {
  *s = ty_stream_of(ctx, gpu);
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  TY_TRY(ty_stream_accepts(ctx, *s));
  return reported(ctx, gpu, true);
}

int ty_cuda_gpu_of(const ty_call *c) {
  return ty_device_of(c->op->nout && c->out[0] ? c->out[0] : c->in[0].t)->gpu;         /* a late result doesn't exist yet */
}

ty_status ty_cuda_begin(ty_call *c, int *gpu, cudaStream_t *s) {
  ty_stream *stream;
  *gpu = ty_cuda_gpu_of(c);
  TY_TRY(ty_cuda_enter(c->ctx, *gpu, &stream));
  ty_cuda_uses_of(c, stream);
  *s = stream->s;
  return TY_OK;
}

ty_status ty_cuda_sent(ty_ctx *ctx, const char *name, int gpu, cudaError_t e) {
  if (e == cudaSuccess && ty_core->flags->sync_debug && !ty_capturing()) {
    ty_cuda_count_sync();
    e = cudaStreamSynchronize(ty_stream_of(ctx, gpu)->s);
    if (e == cudaSuccess) return reported(ctx, gpu, false);
  }
  return e == cudaSuccess ? TY_OK : ty_cuda_fail(ctx, e, name, gpu);
}
ty_status ty_cuda_launched(ty_call *c, int gpu, cudaError_t e) { return ty_cuda_sent(c->ctx, c->op->shown, gpu, e); }

ty_tensor ty_dim_last(const ty_tensor *t, int dim) {
  ty_tensor v = *t;
  for (int i = dim; i + 1 < t->ndim; i++) { v.shape[i] = t->shape[i + 1]; v.stride[i] = t->stride[i + 1]; }
  if (t->ndim) { v.shape[t->ndim - 1] = t->shape[dim]; v.stride[t->ndim - 1] = t->stride[dim]; }
  return v;
}

ty_status ty_cuda_new(ty_call *c, int gpu, ty_dtype d, int ndim, const int64_t *shape, ty_tensor **out) {
  ty_meta m = {.dtype = d, .ndim = ndim};
  memcpy(m.shape, shape, sizeof(int64_t) * (size_t)ndim);
  return ty_empty(c->ctx, &ty_gpus[gpu], &m, out);
}

void ty_cuda_lines_of(const ty_tensor *t, int dim, int64_t *lines, int64_t *n, int64_t *inner) {
  *lines = *inner = 1;
  *n = t->ndim ? t->shape[dim] : 1;
  for (int i = 0; i < t->ndim; i++) {
    if (i != dim) *lines *= t->shape[i];
    if (i > dim) *inner *= t->shape[i];
  }
}
