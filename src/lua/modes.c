/* The modes of each coroutine: gradients on or off, autocast, vmap, the current GPU and streams; and the generator that it draws from.
 *
 * Idea: coroutines whose modes are the defaults share the state's; one that changes a mode gets its own, until they equal the defaults
 * again. Invariants: s->special counts the coroutines with modes of their own, and s->draws, so that nothing is looked up while it is 0;
 * a coroutine's memory for its modes lasts as long as itself, since a finalizer may end them while a call has their address. */
#include <string.h>
#include "binding.h"
#include "program.h"
#include "recall.h"
#include "vmap.h"

static bool is_default(const ty_modes *m, const ty_state *s) {
  for (int i = 0; i < TY_MAXGPU; i++)
    if (m->ctx.stream[i]) return false;
  return m->ctx.grad_enabled && !m->ctx.autocast[0] && !m->ctx.autocast[1] && m->ctx.gpu == s->modes.ctx.gpu &&
    m->ctx.device == s->modes.ctx.device && !m->ctx.packs &&
    !m->pinned && !m->watchful && !m->ctx.mempool && !m->ctx.program && !m->ctx.vmap && !m->ctx.recall &&
    (!m->scope || m->scope == s->modes.scope);
}

/* The memory for the coroutine's own modes, or NULL. Looked up by the thread object, since only the main coroutine's address is never
 * reused. */
static ty_modes *memory_of(lua_State *L) {
  ty_private(L, TY_R_MODES);
  lua_pushthread(L);
  lua_rawget(L, -2);
  ty_modes *m = lua_touserdata(L, -1);
  lua_pop(L, 2);
  return m;
}
/* The coroutine's own modes, or NULL. */
static ty_modes *find_modes(lua_State *L, const ty_state *s) {
  if (L == s->main) return s->main_modes;
  ty_modes *m = memory_of(L);
  return m && m->owner ? m : NULL;
}

/* The state of the generator that this coroutine draws from; NULL: the process's. */
static ty_tensor *rng_of(lua_State *L) {
  ty_extent_push(L, TY_R_DRAWS);
  const ty_handle *h = ty_is_handle(L, -1);
  lua_pop(L, 1);
  return h ? h->t : NULL;
}

ty_modes *ty_modes_of(lua_State *L, ty_state *s) {
  ty_modes *m = s->special ? find_modes(L, s) : NULL;
  if (!m) m = &s->modes;
  m->ctx.rng = s->draws ? rng_of(L) : NULL;
  return m;
}

/* New modes for the running coroutine, held by TY_R_MODES. Nothing is allocated where it has had some. */
static ty_modes *new_modes(lua_State *L, ty_state *s) {
  if (L == s->main && s->main_spare) {
    ty_modes *m = s->main_spare;
    m->spare_of = NULL;
    s->main_spare = NULL;
    s->refs--;                             /* m's as the spare one; the state has others */
    return m;
  }
  ty_modes *m = L == s->main ? NULL : memory_of(L);
  if (m) return m;
  m = lua_newuserdata(L, sizeof *m);
  m->owner = m->spare_of = NULL;       /* not in s->special yet */
  ty_private(L, TY_R_MODES_META);
  lua_setmetatable(L, -2);
  ty_private(L, TY_R_MODES);
  if (lua_pushthread(L)) s->main = L;
  lua_pushvalue(L, -3);
  lua_rawset(L, -3);
  lua_pop(L, 2);
  return m;
}

ty_modes *ty_own_modes(lua_State *L, ty_state *s) {
  ty_modes *m = find_modes(L, s);
  if (m) return m;
  m = new_modes(L, s);
  *m = s->modes;
  m->ctx.rng = s->draws ? rng_of(L) : NULL;
  if (m->scope && m->scope->L != L) m->scope = NULL;       /* another coroutine's scope */
  m->owner = s;
  s->special++;
  s->refs++;
  if (L == s->main) s->main_modes = m;
  return m;
}

