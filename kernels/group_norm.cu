/* Group norm, forward and backward: moments of each plane, joined to its group's, then one pass over all elements.
 *
 * Idea: a plane is the pixels of one channel of one image. A block sums it, or a part of it where planes are few; short planes have a warp
 * each, the shortest a thread; channels-last, they lie side by side. A thread takes N neighbours: four where they come out even, else one.
 * Planes are numbered n C + c, so that a group is `per` successive ones, which a warp joins. Invariant: parts and the order of joining
 * depend on the shape and on alignment alone. */
#include "moments.cuh"
#include "rows.cuh"
#include "scalar.cuh"

#define THREADS 256
#define LANES 32                 /* threads side by side, channels-last */
#define TALL (THREADS / LANES)
#define MANY 1024
#define ENOUGH 512               /* blocks */
#define LEAST 1024               /* pixels of a part */
#define SMALL_PLANE 32           /* pixels; shorter planes have a thread each */

template <class T> static __device__ __forceinline__ part<T> *part_of(const ty_k_group_norm &a, int64_t plane, int64_t k) {
  return (part<T> *)a.work + k * a.n * a.c + plane;
}
/* Backward, of a group: from an element's gradient a is subtracted, and b times the element's distance from the mean. */
template <class T> static __device__ __forceinline__ two<T> *slopes_of(const ty_k_group_norm &a, int64_t group) {
  return (two<T> *)part_of<T>(a, 0, a.parts) + group;
}
static __device__ __forceinline__ int64_t per_of(const ty_k_group_norm &a) { return a.c / a.groups; }

/* A thread's sums. Forward: of distances from a center near the values, and of their squares; backward: of gradients, and of their products
   with distances from the mean. */
template <class T> struct sums { T s1, s2; };
template <class T> static __device__ __forceinline__ T center_of(const ty_k_group_norm &a, int64_t plane, T first) {
  return a.g ? ((const T *)a.mean)[plane / per_of(a)] : first;
}

/* Adds N neighbours at each of base + (p + e step) apart, e < TOGETHER: no branch separates their reads. */
template <bool BACK, int TOGETHER, class D, int N, class T> static __device__ __forceinline__ void add_some(const ty_k_group_norm &a,
  int64_t base, int64_t apart, int64_t p, int step, const T *center, sums<T> *mine) {
  T x[TOGETHER][N], g[TOGETHER][N];
#pragma unroll
  for (int e = 0; e < TOGETHER; e++) take_as<D, N>(x[e], a.x, base + (p + e * step) * apart);
#pragma unroll
  for (int e = 0; e < TOGETHER; e++) if constexpr (BACK) take_as<D, N>(g[e], a.g, base + (p + e * step) * apart);
#pragma unroll
  for (int e = 0; e < TOGETHER; e++)
#pragma unroll
    for (int k = 0; k < N; k++) {
      const T d = x[e][k] - center[k], v = BACK ? g[e][k] : d;
      mine[k].s1 += v;
      mine[k].s2 += v * d;
    }
}
template <bool BACK, class D, int N, class T> static __device__ __forceinline__ void add_those(const ty_k_group_norm &a, int64_t base,
  int64_t apart, int64_t p, int64_t to, int step, const T *center, sums<T> *mine) {
  for (; p + 3 * step < to; p += 4 * step) add_some<BACK, 4, D, N>(a, base, apart, p, step, center, mine);
  for (; p < to; p += step) add_some<BACK, 1, D, N>(a, base, apart, p, step, center, mine);
}
/* The same for p = from, from + step, ... below to; returns how many there are. */
template <class D, int N, class T> static __device__ __forceinline__ T add_all(const ty_k_group_norm &a, int64_t base, int64_t apart,
  int64_t from, int64_t to, int step, const T *center, sums<T> *mine) {
  if (a.g) add_those<true, D, N>(a, base, apart, from, to, step, center, mine);
  else add_those<false, D, N>(a, base, apart, from, to, step, center, mine);
  return from < to ? (T)((to - from + step - 1) / step) : 0;
}

