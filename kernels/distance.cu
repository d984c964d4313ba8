/* cdist: norms of the differences of rows, and the first operand's gradient.
 *
 * Idea: a thread computes one result, or one element of the gradient, and sums in one order. */
#include "device.cuh"
#include "distances.h"

#define THREADS 256
#define CALL(name, ...) (sizeof(T) == 8 ? (T)name##_f64(__VA_ARGS__) : (T)name##_f32(__VA_ARGS__))

template <class T> __global__ void __launch_bounds__(THREADS) norms(const ty_k_distance a, int kind) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.batch * a.n * a.m) return;
  const T *const x = (const T *)a.a + i / a.m * a.d, *const y = (const T *)a.b + (i / (a.n * a.m) * a.m + i % a.m) * a.d;
  T acc = 0;
  for (int64_t e = 0; e < a.d; e++) acc = CALL(ty_norm_take, kind, acc, x[e] - y[e], (T)a.p);
  ((T *)a.o)[i] = CALL(ty_norm_end, kind, acc, (T)a.p);
}

template <class T> __global__ void __launch_bounds__(THREADS) slopes(const ty_k_distance a, int kind) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = i / a.d, e = i % a.d;
  if (i >= a.batch * a.n * a.d) return;
  const T *const g = (const T *)a.g + row * a.m, *const norm = (const T *)a.norms + row * a.m,
    *const y = (const T *)a.b + row / a.n * a.m * a.d + e, x = ((const T *)a.a)[i];
  T sum = 0;
  for (int64_t j = 0; j < a.m; j++) {
    const T share = CALL(ty_norm_share, kind, g[j], norm[j], (T)a.p);
    sum += CALL(ty_norm_slope, kind, share, x - y[j * a.d], norm[j], (T)a.p);
  }
  ((T *)a.o)[i] = sum;
}

/* ---- launchers ---- */

template <class T> static cudaError_t launch(const ty_k_distance &p, cudaStream_t s) {
  const ty_k_distance a = p;
  const int kind = ty_norm_kind(a.p);
  return a.g ? TY_LAUNCH(slopes<T>, blocks_for(a.batch * a.n * a.d, THREADS), THREADS, s, a, kind)
    : TY_LAUNCH(norms<T>, blocks_for(a.batch * a.n * a.m, THREADS), THREADS, s, a, kind);
}
cudaError_t ty_k_distances(const ty_k_distance *a, cudaStream_t s) {
  return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s);
}
