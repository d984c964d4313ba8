-- Functions made of ops, and those with ops of their own: losses of scores in parts, pictures at points, windows, short rows.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F = tycho.nn, tycho.nn.functional

describe("linear_cross_entropy", function()
  local N, D, C = 50, 8, 30
  local function leaf(...) return tycho.randn(..., {dtype = "float64", requires_grad = true}) end
  it("is linear and cross_entropy, whatever the size of its parts", function()
    tycho.manual_seed(7)
    for _, case in ipairs {{}, {reduction = "sum"}, {label_smoothing = 0.1, bias = true}, {ignore = true, classes = true}} do
      local x, w, b = leaf {5, 10, D}, leaf {C, D}, case.bias and leaf {C}
      local target = tycho.randint(1, C, {5, 10})
      if case.ignore then target[{1, 1}] = -100 end
      local weight = case.classes and tycho.rand(C, {dtype = "float64"}) + 0.1 or nil
      local o = {weight = weight, reduction = case.reduction, label_smoothing = case.label_smoothing}
      local leaves = b and {x, w, b} or {x, w}
      local want = F.cross_entropy(F.linear(x, w, b):view(N, C), target:view(N), o)
      local grads = tycho.autograd.grad(want * 3, leaves)
      o.linear_bias = b
      for _, size in ipairs {1, 7, 49, 50, 1000} do
        o.chunk_size = size
        local got = F.linear_cross_entropy(x, w, target, o)
        helper.close(got, want)
        for i, g in ipairs(tycho.autograd.grad(got * 3, leaves)) do helper.close(g, grads[i], "gradient " .. i) end
        helper.close(tycho.no_grad(F.linear_cross_entropy, x, w, target, o), want)
      end
    end
  end)

  it("works in 16 bits, compiled, and as a layer", function()
    local loss = nn.LinearCrossEntropyLoss(D, C, {bias = true, chunk_size = 16, label_smoothing = 0.1})
    local x, target = tycho.randn(N, D), tycho.randint(1, C, {N})
    local function step()
      loss:zero_grad()
      local y = loss(x, target)
      y:backward()
      return y:detach()
    end
    local want, grad = step(), loss.linear.weight.grad:clone()
    local compiled = tycho.compile(step)
    for _ = 1, 5 do
      helper.close(compiled(), want)
      helper.close(loss.linear.weight.grad, grad)
    end
    tycho.amp.autocast(helper.device, function()
      local y = step()
      assert.equal("float32", y.dtype)
      helper.close(y, want, "bfloat16", 0.02)
      helper.close(loss.linear.weight.grad, grad, "bfloat16", 0.02)
    end, {dtype = "bfloat16"})
    assert.is_false(tycho.no_grad(function() return loss(x, target) end).requires_grad)
  end)

  it("takes 16 bits with weights, and labels that are all ignored", function()
    for _, dtype in ipairs {"float16", "bfloat16"} do
      local x, w = tycho.randn(6, 4):to(dtype):requires_grad_(), tycho.randn(6, 4):to(dtype):requires_grad_()
      local y, weight = tycho.randint(1, 6, {6}), (tycho.rand(6) + 0.1):to(dtype)
      local want = F.linear_cross_entropy(x, w, y, {weight = weight, chunk_size = 100})
      local got = F.linear_cross_entropy(x, w, y, {weight = weight, chunk_size = 2})
      helper.close(got:float(), want:float(), dtype, 0.02)
      helper.close(tycho.autograd.grad(got, {w})[1]:float(), tycho.autograd.grad(want, {w})[1]:float(), dtype, 0.02)
    end
    for _, size in ipairs {2, 100} do
      local x, w = leaf {6, 4}, leaf {5, 4}
      local none = F.linear_cross_entropy(x, w, tycho.full({6}, -100, {dtype = "int64"}), {chunk_size = size})
      assert.is_true(none:isnan():item())
      for _, g in ipairs(tycho.autograd.grad(none, {x, w})) do assert.equal(0, g:abs():sum():item()) end
    end
  end)

  it("says what doesn't fit, and that parts have no second derivative", function()
    local x, w, target = leaf {N, D}, leaf {C, D}, tycho.randint(1, C, {N})
    helper.fails("no second derivative", function()
      return tycho.autograd.grad(F.linear_cross_entropy(x, w, target, {chunk_size = 9}), {x}, {create_graph = true})
    end)
    helper.fails("(classes, in_features)", F.linear_cross_entropy, x, w:t(), target)
    helper.fails("argument 3 (target) has shape", F.linear_cross_entropy, x, w, target:narrow(1, 1, 3))
    helper.fails("chunk_size must be at least 1", F.linear_cross_entropy, x, w, target, {chunk_size = 0})
  end)
end)