static void map_leave(ty_ctx *ctx) {
  const ty_vmap *map = ctx->vmap;
  ctx->vmap = map->outer;
  ty_free((void *)map);
}

static void modes_end(ty_modes *m) {
  ty_state *s = m->owner;
  if (!s) return;
  if (m->ctx.program) ty_program_abandon(m->ctx.program);
  while (m->ctx.vmap) map_leave(&m->ctx);
  while (m->ctx.recall) ty_recall_end(&m->ctx, m->ctx.recall, true);
  m->owner = NULL;
  if (m == s->main_modes) s->main_modes = NULL;
  s->special--;
  ty_state_release(s);
}

void ty_modes_share_again(lua_State *L, ty_state *s) {
  ty_modes *m = find_modes(L, s);
  if (!m || !is_default(m, s)) return;
  if (L != s->main) {
    modes_end(m);
    return;
  }
  s->refs++;
  modes_end(m);
  m->spare_of = s;
  s->main_spare = m;
}
ty_ctx *ty_modes_end(lua_State *L, ty_state *s, const ty_ctx *ctx) {
  memmove(s->modes.ctx.err, ctx->err, TY_ERRLEN);
  ty_modes_share_again(L, s);
  return &s->modes.ctx;
}

static int modes_gc(lua_State *L) {    /* a coroutine that was dropped within no_grad or scope */
  ty_modes *m = lua_touserdata(L, 1);
  if (!m || lua_objlen(L, 1) != sizeof *m) return 0;             /* programs with the debug library can pass anything */
  modes_end(m);
  if (m->spare_of) {                       /* the Lua state closes: a weak table doesn't hold what is finalized */
    m->spare_of->main_spare = NULL;
    ty_state_release(m->spare_of);
    m->spare_of = NULL;
  }
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

/* n generators are drawn from. */
static void set_draws(ty_state *s, int n) {
  s->special += n - s->draws;
  s->draws = n;
  s->modes.ctx.rng = NULL;                 /* found anew where it is needed */
}

/* draw_begin(state as the op rng_state gives it): until draw_end(state) this coroutine, and those that it resumes, draw from it on the
   CPU */
static int draw_begin(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_settle(L, "a generator is chosen");
  const ty_tensor *t = ty_check(L, 1, "draw", "argument 1");
  if (t->dtype != TY_I64 || t->ndim != 1 || t->shape[0] != 2 || !ty_is_contiguous(t) || ty_device_of(t)->gpu >= 0)
    return ty_throw(L, "draw: a generator's state is two int64 on the CPU, got %s of shape %s on %s", ty_dtype_names[t->dtype],
      ty_shape_of(t), ty_device_of(t)->name);
  ty_extent_end(L, TY_R_DRAWS, 0);         /* of dropped coroutines */
  lua_settop(L, 1);
  set_draws(s, ty_extent_begin(L, TY_R_DRAWS));
  return 0;
}
static int draw_end(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_settle(L, "a generator is chosen");
  set_draws(s, ty_extent_end(L, TY_R_DRAWS, 1));
  return 0;
}

static int is_grad_enabled(lua_State *L) {
  lua_pushboolean(L, ty_context(L)->grad_enabled);
  return 1;
}

/* autocast(gpu, dtype or nil) -> the dtype before. Sets what autocast computes in on GPUs, or on the CPU; with one argument only asks. */
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

/* ---- vmap (core/vmap.c) ---- */

static const char *const draws[] = {[TY_VMAP_ERROR] = "error", [TY_VMAP_DIFFERENT] = "different", [TY_VMAP_SAME] = "same", NULL};
/* map_begin(size, draws): until map_end() the coroutine is within a vmap of so many examples */
static int map_begin(lua_State *L) {
  static atomic_uint last;
  ty_state *s = ty_state_of(L);
  const int64_t size = (int64_t)luaL_checknumber(L, 1);
  const int d = luaL_checkoption(L, 2, NULL, draws);
  ty_ctx *ctx = &ty_own_modes(L, s)->ctx;
  ty_vmap *map = ty_malloc(sizeof *map);
  if (!map) return ty_throw(L, "vmap: out of memory");
  *map = (ty_vmap){.id = atomic_fetch_add(&last, 1) + 1, .draws = (ty_vmap_draws)d, .size = size, .begun = ty_next_storage(),
    .outer = ctx->vmap};
  ctx->vmap = map;
  return 0;
}

static int map_end(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (ctx->vmap) map_leave(ctx);
  ty_modes_share_again(L, s);
  return 0;
}

static ty_ctx *mapping(lua_State *L, ty_state *s) {
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (!ctx->vmap) ty_throw(L, "vmap: none is running");
  return ctx;
}

/* A handle for what is made of the tensor at 1, whose environment it holds too. */
static ty_handle *handle_like(lua_State *L, ty_state *s) {
  ty_handle *h = ty_new_handle(L, s);
  const ty_handle *of = ty_is_handle(L, 1);
  if (of && of->anchored) {
    lua_getfenv(L, 1);
    lua_setfenv(L, -2);
    h->anchored = true;
  }
  return h;
}

/* map_in(x) -> x, whose first dim has the examples, as one example of the innermost vmap; map_out(y) -> all examples of y */
static int map_in(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = mapping(L, s);
  ty_handle *h = handle_like(L, s);
  ty_tensor *t = ty_check_any(L, 1, "vmap", "an argument");
  if (t->ndim == 0) return ty_throw(L, "vmap: a tensor without dims can't be mapped");
  return ty_vmap_in(ctx, ctx->vmap->id, t, &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}
static int map_out(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = mapping(L, s);
  ty_handle *h = handle_like(L, s);
  return ty_vmap_out(ctx, ctx->vmap, ty_check_any(L, 1, "vmap", "a result"), &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}

/* How many vmaps run, m the innermost. */
static int level_of(const ty_vmap *m) {
  int n = 0;
  for (; m; m = m->outer) n++;
  return n;
}

/* map_level(x) -> the level of the innermost vmap that maps x, the outermost has 1; 0: none does. map_level(): of the innermost running */
static int map_level(lua_State *L) {
  const ty_tensor *t = lua_isnone(L, 1) ? NULL : ty_check_any(L, 1, "vmap", "a tensor");
  const ty_vmap *m = ty_context(L)->vmap;
  while (t && m && (!t->whole || m->id != t->vmap)) m = m->outer;
  lua_pushinteger(L, level_of(m));
  return 1;
}

/* maps() -> size and draws of each vmap that runs, of the outermost first: what map_begin takes */
static int maps(lua_State *L) {
  const ty_vmap *m = ty_context(L)->vmap;
  const int n = level_of(m);
  luaL_checkstack(L, 2 * n, "vmap");
  lua_settop(L, 2 * n);
  for (int i = n; i > 0; i--, m = m->outer) {
    lua_pushnumber(L, (lua_Number)m->size);
    lua_replace(L, 2 * i - 1);
    lua_pushstring(L, draws[m->draws]);
    lua_replace(L, 2 * i);
  }
  return 2 * n;
}

/* vmaps that don't run for a time, the innermost first; the outermost's outer is NULL meanwhile */
static void vmaps_end(void *p) {
  for (ty_vmap *m = p, *outer; m; m = outer) { outer = (ty_vmap *)m->outer; ty_free(m); }
}

/* map_to(level): the vmaps within the level-th don't run until map_back(what this gives); nil: there are none */
static int map_to(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = mapping(L, s);
  int n = level_of(ctx->vmap) - (int)luaL_checkinteger(L, 1);
  if (n <= 0) return 0;
  void **held = ty_new_box(L, vmaps_end);
  ctx = &ty_own_modes(L, s)->ctx;
  ty_vmap *last = *held = (void *)ctx->vmap;
  while (--n) last = (ty_vmap *)last->outer;
  ctx->vmap = last->outer;
  last->outer = NULL;
  return 1;
}
static int map_back(lua_State *L) {
  ty_state *s = ty_state_of(L);
  if (lua_isnil(L, 1)) return 0;
  ty_ctx *ctx = &ty_own_modes(L, s)->ctx;
  ty_vmap *held = ty_box_take(L, 1, vmaps_end, "what map_to gave"), *last = held;
  while (last->outer) last = (ty_vmap *)last->outer;
  last->outer = ctx->vmap;
  ctx->vmap = held;
  return 0;
}

/* map_out_all(x, level=0) -> x for all examples of the running vmaps within the level-th, the outermost's along its first dim;
   map_in_all(x, level=0): the way back */
static int map_out_all(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = mapping(L, s);
  int n = level_of(ctx->vmap) - (int)luaL_optinteger(L, 2, 0);
  ty_handle *h = handle_like(L, s);
  h->t = ty_retain(ty_check_any(L, 1, "vmap", "a tensor"));
  for (const ty_vmap *m = ctx->vmap; n > 0; m = m->outer, n--) {
    ty_tensor *t = h->t;
    h->t = NULL;
    const ty_status st = ty_vmap_out(ctx, m, t, &h->t);
    ty_release(t);
    if (st != TY_OK) return ty_raise(L, ctx);
  }
  return 1;
}

static ty_status in_all(ty_ctx *ctx, const ty_vmap *m, int n, ty_tensor *t, ty_tensor **out) {
  ty_tensor *outer;
  if (n <= 0) { *out = ty_retain(t); return TY_OK; }
  TY_TRY(in_all(ctx, m->outer, n - 1, t, &outer));
  const ty_status st = ty_vmap_in(ctx, m->id, outer, out);
  ty_release(outer);
  return st;
}
static int map_in_all(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = mapping(L, s);
  const int n = level_of(ctx->vmap) - (int)luaL_optinteger(L, 2, 0);
  ty_handle *h = handle_like(L, s);
  return in_all(ctx, ctx->vmap, n, ty_check_any(L, 1, "vmap", "a tensor"), &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}

static int is_mapped(lua_State *L) {     /* x, innermost -> whether x is one of vmap's examples; innermost: of the innermost vmap's */
  const ty_tensor *t = ty_test(L, 1);
  lua_pushboolean(L, t && t->whole && (!lua_toboolean(L, 2) || t->vmap == mapping(L, ty_state_of(L))->vmap->id));
  return 1;
}
static int is_mapping(lua_State *L) {    /* -> whether the coroutine is within a vmap */
  lua_pushboolean(L, ty_context(L)->vmap != NULL);
  return 1;
}

void ty_open_modes(lua_State *L) {
  lua_newtable(L);                       /* finalizer of modes */
  ty_add(L, "__gc", modes_gc);
  lua_rawseti(L, lua_upvalueindex(2), TY_R_MODES_META);
  ty_add(L, "set_grad_enabled", set_grad_enabled);
  ty_add(L, "is_grad_enabled", is_grad_enabled);
  ty_add(L, "autocast", autocast);
  ty_add(L, "draw_begin", draw_begin);
  ty_add(L, "draw_end", draw_end);
  ty_add(L, "map_begin", map_begin);
  ty_add(L, "map_end", map_end);
  ty_add(L, "map_in", map_in);
  ty_add(L, "map_out", map_out);
  ty_add(L, "map_level", map_level);
  ty_add(L, "maps", maps);
  ty_add(L, "map_to", map_to);
  ty_add(L, "map_back", map_back);
  ty_add(L, "map_in_all", map_in_all);
  ty_add(L, "map_out_all", map_out_all);
  ty_add(L, "is_mapped", is_mapped);
  ty_add(L, "is_mapping", is_mapping);
}
