/* From Lua arguments to operands and attributes, by an op's parsed signature.
 *
 * Idea: first find for each parameter where its value stands on the stack (positional, in a run of numbers, or in the
 * options table), then convert each by its type. Functions written in Lua go through the same steps and get their arguments
 * in order. Invariant: nothing is held in C while an error can be raised. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "binding.h"

bool ty_is_whole(double v, int64_t *out) {
  if (!(v >= -9007199254740992.0 && v <= 9007199254740992.0) || v != floor(v)) return false;
  *out = (int64_t)v;
  return true;
}

int64_t ty_list_length(lua_State *L, int index) {
  int64_t n = (int64_t)lua_objlen(L, index), count = 0;
  if (index < 0) index = lua_gettop(L) + index + 1;
  luaL_checkstack(L, 3, "list");
  lua_pushnil(L);
  while (lua_next(L, index)) { count++; lua_pop(L, 1); }
  return count == n ? n : -1;
}

/* Where a parameter's value stands: stack index, and how many numbers in a row for sizes given one by one. */
typedef struct { int at, count; } place;

static int bad(lua_State *L, const ty_op *op, int k, const char *expected, int index) {
  const ty_param *p = &op->param[k];
  char got[64];
  int64_t whole;
  if (index && lua_type(L, index) == LUA_TNUMBER)
    snprintf(got, sizeof got, ty_is_whole(lua_tonumber(L, index), &whole) ? "%.0f" : "%.14g", lua_tonumber(L, index));
  else if (index && lua_type(L, index) == LUA_TSTRING) snprintf(got, sizeof got, "'%.40s'", lua_tostring(L, index));
  else snprintf(got, sizeof got, "%s", index ? ty_type_text(L, index) : "nil");
  /* x.sum() for x:sum(), x.add(1) for x:add(1): the commonest mistake of users who come from Python */
  const ty_handle *first = ty_is_handle(L, 1);      /* in a call without arguments: the result's empty handle */
  const bool dot = p->type <= TY_P_OPERAND && ty_called_by_user(L) && !(first && (first->t || first->state != TY_LIVE))
    && (k == 0 ? !index || lua_type(L, index) != LUA_TTABLE : k == 1 && !index);
  const bool number = index && lua_type(L, index) == LUA_TNUMBER;         /* sqrt(v[i]), where v[i] is a number */
  if (index && !strcmp(got, "cdata") && !ty_param_is_operand(p) && p->type != TY_P_BOOL)       /* an element of an int64 tensor's data() */
    return ty_throw(L, "%s: argument %d (%s) must be %s, got cdata; convert an FFI integer with tonumber(v)",
      op->shown, k + 1, p->name, expected);
  if (p->type == TY_P_SIZES && (op->cls == TY_C_FILL || op->cls == TY_C_RANDOM) && index && lua_type(L, index) == LUA_TSTRING)
    return ty_throw(L, "%s: argument %d (%s) must be %s, got %s; options have names: {dtype = ...}, {device = ...}", op->shown, k + 1,
      p->name, expected, got);
  return ty_throw(L, "%s: argument %d (%s) must be %s, got %s%s%s", op->shown, k + 1, p->name, expected, got,
    dot ? "; a method is called with a colon" : "", dot && number ? ", and v[i] of a vector is a number: use v:select(1, i)" : "");
}

/* ---- where values stand ---- */

static bool takes_list(int type) {
  return type == TY_P_TENSORS || type == TY_P_DIMS || type == TY_P_SIZES || type == TY_P_INTS ||
    (type >= TY_P_SINGLE && type <= TY_P_TRIPLE) || type == TY_P_ANY;
}
static bool takes_run(int type) { return type == TY_P_SIZES || type == TY_P_DIMS; }

/* A table with a string key holds options, unless it is a module, or, where a list may stand, an object. So does {} where none may. */
static bool is_options(lua_State *L, int index, bool list_here) {
  if (lua_type(L, index) != LUA_TTABLE || ty_is_module(L, index)) return false;
  if (list_here && lua_getmetatable(L, index)) { lua_pop(L, 1); return false; }
  bool any = false;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    any = true;
    bool named = lua_type(L, -2) == LUA_TSTRING;
    lua_pop(L, 1);
    if (named) { lua_pop(L, 1); return true; }
  }
  return !any && !list_here;
}

