/* Linear algebra through LAPACK, which comes with OpenBLAS: each matrix of a batch by itself, by several threads where there are many.
 *
 * Idea: LAPACK reads memory by columns, so to it a row-major matrix is its transpose. Wherever the transpose serves (a triangle is the
 * other triangle, A^T has A's determinant, A^T = V S U^T), nothing is transposed. Invariant: results are written whole, or the call
 * fails and says for which matrix. Many small ones: small_matrices.c. */
#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>
#include "linalg.h"

/* The part of LAPACK that is used here; Fortran functions take the lengths of strings as last arguments. */
#define LAPACK(T, p) \
  void p##potrf_(const char *uplo, const int *n, T *a, const int *lda, int *info, size_t); \
  void p##getrf_(const int *m, const int *n, T *a, const int *lda, int *pivot, int *info); \
  void p##getri_(const int *n, T *a, const int *lda, const int *pivot, T *work, const int *lwork, int *info); \
  void p##getrs_(const char *trans, const int *n, const int *nrhs, const T *a, const int *lda, \
                 const int *pivot, T *b, const int *ldb, int *info, size_t); \
  void p##geqrf_(const int *m, const int *n, T *a, const int *lda, T *tau, T *work, const int *lwork, int *info); \
  void p##orgqr_(const int *m, const int *n, const int *k, T *a, const int *lda, const T *tau, T *work, const int *lwork, int *info); \
  void p##syevd_(const char *job, const char *uplo, const int *n, T *a, const int *lda, T *w, T *work, \
                 const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t); \
  void p##gesdd_(const char *job, const int *m, const int *n, T *a, const int *lda, T *s, T *u, \
                 const int *ldu, T *vt, const int *ldvt, T *work, const int *lwork, int *iwork, int *info, size_t);
LAPACK(float, s)
LAPACK(double, d)

/* to (cols x rows) = from's transpose. */
static void turn(const ty_matrices *j, char *to, const char *from, int64_t rows, int64_t cols) {
  TY_OF_SIZE(ty_cpu_loops()->transpose, ty_loop_size[j->k])(to, rows, from, cols, rows, cols);
}
static size_t rounded(size_t n) { return (n + 63) / 64 * 64; }

/* Each of these functions does matrix i and returns LAPACK's info: above 0 where the matrix isn't what it must be. */

static int cholesky(const ty_matrices *j, int64_t i, char *work) {
  const int n = j->rows;
  const size_t row = (size_t)n * (size_t)j->size;
  const char *a = j->a + i * j->step_a;
  char *l = j->out + i * j->step_out;
  int info;
  (void)work;
  for (int r = 0; r < n; r++) {
    const size_t kept = (size_t)(r + 1) * (size_t)j->size;
    memcpy(l + (size_t)r * row, a + (size_t)r * row, kept);
    memset(l + (size_t)r * row + kept, 0, row - kept);
  }
  if (j->k) dpotrf_("U", &n, (double *)l, &n, &info, 1);
  else spotrf_("U", &n, (float *)l, &n, &info, 1);
  return info;
}

/* lu (n * n elements) gets the factors of the transpose, pivot n ints. */
static int factor(const ty_matrices *j, int64_t i, char *lu, int *pivot) {
  const int n = j->rows;
  int info;
  memcpy(lu, j->a + i * j->step_a, (size_t)n * (size_t)n * (size_t)j->size);
  if (j->k) dgetrf_(&n, &n, (double *)lu, &n, pivot, &info);
  else sgetrf_(&n, &n, (float *)lu, &n, pivot, &info);
  return info;
}

static void exchange(char *a, char *b, size_t n) {
  char was[1024];
  for (size_t k = 0, m; k < n && a != b; k += m) {
    m = TY_MIN(n - k, sizeof was);
    memcpy(was, a + k, m);
    memcpy(a + k, b + k, m);
    memcpy(b + k, was, m);
  }
}

