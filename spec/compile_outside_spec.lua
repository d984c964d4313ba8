-- Compiled functions whose results' gradients come from outside of them: net = tycho.compile(net), and then loss:backward().
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, optim, F = tycho.nn, tycho.optim, tycho.nn.functional

local function mlp(a, b, c) return nn.Sequential(nn.Linear(a, b), nn.Tanh(), nn.Linear(b, c)) end

-- n rounds with and without compile, which make is given: it gives a round, whose results are compared, to the bit. The compiled functions.
local function same(make, n, options)
  local function run(compiled)
    tycho.manual_seed(4)
    local made = {}
    local round = make(function(fn)
      made[#made + 1] = compiled and tycho.compile(fn, options) or fn
      return made[#made]
    end)
    local out = {}
    for i = 1, n or 8 do
      local results = {round(i)}
      for k = 1, table.maxn(results) do
        local x = results[k]
        out[#out + 1] = core.is_tensor(x) and x:detach():clone() or x or "none"
      end
    end
    return out, made
  end
  local want = run(false)
  local got, made = run(true)
  assert.equal(#want, #got)
  for i, x in ipairs(want) do
    if core.is_tensor(x) then helper.close(got[i], x, "value " .. i, 0)
    else assert.equal(x, got[i], "value " .. i) end
  end
  return made
end

-- That each function's calls from the third on were replayed, and so were as many passes; but for so many.
local function replayed(made, n, but)
  for i, f in ipairs(made) do
    local calls, passes = 0, 0
    for _, way in ipairs(f:report()) do
      assert.is_true(way.compiled, ("function %d: %s"):format(i, tostring(way.why)))
      calls = calls + way.calls
      for _, back in ipairs(way.backward or {}) do passes = passes + back.calls end
    end
    assert.is_true(calls >= n - 1 - (but or 0), ("function %d: %d calls"):format(i, calls))
    assert.is_true(passes >= n - 1 - (but or 0), ("function %d: %d passes"):format(i, passes))
  end
end
local function as_written(made, text)
  for _, f in ipairs(made) do
    local why = ""
    for _, way in ipairs(f:report()) do
      assert.is_false(way.compiled)
      why = why .. tostring(way.why)
    end
    assert.is_truthy(why:find(text, 1, true), why)
  end
end

describe("compile, backward from outside", function()
  it("trains a net as PyTorch's programs do", function()
    for _, options in ipairs {{}, {guard = "inputs"}, {fusion = false}} do
      replayed(same(function(compile)
        local net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.GELU(),
          nn.Linear(16, 3))
        local opt, run = optim.AdamW(net:parameters(), {lr = 0.01}), compile(net)
        return function()
          opt:zero_grad()
          local loss = F.cross_entropy(run(tycho.randn(6, 4)), tycho.randint(1, 3, {6}))
          loss:backward()
          opt:step()
          return loss, net[1].weight, net[1].weight.grad, net[2].running_var, net[5].bias.grad
        end
      end, 8, options), 8)
    end
  end)

  it("runs as written where an argument needs a gradient: layers compiled one by one, a leaf", function()
    as_written(same(function(compile)
      local layers, all = {}, nn.ModuleList {}
      for i = 1, 3 do
        local block = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.ReLU())
        all:append(block)
        layers[i] = compile(block)
      end
      local opt, x = optim.SGD(all:parameters(), {lr = 0.1}), tycho.randn(5, 4):requires_grad_()
      return function()
        opt:zero_grad()
        x.grad = nil
        local y = x
        for _, layer in ipairs(layers) do y = y + layer(y) end
        y:pow(2):mean():backward()
        opt:step()
        return y, x.grad, all[1][2].weight.grad, all[3][1].weight
      end
    end), "an argument requires a gradient")
  end)

  it("two calls before backward, of which each has what it saved", function()
    same(function(compile)
      local D, G = mlp(4, 8, 1), mlp(2, 8, 4)
      local d, g = compile(D), compile(G)
      local of_d, of_g = optim.Adam(D:parameters()), optim.Adam(G:parameters())
      return function()
        of_d:zero_grad()
        local fake, real = g(tycho.randn(8, 2)), tycho.randn(8, 4)
        local loss = F.softplus(-d(real)):mean() + F.softplus(d(fake:detach())):mean()
        loss:backward()
        of_d:step()
        of_g:zero_grad()
        local other = F.softplus(-d(fake)):mean()
        other:backward()
        of_g:step()
        return loss, other, D[1].weight, G[1].weight, D[1].weight.grad
      end
    end, 10)
  end)

  it("some results without a gradient, in turns", function()
    replayed(same(function(compile)
      local net, head = nn.LSTM(3, 5, {batch_first = true}), nn.Linear(5, 2)
      local run = compile(function(x)
        local y, state = net(x)
        return {y = y, last = head(y:select(2, -1))}, state[1]
      end)
      return function(i)
        for _, p in ipairs(net:parameters()) do p.grad = nil end
        for _, p in ipairs(head:parameters()) do p.grad = nil end
        local out, h = run(tycho.randn(4, 6, 3))
        local loss = i % 3 == 0 and out.last:sum() or i % 3 == 1 and h:pow(2):sum() or out.y:mean() + out.last:mean()
        loss:backward()
        return loss, net:parameters()[1].grad, head.weight.grad
      end
    end, 12), 12)
  end)

  it("sums, transposes and parts of gradients", function()
    replayed(same(function(compile)
      local net = nn.Linear(4, 6)
      local run = compile(net)
      return function(i)
        net:zero_grad()
        local y = run(tycho.randn(3, 4))
        local loss = i % 4 == 0 and y:sum() or i % 4 == 1 and y:t():matmul(tycho.ones(3, 2)):pow(2):sum() or i % 4 == 2 and y[2]:sum() or
          (y:chunk(2, 2)[1] * 2):sum()
        loss:backward()
        return net.weight.grad, net.bias.grad
      end
    end, 16), 16)
  end)

  it("shapes, dtypes, modes of modules, of autocast and of gradients that change", function()
    same(function(compile)
      local net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 2))
      local opt, run = optim.SGD(net:parameters(), {lr = 0.1}), compile(net)
      return function(i)
        net:train(i % 4 ~= 0)
        opt:zero_grad()
        local x = tycho.randn(i % 3 == 0 and 5 or 7, 4)
        local function forward() return run(x):float():pow(2):mean() end
        if i % 5 == 0 then return tycho.no_grad(forward) end
        local loss = i % 2 == 0 and tycho.amp.autocast(x.device:match("%a+"), {dtype = "bfloat16"}, forward) or forward()
        loss:backward()
        if i == 20 then net[1].weight:requires_grad_(false) end
        if i == 30 then net[1].weight:requires_grad_(true) end
        opt:step()
        return loss, net[1].weight, net[4].weight.grad
      end
    end, 40)
  end)

  it("gradients that add up over calls, and a scaler", function()
    replayed(same(function(compile)
      local net = mlp(4, 8, 2)
      local opt, run, scaler = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9}), compile(net), tycho.amp.GradScaler()
      return function(i)
        scaler:scale(run(tycho.randn(5, 4)):pow(2):mean()):backward()
        local grad = net[1].weight.grad
        if i % 3 == 0 then
          scaler:step(opt)
          scaler:update()
          opt:zero_grad()
        end
        return grad, net[1].weight
      end
    end, 12), 12)
  end)

  it("a gradient kept from step to step is the keeper's", function()
    same(function(compile)
      local net, kept = mlp(4, 8, 2), {}
      local run = compile(net)
      return function(i)
        net:zero_grad()
        local y = run(tycho.randn(5, 4))
        y:pow(2):mean():backward()
        kept[i], kept[-i] = net[1].weight.grad, y
        return kept[math.max(i - 3, 1)], kept[-math.max(i - 3, 1)]
      end
    end, 10)
  end)

  it("refuses gradients of gradients", function()
    local net = mlp(4, 8, 1)
    local run = tycho.compile(net)
    for i = 1, 4 do
      local loss = run(tycho.randn(5, 4)):sum()
      if i == 1 then loss:backward(nil, {create_graph = true})
      else helper.fails("gradients of gradients don't go through a compiled function", loss.backward, loss, nil, {create_graph = true}) end
    end
    net:zero_grad()                        -- these gradients' histories lead to their parameters
  end)

  it("backward twice, where the graph is retained", function()
    same(function(compile)
      local net = mlp(4, 8, 2)
      local run = compile(net)
      return function()
        net:zero_grad()
        local loss = run(tycho.randn(5, 4)):pow(2):mean()
        loss:backward(nil, {retain_graph = true})
        local first = net[1].weight.grad:clone()
        loss:backward()
        local ok, err = pcall(loss.backward, loss)
        assert.is_false(ok)
        assert.is_truthy(tostring(err):find("freed", 1, true), tostring(err))
        return first, net[1].weight.grad
      end
    end)
  end)

  it("what is changed in place before backward is an error, as it is without compile", function()
    local changes = {function(net) net[3].weight:mul_(2) end, function(_, _, y) y:add_(1) end}
    if helper.device == "cpu" then changes[3] = function(_, x) x:add_(1) end end         -- a GPU's graph reads a copy
    for _, change in ipairs(changes) do
      same(function(compile)
        local net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2), nn.Sigmoid())
        local run = compile(net)
        return function(i)
          net:zero_grad()
          local x = tycho.randn(5, 4)
          local y = run(x)
          local loss = y:pow(2):mean()
          if i % 2 == 0 then tycho.no_grad(change, net, x, y) end
          local ok, err = pcall(loss.backward, loss)
          if not ok then assert.is_truthy(tostring(err):find("changed in place", 1, true), tostring(err)) end
          return ok, ok and net[1].weight.grad
        end
      end)
    end
  end)

  it("results that are changed in place, have hooks, or keep their gradient", function()
    replayed(same(function(compile)
      local net = mlp(4, 8, 2)
      local run = compile(net)
      return function()
        net:zero_grad()
        local y = run(tycho.randn(5, 4))
        y:retain_grad()
        local seen
        y:register_hook(function(g) seen = g:clone() return g * 3 end)
        local z = y * 1
        z:mul_(2):relu_()
        z:sum():backward()
        local w = run(tycho.randn(5, 4))
        w:mul_(2)
        w:sum():backward()
        return y.grad, seen, net[1].weight.grad
      end
    end), 16, 2)
  end)

  it("hooks of parameters and modules that come late", function()
    same(function(compile)
      local net = mlp(4, 8, 2)
      local run = compile(net)
      return function(i)
        if i == 4 then net[1].weight:register_hook(function(g) return g * 3 end) end
        if i == 6 then net[3].weight:register_post_accumulate_grad_hook(function(p) p.grad:mul_(2) end) end
        if i == 8 then net[2]:register_forward_hook(function(_, _, y) return y * 2 end) end
        if i == 10 then net[3]:register_full_backward_hook(function(_, into) return {into[1] * 5} end) end
        net:zero_grad()
        run(tycho.randn(5, 4)):pow(2):sum():backward()
        return net[1].weight.grad, net[3].weight.grad
      end
    end, 14)
  end)

  it("results that are arguments, leaves, or hold no history", function()
    same(function(compile)
      local w = nn.Parameter(tycho.randn(4))
      local run = compile(function(x, y) return x, y, w, x * w + y, x:detach(), x:gt(0) end)
      return function()
        w.grad = nil
        local x, y = tycho.randn(4):requires_grad_(), tycho.randn(4)
        local a, b, c, d, e, f = run(x, y)
        assert.is_true(rawequal(a, x) and rawequal(b, y) and rawequal(c, w))
        assert.is_false(e.requires_grad)
        d:sum():backward()
        return d, x.grad, w.grad, e, f
      end
    end)
  end)

  it("first calls without gradients, arguments that are parameters too, results given twice", function()
    same(function(compile)
      local net, kept = mlp(4, 8, 4), {}
      local run = compile(function(x)
        kept[#kept + 1] = x * 2
        local y = net(x)
        return y, y
      end)
      local w = nn.Parameter(tycho.randn(4, 4))
      local scaled = compile(function(x) return x * w end)
      return function(i)
        net:zero_grad()
        w.grad = nil
        local x = tycho.randn(5, 4)
        if i <= 3 then return tycho.no_grad(run, x) end
        if i == 4 then return tycho.no_grad(function() return tycho.enable_grad(run, x) end), kept[1] end
        local a, b = run(x)
        local c = scaled(i % 3 == 0 and w or tycho.ones(4, 4):requires_grad_())
        local loss = (a + b):pow(2):mean() + c:sum()
        loss:backward()
        return a, net[1].weight.grad, w.grad, kept[1], kept[4], kept[#kept]
      end
    end, 14)
  end)

  it("within another compiled function, and within a checkpoint", function()
    same(function(compile)
      local net = mlp(4, 8, 4)
      local opt, inner = optim.SGD(net:parameters(), {lr = 0.1}), compile(net)
      local step = compile(function(x)
        opt:zero_grad()
        local loss = inner(x):pow(2):mean()
        loss:backward()
        opt:step()
        return loss:detach()
      end)
      return function(i)
        local x = tycho.randn(5, 4)
        if i % 2 == 0 then return step(x), net[1].weight end
        opt:zero_grad()
        local y = tycho.utils.checkpoint(inner, x:requires_grad_())
        inner(y):pow(2):mean():backward()
        return y, x.grad, net[1].weight.grad
      end
    end, 20)
  end)

  it("runs as written where its tape holds what can't be given anew", function()
    local Twice = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function(_, g) return g * 2 end}
    local function round(fn)
      return function(compile)
        local net = mlp(4, 8, 4)
        local run = compile(function(x) return fn(net, x) end)
        return function()
          net:zero_grad()
          local y = run(tycho.randn(5, 4))
          y:pow(2):mean():backward()
          return y, net[1].weight.grad
        end
      end
    end
    as_written(same(round(function(net, x) return Twice(net(x)) end)), "autograd.Function")
    as_written(same(round(function(net, x) return tycho.utils.checkpoint(net, x) end)), "checkpoint")
    local kept
    as_written(same(function(compile)
      local net = mlp(4, 8, 4)
      local run = compile(function(x) kept = net(x) return kept * 2 end)
      return function()
        net:zero_grad()
        local y = run(tycho.randn(5, 4))
        local loss = y:sum() + kept:pow(2):sum()
        loss:backward()
        return y, net[1].weight.grad
      end
    end), "keeps")
    as_written(same(function(compile)
      local w = nn.Parameter(tycho.randn(4, 3))
      local run = compile(function() return w:t() end)
      return function()
        w.grad = nil
        run():pow(2):sum():backward()
        return w.grad
      end
    end), "view")
    as_written(same(function(compile)
      local net = mlp(4, 8, 4)
      local run = compile(function(x)
        local y = net(x)
        return y, y:view(-1)
      end)
      return function()
        net:zero_grad()
        local y, v = run(tycho.randn(5, 4))
        y:mul_(3)
        v:pow(2):sum():backward()
        return y, net[1].weight.grad
      end
    end), "share memory")
    as_written(same(function(compile)
      local w = nn.Parameter(tycho.randn(4))
      local run = compile(function(x)
        local l = (x * 2):detach():requires_grad_()
        return l * w, l
      end)
      return function()
        local y, l = run(tycho.randn(4))
        y:sum():backward()
        return l.grad, w.grad
      end
    end), "a leaf that the function makes")
  end)

  it("anomalies, hooks for what is saved, jacobians", function()
    same(function(compile)
      local net = mlp(4, 8, 3)
      local run = compile(net)
      return function(i)
        net:zero_grad()
        local x, n = tycho.randn(2, 4), 0
        if i % 4 == 0 then tycho.autograd.detect_anomaly(function() run(x):sum():backward() end)
        elseif i % 4 == 1 then
          local function count(t) n = n + 1 return t end
          tycho.autograd.graph.saved_tensors_hooks(count, function(t) return t end, function() run(x):sum():backward() end)
          assert.is_true(n > 0)
        elseif i % 4 == 2 then
          local jacobian = tycho.autograd.functional.jacobian
          return (jacobian(run, x)), (jacobian(run, x, {vectorize = true}))
        else run(x):sum():backward() end
        return net[1].weight.grad
      end
    end, 16)
  end)

  it("keeps no memory from call to call", function()
    local net = mlp(64, 64, 64)
    local run, opt = tycho.compile(net), optim.SGD(net:parameters(), {lr = 0.01})
    local function step()
      opt:zero_grad()
      run(tycho.randn(64, 64)):pow(2):mean():backward()
      opt:step()
    end
    for _ = 1, 6 do step() end
    local before = helper.collected()
    for _ = 1, 20 do step() end
    assert.is_true(helper.collected() <= before)
    for _ = 1, 5 do run(tycho.randn(64, 64)) end         -- no backward comes
    step()
    step()
    assert.is_true(helper.collected() <= before)
  end)

  it("where memory ends there is an error, nothing leaks, and the next call is right", function()
    local function sweep(before)                           -- so many calls before the one that fails
      return helper.failing_allocations(1, function()
        tycho.manual_seed(6)
        local net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
        local run, x = tycho.compile(net), tycho.randn(6, 4)
        local function step(f)
          net:zero_grad()
          f(x):pow(2):mean():backward()
          return net[1].weight.grad
        end
        for _ = 1, before do step(run) end
        return function() step(run) end, function()
          local want = step(net)
          for _ = 1, 3 do helper.close(step(run), want, "afterwards", 0) end
        end
      end)
    end
    local recorded, again = sweep(1), sweep(3)
    assert.is_true(recorded > 60 and again > 10, ("%d, %d failures"):format(recorded, again))
  end)
end)
