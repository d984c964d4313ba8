/* Linear algebra of matrices with up to TY_K_SIDE rows, by kernels/matrices.cu. Others, and the ops of class decompose, are the CPU's
 * (functional/linalg.lua). Invariant: nothing waits; a matrix that has no factors is told in the second result alone. */
#include "cuda.h"

static int kind_of(int op) {
  switch (op) {
    case TY_OP_cholesky_factor: return TY_MATRICES_CHOLESKY;
    case TY_OP_solve_system: return TY_MATRICES_SOLVE;
    case TY_OP_invert: return TY_MATRICES_INVERT;
    case TY_OP_determinant: return TY_MATRICES_DETERMINANT;
    case TY_OP_log_determinant: return TY_MATRICES_LOG;
    case TY_OP_lu_factors: return TY_MATRICES_LU;
    default: return TY_MATRICES_TRIANGLE;
  }
}

static ty_status run(ty_call *c, const ty_tensor *a, const ty_tensor *b, ty_k_matrices *k) {
  ty_tensor *work = NULL;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (k->n > TY_K_SIDE_SHARED) {
    ty_meta m = {.dtype = a->dtype, .ndim = 1, .shape = {ty_numel(a)}};
    TY_TRY(ty_empty(c->ctx, &ty_gpus[gpu], &m, &work));
    k->work = ty_data(work);
  }
  k->a = ty_data(a);
  k->b = b ? ty_data(b) : NULL;
  k->o = ty_data(c->out[0]);
  if (k->kind == TY_MATRICES_LOG) k->sign = ty_data(c->out[1]);
  else if (k->kind == TY_MATRICES_LU) {
    k->exchanged = ty_data(c->out[1]);
    k->order = ty_data(c->out[2]);
  } else if (c->out[1]) k->info = ty_data(c->out[1]);
  const ty_status st = ty_cuda_launched(c, gpu, ty_k_matrices_each(k, s));
  ty_release(work);
  return st;
}

ty_status ty_cuda_linalg(ty_call *c) {
  ty_tensor *in[2] = {NULL};
  const ty_tensor *x = c->in[0].t;
  ty_k_matrices k = {.kind = kind_of(c->op->id), .dtype = x->dtype, .batch = 1};
  const int64_t rows = x->shape[x->ndim - 2], cols = x->shape[x->ndim - 1];
  if (rows != cols || cols > TY_K_SIDE)
    return ty_fail(c, "argument 1 has matrices of %lldx%lld; a GPU takes square ones of up to %d rows", (long long)rows, (long long)cols,
      TY_K_SIDE);
  k.n = (int)cols;
  for (int i = 0; i < x->ndim - 2; i++) k.batch *= x->shape[i];
  if (k.batch == 0) return TY_OK;
  if (c->nin > 1) {
    const int64_t more = c->in[1].t->shape[x->ndim - 1];
    if (more * k.n > INT32_MAX) return ty_fail(c, "argument 2 has %lld columns, which are too many for a GPU", (long long)more);
    k.more = (int)more;
  }
  if (k.batch > INT32_MAX) return ty_fail(c, "argument 1 has %lld matrices; a GPU takes %d", (long long)k.batch, INT32_MAX);
  if (k.kind == TY_MATRICES_TRIANGLE) {
    k.upper = c->at[TY_AT_solve_triangle_upper].i;
    k.unit = c->at[TY_AT_solve_triangle_unit].i;
  }
  ty_status s = ty_contiguous_operands(c, in);
  if (s == TY_OK) s = run(c, in[0], in[1], &k);
  for (int i = 0; i < 2; i++) ty_release(in[i]);
  return s;
}
