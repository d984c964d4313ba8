/* libFuzzer's entry for the readers that are in Lua: FUZZ_pickle (tycho.load of what torch.save writes) and FUZZ_npy
 * (tycho.load_npy). See `make fuzz`.
 *
 * Idea: which lines of the reader run, the interpreter tells a hook, and the hook libFuzzer: it searches Lua as it does
 * C. A pickle is given inside of an archive, with a storage of 64 bytes, for chance makes no archives. A finding: a
 * crash, a hang, an error that is no text, a tensor that can't be read through. */
#define _GNU_SOURCE
#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#ifdef FUZZ_pickle
#define READER "tycho.load(path)"
#define SOURCE "pickle.lua"
#else
#define READER "tycho.load_npy(path)"
#define SOURCE "numpy.lua"
#endif

static const char program[] =
  "package.path, package.cpath = 'lua/?.lua;lua/?/init.lua;' .. package.path, 'build/?.so;' .. package.cpath\n"
  "local tycho, core = require 'tycho', require 'tycho.core'\n"
  "local function look(v, depth)\n"
  "  if core.is_tensor(v) then local n = v:numel() if n > 0 and n < 1e6 then v:clone() v:to('float64'):sum():item() end\n"
  "  elseif type(v) == 'table' and depth < 50 then for k, x in pairs(v) do look(k, depth + 1) look(x, depth + 1) end end\n"
  "end\n"
  "return function(path)\n"
  "  local ok, v = pcall(function() return " READER " end)\n"
  "  if ok then look(v, 0) elseif type(v) ~= 'string' or not v:find(path, 1, true) then "
  "error('not a text with the name: ' .. tostring(v)) end\n"
  "end\n";

static lua_State *L;
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t lines[1 << 12];

static void on_line(lua_State *l, lua_Debug *ar) {
  if (lua_getinfo(l, "S", ar) && strstr(ar->source, SOURCE)) {
    uint8_t *c = &lines[(unsigned)ar->currentline % sizeof lines];
    if (*c < 255) ++*c;
  }
}

static void begin(void) {
  L = luaL_newstate();
  luaL_openlibs(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);      /* compiled code calls no hooks */
  if (luaL_loadbuffer(L, program, sizeof program - 1, "=fuzz") || lua_pcall(L, 0, 1, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    _exit(2);
  }
  lua_setglobal(L, "fuzz_one");
  lua_sethook(L, on_line, LUA_MASKLINE, 0);
}

#ifdef FUZZ_pickle
/* ---- an archive of stored members ---- */

typedef struct { uint8_t *p; size_t n; } bytes;
static void put(bytes *b, uint32_t v, int n) {
  for (int i = 0; i < n; i++) b->p[b->n++] = (uint8_t)(v >> (8 * i));
}
static void put_bytes(bytes *b, const void *p, size_t n) {
  memcpy(b->p + b->n, p, n);
  b->n += n;
}
static void member_head(bytes *b, const char *name, const uint8_t *data, size_t n) {      /* from "version needed" on, to both lengths */
  put(b, 20, 2);
  put(b, 0, 2);
  put(b, 0, 2);
  put(b, 0, 4);
  put(b, (uint32_t)crc32(0, data, (uInt)n), 4);
  put(b, (uint32_t)n, 4);
  put(b, (uint32_t)n, 4);
  put(b, (uint32_t)strlen(name), 2);
  put(b, 0, 2);
}

static bytes archive_of(const uint8_t *data, size_t n) {
  static const uint8_t storage[64] = {1, 2, 3, 4, 5, 6, 7, 8};
  const char *name[2] = {"a/data.pkl", "a/data/0"};
  const uint8_t *content[2] = {data, storage};
  const size_t size[2] = {n, sizeof storage};
  bytes b = {malloc(n + 1024), 0};
  uint32_t at[2];
  for (int i = 0; i < 2; i++) {
    at[i] = (uint32_t)b.n;
    put(&b, 0x04034b50, 4);
    member_head(&b, name[i], content[i], size[i]);
    put_bytes(&b, name[i], strlen(name[i]));
    put_bytes(&b, content[i], size[i]);
  }
  const uint32_t directory = (uint32_t)b.n;
  for (int i = 0; i < 2; i++) {
    put(&b, 0x02014b50, 4);
    put(&b, 20, 2);
    member_head(&b, name[i], content[i], size[i]);
    put(&b, 0, 2);                         /* comment, disk, attributes */
    put(&b, 0, 2);
    put(&b, 0, 2);
    put(&b, 0, 4);
    put(&b, at[i], 4);
    put_bytes(&b, name[i], strlen(name[i]));
  }
  const uint32_t end = (uint32_t)b.n;
  put(&b, 0x06054b50, 4);
  put(&b, 0, 4);
  put(&b, 2, 2);
  put(&b, 2, 2);
  put(&b, end - directory, 4);
  put(&b, directory, 4);
  put(&b, 0, 2);
  return b;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  if (!L) begin();
  const int fd = memfd_create("fuzz", 0);
#ifdef FUZZ_pickle
  bytes b = archive_of(data, size);
  const ssize_t written = write(fd, b.p, b.n);
  free(b.p);
#else
  const ssize_t written = write(fd, data, size);
#endif
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  lua_getglobal(L, "fuzz_one");
  lua_pushstring(L, path);
  if (written >= 0 && lua_pcall(L, 1, 0, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    __builtin_trap();
  }
  lua_settop(L, 0);
  close(fd);
  return 0;
}
