/* Matrix products by OpenBLAS, or by oneDNN: float32 where that was measured to be faster, bfloat16 where the CPU computes in it.
 * Idea: operands whose strides BLAS can read aren't copied; many rows against one matrix are folded into one product; a few 16-bit
 * rows, and a few rows against a transposed matrix, have loops of their own; integers are multiplied in float64 where that is exact,
 * else by plain loops.
 * Invariant: which way a product goes depends on shapes, strides, dtype and the number of threads alone, so that a repeated call gives
 * the same bits. */
#include <cblas.h>
#include <omp.h>
#include <string.h>
#include "cpu.h"
#include "matrices.h"

/* Numbers of multiplications, as measured (bench/results/cpu_history.md), from which on: oneDNN takes 0.6 to 0.9 of OpenBLAS's time;
 * the same for a transposed B or AVX2's kernels; several threads pay. */
#define FOR_DNNL 500000
#define FOR_DNNL_TURNED 100000
#define TO_SHARE 400000
#define PART 16            /* least rows or columns of a thread; with fewer, oneDNN's primitives are slow */

typedef struct {
  ty_loop_type k;
  int ta, tb;
  int64_t m, n, kk;
  const char *a;
  int64_t lda;
  const char *b;
  int64_t ldb;
  double beta;
  char *c;
  int64_t ldc;
} product;
static double multiplications(const product *p) { return (double)p->m * (double)p->n * (double)p->kk; }

#define DOT 4096           /* products added up in float32 before their sum is added to a float64 */

/* A product of two vectors, for which BLAS's matrix products are ten times too slow. */
static void dot(const product *p) {
  const int64_t sa = p->ta ? p->lda : 1, sb = p->tb ? 1 : p->ldb;
  double sum = 0;
  for (int64_t i = 0; i < p->kk; i += DOT) {
    const int n = (int)TY_MIN(DOT, p->kk - i);
    sum += p->k == TY_IN_F32
      ? (double)cblas_sdot(n, (const float *)p->a + i * sa, (int)sa, (const float *)p->b + i * sb, (int)sb)
      : cblas_ddot(n, (const double *)p->a + i * sa, (int)sa, (const double *)p->b + i * sb, (int)sb);
  }
  put(p->c, p->k, 0, sum + (p->beta != 0 ? p->beta * at(p->c, p->k, 0) : 0));
}

/* A matrix by a vector, or a vector by a matrix: for float64, BLAS's matrix products take up to four times as long. */
static void by_vector(const product *p) {
  product q = *p;
  if (p->n != 1) {                         /* a row by a matrix: the transposed matrix by a column */
    q.a = p->b, q.ta = !p->tb, q.lda = p->ldb;
    q.b = p->a, q.tb = !p->ta, q.ldb = p->lda;
    q.m = p->n, q.ldc = 1;
  }
  cblas_dgemv(CblasRowMajor, q.ta ? CblasTrans : CblasNoTrans, (int)(q.ta ? q.kk : q.m), (int)(q.ta ? q.m : q.kk), 1,
    (const double *)q.a, (int)TY_MAX(q.lda, 1), (const double *)q.b, q.tb ? 1 : (int)TY_MAX(q.ldb, 1), q.beta, (double *)q.c,
    (int)TY_MAX(q.ldc, 1));
}

/* A column by a row (kk is 1): BLAS and oneDNN would pack the operands, which doesn't pay here. */
#define OUTER(T, name) \
  static void name(const product *p) { \
    const T *a = (const T *)p->a, *b = (const T *)p->b; \
    const int64_t sa = p->ta ? 1 : p->lda, sb = p->tb ? p->ldb : 1; \
    _Pragma("omp parallel for num_threads(ty_threads_for(p->m * p->n)) schedule(static)") \
    for (int64_t i = 0; i < p->m; i++) { \
      T *restrict c = (T *)p->c + i * p->ldc; \
      const T by = a[i * sa]; \
      if (sb == 1) { _Pragma("omp simd") for (int64_t j = 0; j < p->n; j++) c[j] = by * b[j]; } \
      else for (int64_t j = 0; j < p->n; j++) c[j] = by * b[j * sb]; \
    } }
