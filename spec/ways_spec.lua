-- What the CPU has ways of its own for: depthwise convolutions' weight gradient, beside float64, which goes as products of matrices;
-- padding of several dims at once; binary search without branches; logic of bytes; few columns; products of elements;
-- order statistics; distances; norms of short rows.
local tycho = require "tycho"
local ops = require("tycho.core").ops
local helper = require "spec.helper"
local fails, close = helper.fails, helper.close
local F = tycho.nn.functional

-- {images, channels, height, width, {kernel}, options}
local CASES = {
  {2, 16, 9, 11, {5, 5}, {padding = 2}}, {3, 5, 7, 8, {4, 4}, {}}, {2, 70, 6, 10, {2, 7}, {padding = {1, 3}}},
  {2, 33, 1, 40, {1, 31}, {padding = {0, 15}}}, {1, 20, 12, 9, {5, 2}, {stride = 2, padding = {2, 1}}},
  {2, 17, 13, 14, {4, 5}, {dilation = {2, 3}, padding = {3, 6}}}, {1, 130, 5, 5, {5, 5}, {padding = 4, stride = {3, 2}}},
  {40, 18, 2, 2, {2, 2}, {}}, {2, 64, 8, 8, {1, 1}, {}}, {1, 2, 30, 3, {7, 1}, {padding = {3, 0}}}, {2, 19, 4, 4, {9, 9}, {padding = 5}},
}

local function gradients(case, dtype, threads)
  local c, k = case[2], case[5]
  local x = tycho.randn(case[1], c, case[3], case[4]):to(dtype):requires_grad_()
  local w = tycho.randn(c, 1, k[1], k[2]):to(dtype):requires_grad_()
  local before = tycho.get_num_threads()
  if threads then tycho.set_num_threads(threads) end
  local options = {groups = c}
  for name, v in pairs(case[6]) do options[name] = v end
  local y = F.conv2d(x, w, nil, options)
  y:backward(y:detach():sin())
  tycho.set_num_threads(before)
  return x.grad, w.grad
end

describe("a depthwise convolution's gradients", function()
  for _, case in ipairs(CASES) do
    it(("%dx%dx%dx%d by %dx%d"):format(case[1], case[2], case[3], case[4], case[5][1], case[5][2]), function()
      local function of(dtype)
        tycho.manual_seed(5)
        return gradients(case, dtype)
      end
      local wx, ww = of "float64"
      for dtype, e in pairs {float32 = 1e-5, float16 = 2e-2, bfloat16 = 1e-1} do
        local x, w = of(dtype)
        assert.equal(dtype, w.dtype)
        assert.is_true((x:double() - wx):norm():item() <= e * wx:norm():item(), dtype .. ", x")
        assert.is_true((w:double() - ww):norm():item() <= e * ww:norm():item(), dtype .. ", w")
      end
    end)
  end

  it("are the same bits by any number of threads #cpu", function()
    for _, case in ipairs {{8, 40, 24, 24, {5, 5}, {padding = 2}}, {16, 24, 1, 300, {1, 4}, {}}} do
      local want
      for _, threads in ipairs {1, 2, 3} do
        tycho.manual_seed(7)
        local _, w = gradients(case, "float32", threads)
        want = want or w
        assert.is_true(want:equal(w))
      end
    end
  end)
end)

describe("padding by reflection, repetition and round the edge", function()
  it("of several dims is that of each by itself, with the same gradients", function()
    for _, case in ipairs {{{40, 6, 5}, {1, 2, 2, 1}}, {{2, 3, 30, 20}, {3, 1, 2, 2}}, {{60, 4, 5, 6}, {1, 2, 0, 0, 1, 1}},
        {{3, 4, 5, 6}, {1, 2, 0, 0, 1, 1}}, {{50, 7, 8}, {-1, 2, 1, -2}}, {{2, 300, 3, 4, 5}, {2, 1, 1, 2, 1, 1}}} do
      for _, mode in ipairs {"reflect", "replicate", "circular"} do
        local shape, pad = unpack(case)
        local x = tycho.randn(shape, {dtype = "float64"}):requires_grad_()
        local y, z = F.pad(x, pad, {mode = mode}), x
        for i = 1, #pad, 2 do
          local one = {}
          for k = 1, #pad do one[k] = (k == i or k == i + 1) and pad[k] or 0 end
          z = F.pad(z, one, {mode = mode})
        end
        assert.is_true(y:equal(z), mode)
        local up = tycho.randn(y.shape, {dtype = "float64"})
        local a, b = tycho.grad(y, x, {grad_outputs = up}), tycho.grad(z, x, {grad_outputs = up})
        assert.is_true((a - b):abs():max():item() < 1e-12, mode)
      end
    end
  end)
end)

