/* Layer and root-mean-square normalisation of rows; a block has a row or, of short ones, several.
 *
 * Idea: forward, a short row's mean comes first, then the mean square of distances from it; a long row is summed as moments of parts, which
 * are joined (moments.cuh). Backward, each block goes over some of the rows: one pass gives a row's two sums and its part of the weights'
 * gradients, which the block sums; a last launch adds the blocks' sums. Invariant: the number of blocks follows from the rows' number and
 * length alone, so the same bits come each time. */
#include "moments.cuh"
#include "rows.cuh"
#include "scalar.cuh"

#define THREADS 256
#define PARTS 1024               /* of the weights' gradients, at most; long rows: from FEWEST up */
#define FEWEST 64
#define LANES 32                 /* columns side by side */
#define MANY 1024
#define TALL (MANY / LANES)

#define LONG_THREADS 512         /* for rows above TY_K_ROW, up to LONG_ROW, which a block has in registers too */
#define LONG_ROW (LONG_THREADS * ROW_EACH)
#define WARPS (LONG_THREADS / 32)

template <class T> static __device__ void sums_of_block(T *a, T *b, two<T> *s) {   /* the block's sums, for all threads */
  const two<T> sum = combine_block(two<T>{*a, *b}, s, add<T>);
  *a = sum.a;
  *b = sum.b;
}

template <class T> __global__ void __launch_bounds__(THREADS) forward(const ty_k_norm a) {
  __shared__ part<T> s[WARPS];
  const int64_t base = blockIdx.x * a.n;
  const T shift = a.rms || threadIdx.x >= a.n ? 0 : load<T>(a.x, a.dtype, base + threadIdx.x);
  T s1 = 0, s2 = 0, n = 0;
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    const T d = load<T>(a.x, a.dtype, base + j) - shift;
    s1 += d;
    s2 += d * d;
    n += 1;
  }
  const bool plain = a.rms;                /* parts are then plain sums */
  const part<T> all = combine_block(part_of_sums(plain, n, shift, s1, s2), s, joining<T>{plain});
  const T mean = plain ? 0 : all.a, r = (T)(1 / sqrt((double)(all.b / (T)a.n) + a.eps));
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    T y = (load<T>(a.x, a.dtype, base + j) - mean) * r;
    if (a.w) y *= load<T>(a.w, a.wdtype, j);
    if (a.b) y += load<T>(a.b, a.bdtype, j);
    store(a.o, a.dtype, base + j, y);
  }
  if (threadIdx.x) return;
  if (!a.rms) store(a.mean, sizeof(T) == 8 ? TY_F64 : TY_F32, blockIdx.x, mean);
  store(a.rstd, sizeof(T) == 8 ? TY_F64 : TY_F32, blockIdx.x, r);
}

template <class D, int G, int EACH, int MOST> __global__ void __launch_bounds__(MOST) forward_short(const ty_k_norm a) {
  typedef typename stored<D>::type T;
  __shared__ T s[WARPS];
  const int64_t row = row_of_thread(), n = row < a.rows ? a.n : 0, base = row * a.n;
  T v[EACH], w[EACH], part = 0, square = 0, mean = 0;
  load_row<G, D>(v, a.x, base, n, 1);
  if (a.w) load_shared_row<G>(w, a.w, a.wdtype, n);
  if (!a.rms) {
    EACH_OF_ROW(e, j, n) part += v[e];
    mean = sum_of_block(part, s) / (T)a.n;
  }
  EACH_OF_ROW(e, j, n) {
    v[e] -= mean;
    square += v[e] * v[e];
  }
  const T r = 1 / root(sum_of_block(square, s) / (T)a.n + (T)a.eps);
  EACH_OF_ROW(e, j, n) v[e] = a.w ? v[e] * r * w[e] : v[e] * r;
  if (a.b) {
    load_shared_row<G>(w, a.b, a.bdtype, n);
    EACH_OF_ROW(e, j, n) v[e] += w[e];
  }
  store_row<G, D>(a.o, base, n, 1, v);
  if (threadIdx.x || row >= a.rows) return;
  if (!a.rms) ((T *)a.mean)[row] = mean;
  ((T *)a.rstd)[row] = r;
}

/* Stores a row of x's gradient, v, with a.past added, which went past the norm; and the copy, of dtype C. */
template <class D, class C, int G, class T, int EACH> static __device__ __forceinline__ void store_sum(const ty_k_norm &a, int64_t base,
  T (&v)[EACH]) {
  if (a.past) {
    T past[EACH];
    load_row<G, D>(past, a.past, base, a.n, 1);
    EACH_OF_ROW(e, j, a.n) v[e] = past[e] + stored<D>::in(stored<D>::out(v[e]));
  }
  if (a.o) store_row<G, D>(a.o, base, a.n, 1, v);
  if (a.copy) store_row<G, C>(a.copy, base, a.n, 1, v);
}

