/* Segments: where the allocator's memory comes from, and goes back to; memory pools.
 *
 * Idea: an ordinary segment is one allocation of the driver's, or of a program's own function for a pool. An expandable one is a large
 * range of addresses, usually one for each stream, pool and kind of block, in which pieces get memory (vmm.c) where blocks need it, so that
 * free memory isn't scattered over segments. Invariants: pieces are aligned to their size, a power of two; an unmapped block is whole
 * pieces, in no list, and has no unmapped neighbour; a segment whose memory is all gone is ended; a graph's pool keeps its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

#define PIECE(small) ((small) ? SMALL_SEGMENT : (size_t)16 << 20)
static size_t up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

ty_mempool ty_general_pool = {.handles = 1};

/* Once a pool has no handles its segments go back as soon as they are free; what a graph's pool has then, when the cache is emptied. */
static void mempool_drop(ty_mempool *m, long *count) { if (--*count == 0 && m->handles + m->segments == 0) ty_free(m); }

/* n bytes at p, of b's segment, come from the device, or go back (n < 0). */
static void count_reserved(ty_heap *h, const ty_block *b, const char *p, long long n) {
  h->reserved += n;
  h->peak_reserved = TY_MAX(h->peak_reserved, h->reserved);
  const ty_memory_action what = b->piece ? n > 0 ? TY_MEMORY_SEGMENT_MAP : TY_MEMORY_SEGMENT_UNMAP
    : n > 0 ? TY_MEMORY_SEGMENT_ALLOC : TY_MEMORY_SEGMENT_FREE;
  ty_memory_happened(ty_gpu_of(h), what, p, (size_t)llabs(n), b->stream, NULL);
}

static void segment_add(ty_heap *h, ty_block *b) {
  b->home->segments++;
  b->earlier = NULL;
  b->later = h->segment;
  if (h->segment) h->segment->earlier = b;
  h->segment = b;
  h->segments++;
}

/* Waits for what may use a free block still: neither unmapping nor a program's function does. */
static bool at_rest(ty_heap *h, const ty_block *b) {
  ty_cuda_count_sync();
  const cudaError_t e = ty_cuda_use(ty_gpu_of(h));
  if (e == cudaSuccess && cudaStreamSynchronize(b->stream->s) == cudaSuccess) return true;
  cudaGetLastError();                      /* the stream is in another thread's capture, or the device has failed */
  return false;
}

/* b is the segment's only block, in no list. */
static void segment_free(ty_heap *h, ty_block *b) {
  if (b->earlier) b->earlier->later = b->later;
  else h->segment = b->later;
  if (b->later) b->later->earlier = b->earlier;
  h->segments--;
  if (!b->unmapped) count_reserved(h, b, b->p, -(long long)b->size);
  if (b->unmapped) ty_vmm_release(b->p, b->size);
  else if (b->home->source.free) {
    b->home->source.free(b->p, (ssize_t)b->size, ty_gpu_of(h), b->stream->s);
    cudaGetLastError();                    /* an error of the program's function isn't the next launch's */
  } else {
    ty_cuda_use(ty_gpu_of(h));
    ty_cuda_count_sync();
    cudaFree(b->p);                        /* waits for work that may still use the memory */
  }
  mempool_drop(b->home, &b->home->segments);
  free(b);
}

/* The bytes of a free block that can go back to where they came from, from *at: a segment, or whole pieces; none of a graph's pool. */
static size_t spare_of(const ty_block *b, char **at) {
  if (b->stream->taken) return 0;
  *at = b->piece ? (char *)up((size_t)b->p, b->piece) : b->p;
  if (!b->piece) return b->before || b->after ? 0 : b->size;
  char *const end = b->p + b->size - (size_t)(b->p + b->size) % b->piece;
  return end > *at ? (size_t)(end - *at) : 0;
}

