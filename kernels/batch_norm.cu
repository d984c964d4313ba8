/* Batch norm, forward and backward, of planes or channels-last.
 *
 * Idea: blocks sum parts of each channel, as moments that are joined (moments.cuh); a channel's last block makes coefficients of them,
 * which a second launch applies to all elements. The result's gradient may be that of a max pooling after it (pool.cuh), computed where it
 * is read. Element i of channel ch, in memory order: planes, i / pixels * sn + ch * sc + i % pixels; channels-last, i * channels + ch.
 * Invariant: the number of parts follows from shape and alignment alone, so the same bits come each time. */
#include "moments.cuh"
#include "pool.cuh"

#define THREADS 256
#define WARPS (THREADS / 32)
#define LANES 32                 /* columns side by side */
#define MADE 4                   /* elements per thread of the second launch */

/* Where the result's gradient comes from: memory (stored_gradient), or the gradient of a max_pool2d of the result (pooled_gradient).
   position: among images x pixels. */
template <class S> struct stored_gradient {
  static constexpr bool WINDOWS = false;
  static constexpr int AT_ONCE = 8;        /* elements whose gradients are read together; pooled ones singly: windows take registers */
  template <class T> __device__ __forceinline__ T at(const ty_k_batch_norm &a, int64_t i, S, S) const { return load<T>(a.g, a.dtype, i); }
  template <class T> __device__ __forceinline__ void four(T *g, const ty_k_batch_norm &a, S i) const { load_four(g, a.g, a.dtype, i); }
  template <class D, class T> __device__ __forceinline__ void four_of(T *g, const ty_k_batch_norm &a, S i) const {
    take_as<D, 4>(g, a.g, i);
  }
};
template <class S> struct pooled_gradient {
  static constexpr bool WINDOWS = true;
  static constexpr int AT_ONCE = 1;
  ty_k_pooling from;
  sizes<S> of, of_windows;
  bool together, tile;                     /* together: four channels are found at once; tile: besides, windows tile the pixels */
  template <class T> __device__ __forceinline__ T at(const ty_k_batch_norm &a, int64_t, S position, S ch) const {
    return rounded(from_maxima<T>(from, of, place_of(position, ch, of)), a.dtype);
  }
  template <class T> __device__ __forceinline__ void four(T *g, const ty_k_batch_norm &a, S i) const {
    place<S> o = place_of(i, of, a.sc == 1);
    if (together && a.sc == 1) {
      from_maxima_of_four(g, from, of, o);
      for (int k = 0; k < 4; k++) g[k] = rounded(g[k], a.dtype);
      return;
    }
#pragma unroll 1
    for (int k = 0; k < 4; k++) {          /* four channels, or four pixels of one channel of an image */
      const T v = rounded(from_maxima<T>(from, of, o), a.dtype);
#pragma unroll
      for (int j = 0; j < 4; j++) g[j] = j == k ? v : g[j];    /* indexed by k they would lie in memory */
      if (a.sc == 1) o.c++;
      else if (++o.x == (S)from.w) { o.x = 0; o.y++; }
    }
  }
  template <class D, class T> __device__ __forceinline__ void four_of(T *g, const ty_k_batch_norm &a, S i) const { four(g, a, i); }
};

/* Adds an element to two sums. Forward: of x - center and its square; backward: of g and g (x - mean). */
template <class T, class S, class G> static __device__ __forceinline__ void take(const ty_k_batch_norm &a,
  const G &gradient, int64_t at, S position, S ch, T center, T *s1, T *s2) {
  const T d = load<T>(a.x, a.dtype, at) - center, g = a.g ? gradient.template at<T>(a, at, position, ch) : d;
  *s1 += g;
  *s2 += g * d;
}

/* at: an element of the channel's that the thread sums */
template <class T> static __device__ __forceinline__ T center_of(const ty_k_batch_norm &a, int64_t ch, int64_t at) {
  return a.g ? ((const T *)a.mean)[ch] : load<T>(a.x, a.dtype, at);
}

/* How many elements of a channel each block sums, the last ones fewer. Groups of four neighbours stay together. */
static __device__ __forceinline__ int64_t each_part(int64_t count) {
  return ((count + gridDim.y - 1) / gridDim.y + MADE - 1) / MADE * MADE;
}
static __device__ __forceinline__ void range_of(int64_t count, int64_t p, int64_t *from, int64_t *to) {
  const int64_t each = each_part(count);
  *from = p * each < count ? p * each : count;
  *to = *from + each < count ? *from + each : count;
}

