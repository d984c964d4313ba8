/* Plans of cuDNN's graphs.
 *
 * Idea: the library's heuristic lists engines for a graph, best first. The plan is the first engine that is allowed and can be built, or,
 * where backends.cudnn.benchmark is set, the fastest of several (timed_plans.h). Not allowed are engines that round float32 operands,
 * unless TF32 is allowed, and, where determinism is asked for, engines whose bits vary.
 * Invariants: a graph's descriptors are destroyed once its plan is made; one lock guards handles and plans; a key
 * without a plan is remembered as such. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include "dnn_plan.h"
#include "timed_plans.h"

#define PLANS 4096
#define ENGINES 64               /* taken from the heuristic's list, in which engines that round to TF32 come first */
#define WORKSPACE ((int64_t)1 << 30)     /* a plan that wants more is not taken: attention's may want the square of the length */

#define WORDS ((int)(sizeof((ty_dnn_key *)0)->v / sizeof(int64_t)))
#define KEY_FLAGS (WORDS - 1)              /* the words of a key that are set here */
#define KEY_GPU (WORDS - 2)

/* plan NULL: there is none, or none yet, since the key was asked for less often than the caller's patience says */
/* busy: in use further up the stack, by a call that ran out of memory; this call comes from a finalizer that ran then */
typedef struct { bool used, settled, busy; int asked; ty_dnn_key k; ty_desc plan; int64_t workspace; } entry;

static cudnnHandle_t handles[TY_MAXGPU];
static entry plans[PLANS];
static unsigned victim;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static ty_status dnn_fail(ty_call *c, cudnnStatus_t e, const char *call, int gpu) {
  char more[200] = "";
  cudnnGetLastErrorString(more, sizeof more);
  return ty_fail(c, "%s failed on cuda:%d: %s %s", call, gpu, cudnnGetErrorString(e), more);
}

/* ---- descriptors ---- */

ty_desc ty_dnn_make(ty_dnn_graph *g, cudnnBackendDescriptorType_t type) {
  ty_desc d = NULL;
  if (g->e == CUDNN_STATUS_SUCCESS && g->n == sizeof g->part / sizeof *g->part) g->e = CUDNN_STATUS_INTERNAL_ERROR;
  if (g->e == CUDNN_STATUS_SUCCESS) g->e = cudnnBackendCreateDescriptor(type, &d);
  return g->e == CUDNN_STATUS_SUCCESS ? (g->part[g->n++] = d) : NULL;
}

void ty_dnn_set(ty_dnn_graph *g, ty_desc d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void *v) {
  if (g->e == CUDNN_STATUS_SUCCESS) g->e = cudnnBackendSetAttribute(d, name, type, n, v);
}

void ty_dnn_finish(ty_dnn_graph *g, ty_desc d) {
  if (g->e == CUDNN_STATUS_SUCCESS) g->e = cudnnBackendFinalize(d);
}

static void destroy(ty_dnn_graph *g) {
  while (g->n) cudnnBackendDestroyDescriptor(g->part[--g->n]);
}

cudnnDataType_t ty_dnn_type(int dtype) {
  return dtype == TY_F16 ? CUDNN_DATA_HALF : dtype == TY_BF16 ? CUDNN_DATA_BFLOAT16 : dtype == TY_F64 ? CUDNN_DATA_DOUBLE
    : CUDNN_DATA_FLOAT;
}

ty_desc ty_dnn_tensor(ty_dnn_graph *g, int64_t uid, cudnnDataType_t type, const int64_t dims[4], const int64_t strides[4], int kind) {
  const int64_t align = kind == TY_DNN_WORDS ? 4 : 16;
  const bool inner = kind == TY_DNN_INNER, value = kind == TY_DNN_VALUE;
  ty_desc t = ty_dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
  ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner);
  if (value) ty_dnn_set(g, t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &value);
  ty_dnn_finish(g, t);
  return t;
}

