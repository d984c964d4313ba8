/* The elementary functions of float32, the commonest of float64, and the macros by which gcc, nvcc and NVRTC all compile them.
 *
 * Idea: polynomials without branches or calls, so that a compiler turns a loop over them into vector code and every backend
 * computes the same. A product and a sum are fused only where fma is written (contraction is off). Errors are 1 to 4 units in
 * the last place; spec/elementary_spec.lua lists them. Coefficients: Cephes (exp, log, sin, cos), N. Juffa (erf), Eigen
 * (tanh), Giles (erfinv), Sun's fdlibm (float64's log, sin, cos, atan); the others are fitted to minimise the largest relative error. */
#ifndef TY_ELEMENTARY_H
#define TY_ELEMENTARY_H

#ifdef __CUDACC_RTC__      /* has no headers; its memcpy is built in */
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define FLT_MIN 1.17549435e-38f
#define DBL_MIN 2.2250738585072014e-308
#define INFINITY ty_float(0x7f800000u)
#define NAN ty_float(0x7fffffffu)
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_copysignf copysignf
#define __builtin_copysign copysign
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_floorf floorf
#define __builtin_floor floor
#define __builtin_ceilf ceilf
#define __builtin_ceil ceil
#define __builtin_rintf rintf
#define __builtin_rint rint
#define __builtin_truncf truncf
#define __builtin_trunc trunc
#define __builtin_fmodf fmodf
#define __builtin_fmod fmod
#else
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

#ifdef __CUDACC_RTC__
#define TY_INLINE static __device__ __forceinline__
#elif defined(__CUDACC__)
#define TY_INLINE static __host__ __device__ __forceinline__ __attribute__((unused))
#else
#define TY_INLINE static inline __attribute__((always_inline, unused))
#endif

TY_INLINE uint32_t ty_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
TY_INLINE float ty_float(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }

/* a / b and 1 / b, rounded as a division, for numbers of 1e-30 .. 1e30 (a may be 0). On a GPU these are nvcc's own instructions for a
 * division, without its branch for numbers outside of that range, which would delay a thread's other elements. */
#ifdef __CUDA_ARCH__
TY_INLINE float ty_inverse(float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  return __builtin_fmaf(r, __builtin_fmaf(-b, r, 1.0f), r);
}
TY_INLINE float ty_quotient(float a, float b) {
  const float r = ty_inverse(b), y = a * r;
  return __builtin_fmaf(r, __builtin_fmaf(-b, y, a), y);
}
#else
TY_INLINE float ty_inverse(float b) { return 1.0f / b; }
TY_INLINE float ty_quotient(float a, float b) { return a / b; }
#endif

/* ---- exp, log and what follows from them, float32 ---- */

/* e^r - 1 for |r| <= log(2) / 2 */
TY_INLINE float ty_exp_rest(float r) {
  float p = 1.98756915e-4f;
  p = __builtin_fmaf(p, r, 1.39819995e-3f);
  p = __builtin_fmaf(p, r, 8.33345205e-3f);
  p = __builtin_fmaf(p, r, 4.16657962e-2f);
  p = __builtin_fmaf(p, r, 1.66666657e-1f);
  p = __builtin_fmaf(p, r, 0.5f);
  return __builtin_fmaf(p, r * r, r);
}

/* With x = k log(2) + r, k whole: gives e^r - 1. *m is k + 1.5 * 2^23, the sum that rounded k: its low bits are k. */
TY_INLINE float ty_exp_part(float x, float *m) {
  float k = (*m = __builtin_fmaf(x, 1.44269504f, 12582912.0f)) - 12582912.0f;
  return ty_exp_rest(__builtin_fmaf(k, -1.42860677e-6f, __builtin_fmaf(k, -0.693145752f, x)));
}

/* y * 2^k for whole k of -300 to 300, in two steps, to reach denormals and inf */
TY_INLINE float ty_scaled(float y, int32_t k) {
  int32_t h = k >> 1;
  return y * ty_float((uint32_t)(h + 127) << 23) * ty_float((uint32_t)(k - h + 127) << 23);
}

/* e^x 2^shift. For |x| > 104 it is inf or 0 anyway; NaN stays NaN. */
TY_INLINE float ty_exp_shifted(float x, int32_t shift) {
  float c = __builtin_fabsf(x) > 104.0f ? __builtin_copysignf(104.0f, x) : x;
  float m, p = ty_exp_part(c, &m) + 1.0f;
  return ty_scaled(p, (int32_t)(ty_bits(m) - 0x4b400000u) + shift);
}
TY_INLINE float exp_f32(float x) { return ty_exp_shifted(x, 0); }

/* e^x for x <= 0, in two thirds of the instructions; denormal results become 0 */
TY_INLINE float ty_exp_down_f32(float x) {
  float m, p = ty_exp_part(x, &m) + 1.0f;
  float y = p * ty_float((ty_bits(m) << 23) + 0x3f800000u);             /* m's low bits are the exponent */
  return x < -87.3f ? 0.0f : y;
}

