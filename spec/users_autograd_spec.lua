-- Gradients as PyTorch's users ask for them: backward, hooks, Functions, derivatives of functions, activation checkpoints.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, func = tycho.nn, tycho.func
local close, fails, device = helper.close, helper.fails, helper.device

describe("users' gradients", function()
  local F = tycho.nn.functional

  it("are used as soon as they are whole", function()
    local w, v = tycho.randn(3, {requires_grad = true}), tycho.randn(3, {requires_grad = true})
    local before, calls = w:detach():clone(), 0
    local hook = w:register_post_accumulate_grad_hook(function(p)
      calls = calls + 1
      assert.equal(w, p)
      tycho.no_grad(function() p:sub_(p.grad, {alpha = 0.5}) end)
      p.grad = nil
    end)
    local looked
    w:register_hook(function(g) looked = g return g * 2 end)
    ;(w * v):sum():backward()
    close(w:detach(), before - v:detach(), "a step of 0.5 with a doubled gradient", 1e-6)
    close(looked, v:detach(), "the hook before", 0)
    assert.is_true(calls == 1 and w.grad == nil and v.grad ~= nil)
    hook.remove()
    ;(w * 2):sum():backward()
    close(w.grad, tycho.full({3}, 4), "kept again", 0)
    fails("only leaves", function() (w * 2):register_post_accumulate_grad_hook(print) end)
    local bad = tycho.ones(1, {requires_grad = true})
    bad:register_post_accumulate_grad_hook(function() error "stop" end)
    fails("stop", function() (bad * 2):backward() end)
  end)

  it("go to the inputs that are named, come as zeroes where nothing was used, and from several outputs", function()
    local w, v = tycho.randn(3, {requires_grad = true}), tycho.randn(3, {requires_grad = true})
    ;(w * v):sum():backward {inputs = {w}}
    close(w.grad, v:detach(), "w", 0)
    assert.is_nil(v.grad)
    local told = 0
    local hook = w:register_post_accumulate_grad_hook(function() told = told + 1 end)
    ;(w * v):sum():backward {inputs = {w, w}}
    hook:remove()
    close(w.grad, v:detach() * 2, "added up, once", 0)
    assert.equal(1, told)
    ;(tycho.utils.checkpoint(function(x) return x * v end, w) * 1):sum():backward {inputs = {v}}
    close(v.grad, w:detach(), "what a checkpoint uses besides", 0)
    fails("input 1 must be a tensor", function() (w * v):sum():backward {inputs = {3}} end)
    local scaler = tycho.amp.GradScaler {init_scale = 8}
    scaler:scale((w * v):sum()):backward {inputs = w}
    fails("scaled by a GradScaler", function() tycho.optim.SGD({w}, {lr = 1}):step() end)
    close(tycho.grad((w * 2):sum(), {w, v}, {materialize_grads = true})[2], tycho.zeros(3), "zeroes", 0)
    w.grad = nil
    tycho.autograd.backward({(w * 2):sum(), w * 3}, {false, tycho.ones(3)})
    close(w.grad, tycho.full({3}, 5), "both", 0)
    w.grad = nil
    ;(w * 2):backward {gradient = tycho.ones(3)}
    close(w.grad, tycho.full({3}, 2), "by PyTorch's name", 0)
    assert.is_true(tycho.autograd.gradgradcheck(function(x) return x ^ 3 end, {tycho.rand(3, {dtype = "float64", requires_grad = true})}))
  end)

  it("a gradient that retain_grad keeps is added once, when backward names its tensor", function()
    local x = tycho.tensor({1, 2, 3}, {requires_grad = true, device = device})
    local y = x * 2
    y:retain_grad()
    y:retain_grad();
    (y * y):sum():backward({inputs = {y}, retain_graph = true})
    close(y.grad, tycho.tensor {4, 8, 12})
    tycho.sum(y * y):backward()
    close(y.grad, tycho.tensor {8, 16, 24})
    assert.is_truthy(x.grad)
    local changed = tycho.tensor({1, 2}, {requires_grad = true, device = device}) * 2
    changed:retain_grad()
    changed:mul_(3);
    (changed * changed):sum():backward({inputs = {changed}})
    close(changed.grad, tycho.tensor {12, 24}, "changed since")
  end)

  it("a result keeps its history when no_grad changes its shape in place", function()
    for _, name in ipairs {"squeeze_", "unsqueeze_", "transpose_"} do
      local x = tycho.ones(1, 3, {requires_grad = true, device = device})
      local y = x * 2
      tycho.no_grad(function()
        if name == "squeeze_" then y:squeeze_() elseif name == "unsqueeze_" then y:unsqueeze_(1) else y:transpose_(1, 2) end
      end)
      assert.is_true(y.requires_grad);
      (y * 3):sum():backward()
      close(x.grad, tycho.full({1, 3}, 6), name)
    end
  end)

  it("with NaN are found, with the op and its line", function()
    local line = debug.getinfo(1, "l").currentline + 3
    local message = select(2, pcall(tycho.autograd.detect_anomaly, function()
      local x = tycho.zeros(2, {requires_grad = true})
      local y = x:sqrt() * 0
      y:sum():backward()
    end))
    assert.truthy(message:find(("sqrt, called at [^ ]*autograd_spec.lua:%d, gave a gradient with NaN for its op"):format(line)), message)
    assert.is_false(tycho.autograd.is_anomaly_enabled())
    local x = tycho.ones(2, {requires_grad = true})
    tycho.autograd.detect_anomaly(function() x:log():sum():backward() end)
    close(x.grad, tycho.ones(2), "nothing to find", 0)
  end)

  it("the gradient's graph of a loss without labels is 0 too", function()
    local x = tycho.randn(2, 3, {requires_grad = true})
    local g = tycho.grad(F.cross_entropy(x, tycho.full({2}, -100):long()), x, {create_graph = true})
    assert.same({{0, 0, 0}, {0, 0, 0}}, g:totable())
  end)

  it("a linear layer of which only the weight or the bias learns computes that gradient alone", function()
    local x, target = tycho.randn(4, 3), tycho.randn(4, 2)
    local function gradients(weight, bias)
      tycho.manual_seed(2)
      local l = nn.Linear(3, 2)
      l.weight.requires_grad, l.bias.requires_grad = weight, bias
      F.mse_loss(l(x), target):backward()
      return l.weight.grad, l.bias.grad
    end
    local w, b = gradients(true, true)
    local wa, none_b = gradients(true, false)
    local none_w, ba = gradients(false, true)
    helper.close(wa, w, "weight", 1e-6)
    helper.close(ba, b, "bias", 1e-6)
    assert.is_nil(none_b)
    assert.is_nil(none_w)
    -- the bias alone needs nothing of the input, which may change
    local l, a = nn.Linear(3, 2), tycho.randn(4, 3)
    l.weight.requires_grad = false
    local y = l(a)
    a:add_(1)
    y:sum():backward()
    assert.same({4, 4}, l.bias.grad:totable())
  end)

  it("have gradients of many parts in a time that grows with their number", function()
    local n, parts = 4000, {}
    local x = tycho.ones(1, {requires_grad = true})
    for i = 1, n do parts[i] = x * i end
    tycho.stack(parts):sum():backward()
    assert.equal(n * (n + 1) / 2, x.grad:item())
  end)

  it("turns gradients off for one function", function()
    local y = tycho.set_grad_enabled(false, function(x) return x * 2 end, tycho.ones(1, {requires_grad = true}))
    assert.is_false(y.requires_grad)
    assert.is_true(tycho.is_grad_enabled())
  end)
end)

