/* The one way through for every call of an op: device -> a dtype's cast, or autocast -> a plainer op -> a checkpoint's kept results ->
 * vmap -> program -> infer -> allocate -> run -> record.
 *
 * Idea: what concerns all ops is here and nowhere else. While a program records or compares (program.h), calls go
 * through it before infer. Invariants: on success each result is a new reference. On failure nothing stays allocated and no
 * operand has changed: an in-place op allocates before it writes (a write that failed half-way counts as a change). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "gpu.h"
#include "program.h"
#include "recall.h"
#include "shape.h"
#include "vmap.h"

/* Whether operand i is an index tensor of x[indices]. */
static bool is_index(const ty_call *c, int i) { return c->op->cls == TY_C_INDEX && c->op->has_list && i >= c->op->nin - 1; }

/* What c->in[i] is to users: "argument 3", or "tensor 2 of argument 1" in a list. */
static const char *operand_text(const ty_call *c, int i, char *text, size_t n) {
  const int slot = ty_slot_of(c, i), at = ty_position(c, slot);
  if (ty_operand_param(c->op, slot)->type == TY_P_TENSORS) snprintf(text, n, "tensor %d of argument %d", i - c->span[slot].start + 1, at);
  else snprintf(text, n, "argument %d", at);
  return text;
}

/* Where the op runs: on the device that it names, else on its operands', which must be one. Beside a GPU's operands only 0-dim
 * tensors and index tensors may be on the CPU, and none if the op changes operands. */
static ty_status choose_backend(ty_call *c, const ty_backend **out) {
  const ty_operand *in = c->in;
  int first = -1;
  *out = &ty_cpu;
  for (int i = 0; i < c->nin; i++) {
    if (!in[i].t || (first >= 0 && ty_device_of(in[i].t) == *out)) continue;
    if (first < 0 || (in[first].t->ndim == 0 && (*out)->gpu < 0 && !c->op->mutates)) { first = i; *out = ty_device_of(in[i].t); }
    else if (((in[i].t->ndim && !is_index(c, i)) || ty_device_of(in[i].t)->gpu >= 0 || c->op->mutates) && c->op->id != TY_OP_copy) {
      char a[48], b[48];
      return ty_fail(c, "%s is on %s, %s on %s: move one of them with to()", operand_text(c, i, a, sizeof a), ty_device_of(in[i].t)->name,
        operand_text(c, first, b, sizeof b), (*out)->name);
    }
  }
  if (c->op->id == TY_OP_copy) *out = ty_device_of(in[0].t);
  if (c->op->device >= 0) *out = ty_devices[c->at[c->op->device].set ? c->at[c->op->device].i : ty_default_device(c->ctx)];
  return TY_OK;
}

/* Whether there is no element to compute, nothing to change and no index to check: a kernel could still loop over the other dims. */
static bool has_nothing_to_do(const ty_call *c) {
  for (int j = 0; j < TY_MAX(c->op->nout, 1); j++)
    if (!c->out[j] || ty_numel(c->out[j])) return false;
  for (int k = 0; k < c->op->nparam; k++)
    if (c->op->param[k].mutated) return false;
  return c->op->cls != TY_C_RANDOM && c->op->cls != TY_C_COLLECTIVE && c->op->id != TY_OP_index && c->op->id != TY_OP_index_put;
}

static ty_status run_kernel(ty_call *c, const ty_backend *b) {
  if (has_nothing_to_do(c)) return TY_OK;
  if (c->op->id == TY_OP_batch_norm_apply) return ty_normalize_channels(c);
  ty_kernel k = b->run[c->op->cls];
  if (c->op->cls == TY_C_MOVE) return ty_move_into(c->ctx, c->out[0], c->in[0].t, c->at[TY_AT_to_device_non_blocking].i);
  if (c->op->id == TY_OP_copy && c->in[1].t && ty_device_of(c->in[1].t) != b)
    return ty_move_into(c->ctx, c->out[0], c->in[1].t, c->at[TY_AT_copy_non_blocking].i);
  /* moves numbers and indices from the CPU; pointwise ops take numbers as they are */
  for (int i = 0; b->gpu >= 0 && c->op->cls != TY_C_POINTWISE && i < c->nin; i++) {
    ty_tensor *t = c->in[i].t, *moved;
    if (!t || ty_device_of(t)->gpu >= 0) continue;
    TY_TRY(ty_move(c->ctx, t, b, &moved));
    c->in[i].t = moved;
    ty_status s = run_kernel(c, b);
    c->in[i].t = t;
    ty_release(moved);
    return s;
  }
  return k ? k(c) : ty_fail(c, "not supported on %s", b->name);
}

