/* vmap: a function of one example, run on all examples at once.
 *
 * Idea: within vmap a mapped tensor is an alias that shows the shape of one example; behind it, in t->whole, is the tensor of all examples,
 * which lie along its first dim. apply brings a call with mapped operands here. The call is checked as a call on one example, the operands
 * are laid out so that one call of the op gives the results of all examples (vmap_rules.c), and these are mapped again. An op without
 * a rule runs example by example, and the results are stacked. So nothing behind apply meets a mapped tensor: the tape, programs, autocast
 * and backends see ops on the wholes.
 * Invariants: the first dim of a whole is the examples'; of nested vmaps the innermost is resolved first; using a mapped tensor after its
 * vmap has ended is an error. */
#include <string.h>
#include "program.h"
#include "vmap.h"

/* ---- mapped tensors ---- */

ty_status ty_vmap_in(ty_ctx *ctx, uint32_t map, ty_tensor *whole, ty_tensor **out) {
  ty_tensor *t = ty_alias(whole);
  if (!t) return ty_no_memory(ctx, "vmap");
  t->ndim--;
  memmove(t->shape, whole->shape + 1, sizeof(int64_t) * t->ndim);
  memmove(t->stride, whole->stride + 1, sizeof(int64_t) * t->ndim);
  t->own_layout = t->copied = false;
  t->whole = ty_retain(whole);
  t->vmap = map;
  *out = t;
  return TY_OK;
}

ty_status ty_vmap_repeated(ty_ctx *ctx, ty_tensor *t, int64_t n, ty_tensor **out) {
  ty_attr at = {.set = true, .n = (uint8_t)(t->ndim + 1)};
  if (t->ndim == TY_MAXDIM) return ty_error(ctx, "vmap: a tensor of shape %s has no room for one more dim", ty_shape_of(t));
  at.v[0] = n;
  memcpy(at.v + 1, t->shape, sizeof(int64_t) * t->ndim);
  return ty_call_op2(ctx, TY_OP_expand, ty_operand_tensor(t), (ty_operand){0}, &at, NULL, out);
}

ty_status ty_vmap_out(ty_ctx *ctx, const ty_vmap *map, ty_tensor *t, ty_tensor **out) {
  if (t->whole && t->vmap == map->id) { *out = ty_retain(t->whole); return TY_OK; }
  return ty_vmap_repeated(ctx, t, map->size, out);
}

/* ---- operands of the op of all ---- */

void ty_vmap_take(ty_vmap_call *m, int i, ty_tensor *t) {
  ty_release(m->w[i].t);
  m->w[i] = ty_operand_tensor(t);
}

void ty_vmap_plainly(ty_vmap_call *m, int i) {
  ty_tensor *t = ty_vmap_example(m, i);
  m->w[i] = m->one.in[i];
  if (t) m->w[i].t = ty_retain(ty_vmap_maps(m, t) ? t->whole : t);
}

ty_status ty_vmap_spread(ty_vmap_call *m, int i) {
  ty_tensor *all;
  ty_vmap_plainly(m, i);
  if (!ty_vmap_example(m, i) || ty_vmap_maps(m, ty_vmap_example(m, i))) return TY_OK;
  TY_TRY(ty_vmap_repeated(m->one.ctx, ty_vmap_example(m, i), m->map->size, &all));
  ty_vmap_take(m, i, all);
  return TY_OK;
}

ty_status ty_vmap_laid_for(ty_vmap_call *m, int i, int rank) {
  ty_tensor *t = ty_vmap_example(m, i), *v;
  int64_t size[TY_MAXDIM];
  if (!t || m->w[i].t->ndim == t->ndim || t->ndim >= rank) return TY_OK;
  if (rank >= TY_MAXDIM) return ty_error(m->one.ctx, "vmap: %s: a result of %d dims has no room for one more dim", m->one.op->shown, rank);
  size[0] = m->map->size;
  for (int d = 0; d < rank; d++) size[1 + d] = d < rank - t->ndim ? 1 : t->shape[d - (rank - t->ndim)];
  TY_TRY(ty_view(m->one.ctx, m->w[i].t, rank + 1, size, &v));
  ty_vmap_take(m, i, v);
  return TY_OK;
}

