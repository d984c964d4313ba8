/* The profiler's record: what ran when, on the CPU's clock and between events of a GPU's stream.
 *
 * Idea: the core calls ty_profiler before and after it launches each kernel, and Lua reports ranges that users name; both become entries
 * of one list, which profile_stop() hands over. Invariant: entries nest, so that an entry's own time is its time less that of the entries
 * one deeper that follow it. Only ranges of coroutines that take turns may overlap; each is ended by its id. */
#include <stdlib.h>
#include <string.h>
#include "gpus.h"
#include "program.h"

typedef struct {
  char *name, *shapes, *line;              /* line: the user's, "file:12" */
  double begin, end, flops;
  long long bytes;
  bool kernel;
  int depth, gpu;
  void *from, *to;
} entry;
#define DEEPEST 64
typedef struct {
  ty_profiler told;                        /* first: the core's pointer is the recorder's */
  entry *list;
  int n, room, depth, open[DEEPEST];       /* open: indices of entries that haven't ended; -1: no memory for one */
  long long id[DEEPEST];                   /* of open ranges, unique over all profiles; 0: a kernel */
  bool shapes, lines, outside;             /* outside: only ranges, for external profilers */
  ty_account *account;
  void *start[TY_MAXGPU];                  /* events from which a GPU's times count */
  double began;
} recorder;

static double now_us(void) { return ty_now() * 1e6; }

static char *shapes_of(const ty_call *c) {
  char text[512];
  size_t at = 0;
  text[0] = 0;
  for (int i = 0; i < c->nin && at < sizeof text; i++)               /* cut off where text is full */
    if (c->in[i].t) at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "", ty_shape_of(c->in[i].t));
  return strdup(text);
}

/* Bytes of the results with memory of their own, which was allocated before the kernel began. */
static long long made_by(const ty_call *c) {
  long long n = 0;
  for (int j = 0; j < c->op->nout; j++) {
    bool own = c->out[j] != NULL;
    for (int i = 0; i < c->nin; i++) own = own && !(c->in[i].t && c->in[i].t->storage == c->out[j]->storage);
    if (own) n += ty_nbytes(c->out[j]);
  }
  return n;
}

/* The products and sums of matrix products, convolutions and attention, which PyTorch counts like this, except that its count of a grouped
 * convolution's weight gradient isn't divided by the groups; 0 for all other ops. */
static double flops_of(const ty_call *c) {
  const ty_tensor *a = c->in[0].t, *b = c->nin > 1 ? c->in[1].t : NULL, *out = c->out[0];
  const double made = out ? (double)ty_numel(out) : 0;                 /* no result: a gradient that isn't wanted */
  const int first = c->op->cls == TY_C_ATTENTION && c->op->id != TY_OP_attention;      /* the gradient comes before q, k and v */
  switch (c->op->id) {
    case TY_OP_matmul: case TY_OP_linear: case TY_OP_linear_relu: return 2 * made * (double)a->shape[a->ndim - 1];
    case TY_OP_linear_backward_weight: return out ? 2 * (double)ty_numel(a) * (double)b->shape[b->ndim - 1] : 0;
    case TY_OP_conv2d: return 2 * made * (double)ty_numel(b) / (double)TY_MAX(b->shape[0], 1);
    case TY_OP_conv2d_backward_input: return 2 * (double)ty_numel(a) * (double)ty_numel(b) / (double)TY_MAX(b->shape[0], 1);
    case TY_OP_conv2d_backward_weight: return out ? 2 * (double)ty_numel(a) * made / (double)TY_MAX(out->shape[0], 1) : 0;
    case TY_OP_attention: case TY_OP_attention_backward: case TY_OP_attention_backward_with_mask: {
      const ty_tensor *q = c->in[first].t, *k = c->in[first + 1].t, *v = c->in[first + 2].t;
      const double e = (double)q->shape[q->ndim - 1], ev = (double)v->shape[v->ndim - 1], keys = (double)k->shape[k->ndim - 2];
      return e == 0 ? 0 : 2 * (double)ty_numel(q) / e * keys * (first ? 3 * e + 2 * ev : e + ev);
    }
    default: return 0;
  }
}

