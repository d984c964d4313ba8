/* What every kernel file uses: launches, elements of any dtype, indices, faults.
 *
 * Idea: kernels are launched through TY_LAUNCH alone, so that they also build for the host, where spec/simgpu runs them. Invariant: an
 * element of any dtype is computed with as float32, float64 or int64 (core/names.h), and rounded once, when it is stored. */
#ifndef TY_DEVICE_CUH
#define TY_DEVICE_CUH
#ifdef TY_SIM
#include "sim.h"
#define TY_LAUNCH(kernel, grid, block, stream, ...) sim_launch(grid, block, stream, [=] { kernel(__VA_ARGS__); })
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define TY_LAUNCH(kernel, grid, block, stream, ...) ty_launch(kernel, grid, block, stream, __VA_ARGS__)
/* Launches as <<<>>> does, without its detour for the configuration; returns the launch's own error, not an earlier one. */
template <class T> struct parameter { typedef T type; };
template <class... P> static inline cudaError_t ty_launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t s,
  typename parameter<P>::type... p) {
  void *list[] = {&p...};
  return cudaLaunchKernel((const void *)kernel, grid, block, list, 0, s);
}
#endif
#include "kernels.h"
#include "math.h"
#include "block.cuh"

#ifdef __CUDA_ARCH__
static __device__ __forceinline__ float half_to_float(uint16_t h) { return __half2float(__ushort_as_half(h)); }
static __device__ __forceinline__ uint16_t float_to_half(float x) { return __half_as_ushort(__float2half_rn(x)); }
#else
static __device__ inline float half_to_float(uint16_t h) { return ty_f16_to_f32(h); }
static __device__ inline uint16_t float_to_half(float x) { return ty_f32_to_f16(x); }
#endif

template <class T> struct as {
  static __device__ __forceinline__ T of(double v) { return (T)v; }
  static __device__ __forceinline__ T of(float v) { return (T)v; }
  static __device__ __forceinline__ T of(int64_t v) { return (T)v; }
};
template <> struct as<int64_t> {
  static __device__ __forceinline__ int64_t of(double v) { return ty_whole(v); }
  static __device__ __forceinline__ int64_t of(float v) { return ty_whole((double)v); }
  static __device__ __forceinline__ int64_t of(int64_t v) { return v; }
};

/* Element i of memory of this dtype, converted to the type computed in. */
template <class T> static __device__ __forceinline__ T load(const void *p, int dtype, int64_t i) {
  switch (dtype) {
    case TY_F32: return as<T>::of(((const float *)p)[i]);
    case TY_F64: return as<T>::of(((const double *)p)[i]);
    case TY_F16: return as<T>::of(half_to_float(((const uint16_t *)p)[i]));
    case TY_BF16: return as<T>::of(ty_bf16_to_f32(((const uint16_t *)p)[i]));
    case TY_I32: return as<T>::of((int64_t)((const int32_t *)p)[i]);
    case TY_I64: return as<T>::of(((const int64_t *)p)[i]);
    default: return as<T>::of((int64_t)((const uint8_t *)p)[i]);
  }
}

template <class T> static __device__ __forceinline__ void store(void *p, int dtype, int64_t i, T v) {
  switch (dtype) {
    case TY_F32: ((float *)p)[i] = (float)v; break;
    case TY_F64: ((double *)p)[i] = (double)v; break;
    case TY_F16: ((uint16_t *)p)[i] = float_to_half((float)v); break;
    case TY_BF16: ((uint16_t *)p)[i] = ty_f32_to_bf16((float)v); break;
    case TY_I32: ((int32_t *)p)[i] = (int32_t)as<int64_t>::of(v); break;
    case TY_I64: ((int64_t *)p)[i] = as<int64_t>::of(v); break;
    case TY_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    default: ((uint8_t *)p)[i] = (uint8_t)as<int64_t>::of(v);
  }
}

