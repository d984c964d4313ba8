/* Discrete Fourier transforms: their kinds, and how sizes are factored. A transform sums x[k] e^(-2 pi i j k / n) over k, times a scale.
 *
 * Idea: Stockham's passes, one for each factor of the size; results come out in order. Complex numbers are pairs. A real signal of even
 * size n is transformed as n / 2 complex numbers, then untangled. Invariant: each kind's gradient is a transform of some kind. */
#ifndef TY_FOURIER_H
#define TY_FOURIER_H
#include <stdbool.h>
#include "math.h"
#include "names.h"

/* REAL: n reals to the first n / 2 + 1 sums; REAL_TWICE doubles those that have a conjugate beyond (all but the first and, for even n, the
 * last). HALF: from such a half back to n reals; sums with a conjugate count twice, for it, and imaginary parts of the others are
 * ignored. HALF_ONCE: they count once. */
#define TY_FOURIER_KINDS(X) X(FORWARD, "forward") X(INVERSE, "inverse") X(REAL, "real") X(REAL_TWICE, "real_twice") X(HALF, "half") \
  X(HALF_ONCE, "half_once")
enum { TY_FOURIER_KINDS(TY_AS_NUMBER) };

TY_INLINE bool ty_fourier_from_pairs(int kind) { return kind < TY_REAL || kind >= TY_HALF; }
TY_INLINE bool ty_fourier_to_pairs(int kind) { return kind < TY_HALF; }
/* How many numbers a line of the operand has, and one of the result; a pair is two. */
TY_INLINE int64_t ty_fourier_in(int kind, int64_t n) { return kind >= TY_HALF ? n / 2 * 2 + 2 : kind >= TY_REAL ? n : 2 * n; }
TY_INLINE int64_t ty_fourier_out(int kind, int64_t n) { return kind >= TY_HALF ? n : kind >= TY_REAL ? n / 2 * 2 + 2 : 2 * n; }
TY_INLINE bool ty_fourier_back(int kind) { return kind == TY_INVERSE || kind >= TY_HALF; }
/* How many complex numbers the passes go over. */
TY_INLINE int64_t ty_fourier_size(int kind, int64_t n) { return kind >= TY_REAL && n % 2 == 0 ? n / 2 : n; }
#define TY_FOURIER_BUILT 13      /* the largest factor that passes are built for; larger ones take plain sums */
#define TY_FOURIER_MOST 1024
#define TY_FOURIER_MOST_GPU 64   /* there, a convolution takes less than plain sums of more */
/* The next pass's factor; 0: all prime factors are TY_FOURIER_MOST or more. */
TY_INLINE int ty_fourier_radix(int64_t n) {
  if (n % 4 == 0) return 4;
  if (n % 2 == 0) return 2;
  for (int r = 3; r < TY_FOURIER_MOST; r += 2) if (n % r == 0) return r;
  return 0;
}
/* Whether passes exist for size n, with factors up to most; other sizes become a convolution (lua/tycho/functional/spectral.lua). */
TY_INLINE bool ty_fourier_takes(int kind, int64_t n, int most) {
  int64_t left = ty_fourier_size(kind, n);
  for (int r; left > 1 && (r = ty_fourier_radix(left)) && r <= most;) left /= r;
  return left == 1;
}
#endif
