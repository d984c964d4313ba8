/* Rows of at most TY_K_ROW elements (twice that in layer_norm.cu), which a block's threads hold in registers; several short rows share a
 * block.
 *
 * Idea: which element a thread holds, and the order in which elements are combined, are those of fused kernels (src/cuda/source.c). A
 * thread holds groups of G neighbours: four where the row's length is a multiple of four, else one. Kernels are built for each dtype D of
 * the row and each G. Invariant: an op gives the same bits alone and fused; threads without a row still reach every barrier. */
#ifndef TY_ROWS_CUH
#define TY_ROWS_CUH
#include "device.cuh"

#define ROW_EACH (TY_K_ROW / TY_K_ROW_THREADS)         /* elements that a thread holds at most */
#define ROW_FEW 4                                      /* the same for rows that few_each takes: their kernels have no code for more */
static inline bool few_each(int64_t n) { return n <= ROW_FEW * ty_k_row_lanes(n); }

static inline dim3 threads_of_rows(int64_t rows, int64_t n) {
  return dim3((unsigned)ty_k_row_lanes(n), (unsigned)ty_k_rows_of_block(rows, n));
}
static inline unsigned blocks_of_rows(int64_t rows, int64_t n) { return blocks_for(rows, ty_k_rows_of_block(rows, n)); }
static __device__ __forceinline__ int64_t row_of_thread() { return (int64_t)blockIdx.x * blockDim.y + threadIdx.y; }

/* For each element e of the thread: j is its index in the row. n is a multiple of G, so one comparison serves G elements. EACH: ROW_EACH or
   ROW_FEW */
#define EACH_OF_ROW(e, j, n) \
  _Pragma("unroll") for (int e = 0; e < EACH; e++) if (const int j = row_place<G>(e); j - e % G < (int)(n))

static __host__ __device__ __forceinline__ bool short_float(int dtype) { return dtype == TY_F32 || dtype == TY_F16 || dtype == TY_BF16; }
static __host__ __device__ __forceinline__ int bytes_of(int dtype) {
  return dtype == TY_F32 || dtype == TY_I32 ? 4 : dtype == TY_F16 || dtype == TY_BF16 ? 2 : dtype == TY_U8 || dtype == TY_BOOL ? 1 : 8;
}
/* Whether load_four and store_four work at p and each fourth element after it: floats of up to 32 bits and bytes. */
static __host__ __device__ __forceinline__ bool fours(const void *p, int dtype) {
  return (short_float(dtype) || bytes_of(dtype) == 1) && (uintptr_t)p % (4 * bytes_of(dtype)) == 0;
}

/* Four neighbours, from or to an address that is a multiple of four elements. */
template <class T> static __device__ __forceinline__ void load_four(T *v, const void *p, int dtype, int64_t i) {
  if (dtype == TY_F32) {
    const pack<float, 4> x = take_pack<float, 4>((const float *)p + i);
    for (int k = 0; k < 4; k++) v[k] = x.d[k];
  } else if (bytes_of(dtype) == 1) {
    const pack<uint8_t, 4> x = take_pack<uint8_t, 4>((const uint8_t *)p + i);
    for (int k = 0; k < 4; k++) v[k] = x.d[k];
  } else {
    const pack<uint16_t, 4> x = take_pack<uint16_t, 4>((const uint16_t *)p + i);
    for (int k = 0; k < 4; k++) v[k] = dtype == TY_F16 ? half_to_float(x.d[k]) : ty_bf16_to_f32(x.d[k]);
  }
}
/* Four neighbours at each of N elements: all reads are on their way before the first is used. */
template <int N, class T> static __device__ __forceinline__ void load_fours(T (&v)[N][4], const void *p, int dtype,
  const int64_t (&at)[N]) {
  if (bytes_of(dtype) != 2) {
#pragma unroll
    for (int m = 0; m < N; m++) load_four(v[m], p, dtype, at[m]);
    return;
  }
  pack<uint16_t, 4> w[N];
#pragma unroll
  for (int m = 0; m < N; m++) w[m] = take_pack<uint16_t, 4>((const uint16_t *)p + at[m]);
#pragma unroll
  for (int m = 0; m < N; m++)
#pragma unroll
    for (int k = 0; k < 4; k++) v[m][k] = dtype == TY_F16 ? half_to_float(w[m].d[k]) : ty_bf16_to_f32(w[m].d[k]);
}
template <class T> static __device__ __forceinline__ void store_four(void *p, int dtype, int64_t i, const T *v) {
  if (dtype == TY_F32) {
    pack<float, 4> x;
    for (int k = 0; k < 4; k++) x.d[k] = (float)v[k];
    put_pack((float *)p + i, x);
  } else if (bytes_of(dtype) == 1) {
    pack<uint8_t, 4> x;
    for (int k = 0; k < 4; k++) store(&x.d[k], dtype, 0, v[k]);
    put_pack((uint8_t *)p + i, x);
  } else {
    pack<uint16_t, 4> x;
    for (int k = 0; k < 4; k++) x.d[k] = dtype == TY_F16 ? float_to_half((float)v[k]) : ty_f32_to_bf16((float)v[k]);
    put_pack((uint16_t *)p + i, x);
  }
}

