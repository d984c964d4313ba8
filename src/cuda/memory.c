/* The caching allocator of device memory.
 *
 * Idea: memory comes from the driver, or from functions of the program, in segments, which are cut into blocks. A block belongs to the
 * stream it was allocated for, which can reuse it as soon as it is freed, since the stream's later work runs after its earlier work. If
 * other streams have used the block, it first waits for events recorded on those. A segment belongs to a memory pool, by default the
 * general one; only what is allocated for that pool gets its blocks. (Segments and pools: segment.c.) Invariants: the blocks of a segment,
 * linked in order, cover it; no two free neighbours belong to one stream; blocks in use never move. One lock guards all; a block's nuser
 * and late are read without it.
 * TYCHO_CUDA_CACHE=0 gives each tensor its own allocation, for memory checkers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

ty_heap ty_heaps[TY_MAXGPU];
pthread_mutex_t ty_heap_lock = PTHREAD_MUTEX_INITIALIZER;

static int size_class(size_t n) {
  int k = 0;
  while (k < TY_GPU_SIZES - 1 && n > TY_GPU_SIZE(k)) k++;
  return k;
}

void ty_list_block(ty_heap *h, ty_block *b) {
  ty_block **first = &h->bin[b->small][ty_bin_of(b->size)];
  b->free = true;
  b->since = h->clock++;
  b->prev = NULL;
  b->next = *first;
  if (*first) (*first)->prev = b;
  *first = b;
}

void ty_unlist_block(ty_heap *h, ty_block *b) {
  if (b->prev) b->prev->next = b->next;
  else h->bin[b->small][ty_bin_of(b->size)] = b->next;
  if (b->next) b->next->prev = b->prev;
  b->free = false;
}

ty_block *ty_cut_block(ty_block *b, size_t n) {
  ty_block *rest = calloc(1, sizeof *rest);
  if (!rest) return NULL;
  *rest = (ty_block){.p = b->p + n, .size = b->size - n, .home = b->home, .before = b, .after = b->after, .stream = b->stream,
    .small = b->small, .used = b->used, .unmapped = b->unmapped, .piece = b->piece};
  if (rest->after) rest->after->before = rest;
  b->after = rest;
  b->size = n;
  return rest;
}

void ty_join_block(ty_block *b) {
  ty_block *n = b->after;
  b->size += n->size;
  b->used = b->used || n->used;
  b->after = n->after;
  if (b->after) b->after->before = b;
  free(n);
}

void ty_merge_block(ty_heap *h, ty_block *b) {
  ty_block *n = b->after;
  if (n && n->free && n->stream == b->stream) {
    ty_unlist_block(h, n);
    ty_join_block(b);
  }
  n = b->before;
  if (n && n->free && n->stream == b->stream) {
    ty_unlist_block(h, n);
    ty_join_block(n);
    b = n;
  }
  if (b->home->handles || !ty_captures_stop(false)) {
    if (!b->home->handles) ty_leave_over();
    ty_list_block(h, b);
  } else {                                 /* its pool has ended */
    ty_give_back(h, b);
    ty_captures_go_on();
  }
}

/* No stream uses b any more. */
static void completed(ty_heap *h, ty_block *b) {
  b->awaited = false;
  ty_memory_happened(ty_gpu_of(h), TY_MEMORY_FREE_COMPLETED, b->p, b->size, b->stream, NULL);
  ty_merge_block(h, b);
}

static void mark_users(ty_block *b) {
  b->nwait = 0;
  for (int i = 0; i < b->nuser; i++) {
    cudaEvent_t e = ty_stream_mark(b->user[i]);
    if (e) { b->by[b->nwait] = b->user[i]; b->wait[b->nwait++] = e; }
  }
  b->unmarked = false;
  if (b->nuser) ty_cuda_use(b->stream->gpu);    /* ty_stream_mark() may have selected another device */
}

/* Frees waiting blocks whose other streams are done with them; all: waits for those streams. Blocks of a graph's pool wait until the pool
 * ends. A stream that isn't ready for one block is hardly ready for later ones, and isn't asked again. */
