/* Softmax and cross-entropy, forward and backward: a block reads a long row twice (to smooth labels, three times), a short one once, into
 * registers (rows.cuh).
 *
 * Idea: of a long row, one pass finds the maximum and the sum of exponentials together (a thread corrects its sum when its maximum grows),
 * the next writes; each thread has 16 bytes on their way at a time. Of lines side by side in memory, neighbouring threads take neighbours,
 * one a line or several in turns. Invariant: rows don't meet; a row's bits depend on its length and on whether all of its operands begin at
 * multiples of 16 bytes. Accumulates in the type computed in. */
#include "exponentials.cuh"

#define THREADS 256
#define SIDE_LINES 4096          /* lines side by side that make blocks enough for softmax_columns */

/* Calls fn(v, j, apart, count) along a long line: v[m][k] holds element j + k * apart of line m of the M lines x, for k below count, N at
 * most. Elements of a line lie step apart from base on. Reads are of 16 bytes where all lines begin at a multiple of them; else of single
 * elements, N of a thread at once, so that as many bytes are on their way. */
template <class D, int M, class F> static __device__ __forceinline__ void each_of_lines(const void *const (&x)[M], int64_t base, int64_t n,
  int64_t step, F fn) {
  constexpr int N = 16 / sizeof(D);
  typename stored<D>::type v[M][N];
  const D *line[M];
  bool packs = step == 1 && n % N == 0;
#pragma unroll
  for (int m = 0; m < M; m++) {
    line[m] = (const D *)x[m] + base;
    packs = packs && (uintptr_t)line[m] % 16 == 0;
  }
  if (packs) {
    for (int64_t j = (int64_t)threadIdx.x * N; j < n; j += (int64_t)blockDim.x * N) {
#pragma unroll
      for (int m = 0; m < M; m++) take_as<D, N>(v[m], line[m], j);
      fn(v, j, 1, N);
    }
    return;
  }
  const int apart = (int)blockDim.x;
  int64_t j = threadIdx.x;
  for (; j + (N - 1) * apart < n; j += N * apart) {
    D d[M][N];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int k = 0; k < N; k++) d[m][k] = line[m][(j + k * apart) * step];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int k = 0; k < N; k++) v[m][k] = stored<D>::in(d[m][k]);
    fn(v, j, apart, N);
  }
  for (; j < n; j += apart) {
#pragma unroll
    for (int m = 0; m < M; m++) v[m][0] = stored<D>::in(line[m][j * step]);
    fn(v, j, apart, 1);
  }
}
/* Writes v, as each_of_lines gave it, to the line of o. */
template <class D> static __device__ __forceinline__ void put_of_line(void *o, int64_t base, int64_t step, int64_t j, int apart, int count,
  const typename stored<D>::type *v) {
  constexpr int N = 16 / sizeof(D);
  D *const line = (D *)o + base;
  if (apart == 1 && (uintptr_t)line % 16 == 0) return give_as<D, N>(line, j, v);      /* then count is N */
#pragma unroll
  for (int k = 0; k < N; k++) if (k < count) line[(j + k * apart) * step] = stored<D>::out(v[k]);
}

/* A line's maximum, 0 where all are -inf, and its sum of exp(x - maximum), for all threads. */
template <class D, class T> static __device__ void largest_and_sum(const void *x, int64_t base, int64_t n, int64_t step,
  T *top, T *sum, two<T> *s) {
  two<T> seen = {(T)-INFINITY, 0};
  each_of_lines<D>({x}, base, n, step, [&](const auto &v, int64_t, int, int count) { see<16 / (int)sizeof(D)>(seen, v[0], count); });
  seen = combine_block(seen, s, [](two<T> p, two<T> q) { return seen_by_both(p, q); });
  *top = seen.a == (T)-INFINITY ? 0 : seen.a;
  *sum = seen.b;
}

static __device__ __forceinline__ int64_t base_of(const ty_k_lines &a, int64_t line) {
  return line / a.inner * a.n * a.inner + line % a.inner;
}

