/* The module's state, one for each Lua state however often the module is opened there, and the module's opening.
 *
 * Idea: every C function of the module carries the state, a private table and the metatable of handles as upvalues, so that no call looks
 * them up in the registry. */
#include <string.h>
#include "binding.h"

void ty_closure(lua_State *L, lua_CFunction f, int extra) {
  for (int i = 1; i <= TY_UPVALUES; i++) lua_pushvalue(L, lua_upvalueindex(i));
  for (int i = 0; i < extra; i++) lua_pushvalue(L, -extra - TY_UPVALUES);
  lua_pushcclosure(L, f, TY_UPVALUES + extra);
  if (extra) { lua_insert(L, -extra - 1); lua_pop(L, extra); }
}

void ty_add(lua_State *L, const char *name, lua_CFunction f) {
  ty_closure(L, f, 0);
  lua_setfield(L, -2, name);
}

void ty_set_number(lua_State *L, const char *name, double v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, name);
}

void ty_private(lua_State *L, int slot) { lua_rawgeti(L, lua_upvalueindex(2), slot); }

void ty_state_release(ty_state *s) {
  if (--s->refs) return;
  s->closed = true;
  ty_account_release(s->account);
}

int ty_state_closed(lua_State *L) {       /* nothing else of the library may be called any more */
  lua_pushliteral(L, "tycho: the Lua state is closing");
  return lua_error(L);
}

static int set_private(lua_State *L) {   /* name, value: sets what the library's Lua gives the binding */
  static const char *const names[] = {"format", "function", "shape_meta", "read_rules", NULL};
  static const int slots[] = {TY_R_FORMAT, TY_R_FUNCTION, TY_R_SHAPE_META, TY_R_READ_RULES};
  lua_settop(L, 2);
  lua_rawseti(L, lua_upvalueindex(2), slots[luaL_checkoption(L, 1, NULL, names)]);
  return 0;
}

static const char state_key;               /* in the registry: the state's memory */

/* Runs when the Lua state closes, which calls all finalizers, then those of what these have made, and so on, some times. A program's
   finalizers may call the library, before this one or after it. So the state stays open, and a new box has its turn in the next round,
   until nobody has called since the last turn; then calls are refused. The state's memory is Lua's until the end. */
static int state_gc(lua_State *L) {
  ty_state **box = lua_touserdata(L, 1);
  if (!box || lua_objlen(L, 1) != sizeof *box) return 0;         /* programs with the debug library can pass anything */
  ty_state *const s = *box;
  if (!s) return 0;
  if (s->L) {                              /* each call sets it */
    ty_state **next = lua_newuserdata(L, sizeof *next);
    *next = NULL;
    lua_getfenv(L, 1);
    lua_setfenv(L, -2);
    lua_getmetatable(L, 1);
    lua_setmetatable(L, -2);
    lua_pushlightuserdata(L, &ty_ops);     /* a collection within this round must not end it */
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    s->L = NULL;
    *next = s;
  } else ty_state_release(s);
  *box = NULL;
  return 0;
}

static void weak_table(lua_State *L, const char *mode) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushstring(L, mode);
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
}

static int open(lua_State *L) {          /* upvalues are in place */
  lua_newtable(L);
  ty_private(L, TY_R_METHODS);
  lua_setfield(L, -2, "methods");
  ty_add(L, "set_private", set_private);
  ty_open_errors(L);
  ty_open_handles(L);
  ty_open_modes(L);
  ty_open_extents(L);
  ty_open_scope(L);
  ty_open_ops(L);
  ty_open_tensor(L);
  ty_open_create(L);
  ty_open_autograd(L);
  ty_open_io(L);
  ty_open_gpu(L);
  ty_open_data(L);
  ty_open_process(L);
  ty_open_group(L);
  ty_open_profile(L);
  ty_open_recall(L);
  ty_open_archive(L);
  ty_open_program(L);
  lua_pushstring(L, TY_VERSION);
  lua_setfield(L, -2, "version");
  return 1;
}

__attribute__((visibility("default"))) int luaopen_tycho_core(lua_State *L);
int luaopen_tycho_core(lua_State *L) {
  char err[TY_ERRLEN];
  if (ty_ops_init(err) != TY_OK) return ty_throw(L, "tycho: %s", err);
  lua_pushlightuserdata(L, &ty_ops);
  lua_rawget(L, LUA_REGISTRYINDEX);
  if (lua_isuserdata(L, -1)) {           /* opened before (package.loaded was emptied, say): the same module again */
    lua_getfenv(L, -1);
    return 1;
  }
  lua_pop(L, 1);
  ty_state *s = lua_newuserdata(L, sizeof *s);     /* without a finalizer, and so there for those of all others */
  lua_pushlightuserdata(L, (void *)&state_key);
  lua_pushvalue(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  ty_state **box = lua_newuserdata(L, sizeof *box);
  *box = NULL;
  ty_account *account = ty_malloc(sizeof *account);
  if (!account) return ty_throw(L, "tycho: out of memory");
  memset(s, 0, sizeof *s);
  *box = s;
  s->refs = 1;
  s->L = L;
  s->gc_limit = s->garbage = TY_LEAST_GARBAGE;
  s->gc_unrecorded = s->unrecorded = TY_LEAST_UNRECORDED;
  s->next_key = 1;
  s->account = account;
  *account = (ty_account){0};
  atomic_init(&account->refs, 1);
  s->modes.ctx = (ty_ctx){.grad_enabled = true, .host = &ty_lua_host, .host_data = s, .account = s->account};
  lua_newtable(L);
  lua_pushcfunction(L, state_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  const int held = lua_gettop(L);
  lua_pushlightuserdata(L, s);
  lua_newtable(L);                       /* private */
  weak_table(L, "v"); lua_rawseti(L, -2, TY_R_HANDLES);
  weak_table(L, "k"); lua_rawseti(L, -2, TY_R_MODES);
  for (int i = 0; i < 3; i++) {          /* extents.c */
    lua_newtable(L);
    weak_table(L, "v"); lua_setfield(L, -2, "threads");
    lua_rawseti(L, -2, (const int[]){TY_R_OPERANDS, TY_R_DRAWS, TY_R_EXTENTS}[i]);
  }
  weak_table(L, "v"); lua_rawseti(L, -2, TY_R_ANCHORS);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_METHODS);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_RULES);
  weak_table(L, "k"); lua_rawseti(L, -2, TY_R_SCOPES);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_OWNERS);
  lua_newtable(L);                       /* metatable of handles */
  lua_pushcclosure(L, open, TY_UPVALUES);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  lua_setfenv(L, held);
  lua_pushlightuserdata(L, &ty_ops);
  lua_pushvalue(L, held);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 1;
}

const ty_host ty_lua_host = {ty_lua_rule, ty_lua_hook, ty_lua_history, ty_lua_pack, ty_lua_unpack, ty_lua_reclaim, ty_lua_location};
