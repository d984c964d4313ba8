/* The devices: opening them, errors, properties, random generators.
 *
 * Idea: a process that uses one of a machine's GPUs should take nothing from the others. So each is opened at its first use, by ty_cuda_use
 * or ty_stream_of, which all work on a device goes through. Until then its generator's state is kept on the host. */
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "dnn.h"
#include "timed_plans.h"

ty_backend ty_gpus[TY_MAXGPU];
int ty_gpu_count;
static ty_k_generator *generators[TY_MAXGPU];
static ty_k_fault *faults[TY_MAXGPU];      /* pinned: devices write, the host reads without a wait */
static atomic_llong syncs;

const char *ty_cuda_lost(cudaError_t e) {
  switch (e) {
    case cudaErrorIllegalAddress:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorHardwareStackError:
    case cudaErrorECCUncorrectable:
    case cudaErrorLaunchTimeout:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
      return "; this process can't use the device any more and must restart; tensors on the cpu stay usable";
    default: return "";
  }
}

ty_status ty_cuda_fail(ty_ctx *ctx, cudaError_t e, const char *call, int gpu) {
  int n = (int)strcspn(call, "(");
  cudaGetLastError();                      /* else the next launch would report it again */
  return ty_error(ctx, "%.*s failed on cuda:%d: %s (%s)%s", n, call, gpu, cudaGetErrorString(e), cudaGetErrorName(e), ty_cuda_lost(e));
}

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool opened[TY_MAXGPU];
static ty_generator pending[TY_MAXGPU];    /* of devices that aren't open yet */
static __thread int current = -1;          /* the device that this thread chose last, or -1: none */

static cudaError_t open_device(int gpu);

static cudaError_t choose(int gpu) {
  const cudaError_t e = cudaSetDevice(gpu);
  current = e == cudaSuccess ? gpu : -1;
  return e;
}

bool ty_cuda_is_open(int gpu) { return atomic_load(&opened[gpu]); }

/* Leaves the thread's device as it is. */
cudaError_t ty_cuda_open_device(int gpu) {
  if (ty_cuda_is_open(gpu)) return cudaSuccess;
  const int before = current;
  pthread_mutex_lock(&opening);
  cudaError_t e = cudaSuccess;
  if (!ty_cuda_is_open(gpu)) {
    const enum cudaStreamCaptureMode mode = ty_capture_mode(cudaStreamCaptureModeRelaxed);      /* not part of another device's capture */
    e = choose(gpu);
    if (e == cudaSuccess) e = open_device(gpu);
    ty_capture_mode(mode);
    atomic_store(&opened[gpu], e == cudaSuccess);
  }
  pthread_mutex_unlock(&opening);
  if (e != cudaSuccess) current = -1;
  else if (before >= 0) e = choose(before);
  return e;
}

cudaError_t ty_cuda_use(int gpu) {
  int now = -1;                            /* another library may have chosen a device since */
  cudaError_t e = gpu == current ? cudaGetDevice(&now) : cudaSuccess;
  if (e != cudaSuccess || now == gpu) return e;
  e = ty_cuda_open_device(gpu);
  return e == cudaSuccess ? choose(gpu) : e;
}

void ty_cuda_count_sync(void) { atomic_fetch_add(&syncs, 1); }
static long long sync_count(void) { return atomic_load(&syncs); }

ty_k_generator *ty_generator_begin(ty_ctx *ctx, int gpu) {
  ty_turn_begin(TY_DRAWS, ty_stream_of(ctx, gpu));
  return generators[gpu];
}

cudaError_t ty_generator_end(int gpu, cudaError_t e) {
  ty_turn_end(TY_DRAWS, gpu);
  return e;
}

ty_k_fault *ty_cuda_fault_of(int gpu) { return faults[gpu]; }

static ty_status properties(ty_ctx *ctx, int gpu, ty_gpu_properties *out) {
  struct cudaDeviceProp p;
  CUDA(ctx, gpu, cudaGetDeviceProperties(&p, gpu));
  *out = (ty_gpu_properties){.major = p.major, .minor = p.minor, .multiprocessors = p.multiProcessorCount, .memory = p.totalGlobalMem,
    .warp = p.warpSize, .threads = p.maxThreadsPerMultiProcessor, .registers = p.regsPerMultiprocessor, .l2 = (size_t)p.l2CacheSize,
    .shared = p.sharedMemPerMultiprocessor, .shared_of_block = p.sharedMemPerBlock};
  snprintf(out->name, sizeof out->name, "%s", p.name);
  return TY_OK;
}

static ty_status can_access_peer(ty_ctx *ctx, int gpu, int peer, bool *can) {
  int yes = 0;
  if (gpu != peer) CUDA(ctx, gpu, cudaDeviceCanAccessPeer(&yes, gpu, peer));
  *can = yes;
  return TY_OK;
}

