/* CUDA graphs: the work that a function puts into streams is recorded once, then launched as one piece.
 *
 * Idea: a graph is captured in a stream of its own, or in one that it shares with other graphs to use memory together. All memory of the
 * recorded work is allocated for that stream; nobody else gets the stream's blocks, so they form a private pool. The pool ends with its
 * last graph; then the stream is free for other graphs. The graph keeps alive the memory from outside its pool that the recorded work
 * uses (also that of an earlier pool on the same stream). After each launch, storages that the graph made, and outside ones that it
 * writes, have a new version. A compiled function's graph (own) leaves versions and its values' memory to its program.
 * Invariants: a capture belongs to one thread; during a capture that thread waits for nothing, queries no event and returns no memory to
 * the driver, and no thread waits for a whole device, since that has the captured stream too; launches over one pool run in turn. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.h"

typedef struct { atomic_int graphs; uint64_t id; ty_stream *stream, *ran; } pool;      /* id: never reused; ran: the last launch's stream */

struct ty_graph {
  int gpu;
  uint64_t id;                             /* never used twice */
  pool *pool;
  ty_stream *last[TY_NTURNS];              /* who had each kind's last turn in the capture, or NULL */
  cudaGraphExec_t exec;
  bool own;                                /* a compiled function's */
  ty_launches *launches;
  struct { ty_storage *s; uint32_t version; bool written; } *kept;     /* outside storages; version: before the first use */
  int nkept, room;
  bool lost;                               /* memory ran out in keep(): it can't be launched */
  struct ty_graph *next;                   /* in `over` */
};

static atomic_int under_way;               /* captures, in all threads */
static pthread_rwlock_t whole = PTHREAD_RWLOCK_INITIALIZER;      /* read lock: captures; write lock: waits for a whole device */
static __thread ty_graph *capturing, *over;          /* over: graphs freed during a capture, given back at its end */

ty_stream *ty_captures(int gpu) { return capturing && capturing->gpu == gpu ? capturing->pool->stream : NULL; }

ty_stream **ty_captured_turn(ty_turn kind, int gpu) { return ty_captures(gpu) ? &capturing->last[kind] : NULL; }

uint64_t ty_captured_pool(int gpu) { return ty_captures(gpu) ? capturing->pool->id : 0; }

bool ty_capturing(void) { return capturing; }
bool ty_anyone_captures(void) { return atomic_load(&under_way) > 0; }

static _Atomic bool ever;
bool ty_ever_captured(void) { return ever; }

bool ty_captures_stop(bool insist) {
  return !capturing && !(insist ? pthread_rwlock_wrlock(&whole) : pthread_rwlock_trywrlock(&whole));
}
void ty_captures_go_on(void) { pthread_rwlock_unlock(&whole); }

cudaError_t ty_cuda_wait(bool insist) {
  if (!ty_captures_stop(insist)) return cudaErrorNotReady;
  ty_cuda_count_sync();
  const cudaError_t e = cudaDeviceSynchronize();
  ty_captures_go_on();
  return e;
}