ty_profiler *ty_profile_begin(ty_ctx *ctx, const char *name, const ty_backend *b, const ty_call *call) {
  ty_profiler *told = ctx->account->profiler;
  if (told) told->begin(told, ctx, name, b, call);
  return told;
}
void ty_profile_end(ty_ctx *ctx, ty_profiler *told) {
  if (told && ctx->account->profiler == told) told->end(told, ctx);    /* out of memory, a finalizer may have ended the profile */
}

static ty_status run_now(ty_call *c, const ty_backend *b) {
  ty_profiler *told = ty_profile_begin(c->ctx, c->op->name, b, c);
  const ty_status s = run_kernel(c, b);
  ty_profile_end(c->ctx, told);
  return s;
}

static ty_status run(ty_call *c, const ty_backend *b) {
  if (c->ctx->program) return ty_program_kernel(c, b, run_now);
  if (c->ctx->account->active) TY_TRY(ty_programs_interrupt(c->ctx));
  return run_now(c, b);
}

static void drop_results(ty_call *c) {
  for (int i = 0; i < c->op->nout; i++) {
    ty_release(c->out[i]);
    c->out[i] = NULL;
  }
}

ty_status ty_lay_in_order(ty_ctx *ctx, ty_tensor *t, bool *done) {
  ty_tensor *o;
  const ty_storage *s = t->storage;
  *done = t->own_layout && ty_nbytes(t) == s->nbytes && !ctx->program && ty_storage_holders(s) == 1 &&
          !s->exposed && !s->drop && !s->within && !s->program &&       /* t alone sees the memory, and all of it */
          !(s->launches && atomic_load(&s->launches->ready));
  if (!*done) return TY_OK;
  TY_TRY(ty_contiguous(ctx, t, &o));
  ty_swap_memory(t->storage, o->storage);
  ty_changed(t);                           /* ends what is cached by id and version */
  t->own_layout = false;
  memcpy(t->stride, o->stride, sizeof t->stride);
  ty_release(o);
  return TY_OK;
}

/* The result of a VIEW op shares x's storage. If it has no strides for the new shape, x is own_layout: it is made contiguous in place or,
   where others see its memory, copied. */
static ty_status make_view(ty_call *c) {
  ty_tensor *x = c->in[0].t, *v;
  ty_meta *m = &c->meta[0];
  if (ty_count(m) < 0) return ty_fail(c, "a view of size %s has too many elements", ty_shape_text(m->shape, m->ndim));
  if (!m->has_stride) {
    TY_TRY(ty_lay_in_order(c->ctx, x, &m->has_stride));
    ty_contiguous_strides(m->shape, m->ndim, m->stride);
  }
  if (!m->has_stride) {
    TY_TRY(ty_contiguous(c->ctx, x, &v));
    v->own_layout = false;
    v->copied = true;
    v->ndim = m->ndim;
    memcpy(v->shape, m->shape, sizeof(int64_t) * m->ndim);
    memcpy(v->stride, m->stride, sizeof(int64_t) * m->ndim);
    c->out[0] = v;
    return TY_OK;
  }
  v = ty_alias(x);
  if (!v) return ty_no_memory(c->ctx, c->op->shown);
  v->ndim = m->ndim;
  v->own_layout = m->own_layout;
  v->offset = ty_view_offset(c);
  memcpy(v->shape, m->shape, sizeof(int64_t) * m->ndim);
  memcpy(v->stride, m->stride, sizeof(int64_t) * m->ndim);
  if (c->ctx->grad_enabled) {
    v->base = ty_retain(x->base ? x->base : x);
    v->history = v->base->history;
  } else v->unrecorded = x->unrecorded || ty_needs_grad(x) || (x->base && ty_needs_grad(x->base));
  c->out[0] = v;
  return TY_OK;
}

/* What becomes of a gradient that a GradScaler has multiplied when op changes it. An optimizer's step, which unscales, asks itself
   (ty_infer_optim). */
