/* Index ops: tensors and lists of indices to the walk that kernels/index.cu makes. */
#include <string.h>
#include "cuda.h"
#include "shape.h"

static ty_k_indexing walk(const ty_call *c, int gpu, int how, const ty_tensor *large) {
  return (ty_k_indexing){.op = c->op->id, .how = how, .dtype = large->dtype, .p = ty_data(large), .n = 1, .fault = ty_fault_of(gpu)};
}

/* The small side: a tensor that broadcasts to the walk, or a number. */
static void set_small(ty_k_indexing *k, const ty_operand *v) {
  const ty_tensor *t = v->t;
  k->v = v->f;
  k->vi = v->kind == TY_FLOAT ? (int64_t)v->f : v->i;
  if (!t) return;
  k->q = ty_data(t);
  k->small_dtype = t->dtype;
  for (int i = 0; i < k->ndim; i++) {
    const int q = i - (k->ndim - t->ndim);
    k->small[i] = q < 0 || t->shape[q] == 1 ? 0 : t->stride[q];
  }
}

/* large's dims in the walk: those that aren't indexed, around the index dims, whose broadcast shape is ishape. */
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

/* The walk of gather and scatter: the index tensor's shape; dim is led by the index. */
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

ty_status ty_cuda_index(ty_call *c) {
  int gpu;
  cudaStream_t s;
  const int id = c->op->id;
  TY_TRY(ty_begin(c, &gpu, &s));
  if (id == TY_OP_nonzero) return ty_cuda_nonzero(c, gpu, s);
  ty_tensor *o = c->out[0], *idx = NULL;
  const ty_tensor *x = c->in[0].t;
  ty_status st = TY_OK;
  const bool writes = id != TY_OP_index && id != TY_OP_gather;
  if (writes && o->storage != x->storage) TY_TRY(ty_launched(c, gpu, ty_convert(o, x, s)));   /* in place the result is x */
  ty_k_indexing k;
  if (id == TY_OP_index || id == TY_OP_index_put) {
    const int list = id == TY_OP_index ? 1 : 2;
    k = walk(c, gpu, id == TY_OP_index ? TY_K_TAKE : c->at[1].i ? TY_K_ADD : TY_K_PUT, id == TY_OP_index ? x : o);
    set_indexed(&k, id == TY_OP_index ? x : o, &c->at[0], c->in + c->span[list].start);
    const ty_operand out = ty_op_tensor(o);
    set_small(&k, id == TY_OP_index ? &out : &c->in[1]);
  } else {
    st = ty_cast(c->ctx, c->in[1].t, TY_I64, &idx);
    if (st != TY_OK) return st;
    k = walk(c, gpu, id == TY_OP_gather ? TY_K_TAKE : id == TY_OP_scatter ? TY_K_PUT : TY_K_ADD, id == TY_OP_gather ? x : o);
    set_along(&k, id == TY_OP_gather ? x : o, (int)c->at[0].i, idx);
    const ty_operand out = ty_op_tensor(o);
    set_small(&k, id == TY_OP_gather ? &out : &c->in[2]);
    for (int i = 0; i < k.ndim && k.q; i++) k.small[i] = (id == TY_OP_gather ? o : c->in[2].t)->stride[i];   /* src may be larger than the index */
  }
  if (k.n) st = ty_launched(c, gpu, ty_k_index(&k, s));
  ty_release(idx);
  return st;
}
