/* The caching allocator of device memory, and pinned host memory.
 *
 * Idea: memory comes from the driver in segments, which are cut into blocks. A block belongs to the stream it was allocated for, which can
 * reuse it as soon as it is freed, since the stream's later work runs after its earlier work. If other streams have used the block, it
 * first waits for events recorded on those. Invariants: the blocks of a segment, linked in order, cover it; no two free neighbours belong
 * to one stream; blocks in use never move. One lock guards all. TYCHO_CUDA_CACHE=0 gives each tensor its own allocation, for memory
 * checkers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.h"

#define UNIT ((size_t)512)                 /* block sizes are multiples of it */
#define SMALL ((size_t)1 << 20)            /* blocks up to this size come from segments of SMALL_SEGMENT */
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20)   /* for blocks up to half its size; each larger one has a segment, rounded up to SMALL_SEGMENT */
#define BINS 48
#define USERS 4

typedef struct block {
  char *p;
  size_t size;
  struct block *before, *after;            /* neighbours in the segment */
  struct block *prev, *next;               /* in a list of free blocks; next: also in the list of waiting ones */
  ty_stream *stream;
  uint64_t pool;                           /* id of the graph pool it was allocated for; 0: none */
  ty_stream *user[USERS];                  /* other streams that have used it since it was allocated */
  int nuser, nwait;
  cudaEvent_t wait[USERS];                 /* must happen before it is free */
  ty_stream *by[USERS];                    /* the stream of each event */
  bool free, small, unmarked;              /* unmarked: freed during a capture, so that its events are recorded later */
  bool awaited;                            /* in the list of waiting blocks */
  struct block *earlier, *later;           /* a segment's first block: in the list of segments */
  char *where;                             /* the program's line that allocated it, or NULL */
} block;

typedef struct {
  block *bin[2][BINS];                     /* free blocks: large, small; by the power of two of their size */
  block *waiting, *last;                   /* blocks that wait for events, the oldest first */
  block *segment;                          /* list of segments: the first block of each, which stays the first */
  long long allocated, peak_allocated, reserved, peak_reserved, allocations, segments, used[TY_GPU_SIZES];
  long long retries, failures;             /* refused allocations; a failure has two: before and after the cache is emptied */
  size_t refused;                          /* the last one's bytes */
  double share;                            /* the part of the device's memory that reserved stays within; 0: no limit */
  size_t most;                             /* that part in bytes */
} heap;

static heap heaps[TY_MAXGPU];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int bin_of(size_t n) { return TY_MIN(BINS - 1, 63 - __builtin_clzll((unsigned long long)n)); }

static int size_class(size_t n) {
  int k = 0;
  while (k < TY_GPU_SIZES - 1 && n > TY_GPU_SIZE(k)) k++;
  return k;
}

static void list_add(heap *h, block *b) {
  block **first = &h->bin[b->small][bin_of(b->size)];
  b->free = true;
  b->prev = NULL;
  b->next = *first;
  if (*first) (*first)->prev = b;
  *first = b;
}

static void list_remove(heap *h, block *b) {
  if (b->prev) b->prev->next = b->next;
  else h->bin[b->small][bin_of(b->size)] = b->next;
  if (b->next) b->next->prev = b->prev;
  b->free = false;
}

static int gpu_of(const heap *h) { return (int)(h - heaps); }

static void segment_add(heap *h, block *b) {
  b->earlier = NULL;
  b->later = h->segment;
  if (h->segment) h->segment->earlier = b;
  h->segment = b;
  h->reserved += (long long)b->size;
  h->peak_reserved = TY_MAX(h->peak_reserved, h->reserved);
  h->segments++;
  ty_memory_happened(gpu_of(h), TY_MEMORY_SEGMENT_ALLOC, b->p, b->size, b->stream, NULL);
}

/* b is the segment's only block. */
static void segment_free(heap *h, block *b) {
  if (b->earlier) b->earlier->later = b->later;
  else h->segment = b->later;
  if (b->later) b->later->earlier = b->earlier;
  h->reserved -= (long long)b->size;
  h->segments--;
  ty_memory_happened(gpu_of(h), TY_MEMORY_SEGMENT_FREE, b->p, b->size, b->stream, NULL);
  cudaFree(b->p);
  free(b);
}

