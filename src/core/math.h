/* The scalar functions that expressions in ops.def call as M(f): f_f32, f_f64 and f_i64, one definition for all backends.
 *
 * Idea: elementary.h has those of float32 and the commonest of float64; others of float64 call libm; special.h has special functions.
 * Also here: the 16-bit conversions and the Philox generator. */
#ifndef TY_MATH_H
#define TY_MATH_H

#ifndef TY_ELEMENTARY_H      /* sources made at run time include its text already */
#include "elementary.h"
#endif

/* A floating value as a whole number: NaN gives 0, a value out of range the nearest limit. */
TY_INLINE int64_t ty_whole(double v) {
  return v != v ? 0 : v >= 9.2233720368547758e18 ? INT64_MAX : v <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)v;
}

/* ---- float64 by libm; and the rest ---- */

#define TY_LIBM(f) TY_INLINE double f##_f64(double x) { return f(x); }
TY_LIBM(asin) TY_LIBM(acos) TY_LIBM(sinh) TY_LIBM(cosh) TY_LIBM(asinh) TY_LIBM(acosh) TY_LIBM(atanh) TY_LIBM(erfc)
#undef TY_LIBM
/* near_: without a call to libm, for angles up to TY_NEAR_ANGLE; float64 only */
#define TY_ANGLE(f, part) \
  TY_INLINE double near_##f##_f64(double x) { return ty_near_circular(x, part); } \
  TY_INLINE double f##_f64(double x) { return __builtin_fabs(x) <= TY_NEAR_ANGLE ? ty_near_circular(x, part) : f(x); }
TY_ANGLE(sin, 0) TY_ANGLE(cos, 1) TY_ANGLE(tan, 2)
#undef TY_ANGLE
TY_INLINE double erfinv_f64(double x) {
  const double a = __builtin_fabs(x), rest = 1 - a, scale = 0.88622692545275801;      /* sqrt(pi) / 2 */
  double y = (double)erfinv_f32((float)a);
  if (!(a < 1)) return a == 1 ? x * INFINITY : NAN;
  if (rest < 1e-7) y = sqrt(-log(rest) - 0.5 * log(-log(rest) * 3.1415926535897932));  /* a rounds to 1 in float32 */
  for (int i = 0; i < 4; i++) {            /* Newton's steps; near 1, where erf has lost its digits, those of log(erfc) */
    const double tail = a < 0.5 ? 0 : erfc(y);
    y += (a < 0.5 ? a - erf_f64(y) : tail * log(tail / rest)) * scale * exp(y * y);
  }
  return x < 0 ? -y : x == 0 ? x : y;
}
TY_INLINE float sqrt_f32(float x) { return __builtin_sqrtf(x); }
TY_INLINE double sqrt_f64(double x) { return __builtin_sqrt(x); }
/* x^n for whole n >= 0 in a few multiplications: on a GPU, one thread's pow takes as long as the others' reads */
TY_INLINE double ty_whole_power(double x, int64_t n) {
  double y = 1;
  for (; n > 0; n >>= 1, x *= x) if (n & 1) y *= x;
  return y;
}
TY_INLINE double pow_f64(double a, double b) { return b == 2 ? a * a : pow(a, b); }
TY_INLINE double atan2_f64(double a, double b) { return atan2(a, b); }
TY_INLINE float hypot_f32(float a, float b) {
  float r = (float)sqrt((double)a * a + (double)b * b);
  return __builtin_fabsf(a) == INFINITY || __builtin_fabsf(b) == INFINITY ? INFINITY : r;
}
TY_INLINE double hypot_f64(double a, double b) { return hypot(a, b); }

/* log |gamma(x)|; the host's lgamma would write a global. */
TY_INLINE double lgamma_f64(double x) {
#if defined(__CUDA_ARCH__) || defined(__CUDACC_RTC__)
  return lgamma(x);
#else
  int sign;
  return lgamma_r(x, &sign);
#endif
}

/* Parts of gelu: ty_bell is exp(-x^2 / 2), ty_normal the normal distribution function; in float32 by Abramowitz & Stegun 7.1.26, within
 * 1e-7. A compiler computes the exponential once for both; it is 0 long before d reaches the limit of 1e30. */
TY_INLINE float ty_bell_f32(float x) { return ty_exp_down_f32(x * x * -0.5f); }
TY_INLINE float ty_normal_f32(float x) {
  const float d = __builtin_fmaf(__builtin_fabsf(x), 0.23164189f, 1.0f), t = ty_inverse(d < 1e30f ? d : 1e30f);
  float p = 0.5f * 1.061405429f;
  p = __builtin_fmaf(p, t, 0.5f * -1.453152027f);
  p = __builtin_fmaf(p, t, 0.5f * 1.421413741f);
  p = __builtin_fmaf(p, t, 0.5f * -0.284496736f);
  p = __builtin_fmaf(p, t, 0.5f * 0.254829592f);
  float tail = p * t * ty_bell_f32(x);
  return x > 0 ? 1.0f - tail : tail;
}
TY_INLINE double ty_bell_f64(double x) { return exp_f64(x * x * -0.5); }
TY_INLINE double ty_normal_f64(double x) { return 0.5 * (1 + erf_f64(x * 0.7071067811865476)); }

