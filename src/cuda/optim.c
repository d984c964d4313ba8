/* Optimizer steps and what goes over lists of tensors: gathered for few launches of kernels/optim.cu and kernels/lists.cu. */
#include "cuda.h"

#define LISTS 5

/* Elements of the lists' members that lie alike can be updated where they lie. */
static bool alike(const ty_tensor *a, const ty_tensor *b) {
  for (int i = 0; i < a->ndim; i++)
    if (a->shape[i] > 1 && a->stride[i] != b->stride[i]) return false;
  return true;
}

static ty_status launch(ty_call *c, int gpu, ty_k_step *k, cudaStream_t s) {
  ty_status st = k->count || k->ticket ? ty_launched(c, gpu, ty_k_optim(k, s)) : TY_OK;
  k->count = 0;
  return st;
}

static ty_k_step step_of(const ty_call *c, const ty_optim_operands *step) {
  const ty_attr *a = c->at;
  const ty_tensor *lr = step->lr.t;
  ty_k_step k = {.op = c->op->id, .maximize = (int)a[c->op->nattr - 1].i, .step = ty_data(step->step), .lr = step->lr.f,
    .lr_at = lr ? ty_data(lr) : NULL, .lr_dtype = lr ? lr->dtype : TY_F32,
    .found = step->found ? ty_data(step->found) : NULL, .scale = step->scale ? ty_data(step->scale) : NULL};
  switch (k.op) {
    case TY_OP_sgd_step: k.momentum = a[0].f; k.a = a[1].f; k.weight_decay = a[2].f; k.nesterov = (int)a[3].i; break;
    case TY_OP_rmsprop_step: k.a = a[0].f; k.eps = a[1].f; k.weight_decay = a[2].f; k.momentum = a[3].f; break;
    case TY_OP_adagrad_step: k.lr_decay = a[0].f; k.eps = a[1].f; k.weight_decay = a[2].f; break;
    case TY_OP_adadelta_step: k.a = a[0].f; k.eps = a[1].f; k.weight_decay = a[2].f; break;
    default:                               /* Adam and its kin */
      k.a = a[0].f; k.b = a[1].f; k.eps = a[2].f; k.weight_decay = a[3].f;
      k.decoupled = k.op == TY_OP_adamax_step ? 0 : (int)a[4].i;
      if (k.op == TY_OP_nadam_step) k.momentum = a[5].f;
  }
  return k;
}

ty_k_scale_rule ty_scale_rule_of(const ty_call *update) {
  return (ty_k_scale_rule){.scale = ty_data(update->in[update->span[1].start].t), .growth = ty_data(update->in[update->span[2].start].t),
    .growth_factor = update->at[0].f, .backoff_factor = update->at[1].f, .interval = update->at[2].i};
}

ty_status ty_optim_step(ty_call *c, int gpu, cudaStream_t s, const ty_k_scale_rule *rule) {
  const ty_optim_operands step = ty_optim_operands_of(c);
  const int lists = step.lists;
  ty_k_step k = step_of(c, &step);
  ty_tensor *made;
  unsigned *ticket = NULL;
  ty_status st = ty_tickets(c, gpu, &ticket, &made);
  for (int i = 0; i < c->span[0].count && st == TY_OK; i++) {
    ty_tensor *t[LISTS] = {NULL}, *use[LISTS] = {NULL}, *half, *copy;
    bool direct = true;
    for (int l = 0; l < lists; l++) {
      if (c->span[l].count) t[l] = c->in[c->span[l].start + i].t;
      if (t[l]) direct = direct && alike(t[0], t[l]) && (l == 1 || t[l]->dtype == t[0]->dtype);
    }
    half = step.copies.count ? NULL : ty_shadow_to_refresh(c->ctx, t[0]);
    copy = half ? half : step.copies.count ? c->in[step.copies.start + i].t : NULL;
    direct = direct && ty_is_dense(t[0]) && (!copy || alike(t[0], copy));
    const int gd = direct ? t[1]->dtype : t[0]->dtype, cd = copy ? copy->dtype : 0;
    if (k.count == TY_K_TENSORS || (k.count && (k.dtype != t[0]->dtype || k.grad_dtype != gd || k.copy_dtype != cd)) || !direct)
      st = launch(c, gpu, &k, s);
    k.dtype = t[0]->dtype;
    k.grad_dtype = gd;
    k.copy_dtype = cd;
    for (int l = 0; l < LISTS && st == TY_OK; l++) {
      use[l] = t[l];
      if (t[l] && !direct) {               /* through contiguous copies of the parameter's dtype */
        use[l] = NULL;
        st = ty_new(c, gpu, (ty_dtype)t[0]->dtype, t[l]->ndim, t[l]->shape, &use[l]);
        if (st == TY_OK) st = ty_launched(c, gpu, ty_convert(use[l], t[l], s));
      }
      k.p[l][k.count] = use[l] ? ty_data(use[l]) : NULL;
    }
    k.p[TY_K_COPY][k.count] = copy && direct ? ty_data(copy) : NULL;
    k.n[k.count++] = ty_numel(t[0]);
    if (!direct) {
      if (st == TY_OK) st = launch(c, gpu, &k, s);
      for (int l = 0; l < lists; l++) {
        if (st == TY_OK && t[l] && c->op->param[l].mutated) st = ty_launched(c, gpu, ty_convert(t[l], use[l], s));
        ty_release(use[l]);
      }
      if (st == TY_OK && copy) st = ty_launched(c, gpu, ty_convert(copy, t[0], s));
    }
    if (st == TY_OK && half) ty_shadow_refreshed(t[0]);
  }
  k.ticket = ticket;
  if (rule) k.rule = *rule;
  if (st == TY_OK) st = launch(c, gpu, &k, s);
  ty_release(made);
  return st;
}

