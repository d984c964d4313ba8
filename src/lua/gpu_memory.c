/* What lua/tycho/cuda/memory.lua needs of the GPUs' memory: its statistics and history, its settings, memory pools, and pinned host memory.
 *
 * Idea: the allocator is the library's; here are its numbers as Lua tables. Invariant: the pool that is current in a coroutine is held by
 * the Lua function that made it so (use_mempool). */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "gpus.h"
#include "program.h"

static int mem_get_info(lua_State *L) {
  size_t free = 0, total = 0;
  int k = ty_gpu_at(L, 1, "mem_get_info");
  ty_ctx *ctx = ty_context(L);
  ty_status s = ty_gpu_library.memory_info(ctx, k, &free, &total);
  lua_pushnumber(L, (lua_Number)free);
  lua_pushnumber(L, (lua_Number)total);
  return ty_answer(L, ctx, s, 2);
}

static int memory_stats(lua_State *L) {
  const int k = ty_gpu_at(L, 1, "memory_stats");         /* first: it opens the library */
  ty_gpu_stats st;
  ty_gpu_library.stats(k, &st);
  const struct { const char *name; long long v; } f[] = {
    {"allocated", st.allocated}, {"max_allocated", st.peak_allocated}, {"reserved", st.reserved},
    {"max_reserved", st.peak_reserved}, {"allocations", st.allocations}, {"segments", st.segments}, {"num_alloc_retries", st.retries},
    {"num_ooms", st.failures}};
  lua_createtable(L, 0, 8);
  for (unsigned i = 0; i < sizeof f / sizeof *f; i++) { lua_pushnumber(L, (lua_Number)f[i].v); lua_setfield(L, -2, f[i].name); }
  lua_createtable(L, TY_GPU_SIZES, 0);   /* blocks by size */
  for (int i = 0; i < TY_GPU_SIZES; i++) {
    lua_createtable(L, 0, 3);
    lua_pushnumber(L, (lua_Number)st.used[i]); lua_setfield(L, -2, "used");
    lua_pushnumber(L, (lua_Number)st.free[i]); lua_setfield(L, -2, "free");
    if (i < TY_GPU_SIZES - 1) { lua_pushnumber(L, (lua_Number)TY_GPU_SIZE(i)); lua_setfield(L, -2, "most"); }
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "blocks");
  return 1;
}

/* A table of what blocks and events have, on the stack; p goes to the field named at. */
static void push_place(lua_State *L, const char *at, const void *p, const void *stream, size_t size, const char *where) {
  lua_createtable(L, 0, 6);
  ty_set_number(L, at, (double)(uintptr_t)p);
  ty_set_number(L, "stream", (double)(uintptr_t)stream);
  ty_set_number(L, "size", (double)size);
  if (where[0]) { lua_pushstring(L, where); lua_setfield(L, -2, "where"); }
}

/* memory_blocks(device) -> a list of {first=, state= (0 free, 1 used, 2 awaited), address=, stream=, size=, pool=, expandable=, small=,
 * where=}, segment by segment */
