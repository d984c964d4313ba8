/* align.c's steps for one element type (typed.h); K: the loops' type. */

/* What a state may have come from besides itself: the state before, and the one before that. */
static void FN(came_from)(const paths *w, const T *was, T *one, T *two) {
  for (int64_t i = 0; i < w->m; i += w->s)
    for (int64_t j = 0; j < w->s; j++) {
      one[i + j] = j ? was[i + j - 1] : (T)TY_CTC_NEVER;
      two[i + j] = j > 1 && w->skips[i + j] ? was[i + j - 2] : (T)TY_CTC_NEVER;
    }
}

static void FN(forward)(const paths *w) {
  const ty_loop logaddexp = ty_cpu_loops()->pointwise[TY_OP_logaddexp][K], add = ty_cpu_loops()->pointwise[TY_OP_add][K];
  const int64_t row = w->n * w->s, at = w->from * w->s;
  const T *logs = (const T *)w->logs + at;
  T *last = (T *)w->last + at, *reached = (T *)w->reached + at, *one = (T *)w->scratch, *two = one + w->m, *now = two + w->m;
  for (int64_t i = 0; i < w->m; i++) last[i] = reached[i] = i % w->s < 2 ? logs[i] : (T)TY_CTC_NEVER;
  for (int64_t t = 1; t < w->steps; t++) {
    T *r = reached + t * row;
    FN(came_from)(w, last, one, two);
    logaddexp(r, last, one, NULL, w->m, 0, 0);
    logaddexp(r, r, two, NULL, w->m, 0, 0);
    add(now, r, logs + t * row, NULL, w->m, 1, 0);
    for (int64_t i = 0; i < w->m; i += w->s)
      if (t < w->lengths[i / w->s]) memcpy(last + i, now + i, sizeof(T) * (size_t)w->s);
  }
}

static void FN(backward)(const paths *w) {
  const ty_loop sub = ty_cpu_loops()->pointwise[TY_OP_sub][K], add = ty_cpu_loops()->pointwise[TY_OP_add][K],
    exponential = ty_cpu_loops()->pointwise[TY_OP_exp][K];
  const int64_t row = w->n * w->s, at = w->from * w->s, s = w->s, m = w->m;
  const T *logs = (const T *)w->logs + at, *reached = (const T *)w->reached + at;
  T *slopes = (T *)w->slopes + at, *g = (T *)w->scratch, *came[3] = {g + m, g + 2 * m, g + 3 * m}, *share = g + 4 * m;
  memcpy(g, (const T *)w->grad + at, sizeof(T) * (size_t)m);
  for (int64_t t = w->steps - 1; t > 0; t--) {
    const T *before = reached + (t - 1) * row;
    if (t > 1) add(came[0], before, logs + (t - 1) * row, NULL, m, 1, 0);
    else memcpy(came[0], before, sizeof(T) * (size_t)m);
    FN(came_from)(w, came[0], came[1], came[2]);
    for (int j = 0; j < 3; j++) sub(share + j * m, came[j], reached + t * row, NULL, m, 1, 0);
    for (int64_t i = 0; i < 3 * m; i++) share[i] = share[i] < 0 ? share[i] : 0;         /* at most 1, also for two zeros (NaN) */
    exponential(share, share, NULL, NULL, 3 * m, 0, 0);
    for (int64_t i = 0; i < m; i += s) {
      T *to = slopes + t * row + i, *d = g + i;
      const T *p = share + i;
      if (t >= w->lengths[i / s]) { memset(to, 0, sizeof(T) * (size_t)s); continue; }
      memcpy(to, d, sizeof(T) * (size_t)s);
      for (int64_t j = 0; j < s; j++)
        d[j] = to[j] * p[j] + (j + 1 < s ? to[j + 1] * p[m + j + 1] : 0) + (j + 2 < s ? to[j + 2] * p[2 * m + j + 2] : 0);
    }
  }
  for (int64_t i = 0; i < m; i++) slopes[i] = i % s < 2 ? g[i] : 0;
}
