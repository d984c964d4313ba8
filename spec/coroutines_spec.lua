-- Coroutines that are suspended or dropped inside a library function: what holds there holds for them alone, and ends with them.
local tycho = require "tycho"
local cpu = {device = "cpu"}

-- Runs fn in a coroutine until it first yields.
local function suspended(fn)
  local co = coroutine.create(fn)
  assert(coroutine.resume(co))
  assert.equal("suspended", coroutine.status(co))
  return co
end
local function finish(co)
  while coroutine.status(co) ~= "dead" do assert(coroutine.resume(co)) end
end
-- One that is dropped there.
local function drop(fn)
  suspended(fn)
  collectgarbage()
  collectgarbage()
end

describe("A coroutine suspended or dropped", function()
  it("while a dataset's item is drawn leaves others the process's generator", function()
    local dataset = {size = function() return 4 end}
    function dataset.get(_, i)
      local x = tycho.rand(1, cpu)
      coroutine.yield()
      return x, tycho.rand(1, cpu), i
    end
    local function items()
      local found = {}
      for x, y in tycho.data.DataLoader(dataset, {batch_size = 2, seed = 3}):iter() do
        found[#found + 1] = tycho.cat({x, y}, 1):flatten():totable()
      end
      return found
    end
    tycho.manual_seed(1)
    local want = tycho.randn(4, cpu):totable()
    local found
    local co = suspended(function() found = items() end)
    tycho.manual_seed(1)
    assert.same(want, tycho.randn(4, cpu):totable())
    finish(co)
    tycho.manual_seed(1)
    local again
    finish(suspended(function() again = items() end))
    assert.same(found, again)
    assert.same(want, tycho.randn(4, cpu):totable())
    drop(items)
    tycho.manual_seed(1)
    assert.same(want, tycho.randn(4, cpu):totable())
    assert.same(want, tycho.Generator():manual_seed(1):draw(tycho.randn, 4, cpu):totable())
  end)

  it("is within what the coroutine that resumes it draws from", function()
    local function items()
      local source = {iter = function()
        return coroutine.wrap(function() for i = 1, 4 do coroutine.yield(tycho.rand(1, cpu), i) end end)
      end}
      local found
      for x in tycho.data.DataLoader(source, {batch_size = 4, seed = 3}):iter() do found = x:flatten():totable() end
      return found
    end
    assert.same(items(), items())
    local x = tycho.ones(200, {requires_grad = true, device = "cpu"})
    local y = tycho.Generator():draw(function()
      return tycho.utils.checkpoint(function(v)
        return coroutine.wrap(function() return tycho.nn.functional.dropout(v, 0.5, true) end)()
      end, x)
    end)
    y:sum():backward()
    assert.is_true(y:detach():equal(x.grad))
  end)

  it("in a checkpoint's first run doesn't make what others do one", function()
    local x = tycho.ones(3, {requires_grad = true})
    local norm = tycho.nn.BatchNorm1d(3)
    local pauses = 0
    local function paused()
      tycho.utils.checkpoint(function(v)
        pauses = pauses + 1
        if pauses % 2 == 1 then coroutine.yield() end    -- in the first run
        return v * 2
      end, x):sum():backward()
    end
    local function others()
      local called = 0
      local y = tycho.ones(2, {requires_grad = true})
      tycho.autograd.graph.register_multi_grad_hook({y}, function() called = called + 1 end)
      assert.error_matches(function() tycho.ones(2):register_hook(print) end, "doesn't require grad")
      assert.error_matches(function() tycho.ones(2):retain_grad() end, "doesn't require grad")
      y:sum():backward()
      assert.equal(1, called)
      local before = norm.num_batches_tracked:item()
      norm(tycho.randn(4, 3))
      assert.equal(before + 1, norm.num_batches_tracked:item())
    end
    local co = suspended(paused)
    others()
    finish(co)
    assert.equal(2, pauses)
    others()
    drop(paused)
    others()
    -- names that an inner call doesn't set hold on
    local modes, inner, other = require "tycho.modes", nil, nil
    modes.during({first_run = true, call = 1}, function()
      coroutine.wrap(function()
        modes.during({first_run = false}, function() inner, other = modes.now.first_run, modes.now.call end)
      end)()
      assert.is_true(modes.now.first_run)
    end)
    assert.same({false, 1}, {inner, other})
    assert.is_nil(modes.now.first_run)
    -- what a checkpoint's function resumes is within it: statistics change once
    local before = norm.num_batches_tracked:item()
    tycho.utils.checkpoint(function(v)
      return coroutine.wrap(function() return norm(tycho.stack({v, v * 2})) end)()
    end, x):sum():backward()
    assert.equal(before + 1, norm.num_batches_tracked:item())
  end)

  it("in a Function's forward within vmaps leaves none of them running", function()
    local F = tycho.autograd.Function {forward = function(_, x)
      coroutine.yield()
      return x * 2
    end, backward = function(_, g) return g * 2 end}
    local function twice(fn) return tycho.func.vmap(tycho.func.vmap(fn)) end
    drop(function() twice(F)(tycho.ones(2, 3)) end)
    local y
    local co = suspended(function() y = twice(F)(tycho.ones(2, 3)) end)
    assert.equal(12, twice(function(x) return x * 2 end)(tycho.ones(2, 3)):sum():item())
    finish(co)
    assert.equal(12, y:sum():item())
  end)

  it("within a scope or a profile lets these go", function()
    local kept = {}
    drop(function() tycho.scope(function()
      kept[1] = tycho.ones(3)
      coroutine.yield()
    end) end)
    assert.equal(3, kept[1]:sum():item())                -- nothing ended the scope: what it held is as if made without one
    local function many()
      for _ = 1, 2000 do coroutine.resume(coroutine.create(function() tycho.scope(coroutine.yield) end)) end
      for _ = 1, 3 do collectgarbage() end               -- finalizers run one round later
      return collectgarbage "count"
    end
    many()
    local before = many()
    assert.is_true(many() < before + 100)                -- KB
    drop(function() tycho.profiler.profile(coroutine.yield) end)
    assert.equal(1, #tycho.profiler.profile(function() tycho.ones(2) end).events)
    coroutine.resume(coroutine.create(function() tycho.profiler.profile(coroutine.yield) end))        -- not collected yet
    assert.equal(1, #tycho.profiler.profile(function() tycho.ones(2) end).events)
    local co = suspended(function() return tycho.profiler.profile(coroutine.yield) end)
    assert.error_matches(function() tycho.profiler.profile(function() end) end, "another profile is being taken")
    finish(co)
    local p = tycho.profiler.profile {}
    p:start()
    p = nil                                              -- luacheck: ignore
    assert.equal(0, #tycho.profiler.profile(function() end).events)
  end)
end)

-- Finalizers run within library functions, wherever these allocate.
describe("A finalizer", function()
  local pause, step
  before_each(function()
    jit.off()                                            -- LuaJIT itself doesn't survive finalizers that raise in compiled code
    jit.flush()
    pause, step = collectgarbage("setpause", 1), collectgarbage("setstepmul", 1000)
  end)
  after_each(function()
    collectgarbage("setpause", pause)
    collectgarbage("setstepmul", step)
    jit.on()
  end)
  local function trap(fn) getmetatable(newproxy(true)).__gc = fn end

  it("may end the modes of the coroutine that a function runs in", function()
    local x = tycho.randn(50, 4)
    local function ends()
      tycho.set_grad_enabled(true)
      collectgarbage()
      collectgarbage()
    end
    for _ = 1, 30 do
      assert(coroutine.resume(coroutine.create(function()
        tycho.set_grad_enabled(false)
        for _ = 1, 5 do trap(ends) end
        for _ = 1, 40 do assert.equal("3x2", tostring(x[{ {1, 3}, {2, 3} }].shape)) end
        tycho.set_grad_enabled(true)
      end)))
    end
  end)

  it("doesn't end a recording that is about to begin", function()
    collectgarbage("setstepmul", 100)                    -- so that finalizers run at many places
    local program, lost, list = require("tycho.core").program, 0, {}
    for i = 1, 60 do list[i] = tycho.ones(1) end
    local function ends() tycho.no_grad(function() end) end
    finish(coroutine.create(function()
      for _ = 1, 4000 do
        trap(ends)
        local p = program.new(false, false, 1)
        program.begin(p, list)
        local y = list[1] * 2
        if not program.active() then lost = lost + 1 end
        program.finish(p, true, {y})
      end
    end))
    assert.equal(0, lost)
  end)

  it("that raises leaves no memory behind", function()
    local core = require "tycho.core"
    local armed, x, w, loss = false, nil, nil, nil
    local function bad() if armed then error "a finalizer's error" end end
    local function clean()
      x, w, loss = nil, nil, nil
      for _ = 1, 200 do pcall(collectgarbage) end
      return core.allocated()
    end
    local key, graph = { {1, 2}, {1, 2} }, {create_graph = true}
    local function index() return x[key] end
    local function grad() tycho.grad(loss, {w}, graph) end
    local function make_matrix() x = tycho.ones(100, 100) end
    local function make_graph()
      loss, w = nil, tycho.ones(1000):requires_grad_()
      local sum = w
      for _ = 1, 30 do sum = sum + tycho.ones(1000):requires_grad_() * w end
      loss, sum = sum:sum(), nil                         -- luacheck: ignore
      collectgarbage()                                   -- only the tape keeps the leaves
    end
    for make, use in pairs {[make_matrix] = index, [make_graph] = grad} do
      local before, failed = clean(), 0
      local many
      local function set()
        make()
        for _ = 1, many do trap(bad) end
      end
      for k = 1, 1200 do
        many, armed = k % 7, true
        local made, used, n = pcall(set), true, 0
        while made and used and n < 40 do used, n = pcall(use), n + 1 end          -- until the collector has been there
        armed = false
        if made and not used then failed = failed + 1 end
      end
      assert.is_true(failed > 0)
      assert.equal(before, clean())
    end
  end)
end)
