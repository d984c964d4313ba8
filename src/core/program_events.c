/* Records a program's events, and compares later calls with them.
 *
 * Idea: in check an op that agrees with the next event doesn't run: it gives placeholders, tensors in the recording's memory whose data is
 * still to come. The event holds them and the call's operands until the call ends, in case it differs later. Invariant: what is
 * handed out, and the state of the call's tensors (versions, histories, needs), is as the op would have left it, except for the numbers. */
#include <string.h>
#include "program_parts.h"
#include "vmap.h"

/* ---- events ---- */

event *ty_program_event_new(ty_ctx *ctx, ty_program *p, event_kind kind, int nin) {
  ty_recording *r = p->r;
  if (!ty_grow(&r->event, r->nevent + 1, &r->event_room, sizeof(event))) return NULL;
  event *e = &r->event[r->nevent];
  memset(e, 0, sizeof *e);
  e->kind = kind;
  e->nin = nin;
  e->modes = ty_modes_now(ctx);
  memcpy(e->stream, ctx->stream, sizeof e->stream);
  e->into = -1;
  for (int i = 0; i < TY_MAXOUT; i++) e->vout[i] = -1;
  char *mem = ty_malloc((sizeof(ty_operand) + sizeof(ty_tensor *) + sizeof(int) * 2) * (size_t)TY_MAX(nin, 1));
  if (!mem) return NULL;
  e->in = (ty_operand *)mem;
  e->actual = (ty_tensor **)(e->in + TY_MAX(nin, 1));
  e->vin = (int *)(e->actual + TY_MAX(nin, 1));
  e->needs = e->vin + TY_MAX(nin, 1);
  for (int i = 0; i < nin; i++) { e->vin[i] = -1; e->actual[i] = NULL; e->needs[i] = NO_GRADIENT; }
  e->end = ++r->nevent;
  return e;
}

int ty_own_leaf(const ty_recording *r, const ty_tensor *t) {
  int k = r->nown;
  while (k-- > 0 && r->own[k] != t) {}
  return k;
}

static int need_of(const ty_recording *r, const ty_tensor *t) {
  if (!ty_needs_grad(t)) return NO_GRADIENT;
  const int own = t->requires_grad ? ty_own_leaf(r, t) : -1;
  return own >= 0 ? OWN_LEAF + own : t->requires_grad ? IS_LEAF : ITS_HISTORY_DOES;
}

bool ty_note_operand(ty_program *p, event *e, int i, ty_tensor *t) {
  if (!t) return true;
  e->needs[i] = need_of(p->r, t);
  if ((e->vin[i] = ty_value_of(p, t, TY_SEEN)) < 0) return false;
  value *v = &p->r->value[e->vin[i]];
  const store *st = &p->r->store[v->store];
  if (st->internal && !st->visible) ty_program_refuse(p, "a value made within backward is used outside of it");
  if (e->needs[i] == IS_LEAF && !v->leaf) v->leaf = ty_retain(t);
  if (!e->needs[i] && !v->plain && !st->internal && !st->input && t->storage->program != p) v->plain = ty_retain(t);
  if (e->needs[i] == IS_LEAF && v->leaf != t) ty_program_refuse(p, "two leaves share memory");
  if (t->node && t->node->seq < p->node && e->modes.grad_enabled && e->kind != EVENT_DETACH)
    ty_program_refuse(p, "a tensor from outside has an autograd history");        /* which is another one in the next call */
  return true;
}

int ty_visible(ty_program *p, ty_tensor *t) {
  const int v = ty_value_of(p, t, TY_DERIVED);
  if (v >= 0) p->r->store[p->r->value[v].store].visible = true;
  return v;
}

/* Brings the histories of views up to date, as apply does, before anything asks which operands need a gradient. */
static ty_status up_to_date(const ty_call *c, ty_tensor *into) {
  for (int i = 0; c->ctx->grad_enabled && i < c->nin; i++)
    if (c->in[i].t && c->in[i].t->base) TY_TRY(ty_history(c->ctx, c->in[i].t));
  return c->ctx->grad_enabled && into && into->base ? ty_history(c->ctx, into) : TY_OK;
}