typedef enum { REFUSED, STAYS_SCALED, IS_REPLACED } scaled_rule;
static scaled_rule scaled_rule_of(const ty_op *op) {
  switch (op->id) {
    case TY_OP_mul: case TY_OP_div: case TY_OP_collective: return STAYS_SCALED;
    case TY_OP_fill: case TY_OP_copy: return IS_REPLACED;
    default: return REFUSED;
  }
}
void ty_keep_mark(ty_tensor *t, const ty_op *op) { t->scaled = t->scaled && scaled_rule_of(op) == STAYS_SCALED; }

static void changed(ty_tensor *t, const ty_op *op) {
  ty_changed(t);
  ty_keep_mark(t, op);
}

/* Our own storages never overlap, and those cut from the same one (ty_within) are never in use at the same time. Foreign memory (it has
   a drop) may overlap any. */
static bool share_memory(const ty_tensor *a, const ty_tensor *b) {
  const ty_storage *s = a->storage, *t = b->storage;
  if (s == t || (!s->drop && !t->drop)) return s == t;
  const char *x = s->data, *y = t->data;
  return x < y + t->nbytes && y < x + s->nbytes;
}

/* Whether both have the same elements in the same order, or none in common. */
static bool safe_to_write(const ty_tensor *into, const ty_tensor *t) {
  if (!t || !share_memory(into, t)) return true;
  return t->storage == into->storage && ty_same_geometry(t, into);
}

/* As ty_fail, with the name of the in-place form: "add_: ..."; what has no such name stays: "index assignment: ...". */
static ty_status __attribute__((format(printf, 2, 3))) misfit(ty_call *c, const char *fmt, ...) {
  char name[64];
  va_list ap;
  snprintf(name, sizeof name, strchr(c->op->shown, ' ') ? "%s" : "%s_", c->op->shown);
  va_start(ap, fmt);
  ty_verror(c->ctx, name, fmt, ap);
  va_end(ap);
  return TY_ERR;
}

static ty_status check_inplace(ty_call *c, const ty_backend *b, ty_tensor *into) {
  const ty_meta *m = &c->meta[0];
  const ty_tensor *root = into->base ? into->base : into;
  if (c->ctx->grad_enabled && (into->requires_grad || root->requires_grad))
    return misfit(c, "a leaf that requires grad can't be changed in place outside no_grad");
  if (c->ctx->grad_enabled && into->unrecorded)
    return misfit(c, "a view made under no_grad of a tensor that requires grad can't be changed in place outside no_grad");
  if (c->ctx->grad_enabled && (into->handed_on || root->handed_on))
    return misfit(c, "an input that an autograd.Function, or a module with a backward hook, returned unchanged can't be changed in place: "
      "clone it");
  if (into->copied || root->copied)
    return misfit(c, "view() or reshape() made this copy of a tensor in channels_last, which wouldn't see the change: call contiguous() "
      "before it");
  if (!TY_SAME_SHAPE(m, into))
    return misfit(c, "the result of shape %s doesn't fit in place into shape %s", ty_shape_text(m->shape, m->ndim), ty_shape_of(into));
  const bool number_as_bool = into->dtype == TY_BOOL && m->dtype != TY_BOOL && c->op->id != TY_OP_fill && c->op->id != TY_OP_copy;
  if ((ty_is_float(m->dtype) && !ty_is_float(into->dtype)) || number_as_bool)
    return misfit(c, "the result of dtype %s doesn't fit in place into dtype %s", ty_dtype_names[m->dtype], ty_dtype_names[into->dtype]);
  if (into->scaled && scaled_rule_of(c->op) == REFUSED)
    return misfit(c, "the gradient is scaled by a GradScaler: call scaler:unscale_(optimizer) before it is changed");
  if (ty_device_of(into) != b)
    return misfit(c, "the result on %s doesn't fit in place into a tensor on %s", b->name, ty_device_of(into)->name);
  if (ty_overlaps_itself(into))
    return misfit(c, "a tensor of shape %s whose elements share memory can't be changed in place: clone it",
      ty_shape_of(into));
  return TY_OK;
}

/* before[i]: a copy of operand i where a gradient rule needs it and the call overwrites it. */
static ty_status keep_before(ty_call *c, const ty_tensor *into, ty_tensor **before) {
  uint32_t mask = ty_save_mask(c);
  bool mode = c->ctx->grad_enabled;
  ty_status s = TY_OK;
  c->ctx->grad_enabled = false;
  for (int i = 0; i < c->nin && i < TY_MAXPARAM && s == TY_OK; i++)
    if (mask >> ty_slot_of(c, i) & 1 && c->in[i].t && share_memory(into, c->in[i].t))
      s = ty_call_op2(c->ctx, TY_OP_clone, c->in[i], (ty_operand){0}, NULL, NULL, &before[i]);
  c->ctx->grad_enabled = mode;
  return s;
}