/* Remainders, exact. near_: without a call, for |a / b| below TY_NEAR: the truncated quotient is then at most one too large, and the
 * remainder that it leaves is exact. */
#define TY_NEAR 1e6f
#define TY_DIVISION(S, T, F, near) \
  TY_INLINE T near##remainder_##S(T a, T b) { T r = near##fmod_##S(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
  TY_INLINE T near##floor_divide_##S(T a, T b) { \
    if (b == 0) return a / b; \
    /* q is whole but for the last rounding; a - r doesn't overflow */ \
    T r = near##fmod_##S(a, b), q = (a - r) / b; \
    return __builtin_rint##F(q) - (r != 0 && (r < 0) != (b < 0)); }

#define TY_REAL(S, T, F) \
  TY_INLINE T abs_##S(T x) { return __builtin_fabs##F(x); } \
  TY_INLINE T floor_##S(T x) { return __builtin_floor##F(x); } \
  TY_INLINE T ceil_##S(T x) { return __builtin_ceil##F(x); } \
  TY_INLINE T round_##S(T x) { return __builtin_rint##F(x); } \
  TY_INLINE T trunc_##S(T x) { return __builtin_trunc##F(x); } \
  TY_INLINE T max_##S(T a, T b) { return (a > b) | (a != a) ? a : b; } \
  TY_INLINE T min_##S(T a, T b) { return (a < b) | (a != a) ? a : b; } \
  TY_INLINE T clamp_##S(T x, T p, T q) { T y = x < p ? p : x; return y > q ? q : y; } \
  TY_INLINE T lowest_##S(void) { return -INFINITY; } \
  TY_INLINE T highest_##S(void) { return INFINITY; } \
  TY_INLINE int isinf_##S(T x) { return __builtin_fabs##F(x) == INFINITY; } \
  TY_INLINE int isfinite_##S(T x) { return __builtin_fabs##F(x) < INFINITY; } \
  TY_INLINE T near_fmod_##S(T a, T b) { \
    T q = __builtin_trunc##F(a / b), r = __builtin_fma##F(-q, b, a); \
    r = r != 0 && (r < 0) != (a < 0) ? r + __builtin_copysign##F(b, a) : r; \
    return q == 0 ? a : __builtin_copysign##F(r, a); } \
  TY_INLINE T fmod_##S(T a, T b) { \
    return __builtin_fabs##F(a / b) < TY_NEAR ? near_fmod_##S(a, b) : (T)__builtin_fmod##F(a, b); } \
  TY_DIVISION(S, T, F, near_) \
  TY_DIVISION(S, T, F, ) \
  TY_INLINE T copysign_##S(T a, T b) { return __builtin_copysign##F(a, b); } \
  TY_INLINE int signbit_##S(T x) { return __builtin_copysign##F((T)1, x) < 0; } \
  TY_INLINE T smooth_l1_##S(T a, T b, T beta) { \
    T d = __builtin_fabs##F(a - b); \
    return d < beta ? d * d * (T)0.5 / beta : d - (T)0.5 * beta; } \
  TY_INLINE T softplus_##S(T x) { return max_##S(x, 0) + log1p_##S(exp_##S(-__builtin_fabs##F(x))); } \
  TY_INLINE T logaddexp_##S(T a, T b) { \
    return a == b ? a + (T)0.6931471805599453 : max_##S(a, b) + log1p_##S(exp_##S(-__builtin_fabs##F(a - b))); } \
  /* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), which keeps its digits where tanh(u) is near -1 */ \
  TY_INLINE T gelu_share_##S(T x) { return 1 / (1 + exp_##S((T)-1.5957691216057308 * (x + (T)0.044715 * x * x * x))); } \
  TY_INLINE T gelu_tanh_##S(T x) { return x * gelu_share_##S(x); } \
  TY_INLINE T gelu_tanh_slope_##S(T x) { \
    T s = gelu_share_##S(x); \
    return s + x * s * (1 - s) * (T)1.5957691216057308 * (1 + (T)0.134145 * x * x); } \
  TY_INLINE T silu_backward_##S(T g, T x) { T s = 1 / (1 + exp_##S(-x)); return g * s * (1 + x * (1 - s)); }