OUTER(float, outer_f32)
OUTER(double, outer_f64)
#undef OUTER

/* The part of a product that gives rows, or columns, from .. to - 1 of the result. */
static product part_of(product p, bool rows, int64_t from, int64_t to) {
  const int size = ty_loop_size[p.k];
  if (rows) {
    p.a += from * (p.ta ? 1 : p.lda) * size;
    p.c += from * p.ldc * size;
    p.m = to - from;
  } else {
    p.b += from * (p.tb ? p.ldb : 1) * size;
    p.c += from * size;
    p.n = to - from;
  }
  return p;
}

/* With a transposed B, as a linear layer's weight is, BLAS and oneDNN copy it first, which for few rows of A takes longer than the product.
 * So 4 to dot_rows() rows are multiplied by dot products, which read B once, where it lies. With more than AT_ONCE rows oneDNN's AVX-512
 * kernels reach a third to nine tenths of their speed: B is transposed first if it has few columns (bench/results/cpu_history.md). */
#define AT_ONCE 15
static int dot_rows(void) { return ty_dnnl_avx512() ? 32 : ty_dnnl_avx2() ? 8 : 0; }
bool ty_gemm_prefers_turned(ty_loop_type k, int64_t m) { return k == TY_IN_F32 && m > AT_ONCE && !ty_dnnl_avx2(); }
static bool dots_pay(const product *p) {
  return p->tb && !p->ta && p->m >= 4 && p->m <= dot_rows() && multiplications(p) >= FOR_DNNL_TURNED;
}
static bool turning_pays(const product *p) {
  return p->tb && ty_gemm_prefers_turned(p->k, p->m) && multiplications(p) >= FOR_DNNL_TURNED && p->kk >= 256 && p->n <= 64;
}

/* Whether AVX2's kernels take twice OpenBLAS's time, as where they read down columns whose elements are a multiple of 2 KB apart, in the
 * same few cache sets. Where m and n are large they copy the columns first; 0.0038 is oneDNN's own threshold for that. */
static bool in_same_places(const product *p) {
  return ((!p->tb && p->ldb % 512 == 0) || (p->ta && p->lda % 512 == 0)) && 1.0 / (double)p->m + 1.0 / (double)p->n >= 0.0038;
}
static bool dnnl_pays(const product *p) {
  const bool avx2 = ty_dnnl_avx2();
  return p->k == TY_IN_F32 && multiplications(p) >= (p->tb || avx2 ? FOR_DNNL_TURNED : FOR_DNNL) && !(avx2 && in_same_places(p));
}

/* Whether the loops for small products are faster, as measured (bench/results/cpu_history.md): against a transposed B, which they copy, for
 * many rows or few columns; in float64, which oneDNN doesn't take, for larger ones too. */
static bool is_small(const product *p) {
  return multiplications(p) < (p->k == TY_IN_F32 ? FOR_DNNL_TURNED : FOR_DNNL / 2) && p->kk > 3 && p->kk <= TY_SMALL_K && p->m > 1 &&
    p->n > 2 && (!p->tb || p->m >= 16 || p->n <= 16);
}

static ty_small_product by_loops(const product *p) {
  return (ty_small_product){.m = p->m, .n = p->n, .k = p->kk, .a = p->a, .ar = p->ta ? 1 : p->lda, .ac = p->ta ? p->lda : 1,
                            .b = p->b, .ldb = p->ldb, .turned = p->tb, .beta = p->beta, .o = p->c, .ldo = p->ldc};
}

