-- Users' autograd.Functions within compiled functions: their forward and their backward are compared in each call, and calls that differ in
-- the middle of either give the eager ones' bits.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, optim, autograd = tycho.nn, tycho.optim, tycho.autograd
local Function, same = autograd.Function, helper.compiled_same

-- here(x): a place where calls may differ. Each gives a step of tensors, its arguments, and what is left at the end.
local programs = {
  ["straight through, with saved tensors"] = function(here)
    local Round = Function {
      forward = function(ctx, x)
        ctx:save_for_backward(x, x * 2)
        return x:round()
      end,
      backward = function(ctx, g)
        local x, twice = ctx:saved_tensors()
        here(g)
        local out = g * x:abs():le(2):float() + twice * 0.01
        here(out)
        return out
      end}
    local net = nn.Linear(4, 3)
    local opt = optim.Adam(net:parameters(), {lr = 1e-2})
    return function(x)
      local loss = Round(net(x) * 3):pow(2):mean()
      opt:zero_grad()
      loss:backward()
      opt:step()
      here(loss)
      return loss:detach()
    end, function() return {net.weight:detach(), net.bias:detach()} end, function() return {tycho.randn(5, 4)} end
  end,
  ["several results and arguments, of which not all count"] = function(here)
    local Both = Function {
      forward = function(ctx, a, factor, b)
        ctx.factor = factor
        ctx:save_for_backward(a, b)
        return a * b, a + b, a:argmax()
      end,
      backward = function(ctx, g, h)
        local a, b = ctx:saved_tensors()
        here(h)
        return g * b * ctx.factor + h, nil, ctx.needs_input_grad[3] and g * a or nil
      end}
    local w = nn.Parameter(tycho.randn(3))
    return function(x)
      w.grad = nil
      local y, z, i = Both(w, 2, x)
      y:sum():backward({retain_graph = true})
      here(y)
      local _, sum = Both(w * y:detach(), 3, z)
      sum:sum():backward()
      return w.grad, i
    end, nil, function() return {tycho.randn(3)} end
  end,
  ["a pass within (an adjoint)"] = function(here)
    local net = nn.Linear(3, 3)
    local function f(y) return tycho.tanh(net(y)) end
    local Euler = Function {
      forward = function(ctx, y)
        for _ = 1, 3 do y = y + f(y) * 0.1 end
        ctx:save_for_backward(y)
        return y
      end,
      backward = function(ctx, g)
        local y = ctx:saved_tensors()
        local total
        for _ = 1, 3 do
          local at = y:detach():requires_grad_()
          local v = tycho.enable_grad(f, at)
          local list = tycho.grad(v, {at, net.weight}, {grad_outputs = g})
          here(g)
          g, total = g + list[1] * 0.1, total and total + list[2] or list[2]
          y = y - v:detach() * 0.1
        end
        net.weight.grad = total
        return g
      end}
    return function(x)
      local y = (x * 2):requires_grad_()
      Euler(y):pow(2):sum():backward()
      here(y)
      return y.grad, net.weight.grad
    end, nil, function() return {tycho.randn(2, 3)} end
  end,
  ["second derivatives through one, and one within another"] = function(here)
    local Cube = Function {
      forward = function(ctx, x)
        ctx:save_for_backward(x)
        return x * x * x
      end,
      backward = function(ctx, g)
        here(g)
        return g * 3 * ctx:saved_tensors():pow(2)
      end}
    local Outer = Function {
      forward = function(ctx, x)
        ctx:save_for_backward(x)
        return x:pow(3)
      end,
      backward = function(ctx, g)
        local x = ctx:saved_tensors():detach():requires_grad_()
        local y = tycho.enable_grad(function() return Cube(x) end)
        here(g)
        return tycho.grad(y, x, {grad_outputs = g})
      end}
    local w = nn.Parameter(tycho.randn(4))
    return function(x)
      local y = Cube(x * w):sum()
      local g = tycho.grad(y, w, {create_graph = true})
      here(g)
      w.grad = nil
      g:pow(2):sum():backward()
      local own = w.grad
      w.grad = nil
      Outer(w * x):sum():backward()
      return own, w.grad
    end, nil, function() return {tycho.randn(4)} end
  end,
  ["what is handed on, changed in place, or asked for by others"] = function(here)
    local Pass = Function {
      forward = function(_, x) return x end,
      backward = function(_, g)
        here(g)
        return g
      end}
    local Double = Function {
      forward = function(ctx, x)
        ctx:mark_dirty(x)
        return x:mul_(2)
      end,
      backward = function(_, g) return g * 2 end}
    local w = nn.Parameter(tycho.randn(3, 4))
    return function(x)
      w.grad = nil
      local y = Double(Pass(w * x) * 1)
      local loss = y:sum()
      if helper.device == "cpu" then loss = loss + tycho.linalg.pinv(w):pow(2):sum() end     -- a GPU's matrices go by the CPU
      loss:backward()
      here(loss)
      return loss:detach(), w.grad
    end, nil, function() return {tycho.randn(3, 4)} end
  end,
}

