/* The scalar functions that expressions in ops.def reach as M(f): f_f32, f_f64 and f_i64.
 *
 * Idea: float32 versions are polynomials without branches or calls, so that a compiler turns a loop over them into
 * vector code, and so that every backend computes the same. float64 defers to libm. Products are fused only where
 * fma is written (contraction is off). Constants: Cephes (exp, log, sin, cos), N. Juffa (erf), Eigen (tanh), all within
 * a few ulp of the truth.
 * Also here: the 16-bit conversions and the Philox generator, one definition for all backends. */
#ifndef TY_MATH_H
#define TY_MATH_H

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

/* A floating value as a whole number: NaN gives 0, what is out of range the nearest. */
TY_INLINE int64_t ty_whole(double v) {
  return v != v ? 0 : v >= 9.2233720368547758e18 ? INT64_MAX : v <= -9.2233720368547758e18 ? INT64_MIN : (int64_t)v;
}

/* ---- exp, log and what follows from them, float32 ---- */

/* x = k log(2) + r, k whole: e^r - 1, and in *m the sum with 1.5 * 2^23 that rounded k, whose low bits are k */
TY_INLINE float ty_exp_part(float x, float *m) {
  float k = (*m = __builtin_fmaf(x, 1.44269504f, 12582912.0f)) - 12582912.0f;
  float r = __builtin_fmaf(k, -0.693145752f, x);
  r = __builtin_fmaf(k, -1.42860677e-6f, r);
  float p = 1.98756915e-4f;
  p = __builtin_fmaf(p, r, 1.39819995e-3f);
  p = __builtin_fmaf(p, r, 8.33345205e-3f);
  p = __builtin_fmaf(p, r, 4.16657962e-2f);
  p = __builtin_fmaf(p, r, 1.66666657e-1f);
  p = __builtin_fmaf(p, r, 0.5f);
  return __builtin_fmaf(p, r * r, r);
}

TY_INLINE float exp_f32(float x) {
  float c = __builtin_fabsf(x) > 104.0f ? __builtin_copysignf(104.0f, x) : x;   /* beyond, the result is inf or 0 anyway; NaN passes */
  float m, p = ty_exp_part(c, &m) + 1.0f;
  int32_t i = (int32_t)(ty_bits(m) - 0x4b400000u), h = i >> 1;          /* 2^k in two steps reaches denormals and inf */
  return p * ty_float((uint32_t)(h + 127) << 23) * ty_float((uint32_t)(i - h + 127) << 23);
}

/* e^x for x <= 0, in two thirds of the instructions; what would be denormal is 0 */
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

/* A quotient of polynomials, odd over even; beyond the bound the result rounds to 1. */
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
  float y = p / q;
  return __builtin_fabsf(x) < 4e-4f ? x : y;
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
  float p = -5.96761703e-4f;
  p = __builtin_fmaf(p, s, 4.99119423e-3f);
  p = __builtin_fmaf(p, s, -2.67681349e-2f);
  p = __builtin_fmaf(p, s, 1.12819925e-1f);
  p = __builtin_fmaf(p, s, -3.76125336e-1f);
  p = __builtin_fmaf(p, s, 1.28379166e-1f);
  float small = __builtin_fmaf(p, x, x);
  return t > 0.927734375f ? big : small;
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

/* log(1 + x): what rounding 1 + x loses is brought back. */
TY_INLINE float log1p_f32(float x) {
  float u = 1.0f + x, y = log_f32(u) + (x - (u - 1.0f)) / u;
  y = u == 1.0f ? x : y;
  y = x == -1.0f ? -INFINITY : y;
  return x == INFINITY ? x : y;
}

/* sine and cosine: x less a multiple of pi/2, in float64, which holds up to |x| = 2^48; beyond, NaN */
TY_INLINE float ty_sincos(float x, int shift) {
  double k = (double)x * 0.63661977236758134 + 6755399441055744.0, q = k - 6755399441055744.0;
  double d = __builtin_fma(q, -1.5707963267948966, (double)x);
  d = __builtin_fma(q, -6.123233995736766e-17, d);
  uint64_t bits;
  memcpy(&bits, &k, 8);
  int i = (int)(bits & 3) + shift;
  float r = (float)d, z = r * r;
  float s = ty_sin_part(r, z), c = ty_cos_part(z);
  float y = i & 1 ? c : s;
  y = i & 2 ? -y : y;
  return __builtin_fabsf(x) <= 281474976710656.0f ? y : NAN;
}
TY_INLINE float sin_f32(float x) { return ty_sincos(x, 0); }
TY_INLINE float cos_f32(float x) { return ty_sincos(x, 1); }

