/* The p-norms of differences (cdist), for gcc and nvcc alike: how a difference d enters the sum (take), the norm of the sum (end), and the
 * gradient of d (share, slope). Kinds of p, so that loops needn't test p. */
#ifndef TY_DISTANCES_H
#define TY_DISTANCES_H
#include "math.h"

enum { TY_NORM_ZERO, TY_NORM_ONE, TY_NORM_TWO, TY_NORM_MOST, TY_NORM_ANY, TY_NORM_KINDS };
TY_INLINE int ty_norm_kind(double p) {
  return p == 0 ? TY_NORM_ZERO : p == 1 ? TY_NORM_ONE : p == 2 ? TY_NORM_TWO : p == INFINITY ? TY_NORM_MOST : TY_NORM_ANY;
}

#define TY_DISTANCE(S, T) \
  TY_INLINE T ty_norm_take_##S(int kind, T acc, T d, T p) { \
    const T size = d < 0 ? -d : d; \
    switch (kind) { \
      case TY_NORM_ZERO: return acc + (d != 0); \
      case TY_NORM_ONE: return acc + size; \
      case TY_NORM_TWO: return acc + d * d; \
      case TY_NORM_MOST: return size > acc || size != size ? size : acc; \
      default: return acc + pow_##S(size, p); \
    } } \
  TY_INLINE T ty_norm_end_##S(int kind, T acc, T p) { \
    return kind == TY_NORM_TWO ? sqrt_##S(acc) : kind == TY_NORM_ANY ? pow_##S(acc, 1 / p) : acc; } \
  /* the factor of the gradient that a pair's elements share; 0 where the norm is 0 */ \
  TY_INLINE T ty_norm_share_##S(int kind, T g, T norm, T p) { \
    if (norm == 0 || kind == TY_NORM_ZERO) return 0; \
    return kind == TY_NORM_TWO ? g / norm : kind == TY_NORM_ANY ? g / pow_##S(norm, p - 1) : g; } \
  TY_INLINE T ty_norm_slope_##S(int kind, T share, T d, T norm, T p) { \
    const T size = d < 0 ? -d : d, sign = (T)((d > 0) - (d < 0)); \
    switch (kind) { \
      case TY_NORM_TWO: return share * d; \
      case TY_NORM_MOST: return size == norm ? share * sign : 0; \
      case TY_NORM_ANY: return d == 0 ? 0 : share * sign * pow_##S(size, p - 1); \
      default: return share * sign; \
    } }
TY_DISTANCE(f32, float)
TY_DISTANCE(f64, double)
#undef TY_DISTANCE
#endif
