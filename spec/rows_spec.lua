-- Reductions and norms of rows: of few elements and of many, of many rows and of few; and of elements far from each other.
local tycho = require "tycho"
local helper = require "spec.helper"
local F = tycho.nn.functional

describe("rows", function()
  it("gives of short rows, as many as there may be, what their definitions say", function()
    for _, n in ipairs {1, 3, 4, 8, 12, 31, 32, 33, 96, 128, 130, 516} do
      for _, rows in ipairs {1, 37, n < 10 and 40001 or 1500} do
        local what = rows .. " rows of " .. n
        local x, ones = tycho.randn(rows, n), tycho.ones(n, 1):double()
        local wide = x:double()
        local function sum(t) return t:matmul(ones) end
        local e = (wide - 1):exp()
        helper.close(x:sum(2):double(), sum(wide):squeeze(2), what, 1e-5)
        helper.close(x:softmax(2):double(), e / sum(e), what, 1e-6)
        helper.close(x:log_softmax(2):double(), wide - 1 - sum(e):log(), what, 2e-6, 1)
        local mean = sum(wide) / n
        local apart = wide - mean
        local rstd = (sum(apart * apart) / n + 0.1):rsqrt()
        helper.close(F.layer_norm(x, {n}, {eps = 0.1}):double(), apart * rstd, what, 1e-5, 1)
        local top = x:max(2)
        assert.is_true(x:le(top:unsqueeze(2)):all():item() and x:eq(top:unsqueeze(2)):any(2):all():item(), what)
        if rows <= 1500 then
          local w, up = tycho.randn(n), tycho.randn(rows, n)
          x:requires_grad_()
          w:requires_grad_()
          local got = tycho.grad((F.layer_norm(x, {n}, w, nil, {eps = 0.1}) * up):sum(), {x, w})
          local g, h = (up * w:detach()):double(), apart * rstd
          helper.close(got[1]:double(), rstd * (g - sum(g) / n - h * (sum(g * h) / n)), what, 2e-5, 1)
          helper.close(got[2]:double(), (up:double() * h):transpose(1, 2):matmul(tycho.ones(rows, 1):double()):squeeze(2), what, 2e-4, 1)
          local y = x:softmax(2)
          got = tycho.grad((y * up):sum(), {x})[1]
          local wy = e / sum(e)
          helper.close(got:double(), wy * (up:double() - sum(up:double() * wy)), what, 1e-5, 1)
        end
      end
    end
  end)

  it("loses no digits in norms where one element is far from the others, wherever it stands", function()
    for _, layout in ipairs {"contiguous", "channels_last"} do
      for _, place in ipairs {1, 2, 77} do
        local x = tycho.randn(16, 5, 50, 40) + 1000
        x[{1, {}, 1, math.min(place, 40)}] = 0
        x = x:contiguous({memory_format = layout})
        local mean, var = tycho.zeros(5), tycho.zeros(5)
        local y = F.batch_norm(x, mean, var, {training = true, momentum = 1})
        local m2, v2 = tycho.zeros(5):double(), tycho.zeros(5):double()
        local want = F.batch_norm(x:double(), m2, v2, {training = true, momentum = 1})
        helper.close(var:double(), v2, layout, 5e-6)
        helper.close(y:double(), want, layout, 1e-4)         -- a mean of 1000 is known to 6e-5
      end
    end
    for _, place in ipairs {1, 2, 300, 5000} do
      local x = tycho.randn(3, 8192) + 1000
      x[{{}, place}] = 0
      helper.close(F.layer_norm(x, {8192}):double(), F.layer_norm(x:double(), {8192}), "rows", 2e-5)
    end
  end)

  it("norms of rows of thousands, with their gradients, are what their definitions say", function()
    for _, n in ipairs {4096, 4098, 5120, 8192, 8196} do
      for _, d in ipairs {"float32", "float16", "bfloat16"} do
        for _, rms in ipairs {false, true} do
          local what, e = ("%d, %s%s"):format(n, d, rms and ", RMS" or ""), ({float32 = 1e-5, float16 = 4e-3, bfloat16 = 3e-2})[d]
          local rows = n == 5120 and d == "float32" and 40 or 7
          local x, w = (tycho.randn(rows, n) + 0.5):to(d):requires_grad_(), (tycho.rand(n) + 0.5):to(d):requires_grad_()
          local b, up = tycho.randn(n):to(d):requires_grad_(), tycho.randn(rows, n):to(d)
          local y
          if rms then y = F.rms_norm(x, {n}, w, {eps = 1e-5}) else y = F.layer_norm(x, {n}, w, b) end
          local got = tycho.grad(y, rms and {x, w} or {x, w, b}, {grad_outputs = up})
          local wide, v, g = x:detach():double(), w:detach():double(), up:double()
          local apart = rms and wide or wide - wide:mean(2, {keepdim = true})
          local rstd = (apart:square():mean(2, {keepdim = true}) + 1e-5):rsqrt()
          local h, gw = apart * rstd, g * v
          helper.close(y:double(), rms and h * v or h * v + b:detach():double(), what, e)
          if not rms then helper.close(got[3]:double(), g:sum(1), what .. ", b's gradient", e * 4) end
          local mean = rms and 0 or gw:mean(2, {keepdim = true})
          helper.close(got[1]:double(), rstd * (gw - mean - h * (gw * h):mean(2, {keepdim = true})), what .. ", x's gradient", e * 2)
          helper.close(got[2]:double(), (g * h):sum(1), what .. ", w's gradient", e * 4)
        end
      end
    end
  end)

  it("softmax of lines that lie side by side is that of rows", function()
    for _, case in ipairs {{{3, 21, 5, 8}, 2}, {{1, 1, 40}, 2}, {{2, 70, 37}, 2}, {{130, 300}, 1}, {{2, 3, 64, 33}, 2},
        {{1, 5000, 33}, 2}, {{5, 7, 31}, 2}, {{2, 70, 2100}, 2}} do
      local shape, dim = unpack(case)
      for _, d in ipairs(shape[2] * shape[#shape] < 20000 and {"float32", "float16", "bfloat16", "float64"} or {"float32", "float16"}) do
        local e = ({float32 = 2e-6, float16 = 2e-3, bfloat16 = 2e-2, float64 = 1e-12})[d]
        local x, up = (tycho.randn(shape) * 3):to(d), tycho.randn(shape):to(d)
        x[{1, 1}] = -math.huge
        for _, op in ipairs {"softmax", "log_softmax"} do
          local what = ("%s, %s, %s"):format(op, tostring(x.shape), d)
          local a, b = x:detach():requires_grad_(), x:transpose(dim, #shape):contiguous():requires_grad_()
          local y, z = a[op](a, dim), b[op](b, #shape)
          helper.close(y:double(), z:transpose(dim, #shape):double(), what, e)
          y:backward(up)
          z:backward(up:transpose(dim, #shape))
          helper.close(a.grad:double(), b.grad:transpose(dim, #shape):double(), what .. ", gradient", e * 20)
        end
      end
    end
  end)

  it("long rows that don't begin at multiples of 16 bytes are as those that do", function()
    for _, d in ipairs {"float32", "float16", "bfloat16", "float64"} do
      local e = ({float32 = 1e-5, float16 = 2e-3, bfloat16 = 1.6e-2, float64 = 1e-12})[d]
      for _, shape in ipairs {{3, 4101, 1}, {1, 4999, 3}} do
        local n, inner = shape[2], shape[3]
        local what, half_ulp = d .. " " .. n, ({float16 = 2 ^ -12, bfloat16 = 2 ^ -9})[d]        -- helper.close adds the greatest's share
        local x = (2 * tycho.randn(shape[1], n, inner)):to(d)
        local up = tycho.randn(shape[1], n, inner):to(d)
        local wide, g = x:double(), up:double()
        local exp = (wide - wide:amax(2, {keepdim = true})):exp()
        local p = exp / exp:sum(2, {keepdim = true})
        for _, log in ipairs {false, true} do
          local leaf = x:clone():requires_grad_()
          local y = log and leaf:log_softmax(2) or leaf:softmax(2)
          helper.close(y:double(), log and p:log() or p, what, log and e or half_ulp and half_ulp + 1e-6 or e / 10, log and 10 or nil)
          y:backward(up)
          local want = log and g - p * g:sum(2, {keepdim = true}) or p * (g - (g * p):sum(2, {keepdim = true}))
          helper.close(leaf.grad:double(), want, what .. ", gradient", log and 4 * e or e)
        end
        if inner == 1 then
          local rows, labels = x:view(shape[1], n):clone():requires_grad_(), tycho.randint(1, n, {shape[1]})
          local loss = F.cross_entropy(rows, labels)
          local lp, hot = p:view(shape[1], n):log(), F.one_hot(labels, n):double()
          helper.close(loss:double(), -(lp * hot):sum() / shape[1], what .. ", cross-entropy", e)
          loss:backward()
          helper.close(rows.grad:double(), (lp:exp() - hot) / shape[1], what .. ", its gradient", e)
        end
      end
    end
  end)

  it("sums over several dims, and planes' norms, whatever their innermost size", function()
    for _, d in ipairs {"float32", "float16", "bfloat16"} do
      local e = ({float32 = 1e-5, float16 = 4e-3, bfloat16 = 3e-2})[d]
      for _, hw in ipairs {{7, 7}, {16, 20}, {1, 1}} do
        for _, images in ipairs {2, 11} do
          local what = ("%s %dx%d of %d"):format(d, hw[1], hw[2], images)
          local x = tycho.randn(images, 6, hw[1], hw[2]):to(d)
          local wide = x:double()
          helper.close(x:sum({1, 3, 4}):double(), wide:sum({1, 3, 4}), what, e, 10)
          helper.close(x:amax({1, 3, 4}):double(), wide:amax({1, 3, 4}), what, 0)
          helper.close(x:sum({1, 4}):double(), wide:sum({1, 4}), what, e, 10)
          local up, leaf, w = tycho.randn(images, 6, hw[1], hw[2]):to(d), x:clone():requires_grad_(), tycho.rand(6):to(d):requires_grad_()
          local y = F.batch_norm(leaf, nil, nil, w, nil, {training = true, eps = 0.1})
          local n = images * hw[1] * hw[2]
          local mean = wide:mean({1, 3, 4}, {keepdim = true})
          local rstd = ((wide - mean):square():mean({1, 3, 4}, {keepdim = true}) + 0.1):rsqrt()
          local h, v, g = (wide - mean) * rstd, w:detach():double():view(1, 6, 1, 1), up:double()
          helper.close(y:double(), h * v, what, e, 10)
          y:backward(up)
          local sum, weighed = g:sum({1, 3, 4}, {keepdim = true}), (g * h):sum({1, 3, 4}, {keepdim = true})
          helper.close(leaf.grad:double(), v * rstd * (g - sum / n - h * weighed / n), what .. ", x's gradient", 2 * e, 10)
          helper.close(w.grad:double(), weighed:view(6), what .. ", w's gradient", 2 * e, 20)
        end
      end
    end
  end)

  it("sums of thousands over several dims read every element once, in packs or one by one", function()
    for _, d in ipairs {"float32", "float16", "bfloat16"} do
      for _, shape in ipairs {{90, 2, 7, 7}, {15, 2, 16, 20}, {3, 2, 41, 41}} do         -- each more than a block keeps in registers
        local x = tycho.randint(-3, 3, shape):to(d)
        local what = d .. " " .. tostring(x.shape)
        for _, dims in ipairs {{1, 3, 4}, {1, 3}, {1, 2}} do
          helper.close(x:float():sum(dims):double(), x:double():sum(dims), what, 0)      -- whole numbers: exact
          helper.close(x:amax(dims):double(), x:double():amax(dims), what, 0)
        end
        local e = ({float32 = 1e-6, float16 = 1e-3, bfloat16 = 8e-3})[d]
        helper.close(x:mean({1, 3, 4}):double(), x:double():mean({1, 3, 4}), what, e, 1)
      end
    end
  end)

  it("extremes of rows are those that a loop finds, NaN before all", function()
    local INF, NAN = math.huge, 0 / 0
    for _, d in ipairs {"float32", "float64", "float16"} do
      for _, n in ipairs {8, 31, 32, 45, 64, 200} do
        local x = tycho.randn(37, n, {device = "cpu"}):to(d)
        for i = 1, 37, 3 do x[{i, 1 + i * 7 % n}] = ({NAN, INF, -INF, 0})[1 + i % 4] end
        x[2] = -INF
        local on = helper.on_device(x)
        local high, low, values = on:amax(2):cpu(), on:amin(2):cpu(), x:double()
        for i = 1, 37 do
          local most, least, odd = -INF, INF, false
          for _, v in ipairs(values[i]:totable()) do
            odd = odd or v ~= v
            most, least = v > most and v or most, v < least and v or least
          end
          local what = ("%s, row %d of %d"):format(d, i, n)
          if odd then assert.is_true(high[i] ~= high[i] and low[i] ~= low[i], what)
          else assert.same({most, least}, {high[i], low[i]}, what) end
        end
      end
    end
  end)

  it("cross-entropy of many short rows is that of their parts", function()
    for _, d in ipairs {"float32", "float16", "float64"} do
      for _, n in ipairs {1, 2, 7, 21, 32, 100, 516} do
        local rows = 1100
        local x, y, w = tycho.randn(rows, n):to(d):requires_grad_(), tycho.randint(1, n, {rows}), (tycho.rand(n) + 0.1):to(d)
        y[3], y[rows] = -100, -100
        for i, o in ipairs {{}, {weight = w}, {label_smoothing = 0.1}, {weight = w, label_smoothing = 0.2}, {reduction = "none"}} do
          local what = ("%s, %d classes, options %d"):format(d, n, i)
          local function whole() return F.cross_entropy(x, y, o) end
          local loss = whole()
          local up = o.reduction and tycho.rand(rows):to(loss.dtype) or nil
          local g = tycho.grad(up and (loss * up):sum() or loss, {x})[1]
          -- from log_softmax in float64
          local wide = x:detach():double():requires_grad_()
          local log = wide:log_softmax(2)
          local at, used = y:clamp({min = 1}), y:ne(-100):double()
          local ww = o.weight and w:double() or tycho.ones(n):double()
          local eps = o.label_smoothing or 0
          local each = ww[at] * used
          local want = -(1 - eps) * each * log:gather(2, at:unsqueeze(2)):squeeze(2) - eps / n * used * (log * ww):sum(2)
          if not up then want = want:sum() / each:sum() end
          helper.close(loss:double(), want:detach(), what, d == "float64" and 1e-12 or d == "float16" and 2e-3 or 2e-5, 1)
          local wg = tycho.grad(up and (want * up:double()):sum() or want, {wide})[1]
          helper.close(g:double() * rows, wg * rows, what .. ", gradient", d == "float64" and 1e-10 or d == "float16" and 2e-2 or 2e-4, 1)
        end
      end
    end
    local x, y = tycho.randn(2000, 5), tycho.ones(2000):long()
    y[1999] = 6
    helper.fails("label 6 is not one of 5 classes", function() return F.cross_entropy(x, y):item() end)
  end)

  it("a few rows of 16-bit numbers beside a matrix", function()
    for _, dtype in ipairs {"float16", "bfloat16"} do
      local draw = helper.drawer(5)
      for _, rows in ipairs {1, 2, 3, 4, 5} do
        for _, k in ipairs {16, 31, 64, 97, 200} do
          local n = 15 + draw(60)
          local x, w, b = tycho.randn(rows, k):to(dtype), tycho.randn(n, k):to(dtype), tycho.randn(n):to(dtype)
          local what = ("%s, %d rows of %d beside %d"):format(dtype, rows, k, n)
          local function same(got, want) helper.close(got:float(), want:to(dtype):float(), what, 2e-2) end
          local xf, wf, bf = x:float(), w:float(), b:float()
          same(F.linear(x, w, b), xf:matmul(wf:t()) + bf)
          same(F.linear(x, w, b, {activation = "relu"}), (xf:matmul(wf:t()) + bf):relu())
          same(x:matmul(w:t()), xf:matmul(wf:t()))
          same(w:mv(x[1]), wf:mv(xf[1]))
          same(x[1]:matmul(w:t()), xf[1]:matmul(wf:t()))
          same(x:t():contiguous():t():matmul(w:t()), xf:matmul(wf:t()))
          local wide = tycho.randn(n, k + 3):to(dtype)
          same(F.linear(x, wide:narrow(2, 2, k)), xf:matmul(wide:float():narrow(2, 2, k):t()))
        end
      end
    end
  end)

  it("columns of 16-bit numbers", function()
    tycho.manual_seed(6)
    for _, dtype in ipairs {"float16", "bfloat16"} do
      for _, shape in ipairs {{70, 40}, {3, 130, 33}, {2, 5, 17}, {2, 300, 1, 64}, {70000, 16}} do
        if shape[1] < 1000 or not helper.simulated then
          local x, dim = tycho.randn(shape):to(dtype), math.max(#shape - 1, 1)
          if #shape == 4 then dim = 2 end
          local what = ("%s, %s"):format(dtype, table.concat(shape, "x"))
          for _, fn in ipairs {function(v) return v:softmax(dim) end, function(v) return v:log_softmax(dim) end,
              function(v) return (v:cumsum(dim)) end, function(v) return (v:max(dim)) end} do
            local at, wide = x:detach():requires_grad_(), x:float():requires_grad_()
            local y, want = fn(at), fn(wide)
            helper.close(y:detach():float(), want:detach():to(dtype):float(), what, dtype == "float16" and 2e-3 or 1e-2)
            local up = tycho.randn(y:size()):to(dtype)
            local slope, true_slope = tycho.grad(y, at, up), tycho.grad(want, wide, up:float())
            helper.close(slope:float(), true_slope:to(dtype):float(), what .. ", gradient", 2e-2, 2e-2)
          end
          local _, place = x:max(dim)
          assert.is_true(place:equal((select(2, x:float():max(dim)))), what)
        end
      end
    end
  end)

  it("bytes are computed as whole numbers are, and kept to a byte", function()
    local x, y = tycho.randint(0, 255, {40, 70}), tycho.randint(0, 255, {40, 70})
    local u, v = x:byte(), y:byte()
    local function byte(t) return t:remainder(256):byte() end
    for _, name in ipairs {"add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "bitwise_and", "bitwise_or", "bitwise_xor",
                           "floor_divide", "remainder", "fmod", "gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"} do
      helper.exact(u[name](u, v), byte(x[name](x, y)), name)
      helper.exact(u[name](u, v[1]), byte(x[name](x, y[1])), name .. " of a row")
      helper.exact(u:t()[name](u:t(), v:t()), byte(x[name](x, y)):t(), name .. " across")
      helper.exact(u[name](u, 7), byte(x[name](x, 7)), name .. " of a number")
    end
    for _, name in ipairs {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"} do
      helper.exact(u[name](u, v), x[name](x, y), name)
      helper.exact(u[name](u, 100), x[name](x, 100), name .. " of a number")
      helper.exact(u:gt(99)[name](u:gt(99), v:gt(50)), x:gt(99):long()[name](x:gt(99):long(), y:gt(50):long()), name .. " of booleans")
    end
    helper.exact(u:add(v, {alpha = -3}), byte(x - 3 * y))
    helper.exact(u:pow(v:remainder(5)), byte(x:pow(y:remainder(5))))
    local truth = tycho.zeros(70, {dtype = "bool"})
    assert.same({70, 70}, {truth:clone():fill_(tycho.tensor(5, {dtype = "uint8"})):sum():item(),
      truth:masked_fill(truth:logical_not(), tycho.tensor(5, {dtype = "uint8"})):sum():item()})
    helper.exact(u:gt(9):bitwise_xor(true), u:le(9))
    helper.exact(u:gt(9):minimum(v:gt(9)), u:gt(9):logical_and(v:gt(9)))
    if helper.device == "cpu" then         -- truth from elsewhere may be any byte
      local odd = tycho.zeros(70, {dtype = "bool"})
      local p = odd:data()
      for i = 0, 69 do p[i] = i % 2 * 2 end
      for _, name in ipairs {"mul", "bitwise_and", "minimum"} do
        assert.equal(35, odd[name](odd, truth:logical_not()):sum():item(), name)
      end
      assert.equal(35, odd:bitwise_xor(true):sum():item())
    end
    helper.exact(-u, byte(-x))
    helper.exact(u:relu(), u)
    helper.exact(u:clamp(5, 9), x:clamp(5, 9):byte())
    helper.exact(tycho.where(u:gt(9), u, v), tycho.where(x:gt(9), x, y):byte())
    helper.exact(u:masked_fill(v:gt(9), 200), x:masked_fill(y:gt(9), 200):byte())
    helper.exact(u:gt(9) + v:gt(9), x:gt(9):logical_or(y:gt(9)))
    helper.exact(u:gt(9) * v:gt(9), x:gt(9):logical_and(y:gt(9)))
    helper.exact(u:gt(9):maximum(v:gt(9)), x:gt(9):logical_or(y:gt(9)))
  end)

  it("any and all of bytes are those of whole numbers", function()
    for _, size in ipairs {{16}, {17}, {3, 16}, {5, 40}, {2, 3, 33}, {40, 1}} do
      local some = tycho.randint(0, 1, size)
      for _, x in ipairs {tycho.zeros(size):byte(), tycho.ones(size):bool(), some:byte(), some:bool()} do
        local y = x:int()
        for _, name in ipairs {"any", "all"} do
          helper.exact(x[name](x), y[name](y), name)
          for d = 1, #size do helper.exact(x[name](x, d), y[name](y, d), name .. " along a dim") end
          helper.exact(x:transpose(1, -1)[name](x:transpose(1, -1), 1), y:transpose(1, -1)[name](y:transpose(1, -1), 1), name .. " across")
        end
      end
    end
  end)

  it("extremes of bytes are those of whole numbers", function()
    for _, size in ipairs {{16}, {17}, {3, 300}, {5, 1}, {2, 3, 33}} do
      local x = tycho.randint(0, 255, size)
      for _, y in ipairs {x, x:ge(250), x:ge(5), x:ge(0), x:lt(0)} do
        local bytes = y.dtype == "bool" and y or y:byte()
        for _, name in ipairs {"amax", "amin"} do
          helper.exact(bytes[name](bytes), y:long()[name](y:long()):to(bytes.dtype), name)
          for d = 1, #size do helper.exact(bytes[name](bytes, d), y:long()[name](y:long(), d):to(bytes.dtype), name .. " along a dim") end
        end
      end
    end
  end)

  it("floats become the whole numbers towards 0, also among some that don't fit", function()
    for _, dtype in ipairs {"float32", "float64"} do
      local odd = {2^31, -2^31, 2^31 - 128, -2^31 - 256, 2^40, -2^40, 3e9, -0.5, 255.9, -1.5}
      for i, v in ipairs(odd) do
        local x = (tycho.range(1, 200, 1, {dtype = dtype}) - 100.3):contiguous()
        x[20 * (i % 9) + 3] = v
        local want = {}
        for k, e in ipairs(x:totable()) do want[k] = e < 0 and math.ceil(e) or math.floor(e) end
        assert.same(want, x:long():totable())
        assert.same(want, x:unsqueeze(2):expand(200, 2):t():long()[2]:totable())
        if math.abs(v) < 2^31 then
          assert.same(want, x:int():totable())
          for k, e in ipairs(want) do want[k] = e % 256 end
          assert.same(want, x:byte():totable())
        end
      end
    end
    if helper.device == "cpu" then         -- what C leaves undefined
      local x = tycho.zeros(64)
      x[3], x[40], x[50] = math.huge, -math.huge, 0 / 0
      local y = x:long()
      assert.same({true, true, 0, 0}, {y[3] > 2^62, y[40] < -2^62, y[50], y[51]})
    end
  end)

  it("counts with weights of any dtype and layout", function()
    local ids = tycho.randint(1, 9, {300})
    for _, dtype in ipairs {"float32", "float64", "float16", "int64", "int32", "bool"} do
      local w = tycho.randint(0, 1, {300, 2}):to(dtype)
      local want = tycho.zeros(9, {dtype = dtype == "float32" and dtype or "float64"})
      want:index_add_(1, ids, w:select(2, 2):to(want.dtype))
      helper.exact(tycho.bincount(ids, w:select(2, 2), {minlength = 9}), want, dtype)
      helper.exact(tycho.bincount(ids:unsqueeze(2):expand(300, 2):contiguous():select(2, 1), w:select(2, 2), {minlength = 9}), want, dtype)
    end
  end)

  it("finds the first of equal extremes, and NaN before them, in rows of any length", function()
    math.randomseed(5)
    for _, dtype in ipairs {"float32", "float64", "int64", "int32", "uint8", "float16", "bfloat16"} do
      for n = 1, 140, 9 do
        for round = 1, 4 do
          local list = {}
          for i = 1, n do list[i] = math.random(0, 5) end
          if round > 2 and dtype:find "float" then list[math.random(n)], list[math.random(n)] = 0 / 0, 0 / 0 end
          local most, least = 1, 1
          for i = 2, n do
            local nan = list[i] ~= list[i]
            if list[most] == list[most] and (nan or list[i] > list[most]) then most = i end
            if list[least] == list[least] and (nan or list[i] < list[least]) then least = i end
          end
          local x = tycho.tensor({list}, {dtype = dtype})
          assert.same({dtype, n, most, least}, {dtype, n, x:argmax(2):item(), x:argmin(2):item()})
          local _, at = x:max(2)
          assert.equal(most, at:item())
        end
      end
    end
  end)

  it("takes elements at indices of several dims, from either end, and names the one that is out of range", function()
    local x = tycho.range(1, 12):view(3, 4)
    for _, n in ipairs {1, 63, 9000} do
      local a, b, from_end = tycho.randint(1, 3, {n}), tycho.randint(1, 4, {n}), tycho.randint(0, 1, {n})
      local want = ((a - 1) * 4 + b):float()
      helper.exact(x[{a, b}], want, "both")
      helper.exact(x[{a - from_end * 4, b - from_end * 5}], want, "from the end")
      helper.exact(x:t()[{b, a - from_end * 4}], want, "of a transposed matrix")
      helper.exact(x:view(-1)[(a - 1) * 4 + b - from_end * 13], want, "of a vector")
      for _, bad in ipairs {0, 5, -5, 2 ^ 53, -2 ^ 53} do
        b[n] = bad
        helper.fails("index " .. ("%d"):format(bad), function() return x[{a, b}]:sum():item() end)
      end
    end
  end)

  it("elements of each size are turned, and taken from the end", function()
    for _, dtype in ipairs {"uint8", "bfloat16", "float32", "int64"} do
      for _, size in ipairs {{1, 1}, {3, 70}, {16, 16}, {17, 33}, {8, 9}, {129, 65}} do
        local n, m = unpack(size)
        local x = tycho.range(0, n * m - 1):view(n, m):remainder(251):to(dtype)
        local row, column = tycho.range(1, n, 1, {dtype = "int64"}), tycho.range(1, m, 1, {dtype = "int64"})
        local want = x:flatten():gather(1, ((row - 1) * m + column:unsqueeze(2)):flatten()):view(m, n)
        helper.exact(x:t():contiguous(), want, dtype .. " turned")
        helper.exact(x:flip(2), x:index_select(2, m + 1 - column), dtype .. " from the end")
      end
    end
  end)
end)
