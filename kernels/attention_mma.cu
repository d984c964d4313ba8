/* Attention in 16 bits and its gradients by tensor cores, tile by tile (Dao 2023), for what the library doesn't do (src/cuda/attention.c):
 * above all dropout, whose random numbers are the CPU's.
 *
 * Idea: a warp has 16 rows: queries, or keys for k's and v's gradients. The other side passes through shared memory by tiles; the next tile
 * is on its way meanwhile. The sum of one product is the first factor of the next, in the same registers (mma.cuh), so weights never leave
 * them. One lane makes each of dropout's random blocks; lanes exchange which keys are kept, one bit each. Invariant: no sum needs atomics,
 * so the same bits come each time; all warps of a block take part in every product and barrier. */
#include "attention.cuh"
#include "mma.cuh"

#define WARPS 4
#define THREADS (32 * WARPS)
#define ROWS 16                  /* of a warp */
#define SIDE (ROWS * WARPS)      /* of a block */
#define TILE 4096                /* numbers of a tile: 64 rows of 64, 32 of 128 */
#define LOG2_E 1.44269504088896341f
#define LN_2 0.693147180559945309f
#define RISE 8                   /* as a power of two: weights up to 256 are far from the ends of 16 bits */

/* Where a row's 16-byte chunk lies in a tile: the same chunk of eight successive rows, and all chunks of a row, are in different banks. */
template <int WIDTH> static __device__ __forceinline__ int place(int row, int chunk) { return row * (WIDTH / 8) + (chunk ^ (row & 7)); }

/* Brings the thread's share of a head's rows into one tile after another: 0 beyond rows and width. */
template <class D, int WIDTH> struct bringer {
  static constexpr int CHUNKS = WIDTH / 8, STEP = THREADS / CHUNKS;      /* rows from one of a thread's to its next */
  const D *from;
  int64_t stride;
  int left;                                /* rows from the thread's first on; 0 or less: there are none */
  __device__ __forceinline__ bringer(const ty_k_heads &t, int64_t base, int row, int rows, int64_t width) {
    const int chunk = (int)threadIdx.x % CHUNKS, first = row + (int)threadIdx.x / CHUNKS;
    const bool has = chunk * 8 < width;
    stride = t.stride[2];
    from = (const D *)t.p + base + (has ? first * stride + chunk * 8 : 0);
    left = has ? rows - first : 0;
  }
  __device__ __forceinline__ void bring_next(shared_place tile) {
    const int row = (int)threadIdx.x / CHUNKS, chunk = (int)threadIdx.x % CHUNKS;
#pragma unroll
    for (int i = 0; i < TILE / WIDTH / STEP; i++) {
      bring(tile + place<WIDTH>(row + i * STEP, chunk), left > i * STEP ? from + i * STEP * stride : from, left > i * STEP);
    }
    left -= TILE / WIDTH;
    if (left > 0) from += TILE / WIDTH * stride;
  }
};

/* Two matrices whose rows go together, keys and values or queries and gradients. Each has two tiles: one is on its way while the other is
   used. */
template <class D, int WIDTH> struct pairs {
  bringer<D, WIDTH> from_one, from_other;
  shared_place one, other;
  __device__ __forceinline__ void bring(int to) {
    from_one.bring_next(one + to * (TILE / 8));
    from_other.bring_next(other + to * (TILE / 8));
    bring_away();
  }
  /* Afterwards the whole block can read tiles `now`. more: others come after them, which are brought next. */
  __device__ __forceinline__ void ready(int now, bool more) {
    if (more) {
      bring(1 - now);
      wait_for<1>();
    } else wait_for<0>();
    __syncthreads();
  }
};

/* A product's first factor from device memory: rows `row` and `row` + 8 of one head. */
template <class D, int WIDTH> static __device__ __forceinline__ void take_rows(uint32_t (&to)[WIDTH / 16][4], const ty_k_heads &t,
  int64_t base, int64_t row, int64_t rows, int64_t width) {
  const int c = (int)threadIdx.x % 4;
#pragma unroll
  for (int s = 0; s < WIDTH / 16; s++)
#pragma unroll
    for (int m = 0; m < 4; m++) {
      const int64_t i = row + m % 2 * 8, at = s * 16 + m / 2 * 8 + 2 * c;
      to[s][m] = i < rows && at < width ? *(const uint32_t *)((const D *)t.p + base + i * t.stride[2] + at) : 0;
    }
}

