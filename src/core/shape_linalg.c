/* Infer rules of linear algebra (matrices in the last two dims, batches before them) and of Fourier transforms. LAPACK counts in int,
 * also within its work areas, hence the limits. */
#include <string.h>
#include "fourier.h"
#include "shape.h"

#define SIDE_MOST 30000            /* where the work area has about 2 n * n elements */
#define SVD_MOST 24000             /* 3 n * n and more */

static ty_status matrices(ty_call *c, int slot, int64_t most) {
  const ty_tensor *x = c->in[slot].t;
  if (x->dtype != TY_F32 && x->dtype != TY_F64)
    return ty_fail(c, "argument %d has dtype %s; it must be float32 or float64", ty_position(c, slot), ty_dtype_names[x->dtype]);
  if (x->ndim < 2)
    return ty_fail(c, "argument %d must be a matrix or a batch of matrices, got shape %s", ty_position(c, slot), ty_shape_of(x));
  for (int i = x->ndim - 2; i < x->ndim; i++)
    if (x->shape[i] > most) return ty_fail(c, "dim %d of shape %s is too large", i + 1, ty_shape_of(x));
  return TY_OK;
}

static ty_status squares(ty_call *c, int slot, int64_t most) {
  const ty_tensor *x = c->in[slot].t;
  TY_TRY(matrices(c, slot, most));
  if (x->shape[x->ndim - 1] != x->shape[x->ndim - 2])
    return ty_fail(c, "argument %d must be square, got shape %s", ty_position(c, slot), ty_shape_of(x));
  return TY_OK;
}

/* Result k: x's batch dims, then ndim of these. */
static void result(ty_call *c, int k, int ndim, int64_t rows, int64_t cols) {
  const ty_tensor *x = c->in[0].t;
  int64_t shape[TY_MAXDIM + 2];
  int n = x->ndim - 2;
  memcpy(shape, x->shape, sizeof *shape * (size_t)n);
  if (ndim > 0) shape[n++] = rows;
  if (ndim > 1) shape[n++] = cols;
  ty_set_shape(&c->meta[k], x->dtype, n, shape);
}

/* Result 1: a whole number for each matrix. */
static void numbers(ty_call *c) {
  result(c, 1, 0, 0, 0);
  c->meta[1].dtype = TY_I64;
}

ty_status ty_infer_square(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(squares(c, 0, INT32_MAX));
  result(c, 0, 2, x->shape[x->ndim - 1], x->shape[x->ndim - 1]);
  numbers(c);
  return TY_OK;
}

ty_status ty_infer_solve(ty_call *c) {
  const ty_tensor *a = c->in[0].t, *b = c->in[1].t;
  TY_TRY(squares(c, 0, INT32_MAX));
  TY_TRY(ty_need_same_dtype(c, 1, 0));
  TY_TRY(matrices(c, 1, INT32_MAX));
  bool fits = b->ndim == a->ndim && b->shape[b->ndim - 2] == a->shape[a->ndim - 1];
  for (int i = 0; fits && i < a->ndim - 2; i++) fits = a->shape[i] == b->shape[i];
  if (!fits)
    return ty_fail(c, "argument 2 has shape %s; it must have as many rows as argument 1 of shape %s", ty_shape_of(b),
      ty_shape_of(a));
  result(c, 0, 2, b->shape[b->ndim - 2], b->shape[b->ndim - 1]);
  if (c->op->id == TY_OP_solve_system) numbers(c);
  return TY_OK;
}

ty_status ty_infer_determinant(ty_call *c) {
  TY_TRY(squares(c, 0, INT32_MAX));
  for (int i = 0; i < c->op->nout; i++) result(c, i, 0, 0, 0);
  return TY_OK;
}

ty_status ty_infer_lu(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(matrices(c, 0, SIDE_MOST));
  const int64_t m = x->shape[x->ndim - 2], n = x->shape[x->ndim - 1];
  result(c, 0, 2, m, n);
  result(c, 1, 1, TY_MIN(m, n), 0);
  result(c, 2, 1, m, 0);
  c->meta[1].dtype = c->meta[2].dtype = TY_I64;
  return TY_OK;
}

