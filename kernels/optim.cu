/* Optimizer steps: one launch updates up to TY_K_TENSORS parameters with their state, and their 16-bit copies.
 *
 * Idea: what varies from step to step (step count, learning rate and settings, loss scale, whether to skip) is in device memory, so that a
 * captured step stays right. A block's first thread makes of it the rates that the block uses; the last block counts the step, and then
 * updates a GradScaler's scale where that comes next. Invariant: element i of a tensor's lists is read and written by one thread. */
#include "lists.cuh"
#include "rows.cuh"
#include "scalar.cuh"

struct rates { ty_step_rates c; bool skip; };

static __device__ __forceinline__ float update(int op, int has, const ty_step_rates &c, float g, float p, float *v) {
  return ty_step_f32(op, has, &c, g, p, v);
}
static __device__ __forceinline__ double update(int op, int has, const ty_step_rates &c, double g, double p, double *v) {
  return ty_step_f64(op, has, &c, g, p, v);
}

static __device__ __forceinline__ ty_optim_settings settings_of(const ty_k_step &a) {
  ty_optim_settings how = a.how;
  if (a.how_at) memcpy(&how, a.how_at, TY_OPTIM_NUMBERS * sizeof(double));
  return how;
}

template <int op> static __device__ rates rates_of(const ty_k_step &a) {
  const ty_optim_settings how = settings_of(a);
  const double sign = (a.how.maximize ? -1 : 1) * (a.scale ? (double)(float)(1 / (double)*a.scale) : 1),
    lr = a.lr_at ? load<double>(a.lr_at, a.lr_dtype, 0) : a.lr;
  rates r;
  r.c = ty_step_rates_of(op, (double)(*a.step + 1), lr, sign, &how);
  r.skip = a.found && *a.found != 0;
  return r;
}

/* A master's value: its own, unless its 16-bit copy has been given another value since it was written. */
template <class T> static __device__ __forceinline__ T followed(const ty_k_step &a, T master, T copy) {
  return a.follow && rounded(master, a.copy_dtype) != copy ? copy : master;
}

static __device__ __forceinline__ int list_dtype(const ty_k_step &a, int k) {
  return k == 1 ? a.grad_dtype : k == TY_K_COPY ? a.copy_dtype : a.dtype;
}

template <class T, int op> __global__ void __launch_bounds__(THREADS) step(const ty_k_step a) {
  __shared__ rates shared;
  int64_t chunk = blockIdx.x;
  const int t = find_chunk(a.n, a.count, chunk);
  const int64_t from = chunk * CHUNK, to = t == a.count ? from : a.n[t] - from < CHUNK ? a.n[t] : from + CHUNK;
  bool by_fours = sizeof(T) == 4 && t < a.count;
  int has = 0;
  for (int k = 0; k < 3 && t < a.count; k++) has |= a.p[2 + k][t] ? 1 << k : 0;
  for (int k = 0; k <= TY_K_COPY && by_fours; k++) by_fours = !a.p[k][t] || fours(a.p[k][t], list_dtype(a, k));
  const int64_t whole = by_fours ? from + (to - from) / 4 * 4 : from;
  int64_t at = from + threadIdx.x * 4;
  T v[1 + TY_K_COPY][4];                   /* the elements of each list, the next ones read ahead */
  const auto take = [&]() {
    for (int k = 0; k <= TY_K_COPY; k++)
      if (a.p[k][t] && (k < TY_K_COPY || a.follow)) load_four(v[k], a.p[k][t], list_dtype(a, k), at);
  };
  if (at < whole) take();                  /* the first ones are read while thread 0 makes the rates */
  if (threadIdx.x == 0) shared = rates_of<op>(a);
  __syncthreads();
  const rates r = shared;
  if (t < a.count && !r.skip) {
    while (at < whole) {
      const int64_t i = at;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        T states[3] = {v[2][e], v[3][e], v[4][e]};
        v[0][e] = v[TY_K_COPY][e] = update(op, has, r.c, v[1][e], followed(a, v[0][e], v[TY_K_COPY][e]), states);
        for (int k = 0; k < 3; k++) v[2 + k][e] = states[k];
      }
      for (int k = 0; k <= TY_K_COPY; k++) if (k != 1 && a.p[k][t]) store_four(a.p[k][t], list_dtype(a, k), i, v[k]);
      at += THREADS * 4;
      if (at < whole) take();
    }
    for (int64_t i = whole + threadIdx.x; i < to; i += THREADS) {
      T states[3];
      for (int k = 0; k < 3; k++) states[k] = has >> k & 1 ? load<T>(a.p[2 + k][t], a.dtype, i) : 0;
      const T copy = a.follow ? load<T>(a.p[TY_K_COPY][t], a.copy_dtype, i) : 0,
        p = update(op, has, r.c, load<T>(a.p[1][t], a.grad_dtype, i), followed(a, load<T>(a.p[0][t], a.dtype, i), copy), states);
      store(a.p[0][t], a.dtype, i, p);
      for (int k = 0; k < 3; k++) if (has >> k & 1) store(a.p[2 + k][t], a.dtype, i, states[k]);
      if (a.p[TY_K_COPY][t]) store(a.p[TY_K_COPY][t], a.copy_dtype, i, p);
    }
  }
  if (!a.ticket || !last_block(a.ticket, gridDim.x) || threadIdx.x) return;
  if (!r.skip) ++*a.step;
  if (!a.rule.scale) return;
  *a.found = 0;
  ty_scale_update(a.rule.scale, a.rule.growth, r.skip, a.rule.growth_factor, a.rule.backoff_factor, a.rule.interval);
}

static __global__ void scale_update(const ty_k_scaling a) {
  int found = 0;
  for (int i = 0; i < a.count; i++) {
    if (*a.found[i] != 0) found = 1;
    *a.found[i] = 0;
  }
  ty_scale_update(a.rule.scale, a.rule.growth, found, a.rule.growth_factor, a.rule.backoff_factor, a.rule.interval);
}

cudaError_t ty_k_optim(const ty_k_step *p, cudaStream_t s) {
  const ty_k_step a = *p;
  int64_t chunks = chunks_of(a.n, a.count);
  if (chunks == 0 && !a.ticket) return cudaSuccess;
  if (chunks == 0) chunks = 1;             /* the step is counted even where nothing is updated */
  switch (a.op) {
#define STEP(op) \
    case op: return a.dtype == TY_F64 ? TY_LAUNCH((step<double, op>), (unsigned)chunks, THREADS, s, a) \
      : TY_LAUNCH((step<float, op>), (unsigned)chunks, THREADS, s, a);
    STEP(TY_OP_sgd_step) STEP(TY_OP_rmsprop_step) STEP(TY_OP_adagrad_step) STEP(TY_OP_adadelta_step)
    STEP(TY_OP_adamw_step) STEP(TY_OP_nadam_step) STEP(TY_OP_radam_step) STEP(TY_OP_adamax_step)
#undef STEP
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t ty_k_scale_update(const ty_k_scaling *p, cudaStream_t s) {
  const ty_k_scaling a = *p;
  return TY_LAUNCH(scale_update, 1, 1, s, a);
}