/* Out of memory after the results were made: none is given. */
static ty_status drop(ty_ctx *ctx, ty_tensor **out, int n) {
  for (int i = 0; i < n; i++) { ty_release(out[i]); out[i] = NULL; }
  return ty_program_no_memory(ctx);
}

static ty_status record_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now) {
  ty_program *p = c->ctx->program;
  ty_recording *r = p->r;
  ty_op *op = c->op;
  event *e = ty_program_event_new(c->ctx, p, EVENT_APPLY, c->nin);
  if (!e) return ty_program_no_memory(c->ctx);
  const int at = r->nevent - 1;
  e->op = op;
  e->at = ty_malloc(sizeof(ty_attr) * (size_t)TY_MAX(op->nattr, 1));
  if (op->has_list) e->span = ty_malloc(sizeof c->span);
  bool ok = e->at && (!op->has_list || e->span);
  if (ok && op->nattr) memcpy(e->at, c->at, sizeof(ty_attr) * (size_t)op->nattr);
  if (ok && op->has_list) memcpy(e->span, c->span, sizeof c->span);
  for (int i = 0; ok && i < c->nin; i++) {
    e->in[i] = c->in[i];
    e->in[i].t = NULL;
    ok = ty_note_operand(p, e, i, c->in[i].t);
  }
  if (ok && into) ok = (e->into = ty_visible(p, into)) >= 0;
  if (ok && into) e->into_needs = ty_needs_grad(into);
  if (!ok) return ty_program_no_memory(c->ctx);
  e->first = r->nstep;
  ty_tensor *const base = into ? into->base : NULL;
  const uint32_t history = base ? base->history : into ? into->history : 0;
  const bool base_needs = ty_needs_grad(base);
  p->inner++;
  ty_status s = now(c, b, into, out);
  p->inner--;
  e = &r->event[at];
  e->moves = base && base->history != history;
  e->gains = e->moves && !base_needs && ty_needs_grad(base);
  e->anew = into && !base && into->history != history;
  /* the function may catch the error in every call: a failure before any step is an event that can be compared */
  if (s != TY_OK) {
    if (s == TY_ERR && e->first == r->nstep && (e->failed = ty_malloc(TY_ERRLEN))) memcpy(e->failed, c->ctx->err, TY_ERRLEN);
    else ty_program_refuse(p, "an op failed");
    return s;
  }
  const int nout = TY_MAX(op->nout, into ? 1 : 0);
  for (int j = 0; j < nout; j++) {
    if ((e->vout[j] = ty_visible(p, out[j])) < 0) return drop(c->ctx, out, nout);
    e->out_needs[j] = ty_needs_grad(out[j]);
    e->own_layout[j] = out[j]->own_layout;
  }
  e->based = op->cls == TY_C_VIEW && !into && out[0]->base;
  if (into && ((e->out_needs[0] && !e->into_needs) || e->gains) && !r->store[r->value[e->into].store].internal)
    ty_program_refuse(p, "a tensor from outside gets an autograd history");
  return TY_OK;
}

static bool same_attr(const ty_param *q, const ty_attr *a, const ty_attr *b) {
  if (a->set != b->set || !a->set) return a->set == b->set;
  switch (q->type) {
    case TY_P_DIMS: case TY_P_SIZES: case TY_P_INTS: case TY_P_SINGLE: case TY_P_PAIR: case TY_P_TRIPLE:
      return a->n == b->n && !memcmp(a->v, b->v, sizeof(int64_t) * a->n);
    case TY_P_ANY: return a->n == b->n && a->i == b->i;
    case TY_P_NUMBER: return !memcmp(&a->f, &b->f, sizeof a->f);
    default: return a->i == b->i;
  }
}

bool ty_is_number(const ty_operand *o) { return o->kind == TY_INT || o->kind == TY_FLOAT; }
bool ty_is_rate(const ty_op *op, int slot) { return slot == op->rate; }

