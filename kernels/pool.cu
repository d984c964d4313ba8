/* Pooling: a thread for each window forward, for each pixel backward. Forward may apply batch_norm and relu to the pixels that it reads.
 *
 * Idea: a pixel's gradient is gathered from the windows that read it, so no two threads write one element. Invariants: of equal maxima the
 * first in row-major order wins, of NaNs the last; the same bits come each time. */
#include "pool.cuh"

#define THREADS 256

/* How a window reads x: as it is. */
struct plain {
  template <class T> struct channel { __device__ __forceinline__ T of(T x) const { return x; } };
  template <class T> __device__ __forceinline__ channel<T> at(int64_t, int) const { return {}; }
};

/* Or after batch_norm (unless mean is NULL) and then relu, rounded as if it had been stored. */
struct normalized {
  int relu, wdtype, bdtype;
  int64_t w_step, b_step;
  const void *mean, *rstd, *w, *b;
  template <class T> struct channel {
    T mean, gain, shift;
    int dtype;
    bool shifts, relu;
    __device__ __forceinline__ T of(T x) const {
      T y = (x - mean) * gain;
      if (shifts) y += shift;
      y = rounded(y, dtype);
      return relu && y < 0 ? 0 : y;
    }
  };
  template <class T> __device__ __forceinline__ channel<T> at(int64_t c, int dtype) const {
    if (!mean) return {0, 1, 0, dtype, false, relu != 0};
    const T r = ((const T *)rstd)[c];
    return {((const T *)mean)[c], w ? load<T>(w, wdtype, c * w_step) * r : r, b ? load<T>(b, bdtype, c * b_step) : 0,
      dtype, b != NULL, relu != 0};
  }
};

template <class T, class S, class R> __global__ void __launch_bounds__(THREADS) forward(const ty_k_pooling a,
  const sizes<S> of, bool last, const R read) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.oh * a.ow) return;
  const place<S> o = place_of((S)i, of, last);
  const span<S> r = window(a, 0, o.y), s = window(a, 1, o.x);
  T acc = a.max ? (T)-INFINITY : 0;
  S from = r.lo < r.hi && s.lo < s.hi ? r.lo * (S)a.w + s.lo + 1 : 0;
  const typename R::template channel<T> channel = read.template at<T>(o.c, a.dtype);
  for (S p = r.lo; p < r.hi; p += (S)a.dilation[0]) for (S q = s.lo; q < s.hi; q += (S)a.dilation[1]) {
    const T v = channel.of(load<T>(a.x, a.dtype, offset_of(a.xs, o.n, o.c, p, q)));
    if (!a.max) acc += v;
    else if (v > acc || v != v) { acc = v; from = p * (S)a.w + q + 1; }
  }
  if (!a.max) acc = acc * ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
  store(a.y, a.dtype, offset_of(a.ys, o.n, o.c, o.y, o.x), acc);
  if (a.copy) store(a.copy, a.dtype, offset_of(a.cs, o.n, o.c, o.y, o.x), acc);
  if (a.places) a.places[offset_of(a.is, o.n, o.c, o.y, o.x)] = from;
}

template <class T, class S, bool MAX> __global__ void __launch_bounds__(THREADS) backward(const ty_k_pooling a,
  const sizes<S> of, bool last) {
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
      if (o.y >= r.lo && o.y < r.hi && o.x >= s.lo && o.x < s.hi)
        acc += load<T>(a.y, a.dtype, offset_of(a.ys, o.n, o.c, y, x)) *
          ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
    }
  }
  store(a.x, a.dtype, offset_of(a.xs, o.n, o.c, o.y, o.x), acc);
}