/* Conversions between D, a floating dtype known at compile time, and the type computed in. */
struct half16 { uint16_t bits; };
struct brain16 { uint16_t bits; };
template <class D> struct stored {
  typedef D type;
  static __device__ __forceinline__ D in(D d) { return d; }
  template <class T> static __device__ __forceinline__ D out(T v) { return (D)v; }
};
template <> struct stored<half16> {
  typedef float type;
  static __device__ __forceinline__ float in(half16 d) { return half_to_float(d.bits); }
  static __device__ __forceinline__ half16 out(float v) { return {float_to_half(v)}; }
};
template <> struct stored<brain16> {
  typedef float type;
  static __device__ __forceinline__ float in(brain16 d) { return ty_bf16_to_f32(d.bits); }
  static __device__ __forceinline__ brain16 out(float v) { return {ty_f32_to_bf16(v)}; }
};

/* x rounded as memory of this floating dtype would hold it. */
template <class T> static __device__ __forceinline__ T rounded(T x, int dtype) {
  return dtype == TY_F16 ? (T)half_to_float(float_to_half((float)x)) : dtype == TY_BF16 ? (T)ty_bf16_to_f32(ty_f32_to_bf16((float)x)) : x;
}

/* Splits position i: returns its index along the innermost dim, of `size` elements; i becomes the position in the other dims. wide: 32 bits
   don't hold i; a division of 64 bits takes as long as tens of other instructions. */
static __device__ __forceinline__ int64_t innermost(int64_t &i, int64_t size, bool wide) {
  const int64_t rest = wide ? i / size : (int64_t)((uint32_t)i / (uint32_t)size), place = i - rest * size;
  i = rest;
  return place;
}

/* A divisor of many dividends from 0 up. In 32 bits it multiplies, which takes a tenth of a division's time. */
template <class S> struct divider {
  S by;
  explicit divider(S d) : by(d) {}
  __device__ __forceinline__ S of(S i) const { return i / by; }
  /* returns the remainder; i becomes the quotient */
  __device__ __forceinline__ S take(S &i) const { const S rest = i / by, place = i - rest * by; i = rest; return place; }
};
template <> struct divider<int32_t> {
  uint32_t by, factor;
  int shift;
  explicit divider(int32_t d) : by(d < 1 ? 1 : (uint32_t)d), shift(0) {
    while ((uint64_t)1 << shift < by) shift++;
    factor = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - by)) / by + 1);
  }
  __device__ __forceinline__ int32_t of(int32_t i) const {
    return (int32_t)(((uint32_t)((uint64_t)(uint32_t)i * factor >> 32) + (uint32_t)i) >> shift);
  }
  __device__ __forceinline__ int32_t take(int32_t &i) const {
    const int32_t rest = of(i), place = i - rest * (int32_t)by;
    i = rest;
    return place;
  }
};

/* Reports a fault, unless a kernel has reported one in this epoch. */
static __device__ __forceinline__ void report(ty_k_fault *f, int site, int fault, int64_t value, int64_t limit) {
  const unsigned now = f->epoch;
  if (atomicMax(f->claimed, now) >= now) return;
  f->site = site;
  f->value = value;
  f->limit = limit;
  __threadfence_system();                  /* the host must see the other fields before fault */
  f->fault = fault;
}

/* Whether this block is the last of `blocks` to come here; the last one sees what the others have written. *ticket is 0, and 0 again when
   all have come. All threads of a block call it. */
static __device__ __forceinline__ bool last_block(unsigned *ticket, unsigned blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();                       /* publishes the whole block's writes, which the barrier has shown to this thread */
    last = atomicAdd(ticket, 1u) + 1 == blocks;
    if (last) *ticket = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/* Advances the generator by so many Philox blocks, when all blocks of the launch have read it. All threads call it, at a kernel's end. */
static __device__ __forceinline__ void move_on(ty_k_generator *g, uint64_t blocks) {
  if (last_block(&g->ticket, gridDim.x) && threadIdx.x == 0) g->offset += blocks;
}

/* 0, which every launch refuses, where a grid can't have so many blocks */
static inline unsigned blocks_for(int64_t n, int64_t each) {
  int64_t b = (n + each - 1) / each;
  return (unsigned)(b < 1 ? 1 : b > 0x7fffffff ? 0 : b);
}
#endif