static void enter(recorder *r, ty_ctx *ctx, const char *name, int gpu, const ty_call *c, long long id) {
  char line[512];
  if (r->lines) {                          /* first: it may run finalizers, which may run ops, or end the profile */
    ty_lua_location(ctx, line, sizeof line);               /* "file:line: " */
    if (ctx->account->profiler != &r->told) return;
  }
  const int depth = r->depth++;
  if (r->outside) ty_gpu_library.range(name);
  if (r->outside || depth >= DEEPEST) return;
  r->open[depth] = -1;
  r->id[depth] = id;
  if (r->n == r->room) {
    const int room = r->room ? 2 * r->room : 1024;
    entry *more = realloc(r->list, sizeof *more * (size_t)room);
    if (!more) return;                     /* out of memory: not recorded */
    r->list = more;
    r->room = room;
  }
  entry *e = &r->list[r->n];
  *e = (entry){.name = strdup(name), .shapes = c && r->shapes ? shapes_of(c) : NULL, .depth = depth, .gpu = gpu,
    .kernel = c != NULL, .flops = c ? flops_of(c) : 0, .bytes = c ? made_by(c) : -atomic_load(&r->account->bytes)};
  if (!e->name) { free(e->shapes); return; }
  if (r->lines) {
    const size_t length = strlen(line);
    e->line = strndup(line, length > 2 ? length - 2 : 0);
  }
  r->open[depth] = r->n++;
  if (gpu >= 0) {
    if (!r->start[gpu]) r->start[gpu] = ty_gpu_mark(ctx, gpu);
    e->from = ty_gpu_mark(ctx, gpu);
  }
  e->begin = now_us();
}

/* Ends the range id; 0: the entry begun last. */
static void leave(recorder *r, ty_ctx *ctx, long long id) {
  int depth = r->depth - 1;
  if (id && depth < DEEPEST && !r->outside) while (depth >= 0 && r->id[depth] != id) depth--;
  if (depth < 0) return;                   /* begun before the profile */
  r->depth--;
  if (r->outside) ty_gpu_library.range(NULL);
  if (r->outside || depth >= DEEPEST) return;
  const int at = r->open[depth];
  for (int i = depth; i < TY_MIN(r->depth, DEEPEST - 1); i++) { r->open[i] = r->open[i + 1]; r->id[i] = r->id[i + 1]; }
  if (at < 0) return;
  entry *e = &r->list[at];
  e->end = now_us();
  if (!e->kernel) e->bytes += atomic_load(&r->account->bytes);
  if (e->gpu >= 0 && e->from) e->to = ty_gpu_mark(ctx, e->gpu);
}

static void begin(ty_profiler *p, ty_ctx *ctx, const char *name, const ty_backend *b, const ty_call *c) {
  enter((recorder *)p, ctx, name, b->gpu, c, 0);
}
static void end(ty_profiler *p, ty_ctx *ctx) { leave((recorder *)p, ctx, 0); }

static recorder *recorder_of(lua_State *L) { return (recorder *)ty_state_of(L)->account->profiler; }

static void recorder_end(void *p) {
  recorder *r = p;
  if (r->account->profiler == &r->told) r->account->profiler = NULL;
  for (int i = 0; i < r->n; i++) {
    entry *e = &r->list[i];
    if (e->from) ty_gpu_unmark(e->from);
    if (e->to) ty_gpu_unmark(e->to);
    free(e->name);
    free(e->shapes);
    free(e->line);
  }
  for (int k = 0; k < TY_MAXGPU; k++) if (r->start[k]) ty_gpu_unmark(r->start[k]);
  ty_account_release(r->account);
  free(r->list);
  free(r);
}