TY_REAL(f32, float, f)
TY_REAL(f64, double, )

/* ---- int64: only what rows of dtype rule SAME or BOOL use ---- */

TY_INLINE int64_t sqrt_i64(int64_t x) { return x; }  /* a stub: rows name it, but never compute it in int64 */
TY_INLINE int64_t abs_i64(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }
TY_INLINE int64_t floor_i64(int64_t x) { return x; }
TY_INLINE int64_t ceil_i64(int64_t x) { return x; }
TY_INLINE int64_t round_i64(int64_t x) { return x; }
TY_INLINE int64_t trunc_i64(int64_t x) { return x; }
TY_INLINE int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
TY_INLINE int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
TY_INLINE int64_t clamp_i64(int64_t x, int64_t p, int64_t q) { int64_t y = x < p ? p : x; return y > q ? q : y; }
TY_INLINE int64_t lowest_i64(void) { return INT64_MIN; }
TY_INLINE int64_t highest_i64(void) { return INT64_MAX; }
TY_INLINE int isinf_i64(int64_t x) { (void)x; return 0; }
TY_INLINE int isfinite_i64(int64_t x) { (void)x; return 1; }
/* Division by zero gives 0: the C operation would end the process. INT64_MIN / -1 wraps. Numbers below 2^32 are divided as such, which is
 * several times quicker; signs are applied without branches, as they may come in any order. */
TY_INLINE uint64_t sign_mask_i64(int64_t x) { return (uint64_t)(x >> 63); }              /* all ones where x is negative */
TY_INLINE uint64_t negated_u64(uint64_t x, uint64_t mask) { return (x ^ mask) - mask; }
TY_INLINE uint64_t magnitude_i64(int64_t x) { return negated_u64((uint64_t)x, sign_mask_i64(x)); }
TY_INLINE uint64_t quotient_u64(uint64_t a, uint64_t b) { return (a | b) >> 32 ? a / b : (uint32_t)a / (uint32_t)b; }
TY_INLINE int64_t floor_divide_i64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const uint64_t x = magnitude_i64(a), y = magnitude_i64(b), q = quotient_u64(x, y), differ = sign_mask_i64(a ^ b);
  return (int64_t)negated_u64(q + (differ & (q * y != x)), differ);
}
TY_INLINE int64_t remainder_i64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const uint64_t x = magnitude_i64(a), y = magnitude_i64(b), r = x - quotient_u64(x, y) * y, differ = sign_mask_i64(a ^ b);
  const uint64_t other = differ & (0 - (uint64_t)(r != 0));                            /* y - r, of the other sign */
  return (int64_t)negated_u64(negated_u64(r, other) + (other & y), sign_mask_i64(b));
}
TY_INLINE int64_t fmod_i64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const uint64_t x = magnitude_i64(a), y = magnitude_i64(b);
  return (int64_t)negated_u64(x - quotient_u64(x, y) * y, sign_mask_i64(a));
}
TY_INLINE int signbit_i64(int64_t x) { return x < 0; }
TY_INLINE int64_t pow_i64(int64_t a, int64_t b) {
  uint64_t r = 1, x = (uint64_t)a;
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
  for (; b; b >>= 1, x *= x) if (b & 1) r *= x;
  return (int64_t)r;
}

/* ---- 16-bit floats: round to nearest, ties to even ---- */

TY_INLINE float ty_bf16_to_f32(uint16_t h) { return ty_float((uint32_t)h << 16); }
TY_INLINE uint16_t ty_f32_to_bf16(float x) {
  uint32_t u = ty_bits(x), r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return (uint16_t)(x != x ? 0x7fc0 | (u >> 16 & 0x8000) : r);
}
TY_INLINE float ty_f16_to_f32(uint16_t h) {
  uint32_t s = (uint32_t)(h & 0x8000) << 16, m = (uint32_t)(h & 0x7fff) << 13;
  float v = ty_float(m) * 5.192296858534828e33f;                       /* 2^112 shifts the exponent, of denormals too */
  uint32_t u = (h & 0x7c00) == 0x7c00 ? m | 0x7f800000u : ty_bits(v);
  return ty_float(u | s);
}
TY_INLINE uint16_t ty_f32_to_f16(float x) {
  uint32_t u = ty_bits(x), s = u >> 16 & 0x8000, a = u & 0x7fffffff;
  uint32_t normal = (a + 0xfff + ((a >> 13) & 1) - 0x38000000u) >> 13;
  uint32_t denormal = ty_bits(ty_float(a) + 0.5f) - 0x3f000000u;         /* adding 1/2 rounds at 2^-24 */
  uint32_t r = a < 0x38800000u ? denormal : normal;
  r = a >= 0x477ff000u ? 0x7c00 : r;
  r = a > 0x7f800000u ? 0x7e00 : r;
  return (uint16_t)(r | s);
}

