/* Groups of processes for lua/tycho/distributed.lua, and asynchronous exchanges on the CPU.
 *
 * Invariant: memory that an exchange uses is kept until the exchange is done, even if Lua has dropped it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include "binding.h"
#include "group.h"

/* ---- exchanges under way ---- */

typedef struct under_way { void *request; ty_tensor *in, *out; struct under_way *next; } under_way;

static under_way *forgotten;               /* exchanges that Lua has dropped before they were done */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void drop(under_way *u) {
  ty_release(u->in);
  ty_release(u->out);
  ty_free(u);
}

static void sweep(void) {
  ty_ctx ctx = {0};
  pthread_mutex_lock(&lock);
  for (under_way **at = &forgotten; *at;) {
    under_way *u = *at;
    ty_exchange_test(&ctx, &u->request, false);
    if (u->request) { at = &u->next; continue; }
    *at = u->next;
    drop(u);
  }
  pthread_mutex_unlock(&lock);
}

static void forget(void *p) {
  under_way *u = p;
  if (!u->request) { drop(u); return; }
  pthread_mutex_lock(&lock);
  u->next = forgotten;
  forgotten = u;
  pthread_mutex_unlock(&lock);
}

/* group_start(result, x, kind, reduction, peer, tag, group) -> what is under way; the result may be x */
static int group_start(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_args a;
  ty_settle(L, "processes exchange tensors");
  sweep();
  void **box = ty_new_box(L, forget);
  lua_insert(L, 1);
  ty_parse(L, &ty_ops[TY_OP_collective], 3, lua_gettop(L), &a);
  ty_tensor *to = ty_check(L, 2, "distributed", "the result");
  under_way *u = ty_malloc(sizeof *u);
  if (!u) return ty_throw(L, "distributed: out of memory");
  *u = (under_way){0};
  *box = u;
  if (ty_collective_start(ctx, a.in[0].t, a.at, to, &u->request, &u->in, &u->out) != TY_OK) return ty_raise(L, ctx);
  lua_settop(L, 1);
  return 1;
}

/* group_test(what is under way, wait) -> whether it is done */
static int group_test(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  under_way *u = ty_box_at(L, 1, forget, "work under way");
  if (ty_exchange_test(ctx, &u->request, lua_toboolean(L, 2)) != TY_OK) return ty_raise(L, ctx);
  lua_pushboolean(L, !u->request);
  return 1;
}

/* ---- groups ---- */

/* group_open(seconds, compare) -> rank, how many processes, and both within the machine; or nil and why not. seconds,
   compare: as ty_groups_set says */
static int group_open(lua_State *L) {
  ty_groups_set(luaL_checknumber(L, 1), lua_toboolean(L, 2));
  const ty_transport *t = ty_group_transport();
  const char *why = NULL;
  if (!t) {
    const char *path = ty_push_library(L, "tycho.mpi");
    void *lib = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;        /* MPI's plug-ins look for its symbols globally */
    ty_transport_open open;
    if (lib) {
      *(void **)&open = dlsym(lib, "ty_mpi_open");
      why = open ? open(TY_INTERFACE, &t) : "it has no entry point";
    } else why = path ? dlerror() : "tycho was built without MPI: there is no tycho/mpi.so on package.cpath";
    if (!why) ty_groups_open(t);
  }
  if (why) {
    lua_pushnil(L);
    lua_pushstring(L, why);
    return 2;
  }
  lua_pushinteger(L, t->rank);
  lua_pushinteger(L, t->size);
  lua_pushinteger(L, t->local_rank);
  lua_pushinteger(L, t->local_size);
  return 4;
}

/* group_new({rank, ...}) -> its number, this process's rank in it or nil */
static int group_new(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  const int n = (int)lua_objlen(L, 1);
  int *rank = lua_newuserdata(L, sizeof(int) * (size_t)TY_MAX(n, 1)), id;
  if (!ty_group_transport()) return ty_throw(L, "distributed: call init_process_group() first");
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 1, i + 1);
    rank[i] = (int)luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  if (ty_group_new(ctx, rank, n, &id) != TY_OK) return ty_raise(L, ctx);
  const ty_group *g = ty_group_at(id);
  lua_pushinteger(L, id);
  if (g) lua_pushinteger(L, g->rank);
  return g ? 2 : 1;
}

void ty_open_group(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } list[] = {{"group_open", group_open},
    {"group_new", group_new}, {"group_start", group_start}, {"group_test", group_test}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) ty_add(L, list[i].name, list[i].f);
}
