/* Attention of few queries in 16 bits by tensor cores.
 *
 * Idea: a warp reads 16 keys at a time straight from device memory, 16 bytes a lane. The order in which a row's numbers are multiplied is
 * free (mma.cuh), so these bytes are factors as they are; only values have the halves of two words put side by side. Keys are the rows of a
 * product and queries its columns: eight, or sixteen. The next keys are on their way while values are weighted. Invariant: all warps of a
 * block take part in every product; keys beyond the section have scores of -inf and values of 0. */
#include "attention_few.cuh"
#include "mma.cuh"

#define WARPS (THREADS / 32)
#define KEYS 16                  /* that a warp has at a time */

/* SETS: how many sets of eight queries */
template <class D, int WIDTH, int SETS> __global__ void __launch_bounds__(THREADS, SETS == 1 ? 3 : 2) sections_mma(const ty_k_attention a) {
  constexpr int CHUNKS = WIDTH / 32, PARTS = WIDTH / 64;
  __shared__ float tops[WARPS][8 * SETS], sums[WARPS][8 * SETS], accs[WARPS][8 * SETS][WIDTH];
  const int warp = (int)threadIdx.x / 32, r = (int)threadIdx.x % 32 / 4, c = (int)threadIdx.x % 4;
  const int64_t head = blockIdx.x, from = blockIdx.y * a.each, limit = keys_of(a), to = from + a.each < limit ? from + a.each : limit;
  const D *const queries = (const D *)a.q.p + base_of(a.q, a.h, head), *const keys = (const D *)a.k.p + base_of(a.k, a.h, head),
    *const values = (const D *)a.v.p + base_of(a.v, a.h, head);
  uint4 q[SETS][CHUNKS], k[2][CHUNKS], v[PARTS][4];
  float top[SETS][2], sum[SETS][2], acc[SETS][PARTS][4][4] = {};      /* of queries 2 c and 2 c + 1 */
#pragma unroll
  for (int s = 0; s < SETS; s++) {
#pragma unroll
    for (int i = 0; i < CHUNKS; i++)
      q[s][i] = word_at(queries + (s * 8 + r) * a.q.stride[2], i * 32 + c * 8, s * 8 + r < a.lq ? a.d : 0);
    top[s][0] = top[s][1] = -INFINITY;
    sum[s][0] = sum[s][1] = 0;
  }
  const auto take_keys = [&](int64_t j) {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int i = 0; i < CHUNKS; i++)
        k[h][i] = word_at(keys + (j + r + 8 * h) * a.k.stride[2], i * 32 + c * 8, j + r + 8 * h < to ? a.d : 0);
  };
  take_keys(from + warp * KEYS);
  for (int64_t j0 = from; j0 < to; j0 += MMA_STEP) {
    const int64_t j = j0 + warp * KEYS;
    float x[SETS][4] = {};                 /* scores of keys r and r + 8 for these two queries */
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int m = 0; m < 4; m++) {
        const int64_t row = j + 2 * c + m % 2 + m / 2 * 8;
        v[p][m] = word_at(values + row * a.v.stride[2], p * 64 + r * 8, row < to ? a.dv : 0);
      }
#pragma unroll
    for (int i = 0; i < CHUNKS; i++)
#pragma unroll
      for (int s = 0; s < SETS; s++) {
        multiply_add<D, true>(x[s], k[0][i].x, k[1][i].x, k[0][i].y, k[1][i].y, q[s][i].x, q[s][i].y);
        multiply_add<D, true>(x[s], k[0][i].z, k[1][i].z, k[0][i].w, k[1][i].w, q[s][i].z, q[s][i].w);
      }
    if (j0 + MMA_STEP < to) take_keys(j + MMA_STEP);
    uint32_t weight[SETS][2];
#pragma unroll
    for (int s = 0; s < SETS; s++) {
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int64_t i = s * 8 + 2 * c + e;
        float high = top[s][e];
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int64_t key = j + r + 8 * h;
          x[s][2 * h + e] = key < to ? score<float>(a, head, i, key, x[s][2 * h + e]) : -INFINITY;
          high = higher(high, x[s][2 * h + e]);
        }
#pragma unroll
        for (int far = 4; far < 32; far *= 2) high = higher(high, __shfl_xor_sync(0xffffffffu, high, far));
        const float shift = high == -INFINITY ? 0 : high, old = down_to(top[s][e], shift);
        top[s][e] = high;
        sum[s][e] *= old;
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
          for (int t = 0; t < 4; t++) {
            acc[s][p][t][e] *= old;
            acc[s][p][t][2 + e] *= old;
          }
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float w = exp_of(x[s][2 * h + e] - shift);
          sum[s][e] += w;
          if (a.dropout > 0) w *= keep<float>(a, head, i, j + r + 8 * h);
          x[s][2 * h + e] = w;
        }
      }
#pragma unroll
      for (int h = 0; h < 2; h++) weight[s][h] = turned(two_of<D>(x[s][2 * h], x[s][2 * h + 1]));
    }
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
      const uint32_t *const w[4] = {&v[p][0].x, &v[p][1].x, &v[p][2].x, &v[p][3].x};
#pragma unroll
      for (int t = 0; t < 4; t++)
#pragma unroll
        for (int s = 0; s < SETS; s++)
          multiply_add<D, true>(acc[s][p][t], lows(w[0][t], w[1][t]), highs(w[0][t], w[1][t]), lows(w[2][t], w[3][t]),
            highs(w[2][t], w[3][t]), weight[s][0], weight[s][1]);
    }
  }
#pragma unroll
  for (int s = 0; s < SETS; s++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int i = s * 8 + 2 * c + e;
#pragma unroll
      for (int far = 4; far < 32; far *= 2) sum[s][e] += __shfl_xor_sync(0xffffffffu, sum[s][e], far);
      if (r == 0) {
        tops[warp][i] = top[s][e];
        sums[warp][i] = sum[s][e];
      }
#pragma unroll
      for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int t = 0; t < 4; t++) {
          accs[warp][i][p * 64 + r * 8 + 2 * t] = acc[s][p][t][e];
          accs[warp][i][p * 64 + r * 8 + 2 * t + 1] = acc[s][p][t][2 + e];
        }
    }
  finish<8 * SETS>(a, head, 0, tops, sums, accs);
}

template <class D, int WIDTH> static cudaError_t attend(const ty_k_attention &a, cudaStream_t s) {
  const dim3 grid((unsigned)a.heads, (unsigned)a.sections);
  return a.lq <= 8 ? TY_LAUNCH((sections_mma<D, WIDTH, 1>), grid, THREADS, s, a)
    : TY_LAUNCH((sections_mma<D, WIDTH, 2>), grid, THREADS, s, a);
}

cudaError_t ty_k_attend_few_mma(const ty_k_attention &a, cudaStream_t s) {
  const bool narrow = a.d <= 64 && a.dv <= 64;
#define ATTEND(D) (narrow ? attend<D, 64>(a, s) : attend<D, 128>(a, s))
  return a.dtype == TY_F16 ? ATTEND(half16) : ATTEND(brain16);
}
