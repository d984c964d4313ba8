/* Where resizing reads: for output i of a dim, up to four inputs (taps) and their weights. One definition for all backends; coordinates
 * are PyTorch's. */
#ifndef TY_TAPS_H
#define TY_TAPS_H
#include "math.h"
#include "names.h"

#define TY_RESIZINGS(X) X(NEAREST, "nearest") X(NEAREST_EXACT, "nearest-exact") X(BILINEAR, "bilinear") X(BICUBIC, "bicubic")
enum { TY_RESIZINGS(TY_AS_NUMBER) };

TY_INLINE int ty_taps_of(int mode) { return mode == TY_BICUBIC ? 4 : mode == TY_BILINEAR ? 2 : 1; }

TY_INLINE double ty_cubic(double t) {    /* Keys' kernel with a = -3/4 */
  t = fabs(t);
  return t <= 1 ? (1.25 * t - 2.25) * t * t + 1 : t < 2 ? ((-0.75 * t + 3.75) * t - 6) * t + 3 : 0;
}

/* factor: outputs per input; 0: the sizes decide. Below 0: -factor, and nearest uses it even where out is in or 2 * in, as PyTorch does
 * for 1 and 3 dims, but not for images. at: 0-based, ascending in i and in tap. */
TY_INLINE void ty_taps(int64_t in, int64_t out, int mode, int corners, double factor, int64_t i, int64_t at[4], double w[4]) {
  double scale = factor != 0 ? 1 / fabs(factor) : (double)in / (double)out;
  if (corners && mode >= TY_BILINEAR) scale = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
  double x = corners ? (double)i * scale : ((double)i + 0.5) * scale - 0.5;
  /* as PyTorch, in float32 */
  if (mode == TY_NEAREST)
    x = factor >= 0 && out == in ? (double)i : factor >= 0 && out == 2 * in ? (double)(i / 2) : (double)floorf((float)i * (float)scale);
  if (mode == TY_NEAREST_EXACT) x = (double)floorf(((float)i + 0.5f) * (float)scale);
  if (mode == TY_BILINEAR && out == in) x = (double)i;
  if (mode == TY_BILINEAR && x < 0) x = 0;
  int64_t base = (int64_t)floor(x);
  double f = x - (double)base;
  for (int j = 0; j < 4; j++) {            /* a constant count: unrolled, at and w lie in registers */
    if (j >= ty_taps_of(mode)) break;
    int64_t k = base + j - (mode == TY_BICUBIC);
    at[j] = k < 0 ? 0 : k > in - 1 ? in - 1 : k;
    w[j] = mode == TY_BICUBIC ? ty_cubic(f - (j - 1)) : mode == TY_BILINEAR ? (j ? f : 1 - f) : 1;
  }
}
#endif
