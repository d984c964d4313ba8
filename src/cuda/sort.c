/* Sorting, and ops whose result's size depends on the data: these read the size from the device, for which the host waits.
 *
 * Idea: kernels work on contiguous lines; a dim that isn't last is moved to the end and back. Invariant: equal elements keep their order,
 * as on the CPU. */
#include <string.h>
#include "cuda.h"

static ty_status new_numbers(ty_call *c, int gpu, int64_t n, ty_tensor **out) { return ty_cuda_new(c, gpu, TY_I64, 1, &n, out); }

ty_status ty_cuda_sort_lines(ty_call *c, int gpu, cudaStream_t s, ty_k_sorting *k) {
  ty_tensor *work[2] = {NULL, NULL};
  const int64_t words = (int64_t)(ty_k_sort_bytes(k) / 8);
  ty_status st = TY_OK;
  for (int i = 0; i < 2 && words && st == TY_OK; i++)
    if ((st = new_numbers(c, gpu, words, &work[i])) == TY_OK) k->work[i] = ty_data(work[i]);
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_sort(k, s));
  ty_release(work[0]);
  ty_release(work[1]);
  return st;
}

/* The first `take` values and their positions of x in order along its last dim, into results that have that dim last. */
static ty_status order(ty_call *c, int gpu, cudaStream_t s, const ty_tensor *x, int64_t take, bool descending, const ty_tensor o[2]) {
  ty_tensor *lines = NULL, *r[2] = {NULL, NULL};
  const int last = TY_MAX(x->ndim - 1, 0);
  ty_k_sorting k = {.dtype = x->dtype, .descending = descending, .lines = 1, .n = x->ndim ? x->shape[last] : 1, .take = take};
  for (int i = 0; i < last; i++) k.lines *= x->shape[i];
  if (k.lines * k.n * k.take == 0) return TY_OK;
  ty_status st = ty_contiguous(c->ctx, (ty_tensor *)x, &lines);
  for (int i = 0; i < 2 && st == TY_OK; i++)
    if (!ty_is_contiguous(&o[i])) st = ty_cuda_new(c, gpu, o[i].dtype, o[i].ndim, o[i].shape, &r[i]);
  if (st == TY_OK) {
    k.x = ty_data(lines);
    k.values = ty_data(r[0] ? r[0] : &o[0]);
    k.places = ty_data(r[1] ? r[1] : &o[1]);
    st = ty_cuda_sort_lines(c, gpu, s, &k);
  }
  for (int i = 0; i < 2; i++) {
    if (st == TY_OK && r[i]) st = ty_cuda_launched(c, gpu, ty_cuda_convert(&o[i], r[i], s));
    ty_release(r[i]);
  }
  ty_release(lines);
  return st;
}

static ty_status sorted(ty_call *c, int gpu, cudaStream_t s, int dim, bool descending) {
  const ty_tensor x = ty_dim_last(c->in[0].t, dim), o[2] = {ty_dim_last(c->out[0], dim), ty_dim_last(c->out[1], dim)};
  const int64_t n = x.ndim ? x.shape[x.ndim - 1] : 1;
  return order(c, gpu, s, &x, c->op->id == TY_OP_topk ? c->at[TY_AT_topk_k].i : n, descending, o);
}

/* Sorts all, then reads at the ranks. */
static ty_status order_statistics(ty_call *c, int gpu, cudaStream_t s) {
  const int dim = (int)c->at[TY_AT_order_statistics_dim].i;
  const ty_tensor x = ty_dim_last(c->in[0].t, dim), ranks = ty_dim_last(c->in[1].t, dim);
  ty_tensor *all[2] = {NULL, NULL};
  ty_status st = ty_cuda_new(c, gpu, x.dtype, x.ndim, x.shape, &all[0]);
  if (st == TY_OK) st = ty_cuda_new(c, gpu, TY_I64, x.ndim, x.shape, &all[1]);
  if (st == TY_OK) {
    const ty_tensor o[2] = {*all[0], *all[1]};
    st = order(c, gpu, s, &x, x.shape[x.ndim - 1], false, o);
  }
  for (int i = 0; i < 2 && st == TY_OK; i++) {
    const ty_tensor o = ty_dim_last(c->out[i], dim);
    st = ty_cuda_gather(c, gpu, s, all[i], x.ndim - 1, &ranks, &o);
  }
  ty_release(all[0]);
  ty_release(all[1]);
  return st;
}

