/* Reductions: every REDUCE row of ops.def.
 *
 * Idea: a block gives one result (its threads stride along the reduced dims), or, where neighbours in memory are kept, 32 results side by
 * side; few results of long rows are split among blocks, the last of which combines the parts. Invariant: the order of combination
 * depends on the shape alone: the same bits each time. Accumulators are of the type computed in. */
#include "rows.cuh"

#define THREADS 256
#define WIDE 32
#define TALL (THREADS / WIDE)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define M(f) PASTE(f##_, S)
#define REDUCTION(name, INIT, MAP, COMB, FIN) \
  struct PASTE(name##_red_, S) { \
    static __device__ __forceinline__ T start() { return (T)(INIT); } \
    static __device__ __forceinline__ T take(T acc, T x) { x = (T)(MAP); return (T)(COMB); } \
    static __device__ __forceinline__ T join(T acc, T x) { return (T)(COMB); } \
    static __device__ __forceinline__ T end(T acc, T n) { (void)n; return (T)(FIN); } };
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#define T float
#define S f32
#include "ops.def"
#undef T
#undef S
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#define T double
#define S f64
#include "ops.def"
#undef T
#undef S
#define REDUCE(name, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#define T int64_t
#define S i64
#include "ops.def"
#undef T
#undef S

static __device__ __forceinline__ int64_t offset_of(int64_t i, int n, const int64_t *shape, const int64_t *stride, bool wide) {
  int64_t at = 0;
  for (int d = n - 1; d > 0; d--) at += innermost(i, shape[d], wide) * stride[d];
  return n ? at + i * stride[0] : 0;
}
static __device__ __forceinline__ int64_t result_at(const ty_k_reduction &a, int64_t i) { return offset_of(i, a.nkeep, a.keep, a.keep_stride, a.outputs > INT32_MAX); }
static __device__ __forceinline__ int64_t element_at(const ty_k_reduction &a, int64_t r) { return offset_of(r, a.nreduce, a.reduce, a.reduce_stride, a.length > INT32_MAX); }

/* What one split reads: from .. to - 1 of the reduced positions. */
static __device__ __forceinline__ void part_of(const ty_k_reduction &a, int split, int64_t *from, int64_t *to) {
  const int64_t each = (a.length + a.splits - 1) / a.splits;
  *from = each * split < a.length ? each * split : a.length;
  *to = *from + each < a.length ? *from + each : a.length;
}

template <class F, class T> static __device__ __forceinline__ void put(const ty_k_reduction &a, int64_t i, int split, T acc) {
  if (a.splits > 1) ((T *)a.partial)[split * a.outputs + i] = acc;
  else store(a.o, a.out_dtype, i, F::end(acc, (T)a.length));
}

/* A block for each result of few elements. */
template <class F, class T> __global__ void __launch_bounds__(TY_K_ROW_THREADS) short_rows(const ty_k_reduction a) {
  __shared__ T sum[TY_K_ROW_THREADS];
  const int64_t base = result_at(a, blockIdx.x);
  T acc = F::start();
  EACH_OF_ROW(e, j, a.length) acc = F::take(acc, load<T>(a.x, a.dtype, base + element_at(a, j)));
  acc = combine_row(acc, sum, F::join);
  if (threadIdx.x == 0) put<F>(a, blockIdx.x, 0, acc);
}

/* All parts, by one block. sum: of THREADS. */
template <class F, class T> static __device__ __forceinline__ void combine(const ty_k_reduction &a, T *sum) {
  const T *part = (const T *)a.partial;
  const int t = threadIdx.x;
  if (a.outputs >= WIDE) {
    for (int64_t i = t; i < a.outputs; i += THREADS) {
      T acc = F::start();
      for (int k = 0; k < a.splits; k++) acc = F::join(acc, part[k * a.outputs + i]);
      store(a.o, a.out_dtype, i, F::end(acc, (T)a.length));
    }
    return;
  }
  for (int64_t i = 0; i < a.outputs; i++) {
    T acc = F::start();
    for (int k = t; k < a.splits; k += THREADS) acc = F::join(acc, part[k * a.outputs + i]);
    acc = combine_row(acc, sum, F::join);
    if (t == 0) store(a.o, a.out_dtype, i, F::end(acc, (T)a.length));
  }
}

