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
    pause, step = collectgarbage("setpause", 100), collectgarbage("setstepmul", 0)         -- 0: each step is a whole collection
  end)
  after_each(function()
    collectgarbage("setpause", pause)
    collectgarbage("setstepmul", step)
    jit.on()
  end)

  -- Calls fn() with finalizer() run at the n-th place in it where the collector may run: one finalizer a collection, each but the last
  -- leaving the next. Returns whether fn has as many places, then what pcall returns.
  local function finalize_at(n, finalizer, fn)
    local ran = false
    local function leave()
      getmetatable(newproxy(true)).__gc = function()
        n = n - 1
        if n > 0 then return leave() end
        collectgarbage("setpause", 100)
        ran = true
        if n == 0 then finalizer() end
      end
    end
    collectgarbage()
    leave()
    collectgarbage("setpause", 0)                        -- a collection at each place
    local ok, err = pcall(fn)
    collectgarbage("setpause", 100)
    n = 0
    return ran, ok, err
  end
  -- At every such place in turn; prepare() comes before each call. Returns how many there are, and how many calls raised.
  local function finalize_everywhere(finalizer, prepare, fn)
    local n, failed = 0, 0
    prepare()
    fn()                                                 -- loads what it needs
    repeat
      n = n + 1
      prepare()
      local ran, ok = finalize_at(n, finalizer, fn)
      if not ok then failed = failed + 1 end
    until not ran
    return n - 1, failed
  end

  it("may end the modes of the coroutine that a function runs in", function()
    local x = tycho.randn(50, 4)
    local key = { {1, 3}, {2, 3} }
    local function ends()
      tycho.set_grad_enabled(true)
      collectgarbage()
      collectgarbage()
    end
    finish(coroutine.create(function()
      local places, failed = finalize_everywhere(ends, function() tycho.set_grad_enabled(false) end, function()
        for _ = 1, 5 do
          if x[key]:numel() ~= 6 then error "another tensor" end
        end
      end)
      assert.is_true(places > 5)
      assert.equal(0, failed)
    end))
  end)

  it("doesn't end a recording that is about to begin", function()
    local program, p, list = require("tycho.core").program, nil, {}
    for i = 1, 60 do list[i] = tycho.ones(1) end
    local function prepare() p = program.new(false, false, 1) end
    finish(coroutine.create(function()
      local places, failed = finalize_everywhere(function() tycho.no_grad(function() end) end, prepare, function()
        program.begin(p, list)
        local y = list[1] * 2
        local recorded = program.active()
        program.finish(p, true, {y})
        if not recorded then error "the recording ended" end
      end)
      assert.is_true(places > 2)
      assert.equal(0, failed)
    end))
  end)

  it("that raises leaves no memory behind", function()
    local core = require "tycho.core"
    local x, w, loss
    local raising = true
    local function bad() if raising then error "a finalizer's error" end end
    local raises = not pcall(function()
      getmetatable(newproxy(true)).__gc = bad
      collectgarbage()
    end)                                                 -- later LuaJITs report it elsewhere
    local function clean()
      x, w, loss = nil, nil, nil
      raising = false
      for _ = 1, 3 do collectgarbage() end
      raising = true
      return core.allocated()
    end
    local key, graph = { {1, 2}, {1, 2} }, {create_graph = true}
    local before = clean()
    local function check(...)
      local places, failed = finalize_everywhere(bad, ...)
      assert.is_true(places > 1)
      assert.equal(raises and places or 0, failed)
      assert.equal(before, clean())
    end
    check(function() x = tycho.ones(100, 100) end, function() return x[key] end)
    check(function()
      w = tycho.ones(1000):requires_grad_()
      local sum = w
      for _ = 1, 2 do sum = sum + tycho.ones(1000):requires_grad_() * w end
      loss, sum = sum:sum(), nil                         -- luacheck: ignore
      collectgarbage()                                   -- only the tape keeps the leaves
    end, function() tycho.grad(loss, {w}, graph) end)
  end)
end)
