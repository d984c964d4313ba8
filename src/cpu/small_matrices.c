/* Linear algebra of many small matrices, TY_MATRICES of them at a time: for these LAPACK's calls cost more than what they compute.
 *
 * Idea: matrices are transposed so that their elements lie side by side (matrix_loops.c), and results back. Invariant: how many
 * matrices there are may decide between this and LAPACK; which ones stand beside one changes nothing. */
#include <string.h>
#include "linalg.h"

#define MOST_SIDES 64

/* Columns of right-hand sides. */
static int64_t sides(const ty_matrices *j) {
  return j->c->op->id == TY_OP_solve_system ? j->more : j->c->op->id == TY_OP_invert ? j->rows : 0;
}

size_t ty_small_matrices_work(const ty_matrices *j, int64_t batches) {
  static const bool can[TY_NOP] = {[TY_OP_cholesky_factor] = true, [TY_OP_solve_system] = true, [TY_OP_invert] = true,
                                   [TY_OP_determinant] = true, [TY_OP_log_determinant] = true, [TY_OP_lu_factors] = true};
  const int64_t n = j->rows, most = batches < TY_MATRICES / 2 ? 32 : 96;          /* bytes of a row, for groups that fit the cache */
  if (!can[j->c->op->id] || n != j->cols || n * j->size > most || sides(j) > MOST_SIDES) return 0;
  return (size_t)(n * n + n * sides(j) + n + 1) * TY_MATRICES * (size_t)j->size;
}

static void unit(const ty_matrices *j, char *a) {
  memset(a, 0, (size_t)j->rows * (size_t)j->rows * TY_MATRICES * (size_t)j->size);
  for (int r = 0; r < j->rows; r++)
    for (int i = 0; i < TY_MATRICES; i++) put(a, j->k, (int64_t)r * (j->rows + 1) * TY_MATRICES + i, 1);
}
static void load(const ty_matrices *j, char *to, const char *from, int count, int64_t elements) {
  TY_OF_SIZE(ty_cpu_loops()->transpose, j->size)(to, TY_MATRICES, from, elements, count, elements);
}
static void store(const ty_matrices *j, char *to, const char *from, int count, int64_t elements) {
  TY_OF_SIZE(ty_cpu_loops()->transpose, j->size)(to, elements, from, TY_MATRICES, elements, count);
}

void ty_small_matrices(const ty_matrices *j, int64_t first, int count, char *work, int64_t *info) {
  const ty_matrix_loops *loops = ty_cpu_loops()->matrix;
  const int id = j->c->op->id, n = j->rows, more = (int)sides(j);
  const bool must = id == TY_OP_cholesky_factor || id == TY_OP_solve_system || id == TY_OP_invert;       /* have factors */
  const size_t each = (size_t)j->size * TY_MATRICES;
  char *a = work, *b = a + (size_t)(n * n) * each, *exchanged = b + (size_t)(n * more) * each, *failed = exchanged + (size_t)n * each;
  char *out = j->out + first * j->step_out;
  if (count < TY_MATRICES) unit(j, a);
  load(j, a, j->a + first * j->step_a, count, n * n);
  if (id == TY_OP_cholesky_factor) loops->cholesky[j->k](a, failed, n);
  else {
    if (id == TY_OP_invert) unit(j, b);
    else if (more) load(j, b, j->b + first * j->step_b, count, n * more);
    loops->eliminate[j->k](a, b, exchanged, failed, n, more);
    if (more) loops->substitute[j->k](a, b, n, more);
  }
  for (int i = 0; i < count && (id == TY_OP_determinant || id == TY_OP_log_determinant); i++) {
    ty_pivots p = {1, 0};
    for (int r = 0; r < n; r++)
      ty_pivots_take(&p, at(a, j->k, r * (n + 1) * TY_MATRICES + i), at(exchanged, j->k, r * TY_MATRICES + i) != r);
    ty_put_determinant(j, first + i, p);
  }
  if (more) store(j, out, b, count, n * more);
  else if (id == TY_OP_cholesky_factor || id == TY_OP_lu_factors) store(j, out, a, count, n * n);
  for (int i = 0; i < count; i++) {
    info[i] = must ? (int64_t)at(failed, j->k, i) : 0;
    if (more && info[i]) memset(out + i * j->step_out, 0xff, (size_t)j->step_out);                /* NaN */
    if (id != TY_OP_lu_factors) continue;
    int64_t *with = (int64_t *)j->out2 + (first + i) * n;
    for (int r = 0; r < n; r++) with[r] = (int64_t)at(exchanged, j->k, (int64_t)r * TY_MATRICES + i) + 1;
    ty_order_rows((int64_t *)j->out3 + (first + i) * n, n, with, n);
  }
}
