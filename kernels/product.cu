/* Matrix products by tiles in shared memory, for integers and for what cuBLASLt doesn't take.
 *
 * C = A B (+ bias) (then relu) as src/cuda/blas.h says. Invariant: sums run over k in order, in float32, of float64 in float64, of integers
 * in int64. */
#include "device.cuh"

#define SIDE 16

template <class T> __global__ void __launch_bounds__(SIDE * SIDE) multiply(const ty_k_product p) {
  __shared__ T a[SIDE][SIDE + 1], b[SIDE][SIDE + 1];
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  const int64_t tiles = (p.n + SIDE - 1) / SIDE, row = blockIdx.x / tiles * SIDE + y, col = blockIdx.x % tiles * SIDE + x;
  for (int64_t batch = blockIdx.y; batch < p.batch; batch += gridDim.y) {
    T sum = 0, whole = 0;
    for (int64_t k = 0; k < p.k; k += SIDE) {
      a[y][x] = row < p.m && k + x < p.k
        ? load<T>(p.a, p.dtype, batch * p.stride_a + (p.ta ? (k + x) * p.lda + row : row * p.lda + k + x)) : (T)0;
      b[y][x] = col < p.n && k + y < p.k
        ? load<T>(p.b, p.dtype, batch * p.stride_b + (p.tb ? col * p.ldb + k + y : (k + y) * p.ldb + col)) : (T)0;
      __syncthreads();
      for (int i = 0; i < SIDE; i++) sum += a[y][i] * b[i][x];
      for (int i = 0; i < SIDE && p.row_sums && col == 0; i++) whole += a[y][i];
      __syncthreads();
    }
    if (row >= p.m || col >= p.n) continue;
    if (p.row_sums && col == 0) store(p.row_sums, p.dtype, row, whole);
    if (p.bias) sum += load<T>(p.bias, p.dtype, col);
    if (p.relu && sum < 0) sum = 0;
    store(p.c, p.wide ? TY_F32 : p.dtype, (batch * p.m + row) * p.n + col, sum);
  }
}

/* ---- launchers ---- */

cudaError_t ty_k_multiply(const ty_k_product *a, cudaStream_t s) {
  const ty_k_product p = *a;
  const int64_t blocks = ((p.m + SIDE - 1) / SIDE) * ((p.n + SIDE - 1) / SIDE);
  const dim3 grid((unsigned)blocks, (unsigned)(p.batch < 65535 ? p.batch : 65535));
  if (blocks > INT32_MAX) return cudaErrorInvalidValue;
  if (p.dtype == TY_F64) return TY_LAUNCH(multiply<double>, grid, SIDE * SIDE, s, p);
  if (p.dtype < TY_F64) return TY_LAUNCH(multiply<float>, grid, SIDE * SIDE, s, p);
  return TY_LAUNCH(multiply<int64_t>, grid, SIDE * SIDE, s, p);
}
