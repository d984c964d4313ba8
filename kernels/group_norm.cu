/* Group norm, forward and backward: sums of each channel of each image, joined to its group, then one pass over all elements.
 *
 * Idea: a plane, pixels of one channel of one image, is what blocks add up: by parts, where there are few planes; channels-last, LANES
 * channels side by side. Planes are counted n C + c, so that a group is `per` neighbours. A warp joins a group.
 * Invariant: parts and the order of joining depend on the shape alone. */
#include "rows.cuh"
#include "scalar.cuh"

#define THREADS 256
#define LANES 32
#define TALL (THREADS / LANES)
#define ENOUGH 512               /* blocks */
#define LEAST 1024               /* pixels of a part */
#define EACH 4                   /* elements that a thread of the last pass makes */

template <class T> static __device__ __forceinline__ two<T> add(two<T> x, two<T> y) { return {x.a + y.a, x.b + y.b}; }
template <class T> static __device__ __forceinline__ two<T> *sums_of(const ty_k_group_norm &a, int64_t plane, int64_t part) {
  return (two<T> *)a.work + part * a.n * a.c + plane;
}
/* What a group's planes have in common: forward unused; backward what its elements lose, and what of their distance from the mean. */
template <class T> static __device__ __forceinline__ two<T> *slopes_of(const ty_k_group_norm &a, int64_t group) {
  return sums_of<T>(a, 0, a.parts) + group;
}
static __device__ __forceinline__ int64_t per_of(const ty_k_group_norm &a) { return a.c / a.groups; }
/* the plane's pixel p */
static __device__ __forceinline__ int64_t element(const ty_k_group_norm &a, int64_t plane, int64_t p) {
  return a.last ? (plane / a.c * a.pixels + p) * a.c + plane % a.c : plane * a.pixels + p;
}

/* Forward the plane's first element, which the sums are of distances from; backward its group's mean. */
template <class T> static __device__ __forceinline__ T center_of(const ty_k_group_norm &a, int64_t plane) {
  return a.g ? ((const T *)a.mean)[plane / per_of(a)] : load<T>(a.x, a.dtype, element(a, plane, 0));
}
/* Forward x - center and its square; backward g and g (x - center). */
template <class T> static __device__ __forceinline__ two<T> term(const ty_k_group_norm &a, int64_t i, T center) {
  const T d = load<T>(a.x, a.dtype, i) - center, g = a.g ? load<T>(a.g, a.dtype, i) : d;
  return {g, g * d};
}

template <class T> __global__ void __launch_bounds__(THREADS) plane_sums(const ty_k_group_norm a) {
  __shared__ two<T> s[THREADS / 32];
  const int64_t plane = blockIdx.x, from = a.pixels * blockIdx.y / a.parts, to = a.pixels * (blockIdx.y + 1) / a.parts;
  const T center = center_of<T>(a, plane);
  two<T> all = {0, 0};
  for (int64_t p = from + threadIdx.x; p < to; p += blockDim.x) all = add(all, term(a, plane * a.pixels + p, center));
  all = combine_block(all, s, add<T>);
  if (threadIdx.x == 0) *sums_of<T>(a, plane, blockIdx.y) = all;
}

template <class T> __global__ void __launch_bounds__(THREADS) lane_sums(const ty_k_group_norm a) {
  __shared__ two<T> s[THREADS];
  const int x = (int)threadIdx.x % LANES, y = (int)threadIdx.x / LANES;
  const int64_t c = (int64_t)blockIdx.x * LANES + x, plane = blockIdx.z * a.c + c,
    from = a.pixels * blockIdx.y / a.parts, to = a.pixels * (blockIdx.y + 1) / a.parts;
  two<T> all = {0, 0};
  if (c < a.c) {
    const T center = center_of<T>(a, plane);
    for (int64_t p = from + y; p < to; p += TALL) all = add(all, term(a, element(a, plane, p), center));
  }
  all = combine_turns(all, s, x, y, LANES, TALL, add<T>);
  if (y == 0 && c < a.c) *sums_of<T>(a, plane, blockIdx.y) = all;
}

template <class T> static __device__ __forceinline__ two<T> whole_sums(const ty_k_group_norm &a, int64_t plane) {
  two<T> all = {0, 0};
  for (int part = 0; part < a.parts; part++) all = add(all, *sums_of<T>(a, plane, part));
  return all;
}
template <class T> static __device__ __forceinline__ T weight_of(const ty_k_group_norm &a, int64_t c) {
  return a.w ? load<T>(a.w, a.wdtype, c) : (T)1;
}

