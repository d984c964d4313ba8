/* The module's state, tensor handles, modes of coroutines, scopes, and the collector's drive.
 *
 * Idea: Lua's collector sees a handle as some bytes, whatever its tensor holds. So the state counts its tensors' bytes and
 * runs the collector by that count, at binding entry only; scopes and free() release without waiting for it.
 * Invariant: a handle's tensor is NULL after free(), a scope's end or collection, and every use checks it. */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "binding.h"
#include "program.h"

/* Bytes of garbage below which the collector is left alone. A collection takes time by the size of Lua's heap: a large one (40 MB take
 * some 10 ms) lets more lie, up to MOST_FOR_HEAP. A GPU's results fill 96 MB in microseconds, and it has memory for more; but it is
 * all of the state's tensors that count, so there is a bound. */
#define LEAST ((long long)96 << 20)
#define PER_HEAP 8
#define MOST_FOR_HEAP ((long long)192 << 20)

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

void ty_private(lua_State *L, int slot) { lua_rawgeti(L, lua_upvalueindex(2), slot); }

#define LIBRARY "tycho.library"            /* in the registry */

const char *ty_push_location(lua_State *L) {
  lua_Debug ar;
  size_t n = 0;
  bool found = false;
  const char *name = NULL;
  lua_getfield(L, LUA_REGISTRYINDEX, LIBRARY);
  const char *own = lua_tolstring(L, -1, &n);
  for (int level = 0; !found && lua_getstack(L, level, &ar) && lua_getinfo(L, "Slf", &ar); level++) {
    const ty_op *op = ty_defined_at(L, -1);
    lua_pop(L, 1);
    found = ar.currentline > 0 && !(own && !strncmp(ar.source, own, n));
    if (op) name = op->shown;
  }
  if (found) lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else lua_pushliteral(L, "");
  lua_remove(L, -2);
  return name;
}

static int where(lua_State *L) {           /* -> the user's line, "" where there is none, and the op that it has called, or nil */
  lua_pushstring(L, ty_push_location(L));
  return 2;
}

int ty_throw(lua_State *L, const char *fmt, ...) {
  va_list ap;
  luaL_checkstack(L, 8, "an error");
  const char *name = ty_push_location(L);
  const char *place = lua_tostring(L, -1);
  va_start(ap, fmt);
  const char *message = lua_pushvfstring(L, fmt, ap);
  va_end(ap);
  const size_t n = strlen(place), k = name ? strlen(name) : 0;
  while (n && !strncmp(message, place, n)) message += n;          /* it was said further within */
  const bool named = !name || (!strncmp(message, name, k) && message[k] == ':');
  lua_pushfstring(L, named ? "%s%s%s" : "%s%s: %s", place, named ? "" : name, message);
  return lua_error(L);
}

static int set_library(lua_State *L) {     /* what the sources of the library's own functions begin with */
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, LIBRARY);
  return 0;
}

const char *ty_path_at(lua_State *L, int index) {
  size_t n;
  const char *path = luaL_checklstring(L, index, &n);
  if (strlen(path) != n) ty_throw(L, "%s: a file's name has no zero byte", path);
  return path;
}

int ty_raise(lua_State *L, ty_ctx *c) { return ty_throw(L, "%s", c->err); }

/* ---- the collector ---- */

/* Finalizers are the user's and may raise: what they raise goes no farther, since C holds things here. */
static int run_collector(lua_State *L) {
  lua_pushboolean(L, lua_gc(L, (int)lua_tointeger(L, 1), (int)lua_tointeger(L, 2)));
  return 1;
}

static bool collect(lua_State *L, ty_state *s, int what, int data) {
  bool done = true;
  if (!lua_checkstack(L, 4)) return done;
  lua_pushcfunction(L, run_collector);
  lua_pushinteger(L, what);
  lua_pushinteger(L, data);
  if (lua_pcall(L, 2, 1, 0) == 0) done = lua_toboolean(L, -1);
  lua_pop(L, 1);
  s->L = L;                                /* the same */
  return done;
}

