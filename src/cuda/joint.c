/* Calls of several ops that are done together (src/core/fuse_joint.c); call[] is in the order of recording.
 *
 * Invariant: results that only these calls touch may be NULL (stays_within in src/core/fuse.c); all others are written. */
#include "cuda.h"

static ty_status begin(ty_ctx *ctx, const ty_backend *b, ty_call *const *call, int n, cudaStream_t *s) {
  ty_stream *stream;
  TY_TRY(ty_cuda_enter(ctx, b->gpu, &stream));
  for (int k = 0; k < n; k++) ty_cuda_uses_of(call[k], stream);
  *s = stream->s;
  return TY_OK;
}

static ty_call *call_of(ty_op_id op, ty_call *const *call, int n) {
  for (int k = 0; k < n; k++)
    if (call[k]->op->id == (int)op) return call[k];
  return NULL;
}

static bool is(const ty_tensor *a, const ty_tensor *b) {
  return a->storage == b->storage && a->offset == b->offset && ty_numel(a) == ty_numel(b);
}

/* Casts, and maybe multi_found, which looks at what they give and at other tensors. */
static ty_status casts(ty_call *const *call, int n, int gpu, cudaStream_t s) {
  _Static_assert(TY_JOINED <= TY_K_CASTS, "a launch takes all");
  const ty_call *found = call_of(TY_OP_multi_found, call, n);
  ty_k_casts a = {.found = found ? ty_data(found->in[found->span[1].start].t) : NULL};
  const int looks = found ? found->span[0].count : 0;
  bool given[TY_JOINED] = {false};         /* tensors looked at that a cast gives */
  for (int i = 0; i < n; i++) {
    if (call[i] == found) continue;
    const ty_tensor *from = call[i]->in[0].t, *to = call[i]->out[0];
    const int at = a.count++;
    a.item[at].from = ty_data(from);
    a.item[at].to = ty_data(to);
    a.item[at].n = ty_numel(to);
    a.item[at].from_dtype = from->dtype;
    a.item[at].to_dtype = to->dtype;
    for (int k = 0; k < looks; k++)
      if (is(to, found->in[found->span[0].start + k].t)) a.item[at].looked_at = given[k] = true;
    const bool last = !ty_is_contiguous(to);
    if (!last && ty_is_contiguous(from)) continue;
    const int64_t c = to->shape[1], pixels = to->shape[2] * to->shape[3];
    a.item[at].outer = last ? pixels : c;
    a.item[at].inner = last ? c : pixels;
  }
  for (int k = 0; k < looks; k++) {
    const ty_tensor *t = found->in[found->span[0].start + k].t;
    if (given[k]) continue;
    a.item[a.count].from = ty_data(t);
    a.item[a.count].n = ty_numel(t);
    a.item[a.count].from_dtype = a.item[a.count].to_dtype = t->dtype;
    a.item[a.count++].looked_at = true;
  }
  return ty_cuda_launched(call[0], gpu, ty_k_cast_all(&a, s));
}

static ty_status normalized_pool(ty_call *const *call, int n, int gpu, cudaStream_t s) {
  const ty_call *norm = call_of(TY_OP_batch_norm_apply, call, n), *clone = call_of(TY_OP_clone, call, n);
  const ty_call *relu = call_of(TY_OP_relu, call, n);
  ty_call *pool = call_of(TY_OP_max_pool2d_indices, call, n);
  const ty_tensor *w = norm ? norm->in[3].t : NULL, *b = norm ? norm->in[4].t : NULL;
  ty_k_normalizing a = {.relu = relu != NULL, .mean = norm ? ty_data(norm->in[1].t) : NULL, .rstd = norm ? ty_data(norm->in[2].t) : NULL};
  const ty_tensor *copy = clone ? clone->out[0] : NULL, *y = pool->out[0] ? pool->out[0] : copy;
  ty_k_pooling k;
  if (!y || !ty_numel(y)) return TY_OK;    /* the result isn't wanted */
  ty_cuda_pooling_of(pool, (norm ? norm : relu)->in[0].t, y, pool->out[1], &k);
  if (w) { a.w = ty_data(w); a.wdtype = w->dtype; a.w_step = w->stride[0]; }
  if (b) { a.b = ty_data(b); a.bdtype = b->dtype; a.b_step = b->stride[0]; }
  if (copy && copy != y) { k.copy = ty_data(copy); ty_cuda_plane_strides(copy, k.cs); }
  return ty_cuda_launched(pool, gpu, ty_k_normalized_pool(&k, &a, s));
}

static ty_status pool_backward(ty_call *const *call, int n, int gpu, cudaStream_t s) {
  const ty_call *relu = call_of(TY_OP_relu_backward, call, n);
  ty_call *norm = call_of(TY_OP_batch_norm_backward, call, n), *pool = call_of(TY_OP_max_pool2d_backward, call, n);
  ty_k_pooling k;
  ty_cuda_pooling_of(pool, norm ? norm->in[1].t : pool->out[0], (relu ? relu : pool)->in[0].t, pool->in[1].t, &k);
  if (relu) { k.mask = ty_data(relu->in[1].t); ty_cuda_plane_strides(relu->in[1].t, k.ms); }
  if (norm) return ty_cuda_batch_norm(norm, gpu, s, &k);
  return ty_numel(pool->out[0]) ? ty_cuda_launched(pool, gpu, ty_k_pool(&k, s)) : TY_OK;
}

static ty_status norm_backward(ty_call *const *call, int n, int gpu, cudaStream_t s) {
  int at = call[0]->op->id == TY_OP_cast;
  ty_call *norm = call[at];
  ty_cuda_beside beside = {.g = at ? call[0]->in[0].t : NULL};
  if (++at < n && call[at]->op->id == TY_OP_add) {
    const ty_call *add = call[at++];
    /* add's other operand is the norm's result, which may be NULL */
    beside.past = add->in[!add->in[0].t || add->in[0].t == norm->out[0]].t;
    beside.sum = add->out[0];
  }
  if (at < n) beside.copy = call[at]->out[0];
  return ty_cuda_layer_norm(norm, gpu, s, &beside);
}

ty_status ty_cuda_joint(ty_ctx *ctx, const ty_backend *b, ty_joint kind, ty_call *const *call, int n) {
  cudaStream_t s = NULL;
  TY_TRY(begin(ctx, b, call, n, &s));
  switch (kind) {
    case TY_JOINT_CASTS: return casts(call, n, b->gpu, s);
    case TY_JOINT_STEP: {
      const ty_k_scale_rule rule = ty_cuda_scale_rule_of(call[1]);
      return ty_cuda_optim_step(call[0], b->gpu, s, &rule);
    }
    case TY_JOINT_NORM_BACKWARD: return norm_backward(call, n, b->gpu, s);
    case TY_JOINT_LOSS: return ty_cuda_cross_entropy(call[0], call[1], b->gpu, s);
    case TY_JOINT_POOL: return normalized_pool(call, n, b->gpu, s);
    default: return pool_backward(call, n, b->gpu, s);
  }
}
