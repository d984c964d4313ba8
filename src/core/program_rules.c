/* Users' autograd.Functions within programs: their backward is Lua code, which a backward pass asks for gradients.
 *
 * Idea: what such a function does in backward is recorded as events within the pass's event. In check the function is asked again, with
 * placeholders for the gradients, and what it does is compared. Where it differs, the whole pass is done again, but functions
 * that had answered are not asked twice: their events are redone and their answers hold. Only the one that differed is asked again.
 * Invariant: an answer is used only with the gradients that it was given for. */
#include <string.h>
#include "program_parts.h"

/* An autograd.Function has been called; its results have no history yet. The event's operands are its arguments, then its results. What an
 * internal one does in backward follows from these and from the earlier events, its forward. */
ty_status ty_program_function(ty_ctx *ctx, ty_function f, ty_tensor **in, int nin, ty_tensor **out, int nout) {
  ty_program *p = ctx->program;
  if (p->broken) return ty_program_broken(ctx);
  if (p->refused || p->within || p->inner || p->backward) return ty_record_function(ctx, f, in, nin, out, nout);
  event *e = p->mode == TY_CHECK ? ty_next_event(p) : ty_program_event_new(ctx, p, EVENT_FUNCTION, nin + nout);
  if (p->mode == TY_CHECK) {
    if (!e || e->kind != EVENT_FUNCTION || e->function.internal != f.internal || !ty_same_operands(p, e, in, nin, out, nout)) {
      TY_TRY(ty_diverge(ctx, p, "an autograd.Function differs"));
      return ty_program_function(ctx, f, in, nin, out, nout);
    }
    ty_hold_operands(e, in, nin, out, nout);
    ty_agreed(p);
  } else if (!e || !ty_note_operands(p, e, in, nin, out, nout)) return ty_program_no_memory(ctx);
  e->function = f;
  const int at = (int)(e - p->r->event);
  TY_TRY(ty_record_function(ctx, f, in, nin, out, nout));
  for (int j = 0; j < nout && p->mode == TY_CHECK && !e->node; j++) {
    if (!out[j] || !out[j]->node || out[j]->node->key != f.key) continue;
    p->r->event[at].node = ty_node_retain(out[j]->node);
  }
  return TY_OK;
}

/* The function's gradients: its earlier answer to the same question (p->told), or else what it answers now. */
static ty_status answer(ty_ctx *ctx, ty_program *p, ty_node *n, ty_tensor **gout, const bool *needs, ty_tensor **gin) {
  ty_recording *const by = p->told;
  const int end = p->told_end, at = p->tell;
  ty_status s = TY_OK;
  const event *e = by && at <= end && at < by->nevent ? &by->event[at] : NULL;
  p->told = NULL;                          /* nested passes have their own */
  if (!e || e->kind != EVENT_RULE || (at == end && !e->failed)) s = ctx->host->rule(ctx, n, gout, needs, gin);
  else {
    const modes modes = ty_modes_now(ctx);
    void *stream[TY_MAXGPU];
    memcpy(stream, ctx->stream, sizeof stream);
    for (int k = 0; k < n->nout; k++) {
      if (!gout[k] || !e->actual[k]) continue;
      ty_become(e->actual[k], gout[k]);    /* the function may hold the placeholder */
      ty_release(gout[k]);
      gout[k] = ty_retain(e->actual[k]);
    }
    for (int i = at + 1; i < e->last && s == TY_OK; i = by->event[i].end) s = ty_redo(ctx, p, by, i);
    if (s == TY_OK && e->failed) s = ty_error(ctx, "%s", e->failed);
    for (int k = 0; k < n->nin && s == TY_OK; k++) gin[k] = needs[k] ? ty_retain(e->result_placeholder[k]) : NULL;
    ty_modes_set(ctx, &modes);
    memcpy(ctx->stream, stream, sizeof stream);
    if (s == TY_OK && !p->broken) p->tell = e->end;
  }
  p->told = by;
  return s;
}

ty_status ty_told(ty_ctx *ctx, ty_program *p, ty_recording *by, int first, int end, const ty_backward_call *b, ty_backward_now now) {
  ty_recording *const was = p->told;
  const int told_first = p->told_first, tell = p->tell, told_end = p->told_end;
  p->told = by;
  p->told_first = p->tell = first;
  p->told_end = end;
  const ty_status s = now ? ty_program_backward(ctx, b, now) : ty_backward(ctx, b);
  p->told = was;
  p->told_first = told_first;
  p->tell = tell;
  p->told_end = told_end;
  return s;
}

