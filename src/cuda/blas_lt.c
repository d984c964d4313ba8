/* Products through cuBLASLt.
 *
 * Idea: a row-major product C = A B is the column-major C^T = B^T A^T, so the operands change places and nothing is copied. The epilogue
 * does bias and relu, or the sums of A's rows. For each shape the library's heuristic is asked once, and its first answer is kept, or,
 * where backends.cudnn.benchmark is set, the fastest of several (timed_plans.h). Invariants: one lock guards handles and plans; a
 * product's workspace, where its plan wants one, is a block of its own stream. */
#include <cublasLt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "blas.h"
#include "dnn.h"
#include "timed_plans.h"

#define WORKSPACE ((size_t)32 << 20)
#define PLANS 4096

typedef struct { int64_t v[14]; } key;     /* what decides a plan; compared as bytes */
typedef struct {
  bool used, none;
  key k;
  int gpu;
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulAlgo_t algo;
  size_t workspace;              /* bytes */
} plan;

static cublasLtHandle_t handles[TY_MAXGPU];
static plan plans[PLANS];
static unsigned victim;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ty_status blas_fail(ty_call *c, cublasStatus_t e, const char *call, int gpu) {
  return ty_fail(c, "%s failed on cuda:%d: %s (%s)", call, gpu, cublasLtGetStatusString(e), cublasLtGetStatusName(e));
}
#define LT(e) do { cublasStatus_t e_ = (e); if (e_ != CUBLAS_STATUS_SUCCESS) return blas_fail(c, e_, #e, gpu); } while (0)

/* p's alignment in bytes, at most 256. */
static int64_t alignment(const void *p) { return (uintptr_t)p % 256 ? (int64_t)((uintptr_t)p & -(uintptr_t)p) : 256; }

static cudaDataType_t type_of(int dtype) {
  return dtype == TY_F16 ? CUDA_R_16F : dtype == TY_BF16 ? CUDA_R_16BF : dtype == TY_F64 ? CUDA_R_64F : CUDA_R_32F;
}

static void drop(plan *p) {
  if (p->op) cublasLtMatmulDescDestroy(p->op);
  if (p->a) cublasLtMatrixLayoutDestroy(p->a);
  if (p->b) cublasLtMatrixLayoutDestroy(p->b);
  if (p->c) cublasLtMatrixLayoutDestroy(p->c);
  memset(p, 0, sizeof *p);
}

/* A column-major layout; rows and cols: as the matrix lies in memory. */
static ty_status layout(ty_call *c, int gpu, cublasLtMatrixLayout_t *l, int dtype, int64_t rows, int64_t cols,
  int64_t ld, int64_t batch, int64_t stride) {
  const int32_t n = (int32_t)batch;
  LT(cublasLtMatrixLayoutCreate(l, type_of(dtype), (uint64_t)rows, (uint64_t)cols, ld));
  LT(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n));
  LT(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  return TY_OK;
}

static ty_status workspace_of(ty_call *c, int gpu, size_t n, ty_tensor **out) {       /* goes back to this stream */
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {(int64_t)n}};
  return ty_empty(c->ctx, &ty_gpus[gpu], &m, out);
}

static cublasStatus_t launch(int gpu, const plan *w, const cublasLtMatmulAlgo_t *algo, const ty_k_product *p,
  const ty_tensor *workspace, size_t bytes, ty_stream *s) {
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const bool wide = p->dtype == TY_F64;
  return cublasLtMatmul(handles[gpu], w->op, wide ? (const void *)&one64 : &one, p->b, w->a, p->a, w->b,
                        wide ? (const void *)&zero64 : &zero, p->c, w->c, p->c, w->c, algo,
                        workspace ? ty_data(workspace) : NULL, bytes, s->s);
}

typedef struct {
  int gpu;
  const plan *w;
  const cublasLtMatmulHeuristicResult_t *found;
  const ty_k_product *p;
  const ty_tensor *workspace;
  ty_stream *s;
} candidate;

static bool run_candidate(void *with) {
  const candidate *r = with;
  return launch(r->gpu, r->w, &r->found->algo, r->p, r->workspace, r->found->workspaceSize, r->s) == CUBLAS_STATUS_SUCCESS;
}

/* The fastest of n. */
static int fastest(int gpu, const plan *w, const cublasLtMatmulHeuristicResult_t *found, int n, const ty_k_product *p,
  const ty_tensor *workspace, ty_stream *s) {
  double least = -1;
  int best = 0;
  for (int i = 0; i < n; i++) {
    candidate r = {gpu, w, &found[i], p, workspace, s};
    const double ms = ty_time_runs(s, run_candidate, &r);
    if (ms >= 0 && (least < 0 || ms < least)) { least = ms; best = i; }
  }
  return best;
}

#define WORDS ((int)(sizeof(cublasLtMatmulAlgo_t) / sizeof(int64_t)))
_Static_assert(sizeof(cublasLtMatmulAlgo_t) % sizeof(int64_t) == 0 && sizeof(cublasLtMatmulAlgo_t) / sizeof(int64_t) <= TY_PLAN_WORDS,
  "an algorithm fits");

