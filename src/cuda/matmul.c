/* Matrix products.
 *
 * Idea: operands whose strides BLAS can read aren't copied; many rows against one matrix are one product; a batch is one call where a
 * single step leads from each matrix to the next. Invariant: in each matrix that BLAS gets, the elements of a row, or those of a column,
 * are contiguous. */
#include <string.h>
#include "blas.h"
#include "matrices.h"

/* The single step from each matrix to the next over the batch dims from .. nd - 1; -1: there is none. shape: the result's batch dims. */
static int64_t step_of(const ty_matrix *m, const int64_t *shape, int from, int nd) {
  int64_t step = -1, inner = 1;
  for (int d = nd - 1; d >= from; d--) {
    if (shape[d] == 1) continue;
    const int k = d - (nd - m->nb);
    const int64_t s = k < 0 || m->t->shape[k] == 1 ? 0 : m->t->stride[k];
    if (step < 0) step = s;
    else if (s != step * inner) return -1;
    inner *= shape[d];
  }
  return step < 0 ? 0 : step;
}

/* Whether one matrix is used for several of the batch: a copy would repeat it. */
static bool repeats(const ty_matrix *m, const int64_t *shape, int nd) {
  for (int d = 0; d < nd; d++) {
    const int k = d - (nd - m->nb);
    if (shape[d] > 1 && (k < 0 || m->t->shape[k] == 1 || m->t->stride[k] == 0)) return true;
  }
  return false;
}

/* Replaces m by a contiguous copy, *copy, where that makes the batch one product. */
static ty_status gather(ty_call *c, ty_matrix *m, bool left, const int64_t *shape, int nd, ty_tensor **copy) {
  if (step_of(m, shape, 0, nd) >= 0 || repeats(m, shape, nd) || *copy) return TY_OK;
  TY_TRY(ty_contiguous(c->ctx, (ty_tensor *)m->t, copy));
  *m = ty_matrix_of(*copy, left);
  return TY_OK;
}

/* The library's kernels count batches in 16 bits; a power of two keeps the parts aligned. */
#define BATCHES (1 << 15)

ty_status ty_cuda_multiply(ty_call *c, int gpu, const ty_k_product *p, bool *sums) {
  ty_stream *s = ty_stream_of(c->ctx, gpu);
  *sums = p->row_sums != NULL;
  if (p->batch > BATCHES) {                /* all matrices share a bias; sums are for single products only */
    const int64_t item = ty_dtype_size[p->dtype], out = p->wide ? 4 : item;
    for (int64_t i = 0; i < p->batch; i += BATCHES) {
      ty_k_product part = *p;
      part.batch = TY_MIN(BATCHES, p->batch - i);
      part.a = (const char *)p->a + i * p->stride_a * item;
      part.b = (const char *)p->b + i * p->stride_b * item;
      part.c = (char *)p->c + i * p->m * p->n * out;
      TY_TRY(ty_cuda_multiply(c, gpu, &part, sums));
    }
    return TY_OK;
  }
  return ty_is_float(p->dtype) && p->k > 0 && ((uintptr_t)p->bias | (uintptr_t)p->row_sums) % 16 == 0
    ? ty_blas_product(c, gpu, p, s, sums) : ty_cuda_launched(c, gpu, ty_k_multiply(p, s->s));
}

/* Replaces m by a contiguous copy, *copy, unless BLAS can read it as it is. */
static ty_status readable(ty_call *c, ty_matrix *m, bool left, ty_tensor **copy) {
  if (ty_by_rows(m) || ty_by_columns(m)) return TY_OK;
  TY_TRY(ty_contiguous(c->ctx, (ty_tensor *)m->t, copy));
  *m = ty_matrix_of(*copy, left);
  return TY_OK;
}

