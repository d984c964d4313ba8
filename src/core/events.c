/* A program's events: recorded, compared, and, where a call differs, done again.
 *
 * Idea: in a call that is compared, an op that agrees gives stand-ins: tensors in the recording's memory, to which nothing has been written
 * yet. They are held until the call's end, with the operands that came: from these the events can be asked for again, and the stand-ins
 * become what that gives: another recording's stand-ins, or results. Invariant: what a call that differs from all recordings leaves behind
 * is what it would have left without them. */
#include <string.h>
#include "plan.h"

/* ---- events ---- */

static event *event_new(ty_ctx *ctx, ty_program *p, event_kind kind, int nin) {
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
  char *mem = ty_malloc((sizeof(ty_operand) + sizeof(int) + sizeof(bool) + sizeof(ty_tensor *)) * (size_t)TY_MAX(nin, 1));
  if (!mem) return NULL;
  e->in = (ty_operand *)mem;
  e->actual = (ty_tensor **)(e->in + TY_MAX(nin, 1));
  e->vin = (int *)(e->actual + TY_MAX(nin, 1));
  e->needs = (bool *)(e->vin + TY_MAX(nin, 1));
  for (int i = 0; i < nin; i++) { e->vin[i] = -1; e->actual[i] = NULL; e->needs[i] = false; }
  r->nevent++;
  return e;
}

static bool note_operand(ty_program *p, event *e, int i, ty_tensor *t) {
  if (!t) return true;
  e->needs[i] = ty_needs_grad(t);
  if ((e->vin[i] = ty_value_of(p, t, TY_SEEN)) < 0) return false;
  value *v = &p->r->value[e->vin[i]];
  const store *st = &p->r->store[v->store];
  if (st->internal && !st->visible) ty_program_die(p, "a value is used that was made within backward");
  if (t->requires_grad && !v->leaf) v->leaf = ty_retain(t);
  if (!e->needs[i] && !v->plain && !st->internal && !st->input && t->storage->program != p) v->plain = ty_retain(t);
  if (t->requires_grad && v->leaf != t) ty_program_die(p, "two leaves share memory");
  if (t->node && t->node->seq < p->node && e->modes.grad_enabled && e->kind != EVENT_DETACH)
    ty_program_die(p, "a tensor from outside has a history");        /* another one in the next call */
  return true;
}

int ty_visible(ty_program *p, ty_tensor *t) {
  const int v = ty_value_of(p, t, TY_DERIVED);
  if (v >= 0) p->r->store[p->r->value[v].store].visible = true;
  return v;
}

/* Views whose base has changed take their history anew before it is asked who needs a gradient, as apply would. */
static ty_status up_to_date(const ty_call *c, ty_tensor *into) {
  for (int i = 0; c->ctx->grad_enabled && i < c->nin; i++)
    if (c->in[i].t && c->in[i].t->base) TY_TRY(ty_history(c->ctx, c->in[i].t));
  return c->ctx->grad_enabled && into && into->base ? ty_history(c->ctx, into) : TY_OK;
}

static ty_status record_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now) {
  ty_program *p = c->ctx->program;
  ty_recording *r = p->r;
  ty_op *op = c->op;
  event *e = event_new(c->ctx, p, EVENT_APPLY, c->nin);
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
    ok = note_operand(p, e, i, c->in[i].t);
  }
  if (ok && into) ok = (e->into = ty_visible(p, into)) >= 0;
  if (ok && into) e->into_needs = ty_needs_grad(into);
  if (!ok) return ty_program_no_memory(c->ctx);
  e->first = r->nstep;
  ty_tensor *const base = into ? into->base : NULL;
  const uint32_t history = base ? base->history : 0;
  const bool base_needs = ty_needs_grad(base);
  p->inner++;
  ty_status s = now(c, b, into, out);
  p->inner--;
  e = &r->event[at];
  e->moves = base && base->history != history;
  e->gains = e->moves && !base_needs && ty_needs_grad(base);
  /* the function may catch it, and does so each time: what failed before anything was done can be compared too */
  if (s != TY_OK) {
    if (s == TY_ERR && e->first == r->nstep && (e->failed = ty_malloc(TY_ERRLEN))) memcpy(e->failed, c->ctx->err, TY_ERRLEN);
    else ty_program_die(p, "an op failed");
    return s;
  }
  for (int j = 0; j < TY_MAX(op->nout, into ? 1 : 0); j++) {
    if ((e->vout[j] = ty_visible(p, out[j])) < 0) return ty_program_no_memory(c->ctx);
    e->out_needs[j] = ty_needs_grad(out[j]);
    e->own_layout[j] = out[j]->own_layout;
  }
  e->based = op->cls == TY_C_VIEW && !into && out[0]->base;
  if (into && ((e->out_needs[0] && !e->into_needs) || e->gains) && !r->store[r->value[e->into].store].internal)
    ty_program_die(p, "a tensor from outside gets a history");
  return TY_OK;
}

