/* Finds the libraries that are opened at run time: tycho/cuda.so, tycho/mpi.so. */
#include "binding.h"

/* Pushes the path that package.cpath gives for a module, or nil. */
const char *ty_push_library(lua_State *L, const char *module) {
  const int top = lua_gettop(L);
  luaL_checkstack(L, 6, module);
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "package");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "searchpath");
    lua_pushstring(L, module);
    lua_getfield(L, -3, "cpath");
    if (!lua_isfunction(L, -3) || lua_pcall(L, 2, 1, 0) != 0) lua_pushnil(L);
  } else lua_pushnil(L);
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return lua_tostring(L, -1);
}
