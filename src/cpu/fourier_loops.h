/* fourier_loops.c's loops for one element type (typed.h). */
#define V T
#include "fourier_pass.h"
#undef V
#define V PASTE(four_, T)
#include "fourier_pass.h"
#undef V
#define V PASTE(eight_, T)
#include "fourier_pass.h"
/* The first pass, of factor 8, of a single line (s = 1): a vector holds eight neighbours, so eight by eight results are turned.
 * m % 8 == 0. */
static void FN(first_pass)(const T *xr, const T *xi, T *yr, T *yi, int64_t m, const T *w, int64_t step) {
  for (int64_t p = 0; p < m; p += 8) {
    V ar[8], ai[8], br[8], bi[8];
    for (int k = 0; k < 8; k++) { ar[k] = *(const V *)(xr + p + k * m); ai[k] = *(const V *)(xi + p + k * m); }
    PASTE(eight_sums_, V)(br, bi, ar, ai);
    for (int j = 1; j < 8; j++) {
      T tr[8], ti[8];
      for (int i = 0; i < 8; i++) { tr[i] = w[2 * (p + i) * j * step]; ti[i] = w[2 * (p + i) * j * step + 1]; }
      const V wr = *(const V *)tr, wi = *(const V *)ti, re = br[j], im = bi[j];
      br[j] = re * wr - im * wi;
      bi[j] = re * wi + im * wr;
    }
    FN(turned)(yr + 8 * p, br);
    FN(turned)(yi + 8 * p, bi);
  }
}
#undef V
#define V PASTE(wide_, T)
#include "fourier_pass.h"
#undef V

#define LANES (int64_t)(WIDTH / sizeof(T))

