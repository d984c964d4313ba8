/* Files for Lua: safetensors, IDX, PNG, JSON, and what a training program needs of the system. lua/tycho/saving.lua decides
 * what a saved value looks like; this file only converts. */
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "binding.h"
#include "io.h"

/* ---- JSON ---- */

#define DEEPEST 400

/* NULL: JSON can't express the value; *why is what it has then. */
static json_t *to_json(lua_State *L, int index, int depth, const char **why) {
  double v;
  int64_t w;
  size_t n, fields = 0;
  switch (lua_type(L, index)) {
    case LUA_TBOOLEAN: return json_boolean(lua_toboolean(L, index));
    case LUA_TNUMBER:
      v = lua_tonumber(L, index);
      *why = "a number that isn't finite";
      return ty_is_whole(v, &w) ? json_integer(w) : json_real(v);
    case LUA_TSTRING: {
      const char *s = lua_tolstring(L, index, &n);
      *why = "a string that isn't UTF-8";
      return json_stringn(s, n);
    }
    case LUA_TTABLE: break;
    default:
      *why = "a value that is neither a table, a string, a number nor a boolean";
      return NULL;
  }
  *why = "tables nested too deeply";
  if (depth > DEEPEST || !lua_checkstack(L, 6)) return NULL;
  if (index < 0) index = lua_gettop(L) + index + 1;
  n = lua_objlen(L, index);
  json_t *j = n ? json_array() : json_object();
  for (size_t i = 1; i <= n && j; i++) {
    lua_rawgeti(L, index, (int)i);
    if (json_array_append_new(j, to_json(L, -1, depth + 1, why)) != 0) { json_decref(j); j = NULL; }
    lua_pop(L, 1);
  }
  if (j) lua_pushnil(L);
  while (j && lua_next(L, index)) {
    bool ok = true;
    fields++;
    if (!n) {
      json_t *const field = lua_type(L, -2) == LUA_TSTRING ? to_json(L, -1, depth + 1, why) : NULL;
      ok = field && json_object_set_new(j, lua_tostring(L, -2), field) == 0;
      if (lua_type(L, -2) != LUA_TSTRING) *why = "a key that is neither a string nor a list's";
      else if (field && !ok) *why = "a key that isn't UTF-8";
    } else if (fields > n) {
      ok = false;
      *why = "a list that has other fields too";
    }
    lua_pop(L, 1);
    if (ok) continue;
    lua_pop(L, 1);
    json_decref(j);
    j = NULL;
  }
  return j;
}

static void from_json(lua_State *L, const json_t *j) {
  luaL_checkstack(L, 6, "JSON is nested too deeply");
  switch (json_typeof(j)) {
    case JSON_TRUE: lua_pushboolean(L, 1); return;
    case JSON_FALSE: lua_pushboolean(L, 0); return;
    case JSON_INTEGER: lua_pushnumber(L, (lua_Number)json_integer_value(j)); return;
    case JSON_REAL: lua_pushnumber(L, json_real_value(j)); return;
    case JSON_STRING: lua_pushlstring(L, json_string_value(j), json_string_length(j)); return;
    case JSON_ARRAY:
      lua_createtable(L, (int)json_array_size(j), 0);
      for (size_t i = 0; i < json_array_size(j); i++) {
        from_json(L, json_array_get(j, i));
        lua_rawseti(L, -2, (int)i + 1);
      }
      return;
    case JSON_OBJECT: {
      const char *k;
      json_t *v;
      lua_newtable(L);
      json_object_foreach((json_t *)j, k, v) {
        from_json(L, v);
        lua_setfield(L, -2, k);
      }
      return;
    }
    default: lua_pushnil(L);
  }
}

static int json_encode(lua_State *L) {
  void **box = ty_new_box(L, free);
  const char *why = "";
  json_t *j = to_json(L, 1, 0, &why);
  char *s = *box = j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
  json_decref(j);
  if (!s) return ty_throw(L, "json_encode: the value can't be written as JSON: it has %s", why);
  lua_pushstring(L, s);
  return 1;
}

static int decode(lua_State *L) {
  from_json(L, lua_touserdata(L, 1));
  return 1;
}

static int json_decode(lua_State *L) {
  size_t n;
  json_error_t err;
  const char *s = luaL_checklstring(L, 1, &n);
  json_t *j = json_loadb(s, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &err);
  if (!j) return ty_throw(L, "json_decode: %s", err.text);
  lua_pushcfunction(L, decode);
  lua_pushlightuserdata(L, j);
  int failed = lua_pcall(L, 1, 1, 0);
  json_decref(j);
  return failed ? lua_error(L) : 1;
}

/* ---- safetensors ---- */

/* The lists of names (at 2) and tensors (at 3) as an array, in a userdata that is pushed. */
static ty_named *named_tensors(lua_State *L, int *count) {
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_checktype(L, 3, LUA_TTABLE);
  int n = (int)lua_objlen(L, 2);
  ty_named *list = lua_newuserdata(L, sizeof *list * (size_t)TY_MAX(n, 1));
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    lua_rawgeti(L, 3, i + 1);
    list[i].name = ty_string_at(L, -2);
    list[i].t = ty_check(L, -1, "save", list[i].name);
    if (!ty_is_contiguous(list[i].t) || ty_device_of(list[i].t)->gpu >= 0)
      ty_throw(L, "save: tensor '%s' is not contiguous on the cpu", list[i].name);
    lua_pop(L, 2);
  }
  *count = n;
  return list;
}

