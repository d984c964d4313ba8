/* Scopes: tensors that are made inside are released at the end, unless they are handed out.
 *
 * Idea: a scope lists the handles that were made while it was the innermost one of its coroutine, and drops their references at its end.
 * Invariant: a handle is in one scope's list, or in none; its number is its order of arrival in the scope. */
#include <string.h>
#include "binding.h"
#include "program.h"

void ty_scope_enter(ty_scope *sc, ty_handle *h) {
  h->scope = sc;
  h->number = ++sc->count;
  h->prev = NULL;
  h->next = sc->first;
  if (sc->first) sc->first->prev = h;
  sc->first = h;
}

void ty_scope_detach(ty_handle *h) {
  if (!h->scope) return;
  if (h->prev) h->prev->next = h->next;
  else h->scope->first = h->next;
  if (h->next) h->next->prev = h->prev;
  h->prev = h->next = NULL;
  h->scope = NULL;
}

void ty_scope_end(ty_scope *sc) {
  while (sc->first) {
    ty_handle *h = sc->first;
    ty_tensor *t = h->t;
    ty_scope_detach(h);
    h->t = NULL;
    h->state = TY_SCOPED;
    ty_release(t);
  }
}

static int scope_gc(lua_State *L) {    /* of a coroutine that was dropped inside: its handles live on without it */
  ty_scope *sc = lua_touserdata(L, 1);
  while (sc && lua_objlen(L, 1) == sizeof *sc && sc->first) ty_scope_detach(sc->first);
  return 0;
}

/* Pushes the set of the running coroutine's open scopes, which keeps them reachable as long as the coroutine is. */
static void push_open(lua_State *L) {
  ty_private(L, TY_R_SCOPES);
  lua_pushthread(L);
  lua_rawget(L, -2);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushthread(L);
    lua_pushvalue(L, -2);
    lua_rawset(L, -4);
  }
  lua_remove(L, -2);
}

static int scope_begin(lua_State *L) { /* -> scope */
  ty_state *s = ty_state_of(L);
  ty_scope *sc = lua_newuserdata(L, sizeof *sc);
  memset(sc, 0, sizeof *sc);
  ty_private(L, TY_R_SCOPE_META);
  lua_setmetatable(L, -2);
  push_open(L);
  lua_pushvalue(L, -2);
  lua_pushboolean(L, true);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  ty_modes *m = ty_own_modes(L, s);
  sc->L = L;
  sc->outer = m->scope;
  m->scope = sc;
  return 1;
}

/* Hands what the value at index holds (a tensor, or a table of tensors) to the scope outside. */
static void keep(lua_State *L, int index, const ty_scope *from, ty_scope *outer, int seen) {
  ty_handle *h = ty_is_handle(L, index);
  if (h) {
    if (from && h->scope != from) return;  /* older than the scope, or kept already */
    ty_scope_detach(h);
    if (outer && outer->L == L && h->t) ty_scope_enter(outer, h);
  } else if (lua_type(L, index) == LUA_TTABLE) {
    luaL_checkstack(L, 8, "tables nested too deeply");
    lua_pushvalue(L, index);
    lua_rawget(L, seen);
    bool known = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (known) return;
    lua_pushvalue(L, index);
    lua_pushboolean(L, true);
    lua_rawset(L, seen);
    lua_pushnil(L);
    while (lua_next(L, index)) {
      keep(L, lua_gettop(L), from, outer, seen);
      lua_pop(L, 1);
    }
  }
}

/* Hands the values from first to the stack's top to the scope outside. */
static void keep_results(lua_State *L, int first, const ty_scope *from, ty_scope *outer) {
  const int top = lua_gettop(L);
  int seen = 0;
  for (int i = first; i <= top; i++) {
    if (!seen && lua_type(L, i) == LUA_TTABLE) { lua_newtable(L); seen = top + 1; }
    keep(L, i, from, outer, seen);
  }
  lua_settop(L, top);
}

/* Ends sc, and the scopes within it that an error left open. */
static void end_with_inner(ty_modes *m, ty_scope *sc) {
  for (; m->scope && m->scope != sc && m->scope != sc->outer; m->scope = m->scope->outer) ty_scope_end(m->scope);
  ty_scope_end(sc);
  m->scope = sc->outer;
}

static int results_kept(lua_State *L) { /* scope, results... */
  const ty_scope *sc = lua_touserdata(L, 1);
  keep_results(L, 2, sc, sc->outer);
  return 0;
}

static int scope_end(lua_State *L) {   /* scope, results... */
  ty_state *s = ty_state_of(L);
  ty_scope *sc = lua_touserdata(L, 1);
  push_open(L);
  lua_pushvalue(L, 1);
  lua_rawget(L, -2);
  if (lua_isnil(L, -1)) return ty_throw(L, "scope_end: argument 1 is not an open scope");
  lua_pop(L, 2);
  ty_modes *m = ty_own_modes(L, s);
  lua_pushvalue(L, 1);
  lua_insert(L, 1);
  lua_pushcfunction(L, results_kept);
  lua_insert(L, 2);
  const int failed = lua_pcall(L, lua_gettop(L) - 2, 0, 0);        /* results nested too deeply: the scope ends all the same */
  end_with_inner(m, sc);
  ty_modes_share_again(L, s);
  push_open(L);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  lua_rawset(L, -3);
  if (failed) { lua_settop(L, 2); return lua_error(L); }
  return 0;
}

/* scope_outside() -> s: until scope_outside(s), the innermost scope is the user's, not the library's. */
static int scope_outside(lua_State *L) {
  ty_modes *m = ty_own_modes(L, ty_state_of(L));
  if (lua_gettop(L)) { m->scope = lua_touserdata(L, 1); return 0; }
  lua_pushlightuserdata(L, m->scope);
  while (m->scope && m->scope->internal) m->scope = m->scope->outer;
  return 1;
}

