/* Optimizer steps: one launch updates up to TY_K_TENSORS parameters with their state.
 *
 * Idea: blocks are spread over the tensors in chunks; a block finds its tensor by counting chunks. Invariant: element i of a tensor's
 * lists is read and written by one thread. */
#include "device.cuh"

#define THREADS 256
#define CHUNK 4096

template <class T> static __device__ __forceinline__ T root(T x);
template <> __device__ __forceinline__ float root<float>(float x) { return sqrt_f32(x); }
template <> __device__ __forceinline__ double root<double>(double x) { return sqrt(x); }

template <class T> static __device__ __forceinline__ void update(const ty_k_step &a, int t, int64_t i) {
  const int d = a.dtype;
  void *const v0 = a.p[2][t], *const v1 = a.p[3][t], *const v2 = a.p[4][t];
  T p = load<T>(a.p[0][t], d, i);
  const T lr = (T)a.lr, wd = (T)a.weight_decay, g = (a.maximize ? -1 : 1) * load<T>(a.p[1][t], d, i);
  switch (a.op) {
    case TY_OP_sgd_step: {
      T u = g + wd * p;
      if (v0) {
        const T mu = (T)a.momentum, v = a.first ? u : mu * load<T>(v0, d, i) + (T)(1 - a.a) * u;
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
    default: {                             /* Adam */
      const T decay = (T)(a.decoupled ? 1 - a.lr * a.weight_decay : 1), u = g + (a.decoupled ? 0 : wd) * p;
      const T m = (T)a.a * load<T>(v0, d, i) + (T)(1 - a.a) * u, v = (T)a.b * load<T>(v1, d, i) + (T)(1 - a.b) * u * u;
      T top = v;
      store(v0, d, i, m);
      store(v1, d, i, v);
      if (v2) { const T w = load<T>(v2, d, i); top = v > w ? v : w; store(v2, d, i, top); }
      p = decay * p - (T)(a.lr / a.correction1) * m / (root(top) * (T)(1 / sqrt(a.correction2)) + (T)a.eps);
    }
  }
  store(a.p[0][t], d, i, p);
}

template <class T> __global__ void __launch_bounds__(THREADS) step(const ty_k_step a) {
  int64_t chunk = blockIdx.x;
  int t = 0;
  for (; t < a.count; t++) {
    const int64_t chunks = (a.n[t] + CHUNK - 1) / CHUNK;
    if (chunk < chunks) break;
    chunk -= chunks;
  }
  if (t == a.count) return;
  const int64_t from = chunk * CHUNK, to = a.n[t] - from < CHUNK ? a.n[t] : from + CHUNK;
  for (int64_t i = from + threadIdx.x; i < to; i += THREADS) update<T>(a, t, i);
}

cudaError_t ty_k_optim(const ty_k_step *p, cudaStream_t s) {
  const ty_k_step a = *p;
  int64_t chunks = 0;
  for (int t = 0; t < a.count; t++) chunks += (a.n[t] + CHUNK - 1) / CHUNK;
  if (chunks == 0) return cudaSuccess;
  return a.dtype == TY_F64 ? TY_LAUNCH(step<double>, (unsigned)chunks, THREADS, s, a) : TY_LAUNCH(step<float>, (unsigned)chunks, THREADS, s, a);
}
