/* A small host for the sanitizers: opens a Lua state on malloc, so that writes past a userdata are seen, runs a script, and
 * closes the state, so that leaks show. os.exit only ends the script.
 *   host SCRIPT ARGUMENTS... */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

static int code, asked;

static void *allocate(void *ud, void *p, size_t old, size_t n) {
  (void)ud;
  (void)old;
  if (n == 0) { free(p); return NULL; }
  return realloc(p, n);
}

static int leave(lua_State *L) {
  code = lua_isboolean(L, 1) ? !lua_toboolean(L, 1) : (int)luaL_optinteger(L, 1, 0);
  asked = 1;
  lua_pushliteral(L, "host: exit");
  return lua_error(L);
}

int main(int argc, char **argv) {
  lua_State *L = lua_newstate(allocate, NULL);
  if (!L) L = luaL_newstate();             /* a LuaJIT that insists on its own allocator */
  if (!L || argc < 2) return 2;
  luaL_openlibs(L);
  lua_getglobal(L, "os");
  lua_pushcfunction(L, leave);
  lua_setfield(L, -2, "exit");
  lua_newtable(L);
  for (int i = 1; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  lua_settop(L, 0);
  int failed = luaL_loadfile(L, argv[1]);
  for (int i = 2; i < argc && !failed; i++) lua_pushstring(L, argv[i]);
  if (!failed) failed = lua_pcall(L, argc - 2, 0, 0);
  if (failed && !asked) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    code = 1;
  }
  lua_close(L);
  return code;
}
