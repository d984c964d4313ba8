/* Devices as Lua names them, the GPU library's opening, and tycho.cuda's functions as lua/tycho/cuda.lua wants them.
 *
 * Idea: the library (tycho/cuda.so on package.cpath, or the file that TYCHO_CUDA_LIBRARY names) is opened when a GPU is first asked for, once for the process. Invariant: without
 * it everything else works, and every mention of a GPU says why there is none. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "binding.h"
#include "gpu.h"
#include "program.h"

static ty_gpu gpu;
static char reason[300];
static bool opened;
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
  const char *why = open ? open(&services, &gpu) : "it has no entry";
  if (why) { snprintf(reason, sizeof reason, "%s", why); gpu.count = 0; return; }
  size_t left = 0, total = 0;
  if (gpu.count && gpu.memory_info(ctx, 0, &left, &total) == TY_OK) garbage = (long long)TY_MIN(total / 32, (size_t)1 << 30);
  for (int i = 0; i < gpu.count && i < TY_MAXGPU; i++) {
    ty_devices[1 + i] = &gpu.device[i];
    gpu.device[i].seed(ctx, &gpu.device[i], (ty_generator){ty_cpu_generator.seed, 0});   /* manual_seed may have come before */
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
  return gpu.count > 0;
}

int ty_device_at(lua_State *L, const char *name, const char *who) {
  ty_state *s = ty_state_of(L);
  if (!strcmp(name, "cpu")) return 0;
  if (strncmp(name, "cuda", 4) || (name[4] && name[4] != ':')) return -1;
  char *end = NULL;
  long k = name[4] ? strtol(name + 5, &end, 10) : ty_ctx_of(L, s)->gpu;
  if (end && (*end || end == name + 5 || name[5] < '0' || name[5] > '9')) return -1;
  if (!available(L)) ty_throw(L, "%s: device '%s' is not available: %s", who, name, reason);
  if (k >= gpu.count) ty_throw(L, "%s: device '%s' is not available: there are %d GPUs, numbered from 0", who, name, gpu.count);
  return 1 + (int)k;
}

/* ---- tycho.cuda ---- */

static ty_ctx *context(lua_State *L) { return ty_ctx_of(L, ty_state_of(L)); }

static int is_available(lua_State *L) {
  bool ok = available(L);
  lua_pushboolean(L, ok);
  if (ok) return 1;
  lua_pushstring(L, reason);
  return 2;
}

/* flag(name, value or nil) -> the value so far */
static int flag(lua_State *L) {
  static const struct { const char *name; bool *at; } names[] = {{"deterministic", &flags.deterministic}, {"cudnn_benchmark", &flags.cudnn_benchmark},
    {"cudnn_deterministic", &flags.cudnn_deterministic}, {"allow_tf32", &flags.allow_tf32}, {"sync_debug", &flags.sync_debug}, {"refuse_sync", &flags.refuse_sync}};
  const char *name = luaL_checkstring(L, 1);
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(name, names[i].name)) continue;
    lua_pushboolean(L, *names[i].at);
    if (!lua_isnoneornil(L, 2)) *names[i].at = lua_toboolean(L, 2);
    return 1;
  }
  return ty_throw(L, "there is no flag '%s'", name);
}

/* ways() -> int64 tensor of what libraries have chosen by timing (nil: nothing), text of which libraries they are */
static int ways(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  if (!available(L)) return 0;
  size_t n = gpu.ways(NULL, 0), now = 0;
  lua_pushnil(L);
  while (n && now != n) {                  /* another thread may time one meanwhile */
    const ty_meta m = {.dtype = TY_I64, .ndim = 1, .shape = {(int64_t)(n = gpu.ways(NULL, 0))}};
    lua_pop(L, 1);
    ty_handle *h = ty_new_handle(L, s);
    if (ty_empty(ctx, ty_devices[0], &m, &h->t) != TY_OK) return ty_raise(L, ctx);
    now = gpu.ways(ty_data(h->t), n);
  }
  lua_pushstring(L, gpu.libraries());
  return 2;
}

/* set_ways(tensor of ways(), or nil: none) */
static int set_ways(lua_State *L) {
  const ty_tensor *t = lua_isnoneornil(L, 1) ? NULL : ty_check(L, 1, "set_ways", "argument 1");
  ty_ctx *ctx = context(L);
  if (!available(L)) return 0;
  if (t && (ty_device_of(t)->gpu >= 0 || t->dtype != TY_I64 || t->ndim != 1 || !ty_is_contiguous(t))) return ty_throw(L, "these are no plans");
  return gpu.set_ways(ctx, t ? ty_data(t) : NULL, t ? (size_t)ty_numel(t) : 0) == TY_OK ? 0 : ty_raise(L, ctx);
}