/* A block is a warp. */
template <class T> __global__ void __launch_bounds__(32) join(const ty_k_group_norm a) {
  __shared__ two<T> s[1];
  const int64_t group = blockIdx.x, per = per_of(a), first = group * per;
  const T pixels = (T)a.pixels, count = pixels * (T)per;
  two<T> all = {0, 0};
  if (a.g) {
    for (int64_t k = threadIdx.x; k < per; k += 32) {
      const T w = weight_of<T>(a, (first + k) % a.c);
      const two<T> sum = whole_sums<T>(a, first + k);
      all = add(all, two<T>{w * sum.a, w * sum.b});
    }
    all = combine_block(all, s, add<T>);
    const T r = ((const T *)a.rstd)[group];
    if (threadIdx.x == 0) *slopes_of<T>(a, group) = {r * all.a / count, r * r * r * all.b / count};
    return;
  }
  for (int64_t k = threadIdx.x; k < per; k += 32)
    all = add(all, two<T>{whole_sums<T>(a, first + k).a / pixels + center_of<T>(a, first + k), (T)0});
  const T mean = combine_block(all, s, add<T>).a / (T)per;
  all = {0, 0};
  for (int64_t k = threadIdx.x; k < per; k += 32) {
    const two<T> sum = whole_sums<T>(a, first + k);
    const T own = sum.a / pixels, apart = own + center_of<T>(a, first + k) - mean, left = sum.b - sum.a * own;
    all.a += (left < 0 ? (T)0 : left) + pixels * apart * apart;          /* a NaN stays */
  }
  const T var = combine_block(all, s, add<T>).a / count;
  if (threadIdx.x) return;
  ((T *)a.mean)[group] = mean;
  ((T *)a.rstd)[group] = (T)(1 / sqrt((double)var + a.eps));
}

/* The gradients of weight and bias: a thread for each channel. */
template <class T> __global__ void __launch_bounds__(THREADS) weights(const ty_k_group_norm a) {
  const int64_t c = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (c >= a.c) return;
  two<T> all = {0, 0};
  for (int64_t n = 0; n < a.n; n++) {
    const int64_t plane = n * a.c + c;
    const two<T> sum = whole_sums<T>(a, plane);
    all = add(all, two<T>{sum.a, sum.b * ((const T *)a.rstd)[plane / per_of(a)]});
  }
  store(a.dw, a.ddtype, c, all.b);
  store(a.db, a.ddtype, c, all.a);
}

/* Of an element of plane's. */
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
  const int64_t planes = a.n * a.c, all = planes * a.pixels;
  if (planes > INT32_MAX || a.n > 65535) return cudaErrorInvalidValue;
  cudaError_t e;
  if (a.last) {
    const dim3 grid((unsigned)((a.c + LANES - 1) / LANES), (unsigned)a.parts, (unsigned)a.n);
    e = TY_LAUNCH(lane_sums<T>, grid, THREADS, s, a);
  } else {
    const int64_t each = a.pixels / a.parts;
    const dim3 grid((unsigned)planes, (unsigned)a.parts);
    const unsigned threads = each >= THREADS * 4 ? THREADS : each >= THREADS ? THREADS / 2 : 32;
    e = TY_LAUNCH(plane_sums<T>, grid, threads, s, a);
  }
  if (e == cudaSuccess) e = TY_LAUNCH(join<T>, (unsigned)(a.n * a.groups), 32, s, a);
  if (e == cudaSuccess && a.g) e = TY_LAUNCH(weights<T>, blocks_for(a.c, THREADS), THREADS, s, a);
  if (e != cudaSuccess) return e;
  const bool by_fours = (a.last ? a.c : a.pixels) % EACH == 0 && fours(a.x, a.dtype) && fours(a.o, a.dtype) &&
    (!a.g || fours(a.g, a.dtype));
  return by_fours ? TY_LAUNCH(apply_fours<T>, blocks_for(all, THREADS * EACH), THREADS, s, a)
    : TY_LAUNCH(apply<T>, blocks_for(all, THREADS), THREADS, s, a);
}

cudaError_t ty_k_groups_norm(const ty_k_group_norm *a, cudaStream_t s) {
  return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s);
}
