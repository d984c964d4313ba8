/* The simulated library's second plan of a product (libraries.c): sums over k from its end. */
#include "device.cuh"

static __global__ void backwards(const ty_k_product p) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, col = i % p.n, row = i / p.n % p.m, batch = i / p.n / p.m;
  if (batch >= p.batch) return;
  float sum = 0, whole = 0;
  for (int64_t k = p.k - 1; k >= 0; k--)
    sum += load<float>(p.a, p.dtype, batch * p.stride_a + (p.ta ? k * p.lda + row : row * p.lda + k)) *
      load<float>(p.b, p.dtype, batch * p.stride_b + (p.tb ? col * p.ldb + k : k * p.ldb + col));
  for (int64_t k = p.k - 1; k >= 0 && p.row_sums && col == 0; k--)
    whole += load<float>(p.a, p.dtype, p.ta ? k * p.lda + row : row * p.lda + k);
  if (p.row_sums && col == 0) store(p.row_sums, p.dtype, row, whole);
  if (p.bias) sum += load<float>(p.bias, p.dtype, col);
  if (p.relu && sum < 0) sum = 0;
  store(p.c, p.wide ? TY_F32 : p.dtype, i, sum);
}

extern "C" cudaError_t sim_multiply_backwards(const ty_k_product *a, cudaStream_t s) {
  const ty_k_product p = *a;
  return TY_LAUNCH(backwards, blocks_for(p.m * p.n * p.batch, 64), 64, s, p);
}
