-- Bugs that were, of gradients: the tape, hooks, views' histories, activation checkpoints, derivatives to any order; values are PyTorch's.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, linalg = tycho.nn, tycho.linalg
local T, is, fails = tycho.tensor, helper.is, helper.fails
local i64, f64, inf, nan = {dtype = "int64"}, {dtype = "float64"}, math.huge, 0 / 0
local function leaf(list, dtype) return T(list, {dtype = dtype or "float64", requires_grad = true}) end

describe("regressions of the tape", function()
  it("grad refuses lists with holes", function()
    local x = tycho.ones(2, {requires_grad = true})
    local y = x:sum()
    assert.is_false(pcall(tycho.grad, {y, false, y}, x))
    assert.is_false(pcall(tycho.grad, y, {x, false}))
  end)

  it("gradients take their tensors' dtype", function()
    local x = tycho.ones(2, {requires_grad = true})
    x:backward(tycho.ones(2, {dtype = "int64"}))
    assert.equal("float32", x.grad.dtype)
  end)

  it("an error within a part without gradients leaves them on", function()
    fails("broadcast", tycho.instance_norm, tycho.randn(2, 3, 4), tycho.zeros(5), tycho.ones(5))
    assert.is_true(tycho.is_grad_enabled())
  end)

  it("a Function's results stay at their places, nil ones too", function()
    local F = tycho.autograd.Function {forward = function(_, x) return nil, x * 2, nil end, backward = function(_, _, g) return g * 2 end}
    local x = tycho.ones(2, {requires_grad = true})
    local a, b, c = F(x)
    assert.is_nil(a)
    assert.is_nil(c)
    assert.equal(3, select("#", F(x)))
    b:sum():backward()
    assert.same({2, 2}, x.grad:totable())
  end)

  it("long errors from a hook, a Function and a saved tensor's hook arrive whole", function()
    local text = ("x"):rep(900) .. " END"
    local function raises() error(text, 0) end
    local x = T({1, 2}, {requires_grad = true})
    local y = (x * x):sum()
    y:register_hook(raises)
    helper.fails(text, y.backward, y)
    local f = tycho.autograd.Function {forward = function(_, v) return v * 2 end, backward = raises}
    local z = f(x):sum()
    helper.fails(text, z.backward, z)
    assert.same({2, 4}, tycho.grad((x * x):sum(), x):totable())
  end)

  it("hooks may keep what they see", function()
    local x, saved = tycho.ones(2, {requires_grad = true}), nil
    local y = x * 2
    y:register_hook(function(g) saved = g * 1 end)
    y:sum():backward()
    assert.equal(2, saved:sum():item())
  end)

  it("zero_ and fill_ keep the graph", function()
    for _, change in ipairs {function(y) y:zero_() end, function(y) y:fill_(3) end} do
      local w = T({1, 1}, {requires_grad = true})
      local y = w * 2
      change(y)
      assert.is_true(y.requires_grad)
      y:sum():backward()
      is({0, 0}, w.grad)
    end
  end)
end)

describe("regressions of views' histories", function()
  it("views know their history when asked", function()
    local w = tycho.ones(2, {requires_grad = true})
    local x = tycho.zeros(2)
    local v = x[{ {1, 2} }]
    x:add_(w)
    assert.is_true(v.requires_grad)
    assert.is_false(v.is_leaf)
  end)

  it("views made under no_grad don't change a recorded base behind its back", function()
    local w = tycho.ones(3, {requires_grad = true})
    local y = w * 1
    local v = tycho.no_grad(function() return y[{ {1, 2} }] end)
    fails("made under no_grad", function() v:mul_(5) end)
    tycho.no_grad(function() v:mul_(5) end)
    assert.same({5, 5, 1}, y:totable())
    v:detach():mul_(2)
  end)

  it("what a stale view sees twice adds up in its gradient", function()
    for _, case in ipairs {
      {function(y) return y:expand(3, 4) end, {6, 6, 6, 6}}, {function(y) return y:unfold(1, 2, 1) end, {2, 4, 4, 2}},
      {function(y) return y:view(2, 2):t() end, {2, 2, 2, 2}}} do
      local x = tycho.ones(4, {requires_grad = true})
      local y = x * 1
      local v = case[1](y)
      y:mul_(2)
      v:sum():backward()
      assert.same(case[2], x.grad:totable())
    end
  end)

  it("a view of what took other memory is a view no longer", function()
    local net = tycho.nn.Linear(2, 2, {bias = false}):requires_grad_(false)
    local v = net.weight:view(4)
    net:double()
    local source = tycho.ones(4, {requires_grad = true})
    v:copy_(source * 2)
    assert.is_false(net.weight.requires_grad)
    v:sum():backward()
    assert.same({2, 2, 2, 2}, source.grad:totable())
  end)
end)

