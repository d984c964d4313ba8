/* Attention of few queries, as in a model that generates: its cost is reading keys and values. 16-bit dtypes with rows that aren't wide go
 * by tensor cores (attention_few_mma.cu).
 *
 * Idea: neighbouring lanes, a team, hold a key's row, a pack of 16 bytes each, so that a warp has several keys at once. Where a head has
 * several sections (attention_few.cuh), a second launch joins them. */
#include "attention_few.cuh"

/* keys that a team reads before it computes; fewer for several queries: more blocks then have room on a processor */
#define KEYS_AT_ONCE(queries) ((queries) > 1 ? 2 : 4)
#define ENOUGH 1024              /* blocks */
#define MMA_ENOUGH(queries) ((queries) > 8 ? 528 : 396)      /* blocks that 132 processors have at once; above 8 queries, twice that */
#define SECTIONS 64

#define PACK(D) (16 / (int)sizeof(D))
#define TEAMS (THREADS / LANES)

/* What a query has seen of its keys: the highest score, the sum of exp(score - top), and of these weights times the values. */
template <class T, int N> struct seen { T top, sum, acc[N]; };

/* a b + c, rounded once, in one instruction: half of the instructions are such when a model generates */
static __device__ __forceinline__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
static __device__ __forceinline__ double fused(double a, double b, double c) { return fma(a, b, c); }
template <class D> static __device__ __forceinline__ void unpack(typename stored<D>::type *v, const uint4 &word) {
  pack<D, PACK(D)> d;
  memcpy(&d, &word, sizeof d);
#pragma unroll
  for (int k = 0; k < PACK(D); k++) v[k] = stored<D>::in(d.d[k]);
}

