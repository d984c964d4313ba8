/* Resizing of images: weighted sums of neighbours (core/taps.h).
 *
 * Idea: a thread computes one pixel of a few channels, whose taps are the same, and neighbours in memory belong to neighbouring threads.
 * The gradient of an input gathers, along each dim, from a run of outputs, since taps ascend; bisection finds the first one. Invariant:
 * sums have one order, so results repeat. */
#include "device.cuh"
#include "taps.h"

#define THREADS 128
/* Channels of one thread, a.groups apart; the taps of more would take too many registers. */
static __host__ __device__ constexpr int channels_of(int mode) { return mode == TY_BICUBIC ? 1 : 4; }

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

/* A thread's pixel (y, x) of the side that is written, its first channel's places on both sides, and its number of channels. */
struct Pixel { int64_t y, x, px, py; int many; };
static __device__ __forceinline__ bool pixel_of(const ty_k_resizing &a, const int64_t *size, Pixel *p) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.groups * size[0] * size[1]) return false;
  const int64_t pixel = a.last ? i / a.groups : i, rest = pixel / size[1] / size[0];
  const int64_t n = a.last ? rest : rest / a.groups, c = a.last ? i % a.groups : rest % a.groups;
  *p = {pixel / size[1] % size[0], pixel % size[1], n * a.xs[0] + c * a.xs[1], n * a.ys[0] + c * a.ys[1],
        (int)((a.c - c + a.groups - 1) / a.groups)};
  return true;
}

/* MODE: a.mode, as a constant, so that the taps, whose number is known, stay in registers. */
template <class T, int MODE> __global__ void __launch_bounds__(THREADS) resize(const ty_k_resizing a) {
  Pixel p;
  int64_t row[4], col[4];
  double wy[4], wx[4];
  if (!pixel_of(a, a.out, &p)) return;
  ty_taps(a.in[0], a.out[0], MODE, a.corners, a.factor[0], p.y, row, wy);
  ty_taps(a.in[1], a.out[1], MODE, a.corners, a.factor[1], p.x, col, wx);
#pragma unroll 1
  for (int k = 0; k < (channels_of(MODE) == 1 ? 1 : p.many); k++) {        /* a constant count takes fewer registers */
    const int64_t px = p.px + k * a.groups * a.xs[1];
    T sum = 0;
#pragma unroll
    for (int q = 0; q < ty_taps_of(MODE); q++) {          /* rows are blended first, as on the CPU */
      T blend = 0;
#pragma unroll
      for (int r = 0; r < ty_taps_of(MODE); r++) blend += (T)wy[r] * load<T>(a.x, a.dtype, px + row[r] * a.xs[2] + col[q] * a.xs[3]);
      sum += (T)wx[q] * blend;
    }
    store(a.y, a.dtype, p.py + k * a.groups * a.ys[1] + p.y * a.ys[2] + p.x * a.ys[3], sum);
  }
}

template <class T, int MODE> __global__ void __launch_bounds__(THREADS) resize_back(const ty_k_resizing a) {
  Pixel p;
  T sum[channels_of(MODE)] = {};
  double wy, wx;
  if (!pixel_of(a, a.in, &p)) return;
  const int64_t col = first_reader<MODE>(a, 1, p.x);
  for (int64_t r = first_reader<MODE>(a, 0, p.y); reads<MODE>(a, 0, r, p.y, &wy); r++)
    for (int64_t q = col; reads<MODE>(a, 1, q, p.x, &wx); q++)
#pragma unroll
      for (int k = 0; k < channels_of(MODE); k++)
        if (k < p.many)
          sum[k] += (T)wy * ((T)wx * load<T>(a.y, a.dtype, p.py + k * a.groups * a.ys[1] + r * a.ys[2] + q * a.ys[3]));
#pragma unroll
  for (int k = 0; k < channels_of(MODE); k++)
    if (k < p.many) store(a.x, a.dtype, p.px + k * a.groups * a.xs[1] + p.y * a.xs[2] + p.x * a.xs[3], sum[k]);
}

/* ---- launchers ---- */

template <class T, int MODE> static cudaError_t resize_by(const ty_k_resizing &p, cudaStream_t s) {
  ty_k_resizing a = p;
  const int64_t *size = a.back ? a.in : a.out;
  a.groups = (a.c + channels_of(MODE) - 1) / channels_of(MODE);
  a.last = (a.back ? a.xs : a.ys)[1] == 1 && a.c > 1;
  const unsigned blocks = blocks_for(a.n * a.groups * size[0] * size[1], THREADS);
  if (a.back) return TY_LAUNCH((resize_back<T, MODE>), blocks, THREADS, s, a);
  return TY_LAUNCH((resize<T, MODE>), blocks, THREADS, s, a);
}
template <int MODE> static cudaError_t resize_in(const ty_k_resizing &a, cudaStream_t s) {
  return a.dtype == TY_F64 ? resize_by<double, MODE>(a, s) : resize_by<float, MODE>(a, s);
}
cudaError_t ty_k_resize(const ty_k_resizing *a, cudaStream_t s) {
  switch (a->mode) {
    case TY_NEAREST: return resize_in<TY_NEAREST>(*a, s);
    case TY_NEAREST_EXACT: return resize_in<TY_NEAREST_EXACT>(*a, s);
    case TY_BILINEAR: return resize_in<TY_BILINEAR>(*a, s);
    default: return resize_in<TY_BICUBIC>(*a, s);
  }
}