/* sum + the dot product of two pairs of numbers */
template <class D> static __device__ __forceinline__ float add_pair(uint32_t a, uint32_t b, float sum) {
  sum = fmaf(stored<D>::in(D{(uint16_t)a}), stored<D>::in(D{(uint16_t)b}), sum);
  return fmaf(stored<D>::in(D{(uint16_t)(a >> 16)}), stored<D>::in(D{(uint16_t)(b >> 16)}), sum);
}

/* x = products of the warp's rows, a, with 16 N rows of a tile from r0 on. */
template <class D, int WIDTH, int N> static __device__ __forceinline__ void dots(float (&x)[N][2][4], const uint32_t (&a)[WIDTH / 16][4],
  shared_place tile, int r0) {
  const int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < WIDTH / 16; s++) {
    const shared_place row = tile + place<WIDTH>(lane / 16 * 8 + lane % 8, 2 * s + lane / 8 % 2);
#pragma unroll
    for (int u = 0; u < N; u++) {          /* no product waits for the one before */
      uint32_t b[4];
      take_matrices<false>(b, row + (r0 + u * 16) * (WIDTH / 8));
      if (s == 0) {
        multiply_add<D, false, true>(x[u][0], a[s][0], a[s][1], a[s][2], a[s][3], b[0], b[1]);
        multiply_add<D, false, true>(x[u][1], a[s][0], a[s][1], a[s][2], a[s][3], b[2], b[3]);
      } else {
        multiply_add<D>(x[u][0], a[s][0], a[s][1], a[s][2], a[s][3], b[0], b[1]);
        multiply_add<D>(x[u][1], a[s][0], a[s][1], a[s][2], a[s][3], b[2], b[3]);
      }
    }
  }
}

/* acc += x (the warp's rows by 16 columns) times 16 rows of a tile from r0 on. */
template <class D, int WIDTH> static __device__ __forceinline__ void gather(float (&acc)[WIDTH / 8][4], const float (&x)[2][4],
  shared_place tile, int r0) {
  const int lane = (int)threadIdx.x % 32;
  const uint32_t a0 = two_of<D>(x[0][0], x[0][1]), a1 = two_of<D>(x[0][2], x[0][3]), a2 = two_of<D>(x[1][0], x[1][1]),
    a3 = two_of<D>(x[1][2], x[1][3]);
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n += 2) {
    uint32_t b[4];
    take_matrices<true>(b, tile + place<WIDTH>(lane % 16, n + lane / 16) + r0 * (WIDTH / 8));
    multiply_add<D>(acc[n], a0, a1, a2, a3, b[0], b[1]);
    multiply_add<D>(acc[n + 1], a0, a1, a2, a3, b[2], b[3]);
  }
}

template <class D, int WIDTH> static __device__ __forceinline__ void put_rows(const float (&acc)[WIDTH / 8][4], const ty_k_heads &t,
  int64_t base, int64_t row, int64_t rows, int64_t width, float low, float high) {
  const int c = (int)threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < WIDTH / 8; n++) {
    D *const to = (D *)t.p + base + row * t.stride[2] + n * 8 + 2 * c;
    if (n * 8 >= width) continue;
    if (row < rows) *(uint32_t *)to = two_of<D>(acc[n][0] * low, acc[n][1] * low);
    if (row + 8 < rows) *(uint32_t *)(to + 8 * t.stride[2]) = two_of<D>(acc[n][2] * high, acc[n][3] * high);
  }
}

/* Dropout's random numbers. blocks: of a query, 0 without dropout; least: a.least, for the upper half of a word. */
struct stream { uint64_t seed, offset; uint32_t blocks, least; };
static __device__ __forceinline__ stream stream_of(const ty_k_attention &a) {
  if (a.dropout <= 0) return {0, 0, 0, 0};
  return {(uint64_t)a.rng[0], (uint64_t)a.rng[1], (uint32_t)ty_drop_blocks(a.lk), a.least << 16};
}
/* Bits of the keys that dropout keeps: block(m), one of N blocks of random words, decides about eight, from bit 8 m on. The blocks are made
   together, round by round (ty_philox), since a round's numbers serve all. */