/* Goes over the list of operand 1 in few launches, doing what k asks for. */
static ty_status sweep(ty_call *c, int gpu, cudaStream_t s, ty_k_sweep *k) {
  const bool changes = k->scale || k->factor;
  ty_status st = TY_OK;
  for (int i = 0; i <= c->span[0].count && st == TY_OK; i++) {
    ty_tensor *t = i < c->span[0].count ? c->in[c->span[0].start + i].t : NULL, *use = t;
    const bool apart = t && !ty_is_dense(t);
    if (k->count && (!t || k->count == TY_K_TENSORS || k->dtype != t->dtype || apart)) {
      st = ty_launched(c, gpu, ty_k_sweep_all(k, s));
      k->count = 0;
    }
    if (!t || st != TY_OK) continue;
    if (apart) {
      st = ty_new(c, gpu, (ty_dtype)t->dtype, t->ndim, t->shape, &use);
      if (st == TY_OK) st = ty_launched(c, gpu, ty_convert(use, t, s));
      if (st != TY_OK) { ty_release(use); return st; }
    }
    k->dtype = t->dtype;
    k->p[k->count] = ty_data(use);
    k->n[k->count++] = ty_numel(t);
    if (apart) {
      st = ty_launched(c, gpu, ty_k_sweep_all(k, s));
      if (st == TY_OK && changes) st = ty_launched(c, gpu, ty_convert(t, use, s));
      k->count = 0;
      ty_release(use);
    }
  }
  return st;
}

static ty_status amp_update(ty_call *c, int gpu, cudaStream_t s) {
  ty_k_scaling k = {.count = c->span[0].count, .rule = ty_scale_rule_of(c)};
  if (k.count > TY_K_TENSORS) return ty_fail(c, "update() takes at most %d optimizers, got %d", TY_K_TENSORS, k.count);
  for (int i = 0; i < k.count; i++) k.found[i] = ty_data(c->in[c->span[0].start + i].t);
  return ty_launched(c, gpu, ty_k_scale_update(&k, s));
}

/* The 2-norm of all tensors' elements: sums of chunks' squares, then their sum's root. */
static ty_status norm_of_all(ty_call *c, int gpu, cudaStream_t s) {
  ty_k_sweep k = {0};
  ty_tensor *squares;
  int64_t chunks = 0;
  for (int i = 0; i < c->nin; i++) chunks += (ty_numel(c->in[i].t) + TY_K_CHUNK - 1) / TY_K_CHUNK;
  TY_TRY(ty_new(c, gpu, TY_F64, 1, &chunks, &squares));
  k.squares = ty_data(squares);
  ty_status st = sweep(c, gpu, s, &k);
  if (st == TY_OK) st = ty_launched(c, gpu, ty_k_norm_of_squares(ty_data(c->out[0]), c->out[0]->dtype, k.squares, chunks, s));
  ty_release(squares);
  return st;
}

/* An operand that is no list. */
static ty_operand single(const ty_call *c, int slot) { return c->in[c->span[slot].start]; }

ty_status ty_cuda_optim(ty_call *c) {
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_begin(c, &gpu, &s));
  switch (c->op->id) {
    case TY_OP_multi_norm: return norm_of_all(c, gpu, s);
    case TY_OP_multi_found: return sweep(c, gpu, s, &(ty_k_sweep){.found = ty_data(single(c, 1).t)});
    case TY_OP_multi_unscale: return sweep(c, gpu, s, &(ty_k_sweep){.scale = ty_data(single(c, 1).t), .found = ty_data(single(c, 2).t)});
    case TY_OP_amp_update: return amp_update(c, gpu, s);
    case TY_OP_multi_scale:
      return sweep(c, gpu, s, &(ty_k_sweep){.factor = ty_data(single(c, 1).t), .factor_dtype = single(c, 1).t->dtype});
    default: return ty_optim_step(c, gpu, s, NULL);
  }
}
