/* Optimizer steps: one launch updates up to TY_K_TENSORS parameters with their state, and their 16-bit copies.
 *
 * Idea: what varies from step to step (step count, learning rate, loss scale, whether to skip) is in device memory; a
 * block's first thread makes of it the numbers that its block reads, and the last block counts the step (and moves a
 * GradScaler's scale on, where that comes next); so a captured step stays right. Invariant: element i of a tensor's
 * lists is read and written by one thread. */
#include "lists.cuh"
#include "rows.cuh"
#include "scalar.cuh"

struct rates { double lr, sign, decay, size, inverse_root; bool skip, first; ty_step_rates kin; };     /* decay and what follows: Adam's */

#define KIN(name) \
  static __device__ __forceinline__ float name(const ty_step_rates &c, float g, float p, float *m, float *v) { \
    return ty_##name##_f32(&c, g, p, m, v); } \
  static __device__ __forceinline__ double name(const ty_step_rates &c, double g, double p, double *m, double *v) { \
    return ty_##name##_f64(&c, g, p, m, v); }
KIN(nadam)
KIN(radam)
KIN(adamax)
KIN(adadelta)

/* An element of the parameter, its gradient, and of the op's further lists. */
template <class T> struct cell { T p, g, v[3]; };

template <class T> static __device__ __forceinline__ void update(const ty_k_step &a, const rates &r, bool has1,
  bool has2, bool has3, cell<T> &c) {
  const T lr = (T)r.lr, wd = (T)a.how.weight_decay, g = (T)r.sign * c.g;
  switch (a.op) {
    case TY_OP_sgd_step: {
      T u = g + wd * c.p;
      if (has1) {
        const T mu = (T)a.how.momentum, v = r.first ? u : mu * c.v[0] + (T)(1 - a.how.dampening) * u;
        c.v[0] = v;
        u = a.how.nesterov ? u + mu * v : v;
      }
      c.p -= lr * u;
      break;
    }
    case TY_OP_rmsprop_step: {
      const T u = g + wd * c.p, q = (T)a.how.alpha * c.v[0] + (T)(1 - a.how.alpha) * u * u;
      T mean = q, by;
      c.v[0] = q;
      if (has3) { T m = c.v[2]; m += (T)(1 - a.how.alpha) * (u - m); c.v[2] = m; mean = q - m * m; }
      by = u / (root(mean) + (T)a.how.eps);
      if (has2) { by = (T)a.how.momentum * c.v[1] + by; c.v[1] = by; }
      c.p -= lr * by;
      break;
    }
    case TY_OP_adagrad_step: {
      const T u = g + wd * c.p, q = c.v[0] + u * u;
      c.v[0] = q;
      c.p -= lr * u / (root(q) + (T)a.how.eps);
      break;
    }
    case TY_OP_nadam_step: c.p = nadam(r.kin, c.g, c.p, &c.v[0], &c.v[1]); break;
    case TY_OP_radam_step: c.p = radam(r.kin, c.g, c.p, &c.v[0], &c.v[1]); break;
    case TY_OP_adamax_step: c.p = adamax(r.kin, c.g, c.p, &c.v[0], &c.v[1]); break;
    case TY_OP_adadelta_step: c.p = adadelta(r.kin, c.g, c.p, &c.v[0], &c.v[1]); break;
    default: {                             /* Adam */
      const T u = g + (a.how.decoupled ? 0 : wd) * c.p;
      const T m = (T)a.how.beta1 * c.v[0] + (T)(1 - a.how.beta1) * u, v = (T)a.how.beta2 * c.v[1] + (T)(1 - a.how.beta2) * u * u;
      T top = v;
      c.v[0] = m;
      c.v[1] = v;
      if (has3) { top = v > c.v[2] ? v : c.v[2]; c.v[2] = top; }
      c.p = (T)r.decay * c.p - (T)r.size * m / (root(top) * (T)r.inverse_root + (T)a.how.eps);
    }
  }
}

static __device__ rates rates_of(const ty_k_step &a) {
  rates r;
  const double n = (double)(*a.step + 1);
  r.skip = a.found && *a.found != 0;
  r.first = n == 1;
  r.sign = (a.how.maximize ? -1 : 1) * (a.scale ? (double)(float)(1 / (double)*a.scale) : 1);
  r.lr = (a.lr_at ? load<double>(a.lr_at, a.lr_dtype, 0) : a.lr) / (1 + (n - 1) * a.how.lr_decay);
  r.decay = r.size = r.inverse_root = 1;
  if (ty_has_step_rates(a.op)) r.kin = ty_step_rates_of(a.op, n, r.lr, r.sign, &a.how);
  if (a.op == TY_OP_adamw_step) {
    r.decay = a.how.decoupled ? 1 - r.lr * a.how.weight_decay : 1;
    r.size = r.lr / (1 - pow(a.how.beta1, n));
    r.inverse_root = 1 / sqrt(1 - pow(a.how.beta2, n));
  }
  return r;
}

static __device__ __forceinline__ int list_dtype(const ty_k_step &a, int k) {
  return k == 1 ? a.grad_dtype : k == TY_K_COPY ? a.copy_dtype : a.dtype;
}

template <class T> __global__ void __launch_bounds__(THREADS) step(const ty_k_step a) {
  __shared__ rates shared;
  int64_t chunk = blockIdx.x;
  const int t = find_chunk(a.n, a.count, chunk);
  if (threadIdx.x == 0) shared = rates_of(a);
  __syncthreads();
  const rates r = shared;
  if (t < a.count && !r.skip) {
    const int64_t from = chunk * CHUNK, to = a.n[t] - from < CHUNK ? a.n[t] : from + CHUNK;
    bool by_fours = sizeof(T) == 4, has[3];
    for (int k = 0; k < 3; k++) has[k] = a.p[2 + k][t];
    for (int k = 0; k <= TY_K_COPY; k++) by_fours = by_fours && (!a.p[k][t] || fours(a.p[k][t], list_dtype(a, k)));
    const int64_t whole = by_fours ? from + (to - from) / 4 * 4 : from;
    for (int64_t i = from + threadIdx.x * 4; i < whole; i += THREADS * 4) {
      T v[1 + TY_K_COPY][4];
      for (int k = 0; k < TY_K_COPY; k++) if (a.p[k][t]) load_four(v[k], a.p[k][t], list_dtype(a, k), i);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        cell<T> c = {v[0][e], v[1][e], {v[2][e], v[3][e], v[4][e]}};
        update(a, r, has[0], has[1], has[2], c);
        v[0][e] = v[TY_K_COPY][e] = c.p;
        for (int k = 0; k < 3; k++) v[2 + k][e] = c.v[k];
      }
      for (int k = 0; k <= TY_K_COPY; k++) if (k != 1 && a.p[k][t]) store_four(a.p[k][t], list_dtype(a, k), i, v[k]);
    }
    for (int64_t i = whole + threadIdx.x; i < to; i += THREADS) {
      cell<T> c;
      c.p = load<T>(a.p[0][t], a.dtype, i);
      c.g = load<T>(a.p[1][t], a.grad_dtype, i);
      for (int k = 0; k < 3; k++) c.v[k] = has[k] ? load<T>(a.p[2 + k][t], a.dtype, i) : 0;
      update(a, r, has[0], has[1], has[2], c);
      store(a.p[0][t], a.dtype, i, c.p);
      for (int k = 0; k < 3; k++) if (has[k]) store(a.p[2 + k][t], a.dtype, i, c.v[k]);
      if (a.p[TY_K_COPY][t]) store(a.p[TY_K_COPY][t], a.copy_dtype, i, c.p);
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
  if (chunks == 0) chunks = 1;             /* a step is counted also where nothing is updated */
  return a.dtype == TY_F64 ? TY_LAUNCH(step<double>, (unsigned)chunks, THREADS, s, a)
    : TY_LAUNCH(step<float>, (unsigned)chunks, THREADS, s, a);
}

cudaError_t ty_k_scale_update(const ty_k_scaling *p, cudaStream_t s) {
  const ty_k_scaling a = *p;
  return TY_LAUNCH(scale_update, 1, 1, s, a);
}
