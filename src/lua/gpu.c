/* Device names, the opening of the GPU library, and what lua/tycho/cuda.lua needs for devices, their memory, generators and flags
 * (for streams, events and graphs: stream.c).
 *
 * Idea: the library (tycho/cuda.so on package.cpath, or the file that TYCHO_CUDA_LIBRARY names) is opened when a GPU is first
 * asked for, once for the process. Invariant: without it everything else works, and any use of a GPU says why there is none. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpus.h"
#include "program.h"

ty_gpu ty_gpu_library;
static char reason[300];
static atomic_bool opened;
static long long garbage;                  /* written once */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ty_gpu_flags flags;
static const ty_services services = {
  .interface = TY_INTERFACE,
  .flags = &flags,
#define SERVICE(type, name, params, args) .name = name,
#include "services.def"
  .ty_verror = ty_verror,
};

static void open_library(const char *path, ty_ctx *ctx) {
  void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ty_gpu_open open;
  if (!lib) { snprintf(reason, sizeof reason, "%s", dlerror()); return; }
  *(void **)&open = dlsym(lib, "ty_cuda_open");
  const char *why = open ? open(&services, &ty_gpu_library) : "it has no entry point";
  if (why) { snprintf(reason, sizeof reason, "%s", why); ty_gpu_library.count = 0; return; }
  ty_gpu_properties first;
  if (ty_gpu_library.properties(ctx, 0, &first) == TY_OK) garbage = (long long)TY_MIN(first.memory / 32, (size_t)1 << 30);
  for (int i = 0; i < ty_gpu_library.count && i < TY_MAXGPU; i++) {
    ty_devices[1 + i] = &ty_gpu_library.device[i];
    /* an earlier manual_seed counts */
    ty_gpu_library.device[i].seed(ctx, &ty_gpu_library.device[i], (ty_generator){ty_cpu_generator().seed, 0});
  }
}

long long ty_gpu_garbage(void) { return garbage; }

/* Whether there is a GPU; reason says why not. */
static bool available(lua_State *L) {
  if (!opened) {
    const char *named = getenv("TYCHO_CUDA_LIBRARY"), *found = ty_push_library(L, "tycho.cuda"), *path = named ? named : found;
    pthread_mutex_lock(&lock);
    if (!opened) {
      if (path) open_library(path, ty_ctx_of(L, ty_state_of(L)));
      else snprintf(reason, sizeof reason, "tycho was built without CUDA: there is no tycho/cuda.so on package.cpath");
      opened = true;
    }
    pthread_mutex_unlock(&lock);
    lua_pop(L, 1);
  }
  return ty_gpu_library.count > 0;
}

int ty_device_at(lua_State *L, const char *name, const char *who) {
  ty_state *s = ty_state_of(L);
  if (!strcmp(name, "cpu")) return 0;
  if (strncmp(name, "cuda", 4) || (name[4] && name[4] != ':')) return -1;
  char *end = NULL;
  long k = name[4] ? strtol(name + 5, &end, 10) : ty_ctx_of(L, s)->gpu;
  if (end && (*end || end == name + 5 || name[5] < '0' || name[5] > '9')) return -1;
  if (!available(L)) ty_throw(L, "%s: device '%s' is not available: %s", who, name, reason);
  if (k >= ty_gpu_library.count)
    ty_throw(L, "%s: device '%s' is not available: there are %d GPUs, numbered from 0", who, name, ty_gpu_library.count);
  return 1 + (int)k;
}

/* ---- tycho.cuda ---- */

static int has_opened(lua_State *L) {      /* whether the library has been opened, and has a GPU */
  lua_pushboolean(L, ty_gpu_library.count > 0);
  return 1;
}

static int is_available(lua_State *L) {
  bool ok = available(L);
  lua_pushboolean(L, ok);
  if (ok) return 1;
  lua_pushstring(L, reason);
  return 2;
}

/* flag(name, value or nil) -> the value so far */
static int flag(lua_State *L) {
  static const struct { const char *name; bool *at; } names[] = {
    {"deterministic", &flags.deterministic}, {"cudnn_benchmark", &flags.cudnn_benchmark},
    {"cudnn_deterministic", &flags.cudnn_deterministic}, {"allow_tf32", &flags.allow_tf32}, {"conv_tf32", &flags.conv_tf32},
    {"sync_debug", &flags.sync_debug}, {"refuse_sync", &flags.refuse_sync},
    {"warn_sync", &flags.warn_sync}, {"memory_history", &flags.memory_history}};
  const char *name = luaL_checkstring(L, 1);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(name, names[i].name)) continue;
    lua_pushboolean(L, *names[i].at);
    if (!lua_isnoneornil(L, 2)) *names[i].at = lua_toboolean(L, 2);
    return 1;
  }
  return ty_throw(L, "there is no flag '%s'", name);
}

