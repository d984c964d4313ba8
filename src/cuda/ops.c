/* Ops that one kernel of this project computes: geometry from tensors to the launchers' structs. */
#include <stdio.h>
#include <string.h>
#include "cuda.h"
#include "math.h"

/* What a kernel of this op or, where that can't be told, of an earlier one found wrong. */
static ty_status reported(ty_ctx *ctx, int gpu, bool earlier) {
  ty_k_fault *f = ty_fault_of(gpu);
  if (!f->op) return TY_OK;
  const long long value = f->value, limit = f->limit;
  const int op = f->op - 1;
  const char *name = ty_op_name(op);
  char where[40] = "";
  if (!ty_capturing()) { ty_count_sync(); cudaDeviceSynchronize(); }     /* what still runs would report the same again */
  f->op = 0;
  f->claimed = 0;
  if (earlier) snprintf(where, sizeof where, " (an earlier call on cuda:%d)", gpu);
  if (limit == -1)
    return ty_error(ctx, "%s%s: row %lld has an element that is no probability; they must be finite and not negative",
      name, where, value);
  if (limit < -1)
    return ty_error(ctx, "%s%s: row %lld has %lld elements above 0; more indices can't be drawn from it", name, where,
      value, -2 - limit);
  if (op == TY_OP_cross_entropy_rows || op == TY_OP_cross_entropy_backward || op == TY_OP_cross_entropy_mean ||
      op == TY_OP_cross_entropy_mean_backward)
    return value == 0 ? ty_error(ctx, "%s%s: label 0: class labels begin at 1", name, where)
      : ty_error(ctx, "%s%s: label %lld is not one of %lld classes", name, where, value, limit);
  return value == 0 ? ty_error(ctx, "%s%s: index 0: indices begin at 1", name, where)
                    : ty_error(ctx, "%s%s: index %lld is out of range 1 to %lld", name, where, value, limit);
}

ty_status ty_reported(ty_ctx *ctx, int gpu) { return reported(ctx, gpu, true); }

ty_status ty_begin(ty_call *c, int *gpu, cudaStream_t *s) {
  const ty_tensor *here = c->op->nout && c->out[0] ? c->out[0] : c->in[0].t;   /* a late result isn't there yet */
  *gpu = ty_device_of(here)->gpu;
  ty_stream *stream = ty_stream_of(c->ctx, *gpu);
  CUDA(c->ctx, *gpu, ty_use(*gpu));
  TY_TRY(reported(c->ctx, *gpu, true));
  for (int i = 0; i < c->nin; i++)
    if (c->in[i].t && ty_device_of(c->in[i].t)->gpu >= 0) ty_uses(stream, c->in[i].t->storage);
  for (int i = 0; i < c->op->nout; i++)
    if (c->out[i]) ty_uses(stream, c->out[i]->storage);
  *s = stream->s;
  return TY_OK;
}

ty_status ty_sent(ty_ctx *ctx, const char *name, int gpu, cudaError_t e) {
  if (e == cudaSuccess && ty_core->flags->sync_debug && !ty_captures(gpu)) {
    ty_count_sync();
    e = cudaStreamSynchronize(ty_stream_of(ctx, gpu)->s);
    if (e == cudaSuccess) return reported(ctx, gpu, false);
  }
  return e == cudaSuccess ? TY_OK : ty_cuda_fail(ctx, e, name, gpu);
}
ty_status ty_launched(ty_call *c, int gpu, cudaError_t e) { return ty_sent(c->ctx, c->op->shown, gpu, e); }

ty_status ty_new(ty_call *c, int gpu, ty_dtype d, int ndim, const int64_t *shape, ty_tensor **out) {
  ty_meta m = {.dtype = d, .ndim = ndim};
  memcpy(m.shape, shape, sizeof(int64_t) * (size_t)ndim);
  return ty_empty(c->ctx, &ty_gpus[gpu], &m, out);
}