void ty_give_back(ty_heap *h, ty_block *b) {
  char *at;
  size_t n = spare_of(b, &at);
  if (n && (b->piece || b->home->source.free) && !at_rest(h, b)) n = 0;
  if (n && !b->piece) { segment_free(h, b); return; }
  ty_block *middle = n && at > b->p ? ty_cut_block(b, (size_t)(at - b->p)) : b, *end = NULL;
  if (!n || !middle || (middle->size > n && !(end = ty_cut_block(middle, n)))) {     /* nothing, or there is no memory for blocks */
    if (middle && middle != b) ty_join_block(b);
    ty_list_block(h, b);
    return;
  }
  for (size_t done = 0; done < n; done += b->piece) ty_vmm_unmap(at + done, b->piece);
  count_reserved(h, b, at, -(long long)n);
  middle->unmapped = true;
  middle->used = false;
  if (middle != b) ty_list_block(h, b);
  if (end) ty_list_block(h, end);
  if (middle->after && middle->after->unmapped) ty_join_block(middle);
  if (middle->before && middle->before->unmapped) ty_join_block(middle = middle->before);
  if (!middle->before && !middle->after) segment_free(h, middle);
}

/* Calls f for each free block, which f may take out of its list. */
static void each_free(ty_heap *h, void (*f)(ty_heap *h, ty_block *b, void *arg), void *arg) {
  for (int k = 0; k < 2 * BINS; k++)
    for (ty_block *b = h->bin[k / BINS][k % BINS], *next; b; b = next) {
      next = b->next;
      f(h, b, arg);
    }
}

static void release(ty_heap *h, ty_block *b, void *arg) {
  const ty_mempool *only = arg;            /* NULL: all pools */
  char *at;
  if ((only && b->home != only) || !spare_of(b, &at)) return;
  ty_unlist_block(h, b);
  ty_give_back(h, b);
}

void ty_give_all_back(ty_heap *h, const ty_mempool *home) { each_free(h, release, (void *)home); }

static bool left_over;                     /* memory of pools that have ended, which couldn't go back then */

static void release_ended(ty_heap *h, ty_block *b, void *arg) {
  (void)arg;
  if (!b->home->handles) release(h, b, NULL);
}
void ty_leave_over(void) { left_over = true; }
bool ty_give_left_over_back(void) {
  if (!left_over || !ty_captures_stop(false)) return false;
  left_over = false;
  for (int i = 0; i < ty_gpu_count; i++)
    if (ty_heaps[i].segment && ty_cuda_use(i) == cudaSuccess) each_free(&ty_heaps[i], release_ended, NULL);
  ty_captures_go_on();
  return true;
}

static void choose_older(ty_heap *h, ty_block *b, void *arg) {
  ty_block **oldest = arg;
  char *at;
  (void)h;
  if ((!*oldest || b->since < (*oldest)->since) && spare_of(b, &at)) *oldest = b;
}

/* By the setting garbage_collection_threshold: gives back what has been free longest until size bytes more keep reserved within that share
 * of the memory. */
static void trim(ty_heap *h, size_t size) {
  size_t left, total = h->most;
  const double threshold = ty_core->flags->garbage_collection_threshold;
  if (threshold <= 0 || !ty_captures_stop(false)) return;
  const cudaError_t e = h->share ? cudaSuccess : cudaMemGetInfo(&left, &total);
  if (e != cudaSuccess) cudaGetLastError();
  else for (long long before = -1; h->reserved != before && (double)h->reserved + (double)size > threshold * (double)total;) {
    ty_block *oldest = NULL;
    each_free(h, choose_older, &oldest);
    before = h->reserved;
    if (oldest) release(h, oldest, NULL);
  }
  ty_captures_go_on();
}

/* Whether reserved stays within the share of the memory with n bytes more. */
static bool may_reserve(const ty_heap *h, size_t n) { return !h->share || (size_t)h->reserved + n <= h->most; }

