/* Convolutions through cuDNN's graphs (its backend API).
 *
 * Idea: a convolution, with its bias where there is one, is a graph of one or two operations; the library's heuristic lists engines for
 * it, best first, and the first that may be used and can be built is the plan, or, where backends.cudnn.benchmark is set, the fastest of
 * several. Plans are kept by geometry. Which may be used: for float32 none that rounds operands unless TF32 is allowed; none that gives
 * other bits each time where determinism is asked for. Invariants: descriptors of a graph are destroyed once the plan stands; one lock
 * guards handles and plans; a shape without a plan is remembered as such. */
#include <cudnn.h>
#include <pthread.h>
#include <string.h>
#include "dnn.h"

#define PLANS 512
#define ENGINES 64               /* of the heuristic's list: those that round to TF32 come first */
#define TIMED 8
#define ROUNDS 3
#define PARTS 16
enum { UID_X = 1, UID_W, UID_Y, UID_BIAS, UID_SUM };

typedef cudnnBackendDescriptor_t desc;
typedef struct { int64_t v[34]; } key;
typedef struct { bool used; key k; desc plan; int64_t workspace; } entry;   /* plan NULL: there is none */
typedef struct { desc part[PARTS]; int n; cudnnStatus_t e; } graph;         /* what was made on the way; e: the first error */

static cudnnHandle_t handles[TY_MAXGPU];
static entry plans[PLANS];
static unsigned victim;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ty_status dnn_fail(ty_call *c, cudnnStatus_t e, const char *call, int gpu) {
  char more[200] = "";
  cudnnGetLastErrorString(more, sizeof more);
  return ty_fail(c, "%s failed on cuda:%d: %s %s", call, gpu, cudnnGetErrorString(e), more);
}

/* ---- descriptors; after an error nothing more is made ---- */

static desc make(graph *g, cudnnBackendDescriptorType_t type) {
  desc d = NULL;
  if (g->e == CUDNN_STATUS_SUCCESS && g->n == PARTS) g->e = CUDNN_STATUS_INTERNAL_ERROR;
  if (g->e == CUDNN_STATUS_SUCCESS) g->e = cudnnBackendCreateDescriptor(type, &d);
  return g->e == CUDNN_STATUS_SUCCESS ? (g->part[g->n++] = d) : NULL;
}

static void set(graph *g, desc d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *v) {
  if (g->e == CUDNN_STATUS_SUCCESS) g->e = cudnnBackendSetAttribute(d, name, type, n, v);
}

static void finish(graph *g, desc d) {
  if (g->e == CUDNN_STATUS_SUCCESS) g->e = cudnnBackendFinalize(d);
}

static void destroy(graph *g) {
  while (g->n) cudnnBackendDestroyDescriptor(g->part[--g->n]);
}

/* ---- the graph ---- */

static cudnnDataType_t type_of(int dtype) { return dtype == TY_F16 ? CUDNN_DATA_HALF : dtype == TY_BF16 ? CUDNN_DATA_BFLOAT16 : dtype == TY_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT; }

static desc tensor(graph *g, int64_t uid, cudnnDataType_t type, const int64_t *dims, const int64_t *strides, bool inner) {
  const int64_t align = 16;
  desc t = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
  set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
  set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
  set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
  set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner);
  finish(g, t);
  return t;
}

static desc geometry(graph *g, const ty_k_convolution *a, cudnnDataType_t compute) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t dims = 2;
  desc d = make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
  set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, a->padding);
  set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, a->padding);
  set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, a->stride);
  set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, a->dilation);
  finish(g, d);
  return d;
}

