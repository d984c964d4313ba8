/* Creation and random numbers.
 *
 * Idea: element i, in logical order, takes word i % 4 of Philox block offset + i / 4, as on every backend (core/rng.c); the generator lies
 * in device memory, and each kernel that draws advances it, so that a captured graph draws new numbers each time it runs. Invariant: it is
 * advanced only when every block of the launch has read it. */
#include "rows.cuh"
#include "draws.h"

#define THREADS 256
#define MOST 4096                /* blocks, at most, of a launch that draws */

static __global__ void sequence(void *o, int dtype, int64_t n, double first, double step, double last) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) store(o, dtype, i, i == n - 1 ? last : first + (double)i * step);
}

static __global__ void eye(void *o, int dtype, int64_t n, int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) store(o, dtype, i, (double)(i / cols == i % cols));
}

template <class T> __global__ void triangle(void *o, const void *x, int dtype, int64_t n, int64_t rows, int64_t cols,
  int64_t k, int lower) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t ahead = i % cols - i / cols % rows;
  store(o, dtype, i, (lower ? ahead <= k : ahead >= k) ? load<T>(x, dtype, i) : (T)0);
}

static __global__ void set_generator(ty_k_generator *g, uint64_t seed, uint64_t offset) {
  g->seed = seed;
  g->offset = offset;
  g->ticket = 0;
}

/* Makes the four elements of a Philox block. KIND: dropout, normal or uniform, which are drawn often; or ANY op. */
enum { ANY, DROPOUT, NORMAL, UNIFORM };

template <int KIND> static __device__ __forceinline__ void draw_four(const ty_k_draw &a, int64_t block, double scale, bool by_fours) {
  const int64_t at = block * 4;
  const bool whole = by_fours && at + 4 <= a.n;
  uint32_t r[4], low[4] = {0};
  ty_philox(a.g->seed, a.g->offset + (uint64_t)block, r);
  if (KIND == DROPOUT) {
    bool keep[4];
    for (int k = 0; k < 4; k++) keep[k] = r[k] >> 8 >= a.least;
    if (whole) {
      float x[4];
      pack<uint8_t, 4> mask;
      load_four(x, a.x, a.dtype, at);
      for (int k = 0; k < 4; k++) { mask.d[k] = keep[k]; x[k] = keep[k] ? x[k] * (float)scale : 0.0f; }
      put_pack(a.mask + at, mask);
      store_four(a.o, a.dtype, at, x);
      return;
    }
    for (int k = 0; k < 4 && at + k < a.n; k++) {
      const int64_t i = at + k;
      a.mask[i] = keep[k];
      if (a.dtype != TY_F64) store(a.o, a.dtype, i, keep[k] ? load<float>(a.x, a.dtype, i) * (float)scale : 0.0f);
      else store(a.o, a.dtype, i, keep[k] ? load<double>(a.x, a.dtype, i) * scale : 0.0);
    }
    return;
  }
  if (KIND == NORMAL || KIND == UNIFORM) {
    double v[4];
    if (a.dtype == TY_F64) {                 /* the lower bits come from another seed */
      ty_philox(~a.g->seed, a.g->offset + (uint64_t)block, low);
      for (int k = 0; k < 4; k += 2) {
        if (KIND == NORMAL) ty_normal2_f64(r + k, low + k, &v[k], &v[k + 1]);
        for (int j = k; j < k + 2; j++)
          v[j] = KIND == NORMAL ? a.a + a.b * v[j] : fmin(a.a + (a.b - a.a) * ty_uniform_f64(r[j], low[j]), a.most);
      }
    } else if (KIND == NORMAL) {
      float normal[4];
      for (int k = 0; k < 4; k += 2) ty_normal2(r[k], r[k + 1], &normal[k], &normal[k + 1]);
      for (int k = 0; k < 4; k++) v[k] = a.a + a.b * (double)normal[k];
    } else {
      const int bits = a.dtype == TY_F16 ? 11 : a.dtype == TY_BF16 ? 8 : 24;   /* as many as the dtype holds */
      for (int k = 0; k < 4; k++) v[k] = fmin(a.a + (a.b - a.a) * (double)ty_uniform(r[k] >> (32 - bits) << (32 - bits)), a.most);
    }
    if (whole) store_four(a.o, a.dtype, at, v);
    else for (int k = 0; k < 4 && at + k < a.n; k++) store(a.o, a.dtype, at + k, v[k]);
    return;
  }
  for (int k = 0; k < 4 && at + k < a.n; k++) {
    const int64_t i = at + k;
    switch (a.op) {
      case TY_OP_randint: {
        const uint64_t range = (uint64_t)a.high - (uint64_t)a.low + 1;   /* 0: all of 2^64 */
        /* low: the words' lower halves */
        if (k == 0 && (!range || range > UINT32_MAX)) ty_philox(~a.g->seed, a.g->offset + (uint64_t)block, low);
        store(a.o, a.dtype, i, (int64_t)((uint64_t)a.low + ty_random_below(range, r[k], low[k])));
        break;
      }
      case TY_OP_bernoulli: store(a.o, a.dtype, i, (double)((double)ty_uniform(r[k]) < load<double>(a.x, a.dtype, i))); break;
      default:                               /* exponential */
        if (k == 0 && a.dtype == TY_F64) ty_philox(~a.g->seed, a.g->offset + (uint64_t)block, low);
        store(a.o, a.dtype, i, -log(a.dtype == TY_F64 ? ty_uniform_open_f64(r[k], low[k]) : (double)ty_uniform_open(r[k])) / a.a);
    }
  }
}

