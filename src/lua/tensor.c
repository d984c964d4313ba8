/* Methods and metamethods of tensor handles: fields, element access, operators, raw data. Invariant: a handle that was freed, or forged,
 * gives an error (ty_check). */
#include <string.h>
#include <unistd.h>
#include "binding.h"
#include "fourier.h"
#include "program.h"

/* ---- elements ---- */

void ty_push_element(lua_State *L, const ty_tensor *t, int64_t offset) {
  const char *p = (const char *)t->storage->data + offset * ty_itemsize(t);
  double copy;
  if (ty_device_of(t)->gpu >= 0) {
    ty_ctx *ctx = ty_context(L);
    if (ty_device_of(t)->read(ctx, t->storage, (size_t)(offset * ty_itemsize(t)), &copy, (size_t)ty_itemsize(t)) != TY_OK) ty_raise(L, ctx);
    p = (const char *)&copy;
  }
  if (t->dtype == TY_BOOL) lua_pushboolean(L, *p != 0);
  else lua_pushnumber(L, ty_is_float(t->dtype) ? ty_get(p, t->dtype) : (double)ty_get_int(p, t->dtype));
}

static int item(lua_State *L) {
  ty_settle_read(L, 1, NULL, "item");
  ty_tensor *t = ty_check(L, 1, "item", "argument 1");
  if (ty_numel(t) != 1) return ty_throw(L, "item: a tensor of one element is needed, got shape %s", ty_shape_of(t));
  ty_push_element(L, t, t->offset);
  return 1;
}

#define TABLE_MOST 268435456.0             /* about the most that a LuaJIT table can hold */
static void push_nested(lua_State *L, const ty_tensor *t, int dim, int64_t offset) {
  if (dim == t->ndim) { ty_push_element(L, t, offset); return; }
  luaL_checkstack(L, 4, "totable");
  lua_createtable(L, (int)TY_MIN(t->shape[dim], 1 << 26), 0);
  for (int64_t i = 0; i < t->shape[dim]; i++) {
    push_nested(L, t, dim + 1, offset + i * t->stride[dim]);
    lua_rawseti(L, -2, (int)(i + 1));
  }
}

static int totable(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_settle_read(L, 1, NULL, "totable");
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t = ty_check(L, 1, "totable", "argument 1");
  double made = 1;                         /* tables and elements, at each depth */
  for (int d = 0; d < t->ndim; d++) {
    made *= (double)t->shape[d];
    if (made > TABLE_MOST) return ty_throw(L, "totable: shape %s is too large for Lua tables", ty_shape_of(t));
    if (made == 0) break;
  }
  if (ty_device_of(t)->gpu >= 0) {
    ty_ctx *ctx = ty_ctx_of(L, s);
    if (ty_move(ctx, t, &ty_cpu, &h->t) != TY_OK) return ty_raise(L, ctx);
    t = h->t;
  } else h->t = ty_retain(t);            /* finalizers may free t's handle; Lua may raise */
  push_nested(L, t, 0, t->offset);
  return 1;
}

/* ---- geometry ---- */

static int dim_argument(lua_State *L, const ty_tensor *t, const char *who) {
  int64_t d;
  if (lua_type(L, 2) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, 2), &d))
    return ty_throw(L, "%s: argument 2 (dim) must be a dim, got %s", who, ty_type_text(L, 2));
  if (d == 0) return ty_throw(L, "%s: argument 2 (dim) is dim 0: dims begin at 1", who);
  d = d > 0 ? d - 1 : d + t->ndim;
  if (d < 0 || d >= t->ndim) return ty_throw(L, "%s: dim %.0f is out of range for shape %s", who, lua_tonumber(L, 2), ty_shape_of(t));
  return (int)d;
}

/* Argument 2 where it stands in a table under its name, {dim = 2}, the method's only option. */
static void named(lua_State *L, const char *who, const char *name) {
  if (lua_type(L, 2) != LUA_TTABLE) return;
  if (lua_getmetatable(L, 2)) { lua_pop(L, 1); return; }
  lua_pushnil(L);
  while (lua_next(L, 2)) {
    if (lua_type(L, -2) != LUA_TSTRING || strcmp(lua_tostring(L, -2), name))
      ty_throw(L, "%s: unknown option '%s'; the only option is %s", who, lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2)
        : lua_typename(L, lua_type(L, -2)), name);
    lua_pop(L, 1);
  }
  lua_getfield(L, 2, name);
  lua_replace(L, 2);
}