/* Whether parameter i is an optimizer's number (betas, weight decay): schedules change these, so take_numbers passes them on. */
static bool is_setting(const ty_op *op, int i) { return op->cls == TY_C_OPTIM && op->param[i].type == TY_P_NUMBER; }

bool ty_in_modes(const ty_ctx *ctx, const event *e) {
  return ty_modes_same(ctx, &e->modes) && !memcmp(ctx->stream, e->stream, sizeof e->stream);
}

bool ty_is_operand(const ty_program *p, const event *e, int i, const ty_tensor *t) {
  if (e->vin[i] < 0 || !t) return e->vin[i] < 0 && !t;
  return ty_is_value(p, e->vin[i], t) && need_of(p->r, t) == e->needs[i] &&
    (e->needs[i] != IS_LEAF || p->r->value[e->vin[i]].leaf == t);
}

bool ty_same_operands(ty_program *p, const event *e, ty_tensor **a, int na, ty_tensor **b, int nb) {
  bool same = e->nin == na + nb && e->nroot == na && ty_in_modes(p->ctx, e);
  for (int i = 0; same && i < na + nb; i++) same = ty_is_operand(p, e, i, i < na ? a[i] : b[i - na]);
  return same;
}
bool ty_note_operands(ty_program *p, event *e, ty_tensor **a, int na, ty_tensor **b, int nb) {
  bool ok = true;
  for (int i = 0; ok && i < na + nb; i++) ok = ty_note_operand(p, e, i, i < na ? a[i] : b[i - na]);
  e->nroot = na;
  return ok;
}
void ty_hold_operands(event *e, ty_tensor **a, int na, ty_tensor **b, int nb) {
  for (int i = 0; i < na + nb; i++) e->actual[i] = ty_retain(i < na ? a[i] : b[i - na]);
}

static bool same_operand(const ty_program *p, const event *e, int i, const ty_operand *in) {
  const ty_operand *was = &e->in[i];
  if (in->kind != was->kind) return false;
  if (in->kind == TY_TENSOR) return ty_is_operand(p, e, i, in->t);
  return in->kind == TY_NONE || (!memcmp(&in->f, &was->f, sizeof in->f) && in->i == was->i);
}

static bool agrees(ty_call *c, const event *e, ty_tensor *into) {
  const ty_program *p = c->ctx->program;
  const ty_op *op = c->op;
  if (!e || e->kind != EVENT_APPLY || e->op != op || e->nin != c->nin || (e->into >= 0) != (into != NULL) ||
      !ty_in_modes(c->ctx, e))
    return false;
  if (op->has_list && memcmp(e->span, c->span, sizeof(ty_span) * (size_t)op->nin)) return false;
  for (int i = 0; i < c->nin; i++)
    if (!same_operand(p, e, i, &c->in[i]) &&
        !(ty_is_number(&c->in[i]) && ty_is_number(&e->in[i]) && ty_is_rate(op, ty_slot_of(c, i))))
      return false;
  for (int i = 0; i < op->nparam; i++)
    if (!ty_param_is_operand(&op->param[i]) && !is_setting(op, i) &&
        !same_attr(&op->param[i], &e->at[op->param[i].slot], &c->at[op->param[i].slot]))
      return false;
  return !into || (ty_is_value(p, e->into, into) && ty_needs_grad(into) == e->into_needs && (!e->moves || into->base));
}

/* A tensor that stands for value v until the steps have run. */
ty_tensor *ty_new_placeholder(ty_program *p, int v, bool needs) {
  ty_tensor *t = ty_alias(p->r->value[v].t);
  if (t && needs && !ty_mark_graph_used(t)) { ty_release(t); return NULL; }
  return t;
}

static void pending_change(ty_tensor *t, const ty_op *op) {
  t->storage->pending++;
  ty_keep_mark(t, op);
}

event *ty_next_event(ty_program *p) { return p->at < p->r->nevent ? &p->r->event[p->at] : NULL; }

