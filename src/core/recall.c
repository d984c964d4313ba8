/* Results that a checkpoint keeps; idea and invariant: recall.h. */
#include <string.h>
#include "program.h"
#include "recall.h"
#include "table.h"
#include "vmap.h"

ty_recall *ty_recall_new(void) {
  ty_recall *r = ty_malloc(sizeof *r);
  if (r) { memset(r, 0, sizeof *r); r->refs = 1; }
  return r;
}

void ty_recall_drop(ty_recall *r) {
  for (int i = 0; i < r->n; i++) {
    ty_release(r->entry[i].t);
    r->entry[i].t = NULL;
  }
}

void ty_recall_release(void *p) {
  ty_recall *r = p;
  if (--r->refs) return;
  ty_recall_drop(r);
  ty_free(r->entry);
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

static ty_status begin(ty_ctx *ctx, ty_recall *r, bool again) {
  r->open = true;
  r->busy = false;
  r->again = again;
  r->next = 0;
  r->trace = 0;
  r->refs++;
  r->outer = ctx->recall;
  ctx->recall = r;
  return TY_OK;
}

static ty_status in_use(ty_ctx *ctx) { return ty_error(ctx, "checkpoint: this list of results is in use"); }

ty_status ty_recall_begin(ty_ctx *ctx, ty_recall *r) {
  if (r->open) return in_use(ctx);
  ty_recall_drop(r);
  r->n = 0;
  return begin(ctx, r, false);
}

ty_status ty_recall_again(ty_ctx *ctx, ty_recall *r, ty_tensor *const *t, int n) {
  if (r->open) return in_use(ctx);
  if (n != r->n) return ty_error(ctx, "checkpoint: %d results are given for a list of %d", n, r->n);
  ty_recall_drop(r);
  for (int i = 0; i < n; i++) r->entry[i].t = t[i] ? ty_retain(t[i]) : NULL;
  return begin(ctx, r, true);
}

void ty_recall_moved(ty_recall *r, const ty_tensor *t, uint32_t before) {
  for (; r; r = r->outer)
    for (int i = 0; i < r->n; i++)
      if (r->entry[i].t == t) r->entry[i].version += ty_version(t) - before;
}

/* Whether the first run's results are still as they were. */
static ty_status check(ty_ctx *ctx, const ty_recall *r) {
  for (int i = 0; i < r->n; i++)
    if (ty_version(r->entry[i].t) != r->entry[i].version)
      return ty_error(ctx, "checkpoint: fn changes a result of %s in place, so it can't be saved: leave '%s' out of save",
        r->entry[i].op->shown, r->entry[i].op->shown);
  return TY_OK;
}

ty_status ty_recall_end(ty_ctx *ctx, ty_recall *r, bool failed) {
  if (ctx->recall != r && failed) return TY_OK;          /* it never began */
  if (ctx->recall != r) return ty_error(ctx, "checkpoint: this list of results isn't the one in force");
  ctx->recall = r->outer;
  r->open = false;
  const ty_status s = failed || r->again ? TY_OK : check(ctx, r);
  if (r->again || failed || s != TY_OK) ty_recall_drop(r);        /* who collects the list may do so much later */
  ty_recall_release(r);
  return s;
}

static ty_status add(ty_ctx *ctx, ty_recall *r, ty_tensor *t, const ty_op *op) {
  if (!ty_grow(&r->entry, r->n + 1, &r->room, sizeof *r->entry)) return ty_no_memory(ctx, "checkpoint");
  r->entry[r->n++] = (ty_recalled){ty_retain(t), op, ty_version(t), r->trace};
  return TY_OK;
}

bool ty_recall_keeps(const ty_call *c) {
  const ty_recall *r = c->recall;
  return !r->again && !ty_is_mapped(c, NULL) && r->of[c->op->id] && !ty_draws(c);
}

ty_status ty_recall_keep(ty_call *c, ty_tensor *const *out) {
  ty_status s = TY_OK;
  for (int i = 0; i < c->op->nout && s == TY_OK; i++) {
    ty_tensor *alias;
    TY_TRY(ty_program_detach(c->ctx, out[i], &alias));
    s = add(c->ctx, c->recall, alias, c->op);
    ty_release(alias);
  }
  return s;
}

bool ty_recall_gives(const ty_call *c) {
  const ty_recall *r = c->recall;
  if (!r->again || !r->of[c->op->id] || ty_draws(c) || r->n - r->next < c->op->nout) return false;
  for (int i = 0; i < c->op->nout; i++) {
    const ty_recalled *e = &r->entry[r->next + i];
    if (!e->t || e->op != c->op || e->trace != r->trace) return false;
    if (!(c->late >> i & 1) && (e->t->dtype != c->meta[i].dtype || !TY_SAME_SHAPE(e->t, &c->meta[i]))) return false;
  }
  return true;
}

ty_status ty_recall_take(ty_call *c) {
  ty_recall *r = c->recall;
  for (int i = 0; i < c->op->nout; i++)
    if (!(c->out[i] = ty_alias(r->entry[r->next++].t))) return ty_no_memory(c->ctx, c->op->shown);
  return TY_OK;
}