static void collect(ty_heap *h, bool all) {
  ty_stream *busy[2 * USERS];
  int nbusy = 0;
  ty_block *before = NULL;
  for (ty_block *b = h->waiting, *next; b; b = next) {
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
    completed(h, b);
  }
}

/* By the setting max_split_size: a larger block isn't cut up, and so serves only requests of about its size. */
static bool fits(const ty_block *b, size_t n) {
  const size_t most = (size_t)ty_core->flags->max_split_size;
  return b->size >= n && (!most || b->small || b->piece || (n < most ? b->size < most : b->size < n + LARGE_SEGMENT));
}

static bool worth_splitting(const ty_block *b, size_t n) {
  const size_t most = (size_t)ty_core->flags->max_split_size;
  return b->size - n >= (b->small ? UNIT : SMALL) && (!most || b->small || b->piece || n < most);
}

ty_block *ty_find_block(ty_heap *h, bool small, size_t n, const ty_stream *s, const ty_mempool *home, bool fresh) {
  ty_block *best = NULL;
  for (int k = ty_bin_of(n); k < BINS && !best; k++)
    for (ty_block *b = h->bin[small][k]; b; b = b->next)
      if (b->stream == s && b->home == home && !(fresh && b->used) && fits(b, n) && (!best || b->size < best->size)) {
        best = b;
        if (b->size == n) return b;
      }
  return best;
}

bool ty_cuda_cached(void) {
  static _Atomic int on = -1;
  if (on < 0) { const char *v = getenv("TYCHO_CUDA_CACHE"); on = !v || strcmp(v, "0"); }
  return on;
}

/* By the setting roundup_power2_divisions: sizes between two powers of two are rounded up to the next of that many steps. */
static size_t rounded(size_t n) {
  const size_t steps = (size_t)ty_core->flags->roundup_power2_divisions;
  if (!ty_cuda_cached()) return (TY_MAX(n, 1) + 3) / 4 * 4;
  n = (TY_MAX(n, 1) + UNIT - 1) / UNIT * UNIT;
  if (steps < 2 || n <= UNIT * steps) return n;
  const size_t step = ((size_t)1 << ty_bin_of(n)) / steps;
  return (n + step - 1) / step * step;
}

void *ty_cuda_alloc(ty_ctx *ctx, const ty_backend *dev, size_t n, void **out) {
  ty_heap *h = &ty_heaps[dev->gpu];
  ty_stream *pool = ty_captures(dev->gpu), *s = pool ? pool : ty_stream_of(ctx, dev->gpu);
  ty_mempool *home = ctx && ctx->mempool ? ctx->mempool : &ty_general_pool;
  n = rounded(n);
  const bool small = n <= SMALL;
  char where[sizeof ((ty_gpu_block *)0)->where];
  where[0] = 0;
  if (ty_core->flags->memory_history && ctx->host) ctx->host->where(ctx, where, sizeof where);
  if (ty_cuda_use(dev->gpu) != cudaSuccess) return NULL;
  pthread_mutex_lock(&ty_heap_lock);
  if (!ty_capturing()) {
    collect(h, false);
    if (ty_give_left_over_back()) ty_cuda_use(dev->gpu);
  }
  ty_stream *user = ty_stream_of(ctx, dev->gpu);
  /* a side branch of a capture gets unused memory: another branch may still use a freed block */
  const bool fresh = pool && user != pool;
  ty_block *b = ty_cuda_cached() ? ty_find_block(h, small, n, s, home, fresh) : NULL;
  if (b) ty_unlist_block(h, b);
  else b = ty_more_memory(h, small, n, s, home, fresh);
  ty_block *rest = b && ty_cuda_cached() && worth_splitting(b, n) ? ty_cut_block(b, n) : NULL;
  if (rest) ty_list_block(h, rest);
  if (b) {
    b->used = true;
    b->nuser = 0;
    b->late = false;
    b->graph_pool = ty_captured_pool(dev->gpu);
    b->where = where[0] ? strdup(where) : NULL;
    if (user != s) b->user[b->nuser++] = user;
    h->allocated += (long long)b->size;
    h->peak_allocated = TY_MAX(h->peak_allocated, h->allocated);
    h->allocations++;
    h->used[size_class(b->size)]++;
    ty_memory_happened(dev->gpu, TY_MEMORY_ALLOC, b->p, b->size, s, where);
  } else h->refused = n;
  pthread_mutex_unlock(&ty_heap_lock);
  *out = b;
  return b ? b->p : NULL;
}