/* Giles 2012, two polynomials in w = -log(1 - x^2); float64 starts from float32's and takes Newton steps. */
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

/* ---- the rest: libm by type ---- */

TY_INLINE double exp_f64(double x) { return exp(x); }
TY_INLINE double ty_exp_down_f64(double x) { return exp(x); }
TY_INLINE double log_f64(double x) { return log(x); }
TY_INLINE double tanh_f64(double x) { return tanh(x); }
TY_INLINE double erf_f64(double x) { return erf(x); }

#define TY_LIBM(f, f32) TY_INLINE float f##_f32(float x) { return f32(x); } TY_INLINE double f##_f64(double x) { return f(x); }
TY_INLINE double expm1_f64(double x) { return expm1(x); }
TY_INLINE double log1p_f64(double x) { return log1p(x); }
TY_INLINE double sin_f64(double x) { return sin(x); }
TY_INLINE double cos_f64(double x) { return cos(x); }
TY_INLINE double erfinv_f64(double x) {
  double y = (double)erfinv_f32((float)x), scale = 0.88622692545275801;   /* sqrt(pi) / 2 */
  if (!(x > -1 && x < 1)) return x == 1 || x == -1 ? x * INFINITY : NAN;
  if (isinf(y)) y = x < 0 ? -4.0 : 4.0;                                   /* x rounds to 1 in float32 */
  for (int i = 0; i < 4; i++) {                                           /* erfc keeps its digits where erf is near 1 */
    double e = x < 0 ? 1 + x - erfc(-y) : erfc(y) - (1 - x);
    y += e * scale * exp(y * y);
  }
  return y;
}
TY_LIBM(log2, log2f) TY_LIBM(log10, log10f) TY_LIBM(exp2, exp2f) TY_LIBM(erfc, erfcf)
TY_LIBM(tan, tanf) TY_LIBM(asin, asinf) TY_LIBM(acos, acosf) TY_LIBM(atan, atanf) TY_LIBM(sinh, sinhf) TY_LIBM(cosh, coshf)
TY_LIBM(asinh, asinhf) TY_LIBM(acosh, acoshf) TY_LIBM(atanh, atanhf)
TY_INLINE float sqrt_f32(float x) { return __builtin_sqrtf(x); }
TY_INLINE double sqrt_f64(double x) { return __builtin_sqrt(x); }
TY_INLINE float pow_f32(float a, float b) { return b == 2 ? a * a : powf(a, b); }
TY_INLINE double pow_f64(double a, double b) { return b == 2 ? a * a : pow(a, b); }
TY_INLINE float atan2_f32(float a, float b) { return atan2f(a, b); }
TY_INLINE double atan2_f64(double a, double b) { return atan2(a, b); }
TY_INLINE float hypot_f32(float a, float b) { return (float)sqrt((double)a * a + (double)b * b); }
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
TY_INLINE float lgamma_f32(float x) { return (float)lgamma_f64((double)x); }

/* The n-th derivative of log gamma's derivative: the recurrence up to where the asymptotic series (Abramowitz & Stegun
 * 6.3.18, 6.4.11) has float64's digits; below 0 by reflection for n of 0 and 1, and NaN far below for more. */