/* profile_start(record shapes?, users' lines?, only ranges for external profilers?) -> what profile_stop takes; collected, it ends the
 * profile, as where a coroutine is dropped */
static int profile_start(lua_State *L) {
  ty_state *s = ty_state_of(L);
  lua_settop(L, 3);
  if (s->account->profiler) lua_gc(L, LUA_GCCOLLECT, 0);               /* nobody may hold that one any more */
  if (s->account->profiler) return ty_throw(L, "profile: another profile is being taken");
  void **held = ty_new_box(L, recorder_end);
  recorder *r = *held = calloc(1, sizeof *r);
  if (!r) return ty_throw(L, "profile: out of memory");
  *r = (recorder){.told = {begin, end}, .began = now_us(), .account = s->account, .shapes = lua_toboolean(L, 1),
    .lines = lua_toboolean(L, 2), .outside = lua_toboolean(L, 3)};
  atomic_fetch_add(&s->account->refs, 1);
  s->account->profiler = &r->told;
  return 1;
}

/* profile_enter(name) -> id for profile_leave: a range begins, where a profile is being taken. */
static int profile_enter(lua_State *L) {
  static _Atomic long long ids;
  const char *name = luaL_checkstring(L, 1);
  const long long id = ++ids;
  recorder *r = recorder_of(L);
  if (r) enter(r, ty_context(L), name, -1, NULL, id);
  lua_pushnumber(L, (lua_Number)id);
  return 1;
}
static int profile_leave(lua_State *L) {
  recorder *r = recorder_of(L);
  if (r) leave(r, ty_context(L), (long long)luaL_checknumber(L, 1));
  return 0;
}

/* profile_stop(what profile_start gave) -> a list of {name=, shapes=, line=, begin=, time=, bytes=, flops=, depth=, gpu=, gpu_begin=,
 * gpu_time=}; times in us. Waits for GPUs. */
static int profile_stop(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const recorder *r = ty_box_at(L, 1, recorder_end, "a profile's record");
  s->account->profiler = NULL;
  lua_newtable(L);
  const double until = now_us();
  /* a GPU's times are sums of short spans, since the driver gives a span as a float */
  void *last[TY_MAXGPU];
  double at[TY_MAXGPU] = {0};
  memcpy(last, r->start, sizeof last);
  for (int i = 0; i < r->n; i++) {
    entry *e = &r->list[i];
    lua_createtable(L, 0, 11);
    lua_pushstring(L, e->name);
    lua_setfield(L, -2, "name");
    if (e->shapes) { lua_pushstring(L, e->shapes); lua_setfield(L, -2, "shapes"); }
    if (e->line) { lua_pushstring(L, e->line); lua_setfield(L, -2, "line"); }
    ty_set_number(L, "begin", e->begin - r->began);
    ty_set_number(L, "time", (e->end ? e->end : until) - e->begin);
    ty_set_number(L, "bytes", e->end ? (double)e->bytes : 0);
    ty_set_number(L, "flops", e->flops);
    ty_set_number(L, "depth", e->depth);
    double from = 0, took = 0;
    if (e->from && e->to && ty_gpu_between(ctx, last[e->gpu], e->from, &from) && ty_gpu_between(ctx, e->from, e->to, &took)) {
      ty_set_number(L, "gpu", e->gpu);
      ty_set_number(L, "gpu_begin", at[e->gpu] += from);
      last[e->gpu] = e->from;
      ty_set_number(L, "gpu_time", took);
    }
    lua_rawseti(L, -2, i + 1);
  }
  ty_box_end(L, 1, recorder_end, "a profile's record");
  return 1;
}

void ty_open_profile(lua_State *L) {
  ty_add(L, "profile_start", profile_start);
  ty_add(L, "profile_enter", profile_enter);
  ty_add(L, "profile_leave", profile_leave);
  ty_add(L, "profile_stop", profile_stop);
}
