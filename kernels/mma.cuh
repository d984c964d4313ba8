/* Products of small matrices of 16-bit numbers by tensor cores, summed in float32; and how matrices get into a warp's registers.
 *
 * Idea: lane 4 r + c of a warp holds rows r and r + 8 of the first factor and of the sum, and column r of the second factor: of these,
 * numbers 2 c and 2 c + 1 of each eight along the other dim, two in a register. Along the summed dim numbers may stand in any order in
 * which both factors agree. Invariant: all lanes of a warp call; in the simulation, all threads of a block. */
#ifndef TY_MMA_CUH
#define TY_MMA_CUH
#include <type_traits>
#include "device.cuh"

/* Two numbers rounded to D, in one register. */
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

/* The low (or the high) halves of two registers, in one. */
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

/* c += a b, (16, 16) times (16, 8). a0, a1: rows r and r + 8 of the first eight along the summed dim; a2, a3: of the second. b0, b1: the
   first eight, the second. c: columns 2 c and 2 c + 1 of row r, then of row r + 8. IN_ORDER: keeps its place among memory reads. FIRST: c =
   a b, which needs no zeros. */
template <class D, bool IN_ORDER = false, bool FIRST = false> static __device__ __forceinline__ void multiply_add(float (&c)[4],
  uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
#ifdef TY_SIM
  const sim_factors *const warp = sim_share(sim_factors{{a0, a1, a2, a3}, {b0, b1}}) + sim_thread() / 32 * 32;
  const unsigned lane = sim_thread() % 32;
  for (int i = 0; i < 4; i++) {
    if (FIRST) c[i] = 0;
    for (unsigned k = 0; k < 16; k++) {
      const unsigned from = k % 8 / 2, column = lane % 4 * 2 + i % 2;
      c[i] += sim_half<D>(warp[lane / 4 * 4 + from].a[i / 2 + k / 8 * 2], k % 2) * sim_half<D>(warp[column * 4 + from].b[k / 8], k % 2);
    }
  }
  sim_barrier();
#else
#define TY_MMA(how, type) how("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
  "{%10, %11, %12, %13};" : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), \
  "f"(FIRST ? 0 : c[0]), "f"(FIRST ? 0 : c[1]), "f"(FIRST ? 0 : c[2]), "f"(FIRST ? 0 : c[3]))
  constexpr bool brain = std::is_same_v<D, brain16>;
  if constexpr (IN_ORDER && brain) TY_MMA(asm volatile, "bf16");
  else if constexpr (IN_ORDER) TY_MMA(asm volatile, "f16");
  else if constexpr (brain) TY_MMA(asm, "bf16");
  else TY_MMA(asm, "f16");
#undef TY_MMA
#endif
}

/* Transposes an (8, 8) matrix of 16-bit numbers: v has numbers 2 c and 2 c + 1 of row r, the result those of column r. */
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

/* An address in shared memory, counted in 16 bytes. Instructions take 32 bits for it; a pointer has 64. */
#ifdef TY_SIM
typedef uint4 *shared_place;
static inline shared_place shared(uint4 *p) { return p; }
#else
struct shared_place {
  uint32_t at;
  __device__ __forceinline__ shared_place operator+(int n) const { return {at + (uint32_t)n * 16}; }
};
static __device__ __forceinline__ shared_place shared(uint4 *p) { return {(uint32_t)__cvta_generic_to_shared(p)}; }
#endif

/* Reads four (8, 8) matrices from shared memory; lanes 0 to 7 point to the first one's rows, 8 to 15 to the second's, and so on. A lane
   gets numbers 2 c and 2 c + 1 of row r of each; TURNED: of column r. */
template <bool TURNED> static __device__ __forceinline__ void take_matrices(uint32_t (&to)[4], shared_place row) {
#ifdef TY_SIM
  const uint16_t *const *const warp = (const uint16_t *const *)sim_share(row) + sim_thread() / 32 * 32;
  const unsigned r = sim_thread() % 32 / 4, c = sim_thread() % 4;
  for (int m = 0; m < 4; m++)
    to[m] = TURNED ? warp[m * 8 + 2 * c][r] | (uint32_t)warp[m * 8 + 2 * c + 1][r] << 16
      : warp[m * 8 + r][2 * c] | (uint32_t)warp[m * 8 + r][2 * c + 1] << 16;
  sim_barrier();
#else
  if (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]),
      "=r"(to[3]) : "r"(row.at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]),
      "=r"(to[3]) : "r"(row.at) : "memory");
#endif
}

/* Begins a copy of 16 bytes to shared memory, of zeros unless `has`. bring_away ends a group of copies; wait_for<N> waits for all of the
   thread's groups but the last N. */
static __device__ __forceinline__ void bring(shared_place to, const void *from, bool has) {
#ifdef TY_SIM
  if (has) TY_ALIGNED(from, sizeof *to);
  *to = has ? *(const uint4 *)from : uint4{0, 0, 0, 0};
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to.at), "l"(from), "r"(has ? 16 : 0) : "memory");
#endif
}
static __device__ __forceinline__ void bring_away() {
#ifndef TY_SIM
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> static __device__ __forceinline__ void wait_for() {
#ifndef TY_SIM
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
#endif
}

/* 2^x, accurate to a few units in the last place: for results that are rounded to 16 bits. */
static __device__ __forceinline__ float exp2_near(float x) {
#ifdef TY_SIM
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
#endif
