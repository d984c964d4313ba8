/* Softmax and cross-entropy, by kernels/softmax.cu.
 *
 * Idea: softmax works on lines whose elements lie `inner` apart in the result's memory, cross-entropy on rows with the classes last. Other
 * layouts are copied first, and results copied back. Invariant: kernels find bad labels (call.c), and the device divides the mean. */
#include <math.h>
#include "cuda.h"

/* ---- softmax ---- */

ty_status ty_cuda_softmax(ty_call *c) {
  ty_tensor t[3] = {*c->out[0], *c->in[0].t};
  const ty_tensor *o = &t[0];
  const bool back = c->nin == 2;
  if (back) t[2] = *c->in[1].t;
  const int dim = ty_turn_to_memory(t, c->nin + 1, (int)c->at[TY_AT_softmax_dim].i);
  int gpu;
  cudaStream_t s;
  ty_tensor *a = NULL, *b = NULL, *r = NULL;
  ty_k_lines k = {.dtype = o->dtype, .log = c->op->id == TY_OP_log_softmax || c->op->id == TY_OP_log_softmax_backward};
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (ty_numel(o) == 0) return TY_OK;
  ty_cuda_lines_of(o, dim, &k.lines, &k.n, &k.inner);
  ty_status st = ty_contiguous(c->ctx, &t[1], &a);
  if (st == TY_OK && back) st = ty_contiguous(c->ctx, &t[2], &b);
  if (st == TY_OK && !ty_is_contiguous(o)) st = ty_cuda_new(c, gpu, o->dtype, o->ndim, o->shape, &r);
  if (st == TY_OK) {
    k.x = ty_data(back ? b : a);
    k.g = back ? ty_data(a) : NULL;
    k.o = ty_data(r ? r : o);
    cudaError_t e = ty_k_softmax(&k, s);
    if (e == cudaSuccess && r) e = ty_cuda_convert(o, r, s);
    st = ty_cuda_launched(c, gpu, e);
  }
  ty_release(a);
  ty_release(b);
  ty_release(r);
  return st;
}

/* ---- cross-entropy ---- */

/* The kernel's arguments for a call's labels, weights w and options, and the rows x of its input. */
static ty_k_entropy entropy_of(const ty_call *c, const ty_tensor *x, const ty_tensor *labels, const ty_tensor *w, int gpu) {
  const ty_loss_options how = ty_loss_options_of(c);
  return (ty_k_entropy){.site = ty_cuda_site(c), .dtype = x->dtype, .rows = ty_numel(labels), .n = x->shape[x->ndim - 1],
    .ignore = how.ignore_index, .smoothing = how.label_smoothing, .x = ty_data(x),
    .weight = w ? ty_data(w) : NULL, .labels = ty_data(labels),
    .label_step = 1, .fault = ty_cuda_fault_of(gpu)};
}

/* The mean of the rows' losses and, with k->o, its gradient. k: all but losses, mean and total are set; total: NULL, or it is written */
static ty_status mean_of_rows(ty_call *c, ty_k_entropy *k, const ty_tensor *total, int gpu, cudaStream_t s) {
  const ty_dtype stat = ty_compute_dtype(k->dtype);
  const int64_t one = 1;
  ty_tensor *losses = NULL, *made = NULL, *counts = NULL, *sum = NULL;
  void *const mean = ty_data(c->out[0]);
  ty_status st = ty_cuda_new(c, gpu, stat, 1, &k->rows, &losses);
  if (st == TY_OK) k->losses = ty_data(losses);
  if (st == TY_OK && k->rows <= TY_K_ENTROPY_FEW) {
    st = ty_stream_tickets(c, gpu, &k->ticket, &made);
    k->mean = mean;
    k->total = total ? ty_data(total) : NULL;
    if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_cross_entropy(k, s));
  } else if (st == TY_OK) {                /* many rows, by the whole device: first the total, which the gradient needs */
    st = ty_cuda_new(c, gpu, stat, 1, &k->rows, &counts);
    if (st == TY_OK && !total) st = ty_cuda_new(c, gpu, stat, 1, &one, &sum);
    if (st == TY_OK) k->total = ty_data(total ? total : sum);
    if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_entropy_counts(k, ty_data(counts), s));
    if (st == TY_OK) st = ty_cuda_reduce_into(c, gpu, s, TY_OP_sum, counts, ~0u, k->total, stat, 1);
    if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_cross_entropy(k, s));
    if (st == TY_OK) st = ty_cuda_reduce_into(c, gpu, s, TY_OP_sum, losses, ~0u, mean, stat, 1);
    if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_entropy_mean(mean, k->total, k->dtype, s));
  }
  ty_release(losses);
  ty_release(made);
  ty_release(counts);
  ty_release(sum);
  return st;
}