/* timed_plans() -> int64 tensor of the plans that libraries have chosen by timing (nil: none), text that names the libraries */
static int timed_plans(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (!available(L)) return 0;
  size_t n = ty_gpu_library.timed_plans(NULL, 0), now = 0;
  lua_pushnil(L);
  while (n && now != n) {                  /* another thread may time one meanwhile */
    const ty_meta m = {.dtype = TY_I64, .ndim = 1, .shape = {(int64_t)(n = ty_gpu_library.timed_plans(NULL, 0))}};
    lua_pop(L, 1);
    ty_handle *h = ty_new_handle(L, s);
    if (ty_empty(ctx, ty_devices[0], &m, &h->t) != TY_OK) return ty_raise(L, ctx);
    now = ty_gpu_library.timed_plans(ty_data(h->t), n);
  }
  lua_pushstring(L, ty_gpu_library.libraries());
  return 2;
}

/* set_timed_plans(tensor of timed_plans(), or nil: none) */
static int set_timed_plans(lua_State *L) {
  const ty_tensor *t = lua_isnoneornil(L, 1) ? NULL : ty_check(L, 1, "set_timed_plans", "argument 1");
  ty_ctx *ctx = context(L);
  if (!available(L)) return 0;
  if (t && (ty_device_of(t)->gpu >= 0 || t->dtype != TY_I64 || t->ndim != 1 || !ty_is_contiguous(t)))
    return ty_throw(L, "these are no plans");
  return ty_gpu_library.set_timed_plans(ctx, t ? ty_data(t) : NULL, t ? (size_t)ty_numel(t) : 0) == TY_OK ? 0 : ty_raise(L, ctx);
}

static int timed_plans_set(lua_State *L) {        /* -> how often they have been set */
  lua_pushnumber(L, available(L) ? ty_gpu_library.timed_plans_set() : 0);
  return 1;
}

/* rng_state(device) -> seed, offset of its generator; rng_state(device, seed, offset) sets them */
static int rng_state(lua_State *L) {
  ty_settle(L, "the generator's state is read or set");
  const int d = ty_device_at(L, luaL_checkstring(L, 1), "rng_state");
  ty_ctx *ctx = context(L);
  ty_generator g = ty_cpu_generator();
  int64_t seed, offset;
  if (d < 0) return ty_throw(L, "argument 1 must be a device such as 'cpu' or 'cuda:0', got '%s'", lua_tostring(L, 1));
  if (lua_isnoneornil(L, 2)) {
    if (d && ty_devices[d]->get_seed(ctx, ty_devices[d], &g) != TY_OK) return ty_raise(L, ctx);
    lua_pushnumber(L, (lua_Number)g.seed);
    lua_pushnumber(L, (lua_Number)g.offset);
    return 2;
  }
  if (!ty_is_whole(luaL_checknumber(L, 2), &seed) || !ty_is_whole(luaL_checknumber(L, 3), &offset) || seed < 0 || offset < 0)
    return ty_throw(L, "set_rng_state: whole numbers from 0 are needed");
  g = (ty_generator){(uint64_t)seed, (uint64_t)offset};
  if (!d) ty_cpu_seed(g);
  else if (ty_devices[d]->seed(ctx, ty_devices[d], g) != TY_OK) return ty_raise(L, ctx);
  return 0;
}

/* own_rng(state as the op rng_state gives it, or nil: the process's) -> the former one; this thread draws from it on the CPU */
static int own_rng(lua_State *L) {
  lua_settop(L, 1);
  ty_settle(L, "a generator is chosen");
  ty_handle *before = ty_new_handle(L, ty_state_of(L));
  ty_tensor *t = lua_isnil(L, 1) ? NULL : ty_check(L, 1, "own_rng", "argument 1");
  if (t && (t->dtype != TY_I64 || t->ndim != 1 || t->shape[0] != 2 || !ty_is_contiguous(t) || ty_device_of(t)->gpu >= 0))
    return ty_throw(L, "own_rng: argument 1 must be a generator's state, two int64 on the CPU, got %s of shape %s on %s",
      ty_dtype_names[t->dtype], ty_shape_of(t), ty_device_of(t)->name);
  before->t = ty_cpu_own(t ? ty_retain(t) : NULL);
  if (!before->t) lua_pushnil(L);
  return 1;
}

