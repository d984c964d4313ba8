/* The op table as Lua sees it: a function for each op, functions written in Lua whose arguments are checked by the same kind of
 * signature, and the table itself for docs and specs.
 *
 * Invariant: nothing here treats one op differently from another. */
#include <stddef.h>
#include <string.h>
#include "binding.h"

static int op_call(lua_State *L) {
  return ty_run_op(L, lua_touserdata(L, lua_upvalueindex(TY_UPVALUES + 1)), 0);
}

static int op_call_inplace(lua_State *L) {
  ty_op *op = lua_touserdata(L, lua_upvalueindex(TY_UPVALUES + 1));
  ty_check_any(L, 1, op->shown, "argument 1");
  return ty_run_op(L, op, 1);
}

/* shape_functions: list of {name, signature, doc, function} */
static void push_shape_functions(lua_State *L) {
  lua_newtable(L);
  for (int i = 0; ty_shape_functions[i].name; i++) {
    ty_op *f = &ty_shape_functions[i];
    lua_newtable(L);
    lua_pushstring(L, f->name); lua_setfield(L, -2, "name");
    lua_pushstring(L, f->sig); lua_setfield(L, -2, "signature");
    lua_pushstring(L, f->doc); lua_setfield(L, -2, "doc");
    lua_pushlightuserdata(L, f);
    ty_closure(L, op_call, 1);
    lua_setfield(L, -2, "call");
    lua_rawseti(L, -2, i + 1);
  }
}

/* ops: name -> function; in-place forms under name_ */
static void push_ops(lua_State *L) {
  lua_newtable(L);
  for (int i = 0; i < TY_NOP; i++) {
    lua_pushlightuserdata(L, &ty_ops[i]);
    ty_closure(L, op_call, 1);
    lua_setfield(L, -2, ty_ops[i].name);
    if (ty_ops[i].in_place) {
      lua_pushlightuserdata(L, &ty_ops[i]);
      ty_closure(L, op_call_inplace, 1);
      lua_pushfstring(L, "%s_", ty_ops[i].name);
      lua_insert(L, -2);
      lua_rawset(L, -3);
    }
  }
}

static int lua_function(lua_State *L) {  /* upvalues: signature, function, what ty_push_scoped pushed (nil: no scope) */
  ty_state *s = ty_state_of(L);
  ty_op *sig = lua_touserdata(L, lua_upvalueindex(TY_UPVALUES + 1));
  const bool scoped = !lua_isnil(L, lua_upvalueindex(TY_UPVALUES + 3));
  ty_parse_to_stack(L, sig, 1);
  const int base = lua_gettop(L) - sig->nparam;
  if (scoped) {
    lua_pushvalue(L, lua_upvalueindex(TY_UPVALUES + 3));
    lua_insert(L, base + 1);
  }
  lua_pushvalue(L, lua_upvalueindex(TY_UPVALUES + 2));
  lua_insert(L, base + 1 + scoped);
  if (scoped) ty_scope_call(L, s, sig->nparam);
  else lua_call(L, sig->nparam, LUA_MULTRET);
  return lua_gettop(L) - base;
}

const ty_op *ty_defined_at(lua_State *L, int index) {
  const ty_op *op = NULL;
  if (lua_tocfunction(L, index) == lua_function && lua_getupvalue(L, index, TY_UPVALUES + 1)) {
    op = lua_touserdata(L, -1);
    lua_pop(L, 1);
  }
  return op;
}

/* define(name, signature, function, scoped) -> function with checked, ordered arguments; scoped: what it makes and doesn't return is
   released after the call */
