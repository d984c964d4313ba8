/* Drives Lua's garbage collector, to which a handle is a few bytes, whatever its tensor holds.
 *
 * Idea: the state counts its tensors' bytes and runs the collector by that count. Invariant: it runs only at binding entry and where memory
 * has run out; scopes and free() release tensors without it. */
#include <limits.h>
#include <unistd.h>
#include "binding.h"

/* A collection's time grows with Lua's heap (40 MB take some 10 ms), so a large heap is allowed more garbage than TY_LEAST_GARBAGE, which
 * a GPU's results fill in microseconds: PER_HEAP bytes of tensors for each byte of the heap, but at most MOST_FOR_HEAP. */
#define PER_HEAP 8
#define MOST_FOR_HEAP ((long long)192 << 20)
/* While nothing is recorded for backward, collections come sooner: results die young, and memory that is used again at once is still in
 * the processor's caches (sums of 100,000 elements take half the time). PER_HEAP_UNRECORDED: making so many bytes for each byte of the
 * heap takes several times as long as a collection; twice as many leave the caches sooner (bench/results/cpu_history.md). More garbage than
 * in_caches() has left them anyway. */
#define PER_HEAP_UNRECORDED 8
static long long in_caches(void) {
  long long last = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  last = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  if (last <= 0) return (long long)20 << 20;
  return TY_MAX(TY_LEAST_UNRECORDED, TY_MIN(last / 2, (long long)40 << 20));           /* half: others use that cache, too */
}
/* KB of the heap that one step collects: few, since large tensors may be released between steps. */
#define STEP 64
/* The same while nothing is recorded: most of a small heap, some 0.2 ms. */
#define STEP_UNRECORDED 1024

/* Users' finalizers may raise. collect() drops the error, since its callers in C hold resources. */
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
  s->L = L;                                /* a finalizer may have called in from another coroutine */
  return done;
}

/* Allows garbage of half the bytes in use, but at least s->garbage. The limits don't exceed most. */
static void set_limit(lua_State *L, ty_state *s, long long most) {
  const long long heap = (long long)lua_gc(L, LUA_GCCOUNT, 0) << 10, gpu = ty_gpu_garbage();
  s->garbage = TY_MAX(TY_LEAST_GARBAGE, TY_MAX(gpu, TY_MIN(PER_HEAP * heap, MOST_FOR_HEAP)));
  long long now = atomic_load_explicit(&s->account->bytes, memory_order_relaxed);
  s->gc_limit = TY_MIN(now + TY_MAX(s->garbage, now / 2), most);
  const bool useful = atomic_load_explicit(&s->account->collected, memory_order_relaxed) >= s->unrecorded / 2;
  const long long soon = TY_MAX(TY_LEAST_UNRECORDED, TY_MAX(gpu, PER_HEAP_UNRECORDED * heap));
  s->unrecorded = useful ? soon : TY_MIN(2 * s->unrecorded, s->garbage);       /* not useful: results are kept */
  s->gc_unrecorded = soon > in_caches() ? s->gc_limit : TY_MIN(now + s->unrecorded, most);
  atomic_store_explicit(&s->account->collected, 0, memory_order_relaxed);
  atomic_store_explicit(&s->account->recorded, false, memory_order_relaxed);
}

/* Whether results will be released without the collector. */
static bool in_users_scope(const ty_modes *m) {
  const ty_scope *sc = m->scope;
  while (sc && sc->function) sc = sc->outer;
  return sc != NULL;
}

void ty_pace(lua_State *L, ty_state *s) {
  if (s->account->dropped) ty_let_go(L, s);
  long long now = atomic_load_explicit(&s->account->bytes, memory_order_relaxed);
  if (s->collecting) return;
  const bool soon = now > s->gc_unrecorded &&
    !atomic_load_explicit(&s->account->recorded, memory_order_relaxed) && !in_users_scope(ty_modes_of(L, s));
  if (!soon && now <= s->gc_limit) {
    /* the collector has run by itself: the limits may fall, but not rise, since it may be half-way */
    if (atomic_load_explicit(&s->account->collected, memory_order_relaxed) > s->garbage) set_limit(L, s, s->gc_limit);
    return;
  }
#ifdef LUA_GCISRUNNING
  if (!lua_gc(L, LUA_GCISRUNNING, 0)) return;      /* a collector that the user stopped stays stopped */
#endif
  s->collecting = true;
  bool whole = now > s->gc_limit * 2;
  if (whole) collect(L, s, LUA_GCCOLLECT, 0);
  if (whole || collect(L, s, LUA_GCSTEP, soon ? STEP_UNRECORDED : STEP)) set_limit(L, s, LLONG_MAX);
  s->collecting = false;
}

void ty_lua_reclaim(ty_ctx *c) {
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
