/* What LAPACK's functions (linalg.c) and those for many small matrices (small_matrices.c) know of a call of class linalg. */
#ifndef TY_CPU_LINALG_H
#define TY_CPU_LINALG_H
#include "cpu.h"
#include "pivots.h"

/* rows x cols: the first operand's matrices; more: the second one's columns, or the result's. Steps: bytes from one matrix to the next.
 * area, ints: elements and ints of work space that LAPACK asks for. */
typedef struct {
  const ty_call *c;
  ty_loop_type k;
  int size;
  int rows, cols, more, area, ints;
  const char *a, *b;
  char *out, *out2, *out3;
  int64_t step_a, step_b, step_out;
} ty_matrices;

/* ---- linalg.c ---- */
/* Writes matrix i's determinant, or its logarithm and sign, by what the call's op is. */
void ty_put_determinant(const ty_matrices *j, int64_t i, ty_pivots p);
/* The order, from 1, of m rows after row r was exchanged with row exchanged[r] - 1, for r = 0 .. k - 1. False: there is no such row. */
bool ty_order_rows(int64_t *order, int m, const int64_t *exchanged, int k);

/* ---- small_matrices.c ---- */
/* The work space, in bytes, for TY_MATRICES of this call's matrices at once; 0: LAPACK is the faster way for so large or so few ones. */
size_t ty_small_matrices_work(const ty_matrices *j, int64_t batches);
/* Does `count` matrices, TY_MATRICES at most, from the first'th on; info[i]: above 0 where a matrix isn't what it must be. */
void ty_small_matrices(const ty_matrices *j, int64_t first, int count, char *work, int64_t *info);
#endif
