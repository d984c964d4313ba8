/* Results that a checkpoint keeps: recall.h. */
#include <string.h>
#include "program.h"
#include "recall.h"

ty_recall *ty_recall_new(void) {
  ty_recall *r = ty_malloc(sizeof *r);
  if (r) memset(r, 0, sizeof *r);
  return r;
}

static void empty(ty_recall *r) {
  for (int i = 0; i < r->n; i++) ty_release(r->entry[i].t);
  ty_free(r->entry);
  r->entry = NULL;
  r->n = r->room = 0;
}

void ty_recall_free(void *r) {
  empty(r);
  ty_free(r);
}

const char *ty_recall_refuses(const ty_op *op) {
  if (!op->diff) return "it has no gradient";
  if (op->id == TY_OP_cast || op->id == TY_OP_clone) return "autocast keeps copies of its own";
  switch (op->cls) {
    case TY_C_VIEW: return "its result shares its operand's memory";
    case TY_C_RANDOM: return "the random numbers after it would differ";
    case TY_C_RECURRENT: return "it computes what backward needs only where gradients are recorded";
    default: return NULL;
  }
}

ty_status ty_recall_begin(ty_ctx *ctx, ty_recall *r, bool again) {
  if (r->open) return ty_error(ctx, "checkpoint: this list of results is in use");
  r->open = true;
  r->again = again;
  r->next = 0;
  r->outer = ctx->recall;
  ctx->recall = r;
  return TY_OK;
}

static ty_status check(ty_ctx *ctx, const ty_recall *r) {
  if (r->again && r->next < r->n)
    return ty_error(ctx, "checkpoint: computed again, fn calls fewer ops whose results were saved: it must do the same each time");
  for (int i = 0; i < r->n && !r->again; i++)
    if (ty_version(r->entry[i].t) != r->entry[i].version)
      return ty_error(ctx, "checkpoint: fn changes a result of %s in place, so it can't be saved: leave '%s' out of save",
        r->entry[i].op->shown, r->entry[i].op->shown);
  return TY_OK;
}

ty_status ty_recall_end(ty_ctx *ctx, ty_recall *r, bool failed) {
  if (ctx->recall != r) return ty_error(ctx, "checkpoint: this list of results isn't the one in force");
  ctx->recall = r->outer;
  r->open = false;
  const ty_status s = failed ? TY_OK : check(ctx, r);
  empty(r);                              /* who collects the list may do so much later */
  return s;
}

ty_status ty_recall_add(ty_ctx *ctx, ty_recall *r, ty_tensor *t, const ty_op *op) {
  if (r->n == r->room) {
    const int room = r->room ? 2 * r->room : 16;
    ty_recalled *more = ty_malloc(sizeof *more * (size_t)room);
    if (!more) return ty_no_memory(ctx, "checkpoint");
    if (r->n) memcpy(more, r->entry, sizeof *more * (size_t)r->n);
    ty_free(r->entry);
    r->entry = more;
    r->room = room;
  }
  r->entry[r->n++] = (ty_recalled){t ? ty_retain(t) : NULL, op, t ? ty_version(t) : 0};
  return TY_OK;
}

ty_status ty_recall_keep(ty_call *c, ty_tensor *const *out) {
  ty_status s = TY_OK;
  for (int i = 0; i < c->op->nout && s == TY_OK; i++) {
    ty_tensor *alias;
    TY_TRY(ty_program_detach(c->ctx, out[i], &alias));
    s = ty_recall_add(c->ctx, c->ctx->recall, alias, c->op);
    ty_release(alias);
  }
  return s;
}

ty_status ty_recall_take(ty_call *c) {
  ty_recall *r = c->ctx->recall;
  for (int i = 0; i < c->op->nout; i++) {
    const ty_recalled *e = r->next < r->n ? &r->entry[r->next++] : NULL;
    const bool same = e && e->t && (c->late >> i & 1 || (e->t->dtype == c->meta[i].dtype && TY_SAME_SHAPE(e->t, &c->meta[i])));
    if (!same) return ty_fail(c, "a checkpoint's fn, computed again, calls this op differently: it must do the same each time");
    if (!(c->out[i] = ty_alias(e->t))) return ty_no_memory(c->ctx, c->op->shown);
  }
  return TY_OK;
}