static bool same_attr(const ty_param *q, const ty_attr *a, const ty_attr *b) {
  if (a->set != b->set || !a->set) return a->set == b->set;
  switch (q->type) {
    case TY_P_DIMS: case TY_P_SIZES: case TY_P_INTS: case TY_P_PAIR: case TY_P_TRIPLE:
      return a->n == b->n && !memcmp(a->v, b->v, sizeof(int64_t) * a->n);
    case TY_P_ANY: return a->n == b->n && a->i == b->i;
    case TY_P_NUMBER: return !memcmp(&a->f, &b->f, sizeof a->f);
    default: return a->i == b->i;
  }
}

bool ty_is_number(const ty_operand *o) { return o->kind == TY_INT || o->kind == TY_FLOAT; }
bool ty_is_rate(const ty_op *op, int slot) { return op->cls == TY_C_OPTIM && !strcmp(op->param[slot].name, "lr"); }

/* An optimizer's numbers (betas, weight decay), which schedules change: the steps take them as they come. */
static bool is_setting(const ty_op *op, int i) { return op->cls == TY_C_OPTIM && op->param[i].type == TY_P_NUMBER; }

static bool same_modes(const ty_ctx *ctx, const event *e) {
  return ty_modes_same(ctx, &e->modes) && !memcmp(ctx->stream, e->stream, sizeof e->stream);
}

static bool is_operand(const ty_program *p, const event *e, int i, const ty_tensor *t) {
  if (e->vin[i] < 0 || !t) return e->vin[i] < 0 && !t;
  return ty_is_value(p, e->vin[i], t) && ty_needs_grad(t) == e->needs[i] && (!t->requires_grad || p->r->value[e->vin[i]].leaf == t);
}

static bool same_operand(const ty_program *p, const event *e, int i, const ty_operand *in) {
  const ty_operand *was = &e->in[i];
  if (in->kind != was->kind) return false;
  if (in->kind == TY_TENSOR) return is_operand(p, e, i, in->t);
  return in->kind == TY_NONE || (!memcmp(&in->f, &was->f, sizeof in->f) && in->i == was->i);
}

static bool agrees(ty_call *c, const event *e, ty_tensor *into) {
  const ty_program *p = c->ctx->program;
  const ty_op *op = c->op;
  if (!e || e->kind != EVENT_APPLY || e->op != op || e->nin != c->nin || (e->into >= 0) != (into != NULL) ||
      !same_modes(c->ctx, e))
    return false;
  if (op->has_list && memcmp(e->span, c->span, sizeof(ty_span) * (size_t)op->nin)) return false;
  for (int i = 0; i < c->nin; i++)
    if (!same_operand(p, e, i, &c->in[i]) &&
        !(ty_is_number(&c->in[i]) && ty_is_number(&e->in[i]) && ty_is_rate(op, ty_slot_of(c, i))))
      return false;
  for (int i = 0; i < op->nparam; i++)
    if (op->param[i].type > TY_P_TENSORS && !is_setting(op, i) &&
        !same_attr(&op->param[i], &e->at[op->param[i].slot], &c->at[op->param[i].slot]))
      return false;
  return !into || (ty_is_value(p, e->into, into) && ty_needs_grad(into) == e->into_needs && (!e->moves || into->base));
}

/* What stands for value v until the steps have run. */
static ty_tensor *stand_in(ty_program *p, int v, bool needs) {
  ty_tensor *t = ty_alias(p->r->value[v].t);
  if (t && needs && !ty_mark_graph_used(t)) { ty_release(t); return NULL; }
  return t;
}

