/* What attention's kernels share: a score, dropout's factor of its weight, the score's gradient.
 *
 * Invariant: all kernels and the CPU drop the same weights: row (n, h, i) has its own random blocks (core/math.h), from the offset on that
 * is kept with the result. */
#ifndef TY_ATTENTION_CUH
#define TY_ATTENTION_CUH
#include "scalar.cuh"

static __device__ __forceinline__ int64_t base_of(const ty_k_heads &t, int64_t h, int64_t head) {
  const int64_t at = innermost(head, h, head > INT32_MAX);
  return head * t.stride[0] + at * t.stride[1];
}

/* Whether rows of `width` numbers can be read in packs of n, 16 bytes each. */
static inline bool by_packs(const ty_k_heads &t, int64_t width, int64_t n) {
  for (int i = 0; i < 3; i++)
    if (t.stride[i] % n) return false;
  return width > 0 && width % n == 0 && t.stride[3] == 1 && (uintptr_t)t.p % 16 == 0;
}

/* The score of query i and key j, from their dot product; -inf where i doesn't see j. */
template <class T> static __device__ __forceinline__ T score(const ty_k_attention &a, int64_t head, int64_t i, int64_t j, T dot) {
  if (i >= a.lq || j >= a.lk || (a.causal && j > i)) return (T)-INFINITY;
  T s = dot * (T)a.scale;
  if (!a.mask.p) return s;
  const int64_t at = base_of(a.mask, a.h, head) + i * a.mask.stride[2] + j * a.mask.stride[3];
  if (a.mask_dtype == TY_BOOL) return ((const uint8_t *)a.mask.p)[at] ? s : (T)-INFINITY;
  return s + load<T>(a.mask.p, a.mask_dtype, at);
}

/* dropout's factor, 0 or a.kept, from 16 random bits */
template <class T> static __device__ __forceinline__ T kept_of(const ty_k_attention &a, uint32_t half) {
  return half >= a.least ? (T)a.kept : (T)0;
}
/* The random words of query i and the eight keys around j. */
static __device__ __forceinline__ void draw(uint32_t *r, const ty_k_attention &a, int64_t head, int64_t i, int64_t j) {
  ty_philox((uint64_t)a.rng[0], (uint64_t)a.rng[1] + (uint64_t)(head * a.lq + i) * ty_drop_blocks(a.lk) + (uint64_t)j / 8, r);
}
/* Dropout's factor of query i and key j. Conditions pick the word: by ty_half_word's index the words would lie in memory. */
template <class T> static __device__ __forceinline__ T keep(const ty_k_attention &a, int64_t head, int64_t i, int64_t j) {
  if (a.dropout <= 0) return 1;
  uint32_t r[4];
  draw(r, a, head, i, j);
  const uint32_t low = j & 2 ? r[1] : r[0], high = j & 2 ? r[3] : r[2], word = j & 4 ? high : low;
  return kept_of<T>(a, j & 1 ? word >> 16 : word & 0xffffu);
}

/* keep of keys j .. j + 3; j is a multiple of 4 */
template <class T> static __device__ __forceinline__ void keep_some(T *kept, const ty_k_attention &a, int64_t head, int64_t i, int64_t j) {
  uint32_t r[4];
#pragma unroll
  for (int k = 0; k < 4; k++) kept[k] = 1;
  if (a.dropout <= 0) return;
  draw(r, a, head, i, j);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const uint32_t word = j & 4 ? r[2 + k / 2] : r[k / 2];
    kept[k] = kept_of<T>(a, k % 2 ? word >> 16 : word & 0xffffu);
  }
}

/* For query i and key j: *dot comes in as q k^T and becomes its gradient (a.slope 1: the mask's); *dp comes in as g v^T and becomes the
   weight that v was summed with. kept: dropout's factor of that weight. */
template <class T> static __device__ __forceinline__ void slope(const ty_k_attention &a, int64_t head, int64_t i,
  int64_t j, T kept, T *dot, T *dp) {
  const T s = score<T>(a, head, i, j, *dot);
  if (s == (T)-INFINITY) { *dot = *dp = 0; return; }
  const T p = exp_of(s - ((const T *)a.lse)[head * a.lq + i]);
  *dot = p * (*dp * kept - ((const T *)a.delta)[head * a.lq + i]) * (T)a.slope;
  *dp = p * kept;
}
#endif