/* work: the factors' exchanges, and LAPACK's. getri leaves some elements 0 where all must be NaN. */
static int invert(const ty_matrices *j, int64_t i, char *work) {
  const int n = j->rows;
  char *y = j->out + i * j->step_out, *more = work + rounded((size_t)n * sizeof(int));
  int *pivot = (int *)work, info = factor(j, i, y, pivot), wrong;
  double sum = 0;
  for (int r = 0; r < n; r++) sum += at(y, j->k, (int64_t)r * (n + 1));
  if (info || isnan(sum)) memset(y, 0xff, (size_t)j->step_out);                              /* NaN */
  else if (j->k) dgetri_(&n, (double *)y, &n, pivot, (double *)more, &j->area, &wrong);
  else sgetri_(&n, (float *)y, &n, pivot, (float *)more, &j->area, &wrong);
  return info;
}

/* The factors are of A^T = P L U, so A x = b is x^T P L U = b^T, and to LAPACK row-major x and b are x^T and b^T. */
static void solve_rows(const ty_matrices *j, const char *lu, const int *pivot, char *x) {
  const int n = j->rows, more = j->more;
  const size_t row = (size_t)more * (size_t)j->size;
  for (int unit = 0; unit < 2; unit++) {
    const enum CBLAS_UPLO side = unit ? CblasLower : CblasUpper;
    const enum CBLAS_DIAG diagonal = unit ? CblasUnit : CblasNonUnit;
    if (j->k) cblas_dtrsm(CblasColMajor, CblasRight, side, CblasNoTrans, diagonal, more, n, 1, (const double *)lu, n, (double *)x, more);
    else cblas_strsm(CblasColMajor, CblasRight, side, CblasNoTrans, diagonal, more, n, 1, (const float *)lu, n, (float *)x, more);
  }
  for (int r = n - 1; r >= 0; r--) exchange(x + (size_t)r * row, x + (size_t)(pivot[r] - 1) * row, row);
}

#define FEW 16                   /* columns for which getrs, on their transposes, is faster */

static int solve(const ty_matrices *j, int64_t i, char *work) {
  const int n = j->rows, more = j->more;
  const char *b = j->b + i * j->step_b;
  char *x = j->out + i * j->step_out, *turned = work + rounded((size_t)n * (size_t)n * (size_t)j->size);
  int *pivot = (int *)(turned + rounded((size_t)n * (size_t)FEW * (size_t)j->size)), wrong;
  const int info = factor(j, i, work, pivot);
  if (info) memset(x, 0xff, (size_t)j->step_out);                                /* NaN */
  else if (more > FEW) {
    memcpy(x, b, (size_t)j->step_out);
    solve_rows(j, work, pivot, x);
  } else {
    turn(j, turned, b, n, more);
    if (j->k) dgetrs_("T", &n, &more, (double *)work, &n, pivot, (double *)turned, &n, &wrong, 1);
    else sgetrs_("T", &n, &more, (float *)work, &n, pivot, (float *)turned, &n, &wrong, 1);
    turn(j, x, turned, more, n);
  }
  return info;
}

bool ty_order_rows(int64_t *order, int m, const int64_t *exchanged, int k) {
  for (int r = 0; r < m; r++) order[r] = r + 1;
  for (int r = 0; r < k; r++) {
    const int64_t with = exchanged[r], was = order[r];
    if (with < 1 || with > m) return false;
    order[r] = order[with - 1];
    order[with - 1] = was;
  }
  return true;
}

static ty_status order_all_rows(ty_call *c, const ty_tensor *pivots) {
  const int m = (int)c->at[TY_AT_order_of_rows_m].i, k = (int)pivots->shape[pivots->ndim - 1];
  const int64_t n = m ? ty_numel(c->out[0]) / m : 0, *p = ty_data(pivots);
  for (int64_t i = 0; i < n; i++)
    if (!ty_order_rows((int64_t *)ty_data(c->out[0]) + i * m, m, p + i * k, k))
      return ty_fail(c, "argument 2 (pivots) names a row that isn't one of 1 to %d", m);
  return TY_OK;
}

