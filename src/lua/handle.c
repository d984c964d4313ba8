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

/* ---- operands: what a function that isn't recorded reads of what came before it (recompute.lua) ---- */

bool ty_collects(lua_State *L, ty_state *s) { return s->collects && !ty_ctx_of(L, s)->grad_enabled; }

/* Pushes the running coroutine's list, or nil. */
static void push_operands(lua_State *L) {
  ty_private(L, TY_R_OPERANDS);
  lua_pushthread(L);
  lua_rawget(L, -2);
  lua_remove(L, -2);
}

/* The list has each tensor once, by the handle that came first, and that handle's place by the tensor's address; more = {handle, place,
 * ...} are other handles of such. All handles are keys, too. */
void ty_collect(lua_State *L, int index) {
  const ty_handle *h = ty_is_handle(L, index);
  if (!h || !h->t || !ty_needs_grad(h->t)) return;
  luaL_checkstack(L, 8, "operands");
  push_operands(L);
  const int list = lua_gettop(L);
  if (!lua_istable(L, list)) { lua_pop(L, 1); return; }
  lua_pushvalue(L, index);
  lua_rawget(L, list);
  if (lua_isnil(L, -1) && h->t) {
    lua_pushvalue(L, index);
    lua_pushboolean(L, 1);
    lua_rawset(L, list);
    lua_pushlightuserdata(L, h->t);
    lua_rawget(L, list);
    if (lua_isnil(L, -1)) {
      const int n = (int)lua_objlen(L, list) + 1;
      lua_pushlightuserdata(L, h->t);
      lua_pushinteger(L, n);
      lua_rawset(L, list);
      lua_pushvalue(L, index);
      lua_rawseti(L, list, n);
    } else {
      lua_getfield(L, list, "more");
      const int n = (int)lua_objlen(L, -1);
      lua_pushvalue(L, index);
      lua_rawseti(L, -2, n + 1);
      lua_pushvalue(L, -2);
      lua_rawseti(L, -2, n + 2);
    }
  }
  lua_settop(L, list - 1);
}

/* operands(list): where the running coroutine's are collected from now on, nil: nowhere; gives the list before */
static int operands(lua_State *L) {
  ty_state *s = ty_state_of(L);
  lua_settop(L, 1);
  push_operands(L);
  s->collects += !lua_isnil(L, 1) - !lua_isnil(L, 2);
  if (!lua_isnil(L, 1)) {
    lua_getfield(L, 1, "more");
    if (lua_isnil(L, -1)) { lua_newtable(L); lua_setfield(L, 1, "more"); }
  }
  ty_private(L, TY_R_OPERANDS);
  lua_pushthread(L);
  lua_pushvalue(L, 1);
  lua_rawset(L, -3);
  lua_settop(L, 2);
  return 1;
}
static int collect(lua_State *L) {       /* collect(x): as an op's operand */
  if (ty_collects(L, ty_state_of(L))) ty_collect(L, 1);
  return 0;
}
/* same(x): another handle of x, for what takes the place of the first one to leave it alone */
static int same(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_handle *h = ty_new_handle(L, s), *x = ty_is_handle(L, 1);
  if (!x || !x->t) return ty_throw(L, "checkpoint: a tensor that fn reads has been freed");
  h->t = ty_retain(x->t);
  if (x->anchored) {
    lua_getfenv(L, 1);
    lua_setfenv(L, -2);
    h->anchored = true;
  }
  return 1;
}
/* stand_in(x, y): x is what y is; gives a handle of what x was, with which it becomes that again */
static int stand_in(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_handle *x = ty_is_handle(L, 1), *y = ty_is_handle(L, 2), *before = ty_new_handle(L, s);
  if (!x || !x->t || !y || !y->t) return ty_throw(L, "checkpoint: a tensor that fn reads has been freed");
  before->t = x->t;
  x->t = ty_retain(y->t);
  return 1;
}

void ty_open_handles(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(3));
  ty_add(L, "__gc", handle_gc);
  lua_pop(L, 1);
  ty_add(L, "free", handle_free);
  ty_add(L, "operands", operands);
  ty_add(L, "collect", collect);
  ty_add(L, "same", same);
  ty_add(L, "stand_in", stand_in);
}
