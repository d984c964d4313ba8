/* Means and variances from parts that are joined (Chan, Golub and LeVeque 1979), and the sums that their gradients need.
 *
 * Idea: in one pass a thread sums distances from the first element that it meets. Parts, of threads and blocks, are joined by means and
 * squares, not by sums: two by two, or, where there are many, first their common mean, then the squares of distances from it. Invariant:
 * one element far from the others costs no digits. */
#ifndef TY_MOMENTS_CUH
#define TY_MOMENTS_CUH
#include "device.cuh"

/* What is known of some elements. Forward: n, their number; a, their mean; b, the sum of squared distances from it. Backward: a, the sum of
   the gradient; b, of its products with distances from the mean; n is unused. */
template <class T> struct part { T n, a, b; };

template <class T> static __device__ __forceinline__ part<T> join(bool back, const part<T> &l, const part<T> &r) {
  if (back) return {0, l.a + r.a, l.b + r.b};
  if (l.n == 0 || r.n == 0) return l.n == 0 ? r : l;
  const T n = l.n + r.n, apart = r.a - l.a;
  return {n, l.a + apart * (r.n / n), l.b + r.b + apart * apart * (l.n * r.n / n)};
}
template <class T> struct joining {
  bool back;
  __device__ __forceinline__ part<T> operator()(const part<T> &l, const part<T> &r) const { return join(back, l, r); }
};

template <class T> static __device__ __forceinline__ two<T> add(two<T> x, two<T> y) { return {x.a + y.a, x.b + y.b}; }

/* The part of n elements. Forward: s1 and s2 sum their distances from center and the squares of these. Backward: they are a and b. */
template <class T> static __device__ __forceinline__ part<T> part_of_sums(bool back, T n, T center, T s1, T s2) {
  if (back) return {0, s1, s2};
  if (n == 0) return {0, 0, 0};
  const T left = s2 - s1 * (s1 / n);
  return {n, center + s1 / n, left < 0 ? (T)0 : left};     /* a NaN stays */
}

/* Joins parts 0 to count - 1, which threads take in turns (turn w of `turns`). read(p) gives part p; part 0 isn't empty. sum(v) adds up v
 * over the threads of all turns, for each of them. No branch or division separates AHEAD reads. */
template <class T, int AHEAD = 8, class READ, class SUM> static __device__ __forceinline__ part<T> join_parts(bool back, int count, int w,
  int turns, const READ &read, const SUM &sum) {
  /* the sum of take(part) over all parts; past the last one, `as` stands in for the mean */
  const auto over = [&](T as, const auto &take) {
    two<T> all = {0, 0};
    for (int p = w; p < count; p += AHEAD * turns) {
      part<T> v[AHEAD];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) v[u] = p + u * turns < count ? read(p + u * turns) : part<T>{0, as, 0};
#pragma unroll
      for (int u = 0; u < AHEAD; u++) all = add(all, take(v[u]));
    }
    return sum(all);
  };
  if (back) {
    const two<T> all = over(0, [](const part<T> &v) { return two<T>{v.a, v.b}; });
    return {0, all.a, all.b};
  }
  const T first = read(0).a;
  const two<T> all = over(first, [&](const part<T> &v) { return two<T>{v.n, v.n * (v.a - first)}; });
  const T mean = first + all.b / all.a;
  return {all.a, mean, over(mean, [&](const part<T> &v) { return two<T>{v.b + v.n * (v.a - mean) * (v.a - mean), 0}; }).a};
}
#endif
