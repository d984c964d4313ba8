/* Infer rules of optimizer steps, gradient norms and GradScaler's ops; and ty_optim_..., by which backends read such calls.
 *
 * Idea: such a call has parallel lists (parameters, gradients, states, 16-bit copies) and single numbers that live on the device. As
 * in shape.c, the rules make every check of arguments. */
#include <string.h>
#include "optim_formulas.h"
#include "shape.h"

/* Checks an operand that is no list: a number in a 0-dim tensor. */
static ty_status need_number(ty_call *c, int slot) {
  const char *name = c->op->param[slot].name;
  const ty_tensor *t = c->span[slot].count ? c->in[c->span[slot].start].t : NULL;
  const ty_dtype want = !strcmp(name, "step") || !strcmp(name, "growth") ? TY_I64 : TY_F32;
  if (!t) return TY_OK;
  if (t->ndim) return ty_fail(c, "%s must be a 0-dim tensor, got shape %s", name, ty_shape_of(t));
  if (!strcmp(name, "lr") || !strcmp(name, "factor") ? !ty_is_float(t->dtype) : t->dtype != want)
    return ty_fail(c, "%s has dtype %s; it must be %s", name, ty_dtype_names[t->dtype], ty_dtype_names[want]);
  return TY_OK;
}

static ty_status refuse_scaled(ty_call *c, const ty_span s, const char *way) {
  for (int i = 0; i < s.count; i++)
    if (c->in[s.start + i].t->scaled) return ty_fail(c, "gradient %d is scaled by a GradScaler: %s", i + 1, way);
  return TY_OK;
}

ty_status ty_infer_optim(ty_call *c) {
  const int n = c->span[0].count, id = c->op->id;
  const bool step = id != TY_OP_multi_scale && id != TY_OP_multi_unscale && id != TY_OP_multi_found && id != TY_OP_amp_update;
  for (int k = 0; k < c->op->nin; k++) {
    ty_span s = c->span[k];
    if (c->op->param[k].type != TY_P_TENSORS) { TY_TRY(need_number(c, k)); continue; }
    if (s.count != n && !(s.count == 0 && c->op->param[k].optional))
      return ty_fail(c, "argument %d has %d tensors for %d parameters", k + 1, s.count, n);
    for (int i = 0; i < s.count; i++) {
      const ty_tensor *p = c->in[c->span[0].start + i].t, *t = c->in[s.start + i].t;
      bool fits = TY_SAME_SHAPE(t, p);
      if (!fits)
        return ty_fail(c, "tensor %d of argument %d has shape %s; it must be %s as its parameter's",
          i + 1, k + 1, ty_shape_of(t), ty_shape_of(p));
      if (!ty_is_float(t->dtype))
        return ty_fail(c, "tensor %d of argument %d has dtype %s; it must be floating", i + 1, k + 1, ty_dtype_names[t->dtype]);
      if (c->op->param[k].mutated && ty_overlaps_itself(t))
        return ty_fail(c, "tensor %d of argument %d overlaps itself in memory", i + 1, k + 1);
    }
  }
  if (id == TY_OP_multi_scale) TY_TRY(refuse_scaled(c, c->span[0], "call scaler:unscale_(optimizer) before gradients are clipped"));
  if (step) {
    const ty_optim_operands s = ty_optim_operands_of(c);
    for (int i = 0; i < s.copies.count; i++) {
      const ty_tensor *p = c->in[c->span[0].start + i].t, *t = c->in[s.copies.start + i].t;
      if (p->dtype != TY_F32 || (t->dtype != TY_F16 && t->dtype != TY_BF16))
        return ty_fail(c, "copy %d is %s, its parameter %s; a 16-bit copy of a float32 one is needed", i + 1, ty_dtype_names[t->dtype],
          ty_dtype_names[p->dtype]);
    }
    if (!s.scale) TY_TRY(refuse_scaled(c, c->span[1], "call scaler:step(optimizer), or scaler:unscale_(optimizer) first"));
  }
  return TY_OK;
}

