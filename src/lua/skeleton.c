/* Skeletons (core/skeleton.c: tapes without the tensors that they saved) for lua/tycho/compile/outside.lua. */
#include <string.h>
#include "binding.h"
#include "program.h"
#include "skeleton.h"
#include "tape.h"

static ty_tensor **room_at(lua_State *L, int i, int more, int *n) {
  luaL_checktype(L, i, LUA_TTABLE);
  *n = (int)lua_objlen(L, i);
  return lua_newuserdata(L, sizeof(ty_tensor *) * (size_t)(*n + more + 1));
}
static ty_tensor **filled(lua_State *L, int i, ty_tensor **t, int n) {
  for (int k = 0; k < n; k++) {
    lua_rawgeti(L, i, k + 1);
    t[k] = lua_toboolean(L, -1) ? ty_check(L, -1, "compile", "a tensor") : NULL;
    lua_pop(L, 1);
  }
  return t;
}
ty_tensor **ty_tensors_at(lua_State *L, int i, int more, int *n) {
  ty_tensor **t = room_at(L, i, more, n);
  return filled(L, i, t, *n);
}

static void skeleton_ends(void *k) { ty_skeleton_free(k); }
ty_skeleton *ty_skeleton_at(lua_State *L, int i) { return ty_box_at(L, i, skeleton_ends, "a skeleton"); }

/* skeleton(results) -> skeleton, the leaves of the results' tape, how many tensors this tape saved; or nil, why there can
   be none */
static int of_results(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  int nroot, n;
  const char *why;
  ty_tensor **root = ty_tensors_at(L, 1, 0, &nroot);
  void **box = ty_new_box(L, skeleton_ends);
  if (ty_skeleton_new(ctx, root, nroot, (ty_skeleton **)box, &why) != TY_OK) return ty_raise(L, ctx);
  if (why) {
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
  }
  ty_tensor **leaf = ty_skeleton_leaves(*box, &n);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    ty_push_shared(L, s, leaf[i]);
    lua_rawseti(L, -2, i + 1);
  }
  ty_skeleton_saved(*box, &n);
  lua_pushinteger(L, n);
  return 3;
}

/* pass(skeleton, what its tape saved, gradients of the results or false) -> gradients of its leaves, or false */
static int skeleton_pass(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_skeleton *k = ty_skeleton_at(L, 1);
  int n, nsaved, ngrad;
  ty_skeleton_leaves(k, &n);
  ty_own_modes(L, s);                      /* allocations come first: finalizers may free tensors */
  lua_createtable(L, n, 0);
  const int list = lua_gettop(L);
  for (int i = 0; i < n; i++) { ty_new_handle(L, s); lua_rawseti(L, list, i + 1); }
  ty_tensor **result = lua_newuserdata(L, sizeof *result * (size_t)(n + 1));
  ty_tensor **saved = room_at(L, 2, 0, &nsaved), **grad = room_at(L, 3, 0, &ngrad);
  filled(L, 2, saved, nsaved);
  filled(L, 3, grad, ngrad);
  ty_modes *m = ty_own_modes(L, s);        /* a finalizer may have ended them */
  m->pinned++;
  s->L = L;
  const ty_status st = ty_skeleton_run(&m->ctx, k, saved, grad, result);
  m->pinned--;
  s->L = L;
  ty_ctx *ctx = ty_modes_end(L, s, &m->ctx);
  if (st != TY_OK) return ty_raise(L, ctx);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, list, i + 1);
    ((ty_handle *)lua_touserdata(L, -1))->t = result[i];
    lua_pop(L, 1);
    if (!result[i]) { lua_pushboolean(L, false); lua_rawseti(L, list, i + 1); }
  }
  lua_pushvalue(L, list);
  return 1;
}

/* join(skeleton, program or false, i, context, operands, results): the results' history becomes one call of the context's function, whose
   operands are the tensors that the tape saved, then `operands`. The saved ones are the program's results from i on; without a program
   they are still in the skeleton, which is emptied. */
static int join(lua_State *L) {
  enum { SKELETON = 1, PROGRAM, FROM, CONTEXT, OPERANDS, RESULTS, ANCHORS };
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_program *p = lua_toboolean(L, PROGRAM) ? ty_program_at(L, PROGRAM) : NULL;
  const int from = (int)luaL_checkinteger(L, FROM) - 1, nin = (int)lua_objlen(L, OPERANDS), nout = (int)lua_objlen(L, RESULTS);
  ty_skeleton *k = ty_skeleton_at(L, SKELETON);
  int nsaved;
  ty_tensor **saved = ty_skeleton_saved(k, &nsaved);
  lua_settop(L, RESULTS);
  lua_newtable(L);
  for (int i = 1; i <= nin; i++) {
    lua_rawgeti(L, OPERANDS, i);
    ty_note_anchor(L, lua_gettop(L), ANCHORS);
    lua_pop(L, 1);
  }
  ty_tensor **in = lua_newuserdata(L, sizeof *in * (size_t)(nsaved + nin + nout + 1)), **out = in + nsaved + nin;
  const ty_function f = {ty_new_key(L, s, CONTEXT), true, nsaved};
  ty_status st = TY_OK;
  int made = 0, given = 0;                 /* from here to the record nothing allocates in Lua: finalizers may free tensors */
  for (int i = 0; i < nin; i++) { lua_rawgeti(L, OPERANDS, i + 1); in[nsaved + i] = ty_test(L, -1); lua_pop(L, 1); }
  for (; given < nsaved && st == TY_OK; given++)
    if (!(in[given] = p ? ty_program_result(p, from + given) : ty_retain(saved[given]))) st = ty_no_memory(ctx, "compile");
  for (; made < nout && st == TY_OK; made++) {
    lua_rawgeti(L, RESULTS, made + 1);
    if (!(out[made] = ty_alias(ty_test(L, -1)))) st = ty_no_memory(ctx, "compile");
    lua_pop(L, 1);
  }
  if (st == TY_OK) st = ty_record_function(ctx, f, in, nsaved + nin, out, nout);
  for (int i = 0; i < given; i++) ty_release(in[i]);
  if (!p) ty_skeleton_empty(k);
  for (int j = 0; j < made; j++) {
    lua_rawgeti(L, RESULTS, j + 1);
    ty_handle *h = lua_touserdata(L, -1);
    ty_tensor *old = st == TY_OK ? h->t : out[j];
    if (st == TY_OK) h->t = out[j];
    ty_release(old);
    lua_pop(L, 1);
  }
  if (st != TY_OK) return ty_raise(L, ctx);
  for (int j = 1; j <= nout; j++) {
    lua_rawgeti(L, RESULTS, j);
    const int h = lua_gettop(L);
    if (lua_objlen(L, ANCHORS)) ty_set_anchor(L, h, ANCHORS);
    lua_pushvalue(L, CONTEXT);
    ty_anchor(L, h);
    lua_settop(L, h - 1);
  }
  return 0;
}

void ty_open_skeleton(lua_State *L) {
  ty_add(L, "skeleton", of_results);
  ty_add(L, "pass", skeleton_pass);
  ty_add(L, "join", join);
}