/* Half as much garbage as is in use, but at least so much as is said above, and no more than most. */
static void set_limit(lua_State *L, ty_state *s, long long most) {
  const long long heap = (long long)lua_gc(L, LUA_GCCOUNT, 0) << 10;
  s->garbage = TY_MAX(TY_MAX(LEAST, ty_gpu_garbage()), TY_MIN(PER_HEAP * heap, MOST_FOR_HEAP));
  long long now = atomic_load_explicit(&s->account->bytes, memory_order_relaxed);
  s->gc_limit = TY_MIN(now + TY_MAX(s->garbage, now / 2), most);
  atomic_store_explicit(&s->account->collected, 0, memory_order_relaxed);
}

void ty_pace(lua_State *L, ty_state *s) {
  if (s->account->dropped) ty_let_go(L, s);
  long long now = atomic_load_explicit(&s->account->bytes, memory_order_relaxed);
  if (s->collecting) return;
  if (now <= s->gc_limit) {                /* after a collection that was not ours the limit may fall, but not rise: it may be half-way */
    if (atomic_load_explicit(&s->account->collected, memory_order_relaxed) > s->garbage) set_limit(L, s, s->gc_limit);
    return;
  }
#ifdef LUA_GCISRUNNING
  if (!lua_gc(L, LUA_GCISRUNNING, 0)) return;      /* a collector that the user stopped stays stopped */
#endif
  s->collecting = true;
  bool whole = now > s->gc_limit * 2;
  if (whole) collect(L, s, LUA_GCCOLLECT, 0);
  if (whole || collect(L, s, LUA_GCSTEP, 64)) set_limit(L, s, LLONG_MAX);
  s->collecting = false;
}

static void reclaim(ty_ctx *c) {
  ty_state *s = c->host_data;
  if (s->collecting) return;
  s->collecting = true;
#ifdef LUA_GCISRUNNING
  bool stopped = !lua_gc(s->L, LUA_GCISRUNNING, 0);
#else
  bool stopped = false;
#endif
  collect(s->L, s, LUA_GCCOLLECT, 0);
  if (stopped) lua_gc(s->L, LUA_GCSTOP, 0);
  s->collecting = false;
}

/* ---- handles ---- */

ty_handle *ty_is_handle(lua_State *L, int index) {
  ty_handle *h = lua_touserdata(L, index);
  return h && lua_objlen(L, index) == sizeof *h && h->magic == TY_MAGIC ? h : NULL;   /* a light userdata's length is 0 */
}

ty_tensor *ty_test(lua_State *L, int index) {
  ty_handle *h = ty_is_handle(L, index);
  return h ? h->t : NULL;
}

const char *ty_type_text(lua_State *L, int index) { return ty_is_handle(L, index) ? "tensor" : luaL_typename(L, index); }

ty_tensor *ty_check(lua_State *L, int index, const char *who, const char *what) {
  ty_handle *h = ty_is_handle(L, index);
  if (!h) ty_throw(L, "%s: %s must be a tensor, got %s%s", who, what, luaL_typename(L, index),
    index == 1 && lua_type(L, index) != LUA_TTABLE ? "; a method is called with a colon" : "");
  if (!h->t)
    ty_throw(L,
      h->state == TY_FREED ? "%s: %s was freed" : "%s: %s was released at the end of its scope: return it or keep() it",
      who, what);
  return h->t;
}

ty_handle *ty_new_handle(lua_State *L, ty_state *s) {
  ty_handle *h = lua_newuserdata(L, sizeof *h);
  memset(h, 0, sizeof *h);
  h->magic = TY_MAGIC;
  s->L = L;                                /* a finalizer may have come between, from a coroutine of its own */
  lua_pushvalue(L, lua_upvalueindex(3));
  lua_setmetatable(L, -2);
  ty_scope *sc = ty_modes_of(L, s)->scope;
  if (sc && sc->L == L) ty_scope_enter(sc, h);
  return h;
}