template <int N, class F> static __device__ __forceinline__ uint32_t kept_in(const stream &d, const F &block) {
  uint32_t w[N][4], k0 = (uint32_t)d.seed, k1 = (uint32_t)(d.seed >> 32), kept = 0;
#pragma unroll
  for (int m = 0; m < N; m++) {
    const uint64_t b = d.offset + block(m);
    w[m][0] = (uint32_t)b;
    w[m][1] = (uint32_t)(b >> 32);
    w[m][2] = w[m][3] = 0;
  }
#pragma unroll
  for (int round = 0; round < 10; round++) {
#pragma unroll
    for (int m = 0; m < N; m++) ty_philox_round(&w[m][0], &w[m][1], &w[m][2], &w[m][3], k0, k1);
    ty_philox_next(&k0, &k1);
  }
#pragma unroll
  for (int m = 0; m < N; m++)
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (w[m][k] << 16 >= d.least) kept |= 1u << (8 * m + 2 * k);
      if (w[m][k] >= d.least) kept |= 2u << (8 * m + 2 * k);
    }
  return kept;
}

/* Bits of kept scores where rows are queries and columns are keys from j on, N eights of them; row: the lane's first query, counted among
   all heads'. For row r + 8 h and column 2 c + e of the n-th eight: bit 8 (n / 2) + e of to[h][n % 2]. */
template <int N> static __device__ __forceinline__ void keep_queries(uint32_t (&to)[2][2], const stream &d, int64_t row, int j) {
  const int lane = (int)threadIdx.x % 32, c = lane % 4;
  const uint64_t first = (uint64_t)(row + c % 2 * 8) * d.blocks + (uint32_t)(j / 8 + c / 2);
  const uint32_t mine = kept_in<N / 2>(d, [&](int m) { return first + 2 * m; });
#pragma unroll
  for (int k = 0; k < 4; k++) to[k % 2][k / 2] = __shfl_sync(0xffffffffu, mine, lane / 4 * 4 + k, 32) >> 2 * c;
}

/* The same where rows are keys, the warp's from j on, and columns are queries from `row` on. For row r + 8 h and column 2 c + e of the n-th
   eight: bit 8 (n / 2) of to[h][e][n % 2]. */
template <int N> static __device__ __forceinline__ void keep_keys(uint32_t (&to)[2][2][2], const stream &d, int64_t row, int j) {
  const int lane = (int)threadIdx.x % 32, r = lane / 4, c = lane % 4;
  const uint64_t first = (uint64_t)(row + r / 4 * 8 + 2 * c + r % 2) * d.blocks + (uint32_t)(j / 8 + r / 2 % 2);
  const uint32_t mine = kept_in<N / 2>(d, [&](int m) { return first + (uint64_t)(16 * m) * d.blocks; });
#pragma unroll
  for (int k = 0; k < 8; k++) to[k / 2 % 2][k % 2][k / 4] = __shfl_sync(0xffffffffu, mine, k * 4 + c, 32) >> r;
}

/* Products become exponents of 2: by the factor |scale| log2(e), and scale's sign, which the warp's rows take. MASKED: `seen` applies
   both. */
template <bool MASKED> static __device__ __forceinline__ float factor_of(const ty_k_attention &a) {
  return MASKED ? 1 : fabsf((float)a.scale) * LOG2_E;
}
template <bool MASKED, int N> static __device__ __forceinline__ void take_sign(uint32_t (&rows)[N][4], const ty_k_attention &a) {
  if (!MASKED && a.scale < 0)
#pragma unroll
    for (int s = 0; s < N; s++)
#pragma unroll
      for (int m = 0; m < 4; m++) rows[s][m] ^= 0x80008000u;
}
/* dot where query i sees key j, else -inf; MASKED: the masked score as an exponent of 2. */
template <bool MASKED> static __device__ __forceinline__ float seen(const ty_k_attention &a, int64_t head, int i, int j, float dot) {
  if (!MASKED) return i < (int)a.lq && j < (int)a.lk && (!a.causal || j <= i) ? dot : -INFINITY;
  const float x = score<float>(a, head, i, j, dot);      /* the lowest finite score doesn't become -inf, and NaN stays one */
  return x == -INFINITY ? x : fmaxf(x * LOG2_E, -0x1p127f) + (x - x);
}

