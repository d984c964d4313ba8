/* softmax(q k^T * scale + mask) v and its gradients, tile by tile (Dao et al. 2022), for any dtype, head size, mask and strides.
 *
 * Idea: a block computes 32 rows, four threads a row, by tiles of 32 x 32 in shared memory. For the result and q's gradient rows are
 * queries and the block goes along the keys; for k's and v's gradients it is the other way round; so no sum needs atomics. Backward
 * computes the probabilities again from the queries' log-sum-exp. Invariant: all threads of a block reach every barrier; beyond a matrix's
 * edge a tile holds 0, or -inf for scores. */
#include "attention.cuh"

#define SIDE 32
#define LANES 4
#define THREADS (SIDE * LANES)
#define EACH (SIDE / LANES)     /* columns of a tile that a thread computes: lane, lane + 4, ... */
#define WIDTH 4                 /* tiles of columns that a block computes; the grid's second dim counts more */

template <class T> using tile = T (*)[SIDE + 1];

/* to = rows r0.. and columns c0.. of one head, 0 beyond its rows and width */
template <class T> static __device__ __forceinline__ void fetch(tile<T> to, const ty_k_heads &t, int dtype,
  int64_t base, int64_t r0, int64_t rows, int64_t c0, int64_t width) {
  for (int i = (int)threadIdx.x; i < SIDE * SIDE; i += THREADS) {
    const int64_t r = r0 + i / SIDE, c = c0 + i % SIDE;
    to[i / SIDE][i % SIDE] = r < rows && c < width ? load<T>(t.p, dtype, base + r * t.stride[2] + c * t.stride[3]) : (T)0;
  }
}

/* dot[k] = row y of a's tile times row lane + 4 k of b's, over width columns */
template <class T> static __device__ __forceinline__ void dots(T *dot, tile<T> ta, tile<T> tb, int dtype,
                                                               const ty_k_heads &a, int64_t abase, int64_t a0,
                                                               int64_t an, const ty_k_heads &b, int64_t bbase,
                                                               int64_t b0, int64_t bn, int64_t width) {
  const int y = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
#pragma unroll
  for (int k = 0; k < EACH; k++) dot[k] = 0;
  for (int64_t c = 0; c < width; c += SIDE) {
    fetch<T>(ta, a, dtype, abase, a0, an, c, width);
    fetch<T>(tb, b, dtype, bbase, b0, bn, c, width);
    __syncthreads();
    for (int i = 0; i < SIDE; i++)
#pragma unroll
      for (int k = 0; k < EACH; k++) dot[k] += ta[y][i] * tb[lane + LANES * k][i];
    __syncthreads();
  }
}

/* acc[w][k] += row y of p times column lane + 4 k of tile w of t's rows r0.. */
template <class T> static __device__ __forceinline__ void gather(T (*acc)[EACH], tile<T> p, tile<T> room,
  const ty_k_heads &t, int dtype, int64_t base, int64_t r0, int64_t rows, int64_t c0, int64_t width) {
  const int y = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
#pragma unroll                  /* so that acc stays in registers */
  for (int w = 0; w < WIDTH; w++) {
    if (c0 + w * SIDE >= width) continue;
    fetch<T>(room, t, dtype, base, r0, rows, c0 + w * SIDE, width);
    __syncthreads();
    for (int i = 0; i < SIDE; i++)
#pragma unroll
      for (int k = 0; k < EACH; k++) acc[w][k] += p[y][i] * room[i][lane + LANES * k];
    __syncthreads();
  }
}