void ty_lines_of(const ty_tensor *t, int dim, int64_t *lines, int64_t *n, int64_t *inner) {
  *lines = *inner = 1;
  *n = t->ndim ? t->shape[dim] : 1;
  for (int i = 0; i < t->ndim; i++) {
    if (i != dim) *lines *= t->shape[i];
    if (i > dim) *inner *= t->shape[i];
  }
}

/* ---- pointwise ---- */

/* Whether t's elements lie as o's do: the same shape and strides (of dims that have several elements), without holes. */
static bool lies_as(const ty_tensor *t, const ty_tensor *o) {
  if (t->ndim != o->ndim) return false;
  for (int i = 0; i < o->ndim; i++)
    if (t->shape[i] != o->shape[i] || (o->shape[i] > 1 && t->stride[i] != o->stride[i])) return false;
  return true;
}

void ty_in_memory_order(ty_k_point *a) {
  int n = 0;
  bool strided = false;
  for (int i = 0; i < a->ndim; i++) {      /* dims of size 1 say nothing */
    if (a->shape[i] == 1) continue;
    a->shape[n] = a->shape[i];
    for (int k = 0; k <= a->nin; k++) a->o[k].stride[n] = a->o[k].stride[i];
    n++;
  }
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && a->o[0].stride[j] > a->o[0].stride[j - 1]; j--) {
      int64_t t = a->shape[j]; a->shape[j] = a->shape[j - 1]; a->shape[j - 1] = t;
      for (int k = 0; k <= a->nin; k++) { t = a->o[k].stride[j]; a->o[k].stride[j] = a->o[k].stride[j - 1]; a->o[k].stride[j - 1] = t; }
    }
  a->ndim = 0;
  for (int i = 0; i < n; i++) {
    const int last = a->ndim - 1;
    bool merges = last >= 0;
    for (int k = 0; k <= a->nin; k++)
      merges = merges && (a->o[k].how == TY_K_NUMBER || a->o[k].stride[last] == a->o[k].stride[i] * a->shape[i]);
    const int to = merges ? last : a->ndim++;
    a->shape[to] = merges ? a->shape[to] * a->shape[i] : a->shape[i];
    for (int k = 0; k <= a->nin; k++) a->o[k].stride[to] = a->o[k].stride[i];
  }
  for (int k = 0; k <= a->nin; k++) strided = strided || a->o[k].how == TY_K_STRIDED;
  if (!strided) a->ndim = 0;               /* nobody asks where in the shape an element is */
}

static ty_operand element_of(const ty_tensor *t) {       /* a 0-dim tensor of the CPU */
  const void *p = ty_data(t);
  if (ty_is_float((ty_dtype)t->dtype)) return ty_op_float(ty_get(p, (ty_dtype)t->dtype));
  int64_t v = t->dtype == TY_I64 ? *(const int64_t *)p : (int64_t)ty_get(p, (ty_dtype)t->dtype);
  return ty_op_int(v);
}