/* For matrices of any shape, also singular ones. work: the matrix by columns, and an int for each exchange. */
static int lu(const ty_matrices *j, int64_t i, char *work) {
  const int m = j->rows, n = j->cols, k = TY_MIN(m, n);
  int *pivot = (int *)(work + rounded((size_t)m * (size_t)n * (size_t)j->size)), info;
  int64_t *exchanged = (int64_t *)j->out2 + i * k, *order = (int64_t *)j->out3 + i * m;
  if (!k) return !ty_order_rows(order, m, NULL, 0);
  turn(j, work, j->a + i * j->step_a, m, n);
  if (j->k) dgetrf_(&m, &n, (double *)work, &m, pivot, &info);
  else sgetrf_(&m, &n, (float *)work, &m, pivot, &info);
  turn(j, j->out + i * j->step_out, work, n, m);
  for (int r = 0; r < k; r++) exchanged[r] = pivot[r];
  return !ty_order_rows(order, m, exchanged, k);
}

void ty_put_determinant(const ty_matrices *j, int64_t i, ty_pivots p) {
  const bool logarithm = j->c->op->id == TY_OP_log_determinant;
  put(j->out, j->k, i, logarithm ? ty_log_determinant(p) : ty_determinant(p));
  if (logarithm) put(j->out2, j->k, i, ty_sign_of_determinant(p));
}

/* The determinant or its logarithm; of a singular matrix no error. */
static int determinant(const ty_matrices *j, int64_t i, char *work) {
  const int n = j->rows;
  int *pivot = (int *)(work + rounded((size_t)n * (size_t)n * (size_t)j->size));
  ty_pivots p = {1, 0};
  if (n && factor(j, i, work, pivot) > 0) p.value = 0;
  for (int r = 0; r < n && p.value != 0; r++) ty_pivots_take(&p, at(work, j->k, (int64_t)r * n + r), pivot[r] != r + 1);
  ty_put_determinant(j, i, p);
  return 0;
}

static int triangle(const ty_matrices *j, int64_t i, char *work) {
  const bool upper = j->c->at[TY_AT_solve_triangle_upper].i, unit = j->c->at[TY_AT_solve_triangle_unit].i;
  const int n = j->rows, more = j->more;
  const char *a = j->a + i * j->step_a;
  char *x = j->out + i * j->step_out;
  (void)work;
  memcpy(x, j->b + i * j->step_b, (size_t)n * (size_t)more * (size_t)j->size);
  if (j->k)
    cblas_dtrsm(CblasRowMajor, CblasLeft, upper ? CblasUpper : CblasLower, CblasNoTrans,
      unit ? CblasUnit : CblasNonUnit, n, more, 1, (const double *)a, n, (double *)x, more);
  else
    cblas_strsm(CblasRowMajor, CblasLeft, upper ? CblasUpper : CblasLower, CblasNoTrans,
      unit ? CblasUnit : CblasNonUnit, n, more, 1, (const float *)a, n, (float *)x, more);
  return 0;
}

/* LAPACK replaces the matrix by the eigenvectors: its column r is row r of out, behind the eigenvalue. work: n values, LAPACK's, ints. */
static int eigen(const ty_matrices *j, int64_t i, char *work) {
  const int n = j->rows, ld = n + 1;
  const char *uplo = j->c->at[TY_AT_eigen_rows_upper].i ? "L" : "U";       /* the other triangle of the transpose */
  char *out = j->out + i * j->step_out, *more = work + rounded((size_t)n * (size_t)j->size);
  int *ints = (int *)(more + rounded((size_t)j->area * (size_t)j->size)), info;
  for (int r = 0; r < n; r++)
    memcpy(out + ((size_t)r * (size_t)ld + 1) * (size_t)j->size, j->a + i * j->step_a + (size_t)r * (size_t)n * (size_t)j->size,
      (size_t)n * (size_t)j->size);
  if (j->k) dsyevd_("V", uplo, &n, (double *)out + 1, &ld, (double *)work, (double *)more, &j->area, ints, &j->ints, &info, 1, 1);
  else ssyevd_("V", uplo, &n, (float *)out + 1, &ld, (float *)work, (float *)more, &j->area, ints, &j->ints, &info, 1, 1);
  for (int r = 0; r < n; r++) put(out, j->k, (int64_t)r * ld, at(work, j->k, r));
  return info;
}