static ty_block *segment_of(ty_heap *h, bool small, size_t size, ty_stream *s, ty_mempool *home) {
  trim(h, size);
  ty_block *b = may_reserve(h, size) ? calloc(1, sizeof *b) : NULL;
  void *p = NULL;
  if (!b) return NULL;
  if (home->source.alloc) p = home->source.alloc((ssize_t)size, ty_gpu_of(h), s->s);
  else if (cudaMalloc(&p, size) != cudaSuccess) p = NULL;
  if (!p) {
    cudaGetLastError();
    free(b);
    return NULL;
  }
  *b = (ty_block){.p = p, .size = size, .home = home, .stream = s, .small = small};
  segment_add(h, b);
  count_reserved(h, b, p, (long long)size);
  return b;
}

/* A new segment for n bytes, and for others where there is room for it. */
static ty_block *segment_new(ty_heap *h, bool small, size_t n, ty_stream *s, ty_mempool *home) {
  const size_t least = small ? SMALL_SEGMENT : up(n, SMALL_SEGMENT), most = n <= LARGE_SEGMENT / 2 && !small ? LARGE_SEGMENT : least;
  if (!ty_cuda_cached()) return segment_of(h, small, n, s, home);
  ty_block *b = segment_of(h, small, most, s, home);
  return b || most == least ? b : segment_of(h, small, least, s, home);
}

/* A new expandable segment: addresses for all of the device's memory, and an eighth more against holes. */
static ty_block *addresses_new(ty_heap *h, bool small, ty_stream *s, ty_mempool *home) {
  const size_t piece = PIECE(small);
  size_t left, total;
  if (cudaMemGetInfo(&left, &total) != cudaSuccess) { cudaGetLastError(); return NULL; }
  const size_t size = up(total + total / 8, piece);
  ty_block *b = calloc(1, sizeof *b);
  char *p = b ? ty_vmm_reserve(ty_gpu_of(h), size, piece) : NULL;
  if (!p) return free(b), NULL;
  *b = (ty_block){.p = p, .size = size, .home = home, .stream = s, .small = small, .unmapped = true, .piece = piece};
  segment_add(h, b);
  return b;
}

/* The first unmapped block of the first run of free and unmapped blocks that has n bytes; *missing: those that the blocks before it in the
 * run lack. */
static ty_block *unmapped_in_run(ty_block *segment, size_t n, size_t *missing) {
  ty_block *found = NULL;
  size_t run = 0, before = 0;
  for (ty_block *b = segment; b; b = b->after) {
    if (!b->free && !b->unmapped) { run = 0; found = NULL; continue; }
    if (b->unmapped && !found) { found = b; before = run; }
    run += b->size;
    if (run >= n && found) { *missing = n - before; return found; }
  }
  return NULL;
}

/* Gives memory to the first bytes of an unmapped block, n or all, and lists them as free. */
static bool map(ty_heap *h, ty_block *b, size_t n) {
  const size_t size = TY_MIN(b->size, up(n, b->piece));
  const int gpu = ty_gpu_of(h);
  size_t done = 0;
  if (!may_reserve(h, size) || (size < b->size && !ty_cut_block(b, size))) return false;
  while (done < size && ty_vmm_map(gpu, b->p + done, b->piece)) done += b->piece;
  if (done > 0 && (!ty_vmm_open_to(gpu, b->p, done) || (done < size && !ty_cut_block(b, done)))) {
    for (size_t i = 0; i < done; i += b->piece) ty_vmm_unmap(b->p + i, b->piece);
    done = 0;
  }
  ty_block *rest = b->after;               /* what stays unmapped is one block with its neighbour again */
  if (done < size && done > 0 && rest->after && rest->after->unmapped) ty_join_block(rest);
  if (done == 0) {
    if (rest && rest->unmapped) ty_join_block(b);
    return false;
  }
  for (int i = 0; i < ty_gpu_count; i++) if (h->readers >> i & 1) ty_vmm_open_to(i, b->p, done);     /* else copies go through the host */
  b->unmapped = false;
  count_reserved(h, b, b->p, (long long)done);
  ty_merge_block(h, b);
  return done == size;
}

