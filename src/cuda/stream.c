/* Streams and events.
 *
 * Idea: a stream that nobody holds goes back to a pool and is handed out again; none is destroyed, so that a block's pointer to its stream
 * stays valid. Invariants: a stream's struct lives as long as the process; a stream that is held isn't handed out again; graphs are
 * captured in streams of their own kind (for_graphs), which do nothing else, so that no event of other work is recorded there. (A
 * capture's side branches are ordinary streams: an event recorded on one by another thread may become part of the capture.) A stream that
 * the program made itself has one struct for each handle, which is found again where the same handle is given again. */
#include <pthread.h>
#include "cuda.h"

static ty_stream defaults[TY_MAXGPU], *pool[2][TY_MAXGPU], *externals[TY_MAXGPU];       /* pool[1]: for graphs */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

cudaEvent_t ty_stream_mark(ty_stream *s) {
  cudaEvent_t e;
  ty_cuda_use(s->gpu);
  if (cudaEventCreateWithFlags(&e, cudaEventDisableTiming) == cudaSuccess) {
    if (cudaEventRecord(e, s->s) == cudaSuccess) return e;
    cudaEventDestroy(e);
  }
  cudaGetLastError();
  ty_cuda_count_sync();
  cudaStreamSynchronize(s->s);
  return NULL;
}

/* What s gets from now on runs after e, which is destroyed (if need be, the host waits). */
static void wait_for_event(ty_stream *s, cudaEvent_t e) {
  if (ty_cuda_use(s->gpu) != cudaSuccess || cudaStreamWaitEvent(s->s, e, 0) != cudaSuccess) {
    cudaGetLastError();
    ty_cuda_count_sync();
    cudaEventSynchronize(e);
  }
  cudaEventDestroy(e);
}

static void wait_for_stream(ty_stream *s, ty_stream *other) {
  cudaEvent_t e = ty_stream_mark(other);
  if (e) wait_for_event(s, e);
  ty_cuda_use(s->gpu);
}

static void leave_turns(ty_stream *s);
void ty_stream_wait_for(ty_stream *s, ty_stream *other) {
  leave_turns(s);
  wait_for_stream(s, other);
}

static cudaError_t give_tickets(ty_stream *s) {
  const size_t n = TY_K_TICKETS * sizeof(unsigned);
  cudaError_t e = cudaMalloc((void **)&s->tickets, n);
  if (e != cudaSuccess) return s->tickets = NULL, e;
  e = cudaMemsetAsync(s->tickets, 0, n, s->s);
  if (e != cudaSuccess) { cudaFree(s->tickets); s->tickets = NULL; }
  return e;
}

cudaError_t ty_streams_open(int gpu, ty_stream **out) {
  *out = &defaults[gpu];
  defaults[gpu].gpu = gpu;
  const cudaError_t e = defaults[gpu].s ? cudaSuccess : cudaStreamCreateWithPriority(&defaults[gpu].s, cudaStreamNonBlocking, 0);
  return e == cudaSuccess && !defaults[gpu].tickets ? give_tickets(&defaults[gpu]) : e;
}

/* after: instead of the last stream, where that can't be waited for: it is the program's, which may destroy it, or part of a capture */
static struct { pthread_mutex_t lock; ty_stream *last; cudaEvent_t after; } turns[TY_MAXGPU][TY_NTURNS] = {
  [0 ... TY_MAXGPU - 1] = {[0 ... TY_NTURNS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}}};

void ty_turn_begin(ty_turn kind, ty_stream *s) {
  ty_stream **in_graph = ty_captured_turn(kind, s->gpu), **last = in_graph ? in_graph : &turns[s->gpu][kind].last;
  leave_turns(s);
  pthread_mutex_lock(&turns[s->gpu][kind].lock);
  cudaEvent_t *after = in_graph ? NULL : &turns[s->gpu][kind].after;
  if (after && *after) { wait_for_event(s, *after); *after = NULL; }
  if (*last && *last != s) wait_for_stream(s, *last);
  *last = s;
}

void ty_turn_end(ty_turn kind, int gpu) {
  ty_stream **last = &turns[gpu][kind].last;
  if (*last && (*last)->external && !ty_captured_turn(kind, gpu)) {
    turns[gpu][kind].after = ty_stream_mark(*last);
    *last = NULL;
  }
  pthread_mutex_unlock(&turns[gpu][kind].lock);
}

/* Before s may become a branch of this thread's capture: the event stands for the work that it has outside of it. */
static void leave_turns(ty_stream *s) {
  enum cudaStreamCaptureStatus is = cudaStreamCaptureStatusNone;
  if (!ty_capturing() || cudaStreamIsCapturing(s->s, &is) != cudaSuccess || is != cudaStreamCaptureStatusNone) return;
  for (int k = 0; k < TY_NTURNS; k++) {
    pthread_mutex_lock(&turns[s->gpu][k].lock);
    if (turns[s->gpu][k].last == s) {
      turns[s->gpu][k].after = ty_stream_mark(s);
      turns[s->gpu][k].last = NULL;
    }
    pthread_mutex_unlock(&turns[s->gpu][k].lock);
  }
}