/* The next event has agreed. */
void ty_agreed(ty_program *p) { p->agreed = p->at++; }

/* Passes the call's learning rates and settings to the event and its step. */
static void take_numbers(const ty_call *c, ty_recording *r, event *e) {
  for (int i = 0; i < c->nin; i++)
    if (ty_is_number(&c->in[i]) && memcmp(&c->in[i].f, &e->in[i].f, sizeof(double))) {
      e->in[i] = c->in[i];
      ty_recording_set_rate(r, e->first, i, c->in[i].f);
    }
  for (int k = 0; k < c->op->nparam; k++) {
    const int slot = c->op->param[k].slot;
    if (!is_setting(c->op, k) || e->at[slot].f == c->at[slot].f) continue;
    step *s = &r->step[e->first];
    e->at[slot].f = s->call.at[slot].f = c->at[slot].f;
    if (s->call.settings) s->set_changed = true;
    else r->stale = r->stale || r->gpu;    /* a graph keeps the old number */
  }
}

/* into, changed in place: its data is still to come, but it gets the history that the op gives it. */
static ty_status change_in_place(const ty_call *c, event *e, ty_tensor *into) {
  pending_change(into, c->op);
  if (e->out_needs[0] && !e->into_needs && !ty_mark_graph_used(into)) return ty_program_no_memory(c->ctx);
  if (e->gains && !ty_mark_graph_used(into->base)) return ty_program_no_memory(c->ctx);
  if (e->moves) into->base->history++;
  if (e->anew) into->history++;
  return TY_OK;
}

static ty_status hand_out(const ty_call *c, event *e, ty_tensor **out) {
  const int n = c->op->nout;
  for (int j = 0; j < n; j++)
    if (!(out[j] = ty_new_placeholder(c->ctx->program, e->vout[j], e->out_needs[j]))) return drop(c->ctx, out, j);
  for (int j = 0; j < n; j++) {
    out[j]->own_layout = e->own_layout[j];
    if (e->based) {
      ty_tensor *const x = c->in[0].t;
      out[j]->base = ty_retain(x->base ? x->base : x);
      out[j]->history = out[j]->base->history;
    }
    e->placeholder[j] = ty_retain(out[j]);
  }
  return TY_OK;
}

/* Holds the call's operands, for ty_redo. */
static void hold(event *e, const ty_call *c, ty_tensor *into) {
  for (int i = 0; i < c->nin; i++) e->actual[i] = ty_retain(c->in[i].t);
  e->target = into ? ty_retain(into) : NULL;
}

/* Why the call differs. It names what users can change: a number that varies, a tensor of theirs that is another one in each call. */
static void say_difference(const ty_program *p, const ty_call *c, const event *e, char *why, size_t n) {
  const char *const op = c->op->shown;
  snprintf(why, n, "%s differs", op);
  if (!e || e->kind != EVENT_APPLY || e->op != c->op || e->nin != c->nin) return;
  for (int i = 0; i < c->nin; i++) {
    const ty_operand *now = &c->in[i], *was = &e->in[i];
    if (ty_is_number(now) && ty_is_number(was) && now->f != was->f)
      snprintf(why, n, "%s differs: a number is %.6g, but was %.6g; a 0-dim tensor may change", op, now->f, was->f);
    else if (now->t && e->vin[i] >= 0 && !p->r->store[p->r->value[e->vin[i]].store].internal && !ty_is_value(p, e->vin[i], now->t))
      snprintf(why, n, "%s differs: operand %d is a different tensor in each call; %s", op, i + 1, p->r->value[e->vin[i]].grad_of ?
        "zero_grad{set_to_none = false} keeps gradients' tensors" : "pass it as an argument");
    else continue;
    return;
  }
}

