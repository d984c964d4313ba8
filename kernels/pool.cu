/* Pooling: a thread for each window forward, for each pixel backward.
 *
 * Idea: a pixel's gradient gathers from the windows that read it, so that nothing meets. Invariants: of equal maxima the first in
 * row-major order wins, of NaNs the last; the same bits each time. */
#include "device.cuh"

#define THREADS 256

/* S: what indices are counted in, 32 bits wherever they suffice: a division of 64 costs as much as reading twenty elements. */
template <class S> struct span { S lo, hi, count; };      /* what a window reads along a dim, every dilation-th; count: the divisor's part */
template <class S> struct place { S n, c, y, x; };

/* The place of a launch's element i among n x c x h x w, channels innermost where they are so in memory: neighbouring threads read neighbours. */
template <class S> static __device__ __forceinline__ place<S> place_of(S i, S c, S h, S w, bool last) {
  place<S> p;
  if (last) { p.c = i % c; i /= c; }
  p.x = i % w; i /= w;
  p.y = i % h; i /= h;
  if (!last) { p.c = i % c; i /= c; }
  p.n = i;
  return p;
}

static __device__ __forceinline__ int64_t offset_of(const int64_t stride[4], int64_t n, int64_t c, int64_t y, int64_t x) { return n * stride[0] + c * stride[1] + y * stride[2] + x * stride[3]; }

template <class S> static __device__ __forceinline__ span<S> window(const ty_k_pooling &a, int dim, S i) {
  const S size = (S)(dim ? a.w : a.h), out = (S)(dim ? a.ow : a.oh);
  if (a.adaptive) {
    const S lo = (S)((int64_t)i * size / out), hi = (S)(((int64_t)(i + 1) * size + out - 1) / out);
    return {lo, hi, hi - lo};
  }
  const S d = (S)a.dilation[dim], from = i * (S)a.stride[dim] - (S)a.padding[dim], to = from + d * ((S)a.kernel[dim] - 1) + 1;
  const S lo = from < 0 ? from + (-from + d - 1) / d * d : from, hi = to < size ? to : size, end = size + (S)a.padding[dim];
  return {lo, hi, a.include_pad ? (to < end ? to : end) - from : hi - lo};
}

/* The windows of a dim that may read position at: from .. to. */
template <class S> static __device__ __forceinline__ void readers(const ty_k_pooling &a, int dim, S at, S *from, S *to) {
  const S size = (S)(dim ? a.w : a.h), out = (S)(dim ? a.ow : a.oh);
  if (a.adaptive) { *from = (S)((int64_t)at * out / size); *to = (S)(((int64_t)(at + 1) * out + size - 1) / size - 1); }
  else {
    const S padding = (S)a.padding[dim], reach = at + padding - (S)a.dilation[dim] * ((S)a.kernel[dim] - 1), s = (S)a.stride[dim];
    *from = reach > 0 ? (reach + s - 1) / s : 0;
    *to = (at + padding) / s;
  }
  if (*to > out - 1) *to = out - 1;
}

template <class T, class S> __global__ void __launch_bounds__(THREADS) forward(const ty_k_pooling a, bool last) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.oh * a.ow) return;
  const place<S> o = place_of((S)i, (S)a.c, (S)a.oh, (S)a.ow, last);
  const span<S> r = window(a, 0, o.y), s = window(a, 1, o.x);
  T acc = a.max ? (T)-INFINITY : 0;
  S from = r.lo < r.hi && s.lo < s.hi ? r.lo * (S)a.w + s.lo + 1 : 0;
  for (S p = r.lo; p < r.hi; p += (S)a.dilation[0]) for (S q = s.lo; q < s.hi; q += (S)a.dilation[1]) {
    const T v = load<T>(a.x, a.dtype, offset_of(a.xs, o.n, o.c, p, q));
    if (!a.max) acc += v;
    else if (v > acc || v != v) { acc = v; from = p * (S)a.w + q + 1; }
  }
  if (!a.max) acc = acc * ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
  store(a.y, a.dtype, offset_of(a.ys, o.n, o.c, o.y, o.x), acc);
  if (a.max) a.places[offset_of(a.is, o.n, o.c, o.y, o.x)] = from;
}

template <class T, class S> __global__ void __launch_bounds__(THREADS) backward(const ty_k_pooling a, bool last) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.h * a.w) return;
  const place<S> o = place_of((S)i, (S)a.c, (S)a.h, (S)a.w, last);
  S y0, y1, x0, x1;
  readers(a, 0, o.y, &y0, &y1);
  readers(a, 1, o.x, &x0, &x1);
  T acc = 0;
  for (S y = y0; y <= y1; y++) for (S x = x0; x <= x1; x++) {
    const int64_t at = offset_of(a.ys, o.n, o.c, y, x);
    if (a.max) {
      if (a.places[offset_of(a.is, o.n, o.c, y, x)] == (int64_t)o.y * a.w + o.x + 1) acc += load<T>(a.y, a.dtype, at);
      continue;
    }
    const span<S> r = window(a, 0, y), s = window(a, 1, x);
    if (o.y >= r.lo && o.y < r.hi && o.x >= s.lo && o.x < s.hi) acc += load<T>(a.y, a.dtype, at) * ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
  }
  store(a.x, a.dtype, offset_of(a.xs, o.n, o.c, o.y, o.x), acc);
}

/* ---- launchers ---- */

template <class T, class S> static cudaError_t launch(const ty_k_pooling &a, cudaStream_t s) {
  const unsigned blocks = blocks_for(a.n * a.c * (a.back ? a.h * a.w : a.oh * a.ow), THREADS);
  const bool last = a.c > 1 && (a.back ? a.xs : a.ys)[1] == 1;
  auto down = forward<T, S>, up = backward<T, S>;
  return a.back ? TY_LAUNCH(up, blocks, THREADS, s, a, last) : TY_LAUNCH(down, blocks, THREADS, s, a, last);
}

cudaError_t ty_k_pool(const ty_k_pooling *p, cudaStream_t s) {
  const ty_k_pooling a = *p;
  int64_t most = a.n * a.c * (a.back ? a.h * a.w : a.oh * a.ow), reach = 0;      /* of what is counted */
  for (int i = 0; i < 2; i++) reach += (a.dilation[i] + a.stride[i]) * (a.kernel[i] + (i ? a.ow : a.oh)) + 2 * a.padding[i] + (i ? a.w : a.h);
  if (a.h * a.w > most) most = a.h * a.w;
  const bool wide = most > INT32_MAX || reach > INT32_MAX;
  if (a.dtype == TY_F64) return wide ? launch<double, int64_t>(a, s) : launch<double, int32_t>(a, s);
  return wide ? launch<float, int64_t>(a, s) : launch<float, int32_t>(a, s);
}
