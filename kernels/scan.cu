/* Scans along a dim, and extremes with their places.
 *
 * Idea: a piece, a value and its place, is what has been seen of a stretch of a line; two pieces join into one. Where lines are side by
 * side in memory, a thread goes along each; else a block does, tile by tile. Where that would be few blocks, lines are cut into sections: a
 * first launch makes each one piece, a second begins each section from those before it. Invariant: the order of joining depends on the
 * shape alone; floats in float64. */
#include "rows.cuh"

#define THREADS 128              /* lines of a block, where a thread has one */
#define WIDE 256                 /* threads for a line, at most */
#define EACH 4                   /* neighbours of a thread in a tile */
#define SIDE_BY_SIDE 8           /* neighbouring lines that are read together well enough */
#define ENOUGH 1024              /* blocks */

template <class T> struct piece { T v; int64_t place; };                 /* place 0: of no element */
template <class T> static __device__ __forceinline__ piece<T> from_lane_before(piece<T> p, int up) {
  return exchanged(p, [=](auto w) { return __shfl_up_sync(0xffffffffu, w, up); });
}

/* log(exp(a) + exp(b)) */
static __device__ __forceinline__ double add_logs(double a, double b) {
  if (a != a || b != b) return a != a ? a : b;
  if (a == b) return a == -INFINITY ? a : a + 0.6931471805599453;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* Each struct joins two pieces of a line: r comes after l, except in extremes, where they come in any order. */
#define JOIN template <class T> static __device__ __forceinline__ piece<T> of(\
  [[maybe_unused]] const ty_k_scan &a, const piece<T> &l, const piece<T> &r)
struct sums { JOIN { return {l.v + r.v, r.place}; } };
struct products { JOIN { return {l.v * r.v, r.place}; } };
struct log_sums { JOIN { return {add_logs(l.v, r.v), r.place}; } };
struct extremes {                          /* NaN wins; of equals the later in cummax and cummin, else the earlier */
  JOIN {
    const bool nan = r.v != r.v, most = a.op == TY_OP_cummax || a.op == TY_OP_max_dim, later = a.op == TY_OP_cummax || a.op == TY_OP_cummin;
    bool wins = most ? r.v > l.v : r.v < l.v;
    if (nan != (l.v != l.v)) wins = nan;
    else if (nan || r.v == l.v) wins = later == (r.place > l.place);
    return wins ? r : l;
  }
};
template <class F, class T> static __device__ __forceinline__ piece<T> join(const ty_k_scan &a, const piece<T> &l, const piece<T> &r) {
  return l.place && r.place ? F::of(a, l, r) : l.place ? l : r;
}

static __host__ __device__ __forceinline__ bool one_result(const ty_k_scan &a) { return a.op == TY_OP_max_dim || a.op == TY_OP_min_dim; }

static __device__ __forceinline__ int64_t base_of(const ty_k_scan &a, int64_t line) {
  return line / a.inner * a.n * a.inner + line % a.inner;
}
template <class T> static __device__ __forceinline__ piece<T> *part(const ty_k_scan &a, int64_t line, int64_t section) {
  return (piece<T> *)a.partial + section * a.lines + line;
}
template <class T> static __device__ __forceinline__ void put(const ty_k_scan &a, int64_t i, const piece<T> &p) {
  store(a.o, a.dtype, i, p.v);
  if (a.place) a.place[i] = p.place;
}
static __device__ __forceinline__ int64_t end_of(const ty_k_scan &a, int64_t from) { return from + a.each < a.n ? from + a.each : a.n; }
/* Stores a section's piece: a line's result, or, of several sections, a part of it. */
template <class T> static __device__ __forceinline__ void put_part(const ty_k_scan &a, int64_t line, const piece<T> &p) {
  if (a.sections > 1) *part<T>(a, line, blockIdx.y) = p;
  else put(a, line, p);
}

/* ---- a thread for each line and section ---- */

template <class F, class T> __global__ void __launch_bounds__(THREADS) line_parts(const ty_k_scan a) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x, from = blockIdx.y * a.each, to = end_of(a, from);
  if (line >= a.lines) return;
  const int64_t base = base_of(a, line);
  piece<T> all = {0, 0};
  for (int64_t j = from; j < to; j++) all = join<F>(a, all, piece<T>{load<T>(a.x, a.dtype, base + j * a.inner), j + 1});
  put_part(a, line, all);
}