/* The part of a plane that is made of each step-th group of N pixels in from .. to - 1. */
template <class D, int N> static __device__ __forceinline__ part<typename stored<D>::type> of_plane(const ty_k_group_norm &a,
  int64_t plane, int64_t from, int64_t to, int step) {
  typedef typename stored<D>::type T;
  if (from >= to) return {0, 0, 0};
  const int64_t base = plane * a.pixels;
  T center[N];
  sums<T> s[N];
  center[0] = center_of<T>(a, plane, stored<D>::in(((const D *)a.x)[base + from * N]));
#pragma unroll
  for (int k = 0; k < N; k++) {
    center[k] = center[0];
    s[k] = {0, 0};
  }
  const T n = N * add_all<D, N>(a, base, N, from, to, step, center, s);
#pragma unroll
  for (int k = 1; k < N; k++) {
    s[0].s1 += s[k].s1;
    s[0].s2 += s[k].s2;
  }
  return part_of_sums((bool)a.g, n, center[0], s[0].s1, s[0].s2);
}

template <class D> __global__ void __launch_bounds__(THREADS) small_planes(const ty_k_group_norm a) {
  const int64_t plane = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (plane < a.n * a.c) *part_of<typename stored<D>::type>(a, plane, 0) = of_plane<D, 1>(a, plane, 0, a.pixels, 1);
}

/* A block has blockDim.y planes; of several, each has a warp. */
template <class D, int N> __global__ void __launch_bounds__(THREADS) planes(const ty_k_group_norm a) {
  typedef typename stored<D>::type T;
  __shared__ part<T> s[THREADS / 32];
  const int64_t plane = (int64_t)blockIdx.x * blockDim.y + threadIdx.y, units = plane < a.n * a.c ? a.pixels / N : 0,
    from = units * blockIdx.y / a.parts, to = units * (blockIdx.y + 1) / a.parts;
  const bool back = a.g;
  const part<T> all = combine_block(of_plane<D, N>(a, plane, from + threadIdx.x, to, (int)blockDim.x), s, joining<T>{back});
  if (threadIdx.x == 0 && units) *part_of<T>(a, plane, blockIdx.y) = all;
}

/* Channels-last. blockIdx.x: LANES N channels of an image, image by image. */
template <class D, int N> __global__ void __launch_bounds__(THREADS) lanes(const ty_k_group_norm a) {
  typedef typename stored<D>::type T;
  __shared__ part<T> s[THREADS * N];
  const int x = (int)threadIdx.x % LANES, y = (int)threadIdx.x / LANES;
  const int64_t strips = (a.c + LANES * N - 1) / (LANES * N), image = blockIdx.x / strips, strip = blockIdx.x % strips * LANES * N,
    c = strip + x * N, from = a.pixels * blockIdx.y / a.parts, to = a.pixels * (blockIdx.y + 1) / a.parts;
  const bool back = a.g;
  const int64_t base = image * a.pixels * a.c + c;
  T center[N], n = 0;
  sums<T> mine[N];
#pragma unroll
  for (int k = 0; k < N; k++) {
    const bool any = c < a.c && from + y < to;
    mine[k] = {0, 0};
    center[k] = any ? center_of<T>(a, image * a.c + c + k, stored<D>::in(((const D *)a.x)[base + (from + y) * a.c + k])) : 0;
  }
  if (c < a.c) n = add_all<D, N>(a, base, a.c, from + y, to, TALL, center, mine);
#pragma unroll
  for (int k = 0; k < N; k++) s[(y * LANES + x) * N + k] = part_of_sums(back, n, center[k], mine[k].s1, mine[k].s2);
  __syncthreads();
  for (int i = (int)threadIdx.x; i < LANES * N && strip + i < a.c; i += THREADS) {
    part<T> all = s[i];
    for (int t = 1; t < TALL; t++) all = join(back, all, s[t * LANES * N + i]);
    *part_of<T>(a, image * a.c + strip + i, blockIdx.y) = all;
  }
}