/* A launch has only as many blocks as keep a device busy, since each takes a ticket at its end (move_on). */
template <int KIND> __global__ void __launch_bounds__(THREADS) draw(const ty_k_draw a) {
  const double scale = a.a < 1 ? 1 / (1 - a.a) : 0;
  const bool by_fours = fours(a.o, a.dtype) && (KIND != DROPOUT || (fours(a.x, a.dtype) && (uintptr_t)a.mask % 4 == 0));
  for (int64_t block = (int64_t)blockIdx.x * THREADS + threadIdx.x; block * 4 < a.n; block += (int64_t)gridDim.x * THREADS)
    draw_four<KIND>(a, block, scale, by_fours);
  move_on(a.g, (uint64_t)(a.n + 3) / 4);
}

/* A thread computes one element of the batch. */
static __device__ __forceinline__ void augment_one(const ty_k_augmenting &k) {
  const ty_augment &a = k.a;
  const int64_t plane = a.oh * a.ow, i = (int64_t)blockIdx.x * THREADS + threadIdx.x, b = i / (a.c * plane), c = i / plane % a.c;
  if (b >= a.batch) return;
  int64_t at = k.index[b];
  if (at < 1 || at > a.n) {
    if (i % (a.c * plane) == 0) report(k.fault, k.site, TY_FAULT_INDEX, at, a.n);
    at = 1;
  }
  const ty_augmented d = ty_augment_draw(&a, k.g->seed, k.g->offset + (uint64_t)b);
  store(k.o, k.dtype, i, ty_augment_pixel(&a, &d, k.x + ((at - 1) * a.c + c) * a.h * a.w, i % plane / a.ow, i % a.ow, k.mean[c], k.std[c]));
}

static __global__ void __launch_bounds__(THREADS) augmented(const ty_k_augmenting k) {
  augment_one(k);
  if (k.a.random) move_on(k.g, (uint64_t)k.a.batch);
}

static __global__ void __launch_bounds__(THREADS) drawn(double *o, const double *x, const double *y, int64_t n, int kind,
  ty_k_generator *g) {
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
    o[i] = ty_draw(kind, x[i], y ? y[i] : 0, g->seed, g->offset + (uint64_t)i * TY_DRAW_BLOCKS);
  move_on(g, (uint64_t)n * TY_DRAW_BLOCKS);
}

/* ---- random orders ---- */

static __global__ void __launch_bounds__(THREADS) keys(int64_t *o, const double *x, int64_t n, int per, ty_k_generator *g) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  uint32_t r[4];
  if (i < n) {
    ty_philox(g->seed, g->offset + (uint64_t)(i / per), r);
    if (!x) o[i] = (int64_t)(((uint64_t)r[i & 1 ? 2 : 0] << 32 | r[i & 1 ? 3 : 1]) ^ (uint64_t)1 << 63);   /* sorts as the bits do */
    else ((double *)o)[i] = x[i] > 0 ? fmin(-log(ty_unit(r[0], r[1])) / x[i], 1.7976931348623157e308) : (double)INFINITY;
  }
  move_on(g, (uint64_t)((n + per - 1) / per));
}

static __device__ __forceinline__ int64_t draw_index(const double *sum, int64_t n, const uint32_t *r) {
  const double u = ty_unit(r[0], r[1]) * sum[n - 1];
  int64_t lo = 0, hi = n - 1;
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    if (sum[mid] > u) hi = mid;
    else lo = mid + 1;
  }
  while (lo > 0 && sum[lo] == sum[lo - 1]) lo--;         /* u may round up to the sum: no index of probability 0 */
  return lo + 1;
}

static __global__ void __launch_bounds__(THREADS) draws(int64_t *o, const double *sums, int64_t rows, int64_t n,
  int64_t m, ty_k_generator *g) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  uint32_t r[4];
  if (i < rows * m) {
    ty_philox(g->seed, g->offset + (uint64_t)i, r);
    o[i] = draw_index(sums + i / m * n, n, r);
  }
  move_on(g, (uint64_t)(rows * m));
}

