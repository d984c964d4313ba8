/* Softmax and cross-entropy, forward and backward: a block for each row, which it reads twice at most, a short one once.
 *
 * Idea: of a long row, one pass finds the maximum and the sum of exponentials together (a thread corrects its sum when its maximum grows), the next
 * writes. Invariant: rows don't meet; what a block combines, it combines in one order. Accumulates in the type computed in. */
#include "rows.cuh"

#define THREADS 256

template <class T> static __device__ __forceinline__ T exp_of(T x);
template <> __device__ __forceinline__ float exp_of<float>(float x) { return exp_f32(x); }
template <> __device__ __forceinline__ double exp_of<double>(double x) { return exp(x); }
template <class T> static __device__ __forceinline__ T log_of(T x);
template <> __device__ __forceinline__ float log_of<float>(float x) { return log_f32(x); }
template <> __device__ __forceinline__ double log_of<double>(double x) { return log(x); }

/* The maximum and the sum of exp(x - maximum) of n elements step apart, for all threads. Rows of -inf have maximum 0, so that their sum is 0. */
template <class T> static __device__ void largest_and_sum(const void *x, int dtype, int64_t base, int64_t n, int64_t step, T *top, T *sum, T *s, T *u) {
  const int t = threadIdx.x;
  T m = -INFINITY, a = 0;
  for (int64_t j = t; j < n; j += blockDim.x) {
    const T v = load<T>(x, dtype, base + j * step);
    if (v > m) { a = (m == -INFINITY ? 0 : a * exp_of(m - v)) + 1; m = v; }
    else a += v == -INFINITY ? 0 : exp_of(v - m);        /* a NaN stays */
  }
  __syncthreads();
  s[t] = m;
  u[t] = a;
  for (int half = (int)blockDim.x / 2; half; half /= 2) {
    __syncthreads();
    if (t < half) {
      const T m1 = s[t], m2 = s[t + half], big = m1 > m2 ? m1 : m2;
      u[t] = (m1 == -INFINITY ? u[t] : u[t] * exp_of(m1 - big)) + (m2 == -INFINITY ? u[t + half] : u[t + half] * exp_of(m2 - big));
      s[t] = big;
    }
  }
  __syncthreads();
  *top = s[0] == -INFINITY ? 0 : s[0];
  *sum = u[0];
}

template <class T> __global__ void __launch_bounds__(THREADS) softmax(const ty_k_lines a) {
  __shared__ T s[THREADS], u[THREADS];
  const int64_t base = blockIdx.x / a.inner * a.n * a.inner + blockIdx.x % a.inner;
  T top, sum;
  largest_and_sum<T>(a.x, a.dtype, base, a.n, a.inner, &top, &sum, s, u);
  const T scale = 1 / sum, shift = log_of(sum);
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    const int64_t i = base + j * a.inner;
    const T v = load<T>(a.x, a.dtype, i) - top;
    store(a.o, a.dtype, i, a.log ? v - shift : exp_of(v) * scale);
  }
}

static __device__ __forceinline__ float larger(float a, float b) { return max_f32(a, b); }
static __device__ __forceinline__ double larger(double a, double b) { return max_f64(a, b); }
static __device__ __forceinline__ float exp_down(float x) { return ty_exp_down_f32(x); }
static __device__ __forceinline__ double exp_down(double x) { return ty_exp_down_f64(x); }

template <class T> __global__ void __launch_bounds__(TY_K_ROW_THREADS) softmax_short(const ty_k_lines a) {
  __shared__ T s[TY_K_ROW_THREADS];
  const int64_t base = blockIdx.x / a.inner * a.n * a.inner + blockIdx.x % a.inner;
  T v[ROW_EACH], top = -INFINITY, part = 0;
  load_row(v, a.x, a.dtype, base, a.n, a.inner);
  EACH_OF_ROW(e, j, a.n) top = larger(top, v[e]);
  top = combine_row(top, s, [](T x, T y) { return larger(x, y); });
  EACH_OF_ROW(e, j, a.n) {
    v[e] -= top;
    const T x = exp_down(v[e]);
    if (!a.log) v[e] = x;
    part += x;
  }
  const T sum = sum_of_row(part, s), scale = 1 / sum, shift = log_of(sum);
  EACH_OF_ROW(e, j, a.n) store(a.o, a.dtype, base + j * a.inner, a.log ? v[e] - shift : v[e] * scale);
}