describe("regressions of checkpoints", function()
  it("of activations outlive the scope and compiled function of the forward pass", function()
    local layer = tycho.nn.Linear(4, 4)
    local x = tycho.randn(3, 4)
    local function f(v) return layer(v):sin() end
    f(x):sum():backward()
    local want = layer.weight.grad
    layer:zero_grad()
    local loss = tycho.scope(function() return tycho.utils.checkpoint(f, x * 1):sum() end)
    loss:backward()
    helper.close(layer.weight.grad, want)
    local compiled = tycho.compile(function(v) return tycho.utils.checkpoint(f, v):sum() end)
    for _ = 1, 4 do
      layer:zero_grad()
      compiled(x):backward()
      helper.close(layer.weight.grad, want)
    end
    x:requires_grad_()
    local g = tycho.grad(tycho.utils.checkpoint(f, x):sum(), x, {create_graph = true})
    helper.close(tycho.grad(g:square():sum(), x),
      tycho.grad(tycho.grad(f(x):sum(), x, {create_graph = true}):square():sum(), x), "second", 1e-5)
  end)

  it("utils.checkpoint takes PyTorch's options, and tells the program's own tables from them", function()
    local checkpoint, y = tycho.utils.checkpoint, tycho.ones(2, {requires_grad = true})
    for _, o in ipairs {{early_stop = false}, {use_reentrant = false, determinism_check = "none", debug = true}} do
      assert.equal(0, select(2, checkpoint(function(v, ...) return v, select("#", ...) end, tycho.ones(1), o)))
    end
    local own = {debug = true, mask = 1}                  -- an argument, whose names are the program's
    assert.same(own, (select(2, checkpoint(function(v, o) return v, o end, tycho.ones(1), own))))
    helper.fails("checkpoint: unknown option 'early_stp'; did you mean 'early_stop'?", checkpoint, print, y,
      {use_reentrant = false, early_stp = true})
    helper.fails("checkpoint: context_fn isn't supported", checkpoint, print, y, {use_reentrant = false, context_fn = print})
  end)
end)

