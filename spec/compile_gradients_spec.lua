-- Gradients that a compiled function finds: made outside of it, or by another compiled function, and another tensor in each call.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, optim, F = tycho.nn, tycho.optim, tycho.nn.functional

local function mlp(a, b, c) return nn.Sequential(nn.Linear(a, b), nn.Tanh(), nn.Linear(b, c)) end

-- n rounds with and without compile, which make is given: it gives a round, whose results are compared. The compiled functions.
local function same(make, n)
  local function run(compile)
    tycho.manual_seed(4)
    local made = {}
    local round = make(function(fn)
      made[#made + 1] = compile and tycho.compile(fn) or fn
      return made[#made]
    end)
    local out = {}
    for i = 1, n do for _, x in ipairs {round(i)} do out[#out + 1] = x:detach():clone() end end
    return out, made
  end
  local want = run(false)
  local got, made = run(true)
  for i, x in ipairs(want) do helper.close(got[i], x, "value " .. i, 0) end
  return made
end
local function all_compiled(made, least)
  for i, f in ipairs(made) do
    local calls = 0
    for _, way in ipairs(f:report()) do
      assert.is_true(way.compiled, ("function %d: %s"):format(i, tostring(way.why)))
      calls = calls + way.calls
    end
    assert.is_true(calls >= least, ("function %d: %d calls"):format(i, calls))
  end
end

describe("compile, gradients from outside", function()
  local function gan(compile)
    local D, G = mlp(4, 8, 1), mlp(2, 8, 4)
    local of_d, of_g = optim.Adam(D:parameters()), optim.Adam(G:parameters())
    local d = compile(function(x, z)
      of_d:zero_grad()
      local l = D(G(z):detach()):mean() - D(x):mean()
      l:backward()
      of_d:step()
      return l:detach()
    end)
    local g = compile(function(z)
      of_g:zero_grad()
      local l = -D(G(z)):mean()                            -- D's gradients add up until its next step
      l:backward()
      of_g:step()
      return l:detach()
    end)
    return function()
      local a, b = d(tycho.randn(8, 4), tycho.randn(8, 2)), g(tycho.randn(8, 2))
      return a, b, D[1].weight.grad, D[1].weight, G[1].weight
    end, D, d, g
  end

  it("two compiled steps of one pair of nets (a GAN)", function()
    all_compiled(same(function(compile) return (gan(compile)) end, 16), 14)
  end)

  it("neither makes the other one's memory anew", function()
    tycho.manual_seed(1)
    local _, D, d, g = gan(tycho.compile)
    local function memory()                                -- a number of it, whose handle is let go
      d(tycho.randn(8, 4), tycho.randn(8, 2))
      g(tycho.randn(8, 2))
      local id = core.memory_of(D[1].weight.grad)
      collectgarbage()
      collectgarbage()
      return id
    end
    for _ = 1, 8 do memory() end
    local at = memory()
    for _ = 1, 4 do assert.equal(at, memory()) end
  end)

  if helper.device == "cpu" then           -- a GPU's graph would be made anew for each address
    it("backward outside, and then within", function()
      local made = same(function(compile)
        local net = mlp(3, 8, 1)
        local opt = optim.SGD(net:parameters(), {lr = 0.05, momentum = 0.9})
        local inner = compile(function(x)
          local l = net(x):abs():mean()
          l:backward()
          opt:step()
          return l:detach()
        end)
        return function(i)
          opt:zero_grad()
          local x = tycho.randn(6, 3)
          net(x):pow(2):mean():backward()
          local kept = i % 5 == 0 and net[1].weight.grad           -- is the parameter's still, and is added to
          local l = inner(x)
          return l, net[1].weight, net[1].weight.grad, kept or l
        end
      end, 16)
      all_compiled(made, 14)
    end)

    it("the optimizer's step alone, after clipping", function()
      local made = same(function(compile)
        local net = mlp(3, 8, 2)
        local opt = optim.AdamW(net:parameters(), {lr = 0.01})
        local step = compile(function()
          local n = nn.utils.clip_grad_norm_(net:parameters(), 0.1)
          opt:step()
          return n
        end)
        return function()
          opt:zero_grad()
          F.cross_entropy(net(tycho.randn(6, 3)), tycho.randint(1, 2, {6})):backward()
          return step(), net[1].weight, net[3].bias.grad
        end
      end, 16)
      all_compiled(made, 14)
    end)

    it("of another layout, shared by two parameters, or an argument's", function()
      local a, b = nn.Parameter(tycho.ones(2, 3)), nn.Parameter(tycho.ones(2, 3))
      local made = same(function(compile)
        tycho.no_grad(function() for _, p in ipairs {a, b} do p:fill_(1) end end)
        local step = compile(function(x)
          a.grad:mul_(2)
          b.grad:add_(1)
          tycho.no_grad(function()
            a:sub_(a.grad * 0.1)
            b:sub_(b.grad * 0.1)
          end)
          return x * 1
        end)
        return function(i)
          local g, h = tycho.randn(2, 3), tycho.randn(2, 3)
          if i % 4 == 2 then h = g end
          if i % 4 == 3 then g = tycho.randn(3, 2):t() end
          a.grad, b.grad = g, h
          return step(i % 5 == 0 and h or tycho.randn(2, 3)), a, b, a.grad, b.grad
        end
      end, 24)
      assert.is_true(made[1]:report()[1].compiled, made[1]:report()[1].why)
    end)
  end

  it("what others hold of a gradient stays, as before", function()
    local w = nn.Parameter(tycho.ones(4))
    local make = tycho.compile(function(x)
      w.grad = nil
      tycho.sum(x * w):backward()
    end)
    local double = tycho.compile(function()
      w.grad:mul_(2)
      return w.grad * 1
    end)
    local kept = {}
    for i = 1, 12 do
      make(tycho.full({4}, i))
      if i > 6 then kept[i] = w.grad end
      helper.close(double(), tycho.full({4}, 2 * i), nil, 0)
    end
    for i, g in pairs(kept) do helper.close(g, tycho.full({4}, 2 * i), "kept " .. i, 0) end
  end)

  it("a gradient that is added to in place, and kept in the same call", function()
    same(function(compile)
      local w, v = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2))
      local step = compile(function(x)
        if w.grad then v.grad = w.grad end
        tycho.sum(w * x):backward()
        w.grad = w.grad * 0.5
      end)
      return function(i)
        step(tycho.full({2}, i))
        return v.grad or w, w.grad
      end
    end, 12)
  end)

  it("a view needs a gradient once its base, changed in place, does", function()
    all_compiled(same(function(compile)
      local p = nn.Parameter(tycho.ones(3))
      local fn = compile(function(x)
        local a = x:sign():round()
        local b = a[{ {1, 2} }]
        a:mul_(p)
        p.grad = nil
        if not b.requires_grad or b.is_leaf then return x end
        b:sum():backward()
        return a:detach(), p.grad
      end)
      return function() return fn(tycho.randn(2, 3)) end
    end, 8), 6)
  end)
end)