/* write_safetensors(path, list of names, list of tensors (contiguous), metadata string or nil) */
static int write_safetensors(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  int n;
  ty_settle(L, "tensors are saved");
  const char *path = ty_path_at(L, 1), *meta[2] = {"tycho", lua_tostring(L, 4)};
  const ty_named *list = named_tensors(L, &n);
  if (ty_safetensors_write(ctx, path, list, n, meta, meta[1] ? 1 : 0, false, NULL) != TY_OK) return ty_throw(L, "save: %s", ctx->err);
  return 0;
}

/* ---- checkpoints ---- */

static void saving_ends(void *s) {
  ty_ctx ctx = {0};
  ty_saving_end(&ctx, s);
}

/* saving_start(path, names, tensors, tree, keep) -> what saving_done and saving_end take */
static int saving_start(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  int n;
  const char *path = ty_string_at(L, 1), *tree = ty_string_at(L, 4);
  const int keep = (int)luaL_checkinteger(L, 5);
  void **box = ty_new_box(L, saving_ends);
  ty_saving *s;
  const ty_named *list = named_tensors(L, &n);
  if (ty_saving_start(ctx, path, list, n, tree, keep, &s) != TY_OK) return ty_raise(L, ctx);
  *box = s;
  lua_pop(L, 1);                           /* the list */
  return 1;
}

/* saving_done(saving, seconds) -> whether it is over, bytes written, bytes in all */
static int saving_done(lua_State *L) {
  int64_t written = 0, total = 0;
  const double seconds = luaL_checknumber(L, 2);
  lua_pushboolean(L, ty_saving_done(ty_box_at(L, 1, saving_ends, "a checkpoint under way"), seconds, &written, &total));
  lua_pushnumber(L, (lua_Number)written);
  lua_pushnumber(L, (lua_Number)total);
  return 3;
}

static int saving_end(lua_State *L) {      /* waits; raises if it failed */
  ty_ctx *ctx = ty_context(L);
  const char *why = ty_saving_result(ty_box_at(L, 1, saving_ends, "a checkpoint under way"));
  if (why) ty_error(ctx, "%s", why);
  ty_box_end(L, 1, saving_ends, "a checkpoint under way");
  return why ? ty_raise(L, ctx) : 0;
}

