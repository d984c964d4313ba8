/* Attention of few queries: what its kernels share (attention_few.cu, attention_few_mma.cu).
 *
 * Idea: where heads alone would be too few blocks, a head's keys are cut into sections, one block each. A block's teams of threads go over
 * its keys, each team with a running maximum, sum and weighted values, as the kernel by tiles does. Invariant: which keys a team has, and
 * the order of joining, depend on the shapes alone. */
#ifndef TY_ATTENTION_FEW_CUH
#define TY_ATTENTION_FEW_CUH
#include "attention.cuh"
#include "rows.cuh"

#define THREADS 128

template <class T> static __device__ __forceinline__ T higher(T a, T b) { return b > a || b != b ? b : a; }
/* the factor that turns a sum of exp(score - top) into one of exp(score - all) */
template <class T> static __device__ __forceinline__ T down_to(T top, T all) { return top == (T)-INFINITY ? (T)0 : exp_of(top - all); }

/* 16 bytes of a row from number c on, unconverted; 0 beyond its width. */
template <class D> static __device__ __forceinline__ uint4 word_at(const D *row, int64_t c, int64_t width) {
  if (c >= width) return {0, 0, 0, 0};
  TY_ALIGNED(row + c, sizeof(uint4));
  return *(const uint4 *)(row + c);
}

/* Stores an element of a query's result, once all of its keys have been seen. */
template <class T> static __device__ __forceinline__ void put_result(const ty_k_attention &a, int64_t head, int64_t i, int64_t c,
  T sum, T acc) {
  store((void *)a.o.p, a.dtype, base_of(a.o, a.h, head) + i * a.o.stride[2] + c * a.o.stride[3], sum == 0 ? (T)0 : acc / sum);
}
template <class T> static __device__ __forceinline__ void put_log_sum(const ty_k_attention &a, int64_t row, T top, T sum) {
  ((T *)a.lse)[row] = sum == 0 ? (T)INFINITY : top + log_of(sum);      /* no key to attend to: the result is 0, as PyTorch's */
}

/* How many keys count: under a causal mask no query sees those after the last query. */
static __host__ __device__ __forceinline__ int64_t keys_of(const ty_k_attention &a) { return a.causal && a.lq < a.lk ? a.lq : a.lk; }

/* Joins what a block's teams have seen of their keys: the section's part, or, of one section, the result. */
template <int QUERIES, class T, int TEAMS, int WIDTH> static __device__ __forceinline__ void finish(const ty_k_attention &a, int64_t head,
  int64_t i0, const T (&tops)[TEAMS][QUERIES], const T (&sums)[TEAMS][QUERIES], const T (&accs)[TEAMS][QUERIES][WIDTH]) {
  __syncthreads();
  for (int i = 0; i < QUERIES && i0 + i < a.lq; i++) {
    const int64_t row = head * a.lq + i0 + i;
    T *const part = (T *)a.parts + (row * a.sections + blockIdx.y) * (a.dv + 2);       /* top, sum, weighted values */
    T top = (T)-INFINITY, sum = 0;
    for (int t = 0; t < TEAMS; t++) top = higher(top, tops[t][i]);
    for (int t = 0; t < TEAMS; t++) sum += sums[t][i] * down_to(tops[t][i], top);
    for (int64_t w = threadIdx.x; w < a.dv; w += THREADS) {
      T acc = 0;
      for (int t = 0; t < TEAMS; t++) acc += accs[t][i][w] * down_to(tops[t][i], top);
      if (a.sections > 1) part[2 + w] = acc;
      else put_result(a, head, i0 + i, w, sum, acc);
    }
    if (threadIdx.x) continue;
    if (a.sections > 1) {
      part[0] = top;
      part[1] = sum;
    } else put_log_sum(a, row, top, sum);
  }
}

/* The kernel for tensor cores, for 16-bit dtypes and rows of at most MMA_WIDEST numbers. */
#define MMA_WIDEST 128
#define MMA_STEP 64              /* keys that a block takes at a time */
cudaError_t ty_k_attend_few_mma(const ty_k_attention &a, cudaStream_t s);
#endif