static int unknown_option(lua_State *L, const ty_op *op, const char *key, bool creates) {
  const char *names[TY_MAXPARAM + 2];
  int n = 0;
  for (int i = 0; i < op->nparam; i++) names[n++] = op->param[i].name;
  if (creates) { names[n++] = "requires_grad"; names[n++] = "pin_memory"; }
  const char *near = ty_nearest(key, names, n);
  if (near) return ty_throw(L, "%s: unknown option '%s'; did you mean '%s'?", op->shown, key, near);
  luaL_Buffer all;
  luaL_buffinit(L, &all);
  for (int i = 0; i < n; i++) {
    luaL_addstring(&all, i ? ", " : n > 1 ? "; the options are " : "; the only option is ");
    luaL_addstring(&all, names[i]);
  }
  luaL_pushresult(&all);
  return ty_throw(L, "%s: unknown option '%s'%s", op->shown, key, lua_tostring(L, -1));
}

/* The parameter that PyTorch calls `key`; nparam: none. */
static int by_other_name(const ty_op *op, const char *key) {
  static const char *const names[][2] = {
    {"gradient", "grad"}, {"map_location", "device"}, {"input2", "l"}, {"other", "b"}, {"exponent", "b"}, {"mat2", "b"},
    {"vec", "b"}, {"vec2", "b"}, {"batch2", "b"}, {"input2", "b"}, {"x2", "b"}, {"B", "b"}, {"end", "b"},
    {"tensor1", "b"}, {"tensor2", "c"}, {"mat1", "a"}, {"mat", "a"}, {"vec1", "a"}, {"batch1", "a"}, {"input1", "a"},
    {"x1", "a"}, {"A", "a"}, {"L", "l"}, {"condition", "cond"}, {"x", "a"}, {"y", "b"},
    {"axis", "dim"}, {"keepdims", "keepdim"}, {"dims", "dim"}, {"dimension", "dim"}, {"diagonal", "k"}, {"diagonal", "offset"},
    {"fill_value", "value"}, {"shape", "size"}, {"sizes", "size"}, {"normalized_shape", "size"},
    {"split_size", "size"}, {"split_size_or_sections", "size"}, {"chunks", "n"}, {"num_samples", "n"},
    {"shifts", "shift"}, {"dims", "repeats"}, {"reps", "repeats"}, {"num_groups", "groups"},
    {"running_mean", "mean"}, {"running_var", "var"}, {"query", "q"}, {"key", "k"}, {"value", "v"}, {"value", "src"},
    {"source", "src"}, {"source", "from"}, {"destination", "to"}, {"indices", "index"},
    {"start", "first"}, {"end", "last"}, {"from", "low"}, {"to", "high"}, {"upscale_factor", "factor"},
    {"downscale_factor", "factor"}, {"indices_or_sections", "sections"}, {"test_elements", "values"},
    {"sorted_sequence", "sorted"}, {"target", "y"}, {"norm_type", "p"}, {"ord", "p"}, {"positive", "near"},
    {"negative", "far"}, {"include_input", "include_self"}, {"classes", "num_classes"}, {"slope", "negative_slope"},
    {"N", "n"}, {"w", "weight"}, {"b", "bias"}, {"v", "value"}, {"k", "kernel_size"}, {"lo", "low"}, {"hi", "high"}, {"angle", "degrees"},
    {"brightness_factor", "factor"}, {"contrast_factor", "factor"}, {"saturation_factor", "factor"}, {"hue_factor", "factor"},
    {"sharpness_factor", "factor"}};
  static const char *const first[] = {"input", "self", "tensor", "anchor", "logits", "elements"};
  for (unsigned k = 0; k < sizeof first / sizeof *first; k++) {
    const int at = op->nparam > 1 && !strcmp(op->param[0].name, "cond");          /* where(cond, input, ...) */
    if (!strcmp(key, first[k])) return op->nparam && op->param[at].type <= TY_P_OPERAND ? at : op->nparam;
  }
  for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
    if (strcmp(key, names[k][0])) continue;
    for (int i = 0; i < op->nparam; i++)
      if (!strcmp(op->param[i].name, names[k][1])) return i;
  }
  return op->nparam;
}