describe("regressions of gradients", function()
  local F = tycho.nn.functional

  it("0 to a negative power falls without end, as PyTorch has it", function()
    for _, a in ipairs {0, tycho.tensor {0, 0, 0, 2}} do
      local b = tycho.tensor({-1, 0, 2, -1}, {requires_grad = true})
      tycho.pow(a, b):sum():backward()
      assert.same({-math.huge, 0, 0}, b.grad[{ {1, 3} }]:totable())
    end
  end)

  it("deviations and norms have gradient 0 where PyTorch's have", function()
    local x = tycho.ones(4, {requires_grad = true})
    x:std():backward()
    assert.same({0, 0, 0, 0}, x.grad:totable())
    local z = tycho.zeros(3, {requires_grad = true})
    z:norm(3):backward()
    assert.same({0, 0, 0}, z.grad:totable())
    local big = tycho.tensor({1 / 0, 2}, {requires_grad = true})
    tycho.smooth_l1_loss(big, tycho.zeros(2), {reduction = "sum"}):backward()
    assert.same({1, 1}, big.grad:totable())
  end)

  it("a rounded quotient has gradients of 0", function()
    local x, y = T({1, 2}, {requires_grad = true}), T({0, inf}, {requires_grad = true})
    x:div(y, {rounding_mode = "trunc"}):sum():backward()
    assert.same({{0, 0}, {0, 0}}, {x.grad:totable(), y.grad:totable()})
  end)

  it("gradients in mixed dtypes have the result's digits", function()
    local e = T({1.2691917}, {requires_grad = true})
    T(0.83984375, {dtype = "bfloat16"}):pow(e):sum():backward()
    is({-0.13985786}, e.grad, 1e-6)
    local a = T({2}, {dtype = "float64", requires_grad = true})
    a:xlogy(T({3}, {dtype = "uint8"})):sum():backward()
    is({1.098612288668}, a.grad, 1e-11)
    a = T({2.3}, {dtype = "float64", requires_grad = true})
    tycho.special.xlog1py(a, T({5}, i64)):sum():backward()
    is({1.79175946922805}, a.grad, 1e-12)
    a.grad = nil
    tycho.igamma(T({3}, i64), a):sum():backward()
    is({0.26518464164682}, a.grad, 1e-12)
    a.grad = nil
    tycho.igamma(a, T({0, inf}, f64)):sum():backward()
    is({0}, a.grad)
    a = T({0.5}, {dtype = "float64", requires_grad = true})
    a:atan2(T({0.3}, {dtype = "float16"})):sum():backward()
    is({0.882420511}, a.grad, 1e-8)
  end)

  it("the gradient of a maximum that is NaN goes to where NaN is; logit's is NaN outside of 0..1", function()
    for _, f in ipairs {tycho.max, tycho.min, tycho.amax, tycho.amin} do
      local x = T({{1, nan, 2}, {nan, nan, 3}}, {requires_grad = true})
      f(x):backward()
      helper.close(x.grad, T {{0, 1, 0}, {1, 1, 0}} / 3, nil, 0)
    end
    local into, from = T({1, 2}, {requires_grad = true}), T({nan}, {requires_grad = true})
    into:scatter_reduce(1, T({1}, i64), from, "amax"):sum():backward()
    is({0, 1}, into.grad, 0)
    is({1}, from.grad, 0)
    local x = T({-1, 0, 0.5, 1, 2}, {requires_grad = true})
    tycho.logit(x):sum():backward()
    is({nan, inf, 4, inf, nan}, x.grad, 0)
    x.grad = nil
    tycho.logit(x, 0.125):sum():backward()
    helper.close(x.grad, T {0, 0, 4, 0, 0}, nil, 0)
    helper.close(tycho.logit(x, 0.125), T {-math.log(7), -math.log(7), 0, math.log(7), math.log(7)}, nil, 1e-6)
  end)

  it("relu hands gradients on where its result is NaN", function()
    local x = T({-1, nan, 2, 0}, {requires_grad = true})
    x:relu():sum():backward()
    assert.same({0, 1, 1, 0}, x.grad:totable())
  end)

  it("quantile has a gradient by q", function()
    local q = T({0.25, 0.5}, {requires_grad = true})
    tycho.quantile(T {1, 2, 5, 9}, q):sum():backward()
    assert.same({3, 9}, q.grad:totable())
    local x, p = T({{1, 2, 5}, {4, 0, 3}}, {requires_grad = true, dtype = "float64"}), T(0.3, {requires_grad = true, dtype = "float64"})
    assert.is_true(tycho.autograd.gradcheck(function(v, part) return tycho.quantile(v, part, 2) end, {x, p}))
  end)

  it("singular values of 0 of matrices that aren't square have gradients", function()
    local x = leaf({{1, 0, 0}, {0, 0, 0}}, "float32")
    is({{1, 0, 0}, {0, 0, 0}}, tycho.grad(linalg.matrix_norm(x, 2), x))
    local rows = leaf {{3, 4, 0}, {3, 4, 0}, {0, 0, 0}, {0, 0, 0}}
    local slope = tycho.grad(linalg.svdvals(rows):narrow(1, 1, 1):sum(), rows)
    is({{0.6 / 2 ^ 0.5, 0.8 / 2 ^ 0.5, 0}, {0.6 / 2 ^ 0.5, 0.8 / 2 ^ 0.5, 0}, {0, 0, 0}, {0, 0, 0}}, slope, 1e-12)
  end)

  it("counts of 0 have their slope in a multinomial distribution", function()
    local v = leaf {1, 0, 0}
    local d = tycho.distributions.Multinomial {total_count = 1, probs = T({0.5, 0.25, 0.25}, f64)}
    is({-0.69314718, -0.38629436, -0.38629436}, tycho.grad(d:log_prob(v), v), 1e-7)
    local never = tycho.distributions.Multinomial {total_count = 1, probs = T({0.5, 0.5, 0}, f64)}
    is(math.log(0.5), never:log_prob(T({1, 0, 0}, f64)), 1e-12)
  end)

  it("a sum of what index_select took has a gradient that counts, along each dim", function()
    local index = tycho.tensor({2, 3, 2, 1}, {dtype = "int64"})
    for dim = 1, 4 do
      local x = tycho.randn(3, 3, 3, 3, {requires_grad = true})
      x:index_select(dim, index):sum():backward()
      local shape = {1, 1, 1, 1}
      shape[dim] = 3
      helper.close(x.grad, T({1, 2, 1}):view(shape):expand(3, 3, 3, 3), "dim " .. dim, 0)
    end
  end)

  it("gradients where nothing was read are 0", function()
    local scores = leaf({{1, 2, 3}, {1, 2, 3}}, "float32")
    local loss = F.cross_entropy(scores, T({1, 1}, {dtype = "int64"}), {ignore_index = 1})
    local slope = tycho.grad(loss, scores, {create_graph = true})
    is({{0, 0, 0}, {0, 0, 0}}, slope, 0)
    is({{0, 0, 0}, {0, 0, 0}}, tycho.grad(slope:sum(), scores), 0)
    local a = leaf {{1, inf}, {2, 3}}
    local power = linalg.matrix_power(a, 0)
    is({{1, 0}, {0, 1}}, power, 0)
    is({{0, 0}, {0, 0}}, tycho.grad(power:sum(), a), 0)
    for _, o in ipairs {{{4, 4}, {5, 6, 2}, "bicubic"}, {{3, 3, 3}, {5, 6, 7, 3}, "bilinear"}} do
      local x = tycho.zeros({0, 2, unpack(o[1])}, {requires_grad = true})
      local places = tycho.zeros({0, unpack(o[2])}, {requires_grad = true})
      local y = F.grid_sample(x, places, {mode = o[3]})
      assert.same({0, 2, unpack(o[2], 1, #o[1])}, y.shape)
      y:sum():backward()
      assert.same(x.shape, x.grad.shape)
      assert.same(places.shape, places.grad.shape)
    end
  end)

  it("what a mask leaves out of xlogy has no gradient; slopes beside infinity; log_ndtr's second derivative", function()
    local a, b = T({1, 2}):requires_grad_(), T {0, 3}
    is({0, math.log(3)}, tycho.grad(tycho.where(b:gt(0), tycho.xlogy(a, b), 0):sum(), a))
    is({0, math.log(3)}, tycho.grad(tycho.where(b:gt(0), tycho.xlog1py(a, b - 1), 0):sum(), a))
    is({1, math.huge, 1, -math.huge, 1.5, 2}, tycho.gradient(T {1, 2, math.huge, 4, 5, 7})[1])
    -- the density over the distribution function and that one's slope, by mpmath
    local x = tycho.tensor({40, 10, 6, 5, 4, -3}, {dtype = "float64", requires_grad = true})
    local g = tycho.grad(tycho.log_ndtr(x):sum(), x, {create_graph = true})
    local want = {0, 7.694598626706419e-23, 6.075882855817676e-9, 1.486719940904906e-6, 1.338344644685751e-4, 3.283098654930437}
    local second = {0, -7.694598626706419e-22, -3.645529717182241e-8, -7.433601914860711e-6, -5.353557695381802e-4, -0.9294408132147319}
    for i = 1, 6 do
      local slope = tycho.grad(g[{{i}}]:sum(), x, {retain_graph = true})[i]
      assert.is_true(math.abs(g[i] - want[i]) <= 1e-12 * math.abs(want[i]), "slope " .. i)
      assert.is_true(math.abs(slope - second[i]) <= 1e-12 * math.abs(second[i]), "second " .. i)
    end
    local far = T({-47725.446, -1e10, 1e10}):requires_grad_()
    local slopes = tycho.grad(tycho.log_ndtr(far):sum(), far, {create_graph = true})
    is({47725.446, 1e10, 0}, slopes, 1e-5)
    assert.is_true(tycho.grad(slopes:sum(), far):isfinite():all():item())
  end)
end)

describe("regressions of second derivatives", function()
  local F = tycho.nn.functional

  it("steps have second derivatives of 0", function()
    local x = T({-0.5, 0.3, 2}, {requires_grad = true})
    for _, f in ipairs {F.relu, F.relu6, F.hardtanh, function(v) return F.leaky_relu(v, 0.1) end,
        function(v) return F.threshold(v, 0.1, 3) end, function(v) return F.prelu(v, T {0.2}) end, function(v) return v:clamp(0, 1) end} do
      local g = tycho.grad(f(x):sum(), x, {create_graph = true})
      assert.is_true(g.requires_grad)
      is({0, 0, 0}, tycho.grad(g:sum(), x))
    end
    tycho.manual_seed(1)                                   -- so that some of the steps are on
    local net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    local g = tycho.grad(net(x):sum(), x, {create_graph = true})
    is({0, 0, 0}, tycho.grad(g[{{1}}]:sum(), x, {retain_graph = true}))
    assert.is_true(tycho.grad(g:square():sum(), net[1].weight):norm():item() > 0)
    helper.fails("grad: input 1 wasn't used", tycho.grad, (net(x)):sum(), T({1}, {requires_grad = true}))
  end)

  it("prelu's gradients have gradients", function()
    local x = T({{-0.5, 0.3}, {2, -1.5}}, {dtype = "float64", requires_grad = true})
    local w = T({0.2, 0.4}, {dtype = "float64", requires_grad = true})
    assert.is_true(tycho.autograd.gradgradcheck(function(a, b) return F.prelu(a:square() - 1, b) end, {x, w}))
  end)

  it("determinants of singular matrices have second derivatives, and their logarithms gradients that aren't numbers", function()
    local a = leaf {{1, 2}, {2, 4}}
    local g = tycho.grad(linalg.det(a), a, {create_graph = true})
    is({{4, -2}, {-2, 1}}, g, 1e-12)
    is({{0, 0}, {0, 1}}, tycho.grad(g[1]:select(1, 1), a), 1e-12)
    local batch = leaf {{{1, 2}, {2, 4}}, {{1, 0}, {0, 2}}}
    local sign, log = linalg.slogdet(batch)
    is({0, 1}, sign)
    is({-inf, math.log(2)}, log)
    local slope = tycho.grad(log:sum(), batch)
    assert.is_true(slope[1]:isnan():all():item())
    is({{1, 0}, {0, 0.5}}, slope[2])
    tycho.manual_seed(2)
    local many = tycho.randn(20, 3, 3, f64)
    many[{ {}, 3 }] = many[{ {}, 1 }] * 2 + many[{ {}, 2 }] * 0.37
    assert.is_true(tycho.autograd.gradcheck(linalg.det, {many:clone():requires_grad_()}))
    assert.is_true(tycho.autograd.gradgradcheck(linalg.det, {leaf {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}}))      -- 0 but for rounding
    local beside = leaf {{{1, 2}, {2, 4}}, {{nan, 0}, {0, 2}}}
    is({{4, -2}, {-2, 1}}, tycho.grad(linalg.det(beside):sum(), beside)[1], 1e-12)
    local exactly = leaf {{{1, 2, 0}, {3, 5, 0}, {5, 6, 0}}, {{2, 1, 0}, {1, 3, 1}, {0, 1, 4}}, {{1, 2, 3}, {0, 0, 0}, {4, 1, 6}}}
    assert.is_true(tycho.autograd.gradgradcheck(linalg.det, {exactly}))
  end)

  it("powers of 0 have slopes to any order", function()
    local x = leaf {0, 2}
    local g = tycho.grad(linalg.vander(x, 4):sum(), x, {create_graph = true})
    is({1, 17}, g)
    is({2, 14}, tycho.grad(g:sum(), x))
    is({{8, 4, 2, 1}}, tycho.vander(T {2}, 4))
    is({{1, 3, 9}}, tycho.vander(T({3}, {dtype = "int32"}), 3, {increasing = true}))
  end)

  it("gradgradcheck sees a backward whose own derivative is missing, by inputs and by incoming gradients", function()
    local Function, check = tycho.autograd.Function, tycho.autograd.gradgradcheck
    local x = leaf {0.5, 1}
    local function times(backward)
      return Function {forward = function(ctx, v) ctx:save_for_backward(v) return v * v end, backward = function(ctx, g)
        return backward(g, ctx:saved_tensors())
      end}.apply
    end
    assert.is_true(check(times(function(g, v) return g * 2 * v end), {x}))
    local lost, linear = times(function(g, v) return g * 2 * v:detach() end), times(function(g, v) return g:detach() * 2 * v end)
    helper.fails("gradgradcheck: input 1, element 1: the gradient is 0, differences give", check, lost, {x})
    helper.fails("gradgradcheck: the gradient of output 1, element 1: the gradient is 0, differences give", check, linear, {x})
    assert.is_false(check(lost, {x}, {raise_exception = false}))
    assert.is_true(check(lost, {x}, nil, 1e-6, 100))                   -- atol, as in PyTorch's order
    assert.is_true(check(function(v) return v ^ 3 end, x, tycho.ones(2, f64)))
    helper.fails("gradgradcheck: item 1 of argument 3 must be a tensor, got 2", check, lost, {x}, {2})
    helper.fails("gradgradcheck: argument 3 must be a list of one tensor for each float64 output", check, lost, {x}, {x, x})
    helper.fails("gradgradcheck: argument 3 must be a list of one tensor", check, lost, {x}, 1e-6, 1e-5)
    helper.fails("boom", check, function() error "boom" end, {x}, {raise_exception = false})
    local turned, cubes = tycho.rand(2, 3, f64):t():requires_grad_(), function(v) return v ^ 3, nil, v:argmax() end
    local before = turned:clone()
    assert.is_true(tycho.autograd.gradcheck(cubes, turned))
    assert.is_true(check(cubes, turned, tycho.rand(2, 3, f64):t()))
    assert.is_true(turned:equal(before))
    assert.is_true(tycho.autograd.gradcheck(lost, {x}, 1e-6, 1e-4))
  end)
end)

describe("regressions of detect_anomaly", function()
  it("holds in the coroutine that called it, until it ends there", function()
    local watched = tycho.autograd.is_anomaly_enabled
    local function watch()
      tycho.autograd.detect_anomaly(function() coroutine.yield(watched()) end)
      return watched()
    end
    local a, b, dropped = coroutine.create(watch), coroutine.create(watch), coroutine.create(watch)
    for _, thread in ipairs {a, b, dropped} do assert.same({true, true}, {coroutine.resume(thread)}) end
    assert.is_false(watched())
    for _, thread in ipairs {a, b} do assert.same({true, false}, {coroutine.resume(thread)}) end
    tycho.autograd.detect_anomaly(function()
      tycho.autograd.set_detect_anomaly(false)
      tycho.autograd.detect_anomaly(function() assert.is_true(watched()) end)
      assert.is_false(watched())
    end)
    assert.is_false(watched())
  end)
end)