static ty_status check_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now) {
  ty_program *p = c->ctx->program;
  ty_recording *r = p->r;
  event *e = ty_next_event(p);
  if (!agrees(c, e, into)) {
    char why[160];
    say_difference(p, c, e, why, sizeof why);
    TY_TRY(ty_diverge(c->ctx, p, why));
    return ty_program_apply(c, b, into, out, now);
  }
  if (e->failed) memcpy(c->ctx->err, e->failed, TY_ERRLEN);
  else if (c->op->cls == TY_C_MOVE && r->store[r->value[e->vout[0]].store].constant) {      /* the call's own, which it may change */
    p->within++;
    const ty_status s = now(c, b, into, out);
    p->within--;
    if (s != TY_OK) return s;
    e->placeholder[0] = ty_retain(out[0]);
    r->store[r->value[e->vout[0]].store].given = out[0]->storage->id;
  } else {
    if (into) {
      TY_TRY(change_in_place(c, e, into));
      out[0] = ty_retain(into);
    } else TY_TRY(hand_out(c, e, out));
    take_numbers(c, r, e);
    ty_each_mutated(c, pending_change);
  }
  hold(e, c, into);
  ty_agreed(p);
  return e->failed ? TY_ERR : TY_OK;
}

ty_status ty_program_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now) {
  ty_program *p = c->ctx->program;
  if (p->broken) return ty_program_broken(c->ctx);
  if (p->within || p->refused) return now(c, b, into, out);
  if (p->inner || p->backward) {           /* part of an event; a view must be known as derived from the event's tensors */
    TY_TRY(now(c, b, into, out));
    return c->op->cls == TY_C_VIEW && p->mode == TY_RECORD && ty_value_of(p, out[0], TY_DERIVED) < 0 ? drop(c->ctx, out, 1) : TY_OK;
  }
  TY_TRY(up_to_date(c, into));
  return p->mode == TY_CHECK ? check_apply(c, b, into, out, now) : record_apply(c, b, into, out, now);
}

/* ---- gradients ---- */

/* A new leaf_change of the event; NULL: out of memory. */
static leaf_change *new_change(ty_program *p, event *e, ty_tensor *leaf) {
  if (!ty_grow(&e->leaf, e->nleaf + 1, &e->leaf_room, sizeof(leaf_change))) return NULL;
  leaf_change *l = &e->leaf[e->nleaf++];
  *l = (leaf_change){.leaf = ty_retain(leaf), .before = -1, .after = -1, .own = ty_own_leaf(p->r, leaf)};
  return l;
}

static leaf_change *changed_leaf(event *e, const ty_tensor *leaf) {
  for (int k = 0; k < e->nleaf; k++)
    if (e->leaf[k].leaf == leaf) return &e->leaf[k];
  return NULL;
}

/* A hook has cleared the leaf's gradient within the pass that gave it: if it had none before, nothing has changed. */
static void forget_leaf(event *e, const ty_tensor *leaf) {
  leaf_change *l = changed_leaf(e, leaf);
  if (!l || l->before >= 0) return;
  ty_release(l->leaf);
  *l = e->leaf[--e->nleaf];
}

ty_status ty_program_leaf(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *before) {
  ty_program *p = ctx->program;
  if (!p || p->mode != TY_RECORD || p->refused || p->backward != 1) return TY_OK;
  event *e = &p->r->event[p->pass];
  leaf_change *l = changed_leaf(e, leaf);
  if (l) {
    l->scaled = leaf->grad->scaled;
    l->kept = l->kept && leaf->grad == before;
  } else {
    if (!(l = new_change(p, e, leaf))) return ty_program_no_memory(ctx);
    l->scaled = leaf->grad->scaled;
    l->kept = leaf->grad == before;
    l->at = p->r->nevent;
    if (before && (l->before = ty_visible(p, before)) < 0) return ty_program_no_memory(ctx);
  }
  l->needs = ty_needs_grad(leaf->grad);
  return (l->after = ty_visible(p, leaf->grad)) < 0 ? ty_program_no_memory(ctx) : TY_OK;
}

/* A pass's operand i, as its event lists them: roots, their gradients, inputs. */
static ty_tensor *asked_of(const ty_backward_call *b, int i) {
  return i < b->nroot ? b->root[i] : i >= 2 * b->nroot ? b->input[i - 2 * b->nroot] : b->grad ? b->grad[i - b->nroot] : NULL;
}

