/* Windows of pooling: the pixels that a window reads, the windows that read a pixel, and the gradient that maxima give a pixel.
 *
 * Invariant: gradients from overlapping windows are added in the windows' row-major order. */
#ifndef TY_POOL_CUH
#define TY_POOL_CUH
#include "rows.cuh"

/* S: the type of indices, 32 bits wherever they suffice: a division of 64 bits costs as much as reading twenty elements. */
/* a window's pixels along a dim: lo .. hi - 1, every dilation-th; count: their share of the divisor */
template <class S> struct span { S lo, hi, count; };
template <class S> struct place { S n, c, y, x; };

/* The divisors by which places are found: the sizes of the pixels (or of the windows), and the windows' strides. */
template <class S> struct sizes { divider<S> c, h, w, stride[2]; };

template <class S> static inline sizes<S> sizes_of(const ty_k_pooling &a, bool pixels) {
  return {divider<S>((S)a.c), divider<S>((S)(pixels ? a.h : a.oh)), divider<S>((S)(pixels ? a.w : a.ow)),
    {divider<S>((S)a.stride[0]), divider<S>((S)a.stride[1])}};
}

/* The place of element i among n x c x h x w. last: channels are innermost, as in memory, so that neighbouring threads read neighbours. */
template <class S> static __device__ __forceinline__ place<S> place_of(S i, const sizes<S> &of, bool last) {
  place<S> p;
  if (last) p.c = of.c.take(i);
  p.x = of.w.take(i);
  p.y = of.h.take(i);
  if (!last) p.c = of.c.take(i);
  p.n = i;
  return p;
}

/* The place of position i among n x h x w, of channel c. */
template <class S> static __device__ __forceinline__ place<S> place_of(S i, S c, const sizes<S> &of) {
  place<S> p;
  p.c = c;
  p.x = of.w.take(i);
  p.y = of.h.take(i);
  p.n = i;
  return p;
}

static __device__ __forceinline__ int64_t offset_of(const int64_t stride[4], int64_t n, int64_t c, int64_t y, int64_t x) {
  return n * stride[0] + c * stride[1] + y * stride[2] + x * stride[3];
}

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
template <class S> static __device__ __forceinline__ void readers(const ty_k_pooling &a, const sizes<S> &of, int dim,
  S at, S *from, S *to) {
  const S size = (S)(dim ? a.w : a.h), out = (S)(dim ? a.ow : a.oh);
  if (a.adaptive) { *from = (S)((int64_t)at * out / size); *to = (S)(((int64_t)(at + 1) * out + size - 1) / size - 1); }
  else {
    const S padding = (S)a.padding[dim], reach = at + padding - (S)a.dilation[dim] * ((S)a.kernel[dim] - 1);
    *from = reach > 0 ? of.stride[dim].of(reach + (S)a.stride[dim] - 1) : 0;
    *to = of.stride[dim].of(at + padding);
  }
  if (*to > out - 1) *to = out - 1;
}

/* Whether some count or index doesn't fit 32 bits. */
static inline bool wide_pool(const ty_k_pooling &a) {
  int64_t most = a.n * a.c * (a.h * a.w > a.oh * a.ow ? a.h * a.w : a.oh * a.ow), reach = 0;
  for (int i = 0; i < 2; i++)
    reach += (a.dilation[i] + a.stride[i]) * (a.kernel[i] + (i ? a.ow : a.oh)) + 2 * a.padding[i] + (i ? a.w : a.h);
  return most > INT32_MAX || reach > INT32_MAX;
}

/* The gradient of pixel o: the sum of the windows' gradients, y, whose maximum it was; with a mask, of those where the mask is above 0. */
template <class T, class S> static __device__ __forceinline__ T from_maxima(const ty_k_pooling &a, const sizes<S> &of, const place<S> &o) {
  S y0, y1, x0, x1;
  readers(a, of, 0, o.y, &y0, &y1);
  readers(a, of, 1, o.x, &x0, &x1);
  T acc = 0;
  for (S y = y0; y <= y1; y++) for (S x = x0; x <= x1; x++) {
    if (a.places[offset_of(a.is, o.n, o.c, y, x)] != (int64_t)o.y * a.w + o.x + 1) continue;
    if (!a.mask || load<T>(a.mask, a.dtype, offset_of(a.ms, o.n, o.c, y, x)) > 0)
      acc += load<T>(a.y, a.dtype, offset_of(a.ys, o.n, o.c, y, x));
  }
  return acc;
}