describe("users' Functions", function()
  it("of functions are written in either of PyTorch's styles", function()
    local F = tycho.autograd.Function {
      forward = function(x, k) return x * k, x:gt(0) end,
      setup_context = function(ctx, inputs, outputs)
        ctx:save_for_backward(inputs[1])
        assert.is_false((inputs[1] * 2).requires_grad)
        ctx.k = inputs[2]
        ctx:mark_non_differentiable(outputs[2])
        ctx:set_materialize_grads(false)
      end,
      backward = function(ctx, g, none)
        assert.is_nil(none)
        return g * ctx.k
      end}
    local x = tycho.randn(3, {requires_grad = true})
    local y, positive = F.apply(x, 3)
    assert.is_false(positive.requires_grad)
    y:sum():backward()
    close(x.grad, tycho.full({3}, 3), "gradient", 0)
    fails("'setup_context' must be a function", tycho.autograd.Function, {forward = print, backward = print, setup_context = 3})
  end)

  it("a Function's backward knows whose gradient is asked for", function()
    local asked
    local mul = tycho.autograd.Function {
      forward = function(ctx, a, b) ctx:save_for_backward(a, b) return a * b end,
      backward = function(ctx, g)
        local a, b = ctx:saved_tensors()
        asked = ctx.needs_input_grad
        return ctx.needs_input_grad[1] and g * b or nil, ctx.needs_input_grad[2] and g * a or nil
      end,
    }
    local a = tycho.tensor({2, 3}, {requires_grad = true})
    mul(a, tycho.tensor({5, 7})):sum():backward()
    assert.same({true, false}, asked)
    assert.same({5, 7}, a.grad:totable())
  end)
end)

