/* Lines that lie side by side, across memory: softmax, extremes and running sums of some of them at a time; built once for each
 * instruction set, as loops.c is.
 *
 * Idea: row i has element i of every line, so that all lines go on together. Invariants: rows are xs, os ... elements apart; o may
 * be x exactly; a line's result doesn't depend on the lines beside it. */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "math.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/* Sums of n lines, each added up as loops.c adds up a row: element i goes to lane i % TY_LANES (add_), the lanes are added by halves
   (join_). lane: TY_LANES rows of n. */
#define SIDE 16                  /* lines whose lanes are added at once */
#define SUMS(k, T) \
  static void join_##k(double *sum, const T *lane, int64_t lanes, int64_t n, bool round) { \
    for (int64_t at = 0; at < n; at += SIDE) { \
      const int64_t m = TY_MIN(SIDE, n - at); double w[TY_LANES][SIDE]; \
      if (m == SIDE) for (int64_t l = 0; l < lanes; l++) for (int j = 0; j < SIDE; j++) w[l][j] = (double)lane[l * n + at + j]; \
      else for (int64_t l = 0; l < lanes; l++) for (int j = 0; j < SIDE; j++) w[l][j] = j < m ? (double)lane[l * n + at + j] : 0; \
      for (int64_t h = TY_LANES / 2; h; h /= 2) for (int64_t l = 0; l < h && l + h < lanes; l++) \
        for (int j = 0; j < SIDE; j++) w[l][j] += w[l + h][j]; \
      for (int64_t j = 0; j < m; j++) sum[at + j] += round ? (double)(T)w[0][j] : w[0][j]; } } \
  static void add_##k(T *lane, int64_t i, const T *row, int64_t n) { \
    T *to = lane + i % TY_LANES * n; \
    if (i < TY_LANES) for (int64_t j = 0; j < n; j++) to[j] = 0 + row[j];                    /* of -0 too a lane becomes 0 */ \
    else for (int64_t j = 0; j < n; j++) to[j] += row[j]; }
SUMS(0, float)
SUMS(1, double)

