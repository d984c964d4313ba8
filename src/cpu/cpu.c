/* The CPU backend: its table, its memory, its threads, and the widening of 16-bit operands.
 *
 * Idea: freed blocks are kept by size class and handed out again, since returning large blocks to the system costs a page
 * fault for each page of the next step. Invariants: blocks in use and kept blocks together stay within the largest of three limits:
 * CACHE_LEAST; the peak of bytes in use; twice that peak, but CACHE_MOST at most. To that end the classes unused for longest make room
 * for new blocks. Nothing starts threads before the first large op; blocks are 64-byte aligned. Under sanitizers (TY_NO_CACHE) every
 * block goes back at once. */
#include <errno.h>
#include <malloc.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "cpu.h"

/* ---- memory ---- */

#define CLASSES 256
#define CACHE_LEAST ((size_t)256 << 20)
#define CACHE_MOST ((size_t)1 << 30)
typedef struct block { struct block *next; } block;
static struct { block *first; size_t size; uint64_t used; } cache[CLASSES];   /* used: when a block last came or went */
static size_t cached, live, peak;          /* bytes; peak is updated when live falls */
static uint64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
TY_HELD_AT_FORK(lock)

/* Eight classes for each doubling: at most an eighth is wasted. */
static int size_class(size_t n, size_t *rounded) {
  if (n <= 64) { *rounded = 64; return 0; }
  int e = 63 - __builtin_clzll((unsigned long long)(n - 1));
  size_t step = (size_t)1 << (e > 8 ? e - 3 : 6);
  *rounded = (n + step - 1) / step * step;
  e = 63 - __builtin_clzll((unsigned long long)(*rounded - 1));
  int eighth = e > 8 ? (int)((*rounded - 1) >> (e - 3) & 7) : (int)((*rounded - 1) >> 6 & 7);
  return TY_MIN((e > 8 ? e - 8 : 0) * 8 + eighth + 1, CLASSES - 1);
}

/* Large blocks are mapped one by one, in large pages where the system has them: that makes fewer faults, and prefetching doesn't stop at
 * small pages' ends. On the heap, blocks in use would keep their free neighbours from merging, and from going back to the system. */
#define MAPPED_FROM ((size_t)1 << 20)
#define LARGE_PAGE ((size_t)1 << 21)
static void *from_system(size_t size) {
  void *p = NULL;
#ifndef TY_NO_CACHE
  if (size >= MAPPED_FROM) {
    const size_t room = size + LARGE_PAGE;
    char *whole = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) return NULL;
    const size_t before = -(uintptr_t)whole & (LARGE_PAGE - 1);
    if (before) munmap(whole, before);
    munmap(whole + before + size, room - before - size);
    madvise(whole + before, size, MADV_HUGEPAGE);                            /* only a hint */
    return whole + before;
  }
#endif
  return posix_memalign(&p, 64, size) == 0 ? p : NULL;
}
static void to_system(void *p, size_t size) {
#ifndef TY_NO_CACHE
  if (size >= MAPPED_FROM) { munmap(p, size); return; }
#endif
  (void)size;
  free(p);
}

static void drop_block(int k) {
  block *b = cache[k].first;
  cache[k].first = b->next;
  cached -= cache[k].size;
  to_system(b, cache[k].size);
}

/* Before a new block: drops blocks of the classes unused for longest. A peak that isn't reached again decays little by little. */
static void make_room(size_t size) {
  peak -= (peak - TY_MIN(live, peak)) / 64;
  const size_t most = TY_MAX(peak, live + size), limit = TY_MAX(CACHE_LEAST, TY_MAX(most, TY_MIN(2 * most, CACHE_MOST)));
  while (cached && live + cached + size > limit) {
    int oldest = -1;
    for (int i = 0; i < CLASSES; i++)
      if (cache[i].first && (oldest < 0 || cache[i].used < cache[oldest].used)) oldest = i;
    drop_block(oldest);
  }
}

static void *take(size_t n) {
  size_t size;
  int k = size_class(n, &size);
  void *p = NULL;
#ifndef TY_NO_CACHE
  pthread_mutex_lock(&lock);
  if (k < CLASSES - 1 && (p = cache[k].first)) {
    cache[k].first = cache[k].first->next;
    cache[k].used = ++now;
    cached -= size;
  } else make_room(size);
  live += size;
  pthread_mutex_unlock(&lock);
  if (p) return p;
#else
  (void)k;
  size = n;
#endif
  p = from_system(size);
#ifndef TY_NO_CACHE
  if (!p) {
    pthread_mutex_lock(&lock);
    live -= size;
    pthread_mutex_unlock(&lock);
  }
#endif
  return p;
}

