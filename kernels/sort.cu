/* Sorting along lines, the first few of an order, and searches in sorted lines.
 *
 * Idea: an element becomes a pair: an unsigned key that orders as the elements do (NaN last, -0 as 0), and its place in the line, which
 * breaks ties, so that no two pairs are equal and every order is stable. Blocks sort tiles of pairs by a bitonic network in shared memory;
 * sorted runs are then merged two by two (each block finds its part of both by bisection), or, where few elements are wanted, the first
 * ones of each tile make new, shorter lines. Invariant: beyond a line's end there are pairs that come after all others. */
#include "device.cuh"

#define THREADS 256
#define TILE 1024
#define EACH (TILE / THREADS)

/* A pair with a 32-bit key is one number. */
struct narrow {
  uint64_t v;
  static __device__ __forceinline__ narrow of(uint64_t key, uint32_t at) { return {key << 32 | at}; }
  __device__ __forceinline__ uint32_t at() const { return (uint32_t)v; }
};
struct wide {
  uint64_t key;
  uint64_t place;
  static __device__ __forceinline__ wide of(uint64_t key, uint32_t at) { return {key, at}; }
  __device__ __forceinline__ uint32_t at() const { return (uint32_t)place; }
};
static __device__ __forceinline__ bool before(const narrow &a, const narrow &b) { return a.v < b.v; }
static __device__ __forceinline__ bool before(const wide &a, const wide &b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

static inline bool is_wide(int dtype) { return dtype == TY_F64 || dtype == TY_I64; }

static __device__ __forceinline__ uint64_t key_of(const void *p, int dtype, int64_t i) {
  if (dtype == TY_F64) {
    const double x = ((const double *)p)[i] + 0.0;       /* -0 becomes 0 */
    uint64_t u;
    memcpy(&u, &x, 8);
    return x != x ? UINT64_MAX : u >> 63 ? ~u : u | (uint64_t)1 << 63;
  }
  if (dtype == TY_I64) return (uint64_t)((const int64_t *)p)[i] ^ (uint64_t)1 << 63;
  if (dtype > TY_F64) return (uint32_t)load<int64_t>(p, dtype, i) ^ 0x80000000u;
  const float x = load<float>(p, dtype, i) + 0.0f;
  const uint32_t u = ty_bits(x);
  return x != x ? UINT32_MAX : u >> 31 ? (uint32_t)~u : u | 0x80000000u;
}

static __device__ __forceinline__ void copy_element(void *o, int64_t to, const void *x, int64_t from, int dtype) {
  switch (dtype) {
    case TY_F64: case TY_I64: ((uint64_t *)o)[to] = ((const uint64_t *)x)[from]; break;
    case TY_F32: case TY_I32: ((uint32_t *)o)[to] = ((const uint32_t *)x)[from]; break;
    case TY_F16: case TY_BF16: ((uint16_t *)o)[to] = ((const uint16_t *)x)[from]; break;
    default: ((uint8_t *)o)[to] = ((const uint8_t *)x)[from];
  }
}

template <class C> static __device__ __forceinline__ void finish(const ty_k_sorting &a, int64_t line, int64_t rank, const C &pair) {
  if (a.values) copy_element(a.values, line * a.take + rank, a.x, line * a.n + pair.at(), a.dtype);
  a.places[line * a.take + rank] = (int64_t)pair.at() + 1;
}

template <class C> static __device__ __forceinline__ C last_pair() { return C::of(UINT64_MAX, UINT32_MAX); }

/* from: lines of m pairs, or NULL: pairs are made of x. to: gets the first `keep` of each sorted tile, or NULL: the results are written.
 * segment: a line's part of a tile, a power of two; lines of one tile (per_line 1) share blocks. */
template <class C> __global__ void __launch_bounds__(THREADS) tiles(const ty_k_sorting a, const C *from, C *to,
  int64_t m, int64_t per_line, int segment, int keep) {
  __shared__ C pair[TILE];
  const int64_t first = per_line == 1 ? (int64_t)blockIdx.x * (TILE / segment) : blockIdx.x / per_line,
    tile = per_line == 1 ? 0 : blockIdx.x % per_line;
  const uint64_t flip = a.descending ? (sizeof(C) == 8 ? UINT32_MAX : UINT64_MAX) : 0;
  for (int k = 0; k < EACH; k++) {
    const int j = k * THREADS + (int)threadIdx.x;
    const int64_t line = first + j / segment, at = tile * TILE + j % segment;
    pair[j] = line >= a.lines || at >= m ? last_pair<C>() : from ? from[line * m + at]
      : C::of(key_of(a.x, a.dtype, line * a.n + at) ^ flip, (uint32_t)at);
  }
  for (int size = 2; size <= segment; size *= 2)
    for (int half = size / 2; half; half /= 2) {
      __syncthreads();
      for (int t = (int)threadIdx.x; t < TILE / 2; t += THREADS) {
        /* the first step of a size compares with the mirror image, so that all runs ascend */
        const int i = 2 * half * (t / half) + t % half, j = half == size / 2 ? 2 * half * (t / half) + size - 1 - t % half : i + half;
        const C x = pair[i], y = pair[j];
        if (before(y, x)) { pair[i] = y; pair[j] = x; }
      }
    }
  __syncthreads();
  for (int k = 0; k < EACH; k++) {
    const int j = k * THREADS + (int)threadIdx.x, rank = j % segment;
    const int64_t line = first + j / segment;
    if (line >= a.lines || rank >= keep) continue;
    if (!to) { if (rank < a.take) finish(a, line, rank, pair[j]); }
    else if (keep < TILE) to[(line * per_line + tile) * keep + rank] = pair[j];
    else if (tile * TILE + rank < m) to[line * m + tile * TILE + rank] = pair[j];
  }
}

/* How many of the first d pairs of the merged order are a's. */
template <class C> static __device__ __forceinline__ int64_t split(const C *a, int64_t na, const C *b, int64_t nb, int64_t d) {
  int64_t lo = d > nb ? d - nb : 0, hi = d < na ? d : na;
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    if (before(a[mid], b[d - 1 - mid])) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Merges runs of `width` pairs, two by two. to NULL: the results are written. */
template <class C> __global__ void __launch_bounds__(THREADS) merge(const ty_k_sorting a, const C *from, C *to,
  int64_t width, int64_t per_line) {
  __shared__ C pair[TILE];
  const int64_t line = blockIdx.x / per_line, out = blockIdx.x % per_line * TILE, start = out / (2 * width) * (2 * width);
  const int64_t middle = start + width < a.n ? start + width : a.n, end = start + 2 * width < a.n ? start + 2 * width : a.n;
  const C *p = from + line * a.n + start, *q = from + line * a.n + middle;
  const int64_t d0 = out - start, d1 = out + TILE < end ? d0 + TILE : end - start;
  const int64_t p0 = split(p, middle - start, q, end - middle, d0), p1 = split(p, middle - start, q, end - middle, d1);
  const int np = (int)(p1 - p0), n = (int)(d1 - d0);
  for (int j = (int)threadIdx.x; j < n; j += THREADS) pair[j] = j < np ? p[p0 + j] : q[d0 - p0 + j - np];
  __syncthreads();
  const int d = (int)threadIdx.x * EACH < n ? (int)threadIdx.x * EACH : n;
  int i = (int)split(pair, np, pair + np, n - np, d), j = np + d - i;
  for (int k = d; k < d + EACH && k < n; k++) {
    const C c = j >= n || (i < np && before(pair[i], pair[j])) ? pair[i++] : pair[j++];
    if (to) to[line * a.n + out + k] = c;
    else if (out + k < a.take) finish(a, line, out + k, c);
  }
}

/* Whether x comes before value y's place in a sorted line; NaN is the largest. */
template <class T> static __device__ __forceinline__ bool lower(T x, T y, int right) {
  return right ? !(x > y) && !(x != x && y == y) : x < y || (y != y && x == x);
}

template <class T> __global__ void __launch_bounds__(THREADS) search(const ty_k_searching a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.count) return;
  const int64_t row = a.per ? i / a.per * a.n : 0;
  const T y = load<T>(a.values, a.dtype, i);
  int64_t lo = 0, hi = a.n;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    if (lower(load<T>(a.sorted, a.dtype, row + mid), y, a.right)) lo = mid + 1;
    else hi = mid;
  }
  a.o[i] = lo + 1;
}

