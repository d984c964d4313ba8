/* Index ops. Index tensors hold 1-based positions; 0 and positions past the end are errors, negative ones count from
 * the end in index and index_put only (user indexing). Indices are checked before anything is written. */
#include <stdlib.h>
#include <string.h>
#include "cpu.h"
#include "shape.h"

/* ---- index, index_put ---- */

typedef struct {
  int64_t n;                 /* index positions */
  int64_t *offset;           /* for each the element offset in x */
  ty_tensor rest;            /* x without the indexed dims */
  int place, inum;           /* where the index dims stand in the result, and how many */
} plan;

static ty_status make_plan(ty_call *c, const ty_tensor *x, int list, int64_t result_ndim, const int64_t *result_shape, plan *p) {
  const ty_attr *dims = &c->at[0];
  const ty_operand *idx = c->in + c->span[list].start;
  p->place = ty_index_place(dims);
  p->rest = *x;
  p->rest.ndim = 0;
  for (int i = 0; i < x->ndim; i++) {
    bool indexed = false;
    for (int j = 0; j < dims->n; j++) indexed = indexed || dims->v[j] == i;
    if (indexed) continue;
    p->rest.shape[p->rest.ndim] = x->shape[i];
    p->rest.stride[p->rest.ndim++] = x->stride[i];
  }
  p->inum = (int)result_ndim - p->rest.ndim;
  const int64_t *ishape = result_shape + p->place;
  p->n = 1;
  for (int i = 0; i < p->inum; i++) p->n *= ishape[i];
  p->offset = ty_scratch(sizeof(int64_t) * (size_t)TY_MAX(p->n, 1));
  if (!p->offset) return ty_fail(c, "out of memory"), TY_OOM;
  memset(p->offset, 0, sizeof(int64_t) * (size_t)p->n);
  for (int j = 0; j < dims->n; j++) {
    const ty_tensor *t = idx[j].t;
    int64_t d = dims->v[j], size = x->shape[d], st = x->stride[d];
    for (int64_t i = 0; i < p->n; i++) {
      int64_t rest = i, off = 0;
      for (int k = p->inum - 1, q = t->ndim - 1; q >= 0; k--, q--) {
        if (t->shape[q] != 1) off += rest % ishape[k] * t->stride[q];
        rest /= ishape[k];
      }
      int64_t v = ((const int64_t *)ty_data(t))[off];
      if (v == 0 || v > size || v < -size) {
        ty_scratch_free(p->offset);
        return v == 0 ? ty_fail(c, "index 0 for dim %lld: indices begin at 1", (long long)d + 1)
                      : ty_fail(c, "index %lld is out of range for dim %lld of shape %s", (long long)v, (long long)d + 1, ty_shape_of(x));
      }
      p->offset[i] += (v < 0 ? v + size : v - 1) * st;
    }
  }
  return TY_OK;
}

/* The result-shaped tensor r at index position i: a view over the rest dims. */
static ty_tensor result_at(const plan *p, const ty_tensor *r, int64_t i) {
  ty_tensor v = *r;
  v.ndim = 0;
  for (int k = p->inum - 1; k >= 0; k--) {
    int d = p->place + k;
    v.offset += i % r->shape[d] * r->stride[d];
    i /= r->shape[d];
  }
  for (int k = 0; k < r->ndim; k++) {
    if (k >= p->place && k < p->place + p->inum) continue;
    v.shape[v.ndim] = r->shape[k];
    v.stride[v.ndim++] = r->stride[k];
  }
  return v;
}

static ty_status copy_at(ty_call *c, ty_tensor *dst, ty_tensor *src, bool add) {
  ty_call k = {.ctx = c->ctx, .op = &ty_ops[add ? TY_OP_add : TY_OP_copy], .nin = 2};
  ty_operand in[2] = {ty_op_tensor(dst), ty_op_tensor(src)};
  ty_attr at[1] = {{.set = true, .f = 1}};
  k.in = in;
  k.at = at;
  k.out[0] = dst;
  k.compute = ty_compute_dtype((ty_dtype)dst->dtype);
  return add ? ty_cpu_pointwise(&k) : ty_cpu_copy(&k);
}

static bool rest_is_run(const plan *p) { return ty_is_contiguous(&p->rest); }

