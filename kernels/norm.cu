/* Layer and root-mean-square normalisation of rows: a block for each row.
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

/* ---- launchers ---- */

int ty_k_norm_parts(int64_t rows) { return rows < PARTS ? (int)(rows < 1 ? 1 : rows) : PARTS; }

template <class T> static cudaError_t launch(const ty_k_norm &a, cudaStream_t s) {
  if (!a.g) return TY_LAUNCH(forward<T>, blocks_for(a.rows, 1), THREADS, s, a);
  const int parts = ty_k_norm_parts(a.rows);
  cudaError_t e = TY_LAUNCH(backward<T>, (unsigned)parts, THREADS, s, a, parts);
  return e == cudaSuccess ? TY_LAUNCH(add_parts<T>, blocks_for(a.n, THREADS), THREADS, s, a, parts) : e;
}

cudaError_t ty_k_layer_norm(const ty_k_norm *a, cudaStream_t s) { return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s); }
