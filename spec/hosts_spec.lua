-- What a host may do to a library in it: signals, forks, closed streams, other processes on the same cores.
local tycho = require "tycho"
local helper = require "spec.helper"

-- What a program in a process of its own prints, and how it ends. before, after: of the command line.
local function run(source, before, after)
  local dir = helper.folder()
  helper.write_file(dir .. "/run.lua", source)
  local p = io.popen(("cd %s && { %s run.lua %s; } 2>&1; echo ended $?"):format(dir, before or "luajit", after or ""))
  local text = p:read "*a"
  p:close()
  os.execute("rm -rf " .. dir)
  return text
end
for _, name in ipairs {"path", "cpath"} do       -- its processes run elsewhere
  local full = (";" .. package[name]):gsub(";%./", ";" .. io.popen("pwd"):read() .. "/"):sub(2)
  require("ffi").cdef "int setenv(const char *name, const char *value, int overwrite);"
  require("ffi").C.setenv("LUA_" .. name:upper(), full, 1)
end

-- What a program begins with that makes Lua states and threads.
local STATES = [[
      local t, ffi = require "tycho", require "ffi"
      ffi.cdef [=[
        typedef struct lua_State lua_State;
        lua_State *luaL_newstate(void); void luaL_openlibs(lua_State *); void lua_close(lua_State *);
        int luaL_loadstring(lua_State *, const char *); int lua_pcall(lua_State *, int, int, int);
        const char *lua_tolstring(lua_State *, int, size_t *); double lua_tonumber(lua_State *, int);
        int pthread_create(unsigned long *, void *, void *(*)(void *), void *); int pthread_join(unsigned long, void **);]=]
]]

