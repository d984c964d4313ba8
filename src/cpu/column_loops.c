/* Loops over lines that lie side by side in memory, some lines at a time: softmax, extremes, running sums; built once for each
 * instruction set, as loops.c is.
 *
 * Idea: row i has element i of every line, so that a loop over a row advances all lines. Invariants: rows are xs, os ... elements apart; o
 * may be x exactly; a line's result doesn't depend on the lines beside it. */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "math.h"
#include "typed.h"

#define SIDE 16                  /* lines whose lanes are added at once */
#define LOOPS "column_loops.h"
#include "floats.h"

/* The extreme and its 1-based position: a NaN wins, and the first of equals. P: an integer type of T's size for positions. */
#define EXTREME(S, T, P) \
  static void extreme_##S(void *o_, int64_t *at, const void *x_, int64_t xs, int64_t rows, int64_t n, int max) { \
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
EXTREME(f32, float, int32_t)
EXTREME(f64, double, int64_t)
EXTREME(i64, int64_t, int64_t)

const ty_column_loops PASTE(ty_column_loops_, TY_ISA) = {
  .softmax = {softmax_f32, softmax_f64},
  .softmax_backward = {softmax_backward_f32, softmax_backward_f64},
  .cumsum = {cumsum_f32, cumsum_f64},
  .log_sum = {log_sum_f32, log_sum_f64},
  .entropy_slopes = {entropy_slopes_f32, entropy_slopes_f64},
  .extreme = {extreme_f32, extreme_f64, extreme_i64},
};
