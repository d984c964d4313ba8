/* GPU streams, events and graphs for lua/tycho/cuda/init.lua and compile/init.lua, and the profiler's events.
 *
 * Idea: each is a userdata (resource) that is made before the library creates the object that it points to, so that an error
 * leaks nothing; the collector releases the objects that resources own. Invariant: a resource's size and magic are checked
 * before its pointer is used, since metatables can be forged. */
#include <stdio.h>
#include <string.h>
#include "gpus.h"

typedef struct { uint32_t magic; int gpu; void *p; bool owned; } resource;
#define STREAM 0x54795374u       /* "TySt": the magic of a stream's resource; so the others */
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
    if (r->magic == STREAM) ty_gpu_library.stream_release(r->gpu, r->p);
    else if (r->magic == EVENT) ty_gpu_library.event_free(r->p);
    else if (r->magic == GRAPH) ty_gpu_library.graph_free(r->p);
    r->p = NULL;
  }
  return 0;
}

/* Pushes a resource without its object. The metatable is upvalue TY_UPVALUES + 1. */
static resource *resource_new(lua_State *L, uint32_t magic, int k) {
  resource *r = lua_newuserdata(L, sizeof *r);
  *r = (resource){magic, k, NULL, false};
  lua_pushvalue(L, lua_upvalueindex(TY_UPVALUES + 1));
  lua_setmetatable(L, -2);
  return r;
}

static int stream_new(lua_State *L) {
  int k = ty_gpu_at(L, 1, "Stream");
  ty_ctx *ctx = ty_context(L);
  resource *r = resource_new(L, STREAM, k);
  if (ty_gpu_library.stream_new(ctx, k, (int)luaL_optinteger(L, 2, 0), &r->p) != TY_OK) return ty_raise(L, ctx);
  r->owned = true;
  return 1;
}

static int stream_external(lua_State *L) {         /* CUDA's handle, device -> a stream */
  const int k = ty_gpu_at(L, 2, "ExternalStream");
  void *raw = lua_islightuserdata(L, 1) ? lua_touserdata(L, 1) : (void *)(uintptr_t)luaL_checknumber(L, 1);
  ty_ctx *ctx = ty_context(L);
  if (!raw) return ty_throw(L, "ExternalStream: argument 1 is NULL; use default_stream() for Tycho's own");
  resource *r = resource_new(L, STREAM, k);
  if (ty_gpu_library.stream_external(ctx, k, raw, &r->p) != TY_OK) return ty_raise(L, ctx);
  r->owned = true;
  return 1;
}

static int stream_raw(lua_State *L) {    /* stream -> CUDA's handle of it */
  const resource *r = resource_at(L, 1, STREAM, "cuda_stream");
  lua_pushlightuserdata(L, ty_gpu_library.stream_raw(r->gpu, r->p));
  return 1;
}

static int stream_priority(lua_State *L) {
  const resource *r = resource_at(L, 1, STREAM, "priority");
  lua_pushinteger(L, r->p ? ty_gpu_library.stream_priority(r->p) : 0);
  return 1;
}

static int same(lua_State *L) {          /* two streams: whether they are one */
  const resource *a = resource_at(L, 1, STREAM, "stream"), *b = resource_at(L, 2, STREAM, "stream");
  lua_pushboolean(L, a->gpu == b->gpu && a->p == b->p);
  return 1;
}

static void hold_stream(resource *r, void *stream) {
  if (stream) ty_gpu_library.stream_retain(stream);
  r->p = stream;
  r->owned = true;
}

static int default_stream(lua_State *L) { resource_new(L, STREAM, ty_gpu_at(L, 1, "default_stream")); return 1; }

static int current_stream(lua_State *L) {
  int k = ty_gpu_at(L, 1, "current_stream");
  hold_stream(resource_new(L, STREAM, k), ty_context(L)->stream[k]);
  return 1;
}

