/* layer_norm, RMS norm, batch_norm and group_norm, forward and backward, by kernels/layer_norm.cu, batch_norm.cu and group_norm.cu.
 *
 * Idea: kernels take contiguous rows, or images in planes or channels-last, as the result is; other layouts are copied first. Invariant:
 * statistics are float32 (float64 for float64 data), and backward reads those that forward wrote. */
#include "cuda.h"

/* layer_norm_stats, layer_norm_backward, and RMS norm's. With beside, the call's result may be NULL. */
ty_status ty_cuda_layer_norm(ty_call *c, int gpu, cudaStream_t s, const ty_cuda_beside *beside) {
  const int id = c->op->id;
  const bool rms = id == TY_OP_rms_norm_stats || id == TY_OP_rms_norm_backward,
    back = id == TY_OP_layer_norm_backward || id == TY_OP_rms_norm_backward;
  const ty_tensor *stat = back ? c->in[rms ? 3 : 4].t : c->out[rms ? 1 : 2];
  ty_tensor *x = NULL, *g = NULL, *w = NULL, *b = NULL, *r = NULL, *partial = NULL;
  const ty_tensor *o = beside && beside->past ? beside->sum : c->out[0], *wt = c->in[back ? 2 : 1].t, *bt = back || rms ? NULL : c->in[2].t;
  const int dtype = c->in[back].t->dtype;
  const int64_t rows = ty_numel(stat), n = rows ? ty_numel(c->in[back].t) / rows : 0;
  ty_k_norm k = {.dtype = dtype, .wdtype = wt ? wt->dtype : 0, .bdtype = bt ? bt->dtype : 0, .rms = rms, .rows = rows, .n = n};
  ty_status st = ty_contiguous(c->ctx, c->in[back].t, &x);
  if (rows == 0 || n == 0) {
    ty_release(x);
    for (int i = 1; i < c->op->nout && st == TY_OK; i++)
      st = ty_cuda_launched(c, gpu, ty_cuda_fill_number(c->out[i], ty_operand_int(0), s));
    return st;
  }
  if (st == TY_OK && back) st = ty_contiguous(c->ctx, beside && beside->g ? beside->g : c->in[0].t, &g);
  if (st == TY_OK && wt) st = ty_contiguous(c->ctx, (ty_tensor *)wt, &w);
  if (st == TY_OK && bt) st = ty_contiguous(c->ctx, (ty_tensor *)bt, &b);
  if (st == TY_OK && o && !ty_is_contiguous(o)) st = ty_cuda_new(c, gpu, dtype, o->ndim, o->shape, &r);
  const int64_t sums = 2 * n * ty_k_norm_parts(rows, n);
  if (st == TY_OK && back) st = ty_cuda_new(c, gpu, dtype == TY_F64 ? TY_F64 : TY_F32, 1, &sums, &partial);
  if (st == TY_OK) {
    k.x = ty_data(x);
    k.w = w ? ty_data(w) : NULL;
    k.b = b ? ty_data(b) : NULL;
    k.o = r ? ty_data(r) : o ? ty_data(o) : NULL;
    k.rstd = ty_data(stat);
    if (!rms) k.mean = ty_data(back ? c->in[3].t : c->out[1]);
    if (back) {
      k.ddtype = c->out[1]->dtype;
      k.g = ty_data(g);
      k.gdtype = g->dtype;
      k.partial = ty_data(partial);
      k.dw = ty_data(c->out[1]);
      k.db = rms ? NULL : ty_data(c->out[2]);
      if (beside && beside->past) k.past = ty_data(beside->past);
      if (beside && beside->copy) { k.copy = ty_data(beside->copy); k.copy_dtype = beside->copy->dtype; }
    } else k.eps = c->at[TY_AT_layer_norm_stats_eps].f;
    cudaError_t e = ty_k_layer_norm(&k, s);
    if (e == cudaSuccess && r) e = ty_cuda_convert(o, r, s);
    st = ty_cuda_launched(c, gpu, e);
  }
  ty_tensor *held[] = {x, g, w, b, r, partial};
  for (int i = 0; i < 6; i++) ty_release(held[i]);
  return st;
}

