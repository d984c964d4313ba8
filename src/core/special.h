/* Special functions that expressions in ops.def call as M(f), beside those of math.h.
 *
 * Idea: series where they keep their digits, recurrences, and expansions for large arguments; in double for both dtypes. Invariant: each
 * loop ends, whatever the arguments are. */
#ifndef TY_SPECIAL_H
#define TY_SPECIAL_H

#ifndef TY_MATH_H      /* see math.h */
#include "math.h"
#endif

/* Called, not inlined: in each loop and kernel, they would be most of a compiler's work. */
#if defined(__CUDACC_RTC__)
#define TY_CALLED static __device__ __noinline__
#elif defined(__CUDACC__)
#define TY_CALLED static __host__ __device__ __noinline__ __attribute__((unused))
#else
#define TY_CALLED static __attribute__((noinline, unused))
#endif

#define TY_BY_DOUBLE1(f) TY_INLINE float f##_f32(float x) { return (float)f##_f64((double)x); }
#define TY_BY_DOUBLE2(f) TY_INLINE float f##_f32(float a, float b) { return (float)f##_f64((double)a, (double)b); }

/* ---- the gamma function's kin ---- */

/* The n-th derivative of digamma: the recurrence raises x to where the asymptotic series (Abramowitz & Stegun 6.3.18, 6.4.11)
 * has float64's digits. Below 0: n of 0 and 1 by reflection; a higher n loses digits, and is NaN below -1000. */
TY_CALLED double polygamma_f64(double x, double n) {
  const double bernoulli[8] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510},
    pi = 3.141592653589793;
  double sum = 0, term, factorial = 1, mirror = 0, sign = 1;
  if (!(n >= 0 && n <= 100) || n != floor(n) || x != x || x == -INFINITY) return NAN;
  if (x == 0) return n == 0 ? (1 / x > 0 ? -INFINITY : INFINITY) : n - 2 * floor(n / 2) == 0 && 1 / x > 0 ? -INFINITY : INFINITY;
  if (x < 0 && (x == floor(x) || (n > 1 && x < -1000))) return x == floor(x) && n - 2 * floor(n / 2) == 1 ? INFINITY : NAN;
  if (x < 0 && n < 2) {
    const double off = x - floor(x + 0.5), s = sin(pi * off);      /* exact: near a pole all digits count */
    mirror = n == 0 ? -pi * cos(pi * off) / s : pi * pi / (s * s);
    sign = n == 0 ? 1 : -1;
    x = 1 - x;
  }
  if (n == 0) {
    double above = 0, below = 1;               /* 1 / x + 1 / (x + 1) + ... with one division */
    for (; x < 10; x += 1) { above = above * x + below; below *= x; }
    if (x == INFINITY) return x;
    sum = log(x) - 0.5 / x - above / below;
    const double square = 1 / (x * x);
    term = square;
    for (int k = 0; k < 8; k++) { sum -= bernoulli[k] / (2 * k + 2) * term; term *= square; }
    return sign * sum + mirror;
  }
  for (int i = 2; i <= n; i++) factorial *= i;
  for (; x < n + 10; x += 1) sum += ty_whole_power(1 / x, (int)n + 1);
  const double once = 1 / x, power = ty_whole_power(once, (int)n);
  sum = factorial * (sum + power / n + power * once / 2);
  term = factorial * (n + 1) / 2 * power * once * once;
  for (int k = 0; k < 8; k++) {
    sum += bernoulli[k] * term;
    term *= (2 * k + 2 + n) * (2 * k + 3 + n) / ((2 * k + 3) * (2 * k + 4)) * (once * once);
  }
  return sign * (n - 2 * floor(n / 2) == 0 ? -sum : sum) + mirror;
}
TY_INLINE float polygamma_f32(float x, double n) { return (float)polygamma_f64((double)x, n); }
TY_INLINE double digamma_f64(double x) { return polygamma_f64(x, 0); }

/* d log(x) / d alpha of a draw x of Gamma(alpha, 1) at a fixed quantile: -(dP/dalpha) / (x p), p being the density, by the
 * series of the lower incomplete gamma function P; for large alpha or x by the normal approximation. */
