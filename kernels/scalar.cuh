/* Scalar functions, overloaded by their argument's type for kernels that are templates.
 *
 * Invariant: they are the elementary functions of the CPU and of fused kernels (core/elementary.h), so that bits agree. */
#ifndef TY_SCALAR_CUH
#define TY_SCALAR_CUH
#include "device.cuh"

static __device__ __forceinline__ float exp_of(float x) { return exp_f32(x); }
static __device__ __forceinline__ double exp_of(double x) { return exp_f64(x); }
/* exp(x) for x up to 0 */
static __device__ __forceinline__ float exp_down(float x) { return ty_exp_down_f32(x); }
static __device__ __forceinline__ double exp_down(double x) { return ty_exp_down_f64(x); }
static __device__ __forceinline__ float log_of(float x) { return log_f32(x); }
static __device__ __forceinline__ double log_of(double x) { return log_f64(x); }
static __device__ __forceinline__ float root(float x) { return sqrt_f32(x); }
static __device__ __forceinline__ double root(double x) { return sqrt(x); }
static __device__ __forceinline__ float larger(float a, float b) { return max_f32(a, b); }
static __device__ __forceinline__ double larger(double a, double b) { return max_f64(a, b); }
#endif