/* Allocates result i. If that fails the error names the op. */
static ty_status make_result(ty_call *c, const ty_backend *b, int i) {
  char text[TY_ERRLEN];
  const ty_status s = ty_empty(c->ctx, b, &c->meta[i], &c->out[i]);
  if (s == TY_OK) return s;
  memcpy(text, c->ctx->err, sizeof text);
  ty_fail(c, "%s", text);
  return s;
}

static ty_status apply_inplace(ty_call *c, const ty_backend *b, ty_tensor *into) {
  ty_tensor *before[TY_MAXPARAM] = {NULL}, *result = NULL;
  ty_status s = TY_OK;
  bool direct = c->op->cls == TY_C_POINTWISE || c->op->cls == TY_C_INDEX || c->op->id == TY_OP_copy ||   /* may write where they read */
                (c->op->cls == TY_C_COLLECTIVE && ty_is_contiguous(into));
  if (c->op->cls == TY_C_VIEW || c->op->nout != 1) return ty_fail(c, "has no in-place form");
  TY_TRY(check_inplace(c, b, into));
  for (int i = 0; i < c->nin; i++) {
    direct = direct && safe_to_write(into, c->in[i].t);
    if (c->op->cls == TY_C_INDEX && i && c->in[i].t) direct = direct && !share_memory(into, c->in[i].t);   /* read in another order */
  }
  bool record = c->ctx->grad_enabled && (ty_will_record(c) || ty_needs_grad(into) || (into->base && ty_needs_grad(into->base)));
  ty_pending pending = {NULL, NULL};
  c->out[0] = into;
  if (record) s = keep_before(c, into, before);
  if (record && s == TY_OK) s = ty_prepare_inplace(c, into, before, &pending);
  bool began = s == TY_OK && direct;
  if (began) s = run(c, b);
  else if (s == TY_OK) {
    c->out[0] = NULL;
    s = make_result(c, b, 0);
    result = c->out[0];
    if (s == TY_OK) s = run(c, b);
    began = s == TY_OK;
    if (began) s = ty_copy_into(c->ctx, into, result);
    ty_release(result);
    c->out[0] = into;
  }
  if (s == TY_OK) {
    changed(into, c->op);
    if (record) ty_commit_inplace(into, &pending);
  } else {
    if (began && (b->gpu >= 0 || c->op->cls == TY_C_COLLECTIVE)) changed(into, c->op);       /* it may have written a part */
    ty_abandon_inplace(&pending);
  }
  for (int i = 0; i < TY_MAXPARAM; i++) ty_release(before[i]);
  c->out[0] = s == TY_OK ? ty_retain(into) : NULL;
  return s;
}

static ty_status apply_now(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out) {
  ty_ctx *ctx = c->ctx;
  ty_op *op = c->op;
  if (ctx->grad_enabled)
    for (int i = 0; i < c->nin; i++)
      if (c->in[i].t && c->in[i].t->base) TY_TRY(ty_history(ctx, c->in[i].t));
  TY_TRY(op->infer(c));
  if (into) {
    TY_TRY(apply_inplace(c, b, into));
    out[0] = c->out[0];
    return TY_OK;
  }
  ty_status s = TY_OK;
  if (op->cls == TY_C_VIEW) s = make_view(c);
  else if (c->recall && ty_recall_gives(c)) s = ty_recall_take(c);
  else {
    for (int i = 0; i < op->nout && s == TY_OK; i++)
      if (!(c->late >> i & 1)) s = make_result(c, b, i);
    if (s == TY_OK) s = run(c, b);
    ty_each_mutated(c, changed);         /* after a failure too: a part may be written */
  }
  if (s == TY_OK && ctx->grad_enabled && ty_will_record(c)) s = ty_record(c);
  if (s != TY_OK) drop_results(c);
  else
    for (int i = 0; i < op->nout; i++) out[i] = c->out[i];
  return s;
}

static ty_status apply_once(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out) {
  if (ty_is_mapped(c, into)) return ty_apply_mapped(c, into, out);
  return c->ctx->program ? ty_program_apply(c, b, into, out, apply_now) : apply_now(c, b, into, out);
}

