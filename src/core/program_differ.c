/* A call in check that differs from its recording.
 *
 * Idea: the events that agreed are redone with the call's operands, which they hold. Redone events are compared with another
 * recording, recorded as a new one, or, where the call is refused, only executed. The placeholders handed out become what this gives: the
 * other recording's placeholders, or results. Invariant: a call that differs from all recordings ends as it would without them. */
#include <string.h>
#include "program_parts.h"
#include "recall.h"

void ty_become(ty_tensor *h, ty_tensor *t) {
  ty_tensor *base = h->base;
  ty_node *node = h->node;
  ty_storage_retain(t->storage);
  ty_storage_release(h->storage);
  h->storage = t->storage;
  h->offset = t->offset;
  h->requires_grad = false;
  h->unrecorded = t->unrecorded;
  h->own_layout = t->own_layout;
  h->copied = t->copied;
  h->scaled = t->scaled;
  h->node = ty_node_retain(t->node);
  h->out = t->out;
  h->history = t->history;
  h->base = ty_retain(t->base);
  memcpy(h->stride, t->stride, sizeof h->stride);
  ty_node_release(node);
  ty_release(base);
}

/* The placeholder, handed out for what is t now, becomes t. The new event holds it in t's place, in case the call differs once more. */
static void take_place(ty_program *p, ty_tensor *placeholder, ty_tensor *t) {
  event *e = p->refused || p->mode != TY_CHECK || !p->at ? NULL : &p->r->event[p->agreed];
  const uint32_t before = ty_version(placeholder);
  ty_become(placeholder, t);
  ty_recall_moved(p->recall, placeholder, before);
  if (!e) return;
  ty_tensor **at = NULL;
  for (int j = 0; j < TY_MAXOUT; j++)
    if (e->placeholder[j] == t) at = &e->placeholder[j];
  for (int i = 0; i < e->nleaf; i++)
    if (e->leaf[i].placeholder == t) at = &e->leaf[i].placeholder;
  for (int i = 0; i < e->nresult; i++)
    if (e->result_placeholder[i] == t) at = &e->result_placeholder[i];
  if (!at) return;
  *at = ty_retain(placeholder);
  ty_release(t);
}

static ty_status redo_apply(ty_ctx *ctx, ty_program *p, event *e) {
  ty_tensor *out[TY_MAXOUT] = {NULL};
  ty_attr at[TY_MAXATTR];                  /* a copy: apply makes dims and indices count from 0, in place */
  ty_operand *in = ty_malloc(sizeof *in * (size_t)TY_MAX(e->nin, 1));
  if (!in) return ty_program_no_memory(ctx);
  memcpy(at, e->at, sizeof *at * (size_t)e->op->nattr);
  for (int i = 0; i < e->nin; i++) { in[i] = e->in[i]; in[i].t = e->actual[i]; }
  const ty_status s = ty_apply(ctx, e->op, in, e->nin, e->span, at, e->target, out);
  ty_free(in);
  for (int j = 0; s == TY_OK && j < TY_MAX(e->op->nout, e->target ? 1 : 0); j++) {
    if (e->placeholder[j] && !e->failed) take_place(p, e->placeholder[j], out[j]);
    ty_release(out[j]);
  }
  return e->failed && s != TY_OOM ? TY_OK : s;
}

static ty_status redo_detach(ty_ctx *ctx, ty_program *p, event *e) {
  ty_tensor *t;
  TY_TRY(ty_program_detach(ctx, e->actual[0], &t));
  take_place(p, e->placeholder[0], t);
  ty_release(t);
  return TY_OK;
}

static ty_status redo_reached(ty_ctx *ctx, event *e) {
  const int nleaf = e->nin - e->nroot;
  bool others, *found = ty_malloc(sizeof(bool) * (size_t)TY_MAX(nleaf, 1));
  if (!found) return ty_program_no_memory(ctx);
  const ty_status s = ty_reached(ctx, e->actual, e->nroot, e->actual + e->nroot, nleaf, found, &others);
  ty_free(found);
  return s;
}

static ty_status redo_grad(ty_ctx *ctx, event *e) {
  ty_tensor *leaf = e->leaf[0].leaf;
  TY_TRY(ty_program_grad(ctx, leaf, e->actual[0]));
  ty_retain(e->actual[0]);
  ty_release(leaf->grad);
  leaf->grad = e->actual[0];
  return TY_OK;
}

/* at: the pass's event */
static ty_status redo_backward(ty_ctx *ctx, ty_program *p, ty_recording *was, int at) {
  event *e = &was->event[at];
  const int nin = e->nin - 2 * e->nroot;
  ty_tensor **result = ty_malloc(sizeof(ty_tensor *) * (size_t)TY_MAX(nin, 1));
  if (!result) return ty_program_no_memory(ctx);
  const ty_backward_call b = {.root = e->actual, .grad = e->actual + e->nroot, .nroot = e->nroot,
    .input = e->with_inputs ? e->actual + 2 * e->nroot : NULL, .ninput = nin, .result = result, .o = e->opts};
  const ty_status s = ty_told(ctx, p, was, at + 1, e->end, &b, NULL);
  for (int i = 0; s == TY_OK && i < e->nleaf; i++) {
    leaf_change *l = &e->leaf[i];
    if (!l->placeholder || !l->leaf->grad) continue;
    take_place(p, l->placeholder, l->leaf->grad);      /* the function may hold the placeholder: it becomes the leaf's gradient */
    ty_release(l->leaf->grad);
    l->leaf->grad = ty_retain(l->placeholder);
  }
  for (int i = 0; s == TY_OK && i < nin; i++) {
    if (e->result_placeholder[i] && result[i]) take_place(p, e->result_placeholder[i], result[i]);
    ty_release(result[i]);
  }
  ty_free(result);
  return s;
}