/* One product: by this thread alone inside parallel work, else by BLAS's threads. */
static void multiply(const product *p) {
  const bool alone = omp_in_parallel() || ty_get_num_threads() == 1;
  float *b = turning_pays(p) ? ty_scratch(sizeof *b * (size_t)(p->kk * p->n)) : NULL;
  if (b) {
    product q = *p;
    TY_OF_SIZE(ty_cpu_loops()->transpose, sizeof *b)(b, p->n, p->b, p->ldb, p->n, p->kk);
    q.tb = 0, q.b = (char *)b, q.ldb = p->n;
    multiply(&q);
    ty_scratch_free(b);
    return;
  }
  const CBLAS_TRANSPOSE x = p->ta ? CblasTrans : CblasNoTrans, y = p->tb ? CblasTrans : CblasNoTrans;
  const int lda = (int)TY_MAX(p->lda, 1), ldb = (int)TY_MAX(p->ldb, 1);
  if (p->m == 1 && p->n == 1) { dot(p); return; }
  if (p->k == TY_IN_F64 && (p->m == 1 || p->n == 1)) { by_vector(p); return; }
  if (is_small(p)) {
    const ty_small_product q = by_loops(p);
    ty_cpu_loops()->product[p->k](&q);
    return;
  }
  if (alone && dnnl_pays(p) && ty_dnnl_gemm(p->ta, p->tb, p->m, p->n, p->kk, (const float *)p->a, lda, (const float *)p->b, ldb,
      (float)p->beta, (float *)p->c, p->ldc))
    return;
  if (p->k == TY_IN_F32)
    cblas_sgemm(CblasRowMajor, x, y, (int)p->m, (int)p->n, (int)p->kk, 1, (const float *)p->a, lda, (const float *)p->b,
      ldb, (float)p->beta, (float *)p->c, (int)p->ldc);
  else
    cblas_dgemm(CblasRowMajor, x, y, (int)p->m, (int)p->n, (int)p->kk, 1, (const double *)p->a, lda,
      (const double *)p->b, ldb, p->beta, (double *)p->c, (int)p->ldc);
}

/* By a primitive of oneDNN, which shares its work among the threads; false: nothing was done. */
static bool by_dnnl(const product *p, const void *bias) {
  if (p->k != TY_IN_F32 || (p->beta != 0 && p->beta != 1) || multiplications(p) < TO_SHARE || TY_MIN(p->m, p->n) < PART || dots_pay(p) ||
      omp_in_parallel() || ty_get_num_threads() == 1)
    return false;
  const ty_product q = {.batch = 1, .m = p->m, .n = p->n, .k = p->kk, .a = p->a, .b = p->b, .bias = bias, .c = p->c,
                        .ldc = p->ldc, .add = p->beta == 1, .sa = {p->m * p->kk, p->ta ? 1 : p->lda, p->ta ? p->lda : 1},
                        .sb = {p->kk * p->n, p->tb ? 1 : p->ldb, p->tb ? p->ldb : 1}};
  return ty_dnnl_product(&q);
}

/* With the threads that pay, which share the columns. */
static void by_dots(const product *p) {
  const int most = (int)TY_MAX(TY_MIN(p->n / PART, (int64_t)(multiplications(p) / FOR_DNNL_TURNED)), 1);
  const int threads = omp_in_parallel() || multiplications(p) < TO_SHARE ? 1 : TY_MIN(ty_get_num_threads(), most);
  #pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < threads; i++) {
    const product part = part_of(*p, false, p->n * i / threads, p->n * (i + 1) / threads);
    const ty_small_product q = by_loops(&part);
    ty_cpu_loops()->dot_products[p->k](&q);
  }
}

void ty_gemm(ty_loop_type k, int ta, int tb, int64_t m, int64_t n, int64_t kk, const void *a, int64_t lda, const void *b,
  int64_t ldb, double beta, void *c, int64_t ldc) {
  const product p = {k, ta, tb, m, n, kk, a, lda, b, ldb, beta, c, ldc};
  if (m == 0 || n == 0) return;
  if (kk == 1 && beta == 0) {
    if (k == TY_IN_F32) outer_f32(&p);
    else outer_f64(&p);
    return;
  }
  if (dots_pay(&p)) { by_dots(&p); return; }
  if (by_dnnl(&p, NULL)) return;
  const int threads = k == TY_IN_F32 && multiplications(&p) >= TO_SHARE && !omp_in_parallel()
    ? TY_MIN(ty_get_num_threads(), (int)TY_MAX(TY_MAX(m, n) / PART, 1)) : 1;
  if (threads > 1) {
    const int64_t most = TY_MAX(m, n);
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int i = 0; i < threads; i++) {
      const product part = part_of(p, m > n, most * i / threads, most * (i + 1) / threads);
      if (part.m && part.n) multiply(&part);
    }
  } else multiply(&p);
}

