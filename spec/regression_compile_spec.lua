-- Bugs that were, of traces, compiled functions and coroutines.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn = tycho.nn
local T = tycho.tensor

describe("regressions of traces", function()
  it("traces recurrent layers without a batch, and lengths beside a table of positions that ends", function()
    for _, name in ipairs {"RNN", "GRU", "LSTM"} do
      local layer = nn[name](4, 6, {num_layers = 2, bidirectional = true})
      local traced = tycho.jit.trace(layer, tycho.randn(6, 4))
      for _, length in ipairs {6, 3, 9} do
        local x = tycho.randn(length, 4)
        helper.close((traced(x)), (layer(x)), name, 0)
      end
    end
    local words, positions = nn.Embedding(17, 4), nn.Embedding(32, 4)
    local function model(ids) return words(ids) + positions(tycho.range(1, ids:size(2), {dtype = "int64"})) end
    for _, n in ipairs {4, 5, 16, 31, 32} do
      local traced = tycho.jit.trace(model, tycho.randint(1, 17, {1, n}))
      for _, length in ipairs {1, 9, 32} do
        local ids = tycho.randint(1, 17, {2, length})
        helper.close(traced(ids), model(ids), ("%d of a trace of %d"):format(length, n), 0)
      end
    end
  end)

  it("traces of recurrent layers and cells take any number of rows", function()
    for _, name in ipairs {"RNN", "GRU", "LSTM"} do
      local cell, layer = nn[name .. "Cell"](6, 3), nn[name](6, 3)
      local x, y = tycho.randn(7, 6), tycho.randn(5, 7, 6)
      helper.close((cell(x)), (tycho.jit.trace(cell, tycho.randn(4, 6))(x)))
      helper.close((layer(y)), (tycho.jit.trace(layer, tycho.randn(4, 2, 6))(y)))
    end
  end)

  it("a traced EmbeddingBag takes any number of rows", function()
    for _, mode in ipairs {"sum", "mean", "max"} do
      for _, padding in ipairs {false, 3} do
        local bag = nn.EmbeddingBag(10, 3, {mode = mode, padding_idx = padding or nil})
        local traced, ids = tycho.jit.trace(bag, tycho.randint(1, 10, {2, 4})), tycho.randint(1, 10, {5, 4})
        helper.close(bag(ids), traced(ids))
      end
    end
  end)

  it("a trace follows no size that the model looks at", function()
    local function refuses(rows, fn)
      local traced = tycho.jit.trace(fn, tycho.ones(rows, 2))
      helper.fails("the trace was made for", traced, tycho.ones(rows + 3, 2))
    end
    refuses(4, function(x) return x * (x:size(1) % 2) end)
    refuses(4, function(x) return x:size(1) > 3 and x * 2 or x * 3 end)
    refuses(1, function(x) return x:size(1) > 2 and x * 2 or x * 3 end)
    refuses(1, function(x) return x * math.max(3, x:size(1)) end)
  end)

  it("a trace has nothing of an op that failed and was caught", function()
    local traced = tycho.jit.trace(function(x)
      local y = x * 2
      pcall(function() y:add_(tycho.ones(5)) end)
      pcall(function() y[{ {1, 2} }]:copy_(tycho.ones(5)) end)
      return y
    end, tycho.ones(3))
    helper.close(traced(T {1, 2, 3}), T {2, 4, 6}, nil, 0)
    assert.is_nil(tostring(traced:graph()):find("add_", 1, true))
  end)
end)

describe("regressions of compiled functions", function()
  it("a leaf that is frozen before the first backward from outside gets gradients later", function()
    local w = tycho.ones(2, {requires_grad = true})
    local f = tycho.compile(function(x) return (w * x):sum() end)
    for k = 1, 6 do
      w.grad = nil
      w:requires_grad_(true)
      local l = f(tycho.full({2}, k))
      if k == 2 then w:requires_grad_(false) end
      l:backward()
      assert.equal(k ~= 2 and k or nil, w.grad and w.grad[1])
    end
  end)

  it("a leaf that has been frozen since forward gets no gradient", function()
    local w, u = tycho.ones(2, {requires_grad = true}), tycho.ones(2, {requires_grad = true})
    local loss = (w * 2 * u):sum()
    w:requires_grad_(false)
    loss:backward()
    assert.is_nil(w.grad)
    helper.close(u.grad, tycho.full({2}, 2))
    for _, outside in ipairs {false, true} do
      local freeze
      local f = tycho.compile(function(x)
        w.grad = nil
        w:requires_grad_(true)
        local l = (w * x):sum()
        if freeze then w:requires_grad_(false) end
        if outside then return l end
        l:backward()
      end)
      for k = 1, 8 do
        freeze = k % 2 == 0
        local l = f(tycho.full({2}, k))
        if outside then l:backward() end
        assert.equal(not freeze and k or nil, w.grad and w.grad[1])
      end
      freeze = false
      for k = 1, outside and 8 or 0 do                       -- frozen outside, in the call that is recorded too
        w.grad = nil
        w:requires_grad_(true)
        local l = f(tycho.full({2}, k))
        if k % 3 == 2 then w:requires_grad_(false) end
        l:backward()
        assert.equal(k % 3 ~= 2 and k or nil, w.grad and w.grad[1])
      end
    end
  end)
end)

describe("regressions of coroutines", function()
  it("coroutines that take turns have cached parametrized tensors of their own, and end their own ranges of a profile", function()
    local parametrize = nn.utils.parametrize
    local net = nn.Linear(2, 2)
    local Twice = nn.Module:extend "Twice"
    function Twice:forward(x) return x * 2 end
    parametrize.register_parametrization(net, "weight", Twice())
    local first = coroutine.wrap(function()
      parametrize.cached(function()
        local seen = net.weight
        coroutine.yield()
        assert.is_true(tycho.equal(seen, net.weight))                        -- still of what it was
      end)
    end)
    first()
    tycho.no_grad(function() net.parametrizations.weight.original:fill_(3) end)
    helper.close(net.weight, tycho.full({2, 2}, 6))
    first()
    local hooked = 0                                                         -- and a checkpoint's function may have some
    tycho.utils.checkpoint(function(x)
      local y = x * 2
      coroutine.wrap(function() y:register_hook(function() hooked = hooked + 1 end) end)()
      return y
    end, tycho.ones(2, {requires_grad = true})):sum():backward()
    assert.equal(1, hooked)
    local names = {}
    local p = tycho.profiler.profile(function()
      local one = coroutine.wrap(function() tycho.profiler.record_function("one", coroutine.yield) end)
      one()
      local two = coroutine.wrap(function()
        tycho.profiler.record_function("two", function()
          coroutine.yield()
          tycho.zeros(2)
        end)
      end)
      two()
      one()
      two()
    end)
    for _, e in ipairs(p.events) do names[e.name] = e end
    assert.is_true(names.two.begin + names.two.time >= names.one.begin + names.one.time)
  end)

  it("a coroutine keeps the default device that it set", function()
    if tycho.cuda.is_available() then
      local co = coroutine.wrap(function()
        local before = tycho.get_default_device()
        tycho.set_default_device(before == "cpu" and "cuda:0" or "cpu")
        tycho.no_grad(function() end)
        local now = tycho.get_default_device()
        tycho.set_default_device(before)
        return before ~= now
      end)
      assert.is_true(co())
    end
  end)
end)