/* Four channels, `apart` elements from each other; where they lie side by side they begin at a multiple of four. */
template <class T> static __device__ __forceinline__ void load_channels(T *v, const void *p, int dtype, int64_t at, int64_t apart) {
  if (apart == 1 && fours(p, dtype)) load_four(v, p, dtype, at);
  else for (int k = 0; k < 4; k++) v[k] = load<T>(p, dtype, at + k * apart);
}
template <class T> static __device__ __forceinline__ void store_channels(void *p, int dtype, int64_t at, int64_t apart, const T *v) {
  if (apart == 1 && fours(p, dtype)) store_four(p, dtype, at, v);
  else for (int k = 0; k < 4; k++) store(p, dtype, at + k * apart, v[k]);
}

/* Whether a thread takes four channels: they lie side by side in pixels and places. */
static inline bool channels_by_fours(const ty_k_pooling &a) {
  bool fit = a.c % 4 == 0 && a.dtype != TY_F64 && a.xs[1] == 1 && fours(a.x, a.dtype) &&
    (!a.places || (a.is[1] == 1 && (uintptr_t)a.places % 16 == 0));
  const struct { const void *p; const int64_t *stride; } all[5] = {{a.x, a.xs}, {a.places, a.is}, {a.y, a.ys},
    {a.copy, a.cs}, {a.mask, a.ms}};
  for (int i = 0; i < 5; i++)
    for (int d = 0; d < 4 && all[i].p && all[i].stride[1] == 1; d++) fit = fit && (d == 1 || all[i].stride[d] % 4 == 0);
  return fit;
}

/* from_maxima of four channels from o on. */
template <class T, class S> static __device__ __forceinline__ void from_maxima_of_four(T *g, const ty_k_pooling &a,
  const sizes<S> &of, const place<S> &o) {
  S y0, y1, x0, x1;
  readers(a, of, 0, o.y, &y0, &y1);
  readers(a, of, 1, o.x, &x0, &x1);
  const int64_t here = (int64_t)o.y * a.w + o.x + 1;
  for (int k = 0; k < 4; k++) g[k] = 0;
  for (S y = y0; y <= y1; y++) for (S x = x0; x <= x1; x++) {
    const int64_t *const at = a.places + offset_of(a.is, o.n, o.c, y, x);
    const pack<int64_t, 2> low = take_pack<int64_t, 2>(at), high = take_pack<int64_t, 2>(at + 2);
    T v[4], m[4];
    load_channels(v, a.y, a.dtype, offset_of(a.ys, o.n, o.c, y, x), a.ys[1]);
    if (a.mask) load_channels(m, a.mask, a.dtype, offset_of(a.ms, o.n, o.c, y, x), a.ms[1]);
#pragma unroll
    for (int k = 0; k < 4; k++)
      if ((k < 2 ? low.d[k] : high.d[k - 2]) == here && (!a.mask || m[k] > 0)) g[k] += v[k];
  }
}

/* Whether the windows tile the pixels: just one reads each pixel. */
static inline bool windows_tile(const ty_k_pooling &a) {
  bool tile = !a.adaptive;
  const int64_t size[2] = {a.h, a.w}, out[2] = {a.oh, a.ow};
  for (int d = 0; d < 2; d++)
    tile = tile && a.stride[d] == a.kernel[d] && a.padding[d] == 0 && a.dilation[d] == 1 && size[d] == out[d] * a.kernel[d];
  return tile;
}

/* For four channels of window o: where its maxima were (the image's pixels count from 1), and their gradients. */
template <class T, class S> static __device__ __forceinline__ void maxima_of_four(int64_t *where, T *g, const ty_k_pooling &a,
  const place<S> &o) {
  const int64_t *const at = a.places + offset_of(a.is, o.n, o.c, o.y, o.x);
  const pack<int64_t, 2> low = take_pack<int64_t, 2>(at), high = take_pack<int64_t, 2>(at + 2);
  T m[4];
  load_channels(g, a.y, a.dtype, offset_of(a.ys, o.n, o.c, o.y, o.x), a.ys[1]);
  if (a.mask) load_channels(m, a.mask, a.dtype, offset_of(a.ms, o.n, o.c, o.y, o.x), a.ms[1]);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    where[k] = k < 2 ? low.d[k] : high.d[k - 2];
    if (a.mask && !(m[k] > 0)) g[k] = 0;
  }
}
#endif
