/* Fourier transforms of lines of contiguous elements (core/fourier.h). Lines of up to TY_K_FOURIER_SHARED complex float32 numbers stay in
 * a block's shared memory between one read and one write of global memory; longer ones go through it in each pass.
 *
 * Idea: a thread computes a butterfly of a pass. Only the forward sign is here: the other one swaps real and imaginary parts. Invariant: a
 * pass reads one of two buffers and writes the other, so that one barrier between passes is enough. */
#include "device.cuh"
#include "fourier.h"

#define THREADS 256

template <class T> struct alignas(2 * sizeof(T)) pair { T re, im; };
template <class T> static __device__ __forceinline__ pair<T> times(pair<T> a, pair<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> static __device__ __forceinline__ pair<T> swapped(pair<T> a, bool swap) { return swap ? pair<T>{a.im, a.re} : a; }

/* e^(-2 pi i k / n), 0 <= k < n */
static __device__ __forceinline__ pair<float> turn(int64_t k, int64_t n, float) {
  float s, c;
  ty_sincos_2pi((float)k / (float)n, &s, &c);
  return {c, -s};
}
static __device__ __forceinline__ pair<double> turn(int64_t k, int64_t n, double) {
  const double angle = 6.283185307179586 * ((double)k / (double)n);
  return {cos(angle), -sin(angle)};
}

/* ---- element k of the first pass's input (taken) and of the result (give), of lines that begin at x and o ---- */

/* Where a line of `numbers` numbers begins; width: numbers of an element, 2 of pairs. */
template <class T> static __device__ __forceinline__ T *line_at(T *first, int64_t line, int64_t numbers, int64_t inner, int width) {
  return first + line / inner * inner * numbers + line % inner * width;
}
template <class T> static __device__ __forceinline__ const T *input(const ty_k_fourier &a, int64_t line) {
  return line_at((const T *)a.x, line, a.in, a.inner, ty_fourier_from_pairs(a.kind) ? 2 : 1);
}
template <class T> static __device__ __forceinline__ T *output(const ty_k_fourier &a, int64_t line) {
  return line_at((T *)a.o, line, a.out, a.inner, ty_fourier_to_pairs(a.kind) ? 2 : 1);
}

template <class T> static __device__ __forceinline__ pair<T> pair_at(const ty_k_fourier &a, const T *x, int64_t k) {
  x += 2 * k * a.inner;                    /* no pack: lines of an odd size may begin at an odd place */
  return {x[0], x[ty_fourier_from_pairs(a.kind) ? 1 : a.inner]};
}
template <class T> static __device__ __forceinline__ pair<T> taken(const ty_k_fourier &a, const T *x, int64_t k) {
  if (a.kind < TY_REAL) return pair_at(a, x, k);
  const bool odd = a.n % 2;
  if (a.kind < TY_HALF) return odd ? pair<T>{x[k * a.inner], 0} : pair_at(a, x, k);
  const T once = k && a.kind == TY_HALF_ONCE ? (T)0.5 : (T)1;
  pair<T> u = pair_at(a, x, odd && k > a.n - k ? a.n - k : k);
  if (odd) return {once * u.re, k == 0 ? 0 : k > a.n - k ? -once * u.im : once * u.im};
  const pair<T> v = pair_at(a, x, a.m - k), w = turn(k, a.n, T());
  if (k == 0) return {u.re + v.re, u.re - v.re};
  const pair<T> o = times(pair<T>{once * (u.re - v.re), once * (u.im + v.im)}, pair<T>{w.re, -w.im});
  return {once * (u.re + v.re) - o.im, once * (u.im - v.im) + o.re};
}

/* z: the line after the last pass */
template <class T> static __device__ __forceinline__ void give(const ty_k_fourier &a, const pair<T> *z, T *o, int64_t k) {
  const bool back = ty_fourier_back(a.kind);
  const T scale = (T)a.scale;
  if (a.kind >= TY_HALF && a.n % 2) { o[k * a.inner] = scale * swapped(z[k], back).re; return; }
  pair<T> u = swapped(z[k % a.m], back);
  if (a.kind == TY_REAL || a.kind == TY_REAL_TWICE) {
    T times_between = k && a.kind == TY_REAL_TWICE && !(a.n % 2 == 0 && k == a.m) ? (T)2 : (T)1;
    if (a.n % 2 == 0) {
      const pair<T> v = z[(a.m - k) % a.m], w = k < a.m ? turn(k, a.n, T()) : pair<T>{-1, 0};
      const pair<T> e = times(pair<T>{u.im + v.im, v.re - u.re}, w);
      u = {u.re + v.re + e.re, u.im - v.im + e.im};
      times_between /= 2;
    }
    u = {times_between * u.re, times_between * u.im};
  }
  o += 2 * k * a.inner;
  o[0] = scale * u.re;
  o[ty_fourier_to_pairs(a.kind) ? 1 : a.inner] = scale * u.im;
}

/* ---- a pass: butterfly i of m / R. left: the length of its transforms; done: the radices before, multiplied ---- */

template <int R, class T> static __device__ __forceinline__ void butterfly(const pair<T> *x, pair<T> *y, int64_t left, int64_t done,
  int64_t i) {
  const int64_t m = left / R, p = i / done, q = i - p * done;
  pair<T> a[R], b[R];
#pragma unroll
  for (int k = 0; k < R; k++) a[k] = x[q + done * (p + k * m)];
  if (R == 2) {
    b[0] = {a[0].re + a[1].re, a[0].im + a[1].im};
    b[1] = {a[0].re - a[1].re, a[0].im - a[1].im};
  } else if (R == 4) {
    const pair<T> e = {a[0].re + a[2].re, a[0].im + a[2].im}, f = {a[0].re - a[2].re, a[0].im - a[2].im};
    const pair<T> g = {a[1].re + a[R - 1].re, a[1].im + a[R - 1].im}, h = {a[1].im - a[R - 1].im, a[R - 1].re - a[1].re};
    b[0] = {e.re + g.re, e.im + g.im};
    b[1] = {f.re + h.re, f.im + h.im};
    b[2 % R] = {e.re - g.re, e.im - g.im};
    b[R - 1] = {f.re - h.re, f.im - h.im};
  } else {                                 /* odd R: elements k and R - k together make results j and R - j */
    const pair<T> w1 = turn(1, R, T());
    pair<T> w[R];                          /* e^(-2 pi i k / R): constants, once compiled */
    w[0] = {1, 0};
#pragma unroll
    for (int k = 1; k < R; k++) w[k] = times(w[k - 1], w1);
    b[0] = a[0];
#pragma unroll
    for (int k = 1; k < R; k++) b[0] = {b[0].re + a[k].re, b[0].im + a[k].im};
#pragma unroll
    for (int j = 1; j <= R / 2; j++) {
      pair<T> c = a[0], d = {0, 0};
#pragma unroll
      for (int k = 1; k <= R / 2; k++) {
        const pair<T> v = w[j * k % R];
        c = {c.re + v.re * (a[k].re + a[R - k].re), c.im + v.re * (a[k].im + a[R - k].im)};
        d = {d.re - v.im * (a[k].im - a[R - k].im), d.im + v.im * (a[k].re - a[R - k].re)};
      }
      b[j] = {c.re + d.re, c.im + d.im};
      b[R - j] = {c.re - d.re, c.im - d.im};
    }
  }
  const pair<T> w1 = turn(p, left, T());
  pair<T> w = w1;
  y += q + done * R * p;
  y[0] = b[0];
#pragma unroll
  for (int j = 1; j < R; j++) {
    y[done * j] = times(b[j], w);
    w = times(w, w1);
  }
}

/* Result i of a pass of any radix r, by a plain sum. */
template <class T> static __device__ __forceinline__ void sum_at(int r, const pair<T> *x, pair<T> *y, int64_t left, int64_t done,
  int64_t i) {
  const int64_t m = left / r, rest = i / done, q = i - rest * done, p = rest / r;
  const int j = (int)(rest - p * r);
  pair<T> sum = {0, 0};
  for (int k = 0, at = 0; k < r; k++, at = at + j < r ? at + j : at + j - r) {
    const pair<T> v = times(x[q + done * (p + k * m)], turn(at, r, T()));
    sum = {sum.re + v.re, sum.im + v.im};
  }
  y[i] = times(sum, turn(p * j, left, T()));
}

/* MOST: the largest radix that the kernel is built for; larger ones take more registers. */
template <int MOST, class T> static __device__ __forceinline__ void pass(int radix, const pair<T> *x, pair<T> *y, int64_t left,
  int64_t done, int64_t i) {
  switch (radix) {
    case 2: butterfly<2>(x, y, left, done, i); break;
    case 3: butterfly<3>(x, y, left, done, i); break;
    case 4: butterfly<4>(x, y, left, done, i); break;
    case 5: butterfly<5>(x, y, left, done, i); break;
    case 7: butterfly<7>(x, y, left, done, i); break;
    case 11: if (MOST >= 11) butterfly<MOST >= 11 ? 11 : 2>(x, y, left, done, i); break;
    default: if (MOST >= 13) butterfly<MOST >= 13 ? 13 : 2>(x, y, left, done, i);
  }
}

/* ---- in shared memory: threadIdx.y counts a block's lines ---- */

template <class T, int MOST> __global__ void __launch_bounds__(THREADS) fourier_shared(const ty_k_fourier a) {
  __shared__ pair<T> s[2][TY_K_FOURIER_SHARED * sizeof(float) / sizeof(T)];
  const int64_t line = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const bool there = line < a.lines;
  const int m = (int)a.m, t = (int)threadIdx.x, step = (int)blockDim.x;
  pair<T> *x = s[0] + threadIdx.y * m, *y = s[1] + threadIdx.y * m;
  const T *const from = input<T>(a, line);
  for (int k = t; there && k < m; k += step) x[k] = swapped(taken(a, from, k), ty_fourier_back(a.kind));
  __syncthreads();
  int done = 1;
  for (int left = m; left > 1;) {
    const int r = ty_fourier_radix(left);
    if (r > TY_FOURIER_BUILT) for (int i = t; there && i < m; i += step) sum_at(r, x, y, left, done, i);
    else for (int i = t; there && i < m / r; i += step) pass<MOST>(r, x, y, left, done, i);
    __syncthreads();
    pair<T> *const z = x;
    x = y;
    y = z;
    left /= r;
    done *= r;
  }
  T *const to = output<T>(a, line);
  for (int k = t; there && k < a.elements; k += step) give(a, x, to, k);
}

/* ---- in global memory ---- */

template <class T> __global__ void __launch_bounds__(THREADS) fourier_take(const ty_k_fourier a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < a.lines * a.m) ((pair<T> *)a.work[0])[i] = swapped(taken(a, input<T>(a, i / a.m), i % a.m), ty_fourier_back(a.kind));
}
template <class T, int MOST> __global__ void __launch_bounds__(THREADS) fourier_pass(const ty_k_fourier a, int from, int radix,
  int64_t left, int64_t done) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, each = radix > TY_FOURIER_BUILT ? a.m : a.m / radix, line = i / each;
  if (line >= a.lines) return;
  const pair<T> *x = (const pair<T> *)a.work[from] + line * a.m;
  pair<T> *y = (pair<T> *)a.work[!from] + line * a.m;
  if (radix > TY_FOURIER_BUILT) sum_at(radix, x, y, left, done, i - line * each);
  else pass<MOST>(radix, x, y, left, done, i - line * each);
}
template <class T> __global__ void __launch_bounds__(THREADS) fourier_give(const ty_k_fourier a, int from) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, line = i / a.elements;
  if (line < a.lines) give(a, (const pair<T> *)a.work[from] + line * a.m, output<T>(a, line), i - line * a.elements);
}