describe("users' derivatives of functions", function()
  local A, o = tycho.autograd.functional, {dtype = "float64"}
  local x, y, v = tycho.tensor({0.3, -1.2, 0.7}, o), tycho.tensor({1.5, -0.4}, o), tycho.tensor({0.2, 1, -0.6}, o)

  it("are Jacobians and Hessians", function()
    close(A.jacobian(function(z) return z:exp() end, x), x:exp():diag())
    local J = A.jacobian(function(a, b) return a:sum() * b, a * 2 end, {x, y})
    close(J[1][1], y:unsqueeze(2):expand(2, 3))
    close(J[1][2], tycho.eye(2, o) * x:sum())
    close(J[2][1], tycho.eye(3, o) * 2)
    close(J[2][2], tycho.zeros(3, 2, o))
    local m = tycho.range(1, 9, 1, o):reshape(3, 3)
    close(A.hessian(function(z) return z:matmul(m):dot(z) end, x), m + m:t())
    local H = A.hessian(function(a, b) return a:sum() * b:square():sum() end, {x, y})
    close(H[1][2], (y * 2):unsqueeze(1):expand(3, 2))
    close(H[2][2], tycho.eye(2, o) * x:sum() * 2)
    close(A.hessian(function(a) return a:square():sum() end, {x})[1][1], tycho.eye(3, o) * 2)
  end)

  it("are their products with vectors", function()
    local function product(name, fn) return (select(2, A[name](fn, x, v))) end
    close(product("jvp", tycho.sin), x:cos() * v)
    close(product("vjp", tycho.sin), x:cos() * v)
    for _, name in ipairs {"hvp", "vhp"} do close(product(name, function(z) return z:pow(3):sum() end), x * 6 * v) end
    close((A.vjp(function(a, b) return a * 2, b end, {x, y}, {v, y}))[1], x * 2)
    local leaf = x:clone():requires_grad_()
    A.jacobian(function(z) return z ^ 3 end, leaf, {create_graph = true}):sum():backward()
    close(leaf.grad, x * 6)
    fails("jvp: argument 3 (v) must have shape 3 for tensor 1, got shape 2", A.jvp, tycho.sin, x, y)
    fails("hessian: argument 1 must return one tensor of one element", A.hessian, tycho.sin, x)
    fails("jacobian: argument 1 must return tensors, got 1", A.jacobian, function() return 1 end, x)
    fails("jacobian: input 1 must be a floating tensor, got int64", A.jacobian, tycho.sin, tycho.ones(2, {dtype = "int64"}))
  end)
end)

describe("users' derivatives in one another", function()
  local function cubes(a) return a:pow(3):sum() end

  it("are the same under no_grad and in a checkpoint", function()
    local x, want = tycho.tensor({1, 2}, {requires_grad = true, device = device}), tycho.tensor {3, 12}
    close(tycho.no_grad(func.grad(cubes), x), want)
    close(tycho.utils.checkpoint(func.grad(cubes), x), want)
    close((tycho.no_grad(func.grad_and_value(cubes), x)), want)
    local _, pull = tycho.no_grad(func.vjp, cubes, x)
    close(tycho.no_grad(pull, tycho.tensor(1, {device = device})), want)
    assert.is_false(tycho.no_grad(func.grad(cubes), x).requires_grad)
    local w, y = tycho.tensor({1, 2}, {requires_grad = true, device = device}), tycho.ones(2, {requires_grad = true, device = device})
    tycho.utils.checkpoint(function(v) return (func.grad(cubes)(w) * v):sum() end, y):backward()
    close(w.grad, tycho.tensor {6, 12}, "captured in a checkpoint")
    close(y.grad, want, "beside it")
  end)

  it("go on where a derivative within them was made in a scope", function()
    local x = tycho.tensor({1, 2}, {device = device})
    local function within(a)
      tycho.scope(function() return func.grad(cubes)(tycho.ones(2, {device = device})) end)
      return (a * a):sum()
    end
    close(func.grad(within)(x), tycho.tensor {2, 4})
    close(func.jacrev(within)(x), tycho.tensor {2, 4})
    close((select(2, func.jvp(within, {x}, {x}))), tycho.tensor(10))
  end)

  it("have a history only where something that needs a gradient is read", function()
    local function h(x, w) return (x * w):pow(3):sum() end
    local mixed = func.grad(function(x, w) return func.grad(h, 1)(x, w):sum() end, 2)
    local function r(needs) return tycho.rand(2, {requires_grad = needs or false, device = device}) end
    assert.is_false(mixed(r(), r()).requires_grad)
    assert.is_true(mixed(r(true), r()).requires_grad)
    assert.is_true(mixed(r(), r(true)).requires_grad)
    assert.is_false(func.jacrev(func.grad(h, 1), 2)(r(), r()).requires_grad)
    assert.is_false(tycho.vmap(mixed)(tycho.rand(3, 2, {device = device}), tycho.rand(3, 2, {device = device})).requires_grad)
    local fixed, p = r(), r(true)
    local _, along = func.jvp(function(w) return func.grad(h, 1)(fixed, w) end, {r()}, {r()})
    assert.is_false(along.requires_grad)
    assert.is_true(func.grad(function(a) return (a * p):sum() ^ 2 end)(r()).requires_grad)
    assert.is_true(func.grad(function(a) return func.grad(function(b) return (a * b * p):sum() ^ 2 end)(r()):sum() end)(r()).requires_grad)
  end)
end)

