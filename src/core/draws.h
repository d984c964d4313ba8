/* Draws from distributions by rejection, for gcc and nvcc alike.
 *
 * Idea: draw i has TY_DRAW_BLOCKS Philox blocks of its own, from offset + i * TY_DRAW_BLOCKS on; each proposal takes one. Invariant: a draw
 * ends within its blocks; the rare one whose proposals were all rejected keeps the last. */
#ifndef TY_DRAWS_H
#define TY_DRAWS_H
#include "special.h"
#include "names.h"

#define TY_DRAW_KINDS(X) X(DRAW_GAMMA, "log_gamma") X(DRAW_POISSON, "poisson") X(DRAW_BINOMIAL, "binomial") \
  X(DRAW_VON_MISES, "von_mises")
enum { TY_DRAW_KINDS(TY_AS_NUMBER) };
#define TY_DRAW_BLOCKS 16

/* in (0, 1): 52 bits, plus one half */
TY_INLINE double ty_unit(uint32_t high, uint32_t low) {
  return ((double)(((uint64_t)high << 32 | low) >> 12) + 0.5) * 2.220446049250313e-16;
}
TY_INLINE double ty_normal_draw(uint64_t seed, uint64_t block) {
  uint32_t r[4];
  float x, other;
  ty_philox(seed, block, r);
  ty_normal2(r[0], r[1], &x, &other);
  return (double)x;
}
/* Above this, probabilities of counts have too few digits to be compared: a count is then a rounded normal number. */
#define TY_COUNTED 1e12
TY_INLINE double ty_log_factorial(double n) { return lgamma_f64(n + 1); }

/* The logarithm of a draw of Gamma(a, 1): Marsaglia and Tsang 2000; for a < 1 from a draw of a + 1, as they do. */
TY_CALLED double ty_draw_log_gamma(double a, uint64_t seed, uint64_t block) {
  const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / sqrt(9 * d);
  double log_v = 0;
  uint32_t r[4];
  if (!(a > 0)) return a == 0 ? -INFINITY : NAN;
  if (a == INFINITY) return a;
  for (int round = 1; round < TY_DRAW_BLOCKS; round++) {     /* each accepts more than 0.95 */
    float x, other;
    ty_philox(seed, block + (uint64_t)round, r);
    ty_normal2(r[0], r[1], &x, &other);
    const double v = 1 + c * (double)x, u = ty_unit(r[2], r[3]), square = (double)x * (double)x;
    if (v <= 0) continue;
    log_v = 3 * log(v);
    if (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d - d * v * v * v + d * log_v) break;
  }
  if (a >= 1) return log(d) + log_v;
  ty_philox(seed, block, r);
  return log(d) + log_v + log(ty_unit(r[0], r[1])) / a;
}

/* A count of mean rate: below 10 by inverting the distribution, term by term; else by rejection (Hoermann 1993, PTRS). */
TY_CALLED double ty_draw_poisson(double rate, uint64_t seed, uint64_t block) {
  uint32_t r[4];
  double k = floor(rate);
  if (!(rate >= 0) || rate == INFINITY) return rate >= 0 ? rate : NAN;
  if (rate < 10) {
    ty_philox(seed, block, r);
    const double u = ty_unit(r[0], r[1]);
    double p = exp(-rate), reached = p;
    for (k = 0; u > reached && k < 200; reached += p) p *= rate / ++k;
    return k;
  }
  if (rate > TY_COUNTED) return floor(rate + sqrt(rate) * ty_normal_draw(seed, block) + 0.5);
  const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4),
    most = 0.9277 - 3.6224 / (b - 2), log_rate = log(rate);
  for (int round = 0; round < TY_DRAW_BLOCKS; round++) {     /* each accepts more than 0.75 */
    ty_philox(seed, block + (uint64_t)round, r);
    const double x = ty_unit(r[0], r[1]) - 0.5, v = ty_unit(r[2], r[3]), us = 0.5 - fabs(x),
      at = floor((2 * a / us + b) * x + rate + 0.43);
    if (at < 0) continue;
    k = at;
    if (us >= 0.07 && v <= most) break;
    if (us < 0.013 && v > us) continue;
    if (log(v * inverse / (a / (us * us) + b)) <= k * log_rate - rate - ty_log_factorial(k)) break;
  }
  return k;
}