TY_CALLED double gamma_draw_slope_f64(double log_x, double alpha) {
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

/* log gamma(1 + a), also for small a, whose digits 1 + a would lose */
TY_INLINE double ty_lgamma1p(double a) {
  return a < 1e-3 ? a * (-0.57721566490153286 + a * (0.82246703342411322 + a * (-0.40068563438653143 + a * 0.27058080842778454)))
                  : lgamma_f64(1 + a);
}
/* log(1 + m) - m, exact near 0: log(1 + m) = 2 atanh(r), r = m / (2 + m) */
TY_INLINE double ty_log1p_rest(double m) {
  const double r = m / (2 + m), s = r * r;
  double sum = 0;
  if (!(fabs(m) < 0.3)) return log1p(m) - m;
  for (int k = 25; k >= 3; k -= 2) sum = sum * s + 1.0 / k;
  return 2 * r * s * sum - m * r;
}
/* x^a e^-x / gamma(a + 1); for large a, where the terms of its logarithm nearly cancel, by Stirling's series */
TY_CALLED double ty_gamma_front(double a, double x) {
  const double s = 1 / (a * a);
  if (a < 20) return exp(a * log(x) - x - ty_lgamma1p(a));
  return exp(a * ty_log1p_rest((x - a) / a) - (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s / 1680))) / a) /
    sqrt(6.283185307179586 * a);
}
/* The regularized incomplete gamma functions, P and Q = 1 - P. For x below a + 1: the series of P; above: the continued fraction of Q
 * (Numerical Recipes 6.2); for small a and x: a series of Q; for a so large that all take long: Temme's first term. */
TY_CALLED double ty_gamma_part(double a, double x, int upper) {
  double p = 0, q = 0;
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == INFINITY && x == INFINITY)) return NAN;
  if (x == 0 || a == INFINITY) return upper;
  if (a == 0 || x == INFINITY) return !upper;
  if (a > 1e8) {
    const double m = (x - a) / a, rest = ty_log1p_rest(m), eta = copysign(sqrt(-2 * rest), m);
    const double first = fabs(m) < 1e-5 ? m / 12 - 1.0 / 3 : 1 / m - 1 / eta;
    const double far = first * exp(a * rest) / sqrt(6.283185307179586 * a);
    return upper ? 0.5 * erfc(eta * sqrt(a / 2)) + far : 0.5 * erfc(-eta * sqrt(a / 2)) - far;
  }
  if (upper && x < 1.1 && (x <= 0.5 ? a <= -0.4 / log(x) : a <= 1.1 * x)) {
    double term = 1, sum = 0;
    for (int n = 1; n < 100 && fabs(term) > 1e-18; n++) sum += (term *= -x / n) / (a + n);
    return -expm1(a * log(x) - ty_lgamma1p(a)) - a * exp(a * log(x) - ty_lgamma1p(a)) * sum;
  }
  if (x < a + 1) {
    double term = 1, sum = 1;
    for (int k = 1; k < 200000 && term > sum * 1e-17; k++) sum += term *= x / (a + k);
    p = ty_gamma_front(a, x) * sum;
    return upper ? 1 - p : p;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, step = 0;
  for (int i = 1; i < 200000 && fabs(step - 1) > 1e-16; i++) {
    const double an = i * (a - i);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= step = d * c;
  }
  q = a * ty_gamma_front(a, x) * h;
  return upper ? q : 1 - q;
}
TY_INLINE double igamma_f64(double a, double x) { return ty_gamma_part(a, x, 0); }
TY_INLINE double igammac_f64(double a, double x) { return ty_gamma_part(a, x, 1); }
TY_BY_DOUBLE2(igamma) TY_BY_DOUBLE2(igammac)

/* Hurwitz' zeta function, the sum of (q + k)^-s: its first terms, then the Euler-Maclaurin formula. NaN for q far below 0. */
TY_CALLED double zeta_f64(double s, double q) {
  const double factors[12] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000,
    1.0 / 74724249600, -3617.0 / 10670622842880000, 43867.0 / 5109094217170944000, -2.1748686985580618e-16, 5.5090028283602295e-18,
    -1.3954464685812523e-19};                             /* the 2k-th Bernoulli number over (2k)! */
  double sum, b, a = q, rising = s;
  if (s == 1) return INFINITY;
  if (!(s > 1) || q != q || q < -1e6) return NAN;
  if (q <= 0 && q == floor(q)) return INFINITY;
  if (q < 0 && s != floor(s)) return NAN;
  if (q > 1e8) return (1 / (s - 1) + 0.5 / q) * pow(q, 1 - s);
  sum = b = pow(a, -s);
  for (int i = 0; i < 9 || a <= 9; i++) {
    a += 1;
    sum += b = pow(a, -s);
    if (fabs(b) < 1e-17 * fabs(sum)) return sum;
  }
  sum += b * a / (s - 1) - 0.5 * b;
  for (int k = 0; k < 12; k++) {
    b /= a;
    const double term = factors[k] * rising * b;
    sum += term;
    if (fabs(term) < 1e-17 * fabs(sum)) break;
    rising *= (s + 2 * k + 1) * (s + 2 * k + 2);
    b /= a;
  }
  return sum;
}
TY_BY_DOUBLE2(zeta)