/* Joins b, which is in no list, with its stream's free neighbours, and lists it as free. */
static void coalesce(heap *h, block *b) {
  block *n = b->after;
  b->awaited = false;
  ty_memory_happened(gpu_of(h), TY_MEMORY_FREE_COMPLETED, b->p, b->size, b->stream, NULL);
  if (n && n->free && n->stream == b->stream) {
    list_remove(h, n);
    b->size += n->size;
    b->after = n->after;
    if (b->after) b->after->before = b;
    free(n);
  }
  n = b->before;
  if (n && n->free && n->stream == b->stream) {
    list_remove(h, n);
    n->size += b->size;
    n->after = b->after;
    if (n->after) n->after->before = n;
    free(b);
    b = n;
  }
  list_add(h, b);
}

/* An event after all that the stream has been given; NULL where none can be had: then the host has waited for that work. */
static cudaEvent_t mark(ty_stream *s) {
  cudaEvent_t e;
  ty_use(s->gpu);
  if (cudaEventCreateWithFlags(&e, cudaEventDisableTiming) == cudaSuccess) {
    if (cudaEventRecord(e, s->s) == cudaSuccess) return e;
    cudaEventDestroy(e);
  }
  cudaGetLastError();
  ty_count_sync();
  cudaStreamSynchronize(s->s);
  return NULL;
}

static void mark_users(block *b) {
  b->nwait = 0;
  for (int i = 0; i < b->nuser; i++) {
    cudaEvent_t e = mark(b->user[i]);
    if (e) { b->by[b->nwait] = b->user[i]; b->wait[b->nwait++] = e; }
  }
  b->unmarked = false;
  if (b->nuser) ty_use(b->stream->gpu);    /* mark() may have selected another device */
}

/* Frees waiting blocks whose other streams are done with them; all: waits for those streams. Blocks of a graph's pool wait until the pool
 * ends. A stream that isn't ready for one block is hardly ready for later ones, and isn't asked again. */
static void collect(heap *h, bool all) {
  ty_stream *busy[2 * USERS];
  int nbusy = 0;
  block *before = NULL;
  for (block *b = h->waiting, *next; b; b = next) {
    next = b->next;
    /* an unmarked block's users may be part of a capture */
    const bool asked = !b->stream->taken && !(b->unmarked && ty_anyone_captures());
    if (asked && b->unmarked) mark_users(b);
    while (asked && b->nwait) {
      ty_stream *by = b->by[b->nwait - 1];
      bool known = false;
      for (int i = 0; i < nbusy; i++) known = known || busy[i] == by;
      if (known) break;
      cudaError_t e = all ? cudaEventSynchronize(b->wait[b->nwait - 1]) : cudaEventQuery(b->wait[b->nwait - 1]);
      if (e != cudaSuccess) {              /* not yet, or the query failed */
        if (e != cudaErrorNotReady) cudaGetLastError();
        else if (nbusy < (int)(sizeof busy / sizeof *busy)) busy[nbusy++] = by;
        break;
      }
      cudaEventDestroy(b->wait[--b->nwait]);
    }
    if (!asked || b->nwait) { before = b; continue; }
    *(before ? &before->next : &h->waiting) = next;
    if (h->last == b) h->last = before;
    coalesce(h, b);
  }
}

void ty_wait_for(ty_stream *s, ty_stream *other) {
  cudaEvent_t e = mark(other);
  if (e && (ty_use(s->gpu) != cudaSuccess || cudaStreamWaitEvent(s->s, e, 0) != cudaSuccess)) {
    cudaGetLastError();
    ty_count_sync();
    cudaStreamSynchronize(other->s);
  }
  if (e) cudaEventDestroy(e);
  ty_use(s->gpu);
}

static block *find(heap *h, bool small, size_t n, const ty_stream *s) {
  block *best = NULL;
  for (int k = bin_of(n); k < BINS && !best; k++)
    for (block *b = h->bin[small][k]; b; b = b->next)
      if (b->stream == s && b->size >= n && (!best || b->size < best->size)) {
        best = b;
        if (b->size == n) return b;
      }
  return best;
}

bool ty_cuda_cached(void) {
  static int on = -1;
  if (on < 0) { const char *v = getenv("TYCHO_CUDA_CACHE"); on = !v || strcmp(v, "0"); }
  return on;
}

static block *segment_new(heap *h, bool small, size_t n, ty_stream *s) {
  size_t size = !ty_cuda_cached() ? n : small ? SMALL_SEGMENT : n <= LARGE_SEGMENT / 2 ? LARGE_SEGMENT
    : (n + SMALL_SEGMENT - 1) / SMALL_SEGMENT * SMALL_SEGMENT;
  block *b = calloc(1, sizeof *b);
  void *p = NULL;
  if (!b) return NULL;
  /* a graph's pool may grow during capture: the allocation isn't recorded */
  const enum cudaStreamCaptureMode mode = ty_capture_mode(cudaStreamCaptureModeRelaxed);
  const bool beyond = h->share && (size_t)h->reserved + size > h->most;
  cudaError_t e = beyond ? cudaErrorMemoryAllocation : cudaMalloc(&p, size);
  ty_capture_mode(mode);
  if (e != cudaSuccess) {
    cudaGetLastError();
    free(b);
    h->retries++;
    return NULL;
  }
  *b = (block){.p = p, .size = size, .stream = s, .small = small};
  segment_add(h, b);
  return b;
}