/* (stream) -> the one that was current on its device. The caller must hold the new one while it is current. */
static int set_stream(lua_State *L) {
  ty_state *s = ty_state_of(L);
  resource *r = resource_at(L, 1, STREAM, "stream");
  if (!ty_gpu_library.stream_usable(r->gpu, r->p))
    return ty_throw(L, "stream: argument 1 must not be a graph's stream, on which work is only recorded");
  hold_stream(resource_new(L, STREAM, r->gpu), ty_ctx_of(L, s)->stream[r->gpu]);
  ty_own_modes(L, s)->ctx.stream[r->gpu] = r->p;
  ty_modes_share_again(L, s);
  return 1;
}

static int stream_synchronize(lua_State *L) {
  resource *r = resource_at(L, 1, STREAM, "synchronize");
  ty_settle(L, "a stream is waited for");
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.stream_synchronize(ctx, r->gpu, r->p), 0);
}

static int stream_query(lua_State *L) {
  resource *r = resource_at(L, 1, STREAM, "query");
  ty_ctx *ctx = ty_context(L);
  bool done = false;
  ty_status s = ty_gpu_library.stream_query(ctx, r->gpu, r->p, &done);
  lua_pushboolean(L, done);
  return ty_answer(L, ctx, s, 1);
}

static int event_new(lua_State *L) {
  int k = ty_gpu_at(L, 2, "Event");
  ty_ctx *ctx = ty_context(L);
  resource *r = resource_new(L, EVENT, k);
  if (ty_gpu_library.event_new(ctx, k, lua_toboolean(L, 1), lua_toboolean(L, 3), &r->p) != TY_OK) return ty_raise(L, ctx);
  r->owned = true;
  return 1;
}

/* The stream of argument i, or the current one of the event's device. */
static void *stream_or_current(lua_State *L, int i, int k, const char *who) {
  return lua_isnoneornil(L, i) ? ty_context(L)->stream[k] : resource_at(L, i, STREAM, who)->p;
}

static int event_record(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "record");
  ty_settle(L, "an event is recorded");    /* the event stands for all work so far */
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.event_record(ctx, e->gpu, e->p, stream_or_current(L, 2, e->gpu, "record")), 0);
}

static int event_wait(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "wait"), *s = lua_isnoneornil(L, 2) ? NULL : resource_at(L, 2, STREAM, "wait");
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.event_wait(ctx, s ? s->gpu : e->gpu, e->p, s ? s->p : ctx->stream[e->gpu]), 0);
}

static int event_synchronize(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "synchronize");
  ty_ctx *ctx = ty_context(L);
  return ty_answer(L, ctx, ty_gpu_library.event_synchronize(ctx, e->p), 0);
}

static int event_query(lua_State *L) {
  resource *e = resource_at(L, 1, EVENT, "query");
  ty_ctx *ctx = ty_context(L);
  bool done = false;
  ty_status s = ty_gpu_library.event_query(ctx, e->p, &done);
  lua_pushboolean(L, done);
  return ty_answer(L, ctx, s, 1);
}

static int event_elapsed(lua_State *L) {
  resource *a = resource_at(L, 1, EVENT, "elapsed_time"), *b = resource_at(L, 2, EVENT, "elapsed_time");
  ty_ctx *ctx = ty_context(L);
  double ms = 0;
  ty_status s = ty_gpu_library.event_elapsed(ctx, a->p, b->p, &ms);
  lua_pushnumber(L, ms);
  return ty_answer(L, ctx, s, 1);
}

void *ty_gpu_mark(ty_ctx *ctx, int k) {
  void *e = NULL;
  if (ty_gpu_library.capturing() || ty_gpu_library.event_new(ctx, k, true, false, &e) != TY_OK) return NULL;
  if (ty_gpu_library.event_record(ctx, k, e, ctx->stream[k]) == TY_OK) return e;
  ty_gpu_library.event_free(e);
  return NULL;
}
void ty_gpu_unmark(void *e) { ty_gpu_library.event_free(e); }
bool ty_gpu_between(ty_ctx *ctx, void *a, void *b, double *us) {
  if (!a || ty_gpu_library.event_synchronize(ctx, b) != TY_OK || ty_gpu_library.event_elapsed(ctx, a, b, us) != TY_OK) return false;
  *us *= 1e3;
  return true;
}

/* graph_begin(device, graph whose memory is shared, or nil, whether it is a compiled function's own) -> graph, whose stream is now the
   current one; from here to graph_end this thread's work on the device is recorded */
