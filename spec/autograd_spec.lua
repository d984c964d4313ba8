-- The tape: accumulation, views and in-place changes, hooks, Functions, second derivatives, modes, memory.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"

local fails = helper.fails
local function leaf(v) return tycho.tensor(v, {dtype = "float64", requires_grad = true}) end

describe("autograd", function()
  it("accumulates into leaves, and hands out the same gradient each time", function()
    local x = leaf {1, 2}
    ;(x * x):sum():backward()
    ;(x * 3):sum():backward()
    assert.same({5, 7}, x.grad:totable())
    assert.is_true(x.grad == x.grad)
    assert.is_true(rawequal(x.grad, x.grad))
    x.grad = nil
    assert.is_nil(x.grad)
    fails("shape", function() x.grad = tycho.ones(3, {dtype = "float64"}) end)
  end)

  it("gives .grad memory of its own", function()
    local x, y = leaf {1, 2}, leaf {3, 4}
    ;(x + y):sum():backward()
    x.grad:fill_(9)
    assert.same({1, 1}, y.grad:totable())
    local g = tycho.ones(2, {dtype = "float64"})
    local z = leaf {1, 1}
    ;(z + 0):backward(g)
    z.grad:fill_(5)
    assert.same({1, 1}, g:totable())
  end)

  it("takes several gradients of the outputs at once", function()
    local x, w = leaf {1, 2, 3}, leaf {4}
    local y = x * x * w
    local jacobian = tycho.grad(y, x, tycho.eye(3, {dtype = "float64"}), {is_grads_batched = true, retain_graph = true})
    assert.same({{8, 0, 0}, {0, 16, 0}, {0, 0, 24}}, jacobian:totable())
    local none, some = tycho.zeros(2, 3, {dtype = "float64"}), tycho.tensor({1, 2}, {dtype = "float64"})
    local both = tycho.grad({y, y:sum()}, {x, w}, {grad_outputs = {none, some}, is_grads_batched = true})
    assert.same({{8, 16, 24}, {16, 32, 48}}, both[1]:totable())
    assert.same({{14}, {28}}, both[2]:totable())
    fails("gradient 1 must have one dim in front of the output's shape 3", tycho.grad, x * 2, x, x:detach(), {is_grads_batched = true})
  end)

  it("requires_grad_() leaves a result a result", function()
    local x = leaf {1, 2}
    local y = (x * 2):requires_grad_()
    assert.is_false(y.is_leaf)
    assert.same({3, 3}, tycho.grad((y * 3):sum(), y):totable())
    ;(y * 3):sum():backward()
    assert.same({6, 6}, x.grad:totable())
    local v = tycho.ones(4):requires_grad_():view(2, 2):requires_grad_()
    assert.is_false(v.is_leaf)
    fails("detach", function() y:requires_grad_(false) end)
  end)

  it("wants a gradient for more than one element", function()
    local x = leaf {1, 2}
    fails("one element", function() (x * 2):backward() end)
    fails("doesn't require grad", function() tycho.ones(1):backward() end)
    fails("must be 2", function() (x * 2):backward(tycho.ones(3, {dtype = "float64"})) end)
  end)

  it("frees the graph unless told to keep it", function()
    local x = leaf {2}
    local y = (x * x):sum()
    y:backward({retain_graph = true})
    y:backward()
    assert.same({8}, x.grad:totable())
    fails("retain_graph", function() y:backward() end)
  end)

  it("notices saved tensors that were changed in place", function()
    local x = leaf {1, 2}
    local y = x * 2
    local z = (y * y):sum()
    y:add_(1)
    fails("changed in place", function() z:backward() end)
    local v = leaf {1, 2}
    local e = v:exp()
    e:mul_(2)
    fails("changed in place", function() e:sum():backward() end)
    fails("leaf", function() v:add_(1) end)
    fails("leaf", function() v[1] = 3 end)
    tycho.no_grad(function() v:add_(1) end)
    assert.same({2, 3}, v:totable())
  end)

  it("differentiates in-place ops, also of what they overwrite", function()
    local x, w = leaf {1, 2}, leaf {3, 4}
    local y = x * 1
    y:mul_(w)
    y:mul_(y)
    y:sum():backward()
    assert.same({2 * 1 * 9, 2 * 2 * 16}, x.grad:totable())
    assert.same({2 * 3 * 1, 2 * 4 * 4}, w.grad:totable())
  end)

  it("rewrites the history of the base and its other views", function()
    local x, v = leaf {{1, 2}, {3, 4}}, leaf {5, 6}
    local y = x * 2
    local row, column = y[1], y[{ {}, 2 }]
    row:copy_(v * 3)
    assert.same({18, 8}, column:totable())
    ;(column * tycho.tensor({10, 100}, {dtype = "float64"})):sum():backward({retain_graph = true})
    assert.same({0, 30}, v.grad:totable())
    assert.same({{0, 0}, {0, 200}}, x.grad:totable())
    local z = tycho.zeros(2, 2, {dtype = "float64"})
    z[{ {}, 1 }] = v
    z:t()[2]:add_(v)
    ;(z * tycho.tensor({{1, 2}, {3, 4}}, {dtype = "float64"})):sum():backward()
    assert.same({1 + 2, 30 + 3 + 4}, v.grad:totable())
    local b = leaf {1, 2, 3}
    local c = b * 1
    c[c:gt(1.5)] = 0
    c:sum():backward()
    assert.same({1, 0, 0}, b.grad:totable())
  end)

  it("differentiates in-place changes of bases in any memory order", function()
    local x = tycho.rand(2, 3, {dtype = "float64", requires_grad = true})      -- exp of larger ones leaves differences few digits
    local function fn(a)
      local t = (a * 1):t():contiguous():t() * a
      t[{ {}, 2 }]:mul_(a[1]:sum())
      t[1]:exp_()
      return t
    end
    assert.is_true(tycho.autograd.gradcheck(fn, {x}))
    assert.is_true(tycho.autograd.gradgradcheck(fn, {x}))
  end)

  it("has second derivatives", function()
    local x = leaf {0.5, 1.5}
    local g = tycho.grad((x ^ 3):sum(), x, {create_graph = true})
    local h = tycho.grad(g:sum(), x)
    helper.close(h, x:detach() * 6)
    local gs = tycho.grad({x:sin():sum()}, {x})
    helper.close(gs[1], x:detach():cos())
    local y = leaf {1}
    fails("wasn't used", tycho.grad, x:sum(), {y})
    assert.is_nil(tycho.grad(x:sum(), y, {allow_unused = true}))
  end)

  it("gives gradients of results, not only of leaves", function()
    local x = leaf {1, 2}
    local y = x * 2
    local g = tycho.grad((y * y):sum(), {x, y})
    assert.same({8, 16}, g[1]:totable())
    assert.same({4, 8}, g[2]:totable())
    assert.is_nil(x.grad)
  end)

  it("runs hooks on leaves and results", function()
    local x, seen = leaf {1, 2}, {}
    local y = x * 2
    y:register_hook(function(g) seen.y = g:totable() return g * 10 end)
    local handle = x:register_hook(function(g) seen.x = g:totable() end)
    y:sum():backward()
    assert.same({1, 1}, seen.y)
    assert.same({20, 20}, seen.x)
    assert.same({20, 20}, x.grad:totable())
    handle.remove()
    seen.x = nil
    ;(x * 1):sum():backward()
    assert.is_nil(seen.x)
    x:register_hook(function() error("from a hook") end)
    fails("from a hook", function() (x * 1):sum():backward() end)
    fails("doesn't require grad", function() tycho.ones(1):register_hook(print) end)
  end)

  it("keeps hooks and Function contexts while they are needed, and no longer", function()
    local hit = 0
    local x = leaf {1}
    local z = (function()
      local y = x * 2
      y:register_hook(function() hit = hit + 1 end)
      return y * 3 + 1
    end)()
    collectgarbage() collectgarbage()
    z:backward()
    assert.equal(1, hit)
    -- a hook that comes after the tensor was used, on a result and on a leaf whose handles then go
    for _, make in ipairs {function() return x * 2 end, function() return leaf {1} end} do
      local used = (function()
        local y = make()
        local later = y * 3
        y:register_hook(function(g) hit = hit + g:item() end)
        return later
      end)()
      collectgarbage() collectgarbage()
      hit = 0
      used:backward()
      assert.equal(3, hit)
    end
    -- and it goes with its tensor's part in the tape
    local gone = setmetatable({}, {__mode = "v"})
    do
      local later = (function()
        local y = x * 2
        local used = y * 3
        local big = {}
        gone[1] = big
        y:register_hook(function() return big[1] end)
        return used
      end)()
      collectgarbage() collectgarbage()
      assert.is_table(gone[1])
      assert.is_true(later.requires_grad)
    end
    collectgarbage() collectgarbage()
    local _ = x + 1                        -- a call lets go what was dropped
    collectgarbage() collectgarbage()
    assert.is_nil(gone[1])
    local F = tycho.autograd.Function {forward = function(ctx, a) ctx:save_for_backward(a) return a * 2 end,
      backward = function(ctx, g) return g * ctx:saved_tensors() end}
    collectgarbage() collectgarbage()
    local before = core.allocated()
    for _ = 1, 10 do F(x):sum():backward() end
    x.grad = nil
    helper.collected()
    assert.is_true(core.allocated() <= before + 64)
  end)

  it("runs autograd.Function", function()
    local F = tycho.autograd.Function {
      forward = function(ctx, x, k) ctx:save_for_backward(x) ctx.k = k return x * k, x + k end,
      backward = function(ctx, g, h) local x = ctx:saved_tensors() return g * ctx.k + h * x:gt(-1e9) end}
    local x = leaf {1, 2}
    local a, b = F(x, 3)
    ;(a.sum(a) + b:sum() * 2):backward()
    assert.same({5, 5}, x.grad:totable())
    x.grad = nil
    local a2 = F(x, 3)
    collectgarbage()
    a2:sum():backward()
    assert.same({3, 3}, x.grad:totable())
    assert.is_true(tycho.autograd.gradcheck(function(v) return (F(v, 2)) end, {leaf {1, 2}}))
    local bad = tycho.autograd.Function {forward = function(_, v) return v * 1 end, backward = function() error("in backward") end}
    fails("in backward", function() bad(x):sum():backward() end)
    assert.is_false(tycho.no_grad(function() return F(x, 1) end).requires_grad)
  end)

  it("keeps modes to their coroutine, and restores them after errors", function()
    assert.is_true(tycho.is_grad_enabled())
    fails("boom", tycho.no_grad, function() error("boom") end)
    assert.is_true(tycho.is_grad_enabled())
    local co = coroutine.wrap(function()
      tycho.no_grad(function() coroutine.yield(tycho.is_grad_enabled()) end)
      coroutine.yield(tycho.is_grad_enabled())
    end)
    assert.is_false(co())
    assert.is_true(tycho.is_grad_enabled())
    assert.is_true(co())
    coroutine.resume(coroutine.create(function() tycho.no_grad(coroutine.yield) end))   -- and dropped
    collectgarbage() collectgarbage()
    for _ = 1, 50 do assert.is_true(coroutine.wrap(tycho.is_grad_enabled)()) end
    assert.same({1, nil, 3}, {tycho.no_grad(function(...) return ... end, 1, nil, 3)})
    assert.is_true(tycho.no_grad(function() return tycho.enable_grad(tycho.is_grad_enabled) end))
  end)

  it("frees a long chain of ops without deep recursion", function()
    local x = tycho.ones(1, {requires_grad = true})
    local y = x
    for _ = 1, helper.many do y = y + 0 end
    y:backward()
    assert.equal(1, x.grad:item())
    y = nil    -- luacheck: ignore
    x.grad = nil
    collectgarbage() collectgarbage()
    local before = core.allocated()
    do
      local z = x
      for _ = 1, helper.many do z = z * x end     -- never run backward: freed by the collector alone
    end
    helper.collected()
    assert.is_true(core.allocated() <= before + 64, ("%d bytes left"):format(core.allocated() - before))
  end)

  it("frees what the tape saved as backward goes", function()
    collectgarbage() collectgarbage()
    local x = tycho.ones(1000, {requires_grad = true})
    local base = core.allocated()
    local loss = tycho.scope(function()
      local y = x
      for _ = 1, 20 do y = y:exp():log() end
      return y:sum()
    end)
    assert.is_true(core.allocated() > base + 20 * 4000)
    loss:backward()
    assert.is_true(core.allocated() <= base + 2 * 4000 + 64)
  end)

  it("gives gradients of the gradients of what is computed again", function()
    local as = {dtype = "float64", requires_grad = true}
    local w, b = tycho.randn(4, 3, as), tycho.randn(4, as)
    local function f(x) return (x:matmul(w:t()) + b):tanh() ^ 2 end
    local start = tycho.randn(2, 3, {dtype = "float64"})
    -- a penalty on gradients of the input and of a weight; its own gradients, and the first ones
    local function penalty(call)
      local x = start:clone():requires_grad_()
      local gx, gw = unpack(tycho.grad((call(x) ^ 2):sum(), {x, w}, {create_graph = true}))
      w.grad, b.grad = nil, nil
      ;((gx:norm() - 1) ^ 2 + (gw ^ 2):sum()):backward()
      return {gx:detach(), gw:detach(), x.grad, w.grad, b.grad}
    end
    local function through(run)
      return {
        function(x) return run(f, x) end,
        function(x) return run(function(y) return run(f, y):sin() end, x * x) end,
        function(x) return run(function(t) return {f(t.x), t.x * w:sum()} end, {x = x})[1] end}
    end
    local kept, again = through(function(g, ...) return g(...) end), through(tycho.utils.checkpoint)
    for i, call in ipairs(again) do
      local want = penalty(kept[i])
      for k, g in ipairs(penalty(call)) do helper.close(g, want[k], ("way %d, gradient %d"):format(i, k), 1e-9) end
    end
    local x = start:clone():requires_grad_()
    assert.is_true(tycho.autograd.gradgradcheck(function(p, q)
      return tycho.utils.checkpoint(function(u, v) return (u * v):exp(), u:sin() * v end, p, q)
    end, {x, tycho.randn(2, 3, as)}))
    local once = tycho.grad(tycho.utils.checkpoint(f, x):sum(), x, {create_graph = true}):square():sum()
    x.grad, w.grad = nil, nil
    once:backward {retain_graph = true}
    local gx, gw = x.grad:clone(), w.grad:clone()
    once:backward()
    helper.close(x.grad, gx * 2, "the same again", 1e-12)
    helper.close(w.grad, gw * 2, "the same again, of what is used besides", 1e-12)
    x.grad, w.grad = nil, nil
    tycho.utils.checkpoint(f, x):sum():backward {create_graph = true}
    local second, first = tycho.grad(x.grad:square():sum(), w), x.grad:detach()
    x.grad, w.grad = nil, nil
    f(x):sum():backward {create_graph = true}
    helper.close(first, x.grad:detach(), "backward with a graph", 1e-12)
    helper.close(second, tycho.grad(x.grad:square():sum(), w), "of backward's gradient", 1e-12)
    x.grad, w.grad, b.grad = nil, nil, nil
    local g = tycho.grad(tycho.utils.checkpoint(f, x):sum(), x, {create_graph = true})
    fails("there is no third derivative", tycho.grad, g:sum(), x, {create_graph = true})
  end)

  it("computes again what was checkpointed, with the same random numbers", function()
    tycho.manual_seed(4)
    local w, x = leaf {{1, 2}, {3, 4}}, leaf {{0.5, 1}}
    local function f(v, k) return tycho.dropout(v:matmul(w), 0.5):sin() * k end
    f(x, 3):sum():backward()
    local want_w, want_x = w.grad, x.grad
    w.grad, x.grad = nil, nil
    tycho.manual_seed(4)
    tycho.utils.checkpoint(f, x, 3):sum():backward()
    helper.close(w.grad, want_w)
    helper.close(x.grad, want_x)
    w.grad = nil
    tycho.utils.checkpoint(f, x:detach(), 1):sum():backward()
    assert.is_truthy(w.grad, "also where no argument requires grad")
    fails("must be a function", tycho.utils.checkpoint, 3)
    local layers = {tycho.sin, function(v) return v * 2 end, tycho.exp}
    local z = leaf {0.1, 0.2}
    local whole = tycho.grad(((z:sin() * 2):exp()):sum(), z)
    for segments = 1, 4 do
      assert.is_true(whole:equal(tycho.grad(tycho.utils.checkpoint_sequential(layers, segments, z):sum(), z)))
    end
    fails("function 2 must be callable, got 3", tycho.utils.checkpoint_sequential, {tycho.sin, 3}, 2, z)
  end)

  it("computes again under the autocast it had, and changes running statistics once", function()
    local nn = tycho.nn
    for _, o in ipairs {{}, {amp = true}, {segments = 3}, {segments = 3, amp = true}, {nested = true}, {compile = true}} do
      local function run(checkpointed)
        tycho.manual_seed(4)
        local net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 8),
          nn.BatchNorm1d(8), nn.GELU(), nn.Linear(8, 2))
        local x = tycho.randn(16, 6)
        local model = net
        if checkpointed then
          model = o.nested and
            function(v) return tycho.utils.checkpoint(function(u) return tycho.utils.checkpoint(net, u) * 1 end, v) end or
            nn.Checkpoint(net, {segments = o.segments or 1})
        end
        local opt = tycho.optim.SGD(net:parameters(), {lr = 0.1})
        local function step(v)
          local y
          tycho.amp.autocast({dtype = "bfloat16", enabled = o.amp or false, device = helper.device}, function() y = model(v) end)
          local loss = y:float():square():mean()
          opt:zero_grad()
          loss:backward()
          opt:step()
          return loss
        end
        if o.compile then step = tycho.compile(step) end
        local losses = {}
        for k = 1, 4 do losses[k] = step(x):item() end
        return losses, net:state_dict(), model, tycho.rand(1):item()
      end
      local losses, state, _, after = run(false)
      local again, state2, model, after2 = run(true)
      assert.same(losses, again)
      assert.equal(after, after2)
      for k, v in pairs(state) do assert.is_true(v:equal(state2[k]), k) end
      if not o.nested and not o.compile then assert.is_true(model.saved_bytes > 16 * 8 * 4 * 2, model.saved_bytes) end
    end
    fails("must be a module", tycho.nn.Checkpoint, 3)
    local w, u = tycho.randn(3, 3, {requires_grad = true}), tycho.randn(2, 3, {requires_grad = true})
    local function f(v) return v:matmul(w):tanh() end
    helper.close(tycho.grad(tycho.utils.checkpoint(f, u):sum(), u), (tycho.grad(f(u):sum(), u)))
    assert.is_nil(w.grad, "grad leaves .grad alone")
    -- w within alone; within and without; deeper
    for _, fn in ipairs {function(cut) return cut(f, u):sum() end, function(cut) return (f(cut(f, u)) + cut(f, u)):sum() end,
      function(cut) return cut(function(v) return cut(f, v:detach()) * cut(function(t) return cut(f, t) end, v) end, u):sum() end} do
      helper.close(tycho.grad(fn(tycho.utils.checkpoint), w), (tycho.grad(fn(function(g, v) return g(v) end), w)),
        "what it uses besides its arguments")
    end
    assert.is_nil(w.grad)
    fails("input 1 wasn't used", tycho.grad, tycho.utils.checkpoint(f, u):sum(), tycho.ones(1, {requires_grad = true}))
    fails("segments= is for a Sequential, got a Linear", tycho.nn.Checkpoint, tycho.nn.Linear(1, 1), {segments = 2})
  end)

  it("keeps nothing of what it computes again, nor its arguments once backward has passed", function()
    local nn, layers, mb = tycho.nn, {}, 2 ^ 20
    for i = 1, 4 do layers[i] = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU()) end
    local x = tycho.randn(16384, 16)                                           -- 1 MB, as each value is
    local function run()
      collectgarbage() collectgarbage() collectgarbage "stop"                  -- nothing waits for the collector
      local base = core.allocated()
      local forward
      function forward(h, i) return i > 4 and h:sum() or forward(tycho.utils.checkpoint(layers[i], h), i + 1) end
      local loss = forward(x, 1)
      local before = core.allocated()
      loss:backward()
      local after = core.allocated()
      collectgarbage() collectgarbage()
      assert.is_true(loss.requires_grad)
      return (after - before) / mb, (core.allocated() - base) / mb
    end
    local more, held = run()
    collectgarbage "restart"
    assert.is_true(more < 4.5, more)                                           -- the parts' results, which fn may have kept
    assert.is_true(held < 0.5, held)
    -- what the function keeps, and its hooks and Functions, is the user's
    local stash, net = {}, nn.Linear(4, 4)
    local Keeps = tycho.autograd.Function {
      forward = function(ctx, t) ctx.y = t:exp() return ctx.y * 1 end, backward = function(ctx, g) return g * ctx.y end}
    net:register_forward_hook(function(_, _, y) stash.hook = y end)
    local input = tycho.ones(2, 4, {requires_grad = true})
    tycho.utils.checkpoint(function(u)
      stash.argument, stash.state = u, net(u):detach()
      return Keeps(net(u)):sum()
    end, input):backward()
    for _, name in ipairs {"hook", "argument", "state"} do assert.equal("2x4", tostring(stash[name].shape)) end
    assert.is_true(input.grad:ne(0):all():item())
    local kept
    local loss = tycho.utils.checkpoint(function(v)
      v:register_hook(function(g) kept = g * 2 end)
      return layers[1](v)
    end, layers[2](x)):sum()
    loss:backward {retain_graph = true}
    assert.equal("16384x16", tostring(kept.shape))
    loss:backward()
    fails("used by an earlier backward", loss.backward, loss)
  end)

  it("gives the same bits however a network is cut into segments: 1,000 times at random", function()
    local nn, times = tycho.nn, helper.device == "cpu" and 1000 or 30
    local random = helper.drawer(11)
    local net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 6), nn.LayerNorm(6), nn.GELU(),
      nn.Dropout(0.2), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
    local x, n = tycho.randn(5, 4):requires_grad_(), #net
    -- layers from .. to, cut at random places, some parts computed again, some of those with parts in them
    local function cut(from, to, depth)
      local steps, at = {}, from
      while at <= to do
        local last = at + random(to - at + 1) - 1
        local a, b = at, last
        if depth < 3 and random(3) == 1 and b > a then steps[#steps + 1] = {cut(a, b, depth + 1), random(2) == 1}
        else
          steps[#steps + 1] = {function(v)
            for i = a, b do v = net[i](v) end
            return v
          end, random(3) > 1}
        end
        at = last + 1
      end
      return function(v)
        for _, s in ipairs(steps) do
          if s[2] then v = tycho.utils.checkpoint(s[1], v) else v = s[1](v) end
        end
        return v
      end
    end
    local function gradients(model)
      tycho.manual_seed(9)
      net:zero_grad()
      x.grad = nil
      local y = model(x)
      y:square():sum():backward()
      local out = {y:detach(), x.grad}
      for _, p in ipairs(net:parameters()) do out[#out + 1] = p.grad end
      return out
    end
    local want = gradients(net)
    for k = 1, times do
      local got = gradients(cut(1, n, 1))
      for i = 1, #want do assert.is_true(want[i]:equal(got[i]), ("segmentation %d, value %d"):format(k, i)) end
    end
  end)

  it("finds wrong gradients", function()
    local wrong = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function(_, g) return g * 3 end}
    fails("gradcheck: input 1, element 1", tycho.autograd.gradcheck, wrong, {leaf {1}})
    fails("float64", tycho.autograd.gradcheck, function(x) return x end, {tycho.ones(1, {requires_grad = true})})
  end)

  it("detaches, and takes tensors with views of leaves", function()
    local x = leaf {{1, 2}, {3, 4}}
    local d = x:detach()
    assert.is_false(d.requires_grad)
    assert.is_true(d:shares_memory(x))
    x[1]:sum():backward()
    assert.same({{1, 1}, {0, 0}}, x.grad:totable())
    assert.is_true(x.is_leaf)
    assert.is_false((x * 1).is_leaf)
    fails("detach", function() (x * 1).requires_grad = false end)
    fails("floating", function() tycho.tensor({1}, {dtype = "int64"}).requires_grad = true end)
  end)

  it("parts of a tensor add up in one gradient, as by the rules of slice and select", function()
    local x0 = tycho.randn(4, 6, 3, {dtype = "float64"})
    local parts = {
      function(x) return x[{ {}, {2, 5} }] end, function(x) return x[{ {}, {1, 6, 2} }] end, function(x) return x:select(3, -1) end,
      function(x) return x[2] end, function(x) return x:transpose(1, 3)[{ {2, 3} }] end, function(x) return x:narrow(2, 3, 1) end,
      function(x) return x[{ {3, 2} }] end, function(x) return x * 1 end, function(x) return x:flatten():select(1, 7) end}
    for first = 1, #parts do                 -- each as the one that comes first, also after a gradient that others hold
      local function loss(x)
        local y, sum = x * 2, 0
        for k = 0, #parts - 1 do sum = (parts[(first + k - 1) % #parts + 1](y):sin() * (k + 1)):sum() + sum end
        return sum + y:sum()
      end
      local x, z = x0:clone():requires_grad_(), x0:clone():requires_grad_()
      loss(x):backward()
      local by_rules = tycho.grad(loss(z), z, {create_graph = true})
      helper.close(x.grad, by_rules, "starting with part " .. first, 1e-12)
    end
    local z = tycho.zeros(3, 2, {requires_grad = true})
    local twice = z[{ {1, 2} }]
    twice:register_hook(function(g) return g * 10 end)
    ;(twice:sum() + z[2]:sum()):backward()
    assert.same({{10, 10}, {11, 11}, {0, 0}}, z.grad:totable())
  end)

  it("a leaf that took other data between two slices gets an error or a gradient, never a stray write", function()
    local z = tycho.zeros(2000, 100, {requires_grad = true})
    local y = z[2]
    core.set_data(z, tycho.zeros(1, 100))
    local ok, err = pcall(function() (y:sum() + z[1]:sum()):backward() end)
    assert.is_true(ok or err:find("shape") ~= nil, tostring(err))
  end)

  it("takes gradients of any number of inputs", function()
    local list = {}
    for i = 1, 5000 do list[i] = tycho.ones(1):requires_grad_() end
    local g = tycho.grad(tycho.cat(list):sum(), list)
    assert.equal(5000, #g)
    assert.equal(1, g[5000]:item())
  end)

  it("a norm of 0 has a second derivative", function()
    local x = tycho.tensor({{1, 2}, {3, 5}}, {requires_grad = true})
    for _, fn in ipairs {tycho.cdist, function(a) return tycho.pdist(tycho.cat({a, a}, 1)) end,
        function(a) return (a - a):norm(2, 1) end} do
      x.grad = nil
      local g = tycho.grad(fn(x, x):sum(), x, {create_graph = true})
      local s = g:pow(2):sum()
      s:backward()
      assert.is_true(x.grad:abs():max():item() < 1e-5)
    end
  end)

  it("a tensor that is overwritten has a gradient of zeros, and so has what probabilities are made of", function()
    for _, overwrite in ipairs {function(q, v) q:copy_(v) end, function(q, v) q[{ {} }] = v end, function(q, v) q[{"..."}] = v end,
        function(q, v) q[{ {1, 3} }] = v end, function(q) q:copy_(tycho.ones(3)) end} do
      local b, v = tycho.ones(3, {requires_grad = true}), tycho.ones(3, {requires_grad = true})
      local q = b * 1
      overwrite(q, v)
      q:sum():backward()
      helper.close(b.grad, tycho.zeros(3), "what was there", 0)
      if v.grad then helper.close(v.grad, tycho.ones(3), "what came", 0) end
    end
    local x = tycho.zeros(2, {requires_grad = true})
    tycho.bernoulli(x:sigmoid()):sum():backward()
    helper.close(x.grad, tycho.zeros(2), "a draw", 0)
  end)
end)