ty_desc ty_dnn_inner(ty_dnn_graph *g, cudnnDataType_t type, const int64_t dims[4]) {
  const int64_t strides[4] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  return ty_dnn_tensor(g, 1000 + g->uid++, type, dims, strides, TY_DNN_INNER);
}

void ty_dnn_add(ty_dnn_graph *g, ty_desc op) {
  ty_dnn_finish(g, op);
  if (g->e == CUDNN_STATUS_SUCCESS && g->nop == sizeof g->op / sizeof *g->op) g->e = CUDNN_STATUS_INTERNAL_ERROR;
  if (g->e == CUDNN_STATUS_SUCCESS) g->op[g->nop++] = op;
}

ty_desc ty_dnn_operation(ty_dnn_graph *g, cudnnBackendDescriptorType_t type, int n, const ty_dnn_with *with) {
  ty_desc op = ty_dnn_make(g, type);
  for (int i = 0; i < n; i++)
    if (with[i].d) ty_dnn_set(g, op, with[i].name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &with[i].d);
  ty_dnn_add(g, op);
  return op;
}

ty_desc ty_dnn_point(ty_dnn_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis, ty_desc x,
  ty_desc b, ty_desc t, ty_desc y) {
  ty_desc how = ty_dnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  ty_dnn_set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  ty_dnn_set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  if (axis >= 0) ty_dnn_set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
  ty_dnn_finish(g, how);
  ty_dnn_operation(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 5, (ty_dnn_with[]){{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how},
    {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x}, {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
    {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
  return y;
}

/* The graph of all operations; handle may be NULL. */
static ty_desc whole(ty_dnn_graph *g, cudnnHandle_t handle) {
  ty_desc all = ty_dnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle) ty_dnn_set(g, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  ty_dnn_set(g, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->nop, g->op);
  ty_dnn_finish(g, all);
  return all;
}

/* ---- plans ---- */

/* Whether an engine's numerical notes are allowed. */
static bool allowed(ty_desc config, int dtype) {
  const ty_gpu_flags *f = ty_core->flags;
  cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  ty_desc engine = NULL;
  int64_t n = 0;
  bool ok = true;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS) return false;
  if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
      &engine) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note) == CUDNN_STATUS_SUCCESS)
    for (int64_t i = 0; i < TY_MIN(n, CUDNN_NUMERICAL_NOTE_TYPE_COUNT); i++) {   /* n: those there are, in a later version perhaps more */
      if (note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && (f->deterministic || f->cudnn_deterministic)) ok = false;
      if ((note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
          dtype == TY_F32 && !f->conv_tf32)
        ok = false;
      if (note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ok = false;
    }
  cudnnBackendDestroyDescriptor(engine);
  return ok;
}

/* The device that engines and plans are for, by its handle or, from cuDNN 9.8 on, by its properties (spec/simgpu/plans.c). */
#if CUDNN_VERSION >= 90800
#define BY_PROPERTIES(of) CUDNN_ATTR_##of##_DEVICEPROP
#else
#define BY_PROPERTIES(of) ((cudnnBackendAttributeName_t)-1)       /* never set: there is a handle */
#endif
typedef struct { cudnnHandle_t handle; ty_desc properties; } target;

static ty_desc plan_of(const target *t, ty_desc config, int64_t *workspace) {
  ty_desc plan = NULL;
  int64_t n = 0;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != CUDNN_STATUS_SUCCESS) return NULL;
  cudnnStatus_t e = t->handle ? cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &t->handle)
                              : cudnnBackendSetAttribute(plan, BY_PROPERTIES(EXECUTION_PLAN),
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &t->properties);
  if (e == CUDNN_STATUS_SUCCESS &&
      cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
      &config) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
      workspace) == CUDNN_STATUS_SUCCESS)
    return plan;
  cudnnBackendDestroyDescriptor(plan);
  return NULL;
}