/* Where block p of channel ch leaves its part; its n follows from p. */
template <class T> static __device__ __forceinline__ T *part_at(const ty_k_batch_norm &a, int64_t p, int64_t ch) {
  return (T *)a.work + 2 * p * a.channels + ch;
}
/* Joins all blocks' parts of channel ch. w, turns, sum: as for join_parts. */
template <class T, int AHEAD, class SUM> static __device__ __forceinline__ part<T> kept_parts(const ty_k_batch_norm &a, int64_t ch, int w,
  int turns, const SUM &sum) {
  const int64_t count = a.images * a.pixels, each = each_part(count);
  return join_parts<T, AHEAD>((bool)a.g, (int)gridDim.y, w, turns, [&](int p) {
    const T *at = part_at<T>(a, p, ch);
    const int64_t left = count - p * each;
    return part<T>{(T)(left < 0 ? 0 : left < each ? left : each), at[0], at[a.channels]};
  }, sum);
}
template <class T> static __device__ __forceinline__ void keep_part(const ty_k_batch_norm &a, int64_t ch, const part<T> &v) {
  T *at = part_at<T>(a, blockIdx.y, ch);
  at[0] = v.a;
  at[a.channels] = v.b;
}

/* Turns the moments of all of channel ch into coefficients for apply: forward o = (x - c0) c1 + c3, backward o = c1 g + c2 (x - c0) +
   c3. */
template <class T> static __device__ __forceinline__ void coefficients(const ty_k_batch_norm &a, int parts, int64_t ch,
  const part<T> &all) {
  const int64_t count = a.images * a.pixels;
  T *c = (T *)a.work + 2 * (int64_t)parts * a.channels + ch, m, v;
  const T w = a.w ? load<T>(a.w, a.wdtype, ch * a.w_step) : 1;
  if (a.g) {
    const T r = ((const T *)a.rstd)[ch], gain = w * r;
    const bool through = a.training && count > 0;
    c[0] = ((const T *)a.mean)[ch];
    c[a.channels] = gain;
    c[2 * a.channels] = through ? -gain * r * r * all.b / (T)count : 0;
    c[3 * a.channels] = through ? -gain * all.a / (T)count : 0;
    store(a.dw, a.ddtype, ch, all.b * r);
    store(a.db, a.ddtype, ch, all.a);
    return;
  }
  if (a.training && a.tracked && ch == 0) ++*a.tracked;
  if (a.training && count) {
    m = all.a;
    v = all.b / (T)count;
  } else {
    m = a.run_mean && !a.training ? load<T>(a.run_mean, a.run_dtype, ch * a.run_step[0]) : 0;
    v = a.run_var && !a.training ? load<T>(a.run_var, a.run_dtype, ch * a.run_step[1]) : 0;
  }
  const T r = (T)(1 / sqrt((double)v + a.eps));
  c[0] = ((T *)a.mean)[ch] = m;
  ((T *)a.rstd)[ch] = r;
  c[a.channels] = w * r;
  c[3 * a.channels] = a.b ? load<T>(a.b, a.bdtype, ch * a.b_step) : (T)-0.0;         /* -0 changes nothing when added; 0 would change -0 */
  if (!a.training || !count) return;
  const double keep = 1 - a.momentum, whole = (double)count / (double)(count > 1 ? count - 1 : 1);
  if (a.run_mean)
    store(a.run_mean, a.run_dtype, ch * a.run_step[0],
      keep * load<double>(a.run_mean, a.run_dtype, ch * a.run_step[0]) + a.momentum * (double)m);
  if (a.run_var)
    store(a.run_var, a.run_dtype, ch * a.run_step[1],
      keep * load<double>(a.run_var, a.run_dtype, ch * a.run_step[1]) + a.momentum * (double)v * whole);
}

