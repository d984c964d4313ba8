-- Graphs that are captured while other threads, each with a Lua state of its own, use the same GPU.
local tycho = require "tycho"
local helper = require "spec.helper"
local ffi = require "ffi"
ffi.cdef [[
  typedef struct lua_State lua_State;
  lua_State *luaL_newstate(void); void luaL_openlibs(lua_State *); void lua_close(lua_State *);
  int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int); double lua_tonumber(lua_State *, int);
  int pthread_create(unsigned long *, void *, void *(*)(void *), void *); int pthread_join(unsigned long, void **);]]
-- Functions that begin a thread with a Lua state of its own, and wait for its end. It runs text, which knows tycho and the numbers at.
local function thread(at, text)
  local L, id = ffi.C.luaL_newstate(), ffi.new "unsigned long[1]"
  ffi.C.luaL_openlibs(L)
  local source = ([[
    package.path, package.cpath = %q, %q
    local ffi, tycho = require "ffi", require "tycho"
    local at = ffi.cast("volatile int *", %s)
    tycho.zeros(1, {device = "cuda"})
    local function run() %s end
    entry = ffi.cast("void *(*)(void *)", function() pcall(run) return nil end)
    return tonumber(ffi.cast("uintptr_t", entry))]]):format(package.path, package.cpath,
      ("%.0f"):format(tonumber(ffi.cast("uintptr_t", at))), text)
  assert(ffi.C.luaL_loadstring(L, source) == 0 and ffi.C.lua_pcall(L, 0, 1, 0) == 0)
  local entry = ffi.cast("void *(*)(void *)", ffi.C.lua_tonumber(L, -1))
  return function() assert(ffi.C.pthread_create(id, nil, entry, nil) == 0) end, function()
    ffi.C.pthread_join(id[0], nil)
    ffi.C.lua_close(L)
  end
end

describe("graphs beside threads", function()
  if not tycho.cuda.is_available() then return end

  it("aren't broken by another thread that waits for the device", function()
    local ending = ffi.new("volatile int[2]")
    local begin, join = thread(ending, [[
      while at[0] == 0 do
        tycho.cuda.empty_cache()
        tycho.cuda.synchronize()
        at[1] = at[1] + 1
      end]])
    begin()
    local x, all = tycho.ones(100, {device = "cuda"}), {}
    local ok, why = pcall(function()
      for i = 1, 30 do
        local g, y = tycho.cuda.graph(function()
          local y = x
          for _ = 1, 20 do y = y + i end
          return y
        end)
        g:replay()
        all[i] = y[1]
      end
    end)
    ending[0] = 1
    join()
    assert.is_true(ok, why)
    for i = 1, 30 do assert.equal(1 + 20 * i, all[i]) end
    assert.is_true(ending[1] > 0)
  end)

  it("have branches on streams that drew numbers before, as another thread draws some", function()
    local side, drawn = tycho.cuda.Stream(), ffi.new("volatile int[2]")
    local begin, join = thread(drawn, [[
      local x = tycho.rand(1000, {device = "cuda"})
      at[0] = x:mean():item() * 1000]])
    tycho.cuda.stream(side, tycho.rand, 10, {device = "cuda"})
    local g, y = tycho.cuda.graph(function()
      side:wait_stream(tycho.cuda.current_stream())
      local y = tycho.cuda.stream(side, tycho.ones, 3, {device = "cuda"})
      begin()
      join()
      tycho.cuda.current_stream():wait_stream(side)
      return y
    end)
    g:replay()
    assert.is_true(drawn[0] > 400 and drawn[0] < 600, "mean of 1000 numbers: " .. drawn[0] / 1000)
    helper.close(y:cpu(), tycho.ones(3):cpu())
  end)
end)
