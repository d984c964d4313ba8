/* Attention with its scores in memory, some heads at a time (src/cuda/attention.c): the steps between the matrix products; and what the
 * other kernels need, dropout's state and the deltas.
 *
 * Idea: a block has a row of scores. Each thread takes four neighbours at a time, and reads them again in the second pass, from cache.
 * Invariant: a thread writes only where it alone has read, so that results may take the scores' place. */
#include "attention.cuh"
#include "exponentials.cuh"

#define THREADS 256
#define SIDE 8                   /* lanes that share a row's delta */

/* Up to four neighbours from p on. */
template <class D> static __device__ __forceinline__ void take_some(typename stored<D>::type *v, const D *p, int count) {
  if constexpr (sizeof(D) <= 4)
    if (count == 4 && (uintptr_t)p % (4 * sizeof(D)) == 0) {
      const pack<D, 4> d = take_pack<D, 4>(p);
#pragma unroll
      for (int k = 0; k < 4; k++) v[k] = stored<D>::in(d.d[k]);
      return;
    }
#pragma unroll
  for (int k = 0; k < 4; k++) if (k < count) v[k] = stored<D>::in(p[k]);
}
template <class D> static __device__ __forceinline__ void put_some(D *p, const typename stored<D>::type *v, int count) {
  if constexpr (sizeof(D) <= 4)
    if (count == 4 && (uintptr_t)p % (4 * sizeof(D)) == 0) {
      pack<D, 4> d;
#pragma unroll
      for (int k = 0; k < 4; k++) d.d[k] = stored<D>::out(v[k]);
      put_pack(p, d);
      return;
    }
#pragma unroll
  for (int k = 0; k < 4; k++) if (k < count) p[k] = stored<D>::out(v[k]);
}

/* fn(j, count) for the thread's columns j .. j + count - 1 */
template <class F> static __device__ __forceinline__ void each_four(int64_t n, F fn) {
  for (int64_t j = (int64_t)threadIdx.x * 4; j < n; j += (int64_t)blockDim.x * 4) fn(j, n - j < 4 ? (int)(n - j) : 4);
}

/* p = the weights, after dropout, of rows first .. of scores; keeps the rows' log-sum-exp. */
template <class D> __global__ void __launch_bounds__(THREADS) weights(const ty_k_attention a, int64_t first,
  const typename stored<D>::type *scores, D *p) {
  typedef typename stored<D>::type T;
  __shared__ two<T> s[THREADS / 32];
  int64_t head = first + blockIdx.x;
  const int64_t row = head, i = innermost(head, a.lq, row > INT32_MAX);
  const T *const line = scores + blockIdx.x * a.lk;
  const auto scores_at = [&](T *v, int64_t j, int count) {
    take_some<T>(v, line + j, count);
#pragma unroll
    for (int k = 0; k < 4; k++) if (k < count) v[k] = score<T>(a, head, i, j + k, v[k]);
  };
  two<T> seen = {(T)-INFINITY, 0};
  each_four(a.lk, [&](int64_t j, int count) {
    T v[4];
    scores_at(v, j, count);
    see<4>(seen, v, count);
  });
  seen = combine_block(seen, s, [](two<T> l, two<T> r) { return seen_by_both(l, r); });
  const bool none = seen.b == 0;           /* a query that sees no key: its result is 0, as PyTorch's */
  const T top = none ? (T)0 : seen.a, scale = none ? (T)0 : 1 / seen.b;
  each_four(a.lk, [&](int64_t j, int count) {
    T v[4], kept[4];
    scores_at(v, j, count);
    keep_some(kept, a, head, i, j);
#pragma unroll
    for (int k = 0; k < 4; k++) if (k < count) v[k] = exp_down(v[k] - top) * scale * kept[k];
    put_some(p + blockIdx.x * a.lk + j, v, count);
  });
  if (threadIdx.x == 0) ((T *)a.lse)[row] = none ? (T)INFINITY : top + log_of(seen.b);
}

/* p (NULL: not wanted) = the weights again, after dropout, and ds = the gradients of q k^T, or of the mask, from scores and dp, the
   weights' gradients; rows first .. */