ty_status ty_infer_order_of_rows(ty_call *c) {
  const ty_tensor *p = c->in[0].t;
  const int64_t m = c->at[TY_AT_order_of_rows_m].i;
  int64_t shape[TY_MAXDIM];
  TY_TRY(ty_need_dtype(c, 0, TY_I64));
  if (p->ndim < 1 || m < 0 || m > SIDE_MOST || p->shape[p->ndim - 1] > m)
    return ty_fail(c, "pivots have shape %s; there can't be more than the %lld rows", ty_shape_of(p), (long long)m);
  memcpy(shape, p->shape, sizeof *shape * (size_t)p->ndim);
  shape[p->ndim - 1] = m;
  ty_set_shape(&c->meta[0], TY_I64, p->ndim, shape);
  return TY_OK;
}

ty_status ty_infer_eigen_rows(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  TY_TRY(squares(c, 0, SIDE_MOST));
  result(c, 0, 2, x->shape[x->ndim - 1], x->shape[x->ndim - 1] + 1);
  return TY_OK;
}

ty_status ty_infer_matrix_rows(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const bool svd = c->op->id == TY_OP_svd_rows;
  TY_TRY(matrices(c, 0, SIDE_MOST));
  const int64_t m = x->shape[x->ndim - 2], n = x->shape[x->ndim - 1];
  if (svd && TY_MIN(m, n) > SVD_MOST) return ty_fail(c, "shape %s is too large: its shorter side is over %d", ty_shape_of(x), SVD_MOST);
  result(c, 0, 2, !svd && c->at[TY_AT_qr_rows_complete].i ? m : TY_MIN(m, n), svd ? m + 1 + n : m + n);
  return TY_OK;
}

/* The product of a and b, or of a and b's conjugate. */
ty_status ty_infer_pairs_product(ty_call *c) {
  const ty_tensor *a = c->in[0].t, *b = c->in[1].t;
  int ndim = 0;
  int64_t shape[TY_MAXDIM];
  for (int i = 0; i < 2; i++) {
    const ty_tensor *t = c->in[i].t;
    if (t->dtype != a->dtype || (t->dtype != TY_F32 && t->dtype != TY_F64))
      return ty_fail(c, "argument %d has dtype %s; both must be float32, or float64", ty_position(c, i), ty_dtype_names[t->dtype]);
    if (t->ndim < 1 || t->shape[t->ndim - 1] != 2)
      return ty_fail(c, "argument %d of shape %s has no pairs", ty_position(c, i), ty_shape_of(t));
  }
  TY_TRY(ty_broadcast(c, shape, &ndim, a, a));
  TY_TRY(ty_broadcast(c, shape, &ndim, b, a));
  ty_set_shape(&c->meta[0], a->dtype, ndim, shape);
  return TY_OK;
}

ty_status ty_infer_fourier(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  const int64_t n = c->at[TY_AT_fourier_n].i;
  const int kind = (int)c->at[TY_AT_fourier_kind].i;
  const bool from_pairs = ty_fourier_from_pairs(kind), to_pairs = ty_fourier_to_pairs(kind);
  const int d = x->ndim - from_pairs;      /* dims of signals */
  const int64_t inner = c->at[TY_AT_fourier_inner].i, dim = d - 1 - inner;
  if (x->dtype != TY_F32 && x->dtype != TY_F64)
    return ty_fail(c, "argument 1 has dtype %s; it must be float32 or float64", ty_dtype_names[x->dtype]);
  if (inner < 0 || dim < 0 || (from_pairs && x->shape[d] != 2) || x->shape[dim] != ty_fourier_in(kind, n) / (from_pairs ? 2 : 1) || n < 1)
    return ty_fail(c, "argument 1 has shape %s, which doesn't fit a transform of %lld elements", ty_shape_of(x), (long long)n);
  if (!ty_fourier_takes(kind, n, TY_FOURIER_MOST))
    return ty_fail(c, "the size %lld has a prime factor above %d", (long long)n, TY_FOURIER_MOST);
  int64_t shape[TY_MAXDIM + 1];
  memcpy(shape, x->shape, sizeof *shape * (size_t)d);
  shape[dim] = ty_fourier_out(kind, n) / (to_pairs ? 2 : 1);
  if (to_pairs) shape[d] = 2;
  if (d + to_pairs > TY_MAXDIM) return ty_fail(c, "argument 1 of shape %s has too many dims", ty_shape_of(x));
  ty_set_shape(&c->meta[0], x->dtype, d + to_pairs, shape);
  return TY_OK;
}