static void release_segments(heap *h) {
  for (int small = 0; small < 2; small++)
    for (int k = 0; k < BINS; k++)
      for (block *b = h->bin[small][k], *next; b; b = next) {
        next = b->next;
        if (b->before || b->after || b->stream->taken) continue;    /* part of a segment that is in use, or of a graph's pool */
        list_remove(h, b);
        segment_free(h, b);
      }
}

void *ty_cuda_alloc(ty_ctx *ctx, const ty_backend *dev, size_t n, void **out) {
  heap *h = &heaps[dev->gpu];
  ty_stream *pool = ty_captures(dev->gpu), *s = pool ? pool : ty_stream_of(ctx, dev->gpu);
  n = ty_cuda_cached() ? (TY_MAX(n, 1) + UNIT - 1) / UNIT * UNIT : (TY_MAX(n, 1) + 3) / 4 * 4;
  const bool small = n <= SMALL;
  char where[sizeof ((ty_gpu_block *)0)->where];
  where[0] = 0;
  if (ty_core->flags->memory_history && ctx->host) ctx->host->where(ctx, where, sizeof where);
  if (ty_use(dev->gpu) != cudaSuccess) return NULL;
  pthread_mutex_lock(&lock);
  if (!ty_capturing()) collect(h, false);
  ty_stream *user = ty_stream_of(ctx, dev->gpu);
  /* a side branch of a capture gets new memory: another branch may still use a freed block */
  block *b = ty_cuda_cached() && (!pool || user == pool) ? find(h, small, n, s) : NULL;
  if (b) list_remove(h, b);
  else b = segment_new(h, small, n, s);
  if (b && ty_cuda_cached() && b->size - n >= (small ? UNIT : SMALL)) {      /* the rest is a block of its own */
    block *rest = calloc(1, sizeof *rest);
    if (rest) {
      *rest = (block){.p = b->p + n, .size = b->size - n, .before = b, .after = b->after, .stream = s, .small = small};
      if (rest->after) rest->after->before = rest;
      b->after = rest;
      b->size = n;
      list_add(h, rest);
    }
  }
  if (b) {
    b->nuser = 0;
    b->pool = ty_captured_pool(dev->gpu);
    b->where = where[0] ? strdup(where) : NULL;
    if (user != s) b->user[b->nuser++] = user;
    h->allocated += (long long)b->size;
    h->peak_allocated = TY_MAX(h->peak_allocated, h->allocated);
    h->allocations++;
    h->used[size_class(b->size)]++;
    ty_memory_happened(dev->gpu, TY_MEMORY_ALLOC, b->p, b->size, s, where);
  } else h->refused = n;
  pthread_mutex_unlock(&lock);
  *out = b;
  return b ? b->p : NULL;
}

void ty_cuda_free(const ty_backend *dev, void *p, size_t n, void *record) {
  heap *h = &heaps[dev->gpu];
  block *b = record;
  (void)p; (void)n;
  pthread_mutex_lock(&lock);
  h->allocated -= (long long)b->size;
  h->allocations--;
  h->used[size_class(b->size)]--;
  ty_memory_happened(dev->gpu, TY_MEMORY_FREE_REQUESTED, b->p, b->size, b->stream, b->where);
  free(b->where);
  b->where = NULL;
  b->nwait = 0;
  /* its users may be part of the capture, and so would be events on them */
  b->unmarked = ty_capturing() && b->nuser && ty_captures(dev->gpu) != b->stream;
  if (!ty_capturing()) mark_users(b);
  if (!ty_cuda_cached()) {                         /* waits for its own stream too */
    for (int i = 0; i < b->nwait; i++) { cudaEventSynchronize(b->wait[i]); cudaEventDestroy(b->wait[i]); }
    cudaStreamSynchronize(b->stream->s);
    ty_memory_happened(dev->gpu, TY_MEMORY_FREE_COMPLETED, b->p, b->size, b->stream, NULL);
    segment_free(h, b);
  } else if (b->nwait || b->unmarked || (b->nuser && b->stream->taken)) {
    b->awaited = true;
    b->next = NULL;
    *(h->last ? &h->last->next : &h->waiting) = b;
    h->last = b;
  } else coalesce(h, b);
  pthread_mutex_unlock(&lock);
}

