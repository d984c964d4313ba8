/* Optimizer steps and other ops over lists of tensors, gathered for few launches of kernels/optim.cu and kernels/lists.cu.
 *
 * Idea: a launch's struct holds as many tensors as fit. A parameter whose states have another layout is updated by a launch of its own,
 * through contiguous copies. Invariant: memory for the copies is taken before the first parameter changes; step count, learning rate,
 * scale and found-inf are read on the device alone. */
#include "cuda.h"

_Static_assert(TY_K_COPY == TY_OPTIM_LISTS, "copies come after all lists of an op");

static ty_status launch(ty_call *c, int gpu, ty_k_step *k, cudaStream_t s) {
  ty_status st = k->count || k->ticket ? ty_cuda_launched(c, gpu, ty_k_optim(k, s)) : TY_OK;
  k->count = 0;
  return st;
}

static ty_k_step step_of(const ty_call *c, const ty_optim_operands *step) {
  const ty_tensor *lr = step->lr.t;
  ty_k_step k = {.op = c->op->id, .follow = step->copies.count, .step = ty_data(step->step), .lr = step->lr.f,
    .lr_at = lr ? ty_data(lr) : NULL, .lr_dtype = lr ? lr->dtype : TY_F32,
    .how_at = c->settings ? ty_data(c->settings) : NULL,
    .found = step->found ? ty_data(step->found) : NULL, .scale = step->scale ? ty_data(step->scale) : NULL};
  ty_optim_settings_of(c, &k.how);
  return k;
}

ty_k_scale_rule ty_cuda_scale_rule_of(const ty_call *update) {
  return (ty_k_scale_rule){.scale = ty_data(update->in[update->span[1].start].t), .growth = ty_data(update->in[update->span[2].start].t),
    .growth_factor = update->at[TY_AT_amp_update_growth_factor].f, .backoff_factor = update->at[TY_AT_amp_update_backoff_factor].f,
    .interval = update->at[TY_AT_amp_update_growth_interval].i};
}

/* direct: updated in place, in a launch with others; else by step_apart, through contiguous copies of the parameter's dtype. */
static ty_optim_member member_of(const ty_call *c, const ty_optim_operands *step, int i) {
  ty_optim_member m = ty_optim_member_of(c, step, i);
  ty_tensor *p = m.t[0];
  for (int l = 0; l < step->lists; l++)
    m.direct = m.direct && (!m.t[l] || (ty_same_places(p, m.t[l]) && (l == 1 || m.t[l]->dtype == p->dtype)));
  m.direct = (m.direct && ty_is_dense(p) && (!m.copy || ty_same_places(p, m.copy))) || ty_numel(p) == 0;      /* nothing to copy */
  return m;
}

/* memory: room for the working copies. */
static ty_status step_apart(ty_call *c, int gpu, cudaStream_t s, ty_k_step *k, const ty_optim_member *m, int lists, ty_tensor *memory) {
  ty_tensor laid[TY_OPTIM_LISTS], copy;
  size_t at = 0;
  for (int l = 0; l < lists; l++) {
    k->p[l][0] = NULL;
    if (!m->t[l]) continue;
    laid[l] = ty_lay(memory, &at, m->t[l], m->t[0]->dtype);
    TY_TRY(ty_cuda_launched(c, gpu, ty_cuda_convert(&laid[l], m->t[l], s)));
    k->p[l][0] = ty_data(&laid[l]);
  }
  k->p[TY_K_COPY][0] = NULL;
  if (m->copy && !m->shadow) {
    copy = ty_lay(memory, &at, m->copy, m->copy->dtype);
    TY_TRY(ty_cuda_launched(c, gpu, ty_cuda_convert(&copy, m->copy, s)));
    k->p[TY_K_COPY][0] = ty_data(&copy);
  }
  k->n[0] = ty_numel(m->t[0]);
  k->count = 1;
  TY_TRY(launch(c, gpu, k, s));
  for (int l = 0; l < lists; l++)
    if (m->t[l] && c->op->param[l].mutated) TY_TRY(ty_cuda_launched(c, gpu, ty_cuda_convert(m->t[l], &laid[l], s)));
  return m->copy ? ty_cuda_launched(c, gpu, ty_cuda_convert(m->copy, m->t[0], s)) : TY_OK;
}

static ty_status steps(ty_call *c, int gpu, cudaStream_t s, ty_k_step *k, const ty_optim_operands *step, ty_tensor *memory) {
  for (int i = 0; i < c->span[0].count; i++) {
    const ty_optim_member m = member_of(c, step, i);
    const int d = m.t[0]->dtype, gd = m.direct ? m.t[1]->dtype : d, cd = m.copy ? m.copy->dtype : 0;
    if (k->count && (!m.direct || k->count == TY_K_TENSORS || k->dtype != d || k->grad_dtype != gd || k->copy_dtype != cd))
      TY_TRY(launch(c, gpu, k, s));
    k->dtype = d;
    k->grad_dtype = gd;
    k->copy_dtype = cd;
    if (m.direct) {
      for (int l = 0; l < TY_OPTIM_LISTS; l++) k->p[l][k->count] = m.t[l] ? ty_data(m.t[l]) : NULL;
      k->p[TY_K_COPY][k->count] = m.copy ? ty_data(m.copy) : NULL;
      k->n[k->count++] = ty_numel(m.t[0]);
    } else {
      TY_TRY(step_apart(c, gpu, s, k, &m, step->lists, memory));
    }
    if (m.shadow) ty_shadow_refreshed(m.t[0]);
  }
  return TY_OK;
}