static int ways_set(lua_State *L) {        /* -> how often they have been set */
  lua_pushnumber(L, available(L) ? gpu.ways_set() : 0);
  return 1;
}

/* The generator of device 1: seed, offset. Or sets it. */
static int rng_state(lua_State *L) {
  ty_settle(L, "the generator's state is asked for");
  const int d = ty_device_at(L, luaL_checkstring(L, 1), "rng_state");
  ty_ctx *ctx = context(L);
  ty_generator g = ty_cpu_generator;
  int64_t seed, offset;
  if (d < 0) return ty_throw(L, "argument 1 must be a device such as 'cpu' or 'cuda:0', got '%s'", lua_tostring(L, 1));
  if (lua_isnoneornil(L, 2)) {
    if (d && ty_devices[d]->get_seed(ctx, ty_devices[d], &g) != TY_OK) return ty_raise(L, ctx);
    lua_pushnumber(L, (lua_Number)g.seed);
    lua_pushnumber(L, (lua_Number)g.offset);
    return 2;
  }
  if (!ty_is_whole(luaL_checknumber(L, 2), &seed) || !ty_is_whole(luaL_checknumber(L, 3), &offset) || seed < 0 || offset < 0) return ty_throw(L, "set_rng_state: whole numbers from 0 are needed");
  g = (ty_generator){(uint64_t)seed, (uint64_t)offset};
  if (!d) ty_cpu_generator = g;
  else if (ty_devices[d]->seed(ctx, ty_devices[d], g) != TY_OK) return ty_raise(L, ctx);
  return 0;
}

/* keep_rng(device) -> the generator's state as two int64 on that device; give_rng(state) sets it. Neither waits for a device. */
static int keep_rng(lua_State *L) {
  ty_settle(L, "the generator's state is read");
  const int d = ty_device_at(L, luaL_checkstring(L, 1), "keep_rng");
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const ty_meta m = {.dtype = TY_I64, .ndim = 1, .shape = {2}};
  if (d < 0) return ty_throw(L, "keep_rng: there is no device '%s'", lua_tostring(L, 1));
  ty_handle *h = ty_new_handle(L, s);
  if (ty_empty(ctx, ty_devices[d], &m, &h->t) != TY_OK) return ty_raise(L, ctx);
  if (!d) memcpy(ty_data(h->t), &ty_cpu_generator, sizeof ty_cpu_generator);
  else if (ty_devices[d]->copy_seed(ctx, ty_devices[d], h->t, false) != TY_OK) return ty_raise(L, ctx);
  return 1;
}

static int give_rng(lua_State *L) {
  ty_tensor *t = ty_check(L, 1, "give_rng", "argument 1");
  ty_settle(L, "the generator's state is set");
  const ty_backend *b = ty_device_of(t);
  if (t->dtype != TY_I64 || t->ndim != 1 || t->shape[0] != 2 || !ty_is_contiguous(t)) return ty_throw(L, "give_rng: argument 1 is no generator's state");
  if (b->gpu < 0) memcpy(&ty_cpu_generator, ty_data(t), sizeof ty_cpu_generator);
  else if (b->copy_seed(context(L), b, t, true) != TY_OK) return ty_raise(L, context(L));
  return 0;
}

/* Where tensors are made of which no device is said: a coroutine that there is keeps its own modes' device. */
static int default_device(lua_State *L) {
  ty_state *s = ty_state_of(L);
  lua_pushstring(L, ty_devices[ty_ctx_of(L, s)->device]->name);
  if (lua_isnoneornil(L, 1)) return 1;
  const int d = lua_type(L, 1) == LUA_TSTRING ? ty_device_at(L, lua_tostring(L, 1), "set_default_device") : -1;
  if (d < 0) return ty_throw(L, "set_default_device: argument 1 must be a device such as 'cpu' or 'cuda:0', got %s", lua_tostring(L, 1) ? lua_tostring(L, 1) : ty_type_text(L, 1));
  s->modes.ctx.device = ty_ctx_of(L, s)->device = d;
  return 1;
}

static int device_count(lua_State *L) { lua_pushinteger(L, available(L) ? gpu.count : 0); return 1; }