describe("grid_sample", function()
  it("has the gradients of its recorded form, and second ones", function()
    tycho.manual_seed(3)
    local draw = helper.drawer(4)
    for round = 1, helper.device == "cpu" and 12 or 4 do
      local n, c, h, w = draw(3), draw(4), draw(6), draw(6)
      local x = tycho.randn(n, c, h, w, {dtype = "float64", requires_grad = true})
      local grid = (tycho.rand(n, draw(5), draw(30), 2, {dtype = "float64"}) * 3 - 1.5):requires_grad_()
      for _, padding in ipairs {"zeros", "border", "reflection"} do
        for _, mode in ipairs {"bilinear", "nearest"} do
          local o = {mode = mode, padding_mode = padding, align_corners = round % 2 == 0}
          local y = F.grid_sample(x, grid, o)
          local g = tycho.randn(y.shape, {dtype = "float64"})
          local fast = tycho.autograd.grad(y, {x, grid}, g, {retain_graph = true})
          for k, want in ipairs(tycho.autograd.grad(y, {x, grid}, g, {create_graph = true})) do helper.close(fast[k], want) end
          if round == 1 and mode == "bilinear" then
            assert.is_true(tycho.autograd.gradgradcheck(function(a, b) return F.grid_sample(a, b, o) end, {x, grid}))
          end
        end
      end
    end
  end)

  it("reads nothing outside, and 16 bits in float32", function()
    local x = tycho.full({1, 1, 2, 2}, math.huge)
    local far = tycho.tensor {{{{-5, 0}, {0, 7}, {math.huge, 0}, {-math.huge, 3}}}}
    assert.equal(0, F.grid_sample(x, far):abs():sum():item())
    for _, padding in ipairs {"border", "reflection"} do
      assert.equal(math.huge, F.grid_sample(x, far, {padding_mode = padding, mode = "nearest"}):min():item())
    end
    local p = tycho.ones(1, 2, 4, 4, {dtype = "bfloat16", requires_grad = true})
    F.grid_sample(p, tycho.zeros(1, 600, 1, 2, {dtype = "bfloat16"})):sum():backward()
    assert.equal(1200, p.grad:float():sum():item())
    local infinite = tycho.ones(1, 1, 2, 2, {requires_grad = true})
    F.grid_sample(infinite, tycho.tensor {{{{-5, -5}, {0, 0}}}}):backward(tycho.tensor {{{{math.huge, 1}}}})
    assert.equal(1, infinite.grad:sum():item())
    local wide = tycho.range(1, 300):view(1, 1, 1, 300):bfloat16():requires_grad_()
    local y = F.grid_sample(wide, tycho.tensor({{{{0.503, 0}}}}, {dtype = "bfloat16"}))
    for _, recorded in ipairs {false, true} do
      local g = tycho.autograd.grad(y, {wide}, nil, {create_graph = recorded, retain_graph = true})[1]
      assert.is_true(math.abs((g:float():flatten() * tycho.range(1, 300, {dtype = "float32"})):sum():item() - 226.1) < 0.5)
    end
    assert.same({2, 3, 0, 4}, {unpack(F.grid_sample(tycho.ones(2, 3, 4, 4), tycho.zeros(2, 0, 4, 2)).shape)})
    helper.fails("have no pixels", F.grid_sample, tycho.ones(1, 1, 0, 3), tycho.zeros(1, 2, 2, 2))
  end)
end)

