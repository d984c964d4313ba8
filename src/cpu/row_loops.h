/* The loops of softmax, attention and norms along a row, for one element type (typed.h), float or double. LANES, TAIL, HALF are loops.c's,
 * row_sum is reduce_loops.h's.
 *
 * Idea: LANES partial sums side by side in T, joined as in a reduction; _columns: over rows one below another, a sum for each column.
 * Each loop's entry in ty_loops (cpu.h) says what it computes. */

/* s += the sum of lane, which changes */
#define SUM_LANES(s, lane) do { \
    double wide_[8]; \
    HALF(j_, h_, 16, lane[j_] += lane[j_ + h_]) \
    for (int j_ = 0; j_ < 8; j_++) wide_[j_] = (double)(lane[j_] + lane[j_ + 8]); \
    HALF(j_, h_, 4, wide_[j_] += wide_[j_ + h_]) HALF(j_, h_, 2, wide_[j_] += wide_[j_ + h_]) HALF(j_, h_, 1, wide_[j_] += wide_[j_ + h_]) \
    s += wide_[0]; } while (0)

/* The sum of one block, TY_PART elements at most. */
static T FN(sum)(const T *x, int64_t n) {
  T a[LANES] = {0};
  int64_t i = 0;
  double s = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) a[j] += x[i + j];
  if (i < n) {
    TAIL(T, xl, x + i, n - i, 0);
    for (int j = 0; j < LANES; j++) a[j] += xl[j];
  }
  SUM_LANES(s, a);
  return (T)s;
}

static T FN(dot)(const T *x, const T *y, int64_t n) {
  T a[LANES] = {0};
  int64_t i = 0;
  double s = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) a[j] += x[i + j] * y[i + j];
  if (i < n) {
    TAIL(T, xl, x + i, n - i, 0);
    TAIL(T, yl, y + i, n - i, 0);
    for (int j = 0; j < LANES; j++) a[j] += xl[j] * yl[j];
  }
  SUM_LANES(s, a);
  return (T)s;
}

/* A row's sum, in the order of the op sum. */
static double FN(total)(const T *x, int64_t n) {
  const int64_t most = TY_PART_OF(n);
  double s = 0;
  for (int64_t i = 0; i < n; i += most) {
    double part;
    FN(row_sum)(&part, x + i, TY_MIN(most, n - i));
    s += part;
  }
  return s;
}

static double FN(total_square)(const T *x, int64_t n, T shift) {
  const int64_t most = TY_PART_OF(n);
  double s = 0;
  for (int64_t i = 0; i < n;) {
    const int64_t end = TY_MIN(n, i + most);
    T a[LANES] = {0};
    double part = 0;
    for (; i + LANES <= end; i += LANES)
      for (int j = 0; j < LANES; j++) { const T d = x[i + j] - shift; a[j] += d * d; }
    for (int j = 0; i < end; i++, j++) { const T d = x[i] - shift; a[j] += d * d; }
    SUM_LANES(part, a);
    s += part;
  }
  return s;
}

/* The greatest of n numbers that aren't NaN, or -inf. */
static double FN(top)(const void *x_, int64_t n) {
  const T *x = x_;
  T lane[LANES];
  int64_t i = 0;
  EACH_OF(LANES, j) lane[j] = -INFINITY;
  for (; i + LANES <= n; i += LANES) EACH_OF(LANES, j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  if (i < n) {
    TAIL(T, last, x + i, n - i, -INFINITY);
    EACH_OF(LANES, j) lane[j] = last[j] > lane[j] ? last[j] : lane[j];
  }
  HALVES(j, h, lane[j] = lane[j + h] > lane[j] ? lane[j + h] : lane[j])
  return (double)lane[0];
}

/* ---- attention's scores ---- */

static void FN(masked)(void *s_, const void *mask, bool flags, int64_t step, int64_t n, double scale) {
  T *restrict s = s_;
  const T *restrict added = mask, a = (T)scale;
  const uint8_t *restrict seen = mask;
#define MASKED(at) for (int64_t i = 0; i < n; i++) { \
    const T v = s[i] * a; \
    const int is = seen[at];               /* of bool gcc makes no vector code */ \
    s[i] = is ? v : (T)-INFINITY; \
  }
  if (flags && step == 1) MASKED(i)
  else if (flags) MASKED(i * step)
  else if (step == 1) for (int64_t i = 0; i < n; i++) s[i] = s[i] * a + added[i];
  else for (int64_t i = 0; i < n; i++) s[i] = s[i] * a + added[i * step];
#undef MASKED
}

