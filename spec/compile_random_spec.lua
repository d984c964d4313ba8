-- Random functions made of what leaves a plain forward and backward: users' autograd.Functions, leaves made within, frozen parameters,
-- several passes, gradients kept, shared and set, checkpoints; some of whose calls differ: by a value that is read, an op more, an error
-- that is caught or not, another number. What compiled ones leave behind is to the bit what the others do.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, func, Function = tycho.nn, tycho.func, tycho.autograd.Function

local SEEDS, CALLS = helper.device == "cpu" and 600 or 40, 14

-- Numbers 1 to n, the same for a seed whatever else is drawn.
local function dice(seed)
  local s = (seed * 2654435761) % 2 ^ 32
  return function(n)
    s = (s * 1664525 + 1013904223) % 2 ^ 32
    return math.floor(s / 65536) % n + 1
  end
end

local function random_function(seed)
  local roll = dice(seed)
  for _ = 1, 5 do roll(2) end
  local i, w, left = 0, {}, {}
  for k = 1, 3 do w[k] = nn.Parameter(tycho.randn(4)) end
  local opt = tycho.optim.SGD(w, {lr = 0.05, momentum = roll(2) == 1 and 0.9 or 0})
  local function any() return w[roll(3)] end
  -- A place where every so-many-th call does something else to t. within: backward, which may be asked twice.
  local function place(within)
    local every, off, kind, never = roll(6) + 1, roll(3), roll(6), roll(3) == 1
    return function(t)
      if never or i < 2 or (i + off) % every ~= 0 then return t end
      if kind == 1 then
        local v = t:detach():sum():item()
        if not within then left[#left + 1] = v end
      elseif kind == 2 then return t * 1.5
      elseif kind == 3 then return t * (1 + i / 64)
      elseif kind == 4 then error("boom", 0)
      elseif kind == 5 then pcall(t.view, t, 77)
      elseif not within then left[#left + 1] = tycho.keep(t) end
      return t
    end
  end
  local function custom(nested)
    local kind, h, h2, other = roll(nested and 3 or 5), place(true), place(true), any()
    if kind == 1 then
      return Function {
        forward = function(ctx, x)
          ctx:save_for_backward(x)
          return x * x
        end,
        backward = function(ctx, g) return h2(h(g) * ctx:saved_tensors() * 2) end}
    elseif kind == 2 then return Function {forward = function(_, x) return x end, backward = function(_, g) return h(g) end}
    elseif kind == 3 then
      local Double = Function {
        forward = function(ctx, x)
          ctx:mark_dirty(x)
          return x:mul_(2)
        end,
        backward = function(_, g) return h(g * 2) end}
      return function(x) return Double(x * 1) end
    elseif kind == 4 then
      local Two = Function {
        forward = function(ctx, a, b)
          ctx:save_for_backward(a, b)
          return a * b, a + b
        end,
        backward = function(ctx, g, k)
          local a, b = ctx:saved_tensors()
          return g * b + h(k), ctx.needs_input_grad[2] and h2(g * a + k) or nil
        end}
      return function(x)
        local p, q = Two(x, other * 2)
        return p + q * 0.5
      end
    end
    local inner = custom(true)
    return Function {
      forward = function(ctx, x)
        ctx:save_for_backward(x)
        return x:pow(3)
      end,
      backward = function(ctx, g)
        local x = ctx:saved_tensors():detach():requires_grad_()
        local y = tycho.enable_grad(function() return inner(x) end)
        return tycho.grad(y, x, {grad_outputs = h(g)})
      end}
  end
  local function layer()
    local kind, p, f, h = roll(5), any(), custom(), place()
    if kind <= 2 then return function(y) return f(y * p) end end
    if kind == 3 then return function(y) return tycho.utils.checkpoint(function(a) return f(a * p) end, y) end end
    if kind == 4 then return function(y, x) return y + func.grad(function(a) return h((a * x):pow(2)):sum() end)(p:detach()) end end
    return function(y)
      local v = y * 1
      v:slice(1, 1, 2):mul_(2)
      return h(v) + p
    end
  end
  local function net()
    local list = {}
    for k = 1, roll(3) do list[k] = layer() end
    return function(y, x)
      for _, f in ipairs(list) do y = f(y, x) end
      return y
    end
  end
  local function statement()
    local kind, f, p, q, h, twice = roll(9), net(), any(), any(), place(), roll(3) == 1
    if kind <= 2 then
      return function(x)
        local loss = h(f(x * 1, x)):sum()
        if twice then loss:backward({retain_graph = true}) end
        loss:backward()
      end
    elseif kind == 3 then
      return function(x)
        local at = x:detach():requires_grad_()
        local g = tycho.grad(f(at, x):sum(), at, {create_graph = true, allow_unused = true, materialize_grads = true})
        tycho.sum((h(g) * p):pow(2)):backward()
        return at.grad
      end
    elseif kind == 4 then
      return function(x)
        local z = (x * 2):detach():requires_grad_()
        h(f(z, x)):sum():backward()
        left[#left + 1] = twice and tycho.keep(z) or nil
        return z.grad
      end
    elseif kind == 5 then
      return function(x)
        p:requires_grad_(false)
        local ok, why = pcall(function() h(f(x * q, x)):sum():backward() end)
        p:requires_grad_(true)
        if not ok then error(why, 0) end
      end
    elseif kind == 6 then return function() if p.grad and p ~= q then q.grad = p.grad end end
    elseif kind == 7 then return function() if p.grad then p.grad = h(p.grad:detach() * 0.5) end end
    elseif kind == 8 then return function() left[#left + 1], p.grad = p.grad and tycho.keep(p.grad), nil end end
    return function() opt:step() end
  end
  local list, zero = {}, roll(3)
  for k = 1, 2 + roll(3) do list[k] = statement() end
  return function(x)
    if zero < 3 then opt:zero_grad(zero == 1) end
    local out = {}
    for k, s in ipairs(list) do out[k] = s(x) or false end
    return unpack(out)
  end, function()
    i = i + 1
    local all = {unpack(left)}
    for k, p in ipairs(w) do all[#all + 1], all[#all + 2], all[#all + 3] = p, p.grad or ("no gradient of " .. k), p.requires_grad end
    return all
  end
end

describe("compile, random functions", function()
  it("leave what they leave uncompiled", function()
    local compiled = 0
    for seed = 1, SEEDS do
      local function run(compile)
        tycho.manual_seed(seed)
        local fn, state = random_function(seed)
        local f, out = compile and tycho.compile(fn) or fn, {}
        for k = 1, CALLS do
          local r = {pcall(f, tycho.randn(4))}
          for _, x in ipairs(state()) do r[#r + 1] = x end
          for j, x in ipairs(r) do
            r[j] = tycho.is_tensor(x) and {x:detach():clone(), x.requires_grad} or type(x) == "string" and x:gsub("0x%x+", "") or x
          end
          out[k] = r
        end
        if compile then
          for _, way in ipairs(f:report()) do compiled = compiled + (way.compiled and 1 or 0) end
        end
        return out
      end
      local want, got = run(false), run(true)
      for k = 1, CALLS do
        assert.equal(#want[k], #got[k])
        for j, x in ipairs(want[k]) do
          local y, what = got[k][j], ("seed %d, call %d, item %d"):format(seed, k, j)
          if type(x) == "table" then
            assert.equal(x[2], type(y) == "table" and y[2], what)
            helper.close(y[1], x[1], what, 0)
          else assert.equal(tostring(x), tostring(y), what) end                            -- NaN too
        end
      end
    end
    assert.is_true(compiled > SEEDS / 3, compiled .. " ways are compiled")
  end)
end)
