/* Group norm, forward and backward: what there is to say of each plane, joined to its group, then one pass over all elements.
 *
 * Idea: a plane is the pixels of one channel of one image. A block goes over it, or over a part of it where there are few; short planes
 * have a thread each; channels-last, LANES planes side by side. Planes are counted n C + c, so that a group is `per` neighbours, which
 * a warp joins. Invariant: parts and the order of joining depend on the shape alone. */
#include "moments.cuh"
#include "rows.cuh"
#include "scalar.cuh"

#define THREADS 256
#define LANES 32
#define TALL (THREADS / LANES)
#define ENOUGH 512               /* blocks */
#define LEAST 1024               /* pixels of a part */
#define BRIEF 32                 /* pixels of a plane that a thread goes over */
#define EACH 4                   /* elements that a thread of the last pass makes */

template <class T> static __device__ __forceinline__ part<T> *part_of(const ty_k_group_norm &a, int64_t plane, int64_t k) {
  return (part<T> *)a.work + k * a.n * a.c + plane;
}
/* Backward, of a group: what its elements' gradients lose, and what of their distance from the mean. */
template <class T> static __device__ __forceinline__ two<T> *slopes_of(const ty_k_group_norm &a, int64_t group) {
  return (two<T> *)part_of<T>(a, 0, a.parts) + group;
}
static __device__ __forceinline__ int64_t per_of(const ty_k_group_norm &a) { return a.c / a.groups; }

/* Of each step-th of a plane's pixels from .. to - 1. Forward by distances from the thread's own first one. */
template <class T> static __device__ __forceinline__ part<T> take(const ty_k_group_norm &a, int64_t plane, int64_t from, int64_t to,
  int step) {
  const int64_t first = a.last ? plane / a.c * a.pixels * a.c + plane % a.c : plane * a.pixels, apart = a.last ? a.c : 1;
  if (from >= to) return {0, 0, 0};
  const T center = a.g ? ((const T *)a.mean)[plane / per_of(a)] : load<T>(a.x, a.dtype, first + from * apart);
  T s1 = 0, s2 = 0, n = 0;
  for (int64_t p = from; p < to; p += step) {
    const int64_t i = first + p * apart;
    const T d = load<T>(a.x, a.dtype, i) - center, g = a.g ? load<T>(a.g, a.dtype, i) : d;
    s1 += g;
    s2 += g * d;
    n += 1;
  }
  return part_of_sums((bool)a.g, n, center, s1, s2);
}

template <class T> __global__ void __launch_bounds__(THREADS) brief_planes(const ty_k_group_norm a) {
  const int64_t plane = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (plane < a.n * a.c) *part_of<T>(a, plane, 0) = take<T>(a, plane, 0, a.pixels, 1);
}

template <class T> __global__ void __launch_bounds__(THREADS) planes(const ty_k_group_norm a) {
  __shared__ part<T> s[THREADS / 32];
  const int64_t plane = blockIdx.x, from = a.pixels * blockIdx.y / a.parts, to = a.pixels * (blockIdx.y + 1) / a.parts;
  const bool back = a.g;
  const part<T> all = combine_block(take<T>(a, plane, from + threadIdx.x, to, (int)blockDim.x), s,
    joining<T>{back});
  if (threadIdx.x == 0) *part_of<T>(a, plane, blockIdx.y) = all;
}

/* blockIdx.x: LANES channels of an image, those of the first image first */
template <class T> __global__ void __launch_bounds__(THREADS) lanes(const ty_k_group_norm a) {
  __shared__ part<T> s[THREADS];
  const int x = (int)threadIdx.x % LANES, y = (int)threadIdx.x / LANES;
  const int64_t strips = (a.c + LANES - 1) / LANES, c = blockIdx.x % strips * LANES + x, plane = blockIdx.x / strips * a.c + c,
    from = a.pixels * blockIdx.y / a.parts, to = a.pixels * (blockIdx.y + 1) / a.parts;
  const bool back = a.g;
  part<T> all = {0, 0, 0};
  if (c < a.c) all = take<T>(a, plane, from + y, to, TALL);
  all = combine_turns(all, s, x, y, LANES, TALL, joining<T>{back});
  if (y == 0 && c < a.c) *part_of<T>(a, plane, blockIdx.y) = all;
}

template <class T> static __device__ __forceinline__ part<T> whole_plane(const ty_k_group_norm &a, int64_t plane) {
  part<T> all = *part_of<T>(a, plane, 0);
  for (int k = 1; k < a.parts; k++) all = join((bool)a.g, all, *part_of<T>(a, plane, k));
  return all;
}
template <class T> static __device__ __forceinline__ T weight_of(const ty_k_group_norm &a, int64_t c) {
  return a.w ? load<T>(a.w, a.wdtype, c) : (T)1;
}

/* A block is a warp, and has a group. */
template <class T> __global__ void __launch_bounds__(32) groups(const ty_k_group_norm a) {
  __shared__ part<T> s[1];
  const int64_t group = blockIdx.x, per = per_of(a);
  const bool back = a.g;
  part<T> all = {0, 0, 0};
  for (int64_t plane = group * per + threadIdx.x; plane < (group + 1) * per; plane += 32) {
    part<T> one = whole_plane<T>(a, plane);
    if (back) {
      const T w = weight_of<T>(a, plane % a.c);
      one.a *= w;
      one.b *= w;
    }
    all = join(back, all, one);
  }
  all = combine_block(all, s, joining<T>{back});
  if (threadIdx.x) return;
  if (back) {
    const T r = ((const T *)a.rstd)[group], count = (T)(per * a.pixels);
    *slopes_of<T>(a, group) = {r * all.a / count, r * r * r * all.b / count};
    return;
  }
  ((T *)a.mean)[group] = all.a;
  ((T *)a.rstd)[group] = (T)(1 / sqrt((double)(all.b / all.n) + a.eps));
}