/* ---- softmax ---- */

static void FN(softmax)(void *o_, const void *x_, int64_t n, int lg) {
  T *o = o_;
  const T *x = x_;
  T m = (T)FN(top)(x, n), buf[TY_PART];    /* a NaN shows in the sum */
  double sum = 0;
  if (m == -INFINITY) m = 0;               /* all are -inf: exp gives 0, and the result NaN, as PyTorch's */
  for (int64_t i = 0; i < n; i += TY_PART) {
    const int64_t w = TY_MIN(TY_PART, n - i);
    const T *xs = x + i;
    T *e = lg ? buf : o + i;
    for (int64_t j = 0; j < w; j++) e[j] = FN(ty_exp_down)(xs[j] - m);
    sum += FN(total)(e, w);
  }
  if (lg) {
    const T l = FN(log)((T)sum);
    for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) - l;
  } else {
    const T r = 1 / (T)sum;
    for (int64_t i = 0; i < n; i++) o[i] *= r;
  }
}

static void FN(softmax_backward)(void *o_, const void *g_, const void *y_, int64_t n, int lg) {
  T *o = o_;
  const T *g = g_, *y = y_;
  double sum = 0;
  if (lg) sum = FN(total)(g, n);
  else for (int64_t i = 0; i < n; i += TY_PART) sum += (double)FN(dot)(g + i, y + i, TY_MIN(TY_PART, n - i));
  const T s = (T)sum;
  if (lg) for (int64_t i = 0; i < n; i++) o[i] = g[i] - FN(ty_exp_down)(y[i]) * s;
  else for (int64_t i = 0; i < n; i++) o[i] = y[i] * (g[i] - s);
}

static double FN(exp_sum)(void *o_, const void *x_, int64_t n, double a_, double shift) {
  T *o = o_;
  const T *x = x_;
  const T a = (T)a_, h = (T)shift;
  double sum = 0;
  if (n <= LANES) {                        /* the same sum, without going through memory */
    T e[LANES];
    for (int j = 0; j < LANES; j++) e[j] = j < n ? FN(ty_exp_down)(a * x[j] - h) : 0;
    for (int j = 0; j < LANES; j++) if (j < n) o[j] = e[j];
    SUM_LANES(sum, e);
    return (double)(T)sum;
  }
  for (int64_t i = 0; i < n;) {
    const int64_t end = i + TY_MIN(256, n - i);
    T e[LANES] = {0};
    double part = 0;
    for (; i + LANES <= end; i += LANES)
      EACH_OF(LANES, j) {
        const T v = FN(ty_exp_down)(a * x[i + j] - h);
        o[i + j] = v;
        e[j] += v;
      }
    if (i < end) {
      TAIL(T, last, x + i, end - i, 0);
      const int64_t rest = end - i;
      EACH_OF(LANES, j) last[j] = j < rest ? FN(ty_exp_down)(a * last[j] - h) : 0;
      EACH_OF(LANES, j) if (j < rest) o[i + j] = last[j];
      EACH_OF(LANES, j) e[j] += last[j];
      i = end;
    }
    SUM_LANES(part, e);
    sum += (double)(T)part;
  }
  return sum;
}

/* ---- sums that norms are made of ---- */

static void FN(row_moments)(const void *x, int64_t n, double eps, bool centered, double *mean, double *rstd) {
  const T m = centered ? (T)(FN(total)(x, n) / (double)n) : 0, v = (T)(FN(total_square)(x, n, m) / (double)n);
  *mean = m;
  *rstd = 1 / FN(sqrt)(v + (T)eps);
}

/* s[i] = the sum over j < n of t[j][i], n <= TY_NORM_ROW, each in the order of a lone row's; changes t. */
TY_INLINE void FN(side_sums)(double *restrict s, T (*restrict t)[SIDE], int n) {
  double w[8][SIDE];
  const int k = (int)TY_MIN(n, 8);
  for (int j = LANES; j < n; j++) EACH_OF(SIDE, i) t[j - LANES][i] += t[j][i];
  for (int h = LANES / 2; h >= 8; h /= 2)
    for (int j = 0; j < h && j + h < n; j++) EACH_OF(SIDE, i) t[j][i] += t[j + h][i];
  for (int j = 0; j < k; j++) EACH_OF(SIDE, i) w[j][i] = (double)t[j][i];
  for (int h = 4; h > 0; h /= 2)
    for (int j = 0; j < h && j + h < k; j++) EACH_OF(SIDE, i) w[j][i] += w[j + h][i];
  memcpy(s, w[0], sizeof w[0]);
}