template <class T, int MOST> static cudaError_t launch(const ty_k_fourier &a, cudaStream_t s) {
  auto shared = fourier_shared<T, MOST>;
  auto pass = fourier_pass<T, MOST>;
  if (a.m <= (int64_t)(TY_K_FOURIER_SHARED * sizeof(float) / sizeof(T))) {
    const int most = (int)(TY_K_FOURIER_SHARED * sizeof(float) / sizeof(T) / a.m);
    int x = 32;
    while (x < THREADS && 4 * x < a.m) x *= 2;
    const int y = most < THREADS / x ? most : THREADS / x;
    return TY_LAUNCH(shared, blocks_for(a.lines, y), dim3((unsigned)x, (unsigned)y), s, a);
  }
  cudaError_t e = TY_LAUNCH(fourier_take<T>, blocks_for(a.lines * a.m, THREADS), THREADS, s, a);
  int from = 0;
  int64_t done = 1;
  for (int64_t left = a.m; left > 1 && e == cudaSuccess; from = !from) {
    const int r = ty_fourier_radix(left);
    e = TY_LAUNCH(pass, blocks_for(a.lines * (r > TY_FOURIER_BUILT ? a.m : a.m / r), THREADS), THREADS, s, a, from, r, left, done);
    left /= r;
    done *= r;
  }
  return e == cudaSuccess ? TY_LAUNCH(fourier_give<T>, blocks_for(a.lines * a.elements, THREADS), THREADS, s, a, from) : e;
}

