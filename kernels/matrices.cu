/* Linear algebra of n x n matrices, n at most TY_K_SIDE: LU, and by it determinants, solutions and inverses; Cholesky's factor; triangular
 * systems.
 *
 * Idea: a block has a matrix, which stays in shared memory where it fits; what one step changes is shared among all threads. Steps and
 * order are src/cpu/matrix_loops.h's. Invariant: what a step reads isn't written before the next barrier, which all threads reach. */
#include "device.cuh"
#include "pivots.h"

#define WARP 32
#define MOST_THREADS 256

static __device__ __forceinline__ int warp_of() { return (int)threadIdx.x / WARP; }
static __device__ __forceinline__ int warps() { return (int)blockDim.x / WARP; }
static __device__ __forceinline__ int lane_of() { return (int)threadIdx.x % WARP; }
static __device__ __forceinline__ float root(float x) { return sqrtf(x); }
static __device__ __forceinline__ double root(double x) { return sqrt(x); }
/* A thread's share of n things. */
#define SHARED(e, n) for (int e = (int)threadIdx.x; e < (n); e += (int)blockDim.x)

/* The first row from k on whose element in column k is the largest; each warp finds it for itself. */
template <class T> static __device__ int pivot_row(const T *m, int n, int k) {
  T most = m[k * n + k];                   /* NaN stays */
  int at = k;
  most = most < 0 ? -most : most;
  for (int r = k + lane_of(); r < n; r += WARP) {
    const T v = m[r * n + k], size = v < 0 ? -v : v;
    if (size > most) { most = size; at = r; }
  }
#pragma unroll
  for (int down = WARP / 2; down; down /= 2) {
    const T size = from_lane(most, down);
    const int r = from_lane(at, down);
    if (size > most || (size == most && r < at)) { most = size; at = r; }
  }
  return exchanged(at, shuffle_first{WARP});
}

/* m becomes L below U, x (n x more) what the same steps make of it; with: the row that each row was exchanged with. Returns 0, or which
 * element of U's diagonal is the first 0, from 1. */
template <class T> static __device__ int eliminate(T *m, T *x, int n, int more, int *with) {
  int failed = 0;
  for (int k = 0; k < n; k++) {
    const int r = pivot_row(m, n, k);
    if (threadIdx.x == 0) with[k] = r;
    __syncthreads();
    if (r != k)
      SHARED(c, n + more) {
        T *const a = c < n ? m + k * n + c : x + k * more + c - n, *const b = c < n ? m + r * n + c : x + r * more + c - n;
        const T was = *a;
        *a = *b;
        *b = was;
      }
    __syncthreads();
    const T pivot = m[k * n + k];
    if (pivot == 0) failed = failed ? failed : k + 1;
    else SHARED(e, n - k - 1) m[(k + 1 + e) * n + k] /= pivot;
    __syncthreads();
    for (int i = k + 1 + warp_of(); i < n; i += warps()) {
      const T factor = m[i * n + k];
      for (int c = k + 1 + lane_of(); c < n; c += WARP) m[i * n + c] -= factor * m[k * n + c];
    }
    SHARED(e, (n - k - 1) * more) x[(k + 1) * more + e] -= m[(k + 1 + e / more) * n + k] * x[k * more + e % more];
    __syncthreads();
  }
  return failed;
}

/* x becomes y of m y = x, for a triangular m; unit: its diagonal counts as 1. */
template <class T> static __device__ void substitute(const T *m, T *x, int n, int more, bool upper, bool unit) {
  for (int step = 0; step < n; step++) {
    const int k = upper ? n - 1 - step : step, first = upper ? 0 : k + 1, rest = n - 1 - step;
    if (!unit) SHARED(c, more) x[k * more + c] /= m[k * n + k];
    __syncthreads();
    SHARED(e, rest * more) x[first * more + e] -= m[(first + e / more) * n + k] * x[k * more + e % more];
    __syncthreads();
  }
}

template <class T> static __device__ int cholesky(T *m, int n) {
  int failed = 0;
  for (int k = 0; k < n; k++) {
    const T v = m[k * n + k], d = root(v);
    if (!(v > 0)) failed = failed ? failed : k + 1;
    __syncthreads();
    SHARED(e, n - k) m[(k + e) * n + k] = e ? m[(k + e) * n + k] / d : d;
    __syncthreads();
    for (int i = k + 1 + warp_of(); i < n; i += warps()) {
      const T factor = m[i * n + k];
      for (int c = k + 1 + lane_of(); c <= i; c += WARP) m[i * n + c] -= factor * m[c * n + k];
    }
    __syncthreads();
  }
  return failed;
}

