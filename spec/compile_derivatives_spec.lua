-- Derivatives within compiled functions: gradients that have a history, leaves that the function makes, tensors that it freezes. Calls that
-- go as recorded and calls that differ in the middle give the eager ones' bits.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, F, func = tycho.nn, tycho.optim, tycho.nn.functional, tycho.func

local same = helper.compiled_same

local function mlp(...)
  local list, sizes = {}, {...}
  for i = 2, #sizes do
    list[#list + 1] = nn.Linear(sizes[i - 1], sizes[i])
    if i < #sizes then list[#list + 1] = nn.Tanh() end
  end
  return nn.Sequential(unpack(list))
end
local function values(...)
  local out = {}
  for _, net in ipairs {...} do for _, p in ipairs(net:parameters()) do out[#out + 1] = p:detach() end end
  return out
end

-- {step = a function of i, the tensors and `here`, which a step calls at its places, arguments = of a call, state = what is left}
local programs = {
  ["a gradient's penalty (WGAN-GP)"] = function()
    local critic = mlp(4, 16, 1)
    local opt = optim.Adam(critic:parameters(), {lr = 1e-2})
    return {step = function(here, real, fake)
      local e = tycho.rand(real.shape[1], 1)
      local x = (e * real + (1 - e) * fake):requires_grad_()
      here(x)
      local g = tycho.grad(critic(x):sum(), x, {create_graph = true})
      here(g)
      local loss = critic(fake):mean() - critic(real):mean() + 10 * ((g:norm({dim = 2}) - 1) ^ 2):mean()
      opt:zero_grad()
      loss:backward()
      here(loss)
      opt:step()
      return loss:detach(), x.grad
    end, arguments = function() return {tycho.randn(8, 4), tycho.randn(8, 4)} end, state = function() return values(critic) end}
  end,
  ["derivatives by an argument (PINN)"] = function()
    local net = mlp(2, 16, 1)
    local opt = optim.Adam(net:parameters(), {lr = 1e-2})
    return {step = function(here, x)
      x = x:detach():requires_grad_()
      local u = net(x)
      local du = tycho.grad(u:sum(), x, {create_graph = true})
      here(du)
      local d2 = tycho.grad(du:select(2, 1):sum(), x, {create_graph = true})
      local loss = (d2:select(2, 1) + du:select(2, 2) + u:squeeze()):pow(2):mean()
      opt:zero_grad()
      loss:backward()
      here(loss)
      opt:step()
      return loss:detach(), d2:detach(), x.grad
    end, arguments = function() return {tycho.rand(8, 2)} end, state = function() return values(net) end}
  end,
  ["an inner step (MAML)"] = function()
    local net = mlp(1, 16, 1)
    local opt = optim.Adam(net:parameters(), {lr = 1e-2})
    return {step = function(here, x, y)
      local params, names, list = {}, {}, {}
      for n, p in net:named_parameters() do params[n], names[#names + 1], list[#list + 1] = p, n, p end
      local g = tycho.grad(F.mse_loss(func.functional_call(net, params, x), y), list, {create_graph = true})
      for k, n in ipairs(names) do params[n] = params[n] - 0.1 * g[k] end
      here(g[1])
      local loss = F.mse_loss(func.functional_call(net, params, x), y)
      opt:zero_grad()
      loss:backward()
      opt:step()
      here(loss)
      return loss:detach()
    end, arguments = function() return {tycho.rand(8, 1), tycho.rand(8, 1)} end, state = function() return values(net) end}
  end,
  ["an inner loop of leaves (first-order MAML)"] = function()
    local net = mlp(1, 8, 1)
    return {step = function(here, x, y)
      local fast, list = {}, {}
      for n, p in net:named_parameters() do
        fast[n] = p:detach():requires_grad_()              -- in the parameter's memory
        list[#list + 1] = n
      end
      for _ = 1, 2 do
        F.mse_loss(func.functional_call(net, fast, x), y):backward()
        for _, n in ipairs(list) do fast[n] = (fast[n] - 0.1 * fast[n].grad):detach():requires_grad_() end
        here(fast[list[1]])
      end
      local loss = F.mse_loss(func.functional_call(net, fast, x), y)
      loss:backward()
      tycho.no_grad(function() for n, p in net:named_parameters() do p:sub_(fast[n].grad * 0.1) end end)
      here(loss)
      return loss:detach(), fast[list[1]].grad, fast[list[1]]
    end, arguments = function() return {tycho.rand(8, 1), tycho.rand(8, 1)} end, state = function() return values(net) end}
  end,
  ["a frozen discriminator"] = function()
    local D, G = mlp(3, 1), mlp(2, 3)
    local of_g, of_d = optim.SGD(G:parameters(), {lr = 0.1}), optim.SGD(D:parameters(), {lr = 0.1, momentum = 0.9})
    return {step = function(here, z, x)
      D:requires_grad_(true)
      local l = D(G(z):detach()):mean() - D(x):mean()
      of_d:zero_grad()
      l:backward()
      of_d:step()
      here(l)
      D:requires_grad_(false)
      here(l)
      local g = -D(G(z)):mean()
      of_g:zero_grad()
      g:backward()
      of_g:step()
      here(g)
      return l:detach(), g:detach(), D[1].weight.requires_grad
    end, arguments = function() return {tycho.rand(8, 2), tycho.rand(8, 3)} end, state = function() return values(D, G) end}
  end,
  ["gradients of an input that add up"] = function()
    local net = mlp(3, 8, 1)
    return {step = function(here, x)
      local y = x * 1
      y:requires_grad_()
      net(y):sum():backward()
      here(y.grad)
      net(y * 2):sum():backward()
      here(y.grad)
      return y.grad, y
    end, arguments = function() return {tycho.rand(8, 3)} end, state = function()
      local out = values(net)
      for _, p in ipairs(net:parameters()) do out[#out + 1] = p.grad end
      return out
    end}
  end,
  ["functions' derivatives"] = function()
    local w = tycho.randn(3, 3)
    local function f(x) return (x:matmul(w):tanh() * x):sum() end
    return {step = function(here, x, v)
      local g = func.grad(f)(x)
      here(g)
      local H = func.hessian(f)(x)
      here(H)
      local _, hv = tycho.autograd.functional.hvp(f, x, v)
      local _, along = func.jvp(f, {x}, {v})
      local y, pull = func.vjp(f, x)
      here(y)
      return g, H, hv, along, pull(y * 2), func.jacrev(function(a) return a:matmul(w):sin() end)(x)
    end, arguments = function() return {tycho.rand(3), tycho.rand(3)} end}
  end,
  ["leaves of numbers, one among several that lie alike"] = function()
    return {step = function(here, x)
      local a, b = tycho.tensor({1, 2, 3}, {requires_grad = true}), tycho.zeros(3, {requires_grad = true})
      local c, d = x:detach():requires_grad_(), x:detach():requires_grad_()
      here(c)
      local y = (a * x + b):pow(2):sum() + (c * d):sum() * 3
      y:backward()
      here(y)
      return a.grad, b.grad, c.grad, d.grad, y:detach()
    end, arguments = function() return {tycho.rand(3)} end}
  end,
}

describe("compile, derivatives within", function()
  local made = {}
  for name, make in pairs(programs) do
    made[name] = function(here)
      local p = make()
      return function(...) return p.step(here, ...) end, p.state, p.arguments
    end
  end
  helper.compiled_programs(made, 3)

  it("what the function keeps of a call stays, leaves and their gradients too", function()
    local net = mlp(3, 8, 1)
    local function run(compiled)
      tycho.manual_seed(1)
      local kept = {}
      local function step(x)
        local y = (x * 2):requires_grad_()
        local g = tycho.grad(net(y):sum(), y, {create_graph = true})
        g:pow(2):sum():backward()
        kept[#kept + 1] = {y, y.grad, g}
        return g:detach()
      end
      local f = compiled and tycho.compile(step) or step
      for _ = 1, 12 do f(tycho.rand(4, 3)) end
      return kept
    end
    for _, p in ipairs(net:parameters()) do p.grad = nil end
    local want = run(false)
    for _, p in ipairs(net:parameters()) do p.grad = nil end
    local got = run(true)
    for k, list in ipairs(want) do
      for j, x in ipairs(list) do
        helper.close(got[k][j]:detach(), x:detach(), "kept", 0)
        assert.equal(x.requires_grad, got[k][j].requires_grad)
      end
      assert.is_true(got[k][1].is_leaf)
      helper.close(got[k][1].grad, want[k][1].grad, "its gradient", 0)
    end
  end)

  it("a gradient's way is seen: a tensor with a history, and a leaf in its memory, are two", function()
    same(function()
      local w, i = nn.Parameter(tycho.rand(3)), 0
      return function(x)
        i = i + 1
        w.grad = nil
        local y = x * w
        local z = y
        if i % 2 == 0 then z = y:detach():requires_grad_() end
        F.mse_loss(z, x):backward()
        return w.grad or tycho.zeros(1), z.is_leaf
      end, nil, function() return {tycho.rand(3)} end
    end, 9)
    same(function()
      local i = 0
      return function(x)
        i = i + 1
        local a, b = x:detach():requires_grad_(), x:detach():requires_grad_()
        local one, other = i % 2 == 0 and b or a, i % 2 == 0 and a or b
        tycho.add(one * 2, other * other):sum():backward()
        return a.grad, b.grad
      end, nil, function() return {tycho.rand(3)} end
    end, 9)
  end)

  it("whether backward comes to a leaf is asked within", function()
    same(function()
      local w, i = nn.Parameter(tycho.rand(3)), 0
      return function(x)
        i = i + 1
        local g = func.grad(function(a) return (i % 3 == 0 and a * a or a * w):sum() end)(x)
        return g:detach(), g.requires_grad
      end, nil, function() return {tycho.rand(3)} end
    end, 12)
  end)

  it("guard = 'inputs': leaves that the function makes, and gradients with a history", function()
    local make = programs["derivatives by an argument (PINN)"]
    local function run(o)
      tycho.manual_seed(3)
      local p, out, calls = make(), {}, 0
      local function step(x)
        calls = calls + 1
        return (p.step(function() end, x))
      end
      local f = o and tycho.compile(step, o) or step
      for i = 1, 10 do out[i] = f(unpack(p.arguments())):item() end
      return out, calls
    end
    local want = run()
    local got, calls = run {guard = "inputs"}
    assert.same(want, got)
    assert.is_true(calls < 5)
  end)

  it("parameters that are frozen and thawed keep their gradients, whichever way the call goes", function()
    for _, guard in ipairs {"full", "inputs"} do
      local options = guard == "inputs" and {guard = guard} or nil
      same(function()
        local w, i = nn.Parameter(tycho.ones(2)), 0
        return function(x)
          i, w.grad = i + 1, nil
          tycho.sum(x * w):backward()
          w:requires_grad_(false)
          w:requires_grad_(true)
          return guard == "full" and i % 5 == 0 and x * 3 or x * 2, w.grad
        end, function() return {w.grad} end, function() return {tycho.rand(2)} end
      end, 13, options)
      same(function()
        local w = nn.Parameter(tycho.ones(2))
        w:requires_grad_(false)
        return function(x)
          w.grad = nil
          w:requires_grad_(true)
          tycho.sum(x * w):backward()
          w:requires_grad_(false)
          return x * 2
        end, function() return {w.grad, tostring(w.requires_grad)} end, function() return {tycho.rand(2)} end
      end, 9, options)
    end
  end)
end)