/* The GPU of argument i: a number, a name, or nil for the current one. */
static int gpu_at(lua_State *L, int i, const char *who) {
  ty_state *s = ty_state_of(L);
  int64_t k;
  if (!available(L)) return ty_throw(L, "%s: %s", who, reason);
  if (lua_isnoneornil(L, i)) return ty_ctx_of(L, s)->gpu;
  if (lua_type(L, i) == LUA_TSTRING) {
    int d = ty_device_at(L, lua_tostring(L, i), who);
    if (d > 0) return d - 1;
  }
  if (lua_type(L, i) != LUA_TNUMBER || !ty_is_whole(lua_tonumber(L, i), &k) || k < 0 || k >= gpu.count)
    return ty_throw(L, "%s: argument %d must be a GPU's number, 0 to %d, or its name", who, i, gpu.count - 1);
  return (int)k;
}

static int answer(lua_State *L, ty_ctx *ctx, ty_status s, int n) { return s == TY_OK ? n : ty_raise(L, ctx); }

static int current_device(lua_State *L) { lua_pushinteger(L, gpu_at(L, 1, "current_device")); return 1; }

static int set_device(lua_State *L) {
  ty_state *s = ty_state_of(L);
  int k = gpu_at(L, 1, "set_device");
  if (k != ty_ctx_of(L, s)->gpu) {
    ty_own_modes(L, s)->ctx.gpu = k;
    ty_modes_settle(L, s);
  }
  return 0;
}

static int get_device_properties(lua_State *L) {
  ty_gpu_properties p;
  ty_ctx *ctx = context(L);
  int k = gpu_at(L, 1, "get_device_properties");
  if (gpu.properties(ctx, k, &p) != TY_OK) return ty_raise(L, ctx);
  lua_createtable(L, 0, 5);
  lua_pushstring(L, p.name); lua_setfield(L, -2, "name");
  lua_pushinteger(L, p.major); lua_setfield(L, -2, "major");
  lua_pushinteger(L, p.minor); lua_setfield(L, -2, "minor");
  lua_pushinteger(L, p.multiprocessors); lua_setfield(L, -2, "multi_processor_count");
  lua_pushnumber(L, (lua_Number)p.memory); lua_setfield(L, -2, "total_memory");
  return 1;
}

static int synchronize(lua_State *L) {
  int k = gpu_at(L, 1, "synchronize");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, gpu.synchronize(ctx, k), 0);
}

static int sync_count(lua_State *L) { lua_pushnumber(L, available(L) ? (lua_Number)gpu.sync_count() : 0); return 1; }

static int mem_get_info(lua_State *L) {
  size_t free = 0, total = 0;
  int k = gpu_at(L, 1, "mem_get_info");
  ty_ctx *ctx = context(L);
  ty_status s = gpu.memory_info(ctx, k, &free, &total);
  lua_pushnumber(L, (lua_Number)free);
  lua_pushnumber(L, (lua_Number)total);
  return answer(L, ctx, s, 2);
}