/* Backward: a plane's sums, of all parts */
template <class T> static __device__ __forceinline__ part<T> whole_plane(const ty_k_group_norm &a, int64_t plane) {
  return join_parts<T>(true, a.parts, 0, 1, [&](int k) { return *part_of<T>(a, plane, k); }, [](two<T> v) { return v; });
}
template <class T> static __device__ __forceinline__ T weight_of(const ty_k_group_norm &a, int64_t c) {
  return a.w ? load<T>(a.w, a.wdtype, c) : (T)1;
}

/* A block is a warp, and joins a group. */
template <class T> __global__ void __launch_bounds__(32) groups(const ty_k_group_norm a) {
  __shared__ two<T> s[1];
  const int64_t group = blockIdx.x, per = per_of(a);
  const bool back = a.g;
  const part<T> all = join_parts<T>(back, (int)(per * a.parts), (int)threadIdx.x, 32, [&](int i) {
    const int64_t plane = group * per + i / a.parts;
    part<T> one = *part_of<T>(a, plane, i % a.parts);
    if (back) {
      const T w = weight_of<T>(a, plane % a.c);
      one.a *= w;
      one.b *= w;
    }
    return one;
  }, [&](two<T> v) { return combine_block(v, s, add<T>); });
  if (threadIdx.x) return;
  if (back) {
    const T r = ((const T *)a.rstd)[group], count = (T)(per * a.pixels);
    *slopes_of<T>(a, group) = {r * all.a / count, r * r * r * all.b / count};
    return;
  }
  ((T *)a.mean)[group] = all.a;
  ((T *)a.rstd)[group] = (T)(1 / sqrt((double)(all.b / all.n) + a.eps));
}

/* The gradients of weight and bias: LANES channels side by side; a block's other threads take turns at images. */
template <class T> __global__ void __launch_bounds__(MANY) weights(const ty_k_group_norm a) {
  __shared__ two<T> s[MANY];
  const int x = (int)threadIdx.x % LANES, y = (int)threadIdx.x / LANES;
  const int64_t c = (int64_t)blockIdx.x * LANES + x, group = c / per_of(a);
  two<T> all = {0, 0};
  for (int64_t n = y; n < a.n && c < a.c; n += MANY / LANES) {
    const part<T> plane = whole_plane<T>(a, n * a.c + c);
    all.a += plane.b * ((const T *)a.rstd)[n * a.groups + group];
    all.b += plane.a;
  }
  all = combine_turns(all, s, x, y, LANES, MANY / LANES, add<T>);
  if (y || c >= a.c) return;
  store(a.dw, a.ddtype, c, all.a);
  store(a.db, a.ddtype, c, all.b);
}

/* What makes results, or gradients, of the elements of a channel of an image. */
template <class T> struct maker { T mean, gain, shift, slope; };
template <class T> static __device__ __forceinline__ maker<T> maker_of(const ty_k_group_norm &a, int64_t group, int64_t c) {
  const T gain = weight_of<T>(a, c) * ((const T *)a.rstd)[group];
  if (!a.g) return {((const T *)a.mean)[group], gain, a.b ? load<T>(a.b, a.bdtype, c) : (T)0, 0};
  const two<T> slope = *slopes_of<T>(a, group);
  return {((const T *)a.mean)[group], gain, slope.a, slope.b};
}
template <class T> static __device__ __forceinline__ T made(const maker<T> &m, bool back, T x, T g) {
  const T d = x - m.mean;
  return back ? g * m.gain - m.slope * d - m.shift : d * m.gain + m.shift;
}