ty_status ty_stream_tickets(ty_call *c, int gpu, unsigned **out, ty_tensor **made) {
  ty_stream *s = ty_stream_of(c->ctx, gpu);
  *made = NULL;
  if (s->tickets && (!ty_capturing() || s == ty_captures(gpu))) { *out = s->tickets; return TY_OK; }
  /* a graph's work on a side stream may run beside that stream's later launches: it can't share the stream's counters */
  TY_TRY(ty_cuda_new(c, gpu, TY_I32, 1, (int64_t[]){TY_K_TICKETS}, made));
  *out = ty_data(*made);
  return ty_cuda_launched(c, gpu, cudaMemsetAsync(*out, 0, TY_K_TICKETS * sizeof(unsigned), s->s));
}

static ty_stream *stream_or_default(int gpu, void *stream) {
  if (stream) return stream;
  ty_cuda_open_device(gpu);                /* an error shows again in the next call on the stream */
  return &defaults[gpu];
}
ty_stream *ty_stream_of(ty_ctx *ctx, int gpu) { return stream_or_default(gpu, ctx ? ctx->stream[gpu] : NULL); }

static ty_status make(ty_ctx *ctx, int gpu, int priority, bool for_graphs, ty_stream **out) {
  pthread_mutex_lock(&lock);
  ty_stream **at = &pool[for_graphs][gpu], *s;
  while (*at && (*at)->priority != priority) at = &(*at)->next;
  s = *at;
  if (s) *at = s->next;
  pthread_mutex_unlock(&lock);
  if (!s) {
    cudaStream_t made;
    CUDA(ctx, gpu, ty_cuda_use(gpu));
    CUDA(ctx, gpu, cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority));
    s = ty_malloc(sizeof *s);
    if (!s) { cudaStreamDestroy(made); return ty_no_memory(ctx, "Stream"); }
    *s = (ty_stream){.s = made, .gpu = gpu, .priority = priority, .for_graphs = for_graphs};
  }
  atomic_store(&s->holders, 1);
  if (!s->tickets && !ty_capturing()) {    /* the driver mustn't allocate while a graph is captured */
    cudaError_t e = ty_cuda_use(gpu);
    if (e == cudaSuccess) e = give_tickets(s);
    if (e != cudaSuccess) return ty_stream_release(gpu, s), ty_cuda_fail(ctx, e, "Stream", gpu);
  }
  *out = s;
  return TY_OK;
}

ty_status ty_stream_new(ty_ctx *ctx, int gpu, int priority, void **out) {
  ty_stream *s;
  TY_TRY(make(ctx, gpu, priority, false, &s));
  *out = s;
  return TY_OK;
}

/* What a program captures of its own accord can't have Tycho's work: nothing would keep the memory for its replays. */
ty_status ty_stream_accepts(ty_ctx *ctx, const ty_stream *s) {
  enum cudaStreamCaptureStatus is = cudaStreamCaptureStatusNone;
  if (!s->external || ty_captures(s->gpu)) return TY_OK;
  CUDA(ctx, s->gpu, cudaStreamIsCapturing(s->s, &is));
  if (is == cudaStreamCaptureStatusNone) return TY_OK;
  return ty_error(ctx, "ExternalStream: the program is capturing this stream; tensors' work is captured by cuda.graph and compile alone");
}

ty_status ty_stream_external(ty_ctx *ctx, int gpu, void *raw, void **out) {
  ty_stream given = {.s = raw, .gpu = gpu, .external = true};
  cudaEvent_t probe;
  TY_TRY(ty_refuse_capture(ctx, "ExternalStream: called"));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  TY_TRY(ty_stream_accepts(ctx, &given));
  CUDA(ctx, gpu, cudaEventCreateWithFlags(&probe, cudaEventDisableTiming));
  const cudaError_t e = cudaEventRecord(probe, raw);     /* refuses the stream of another GPU */
  cudaEventDestroy(probe);
  if (e != cudaSuccess) return ty_cuda_fail(ctx, e, "ExternalStream", gpu);
  pthread_mutex_lock(&lock);
  ty_stream *s = externals[gpu];
  while (s && s->s != raw) s = s->next;
  if (!s && (s = ty_malloc(sizeof *s))) {
    *s = given;
    if (give_tickets(s) != cudaSuccess) cudaGetLastError();        /* each launch makes its own */
    s->next = externals[gpu];
    externals[gpu] = s;
  }
  if (s) atomic_fetch_add(&s->holders, 1);
  pthread_mutex_unlock(&lock);
  *out = s;
  return s ? TY_OK : ty_no_memory(ctx, "ExternalStream");
}

ty_status ty_capture_stream(ty_ctx *ctx, int gpu, ty_stream **out) { return make(ctx, gpu, 0, true, out); }