static int graph_begin(lua_State *L) {
  const int k = ty_gpu_at(L, 1, "graph");
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_context(L);
  void *stream = NULL;
  const resource *beside = lua_isnoneornil(L, 2) ? NULL : resource_at(L, 2, GRAPH, "graph");
  const bool own = lua_toboolean(L, 3);
  resource *g = resource_new(L, GRAPH, k);
  ty_settle(L, "a graph is captured");
  if (beside && !beside->p) return ty_throw(L, "graph: the pool's graph has been reset");
  if (ty_gpu_library.graph_begin(ctx, k, beside ? beside->p : NULL, own, &g->p, &stream) != TY_OK) return ty_raise(L, ctx);
  g->owned = true;
  ty_own_modes(L, s)->ctx.stream[k] = stream;
  return 1;
}

static int capturing(lua_State *L) {
  lua_pushboolean(L, ty_gpu_library.count > 0 && ty_gpu_library.capturing());
  return 1;
}

static int graphs(lua_State *L) {        /* whether there can be graphs */
  lua_pushboolean(L, ty_gpu_library.count > 0 && ty_gpu_library.graphs());
  return 1;
}

static int graph_end(lua_State *L) {     /* (graph, keep) -> kernels and copies in it */
  size_t nodes = 0;
  resource *g = resource_at(L, 1, GRAPH, "graph");
  ty_ctx *ctx = ty_context(L);
  const ty_status s = ty_gpu_library.graph_end(ctx, g->p, lua_toboolean(L, 2), &nodes);
  lua_pushnumber(L, (lua_Number)nodes);
  return ty_answer(L, ctx, s, 1);
}

static int graph_there(lua_State *L) {   /* whether it hasn't been reset */
  lua_pushboolean(L, resource_at(L, 1, GRAPH, "graph")->p != NULL);
  return 1;
}

static int graph_reset(lua_State *L) {
  resource_at(L, 1, GRAPH, "reset");
  return resource_gc(L);
}

static int graph_replay(lua_State *L) {
  const resource *g = resource_at(L, 1, GRAPH, "replay");
  ty_ctx *ctx = ty_context(L);
  if (!g->p) return ty_throw(L, "replay: the graph has been reset");
  ty_settle(L, "a graph is replayed");
  ty_profiler *told = ty_profile_begin(ctx, "graph", &ty_gpu_library.device[g->gpu], NULL);
  const ty_status s = ty_gpu_library.graph_replay(ctx, g->p);
  ty_profile_end(ctx, told);
  return ty_answer(L, ctx, s, 0);
}

/* ---- users' kernels ---- */

static int kernel(lua_State *L) {        /* (device, source) -> kernel */
  const int k = ty_gpu_at(L, 1, "kernel");
  void *made = NULL;
  ty_ctx *ctx = ty_context(L);
  if (ty_gpu_library.kernel(ctx, k, luaL_checkstring(L, 2), &made) != TY_OK) return ty_raise(L, ctx);
  lua_pushlightuserdata(L, made);
  return 1;
}

