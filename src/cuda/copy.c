/* Copies between devices, and on one device.
 *
 * Idea: on one device everything is done by the conversion kernel, or by one plain copy where both sides are dense. Invariant:
 * host memory that isn't pinned is no longer used when the call returns. */
#include <stdio.h>
#include <string.h>
#include "cuda.h"
#include "math.h"

static enum cudaMemcpyKind kind_of(const ty_backend *to, const ty_backend *from) {
  return to->gpu < 0 ? cudaMemcpyDeviceToHost : from->gpu < 0 ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

/* Warns of a wait for the device, or refuses it, if the user has asked for that. */
static ty_status about_to_wait(ty_ctx *ctx) {
  char where[128];
  if (ty_core->flags->warn_sync && ctx->host) {
    ctx->host->where(ctx, where, sizeof where);
    fprintf(stderr, "%swarning: this waits for the device\n", where);
  }
  return ty_core->flags->refuse_sync ? ty_error(ctx, "this waits for the device, which set_sync_debug_mode('error') refuses") : TY_OK;
}

/* Lets two devices read each other's memory, if they can; else copies between them go through the host. Done once. */
static void enable_peer_access(int a, int b) {
  static _Atomic bool met[TY_MAXGPU][TY_MAXGPU];
  if (atomic_exchange(&met[a][b], true)) return;
  const enum cudaStreamCaptureMode mode = ty_capture_mode(cudaStreamCaptureModeRelaxed);
  for (int k = 0; k < 2; k++) {
    const int from = k ? a : b, to = k ? b : a;
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can && ty_cuda_use(from) == cudaSuccess) {
      cudaDeviceEnablePeerAccess(to, 0);
      ty_memory_opens_to(to, from);
    }
  }
  cudaGetLastError();                      /* already allowed, or not possible: the copy works either way */
  ty_capture_mode(mode);
}

/* Whether a copy from `host` has read everything when the call returns. The runtime reads pageable memory through a buffer of its own; not
 * so what another library has page-locked, nor where the device can read the host's pages itself. */
static bool is_staged(int gpu, const void *host) {
  static _Atomic int reads[TY_MAXGPU];     /* 0: not asked yet, 1: no, 2: yes */
  struct cudaPointerAttributes a;
  int r = 1;
  if (!reads[gpu] && cudaDeviceGetAttribute(&r, cudaDevAttrPageableMemoryAccess, gpu) == cudaSuccess) reads[gpu] = 1 + !!r;
  const bool known = cudaPointerGetAttributes(&a, host) == cudaSuccess;
  if (!known) cudaGetLastError();
  return known && a.type == cudaMemoryTypeUnregistered && reads[gpu] == 1;
}

/* Up to so many bytes are copied from a pinned buffer instead, so that nothing waits for the device. */
#define STAGED (64 << 10)
static ty_status stage(ty_ctx *ctx, const char **s, size_t n, void **own) {
  TY_TRY(ty_pin(ctx, n, own));
  memcpy(*own, *s, n);
  *s = *own;
  return TY_OK;
}

ty_status ty_cuda_transfer(ty_ctx *ctx, const ty_backend *b, ty_storage *dst, size_t dst_at, const ty_storage *src,
  size_t src_at, size_t n, bool wait) {
  const ty_backend *to = dst->backend, *from = src->backend;
  char *d = (char *)dst->data + dst_at;
  const char *s = (const char *)src->data + src_at;
  ty_stream *stream = ty_stream_of(ctx, b->gpu);
  CUDA(ctx, b->gpu, ty_cuda_use(b->gpu));
  TY_TRY(ty_stream_accepts(ctx, stream));
  if (to->gpu >= 0 && from->gpu >= 0) {    /* after the source's stream, which then waits for the copy */
    ty_stream *theirs = ty_stream_of(ctx, from->gpu);
    stream = ty_stream_of(ctx, to->gpu);
    if (ty_captures(to->gpu) != ty_captures(from->gpu)) TY_TRY(ty_refuse_capture(ctx, "a copy from or to a GPU that isn't captured"));
    if (to != from) enable_peer_access(TY_MIN(to->gpu, from->gpu), TY_MAX(to->gpu, from->gpu));
    CUDA(ctx, to->gpu, ty_cuda_use(to->gpu));
    ty_stream_wait_for(stream, theirs);
    ty_cuda_uses(stream, (ty_storage *)src);
    ty_cuda_uses(stream, dst);
    CUDA(ctx, to->gpu, cudaMemcpyPeerAsync(d, to->gpu, s, from->gpu, n, stream->s));
    ty_stream_wait_for(theirs, stream);
    return TY_OK;
  }
  const void *host = to->gpu < 0 ? (const void *)d : s;
  const bool pinned = ty_pinned(host);
  if (!pinned || (wait && to->gpu < 0))
    TY_TRY(ty_refuse_capture(ctx,
      pinned ? "a copy to the cpu that waits" : "a copy from or to memory of the cpu that isn't pinned"));
  const bool lasts = pinned || (to->gpu >= 0 && is_staged(b->gpu, host));      /* s is valid for as long as the copy reads it */
  void *own = NULL;
  if (!lasts && to->gpu >= 0 && n <= STAGED) TY_TRY(stage(ctx, &s, n, &own));
  const bool waits = pinned ? wait && !ty_captures(b->gpu) : !lasts && !own;
  if (waits) TY_TRY(about_to_wait(ctx));
  ty_cuda_uses(stream, dst);
  ty_cuda_uses(stream, (ty_storage *)src);
  if (pinned) ty_pinned_follows(host, stream);
  const cudaError_t e = cudaMemcpyAsync(d, s, n, kind_of(to, from), stream->s);
  if (own) {
    ty_pinned_used_on(own, stream);
    ty_unpin(own);
  }
  CUDA(ctx, b->gpu, e);
  if (pinned) ty_pinned_used_on(host, stream);
  if (waits) {
    ty_cuda_count_sync();
    CUDA(ctx, b->gpu, cudaStreamSynchronize(stream->s));
    return ty_cuda_reported(ctx, b->gpu);       /* what was copied may come from an op that found a bad index */
  }
  return TY_OK;
}