template <class D> __global__ void __launch_bounds__(THREADS) softmax(const ty_k_lines a) {
  typedef typename stored<D>::type T;
  __shared__ two<T> s[THREADS / 32];
  const int64_t base = base_of(a, blockIdx.x);
  T top, sum;
  largest_and_sum<D>(a.x, base, a.n, a.inner, &top, &sum, s);
  const T scale = 1 / sum, shift = log_of(sum);
  each_of_lines<D>({a.x}, base, a.n, a.inner, [&](auto &v, int64_t j, int apart, int count) {
    T *const x = v[0];
#pragma unroll
    for (int k = 0; k < 16 / (int)sizeof(D); k++) if (k < count) x[k] = a.log ? x[k] - top - shift : exp_down(x[k] - top) * scale;
    put_of_line<D>(a.o, base, a.inner, j, apart, count, x);
  });
}

template <class D> __global__ void __launch_bounds__(THREADS) softmax_backward(const ty_k_lines a) {
  typedef typename stored<D>::type T;
  __shared__ T s[THREADS / 32];
  const int64_t base = base_of(a, blockIdx.x);
  T part = 0;
  constexpr int N = 16 / sizeof(D);
  if (a.log)
    each_of_lines<D>({a.g}, base, a.n, a.inner, [&](const auto &v, int64_t, int, int count) {
#pragma unroll
      for (int k = 0; k < N; k++) if (k < count) part += v[0][k];
    });
  else
    each_of_lines<D>({a.g, a.x}, base, a.n, a.inner, [&](const auto &v, int64_t, int, int count) {
#pragma unroll
      for (int k = 0; k < N; k++) if (k < count) part += v[0][k] * v[1][k];
    });
  const T sum = sum_of_block(part, s);
  each_of_lines<D>({a.g, a.x}, base, a.n, a.inner, [&](auto &v, int64_t j, int apart, int count) {
    T *const g = v[0], *const y = v[1];
#pragma unroll
    for (int k = 0; k < N; k++) if (k < count) g[k] = a.log ? g[k] - exp_down(y[k]) * sum : y[k] * (g[k] - sum);
    put_of_line<D>(a.o, base, a.inner, j, apart, count, g);
  });
}

/* v joined over the threads along y, which take turns at a column, for all of them. s: one element a thread. */
template <class T, class F> static __device__ __forceinline__ T of_column(T v, T *s, F join) {
  const int x = (int)threadIdx.x, y = (int)threadIdx.y;
  if (blockDim.y == 1) return v;
  v = combine_turns(v, s, x, y, (int)blockDim.x, (int)blockDim.y, join);
  if (y == 0) s[x] = v;
  __syncthreads();
  return s[x];
}

/* Lines side by side in memory, 32 at least: neighbouring threads read neighbours. */
template <class D> __global__ void __launch_bounds__(THREADS) softmax_columns(const ty_k_lines a) {
  typedef typename stored<D>::type T;
  __shared__ two<T> s[THREADS];
  const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = line < a.lines ? a.n : 0, base = base_of(a, line);
  two<T> seen = {(T)-INFINITY, 0};
#pragma unroll 4
  for (int64_t j = threadIdx.y; j < n; j += blockDim.y) {
    const T v = stored<D>::in(((const D *)a.x)[base + j * a.inner]);
    see<1>(seen, &v, 1);
  }
  seen = of_column(seen, s, seen_by_both<T>);
  const T top = seen.a == (T)-INFINITY ? 0 : seen.a, scale = 1 / seen.b, shift = log_of(seen.b);
#pragma unroll 4
  for (int64_t j = threadIdx.y; j < n; j += blockDim.y) {
    const T v = stored<D>::in(((const D *)a.x)[base + j * a.inner]) - top;
    ((D *)a.o)[base + j * a.inner] = stored<D>::out(a.log ? v - shift : exp_down(v) * scale);
  }
}