/* Does the product p of x and y, with the fewest calls; the result has the batch dims shape. *sums: whether row_sums are written. */
static ty_status multiply_all(ty_call *c, int gpu, ty_k_product *p, const ty_matrix *x, const ty_matrix *y, const int64_t *shape, int nd,
  bool *sums) {
  const int64_t item = ty_dtype_size[p->dtype], each = p->m * p->n * item, all = p->batch;
  char *const o = p->c;
  int outer = 0;                           /* batch dims that are looped over here; the others are one product */
  p->ta = !ty_by_rows(x);
  p->tb = !ty_by_rows(y);
  p->lda = ty_leading(x);
  p->ldb = ty_leading(y);
  if (all == 1) outer = nd;
  while (outer < nd && (step_of(x, shape, outer, nd) < 0 || step_of(y, shape, outer, nd) < 0)) p->batch /= shape[outer++];
  p->stride_a = step_of(x, shape, outer, nd);
  p->stride_b = step_of(y, shape, outer, nd);
  for (int64_t i = 0; i < all / p->batch; i++) {
    p->a = (const char *)ty_data(x->t) + ty_matrix_at(x, i, shape, outer, nd) * item;
    p->b = (const char *)ty_data(y->t) + ty_matrix_at(y, i, shape, outer, nd) * item;
    p->c = o + i * p->batch * each;
    TY_TRY(ty_cuda_multiply(c, gpu, p, sums));
  }
  return TY_OK;
}

/* sums: NULL, or gets the sums of a's rows, of a single product */
static ty_status product(ty_call *c, const ty_tensor *a, const ty_tensor *b, const ty_tensor *bias, bool relu, const ty_tensor *sums) {
  const ty_tensor *o = c->out[0];
  ty_matrix x = ty_matrix_of(a, true), y = ty_matrix_of(b, false);
  const int nd = TY_MAX(x.nb, y.nb);
  ty_tensor *ca = NULL, *cb = NULL, *cbias = NULL;
  ty_k_product p = {.dtype = o->dtype, .m = x.rows, .n = y.cols, .k = x.cols, .batch = 1, .relu = relu, .c = ty_data(o),
    .row_sums = sums ? ty_data(sums) : NULL};
  bool summed = false;
  int gpu;
  cudaStream_t stream;
  TY_TRY(ty_cuda_begin(c, &gpu, &stream));
  for (int i = 0; i < nd; i++) p.batch *= o->shape[i];
  ty_status s = readable(c, &x, true, &ca);
  if (s == TY_OK) s = readable(c, &y, false, &cb);
  if (s == TY_OK && ty_one_matrix(&x, &y, p.batch)) {
    p.m = x.rows;
    p.batch = 1;
  }
  if (s == TY_OK && bias) s = ty_contiguous(c->ctx, (ty_tensor *)bias, &cbias);
  if (s == TY_OK && bias) s = ty_cuda_align_data(c, gpu, stream, &cbias);
  if (s == TY_OK && bias) p.bias = ty_data(cbias);
  if (s == TY_OK && p.batch > 1) s = gather(c, &x, true, o->shape, nd, &ca);
  if (s == TY_OK && p.batch > 1) s = gather(c, &y, false, o->shape, nd, &cb);
  const size_t bytes = (size_t)(p.m * p.n * p.batch * ty_itemsize(o));
  if (s == TY_OK && bytes && p.k == 0 && !bias) s = ty_cuda_launched(c, gpu, cudaMemsetAsync(p.c, 0, bytes, stream));
  else if (s == TY_OK && bytes) s = multiply_all(c, gpu, &p, &x, &y, o->shape, nd, &summed);
  if (s == TY_OK && sums && !summed && ty_numel(sums))
    s = ty_cuda_reduce_into(c, gpu, stream, TY_OP_sum, a, 2, p.row_sums, sums->dtype, ty_numel(sums));
  ty_release(ca);
  ty_release(cb);
  ty_release(cbias);
  return s;
}

static ty_tensor transposed(const ty_tensor *t) {    /* a view of a matrix */
  ty_tensor w = *t;
  w.shape[0] = t->shape[1]; w.stride[0] = t->stride[1];
  w.shape[1] = t->shape[0]; w.stride[1] = t->stride[0];
  return w;
}

ty_status ty_cuda_matmul(ty_call *c) {
  if (c->op->id == TY_OP_matmul) return product(c, c->in[0].t, c->in[1].t, NULL, false, NULL);
  const ty_tensor turned = transposed(c->in[c->op->id == TY_OP_linear_backward_weight ? 0 : 1].t);
  if (c->op->id == TY_OP_linear_backward_weight) return product(c, &turned, c->in[1].t, NULL, false, c->out[1]);
  return product(c, c->in[0].t, &turned, c->in[2].t, c->op->id == TY_OP_linear_relu, NULL);
}
