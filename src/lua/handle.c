/* Tensors in Lua: handles, each with one reference.
 *
 * Invariant: a handle's tensor is NULL after free(), a scope's end or collection, and every use checks it. */
#include <string.h>
#include "binding.h"

ty_handle *ty_is_handle(lua_State *L, int index) {
  ty_handle *h = lua_touserdata(L, index);
  return h && lua_objlen(L, index) == sizeof *h && h->magic == TY_MAGIC ? h : NULL;   /* a light userdata's length is 0 */
}

ty_tensor *ty_test(lua_State *L, int index) {
  ty_handle *h = ty_is_handle(L, index);
  return h ? h->t : NULL;
}

const char *ty_type_text(lua_State *L, int index) { return ty_is_handle(L, index) ? "tensor" : luaL_typename(L, index); }

ty_tensor *ty_check(lua_State *L, int index, const char *who, const char *what) {
  ty_handle *h = ty_is_handle(L, index);
  if (!h) ty_throw(L, "%s: %s must be a tensor, got %s%s", who, what, luaL_typename(L, index),
    index == 1 && lua_type(L, index) != LUA_TTABLE ? "; a method is called with a colon" : "");
  if (!h->t)
    ty_throw(L,
      h->state == TY_FREED ? "%s: %s was freed" : "%s: %s was released at the end of its scope: return it or keep() it",
      who, what);
  return h->t;
}

ty_handle *ty_new_handle(lua_State *L, ty_state *s) {
  ty_handle *h = lua_newuserdata(L, sizeof *h);
  memset(h, 0, sizeof *h);
  h->magic = TY_MAGIC;
  s->L = L;                                /* a finalizer may have come between, from a coroutine of its own */
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_setmetatable(L, -2);
  ty_scope *sc = ty_modes_of(L, s)->scope;
  if (sc && sc->L == L) ty_scope_enter(sc, h);
  return h;
}

void ty_push(lua_State *L, ty_state *s, ty_tensor *t) {
  ty_handle *h = ty_new_handle(L, s);
  h->t = t;
}

void ty_register(lua_State *L, int index) {
  ty_handle *h = lua_touserdata(L, index);
  if (index < 0) index = lua_gettop(L) + index + 1;
  ty_private(L, TY_R_HANDLES);
  lua_pushlightuserdata(L, h->t);
  lua_pushvalue(L, index);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void ty_push_shared(lua_State *L, ty_state *s, ty_tensor *t) {
  ty_private(L, TY_R_HANDLES);
  lua_pushlightuserdata(L, t);
  lua_rawget(L, -2);
  ty_handle *h = ty_is_handle(L, -1);
  if (h && h->t == t) { lua_remove(L, -2); return; }
  lua_pop(L, 2);
  h = ty_new_handle(L, s);
  if (h->scope) h->scope->count--;
  ty_scope_detach(h);                  /* C holds it too: no scope decides over it */
  h->t = ty_retain(t);
  ty_register(L, -1);
}

static int let_go(lua_State *L) {        /* may run after the state's own end: it must not touch the state */
  ty_handle *h = lua_touserdata(L, 1);
  ty_tensor *t = h->t;
  if (h->anchored && t) ty_keep_hooks(L, t);
  ty_scope_detach(h);
  h->t = NULL;
  h->state = TY_FREED;
  ty_release(t);
  return 0;
}

static int handle_gc(lua_State *L) {
  const ty_handle *h = ty_is_handle(L, 1);
  if (!h) return 0;
  const ty_tensor *t = h->t;
  if (t && t->storage->account && atomic_load(&t->refs) == 1 && !ty_storage_shared(t->storage))
    atomic_fetch_add_explicit(&t->storage->account->collected, (long long)t->storage->nbytes, memory_order_relaxed);
  return let_go(L);
}

static int handle_free(lua_State *L) {
  ty_check(L, 1, "free", "argument 1");
  return let_go(L);
}

/* ---- environments: hooks and Function contexts live as long as a tensor that needs them ---- */

void ty_note_anchor(lua_State *L, int index, int anchors) {
  const ty_handle *h = ty_is_handle(L, index);
  if (!h || !h->anchored) return;
  lua_getfenv(L, index);
  const int n = (int)lua_objlen(L, anchors);
  bool known = false;
  for (int i = 1; i <= n && !known; i++) {
    lua_rawgeti(L, anchors, i);
    known = lua_rawequal(L, -1, -2);
    lua_pop(L, 1);
  }
  if (known) lua_pop(L, 1);
  else lua_rawseti(L, anchors, n + 1);
}

void ty_set_anchor(lua_State *L, int index, int anchors) {
  ty_handle *h = lua_touserdata(L, index);
  if (lua_objlen(L, anchors) == 1) lua_rawgeti(L, anchors, 1);
  else lua_pushvalue(L, anchors);
  lua_setfenv(L, index);
  h->anchored = true;
}

void ty_open_handles(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(3));
  ty_add(L, "__gc", handle_gc);
  lua_pop(L, 1);
  ty_add(L, "free", handle_free);
}
