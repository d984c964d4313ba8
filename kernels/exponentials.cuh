/* Sums of exponentials in one pass: `seen` holds the maximum of the numbers so far, a, and the sum of exp(x - maximum), b.
 *
 * Invariant: nothing overflows, since exponents are 0 at most; a NaN stays in the sum. */
#ifndef TY_EXPONENTIALS_CUH
#define TY_EXPONENTIALS_CUH
#include "rows.cuh"
#include "scalar.cuh"

/* adds the first `count` of N numbers to seen, which begins as {-inf, 0} */
template <int N, class T> static __device__ __forceinline__ void see(two<T> &seen, const T *v, int count) {
  T m = seen.a, sum = 0;
#pragma unroll
  for (int k = 0; k < N; k++) if (k < count) m = v[k] > m ? v[k] : m;
  if (m > seen.a) seen = {m, seen.b == 0 ? 0 : seen.b * exp_down(seen.a - m)};
  const T from = m == (T)-INFINITY ? 0 : m;
#pragma unroll
  for (int k = 0; k < N; k++) if (k < count) sum += exp_down(v[k] - from);
  seen.b += sum;
}

template <class T> static __device__ __forceinline__ two<T> seen_by_both(two<T> p, two<T> q) {
  const T most = p.a > q.a ? p.a : q.a;
  return {most, (p.b == 0 ? 0 : p.a == most ? p.b : p.b * exp_down(p.a - most)) +
    (q.b == 0 ? 0 : q.a == most ? q.b : q.b * exp_down(q.a - most))};
}
#endif