static void FN(moments_of_rows)(const void *x_, int64_t rows, int64_t n_, double eps, void *mean_, void *rstd_) {
  const T *x = x_;
  T *mean = mean_, *rstd = rstd_, t[TY_NORM_ROW][SIDE], u[TY_NORM_ROW][SIDE];
  const int n = (int)n_;
  memset(t, 0, sizeof t);                  /* of rows that aren't there */
  for (int64_t at = 0; at < rows; at += SIDE, x += SIDE * n) {
    const int many = (int)TY_MIN(SIDE, rows - at);
    T m[SIDE] = {0}, r[SIDE];
    double s[SIDE];
    transpose_words(sizeof(T), t, SIDE, x, n, many, n);
    if (mean) {
      memcpy(u, t, sizeof(T[SIDE]) * (size_t)n);
      FN(side_sums)(s, u, n);
      EACH_OF(SIDE, i) m[i] = (T)(s[i] / (double)n);
      memcpy(mean + at, m, sizeof(T) * (size_t)many);
    }
    for (int j = 0; j < n; j++) EACH_OF(SIDE, i) { const T d = t[j][i] - m[i]; u[j][i] = d * d; }
    FN(side_sums)(s, u, n);
    EACH_OF(SIDE, i) r[i] = 1 / FN(sqrt)((T)(s[i] / (double)n) + (T)eps);
    memcpy(rstd + at, r, sizeof(T) * (size_t)many);
  }
}

#define MOMENTS_PART 2048
static void FN(moments)(const void *x_, int64_t n, double shift, double *s1, double *s2) {
  const T *x = x_;
  const T h = (T)shift;
  for (int64_t i = 0; i < n;) {
    const int64_t end = TY_MIN(n, i + MOMENTS_PART);
    T a[LANES] = {0}, b[LANES] = {0};
    for (; i + LANES <= end; i += LANES)
      for (int j = 0; j < LANES; j++) { const T d = x[i + j] - h; a[j] += d; b[j] += d * d; }
    for (int j = 0; i < end; i++, j++) { const T d = x[i] - h; a[j] += d; b[j] += d * d; }
    SUM_LANES(*s1, a);
    SUM_LANES(*s2, b);
  }
}

static void FN(moments_columns)(const void *x_, int64_t rows, int64_t n, const void *h_, void *s1_, void *s2_) {
  const T *x = x_, *h = h_;
  T *restrict s1 = s1_, *restrict s2 = s2_;
  for (; rows > 0; rows--, x += n)
    for (int64_t i = 0; i < n; i++) { const T d = x[i] - h[i]; s1[i] += d; s2[i] += d * d; }
}

static void FN(dots)(const void *g_, const void *x_, int64_t n, double shift, double *s1, double *s2) {
  const T *g = g_, *x = x_;
  const T h = (T)shift;
  for (int64_t i = 0; i < n;) {
    const int64_t end = TY_MIN(n, i + MOMENTS_PART);
    T a[LANES] = {0}, b[LANES] = {0};
    for (; i + LANES <= end; i += LANES)
      for (int j = 0; j < LANES; j++) { a[j] += g[i + j]; b[j] += g[i + j] * (x[i + j] - h); }
    for (int j = 0; i < end; i++, j++) { a[j] += g[i]; b[j] += g[i] * (x[i] - h); }
    SUM_LANES(*s1, a);
    SUM_LANES(*s2, b);
  }
}

static void FN(dots_columns)(const void *g_, const void *x_, int64_t rows, int64_t n, const void *h_, void *s1_, void *s2_) {
  const T *g = g_, *x = x_, *h = h_;
  T *restrict s1 = s1_, *restrict s2 = s2_;
  for (; rows > 0; rows--, g += n, x += n)
    for (int64_t i = 0; i < n; i++) { s1[i] += g[i]; s2[i] += g[i] * (x[i] - h[i]); }
}

/* ---- what norms make of their sums ---- */

static void FN(affine)(void *o_, const void *x_, int64_t n, double a_, double b_) {
  T *o = o_;
  const T *x = x_;
  const T a = (T)a_, b = (T)b_;
  for (int64_t i = 0; i < n; i++) o[i] = a * x[i] + b;
}