template <class T> static __device__ __forceinline__ void put(const T (*acc)[EACH], const ty_k_heads &t, int dtype,
  int64_t base, int64_t row, int64_t c0, int64_t width, T factor) {
#pragma unroll
  for (int w = 0; w < WIDTH; w++)
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int64_t c = c0 + w * SIDE + (int)threadIdx.x % LANES + LANES * k;
      if (c < width) store((void *)t.p, dtype, base + row * t.stride[2] + c * t.stride[3], acc[w][k] * factor);
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) forward(const ty_k_attention a) {
  __shared__ T ta[SIDE][SIDE + 1], tb[SIDE][SIDE + 1], p[SIDE][SIDE + 1];
  const int y = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
  const int64_t tiles = (a.lq + SIDE - 1) / SIDE, head = blockIdx.x / tiles, q0 = blockIdx.x % tiles * SIDE, i = q0 + y,
    c0 = (int64_t)blockIdx.y * WIDTH * SIDE;
  const int64_t qb = base_of(a.q, a.h, head), kb = base_of(a.k, a.h, head), vb = base_of(a.v, a.h, head);
  const int64_t end = a.causal && q0 + SIDE < a.lk ? q0 + SIDE : a.lk;
  T dot[EACH], acc[WIDTH][EACH] = {}, top = (T)-INFINITY, sum = 0;
  for (int64_t k0 = 0; k0 < end; k0 += SIDE) {
    dots<T>(dot, ta, tb, a.dtype, a.q, qb, q0, a.lq, a.k, kb, k0, a.lk, a.d);
#pragma unroll
    for (int k = 0; k < EACH; k++) p[y][lane + LANES * k] = score<T>(a, head, i, k0 + lane + LANES * k, dot[k]);
    __syncthreads();
    T m = top, part = 0;
    for (int j = 0; j < SIDE; j++) m = p[y][j] > m || p[y][j] != p[y][j] ? p[y][j] : m;
    const T shift = m == (T)-INFINITY ? (T)0 : m, old = top == (T)-INFINITY ? (T)0 : exp_of(top - shift);
    __syncthreads();                       /* all have read the scores */
    for (int k = 0; k < EACH; k++) p[y][lane + LANES * k] = exp_of(p[y][lane + LANES * k] - shift);
    __syncthreads();
    for (int j = 0; j < SIDE; j++) part += p[y][j];
    __syncthreads();
    sum = sum * old + part;
    top = m;
#pragma unroll
    for (int w = 0; w < WIDTH; w++)
#pragma unroll
      for (int k = 0; k < EACH; k++) acc[w][k] *= old;
    if (a.dropout > 0)
      for (int k = 0; k < EACH; k++) p[y][lane + LANES * k] *= keep<T>(a, head, i, k0 + lane + LANES * k);
    gather<T>(acc, p, ta, a.v, a.dtype, vb, k0, a.lk, c0, a.dv);
  }
  if (i >= a.lq) return;
  const bool none = sum == 0;              /* a query that sees no key: its result is 0, as PyTorch's */
  put<T>(acc, a.o, a.dtype, base_of(a.o, a.h, head), i, c0, a.dv, none ? (T)0 : 1 / sum);
  if (blockIdx.y == 0 && lane == 0) ((T *)a.lse)[head * a.lq + i] = none ? (T)INFINITY : top + log_of(sum);
}

template <class T> __global__ void __launch_bounds__(THREADS) query_gradient(const ty_k_attention a) {
  __shared__ T ta[SIDE][SIDE + 1], tb[SIDE][SIDE + 1], ds[SIDE][SIDE + 1];
  const int y = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
  const int64_t tiles = (a.lq + SIDE - 1) / SIDE, head = blockIdx.x / tiles, q0 = blockIdx.x % tiles * SIDE, i = q0 + y,
    c0 = (int64_t)blockIdx.y * WIDTH * SIDE;
  const int64_t qb = base_of(a.q, a.h, head), kb = base_of(a.k, a.h, head), vb = base_of(a.v, a.h, head), gb = base_of(a.g, a.h, head);
  const int64_t end = a.causal && q0 + SIDE < a.lk ? q0 + SIDE : a.lk;
  T dot[EACH], dp[EACH], acc[WIDTH][EACH] = {};
  for (int64_t k0 = 0; k0 < end; k0 += SIDE) {
    dots<T>(dot, ta, tb, a.dtype, a.q, qb, q0, a.lq, a.k, kb, k0, a.lk, a.d);
    dots<T>(dp, ta, tb, a.dtype, a.g, gb, q0, a.lq, a.v, vb, k0, a.lk, a.dv);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int64_t j = k0 + lane + LANES * k;
      slope<T>(a, head, i, j, keep<T>(a, head, i, j), &dot[k], &dp[k]);
      ds[y][lane + LANES * k] = dot[k];
    }
    gather<T>(acc, ds, ta, a.k, a.dtype, kb, k0, a.lk, c0, a.d);
  }
  if (i < a.lq) put<T>(acc, a.dq, a.dtype, base_of(a.dq, a.h, head), i, c0, a.d, (T)1);
}