#define KNOBS ((TY_PLAN_WORDS - 1) / 2)

/* An engine's configuration as words: the engine's number, then its knobs, each with its value. Returns how many words;
   0: it can't be read. */
static int saved_of(ty_desc config, int64_t saved[TY_PLAN_WORDS]) {
  ty_desc engine = NULL, knob[KNOBS];
  int64_t n = 0, one = 0;
  int made = 0;
  bool ok = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) == CUDNN_STATUS_SUCCESS &&
    cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) == CUDNN_STATUS_SUCCESS &&
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &saved[0]) == CUDNN_STATUS_SUCCESS;
  while (ok && made < KNOBS &&
      cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob[made]) == CUDNN_STATUS_SUCCESS)
    made++;
  n = 0;
  ok = ok && cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, made,
    &n, knob) == CUDNN_STATUS_SUCCESS && n <= made;
  for (int64_t i = 0; ok && i < n; i++) {
    cudnnBackendKnobType_t type;
    ok = cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one,
      &type) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one,
      &saved[2 + 2 * i]) == CUDNN_STATUS_SUCCESS;
    saved[1 + 2 * i] = type;
  }
  while (made) cudnnBackendDestroyDescriptor(knob[--made]);
  if (engine) cudnnBackendDestroyDescriptor(engine);
  return ok ? (int)(1 + 2 * n) : 0;
}

/* The inverse: the plan of graph `all` from such words, or NULL. */
static ty_desc plan_again(const target *t, ty_desc all, const int64_t *saved, int n, int64_t *workspace) {
  ty_dnn_graph g = {0};
  ty_desc knob[KNOBS], plan = NULL, engine = ty_dnn_make(&g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  ty_dnn_set(&g, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &all);
  ty_dnn_set(&g, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &saved[0]);
  if (!t->handle) ty_dnn_set(&g, engine, BY_PROPERTIES(ENGINE), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &t->properties);
  ty_dnn_finish(&g, engine);
  const int knobs = (n - 1) / 2;
  for (int i = 0; i < knobs; i++) {
    const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)saved[1 + 2 * i];
    knob[i] = ty_dnn_make(&g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    ty_dnn_set(&g, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    ty_dnn_set(&g, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &saved[2 + 2 * i]);
    ty_dnn_finish(&g, knob[i]);
  }
  ty_desc config = ty_dnn_make(&g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  ty_dnn_set(&g, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
  if (knobs) ty_dnn_set(&g, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, knobs, knob);
  ty_dnn_finish(&g, config);
  if (g.e == CUDNN_STATUS_SUCCESS) plan = plan_of(t, config, workspace);
  destroy(&g);
  return plan;
}

/* The engines that a heuristic lists for a graph, best first, to be destroyed by the caller. Returns how many. */
static int engines_of(const target *t, ty_desc all, cudnnBackendHeurMode_t mode, ty_desc found[ENGINES]) {
  ty_desc heuristic = NULL;
  int64_t n = 0;
  int made = 0;
  while (made < ENGINES && cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[made]) == CUDNN_STATUS_SUCCESS) made++;
  if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
      &all) == CUDNN_STATUS_SUCCESS &&
      cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) == CUDNN_STATUS_SUCCESS &&
      (t->handle || cudnnBackendSetAttribute(heuristic, BY_PROPERTIES(ENGINEHEUR), CUDNN_TYPE_BACKEND_DESCRIPTOR,
        1, &t->properties) == CUDNN_STATUS_SUCCESS) &&
      cudnnBackendFinalize(heuristic) == CUDNN_STATUS_SUCCESS)
    cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, found);
  if (heuristic) cudnnBackendDestroyDescriptor(heuristic);
  while (made > n) cudnnBackendDestroyDescriptor(found[--made]);
  return made;
}

static const cudnnBackendHeurMode_t modes[2] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};      /* asked in this order */