static void FN(pass_of_any)(int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step, void *room) {
  if (s % LANES == 0) PASTE(any_wide_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
  else if (LANES > 8 && s % 8 == 0) PASTE(any_eight_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
  else if (s % 4 == 0) PASTE(any_four_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
  else PASTE(any_, T)(R, xr, xi, yr, yi, m, s, w, step, room);
}
TY_INLINE void FN(by_width)(const int R, const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t step) {
  if (s % LANES == 0) PASTE(pass_wide_, T)(R, xr, xi, yr, yi, m, s, w, step);
  else if (LANES > 8 && s % 8 == 0) PASTE(pass_eight_, T)(R, xr, xi, yr, yi, m, s, w, step);
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
    case 8:
      if (s == 1 && m % 8 == 0) FN(first_pass)(xr, xi, yr, yi, m, w, step);
      else FN(by_width)(8, xr, xi, yr, yi, m, s, w, step);
      break;
    case 7: FN(by_width)(7, xr, xi, yr, yi, m, s, w, step); break;
    case 11: FN(by_width)(11, xr, xi, yr, yi, m, s, w, step); break;
    case 13: FN(by_width)(13, xr, xi, yr, yi, m, s, w, step); break;
    default: FN(pass_of_any)(radix, xr, xi, yr, yi, m, s, w, step, room);
  }
}

static void FN(split)(void *restrict re_, void *restrict im_, const void *restrict x_, int64_t stride, int64_t lines,
  int64_t m, double scale) {
  T *re = re_, *im = im_;
  const T *x = x_, t = (T)scale;
#define BLOCK(bytes) \
  if (lines >= bytes / (int)sizeof(T) && m >= bytes / (int)sizeof(T) / 2) { FN(split_##bytes)(re, im, x, stride, lines, m, t); return; }
  BLOCKS(BLOCK)
#undef BLOCK
  if (lines == 1) for (int64_t k = 0; k < m; k++) { re[k] = t * x[2 * k]; im[k] = t * x[2 * k + 1]; }
  else for (int64_t k = 0; k < m; k++)
    for (int64_t q = 0; q < lines; q++) {
      re[k * lines + q] = t * x[q * stride + 2 * k];
      im[k * lines + q] = t * x[q * stride + 2 * k + 1];
    }
}

static void FN(join)(void *restrict o_, int64_t stride, const void *restrict re_, const void *restrict im_, int64_t lines, int64_t m) {
  const T *re = re_, *im = im_;
  T *o = o_;
#define BLOCK(bytes) \
  if (lines >= bytes / (int)sizeof(T) && m >= bytes / (int)sizeof(T) / 2) { FN(join_##bytes)(o, stride, re, im, lines, m); return; }
  BLOCKS(BLOCK)
#undef BLOCK
  if (lines == 1) for (int64_t k = 0; k < m; k++) { o[2 * k] = re[k]; o[2 * k + 1] = im[k]; }
  else for (int64_t k = 0; k < m; k++)
    for (int64_t q = 0; q < lines; q++) { o[q * stride + 2 * k] = re[k * lines + q]; o[q * stride + 2 * k + 1] = im[k * lines + q]; }
}

static void FN(split_rows)(void *restrict re_, void *restrict im_, const void *restrict x_, int64_t stride, int64_t lines, int64_t lanes,
  int64_t m, double scale) {
  T *re = re_, *im = im_;
  const T *x = x_, t = (T)scale;
  for (int64_t k = 0; k < m; k++, re += lanes, im += lanes, x += stride) {
    for (int64_t q = 0; q < lines; q++) { re[q] = t * x[2 * q]; im[q] = t * x[2 * q + 1]; }
    for (int64_t q = lines; q < lanes; q++) re[q] = im[q] = 0;
  }
}

static void FN(join_rows)(void *restrict o_, int64_t stride, const void *restrict re_, const void *restrict im_, int64_t lines,
  int64_t lanes, int64_t m) {
  T *o = o_;
  const T *re = re_, *im = im_;
  for (int64_t k = 0; k < m; k++, re += lanes, im += lanes, o += stride)
    for (int64_t q = 0; q < lines; q++) { o[2 * q] = re[q]; o[2 * q + 1] = im[q]; }
}

static void FN(untangle)(void *restrict yr_, void *restrict yi_, const void *restrict xr_, const void *restrict xi_, const void *w_,
  int64_t h, int64_t s, double ends, double between) {
  const T *re = xr_, *im = xi_, *w = w_;
  T *yr = yr_, *yi = yi_;
  for (int64_t k = 0; k <= h; k++, yr += s, yi += s) {
    const T *ar = re + k % h * s, *ai = im + k % h * s, *br = re + (h - k) % h * s, *bi = im + (h - k) % h * s;
    const T f = (T)(0.5 * (k == 0 || k == h ? ends : between)), c = k < h ? w[2 * k] : -1, d = k < h ? w[2 * k + 1] : 0;
    for (int64_t q = 0; q < s; q++) {
      const T er = ar[q] + br[q], ei = ai[q] - bi[q], ur = ai[q] + bi[q], ui = br[q] - ar[q];      /* u: times -i */
      yr[q] = f * (er + ur * c - ui * d);
      yi[q] = f * (ei + ur * d + ui * c);
    }
  }
}

static void FN(tangle)(void *restrict yr_, void *restrict yi_, const void *restrict xr_, const void *restrict xi_, const void *w_,
  int64_t h, int64_t s, double ends, double between) {
  const T *w = w_;
  T *yr = yr_, *yi = yi_;
  for (int64_t k = 0; k < h; k++, yr += s, yi += s) {
    const T *ar = (const T *)xr_ + k * s, *ai = (const T *)xi_ + k * s;
    const T *br = (const T *)xr_ + (h - k) * s, *bi = (const T *)xi_ + (h - k) * s;
    const T f = (T)(k == 0 ? ends : between), g = k == 0 ? 0 : f, c = w[2 * k], d = -w[2 * k + 1];
    for (int64_t q = 0; q < s; q++) {
      const T er = f * (ar[q] + br[q]), ei = g * (ai[q] - bi[q]);
      const T ur = f * (ar[q] - br[q]), ui = g * (ai[q] + bi[q]);
      yr[q] = er - (ur * d + ui * c);
      yi[q] = ei + (ur * c - ui * d);
    }
  }
}

TY_INLINE void FN(products_of)(T *restrict o, int64_t os, const T *restrict a, int64_t as, const T *restrict b, int64_t bs, int64_t n,
  T sign) {
  for (int64_t i = 0; i < n; i++) {
    const T ar = a[2 * i * as], ai = a[2 * i * as + 1], br = b[2 * i * bs], bi = sign * b[2 * i * bs + 1];
    o[2 * i * os] = ar * br - ai * bi;
    o[2 * i * os + 1] = ar * bi + ai * br;
  }
}
static void FN(products)(void *o, int64_t os, const void *a, int64_t as, const void *b, int64_t bs, int64_t n, double sign) {
  if (os == 1 && as == 1 && bs == 1) FN(products_of)(o, 1, a, 1, b, 1, n, (T)sign);
  else if (os == 1 && as == 1 && bs == 0) FN(products_of)(o, 1, a, 1, b, 0, n, (T)sign);
  else FN(products_of)(o, os, a, as, b, bs, n, (T)sign);
}