template <class T> __global__ void __launch_bounds__(THREADS) key_gradients(const ty_k_attention a) {
  __shared__ T ta[SIDE][SIDE + 1], tb[SIDE][SIDE + 1], ds[SIDE][SIDE + 1], p[SIDE][SIDE + 1];
  const int y = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
  const int64_t tiles = (a.lk + SIDE - 1) / SIDE, head = blockIdx.x / tiles, k0 = blockIdx.x % tiles * SIDE, j = k0 + y,
    c0 = (int64_t)blockIdx.y * WIDTH * SIDE;
  const int64_t qb = base_of(a.q, a.h, head), kb = base_of(a.k, a.h, head), vb = base_of(a.v, a.h, head), gb = base_of(a.g, a.h, head);
  T dot[EACH], dp[EACH], acc_k[WIDTH][EACH] = {}, acc_v[WIDTH][EACH] = {};
  for (int64_t q0 = a.causal ? k0 : 0; q0 < a.lq; q0 += SIDE) {    /* earlier queries don't see these keys */
    dots<T>(dot, ta, tb, a.dtype, a.k, kb, k0, a.lk, a.q, qb, q0, a.lq, a.d);
    dots<T>(dp, ta, tb, a.dtype, a.v, vb, k0, a.lk, a.g, gb, q0, a.lq, a.dv);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int64_t i = q0 + lane + LANES * k;
      slope<T>(a, head, i, j, keep<T>(a, head, i, j), &dot[k], &dp[k]);
      ds[y][lane + LANES * k] = dot[k];
      p[y][lane + LANES * k] = dp[k];
    }
    gather<T>(acc_k, ds, ta, a.q, a.dtype, qb, q0, a.lq, c0, a.d);
    gather<T>(acc_v, p, tb, a.g, a.dtype, gb, q0, a.lq, c0, a.dv);
  }
  if (j >= a.lk) return;
  put<T>(acc_k, a.dk, a.dtype, base_of(a.dk, a.h, head), j, c0, a.d, (T)1);
  put<T>(acc_v, a.dvalue, a.dtype, base_of(a.dvalue, a.h, head), j, c0, a.dv, (T)1);
}

/* ---- launchers ---- */

static dim3 grid_of(int64_t heads, int64_t rows, int64_t columns) {
  if (columns < 1) columns = 1;            /* without columns, the log-sum-exp is still wanted */
  return dim3((unsigned)(heads * ((rows + SIDE - 1) / SIDE)), (unsigned)((columns + WIDTH * SIDE - 1) / (WIDTH * SIDE)));
}

template <class T> static cudaError_t attend(const ty_k_attention &a, cudaStream_t s) {
  if (!a.g.p) return TY_LAUNCH(forward<T>, grid_of(a.heads, a.lq, a.dv), THREADS, s, a);
  cudaError_t e = cudaSuccess;
  if (a.d) e = TY_LAUNCH(query_gradient<T>, grid_of(a.heads, a.lq, a.d), THREADS, s, a);
  if (e == cudaSuccess) e = TY_LAUNCH(key_gradients<T>, grid_of(a.heads, a.lk, a.d > a.dv ? a.d : a.dv), THREADS, s, a);
  return e;
}

cudaError_t ty_k_attend(const ty_k_attention *p, cudaStream_t s) {
  const ty_k_attention a = *p;
  if (a.heads * ((a.lq > a.lk ? a.lq : a.lk) / SIDE + 1) > INT32_MAX) return cudaErrorInvalidValue;
  return a.dtype == TY_F64 ? attend<double>(a, s) : attend<float>(a, s);
}