template <class F, class T> __global__ void __launch_bounds__(THREADS) line_scan(const ty_k_scan a) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x, from = blockIdx.y * a.each, to = end_of(a, from);
  if (line >= a.lines) return;
  const int64_t base = base_of(a, line);
  piece<T> all = {0, 0};
  for (int section = 0; section < (int)blockIdx.y; section++) all = join<F>(a, all, *part<T>(a, line, section));
  for (int64_t j = from; j < to; j++) {
    const int64_t i = base + j * a.inner;
    all = join<F>(a, all, piece<T>{load<T>(a.x, a.dtype, i), j + 1});
    put(a, i, all);
  }
}

/* ---- a block for each line and section ---- */

/* x = the thread's neighbours of a tile, those before `to`; packed: they may be read at once. */
template <class T> static __device__ __forceinline__ void take_each(const ty_k_scan &a, T *x, int64_t base, int64_t j, int64_t to,
  bool packed) {
  if (packed && j + EACH <= to) load_four(x, a.x, a.dtype, base + j);
  else for (int k = 0; k < EACH; k++) if (j + k < to) x[k] = load<T>(a.x, a.dtype, base + (j + k) * a.inner);
}
static __device__ __forceinline__ bool packs_of(const ty_k_scan &a, const void *p, int64_t base) {
  return a.inner == 1 && fours((const char *)p + base * bytes_of(a.dtype), a.dtype);
}

template <class F, class T> __global__ void __launch_bounds__(WIDE) row_parts(const ty_k_scan a) {
  __shared__ piece<T> s[WIDE / 32];
  const int64_t base = base_of(a, blockIdx.x), from = blockIdx.y * a.each, to = end_of(a, from);
  const bool packed = packs_of(a, a.x, base);
  piece<T> all = {0, 0};
  for (int64_t j = from + threadIdx.x * EACH; j < to; j += blockDim.x * EACH) {
    T x[EACH];
    take_each(a, x, base, j, to, packed);
    for (int k = 0; k < EACH; k++) if (j + k < to) all = join<F>(a, all, piece<T>{x[k], j + k + 1});
  }
  all = combine_block(all, s, [&](const piece<T> &l, const piece<T> &r) { return join<F>(a, l, r); });
  if (threadIdx.x == 0) put_part(a, blockIdx.x, all);
}

template <class F, class T> __global__ void __launch_bounds__(WIDE) row_result(const ty_k_scan a) {
  __shared__ piece<T> s[WIDE / 32];
  piece<T> all = {0, 0};
  for (int k = threadIdx.x; k < a.sections; k += WIDE) all = join<F>(a, all, *part<T>(a, blockIdx.x, k));
  all = combine_block(all, s, [&](const piece<T> &l, const piece<T> &r) { return join<F>(a, l, r); });
  if (threadIdx.x == 0) put(a, blockIdx.x, all);
}

template <class F, class T> __global__ void __launch_bounds__(WIDE) row_scan(const ty_k_scan a) {
  __shared__ piece<T> s[WIDE / 32];
  const int64_t base = base_of(a, blockIdx.x), from = blockIdx.y * a.each, to = end_of(a, from);
  const int t = (int)threadIdx.x, warp = t / 32, lane = t % 32, warps = (int)blockDim.x / 32;
  const bool packed = packs_of(a, a.x, base) && packs_of(a, a.o, base);
  piece<T> before = {0, 0};                /* all that comes before the tile */
  for (int k = t; k < (int)blockIdx.y; k += (int)blockDim.x) before = join<F>(a, before, *part<T>(a, blockIdx.x, k));
  before = combine_block(before, s, [&](const piece<T> &l, const piece<T> &r) { return join<F>(a, l, r); });
  for (int64_t tile = from; tile < to; tile += blockDim.x * EACH) {
    const int64_t j = tile + t * EACH;
    T x[EACH];
    piece<T> sum = {0, 0};
    take_each(a, x, base, j, to, packed);
    for (int k = 0; k < EACH; k++) if (j + k < to) sum = join<F>(a, sum, piece<T>{x[k], j + k + 1});
#pragma unroll
    for (int up = 1; up < 32; up *= 2) {                   /* sum becomes the join of the warp up to this thread */
      const piece<T> left = from_lane_before(sum, up);
      if (lane >= up) sum = join<F>(a, left, sum);
    }
    piece<T> left = from_lane_before(sum, 1), all = before;
    if (lane == 0) left = {0, 0};
    __syncthreads();                       /* earlier reads of s are done */
    if (lane == 31) s[warp] = sum;
    __syncthreads();
    for (int k = 0; k < warps; k++) {
      if (k == warp) left = join<F>(a, all, left);
      all = join<F>(a, all, s[k]);
    }
    before = all;
    T y[EACH];
    for (int k = 0; k < EACH; k++) if (j + k < to) {
      left = join<F>(a, left, piece<T>{x[k], j + k + 1});
      y[k] = left.v;
      if (a.place) a.place[base + (j + k) * a.inner] = left.place;
    }
    if (packed && j + EACH <= to) store_four(a.o, a.dtype, base + j, y);
    else for (int k = 0; k < EACH; k++) if (j + k < to) store(a.o, a.dtype, base + (j + k) * a.inner, y[k]);
  }
}

