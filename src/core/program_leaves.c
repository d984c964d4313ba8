/* Leaves that a compiled function makes or ends itself, by requires_grad; gradients that a pass gives on.
 *
 * Idea: a leaf made within the function is a new tensor in each call. So the recording has a place for it (r->own), and operands and
 * gradients name the place. Invariant: outside of calls the places are empty, so that they hold nobody's memory. */
#include "program_parts.h"

void ty_take_leaf(ty_recording *r, int own, ty_tensor *t) {
  ty_release(r->own[own]);
  r->own[own] = ty_retain(t);
  for (int i = 0; i < r->nevent; i++)
    for (int k = 0; k < r->event[i].nleaf; k++) {
      leaf_change *l = &r->event[i].leaf[k];
      if (l->own != own) continue;
      ty_release(l->leaf);
      l->leaf = ty_retain(t);
    }
}

bool ty_gradients_follow(const ty_program *p) {
  for (int v = 0; v < p->r->nvalue; v++) {
    const ty_tensor *leaf = p->r->value[v].grad_of;
    if (leaf && (!leaf->grad || !ty_is_value(p, v, leaf->grad))) return false;
  }
  return true;
}

/* Notes gradients that the pass gives on as they are: a placeholder wouldn't have their history. */
void ty_note_passed(event *e, ty_tensor **grads, ty_tensor **result, int ninput) {
  for (int j = 0; grads && j < e->nroot; j++) {
    const int operand = e->nroot + j;
    if (!ty_needs_grad(grads[j])) continue;
    for (int i = 0; i < e->nleaf; i++)
      if (!e->leaf[i].kept && e->leaf[i].leaf->grad == grads[j]) e->leaf[i].same = 1 + operand;
    for (int i = 0; i < ninput; i++)
      if (result[i] == grads[j]) e->vresult[i] = -2 - operand;
  }
}

ty_status ty_program_requires(ty_ctx *ctx, ty_tensor *t, bool on) {
  ty_program *p = ctx->program;
  if (p->broken) return ty_program_broken(ctx);
  if (p->refused || p->within || p->inner || p->backward) return TY_OK;
  if (p->mode == TY_CHECK) {
    event *e = ty_next_event(p);
    if (!e || e->kind != EVENT_LEAF || e->on != on || !ty_is_operand(p, e, 0, t)) {
      TY_TRY(ty_diverge(ctx, p, "requires_grad differs"));
      return ty_program_requires(ctx, t, on);
    }
    e->actual[0] = ty_retain(t);
    e->had = ty_retain(t->grad);
    if (e->own >= 0) ty_take_leaf(p->r, e->own, t);
    ty_agreed(p);
    return TY_OK;
  }
  ty_recording *r = p->r;
  event *e = ty_program_event_new(ctx, p, EVENT_LEAF, 1);
  if (!e || !ty_note_operand(p, e, 0, t)) return ty_program_no_memory(ctx);
  e->on = on;
  e->own = -1;
  const store *st = &r->store[r->value[e->vin[0]].store];
  if (!on || !(st->internal || st->input || st->constant || t->detached > p->detached)) {
    r->asks = true;
    return TY_OK;
  }
  if (!ty_grow(&r->own, r->nown + 1, &r->own_room, sizeof *r->own)) return ty_program_no_memory(ctx);
  e->own = r->nown;
  r->own[r->nown++] = ty_retain(t);
  return TY_OK;
}
