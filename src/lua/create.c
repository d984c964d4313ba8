/* Tensors from Lua values and from memory at an FFI pointer. Invariant: a nested list is measured and checked completely before its tensor
 * is allocated. */
#include <string.h>
#include "binding.h"

/* ---- nested lists ---- */

typedef struct { lua_State *L; const char *who; ty_meta m; bool numbers, booleans; } shape_of;

static int ragged(const shape_of *f, int depth, int64_t want, int64_t got) {
  return ty_throw(f->L, "%s: the nested list is ragged: a list at depth %d has %d elements, but the first at that depth has %d",
    f->who, depth + 1, (int)got, (int)want);
}

/* The shape is that of the first element at each depth. */
static void find_shape(shape_of *f, int index) {
  lua_State *L = f->L;
  lua_pushvalue(L, index);
  while (lua_type(L, -1) == LUA_TTABLE) {
    if (f->m.ndim == TY_MAXDIM) ty_throw(L, "%s: lists are nested deeper than %d", f->who, TY_MAXDIM);
    f->m.shape[f->m.ndim++] = (int64_t)lua_objlen(L, -1);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
    if (lua_isnil(L, -1)) break;
  }
  lua_pop(L, 1);
}

static void check(shape_of *f, int depth) {  /* value on top */
  lua_State *L = f->L;
  int t = lua_type(L, -1);
  if (depth == f->m.ndim) {
    if (t == LUA_TNUMBER) f->numbers = true;
    else if (t == LUA_TBOOLEAN) f->booleans = true;
    else if (t == LUA_TTABLE)
      ty_throw(L, "%s: the nested list is ragged: there is a list at depth %d, where the first element isn't a list",
        f->who, depth + 1);
    else ty_throw(L, "%s: the nested list holds a %s; numbers or booleans are needed%s", f->who, ty_type_text(L, -1),
      ty_test(L, -1) ? ": use stack(list) to join tensors" : "");
    return;
  }
  if (t != LUA_TTABLE)
    ty_throw(L, "%s: the nested list is ragged: there is a %s at depth %d, where the first element is a list", f->who,
      ty_type_text(L, -1), depth + 1);
  int64_t n = ty_list_length(L, -1);
  if (n < 0) ty_throw(L, "%s: a list at depth %d has holes (nil in the middle) or named fields", f->who, depth + 1);
  if (n != f->m.shape[depth]) ragged(f, depth, f->m.shape[depth], n);
  luaL_checkstack(L, 4, "nested list");
  for (int64_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    check(f, depth + 1);
    lua_pop(L, 1);
  }
}

/* Checks again: finalizers may have changed the lists when the tensor was allocated. */
static char *fill(lua_State *L, const ty_meta *m, int depth, char *p) {
  const int type = lua_type(L, -1);
  if (depth == m->ndim ? type != LUA_TNUMBER && type != LUA_TBOOLEAN : type != LUA_TTABLE)
    ty_throw(L, "tensor: the nested list has changed while it was read");
  if (depth == m->ndim) {
    int64_t whole;
    if (!ty_fits(lua_tonumber(L, -1), m->dtype))
      ty_throw(L, "tensor: %f is out of range for %s", lua_tonumber(L, -1), ty_dtype_names[m->dtype]);
    if (type == LUA_TBOOLEAN) ty_set_int(p, m->dtype, lua_toboolean(L, -1));
    else if (!ty_is_float(m->dtype) && ty_is_whole(lua_tonumber(L, -1), &whole)) ty_set_int(p, m->dtype, whole);
    else ty_set(p, m->dtype, lua_tonumber(L, -1));
    return p + ty_dtype_size[m->dtype];
  }
  for (int64_t i = 1; i <= m->shape[depth]; i++) {
    lua_rawgeti(L, -1, (int)i);
    p = fill(L, m, depth + 1, p);
    lua_pop(L, 1);
  }
  return p;
}

void ty_from_table(lua_State *L, ty_state *s, int index, int dtype, const char *who) {
  shape_of f = {.L = L, .who = who};
  ty_ctx *ctx = ty_ctx_of(L, s);
  find_shape(&f, index);
  lua_pushvalue(L, index);
  check(&f, 0);
  if (f.numbers && f.booleans) ty_throw(L, "%s: the nested list mixes numbers and booleans", who);
  f.m.dtype = (uint8_t)(dtype >= 0 ? dtype : f.booleans ? TY_BOOL : TY_F32);
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t;
  if (ty_empty(ctx, &ty_cpu, &f.m, &t) != TY_OK) ty_raise(L, ctx);
  h->t = t;
  lua_insert(L, -2);
  fill(L, &f.m, 0, ty_data(t));
  lua_pop(L, 1);
}