static int size(lua_State *L) {
  ty_tensor *t = ty_check_any(L, 1, "size", "argument 1");
  named(L, "size", "dim");
  if (lua_isnoneornil(L, 2)) ty_push_list(L, t->shape, t->ndim, 0, true);
  else lua_pushnumber(L, (lua_Number)t->shape[dim_argument(L, t, "size")]);
  return 1;
}

static int stride(lua_State *L) {
  ty_tensor *t = ty_check_any(L, 1, "stride", "argument 1");
  named(L, "stride", "dim");
  if (lua_isnoneornil(L, 2)) ty_push_list(L, t->stride, t->ndim, 0, true);
  else lua_pushnumber(L, (lua_Number)t->stride[dim_argument(L, t, "stride")]);
  return 1;
}

static int dim(lua_State *L) { lua_pushinteger(L, ty_check_any(L, 1, "dim", "argument 1")->ndim); return 1; }
static int numel(lua_State *L) { lua_pushnumber(L, (lua_Number)ty_numel(ty_check_any(L, 1, "numel", "argument 1"))); return 1; }
/* x, memory_format; also {memory_format=} */
static int is_contiguous(lua_State *L) {
  const ty_tensor *t = ty_check_any(L, 1, "is_contiguous", "argument 1");
  named(L, "is_contiguous", "memory_format");
  const char *format = lua_isnoneornil(L, 2) ? "contiguous" : lua_tostring(L, 2);
  if (format && !strcmp(format, "channels_last")) lua_pushboolean(L, t->ndim == 4 && ty_is_channels_last(t));
  else if (format && (!strcmp(format, "contiguous") || !strcmp(format, "preserve"))) lua_pushboolean(L, ty_is_contiguous(t));
  else return ty_throw(L, "is_contiguous: argument 2 (memory_format) must be 'contiguous' or 'channels_last', got %s", ty_type_text(L, 2));
  return 1;
}
static int is_channels_last(lua_State *L) {
  const ty_tensor *t = ty_check_any(L, 1, "is_channels_last", "argument 1");
  lua_pushboolean(L, t->own_layout && ty_is_channels_last(t));
  return 1;
}
static int version(lua_State *L) {
  const ty_tensor *t = ty_check_any(L, 1, "version", "argument 1");
  lua_pushnumber(L, (lua_Number)ty_version(t) + t->storage->pending);
  return 1;
}
static int memory_of(lua_State *L) {     /* x -> the id of its storage, which no other ever has */
  lua_pushnumber(L, (lua_Number)ty_check_any(L, 1, "memory_of", "argument 1")->storage->id);
  return 1;
}

static int length(lua_State *L) {
  ty_tensor *t = ty_check_any(L, 1, "#", "argument 1");
  if (t->ndim == 0) return ty_throw(L, "#: a 0-dim tensor has no length");
  lua_pushnumber(L, (lua_Number)t->shape[0]);
  return 1;
}

/* Whether two tensors have one storage; they may see different elements of it. */
static int shares_memory(lua_State *L) {
  ty_tensor *a = ty_check_any(L, 1, "shares_memory", "argument 1"), *b = ty_check_any(L, 2, "shares_memory", "argument 2");
  lua_pushboolean(L, a->storage == b->storage);
  return 1;
}

/* ---- fields ---- */

/* The tensor with the history: behind what vmap maps, that of all examples. */
static ty_tensor *of_all(ty_tensor *t) {
  while (t->whole) t = t->whole;
  return t;
}

static int get_field(lua_State *L, ty_state *s, ty_tensor *t, const char *k) {
  if (t->base && ty_history(ty_ctx_of(L, s), t) != TY_OK) return ty_raise(L, ty_ctx_of(L, s));
  if (!strcmp(k, "shape")) ty_push_list(L, t->shape, t->ndim, 0, true);
  else if (!strcmp(k, "dtype")) lua_pushstring(L, ty_dtype_names[t->dtype]);
  else if (!strcmp(k, "device")) lua_pushstring(L, t->storage->backend->name);
  else if (!strcmp(k, "requires_grad")) lua_pushboolean(L, ty_needs_grad(of_all(t)));
  else if (!strcmp(k, "is_leaf")) lua_pushboolean(L, !of_all(t)->node);
  else if (!strcmp(k, "ndim")) lua_pushinteger(L, t->ndim);
  else if (!strcmp(k, "is_cuda")) lua_pushboolean(L, t->storage->backend->gpu >= 0);
  else if (!strcmp(k, "grad")) {
    if (t->grad) ty_push_shared(L, s, t->grad);
    else lua_pushnil(L);
  } else return 0;
  return 1;
}

