/* Pooling: a thread for each window forward, for each pixel backward.
 *
 * Idea: a pixel's gradient gathers from the windows that read it, so that nothing meets. Invariants: of equal maxima the first in
 * row-major order wins, of NaNs the last; the same bits each time. */
#include "device.cuh"

#define THREADS 256

struct span { int64_t lo, hi, count; };    /* what a window reads along a dim, every dilation-th; count: the divisor's part */

static __device__ span window(const ty_k_pooling &a, int dim, int64_t i) {
  const int64_t size = dim ? a.w : a.h, out = dim ? a.ow : a.oh;
  if (a.adaptive) {
    const int64_t lo = i * size / out, hi = ((i + 1) * size + out - 1) / out;
    return {lo, hi, hi - lo};
  }
  const int64_t d = a.dilation[dim], from = i * a.stride[dim] - a.padding[dim], to = from + d * (a.kernel[dim] - 1) + 1;
  const int64_t lo = from < 0 ? from + (-from + d - 1) / d * d : from, hi = to < size ? to : size, end = size + a.padding[dim];
  return {lo, hi, a.include_pad ? (to < end ? to : end) - from : hi - lo};
}

/* The windows of a dim that may read position at: from .. to. */
static __device__ void readers(const ty_k_pooling &a, int dim, int64_t at, int64_t *from, int64_t *to) {
  const int64_t size = dim ? a.w : a.h, out = dim ? a.ow : a.oh;
  if (a.adaptive) { *from = at * out / size; *to = ((at + 1) * out + size - 1) / size - 1; }
  else {
    const int64_t reach = at + a.padding[dim] - a.dilation[dim] * (a.kernel[dim] - 1), s = a.stride[dim];
    *from = reach > 0 ? (reach + s - 1) / s : 0;
    *to = (at + a.padding[dim]) / s;
  }
  if (*to > out - 1) *to = out - 1;
}

template <class T> __global__ void __launch_bounds__(THREADS) forward(const ty_k_pooling a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.oh * a.ow) return;
  const int64_t x = i % a.ow, y = i / a.ow % a.oh, c = i / a.ow / a.oh % a.c, n = i / a.ow / a.oh / a.c;
  const span r = window(a, 0, y), s = window(a, 1, x);
  T acc = a.max ? (T)-INFINITY : 0;
  int64_t place = r.lo < r.hi && s.lo < s.hi ? r.lo * a.w + s.lo + 1 : 0;
  for (int64_t p = r.lo; p < r.hi; p += a.dilation[0]) for (int64_t q = s.lo; q < s.hi; q += a.dilation[1]) {
    const T v = load<T>(a.x, a.dtype, n * a.xs[0] + c * a.xs[1] + p * a.xs[2] + q * a.xs[3]);
    if (!a.max) acc += v;
    else if (v > acc || v != v) { acc = v; place = p * a.w + q + 1; }
  }
  if (!a.max) acc = acc * ((T)1 / (a.divisor ? (T)a.divisor : (T)(r.count * s.count)));
  store(a.y, a.dtype, n * a.ys[0] + c * a.ys[1] + y * a.ys[2] + x * a.ys[3], acc);
  if (a.max) a.places[n * a.is[0] + c * a.is[1] + y * a.is[2] + x * a.is[3]] = place;
}

template <class T> __global__ void __launch_bounds__(THREADS) backward(const ty_k_pooling a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.h * a.w) return;
  const int64_t q = i % a.w, p = i / a.w % a.h, c = i / a.w / a.h % a.c, n = i / a.w / a.h / a.c;
  int64_t y0, y1, x0, x1;
  readers(a, 0, p, &y0, &y1);
  readers(a, 1, q, &x0, &x1);
  T acc = 0;
  for (int64_t y = y0; y <= y1; y++) for (int64_t x = x0; x <= x1; x++) {
    const int64_t at = n * a.ys[0] + c * a.ys[1] + y * a.ys[2] + x * a.ys[3];
    if (a.max) {
      if (a.places[n * a.is[0] + c * a.is[1] + y * a.is[2] + x * a.is[3]] == p * a.w + q + 1) acc += load<T>(a.y, a.dtype, at);
      continue;
    }
    const span r = window(a, 0, y), s = window(a, 1, x);
    if (p >= r.lo && p < r.hi && q >= s.lo && q < s.hi) acc += load<T>(a.y, a.dtype, at) * ((T)1 / (a.divisor ? (T)a.divisor : (T)(r.count * s.count)));
  }
  store(a.x, a.dtype, n * a.xs[0] + c * a.xs[1] + p * a.xs[2] + q * a.xs[3], acc);
}

cudaError_t ty_k_pool(const ty_k_pooling *p, cudaStream_t s) {
  const ty_k_pooling a = *p;
  const unsigned blocks = blocks_for(a.n * a.c * (a.back ? a.h * a.w : a.oh * a.ow), THREADS);
  if (a.dtype == TY_F64) return a.back ? TY_LAUNCH(backward<double>, blocks, THREADS, s, a) : TY_LAUNCH(forward<double>, blocks, THREADS, s, a);
  return a.back ? TY_LAUNCH(backward<float>, blocks, THREADS, s, a) : TY_LAUNCH(forward<float>, blocks, THREADS, s, a);
}