TY_INLINE double polygamma_f64(double x, double n) {
  const double bernoulli[8] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510},
    pi = 3.141592653589793;
  double sum = 0, term, factorial = 1, mirror = 0, sign = 1;
  if (!(n >= 0 && n <= 100) || n != floor(n) || x != x || x == -INFINITY) return NAN;
  if (x == 0) return n == 0 ? (1 / x > 0 ? -INFINITY : INFINITY) : n - 2 * floor(n / 2) == 0 && 1 / x > 0 ? -INFINITY : INFINITY;
  if (x < 0 && (x == floor(x) || (n > 1 && x < -1000))) return x == floor(x) && n - 2 * floor(n / 2) == 1 ? INFINITY : NAN;
  if (x < 0 && n < 2) {
    const double s = sin(pi * (x - 2 * floor(x / 2)));
    mirror = n == 0 ? -pi * cos(pi * (x - 2 * floor(x / 2))) / s : pi * pi / (s * s);
    sign = n == 0 ? 1 : -1;
    x = 1 - x;
  }
  if (n == 0) {
    for (; x < 10; x += 1) sum -= 1 / x;
    if (x == INFINITY) return x;
    sum += log(x) - 0.5 / x;
    term = 1 / (x * x);
    for (int k = 0; k < 8; k++) { sum -= bernoulli[k] * term / (2 * k + 2); term /= x * x; }
    return sign * sum + mirror;
  }
  for (int i = 2; i <= n; i++) factorial *= i;
  for (; x < n + 10; x += 1) sum += factorial * pow(x, -n - 1);
  sum += factorial / n * pow(x, -n) + factorial / 2 * pow(x, -n - 1);
  term = factorial * (n + 1) / 2 * pow(x, -n - 2);
  for (int k = 0; k < 8; k++) {
    sum += bernoulli[k] * term;
    term *= (2 * k + 2 + n) * (2 * k + 3 + n) / ((2 * k + 3) * (2 * k + 4)) / (x * x);
  }
  return sign * (n - 2 * floor(n / 2) == 0 ? -sum : sum) + mirror;
}
TY_INLINE float polygamma_f32(float x, double n) { return (float)polygamma_f64((double)x, n); }

/* How the logarithm of a draw x of Gamma(alpha, 1) moves with alpha while its quantile stays: -(dP/dalpha) / (x p),
 * with the series of the lower incomplete gamma function P; for large alpha by its normal approximation. */
TY_INLINE double gamma_draw_slope_f64(double log_x, double alpha) {
  const double x = exp(log_x);
  double term, sum, harmonic, weighted;
  if (!(alpha > 0) || log_x != log_x) return NAN;
  if (alpha > 1e4 || x > alpha + 40 * sqrt(alpha) + 300) {
    const double z = (x - alpha) / sqrt(alpha);
    return (1 + (x - alpha - (z * z - 1) / 3) / (2 * alpha)) / x;
  }
  term = sum = harmonic = 1 / alpha;
  weighted = term * harmonic;
  for (int k = 1; k < 20000 && !(k > x - alpha && term < 1e-17 * sum); k++) {
    term *= x / (alpha + k);
    harmonic += 1 / (alpha + k);
    sum += term;
    weighted += term * harmonic;
  }
  return weighted - (log_x - polygamma_f64(alpha, 0)) * sum;
}
TY_INLINE float gamma_draw_slope_f32(float log_x, float alpha) { return (float)gamma_draw_slope_f64((double)log_x, (double)alpha); }

/* The normal density and distribution, gelu's parts. The float32 distribution by Abramowitz & Stegun 7.1.26, within 1e-7 of the
 * truth; both take the same exponential, which a compiler computes once. */
TY_INLINE float ty_bell_f32(float x) { return ty_exp_down_f32(x * x * -0.5f); }
TY_INLINE float ty_normal_f32(float x) {
  float t = 1.0f / __builtin_fmaf(__builtin_fabsf(x), 0.23164189f, 1.0f);
  float p = 0.5f * 1.061405429f;
  p = __builtin_fmaf(p, t, 0.5f * -1.453152027f);
  p = __builtin_fmaf(p, t, 0.5f * 1.421413741f);
  p = __builtin_fmaf(p, t, 0.5f * -0.284496736f);
  p = __builtin_fmaf(p, t, 0.5f * 0.254829592f);
  float tail = p * t * ty_bell_f32(x);
  return x > 0 ? 1.0f - tail : tail;
}
TY_INLINE double ty_bell_f64(double x) { return exp(x * x * -0.5); }
TY_INLINE double ty_normal_f64(double x) { return 0.5 * (1 + erf(x * 0.7071067811865476)); }

