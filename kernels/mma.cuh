/* Products of 16-bit numbers by tensor cores: what a warp's lanes hold of small matrices, added up in float32.
 *
 * Idea: of a warp lane 4 r + c has row r and r + 8 of the first factor and of the sum, and column r of the second; of these, numbers 2 c
 * and 2 c + 1 of each eight along the other dim, two in a register. Which numbers stand where along what is summed over is free, so long as
 * both factors agree. Invariant: all lanes of a warp call; beneath a simulation, all of a block. */
#ifndef TY_MMA_CUH
#define TY_MMA_CUH
#include <type_traits>
#include "device.cuh"

/* Two numbers as a register of D has them. */
#ifdef TY_SIM
template <class D> static inline uint32_t two_of(float low, float high) {
  return stored<D>::out(low).bits | (uint32_t)stored<D>::out(high).bits << 16;
}
#else
template <class D> __device__ __forceinline__ uint32_t two_of(float low, float high);
template <> __device__ __forceinline__ uint32_t two_of<half16>(float low, float high) {
  const __half2 v = __floats2half2_rn(low, high);
  return *(const uint32_t *)&v;
}
template <> __device__ __forceinline__ uint32_t two_of<brain16>(float low, float high) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
  return *(const uint32_t *)&v;
}
#endif

/* The low, or the high, halves of two registers. */
static __device__ __forceinline__ uint32_t lows(uint32_t a, uint32_t b) {
#ifdef TY_SIM
  return (a & 0xffff) | b << 16;
#else
  return __byte_perm(a, b, 0x5410);
#endif
}
static __device__ __forceinline__ uint32_t highs(uint32_t a, uint32_t b) {
#ifdef TY_SIM
  return a >> 16 | (b & 0xffff0000u);
#else
  return __byte_perm(a, b, 0x7632);
#endif
}

#ifdef TY_SIM
struct sim_factors { uint32_t a[4], b[2]; };
template <class D> static inline float sim_half(uint32_t word, int k) { return stored<D>::in(D{(uint16_t)(word >> 16 * k)}); }
#endif

/* c += a b: (16, 16) times (16, 8). a: rows r and r + 8 of the first eight along the sum, then of the second; b: the first eight, the
   second; c: columns 2 c and 2 c + 1 of row r, then of row r + 8. */
template <class D> static __device__ __forceinline__ void multiply_add(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
  uint32_t b0, uint32_t b1) {
#ifdef TY_SIM
  const sim_factors *const warp = sim_share(sim_factors{{a0, a1, a2, a3}, {b0, b1}}) + sim_thread() / 32 * 32;
  const unsigned lane = sim_thread() % 32;
  for (int i = 0; i < 4; i++)
    for (unsigned k = 0; k < 16; k++) {
      const unsigned from = k % 8 / 2, column = lane % 4 * 2 + i % 2;
      c[i] += sim_half<D>(warp[lane / 4 * 4 + from].a[i / 2 + k / 8 * 2], k % 2) * sim_half<D>(warp[column * 4 + from].b[k / 8], k % 2);
    }
  sim_barrier();
#else
#define TY_MMA(type) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
  "{%0, %1, %2, %3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
  if constexpr (std::is_same_v<D, brain16>) TY_MMA("bf16");
  else TY_MMA("f16");
#undef TY_MMA
#endif
}

/* Of an (8, 8) matrix of 16 bits, numbers 2 c and 2 c + 1 of row r: those of column r. */
static __device__ __forceinline__ uint32_t turned(uint32_t v) {
#ifdef TY_SIM
  const uint32_t *const warp = sim_share(v) + sim_thread() / 32 * 32;
  const unsigned r = sim_thread() % 32 / 4, c = sim_thread() % 4;
  const uint32_t low = warp[2 * c * 4 + r / 2] >> r % 2 * 16, high = warp[(2 * c + 1) * 4 + r / 2] >> r % 2 * 16;
  sim_barrier();
  return lows(low, high);
#else
  uint32_t to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(v));
  return to;
#endif
}
#endif