static ty_status run(ty_call *c, int gpu, const entry *w, const ty_dnn_pack *p, ty_stream *s) {
  ty_dnn_graph g = {0};
  ty_tensor *room = NULL;
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {TY_MAX(w->workspace, 1)}};
  TY_TRY(ty_empty(c->ctx, &ty_gpus[gpu], &m, &room));        /* goes back to this stream */
  void *work = ty_data(room);
  ty_desc pack = ty_dnn_make(&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  ty_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, p->n, p->data);
  ty_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, p->n, p->uid);
  ty_dnn_set(&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &work);
  ty_dnn_finish(&g, pack);
  if (p->zeroed) {
    ty_status st = ty_cuda_launched(c, gpu, cudaMemsetAsync(p->zeroed, 0, p->nzeroed, s->s));
    if (st != TY_OK) { destroy(&g); ty_release(room); return st; }
  }
  if (g.e == CUDNN_STATUS_SUCCESS) g.e = cudnnSetStream(handles[gpu], s->s);
  if (g.e == CUDNN_STATUS_SUCCESS) g.e = cudnnBackendExecute(handles[gpu], w->plan, pack);
  destroy(&g);
  ty_release(room);
  return g.e == CUDNN_STATUS_SUCCESS ? TY_OK : dnn_fail(c, g.e, "cudnnBackendExecute", gpu);
}

typedef struct { ty_call *c; int gpu; const entry *w; const ty_dnn_pack *p; ty_stream *s; } candidate;

static bool run_candidate(void *with) {
  const candidate *r = with;
  return run(r->c, r->gpu, r->w, r->p, r->s) == TY_OK;
}

/* Sets w->plan, or leaves NULL where no engine will do. */
static void choose(ty_call *c, int gpu, entry *w, ty_dnn_describe describe, const void *what, const ty_dnn_pack *p, ty_stream *s) {
  const bool timed = ty_times_plans(gpu);
  const target t = {.handle = handles[gpu]};
  int64_t saved[TY_PLAN_WORDS], best_saved[TY_PLAN_WORDS];
  double best = -1;
  ty_dnn_graph g = {0};
  describe(&g, what);
  ty_desc all = whole(&g, handles[gpu]);
  int n = ty_timed_find(TY_PLANS_DNN, gpu, w->k.v, WORDS, saved), nbest = 0;
  if (n && g.e == CUDNN_STATUS_SUCCESS && (w->plan = plan_again(&t, all, saved, n, &w->workspace)) && w->workspace > WORKSPACE) {
    cudnnBackendDestroyDescriptor(w->plan);
    w->plan = NULL;
  }
  for (int m = 0; m < 2 && g.e == CUDNN_STATUS_SUCCESS && !w->plan; m++) {
    ty_desc found[ENGINES];
    n = engines_of(&t, all, modes[m], found);
    for (int i = 0, tried = 0; i < n && tried < (timed ? TY_PLANS_TIMED : 1); i++) {
      entry one = {0};
      if (!allowed(found[i], p->dtype) || !(one.plan = plan_of(&t, found[i], &one.workspace))) continue;
      if (one.workspace > WORKSPACE) { cudnnBackendDestroyDescriptor(one.plan); continue; }
      tried++;
      candidate r = {c, gpu, &one, p, s};
      const double ms = timed ? ty_time_runs(s, run_candidate, &r) : 0;
      if (ms >= 0 && (!w->plan || ms < best)) {
        if (w->plan) cudnnBackendDestroyDescriptor(w->plan);
        w->plan = one.plan;
        w->workspace = one.workspace;
        nbest = saved_of(found[i], best_saved);
        best = ms;
      } else cudnnBackendDestroyDescriptor(one.plan);
    }
    for (int i = 0; i < n; i++) cudnnBackendDestroyDescriptor(found[i]);
  }
  if (nbest) ty_timed_keep(TY_PLANS_DNN, gpu, w->k.v, WORDS, best_saved, nbest);
  destroy(&g);
}