enum cudaStreamCaptureMode ty_capture_mode(enum cudaStreamCaptureMode mode) {
  if (capturing) cudaThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

uint64_t ty_cuda_queue_id(ty_ctx *ctx, const ty_backend *b) {
  return ty_captures(b->gpu) ? capturing->id : (uint64_t)(uintptr_t)ty_stream_of(ctx, b->gpu);
}

ty_status ty_refuse_capture(ty_ctx *ctx, const char *what) {
  return capturing
    ? ty_error(ctx, "%s while a graph is captured: the recorded work has not run yet, so the host can't wait for it", what)
    : TY_OK;
}

/* Keeps a storage from outside the pool, once, because the recorded work uses it. */
static void keep(ty_graph *g, ty_storage *s) {
  if (g->own && s->program) return;        /* the program outlives the launches, and tracks who holds its memory */
  s->fixed = true;
  for (int i = g->nkept - 1; i >= 0; i--)
    if (g->kept[i].s == s) return;
  if (g->nkept == g->room) {
    const int room = TY_MAX(64, 2 * g->room);
    void *more = realloc(g->kept, sizeof *g->kept * (size_t)room);
    if (!more) { g->lost = true; return; }
    g->kept = more;
    g->room = room;
  }
  ty_storage_retain(s);
  g->kept[g->nkept].s = s;
  g->kept[g->nkept++].version = ty_storage_version(s);
}

void ty_cuda_uses(ty_stream *stream, ty_storage *s) {
  ty_graph *g = capturing && capturing->gpu == stream->gpu ? capturing : NULL;
  if (g && ty_cuda_pool_of(s) != g->pool->id) return keep(g, s);
  ty_cuda_used_on(s, stream);              /* the pool's own blocks are reused within it */
  if (!g || g->own || s->launches) return;
  atomic_fetch_add(&g->launches->refs, 1);
  s->launches = g->launches;
}

static void pool_release(int gpu, pool *p) {
  if (atomic_fetch_sub(&p->graphs, 1) > 1) return;
  if (p->ran && p->ran != p->stream) ty_stream_wait_for(p->stream, p->ran);     /* the blocks' next use comes after the last launch */
  p->stream->taken = false;
  ty_stream_release(gpu, p->stream);
  ty_free(p);
}

static void give_back(ty_graph *g) {
  ty_stream *ran = g->pool->ran != g->pool->stream ? g->pool->ran : NULL;      /* NULL: nothing was launched */
  if (ty_cuda_use(g->gpu) == cudaSuccess && g->exec) cudaGraphExecDestroy(g->exec);
  for (int i = 0; i < g->nkept; i++) {
    ty_storage *s = g->kept[i].s;
    if (ran && s->backend->gpu == g->gpu) ty_cuda_used_on(s, ran);
    else if (ran && s->backend->gpu < 0) ty_pinned_used_on(s->data, ran);
    ty_storage_release(s);
  }
  free(g->kept);
  ty_launches_release(g->launches);
  pool_release(g->gpu, g->pool);
  ty_free(g);
}

static void capture_begins(void) {
  pthread_rwlock_rdlock(&whole);
  atomic_fetch_add(&under_way, 1);
}

static void capture_ended(void) {
  capturing = NULL;
  atomic_fetch_sub(&under_way, 1);
  pthread_rwlock_unlock(&whole);
  for (ty_graph *g; (g = over);) {
    over = g->next;
    give_back(g);
  }
}

void ty_graph_free(void *graph) {
  ty_graph *g = graph;
  if (capturing && capturing != g) {       /* by the garbage collector; events on the streams it ran on might become part of the capture */
    g->next = over;
    over = g;
    return;
  }
  if (capturing) {                         /* its capture was never ended */
    cudaGraph_t made = NULL;
    if (ty_cuda_use(g->gpu) == cudaSuccess) cudaStreamEndCapture(g->pool->stream->s, &made);
    if (made) cudaGraphDestroy(made);
    cudaGetLastError();
    capture_ended();
  }
  give_back(g);
}

/* A pool can't use memory cached for other streams, and none goes back to the driver during the capture: so empties the cache before. */
static void make_room(int gpu) {
  size_t left = 0, total = 0;
  if (ty_cuda_use(gpu) == cudaSuccess && cudaMemGetInfo(&left, &total) == cudaSuccess && left < total / 2)
    ty_cuda_empty_cache(&ty_gpus[gpu]);
  cudaGetLastError();
}

static ty_status pool_new(ty_ctx *ctx, int gpu, pool **out) {
  static _Atomic uint64_t pools;
  ty_stream *s;
  pool *p = ty_malloc(sizeof *p);
  if (!p) return ty_no_memory(ctx, "graph");
  const ty_status got = ty_capture_stream(ctx, gpu, &s);
  if (got != TY_OK) return ty_free(p), got;
  *p = (pool){.id = ++pools, .stream = s};
  p->stream->taken = true;
  *out = p;
  return TY_OK;
}

ty_status ty_graph_begin(ty_ctx *ctx, int gpu, void *beside, bool own, void **out, void **stream) {
  static _Atomic uint64_t captures;
  const ty_graph *other = beside;
  if (capturing) return ty_error(ctx, "graph: a graph is being captured already");
  if (!ty_cuda_cached()) return ty_error(ctx, "graph: graphs need the caching allocator (TYCHO_CUDA_CACHE=0 is set)");
  if (other && other->gpu != gpu) return ty_error(ctx, "graph: the pool is on cuda:%d, but the current device is cuda:%d", other->gpu, gpu);
  pool *p = other ? other->pool : NULL;
  if (!p) TY_TRY(pool_new(ctx, gpu, &p));
  ty_graph *g = ty_malloc(sizeof *g);
  ty_launches *launches = g ? calloc(1, sizeof *launches) : NULL;
  atomic_fetch_add(&p->graphs, 1);
  if (!launches) return ty_free(g), pool_release(gpu, p), ty_no_memory(ctx, "graph");
  memset(g, 0, sizeof *g);
  atomic_init(&launches->refs, 1);
  g->launches = launches;
  g->gpu = gpu;
  g->own = own;
  g->id = ++captures;                      /* below any address: ty_cuda_queue_id tells it from a stream */
  g->pool = p;
  make_room(gpu);
  cudaError_t e = ty_cuda_use(gpu);
  capture_begins();
  if (e == cudaSuccess) e = cudaStreamBeginCapture(p->stream->s, cudaStreamCaptureModeThreadLocal);
  if (e != cudaSuccess) { capture_ended(); ty_graph_free(g); return ty_cuda_fail(ctx, e, "cudaStreamBeginCapture", gpu); }
  capturing = g;
  ever = true;
  *out = g;
  *stream = p->stream;
  return TY_OK;
}

ty_status ty_graph_end(ty_ctx *ctx, void *graph, bool keep, size_t *nodes) {
  ty_graph *g = graph;
  *nodes = 0;
  cudaGraph_t made = NULL;
  cudaError_t e = ty_cuda_use(g->gpu);
  if (e == cudaSuccess) e = cudaStreamEndCapture(g->pool->stream->s, &made);
  for (int i = 0; i < g->nkept; i++) g->kept[i].written = !g->own && ty_storage_version(g->kept[i].s) != g->kept[i].version;
  atomic_store(&g->launches->ready, true);
  capture_ended();
  if (e == cudaSuccess && keep) e = ty_cuda_use(g->gpu);         /* another one may be current since graphs were given back */
  if (e == cudaSuccess && keep) e = cudaGraphGetNodes(made, NULL, nodes);
  if (e == cudaSuccess && keep) e = cudaGraphInstantiate(&g->exec, made, 0);
  if (made) cudaGraphDestroy(made);
  if (e == cudaSuccess && keep && !g->pool->ran) g->pool->ran = g->pool->stream;   /* its blocks may have earlier work of that stream */
  if (!keep) { cudaGetLastError(); return TY_OK; }
  if (g->lost) return ty_no_memory(ctx, "graph");
  if (e == cudaErrorStreamCaptureUnjoined) {
    cudaGetLastError();
    return ty_error(ctx, "graph: capture failed on cuda:%d: another stream's work isn't joined: call current_stream():wait_stream(s) "
      "at the function's end", g->gpu);
  }
  return e == cudaSuccess ? TY_OK : ty_cuda_fail(ctx, e, "graph: capture", g->gpu);
}

ty_status ty_graph_replay(ty_ctx *ctx, void *graph) {
  ty_graph *g = graph;
  ty_stream *s;
  if (!g->exec) return ty_error(ctx, "replay: the graph has not been captured");
  TY_TRY(ty_refuse_capture(ctx, "replay: a graph can't be launched"));
  TY_TRY(ty_cuda_enter(ctx, g->gpu, &s));
  if (g->pool->ran != s) ty_stream_wait_for(s, g->pool->ran);
  for (int i = 0; i < g->nkept; i++)
    if (g->kept[i].s->backend->gpu == g->gpu) ty_cuda_settle(g->kept[i].s, s, g->kept[i].written);
  for (int k = 0; k < TY_NTURNS; k++)
    if (g->last[k]) ty_turn_begin(k, s);
  const cudaError_t e = cudaGraphLaunch(g->exec, s->s);
  for (int k = 0; k < TY_NTURNS; k++)
    if (g->last[k]) ty_turn_end(k, g->gpu);
  if (e != cudaSuccess) return ty_cuda_fail(ctx, e, "cudaGraphLaunch", g->gpu);
  g->pool->ran = s;
  atomic_fetch_add(&g->launches->count, 1);
  for (int i = 0; i < g->nkept; i++)
    if (g->kept[i].written) atomic_fetch_add_explicit(&g->kept[i].s->version, 1, memory_order_relaxed);
  return TY_OK;
}