cudaError_t ty_k_fourier_lines(const ty_k_fourier *p, cudaStream_t s) {
  const ty_k_fourier a = *p;
  const bool large = a.m % 11 == 0 || a.m % 13 == 0;
  if (a.dtype == TY_F32) return large ? launch<float, 13>(a, s) : launch<float, 7>(a, s);
  return large ? launch<double, 13>(a, s) : launch<double, 7>(a, s);
}

/* ---- products of pairs: a thread computes one ---- */

template <class T> __global__ void __launch_bounds__(THREADS) pairs_product(const ty_k_pairs a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n) return;
  const T *x = (const T *)a.x[0], *y = (const T *)a.x[1];
  int64_t left = i;
  for (int d = a.ndim - 1; d >= 0; d--) {
    const int64_t at = left % a.shape[d];
    left /= a.shape[d];
    x += at * a.stride[0][d];
    y += at * a.stride[1][d];
  }
  const pair<T> z = times(pair<T>{x[0], x[a.between[0]]}, pair<T>{y[0], a.conjugate ? -y[a.between[1]] : y[a.between[1]]});
  ((pair<T> *)a.o)[i] = z;
}

cudaError_t ty_k_pairs_product(const ty_k_pairs *p, cudaStream_t s) {
  const ty_k_pairs a = *p;
  return a.dtype == TY_F32 ? TY_LAUNCH(pairs_product<float>, blocks_for(a.n, THREADS), THREADS, s, a)
                           : TY_LAUNCH(pairs_product<double>, blocks_for(a.n, THREADS), THREADS, s, a);
}