void ty_cuda_free(const ty_backend *dev, void *p, size_t n, void *record) {
  ty_heap *h = &ty_heaps[dev->gpu];
  ty_block *b = record;
  (void)p; (void)n;
  pthread_mutex_lock(&ty_heap_lock);
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
    ty_give_back(h, b);
  } else if (b->nwait || b->unmarked || (b->nuser && b->stream->taken)) {
    b->awaited = true;
    b->next = NULL;
    *(h->last ? &h->last->next : &h->waiting) = b;
    h->last = b;
  } else completed(h, b);
  pthread_mutex_unlock(&ty_heap_lock);
}

void ty_cuda_used_on(const ty_storage *s, ty_stream *stream) {
  ty_block *b = s->block;
  if (!b || b->stream == stream) return;
  pthread_mutex_lock(&ty_heap_lock);
  bool known = false;
  for (int i = 0; i < b->nuser; i++) known = known || b->user[i] == stream;
  if (!known && b->late) ty_stream_wait_for(stream, b->stream);
  if (!known && b->nuser < USERS) b->user[b->nuser++] = stream;
  else if (!known) {                       /* no room for one more: stream waits for the last one's work, then stands for both */
    ty_stream *last = b->user[USERS - 1];
    ty_stream_wait_for(stream, last);
    b->user[USERS - 1] = stream;
  }
  pthread_mutex_unlock(&ty_heap_lock);
}

bool ty_cuda_used_elsewhere(const ty_storage *s, const ty_stream *stream) {
  const ty_block *b = s->block;
  pthread_mutex_lock(&ty_heap_lock);
  const bool elsewhere = !b || b->stream != stream || b->nuser > 0;
  pthread_mutex_unlock(&ty_heap_lock);
  return elsewhere;
}

void ty_cuda_is_late(const ty_storage *s) {
  pthread_mutex_lock(&ty_heap_lock);
  if (s->block) ((ty_block *)s->block)->late = true;
  pthread_mutex_unlock(&ty_heap_lock);
}

void ty_cuda_settle(const ty_storage *s, ty_stream *stream, bool written) {
  ty_block *b = s->block;
  if (!b || (!b->nuser && !b->late)) return;             /* the usual case, without the lock */
  pthread_mutex_lock(&ty_heap_lock);
  if (b->late && b->stream != stream) ty_stream_wait_for(stream, b->stream);
  for (int i = 0; written && i < b->nuser; i++)
    if (b->user[i] != stream) ty_stream_wait_for(stream, b->user[i]);
  if (written && b->stream == stream) b->nuser = 0;
  pthread_mutex_unlock(&ty_heap_lock);
}

uint64_t ty_cuda_pool_of(const ty_storage *s) { return s->block ? ((const ty_block *)s->block)->graph_pool : 0; }

void ty_cuda_memory(const ty_backend *dev, char *text, size_t size) {
  size_t left = 0, total = 0;
  ty_heap *h = &ty_heaps[dev->gpu];
  char limit[64] = "";
  cudaError_t e = ty_cuda_use(dev->gpu);
  if (e == cudaSuccess) e = cudaMemGetInfo(&left, &total);
  pthread_mutex_lock(&ty_heap_lock);
  h->failures++;
  ty_memory_happened(dev->gpu, TY_MEMORY_OOM, (const void *)left, h->refused, NULL, NULL);
  const long long reserved = h->reserved, allocated = h->allocated;
  if (h->share) snprintf(limit, sizeof limit, ", at most %zu may be reserved", h->most);
  pthread_mutex_unlock(&ty_heap_lock);
  if (e != cudaSuccess) {                  /* a kernel's failure may have looked like too little memory */
    cudaGetLastError();
    snprintf(text, size, "; but the device fails: %s (%s)%s", cudaGetErrorString(e), cudaGetErrorName(e), ty_cuda_lost(e));
  } else
    snprintf(text, size, "; of the device's %zu bytes %zu are free; %lld are reserved for %lld bytes in use%s", total, left,
      reserved, allocated, limit);
}