/* ---- sizes that depend on the data ---- */

/* Counts what k selects; the host waits for it. */
static ty_status found_of(ty_call *c, int gpu, cudaStream_t s, ty_k_selection *k, ty_tensor **starts, int64_t *found) {
  const int64_t tiles = ty_k_select_tiles(k->n);
  TY_TRY(new_numbers(c, gpu, tiles + 1, starts));
  k->starts = ty_data(*starts);
  TY_TRY(ty_cuda_launched(c, gpu, ty_k_select_count(k, s)));
  return ty_cuda_read(c->ctx, (*starts)->storage, (size_t)tiles * 8, found, 8);
}

ty_status ty_cuda_nonzero(ty_call *c, int gpu, cudaStream_t s) {
  const ty_tensor *x = c->in[0].t;
  ty_tensor *starts = NULL;
  int64_t found = 0;
  ty_status st = TY_OK;
  ty_k_selection k = {.dtype = x->dtype, .ndim = x->ndim, .n = ty_numel(x), .x = ty_data(x)};
  memcpy(k.shape, x->shape, sizeof k.shape);
  memcpy(k.stride, x->stride, sizeof k.stride);
  if (k.n) st = found_of(c, gpu, s, &k, &starts, &found);
  const int64_t shape[2] = {found, x->ndim};
  if (st == TY_OK) st = ty_cuda_new(c, gpu, TY_I64, 2, shape, &c->out[0]);
  if (st == TY_OK && found && x->ndim) {
    k.coordinates = ty_data(c->out[0]);
    st = ty_cuda_launched(c, gpu, ty_k_select_write(&k, found, s));
  }
  ty_release(starts);
  return st;
}

static ty_status unique(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *x, *places = NULL, *starts = NULL, *first = NULL;
  int64_t found = 0;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  ty_k_selection k = {.dtype = x->dtype, .n = ty_numel(x), .x = ty_data(x), .inverse = ty_data(c->out[1])};
  ty_k_sorting order = {.dtype = x->dtype, .lines = 1, .n = k.n, .take = k.n, .x = ty_data(x)};
  ty_status st = new_numbers(c, gpu, k.n, &places);
  if (st == TY_OK && k.n) {
    order.places = ty_data(places);
    k.order = order.places;
    st = ty_cuda_sort_lines(c, gpu, s, &order);
    if (st == TY_OK) st = found_of(c, gpu, s, &k, &starts, &found);
  }
  if (st == TY_OK) st = ty_cuda_new(c, gpu, x->dtype, 1, &found, &c->out[0]);
  if (st == TY_OK) st = new_numbers(c, gpu, found, &c->out[2]);
  if (st == TY_OK) st = new_numbers(c, gpu, found, &first);
  if (st == TY_OK && found) {
    k.values = ty_data(c->out[0]);
    k.sizes = ty_data(c->out[2]);
    k.first = ty_data(first);
    st = ty_cuda_launched(c, gpu, ty_k_select_write(&k, found, s));
  }
  ty_tensor *held[] = {x, places, starts, first};
  for (int i = 0; i < 4; i++) ty_release(held[i]);
  return st;
}