static void FN(affine_times)(void *o_, const void *x_, const void *y_, int64_t n, double a_, double b_) {
  T *o = o_;
  const T *x = x_, *y = y_;
  const T a = (T)a_, b = (T)b_;
  for (int64_t i = 0; i < n; i++) o[i] = (a * x[i] + b) * y[i];
}

static void FN(affine2)(void *o_, const void *g_, const void *x_, int64_t n, double a_, double b_, double c_) {
  T *o = o_;
  const T *g = g_, *x = x_;
  const T a = (T)a_, b = (T)b_, c = (T)c_;
  for (int64_t i = 0; i < n; i++) o[i] = a * g[i] + b * x[i] + c;
}

static void FN(affine2_columns)(void *o_, const void *g_, const void *x_, int64_t rows, int64_t n, const void *a_, const void *b_,
  const void *c_) {
  T *restrict o = o_;
  const T *g = g_, *x = x_, *a = a_, *b = b_, *c = c_;
  for (; rows > 0; rows--, o += n, g += n, x += n)
    for (int64_t i = 0; i < n; i++) o[i] = a[i] * g[i] + b[i] * x[i] + c[i];
}

static void FN(centered)(void *o_, const void *x_, int64_t n, double m_, double a_, double b_) {
  T *o = o_;
  const T *x = x_;
  const T m = (T)m_, a = (T)a_, b = (T)b_;
  for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * a + b;
}

static void FN(centered_columns)(void *o_, const void *x_, int64_t rows, int64_t n, const void *m_, const void *a_, const void *b_) {
  T *restrict o = o_;
  const T *x = x_, *m = m_, *a = a_, *b = b_;
  for (; rows > 0; rows--, o += n, x += n)
    for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m[i]) * a[i] + b[i];
}

/* ---- layer_norm, rms_norm ---- */

static void FN(layer_norm)(void *o_, const void *x_, const void *w_, const void *b_, int64_t n, double mean, double rstd) {
  T *o = o_;
  const T *x = x_, *w = w_, *b = b_;
  const T m = (T)mean, r = (T)rstd;
  if (w && b) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r * w[i] + b[i];
  else if (w) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r * w[i];
  else if (b) for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r + b[i];
  else for (int64_t i = 0; i < n; i++) o[i] = (x[i] - m) * r;
}

static void FN(layer_norm_slopes)(void *dx_, void *dw_, void *db_, const void *g_, const void *x_, const void *w_, int64_t n, double mean,
  double rstd, double ma_, double mb_) {
  T *restrict dx = dx_, *restrict dw = dw_, *restrict db = db_;
  const T *g = g_, *x = x_, *w = w_;
  const T m = (T)mean, r = (T)rstd, ma = (T)ma_, mb = (T)mb_;
  for (int64_t i = 0; i < n; i++) { dw[i] += g[i] * ((x[i] - m) * r); db[i] += g[i]; }
  if (w) for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] * w[i] - ma - (x[i] - m) * r * mb);
  else for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] - ma - (x[i] - m) * r * mb);
}

static void FN(layer_norm_backward)(void *dx, void *dw, void *db, const void *g_, const void *x_, const void *w_, int64_t n,
  double mean, double rstd) {
  const T *g = g_, *x = x_, *w = w_;
  const T m = (T)mean, r = (T)rstd;
  T gw[256], h[256];
  double sa = 0, sb = 0;
  for (int64_t i = 0; i < n; i += 256) {
    const int64_t e = TY_MIN(256, n - i);
    for (int64_t j = 0; j < e; j++) h[j] = (x[i + j] - m) * r;
    for (int64_t j = 0; j < e; j++) gw[j] = w ? g[i + j] * w[i + j] : g[i + j];
    sa += (double)FN(sum)(gw, e);
    sb += (double)FN(dot)(gw, h, e);
  }
  FN(layer_norm_slopes)(dx, dw, db, g, x, w, n, mean, rstd, sa / (double)n, sb / (double)n);
}

