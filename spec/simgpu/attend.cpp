/* The simulated library's attention (libraries.c): computed by definition, in 16 bits, from what cuDNN would be given.
 *
 * Invariant: it sees a mask only as a bias: a score that the bias puts far below the others is a number like any other. */
#include "attention.cuh"

#define WIDEST 256

struct given_attention { ty_k_attention a; ty_k_attention_given x; };

static float number_of(const given_attention &w, const ty_k_heads &t, int64_t head, int64_t row, int64_t column) {
  return load<float>(t.p, w.a.dtype, base_of(t, w.a.h, head) + row * t.stride[2] + column);
}

static float score_of(const given_attention &w, int64_t head, int64_t i, int64_t j) {
  const ty_k_attention &a = w.a;
  const int64_t *const n = w.x.shape;
  float s = 0;
  if (a.causal && j > i) return -3e38f;
  for (int64_t k = 0; k < a.d; k++) s += number_of(w, a.q, head, i, k) * number_of(w, a.k, head, j, k);
  const int64_t batch = n[0] == 1 ? 0 : head / a.h, h = n[1] == 1 ? 0 : head % a.h, row = n[2] == 1 ? 0 : i;
  return s * (float)a.scale + (w.x.bias ? w.x.bias[((batch * n[1] + h) * n[2] + row) * w.x.ld + j] : 0);
}

static __global__ void attended(const given_attention w) {
  const ty_k_attention &a = w.a;
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, head = at / a.lq, i = at % a.lq;
  if (head >= a.heads) return;
  float top = -INFINITY, sum = 0, o[WIDEST] = {};
  for (int64_t j = 0; j < a.lk; j++) top = fmaxf(top, score_of(w, head, i, j));
  for (int64_t j = 0; j < a.lk; j++) {
    const float p = expf(score_of(w, head, i, j) - top);
    sum += p;
    for (int64_t k = 0; k < a.d; k++) o[k] += p * number_of(w, a.v, head, j, k);
  }
  ((float *)a.lse)[at] = top + logf(sum);
  for (int64_t k = 0; k < a.d; k++) store((void *)a.o.p, a.dtype, base_of(a.o, a.h, head) + i * a.o.stride[2] + k, o[k] / sum);
}

/* Of query i and key j: the weight that multiplies v, and the score's gradient. */
static void gradients(const given_attention &w, int64_t head, int64_t i, int64_t j, float *seen, float *ds) {
  const ty_k_attention &a = w.a;
  const float p = expf(score_of(w, head, i, j) - ((const float *)a.lse)[head * a.lq + i]);
  float dp = 0, delta = 0;
  for (int64_t k = 0; k < a.d; k++) {
    const float g = number_of(w, a.g, head, i, k);
    dp += g * number_of(w, a.v, head, j, k);
    delta += g * number_of(w, a.o, head, i, k);
  }
  *seen = p;
  *ds = p * (dp - delta) * (float)a.scale;
}

static __global__ void query_gradients(const given_attention w) {
  const ty_k_attention &a = w.a;
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, head = at / a.lq, i = at % a.lq;
  float dq[WIDEST] = {}, seen, ds;
  if (head >= a.heads) return;
  for (int64_t j = 0; j < a.lk; j++) {
    gradients(w, head, i, j, &seen, &ds);
    for (int64_t k = 0; k < a.d; k++) dq[k] += ds * number_of(w, a.k, head, j, k);
  }
  for (int64_t k = 0; k < a.d; k++) store((void *)a.dq.p, a.dtype, base_of(a.dq, a.h, head) + i * a.dq.stride[2] + k, dq[k]);
}

static __global__ void key_gradients(const given_attention w) {
  const ty_k_attention &a = w.a;
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, head = at / a.lk, j = at % a.lk;
  float dk[WIDEST] = {}, dv[WIDEST] = {}, seen, ds;
  if (head >= a.heads) return;
  for (int64_t i = 0; i < a.lq; i++) {
    gradients(w, head, i, j, &seen, &ds);
    for (int64_t k = 0; k < a.d; k++) {
      dk[k] += ds * number_of(w, a.q, head, i, k);
      dv[k] += seen * number_of(w, a.g, head, i, k);
    }
  }
  for (int64_t k = 0; k < a.d; k++) {
    store((void *)a.dk.p, a.dtype, base_of(a.dk, a.h, head) + j * a.dk.stride[2] + k, dk[k]);
    store((void *)a.dvalue.p, a.dtype, base_of(a.dvalue, a.h, head) + j * a.dvalue.stride[2] + k, dv[k]);
  }
}

extern "C" cudaError_t sim_attend(const ty_k_attention *a, const ty_k_attention_given *x, cudaStream_t s) {
  const given_attention w = {*a, *x};
  if (!w.a.g.p) return TY_LAUNCH(attended, blocks_for(w.a.heads * w.a.lq, 32), 32, s, w);
  const cudaError_t e = TY_LAUNCH(query_gradients, blocks_for(w.a.heads * w.a.lq, 32), 32, s, w);
  return e != cudaSuccess ? e : TY_LAUNCH(key_gradients, blocks_for(w.a.heads * w.a.lk, 32), 32, s, w);
}