/* take for TOGETHER groups of four neighbours, which begin at place(i), place(i + step), ...; no branch separates their reads. */
template <bool BACK, int TOGETHER, class D, class S, class G, class P, class T> static __device__ __forceinline__ void take_fours(
  const ty_k_batch_norm &a, const G &gradient, const P &place, int64_t i, int step, const T *center, two<T> *mine) {
  T v[TOGETHER][4], g[TOGETHER][4];
  int64_t at[TOGETHER];
#pragma unroll
  for (int e = 0; e < TOGETHER; e++) take_as<D, 4>(v[e], a.x, at[e] = place(i + e * step));
#pragma unroll
  for (int e = 0; e < TOGETHER; e++)
    if constexpr (BACK) gradient.template four_of<D>(g[e], a, (S)at[e]);
#pragma unroll
  for (int e = 0; e < TOGETHER; e++)
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const T d = v[e][k] - center[k], u = BACK ? g[e][k] : d;
      mine[k].a += u;
      mine[k].b += u * d;
    }
}
template <bool BACK, class D, class S, class G, class P, class T> static __device__ __forceinline__ void take_all_fours(
  const ty_k_batch_norm &a, const G &gradient, const P &place, int64_t i, int64_t to, int step, const T *center, two<T> *mine) {
  constexpr int AT_ONCE = G::AT_ONCE;
  for (; i + (AT_ONCE - 1) * step < to; i += AT_ONCE * step) take_fours<BACK, AT_ONCE, D, S>(a, gradient, place, i, step, center, mine);
  for (; AT_ONCE > 1 && i < to; i += step) take_fours<BACK, 1, D, S>(a, gradient, place, i, step, center, mine);
}

/* Sums over a channel's planes, by N neighbours; a thread may have all the registers it wants. */
template <class D, class S, class G, int N> __global__ void __launch_bounds__(THREADS, 1) plane_sums(const ty_k_batch_norm a,
  const G gradient) {
  typedef typename stored<D>::type T;
  __shared__ part<T> s[WARPS];
  const int64_t ch = blockIdx.x;
  const bool back = a.g;
  int64_t from, to;
  two<T> mine[N];
  T center[N], n = 0;
  range_of(a.images * a.pixels, blockIdx.y, &from, &to);
  const int64_t mine_from = from + (int64_t)threadIdx.x * N;
  const auto place = [&](int64_t i) { return (int64_t)((S)i / (S)a.pixels) * a.sn + ch * a.sc + (S)i % (S)a.pixels; };
  center[0] = mine_from < to ? center_of<T>(a, ch, place(mine_from)) : 0;
#pragma unroll
  for (int k = 0; k < N; k++) {
    mine[k] = {0, 0};
    center[k] = center[0];
  }
  if (mine_from < to) n = (T)((to - mine_from + THREADS * N - 1) / (THREADS * N) * N);
  if constexpr (N == 4) {
    if (back) take_all_fours<true, D, S>(a, gradient, place, mine_from, to, THREADS * N, center, mine);
    else take_all_fours<false, D, S>(a, gradient, place, mine_from, to, THREADS * N, center, mine);
  } else
#pragma unroll G::AT_ONCE
    for (int64_t i = mine_from; i < to; i += THREADS) take(a, gradient, place(i), (S)i, (S)ch, center[0], &mine[0].a, &mine[0].b);
#pragma unroll
  for (int k = 1; k < N; k++) mine[0] = add<T>(mine[0], mine[k]);
  part<T> all = combine_block(part_of_sums(back, n, center[0], mine[0].a, mine[0].b), s, joining<T>{back});
  if (gridDim.y > 1) {
    if (threadIdx.x == 0) keep_part(a, ch, all);
    if (!last_block(a.tickets + blockIdx.x, gridDim.y)) return;
    all = kept_parts<T, 8>(a, ch, (int)threadIdx.x, THREADS, [&](two<T> v) { return combine_block(v, (two<T> *)s, add<T>); });
  }
  if (threadIdx.x == 0) coefficients(a, (int)gridDim.y, ch, all);
}

/* Backward sums of four channels side by side, where windows tile: only maxima have a gradient. The pooling has stored their places, which
 * nobody changes. i, to: windows. */
template <class D, class S, class T> static __device__ __forceinline__ void take_windows(const ty_k_batch_norm &a,
  const pooled_gradient<S> &gradient, int64_t ch, int64_t i, int64_t to, int step, const T *center, two<T> *mine) {
#pragma unroll 2
  for (; i < to; i += step) {
    const place<S> o = place_of((S)i, (S)ch, gradient.of_windows);
    int64_t where[4];
    T g[4];
    maxima_of_four(where, g, gradient.from, o);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const T v = stored<D>::in(((const D *)a.x)[(o.n * a.pixels + where[k] - 1) * a.channels + ch + k]), u = rounded(g[k], a.dtype);
      mine[k].a += u;
      mine[k].b += u * (v - center[k]);
    }
  }
}

