-- Functions made of ops, and those with ops of their own: losses of scores in parts, pictures at points, windows, short rows.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F = tycho.nn, tycho.nn.functional

describe("as PyTorch gives it:", function()
  local function same(want, got) assert.same(want, got:totable()) end
  it("unique slices of a dim, in the order of their elements", function()
    local x = tycho.tensor {{{1, 1}, {1, 2}, {1, 0}}, {{2, 1}, {2, 2}, {0, 1}}}
    local v, inverse, counts = x:unique {dim = 3, return_inverse = true, return_counts = true}
    helper.close(v, x)
    same({1, 2}, inverse)
    same({1, 1}, counts)
    helper.close((x:unique {dim = 2}), tycho.cat({x[{ {}, {3, 3} }], x[{ {}, {1, 2} }]}, 2))
  end)
  it("16-bit results of several steps are rounded once", function()
    assert.is_true(math.abs(tycho.tensor({8.25}, {dtype = "bfloat16"}):sinc():item() - 0.0273) < 1e-4)
    local x = tycho.tensor({{50, 0}}, {dtype = "float16"}):requires_grad_()
    F.glu(x):backward(tycho.tensor({{2000}}, {dtype = "float16"}))
    same({{1000, 24992}}, x.grad)
  end)
  it("small things", function()
    same({true, true, false}, tycho.tensor({true, false, true, true}):diff())
    assert.equal(3, #tycho.zeros(2, 0):chunk(3, 2))
    assert.equal("2x0", tostring(tycho.zeros(2, 0):chunk(3, 2)[3].shape))
    for _, layer in ipairs {nn.EmbeddingBag, nn.Embedding} do
      assert.equal(6, layer(6, 3, {padding_idx = -1}).padding_idx)
      same({0, 0, 0}, layer(6, 3, {padding_idx = -2}).weight[5])
      for _, bad in ipairs {0, 7} do helper.fails("padding_idx " .. bad .. " is out of range for 6", layer, 6, 3, {padding_idx = bad}) end
      for _, bad in ipairs {1.5, "x", -7} do helper.fails("padding_idx must be a whole number from -6", layer, 6, 3,
        {padding_idx = bad}) end
    end
  end)
end)

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
          if round == 1 and mode == "bilinear" and not helper.simulated then
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

  it("are copied however short they are, and cut into triangles", function()
    for _, dtype in ipairs {"float32", "float64", "float16", "uint8"} do
      for n = 1, 6 do
        local a = tycho.randint(1, 9, {9, n}):to(dtype)
        local big = tycho.zeros(9, n + 3, {dtype = dtype})
        for _, x in ipairs {a, a:t():contiguous():t(), a:clone():flip(1):flip(1)} do
          big[{ {}, {2, n + 1} }] = x
          assert.is_true(big:narrow(2, 2, n):equal(a))
        end
        local repeated = a:repeat_interleave(n, 2):view(9, n, n)
        for k = 1, n do assert.is_true(repeated:select(3, k):equal(a)) end
        for k = -7, 8, 5 do
          local m = (tycho.range(1, n):view(1, n) - tycho.range(1, 9):view(9, 1)):le(k)
          for _, x in ipairs {a, a:t():contiguous():t(), a:unsqueeze(1):expand(2, 9, n)} do
            assert.is_true(x:tril(k):double():equal(x:double() * m:double()))
            assert.is_true(x:triu(k + 1):double():equal(x:double() * m:logical_not():double()))
          end
        end
      end
    end
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

  it("add and multiply a number a row as if it stood in every place", function()
    for _, dtype in ipairs {"float32", "float64", "int64"} do
      local values = tycho.tensor({0, 1, -1, 3.7, 1e9, -1e9}):to(dtype)
      if dtype ~= "int64" then values = tycho.cat {values, tycho.tensor({1 / (-1 / 0), 1 / 0, 0 / 0, 1e-40, 1e30}, {dtype = dtype})} end
      local n = values.shape[1]
      for _, columns in ipairs {20, 64, 300} do
        local x = values:unsqueeze(2) * (tycho.randn(columns) * 3):to(dtype)
        for _, op in ipairs {"add", "sub", "mul"} do
          for _, s in ipairs {values:unsqueeze(2), values[{ {3} }]} do
            local full = s:expand(n, columns):contiguous()
            for _, alpha in ipairs(op == "mul" and {1} or {1, -2}) do
              local o = op ~= "mul" and {alpha = alpha} or nil
              for i, pair in ipairs {{x, s, x, full}, {s, x, full, x}} do
                local function run(l, r) if o then return tycho[op](l, r, o) end return tycho[op](l, r) end
                helper.exact(run(pair[1], pair[2]), run(pair[3], pair[4]),
                  ("%s %s, %d columns, number %s"):format(op, dtype, columns, i == 1 and "last" or "first"))
              end
            end
          end
        end
      end
    end
  end)

  it("reduce rows that repeat one element", function()
    for _, shape in ipairs {{10, 6, 8}, {5, 5, 2}, {40, 3}} do
      local narrow = {unpack(shape)}
      narrow[#narrow] = 1
      local x = tycho.randn(narrow):expand(shape)
      for _, name in ipairs {"softmax", "log_softmax", "cumsum", "argmax", "argmin", "amax", "sum", "prod"} do
        helper.close(x[name](x, -1), x:contiguous()[name](x:contiguous(), -1), name .. " of " .. tostring(x.shape))
      end
      helper.close((x:max(-1)), (x:contiguous():max(-1)), "max")
    end
  end)

  it("reduce rows together as each alone", function()
    tycho.manual_seed(7)
    local names = {"sum", "prod", "amax", "amin", "argmax", "argmin", "cumsum", "mean", "norm", "softmax", "log_softmax", "logsumexp"}
    for _, n in ipairs {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50, 99, 100, 101, 130} do
      for _, dtype in ipairs {"float32", "float64", "int64", "float16"} do
        local x = (tycho.randn(37, n) * 3):to(dtype)
        if n > 2 then x[{1, 2}] = x[{1, 3}] end                    -- of equals the first is the extreme
        if dtype ~= "int64" then x[{3, n}] = 0 / 0 end
        for i, name in ipairs(names) do
          if dtype ~= "int64" or i <= 7 then
            local function run(t, dim) if name == "norm" then return t:norm(2, dim) end return t[name](t, dim) end
            local alone = {}
            for row = 1, 37 do alone[row] = run(x[row], 1) end
            local want = tycho.stack(alone)
            for layout, t in pairs {rows = x, columns = name:match("softmax") and x:t():contiguous():t()} do
              helper.exact(run(t, 2), want, ("%s of %d %s, %s"):format(name, n, dtype, layout))
            end
          end
        end
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

-- Values that PyTorch 2.15 gave.
describe("functions made of others", function()
  local i64 = {dtype = "int64"}
  local function grad_of(fn, values)
    local x = tycho.tensor(values)
    x.requires_grad = true
    return tycho.grad(fn(x):sum(), x)
  end
  local function gives(want, x) helper.close(x:cpu():double(), tycho.tensor(want, {dtype = "float64", device = "cpu"}), nil, 1e-5) end

  it("have the gradients of steep and of repeated places", function()
    gives({0, 0, 0, 1}, grad_of(function(x) return F.gelu(x, {approximate = "tanh"}) end, {-1000, -300, -30, 300}))
    assert.same({1, -1, 1}, tycho.tensor({9.1, -20, 1 / 0}):tanh():totable())
    local v = tycho.tensor(1.5)
    v.requires_grad = true
    local filled = tycho.zeros(3):index_fill(1, tycho.tensor({1, 1}, i64), v)
    gives({1.5, 0, 0}, filled:detach())
    assert.equal(1, tycho.grad(filled:sum(), v):item())
    local x = tycho.tensor({-100, 5})
    x.requires_grad = true
    gives({1, 1}, tycho.grad(x:logcumsumexp(1):sum(), x, {create_graph = true}))
    local y = tycho.randn(3, 4, {dtype = "float64", requires_grad = true})
    for _, dim in ipairs {1, -1} do assert.is_true(tycho.autograd.gradgradcheck(function(z) return z:logcumsumexp(dim) end, {y})) end
  end)

  it("are differentiated in place as out of it", function()
    for name, arguments in pairs {clamp_min = {0.3}, clamp_max = {0.4}, relu6 = {}, digamma = {}, renorm = {2, 1, 0.5}, gelu = {},
        logit = {}} do
      local values = {{0.2, 0.5}, {0.7, 0.1}}
      local want = grad_of(function(x) return tycho[name](x, unpack(arguments)) end, values)
      local got = grad_of(function(x) return (x * 1)[name .. "_"](x * 1, unpack(arguments)) end, values)
      assert.is_true(want:equal(got), name)
    end
  end)

  it("promote before they compute, and keep whole numbers whole", function()
    gives({6.2818289819753}, tycho.tensor({2.3}, {dtype = "float64"}):logaddexp2(tycho.tensor({6.2}, {dtype = "bfloat16"})))
    assert.equal("float16", tycho.ones(1, {dtype = "float16"}):logaddexp2(tycho.ones(1, {dtype = "int32"})).dtype)
    assert.is_true(tycho.isnan(tycho.tensor({3}, {dtype = "uint8"}):logit()):item())
    local whole = {dtype = "int32"}
    assert.equal("int32", tycho.ones(2, 3, whole):addbmm(tycho.ones(4, 2, 2, whole), tycho.ones(4, 2, 3, whole)).dtype)
    assert.same({1, 2}, tycho.bucketize(tycho.tensor({0, 1}, i64), tycho.tensor({0.5, 2.5})):totable())
    assert.same({true, false}, tycho.isclose(tycho.tensor({true, true}), tycho.tensor({true, false})):totable())
    assert.equal(math.huge, tycho.hypot(tycho.tensor({math.huge}), tycho.tensor({0 / 0})):item())
    gives({2.3333333}, tycho.tensor({{1, 2, 4}}, i64):cov():view(1))
    assert.equal("()", tostring(tycho.tensor({{1, 2, 4}}):corrcoef().shape))
  end)

  it("take what is empty, or of no dims", function()
    assert.same({2}, {unpack(tycho.ones(2):diff(0, 1, {append = tycho.ones(1)}).shape)})
    gives({{0.5, 0}, {0, 0.5}}, tycho.matrix_power(tycho.eye(2) * 2, -1))
    gives({{0.25, 0}, {0, 0.25}}, tycho.linalg.matrix_power(tycho.eye(2) * 2, -2))
    assert.same({0}, {unpack(F.glu(tycho.zeros(0)).shape)})
    assert.same({0, 0, 0}, tycho.trapezoid(tycho.zeros(3, 0)):totable())
    assert.is_true(tycho.isnan(tycho.zeros(0):median()):item())
    gives({2}, tycho.range(1, 3):index_select(1, tycho.tensor(2, i64)))
    gives({0, 1, 2}, tycho.tensor({0 / 0, 1, 2, 3, -5}):histc(3, 0, 3))
    helper.fails("range must be {least, most}", tycho.histogram, tycho.ones(3), 1, {range = 1})
    for row = 0, 4 do                       -- beside the matrix itself
      for col = 0, 5 do
        for offset = -6, 6 do
          for _, keep in ipairs {"tril", "triu"} do
            local places = tycho.nonzero(tycho[keep](tycho.ones(row, col), offset)):t()
            assert.is_true(places:equal(tycho[keep .. "_indices"](row, col, offset)), keep .. row .. col .. offset)
          end
        end
      end
    end
    local pairs_of = tycho.compile(function(x) return x[{ {}, tycho.tril_indices(3, 3, -1)[1] }] * 2, tycho.pdist(x) end)
    for _ = 1, 3 do pairs_of(tycho.ones(2, 3)) end
    assert.is_true(pairs_of:report()[1].compiled)
    helper.fails("tril_indices: row and col must be at least 0, got -1 and 2", tycho.tril_indices, -1, 2)
    if helper.device ~= "cpu" then return end
    assert.equal("281474976710656x0", tostring(tycho.zeros(2 ^ 48, 0):tril().shape))       -- at once
    assert.equal("2x0", tostring(tycho.tril_indices(2 ^ 48, 0).shape))
  end)

  it("make tensors like another where it is", function()
    local x = tycho.ones(2, {dtype = "float64"})
    local before = helper.device ~= "cpu" and tycho.cuda.sync_count()
    for _, y in ipairs {x:new_zeros(3), x:new_ones({3}), x:new_empty(x.shape), x:new_zeros({2, 3}, {dtype = "int64"})} do
      assert.equal(x.device, y.device)
    end
    if before then assert.equal(before, tycho.cuda.sync_count()) end
    assert.equal("float64", x:new_zeros(3).dtype)
    assert.equal("int64", x:new_zeros({2, 3}, {dtype = "int64"}).dtype)
    assert.same({{0, 0, 0}, {0, 0, 0}}, x:new_zeros(2, 3):totable())
    for _, mode in ipairs {"reflect", "replicate", "circular"} do
      local pad = tycho.jit.trace(function(v) return F.pad(v, {2, 1}, {mode = mode}) end, tycho.ones(1, 2, 4))
      local v = tycho.randn(1, 2, 4)
      assert.is_true(pad(v):equal(F.pad(v, {2, 1}, {mode = mode})))
    end
  end)

  it("look at values for mistakes, but for a record", function()
    local ids = tycho.tensor({1, 3}, i64)
    if helper.device == "cpu" then helper.fails("id 3 in argument 1 (ids) is above num_classes 2", F.one_hot, ids, 2) end
    local hot = tycho.compile(function(v) return F.one_hot(v, 4):float() * 2 end)
    local drawn = tycho.compile(function(m, s) return tycho.distributions.Normal(m, s):log_prob(m + 1):sum() end)
    for k = 1, 4 do
      assert.same({{2, 0, 0, 0}, {0, 0, 2, 0}}, hot(ids):totable())
      drawn(tycho.ones(3) * k, tycho.ones(3))
    end
    assert.is_true(hot:report()[1].compiled, hot:report()[1].why)
    assert.is_true(drawn:report()[1].compiled, drawn:report()[1].why)
    local traced = tycho.jit.trace(function(v) return F.one_hot(v, 4) end, ids)
    assert.same({{0, 0, 0, 1}, {0, 1, 0, 0}}, traced(tycho.tensor({4, 2}, i64)):totable())
    local bag, offsets, weights = nn.EmbeddingBag(4, 2, {mode = "sum"}), tycho.tensor({1, 2}, i64), tycho.tensor {0.5, 2}
    local want = bag(ids, offsets, weights)
    assert.is_true(want:equal(bag(ids, offsets, {per_sample_weights = weights})))
    assert.is_true(want:equal(bag(ids, {offsets = offsets, per_sample_weights = weights})))
  end)
end)

-- Against log_softmax and sums of its elements, in float64: rows long and short, places side by side, channels-last.
describe("cross_entropy of places", function()
  for _, shape in ipairs {{20, 10}, {5, 100}, {258, 4}, {1, 3, 258}, {2, 6, 4, 5}, {1, 3, 6, 43}, {2, 3, 2, 1, 3}, {1, 4, 0, 3}, {0, 3}} do
    for _, layout in ipairs {"contiguous", "channels_last"} do
      if layout == "contiguous" or #shape == 4 then
        it(table.concat(shape, "x") .. " " .. layout, function()
          tycho.manual_seed(3)
          local x = tycho.randn(shape, {dtype = "float64"})
          local places = {}
          for i, n in ipairs(shape) do if i ~= 2 then places[#places + 1] = n end end
          local y = tycho.randint(1, shape[2], places)
          local w = tycho.rand(shape[2], {dtype = "float64"}) + 0.5
          if y:numel() > 5 then y:view(-1):slice(1, 2, 5):fill_(-100) end
          local wide = {shape[2]}
          for i = 2, #places do wide[i] = 1 end
          for _, o in ipairs {{}, {weight = w}, {label_smoothing = 0.1}, {weight = w, label_smoothing = 0.3}, {reduction = "sum"},
              {reduction = "none"}} do
            local ref = x:clone():requires_grad_(true)
            local logp, valid, smooth = F.log_softmax(ref, 2), y:ne(-100), o.label_smoothing or 0
            local label = tycho.where(valid, y, 1)
            local each = (o.weight or tycho.ones_like(w)):view(unpack(wide))
            local picked = (o.weight or tycho.ones_like(w))[label:flatten()]:view(places)
            local loss = -logp:gather(2, label:unsqueeze(2)):squeeze(2) * picked * (1 - smooth) - (logp * each):sum(2) * (smooth / shape[2])
            loss = tycho.where(valid, loss, 0)
            local want = o.reduction == "sum" and loss:sum() or o.reduction == "none" and loss or loss:sum() / (picked * valid):sum()
            local up = tycho.randn(want.shape, {dtype = "float64"})
            want:backward(up)
            for dtype, tolerance in pairs {float64 = 1e-12, float32 = 1e-5, bfloat16 = 0.05} do
              local v = x:to(dtype):clone()
              if layout == "channels_last" then v = v:to({memory_format = "channels_last"}) end
              v:requires_grad_(true)
              local options = {}
              for k, z in pairs(o) do options[k] = k == "weight" and z:to(dtype) or z end
              local got = F.cross_entropy(v, y, options)
              helper.close(got:double(), want:detach(), dtype, tolerance)
              got:backward(up:to(got.dtype))
              helper.close(v.grad:double(), ref.grad, dtype .. "'s gradient", tolerance)
              if layout == "channels_last" and v:numel() > 0 then assert.is_false(v.grad:is_contiguous()) end
            end
          end
        end)
      end
    end
  end
end)

describe("cross_entropy", function()
  it("loses nothing where scores are large, however many rows there are", function()
    for _, n in ipairs {2, 40} do
      for _, top in ipairs {0, 100, 1000} do
        local x = tycho.full({n, 10}, top - 12)
        x[{ {}, 1 }] = top
        local loss = F.cross_entropy(x, tycho.ones(n):long()):item()
        assert.is_true(math.abs(loss / 5.5296e-5 - 1) < 4e-3, loss)
      end
    end
    assert.equal(0, F.cross_entropy(tycho.zeros(20, 0), tycho.full({20}, -100):long(), nil, {reduction = "none"}):sum():item())
  end)
end)

describe("kthvalue", function()
  it("of many finds the first few as a whole order has them, with their gradients", function()
    tycho.manual_seed(2)
    for _, dim in ipairs {1, -1} do
      for _, k in ipairs {1, 4, 40, 64} do
        local x = tycho.randint(1, 9, {64, 64}):double()           -- equals come in their order
        x[{3, 5}] = 0 / 0
        x:requires_grad_(true)
        local values, places = x:sort(dim)
        local v, i = x:kthvalue(k, dim)
        helper.close(v, values:select(dim, k))
        assert.is_true(i:equal(places:select(dim, k)))
        local g = tycho.grad(v:nan_to_num(0):sum(), x)
        helper.close(g, tycho.grad(values:select(dim, k):nan_to_num(0):sum(), x))
      end
    end
  end)
end)

describe("dot", function()
  it("adds up long vectors, strided ones too, as float64 does", function()
    tycho.manual_seed(4)
    local a, b = tycho.randn(30001, 2), tycho.randn(2, 30001)
    for _, dtype in ipairs {"float32", "float64"} do
      local x, y = a:to(dtype), b:to(dtype)
      for k = 1, 2 do
        local want = (x:select(2, k):double() * y:select(1, k):double()):sum()
        helper.close(x:select(2, k):dot(y:select(1, k)):double(), want, dtype, dtype == "float32" and 1e-4 or 1e-11)
        helper.close(y:select(1, k):matmul(x:select(2, k)):double(), want, dtype, dtype == "float32" and 1e-4 or 1e-11)
      end
    end
    assert.equal(0, tycho.zeros(0):dot(tycho.zeros(0)):item())
  end)

  it("clamp has no gradient at its borders, and where there is none goes on to infinity, as in PyTorch 2.15", function()
    local inf = math.huge
    for _, dtype in ipairs {"float32", "float64"} do
      local x = tycho.tensor({-inf, -1, 0, 0.5, 1, 2, inf, 0 / 0}, {dtype = dtype, requires_grad = true})
      for i, f in ipairs {function(v) return v:clamp(0) end, function(v) return v:clamp(nil, 1) end, function(v) return v:clamp(0, 1) end,
          function(v) return v:nan_to_num() end} do
        x.grad = nil
        f(x):sum():backward()
        assert.same(({{0, 0, 0, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0, 0}, {0, 1, 1, 1, 1, 1, 0, 0}})[i],
          x.grad:totable())
      end
      for _, f in ipairs {function(v) return v:clamp(inf) end, function(v) return v:clamp(nil, -inf) end} do      -- all of it is beyond
        x.grad = nil
        f(x):sum():backward()
        assert.same({0, 0, 0, 0, 0, 0, 0, 0}, x.grad:totable())
      end
    end
    local h = tycho.tensor({65504, 3}, {dtype = "float16", requires_grad = true})
    h:nan_to_num(1):sum():backward()
    assert.same({1, 1}, h.grad:totable())
  end)

  it("a gradient flows to another operand of a function that changes a tensor without history", function()
    local T = tycho.tensor
    local index = T({1, 1, 2}, {dtype = "int64"})
    local cases = {
      {function(x) return T {-math.huge, -math.huge}:scatter_reduce_(1, index, x, "amax") end, {2, 5, 3}, {0, 1, 1}},
      {function(x) return T {2, 3}:scatter_reduce_(1, index, x, "prod") end, {2, 5, 3}, {10, 4, 3}},
      {function(x) return T {2, 3}:index_reduce_(1, index, x, "prod") end, {2, 5, 3}, {10, 4, 3}},
      {function(x) return T {1, 4, 3}:clamp_(x) end, {2, 2, 3.5}, {1, 0, 1}},
      {function(x) return T {1, 4, 3}:clamp_max_(x) end, {2, 2, 3.5}, {0, 1, 0}},
      {function(x) return T {1, 4, 3}:clamp_({max = x}) end, {2, 2, 3.5}, {0, 1, 0}}}
    for i, c in ipairs(cases) do
      local x = T(c[2], {requires_grad = true})
      c[1](x):sum():backward()
      assert.same(c[3], x.grad:totable(), i)
    end
    -- a trace, which is made without gradients, has them too
    local low = tycho.zeros(3)
    local x, model = tycho.randn(1, 3):requires_grad_(), function(v) return (v * 2):clamp_(low) end
    tycho.jit.trace(model, tycho.randn(1, 3))(x):sum():backward()
    helper.close(x.grad, tycho.where(x:gt(0), 2, 0):float())
  end)

  it("derivatives along a direction are finite where a rule leaves out an infinite factor", function()
    local o = {dtype = "float64"}
    local function along(f, x)
      x = tycho.tensor(x, o)
      return select(2, tycho.func.jvp(f, {x}, {tycho.ones_like(x)}))
    end
    helper.close(along(function(y) return tycho.tensor({0, 2}, o) ^ y end, {2, 3}), tycho.tensor({0, 8 * math.log(2)}, o))
    helper.close(along(function(x) return x ^ tycho.tensor({0, 2, 3}, o) end, {0, 0.5, 1}), tycho.tensor({0, 1, 3}, o))
    helper.close(along(function(x) return tycho.logit(x, 0.1) end, {0, 0.5, 1}), tycho.tensor({0, 4, 0}, o))
    local x = tycho.linspace(-100, 0, 4200):requires_grad_()                 -- more elements than all pairs are taken of
    local y = tycho.logcumsumexp(x, 1):sum()
    local exact = x:detach():double():requires_grad_()
    helper.close(tycho.grad(y, x, {create_graph = true}):detach(), tycho.grad(tycho.logcumsumexp(exact, 1):sum(), exact):float(), nil, 2e-5)
    local z = tycho.tensor({3, 1, 2}, {dtype = "float64", requires_grad = true})
    local sorted = tycho.utils.checkpoint(function(v) return tycho.sort(v * v) end, z)
    assert.same({6, 2, 4}, tycho.grad(sorted:sum(), z, {create_graph = true}):totable())
  end)
end)