static ty_status bincount(ty_call *c, int gpu, cudaStream_t s) {
  const ty_tensor *x = c->in[0].t, *w = c->in[1].t;
  ty_tensor *ends, *one = NULL;
  int64_t end[2] = {1, 0}, top = c->at[TY_AT_bincount_minlength].i;
  ty_status st = TY_OK;
  if (x->shape[0]) {
    TY_TRY(new_numbers(c, gpu, 2, &ends));
    st = ty_cuda_reduce_into(c, gpu, s, TY_OP_amin, x, ~0u, ty_data(ends), TY_I64, 1);
    if (st == TY_OK) st = ty_cuda_reduce_into(c, gpu, s, TY_OP_amax, x, ~0u, (int64_t *)ty_data(ends) + 1, TY_I64, 1);
    if (st == TY_OK) st = ty_cuda_read(c->ctx, ends->storage, 0, end, sizeof end);
    ty_release(ends);
    TY_TRY(st);
  }
  if (end[0] == 0) return ty_fail(c, "id 0 in argument 1: ids begin at 1");
  if (end[0] < 0) return ty_fail(c, "id %lld in argument 1 is negative", (long long)end[0]);
  if (end[1] > TY_BINCOUNT_MOST) return ty_fail(c, "id %lld in argument 1 is too large", (long long)end[1]);
  top = TY_MAX(top, end[1]);
  TY_TRY(ty_cuda_new(c, gpu, !w ? TY_I64 : w->dtype == TY_F32 ? TY_F32 : TY_F64, 1, &top, &c->out[0]));
  if (top == 0) return TY_OK;
  ty_tensor *o = c->out[0];
  TY_TRY(ty_cuda_launched(c, gpu, cudaMemsetAsync(ty_data(o), 0, (size_t)(top * ty_itemsize(o)), s)));
  if (x->shape[0] == 0) return TY_OK;
  TY_TRY(ty_cast(c->ctx, (ty_tensor *)x, TY_I64, &one));
  ty_k_indexing k = {.site = ty_cuda_site(c), .how = TY_K_ADD, .dtype = o->dtype, .ndim = 1, .nindex = 1, .n = x->shape[0],
    .shape = {x->shape[0]}, .p = ty_data(o), .v = 1, .vi = 1, .fault = ty_cuda_fault_of(gpu)};
  k.index[0].p = ty_data(one);
  k.index[0].stride[0] = one->stride[0];
  k.index[0].size = top;
  k.index[0].step = 1;
  if (w) { k.q = ty_data(w); k.small_dtype = w->dtype; k.small[0] = w->stride[0]; }
  st = ty_cuda_index_walk(c, gpu, s, &k);
  ty_release(one);
  return st;
}

static ty_status searchsorted(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *x, *v;
  TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
  ty_status st = ty_contiguous(c->ctx, c->in[1].t, &v);
  if (st == TY_OK) {
    const ty_k_searching k = {.dtype = x->dtype, .right = (int)c->at[TY_AT_searchsorted_right].i, .count = ty_numel(v),
                              .n = x->shape[x->ndim - 1], .per = x->ndim > 1 ? v->shape[v->ndim - 1] : 0,
                              .sorted = ty_data(x), .values = ty_data(v), .o = ty_data(c->out[0])};
    if (k.count) st = ty_cuda_launched(c, gpu, ty_k_search(&k, s));
    ty_release(v);
  }
  ty_release(x);
  return st;
}

ty_status ty_cuda_sort(ty_call *c) {
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  switch (c->op->id) {
    case TY_OP_sort: return sorted(c, gpu, s, (int)c->at[TY_AT_sort_dim].i, c->at[TY_AT_sort_descending].i);
    case TY_OP_topk: return sorted(c, gpu, s, (int)c->at[TY_AT_topk_dim].i, c->at[TY_AT_topk_largest].i);
    case TY_OP_order_statistics: return order_statistics(c, gpu, s);
    case TY_OP_unique_values: return unique(c, gpu, s);
    case TY_OP_searchsorted: return searchsorted(c, gpu, s);
    default: return bincount(c, gpu, s);
  }
}