/* A matrix as BLAS reads it. */
typedef struct { const char *p; int trans; int64_t ld; } blas_matrix;

static blas_matrix blas_of(const ty_matrix *m, const char *p) { return (blas_matrix){p, !ty_by_rows(m), ty_leading(m)}; }
static bool readable(const ty_matrix *m) {
  if ((m->rows > 1 && m->rs > INT32_MAX) || (m->cols > 1 && m->cs > INT32_MAX)) return false;      /* BLAS counts in int */
  return ty_by_rows(m) || ty_by_columns(m);
}

/* Copies integers to float64, row by row; returns the largest absolute value. */
static double widened(ty_dtype d, const ty_matrix *x, const char *p, double *out) {
  const int s = ty_dtype_size[d];
  double most = 0;
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++) {
      const double v = (double)ty_get_int(p + (i * x->rs + j * x->cs) * s, d);
      out[i * x->cols + j] = v;
      most = TY_MAX(most, v < 0 ? -v : v);
    }
  return most;
}

/* An integer product in float64, where that is exact, since no sum can reach 2^53. False: nothing was done. */
static bool exact_in_double(ty_dtype d, const ty_matrix *a, const ty_matrix *b, const char *pa, const char *pb, char *po) {
  const int64_t m = a->rows, k = a->cols, n = b->cols;
  if ((double)m * (double)n * (double)k < 4096 || TY_MAX(TY_MAX(m, n), k) > INT32_MAX) return false;
  double *x = ty_scratch(sizeof(double) * (size_t)(m * k + k * n + m * n));
  if (!x) return false;
  double *y = x + m * k, *z = y + k * n;
  const bool exact = widened(d, a, pa, x) * widened(d, b, pb, y) * (double)k < 0x1p53;
  if (exact) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1, x, (int)TY_MAX(k, 1), y,
      (int)TY_MAX(n, 1), 0, z, (int)TY_MAX(n, 1));
    for (int64_t i = 0; i < m * n; i++) ty_set_int(po + i * ty_dtype_size[d], d, (int64_t)z[i]);
  }
  ty_scratch_free(x);
  return exact;
}

static void whole_numbers(ty_dtype d, const ty_matrix *a, const ty_matrix *b, const char *pa, const char *pb, char *po) {
  int s = ty_dtype_size[d];
  if (exact_in_double(d, a, b, pa, pb, po)) return;
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t j = 0; j < b->cols; j++) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < a->cols; k++)
        sum += (uint64_t)ty_get_int(pa + (i * a->rs + k * a->cs) * s, d) * (uint64_t)ty_get_int(pb + (k * b->rs + j * b->cs) * s, d);
      ty_set_int(po + (i * b->cols + j) * s, d, (int64_t)sum);
    }
}

typedef struct {
  ty_dtype d;
  ty_loop_type k;
  int size, nd;
  int64_t batches, m, n, kk;
  const int64_t *shape;
  ty_matrix x, y;
  const char *px, *py;
  char *po;
} products;

static void one_product(const products *w, int64_t i) {
  const char *p = w->px + ty_matrix_at(&w->x, i, w->shape, w->nd, w->nd) * w->size;
  const char *q = w->py + ty_matrix_at(&w->y, i, w->shape, w->nd, w->nd) * w->size;
  char *r = w->po + i * w->m * w->n * w->size;
  if (w->k == TY_IN_I64) { whole_numbers(w->d, &w->x, &w->y, p, q, r); return; }
  const blas_matrix u = blas_of(&w->x, p), v = blas_of(&w->y, q);
  if (w->kk == 0) memset(r, 0, (size_t)(w->m * w->n * w->size));
  else ty_gemm(w->k, u.trans, v.trans, w->m, w->n, w->kk, u.p, u.ld, v.p, v.ld, 0, r, w->n);
}