/* forward for four channels side by side; T: float. TWO: windows of two by two, all whole, whose pixels are read at once. */
template <class T, class S, bool TWO, class R> __global__ void __launch_bounds__(THREADS) forward_fours(const ty_k_pooling a,
  const sizes<S> of, const R read) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (i >= a.n * a.c * a.oh * a.ow) return;
  const place<S> o = place_of((S)i, of, true);
  const span<S> r = window(a, 0, o.y), s = window(a, 1, o.x);
  const S first = r.lo < r.hi && s.lo < s.hi ? r.lo * (S)a.w + s.lo + 1 : 0;
  T acc[4];
  S from[4];
  typename R::template channel<T> channel[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    acc[k] = a.max ? (T)-INFINITY : 0;
    from[k] = first;
    channel[k] = read.template at<T>(o.c + k, a.dtype);
  }
  const auto see = [&](const T *pixel, S at) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const T v = channel[k].of(pixel[k]);
      if (!a.max) acc[k] += v;
      else if (v > acc[k] || v != v) { acc[k] = v; from[k] = at; }
    }
  };
  if (TWO) {
    T v[4][4];
    int64_t at[4];
#pragma unroll
    for (int m = 0; m < 4; m++) at[m] = offset_of(a.xs, o.n, o.c, r.lo + m / 2, s.lo + m % 2);
    load_fours(v, a.x, a.dtype, at);
#pragma unroll
    for (int m = 0; m < 4; m++) see(v[m], first + (S)(m / 2) * (S)a.w + m % 2);
  } else
    for (S p = r.lo; p < r.hi; p += (S)a.dilation[0]) for (S q = s.lo; q < s.hi; q += (S)a.dilation[1]) {
      T v[4];
      load_four(v, a.x, a.dtype, offset_of(a.xs, o.n, o.c, p, q));
      see(v, p * (S)a.w + q + 1);
    }
  if (!a.max) for (int k = 0; k < 4; k++) acc[k] = acc[k] * ((T)1 / (a.divisor ? (T)a.divisor : (T)((int64_t)r.count * s.count)));
  store_channels(a.y, a.dtype, offset_of(a.ys, o.n, o.c, o.y, o.x), a.ys[1], acc);
  if (a.copy) store_channels(a.copy, a.dtype, offset_of(a.cs, o.n, o.c, o.y, o.x), a.cs[1], acc);
  if (!a.places) return;
  int64_t *const at = a.places + offset_of(a.is, o.n, o.c, o.y, o.x);
  put_pack(at, pack<int64_t, 2>{{from[0], from[1]}});
  put_pack(at + 2, pack<int64_t, 2>{{from[2], from[3]}});
}

template <class T, class S> __global__ void __launch_bounds__(THREADS) backward_fours(const ty_k_pooling a, const sizes<S> of) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (i >= a.n * a.c * a.h * a.w) return;
  const place<S> o = place_of((S)i, of, true);
  T g[4];
  from_maxima_of_four(g, a, of, o);
  store_four(a.x, a.dtype, offset_of(a.xs, o.n, o.c, o.y, o.x), g);
}

/* backward where windows tile: a thread writes the pixels of one window, in four channels. */
template <class T, class S> __global__ void __launch_bounds__(THREADS) backward_windows(const ty_k_pooling a, const sizes<S> of) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (i >= a.n * a.c * a.oh * a.ow) return;
  const place<S> o = place_of((S)i, of, true);
  int64_t where[4];
  T g[4];
  maxima_of_four(where, g, a, o);
  const S y0 = o.y * (S)a.kernel[0], x0 = o.x * (S)a.kernel[1];
  for (S y = y0; y < y0 + (S)a.kernel[0]; y++) for (S x = x0; x < x0 + (S)a.kernel[1]; x++) {
    const int64_t here = (int64_t)y * a.w + x + 1;
    T v[4];
#pragma unroll
    for (int k = 0; k < 4; k++) v[k] = where[k] == here ? g[k] : 0;
    store_four(a.x, a.dtype, offset_of(a.xs, o.n, o.c, y, x), v);
  }
}

/* ---- launchers ---- */

/* Whether each window is two by two pixels, all within the image. */
static bool whole_twos(const ty_k_pooling &a) {
  bool whole = !a.adaptive;
  const int64_t size[2] = {a.h, a.w}, out[2] = {a.oh, a.ow};
  for (int d = 0; d < 2; d++)
    whole = whole && a.kernel[d] == 2 && a.dilation[d] == 1 && a.padding[d] == 0 && (out[d] - 1) * a.stride[d] + 2 <= size[d];
  return whole;
}

template <class T, class S, class R> static cudaError_t launch(const ty_k_pooling &p, const R &how, cudaStream_t s) {
  const ty_k_pooling a = p;
  const R read = how;
  const unsigned blocks = blocks_for(a.n * a.c * (a.back ? a.h * a.w : a.oh * a.ow), THREADS);
  const bool last = a.c > 1 && (a.back ? a.xs : a.ys)[1] == 1;
  const sizes<S> of = sizes_of<S>(a, a.back);
  if constexpr (sizeof(T) == 4)
    if (channels_by_fours(a) && (a.max || !a.back)) {
      auto down = whole_twos(a) ? forward_fours<T, S, true, R> : forward_fours<T, S, false, R>;
      auto up = backward_fours<T, S>, whole = backward_windows<T, S>;
      const unsigned windows = blocks_for(a.n * a.c * a.oh * a.ow, THREADS * 4);
      if (!a.back) return TY_LAUNCH(down, windows, THREADS, s, a, of, read);
      const sizes<S> of_windows = sizes_of<S>(a, false);
      return windows_tile(a) ? TY_LAUNCH(whole, windows, THREADS, s, a, of_windows)
        : TY_LAUNCH(up, blocks_for(a.n * a.c * a.h * a.w, THREADS * 4), THREADS, s, a, of);
    }
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
