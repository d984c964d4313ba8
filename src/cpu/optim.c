/* Optimizer steps over lists of tensors: one call updates every parameter. A parameter whose gradient and states have its layout is
 * updated in place (a gradient of another dtype is converted on the way), others through contiguous copies in the loops' type.
 * Invariant: memory for the copies is taken before the first parameter changes. */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "math.h"

#define CHUNK 4096

static bool same_place(const ty_tensor *a, const ty_tensor *b) { return ty_same_places(a, b) && ty_is_dense(b); }

static double number(const ty_operand *o) { return o->t ? ty_get(ty_data(o->t), o->t->dtype) : o->f; }

/* count: this step's number, from 1. */
static ty_step_rates rates_of(const ty_call *c, const ty_optim_operands *st, int64_t count) {
  ty_optim_settings h;
  ty_optim_settings_of(c, &h);
  const double sign = (h.maximize ? -1 : 1) * (st->scale ? (double)(float)(1 / ty_get(ty_data(st->scale), TY_F32)) : 1);
  return ty_step_rates_of(c->op->id, (double)count, number(&st->lr), sign, &h);
}

static ty_optim_member member_of(const ty_call *c, const ty_optim_operands *st, int i) {
  ty_optim_member m = ty_optim_member_of(c, st, i);
  ty_tensor *p = m.t[0];
  m.direct = p->dtype == ty_compute_dtype(p->dtype) && ty_is_dense(p);
  for (int l = 1; l < st->lists; l++)
    m.direct = m.direct && (!m.t[l] || (same_place(p, m.t[l]) && (l == 1 || m.t[l]->dtype == p->dtype)));
  m.direct = (m.direct && (!m.copy || m.shadow || same_place(p, m.copy))) || ty_numel(p) == 0;      /* nothing to copy */
  return m;
}

/* For n masters, at most CHUNK, and their 16-bit copies: a master takes its copy's value where that was changed since the step wrote it. */
static void follow(float *master, const uint16_t *copy, ty_dtype d, int64_t n) {
  const ty_loops *l = ty_cpu_loops();
  uint16_t mine[CHUNK];
  float theirs[CHUNK], own[CHUNK];
  l->store[d][TY_IN_F32](mine, 1, master, n);
  if (!memcmp(mine, copy, sizeof *mine * (size_t)n)) return;           /* nearly always */
  l->load[d][TY_IN_F32](theirs, copy, 1, n);
  l->load[d][TY_IN_F32](own, mine, 1, n);
  for (int64_t i = 0; i < n; i++) if (own[i] != theirs[i]) master[i] = theirs[i];
}

/* memory: room for the working copies. */
static ty_status step(ty_call *c, const ty_step_rates *rates, const ty_optim_member *m, int lists, ty_tensor *memory) {
  const ty_dtype d = ty_compute_dtype(m->t[0]->dtype), gd = m->t[1]->dtype;
  const ty_loop_type k = ty_loop_type_of(d);
  ty_tensor laid[TY_OPTIM_LISTS + 1], *use[TY_OPTIM_LISTS] = {NULL}, *copy = m->copy;
  size_t at = 0;
  for (int l = 0; l < lists; l++) {
    if (!m->t[l]) continue;
    use[l] = m->t[l];
    if (m->direct) continue;
    laid[l] = ty_lay(memory, &at, m->t[l], d);
    use[l] = &laid[l];
    TY_TRY(ty_copy_into(c->ctx, use[l], m->t[l]));
  }
  const bool convert = m->direct && gd != d, follows = copy && !m->shadow,
    along = follows || (copy && m->direct && same_place(m->t[0], copy));
  if (follows && !m->direct) {
    laid[lists] = ty_lay(memory, &at, copy, copy->dtype);
    copy = &laid[lists];
    TY_TRY(ty_copy_into(c->ctx, copy, m->copy));
  }
  const ty_loops *loops = ty_cpu_loops();
  const int64_t total = ty_numel(m->t[0]), size = ty_loop_size[k];
  #pragma omp parallel for num_threads(ty_threads_for(total * 4)) schedule(static)
  for (int64_t from = 0; from < total; from += CHUNK) {
    const int64_t n = TY_MIN(CHUNK, total - from);
    double buffer[CHUNK];
    void *q[TY_OPTIM_LISTS] = {NULL};
    for (int l = 0; l < lists; l++)
      if (use[l]) q[l] = (char *)ty_data(use[l]) + from * (l == 1 && convert ? ty_dtype_size[gd] : size);
    if (convert) {
      loops->load[gd][k](buffer, q[1], 1, n);
      q[1] = buffer;
    }
    char *beside = along ? (char *)ty_data(copy) + from * ty_itemsize(copy) : NULL;
    if (follows) follow(q[0], (const uint16_t *)beside, copy->dtype, n);
    loops->step[k](c->op->id, q, n, rates);
    if (along) loops->store[copy->dtype][k](beside, 1, q[0], n);
  }
  for (int l = 0; l < lists && !m->direct; l++)
    if (c->op->param[l].mutated && m->t[l]) TY_TRY(ty_copy_into(c->ctx, m->t[l], use[l]));
  return copy && copy != m->copy ? ty_copy_into(c->ctx, m->copy, copy) : copy && !along ? ty_copy_into(c->ctx, copy, use[0]) : TY_OK;
}