/* Places the arguments from `first` to top that stand by position; returns the index of the options behind them, or 0. */
static int by_position(lua_State *L, const ty_op *op, int first, int top, place *where) {
  int k = 0, arg = first;
  if (top - first < op->lead) {          /* the common case: operands and nothing else */
    for (; arg <= top && lua_type(L, arg) != LUA_TTABLE; arg++, k++)
      if (!lua_isnil(L, arg)) where[k] = (place){arg, 1};
    if (arg > top) return 0;
  }
  for (; k < op->nparam && !op->param[k].keyword && arg <= top; k++) {
    const int type = op->param[k].type;
    if (arg == top && is_options(L, arg, takes_list(type))) break;
    if (type == TY_P_SIZES && lua_isnil(L, arg) && arg < top && lua_type(L, arg + 1) == LUA_TNUMBER)
      ty_throw(L, "%s: size 1 is nil", op->shown);
    if (takes_run(type) && lua_type(L, arg) == LUA_TNUMBER) {
      int n = 0;
      while (arg + n <= top && lua_type(L, arg + n) == LUA_TNUMBER) n++;
      where[k] = (place){arg, n};
      arg += n;
      continue;
    }
    if (takes_run(type) && !strcmp(luaL_typename(L, arg), "cdata")) bad(L, op, k, "whole numbers", arg);
    if (!lua_isnil(L, arg)) where[k] = (place){arg, 1};
    arg++;
  }
  if (arg == top && lua_type(L, arg) == LUA_TTABLE && is_options(L, arg, false)) return arg;
  if (arg <= top && k && takes_run(op->param[k - 1].type) && where[k - 1].count && lua_type(L, arg - 1) == LUA_TNUMBER)
    bad(L, op, k - 1, "whole numbers", arg);
  while (arg <= top && lua_isnil(L, top)) top--;         /* a wrapper's options, which may be nil */
  if (arg > top) return 0;
  int most = 0;
  for (int i = 0; i < op->nparam; i++) most += !op->param[i].keyword;
  return ty_throw(L, "%s: at most %d argument%s%s, got %d", op->shown, most, most == 1 ? "" : "s",
    most && op->param[0].type <= TY_P_OPERAND ? ", counting a method's tensor" : "", most + top - arg + 1);
}

/* Places the values in the table at `options`, which it leaves on the stack. made: NULL, or takes what only a creator has. */
static void by_name(lua_State *L, const ty_op *op, int options, place *where, ty_made *made) {
  luaL_checkstack(L, op->nparam + 8, "too many arguments");
  lua_pushnil(L);
  while (lua_next(L, options)) {
    int i = 0;
    if (lua_type(L, -2) != LUA_TSTRING)
      ty_throw(L, "%s: options need names, got one at index %s: give a list and options in two tables, ({...}, {name = ...})", op->shown,
        lua_tostring(L, (lua_pushvalue(L, -2), -1)));
    const char *key = lua_tostring(L, -2);
    while (i < op->nparam && strcmp(op->param[i].name, key)) i++;
    if (i == op->nparam) i = by_other_name(op, key);
    if (i < op->nparam) {
      if (where[i].at) ty_throw(L, "%s: argument %d (%s) is given twice", op->shown, i + 1, key);
      lua_insert(L, -2);                 /* the value stays below the key */
      where[i] = (place){lua_gettop(L) - 1, 1};
    } else if (made && (!strcmp(key, "requires_grad") || !strcmp(key, "pin_memory"))) {
      if (lua_type(L, -1) != LUA_TBOOLEAN) ty_throw(L, "%s: option '%s' must be a boolean, got %s", op->shown, key, ty_type_text(L, -1));
      *(key[0] == 'r' ? &made->requires_grad : &made->pinned) = lua_toboolean(L, -1);
      lua_pop(L, 1);
    } else unknown_option(L, op, key, made);
  }
}

static void locate(lua_State *L, const ty_op *op, int first, int top, place *where, ty_made *made) {
  memset(where, 0, sizeof(place) * (size_t)op->nparam);
  const int options = by_position(L, op, first, top, where);
  const bool creates = op->cls == TY_C_FILL || op->cls == TY_C_RANDOM;
  if (options) by_name(L, op, options, where, creates ? made : NULL);
}

/* ---- conversion ---- */