void ty_memory_opens_to(int gpu, int reader) {
  ty_heap *h = &ty_heaps[gpu];
  pthread_mutex_lock(&ty_heap_lock);
  h->readers |= (uint64_t)1 << reader;
  for (const ty_block *segment = h->segment; segment; segment = segment->later)
    for (const ty_block *b = segment->piece ? segment : NULL, *first = b; b; b = b->after)
      if (b->unmapped) first = b->after;
      else if (!b->after || b->after->unmapped) ty_vmm_open_to(reader, first->p, (size_t)(b->p + b->size - first->p));   /* whole pieces */
  pthread_mutex_unlock(&ty_heap_lock);
}

/* A block of at least n bytes of an expandable segment, in no list; NULL: no memory, or *addresses is false. */
static ty_block *expand(ty_heap *h, bool small, size_t n, ty_stream *s, ty_mempool *home, bool *addresses) {
  trim(h, up(n, PIECE(small)));            /* first, since it may give back neighbours of what is mapped */
  for (ty_block *b, *at = NULL;;) {
    size_t missing = 0;
    ty_block *segment = h->segment;
    for (; segment; segment = segment->later)
      if (segment->piece && segment->stream == s && segment->small == small && segment->home == home &&
          (at = unmapped_in_run(segment, n, &missing))) break;
    if (!segment) {
      segment = addresses_new(h, small, s, home);
      at = segment ? unmapped_in_run(segment, n, &missing) : NULL;     /* NULL: n is more than all addresses */
    }
    if (!(*addresses = segment)) return NULL;
    const bool mapped = at && map(h, at, missing);
    if (segment->unmapped && !segment->after) segment_free(h, segment);
    if (!mapped) return NULL;
    if ((b = ty_find_block(h, small, n, s, home, false))) return ty_unlist_block(h, b), b;
  }
}

ty_block *ty_more_memory(ty_heap *h, bool small, size_t n, ty_stream *s, ty_mempool *home, bool fresh) {
  const bool expands = ty_core->flags->expandable_segments && ty_cuda_cached() && !home->source.alloc && !fresh;
  /* a graph's pool may grow during capture: the allocation isn't recorded */
  const enum cudaStreamCaptureMode mode = ty_capture_mode(cudaStreamCaptureModeRelaxed);
  bool addresses = false;
  ty_block *b = expands ? expand(h, small, n, s, home, &addresses) : NULL;
  if (!addresses) b = segment_new(h, small, n, s, home);       /* also where the driver has no virtual memory management */
  ty_capture_mode(mode);
  if (!b) h->retries++;
  return b;
}

/* ---- memory pools ---- */

ty_status ty_mempool_new(ty_ctx *ctx, const ty_gpu_source *source, void **out) {
  static uint64_t ids;
  ty_mempool *m = ty_malloc(sizeof *m);
  if (!m) return ty_no_memory(ctx, "MemPool");
  pthread_mutex_lock(&ty_heap_lock);
  *m = (ty_mempool){.id = ++ids, .handles = 1, .source = source ? *source : (ty_gpu_source){NULL, NULL}};
  pthread_mutex_unlock(&ty_heap_lock);
  *out = m;
  return TY_OK;
}

void ty_mempool_retain(void *pool) {
  pthread_mutex_lock(&ty_heap_lock);
  ((ty_mempool *)pool)->handles++;
  pthread_mutex_unlock(&ty_heap_lock);
}

void ty_mempool_release(void *pool) {
  ty_mempool *m = pool;
  pthread_mutex_lock(&ty_heap_lock);
  if (m->handles == 1 && m->segments) ty_leave_over();
  mempool_drop(m, &m->handles);
  ty_give_left_over_back();                /* during a capture, or while a thread waits for a device, it stays */
  pthread_mutex_unlock(&ty_heap_lock);
}

ty_status ty_cuda_set_source(ty_ctx *ctx, const ty_gpu_source *source) {
  pthread_mutex_lock(&ty_heap_lock);
  const bool used = ty_general_pool.segments > 0;
  if (!used) ty_general_pool.source = *source;
  pthread_mutex_unlock(&ty_heap_lock);
  if (!used) return TY_OK;
  return ty_error(ctx, "change_current_allocator: memory has been allocated already; call it before the first tensor on a GPU");
}

