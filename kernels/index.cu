/* Index ops: a thread for each element of the indexed part.
 *
 * Idea: a walk over the indexed part's shape; in the large tensor dims move by strides, and indices by what they say. Indices are 1-based;
 * a bad one is reported and nothing is read or written for it. Invariant: additions that meet are atomic (their order, and so the last
 * bit of a float's sum, is not fixed). */
#include "device.cuh"

#define THREADS 256

template <class T> static __device__ void add_to(void *p, int dtype, int64_t i, T v) {
  switch (dtype) {
    case TY_F32: atomicAdd((float *)p + i, (float)v); break;
    case TY_F64: atomicAdd((double *)p + i, (double)v); break;
    case TY_I64: atomicAdd((unsigned long long *)p + i, (unsigned long long)as<int64_t>::of(v)); break;
    case TY_I32: atomicAdd((int *)p + i, (int)as<int64_t>::of(v)); break;
    default: {                             /* within the aligned word that holds it */
      const int size = dtype == TY_U8 || dtype == TY_BOOL ? 1 : 2;
      const uintptr_t at = (uintptr_t)p + i * size;
      unsigned *const word = (unsigned *)(at & ~(uintptr_t)3);
      unsigned old = *word, seen;
      do {
        unsigned next = seen = old;
        void *const there = (char *)&next + (at & 3);
        store(there, dtype, 0, (T)(load<T>(there, dtype, 0) + v));
        old = atomicCAS(word, seen, next);
      } while (old != seen);
    }
  }
}

static __device__ __forceinline__ void number(const ty_k_indexing &a, double *v) { *v = a.v; }
static __device__ __forceinline__ void number(const ty_k_indexing &a, float *v) { *v = (float)a.v; }
static __device__ __forceinline__ void number(const ty_k_indexing &a, int64_t *v) { *v = a.vi; }

template <class T> __global__ void __launch_bounds__(THREADS) walk(const ty_k_indexing a) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= a.n) return;
  int64_t rest = i, large = 0, small = 0, at[TY_K_DIMS];
  for (int d = a.ndim - 1; d >= 0; d--) {
    at[d] = rest % a.shape[d];
    rest /= a.shape[d];
    large += at[d] * a.large[d];
    small += at[d] * a.small[d];
  }
  for (int j = 0; j < a.nindex; j++) {
    int64_t where = 0;
    for (int d = 0; d < a.ndim; d++) where += at[d] * a.index[j].stride[d];
    const int64_t v = a.index[j].p[where], size = a.index[j].size;
    if (v == 0 || v > size || v < (a.negative ? -size : 1)) {
      a.fault->value = v;
      a.fault->limit = size;
      a.fault->op = 1 + a.op;
      return;
    }
    large += (v < 0 ? v + size : v - 1) * a.index[j].step;
  }
  if (a.how == TY_K_TAKE) { store(a.q, a.dtype, small, load<T>(a.p, a.dtype, large)); return; }
  T v;
  if (a.q) v = load<T>(a.q, a.small_dtype, small);
  else number(a, &v);
  if (a.how == TY_K_ADD) add_to(a.p, a.dtype, large, v);
  else store(a.p, a.dtype, large, v);
}

cudaError_t ty_k_index(const ty_k_indexing *p, cudaStream_t s) {
  const ty_k_indexing a = *p;
  const unsigned blocks = blocks_for(a.n, THREADS);
  if (a.dtype == TY_F64) return TY_LAUNCH(walk<double>, blocks, THREADS, s, a);
  if (a.dtype == TY_F32 || a.dtype == TY_F16 || a.dtype == TY_BF16) return TY_LAUNCH(walk<float>, blocks, THREADS, s, a);
  return TY_LAUNCH(walk<int64_t>, blocks, THREADS, s, a);
}