static int called(lua_State *L) {      /* scope, function, arguments... -> the function's results, kept */
  const ty_scope *sc = lua_touserdata(L, 1);
  lua_call(L, lua_gettop(L) - 2, LUA_MULTRET);
  keep_results(L, 2, sc, sc->outer);
  return lua_gettop(L) - 1;
}

void ty_push_scoped(lua_State *L) { lua_pushcfunction(L, called); }

/* The scope is on C's stack, and m may be the shared modes: both are safe, since no coroutine can yield across this call. */
void ty_scope_call(lua_State *L, ty_state *s, int n) {
  ty_modes *m = ty_modes_of(L, s), *now;
  ty_scope sc = {.outer = m->scope, .L = L, .function = true};
  m->scope = &sc;
  lua_pushlightuserdata(L, &sc);
  lua_insert(L, -n - 2);
  int status = lua_pcall(L, n + 2, LUA_MULTRET, 0);
  s->L = L;
  now = ty_modes_of(L, s);             /* not m, if the function has changed a mode for good */
  end_with_inner(now, &sc);
  m->scope = sc.outer;
  if (now != m) ty_modes_share_again(L, s);
  if (status) lua_error(L);
}

static int keep_values(lua_State *L) { /* keeps its arguments beyond every scope, and returns them */
  ty_state_of(L);
  const int n = lua_gettop(L);
  lua_newtable(L);
  for (int i = 1; i <= n; i++) keep(L, i, NULL, NULL, n + 1);
  lua_settop(L, n);
  return n;
}

/* scope_take(scope, tensor): the tensor ends with this scope, whichever inner one it was made in */
static int scope_take(lua_State *L) {
  ty_scope *sc = lua_touserdata(L, 1);
  ty_handle *h = ty_is_handle(L, 2);
  if (!h || !h->t || !h->scope) return 0;
  ty_scope_detach(h);
  if (sc && sc->L == L) ty_scope_enter(sc, h);
  return 0;
}

static int scope_count(lua_State *L) {   /* scope -> how many tensors have come to it */
  const ty_scope *sc = lua_touserdata(L, 1);
  lua_pushinteger(L, sc ? (lua_Integer)sc->count : 0);
  return 1;
}

static bool listed(lua_State *L, int list, const ty_handle *h) {
  bool found = false;
  for (int i = (int)lua_objlen(L, list); i > 0 && !found; i--) {
    lua_rawgeti(L, list, i);
    found = lua_touserdata(L, -1) == h;
    lua_pop(L, 1);
  }
  return found;
}

/* scope_left(scope, {tensor, ...}) -> the numbers of the scope's tensors that are still there, but for those in the list; nil: none. After
 * a collection these are the ones that somebody keeps. */
static int scope_left(lua_State *L) {
  const ty_scope *sc = lua_touserdata(L, 1);
  int n = 0;
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_newtable(L);
  for (const ty_handle *h = sc ? sc->first : NULL; h; h = h->next) {
    if (!h->t || listed(L, 2, h)) continue;
    lua_pushinteger(L, (lua_Integer)h->number);
    lua_rawseti(L, -2, ++n);
  }
  return n > 0;
}

/* scope_unfinished(scope, {tensor, ...}) -> whether any of these tensors, as in scope_left, still needs its graph */
static int scope_unfinished(lua_State *L) {
  const ty_scope *sc = lua_touserdata(L, 1);
  bool any = false;
  luaL_checktype(L, 2, LUA_TTABLE);
  for (const ty_handle *h = sc ? sc->first : NULL; h && !any; h = h->next)
    any = h->t && ty_needs_graph(h->t) && !listed(L, 2, h);
  lua_pushboolean(L, any);
  return 1;
}

/* scope_let_go(scope, {tensor, ...}): its tensors outlive every scope, but for those in the list */
static int scope_let_go(lua_State *L) {
  const ty_scope *sc = lua_touserdata(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  for (ty_handle *h = sc ? sc->first : NULL, *next; h; h = next) {
    next = h->next;
    if (!listed(L, 2, h)) ty_scope_detach(h);
  }
  return 0;
}

/* scope_keep(scope, numbers): the tensors of these numbers outlive every scope */
static int scope_keep(lua_State *L) {
  const ty_scope *sc = lua_touserdata(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  for (ty_handle *h = sc ? sc->first : NULL, *next; h; h = next) {
    next = h->next;
    for (int i = (int)lua_objlen(L, 2); i > 0 && h->scope; i--) {
      lua_rawgeti(L, 2, i);
      if (lua_tonumber(L, -1) == (lua_Number)h->number) ty_scope_detach(h);
      lua_pop(L, 1);
    }
  }
  return 0;
}

void ty_open_scope(lua_State *L) {
  lua_newtable(L);                       /* finalizer of scopes */
  ty_add(L, "__gc", scope_gc);
  lua_rawseti(L, lua_upvalueindex(2), TY_R_SCOPE_META);
  ty_add(L, "scope_begin", scope_begin);
  ty_add(L, "scope_end", scope_end);
  ty_add(L, "scope_outside", scope_outside);
  ty_add(L, "scope_count", scope_count);
  ty_add(L, "scope_left", scope_left);
  ty_add(L, "scope_unfinished", scope_unfinished);
  ty_add(L, "scope_keep", scope_keep);
  ty_add(L, "scope_take", scope_take);
  ty_add(L, "scope_let_go", scope_let_go);
  ty_add(L, "keep", keep_values);
}