/* Makes products of rows `row` and row + 8 with 16 N columns from `column` on -inf where a query doesn't see a key. TURNED: rows are
   keys. */
template <bool MASKED, bool TURNED, int N> static __device__ __forceinline__ void hide(float (&x)[N][2][4], const ty_k_attention &a,
  int64_t head, int row, int column) {
#pragma unroll
  for (int n = 0; n < 2 * N; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      float &s = x[n / 2][n % 2][e];
      const int r = row + e / 2 * 8, c = column + n * 8 + (int)threadIdx.x % 4 * 2 + e % 2;
      s = TURNED ? seen<MASKED>(a, head, c, r, s) : seen<MASKED>(a, head, r, c, s);
    }
}

/* The weight of score x relative to another, y: low = -y * factor. x * factor is rounded as y's was (fmaf wouldn't round it), so equal
   scores weigh 1. */
static __device__ __forceinline__ float weight_of(float x, float factor, float low) { return exp2_near(x * factor + low); }

/* The end of the keys that a block's queries see, of which q0 is the first. */
static __device__ __forceinline__ int keys_end(const ty_k_attention &a, int q0) {
  const int64_t last = q0 + SIDE < a.lq ? q0 + SIDE : a.lq;
  return (int)(a.causal && last < a.lk ? last : a.lk);
}

template <class D, int WIDTH, bool MASKED> __global__ void __launch_bounds__(THREADS, WIDTH == 64 ? 3 : 2)
forward_mma(const ty_k_attention a) {
  constexpr int KEYS = TILE / WIDTH, EIGHTS = KEYS / 8;
  __shared__ uint4 kt[2][TILE / 8], vt[2][TILE / 8];
  const int warp = (int)threadIdx.x / 32, r = (int)threadIdx.x % 32 / 4, c = (int)threadIdx.x % 4;
  const unsigned blocks = (unsigned)((a.lq + SIDE - 1) / SIDE);
  const int64_t head = blockIdx.x / blocks;
  const int lq = (int)a.lq, lk = (int)a.lk, q0 = (int)(blocks - 1 - blockIdx.x % blocks) * SIDE,      /* blocks of most keys first */
    first = q0 + warp * ROWS, i = first + r, end = keys_end(a, q0);
  const stream drop = stream_of(a);
  const bool drops = drop.blocks != 0;
  const float factor = factor_of<MASKED>(a);
  uint32_t q[WIDTH / 16][4];
  float acc[WIDTH / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, low[2] = {0, 0};
  pairs<D, WIDTH> tiles = {{a.k, base_of(a.k, a.h, head), 0, end, a.d}, {a.v, base_of(a.v, a.h, head), 0, end, a.dv}, shared(kt[0]),
    shared(vt[0])};
  tiles.bring(0);
  take_rows<D, WIDTH>(q, a.q, base_of(a.q, a.h, head), i, lq, a.d);
  take_sign<MASKED>(q, a);
  for (int k0 = 0; k0 < end; k0 += KEYS) {
    const int now = k0 / KEYS % 2;
    tiles.ready(now, k0 + KEYS < end);
    const shared_place keys = tiles.one + now * (TILE / 8), values = tiles.other + now * (TILE / 8);
    uint32_t kept[2][2] = {{~0u, ~0u}, {~0u, ~0u}};
    float x[EIGHTS / 2][2][4], highest[2];
    if (drops) keep_queries<EIGHTS>(kept, drop, head * lq + i, k0);
    dots<D, WIDTH>(x, q, keys, 0);
    if (MASKED || k0 + KEYS > lk || (a.causal && k0 + KEYS - 1 > first)) hide<MASKED, false>(x, a, head, i, k0);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float high = top[h];                 /* without NaNs: their weights are NaN anyway */
#pragma unroll
      for (int n = 0; n < EIGHTS; n++) high = fmaxf(high, fmaxf(x[n / 2][n % 2][2 * h], x[n / 2][n % 2][2 * h + 1]));
#pragma unroll
      for (int far = 1; far < 4; far *= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, far));
      highest[h] = high;
    }
    /* Weights are relative to a former maximum, until a score is far above it: that factor cancels out in the end. */
    const bool rises = (highest[0] - top[0]) * factor > RISE || (highest[1] - top[1]) * factor > RISE;
    if (__any_sync(0xffffffffu, rises))
#pragma unroll
      for (int h = 0; h < 2; h++) {
        low[h] = highest[h] == -INFINITY ? 0 : -highest[h] * factor;
        const float old = weight_of(top[h], factor, low[h]);
        top[h] = highest[h];
        sum[h] *= old;
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n++) {
          acc[n][2 * h] *= old;
          acc[n][2 * h + 1] *= old;
        }
      }