ty_status ty_cuda_pointwise(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const int k = c->compute == TY_F64 ? 1 : c->compute == TY_F32 ? 0 : 2;
  ty_k_point a = {.op = c->op->id, .k = k, .nin = c->nin, .ndim = o->ndim, .n = ty_numel(o)};
  const bool flat = ty_is_dense(o), rounds = ty_rounds_numbers(c);
  int gpu;
  cudaStream_t s;
  if (a.n == 0) return TY_OK;
  TY_TRY(ty_begin(c, &gpu, &s));
  if (c->op->nattr > 0) a.p = ty_parameter(c, 0);
  if (c->op->nattr > 1) a.q = ty_parameter(c, 1);
  memcpy(a.shape, o->shape, sizeof a.shape);
  a.o[0] = (ty_k_operand){.p = ty_data(o), .dtype = o->dtype, .how = flat ? TY_K_DENSE : TY_K_STRIDED};
  memcpy(a.o[0].stride, o->stride, sizeof a.o[0].stride);
  for (int i = 0; i < c->nin; i++) {
    const ty_tensor *t = c->in[i].t;
    ty_k_operand *q = &a.o[i + 1];
    ty_operand v = c->in[i];
    if (t && ty_device_of(t)->gpu < 0) { v = element_of(t); t = NULL; }
    if (!t) {
      *q = (ty_k_operand){.how = TY_K_NUMBER, .f = v.f, .i = v.kind == TY_FLOAT ? ty_whole(v.f) : v.i};
      if (rounds) q->f = ty_rounded(v.f, c->common);
      continue;
    }
    *q = (ty_k_operand){.p = ty_data(t), .dtype = t->dtype,
      .rounded = rounds && t->ndim == 0 && t->dtype != c->common ? 1 + c->common : 0,
      .how = t->ndim == 0 ? TY_K_NUMBER : flat && lies_as(t, o) ? TY_K_DENSE : TY_K_STRIDED};
    for (int d = 0; d < o->ndim; d++) {
      const int at = d - (o->ndim - t->ndim);
      q->stride[d] = at < 0 || t->shape[at] == 1 ? 0 : t->stride[at];
    }
  }
  ty_in_memory_order(&a);
  return ty_launched(c, gpu, ty_k_pointwise(&a, s));
}

/* ---- creation ---- */

ty_status ty_cuda_fill(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const ty_attr *a = c->at;
  int gpu;
  cudaStream_t s;
  cudaError_t e = cudaSuccess;
  const int64_t n = ty_numel(o);
  TY_TRY(ty_begin(c, &gpu, &s));
  if (n == 0) return TY_OK;
  switch (c->op->id) {
    case TY_OP_empty: break;
    case TY_OP_zeros: e = cudaMemsetAsync(ty_data(o), 0, (size_t)(n * ty_itemsize(o)), s); break;
    case TY_OP_ones: e = ty_fill_number(o, ty_op_int(1), s); break;
    case TY_OP_full: e = ty_fill_number(o, a[1].n == TY_FLOAT ? ty_op_float(a[1].f) : ty_op_int(a[1].i), s); break;
    case TY_OP_range: e = ty_k_sequence(ty_data(o), o->dtype, n, a[0].f, a[2].f, a[0].f + (double)(n - 1) * a[2].f, s); break;
    case TY_OP_linspace:
      e = ty_k_sequence(ty_data(o), o->dtype, n, a[0].f, n > 1 ? (a[1].f - a[0].f) / (double)(n - 1) : 0,
        n > 1 ? a[1].f : a[0].f, s);
      break;
    default: e = ty_k_eye(ty_data(o), o->dtype, o->shape[0], o->shape[1], s);
  }
  return ty_launched(c, gpu, e);
}

/* ---- random numbers ---- */

/* The order of random keys. */
static ty_status permutation(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *keys = NULL, *places = NULL, *o = c->out[0];
  const ty_meta m = {.dtype = TY_I64, .ndim = 1, .shape = {o->shape[0]}};
  ty_k_sorting k = {.dtype = TY_I64, .lines = 1, .n = o->shape[0], .take = o->shape[0]};
  ty_status st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &keys);
  if (st == TY_OK && o->dtype != TY_I64) st = ty_empty(c->ctx, &ty_gpus[gpu], &m, &places);
  if (st == TY_OK)
    st = ty_launched(c, gpu, ty_generator_end(gpu, ty_k_keys(ty_data(keys), NULL, k.n, 2, ty_generator_begin(c->ctx, gpu), s)));
  if (st == TY_OK) {
    k.x = ty_data(keys);
    k.places = ty_data(places ? places : o);
    st = ty_cuda_sort_lines(c, gpu, s, &k);
  }
  if (st == TY_OK && places) st = ty_launched(c, gpu, ty_convert(o, places, s));
  ty_release(keys);
  ty_release(places);
  return st;
}

