/* Creation and random numbers.
 *
 * Idea: element i, in logical order, takes word i % 4 of Philox block offset + i / 4, as on every backend (core/rng.c); the generator lies in
 * device memory, and a launch of its own moves it on, so that a captured graph draws new numbers each time it runs. */
#include "device.cuh"

#define THREADS 256

static __global__ void sequence(void *o, int dtype, int64_t n, double first, double step) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) store(o, dtype, i, first + (double)i * step);
}

static __global__ void eye(void *o, int dtype, int64_t n, int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) store(o, dtype, i, (double)(i / cols == i % cols));
}

template <class T> __global__ void triangle(void *o, const void *x, int dtype, int64_t n, int64_t rows, int64_t cols, int64_t k, int lower) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t ahead = i % cols - i / cols % rows;
  store(o, dtype, i, (lower ? ahead <= k : ahead >= k) ? load<T>(x, dtype, i) : (T)0);
}

static __global__ void set_generator(ty_k_generator *g, uint64_t seed, uint64_t offset) { g->seed = seed; g->offset = offset; }
static __global__ void move_on(ty_k_generator *g, uint64_t blocks) { g->offset += blocks; }

/* One Philox block, four elements, a thread. */
static __global__ void __launch_bounds__(THREADS) draw(const ty_k_draw a) {
  const int64_t block = (int64_t)blockIdx.x * THREADS + threadIdx.x, at = block * 4;
  if (at >= a.n) return;
  uint32_t r[4];
  float normal[4];
  ty_philox(a.g->seed, a.g->offset + (uint64_t)block, r);
  if (a.op == TY_OP_randn || a.op == TY_OP_normal)
    for (int k = 0; k < 4; k += 2) ty_normal2(r[k], r[k + 1], &normal[k], &normal[k + 1]);
  for (int k = 0; k < 4 && at + k < a.n; k++) {
    const int64_t i = at + k;
    switch (a.op) {
      case TY_OP_randint: {
        const uint64_t range = (uint64_t)a.high - (uint64_t)a.low + 1;   /* 0: all of 2^64 */
        const uint64_t v = range && range <= UINT32_MAX ? (uint64_t)r[k] * range >> 32 : ((uint64_t)r[k] << 32 | r[k ^ 1]) % (range ? range : UINT64_MAX);
        store(a.o, a.dtype, i, (int64_t)((uint64_t)a.low + v));
        break;
      }
      case TY_OP_bernoulli: store(a.o, a.dtype, i, (double)((double)ty_uniform(r[k]) < load<double>(a.x, a.dtype, i))); break;
      case TY_OP_dropout_mask: {
        const bool keep = (double)ty_uniform(r[k]) >= a.a;
        const double scale = a.a < 1 ? 1 / (1 - a.a) : 0;
        a.mask[i] = keep;
        if (a.dtype == TY_F32) store(a.o, a.dtype, i, keep ? load<float>(a.x, a.dtype, i) * (float)scale : 0.0f);
        else store(a.o, a.dtype, i, keep ? load<double>(a.x, a.dtype, i) * scale : 0.0);
        break;
      }
      case TY_OP_exponential: store(a.o, a.dtype, i, -log((double)ty_uniform_open(r[k])) / a.a); break;
      case TY_OP_randn: case TY_OP_normal: store(a.o, a.dtype, i, a.a + a.b * (double)normal[k]); break;
      default: {
        const int bits = a.dtype == TY_F16 ? 11 : a.dtype == TY_BF16 ? 8 : 24;   /* that the dtype holds: else rounding reaches high */
        store(a.o, a.dtype, i, a.a + (a.b - a.a) * (double)ty_uniform(r[k] >> (32 - bits) << (32 - bits)));
      }
    }
  }
}

/* ---- launchers ---- */

cudaError_t ty_k_sequence(void *o, int dtype, int64_t n, double first, double step, cudaStream_t s) {
  return TY_LAUNCH(sequence, blocks_for(n, THREADS), THREADS, s, o, dtype, n, first, step);
}

cudaError_t ty_k_eye(void *o, int dtype, int64_t rows, int64_t cols, cudaStream_t s) {
  return TY_LAUNCH(eye, blocks_for(rows * cols, THREADS), THREADS, s, o, dtype, rows * cols, cols);
}

cudaError_t ty_k_seed(ty_k_generator *g, uint64_t seed, uint64_t offset, cudaStream_t s) { return TY_LAUNCH(set_generator, 1, 1, s, g, seed, offset); }

cudaError_t ty_k_random(const ty_k_draw *a, cudaStream_t s) {
  const ty_k_draw args = *a;
  const uint64_t blocks = (uint64_t)(a->n + 3) / 4;
  ty_k_generator *g = a->g;
  cudaError_t e = TY_LAUNCH(draw, blocks_for((int64_t)blocks, THREADS), THREADS, s, args);
  return e == cudaSuccess ? TY_LAUNCH(move_on, 1, 1, s, g, blocks) : e;
}

cudaError_t ty_k_triangle(void *o, const void *x, int dtype, int64_t n, int64_t rows, int64_t cols, int64_t k, int lower, cudaStream_t s) {
  if (dtype <= TY_F64) return TY_LAUNCH(triangle<double>, blocks_for(n, THREADS), THREADS, s, o, x, dtype, n, rows, cols, k, lower);
  return TY_LAUNCH(triangle<int64_t>, blocks_for(n, THREADS), THREADS, s, o, x, dtype, n, rows, cols, k, lower);
}