static ty_status synchronize(ty_ctx *ctx, int gpu) {
  TY_TRY(ty_refuse_capture(ctx, "synchronize: called"));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  CUDA(ctx, gpu, ty_cuda_wait(true));
  return ty_cuda_reported(ctx, gpu);
}

static ty_status memory_info(ty_ctx *ctx, int gpu, size_t *free, size_t *total) {
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  CUDA(ctx, gpu, cudaMemGetInfo(free, total));
  return TY_OK;
}

/* Whether the generator's state is still kept on the host; if so, stores *set there, or reads it into *get. */
static bool at_host(int gpu, const ty_generator *set, ty_generator *get) {
  pthread_mutex_lock(&opening);
  const bool host = !ty_cuda_is_open(gpu);
  if (host && set) pending[gpu] = *set;
  if (host && get) *get = pending[gpu];
  pthread_mutex_unlock(&opening);
  return host;
}

static ty_status seed(ty_ctx *ctx, const ty_backend *b, ty_generator g) {
  if (at_host(b->gpu, &g, NULL)) return TY_OK;
  CUDA(ctx, b->gpu, ty_cuda_use(b->gpu));
  const cudaError_t e = ty_generator_end(b->gpu,
    ty_k_seed(ty_generator_begin(ctx, b->gpu), g.seed, g.offset, ty_stream_of(ctx, b->gpu)->s));
  return e == cudaSuccess ? TY_OK : ty_cuda_fail(ctx, e, "manual_seed", b->gpu);
}

static ty_status get_seed(ty_ctx *ctx, const ty_backend *b, ty_generator *g) {
  ty_k_generator k;
  if (at_host(b->gpu, NULL, g)) return TY_OK;
  cudaStream_t s = ty_stream_of(ctx, b->gpu)->s;
  TY_TRY(ty_refuse_capture(ctx, "get_rng_state: called"));
  CUDA(ctx, b->gpu, ty_cuda_use(b->gpu));
  const cudaError_t e = ty_generator_end(b->gpu, cudaMemcpyAsync(&k, ty_generator_begin(ctx, b->gpu), sizeof k, cudaMemcpyDeviceToHost, s));
  if (e != cudaSuccess) return ty_cuda_fail(ctx, e, "cudaMemcpyAsync", b->gpu);
  ty_cuda_count_sync();
  CUDA(ctx, b->gpu, cudaStreamSynchronize(s));
  *g = (ty_generator){k.seed, k.offset};
  return TY_OK;
}

static void settle(ty_ctx *ctx, const ty_storage *s) { ty_cuda_settle(s, ty_stream_of(ctx, s->backend->gpu), true); }
static void uses(ty_ctx *ctx, const ty_backend *b, ty_storage *s) { ty_cuda_uses(ty_stream_of(ctx, b->gpu), s); }
static void join(ty_ctx *ctx, const ty_backend *b, void *stream) { ty_stream_join(ty_stream_of(ctx, b->gpu), b->gpu, stream); }

static void range(const char *text) {
  if (text) nvtxRangePushA(text);
  else nvtxRangePop();
}

static ty_status recording(ty_ctx *ctx, bool on) {
  CUDA(ctx, ctx->gpu, on ? cudaProfilerStart() : cudaProfilerStop());
  return TY_OK;
}

static bool channels_last(ty_dtype d) { return ty_is_16bit(d); }

/* After a failure, the next call does what is left. */
static cudaError_t open_device(int gpu) {
  ty_stream *s;
  cudaError_t e = ty_streams_open(gpu, &s);
  if (e == cudaSuccess && !generators[gpu]) e = cudaMalloc((void **)&generators[gpu], sizeof(ty_k_generator));
  if (e == cudaSuccess && !faults[gpu]) {
    e = cudaHostAlloc((void **)&faults[gpu], sizeof(ty_k_fault), cudaHostAllocMapped);
    if (e == cudaSuccess) *faults[gpu] = (ty_k_fault){.epoch = 1};
  }
  if (e == cudaSuccess && !faults[gpu]->claimed) {
    unsigned *word = NULL;
    e = cudaMalloc((void **)&word, sizeof *word);
    if (e == cudaSuccess) e = cudaMemsetAsync(word, 0, sizeof *word, s->s);
    if (e == cudaSuccess) e = cudaStreamSynchronize(s->s);     /* other streams' kernels read it */
    if (e == cudaSuccess) faults[gpu]->claimed = word;
    else if (word) cudaFree(word);
  }
  if (e != cudaSuccess) return e;
  ty_turn_begin(TY_DRAWS, s);
  return ty_generator_end(gpu, ty_k_seed(generators[gpu], pending[gpu].seed, pending[gpu].offset, s->s));
}