/* Sets w to the plan that was timed before, if the library still takes it. k's first word is the device. */
static bool taken_before(int gpu, plan *w, const key *k) {
  int64_t saved[TY_PLAN_WORDS];
  cublasLtMatmulHeuristicResult_t result;
  if (ty_timed_find(TY_PLANS_BLAS, gpu, k->v + 1, 13, saved) != WORDS) return false;
  memcpy(&w->algo, saved, sizeof w->algo);
  if (cublasLtMatmulAlgoCheck(handles[gpu], w->op, w->a, w->b, w->c, w->c, &w->algo, &result) != CUBLAS_STATUS_SUCCESS ||
      result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > WORKSPACE)
    return false;
  w->workspace = result.workspaceSize;
  return true;
}

/* What a product reads or writes beside its matrices: a bias, or the sums of A's rows, which are B's columns to the library. */
static const void *beside(const ty_k_product *p) { return p->row_sums ? p->row_sums : p->bias; }
static cublasStatus_t point_beside(plan *w, const ty_k_product *p) {
  const void *at = beside(p);
  return cublasLtMatmulDescSetAttribute(w->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at);
}

static ty_status build(ty_call *c, int gpu, plan *w, const key *problem, const ty_k_product *p, const ty_tensor *workspace,
  ty_stream *s) {
  const cublasOperation_t first = p->tb ? CUBLAS_OP_T : CUBLAS_OP_N, second = p->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasLtEpilogue_t epilogue = p->row_sums ? CUBLASLT_EPILOGUE_BGRADB
    : p->bias ? (p->relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS) : p->relu ? CUBLASLT_EPILOGUE_RELU
    : CUBLASLT_EPILOGUE_DEFAULT;
  const bool tf32 = p->dtype == TY_F32 && ty_core->flags->allow_tf32;
  LT(cublasLtMatmulDescCreate(&w->op, p->dtype == TY_F64 ? CUBLAS_COMPUTE_64F : tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
    : CUBLAS_COMPUTE_32F, p->dtype == TY_F64 ? CUDA_R_64F : CUDA_R_32F));
  LT(cublasLtMatmulDescSetAttribute(w->op, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
  LT(cublasLtMatmulDescSetAttribute(w->op, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
  LT(cublasLtMatmulDescSetAttribute(w->op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  if (beside(p)) LT(point_beside(w, p));
  TY_TRY(layout(c, gpu, &w->a, p->dtype, p->tb ? p->k : p->n, p->tb ? p->n : p->k, p->ldb, p->batch, p->stride_b));
  TY_TRY(layout(c, gpu, &w->b, p->dtype, p->ta ? p->m : p->k, p->ta ? p->k : p->m, p->lda, p->batch, p->stride_a));
  TY_TRY(layout(c, gpu, &w->c, p->wide ? TY_F32 : p->dtype, p->n, p->m, p->n, p->batch, p->m * p->n));
  cublasLtMatmulPreference_t want;
  cublasLtMatmulHeuristicResult_t found[TY_PLANS_TIMED];
  if (taken_before(gpu, w, problem)) return TY_OK;
  const bool timed = ty_times_plans(gpu);
  const size_t most = WORKSPACE;
  int n = 0;
  LT(cublasLtMatmulPreferenceCreate(&want));
  cublasStatus_t e = cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
  const uint32_t align[4] = {(uint32_t)alignment(p->b), (uint32_t)alignment(p->a), (uint32_t)alignment(p->c),
    (uint32_t)alignment(p->c)},
    scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  static const cublasLtMatmulPreferenceAttributes_t names[4] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4 && e == CUBLAS_STATUS_SUCCESS; i++)
    e = cublasLtMatmulPreferenceSetAttribute(want, names[i], &align[i], sizeof align[i]);
  /* partial sums stay in float32 */
  if (e == CUBLAS_STATUS_SUCCESS)
    e = cublasLtMatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme);
  if (e == CUBLAS_STATUS_SUCCESS)
    e = cublasLtMatmulAlgoGetHeuristic(handles[gpu], w->op, w->a, w->b, w->c, w->c, want, timed ? TY_PLANS_TIMED : 1, found, &n);
  cublasLtMatmulPreferenceDestroy(want);
  if (e == CUBLAS_STATUS_NOT_SUPPORTED || (e == CUBLAS_STATUS_SUCCESS && n == 0)) { w->none = true; return TY_OK; }
  if (e != CUBLAS_STATUS_SUCCESS) return blas_fail(c, e, "cublasLtMatmulAlgoGetHeuristic", gpu);
  const int best = timed ? fastest(gpu, w, found, n, p, workspace, s) : 0;
  w->algo = found[best].algo;
  w->workspace = found[best].workspaceSize;
  int64_t saved[WORDS];
  memcpy(saved, &w->algo, sizeof w->algo);
  ty_timed_keep(TY_PLANS_BLAS, gpu, problem->v + 1, 13, saved, WORDS);
  return TY_OK;
}

/* Gives the plan and the bytes of workspace that it wants; or NULL, where plans are to be timed and the workspace is too small for that. */
static ty_status plan_for(ty_call *c, int gpu, const ty_k_product *p, const ty_tensor *workspace, size_t have, ty_stream *stream,
  plan **out, size_t *want) {
  key k;
  const int64_t v[14] = {gpu, p->dtype, p->m, p->n, p->k, p->batch, p->lda, p->ldb, p->stride_a, p->stride_b,
    p->ta | p->tb << 1 | p->relu << 2 | (p->bias != NULL) << 3 | ty_core->flags->allow_tf32 << 4 |
      ty_core->flags->cudnn_benchmark << 5 | (p->row_sums != NULL) << 6 | p->wide << 7,
    /* the heuristic depends on alignment */ alignment(p->a), alignment(p->b), alignment(p->c)};
  memcpy(k.v, v, sizeof v);
  const uint64_t h = ty_hash_words(v, 14);
  plan *w = NULL;
  static unsigned seen;
  if (seen != ty_timed_set_so_far()) {
    for (int i = 0; i < PLANS; i++) drop(&plans[i]);
    seen = ty_timed_set_so_far();
  }
  for (int i = 0; i < 8; i++) {
    plan *q = &plans[(h + (uint64_t)i) % PLANS];
    if (q->used && !memcmp(&q->k, &k, sizeof k)) { *out = q; *want = q->workspace; return TY_OK; }
    if (!q->used && !w) w = q;
  }
  if (ty_times_plans(gpu) && have < WORKSPACE) { *out = NULL; *want = WORKSPACE; return TY_OK; }
  if (!w) drop(w = &plans[(h + victim++ % 8) % PLANS]);
  ty_status s = build(c, gpu, w, &k, p, workspace, stream);
  if (s != TY_OK) { drop(w); return s; }
  w->used = true;
  w->k = k;
  *out = w;
  *want = w->workspace;
  return TY_OK;
}

/* The product alone; the sums are left to the caller. */
static ty_status without_sums(ty_call *c, int gpu, const ty_k_product *p, ty_stream *s, bool *sums) {
  ty_k_product q = *p;
  q.row_sums = NULL;
  return ty_blas_product(c, gpu, &q, s, sums);
}

/* For 16-bit rows that aren't 16-byte aligned, the library has one slow kernel that gives the sums with the product: 48 us on an H200 for
   ten classes, where both apart take 10. */
static bool sums_pay(const ty_k_product *p) {
  return !ty_is_16bit(p->dtype) || (p->lda % 8 == 0 && alignment(p->a) >= 16);
}

ty_status ty_blas_product(ty_call *c, int gpu, const ty_k_product *p, ty_stream *s, bool *sums) {
  if (p->row_sums && !sums_pay(p)) return without_sums(c, gpu, p, s, sums);
  ty_tensor *workspace = NULL;
  plan *w = NULL;
  size_t have = 0, want = 0;
  ty_status st = TY_OK;
  enum cudaStreamCaptureMode mode;
  for (;;) {
    pthread_mutex_lock(&lock);
    mode = ty_capture_mode(cudaStreamCaptureModeRelaxed);           /* as cuDNN's */
    if (!handles[gpu]) {
      cublasStatus_t e = cublasLtCreate(&handles[gpu]);
      if (e != CUBLAS_STATUS_SUCCESS) st = blas_fail(c, e, "cublasLtCreate", gpu);
    }
    if (st == TY_OK) st = plan_for(c, gpu, p, workspace, have, s, &w, &want);
    if (st != TY_OK || want <= have) break;
    ty_capture_mode(mode);                 /* not under the lock: an allocation may run Lua's collector, whose finalizers may call matmul */
    pthread_mutex_unlock(&lock);
    ty_release(workspace);
    workspace = NULL;
    TY_TRY(workspace_of(c, gpu, want, &workspace));
    have = want;
  }
  const bool apart = st == TY_OK && w->none && p->row_sums;        /* the library may take the product without sums */
  *sums = p->row_sums != NULL && !apart;
  if (st == TY_OK && w->none && !apart) st = ty_cuda_launched(c, gpu, ty_k_multiply(p, s->s));      /* what the library doesn't take */
  else if (st == TY_OK && !w->none) {
    cublasStatus_t e = beside(p) ? point_beside(w, p) : CUBLAS_STATUS_SUCCESS;
    if (e != CUBLAS_STATUS_SUCCESS) st = blas_fail(c, e, "cublasLtMatmulDescSetAttribute", gpu);
    else if ((e = launch(gpu, w, &w->algo, p, workspace, w->workspace, s)) != CUBLAS_STATUS_SUCCESS)
      st = blas_fail(c, e, "cublasLtMatmul", gpu);
  }
  ty_capture_mode(mode);
  pthread_mutex_unlock(&lock);
  ty_release(workspace);
  return apart ? without_sums(c, gpu, p, s, sums) : st;
}

const char *ty_timed_libraries(void) {
  static char text[64];
  snprintf(text, sizeof text, "cuBLASLt %zu, cuDNN %zu", cublasLtGetVersion(), ty_dnn_version());
  return text;
}