static products products_of(ty_matrix x, ty_matrix y, const ty_tensor *o) {
  ty_dtype d = o->dtype;
  products w = {.d = d, .k = ty_loop_type_of(d), .size = ty_dtype_size[d], .nd = TY_MAX(x.nb, y.nb),
                .batches = 1, .m = x.rows, .n = y.cols, .kk = x.cols, .shape = o->shape, .x = x, .y = y,
                .px = ty_data(x.t), .py = ty_data(y.t), .po = ty_data(o)};
  for (int i = 0; i < w.nd; i++) w.batches *= w.shape[i];
  if (ty_is_float_loop(w.k) && w.m * w.batches <= INT32_MAX && ty_one_matrix(&w.x, &y, w.batches)) {
    w.m = w.x.rows;
    w.batches = 1;
    w.nd = 0;
  }
  return w;
}

static ty_status matmul(ty_call *c) {
  ty_tensor *a = c->in[0].t, *b = c->in[1].t, *o = c->out[0], *ca = NULL, *cb = NULL;
  const ty_loop_type k = ty_loop_type_of(a->dtype);
  ty_matrix x = ty_matrix_of(a, true), y = ty_matrix_of(b, false);
  if (ty_numel(o) == 0) return TY_OK;
  if (ty_is_float_loop(k) && !readable(&x)) { TY_TRY(ty_contiguous(c->ctx, a, &ca)); x = ty_matrix_of(ca, true); }
  if (ty_is_float_loop(k) && !readable(&y)) {
    ty_status s = ty_contiguous(c->ctx, b, &cb);
    if (s != TY_OK) { ty_release(ca); return s; }
    y = ty_matrix_of(cb, false);
  }
  products w = products_of(x, y, o);
  /* threads share the products of a batch; of few or large products, they share each one */
  const int64_t each = w.m * w.n * w.kk;
  int threads = w.batches > 1 && (each < 1 << 18 || (each < 1 << 24 && w.batches >= 2 * ty_get_num_threads()))
    ? ty_threads_for(w.batches * each / 8) : 1;
  if (threads > 1) {
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < w.batches; i++) one_product(&w, i);
  } else for (int64_t i = 0; i < w.batches; i++) one_product(&w, i);
  ty_release(ca);
  ty_release(cb);
  return TY_OK;
}

/* out = x W^T + bias, or its relu. For BLAS, out begins as the bias, and the product is added. */
static ty_status linear(ty_call *c) {
  ty_tensor *x, *w = c->in[1].t, *b = c->in[2].t, *o = c->out[0], *cw = NULL, *cb = NULL;
  const ty_loop_type k = ty_loop_type_of(o->dtype);
  const int size = ty_itemsize(o);
  int64_t n = w->shape[0], kk = w->shape[1], m = n ? ty_numel(o) / n : 0;
  if (ty_numel(o) == 0) return TY_OK;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  ty_status s = TY_OK;
  ty_matrix weight = ty_matrix_of(w, false);
  if (!readable(&weight)) {
    s = ty_contiguous(c->ctx, w, &cw);
    if (s == TY_OK) weight = ty_matrix_of(cw, false);
  }
  if (s == TY_OK && b) { s = ty_contiguous(c->ctx, b, &cb); b = cb; }
  if (s == TY_OK) {
    const blas_matrix u = blas_of(&weight, ty_data(weight.t));
    char *dst = ty_data(o);
    const product p = {k, 0, !u.trans, m, n, kk, ty_data(x), kk, u.p, u.ld, 0, dst, n};
    if (!by_dnnl(&p, b ? ty_data(b) : NULL)) {
      if (b)
        for (int64_t i = 0; i < m; i++) memcpy(dst + i * n * size, ty_data(b), (size_t)(n * size));
      if (kk) ty_gemm(k, 0, !u.trans, m, n, kk, ty_data(x), kk, u.p, u.ld, b ? 1 : 0, dst, n);
      else if (!b) memset(dst, 0, (size_t)(m * n * size));
    }
    if (c->op->id == TY_OP_linear_relu) ty_cpu_loops()->pointwise[TY_OP_relu][k](dst, dst, NULL, NULL, m * n, 0, 0);
  }
  ty_release(x);
  ty_release(cw);
  ty_release(cb);
  return s;
}

