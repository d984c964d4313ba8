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

cudaError_t ty_k_scan_lines(const ty_k_scan *p, cudaStream_t s) {
  const ty_k_scan a = *p;
  const unsigned blocks = blocks_for(a.lines, THREADS);
  if (a.k == 2) return TY_LAUNCH(lines<int64_t>, blocks, THREADS, s, a);
  return TY_LAUNCH(lines<double>, blocks, THREADS, s, a);
}