/* ---- launchers ---- */

size_t ty_k_sort_bytes(const ty_k_sorting *a) {
  return a->n <= TILE ? 0 : (size_t)(a->lines * a->n) * (is_wide(a->dtype) ? sizeof(wide) : sizeof(narrow));
}

template <class C> static cudaError_t sort(const ty_k_sorting &a, cudaStream_t s) {
  C *from = (C *)a.work[0], *to = (C *)a.work[1], *none = nullptr;
  const C *x = nullptr;
  int64_t m = a.n, per_line = (m + TILE - 1) / TILE;
  int segment = 2;
  cudaError_t e = cudaSuccess;
  auto tile = tiles<C>;
  auto join = merge<C>;
  while (segment < m && segment < TILE) segment *= 2;
  if (per_line == 1) return TY_LAUNCH(tile, blocks_for(a.lines, TILE / segment), THREADS, s, a, x, none, m, 1, segment, TILE);
  if (a.take <= TILE / 4) {
    const int keep = (int)a.take;
    while (e == cudaSuccess && per_line > 1) {
      e = TY_LAUNCH(tile, (unsigned)(a.lines * per_line), THREADS, s, a, x, to, m, per_line, TILE, keep);
      x = to;
      to = from;
      from = (C *)x;
      m = per_line * keep;
      per_line = (m + TILE - 1) / TILE;
    }
    segment = 2;
    while (segment < m) segment *= 2;
    return e == cudaSuccess ? TY_LAUNCH(tile, blocks_for(a.lines, TILE / segment), THREADS, s, a, x, none, m, 1, segment, TILE) : e;
  }
  e = TY_LAUNCH(tile, (unsigned)(a.lines * per_line), THREADS, s, a, x, from, m, per_line, TILE, TILE);
  for (int64_t width = TILE; e == cudaSuccess && width < a.n; width *= 2) {
    C *dst = 2 * width >= a.n ? none : to;
    x = from;
    e = TY_LAUNCH(join, (unsigned)(a.lines * per_line), THREADS, s, a, x, dst, width, per_line);
    to = from;
    from = dst;
  }
  return e;
}

cudaError_t ty_k_sort(const ty_k_sorting *p, cudaStream_t s) {
  const ty_k_sorting a = *p;
  if (a.lines * ((a.n + TILE - 1) / TILE) > INT32_MAX || a.n >= UINT32_MAX) return cudaErrorInvalidValue;
  return is_wide(a.dtype) ? sort<wide>(a, s) : sort<narrow>(a, s);
}

cudaError_t ty_k_search(const ty_k_searching *p, cudaStream_t s) {
  const ty_k_searching a = *p;
  if (a.dtype <= TY_F64) return TY_LAUNCH(search<double>, blocks_for(a.count, THREADS), THREADS, s, a);
  return TY_LAUNCH(search<int64_t>, blocks_for(a.count, THREADS), THREADS, s, a);
}