/* As on the CPU: with replacement by the running sums, else the first of an order of random keys. Rows that can't be drawn from are
 * reported later. */
static ty_status multinomial(ty_call *c, int gpu, cudaStream_t s) {
  const ty_tensor *t = c->in[0].t;
  ty_tensor *x, *p = NULL, *work = NULL, *o = c->out[0];
  const int64_t n = c->at[0].i, m = t->shape[t->ndim - 1], rows = ty_numel(o) / n;
  const bool replace = c->at[1].i;
  const ty_meta meta = {.dtype = TY_F64, .ndim = 1, .shape = {rows * m}};
  TY_TRY(ty_cast(c->ctx, (ty_tensor *)t, TY_F64, &x));
  ty_status st = ty_contiguous(c->ctx, x, &p);
  ty_release(x);
  if (st == TY_OK) st = ty_empty(c->ctx, &ty_gpus[gpu], &meta, &work);
  if (st == TY_OK) st = ty_launched(c, gpu, ty_k_check_weights(ty_data(p), rows, m, replace ? 1 : n, ty_fault_of(gpu), c->op->id, s));
  if (st == TY_OK && replace) {
    const ty_k_scan k = {.op = TY_OP_cumsum, .dtype = TY_F64, .lines = rows, .n = m, .inner = 1, .x = ty_data(p), .o = ty_data(work)};
    cudaError_t e = ty_k_scan_lines(&k, s);
    st = ty_launched(c, gpu,
      e == cudaSuccess
      ? ty_generator_end(gpu, ty_k_draws(ty_data(o), ty_data(work), rows, m, n, ty_generator_begin(c->ctx, gpu), s)) : e);
  } else if (st == TY_OK) {
    ty_k_sorting k = {.dtype = TY_F64, .lines = rows, .n = m, .take = n, .x = ty_data(work), .places = ty_data(o)};
    st = ty_launched(c, gpu, ty_generator_end(gpu, ty_k_keys(ty_data(work), ty_data(p), rows * m, 1, ty_generator_begin(c->ctx, gpu), s)));
    if (st == TY_OK) st = ty_cuda_sort_lines(c, gpu, s, &k);
  }
  ty_release(p);
  ty_release(work);
  return st;
}

static ty_status augment(ty_call *c, int gpu, cudaStream_t s) {
  ty_tensor *in[4], *o = c->out[0];
  ty_status st = TY_OK;
  int n = 0;
  for (; n < 4 && st == TY_OK; n += st == TY_OK) st = ty_contiguous(c->ctx, c->in[n].t, &in[n]);
  if (st == TY_OK) {
    ty_k_augmenting k = {.op = c->op->id, .dtype = o->dtype, .x = ty_data(in[0]), .index = ty_data(in[1]),
                               .mean = ty_data(in[2]), .std = ty_data(in[3]), .o = ty_data(o), .fault = ty_fault_of(gpu)};
    ty_augment_of(c, &k.a);
    k.g = ty_generator_begin(c->ctx, gpu);
    st = ty_launched(c, gpu, ty_generator_end(gpu, ty_k_augment(&k, s)));
  }
  while (n) ty_release(in[--n]);
  return st;
}