template <class D> __global__ void __launch_bounds__(THREADS) softmax_backward_columns(const ty_k_lines a) {
  typedef typename stored<D>::type T;
  __shared__ T s[THREADS];
  const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = line < a.lines ? a.n : 0, base = base_of(a, line);
  T sum = 0;
#pragma unroll 4
  for (int64_t j = threadIdx.y; j < n; j += blockDim.y) {
    const T g = stored<D>::in(((const D *)a.g)[base + j * a.inner]);
    sum += a.log ? g : g * stored<D>::in(((const D *)a.x)[base + j * a.inner]);
  }
  sum = of_column(sum, s, [](T l, T r) { return l + r; });
#pragma unroll 4
  for (int64_t j = threadIdx.y; j < n; j += blockDim.y) {
    const T g = stored<D>::in(((const D *)a.g)[base + j * a.inner]), y = stored<D>::in(((const D *)a.x)[base + j * a.inner]);
    ((D *)a.o)[base + j * a.inner] = stored<D>::out(a.log ? g - exp_down(y) * sum : y * (g - sum));
  }
}

template <class D, int G, int EACH> __global__ void __launch_bounds__(TY_K_ROW_THREADS) softmax_short(const ty_k_lines a) {
  typedef typename stored<D>::type T;
  __shared__ T s[TY_K_ROW_THREADS / 32];
  const int64_t line = row_of_thread(), n = line < a.lines ? a.n : 0, base = base_of(a, line);
  T v[EACH], top = -INFINITY, part = 0;
  load_row<G, D>(v, a.x, base, n, a.inner);
  EACH_OF_ROW(e, j, n) top = larger(top, v[e]);
  top = combine_block(top, s, [](T x, T y) { return larger(x, y); });
  EACH_OF_ROW(e, j, n) {
    v[e] -= top;
    const T x = exp_down(v[e]);
    if (!a.log) v[e] = x;
    part += x;
  }
  const T sum = sum_of_block(part, s), scale = 1 / sum, shift = log_of(sum);
  EACH_OF_ROW(e, j, n) v[e] = a.log ? v[e] - shift : v[e] * scale;
  store_row<G, D>(a.o, base, n, a.inner, v);
}

template <class D, int G, int EACH> __global__ void __launch_bounds__(TY_K_ROW_THREADS) softmax_backward_short(const ty_k_lines a) {
  typedef typename stored<D>::type T;
  __shared__ T s[TY_K_ROW_THREADS / 32];
  const int64_t line = row_of_thread(), n = line < a.lines ? a.n : 0, base = base_of(a, line);
  T g[EACH], y[EACH], part = 0;
  load_row<G, D>(g, a.g, base, n, a.inner);
  load_row<G, D>(y, a.x, base, n, a.inner);
  EACH_OF_ROW(e, j, n) part += a.log ? g[e] : g[e] * y[e];
  const T sum = sum_of_block(part, s);
  EACH_OF_ROW(e, j, n) g[e] = a.log ? g[e] - exp_down(y[e]) * sum : y[e] * (g[e] - sum);
  store_row<G, D>(a.o, base, n, a.inner, g);
}

/* ---- cross-entropy of rows with 1-based labels ---- */

static __device__ bool bad_label(const ty_k_entropy &a, int64_t t) {
  if (t == a.ignore || (t >= 1 && t <= a.n)) return false;
  if (threadIdx.x == 0) report(a.fault, a.site, TY_FAULT_LABEL, t, a.n);
  return true;
}

#define STAT (sizeof(T) == 8 ? TY_F64 : TY_F32)      /* losses of rows, their gradients and log-sum-exps: not rounded to 16 bits */

template <class T> static __device__ __forceinline__ T count_of(const ty_k_entropy &a, int64_t t) {
  return t == a.ignore ? 0 : a.weight ? load<T>(a.weight, a.dtype, t - 1) : 1;
}

