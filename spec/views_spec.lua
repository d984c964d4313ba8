-- Random programs of views of one tensor that are changed in place, beside the same by index_put on a flat one: values, gradients, and who
-- needs one. A program that both refuse (a saved tensor was changed) counts as agreeing.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local D, SEEDS = helper.device, helper.simulated and 40 or 600

-- What views see: v; and pos, the flat tensor's elements that it sees, in its shape.
local VIEWS = {
  function(x, draw) local d = draw(x:dim()); local i = draw(x:size(d)); return function(y) return y:select(d, i) end end,
  function(x, draw)
    local d = draw(x:dim())
    local first = draw(x:size(d))
    local last = first - 1 + draw(x:size(d) - first + 1)
    return function(y) return y:slice(d, first, last) end
  end,
  function(x, draw) local i, j = draw(x:dim()), draw(x:dim()); return function(y) return y:transpose(i, j) end end,
  function(x) if x:dim() < 6 then return function(y) return y:unsqueeze(1) end end end,
  function(x) if x:is_contiguous() then return function(y) return y:contiguous():view(-1) end end end,
  function(x) if x:dim() > 1 then return function(y) return y:diagonal() end end end,
}
local RESHAPED = {
  function(y) return y:dim() > 1 and y:transpose_(1, 2) or y end,
  function(y) return y:dim() == 2 and y:t_() or y end,
  function(y) return y:unsqueeze_(1) end,
  function(y) return y:squeeze_(1) end,
}