/* By one thread. */
template <class T> static __device__ void determinant(const ty_k_matrices &a, int64_t i, const T *m, const int *with) {
  ty_pivots p = {1, 0};
  for (int k = 0; k < a.n; k++) ty_pivots_take(&p, m[k * a.n + k], with[k] != k);
  ((T *)a.o)[i] = (T)(a.kind == TY_MATRICES_LOG ? ty_log_determinant(p) : ty_determinant(p));
  if (a.kind == TY_MATRICES_LOG) ((T *)a.sign)[i] = (T)ty_sign_of_determinant(p);
}

/* By one thread: the exchanges from 1 on, and the order of rows that they make. */
static __device__ void orders(const ty_k_matrices &a, int64_t i, const int *with) {
  int64_t *const order = a.order + i * a.n, *const exchanged = a.exchanged + i * a.n;
  for (int k = 0; k < a.n; k++) { exchanged[k] = with[k] + 1; order[k] = k + 1; }
  for (int k = 0; k < a.n; k++) {
    const int64_t was = order[k];
    order[k] = order[with[k]];
    order[with[k]] = was;
  }
}

/* SIDE: rows that fit the block's shared memory; 0: the matrix stays in global memory. */
template <class T, int SIDE> __global__ void __launch_bounds__(MOST_THREADS) of_matrix(const ty_k_matrices a) {
  __shared__ T tile[SIDE ? SIDE * SIDE : 1];
  __shared__ int with[TY_K_SIDE];
  const int n = a.n, more = a.kind == TY_MATRICES_INVERT ? n : a.kind == TY_MATRICES_SOLVE || a.kind == TY_MATRICES_TRIANGLE ? a.more : 0;
  const int64_t i = blockIdx.x, square = (int64_t)n * n;
  const T *const from = (const T *)a.a + i * square;
  T *const m = SIDE ? tile : (T *)a.work + i * square, *const x = (T *)a.o + i * n * more;
  int failed = 0;
  SHARED(e, n * n) m[e] = a.kind == TY_MATRICES_CHOLESKY && e % n > e / n ? 0 : from[e];
  SHARED(e, n * more) x[e] = a.kind == TY_MATRICES_INVERT ? (T)(e % n == e / n) : ((const T *)a.b)[i * n * more + e];
  __syncthreads();
  if (a.kind == TY_MATRICES_TRIANGLE) substitute(m, x, n, more, a.upper, a.unit);
  else if (a.kind == TY_MATRICES_CHOLESKY) failed = cholesky(m, n);
  else failed = eliminate(m, x, n, more, with);
  if (a.kind == TY_MATRICES_SOLVE || a.kind == TY_MATRICES_INVERT) {
    if (failed) SHARED(e, n * more) x[e] = (T)NAN;
    else substitute(m, x, n, more, true, false);
  }
  if (a.kind == TY_MATRICES_CHOLESKY || a.kind == TY_MATRICES_LU) SHARED(e, n * n) ((T *)a.o)[i * square + e] = m[e];
  if (threadIdx.x) return;
  if (a.info) a.info[i] = failed;
  if (a.kind == TY_MATRICES_LU) orders(a, i, with);
  if (a.kind == TY_MATRICES_DETERMINANT || a.kind == TY_MATRICES_LOG) determinant(a, i, m, with);
}

/* ---- launchers ---- */

template <class T> static cudaError_t launch(const ty_k_matrices &p, cudaStream_t s) {
  const ty_k_matrices a = p;
  const unsigned threads = a.n <= 16 ? WARP : a.n <= 64 ? 4 * WARP : MOST_THREADS;
  return a.n <= 16 ? TY_LAUNCH((of_matrix<T, 16>), (unsigned)a.batch, threads, s, a)
    : a.n <= 32 ? TY_LAUNCH((of_matrix<T, 32>), (unsigned)a.batch, threads, s, a)
    : a.n <= TY_K_SIDE_SHARED ? TY_LAUNCH((of_matrix<T, TY_K_SIDE_SHARED>), (unsigned)a.batch, threads, s, a)
    : TY_LAUNCH((of_matrix<T, 0>), (unsigned)a.batch, threads, s, a);
}
cudaError_t ty_k_matrices_each(const ty_k_matrices *a, cudaStream_t s) {
  return a->dtype == TY_F64 ? launch<double>(*a, s) : launch<float>(*a, s);
}