/* default_device() -> the device of tensors for which none is given, and the name that was set; with a name: sets it, -> the former name.
 * "cuda" means the GPU that is current when a tensor is made. Other coroutines with modes of their own keep their device. */
static int default_device(lua_State *L) {
  ty_state *s = ty_state_of(L);
  lua_settop(L, 1);
  lua_pushstring(L, ty_devices[ty_default_device(ty_ctx_of(L, s))]->name);
  if (ty_ctx_of(L, s)->device < 0) lua_pushliteral(L, "cuda");
  else lua_pushvalue(L, -1);
  if (lua_isnoneornil(L, 1)) return 2;
  const int d = lua_type(L, 1) == LUA_TSTRING ? ty_device_at(L, lua_tostring(L, 1), "set_default_device") : -1;
  if (d < 0)
    return ty_throw(L, "set_default_device: argument 1 must be a device such as 'cpu' or 'cuda:0', got %s",
      lua_tostring(L, 1) ? lua_tostring(L, 1) : ty_type_text(L, 1));
  s->modes.ctx.device = ty_ctx_of(L, s)->device = strcmp(lua_tostring(L, 1), "cuda") ? d : -1;
  return 1;
}

static int device_count(lua_State *L) { lua_pushinteger(L, available(L) ? ty_gpu_library.count : 0); return 1; }

int ty_gpu_at(lua_State *L, int i, const char *who) {
  ty_state *s = ty_state_of(L);
  int64_t k;
  if (!available(L)) return ty_throw(L, "%s: %s", who, reason);
  if (lua_isnoneornil(L, i)) return ty_ctx_of(L, s)->gpu;
  if (lua_type(L, i) == LUA_TSTRING) {
    int d = ty_device_at(L, lua_tostring(L, i), who);
    if (d > 0) return d - 1;
  }
  if (lua_type(L, i) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, i), &k) || k < 0 || k >= ty_gpu_library.count)
    return ty_throw(L, "%s: argument %d must be a GPU's number, 0 to %d, or its name", who, i, ty_gpu_library.count - 1);
  return (int)k;
}

static int current_device(lua_State *L) { lua_pushinteger(L, ty_gpu_at(L, 1, "current_device")); return 1; }

static int set_device(lua_State *L) {
  ty_state *s = ty_state_of(L);
  int k = ty_gpu_at(L, 1, "set_device");
  if (k == ty_ctx_of(L, s)->gpu) return 0;
  const bool main = lua_pushthread(L);     /* coroutines that choose none share its choice */
  if (main) s->modes.ctx.gpu = k;
  ty_own_modes(L, s)->ctx.gpu = k;
  ty_modes_share_again(L, s);
  return 0;
}

static int get_device_properties(lua_State *L) {
  ty_gpu_properties p;
  ty_ctx *ctx = context(L);
  int k = ty_gpu_at(L, 1, luaL_optstring(L, 2, "get_device_properties"));
  if (ty_gpu_library.properties(ctx, k, &p) != TY_OK) return ty_raise(L, ctx);
  const struct { const char *name; double value; } all[] = {{"major", p.major}, {"minor", p.minor},
    {"multi_processor_count", p.multiprocessors}, {"total_memory", (double)p.memory}, {"warp_size", p.warp},
    {"max_threads_per_multi_processor", p.threads}, {"regs_per_multiprocessor", p.registers}, {"L2_cache_size", (double)p.l2},
    {"shared_memory_per_multiprocessor", (double)p.shared}, {"shared_memory_per_block", (double)p.shared_of_block}};
  lua_createtable(L, 0, 11);
  lua_pushstring(L, p.name); lua_setfield(L, -2, "name");
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) { lua_pushnumber(L, all[i].value); lua_setfield(L, -2, all[i].name); }
  return 1;
}

static int can_device_access_peer(lua_State *L) {
  ty_ctx *ctx = context(L);
  const int k = ty_gpu_at(L, 1, "can_device_access_peer"), peer = ty_gpu_at(L, 2, "can_device_access_peer");
  bool can;
  if (ty_gpu_library.can_access_peer(ctx, k, peer, &can) != TY_OK) return ty_raise(L, ctx);
  lua_pushboolean(L, can);
  return 1;
}

static int synchronize(lua_State *L) {
  int k = ty_gpu_at(L, 1, "synchronize");
  ty_settle(L, "the device is waited for");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, ty_gpu_library.synchronize(ctx, k), 0);
}