#define TY_REAL(S, T, F) \
  TY_INLINE T abs_##S(T x) { return __builtin_fabs##F(x); } \
  TY_INLINE T floor_##S(T x) { return __builtin_floor##F(x); } \
  TY_INLINE T ceil_##S(T x) { return __builtin_ceil##F(x); } \
  TY_INLINE T round_##S(T x) { return __builtin_rint##F(x); } \
  TY_INLINE T trunc_##S(T x) { return __builtin_trunc##F(x); } \
  TY_INLINE T max_##S(T a, T b) { return a > b || a != a ? a : b; } \
  TY_INLINE T min_##S(T a, T b) { return a < b || a != a ? a : b; } \
  TY_INLINE T clamp_##S(T x, T p, T q) { T y = x < p ? p : x; return y > q ? q : y; } \
  TY_INLINE T lowest_##S(void) { return -INFINITY; } \
  TY_INLINE T highest_##S(void) { return INFINITY; } \
  TY_INLINE int isinf_##S(T x) { return __builtin_fabs##F(x) == INFINITY; } \
  TY_INLINE int isfinite_##S(T x) { return __builtin_fabs##F(x) < INFINITY; } \
  TY_INLINE T remainder_##S(T a, T b) { T r = __builtin_fmod##F(a, b); return r != 0 && (r < 0) != (b < 0) ? r + b : r; } \
  TY_INLINE T floor_divide_##S(T a, T b) { \
    if (b == 0) return a / b; \
    /* q: exact but for its last rounding, so that it is whole; a - r doesn't overflow */ \
    T r = __builtin_fmod##F(a, b), q = (a - r) / b; \
    return __builtin_rint##F(q) - (r != 0 && (r < 0) != (b < 0)); } \
  TY_INLINE T fmod_##S(T a, T b) { return __builtin_fmod##F(a, b); } \
  TY_INLINE T copysign_##S(T a, T b) { return __builtin_copysign##F(a, b); } \
  TY_INLINE int signbit_##S(T x) { return __builtin_copysign##F((T)1, x) < 0; } \
  TY_INLINE T smooth_l1_##S(T a, T b, T beta) { \
    T d = __builtin_fabs##F(a - b); \
    return d < beta ? d * d * (T)0.5 / beta : d - (T)0.5 * beta; } \
  TY_INLINE T softplus_##S(T x) { return max_##S(x, 0) + log1p_##S(exp_##S(-__builtin_fabs##F(x))); } \
  TY_INLINE T logaddexp_##S(T a, T b) { \
    return a == b ? a + (T)0.6931471805599453 : max_##S(a, b) + log1p_##S(exp_##S(-__builtin_fabs##F(a - b))); } \
  TY_INLINE T gelu_tanh_##S(T x) { return (T)0.5 * x * (1 + tanh_##S((T)0.7978845608028654 * (x + (T)0.044715 * x * x * x))); } \
  TY_INLINE T gelu_tanh_slope_##S(T x) { \
    T t = tanh_##S((T)0.7978845608028654 * (x + (T)0.044715 * x * x * x)); \
    return (T)0.5 * (1 + t + x * (1 - t * t) * (T)0.7978845608028654 * (1 + (T)0.134145 * x * x)); } \
  TY_INLINE T silu_backward_##S(T g, T x) { T s = 1 / (1 + exp_##S(-x)); return g * s * (1 + x * (1 - s)); }
TY_REAL(f32, float, f)
TY_REAL(f64, double, )

/* ---- int64: only what rows with dtype rule SAME or BOOL use ---- */

TY_INLINE int64_t sqrt_i64(int64_t x) { return x; }  /* named by rows that are never computed in whole numbers */
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
/* Division by zero gives 0: the C operation would end the process. INT64_MIN / -1 wraps. */
TY_INLINE int64_t floor_divide_i64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}
TY_INLINE int64_t remainder_i64(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
TY_INLINE int64_t fmod_i64(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
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
  float v = ty_float(m) * 5.192296858534828e33f;                       /* 2^112 moves the exponent, denormals too */
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

TY_INLINE void ty_philox(uint64_t seed, uint64_t block, uint32_t out[4]) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int i = 0; i < 10; i++) {
    uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0; out[1] = c1; out[2] = c2; out[3] = c3;
}
TY_INLINE float ty_uniform(uint32_t r) { return (float)(r >> 8) * 5.9604645e-8f; }               /* [0, 1), 24 bits */
TY_INLINE float ty_uniform_open(uint32_t r) { return ((float)(r >> 9) + 0.5f) * 1.1920929e-7f; } /* (0, 1): 23 bits and a half */
/* A number below range from a word, and from a second one where range is 2^32 or more; range 0 stands for 2^64. */
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
/* ---- loss scaling: PyTorch's rule; growth counts steps without an infinite gradient ---- */
TY_INLINE void ty_scale_update(float *scale, int64_t *growth, int found, double growth_factor, double backoff_factor,
  int64_t growth_interval) {
  const float grown = (float)(*scale * growth_factor);
  if (found) *scale = (float)(*scale * backoff_factor);
  else if (++*growth < growth_interval) return;
  else if (grown - grown == 0) *scale = grown;             /* not past the largest float32 */
  *growth = 0;
}
#endif