/* A thread makes N neighbours: of one plane, or, channels-last, of N. S: the type of indices. */
template <class D, class S, bool LAST, int N> __global__ void __launch_bounds__(THREADS) apply(const ty_k_group_norm a,
  const divider<S> pixels, const divider<S> channels, const divider<S> per) {
  typedef typename stored<D>::type T;
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
  if (i >= a.n * a.c * a.pixels) return;
  const bool back = a.g;
  T x[N], g[N] = {0};
  take_as<D, N>(x, a.x, i);
  if (back) take_as<D, N>(g, a.g, i);
  S image = (S)i, c;
  if (LAST) {
    c = channels.take(image);
    image = pixels.of(image);
  } else {
    image = pixels.of(image);
    c = channels.take(image);
  }
  maker<T> m = maker_of<T>(a, image * a.groups + per.of(c), c);
#pragma unroll
  for (int k = 0; k < N; k++) {
    if (LAST && k) m = maker_of<T>(a, image * a.groups + per.of((S)(c + k)), c + k);
    x[k] = made(m, back, x[k], g[k]);
  }
  give_as<D, N>(a.o, i, x);
}

/* ---- launchers ---- */

int ty_k_group_norm_parts(const ty_k_group_norm *a) {
  const int64_t blocks = a->n * (a->last ? (a->c + LANES - 1) / LANES : a->c), most = a->pixels / (a->last ? LEAST / LANES : LEAST),
    want = blocks ? ENOUGH / blocks : 1;
  return (int)(want < 1 || most < 1 ? 1 : want < most ? want : most);
}

template <class D, class S, bool LAST, int N> static cudaError_t finish(const ty_k_group_norm &p, cudaStream_t s) {
  const ty_k_group_norm a = p;
  const divider<S> pixels((S)a.pixels), channels((S)a.c), per((S)(a.c / a.groups));
  return TY_LAUNCH((apply<D, S, LAST, N>), blocks_for(a.n * a.c * a.pixels, THREADS * N), THREADS, s, a, pixels, channels, per);
}

template <class D, int N> static cudaError_t launch(const ty_k_group_norm &p, cudaStream_t s) {
  typedef typename stored<D>::type T;
  const ty_k_group_norm a = p;
  const int64_t all = a.n * a.c, each = a.pixels / N / a.parts, strips = a.n * ((a.c + LANES * N - 1) / (LANES * N));
  const dim3 block = each >= THREADS * 4 ? dim3(THREADS) : each >= THREADS ? dim3(THREADS / 2) : dim3(32, THREADS / 32);
  const dim3 by_planes(blocks_for(all, block.y), (unsigned)a.parts), by_lanes(blocks_for(strips, 1), (unsigned)a.parts);
  auto side_by_side = lanes<D, N>;
  auto in_rows = planes<D, N>;
  cudaError_t e = a.last ? TY_LAUNCH(side_by_side, by_lanes, THREADS, s, a)
    : a.pixels < SMALL_PLANE ? TY_LAUNCH(small_planes<D>, blocks_for(all, THREADS), THREADS, s, a)
    : TY_LAUNCH(in_rows, by_planes, block, s, a);
  if (e == cudaSuccess) e = TY_LAUNCH(groups<T>, blocks_for(a.n * a.groups, 1), 32, s, a);
  if (e == cudaSuccess && a.g) e = TY_LAUNCH(weights<T>, blocks_for(a.c, LANES), MANY, s, a);
  if (e != cudaSuccess) return e;
  if (all * a.pixels > INT32_MAX) return a.last ? finish<D, int64_t, true, N>(a, s) : finish<D, int64_t, false, N>(a, s);
  return a.last ? finish<D, int32_t, true, N>(a, s) : finish<D, int32_t, false, N>(a, s);
}

cudaError_t ty_k_norm_groups(const ty_k_group_norm *p, cudaStream_t s) {
  const ty_k_group_norm a = *p;
  const bool by_fours = (a.last ? a.c : a.pixels) % 4 == 0 && fours(a.x, a.dtype) && fours(a.o, a.dtype) && (!a.g || fours(a.g, a.dtype));
#define BY(D, N) launch<D, sizeof(D) < 8 ? N : 1>(a, s)
  return by_fours ? WITH_DTYPE(a.dtype, BY, 4) : WITH_DTYPE(a.dtype, BY, 1);
}