static int event_of(const ty_recording *r, const ty_node *n) {
  int i = r->nevent;
  while (i-- > 0 && (r->event[i].kind != EVENT_FUNCTION || r->event[i].function.key != n->key)) {}
  return i;
}

ty_status ty_program_rule(ty_ctx *ctx, ty_node *n, ty_tensor **gout, const bool *needs, ty_tensor **gin) {
  ty_program *p = ctx->program;
  if (p->refused || p->within) return answer(ctx, p, n, gout, needs, gin);
  const int of = p->backward == 1 ? event_of(p->r, n) : -1, at = p->r->nevent, pass = p->pass;
  if (of < 0) {                            /* it was called within a pass, by a checkpoint */
    TY_TRY(ty_program_settle(ctx, "autograd.Function runs Lua in backward"));
    return answer(ctx, p, n, gout, needs, gin);
  }
  event *e = ty_program_event_new(ctx, p, EVENT_RULE, n->nout);
  bool ok = e != NULL;
  for (int k = 0; ok && k < n->nout; k++)
    if (gout[k]) ok = ty_visible(p, gout[k]) >= 0 && ty_note_operand(p, e, k, gout[k]);
  if (!ok || !(e->wanted = ty_malloc(sizeof(bool) * (size_t)TY_MAX(n->nin, 1)))) return ty_program_no_memory(ctx);
  memcpy(e->wanted, needs, sizeof(bool) * (size_t)n->nin);
  e->of = of;
  e->nroot = n->nin;
  p->backward--;
  const ty_status s = answer(ctx, p, n, gout, needs, gin);
  p->backward++;
  p->pass = pass;
  p->r->event[at].end = p->r->nevent;
  for (int i = at + 1; i < p->r->nevent; i++)
    p->r->asks = p->r->asks || p->r->event[i].kind == EVENT_GRAD || p->r->event[i].kind == EVENT_BACKWARD;
  return s != TY_OK || p->refused ? s : ty_note_gradients(ctx, p, &p->r->event[at], n->nin, gin);
}

/* Asks the function whose event is at p->at; the event holds its answer. *known: the event after it, if it has answered. */
static ty_status ask(ty_ctx *ctx, ty_program *p, bool retain, int *known) {
  event *e = &p->r->event[p->at];
  ty_node *n = p->r->event[e->of].node;
  ty_tensor **gout = ty_malloc(sizeof(ty_tensor *) * (size_t)TY_MAX(e->nin + e->nroot, 1));
  if (!gout) return ty_program_no_memory(ctx);
  ty_tensor **const gin = gout + e->nin;
  memset(gout, 0, sizeof(ty_tensor *) * (size_t)(e->nin + e->nroot));
  ty_status s = TY_OK;
  for (int k = 0; k < e->nin && s == TY_OK; k++)
    if (e->vin[k] >= 0 && !(gout[k] = ty_new_placeholder(p, e->vin[k], e->needs[k] != NO_GRADIENT))) s = ty_program_no_memory(ctx);
  ty_agreed(p);
  if (s == TY_OK) s = answer(ctx, p, n, gout, e->wanted, gin);
  bool same = p->at == e->end;
  for (int k = 0; k < e->nin; k++) e->actual[k] = gout[k];               /* takes over the references */
  for (int k = 0; k < e->nroot; k++) {
    ty_tensor *g = gin[k];
    e->result_placeholder[k] = g;
    same = same && (e->vresult[k] < 0 ? !g : g && ty_is_value(p, e->vresult[k], g) && ty_needs_grad(g) == e->result_needs[k]);
  }
  ty_free(gout);
  e->last = p->at;
  if (s == TY_ERR && !p->broken && (e->failed = ty_malloc(TY_ERRLEN))) memcpy(e->failed, ctx->err, TY_ERRLEN);
  if (s != TY_OK || p->broken) return s;
  *known = e->end;
  if (!retain) ty_node_finish(n);
  return same ? TY_OK : ty_diverge(ctx, p, "the results of an autograd.Function's backward differ");
}

ty_status ty_ask_rules(ty_ctx *ctx, ty_program *p, event *e, ty_backward_opts o, int *known) {
  const ty_pass_modes was = ty_enter_pass(ctx, o);
  const int end = e->end;
  ty_status s = TY_OK;
  p->rules++;
  for (*known = p->at; s == TY_OK && !p->broken && p->at < end;) {
    s = ty_hand_out_leaves(ctx, p, e, p->at);            /* in the order of the pass itself */
    if (s == TY_OK) s = ask(ctx, p, o.retain_graph, known);
  }
  p->rules--;
  ty_leave_pass(ctx, was);
  return s;
}