static const char *const fields[] = {"shape", "dtype", "device", "requires_grad", "is_leaf", "grad", "ndim", "is_cuda", "T", "mT", "H",
  "mH"};
#define FIELDS ((int)(sizeof fields / sizeof *fields))

static int unknown(lua_State *L, const char *k) {
  static const char *const of_modules[] = {"parameters", "forward", "train", "eval", "modules", "children", "state_dict", "zero_grad",
    "load_state_dict", "named_parameters", "apply"};
  static const struct { const char *name, *instead; } elsewhere[] = {
    {"numpy", "use totable() for numbers, data() for an FFI pointer, tycho.save_npy for a file"},
    {"grad_fn", "is_leaf tells whether a recorded op made it; the graph can't be walked"},
    {"type", "use x.dtype for its dtype's name, x:to(dtype) to convert"},
    {"values", "several results come one after another: local v, i = x:max(2)"},
    {"indices", "several results come one after another: local v, i = x:max(2)"},
    {"short", "whole numbers are uint8, int32 or int64: use byte(), int() or long()"},
    {"char", "whole numbers are uint8, int32 or int64: use byte(), int() or long()"},
    {"storage", "use data() for an FFI pointer, shares_memory(other) to compare"},
    {"resize_", "use reshape, view or new_empty for another size"},
    {"set_", "use detach() to share a tensor's memory, copy_() to write to it"},
    {"new", "use new_zeros, new_tensor or empty_like for one of its dtype and device"},
    {"apply_", "use ops, which work on all elements, or loop over the pointer x:data()"},
    {"map_", "use ops, which work on all elements, or loop over the pointer x:data()"},
    {"is_nonzero", "use x:item() ~= 0"},
    {"real", "complex numbers are pairs along the last dim: use x[{\"...\", 1}]"},
    {"imag", "complex numbers are pairs along the last dim: use x[{\"...\", 2}]"},
    {"to_sparse", "there are no sparse tensors; use index_add or scatter_add to sum by index"},
    {"detach_", "use x:detach(), another tensor of the same memory without history"}};
  int n = FIELDS, most = FIELDS;
  for (lua_pushnil(L); lua_next(L, lua_upvalueindex(TY_UPVALUES + 1)); lua_pop(L, 1)) most++;
  const char **names = lua_newuserdata(L, (size_t)most * sizeof *names);
  memcpy(names, fields, sizeof fields);
  for (lua_pushnil(L); lua_next(L, lua_upvalueindex(TY_UPVALUES + 1)); lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING) names[n++] = lua_tostring(L, -2);
  const char *near = ty_nearest(k, names, n);
  for (unsigned i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (!strcmp(k, elsewhere[i].name)) return ty_throw(L, "a tensor has no '%s': %s", k, elsewhere[i].instead);
  if (near) return ty_throw(L, "a tensor has no field or method '%s'; did you mean '%s'?", k, near);
  for (unsigned i = 0; i < sizeof of_modules / sizeof *of_modules; i++)
    if (!strcmp(k, of_modules[i])) return ty_throw(L, "a tensor has no method '%s'; a module's methods are called with a colon", k);
  lua_Debug ar;                            /* a method that was called with a dot: net.forward(x) */
  const char *first = lua_getstack(L, 1, &ar) ? lua_getlocal(L, &ar, 1) : NULL;
  const bool of_self = first && !strcmp(first, "self") && lua_rawequal(L, 1, -1) && lua_getinfo(L, "n", &ar);
  if (first) lua_pop(L, 1);
  if (of_self && ar.name) return ty_throw(L, "a tensor has no '%s', and self is a tensor here: call %s with a colon", k, ar.name);
  if (of_self) return ty_throw(L, "a tensor has no '%s', and self is a tensor here: call methods with a colon", k);
  return ty_throw(L, "a tensor has no field or method '%s'", k);
}

static int index_event(lua_State *L) {   /* extra upvalue: methods */
  if (lua_type(L, 2) != LUA_TSTRING) return ty_index_get(L);
  ty_state *s = ty_state_of(L);
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(TY_UPVALUES + 1));
  if (!lua_isnil(L, -1)) return 1;
  const char *k = lua_tostring(L, 2);
  ty_tensor *t = ty_check_any(L, 1, k, "the tensor");
  const bool turned = !strcmp(k, "T") || !strcmp(k, "H");
  if (turned || !strcmp(k, "mT") || !strcmp(k, "mH")) {  /* views, as by the methods; H and mH too, since all values are real */
    lua_getfield(L, lua_upvalueindex(TY_UPVALUES + 1), turned ? "t" : "adjoint");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  if (get_field(L, s, t, k)) return 1;
  if (ty_is_index(L, 2)) return ty_index_get(L);
  lua_pushvalue(L, 2);                     /* a method whose file is read when it is first used */
  lua_gettable(L, lua_upvalueindex(TY_UPVALUES + 1));
  return lua_isnil(L, -1) ? unknown(L, k) : 1;
}

/* Of the tensor at index 1. */
static int set_requires_grad(lua_State *L, const char *who, bool on) {
  ty_tensor *t = of_all(ty_check_any(L, 1, who, "the tensor"));
  if (on && !ty_is_float(t->dtype))
    return ty_throw(L, "requires_grad: only floating tensors can require grad, got %s", ty_dtype_names[t->dtype]);
  if (!on && t->node) return ty_throw(L, "requires_grad: this tensor is a result; use detach() to cut it off");
  ty_state *s = ty_state_of(L);
  if (on) ty_need_rules(L, s);
  ty_ctx *ctx = ty_ctx_of(L, s);
  return ty_set_requires_grad(ctx, t, on) == TY_OK ? 0 : ty_raise(L, ctx);
}

/* The gradient at index i, or nil, becomes t's. */
static void assign_grad(lua_State *L, ty_tensor *t, int i, bool any_dtype) {
  ty_tensor *g = NULL;
  if (!lua_isnil(L, i)) {
    g = ty_check(L, i, "grad", "the value");
    if ((g->dtype != t->dtype && !any_dtype) || !TY_SAME_SHAPE(g, t))
      ty_throw(L, "grad: the value has shape %s and dtype %s; it must be %s and %s as the tensor's", ty_shape_of(g),
        ty_dtype_names[g->dtype], ty_shape_of(t), ty_dtype_names[t->dtype]);
    if (ty_device_of(g) != ty_device_of(t))
      ty_throw(L, "grad: the value is on %s; it must be on %s as the tensor", ty_device_of(g)->name, ty_device_of(t)->name);
    if (g == t) ty_throw(L, "grad: a tensor can't be its own gradient");
    ty_register(L, i);
  }
  ty_ctx *ctx = ty_context(L);
  if (ctx->program && ty_program_grad(ctx, t, g) != TY_OK) ty_raise(L, ctx);
  ty_retain(g);
  ty_release(t->grad);
  t->grad = g;
}

/* tensor -> its gradient, or nil. For the library itself: unlike that of the field grad, the handle ends with the scope. */
static int grad_of(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t = ty_check(L, 1, "grad", "the tensor");
  if (!t->grad) { lua_pushnil(L); return 1; }
  h->t = ty_retain(t->grad);
  return 1;
}

/* tensor, gradient -> gradient. Its dtype may be another: GradScaler widens gradients of parameters with masters. */
static int replace_grad(lua_State *L) {
  ty_state_of(L);
  assign_grad(L, ty_check(L, 1, "grad", "the tensor"), 2, true);
  lua_settop(L, 2);
  return 1;
}

static int newindex_event(lua_State *L) {
  if (ty_is_index(L, 2)) return ty_index_set(L);
  ty_state_of(L);
  const char *k = lua_tostring(L, 2);
  ty_check_any(L, 1, k, "the tensor");
  if (!strcmp(k, "requires_grad")) {
    if (lua_type(L, 3) != LUA_TBOOLEAN) return ty_throw(L, "requires_grad: a boolean is needed, got %s", ty_type_text(L, 3));
    set_requires_grad(L, k, lua_toboolean(L, 3));
    ty_register(L, 1);
  } else if (!strcmp(k, "grad")) assign_grad(L, ty_check(L, 1, k, "the tensor"), 3, false);
  else {
    for (int i = 0; i < FIELDS; i++)
      if (!strcmp(k, fields[i])) return ty_throw(L, "field '%s' of a tensor can't be assigned", k);
    return ty_throw(L, !strcmp(k, "data") ? "a tensor has no field '%s' to assign: use tycho.no_grad(function() x:copy_(y) end)"
      : "a tensor has no field '%s' to assign", k);
  }
  return 0;
}

static int requires_grad_(lua_State *L) {
  ty_state_of(L);
  named(L, "requires_grad_", "requires_grad");
  if (!lua_isnoneornil(L, 2) && lua_type(L, 2) != LUA_TBOOLEAN)
    return ty_throw(L, "requires_grad_: argument 2 must be a boolean, got %s", ty_type_text(L, 2));
  set_requires_grad(L, "requires_grad_", lua_isnoneornil(L, 2) || lua_toboolean(L, 2));
  ty_register(L, 1);
  lua_settop(L, 1);
  return 1;
}

/* ---- events ---- */

static int eq_event(lua_State *L) {
  ty_tensor *a = ty_test(L, 1), *b = ty_test(L, 2);
  lua_pushboolean(L, a && a == b);
  return 1;
}

static int order_event(lua_State *L) {
  const char *names[2] = {ty_type_text(L, 1), ty_type_text(L, 2)};
  return ty_throw(L, "'<' and '<=' don't compare a %s with a %s by elements: use x:lt(y), x:le(y), x:gt(y), x:ge(y)", names[0], names[1]);
}

static int concat_event(lua_State *L) {
  return ty_throw(L, "'..' joins strings, not a %s with a %s: use x:item(), or tostring(x)", ty_type_text(L, 1), ty_type_text(L, 2));
}

static int call_event(lua_State *L) {
  return ty_throw(L, "a tensor can't be called: use for i, row in x:iter() do for its rows, x[i] for one");
}

static int unm_event(lua_State *L) {     /* Lua passes the operand twice */
  lua_settop(L, 1);
  return ty_run_op(L, &ty_ops[TY_OP_neg], 0);
}

static int tostring_event(lua_State *L) {
  ty_state_of(L);
  ty_handle *h = ty_is_handle(L, 1);
  if (!h) return ty_throw(L, "tostring: a tensor is needed, got %s", luaL_typename(L, 1));
  if (!h->t) { lua_pushstring(L, h->state == TY_FREED ? "[freed tensor]" : "[tensor released at the end of its scope]"); return 1; }
  if (h->t->whole) {
    lua_pushfstring(L, "[%s tensor of size %s: one of vmap's examples]", ty_dtype_names[h->t->dtype], ty_shape_of(h->t));
    return 1;
  }
  ty_private(L, TY_R_FORMAT);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

static int is_tensor(lua_State *L) {
  lua_pushboolean(L, ty_is_handle(L, 1) != NULL);
  return 1;
}

static int is_module(lua_State *L) {       /* a module of nn, or what stands for one */
  lua_pushboolean(L, ty_is_module(L, 1));
  return 1;
}

/* ---- history and memory ---- */

static int detach(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_check_any(L, 1, "detach", "argument 1");
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t = ty_check_any(L, 1, "detach", "argument 1");
  ty_ctx *ctx = ty_ctx_of(L, s);
  return ty_program_detach(ctx, t, &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}

/* set_data(x, y): x takes y's memory, shape and dtype; handles and optimizers keep the same leaf. */
static int set_data(lua_State *L) {
  ty_settle(L, "a tensor is given other data");
  ty_tensor *x = ty_check(L, 1, "set_data", "argument 1"), *y = ty_check(L, 2, "set_data", "argument 2");
  if (x->node || y->node) return ty_throw(L, "set_data: only a leaf can be given other data");
  ty_storage_retain(y->storage);
  ty_storage_release(x->storage);
  x->storage = y->storage;
  x->dtype = y->dtype;
  x->ndim = y->ndim;
  x->offset = y->offset;
  x->own_layout = y->own_layout;
  memcpy(x->shape, y->shape, sizeof x->shape);
  memcpy(x->stride, y->stride, sizeof x->stride);
  ty_release(x->base);
  x->base = NULL;
  return 0;
}

/* (x, y) -> x: handle x stands for y's tensor from now on, wherever x is held; y is freed. */
static int take_over(lua_State *L) {
  ty_state_of(L);
  ty_check_any(L, 1, "take_over", "argument 1");
  ty_check_any(L, 2, "take_over", "argument 2");
  ty_handle *x = lua_touserdata(L, 1), *y = lua_touserdata(L, 2);
  ty_tensor *old = x->t;
  ty_scope_detach(y);
  x->t = y->t;
  y->t = NULL;
  y->state = TY_FREED;
  ty_release(old);
  lua_pushvalue(L, 1);
  return 1;
}

static void storage_ends(void *s) { ty_storage_release(s); }

/* (x, whether it may be on a GPU) -> the address of a contiguous tensor's elements, and a userdata that keeps them alive */
static int data_ptr(lua_State *L) {
  ty_settle_call(L, "data");
  ty_tensor *t = ty_check(L, 1, "data", "argument 1");
  if (ty_device_of(t)->gpu >= 0 && !lua_toboolean(L, 2))
    return ty_throw(L, "data: the tensor is on %s: call cpu() first", ty_device_of(t)->name);
  bool laid = ty_is_contiguous(t);
  if (!laid && ty_lay_in_order(ty_context(L), t, &laid) != TY_OK) return ty_raise(L, ty_context(L));
  if (!laid) return ty_throw(L, "data: the tensor of shape %s is not contiguous: call contiguous() first", ty_shape_of(t));
  void **p = ty_new_box(L, storage_ends);
  t = ty_check(L, 1, "data", "argument 1");
  t->storage->exposed = true;
  lua_pushlightuserdata(L, ty_data(t));
  lua_insert(L, -2);
  ty_storage_retain(t->storage);
  *p = t->storage;
  return 2;
}

static int view_of(lua_State *L) {         /* x, y -> x's offset less y's, in elements; nil unless they share a storage */
  const ty_tensor *x = ty_check(L, 1, "view_of", "argument 1"), *y = ty_check(L, 2, "view_of", "argument 2");
  if (x->storage != y->storage || x->dtype != y->dtype) return 0;
  lua_pushnumber(L, (lua_Number)(x->offset - y->offset));
  return 1;
}

static int allocated(lua_State *L) {       /* -> bytes of this state's tensors */
  lua_pushnumber(L, (lua_Number)atomic_load(&ty_state_of(L)->account->bytes));
  return 1;
}

static int max_allocated(lua_State *L) {   /* (reset) -> the most that there were since the last reset */
  ty_account *a = ty_state_of(L)->account;
  lua_pushnumber(L, (lua_Number)atomic_load(&a->peak));
  if (lua_toboolean(L, 1)) atomic_store(&a->peak, atomic_load(&a->bytes));
  return 1;
}

static int fail_alloc(lua_State *L) {      /* n, times -> allocations that were left until the failure */
  lua_pushinteger(L, ty_debug_fail_alloc((long)luaL_checkinteger(L, 1), (long)luaL_optinteger(L, 2, 1)));
  return 1;
}

/* (on?) -> whether bfloat16 products and convolutions are computed in bfloat16, as by default where the CPU can; for tests */
static int native_bf16(lua_State *L) {
  lua_pushboolean(L, ty_native_bf16(lua_isnoneornil(L, 1) ? -1 : lua_toboolean(L, 1)));
  return 1;
}

static int fourier_takes(lua_State *L) {       /* x, n, real -> whether x's device best takes n complex pairs, or reals, as they are */
  const ty_tensor *x = ty_check_any(L, 1, "fft", "argument 1");
  const int most = ty_device_of(x)->gpu < 0 ? TY_FOURIER_MOST : TY_FOURIER_MOST_GPU;
  lua_pushboolean(L, ty_fourier_takes(lua_toboolean(L, 3) ? TY_REAL : TY_FORWARD, (int64_t)luaL_checknumber(L, 2), most));
  return 1;
}

static int empty_cache(lua_State *L) {
  (void)L;
  ty_cpu.empty_cache(&ty_cpu);
  return 0;
}

static int set_num_threads(lua_State *L) {
  int64_t n;
  /* where the system gives no more threads, OpenMP ends the process */
  const int most = TY_MAX(256, 4 * (int)sysconf(_SC_NPROCESSORS_ONLN));
  if (lua_type(L, 1) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, 1), &n) || n < 1 || n > most)
    return ty_throw(L, "set_num_threads: argument 1 must be a whole number from 1 to %d, got %s", most,
      lua_tostring(L, 1) ? lua_tostring(L, 1) : luaL_typename(L, 1));
  ty_set_num_threads((int)n);
  return 0;
}

static int get_num_threads(lua_State *L) { lua_pushinteger(L, ty_get_num_threads()); return 1; }

static int manual_seed(lua_State *L) {
  int64_t n;
  if (lua_type(L, 1) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, 1), &n) || n < 0)
    return ty_throw(L, "manual_seed: argument 1 must be a whole number from 0, got %s",
      lua_tostring(L, 1) ? lua_tostring(L, 1) : ty_type_text(L, 1));
  ty_settle_call(L, "manual_seed");
  const ty_generator g = {(uint64_t)n, 0};
  ty_ctx *ctx = ty_context(L);
  ty_cpu_seed(ctx, g);
  for (int i = 1; i <= TY_MAXGPU && ty_devices[i]; i++)
    if (ty_devices[i]->seed(ctx, ty_devices[i], g) != TY_OK) return ty_raise(L, ctx);
  return 0;
}