static void *cpu_alloc(ty_ctx *ctx, const ty_backend *b, size_t n, void **record) { return (void)ctx, (void)b, (void)record, take(n); }

static void give(void *p, size_t n) {
  size_t size;
  int k = size_class(n, &size);
#ifndef TY_NO_CACHE
  bool keep = k < CLASSES - 1;
  pthread_mutex_lock(&lock);
  peak = TY_MAX(peak, live);
  live -= size;
  if (keep) {
    ((block *)p)->next = cache[k].first;
    cache[k].first = p;
    cache[k].size = size;
    cache[k].used = ++now;
    cached += size;
  }
  pthread_mutex_unlock(&lock);
  if (keep) return;
#else
  (void)k;
#endif
  to_system(p, size);
}

static void cpu_free(const ty_backend *b, void *p, size_t n, void *record) { (void)b; (void)record; give(p, n); }

static void cpu_empty_cache(const ty_backend *b) {
  (void)b;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < CLASSES; i++)
    while (cache[i].first) drop_block(i);
  peak = live;
  pthread_mutex_unlock(&lock);
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

/* Scratch memory carries its size in front, so that it comes from the same cache. */
void *ty_scratch(size_t n) {
  char *p = take(n + 64);
  if (!p) return NULL;
  *(size_t *)p = n + 64;
  return p + 64;
}

void ty_scratch_free(void *p) {
  if (p) give((char *)p - 64, *(size_t *)((char *)p - 64));
}

/* ---- threads, instruction sets ---- */

static _Atomic int threads;

/* libgomp ends the process when a thread can't be started, so this tries it before: how many of n threads, this one included, can run. */
static pthread_mutex_t trying = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_trial(void *p) {
  pthread_mutex_lock(&trying);
  pthread_mutex_unlock(&trying);
  return p;
}
static int startable(int n) {
  static int known = 1;                    /* threads that have been started once: libgomp keeps them */
  int k = 0;
  pthread_mutex_lock(&trying);
  const int more = TY_MAX(n - known, 0);
  pthread_t *t = more ? calloc((size_t)more, sizeof *t) : NULL;
  while (t && k < more && pthread_create(&t[k], NULL, wait_for_trial, NULL) == 0) k++;
  known += k;
  n = TY_MIN(n, known);
  pthread_mutex_unlock(&trying);
  for (int i = 0; i < k; i++) pthread_join(t[i], NULL);
  free(t);
  return n;
}

/* A child of fork has none of its parent's threads, for which libgomp would wait forever: unless there were none, it uses one thread. */
static _Atomic bool alone, orphaned;
static void before_fork(void) {
  struct stat st;
  alone = stat("/proc/self/task", &st) == 0 && st.st_nlink <= 3;
}
static void in_child(void) {
  if (alone) return;
  orphaned = true;
  ty_set_num_threads(1);
}

static void watch_forks(void) { pthread_atfork(before_fork, NULL, in_child); }

static __thread int told;                /* the number that OpenMP was told; it keeps one for each thread, and libraries ask for it */

int ty_get_num_threads(void) {
  if (!threads) ty_set_num_threads(TY_MAX(omp_get_max_threads(), 1));
  if (told != threads && !omp_in_parallel()) omp_set_num_threads(told = threads);
  return threads;
}

void ty_set_num_threads(int n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  n = orphaned ? 1 : n > 1 ? startable(n) : n;
  omp_set_num_threads(told = threads = n);
}

extern const ty_loops ty_loops_base;
#ifdef __x86_64__
extern const ty_loops ty_loops_avx2, ty_loops_avx512;
#endif

const ty_loops *ty_cpu_loops(void) {
  static const ty_loops *_Atomic best;
  if (best) return best;
  const ty_loops *l = &ty_loops_base;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) l = &ty_loops_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    l = &ty_loops_avx512;
#endif
  return best = l;
}

/* ---- 16-bit operands ---- */

bool ty_native_bf16(int set) {
  static _Atomic int native = -1;
#ifdef __x86_64__
  if (native < 0) native = __builtin_cpu_supports("avx512bf16") != 0;     /* CPUs with AMX have it too */
#endif
  if (set >= 0) native = set;
  return native > 0;
}