ty_status ty_vmap_merged(ty_vmap_call *m, int i) {
  ty_tensor *v;
  int64_t size[TY_MAXDIM];
  TY_TRY(ty_vmap_spread(m, i));
  ty_tensor *t = m->w[i].t;
  if (!t) return TY_OK;
  size[0] = t->shape[0] * t->shape[1];
  memcpy(size + 1, t->shape + 2, sizeof(int64_t) * (size_t)(t->ndim - 2));
  TY_TRY(ty_reshape(m->one.ctx, t, t->ndim - 1, size, &v));
  ty_vmap_take(m, i, v);
  return TY_OK;
}

/* ---- results ---- */

ty_status ty_vmap_results(ty_vmap_call *m, ty_tensor **all, ty_tensor **out) {
  const int n = m->one.op->nout;
  ty_status s = TY_OK;
  for (int j = 0; j < n && s == TY_OK; j++) s = ty_vmap_in(m->one.ctx, m->map->id, all[j], &out[j]);
  for (int j = 0; j < n; j++) ty_release(all[j]);
  for (int j = 0; j < n && s != TY_OK; j++) { ty_release(out[j]); out[j] = NULL; }
  return s;
}

ty_status ty_vmap_apply(ty_vmap_call *m, ty_tensor **all) {
  return ty_apply(m->one.ctx, m->one.op, m->w, m->one.nin, m->span, m->at, NULL, all);
}

ty_status ty_vmap_run(ty_vmap_call *m, ty_tensor *into, ty_tensor **out) {
  ty_tensor *all[TY_MAXOUT] = {NULL};
  TY_TRY(ty_apply(m->one.ctx, m->one.op, m->w, m->one.nin, m->span, m->at, into, all));
  if (into) { ty_release(all[0]); return TY_OK; }
  return ty_vmap_results(m, all, out);
}

ty_status ty_vmap_run_merged(ty_vmap_call *m, ty_tensor **out) {
  ty_tensor *all[TY_MAXOUT] = {NULL};
  TY_TRY(ty_vmap_apply(m, all));
  ty_status s = TY_OK;
  for (int j = 0; j < m->one.op->nout && s == TY_OK; j++) {
    const ty_meta *like = &m->one.meta[j];
    ty_tensor *v;
    int64_t size[TY_MAXDIM] = {m->map->size};
    memcpy(size + 1, like->shape, sizeof(int64_t) * like->ndim);
    s = TY_SAME_SHAPE(all[j], like) ? ty_vmap_repeated(m->one.ctx, all[j], m->map->size, &v)
      : ty_reshape(m->one.ctx, all[j], like->ndim + 1, size, &v);
    if (s == TY_OK) { ty_release(all[j]); all[j] = v; }
  }
  if (s == TY_OK) return ty_vmap_results(m, all, out);
  for (int j = 0; j < m->one.op->nout; j++) ty_release(all[j]);
  return s;
}

/* ---- example by example ---- */

static ty_status select_example(ty_vmap_call *m, int64_t k) {
  for (int i = 0; i < m->one.nin; i++) {
    ty_tensor *t = ty_vmap_example(m, i), *v;
    ty_attr at[2] = {[TY_AT_select_dim] = {.set = true, .i = 0}, [TY_AT_select_index] = {.set = true, .i = k + 1}};
    ty_release(m->w[i].t);
    m->w[i] = m->one.in[i];
    if (!ty_vmap_maps(m, t)) { ty_retain(t); continue; }
    m->w[i].t = NULL;
    TY_TRY(ty_call_op2(m->one.ctx, TY_OP_select, ty_operand_tensor(t->whole), (ty_operand){0}, at, NULL, &v));
    m->w[i].t = v;
  }
  return TY_OK;
}

