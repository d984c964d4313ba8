/* What users attach to the tape: gradient hooks, anomaly detection, and hooks that pack what is saved for backward.
 *
 * Idea: the core knows hooks by a key in the private table and calls back through ty_host. Invariants: hooks run protected, under the
 * pass's modes; pack and unpack run with recording off; an error in a hook comes back as a status. */
#include <string.h>
#include "program.h"
#include "tape.h"

/* ---- hooks ---- */

/* In a list of hooks, a function is called with the gradient before it is accumulated, {function} with the leaf afterwards, and the field
 * `retain` with the gradient after all functions. */
static int run_hooks(lua_State *L) {
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_private(L, TY_R_ANCHORS);
  ty_get_keyed(L, r->key);
  if (lua_isnil(L, -1)) return 0;
  const int list = lua_gettop(L);
  if (r->leaf) ty_push_shared(L, r->s, r->leaf);
  else ty_new_handle(L, r->s)->t = ty_retain(*r->gout);
  for (int i = 1; i <= (int)lua_objlen(L, list); i++) {
    lua_settop(L, list + 1);
    lua_rawgeti(L, list, i);
    if (lua_istable(L, -1) && r->leaf) lua_rawgeti(L, -1, 1);
    else if (!lua_isfunction(L, -1) || r->leaf) continue;              /* removed, or not for now */
    lua_pushvalue(L, list + 1);
    lua_call(L, 1, 1);
    if (r->leaf || lua_isnil(L, -1)) continue;
    ty_check(L, -1, "register_hook", "what the hook returned");
    lua_replace(L, list + 1);
  }
  if (r->leaf) return 0;
  ty_tensor *g = ty_check(L, list + 1, "register_hook", "the gradient");
  if (g != *r->gout) {
    if (g->dtype != (*r->gout)->dtype || g->storage->backend != (*r->gout)->storage->backend)
      return ty_throw(L, "register_hook: the hook returned %s on %s for a gradient of %s on %s", ty_dtype_names[g->dtype],
        g->storage->backend->name, ty_dtype_names[(*r->gout)->dtype], (*r->gout)->storage->backend->name);
    if (!TY_SAME_SHAPE(g, *r->gout))
      return ty_throw(L, "register_hook: the hook returned shape %s for a gradient of shape %s", ty_shape_of(g), ty_shape_of(*r->gout));
    ty_note_contexts(L, list + 1);
    ty_retain(g);
    ty_release(*r->gout);
    *r->gout = g;
  }
  lua_getfield(L, list, "retain");
  if (lua_isfunction(L, -1)) {
    lua_pushvalue(L, list + 1);
    lua_call(L, 1, 0);
  }
  return 0;
}

ty_status ty_lua_hook(ty_ctx *ctx, uint64_t key, ty_tensor **grad, ty_tensor *leaf) {
  ty_tape_call r = {.ctx = ctx, .gout = grad, .key = key, .leaf = leaf};
  return ty_protected(&r, TY_RUN_HOOKS);
}

void ty_anchor(lua_State *L, int index) {
  ty_handle *h = lua_touserdata(L, index);
  lua_newtable(L);
  lua_insert(L, -2);
  lua_rawseti(L, -2, 1);
  if (h->anchored) { lua_getfenv(L, index); lua_rawseti(L, -2, 2); }
  lua_setfenv(L, index);
  h->anchored = true;
}

uint64_t ty_new_key(lua_State *L, ty_state *s, int value) {
  uint64_t key = s->next_key++;
  ty_private(L, TY_R_ANCHORS);
  lua_pushvalue(L, value);
  ty_set_keyed(L, key);
  lua_pop(L, 1);
  return key;
}

static int register_hook(lua_State *L) { /* x, fn -> the list of hooks and fn's place in it */
  ty_state *s = ty_state_of(L);
  lua_settop(L, 2);
  lua_newtable(L);                         /* this and ty_settle come before ty_check: finalizers may free the tensor */
  ty_settle(L, "a hook is registered");
  ty_tensor *t = ty_check(L, 1, "register_hook", "argument 1");
  if (lua_type(L, 2) != LUA_TFUNCTION) return ty_throw(L, "register_hook: argument 2 must be a function, got %s", ty_type_text(L, 2));
  if (!ty_needs_grad(t)) return ty_throw(L, "register_hook: the tensor doesn't require grad");
  if (ty_history(ty_ctx_of(L, s), t) != TY_OK) return ty_raise(L, ty_ctx_of(L, s));
  ty_hooks **hooks = t->node ? &t->node->hook[t->out] : &t->hooks;
  bool known = false;
  if (*hooks) {
    ty_private(L, TY_R_ANCHORS);
    ty_get_keyed(L, (*hooks)->key);
    lua_remove(L, -2);
    known = lua_istable(L, -1);
    if (known) lua_replace(L, 3);
    else lua_pop(L, 1);
  }
  if (!known) {
    uint64_t key = ty_new_key(L, s, 3);
    if (!*hooks) {
      *hooks = ty_malloc(sizeof **hooks);
      if (!*hooks) return ty_throw(L, "register_hook: out of memory");
      **hooks = (ty_hooks){0};
    }
    (*hooks)->key = key;
  }
  if (!known || !((ty_handle *)lua_touserdata(L, 1))->anchored) {        /* else the handle holds the list already */
    lua_pushvalue(L, 3);
    ty_anchor(L, 1);
  }
  (*hooks)->idle = false;
  int n = (int)lua_objlen(L, 3) + 1;
  lua_pushvalue(L, 2);
  lua_rawseti(L, 3, n);
  if (!t->node) ty_leaf_hooks_registered++;              /* a result's hook only ends the recording, above */
  lua_pushinteger(L, n);
  return 2;
}

