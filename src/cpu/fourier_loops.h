/* fourier_loops.c's loops for one element type (typed.h). */
#define V T
#include "fourier_pass.h"
#undef V
#define V PASTE(four_, T)
#include "fourier_pass.h"
#undef V
#define V PASTE(wide_, T)
#include "fourier_pass.h"
#undef V

static void FN(pass_of_any)(int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step, void *room) {
  if (s % (int64_t)(WIDTH / sizeof(T)) == 0) PASTE(any_wide_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
  else if (s % 4 == 0) PASTE(any_four_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
  else PASTE(any_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
}
TY_INLINE void FN(by_width)(const int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step) {
  if (s % (int64_t)(WIDTH / sizeof(T)) == 0) PASTE(pass_wide_, T)(R, xr, xi, yr, yi, m, s, w, step);
  else if (s % 4 == 0) PASTE(pass_four_, T)(R, xr, xi, yr, yi, m, s, w, step);
  else PASTE(pass_, T)(R, xr, xi, yr, yi, m, s, w, step);
}

static void FN(pass)(int radix, const void *xr, const void *xi, void *yr, void *yi, int64_t m, int64_t s, const void *w, int64_t step,
  void *room) {
  switch (radix) {
    case 2: FN(by_width)(2, xr, xi, yr, yi, m, s, w, step); break;
    case 3: FN(by_width)(3, xr, xi, yr, yi, m, s, w, step); break;
    case 4: FN(by_width)(4, xr, xi, yr, yi, m, s, w, step); break;
    case 5: FN(by_width)(5, xr, xi, yr, yi, m, s, w, step); break;
    case 8: FN(by_width)(8, xr, xi, yr, yi, m, s, w, step); break;
    case 7: FN(by_width)(7, xr, xi, yr, yi, m, s, w, step); break;
    case 11: FN(by_width)(11, xr, xi, yr, yi, m, s, w, step); break;
    case 13: FN(by_width)(13, xr, xi, yr, yi, m, s, w, step); break;
    default: FN(pass_of_any)(radix, xr, xi, yr, yi, m, s, w, step, room);
  }
}

static void FN(parts)(void *restrict re_, void *restrict im_, const void *restrict pairs_, int64_t n) {
  T *re = re_, *im = im_;
  const T *pairs = pairs_;
  for (int64_t i = 0; i < n; i++) { re[i] = pairs[2 * i]; im[i] = pairs[2 * i + 1]; }
}

static void FN(pairs)(void *restrict pairs_, const void *restrict re_, const void *restrict im_, int64_t n) {
  const T *re = re_, *im = im_;
  T *pairs = pairs_;
  for (int64_t i = 0; i < n; i++) { pairs[2 * i] = re[i]; pairs[2 * i + 1] = im[i]; }
}

static void FN(untangle)(void *restrict pairs_, const void *re_, const void *im_, const void *w_, int64_t h, int64_t s, double between) {
  const T *re = re_, *im = im_, *w = w_;
  T *pairs = pairs_;
  for (int64_t k = 0; k <= h; k++) {
    const T *ar = re + k % h * s, *ai = im + k % h * s, *br = re + (h - k) % h * s, *bi = im + (h - k) % h * s;
    const T f = (T)(k == 0 || k == h ? 0.5 : 0.5 * between), c = k < h ? w[2 * k] : -1, d = k < h ? w[2 * k + 1] : 0;
    for (int64_t q = 0; q < s; q++) {
      const T er = ar[q] + br[q], ei = ai[q] - bi[q], ur = ai[q] + bi[q], ui = br[q] - ar[q];      /* u: times -i */
      pairs[2 * (k * s + q)] = f * (er + ur * c - ui * d);
      pairs[2 * (k * s + q) + 1] = f * (ei + ur * d + ui * c);
    }
  }
}

static void FN(tangle)(void *restrict re_, void *restrict im_, const void *restrict pairs_, const void *w_, int64_t h, int64_t s,
  double between) {
  T *re = re_, *im = im_;
  const T *pairs = pairs_, *w = w_;
  for (int64_t k = 0; k < h; k++) {
    const T *a = pairs + 2 * k * s, *b = pairs + 2 * (h - k) * s;
    const T f = k == 0 ? 1 : (T)between, g = k == 0 ? 0 : f, c = w[2 * k], d = -w[2 * k + 1];
    for (int64_t q = 0; q < s; q++) {
      const T er = f * (a[2 * q] + b[2 * q]), ei = g * (a[2 * q + 1] - b[2 * q + 1]);
      const T ur = f * (a[2 * q] - b[2 * q]), ui = g * (a[2 * q + 1] + b[2 * q + 1]);
      re[k * s + q] = er - (ur * d + ui * c);
      im[k * s + q] = ei + (ur * c - ui * d);
    }
  }
}