static ty_status stacked(ty_ctx *ctx, ty_operand *one, int64_t n, ty_tensor **out) {
  const ty_span span[TY_MAXPARAM] = {{0, (int)n}};
  ty_attr dim = {.set = true, .i = 0};
  return ty_apply(ctx, &ty_ops[TY_OP_stack], one, (int)n, span, &dim, NULL, out);
}

/* Whether the call changes operands in place that have no memory for each example; batch_norm does so in training only. */
static bool changes(const ty_vmap_call *m) {
  const ty_op *op = m->one.op;
  bool any = false;
  for (int k = 0; k < op->nparam; k++) {
    if (!op->param[k].mutated) continue;
    const ty_tensor *t = op->has_list ? NULL : ty_vmap_example(m, op->param[k].slot);
    const bool own = t && ty_vmap_maps(m, t) && (t->whole->stride[0] || m->map->size < 2);
    any = any || op->has_list || (t && !own);
  }
  return any && ty_mutates(op, m->asked);
}

ty_status ty_vmap_each(ty_vmap_call *m, ty_tensor **out) {
  const int64_t n = m->map->size;
  const int nout = m->one.op->nout;
  ty_ctx *ctx = m->one.ctx;
  ty_tensor *all[TY_MAXOUT] = {NULL}, *r[TY_MAXOUT];
  ty_status s = TY_OK;
  if (changes(m))
    return ty_error(ctx, "vmap: %s changes tensors in place that can't hold different values for each example%s",
      m->one.op->shown, m->one.op->id == TY_OP_batch_norm_stats
        ? ": map its running statistics, or take them out with func.replace_all_batch_norm_modules_" : "");
  ty_operand *made = ty_malloc(sizeof *made * (size_t)TY_MAX(n * nout, 1));
  if (!made) return ty_no_memory(ctx, "vmap");
  int64_t done = 0;
  for (; done < n && s == TY_OK; done++) {
    s = select_example(m, done);
    if (s != TY_OK) break;
    memcpy(m->at, m->asked, sizeof(ty_attr) * (size_t)m->one.op->nattr);
    memset(r, 0, sizeof r);
    s = ty_apply(ctx, m->one.op, m->w, m->one.nin, m->span, m->at, NULL, r);
    if (s != TY_OK) break;
    for (int j = 0; j < nout; j++) made[j * n + done] = ty_operand_tensor(r[j]);
  }
  for (int j = 0; j < nout && s == TY_OK; j++) {
    ty_meta none = m->one.meta[j];
    if (n) { s = stacked(ctx, made + j * n, n, &all[j]); continue; }
    none.has_stride = none.own_layout = false;
    memmove(none.shape + 1, none.shape, sizeof(int64_t) * none.ndim++);
    none.shape[0] = 0;
    s = ty_empty(ctx, m->one.in[0].t ? ty_device_of(m->one.in[0].t) : ty_devices[ty_default_device(ctx)], &none, &all[j]);
  }
  for (int j = 0; j < nout; j++)
    for (int64_t k = 0; k < done; k++) ty_release(made[j * n + k].t);
  ty_free(made);
  if (s == TY_OK) return ty_vmap_results(m, all, out);
  for (int j = 0; j < nout; j++) ty_release(all[j]);
  return s;
}

/* ---- what apply asks ---- */

static const ty_vmap *map_of(const ty_ctx *ctx, uint32_t id) {
  const ty_vmap *map = ctx->vmap;
  while (map && map->id != id) map = map->outer;
  return map;
}

bool ty_draws(const ty_call *c) {
  return (c->op->cls == TY_C_RANDOM && c->op->id != TY_OP_rng_state && c->op->id != TY_OP_set_rng_state) ||
    (c->op->id == TY_OP_attention && c->at[TY_AT_attention_dropout].f > 0);
}