/* The handle at 1 is being collected. Tensors that were computed from t before it got hooks don't share its environment. Where
 * such tensors may still need t's gradient, its hooks are kept as long as its part in the tape. */
void ty_keep_hooks(lua_State *L, const ty_tensor *t) {
  ty_hooks *h = t->node ? t->node->hook[t->out] : t->hooks;
  if (!h || h->drop || (atomic_load(&t->refs) == 1 && (!t->node || atomic_load(&t->node->refs) == 1))) return;
  ty_private(L, TY_R_ANCHORS);
  ty_get_keyed(L, h->key);
  if (!lua_isnil(L, -1)) h->owner = ty_own(L, t->storage->account, h->key, &h->drop);
  lua_pop(L, 2);
}

/* The gradient's part in the tape owns the contexts of the running pass: a leaf's .grad has no handle to hold them. As in PyTorch, such a
 * gradient can reach its leaf, and both live until .grad is set to nil. */
static int run_hold(lua_State *L) {
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_private(L, TY_R_PASS);
  if (!lua_istable(L, 2)) return 0;
  lua_pushnil(L);
  if (!lua_next(L, 2)) return 0;
  lua_settop(L, 2);
  ty_settle(L, "a .grad with a history holds what an autograd.Function saved");      /* placeholders have no part in the tape */
  if (!(*r->gout)->node) return 0;
  ty_hooks **h = &(*r->gout)->node->hook[(*r->gout)->out];
  ty_private(L, TY_R_ANCHORS);
  if (*h) ty_get_keyed(L, (*h)->key);                      /* the list of the gradient's hooks, if it has any */
  if (!lua_istable(L, 4)) {
    lua_settop(L, 3);
    lua_newtable(L);
    const uint64_t key = ty_new_key(L, r->s, 4);
    if (!*h && (*h = ty_malloc(sizeof **h))) **h = (ty_hooks){.idle = true};
    if (!*h) return ty_throw(L, "backward: out of memory");
    (*h)->key = key;
  }
  lua_pushvalue(L, 2);
  lua_pushboolean(L, true);
  lua_rawset(L, 4);
  if (!(*h)->drop && !((*h)->owner = ty_own(L, r->s->account, (*h)->key, &(*h)->drop))) return ty_throw(L, "backward: out of memory");
  return 0;
}

ty_status ty_lua_history(ty_ctx *ctx, ty_tensor *grad) {
  ty_tape_call r = {.ctx = ctx, .gout = &grad};
  ty_retain(grad);
  const ty_status st = ty_protected(&r, TY_RUN_HOLD);
  ty_release(grad);
  return st;
}

/* ---- anomalies ---- */

void ty_note_place(lua_State *L, const ty_tensor *result) {
  if (!result || !result->node || result->node->location) return;
  ty_push_location(L);
  result->node->location = strdup(lua_tostring(L, -1));
  lua_pop(L, 1);
}

/* watch(on, fn) -> whether it was on in this coroutine: while it is, fn(name of the op, place of its call or nil, gradients by operand)
 * is called after each rule. Without arguments it only tells. */
static int watch(lua_State *L) {
  ty_state *s = ty_state_of(L);
  const bool was = ty_modes_of(L, s)->watchful, on = lua_toboolean(L, 1);
  if (lua_gettop(L) && on != was) {
    ty_settle(L, "anomaly detection is switched");
    lua_settop(L, 2);
    lua_rawseti(L, lua_upvalueindex(2), TY_R_WATCHER);
    ty_own_modes(L, s)->watchful = on;
    ty_modes_share_again(L, s);
  }
  lua_pushboolean(L, was);
  return 1;
}