static void FN(layer_norm_means)(void *ma_, void *mb_, const void *g_, const void *x_, const void *w_, int64_t rows, int64_t n_,
  const void *mean_, const void *rstd_) {
  const T *g = g_, *x = x_, *w = w_, *mean = mean_, *rstd = rstd_;
  T *ma = ma_, *mb = mb_, gw[TY_NORM_ROW][SIDE], h[TY_NORM_ROW][SIDE];
  const int n = (int)n_;
  memset(gw, 0, sizeof gw);                /* of rows that aren't there */
  memset(h, 0, sizeof h);
  for (int64_t at = 0; at < rows; at += SIDE, g += SIDE * n, x += SIDE * n) {
    const int many = (int)TY_MIN(SIDE, rows - at);
    T m[SIDE] = {0}, r[SIDE] = {0};
    double a[SIDE], b[SIDE];
    memcpy(m, mean + at, sizeof(T) * (size_t)many);
    memcpy(r, rstd + at, sizeof(T) * (size_t)many);
    transpose_words(sizeof(T), gw, SIDE, g, n, many, n);
    transpose_words(sizeof(T), h, SIDE, x, n, many, n);
    for (int j = 0; j < n; j++) {
      if (w) EACH_OF(SIDE, i) gw[j][i] *= w[j];
      EACH_OF(SIDE, i) h[j][i] = gw[j][i] * ((h[j][i] - m[i]) * r[i]);
    }
    FN(side_sums)(a, gw, n);
    FN(side_sums)(b, h, n);
    for (int i = 0; i < many; i++) {
      ma[at + i] = (T)((double)(T)a[i] / (double)n);
      mb[at + i] = (T)((double)(T)b[i] / (double)n);
    }
  }
}

static void FN(rms_norm)(void *o_, const void *x_, const void *w_, int64_t n, double rstd) {
  T *o = o_;
  const T *x = x_, *w = w_;
  const T r = (T)rstd;
  if (w) for (int64_t i = 0; i < n; i++) o[i] = x[i] * r * w[i];
  else for (int64_t i = 0; i < n; i++) o[i] = x[i] * r;
}

static void FN(rms_norm_backward)(void *dx_, void *dw_, const void *g_, const void *x_, const void *w_, int64_t n, double rstd) {
  T *dx = dx_, *dw = dw_;
  const T *g = g_, *x = x_, *w = w_;
  const T r = (T)rstd;
  T gw[256];
  double s = 0;
  for (int64_t i = 0; i < n; i += 256) {
    const int64_t e = TY_MIN(256, n - i);
    const T *gs = g + i, *xs = x + i;
    T *dws = dw + i;
    for (int64_t j = 0; j < e; j++) dws[j] += gs[j] * xs[j] * r;
    for (int64_t j = 0; j < e; j++) gw[j] = w ? gs[j] * w[i + j] : gs[j];
    s += (double)FN(dot)(gw, xs, e);
  }
  const T m = (T)(s / (double)n) * r * r;
  if (w) for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] * w[i] - x[i] * m);
  else for (int64_t i = 0; i < n; i++) dx[i] = r * (g[i] - x[i] * m);
}

/* ---- sums of rows that ids name ---- */

#define SPAN 64                  /* columns added up at once */
#define AHEAD 8                  /* rows are read in no order: so they are prefetched so many rows ahead */
TY_INLINE void FN(add_span)(T *acc, const T *x, int64_t stride, const int64_t *id, int64_t n, const T *scale, int64_t padding, int width) {
  T a[SPAN] = {0};
  for (int64_t i = 0; i < n; i++) {
    const T *row = x + (id[i] - 1) * stride;
    if (i + AHEAD < n)
      for (int j = 0; j < width; j += 64 / (int)sizeof(T)) __builtin_prefetch(x + (id[i + AHEAD] - 1) * stride + j);
    if (id[i] == padding) continue;
    if (scale) for (int j = 0; j < width; j++) a[j] += scale[i] * row[j];
    else for (int j = 0; j < width; j++) a[j] += row[j];
  }
  memcpy(acc, a, (size_t)width * sizeof *acc);
}

static void FN(add_rows)(void *acc, const void *x, int64_t stride, const int64_t *id, int64_t n, const void *scale, int64_t padding,
  int64_t width) {
  int64_t at = 0;
  for (; at + SPAN <= width; at += SPAN) FN(add_span)((T *)acc + at, (const T *)x + at, stride, id, n, scale, padding, SPAN);
  if (at < width) FN(add_span)((T *)acc + at, (const T *)x + at, stride, id, n, scale, padding, (int)(width - at));
}
#undef SPAN
#undef AHEAD

#undef SUM_LANES
#undef MOMENTS_PART
