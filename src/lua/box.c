/* C objects that Lua holds: a box is a userdata with a pointer and the function that ends the object. One metatable, out of
 * users' reach; size, magic and kind (the function) are checked, since metatables can be forged. */
#include "binding.h"

#define MAGIC 0x54794368626f7821u        /* "TyChbox!": a userdata of ours begins with it */

typedef struct { uint64_t magic; void *p; void (*end)(void *p); } box;

static box *is_box(lua_State *L, int index) {
  box *b = lua_type(L, index) == LUA_TUSERDATA ? lua_touserdata(L, index) : NULL;
  return b && lua_objlen(L, index) == sizeof *b && b->magic == MAGIC ? b : NULL;
}

static int box_gc(lua_State *L) {
  box *b = is_box(L, 1);
  void *p = b ? b->p : NULL;
  if (!p) return 0;
  b->p = NULL;
  b->end(p);
  return 0;
}

void **ty_new_box(lua_State *L, void (*end)(void *p)) {
  box *b = lua_newuserdata(L, sizeof *b);
  *b = (box){MAGIC, NULL, end};
  if (luaL_newmetatable(L, "tycho.box")) {
    lua_pushcfunction(L, box_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
  }
  lua_setmetatable(L, -2);
  return &b->p;
}

void *ty_box_at(lua_State *L, int index, void (*end)(void *p), const char *what) {
  box *b = is_box(L, index);
  if (!b || b->end != end) ty_throw(L, "argument %d must be %s, got %s", index, what, ty_type_text(L, index));
  if (!b->p) ty_throw(L, "argument %d is %s that has been ended", index, what);
  return b->p;
}

void *ty_box_take(lua_State *L, int index, void (*end)(void *p), const char *what) {
  void *p = ty_box_at(L, index, end, what);
  is_box(L, index)->p = NULL;
  return p;
}

void ty_box_end(lua_State *L, int index, void (*end)(void *p), const char *what) {
  box *b = is_box(L, index);
  if (!b || b->end != end) ty_throw(L, "argument %d must be %s, got %s", index, what, ty_type_text(L, index));
  void *p = b->p;
  b->p = NULL;
  if (p) end(p);
}