static ty_handle *tensor_at(lua_State *L, const ty_op *op, int k, int index, int item) {
  ty_handle *h = ty_is_handle(L, index);
  if (!h) {
    if (item)
      ty_throw(L, "%s: argument %d (%s) must be a list of tensors, got %s at %d", op->shown, k + 1, op->param[k].name,
        ty_type_text(L, index), item);
    bad(L, op, k, op->param[k].type == TY_P_OPERAND ? "a tensor or a number" : "a tensor", index);
  }
  if (!h->t) {
    char what[48];
    snprintf(what, sizeof what, "argument %d (%s)", k + 1, op->param[k].name);
    ty_check_any(L, index, op->shown, what);
  }
  return h;
}

static int64_t whole_at(lua_State *L, const ty_op *op, int k, int index, const char *expected) {
  int64_t v;
  if (lua_type(L, index) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, index), &v)) { bad(L, op, k, expected, index); return 0; }
  return v;
}

static int64_t dim_at(lua_State *L, const ty_op *op, int k, int index) {
  int64_t d = whole_at(L, op, k, index, "a dim (a whole number)");
  if (d == 0) ty_throw(L, "%s: argument %d (%s) is dim 0: dims begin at 1", op->shown, k + 1, op->param[k].name);
  return d > 0 ? d - 1 : d;
}

/* Raises for a table that ty_list_length doesn't take. */
static void bad_list(lua_State *L, const ty_op *op, int k, int index) {
  bool named = false;
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) named = named || lua_type(L, -2) == LUA_TSTRING;
  ty_throw(L, named ? "%s: argument %d (%s) is a table with names: options come after all other arguments"
    : "%s: argument %d (%s) is a list with holes: nil in the middle", op->shown, k + 1, op->param[k].name);
}

/* A list of whole numbers, from a table or a run of arguments. */
static void list_at(lua_State *L, const ty_op *op, int k, place w, ty_attr *a) {
  bool dims = op->param[k].type == TY_P_DIMS;
  const char *expected = dims ? "a dim or a list of dims" : "a list of whole numbers";
  bool table = lua_type(L, w.at) == LUA_TTABLE;
  int64_t n = table ? ty_list_length(L, w.at) : w.count;
  if (n < 0) bad_list(L, op, k, w.at);
  if (!table && lua_type(L, w.at) != LUA_TNUMBER) bad(L, op, k, expected, w.at);
  if (n > TY_MAXDIM)
    ty_throw(L, "%s: argument %d (%s) has %d numbers; at most %d dims are supported", op->shown, k + 1,
      op->param[k].name, (int)n, TY_MAXDIM);
  a->n = (uint8_t)n;
  for (int i = 0; i < n; i++) {
    int index = w.at + i;
    if (table) { lua_rawgeti(L, w.at, i + 1); index = lua_gettop(L); }
    a->v[i] = dims ? dim_at(L, op, k, index) : whole_at(L, op, k, index, expected);
    if (table) lua_pop(L, 1);
  }
}

/* A single, a pair or a triple. A list of one doesn't stand for an output_size of more, where it may be {h, nil}. */
static void window_at(lua_State *L, const ty_op *op, int k, int index, ty_attr *a) {
  const bool table = lua_type(L, index) == LUA_TTABLE;
  static const char *const texts[] = {"a whole number", "a whole number or a list of two", "a whole number or a list of three"};
  const char *expected = texts[op->param[k].type - TY_P_SINGLE];
  const size_t given = table ? lua_objlen(L, index) : 1;
  a->n = (uint8_t)(op->param[k].type - TY_P_SINGLE + 1);
  if (table && given != a->n && (given != 1 || !strcmp(op->param[k].name, "output_size")))
    ty_throw(L, "%s: argument %d (%s) must be %s, got a list of %d", op->shown, k + 1, op->param[k].name, expected,
      (int)given);
  for (int i = 0; i < a->n; i++) {
    if (table) lua_rawgeti(L, index, given == 1 ? 1 : i + 1); else lua_pushvalue(L, index);
    a->v[i] = whole_at(L, op, k, lua_gettop(L), expected);
    lua_pop(L, 1);
  }
}