static ty_status steps(ty_call *c) {
  const ty_optim_operands st = ty_optim_operands_of(c);
  int64_t *count = ty_data(st.step), room = 0;
  if (st.found && ty_get(ty_data(st.found), TY_F32) != 0) return TY_OK;
  for (int i = 0; i < c->span[0].count; i++) {
    const ty_optim_member m = member_of(c, &st, i);
    room = TY_MAX(room, (int64_t)ty_optim_working_bytes(&m, ty_compute_dtype(m.t[0]->dtype)));
  }
  ty_tensor *memory = NULL;                /* taken before anything is changed */
  const ty_meta bytes = {.dtype = TY_U8, .ndim = 1, .shape = {room}};
  if (room) TY_TRY(ty_empty(c->ctx, c->in[0].t->storage->backend, &bytes, &memory));
  const ty_step_rates rates = rates_of(c, &st, *count + 1);
  ty_status s = TY_OK;
  for (int i = 0; i < c->span[0].count && s == TY_OK; i++) {
    const ty_optim_member m = member_of(c, &st, i);
    s = step(c, &rates, &m, st.lists, memory);
    if (s == TY_OK && m.shadow) ty_shadow_refreshed(m.t[0]);
  }
  ty_release(memory);
  if (s == TY_OK) ++*count;
  return s;
}

static ty_status norm_of_all(ty_call *c) {
  double sum = 0;
  for (int i = 0; i < c->nin; i++) {
    ty_attr at[2] = {{0}};
    ty_operand in[1] = {ty_operand_tensor(c->in[i].t)};
    ty_call k = {.ctx = c->ctx, .op = &ty_ops[TY_OP_norm2], .in = in, .nin = 1, .at = at};
    ty_meta m = {.dtype = ty_compute_dtype(c->in[i].t->dtype)};
    TY_TRY(ty_empty(c->ctx, c->in[i].t->storage->backend, &m, &k.out[0]));
    k.compute = ty_compute_dtype(c->in[i].t->dtype);
    ty_status s = ty_cpu_reduce(&k);
    double v = ty_get(ty_data(k.out[0]), m.dtype);
    ty_release(k.out[0]);
    TY_TRY(s);
    sum += v * v;
  }
  ty_set(ty_data(c->out[0]), c->out[0]->dtype, sqrt(sum));
  return TY_OK;
}

/* Each tensor of the list *= factor. */
static ty_status scale(ty_call *c, ty_operand factor) {
  for (int i = 0; i < c->span[0].count; i++) {
    ty_operand in[2] = {c->in[c->span[0].start + i], factor};
    ty_call k = {.ctx = c->ctx, .op = &ty_ops[TY_OP_mul], .in = in, .nin = 2, .at = c->at};
    k.out[0] = in[0].t;
    k.compute = ty_compute_dtype(in[0].t->dtype);
    TY_TRY(ty_cpu_pointwise(&k));
  }
  return TY_OK;
}

/* ---- for a GradScaler: found becomes 1 where an element is infinite or NaN ---- */

typedef struct { ty_dtype d; const ty_loops *l; bool found; } looking;

/* Looks for such elements: x - x is 0 for finite x alone. */
static void look(void *arg, char *const *ptr, const int64_t *stride, int64_t n) {
  looking *a = arg;
  double block[TY_BLOCK];
  int infinite = 0;
  for (int64_t i = 0; i < n; i += TY_BLOCK) {
    const int64_t m = TY_MIN(TY_BLOCK, n - i);
    a->l->load[a->d][TY_IN_F64](block, ptr[0] + i * stride[0] * ty_dtype_size[a->d], stride[0], m);
    for (int64_t j = 0; j < m; j++) infinite |= !(block[j] - block[j] == 0);
  }
  if (infinite) {
    #pragma omp atomic write
    a->found = true;
  }
}

static void find_infinite(ty_call *c, ty_tensor *found) {
  for (int i = 0; i < c->span[0].count; i++) {
    const ty_tensor *t = c->in[c->span[0].start + i].t;
    looking a = {.d = t->dtype, .l = ty_cpu_loops()};
    ty_iter it;
    ty_iter_init(&it, t->shape, t->ndim);
    ty_iter_tensor(&it, t);
    ty_iter_done(&it);
    ty_iter_each(&it, look, &a);
    if (a.found) ty_set(ty_data(found), TY_F32, 1);
  }
}

static void amp_update(ty_call *c) {
  float *scale = ty_data(c->in[c->span[1].start].t);
  int64_t *growth = ty_data(c->in[c->span[2].start].t);
  bool found = false;
  for (int i = 0; i < c->span[0].count; i++) {
    float *f = ty_data(c->in[c->span[0].start + i].t);
    found = found || *f != 0;
    *f = 0;
  }
  ty_scale_update(scale, growth, found, c->at[TY_AT_amp_update_growth_factor].f, c->at[TY_AT_amp_update_backoff_factor].f,
    c->at[TY_AT_amp_update_growth_interval].i);
}

ty_status ty_cpu_optim(ty_call *c) {
  switch (c->op->id) {
    case TY_OP_multi_norm: return norm_of_all(c);
    case TY_OP_multi_scale: return scale(c, c->in[c->span[1].start]);
    case TY_OP_multi_found: find_infinite(c, c->in[c->span[1].start].t); return TY_OK;
    case TY_OP_multi_unscale:
      find_infinite(c, c->in[c->span[2].start].t);
      return scale(c, ty_operand_float((float)(1 / ty_get(ty_data(c->in[c->span[1].start].t), TY_F32))));
    case TY_OP_amp_update: amp_update(c); return TY_OK;
    default: return steps(c);
  }
}
