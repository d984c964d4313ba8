/* Index ops: a thread for each element of the indexed part.
 *
 * Idea: a walk over the indexed part's shape (`small`); where an element lies in the indexed tensor (`large`) follows from strides and the
 * index tensors. Indices are 1-based; a bad one is reported, and nothing is read or written for it. Where writes meet in an element,
 * unordered additions are atomic, in no fixed order, and of plain writes any stays. In order, as products and extremes always are,
 * positions are sorted by target, and one thread makes all writes to an element, in the walk's order, rounding once. Invariant: both ways
 * give the same but for that. */
#include "atomic.cuh"
#include "rows.cuh"

#define THREADS 256

static __device__ __forceinline__ void number(const ty_k_indexing &a, double *v) { *v = a.v; }
static __device__ __forceinline__ void number(const ty_k_indexing &a, float *v) { *v = (float)a.v; }
static __device__ __forceinline__ void number(const ty_k_indexing &a, int64_t *v) { *v = a.vi; }

/* Adds to *large what the index tensors say at the walk's indices, `at`; false, and reported, if one is bad. */
static __device__ __forceinline__ bool lead(const ty_k_indexing &a, const int64_t *at, int dims, int64_t *large) {
  for (int j = 0; j < a.nindex; j++) {
    int64_t where = 0;
#pragma unroll
    for (int d = 0; d < TY_K_DIMS; d++)
      if (d < dims) where += at[d] * a.index[j].stride[d];
    const int64_t v = a.index[j].p[where], size = a.index[j].size;
    if (v == 0 || v > size || v < (a.negative ? -size : 1)) {
      report(a.fault, a.site, TY_FAULT_INDEX, v, size);
      return false;
    }
    *large += (v < 0 ? v + size : v - 1) * a.index[j].step;
  }
  return true;
}

/* at = the indices of position i of dims from .. to - 1; adds its offsets in both tensors. */
static __device__ __forceinline__ void locate(const ty_k_indexing &a, int64_t i, int from, int to, int64_t *at,
  int64_t *large, int64_t *small) {
#pragma unroll
  for (int d = TY_K_DIMS - 1; d >= 0; d--) {             /* with a fixed count at[] stays in registers */
    if (d < from || d >= to) continue;
    at[d] = innermost(i, a.shape[d], a.n > INT32_MAX);
    *large += at[d] * a.large[d];
    *small += at[d] * a.small[d];
  }
}

template <class T> static __device__ __forceinline__ T value_of(const ty_k_indexing &a, int64_t small) {
  T v;
  if (a.q) v = load<T>(a.q, a.small_dtype, small);
  else number(a, &v);
  return v;
}

template <class T> __global__ void __launch_bounds__(THREADS) walk(const ty_k_indexing a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t large = 0, small = 0, at[TY_K_DIMS];
  if (i >= a.n) return;
  locate(a, i, 0, a.ndim, at, &large, &small);
  if (!lead(a, at, a.ndim, &large)) return;
  if (a.how == TY_K_TAKE) store(a.q, a.dtype, small, load<T>(a.p, a.dtype, large));
  else if (a.how == TY_K_ADD) add_to(a.p, a.dtype, large, value_of<T>(a, small));
  else store(a.p, a.dtype, large, value_of<T>(a, small));
}

/* walk for four neighbours that lie without gaps in both tensors and have the same indices. Floats of up to 32 bits. */
static __global__ void __launch_bounds__(THREADS) walk_fours(const ty_k_indexing a) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  int64_t large = 0, small = 0, at[TY_K_DIMS];
  float v[4];
  if (i >= a.n) return;
  locate(a, i, 0, a.ndim, at, &large, &small);
  if (!lead(a, at, a.ndim, &large)) return;
  if (a.how == TY_K_TAKE) {
    load_four(v, a.p, a.dtype, large);
    store_four(a.q, a.dtype, small, v);
    return;
  }
  load_four(v, a.q, a.small_dtype, small);
  if (a.how == TY_K_ADD) for (int k = 0; k < 4; k++) add_to(a.p, a.dtype, large + k, v[k]);
  else store_four(a.p, a.dtype, large, v);
}

static bool in_fours(const ty_k_indexing *a) {
  const int last = a->ndim - 1;
  bool fit = a->ndim > 0 && a->q && a->shape[last] % 4 == 0 && a->large[last] == 1 && a->small[last] == 1 &&
    a->dtype < TY_F64 && a->small_dtype < TY_F64 && fours(a->p, a->dtype) && fours(a->q, a->small_dtype);
  for (int d = 0; d < last; d++) fit = fit && a->large[d] % 4 == 0 && a->small[d] % 4 == 0;
  for (int j = 0; j < a->nindex; j++) fit = fit && a->index[j].step % 4 == 0 && a->index[j].stride[last] == 0;
  return fit;
}

#define BAD INT64_MIN
#define AHEAD 8                  /* writes to one element that are read at once */

/* two writes combined; NaN stays */
template <class T> static __device__ __forceinline__ T together(int how, T a, T b) {
  switch (how) {
    case TY_K_PUT: return b;
    case TY_K_ADD: return a + b;
    case TY_K_PROD: return a * b;
    case TY_K_AMAX: return a > b || a != a ? a : b;
    default: return a < b || a != a ? a : b;
  }
}

static __global__ void __launch_bounds__(THREADS) targets(const ty_k_indexing a, int64_t *o) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t large = 0, small = 0, at[TY_K_DIMS];
  if (i >= a.positions) return;
  locate(a, i, 0, a.lead, at, &large, &small);
  o[i] = lead(a, at, a.lead, &large) ? large : BAD;
}

