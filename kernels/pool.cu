/* Pooling: a thread for each window forward, for each pixel backward; forward, of what batch_norm and relu make of the pixels.
 *
 * Idea: a pixel's gradient gathers from the windows that read it, so that nothing meets. Invariants: of equal maxima the first in
 * row-major order wins, of NaNs the last; the same bits each time. */
#include "pool.cuh"

#define THREADS 256

/* What a window reads: x as it is. */
struct plain { template <class T> __device__ __forceinline__ T of(T x, int64_t, int) const { return x; } };

/* Or what batch_norm makes of it, and then relu: rounded as if it had been stored. */
struct normalized {
  int relu, wdtype, bdtype;
  int64_t w_step, b_step;
  const void *mean, *rstd, *w, *b;
  template <class T> __device__ __forceinline__ T of(T x, int64_t c, int dtype) const {
    const T r = ((const T *)rstd)[c];
    T y = (x - ((const T *)mean)[c]) * (w ? load<T>(w, wdtype, c * w_step) * r : r);
    if (b) y += load<T>(b, bdtype, c * b_step);
    y = rounded(y, dtype);
    return relu && y < 0 ? 0 : y;
  }
};

template <class T, class S, class R> __global__ void __launch_bounds__(THREADS) forward(const ty_k_pooling a, const sizes<S> of, bool last, const R read) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.oh * a.ow) return;
  const place<S> o = place_of((S)i, of, last);
  const span<S> r = window(a, 0, o.y), s = window(a, 1, o.x);
  T acc = a.max ? (T)-INFINITY : 0;
  S from = r.lo < r.hi && s.lo < s.hi ? r.lo * (S)a.w + s.lo + 1 : 0;
  for (S p = r.lo; p < r.hi; p += (S)a.dilation[0]) for (S q = s.lo; q < s.hi; q += (S)a.dilation[1]) {
    const T v = read.of(load<T>(a.x, a.dtype, offset_of(a.xs, o.n, o.c, p, q)), o.c, a.dtype);
    if (!a.max) acc += v;
    else if (v > acc || v != v) { acc = v; from = p * (S)a.w + q + 1; }
  }
  if (!a.max) acc = acc * ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
  store(a.y, a.dtype, offset_of(a.ys, o.n, o.c, o.y, o.x), acc);
  if (a.copy) store(a.copy, a.dtype, offset_of(a.cs, o.n, o.c, o.y, o.x), acc);
  if (a.places) a.places[offset_of(a.is, o.n, o.c, o.y, o.x)] = from;
}

template <class T, class S, bool MAX> __global__ void __launch_bounds__(THREADS) backward(const ty_k_pooling a, const sizes<S> of, bool last) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.h * a.w) return;
  const place<S> o = place_of((S)i, of, last);
  T acc = 0;
  if (MAX) acc = from_maxima<T>(a, of, o);
  else {
    S y0, y1, x0, x1;
    readers(a, of, 0, o.y, &y0, &y1);
    readers(a, of, 1, o.x, &x0, &x1);
    for (S y = y0; y <= y1; y++) for (S x = x0; x <= x1; x++) {
      const span<S> r = window(a, 0, y), s = window(a, 1, x);
      if (o.y >= r.lo && o.y < r.hi && o.x >= s.lo && o.x < s.hi) acc += load<T>(a.y, a.dtype, offset_of(a.ys, o.n, o.c, y, x)) * ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
    }
  }
  store(a.x, a.dtype, offset_of(a.xs, o.n, o.c, o.y, o.x), acc);
}

/* ---- launchers ---- */

template <class T, class S, class R> static cudaError_t launch(const ty_k_pooling &p, const R &how, cudaStream_t s) {
  const ty_k_pooling a = p;
  const R read = how;
  const unsigned blocks = blocks_for(a.n * a.c * (a.back ? a.h * a.w : a.oh * a.ow), THREADS);
  const bool last = a.c > 1 && (a.back ? a.xs : a.ys)[1] == 1;
  const sizes<S> of = sizes_of<S>(a, a.back);
  auto down = forward<T, S, R>;
  auto up = a.max ? backward<T, S, true> : backward<T, S, false>;
  return a.back ? TY_LAUNCH(up, blocks, THREADS, s, a, of, last) : TY_LAUNCH(down, blocks, THREADS, s, a, of, last, read);
}

template <class R> static cudaError_t of_type(const ty_k_pooling &a, const R &read, cudaStream_t s) {
  if (a.dtype == TY_F64) return wide_pool(a) ? launch<double, int64_t>(a, read, s) : launch<double, int32_t>(a, read, s);
  return wide_pool(a) ? launch<float, int64_t>(a, read, s) : launch<float, int32_t>(a, read, s);
}

cudaError_t ty_k_pool(const ty_k_pooling *a, cudaStream_t s) { return of_type(*a, plain(), s); }

cudaError_t ty_k_normalized_pool(const ty_k_pooling *a, const ty_k_normalizing *n, cudaStream_t s) {
  return of_type(*a, normalized{n->relu, n->wdtype, n->bdtype, n->w_step, n->b_step, n->mean, n->rstd, n->w, n->b}, s);
}