describe("users' functional calls", function()
  local F = tycho.nn.functional

  it("of a module's parameters give gradients through steps", function()
    local net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    local x, y = tycho.randn(5, 3), tycho.randn(5, 1)
    local before = net:state_dict()
    -- one inner step of gradient descent, and the gradient of the loss after it
    local function after_step(params)
      local loss = F.mse_loss(tycho.func.functional_call(net, params, x), y)
      local list, names = {}, {}
      for name, p in pairs(params) do list[#list + 1], names[#names + 1] = p, name end
      local grads, fast = tycho.grad(loss, list, nil, nil, true), {}
      for i, name in ipairs(names) do fast[name] = list[i] - grads[i] * 0.1 end
      return F.mse_loss(tycho.func.functional_call(net, fast, x), y)
    end
    local params = {}
    for name, p in net:named_parameters() do params[name] = p:detach():double():requires_grad_(true) end
    x, y = x:double(), y:double()
    after_step(params):backward()
    local w, h = params["0.weight"], 1e-6
    local function moved(by) return tycho.no_grad(function() w[{1, 1}] = w[{1, 1}] + by end) end
    moved(h)
    local up = after_step(params):item()
    moved(-2 * h)
    local down = after_step(params):item()
    assert.near((up - down) / (2 * h), w.grad[{1, 1}], 1e-7)
    for name, p in pairs(net:state_dict()) do assert.is_true(p:equal(before[name])) end
    assert.equal("float32", net[1].weight.dtype)
    fails("has no parameter or buffer 'weigth'", tycho.func.functional_call, net, {weigth = w}, x)
    fails("mat", tycho.func.functional_call, net, {["0.weight"] = tycho.zeros(4, 9)}, tycho.randn(5, 3))
    for _, p in ipairs(net:parameters()) do assert.is_true(p.is_leaf and p.dtype == "float32") end
    local tied = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2, {bias = false}))
    tied[2].weight = tied[1].weight
    close(tycho.func.functional_call(tied, {["0.weight"] = tycho.eye(2) * 3}, tycho.ones(1, 2)), tycho.full({1, 2}, 9))
  end)

  it("are PyTorch's", function()
    local net = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2, {bias = false})):to(device)
    net[2].weight = net[1].weight
    local x, w = tycho.ones(1, 2, {device = device}), tycho.zeros(2, 2, {device = device})
    close(func.functional_call(net, {["0.weight"] = w}, x), tycho.zeros(1, 2))
    close(func.functional_call(net, {["0.weight"] = w + 1}, x, {tie_weights = false}), net[1](x * 2), "not tied", 1e-6)
    local two = {["0.weight"] = w + 1, ["1.weight"] = w + 2}
    helper.fails("functional_call: '0.weight' and '1.weight' are one tensor of the Sequential and are given two",
      func.functional_call, net, two, x)
    helper.fails("and are given two", func.vmap(function(v)
      return func.functional_call(net, {["0.weight"] = v, ["1.weight"] = v * 2}, x)
    end), tycho.ones(3, 2, 2, {device = device}))
    close(func.functional_call(net, two, x, {tie_weights = false}), x * 8, "each", 1e-6)
    close(func.functional_call(net, net:state_dict(), x), net(x), "one tensor with two names")
    close(func.functional_call(net, {["0.weight"] = w}, x, {strict = true}), tycho.zeros(1, 2))
    fails("functional_call: 'bias' isn't given, and strict = true", func.functional_call, nn.Linear(2, 2), {weight = w:cpu()}, x:cpu(),
      {strict = true})
  end)
end)

