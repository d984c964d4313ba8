/* The loops of grid_sample: up to TY_BLOCK points of a picture at a time; built once for each instruction set, as loops.c is.
 *
 * Idea: where points read, and with what weights, is worked out once for all channels; a channel's values are then gathered. at, k:
 * four rows of TY_BLOCK. A pixel of weight 0 isn't counted: outside, there is none. Nothing overlaps. */
#include "cpu.h"
#include "grid_points.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define ROW(p, j) ((p) + (j) * TY_BLOCK)
#define COUNTED(w, v) ((w) != 0 ? (w) * (v) : 0)

#define LOOPS(n_, T, S) \
  static void points_##n_(const ty_sampling *p, const void *restrict grid_, int64_t n, int32_t *restrict at, void *restrict k_, \
                          void *restrict kx_, void *restrict ky_) { \
    const T *grid = grid_; T *k = k_, *kx = kx_, *ky = ky_; \
    const ty_sampling s = *p; \
    for (int64_t i = 0; i < n; i++) { \
      int32_t a[4]; T w[4], wx[4], wy[4]; \
      ty_four_##S(grid[2 * i], grid[2 * i + 1], s.h, s.w, s.nearest, s.padding, s.corners, a, w, wx, wy); \
      ROW(at, 0)[i] = a[0]; ROW(at, 1)[i] = a[1]; ROW(at, 2)[i] = a[2]; ROW(at, 3)[i] = a[3]; \
      ROW(k, 0)[i] = w[0]; ROW(k, 1)[i] = w[1]; ROW(k, 2)[i] = w[2]; ROW(k, 3)[i] = w[3]; \
      ROW(kx, 0)[i] = wx[0]; ROW(kx, 1)[i] = wx[1]; ROW(kx, 2)[i] = wx[2]; ROW(kx, 3)[i] = wx[3]; \
      ROW(ky, 0)[i] = wy[0]; ROW(ky, 1)[i] = wy[1]; ROW(ky, 2)[i] = wy[2]; ROW(ky, 3)[i] = wy[3]; } } \
  static void blend_##n_(void *restrict o_, const void *restrict x_, const int32_t *restrict at, const void *restrict k_, \
                         int64_t n, int taps) { \
    T *o = o_; const T *x = x_, *k = k_; \
    if (taps == 1) { for (int64_t i = 0; i < n; i++) { const T v = x[at[i]]; o[i] = k[i] != 0 ? v : 0; } return; } \
    for (int64_t i = 0; i < n; i++) { \
      const T a = x[ROW(at, 0)[i]], b = x[ROW(at, 1)[i]], c = x[ROW(at, 2)[i]], d = x[ROW(at, 3)[i]]; \
      const T v = COUNTED(ROW(k, 0)[i], a) + COUNTED(ROW(k, 1)[i], b); \
      o[i] = v + COUNTED(ROW(k, 2)[i], c) + COUNTED(ROW(k, 3)[i], d); } } \
  static void slopes_##n_(void *restrict dx_, void *restrict dy_, const void *restrict g_, const void *restrict x_, \
                          const int32_t *restrict at, const void *restrict kx_, const void *restrict ky_, int64_t n) { \
    T *dx = dx_, *dy = dy_; const T *g = g_, *x = x_, *kx = kx_, *ky = ky_; \
    for (int64_t i = 0; i < n; i++) { \
      const T a = x[ROW(at, 0)[i]], b = x[ROW(at, 1)[i]], c = x[ROW(at, 2)[i]], d = x[ROW(at, 3)[i]]; \
      const T sx = COUNTED(ROW(kx, 0)[i], a) + COUNTED(ROW(kx, 1)[i], b) + COUNTED(ROW(kx, 2)[i], c) + COUNTED(ROW(kx, 3)[i], d); \
      const T sy = COUNTED(ROW(ky, 0)[i], a) + COUNTED(ROW(ky, 1)[i], b) + COUNTED(ROW(ky, 2)[i], c) + COUNTED(ROW(ky, 3)[i], d); \
      dx[i] += g[i] * sx; dy[i] += g[i] * sy; } } \
  static void spread_##n_(void *x_, const void *g_, const int32_t *at, const void *k_, int64_t n, int taps) { \
    T *x = x_; const T *g = g_, *k = k_; \
    for (int64_t i = 0; i < n; i++) \
      for (int j = 0; j < taps; j++) if (ROW(k, j)[i] != 0) x[ROW(at, j)[i]] += ROW(k, j)[i] * g[i]; }
LOOPS(0, float, f32)
LOOPS(1, double, f64)

const ty_sample_loops PASTE(ty_sample_loops_, TY_ISA) = {
  .points = {points_0, points_1}, .blend = {blend_0, blend_1}, .slopes = {slopes_0, slopes_1}, .spread = {spread_0, spread_1},
};