/* The gradients of weight and bias: LANES channels side by side, images by turns. */
template <class T> __global__ void __launch_bounds__(THREADS) weights(const ty_k_group_norm a) {
  __shared__ two<T> s[THREADS];
  const int x = (int)threadIdx.x % LANES, y = (int)threadIdx.x / LANES;
  const int64_t c = (int64_t)blockIdx.x * LANES + x;
  two<T> all = {0, 0};
  for (int64_t n = y; n < a.n && c < a.c; n += TALL) {
    const part<T> plane = whole_plane<T>(a, n * a.c + c);
    all.a += plane.b * ((const T *)a.rstd)[(n * a.c + c) / per_of(a)];
    all.b += plane.a;
  }
  all = combine_turns(all, s, x, y, LANES, TALL, [](two<T> l, two<T> r) { return two<T>{l.a + r.a, l.b + r.b}; });
  if (y || c >= a.c) return;
  store(a.dw, a.ddtype, c, all.a);
  store(a.db, a.ddtype, c, all.b);
}

/* The result of an element of a plane, or its gradient. */
template <class T> static __device__ __forceinline__ T applied(const ty_k_group_norm &a, int64_t plane, T x, T g) {
  const int64_t group = plane / per_of(a), c = plane % a.c;
  const T d = x - ((const T *)a.mean)[group], gain = weight_of<T>(a, c) * ((const T *)a.rstd)[group];
  if (!a.g) return a.b ? d * gain + load<T>(a.b, a.bdtype, c) : d * gain;
  const two<T> slope = *slopes_of<T>(a, group);
  return g * gain - slope.b * d - slope.a;
}
static __device__ __forceinline__ int64_t plane_of(const ty_k_group_norm &a, int64_t i) {
  return a.last ? i / (a.pixels * a.c) * a.c + i % a.c : i / a.pixels;
}

template <class T> __global__ void __launch_bounds__(THREADS) apply(const ty_k_group_norm a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n * a.c * a.pixels) return;
  store(a.o, a.dtype, i, applied(a, plane_of(a, i), load<T>(a.x, a.dtype, i), a.g ? load<T>(a.g, a.dtype, i) : (T)0));
}

/* Neighbours by fours: of one plane, or of four. */
template <class T> __global__ void __launch_bounds__(THREADS) apply_fours(const ty_k_group_norm a) {
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * EACH;
  if (i >= a.n * a.c * a.pixels) return;
  const int64_t plane = plane_of(a, i);
  T x[EACH], g[EACH] = {0};
  load_four(x, a.x, a.dtype, i);
  if (a.g) load_four(g, a.g, a.dtype, i);
#pragma unroll
  for (int k = 0; k < EACH; k++) x[k] = applied(a, a.last ? plane + k : plane, x[k], g[k]);
  store_four(a.o, a.dtype, i, x);
}

/* ---- launchers ---- */

int ty_k_group_norm_parts(const ty_k_group_norm *a) {
  const int64_t blocks = a->n * (a->last ? (a->c + LANES - 1) / LANES : a->c), most = a->pixels / (a->last ? LEAST / LANES : LEAST),
    want = blocks ? ENOUGH / blocks : 1;
  return (int)(want < 1 || most < 1 ? 1 : want < most ? want : most);
}

template <class T> static cudaError_t launch(const ty_k_group_norm &p, cudaStream_t s) {
  const ty_k_group_norm a = p;
  const int64_t all = a.n * a.c * a.pixels, each = a.pixels / a.parts, strips = a.n * ((a.c + LANES - 1) / LANES);
  const unsigned threads = each >= THREADS * 4 ? THREADS : each >= THREADS ? THREADS / 2 : 32;
  const dim3 by_planes(blocks_for(a.n * a.c, 1), (unsigned)a.parts), by_lanes(blocks_for(strips, 1), (unsigned)a.parts);
  cudaError_t e = a.last ? TY_LAUNCH(lanes<T>, by_lanes, THREADS, s, a)
    : a.pixels < BRIEF ? TY_LAUNCH(brief_planes<T>, blocks_for(a.n * a.c, THREADS), THREADS, s, a)
    : TY_LAUNCH(planes<T>, by_planes, threads, s, a);
  if (e == cudaSuccess) e = TY_LAUNCH(groups<T>, blocks_for(a.n * a.groups, 1), 32, s, a);
  if (e == cudaSuccess && a.g) e = TY_LAUNCH(weights<T>, blocks_for(a.c, LANES), THREADS, s, a);
  if (e != cudaSuccess) return e;
  const bool by_fours = (a.last ? a.c : a.pixels) % EACH == 0 && fours(a.x, a.dtype) && fours(a.o, a.dtype) &&
    (!a.g || fours(a.g, a.dtype));
  return by_fours ? TY_LAUNCH(apply_fours<T>, blocks_for(all, THREADS * EACH), THREADS, s, a)
    : TY_LAUNCH(apply<T>, blocks_for(all, THREADS), THREADS, s, a);
}

cudaError_t ty_k_norm_groups(const ty_k_group_norm *a, cudaStream_t s) {
  return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s);
}
