/* Blobs (bytes of files) and zip archives for Lua. lua/tycho/numpy.lua and lua/tycho/pickle.lua know the formats in them. */
#include <string.h>
#include <unistd.h>
#include "archive.h"
#include "binding.h"
#include "io.h"

void ty_blob_end(void *b) { ty_blob_release(b); }
static void zip_end(void *z) { ty_zip_close(z); }

ty_blob *ty_blob_at(lua_State *L, int index) { return ty_box_at(L, index, ty_blob_end, "a piece of a file"); }

const char *ty_string_at(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TSTRING) ty_throw(L, "a string is needed, got %s", ty_type_text(L, index));
  return lua_tostring(L, index);
}

void ty_sizes_at(lua_State *L, int index, ty_meta *m) {
  luaL_checktype(L, index, LUA_TTABLE);
  const size_t n = lua_objlen(L, index);
  if (n > TY_MAXDIM) ty_throw(L, "an array of %d dims; at most %d are supported", (int)n, TY_MAXDIM);
  *m = (ty_meta){.ndim = (uint8_t)n};
  for (int i = 0; i < (int)n; i++) {
    lua_rawgeti(L, index, i + 1);
    if (!ty_is_whole(lua_tonumber(L, -1), &m->shape[i]) || m->shape[i] < 0 || m->shape[i] > TY_MOST)
      ty_throw(L, "an array of an impossible shape");
    lua_pop(L, 1);
  }
}

static int blob_read(lua_State *L) {           /* path -> its contents, how many bytes */
  ty_ctx *ctx = ty_context(L);
  const char *path = ty_path_at(L, 1);
  void **b = ty_new_box(L, ty_blob_end);
  ty_blob *got;
  if (ty_blob_read(ctx, path, &got) != TY_OK) return ty_raise(L, ctx);
  *b = got;
  lua_pushnumber(L, (lua_Number)got->n);
  return 2;
}

/* path, n -> the first n bytes of a regular file, or fewer (at most 64); nil: it can't be read */
static int file_head(lua_State *L) {
  ty_ctx *ctx = ty_context(L);
  char text[64];
  int64_t size;
  const int n = (int)luaL_checkinteger(L, 2), fd = ty_file_open(ctx, ty_path_at(L, 1), &size);
  const ssize_t got = fd >= 0 && n >= 0 ? read(fd, text, (size_t)TY_MIN(n, (int)sizeof text)) : -1;
  if (fd >= 0) close(fd);
  if (got < 0) return 0;
  lua_pushlstring(L, text, (size_t)got);
  return 1;
}

static int blob_text(lua_State *L) {           /* blob, from (0-based), bytes -> string, up to the blob's end */
  const ty_blob *b = ty_blob_at(L, 1);
  const double from = luaL_checknumber(L, 2), n = luaL_checknumber(L, 3);
  if (!(from >= 0 && from <= (double)b->n && n >= 0)) return ty_throw(L, "truncated");
  const size_t left = b->n - (size_t)from;
  lua_pushlstring(L, (const char *)b->p + (size_t)from, n < (double)left ? (size_t)n : left);
  return 1;
}

/* blob, from (0-based), NumPy's dtype or "bf16", sizes, fortran, whether no other array is made of the blob -> tensor */
static int blob_array(lua_State *L) {
  ty_state *s = ty_state_of(L);
  ty_ctx *ctx = ty_ctx_of(L, s);
  const double from = luaL_checknumber(L, 2);
  const char *descr = luaL_checkstring(L, 3);
  ty_meta m;
  ty_sizes_at(L, 4, &m);
  ty_pace(L, s);
  const bool fortran = lua_toboolean(L, 5);
  ty_handle *h = ty_new_handle(L, s);
  ty_blob *b = ty_blob_at(L, 1);
  if (!(from >= 0 && from <= (double)b->n)) return ty_throw(L, "truncated");
  if (ty_blob_array(ctx, b, (size_t)from, descr, &m, fortran, &h->t) != TY_OK) return ty_raise(L, ctx);
  if (lua_toboolean(L, 6) && !b->mapped) h->t->storage->exposed = false;
  return 1;
}