/* The losses' gradients in dtype d, *step elements apart; 0: one for all losses. */
static ty_status gradients_of(ty_call *c, ty_tensor *g, ty_dtype d, ty_tensor **up, int64_t *step) {
  ty_tensor *cast;
  bool one = true;
  TY_TRY(ty_cast(c->ctx, g, d, &cast));
  for (int i = 0; i < cast->ndim; i++) one = one && (cast->stride[i] == 0 || cast->shape[i] == 1);
  const bool line = cast->ndim == 1;
  *step = one ? 0 : line ? cast->stride[0] : 1;
  if (one || line) { *up = cast; return TY_OK; }
  const ty_status st = ty_contiguous(c->ctx, cast, up);
  ty_release(cast);
  return st;
}

/* The rows' losses or their mean, and their gradient if back is given; or the gradient alone, if c is a backward call. */
ty_status ty_cuda_cross_entropy(ty_call *c, ty_call *back, int gpu, cudaStream_t s) {
  const int id = c->op->id;
  const bool mean = id == TY_OP_cross_entropy_mean || id == TY_OP_cross_entropy_mean_backward;
  if (id == TY_OP_cross_entropy_backward || id == TY_OP_cross_entropy_mean_backward) back = c;
  const bool forward = back != c;
  ty_tensor *x = NULL, *w = NULL, *up = NULL, *labels = NULL, *made = NULL, *wt = c->in[forward ? 2 : 4 + mean].t;
  int64_t step = 0;
  ty_tensor from = ty_dim_last(c->in[forward ? 0 : 1].t, 1), o;       /* scores (N, C, ...): a row for each label */
  ty_status st = ty_contiguous(c->ctx, &from, &x);
  if (st == TY_OK) st = ty_contiguous(c->ctx, c->in[forward ? 1 : 2].t, &labels);
  if (st == TY_OK && back) {
    o = ty_dim_last(back->out[0], 1);
    if (!ty_is_contiguous(&o)) st = ty_cuda_new(c, gpu, o.dtype, o.ndim, o.shape, &made);
  }
  if (st == TY_OK && back) st = gradients_of(c, back->in[0].t, ty_compute_dtype(x->dtype), &up, &step);
  if (st == TY_OK && wt) st = ty_contiguous(c->ctx, wt, &w);
  if (st == TY_OK && (ty_numel(x) || (forward && mean))) {
    ty_k_entropy k = entropy_of(c, x, labels, w, gpu);
    if (back) { k.g = ty_data(up); k.g_step = step; k.o = ty_data(made ? made : &o); }
    const ty_tensor *lse = forward ? c->out[1] : c->in[3].t;
    k.lse = lse ? ty_data(lse) : NULL;
    if (forward && mean) st = mean_of_rows(c, &k, c->out[2], gpu, s);
    else {
      if (forward) k.losses = ty_data(c->out[0]);
      else if (mean) k.total = ty_data(c->in[4].t);
      st = ty_cuda_launched(c, gpu, ty_k_cross_entropy(&k, s));
    }
    if (st == TY_OK && made) st = ty_cuda_launched(c, gpu, ty_cuda_convert(&o, made, s));
  } else if (st == TY_OK && forward && ty_numel(labels)) {   /* no classes */
    const size_t bytes = (size_t)(ty_numel(labels) * ty_itemsize(c->out[0]));
    st = ty_cuda_launched(c, gpu, cudaMemsetAsync(ty_data(c->out[0]), 0, bytes, s));
    if (st == TY_OK && c->out[1])
      st = ty_cuda_launched(c, gpu, cudaMemsetAsync(ty_data(c->out[1]), 0, (size_t)ty_numel(labels) * sizeof(double), s));
  }
  ty_release(labels);
  ty_release(made);
  ty_release(x);
  ty_release(w);
  ty_release(up);
  return st;
}

ty_status ty_cuda_loss(ty_call *c) {
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  return ty_cuda_cross_entropy(c, NULL, gpu, s);
}