static void pending_change(ty_tensor *t, const ty_op *op) {
  t->storage->pending++;
  ty_keep_mark(t, op);
}

static event *next_event(ty_program *p) { return p->at < p->r->nevent ? &p->r->event[p->at] : NULL; }

static ty_status check_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now) {
  ty_program *p = c->ctx->program;
  ty_recording *r = p->r;
  event *e = next_event(p);
  if (!agrees(c, e, into)) {
    char why[96];
    snprintf(why, sizeof why, "%s differs", c->op->shown);
    TY_TRY(ty_diverge(c->ctx, p, why));
    return ty_program_apply(c, b, into, out, now);
  }
  if (e->failed) {
    for (int i = 0; i < c->nin; i++) e->actual[i] = ty_retain(c->in[i].t);
    if (into) e->target = ty_retain(into);
    memcpy(c->ctx->err, e->failed, TY_ERRLEN);
    p->at++;
    return TY_ERR;
  }
  if (c->op->cls == TY_C_MOVE && r->store[r->value[e->vout[0]].store].constant) {      /* the call's own: it may be changed */
    p->within++;
    const ty_status s = now(c, b, into, out);
    p->within--;
    if (s != TY_OK) return s;
    e->shell[0] = ty_retain(out[0]);
    r->store[r->value[e->vout[0]].store].given = out[0]->storage->id;
    e->actual[0] = ty_retain(c->in[0].t);
    p->at++;
    return TY_OK;
  }
  ty_tensor *made[TY_MAXOUT] = {NULL};
  for (int j = 0; j < c->op->nout && !into; j++)
    if (!(made[j] = stand_in(p, e->vout[j], e->out_needs[j]))) {
      while (j--) ty_release(made[j]);
      return ty_program_no_memory(c->ctx);
    }
  for (int i = 0; i < c->nin; i++) {
    e->actual[i] = ty_retain(c->in[i].t);
    if (ty_is_number(&c->in[i]) && memcmp(&c->in[i].f, &e->in[i].f, sizeof(double))) {      /* a learning rate: the steps get it too */
      e->in[i] = c->in[i];
      ty_plan_rate(r, e->first, i, c->in[i].f);
    }
  }
  for (int k = 0; k < c->op->nparam; k++) {
    const int slot = c->op->param[k].slot;
    if (!is_setting(c->op, k) || e->at[slot].f == c->at[slot].f) continue;
    e->at[slot].f = r->step[e->first].call.at[slot].f = c->at[slot].f;
    r->moved = r->moved || r->gpu;         /* a graph keeps numbers as they are */
  }
  ty_each_mutated(c, pending_change);
  if (into) {
    pending_change(into, c->op);
    if (e->out_needs[0] && !e->into_needs && !ty_mark_graph_used(into)) return ty_program_no_memory(c->ctx);
    if (e->gains && !ty_mark_graph_used(into->base)) return ty_program_no_memory(c->ctx);
    if (e->moves) into->base->history++;
    e->target = ty_retain(into);
    out[0] = ty_retain(into);
  } else
    for (int j = 0; j < c->op->nout; j++) {
      made[j]->own_layout = e->own_layout[j];
      if (e->based) {
        ty_tensor *const x = c->in[0].t;
        made[j]->base = ty_retain(x->base ? x->base : x);
        made[j]->history = made[j]->base->history;
      }
      out[j] = made[j];
      e->shell[j] = ty_retain(made[j]);
    }
  p->at++;
  return TY_OK;
}

ty_status ty_program_apply(ty_call *c, const ty_backend *b, ty_tensor *into, ty_tensor **out, ty_apply_now now) {
  ty_program *p = c->ctx->program;
  if (p->broken) return ty_program_broken(c->ctx);
  if (p->within || p->dead) return now(c, b, into, out);
  if (p->inner || p->backward) {           /* part of an event; its views are known to come from what the event was given */
    TY_TRY(now(c, b, into, out));
    return c->op->cls == TY_C_VIEW && p->mode == TY_RECORD && ty_value_of(p, out[0], TY_DERIVED) < 0 ? ty_program_no_memory(c->ctx) : TY_OK;
  }
  TY_TRY(up_to_date(c, into));
  return p->mode == TY_CHECK ? check_apply(c, b, into, out, now) : record_apply(c, b, into, out, now);
}

