/* ccl.h by NCCL.
 *
 * Idea: the library is opened when the first group needs it, so that GPUs work without NCCL. Invariant: nothing here waits
 * for a device, except making a communicator. */
#include "ccl.h"
#if !__has_include(<nccl.h>)
static ty_status absent(ty_ctx *ctx) { return ty_error(ctx, "distributed: tycho/cuda.so was built without NCCL's header nccl.h"); }
ty_status ty_ccl_new_id(ty_ctx *ctx, ty_ccl_id *id) { (void)id; return absent(ctx); }
ty_status ty_ccl_open(ty_ctx *ctx, int gpu, const ty_ccl_id *id, const ty_group *g, void **comm) {
  (void)gpu; (void)id; (void)g; (void)comm;
  return absent(ctx);
}
ty_status ty_ccl_exchange(ty_ctx *ctx, int gpu, void *comm, const ty_group *g, const ty_message *m, cudaStream_t s) {
  (void)gpu; (void)comm; (void)g; (void)m; (void)s;
  return absent(ctx);
}
#else
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NCCL(X) \
  X(ncclGetUniqueId) X(ncclCommInitRank) X(ncclAllReduce) X(ncclReduce) X(ncclBroadcast) X(ncclAllGather) X(ncclReduceScatter) \
  X(ncclSend) X(ncclRecv) X(ncclGroupStart) X(ncclGroupEnd) X(ncclGetErrorString) X(ncclGetLastError) X(ncclCommGetAsyncError)
#define POINTER(f) static __typeof__(&f) p_##f;
NCCL(POINTER)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened;

static ty_status open_library(ty_ctx *ctx) {
  ty_status s = TY_OK;
  pthread_mutex_lock(&lock);
  if (!opened) {
    void *lib = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!lib) s = ty_error(ctx, "distributed: NCCL, through which GPUs exchange tensors, can't be loaded: %s", dlerror());
#define FROM_LIB(f) if (s == TY_OK && !(p_##f = (__typeof__(&f))dlsym(lib, #f))) s = ty_error(ctx, "distributed: this NCCL has no " #f);
    NCCL(FROM_LIB)
    opened = s == TY_OK;
  }
  pthread_mutex_unlock(&lock);
  return s;
}

static ty_status check(ty_ctx *ctx, ncclResult_t r, const char *call, void *comm) {
  if (r == ncclSuccess || r == ncclInProgress) return TY_OK;
  const char *more = p_ncclGetLastError(comm);
  return ty_error(ctx, "distributed: %s: %s%s%s", call, p_ncclGetErrorString(r), more && *more ? ": " : "", more ? more : "");
}

ty_status ty_ccl_new_id(ty_ctx *ctx, ty_ccl_id *id) {
  _Static_assert(sizeof(ncclUniqueId) == sizeof *id, "NCCL's id");
  TY_TRY(open_library(ctx));
  return check(ctx, p_ncclGetUniqueId((ncclUniqueId *)id), "ncclGetUniqueId", NULL);
}

ty_status ty_ccl_open(ty_ctx *ctx, int gpu, const ty_ccl_id *id, const ty_group *g, void **comm) {
  ncclUniqueId name;
  ncclComm_t c = NULL;
  TY_TRY(open_library(ctx));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  /* NCCL registers each buffer of a captured exchange as one allocation; in an expandable segment it may be several */
  if (ty_core->flags->expandable_segments) setenv("NCCL_GRAPH_REGISTER", "0", 0);
  memcpy(&name, id, sizeof name);
  TY_TRY(check(ctx, p_ncclCommInitRank(&c, g->size, name, g->rank), "ncclCommInitRank", c));
  *comm = c;
  return TY_OK;
}

ty_status ty_ccl_exchange(ty_ctx *ctx, int gpu, void *comm, const ty_group *g, const ty_message *m, cudaStream_t s) {
  static const ncclDataType_t types[TY_NDTYPE] = {[TY_F32] = ncclFloat32, [TY_F16] = ncclFloat16,
    [TY_BF16] = ncclBfloat16, [TY_F64] = ncclFloat64,
    [TY_I32] = ncclInt32, [TY_I64] = ncclInt64, [TY_U8] = ncclUint8, [TY_BOOL] = ncclUint8};
  static const ncclRedOp_t ops[] = {[TY_BY_SUM] = ncclSum, [TY_BY_MEAN] = ncclAvg, [TY_BY_PRODUCT] = ncclProd,
    [TY_BY_MIN] = ncclMin, [TY_BY_MAX] = ncclMax};
  const ncclDataType_t t = types[m->dtype];
  const ncclRedOp_t op = m->dtype != TY_BOOL ? ops[m->reduction] : m->reduction == TY_BY_PRODUCT ||
    m->reduction == TY_BY_MIN ? ncclMin : ncclMax;
  const size_t n = (size_t)m->n, bytes = n * ty_dtype_size[m->dtype];
  ncclComm_t c = comm;
  ncclResult_t before = ncclSuccess;       /* an earlier exchange's error, found by the device since: a process is gone, a link is down */
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  TY_TRY(check(ctx, p_ncclCommGetAsyncError(c, &before), "ncclCommGetAsyncError", c));
  TY_TRY(check(ctx, before, "an earlier exchange", c));
  switch (m->kind) {
    case TY_ALL_REDUCE: return check(ctx, p_ncclAllReduce(m->in, m->out, n, t, op, c, s), "ncclAllReduce", c);
    case TY_REDUCE:
      if (g->rank != m->peer && m->in != m->out) CUDA(ctx, gpu, cudaMemcpyAsync(m->out, m->in, bytes, cudaMemcpyDeviceToDevice, s));
      return check(ctx, p_ncclReduce(m->in, g->rank == m->peer ? m->out : NULL, n, t, op, m->peer, c, s), "ncclReduce", c);
    case TY_BROADCAST: return check(ctx, p_ncclBroadcast(m->in, m->out, n, t, m->peer, c, s), "ncclBroadcast", c);
    case TY_ALL_GATHER: return check(ctx, p_ncclAllGather(m->in, m->out, n, t, c, s), "ncclAllGather", c);
    case TY_REDUCE_SCATTER: return check(ctx, p_ncclReduceScatter(m->in, m->out, n, t, op, c, s), "ncclReduceScatter", c);
    case TY_SEND: return check(ctx, p_ncclSend(m->in, n, t, m->peer, c, s), "ncclSend", c);
    case TY_RECV: return check(ctx, p_ncclRecv(m->out, n, t, m->peer, c, s), "ncclRecv", c);
    case TY_ALL_TO_ALL: break;
  }
  TY_TRY(check(ctx, p_ncclGroupStart(), "ncclGroupStart", c));
  ncclResult_t r = ncclSuccess;
  for (int k = 0; k < g->size && r == ncclSuccess; k++) {
    r = p_ncclSend((const char *)m->in + (size_t)k * bytes, n, t, k, c, s);
    if (r == ncclSuccess) r = p_ncclRecv((char *)m->out + (size_t)k * bytes, n, t, k, c, s);
  }
  const ncclResult_t end = p_ncclGroupEnd();
  return check(ctx, r == ncclSuccess ? end : r, "all_to_all", c);
}
#endif
