/* Scans along a dim, and extremes with their positions, by kernels/scan.cu.
 *
 * Idea: kernels take contiguous memory, in which a line's elements lie `inner` apart; few long lines are cut into sections, which are
 * joined. Invariant: the cuts depend on the shape alone, so that sums have one order. */
#include "cuda.h"

ty_status ty_cuda_scan_lines(ty_call *c, int gpu, cudaStream_t s, ty_k_scan *k) {
  ty_tensor *partial = NULL;
  ty_k_scan_sections(k);
  if (k->sections > 1) {
    TY_TRY(ty_cuda_new(c, gpu, TY_I64, 1, &(int64_t){2 * k->lines * k->sections}, &partial));
    k->partial = ty_data(partial);
  }
  const ty_status st = ty_cuda_launched(c, gpu, ty_k_scan_lines(k, s));
  ty_release(partial);
  return st;
}

static ty_status scan(ty_call *c) {
  ty_tensor *x = NULL;
  const ty_tensor *t = c->in[0].t;
  const int dim = (int)c->at[TY_AT_cumsum_dim].i;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (ty_numel(t) == 0) return TY_OK;
  ty_tensor *places = c->op->nout > 1 ? c->out[1] : NULL;
  ty_tensor *y;
  TY_TRY(ty_cast(c->ctx, (ty_tensor *)t, c->out[0]->dtype, &y));   /* sums of bool and small integers are int64 */
  ty_status st = ty_contiguous(c->ctx, y, &x);
  ty_release(y);
  TY_TRY(st);
  ty_k_scan k = {.op = c->op->id, .k = ty_is_float(x->dtype) ? TY_IN_F64 : TY_IN_I64, .dtype = x->dtype,
                 .x = ty_data(x), .o = ty_data(c->out[0]), .place = places ? ty_data(places) : NULL};
  ty_cuda_lines_of(t, dim, &k.lines, &k.n, &k.inner);
  st = ty_cuda_scan_lines(c, gpu, s, &k);
  ty_release(x);
  return st;
}

static ty_status cumprod_gradient(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const int dim = (int)c->at[TY_AT_cumprod_backward_dim].i;
  ty_tensor *g = NULL, *x = NULL, *products = NULL;
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  ty_k_scan k = {.op = c->op->id, .dtype = o->dtype};
  ty_cuda_lines_of(o, dim, &k.lines, &k.n, &k.inner);
  if (k.lines * k.n == 0) return TY_OK;
  const int64_t elements = k.lines * k.n;
  ty_status st = ty_contiguous(c->ctx, c->in[0].t, &g);
  if (st == TY_OK) st = ty_contiguous(c->ctx, c->in[1].t, &x);
  if (st == TY_OK) st = ty_cuda_new(c, gpu, TY_F64, 1, &elements, &products);
  if (st == TY_OK) {
    k.x = ty_data(x);
    k.o = ty_data(o);
    st = ty_cuda_launched(c, gpu, ty_k_cumprod_gradient(&k, ty_data(g), ty_data(products), s));
  }
  ty_release(g);
  ty_release(x);
  ty_release(products);
  return st;
}

ty_status ty_cuda_scan(ty_call *c) { return c->op->id == TY_OP_cumprod_backward ? cumprod_gradient(c) : scan(c); }
ty_status ty_cuda_reduce_index(ty_call *c) { return scan(c); }
