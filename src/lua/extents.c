/* Values that hold while a function runs, in the coroutine that called it and in those that it resumes: a checkpoint's list of operands, a
 * generator that is drawn from, what modes.during (lua/tycho/modes.lua) sets.
 *
 * Idea: a slot of the private table lists them in the order of their begin, and in `threads`, weak, the coroutine of each. Invariant: what
 * a coroutine began holds nowhere while it is suspended, nor once it was dropped. */
#include "binding.h"

/* Pushes the slot's list and its threads; gives the list's stack index. */
static int push_lists(lua_State *L, int slot) {
  ty_private(L, slot);
  lua_getfield(L, -1, "threads");
  return lua_gettop(L) - 1;
}

void ty_extent_push(lua_State *L, int slot) {
  const int list = push_lists(L, slot);
  int own = 0, of_other = 0;
  for (int i = (int)lua_objlen(L, list); i > 0 && !own; i--) {
    lua_rawgeti(L, list + 1, i);
    lua_State *owner = lua_tothread(L, -1);
    lua_pop(L, 1);
    if (owner == L) own = i;
    else if (owner && !of_other && lua_status(owner) != LUA_YIELD) of_other = i;
  }
  lua_rawgeti(L, list, own ? own : of_other);              /* nil at 0 */
  lua_replace(L, list);
  lua_settop(L, list);
}

int ty_extent_begin(lua_State *L, int slot) {
  const int list = push_lists(L, slot), n = (int)lua_objlen(L, list) + 1;
  lua_pushthread(L);
  lua_rawseti(L, list + 1, n);
  lua_pushvalue(L, list - 1);
  lua_rawseti(L, list, n);
  lua_settop(L, list - 2);
  return n;
}

int ty_extent_end(lua_State *L, int slot, int index) {
  const int list = push_lists(L, slot), n = (int)lua_objlen(L, list);
  int at = index ? n : 0, kept = 0;
  for (bool found = false; at > 0 && !found; at -= !found) {
    lua_rawgeti(L, list, at);
    lua_rawgeti(L, list + 1, at);
    found = lua_rawequal(L, -2, index) && lua_tothread(L, -1) == L;
    lua_pop(L, 2);
  }
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, list, i);
    lua_rawgeti(L, list + 1, i);
    if (i != at && lua_isthread(L, -1)) {
      kept++;
      lua_rawseti(L, list + 1, kept);
      lua_rawseti(L, list, kept);
    } else lua_pop(L, 2);
  }
  for (int i = kept + 1; i <= n; i++) {
    lua_pushnil(L);
    lua_rawseti(L, list, i);
    lua_pushnil(L);
    lua_rawseti(L, list + 1, i);
  }
  lua_settop(L, list - 1);
  return kept;
}

/* For modes.lua. extent_begin(value), extent_end(value) -> how many hold somewhere; extent() -> the one that holds here, or nil */
static int extent_begin(lua_State *L) {
  lua_settop(L, 1);
  lua_pushinteger(L, ty_extent_begin(L, TY_R_EXTENTS));
  return 1;
}
static int extent_end(lua_State *L) {
  lua_settop(L, 1);
  lua_pushinteger(L, ty_extent_end(L, TY_R_EXTENTS, 1));
  return 1;
}
static int extent(lua_State *L) {
  ty_extent_push(L, TY_R_EXTENTS);
  return 1;
}

void ty_open_extents(lua_State *L) {
  ty_add(L, "extent_begin", extent_begin);
  ty_add(L, "extent_end", extent_end);
  ty_add(L, "extent", extent);
}