static int memory_blocks(lua_State *L) {
  const int k = ty_gpu_at(L, 1, "memory_snapshot");
  const size_t room = ty_gpu_library.snapshot(k, NULL, 0) + 16;
  ty_gpu_block *b = lua_newuserdata(L, room * sizeof *b);
  const size_t n = TY_MIN(ty_gpu_library.snapshot(k, b, room), room);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    push_place(L, "address", b[i].p, b[i].stream, b[i].size, b[i].where);
    lua_pushboolean(L, b[i].first); lua_setfield(L, -2, "first");
    ty_set_number(L, "state", b[i].state);
    ty_set_number(L, "pool", (double)b[i].pool);
    lua_pushboolean(L, b[i].expandable); lua_setfield(L, -2, "expandable");
    lua_pushboolean(L, b[i].small); lua_setfield(L, -2, "small");
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

/* history_begin(most): the history of all devices' memory begins anew */
static int history_begin(lua_State *L) {
  if (!ty_gpu_available(L)) return ty_throw(L, "record_memory_history: %s", ty_gpu_reason());
  ty_gpu_library.history_begin((size_t)luaL_checknumber(L, 1));
  return 0;
}

/* memory_events(device) -> a list of {action=, address= (oom: device_free=), stream=, size=, time_us=, where=}, the oldest first */
static int memory_events(lua_State *L) {
  static const char *const actions[] = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "oom"};
  const int k = ty_gpu_at(L, 1, "memory_history");
  const size_t room = ty_gpu_library.history(k, NULL, 0) + 16;
  ty_memory_event *e = lua_newuserdata(L, room * sizeof *e);
  const size_t n = TY_MIN(ty_gpu_library.history(k, e, room), room);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    push_place(L, e[i].action == TY_MEMORY_OOM ? "device_free" : "address", e[i].p, e[i].stream, e[i].size, e[i].where);
    lua_pushstring(L, actions[e[i].action]); lua_setfield(L, -2, "action");
    ty_set_number(L, "time_us", (double)e[i].time);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

static int reset_peaks(lua_State *L) {
  const int k = ty_gpu_at(L, 1, "reset_peak_memory_stats");
  ty_gpu_library.reset_peaks(k);
  return 0;
}

/* share(device, share or nil) -> the former share of the device's memory that may be reserved */
static int share(lua_State *L) {
  const int k = ty_gpu_at(L, 1, "set_per_process_memory_fraction");
  double before = 1;
  ty_ctx *ctx = ty_context(L);
  const ty_status s = ty_gpu_library.share(ctx, k, luaL_optnumber(L, 2, -1), &before);
  lua_pushnumber(L, before);
  return ty_answer(L, ctx, s, 1);
}

static int empty_gpu_cache(lua_State *L) {
  if (ty_gpu_available(L)) for (int i = 0; i < ty_gpu_library.count; i++) ty_gpu_library.device[i].empty_cache(&ty_gpu_library.device[i]);
  return 0;
}

/* first_settings() -> whether nobody has asked before: the settings are the process's, which may have several Lua states */
static int first_settings(lua_State *L) {
  static atomic_bool asked;
  lua_pushboolean(L, !atomic_exchange(&asked, true));
  return 1;
}

/* ---- memory pools ---- */

static void release_pool(void *pool) { ty_gpu_library.mempool_release(pool); }

static void forget_source(void *source) { ty_free(source); }

static void *function_in(lua_State *L, void *lib, const char *path, const char *name) {
  void *f = dlsym(lib, name);
  if (!f) ty_throw(L, "CUDAPluggableAllocator: %s has no function '%s'", path, name);
  return f;
}

/* source(path of a shared library, names of its two functions) -> source. The library stays open: memory may be its own until the end. */
static int source(lua_State *L) {
  const char *path = luaL_checkstring(L, 1), *alloc = luaL_checkstring(L, 2), *take = luaL_checkstring(L, 3);
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return ty_throw(L, "CUDAPluggableAllocator: %s", dlerror());
  ty_gpu_source **box = (ty_gpu_source **)ty_new_box(L, forget_source);
  if (!(*box = ty_malloc(sizeof **box))) return ty_throw(L, "CUDAPluggableAllocator: out of memory");
  *(void **)&(*box)->alloc = function_in(L, lib, path, alloc);
  *(void **)&(*box)->free = function_in(L, lib, path, take);
  return 1;
}

static const ty_gpu_source *source_at(lua_State *L, int i) {
  return lua_isnoneornil(L, i) ? NULL : ty_box_at(L, i, forget_source, "an allocator");
}

static int mempool_new(lua_State *L) {   /* (source or nil) -> pool */
  if (!ty_gpu_available(L)) return ty_throw(L, "MemPool: %s", ty_gpu_reason());
  const ty_gpu_source *from = source_at(L, 1);
  ty_ctx *ctx = ty_context(L);
  void **pool = ty_new_box(L, release_pool);
  return ty_answer(L, ctx, ty_gpu_library.mempool_new(ctx, from, pool), 1);
}

/* use_mempool(pool or nil: the general one) -> the one before, or nil. The caller holds the new one while it is current. */
static int use_mempool(lua_State *L) {
  ty_state *s = ty_state_of(L);
  void *pool = lua_isnoneornil(L, 1) ? NULL : ty_box_at(L, 1, release_pool, "a memory pool"), *before = ty_ctx_of(L, s)->mempool;
  lua_pushnil(L);
  if (before) {
    void **box = ty_new_box(L, release_pool);
    ty_gpu_library.mempool_retain(before);
    *box = before;
  }
  if (pool == before) return 1;
  ty_own_modes(L, s)->ctx.mempool = pool;
  ty_modes_share_again(L, s);
  return 1;
}

static int mempool_id(lua_State *L) {
  lua_pushnumber(L, (lua_Number)*(const uint64_t *)ty_box_at(L, 1, release_pool, "a memory pool"));
  return 1;
}

static int set_source(lua_State *L) {
  const ty_gpu_source *from = ty_box_at(L, 1, forget_source, "an allocator");
  if (!ty_gpu_available(L)) return ty_throw(L, "change_current_allocator: %s", ty_gpu_reason());
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.set_source(ctx, from), 0);
}

/* ---- pinned memory ---- */

static void unpin(void *owner) { ty_gpu_library.unpin(owner); }