/* Sums of channels-last channels: 1 << lanes threads side by side have N channels each, the block's others further pixels. Blocks are few:
 * a thread may have all the registers it wants. */
template <class D, class S, class G, int N> __global__ void __launch_bounds__(THREADS, 1) channel_sums(
  const ty_k_batch_norm a, const G gradient, int lanes) {
  typedef typename stored<D>::type T;
  __shared__ part<T> s[THREADS * N];
  const bool back = a.g;
  const int t = (int)threadIdx.x, x = t & ((1 << lanes) - 1), y = t >> lanes, tall = THREADS >> lanes, wide = N << lanes;
  const int64_t first = (int64_t)blockIdx.x * wide, ch = first + x * N;
  int64_t from, to;
  T center[N], n = 0;
  two<T> mine[N];
  int64_t places = a.images * a.pixels;
  bool by_windows = false;
  if constexpr (G::WINDOWS && N == 4) {
    by_windows = back && gradient.tile;
    if (by_windows) places = a.images * gradient.from.oh * gradient.from.ow;
  }
  range_of(places, blockIdx.y, &from, &to);
  const auto place = [&](int64_t i) { return i * a.channels + ch; };
#pragma unroll
  for (int k = 0; k < N; k++) {
    mine[k] = {0, 0};
    center[k] = ch + k < a.channels && from + y < to ? center_of<T>(a, ch + k, (from + y) * a.channels + ch + k) : 0;
  }
  if (ch < a.channels && from + y < to) {
    n = (T)((to - from - y + tall - 1) / tall);
    if constexpr (N == 4) {
      if constexpr (G::WINDOWS)
        if (by_windows) take_windows<D>(a, gradient, ch, from + y, to, tall, center, mine);
      if (!by_windows && back) take_all_fours<true, D, S>(a, gradient, place, from + y, to, tall, center, mine);
      if (!back) take_all_fours<false, D, S>(a, gradient, place, from + y, to, tall, center, mine);
    } else
#pragma unroll G::AT_ONCE
      for (int64_t i = from + y; i < to; i += tall)
        take(a, gradient, i * a.channels + ch, (S)i, (S)ch, center[0], &mine[0].a, &mine[0].b);
  }
#pragma unroll
  for (int k = 0; k < N; k++) s[y * wide + x * N + k] = part_of_sums(back, n, center[k], mine[k].a, mine[k].b);
  __syncthreads();
  const int c = t % wide, turns = THREADS / wide, w = t / wide;        /* wide is at most THREADS */
  part<T> all = {0, 0, 0};
  for (int k = w; k < tall; k += turns) all = join(back, all, s[k * wide + c]);
  all = combine_turns(all, s, c, w, wide, turns, joining<T>{back});
  if (gridDim.y > 1) {
    if (w == 0 && first + c < a.channels) keep_part(a, first + c, all);
    if (!last_block(a.tickets + blockIdx.x, gridDim.y)) return;
    two<T> *const sums = (two<T> *)s;      /* 32 reads at once: each takes as long as hundreds of instructions, and this block is alone */
    const int64_t mine = first + c < a.channels ? first + c : a.channels - 1;
    all = kept_parts<T, 32>(a, mine, w, turns, [&](two<T> v) {
      v = combine_turns(v, sums, c, w, wide, turns, add<T>);
      if (w == 0) sums[c] = v;             /* only turn 0's threads have read this element */
      __syncthreads();
      return sums[c];
    });
  }
  if (w == 0 && first + c < a.channels) coefficients(a, (int)gridDim.y, first + c, all);
}

/* Where there is nothing to sum: a thread for each channel. */
template <class T> __global__ void __launch_bounds__(THREADS) known_coefficients(const ty_k_batch_norm a, int parts) {
  const int64_t ch = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (ch < a.channels) coefficients(a, parts, ch, part<T>{0, 0, 0});
}

/* c: a channel's coefficients, which lie channels apart. */
template <class T> static __device__ __forceinline__ T applied(const ty_k_batch_norm &a, const T *c, T x, T g) {
  const T d = x - c[0];
  return a.g ? c[a.channels] * g + c[2 * a.channels] * d + c[3 * a.channels] : d * c[a.channels] + c[3 * a.channels];
}
/* applied to four channels side by side; c: the first one's coefficients, a multiple of four */
static __device__ __forceinline__ void apply_to_four(const ty_k_batch_norm &a, const float *c, float *x, const float *g) {
  float centers[4], gains[4], falls[4], shifts[4];
  take_as<float, 4>(centers, c, 0);
  take_as<float, 4>(gains, c, a.channels);
  take_as<float, 4>(shifts, c, 3 * a.channels);
  if (a.g) take_as<float, 4>(falls, c, 2 * a.channels);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const float d = x[k] - centers[k];
    x[k] = a.g ? gains[k] * g[k] + falls[k] * d + shifts[k] : d * gains[k] + shifts[k];
  }
}
template <class S> static __device__ __forceinline__ S channel_of(const ty_k_batch_norm &a, S i) {
  return a.sc == 1 ? i % (S)a.channels : i / (S)a.pixels % (S)a.channels;
}