void ty_used_on(const ty_storage *s, ty_stream *stream) {
  block *b = s->block;
  if (!b || b->stream == stream) return;
  pthread_mutex_lock(&lock);
  bool known = false;
  for (int i = 0; i < b->nuser; i++) known = known || b->user[i] == stream;
  if (!known && b->nuser < USERS) b->user[b->nuser++] = stream;
  else if (!known) {                       /* no room for one more: stream waits for the last one's work, then stands for both */
    ty_stream *last = b->user[USERS - 1];
    ty_wait_for(stream, last);
    b->user[USERS - 1] = stream;
  }
  pthread_mutex_unlock(&lock);
}

uint64_t ty_pool_of(const ty_storage *s) { return s->block ? ((const block *)s->block)->pool : 0; }

void ty_cuda_memory(const ty_backend *dev, char *text, size_t size) {
  size_t left = 0, total = 0;
  heap *h = &heaps[dev->gpu];
  char limit[64] = "";
  cudaError_t e = ty_use(dev->gpu);
  if (e == cudaSuccess) e = cudaMemGetInfo(&left, &total);
  pthread_mutex_lock(&lock);
  h->failures++;
  ty_memory_happened(dev->gpu, TY_MEMORY_OOM, (const void *)left, h->refused, NULL, NULL);
  const long long reserved = h->reserved, allocated = h->allocated;
  if (h->share) snprintf(limit, sizeof limit, ", at most %zu may be reserved", h->most);
  pthread_mutex_unlock(&lock);
  if (e != cudaSuccess) {                  /* a kernel's failure may have looked like too little memory */
    cudaGetLastError();
    snprintf(text, size, "; but the device fails: %s (%s)%s", cudaGetErrorString(e), cudaGetErrorName(e), ty_cuda_lost(e));
  } else
    snprintf(text, size, "; of the device's %zu bytes %zu are free; %lld are reserved for %lld bytes in use%s", total, left,
      reserved, allocated, limit);
}

size_t ty_cuda_snapshot(int gpu, ty_gpu_block *out, size_t room) {
  size_t n = 0;
  pthread_mutex_lock(&lock);
  for (const block *s = heaps[gpu].segment; s; s = s->later)
    for (const block *b = s; b; b = b->after, n++) {
      if (n >= room) continue;
      out[n] = (ty_gpu_block){.first = b == s, .state = b->free ? TY_BLOCK_FREE : b->awaited ? TY_BLOCK_AWAITED : TY_BLOCK_USED, .p = b->p,
        .stream = b->stream, .size = b->size};
      if (b->where) snprintf(out[n].where, sizeof out[n].where, "%s", b->where);
    }
  pthread_mutex_unlock(&lock);
  return n;
}

void ty_cuda_stats(int gpu, ty_gpu_stats *out) {
  pthread_mutex_lock(&lock);
  const heap *h = &heaps[gpu];
  *out = (ty_gpu_stats){.allocated = h->allocated, .peak_allocated = h->peak_allocated, .reserved = h->reserved,
    .peak_reserved = h->peak_reserved, .allocations = h->allocations, .segments = h->segments, .retries = h->retries - h->failures,
    .failures = h->failures};
  memcpy(out->used, h->used, sizeof out->used);
  for (int k = 0; k < 2 * BINS; k++)
    for (const block *b = h->bin[k / BINS][k % BINS]; b; b = b->next) out->free[size_class(b->size)]++;
  pthread_mutex_unlock(&lock);
}

void ty_cuda_reset_peaks(int gpu) {
  pthread_mutex_lock(&lock);
  heaps[gpu].peak_allocated = heaps[gpu].allocated;
  heaps[gpu].peak_reserved = heaps[gpu].reserved;
  pthread_mutex_unlock(&lock);
}

ty_status ty_cuda_share(ty_ctx *ctx, int gpu, double share, double *before) {
  size_t left, total;
  CUDA(ctx, gpu, ty_use(gpu));
  CUDA(ctx, gpu, cudaMemGetInfo(&left, &total));
  pthread_mutex_lock(&lock);
  heap *h = &heaps[gpu];
  *before = h->share ? h->share : 1;
  if (share >= 0) {
    h->share = share < 1 ? share : 0;
    h->most = (size_t)(share * (double)total);
  }
  pthread_mutex_unlock(&lock);
  return TY_OK;
}

/* ---- pinned host memory: few blocks, so plain lists; released ones are kept for reuse ---- */

typedef struct pinned { char *p; size_t n; struct pinned *next; cudaEvent_t last; } pinned;   /* last: after the last copy, or NULL */
static pinned *pins, *spare;

