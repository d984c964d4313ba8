/* Modes: gradients on or off, autocast, the current GPU and streams, of each coroutine.
 *
 * Idea: coroutines in the default mode share the state's; one that changes something gets its own, until they are the defaults again.
 * Invariant: s->special counts those with modes of their own, so that nobody looks for any while there are none. */
#include <string.h>
#include "binding.h"
#include "program.h"

static bool is_default(const ty_modes *m, const ty_state *s) {
  for (int i = 0; i < TY_MAXGPU; i++)
    if (m->ctx.stream[i]) return false;
  return m->ctx.grad_enabled && !m->ctx.autocast[0] && !m->ctx.autocast[1] && m->ctx.gpu == s->modes.ctx.gpu &&
    m->ctx.device == s->modes.ctx.device && !m->ctx.packs &&
    !m->pinned && !m->ctx.program && (!m->scope || m->scope == s->modes.scope);
}

/* The coroutine's own modes, or NULL; looked up by the thread, for an address may be used again. */
static ty_modes *find_modes(lua_State *L) {
  ty_private(L, TY_R_MODES);
  lua_pushthread(L);
  lua_rawget(L, -2);
  ty_modes *m = lua_touserdata(L, -1);
  lua_pop(L, 2);
  return m;
}

ty_modes *ty_modes_of(lua_State *L, ty_state *s) {
  ty_modes *m = s->special ? find_modes(L) : NULL;
  return m ? m : &s->modes;
}

ty_modes *ty_own_modes(lua_State *L, ty_state *s) {
  ty_modes *m = find_modes(L);
  if (m) return m;
  m = lua_newuserdata(L, sizeof *m);
  *m = s->modes;
  if (m->scope && m->scope->L != L) m->scope = NULL;       /* another coroutine is within a function that has one */
  m->owner = NULL;                     /* set last: until then there is nothing to count off */
  ty_private(L, TY_R_MODES_META);
  lua_setmetatable(L, -2);
  ty_private(L, TY_R_MODES);
  lua_pushthread(L);
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 2);
  s->special++;
  s->refs++;
  m->owner = s;
  return m;
}

static void modes_end(ty_modes *m) {
  ty_state *s = m->owner;
  if (!s) return;
  if (m->ctx.program) ty_program_abandon(m->ctx.program);
  m->owner = NULL;
  s->special--;
  ty_state_release(s);
}

void ty_modes_share_again(lua_State *L, ty_state *s) {
  ty_modes *m = find_modes(L);
  if (!m || !is_default(m, s)) return;
  ty_private(L, TY_R_MODES);
  lua_pushthread(L);
  lua_pushnil(L);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  modes_end(m);
}

static int modes_gc(lua_State *L) {    /* a coroutine that was dropped within no_grad or scope */
  ty_modes *m = lua_touserdata(L, 1);
  if (m && lua_objlen(L, 1) == sizeof *m) modes_end(m);          /* programs with the debug library can pass anything */
  return 0;
}

static int set_grad_enabled(lua_State *L) {
  ty_state *s = ty_state_of(L);
  luaL_checktype(L, 1, LUA_TBOOLEAN);
  bool old = ty_ctx_of(L, s)->grad_enabled, on = lua_toboolean(L, 1);
  if (old != on) {
    ty_own_modes(L, s)->ctx.grad_enabled = on;
    ty_modes_share_again(L, s);
  }
  lua_pushboolean(L, old);
  return 1;
}

static int is_grad_enabled(lua_State *L) {
  lua_pushboolean(L, ty_ctx_of(L, ty_state_of(L))->grad_enabled);
  return 1;
}

/* (gpu, dtype or nil) -> the dtype there was: what autocast computes in on GPUs, or on the CPU. Without a second argument: asks. */
static int autocast(lua_State *L) {
  ty_state *s = ty_state_of(L);
  const bool gpu = lua_toboolean(L, 1);
  const int was = ty_ctx_of(L, s)->autocast[gpu],
    now = lua_isnil(L, 2) ? 0 : lua_gettop(L) < 2 ? was : 1 + ty_dtype_find(luaL_checkstring(L, 2));
  if (was != now) {
    ty_own_modes(L, s)->ctx.autocast[gpu] = (uint8_t)now;
    ty_modes_share_again(L, s);
  }
  if (was) lua_pushstring(L, ty_dtype_names[was - 1]);
  else lua_pushnil(L);
  return 1;
}

void ty_open_modes(lua_State *L) {
  lua_newtable(L);                       /* finalizer of modes */
  ty_add(L, "__gc", modes_gc);
  lua_rawseti(L, lua_upvalueindex(2), TY_R_MODES_META);
  ty_add(L, "set_grad_enabled", set_grad_enabled);
  ty_add(L, "is_grad_enabled", is_grad_enabled);
  ty_add(L, "autocast", autocast);
}