static int dtype_at(lua_State *L, const ty_op *op, int k, int index) {
  if (lua_type(L, index) != LUA_TSTRING) bad(L, op, k, "a dtype such as 'float32'", index);
  int d = ty_dtype_find(lua_tostring(L, index));
  if (d < 0) {
    static const char *const others[][2] = {{"long", "int64"}, {"int", "int32"}, {"float", "float32"},
      {"half", "float16"}, {"double", "float64"}, {"byte", "uint8"}};
    const char *near = ty_nearest(lua_tostring(L, index), ty_dtype_names, TY_NDTYPE);
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
      if (!strcmp(lua_tostring(L, index), others[i][0])) near = others[i][1];
    if (near) ty_throw(L, "%s: '%s' is not a dtype; did you mean '%s'?", op->shown, lua_tostring(L, index), near);
    bad(L, op, k, "a dtype such as 'float32'", index);
  }
  return d;
}

static int choice_at(lua_State *L, const ty_op *op, int k, int index) {
  size_t n = 0;
  const char *v = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &n) : "";
  const int i = ty_choice(&op->param[k], v, n);
  if (i >= 0) return i;
  char expected[160];
  snprintf(expected, sizeof expected, "one of %s", op->param[k].choices);
  return bad(L, op, k, expected, index);
}

static int device_at(lua_State *L, const ty_op *op, int k, int index) {
  const char *v = lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : NULL;
  int d = v ? ty_device_at(L, v, op->shown) : -1;
  return d >= 0 ? d : bad(L, op, k, "a device such as 'cpu' or 'cuda:0'", index);
}

static void missing(lua_State *L, const ty_op *op, int k) {
  ty_throw(L, k == 0 && op->param[0].type <= TY_P_OPERAND ? "%s: argument %d (%s) is missing; a method is called with a colon"
    : "%s: argument %d (%s) is missing", op->shown, k + 1, op->param[k].name);
}

static void attr_at(lua_State *L, const ty_op *op, int k, place w, ty_attr *a) {
  const ty_param *p = &op->param[k];
  int index = w.at;
  if (!index) {
    if (!p->optional) missing(L, op, k);
    *a = p->def;
    return;
  }
  a->set = true;
  a->n = 0;
  if (w.count > 1 && !takes_run(p->type)) bad(L, op, k, "one value", index);
  switch (p->type) {
    case TY_P_INT: a->i = whole_at(L, op, k, index, "a whole number"); break;
    case TY_P_NUMBER:
      if (lua_type(L, index) != LUA_TNUMBER) bad(L, op, k, "a number", index);
      a->f = lua_tonumber(L, index);
      break;
    case TY_P_BOOL:
      if (lua_type(L, index) != LUA_TBOOLEAN) bad(L, op, k, "a boolean", index);
      a->i = lua_toboolean(L, index);
      break;
    case TY_P_DIM: a->i = dim_at(L, op, k, index); break;
    case TY_P_DIMS: case TY_P_SIZES: case TY_P_INTS: list_at(L, op, k, w, a); break;
    case TY_P_SINGLE: case TY_P_PAIR: case TY_P_TRIPLE: window_at(L, op, k, index, a); break;
    case TY_P_DTYPE: a->i = dtype_at(L, op, k, index); break;
    case TY_P_ENUM: a->i = choice_at(L, op, k, index); break;
    case TY_P_DEVICE: a->i = device_at(L, op, k, index); break;
    case TY_P_ANY: {
      int64_t v;
      int t = lua_type(L, index);
      if (t == LUA_TBOOLEAN) { a->n = TY_BOOLEAN; a->i = lua_toboolean(L, index); }
      else if (t != LUA_TNUMBER) bad(L, op, k, "a number or a boolean", index);
      else if (ty_is_whole(lua_tonumber(L, index), &v) && !(v == 0 && signbit(lua_tonumber(L, index)))) { a->n = TY_INT; a->i = v; }
      else { a->n = TY_FLOAT; a->f = lua_tonumber(L, index); }
      break;
    }
    default: ty_throw(L, "%s: argument %d (%s) is only for functions in Lua", op->shown, k + 1, p->name);
  }
}

ty_operand ty_number_at(lua_State *L, int index) {
  int64_t v;
  if (lua_type(L, index) == LUA_TBOOLEAN) { ty_operand o = ty_operand_int(lua_toboolean(L, index)); o.kind = TY_BOOLEAN; return o; }
  double d = lua_tonumber(L, index);
  if (!ty_is_whole(d, &v)) return ty_operand_float(d);
  ty_operand o = ty_operand_int(v);
  o.f = d;                               /* which may be -0 */
  return o;
}