static ty_status take_out(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  ty_tensor *o = c->out[0];
  plan p;
  TY_TRY(make_plan(c, x, 1, o->ndim, o->shape, &p));
  int64_t row = ty_numel(&p.rest), size = ty_itemsize(x);
  if (p.place == 0 && rest_is_run(&p)) {
    const char *src = ty_data(x);
    char *dst = ty_data(o);
    #pragma omp parallel for num_threads(ty_threads_for(p.n * row)) schedule(static)
    for (int64_t i = 0; i < p.n; i++) memcpy(dst + i * row * size, src + p.offset[i] * size, (size_t)(row * size));
  } else
    for (int64_t i = 0; i < p.n && row; i++) {
      ty_tensor s = p.rest, d = result_at(&p, o, i);
      s.offset += p.offset[i];
      TY_TRY(copy_at(c, &d, &s, false));
    }
  ty_scratch_free(p.offset);
  return TY_OK;
}

static ty_status put_in(ty_call *c) {
  ty_tensor *x = c->in[0].t, *o = c->out[0], *v = c->in[1].t, *same = NULL;
  bool add = c->at[1].i;
  plan p;
  ty_meta m = {.dtype = x->dtype};
  int n = 0;
  /* the indexed shape: what index would give */
  {
    ty_call k = *c;
    ty_attr at[1] = {c->at[0]};
    k.op = &ty_ops[TY_OP_index];
    k.at = at;
    k.span[1] = c->span[2];
    TY_TRY(k.op->infer(&k));
    m.ndim = k.meta[0].ndim;
    memcpy(m.shape, k.meta[0].shape, sizeof m.shape);
    n = m.ndim;
  }
  ty_status s = TY_OK;
  double number;
  ty_storage store = {.data = &number};
  ty_tensor num = {.dtype = x->dtype, .storage = &store};
  if (!v) {
    if (c->in[1].kind == TY_FLOAT) ty_set(&number, (ty_dtype)x->dtype, c->in[1].f);
    else ty_set_int(&number, (ty_dtype)x->dtype, c->in[1].i);
    v = &num;
  } else {
    TY_TRY(ty_cast(c->ctx, v, (ty_dtype)x->dtype, &same));
    v = same;
  }
  ty_tensor b = *v;                        /* broadcast to the indexed shape */
  b.ndim = (uint8_t)n;
  for (int i = 0; i < n; i++) {
    int q = i - (n - v->ndim);
    b.shape[i] = m.shape[i];
    b.stride[i] = q < 0 || v->shape[q] == 1 ? 0 : v->stride[q];
  }
  s = make_plan(c, o, 2, n, m.shape, &p);  /* o has x's shape; its own strides */
  if (s == TY_OK) {
    s = copy_at(c, o, x, false);
    int64_t row = ty_numel(&p.rest);
    ty_dtype d = (ty_dtype)o->dtype;
    bool rows = p.place == 0 && rest_is_run(&p) && (row == 1 || (b.ndim > p.inum && b.stride[n - 1] == 1)) && (d == TY_F32 || d == TY_F64);
    for (int k = p.inum; rows && k < n - 1; k++) rows = b.stride[k] == b.stride[k + 1] * b.shape[k + 1];
    for (int64_t i = 0; i < p.n && row && s == TY_OK; i++) {
      ty_tensor dst = p.rest, src = result_at(&p, &b, i);
      dst.storage = o->storage;
      dst.offset = o->offset + p.offset[i];
      if (rows && add) ty_cpu_loops()->pointwise[TY_OP_add][ty_k(d)](ty_data(&dst), ty_data(&dst), ty_data(&src), NULL, row, 1, 0);
      else s = copy_at(c, &dst, &src, add);
    }
    ty_scratch_free(p.offset);
  }
  ty_release(same);
  return s;
}

/* ---- gather, scatter: index has as many dims as x ---- */

static ty_status bad_index(ty_call *c, int64_t v, const ty_tensor *x) {
  return v == 0 ? ty_fail(c, "index 0 in argument 'index': indices begin at 1")
                : ty_fail(c, "index %lld in argument 'index' is out of range for dim %lld of shape %s", (long long)v, (long long)c->at[0].i + 1, ty_shape_of(x));
}

