/* Attention in 16 bits as cuDNN graphs, which the library's flash kernels recognize.
 *
 * Idea: the graph is written out (the library's single node has no causal mask): scores, scale, mask, softmax with its
 * log-sum-exp, product; backward computes the probabilities again from the log-sum-exp. K and V are transposed by their
 * strides. The query's gradient is summed in float32 memory of the caller's, in no fixed order; where determinism is asked
 * for, that memory isn't given, and the library needs memory for the square of the length. A mask is added as numbers
 * (kernels/attention_given.cu). Other dtypes, wide heads and dropout aren't done here: src/cuda/attention.c does them by
 * products or own kernels. */
#include <float.h>
#include <string.h>
#include "dnn_plan.h"

enum { UID_Q = 1, UID_KT, UID_V, UID_O, UID_LSE, UID_SCALE, UID_LOW, UID_G, UID_VT, UID_K, UID_DQ, UID_DK, UID_DV, UID_KEEPS,
  UID_SUMS, UID_BIAS };
#define F CUDNN_DATA_FLOAT
#define PATIENCE 100                     /* calls of one shape, without gradients: text generation calls each length just once a layer */

static ty_desc product(ty_dnn_graph *g, ty_desc a, ty_desc b, ty_desc c) {
  const cudnnDataType_t compute = F;
  ty_desc how = ty_dnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  ty_dnn_set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  ty_dnn_finish(g, how);
  ty_dnn_operation(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 4, (ty_dnn_with[]){{CUDNN_ATTR_OPERATION_MATMUL_DESC, how},
    {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a}, {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b}, {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
  return c;
}

static ty_desc reduction(ty_dnn_graph *g, cudnnReduceTensorOp_t kind, ty_desc x, ty_desc y) {
  const cudnnDataType_t compute = F;
  ty_desc how = ty_dnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  ty_dnn_set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind);
  ty_dnn_set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  ty_dnn_finish(g, how);
  ty_dnn_operation(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 3,
    (ty_dnn_with[]){{CUDNN_ATTR_OPERATION_REDUCTION_DESC, how}, {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
    {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}});
  return y;
}

/* x with its last two dims exchanged, as type */
static ty_desc transposed(ty_dnn_graph *g, ty_desc x, cudnnDataType_t type, const int64_t dims[4]) {
  const int64_t td[4] = {dims[0], dims[1], dims[3], dims[2]}, ts[4] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], 1, dims[3]};
  ty_desc y = ty_dnn_tensor(g, 1000 + g->uid++, type, td, ts, TY_DNN_INNER);
  ty_dnn_operation(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 2,
    (ty_dnn_with[]){{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
  return y;
}

static ty_desc binary(ty_dnn_graph *g, cudnnPointwiseMode_t mode, ty_desc a, ty_desc b, cudnnDataType_t type, const int64_t dims[4]) {
  return ty_dnn_point(g, mode, F, -1, a, b, NULL, ty_dnn_inner(g, type, dims));
}

static ty_desc unary(ty_dnn_graph *g, cudnnPointwiseMode_t mode, ty_desc x, const int64_t dims[4]) {
  return ty_dnn_point(g, mode, F, -1, x, NULL, NULL, ty_dnn_inner(g, F, dims));
}

/* The shapes of a call's tensors, and strides of rows; kt, vt: last two dims exchanged. */
typedef struct { int64_t q[4], k[4], v[4], kt[4], vt[4], s[4], row[4], row_stride[4], one[4]; } shapes;

static shapes shapes_of(const ty_k_attention *a) {
  const int64_t n = a->h ? a->heads / a->h : 0;
  return (shapes){.q = {n, a->h, a->lq, a->d}, .k = {n, a->h, a->lk, a->d}, .v = {n, a->h, a->lk, a->dv},
                  .kt = {n, a->h, a->d, a->lk}, .vt = {n, a->h, a->dv, a->lk}, .s = {n, a->h, a->lq, a->lk},
                  .row = {n, a->h, a->lq, 1}, .row_stride = {a->h * a->lq, a->lq, 1, 1}, .one = {1, 1, 1, 1}};
}

static ty_desc heads(ty_dnn_graph *g, int64_t uid, int dtype, const int64_t dims[4], const ty_k_heads *t, bool turned) {
  const int64_t strides[4] = {t->stride[0], t->stride[1], t->stride[turned ? 3 : 2], t->stride[turned ? 2 : 3]};
  return ty_dnn_tensor(g, uid, ty_dnn_type(dtype), dims, strides, TY_DNN_REAL);
}

/* What describes a graph. */
typedef struct { ty_k_attention a; ty_given given; ty_tensor *sums; cudaStream_t s; } attended;

/* q k^T * scale + bias; the lowest number where causality hides the key */
static ty_desc scores(ty_dnn_graph *g, const attended *w, const shapes *d, ty_desc q, ty_desc kt, ty_desc scale) {
  ty_desc s = product(g, q, kt, ty_dnn_inner(g, F, d->s));
  s = binary(g, CUDNN_POINTWISE_MUL, s, scale, F, d->s);
  if (w->a.mask.p) {
    const int64_t *const n = w->given.k.shape, ld = w->given.k.ld, strides[4] = {n[1] * n[2] * ld, n[2] * ld, ld, 1};
    s = binary(g, CUDNN_POINTWISE_ADD, s, ty_dnn_tensor(g, UID_BIAS, F, n, strides, TY_DNN_REAL), F, d->s);
  }
  if (!w->a.causal) return s;
  ty_desc row = ty_dnn_point(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 2, s, NULL, NULL, ty_dnn_inner(g, CUDNN_DATA_INT32, d->s));
  ty_desc col = ty_dnn_point(g, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, 3, s, NULL, NULL, ty_dnn_inner(g, CUDNN_DATA_INT32, d->s));
  ty_desc sees = ty_dnn_point(g, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, row, col, NULL, ty_dnn_inner(g, CUDNN_DATA_BOOLEAN, d->s));
  ty_desc low = ty_dnn_tensor(g, UID_LOW, F, d->one, d->one, TY_DNN_VALUE);
  return ty_dnn_point(g, CUDNN_POINTWISE_BINARY_SELECT, F, -1, s, low, sees, ty_dnn_inner(g, F, d->s));
}

static void forward(ty_dnn_graph *g, const void *what) {
  const attended *const w = what;
  const ty_k_attention *const a = &w->a;
  const cudnnDataType_t type = ty_dnn_type(a->dtype);
  const shapes d = shapes_of(a);
  ty_desc q = heads(g, UID_Q, a->dtype, d.q, &a->q, false), kt = heads(g, UID_KT, a->dtype, d.kt, &a->k, true),
    v = heads(g, UID_V, a->dtype, d.v, &a->v, false);
  ty_desc o = heads(g, UID_O, a->dtype, (int64_t[4]){d.q[0], d.q[1], a->lq, a->dv}, &a->o, false),
    lse = ty_dnn_tensor(g, UID_LSE, F, d.row, d.row_stride, TY_DNN_WORDS);
  ty_desc s = scores(g, w, &d, q, kt, ty_dnn_tensor(g, UID_SCALE, F, d.one, d.one, TY_DNN_VALUE));
  ty_desc top = reduction(g, CUDNN_REDUCE_TENSOR_MAX, s, ty_dnn_inner(g, F, d.row));
  ty_desc e = unary(g, CUDNN_POINTWISE_EXP, binary(g, CUDNN_POINTWISE_SUB, s, top, F, d.s), d.s);
  ty_desc sum = reduction(g, CUDNN_REDUCE_TENSOR_ADD, e, ty_dnn_inner(g, F, d.row));
  ty_dnn_point(g, CUDNN_POINTWISE_ADD, F, -1, top, unary(g, CUDNN_POINTWISE_LOG, sum, d.row), NULL, lse);
  product(g, binary(g, CUDNN_POINTWISE_DIV, e, sum, type, d.s), v, o);
}

/* The float32 memory, in tiles, in which the kernels sum the query's gradient. */
static ty_desc sums_of(ty_dnn_graph *g, const shapes *d) {
  const cudnnDataType_t type = F;
  const cudnnBackendTensorReordering_t tiles = CUDNN_TENSOR_REORDERING_F16x16;
  const int64_t uid = UID_SUMS, align = 16, strides[4] = {d->q[1] * d->q[2] * d->q[3], d->q[2] * d->q[3], d->q[3], 1};
  ty_desc t = ty_dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, d->q);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, 1, &tiles);
  ty_dnn_finish(g, t);
  return t;
}

static void backward(ty_dnn_graph *g, const void *what) {
  const attended *const w = what;
  const ty_k_attention *const a = &w->a;
  const shapes d = shapes_of(a);
  const cudnnDataType_t type = ty_dnn_type(a->dtype);
  ty_desc q = heads(g, UID_Q, a->dtype, d.q, &a->q, false), kt = heads(g, UID_KT, a->dtype, d.kt, &a->k, true),
    k = heads(g, UID_K, a->dtype, d.k, &a->k, false);
  ty_desc vt = heads(g, UID_VT, a->dtype, d.vt, &a->v, true), o = heads(g, UID_O, a->dtype, d.q, &a->o, false),
    go = heads(g, UID_G, a->dtype, d.q, &a->g, false);
  ty_desc dq = heads(g, UID_DQ, a->dtype, d.q, &a->dq, false), dk = heads(g, UID_DK, a->dtype, d.k, &a->dk, false),
    dv = heads(g, UID_DV, a->dtype, d.v, &a->dvalue, false);
  ty_desc lse = ty_dnn_tensor(g, UID_LSE, F, d.row, d.row_stride, TY_DNN_WORDS),
    scale = ty_dnn_tensor(g, UID_SCALE, F, d.one, d.one, TY_DNN_VALUE);
  ty_desc keeps = ty_dnn_tensor(g, UID_KEEPS, F, d.one, d.one, TY_DNN_VALUE);  /* 1: there to match the library's pattern */
  ty_desc delta = reduction(g, CUDNN_REDUCE_TENSOR_ADD, binary(g, CUDNN_POINTWISE_MUL, go, o, F, d.q), ty_dnn_inner(g, F, d.row));
  delta = binary(g, CUDNN_POINTWISE_MUL, delta, keeps, F, d.row);
  ty_desc s = scores(g, w, &d, q, kt, scale);
  ty_desc p = unary(g, CUDNN_POINTWISE_EXP, binary(g, CUDNN_POINTWISE_SUB, s, lse, F, d.s), d.s);
  product(g, transposed(g, p, type, d.s), go, dv);
  ty_desc dp = binary(g, CUDNN_POINTWISE_MUL, product(g, go, vt, ty_dnn_inner(g, F, d.s)), keeps, F, d.s);
  ty_desc ds = binary(g, CUDNN_POINTWISE_SUB, dp, delta, F, d.s);
  ds = binary(g, CUDNN_POINTWISE_MUL, ds, p, F, d.s);
  ds = binary(g, CUDNN_POINTWISE_MUL, ds, scale, type, d.s);
  product(g, transposed(g, ds, type, d.s), q, dk);
  if (w->sums) ty_dnn_point(g, CUDNN_POINTWISE_IDENTITY, F, -1, product(g, ds, k, sums_of(g, &d)), NULL, NULL, dq);
  else product(g, ds, k, dq);
}

static bool fits(const ty_k_heads *t) {
  for (int i = 0; i < 3; i++)
    if (t->stride[i] % 8) return false;
  return t->stride[3] == 1 && (uintptr_t)t->p % 16 == 0;
}

/* Whether the library's kernels do a right; it offers plans for more. Wrong, and reported: one key; more heads than a grid's second dim
 * holds; gradients of one query; and, on sm_90, gradients where the last 128 keys are only 64. The missing keys, unless causality hides
 * them, have a score of 0, whose exponential overflows (NaN) where the log-sum-exp is below -88, as a mask of very low numbers makes it.
 * Without a mask that is rare, and accepted where the only other way is the tiles. */
static bool done_right(const ty_k_attention *a) {
  if (a->lk == 1 || a->h > TY_DNN_BATCHES) return false;
  if (!a->g.p) return true;
  const bool rest = a->lk % 128 == 64 && !(a->causal && a->lq <= a->lk);
  return a->lq > 1 && !(rest && (a->mask.p || a->lq * a->lk <= TY_SCORES_IN_MEMORY));
}

static ty_dnn_key key_of(const attended *w) {
  const ty_k_attention *const a = &w->a;
  const int64_t *const n = w->given.k.shape;
  const int masked = a->mask.p ? 1 + (n[0] == 1) + 2 * (n[1] == 1) + 4 * (n[2] == 1) : 0;
  /* bit 2 (4) stays unused: keys of plans saved earlier have dropout there */
  ty_dnn_key k = {{1000 + (a->g.p != NULL) + 2 * (w->sums != NULL) + 8 * masked, a->dtype, a->causal, a->heads,
    a->h, a->lq, a->lk, a->d, a->dv}};
  const ty_k_heads *t[8] = {&a->q, &a->k, &a->v, &a->o, &a->g, &a->dq, &a->dk, &a->dvalue};
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 3; j++) k.v[9 + 3 * i + j] = t[i]->p ? t[i]->stride[j] : 0;
  return k;
}

int64_t ty_dnn_given_at_once(void) { return (int64_t)128 << 20; }

#define GIVE(id, at) (p->uid[p->n] = (id), p->data[p->n++] = (void *)(at))
static ty_status ready(ty_call *c, int gpu, ty_dnn_pack *p, void *more) {
  attended *const w = more;
  TY_TRY(ty_give(c, gpu, &w->a, w->s, &w->given));
  if (w->given.bias) GIVE(UID_BIAS, w->given.k.bias);
  return TY_OK;
}

ty_status ty_dnn_attend(ty_call *c, int gpu, const ty_k_attention *a, ty_stream *s, bool *taken) {
  const bool back = a->g.p, repeats = ty_core->flags->deterministic || ty_core->flags->cudnn_deterministic;
  float scale = (float)a->scale, low = -FLT_MAX, keeps = 1;
  const ty_k_heads *t[8] = {&a->q, &a->k, &a->v, &a->o, &a->g, &a->dq, &a->dk, &a->dvalue};
  *taken = false;
  if (!ty_is_16bit(a->dtype) || a->dropout > 0 || a->d != a->dv || a->d % 8 || a->d > 256) return TY_OK;
  if (a->heads * a->lq * a->lk == 0 || !done_right(a)) return TY_OK;
  for (int i = 0; i < (back ? 8 : 4); i++)
    if (!fits(t[i])) return TY_OK;
  /* once: the call may be a single one, so that its plan can wait. Training, graphs and deterministic mode need theirs at once; so do sizes
     whose only other way is the tiles, which take as long as making a plan. */
  const bool once = a->lq * a->lk <= TY_SCORES_IN_MEMORY && !back && !c->ctx->grad_enabled && !ty_captures(gpu) && !repeats;
  attended w = {.a = *a, .given = ty_given_of(a), .s = s->s};
  ty_dnn_pack pack = {.dtype = a->dtype, .patience = once ? PATIENCE : 0, .ready = ready, .more = &w}, *const p = &pack;
  GIVE(UID_Q, a->q.p); GIVE(UID_KT, a->k.p); GIVE(UID_O, a->o.p); GIVE(UID_LSE, a->lse); GIVE(UID_SCALE, &scale);
  if (a->causal) GIVE(UID_LOW, &low);
  if (!back) GIVE(UID_V, a->v.p);
  else {
    GIVE(UID_KEEPS, &keeps);
    GIVE(UID_K, a->k.p);
    GIVE(UID_VT, a->v.p);
    GIVE(UID_G, a->g.p);
    GIVE(UID_DQ, a->dq.p);
    GIVE(UID_DK, a->dk.p);
    GIVE(UID_DV, a->dvalue.p);
  }
  ty_status st = TY_OK;
  if (back && !repeats) {
    const int64_t n = a->heads * ((a->lq + 127) / 128 * 128) * a->d;
    st = ty_cuda_new(c, gpu, TY_F32, 1, &n, &w.sums);
    if (st == TY_OK) {
      GIVE(UID_SUMS, p->zeroed = ty_data(w.sums));
      p->nzeroed = (size_t)n * sizeof(float);
    }
  }
  const ty_dnn_key k = key_of(&w);
  if (st == TY_OK) st = ty_dnn_run(c, gpu, &k, back ? backward : forward, &w, p, s, taken);
  ty_release(w.sums);
  ty_given_end(&w.given);
  return st == TY_OOM ? TY_OK : st;        /* the other ways need less memory */
}