describe("hosts #cpu", function()
  if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- its processes are run by the stock luajit

  it("may send signals at any time", function()
    -- SIGPROF each ms, handled by a harmless function; not by LuaJIT's profiler, which has been seen to hang in its own hook
    local text = run [[
      local ffi = require "ffi"
      ffi.cdef [=[ typedef void (*handler)(int); handler signal(int, handler); int abs(int);
        typedef struct { long s, us; } span; int setitimer(int, const struct { span every, first; } *, void *); ]=]
      ffi.C.signal(27, ffi.cast("handler", ffi.C.abs))
      ffi.C.setitimer(2, ffi.cast("void *", ffi.new("long[4]", {0, 1000, 0, 1000})), nil)
      local t = require "tycho"
      local F = t.nn.functional
      local a, b, h, w, q = t.randn(300, 300), t.randn(8, 100, 100), t.randn(300, 300):half(), t.randn(300, 300), t.randn(2, 4, 128, 64)
      local x, lstm, seq = t.randn(8, 16, 32, 32), t.nn.LSTM(64, 64), t.randn(20, 16, 64)
      for _ = 1, 60 do
        a:mm(a) b:bmm(b) h:mm(h) t.linear(a, w) a:t():mm(w) a:addmm(a, w)
        F.scaled_dot_product_attention(q, q, q) F.conv2d(x, t.randn(32, 16, 3, 3)) lstm(seq)
      end
      -- what oneDNN has another way for: rows that lie apart, unusual convolutions backward
      local apart, y, v = t.randn(300, 600)[{{}, {1, 300}}],
        t.randn(4, 5, 33, 33, {requires_grad = true}), t.randn(7, 5, 3, 3, {requires_grad = true})
      for i = 1, 400 do
        apart:mm(b[{1}]:new_zeros(300, 300)) w:mm(apart)
        if i % 10 == 0 then F.conv2d(y, v, nil, {stride = 2, dilation = 2}):sum():backward() end
      end
      print "sound"]]
    assert.truthy(text:find("sound", 1, true) and text:find("ended 0", 1, true), text)
  end)

  it("may load the library anew, while what the old one made is in use", function()
    local text = run [[
      local old = require "tycho"
      local x, net, f = old.ones(2, 2, {requires_grad = true}), old.nn.Linear(2, 2), old.compile(function(v) return v * 2 end)
      for _ = 1, 5 do
        for k in pairs(package.loaded) do if k:match "^tycho" then package.loaded[k] = nil end end
        local new = require "tycho"
        new.nn.Linear(2, 2)(x):sum():backward()
        for _ = 1, 3 do f(new.ones(2)) end
        old.manual_seed(1) collectgarbage() collectgarbage() old.manual_seed(2) new.manual_seed(3)
        net(new.ones(2, 2)):sum():backward()
        assert(f(old.ones(2)):sum():item() == 4)
        old = new
      end
      package.loaded["tycho.core"] = nil
      require "tycho.core"
      old.nn.Conv2d(1, 4, 3)(old.ones(1, 1, 4, 4)):sum():backward()
      print "sound"]]
    assert.truthy(text:find("sound", 1, true) and text:find("ended 0", 1, true), text)
  end)

  it("may catch Ctrl-C themselves again after catch_interrupt, however often it was called", function()
    local text = run([[
      local t, ffi = require "tycho", require "ffi"
      ffi.cdef "int raise(int); void *signal(int, void *);"
      ffi.C.signal(2, nil)                                   -- luajit has a handler of its own
      t.utils.catch_interrupt()
      t.utils.catch_interrupt()
      ffi.C.raise(2)
      assert(t.utils.interrupted())
      t.utils.catch_interrupt(false)
      t.utils.catch_interrupt(false)
      print(ffi.C.signal(2, nil) == nil and "as before")]])
    assert.truthy(text:find("as before", 1, true), text)
  end)

  it("may set the number of threads for all of theirs", function()
    local text = run(STATES .. [[
      t.set_num_threads(1)
      local L = ffi.C.luaL_newstate()
      ffi.C.luaL_openlibs(L)
      assert(ffi.C.luaL_loadstring(L, [=[
        local ffi = require "ffi"
        local function tasks() local n = 0 for _ in io.popen "ls /proc/$PPID/task":lines() do n = n + 1 end return n end
        local function work()
          local t = require "tycho"
          local before, a = tasks(), t.randn(700, 700)
          a:mm(a) t.conv2d(t.randn(8, 16, 64, 64), t.randn(16, 16, 3, 3)) a:inverse()
          return "started " .. tasks() - before
        end
        entry = ffi.cast("void *(*)(void *)", function() local _, got = pcall(work) result = tostring(got) return nil end)
        return tonumber(ffi.cast("uintptr_t", entry))]=]) == 0)
      assert(ffi.C.lua_pcall(L, 0, 1, 0) == 0)
      local thread = ffi.new "unsigned long[1]"
      ffi.C.pthread_create(thread, nil, ffi.cast("void *(*)(void *)", ffi.C.lua_tonumber(L, -1)), nil)
      ffi.C.pthread_join(thread[0], nil)
      assert(ffi.C.luaL_loadstring(L, "return result") == 0 and ffi.C.lua_pcall(L, 0, 1, 0) == 0)
      print(ffi.string(ffi.C.lua_tolstring(L, -1, nil)))]])
    assert.equal("started 0\nended 0\n", text)
  end)

  it("may fork when threads have computed, or a checkpoint is being written", function()
    local text = run [[
      local t, ffi = require "tycho", require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int); unsigned alarm(unsigned); void _exit(int);"
      t.set_num_threads(2)
      local m = t.checkpoint.Manager {dir = "saved", keep = 2}
      m:save(1, {a = t.ones(10)})
      local x, w, image, conv = t.randn(100000), t.randn(700, 700), t.randn(4, 3, 32, 32), t.nn.Conv2d(3, 8, 3)
      local function work() return x:exp():sum():item() + w:mm(w):sum():item() + conv(image):sum():item() end
      local want = work()
      if ffi.C.fork() == 0 then
        ffi.C.alarm(20)
        local ok = math.abs(work() - want) < 1e-3 * math.abs(want) and t.get_num_threads() == 1
        repeat local first = m:restore_latest {} until first           -- which the parent's thread may still be writing
        m:save(2, {a = t.zeros(10)})
        m:wait()
        ffi.C._exit(ok and 7 or 8)
      end
      local status = ffi.new "int[1]"
      ffi.C.waitpid(-1, status, 0)
      m:wait()
      print(status[0] / 256, t.get_num_threads(), (m:restore_latest {}))]]
    assert.equal("7\t2\t2\nended 0\n", text)
  end)

  it("may fork while a loader's threads are at work: a child ends what is not its own, and begins anew", function()
    local text = run [[
      local t, ffi = require "tycho", require "ffi"
      ffi.cdef "int fork(void); int waitpid(int, int *, int); unsigned alarm(unsigned); void _exit(int);"
      local source = t.data.TensorDataset(t.range(1, 64))
      for _, workers in ipairs {1, 2, 4} do
        local loader = t.data.DataLoader(source, {batch_size = 4, num_workers = workers})
        local next_batch = loader:iter()
        local first = next_batch()[1]
        if ffi.C.fork() == 0 then
          ffi.C.alarm(20)
          local ok, why = pcall(function() for _ = 1, 20 do next_batch() end end)
          local told = not ok and why:find("forked from", 1, true)
          loader, next_batch = nil, nil
          collectgarbage() collectgarbage()
          local sum = 0
          for x in t.data.DataLoader(source, {batch_size = 4, num_workers = workers}):iter() do sum = sum + x:sum():item() end
          ffi.C._exit(told and sum == 64 * 65 / 2 and 7 or 8)
        end
        local status, n = ffi.new "int[1]", 1
        ffi.C.waitpid(-1, status, 0)
        for _ in next_batch do n = n + 1 end
        print(first, status[0] / 256, n)
      end]]
    assert.equal("1\t7\t16\n1\t7\t16\n1\t7\t16\nended 0\n", text)
  end)

  it("may have many states, in several threads at once, and close them", function()
    local text = run(STATES .. [[
      -- A thread's program is a callback of its own state; grad mode and what is made stay there.
      local source = [=[
        local ffi = require "ffi"
        function work()
          local t = require "tycho"
          local nn = t.nn
          local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
          for i, p in ipairs(net:parameters()) do t.no_grad(function() p:fill_(0.01 * i) end) end
          local opt = t.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
          local x, y = t.range(1, 512):view(8, 1, 8, 8) / 512, t.tensor({1, 2, 3, 1, 2, 3, 1, 2}, {dtype = "int64"})
          local loss
          for step = 1, 60 do
            if step % 7 == 0 then t.no_grad(net, x) end
            loss = t.cross_entropy(net(x), y)
            opt:zero_grad()
            loss:backward()
            opt:step()
          end
          return ("%.6f"):format(loss:item())
        end
        entry = ffi.cast("void *(*)(void *)", function() local ok, got = pcall(work) result = tostring(got) return nil end)
        return tonumber(ffi.cast("uintptr_t", entry))]=]
      local function open()
        local L = ffi.C.luaL_newstate()
        ffi.C.luaL_openlibs(L)
        assert(ffi.C.luaL_loadstring(L, source) == 0 and ffi.C.lua_pcall(L, 0, 1, 0) == 0)
        return L, ffi.cast("void *(*)(void *)", ffi.C.lua_tonumber(L, -1))
      end
      local want
      for round = 1, 3 do
        local states, threads = {}, ffi.new "unsigned long[4]"
        for k = 0, 3 do
          local L, entry = open()
          states[k] = L
          assert(ffi.C.pthread_create(threads + k, nil, entry, nil) == 0)
        end
        local a = t.ones(200, 200, {requires_grad = true})
        for _ = 1, 50 do a:mm(a):sum():backward() end             -- this state has work of its own meanwhile
        for k = 0, 3 do
          ffi.C.pthread_join(threads[k], nil)
          ffi.C.luaL_loadstring(states[k], "return result")
          ffi.C.lua_pcall(states[k], 0, 1, 0)
          local got = ffi.string(ffi.C.lua_tolstring(states[k], -1, nil))
          want = want or got
          if got ~= want or not tonumber(got) then print("state", k, got, want) end
          ffi.C.lua_close(states[k])
        end
      end
      print(t.is_grad_enabled(), tonumber(want) < 1.2)]])
    assert.equal("true\ttrue\nended 0\n", text)
  end)

  it("may call it from finalizers when the Lua state closes, made before it was loaded or after", function()
    local text = run [[
      local function at_close(what)
        local object = newproxy(true)
        getmetatable(object).__gc = function() what() end
        return object
      end
      local t
      local function work()
        collectgarbage()
        for _ = 1, 20 do t.save("last.safetensors", {a = t.ones(3)}) end
        local f = t.compile(function(x) return x * 2 end)
        for _ = 1, 3 do f(t.ones(2)) end
        coroutine.wrap(function() t.no_grad(t.ones, 2) end)()
        print(t.load("last.safetensors").a:sum():item(), (t.Generator():draw(t.rand, 3) * 0):sum():item())
      end
      KEPT = {at_close(work)}
      t = require "tycho"
      KEPT[2] = at_close(work)
      KEPT[3] = at_close(function() KEPT[4] = at_close(work) end)]]
    assert.equal(("3\t0\n"):rep(3) .. "ended 0\n", text)
  end)

  it("refuses calls of finalizers that come when nobody has called for a while", function()
    local text = run [[
      local function at_close(f) local o = newproxy(true) getmetatable(o).__gc = function() f() end return o end
      local t = require "tycho"
      local function work()
        for _ = 1, 200 do t.ones(1000) end
        coroutine.wrap(function() t.no_grad(t.ones, 2) end)()
        print(t.ones(3):sum():item())
      end
      KEPT = {}
      KEPT[3] = at_close(function() KEPT[4] = at_close(function() print(pcall(work)) end) end)]]
    assert.truthy(text:find("^3\ntrue\n") or text:find("the Lua state is closing", 1, true), text)
    assert.truthy(text:find("ended 0\n$"), text)
  end)

  it("may interrupt what a mode's function calls last", function()
    for _, call in ipairs {"t.no_grad, last", "t.amp.autocast, {dtype = 'bfloat16', device = 'cpu'}, last"} do
      local text = run(([[
        local t = require "tycho"
        local a = t.randn(2000, 2000):double()
        local function last() return a:mm(a) end
        os.execute("(sleep 0.2; kill -INT " .. io.open("/proc/self/stat"):read "*n" .. ") &")
        local ok, e = pcall(function(run, ...) while true do run(...) end end, %s)
        print(ok, tostring(e):match "interrupted!", t.is_grad_enabled(), t.ones(2, 2):mm(t.ones(2, 2)).dtype)]]):format(call))
      assert.equal("false\tinterrupted!\ttrue\tfloat32\nended 0\n", text, call)
    end
  end)

  it("may draw numbers in several threads: never the same ones, and a thread that ends leaves nothing behind", function()
    local text = run(STATES .. [[
      local numbers = ffi.new "double[2][20000]"
      local source = ([=[
        local ffi, address = require "ffi", %s
        local t, to = require "tycho", ffi.cast("double *", address)
        entry = ffi.cast("void *(*)(void *)", function()
          for i = 0, 19999 do
            local x = t.randint(0, 2 ^ 52, {4})
            to[i] = x[1]
          end
          return nil
        end)
        return tonumber(ffi.cast("uintptr_t", entry))]=])
      local function resident()
        local f = io.open "/proc/self/statm"
        local pages = f:read "*a":match "%d+ (%d+)"
        f:close()
        return pages * 4096
      end
      local before
      for round = 1, 8 do
        local states, threads = {}, ffi.new "unsigned long[2]"
        for k = 0, 1 do
          local L = ffi.C.luaL_newstate()
          ffi.C.luaL_openlibs(L)
          local text = source:format(("%.0f"):format(tonumber(ffi.cast("uintptr_t", numbers[k]))))
          assert(ffi.C.luaL_loadstring(L, text) == 0 and ffi.C.lua_pcall(L, 0, 1, 0) == 0)
          states[k] = L
          ffi.C.pthread_create(threads + k, nil, ffi.cast("void *(*)(void *)", ffi.C.lua_tonumber(L, -1)), nil)
        end
        for k = 0, 1 do ffi.C.pthread_join(threads[k], nil) end
        for k = 0, 1 do ffi.C.lua_close(states[k]) end
        if round == 2 then before = resident() end
      end
      local seen, twice = {}, 0
      for k = 0, 1 do
        for i = 0, 19999 do
          local v = numbers[k][i]
          if seen[v] then twice = twice + 1 end
          seen[v] = true
        end
      end
      print(twice, resident() - before < 2 ^ 24)]])
    assert.equal("0\ttrue\nended 0\n", text)
  end)

  it("may write numbers with a comma", function()
    local text = run([[
      require("ffi").cdef "char *setlocale(int, const char *);"
      local set = require("ffi").C.setlocale(1, "de_DE.UTF-8")          -- LC_NUMERIC
      local t = require "tycho"
      print(set ~= nil, t.leaky_relu(t.tensor {-100}):item(), t.nn.BatchNorm1d(2).momentum, t.full({1}, 0.25))]],
      "(localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 || true) >/dev/null 2>&1 && LOCPATH=$PWD luajit")
    assert.truthy(text:find("-1\t0.1\t[0.2500]", 1, true), text)        -- where there are no locales, in C's
  end)

  it("may have closed the standard streams", function()
    local text = run([[
      local t = require "tycho"
      local m = t.checkpoint.Manager {dir = "saved", keep = 300}
      io.stdout:setvbuf "no"                                           -- a print may come while the other thread opens a file
      for i = 1, 300 do
        m:save(i, {a = t.ones(10)})
        for _ = 1, 200 do print "AAAAAAAAAAAAAAAA" end
      end
      m:wait()
      local whole = 0
      for i = 1, 300 do if pcall(t.load, ("saved/step-%d.safetensors"):format(i)) then whole = whole + 1 end end
      io.stderr:write("whole ", whole, "\n")]], nil, ">&-")
    assert.truthy(text:find("whole 300\nended 0", 1, true), text)
  end)

  it("share their cores with other processes: idle threads are told to sleep before libgomp is loaded", function()
    local text = run [[
      package.preload["tycho.core"] = function() print(os.getenv "GOMP_SPINCOUNT") os.exit(0) end
      require "tycho"]]
    assert.equal("2000\nended 0\n", text)
  end)

  it("may forbid further threads", function()
    -- only root may be someone else, who may be kept from reading the library
    if os.execute "cd / && setpriv --reuid 54321 --clear-groups luajit -e 'require \"tycho\"' 2>/dev/null" ~= 0 then return end
    local text = run([[
      local t = require "tycho"
      t.set_num_threads(4)
      print(t.randn(500, 500):exp():sum():item() > 0, t.get_num_threads())]],
      "chmod a+rx . && setpriv --reuid 54321 --clear-groups prlimit --nproc=1 luajit")
    assert.equal("true\t1\nended 0\n", text)
  end)

  it("have results collected while their memory is in the caches, where nothing is recorded and Lua's heap is small", function()
    local text = run [[
      local t = require "tycho"
      local function cycles(fn)                              -- of the collector, while 80 MB of results are dropped
        collectgarbage() collectgarbage()
        local n, ended = -1, nil
        function ended()
          n = n + 1
          getmetatable(newproxy(true)).__gc = ended
        end
        ended()
        for _ = 1, 200 do fn() end
        return n
      end
      local x, w = t.randn(100000), t.randn(100000):requires_grad_()
      print(cycles(function() return x + x end) >= 3, cycles(function() return w + x end) <= 1,
        cycles(function() t.scope(function() return t.keep(x + x):free() end) end) <= 1)]]
    assert.equal("true\ttrue\ttrue\nended 0\n", text)
  end)

  it("get their own error objects back from hooks", function()
    local mine, x = {code = 3}, tycho.ones(2, {requires_grad = true})
    x:register_hook(function() error(mine) end)
    local ok, e = pcall(function() (x * 2):sum():backward() end)
    assert.is_false(ok)
    assert.equal(mine, e)
  end)
end)