describe("users' checkpoints of activations", function()
  it("checkpointed functions take and give tensors in tables", function()
    local l = nn.Linear(3, 3)
    local x, w = tycho.randn(2, 3, {requires_grad = true}), tycho.randn(2, 3, {requires_grad = true})
    local function f(t, k)
      local h = l(t.x):tanh() * t.list[1]
      return {h, {y = h * 2 + k}, "text", 5}, h:sum()
    end
    local function gradients(run)
      l:zero_grad()
      x.grad, w.grad = nil, nil
      local r, s = run({x = x, list = {w}, name = "n"}, 3)
      assert.same({"text", 5}, {r[3], r[4]})
      local loss = (r[1] * r[2].y):sum() + s
      loss:backward()
      return {x.grad, w.grad, l.weight.grad, l.bias.grad}
    end
    local want = gradients(f)
    for i, g in ipairs(gradients(function(...) return tycho.utils.checkpoint(f, ...) end)) do
      helper.close(g, want[i], "gradient " .. i, 0)
    end
  end)

  it("within vmap gives the gradients of what it captures, for each example", function()
    tycho.manual_seed(3)
    local net = nn.Sequential(nn.Linear(3, 4), nn.Checkpoint(nn.Sequential(nn.Linear(4, 4), nn.Tanh())), nn.Linear(4, 1)):to(device)
    local x, params = tycho.randn(5, 3, {device = device}), {}
    for name, p in net:named_parameters() do params[name] = p:detach() end
    local function loss(given, row) return func.functional_call(net, given, row:unsqueeze(1)):sum() ^ 2 end
    local each = tycho.vmap(func.grad(loss), {false, 1})(params, x)
    for i = 1, 5 do
      net:zero_grad();
      (net(x[{{i}}]):sum() ^ 2):backward()
      for name, p in net:named_parameters() do close(each[name][{{i}}]:squeeze(1), p.grad, name, 1e-5) end
    end
    local w = tycho.tensor({1, 2}, {device = device, requires_grad = true})
    local rows = tycho.tensor({{1, 1}, {2, 0}, {0, 3}}, {device = device})
    tycho.vmap(function(v, r) return tycho.utils.checkpoint(function(t) return (v * t):sum() ^ 2 end, r) end, {false, 1})(w, rows)
      :sum():backward()
    close(w.grad, tycho.tensor {14, 42})
  end)

  it("updates an InstanceNorm's running statistics once", function()
    tycho.manual_seed(4)
    local plain = nn.InstanceNorm1d(3, {track_running_stats = true}):to(device)
    local again, x = plain:clone(), tycho.randn(2, 3, 5, {device = device, requires_grad = true})
    plain(x):sum():backward()
    tycho.utils.checkpoint(again, x):sum():backward()
    close(again.running_mean, plain.running_mean, "mean", 0)
    close(again.running_var, plain.running_var, "var", 0)
  end)

  it("see what is read, also where gradients are switched on between them", function()
    local l, ck = nn.Linear(2, 2):to(device), tycho.utils.checkpoint
    local function inner(x) return tycho.enable_grad(ck, l, x) end
    local x = tycho.ones(1, 2, {device = device})
    ck(inner, x):sum():backward()
    close(l.weight.grad, tycho.ones(2, 2))
    l:zero_grad()
    tycho.utils.checkpoint_sequential({inner, l}, 2, x):sum():backward()
    local got = l.weight.grad
    l:zero_grad()
    l(l(x)):sum():backward()
    close(got, l.weight.grad, "in a row", 1e-6)
    l:zero_grad()
    ck(function(v) return func.jacrev(function(a) return ck(l, a) end)(v):sum() end, x[1]):backward()
    close(l.weight.grad, tycho.ones(2, 2), "jacrev")
  end)

  it("a gradient with a history, through a checkpoint, outlives its scope", function()
    local w = tycho.tensor({1, 2}, {requires_grad = true, device = device})
    local g = tycho.scope(function()
      local y = tycho.utils.checkpoint(function(a) return a:pow(3) end, w):sum()
      return tycho.grad(y, w, {create_graph = true})
    end)
    collectgarbage()
    g:sum():backward()
    close(w.grad, tycho.tensor {6, 12})
  end)

  it("an error in backward arrives as what it was", function()
    for _, thrown in ipairs {42, {}, false} do
      local F = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function() error(thrown, 0) end}
      local ok, err = pcall(function() F(tycho.ones(2):requires_grad_()):sum():backward() end)
      assert.is_false(ok)
      assert.equal(thrown, err)
    end
    local F = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function() error("a\0b", 0) end}
    local _, err = pcall(function() F(tycho.ones(2):requires_grad_()):sum():backward() end)
    assert.equal("a\0b", err:sub(-3))
  end)
end)
