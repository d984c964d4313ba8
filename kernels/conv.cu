/* Convolution as plain sums: for dtypes and shapes that cuDNN doesn't take.
 *
 * Idea: a thread computes one element of the result, over its group's weights, or of x's gradient, over the results that read the pixel; a
 * warp computes one of the weight's gradient, over images and results. Any strides. Invariant: each sum has one order, in float32 (float64
 * in float64). */
#include "device.cuh"

#define THREADS 128
#define WARP 32
#define PACK 8                   /* 16-bit channels that a thread of widen writes at once */

static __device__ __forceinline__ int64_t place(const int64_t s[4], int64_t n, int64_t c, int64_t y, int64_t x) {
  return n * s[0] + c * s[1] + y * s[2] + x * s[3];
}

/* The four indices of element i of a shape. */
static __device__ __forceinline__ void indices(int64_t i, int64_t b, int64_t c, int64_t d, int64_t at[4]) {
  at[3] = i % d; i /= d;
  at[2] = i % c; i /= c;
  at[1] = i % b;
  at[0] = i / b;
}

/* y (N,O,oh,ow) = x (N,C,h,w) with w (O,C/groups,kh,kw) */
template <class T> __global__ void __launch_bounds__(THREADS) forward(const ty_k_convolution a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t at[4];
  if (i >= a.n * a.o * a.oh * a.ow) return;
  indices(i, a.o, a.oh, a.ow, at);
  const int64_t cg = a.c / a.groups, first = at[1] / (a.o / a.groups) * cg;
  T sum = 0;
  for (int64_t c = 0; c < cg; c++)
    for (int64_t ky = 0; ky < a.kh; ky++) {
      const int64_t y = at[2] * a.stride[0] - a.padding[0] + ky * a.dilation[0];
      if (y < 0 || y >= a.h) continue;
      for (int64_t kx = 0; kx < a.kw; kx++) {
        const int64_t x = at[3] * a.stride[1] - a.padding[1] + kx * a.dilation[1];
        if (x >= 0 && x < a.w)
          sum += load<T>(a.x, a.dtype, place(a.xs, at[0], first + c, y, x)) *
            load<T>(a.weight, a.dtype, place(a.ws, at[1], c, ky, kx));
      }
    }
  if (a.bias) sum += load<T>(a.bias, a.dtype, at[1]);
  store(a.y, a.dtype, place(a.ys, at[0], at[1], at[2], at[3]), sum);
}

/* x's gradient from y's */
template <class T> __global__ void __launch_bounds__(THREADS) input(const ty_k_convolution a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  int64_t at[4];
  if (i >= a.n * a.c * a.h * a.w) return;
  indices(i, a.c, a.h, a.w, at);
  const int64_t cg = a.c / a.groups, og = a.o / a.groups, group = at[1] / cg;
  T sum = 0;
  for (int64_t ky = 0; ky < a.kh; ky++) {
    const int64_t y = at[2] + a.padding[0] - ky * a.dilation[0];
    if (y < 0 || y % a.stride[0] || y / a.stride[0] >= a.oh) continue;
    for (int64_t kx = 0; kx < a.kw; kx++) {
      const int64_t x = at[3] + a.padding[1] - kx * a.dilation[1];
      if (x < 0 || x % a.stride[1] || x / a.stride[1] >= a.ow) continue;
      for (int64_t o = group * og; o < (group + 1) * og; o++)
        sum += load<T>(a.y, a.dtype, place(a.ys, at[0], o, y / a.stride[0], x / a.stride[1])) *
          load<T>(a.weight, a.dtype, place(a.ws, o, at[1] - group * cg, ky, kx));
    }
  }
  store(a.x, a.dtype, place(a.xs, at[0], at[1], at[2], at[3]), sum);
}

/* The weight's gradient from y's: a warp for each element. */
template <class T> __global__ void __launch_bounds__(WARP) weight(const ty_k_convolution a) {
  __shared__ T part[WARP];
  int64_t at[4], of[4];
  indices(blockIdx.x, a.c / a.groups, a.kh, a.kw, at);
  const int64_t channel = at[0] / (a.o / a.groups) * (a.c / a.groups) + at[1];
  T sum = 0;
  for (int64_t i = threadIdx.x; i < a.n * a.oh * a.ow; i += WARP) {
    indices(i, 1, a.oh, a.ow, of);
    const int64_t y = of[2] * a.stride[0] - a.padding[0] + at[2] * a.dilation[0],
      x = of[3] * a.stride[1] - a.padding[1] + at[3] * a.dilation[1];
    if (y >= 0 && y < a.h && x >= 0 && x < a.w)
      sum += load<T>(a.y, a.dtype, place(a.ys, of[0], at[0], of[2], of[3])) *
        load<T>(a.x, a.dtype, place(a.xs, of[0], channel, y, x));
  }
  part[threadIdx.x] = sum;
  for (int half = WARP / 2; half; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) store(a.weight, a.dtype, place(a.ws, at[0], at[1], at[2], at[3]), part[0]);
}

/* A thread writes a pack of a pixel's channels. */
static __global__ void __launch_bounds__(THREADS) widen(const ty_k_widening a, int64_t n) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, at = i;
  if (i >= n) return;
  const bool wide = n > INT32_MAX;
  const int64_t c = innermost(i, a.channels / PACK, wide) * PACK, x = innermost(i, a.w, wide), y = innermost(i, a.h, wide);
  const uint16_t *const from = (const uint16_t *)a.x + i * a.stride[0] + y * a.stride[2] + x * a.stride[3];
  pack<uint16_t, PACK> v;
#pragma unroll
  for (int k = 0; k < PACK; k++) v.d[k] = c + k < a.c ? from[(c + k) * a.stride[1]] : 0;
  put_pack((uint16_t *)a.o + at * PACK, v);
}

/* ---- launchers ---- */

cudaError_t ty_k_widen(const ty_k_widening *p, cudaStream_t s) {
  const ty_k_widening a = *p;
  const int64_t n = a.n * a.h * a.w * (a.channels / PACK);
  return n ? TY_LAUNCH(widen, blocks_for(n, THREADS), THREADS, s, a, n) : cudaSuccess;
}

template <class T> static cudaError_t convolve(const ty_k_convolution &a, cudaStream_t s) {
  switch (a.op) {
    case TY_OP_conv2d: return TY_LAUNCH(forward<T>, blocks_for(a.n * a.o * a.oh * a.ow, THREADS), THREADS, s, a);
    case TY_OP_conv2d_backward_input: return TY_LAUNCH(input<T>, blocks_for(a.n * a.c * a.h * a.w, THREADS), THREADS, s, a);
    default: return TY_LAUNCH(weight<T>, blocks_for(a.o * (a.c / a.groups) * a.kh * a.kw, 1), WARP, s, a);
  }
}

cudaError_t ty_k_convolve(const ty_k_convolution *p, cudaStream_t s) {
  const ty_k_convolution a = *p;
  return a.dtype == TY_F64 ? convolve<double>(a, s) : convolve<float>(a, s);
}
