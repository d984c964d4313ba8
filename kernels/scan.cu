/* Scans along a dim, and extremes with their places.
 *
 * Idea: a thread goes along a line, neighbouring threads along neighbouring lines. Invariant: the order is the line's, so results don't
 * depend on the device. Floats are scanned in float64. */
#include "device.cuh"

#define THREADS 128

template <class T> struct real { static __device__ T exp_of(T x) { return (T)exp((double)x); } static __device__ T log1p_of(T x) { return (T)log1p((double)x); } };

/* Whether v takes the place of best: NaN wins and stays; the later of equals where later is set. */
template <class T> static __device__ __forceinline__ bool beats(T v, T best, bool most, bool later) {
  if (v != v) return later || best == best;
  if (best != best) return false;
  return most ? v > best || (later && v == best) : v < best || (later && v == best);
}

template <class T> __global__ void __launch_bounds__(THREADS) lines(const ty_k_scan a) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= a.lines) return;
  const int64_t base = line / a.inner * a.n * a.inner + line % a.inner;
  const bool most = a.op == TY_OP_cummax || a.op == TY_OP_max_dim;
  T acc = 0;
  int64_t place = 1;
  for (int64_t j = 0; j < a.n; j++) {
    const int64_t i = base + j * a.inner;
    const T v = load<T>(a.x, a.dtype, i);
    switch (a.op) {
      case TY_OP_cumsum: acc = acc + v; break;
      case TY_OP_cumprod: acc = j ? acc * v : v; break;
      case TY_OP_logcumsumexp:
        if (j == 0 || acc == (T)-INFINITY) acc = v;
        else if (v == v && v != (T)-INFINITY) acc = acc == v ? acc + (T)0.6931471805599453 : (acc > v ? acc : v) + real<T>::log1p_of(real<T>::exp_of(acc > v ? v - acc : acc - v));
        else if (v != v) acc = v;
        break;
      case TY_OP_cummax: case TY_OP_cummin: if (j == 0 || beats(v, acc, most, true)) { acc = v; place = j + 1; } break;
      default: if (j == 0 || beats(v, acc, most, false)) { acc = v; place = j + 1; }
    }
    if (a.op == TY_OP_max_dim || a.op == TY_OP_min_dim) continue;
    store(a.o, a.dtype, i, acc);
    if (a.place) a.place[i] = place;
  }
  if (a.op != TY_OP_max_dim && a.op != TY_OP_min_dim) return;
  store(a.o, a.dtype, line, acc);
  a.place[line] = place;
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

cudaError_t ty_k_scan_lines(const ty_k_scan *p, cudaStream_t s) {
  const ty_k_scan a = *p;
  const unsigned blocks = blocks_for(a.lines, THREADS);
  if (a.k == 2) return TY_LAUNCH(lines<int64_t>, blocks, THREADS, s, a);
  return TY_LAUNCH(lines<double>, blocks, THREADS, s, a);
}
