/* Steps of NAdam, RAdam, Adamax and Adadelta for one element: the formulas that CPU loops and CUDA kernels share.
 *
 * What a step's count decides is worked out once for all elements, in float64 (ty_step_rates); then each element is updated with its two
 * states: m and v, the running means of its gradient and of the square (Adamax: of the largest size; Adadelta: of the gradient's and the
 * change's squares). */
#ifndef TY_OPTIM_FORMULAS_H
#define TY_OPTIM_FORMULAS_H
#include "math.h"
#include "names.h"

/* What an optimizer is set to; what it doesn't have is 0. */
typedef struct ty_optim_settings {
  double beta1, beta2, alpha, rho, eps, weight_decay, momentum, dampening, lr_decay, momentum_decay;
  int nesterov, decoupled, maximize;
} ty_optim_settings;

/* sign: what gradients are multiplied by; decay: what parameters are; c1, c2, c3: see each rule. */
typedef struct { double sign, weight_decay, decay, b1, b2, eps, c1, c2, c3; } ty_step_rates;

/* The product of NAdam's 1 - 0.5 q^i for i = 1 .. n: its logarithm's series, summed over i first. 0 < q <= 1. */
TY_INLINE double ty_nadam_product(double q, double n) {
  const double qn = pow(q, n);
  double sum = 0, half = 0.5, power = q, powers = qn;
  for (int k = 1; k <= 48; k++, half *= 0.5, power *= q, powers *= qn)
    sum += half / k * (power < 1 ? power * (1 - powers) / (1 - power) : n);
  return exp(-sum);
}

TY_INLINE int ty_has_step_rates(int op) {
  return op == TY_OP_nadam_step || op == TY_OP_radam_step || op == TY_OP_adamax_step || op == TY_OP_adadelta_step;
}

/* n: the step's number, from 1. */
TY_INLINE ty_step_rates ty_step_rates_of(int op, double n, double lr, double sign, const ty_optim_settings *s) {
  const double b1 = op == TY_OP_adadelta_step ? s->rho : s->beta1, b2 = s->beta2;
  ty_step_rates c = {sign, s->decoupled ? 0 : s->weight_decay, s->decoupled ? 1 - lr * s->weight_decay : 1, b1, b2, s->eps, lr, 0, 0};
  if (op == TY_OP_nadam_step) {            /* (c1 gradient + c2 m) / (c3 sqrt(v) + eps) */
    const double q = pow(0.96, s->momentum_decay), product = pow(b1, n) * ty_nadam_product(q, n),
      now = b1 * (1 - 0.5 * pow(q, n)), next = b1 * (1 - 0.5 * pow(q, n + 1));
    c.c1 = lr * (1 - now) / (1 - product);
    c.c2 = lr * next / (1 - product * next);
    c.c3 = 1 / sqrt(1 - pow(b2, n));
  } else if (op == TY_OP_radam_step) {     /* c1 m / (sqrt(v) + eps), or, while c3 is 0, c2 m */
    const double right = 1 - pow(b2, n), most = 2 / (1 - b2) - 1, rho = most - 2 * n * pow(b2, n) / right;
    c.c2 = lr / (1 - pow(b1, n));
    c.c3 = rho > 5 ? sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) : 0;
    c.c1 = c.c2 * sqrt(right) * c.c3;
  } else if (op == TY_OP_adamax_step) c.c1 = lr / (1 - pow(b1, n));      /* c1 m / v */
  return c;
}

#define TY_STEPS(T, S, F) \
  TY_INLINE T ty_nadam_##S(const ty_step_rates *c, T g, T p, T *m, T *v) { \
    const T u = (T)c->sign * g + (T)c->weight_decay * p; \
    *m = (T)c->b1 * *m + (T)(1 - c->b1) * u; \
    *v = (T)c->b2 * *v + (T)(1 - c->b2) * u * u; \
    return (T)c->decay * p - ((T)c->c1 * u + (T)c->c2 * *m) / (sqrt_##S(*v) * (T)c->c3 + (T)c->eps); } \
  TY_INLINE T ty_radam_##S(const ty_step_rates *c, T g, T p, T *m, T *v) { \
    const T u = (T)c->sign * g + (T)c->weight_decay * p; \
    *m = (T)c->b1 * *m + (T)(1 - c->b1) * u; \
    *v = (T)c->b2 * *v + (T)(1 - c->b2) * u * u; \
    return (T)c->decay * p - (c->c3 != 0 ? (T)c->c1 * *m / (sqrt_##S(*v) + (T)c->eps) : (T)c->c2 * *m); } \
  TY_INLINE T ty_adamax_##S(const ty_step_rates *c, T g, T p, T *m, T *v) { \
    const T u = (T)c->sign * g + (T)c->weight_decay * p, size = __builtin_fabs##F(u) + (T)c->eps, before = (T)c->b2 * *v; \
    *m = (T)c->b1 * *m + (T)(1 - c->b1) * u; \
    *v = before > size ? before : size; \
    return p - (T)c->c1 * *m / *v; } \
  TY_INLINE T ty_adadelta_##S(const ty_step_rates *c, T g, T p, T *m, T *v) { \
    const T u = (T)c->sign * g + (T)c->weight_decay * p, eps = (T)c->eps; \
    *m = (T)c->b1 * *m + (T)(1 - c->b1) * u * u; \
    const T d = sqrt_##S(*v + eps) / sqrt_##S(*m + eps) * u; \
    *v = (T)c->b1 * *v + (T)(1 - c->b1) * d * d; \
    return p - (T)c->c1 * d; }
TY_STEPS(float, f32, f)
TY_STEPS(double, f64, )
#endif