/* A block checks a row. a: how many elements aren't probabilities; b: how many are above 0 */
static __global__ void __launch_bounds__(THREADS) check_weights(const double *p, int64_t n, int64_t need, ty_k_fault *fault, int site) {
  __shared__ two<int64_t> s[THREADS / 32];
  const double *const row = p + blockIdx.x * n;
  two<int64_t> seen = {0, 0};
  for (int64_t i = threadIdx.x; i < n; i += THREADS) {
    seen.a += !(row[i] >= 0) || row[i] == (double)INFINITY;
    seen.b += row[i] > 0;
  }
  seen = combine_block(seen, s, [](two<int64_t> l, two<int64_t> r) { return two<int64_t>{l.a + r.a, l.b + r.b}; });
  if (threadIdx.x || (!seen.a && seen.b >= need)) return;
  report(fault, site, seen.a ? TY_FAULT_PROBABILITY : TY_FAULT_TOO_FEW, (int64_t)blockIdx.x + 1, seen.b);
}

/* ---- launchers ---- */

cudaError_t ty_k_sequence(void *o, int dtype, int64_t n, double first, double step, double last, cudaStream_t s) {
  return TY_LAUNCH(sequence, blocks_for(n, THREADS), THREADS, s, o, dtype, n, first, step, last);
}

cudaError_t ty_k_eye(void *o, int dtype, int64_t rows, int64_t cols, cudaStream_t s) {
  return TY_LAUNCH(eye, blocks_for(rows * cols, THREADS), THREADS, s, o, dtype, rows * cols, cols);
}

cudaError_t ty_k_seed(ty_k_generator *g, uint64_t seed, uint64_t offset, cudaStream_t s) {
  return TY_LAUNCH(set_generator, 1, 1, s, g, seed, offset);
}

cudaError_t ty_k_augment(const ty_k_augmenting *k, cudaStream_t s) {
  const ty_k_augmenting args = *k;
  return TY_LAUNCH(augmented, blocks_for(k->a.batch * k->a.c * k->a.oh * k->a.ow, THREADS), THREADS, s, args);
}

cudaError_t ty_k_random(const ty_k_draw *a, cudaStream_t s) {
  const ty_k_draw args = *a;
  const unsigned all = blocks_for((a->n + 3) / 4, THREADS), blocks = all > MOST ? MOST : all;
  switch (a->op) {
    case TY_OP_dropout_mask: return TY_LAUNCH(draw<DROPOUT>, blocks, THREADS, s, args);
    case TY_OP_randn: case TY_OP_normal: return TY_LAUNCH(draw<NORMAL>, blocks, THREADS, s, args);
    case TY_OP_randint: case TY_OP_bernoulli: case TY_OP_exponential: return TY_LAUNCH(draw<ANY>, blocks, THREADS, s, args);
    default: return TY_LAUNCH(draw<UNIFORM>, blocks, THREADS, s, args);
  }
}

cudaError_t ty_k_drawn(double *o, const double *x, const double *y, int64_t n, int kind, ty_k_generator *g, cudaStream_t s) {
  const unsigned all = blocks_for(n, THREADS);
  return TY_LAUNCH(drawn, all > MOST ? MOST : all, THREADS, s, o, x, y, n, kind, g);
}

cudaError_t ty_k_triangle(void *o, const void *x, int dtype, int64_t n, int64_t rows, int64_t cols, int64_t k, int lower, cudaStream_t s) {
  if (dtype <= TY_F64) return TY_LAUNCH(triangle<double>, blocks_for(n, THREADS), THREADS, s, o, x, dtype, n, rows, cols, k, lower);
  return TY_LAUNCH(triangle<int64_t>, blocks_for(n, THREADS), THREADS, s, o, x, dtype, n, rows, cols, k, lower);
}

cudaError_t ty_k_keys(int64_t *o, const double *x, int64_t n, int per, ty_k_generator *g, cudaStream_t s) {
  return TY_LAUNCH(keys, blocks_for(n, THREADS), THREADS, s, o, x, n, per, g);
}

cudaError_t ty_k_draws(int64_t *o, const double *sums, int64_t rows, int64_t n, int64_t m, ty_k_generator *g, cudaStream_t s) {
  return TY_LAUNCH(draws, blocks_for(rows * m, THREADS), THREADS, s, o, sums, rows, n, m, g);
}

cudaError_t ty_k_check_weights(const double *p, int64_t rows, int64_t n, int64_t need, ty_k_fault *fault, int site, cudaStream_t s) {
  return TY_LAUNCH(check_weights, blocks_for(rows, 1), THREADS, s, p, n, need, fault, site);
}
