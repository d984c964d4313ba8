/* The greatest or the least element of a row, for one floating type (typed.h); WORD: the unsigned integer type of its size.
 *
 * Idea: a comparison that keeps NaNs takes longer than reading the element. So numbers are compared plainly, and their bits without the
 * sign are compared too: only a NaN's exceed infinity's. A row that has a NaN is done again by the caller's joins. */
TY_INLINE WORD FN(bits_of)(T x) { WORD u; memcpy(&u, &x, sizeof u); return u; }

/* Extremes of the first elements, mapped, in LANES lanes that begin as `start`. Returns how many elements were taken: 0 if one is NaN. */
TY_INLINE int64_t FN(extremes_of)(T start, T (*map)(T), bool greatest, T *lane, const T *xs, int64_t n) {
  const WORD sign = FN(bits_of)((T)-0.0), infinity = FN(bits_of)((T)INFINITY);
  WORD most[LANES];
  T best[LANES];
  int64_t i = 0;
  EACH_OF(LANES, j) most[j] = 0;
  EACH_OF(LANES, j) best[j] = start;
  for (; i + LANES <= n; i += LANES)
    EACH_OF(LANES, j) {
      const T x = map(xs[i + j]);
      const WORD bits = FN(bits_of)(x) & ~sign;
      best[j] = greatest ? (x > best[j] ? x : best[j]) : x < best[j] ? x : best[j];
      most[j] = bits > most[j] ? bits : most[j];
    }
  WORD more = 0;
  _Pragma("omp simd reduction(|: more)") for (int j = 0; j < LANES; j++) more |= most[j] > infinity;
  const bool exact = !more;
  EACH_OF(LANES, j) lane[j] = exact ? best[j] : start;
  return exact ? i : 0;
}
