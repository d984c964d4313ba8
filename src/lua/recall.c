/* Results that a checkpoint keeps (core/recall.h), for lua/tycho/recompute.lua. Invariant: what is in force is
 * taken out of force before anything that may raise. */
#include <string.h>
#include "binding.h"
#include "recall.h"

static ty_recall *recall_at(lua_State *L) { return ty_box_at(L, 1, ty_recall_release, "a list of results"); }

/* Marks the ops that have this name, or that errors and profiles call so. */
static void mark(lua_State *L, ty_recall *r, const char *name) {
  bool found = false;
  const char *why = NULL;
  for (int i = 0; i < TY_NOP && *name; i++) {
    if (strcmp(ty_ops[i].name, name) && strcmp(ty_ops[i].shown, name)) continue;
    const char *no = ty_recall_refuses(&ty_ops[i]);
    r->of[i] = r->of[i] || !no;
    found = found || !no;
    if (no) why = no;
  }
  if (!found && !why)
    ty_throw(L, "checkpoint: option 'save' must name ops, and '%s' isn't one: a function made of others has theirs, as a profile shows",
      name);
  if (!found) ty_throw(L, "checkpoint: results of '%s' can't be saved: %s", name, why);
}

/* recall(names) -> an empty list for the results of these ops */
static int recall(lua_State *L) {
  ty_state *s = ty_state_of(L);
  if (!lua_istable(L, 1)) return ty_throw(L, "checkpoint: option 'save' must be a list of names of ops, got %s", ty_type_text(L, 1));
  ty_need_rules(L, s);
  lua_settop(L, 1);
  ty_recall *r = *ty_new_box(L, ty_recall_release) = ty_recall_new();
  if (!r) return ty_throw(L, "checkpoint: out of memory");
  const int n = (int)lua_objlen(L, 1);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, i);
    if (lua_type(L, -1) != LUA_TSTRING)
      return ty_throw(L, "checkpoint: option 'save' must be a list of names of ops, got %s at place %d", ty_type_text(L, -1), i);
    mark(L, r, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  return 1;
}

/* recall_begin(list, results or nil): ops put their results into the list, or, given the results of its first run, take them from there */
static int recall_begin(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_recall *r = recall_at(L);
  ty_own_modes(L, s);                      /* first: what it allocates may run finalizers, which free tensors */
  const bool again = lua_istable(L, 2);
  const int n = again ? (int)lua_objlen(L, 2) : 0;
  ty_tensor **t = lua_newuserdata(L, sizeof *t * (size_t)(n + 1));
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    t[i] = ty_test(L, -1);
    lua_pop(L, 1);
  }
  ty_ctx *ctx = &ty_own_modes(L, s)->ctx;  /* a finalizer may have ended them; this allocates nothing */
  const ty_status st = again ? ty_recall_again(ctx, r, t, n) : ty_recall_begin(ctx, r);
  return st == TY_OK ? 0 : ty_raise(L, ctx);
}

/* recall_end(list, failed) -> a list of the results; of a run that has failed, or took its results, an empty one */
static int recall_end(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_recall *r = recall_at(L);
  const bool failed = lua_toboolean(L, 2);
  ty_ctx *ctx = &ty_own_modes(L, s)->ctx;
  const ty_status st = ty_recall_end(ctx, r, failed);
  ctx = ty_modes_end(L, s, ctx);
  if (st != TY_OK) return ty_raise(L, ctx);
  const int n = failed || r->again ? 0 : r->n;
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    ty_new_handle(L, s)->t = ty_retain(r->entry[i].t);
    lua_rawseti(L, -2, i + 1);
  }
  ty_recall_drop(r);
  return 1;
}

static int recalls(lua_State *L) {       /* whether a list is in force */
  lua_pushboolean(L, ty_context(L)->recall != NULL);
  return 1;
}

void ty_open_recall(lua_State *L) {
  ty_add(L, "recalls", recalls);
  ty_add(L, "recall", recall);
  ty_add(L, "recall_begin", recall_begin);
  ty_add(L, "recall_end", recall_end);
}