/* S: the type of indices. */
template <class T, class S, class G> __global__ void __launch_bounds__(THREADS) apply(const ty_k_batch_norm a,
  const G gradient, int parts) {
  const int64_t n = a.images * a.channels * a.pixels, first = (int64_t)blockIdx.x * THREADS * MADE + threadIdx.x;
  const T *const table = (const T *)a.work + 2 * (int64_t)parts * a.channels;
#pragma unroll G::AT_ONCE
  for (int k = 0; k < MADE; k++) {
    const int64_t i = first + k * THREADS;
    if (i >= n) break;
    const S ch = channel_of(a, (S)i),
      position = !a.g ? 0 : a.sc == 1 ? (S)i / (S)a.channels : (S)i / (S)a.sn * (S)a.pixels + (S)i % (S)a.pixels;
    store(a.o, a.dtype, i, applied(a, table + ch, load<T>(a.x, a.dtype, i), a.g ? gradient.template at<T>(a, i, position, ch) : 0));
  }
}

/* apply for four neighbours, of four channels or of one. */
template <class T, class S, class G> __global__ void __launch_bounds__(THREADS) apply_fours(const ty_k_batch_norm a,
  const G gradient, int parts) {
  const int64_t n = a.images * a.channels * a.pixels, i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * MADE;
  if (i >= n) return;
  const T *const c = (const T *)a.work + 2 * (int64_t)parts * a.channels + channel_of(a, (S)i);
  T x[MADE], g[MADE] = {0};
  load_four(x, a.x, a.dtype, i);
  if (a.g) gradient.four(g, a, (S)i);
  if constexpr (sizeof(T) == 4)
    if (a.sc == 1) {
      apply_to_four(a, c, x, g);
      store_four(a.o, a.dtype, i, x);
      return;
    }
  for (int k = 0; k < MADE; k++) x[k] = applied(a, c, x[k], g[k]);
  store_four(a.o, a.dtype, i, x);
}

/* Backward where windows tile: a thread has four channels of one window's pixels. */
template <class S> __global__ void __launch_bounds__(THREADS) apply_windows(const ty_k_batch_norm a, const pooled_gradient<S> gradient,
  int parts) {
  const ty_k_pooling &w = gradient.from;
  const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * 4;
  if (i >= a.images * a.channels * w.oh * w.ow) return;
  const place<S> o = place_of((S)i, gradient.of_windows, true);
  const float *const c = (const float *)a.work + 2 * (int64_t)parts * a.channels + o.c;
  int64_t where[4];
  float up[4];
  maxima_of_four(where, up, w, o);
  const S y0 = o.y * (S)w.kernel[0], x0 = o.x * (S)w.kernel[1];
  for (S y = y0; y < y0 + (S)w.kernel[0]; y++) for (S x = x0; x < x0 + (S)w.kernel[1]; x++) {
    const int64_t pixel = (int64_t)y * w.w + x, at = (o.n * a.pixels + pixel) * a.channels + o.c;
    float v[4], g[4];
    load_four(v, a.x, a.dtype, at);
#pragma unroll
    for (int k = 0; k < 4; k++) g[k] = where[k] == pixel + 1 ? rounded(up[k], a.dtype) : 0;
    apply_to_four(a, c, v, g);
    store_four(a.o, a.dtype, at, v);
  }
}

/* ---- launchers ---- */

/* Neighbours that a thread of the sums reads at once: channels or pixels. */
static int of_lane(const ty_k_batch_norm &a) {
  return (a.sc == 1 ? a.channels : a.pixels) % 4 == 0 && a.dtype != TY_F64 && fours(a.x, a.dtype) && (!a.g || fours(a.g, a.dtype)) ? 4 : 1;
}
/* Channels-last: the logarithm of the lanes, to base 2. */
static int lanes_of(const ty_k_batch_norm &a) {
  int lanes = 0;
  while (1 << lanes < LANES && ((int64_t)of_lane(a) << lanes) < a.channels) lanes++;
  return lanes;
}
static int64_t groups_of(const ty_k_batch_norm &a) {
  const int64_t each = (int64_t)of_lane(a) << lanes_of(a);
  return a.sc == 1 ? (a.channels + each - 1) / each : a.channels;
}