/* How many tensors the list of parameter k has. */
static int members_of(lua_State *L, const ty_op *op, int k, int index) {
  if (ty_is_handle(L, index)) bad(L, op, k, "a list of tensors, {a, b}", index);
  if (lua_type(L, index) != LUA_TTABLE) bad(L, op, k, "a list of tensors", index);
  const int n = (int)ty_list_length(L, index);
  if (n < 0) bad_list(L, op, k, index);
  return n;
}

static void put_tensor(ty_args *a, const ty_handle *h) {
  a->in[a->nin++] = ty_operand_tensor(h->t);
  a->anchored = a->anchored || h->anchored;
  a->listed = a->listed || (a->lists && ty_may_be_operand(a->lists, h));
}

static void operand_at(lua_State *L, const ty_op *op, int k, place w, ty_args *a) {
  const ty_param *p = &op->param[k];
  int index = w.at;
  a->span[p->slot] = (ty_span){a->nin, 1};
  if (!index) {
    if (!p->optional)
      bad(L, op, k, p->type == TY_P_TENSORS ? "a list of tensors" : p->type == TY_P_OPERAND ? "a tensor or a number"
        : "a tensor", 0);
    if (p->type == TY_P_TENSORS) a->span[p->slot].count = 0;
    else a->in[a->nin++] = (ty_operand){0};
    return;
  }
  if (p->type == TY_P_TENSORS) {
    const int n = members_of(L, op, k, index);
    if (a->nin + n > a->room) ty_throw(L, "%s: argument %d (%s) has changed while it was read", op->shown, k + 1, p->name);
    a->span[p->slot].count = n;
    for (int i = 1; i <= n; i++) {
      lua_rawgeti(L, index, i);
      const ty_handle *h = tensor_at(L, op, k, lua_gettop(L), i);
      put_tensor(a, h);
      lua_pop(L, 1);
    }
    return;
  }
  int t = lua_type(L, index);
  if (p->type == TY_P_OPERAND && (t == LUA_TNUMBER || t == LUA_TBOOLEAN)) { a->in[a->nin++] = ty_number_at(L, index); return; }
  put_tensor(a, tensor_at(L, op, k, index, 0));
}

static void convert(lua_State *L, const ty_op *op, const place *where, ty_args *a) {
  a->nin = 0;
  a->anchored = a->listed = false;
  for (int k = 0; k < op->nparam; k++)
    if (ty_param_is_operand(&op->param[k])) operand_at(L, op, k, where[k], a);
    else attr_at(L, op, k, where[k], &a->at[op->param[k].slot]);
}

/* Adds the tensor arguments' environments to the list at anchors; anchors 0: calls ty_list_operand for these arguments. */
static void note_tensors(lua_State *L, const ty_op *op, const place *where, int anchors) {
  for (int k = 0; k < op->nparam; k++) {
    const int index = where[k].at, list = index && op->param[k].type == TY_P_TENSORS;
    if (!index || !ty_param_is_operand(&op->param[k])) continue;
    for (int i = 1, n = list ? members_of(L, op, k, index) : 1; i <= n; i++) {
      if (list) lua_rawgeti(L, index, i); else lua_pushvalue(L, index);
      if (anchors) ty_note_anchor(L, lua_gettop(L), anchors);
      else ty_list_operand(L, lua_gettop(L));
      lua_pop(L, 1);
    }
  }
}

void ty_parse(lua_State *L, const ty_op *op, int first, int top, ty_args *a) {
  place where[TY_MAXPARAM];
  const ty_state *s = lua_touserdata(L, lua_upvalueindex(1));
  a->lists = s->operand_lists ? s : NULL;
  a->made = (ty_made){false, false};
  a->in = a->small;
  a->room = 16;
  a->anchors = 0;
  locate(L, op, first, top, where, &a->made);
  if (op->has_list) {                    /* room for all members, in a userdata */
    int n = 0;
    for (int k = 0; k < op->nparam; k++) {
      if (!ty_param_is_operand(&op->param[k])) continue;
      n += op->param[k].type == TY_P_TENSORS && where[k].at && lua_type(L, where[k].at) == LUA_TTABLE ? (int)lua_objlen(L, where[k].at) : 1;
    }
    if (n > a->room) a->in = lua_newuserdata(L, sizeof(ty_operand) * (size_t)(a->room = n));
  }
  convert(L, op, where, a);
  if (!a->anchored && !a->listed) return;
  /* this allocates, and finalizers may free tensors in a->in: so convert again afterwards */
  if (a->listed) note_tensors(L, op, where, 0);
  if (a->anchored) {
    lua_newtable(L);
    note_tensors(L, op, where, a->anchors = lua_gettop(L));
  }
  convert(L, op, where, a);
}

