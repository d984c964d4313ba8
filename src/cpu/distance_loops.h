/* distance_loops.c's loops for one element type (typed.h). kind, and mostly p, are constants where these are inlined. */

/* o[j] = |a - b_j|; the sums of LANES rows of b stay in registers */
INLINE void FN(norms_of)(int kind, T *restrict o, const T *a, const T *restrict t, int64_t stride, int64_t d, int64_t n, T p) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    T lane[LANES] = {0};
    for (int64_t e = 0; e < d; e++)
      for (int l = 0; l < LANES; l++) lane[l] = FN(ty_norm_take)(kind, lane[l], a[e] - t[e * stride + i + l], p);
    for (int l = 0; l < LANES; l++) o[i + l] = lane[l];
  }
  for (int64_t j = i; j < n; j++) o[j] = 0;
  for (int64_t e = 0; e < d && i < n; e++)
    for (int64_t j = i; j < n; j++) o[j] = FN(ty_norm_take)(kind, o[j], a[e] - t[e * stride + j], p);
  for (int64_t j = 0; j < n; j++) o[j] = FN(ty_norm_end)(kind, o[j], p);
}

/* da[e] += the sum over j of share[j] times the slope of norm[j] = |a - b_j| in element e of a. LANES elements of a row at a time; those
 * left over by the transposed rows. */
INLINE void FN(slopes_of)(int kind, T *restrict da, const T *restrict share, const T *restrict norm, const T *a, const T *restrict b,
  const T *restrict t, int64_t stride, int64_t d, int64_t n, T p) {
  int64_t i = 0;
  for (; i + LANES <= d; i += LANES) {
    T lane[LANES] = {0};
    for (int64_t j = 0; j < n; j++)
      for (int l = 0; l < LANES; l++) lane[l] += FN(ty_norm_slope)(kind, share[j], a[i + l] - b[j * d + i + l], norm[j], p);
    for (int l = 0; l < LANES; l++) da[i + l] += lane[l];
  }
  for (int64_t e = i; e < d; e++) {
    T lane[LANES] = {0}, sum = 0;
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
      for (int l = 0; l < LANES; l++) lane[l] += FN(ty_norm_slope)(kind, share[j + l], a[e] - t[e * stride + j + l], norm[j + l], p);
    for (; j < n; j++) sum += FN(ty_norm_slope)(kind, share[j], a[e] - t[e * stride + j], norm[j], p);
    for (int l = 0; l < LANES; l++) sum += lane[l];
    da[e] += sum;
  }
}

static void FN(norms)(double p, void *o, const void *a, const void *t, int64_t stride, int64_t d, int64_t n) {
  switch (ty_norm_kind(p)) {
    case TY_NORM_ZERO: FN(norms_of)(TY_NORM_ZERO, o, a, t, stride, d, n, 0); break;
    case TY_NORM_ONE: FN(norms_of)(TY_NORM_ONE, o, a, t, stride, d, n, 1); break;
    case TY_NORM_TWO: FN(norms_of)(TY_NORM_TWO, o, a, t, stride, d, n, 2); break;
    case TY_NORM_MOST: FN(norms_of)(TY_NORM_MOST, o, a, t, stride, d, n, 0); break;
    default: FN(norms_of)(TY_NORM_ANY, o, a, t, stride, d, n, (T)p);
  }
}

static void FN(slopes)(double p, void *da, const void *g_, const void *norm_, const void *a, const void *b, const void *t,
  int64_t stride, int64_t d, int64_t n) {
  const T *g = g_, *norm = norm_;
  const int kind = ty_norm_kind(p);
  T share[TY_BLOCK];
  for (int64_t j = 0; j < n; j++) share[j] = FN(ty_norm_share)(kind, g[j], norm[j], (T)p);
  switch (kind) {
    case TY_NORM_ZERO: break;
    case TY_NORM_ONE: FN(slopes_of)(TY_NORM_ONE, da, share, norm, a, b, t, stride, d, n, 1); break;
    case TY_NORM_TWO: FN(slopes_of)(TY_NORM_TWO, da, share, norm, a, b, t, stride, d, n, 2); break;
    case TY_NORM_MOST: FN(slopes_of)(TY_NORM_MOST, da, share, norm, a, b, t, stride, d, n, 0); break;
    default: FN(slopes_of)(TY_NORM_ANY, da, share, norm, a, b, t, stride, d, n, (T)p);
  }
}
