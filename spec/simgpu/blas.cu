/* Products on the simulated GPU: one kernel of plain loops, accumulating in the type that the library accumulates in. */
#include "device.cuh"

struct product { int dtype; int64_t m, n, k, lda, ldb, stride_a, stride_b; bool ta, tb, relu; const void *a, *b, *bias; void *c; };

template <class T> static void multiply(const product p) {
  const int64_t i = blockIdx.x, j = threadIdx.x, batch = blockIdx.y;
  for (int64_t col = j; col < p.n; col += blockDim.x) {
    T sum = 0;
    for (int64_t k = 0; k < p.k; k++)
      sum += load<T>(p.a, p.dtype, batch * p.stride_a + (p.ta ? k * p.lda + i : i * p.lda + k)) * load<T>(p.b, p.dtype, batch * p.stride_b + (p.tb ? col * p.ldb + k : k * p.ldb + col));
    if (p.bias) sum += load<T>(p.bias, p.dtype, col);
    if (p.relu && sum < 0) sum = 0;
    store(p.c, p.dtype, (batch * p.m + i) * p.n + col, sum);
  }
}

TY_K cudaError_t sim_product(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch, int64_t lda, int64_t ldb, int64_t stride_a, int64_t stride_b, int ta, int tb, int relu,
                             const void *a, const void *b, const void *bias, void *c, cudaStream_t s) {
  const product p = {dtype, m, n, k, lda, ldb, stride_a, stride_b, ta != 0, tb != 0, relu != 0, a, b, bias, c};
  const dim3 grid((unsigned)m, (unsigned)batch);
  if (dtype == TY_F64) return TY_LAUNCH(multiply<double>, grid, 16, s, p);
  return TY_LAUNCH(multiply<float>, grid, 16, s, p);
}