static ty_status note_backward(ty_ctx *ctx, ty_program *p, const ty_backward_call *b) {
  event *e = ty_program_event_new(ctx, p, EVENT_BACKWARD, 2 * b->nroot + b->ninput);
  if (!e) return ty_program_no_memory(ctx);
  e->opts = b->o;
  e->nroot = b->nroot;
  e->with_inputs = b->input != NULL;
  bool ok = true;
  for (int i = 0; ok && i < e->nin; i++) ok = ty_note_operand(p, e, i, asked_of(b, i));
  return ok ? TY_OK : ty_program_no_memory(ctx);
}

static bool backward_agrees(ty_ctx *ctx, const event *e, const ty_backward_call *b) {
  const ty_program *p = ctx->program;
  if (!e || e->kind != EVENT_BACKWARD || e->nroot != b->nroot || e->nin != 2 * b->nroot + b->ninput ||
      e->with_inputs != (b->input != NULL) || !ty_in_modes(ctx, e))
    return false;
  if (memcmp(&b->o, &e->opts, sizeof b->o)) return false;
  for (int i = 0; i < e->nin; i++)
    if (!ty_is_operand(p, e, i, asked_of(b, i))) return false;
  for (int i = 0; i < e->nleaf; i++) {
    const leaf_change *l = &e->leaf[i];
    const ty_tensor *g = l->leaf->grad;
    if (l->before < 0 ? g != NULL : !g || !ty_is_value(p, l->before, g)) return false;
  }
  return true;
}

ty_status ty_hand_out_leaves(ty_ctx *ctx, ty_program *p, event *e, int to) {
  for (int i = 0; i < e->nleaf; i++) {
    leaf_change *l = &e->leaf[i];
    if (l->given || l->at > to) continue;
    if (!l->kept) {
      ty_tensor *g = l->same ? ty_retain(e->actual[l->same - 1]) : ty_new_placeholder(p, l->after, l->needs);
      if (!g) return ty_program_no_memory(ctx);
      ty_release(l->leaf->grad);
      l->leaf->grad = g;
      l->placeholder = l->same ? NULL : ty_retain(g);
    } else l->leaf->grad->storage->pending++;
    l->leaf->grad->scaled = l->scaled;
    l->given = true;
  }
  return TY_OK;
}

static ty_status hand_out_gradients(ty_ctx *ctx, ty_program *p, event *e, int ninput, ty_tensor **result) {
  TY_TRY(ty_hand_out_leaves(ctx, p, e, e->end));
  for (int i = 0; i < ninput; i++) {
    if (e->vresult[i] < -1) result[i] = ty_retain(e->actual[-2 - e->vresult[i]]);
    if (e->vresult[i] < 0) continue;
    if (!(result[i] = ty_new_placeholder(p, e->vresult[i], e->result_needs[i]))) return drop(ctx, result, ninput);
    e->result_placeholder[i] = ty_retain(result[i]);
  }
  return TY_OK;
}

ty_status ty_note_gradients(ty_ctx *ctx, ty_program *p, event *e, int ninput, ty_tensor **result) {
  if (!ninput) return TY_OK;
  e->vresult = ty_malloc(sizeof(int) * (size_t)ninput);
  e->result_needs = ty_malloc(sizeof(bool) * (size_t)ninput);
  e->result_placeholder = ty_malloc(sizeof(ty_tensor *) * (size_t)ninput);
  e->nresult = e->vresult && e->result_needs && e->result_placeholder ? ninput : 0;
  if (!e->nresult) return drop(ctx, result, ninput);
  for (int i = 0; i < ninput; i++) e->result_placeholder[i] = NULL;
  for (int i = 0; i < ninput; i++) {
    e->vresult[i] = result[i] ? ty_visible(p, result[i]) : -1;
    e->result_needs[i] = ty_needs_grad(result[i]);
    if (result[i] && e->vresult[i] < 0) return drop(ctx, result, ninput);
  }
  return TY_OK;
}