static int checkpoints(lua_State *L) {     /* folder -> steps of the checkpoints there, newest first */
  ty_ctx *ctx = ty_context(L);
  int64_t *steps;
  int n;
  const char *folder = ty_path_at(L, 1);
  void **box = ty_new_box(L, free);
  lua_newtable(L);
  if (ty_checkpoints(ctx, folder, &steps, &n) != TY_OK) return ty_raise(L, ctx);
  *box = steps;
  for (int i = 0; i < n; i++) {
    lua_pushnumber(L, (lua_Number)steps[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* math_random() -> the state of math.random as a string, which math_random(string) sets; nil, and without effect, where
 * the function isn't LuaJIT's own. LuaJIT keeps it in a userdata that is the function's first upvalue. */
static int math_random(lua_State *L) {
  size_t n;
  const char *state = lua_tolstring(L, 1, &n);
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "math");
  if (!lua_istable(L, -1)) return 0;
  lua_pushliteral(L, "random");
  lua_rawget(L, -2);
  if (!lua_iscfunction(L, -1) || !lua_getupvalue(L, -1, 1) || lua_type(L, -1) != LUA_TUSERDATA) return 0;
  if (lua_objlen(L, -1) < 32 || lua_objlen(L, -1) > 64) return 0;          /* four words, and formerly a flag */
  if (!state) lua_pushlstring(L, lua_touserdata(L, -1), lua_objlen(L, -1));
  else if (n == lua_objlen(L, -1)) memcpy(lua_touserdata(L, -1), state, n);
  return state ? 0 : 1;
}

static int clean_folder(lua_State *L) {    /* removes the files of savers that were killed */
  ty_checkpoints_clean(ty_path_at(L, 1));
  return 0;
}

static int make_folder(lua_State *L) {     /* with those above it */
  const char *path = ty_path_at(L, 1);
  char part[4096];
  const size_t n = strlen(path);
  struct stat st;
  if (n >= sizeof part) return ty_throw(L, "%s: the path is too long", path);
  for (size_t i = 1; i <= n; i++) {
    if (path[i] != '/' && path[i]) continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0777) != 0 && errno != EEXIST) return ty_throw(L, "%s: %s", part, strerror(errno));
  }
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return ty_throw(L, "%s: not a folder", path);
  return 0;
}

static void file_ends(void *f) { ty_safetensors_close(f); }

static ty_status read_to_gpu(lua_State *L, ty_ctx *ctx, const ty_safetensors *f, ty_tensor *const *t, int gpu) {
  ty_stage stage;
  void *block;
  size_t most = 1;
  for (int i = 0; i < ty_safetensors_count(f); i++) most = TY_MAX(most, ty_nbytes(t[i]));
  ty_status st = ty_stage_begin(L, ctx, gpu, most, &stage);
  for (int i = 0; i < ty_safetensors_count(f); i++) {
    const size_t size = ty_nbytes(t[i]);
    for (size_t at = 0; at < size && st == TY_OK; at += TY_STAGE) {
      const size_t n = TY_MIN(TY_STAGE, size - at);
      st = ty_stage_room(ctx, &stage, &block);
      if (st == TY_OK) st = ty_safetensors_bytes(ctx, f, i, at, n, block);
      if (st == TY_OK) st = ty_stage_send(ctx, &stage, t[i], at, n);
    }
  }
  ty_stage_end(&stage);
  return st;
}

/* read_safetensors(path, verify, device) -> table of tensors by name, metadata string or nil; verify: the checksums must be
   there and match; only on the CPU */
static int read_safetensors(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const char *path = ty_path_at(L, 1);
  lua_settop(L, 3);
  const int device = lua_isnil(L, 3) ? 0 : ty_device_at(L, luaL_checkstring(L, 3), "load");
  void **box = ty_new_box(L, file_ends);               /* ended by the collector if an error jumps */
  ty_safetensors *f;
  if (device > 0 && lua_toboolean(L, 2)) return ty_throw(L, "load: checksums can only be verified on the cpu");
  if (device < 0) return ty_throw(L, "load: there is no device '%s'", lua_tostring(L, 3));
  if (ty_safetensors_open(ctx, path, &f) != TY_OK) return ty_throw(L, "load: %s", ctx->err);
  *box = f;
  const int n = ty_safetensors_count(f);
  ty_tensor **t = lua_newuserdata(L, sizeof *t * (size_t)TY_MAX(n, 1));
  lua_newtable(L);
  for (int i = 0; i < n; i++) {
    ty_handle *h = ty_new_handle(L, s);
    if (ty_empty(ctx, ty_devices[device], ty_safetensors_about(f, i), &h->t) != TY_OK) return ty_throw(L, "load: %s: %s", path, ctx->err);
    t[i] = h->t;
    lua_setfield(L, -2, ty_safetensors_name(f, i));
  }
  if ((device ? read_to_gpu(L, ctx, f, t, ty_devices[device]->gpu)
      : ty_safetensors_read(ctx, f, lua_toboolean(L, 2), t)) != TY_OK)
    return ty_throw(L, "load: %s", ctx->err);
  lua_pushstring(L, ty_safetensors_meta(f, "tycho"));
  ty_box_end(L, 4, file_ends, "a file");
  return 2;
}

/* ---- other files ---- */

static int read_idx(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const char *path = ty_path_at(L, 1);
  ty_handle *h = ty_new_handle(L, s);
  ty_tensor *t;
  if (ty_idx_read(ctx, path, &t) != TY_OK) return ty_raise(L, ctx);
  h->t = t;
  return 1;
}

static int write_png(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  ty_settle(L, "a picture is saved");
  if (ty_png_write(ctx, ty_path_at(L, 1), ty_check(L, 2, "write_png", "argument 2")) != TY_OK) return ty_raise(L, ctx);
  return 0;
}

/* ---- the system ---- */

static volatile sig_atomic_t signals;
static struct sigaction before;
static bool catching;

static void on_signal(int sig) {
  (void)sig;
  if (++signals > 1) _exit(130);           /* the second Ctrl-C ends the process at once */
}

static int catch_interrupt(lua_State *L) { /* true: count Ctrl-C instead of dying of it; false: as before */
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = on_signal;
  const bool on = lua_toboolean(L, 1);
  if (on) signals = 0;
  if (on != catching) sigaction(SIGINT, on ? &a : &before, on ? &before : NULL);
  catching = on;
  return 0;
}

static int interrupted(lua_State *L) {
  lua_pushboolean(L, signals > 0);
  return 1;
}

static int now(lua_State *L) { lua_pushnumber(L, ty_now()); return 1; }

static int terminal(lua_State *L) {        /* whether stderr is a terminal, and its width */
  struct winsize w;
  bool tty = isatty(2);
  lua_pushboolean(L, tty);
  lua_pushinteger(L, tty && ioctl(2, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80);
  return 2;
}

void ty_open_io(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } list[] = {
    {"json_encode", json_encode}, {"json_decode", json_decode}, {"write_safetensors", write_safetensors},
    {"read_safetensors", read_safetensors}, {"saving_start", saving_start}, {"saving_done", saving_done},
    {"saving_end", saving_end}, {"math_random", math_random}, {"checkpoints", checkpoints},
    {"make_folder", make_folder}, {"clean_folder", clean_folder}, {"read_idx", read_idx}, {"write_png", write_png},
    {"catch_interrupt", catch_interrupt}, {"interrupted", interrupted}, {"now", now}, {"terminal", terminal}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) ty_add(L, list[i].name, list[i].f);
}
