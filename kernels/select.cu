/* Results whose size depends on the data: elements that aren't 0, or the groups of equal neighbours in an order.
 *
 * Idea: tiles count what they will write; one block turns the counts into where each tile's results begin, and their number, which the host
 * reads to make the results; then the tiles write. Invariant: results stand in the order of what they were selected from. */
#include "device.cuh"

#define THREADS 256

static __device__ __forceinline__ int64_t offset_of(const ty_k_selection &a, int64_t i) {
  int64_t off = 0;
  for (int d = a.ndim - 1; d >= 0; d--) off += innermost(i, a.shape[d], a.n > INT32_MAX) * a.stride[d];
  return off;
}

template <class T> static __device__ __forceinline__ bool selected(const ty_k_selection &a, int64_t i) {
  if (!a.order) return load<T>(a.x, a.dtype, offset_of(a, i)) != 0;
  if (i == 0) return true;
  return load<T>(a.x, a.dtype, a.order[i] - 1) != load<T>(a.x, a.dtype, a.order[i - 1] - 1);   /* no NaN equals another */
}

/* The sum of v over the block's threads before this one; *total: over all. */
static __device__ __forceinline__ int64_t sum_before(int64_t v, int64_t *room, int64_t *total) {
  const int t = (int)threadIdx.x;
  room[t] = v;
  for (int step = 1; step < THREADS; step *= 2) {
    __syncthreads();
    const int64_t more = t >= step ? room[t - step] : 0;
    __syncthreads();
    room[t] += more;
  }
  __syncthreads();
  *total = room[THREADS - 1];
  const int64_t before = room[t] - v;
  __syncthreads();
  return before;
}

template <class T> __global__ void __launch_bounds__(THREADS) count(const ty_k_selection a) {
  __shared__ int64_t room[THREADS];
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t total;
  sum_before(i < a.n && selected<T>(a, i), room, &total);
  if (threadIdx.x == 0) a.starts[blockIdx.x] = total;
}

static __global__ void __launch_bounds__(THREADS) starts(int64_t *p, int64_t n) {
  __shared__ int64_t room[THREADS];
  int64_t sum = 0, total;
  for (int64_t at = 0; at < n; at += THREADS) {
    const int64_t i = at + threadIdx.x, before = sum_before(i < n ? p[i] : 0, room, &total);
    if (i < n) p[i] = sum + before;
    sum += total;
  }
  if (threadIdx.x == 0) p[n] = sum;
}

template <class T> __global__ void __launch_bounds__(THREADS) write(const ty_k_selection a) {
  __shared__ int64_t room[THREADS];
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const bool here = i < a.n && selected<T>(a, i);
  int64_t total, rank = a.starts[blockIdx.x] + sum_before(here, room, &total);
  if (i >= a.n) return;
  if (!a.order) {
    int64_t rest = i;
    for (int d = a.ndim - 1; here && d >= 0; d--) { a.coordinates[rank * a.ndim + d] = rest % a.shape[d] + 1; rest /= a.shape[d]; }
    return;
  }
  if (!here) rank--;
  a.inverse[a.order[i] - 1] = rank + 1;
  if (here) { store(a.values, a.dtype, rank, load<T>(a.x, a.dtype, a.order[i] - 1)); a.first[rank] = i; }
}

static __global__ void __launch_bounds__(THREADS) sizes(int64_t *o, const int64_t *first, int64_t groups, int64_t n) {
  const int64_t g = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (g < groups) o[g] = (g + 1 < groups ? first[g + 1] : n) - first[g];
}

/* ---- launchers ---- */

int64_t ty_k_select_tiles(int64_t n) { return (n + THREADS - 1) / THREADS; }

cudaError_t ty_k_select_count(const ty_k_selection *p, cudaStream_t s) {
  const ty_k_selection a = *p;
  const int64_t n = ty_k_select_tiles(a.n);
  cudaError_t e = a.dtype <= TY_F64 ? TY_LAUNCH(count<double>, (unsigned)n, THREADS, s, a)
    : TY_LAUNCH(count<int64_t>, (unsigned)n, THREADS, s, a);
  return e == cudaSuccess ? TY_LAUNCH(starts, 1, THREADS, s, a.starts, n) : e;
}

cudaError_t ty_k_select_write(const ty_k_selection *p, int64_t found, cudaStream_t s) {
  const ty_k_selection a = *p;
  const unsigned n = (unsigned)ty_k_select_tiles(a.n);
  cudaError_t e = a.dtype <= TY_F64 ? TY_LAUNCH(write<double>, n, THREADS, s, a) : TY_LAUNCH(write<int64_t>, n, THREADS, s, a);
  if (e != cudaSuccess || !a.order) return e;
  return TY_LAUNCH(sizes, blocks_for(found, THREADS), THREADS, s, a.sizes, a.first, found, a.n);
}