TY_INLINE float log_f32(float x) {
  float y = x < FLT_MIN ? x * 8388608.0f : x;                           /* denormals */
  float bias = x < FLT_MIN ? -23.0f : 0.0f;
  uint32_t u = ty_bits(y);
  int32_t e = (int32_t)((u - 0x3f3504f3u)) >> 23;                       /* mantissa in sqrt(1/2) .. sqrt(2) */
  float m = ty_float(u - ((uint32_t)e << 23)) - 1.0f, k = (float)e + bias;
  float p = 7.0376836292e-2f;
  p = __builtin_fmaf(p, m, -1.1514610310e-1f);
  p = __builtin_fmaf(p, m, 1.1676998740e-1f);
  p = __builtin_fmaf(p, m, -1.2420140846e-1f);
  p = __builtin_fmaf(p, m, 1.4249322787e-1f);
  p = __builtin_fmaf(p, m, -1.6668057665e-1f);
  p = __builtin_fmaf(p, m, 2.0000714765e-1f);
  p = __builtin_fmaf(p, m, -2.4999993993e-1f);
  p = __builtin_fmaf(p, m, 3.3333331174e-1f);
  float z = m * m, r = p * m * z;
  r = __builtin_fmaf(k, -2.12194440e-4f, r);
  r = __builtin_fmaf(z, -0.5f, r) + m;
  r = __builtin_fmaf(k, 0.693359375f, r);
  r = x == 0.0f ? -INFINITY : r;
  r = x < 0.0f ? NAN : r;
  return x == INFINITY || x != x ? x : r;
}

/* A quotient of an odd and an even polynomial, x clamped to a bound; from 9.02 on the result rounds to 1. */
TY_INLINE float tanh_f32(float x) {
  float c = x > 7.9053111f ? 7.9053111f : x;
  c = c < -7.9053111f ? -7.9053111f : c;
  float z = c * c;
  float p = -2.76076847742355e-16f;
  p = __builtin_fmaf(p, z, 2.00018790482477e-13f);
  p = __builtin_fmaf(p, z, -8.60467152213735e-11f);
  p = __builtin_fmaf(p, z, 5.12229709037114e-8f);
  p = __builtin_fmaf(p, z, 1.48572235717979e-5f);
  p = __builtin_fmaf(p, z, 6.37261928875436e-4f);
  p = __builtin_fmaf(p, z, 4.89352455891786e-3f) * c;
  float q = 1.19825839466702e-6f;
  q = __builtin_fmaf(q, z, 1.18534705686654e-4f);
  q = __builtin_fmaf(q, z, 2.26843463243900e-3f);
  q = __builtin_fmaf(q, z, 4.89352518554385e-3f);
  float y = ty_quotient(p, q);
  y = x > 9.02f ? 1.0f : x < -9.02f ? -1.0f : y;
  return __builtin_fabsf(x) < 4e-4f ? x : y;
}

/* erf(x) for |x| < 0.93 */
TY_INLINE float ty_erf_part(float x) {
  float s = x * x, p = -5.96761703e-4f;
  p = __builtin_fmaf(p, s, 4.99119423e-3f);
  p = __builtin_fmaf(p, s, -2.67681349e-2f);
  p = __builtin_fmaf(p, s, 1.12819925e-1f);
  p = __builtin_fmaf(p, s, -3.76125336e-1f);
  p = __builtin_fmaf(p, s, 1.28379166e-1f);
  return __builtin_fmaf(p, x, x);
}
TY_INLINE float erf_f32(float x) {
  float t = __builtin_fabsf(x), s = x * x;
  float r = __builtin_fmaf(-1.72853470e-5f, t, 3.83197126e-4f);
  float u = __builtin_fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
  r = __builtin_fmaf(r, s, u);
  r = __builtin_fmaf(r, t, -1.06777877e-1f);
  r = __builtin_fmaf(r, t, -6.34846687e-1f);
  r = __builtin_fmaf(r, t, -1.28717512e-1f);
  r = __builtin_fmaf(r, t, -t);
  float big = __builtin_copysignf(1.0f - ty_exp_down_f32(r), x);
  return t > 0.927734375f ? big : ty_erf_part(x);
}

