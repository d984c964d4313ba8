/* Autocast: under tycho.amp.autocast, apply casts an op's operands to the dtype that the op's row in ops.def asks for.
 *
 * Idea: operands are cast by the op `cast`, so gradients come back through the tape in the operand's own dtype. The 16-bit copy of a
 * parameter (its shadow) hangs on the parameter and is reused until the parameter changes. Each use has a tape node of its own, so
 * only the data is shared. Invariants: a shadow that someone else still holds is never written; a shadow is read only on the
 * stream, or in the capture, that it was written on. */
#include <string.h>
#include "tycho.h"

struct ty_shadow {
  ty_tensor *t;
  uint64_t from, queue;    /* id of the storage that it is a copy of; queue_id where it was written */
  uint32_t version;        /* that storage's, when copied */
};

static uint64_t queue_of(ty_ctx *ctx, const ty_tensor *t) {
  const ty_backend *b = ty_device_of(t);
  return b->queue_id ? b->queue_id(ctx, b) : 0;
}

static bool valid(ty_ctx *ctx, const ty_tensor *t, const ty_shadow *h) {
  return h->from == t->storage->id && h->version == ty_version(t) && h->queue == queue_of(ctx, t) && !t->storage->exposed;
}

void ty_shadow_free(ty_shadow *h) {
  ty_release(h->t);
  ty_free(h);
}

ty_tensor *ty_shadow_to_refresh(ty_ctx *ctx, const ty_tensor *t) {
  const ty_shadow *h = t->shadow;
  return h && valid(ctx, t, h) && ty_is_sole(h->t) && ty_same_places(t, h->t) ? h->t : NULL;
}

void ty_shadow_refreshed(ty_tensor *t) {
  ty_changed(t->shadow->t);
  t->shadow->version = ty_version(t) + 1;
}

/* t's data in dtype to, from the shadow where possible; a new reference, without history. */
static ty_status shadow_of(ty_ctx *ctx, ty_tensor *t, ty_dtype to, ty_memory_format format, ty_tensor **out) {
  ty_shadow *h = t->shadow;
  if (!t->requires_grad || t->base || t->dtype != TY_F32 || t->storage->exposed) return ty_cast_to(ctx, t, to, format, out);
  const bool alike = h && h->t->dtype == to && (format != TY_CHANNELS_LAST || ty_is_channels_last(h->t));
  if (alike && valid(ctx, t, h)) return (*out = ty_alias(h->t)) ? TY_OK : ty_no_memory(ctx, NULL);
  if (alike && h->from == t->storage->id && h->queue == queue_of(ctx, t) && ty_is_sole(h->t)) {
    TY_TRY(ty_copy_into(ctx, h->t, t));
    ty_changed(h->t);
  } else {
    ty_tensor *c;
    TY_TRY(ty_cast_to(ctx, t, to, format, &c));
    if (h) ty_release(h->t);
    else if (!(h = t->shadow = ty_malloc(sizeof *h))) { *out = c; return TY_OK; }
    h->t = c;
  }
  h->from = t->storage->id;
  h->queue = queue_of(ctx, t);
  h->version = ty_version(t);
  return (*out = ty_alias(h->t)) ? TY_OK : ty_no_memory(ctx, NULL);
}

static ty_status cast_operand(ty_ctx *ctx, ty_tensor *t, ty_dtype to, ty_memory_format format, ty_tensor **out) {
  ty_attr at[2] = {{.set = true, .i = to}, {.set = true, .i = format}};
  if (!ty_is_16bit(to) || !t->requires_grad || ctx->program)
    return ty_call_op2(ctx, TY_OP_cast, ty_operand_tensor(t), (ty_operand){0}, at, NULL, out);
  TY_TRY(shadow_of(ctx, t, to, format, out));
  if (!ctx->grad_enabled) return TY_OK;
  ty_operand in = ty_operand_tensor(t);
  ty_call c = {.ctx = ctx, .op = &ty_ops[TY_OP_cast], .in = &in, .nin = 1, .at = at, .out = {*out}};
  ty_status s = ty_record(&c);
  if (s != TY_OK) { ty_release(*out); *out = NULL; }
  return s;
}

static bool wants(const ty_call *c, const ty_backend *b, int i, ty_dtype to) {
  const ty_tensor *t = c->in[i].t;
  if (!t || t->dtype == to || t->dtype == TY_F64 || !ty_is_float(t->dtype)) return false;
  if (c->op->mutates && ty_operand_param(c->op, i)->mutated) return false;
  return ty_device_of(t) == b && (c->op->cast == TY_A_FP16 || ty_is_16bit(t->dtype));
}

bool ty_autocasts(const ty_call *c, const ty_backend *b, ty_dtype *to) {
  const uint8_t mode = c->ctx->autocast[b->gpu >= 0];
  if (!mode || c->op->cast == TY_A_WIDEST || c->op->has_list) return false;
  *to = c->op->cast == TY_A_FP16 ? mode - 1 : TY_F32;
  for (int i = 0; i < c->nin; i++)
    if (wants(c, b, i, *to)) return true;
  return false;
}

ty_status ty_apply_autocast(const ty_call *c, const ty_backend *b, ty_dtype to, ty_tensor **out) {
  ty_ctx *ctx = c->ctx;
  uint8_t *mode = &ctx->autocast[b->gpu >= 0], was = *mode;
  ty_operand in[TY_MAXPARAM];
  ty_status s = TY_OK;
  *mode = 0;
  memcpy(in, c->in, sizeof(ty_operand) * (size_t)c->nin);
  int n = 0;
  for (; n < c->nin && s == TY_OK; n++) {
    const bool filter = c->op->cls == TY_C_CONV && n == 1 && c->in[1].t->ndim == 4 && b->filters_last && b->channels_last(to);
    if (wants(c, b, n, to)) s = cast_operand(ctx, c->in[n].t, to, filter ? TY_CHANNELS_LAST : TY_PRESERVE, &in[n].t);
    else ty_retain(in[n].t);
  }
  if (s == TY_OK) s = ty_apply(ctx, c->op, in, c->nin, NULL, c->at, NULL, out);
  else in[n - 1].t = NULL;
  while (n--) ty_release(in[n].t);
  *mode = was;
  return s;
}