ty_status ty_redo(ty_ctx *ctx, ty_program *p, ty_recording *was, int i) {
  event *e = &was->event[i];
  ty_modes_set(ctx, &e->modes);
  ctx->device = e->modes.place;
  memcpy(ctx->stream, e->stream, sizeof e->stream);
  switch (e->kind) {
    case EVENT_APPLY: return redo_apply(ctx, p, e);
    case EVENT_DETACH: return redo_detach(ctx, p, e);
    case EVENT_FUNCTION:
      return ty_program_function(ctx, e->function, e->actual, e->nroot, e->actual + e->nroot, e->nin - e->nroot);
    case EVENT_REACHED: return redo_reached(ctx, e);
    case EVENT_LEAF: return ty_set_requires_grad(ctx, e->actual[0], e->on);
    case EVENT_GRAD: return redo_grad(ctx, e);
    case EVENT_BACKWARD: return redo_backward(ctx, p, was, i);
    case EVENT_RULE: break;                /* within a pass, which does it */
  }
  return TY_OK;
}

/* Undoes what the first n events did to leaves' requires_grad. */
static void rewind_leaves(ty_recording *r, int n) {
  while (n-- > 0) {
    const event *e = &r->event[n];
    if (e->kind != EVENT_LEAF) continue;
    e->actual[0]->requires_grad = !e->on;
    if (e->own < 0) continue;
    ty_release(e->actual[0]->grad);
    e->actual[0]->grad = ty_retain(e->had);
  }
}

void ty_clear_pending(ty_recording *r) {
  for (int i = 0; i < r->nvalue; i++)
    if (r->value[i].t) r->value[i].t->storage->pending = 0;
}

/* Compares the call, with the inputs of `was`, with a recording not tried yet, or records it. */
static ty_status go_on(ty_ctx *ctx, ty_program *p, const ty_recording *was) {
  ty_recording *r = p->r;
  while (r && r->tried == p->calls) r = r->other;
  ty_tensor **input = ty_malloc(sizeof *input * (size_t)TY_MAX(was->ninput, 1));
  if (!input) return ty_program_no_memory(ctx);
  for (int i = 0; i < was->ninput; i++) input[i] = was->value[was->input[i]].t;
  const ty_status s = r ? ty_compare(ctx, p, r, input, was->ninput) : ty_record_anew(ctx, p, input, was->ninput);
  ty_free(input);
  return s;
}

/* Redoes the first n events, which agreed with p->r: against another recording or a new one, or, if the call is refused, unrecorded.
 * Events are what ran outside of vmap and of checkpoint's list. */
static ty_status redo_first(ty_ctx *ctx, ty_program *p, int n) {
  ty_recording *was = p->r;
  const modes modes = ty_modes_now(ctx);
  const struct ty_vmap *map = ctx->vmap;
  struct ty_recall *recall = ctx->recall, *outer = p->recall;
  void *stream[TY_MAXGPU];
  memcpy(stream, ctx->stream, sizeof stream);
  ty_clear_pending(was);
  rewind_leaves(was, p->at);
  ty_rewind_grads(was);
  if (recall) p->recall = recall;          /* what is redone may differ again: then outer is still the one */
  ctx->vmap = NULL;
  ctx->recall = NULL;
  ty_status s = p->refused ? TY_OK : go_on(ctx, p, was);
  p->redoing++;
  for (int i = 0; i < n && s == TY_OK; i = was->event[i].end) s = ty_redo(ctx, p, was, i);
  p->redoing--;
  ty_modes_set(ctx, &modes);
  memcpy(ctx->stream, stream, sizeof stream);
  ctx->vmap = map;
  ctx->recall = recall;
  p->recall = outer;
  if (s != TY_OK) {
    ty_program_refuse(p, "a call that had succeeded failed when it was repeated");
    p->broken = true;
  }
  return s;
}

static ty_status redo_all(ty_ctx *ctx, ty_program *p) {
  ty_recording *was = p->r;
  const ty_status s = redo_first(ctx, p, p->at);
  ty_recording_let_go(was);
  return s;
}

ty_status ty_diverge(ty_ctx *ctx, ty_program *p, const char *why) {
  char place[96] = "";
  if (ctx->host && !p->redoing) ctx->host->where(ctx, place, sizeof place);
  const int length = (int)strlen(place) - 2;             /* without ": " */
  snprintf(p->why, sizeof p->why, length > 0 ? "%s (%.*s)" : "%s", why, length, place);         /* may be replaced by a better one */
  if (p->rules) { p->broken = true; return ty_program_broken(ctx); }
  return redo_all(ctx, p);
}

ty_status ty_part_ways(ty_ctx *ctx, ty_program *p, int n) {
  if (!p->broken) {                        /* the function failed by itself, and will fail again */
    snprintf(p->why, sizeof p->why, "an autograd.Function's backward failed");
    p->broken = p->ends = true;
  }
  if (p->rules) return ty_program_broken(ctx);
  p->refused = p->ends;
  p->broken = p->ends = false;
  return redo_first(ctx, p, n);
}

ty_status ty_program_settle(ty_ctx *ctx, const char *what) {
  ty_program *p = ctx->program;
  if (p && p->broken) return ty_program_broken(ctx);
  if (!p || p->refused || p->within) return TY_OK;
  if (p->rules && p->mode == TY_CHECK) {
    snprintf(p->why, sizeof p->why, "%s", what);
    p->broken = p->ends = true;
    return ty_program_broken(ctx);
  }
  ty_program_refuse(p, what);
  return p->mode == TY_CHECK ? redo_all(ctx, p) : TY_OK;
}
