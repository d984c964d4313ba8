-- Products and convolutions of random shapes, in float32 and bfloat16, by the definition in float64. Idea: oneDNN is wrong for some shapes,
-- and which depends on its version, the CPU, and the threads; src/cpu/dnnl.c keeps those from it. Invariant: shapes that were seen to be
-- wrong, or to end the process, are listed here first.
local tycho = require "tycho"
local helper = require "spec.helper"
local core = require "tycho.core"
local F = tycho.nn.functional

-- |got - want| within what rounding the result, and sums of that many terms, allow
local function close(got, want, terms, dtype, what)
  local eps = dtype == "bfloat16" and 2 ^ -8 or 2 ^ -20
  local over = (got:double() - want):abs():div_(want:abs():mul_(2 * eps):add_(4 * eps * math.sqrt(terms)))
  local most = over:max():item()
  assert(most < 1, ("%s, %s: %g times the tolerance"):format(dtype, what, most))
end

describe("oneDNN #cpu", function()
  local DTYPES = {"bfloat16", "float32"}

  local function product(dtype, batch, m, n, k, turned_a, turned_b)
    local what = ("%d of %dx%d by %dx%d%s%s"):format(batch, m, k, k, n, turned_a and ", a turned" or "", turned_b and ", b turned" or "")
    local a = turned_a and tycho.randn(batch, k, m):to(dtype):transpose(2, 3) or tycho.randn(batch, m, k):to(dtype)
    local b = turned_b and tycho.randn(batch, n, k):to(dtype):transpose(2, 3) or tycho.randn(batch, k, n):to(dtype)
    if batch == 1 then a, b = a[1], b[1] end
    close(a:matmul(b), a:double():matmul(b:double()), k, dtype, what)
    if batch == 1 and turned_b and not turned_a then
      local bias = tycho.randn(n):to(dtype)
      close(F.linear(a, b:t(), bias), a:double():matmul(b:double()):add(bias:double()), k, dtype, what .. ", with bias")
    end
  end

  it("products", function()
    tycho.manual_seed(3)
    local draw = helper.drawer(3)
    for _, dtype in ipairs(DTYPES) do
      for _, c in ipairs {{1, 2, 54, 31}, {1, 20, 63, 64}, {1, 33, 50, 4100}, {8, 64, 53, 64}, {8, 32, 56, 64, false, false}} do
        product(dtype, c[1], c[2], c[3], c[4], false, c[5] ~= false)
      end
      for _, c in ipairs {{1, 170, 244, 63}, {8, 65, 1, 3519}, {8, 53, 22, 63}, {3, 67, 7, 95}, {1, 64, 63, 2079}} do
        for turned = 0, 3 do product(dtype, c[1], c[2], c[3], c[4], turned % 2 == 1, turned > 1) end
      end
      local x, w = tycho.randn(5, 40, 63):to(dtype), tycho.randn(63, 30):to(dtype)        -- one matrix for all of the batch
      close(x:matmul(w), x:double():matmul(w:double()), 63, dtype, "a batch by one matrix")
      for _ = 1, 150 do
        local k = draw(10) == 1 and draw(2500) or draw(140)
        product(dtype, draw(2) == 1 and 1 or draw(6), draw(90), draw(130), k, draw(2) == 1, draw(2) == 1)
      end
    end
  end)

  it("products keep what isn't a number in its row and column", function()
    local draw = helper.drawer(5)
    for _ = 1, 60 do
      local m, n, k = 1 + draw(60), 1 + draw(60), draw(150)
      local a, b = tycho.randn(m, k):bfloat16(), tycho.randn(k, n):bfloat16()
      a[draw(m)], b[{{}, draw(n)}] = 0 / 0, 0 / 0
      assert.equal(m + n - 1, a:matmul(b):isnan():sum():item(), ("%dx%d by %dx%d"):format(m, k, k, n))
    end
  end)

  local function convolution(dtype, c)
    local what = ("%dx%dx%dx%d by %dx%dx%dx%d, stride %d %d, padding %d %d, dilation %d %d, %d groups"):format(
      c.n, c.from * c.groups, c.h, c.w, c.to * c.groups, c.from, c.kh, c.kw,
      c.stride[1], c.stride[2], c.padding[1], c.padding[2], c.dilation[1], c.dilation[2], c.groups)
    local x = tycho.randn(c.n, c.from * c.groups, c.h, c.w):to(dtype)
    if c.channels_last then x = x:contiguous("channels_last") end
    local w, b = tycho.randn(c.to * c.groups, c.from, c.kh, c.kw):to(dtype), tycho.randn(c.to * c.groups):to(dtype)
    local o = {stride = c.stride, padding = c.padding, dilation = c.dilation, groups = c.groups}
    local function all(up, ...)
      local inputs = {}
      for i, t in ipairs {...} do inputs[i] = t:detach():requires_grad_() end
      local y = F.conv2d(inputs[1], inputs[2], inputs[3], o)
      up = up and up:to(y.dtype) or tycho.randn(y:size()):to(dtype)
      return {y:detach(), unpack(tycho.grad(y, inputs, up))}, up
    end
    local got, up = all(nil, x, w, b)
    local want = all(up, x:double(), w:double(), b:double())
    local taps, seen = c.kh * c.kw, up:numel() / up:size(2)
    for i, terms in ipairs {c.from * taps, c.to * taps, seen, seen} do
      close(got[i], want[i], terms, dtype, ({"result", "gradient of x", "of w", "of b"})[i] .. " of " .. what)
    end
  end

  -- {n, channels of a group, h, w}, {channels of a group, kh, kw}, stride, padding, dilation, groups
  local KNOWN = {
    {{5, 60, 24, 17}, {17, 1, 2}, 3, 0, 1}, {{4, 160, 19, 24}, {33, 1, 3}, 2, 0, 1}, {{1, 59, 24, 20}, {4, 2, 1}, 3, 0, 1},
    {{3, 63, 15, 19}, {11, 1, 5}, 2, 0, 1}, {{2, 65, 23, 15}, {95, 2, 2}, 3, 0, 1},       -- gaps between windows
    {{5, 12, 16, 1}, {10, 3, 3}, 2, 1, 1}, {{1, 49, 16, 2}, {95, 3, 3}, 3, 1, 1}, {{2, 64, 2, 1}, {8, 2, 2}, 2, 1, 1},
    {{3, 11, 21, 2}, {24, 3, 3}, 3, 1, 1, 5}, {{3, 3, 11, 1}, {47, 7, 3}, 2, 2, 1},       -- rows shorter than the stride
    {{1, 55, 16, 4}, {53, 3, 3}, 2, 0, 1}, {{5, 41, 11, 5}, {12, 3, 7}, 2, 1, 1}, {{3, 9, 22, 3}, {22, 3, 3}, 3, 2, 3},  -- one column
    {{2, 165, 2, 7}, {8, 7, 7}, 1, 3, 1}, {{1, 200, 1, 11}, {8, 5, 5}, 1, 2, 1},          -- fewer rows than padding
    {{3, 9, 1, 21}, {16, 2, 2}, 1, 2, 3}, {{5, 95, 22, 1}, {4, 2, 1}, 2, 1, 3}, {{4, 27, 1, 18}, {32, 3, 3}, 2, 3, 2, 4},
    {{3, 11, 2, 24}, {24, 2, 2}, 1, 1, 3, 2}, {{1, 5, 13, 1}, {15, 2, 2}, 2, 3, 2},       -- windows in the padding
  }
  local KNOWN_OF_AMX = {                                 -- in bfloat16: windows that step along the width, or see many channels
    {{2, 512, 30, 14}, {16, 3, 3}, 2, 1, 1}, {{1, 128, 38, 34}, {64, 6, 6}, 5, 0, 1}, {{2, 64, 50, 23}, {64, 4, 4}, 3, 0, 1},
    {{1, 256, 31, 15}, {32, 5, 5}, 5, 1, 1}, {{3, 3, 30, 31}, {16, 7, 7}, 2, 3, 1},
    {{1, 1024, 1, 80}, {8, 1, 16}, 8, 0, 1}, {{1, 6000, 4, 3}, {4, 2, 1}, 1, 0, 1},
  }

  it("convolutions", function()
    tycho.manual_seed(4)
    local draw = helper.drawer(4)
    local function pick(...) return (select(draw(select("#", ...)), ...)) end
    local function pair(...) return {pick(...), pick(...)} end
    local function channels() return draw(3) == 1 and draw(12) or draw(3) == 1 and pick(16, 31, 32, 33, 63, 64, 65) or draw(70) end
    for _, dtype in ipairs(DTYPES) do
      for _, known in ipairs {KNOWN, dtype == "bfloat16" and KNOWN_OF_AMX or nil} do
        for _, k in ipairs(known) do
          local x, w = k[1], k[2]
          convolution(dtype, {n = x[1], from = x[2], h = x[3], w = x[4], to = w[1], kh = w[2], kw = w[3], stride = {k[3], k[3]},
            padding = {k[4], k[4]}, dilation = {k[5], k[5]}, groups = k[6] or 1})
        end
      end
      for _ = 1, 120 do
        local groups = draw(4) == 1 and draw(5) or 1
        local c = {n = draw(4), from = channels(), to = channels(), h = draw(20), w = draw(20), groups = groups,
          kh = pick(1, 1, 2, 3, 3, 5), kw = pick(1, 2, 3, 3, 5, 7), stride = pair(1, 1, 2, 3), padding = pair(0, 1, 2),
          dilation = pair(1, 1, 1, 2), channels_last = draw(2) == 1}
        if groups > 1 then c.from, c.to = math.ceil(c.from / 4), math.ceil(c.to / 4) end
        if c.h + 2 * c.padding[1] > c.dilation[1] * (c.kh - 1) and c.w + 2 * c.padding[2] > c.dilation[2] * (c.kw - 1) then
          convolution(dtype, c)
        end
      end
    end
  end)

  it("convolutions whose filters change between calls: in place, by view, or by another tensor", function()
    tycho.manual_seed(6)
    for _, dtype in ipairs(DTYPES) do
      for _, stride in ipairs {1, 2} do
        local x, w = tycho.randn(2, 32, 12, 12):to(dtype), tycho.randn(16, 32, 3, 3):to(dtype)
        local function check(what)
          local options = {stride = stride, padding = 1}
          close(F.conv2d(x, w, nil, options), F.conv2d(x:double(), w:double(), nil, options), 288, dtype, what .. ", stride " .. stride)
        end
        check "new"
        check "again"
        w:mul_(2)
        check "changed"
        w:select(1, 3):zero_()
        check "a part changed"
        w = w:clone():neg_()
        check "another tensor"
      end
    end
  end)

  it("recurrent layers in bfloat16 are those by float32's products", function()
    if not core.native_bf16() then return end
    tycho.manual_seed(6)
    for _, c in ipairs {{"LSTM", 20, 128, 5, 32}, {"LSTM", 33, 50, 4, 70, true}, {"GRU", 16, 100, 6, 19}, {"GRU", 8, 64, 3, 64, true},
        {"RNN", 64, 160, 4, 40}} do
      local kind, width, hidden, steps, rows, both = unpack(c)
      local net = tycho.nn[kind](width, hidden, {bidirectional = both}):bfloat16()
      local given, up = tycho.randn(steps, rows, width):bfloat16(), tycho.randn(steps, rows, hidden * (both and 2 or 1)):bfloat16()
      local function run(native)
        core.native_bf16(native)
        local x = given:detach():requires_grad_()
        net:zero_grad()
        local y = net(x)
        y:backward(up)
        local all = {y:detach(), x.grad}
        for _, p in ipairs(net:parameters()) do all[#all + 1] = p.grad end
        return all
      end
      local want, got = run(false), run(true)
      for i, t in ipairs(got) do
        local scale = want[i]:float():abs():max():item()
        helper.close(t:float() / scale, want[i]:float() / scale, ("%s of %d, %d rows, result %d"):format(kind, hidden, rows, i), 2e-2, 1)
      end
      assert.is_false(got[1]:equal(want[1]))               -- states were rounded, so the processor's products were taken
    end
  end)
end)