size_t ty_cuda_snapshot(int gpu, ty_gpu_block *out, size_t room) {
  size_t n = 0;
  pthread_mutex_lock(&ty_heap_lock);
  for (const ty_block *s = ty_heaps[gpu].segment; s; s = s->later)
    for (const ty_block *b = s; b; b = b->after) {
      if (b->unmapped || n++ >= room) continue;
      out[n - 1] = (ty_gpu_block){.first = b == s || b->before->unmapped, .expandable = b->piece > 0, .small = b->small,
        .pool = b->home->id, .p = b->p,
        .state = b->free ? TY_BLOCK_FREE : b->awaited ? TY_BLOCK_AWAITED : TY_BLOCK_USED, .stream = b->stream, .size = b->size};
      if (b->where) snprintf(out[n - 1].where, sizeof out[n - 1].where, "%s", b->where);
    }
  pthread_mutex_unlock(&ty_heap_lock);
  return n;
}

void ty_cuda_stats(int gpu, ty_gpu_stats *out) {
  pthread_mutex_lock(&ty_heap_lock);
  const ty_heap *h = &ty_heaps[gpu];
  *out = (ty_gpu_stats){.allocated = h->allocated, .peak_allocated = h->peak_allocated, .reserved = h->reserved,
    .peak_reserved = h->peak_reserved, .allocations = h->allocations, .segments = h->segments, .retries = h->retries - h->failures,
    .failures = h->failures};
  memcpy(out->used, h->used, sizeof out->used);
  for (int k = 0; k < 2 * BINS; k++)
    for (const ty_block *b = h->bin[k / BINS][k % BINS]; b; b = b->next) out->free[size_class(b->size)]++;
  pthread_mutex_unlock(&ty_heap_lock);
}

void ty_cuda_reset_peaks(int gpu) {
  pthread_mutex_lock(&ty_heap_lock);
  ty_heaps[gpu].peak_allocated = ty_heaps[gpu].allocated;
  ty_heaps[gpu].peak_reserved = ty_heaps[gpu].reserved;
  pthread_mutex_unlock(&ty_heap_lock);
}

ty_status ty_cuda_share(ty_ctx *ctx, int gpu, double share, double *before) {
  size_t left, total;
  CUDA(ctx, gpu, ty_cuda_use(gpu));
  CUDA(ctx, gpu, cudaMemGetInfo(&left, &total));
  pthread_mutex_lock(&ty_heap_lock);
  ty_heap *h = &ty_heaps[gpu];
  *before = h->share ? h->share : 1;
  if (share >= 0) {
    h->share = share < 1 ? share : 0;
    h->most = (size_t)(share * (double)total);
  }
  pthread_mutex_unlock(&ty_heap_lock);
  return TY_OK;
}

void ty_cuda_empty_cache(const ty_backend *dev) {
  if (!ty_cuda_is_open(dev->gpu) || ty_cuda_use(dev->gpu) != cudaSuccess) return;
  if (!ty_captures_stop(false)) return;                  /* a graph is being captured */
  ty_cuda_count_sync();
  if (cudaDeviceSynchronize() == cudaSuccess) {
    pthread_mutex_lock(&ty_heap_lock);
    collect(&ty_heaps[dev->gpu], true);
    ty_give_all_back(&ty_heaps[dev->gpu], NULL);
    pthread_mutex_unlock(&ty_heap_lock);
    ty_pinned_release();
  } else cudaGetLastError();
  ty_captures_go_on();
}
