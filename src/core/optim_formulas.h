/* Optimizer steps for one element: the formulas that CPU loops and CUDA kernels share.
 *
 * Idea: what is the same for all elements of a step is computed once, in float64 (ty_step_rates_of); then each element is updated with
 * its states (ty_step_f32, ty_step_f64). Callers pass op as a constant, so that the compiler keeps only its formula. */
#ifndef TY_OPTIM_FORMULAS_H
#define TY_OPTIM_FORMULAS_H
#include "math.h"
#include "names.h"

/* An optimizer's settings; those that it doesn't have are 0. beta_ratio: the product of all n steps' beta1 over the present beta1^n.
 * The numbers come first: a replayed step reads them from memory in this order, since schedules change them. */
#define TY_OPTIM_NUMBERS 11
typedef struct ty_optim_settings {
  double beta1, beta2, alpha, rho, eps, weight_decay, momentum, dampening, lr_decay, momentum_decay, beta_ratio;
  int nesterov, decoupled, maximize;
} ty_optim_settings;

/* sign: gradients are multiplied by it; decay: parameters are; b1, b2: the running means' weights; c1, c2, c3: see each rule. */
typedef struct { double sign, weight_decay, decay, b1, b2, eps, c1, c2, c3; int first, nesterov; } ty_step_rates;

/* NAdam's product of 1 - 0.5 q^i for i = 1 .. n, 0 < q <= 1: its logarithm as a series in k, each term already summed over i. */
TY_INLINE double ty_nadam_product(double q, double n) {
  const double qn = pow(q, n);
  double sum = 0, half = 0.5, power = q, powers = qn;
  for (int k = 1; k <= 48; k++, half *= 0.5, power *= q, powers *= qn)
    sum += half / k * (power < 1 ? power * (1 - powers) / (1 - power) : n);
  return exp(-sum);
}

/* n: the step's number, from 1. sign: 1 or -1 (maximize), times a GradScaler's 1 / scale if there is one. */
TY_INLINE ty_step_rates ty_step_rates_of(int op, double n, double lr, double sign, const ty_optim_settings *s) {
  ty_step_rates c = {sign, s->weight_decay, 1, s->beta1, s->beta2, s->eps, lr, 0, 0, n == 1, s->nesterov};
  if (s->decoupled) { c.weight_decay = 0; c.decay = 1 - lr * s->weight_decay; }
  if (op == TY_OP_sgd_step) {              /* c1 u, or c1 v with v = b1 v + c2 u */
    c.b1 = s->momentum;
    c.c2 = 1 - s->dampening;
  } else if (op == TY_OP_rmsprop_step) {   /* b2: of the square's mean; b1: momentum */
    c.b1 = s->momentum;
    c.b2 = s->alpha;
  } else if (op == TY_OP_adagrad_step) c.c1 = lr / (1 + (n - 1) * s->lr_decay);
  else if (op == TY_OP_adadelta_step) c.b1 = s->rho;
  else if (op == TY_OP_adamax_step) c.c1 = lr / (1 - ty_whole_power(c.b1, (int64_t)n));        /* c1 m / v */
  else if (op == TY_OP_adamw_step) {       /* Adam too: c1 m / (c3 sqrt(v) + eps) */
    c.c1 = lr / (1 - ty_whole_power(c.b1, (int64_t)n));
    c.c3 = 1 / sqrt(1 - ty_whole_power(c.b2, (int64_t)n));
  } else if (op == TY_OP_nadam_step) {     /* (c1 gradient + c2 m) / (c3 sqrt(v) + eps) */
    const double q = pow(0.96, s->momentum_decay), product = s->beta_ratio * ty_whole_power(c.b1, (int64_t)n) * ty_nadam_product(q, n),
      now = c.b1 * (1 - 0.5 * pow(q, n)), next = c.b1 * (1 - 0.5 * pow(q, n + 1));
    c.c1 = lr * (1 - now) / (1 - product);
    c.c2 = lr * next / (1 - product * next);
    c.c3 = 1 / sqrt(1 - ty_whole_power(c.b2, (int64_t)n));
  } else if (op == TY_OP_radam_step) {     /* c1 m / (sqrt(v) + eps), or, while c3 is 0, c2 m */
    const double power = ty_whole_power(c.b2, (int64_t)n), right = 1 - power, most = 2 / (1 - c.b2) - 1, rho = most - 2 * n * power / right;
    c.c2 = lr / (1 - ty_whole_power(c.b1, (int64_t)n));
    c.c3 = rho > 5 ? sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) : 0;
    c.c1 = c.c2 * sqrt(right) * c.c3;
  }
  return c;
}

