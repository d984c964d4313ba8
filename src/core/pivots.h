/* Determinants from the pivots of LU, for gcc and nvcc alike.
 *
 * Idea: their product is a number of 0.5 to 1 (or 0, infinite, NaN) and a power of 2, from which come the determinant, its logarithm and
 * its sign. Invariant: no product on the way leaves float64's range. */
#ifndef TY_PIVOTS_H
#define TY_PIVOTS_H
#include "math.h"

typedef struct { double value; int64_t exponent; } ty_pivots;        /* begins as {1, 0} */
/* exchanged: this pivot's row was exchanged with another, which turns the sign. */
TY_INLINE void ty_pivots_take(ty_pivots *p, double pivot, int exchanged) {
  int e = 0, f = 0;
  p->value = frexp(p->value * frexp(exchanged ? -pivot : pivot, &e), &f);
  if (pivot - pivot == 0) p->exponent += e + f;          /* of an infinite one e isn't specified */
}
TY_INLINE double ty_determinant(ty_pivots p) {
  return ldexp(p.value, (int)(p.exponent > 4000 ? 4000 : p.exponent < -4000 ? -4000 : p.exponent));
}
TY_INLINE double ty_log_determinant(ty_pivots p) { return log(fabs(p.value)) + (double)p.exponent * 0.6931471805599453; }
/* 0 of a singular matrix */
TY_INLINE double ty_sign_of_determinant(ty_pivots p) { return p.value > 0 ? 1 : p.value < 0 ? -1 : p.value; }
#endif