static void operator(lua_State *L, const char *event, const char *op) {   /* ops table at -2, metatable at -1 */
  lua_getfield(L, -2, op);
  lua_setfield(L, -2, event);
}

void ty_open_tensor(lua_State *L) {      /* module on top */
  ty_private(L, TY_R_METHODS);
  static const struct { const char *name; lua_CFunction f; } list[] = {
    {"item", item}, {"totable", totable}, {"size", size}, {"stride", stride}, {"dim", dim}, {"numel", numel},
    {"is_contiguous", is_contiguous}, {"is_channels_last", is_channels_last}, {"detach", detach},
    {"requires_grad_", requires_grad_}, {"shares_memory", shares_memory}, {"_version", version}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) ty_add(L, list[i].name, list[i].f);
  lua_getfield(L, -2, "free");
  if (lua_isnil(L, -1)) lua_pop(L, 1);
  else lua_setfield(L, -2, "free");
  lua_pop(L, 1);
  ty_add(L, "is_tensor", is_tensor);
  ty_add(L, "is_module", is_module);
  ty_add(L, "data_ptr", data_ptr);
  ty_add(L, "memory_of", memory_of);
  ty_add(L, "view_of", view_of);
  ty_add(L, "set_data", set_data);
  ty_add(L, "replace_grad", replace_grad);
  ty_add(L, "grad_of", grad_of);
  ty_add(L, "take_over", take_over);
  ty_add(L, "allocated", allocated);
  ty_add(L, "max_allocated", max_allocated);
  ty_add(L, "fail_alloc", fail_alloc);
  ty_add(L, "empty_cache", empty_cache);
  ty_add(L, "native_bf16", native_bf16);
  ty_add(L, "fourier_takes", fourier_takes);
  ty_add(L, "set_num_threads", set_num_threads);
  ty_add(L, "get_num_threads", get_num_threads);
  ty_add(L, "manual_seed", manual_seed);
  lua_getfield(L, -1, "ops");
  lua_pushvalue(L, lua_upvalueindex(3));
  operator(L, "__add", "add");
  operator(L, "__sub", "sub");
  operator(L, "__mul", "mul");
  operator(L, "__div", "div");
  operator(L, "__mod", "remainder");
  operator(L, "__pow", "pow");
  ty_add(L, "__unm", unm_event);
  ty_add(L, "__eq", eq_event);
  ty_add(L, "__lt", order_event);
  ty_add(L, "__le", order_event);
  ty_add(L, "__concat", concat_event);
  ty_add(L, "__len", length);
  ty_add(L, "__call", call_event);
  ty_add(L, "__tostring", tostring_event);
  ty_add(L, "__newindex", newindex_event);
  ty_private(L, TY_R_METHODS);
  ty_closure(L, index_event, 1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 2);
}