/* One of the library's own autograd.Functions has been called, whose results have no history yet. Its operands and then its results are
   the event's operands. What it does in backward follows from these and from the events before, which are its forward's. */
ty_status ty_program_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout) {
  ty_program *p = ctx->program;
  if (p->broken) return ty_program_broken(ctx);
  if (p->dead || p->within || p->inner || p->backward) return ty_record_function(ctx, f, in, nin, out, nout);
  event *e = p->mode == TY_CHECK ? next_event(p) : event_new(ctx, p, EVENT_FUNCTION, nin + nout);
  if (p->mode == TY_CHECK) {
    bool same = e && e->kind == EVENT_FUNCTION && e->nin == nin + nout && e->nroot == nin && same_modes(ctx, e);
    for (int i = 0; same && i < nin + nout; i++) same = is_operand(p, e, i, i < nin ? in[i] : out[i - nin]);
    if (!same) {
      TY_TRY(ty_diverge(ctx, p, "an autograd.Function differs"));
      return ty_program_function(ctx, f, in, nin, out, nout);
    }
    for (int i = 0; i < nin + nout; i++) e->actual[i] = ty_retain(i < nin ? in[i] : out[i - nin]);
    p->at++;
  } else {
    bool ok = e != NULL;
    for (int i = 0; ok && i < nin + nout; i++) ok = note_operand(p, e, i, i < nin ? in[i] : out[i - nin]);
    if (!ok) return ty_program_no_memory(ctx);
    e->nroot = nin;
  }
  e->function = f;
  return ty_record_function(ctx, f, in, nin, out, nout);
}

/* ---- gradients ---- */

static bool leaf_room(event *e) { return ty_grow(&e->leaf, e->nleaf + 1, &e->leaf_room, sizeof(leaf_change)); }

static leaf_change *changed_leaf(event *e, const ty_tensor *leaf) {
  for (int k = 0; k < e->nleaf; k++)
    if (e->leaf[k].leaf == leaf) return &e->leaf[k];
  return NULL;
}

/* A hook has taken the gradient of a leaf, which had none before, within the pass that gave it. */
static void forget_leaf(event *e, const ty_tensor *leaf) {
  leaf_change *l = changed_leaf(e, leaf);
  if (!l || l->before >= 0) return;
  ty_release(l->leaf);
  *l = e->leaf[--e->nleaf];
}

ty_status ty_program_leaf(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *before) {
  ty_program *p = ctx->program;
  if (!p || p->mode != TY_RECORD || p->dead || p->backward != 1) return TY_OK;
  event *e = &p->r->event[p->r->nevent - 1];
  leaf_change *l = changed_leaf(e, leaf);
  if (l) {
    l->scaled = leaf->grad->scaled;
    l->kept = l->kept && leaf->grad == before;
  } else {
    if (!leaf_room(e)) return ty_program_no_memory(ctx);
    l = &e->leaf[e->nleaf++];
    *l = (leaf_change){.leaf = ty_retain(leaf), .before = -1, .scaled = leaf->grad->scaled, .kept = leaf->grad == before};
    if (before && (l->before = ty_visible(p, before)) < 0) return ty_program_no_memory(ctx);
  }
  return (l->after = ty_visible(p, leaf->grad)) < 0 ? ty_program_no_memory(ctx) : TY_OK;
}

static ty_status note_backward(ty_ctx *ctx, ty_program *p, ty_tensor **roots, ty_tensor **grads, int nroot,
  ty_tensor **inputs, int ninput, ty_backward_opts o) {
  event *e = event_new(ctx, p, EVENT_BACKWARD, 2 * nroot + ninput);
  if (!e) return ty_program_no_memory(ctx);
  e->opts = o;
  e->nroot = nroot;
  e->with_inputs = inputs != NULL;
  bool ok = true;
  for (int i = 0; ok && i < nroot; i++) ok = note_operand(p, e, i, roots[i]) && note_operand(p, e, nroot + i, grads ? grads[i] : NULL);
  for (int i = 0; ok && i < ninput; i++) ok = note_operand(p, e, 2 * nroot + i, inputs[i]);
  if (o.create_graph) ty_program_die(p, "create_graph is asked for");
  return ok ? TY_OK : ty_program_no_memory(ctx);
}

