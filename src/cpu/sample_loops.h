/* sample_loops.c's loops for one element type (typed.h). */

static void FN(points)(const ty_sampling *p, const void *restrict grid_, int64_t n, int32_t *restrict at, void *restrict k_,
  void *restrict kx_, void *restrict ky_) {
  const T *grid = grid_;
  T *k = k_, *kx = kx_, *ky = ky_;
  const ty_sampling s = *p;
  for (int64_t i = 0; i < n; i++) {
    int32_t a[4];
    T w[4], wx[4], wy[4];
    FN(ty_four)(grid[2 * i], grid[2 * i + 1], s.h, s.w, s.nearest, s.padding, s.corners, a, w, wx, wy);
    ROW(at, 0)[i] = a[0]; ROW(at, 1)[i] = a[1]; ROW(at, 2)[i] = a[2]; ROW(at, 3)[i] = a[3];
    ROW(k, 0)[i] = w[0]; ROW(k, 1)[i] = w[1]; ROW(k, 2)[i] = w[2]; ROW(k, 3)[i] = w[3];
    ROW(kx, 0)[i] = wx[0]; ROW(kx, 1)[i] = wx[1]; ROW(kx, 2)[i] = wx[2]; ROW(kx, 3)[i] = wx[3];
    ROW(ky, 0)[i] = wy[0]; ROW(ky, 1)[i] = wy[1]; ROW(ky, 2)[i] = wy[2]; ROW(ky, 3)[i] = wy[3];
  }
}

static void FN(blend)(void *restrict o_, const void *restrict x_, const int32_t *restrict at, const void *restrict k_, int64_t n,
  int taps) {
  T *o = o_;
  const T *x = x_, *k = k_;
  if (taps == 1) {
    for (int64_t i = 0; i < n; i++) { const T v = x[at[i]]; o[i] = k[i] != 0 ? v : 0; }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    const T a = x[ROW(at, 0)[i]], b = x[ROW(at, 1)[i]], c = x[ROW(at, 2)[i]], d = x[ROW(at, 3)[i]];
    const T v = COUNTED(ROW(k, 0)[i], a) + COUNTED(ROW(k, 1)[i], b);
    o[i] = v + COUNTED(ROW(k, 2)[i], c) + COUNTED(ROW(k, 3)[i], d);
  }
}

static void FN(slopes)(void *restrict dx_, void *restrict dy_, const void *restrict g_, const void *restrict x_,
  const int32_t *restrict at, const void *restrict kx_, const void *restrict ky_, int64_t n) {
  T *dx = dx_, *dy = dy_;
  const T *g = g_, *x = x_, *kx = kx_, *ky = ky_;
  for (int64_t i = 0; i < n; i++) {
    const T a = x[ROW(at, 0)[i]], b = x[ROW(at, 1)[i]], c = x[ROW(at, 2)[i]], d = x[ROW(at, 3)[i]];
    const T sx = COUNTED(ROW(kx, 0)[i], a) + COUNTED(ROW(kx, 1)[i], b) + COUNTED(ROW(kx, 2)[i], c) + COUNTED(ROW(kx, 3)[i], d);
    const T sy = COUNTED(ROW(ky, 0)[i], a) + COUNTED(ROW(ky, 1)[i], b) + COUNTED(ROW(ky, 2)[i], c) + COUNTED(ROW(ky, 3)[i], d);
    dx[i] += g[i] * sx;
    dy[i] += g[i] * sy;
  }
}

static void FN(spread)(void *x_, const void *g_, const int32_t *at, const void *k_, int64_t n, int taps) {
  T *x = x_;
  const T *g = g_, *k = k_;
  if (taps == 1) for (int64_t i = 0; i < n; i++) x[at[i]] += COUNTED(k[i], g[i]);
  else for (int64_t i = 0; i < n; i++)
    for (int j = 0; j < 4; j++) x[ROW(at, j)[i]] += COUNTED(ROW(k, j)[i], g[i]);
}
