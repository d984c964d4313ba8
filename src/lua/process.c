/* Worker processes for Lua: start, send, receive. A message is a number, a text and tensors; the receiver's tensors lie
 * in the message's own memory. lua/tycho/data/remote.lua gives messages their meaning. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "binding.h"
#include "process.h"

#define PARTS_MOST 256

static void process_ends(void *p) {
  ty_process_end(p);
  ty_free(p);
}
static ty_process *process_at(lua_State *L) { return ty_box_at(L, 1, process_ends, "a worker"); }

/* Pushes a worker that isn't started. */
static ty_process *new_process(lua_State *L, void ***box) {
  *box = ty_new_box(L, process_ends);
  ty_process *p = ty_malloc(sizeof *p);
  if (!p) ty_throw(L, "worker: out of memory");
  *p = (ty_process){.socket = -1, .life = -1};
  return **box = p;
}

/* process_start({program, argument, ...}, {"NAME=value", ...}) */
static int process_start(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  char *list[2][16] = {{NULL}};
  for (int k = 0; k < 2; k++) {
    luaL_checktype(L, k + 1, LUA_TTABLE);
    const int n = (int)lua_objlen(L, k + 1);
    if (n > 15) return ty_throw(L, "worker: too many arguments");
    for (int i = 0; i < n; i++) {
      lua_rawgeti(L, k + 1, i + 1);
      list[k][i] = (char *)ty_string_at(L, -1);          /* the tables keep them */
      lua_pop(L, 1);
    }
  }
  if (!list[0][0]) return ty_throw(L, "worker: no program");
  void **box;
  ty_process *p = new_process(L, &box);
  return ty_process_start(ctx, list[0], list[1], p) == TY_OK ? 1 : ty_raise(L, ctx);
}

static int process_enter(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  void **box;
  ty_process *p = new_process(L, &box);
  return ty_process_enter(ctx, p) == TY_OK ? 1 : ty_raise(L, ctx);
}

static int process_end(lua_State *L) {
  ty_box_end(L, 1, process_ends, "a worker");
  return 0;
}

static int process_gone(lua_State *L) {
  lua_pushboolean(L, ty_process_gone(process_at(L)));
  return 1;
}

/* process_note(p, item): sets what the worker is at. process_note(p) -> item, how often it was set */
static int process_note(lua_State *L) {
  ty_process *p = process_at(L);
  if (lua_isnoneornil(L, 2)) {
    lua_pushnumber(L, (lua_Number)p->note[0]);
    lua_pushnumber(L, (lua_Number)p->note[1]);
    return 2;
  }
  p->note[0] = (int64_t)luaL_checknumber(L, 2);
  p->note[1]++;
  return 0;
}

/* message_send(p, tag, text, {tensor, ...}, wait) -> whether it was sent; without wait, it isn't where the socket is full */
static int message_send(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  ty_message_part part[PARTS_MOST];
  const int n = lua_istable(L, 4) ? (int)lua_objlen(L, 4) : 0;
  const int64_t tag = (int64_t)luaL_checknumber(L, 2);
  uint64_t size;
  size_t len;
  ty_settle(L, "a message is sent");
  ty_string_at(L, 3);
  part[1].p = lua_tolstring(L, 3, &len);
  part[1].n = len;
  size = len;
  part[0] = (ty_message_part){&size, sizeof size};
  if (n > PARTS_MOST - 2) return ty_throw(L, "worker: a batch of more than %d tensors", PARTS_MOST - 2);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 4, i + 1);
    ty_tensor *t = ty_check(L, -1, "worker", "a tensor");
    if (!ty_is_contiguous(t) || ty_device_of(t)->gpu >= 0) return ty_throw(L, "worker: tensors must be contiguous, on the cpu");
    part[i + 2] = (ty_message_part){ty_data(t), ty_nbytes(t)};
    lua_pop(L, 1);
  }
  bool full = false;
  if (ty_message_send(ctx, process_at(L), tag, part, n + 2, lua_toboolean(L, 5), &full) != TY_OK && !full) return ty_raise(L, ctx);
  lua_pushboolean(L, !full);
  return 1;
}

/* message_receive(p, seconds) -> tag, text, memory; or nil and "nothing" or "closed" */
static int message_receive(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  const double seconds = luaL_checknumber(L, 2);
  int64_t tag;
  void **box = ty_new_box(L, ty_blob_end);
  ty_blob *b;
  const ty_received r = ty_message_receive(ctx, process_at(L), seconds, &tag, &b);
  if (r != TY_MESSAGE) {
    lua_pushnil(L);
    lua_pushstring(L, r == TY_NOTHING ? "nothing" : "closed");
    return 2;
  }
  uint64_t len = 0;
  *box = b;
  if (b->n >= 8) memcpy(&len, b->p, 8);
  if (b->n < 64 || len > b->n - 64) return ty_throw(L, "worker: a message that is none of ours");
  lua_pushnumber(L, (lua_Number)tag);
  lua_pushlstring(L, (const char *)b->p + 64, (size_t)len);
  lua_pushvalue(L, -3);
  return 3;
}

/* message_tensor(memory, byte, dtype, sizes) -> a tensor in the message's memory, next byte */
static int message_tensor(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const double from = luaL_checknumber(L, 2);
  const int dtype = ty_dtype_find(luaL_checkstring(L, 3));
  ty_meta m;
  ty_sizes_at(L, 4, &m);
  ty_pace(L, s);
  ty_handle *h = ty_new_handle(L, s);
  ty_blob *b = ty_blob_at(L, 1);
  if (dtype < 0 || !(from >= 0 && from <= (double)b->n)) return ty_throw(L, "worker: a message that is none of ours");
  const size_t at = ((size_t)from + 63) / 64 * 64;
  if (ty_blob_array(ctx, b, TY_MIN(at, b->n), dtype == TY_BF16 ? "bf16" : ty_array_descr(dtype), &m, false,
      &h->t) != TY_OK)
    return ty_raise(L, ctx);
  lua_pushnumber(L, (lua_Number)(at + ty_nbytes(h->t)));
  return 2;
}

static int own_program(lua_State *L) {         /* the path of the program that this process runs, or nil */
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return 0;
  lua_pushlstring(L, path, (size_t)n);
  return 1;
}

void ty_open_process(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } list[] = {
    {"process_start", process_start}, {"process_enter", process_enter}, {"process_end", process_end},
    {"process_gone", process_gone}, {"process_note", process_note}, {"message_send", message_send},
    {"message_receive", message_receive}, {"message_tensor", message_tensor}, {"own_program", own_program}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) ty_add(L, list[i].name, list[i].f);
}
