/* Layer and root-mean-square normalisation of rows, a block for each row; batch norm, a block for each channel.
 *
 * Idea: forward takes the moments of x less the row's first element, in one pass. Backward takes a row's two sums and its part of the
 * weights' gradients in the same pass: each block goes over some of the rows and adds up its part, and a last launch adds the parts.
 * Invariant: parts are as many as the rows say, so the same bits come each time. */
#include "device.cuh"

#define THREADS 256
#define PARTS 64

template <class T> static __device__ void sum_of_block(T *a, T *b, T *s, T *u) {   /* both, for all threads */
  const int t = threadIdx.x;
  __syncthreads();
  s[t] = *a;
  u[t] = *b;
  for (int half = THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (t < half) { s[t] += s[t + half]; u[t] += u[t + half]; }
  }
  __syncthreads();
  *a = s[0];
  *b = u[0];
}

template <class T> __global__ void __launch_bounds__(THREADS) forward(const ty_k_norm a) {
  __shared__ T s[THREADS], u[THREADS];
  const int64_t base = blockIdx.x * a.n;
  const T shift = a.rms ? 0 : load<T>(a.x, a.dtype, base);
  T s1 = 0, s2 = 0;
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    const T d = load<T>(a.x, a.dtype, base + j) - shift;
    s1 += d;
    s2 += d * d;
  }
  sum_of_block(&s1, &s2, s, u);
  const T e = a.rms ? 0 : s1 / (T)a.n, v = s2 / (T)a.n - e * e, mean = shift + e, r = (T)(1 / sqrt((double)(v < 0 ? 0 : v) + a.eps));
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    T y = (load<T>(a.x, a.dtype, base + j) - mean) * r;
    if (a.w) y *= load<T>(a.w, a.wdtype, j);
    if (a.b) y += load<T>(a.b, a.wdtype, j);
    store(a.o, a.dtype, base + j, y);
  }
  if (threadIdx.x) return;
  if (!a.rms) store(a.mean, sizeof(T) == 8 ? TY_F64 : TY_F32, blockIdx.x, mean);
  store(a.rstd, sizeof(T) == 8 ? TY_F64 : TY_F32, blockIdx.x, r);
}

template <class T> __global__ void __launch_bounds__(THREADS) backward(const ty_k_norm a, int parts) {
  __shared__ T s[THREADS], u[THREADS];
  const int stat = sizeof(T) == 8 ? TY_F64 : TY_F32;
  T *const dw = (T *)a.partial + 2 * (int64_t)blockIdx.x * a.n, *const db = dw + a.n;
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) dw[j] = db[j] = 0;
  const int64_t to = a.rows * (blockIdx.x + 1) / parts;
  for (int64_t row = a.rows * blockIdx.x / parts; row < to; row++) {
    const int64_t base = row * a.n;
    const T mean = a.rms ? 0 : load<T>(a.mean, stat, row), r = load<T>(a.rstd, stat, row);
    T s1 = 0, s2 = 0;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      const T g = load<T>(a.g, a.dtype, base + j), h = (load<T>(a.x, a.dtype, base + j) - mean) * r, gw = a.w ? g * load<T>(a.w, a.wdtype, j) : g;
      dw[j] += g * h;
      db[j] += g;
      s1 += gw;
      s2 += gw * h;
    }
    sum_of_block(&s1, &s2, s, u);
    const T ma = a.rms ? 0 : s1 / (T)a.n, mb = s2 / (T)a.n;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      const T g = load<T>(a.g, a.dtype, base + j), h = (load<T>(a.x, a.dtype, base + j) - mean) * r, gw = a.w ? g * load<T>(a.w, a.wdtype, j) : g;
      store(a.o, a.dtype, base + j, r * (gw - ma - h * mb));
    }
  }
}

template <class T> __global__ void __launch_bounds__(THREADS) add_parts(const ty_k_norm a, int parts) {
  const int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (j >= a.n) return;
  T dw = 0, db = 0;
  for (int p = 0; p < parts; p++) { dw += ((const T *)a.partial)[2 * (int64_t)p * a.n + j]; db += ((const T *)a.partial)[(2 * (int64_t)p + 1) * a.n + j]; }
  store(a.dw, a.dtype, j, dw);
  if (a.db) store(a.db, a.dtype, j, db);
}

/* ---- batch norm: a block for each channel ---- */