void ty_parse_to_stack(lua_State *L, const ty_op *op, int first) {
  place where[TY_MAXPARAM];
  ty_attr at;
  locate(L, op, first, lua_gettop(L), where, NULL);
  luaL_checkstack(L, op->nparam + 8, "too many arguments");
  for (int k = 0; k < op->nparam; k++) {
    const ty_param *p = &op->param[k];
    int index = where[k].at;
    if (!index && p->type != TY_P_ANY && p->type != TY_P_STRING && !ty_param_is_operand(p)) {
      attr_at(L, op, k, where[k], &at);
      ty_push_attr(L, p, &at);
      continue;
    }
    if (!index) {
      if (!p->optional) missing(L, op, k);
      lua_pushnil(L);
      continue;
    }
    switch (p->type) {
      case TY_P_TENSOR: tensor_at(L, op, k, index, 0); lua_pushvalue(L, index); break;
      case TY_P_OPERAND:
        if (lua_type(L, index) != LUA_TNUMBER && lua_type(L, index) != LUA_TBOOLEAN) tensor_at(L, op, k, index, 0);
        lua_pushvalue(L, index);
        break;
      case TY_P_TENSORS:
        for (int i = 1, n = members_of(L, op, k, index); i <= n; i++) {
          lua_rawgeti(L, index, i);
          tensor_at(L, op, k, lua_gettop(L), i);
          lua_pop(L, 1);
        }
        lua_pushvalue(L, index);
        break;
      case TY_P_ANY: lua_pushvalue(L, index); break;
      case TY_P_STRING:
        if (lua_type(L, index) != LUA_TSTRING) bad(L, op, k, "a string", index);
        lua_pushvalue(L, index);
        break;
      default:
        attr_at(L, op, k, where[k], &at);
        ty_push_attr(L, p, &at);
    }
  }
}

/* ---- back to Lua ---- */

void ty_push_list(lua_State *L, const int64_t *from, int n, int add, bool shape) {
  int64_t v[TY_MAXDIM];                  /* a copy: finalizers may free what from belongs to */
  memcpy(v, from, sizeof(int64_t) * (size_t)n);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushnumber(L, (lua_Number)(v[i] + add));
    lua_rawseti(L, -2, i + 1);
  }
  if (shape) {
    ty_private(L, TY_R_SHAPE_META);
    lua_setmetatable(L, -2);
  }
}

/* An attribute as a Lua value; dims become 1-based again. */
void ty_push_attr(lua_State *L, const ty_param *p, const ty_attr *a) {
  if (!a->set) { lua_pushnil(L); return; }
  switch (p->type) {
    case TY_P_NUMBER: lua_pushnumber(L, a->f); break;
    case TY_P_ANY:
      if (a->n == TY_BOOLEAN) lua_pushboolean(L, a->i != 0);
      else lua_pushnumber(L, a->n == TY_FLOAT ? a->f : (lua_Number)a->i);
      break;
    case TY_P_BOOL: lua_pushboolean(L, a->i != 0); break;
    case TY_P_DIM: lua_pushnumber(L, (lua_Number)(a->i >= 0 ? a->i + 1 : a->i)); break;
    case TY_P_DIMS:
      lua_createtable(L, a->n, 0);
      for (int i = 0; i < a->n; i++) { lua_pushnumber(L, (lua_Number)(a->v[i] >= 0 ? a->v[i] + 1 : a->v[i])); lua_rawseti(L, -2, i + 1); }
      break;
    case TY_P_SIZES: case TY_P_INTS: case TY_P_PAIR: case TY_P_TRIPLE: ty_push_list(L, a->v, a->n, 0, false); break;
    case TY_P_DTYPE: lua_pushstring(L, ty_dtype_names[a->i]); break;
    case TY_P_DEVICE: lua_pushstring(L, ty_devices[a->i]->name); break;
    case TY_P_ENUM: {
      size_t n;
      const char *name = ty_choice_name(p, a->i, &n);
      lua_pushlstring(L, name, n);
      break;
    }
    default: lua_pushnumber(L, (lua_Number)a->i);
  }
}