#pragma unroll
    for (int u = 0; u < EIGHTS / 2; u++) {
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const float p = weight_of(x[u][t][e], factor, low[e / 2]);
          sum[e / 2] += p;
          x[u][t][e] = kept[e / 2][t] & 1u << (8 * u + e % 2) ? p : 0;
        }
      gather<D, WIDTH>(acc, x[u], values, u * 16);
    }
    __syncthreads();                       /* all have read the tiles that the next ones replace */
  }
  float by[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
#pragma unroll
    for (int far = 1; far < 4; far *= 2) sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], far);
    const bool none = sum[h] == 0;         /* a query that sees no key: its result is 0, as PyTorch's */
    by[h] = none ? 0 : (drops ? (float)a.kept : 1) / sum[h];
    if (c == 0 && i + 8 * h < lq) ((float *)a.lse)[head * lq + i + 8 * h] = none ? INFINITY : top[h] * factor * LN_2 + log_of(sum[h]);
  }
  put_rows<D, WIDTH>(acc, a.o, base_of(a.o, a.h, head), i, lq, a.dv, by[0], by[1]);
}

/* q's gradient: rows are queries. Also makes their deltas, for key_gradients_mma. */
template <class D, int WIDTH, bool MASKED> __global__ void __launch_bounds__(THREADS, WIDTH == 64 ? 3 : 2)
query_gradient_mma(const ty_k_attention a) {
  constexpr int KEYS = TILE / WIDTH, EIGHTS = KEYS / 8;
  __shared__ uint4 kt[2][TILE / 8], vt[2][TILE / 8];
  const int warp = (int)threadIdx.x / 32, r = (int)threadIdx.x % 32 / 4, c = (int)threadIdx.x % 4;
  const unsigned blocks = (unsigned)((a.lq + SIDE - 1) / SIDE);
  const int64_t head = blockIdx.x / blocks;
  const int lq = (int)a.lq, lk = (int)a.lk, q0 = (int)(blocks - 1 - blockIdx.x % blocks) * SIDE,
    first = q0 + warp * ROWS, i = first + r, end = keys_end(a, q0);
  const stream drop = stream_of(a);
  const bool drops = drop.blocks != 0;
  const float factor = factor_of<MASKED>(a), by = drops ? (float)a.kept : 1;
  uint32_t q[WIDTH / 16][4], g[WIDTH / 16][4];
  float acc[WIDTH / 8][4] = {}, low[2], delta[2] = {0, 0};
  pairs<D, WIDTH> tiles = {{a.k, base_of(a.k, a.h, head), 0, end, a.d}, {a.v, base_of(a.v, a.h, head), 0, end, a.dv}, shared(kt[0]),
    shared(vt[0])};
  tiles.bring(0);
  take_rows<D, WIDTH>(q, a.q, base_of(a.q, a.h, head), i, lq, a.d);
  take_sign<MASKED>(q, a);
  take_rows<D, WIDTH>(g, a.g, base_of(a.g, a.h, head), i, lq, a.dv);
  {
    uint32_t o[WIDTH / 16][4];
    take_rows<D, WIDTH>(o, a.o, base_of(a.o, a.h, head), i, lq, a.dv);
#pragma unroll
    for (int s = 0; s < WIDTH / 16; s++)
#pragma unroll
      for (int m = 0; m < 4; m++) delta[m % 2] = add_pair<D>(o[s][m], g[s][m], delta[m % 2]);
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const bool has = i + 8 * h < lq;
#pragma unroll
    for (int far = 1; far < 4; far *= 2) delta[h] += __shfl_xor_sync(0xffffffffu, delta[h], far);
    if (c == 0 && has) ((float *)a.delta)[head * lq + i + 8 * h] = delta[h];
    low[h] = has ? ((const float *)a.lse)[head * lq + i + 8 * h] * -LOG2_E : -INFINITY;
  }
  for (int k0 = 0; k0 < end; k0 += KEYS) {
    const int now = k0 / KEYS % 2;
    tiles.ready(now, k0 + KEYS < end);
    const shared_place keys = tiles.one + now * (TILE / 8), values = tiles.other + now * (TILE / 8);
    const bool all = !MASKED && k0 + KEYS <= lk && (!a.causal || k0 + KEYS - 1 <= first);
    uint32_t kept[2][2] = {{~0u, ~0u}, {~0u, ~0u}};
    if (drops) keep_queries<EIGHTS>(kept, drop, head * lq + i, k0);
#pragma unroll
    for (int half = 0; half < EIGHTS / 4; half++) {
      float x[2][2][4], dp[2][2][4];
      dots<D, WIDTH>(x, q, keys, half * 32);
      dots<D, WIDTH>(dp, g, values, half * 32);
      if (!all) hide<MASKED, false>(x, a, head, i, k0 + half * 32);
#pragma unroll
      for (int u = 0; u < 2; u++) {
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const float p = weight_of(x[u][t][e], factor, low[e / 2]);
            const bool keeps = kept[e / 2][t] & 1u << (8 * (2 * half + u) + e % 2);
            x[u][t][e] = p * fmaf(keeps ? by : 0, dp[u][t][e], -delta[e / 2]);
          }
        gather<D, WIDTH>(acc, x[u], keys, half * 32 + u * 16);
      }
    }
    __syncthreads();
  }
  put_rows<D, WIDTH>(acc, a.dq, base_of(a.dq, a.h, head), i, lq, a.d, (float)a.scale, (float)a.scale);
}

