/* The loops of cdist: one row of a beside n rows of b, TY_BLOCK at most, which lie by elements (row j: t[j], t[stride + j], ...); built
 * once for each instruction set, as loops.c is. */
#include "cpu.h"
#include "distances.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define LANES TY_LANES
#define INLINE static inline __attribute__((always_inline))

/* norms: o[j] = |a - b_j|. slopes: da[e] += the sum of share[j] times how |a - b_j| = norm[j] moves with element e of a. */
#define LOOPS(n_, T, S) \
  INLINE void norms_of_##n_(int kind, T *restrict o, const T *a, const T *restrict t, int64_t stride, int64_t d, int64_t n, T p) { \
    for (int64_t j = 0; j < n; j++) o[j] = 0; \
    for (int64_t e = 0; e < d; e++, t += stride) \
      for (int64_t j = 0; j < n; j++) o[j] = ty_norm_take_##S(kind, o[j], a[e] - t[j], p); \
    for (int64_t j = 0; j < n; j++) o[j] = ty_norm_end_##S(kind, o[j], p); } \
  INLINE void slopes_of_##n_(int kind, T *restrict da, const T *restrict share, const T *restrict norm, const T *a, const T *restrict t, \
                             int64_t stride, int64_t d, int64_t n, T p) { \
    for (int64_t e = 0; e < d; e++, t += stride) { \
      T lane[LANES] = {0}, sum = 0; \
      int64_t j = 0; \
      for (; j + LANES <= n; j += LANES) \
        for (int l = 0; l < LANES; l++) lane[l] += ty_norm_slope_##S(kind, share[j + l], a[e] - t[j + l], norm[j + l], p); \
      for (; j < n; j++) sum += ty_norm_slope_##S(kind, share[j], a[e] - t[j], norm[j], p); \
      for (int l = 0; l < LANES; l++) sum += lane[l]; \
      da[e] += sum; } } \
  static void norms_##n_(double p, void *o, const void *a, const void *t, int64_t stride, int64_t d, int64_t n) { \
    switch (ty_norm_kind(p)) { \
      case TY_NORM_ZERO: norms_of_##n_(TY_NORM_ZERO, o, a, t, stride, d, n, 0); break; \
      case TY_NORM_ONE: norms_of_##n_(TY_NORM_ONE, o, a, t, stride, d, n, 1); break; \
      case TY_NORM_TWO: norms_of_##n_(TY_NORM_TWO, o, a, t, stride, d, n, 2); break; \
      case TY_NORM_MOST: norms_of_##n_(TY_NORM_MOST, o, a, t, stride, d, n, 0); break; \
      default: norms_of_##n_(TY_NORM_ANY, o, a, t, stride, d, n, (T)p); } } \
  static void slopes_##n_(double p, void *da, const void *g_, const void *norm_, const void *a, const void *t, int64_t stride, int64_t d, \
                          int64_t n) { \
    T share[TY_BLOCK]; const T *g = g_, *norm = norm_; const int kind = ty_norm_kind(p); \
    for (int64_t j = 0; j < n; j++) share[j] = ty_norm_share_##S(kind, g[j], norm[j], (T)p); \
    switch (kind) { \
      case TY_NORM_ZERO: break; \
      case TY_NORM_ONE: slopes_of_##n_(TY_NORM_ONE, da, share, norm, a, t, stride, d, n, 1); break; \
      case TY_NORM_TWO: slopes_of_##n_(TY_NORM_TWO, da, share, norm, a, t, stride, d, n, 2); break; \
      case TY_NORM_MOST: slopes_of_##n_(TY_NORM_MOST, da, share, norm, a, t, stride, d, n, 0); break; \
      default: slopes_of_##n_(TY_NORM_ANY, da, share, norm, a, t, stride, d, n, (T)p); } }
LOOPS(0, float, f32)
LOOPS(1, double, f64)

const ty_distance_loops PASTE(ty_distance_loops_, TY_ISA) = {.norms = {norms_0, norms_1}, .slopes = {slopes_0, slopes_1}};