static bool backward_agrees(ty_ctx *ctx, const event *e, ty_tensor **roots, ty_tensor **grads, int nroot,
  ty_tensor **inputs, int ninput, ty_backward_opts o) {
  const ty_program *p = ctx->program;
  if (!e || e->kind != EVENT_BACKWARD || e->nroot != nroot || e->nin != 2 * nroot + ninput ||
      e->with_inputs != (inputs != NULL) || !same_modes(ctx, e))
    return false;
  if (memcmp(&o, &e->opts, sizeof o)) return false;
  for (int i = 0; i < nroot; i++)
    if (!is_operand(p, e, i, roots[i]) || !is_operand(p, e, nroot + i, grads ? grads[i] : NULL)) return false;
  for (int i = 0; i < ninput; i++)
    if (!is_operand(p, e, 2 * nroot + i, inputs[i])) return false;
  for (int i = 0; i < e->nleaf; i++) {
    const leaf_change *l = &e->leaf[i];
    const ty_tensor *g = l->leaf->grad;
    if (l->before < 0 ? g != NULL : !g || !ty_is_value(p, l->before, g)) return false;
  }
  return true;
}

ty_status ty_program_backward(ty_ctx *ctx, ty_tensor **roots, ty_tensor **grads, int nroot, ty_tensor **inputs,
  int ninput, ty_tensor **result, ty_backward_opts o, ty_backward_now now) {
  ty_program *p = ctx->program;
  if (p->broken) return ty_program_broken(ctx);
  if (p->within || p->backward || p->dead) return now(ctx, roots, grads, nroot, inputs, ninput, result, o);
  if (p->mode == TY_CHECK) {
    event *e = next_event(p);
    if (backward_agrees(ctx, e, roots, grads, nroot, inputs, ninput, o)) {
      for (int i = 0; i < nroot; i++) { e->actual[i] = ty_retain(roots[i]); if (grads) e->actual[nroot + i] = ty_retain(grads[i]); }
      for (int i = 0; i < ninput; i++) {
        e->actual[2 * nroot + i] = ty_retain(inputs[i]);
        result[i] = NULL;
      }
      for (int i = 0; i < e->nleaf; i++) {
        leaf_change *l = &e->leaf[i];
        if (!l->kept) {
          ty_tensor *g = stand_in(p, l->after, false);
          if (!g) return ty_program_no_memory(ctx);
          ty_release(l->leaf->grad);
          l->leaf->grad = g;
          l->shell = ty_retain(g);
        } else l->leaf->grad->storage->pending++;
        l->leaf->grad->scaled = l->scaled;
      }
      for (int i = 0; i < ninput; i++)
        if (e->vresult[i] >= 0) {
          if (!(result[i] = stand_in(p, e->vresult[i], false))) return ty_program_no_memory(ctx);
          e->result_shell[i] = ty_retain(result[i]);
        }
      p->at++;
      return TY_OK;
    }
    TY_TRY(ty_diverge(ctx, p, "backward differs"));
    return ty_program_backward(ctx, roots, grads, nroot, inputs, ninput, result, o, now);
  }
  TY_TRY(note_backward(ctx, p, roots, grads, nroot, inputs, ninput, o));
  const int at = p->r->nevent - 1;
  p->backward++;
  ty_status s = now(ctx, roots, grads, nroot, inputs, ninput, result, o);
  p->backward--;
  if (s != TY_OK) ty_program_die(p, "a backward pass failed");
  if (s != TY_OK || p->dead) return s;
  event *e = &p->r->event[at];
  if (ninput) {
    e->vresult = ty_malloc(sizeof(int) * (size_t)ninput);
    e->result_shell = ty_malloc(sizeof(ty_tensor *) * (size_t)ninput);
    e->nresult = e->vresult && e->result_shell ? ninput : 0;
    if (!e->nresult) return ty_program_no_memory(ctx);
    for (int i = 0; i < ninput; i++) {
      e->result_shell[i] = NULL;
      e->vresult[i] = result[i] ? ty_visible(p, result[i]) : -1;
      if (result[i] && e->vresult[i] < 0) return ty_program_no_memory(ctx);
    }
  }
  return TY_OK;
}