/* ---- Philox 4x32-10: block i of a stream is a function of (seed, i) alone ---- */

TY_INLINE void ty_philox_round(uint32_t *c0, uint32_t *c1, uint32_t *c2, uint32_t *c3, uint32_t k0, uint32_t k1) {
  const uint64_t a = (uint64_t)0xD2511F53u * *c0, b = (uint64_t)0xCD9E8D57u * *c2;
  *c0 = (uint32_t)(b >> 32) ^ *c1 ^ k0;
  *c1 = (uint32_t)b;
  *c2 = (uint32_t)(a >> 32) ^ *c3 ^ k1;
  *c3 = (uint32_t)a;
}
TY_INLINE void ty_philox_next(uint32_t *k0, uint32_t *k1) {
  *k0 += 0x9E3779B9u;
  *k1 += 0xBB67AE85u;
}
TY_INLINE void ty_philox(uint64_t seed, uint64_t block, uint32_t out[4]) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  out[0] = (uint32_t)block;
  out[1] = (uint32_t)(block >> 32);
  out[2] = out[3] = 0;
  for (int i = 0; i < 10; i++) {
    ty_philox_round(&out[0], &out[1], &out[2], &out[3], k0, k1);
    ty_philox_next(&k0, &k1);
  }
}
/* [0, 1), 24 bits. Converted as a signed number, for which there is a vector instruction. */
TY_INLINE float ty_uniform(uint32_t r) { return (float)(int32_t)(r >> 8) * 5.9604645e-8f; }
/* The least r >> 8 for which ty_uniform(r) is at least drop. */
TY_INLINE uint32_t ty_least_kept(double drop) { return (uint32_t)ceil(drop * 16777216.0); }
/* Attention's dropout takes 16 bits for each key, so eight keys share a block, and each row of keys begins a new block. A key is kept if
   its bits are at least ty_least_half(drop). */
TY_INLINE uint64_t ty_drop_blocks(int64_t keys) { return (uint64_t)(keys + 7) / 8; }
TY_INLINE uint32_t ty_least_half(double drop) {
  const double n = drop * 65536.0 + 0.5;
  return n < 65535.0 ? (uint32_t)n : 65535u;
}
TY_INLINE uint32_t ty_half_word(const uint32_t block[4], int64_t key) { return block[key % 8 / 2] >> key % 2 * 16 & 0xffffu; }
TY_INLINE float ty_uniform_open(uint32_t r) { return ((float)(int32_t)(r >> 9) + 0.5f) * 1.1920929e-7f; } /* (0, 1): 23 bits, plus a half */
/* In float64, from two words: [0, 1) of 53 bits; (0, 1) of 52 bits, plus a half. */
TY_INLINE double ty_uniform_f64(uint32_t high, uint32_t low) { return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53; }
TY_INLINE double ty_uniform_open_f64(uint32_t high, uint32_t low) { return ((double)(((uint64_t)high << 32 | low) >> 12) + 0.5) * 0x1p-52; }
/* A whole number from 0 to range - 1; low is used only if range is 2^32 or more; range 0 stands for 2^64. */
TY_INLINE uint64_t ty_random_below(uint64_t range, uint32_t high, uint32_t low) {
  const uint64_t v = (uint64_t)high << 32 | low;
  if (range && range <= 0xffffffffu) return (uint64_t)high * range >> 32;
  return range ? v % range : v;
}

/* Box and Muller: two normal numbers from two random words. */
TY_INLINE void ty_normal2(uint32_t r0, uint32_t r1, float *a, float *b) {
  float m = __builtin_sqrtf(-2.0f * log_f32(ty_uniform_open(r0))), s, c;
  ty_sincos_2pi(ty_uniform(r1), &s, &c);
  *a = m * c;
  *b = m * s;
}
TY_INLINE void ty_normal2_f64(const uint32_t high[2], const uint32_t low[2], double *a, double *b) {
  const double m = sqrt(-2 * log(ty_uniform_open_f64(high[0], low[0]))), t = 6.283185307179586 * ty_uniform_f64(high[1], low[1]);
  *a = m * cos(t);
  *b = m * sin(t);
}
/* ---- loss scaling: PyTorch's rule; growth counts steps without an infinite gradient ---- */
TY_INLINE void ty_scale_update(float *scale, int64_t *growth, int found, double growth_factor, double backoff_factor,
  int64_t growth_interval) {
  const float grown = (float)(*scale * growth_factor);
  if (found) *scale = (float)(*scale * backoff_factor);
  else if (++*growth < growth_interval) return;
  else if (grown - grown == 0) *scale = grown;             /* unless it would be infinite */
  *growth = 0;
}
#endif