/* Thread i: position i / each in the targets' order, element i % each of what a position writes. */
template <class T> __global__ void __launch_bounds__(THREADS) in_order(const ty_k_indexing a, const int64_t *target, const int64_t *order) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, each = a.n / a.positions;
  int64_t large = 0, small = 0, at[TY_K_DIMS], p = i / each;
  if (i >= a.n) return;
  const int64_t here = target[order[p] - 1];
  if (here == BAD || (p && target[order[p - 1] - 1] == here)) return;    /* the first position of a target makes all writes */
  locate(a, i % each, a.lead, a.ndim, at, &large, &small);
  T v = a.how != TY_K_PUT ? load<T>(a.p, a.dtype, here + large) : (T)0;
  for (bool meets = true; meets; p += AHEAD) {         /* AHEAD are read at once, then combined one after another */
    int64_t from[AHEAD];
    T next[AHEAD];
    bool same[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; k++) from[k] = p + k < a.positions ? order[p + k] - 1 : -1;
#pragma unroll
    for (int k = 0; k < AHEAD; k++) same[k] = from[k] >= 0 && target[from[k]] == here;
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      int64_t more = small, unused = 0;
      if (!same[k]) continue;
      locate(a, from[k], 0, a.lead, at, &unused, &more);
      next[k] = value_of<T>(a, more);
    }
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
      if ((meets = meets && same[k])) v = together(a.how, v, next[k]);
  }
  store(a.p, a.dtype, here + large, v);
}

/* ---- sums of rows: a thread for each column of a bag, or four ---- */

template <class T> static __device__ __forceinline__ void load_some(T (&v)[1], const void *p, int dtype, int64_t i) {
  v[0] = load<T>(p, dtype, i);
}
template <class T> static __device__ __forceinline__ void load_some(T (&v)[4], const void *p, int dtype, int64_t i) {
  load_four(v, p, dtype, i);
}
template <class T> static __device__ __forceinline__ void store_some(void *p, int dtype, int64_t i, T (&v)[1]) {
  store(p, dtype, i, v[0]);
}
template <class T> static __device__ __forceinline__ void store_some(void *p, int dtype, int64_t i, T (&v)[4]) {
  store_four(p, dtype, i, v);
}

template <class T, int N> __global__ void __launch_bounds__(THREADS) sum_bags(const ty_k_bags a) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N, bag = i / a.width, column = i % a.width;
  if (bag >= a.bags) return;
  const int64_t first = a.start[bag] - 1, next = bag + 1 < a.bags ? a.start[bag + 1] - 1 : a.n, end = next < a.n ? next : a.n;
  T sum[N], v[N];
#pragma unroll
  for (int k = 0; k < N; k++) sum[k] = 0;
  for (int64_t j = first < 0 ? 0 : first; j < end; j++) {
    const int64_t id = a.id[j];
    if (id < 1 || id > a.rows) report(a.fault, a.site, TY_FAULT_INDEX, id, a.rows);
    if (id < 1 || id > a.rows || id == a.padding) continue;
    load_some(v, a.weight, a.dtype, (id - 1) * a.width + column);
    const T by = a.scale ? load<T>(a.scale, a.dtype, j) : (T)1;
#pragma unroll
    for (int k = 0; k < N; k++) sum[k] += a.scale ? by * v[k] : v[k];
  }
  store_some(a.o, a.dtype, i, sum);
}

/* ---- launchers ---- */

cudaError_t ty_k_bag(const ty_k_bags *p, cudaStream_t s) {
  const ty_k_bags a = *p;
  auto singly = a.dtype == TY_F64 ? sum_bags<double, 1> : sum_bags<float, 1>, fourfold = sum_bags<float, 4>;
  const int64_t n = a.bags * a.width;
  if (a.dtype != TY_F64 && a.width % 4 == 0 && fours(a.weight, a.dtype) && fours(a.o, a.dtype))
    return TY_LAUNCH(fourfold, blocks_for(n, THREADS * 4), THREADS, s, a);
  return TY_LAUNCH(singly, blocks_for(n, THREADS), THREADS, s, a);
}

cudaError_t ty_k_index(const ty_k_indexing *p, cudaStream_t s) {
  const ty_k_indexing a = *p;
  const unsigned blocks = blocks_for(a.n, THREADS);
  if (in_fours(p)) return TY_LAUNCH(walk_fours, blocks_for(a.n, THREADS * 4), THREADS, s, a);
  if (a.dtype == TY_F64) return TY_LAUNCH(walk<double>, blocks, THREADS, s, a);
  if (a.dtype < TY_F64) return TY_LAUNCH(walk<float>, blocks, THREADS, s, a);
  return TY_LAUNCH(walk<int64_t>, blocks, THREADS, s, a);
}

cudaError_t ty_k_index_targets(const ty_k_indexing *p, int64_t *targets_of, cudaStream_t s) {
  const ty_k_indexing a = *p;
  return TY_LAUNCH(targets, blocks_for(a.positions, THREADS), THREADS, s, a, targets_of);
}

cudaError_t ty_k_index_in_order(const ty_k_indexing *p, const int64_t *target, const int64_t *order, cudaStream_t s) {
  const ty_k_indexing a = *p;
  const unsigned blocks = blocks_for(a.n, THREADS);
  if (a.dtype == TY_F64) return TY_LAUNCH(in_order<double>, blocks, THREADS, s, a, target, order);
  if (a.dtype < TY_F64) return TY_LAUNCH(in_order<float>, blocks, THREADS, s, a, target, order);
  return TY_LAUNCH(in_order<int64_t>, blocks, THREADS, s, a, target, order);
}