/* k's and v's gradients: rows are keys. */
template <class D, int WIDTH, bool MASKED> __global__ void __launch_bounds__(THREADS, WIDTH == 64 ? 3 : 2)
key_gradients_mma(const ty_k_attention a) {
  constexpr int QUERIES = TILE / WIDTH, EIGHTS = QUERIES / 8;
  __shared__ uint4 qt[2][TILE / 8], gt[2][TILE / 8];
  __shared__ float low[2][QUERIES], delta[2][QUERIES];
  const int warp = (int)threadIdx.x / 32, r = (int)threadIdx.x % 32 / 4, c = (int)threadIdx.x % 4;
  const unsigned blocks = (unsigned)((a.lk + SIDE - 1) / SIDE);
  const int64_t head = blockIdx.x / blocks;
  const int lq = (int)a.lq, lk = (int)a.lk, k0 = (int)(blockIdx.x % blocks) * SIDE, first = k0 + warp * ROWS, j = first + r,
    begin = a.causal ? k0 : 0;             /* earlier queries don't see these keys */
  const stream drop = stream_of(a);
  const bool drops = drop.blocks != 0;
  const float factor = factor_of<MASKED>(a), by = drops ? (float)a.kept : 1;
  uint32_t k[WIDTH / 16][4], v[WIDTH / 16][4];
  float acc_k[WIDTH / 8][4] = {}, acc_v[WIDTH / 8][4] = {};
  pairs<D, WIDTH> tiles = {{a.q, base_of(a.q, a.h, head), begin, lq, a.d}, {a.g, base_of(a.g, a.h, head), begin, lq, a.dv}, shared(qt[0]),
    shared(gt[0])};
  const auto take_rates = [&](int q0, int to) {
    if (threadIdx.x >= QUERIES) return;
    const int i = q0 + (int)threadIdx.x;
    low[to][threadIdx.x] = i < lq ? ((const float *)a.lse)[head * lq + i] * -LOG2_E : -INFINITY;
    delta[to][threadIdx.x] = i < lq ? ((const float *)a.delta)[head * lq + i] : 0;
  };
  if (begin < lq) {
    tiles.bring(0);
    take_rates(begin, 0);
  }
  take_rows<D, WIDTH>(k, a.k, base_of(a.k, a.h, head), j, lk, a.d);
  take_sign<MASKED>(k, a);
  take_rows<D, WIDTH>(v, a.v, base_of(a.v, a.h, head), j, lk, a.dv);
  for (int q0 = begin; q0 < lq; q0 += QUERIES) {
    const int now = (q0 - begin) / QUERIES % 2;
    if (q0 + QUERIES < lq) take_rates(q0 + QUERIES, 1 - now);
    tiles.ready(now, q0 + QUERIES < lq);
    const shared_place queries = tiles.one + now * (TILE / 8), grads = tiles.other + now * (TILE / 8);
    const bool all = !MASKED && q0 + QUERIES <= lq && first + ROWS <= lk && (!a.causal || first + ROWS - 1 <= q0);
    uint32_t kept[2][2][2] = {{{~0u, ~0u}, {~0u, ~0u}}, {{~0u, ~0u}, {~0u, ~0u}}};
    if (drops) keep_keys<EIGHTS>(kept, drop, head * lq + q0, first);
#pragma unroll
    for (int u = 0; u < EIGHTS / 2; u++) {
      float x[1][2][4], dp[1][2][4];
      dots<D, WIDTH>(x, k, queries, u * 16);
      dots<D, WIDTH>(dp, v, grads, u * 16);
      if (!all) hide<MASKED, true>(x, a, head, j, q0 + u * 16);
#pragma unroll
      for (int t = 0; t < 2; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int at = u * 16 + t * 8 + 2 * c + e % 2;
          const float p = weight_of(x[0][t][e], factor, low[now][at]);
          const bool keeps = kept[e / 2][e % 2][t] & 1u << 8 * u;
          x[0][t][e] = p * fmaf(keeps ? by : 0, dp[0][t][e], -delta[now][at]);
          dp[0][t][e] = keeps ? p : 0;
        }
      gather<D, WIDTH>(acc_v, dp[0], grads, u * 16);
      gather<D, WIDTH>(acc_k, x[0], queries, u * 16);
    }
    __syncthreads();
  }
  put_rows<D, WIDTH>(acc_k, a.dk, base_of(a.dk, a.h, head), j, lk, a.d, (float)a.scale, (float)a.scale);
  put_rows<D, WIDTH>(acc_v, a.dvalue, base_of(a.dvalue, a.h, head), j, lk, a.dv, by, by);
}