ty_status ty_program_grad(ty_ctx *ctx, ty_tensor *leaf, ty_tensor *grad) {
  ty_program *p = ctx->program;
  if (!p || p->dead || p->within) return TY_OK;
  if (p->backward) {
    if (p->mode == TY_RECORD && !grad) forget_leaf(&p->r->event[p->r->nevent - 1], leaf);
    return TY_OK;
  }
  if (p->mode == TY_CHECK) {
    event *e = next_event(p);
    if (e && e->kind == EVENT_GRAD && e->leaf[0].leaf == leaf && is_operand(p, e, 0, grad)) {
      e->actual[0] = ty_retain(grad);
      p->at++;
      return TY_OK;
    }
    TY_TRY(ty_diverge(ctx, p, "an assigned gradient differs"));
    return ty_program_grad(ctx, leaf, grad);
  }
  event *e = event_new(ctx, p, EVENT_GRAD, 1);
  if (!e || !note_operand(p, e, 0, grad) || !leaf_room(e)) return ty_program_no_memory(ctx);
  e->leaf[e->nleaf++] = (leaf_change){.leaf = ty_retain(leaf), .before = -1, .after = -1};
  return TY_OK;
}

ty_status ty_program_detach(ty_ctx *ctx, ty_tensor *t, ty_tensor **out) {
  ty_program *p = ctx->program;
  const bool idle = !p || p->dead || p->within || p->inner || p->backward;
  if (!idle && p->mode == TY_CHECK) {
    event *e = next_event(p);
    if (!e || e->kind != EVENT_DETACH || !is_operand(p, e, 0, t)) {
      TY_TRY(ty_diverge(ctx, p, "detach differs"));
      return ty_program_detach(ctx, t, out);
    }
    if (!(*out = ty_alias(t))) return ty_program_no_memory(ctx);
    e->actual[0] = ty_retain(t);
    e->shell[0] = ty_retain(*out);
    p->at++;
    return TY_OK;
  }
  if (!idle) {
    event *e = event_new(ctx, p, EVENT_DETACH, 1);
    if (!e || !note_operand(p, e, 0, t)) return ty_program_no_memory(ctx);
  }
  return (*out = ty_alias(t)) ? TY_OK : ty_program_no_memory(ctx);
}

/* ---- differing ---- */

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
  h->node = t->node;
  if (t->node) atomic_fetch_add_explicit(&t->node->refs, 1, memory_order_relaxed);
  h->out = t->out;
  h->history = t->history;
  h->base = ty_retain(t->base);
  memcpy(h->stride, t->stride, sizeof h->stride);
  ty_node_release(node);
  ty_release(base);
}

/* *shell, which was handed out for what is t now, becomes that; and stays what was handed out, should the call differ once more. */
static void take_place(ty_program *p, ty_tensor *shell, ty_tensor *t) {
  event *e = p->dead || p->mode != TY_CHECK || !p->at ? NULL : &p->r->event[p->at - 1];
  ty_become(shell, t);
  if (!e) return;
  ty_tensor **at = NULL;
  for (int j = 0; j < TY_MAXOUT; j++)
    if (e->shell[j] == t) at = &e->shell[j];
  for (int i = 0; i < e->nleaf; i++)
    if (e->leaf[i].shell == t) at = &e->leaf[i].shell;
  for (int i = 0; i < e->nresult; i++)
    if (e->result_shell[i] == t) at = &e->result_shell[i];
  if (!at) return;
  *at = ty_retain(shell);
  ty_release(t);
}

