/* product_loops.c's loops for one element type (typed.h). */
#define LANES ((int)(TY_VECTOR / sizeof(T)))
typedef T FN(vector) __attribute__((vector_size(TY_VECTOR)));

#if !defined __AVX512F__
TY_INLINE FN(vector) FN(take)(const T *p, int64_t n) {
  FN(vector) v = {0};
  if (n == LANES) memcpy(&v, p, TY_VECTOR);
  else for (int c = 0; c < n; c++) v[c] = p[c];
  return v;
}
TY_INLINE void FN(give)(T *p, FN(vector) v, int64_t n) {
  if (n == LANES) memcpy(p, &v, TY_VECTOR);
  else for (int c = 0; c < n; c++) p[c] = v[c];
}
#endif

/* The sums of some vectors' elements. */
TY_INLINE void FN(totals)(T *o, const FN(vector) *v, int n) {
#ifdef __AVX512F__
  if (n == 4) { FN(four_totals)(o, v); return; }
#endif
  for (int c = 0; c < n; c++) {
    T s = 0;
    for (int l = 0; l < LANES; l++) s += v[c][l];
    o[c] = s;
  }
}

/* rows x `vectors` vectors of o, from row i and column j on, of which `width` columns exist; b: rows of ldb elements, from column j on. */
TY_INLINE void FN(tile)(const int rows, const int vectors, const bool parts, const ty_small_product *p, const T *b, int64_t ldb, int64_t i,
  int64_t j, int64_t width) {
  FN(vector) sum[MOST_ROWS][2], at[2];
  const T *a = (const T *)p->a + i * p->ar;
  int64_t n[2];                            /* columns in each vector; parts: the last may have fewer than LANES */
  for (int v = 0; v < 2; v++) n[v] = parts && v == vectors - 1 ? width - v * LANES : LANES;
#pragma GCC unroll 12
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) sum[r][v] = (FN(vector)){0};
  for (int64_t e = 0; e < p->k; e++, b += ldb) {
    for (int v = 0; v < vectors; v++) at[v] = FN(take)(b + v * LANES, PARTS ? n[v] : LANES);            /* a copy of b has them all */
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) {
      const T by = a[r * p->ar + e * p->ac];
      for (int v = 0; v < vectors; v++) sum[r][v] += by * at[v];
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < vectors; v++) {
      T *o = (T *)p->o + (i + r) * p->ldo + j + v * LANES;
      FN(give)(o, p->beta == 0 ? sum[r][v] : sum[r][v] + (T)p->beta * FN(take)(o, n[v]), n[v]);
    }
}

TY_INLINE void FN(panel)(const int vectors, const bool parts, const ty_small_product *p, const T *b, int64_t ldb, int64_t j,
  int64_t width) {
  const int64_t tiles = (p->m + MOST_ROWS - 1) / MOST_ROWS;
  for (int64_t t = 0; t < tiles; t++) {
    const int64_t i = p->m * t / tiles;
#define ROWS(n) case n: FN(tile)(n, vectors, parts, p, b, ldb, i, j, width); break;
    switch (p->m * (t + 1) / tiles - i) {
      ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
#if MOST_ROWS > 6
      ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#endif
    }
#undef ROWS
  }
}

static void FN(product)(const ty_small_product *p) {
  T packed[TY_SMALL_K * 2 * LANES];
  for (int64_t j = 0, n; j < p->n; j += n) {
    const int vectors = p->n - j > LANES ? 2 : 1;
    n = TY_MIN(vectors * LANES, p->n - j);
    const T *b = (const T *)p->b + (p->turned ? j * p->ldb : j);
    int64_t ldb = p->ldb;
    if (p->turned || (!PARTS && n < vectors * LANES)) {
      ldb = vectors * LANES;
      if (n < ldb) memset(packed, 0, sizeof(T) * (size_t)(p->k * ldb));
      if (p->turned) TY_OF_SIZE(ty_cpu_loops()->transpose, sizeof(T))(packed, ldb, b, p->ldb, n, p->k);
      else for (int64_t e = 0; e < p->k; e++) memcpy(packed + e * ldb, b + e * p->ldb, sizeof(T) * (size_t)n);
      b = packed;
    }
    switch (2 * vectors + (n < vectors * LANES)) {
      case 5: FN(panel)(2, true, p, b, ldb, j, n); break;
      case 4: FN(panel)(2, false, p, b, ldb, j, n); break;
      case 3: FN(panel)(1, true, p, b, ldb, j, n); break;
      default: FN(panel)(1, false, p, b, ldb, j, n);
    }
  }
}