/* The row's log-sum-exp and its loss, which thread 0 stores. */
template <class D, class T> static __device__ double loss_of_row(const ty_k_entropy &a, int64_t row, int64_t t, two<T> *s) {
  const int64_t base = row * a.n;
  const T eps = (T)a.smoothing;
  T top, sum, part = 0;
  largest_and_sum<D>(a.x, base, a.n, 1, &top, &sum, s);
  const T more = log_of(sum);              /* for (top - x) + more: nothing of more is lost where scores are large */
  const double lse = (double)top + (double)more;
  if (eps > 0) {
    each_of_lines<D>({a.x}, base, a.n, 1, [&](auto &lines, int64_t j, int apart, int count) {
#pragma unroll
      for (int k = 0; k < 16 / (int)sizeof(D); k++)
        if (k < count) part += (a.weight ? load<T>(a.weight, a.dtype, j + k * apart) : 1) * (top - lines[0][k] + more);
    });
    part = sum_of_block(part, (T *)s);
  }
  if (threadIdx.x) return lse;
  store(a.losses, STAT, row,
    t == a.ignore ? 0 : (1 - eps) * count_of<T>(a, t) * (top - load<T>(a.x, a.dtype, base + t - 1) + more) + eps / (T)a.n * part);
  if (a.lse) store(a.lse, TY_F64, row, lse);
  return lse;
}

/* A log-sum-exp as T, for exponentials of differences from it, and the factor that makes up for its rounding: that of large scores is as
 * large as their differences are. */
template <class T> struct rounded_lse {
  T near, left;
  explicit __device__ __forceinline__ rounded_lse(double lse) {
    const double over = (double)(near = (T)lse) - lse;
    left = over == 0 || over != over ? 1 : exp_of((T)over);
  }
};

/* up: the gradient of the row's loss */
template <class D, class T> static __device__ void gradient_of_row(const ty_k_entropy &a, int64_t row, int64_t t, double exact, T up,
  T *s) {
  const rounded_lse<T> lse(exact);
  const int64_t base = row * a.n;
  const T eps = (T)a.smoothing;
  const bool weighted = a.weight && eps > 0;
  T part = 0;
  if (weighted) {
    for (int64_t j = threadIdx.x; j < a.n; j += blockDim.x) part += load<T>(a.weight, a.dtype, j);
    part = sum_of_block(part, s);
  } else part = (T)a.n;
  const T w = count_of<T>(a, t), mass = ((1 - eps) * w + eps / (T)a.n * part) * lse.left, smooth = eps / (T)a.n;
  each_of_lines<D>({a.x}, base, a.n, 1, [&](auto &lines, int64_t j, int apart, int count) {
    T *const v = lines[0];
#pragma unroll
    for (int k = 0; k < 16 / (int)sizeof(D); k++) {
      if (k >= count) continue;
      const int64_t i = j + k * apart;
      const T spread = weighted ? smooth * load<T>(a.weight, a.dtype, i) : smooth;
      const T slope = up * (mass * exp_down(v[k] - lse.near) - spread - (i == t - 1 ? (1 - eps) * w : 0));
      v[k] = t == a.ignore ? 0 : slope;
    }
    put_of_line<D>(a.o, base, 1, j, apart, count, v);
  });
}

/* What the rows count for together; each block that needs it adds it up, in the same order. */
template <class T> static __device__ T total_of(const ty_k_entropy &a, T *s) {
  T part = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) {
    const int64_t t = a.labels[i * a.label_step];
    if (t == a.ignore || (t >= 1 && t <= a.n)) part += count_of<T>(a, t);
  }
  return sum_of_block(part, s);
}

/* For many rows: what each counts for; and the mean, from the sums of the losses and of these. */
template <class T> __global__ void __launch_bounds__(THREADS) count(const ty_k_entropy a, T *counts) {
  const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x, t = row < a.rows ? a.labels[row * a.label_step] : a.ignore;
  if (row < a.rows) counts[row] = t == a.ignore || (t >= 1 && t <= a.n) ? count_of<T>(a, t) : 0;
}
template <class T> __global__ void take_mean(T *mean, const T *total) { *mean /= *total; }