/* A plan may own its kernels, which may still be queued on a stream or belong to a graph: so it waits for the device, and once anything has
 * been captured, it destroys no plan. Selects the plan's device. */
static void forget(entry *w) {
  if (w->plan && !ty_ever_captured() && ty_cuda_use((int)w->k.v[KEY_GPU]) == cudaSuccess && ty_cuda_wait(false) == cudaSuccess)
    cudnnBackendDestroyDescriptor(w->plan);
  *w = (entry){0};
}

static ty_status made_ready(ty_call *c, int gpu, ty_dnn_pack *p) {
  if (p->ready) TY_TRY(p->ready(c, gpu, p, p->more));
  p->ready = NULL;
  return TY_OK;
}

size_t ty_dnn_version(void) { return cudnnGetVersion(); }

ty_status ty_dnn_run(ty_call *c, int gpu, const ty_dnn_key *key, ty_dnn_describe describe, const void *what,
  ty_dnn_pack *p, ty_stream *s, bool *taken) {
  const ty_gpu_flags *f = ty_core->flags;
  ty_dnn_key k = *key;
  ty_status st = TY_OK;
  entry *w = NULL;
  *taken = false;
  k.v[KEY_GPU] = gpu;
  k.v[KEY_FLAGS] = f->deterministic | f->cudnn_deterministic << 1 | f->conv_tf32 << 2 | f->cudnn_benchmark << 3;
  const uint64_t h = ty_hash_words(k.v, WORDS);
  pthread_mutex_lock(&lock);
  /* during a capture, too, the library may load kernels and allocate */
  const enum cudaStreamCaptureMode mode = ty_capture_mode(cudaStreamCaptureModeRelaxed);
  if (!handles[gpu]) {
    cudnnStatus_t e = cudnnCreate(&handles[gpu]);
    if (e != CUDNN_STATUS_SUCCESS) { handles[gpu] = NULL; st = dnn_fail(c, e, "cudnnCreate", gpu); }
  }
  static unsigned seen;
  if (seen != ty_timed_set_so_far()) {
    for (int i = 0; i < PLANS; i++)
      if (!plans[i].busy) forget(&plans[i]);
    seen = ty_timed_set_so_far();
  }
  for (int i = 0; i < 8 && st == TY_OK; i++) {
    entry *q = &plans[(h + (uint64_t)i) % PLANS];
    if (q->used && !memcmp(&q->k, &k, sizeof k)) { w = q; break; }
  }
  if (!w && st == TY_OK) {
    for (int i = 0; i < 8 && !w; i++)
      if (!plans[(h + (uint64_t)i) % PLANS].used) w = &plans[(h + (uint64_t)i) % PLANS];
    for (int i = 0; i < 8 && !w; i++)
      if (!plans[(h + (uint64_t)i) % PLANS].settled) w = &plans[(h + (uint64_t)i) % PLANS];
    if (!w) w = &plans[(h + victim++ % 8) % PLANS];
    if (!w->busy) {
      forget(w);
      ty_cuda_use(gpu);
      *w = (entry){.used = true, .k = k};
    }
  }
  if (w && !w->busy) {
    w->busy = true;
    if (!w->settled && w->asked++ >= p->patience) {
      if (ty_times_plans(gpu)) st = made_ready(c, gpu, p);
      if (st == TY_OK) {
        choose(c, gpu, w, describe, what, p, s);
        w->settled = w->plan || !ty_captures(gpu);           /* a capture may be why there is none: ask again */
      }
    }
    if (st == TY_OK && w->plan && (st = made_ready(c, gpu, p)) == TY_OK) {
      st = run(c, gpu, w, p, s);
      *taken = st == TY_OK;
    }
    w->busy = false;
  }
  ty_capture_mode(mode);
  pthread_mutex_unlock(&lock);
  return st;
}