/* The operation's attributes follow one another in the order alpha, beta, geometry, then three tensors. */
static desc convolution(graph *g, const ty_k_convolution *a, desc conv, desc x, desc w, desc y) {
  const bool wide = a->dtype == TY_F64;
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const void *alpha = wide ? (const void *)&one64 : &one, *beta = wide ? (const void *)&zero64 : &zero;
  const cudnnBackendAttributeType_t scalar = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  static const struct { cudnnBackendDescriptorType_t op; cudnnBackendAttributeName_t alpha, beta, conv, x, w, y; } kinds[3] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  const int k = a->op == TY_OP_conv2d ? 0 : a->op == TY_OP_conv2d_backward_input ? 1 : 2;
  desc op = make(g, kinds[k].op);
  set(g, op, kinds[k].alpha, scalar, 1, alpha);
  set(g, op, kinds[k].beta, scalar, 1, beta);
  set(g, op, kinds[k].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv);
  set(g, op, kinds[k].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
  set(g, op, kinds[k].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
  set(g, op, kinds[k].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  finish(g, op);
  return op;
}

/* y = sum + bias */
static desc addition(graph *g, cudnnDataType_t compute, desc sum, desc bias, desc y) {
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  desc add = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(g, add, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set(g, add, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  finish(g, add);
  desc op = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &add);
  set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &sum);
  set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &bias);
  set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  finish(g, op);
  return op;
}

static desc graph_of(graph *g, cudnnHandle_t handle, const ty_k_convolution *a) {
  const cudnnDataType_t type = type_of(a->dtype), compute = a->dtype == TY_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const int64_t xd[4] = {a->n, a->c, a->h, a->w}, wd[4] = {a->o, a->c / a->groups, a->kh, a->kw}, yd[4] = {a->n, a->o, a->oh, a->ow}, bd[4] = {1, a->o, 1, 1},
                bs[4] = {a->o * a->bias_step, a->bias_step, 1, 1};
  desc ops[2], x = tensor(g, UID_X, type, xd, a->xs, false), w = tensor(g, UID_W, type, wd, a->ws, false), y = tensor(g, UID_Y, type, yd, a->ys, false);
  desc sum = a->bias ? tensor(g, UID_SUM, compute, yd, a->ys, true) : y, conv = geometry(g, a, compute);
  ops[0] = convolution(g, a, conv, x, w, sum);
  if (a->bias) ops[1] = addition(g, compute, sum, tensor(g, UID_BIAS, type, bd, bs, false), y);
  desc all = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle) set(g, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  set(g, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, a->bias ? 2 : 1, ops);
  finish(g, all);
  return all;
}

/* ---- plans ---- */

/* Whether an engine's way of computing is allowed. */
static bool allowed(desc config, const ty_k_convolution *a) {
  const ty_gpu_flags *f = ty_core->flags;
  cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  desc engine = NULL;
  int64_t n = 0;
  bool ok = true;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) return false;
  if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note) == CUDNN_STATUS_SUCCESS)
    for (int64_t i = 0; i < n; i++) {
      if (note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && (f->deterministic || f->cudnn_deterministic)) ok = false;
      if ((note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && a->dtype == TY_F32 && !f->allow_tf32) ok = false;
      if (note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ok = false;
    }
  cudnnBackendDestroyDescriptor(engine);
  return ok;
}

static desc plan_of(cudnnHandle_t handle, desc config, int64_t *workspace) {
  desc plan = NULL;
  int64_t n = 0;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != CUDNN_STATUS_SUCCESS) return NULL;
  if (cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, workspace) == CUDNN_STATUS_SUCCESS) return plan;
  cudnnBackendDestroyDescriptor(plan);
  return NULL;
}

static ty_status run(ty_call *c, int gpu, const entry *w, const ty_k_convolution *a, ty_stream *s) {
  graph g = {0};
  ty_tensor *room = NULL;
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {TY_MAX(w->workspace, 1)}};
  TY_TRY(ty_empty(c->ctx, &ty_gpus[gpu], &m, &room));        /* goes back to this stream */
  void *work = ty_data(room), *data[4] = {a->x, a->weight, a->y, (void *)a->bias};
  const int64_t uid[4] = {UID_X, UID_W, UID_Y, UID_BIAS}, n = a->bias ? 4 : 3;
  desc pack = make(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  set(&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data);
  set(&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uid);
  set(&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &work);
  finish(&g, pack);
  if (g.e == CUDNN_STATUS_SUCCESS) g.e = cudnnSetStream(handles[gpu], s->s);
  if (g.e == CUDNN_STATUS_SUCCESS) g.e = cudnnBackendExecute(handles[gpu], w->plan, pack);
  destroy(&g);
  ty_release(room);
  return g.e == CUDNN_STATUS_SUCCESS ? TY_OK : dnn_fail(c, g.e, "cudnnBackendExecute", gpu);
}

/* Milliseconds of a run, the least of a few; negative: it fails. The host waits. */
static double time_of(ty_call *c, int gpu, const entry *w, const ty_k_convolution *a, ty_stream *s) {
  cudaEvent_t from, to;
  double best = -1;
  if (cudaEventCreate(&from) != cudaSuccess) return -1;
  if (cudaEventCreate(&to) != cudaSuccess) { cudaEventDestroy(from); return -1; }
  for (int i = 0; i <= ROUNDS; i++) {      /* the first one warms up */
    float ms = 0;
    cudaEventRecord(from, s->s);
    if (run(c, gpu, w, a, s) != TY_OK) { best = -1; break; }
    cudaEventRecord(to, s->s);
    ty_count_sync();
    if (cudaEventSynchronize(to) != cudaSuccess || cudaEventElapsedTime(&ms, from, to) != cudaSuccess) { best = -1; break; }
    if (i && (best < 0 || ms < best)) best = ms;
  }
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  return best;
}

