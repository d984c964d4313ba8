/* What a library's attention (src/cuda/dnn_attention.c) gets in place of a mask, and the rows that it gets wrong.
 *
 * Idea: a mask becomes a bias, numbers to add to scores. The library may multiply scores by log2(e), so a bias stays far from the ends of
 * float32. It may also take exponentials as ex2(s log2(e) - top log2(e)), where only the second product is rounded: where s and top are
 * equal and large, the difference is a large rounding error, which overflows (NaN); it is 0 where they are powers of two. A row that sees
 * no key comes out as the mean of all values and shows by its log-sum-exp: it is made 0 afterwards, as PyTorch's.
 *
 * Invariant: the bias is NEVER where no key is seen, and nothing else comes near that: elsewhere it ends at FAR, and beyond STEEP is a
 * power of two. (A row of FAR alone: its result is the mean; its log-sum-exp has lost the number of keys, and with it the gradient, as
 * elsewhere.) */
#include "attention.cuh"

#define THREADS 256
#define STEEP -0x1p30f           /* up to here the rounding error is less than 64 */
#define FAR -0x1p100f
#define NEVER -0x1p101f
#define UNSEEN -0x1.8p100f       /* a log-sum-exp below this: of a row of NEVER alone */

static __global__ void __launch_bounds__(THREADS) biases(const ty_k_attention a, const ty_k_attention_given x, int64_t n) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float *const to = x.bias + i;
  const bool wide = n > INT32_MAX;
  const int64_t j = innermost(i, x.ld, wide), q = innermost(i, x.shape[2], wide), h = innermost(i, x.shape[1], wide);
  if (j >= a.lk) { *to = NEVER; return; }
  const int64_t at = i * a.mask.stride[0] + h * a.mask.stride[1] + q * a.mask.stride[2] + j * a.mask.stride[3];
  const float v = load<float>(a.mask.p, a.mask_dtype, at);
  if (a.mask_dtype == TY_BOOL) *to = v != 0 ? 0 : NEVER;
  else *to = v == -INFINITY ? NEVER : v < FAR ? FAR : v < STEEP ? ty_float(ty_bits(v) & 0xff800000u) : v;
}

static __global__ void __launch_bounds__(THREADS) unseen(const ty_k_attention a) {
  const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (row >= a.heads * a.lq || !(((const float *)a.lse)[row] < UNSEEN)) return;
  const int64_t at = base_of(a.o, a.h, row / a.lq) + row % a.lq * a.o.stride[2];
  ((float *)a.lse)[row] = INFINITY;
  for (int64_t c = 0; c < a.dv; c++) store((void *)a.o.p, a.dtype, at + c * a.o.stride[3], 0.0f);
}

/* ---- launchers ---- */

cudaError_t ty_k_attention_bias(const ty_k_attention *p, const ty_k_attention_given *given, cudaStream_t s) {
  const ty_k_attention a = *p;
  const ty_k_attention_given x = *given;
  const int64_t n = x.shape[0] * x.shape[1] * x.shape[2] * x.ld;
  return TY_LAUNCH(biases, blocks_for(n, THREADS), THREADS, s, a, x, n);
}

cudaError_t ty_k_attention_unseen(const ty_k_attention *p, cudaStream_t s) {
  const ty_k_attention a = *p;
  return TY_LAUNCH(unseen, blocks_for(a.heads * a.lq, THREADS), THREADS, s, a);
}
