-- Hooks for what is saved for backward: values come back as they were, or it is said what went wrong. Hooks of several tensors; a backward
-- that can't be differentiated.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"

local fails = helper.fails
local function leaf(v) return tycho.tensor(v, {dtype = "float64", requires_grad = true}) end

describe("saved tensors", function()
  local graph = tycho.autograd.graph
  local Cube = tycho.autograd.Function {
    forward = function(ctx, x, k) ctx:save_for_backward(x, nil, x * k) return x ^ 3 * k end,
    backward = function(ctx, g)
      local x, nothing, kx = ctx:saved_tensors()
      assert(nothing == nil)
      return g * 3 * x * kx
    end}
  local function run(wrap)
    tycho.manual_seed(1)
    local net = tycho.nn.Sequential(tycho.nn.Linear(4, 8), tycho.nn.ReLU(), tycho.nn.LayerNorm({8}), tycho.nn.Linear(8, 3))
    local x = tycho.randn(5, 4, {requires_grad = true})
    local y = wrap(function()
      local scores = Cube(net(x):mul(0.1):exp_():log(), 2)
      return tycho.nn.functional.cross_entropy(scores, tycho.tensor({1, 2, 3, 1, 2}, {dtype = "int64"}))
    end)
    y:backward()
    local out = {x.grad}
    for _, p in ipairs(net:parameters()) do out[#out + 1] = p.grad end
    return out
  end

  it("are what hooks make of them until backward asks for them", function()
    local packed, unpacked = 0, 0
    local want = run(function(fn) return fn() end)
    local got = run(function(fn)
      return graph.saved_tensors_hooks(function(x)
        packed = packed + 1
        return {x:clone(), tostring(x.shape)}
      end, function(v)
        unpacked = unpacked + 1
        assert.equal(v[2], tostring(v[1].shape))
        return v[1]
      end, function() return tycho.scope(fn) end)
    end)
    assert.is_true(packed > 10)
    assert.equal(packed, unpacked)
    for i = 1, #want do assert.is_true(want[i]:equal(got[i])) end
    local x = leaf {0.2, 0.3}
    assert.is_true(tycho.autograd.gradgradcheck(function(z)
      return graph.saved_tensors_hooks(tycho.clone, function(v) return v end, function() return ((z ^ 3):exp() * z):sin() end)
    end, {x}))
  end)

  it("go with their graph", function()
    local function keep(x) return {x:clone()} end
    local function once() run(function(fn) return graph.saved_tensors_hooks(keep, function(v) return v[1] end, fn) end) end
    local function settled()                 -- what a node held goes at the next call
      helper.collected()
      tycho.ones(1):sum()
      return helper.collected()
    end
    once()
    local before = settled()
    for _ = 1, 50 do once() end
    for _ = 1, 50 do graph.saved_tensors_hooks(keep, function(v) return v[1] end, function() return leaf({1, 2}):exp():sin() end) end
    local after = settled()
    assert.is_true(after <= before, ("%d bytes before, %d after"):format(before, after))
  end)

  it("say what hooks did wrong", function()
    local x = leaf {1, 2, 3}
    local function with(pack, unpack) return graph.saved_tensors_hooks(pack, unpack, function() return (x * 2):exp():sum() end) end
    local function same(v) return v end
    fails("boom", with, function() error("boom") end, same)
    fails("pack has changed the tensor", with, function(v) v:add_(1) end, same)
    fails("what unpack returned must be a tensor, got number", function() with(function() return 3 end, same):backward() end)
    fails("unpack returned a float64 tensor of shape 2 on cpu; 'exp' saved a float64 of shape 3 on cpu", function()
      tycho.set_default_device("cpu")
      local ok, e = pcall(function()
        local y = leaf {1, 2, 3}
        graph.saved_tensors_hooks(same, function() return leaf {1, 2} end, function() return y:exp():sum() end):backward()
      end)
      tycho.set_default_device(helper.device)
      error(ok or e, 0)
    end)
    fails("argument 2 must be a function, got 3", graph.saved_tensors_hooks, same, 3, same)
    local function passed(fn) return graph.saved_tensors_hooks(same, same, fn) end
    for _, wrap in ipairs {passed, graph.save_on_cpu} do
      local a = leaf {2}
      local y = wrap(function() return a * a end)
      tycho.no_grad(function() a:fill_(100) end)
      fails("was changed in place (version 1, expected 0)", function() y:sum():backward() end)
    end
    local own = Cube(leaf {1, 2}, 1)
    fails("no second derivative", function() tycho.grad(passed(function() return Cube(x, 1) end):sum(), x, {create_graph = true}) end)
    fails("unpack must return a float64 tensor of shape 3", function()
      graph.saved_tensors_hooks(same, function() return own end, function() return Cube(x, 1) end):sum():backward()
    end)
    with(function(v) tycho.enable_grad(function() return v * 2 end) return v end, same):backward()      -- and none of that is recorded
    assert.is_nil(core.saved_hooks())
  end)

  it("are packed in compiled functions too, which then run as they are written", function()
    local f = tycho.compile(function(v) return (v * v):sum() end)
    for _ = 1, 4 do f(tycho.ones(3, {requires_grad = true})) end
    local n, x = 0, tycho.ones(3, {requires_grad = true})
    graph.saved_tensors_hooks(function(v) n = n + 1 return v end, function(v) return v end, f, x):backward()
    assert.equal(2, n)
    assert.same({2, 2, 2}, x.grad:totable())
  end)

  it("wait on the CPU while a GPU has other work", function()
    local on = helper.device
    local function gradient(wrap)
      local x = tycho.range(1, 3e5, {dtype = "float32"}):div(3e5):to(on):requires_grad_()
      collectgarbage() collectgarbage()
      local before = tycho.cuda.is_available() and tycho.cuda.memory_allocated()
      local y = wrap(function() return (x * 1):exp():sin():exp():sin():exp() end)
      collectgarbage() collectgarbage()
      local held = before and tycho.cuda.memory_allocated() - before
      y:sum():backward()
      return x.grad:cpu(), held
    end
    local want, all = gradient(function(fn) return fn() end)
    for _, wrap in ipairs {graph.save_on_cpu, function(fn) return graph.save_on_cpu({pin_memory = false}, fn) end} do
      local got, held = gradient(wrap)
      assert.is_true(want:equal(got))
      if on == "cuda" then assert.is_true(held < all / 2, held .. " of " .. all) end
    end
  end)
end)

describe("once_differentiable", function()
  it("makes a gradient's own gradient an error", function()
    local Cube = tycho.autograd.Function {
      forward = function(ctx, x) ctx:save_for_backward(x) return x * x * x end,
      backward = tycho.autograd.once_differentiable(function(ctx, g)
        assert.is_false(tycho.is_grad_enabled())
        return ctx:saved_tensors() ^ 2 * g * 3
      end)}
    local x = tycho.tensor({1, 2}, {requires_grad = true})
    Cube(x):sum():backward()
    assert.same({3, 12}, x.grad:totable())
    local g = tycho.grad(Cube(x):sum(), x, {create_graph = true})
    assert.same({3, 12}, g:totable())
    helper.fails("marked with once_differentiable", g.backward, g:sum())
    local y = tycho.tensor({5, 6}, {requires_grad = true})
    g = tycho.grad((Cube(x) * y):sum(), x, {create_graph = true})           -- through what comes to it, too
    helper.fails("marked with once_differentiable", tycho.grad, g:sum(), y)
    tycho.autograd.graph.saved_tensors_hooks(function(v) return v:clone() end, function(v) return v end, function()
      local z = Cube(x):sum()
      helper.fails("no second derivative", tycho.grad, z, x, {create_graph = true})
    end)
    helper.fails("argument 1 must be a function, got 3", tycho.autograd.once_differentiable, 3)
  end)
end)

describe("register_multi_grad_hook", function()
  it("tells of all gradients, or of the first one", function()
    local hook = tycho.autograd.graph.register_multi_grad_hook
    local a, b, c = tycho.ones(2, {requires_grad = true}), tycho.ones(2, {requires_grad = true}), tycho.ones(2)
    local seen, first = {}, 0
    local all = hook({a, c, b}, function(grads, n)
      seen[#seen + 1] = {n, grads[1]:totable(), grads[2] or false, grads[3]:totable()}
    end)
    local any = hook({a, b}, function(g) first = first + g:numel() end, {mode = "any"})
    local function pass() (a * 2 + b * 3):sum():backward() end
    pass()
    pass()
    local want = {3, {2, 2}, false, {3, 3}}
    assert.same({want, want}, seen)
    assert.equal(4, first)
    a:sum():backward()                                                     -- doesn't reach b
    assert.same({2, 6}, {#seen, first})
    pass()
    assert.same({want, want, want}, seen)
    assert.equal(8, first)
    local inner                                                            -- a backward within backward is one of its own
    local h = a:register_hook(function()
      if inner then return end
      inner = true
      tycho.enable_grad(function() (a * 5):sum():backward() end)
    end)
    pass()
    assert.same({want, want, want, want}, seen)
    assert.equal(12, first)
    h.remove()
    local within = 0
    tycho.utils.checkpoint(function(x)
      local p, q = x * 2, x * 3
      hook({p, q}, function(grads) within = within + grads[1]:sum():item() + grads[2]:sum():item() end)
      return p + q
    end, c:clone():requires_grad_(true)):sum():backward()
    assert.equal(4, within)
    all.remove()
    any.remove()
    pass()
    assert.same({4, 12}, {#seen, first})
    helper.fails("none of the tensors requires grad", hook, {c}, print)
    helper.fails("mode must be 'all' or 'any', got 'some'", hook, {a}, print, {mode = "some"})
    helper.fails("item 2 must be a tensor, got 3", hook, {a, 3}, print)
  end)
end)