ty_status ty_empty_pinned(lua_State *L, ty_ctx *ctx, const ty_meta *m, ty_tensor **out) {
  int64_t n = ty_dtype_size[m->dtype];
  void *p = NULL;
  if (!ty_gpu_available(L)) return ty_error(ctx, "%s", ty_gpu_reason());
  for (int i = 0; i < m->ndim; i++) n *= m->shape[i];
  TY_TRY(ty_gpu_library.pin(ctx, TY_MAX((size_t)n, 1), &p));
  ty_status st = ty_from_memory(ctx, p, (size_t)n, m, unpin, p, out);
  if (st != TY_OK) unpin(p);
  return st;
}

static int is_pinned(lua_State *L) {
  lua_pushboolean(L, ty_check(L, 1, "is_pinned", "argument 1")->storage->drop == unpin);
  return 1;
}

ty_status ty_stage_begin(lua_State *L, ty_ctx *ctx, int k, size_t most, ty_stage *s) {
  const ty_meta m = {.dtype = TY_U8, .ndim = 1, .shape = {(int64_t)TY_MIN(most, TY_STAGE)}};
  *s = (ty_stage){.gpu = k};
  for (int i = 0; i < 2; i++) {
    TY_TRY(ty_empty_pinned(L, ctx, &m, &s->block[i]));
    TY_TRY(ty_gpu_library.event_new(ctx, k, false, false, &s->event[i]));
  }
  return TY_OK;
}

ty_status ty_stage_room(ty_ctx *ctx, ty_stage *s, void **block) {
  *block = ty_data(s->block[s->turn]);
  return ty_gpu_library.event_synchronize(ctx, s->event[s->turn]);      /* done at once where nothing was recorded */
}

ty_status ty_stage_send(ty_ctx *ctx, ty_stage *s, ty_tensor *to, size_t at, size_t n) {
  const int turn = s->turn;
  s->turn = 1 - turn;
  TY_TRY(ty_device_of(to)->transfer(ctx, ty_device_of(to), to->storage, (size_t)to->offset * (size_t)ty_itemsize(to) + at,
    s->block[turn]->storage, 0, n, false));
  return ty_gpu_library.event_record(ctx, s->gpu, s->event[turn], ctx->stream[s->gpu]);
}

void ty_stage_end(ty_stage *s) {
  for (int i = 0; i < 2; i++) {
    ty_release(s->block[i]);               /* pinned memory is freed when copies from it are done */
    if (s->event[i]) ty_gpu_library.event_free(s->event[i]);
  }
}

/* a GPU's tensor -> a copy in pinned memory, to be read once the current stream has been synchronized */
static int to_pinned(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t = ty_check(L, 1, "to_pinned", "argument 1");
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_meta m;
  ty_meta_of(t, &m);
  ty_keep_layout(&m, t);
  return ty_empty_pinned(L, ctx, &m, &h->t) == TY_OK && ty_move_into(ctx, h->t, t, true) == TY_OK ? 1 : ty_raise(L, ctx);
}

ty_status ty_to_pinned(lua_State *L, ty_ctx *ctx, ty_tensor **t) {
  ty_tensor *pinned;
  ty_meta m;
  if (ty_device_of(*t)->gpu >= 0 || !ty_gpu_available(L)) return TY_OK;
  if (ctx->program) TY_TRY(ty_program_settle(ctx, "pinned memory is made"));
  ty_meta_of(*t, &m);
  ty_keep_layout(&m, *t);
  TY_TRY(ty_empty_pinned(L, ctx, &m, &pinned));
  const ty_status st = ty_copy_into(ctx, pinned, *t);
  if (st != TY_OK) { ty_release(pinned); return st; }
  ty_release(*t);
  *t = pinned;
  return TY_OK;
}

static int pin_memory(lua_State *L) {    /* tensor on the CPU -> a copy in pinned memory */
  ty_state *s = ty_state_of(L);
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t = ty_check(L, 1, "pin_memory", "argument 1");
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (ty_device_of(t)->gpu >= 0) return ty_throw(L, "pin_memory: argument 1 must be on the cpu, it is on %s", ty_device_of(t)->name);
  if (!ty_gpu_available(L)) return ty_throw(L, "pin_memory: %s", ty_gpu_reason());
  h->t = ty_retain(t);
  return ty_to_pinned(L, ctx, &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}

void ty_open_gpu_memory(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } plain[] = {
    {"mem_get_info", mem_get_info}, {"memory_stats", memory_stats}, {"memory_blocks", memory_blocks},
    {"history_begin", history_begin}, {"memory_events", memory_events}, {"reset_peak_memory_stats", reset_peaks},
    {"empty_cache", empty_gpu_cache}, {"share", share}, {"first_settings", first_settings},
    {"source", source}, {"set_source", set_source},
    {"mempool_new", mempool_new}, {"mempool_id", mempool_id}, {"use_mempool", use_mempool},
    {"pin_memory", pin_memory}, {"to_pinned", to_pinned}, {"is_pinned", is_pinned}};
  for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) ty_add(L, plain[i].name, plain[i].f);
}
