/* The greatest or the least elements of rows, for one floating type (typed.h); WORD: an integer type of its size.
 *
 * Idea: a comparison that keeps NaNs takes several times as long as a plain one. So elements are searched for NaNs first, while they are
 * in the cache, and then compared plainly. Invariant: what has a NaN is left to the caller's joins, and of equal elements (0 and -0) the
 * same one is taken in either way. */
TY_INLINE bool FN(any_nan)(T (*map)(T), const T *xs, int64_t n) {
  WORD odd = 0;
  _Pragma("omp simd reduction(|: odd)") for (int64_t i = 0; i < n; i++) {
    const T x = map(xs[i]);
    odd |= x != x;
  }
  return odd != 0;
}
TY_INLINE T FN(pick)(bool greatest, T best, T x) { return greatest ? (x > best ? x : best) : x < best ? x : best; }

/* Joins the first elements, mapped, to LANES lanes, up to where a NaN comes. Returns how many elements were taken, a multiple of LANES. */
TY_INLINE int64_t FN(extremes_of)(T (*map)(T), bool greatest, T *lane, const T *xs, int64_t n) {
  T best[LANES];
  int64_t i = 0;
  EACH_OF(LANES, j) best[j] = lane[j];
  while (i + LANES <= n) {
    const int64_t end = i + TY_MIN(n - i, 4096) / LANES * LANES;
    if (FN(any_nan)(map, xs + i, end - i)) break;
    for (; i < end; i += LANES) EACH_OF(LANES, j) best[j] = FN(pick)(greatest, best[j], map(xs[i + j]));
  }
  EACH_OF(LANES, j) lane[j] = best[j];
  return i;
}

/* o[i] = the extreme of row i, of at most SIDE contiguous rows of n elements, LANES or more; start: no element is beyond it. False: one
 * is NaN, and nothing was done. */
TY_INLINE bool FN(extremes_of_rows)(T start, T (*map)(T), bool greatest, A *o, const T *xs, int rows, int64_t n) {
  T eight[SIDE * 8], side[8][SIDE];
  if (FN(any_nan)(map, xs, rows * n)) return false;
  if (rows < SIDE) memset(eight, 0, sizeof eight);
  for (int row = 0; row < rows; row++, xs += n) {
    T best[LANES];
    int64_t i = LANES;
    EACH_OF(LANES, j) best[j] = FN(pick)(greatest, start, map(xs[j]));
    for (; i + LANES <= n; i += LANES) EACH_OF(LANES, j) best[j] = FN(pick)(greatest, best[j], map(xs[i + j]));
    if (i < n) {
      TAIL(T, last, xs + i, n - i, start);
      EACH_OF(LANES, j) best[j] = FN(pick)(greatest, best[j], map(last[j]));
    }
    EACH_OF(16, j) best[j] = FN(pick)(greatest, best[j], best[j + 16]);
    EACH_OF(8, j) eight[row * 8 + j] = FN(pick)(greatest, best[j], best[j + 8]);
  }
  transpose_words(sizeof(T), side, SIDE, eight, 8, SIDE, 8);
  for (int h = 4; h; h /= 2)
    for (int j = 0; j < h; j++) EACH_OF(SIDE, i) side[j][i] = FN(pick)(greatest, side[j][i], side[j + h][i]);
  for (int i = 0; i < rows; i++) o[i] = (A)side[0][i];
  return true;
}