/* Calls f for every index: its position, x's element offset there, and idx's value through x's dim. */
static ty_status walk(ty_call *c, const ty_tensor *x, ty_tensor *o, const ty_tensor *src) {
  const ty_tensor *idx = c->in[1].t;
  int d = (int)c->at[0].i, nd = idx->ndim, size = ty_itemsize(x);
  bool gather = c->op->id == TY_OP_gather, add = c->op->id == TY_OP_scatter_add;
  int64_t total = ty_numel(idx), limit = x->ndim ? x->shape[d] : 1;
  const char *ip = ty_data(idx);
  for (int pass = gather; pass < 2; pass++)      /* scatter: check all, then write */
    for (int64_t i = 0; i < total; i++) {
      int64_t rest = i, ioff = 0, xoff = 0, soff = 0, at;
      for (int k = nd - 1; k >= 0; k--) {
        at = rest % idx->shape[k];
        rest /= idx->shape[k];
        ioff += at * idx->stride[k];
        if (k != d) xoff += at * (gather ? x->stride[k] : o->stride[k]);
        if (src) soff += at * src->stride[k];
      }
      int64_t v = ty_get_int(ip + ioff * ty_itemsize(idx), (ty_dtype)idx->dtype);
      if (v < 1 || v > limit) return bad_index(c, v, x);
      if (pass == 0) continue;
      if (nd) xoff += (v - 1) * (gather ? x->stride[d] : o->stride[d]);
      if (gather) { memcpy((char *)ty_data(o) + i * size, (char *)ty_data(x) + xoff * size, (size_t)size); continue; }
      char *p = (char *)ty_data(o) + xoff * size;
      ty_dtype dt = (ty_dtype)o->dtype;
      if (add) {
        char *q = (char *)ty_data(src) + soff * size;
        if (ty_is_float(dt)) ty_set(p, dt, ty_get(p, dt) + ty_get(q, dt));
        else ty_set_int(p, dt, (int64_t)((uint64_t)ty_get_int(p, dt) + (uint64_t)ty_get_int(q, dt)));
      } else if (src) memcpy(p, (char *)ty_data(src) + soff * size, (size_t)size);
      else if (c->in[2].kind == TY_FLOAT) ty_set(p, dt, c->in[2].f);
      else ty_set_int(p, dt, c->in[2].i);
    }
  return TY_OK;
}

/* ---- nonzero ---- */

static ty_status nonzero(ty_call *c) {
  const ty_tensor *x = c->in[0].t;
  int nd = x->ndim;
  int64_t total = ty_numel(x), count = 0;
  for (int pass = 0; pass < 2; pass++) {
    int64_t *out = pass ? ty_data(c->out[0]) : NULL;
    for (int64_t i = 0; i < total; i++) {
      int64_t rest = i, off = 0, at[TY_MAXDIM];
      for (int k = nd - 1; k >= 0; k--) {
        at[k] = rest % x->shape[k];
        rest /= x->shape[k];
        off += at[k] * x->stride[k];
      }
      const char *p = (const char *)ty_data(x) + off * ty_itemsize(x);
      bool hit = ty_is_float((ty_dtype)x->dtype) ? ty_get(p, (ty_dtype)x->dtype) != 0 : ty_get_int(p, (ty_dtype)x->dtype) != 0;
      if (!hit) continue;
      if (!pass) { count++; continue; }
      for (int k = 0; k < nd; k++) *out++ = at[k] + 1;
    }
    if (!pass) {
      ty_meta m = {.dtype = TY_I64, .ndim = 2, .shape = {count, nd}};
      TY_TRY(ty_empty(c->ctx, x->storage->backend, &m, &c->out[0]));
    }
  }
  return TY_OK;
}

ty_status ty_cpu_index(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_index: return take_out(c);
    case TY_OP_index_put: return put_in(c);
    case TY_OP_gather: return walk(c, c->in[0].t, c->out[0], NULL);
    case TY_OP_nonzero: return nonzero(c);
    default:
      TY_TRY(copy_at(c, c->out[0], c->in[0].t, false));
      return walk(c, c->in[0].t, c->out[0], c->in[2].t);
  }
}
