/* column_loops.c's loops for one element type (typed.h). */

/* Sums of n lines, each in the order in which loops.c sums a row: element i goes to lane i % TY_LANES (add), then the lanes are added by
 * halves (join), to eight in T and then in double. lane: TY_LANES rows of n. */
static void FN(add)(T *lane, int64_t i, const T *row, int64_t n) {
  T *to = lane + i % TY_LANES * n;
  if (i < TY_LANES) for (int64_t j = 0; j < n; j++) to[j] = 0 + row[j];      /* 0 +: a lane of -0 becomes 0 too */
  else for (int64_t j = 0; j < n; j++) to[j] += row[j];
}

static void FN(join)(double *sum, const T *lane, int64_t lanes, int64_t n, bool round) {
  for (int64_t at = 0; at < n; at += SIDE) {
    const int64_t m = TY_MIN(SIDE, n - at), k = TY_MIN(lanes, 8);
    T v[TY_LANES][SIDE];
    double w[8][SIDE];
    for (int64_t l = 0; l < lanes; l++) {
      const T *from = lane + l * n + at;
      if (m == SIDE) memcpy(v[l], from, sizeof v[l]);
      else for (int j = 0; j < SIDE; j++) v[l][j] = j < m ? from[j] : 0;
    }
    for (int64_t h = TY_LANES / 2; h >= 8; h /= 2)
      for (int64_t l = 0; l < h && l + h < lanes; l++)
        for (int j = 0; j < SIDE; j++) v[l][j] += v[l + h][j];
    for (int64_t l = 0; l < k; l++)
      for (int j = 0; j < SIDE; j++) w[l][j] = (double)v[l][j];
    for (int64_t h = 4; h; h /= 2)
      for (int64_t l = 0; l < h && l + h < k; l++)
        for (int j = 0; j < SIDE; j++) w[l][j] += w[l + h][j];
    for (int64_t j = 0; j < m; j++) sum[at + j] += round ? (double)(T)w[0][j] : w[0][j];
  }
}

/* top: each line's largest element. A NaN shows in the sum; where all elements are -inf, the result is 0 / 0, as PyTorch's. */
static void FN(tops)(T *top, const T *x, int64_t xs, int64_t rows, int64_t n) {
  for (int64_t j = 0; j < n; j++) top[j] = -INFINITY;
  for (int64_t i = 0; i < rows; i++, x += xs)
    for (int64_t j = 0; j < n; j++) top[j] = x[j] > top[j] ? x[j] : top[j];
  for (int64_t j = 0; j < n; j++) top[j] = top[j] == -INFINITY ? 0 : top[j];
}

static void FN(softmax)(void *o_, int64_t os, const void *x_, int64_t xs, int64_t rows, int64_t n, int lg) {
  T *o = o_;
  const T *x = x_;
  T top[TY_BLOCK], by[TY_BLOCK], lane[TY_COLUMNS];
  double sum[TY_BLOCK];
  memset(sum, 0, (size_t)n * sizeof *sum);
  FN(tops)(top, x, xs, rows, n);
  for (int64_t at = 0; at < rows; at += TY_PART) {
    const int64_t m = TY_MIN(TY_PART, rows - at);
    for (int64_t i = 0; i < m; i++) {
      const T *row = x + (at + i) * xs;
      T e[TY_BLOCK], *const keep = lg ? e : o + (at + i) * os;
      for (int64_t j = 0; j < n; j++) keep[j] = FN(ty_exp_down)(row[j] - top[j]);
      FN(add)(lane, i, keep, n);
    }
    FN(join)(sum, lane, TY_MIN(m, TY_LANES), n, false);
  }
  if (lg) for (int64_t j = 0; j < n; j++) by[j] = FN(log)((T)sum[j]);
  else for (int64_t j = 0; j < n; j++) by[j] = 1 / (T)sum[j];
  for (int64_t i = 0; i < rows; i++, x += xs, o += os) {
    if (lg) for (int64_t j = 0; j < n; j++) o[j] = (x[j] - top[j]) - by[j];
    else for (int64_t j = 0; j < n; j++) o[j] *= by[j];
  }
}

static void FN(softmax_backward)(void *o_, int64_t os, const void *g_, int64_t gs, const void *y_, int64_t ys, int64_t rows, int64_t n,
  int lg) {
  T *o = o_;
  const T *g = g_, *y = y_;
  T lane[TY_COLUMNS];
  double sum[TY_BLOCK];
  memset(sum, 0, (size_t)n * sizeof *sum);
  for (int64_t at = 0; at < rows; at += TY_PART) {
    const int64_t m = TY_MIN(TY_PART, rows - at);
    for (int64_t i = 0; i < m; i++) {
      const T *a = g + (at + i) * gs, *b = y + (at + i) * ys;
      T e[TY_BLOCK];
      if (!lg) for (int64_t j = 0; j < n; j++) e[j] = a[j] * b[j];
      FN(add)(lane, i, lg ? a : e, n);
    }
    FN(join)(sum, lane, TY_MIN(m, TY_LANES), n, !lg);
  }
  for (int64_t i = 0; i < rows; i++, g += gs, y += ys, o += os) {
    if (lg) for (int64_t j = 0; j < n; j++) o[j] = g[j] - FN(ty_exp_down)(y[j]) * (T)sum[j];
    else for (int64_t j = 0; j < n; j++) o[j] = y[j] * (g[j] - (T)sum[j]);
  }
}

static void FN(log_sum)(void *top_, void *more_, const void *x_, int64_t xs, int64_t rows, int64_t n) {
  T *top = top_, *more = more_;
  const T *x = x_;
  double sum[TY_BLOCK];
  memset(sum, 0, (size_t)n * sizeof *sum);
  FN(tops)(top, x, xs, rows, n);
  for (int64_t i = 0; i < rows; i++, x += xs) {
    T e[TY_BLOCK];
    for (int64_t j = 0; j < n; j++) e[j] = FN(ty_exp_down)(x[j] - top[j]);
    for (int64_t j = 0; j < n; j++) sum[j] += (double)e[j];
  }
  for (int64_t j = 0; j < n; j++) more[j] = FN(log1p)((T)(sum[j] - 1));      /* the largest element contributes the 1 */
}

static void FN(entropy_slopes)(void *o_, int64_t os, const void *x_, int64_t xs, int64_t rows, int64_t n, const void *lse_, const void *a_,
  const void *b_, const void *w_) {
  T *o = o_;
  const T *x = x_, *lse = lse_, *a = a_, *b = b_, *w = w_;
  for (int64_t i = 0; i < rows; i++, x += xs, o += os) {
    const T v = w ? w[i] : 1;
    for (int64_t j = 0; j < n; j++) o[j] = a[j] * FN(ty_exp_down)(x[j] - lse[j]) + b[j] * v;
  }
}

static void FN(cumsum)(void *o_, int64_t os, const void *x_, int64_t xs, int64_t rows, int64_t n) {
  T *o = o_;
  const T *x = x_;
  double sum[TY_BLOCK];
  memset(sum, 0, (size_t)n * sizeof *sum);
  for (int64_t i = 0; i < rows; i++, x += xs, o += os)
    for (int64_t j = 0; j < n; j++) { sum[j] += (double)x[j]; o[j] = (T)sum[j]; }
}
