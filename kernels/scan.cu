/* Scans along a dim, and extremes with their places.
 *
 * Idea: what has been seen of a line is a value and its place; two neighbouring pieces join into one. Many lines: a thread goes along each,
 * neighbouring threads along neighbouring lines. Few long ones: a block takes a line tile by tile, every thread a few elements. Invariant:
 * pieces are joined in the line's order; floats in float64. */
#include "device.cuh"

#define THREADS 128
#define WIDE 256                 /* threads for a line */
#define EACH 4                   /* elements of a thread in a tile */
#define LONG 512                 /* a line of so many elements is worth a block */

template <class T> struct real {
  static __device__ T exp_of(T x) { return (T)exp((double)x); }
  static __device__ T log1p_of(T x) { return (T)log1p((double)x); }
};

template <class T> struct piece { T v; int64_t place; };                 /* place 0: of no element */

/* Whether v takes the place of best: NaN wins and stays; the later of equals where later is set. */
template <class T> static __device__ __forceinline__ bool beats(T v, T best, bool most, bool later) {
  if (v != v) return later || best == best;
  if (best != best) return false;
  return most ? v > best || (later && v == best) : v < best || (later && v == best);
}

/* log(exp(a) + exp(b)) */
template <class T> static __device__ __forceinline__ T add_logs(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  if (a == b) return a == (T)-INFINITY ? a : a + (T)0.6931471805599453;
  return a > b ? a + real<T>::log1p_of(real<T>::exp_of(b - a)) : b + real<T>::log1p_of(real<T>::exp_of(a - b));
}

/* r comes after l */
template <class T> static __device__ __forceinline__ piece<T> join(int op, const piece<T> &l, const piece<T> &r) {
  if (!l.place || !r.place) return l.place ? l : r;
  switch (op) {
    case TY_OP_cumsum: return {l.v + r.v, r.place};
    case TY_OP_cumprod: return {l.v * r.v, r.place};
    case TY_OP_logcumsumexp: return {add_logs(l.v, r.v), r.place};
    default: return beats(r.v, l.v, op == TY_OP_cummax || op == TY_OP_max_dim, op == TY_OP_cummax || op == TY_OP_cummin) ? r : l;
  }
}

static __device__ __forceinline__ bool one_result(int op) { return op == TY_OP_max_dim || op == TY_OP_min_dim; }

template <class T> static __device__ __forceinline__ void put(const ty_k_scan &a, int64_t i, const piece<T> &p) {
  store(a.o, a.dtype, i, p.v);
  if (a.place) a.place[i] = p.place;
}

template <class T> __global__ void __launch_bounds__(THREADS) lines(const ty_k_scan a) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= a.lines) return;
  const int64_t base = line / a.inner * a.n * a.inner + line % a.inner;
  piece<T> all = {0, 0};
  for (int64_t j = 0; j < a.n; j++) {
    const int64_t i = base + j * a.inner;
    all = join(a.op, all, piece<T>{load<T>(a.x, a.dtype, i), j + 1});
    if (!one_result(a.op)) put(a, i, all);
  }
  if (one_result(a.op)) put(a, line, all);
}

template <class T> __global__ void __launch_bounds__(WIDE) long_line(const ty_k_scan a) {
  __shared__ T value[WIDE];
  __shared__ int64_t place[WIDE];
  const int64_t base = blockIdx.x / a.inner * a.n * a.inner + blockIdx.x % a.inner;
  const int t = (int)threadIdx.x;
  piece<T> before = {0, 0};                /* all earlier tiles */
  for (int64_t tile = 0; tile < a.n; tile += WIDE * EACH) {
    piece<T> own[EACH], sum = {0, 0};
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int64_t j = tile + t * EACH + k;
      if (j < a.n) sum = join(a.op, sum, piece<T>{load<T>(a.x, a.dtype, base + j * a.inner), j + 1});
      own[k] = sum;
    }
    value[t] = sum.v;
    place[t] = sum.place;
    for (int step = 1; step < WIDE; step *= 2) {           /* becomes the join of all threads up to this one */
      __syncthreads();
      if (t >= step) sum = join(a.op, piece<T>{value[t - step], place[t - step]}, sum);
      __syncthreads();
      value[t] = sum.v;
      place[t] = sum.place;
    }
    __syncthreads();
    if (!one_result(a.op)) {
      const piece<T> left = t ? join(a.op, before, piece<T>{value[t - 1], place[t - 1]}) : before;
#pragma unroll
      for (int k = 0; k < EACH; k++) {
        const int64_t j = tile + t * EACH + k;
        if (j < a.n) put(a, base + j * a.inner, join(a.op, left, own[k]));
      }
    }
    before = join(a.op, before, piece<T>{value[WIDE - 1], place[WIDE - 1]});
    __syncthreads();
  }
  if (t == 0 && one_result(a.op)) put(a, blockIdx.x, before);
}

/* With y the running products: dx[i] = sum over j >= i of g[j] y[j] / x[i] before the first 0; at it, the products that leave it out; after
 * it, 0. products: room for y. */
static __global__ void __launch_bounds__(THREADS) cumprod_gradient(const ty_k_scan a, const void *g, double *products) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= a.lines) return;
  const int64_t base = line / a.inner * a.n * a.inner + line % a.inner;
  int64_t zero = a.n;
  double acc = 1, tail = 0;
  for (int64_t j = 0; j < a.n; j++) {
    const double x = load<double>(a.x, a.dtype, base + j * a.inner);
    if (x == 0 && zero == a.n) zero = j;
    products[base + j * a.inner] = acc *= x;
    if (j > zero) store(a.o, a.dtype, base + j * a.inner, 0.0);
  }
  for (int64_t j = zero - 1; j >= 0; j--) {
    const int64_t i = base + j * a.inner;
    store(a.o, a.dtype, i, (tail += load<double>(g, a.dtype, i) * products[i]) / load<double>(a.x, a.dtype, i));
  }
  if (zero == a.n) return;
  double rest = zero ? products[base + (zero - 1) * a.inner] : 1, sum = 0;
  for (int64_t j = zero; j < a.n; j++) {
    const int64_t i = base + j * a.inner;
    if (j > zero) rest *= load<double>(a.x, a.dtype, i);
    sum += load<double>(g, a.dtype, i) * rest;
  }
  store(a.o, a.dtype, base + zero * a.inner, sum);
}

/* ---- launchers ---- */

cudaError_t ty_k_cumprod_gradient(const ty_k_scan *p, const void *g, double *products, cudaStream_t s) {
  const ty_k_scan a = *p;
  return TY_LAUNCH(cumprod_gradient, blocks_for(a.lines, THREADS), THREADS, s, a, g, products);
}

template <class T> static cudaError_t scan(const ty_k_scan &a, cudaStream_t s) {
  if (a.n >= LONG && a.lines <= 16384) return TY_LAUNCH(long_line<T>, (unsigned)a.lines, WIDE, s, a);
  return TY_LAUNCH(lines<T>, blocks_for(a.lines, THREADS), THREADS, s, a);
}

cudaError_t ty_k_scan_lines(const ty_k_scan *p, cudaStream_t s) {
  const ty_k_scan a = *p;
  return a.k == TY_IN_I64 ? scan<int64_t>(a, s) : scan<double>(a, s);
}