/* work: the matrix by columns, with room for Q's columns; the reflectors' factors; LAPACK's. */
static int qr(const ty_matrices *j, int64_t i, char *work) {
  const int m = j->rows, n = j->cols, k = TY_MIN(m, n), q = j->more, side = TY_MAX(n, q);
  char *tau = work + rounded((size_t)m * (size_t)side * (size_t)j->size),
    *more = tau + rounded((size_t)k * (size_t)j->size), *out = j->out + i * j->step_out;
  int info;
  turn(j, work, j->a + i * j->step_a, m, n);
  if (j->k) dgeqrf_(&m, &n, (double *)work, &m, (double *)tau, (double *)more, &j->area, &info);
  else sgeqrf_(&m, &n, (float *)work, &m, (float *)tau, (float *)more, &j->area, &info);
  for (int r = 0; r < q; r++)
    for (int s = 0; s < n; s++) put(out, j->k, (int64_t)r * (m + n) + m + s, s >= r ? at(work, j->k, (int64_t)s * m + r) : 0);
  if (j->k) dorgqr_(&m, &q, &k, (double *)work, &m, (double *)tau, (double *)more, &j->area, &info);
  else sorgqr_(&m, &q, &k, (float *)work, &m, (float *)tau, (float *)more, &j->area, &info);
  for (int r = 0; r < q; r++)
    memcpy(out + (size_t)r * (size_t)(m + n) * (size_t)j->size, work + (size_t)r * (size_t)m * (size_t)j->size,
      (size_t)m * (size_t)j->size);
  return 0;
}

/* By the transpose's SVD, whose left vectors v LAPACK writes directly into out. work: the matrix, s, U, LAPACK's, ints. */
static int svd(const ty_matrices *j, int64_t i, char *work) {
  const int m = j->rows, n = j->cols, k = TY_MIN(m, n), ld = m + 1 + n;
  const size_t size = (size_t)j->size;
  char *s = work + rounded((size_t)m * (size_t)n * size), *u = s + rounded((size_t)k * size),
    *more = u + rounded((size_t)m * (size_t)k * size);
  char *out = j->out + i * j->step_out, *v = out + (size_t)(m + 1) * size;
  int *ints = (int *)(more + rounded((size_t)j->area * size)), info;
  memcpy(work, j->a + i * j->step_a, (size_t)m * (size_t)n * size);
  if (j->k)
    dgesdd_("S", &n, &m, (double *)work, &n, (double *)s, (double *)v, &ld, (double *)u, &k, (double *)more, &j->area,
      ints, &info, 1);
  else sgesdd_("S", &n, &m, (float *)work, &n, (float *)s, (float *)v, &ld, (float *)u, &k, (float *)more, &j->area, ints, &info, 1);
  for (int r = 0; r < k; r++) {
    for (int p = 0; p < m; p++) put(out, j->k, (int64_t)r * ld + p, at(u, j->k, (int64_t)p * k + r));
    put(out, j->k, (int64_t)r * ld + m, at(s, j->k, r));
  }
  return info;
}

