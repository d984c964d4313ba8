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

bool ty_is_module(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index)) return false;
  lua_pushliteral(L, "_class");            /* in the metatables of modules and their stand-ins (nn/module.lua) */
  lua_rawget(L, -2);
  const bool is = lua_istable(L, -1);
  lua_pop(L, 2);
  return is;
}

const char *ty_type_text(lua_State *L, int index) {
  return ty_is_handle(L, index) ? "tensor" : ty_is_module(L, index) ? "module" : luaL_typename(L, index);
}

ty_tensor *ty_check(lua_State *L, int index, const char *who, const char *what) {
  ty_tensor *t = ty_check_any(L, index, who, what);
  if (t->whole)
    ty_throw(L, "%s: %s is mapped by vmap, where only ops can use it: it has no values to be read and no history of its own", who, what);
  return t;
}

ty_tensor *ty_check_any(lua_State *L, int index, const char *who, const char *what) {
  ty_handle *h = ty_is_handle(L, index);
  if (!h) ty_throw(L, "%s: %s must be a tensor, got %s%s", who, what, ty_type_text(L, index),
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
  h->seq = s->next_handle++;
  s->L = L;                                /* a finalizer may have called in from another coroutine */
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_setmetatable(L, -2);
  ty_scope *sc = ty_modes_of(L, s)->scope;
  if (sc && sc->L == L) ty_scope_enter(sc, h);
  return h;
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
  ty_scope_detach(h);                  /* C holds t too: no scope ends the handle */
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
  if (t && t->storage->account && atomic_load(&t->refs) == 1 && ty_storage_holders(t->storage) == 1)
    atomic_fetch_add_explicit(&t->storage->account->collected, (long long)t->storage->nbytes, memory_order_relaxed);
  return let_go(L);
}

static int handle_free(lua_State *L) {
  ty_check_any(L, 1, "free", "argument 1");
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

/* ---- operands: older tensors that need a gradient and that a checkpoint's function reads (recompute.lua) ---- */

/* Whether h's tensor needs a gradient and is older than a list with these bounds: a result by its node, a leaf by its handle. */
static bool older(const ty_handle *h, uint64_t handle, uint64_t node) {
  return h->t && ty_needs_grad(h->t) && (h->t->node ? h->t->node->seq < node : h->seq < handle);
}
bool ty_may_be_operand(const ty_state *s, const ty_handle *h) { return older(h, s->older_handle, s->older_node); }

/* list[i]: the first handle of the i-th tensor; list[address of a tensor]: its place i, or 0 if it is known to be no operand. list.more =
 * {handle, place, ...}: further handles of these tensors. list[handle] = true: the handle has been looked at, or isn't to be. */
void ty_list_operand(lua_State *L, int index) {
  const ty_handle *h = ty_is_handle(L, index);
  if (!h || !ty_may_be_operand(lua_touserdata(L, lua_upvalueindex(1)), h)) return;
  luaL_checkstack(L, 8, "operands");
  ty_extent_push(L, TY_R_OPERANDS);
  const int list = lua_gettop(L);
  if (lua_istable(L, list)) {
    lua_getfield(L, list, "handle");
    lua_getfield(L, list, "node");
    const uint64_t handle = (uint64_t)lua_tonumber(L, -2), node = (uint64_t)lua_tonumber(L, -1);
    lua_pushvalue(L, index);
    lua_rawget(L, list);
    if (lua_isnil(L, -1) && older(h, handle, node)) {
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
  }
  lua_settop(L, list - 1);
}

/* Ends the list at stack index `ended` (0: none); sets s->operand_lists and the bounds for the rest. */
static void count_lists(lua_State *L, ty_state *s, int ended) {
  s->operand_lists = ty_extent_end(L, TY_R_OPERANDS, ended);
  s->older_node = s->older_handle = 0;
  ty_private(L, TY_R_OPERANDS);
  for (int i = 1; i <= s->operand_lists; i++) {
    lua_rawgeti(L, -1, i);
    lua_getfield(L, -1, "handle");
    lua_getfield(L, -2, "node");
    s->older_handle = TY_MAX(s->older_handle, (uint64_t)lua_tonumber(L, -2));
    s->older_node = TY_MAX(s->older_node, (uint64_t)lua_tonumber(L, -1));
    lua_pop(L, 3);
  }
  lua_pop(L, 1);
}

/* list_operands(list, leaves): opens a list of the older tensors that the running coroutine, and those that it resumes, read from now on;
 * leaves: also of newer leaves, such as a lazy layer's parameters */
static int list_operands(lua_State *L) {
  ty_state *s = ty_state_of(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  const bool leaves = lua_toboolean(L, 2);
  lua_settop(L, 1);
  lua_pushnumber(L, (lua_Number)ty_next_node());
  lua_setfield(L, 1, "node");
  lua_pushnumber(L, leaves ? 9007199254740992.0 : (lua_Number)s->next_handle);
  lua_setfield(L, 1, "handle");
  lua_newtable(L);
  lua_setfield(L, 1, "more");
  ty_extent_begin(L, TY_R_OPERANDS);
  count_lists(L, s, 0);
  return 0;
}
static int operands_listed(lua_State *L) {    /* operands_listed(list): closes the list */
  luaL_checktype(L, 1, LUA_TTABLE);
  count_lists(L, ty_state_of(L), 1);
  return 0;
}
static int list_read(lua_State *L) {     /* list_read(list): lists the tensors among its values, as an op's operands */
  luaL_checktype(L, 1, LUA_TTABLE);
  const int n = ty_state_of(L)->operand_lists ? (int)lua_objlen(L, 1) : 0;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    ty_list_operand(L, 2);
    lua_settop(L, 1);
  }
  return 0;
}
static int lists_operands(lua_State *L) {    /* whether what is read now is listed: a checkpoint's function runs */
  bool listing = ty_state_of(L)->operand_lists > 0;
  if (listing) {
    ty_extent_push(L, TY_R_OPERANDS);
    listing = lua_istable(L, -1);
  }
  lua_pushboolean(L, listing);
  return 1;
}
static int address(lua_State *L) {       /* address(x) -> x's tensor as a key of a list */
  lua_pushlightuserdata(L, ty_check(L, 1, "checkpoint", "a tensor"));
  return 1;
}

/* same(x, scoped) -> another handle of x's tensor, which stand_in(x, ...) leaves alone, in no scope unless scoped; nil: x has been freed */
static int same(lua_State *L) {
  ty_state *s = ty_state_of(L);
  const bool scoped = lua_toboolean(L, 2);
  ty_handle *h = ty_new_handle(L, s), *x = ty_is_handle(L, 1);
  if (!x || !x->t) { lua_pushnil(L); return 1; }
  if (h->scope && !scoped) {
    h->scope->count--;
    ty_scope_detach(h);
  }
  h->t = ty_retain(x->t);
  if (x->anchored) {
    lua_getfenv(L, 1);
    lua_setfenv(L, -2);
    h->anchored = true;
  }
  return 1;
}
/* stand_in(x, y, z): handle x stands for y's tensor. -> a handle of x's former tensor (z, if it is one): stand_in(x, that) undoes it. nil:
 * x has been freed, and stays so */
static int stand_in(lua_State *L) {
  ty_state *s = ty_state_of(L);
  lua_settop(L, 3);
  ty_handle *x = ty_is_handle(L, 1), *y = ty_is_handle(L, 2), *z = ty_is_handle(L, 3);
  if (!x || !x->t || !y || !y->t) { lua_pushnil(L); return 1; }
  if (!z || z->t != x->t) ty_new_handle(L, s)->t = ty_retain(x->t);
  ty_tensor *was = x->t;
  x->t = ty_retain(y->t);
  ty_release(was);
  return 1;
}

void ty_open_handles(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(3));
  ty_add(L, "__gc", handle_gc);
  lua_pop(L, 1);
  ty_add(L, "free", handle_free);
  ty_add(L, "list_operands", list_operands);
  ty_add(L, "operands_listed", operands_listed);
  ty_add(L, "lists_operands", lists_operands);
  ty_add(L, "list_read", list_read);
  ty_add(L, "address", address);
  ty_add(L, "same", same);
  ty_add(L, "stand_in", stand_in);
}