ty_status ty_cuda_random(ty_call *c) {
  const ty_tensor *o = c->out[0];
  int gpu;
  cudaStream_t s;
  ty_tensor *x = NULL;
  ty_k_draw d = {.op = c->op->id, .dtype = o->dtype, .n = ty_numel(o), .o = ty_data(o)};
  TY_TRY(ty_begin(c, &gpu, &s));
  if (d.n == 0) return TY_OK;
  switch (c->op->id) {
    case TY_OP_rand: d.b = 1; break;
    case TY_OP_randn: d.b = 1; break;
    case TY_OP_randint: d.low = c->at[0].i; d.high = c->at[1].i; break;
    case TY_OP_uniform: case TY_OP_normal: d.a = c->at[0].f; d.b = c->at[1].f; break;
    case TY_OP_exponential: case TY_OP_dropout_mask: d.a = c->at[0].f; break;
    case TY_OP_randperm: return permutation(c, gpu, s);
    case TY_OP_multinomial: return multinomial(c, gpu, s);
    case TY_OP_augment: return augment(c, gpu, s);
    default: break;                        /* bernoulli has no attributes */
  }
  if (c->op->id == TY_OP_bernoulli || c->op->id == TY_OP_dropout_mask) {
    TY_TRY(ty_contiguous(c->ctx, c->in[0].t, &x));
    d.x = ty_data(x);
    if (c->op->id == TY_OP_dropout_mask) d.mask = ty_data(c->out[1]);
  }
  d.g = ty_generator_begin(c->ctx, gpu);
  const cudaError_t e = ty_generator_end(gpu, ty_k_random(&d, s));
  ty_release(x);
  return ty_launched(c, gpu, e);
}

/* ---- reductions ---- */

/* A further dim, merged with the one before where their elements follow one another. */
static void add_dim(int64_t *shape, int64_t *step, int *n, int64_t size, int64_t stride) {
  const bool merges = *n && step[*n - 1] == size * stride;
  if (!merges) shape[(*n)++] = 1;
  shape[*n - 1] *= size;
  step[*n - 1] = stride;
}

/* x's dims in mask go; o: contiguous. */
static ty_status reduce(ty_call *c, int gpu, cudaStream_t s, int op, int k, const ty_tensor *x, unsigned mask, void *o,
  int out_dtype, int64_t outputs) {
  ty_k_reduction r = {.op = op, .k = k, .dtype = x->dtype, .out_dtype = out_dtype, .outputs = outputs, .length = 1,
    .x = ty_data(x), .o = o};
  if (r.outputs == 0) return TY_OK;
  for (int i = 0; i < x->ndim; i++) {
    const bool gone = mask >> i & 1;
    if (x->shape[i] == 1) continue;
    if (gone) { add_dim(r.reduce, r.reduce_stride, &r.nreduce, x->shape[i], x->stride[i]); r.length *= x->shape[i]; }
    else add_dim(r.keep, r.keep_stride, &r.nkeep, x->shape[i], x->stride[i]);
  }
  r.splits = ty_k_reduce_splits(&r);
  ty_tensor *partial = NULL, *made = NULL;
  ty_status st = TY_OK;
  if (r.splits > 1) {
    TY_TRY(ty_new(c, gpu, TY_F64, 1, &(int64_t){r.outputs * r.splits}, &partial));
    r.partial = ty_data(partial);
    st = ty_tickets(c, gpu, &r.ticket, &made);
  }
  if (st == TY_OK) st = ty_launched(c, gpu, ty_k_reduce(&r, s));
  ty_release(partial);                     /* goes back to this stream: what comes next waits for the kernel */
  ty_release(made);
  return st;
}

ty_status ty_cuda_reduce(ty_call *c) {
  const ty_tensor *x = c->in[0].t, *o = c->out[0];
  int gpu;
  cudaStream_t s;
  unsigned mask = 0;
  TY_TRY(ty_begin(c, &gpu, &s));
  if (!c->at[0].set) mask = ~0u;
  else for (int i = 0; i < c->at[0].n; i++) mask |= 1u << c->at[0].v[i];
  return reduce(c, gpu, s, c->op->id, c->compute == TY_F64 ? 1 : c->compute == TY_F32 ? 0 : 2, x, mask, ty_data(o), o->dtype, ty_numel(o));
}

ty_status ty_reduce_into(ty_call *c, int gpu, cudaStream_t s, int op, const ty_tensor *x, unsigned dims, void *o, ty_dtype d, int64_t n) {
  return reduce(c, gpu, s, op, x->dtype == TY_F64 ? 1 : ty_is_float((ty_dtype)x->dtype) ? 0 : 2, x, dims, o, d, n);
}