/* from_value(number, boolean or nested list; dtype's name or nil) -> tensor */
static int from_value(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_pace(L, s);
  int dtype = lua_isnoneornil(L, 2) ? -1 : ty_dtype_find(luaL_checkstring(L, 2)), t = lua_type(L, 1);
  if (t != LUA_TTABLE && t != LUA_TNUMBER && t != LUA_TBOOLEAN)
    return ty_throw(L, "tensor: argument 1 (value) must be a number, a boolean or a nested list, got %s", ty_type_text(L, 1));
  ty_from_table(L, s, 1, dtype, "tensor");
  return 1;
}

/* ---- what C needs of Lua ---- */

/* A Lua value that an object in C needs (the memory behind a storage, the hooks of a node) is kept in the private table, by
 * key. It can only be released where a Lua state is at hand: when the C object ends, drop_owner queues the key at the
 * account, and ty_let_go empties the queue. */
typedef struct { ty_dropped d; ty_account *account; } owner;

static void drop_owner(void *p) {
  owner *o = p;
  ty_account *a = o->account;
  o->d.next = atomic_load(&a->dropped);
  while (!atomic_compare_exchange_weak(&a->dropped, &o->d.next, &o->d)) {}
  ty_account_release(a);
}

void ty_get_keyed(lua_State *L, uint64_t key) {
  lua_pushnumber(L, (lua_Number)key);      /* an integer of Lua's C interface may be too narrow */
  lua_rawget(L, -2);
}

void ty_set_keyed(lua_State *L, uint64_t key) {
  lua_pushnumber(L, (lua_Number)key);
  lua_insert(L, -2);
  lua_rawset(L, -3);
}

void *ty_own(lua_State *L, ty_account *a, uint64_t key, void (**drop)(void *)) {
  owner *o = a ? ty_malloc(sizeof *o) : NULL;
  if (!o) return NULL;
  ty_private(L, TY_R_OWNERS);
  lua_pushvalue(L, -2);
  ty_set_keyed(L, key);
  lua_pop(L, 1);
  atomic_fetch_add(&a->refs, 1);
  *o = (owner){{NULL, key}, a};
  *drop = drop_owner;
  return o;
}

void ty_let_go(lua_State *L, ty_state *s) {
  ty_dropped *d;                           /* other threads only push in front */
  while ((d = atomic_load(&s->account->dropped))) {
    while (!atomic_compare_exchange_weak(&s->account->dropped, &d, d->next)) {}
    ty_private(L, TY_R_OWNERS);
    lua_pushnil(L);
    ty_set_keyed(L, d->key);
    lua_pop(L, 1);
    ty_free(d);
  }
}

/* from_address(address, sizes, dtype name, value to keep alive); sizes have been checked in Lua */
static int from_address(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  int dtype = ty_dtype_find(luaL_checkstring(L, 3));
  if (dtype < 0 || lua_type(L, 2) != LUA_TTABLE || lua_objlen(L, 2) > TY_MAXDIM)
    return ty_throw(L, "from_ffi: a list of sizes and a dtype are needed");
  ty_meta m = {.dtype = (uint8_t)dtype};
  ty_pace(L, s);
  uintptr_t address = (uintptr_t)luaL_checknumber(L, 1);
  int64_t n = ty_dtype_size[m.dtype];
  m.ndim = (uint8_t)lua_objlen(L, 2);
  for (int i = 0; i < m.ndim; i++) {
    lua_rawgeti(L, 2, i + 1);
    m.shape[i] = (int64_t)lua_tonumber(L, -1);
    if (m.shape[i] < 0 || __builtin_mul_overflow(n, m.shape[i], &n))
      return ty_throw(L, "from_ffi: size %s is impossible", ty_shape_text(m.shape, i + 1));
    lua_pop(L, 1);
  }
  if (address % ty_dtype_size[m.dtype]) return ty_throw(L, "from_ffi: the pointer is not aligned for %s", ty_dtype_names[m.dtype]);
  if (!address && n) return ty_throw(L, "from_ffi: the pointer is NULL");
  ty_handle *h = ty_new_handle(L, s);
  void (*drop)(void *);
  lua_pushvalue(L, 4);
  void *o = ty_own(L, s->account, s->next_key++, &drop);
  lua_pop(L, 1);
  if (!o) return ty_throw(L, "from_ffi: out of memory");
  if (ty_from_memory(ctx, (void *)address, (size_t)n, &m, drop, o, &h->t) != TY_OK) { drop(o); return ty_raise(L, ctx); }
  return 1;
}

void ty_open_create(lua_State *L) {
  ty_add(L, "from_value", from_value);
  ty_add(L, "from_address", from_address);
}