/* N neighbours from element i on, of a dtype known at compile time: no branch on it separates several reads. */
template <class D, int N, class T> static __device__ __forceinline__ void take_as(T *v, const void *p, int64_t i) {
  const pack<D, N> x = take_pack<D, N>((const D *)p + i);
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = stored<D>::in(x.d[k]);
}
template <class D, int N, class T> static __device__ __forceinline__ void give_as(void *p, int64_t i, const T *v) {
  pack<D, N> x;
#pragma unroll
  for (int k = 0; k < N; k++) x.d[k] = stored<D>::out(v[k]);
  put_pack((D *)p + i, x);
}

template <class D, class T> struct widened { __device__ __forceinline__ T operator()(D v) const { return stored<D>::in(v); } };
template <class D, class T> struct narrowed { __device__ __forceinline__ D operator()(T v) const { return stored<D>::out(v); } };
/* v = the thread's elements of a row of n from element base of p on, which lie step apart. */
template <int G, class D, class T, int EACH> static __device__ __forceinline__ void load_row(T (&v)[EACH], const void *p, int64_t base,
  int64_t n, int64_t step) {
  take_row<EACH, G>(v, (const D *)p + base, (int)n, step, widened<D, T>());
}
template <int G, class D, class T, int EACH> static __device__ __forceinline__ void store_row(void *p, int64_t base, int64_t n,
  int64_t step, const T (&v)[EACH]) {
  put_row<EACH, G>((D *)p + base, (int)n, step, v, narrowed<D, T>());
}
/* load_row for what all rows share, such as a weight, of any floating dtype. */
template <int G, class T, int EACH> static __device__ __forceinline__ void load_shared_row(T (&v)[EACH], const void *p, int dtype,
  int64_t n) {
  if (dtype == TY_F32) load_row<G, float>(v, p, 0, n, 1);
  else if (dtype == TY_F16) load_row<G, half16>(v, p, 0, n, 1);
  else if (dtype == TY_BF16) load_row<G, brain16>(v, p, 0, n, 1);
  else load_row<G, double>(v, p, 0, n, 1);
}

template <class T> static __device__ __forceinline__ T sum_of_block(T v, T *s) {
  return combine_block(v, s, [](T a, T b) { return (T)(a + b); });
}

/* LAUNCH(D, G) for rows of n elements of this floating dtype. */
#define WITH_ROWS(dtype, n, LAUNCH) \
  ((n) % 4 == 0 ? WITH_DTYPE(dtype, LAUNCH, 4) : WITH_DTYPE(dtype, LAUNCH, 1))
#define WITH_DTYPE(dtype, LAUNCH, G) \
  ((dtype) == TY_F32 ? LAUNCH(float, G) : (dtype) == TY_F16 ? LAUNCH(half16, G) \
   : (dtype) == TY_BF16 ? LAUNCH(brain16, G) : LAUNCH(double, G))
#endif