/* ---- modified Bessel functions of the first kind ---- */

/* I_n(x) for n of 0 and 1, times e^-|x| if scaled: the power series, and from 30 on Hankel's expansion. */
TY_CALLED double ty_bessel(double x, int n, int scaled) {
  const double a = fabs(x);
  double sum, term;
  if (x != x) return x;
  if (a < 30) {
    sum = term = n ? a / 2 : 1;
    for (int k = 1; k < 200 && term > sum * 1e-17; k++) sum += term *= a * a / (4.0 * k * (k + n));
    if (scaled) sum *= exp(-a);
  } else {
    sum = term = 1;
    for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) sum += term *= ((2 * k - 1.0) * (2 * k - 1) - 4 * n) / (8 * k * a);
    sum /= sqrt(6.283185307179586 * a);
    if (!scaled) sum = a == INFINITY ? a : sum * exp(a / 2) * exp(a / 2);     /* e^a alone would overflow too soon */
  }
  return n && x < 0 ? -sum : sum;
}
TY_INLINE double i0_f64(double x) { return ty_bessel(x, 0, 0); }
TY_INLINE double i1_f64(double x) { return ty_bessel(x, 1, 0); }
TY_INLINE double i0e_f64(double x) { return ty_bessel(x, 0, 1); }
TY_INLINE double i1e_f64(double x) { return ty_bessel(x, 1, 1); }
TY_BY_DOUBLE1(i0) TY_BY_DOUBLE1(i1) TY_BY_DOUBLE1(i0e) TY_BY_DOUBLE1(i1e)

/* ---- the normal distribution's kin ---- */

/* e^(x^2) erfc(x): the rounding of the square is corrected; from 12 on by the asymptotic series. */
TY_CALLED double erfcx_f64(double x) {
  const double square = x * x;
  double sum = 1, term = 1;
  if (x < -27) return INFINITY;
  if (x < 12) return exp(square) * (1 + __builtin_fma(x, x, -square)) * erfc(x);
  for (int k = 1; k < 30 && fabs(term) > 1e-17; k++) sum += term *= (1 - 2 * k) / (2 * square);
  return sum * 0.56418958354775628 / x;                   /* 1 / sqrt(pi) */
}
TY_INLINE double log_ndtr_f64(double x) {
  const double u = x * 0.70710678118654752;
  return x < -1 ? log(0.5 * erfcx_f64(-u)) - 0.5 * x * x : log1p(-0.5 * erfc(u));
}
/* The normal distribution's quantiles: Wichura 1988, AS241, to 1e-16. */
TY_CALLED double ndtri_f64(double p) {
  const double q = p - 0.5;
  if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
  if (fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r + 45921.953931549871457) * r +
      13731.693765509461125) * r + 1971.5909503065514427) * r + 133.14166789178437745) * r + 3.387132872796366608) /
      (((((((5226.495278852854561 * r + 28729.085735721942674) * r + 39307.89580009271061) * r + 21213.794301586595867) * r +
      5394.1960214247511077) * r + 687.1870074920579083) * r + 42.313330701600911252) * r + 1);
  }
  double r = sqrt(-log(q < 0 ? p : 1 - p)), v;
  if (r <= 5) {
    r -= 1.6;
    v = (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r +
      3.64784832476320460504) * r + 5.7694972214606914055) * r + 4.6303378461565452959) * r + 1.42343711074968357734) /
      (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r +
      0.68976733498510000455) * r + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1);
  } else {
    r -= 5;
    v = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r +
      0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358) * r + 5.4637849111641143699) * r +
      6.6579046435011037772) / (((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r +
      7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1);
  }
  return q < 0 ? -v : v;
}
TY_BY_DOUBLE1(erfcx) TY_BY_DOUBLE1(log_ndtr) TY_BY_DOUBLE1(ndtri)

/* ---- whole numbers ---- */

TY_INLINE int64_t gcd_i64(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) { const uint64_t r = x % y; x = y; y = r; }
  return (int64_t)x;
}
TY_INLINE int64_t lcm_i64(int64_t a, int64_t b) {
  const uint64_t g = (uint64_t)gcd_i64(a, b), x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  return g ? (int64_t)(x / g * y) : 0;
}
#undef TY_BY_DOUBLE1
#undef TY_BY_DOUBLE2
#endif
