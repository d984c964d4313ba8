/* pool_loops.c's loops for one element type (typed.h); PLACE: an integer type of T's size for positions. */
#define LANES ((int64_t)(TY_VECTOR / sizeof(T)))
#define V FN(vector)
#define P FN(places)
#define I FN(indices)
typedef T V __attribute__((vector_size(TY_VECTOR)));
typedef PLACE P __attribute__((vector_size(TY_VECTOR)));
typedef int64_t I __attribute__((vector_size(TY_VECTOR / sizeof(T) * 8)));

TY_INLINE void FN(load)(V *v, const T *p, int64_t n) {
  if (n >= LANES) memcpy(v, p, sizeof *v);
  else { *v = (V){0}; memcpy(v, p, (size_t)n * sizeof(T)); }
}

TY_INLINE void FN(store)(T *p, const V *v, int64_t n) { memcpy(p, v, n >= LANES ? sizeof *v : (size_t)n * sizeof(T)); }

static T FN(share)(const ty_pool *p, int64_t i, int64_t j) {
  return (T)1 / (p->divisor ? (T)p->divisor : (T)(p->rows[i].count * p->cols[j].count));
}

TY_INLINE void FN(load_places)(P *at, const int64_t *idx, int64_t n) {
  I wide = {0};
  memcpy(&wide, idx, n >= LANES ? sizeof wide : (size_t)n * sizeof *idx);
  *at = __builtin_convertvector(wide, P);
}

TY_INLINE void FN(store_places)(int64_t *idx, const P *at, int64_t n) {
  const I wide = __builtin_convertvector(*at, I);
  memcpy(idx, &wide, n >= LANES ? sizeof wide : (size_t)n * sizeof *idx);
}

/* one_...: n channels (SOME, LANES or fewer) of window (i, j). */
#define SOME (4 * LANES)
#define VECTORS for (int v = 0; v < (n == SOME ? 4 : 1); v++)
#define TAPS(c, r) for (int64_t a = (r).lo; a < (r).hi; a += p->dilation[0]) for (int64_t b = (c).lo; b < (c).hi; b += p->dilation[1])

/* Positions count from 1; 0 stands where a window is all padding. */
TY_INLINE void FN(one_max)(const ty_pool *p, const T *x, T *y, int64_t *idx, int64_t i, int64_t j, int64_t n, const bool placed) {
  const ty_window r = p->rows[i], s = p->cols[j];
  V best[4], u;
  P at[4];
  VECTORS { best[v] = (V){0} - (T)INFINITY; at[v] = (P){0} + (PLACE)(r.lo < r.hi && s.lo < s.hi ? r.lo * p->w + s.lo + 1 : 0); }
  TAPS(s, r) {
    const T *from = x + ((a - p->top) * p->w + b) * p->c;
    const P place = (P){0} + (PLACE)(a * p->w + b + 1);
    VECTORS {
      FN(load)(&u, from + v * LANES, n);
      const P up = (P)(u > best[v]) | (P)(u != u);
      best[v] = (V)(((P)u & up) | ((P)best[v] & ~up));
      if (placed) at[v] = (place & up) | (at[v] & ~up);
    }
  }
  VECTORS {
    FN(store)(y + v * LANES, &best[v], n);
    if (placed) FN(store_places)(idx + v * LANES, &at[v], n);
  }
}

TY_INLINE void FN(one_mean)(const ty_pool *p, const T *x, T *y, int64_t i, int64_t j, int64_t n) {
  const ty_window r = p->rows[i], s = p->cols[j];
  V sum[4], u;
  VECTORS sum[v] = (V){0};
  TAPS(s, r) {
    const T *from = x + ((a - p->top) * p->w + b) * p->c;
    VECTORS { FN(load)(&u, from + v * LANES, n); sum[v] += u; }
  }
  const T share = FN(share)(p, i, j);
  VECTORS { sum[v] *= share; FN(store)(y + v * LANES, &sum[v], n); }
}