static int memory_stats(lua_State *L) {
  ty_gpu_stats st;
  gpu.stats(gpu_at(L, 1, "memory_stats"), &st);
  const struct { const char *name; long long v; } f[] = {{"allocated", st.allocated}, {"max_allocated", st.peak_allocated}, {"reserved", st.reserved},
    {"max_reserved", st.peak_reserved}, {"allocations", st.allocations}, {"segments", st.segments}};
  lua_createtable(L, 0, 6);
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

static int reset_peaks(lua_State *L) { gpu.reset_peaks(gpu_at(L, 1, "reset_peak_memory_stats")); return 0; }

static int empty_gpu_cache(lua_State *L) {
  if (available(L)) for (int i = 0; i < gpu.count; i++) gpu.device[i].empty_cache(&gpu.device[i]);
  return 0;
}

/* ---- streams, events and graphs: userdata {gpu, pointer} ---- */

typedef struct { uint32_t magic; int gpu; void *p; bool owned; } resource;
#define STREAM 0x54795374u
#define EVENT 0x54794576u
#define GRAPH 0x54794772u

static resource *resource_at(lua_State *L, int i, uint32_t magic, const char *who) {
  resource *r = lua_touserdata(L, i);
  if (!r || lua_type(L, i) != LUA_TUSERDATA || lua_objlen(L, i) != sizeof *r || r->magic != magic)
    ty_throw(L, "%s: argument %d must be %s", who, i, magic == STREAM ? "a stream" : magic == EVENT ? "an event" : "a graph");
  return r;
}

static int resource_gc(lua_State *L) {
  resource *r = lua_touserdata(L, 1);
  if (r && lua_objlen(L, 1) == sizeof *r && r->owned && r->p) {
    if (r->magic == STREAM) gpu.stream_free(r->gpu, r->p);
    else if (r->magic == EVENT) gpu.event_free(r->gpu, r->p);
    else if (r->magic == GRAPH) gpu.graph_free(r->p);
    r->p = NULL;
  }
  return 0;
}

/* Pushes one without what it stands for, so that an error leaks nothing. The metatable is upvalue TY_UPVALUES + 1. */
static resource *resource_new(lua_State *L, uint32_t magic, int k) {
  resource *r = lua_newuserdata(L, sizeof *r);
  *r = (resource){magic, k, NULL, false};
  lua_pushvalue(L, lua_upvalueindex(TY_UPVALUES + 1));
  lua_setmetatable(L, -2);
  return r;
}

static int stream_new(lua_State *L) {
  int k = gpu_at(L, 1, "Stream");
  ty_ctx *ctx = context(L);
  resource *r = resource_new(L, STREAM, k);
  if (gpu.stream_new(ctx, k, &r->p) != TY_OK) return ty_raise(L, ctx);
  r->owned = true;
  return 1;
}

static int same(lua_State *L) {          /* two streams: whether they are one */
  const resource *a = resource_at(L, 1, STREAM, "stream"), *b = resource_at(L, 2, STREAM, "stream");
  lua_pushboolean(L, a->gpu == b->gpu && a->p == b->p);
  return 1;
}

static int default_stream(lua_State *L) { resource_new(L, STREAM, gpu_at(L, 1, "default_stream")); return 1; }

static int current_stream(lua_State *L) {
  int k = gpu_at(L, 1, "current_stream");
  resource_new(L, STREAM, k)->p = context(L)->stream[k];
  return 1;
}

/* (stream) -> the one that was current on its device; Lua keeps both alive */
static int set_stream(lua_State *L) {
  ty_state *s = ty_state_of(L);
  resource *r = resource_at(L, 1, STREAM, "stream");
  resource_new(L, STREAM, r->gpu)->p = ty_ctx_of(L, s)->stream[r->gpu];
  ty_own_modes(L, s)->ctx.stream[r->gpu] = r->p;
  ty_modes_settle(L, s);
  return 1;
}

static int stream_synchronize(lua_State *L) {
  resource *r = resource_at(L, 1, STREAM, "synchronize");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, gpu.stream_synchronize(ctx, r->gpu, r->p), 0);
}

static int stream_query(lua_State *L) {
  resource *r = resource_at(L, 1, STREAM, "query");
  ty_ctx *ctx = context(L);
  bool done = false;
  ty_status s = gpu.stream_query(ctx, r->gpu, r->p, &done);
  lua_pushboolean(L, done);
  return answer(L, ctx, s, 1);
}

static int event_new(lua_State *L) {
  int k = gpu_at(L, 2, "Event");
  ty_ctx *ctx = context(L);
  resource *r = resource_new(L, EVENT, k);
  if (gpu.event_new(ctx, k, lua_toboolean(L, 1), &r->p) != TY_OK) return ty_raise(L, ctx);
  r->owned = true;
  return 1;
}

/* The stream of argument i, or the current one of the event's device. */
static void *stream_or_current(lua_State *L, int i, int k, const char *who) {
  return lua_isnoneornil(L, i) ? context(L)->stream[k] : resource_at(L, i, STREAM, who)->p;
}

static int event_record(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "record");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, gpu.event_record(ctx, e->gpu, e->p, stream_or_current(L, 2, e->gpu, "record")), 0);
}

static int event_wait(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "wait"), *s = lua_isnoneornil(L, 2) ? NULL : resource_at(L, 2, STREAM, "wait");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, gpu.event_wait(ctx, s ? s->gpu : e->gpu, e->p, s ? s->p : ctx->stream[e->gpu]), 0);
}

static int event_synchronize(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "synchronize");
  ty_ctx *ctx = context(L);
  return answer(L, ctx, gpu.event_synchronize(ctx, e->p), 0);
}

static int event_query(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "query");
  ty_ctx *ctx = context(L);
  bool done = false;
  ty_status s = gpu.event_query(ctx, e->p, &done);
  lua_pushboolean(L, done);
  return answer(L, ctx, s, 1);
}

