/* Where a grid's points read a picture (grid_sample): coordinates -1 to 1 become pixels that count from 0. One definition for all
 * backends; the rules at the borders are PyTorch's. */
#ifndef TY_GRID_POINTS_H
#define TY_GRID_POINTS_H
#include "math.h"
#include "names.h"

#define TY_PADDINGS(X) X(PAD_ZEROS, "zeros") X(PAD_BORDER, "border") X(PAD_REFLECTION, "reflection")
enum { TY_PADDINGS(TY_AS_NUMBER) };
#define TY_GRID_MODES(X) X(GRID_BILINEAR, "bilinear") X(GRID_NEAREST, "nearest")
enum { TY_GRID_MODES(TY_AS_NUMBER) };

/* The place along one dim. corners: -1 and 1 are the centres of the first and the last pixel, else their outer borders. *slope: the
 * place's derivative in g, 0 where it is clamped. NaN reads as -1. */
#define TY_PLACE(S, T, F) \
  TY_INLINE T ty_place_##S(T g, int64_t size, int padding, int corners, T *slope) { \
    const T span = (T)(corners ? size - 1 : size), half = span / 2, last = (T)(size - 1), low = corners ? 0 : (T)-0.5; \
    const T v = g != g ? -1 : g; \
    T p = corners ? (v + 1) * half : ((v + 1) * span - 1) / 2, s = half; \
    if (padding == TY_PAD_REFLECTION) {      /* mirrored at low and low + span */ \
      const T d = __builtin_fabs##F(p - low), turns = __builtin_floor##F(span == 0 ? 0 : d / span), rest = d - turns * span; \
      const int odd = __builtin_floor##F(turns / 2) * 2 != turns; \
      s = (p < low) != odd ? -s : s; \
      p = span == 0 ? 0 : (odd ? span - rest : rest) + low; } \
    s = padding != TY_PAD_ZEROS && !(p > 0 && p < last) ? 0 : s; \
    p = padding == TY_PAD_ZEROS ? p : p > 0 ? p < last ? p : last : 0; \
    *slope = s; \
    return p; }
TY_PLACE(f32, float, f)
TY_PLACE(f64, double, )
#undef TY_PLACE

/* The four pixels that a point reads, row by row: places in the picture (at), weights (k), and the weights' derivatives in the point's
 * x and y (kx, ky); all 0 outside. nearest: only the first. */
#define TY_FOUR(S, T, F) \
  TY_INLINE void ty_four_##S(T gx, T gy, int64_t h, int64_t w, int nearest, int padding, int corners, int32_t at[4], T k[4], T kx[4], \
                             T ky[4]) { \
    T sx, sy, x = ty_place_##S(gx, w, padding, corners, &sx), y = ty_place_##S(gy, h, padding, corners, &sy); \
    x = x > -2 ? x < (T)w + 1 ? x : (T)w + 1 : -2; \
    y = y > -2 ? y < (T)h + 1 ? y : (T)h + 1 : -2; \
    const T x0 = nearest ? __builtin_rint##F(x) : __builtin_floor##F(x), y0 = nearest ? __builtin_rint##F(y) : __builtin_floor##F(y); \
    const T fx = nearest ? 0 : x - x0, fy = nearest ? 0 : y - y0; \
    for (int i = 0; i < 4; i++) { \
      const int32_t col = (int32_t)x0 + (i & 1), row = (int32_t)y0 + (i >> 1); \
      const int in = (col >= 0) & (col < (int32_t)w) & (row >= 0) & (row < (int32_t)h) & (!nearest | (i == 0)); \
      const T wx = i & 1 ? fx : 1 - fx, wy = i >> 1 ? fy : 1 - fy; \
      at[i] = in ? row * (int32_t)w + col : 0; \
      k[i] = in ? wx * wy : 0; \
      kx[i] = in ? (i & 1 ? sx : -sx) * wy : 0; \
      ky[i] = in ? (i >> 1 ? sy : -sy) * wx : 0; } }
TY_FOUR(f32, float, f)
TY_FOUR(f64, double, )
#undef TY_FOUR
#endif