TY_INLINE void FN(one_max_back)(const ty_pool *p, T *x, const T *g, const int64_t *idx, int64_t i, int64_t j, int64_t n) {
  const ty_window r = p->rows[i], s = p->cols[j];
  V slope[4], u;
  P at[4];
  VECTORS {
    FN(load)(&slope[v], g + v * LANES, n);
    FN(load_places)(&at[v], idx + v * LANES, n);
  }
  TAPS(s, r) {
    T *to = x + (a * p->w + b) * p->c;
    const P place = (P){0} + (PLACE)(a * p->w + b + 1);
    VECTORS {
      FN(load)(&u, to + v * LANES, n);
      u += (V)((P)slope[v] & (P)(at[v] == place));
      FN(store)(to + v * LANES, &u, n);
    }
  }
}

TY_INLINE void FN(one_mean_back)(const ty_pool *p, T *x, const T *g, int64_t i, int64_t j, int64_t n) {
  const ty_window r = p->rows[i], s = p->cols[j];
  const T share = FN(share)(p, i, j);
  V slope[4], u;
  VECTORS { FN(load)(&slope[v], g + v * LANES, n); slope[v] *= share; }
  TAPS(s, r) {
    T *to = x + (a * p->w + b) * p->c;
    VECTORS { FN(load)(&u, to + v * LANES, n); u += slope[v]; FN(store)(to + v * LANES, &u, n); }
  }
}

/* Does CALL for all windows of rows from .. to - 1 and channels c0 .. c1 - 1; o: offset of the window's results. */
#define EACH(from, to, c0, c1, CALL) \
  for (int64_t i = from; i < to; i++) for (int64_t j = 0; j < p->ow; j++) { \
    const int64_t o = ((i - p->first) * p->ow + j) * p->c; int64_t c = c0, n = SOME; \
    for (; c + n <= c1; c += n) CALL; \
    for (n = LANES; c + n <= c1; c += n) CALL; \
    if (c < c1) { n = c1 - c; CALL; } }

static void FN(maxima)(const ty_pool *q, void *x_, void *y_, int64_t *idx, int64_t from, int64_t to) {
  const ty_pool here = *q, *p = &here;      /* so that no store can alias it */
  const T *x = x_;
  T *y = y_;
  if (idx) { EACH(from, to, 0, p->c, FN(one_max)(p, x + c, y + o + c, idx + o + c, i, j, n, true)) }
  else EACH(from, to, 0, p->c, FN(one_max)(p, x + c, y + o + c, NULL, i, j, n, false))
}

#define JOIN(m, v) ((v) > (m) || (v) != (v) ? (v) : (m))
/* o[j] = the maximum of x[j step + t apart], t < taps, j < n */
TY_INLINE void FN(row_maxima)(T *restrict o, const T *restrict x, int64_t n, const int64_t step, int64_t taps, int64_t apart) {
  if (taps == 1) for (int64_t j = 0; j < n; j++) o[j] = x[j * step];
  else for (int64_t j = 0; j < n; j++) o[j] = JOIN(x[j * step], x[j * step + apart]);
  for (int64_t t = 2; t < taps; t++)
    for (int64_t j = 0; j < n; j++) o[j] = JOIN(o[j], x[j * step + t * apart]);
}