ty_status ty_widened(ty_call *c, ty_kernel kernel) {
  bool half = false;
  for (int i = 0; i < c->nin; i++) half = half || (c->in[i].t && ty_is_16bit(c->in[i].t->dtype));
  if (!half) return kernel(c);
  ty_operand in[TY_MAXPARAM];
  ty_call k = *c;
  ty_status s = TY_OK;
  memset(in, 0, sizeof in);
  k.in = in;
  for (int i = 0; i < c->nin && s == TY_OK; i++) {
    in[i] = c->in[i];
    if (!in[i].t) continue;
    s = ty_is_16bit(in[i].t->dtype) ? ty_cast(c->ctx, c->in[i].t, TY_F32, &in[i].t) : (ty_retain(in[i].t), TY_OK);
    if (s != TY_OK) in[i].t = NULL;
  }
  for (int i = 0; i < c->op->nout; i++) {
    k.out[i] = s == TY_OK ? ty_retain(c->out[i]) : NULL;
    if (s != TY_OK || !ty_is_16bit(c->out[i]->dtype)) continue;
    ty_meta m = c->meta[i];
    m.dtype = TY_F32;
    ty_release(k.out[i]);
    k.out[i] = NULL;
    s = ty_empty(c->ctx, c->out[i]->storage->backend, &m, &k.out[i]);
  }
  if (s == TY_OK) s = kernel(&k);
  for (int i = 0; i < c->op->nout; i++) {
    if (s == TY_OK && k.out[i]->dtype != c->out[i]->dtype) s = ty_copy_into(c->ctx, c->out[i], k.out[i]);
    ty_release(k.out[i]);
  }
  for (int i = 0; i < c->op->nparam; i++) {             /* operands that the op changes */
    int slot = c->op->param[i].slot;
    if (s == TY_OK && c->op->param[i].mutated && in[slot].t && in[slot].t != c->in[slot].t)
      s = ty_copy_into(c->ctx, c->in[slot].t, in[slot].t);
  }
  for (int i = 0; i < c->nin; i++) ty_release(in[i].t);
  return s;
}

/* oneDNN is faster with channels last; float64 takes the plain way (conv.c), which is contiguous. */
static bool channels_last(ty_dtype d) { return d != TY_F64; }

const ty_backend ty_cpu = {
  .name = "cpu",
  .gpu = -1,
  .alloc = cpu_alloc,
  .free = cpu_free,
  .empty_cache = cpu_empty_cache,
  .channels_last = channels_last,
  .fuse = ty_cpu_fuse,
  .fused = ty_cpu_fused,
  .fused_free = ty_cpu_fused_free,
  .run = {
    [TY_C_POINTWISE] = ty_cpu_pointwise, [TY_C_REDUCE] = ty_cpu_reduce, [TY_C_REDUCE_INDEX] = ty_cpu_reduce_index,
    [TY_C_SCAN] = ty_cpu_scan,
    [TY_C_COPY] = ty_cpu_copy, [TY_C_CAT] = ty_rearrange, [TY_C_FILL] = ty_cpu_fill, [TY_C_RANDOM] = ty_cpu_random,
    [TY_C_MATMUL] = ty_cpu_matmul, [TY_C_LINALG] = ty_cpu_linalg, [TY_C_DECOMPOSE] = ty_cpu_linalg, [TY_C_FOURIER] = ty_cpu_fourier,
    [TY_C_SOFTMAX] = ty_cpu_softmax, [TY_C_INDEX] = ty_cpu_index, [TY_C_SORT] = ty_cpu_sort, [TY_C_CONV] = ty_cpu_conv,
    [TY_C_POOL] = ty_cpu_pool,
    [TY_C_RESIZE] = ty_cpu_resize, [TY_C_SAMPLE] = ty_cpu_sample, [TY_C_DISTANCE] = ty_cpu_distance,
    [TY_C_NORM] = ty_cpu_norm, [TY_C_ATTENTION] = ty_cpu_attention,
    [TY_C_RECURRENT] = ty_cpu_recurrent, [TY_C_LOSS] = ty_cpu_loss, [TY_C_ALIGN] = ty_cpu_align, [TY_C_OPTIM] = ty_cpu_optim,
    [TY_C_COLLECTIVE] = ty_cpu_collective,
  },
};

/* The function that the compiler calls for `omp parallel`; the Makefile has the linker wrap it (--wrap). A team of one thread costs a
 * system call, 0.7 us, for nothing: its thread can call fn itself. But within another team, fn's loop would be shared out among that. */
void __real_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags);
void __wrap_GOMP_parallel(void (*fn)(void *), void *data, unsigned threads, unsigned flags) {
  if (threads == 1 && !omp_in_parallel()) fn(data);
  else __real_GOMP_parallel(fn, data, threads, flags);
}