/* Sets w->plan, or leaves NULL where no engine will do. */
static void choose(ty_call *c, int gpu, entry *w, const ty_k_convolution *a, ty_stream *s) {
  static const cudnnBackendHeurMode_t modes[2] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  const bool timed = ty_core->flags->cudnn_benchmark && !ty_core->flags->deterministic && !ty_captures(gpu);
  double best = -1;
  graph g = {0};
  desc all = graph_of(&g, handles[gpu], a);
  for (int m = 0; m < 2 && g.e == CUDNN_STATUS_SUCCESS && !w->plan; m++) {
    desc found[ENGINES] = {NULL}, heuristic = NULL;
    int64_t n = 0;
    int made = 0, tried = 0;
    while (made < ENGINES && cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[made]) == CUDNN_STATUS_SUCCESS) made++;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &all) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &modes[m]) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendFinalize(heuristic) == CUDNN_STATUS_SUCCESS)
      cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, found);
    for (int64_t i = 0; i < TY_MIN(n, made) && tried < (timed ? TIMED : 1); i++) {
      entry one = {0};
      if (!allowed(found[i], a) || !(one.plan = plan_of(handles[gpu], found[i], &one.workspace))) continue;
      tried++;
      const double ms = timed ? time_of(c, gpu, &one, a, s) : 0;
      if (ms >= 0 && (!w->plan || ms < best)) {
        if (w->plan) cudnnBackendDestroyDescriptor(w->plan);
        w->plan = one.plan;
        w->workspace = one.workspace;
        best = ms;
      } else cudnnBackendDestroyDescriptor(one.plan);
    }
    for (int i = 0; i < made; i++) cudnnBackendDestroyDescriptor(found[i]);
    if (heuristic) cudnnBackendDestroyDescriptor(heuristic);
  }
  destroy(&g);
}

static key key_of(int gpu, const ty_k_convolution *a) {
  const ty_gpu_flags *f = ty_core->flags;
  key k = {{gpu, a->op, a->dtype, a->n, a->c, a->h, a->w, a->o, a->oh, a->ow, a->kh, a->kw, a->groups, a->stride[0], a->stride[1], a->padding[0], a->padding[1], a->dilation[0], a->dilation[1],
            a->bias ? 1 + a->bias_step : 0, f->deterministic | f->cudnn_deterministic << 1 | f->allow_tf32 << 2 | f->cudnn_benchmark << 3}};
  memcpy(k.v + 21, a->xs, sizeof a->xs);
  memcpy(k.v + 25, a->ws, sizeof a->ws);
  memcpy(k.v + 29, a->ys, sizeof a->ys);
  return k;
}

static bool aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

ty_status ty_dnn_convolve(ty_call *c, int gpu, const ty_k_convolution *a, ty_stream *s, bool *taken) {
  const key k = key_of(gpu, a);
  uint64_t h = 1469598103934665603u;
  ty_status st = TY_OK;
  entry *w = NULL;
  *taken = false;
  if (!aligned(a->x) || !aligned(a->weight) || !aligned(a->y) || !aligned(a->bias)) return TY_OK;
  for (unsigned i = 0; i < sizeof k.v / sizeof *k.v; i++) h = (h ^ (uint64_t)k.v[i]) * 1099511628211u;
  pthread_mutex_lock(&lock);
  if (!handles[gpu]) {
    cudnnStatus_t e = cudnnCreate(&handles[gpu]);
    if (e != CUDNN_STATUS_SUCCESS) { handles[gpu] = NULL; st = dnn_fail(c, e, "cudnnCreate", gpu); }
  }
  for (int i = 0; i < 8 && st == TY_OK; i++) {
    entry *q = &plans[(h + (uint64_t)i) % PLANS];
    if (q->used && !memcmp(&q->k, &k, sizeof k)) { w = q; break; }
  }
  if (!w && st == TY_OK) {
    for (int i = 0; i < 8 && !w; i++)
      if (!plans[(h + (uint64_t)i) % PLANS].used) w = &plans[(h + (uint64_t)i) % PLANS];
    if (!w) w = &plans[(h + victim++ % 8) % PLANS];
    if (w->plan) cudnnBackendDestroyDescriptor(w->plan);
    *w = (entry){.used = true, .k = k};
    choose(c, gpu, w, a, s);
  }
  if (st == TY_OK && w->plan) {
    st = run(c, gpu, w, a, s);
    *taken = st == TY_OK;
  }
  pthread_mutex_unlock(&lock);
  return st;
}