/* The rows that windows read become one, whose maxima are taken; windows that reach beyond its ends are done one by one. */
static void FN(plane_maxima)(const ty_pool *q, void *x_, void *y_, int64_t *idx, int64_t from, int64_t to) {
  const ty_pool here = *q, *p = &here;
  const int64_t apart = p->dilation[1], taps = p->kernel[1], step = p->stride[1], reach = apart * (taps - 1) + 1;
  int64_t first = 0, end = p->ow;          /* windows that are whole */
  (void)idx;
  while (first < end && first * step < p->padding[1]) first++;
  while (end > first && (end - 1) * step - p->padding[1] + reach > p->w) end--;
  for (int64_t i = from; i < to; i++) {
    const ty_window r = p->rows[i];
    T *o = (T *)y_ + (i - p->first) * p->ow, *restrict joined = p->row;
    const T *row = (const T *)x_ + (r.lo - p->top) * p->w, *x = row;
    if (r.lo >= r.hi) for (int64_t j = 0; j < p->w; j++) joined[j] = -INFINITY;
    for (int64_t a = r.lo + p->dilation[0]; a < r.hi; a += p->dilation[0], x = joined) {
      const T *restrict next = row + (a - r.lo) * p->w;
      if (x == row) for (int64_t j = 0; j < p->w; j++) joined[j] = JOIN(row[j], next[j]);
      else for (int64_t j = 0; j < p->w; j++) joined[j] = JOIN(joined[j], next[j]);
    }
    if (r.lo >= r.hi) x = joined;
    for (int64_t j = 0; j < p->ow; j++) {
      if (j == first && first < end) j = end;
      if (j == p->ow) break;
      T m = -INFINITY;
      for (int64_t b = p->cols[j].lo; b < p->cols[j].hi; b += apart) m = JOIN(m, x[b]);
      o[j] = m;
    }
    x += first * step - p->padding[1];
    switch (step) {                        /* constants: so that vectors take every second or third pixel */
      case 1: FN(row_maxima)(o + first, x, end - first, 1, taps, apart); break;
      case 2: FN(row_maxima)(o + first, x, end - first, 2, taps, apart); break;
      case 3: FN(row_maxima)(o + first, x, end - first, 3, taps, apart); break;
      default: FN(row_maxima)(o + first, x, end - first, step, taps, apart);
    }
  }
}
#undef JOIN

static void FN(means)(const ty_pool *q, void *x_, void *y_, int64_t *idx, int64_t from, int64_t to) {
  const ty_pool here = *q, *p = &here;      /* so that no store can alias it */
  const T *x = x_;
  T *y = y_;
  (void)idx;
  EACH(from, to, 0, p->c, FN(one_mean)(p, x + c, y + o + c, i, j, n))
}

/* Zeroes rows done .. to - 1 of the pixels, just before they are added to. */
static int64_t FN(zero)(const ty_pool *p, T *x, int64_t done, int64_t to, int64_t c0, int64_t c1) {
  if (c1 - c0 == p->c && done < to) memset(x + done * p->w * p->c, 0, (size_t)((to - done) * p->w * p->c) * sizeof(T));
  else for (int64_t a = done * p->w; a < to * p->w; a++) memset(x + a * p->c + c0, 0, (size_t)(c1 - c0) * sizeof(T));
  return TY_MAX(done, to);
}

static void FN(means_back)(const ty_pool *q, void *x_, void *g_, int64_t *idx, int64_t from, int64_t to) {
  const ty_pool here = *q, *p = &here;
  T *x = x_;
  const T *g = g_;
  (void)idx;
  int64_t done = 0;
  for (int64_t row = 0; row < p->oh; row++) {
    done = FN(zero)(p, x, done, p->rows[row].hi, from, to);
    EACH(row, row + 1, from, to, FN(one_mean_back)(p, x + c, g + o + c, i, j, n))
  }
  FN(zero)(p, x, done, p->h, from, to);
}

static void FN(maxima_back)(const ty_pool *q, void *x_, void *g_, int64_t *idx, int64_t from, int64_t to) {
  const ty_pool here = *q, *p = &here;
  T *x = x_;
  const T *g = g_;
  const int64_t c = p->c;
  const uint64_t end = (uint64_t)(p->h * p->w);
  int64_t done = 0;
  if (p->kernel[0] && c >= LANES) {
    for (int64_t row = 0; row < p->oh; row++) {
      done = FN(zero)(p, x, done, p->rows[row].hi, from, to);
      EACH(row, row + 1, from, to, FN(one_max_back)(p, x + c, g + o + c, idx + o + c, i, j, n))
    }
    FN(zero)(p, x, done, p->h, from, to);
    return;
  }
  FN(zero)(p, x, 0, p->h, from, to);
  for (int64_t o = 0; o < p->oh * p->ow * c; o += c)
    for (int64_t k = from; k < to; k++) {
      const uint64_t place = (uint64_t)idx[o + k] - 1;
      if (place < end) x[(int64_t)place * c + k] += g[o + k];
    }
}
#undef SOME
#undef VECTORS
#undef TAPS
#undef EACH
#undef LANES
#undef V
#undef P
#undef I