static int define(lua_State *L) {
  char err[TY_ERRLEN];
  const char *name = luaL_checkstring(L, 1), *sig = luaL_checkstring(L, 2);
  luaL_checktype(L, 3, LUA_TFUNCTION);
  lua_settop(L, 4);
  ty_op parsed = {.nout = 1};
  if (ty_sig_parse(sig, &parsed, err) != TY_OK) return ty_throw(L, "%s", err);
  const size_t size = offsetof(ty_op, param) + (size_t)parsed.nparam * sizeof *parsed.param;
  ty_op *op = lua_newuserdata(L, size + strlen(name) + 1);
  memcpy(op, &parsed, size);
  op->name = op->shown = strcpy((char *)op + size, name);
  lua_pushvalue(L, 3);
  if (lua_toboolean(L, 4)) ty_push_scoped(L);
  else lua_pushnil(L);
  ty_closure(L, lua_function, 3);
  return 1;
}

/* list of {name, signature, doc, domain, class, results, inplace, differentiable, autocast, dtype,
   params and attributes (names in order)} for docs, specs and traces */
static int op_table(lua_State *L) {
  static const char *const classes[TY_NCLASS] = {TY_CLASSES(TY_AS_WORD)}, *const casts[] =
    {[TY_A_FP16] = "16 bits", [TY_A_FP32] = "float32", [TY_A_WIDEST] = "widest"}, *const rules[] = {[TY_D_SAME] = "same",
    [TY_D_FLOAT] = "floating", [TY_D_BOOL] = "bool", [TY_D_FIRST] = "first", [TY_D_WHERE] = "same", [TY_D_WHOLE] = "whole"};
  lua_newtable(L);
  for (int i = 0; i < TY_NOP; i++) {
    const ty_op *op = &ty_ops[i];
    lua_newtable(L);
    lua_pushstring(L, op->name); lua_setfield(L, -2, "name");
    luaL_gsub(L, op->sig, "~", ""); lua_setfield(L, -2, "signature");
    lua_pushstring(L, op->doc); lua_setfield(L, -2, "doc");
    lua_pushstring(L, op->domain); lua_setfield(L, -2, "domain");
    lua_pushstring(L, classes[op->cls]); lua_setfield(L, -2, "class");
    lua_pushinteger(L, op->nout); lua_setfield(L, -2, "results");
    lua_pushboolean(L, op->in_place); lua_setfield(L, -2, "inplace");
    lua_pushboolean(L, op->diff != 0); lua_setfield(L, -2, "differentiable");
    lua_pushstring(L, casts[op->cast]); lua_setfield(L, -2, "autocast");
    if (op->cls == TY_C_POINTWISE) { lua_pushstring(L, rules[op->dtype]); lua_setfield(L, -2, "dtype"); }
    lua_createtable(L, op->nparam, 0);
    for (int k = 0; k < op->nparam; k++) { lua_pushstring(L, op->param[k].name); lua_rawseti(L, -2, k + 1); }
    lua_setfield(L, -2, "params");
    lua_createtable(L, op->nattr, 0);
    for (int k = 0; k < op->nparam; k++)
      if (!ty_param_is_operand(&op->param[k])) { lua_pushstring(L, op->param[k].name); lua_rawseti(L, -2, op->param[k].slot + 1); }
    lua_setfield(L, -2, "attributes");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int nearest(lua_State *L) {       /* name, list -> nearest name or nil */
  luaL_checktype(L, 2, LUA_TTABLE);
  const char *name = luaL_checkstring(L, 1), *names[2048];
  int n = TY_MIN((int)lua_objlen(L, 2), 2048);
  for (int i = 0; i < n; i++) { lua_rawgeti(L, 2, i + 1); names[i] = luaL_checkstring(L, -1); lua_pop(L, 1); }
  lua_pushstring(L, ty_nearest(name, names, n));
  return 1;
}

void ty_open_ops(lua_State *L) {
  push_ops(L);
  lua_setfield(L, -2, "ops");
  push_shape_functions(L);
  lua_setfield(L, -2, "shape_functions");
  ty_add(L, "define", define);
  ty_add(L, "op_table", op_table);
  ty_add(L, "nearest", nearest);
  lua_createtable(L, TY_NDTYPE, 0);
  for (int i = 0; i < TY_NDTYPE; i++) {
    lua_pushstring(L, ty_dtype_names[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "dtypes");
}