ty_status ty_cuda_read(ty_ctx *ctx, const ty_storage *src, size_t at, void *dst, size_t n) {
  const int gpu = src->backend->gpu;
  ty_stream *stream = ty_stream_of(ctx, gpu);
  TY_TRY(ty_refuse_capture(ctx, "an element's value is needed"));
  TY_TRY(about_to_wait(ctx));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  TY_TRY(ty_stream_accepts(ctx, stream));
  ty_cuda_used_on(src, stream);
  CUDA(ctx, gpu, cudaMemcpyAsync(dst, (const char *)src->data + at, n, cudaMemcpyDeviceToHost, stream->s));
  ty_cuda_count_sync();
  CUDA(ctx, gpu, cudaStreamSynchronize(stream->s));
  return ty_cuda_reported(ctx, gpu);
}

/* ---- on one device ---- */

bool ty_cuda_trade(ty_ctx *ctx, const ty_backend *b, ty_storage *held, ty_storage *fresh) {
  ty_stream *stream = ty_stream_of(ctx, b->gpu);
  if (held->nbytes != fresh->nbytes || ty_capturing() || stream->external || ty_cuda_used_elsewhere(held, stream)) return false;
  if (ty_cuda_use(b->gpu) != cudaSuccess ||
      cudaMemcpyAsync(fresh->data, held->data, held->nbytes, cudaMemcpyDeviceToDevice, stream->s) != cudaSuccess) {
    cudaGetLastError();                    /* else the next launch would report it again */
    return false;
  }
  ty_swap_memory(held, fresh);
  ty_cuda_is_late(held);
  return true;
}

cudaError_t ty_cuda_convert(const ty_tensor *dst, const ty_tensor *src, cudaStream_t s) {
  ty_k_point a = {.op = -1, .k = ty_loop_type_of(src->dtype), .nin = 1, .ndim = dst->ndim, .n = ty_numel(dst)};
  if (a.n == 0) return cudaSuccess;
  memcpy(a.shape, dst->shape, sizeof a.shape);
  a.o[0] = (ty_k_operand){.p = ty_data(dst), .dtype = dst->dtype, .how = TY_K_STRIDED};
  a.o[1] = (ty_k_operand){.p = ty_data(src), .dtype = src->dtype, .how = TY_K_STRIDED};
  memcpy(a.o[0].stride, dst->stride, sizeof a.o[0].stride);
  const int lead = dst->ndim - src->ndim;                /* negative: src has leading dims of size 1 */
  for (int i = 0; i < dst->ndim; i++) a.o[1].stride[i] = i < lead || src->shape[i - lead] == 1 ? 0 : src->stride[i - lead];
  ty_cuda_in_memory_order(&a);
  if (a.ndim == 0) {                       /* one element */
    a.ndim = 1;
    a.shape[0] = a.o[0].stride[0] = a.o[1].stride[0] = 1;
  }
  if (a.ndim == 1 && a.o[0].stride[0] == 1 && a.o[1].stride[0] == 1) a.o[0].how = a.o[1].how = TY_K_DENSE;
  return ty_k_copy(&a, (int)ty_itemsize(dst), s);
}

ty_status ty_cuda_align_data(ty_call *c, int gpu, cudaStream_t s, ty_tensor **t) {
  ty_tensor *copy;
  if (!*t || (uintptr_t)ty_data(*t) % 16 == 0) return TY_OK;
  ty_meta m = {.dtype = (*t)->dtype, .ndim = (*t)->ndim, .has_stride = true};
  memcpy(m.shape, (*t)->shape, sizeof m.shape);
  memcpy(m.stride, (*t)->stride, sizeof m.stride);
  TY_TRY(ty_empty(c->ctx, &ty_gpus[gpu], &m, &copy));
  const ty_status st = ty_cuda_launched(c, gpu, ty_cuda_convert(copy, *t, s));
  ty_release(*t);
  *t = copy;
  return st;
}

