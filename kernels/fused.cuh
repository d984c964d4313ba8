/* What each fused kernel's source begins with, after core/math.h and block.cuh: src/cuda/source.c has this file as text.
 *
 * Idea: conversions are in_<dtype>, out_<dtype> and to_<type computed in>, so that generated code only names them. NVRTC has no headers:
 * nothing is included. */
#define DEVICE static __device__ __forceinline__
typedef float f32; typedef double f64; typedef int64_t i64;
DEVICE i64 to_i64(f64 v) { return ty_whole(v); }
DEVICE i64 to_i64(f32 v) { return to_i64((f64)v); }
DEVICE i64 to_i64(i64 v) { return v; }
template <class X> DEVICE f32 to_f32(X v) { return (f32)v; }
template <class X> DEVICE f64 to_f64(X v) { return (f64)v; }
#ifdef __CUDACC_RTC__
DEVICE f32 in_float16(uint16_t h) { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
DEVICE uint16_t half_of(f32 x) { uint16_t h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
#else
DEVICE f32 in_float16(uint16_t h) { return ty_f16_to_f32(h); }
DEVICE uint16_t half_of(f32 x) { return ty_f32_to_f16(x); }
#endif
DEVICE f32 in_bfloat16(uint16_t h) { return ty_bf16_to_f32(h); }
DEVICE f32 in_float32(f32 v) { return v; }
DEVICE f64 in_float64(f64 v) { return v; }
DEVICE i64 in_int32(int32_t v) { return v; }
DEVICE i64 in_int64(i64 v) { return v; }
DEVICE i64 in_uint8(uint8_t v) { return v; }
DEVICE i64 in_bool(uint8_t v) { return v; }
template <class X> DEVICE uint16_t out_float16(X v) { return half_of((f32)v); }
template <class X> DEVICE uint16_t out_bfloat16(X v) { return ty_f32_to_bf16((f32)v); }
template <class X> DEVICE f32 out_float32(X v) { return (f32)v; }
template <class X> DEVICE f64 out_float64(X v) { return (f64)v; }
template <class X> DEVICE int32_t out_int32(X v) { return (int32_t)to_i64(v); }
template <class X> DEVICE i64 out_int64(X v) { return to_i64(v); }
template <class X> DEVICE uint8_t out_uint8(X v) { return (uint8_t)to_i64(v); }
template <class X> DEVICE uint8_t out_bool(X v) { return v != 0; }
DEVICE f64 number(uint64_t bits) { f64 v; memcpy(&v, &bits, 8); return v; }
struct generator { uint64_t seed, offset; unsigned ticket; };     /* as ty_k_generator (kernels.h); move_on: as device.cuh */
DEVICE void move_on(generator *g, uint64_t blocks) {
  __syncthreads();
  if (threadIdx.x || threadIdx.y) return;
  __threadfence();
  if (atomicAdd(&g->ticket, 1u) + 1 != gridDim.x) return;
  g->ticket = 0;
  g->offset += blocks;
}
DEVICE uint32_t word(const generator *g, uint64_t i) { uint32_t w[4]; ty_philox(g->seed, g->offset + i / 4, w); return w[i % 4]; }