#define FLOATS(k, T, X) \
  static void softmax_##k(void *o_, int64_t os, const void *x_, int64_t xs, int64_t rows, int64_t n, int lg) { \
    T *o = o_; const T *x = x_; T top[TY_BLOCK], lane[TY_COLUMNS]; double sum[TY_BLOCK]; \
    for (int64_t j = 0; j < n; j++) { top[j] = -INFINITY; sum[j] = 0; } \
    for (int64_t i = 0; i < rows; i++) { \
      const T *row = x + i * xs; \
      for (int64_t j = 0; j < n; j++) top[j] = row[j] > top[j] ? row[j] : top[j]; }          /* a NaN shows in the sum */ \
    for (int64_t j = 0; j < n; j++) top[j] = top[j] == -INFINITY ? 0 : top[j];               /* all masked: 0 / 0, as PyTorch */ \
    for (int64_t at = 0; at < rows; at += TY_PART) { \
      const int64_t m = TY_MIN(TY_PART, rows - at); \
      for (int64_t i = 0; i < m; i++) { \
        const T *row = x + (at + i) * xs; T *to = o + (at + i) * os, e[TY_BLOCK], *const keep = lg ? e : to; \
        for (int64_t j = 0; j < n; j++) keep[j] = ty_exp_down_##X(row[j] - top[j]); \
        add_##k(lane, i, keep, n); } \
      join_##k(sum, lane, TY_MIN(m, TY_LANES), n, false); } \
    T by[TY_BLOCK]; \
    if (lg) for (int64_t j = 0; j < n; j++) by[j] = log_##X((T)sum[j]); \
    else for (int64_t j = 0; j < n; j++) by[j] = 1 / (T)sum[j]; \
    for (int64_t i = 0; i < rows; i++) { \
      const T *row = x + i * xs; T *to = o + i * os; \
      if (lg) for (int64_t j = 0; j < n; j++) to[j] = (row[j] - top[j]) - by[j]; \
      else for (int64_t j = 0; j < n; j++) to[j] *= by[j]; } } \
  static void softmax_backward_##k(void *o_, int64_t os, const void *g_, int64_t gs, const void *y_, int64_t ys, int64_t rows, \
                                   int64_t n, int lg) { \
    T *o = o_; const T *g = g_, *y = y_; T lane[TY_COLUMNS]; double sum[TY_BLOCK]; \
    for (int64_t j = 0; j < n; j++) sum[j] = 0; \
    for (int64_t at = 0; at < rows; at += TY_PART) { \
      const int64_t m = TY_MIN(TY_PART, rows - at); \
      for (int64_t i = 0; i < m; i++) { \
        const T *a = g + (at + i) * gs, *b = y + (at + i) * ys; T e[TY_BLOCK]; \
        if (!lg) for (int64_t j = 0; j < n; j++) e[j] = a[j] * b[j]; \
        add_##k(lane, i, lg ? a : e, n); } \
      join_##k(sum, lane, TY_MIN(m, TY_LANES), n, !lg); } \
    for (int64_t i = 0; i < rows; i++) { \
      const T *a = g + i * gs, *b = y + i * ys; T *to = o + i * os; \
      if (lg) for (int64_t j = 0; j < n; j++) to[j] = a[j] - ty_exp_down_##X(b[j]) * (T)sum[j]; \
      else for (int64_t j = 0; j < n; j++) to[j] = b[j] * (a[j] - (T)sum[j]); } } \
  static void log_sum_##k(void *top_, void *more_, const void *x_, int64_t xs, int64_t rows, int64_t n) { \
    T *top = top_, *more = more_; const T *x = x_; double sum[TY_BLOCK]; \
    for (int64_t j = 0; j < n; j++) { top[j] = -INFINITY; sum[j] = 0; } \
    for (int64_t i = 0; i < rows; i++) { \
      const T *row = x + i * xs; \
      for (int64_t j = 0; j < n; j++) top[j] = row[j] > top[j] ? row[j] : top[j]; } \
    for (int64_t j = 0; j < n; j++) top[j] = top[j] == -INFINITY ? 0 : top[j]; \
    for (int64_t i = 0; i < rows; i++) { \
      const T *row = x + i * xs; T e[TY_BLOCK]; \
      for (int64_t j = 0; j < n; j++) e[j] = ty_exp_down_##X(row[j] - top[j]); \
      for (int64_t j = 0; j < n; j++) sum[j] += (double)e[j]; } \
    for (int64_t j = 0; j < n; j++) more[j] = log1p_##X((T)(sum[j] - 1)); }                   /* the largest one gives the 1 */ \
  static void entropy_slopes_##k(void *o_, int64_t os, const void *x_, int64_t xs, int64_t rows, int64_t n, const void *lse_, \
                                 const void *a_, const void *b_, const void *w_) { \
    T *o = o_; const T *x = x_, *lse = lse_, *a = a_, *b = b_, *w = w_; \
    for (int64_t i = 0; i < rows; i++) { \
      const T *row = x + i * xs, v = w ? w[i] : 1; T *to = o + i * os; \
      for (int64_t j = 0; j < n; j++) to[j] = a[j] * ty_exp_down_##X(row[j] - lse[j]) + b[j] * v; } } \
  static void cumsum_##k(void *o_, int64_t os, const void *x_, int64_t xs, int64_t rows, int64_t n) { \
    T *o = o_; const T *x = x_; double sum[TY_BLOCK]; \
    for (int64_t j = 0; j < n; j++) sum[j] = 0; \
    for (int64_t i = 0; i < rows; i++) { \
      const T *row = x + i * xs; T *to = o + i * os; \
      for (int64_t j = 0; j < n; j++) { sum[j] += (double)row[j]; to[j] = (T)sum[j]; } } }
FLOATS(0, float, f32)
FLOATS(1, double, f64)

/* The extreme and its place, from 1: a NaN wins, of equals the first. P: places of as many bytes as elements. */
#define EXTREME(k, T, P) \
  static void extreme_##k(void *o_, int64_t *at, const void *x_, int64_t xs, int64_t rows, int64_t n, int max) { \
    T *o = o_; const T *x = x_; T best[TY_BLOCK]; P place[TY_BLOCK]; \
    memcpy(best, x, sizeof(T) * (size_t)n); \
    for (int64_t j = 0; j < n; j++) place[j] = 1; \
    for (P i = 1; i < (P)rows; i++) { \
      const T *row = x + (int64_t)i * xs; const P here = i + 1; \
      for (int64_t j = 0; j < n; j++) { \
        const T v = row[j], b = best[j]; \
        const int better = ((max ? v > b : v < b) | (v != v)) & (b == b); \
        best[j] = better ? v : b; place[j] = better ? here : place[j]; } } \
    memcpy(o, best, sizeof(T) * (size_t)n); \
    for (int64_t j = 0; j < n; j++) at[j] = place[j]; }
EXTREME(0, float, int32_t)
EXTREME(1, double, int64_t)
EXTREME(2, int64_t, int64_t)

const ty_column_loops PASTE(ty_column_loops_, TY_ISA) = {
  .softmax = {softmax_0, softmax_1},
  .softmax_backward = {softmax_backward_0, softmax_backward_1},
  .cumsum = {cumsum_0, cumsum_1},
  .log_sum = {log_sum_0, log_sum_1},
  .entropy_slopes = {entropy_slopes_0, entropy_slopes_1},
  .extreme = {extreme_0, extreme_1, extreme_2},
};