describe("windows and rows", function()
  it("add up windows as they took them apart, dilated ones too", function()
    tycho.manual_seed(5)
    for _, c in ipairs {{1, 1, 1, 0}, {3, 2, 1, 1}, {3, 1, 2, 2}, {2, 3, 2, 0}, {7, 4, 1, 0}} do
      local size, step, dilation, pad = unpack(c)
      local x = tycho.randn(2, 3, 9, 8, {dtype = "float64"})
      local o = {padding = pad, stride = step, dilation = dilation}
      local columns = F.unfold(x, size, o)
      local y = tycho.randn(columns.shape, {dtype = "float64"})
      -- fold is unfold's transpose: both products are one sum
      helper.close((columns * y):sum(), (F.fold(y, {9, 8}, size, o) * x):sum(), table.concat(c, " "), 1e-10)
    end
    local function leaf(...) return tycho.randn(..., {dtype = "float64", requires_grad = true}) end
    for _, c in ipairs {{11, 3, 2, 2}, {11, 2, 1, 4}, {12, 9, 1, 1}, {5, 5, 3, 1}} do
      local n, size, step, dilation = unpack(c)
      assert.is_true(tycho.autograd.gradgradcheck(function(x)
        return x:unfold(2, size, step, {dilation = dilation}):square()
      end, {leaf {2, n, 2}}))
    end
    helper.fails("fit dim", function() return tycho.ones(5):unfold(1, 3, 1, {dilation = 3}) end)
    helper.fails("dilation", function() return tycho.ones(5):unfold(1, 3, 1, {dilation = 0}) end)
    assert.same({6, 0}, {unpack(tycho.ones(5):unfold(1, 0, 1).shape)})
  end)

  it("compute short rows as long ones", function()
    tycho.manual_seed(6)
    for _, n in ipairs {1, 2, 3, 4, 5, 8, 10, 16, 33, 256, 257} do
      for _, dtype in ipairs {"float32", "float64", "int64", "float16"} do
        local m = 700
        local x = (tycho.randn(m, n) * 8):to(dtype)
        local col, row, across = x:narrow(2, 1, 1):clone(), x[1]:clone(), (tycho.randn(n, m) * 8):to(dtype):t()
        local function whole(t) return t:expand(m, n):contiguous() end
        for i, pair in ipairs {{x, col}, {row, col}, {across, row}, {col, across}, {x:narrow(2, 1, n), row}} do
          assert.is_true(tycho.equal(pair[1] * pair[2], whole(pair[1]) * whole(pair[2])), dtype .. n .. " case " .. i)
        end
        assert.is_true(tycho.equal(x:to("float64") + row:float(), whole(x):to("float64") + whole(row:float())))
        assert.is_true(tycho.equal(x:clone():add_(col), x + whole(col)))
      end
    end
  end)

  it("compute rows of nothing", function()
    local none = tycho.ones(0, 1):expand(0, 8)
    assert.same({0, 8}, {unpack((none + tycho.ones(8)).shape)})
    assert.same({0, 8}, {unpack((none * 2).shape)})
    assert.same({8, 0}, {unpack((tycho.ones(1, 0):expand(8, 0):t():t() * tycho.ones(8, 1)).shape)})
    for _, fn in ipairs {function(x) return x:norm(2, 2) end, function(x) return x:std(2) end, function(x) return x:prod(2) end,
        function(x) return F.normalize(x) end, function(x) return F.softplus(x):mean(2) end} do
      local x = tycho.zeros(0, 5, {requires_grad = true})
      fn(x):sum():backward()
      assert.same({0, 5}, {unpack(x.grad.shape)})
    end
    assert.equal(0, tycho.ones(3):gather(1, tycho.tensor({99}, {dtype = "int64"}):expand(0)):numel())
  end)

  it("round sums of 16-bit floats once", function()
    for _, dtype in ipairs {"bfloat16", "float16"} do
      local n, index = 4000, tycho.ones(4000, {dtype = "int64"})
      local x, ones = tycho.zeros(2, {dtype = dtype}), tycho.ones(n, {dtype = dtype})
      local function gives(y) assert.same({n == 4000 and tycho.tensor({4000}, {dtype = dtype}):item(), 0}, y:double():totable()) end
      gives(x:scatter_add(1, index, ones))
      gives(x:clone():scatter_add_(1, index, ones))
      gives(x:index_add(1, index, ones))
      gives(x:clone():index_put_({index}, ones, {accumulate = true}))
      assert.same({1, 0}, x:scatter_reduce(1, index, ones, "mean", {include_self = false}):double():totable())
      local src = ones:clone():requires_grad_()
      x:scatter_reduce(1, index, src, "amax"):sum():backward()
      assert.is_true(math.abs(src.grad:double():sum():item() - 1) < 0.01)
      local y = tycho.ones(2000, {dtype = dtype, requires_grad = true})
      y:unfold(1, 1000, 1):backward(tycho.ones(1001, 1000, {dtype = dtype}))
      assert.equal(1000, y.grad:double():max():item())
    end
    local x, src = tycho.ones(1, {requires_grad = true}), tycho.zeros(2, {requires_grad = true})
    local y = x:scatter_reduce(1, tycho.ones(2, {dtype = "int64"}), src, "prod"):sum()
    helper.fails("no second derivative", function() return tycho.autograd.grad(y, {src}, {create_graph = true}) end)
    assert.equal(300, tycho.zeros(1, {dtype = "int64"}):scatter_reduce(1, tycho.ones(300, {dtype = "int64"}),
      tycho.ones(300, {dtype = "int64"}) * 300, "mean", {include_self = false}):item())
  end)
end)
