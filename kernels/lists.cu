/* Casts of lists of tensors, and what looks for infinities in them. */
#include "lists.cuh"

#define CAST_EACH 8              /* elements of a thread */

/* An item without a place to be written to is only looked at. */
static __global__ void __launch_bounds__(THREADS) cast_all(const ty_k_casts a) {
  int k = a.count - 1, infinite = 0;
  while (blockIdx.x < a.item[k].first) k--;
  const int64_t from = (blockIdx.x - a.item[k].first) * (int64_t)(THREADS * CAST_EACH) + threadIdx.x;
#pragma unroll
  for (int e = 0; e < CAST_EACH; e++) {
    const int64_t i = from + e * THREADS, inner = a.item[k].inner, outer = a.item[k].outer;
    const bool wide = a.item[k].n > INT32_MAX;
    if (i >= a.item[k].n) continue;
    int64_t at = i;
    if (inner) {
      const int64_t y = innermost(at, inner, wide), x = innermost(at, outer, wide);
      at = (at * inner + y) * outer + x;
    }
    const float v = rounded(load<float>(a.item[k].from, a.item[k].from_dtype, at), a.item[k].to_dtype);
    if (!(v - v == 0)) infinite = 1;
    if (a.item[k].to) store(a.item[k].to, a.item[k].to_dtype, i, v);
  }
  if (infinite && a.found && a.item[k].looked_at) *a.found = 1;            /* all who write it write the same */
}

template <class T> __global__ void __launch_bounds__(THREADS) unscale(const ty_k_unscaling a) {
  const T by = a.scale ? (T)(float)(1 / (double)*a.scale) : (T)1;
  int64_t chunk = blockIdx.x;
  const int t = find_chunk(a.n, a.count, chunk);
  if (t == a.count) return;
  const int64_t from = chunk * CHUNK, to = a.n[t] - from < CHUNK ? a.n[t] : from + CHUNK;
  int infinite = 0;
  for (int64_t i = from + threadIdx.x; i < to; i += THREADS) {
    const T g = load<T>(a.p[t], a.dtype, i);
    if (!(g - g == 0)) infinite = 1;
    if (a.scale) store(a.p[t], a.dtype, i, g * by);
  }
  if (infinite) *a.found = 1;              /* all who write it write the same */
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

cudaError_t ty_k_unscale(const ty_k_unscaling *p, cudaStream_t s) {
  const ty_k_unscaling a = *p;
  const int64_t chunks = chunks_of(a.n, a.count);
  if (chunks == 0) return cudaSuccess;
  return a.dtype == TY_F64 ? TY_LAUNCH(unscale<double>, (unsigned)chunks, THREADS, s, a) : TY_LAUNCH(unscale<float>, (unsigned)chunks, THREADS, s, a);
}