/* rows rows of a, from row i on, times `columns` rows of b, from row j on, which all lie along k. next: what is read after b. */
TY_INLINE void FN(dot_tile)(const int rows, const int columns, const ty_small_product *p, int64_t i, int64_t j, const T *next) {
  FN(vector) sum[DOT_ROWS][DOT_COLUMNS], at[DOT_COLUMNS];
  const T *a = (const T *)p->a + i * p->ar, *b = (const T *)p->b + j * p->ldb;
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) sum[r][c] = (FN(vector)){0};
  int64_t e = 0;
  for (; e + LANES <= p->k; e += LANES) {
    for (int c = 0; c < columns; c++) {
      at[c] = FN(take)(b + c * p->ldb + e, LANES);
      if (next) __builtin_prefetch(next + c * p->ldb + e, 0, 2);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const FN(vector) by = FN(take)(a + r * p->ar + e, LANES);
      for (int c = 0; c < columns; c++) sum[r][c] += by * at[c];
    }
  }
  if (e < p->k) {
    for (int c = 0; c < columns; c++) at[c] = FN(take)(b + c * p->ldb + e, p->k - e);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const FN(vector) by = FN(take)(a + r * p->ar + e, p->k - e);
      for (int c = 0; c < columns; c++) sum[r][c] += by * at[c];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    T *o = (T *)p->o + (i + r) * p->ldo + j, whole[DOT_COLUMNS];
    FN(totals)(whole, sum[r], columns);
    for (int c = 0; c < columns; c++) o[c] = p->beta == 0 ? whole[c] : whole[c] + (T)p->beta * o[c];
  }
}

TY_INLINE void FN(dot_panel)(const int columns, const ty_small_product *p, int64_t j) {
  const int64_t tiles = (p->m + DOT_ROWS - 1) / DOT_ROWS;
  for (int64_t t = 0; t < tiles; t++) {
    const int64_t i = p->m * t / tiles;
    const T *next = t == tiles - 1 && j + 2 * DOT_COLUMNS <= p->n ? (const T *)p->b + (j + DOT_COLUMNS) * p->ldb : NULL;
#define ROWS(n) case n: FN(dot_tile)(n, columns, p, i, j, next); break;
    switch (p->m * (t + 1) / tiles - i) {
      ROWS(1) ROWS(2) ROWS(3)
#if DOT_ROWS > 3
      ROWS(4) ROWS(5) ROWS(6)
#endif
    }
#undef ROWS
  }
}

static void FN(dot_products)(const ty_small_product *p) {
  const int64_t most = TY_MAX(CACHED / (int64_t)sizeof(T) / p->m / LANES, 8) * LANES;
  ty_small_product part = *p;
  for (int64_t from = 0; from < p->k; from += most) {
    int64_t j = 0;
    part.a = (const T *)p->a + from;
    part.b = (const T *)p->b + from;
    part.k = TY_MIN(most, p->k - from);
    part.beta = from ? 1 : p->beta;
    for (; j + DOT_COLUMNS <= p->n; j += DOT_COLUMNS) FN(dot_panel)(DOT_COLUMNS, &part, j);
    for (; j < p->n; j++) FN(dot_panel)(1, &part, j);
  }
}
#undef LANES