/* One event that agreed is asked for again. */
static ty_status redo(ty_ctx *ctx, ty_program *p, event *e) {
  ty_status s = TY_OK;
  ty_modes_set(ctx, &e->modes);
  ctx->device = e->modes.place;
  memcpy(ctx->stream, e->stream, sizeof e->stream);
  if (e->kind == EVENT_APPLY) {
    ty_tensor *out[TY_MAXOUT] = {NULL};
    ty_attr at[TY_MAXATTR];                /* what is applied has its dims and indices made to count from 0, in place */
    ty_operand *in = ty_malloc(sizeof *in * (size_t)TY_MAX(e->nin, 1));
    if (!in) return ty_program_no_memory(ctx);
    memcpy(at, e->at, sizeof *at * (size_t)e->op->nattr);
    for (int i = 0; i < e->nin; i++) { in[i] = e->in[i]; in[i].t = e->actual[i]; }
    s = ty_apply(ctx, e->op, in, e->nin, e->span, at, e->target, out);
    ty_free(in);
    for (int j = 0; s == TY_OK && j < TY_MAX(e->op->nout, e->target ? 1 : 0); j++) {
      if (e->shell[j] && !e->failed) take_place(p, e->shell[j], out[j]);
      ty_release(out[j]);
    }
    return e->failed && s != TY_OOM ? TY_OK : s;
  }
  if (e->kind == EVENT_DETACH) {
    ty_tensor *t;
    TY_TRY(ty_program_detach(ctx, e->actual[0], &t));
    take_place(p, e->shell[0], t);
    ty_release(t);
    return TY_OK;
  }
  if (e->kind == EVENT_FUNCTION)
    return ty_program_function(ctx, e->function, e->actual, e->nroot, e->actual + e->nroot, e->nin - e->nroot);
  if (e->kind == EVENT_GRAD) {
    ty_tensor *leaf = e->leaf[0].leaf;
    TY_TRY(ty_program_grad(ctx, leaf, e->actual[0]));
    ty_retain(e->actual[0]);
    ty_release(leaf->grad);
    leaf->grad = e->actual[0];
    return TY_OK;
  }
  const int nin = e->nin - 2 * e->nroot;
  ty_tensor **result = ty_malloc(sizeof(ty_tensor *) * (size_t)TY_MAX(nin, 1));
  if (!result) return ty_program_no_memory(ctx);
  s = ty_backward(ctx, e->actual, e->actual + e->nroot, e->nroot, e->with_inputs ? e->actual + 2 * e->nroot : NULL, nin, result, e->opts);
  for (int i = 0; s == TY_OK && i < e->nleaf; i++) {
    leaf_change *l = &e->leaf[i];
    if (!l->shell || !l->leaf->grad) continue;
    take_place(p, l->shell, l->leaf->grad);      /* the function may hold it: it is the leaf's gradient from now on */
    ty_release(l->leaf->grad);
    l->leaf->grad = ty_retain(l->shell);
  }
  for (int i = 0; s == TY_OK && i < nin; i++) {
    if (e->result_shell[i] && result[i]) take_place(p, e->result_shell[i], result[i]);
    ty_release(result[i]);
  }
  ty_free(result);
  return s;
}

void ty_clear_pending(ty_recording *r) {
  for (int i = 0; i < r->nvalue; i++)
    if (r->value[i].t) r->value[i].t->storage->pending = 0;
}

/* Compares the call, whose inputs are those of `was`, with a recording that it hasn't been compared with, or records it. */
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

/* What has agreed with p's recording is asked for again: of another one, or, where p is dead, for good. */
static ty_status redo_all(ty_ctx *ctx, ty_program *p) {
  ty_recording *was = p->r;
  const int n = p->at;
  const modes modes = ty_modes_now(ctx);
  void *stream[TY_MAXGPU];
  memcpy(stream, ctx->stream, sizeof stream);
  ty_clear_pending(was);
  ty_rewind_grads(was);
  ty_status s = p->dead ? TY_OK : go_on(ctx, p, was);
  for (int i = 0; i < n && s == TY_OK; i++) s = redo(ctx, p, &was->event[i]);
  ty_modes_set(ctx, &modes);
  memcpy(ctx->stream, stream, sizeof stream);
  ty_plan_let_go(was);
  if (s != TY_OK) {
    ty_program_die(p, "a call that had gone well failed when it was done again");
    p->broken = true;
  }
  return s;
}

ty_status ty_diverge(ty_ctx *ctx, ty_program *p, const char *why) {
  snprintf(p->why, sizeof p->why, "%s", why);            /* unless there comes a better one */
  return redo_all(ctx, p);
}

ty_status ty_program_settle(ty_ctx *ctx, const char *what) {
  ty_program *p = ctx->program;
  if (p && p->broken) return ty_program_broken(ctx);
  if (!p || p->dead || p->within) return TY_OK;
  ty_program_die(p, what);
  return p->mode == TY_CHECK ? redo_all(ctx, p) : TY_OK;
}