/* ---- launchers ---- */

static int64_t blocks_of(const ty_k_attention &a, int64_t rows) { return a.heads * ((rows + SIDE - 1) / SIDE); }

bool ty_k_attention_mma(const ty_k_attention *p) {
  const ty_k_attention &a = *p;
  const int64_t most = a.lq > a.lk ? a.lq : a.lk;
  bool fit = (a.dtype == TY_F16 || a.dtype == TY_BF16) && (float)a.scale != 0 && a.d <= 128 && a.dv <= 128 && a.lq > 0 && a.lk > 0 &&
    a.heads > 0 && most < INT32_MAX - SIDE && blocks_of(a, most) <= INT32_MAX;
  for (const ty_k_heads *t : {&a.q, &a.k, &a.dq, &a.dk}) fit = fit && (!t->p || by_packs(*t, a.d, 8));
  for (const ty_k_heads *t : {&a.v, &a.o, &a.g, &a.dvalue}) fit = fit && (!t->p || by_packs(*t, a.dv, 8));
  return fit;
}

template <class D, int WIDTH, bool MASKED> static cudaError_t attend(const ty_k_attention &a, cudaStream_t s) {
  if (!a.g.p) return TY_LAUNCH((forward_mma<D, WIDTH, MASKED>), (unsigned)blocks_of(a, a.lq), THREADS, s, a);
  const cudaError_t e = TY_LAUNCH((query_gradient_mma<D, WIDTH, MASKED>), (unsigned)blocks_of(a, a.lq), THREADS, s, a);
  return e != cudaSuccess ? e : TY_LAUNCH((key_gradients_mma<D, WIDTH, MASKED>), (unsigned)blocks_of(a, a.lk), THREADS, s, a);
}
template <class D, int WIDTH> static cudaError_t attend(const ty_k_attention &a, cudaStream_t s) {
  return a.mask.p ? attend<D, WIDTH, true>(a, s) : attend<D, WIDTH, false>(a, s);
}

cudaError_t ty_k_attend_mma(const ty_k_attention *p, cudaStream_t s) {
  const ty_k_attention a = *p;
  const bool narrow = a.d <= 64 && a.dv <= 64;
#define ATTEND(D) (narrow ? attend<D, 64>(a, s) : attend<D, 128>(a, s))
  return a.dtype == TY_F16 ? ATTEND(half16) : ATTEND(brain16);
}