/* v added up over the threads along y, for the first of them. s: one element a thread. */
template <int G, class T, int EACH> static __device__ __forceinline__ void sum_of_rows(T (&v)[EACH], T *s, int64_t n) {
  const int x = (int)threadIdx.x, wide = (int)blockDim.x, tall = (int)blockDim.y;
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (e / G * G * wide < (int)n)         /* true for all threads or none */
      v[e] = combine_turns(v[e], s, x, (int)threadIdx.y, wide, tall, [](T l, T r) { return l + r; });
}

/* Each block goes over some of the rows; its sums of the weights' gradients stay in registers meanwhile. E: g's dtype; BESIDE: with past or
   copy; TOGETHER: rows stand side by side. MOST: threads of a block. */
template <class D, class E, class C, bool BESIDE, bool TOGETHER, int G, int EACH, int MOST = TY_K_ROW_THREADS> __global__ void
__launch_bounds__(MOST, sizeof(D) < 8 && G == 4 && !BESIDE && MOST == TY_K_ROW_THREADS ? 2 : 1) backward_short(const ty_k_norm a,
  int parts) {
  typedef typename stored<D>::type T;
  __shared__ two<T> s[WARPS];
  __shared__ T turns[TOGETHER ? TY_K_ROW_THREADS : 1];
  T w[EACH], dw[EACH], db[EACH];
  if (a.w) load_shared_row<G>(w, a.w, a.wdtype, a.n);
#pragma unroll
  for (int e = 0; e < EACH; e++) dw[e] = db[e] = 0;
  const int64_t to = a.rows * (blockIdx.x + 1) / parts;
  for (int64_t first = a.rows * blockIdx.x / parts; first < to; first += TOGETHER ? blockDim.y : 1) {
    const bool has = !TOGETHER || first + threadIdx.y < to;  /* else the last row once more; its results aren't used */
    const int64_t row = !TOGETHER ? first : has ? first + threadIdx.y : to - 1;
    T h[EACH], g[EACH], s1 = 0, s2 = 0;
    load_row<G, D>(h, a.x, row * a.n, a.n, 1);
    load_row<G, E>(g, a.g, row * a.n, a.n, 1);
    const T mean = a.rms ? 0 : ((const T *)a.mean)[row], r = ((const T *)a.rstd)[row];
    EACH_OF_ROW(e, j, a.n) {
      h[e] = (h[e] - mean) * r;
      if (has) {
        dw[e] += g[e] * h[e];
        db[e] += g[e];
      }
      if (a.w) g[e] *= w[e];
      s1 += g[e];
      s2 += g[e] * h[e];
    }
    sums_of_block(&s1, &s2, s);
    const T ma = a.rms ? 0 : s1 / (T)a.n, mb = s2 / (T)a.n;
    EACH_OF_ROW(e, j, a.n) g[e] = r * (g[e] - ma - h[e] * mb);
    if (!has) continue;
    if constexpr (BESIDE) store_sum<D, C, G>(a, row * a.n, g);
    else store_row<G, D>(a.o, row * a.n, a.n, 1, g);
  }
  if constexpr (TOGETHER) {
    sum_of_rows<G>(dw, turns, a.n);
    sum_of_rows<G>(db, turns, a.n);
    if (threadIdx.y) return;
  }
  store_row<G, T>(a.partial, 2 * (int64_t)blockIdx.x * a.n, a.n, 1, dw);
  store_row<G, T>(a.partial, (2 * (int64_t)blockIdx.x + 1) * a.n, a.n, 1, db);
}

template <class T> __global__ void __launch_bounds__(THREADS) backward(const ty_k_norm a, int parts) {
  __shared__ two<T> s[WARPS];
  const int stat = sizeof(T) == 8 ? TY_F64 : TY_F32;
  T *const dw = (T *)a.partial + 2 * (int64_t)blockIdx.x * a.n, *const db = dw + a.n;
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) dw[j] = db[j] = 0;
  const int64_t to = a.rows * (blockIdx.x + 1) / parts;
  for (int64_t row = a.rows * blockIdx.x / parts; row < to; row++) {
    const int64_t base = row * a.n;
    const T mean = a.rms ? 0 : load<T>(a.mean, stat, row), r = load<T>(a.rstd, stat, row);
    T s1 = 0, s2 = 0;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      const T g = load<T>(a.g, a.gdtype, base + j), h = (load<T>(a.x, a.dtype, base + j) - mean) * r,
        gw = a.w ? g * load<T>(a.w, a.wdtype, j) : g;
      dw[j] += g * h;
      db[j] += g;
      s1 += gw;
      s2 += gw * h;
    }
    sums_of_block(&s1, &s2, s);
    const T ma = a.rms ? 0 : s1 / (T)a.n, mb = s2 / (T)a.n;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      const T g = load<T>(a.g, a.gdtype, base + j), h = (load<T>(a.x, a.dtype, base + j) - mean) * r,
        gw = a.w ? g * load<T>(a.w, a.wdtype, j) : g;
      T y = r * (gw - ma - h * mb);
      if (a.past) y = load<T>(a.past, a.dtype, base + j) + rounded(y, a.dtype);
      if (a.o) store(a.o, a.dtype, base + j, y);
      if (a.copy) store(a.copy, a.copy_dtype, base + j, y);
    }
  }
}

