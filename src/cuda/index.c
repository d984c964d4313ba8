/* Index ops: from tensors and lists of indices to the walk that kernels/index.cu makes.
 *
 * Idea: every index op is a walk over the small tensor (what is taken, or written); each of its elements has a place in the large tensor.
 * Take, put and add differ in what they do there. Invariant: the host reads no indices: kernels skip a bad one and report it (call.c). */
#include <string.h>
#include "cuda.h"
#include "shape.h"

static ty_k_indexing walk(const ty_call *c, int gpu, int how, const ty_tensor *large) {
  return (ty_k_indexing){.site = ty_cuda_site(c), .how = how, .dtype = large->dtype, .p = ty_data(large), .n = 1,
    .fault = ty_cuda_fault_of(gpu)};
}

/* Sets the small side: a tensor that broadcasts to the walk, or a number. */
static void set_small(ty_k_indexing *k, const ty_operand *v) {
  const ty_tensor *t = v->t;
  k->v = v->f;
  k->vi = v->kind == TY_FLOAT ? ty_whole(v->f) : v->i;
  if (!t) return;
  k->q = ty_data(t);
  k->small_dtype = t->dtype;
  for (int i = 0; i < k->ndim; i++) {
    const int q = i - (k->ndim - t->ndim);
    k->small[i] = q < 0 || t->shape[q] == 1 ? 0 : t->stride[q];
  }
}

/* Sets the walk of index and index_put: large's dims that aren't indexed, around the index dims, whose broadcast shape is ishape. */
static void set_indexed(ty_k_indexing *k, const ty_tensor *large, const ty_attr *dims, const ty_operand *idx) {
  int64_t ishape[TY_K_DIMS];
  int inum = 0, nd = 0, rest = 0;
  const int place = ty_index_place(dims);
  bool placed = false;
  for (int j = 0; j < dims->n; j++) inum = TY_MAX(inum, idx[j].t->ndim);
  for (int i = 0; i < inum; i++) {
    ishape[i] = 1;
    for (int j = 0; j < dims->n; j++) {
      const int q = i - (inum - idx[j].t->ndim);
      if (q >= 0 && idx[j].t->shape[q] != 1) ishape[i] = idx[j].t->shape[q];
    }
  }
  k->negative = 1;
  k->nindex = dims->n;
  for (int j = 0; j < dims->n; j++) {
    k->index[j].p = ty_data(idx[j].t);
    k->index[j].size = large->shape[dims->v[j]];
    k->index[j].step = large->stride[dims->v[j]];
  }
  for (int i = 0; i <= large->ndim; i++) {
    if (rest == place && !placed) {
      placed = true;
      for (int d = 0; d < inum; d++, nd++) {
        k->shape[nd] = ishape[d];
        for (int j = 0; j < dims->n; j++) {
          const int q = d - (inum - idx[j].t->ndim);
          k->index[j].stride[nd] = q < 0 || idx[j].t->shape[q] == 1 ? 0 : idx[j].t->stride[q];
        }
      }
    }
    bool indexed = i == large->ndim;
    for (int j = 0; j < dims->n; j++) indexed = indexed || dims->v[j] == i;
    if (indexed) continue;
    k->shape[nd] = large->shape[i];
    k->large[nd++] = large->stride[i];
    rest++;
  }
  k->ndim = nd;
  for (int i = 0; i < nd; i++) k->n *= k->shape[i];
}

/* Sets the walk of gather and scatter: the index tensor's shape; along dim the index tells the place. */
static void set_along(ty_k_indexing *k, const ty_tensor *large, int dim, const ty_tensor *idx) {
  k->ndim = idx->ndim;
  k->nindex = 1;
  k->index[0].p = ty_data(idx);
  k->index[0].size = large->ndim ? large->shape[dim] : 1;
  k->index[0].step = large->ndim ? large->stride[dim] : 0;
  for (int i = 0; i < idx->ndim; i++) {
    k->shape[i] = idx->shape[i];
    k->n *= idx->shape[i];
    k->index[0].stride[i] = idx->stride[i];
    k->large[i] = i == dim ? 0 : large->stride[i];
  }
}

/* Moves the walk's dims that decide where a write goes before those that only move on from there. */
static void split_walk(ty_k_indexing *k) {
  ty_k_indexing from = *k;
  int to = 0;
  k->positions = 1;
  for (int part = 0; part < 2; part++) {
    for (int d = 0; d < from.ndim; d++) {
      bool leads = from.large[d] == 0;
      for (int j = 0; j < from.nindex; j++) leads = leads || from.index[j].stride[d] != 0;
      if (leads == (part == 1)) continue;
      k->shape[to] = from.shape[d];
      k->large[to] = from.large[d];
      k->small[to] = from.small[d];
      for (int j = 0; j < from.nindex; j++) k->index[j].stride[to] = from.index[j].stride[d];
      if (leads) k->positions *= from.shape[d];
      to++;
    }
    if (part == 0) k->lead = to;
  }
}

/* Writes in a fixed order: positions are sorted by their targets. */
static ty_status in_order(ty_call *c, int gpu, cudaStream_t s, ty_k_indexing *k) {
  ty_tensor *target = NULL, *order = NULL;
  split_walk(k);
  const ty_meta m = {.dtype = TY_I64, .ndim = 1, .shape = {k->positions}};
  ty_k_sorting sorting = {.dtype = TY_I64, .lines = 1, .n = k->positions, .take = k->positions};
  ty_status st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &target);
  if (st == TY_OK) st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &order);
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_index_targets(k, ty_data(target), s));
  if (st == TY_OK) {
    sorting.x = ty_data(target);
    sorting.places = ty_data(order);
    st = ty_cuda_sort_lines(c, gpu, s, &sorting);
  }
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_index_in_order(k, ty_data(target), ty_data(order), s));
  ty_release(target);
  ty_release(order);
  return st;
}