static void forget(pinned *b) {
  if (b->last) { cudaEventSynchronize(b->last); cudaEventDestroy(b->last); }
  cudaFreeHost(b->p);
  ty_free(b);
}

/* A spare block that is large enough, not much too large, and whose copies are done. */
static pinned *take_spare(size_t n) {
  for (pinned **at = &spare; *at; at = &(*at)->next) {
    pinned *b = *at;
    if (b->n < n || b->n > 2 * n + UNIT) continue;
    if (b->last && cudaEventQuery(b->last) != cudaSuccess) continue;
    if (b->last) cudaEventDestroy(b->last);
    b->last = NULL;
    *at = b->next;
    return b;
  }
  return NULL;
}

ty_status ty_pin(ty_ctx *ctx, size_t n, void **out) {
  int gpu = ctx->gpu;                      /* any device will do: an open one, if there is one */
  for (int i = 0; !ty_is_open(gpu) && i < ty_gpu_count; i++) if (ty_is_open(i)) gpu = i;
  TY_TRY(ty_refuse_capture(ctx, "pin_memory: called"));
  CUDA(ctx, gpu, ty_use(gpu));
  pthread_mutex_lock(&lock);
  pinned *b = take_spare(n);
  pthread_mutex_unlock(&lock);
  if (!b) {
    void *p = NULL;
    b = ty_malloc(sizeof *b);
    if (!b) return ty_no_memory(ctx, "pin_memory");
    cudaError_t e = cudaHostAlloc(&p, n, cudaHostAllocPortable);
    if (e != cudaSuccess) { ty_free(b); return ty_cuda_fail(ctx, e, "cudaHostAlloc", gpu); }
    *b = (pinned){.p = p, .n = n};
  }
  pthread_mutex_lock(&lock);
  b->next = pins;
  pins = b;
  pthread_mutex_unlock(&lock);
  *out = b->p;
  return TY_OK;
}

static pinned *pin_of(const void *p) {
  for (pinned *b = pins; b; b = b->next)
    if ((const char *)p >= b->p && (const char *)p < b->p + b->n) return b;
  return NULL;
}

bool ty_pinned(const void *p) {
  pthread_mutex_lock(&lock);
  bool is = pin_of(p);
  pthread_mutex_unlock(&lock);
  return is;
}

static void follow(pinned *b, ty_stream *stream) {
  if (!b->last || cudaStreamWaitEvent(stream->s, b->last, 0) == cudaSuccess) return;
  cudaGetLastError();
  ty_count_sync();
  cudaEventSynchronize(b->last);
}

/* What stream does next with p runs after the copies that other streams have begun. */
void ty_pinned_follows(const void *p, ty_stream *stream) {
  if (ty_captures(stream->gpu)) return;
  pthread_mutex_lock(&lock);
  pinned *b = pin_of(p);
  if (b) follow(b, stream);
  pthread_mutex_unlock(&lock);
}

/* A copy in stream reads or writes p: its block isn't reused before that copy is done. */
void ty_pinned_used_on(const void *p, ty_stream *stream) {
  if (ty_captures(stream->gpu)) return;    /* the graph holds the memory */
  pthread_mutex_lock(&lock);
  pinned *b = pin_of(p);
  if (b) {
    follow(b, stream);
    if (b->last) cudaEventDestroy(b->last);    /* copies of one block follow one another, so one event stands for all */
    b->last = mark(stream);
  }
  pthread_mutex_unlock(&lock);
}

void ty_unpin(void *p) {
  pthread_mutex_lock(&lock);
  for (pinned **at = &pins; *at; at = &(*at)->next)
    if ((*at)->p == p) {
      pinned *b = *at;
      *at = b->next;
      if (ty_cuda_cached()) { b->next = spare; spare = b; }
      else forget(b);
      break;
    }
  pthread_mutex_unlock(&lock);
}

static void release_pinned(void) {
  while (spare) {
    pinned *b = spare;
    spare = b->next;
    forget(b);
  }
}

/* ---- emptying both caches ---- */

void ty_cuda_empty_cache(const ty_backend *dev) {
  if (!ty_is_open(dev->gpu) || ty_use(dev->gpu) != cudaSuccess) return;
  if (ty_device_wait(false) != cudaSuccess) {              /* a graph is being captured, or the device has failed */
    cudaGetLastError();
    return;
  }
  pthread_mutex_lock(&lock);
  collect(&heaps[dev->gpu], true);
  release_segments(&heaps[dev->gpu]);
  release_pinned();
  pthread_mutex_unlock(&lock);
}