int ty_k_batch_parts(const ty_k_batch_norm *a) {
  const int64_t groups = groups_of(*a), each = a->sc == 1 ? 2 * (THREADS >> lanes_of(*a)) : 1024,
    most = (a->images * a->pixels + each - 1) / each, want = (a->sc == 1 ? 256 : 1024) / (groups ? groups : 1);
  return (int)(want < 1 ? 1 : want < most ? want : most < 1 ? 1 : most);
}

template <class T, class S, class G> static cudaError_t batch(const ty_k_batch_norm &p, const G &how, cudaStream_t s) {
  const ty_k_batch_norm a = p;
  const G gradient = how;
  const int parts = ty_k_batch_parts(&a);
  const int64_t n = a.images * a.channels * a.pixels;
  const dim3 grid((unsigned)groups_of(a), (unsigned)parts);
  const int lanes = lanes_of(a);
  const bool four = of_lane(a) == 4;
  constexpr int MOST = sizeof(T) == 4 ? 4 : 1;
  auto channels = channel_sums<T, S, G, 1>;              /* single elements, of any dtype */
  auto planes = plane_sums<T, S, G, 1>;
  if (four) {
    channels = channel_sums<T, S, G, MOST>;
    planes = plane_sums<T, S, G, MOST>;
  }
  if constexpr (MOST == 4) {
    if (four && a.dtype == TY_F16) {
      channels = channel_sums<half16, S, G, 4>;
      planes = plane_sums<half16, S, G, 4>;
    }
    if (four && a.dtype == TY_BF16) {
      channels = channel_sums<brain16, S, G, 4>;
      planes = plane_sums<brain16, S, G, 4>;
    }
  }
  auto fill = apply<T, S, G>, fill_fours = apply_fours<T, S, G>;
  cudaError_t e = cudaSuccess;
  if (!n || !(a.training || a.g)) e = TY_LAUNCH(known_coefficients<T>, blocks_for(a.channels, THREADS), THREADS, s, a, parts);
  else if (a.sc != 1) e = TY_LAUNCH(planes, grid, THREADS, s, a, gradient);
  else e = TY_LAUNCH(channels, grid, THREADS, s, a, gradient, lanes);
  if (e != cudaSuccess || !n || !a.o) return e;
  const bool by_fours = four && fours(a.o, a.dtype);
  const unsigned blocks = blocks_for(n, THREADS * MADE);
  if constexpr (G::WINDOWS) {
    auto windows = apply_windows<S>;
    if (by_fours && a.g && a.sc == 1 && gradient.tile)
      return TY_LAUNCH(windows, blocks_for(n / (gradient.from.kernel[0] * gradient.from.kernel[1]), THREADS * MADE), THREADS, s,
        a, gradient, parts);
  }
  return by_fours ? TY_LAUNCH(fill_fours, blocks, THREADS, s, a, gradient, parts) : TY_LAUNCH(fill, blocks, THREADS, s, a, gradient, parts);
}

template <class S> static pooled_gradient<S> pooled(const ty_k_pooling &from) {
  const bool together = channels_by_fours(from);
  return {from, sizes_of<S>(from, true), sizes_of<S>(from, false), together, together && windows_tile(from)};
}
template <class T> static cudaError_t batch_of(const ty_k_batch_norm &a, const ty_k_pooling *from, cudaStream_t s) {
  const bool wide = a.images * a.channels * a.pixels > INT32_MAX || (from && wide_pool(*from));
  if (from)
    return wide
      ? batch<T, int64_t>(a, pooled<int64_t>(*from), s) : batch<T, int32_t>(a, pooled<int32_t>(*from), s);
  return wide ? batch<T, int64_t>(a, stored_gradient<int64_t>(), s) : batch<T, uint32_t>(a, stored_gradient<uint32_t>(), s);
}

cudaError_t ty_k_batch(const ty_k_batch_norm *a, const ty_k_pooling *from, cudaStream_t s) {
  return a->dtype == TY_F64 ? batch_of<double>(*a, from, s) : batch_of<float>(*a, from, s);
}