/* With y the running products: before the first 0, dx[i] = sum over j >= i of g[j] y[j] / x[i]; at that 0, the same sum of products without
 * it; after it, 0. products: room for y. */
static __global__ void __launch_bounds__(THREADS) cumprod_gradient(const ty_k_scan a, const void *g, double *products) {
  const int64_t line = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (line >= a.lines) return;
  const int64_t base = line / a.inner * a.n * a.inner + line % a.inner;
  int64_t zero = a.n;
  double acc = 1, tail = 0;
  for (int64_t j = 0; j < a.n; j++) {
    const double x = load<double>(a.x, a.dtype, base + j * a.inner);
    if (x == 0 && zero == a.n) zero = j;
    products[base + j * a.inner] = acc *= x;
    if (j > zero) store(a.o, a.dtype, base + j * a.inner, 0.0);
  }
  for (int64_t j = zero - 1; j >= 0; j--) {
    const int64_t i = base + j * a.inner;
    store(a.o, a.dtype, i, (tail += load<double>(g, a.dtype, i) * products[i]) / load<double>(a.x, a.dtype, i));
  }
  if (zero == a.n) return;
  double rest = zero ? products[base + (zero - 1) * a.inner] : 1, sum = 0;
  for (int64_t j = zero; j < a.n; j++) {
    const int64_t i = base + j * a.inner;
    if (j > zero) rest *= load<double>(a.x, a.dtype, i);
    sum += load<double>(g, a.dtype, i) * rest;
  }
  store(a.o, a.dtype, base + zero * a.inner, sum);
}

/* ---- launchers ---- */

cudaError_t ty_k_cumprod_gradient(const ty_k_scan *p, const void *g, double *products, cudaStream_t s) {
  const ty_k_scan a = *p;
  return TY_LAUNCH(cumprod_gradient, blocks_for(a.lines, THREADS), THREADS, s, a, g, products);
}

/* Whether a block goes along a line, rather than a thread. */
static bool by_rows(const ty_k_scan &a) { return a.inner < SIDE_BY_SIDE && a.n >= 32; }

void ty_k_scan_sections(ty_k_scan *a) {
  const int64_t blocks = by_rows(*a) ? a->lines : (a->lines + THREADS - 1) / THREADS, least = by_rows(*a) ? 4 * WIDE * EACH : 64;
  int64_t sections = blocks < ENOUGH ? ENOUGH / blocks : 1;
  if (sections > a->n / least) sections = a->n / least ? a->n / least : 1;
  a->each = ((a->n + sections - 1) / sections + EACH - 1) / EACH * EACH;           /* neighbours stay together */
  a->sections = (int)((a->n + a->each - 1) / a->each);
}

template <class F, class T> static cudaError_t scan(const ty_k_scan &a, cudaStream_t s) {
  const bool rows = by_rows(a), one = one_result(a);
  const int64_t wide = (a.n + EACH * 32 - 1) / (EACH * 32) * 32;
  const unsigned threads = rows ? (unsigned)(wide < WIDE ? wide : WIDE) : THREADS;
  const dim3 grid(blocks_for(a.lines, rows ? 1 : THREADS), (unsigned)a.sections);
  auto parts = rows ? row_parts<F, T> : line_parts<F, T>, all = rows ? row_scan<F, T> : line_scan<F, T>;
  cudaError_t e = cudaSuccess;
  if (one || a.sections > 1) e = TY_LAUNCH(parts, grid, threads, s, a);
  if (e != cudaSuccess || (one && a.sections == 1)) return e;
  if (one) {
    auto result = row_result<F, T>;
    return TY_LAUNCH(result, blocks_for(a.lines, 1), WIDE, s, a);
  }
  return TY_LAUNCH(all, grid, threads, s, a);
}

cudaError_t ty_k_scan_lines(const ty_k_scan *p, cudaStream_t s) {
  const ty_k_scan a = *p;
  const bool whole = a.k == TY_IN_I64;
  switch (a.op) {
    case TY_OP_cumsum: return whole ? scan<sums, int64_t>(a, s) : scan<sums, double>(a, s);
    case TY_OP_cumprod: return whole ? scan<products, int64_t>(a, s) : scan<products, double>(a, s);
    case TY_OP_logcumsumexp: return scan<log_sums, double>(a, s);
    default: return whole ? scan<extremes, int64_t>(a, s) : scan<extremes, double>(a, s);
  }
}