/* sine and cosine of r, |r| <= pi/4, z = r * r */
TY_INLINE float ty_sin_part(float r, float z) {
  float s = __builtin_fmaf(__builtin_fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
  return __builtin_fmaf(s * z, r, r);
}
TY_INLINE float ty_cos_part(float z) {
  float c = __builtin_fmaf(__builtin_fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
  return __builtin_fmaf(c * z, z, __builtin_fmaf(z, -0.5f, 1.0f));
}

/* sine and cosine of 2 pi u for 0 <= u < 1: exact reduction, for normal random numbers */
TY_INLINE void ty_sincos_2pi(float u, float *sn, float *cs) {
  float q = __builtin_fmaf(u, 4.0f, 12582912.0f) - 12582912.0f;
  float r = __builtin_fmaf(q, -0.25f, u) * 6.28318531f, z = r * r;
  float s = ty_sin_part(r, z), c = ty_cos_part(z);
  int i = (int)q & 3;
  float a = i & 1 ? c : s, b = i & 1 ? s : c;
  *sn = i & 2 ? -a : a;
  *cs = i == 1 || i == 2 ? -b : b;
}

/* exp(x) - 1: 2^k (e^r - 1) + (2^k - 1) */
TY_INLINE float expm1_f32(float x) {
  float c = x < -20.0f ? -20.0f : x > 60.0f ? 60.0f : x;
  float m, p = ty_exp_part(c, &m), s = ty_float((ty_bits(m) - 0x4b400000u + 127u) << 23);
  float y = __builtin_fmaf(s, p, s - 1.0f);
  y = x > 60.0f ? exp_f32(x) : y;
  return x != x || x == 0 ? x : y;
}

/* log(1 + x), with a correction for what rounding 1 + x loses. */
TY_INLINE float log1p_f32(float x) {
  float u = 1.0f + x, y = log_f32(u) + (x - (u - 1.0f)) / u;
  y = u == 1.0f ? x : y;
  y = x == -1.0f ? -INFINITY : y;
  return x == INFINITY ? x : y;
}

/* sine (part 0), cosine (1) or tangent (2): x less a multiple of pi/2, reduced in float64, precise up to |x| = 2^48; NaN beyond */
TY_INLINE float ty_circular(float x, int part) {
  double k = (double)x * 0.63661977236758134 + 6755399441055744.0, q = k - 6755399441055744.0;
  double d = __builtin_fma(q, -1.5707963267948966, (double)x);
  d = __builtin_fma(q, -6.123233995736766e-17, d);
  uint64_t bits;
  memcpy(&bits, &k, 8);
  int i = (int)(bits & 3) + (part & 1);
  float r = (float)d, z = r * r, s = ty_sin_part(r, z), c = ty_cos_part(z);
  float y = i & 1 ? c : s, over = i & 1 ? -s : c;
  y = part == 2 ? y / over : i & 2 ? -y : y;
  return __builtin_fabsf(x) <= 281474976710656.0f ? y : NAN;
}
TY_INLINE float sin_f32(float x) { return ty_circular(x, 0); }
TY_INLINE float cos_f32(float x) { return ty_circular(x, 1); }
TY_INLINE float tan_f32(float x) { return ty_circular(x, 2); }

/* ---- powers and logarithms to more digits than float32 has: a second number (low) keeps what rounding the first loses ---- */

/* four more steps of Horner's scheme in x; p is the value so far */
TY_INLINE float ty_horner(float p, float x, float c3, float c2, float c1, float c0) {
  p = __builtin_fmaf(__builtin_fmaf(p, x, c3), x, c2);
  return __builtin_fmaf(__builtin_fmaf(p, x, c1), x, c0);
}

/* With x = m 2^k, m in sqrt(1/2) .. sqrt(2), x > 0 and finite: gives k, and log(m) as the sum of *high and *low.
 * log(m) = 2 atanh(q), q = (m - 1) / (m + 1). */
TY_INLINE float ty_log_pair(float x, float *high, float *low) {
  float y = x < FLT_MIN ? x * 8388608.0f : x;
  uint32_t u = ty_bits(y);
  int32_t e = (int32_t)((u - 0x3f3504f3u)) >> 23;
  float m = ty_float(u - ((uint32_t)e << 23)), f = m - 1.0f, r = 1.0f / (m + 1.0f), q = f * r;
  float rest = r * __builtin_fmaf(q, -f, __builtin_fmaf(q, -2.0f, f));
  float s = q * q, s_low = __builtin_fmaf(q, q, -s) + 2.0f * q * rest;
  float t = s * __builtin_fmaf(__builtin_fmaf(0.234186977f, s, 0.28547129f), s, 0.400001526f);
  float c = 0.666666687f + t, c_low = 0.666666687f - c + t - 1.98682153e-8f;               /* 2/3 + t */
  float g = s * c, g_low = __builtin_fmaf(s, c, -g) + __builtin_fmaf(s, c_low, s_low * c);
  float p = g * q, p_low = __builtin_fmaf(g, q, -p) + __builtin_fmaf(g_low, q, g * rest);
  *high = __builtin_fmaf(2.0f, q, p);
  *low = __builtin_fmaf(2.0f, q, -*high) + p + __builtin_fmaf(2.0f, rest, p_low);
  return (float)e + (x < FLT_MIN ? -23.0f : 0.0f);
}
/* k a + log(m) b: the logarithm to any base, each constant a pair (a + a_low, b + b_low) */
TY_INLINE float ty_log_base(float x, float a, float a_low, float b, float b_low) {
  float high, low, k = ty_log_pair(x, &high, &low);
  float p = high * b, t = __builtin_fmaf(high, b, -p) + __builtin_fmaf(high, b_low, low * b);
  float w = k * a, y = w + p, v = y - w;                                   /* k a is exact: a has few digits */
  y = y + (t + (p - v) + (w - (y - v)) + k * a_low);
  y = x == 0.0f ? -INFINITY : y;
  y = x < 0.0f ? NAN : y;
  return x == INFINITY || x != x ? x : y;
}
TY_INLINE float log2_f32(float x) { return ty_log_base(x, 1.0f, 0.0f, 1.44269502f, 1.92596299e-8f); }
TY_INLINE float log10_f32(float x) { return ty_log_base(x, 0.301025391f, 4.60503907e-6f, 0.434294492f, -1.00879366e-8f); }

TY_INLINE float exp2_f32(float x) {
  float c = __builtin_fabsf(x) > 152.0f ? __builtin_copysignf(152.0f, x) : x;
  float m = c + 12582912.0f, r = c - (m - 12582912.0f);
  float p = ty_horner(1.53533605e-4f, r, 1.3398875e-3f, 9.61843692e-3f, 5.55033237e-2f, 2.40226477e-1f);
  return ty_scaled(__builtin_fmaf(__builtin_fmaf(p, r, 0.693147182f), r, 1.0f), (int32_t)(ty_bits(m) - 0x4b400000u));
}

/* e^(b log|a|), then C's rules for zeros, infinities, negative bases and NaN */
TY_INLINE float pow_f32(float a, float b) {
  float x = __builtin_fabsf(a), c = __builtin_fabsf(b) > 1e12f ? __builtin_copysignf(1e12f, b) : b, low;
  float high, k = ty_log_pair(x, &high, &low), w = k * 0.693359375f, v = w + high;
  low += w - v + high + k * -2.12194440e-4f;
  float l = v + low;
  low += v - l;
  float y = c * l, rest = __builtin_fmaf(c, l, -y) + c * low;
  float z = __builtin_fabsf(y) > 110.0f ? __builtin_copysignf(110.0f, y) : y;
  float m = __builtin_fmaf(z, 1.44269504f, 12582912.0f), n = m - 12582912.0f;
  float r = __builtin_fmaf(n, -0.693145752f, z);
  r += __builtin_fmaf(n, -1.42860677e-6f, z == y ? rest : 0.0f);
  v = ty_scaled(ty_exp_rest(r) + 1.0f, (int32_t)(ty_bits(m) - 0x4b400000u));
  v = x == 0.0f || x == INFINITY ? (x == 0.0f) == (b < 0.0f) ? INFINITY : 0.0f : v;
  int whole = __builtin_truncf(b) == b, odd = whole && __builtin_truncf(b * 0.5f) * 2.0f != b;
  v = a < 0.0f && !whole && x != INFINITY ? NAN : v;
  v = odd ? __builtin_copysignf(v, a) : v;
  v = a != a || b != b ? a + b : v;
  return b == 2.0f ? a * a : a == 1.0f || b == 0.0f || (x == 1.0f && __builtin_fabsf(b) == INFINITY) ? 1.0f : v;
}

/* ---- angles ---- */

/* atan(x) for 0 <= x <= 1 */
TY_INLINE float ty_atan_part(float x) {
  float s = x * x;
  float p = ty_horner(-1.79359387e-3f, s, 1.09144812e-2f, -3.11776139e-2f, 5.79573587e-2f, -8.40343684e-2f);
  p = ty_horner(p, s, 1.09521814e-1f, -1.42642409e-1f, 1.99985489e-1f, -3.33332986e-1f);
  return __builtin_fmaf(p * s, x, x);
}
TY_INLINE float atan_f32(float x) {
  float t = __builtin_fabsf(x), y = ty_atan_part(t > 1.0f ? 1.0f / t : t);
  return __builtin_copysignf(t > 1.0f ? 1.57079637f - (y + 4.37113883e-8f) : y, x);
}
TY_INLINE float atan2_f32(float a, float b) {
  float x = __builtin_fabsf(b), y = __builtin_fabsf(a), large = x > y ? x : y, small = x > y ? y : x;
  float q = small == large ? 1.0f : small / large;                         /* inf / inf, too */
  float r = ty_atan_part(large == 0.0f ? 0.0f : q);
  r = y > x ? 1.57079637f - (r + 4.37113883e-8f) : r;
  r = __builtin_copysignf(1.0f, b) < 0.0f ? 3.14159274f - (r + 8.74227766e-8f) : r;
  return a != a || b != b ? a + b : __builtin_copysignf(r, a);
}

/* asin(x) for 0 <= x <= 1/2 */
TY_INLINE float ty_asin_part(float x) {
  float s = x * x, p = ty_horner(4.21663821e-2f, s, 2.41795257e-2f, 4.54703756e-2f, 7.49529749e-2f, 1.66667521e-1f);
  return __builtin_fmaf(p * s, x, x);
}
TY_INLINE float asin_f32(float x) {
  float t = __builtin_fabsf(x), y = ty_asin_part(t > 0.5f ? __builtin_sqrtf(0.5f - 0.5f * t) : t);
  return __builtin_copysignf(t > 0.5f ? 1.57079637f - __builtin_fmaf(2.0f, y, 4.37113883e-8f) : y, x);
}
TY_INLINE float acos_f32(float x) {
  float t = __builtin_fabsf(x), y = ty_asin_part(t > 0.5f ? __builtin_sqrtf(0.5f - 0.5f * t) : t);
  float far = x < 0.0f ? __builtin_fmaf(-2.0f, y, 3.14159274f) : 2.0f * y;
  return t > 0.5f ? far : 1.57079637f - (__builtin_copysignf(y, x) + 4.37113883e-8f);
}

/* ---- hyperbolic functions, from e^|x| / 2 and from log1p ---- */

TY_INLINE float cosh_f32(float x) {
  float e = ty_exp_shifted(__builtin_fabsf(x), -1);
  return e + 0.25f / e;
}
TY_INLINE float sinh_f32(float x) {
  float t = __builtin_fabsf(x), e = ty_exp_shifted(t, -1), s = x * x;
  float p = __builtin_fmaf(__builtin_fmaf(2.03721953e-4f, s, 8.33028369e-3f), s, 1.66667163e-1f);
  return t < 1.0f ? __builtin_fmaf(p * s, x, x) : __builtin_copysignf(e - 0.25f / e, x);
}
TY_INLINE float asinh_f32(float x) {
  float t = __builtin_fabsf(x), s = t * t, y = log1p_f32(t + s / (1.0f + __builtin_sqrtf(s + 1.0f)));
  return __builtin_copysignf(t > 1e4f ? log_f32(t) + 0.693147182f : y, x);
}
TY_INLINE float acosh_f32(float x) {
  float t = x - 1.0f;
  float y = x > 1e4f ? log_f32(x) + 0.693147182f : log1p_f32(t + __builtin_sqrtf(__builtin_fmaf(t, t, 2.0f * t)));
  return x < 1.0f ? NAN : y;
}
TY_INLINE float atanh_f32(float x) {
  float t = __builtin_fabsf(x);
  return __builtin_copysignf(0.5f * log1p_f32(2.0f * t / (1.0f - t)), x);
}

/* (1 + 2 t) e^(t t) erfc(t) is a polynomial in (t - 2) / (t + 2), which lies in -1 .. 1 */
TY_INLINE float erfc_f32(float x) {
  float t = __builtin_fabsf(x), s = t * t, e = exp_f32(-s);
  float d = t + 2.0f, q = t > 11.0f ? 0.7f : (t - 2.0f) / d;
  float p = __builtin_fmaf(-4.00579593e-4f, q, -1.22993079e-3f);
  p = ty_horner(p, q, 1.31352537e-3f, 8.63168482e-3f, -8.05987604e-3f, -5.42043e-2f);
  p = ty_horner(p, q, 1.64055347e-1f, -1.6603142e-1f, -9.27639827e-2f, 1.27697837f);
  float y = p / __builtin_fmaf(2.0f, t, 1.0f) * e;
  y = t > 11.0f ? 0.0f : __builtin_fmaf(y, __builtin_fmaf(-t, t, s), y);
  y = x < 0.0f ? 2.0f - y : y;
  return t < 0.5f ? 1.0f - ty_erf_part(x) : x != x ? x : y;
}

/* Giles 2012: two polynomials in w = -log(1 - x^2). float64 (math.h) starts from this and takes Newton steps. */
TY_INLINE float erfinv_f32(float x) {
  float w = -log1p_f32(-x * x), a = w - 2.5f, b = __builtin_sqrtf(w) - 3.0f, p = 2.81022636e-8f, q = -2.00214257e-4f;
  p = __builtin_fmaf(p, a, 3.43273939e-7f);  q = __builtin_fmaf(q, b, 1.00950558e-4f);
  p = __builtin_fmaf(p, a, -3.5233877e-6f);  q = __builtin_fmaf(q, b, 1.34934322e-3f);
  p = __builtin_fmaf(p, a, -4.39150654e-6f); q = __builtin_fmaf(q, b, -3.67342844e-3f);
  p = __builtin_fmaf(p, a, 2.1858087e-4f);   q = __builtin_fmaf(q, b, 5.73950773e-3f);
  p = __builtin_fmaf(p, a, -1.25372503e-3f); q = __builtin_fmaf(q, b, -7.6224613e-3f);
  p = __builtin_fmaf(p, a, -4.17768164e-3f); q = __builtin_fmaf(q, b, 9.43887047e-3f);
  p = __builtin_fmaf(p, a, 2.46640727e-1f);  q = __builtin_fmaf(q, b, 1.00167406f);
  p = __builtin_fmaf(p, a, 1.50140941f);     q = __builtin_fmaf(q, b, 2.83297682f);
  float y = (w < 5.0f ? p : q) * x;
  return x == 1.0f || x == -1.0f ? x * INFINITY : y;
}

/* ---- float64: the functions that training uses most; the others call libm (math.h) ---- */

TY_INLINE uint64_t ty_bits_f64(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
TY_INLINE double ty_double(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }
TY_INLINE double ty_horner_f64(double p, double x, double c3, double c2, double c1, double c0) {
  p = __builtin_fma(__builtin_fma(p, x, c3), x, c2);
  return __builtin_fma(__builtin_fma(p, x, c1), x, c0);
}

/* 2^k for whole k of -1022 to 1023: the low bits of the sum are its exponent */
TY_INLINE double ty_power_f64(double k) { return ty_double(ty_bits_f64(k + 6755399441056767.0) << 52); }
/* y * 2^k for whole k of -2000 to 2000, in two steps, to reach denormals and inf */
TY_INLINE double ty_scaled_f64(double y, double k) {
  const double h = k * 0.5 + 6755399441055744.0 - 6755399441055744.0;
  return y * ty_power_f64(h) * ty_power_f64(k - h);
}
/* e^r - 1 - r for |r| <= log(2) / 2, by its series */
TY_INLINE double ty_exp_rest_f64(double r) {
  double p = ty_horner_f64(1.0 / 6227020800, r, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880);
  p = ty_horner_f64(p, r, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120);
  return __builtin_fma(__builtin_fma(__builtin_fma(p, r, 1.0 / 24), r, 1.0 / 6), r, 0.5) * r * r;
}
/* x = k log(2) + r + *low, k whole; gives r */
TY_INLINE double ty_exp_part_f64(double x, double *k, double *low) {
  *k = __builtin_fma(x, 1.4426950408889634, 6755399441055744.0) - 6755399441055744.0;
  const double high = __builtin_fma(*k, -0.693147180559945286, x), less = *k * 2.319046813846299558e-17, r = high - less;
  *low = high - r - less;
  return r;
}
TY_INLINE double exp_f64(double x) {
  const double c = __builtin_fabs(x) > 750.0 ? __builtin_copysign(750.0, x) : x;
  double k, low, r = ty_exp_part_f64(c, &k, &low);
  return ty_scaled_f64(ty_exp_rest_f64(r) + r + 1.0, k);
}
TY_INLINE double ty_exp_down_f64(double x) { return exp_f64(x); }
TY_INLINE double exp2_f64(double x) {
  const double c = __builtin_fabs(x) > 1100.0 ? __builtin_copysign(1100.0, x) : x;
  const double k = c + 6755399441055744.0 - 6755399441055744.0, r = (c - k) * 0.69314718055994531;
  return ty_scaled_f64(ty_exp_rest_f64(r) + r + 1.0, k);
}
/* e^x - 1 for x of -40 to 710, |x| from 1e-300 on: computed as twice its half, so that 2^k doesn't overflow before the result */
TY_INLINE double ty_expm1_part_f64(double x) {
  double k, low, r = ty_exp_part_f64(x, &k, &low), s = ty_power_f64(k - 1.0);
  return 2.0 * __builtin_fma(s, ty_exp_rest_f64(r) + low, __builtin_fma(s, r, s - 0.5));
}
TY_INLINE double expm1_f64(double x) {
  const double y = ty_expm1_part_f64(x < -40.0 ? -40.0 : x > 710.0 ? 710.0 : x);
  return __builtin_fabs(x) < 1e-300 ? x : y;
}

/* With x = m 2^k, m in sqrt(1/2) .. sqrt(2), x > 0 and finite: gives k, *f_ = f = m - 1, *h = f^2 / 2 and *tail in
 * log(m) = f - (*h - *tail). */
TY_INLINE double ty_log_part_f64(double x, double *f_, double *h, double *tail) {
  const double y = x < DBL_MIN ? x * 18014398509481984.0 : x;           /* denormals */
  const uint64_t u = ty_bits_f64(y), t = (u - 0x3fe6a09e667f3bcdull + 0x4000000000000000ull) >> 52;       /* k + 1024 */
  const double k = ty_double(0x4330000000000000ull + t) - (x < DBL_MIN ? 4503599627371574.0 : 4503599627371520.0);
  const double f = ty_double(u - (t << 52) + 0x4000000000000000ull) - 1.0;
  const double q = f / (2.0 + f), z = q * q;
  double r = ty_horner_f64(1.479819860511658591e-01, z, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
    2.857142874366239149e-01);
  r = __builtin_fma(__builtin_fma(r, z, 3.999999999940941908e-01), z, 6.666666666666735130e-01) * z;
  *f_ = f;
  *h = 0.5 * f * f;
  *tail = q * (*h + r);
  return k;
}
/* y, a logarithm of x, with C's rules for 0, negative x, inf and NaN */
TY_INLINE double ty_log_edges_f64(double x, double y) {
  y = x == 0.0 ? -INFINITY : y;
  y = x < 0.0 ? NAN : y;
  return x == INFINITY || x != x ? x : y;
}
TY_INLINE double log_f64(double x) {
  double f, h, tail, k = ty_log_part_f64(x, &f, &h, &tail);
  return ty_log_edges_f64(x, k * 6.93147180369123816490e-01 - ((h - (tail + k * 1.90821492927058770002e-10)) - f));
}
/* As ty_log_base */
TY_INLINE double ty_log_base_f64(double x, double a, double a_low, double b, double b_low) {
  double f, h, tail, k = ty_log_part_f64(x, &f, &h, &tail);
  const double high = f - h, low = f - high - h + tail;
  const double p = high * b, t = __builtin_fma(high, b, -p) + __builtin_fma(high, b_low, low * b), w = k * a, y = w + p, v = y - w;
  return ty_log_edges_f64(x, y + (t + (p - v) + (w - (y - v)) + k * a_low));
}
TY_INLINE double log2_f64(double x) { return ty_log_base_f64(x, 1.0, 0.0, 1.4426950408889634, 2.0355273740931032e-17); }
TY_INLINE double log10_f64(double x) {
  return ty_log_base_f64(x, 0.30102999566224753, 1.7336659603752854e-12, 0.4342944819032518, 1.0983196502167651e-17);
}
TY_INLINE double log1p_f64(double x) {
  double u = 1.0 + x, y = log_f64(u) + (x - (u - 1.0)) / u;
  y = u == 1.0 ? x : y;
  y = x == -1.0 ? -INFINITY : y;
  return x == INFINITY ? x : y;
}
TY_INLINE double tanh_f64(double x) {
  const double a = __builtin_fabs(x), t = ty_expm1_part_f64(a > 22.0 ? 44.0 : 2.0 * a);      /* from 19.1 on tanh rounds to 1 */
  return a < 1e-9 ? x : __builtin_copysign(t / (t + 2.0), x);
}

/* For |x| up to 1: x plus x times a polynomial in x^2. Above: erfc(t) is e^(-t t) / (1 + 2 t) times a polynomial in (t - 2) / (t + 2). */
TY_INLINE double erf_f64(double x) {
  const double t = __builtin_fabs(x), c = t > 6.0 ? 6.0 : t, s = x * x, d = c + 2.0, q = (c - 2.0) / d;
  double p = ty_horner_f64(-7.7958988270021422e-10, s, 1.3720064546777686e-8, -1.6208483801871706e-7, 1.6447424703317362e-6,
    -1.492473690741966e-5);
  p = ty_horner_f64(p, s, 0.00012055294904839708, -0.00085483259753896921, 0.0052239776071164227, -0.02686617064323777);
  p = __builtin_fma(__builtin_fma(__builtin_fma(p, s, 0.11283791670945006), s, -0.3761263890318354), s, 0.12837916709551257);
  double r = ty_horner_f64(4.5678183846995652e-6, q, 4.7801679706659349e-6, -1.3377843610301066e-5, -3.6739685589621614e-5,
    -1.5054457438053161e-6);
  r = ty_horner_f64(r, q, 0.0001510872612051129, 0.00020636426368347953, -0.00045434493868878523, -0.0014568136425517456);
  r = ty_horner_f64(r, q, 0.0012713391657542129, 0.0087226538622736921, -0.0080340150876596877, -0.054220000991780359);
  r = ty_horner_f64(r, q, 0.16405128003350502, -0.16603039761529105, -0.092763826585746232, 1.2769783815525287);
  const double far = __builtin_copysign(1.0 - r / __builtin_fma(2.0, c, 1.0) * exp_f64(-c * c), x);
  return x != x ? x : t > 1.0 ? far : __builtin_fma(p, x, x);
}

/* Sine (part 0), cosine (1) or tangent (2) for |x| up to TY_NEAR_ANGLE: x is reduced by k pi / 2, with pi / 2 as the sum of three
 * numbers, the first of which is subtracted exactly. Polynomials: Sun's fdlibm. */
#define TY_NEAR_ANGLE 1e9
TY_INLINE double ty_near_circular(double x, int part) {
  const double m = __builtin_fma(x, 0.63661977236758134, 6755399441055744.0), k = m - 6755399441055744.0;
  const double r0 = __builtin_fma(k, -1.5707963267948966, x), t = k * 6.123233995736766e-17, r = r0 - t;
  const double low = (r0 - r) - t - __builtin_fma(k, -1.4973849048591833e-33, __builtin_fma(k, 6.123233995736766e-17, -t)), z = r * r;
  double s = ty_horner_f64(1.58969099521155010221e-10, z, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
    -1.98412698298579493134e-04, 8.33333333332248946124e-03);
  s = r - ((z * (0.5 * low - z * r * s) - low) - z * r * -1.66666666666666324348e-01);
  double c = ty_horner_f64(-1.13596475577881948265e-11, z, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
    2.48015872894767294178e-05, -1.38888888888741095749e-03);
  c = __builtin_fma(c, z, 4.16666666666666019037e-02);
  const double h = 0.5 * z, w = 1.0 - h;
  c = w + ((1.0 - w - h) + (z * z * c - r * low));
  const uint64_t i = (ty_bits_f64(m) & 3) + (uint64_t)(part & 1);
  const double y = i & 1 ? c : s, over = i & 1 ? -s : c;
  return part == 2 ? y / over : i & 2 ? -y : y;
}

/* For t = |x|: atan(t), pi / 4 + atan((t - 1) / (t + 1)) or pi / 2 + atan(-1 / t), whichever argument is below tan(pi / 8) in size.
 * Polynomial: fdlibm. */
TY_INLINE double atan_f64(double x) {
  const double t = __builtin_fabs(x), over = t > 2.414213562373095 ? -1.0 : t > 0.41421356237309503 ? t - 1.0 : t;
  const double under = t > 2.414213562373095 ? t : t > 0.41421356237309503 ? t + 1.0 : 1.0, q = over / under, s = q * q;
  const double turns = t > 2.414213562373095 ? 2.0 : t > 0.41421356237309503 ? 1.0 : 0.0;       /* of pi / 4 */
  const double lost = turns == 1.0 ? t - (over + 1.0) - q * (t - (under - 1.0)) : 0.0;          /* what rounding t - 1 and t + 1 lost */
  const double low = t == (double)INFINITY ? 0.0 : (__builtin_fma(-q, under, over) + lost) / under * (1.0 - s);
  double p = ty_horner_f64(1.62858201153657823623e-02, s, -3.65315727442169155270e-02, 4.97687799461593236017e-02,
    -5.83357013379057348645e-02, 6.66107313738753120669e-02);
  p = ty_horner_f64(p, s, -7.69187620504482999495e-02, 9.09088713343650656196e-02, -1.11111104054623557880e-01,
    1.42857142725034663711e-01);
  p = __builtin_fma(__builtin_fma(p, s, -1.99999999998764832476e-01), s, 3.33333333333329318027e-01) * s;
  const double y = turns * 0.78539816339744828 - ((q * p - (turns * 3.061616997868383e-17 + low)) - q);
  return __builtin_copysign(y, x);
}

/* log |gamma(x)|, in float64, as digits cancel near 1 and 2: by Stirling's series at x + 8 and the recurrence back to x; below 0 by
 * reflection. (Nothing selects between constants: compilers would make a branch of that, and no vector code.) */
TY_INLINE float lgamma_f32(float x_) {
  const double x = (double)x_, a = x < 0.0 ? 1.0 - x : x, y = a + 8.0, r = 1.0 / y, z = r * r;
  const double b = a * (a + 7.0), p = b * 0.0625 * (b + 6.0) * (b + 10.0) * (b + 12.0);        /* a (a + 1) ... (a + 7) / 16 */
  double s = ty_horner_f64(-3617.0 / 122400, z, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680);
  s = __builtin_fma(__builtin_fma(__builtin_fma(s, z, 1.0 / 1260), z, -1.0 / 360), z, 1.0 / 12) * r;
  const double l = (y - 0.5) * log_f64(y) - y + (0.91893853320467274 - 2.7725887222397812) + s - log_f64(p);
  const double whole = x + 6755399441055744.0 - 6755399441055744.0, sine = ty_near_circular((x - whole) * 3.1415926535897932, 0);
  const double mirrored = 1.1447298858494002 - log_f64(__builtin_fabs(sine)) - l, g = x < 0.0 ? mirrored : l;
  return (float)(a == (double)INFINITY ? a : x == 1.0 || x == 2.0 ? 0.0 : g);
}

/* The derivative of lgamma, in the same way. 1 / a + 1 / (a + 1) + ... + 1 / (a + 7) is computed as one quotient: two terms that are
 * equally far from the middle add up to (2 a + 7) / (b + c). */
TY_INLINE float digamma_f32(float x_) {
  const double x = (double)x_, a = x < 0.0 ? 1.0 - x : x, y = a + 8.0, r = 1.0 / y, z = r * r;
  const double b = a * (a + 7.0), outer = b * (b + 6.0), inner = (b + 10.0) * (b + 12.0);
  const double before = (2.0 * a + 7.0) * (((2.0 * b + 6.0) * inner + (2.0 * b + 22.0) * outer) / (outer * inner));
  double s = ty_horner_f64(-3617.0 / 8160, z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240);
  s = __builtin_fma(__builtin_fma(__builtin_fma(s, z, 1.0 / 252), z, -1.0 / 120), z, 1.0 / 12) * z;
  const double g = log_f64(y) - 0.5 * r - s - before;
  const double off = x - (x + 6755399441055744.0 - 6755399441055744.0), slope = ty_near_circular(off * 3.1415926535897932, 2);
  const double reflected = off == 0.0 ? (double)NAN : g - 3.1415926535897932 / slope, at_0 = -1.0 / x, v = x < 0.0 ? reflected : g;
  return (float)(x == 0.0 ? at_0 : x == (double)INFINITY ? x : v);
}
#endif
