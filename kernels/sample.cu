/* grid_sample: images read at the points of grids, and both gradients (core/grid_points.h).
 *
 * Idea: a thread has a point, in all channels. Points add to a pixel that they share atomically; for sums in one order, which repeat, a
 * thread has a channel of an image instead, with all points (slow where channels are few). The loops over a point's four pixels have a
 * constant length, so that their weights stay in registers. Invariant: what lies outside an image is neither read nor written. */
#include "atomic.cuh"
#include "grid_points.h"

#define THREADS 128

template <class T> struct four { int32_t at[4]; T k[4], kx[4], ky[4]; };
static __device__ __forceinline__ void find(const ty_k_sampling &a, int64_t i, four<float> *f) {
  ty_four_f32(load<float>(a.grid, a.dtype, 2 * i), load<float>(a.grid, a.dtype, 2 * i + 1), a.h, a.w, a.nearest, a.padding, a.corners,
    f->at, f->k, f->kx, f->ky);
}
static __device__ __forceinline__ void find(const ty_k_sampling &a, int64_t i, four<double> *f) {
  ty_four_f64(load<double>(a.grid, a.dtype, 2 * i), load<double>(a.grid, a.dtype, 2 * i + 1), a.h, a.w, a.nearest, a.padding, a.corners,
    f->at, f->k, f->kx, f->ky);
}

/* x holds zeros before */
template <class T> __global__ void __launch_bounds__(THREADS) spread(const ty_k_sampling a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, plane = a.h * a.w;
  four<T> f;
  if (a.ordered) {
    if (i >= a.n * a.c) return;
    const int64_t image = i / a.c;
    for (int64_t p = 0; p < a.points; p++) {
      const T g = load<T>(a.y, a.dtype, i * a.points + p);
      find(a, image * a.points + p, &f);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int64_t at = i * plane + f.at[j];
        if (f.k[j] != 0) store<T>(a.x, a.dtype, at, load<T>(a.x, a.dtype, at) + f.k[j] * g);
      }
    }
    return;
  }
  if (i >= a.n * a.points) return;
  const int64_t image = i / a.points, p = i % a.points;
  find(a, i, &f);
  for (int64_t c = image * a.c; c < (image + 1) * a.c; c++) {
    const T g = load<T>(a.y, a.dtype, c * a.points + p);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (f.k[j] != 0) add_to<T>(a.x, a.dtype, c * plane + f.at[j], f.k[j] * g);
  }
}

template <class T> __global__ void __launch_bounds__(THREADS) sample(const ty_k_sampling a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, plane = a.h * a.w;
  four<T> f;
  if (i >= a.n * a.points) return;
  const int64_t image = i / a.points, p = i % a.points;
  T dx = 0, dy = 0;
  find(a, i, &f);
  for (int64_t c = image * a.c; c < (image + 1) * a.c; c++) {
    T sum = 0, sx = 0, sy = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {                /* pixels outside weigh 0; the nearest one is the first */
      const T v = f.k[j] != 0 || f.kx[j] != 0 || f.ky[j] != 0 ? load<T>(a.x, a.dtype, c * plane + f.at[j]) : 0;
      sum += f.k[j] != 0 ? a.nearest ? v : f.k[j] * v : 0;
      sx += f.kx[j] != 0 ? f.kx[j] * v : 0;
      sy += f.ky[j] != 0 ? f.ky[j] * v : 0;
    }
    if (a.kind == TY_SAMPLE_TAKE) store<T>(a.y, a.dtype, c * a.points + p, sum);
    else {
      const T g = load<T>(a.y, a.dtype, c * a.points + p);
      dx += g * sx;
      dy += g * sy;
    }
  }
  if (a.kind == TY_SAMPLE_TAKE) return;
  store<T>(a.slopes, a.dtype, 2 * i, dx);
  store<T>(a.slopes, a.dtype, 2 * i + 1, dy);
}

/* ---- launchers ---- */

cudaError_t ty_k_sample(const ty_k_sampling *p, cudaStream_t s) {
  const ty_k_sampling a = *p;
  const unsigned blocks = blocks_for(a.n * (a.kind == TY_SAMPLE_BACKWARD_X && a.ordered ? a.c : a.points), THREADS);
  if (a.kind == TY_SAMPLE_BACKWARD_X)
    return a.dtype == TY_F64 ? TY_LAUNCH(spread<double>, blocks, THREADS, s, a) : TY_LAUNCH(spread<float>, blocks, THREADS, s, a);
  return a.dtype == TY_F64 ? TY_LAUNCH(sample<double>, blocks, THREADS, s, a) : TY_LAUNCH(sample<float>, blocks, THREADS, s, a);
}