describe("searchsorted", function()
  it("goes by a side, a sorter, and gives small integers", function()
    local x = tycho.tensor {3, 1, 2}
    assert.same({1, 2, 3, 4}, tycho.searchsorted(x, tycho.tensor {0.5, 2, 2.5, 4}, {sorter = x:argsort()}):totable())
    local at = tycho.searchsorted(tycho.tensor {1, 2, 2}, 2, {side = "right", out_int32 = true})
    assert.same({4, "int32"}, {at:item(), at.dtype})
    fails("sorter has shape 1; it must be 3", tycho.searchsorted, x, x, {sorter = tycho.tensor {1}})
  end)

  it("counts as a loop does, NaN being the largest", function()
    local nan, inf = 0 / 0, math.huge
    for _, dtype in ipairs {"float32", "float64", "float16", "int64", "int32"} do
      local float = dtype:find "float" ~= nil
      local values = float and {-inf, -2, 0, 0.5, 1, 3, 7, inf, nan} or {-9, -2, 0, 1, 3, 7, 9}
      for _, list in ipairs {{}, {1}, {-2, 0, 0, 1, 3, 3, 3}, float and {-inf, 0.5, 7, nan, nan} or {0, 7}} do
        local sorted = #list == 0 and tycho.zeros(0, {dtype = dtype}) or tycho.tensor(list, {dtype = dtype})
        for _, right in ipairs {false, true} do
          local got = tycho.searchsorted(sorted, tycho.tensor(values, {dtype = dtype}), {right = right})
          for i, v in ipairs(values) do
            local n = 1
            for _, u in ipairs(list) do
              local less = u < v or (v ~= v and u == u)
              if less or (right and (u == v or (u ~= u and v ~= v))) then n = n + 1 end
            end
            assert.equal(n, got[i], ("%s, %s in %d, right %s"):format(dtype, v, #list, tostring(right)))
          end
        end
      end
    end
  end)
end)

describe("kthvalue, median, quantile", function()
  -- the library's ways to select, of one rank and of several, beside its sort, which golden values check
  it("find what a sort has at that place, in every dtype and however many there are", function()
    local nan, inf = 0 / 0, math.huge
    for _, n in ipairs {1, 2, 19, 20, 32, 33, 300, 511, 512, 4096, 300000} do
      for _, dtype in ipairs {"float32", "float64", "float16", "int64", "uint8", "bool"} do
        local whole = not dtype:find "float"
        local x = whole and tycho.randint(0, dtype == "int64" and 2 ^ 50 or 250, {n}):to(dtype) or tycho.randn(n, {dtype = dtype})
        if not whole and n > 12 then x[{{3, 6}}], x[9], x[10], x[11] = nan, inf, -inf, -0.0 end
        if n == 512 then x:fill_(x[1]) end
        local sorted, places = x:sort(1)
        local ranks = {1, math.ceil(n / 3), n}
        local values, indices = ops.order_statistics(x, 1, tycho.tensor(ranks, {dtype = "int64"}))
        for at, k in ipairs(ranks) do
          local v, i = x:kthvalue(k, 1)
          for _, got in ipairs {{v:item(), i:item()}, {values[at], indices[at]}} do
            assert.equal(places[k], got[2], ("%s, %d of %d"):format(dtype, k, n))
            assert.same(tostring(sorted[k]), tostring(got[1]), ("%s, %d of %d"):format(dtype, k, n))
          end
        end
      end
    end
  end)

  it("take ranks of their own for each line, several, in any layout", function()
    local x = tycho.randn(7, 300, 5):transpose(1, 3)
    for dim = 1, 3 do
      local shape = x.shape
      shape[dim] = 4
      local ranks = tycho.randint(1, x.shape[dim], {shape[1], shape[2], shape[3]})
      local sorted, places = x:sort(dim)
      local v, i = ops.order_statistics(x, dim, ranks)
      assert.is_true(v:equal(sorted:gather(dim, ranks)) and i:equal(places:gather(dim, ranks)))
    end
  end)

  it("refuse ranks out of range #cpu", function()
    for _, bad in ipairs {0, -5, 301} do
      local ranks = tycho.ones(1000, 4, {dtype = "int64"})
      ranks[{517, 3}] = bad
      fails("rank " .. bad .. " must be in 1..300", ops.order_statistics, tycho.randn(1000, 300), 2, ranks)
    end
    fails("rank 9 must be in 1..5", ops.order_statistics, tycho.randn(5), 1, tycho.tensor({2, 9}, {dtype = "int64"}))
    fails("argument 3 of shape 1x2 doesn't fit", ops.order_statistics, tycho.randn(5, 3), 1, tycho.ones(1, 2, {dtype = "int64"}))
  end)

  it("of 16 bits have ranks beyond what 16 bits can count", function()
    local x = tycho.range(1, 5000):div(5000)
    for _, dtype in ipairs {"float16", "bfloat16"} do
      assert.is_true(math.abs(x:to(dtype):quantile(0.75):item() - 0.75) < 0.005)
      assert.equal(1, x:to(dtype):quantile(1):item())
    end
  end)
end)

describe("logic of bytes", function()
  it("is that of whole numbers, for any count", function()
    for _, n in ipairs {1, 7, 9, 64, 1000, 70003} do
      local masks = {tycho.rand(n):gt(0.5), tycho.rand(n):gt(0.3)}
      local bytes = {tycho.randint(0, 255, {n}, {dtype = "uint8"}), tycho.randint(0, 3, {n}, {dtype = "uint8"})}
      for _, pair in ipairs {masks, bytes} do
        local a, b = unpack(pair)
        for _, op in ipairs {"logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"} do
          assert.is_true(a[op](a, b):equal(a:long()[op](a:long(), b:long()):to(a[op](a, b).dtype)), op)
        end
        assert.is_true(a:logical_not():equal(a:long():eq(0)))
        assert.is_true(a:flip(1):logical_and(b):equal(a:flip(1):contiguous():logical_and(b)))
      end
    end
  end)
end)

describe("few columns", function()
  it("are reduced as rows are", function()
    for _, shape in ipairs {{64, 1}, {65, 64}, {129, 7}, {5000, 3}, {100000, 8}} do
      for _, dtype in ipairs {"float32", "float64", "int64", "uint8"} do
        local x = tycho.randint(0, 50, shape):to(dtype)
        local across = x:t():contiguous()
        for _, op in ipairs {"sum", "amax", "amin", "mean"} do
          if op ~= "mean" or dtype:find "float" then
            assert.is_true(x[op](x, 1):equal(across[op](across, 2)), ("%s of %dx%d, %s"):format(op, shape[1], shape[2], dtype))
          end
        end
      end
      local y = tycho.randn(unpack(shape))
      close(y:sum(1):double(), y:double():sum(1), tostring(y.shape), 1e-5, shape[1] ^ 0.5)
    end
  end)
end)

describe("einsum", function()
  it("of elements is their product, with gradients", function()
    local function R(...) return tycho.randn({...}, {dtype = "float64"}):requires_grad_() end
    local a, b, c = R(3, 4), R(3, 4), R(2, 4)
    for _, case in ipairs {{"ij,ij->ji", function() return (a * b):t() end}, {"ij,kj->ikj", function() return a:unsqueeze(2) * c end, true},
        {"ij,kj->kji", function() return (a:unsqueeze(2) * c):permute(2, 3, 1) end, true},
        {"ij,kl->lijk", function() return (a:view(3, 4, 1, 1) * c):permute(4, 1, 2, 3) end, true}} do
      local other = case[3] and c or b
      local got, want = tycho.einsum(case[1], a, other), case[2]()
      close(got, want, case[1])
      local up = tycho.randn(want.shape, {dtype = "float64"})
      for i, g in ipairs(tycho.grad(got, {a, other}, {grad_outputs = up})) do
        close(g, tycho.grad(case[2](), {a, other}, {grad_outputs = up})[i], case[1] .. ", gradient")
      end
    end
    close(tycho.einsum("i,i->i", tycho.ones(1), tycho.ones(3)), tycho.ones(3), "of size 1")
  end)
end)

describe("cdist by a product of matrices", function()
  local f64 = {dtype = "float64"}
  it("is as by differences, and has their gradients", function()
    tycho.manual_seed(3)
    local a, b = tycho.randn(2, 30, 40, f64), tycho.randn(1, 27, 40, f64)
    local g = tycho.randn(2, 30, 27, f64)
    local got = {}
    for i, mode in ipairs {"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"} do
      local x, y = a:clone():requires_grad_(), b:clone():requires_grad_()
      local d = tycho.cdist(x, y, {compute_mode = mode})
      local gx, gy = unpack(tycho.grad({d}, {x, y}, {g}))
      got[i] = {d, gx, gy}
    end
    helper.exact(got[1][1], got[2][1])
    for k = 1, 3 do helper.close(got[1][k], got[3][k], "result " .. k, 1e-10) end
    helper.close(tycho.cdist(a:half(), b:half()):double(), got[3][1], "float16", 2e-3)
    local under = tycho.amp.autocast({dtype = "bfloat16", device = a.device}, tycho.cdist, a:float(), b:float())
    helper.close(under:double(), got[3][1], "under autocast", 1e-5)
    local far = b:clone()
    far[{1, 1}] = 1e6                                                      -- one row doesn't make the others less exact
    local rest = { {}, {}, {2, 27} }
    helper.close(tycho.cdist(a:float(), far:float())[rest]:double(), got[3][1][rest], "beside a far row", 1e-5)
    assert.equal("5x3", tostring(tycho.cdist(tycho.ones(5, 0), tycho.ones(3, 0), {compute_mode = "use_mm_for_euclid_dist"}).shape))
    assert.equal("float64", tycho.cdist(a:float(), b).dtype)
    b[{1, 1, 1}] = math.huge
    assert.equal(27 * 60 - 60, tycho.cdist(a, b):isfinite():sum():item())
    helper.fails("cdist: argument 4 (compute_mode) must be one of", tycho.cdist, a, b, {compute_mode = "mm"})
  end)

  it("has no gradient where rows are equal, and NaN where they have it", function()
    local a = tycho.ones(26, 36, f64):requires_grad_()
    local d = tycho.cdist(a, tycho.ones(1, 36, f64))
    helper.exact(d, tycho.zeros(26, 1, f64))
    local g = tycho.grad(d:sum(), a, {create_graph = true})
    helper.exact(g, tycho.zeros(26, 36, f64))
    helper.exact(tycho.grad(g:sum(), a), tycho.zeros(26, 36, f64))
    local n = tycho.ones(26, 36)
    n[{3, 3}] = 0 / 0
    assert.equal(1, tycho.cdist(n, tycho.ones(1, 36)):isnan():sum():item())
  end)
end)

describe("norms of short rows", function()
  -- by means and squares, in float64
  local function by_parts(x, w, b, centred)
    x = x:double()
    if centred then x = x - x:mean(2, {keepdim = true}) end
    local y = x / ((x * x):mean(2, {keepdim = true}) + 1e-5):sqrt()
    if w then y = y * w:double() end
    return b and y + b:double() or y
  end
  -- fn's result and gradients, of leaves of a dtype
  local function slopes(fn, leaves, g, dtype)
    local own = {}
    for i, t in ipairs(leaves) do own[i] = t:to(dtype):requires_grad_() end
    local y = fn(unpack(own))
    return {y, unpack(tycho.grad((y * g:to(dtype)):sum(), own))}
  end
  local function layer_norm(x, w, b) return F.layer_norm(x, w.shape, w, b) end
  local function rms_norm(x, w) return F.rms_norm(x, w.shape, w, {eps = 1e-5}) end
  local function check(rows, n, shift)
    local x, w, b, g = tycho.randn(rows, n) + shift, tycho.randn(n), tycho.randn(n), tycho.randn(rows, n)
    for norm, leaves in pairs {[layer_norm] = {x, w, b}, [rms_norm] = {x, w}} do
      local want = slopes(function(x_, w_, b_) return by_parts(x_, w_, b_, norm == layer_norm) end, leaves, g, "float64")
      for dtype, most in pairs {float32 = 2e-4, float64 = 1e-11} do
        for i, got in ipairs(slopes(norm, leaves, g, dtype)) do
          local what = ("%s of %dx%d, %s, %d"):format(norm == layer_norm and "layer_norm" or "rms_norm", rows, n, dtype, i)
          assert.is_true((got:double() - want[i]):abs():max():item() < most * math.max(want[i]:abs():max():item(), 1), what)
        end
      end
    end
  end
  it("are as by parts, with all gradients, for any number of rows", function()
    for _, n in ipairs {1, 2, 7, 16, 31, 32, 33, 48, 64, 65} do
      for k, rows in ipairs {1, 5, 16, 17, 70, 200} do check(rows, n, k) end
    end
  end)

  it("need no weights, and give NaN for rows with one", function()
    local x = tycho.randn(20, 8)
    close(F.layer_norm(x, {8}), by_parts(x, nil, nil, true):float(), "layer_norm", 1e-5)
    close(F.rms_norm(x, {8}, {eps = 1e-5}), by_parts(x, nil, nil, false):float(), "rms_norm", 1e-5)
    x[3][2] = 0 / 0
    local y = F.layer_norm(x, {8})
    assert.equal(8, y:isnan():sum():item())
    assert.is_true(y[3]:isnan():all():item())
    assert.equal("0x8", tostring(F.layer_norm(x[{ {1, 0} }], {8}).shape))
  end)
end)
