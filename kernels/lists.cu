/* Lists of tensors: casts; joining their rows (cat); a sweep that looks for infinities, scales, and sums squares for a norm.
 *
 * Idea: a block finds its tensor by the number of blocks that come before each. Invariant: sums have one order; `found` is only ever set,
 * never cleared here. */
#include "lists.cuh"
#include "rows.cuh"

#define CAST_EACH 8              /* elements of a thread */
#define JOIN_EACH 4              /* words of a thread */

/* An item whose `to` is NULL is only looked at. */
static __global__ void __launch_bounds__(THREADS) cast_all(const ty_k_casts a) {
  int k = a.count - 1, infinite = 0;
  while (blockIdx.x < a.item[k].first) k--;
  const void *const x = a.item[k].from;
  void *const o = a.item[k].to;
  const int from_dtype = a.item[k].from_dtype, to_dtype = a.item[k].to_dtype;
  const int64_t n = a.item[k].n, inner = a.item[k].inner, outer = a.item[k].outer,
    first = (blockIdx.x - a.item[k].first) * (int64_t)(THREADS * CAST_EACH);
  const bool wide = n > INT32_MAX,
    by_fours = !inner && n - first >= THREADS * CAST_EACH && fours(x, from_dtype) && (!o || fours(o, to_dtype));
  float v[CAST_EACH];                      /* no read waits for another */
#pragma unroll
  for (int e = 0; e < CAST_EACH; e += 4) {
    if (by_fours) { load_four(v + e, x, from_dtype, first + (e / 4 * THREADS + threadIdx.x) * 4); continue; }
#pragma unroll
    for (int f = e; f < e + 4; f++) {
      int64_t at = first + f * THREADS + threadIdx.x;
      v[f] = 0;
      if (at >= n) continue;
      if (inner) {
        const int64_t row = innermost(at, inner, wide), column = innermost(at, outer, wide);
        at = (at * inner + row) * outer + column;
      }
      v[f] = load<float>(x, from_dtype, at);
    }
  }
#pragma unroll
  for (int e = 0; e < CAST_EACH && o; e += 4) {
    if (by_fours) { store_four(o, to_dtype, first + (e / 4 * THREADS + threadIdx.x) * 4, v + e); continue; }
#pragma unroll
    for (int f = e; f < e + 4; f++) {
      const int64_t i = first + f * THREADS + threadIdx.x;
      if (i < n) store(o, to_dtype, i, v[f]);
    }
  }
#pragma unroll
  for (int f = 0; f < CAST_EACH; f++) {
    const float r = rounded(v[f], to_dtype);
    if (!(r - r == 0)) infinite = 1;
  }
  if (infinite && a.found && a.item[k].looked_at) *a.found = 1;            /* all who write it write the same */
}

/* Copies words of BYTES bytes. */
template <int BYTES> __global__ void __launch_bounds__(THREADS) join_parts(const ty_k_parts a) {
  typedef typename word_of<BYTES>::type word;
  int k = a.count - 1;
  while (blockIdx.x < a.item[k].first) k--;
  const int64_t width = a.item[k].width / BYTES, n = a.rows * width,
    first = (blockIdx.x - a.item[k].first) * (int64_t)(THREADS * JOIN_EACH) + threadIdx.x;
  const word *const from = (const word *)a.item[k].from;
  char *const to = a.item[k].to;
  word w[JOIN_EACH];
#pragma unroll
  for (int e = 0; e < JOIN_EACH; e++) if (first + e * THREADS < n) w[e] = from[first + e * THREADS];
#pragma unroll
  for (int e = 0; e < JOIN_EACH; e++) {
    int64_t row = first + e * THREADS;
    if (row >= n) continue;
    const int64_t column = innermost(row, width, n > INT32_MAX);
    *(word *)(to + row * a.pitch + column * BYTES) = w[e];
  }
}