describe("compile, autograd.Functions", function()
  helper.compiled_programs(programs, 5)

  it("a number that backward takes from elsewhere is seen to change", function()
    local rate = 1
    local Reversed = Function {
      forward = function(_, x) return x:clone() end,
      backward = function(_, g) return g * -rate end}
    local f = same(function()
      local w, i = nn.Parameter(tycho.ones(3)), 0
      return function(x)
        i = i + 1
        rate = i < 8 and 1 or 0.5
        w.grad = nil
        Reversed(w * x):sum():backward()
        return w.grad
      end, nil, function() return {tycho.rand(3)} end
    end, 14)
    assert.same({7, 6}, {f:report()[1].calls, f:report()[2].calls})
  end)

  it("backward is asked once in each call, and twice where it differs within; what it keeps is whole", function()
    local function run(compiled)
      tycho.manual_seed(2)
      local asked, kept, i = 0, {}, 0
      local F = Function {
        forward = function(_, x) return x * 2 end,
        backward = function(_, g)
          asked = asked + 1
          kept[#kept + 1] = g
          local out = g * 2
          if i == 6 then out = out + 1 end
          kept[#kept + 1] = out
          return out
        end}
      local w = nn.Parameter(tycho.ones(3))
      local function step(x)
        i = i + 1
        w.grad = nil
        local y = F(w * x)
        F(y):sum():backward()
        if i == 8 then w.grad:sum():item() end             -- after the functions have answered
        return w.grad:clone()
      end
      local f, out = compiled and tycho.compile(step) or step, {}
      for k = 1, 10 do out[k] = f(tycho.rand(3)) end
      return asked, kept, out
    end
    local plain, want, results = run(false)
    local asked, got, others = run(true)
    assert.equal(20, plain)
    assert.equal(21, asked)                                -- the first of call 6: the second is asked with what it has given
    for k, x in ipairs(results) do helper.close(others[k], x, "result " .. k, 0) end
    table.remove(got, 21)                                  -- what the one that was asked again had been given at first
    for k, x in ipairs(want) do helper.close(got[k], x, "kept " .. k, 0) end
  end)

  it("holds no more memory in each call", function()
    local Saves = Function {
      forward = function(ctx, x)
        ctx:save_for_backward(x, x:exp())
        return x:sin()
      end,
      backward = function(ctx, g) return g * select(2, ctx:saved_tensors()) end}
    local w = nn.Parameter(tycho.randn(64, 64))
    local step = tycho.compile(function(x)
      w.grad = nil
      local loss = tycho.scope(function() return Saves(w * x):sum() end)
      loss:backward()
      return loss:detach()
    end)
    local x = tycho.randn(64, 64)
    for _ = 1, 5 do step(x) end
    collectgarbage()
    collectgarbage "stop"
    local before = core.allocated()
    for _ = 1, 50 do step(x) end
    local after = core.allocated()
    collectgarbage "restart"
    assert.is_true(after - before < 64 * 64 * 4 * 10, ("%d bytes more"):format(after - before))
  end)

  it("an answer of backward holds for all recordings that the call is compared with", function()
    local n = 0
    local function scaled(every)
      return Function {
        forward = function(ctx, x)
          ctx:save_for_backward(x)
          return x * 1
        end,
        backward = function(ctx, g)
          local x = ctx:saved_tensors()
          if n % every == 0 then g = g * 2 end
          return g * x
        end}
    end
    local A, B = scaled(4), scaled(3)
    same(function()
      local w = nn.Parameter(tycho.ones(3))
      n = 0
      return function(x)
        n, w.grad = n + 1, nil
        B(A(w * x)):sum():backward()
        return w.grad
      end, nil, function() return {tycho.rand(3)} end
    end, 26)
  end)

  it("backward sees the gradients that the pass has given before it, and may set them", function()
    for _, act in ipairs {function(w) w.grad = nil end, function(w, g) w.grad = g * 7 end, function(w) return w.grad ~= nil end} do
      for _, guard in ipairs {"full", "inputs"} do
        same(function()
          local one, other, seen = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2)), nil
          local F = Function {
            forward = function(_, x) return x * 2 end,
            backward = function(_, g)
              seen = act(other, g)
              return g * 2
            end}
          return function(x)
            one.grad, other.grad = nil, nil
            tycho.sum(other * F(one) * x):backward()
            return one.grad, other.grad ~= nil, seen
          end, function() return {other.grad or one.grad} end, function() return {tycho.rand(2)} end
        end, 7, guard == "inputs" and {guard = guard} or nil)
      end
    end
  end)

  it("what differs within a pcall in backward is asked for again, with the context that it had", function()
    for _, act in ipairs {function(out, i) if i % 4 == 0 then out:sum():item() end end, function(out, i) return out * i end} do
      same(function()
        local w, i = nn.Parameter(tycho.ones(3)), 0
        local F = Function {
          forward = function(ctx, x)
            ctx.k = 1
            ctx:save_for_backward(x)
            return x * 1
          end,
          backward = function(ctx, g)
            local x = ctx:saved_tensors()
            ctx.k = ctx.k + 1
            local out = g * x * ctx.k
            pcall(act, out, i)
            if i % 5 == 0 then out = out + 1 end
            return out
          end}
        return function(x)
          i, w.grad = i + 1, nil
          F(w * x):sum():backward()
          return w.grad
        end, nil, function() return {tycho.rand(3)} end
      end, 14)
    end
  end)

  it("is recorded again when numbers that changed in each call have settled", function()
    local k = 0
    local f = tycho.compile(function(x)
      k = k + 1
      return (x * math.min(1, k / 16) + 1):sum()
    end)
    for i = 1, 80 do assert.equal(10 + i * math.min(1, i / 16) * 10, f(tycho.full({10}, i)):item()) end
    assert.is_true(f:report()[1].compiled)
    assert.equal(80, k)
    -- what never settles is tried ever more seldom
    local program = require("tycho.core").program
    local new, made, n = program.new, 0, 0
    program.new = function(...)
      made = made + 1
      return new(...)
    end
    finally(function() program.new = new end)
    local g = tycho.compile(function(x)
      n = n + 1
      return x * n
    end)
    for i = 1, 300 do assert.equal(2 * i, g(tycho.full({1}, 2)):item()) end
    assert.is_false(g:report()[1].compiled)
    assert.equal(3, made)                                          -- at calls 2, 40 and 196
    assert.matches("each call differed from the recording: mul differs: a number is %d+, but was %d+; a 0%-dim tensor may change " ..
      "%(.*compile_functions_spec%.lua:%d+%)$", g:report()[1].why)
  end)

  it("may change arguments that share memory once it is no longer recorded", function()
    local base, n = tycho.zeros(10), 0
    local f = tycho.compile(function(a, b)
      n = n + 1
      if n > 60 then a:add_(1) end
      return (a * (n < 30 and n or 3) + b):sum()
    end)
    for _ = 1, 200 do f(base:narrow(1, 1, 6), base:narrow(1, 3, 6)) end
    assert.equal(140, base[1])
  end)
end)