void ty_push(lua_State *L, ty_state *s, ty_tensor *t) {
  ty_handle *h = ty_new_handle(L, s);
  h->t = t;
}

void ty_register(lua_State *L, int index) {
  ty_handle *h = lua_touserdata(L, index);
  if (index < 0) index = lua_gettop(L) + index + 1;
  ty_private(L, TY_R_HANDLES);
  lua_pushlightuserdata(L, h->t);
  lua_pushvalue(L, index);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

void ty_push_shared(lua_State *L, ty_state *s, ty_tensor *t) {
  ty_private(L, TY_R_HANDLES);
  lua_pushlightuserdata(L, t);
  lua_rawget(L, -2);
  ty_handle *h = ty_is_handle(L, -1);
  if (h && h->t == t) { lua_remove(L, -2); return; }
  lua_pop(L, 2);
  h = ty_new_handle(L, s);
  if (h->scope) h->scope->count--;
  ty_scope_detach(h);                  /* C holds it too: no scope decides over it */
  h->t = ty_retain(t);
  ty_register(L, -1);
}

static int let_go(lua_State *L) {        /* may run after the state's own end: it must not touch the state */
  ty_handle *h = lua_touserdata(L, 1);
  ty_tensor *t = h->t;
  if (h->anchored && t) ty_keep_hooks(L, t);
  ty_scope_detach(h);
  h->t = NULL;
  h->state = TY_FREED;
  ty_release(t);
  return 0;
}

static int handle_gc(lua_State *L) {
  const ty_handle *h = ty_is_handle(L, 1);
  if (!h) return 0;
  const ty_tensor *t = h->t;
  if (t && t->storage->account && atomic_load(&t->refs) == 1 && !ty_storage_shared(t->storage))
    atomic_fetch_add_explicit(&t->storage->account->collected, (long long)t->storage->nbytes, memory_order_relaxed);
  return let_go(L);
}

static int handle_free(lua_State *L) {
  ty_check(L, 1, "free", "argument 1");
  return let_go(L);
}

/* ---- environments: hooks and Function contexts live as long as a tensor that needs them ---- */

void ty_note_anchor(lua_State *L, int index, int anchors) {
  const ty_handle *h = ty_is_handle(L, index);
  if (!h || !h->anchored) return;
  lua_getfenv(L, index);
  const int n = (int)lua_objlen(L, anchors);
  bool known = false;
  for (int i = 1; i <= n && !known; i++) {
    lua_rawgeti(L, anchors, i);
    known = lua_rawequal(L, -1, -2);
    lua_pop(L, 1);
  }
  if (known) lua_pop(L, 1);
  else lua_rawseti(L, anchors, n + 1);
}

void ty_set_anchor(lua_State *L, int index, int anchors) {
  ty_handle *h = lua_touserdata(L, index);
  if (lua_objlen(L, anchors) == 1) lua_rawgeti(L, anchors, 1);
  else lua_pushvalue(L, anchors);
  lua_setfenv(L, index);
  h->anchored = true;
}

/* ---- modes ---- */

static bool is_default(const ty_modes *m, const ty_state *s) {
  for (int i = 0; i < TY_MAXGPU; i++)
    if (m->ctx.stream[i]) return false;
  return m->ctx.grad_enabled && !m->ctx.autocast[0] && !m->ctx.autocast[1] && m->ctx.gpu == s->modes.ctx.gpu && !m->ctx.packs &&
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

static void state_release(ty_state *s) {
  if (--s->refs == 0) {
    ty_account_release(s->account);
    ty_free(s);
  }
}

static void modes_end(ty_modes *m) {
  ty_state *s = m->owner;
  if (!s) return;
  if (m->ctx.program) ty_program_abandon(m->ctx.program);
  m->owner = NULL;
  s->special--;
  state_release(s);
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
  modes_end(lua_touserdata(L, 1));
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

/* ---- opening ---- */

static int set_private(lua_State *L) {   /* name, value: what Lua gives the binding */
  static const char *const names[] = {"format", "function", "shape_meta", NULL};
  static const int slots[] = {TY_R_FORMAT, TY_R_FUNCTION, TY_R_SHAPE_META};
  lua_settop(L, 2);
  lua_rawseti(L, lua_upvalueindex(2), slots[luaL_checkoption(L, 1, NULL, names)]);
  return 0;
}

static int state_gc(lua_State *L) {
  ty_state **box = lua_touserdata(L, 1);
  if (*box) state_release(*box);
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
  lua_pushvalue(L, lua_upvalueindex(3));
  ty_add(L, "__gc", handle_gc);
  lua_pop(L, 1);
  lua_newtable(L);                       /* finalizer of modes */
  ty_add(L, "__gc", modes_gc);
  lua_rawseti(L, lua_upvalueindex(2), TY_R_MODES_META);
  ty_private(L, TY_R_METHODS);
  lua_setfield(L, -2, "methods");
  ty_add(L, "free", handle_free);
  ty_add(L, "set_grad_enabled", set_grad_enabled);
  ty_add(L, "is_grad_enabled", is_grad_enabled);
  ty_add(L, "autocast", autocast);
  ty_open_scope(L);
  ty_add(L, "set_private", set_private);
  ty_add(L, "set_library", set_library);
  ty_add(L, "where", where);
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
  ty_state **box = lua_newuserdata(L, sizeof *box), *s = ty_malloc(sizeof *s);
  ty_account *account = ty_malloc(sizeof *account);
  *box = NULL;
  if (!s || !account) { ty_free(s); ty_free(account); return ty_throw(L, "tycho: out of memory"); }
  memset(s, 0, sizeof *s);
  *box = s;
  s->refs = 1;
  s->L = L;
  s->gc_limit = s->garbage = LEAST;
  s->next_key = 1;
  s->account = account;
  *account = (ty_account){0};
  atomic_init(&account->refs, 1);
  s->modes.ctx = (ty_ctx){.grad_enabled = true, .host = &ty_lua_host, .host_data = s, .account = s->account};
  lua_newtable(L);                       /* the state lives until the Lua state closes */
  lua_pushcfunction(L, state_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_pushlightuserdata(L, &ty_ops);
  lua_pushvalue(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
  lua_pushlightuserdata(L, s);
  lua_newtable(L);                       /* private */
  weak_table(L, "v"); lua_rawseti(L, -2, TY_R_HANDLES);
  weak_table(L, "k"); lua_rawseti(L, -2, TY_R_MODES);
  weak_table(L, "v"); lua_rawseti(L, -2, TY_R_ANCHORS);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_METHODS);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_RULES);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_KEPT);
  lua_newtable(L); lua_rawseti(L, -2, TY_R_OWNERS);
  lua_newtable(L);                       /* metatable of handles */
  lua_pushvalue(L, -1); lua_rawseti(L, -3, TY_R_META);
  lua_pushcclosure(L, open, TY_UPVALUES);
  lua_call(L, 0, 1);
  return 1;
}

typedef struct { char *text; size_t size; } room;
static int write_location(lua_State *L) {
  const room *r = lua_touserdata(L, 1);
  ty_push_location(L);
  snprintf(r->text, r->size, "%s", lua_tostring(L, -1));
  return 0;
}
static void location(ty_ctx *c, char *text, size_t size) {
  lua_State *L = ((ty_state *)c->host_data)->L;
  room r = {text, size};
  text[0] = 0;
  if (lua_checkstack(L, 8) && lua_cpcall(L, write_location, &r) != 0) lua_pop(L, 1);
}

const ty_host ty_lua_host = {ty_lua_rule, ty_lua_hook, ty_lua_pack, ty_lua_unpack, reclaim, location};