/* LANES columns side by side, each with TALL threads that add up some of the parts. */
template <class T> __global__ void __launch_bounds__(MANY) add_parts(const ty_k_norm a, int parts) {
  __shared__ two<T> s[MANY];
  const int x = (int)threadIdx.x % LANES, y = (int)threadIdx.x / LANES;
  const int64_t j = (int64_t)blockIdx.x * LANES + x;
  two<T> d = {0, 0};
  if (j < a.n)
#pragma unroll 8
    for (int p = y; p < parts; p += TALL) {
      d.a += ((const T *)a.partial)[2 * (int64_t)p * a.n + j];
      d.b += ((const T *)a.partial)[(2 * (int64_t)p + 1) * a.n + j];
    }
  d = combine_turns(d, s, x, y, LANES, TALL, add<T>);
  if (y || j >= a.n) return;
  store(a.dw, a.ddtype, j, d.a);
  if (a.db) store(a.db, a.ddtype, j, d.b);
}

/* ---- launchers ---- */

int ty_k_norm_parts(int64_t rows, int64_t n) {
  /* fewer for long rows: each part takes memory */
  const int64_t room = ((int64_t)1 << 21) / n, most = room > PARTS ? PARTS : room < FEWEST ? FEWEST : room,
    parts = rows / (4 * (n <= TY_K_ROW ? ty_k_rows_of_block(rows, n) : 1));
  return parts < 1 ? 1 : parts > most ? (int)most : (int)parts;
}

template <class D, bool TOGETHER, int G, int EACH> static auto backward_of(const ty_k_norm &a) {
  if constexpr (sizeof(D) == 4) {
    if (a.gdtype == TY_F16) return backward_short<D, half16, half16, true, TOGETHER, G, EACH>;
    if (a.gdtype == TY_BF16) return backward_short<D, brain16, brain16, true, TOGETHER, G, EACH>;
    if (a.copy && a.copy_dtype == TY_F16) return backward_short<D, D, half16, true, TOGETHER, G, EACH>;
    if (a.copy) return backward_short<D, D, brain16, true, TOGETHER, G, EACH>;
  }
  return a.past ? backward_short<D, D, D, true, TOGETHER, G, EACH> : backward_short<D, D, D, false, TOGETHER, G, EACH>;
}

template <class D, int G> static cudaError_t launch_short(const ty_k_norm &p, int parts, cudaStream_t s) {
  const ty_k_norm a = p;
  const dim3 threads = threads_of_rows(a.rows, a.n);
  const bool few = few_each(a.n);
  auto there = few ? forward_short<D, G, ROW_FEW, TY_K_ROW_THREADS> : forward_short<D, G, ROW_EACH, TY_K_ROW_THREADS>;
  auto back = threads.y == 1 ? (few ? backward_of<D, false, G, ROW_FEW>(a) : backward_of<D, false, G, ROW_EACH>(a))
    : few ? backward_of<D, true, G, ROW_FEW>(a) : backward_of<D, true, G, ROW_EACH>(a);
  return a.g ? TY_LAUNCH(back, (unsigned)parts, threads, s, a, parts) : TY_LAUNCH(there, blocks_of_rows(a.rows, a.n), threads, s, a);
}

template <class D> static cudaError_t launch_longer(const ty_k_norm &p, int parts, cudaStream_t s) {
  const ty_k_norm a = p;
  auto there = forward_short<D, 4, ROW_EACH, LONG_THREADS>;
  auto back = backward_short<D, D, D, false, false, 4, ROW_EACH, LONG_THREADS>;
  return a.g ? TY_LAUNCH(back, (unsigned)parts, LONG_THREADS, s, a, parts) : TY_LAUNCH(there, blocks_for(a.rows, 1), LONG_THREADS, s, a);
}

template <class T> static cudaError_t launch(const ty_k_norm &p, cudaStream_t s) {
  const ty_k_norm a = p;
  const int parts = ty_k_norm_parts(a.rows, a.n);
#define SHORT(D, G) launch_short<D, G>(a, parts, s)
  const bool alone = a.o && !a.past && !a.copy && a.gdtype == a.dtype,
    longer = a.n <= LONG_ROW && a.n % 4 == 0 && short_float(a.dtype) && (!a.g || alone);
  cudaError_t e = a.n <= TY_K_ROW ? WITH_ROWS(a.dtype, a.n, SHORT)
    : longer ? (a.dtype == TY_F32 ? launch_longer<float>(a, parts, s) : a.dtype == TY_F16 ? launch_longer<half16>(a, parts, s)
      : launch_longer<brain16>(a, parts, s))
    : a.g ? TY_LAUNCH(backward<T>, (unsigned)parts, THREADS, s, a, parts)
    : TY_LAUNCH(forward<T>, blocks_for(a.rows, 1), THREADS, s, a);
  return e == cudaSuccess && a.g ? TY_LAUNCH(add_parts<T>, blocks_for(a.n, LANES), MANY, s, a, parts) : e;
}

cudaError_t ty_k_layer_norm(const ty_k_norm *a, cudaStream_t s) {
  return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s);
}