static void three(lua_State *L, int i, unsigned out[3]) {
  for (int d = 0; d < 3; d++) {
    lua_rawgeti(L, i, d + 1);
    out[d] = (unsigned)lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
}

#define OWN_ARGUMENTS 64
/* launch(device, kernel, name, grid, block, kinds, arguments ...): kinds has a letter for each argument: p and w (written to) are
   tensors; f d i l u U b numbers, which have been checked in Lua. */
static int launch(lua_State *L) {
  enum { FIRST = 7 };
  const int k = ty_gpu_at(L, 1, "kernel"), n = lua_gettop(L) - FIRST + 1;
  ty_tensor *t[OWN_ARGUMENTS];
  char args[8 * OWN_ARGUMENTS] = {0};
  size_t at = 0, length = 0;
  const char *kinds = luaL_checklstring(L, 6, &length);
  ty_gpu_launch l = {.name = luaL_checkstring(L, 3), .args = args, .t = t};
  luaL_checktype(L, 2, LUA_TLIGHTUSERDATA);
  luaL_checktype(L, 4, LUA_TTABLE);
  luaL_checktype(L, 5, LUA_TTABLE);
  if (n > OWN_ARGUMENTS || (size_t)n != length) return ty_throw(L, "%s: at most %d arguments", l.name, OWN_ARGUMENTS);
  three(L, 4, l.grid);
  three(L, 5, l.block);
  ty_settle(L, "a kernel of the program's own is launched");
  ty_ctx *ctx = ty_context(L);
  for (int i = 0; i < n; i++) {
    union { void *p; float f; double d; int32_t i; int64_t l; uint32_t u; uint64_t U; bool b; } v = {.U = 0};
    const double x = lua_isboolean(L, FIRST + i) ? lua_toboolean(L, FIRST + i) : lua_tonumber(L, FIRST + i);
    size_t size = 8;
    char what[24];
    switch (kinds[i]) {
      case 'p': case 'w':
        snprintf(what, sizeof what, "argument %d", i + 1);
        t[l.nt] = ty_check(L, FIRST + i, l.name, what);
        if (ty_device_of(t[l.nt])->gpu != k || !ty_is_contiguous(t[l.nt]))
          return ty_throw(L, "%s: %s must be contiguous and on cuda:%d", l.name, what, k);
        if (kinds[i] == 'w' && ctx->grad_enabled && ty_needs_grad(t[l.nt]))
          return ty_throw(L, "%s: %s requires grad, but what a kernel writes has no gradient: use no_grad or an autograd.Function",
            l.name, what);
        v.p = ty_data(t[l.nt++]);
        break;
      case 'f': v.f = (float)x; size = 4; break;
      case 'd': v.d = x; break;
      case 'i': v.i = (int32_t)x; size = 4; break;
      case 'u': v.u = (uint32_t)x; size = 4; break;
      case 'l': v.l = (int64_t)x; break;
      case 'U': v.U = (uint64_t)x; break;
      default: v.b = x != 0; size = 1;
    }
    at = (at + size - 1) / size * size;
    memcpy(args + at, &v, size);
    at += size;
  }
  l.size = TY_MAX((at + 7) / 8 * 8, 8);
  ty_profiler *told = ty_profile_begin(ctx, l.name, &ty_gpu_library.device[k], NULL);
  const ty_status s = ty_gpu_library.launch(ctx, k, lua_touserdata(L, 2), &l);
  ty_profile_end(ctx, told);
  for (int i = 0, j = 0; i < n; i++)
    if (kinds[i] == 'p' || kinds[i] == 'w') {
      if (kinds[i] == 'w') ty_changed(t[j]);
      j++;
    }
  return ty_answer(L, ctx, s, 0);
}

static int resource_gpu(lua_State *L) {
  resource *r = lua_touserdata(L, 1);
  if (!r || lua_objlen(L, 1) != sizeof *r || (r->magic != STREAM && r->magic != EVENT && r->magic != GRAPH))
    return ty_throw(L, "device: argument 1 must be a stream, an event or a graph");
  lua_pushinteger(L, r->gpu);
  return 1;
}

void ty_open_streams(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } plain[] = {
    {"stream_synchronize", stream_synchronize}, {"stream_query", stream_query}, {"stream_raw", stream_raw},
    {"stream_priority", stream_priority},
    {"event_record", event_record}, {"event_wait", event_wait},
    {"event_synchronize", event_synchronize}, {"event_query", event_query}, {"event_elapsed", event_elapsed}, {"capturing", capturing},
    {"graphs", graphs}, {"graph_end", graph_end}, {"graph_replay", graph_replay}, {"graph_reset", graph_reset},
    {"graph_there", graph_there},
    {"device_of", resource_gpu}, {"same", same}, {"kernel", kernel}, {"launch", launch}};
  for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) ty_add(L, plain[i].name, plain[i].f);
  static const struct { const char *name; lua_CFunction f; int meta; } makers[] = {
    {"stream_new", stream_new, 0}, {"stream_external", stream_external, 0},
    {"current_stream", current_stream, 0}, {"default_stream", default_stream, 0},
    {"set_stream", set_stream, 0}, {"event_new", event_new, 1}, {"graph_begin", graph_begin, 2}};
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
}