template <class D> __global__ void __launch_bounds__(TY_K_ROW_THREADS) cross_entropy(const ty_k_entropy a) {
  typedef typename stored<D>::type T;
  __shared__ two<T> both[TY_K_ROW_THREADS / 32];
  T *const s = (T *)both;
  const int64_t row = blockIdx.x, t = a.rows ? a.labels[row * a.label_step] : a.ignore;
  if (a.rows && !bad_label(a, t)) {
    const double lse = a.losses ? loss_of_row<D>(a, row, t, both) : load<double>(a.lse, TY_F64, row);
    if (a.o) {
      T up = load<T>(a.g, STAT, row * a.g_step);
      if (a.mean) up /= total_of(a, s);
      else if (a.total) up /= load<T>(a.total, STAT, 0);
      gradient_of_row<D>(a, row, t, lse, up, s);
    }
  } else if (a.rows && a.losses && threadIdx.x == 0) store(a.losses, STAT, row, (T)0);
  if (!a.mean || !last_block(a.ticket, gridDim.x)) return;
  T part = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) part += load<T>(a.losses, STAT, i);
  const T sum = sum_of_block(part, s), total = total_of(a, s);
  if (threadIdx.x) return;
  store(a.mean, STAT, 0, sum / total);
  if (a.total) store(a.total, STAT, 0, total);
}

/* Many short rows, side by side in registers. What all rows share is given: total, if anything. */
template <class D, int G, int EACH> __global__ void __launch_bounds__(TY_K_ROW_THREADS) cross_entropy_short(const ty_k_entropy a) {
  typedef typename stored<D>::type T;
  const int64_t row = row_of_thread(), base = row * a.n, t = row < a.rows ? a.labels[row * a.label_step] : a.ignore;
  const int64_t n = row < a.rows && !bad_label(a, t) ? a.n : 0;
  const bool first = threadIdx.x == 0 && n;
  const T eps = (T)a.smoothing, w = n ? count_of<T>(a, t) : 0;
  double exact = 0;
  T v[EACH], sum = 0, *const none = NULL;               /* rows of 32 threads at most are combined without shared memory */
  load_row<G, D>(v, a.x, base, n, 1);
  if (a.losses) {
    T top = -INFINITY, part = 0;
    EACH_OF_ROW(e, j, n) top = v[e] > top ? v[e] : top;
    top = combine_block(top, none, [](T l, T r) { return r > l ? r : l; });
    top = top == (T)-INFINITY ? 0 : top;
    EACH_OF_ROW(e, j, n) sum += exp_down(v[e] - top);
    const T more = log_of(sum_of_block(sum, none));
    exact = (double)top + (double)more;
    if (eps > 0) {
      EACH_OF_ROW(e, j, n) part += (a.weight ? load<T>(a.weight, a.dtype, j) : 1) * (top - v[e] + more);
      part = sum_of_block(part, none);
    }
    if (first)
      store(a.losses, STAT, row,
        t == a.ignore ? 0 : (1 - eps) * w * (top - load<T>(a.x, a.dtype, base + t - 1) + more) + eps / (T)a.n * part);
    else if (threadIdx.x == 0 && row < a.rows) store(a.losses, STAT, row, (T)0);
    if (first && a.lse) store(a.lse, TY_F64, row, exact);
  } else if (n) exact = load<double>(a.lse, TY_F64, row);
  if (!a.o) return;
  const bool weighted = a.weight && eps > 0;
  T part = (T)a.n, up = n ? load<T>(a.g, STAT, row * a.g_step) : 0;
  if (a.total) up /= load<T>(a.total, STAT, 0);
  if (weighted) {
    part = 0;
    EACH_OF_ROW(e, j, n) part += load<T>(a.weight, a.dtype, j);
    part = sum_of_block(part, none);
  }
  const rounded_lse<T> lse(exact);
  const T mass = ((1 - eps) * w + eps / (T)a.n * part) * lse.left, smooth = eps / (T)a.n;
  EACH_OF_ROW(e, j, n) {
    const T spread = weighted ? smooth * load<T>(a.weight, a.dtype, j) : smooth;
    const T slope = up * (mass * exp_down(v[e] - lse.near) - spread - (j == t - 1 ? (1 - eps) * w : 0));
    v[e] = t == a.ignore ? 0 : slope;
  }
  store_row<G, D>(a.o, base, n, 1, v);
}

/* ---- launchers ---- */

template <class D> static cudaError_t softmax_side_by_side(const ty_k_lines &p, cudaStream_t s) {
  const ty_k_lines a = p;
  const unsigned turns = a.n >= 64 && a.lines < (int64_t)512 * THREADS ? 8 : 1;        /* else lines alone fill a device */
  const dim3 threads(THREADS / turns, turns);
  const unsigned blocks = blocks_for(a.lines, THREADS / turns);
  return a.g ? TY_LAUNCH(softmax_backward_columns<D>, blocks, threads, s, a) : TY_LAUNCH(softmax_columns<D>, blocks, threads, s, a);
}