/* Asks LAPACK for its work space (area, ints); returns the bytes that a thread needs in all. */
static size_t work_of(ty_matrices *j) {
  const int m = j->rows, n = j->cols, k = TY_MIN(m, n), q = j->more, id = j->c->op->id, ask = -1;
  const size_t size = (size_t)j->size, square = rounded((size_t)m * (size_t)n * size);
  double want[2] = {0, 0};             /* answers, in the matrices' dtype */
  float *f = (float *)want;
  int info, ints = 0;
  const char *uplo = "U";
  switch (id) {
    case TY_OP_solve_system: return square + rounded((size_t)n * FEW * size) + rounded((size_t)n * sizeof(int));
    case TY_OP_determinant: case TY_OP_log_determinant: return square + rounded((size_t)n * sizeof(int));
    case TY_OP_lu_factors: return square + rounded((size_t)k * sizeof(int));
    case TY_OP_invert:
      if (j->k) dgetri_(&n, NULL, &n, NULL, want, &ask, &info);
      else sgetri_(&n, NULL, &n, NULL, f, &ask, &info);
      j->ints = n;
      break;
    case TY_OP_eigen_rows: {
      const int ld = n + 1;
      if (j->k) dsyevd_("V", uplo, &n, NULL, &ld, NULL, want, &ask, &ints, &ask, &info, 1, 1);
      else ssyevd_("V", uplo, &n, NULL, &ld, NULL, f, &ask, &ints, &ask, &info, 1, 1);
      j->ints = ints;
    } break;
    case TY_OP_qr_rows:
      if (j->k) { dgeqrf_(&m, &n, NULL, &m, NULL, want, &ask, &info); dorgqr_(&m, &q, &k, NULL, &m, NULL, want + 1, &ask, &info); }
      else { sgeqrf_(&m, &n, NULL, &m, NULL, f, &ask, &info); sorgqr_(&m, &q, &k, NULL, &m, NULL, f + 1, &ask, &info); }
      break;
    case TY_OP_svd_rows: {
      const int ld = m + 1 + n;
      if (j->k) dgesdd_("S", &n, &m, NULL, &n, NULL, NULL, &ld, NULL, &k, want, &ask, &ints, &info, 1);
      else sgesdd_("S", &n, &m, NULL, &n, NULL, NULL, &ld, NULL, &k, f, &ask, &ints, &info, 1);
      j->ints = 8 * k;
    } break;
    default: return 0;
  }
  /* a float32 answer may have been rounded down */
  j->area = (int)TY_MIN((j->k ? TY_MAX(want[0], want[1]) : (double)TY_MAX(f[0], f[1])) * (1 + 1e-6) + 64, INT32_MAX);
  const size_t lapack = rounded((size_t)j->area * size) + rounded((size_t)j->ints * sizeof(int));
  if (id == TY_OP_invert) return lapack;
  if (id == TY_OP_eigen_rows) return rounded((size_t)n * size) + lapack;
  if (id == TY_OP_qr_rows) return rounded((size_t)m * (size_t)TY_MAX(n, q) * size) + rounded((size_t)k * size) + lapack;
  return square + rounded((size_t)k * size) + rounded((size_t)m * (size_t)k * size) + lapack;
}

static bool all_finite(const ty_matrices *j, int64_t n) {          /* iterations wouldn't converge otherwise */
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += at(j->a, j->k, i) * 0;
  return sum == 0;
}

static ty_status refused(ty_call *c, int64_t batches, int64_t at, int info) {
  char which[64] = "the matrix";
  if (batches > 1) snprintf(which, sizeof which, "matrix %lld of the batch", (long long)at + 1);
  switch (c->op->id) {
    case TY_OP_cholesky_factor: return ty_fail(c, "%s is not positive-definite (its leading minor of order %d)", which, info);
    case TY_OP_solve_system: case TY_OP_invert: return ty_fail(c, "%s is singular", which);
    default: return ty_fail(c, "the computation for %s did not converge", which);
  }
}