ty_optim_operands ty_optim_operands_of(const ty_call *c) {
  int lists = 0;
  while (c->op->param[lists].type == TY_P_TENSORS) lists++;
  const ty_span *s = c->span + lists;
  ty_optim_operands k = {.lists = lists - 1, .copies = c->span[lists - 1], .step = c->in[s[0].start].t, .lr = c->in[s[1].start]};
  if (s[2].count) k.found = c->in[s[2].start].t;
  if (s[3].count) k.scale = c->in[s[3].start].t;
  return k;
}

ty_optim_member ty_optim_member_of(const ty_call *c, const ty_optim_operands *step, int i) {
  ty_optim_member m = {.direct = true};
  for (int l = 0; l < step->lists; l++)
    if (c->span[l].count) m.t[l] = c->in[c->span[l].start + i].t;
  m.copy = step->copies.count ? c->in[step->copies.start + i].t : ty_shadow_to_refresh(c->ctx, m.t[0]);
  m.shadow = m.copy && !step->copies.count;
  return m;
}

size_t ty_optim_working_bytes(const ty_optim_member *m, ty_dtype d) {
  size_t n = 0;
  for (int l = 0; l < TY_OPTIM_LISTS && !m->direct; l++)
    if (m->t[l]) n += ty_laid_bytes(m->t[l], d);
  return m->direct || !m->copy || m->shadow ? n : n + ty_laid_bytes(m->copy, m->copy->dtype);
}

void ty_optim_settings_of(const ty_call *c, ty_optim_settings *out) {
#define F(op, name) c->at[TY_AT_##op##_step_##name].f
#define I(op, name) (int)c->at[TY_AT_##op##_step_##name].i
#define ADAM(op) .beta1 = F(op, beta1), .beta2 = F(op, beta2), .eps = F(op, eps), .weight_decay = F(op, weight_decay), \
    .maximize = I(op, maximize)
  switch (c->op->id) {
    case TY_OP_sgd_step:
      *out = (ty_optim_settings){.momentum = F(sgd, momentum), .dampening = F(sgd, dampening), .weight_decay = F(sgd, weight_decay),
        .nesterov = I(sgd, nesterov), .maximize = I(sgd, maximize)};
      return;
    case TY_OP_rmsprop_step:
      *out = (ty_optim_settings){.alpha = F(rmsprop, alpha), .eps = F(rmsprop, eps), .weight_decay = F(rmsprop, weight_decay),
        .momentum = F(rmsprop, momentum), .maximize = I(rmsprop, maximize)};
      return;
    case TY_OP_adagrad_step:
      *out = (ty_optim_settings){.lr_decay = F(adagrad, lr_decay), .eps = F(adagrad, eps), .weight_decay = F(adagrad, weight_decay),
        .maximize = I(adagrad, maximize)};
      return;
    case TY_OP_adadelta_step:
      *out = (ty_optim_settings){.rho = F(adadelta, rho), .eps = F(adadelta, eps), .weight_decay = F(adadelta, weight_decay),
        .maximize = I(adadelta, maximize)};
      return;
    case TY_OP_nadam_step:
      *out = (ty_optim_settings){ADAM(nadam), .decoupled = I(nadam, decoupled), .momentum_decay = F(nadam, momentum_decay),
        .beta_ratio = F(nadam, beta_ratio)};
      return;
    case TY_OP_radam_step: *out = (ty_optim_settings){ADAM(radam), .decoupled = I(radam, decoupled)}; return;
    case TY_OP_adamax_step: *out = (ty_optim_settings){ADAM(adamax)}; return;
    default: *out = (ty_optim_settings){ADAM(adamw), .decoupled = I(adamw, decoupled)}; return;
  }
#undef F
#undef I
#undef ADAM
}

ty_status ty_infer_multi_norm(ty_call *c) {
  for (int i = 0; i < c->nin; i++)
    if (!ty_is_float(c->in[i].t->dtype))
      return ty_fail(c, "tensor %d has dtype %s; it must be floating", i + 1, ty_dtype_names[c->in[i].t->dtype]);
  TY_TRY(refuse_scaled(c, c->span[0], "call scaler:unscale_(optimizer) before gradients are clipped"));
  ty_set_shape(&c->meta[0], c->nin ? ty_compute_dtype(c->in[0].t->dtype) : TY_F32, 0, c->meta[0].shape);
  return TY_OK;
}