static int run_watch(lua_State *L) {
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_node *n = r->node;
  ty_private(L, TY_R_WATCHER);
  lua_pushstring(L, n->op ? n->op->shown : "Function");
  if (n->location) lua_pushstring(L, n->location);
  else lua_pushnil(L);
  lua_newtable(L);
  for (int i = 0; i < n->nin; i++) {
    if (!r->gin[i]) continue;
    ty_new_handle(L, r->s)->t = ty_retain(r->gin[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 3, 0);
  return 0;
}

/* ---- packing: another value in a saved tensor's place ---- */

static int run_pack(lua_State *L) {
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_private(L, TY_R_ANCHORS);
  ty_get_keyed(L, r->key);                         /* {pack, unpack} */
  const int hooks = lua_gettop(L);
  if (!lua_istable(L, hooks)) return ty_throw(L, "saved_tensors_hooks: the hooks have been collected");
  lua_createtable(L, 2, 0);
  lua_rawgeti(L, hooks, 1);
  if (r->leaf) ty_push_shared(L, r->s, r->leaf);
  else ty_new_handle(L, r->s)->t = ty_retain(*r->saved);
  lua_call(L, 1, 1);
  lua_rawseti(L, -2, 1);
  lua_rawgeti(L, hooks, 2);
  lua_rawseti(L, -2, 2);                                   /* {value, unpack} */
  ty_hooks *packed = ty_malloc(sizeof *packed);
  if (!packed) return ty_throw(L, "saved_tensors_hooks: out of memory");
  *packed = (ty_hooks){.key = r->s->next_key++};
  packed->owner = ty_own(L, r->s->account, packed->key, &packed->drop);
  if (!packed->owner) { ty_free(packed); return ty_throw(L, "saved_tensors_hooks: out of memory"); }
  r->packed = packed;
  return 0;
}

static int run_unpack(lua_State *L) {
  ty_tape_call *r = lua_touserdata(L, 1);
  ty_private(L, TY_R_OWNERS);
  ty_get_keyed(L, r->key);
  if (!lua_istable(L, -1)) return ty_throw(L, "saved_tensors_hooks: what was packed has been collected");
  lua_rawgeti(L, -1, 2);
  lua_rawgeti(L, -2, 1);
  lua_call(L, 1, 1);
  *r->saved = ty_retain(ty_check(L, -1, "saved_tensors_hooks", "what unpack returned"));
  return 0;
}

/* As ty_protected, with recording and packing off. */
static ty_status quietly(ty_tape_call *r, int which) {
  ty_modes *m = (ty_modes *)r->ctx;                        /* some mode isn't the default, so they are the coroutine's own */
  const bool grad = r->ctx->grad_enabled;
  const uint64_t packs = r->ctx->packs;
  m->pinned++;
  r->ctx->grad_enabled = false;
  r->ctx->packs = 0;
  const ty_status st = ty_protected(r, which);
  r->ctx->grad_enabled = grad;
  r->ctx->packs = packs;
  m->pinned--;
  return st;
}

ty_status ty_lua_pack(ty_ctx *ctx, ty_tensor *t, bool leaf, ty_hooks **out) {
  ty_tape_call r = {.ctx = ctx, .saved = &t, .key = ctx->packs, .leaf = leaf ? t : NULL};
  const uint32_t before = ty_version(t);
  TY_TRY(quietly(&r, TY_RUN_PACK));
  *out = r.packed;
  return ty_version(t) == before ? TY_OK : ty_error(ctx, "saved_tensors_hooks: pack has changed the tensor that it was given");
}

ty_status ty_lua_unpack(ty_ctx *ctx, const ty_hooks *packed, ty_tensor **out) {
  ty_tape_call r = {.ctx = ctx, .saved = out, .key = packed->key};
  return quietly(&r, TY_RUN_UNPACK);
}

/* saved_hooks({pack, unpack} or false: none) -> the former ones, or nil; without an argument only asks. The caller keeps the list alive. */
static int saved_hooks(lua_State *L) {
  ty_state *s = ty_state_of(L);
  const uint64_t before = ty_ctx_of(L, s)->packs;
  if (!lua_isnone(L, 1)) {
    if (lua_toboolean(L, 1)) luaL_checktype(L, 1, LUA_TTABLE);
    ty_settle(L, "saved tensors are packed");
    const uint64_t key = lua_toboolean(L, 1) ? ty_new_key(L, s, 1) : 0;
    ty_own_modes(L, s)->ctx.packs = key;
    ty_modes_share_again(L, s);
  }
  ty_private(L, TY_R_ANCHORS);
  ty_get_keyed(L, before);
  return 1;
}

void ty_open_hooks(lua_State *L, int run) {
  static const struct { lua_CFunction f; int which; } all[] = {{run_hooks, TY_RUN_HOOKS}, {run_hold, TY_RUN_HOLD},
    {run_watch, TY_RUN_WATCH}, {run_pack, TY_RUN_PACK}, {run_unpack, TY_RUN_UNPACK}};
  ty_add(L, "register_hook", register_hook);
  ty_add(L, "watch", watch);
  ty_add(L, "saved_hooks", saved_hooks);
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
    ty_closure(L, all[i].f, 0);
    lua_rawseti(L, run, all[i].which);
  }
}