/* The parameter p after its step. v: the element's states, changed in place; bit i of has: there is v[i].
 *   SGD: 0 momentum (optional). RMSprop: 0 the mean square; optional: 1 momentum, 2 the mean gradient.
 *   Adagrad: 0 the sum of squares. Adadelta: mean squares of 0 the gradient, 1 the change.
 *   Adam and its kin: 0 the mean gradient, 1 its mean square (Adamax: its largest size), 2 the largest mean square (AMSGrad). */
#define TY_STEPS(T, S, F) \
  TY_INLINE T ty_step_##S(int op, int has, const ty_step_rates *c, T g, T p, T *v) { \
    const T b1 = (T)c->b1, b2 = (T)c->b2, eps = (T)c->eps, c1 = (T)c->c1, c2 = (T)c->c2, c3 = (T)c->c3; \
    const T u = (T)c->sign * g + (T)c->weight_decay * p; \
    if (op == TY_OP_sgd_step) { \
      if (!(has & 1)) return p - c1 * u; \
      v[0] = c->first ? u : b1 * v[0] + c2 * u; \
      return p - c1 * (c->nesterov ? u + b1 * v[0] : v[0]); \
    } else if (op == TY_OP_adagrad_step) { \
      v[0] += u * u; \
      return p - c1 * u / (sqrt_##S(v[0]) + eps); \
    } else if (op == TY_OP_rmsprop_step) { \
      T size = v[0] = b2 * v[0] + (T)(1 - c->b2) * u * u, by; \
      if (has & 4) { v[2] += (T)(1 - c->b2) * (u - v[2]); size -= v[2] * v[2]; } \
      by = u / (sqrt_##S(size) + eps); \
      if (has & 2) by = v[1] = b1 * v[1] + by; \
      return p - c1 * by; \
    } else if (op == TY_OP_adadelta_step) { \
      v[0] = b1 * v[0] + (T)(1 - c->b1) * u * u; \
      const T d = sqrt_##S(v[1] + eps) / sqrt_##S(v[0] + eps) * u; \
      v[1] = b1 * v[1] + (T)(1 - c->b1) * d * d; \
      return p - c1 * d; \
    } \
    v[0] = b1 * v[0] + (T)(1 - c->b1) * u;     /* Adam and its kin */ \
    if (op == TY_OP_adamax_step) { \
      const T size = __builtin_fabs##F(u) + eps, before = b2 * v[1]; \
      v[1] = before > size ? before : size; \
      return p - c1 * v[0] / v[1]; \
    } \
    T size = v[1] = b2 * v[1] + (T)(1 - c->b2) * u * u; \
    p = (T)c->decay * p; \
    if (op == TY_OP_nadam_step) return p - (c1 * u + c2 * v[0]) / (sqrt_##S(size) * c3 + eps); \
    if (op == TY_OP_radam_step) return p - (c->c3 != 0 ? c1 * v[0] / (sqrt_##S(size) + eps) : c2 * v[0]); \
    if (has & 4) size = v[2] = size > v[2] ? size : v[2]; \
    return p - c1 * v[0] / (sqrt_##S(size) * c3 + eps); }
TY_STEPS(float, f32, f)
TY_STEPS(double, f64, )
#endif
