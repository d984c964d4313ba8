/* ctc_loss: forward variables and the gradient of the log-probabilities, one block per sequence.
 *
 * Idea: the threads share out a step's states, and a barrier separates steps. What a step reaches, and backward its slopes, pass to the
 * next step through device memory, where they are results too. Formulas are those of src/cpu/align_steps.h. Invariant: past a sequence's
 * length nothing is reached, and slopes are 0. */
#include "device.cuh"
#include "math.h"

#define THREADS 256
#define CALL(name, ...) (sizeof(T) == 8 ? (T)name##_f64(__VA_ARGS__) : (T)name##_f32(__VA_ARGS__))
#define EACH_STATE(s) for (int64_t s = threadIdx.x; s < a.s; s += THREADS)

/* One sequence. row: elements from one step to the next. */
template <class T> struct sequence {
  const T *logs;
  T *reached;
  const uint8_t *skips;
  int64_t row, steps;
  __device__ __forceinline__ sequence(const ty_k_ctc &a) {
    const int64_t from = (int64_t)blockIdx.x * a.s, length = a.lengths[blockIdx.x];
    logs = (const T *)a.logs + from;
    reached = (T *)a.reached + from;
    skips = a.skips + from;
    row = a.n * a.s;
    steps = length < 1 ? 1 : length < a.steps ? length : a.steps;
  }
  /* the forward variable: what was reached, with the step's own probability */
  __device__ __forceinline__ T variable(int64_t t, int64_t s) const {
    return t ? reached[t * row + s] + logs[t * row + s] : reached[s];
  }
};

template <class T> __global__ void __launch_bounds__(THREADS) forward(const ty_k_ctc a) {
  const sequence<T> q(a);
  EACH_STATE(s) q.reached[s] = s < 2 ? q.logs[s] : (T)TY_CTC_NEVER;
  for (int64_t t = 1; t < q.steps; t++) {
    __syncthreads();
    EACH_STATE(s) {
      const T one = s > 0 ? q.variable(t - 1, s - 1) : (T)TY_CTC_NEVER;
      const T two = s > 1 && q.skips[s] ? q.variable(t - 1, s - 2) : (T)TY_CTC_NEVER;
      q.reached[t * q.row + s] = CALL(logaddexp, CALL(logaddexp, q.variable(t - 1, s), one), two);
    }
  }
  EACH_STATE(s) {
    ((T *)a.last)[(int64_t)blockIdx.x * a.s + s] = q.variable(q.steps - 1, s);
    for (int64_t t = q.steps; t < a.steps; t++) q.reached[t * q.row + s] = (T)TY_CTC_NEVER;
  }
}

template <class T> __global__ void __launch_bounds__(THREADS) backward(const ty_k_ctc a) {
  const sequence<T> q(a);
  const int64_t from = (int64_t)blockIdx.x * a.s;
  T *const slopes = (T *)a.slopes + from;
  EACH_STATE(s) {
    for (int64_t t = q.steps; t < a.steps; t++) slopes[t * q.row + s] = 0;
    slopes[(q.steps - 1) * q.row + s] = ((const T *)a.grad)[from + s];
  }
  for (int64_t t = q.steps - 1; t > 0; t--) {
    __syncthreads();
    EACH_STATE(s) {
      const T v = q.variable(t - 1, s);
      T sum = 0;
      for (int j = 0; j < 3 && s + j < a.s; j++) {
        const T share = (j < 2 || q.skips[s + 2] ? v : (T)TY_CTC_NEVER) - q.reached[t * q.row + s + j];
        sum += slopes[t * q.row + s + j] * CALL(exp, share < 0 ? share : 0);
      }
      slopes[(t - 1) * q.row + s] = sum;
    }
  }
  EACH_STATE(s) if (s > 1) slopes[s] = 0;
}

/* ---- launchers ---- */

cudaError_t ty_k_ctc_paths(const ty_k_ctc *p, cudaStream_t s) {
  const ty_k_ctc a = *p;
  auto there = a.dtype == TY_F64 ? forward<double> : forward<float>, back = a.dtype == TY_F64 ? backward<double> : backward<float>;
  return a.grad ? TY_LAUNCH(back, (unsigned)a.n, THREADS, s, a) : TY_LAUNCH(there, (unsigned)a.n, THREADS, s, a);
}
