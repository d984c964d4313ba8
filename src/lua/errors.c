/* Errors: raised with the user's line and the name of the function that was called there.
 *
 * Idea: the user's line is the nearest one outside the library's own Lua sources, which share a prefix of their names. Invariant: a place
 * or a name that a message already has isn't added again. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "binding.h"
#include "gpu.h"

#define LIBRARY "tycho.library"            /* in the registry */

/* own: the prefix of the library's sources, n characters; NULL: not known yet. */
static bool is_ours(const lua_Debug *ar, const char *own, size_t n) { return own && !strncmp(ar->source, own, n); }

const char *ty_push_call(lua_State *L, const char **called) {
  lua_Debug ar, within;
  bool ours = false, beyond = false;
  size_t n = 0;
  bool found = false;
  const char *name = NULL;
  lua_getfield(L, LUA_REGISTRYINDEX, LIBRARY);
  const char *own = lua_tolstring(L, -1, &n);
  for (int level = 0; !found && lua_getstack(L, level, &ar) && lua_getinfo(L, "Slf", &ar); level++) {
    const ty_op *op = ty_defined_at(L, -1);
    lua_pop(L, 1);
    found = ar.currentline > 0 && !is_ours(&ar, own, n);
    if (op) name = op->shown;
    if (found && ours && lua_getinfo(L, "n", &within)) *called = within.name;
    /* beyond compile/init.lua the user's line calls a compiled function, not the library (a tail call has removed its frame) */
    beyond |= is_ours(&ar, own, n) && strstr(ar.source + n, "compile/init.lua");
    ours = ar.currentline > 0 && !beyond;
    within = ar;
  }
  if (found && name) *called = name;
  if (found) lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else lua_pushliteral(L, "");
  lua_remove(L, -2);
  return name;
}

bool ty_called_by_user(lua_State *L) {
  lua_Debug ar;
  size_t n = 0;
  lua_getfield(L, LUA_REGISTRYINDEX, LIBRARY);
  const char *own = lua_tolstring(L, -1, &n);
  bool found = false;
  for (int level = 1; own && !found && lua_getstack(L, level, &ar) && lua_getinfo(L, "S", &ar); level++) found = *ar.what != 'C';
  const bool user = !(found && is_ours(&ar, own, n));
  lua_pop(L, 1);
  return user;
}

const char *ty_push_location(lua_State *L) {
  const char *called = NULL;
  return ty_push_call(L, &called);
}

static int where(lua_State *L) {           /* -> the user's line, "" where there is none, and the op that it has called, or nil */
  lua_pushstring(L, ty_push_location(L));
  return 2;
}

/* The length of "op: " at the begin of a message, to be cut off where the user called another function. 0: none, or it must stay, since the
 * message speaks of the op's arguments or of a list's tensors. */
static size_t inner_name(const char *message) {
  const char *end = strstr(message, ": ");
  if (!end || strstr(end, "argument ") || strstr(end, "tensor ")) return 0;
  for (int i = 0; i < TY_NOP; i++)
    if (strlen(ty_ops[i].shown) == (size_t)(end - message) && !strncmp(message, ty_ops[i].shown, (size_t)(end - message)))
      return (size_t)(end - message) + 2;
  return 0;
}

int ty_throw(lua_State *L, const char *fmt, ...) {
  va_list ap;
  luaL_checkstack(L, 8, "an error");
  const char *name = ty_push_location(L);
  const char *place = lua_tostring(L, -1);
  va_start(ap, fmt);
  const char *message = lua_pushvfstring(L, fmt, ap);
  va_end(ap);
  const size_t n = strlen(place), k = name ? strlen(name) : 0;
  while (n && !strncmp(message, place, n)) message += n;          /* added further within */
  const bool named = !name || (!strncmp(message, name, k) && message[k] == ':') || strstr(message, TY_EARLIER);
  const char *last = name ? strrchr(name, '.') : NULL;             /* linalg.det: its own errors may say det */
  const size_t m = last ? strlen(last + 1) : 0;
  if (!named) message += m && !strncmp(message, last + 1, m) && message[m] == ':' && message[m + 1] == ' ' ? m + 2 : inner_name(message);
  lua_pushfstring(L, named ? "%s%s%s" : "%s%s: %s", place, named ? "" : name, message);
  return lua_error(L);
}

static int set_library(lua_State *L) {     /* the prefix of the library's own sources */
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, LIBRARY);
  return 0;
}

const char *ty_path_at(lua_State *L, int index) {
  size_t n;
  const char *path = luaL_checklstring(L, index, &n);
  if (strlen(path) != n) ty_throw(L, "%s: a file name must not contain a zero byte", path);
  return path;
}

int ty_raise(lua_State *L, ty_ctx *c) { return ty_throw(L, "%s", c->err); }

typedef struct { char *text; size_t size; const char *name; } room;
static int write_location(lua_State *L) {
  room *r = lua_touserdata(L, 1);
  r->name = ty_push_location(L);
  snprintf(r->text, r->size, "%s", lua_tostring(L, -1));
  return 0;
}
const char *ty_lua_location(ty_ctx *c, char *text, size_t size) {
  lua_State *L = ((ty_state *)c->host_data)->L;
  room r = {text, size, NULL};
  text[0] = 0;
  if (lua_checkstack(L, 8) && lua_cpcall(L, write_location, &r) != 0) lua_pop(L, 1);
  return r.name;
}

void ty_open_errors(lua_State *L) {
  ty_add(L, "set_library", set_library);
  ty_add(L, "where", where);
}