local function run(seed)
  local draw = helper.drawer(seed)
  tycho.manual_seed(seed)
  local a, b = tycho.randn(3, 4, 2, {dtype = "float64", device = D}), tycho.randn({}, {dtype = "float64", device = D})
  local function leaf(x) return x:clone():requires_grad_() end
  local a1, b1, a2, b2 = leaf(a), leaf(b), leaf(a), leaf(b)
  local tracked = draw(2) == 1
  local x, flat = tracked and a1 * 1 or a:clone(), (tracked and a2 * 1 or a:clone()):view(-1)
  local views = {{v = x, pos = tycho.range(1, 24, 1, {dtype = "int64", device = D}):view(3, 4, 2)}}
  local sums, mirrored = {}, {}
  local function seen(o) return flat[o.pos:contiguous():view(-1)]:view(o.pos.shape) end
  local function step()
    local o, kind = views[draw(#views)], draw(10)
    if kind <= 3 then
      local make = o.v:dim() > 0 and VIEWS[draw(#VIEWS)](o.v, draw)
      if make then views[#views + 1] = {v = make(o.v), pos = make(o.pos)} end
    elseif kind == 4 then
      local change = RESHAPED[draw(#RESHAPED)]
      if #views > 1 and o.v:dim() > 0 and o.v:dim() < 6 and o.v ~= x then
        change(o.v)
        o.pos = change(o.pos:clone())
      end
    elseif kind <= 9 then
      local new, how = seen(o), draw(4)
      if how == 1 then o.v:mul_(b1); new = new * b2
      elseif how == 2 then o.v:add_(b1 * 2); new = new + b2 * 2
      elseif how == 3 then o.v:sin_(); new = new:sin()
      else o.v:fill_(1.5); new = new * 0 + 1.5 end
      flat = core.ops.index_put(flat, new:contiguous():view(-1), {o.pos:contiguous():view(-1)}, 1)
    else
      sums[#sums + 1], mirrored[#mirrored + 1] = (o.v * 2):sum(), (seen(o) * 2):sum()
    end
  end
  for _ = 1, 3 + draw(7) do step() end
  for i, o in ipairs(views) do
    sums[#sums + 1], mirrored[#mirrored + 1] = (o.v:sin() * i):sum(), (seen(o):sin() * i):sum()
  end
  local y, z = tycho.stack(sums):sum(), tycho.stack(mirrored):sum()
  helper.close(y, z, "seed " .. seed)
  assert.equal(z.requires_grad, y.requires_grad, "seed " .. seed)
  if not z.requires_grad then return end
  y:backward()
  z:backward()
  for _, pair in ipairs {{a1, a2}, {b1, b2}} do
    local g, wanted = pair[1].grad, pair[2].grad
    local zero = tycho.zeros_like(pair[1])
    helper.close(g or zero, wanted or zero, "gradient, seed " .. seed, nil, 10)
  end
end

describe("views that are changed in place", function()
  it("are seen as PyTorch's", function()
    for seed = 1, SEEDS do run(seed) end
  end)

  it("stay views where their shape changes in place", function()
    local w = tycho.full({2, 2}, 2, {device = D, requires_grad = true})
    for _, change in pairs {function(v) return v:t_() end, function(v) return v:transpose_(1, 2) end,
      function(v) return v:unsqueeze_(1):squeeze_(1) end, function(v) return tycho.no_grad(v.t_, v) end} do
      local x = tycho.zeros(2, 2, {device = D})
      local v = x:view(2, 2)
      change(v):copy_(w * 3)
      helper.close(x:detach(), tycho.full({2, 2}, 6, {device = D}))
      assert.is_true(x.requires_grad)
      helper.close(tycho.grad(x:sum(), w), tycho.full({2, 2}, 3, {device = D}))
    end
  end)

  it("as_strided names elements by strides, within the tensor alone", function()
    local x = tycho.range(1, 12):view(3, 4)
    local windows = x:as_strided({2, 2}, {1, 4}, 3)
    assert.same({{4, 8}, {5, 9}}, windows:totable())
    windows:zero_()                                        -- it is a view
    assert.equal(0, x[{3, 1}])
    assert.equal(4, tycho.range(1, 5):as_strided({}, {}, 3):item())
    assert.equal("0x3", tostring(x:as_strided({0, 3}, {1, 1}, 2 ^ 53 - 1).shape))
    local w = tycho.ones(3, 4, {requires_grad = true})
    local y = w * 1
    y:as_strided({2, 2}, {1, 4}):mul_(3)
    y:sum():backward()
    assert.same({{3, 3, 1, 1}, {3, 3, 1, 1}, {1, 1, 1, 1}}, w.grad:totable())
    helper.fails("size 4x4 at strides 4x1 from storage_offset 1 reaches outside of 12 elements", x.as_strided, x, {4, 4}, {4, 1}, 1)
    helper.fails("reaches outside", x.as_strided, x, {2 ^ 40, 2}, {2 ^ 50, 2 ^ 40})
    helper.fails("reaches outside", x.as_strided, x, {1}, {1}, -1)
    helper.fails("2 sizes and 1 strides are given", x.as_strided, x, {2, 2}, {1})
    helper.fails("must not be negative, got 2 and -1", x.as_strided, x, {2}, {-1})
    helper.fails("argument 1 must be contiguous", x.as_strided, x:t(), {2}, {1})
    helper.fails("whose elements share memory", function() x:as_strided({3, 3}, {1, 1}):zero_() end)
  end)

  it("of a recorded call's own tensors is recorded", function()
    local w = tycho.randn(3, 4, {device = helper.device})
    local function f(x)
      local y, z = x * 2, tycho.zeros(4, {device = helper.device})
      local held = y
      y:unsqueeze_(1):squeeze_(1):t_()
      z:unsqueeze_(2):add_(1)
      return held:mm(w) + z:t_():mean(), y, z
    end
    local compiled = tycho.compile(f)
    local x = tycho.randn(3, 2, {device = helper.device})
    local traced = tycho.jit.trace(f, x)
    for _ = 1, 4 do
      x = tycho.randn(3, 2, {device = helper.device})
      local want = {f(x)}
      for _, got in ipairs {{compiled(x)}, {traced(x)}} do
        for i = 1, 3 do helper.close(got[i], want[i], i) end
      end
      assert.same({3, 2}, {x.shape[1], x.shape[2]})
    end
    assert.is_true(helper.compiled(compiled))
    -- others hold these: they see the new shape
    local p = tycho.zeros(3, {device = helper.device, requires_grad = true})
    local step = tycho.compile(function(v)
      p.grad = nil
      tycho.sum(p * v):backward()
      p.grad:unsqueeze_(1)
      return p * 2
    end)
    for k = 1, 4 do
      step(tycho.full({3}, k, {device = helper.device}))
      assert.same({{k, k, k}}, p.grad:totable())
    end
    local leaf = tycho.compile(function(v)
      local q = tycho.zeros(3, {device = helper.device}):requires_grad_()
      tycho.no_grad(function() q:unsqueeze_(1) end)
      tycho.sum(q * v):backward()
      return q.grad
    end)
    for k = 1, 4 do assert.same({{k, k, k}}, leaf(tycho.full({3}, k, {device = helper.device})):totable()) end
    local turned = tycho.compile(function(v) v:t_() return v + 1 end)           -- an argument is turned for the caller
    for _ = 1, 3 do
      x = tycho.randn(3, 2, {device = "cpu"})
      assert.same({2, 2}, {turned(x).shape[1], x.shape[1]})
    end
  end)
end)
