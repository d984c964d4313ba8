/* Rows of at most TY_K_ROW elements: a block each, whose threads hold them in registers.
 *
 * Idea: which element a thread holds, and in which order the block combines, is as in fused kernels (src/cuda/source.c).
 * Invariant: an op gives the same bits alone and fused. */
#ifndef TY_ROWS_CUH
#define TY_ROWS_CUH
#include "device.cuh"

#define ROW_EACH (TY_K_ROW / TY_K_ROW_THREADS)         /* elements that a thread holds at most */

/* The row's element that thread t holds as its e-th: neighbours are held by fours where that comes out even. */
static __device__ __forceinline__ int64_t row_place(int e, int64_t n) {
  const int g = ty_k_row_together(n) - 1;
  return (int64_t)(e & ~g) * blockDim.x + (int64_t)threadIdx.x * (g + 1) + (e & g);
}

#define EACH_OF_ROW(e, j, n) \
  _Pragma("unroll") for (int e = 0; e < ROW_EACH; e++) if (const int64_t j = row_place(e, n); j < n)

template <class D> struct alignas(4 * sizeof(D)) four { D d[4]; };

/* Four neighbours, of 16 or 32 bits, from or to an address that is a multiple of four elements. */
template <class T> static __device__ __forceinline__ void load_four(T *v, const void *p, int dtype, int64_t i) {
  if (dtype == TY_F32) {
    const four<float> x = *(const four<float> *)((const float *)p + i);
    for (int k = 0; k < 4; k++) v[k] = x.d[k];
  } else {
    const four<uint16_t> x = *(const four<uint16_t> *)((const uint16_t *)p + i);
    for (int k = 0; k < 4; k++) v[k] = load<T>(&x.d[k], dtype, 0);
  }
}
template <class T> static __device__ __forceinline__ void store_four(void *p, int dtype, int64_t i, const T *v) {
  if (dtype == TY_F32) {
    four<float> x;
    for (int k = 0; k < 4; k++) x.d[k] = (float)v[k];
    *(four<float> *)((float *)p + i) = x;
  } else {
    four<uint16_t> x;
    for (int k = 0; k < 4; k++) store(&x.d[k], dtype, 0, v[k]);
    *(four<uint16_t> *)((uint16_t *)p + i) = x;
  }
}
static __host__ __device__ __forceinline__ bool fours(const void *p, int dtype) { return dtype != TY_F64 && (uintptr_t)p % (dtype == TY_F32 ? 16 : 8) == 0; }

/* v = the thread's elements of the row of n at element base of p, which lie step apart. */
template <class T> static __device__ __forceinline__ void load_row(T *v, const void *p, int dtype, int64_t base, int64_t n, int64_t step) {
  if (step == 1 && n % 4 == 0 && fours(p, dtype)) {     /* then each row begins at such an address */
#pragma unroll
    for (int e = 0; e < ROW_EACH; e += 4) {
      const int64_t j = row_place(e, n);
      if (j < n) load_four(v + e, p, dtype, base + j);
    }
    return;
  }
  EACH_OF_ROW(e, j, n) v[e] = load<T>(p, dtype, base + j * step);
}

/* All threads' v, combined. s: one of each thread. */
template <class T, class F> static __device__ __forceinline__ T combine_row(T v, T *s, F join) {
  const int t = (int)threadIdx.x;
  __syncthreads();
  s[t] = v;
  for (int half = (int)blockDim.x / 2; half; half /= 2) {
    __syncthreads();
    if (t < half) s[t] = join(s[t], s[t + half]);
  }
  __syncthreads();
  return s[0];
}
template <class T> static __device__ __forceinline__ T sum_of_row(T v, T *s) { return combine_row(v, s, [](T a, T b) { return (T)(a + b); }); }
#endif