static void describe(int gpu) {
  ty_backend *b = &ty_gpus[gpu];
  *b = (ty_backend){.gpu = gpu, .alloc = ty_cuda_alloc, .free = ty_cuda_free, .empty_cache = ty_cuda_empty_cache, .memory = ty_cuda_memory,
    .channels_last = channels_last, .filters_last = true, .transfer = ty_cuda_transfer, .read = ty_cuda_read,
    .seed = seed, .get_seed = get_seed, .queue_id = ty_cuda_queue_id, .uses = uses, .trade = ty_cuda_trade, .settle = settle,
    .join = join, .fuse = ty_cuda_fuse, .fused = ty_cuda_fused, .fused_free = ty_cuda_fused_free, .joint = ty_cuda_joint,
    .run = {[TY_C_POINTWISE] = ty_cuda_pointwise, [TY_C_COPY] = ty_cuda_copy, [TY_C_CAT] = ty_cuda_cat, [TY_C_FILL] = ty_cuda_fill,
            [TY_C_RANDOM] = ty_cuda_random, [TY_C_REDUCE] = ty_cuda_reduce, [TY_C_MATMUL] = ty_cuda_matmul,
            [TY_C_SOFTMAX] = ty_cuda_softmax, [TY_C_LOSS] = ty_cuda_loss, [TY_C_OPTIM] = ty_cuda_optim,
            [TY_C_NORM] = ty_cuda_norm, [TY_C_SCAN] = ty_cuda_scan, [TY_C_REDUCE_INDEX] = ty_cuda_reduce_index,
            [TY_C_INDEX] = ty_cuda_index,
            [TY_C_POOL] = ty_cuda_pool, [TY_C_RESIZE] = ty_cuda_resize, [TY_C_SAMPLE] = ty_cuda_sample,
            [TY_C_DISTANCE] = ty_cuda_distance, [TY_C_ALIGN] = ty_cuda_align, [TY_C_LINALG] = ty_cuda_linalg,
            [TY_C_CONV] = ty_cuda_conv, [TY_C_SORT] = ty_cuda_sort, [TY_C_FOURIER] = ty_cuda_fourier,
            [TY_C_ATTENTION] = ty_cuda_attention, [TY_C_RECURRENT] = ty_cuda_recurrent, [TY_C_COLLECTIVE] = ty_cuda_collective}};
  snprintf(b->name, sizeof b->name, "cuda:%hhu", (unsigned char)gpu);
}

__attribute__((visibility("default"))) const char *ty_cuda_open(const ty_services *core, ty_gpu *out) {
  static char why[200];
  int n = 0;
  if (core->interface != TY_INTERFACE) return "tycho/cuda.so was built with another version of Tycho's core: rebuild both";
  ty_core = core;
  cudaError_t e = cudaGetDeviceCount(&n);
  for (int i = 0; e == cudaSuccess && i < n && i < TY_MAXGPU; i++) {
    describe(i);
    ty_gpu_count = i + 1;
  }
  if (e != cudaSuccess || n == 0) {
    snprintf(why, sizeof why, "%s", e == cudaSuccess ? "there is no CUDA device" : cudaGetErrorString(e));
    return why;
  }
  *out = (ty_gpu){.count = ty_gpu_count, .device = ty_gpus, .properties = properties, .synchronize = synchronize,
    .sync_count = sync_count, .memory_info = memory_info, .stats = ty_cuda_stats, .reset_peaks = ty_cuda_reset_peaks,
    .snapshot = ty_cuda_snapshot, .history_begin = ty_memory_history_begin, .history = ty_memory_history,
    .share = ty_cuda_share, .mempool_new = ty_mempool_new, .mempool_retain = ty_mempool_retain,
    .mempool_release = ty_mempool_release, .set_source = ty_cuda_set_source, .kernel = ty_user_kernel, .launch = ty_user_launch,
    .stream_raw = ty_stream_raw, .range = range, .moment = nvtxMarkA, .recording = recording,
    .stream_new = ty_stream_new, .stream_external = ty_stream_external, .can_access_peer = can_access_peer,
    .stream_retain = ty_stream_retain,
    .stream_release = ty_stream_release, .stream_usable = ty_stream_usable, .stream_synchronize = ty_stream_synchronize,
    .stream_query = ty_stream_query, .stream_priority = ty_stream_priority, .dnn_version = ty_dnn_version,
    .event_new = ty_cuda_event_new, .event_free = ty_cuda_event_free,
    .event_record = ty_cuda_event_record, .event_wait = ty_cuda_event_wait, .event_synchronize = ty_cuda_event_synchronize,
    .event_query = ty_cuda_event_query, .event_elapsed = ty_cuda_event_elapsed, .pin = ty_pin, .unpin = ty_unpin,
    .graph_begin = ty_graph_begin, .graph_end = ty_graph_end, .graph_replay = ty_graph_replay,
    .graph_free = ty_graph_free, .capturing = ty_capturing, .graphs = ty_cuda_cached, .timed_plans = ty_timed_get,
    .set_timed_plans = ty_timed_set, .timed_plans_set = ty_timed_set_so_far, .libraries = ty_timed_libraries};
  return NULL;
}