/* A block has up to QUERIES queries of a head and one section of its keys. */
template <class D, int LANES, int QUERIES> __global__ void __launch_bounds__(THREADS, sizeof(D) == 8 ? 1 : LANES == 8 ? 3 : 4)
sections(const ty_k_attention a) {
  typedef typename stored<D>::type T;
  constexpr int N = PACK(D), WIDTH = LANES * N, AT_ONCE = KEYS_AT_ONCE(QUERIES);
  __shared__ T tops[TEAMS][QUERIES], sums[TEAMS][QUERIES], accs[TEAMS][QUERIES][WIDTH];
  const int team = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
  const unsigned groups = (unsigned)((a.lq + QUERIES - 1) / QUERIES);        /* groups of queries, side by side: they read the same keys */
  const int64_t head = blockIdx.x / groups, i0 = (int64_t)(blockIdx.x % groups) * QUERIES, c = lane * N;
  const int64_t from = blockIdx.y * a.each, limit = keys_of(a), to = from + a.each < limit ? from + a.each : limit;
  const D *const keys = (const D *)a.k.p + base_of(a.k, a.h, head), *const values = (const D *)a.v.p + base_of(a.v, a.h, head);
  T q[QUERIES][N];
  seen<T, N> mine[QUERIES];
#pragma unroll
  for (int i = 0; i < QUERIES; i++) {
    unpack<D>(q[i], word_at((const D *)a.q.p + base_of(a.q, a.h, head) + (i0 + i) * a.q.stride[2], c, i0 + i < a.lq ? a.d : 0));
    mine[i] = {(T)-INFINITY, 0, {}};
  }
  for (int64_t j0 = from; j0 < to; j0 += TEAMS * AT_ONCE) {            /* as often for every team: shuffles need all lanes */
    uint4 kw[AT_ONCE], vw[AT_ONCE];
    T k[AT_ONCE][N], v[AT_ONCE][N];
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      const int64_t j = j0 + e * TEAMS + team;
      kw[e] = word_at(keys + j * a.k.stride[2], c, j < to ? a.d : 0);
      vw[e] = word_at(values + j * a.v.stride[2], c, j < to ? a.dv : 0);
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      unpack<D>(k[e], kw[e]);
      if (QUERIES > 1) unpack<D>(v[e], vw[e]);
    }
#pragma unroll
    for (int i = 0; i < QUERIES; i++) {
      seen<T, N> &m = mine[i];
      T s[AT_ONCE], top = m.top;
#pragma unroll
      for (int e = 0; e < AT_ONCE; e++) {
        const int64_t j = j0 + e * TEAMS + team;
        T dot = 0;
#pragma unroll
        for (int n = 0; n < N; n++) dot = fused(q[i][n], k[e][n], dot);
#pragma unroll
        for (int far = LANES / 2; far; far /= 2) dot += __shfl_xor_sync(0xffffffffu, dot, far);
        s[e] = j < to ? score<T>(a, head, i0 + i, j, dot) : (T)-INFINITY;
        top = higher(top, s[e]);
      }
      const T shift = top == (T)-INFINITY ? (T)0 : top, old = down_to(m.top, shift);
      m.top = top;
      m.sum *= old;
#pragma unroll
      for (int n = 0; n < N; n++) m.acc[n] *= old;
#pragma unroll
      for (int e = 0; e < AT_ONCE; e++) {
        T p = exp_of(s[e] - shift);
        if (QUERIES == 1) unpack<D>(v[e], vw[e]);      /* late, since registers are for reads on their way */
        m.sum += p;
        if (a.dropout > 0) p *= keep<T>(a, head, i0 + i, j0 + e * TEAMS + team);
#pragma unroll
        for (int n = 0; n < N; n++) m.acc[n] = fused(p, v[e][n], m.acc[n]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < QUERIES; i++) {
    if (lane == 0) {
      tops[team][i] = mine[i].top;
      sums[team][i] = mine[i].sum;
    }
#pragma unroll
    for (int n = 0; n < N; n++) accs[team][i][c + n] = mine[i].acc[n];
  }
  finish<QUERIES>(a, head, i0, tops, sums, accs);
}

/* Joins a query's sections; a block has one query. */
template <class T> __global__ void __launch_bounds__(THREADS) join(const ty_k_attention a) {
  __shared__ T tops[SECTIONS], sums[SECTIONS];
  const int64_t row = blockIdx.x, step = a.dv + 2;
  const T *const part = (const T *)a.parts + row * a.sections * step;
  if ((int)threadIdx.x < a.sections) {
    tops[threadIdx.x] = part[threadIdx.x * step];
    sums[threadIdx.x] = part[threadIdx.x * step + 1];
  }
  __syncthreads();
  T top = (T)-INFINITY, sum = 0;
  for (int s = 0; s < a.sections; s++) top = higher(top, tops[s]);
  __syncthreads();
  if ((int)threadIdx.x < a.sections) tops[threadIdx.x] = down_to(tops[threadIdx.x], top);     /* each section's factor */
  __syncthreads();
  for (int s = 0; s < a.sections; s++) sum += sums[s] * tops[s];
  for (int64_t w = threadIdx.x; w < a.dv; w += THREADS) {
    T acc = 0;
#pragma unroll 8
    for (int s = 0; s < a.sections; s++) acc += part[s * step + 2 + w] * tops[s];
    put_result(a, row / a.lq, row % a.lq, w, sum, acc);
  }
  if (threadIdx.x == 0) put_log_sum(a, row, top, sum);
}

/* ---- launchers ---- */

static int lanes_of(const ty_k_attention &a) {
  const int64_t width = a.d > a.dv ? a.d : a.dv, n = 16 / bytes_of(a.dtype);
  return width <= 8 * n ? 8 : width <= 16 * n ? 16 : width <= 32 * n ? 32 : 0;
}

/* Whether the kernel for tensor cores takes it. */
static bool by_mma(const ty_k_attention &a) {
  return (a.dtype == TY_F16 || a.dtype == TY_BF16) && a.d <= MMA_WIDEST && a.dv <= MMA_WIDEST;
}

bool ty_k_attention_few(ty_k_attention *a) {
  const int64_t n = 16 / bytes_of(a->dtype), keys = keys_of(*a);
  if (a->g.p || a->lq < 1 || a->lq > TY_K_FEW || keys < 1 || a->heads < 1 || a->heads > INT32_MAX / TY_K_FEW || !lanes_of(*a) ||
      !by_packs(a->q, a->d, n) || !by_packs(a->k, a->d, n) || !by_packs(a->v, a->dv, n))
    return false;
  const int64_t step = by_mma(*a) ? MMA_STEP : THREADS / lanes_of(*a) * KEYS_AT_ONCE(a->lq), steps = (keys + step - 1) / step;
  int64_t sections = by_mma(*a) ? MMA_ENOUGH(a->lq) / a->heads : ENOUGH / (a->heads * (a->lq == 1 ? 1 : (a->lq + 3) / 4));
  sections = sections > steps / 2 ? steps / 2 : sections;              /* a section of one step would join as much as it computes */
  sections = sections < 1 ? 1 : sections > SECTIONS ? SECTIONS : sections;
  a->each = (steps + sections - 1) / sections * step;
  a->sections = (int)((keys + a->each - 1) / a->each);
  return true;
}

template <class D, int LANES, int QUERIES> static cudaError_t launch(const ty_k_attention &a, cudaStream_t s) {
  const dim3 grid((unsigned)(a.heads * ((a.lq + QUERIES - 1) / QUERIES)), (unsigned)a.sections);
  return TY_LAUNCH((sections<D, LANES, QUERIES>), grid, THREADS, s, a);
}
template <class D, int LANES> static cudaError_t launch_lanes(const ty_k_attention &a, cudaStream_t s) {
  return a.lq == 1 ? launch<D, LANES, 1>(a, s) : launch<D, LANES, 4>(a, s);
}
template <class D> static cudaError_t attend(const ty_k_attention &a, cudaStream_t s) {
  if constexpr (sizeof(D) > 2) {
    const int lanes = lanes_of(a);
    if (lanes < 32) return lanes == 8 ? launch_lanes<D, 8>(a, s) : launch_lanes<D, 16>(a, s);
  }
  return launch_lanes<D, 32>(a, s);
}

cudaError_t ty_k_attend_few(const ty_k_attention *p, cudaStream_t s) {
  const ty_k_attention a = *p;
#define ATTEND(D, G) attend<D>(a, s)
  const cudaError_t e = by_mma(a) ? ty_k_attend_few_mma(a, s) : WITH_DTYPE(a.dtype, ATTEND, 1);
  if (e != cudaSuccess || a.sections == 1) return e;
  const unsigned blocks = blocks_for(a.heads * a.lq, 1);
  return a.dtype == TY_F64 ? TY_LAUNCH(join<double>, blocks, THREADS, s, a) : TY_LAUNCH(join<float>, blocks, THREADS, s, a);
}