/* Work inside a capture and work outside it can't wait for one another, and aren't joined here. */
void ty_stream_join(ty_stream *s, int gpu, void *other) {
  ty_stream *o = stream_or_default(gpu, other);
  enum cudaStreamCaptureStatus here = cudaStreamCaptureStatusNone, there = here;
  if (ty_cuda_use(gpu) != cudaSuccess || cudaStreamIsCapturing(s->s, &here) != cudaSuccess ||
      cudaStreamIsCapturing(o->s, &there) != cudaSuccess)
    cudaGetLastError();
  else if (o != s && here == there && ty_stream_usable(gpu, o)) ty_stream_wait_for(s, o);
}

bool ty_stream_usable(int gpu, const void *stream) {
  const ty_stream *s = stream;
  return !s || !s->for_graphs || s == ty_captures(gpu);
}

void ty_stream_retain(void *stream) {
  if (stream) atomic_fetch_add(&((ty_stream *)stream)->holders, 1);
}

void ty_stream_release(int gpu, void *stream) {
  ty_stream *s = stream;
  if (!s || atomic_fetch_sub(&s->holders, 1) > 1 || s->external) return;
  pthread_mutex_lock(&lock);
  s->next = pool[s->for_graphs][gpu];
  pool[s->for_graphs][gpu] = s;
  pthread_mutex_unlock(&lock);
}

void *ty_stream_raw(int gpu, void *stream) { return stream_or_default(gpu, stream)->s; }

ty_status ty_stream_synchronize(ty_ctx *ctx, int gpu, void *stream) {
  TY_TRY(ty_refuse_capture(ctx, "synchronize: called"));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  ty_cuda_count_sync();
  CUDA(ctx, gpu, cudaStreamSynchronize(stream_or_default(gpu, stream)->s));
  return ty_cuda_reported(ctx, gpu);
}

static ty_status done_or_error(ty_ctx *ctx, int gpu, cudaError_t e, const char *call, bool *done) {
  *done = e == cudaSuccess;
  return e == cudaSuccess || e == cudaErrorNotReady ? TY_OK : ty_cuda_fail(ctx, e, call, gpu);
}

ty_status ty_stream_query(ty_ctx *ctx, int gpu, void *stream, bool *done) {
  TY_TRY(ty_refuse_capture(ctx, "query: called"));
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  return done_or_error(ctx, gpu, cudaStreamQuery(stream_or_default(gpu, stream)->s), "cudaStreamQuery", done);
}

int ty_stream_priority(void *stream) { return ((const ty_stream *)stream)->priority; }

ty_status ty_cuda_event_new(ty_ctx *ctx, int gpu, bool timing, bool blocking, void **out) {
  cudaEvent_t e;
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  CUDA(ctx, gpu, cudaEventCreateWithFlags(&e, (timing ? 0 : cudaEventDisableTiming) | (blocking ? cudaEventBlockingSync : 0)));
  *out = e;
  return TY_OK;
}

void ty_cuda_event_free(void *event) { cudaEventDestroy(event); }

ty_status ty_cuda_event_record(ty_ctx *ctx, int gpu, void *event, void *stream) {
  ty_stream *s = stream_or_default(gpu, stream);
  if (s->gpu != gpu) return ty_error(ctx, "record: the event belongs to cuda:%d, but the stream to cuda:%d", gpu, s->gpu);
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  CUDA(ctx, gpu, cudaEventRecord(event, s->s));
  return TY_OK;
}

ty_status ty_cuda_event_wait(ty_ctx *ctx, int gpu, void *event, void *stream) {
  ty_stream *s = stream_or_default(gpu, stream);
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  leave_turns(s);
  CUDA(ctx, gpu, cudaStreamWaitEvent(s->s, event, 0));
  return TY_OK;
}

ty_status ty_cuda_event_synchronize(ty_ctx *ctx, void *event) {
  TY_TRY(ty_refuse_capture(ctx, "synchronize: called"));
  ty_cuda_count_sync();
  CUDA(ctx, ctx->gpu, cudaEventSynchronize(event));
  return ty_cuda_reported(ctx, ctx->gpu);
}

ty_status ty_cuda_event_query(ty_ctx *ctx, void *event, bool *done) {
  TY_TRY(ty_refuse_capture(ctx, "query: called"));
  return done_or_error(ctx, ctx->gpu, cudaEventQuery(event), "cudaEventQuery", done);
}

ty_status ty_cuda_event_elapsed(ty_ctx *ctx, void *from, void *to, double *ms) {
  float f = 0;
  if (ty_capturing()) return ty_error(ctx, "elapsed_time: called while a graph is captured, which asking an event would end");
  cudaError_t e = cudaEventElapsedTime(&f, from, to);
  if (e == cudaErrorNotReady) return ty_error(ctx, "elapsed_time: an event hasn't happened yet: call synchronize() first");
  if (e == cudaErrorInvalidResourceHandle || e == cudaErrorInvalidValue) {
    cudaGetLastError();
    return ty_error(ctx, "elapsed_time: both events must have been recorded, and made with enable_timing");
  }
  if (e != cudaSuccess) return ty_cuda_fail(ctx, e, "cudaEventElapsedTime", ctx->gpu);
  *ms = f;
  return TY_OK;
}
