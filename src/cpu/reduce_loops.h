/* Reductions' loops for one element type (typed.h), float, double or int64; A, SA: its accumulator's type and name.
 *
 * Idea: LANES partial results side by side are combined to one by halves, to eight in T and then in A, everywhere in the same order, so
 * that an op gives the same bits alone and in a fused kernel. An op (`reduction`) is a set of functions, constant where the loops are
 * inlined for each op of ops.def. */
#define REDUCTION FN(reduction)
typedef struct {
  T start;                                 /* joining it, also mapped, changes nothing */
  T (*map)(T x), (*join)(T acc, T x);
  A (*merge)(A acc, A x);                  /* join of accumulators */
  bool picks;                              /* as ty_picks says */
} REDUCTION;

/* Combines a row to eight partial results, as far as vectors do it. */
TY_INLINE void FN(eight_of)(REDUCTION r, T *eight, const T *xs, int64_t n) {
  T lane[LANES];
  int64_t i = 0;
  EACH_OF(LANES, j) lane[j] = r.start;
  if (r.picks) i = FN(extremes_of)(r.map, r.join(1, 2) == 2, lane, xs, n);
  for (; i + LANES <= n; i += LANES)
    EACH_OF(LANES, j) lane[j] = r.join(lane[j], r.map(xs[i + j]));
  if (i < n) {
    TAIL(T, last, xs + i, n - i, r.start);
    EACH_OF(LANES, j) lane[j] = r.join(lane[j], r.map(last[j]));
  }
  EACH_OF(16, j) lane[j] = r.join(lane[j], lane[j + 16]);
  EACH_OF(8, j) eight[j] = r.join(lane[j], lane[j + 8]);
}

TY_INLINE void FN(row_of)(REDUCTION r, A *out, const T *x, int64_t n) {
  T eight[8];
  A part[8];
  FN(eight_of)(r, eight, x, n);
  EACH_OF(8, j) part[j] = (A)eight[j];
  for (int h = 4; h; h /= 2)
    for (int j = 0; j < h; j++) part[j] = r.merge(part[j], part[j + h]);
  *out = part[0];
}

/* As row_of, for contiguous rows: SIDE rows side by side, short rows from the start, others once each is a vector. */
TY_INLINE void FN(rows_of)(REDUCTION r, A *o, const T *xs, int64_t rows, int64_t n) {
  const T none = r.join(r.start, r.map(r.start));
  T turned[SHORT][SIDE], eight[SIDE * 8];
  A side[8][SIDE];
  for (; rows > 0; rows -= SIDE, xs += SIDE * n, o += SIDE) {
    const int m = (int)TY_MIN(rows, SIDE), k = (int)TY_MIN(n, 8);
    if (r.picks && n >= SHORT && FN(extremes_of_rows)(r.start, r.map, r.join(1, 2) == 2, o, xs, m, n)) continue;
    if (m < SIDE) {
      memset(turned, 0, sizeof turned);
      memset(eight, 0, sizeof eight);
    }
    if (n < SHORT) {
      transpose_words(sizeof(T), turned, SIDE, xs, n, m, n);
      for (int j = 0; j < n; j++) EACH_OF(SIDE, i) turned[j][i] = r.join(r.join(r.start, r.map(turned[j][i])), none);
      for (int h = SHORT / 2; h >= 8; h /= 2)
        for (int j = 0; j < h && j + h < n; j++) EACH_OF(SIDE, i) turned[j][i] = r.join(turned[j][i], turned[j + h][i]);
    } else {
      for (int i = 0; i < m; i++) FN(eight_of)(r, eight + i * 8, xs + i * n, n);
      transpose_words(sizeof(T), turned, SIDE, eight, 8, SIDE, 8);
    }
    for (int j = 0; j < k; j++) EACH_OF(SIDE, i) side[j][i] = (A)turned[j][i];
    for (int h = 4; h; h /= 2)
      for (int j = 0; j < h && j + h < k; j++) EACH_OF(SIDE, i) side[j][i] = r.merge(side[j][i], side[j + h][i]);
    memcpy(o, side, (size_t)m * sizeof *o);
  }
}

/* Joins rows, which lie step apart, to acc in order. */
TY_INLINE void FN(column_of)(REDUCTION r, T *acc, const T *x, int64_t n, int64_t rows, int64_t step) {
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    T a[2 * LANES];
    EACH_OF(2 * LANES, j) a[j] = acc[i + j];
    for (int64_t k = 0; k < rows; k++)
      EACH_OF(2 * LANES, j) a[j] = r.join(a[j], r.map(x[k * step + i + j]));
    EACH_OF(2 * LANES, j) acc[i + j] = a[j];
  }
  for (int64_t k = 0; k < rows && i < n; k++)
    for (int64_t j = i; j < n; j++) acc[j] = r.join(acc[j], r.map(x[k * step + j]));
}

TY_INLINE void FN(combine_of)(REDUCTION r, A *acc, const A *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) acc[i] = r.merge(acc[i], x[i]);
}

/* Each op's entries in ty_loops (cpu.h). */
#define REDUCE(name, ...) \
  TY_INLINE REDUCTION FN(the_##name)(void) { \
    return (REDUCTION){FN(start_##name)(), FN(map_##name), FN(join_##name), IN_A(join_##name), ty_picks(TY_OP_##name)}; } \
  static void FN(row_##name)(void *out, const void *x, int64_t n) { FN(row_of)(FN(the_##name)(), out, x, n); } \
  static void FN(rows_##name)(void *out, const void *x, int64_t rows, int64_t n) { FN(rows_of)(FN(the_##name)(), out, x, rows, n); } \
  static void FN(column_##name)(void *acc, const void *x, int64_t n, int64_t rows, int64_t step) { \
    FN(column_of)(FN(the_##name)(), acc, x, n, rows, step); } \
  static void FN(combine_##name)(void *acc, const void *x, int64_t n) { FN(combine_of)(FN(the_##name)(), acc, x, n); } \
  static void FN(column_init_##name)(void *acc_, int64_t n) { \
    T *acc = acc_; \
    for (int64_t i = 0; i < n; i++) acc[i] = FN(start_##name)(); } \
  static void FN(init_##name)(void *acc_, int64_t n) { \
    A *acc = acc_; \
    for (int64_t i = 0; i < n; i++) acc[i] = IN_A(start_##name)(); } \
  static void FN(finish_##name)(void *acc_, int64_t n, double count) { \
    A *acc = acc_; \
    for (int64_t i = 0; i < n; i++) acc[i] = IN_A(last_##name)(acc[i], count); }
#include "ops.def"
#undef REDUCTION
