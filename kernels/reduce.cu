/* Reductions: every REDUCE row of ops.def.
 *
 * Idea: a block gives one result (its threads stride along the reduced dims), or, where the innermost dim in memory is kept, several
 * results side by side; few results of long rows are split among blocks, the last of which combines the parts. Neighbours are read 16 bytes
 * at a time. Invariant: the order of combination depends on shape, layout and alignment alone: the same bits each time. Accumulators are of
 * the type computed in. */
#include "rows.cuh"

#define THREADS 256
#define LANES 32                 /* the most lanes of a block; results side by side are as many at least */
#define WARPS ((TY_K_ROW_THREADS > THREADS ? TY_K_ROW_THREADS : THREADS) / 32)
constexpr int AHEAD = 4;         /* reads of a thread that don't wait for one another */

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define M(f) PASTE(f##_, S)
#define REDUCTION(name, INIT, MAP, COMB, FIN) \
  struct PASTE(name##_red_, S) { \
    static __device__ __forceinline__ T start() { return (T)(INIT); } \
    static __device__ __forceinline__ T take(T acc, T x) { x = (T)(MAP); return (T)(COMB); } \
    static __device__ __forceinline__ T join(T acc, T x) { return (T)(COMB); } \
    static __device__ __forceinline__ T end(T acc, T n) { (void)n; return (T)(FIN); } };
#define REDUCE(name, sg, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#define T float
#define S f32
#include "ops.def"
#undef T
#undef S
#define REDUCE(name, sg, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
#define T double
#define S f64
#include "ops.def"
#undef T
#undef S
#define REDUCE(name, sg, dt, ac, dm, init, map, comb, fin, dc) REDUCTION(name, init, map, comb, fin)
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
static __device__ __forceinline__ int64_t result_at(const ty_k_reduction &a, int64_t i) {
  return offset_of(i, a.nkeep, a.keep, a.keep_stride, a.outputs > INT32_MAX);
}
static __device__ __forceinline__ int64_t element_at(const ty_k_reduction &a, int64_t r) {
  return offset_of(r, a.nreduce, a.reduce, a.reduce_stride, a.length > INT32_MAX);
}

/* What one split reads: from .. to - 1 of the reduced positions. */
static __device__ __forceinline__ void part_of(const ty_k_reduction &a, int split, int64_t *from, int64_t *to) {
  const int64_t each = ((a.length + a.splits - 1) / a.splits + 15) / 16 * 16;      /* packs stay whole */
  *from = each * split < a.length ? each * split : a.length;
  *to = *from + each < a.length ? *from + each : a.length;
}

template <class F, class T> static __device__ __forceinline__ void put(const ty_k_reduction &a, int64_t i, int split, T acc) {
  if (a.splits > 1) ((T *)a.partial)[split * a.outputs + i] = acc;
  else store(a.o, a.out_dtype, i, F::end(acc, (T)a.length));
}

/* Results of few elements, a row of threads each. G: 4 where the elements are a multiple of four. */
template <class F, class T, int G, int EACH> __global__ void __launch_bounds__(TY_K_ROW_THREADS) short_rows(const ty_k_reduction a) {
  __shared__ T sum[WARPS];
  const int64_t row = row_of_thread(), n = row < a.outputs ? a.length : 0, base = n ? result_at(a, row) : 0;
  const bool dense = a.nreduce == 1 && a.reduce_stride[0] == 1;
  T acc = F::start();
  if (G == 4 && dense && sizeof(T) == 4 && fours((const char *)a.x + base * bytes_of(a.dtype), a.dtype)) {
#pragma unroll
    for (int e = 0; e < EACH; e += 4) {
      T v[4];
      if (row_place<G>(e) >= (int)n) continue;
      load_four(v, a.x, a.dtype, base + row_place<G>(e));
      for (int k = 0; k < 4; k++) acc = F::take(acc, v[k]);
    }
  } else EACH_OF_ROW(e, j, n) acc = F::take(acc, load<T>(a.x, a.dtype, base + (dense ? j : element_at(a, j))));
  acc = combine_block(acc, sum, F::join);
  if (threadIdx.x == 0 && row < a.outputs) put<F>(a, row, 0, acc);
}

/* Whether this block is the last of those that have a part of its results. */
static __device__ __forceinline__ bool last_part(const ty_k_reduction &a) {
  return a.splits > 1 && last_block(a.ticket + blockIdx.x, gridDim.y);
}

/* The last block of a row combines its parts. sum: of WARPS. */
template <class F, class T> static __device__ __forceinline__ void finish_rows(const ty_k_reduction &a, T *sum) {
  if (!last_part(a)) return;
  T acc = F::start();
  for (int k = threadIdx.x; k < a.splits; k += THREADS) acc = F::join(acc, ((const T *)a.partial)[k * a.outputs + blockIdx.x]);
  acc = combine_block(acc, sum, F::join);
  if (threadIdx.x == 0) store(a.o, a.out_dtype, blockIdx.x, F::end(acc, (T)a.length));
}

/* Takes the elements at where(r), for r = from, from + step, ... below to, in this order. AHEAD reads don't wait for one another: a branch
 * on the dtype between them would make them wait. */
template <class F, class T, class W> static __device__ __forceinline__ T take_all(const ty_k_reduction &a, int64_t from, int64_t to,
  int step, const W &where) {
  T acc = F::start();
  int64_t r = from;
  const bool single = a.dtype == TY_F32, half = a.dtype == TY_F16;
  if (sizeof(T) == 4 && short_float(a.dtype))
    for (; r + (AHEAD - 1) * step < to; r += AHEAD * step) {
      uint32_t bits[AHEAD];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int64_t at = where(r + u * step);
        bits[u] = single ? ((const uint32_t *)a.x)[at] : ((const uint16_t *)a.x)[at];
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        acc = F::take(acc, (T)(half ? half_to_float((uint16_t)bits[u]) : ty_float(single ? bits[u] : bits[u] << 16)));
    }
  for (; r < to; r += step) acc = F::take(acc, load<T>(a.x, a.dtype, where(r)));
  return acc;
}

/* A block for each result and split. */
template <class F, class T> __global__ void __launch_bounds__(THREADS) rows(const ty_k_reduction a) {
  __shared__ T sum[WARPS];
  const int64_t i = blockIdx.x;
  const int64_t base = result_at(a, i);
  int64_t from, to;
  part_of(a, blockIdx.y, &from, &to);
  T acc = take_all<F, T>(a, from + threadIdx.x, to, THREADS, [&](int64_t r) { return base + element_at(a, r); });
  acc = combine_block(acc, sum, F::join);
  if (threadIdx.x == 0) put<F>(a, i, blockIdx.y, acc);
  finish_rows<F>(a, sum);
}

/* A pack is combined by itself first: fewer roundings beside a large sum. */
template <class F, class D, int N> static __device__ __forceinline__ typename stored<D>::type of_pack(const pack<D, N> &p) {
  typename stored<D>::type acc = F::start();
#pragma unroll
  for (int k = 0; k < N; k++) acc = F::take(acc, stored<D>::in(p.d[k]));
  return acc;
}

/* rows for floats whose packs of 16 bytes are aligned: element_at, which divides where several dims are reduced, is called once a pack. */
template <class F, class D> __global__ void __launch_bounds__(THREADS) dense_rows(const ty_k_reduction a) {
  typedef typename stored<D>::type T;
  constexpr int N = 16 / sizeof(D);
  __shared__ T sum[WARPS];
  const int64_t i = blockIdx.x;
  const D *const row = (const D *)a.x + result_at(a, i);
  int64_t from, to;
  part_of(a, blockIdx.y, &from, &to);
  T acc[AHEAD];
#pragma unroll
  for (int u = 0; u < AHEAD; u++) acc[u] = F::start();
  int64_t j = from + (int64_t)threadIdx.x * N;
  for (; j + (AHEAD - 1) * THREADS * N < to; j += AHEAD * THREADS * N) {
    pack<D, N> p[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) p[u] = take_pack<D, N>(row + element_at(a, j + u * THREADS * N));
#pragma unroll
    for (int u = 0; u < AHEAD; u++) acc[u] = F::join(acc[u], of_pack<F>(p[u]));
  }
  for (; j < to; j += THREADS * N) acc[0] = F::join(acc[0], of_pack<F>(take_pack<D, N>(row + element_at(a, j))));
#pragma unroll
  for (int u = 1; u < AHEAD; u++) acc[0] = F::join(acc[0], acc[u]);
  const T all = combine_block(acc[0], sum, F::join);
  if (threadIdx.x == 0) put<F>(a, i, blockIdx.y, all);
  finish_rows<F>(a, sum);
}

/* 1 << lanes threads side by side have N results each; the block's others have further elements of these. */
template <class F, class T, class D, int N> __global__ void __launch_bounds__(THREADS) columns(const ty_k_reduction a, int lanes) {
  __shared__ T sum[THREADS * N];
  const int t = (int)threadIdx.x, x = t & ((1 << lanes) - 1), y = t >> lanes, tall = THREADS >> lanes, wide = N << lanes;
  const int64_t first = (int64_t)blockIdx.x * wide, i = first + x * N;
  int64_t from, to;
  part_of(a, blockIdx.y, &from, &to);
  T acc[N];
#pragma unroll
  for (int k = 0; k < N; k++) acc[k] = F::start();
  if (i < a.outputs) {
    const int64_t base = result_at(a, i);
    if constexpr (N > 1) {                 /* one reduced dim */
      const D *const p = (const D *)a.x + base;
#pragma unroll AHEAD
      for (int64_t r = from + y; r < to; r += tall) {
        const pack<D, N> v = take_pack<D, N>(p + r * a.reduce_stride[0]);
#pragma unroll
        for (int k = 0; k < N; k++) acc[k] = F::take(acc[k], stored<D>::in(v.d[k]));
      }
    } else acc[0] = take_all<F, T>(a, from + y, to, tall, [&](int64_t r) { return base + element_at(a, r); });
  }
#pragma unroll
  for (int k = 0; k < N; k++) sum[y * wide + x * N + k] = acc[k];
  __syncthreads();
  const int c = t % wide, turns = THREADS / wide, w = t / wide;        /* wide is at most THREADS */
  T all = F::start();
  for (int k = w; k < tall; k += turns) all = F::join(all, sum[k * wide + c]);
  all = combine_turns(all, sum, c, w, wide, turns, F::join);
  if (w == 0 && first + c < a.outputs) put<F>(a, first + c, blockIdx.y, all);
  if (!last_part(a)) return;
  all = F::start();
  if (first + c < a.outputs) {
#pragma unroll 16
    for (int k = w; k < a.splits; k += turns) all = F::join(all, ((const T *)a.partial)[k * a.outputs + first + c]);
  }
  all = combine_turns(all, sum, c, w, wide, turns, F::join);
  if (w == 0 && first + c < a.outputs) store(a.o, a.out_dtype, first + c, F::end(all, (T)a.length));
}

/* ---- launchers ---- */

static bool side_by_side(const ty_k_reduction *a) {
  return a->nkeep && a->outputs >= LANES && (!a->nreduce || a->keep_stride[a->nkeep - 1] < a->reduce_stride[a->nreduce - 1]);
}

/* Whether the innermost dim, of `inner` elements, comes in packs of 16 bytes: all other strides are multiples of a pack. */
static bool by_packs(const ty_k_reduction *a, int64_t inner, int skip_keep, int skip_reduce) {
  const int n = 16 / bytes_of(a->dtype);
  bool fit = short_float(a->dtype) && inner % n == 0 && (uintptr_t)a->x % 16 == 0;
  for (int d = 0; d < a->nkeep - skip_keep; d++) fit = fit && a->keep_stride[d] % n == 0;
  for (int d = 0; d < a->nreduce - skip_reduce; d++) fit = fit && a->reduce_stride[d] % n == 0;
  return fit;
}
static bool packed_columns(const ty_k_reduction *a) {
  return side_by_side(a) && a->nreduce == 1 && a->keep_stride[a->nkeep - 1] == 1 && by_packs(a, a->keep[a->nkeep - 1], 1, 0);
}
static bool packed_rows(const ty_k_reduction *a) {
  const int inner = a->nreduce - 1;
  return inner >= 0 && a->reduce_stride[inner] == 1 && by_packs(a, a->reduce[inner], 0, 1);
}
/* Results of a lane; and the logarithm, to base 2, of the lanes that there are results for. */
static int of_lane(const ty_k_reduction *a) { return packed_columns(a) ? 16 / bytes_of(a->dtype) : 1; }
static int lanes_of(const ty_k_reduction *a) {
  int lanes = 0;
  while (1 << lanes < LANES && ((int64_t)of_lane(a) << lanes) < a->outputs) lanes++;
  return lanes;
}
static int64_t blocks_of(const ty_k_reduction *a) {
  const int64_t each = (int64_t)of_lane(a) << lanes_of(a);
  return side_by_side(a) ? (a->outputs + each - 1) / each : a->outputs;
}

int ty_k_reduce_splits(const ty_k_reduction *a) {
  const int64_t blocks = blocks_of(a);
  int64_t splits = a->length / (side_by_side(a) ? (THREADS >> lanes_of(a)) * 4 : THREADS * 16);    /* each thread has enough to do */
  if (blocks > TY_K_TICKETS || (!side_by_side(a) && a->length <= TY_K_ROW)) return 1;
  const int64_t most = side_by_side(a) ? 512 : 2048;        /* of columns, a thread of the last block reads all parts, one by one */
  if (splits * blocks > most) splits = most / blocks;
  return splits < 1 ? 1 : (int)splits;
}

template <class F, class T, class D> static cudaError_t launch_packs(const ty_k_reduction &p, bool column, cudaStream_t s) {
  const ty_k_reduction a = p;
  constexpr int N = 16 / sizeof(D);
  auto side = columns<F, T, D, N>;
  auto row = dense_rows<F, D>;
  const int lanes = lanes_of(&a);
  return column ? TY_LAUNCH(side, dim3(blocks_for(a.outputs, (int64_t)N << lanes), (unsigned)a.splits), THREADS, s, a, lanes)
    : TY_LAUNCH(row, dim3(blocks_for(a.outputs, 1), (unsigned)a.splits), THREADS, s, a);
}

template <class F, class T> static cudaError_t launch(const ty_k_reduction *r, cudaStream_t s) {
  const ty_k_reduction a = *r;
  const bool column = side_by_side(r), few = !column && a.length <= TY_K_ROW;
  if constexpr (sizeof(T) == 4) {
    if (!few && (column ? packed_columns(r) : packed_rows(r)))
      return a.dtype == TY_F32 ? launch_packs<F, T, float>(a, column, s) : a.dtype == TY_F16
        ? launch_packs<F, T, half16>(a, column, s) : launch_packs<F, T, brain16>(a, column, s);
  }
  auto row = rows<F, T>;
  auto side = columns<F, T, T, 1>;
  const int lanes = lanes_of(r);
  if (column) return TY_LAUNCH(side, dim3(blocks_for(a.outputs, 1 << lanes), (unsigned)a.splits), THREADS, s, a, lanes);
  if (few) {
    constexpr int FEW = sizeof(T) == 4 ? ROW_FEW : ROW_EACH;       /* other types are rare, and each kernel takes its time to build */
    auto fit = a.length % 4 == 0 ? (few_each(a.length) ? short_rows<F, T, 4, FEW> : short_rows<F, T, 4, ROW_EACH>)
      : few_each(a.length) ? short_rows<F, T, 1, FEW> : short_rows<F, T, 1, ROW_EACH>;
    return TY_LAUNCH(fit, blocks_of_rows(a.outputs, a.length), threads_of_rows(a.outputs, a.length), s, a);
  }
  return TY_LAUNCH(row, dim3(blocks_for(a.outputs, 1), (unsigned)a.splits), THREADS, s, a);
}

cudaError_t ty_k_reduce(const ty_k_reduction *a, cudaStream_t s) {
  switch (a->op) {
#define REDUCE(name, ...) \
  case TY_OP_##name: \
    return a->k == TY_IN_I64 ? launch<name##_red_i64, int64_t>(a, s) : a->k == TY_IN_F64 ? launch<name##_red_f64, double>(a, s) \
      : launch<name##_red_f32, float>(a, s);
#include "ops.def"
    default: return cudaErrorInvalidValue;
  }
}
