/* Optimizer steps: one launch updates up to TY_K_TENSORS parameters with their state, and their 16-bit copies.
 *
 * Idea: what varies from step to step (step count, learning rate, loss scale, whether to skip) is in device memory; a block's first thread makes
 * of it the numbers that its block reads, and the last block counts the step (and moves a GradScaler's scale on, where that comes next); so a captured
 * step stays right. Invariant: element i of a tensor's lists is read and written by one thread. */
#include "lists.cuh"
#include "steps.h"

template <class T> static __device__ __forceinline__ T root(T x);
template <> __device__ __forceinline__ float root<float>(float x) { return sqrt_f32(x); }
template <> __device__ __forceinline__ double root<double>(double x) { return sqrt(x); }

struct rates { double lr, sign, correction1, correction2; bool skip, first; ty_step_rates kin; };

#define KIN(name) \
  static __device__ __forceinline__ float name(const ty_step_rates &c, float g, float p, float *m, float *v) { return ty_##name##_f32(&c, g, p, m, v); } \
  static __device__ __forceinline__ double name(const ty_step_rates &c, double g, double p, double *m, double *v) { return ty_##name##_f64(&c, g, p, m, v); }
KIN(nadam)
KIN(radam)
KIN(adamax)
KIN(adadelta)

template <class T> static __device__ __forceinline__ void update(const ty_k_step &a, const rates &r, int t, int64_t i) {
  const int d = a.dtype;
  void *const v0 = a.p[2][t], *const v1 = a.p[3][t], *const v2 = a.p[4][t], *const copy = a.p[TY_K_COPY][t];
  T p = load<T>(a.p[0][t], d, i);
  const T lr = (T)r.lr, wd = (T)a.weight_decay, g = (T)r.sign * load<T>(a.p[1][t], a.grad_dtype, i);
  switch (a.op) {
    case TY_OP_sgd_step: {
      T u = g + wd * p;
      if (v0) {
        const T mu = (T)a.momentum, v = r.first ? u : mu * load<T>(v0, d, i) + (T)(1 - a.a) * u;
        store(v0, d, i, v);
        u = a.nesterov ? u + mu * v : v;
      }
      p -= lr * u;
      break;
    }
    case TY_OP_rmsprop_step: {
      const T u = g + wd * p, q = (T)a.a * load<T>(v0, d, i) + (T)(1 - a.a) * u * u;
      T c = q, step;
      store(v0, d, i, q);
      if (v2) { T m = load<T>(v2, d, i); m += (T)(1 - a.a) * (u - m); store(v2, d, i, m); c = q - m * m; }
      step = u / (root(c) + (T)a.eps);
      if (v1) { step = (T)a.momentum * load<T>(v1, d, i) + step; store(v1, d, i, step); }
      p -= lr * step;
      break;
    }
    case TY_OP_adagrad_step: {
      const T u = g + wd * p, q = load<T>(v0, d, i) + u * u;
      store(v0, d, i, q);
      p -= lr * u / (root(q) + (T)a.eps);
      break;
    }
    case TY_OP_nadam_step: case TY_OP_radam_step: case TY_OP_adamax_step: case TY_OP_adadelta_step: {
      const T raw = load<T>(a.p[1][t], a.grad_dtype, i);
      T m = load<T>(v0, d, i), v = load<T>(v1, d, i);
      if (a.op == TY_OP_nadam_step) p = nadam(r.kin, raw, p, &m, &v);
      else if (a.op == TY_OP_radam_step) p = radam(r.kin, raw, p, &m, &v);
      else if (a.op == TY_OP_adamax_step) p = adamax(r.kin, raw, p, &m, &v);
      else p = adadelta(r.kin, raw, p, &m, &v);
      store(v0, d, i, m);
      store(v1, d, i, v);
      break;
    }
    default: {                             /* Adam */
      const T decay = (T)(a.decoupled ? 1 - r.lr * a.weight_decay : 1), u = g + (a.decoupled ? 0 : wd) * p;
      const T m = (T)a.a * load<T>(v0, d, i) + (T)(1 - a.a) * u, v = (T)a.b * load<T>(v1, d, i) + (T)(1 - a.b) * u * u;
      T top = v;
      store(v0, d, i, m);
      store(v1, d, i, v);
      if (v2) { const T w = load<T>(v2, d, i); top = v > w ? v : w; store(v2, d, i, top); }
      p = decay * p - (T)(r.lr / r.correction1) * m / (root(top) * (T)(1 / sqrt(r.correction2)) + (T)a.eps);
    }
  }
  store(a.p[0][t], d, i, p);
  if (copy) store(copy, a.copy_dtype, i, p);
}

static __device__ rates rates_of(const ty_k_step &a) {
  rates r;
  const double n = (double)(*a.step + 1);
  r.skip = a.found && *a.found != 0;
  r.first = n == 1;
  r.sign = (a.maximize ? -1 : 1) * (a.scale ? (double)(float)(1 / (double)*a.scale) : 1);
  r.lr = (a.lr_at ? load<double>(a.lr_at, a.lr_dtype, 0) : a.lr) / (1 + (n - 1) * a.lr_decay);
  r.correction1 = r.correction2 = 1;
  if (ty_has_step_rates(a.op)) r.kin = ty_step_rates_of(a.op, n, r.lr, r.sign, a.a, a.b, a.eps, a.weight_decay, a.decoupled, a.momentum);
  if (a.op == TY_OP_adamw_step) {
    r.correction1 = 1 - pow(a.a, n);
    r.correction2 = 1 - pow(a.b, n);
  }
  return r;
}

template <class T> __global__ void __launch_bounds__(THREADS) step(const ty_k_step a) {
  __shared__ rates r;
  int64_t chunk = blockIdx.x;
  const int t = find_chunk(a.n, a.count, chunk);
  if (threadIdx.x == 0) r = rates_of(a);
  __syncthreads();
  if (t < a.count && !r.skip) {
    const int64_t from = chunk * CHUNK, to = a.n[t] - from < CHUNK ? a.n[t] : from + CHUNK;
    for (int64_t i = from + threadIdx.x; i < to; i += THREADS) update<T>(a, r, t, i);
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
  if (chunks == 0) chunks = 1;             /* a step is counted also where nothing is updated */
  return a.dtype == TY_F64 ? TY_LAUNCH(step<double>, (unsigned)chunks, THREADS, s, a) : TY_LAUNCH(step<float>, (unsigned)chunks, THREADS, s, a);
}

cudaError_t ty_k_scale_update(const ty_k_scaling *p, cudaStream_t s) {
  const ty_k_scaling a = *p;
  return TY_LAUNCH(scale_update, 1, 1, s, a);
}