ty_status ty_program_backward(ty_ctx *ctx, const ty_backward_call *b, ty_backward_now now) {
  ty_program *p = ctx->program;
  if (p->broken) return ty_program_broken(ctx);
  if (p->within || p->backward || p->refused) return now(ctx, b);
  if (p->mode == TY_CHECK) {
    event *e = ty_next_event(p);
    if (!backward_agrees(ctx, e, b)) {
      TY_TRY(ty_diverge(ctx, p, "backward differs"));
      return ty_program_backward(ctx, b, now);
    }
    for (int i = 0; i < e->nin; i++) {
      ty_tensor *t = asked_of(b, i);
      if (t) e->actual[i] = ty_retain(t);
    }
    for (int i = 0; i < b->ninput; i++) b->result[i] = NULL;
    ty_agreed(p);
    if (e->end > p->at) {                  /* what users' functions do within it is compared, too */
      int known;
      const ty_status s = ty_ask_rules(ctx, p, e, b->o, &known);
      if (s != TY_OK || p->broken) {
        ty_recording *const was = p->r;
        const int pass = (int)(e - was->event);
        const bool within = p->rules > 0, more = p->told && p->tell < p->told_end;     /* more: the pass is being done again already */
        ty_status again = ty_part_ways(ctx, p, pass);
        if (within) return again;
        if (again == TY_OK)
          again = ty_told(ctx, p, more ? p->told : was, more ? p->told_first : pass + 1, more ? p->told_end : known, b, now);
        ty_recording_let_go(was);
        return again;
      }
      p->agreed = (int)(e - p->r->event);
    }
    return hand_out_gradients(ctx, p, e, b->ninput, b->result);
  }
  TY_TRY(note_backward(ctx, p, b));
  const int at = p->r->nevent - 1, outer = p->pass;
  p->pass = at;
  p->backward++;
  ty_status s = now(ctx, b);
  p->backward--;
  p->pass = outer;
  p->r->event[at].end = p->r->nevent;
  if (s != TY_OK) ty_program_refuse(p, "a backward pass failed");
  if (s != TY_OK || p->refused) return s;
  TY_TRY(ty_note_gradients(ctx, p, &p->r->event[at], b->ninput, b->result));
  ty_note_passed(&p->r->event[at], b->grad, b->result, b->ninput);
  return TY_OK;
}

/* The earlier events have made the graph: if they agree, so does the recorded answer. */
ty_status ty_program_reached(ty_ctx *ctx, ty_tensor **roots, int nroot, ty_tensor **leaves, int nleaf, bool *reached, bool *others,
                             ty_reached_now now) {
  ty_program *p = ctx->program;
  if (p->broken) return ty_program_broken(ctx);
  if (p->refused || p->within || p->backward) return now(ctx, roots, nroot, leaves, nleaf, reached, others);
  event *e = p->mode == TY_CHECK ? ty_next_event(p) : ty_program_event_new(ctx, p, EVENT_REACHED, nroot + nleaf);
  if (p->mode == TY_CHECK) {
    if (!e || e->kind != EVENT_REACHED || !ty_same_operands(p, e, roots, nroot, leaves, nleaf)) {
      TY_TRY(ty_diverge(ctx, p, "a different part of the graph is used"));
      return ty_program_reached(ctx, roots, nroot, leaves, nleaf, reached, others, now);
    }
    ty_hold_operands(e, roots, nroot, leaves, nleaf);
    memcpy(reached, e->result_needs, sizeof(bool) * (size_t)nleaf);
    *others = e->result_needs[nleaf];
    ty_agreed(p);
    return TY_OK;
  }
  if (!e || !ty_note_operands(p, e, roots, nroot, leaves, nleaf)) return ty_program_no_memory(ctx);
  if (!(e->result_needs = ty_malloc(sizeof(bool) * (size_t)(nleaf + 1)))) return ty_program_no_memory(ctx);
  TY_TRY(now(ctx, roots, nroot, leaves, nleaf, reached, others));
  memcpy(e->result_needs, reached, sizeof(bool) * (size_t)nleaf);
  e->result_needs[nleaf] = *others;
  return TY_OK;
}