ty_status ty_cuda_batch_norm(ty_call *c, int gpu, cudaStream_t s, const ty_k_pooling *from) {
  const bool back = c->op->id == TY_OP_batch_norm_backward;
  ty_tensor *like = NULL;                  /* where there is no result: has the layout that it would have */
  if (!c->out[0])
    TY_TRY(ty_is_channels_last(c->in[back].t) ? ty_channels_last(c->ctx, c->in[back].t, &like)
      : ty_contiguous(c->ctx, c->in[back].t, &like));
  const ty_tensor *o = like ? like : c->out[0], *w = c->in[back ? 2 : 3].t, *b = back ? NULL : c->in[4].t,
    *rm = back ? NULL : c->in[1].t, *rv = back ? NULL : c->in[2].t;
  ty_tensor *x = NULL, *g = NULL, *work = NULL, *made = NULL;
  const bool training = c->at[back ? TY_AT_batch_norm_backward_training : TY_AT_batch_norm_stats_training].i;
  ty_k_batch_norm k = {.dtype = o->dtype, .training = training, .images = o->shape[0], .channels = o->shape[1],
    .o = c->out[0] ? ty_data(o) : NULL};
  const bool last = ty_is_channels_last(o);
  k.pixels = k.images && k.channels ? ty_numel(o) / k.images / k.channels : 0;
  k.sn = k.pixels * k.channels;
  k.sc = last ? 1 : k.pixels;
  if (w) { k.w = ty_data(w); k.wdtype = w->dtype; k.w_step = w->stride[0]; }
  if (b) { k.b = ty_data(b); k.bdtype = b->dtype; k.b_step = b->stride[0]; }
  if (rm) { k.run_mean = ty_data(rm); k.run_dtype = rm->dtype; k.run_step[0] = rm->stride[0]; }
  if (rv) { k.run_var = ty_data(rv); k.run_dtype = rv->dtype; k.run_step[1] = rv->stride[0]; }
  if (back) {
    k.ddtype = c->out[1]->dtype;
    k.dw = ty_data(c->out[1]);
    k.db = ty_data(c->out[2]);
    k.mean = ty_data(c->in[3].t);
    k.rstd = ty_data(c->in[4].t);
  } else {
    k.tracked = c->in[5].t ? ty_data(c->in[5].t) : NULL;
    k.mean = ty_data(c->out[1]);
    k.rstd = ty_data(c->out[2]);
    k.momentum = c->at[TY_AT_batch_norm_stats_momentum].f;
    k.eps = c->at[TY_AT_batch_norm_stats_eps].f;
  }
  if (k.channels == 0) { ty_release(like); return TY_OK; }
  ty_status st = ty_laid_out_as(c->ctx, c->in[back ? 1 : 0].t, o, &x);
  if (st == TY_OK && back && !from) st = ty_laid_out_as(c->ctx, c->in[0].t, o, &g);
  if (st == TY_OK) {
    k.x = ty_data(x);
    k.g = from ? from->y : g ? ty_data(g) : NULL;
  }
  const int64_t room = k.channels * (4 + 2 * ty_k_batch_parts(&k));
  if (st == TY_OK) st = ty_cuda_new(c, gpu, TY_F64, 1, &room, &work);
  if (st == TY_OK) st = ty_stream_tickets(c, gpu, &k.tickets, &made);
  if (st == TY_OK) {
    k.work = ty_data(work);
    st = ty_cuda_launched(c, gpu, ty_k_batch(&k, from, s));
  }
  ty_release(like);
  ty_release(x);
  ty_release(g);
  ty_release(work);
  ty_release(made);
  return st;
}

static ty_status group_norm(ty_call *c, int gpu, cudaStream_t s) {
  const bool back = c->op->id == TY_OP_group_norm_backward;
  const ty_tensor *o = c->out[0], *mean = back ? c->in[3].t : c->out[1], *rstd = back ? c->in[4].t : c->out[2];
  ty_tensor *x = NULL, *g = NULL, *w = NULL, *b = NULL, *work = NULL;
  ty_k_group_norm k = {.dtype = o->dtype, .n = o->shape[0], .c = o->shape[1], .groups = mean->shape[1], .o = ty_data(o),
    .mean = ty_data(mean), .rstd = ty_data(rstd)};
  if (ty_numel(o) == 0) {
    ty_status st = TY_OK;
    for (int i = 1; i < 3 && st == TY_OK; i++) st = ty_cuda_launched(c, gpu, ty_cuda_fill_number(c->out[i], ty_operand_int(0), s));
    return st;
  }
  k.pixels = ty_numel(o) / k.n / k.c;
  k.last = ty_is_channels_last(o) && k.pixels > 1;        /* of one pixel each, planes and channels-last are the same */
  k.parts = ty_k_group_norm_parts(&k);
  const int64_t room = k.n * (3 * k.c * k.parts + 2 * k.groups);
  ty_status st = ty_laid_out_as(c->ctx, c->in[back].t, o, &x);
  if (st == TY_OK && back) st = ty_laid_out_as(c->ctx, c->in[0].t, o, &g);
  if (st == TY_OK && c->in[1 + back].t) st = ty_contiguous(c->ctx, c->in[1 + back].t, &w);
  if (st == TY_OK && !back && c->in[2].t) st = ty_contiguous(c->ctx, c->in[2].t, &b);
  if (st == TY_OK) st = ty_cuda_new(c, gpu, mean->dtype, 1, &room, &work);
  if (st == TY_OK) {
    k.x = ty_data(x);
    k.work = ty_data(work);
    if (w) { k.w = ty_data(w); k.wdtype = w->dtype; }
    if (b) { k.b = ty_data(b); k.bdtype = b->dtype; }
    if (back) {
      k.g = ty_data(g);
      k.ddtype = c->out[1]->dtype;
      k.dw = ty_data(c->out[1]);
      k.db = ty_data(c->out[2]);
    } else k.eps = c->at[TY_AT_group_norm_stats_eps].f;
    st = ty_cuda_launched(c, gpu, ty_k_norm_groups(&k, s));
  }
  ty_tensor *held[] = {x, g, w, b, work};
  for (int i = 0; i < 5; i++) ty_release(held[i]);
  return st;
}

ty_status ty_cuda_norm(ty_call *c) {
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (c->op->id == TY_OP_batch_norm_stats || c->op->id == TY_OP_batch_norm_backward) return ty_cuda_batch_norm(c, gpu, s, NULL);
  if (c->op->id == TY_OP_group_norm_stats || c->op->id == TY_OP_group_norm_backward) return group_norm(c, gpu, s);
  return ty_cuda_layer_norm(c, gpu, s, NULL);
}