/* A bfloat16 product without conversion. False: nothing was done. */
static bool bf16_product(ty_call *c) {
  ty_tensor *a = c->in[0].t, *b = c->in[1].t, *o = c->out[0], *bias = NULL;
  bool lin = c->op->id == TY_OP_linear;
  if (a->dtype != TY_BF16 || b->dtype != TY_BF16 || ty_numel(o) == 0 || ty_numel(a) == 0 || (!lin && c->op->id != TY_OP_matmul))
    return false;
  ty_matrix x = ty_matrix_of(a, true), y = ty_matrix_of(b, false);
  if (lin) {
    bias = c->in[2].t;
    y = ty_matrix_turned(y);
    if (bias && !ty_is_contiguous(bias)) return false;
  }
  products w = products_of(x, y, o);
  if (!readable(&w.x) || !readable(&y)) return false;
  const blas_matrix u = blas_of(&w.x, NULL), v = blas_of(&y, NULL);
  ty_product p = {.batch = w.batches, .m = w.m, .n = w.n, .k = w.kk, .a = w.px, .b = w.py,
    .bias = bias ? ty_data(bias) : NULL, .c = w.po, .ldc = w.n, .bf16 = true};
  if (w.batches > 1) {
    p.sa[0] = ty_matrix_at(&x, 1, w.shape, w.nd, w.nd);
    p.sb[0] = ty_matrix_at(&y, 1, w.shape, w.nd, w.nd);
    if (p.sa[0] < 0 || p.sb[0] < 0) return false;
    for (int64_t i = 2; i < w.batches; i++)
      if (ty_matrix_at(&x, i, w.shape, w.nd, w.nd) != i * p.sa[0] || ty_matrix_at(&y, i, w.shape, w.nd, w.nd) != i * p.sb[0]) return false;
  }
  p.sa[1] = u.trans ? 1 : u.ld;
  p.sa[2] = u.trans ? u.ld : 1;
  p.sb[1] = v.trans ? 1 : v.ld;
  p.sb[2] = v.trans ? v.ld : 1;
  /* oneDNN 3.7 is wrong for a row by a column whose elements aren't contiguous; it isn't faster there, either */
  if ((w.m == 1 && p.sa[2] != 1) || (w.n == 1 && p.sb[1] != 1)) return false;
  return ty_dnnl_product(&p);
}

/* 16-bit products of a few rows, or a vector, with a matrix that is contiguous along them, so that each of its elements is read once, and
 * isn't stored converted: what text generation does, word by word. False: nothing was done. */
#define LEAST 16           /* least rows and columns of the matrix */

/* In each TY_LANES elements of a row, moves the even ones before the odd ones; only in whole pieces of TY_BESIDE_WHOLE. */
static void beside_order(float *v, int64_t n) {
  float t[TY_LANES];
  for (int64_t i = 0; i < n / TY_BESIDE_WHOLE * TY_BESIDE_WHOLE; i += TY_LANES) {
    memcpy(t, v + i, sizeof t);
    for (int j = 0; j < TY_LANES; j++) v[i + j % 2 * (TY_LANES / 2) + j / 2] = t[j];
  }
}