/* The bits of number v as an element of dtype d. */
static uint64_t bits_of(ty_dtype d, ty_operand v) {
  const double f = v.f;
  const int64_t i = v.kind == TY_FLOAT ? ty_whole(v.f) : v.i;
  const float single = (float)f;
  uint64_t bits = 0;
  switch (d) {
    case TY_F64: memcpy(&bits, &f, sizeof f); return bits;
    case TY_F32: memcpy(&bits, &single, sizeof single); return bits;
    case TY_F16: return ty_f32_to_f16(single);
    case TY_BF16: return ty_f32_to_bf16(single);
    case TY_I32: return (uint32_t)i;
    case TY_BOOL: return v.kind == TY_FLOAT ? f != 0 : i != 0;
    case TY_U8: return (uint8_t)i;
    default: return (uint64_t)i;
  }
}

cudaError_t ty_cuda_fill_number(const ty_tensor *dst, ty_operand v, cudaStream_t s) {
  const int64_t n = ty_numel(dst);
  if (n == 0) return cudaSuccess;
  if (ty_is_dense(dst)) {
    const uint64_t bits = bits_of(dst->dtype, v);
    return bits ? ty_k_fill(ty_data(dst), (int)ty_itemsize(dst), bits, n, s)
      : cudaMemsetAsync(ty_data(dst), 0, (size_t)(n * ty_itemsize(dst)), s);
  }
  const bool wide = v.kind == TY_FLOAT || ty_is_float(dst->dtype);
  ty_k_point a = {.op = -1, .k = wide ? TY_IN_F64 : TY_IN_I64, .nin = 1, .ndim = dst->ndim, .n = n};
  memcpy(a.shape, dst->shape, sizeof a.shape);
  a.o[0] = (ty_k_operand){.p = ty_data(dst), .dtype = dst->dtype, .how = TY_K_STRIDED};
  memcpy(a.o[0].stride, dst->stride, sizeof a.o[0].stride);
  a.o[1] = (ty_k_operand){.how = TY_K_NUMBER, .f = v.f, .i = v.i};
  ty_cuda_in_memory_order(&a);
  return ty_k_pointwise(&a, s);
}

static ty_status triangle(ty_call *c, int gpu, cudaStream_t s) {
  const ty_tensor *o = c->out[0];
  ty_tensor *x;
  if (ty_numel(o) == 0) return TY_OK;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  cudaError_t e = ty_k_triangle(ty_data(o), ty_data(x), o->dtype, ty_numel(o), o->shape[o->ndim - 2],
    o->shape[o->ndim - 1], c->at[TY_AT_tril_k].i, c->op->id == TY_OP_tril, s);
  ty_release(x);
  return ty_cuda_launched(c, gpu, e);
}

ty_status ty_cuda_copy(ty_call *c) {
  int gpu;
  cudaStream_t s;
  cudaError_t e;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  switch (c->op->id) {
    case TY_OP_copy: e = c->in[1].t ? ty_cuda_convert(c->out[0], c->in[1].t, s) : ty_cuda_fill_number(c->out[0], c->in[1], s); break;
    case TY_OP_clone: case TY_OP_cast: e = ty_cuda_convert(c->out[0], c->in[0].t, s); break;
    case TY_OP_tril: case TY_OP_triu: return triangle(c, gpu, s);
    default: return ty_rearrange(c);
  }
  return ty_cuda_launched(c, gpu, e);
}

/* cat and stack: many parts in a launch where all have the result's layout; else part by part. */
ty_status ty_cuda_cat(ty_call *c) {
  const bool stacks = c->op->id == TY_OP_stack;
  const int d = (int)c->at[stacks ? TY_AT_stack_dim : TY_AT_cat_dim].i;
  ty_tensor *o = c->out[0];
  const bool last = !stacks && !ty_is_contiguous(o) && ty_is_channels_last(o);
  bool even = ty_numel(o) > 0 && (last || ty_is_contiguous(o));
  for (int i = 0; i < c->nin && even; i++) {
    const ty_tensor *t = c->in[i].t;
    even = t->dtype == o->dtype && t->storage->backend == o->storage->backend && (ty_numel(t) == 0 ||
      (last ? ty_is_channels_last(t) : ty_is_contiguous(t)));
  }
  if (!even || c->nin < 2) return ty_rearrange(c);
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  const int64_t item = ty_itemsize(o);
  ty_k_parts a = {.pitch = o->shape[d] * o->stride[d] * item};
  char *to = ty_data(o);
  a.rows = ty_numel(o) * item / a.pitch;
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = c->in[i].t;
    const int64_t width = ty_numel(t) * item / a.rows;
    if (width) {
      a.item[a.count].from = ty_data(t);
      a.item[a.count].to = to;
      a.item[a.count++].width = width;
      to += width;
    }
    if (a.count == TY_K_PARTS || (i == c->nin - 1 && a.count)) {
      TY_TRY(ty_cuda_launched(c, gpu, ty_k_join_parts(&a, s)));
      a.count = 0;
    }
  }
  return TY_OK;
}