/* n bytes for working copies; NULL for 0. Taken before anything is changed, so that running out of memory changes nothing. */
static ty_status working_memory(ty_call *c, int gpu, size_t n, ty_tensor **out) {
  const int64_t size = (int64_t)n;
  *out = NULL;
  return n ? ty_cuda_new(c, gpu, TY_U8, 1, &size, out) : TY_OK;
}

ty_status ty_cuda_optim_step(ty_call *c, int gpu, cudaStream_t s, const ty_k_scale_rule *rule) {
  const ty_optim_operands step = ty_optim_operands_of(c);
  ty_k_step k = step_of(c, &step);
  size_t room = 0;
  for (int i = 0; i < c->span[0].count; i++) {
    const ty_optim_member m = member_of(c, &step, i);
    room = TY_MAX(room, ty_optim_working_bytes(&m, m.t[0]->dtype));
  }
  ty_tensor *memory = NULL, *made;
  unsigned *ticket = NULL;
  ty_status st = ty_stream_tickets(c, gpu, &ticket, &made);
  if (st == TY_OK) st = working_memory(c, gpu, room, &memory);
  if (st == TY_OK) st = steps(c, gpu, s, &k, &step, memory);
  k.ticket = ticket;                       /* the last launch's, which counts the step */
  if (rule) k.rule = *rule;
  if (st == TY_OK) st = launch(c, gpu, &k, s);
  ty_release(memory);
  ty_release(made);
  return st;
}

static bool lies_apart(const ty_tensor *t) { return !ty_is_dense(t) && ty_numel(t); }

/* Goes over the first operand's list in few launches, doing what k asks for. */
static ty_status sweep(ty_call *c, int gpu, cudaStream_t s, ty_k_sweep *k) {
  const bool changes = k->scale || k->factor;
  const int count = c->span[0].count;
  ty_operand *in = c->in + c->span[0].start;
  size_t room = 0;
  for (int i = 0; i < count; i++)
    if (lies_apart(in[i].t)) room = TY_MAX(room, ty_laid_bytes(in[i].t, in[i].t->dtype));
  ty_tensor *memory;
  ty_status st = working_memory(c, gpu, room, &memory);
  for (int i = 0; i < count && st == TY_OK; i++) {
    ty_tensor *t = in[i].t, laid;
    const bool apart = lies_apart(t), last = i + 1 == count;
    size_t at = 0;
    if (apart) {
      laid = ty_lay(memory, &at, t, t->dtype);
      st = ty_cuda_launched(c, gpu, ty_cuda_convert(&laid, t, s));
    }
    k->dtype = t->dtype;
    k->p[k->count] = ty_data(apart ? &laid : t);
    k->n[k->count++] = ty_numel(t);
    if (st == TY_OK && (apart || last || k->count == TY_K_TENSORS || in[i + 1].t->dtype != t->dtype || lies_apart(in[i + 1].t))) {
      st = ty_cuda_launched(c, gpu, ty_k_sweep_all(k, s));
      k->count = 0;
    }
    if (st == TY_OK && apart && changes) st = ty_cuda_launched(c, gpu, ty_cuda_convert(t, &laid, s));
  }
  ty_release(memory);
  return st;
}

static ty_status amp_update(ty_call *c, int gpu, cudaStream_t s) {
  ty_k_scaling k = {.count = c->span[0].count, .rule = ty_cuda_scale_rule_of(c)};
  if (k.count > TY_K_TENSORS) return ty_fail(c, "update() takes at most %d optimizers, got %d", TY_K_TENSORS, k.count);
  for (int i = 0; i < k.count; i++) k.found[i] = ty_data(c->in[c->span[0].start + i].t);
  return ty_cuda_launched(c, gpu, ty_k_scale_update(&k, s));
}

/* The 2-norm of all tensors' elements: sums of chunks' squares, then their sum's root. */
static ty_status norm_of_all(ty_call *c, int gpu, cudaStream_t s) {
  ty_k_sweep k = {0};
  ty_tensor *squares;
  int64_t chunks = 0;
  for (int i = 0; i < c->nin; i++) chunks += (ty_numel(c->in[i].t) + TY_K_CHUNK - 1) / TY_K_CHUNK;
  TY_TRY(ty_cuda_new(c, gpu, TY_F64, 1, &chunks, &squares));
  k.squares = ty_data(squares);
  ty_status st = sweep(c, gpu, s, &k);
  if (st == TY_OK) st = ty_cuda_launched(c, gpu, ty_k_norm_of_squares(ty_data(c->out[0]), c->out[0]->dtype, k.squares, chunks, s));
  ty_release(squares);
  return st;
}

/* An operand that is no list. */
static ty_operand single(const ty_call *c, int slot) { return c->in[c->span[slot].start]; }

ty_status ty_cuda_optim(ty_call *c) {
  int gpu;
  cudaStream_t s;
  TY_TRY(ty_cuda_begin(c, &gpu, &s));
  switch (c->op->id) {
    case TY_OP_multi_norm: return norm_of_all(c, gpu, s);
    case TY_OP_multi_found: return sweep(c, gpu, s, &(ty_k_sweep){.found = ty_data(single(c, 1).t)});
    case TY_OP_multi_unscale: return sweep(c, gpu, s, &(ty_k_sweep){.scale = ty_data(single(c, 1).t), .found = ty_data(single(c, 2).t)});
    case TY_OP_amp_update: return amp_update(c, gpu, s);
    case TY_OP_multi_scale:
      return sweep(c, gpu, s, &(ty_k_sweep){.factor = ty_data(single(c, 1).t), .factor_dtype = single(c, 1).t->dtype});
    default: return ty_cuda_optim_step(c, gpu, s, NULL);
  }
}