template <class T> __global__ void __launch_bounds__(THREADS) batch_forward(const ty_k_batch_norm a) {
  __shared__ T s[THREADS], u[THREADS];
  const int64_t ch = blockIdx.x, base = ch * a.sc, count = a.images * a.pixels;
  const int stat = sizeof(T) == 8 ? TY_F64 : TY_F32;
  T m, v;
  if (a.training && count) {
    const T shift = load<T>(a.x, a.dtype, base);
    T s1 = 0, s2 = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
      const T d = load<T>(a.x, a.dtype, base + i / a.pixels * a.sn + i % a.pixels * a.sp) - shift;
      s1 += d;
      s2 += d * d;
    }
    sum_of_block(&s1, &s2, s, u);
    const T e = s1 / (T)count;
    m = e + shift;
    v = s2 / (T)count - e * e;
    v = v < 0 ? 0 : v;                     /* a NaN stays */
  } else {
    m = a.run_mean && !a.training ? load<T>(a.run_mean, a.run_dtype, ch * a.run_step[0]) : 0;
    v = a.run_var && !a.training ? load<T>(a.run_var, a.run_dtype, ch * a.run_step[1]) : 0;
  }
  const T r = (T)(1 / sqrt((double)v + a.eps)), gain = (a.w ? load<T>(a.w, a.wdtype, ch * a.w_step) : 1) * r, bias = a.b ? load<T>(a.b, a.bdtype, ch * a.b_step) : 0;
  for (int64_t i = threadIdx.x; i < count; i += THREADS) {
    const int64_t at = base + i / a.pixels * a.sn + i % a.pixels * a.sp;
    store(a.o, a.dtype, at, (load<T>(a.x, a.dtype, at) - m) * gain + bias);
  }
  if (threadIdx.x) return;
  store(a.mean, stat, ch, m);
  store(a.rstd, stat, ch, r);
  if (!a.training || !count) return;
  const double keep = 1 - a.momentum, whole = (double)count / (double)(count > 1 ? count - 1 : 1);
  if (a.run_mean) store(a.run_mean, a.run_dtype, ch * a.run_step[0], keep * load<double>(a.run_mean, a.run_dtype, ch * a.run_step[0]) + a.momentum * (double)m);
  if (a.run_var) store(a.run_var, a.run_dtype, ch * a.run_step[1], keep * load<double>(a.run_var, a.run_dtype, ch * a.run_step[1]) + a.momentum * (double)v * whole);
}

template <class T> __global__ void __launch_bounds__(THREADS) batch_backward(const ty_k_batch_norm a) {
  __shared__ T s[THREADS], u[THREADS];
  const int64_t ch = blockIdx.x, base = ch * a.sc, count = a.images * a.pixels;
  const int stat = sizeof(T) == 8 ? TY_F64 : TY_F32;
  const T m = load<T>(a.mean, stat, ch), r = load<T>(a.rstd, stat, ch), gain = (a.w ? load<T>(a.w, a.wdtype, ch * a.w_step) : 1) * r;
  T s1 = 0, s2 = 0;
  for (int64_t i = threadIdx.x; i < count; i += THREADS) {
    const int64_t at = base + i / a.pixels * a.sn + i % a.pixels * a.sp;
    const T g = load<T>(a.g, a.dtype, at);
    s1 += g;
    s2 += g * (load<T>(a.x, a.dtype, at) - m);
  }
  sum_of_block(&s1, &s2, s, u);
  const bool through = a.training && count > 0;
  const T slope = through ? -gain * r * r * s2 / (T)count : 0, shift = through ? -gain * s1 / (T)count : 0;
  for (int64_t i = threadIdx.x; i < count; i += THREADS) {
    const int64_t at = base + i / a.pixels * a.sn + i % a.pixels * a.sp;
    store(a.o, a.dtype, at, gain * load<T>(a.g, a.dtype, at) + slope * (load<T>(a.x, a.dtype, at) - m) + shift);
  }
  if (threadIdx.x) return;
  store(a.dw, a.dtype, ch, s2 * r);
  store(a.db, a.dtype, ch, s1);
}

/* ---- launchers ---- */

int ty_k_norm_parts(int64_t rows) { return rows < PARTS ? (int)(rows < 1 ? 1 : rows) : PARTS; }

template <class T> static cudaError_t launch(const ty_k_norm &a, cudaStream_t s) {
  if (!a.g) return TY_LAUNCH(forward<T>, blocks_for(a.rows, 1), THREADS, s, a);
  const int parts = ty_k_norm_parts(a.rows);
  cudaError_t e = TY_LAUNCH(backward<T>, (unsigned)parts, THREADS, s, a, parts);
  return e == cudaSuccess ? TY_LAUNCH(add_parts<T>, blocks_for(a.n, THREADS), THREADS, s, a, parts) : e;
}

cudaError_t ty_k_layer_norm(const ty_k_norm *a, cudaStream_t s) { return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s); }

cudaError_t ty_k_batch(const ty_k_batch_norm *p, cudaStream_t s) {
  const ty_k_batch_norm a = *p;
  const unsigned blocks = blocks_for(a.channels, 1);
  if (a.dtype == TY_F64) return a.g ? TY_LAUNCH(batch_backward<double>, blocks, THREADS, s, a) : TY_LAUNCH(batch_forward<double>, blocks, THREADS, s, a);
  return a.g ? TY_LAUNCH(batch_backward<float>, blocks, THREADS, s, a) : TY_LAUNCH(batch_forward<float>, blocks, THREADS, s, a);
}