template <class T> __global__ void __launch_bounds__(TY_K_ROW_THREADS) softmax_backward_short(const ty_k_lines a) {
  __shared__ T s[TY_K_ROW_THREADS];
  const int64_t base = blockIdx.x / a.inner * a.n * a.inner + blockIdx.x % a.inner;
  T g[ROW_EACH], y[ROW_EACH], part = 0;
  load_row(g, a.g, a.dtype, base, a.n, a.inner);
  load_row(y, a.x, a.dtype, base, a.n, a.inner);
  EACH_OF_ROW(e, j, a.n) part += a.log ? g[e] : g[e] * y[e];
  const T sum = sum_of_row(part, s);
  EACH_OF_ROW(e, j, a.n) store(a.o, a.dtype, base + j * a.inner, a.log ? g[e] - exp_down(y[e]) * sum : y[e] * (g[e] - sum));
}

template <class T> __global__ void __launch_bounds__(THREADS) softmax_backward(const ty_k_lines a) {
  __shared__ T s[THREADS];
  const int64_t base = blockIdx.x / a.inner * a.n * a.inner + blockIdx.x % a.inner;
  T part = 0;
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    const int64_t i = base + j * a.inner;
    part += a.log ? load<T>(a.g, a.dtype, i) : load<T>(a.g, a.dtype, i) * load<T>(a.x, a.dtype, i);
  }
  const T sum = sum_of_row(part, s);
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    const int64_t i = base + j * a.inner;
    const T g = load<T>(a.g, a.dtype, i), y = load<T>(a.x, a.dtype, i);
    store(a.o, a.dtype, i, a.log ? g - exp_of(y) * sum : y * (g - sum));
  }
}

/* ---- cross-entropy of rows with 1-based labels ---- */

static __device__ bool bad_label(const ty_k_entropy &a, int64_t t) {
  if (t == a.ignore || (t >= 1 && t <= a.n)) return false;
  if (threadIdx.x == 0) report(a.fault, a.op, t, a.n);
  return true;
}

#define STAT (sizeof(T) == 8 ? TY_F64 : TY_F32)      /* losses of rows, their gradients and log-sum-exps: not rounded to 16 bits */

template <class T> static __device__ __forceinline__ T count_of(const ty_k_entropy &a, int64_t t) { return t == a.ignore ? 0 : a.weight ? load<T>(a.weight, a.dtype, t - 1) : 1; }

/* The row's log-sum-exp and its loss, which thread 0 stores. */
template <class T> static __device__ T loss_of_row(const ty_k_entropy &a, int64_t row, int64_t t, T *s, T *u) {
  const int64_t base = row * a.n;
  const T eps = (T)a.smoothing;
  T top, sum, part = 0;
  largest_and_sum<T>(a.x, a.dtype, base, a.n, 1, &top, &sum, s, u);
  const T lse = top + log_of(sum);
  if (eps > 0) {
    for (int64_t j = threadIdx.x; j < a.n; j += blockDim.x) part += (a.weight ? load<T>(a.weight, a.dtype, j) : 1) * (lse - load<T>(a.x, a.dtype, base + j));
    part = sum_of_row(part, s);
  }
  if (threadIdx.x) return lse;
  store(a.losses, STAT, row, t == a.ignore ? 0 : (1 - eps) * count_of<T>(a, t) * (lse - load<T>(a.x, a.dtype, base + t - 1)) + eps / (T)a.n * part);
  if (a.lse) store(a.lse, STAT, row, lse);
  return lse;
}

/* up: of the row's loss */
template <class T> static __device__ void gradient_of_row(const ty_k_entropy &a, int64_t row, int64_t t, T lse, T up, T *s) {
  const int64_t base = row * a.n;
  const T eps = (T)a.smoothing;
  T part = 0;
  if (a.weight && eps > 0) {
    for (int64_t j = threadIdx.x; j < a.n; j += blockDim.x) part += load<T>(a.weight, a.dtype, j);
    part = sum_of_row(part, s);
  } else part = (T)a.n;
  const T w = count_of<T>(a, t), mass = (1 - eps) * w + eps / (T)a.n * part;
  for (int64_t j = threadIdx.x; j < a.n; j += blockDim.x) {
    const T smooth = eps / (T)a.n * (a.weight && eps > 0 ? load<T>(a.weight, a.dtype, j) : 1);
    const T v = up * (mass * exp_of(load<T>(a.x, a.dtype, base + j) - lse) - smooth - (j == t - 1 ? (1 - eps) * w : 0));
    store(a.o, a.dtype, base + j, t == a.ignore ? 0 : v);
  }
}