static ty_status run(ty_call *c, const ty_tensor *a, const ty_tensor *b) {
  static int (*const each[TY_NOP])(const ty_matrices *j, int64_t i, char *work) = {
    [TY_OP_cholesky_factor] = cholesky, [TY_OP_solve_system] = solve, [TY_OP_solve_triangle] = triangle,
    [TY_OP_invert] = invert, [TY_OP_determinant] = determinant, [TY_OP_log_determinant] = determinant, [TY_OP_lu_factors] = lu,
    [TY_OP_eigen_rows] = eigen, [TY_OP_qr_rows] = qr, [TY_OP_svd_rows] = svd};
  int (*const one)(const ty_matrices *j, int64_t i, char *work) = each[c->op->id];
  const ty_tensor *o = c->out[0];
  ty_matrices j = {.c = c, .k = a->dtype == TY_F64, .size = ty_itemsize(a), .rows = (int)a->shape[a->ndim - 2],
           .cols = (int)a->shape[a->ndim - 1], .a = ty_data(a), .b = b ? ty_data(b) : NULL,
           .out = ty_data(o), .out2 = c->out[1] ? ty_data(c->out[1]) : NULL, .out3 = c->out[2] ? ty_data(c->out[2]) : NULL};
  j.more = b ? (int)b->shape[b->ndim - 1] : o->ndim > 1 ? (int)o->shape[o->ndim - 2] : 0;
  int64_t batches = 1, bad = -1;
  int info = 0;
  for (int i = 0; i < a->ndim - 2; i++) batches *= a->shape[i];
  const bool has_info = one == cholesky || one == solve || one == invert;
  bool check = true;
  if (one == cholesky) check = c->at[TY_AT_cholesky_factor_check].i;
  if (one == solve) check = c->at[TY_AT_solve_system_check].i;
  if (one == invert) check = c->at[TY_AT_invert_check].i;
  if (has_info) memset(j.out2, 0, sizeof(int64_t) * (size_t)batches);
  if (batches == 0 || (ty_numel(o) == 0 && one != lu && one != solve) || (one == solve && !j.rows)) return TY_OK;
  j.step_a = ty_numel(a) / batches * j.size;
  j.step_b = b ? ty_numel(b) / batches * j.size : 0;
  j.step_out = ty_numel(o) / batches * j.size;
  if ((one == eigen || one == svd) && !all_finite(&j, ty_numel(a))) return ty_fail(c, "argument 1 has elements that are infinite or NaN");
  const size_t small = ty_small_matrices_work(&j, batches), need = rounded(small ? small : work_of(&j));
  const int width = small ? TY_MATRICES : 1;
  const int threads = batches > 1 ? (int)TY_MIN((int64_t)ty_threads_for(ty_numel(a) * j.rows), batches) : 1;
  char *work = ty_scratch(TY_MAX(need, 64) * (size_t)threads);
  if (!work) return ty_no_memory(c->ctx, c->op->shown);
  /* sharing LAPACK's many small steps among threads costs more than doing them, except LU's products of large matrices */
  const int before = ty_get_num_threads();
  const bool products = one != cholesky && one != eigen && one != qr && one != svd && j.rows >= 512;
  if (threads == 1 && !products) omp_set_num_threads(1);
  #pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int t = 0; t < threads; t++)
    for (int64_t i = batches * t / threads, end = batches * (t + 1) / threads; i < end; i += width) {
      const int count = (int)TY_MIN(width, end - i);
      int64_t failed[TY_MATRICES];
      if (small) ty_small_matrices(&j, i, count, work + need * (size_t)t, failed);
      else failed[0] = one(&j, i, work + need * (size_t)t);
      if (has_info) memcpy((int64_t *)(void *)j.out2 + i, failed, sizeof *failed * (size_t)count);
      for (int q = count - 1; q >= 0 && check; q--)
        if (failed[q]) {
          #pragma omp critical(ty_linalg)
          if (bad < 0 || i + q < bad) { bad = i + q; info = (int)failed[q]; }
        }
    }
  omp_set_num_threads(before);
  ty_scratch_free(work);
  return bad < 0 ? TY_OK : refused(c, batches, bad, info);
}

ty_status ty_cpu_linalg(ty_call *c) {
  ty_tensor *a, *b = NULL;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &a));
  ty_status s = c->nin > 1 ? ty_contiguous(c->ctx, c->in[1].t, &b) : TY_OK;
  if (s == TY_OK) s = c->op->id == TY_OP_order_of_rows ? order_all_rows(c, a) : run(c, a, b);
  ty_release(a);
  ty_release(b);
  return s;
}
