-- Activation checkpointing within compiled functions: the same bits as without compile, in less memory.
local tycho = require "tycho"
local helper = require "spec.helper"
local core = require "tycho.core"
local nn, optim, F = tycho.nn, tycho.optim, tycho.nn.functional
local checkpoint = tycho.utils.checkpoint
local same, compiled = helper.compiled_same, helper.compiled

-- A training step of `forward(layers, x)` over n layers with dropout, and the state to compare.
local function training(forward, o)
  o = o or {}
  local layers = {}
  for i = 1, 3 do layers[i] = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3), nn.Tanh(), nn.LayerNorm(6)) end
  local net = nn.ModuleList(layers)
  local opt = optim.AdamW(net:parameters(), {lr = 0.05})
  local calls = 0
  return function(x)
    calls = calls + 1
    if not (o.every and calls % o.every > 0) then opt:zero_grad() end
    local loss = F.mse_loss(forward(layers, x, calls), x)
    loss:backward()
    opt:step()
    return loss:detach()
  end, function() return net:parameters() end, function() return {tycho.randn(4, 6)} end
end

describe("checkpoint", function()
  it("behind the library's layers in a Sequential has its input, and a user's module within keeps what it keeps", function()
    local a, b, x = nn.Linear(4, 4), nn.Linear(4, 4), tycho.randn(2, 4)
    local function grads(net)
      net(x):sum():backward()
      local out = {a.weight.grad, b.weight.grad}
      a.weight.grad, b.weight.grad = nil, nil
      return out
    end
    local expected = grads(nn.Sequential(a, nn.Tanh(), b))
    for i, g in ipairs(grads(nn.Sequential(a, nn.Tanh(), nn.Checkpoint(b)))) do assert.is_true(g:equal(expected[i])) end
    local Keep = nn.Module:extend("Keep")
    function Keep:forward(y)
      self.last = y
      return y * 2
    end
    local keep = Keep()
    nn.Sequential(nn.Tanh(), nn.Checkpoint(keep))(x)
    assert.is_true(keep.last:equal(x:tanh()))
  end)

  it("gives a GradScaler's gradients to what others use too", function()
    local a, b, x = nn.Linear(4, 4), nn.Linear(4, 4), tycho.randn(2, 4)
    local function grads(way)
      local h = a(x)
      local loss = (h * 2 + way(b, h) + way(a, h)):sum()
      tycho.amp.GradScaler {init_scale = 8}:scale(loss):backward()
      local out = {a.weight.grad, b.weight.grad}
      a.weight.grad, b.weight.grad = nil, nil
      return out
    end
    local expected = grads(function(f, h) return f(h) end)
    for i, g in ipairs(grads(checkpoint)) do
      helper.close(g, expected[i])
      helper.fails("is scaled by a GradScaler", g.add_, g, 1)
    end
  end)

  local function plain(fn, ...) return fn(...) end

  it("calls hooks of what it uses once, with whole gradients", function()
    local layer, x = nn.Linear(3, 3), tycho.randn(2, 3)
    local function run(way)
      local seen, handles = {}, {}
      for i, p in ipairs(layer:parameters()) do
        p.grad = nil
        handles[#handles + 1] = p:register_post_accumulate_grad_hook(function() seen[#seen + 1] = p.grad:clone() end)
        handles[#handles + 1] = p:register_hook(function(g) return g:clamp(-0.1 * i, 0.1) end)
      end
      local y = x
      for _ = 1, 3 do y = way(function(v) return layer(v):tanh() end, y) end            -- one layer in three parts
      y:sum():backward()
      for _, h in ipairs(handles) do h.remove() end
      return seen
    end
    local want, got = run(plain), run(checkpoint)
    assert.equal(2, #got)
    for i, g in ipairs(got) do helper.close(g, want[i]) end
  end)

  it("has gradients for tensors computed before that it uses besides its arguments", function()
    local w, x = tycho.randn(4, 4, {requires_grad = true}), tycho.randn(4, 4)
    local Cond = nn.Module:extend "Cond"
    function Cond:forward(y) return y * self.scale + self.shift end
    for name, of in pairs {
      ["in several parts, and outside"] = function(way)
        local bias, y = w:tanh(), x
        for _ = 1, 3 do y = way(function(v) return v * 2 + bias end, y) end
        return y * bias
      end,
      ["one that comes from another"] = function(way)
        local a = w:sin()
        local b = a * 2
        return way(function(v) return v * a * b + w end, x)
      end,
      ["in a module's fields, under two handles"] = function(way)
        local net, y = Cond(), w:cos()
        net.scale, net.shift = y, y
        return way(net, x) + way(net, w)
      end,
      ["an argument that is used besides"] = function(way)
        local y = w * 3
        return way(function(v) return v * y end, y)
      end,
      ["given back as it is"] = function(way)
        local y = w * 3
        return way(function() return y end, x) * 2 + way(function(v) return v end, y)
      end,
      ["indexed, and nested"] = function(way)
        local y = w:exp()
        return way(function(v) return way(function(u) return u * y[2] + y[{ {1, 2} }]:sum() end, v) * y[{3, "..."}] end, x)
      end,
      ["by a Function"] = function(way)
        local y = w:exp()
        local Twice = tycho.autograd.Function {forward = function(_, t) return t * 2 end, backward = function(_, g) return g * 2 end}
        return way(function(v) return v + Twice(y) end, x)
      end,
      ["without an argument"] = function(way) return way(function() return w:square() end) end} do
      local function grad(way, how)
        w.grad = nil
        local sum = of(way):sum()
        if how then return tycho.grad(sum, w) end
        sum:backward {retain_graph = true}
        sum:backward()
        return w.grad
      end
      helper.close(grad(checkpoint), grad(plain), name)
      helper.close(grad(checkpoint, true), grad(plain, true), name .. ", by grad")
    end
    -- what ends before backward, what fn records or makes itself
    local l1, l2 = nn.Linear(4, 4), nn.Linear(4, 4)
    for name, of in pairs {
      ["an argument that a scope ends"] = function(way) return tycho.scope(function() return way(l2, l1(x)):sum() end) end,
      ["an argument that is freed"] = function(way)
        local h = l1(x)
        local y = way(function(u) return u:tanh() end, h)
        if way == checkpoint then h:free() end
        return y:sum()
      end,
      ["recording within"] = function(way)
        return way(function(u) return tycho.enable_grad(function() return u * l1.weight:sum() end) end, x):sum()
      end,
      ["gradients within"] = function(way)
        return way(function(u)
          return tycho.enable_grad(function()
            local leaf = u:detach():requires_grad_()
            return tycho.grad(l1(leaf):tanh():sum(), leaf, {create_graph = true})
          end)
        end, x):sum()
      end,
      ["a coroutine within"] = function(way)
        return way(function(u) return coroutine.wrap(function() return u * l1.weight:sum() end)() end, x):sum()
      end,
      ["its own leaves, freed and in a scope"] = function(way)
        return way(function(u)
          local p = tycho.ones(4):requires_grad_()
          local y = l1(u) * p
          p:free()
          return tycho.scope(function() return y * tycho.ones(4):requires_grad_() end)
        end, x):sum()
      end} do
      local function grad(way)
        l1:zero_grad()
        of(way):backward()
        return l1.weight.grad
      end
      helper.close(grad(checkpoint), grad(plain), name)
    end
    local state = l1(x)
    local late = checkpoint(function(u) return u * state end, x)
    state = state * 2
    helper.fails("wasn't read the first time", function() late:sum():backward() end)
    local lazy = nn.LazyLinear(4)
    checkpoint(lazy, x):square():sum():backward()
    local as_lazy = lazy.weight.grad
    lazy:zero_grad()
    lazy(x):square():sum():backward()
    helper.close(as_lazy, lazy.weight.grad, "a layer whose first input it is")
    local hooked
    l1:zero_grad()
    checkpoint(function(u)
      local h = u * l1.weight
      h:register_hook(function(g) hooked = true return g * 2 end)
      h:retain_grad()
      return h * 3
    end, x):sum():backward()
    helper.close(l1.weight.grad, x * 6, "a hook within")
    assert.is_true(hooked)
    local freed, again = l1(x), 0
    late = checkpoint(function(u)
      again = again + 1
      local y = u * freed + l2.weight
      if again == 2 then freed:free() end
      return y
    end, x)
    l2:zero_grad()
    late:sum():backward()
    assert.is_true(l2.weight.grad:eq(1):all():item())
    assert.is_true(l2.weight.is_leaf)
    local many = {}
    for i = 1, helper.simulated and 50 or 9000 do many[i] = tycho.ones(1, {requires_grad = true}) end
    checkpoint(function(u)
      for _, p in ipairs(many) do u = u + p end
      return u
    end, tycho.ones(1)):sum():backward()
    assert.equal(1, many[#many].grad[1])

    -- coroutines within checkpoints of their own; one that is dropped there; functions that err
    local function pausing(p)
      local first = true
      return checkpoint(function(u)
        local a = u * p
        if first then
          first = false
          coroutine.yield()
        end
        return a * p:sin()
      end, x)
    end
    local function coroutines(p)
      return coroutine.wrap(function() pausing(p):sum():backward() end)
    end
    local v = tycho.randn(4, 4, {requires_grad = true})
    w.grad = nil
    local one, other = coroutines(w), coroutines(v)
    for _ = 1, 2 do one() other() end
    for _, p in ipairs {w, v} do
      local want = tycho.grad((x * p * p:sin()):sum(), p)
      helper.close(p.grad, want, "in a coroutine")
    end
    -- one that begins a checkpoint goes on within another's
    w.grad, v.grad = nil, nil
    local begun = coroutine.wrap(pausing)
    begun(v)
    local inner
    checkpoint(function(u)
      inner = inner or begun()
      return u * w
    end, x):sum():backward()
    inner:sum():backward()
    helper.close(w.grad, x, "around another's")
    helper.close(v.grad, tycho.grad((x * v * v:sin()):sum(), v), "begun before it")
    coroutines(w)()
    collectgarbage()
    helper.fails("in forward", checkpoint, function() error "in forward" end)
    local runs = 0
    local twice = checkpoint(function(u)
      runs = runs + 1
      if runs == 2 then error "in backward" end
      return u * w
    end, x)
    helper.fails("in backward", function() twice:sum():backward() end)
    assert.is_true(w.requires_grad and w.is_leaf)
    w.grad = nil
    checkpoint(function(u) return u * w end, x):sum():backward()
    helper.close(w.grad, x, "afterwards")

    w.grad = nil
    local net = Cond()
    local f = tycho.compile(function(y)
      w.grad = nil
      net.scale, net.shift = w:cos(), w:sin()
      checkpoint(net, checkpoint(net, y)):sum():backward()
      return w.grad:clone()
    end)
    for _ = 1, 4 do
      local y = tycho.randn(4, 4)
      local got = f(y)
      w.grad = nil
      net.scale, net.shift = w:cos(), w:sin()
      net(net(y)):sum():backward()
      helper.close(got, w.grad, "compiled")
    end
    assert.is_true(compiled(f))
  end)
end)

describe("compile", function()
  it("records what is computed again: dropout, checkpoints within, weights used twice, gradients added up", function()
    local ways = {
      each = function(l, x) for i = 1, 3 do x = checkpoint(l[i], x) end return x end,
      within = function(l, x)
        return checkpoint(function(y) return l[3](checkpoint(function(z) return l[2](checkpoint(l[1], z)) end, y)) end, x)
      end,
      twice = function(l, x) return l[1](checkpoint(l[1], checkpoint(l[1], x))) + checkpoint(l[2], x) end,
      branches = function(l, x)
        local h = l[1](x)
        return h * 2 + checkpoint(l[2], h) + checkpoint(l[3], h)
      end,
      tables = function(l, x)
        local t = checkpoint(function(a, k) return {y = l[1](a.x) * k, z = l[2](a.x)} end, {x = l[3](x)}, 3)
        return t.y + t.z
      end,
      fresh = function(l, x) return checkpoint(l[2], l[1](x), {preserve_rng_state = false}) end,
      sequence = function(l, x) return tycho.utils.checkpoint_sequential(l, 2, x) end,
      module = function(l, x) return nn.Checkpoint(l[1])(x) end,
    }
    for name, way in pairs(ways) do
      local f = same(function() return training(way) end, 7)
      assert.is_true(compiled(f), name .. ": " .. tostring(f:report()[1].why))
      assert.is_true(compiled(same(function() return training(way, {every = 3}) end, 10, {max_variants = 4})), name)
    end
  end)

  it("with autocast, a scaler, and asked by its arguments alone", function()
    local f = same(function()
      local layers = {nn.Linear(6, 6), nn.Linear(6, 6)}
      local net = nn.ModuleList(layers)
      local opt, scaler = optim.SGD(net:parameters(), {lr = 0.1}), tycho.amp.GradScaler {init_scale = 16}
      return function(x)
        opt:zero_grad()
        local loss = tycho.amp.autocast({dtype = "bfloat16", device = helper.device}, function()
          return F.mse_loss(checkpoint(function(y) return F.dropout(layers[2](y):relu(), {p = 0.2}) end, layers[1](x)), x)
        end)
        scaler:scale(loss):backward()
        scaler:unscale_(opt)
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        scaler:step(opt)
        scaler:update()
        return loss:detach()
      end, function() return net:parameters() end, function() return {tycho.randn(4, 6)} end
    end, 7)
    assert.is_true(compiled(f))
    f = same(function() return training(function(l, x) return checkpoint(l[2], l[1](x)) end) end, 7, {guard = "inputs"})
    assert.is_true(compiled(f))
  end)

  it("a call that goes another way behind a checkpoint still gets its gradients", function()
    same(function()
      return training(function(l, x, calls)
        local y = checkpoint(l[2], l[1](x))
        if calls == 5 then y = y * 2 end
        return calls > 7 and checkpoint(l[3], y) or y
      end)
    end, 10)
  end)

  it("what a checkpoint's function reads on the host, and a user's Function in it, isn't recorded", function()
    local Twice = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function(_, g) return g * 2 end}
    for _, within in ipairs {function(y) return y * (y:sum():item() > 0 and 1 or 2) end, function(y) return Twice(y) end} do
      local f = same(function() return training(function(l, x) return checkpoint(within, l[1](x)) end) end, 5)
      assert.is_false(compiled(f))
    end
  end)

  it("gives what comes of the run in backward", function()
    -- gradients asked of tensors that the function uses besides its arguments; values that it leaves in the caller's variables
    for _, through in ipairs {true, false} do
      local f = same(function()
        local l = nn.Linear(6, 6)
        return function(x)
          local y = checkpoint(function(v) return l(v):tanh() end, through and l(x) or x)
          return (tycho.grad(y:sum(), {l.weight})[1])
        end, nil, function() return {tycho.randn(4, 6)} end
      end, 5)
      assert.is_true(compiled(f))
    end
    same(function()
      local l, left = nn.Linear(6, 6), nil
      return function(x)
        l:zero_grad()
        checkpoint(function(y)
          left = l(y):tanh()
          return left * 2
        end, x):sum():backward()
        return left:sum():detach()
      end, nil, function() return {tycho.randn(4, 6)} end
    end, 5)
  end)

  it("another gradient mode or Function within a checkpoint is seen, though its first run is without gradients", function()
    local Hundred = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function(_, g) return g * 100 end}
    for _, other in ipairs {function(l, y) return tycho.no_grad(l, y) + y end, function(_, y) return Hundred(y) end,
        function(l, y)
          tycho.set_grad_enabled(false)
          local z = l(y)
          tycho.set_grad_enabled(true)
          return z + y
        end} do
      local calls
      same(function()
        local m, l = nn.Linear(6, 6), nn.Linear(6, 6)
        calls = 0
        return function(x)
          calls = calls + 1
          m.weight.grad, l.weight.grad = nil, nil
          checkpoint(function(y)
            if calls > 4 then return other(l, y) end
            return l(y) + y
          end, m(x)):sum():backward()
          return m.weight.grad:clone(), l.weight.grad and l.weight.grad:clone()
        end, nil, function() return {tycho.randn(4, 6)} end
      end, 7)
    end
  end)

  it("takes less memory", function()
    local function held(way)
      local w = {}
      for i = 1, 8 do w[i] = nn.Parameter(tycho.randn(64, 64) * 0.1) end
      local f = tycho.compile(function(x)
        for i = 1, 8 do w[i].grad = nil end
        local h = x
        for i = 1, 8, 4 do
          h = way(function(y)
            for k = i, i + 3 do y = (y:matmul(w[k]):tanh() + y):sigmoid():matmul(w[k]) end
            return y
          end, h)
        end
        h:sum():backward()
      end)
      local before = core.allocated()
      for _ = 1, 4 do f(tycho.randn(256, 64)) end
      for _ = 1, 2 do collectgarbage() end
      assert.is_true(compiled(f))
      return core.allocated() - before
    end
    local plain = held(function(fn, x) return fn(x) end)
    assert.is_true(held(checkpoint) < 0.7 * plain)
  end)
end)
