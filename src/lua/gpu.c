/* Device names, the opening of the GPU library, and what lua/tycho/cuda/init.lua needs for devices, generators and flags (for memory:
 * gpu_memory.c; for streams, events and graphs: stream.c).
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

static ty_gpu_flags flags = {.flash_sdp = true, .mem_efficient_sdp = true, .math_sdp = true, .cudnn_sdp = true};
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
    ty_gpu_library.device[i].seed(ctx, &ty_gpu_library.device[i], (ty_generator){ty_cpu_generator(ctx).seed, 0});
  }
}

long long ty_gpu_garbage(void) { return garbage; }
const char *ty_gpu_reason(void) { return reason; }

bool ty_gpu_available(lua_State *L) {
  if (!opened) {
    const char *named = getenv("TYCHO_CUDA_LIBRARY"), *found = ty_push_library(L, "tycho.cuda"), *path = named ? named : found;
    pthread_mutex_lock(&lock);
    if (!opened) {
      if (path) open_library(path, ty_context(L));
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
  if (!ty_gpu_available(L)) ty_throw(L, "%s: device '%s' is not available: %s", who, name, reason);
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
  bool ok = ty_gpu_available(L);
  lua_pushboolean(L, ok);
  if (ok) return 1;
  lua_pushstring(L, reason);
  return 2;
}

/* flag(name, value or nil) -> the value so far: a boolean or a number */
static int flag(lua_State *L) {
  static const struct { const char *name; bool *at; } booleans[] = {
    {"deterministic", &flags.deterministic}, {"cudnn_benchmark", &flags.cudnn_benchmark},
    {"cudnn_deterministic", &flags.cudnn_deterministic}, {"allow_tf32", &flags.allow_tf32}, {"conv_tf32", &flags.conv_tf32},
    {"flash_sdp", &flags.flash_sdp}, {"mem_efficient_sdp", &flags.mem_efficient_sdp}, {"math_sdp", &flags.math_sdp},
    {"cudnn_sdp", &flags.cudnn_sdp}, {"sync_debug", &flags.sync_debug}, {"refuse_sync", &flags.refuse_sync},
    {"warn_sync", &flags.warn_sync}, {"memory_history", &flags.memory_history}, {"expandable_segments", &flags.expandable_segments}};
  static const struct { const char *name; double *at; } numbers[] = {
    {"max_split_size", &flags.max_split_size}, {"garbage_collection_threshold", &flags.garbage_collection_threshold},
    {"roundup_power2_divisions", &flags.roundup_power2_divisions}};
  const char *name = luaL_checkstring(L, 1);
  const bool sets = !lua_isnoneornil(L, 2);
  for (unsigned i = 0; i < sizeof booleans / sizeof *booleans; i++) {
    if (strcmp(name, booleans[i].name)) continue;
    lua_pushboolean(L, *booleans[i].at);
    if (sets) *booleans[i].at = lua_toboolean(L, 2);
    return 1;
  }
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (strcmp(name, numbers[i].name)) continue;
    lua_pushnumber(L, *numbers[i].at);
    if (sets) *numbers[i].at = luaL_checknumber(L, 2);
    return 1;
  }
  return ty_throw(L, "there is no flag '%s'", name);
}

/* timed_plans() -> int64 tensor of the plans that libraries have chosen by timing (nil: none), text that names the libraries */
static int timed_plans(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (!ty_gpu_available(L)) return 0;
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
  ty_ctx *ctx = ty_context(L);
  if (!ty_gpu_available(L)) return 0;
  if (t && (ty_device_of(t)->gpu >= 0 || t->dtype != TY_I64 || t->ndim != 1 || !ty_is_contiguous(t)))
    return ty_throw(L, "these are no plans");
  return ty_gpu_library.set_timed_plans(ctx, t ? ty_data(t) : NULL, t ? (size_t)ty_numel(t) : 0) == TY_OK ? 0 : ty_raise(L, ctx);
}

