/* The caching allocator of device memory, and pinned host memory.
 *
 * Idea: memory is taken from the driver in segments and cut into blocks; a freed block goes back to the stream it was made for, at once,
 * since whatever that stream does next comes after what it did with the block. A block that other streams have worked with waits for
 * events on those. Invariants: the blocks of a segment, linked in order, cover it; no two free neighbours are of one stream; blocks in
 * use never move. One lock guards all. TYCHO_CUDA_CACHE=0 gives each tensor its own allocation, for memory checkers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda.h"

#define UNIT ((size_t)512)                 /* sizes are multiples of it */
#define SMALL ((size_t)1 << 20)            /* up to here blocks come from segments of SMALL_SEGMENT */
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20)   /* for blocks up to half of it; larger ones have their own, rounded to SMALL_SEGMENT */
#define BINS 48
#define USERS 4

typedef struct block {
  char *p;
  size_t size;
  struct block *before, *after;            /* neighbours in the segment */
  struct block *prev, *next;               /* in the list of free blocks, or next of those that wait */
  ty_stream *stream;
  uint64_t pool;                           /* of the graphs for which it was handed out; 0: none */
  ty_stream *user[USERS];                  /* others that have worked with it since it was handed out */
  int nuser, nwait;
  cudaEvent_t wait[USERS];                 /* what must happen before it is free */
  ty_stream *by[USERS];                    /* in which streams */
  bool free, small, unmarked;              /* unmarked: freed while a graph was captured, whose end is before its events */
  bool awaited;                            /* in the list of those that wait */
  struct block *earlier, *later;           /* a segment's first one: in the list of segments */
  char *where;                             /* of whoever has it: the program's line, or NULL */
} block;

typedef struct {
  block *bin[2][BINS];                     /* free blocks: large, small; by size's power of two */
  block *waiting, *last;                   /* those that came first are first */
  block *segment;                          /* the first block of each, which stays the first */
  long long allocated, peak_allocated, reserved, peak_reserved, allocations, segments, used[TY_GPU_SIZES];
  long long retries, failures;             /* refusals, of which a failure has two: before the cache was given back and after it */
  double share;                            /* of the device's memory, which reserved stays within; 0: no limit */
  size_t most;                             /* the bytes of that */
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

static void segment_add(heap *h, block *b) {
  b->earlier = NULL;
  b->later = h->segment;
  if (h->segment) h->segment->earlier = b;
  h->segment = b;
  h->reserved += (long long)b->size;
  h->peak_reserved = TY_MAX(h->peak_reserved, h->reserved);
  h->segments++;
}

/* Of one block. */
static void segment_free(heap *h, block *b) {
  if (b->earlier) b->earlier->later = b->later;
  else h->segment = b->later;
  if (b->later) b->later->earlier = b->earlier;
  h->reserved -= (long long)b->size;
  h->segments--;
  cudaFree(b->p);
  free(b);
}

/* Joins b, which is in no list, with its free neighbours, and lists it. */
static void coalesce(heap *h, block *b) {
  block *n = b->after;
  b->awaited = false;
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

/* An event of what the stream has been given so far; NULL, and all that is done already, where none can be had. */
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
  if (b->nuser) ty_use(b->stream->gpu);    /* theirs may be others */
}

/* Blocks whose other streams have done with them become free; all: waits for that. Those of a graph that other streams have used wait
 * until it ends. A stream that isn't ready for one is hardly ready for those after it, and isn't asked again. */
static void collect(heap *h, bool all) {
  ty_stream *busy[2 * USERS];
  int nbusy = 0;
  block *before = NULL;
  for (block *b = h->waiting, *next; b; b = next) {
    next = b->next;
    /* users of an unmarked one may be part of a capture */
    const bool asked = !b->stream->taken && !(b->unmarked && ty_anyone_captures());
    if (asked && b->unmarked) mark_users(b);
    while (asked && b->nwait) {
      ty_stream *by = b->by[b->nwait - 1];
      bool known = false;
      for (int i = 0; i < nbusy; i++) known = known || busy[i] == by;
      if (known) break;
      cudaError_t e = all ? cudaEventSynchronize(b->wait[b->nwait - 1]) : cudaEventQuery(b->wait[b->nwait - 1]);
      if (e != cudaSuccess) {              /* not yet, or nobody can say */
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
  /* the pool of a graph grows: not part of what is recorded */
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
  /* another branch of a capture gets memory that no branch had */
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
  }
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
  free(b->where);
  b->where = NULL;
  b->nwait = 0;
  /* its users may be part of the capture: their events would be too */
  b->unmarked = ty_capturing() && b->nuser && ty_captures(dev->gpu) != b->stream;
  if (!ty_capturing()) mark_users(b);
  if (!ty_cuda_cached()) {                         /* its own stream's work too */
    for (int i = 0; i < b->nwait; i++) { cudaEventSynchronize(b->wait[i]); cudaEventDestroy(b->wait[i]); }
    cudaStreamSynchronize(b->stream->s);
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
  else if (!known) {                       /* more streams than there is room for: the last one waits for this one from now on */
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
  const long long reserved = h->reserved, allocated = h->allocated;
  if (h->share) snprintf(limit, sizeof limit, ", at most %zu may be", h->most);
  pthread_mutex_unlock(&lock);
  if (e != cudaSuccess) {                  /* an earlier kernel's end may look like too little memory */
    cudaGetLastError();
    snprintf(text, size, "; but the device fails: %s (%s)%s", cudaGetErrorString(e), cudaGetErrorName(e), ty_cuda_lost(e));
  } else
    snprintf(text, size, "; of the device's %zu bytes %zu are free, %lld are held for %lld bytes in use%s", total, left,
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

/* ---- pinned host memory: few blocks, so lists; those given back wait here for the next that wants as much ---- */

typedef struct pinned { char *p; size_t n; struct pinned *next; cudaEvent_t last; } pinned;   /* last: after the last copy, or NULL */
static pinned *pins, *spare;

static void forget(pinned *b) {
  if (b->last) { cudaEventSynchronize(b->last); cudaEventDestroy(b->last); }
  cudaFreeHost(b->p);
  ty_free(b);
}

/* A block given back that is large enough, and not much larger, and whose copies are done. */
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
  int gpu = ctx->gpu;                      /* any will do: one that is open already */
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

/* What stream does next to p comes after the copies that others have begun. */
void ty_pinned_follows(const void *p, ty_stream *stream) {
  if (ty_captures(stream->gpu)) return;
  pthread_mutex_lock(&lock);
  pinned *b = pin_of(p);
  if (b) follow(b, stream);
  pthread_mutex_unlock(&lock);
}

/* A copy in stream reads or writes p: its memory isn't used again before that. */
void ty_pinned_used_on(const void *p, ty_stream *stream) {
  if (ty_captures(stream->gpu)) return;    /* the graph keeps it */
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

/* ---- the cache, of both kinds, given back ---- */

void ty_cuda_empty_cache(const ty_backend *dev) {
  if (!ty_is_open(dev->gpu) || ty_use(dev->gpu) != cudaSuccess) return;
  if (ty_device_wait(false) != cudaSuccess) {              /* a graph is captured, or nothing works any more */
    cudaGetLastError();
    return;
  }
  pthread_mutex_lock(&lock);
  collect(&heaps[dev->gpu], true);
  release_segments(&heaps[dev->gpu]);
  release_pinned();
  pthread_mutex_unlock(&lock);
}