/* Successes in n trials of probability q: if few by inverting the distribution, term by term; else by rejection (Hoermann 1993,
 * BTRS). */
TY_CALLED double ty_draw_binomial(double n, double q, uint64_t seed, uint64_t block) {
  const int turned = q > 0.5;              /* counts failures instead */
  const double p = turned ? 1 - q : q, mean = n * p, odds = p / (1 - p);
  uint32_t r[4];
  double k = 0;
  if (!(n >= 0 && q >= 0 && q <= 1)) return NAN;
  if (mean < 10) {
    ty_philox(seed, block, r);
    const double u = ty_unit(r[0], r[1]);
    double now = exp(n * log1p(-p)), reached = now;
    for (; u > reached && k < n && k < 200; k++) {
      now *= (n - k) / (k + 1) * odds;
      reached += now;
    }
    return turned ? n - k : k;
  }
  const double spread = sqrt(mean * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, most = 0.92 - 4.2 / b,
    alpha = (2.83 + 5.1 / b) * spread, mode = floor((n + 1) * p),
    top = ty_log_factorial(mode) + ty_log_factorial(n - mode);
  if (n > TY_COUNTED) {                    /* rare successes: Poisson */
    k = p < 1e-6 ? ty_draw_poisson(mean, seed, block) : floor(mean + spread * ty_normal_draw(seed, block) + 0.5);
    k = k < 0 ? 0 : k > n ? n : k;
    return turned ? n - k : k;
  }
  k = mode;
  for (int round = 0; round < TY_DRAW_BLOCKS; round++) {     /* each accepts more than 0.75 */
    ty_philox(seed, block + (uint64_t)round, r);
    const double x = ty_unit(r[0], r[1]) - 0.5, v = ty_unit(r[2], r[3]), us = 0.5 - fabs(x), at = floor((2 * a / us + b) * x + mean + 0.5);
    if (at < 0 || at > n) continue;
    k = at;
    if (us >= 0.07 && v <= most) break;
    if (log(v * alpha / (a / (us * us) + b)) <= top - ty_log_factorial(k) - ty_log_factorial(n - k) + (k - mode) * log(odds)) break;
  }
  return turned ? n - k : k;
}

/* An angle around 0, closer to it the higher k is: proposals from a wrapped Cauchy distribution (Best and Fisher 1979). For very high k
 * normal, for very low k uniform on the circle. */
TY_CALLED double ty_draw_von_mises(double k, uint64_t seed, uint64_t block) {
  const double pi = 3.141592653589793, tau = 1 + sqrt(1 + 4 * k * k), rho = (tau - sqrt(2 * tau)) / (2 * k),
    r = k < 1e-5 ? 1 / k + k : (1 + rho * rho) / (2 * rho);
  double f = 1;
  uint32_t w[4];
  if (!(k > 0)) return NAN;
  if (k > 1e10) return ty_normal_draw(seed, block) / sqrt(k);
  if (k < 1e-10) {
    ty_philox(seed, block, w);
    return (2 * ty_unit(w[0], w[1]) - 1) * pi;
  }
  for (int round = 1; round < TY_DRAW_BLOCKS; round++) {     /* each accepts more than 0.65 */
    ty_philox(seed, block + (uint64_t)round, w);
    const double z = cos(pi * ty_unit(w[0], w[1])), u = ty_unit(w[2], w[3]);
    f = (1 + r * z) / (r + z);
    f = f > 1 ? 1 : f < -1 ? -1 : f;
    const double c = k * (r - f);
    if (c * (2 - c) > u || log(c / u) + 1 - c >= 0) break;
  }
  ty_philox(seed, block, w);
  return w[0] & 1 ? acos(f) : -acos(f);
}

/* A draw of that kind, with the parameters x and, if it has two, y. */
TY_INLINE double ty_draw(int kind, double x, double y, uint64_t seed, uint64_t block) {
  switch (kind) {
    case TY_DRAW_GAMMA: return ty_draw_log_gamma(x, seed, block);
    case TY_DRAW_POISSON: return ty_draw_poisson(x, seed, block);
    case TY_DRAW_BINOMIAL: return ty_draw_binomial(x, y, seed, block);
    default: return ty_draw_von_mises(x, seed, block);
  }
}
#endif