ty_status ty_cuda_index_walk(ty_call *c, int gpu, cudaStream_t s, ty_k_indexing *k) {
  const bool floats = ty_is_float(k->dtype);
  if (k->n == 0) return TY_OK;
  /* sums of integers don't depend on the order; 16-bit atomics are slow, and round each time */
  if (k->how > TY_K_ADD || (k->how == TY_K_ADD && floats && (ty_core->flags->deterministic || ty_is_16bit(k->dtype))) ||
      (k->how == TY_K_PUT && k->q && ty_core->flags->deterministic))
    return in_order(c, gpu, s, k);
  return ty_cuda_launched(c, gpu, ty_k_index(k, s));
}

ty_status ty_cuda_gather(ty_call *c, int gpu, cudaStream_t s, const ty_tensor *x, int dim, const ty_tensor *idx, const ty_tensor *o) {
  ty_k_indexing k = walk(c, gpu, TY_K_TAKE, x);
  set_along(&k, x, dim, idx);
  const ty_operand out = ty_operand_tensor((ty_tensor *)o);
  set_small(&k, &out);
  return ty_cuda_index_walk(c, gpu, s, &k);
}

static ty_status bag(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *t[4] = {NULL};
  ty_status st = ty_contiguous_operands(c, t);
  if (st == TY_OK && ty_numel(c->out[0])) {
    const ty_k_bags a = {.site = ty_cuda_site(c), .dtype = t[0]->dtype, .n = t[1]->shape[0], .bags = t[2]->shape[0], .rows = t[0]->shape[0],
      .width = t[0]->shape[1], .padding = c->at[TY_AT_bag_padding].i, .weight = ty_data(t[0]), .scale = t[3] ? ty_data(t[3]) : NULL,
      .id = ty_data(t[1]), .start = ty_data(t[2]), .o = ty_data(c->out[0]), .fault = ty_cuda_fault_of(gpu)};
    st = ty_cuda_launched(c, gpu, ty_k_bag(&a, s));
  }
  for (int i = 0; i < 4; i++) ty_release(t[i]);
  return st;
}

/* Numbers to be written into a bool tensor become bools here: kernels convert by way of an integer. *made: NULL, or to be released. */
static ty_status as_bools(ty_call *c, ty_operand *v, ty_tensor **made) {
  if (c->out[0]->dtype != TY_BOOL) return TY_OK;
  if (v->t && ty_is_float(v->t->dtype)) {
    TY_TRY(ty_cast(c->ctx, v->t, TY_BOOL, made));
    *v = ty_operand_tensor(*made);
  } else if (!v->t && v->kind == TY_FLOAT) *v = ty_operand_int(v->f != 0);
  return TY_OK;
}

ty_status ty_cuda_index(ty_call *c) {
  int gpu;
  cudaStream_t s;
  const int id = c->op->id;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  if (id == TY_OP_nonzero) return ty_cuda_nonzero(c, gpu, s);
  if (id == TY_OP_bag) return bag(c, gpu, s);
  ty_tensor *o = c->out[0], *idx = NULL, *bools = NULL;
  const ty_tensor *x = c->in[0].t;
  ty_status st = TY_OK;
  const bool writes = id != TY_OP_index && id != TY_OP_gather;
  if (writes && o->storage != x->storage) TY_TRY(ty_cuda_launched(c, gpu, ty_cuda_convert(o, x, s)));   /* in place the result is x */
  ty_operand value = writes ? c->in[id == TY_OP_index_put ? 1 : 2] : (ty_operand){0};      /* what is written */
  if (writes) TY_TRY(as_bools(c, &value, &bools));
  ty_k_indexing k;
  if (id == TY_OP_index || id == TY_OP_index_put) {
    const int list = id == TY_OP_index ? 1 : 2;
    k = walk(c, gpu, id == TY_OP_index ? TY_K_TAKE : c->at[TY_AT_index_put_accumulate].i ? TY_K_ADD : TY_K_PUT, id == TY_OP_index ? x : o);
    set_indexed(&k, id == TY_OP_index ? x : o, &c->at[TY_AT_index_dims], c->in + c->span[list].start);
    if (id == TY_OP_index && c->at[TY_AT_index_ids].i) k.negative = 0;
    const ty_operand out = ty_operand_tensor(o);
    set_small(&k, id == TY_OP_index ? &out : &value);
  } else {
    st = ty_cast(c->ctx, c->in[1].t, TY_I64, &idx);
    if (st != TY_OK) { ty_release(bools); return st; }
    const int dim = (int)c->at[TY_AT_gather_dim].i;
    if (id == TY_OP_gather) {
      st = ty_cuda_gather(c, gpu, s, x, dim, idx, o);
      ty_release(idx);
      return st;
    }
    k = walk(c, gpu, id == TY_OP_scatter ? TY_K_PUT : id == TY_OP_scatter_add ? TY_K_ADD
      : TY_K_COMBINE + (int)c->at[TY_AT_scatter_combine_how].i, o);
    set_along(&k, o, dim, idx);
    set_small(&k, &value);
    for (int i = 0; i < k.ndim && k.q; i++) k.small[i] = value.t->stride[i];        /* src may be larger than the index */
  }
  st = ty_cuda_index_walk(c, gpu, s, &k);
  ty_release(idx);
  ty_release(bools);
  return st;
}