static __device__ __forceinline__ bool last_part(const ty_k_reduction &a) { return a.splits > 1 && last_block(a.ticket, gridDim.x * gridDim.y); }

/* A block for each result and split. */
template <class F, class T> __global__ void __launch_bounds__(THREADS) rows(const ty_k_reduction a) {
  __shared__ T sum[THREADS];
  const int64_t i = blockIdx.x;
  const int64_t base = result_at(a, i);
  int64_t from, to;
  part_of(a, blockIdx.y, &from, &to);
  T acc = F::start();
  for (int64_t r = from + threadIdx.x; r < to; r += THREADS) acc = F::take(acc, load<T>(a.x, a.dtype, base + element_at(a, r)));
  acc = combine_row(acc, sum, F::join);
  if (threadIdx.x == 0) put<F>(a, i, blockIdx.y, acc);
  if (last_part(a)) combine<F>(a, sum);
}

/* WIDE results side by side in a block of WIDE x TALL threads. */
template <class F, class T> __global__ void __launch_bounds__(THREADS) columns(const ty_k_reduction a) {
  __shared__ T sum[THREADS];
  const int x = threadIdx.x % WIDE, y = threadIdx.x / WIDE;
  const int64_t i = (int64_t)blockIdx.x * WIDE + x;
  int64_t from, to;
  part_of(a, blockIdx.y, &from, &to);
  T acc = F::start();
  if (i < a.outputs) {
    const int64_t base = result_at(a, i);
    for (int64_t r = from + y; r < to; r += TALL) acc = F::take(acc, load<T>(a.x, a.dtype, base + element_at(a, r)));
  }
  sum[y * WIDE + x] = acc;
  __syncthreads();
  if (y == 0 && i < a.outputs) {
    for (int k = 1; k < TALL; k++) acc = F::join(acc, sum[k * WIDE + x]);
    put<F>(a, i, blockIdx.y, acc);
  }
  if (last_part(a)) combine<F>(a, sum);
}

/* ---- launchers ---- */

int ty_k_reduce_splits(int64_t outputs, int64_t length) {
  int64_t splits = length / (THREADS * 16);              /* each thread has enough to do */
  if (outputs >= 1024) return 1;
  if (splits * outputs > 2048) splits = 2048 / outputs;
  return splits < 1 ? 1 : (int)splits;
}

template <class F, class T> static cudaError_t launch(const ty_k_reduction *r, cudaStream_t s) {
  const ty_k_reduction a = *r;
  const bool side_by_side = a.nkeep && a.outputs >= WIDE && (!a.nreduce || a.keep_stride[a.nkeep - 1] < a.reduce_stride[a.nreduce - 1]);
  auto row = rows<F, T>, column = columns<F, T>, small = short_rows<F, T>;
  if (side_by_side) return TY_LAUNCH(column, dim3(blocks_for(a.outputs, WIDE), (unsigned)a.splits), THREADS, s, a);
  if (a.length <= TY_K_ROW) return TY_LAUNCH(small, blocks_for(a.outputs, 1), ty_k_row_threads(a.length), s, a);
  return TY_LAUNCH(row, dim3(blocks_for(a.outputs, 1), (unsigned)a.splits), THREADS, s, a);
}

cudaError_t ty_k_reduce(const ty_k_reduction *a, cudaStream_t s) {
  switch (a->op) {
#define REDUCE(name, ...) case TY_OP_##name: return a->k == 2 ? launch<name##_red_i64, int64_t>(a, s) : a->k ? launch<name##_red_f64, double>(a, s) : launch<name##_red_f32, float>(a, s);
#include "ops.def"
    default: return cudaErrorInvalidValue;
  }
}
