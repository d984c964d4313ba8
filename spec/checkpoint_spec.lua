-- checkpoint.Manager: a run stopped and taken up again is the run that wasn't stopped; damage is seen, named, and older files serve.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails = helper.fails
require("ffi").cdef "int truncate(const char *path, long length);"
local nn, optim, data = tycho.nn, tycho.optim, tycho.data

local folder = helper.folder
local read = helper.read_file
local write = helper.write_file
-- fn with what it writes to stderr
local function quietly(fn, ...)
  local real, text = io.stderr, {}
  io.stderr = { -- luacheck: ignore 122
    write = function(_, ...) for _, s in ipairs {...} do text[#text + 1] = tostring(s) end end,
    flush = function() end}
  local out = {pcall(fn, ...)}
  io.stderr = real -- luacheck: ignore 122
  assert(out[1], out[2])
  return table.concat(text), unpack(out, 2)
end

-- A training run: model with dropout and batch norm, scheduler, scaler, loader; one step a call.
local function run(o)
  tycho.manual_seed(5)
  local x = tycho.randint(0, 255, {37, 1, 6, 6}, {device = "cpu"}):to("uint8")
  local set = data.TensorDataset(x, tycho.randint(1, 3, {37}, {device = "cpu"}))
  local r = {net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3),
    nn.Linear(64, 3)), losses = {}, steps = 0}
  r.net:to(helper.device)
  r.opt = optim.AdamW(r.net:parameters(), {lr = 0.01})
  r.sched = optim.lr_scheduler.StepLR(r.opt, {step_size = 3, gamma = 0.5})
  r.scaler = tycho.amp.GradScaler {init_scale = 1024, growth_interval = 4}
  r.loader = data.DataLoader(set, {batch_size = 5, shuffle = true, seed = 3, num_workers = o.workers or 0})
  local function compute(a, b)
    local loss
    tycho.amp.autocast({dtype = o.dtype or "bfloat16", device = helper.device, enabled = o.amp or false},
      function() loss = tycho.cross_entropy(r.net(a:float() / 255), b) end)
    r.opt:zero_grad()
    r.scaler:scale(loss):backward()
    r.scaler:step(r.opt)
    r.scaler:update()
    return loss
  end
  if o.compile then compute = tycho.compile(compute) end
  function r.members()
    return {model = r.net, optimizer = r.opt, scheduler = r.sched, scaler = r.scaler, loader = r.loader, losses = r.losses}
  end
  -- Steps until there have been n; after each, each(r).
  function r.train(n, each)
    while r.steps < n do
      for a, b in r.loader:iter() do
        r.losses[#r.losses + 1] = compute(a:to(helper.device), b:to(helper.device)):item()
        r.sched:step()
        r.steps = r.steps + 1
        if each then each(r) end
        if r.steps == n then break end
      end
    end
    r.loader:close()
  end
  return r
end
local function same_run(a, b)
  assert.same(a.losses, b.losses)
  local want = b.net:state_dict()
  for name, t in pairs(a.net:state_dict()) do assert.is_true(t:equal(want[name]), name) end
  assert.is_true(tycho.rand(4):equal(tycho.rand(4)) == false)
end

describe("checkpoint.Manager", function()
  local dir
  before_each(function() dir = folder() end)
  after_each(function() os.execute("rm -rf " .. dir) end)

  local kinds = {["float32"] = {}, ["autocast"] = {amp = true}, ["compiled"] = {compile = true},
    ["compiled, autocast"] = {compile = true, amp = true}}
  for name, o in pairs(kinds) do
    it("resumes a run exactly, mid-epoch too, with other workers: " .. name, function()
      local whole = run(o)
      whole.train(19)
      for _, stop in ipairs {3, 8, 13} do
        local m = tycho.checkpoint.Manager {dir = dir, keep = 2}
        local first = run(o)
        first.train(stop, function(r) m:save(r.steps, r.members()) end)
        m:wait()
        local again = run {amp = o.amp, compile = o.compile, workers = 2}
        tycho.rand(7)
        local step, values = m:restore_latest(again.members())
        assert.equal(stop, step)
        again.losses, again.steps = values.losses, step
        again.train(19)
        same_run(again, whole)
        os.execute("rm " .. dir .. "/*")
      end
    end)
  end

  if helper.device ~= "cpu" then it("uses the plans again that libraries had chosen by timing", function()
    local gpu, cudnn = require("tycho.core").gpu, tycho.backends.cudnn
    cudnn.benchmark, cudnn.deterministic = true, true              -- else an engine may be chosen whose sums come in no fixed order
    local ok, e = pcall(function()
      gpu.set_timed_plans(nil)
      local whole, m = run {}, tycho.checkpoint.Manager {dir = dir}
      whole.train(9)
      local first = run {}
      first.train(4)
      m:save(4, first.members())
      m:wait()
      -- As another process would: it has chosen nothing yet. keeps false: and it doesn't take what was saved.
      local function again(keeps)
        local r = run {}
        gpu.set_timed_plans(nil)
        local step, values = m:restore_latest(r.members())
        if not keeps then gpu.set_timed_plans(nil) end
        r.losses, r.steps = values.losses, step
        r.train(9)
        return r
      end
      local differed = false
      for _ = 1, 20 do differed = differed or not pcall(same_run, again(false), whole) end
      assert.is_true(differed, "another way gives the same bits")
      for _ = 1, 3 do same_run(again(true), whole) end
      local a, b = tycho.randn(64, 300), tycho.randn(300, 50)      -- a graph that was captured before takes them too
      gpu.set_timed_plans(nil)
      local f, was = tycho.compile(function() return a:matmul(b) end), a:matmul(b)
      local kept = gpu.timed_plans()
      for _ = 1, 3 do f() end
      for _ = 1, 8 do
        gpu.set_timed_plans(nil)
        assert.is_true(f():equal(a:matmul(b)))
      end
      gpu.set_timed_plans(kept)
      assert.is_true(f():equal(was))
      local words = gpu.timed_plans()
      fails("are no timed plan", gpu.set_timed_plans, words:narrow(1, 1, words:size(1) - 1):clone())
      assert.is_true(gpu.timed_plans():equal(words))
    end)
    cudnn.benchmark, cudnn.deterministic = false, false
    gpu.set_timed_plans(nil)
    if not ok then error(e, 0) end
  end) end

  it("resumes math.random", function()
    local m, net = tycho.checkpoint.Manager {dir = dir}, nn.Linear(1, 1)
    math.randomseed(7)
    math.random()
    m:save(1, {model = net})
    m:wait()
    local want = {math.random(), math.random(1000)}
    math.randomseed(99)
    m:restore_latest {model = net}
    assert.same(want, {math.random(), math.random(1000)})
  end)

  it("removes what a writer left that is no more, not what one on another machine is writing", function()
    local ffi, name = require "ffi", dir .. "/step-3.safetensors.4194305.0.tmp"        -- no process here has that number
    pcall(ffi.cdef, "int open(const char *path, int flags, ...); int close(int fd); int flock(int fd, int operation);")
    tycho.checkpoint.Manager {dir = dir}
    write(name, "part of a file")
    local fd = ffi.C.open(name, 2)
    assert.equal(0, ffi.C.flock(fd, 2))
    tycho.checkpoint.Manager {dir = dir}
    assert.equal("part of a file", read(name))
    ffi.C.close(fd)
    tycho.checkpoint.Manager {dir = dir}
    assert.is_nil(io.open(name))
  end)

  it("refuses generators that are none, before it loads", function()
    local m, net = tycho.checkpoint.Manager {dir = dir}, nn.Linear(1, 1)
    m:save(1, {model = net})
    m:wait()
    local saving, core = require "tycho.saving", require "tycho.core"
    for _, bad in ipairs {3, {1}, "xyz", ("0"):rep(64)} do
      local tensors, text = core.read_safetensors(dir .. "/step-1.safetensors", true)
      local value = saving.value(core.json_decode(text), tensors)
      value.generators.lua = bad
      local tree, names, list = saving.tree(value)
      core.saving_end(core.saving_start(dir .. "/step-2.safetensors", names, list, core.json_encode(tree), 0))
      local before = net.weight:detach():clone()
      tycho.no_grad(net.weight.add_, net.weight, 1)
      fails("the random generator 'lua' in", m.restore, m, 2, {model = net})
      assert.is_true(net.weight:equal(before + 1))
    end
  end)

  it("saves what was there when it was called", function()
    local m = tycho.checkpoint.Manager {dir = dir}
    local x = tycho.rand(300, 1000)
    local want = x:clone()
    for k = 1, 5 do
      m:save(k, {x = x, list = {x, "s", k}})
      x:fill_(k)
      m:wait()
      local _, values = m:restore_latest()
      assert.is_true(values.x:equal((k == 1 and want or tycho.full({300, 1000}, k - 1)):cpu():to(values.x.device)))
      assert.equal(k, values.list[3])
    end
    assert.same({5, 4, 3}, m:steps())
    assert.equal("step-5.safetensors", read(dir .. "/latest"))
    local one = tycho.checkpoint.Manager {dir = dir, keep = 1, async = false}
    one:save(2, {})                                -- what was saved last stays, whatever its number
    assert.same({2}, one:steps())
    local all = tycho.checkpoint.Manager {dir = dir, keep = false}
    for k = 10, 16 do all:save(k, {k = k}) end
    all:wait()
    assert.equal(8, #all:steps())
    local many = tycho.checkpoint.Manager {dir = dir, keep = 3e9, async = false}
    many:save(17, {})
    assert.equal(9, #many:steps())
    assert.is_nil(all:progress())
    assert.equal(12, select(2, all:restore(12)).k)
    assert.is_nil((tycho.checkpoint.Manager {dir = dir .. "/other/new"}:restore_latest()))
  end)

  it("sees every flipped bit and every truncation, and takes the one before", function()
    local m = tycho.checkpoint.Manager {dir = dir, async = false}
    m:save(1, {a = tycho.range(1, 5), n = 1})
    m:save(2, {a = tycho.range(1, 7), layer = {weight = tycho.ones(3, 2)}, n = 2})
    local path = dir .. "/step-2.safetensors"
    local good = read(path)
    local function damaged()
      local text, step, values = quietly(m.restore_latest, m)
      assert.equal(1, step)
      assert.equal(1, values.n)
      assert.truthy(text:find(path, 1, true))
      return text
    end
    local state = 7
    for _ = 1, 600 do
      state = (state * 1103515245 + 12345) % 2 ^ 31
      local at, bit = math.floor(state / 16) % #good + 1, 2 ^ (state % 8)
      local c = good:byte(at)
      write(path, good:sub(1, at - 1) .. string.char(math.floor(c / bit) % 2 == 1 and c - bit or c + bit) .. good:sub(at + 1))
      damaged()
    end
    for n = 0, #good - 1, 11 do
      write(path, good:sub(1, n))
      damaged()
    end
    write(path, good:sub(1, -2) .. string.char((good:byte(-1) + 1) % 256))
    assert.truthy(damaged():find("damaged: tensor 'values.layer.weight' doesn't match its checksum", 1, true) or
      damaged():find("damaged: tensor 'values.a'", 1, true))
    write(dir .. "/step-1.safetensors", "x")
    fails("none of the 2 checkpoints in " .. dir .. " can be read", function()
      local ok, e = pcall(quietly, m.restore_latest, m)
      error(not ok and e or "no error", 0)
    end)
    tycho.save(dir .. "/step-1.safetensors", {tycho.ones(1)})
    fails("no checksums", m.restore, m, 1)
  end)

  -- TYCHO_FLIPS: how many bits (make test-crash: 100,000); a tenth as many truncations
  it("sees many flipped bits and truncations of a larger one #long", function()
    local flips = tonumber(os.getenv "TYCHO_FLIPS") or 3000
    local m = tycho.checkpoint.Manager {dir = dir, async = false}
    local members = {}
    for k = 1, 20 do members["part" .. k] = {weight = tycho.rand(5, 20), bias = tycho.rand(7):half(), n = k, name = "part " .. k} end
    m:save(1, members)
    local path, state, tensors = dir .. "/step-1.safetensors", 3, 0
    local good = read(path)
    assert.is_true(#good > 10000)
    local function refused()
      local ok, e = pcall(m.restore, m, 1)
      if ok or not e:find(path, 1, true) then error("not seen: " .. tostring(e)) end
      return e
    end
    local file = assert(io.open(path, "r+b"))
    local function put(at, byte) file:seek("set", at - 1) file:write(string.char(byte)) file:flush() end
    for _ = 1, flips do
      state = (state * 1103515245 + 12345) % 2 ^ 31
      local at = math.floor(state / 16) % #good + 1
      state = (state * 1103515245 + 12345) % 2 ^ 31
      local bit, c = 2 ^ (math.floor(state / 65536) % 8), good:byte(at)
      put(at, math.floor(c / bit) % 2 == 1 and c - bit or c + bit)
      if refused():find("tensor 'values.part%d+%.%a+' doesn't match its checksum") then tensors = tensors + 1 end
      put(at, c)
    end
    file:close()
    m:restore(1)                                   -- whole again
    assert.is_true(tensors > flips * 0.4, tensors) -- about half of the file is tensors: those are named
    for n = #good - 1, math.max(0, #good - flips / 10), -1 do
      assert.equal(0, require("ffi").C.truncate(path, n))
      refused()
    end
  end)

  it("keeps the order of managers of one folder, whichever writes longer", function()
    local place = folder()
    local a, b = tycho.checkpoint.Manager {dir = place, keep = 1}, tycho.checkpoint.Manager {dir = place, keep = 1}
    a:save(1, {x = tycho.zeros(4000, 1000)})
    b:save(2, {x = tycho.zeros(1)})
    b:wait()
    assert.same({2}, b:steps())
    a:wait()
    assert.same({2}, a:steps())
    assert.equal(2, (a:restore_latest()))
    for step = 3, 20 do tycho.checkpoint.Manager {dir = place .. "/.", keep = 2}:save(step, {x = tycho.zeros(300, 300)}) end
    collectgarbage()
    collectgarbage()
    assert.same({20, 19}, tycho.checkpoint.Manager {dir = place}:steps())
  end)

  it("reports what failed at the next call, and goes on", function()
    local m = tycho.checkpoint.Manager {dir = dir}
    m:save(1, {n = 1})
    m:wait()
    os.execute(("mv %s %s.away && printf x > %s"):format(dir, dir, dir))
    m:save(2, {n = 2})
    fails("step 2 was not saved: " .. dir, m.wait, m)
    m:wait()
    m:save(3, {n = 3})
    os.execute(("sleep 0.05; rm %s; mv %s.away %s"):format(dir, dir, dir))
    fails("is a function", m.save, m, 4, {f = print})          -- which doesn't make the other be forgotten
    fails("step 3 was not saved: ", m.save, m, 4, {n = 4})
    m:wait()
    assert.equal(4, (m:restore_latest()))
    assert.same({4, 1}, m:steps())
  end)

  it("says what is wrong", function()
    local m = tycho.checkpoint.Manager {dir = dir}
    fails("dir must be the name of a folder", tycho.checkpoint.Manager, {})
    fails("did you mean 'keep'", tycho.checkpoint.Manager, {dir = dir, kep = 1})
    fails("keep must be a whole number", tycho.checkpoint.Manager, {dir = dir, keep = 0})
    fails("argument 1 (step)", m.save, m, -1, {})
    fails("argument 2 must be a table of members", m.save, m, 1)
    fails("is a function", m.save, m, 1, {f = print})
    m:save(1, {model = nn.Linear(2, 2)})
    fails("has no 'optimizer'", m.restore_latest, m, {optimizer = optim.SGD(nn.Linear(2, 2):parameters(), {lr = 1})})
    fails("shape", m.restore_latest, m, {model = nn.Linear(3, 2)})
    fails("No such file", m.restore, m, 7)
    write(dir .. "/plain", "x")
    fails("not a folder", tycho.checkpoint.Manager, {dir = dir .. "/plain"})
  end)

  it("a generator of the program's own is a member", function()
    local m, g = tycho.checkpoint.Manager {dir = dir}, tycho.Generator(tycho.get_default_device()):manual_seed(5)
    g:draw(tycho.randn, 7)
    m:save(1, {noise = g})
    m:wait()
    local want, other = g:draw(tycho.randn, 4), tycho.Generator(tycho.get_default_device())
    m:restore_latest {noise = other}
    assert.is_true(want:equal(other:draw(tycho.randn, 4)))
    fails("must be a generator's state", other.load_state_dict, other, 3)
  end)
end)
