/* Ops called from Lua: from parsed arguments (args.c) to results on the stack.
 *
 * Idea: the results' empty handles are made first, since that may run finalizers or err; then nothing allocates in Lua until the op is
 * done. Invariant: operands are held in C while it runs. */
#include "binding.h"

int ty_push_results(lua_State *L, ty_state *s, const ty_op *op) {
  ty_pace(L, s);
  for (int i = 0; i < op->nout; i++) ty_new_handle(L, s);
  return lua_gettop(L) - op->nout + 1;
}

int ty_call_op(lua_State *L, ty_state *s, ty_op *op, ty_args *a) {
  ty_tensor *out[TY_MAXOUT] = {NULL};
  const int nout = a->out ? 1 : op->nout;
  ty_ctx *ctx = ty_ctx_of(L, s);
  for (int i = 0; i < a->nin; i++) ty_retain(a->in[i].t);    /* short of memory, apply runs the collector: finalizers may free these */
  ty_status st;
  if (op->made) {
    ty_call c = {.ctx = ctx, .op = op, .in = a->in, .nin = a->nin, .at = a->at};
    st = op->made(&c);
    out[0] = c.out[0];
  } else st = ty_apply(ctx, op, a->in, a->nin, op->has_list ? a->span : NULL, a->at, a->out ? a->in[0].t : NULL, out);
  for (int i = 0; i < a->nin; i++) ty_release(a->in[i].t);
  if (st != TY_OK) return ty_raise(L, ctx);
  for (int i = 0; i < op->nout; i++) {
    if (a->out) { ty_release(out[i]); continue; }
    ty_handle *h = lua_touserdata(L, a->result + i);
    h->t = out[i];
    if (a->made.pinned && ty_to_pinned(L, ctx, &h->t) != TY_OK) return ty_raise(L, ctx);
    if (!a->made.requires_grad) continue;
    if (!ty_is_float(h->t->dtype))
      return ty_throw(L, "%s: only floating tensors can require grad, got %s", op->shown, ty_dtype_names[h->t->dtype]);
    ty_need_rules(L, s);
    if (ty_set_requires_grad(ctx, h->t, true) != TY_OK) return ty_raise(L, ctx);
    ty_register(L, a->result + i);
  }
  for (int i = 0; i < nout; i++) {
    lua_pushvalue(L, a->out ? a->out : a->result + i);
    if (a->anchors) ty_set_anchor(L, lua_gettop(L), a->anchors);
  }
  if (((const ty_modes *)ctx)->watchful && nout) ty_note_place(L, ty_test(L, -nout));
  return nout;
}

int ty_run_op(lua_State *L, ty_op *op, int into) {
  ty_state *s = ty_state_of(L);
  const int top = lua_gettop(L);
  ty_args a;
  a.out = into;
  if (into) ty_pace(L, s);
  else a.result = ty_push_results(L, s, op);
  ty_parse(L, op, 1, top, &a);
  return ty_call_op(L, s, op, &a);
}

ty_tensor *ty_simple(lua_State *L, ty_state *s, ty_op_id id, ty_operand a, ty_operand b, ty_attr *at, ty_tensor *into) {
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_tensor *out, *held[3] = {ty_retain(a.t), ty_retain(b.t), ty_retain(into)};    /* as in ty_call_op */
  ty_handle *h = into ? NULL : lua_touserdata(L, -1);
  ty_status st = ty_call_op2(ctx, id, a, b, at, into, &out);
  for (int i = 0; i < 3; i++) ty_release(held[i]);
  if (st != TY_OK) ty_raise(L, ctx);
  if (into) ty_release(out);
  else h->t = out;
  return out;
}