ty_status ty_program_grad(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *grad) {
  ty_program *p = ctx->program;
  if (p && p->broken) return ty_program_broken(ctx);
  if (!p || p->refused || p->within) return TY_OK;
  if (p->backward) {
    if (p->mode == TY_RECORD && !grad) forget_leaf(&p->r->event[p->pass], leaf);
    return TY_OK;
  }
  if (p->mode == TY_CHECK) {
    event *e = ty_next_event(p);
    if (e && e->kind == EVENT_GRAD && e->leaf[0].leaf == leaf && ty_is_operand(p, e, 0, grad)) {
      e->actual[0] = ty_retain(grad);
      ty_agreed(p);
      return TY_OK;
    }
    TY_TRY(ty_diverge(ctx, p, "an assigned gradient differs"));
    return ty_program_grad(ctx, leaf, grad);
  }
  event *e = ty_program_event_new(ctx, p, EVENT_GRAD, 1);
  return e && ty_note_operand(p, e, 0, grad) && new_change(p, e, leaf) ? TY_OK : ty_program_no_memory(ctx);
}

ty_status ty_program_detach(ty_ctx *ctx, ty_tensor *t, ty_tensor **out) {
  ty_program *p = ctx->program;
  if (t->whole) {
    ty_tensor *whole;
    TY_TRY(ty_program_detach(ctx, t->whole, &whole));
    const ty_status s = ty_vmap_in(ctx, t->vmap, whole, out);
    ty_release(whole);
    return s;
  }
  if (p && p->broken) return ty_program_broken(ctx);
  const bool idle = !p || p->refused || p->within || p->inner || p->backward;
  if (!idle && p->mode == TY_CHECK) {
    event *e = ty_next_event(p);
    if (!e || e->kind != EVENT_DETACH || !ty_is_operand(p, e, 0, t)) {
      TY_TRY(ty_diverge(ctx, p, e && e->kind == EVENT_DETACH ?
        "detach differs: its operand is a different tensor in each call; pass it as an argument" : "detach differs"));
      return ty_program_detach(ctx, t, out);
    }
    if (!(*out = ty_alias(t))) return ty_program_no_memory(ctx);
    (*out)->detached = ++ty_detached;
    e->actual[0] = ty_retain(t);
    e->placeholder[0] = ty_retain(*out);
    ty_agreed(p);
    return TY_OK;
  }
  if (!idle) {
    event *e = ty_program_event_new(ctx, p, EVENT_DETACH, 1);
    if (!e || !ty_note_operand(p, e, 0, t)) return ty_program_no_memory(ctx);
  }
  if (!(*out = ty_alias(t))) return ty_program_no_memory(ctx);
  (*out)->detached = ++ty_detached;
  return TY_OK;
}

bool ty_program_may_read(ty_program *p, const ty_tensor *t) {
  const ty_storage *s = t->storage;
  const ty_recording *r = p->r;
  if (p->trusting || p->mode == TY_IDLE || s->backend->gpu >= 0 || s->id >= p->checked) return false;
  const int now = p->mode == TY_CHECK ? p->at : r->nevent;
  if (p->readable == s->id && p->readable_at == now) return true;
  for (int i = 0; i < r->nvalue; i++)
    if (r->value[i].t && r->value[i].t->storage == s) return false;
  for (int i = 0; i < r->nstore; i++)
    if (r->store[i].given == s->id) return false;
  for (int i = 0; p->mode == TY_CHECK && i < p->at; i++) {       /* what stands for values in this call */
    const event *e = &r->event[i];
    if (e->target && e->target->storage == s) return false;
    for (int k = 0; k < e->nin; k++)
      if (e->actual && e->actual[k] && e->actual[k]->storage == s) return false;
  }
  p->readable = s->id;
  p->readable_at = now;
  return true;
}
