/* The operands of products as matrices, or as batches of them, for all backends.
 *
 * Idea: a matrix that BLAS reads as it lies has contiguous rows, or contiguous columns, and one step from each to the next. Invariant: a
 * ty_matrix owns nothing; its tensor outlives it. */
#ifndef TY_MATRICES_H
#define TY_MATRICES_H
#include "tensor.h"

typedef struct {
  const ty_tensor *t;
  int nb;                    /* batch dims of t, its first ones */
  int64_t rows, cols, rs, cs;          /* of one matrix; rs, cs: elements from each row, or column, to the next */
} ty_matrix;

/* A vector is a row on the left of a product, and a column on its right. */
static inline ty_matrix ty_matrix_of(const ty_tensor *t, bool left) {
  const int n = t->ndim;
  if (n == 1 && left) return (ty_matrix){t, 0, 1, t->shape[0], t->shape[0], t->stride[0]};
  if (n == 1) return (ty_matrix){t, 0, t->shape[0], 1, t->stride[0], 1};
  return (ty_matrix){t, n - 2, t->shape[n - 2], t->shape[n - 1], t->stride[n - 2], t->stride[n - 1]};
}
static inline ty_matrix ty_matrix_turned(ty_matrix m) { return (ty_matrix){m.t, m.nb, m.cols, m.rows, m.cs, m.rs}; }

static inline bool ty_by_rows(const ty_matrix *m) { return (m->cols <= 1 || m->cs == 1) && (m->rows <= 1 || m->rs >= TY_MAX(m->cols, 1)); }
static inline bool ty_by_columns(const ty_matrix *m) {
  return (m->rows <= 1 || m->rs == 1) && (m->cols <= 1 || m->cs >= TY_MAX(m->rows, 1));
}
/* BLAS's leading dimension of a matrix by rows, or else by columns. */
static inline int64_t ty_leading(const ty_matrix *m) {
  return ty_by_rows(m) ? (m->rows <= 1 ? m->cols : m->rs) : m->cols <= 1 ? m->rows : m->cs;
}

/* The element at which matrix i of the result's batch dims 0 .. outer - 1 begins in m's memory. shape: the result's nd batch dims. */
static inline int64_t ty_matrix_at(const ty_matrix *m, int64_t i, const int64_t *shape, int outer, int nd) {
  int64_t at = 0;
  for (int d = outer - 1; d >= 0; i /= shape[d--]) {
    const int k = d - (nd - m->nb);
    if (k >= 0 && m->t->shape[k] != 1) at += i % shape[d] * m->t->stride[k];
  }
  return at;
}

/* A batch x of n matrices times the single matrix y is one product over all rows, if x's rows are contiguous. Makes x that matrix. */
static inline bool ty_one_matrix(ty_matrix *x, const ty_matrix *y, int64_t n) {
  if (y->nb > 0 || x->nb == 0 || !ty_is_contiguous(x->t)) return false;
  *x = (ty_matrix){x->t, 0, x->rows * n, x->cols, x->cols, 1};
  return true;
}
#endif