static int timed_plans_set(lua_State *L) {        /* -> how often they have been set */
  lua_pushnumber(L, ty_gpu_available(L) ? ty_gpu_library.timed_plans_set() : 0);
  return 1;
}

/* rng_state(device) -> seed, offset of its generator; rng_state(device, seed, offset) sets them */
static int rng_state(lua_State *L) {
  ty_settle(L, "the generator's state is read or set");
  const int d = ty_device_at(L, luaL_checkstring(L, 1), "rng_state");
  ty_ctx *ctx = ty_context(L);
  ty_generator g = ty_cpu_generator(ctx);
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
  if (!d) ty_cpu_seed(ctx, g);
  else if (ty_devices[d]->seed(ctx, ty_devices[d], g) != TY_OK) return ty_raise(L, ctx);
  return 0;
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

static int device_count(lua_State *L) { lua_pushinteger(L, ty_gpu_available(L) ? ty_gpu_library.count : 0); return 1; }

int ty_gpu_at(lua_State *L, int i, const char *who) {
  ty_state *s = ty_state_of(L);
  int64_t k;
  if (!ty_gpu_available(L)) return ty_throw(L, "%s: %s", who, reason);
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
  ty_ctx *ctx = ty_context(L);
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
  ty_ctx *ctx = ty_context(L);
  const int k = ty_gpu_at(L, 1, "can_device_access_peer"), peer = ty_gpu_at(L, 2, "can_device_access_peer");
  bool can;
  if (ty_gpu_library.can_access_peer(ctx, k, peer, &can) != TY_OK) return ty_raise(L, ctx);
  lua_pushboolean(L, can);
  return 1;
}

static int synchronize(lua_State *L) {
  int k = ty_gpu_at(L, 1, "synchronize");
  ty_settle(L, "the device is waited for");
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.synchronize(ctx, k), 0);
}

static int sync_count(lua_State *L) { lua_pushnumber(L, ty_gpu_available(L) ? (lua_Number)ty_gpu_library.sync_count() : 0); return 1; }

/* For external profilers: range(text or nil: its end), moment(text), recording(on). */
static int range(lua_State *L) {
  if (ty_gpu_available(L)) ty_gpu_library.range(lua_isnoneornil(L, 1) ? NULL : luaL_checkstring(L, 1));
  return 0;
}
static int moment(lua_State *L) {
  const char *text = luaL_checkstring(L, 1);
  if (ty_gpu_available(L)) ty_gpu_library.moment(text);
  return 0;
}
static int recording(lua_State *L) {
  ty_gpu_at(L, 2, "profiler");
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.recording(ctx, lua_toboolean(L, 1)), 0);
}

static int dnn_version(lua_State *L) {     /* -> a number, or nothing */
  const size_t n = ty_gpu_available(L) ? ty_gpu_library.dnn_version() : 0;
  if (n) lua_pushnumber(L, (lua_Number)n);
  return n > 0;
}

void ty_open_gpu(lua_State *L) {
  lua_newtable(L);
  static const struct { const char *name; lua_CFunction f; } plain[] = {
    {"is_available", is_available}, {"opened", has_opened}, {"device_count", device_count}, {"current_device", current_device},
    {"set_device", set_device},
    {"get_device_properties", get_device_properties}, {"can_device_access_peer", can_device_access_peer},
    {"synchronize", synchronize}, {"sync_count", sync_count},
    {"flag", flag}, {"rng_state", rng_state}, {"range", range},
    {"moment", moment}, {"recording", recording}, {"dnn_version", dnn_version}, {"timed_plans", timed_plans},
    {"set_timed_plans", set_timed_plans}, {"timed_plans_set", timed_plans_set}, {"default_device", default_device}};
  for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) ty_add(L, plain[i].name, plain[i].f);
  ty_open_gpu_memory(L);
  ty_open_streams(L);
  lua_setfield(L, -2, "gpu");
}