static int array_descr(lua_State *L) {         /* dtype name -> NumPy's, or nil */
  const int d = ty_dtype_find(luaL_checkstring(L, 1));
  lua_pushstring(L, d >= 0 ? ty_array_descr(d) : NULL);
  return 1;
}

/* ---- zip ---- */

static int zip_list(lua_State *L) {            /* path -> archive, its members' names */
  ty_ctx *ctx = ty_context(L);
  const char *path = ty_path_at(L, 1);
  void **z = ty_new_box(L, zip_end);
  ty_zip *got;
  if (ty_zip_open(ctx, path, &got) != TY_OK) return ty_raise(L, ctx);
  *z = got;
  const int n = ty_zip_count(got);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    const char *name = ty_zip_name(got, i);
    lua_pushstring(L, name ? name : "");
    lua_rawseti(L, -2, i + 1);
  }
  return 2;
}

static int zip_member(lua_State *L) {          /* archive, position -> blob, how many bytes */
  ty_ctx *ctx = ty_context(L);
  const int i = (int)luaL_checkinteger(L, 2);
  void **b = ty_new_box(L, ty_blob_end);
  ty_zip *z = ty_box_at(L, 1, zip_end, "an archive");
  ty_blob *got;
  if (i < 1 || i > ty_zip_count(z)) return ty_throw(L, "there is no such member");
  if (ty_zip_read(ctx, z, i - 1, &got) != TY_OK) return ty_raise(L, ctx);
  *b = got;
  lua_pushnumber(L, (lua_Number)got->n);
  return 2;
}

/* ---- writing ---- */

static void member_at(lua_State *L, int head, int tensor, ty_member *m) {
  ty_string_at(L, head);
  m->head = lua_tolstring(L, head, &m->nhead);
  const ty_tensor *t = ty_check(L, tensor, "save", "a tensor");
  if (!ty_is_contiguous(t) || ty_device_of(t)->gpu >= 0) ty_throw(L, "save: a tensor must be contiguous, on the cpu");
  m->data = ty_data(t);
  m->ndata = ty_nbytes(t);
}

static int file_write(lua_State *L) {          /* path, text, tensor: the text and then the tensor's bytes */
  ty_ctx *ctx = ty_context(L);
  ty_member m = {0};
  ty_settle(L, "tensors are saved");
  const char *path = ty_path_at(L, 1);
  member_at(L, 2, 3, &m);
  return ty_file_write(ctx, path, m.head, m.nhead, m.data, m.ndata) == TY_OK ? 0 : ty_raise(L, ctx);
}

static int zip_write(lua_State *L) {           /* path, names, texts, tensors */
  ty_ctx *ctx = ty_context(L);
  ty_settle(L, "tensors are saved");
  const char *path = ty_path_at(L, 1);
  for (int k = 2; k <= 4; k++) luaL_checktype(L, k, LUA_TTABLE);
  const int n = (int)lua_objlen(L, 2);
  ty_member *list = lua_newuserdata(L, sizeof *list * (size_t)TY_MAX(n, 1));
  for (int i = 0; i < n; i++) {
    for (int k = 2; k <= 4; k++) lua_rawgeti(L, k, i + 1);
    list[i].name = ty_string_at(L, -3);        /* the tables keep all three */
    member_at(L, lua_gettop(L) - 1, lua_gettop(L), &list[i]);
    lua_pop(L, 3);
  }
  return ty_zip_write(ctx, path, list, n) == TY_OK ? 0 : ty_raise(L, ctx);
}

void ty_open_archive(lua_State *L) {
  static const struct { const char *name; lua_CFunction f; } list[] = {
    {"blob_read", blob_read}, {"blob_text", blob_text}, {"file_head", file_head}, {"blob_array", blob_array},
    {"array_descr", array_descr}, {"zip_list", zip_list}, {"zip_member", zip_member},
    {"file_write", file_write}, {"zip_write", zip_write}};
  for (unsigned i = 0; i < sizeof list / sizeof *list; i++) ty_add(L, list[i].name, list[i].f);
}