bool ty_is_mapped(const ty_call *c, const ty_tensor *into) {
  bool mapped = into && into->whole;
  for (int i = 0; i < c->nin; i++) mapped = mapped || (c->in[i].t && c->in[i].t->whole);
  return mapped || (c->ctx->vmap && ty_draws(c));
}

/* Random numbers from no operand: each example has its own. */
static ty_status draw_new(ty_vmap_call *m, ty_tensor **out) {
  ty_attr *size = NULL;
  for (int k = 0; k < m->one.op->nparam; k++)
    if (m->one.op->param[k].type == TY_P_SIZES) size = &m->at[m->one.op->param[k].slot];
  if (!size) return ty_vmap_each(m, out);                /* randperm */
  if (size->n == TY_MAXDIM) return ty_error(m->one.ctx, "vmap: %s: %d dims leave no room for one more", m->one.op->shown, size->n);
  memmove(size->v + 1, size->v, sizeof(int64_t) * size->n++);
  size->v[0] = m->map->size;
  return ty_vmap_run(m, NULL, out);
}

static bool maps_any(const ty_call *c, uint32_t map) {
  for (int i = 0; i < c->nin; i++)
    for (const ty_tensor *t = c->in[i].t; t && t->whole; t = t->whole)
      if (t->vmap == map) return true;
  return false;
}

/* A copy of t for each example of this map, and of those around it whose examples have different values in the call: mapped. */
static ty_status copies_of(const ty_call *c, const ty_vmap *map, ty_tensor *t, ty_tensor **out) {
  ty_tensor *all, *whole;
  ty_attr at = {.set = true, .i = TY_CONTIGUOUS};
  const ty_vmap *around = map->outer;
  while (around && !maps_any(c, around->id) && !(ty_draws(c) && around->draws == TY_VMAP_DIFFERENT)) around = around->outer;
  TY_TRY(ty_vmap_repeated(c->ctx, t, map->size, &all));
  ty_status s = around ? copies_of(c, around, all, &whole)
    : ty_call_op2(c->ctx, TY_OP_clone, ty_operand_tensor(all), (ty_operand){0}, &at, NULL, &whole);
  ty_release(all);
  TY_TRY(s);
  s = ty_vmap_in(c->ctx, map->id, whole, out);
  ty_release(whole);
  return s;
}

/* Makes t mapped, as it is to take values that differ by example. Only for a t that was made within the vmap and shares no memory. */
static ty_status become_mapped(ty_vmap_call *m, ty_tensor *t) {
  ty_ctx *ctx = m->one.ctx;
  ty_tensor *copies;
  if (ctx->program) TY_TRY(ty_program_settle(ctx, "vmap: a tensor comes to hold different values for each example"));
  if (t->storage->id < m->map->begun || ty_storage_holders(t->storage) > 1 || t->whole || t->base || t->requires_grad)
    return ty_error(ctx, "vmap: %s_: a tensor from outside, or a part of one, can't hold different values for each example",
      m->one.op->shown);
  TY_TRY(copies_of(&m->one, m->map, t, &copies));
  ty_storage_retain(copies->storage);
  ty_storage_release(t->storage);
  t->storage = copies->storage;
  t->offset = copies->offset;
  memcpy(t->stride, copies->stride, sizeof(int64_t) * t->ndim);
  ty_node_release(t->node);
  t->node = NULL;
  t->whole = ty_retain(copies->whole);
  t->vmap = m->map->id;
  ty_release(copies);
  return TY_OK;
}

