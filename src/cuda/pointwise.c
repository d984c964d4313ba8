/* Pointwise ops: brings the dims into the order of the result's memory and merges them, for kernels/pointwise.cu.
 *
 * Invariant: a kernel walks the result's memory in order; an operand with the result's layout, or a single number, needs no strides. */
#include <string.h>
#include "cuda.h"
#include "math.h"

_Static_assert(TY_K_DIMS == TY_MAXDIM, "kernels walk as many dims as tensors have");

/* Whether t's elements lie as o's do. */
static bool lies_as(const ty_tensor *t, const ty_tensor *o) { return TY_SAME_SHAPE(t, o) && ty_same_places(t, o); }

void ty_cuda_in_memory_order(ty_k_point *a) {
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
  if (!strided) a->ndim = 0;               /* no operand needs an element's place in the shape */
}

static ty_operand element_of(const ty_tensor *t) {       /* a 0-dim tensor of the CPU */
  const void *p = ty_data(t);
  if (ty_is_float(t->dtype)) return ty_operand_float(ty_get(p, t->dtype));
  int64_t v = t->dtype == TY_I64 ? *(const int64_t *)p : (int64_t)ty_get(p, t->dtype);
  return ty_operand_int(v);
}

ty_status ty_cuda_pointwise(ty_call *c) {
  const ty_tensor *o = c->out[0];
  const ty_loop_type k = ty_loop_type_of(c->compute);
  ty_k_point a = {.op = c->op->id, .k = k, .nin = c->nin, .ndim = o->ndim, .n = ty_numel(o)};
  const bool flat = ty_is_dense(o), rounds = ty_rounds_numbers(c);
  int gpu;
  cudaStream_t s;
  if (a.n == 0) return TY_OK;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
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
  ty_cuda_in_memory_order(&a);
  return ty_cuda_launched(c, gpu, ty_k_pointwise(&a, s));
}