template <class D> __global__ void __launch_bounds__(THREADS) slopes(const ty_k_attention a, int64_t first,
  const typename stored<D>::type *scores, const typename stored<D>::type *dp, D *p, D *ds) {
  typedef typename stored<D>::type T;
  int64_t head = first + blockIdx.x;
  const int64_t i = innermost(head, a.lq, head > INT32_MAX), at = blockIdx.x * a.lk;
  each_four(a.lk, [&](int64_t j, int count) {
    T v[4], g[4], kept[4];
    take_some<T>(v, scores + at + j, count);
    take_some<T>(g, dp + at + j, count);
    keep_some(kept, a, head, i, j);
#pragma unroll
    for (int k = 0; k < 4; k++) if (k < count) slope<T>(a, head, i, j + k, kept[k], &v[k], &g[k]);
    put_some(ds + at + j, v, count);
    if (p) put_some(p + at + j, g, count);
  });
}

/* delta[row] = the dot product of the row's result and gradient, by SIDE lanes, which take fours */
template <class T> __global__ void __launch_bounds__(THREADS) deltas(const ty_k_attention a) {
  const int lane = (int)threadIdx.x % SIDE;
  const int64_t row = (int64_t)blockIdx.x * (THREADS / SIDE) + threadIdx.x / SIDE, n = row < a.heads * a.lq ? a.dv : -1;
  int64_t head = row;
  const int64_t i = innermost(head, a.lq, row > INT32_MAX), gb = base_of(a.g, a.h, head) + i * a.g.stride[2],
    ob = base_of(a.o, a.h, head) + i * a.o.stride[2];
  const int size = bytes_of(a.dtype);
  const bool whole = sizeof(T) == 4 && a.dv % 4 == 0 && a.g.stride[3] == 1 && a.o.stride[3] == 1 &&
    fours((const char *)a.g.p + gb * size, a.dtype) && fours((const char *)a.o.p + ob * size, a.dtype);
  T sum = 0;
  for (int64_t c = lane * 4; c < n; c += SIDE * 4) {
    T g[4], o[4];
    if (whole) {
      load_four(g, a.g.p, a.dtype, gb + c);
      load_four(o, a.o.p, a.dtype, ob + c);
    } else
      for (int k = 0; k < 4; k++) {
        const bool in = c + k < n;
        g[k] = in ? load<T>(a.g.p, a.dtype, gb + (c + k) * a.g.stride[3]) : (T)0;
        o[k] = in ? load<T>(a.o.p, a.dtype, ob + (c + k) * a.o.stride[3]) : (T)0;
      }
#pragma unroll
    for (int k = 0; k < 4; k++) sum += g[k] * o[k];
  }
#pragma unroll
  for (int far = SIDE / 2; far; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
  if (lane == 0 && n >= 0) ((T *)a.delta)[row] = sum;
}

/* rng = where the generator is; then advances it. */
static __global__ void remember(ty_k_generator *g, int64_t *rng, uint64_t blocks) {
  rng[0] = (int64_t)g->seed;
  rng[1] = (int64_t)g->offset;
  g->offset += blocks;
}

/* ---- launchers ---- */

cudaError_t ty_k_attention_begin(const ty_k_attention *a, ty_k_generator *g, cudaStream_t s) {
  const uint64_t blocks = (uint64_t)(a->heads * a->lq) * ty_drop_blocks(a->lk);
  int64_t *const rng = a->rng;
  return TY_LAUNCH(remember, 1, 1, s, g, rng, blocks);
}

cudaError_t ty_k_attention_deltas(const ty_k_attention *p, cudaStream_t s) {
  const ty_k_attention a = *p;
  const unsigned blocks = blocks_for(a.heads * a.lq, THREADS / SIDE);
  return a.dtype == TY_F64 ? TY_LAUNCH(deltas<double>, blocks, THREADS, s, a) : TY_LAUNCH(deltas<float>, blocks, THREADS, s, a);
}

template <class D> static cudaError_t launch_rows(const ty_k_attention_scores &r, cudaStream_t s) {
  typedef typename stored<D>::type T;
  const ty_k_attention a = *r.a;
  const int64_t first = r.head * a.lq;
  const T *const scores = (const T *)r.scores, *const dp = (const T *)r.dp;
  D *const p = (D *)r.p, *const ds = (D *)r.ds;
  const unsigned blocks = blocks_for(r.heads * a.lq, 1), threads = (unsigned)ty_k_row_threads(a.lk);
  return dp ? TY_LAUNCH(slopes<D>, blocks, threads, s, a, first, scores, dp, p, ds)
    : TY_LAUNCH(weights<D>, blocks, threads, s, a, first, scores, p);
}

cudaError_t ty_k_attention_rows(const ty_k_attention_scores *r, cudaStream_t s) {
#define ROWS(D, G) launch_rows<D>(*r, s)
  return WITH_DTYPE(r->a->dtype, ROWS, 1);
}
