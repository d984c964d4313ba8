/* Resizing of images: weighted sums of neighbours (core/taps.h).
 *
 * Idea: a thread computes one element. The gradient of an input gathers, along each dim, from a run of outputs, since taps ascend;
 * bisection finds the first one. Invariant: sums have one order, so results repeat. */
#include "device.cuh"
#include "taps.h"

#define THREADS 128

/* The first output of dim d whose last tap isn't before input at. */
template <int MODE> static __device__ __forceinline__ int64_t first_reader(const ty_k_resizing &a, int d, int64_t at) {
  int64_t lo = 0, hi = a.out[d], tap[4];
  double w[4];
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    ty_taps(a.in[d], a.out[d], MODE, a.corners, a.factor[d], mid, tap, w);
    if (tap[ty_taps_of(MODE) - 1] < at) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* *w = the weight with which output i reads input `at`; false: neither i nor any output after it does. */
template <int MODE> static __device__ __forceinline__ bool reads(const ty_k_resizing &a, int d, int64_t i, int64_t at, double *w) {
  int64_t tap[4];
  double k[4];
  if (i >= a.out[d]) return false;
  ty_taps(a.in[d], a.out[d], MODE, a.corners, a.factor[d], i, tap, k);
  *w = 0;
#pragma unroll
  for (int j = 0; j < ty_taps_of(MODE); j++)
    if (tap[j] == at) *w += k[j];
  return tap[0] <= at;
}

/* MODE: a.mode, as a constant, so that the taps, whose number is known, stay in registers. */
template <class T, int MODE> __global__ void __launch_bounds__(THREADS) resize(const ty_k_resizing a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, *size = a.back ? a.in : a.out;
  if (i >= a.n * a.c * size[0] * size[1]) return;
  const int64_t x = i % size[1], y = i / size[1] % size[0], plane = i / size[1] / size[0], n = plane / a.c, c = plane % a.c;
  const int64_t px = n * a.xs[0] + c * a.xs[1], py = n * a.ys[0] + c * a.ys[1];
  T sum = 0;
  if (a.back) {
    double wy, wx;
    const int64_t col = first_reader<MODE>(a, 1, x);
    for (int64_t r = first_reader<MODE>(a, 0, y); reads<MODE>(a, 0, r, y, &wy); r++)
      for (int64_t q = col; reads<MODE>(a, 1, q, x, &wx); q++)
        sum += (T)wy * ((T)wx * load<T>(a.y, a.dtype, py + r * a.ys[2] + q * a.ys[3]));
    store(a.x, a.dtype, px + y * a.xs[2] + x * a.xs[3], sum);
    return;
  }
  int64_t row[4], col[4];
  double wy[4], wx[4];
  ty_taps(a.in[0], a.out[0], MODE, a.corners, a.factor[0], y, row, wy);
  ty_taps(a.in[1], a.out[1], MODE, a.corners, a.factor[1], x, col, wx);
#pragma unroll
  for (int q = 0; q < ty_taps_of(MODE); q++) {            /* rows are blended first, as on the CPU */
    T blend = 0;
#pragma unroll
    for (int r = 0; r < ty_taps_of(MODE); r++) blend += (T)wy[r] * load<T>(a.x, a.dtype, px + row[r] * a.xs[2] + col[q] * a.xs[3]);
    sum += (T)wx[q] * blend;
  }
  store(a.y, a.dtype, py + y * a.ys[2] + x * a.ys[3], sum);
}

/* ---- launchers ---- */

template <int MODE> static cudaError_t resize_by(const ty_k_resizing &p, cudaStream_t s) {
  const ty_k_resizing a = p;
  const int64_t *size = a.back ? a.in : a.out;
  const unsigned blocks = blocks_for(a.n * a.c * size[0] * size[1], THREADS);
  auto by = a.dtype == TY_F64 ? resize<double, MODE> : resize<float, MODE>;
  return TY_LAUNCH(by, blocks, THREADS, s, a);
}
cudaError_t ty_k_resize(const ty_k_resizing *a, cudaStream_t s) {
  switch (a->mode) {
    case TY_NEAREST: return resize_by<TY_NEAREST>(*a, s);
    case TY_NEAREST_EXACT: return resize_by<TY_NEAREST_EXACT>(*a, s);
    case TY_BILINEAR: return resize_by<TY_BILINEAR>(*a, s);
    default: return resize_by<TY_BICUBIC>(*a, s);
  }
}
