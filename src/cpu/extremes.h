/* The greatest or the least of a row, for one floating type (typed.h); WORD: the unsigned type of its size.
 *
 * Idea: what keeps a NaN compares twice for each element, which takes longer than reading it. So numbers are compared once, and their bits
 * once without the sign, of which only a NaN's are greater than infinity's; a row that has one is done again by the joins. */
TY_INLINE WORD FN(bits_of)(T x) { WORD u; memcpy(&u, &x, sizeof u); return u; }

/* Of the first elements, mapped, into LANES lanes, which start as that: how many have been taken; 0 where there is a NaN among them. */
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