static bool few_rows(const ty_call *c) {
  const ty_tensor *a = c->in[0].t, *b = c->in[1].t, *o = c->out[0], *bias = NULL;
  const bool lin = c->op->id != TY_OP_matmul;
  const ty_dtype d = o->dtype;
  if (a->dtype != d || b->dtype != d || ty_numel(o) == 0) return false;
  ty_matrix x = ty_matrix_of(a, true), y = ty_matrix_of(b, false);
  if (lin) {
    bias = c->in[2].t;
    y = ty_matrix_turned(y);
    if (bias && (bias->dtype != d || !ty_is_contiguous(bias))) return false;
  }
  const products w = products_of(x, y, o);
  const char *few = w.px, *all = w.py;
  int64_t m = w.m, n = w.n, row = w.x.rs, step = w.x.cs, next = y.cs, along = y.rs;
  if (n == 1 && !lin) {                    /* a matrix and a vector */
    few = w.py; all = w.px;
    m = 1; n = w.m; step = y.rs; next = w.x.rs; along = w.x.cs;
  }
  if (w.batches != 1 || along != 1 || n < LEAST || w.kk < LEAST || m > (d == TY_BF16 && ty_native_bf16(-1) ? 1 : TY_BESIDE)) return false;
  const ty_loops *l = ty_cpu_loops();
  float *v = ty_scratch(sizeof(float) * (size_t)(m * w.kk));
  if (!v) return false;
  for (int64_t i = 0; i < m; i++) {
    l->load[d][TY_IN_F32](v + i * w.kk, few + i * row * 2, step, w.kk);
    if (d == TY_BF16) beside_order(v + i * w.kk, w.kk);
  }
  const int64_t part = 64, parts = (n + part - 1) / part;
  #pragma omp parallel for num_threads(ty_threads_for(n * w.kk / 8)) schedule(static)
  for (int64_t p = 0; p < parts; p++) {
    const int64_t first = p * part, count = TY_MIN(part, n - first);
    float sum[TY_BESIDE][64], offset[64], out[TY_BESIDE];
    if (bias) l->load[d][TY_IN_F32](offset, ty_data(bias) + first * 2, 1, count);
    for (int64_t j = 0; j < count; j++) {
      l->beside[d == TY_BF16](out, v, (int)m, (const uint16_t *)(const void *)all + (first + j) * next, w.kk);
      for (int64_t i = 0; i < m; i++) sum[i][j] = bias ? out[i] + offset[j] : out[i];
    }
    for (int64_t i = 0; i < m; i++) {
      if (c->op->id == TY_OP_linear_relu) l->pointwise[TY_OP_relu][TY_IN_F32](sum[i], sum[i], NULL, NULL, count, 0, 0);
      l->store[d][TY_IN_F32](ty_data(o) + (i * n + first) * 2, 1, sum[i], count);
    }
  }
  ty_scratch_free(v);
  return true;
}

/* linear_backward_weight: grad^T x, and the sum over grad's rows. */
static ty_status weight_gradient(ty_call *c) {
  ty_tensor turned = *c->in[0].t;
  ty_operand in[2] = {ty_operand_tensor(&turned), c->in[1]};
  ty_attr at[2] = {{.set = true, .n = 1, .v = {0}}, {.set = true}};
  ty_call product = *c, sum = *c;
  for (int i = 0; i < 2; i++) {
    turned.shape[i] = c->in[0].t->shape[1 - i];
    turned.stride[i] = c->in[0].t->stride[1 - i];
  }
  product.op = &ty_ops[TY_OP_matmul];
  product.in = in;
  sum.op = &ty_ops[TY_OP_sum];
  sum.nin = 1;
  sum.at = at;
  sum.out[0] = c->out[1];
  TY_TRY(ty_cpu_matmul(&product));
  return ty_cpu_reduce(&sum);
}

/* BLAS counts rows and columns in int. */
static ty_status run(ty_call *c) {
  const bool lin = c->op->id == TY_OP_linear || c->op->id == TY_OP_linear_relu;
  const ty_matrix x = ty_matrix_of(c->in[0].t, true), y = ty_matrix_of(c->in[1].t, lin);
  const int64_t rows = lin ? ty_numel(c->in[0].t) / TY_MAX(x.cols, 1) : x.rows;
  if (TY_MAX(TY_MAX(rows, x.cols), TY_MAX(y.rows, y.cols)) > INT32_MAX)
    return ty_fail(c, "a product of %lldx%lld and %lldx%lld: at most 2^31 - 1 rows and columns", (long long)rows, (long long)x.cols,
      (long long)y.rows, (long long)y.cols);
  return lin ? linear(c) : matmul(c);
}
ty_status ty_cpu_matmul(ty_call *c) {
  if (c->op->id == TY_OP_linear_backward_weight) return weight_gradient(c);
  if (ty_is_16bit(c->out[0]->dtype) && few_rows(c)) return TY_OK;
  return c->out[0]->dtype == TY_BF16 && ty_native_bf16(-1) && bf16_product(c) ? TY_OK : ty_widened(c, run);
}