/* Within a checkpoint that keeps some results. Ops that the call itself needs (in a backend, in hooks) aren't the function's: meanwhile
   the list is busy. */
static ty_status apply_recalling(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out) {
  c->recall->busy = true;
  ty_recall_note(c->recall, c->op);
  ty_status s = apply_once(c, b, into, out);
  if (s == TY_OK && !into && ty_recall_keeps(c)) {
    s = ty_recall_keep(c, out);
    for (int i = 0; i < c->op->nout && s != TY_OK; i++) { ty_release(out[i]); out[i] = NULL; }
  }
  c->recall->busy = false;
  return s;
}

/* A call with a dtype (cast_first): operand 1 is cast to it, the result has it, and autocast is off meanwhile. */
static ty_status apply_to_cast(const ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out) {
  const ty_attr *asked = &c->at[c->op->cast_first];
  uint8_t *mode = &c->ctx->autocast[b->gpu >= 0], was = *mode;
  ty_attr at[TY_MAXATTR], how[2] = {*asked, {.set = true, .i = TY_PRESERVE}};
  ty_operand in[TY_MAXPARAM];
  ty_tensor *x, *y;
  if (into && into->dtype != asked->i)
    return ty_fail((ty_call *)c, "dtype %s can't be given for a result in place, which stays %s", ty_dtype_names[asked->i],
      ty_dtype_names[into->dtype]);
  memcpy(at, c->at, sizeof(ty_attr) * (size_t)c->op->nattr);
  memcpy(in, c->in, sizeof(ty_operand) * (size_t)c->nin);
  at[c->op->cast_first].set = false;
  if (into) return ty_apply(c->ctx, c->op, in, c->nin, NULL, at, into, out);
  if (in[0].t && in[0].t->dtype == asked->i) x = ty_retain(in[0].t);
  else TY_TRY(ty_call_op2(c->ctx, TY_OP_cast, in[0], (ty_operand){0}, how, NULL, &x));
  in[0] = ty_operand_tensor(x);
  *mode = 0;
  ty_status s = ty_apply(c->ctx, c->op, in, c->nin, NULL, at, NULL, out);
  if (s == TY_OK && out[0]->dtype != asked->i) {         /* sums of whole numbers are int64 */
    y = out[0];
    out[0] = NULL;
    s = ty_call_op2(c->ctx, TY_OP_cast, ty_operand_tensor(y), (ty_operand){0}, how, NULL, &out[0]);
    ty_release(y);
  }
  *mode = was;
  ty_release(x);
  return s;
}

ty_status ty_apply(ty_ctx *ctx, ty_op *op, ty_operand *in, int nin, const ty_span *span, ty_attr *at, ty_tensor *into, ty_tensor **out) {
  ty_call c;
  c.ctx = ctx;
  c.op = op;
  c.in = in;
  c.nin = nin;
  c.at = at;
  c.late = 0;
  c.settings = NULL;
  for (int i = 0; i < TY_MAXOUT; i++) c.out[i] = NULL;
  if (span) memcpy(c.span, span, sizeof c.span);
  const ty_backend *b;
  TY_TRY(choose_backend(&c, &b));
  ty_dtype to;
  if (op->cast_first >= 0 && at[op->cast_first].set) return apply_to_cast(&c, b, into, out);
  if (!into && ty_autocasts(&c, b, &to)) return ty_apply_autocast(&c, b, to, out);
  ty_op *plainer = ty_plainer_op(&c);
  if (plainer) {
    c.op = plainer;
    c.nin = plainer->nin;                  /* mul by the exponent 1, or an op of x alone */
  }
  c.recall = ctx->recall && !ctx->recall->busy ? ctx->recall : NULL;
  return c.recall ? apply_recalling(&c, b, into, out) : apply_once(&c, b, into, out);
}

/* ---- ops from C ---- */

ty_status ty_call_op2(ty_ctx *ctx, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into, ty_tensor **out) {
  ty_op *op = &ty_ops[id];
  ty_attr def[TY_MAXATTR];
  ty_operand in[2] = {a, b};
  if (!at) {
    for (int i = 0; i < op->nparam; i++)
      if (!ty_param_is_operand(&op->param[i])) def[op->param[i].slot] = op->param[i].def;
    at = def;
  }
  return ty_apply(ctx, op, in, op->nin, NULL, at, into, out);
}