template <class T> __global__ void __launch_bounds__(THREADS) sweep(const ty_k_sweep a) {
  __shared__ T s[THREADS / 32];
  const T by = (a.scale ? (T)(float)(1 / (double)*a.scale) : (T)1) * (a.factor ? load<T>(a.factor, a.factor_dtype, 0) : (T)1);
  const bool changes = a.scale || a.factor;
  int64_t chunk = blockIdx.x;
  const int t = find_chunk(a.n, a.count, chunk);
  if (t == a.count) return;                /* the whole block */
  void *const p = a.p[t];
  const int64_t from = chunk * CHUNK, to = a.n[t] - from < CHUNK ? a.n[t] : from + CHUNK;
  const bool by_fours = to - from == CHUNK && fours(p, a.dtype);
  const int64_t step = by_fours ? 4 : 1;
  T squares = 0;
  int infinite = 0;
  for (int64_t i = from + threadIdx.x * step; i < to; i += THREADS * step) {
    T g[4] = {0, 0, 0, 0};
    if (by_fours) load_four(g, p, a.dtype, i);
    else g[0] = load<T>(p, a.dtype, i);
    for (int k = 0; k < 4; k++) {
      if (!(g[k] - g[k] == 0)) infinite = 1;
      squares += g[k] * g[k];
      g[k] *= by;
    }
    if (changes && by_fours) store_four(p, a.dtype, i, g);
    else if (changes) store(p, a.dtype, i, g[0]);
  }
  if (infinite && a.found) *a.found = 1;   /* all who write it write the same */
  if (!a.squares) return;
  squares = sum_of_block(squares, s);
  if (threadIdx.x == 0) a.squares[a.first + blockIdx.x] = (double)squares;
}

static __global__ void __launch_bounds__(THREADS) norm_of_squares(void *o, int dtype, const double *squares, int64_t n) {
  __shared__ double s[THREADS / 32];
  double v = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) v += squares[i];
  v = sum_of_block(v, s);
  if (threadIdx.x == 0) store(o, dtype, 0, sqrt(v));
}

/* ---- launchers ---- */

cudaError_t ty_k_cast_all(ty_k_casts *a, cudaStream_t s) {
  int64_t blocks = 0;
  for (int k = 0; k < a->count; k++) {
    a->item[k].first = blocks;
    blocks += (a->item[k].n + THREADS * CAST_EACH - 1) / (THREADS * CAST_EACH);
  }
  const ty_k_casts args = *a;
  return blocks ? TY_LAUNCH(cast_all, blocks_for(blocks, 1), THREADS, s, args) : cudaSuccess;
}

template <int BYTES> static cudaError_t join_by(ty_k_parts *p, cudaStream_t s) {
  int64_t blocks = 0;
  for (int k = 0; k < p->count; k++) {
    p->item[k].first = blocks;
    blocks += (p->rows * (p->item[k].width / BYTES) + THREADS * JOIN_EACH - 1) / (THREADS * JOIN_EACH);
  }
  const ty_k_parts a = *p;
  return blocks ? TY_LAUNCH(join_parts<BYTES>, blocks_for(blocks, 1), THREADS, s, a) : cudaSuccess;
}

cudaError_t ty_k_join_parts(ty_k_parts *a, cudaStream_t s) {
  uintptr_t bits = (uintptr_t)a->pitch;      /* its lowest bit that is set: the alignment of all */
  for (int k = 0; k < a->count; k++) bits |= (uintptr_t)a->item[k].from | (uintptr_t)a->item[k].to | (uintptr_t)a->item[k].width;
  return bits % 16 == 0 ? join_by<16>(a, s) : bits % 8 == 0 ? join_by<8>(a, s) : bits % 4 == 0 ? join_by<4>(a, s)
    : bits % 2 == 0 ? join_by<2>(a, s) : join_by<1>(a, s);
}

cudaError_t ty_k_sweep_all(ty_k_sweep *p, cudaStream_t s) {
  const ty_k_sweep a = *p;
  const int64_t chunks = chunks_of(a.n, a.count);
  if (chunks == 0) return cudaSuccess;
  p->first += chunks;
  return a.dtype == TY_F64 ? TY_LAUNCH(sweep<double>, (unsigned)chunks, THREADS, s, a)
    : TY_LAUNCH(sweep<float>, (unsigned)chunks, THREADS, s, a);
}

cudaError_t ty_k_norm_of_squares(void *o, int dtype, const double *squares, int64_t n, cudaStream_t s) {
  return TY_LAUNCH(norm_of_squares, 1, THREADS, s, o, dtype, squares, n);
}