template <class D, int G> static cudaError_t softmax_rows(const ty_k_lines &p, cudaStream_t s) {
  const ty_k_lines a = p;
  const dim3 threads = threads_of_rows(a.lines, a.n);
  const unsigned blocks = blocks_of_rows(a.lines, a.n);
  auto there = few_each(a.n) ? softmax_short<D, G, ROW_FEW> : softmax_short<D, G, ROW_EACH>;
  auto back = few_each(a.n) ? softmax_backward_short<D, G, ROW_FEW> : softmax_backward_short<D, G, ROW_EACH>;
  return a.g ? TY_LAUNCH(back, blocks, threads, s, a) : TY_LAUNCH(there, blocks, threads, s, a);
}

template <class D> static cudaError_t softmax_lines(const ty_k_lines &p, cudaStream_t s) {
  const ty_k_lines a = p;
  const unsigned blocks = blocks_for(a.lines, 1);
  return a.g ? TY_LAUNCH(softmax_backward<D>, blocks, THREADS, s, a) : TY_LAUNCH(softmax<D>, blocks, THREADS, s, a);
}

cudaError_t ty_k_softmax(const ty_k_lines *a, cudaStream_t s) {
#define SHORT(D, G) softmax_rows<D, G>(*a, s)
#define LONG(D, G) softmax_lines<D>(*a, s)
#define SIDE_BY_SIDE(D, G) softmax_side_by_side<D>(*a, s)
  if (a->inner >= 32 && a->lines >= SIDE_LINES) return WITH_DTYPE(a->dtype, SIDE_BY_SIDE, 1);
  return a->n <= TY_K_ROW ? WITH_ROWS(a->dtype, a->n, SHORT) : WITH_DTYPE(a->dtype, LONG, 1);
}

template <class D> static cudaError_t launch_entropy(const ty_k_entropy &p, cudaStream_t s) {
  const ty_k_entropy a = p;
  return TY_LAUNCH(cross_entropy<D>, blocks_for(a.rows, 1), (unsigned)ty_k_row_threads(a.n), s, a);
}

template <class D, int G> static cudaError_t launch_short_entropy(const ty_k_entropy &p, cudaStream_t s) {
  const ty_k_entropy a = p;
  auto rows = few_each(a.n) ? cross_entropy_short<D, G, ROW_FEW> : cross_entropy_short<D, G, ROW_EACH>;
  return TY_LAUNCH(rows, blocks_of_rows(a.rows, a.n), threads_of_rows(a.rows, a.n), s, a);
}

cudaError_t ty_k_cross_entropy(const ty_k_entropy *a, cudaStream_t s) {
#define ENTROPY(D, G) launch_entropy<D>(*a, s)
#define SHORT_ENTROPY(D, G) launch_short_entropy<D, G>(*a, s)
  if (a->rows > TY_K_ENTROPY_FEW && ty_k_row_lanes(a->n) <= 32) return WITH_ROWS(a->dtype, a->n, SHORT_ENTROPY);
  return WITH_DTYPE(a->dtype, ENTROPY, 1);
}

cudaError_t ty_k_entropy_counts(const ty_k_entropy *p, void *to, cudaStream_t s) {
  const ty_k_entropy a = *p;
  const unsigned blocks = blocks_for(a.rows, THREADS);
  return a.dtype == TY_F64 ? TY_LAUNCH(count<double>, blocks, THREADS, s, a, (double *)to)
    : TY_LAUNCH(count<float>, blocks, THREADS, s, a, (float *)to);
}

cudaError_t ty_k_entropy_mean(void *mean, const void *total, int dtype, cudaStream_t s) {
  return dtype == TY_F64 ? TY_LAUNCH(take_mean<double>, 1, 1, s, (double *)mean, (const double *)total)
    : TY_LAUNCH(take_mean<float>, 1, 1, s, (float *)mean, (const float *)total);
}