static int sync_count(lua_State *L) { lua_pushnumber(L, available(L) ? (lua_Number)ty_gpu_library.sync_count() : 0); return 1; }

static int mem_get_info(lua_State *L) {
  size_t free = 0, total = 0;
  int k = ty_gpu_at(L, 1, "mem_get_info");
  ty_ctx *ctx = context(L);
  ty_status s = ty_gpu_library.memory_info(ctx, k, &free, &total);
  lua_pushnumber(L, (lua_Number)free);
  lua_pushnumber(L, (lua_Number)total);
  return answer(L, ctx, s, 2);
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

/* memory_blocks(device) -> a list of {first=, state= (0 free, 1 used, 2 awaited), address=, stream=, size=, where=}, segment by segment */
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
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}

/* history_begin(most): the history of all devices' memory begins anew */
static int history_begin(lua_State *L) {
  if (!available(L)) return ty_throw(L, "record_memory_history: %s", reason);
  ty_gpu_library.history_begin((size_t)luaL_checknumber(L, 1));
  return 0;
}

/* memory_events(device) -> a list of {action=, address= (oom: device_free=), stream=, size=, time_us=, where=}, the oldest first */
static int memory_events(lua_State *L) {
  static const char *const actions[] = {"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom"};
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
  ty_ctx *ctx = context(L);
  const ty_status s = ty_gpu_library.share(ctx, k, luaL_optnumber(L, 2, -1), &before);
  lua_pushnumber(L, before);
  return answer(L, ctx, s, 1);
}

/* For external profilers: range(text or nil: its end), moment(text), recording(on). */
static int range(lua_State *L) {
  if (available(L)) ty_gpu_library.range(lua_isnoneornil(L, 1) ? NULL : luaL_checkstring(L, 1));
  return 0;
}
static int moment(lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  if (available(L)) ty_gpu_library.moment(text);
  return 0;
}
static int recording(lua_State *L) {
  ty_gpu_at(L, 2, "profiler");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, ty_gpu_library.recording(ctx, lua_toboolean(L, 1)), 0);
}

static int empty_gpu_cache(lua_State *L) {
  if (available(L)) for (int i = 0; i < ty_gpu_library.count; i++) ty_gpu_library.device[i].empty_cache(&ty_gpu_library.device[i]);
  return 0;
}

/* ---- pinned memory ---- */

static void unpin(void *owner) { ty_gpu_library.unpin(owner); }

ty_status ty_empty_pinned(lua_State *L, ty_ctx *ctx, const ty_meta *m, ty_tensor **out) {
  int64_t n = ty_dtype_size[m->dtype];
  void *p = NULL;
  if (!available(L)) return ty_error(ctx, "%s", reason);
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
    TY_TRY(ty_gpu_library.event_new(ctx, k, false, &s->event[i]));
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
  if (ty_device_of(*t)->gpu >= 0 || !available(L)) return TY_OK;
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
  if (!available(L)) return ty_throw(L, "pin_memory: %s", reason);
  h->t = ty_retain(t);
  return ty_to_pinned(L, ctx, &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}

void ty_open_gpu(lua_State *L) {
  lua_newtable(L);
  static const struct { const char *name; lua_CFunction f; } plain[] = {
    {"is_available", is_available}, {"opened", has_opened}, {"device_count", device_count}, {"current_device", current_device},
    {"set_device", set_device},
    {"get_device_properties", get_device_properties}, {"can_device_access_peer", can_device_access_peer},
    {"synchronize", synchronize}, {"sync_count", sync_count},
    {"mem_get_info", mem_get_info}, {"memory_stats", memory_stats}, {"memory_blocks", memory_blocks},
    {"history_begin", history_begin}, {"memory_events", memory_events},
    {"reset_peak_memory_stats", reset_peaks},
    {"empty_cache", empty_gpu_cache}, {"pin_memory", pin_memory}, {"to_pinned", to_pinned}, {"is_pinned", is_pinned},
    {"flag", flag}, {"own_rng", own_rng}, {"rng_state", rng_state},
    {"share", share}, {"range", range}, {"moment", moment}, {"recording", recording}, {"timed_plans", timed_plans},
    {"set_timed_plans", set_timed_plans}, {"timed_plans_set", timed_plans_set}, {"default_device", default_device}};
  for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) ty_add(L, plain[i].name, plain[i].f);
  ty_open_streams(L);
  lua_setfield(L, -2, "gpu");
}