static ty_status unrecorded(ty_ctx *ctx, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into, ty_tensor **out) {
  bool mode = ctx->grad_enabled;
  ctx->grad_enabled = false;
  ty_status s = ty_call_op2(ctx, id, a, b, at, into, out);
  ctx->grad_enabled = mode;
  return s;
}

ty_status ty_contiguous(ty_ctx *ctx, ty_tensor *t, ty_tensor **out) {
  ty_attr at = {.set = true, .i = TY_CONTIGUOUS};
  if (ty_is_contiguous(t)) { *out = ty_retain(t); return TY_OK; }
  return unrecorded(ctx, TY_OP_clone, ty_operand_tensor(t), (ty_operand){0}, &at, NULL, out);
}

/* A copy only where they aren't evenly *apart. */
ty_status ty_lines(ty_ctx *ctx, ty_tensor *t, int64_t n, ty_tensor **out, int64_t *apart) {
  int64_t stride[2];
  if (ty_view_strides(t, (int64_t[]){ty_numel(t) / n, n}, 2, stride) && stride[1] == 1) {
    *apart = stride[0];
    *out = ty_retain(t);
    return TY_OK;
  }
  *apart = n;
  return ty_contiguous(ctx, t, out);
}

ty_status ty_cast(ty_ctx *ctx, ty_tensor *t, ty_dtype d, ty_tensor **out) {
  return t->dtype == d ? (*out = ty_retain(t), TY_OK) : ty_cast_to(ctx, t, d, TY_PRESERVE, out);
}

ty_status ty_cast_to(ty_ctx *ctx, ty_tensor *t, ty_dtype d, ty_memory_format format, ty_tensor **out) {
  ty_attr at[2] = {{.set = true, .i = d}, {.set = true, .i = format}};
  return unrecorded(ctx, TY_OP_cast, ty_operand_tensor(t), (ty_operand){0}, at, NULL, out);
}

/* Runs the op into dst without check_inplace: dst may be a tensor that apply would refuse to change. */
static ty_status write_into(ty_ctx *ctx, ty_op_id id, ty_tensor *dst, ty_operand v) {
  ty_operand in[2] = {ty_operand_tensor(dst), v};
  ty_attr at[1] = {{.i = 0}};
  if (id == TY_OP_add) at[TY_AT_add_alpha].f = 1;
  ty_call c = {.ctx = ctx, .op = &ty_ops[id], .in = in, .nin = 2, .at = at};
  TY_TRY(c.op->infer(&c));
  c.out[0] = dst;
  return run(&c, dst->storage->backend);
}

ty_status ty_copy_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src) { return write_into(ctx, TY_OP_copy, dst, ty_operand_tensor(src)); }
ty_status ty_add_into(ty_ctx *ctx, ty_tensor *dst, ty_tensor *src) { return write_into(ctx, TY_OP_add, dst, ty_operand_tensor(src)); }
ty_status ty_fill_into(ty_ctx *ctx, ty_tensor *dst, ty_operand value) { return write_into(ctx, TY_OP_fill, dst, value); }

/* ---- layouts ---- */

static ty_status copy_of(ty_ctx *ctx, ty_tensor *t, const int64_t *stride, ty_tensor **out) {
  ty_meta m;
  ty_meta_of(t, &m);
  if (stride) { m.has_stride = m.own_layout = true; memcpy(m.stride, stride, sizeof(int64_t) * t->ndim); }
  TY_TRY(ty_empty(ctx, t->storage->backend, &m, out));
  ty_status s = ty_copy_into(ctx, *out, t);
  if (s != TY_OK) { ty_release(*out); *out = NULL; }
  return s;
}

ty_status ty_channels_last(ty_ctx *ctx, ty_tensor *t, ty_tensor **out) {
  int64_t stride[4];
  ty_channels_last_strides(t->shape, 4, stride);
  return ty_is_channels_last(t) ? (*out = ty_retain(t), TY_OK) : copy_of(ctx, t, stride, out);
}

ty_status ty_laid_out_as(ty_ctx *ctx, ty_tensor *t, const ty_tensor *like, ty_tensor **out) {
  const bool last = ty_is_channels_last(like);
  return (last ? ty_is_channels_last(t) : ty_is_contiguous(t)) ? (*out = ty_retain(t), TY_OK)
    : copy_of(ctx, t, last ? like->stride : NULL, out);
}
