-- Gradients and results of compiled functions that the function, its caller, other compiled functions or captured graphs hold: they stay
-- as they were, and a GPU's graph stays too.
local tycho = require "tycho"
local helper = require "spec.helper"
local core = require "tycho.core"
local nn = tycho.nn
local compiled = helper.compiled

describe("what a compiled function's gradients are held by", function()
  it("the function and its caller: there is one graph, and what they keep stays as it was", function()
    local begun, begin = 0, core.gpu.graph_begin
    core.gpu.graph_begin = function(...) begun = begun + 1 return begin(...) end
    local kept
    local bodies = {
      ["a step by hand"] = function(net, x)
        net:zero_grad()
        local loss = net(x):square():mean()
        loss:backward()
        tycho.no_grad(function() for _, p in ipairs(net:parameters()) do p:sub_(p.grad:clamp_(-0.1, 0.1) * 0.1) end end)
        return loss:detach()
      end,
      ["a norm"] = function(net, x)
        net:zero_grad()
        net(x):square():mean():backward()
        return net.weight.grad:norm(), net.bias.grad:norm()
      end,
      ["gradients kept"] = function(net, x)
        net:zero_grad()
        local loss = net(x):square():mean()
        loss:backward()
        kept[#kept + 1] = net.weight.grad
        return loss:detach()
      end,
      ["an input's gradient"] = function(net, x)
        local own = x:clone():requires_grad_()
        net:zero_grad()
        net(own):square():mean():backward()
        local moved = x + own.grad:sign() * 0.1
        net:zero_grad()
        net(moved):square():mean():backward()
        return moved
      end}
    local ok, err = pcall(function()
      for name, body in pairs(bodies) do
        for _, outside in ipairs {false, true} do
          local runs = {}
          for run = 1, 2 do
            tycho.manual_seed(3)
            local net, seen = nn.Linear(4, 4), {}
            kept, begun = {}, 0
            local step = function(x) return body(net, x) end
            if run == 2 then step = tycho.compile(step) end
            for i = 1, 8 do
              local a, b = step(tycho.randn(3, 4))
              seen[#seen + 1], seen[#seen + 2] = a:clone(), b and b:clone()
              if outside and i % 3 == 0 then kept[#kept + 1] = net.weight.grad end
            end
            for _, list in ipairs {kept, net:parameters()} do
              for _, t in ipairs(list) do seen[#seen + 1] = t:detach():clone() end
            end
            runs[run] = seen
            if run == 2 then assert.is_true(compiled(step)) end
          end
          assert.equal(#runs[1], #runs[2])
          for i, t in ipairs(runs[1]) do helper.close(runs[2][i], t, name .. i, 1e-5) end
          assert.equal(tycho.ones(1).is_cuda and 1 or 0, begun, name)
        end
      end
    end)
    core.gpu.graph_begin = begin
    if not ok then error(err, 0) end
  end)

  it("another compiled function, and a captured graph", function()
    local results = {}
    for run = 1, 2 do
      tycho.manual_seed(5)
      local net, held = nn.Linear(3, 2), {}
      local function both(f) return run == 2 and tycho.compile(f) or f end
      local back = both(function(x)
        net:zero_grad()
        net(x):square():sum():backward()
        return net.weight.grad:sum()
      end)
      local size = both(function() return net.weight.grad:square():sum() end)
      local of_old = both(function(g) return g:abs():sum() end)
      local seen = {}
      for i = 1, 8 do
        seen[#seen + 1] = back(tycho.randn(4, 3)):clone()
        held[i] = net.weight.grad
        seen[#seen + 1] = size():clone()
        seen[#seen + 1] = of_old(held[math.max(1, i - 2)]):clone()
      end
      for _, g in ipairs(held) do seen[#seen + 1] = g end
      results[run] = seen
    end
    for i, t in ipairs(results[1]) do helper.close(results[2][i], t, "result " .. i, 1e-5) end
    -- another way of the same function adds to what this one rewrites
    local fresh, w = true, tycho.ones(3000):requires_grad_()
    local adds = tycho.compile(function(x)
      if fresh then w.grad = nil end
      ((w * 2) * x):sum():backward()
    end)
    local function call(v, anew)
      fresh = anew
      adds(tycho.full({3000}, v))
      collectgarbage()
      collectgarbage()
    end
    for i = 1, 10 do call(i, i <= 5) end
    local g, sum = w.grad, w.grad:clone()
    call(1, true)
    helper.exact(g, sum, "held")
    w.grad = g
    call(7, false)
    helper.exact(w.grad, sum + 14, "added to")
    call(7, false)
    helper.exact(w.grad, sum + 28, "added to twice")
    if not tycho.ones(1).is_cuda then return end
    local net, twice = nn.Linear(3, 2), nil
    local back = tycho.compile(function(x)
      net:zero_grad()
      net(x):square():sum():backward()
    end)
    for _ = 1, 3 do back(tycho.randn(4, 3)) end
    local held = net.weight.grad
    local was, graph = held:clone(), tycho.cuda.graph(function() twice = held * 2 end)
    for _ = 1, 3 do back(tycho.randn(4, 3)) end
    graph:replay()
    helper.exact(twice, was * 2, "of the captured graph")
    helper.exact(held, was, "held")
  end)
end)