static ty_status apply_mapped(ty_vmap_call *m, ty_tensor *into, ty_tensor **out) {
  ty_call *c = &m->one;
  ty_tensor *made[TY_MAXOUT] = {NULL};
  bool made_of_nothing = true;
  TY_TRY(c->op->infer(c));
  if (c->late) return ty_fail(c, "the size of the result depends on the values of a tensor that vmap maps");
  if (into && !TY_SAME_SHAPE(&c->meta[0], into))
    return ty_error(c->ctx, "%s_: the result of shape %s doesn't fit in place into shape %s", c->op->shown,
      ty_shape_text(c->meta[0].shape, c->meta[0].ndim), ty_shape_of(into));
  if (into && !ty_vmap_maps(m, into)) TY_TRY(become_mapped(m, into));
  for (int i = 0; i < c->nin; i++) made_of_nothing = made_of_nothing && !ty_vmap_example(m, i);
  ty_tensor *all = into ? into->whole : NULL;
  ty_status s = made_of_nothing ? draw_new(m, made) : ty_vmap_rule(m, all, made);
  if (s == TY_OK && into && made[0]) {     /* the rule wrote elsewhere */
    ty_tensor *same;
    s = ty_call_op2(c->ctx, TY_OP_copy, ty_operand_tensor(all), ty_operand_tensor(made[0]->whole), NULL, all, &same);
    if (s == TY_OK) ty_release(same);
    ty_release(made[0]);
  }
  if (s != TY_OK) return s;
  if (into) out[0] = ty_retain(into);
  else memcpy(out, made, sizeof *out * (size_t)c->op->nout);
  return TY_OK;
}

/* An op that draws random numbers: it runs outside of this vmap, so that it isn't mapped again. */
static ty_status draw_outside(ty_vmap_call *m, uint32_t mapped, ty_tensor *into, ty_tensor **out) {
  ty_ctx *ctx = m->one.ctx;
  const ty_vmap *within = ctx->vmap;
  if (m->map->draws == TY_VMAP_ERROR)
    return ty_error(ctx, "vmap: %s draws random numbers: choose {randomness = 'different'}, with new ones for each example, or 'same'",
      m->one.op->shown);
  if (mapped && m->map->draws == TY_VMAP_SAME)
    return ty_error(ctx, "vmap: %s: randomness 'same' can't be used for draws that depend on mapped tensors", m->one.op->shown);
  ctx->vmap = m->map->outer;
  const ty_status s = !mapped && m->map->draws == TY_VMAP_SAME
    ? ty_apply(ctx, m->one.op, m->one.in, m->one.nin, m->span, m->asked, into, out) : apply_mapped(m, into, out);
  ctx->vmap = within;
  return s;
}

ty_status ty_apply_mapped(ty_call *c, ty_tensor *into, ty_tensor **out) {
  uint32_t id = into && into->whole ? into->vmap : 0;
  for (int i = 0; i < c->nin; i++)
    if (c->in[i].t && c->in[i].t->whole) id = TY_MAX(id, c->in[i].t->vmap);
  ty_vmap_call m = {.one = *c, .map = id ? map_of(c->ctx, id) : c->ctx->vmap, .span = c->op->has_list ? c->span : NULL, .asked = c->at};
  if (!m.map) return ty_fail(c, "a tensor of one vmap is used outside of it, or in another coroutine");
  memcpy(m.at, c->at, sizeof(ty_attr) * (size_t)c->op->nattr);
  memcpy(m.plain, c->at, sizeof(ty_attr) * (size_t)c->op->nattr);
  m.one.at = m.plain;
  m.w = ty_malloc(sizeof *m.w * (size_t)TY_MAX(c->nin, 1));
  if (!m.w) return ty_no_memory(c->ctx, "vmap");
  memset(m.w, 0, sizeof *m.w * (size_t)TY_MAX(c->nin, 1));
  const ty_status s = ty_draws(c) ? draw_outside(&m, id, into, out) : apply_mapped(&m, into, out);
  for (int i = 0; i < c->nin; i++) ty_release(m.w[i].t);
  ty_free(m.w);
  return s;
}