static int event_elapsed(lua_State *L) {
  resource *a = resource_at(L, 1, EVENT, "elapsed_time"), *b = resource_at(L, 2, EVENT, "elapsed_time");
  ty_ctx *ctx = context(L);
  double ms = 0;
  ty_status s = gpu.event_elapsed(ctx, a->p, b->p, &ms);
  lua_pushnumber(L, ms);
  return answer(L, ctx, s, 1);
}

void *ty_gpu_mark(ty_ctx *ctx, int k) {
  void *e = NULL;
  if (gpu.capturing() || gpu.event_new(ctx, k, true, &e) != TY_OK) return NULL;
  if (gpu.event_record(ctx, k, e, ctx->stream[k]) == TY_OK) return e;
  gpu.event_free(k, e);
  return NULL;
}
void ty_gpu_unmark(int k, void *e) { gpu.event_free(k, e); }
bool ty_gpu_between(ty_ctx *ctx, void *a, void *b, double *us) {
  if (!a || gpu.event_synchronize(ctx, b) != TY_OK || gpu.event_elapsed(ctx, a, b, us) != TY_OK) return false;
  *us *= 1e3;
  return true;
}

/* graph_begin(device) -> graph, whose stream is now the current one; from here to graph_end this thread's work on the device is recorded */
static int graph_begin(lua_State *L) {
  const int k = gpu_at(L, 1, "graph");
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = context(L);
  void *stream = NULL;
  resource *g = resource_new(L, GRAPH, k);
  if (gpu.graph_begin(ctx, k, &g->p, &stream) != TY_OK) return ty_raise(L, ctx);
  g->owned = true;
  ty_own_modes(L, s)->ctx.stream[k] = stream;
  return 1;
}

static int capturing(lua_State *L) {
  lua_pushboolean(L, gpu.count > 0 && gpu.capturing());
  return 1;
}

static int graphs(lua_State *L) {        /* whether there can be graphs */
  lua_pushboolean(L, gpu.count > 0 && gpu.graphs());
  return 1;
}

static int graph_end(lua_State *L) {     /* (graph, keep) -> kernels and copies in it */
  size_t nodes = 0;
  resource *g = resource_at(L, 1, GRAPH, "graph");
  ty_ctx *ctx = context(L);
  const ty_status s = gpu.graph_end(ctx, g->p, lua_toboolean(L, 2), &nodes);
  lua_pushnumber(L, (lua_Number)nodes);
  return answer(L, ctx, s, 1);
}

static int graph_reset(lua_State *L) {
  resource_at(L, 1, GRAPH, "reset");
  return resource_gc(L);
}

static int graph_replay(lua_State *L) {
  const resource *g = resource_at(L, 1, GRAPH, "replay");
  ty_ctx *ctx = context(L);
  if (!g->p) return ty_throw(L, "replay: the graph has been reset");
  ty_profiler *told = ctx->profiler;
  if (told) told->begin(told, ctx, "graph", &gpu.device[g->gpu], NULL);
  const ty_status s = gpu.graph_replay(ctx, g->p);
  if (told) told->end(told, ctx);
  return answer(L, ctx, s, 0);
}

/* ---- pinned memory ---- */

static void unpin(void *owner) { gpu.unpin(owner); }

ty_status ty_pinned(lua_State *L, ty_ctx *ctx, const ty_meta *m, ty_tensor **out) {
  int64_t n = ty_dtype_size[m->dtype];
  void *p = NULL;
  if (!available(L)) return ty_error(ctx, "%s", reason);
  for (int i = 0; i < m->ndim; i++) n *= m->shape[i];
  TY_TRY(gpu.pin(ctx, TY_MAX((size_t)n, 1), &p));
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
    TY_TRY(ty_pinned(L, ctx, &m, &s->block[i]));
    TY_TRY(gpu.event_new(ctx, k, false, &s->event[i]));
  }
  return TY_OK;
}

ty_status ty_stage_room(ty_ctx *ctx, ty_stage *s, void **block) {
  *block = ty_data(s->block[s->turn]);
  return gpu.event_synchronize(ctx, s->event[s->turn]);      /* done at once where nothing was recorded */
}

ty_status ty_stage_send(ty_ctx *ctx, ty_stage *s, ty_tensor *to, size_t at, size_t n) {
  const int turn = s->turn;
  s->turn = 1 - turn;
  TY_TRY(ty_device_of(to)->transfer(ctx, ty_device_of(to), to->storage, (size_t)to->offset * (size_t)ty_itemsize(to) + at, s->block[turn]->storage, 0, n, false));
  return gpu.event_record(ctx, s->gpu, s->event[turn], ctx->stream[s->gpu]);
}