/* What the rows count for together: each block that asks adds it up in the same order. */
template <class T> static __device__ T total_of(const ty_k_entropy &a, T *s) {
  T part = 0;
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) {
    const int64_t t = a.labels[i * a.label_step];
    if (t == a.ignore || (t >= 1 && t <= a.n)) part += count_of<T>(a, t);
  }
  return sum_of_row(part, s);
}

/* Of many rows: what each counts for; and, when losses and these have been added up, the mean. */
template <class T> __global__ void __launch_bounds__(THREADS) count(const ty_k_entropy a, T *counts) {
  const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x, t = row < a.rows ? a.labels[row * a.label_step] : a.ignore;
  if (row < a.rows) counts[row] = t == a.ignore || (t >= 1 && t <= a.n) ? count_of<T>(a, t) : 0;
}
template <class T> __global__ void take_mean(T *mean, const T *total) { *mean /= *total; }

template <class T> __global__ void __launch_bounds__(THREADS) cross_entropy(const ty_k_entropy a) {
  __shared__ T s[THREADS], u[THREADS];
  const int64_t row = blockIdx.x, t = a.rows ? a.labels[row * a.label_step] : a.ignore;
  if (a.rows && !bad_label(a, t)) {
    const T lse = a.losses ? loss_of_row(a, row, t, s, u) : load<T>(a.lse, STAT, row);
    if (a.o) {
      T up = load<T>(a.g, STAT, row * a.g_step);
      if (a.mean) up /= total_of(a, s);
      else if (a.total) up /= load<T>(a.total, STAT, 0);
      gradient_of_row(a, row, t, lse, up, s);
    }
  } else if (a.rows && a.losses && threadIdx.x == 0) store(a.losses, STAT, row, (T)0);
  if (!a.mean || !last_block(a.ticket, gridDim.x)) return;
  T part = 0;
  for (int64_t i = threadIdx.x; i < a.rows; i += blockDim.x) part += load<T>(a.losses, STAT, i);
  const T sum = sum_of_row(part, s), total = total_of(a, s);
  if (threadIdx.x) return;
  store(a.mean, STAT, 0, sum / total);
  if (a.total) store(a.total, STAT, 0, total);
}

/* ---- launchers ---- */

template <class T> static cudaError_t launch_softmax(const ty_k_lines &p, cudaStream_t s) {
  const ty_k_lines a = p;
  const unsigned blocks = blocks_for(a.lines, 1), threads = (unsigned)ty_k_row_threads(a.n);
  if (a.n <= TY_K_ROW) return a.g ? TY_LAUNCH(softmax_backward_short<T>, blocks, threads, s, a) : TY_LAUNCH(softmax_short<T>, blocks, threads, s, a);
  return a.g ? TY_LAUNCH(softmax_backward<T>, blocks, THREADS, s, a) : TY_LAUNCH(softmax<T>, blocks, THREADS, s, a);
}

cudaError_t ty_k_softmax(const ty_k_lines *a, cudaStream_t s) { return a->dtype == TY_F64 ? launch_softmax<double>(*a, s) : launch_softmax<float>(*a, s); }

template <class T> static cudaError_t launch_entropy(const ty_k_entropy &p, cudaStream_t s) {
  const ty_k_entropy a = p;
  const int few = ty_k_row_threads(a.n);
  return TY_LAUNCH(cross_entropy<T>, blocks_for(a.rows, 1), (unsigned)(few < THREADS ? few : THREADS), s, a);
}

cudaError_t ty_k_cross_entropy(const ty_k_entropy *a, cudaStream_t s) { return a->dtype == TY_F64 ? launch_entropy<double>(*a, s) : launch_entropy<float>(*a, s); }

cudaError_t ty_k_entropy_counts(const ty_k_entropy *p, void *to, cudaStream_t s) {
  const ty_k_entropy a = *p;
  const unsigned blocks = blocks_for(a.rows, THREADS);
  return a.dtype == TY_F64 ? TY_LAUNCH(count<double>, blocks, THREADS, s, a, (double *)to) : TY_LAUNCH(count<float>, blocks, THREADS, s, a, (float *)to);
}

cudaError_t ty_k_entropy_mean(void *mean, const void *total, int dtype, cudaStream_t s) {
  return dtype == TY_F64 ? TY_LAUNCH(take_mean<double>, 1, 1, s, (double *)mean, (const double *)total) : TY_LAUNCH(take_mean<float>, 1, 1, s, (float *)mean, (const float *)total);
}