void ty_stage_end(ty_stage *s) {
  for (int i = 0; i < 2; i++) {
    ty_release(s->block[i]);               /* pinned memory in use goes back when its copy is done */
    if (s->event[i]) gpu.event_free(s->gpu, s->event[i]);
  }
}

static int to_pinned(lua_State *L) {     /* a GPU's tensor -> a copy in pinned memory, which is there when the current stream has been waited for */
  ty_state *s = ty_state_of(L);
  ty_tensor *t = ty_check(L, 1, "to_pinned", "argument 1");
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_meta m;
  ty_meta_of(t, &m);
  ty_handle *h = ty_new_handle(L, s);
  return ty_pinned(L, ctx, &m, &h->t) == TY_OK && ty_move_into(ctx, h->t, t, true) == TY_OK ? 1 : ty_raise(L, ctx);
}

ty_status ty_pin(lua_State *L, ty_ctx *ctx, ty_tensor **t) {
  ty_tensor *pinned;
  ty_meta m;
  if (ty_device_of(*t)->gpu >= 0 || !available(L)) return TY_OK;
  if (ctx->program) TY_TRY(ty_program_settle(ctx, "pinned memory is made"));
  ty_meta_of(*t, &m);
  TY_TRY(ty_pinned(L, ctx, &m, &pinned));
  if (ty_copy_into(ctx, pinned, *t) != TY_OK) return ty_release(pinned), TY_ERR;
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
  return ty_pin(L, ctx, &h->t) == TY_OK ? 1 : ty_raise(L, ctx);
}

static int resource_gpu(lua_State *L) {
  resource *r = lua_touserdata(L, 1);
  if (!r || lua_objlen(L, 1) != sizeof *r || (r->magic != STREAM && r->magic != EVENT && r->magic != GRAPH)) return ty_throw(L, "device: argument 1 must be a stream, an event or a graph");
  lua_pushinteger(L, r->gpu);
  return 1;
}

void ty_open_gpu(lua_State *L) {
  lua_newtable(L);
  static const struct { const char *name; lua_CFunction f; } plain[] = {
    {"is_available", is_available}, {"device_count", device_count}, {"current_device", current_device}, {"set_device", set_device},
    {"get_device_properties", get_device_properties}, {"synchronize", synchronize}, {"sync_count", sync_count}, {"mem_get_info", mem_get_info},
    {"memory_stats", memory_stats}, {"reset_peak_memory_stats", reset_peaks}, {"empty_cache", empty_gpu_cache}, {"pin_memory", pin_memory}, {"to_pinned", to_pinned},
    {"stream_synchronize", stream_synchronize}, {"stream_query", stream_query}, {"event_record", event_record}, {"event_wait", event_wait},
    {"event_synchronize", event_synchronize}, {"event_query", event_query}, {"event_elapsed", event_elapsed}, {"capturing", capturing}, {"graphs", graphs}, {"graph_end", graph_end}, {"graph_replay", graph_replay}, {"graph_reset", graph_reset}, {"is_pinned", is_pinned}, {"device_of", resource_gpu}, {"same", same},
    {"flag", flag}, {"keep_rng", keep_rng}, {"give_rng", give_rng}, {"rng_state", rng_state}, {"ways", ways}, {"set_ways", set_ways}, {"ways_set", ways_set}, {"default_device", default_device}};
  for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) ty_add(L, plain[i].name, plain[i].f);
  static const struct { const char *name; lua_CFunction f; int meta; } makers[] = {
    {"stream_new", stream_new, 0}, {"current_stream", current_stream, 0}, {"default_stream", default_stream, 0}, {"set_stream", set_stream, 0}, {"event_new", event_new, 1}, {"graph_begin", graph_begin, 2}};
  int top = lua_gettop(L);
  static const char *const metas[] = {"stream_meta", "event_meta", "graph_meta"};
  for (int k = 0; k < 3; k++) {
    lua_newtable(L);
    ty_closure(L, resource_gc, 0);
    lua_setfield(L, -2, "__gc");
    lua_pushvalue(L, -1);
    lua_setfield(L, top, metas[k]);
  }
  for (unsigned i = 0; i < sizeof makers / sizeof *makers; i++) {
    lua_pushvalue(L, top + 1 + makers[i].meta);
    ty_closure(L, makers[i].f, 1);
    lua_setfield(L, top, makers[i].name);
  }
  lua_settop(L, top);
  lua_setfield(L, -2, "gpu");
}
