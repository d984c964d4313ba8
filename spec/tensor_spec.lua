-- Tensors as users handle them: making, indexing, printing, dtypes, memory.
local tycho = require "tycho"
local helper = require "spec.helper"
local ffi = require "ffi"

local fails = helper.fails

describe("tensor", function()
  it("is made from numbers, booleans and nested lists", function()
    local x = tycho.tensor {{1, 2, 3}, {4, 5, 6}}
    assert.equal("float32", x.dtype)
    assert.equal("2x3", tostring(x.shape))
    assert.same({{1, 2, 3}, {4, 5, 6}}, x:totable())
    assert.equal("bool", tycho.tensor({true, false}).dtype)
    assert.equal(0, tycho.tensor(5):dim())
    assert.equal(5, tycho.tensor(5):item())
    assert.equal("int64", tycho.tensor({1, 2}, {dtype = "int64"}).dtype)
    assert.same({0}, {tycho.tensor({}):numel()})
    assert.equal(2 ^ 53, tycho.tensor(2 ^ 53, {dtype = "int64"}):item())
    fails("ragged", tycho.tensor, {{1, 2}, {3}})
    fails("ragged", tycho.tensor, {{1, 2}, 3})
    fails("ragged", tycho.tensor, {1, {2}})
    fails("holes", tycho.tensor, {1, nil, 3})
    fails("holes", tycho.tensor, {{1, 2}, {1, x = 2}})
    fails("holes", tycho.cat, {tycho.ones(1), nil, tycho.ones(1)})
    fails("holes", tycho.stack, {tycho.ones(1), nil, tycho.ones(1)})
    fails("holes", tycho.zeros, {2, nil, 3})
    fails("mixes", tycho.tensor, {1, true})
    fails("string", tycho.tensor, {1, "x"})
  end)

  it("compares shapes by value and prints them", function()
    assert.is_true(tycho.zeros(2, 3).shape == tycho.ones(2, 3).shape)
    assert.is_false(tycho.zeros(2, 3).shape == tycho.ones(3, 2).shape)
    assert.equal("()", tostring(tycho.tensor(1).shape))
  end)

  it("gets dims of size 1 in braces, by newaxis", function()
    local new, x = tycho.newaxis, tycho.range(1, 6):view(2, 3)
    assert.same({1, 2, 3}, {unpack(x[{new}].shape)})
    assert.same({2, 1, 3}, {unpack(x[{ {}, new }].shape)})
    assert.same({2, 3, 1}, {unpack(x[{"...", new}].shape)})
    assert.same({2, 1, 3, 1}, {unpack(x[{ {}, new, "...", new}].shape)})
    assert.same({{4}}, x[{2, new, 1, new}]:totable())                   -- all dims have numbers, but a tensor is asked for
    assert.same({{3}, {6}}, x:t()[{3, {}, new}]:totable())
    assert.same({1}, {unpack(tycho.tensor(5)[{new}].shape)})
    assert.same({1, 2, 3}, {unpack(x[new].shape)})                      -- alone without braces, as x[None]
    assert.same({2, 3}, {unpack(x["..."].shape)})
    local z = tycho.zeros(2)
    z[new] = tycho.ones(1, 2)
    z["..."] = z + 1
    assert.same({2, 2}, z:totable())
    local at = tycho.tensor({2, 1}, {dtype = "int64"})
    assert.same({{{4, 5, 6}}, {{1, 2, 3}}}, x[{at, new}]:totable())
    assert.same({2, 1}, {unpack(x[{at, new, at}].shape)})             -- not side by side: their dims come first
    x[{ {}, new, 1}] = tycho.tensor({{7}, {8}})
    assert.same({7, 8}, x:select(2, 1):totable())
    local y = tycho.ones(2, 3, {requires_grad = true})
    y[{ {}, new, {2, 3}}]:sum():backward()
    assert.same({{0, 1, 1}, {0, 1, 1}}, y.grad:totable())
    fails("more than 8 dims", function() return x[{new, new, new, new, new, new, new}] end)
    fails("more indices than the 2 dims", function() return x[{1, new, 1, 1}] end)
  end)

  it("is indexed at its last dims, behind '...'", function()
    local x = tycho.range(1, 24):view(2, 3, 4)
    assert.same({{4, 8, 12}, {16, 20, 24}}, x[{"...", -1}]:totable())
    assert.same({{13, 14, 15, 16}, {17, 18, 19, 20}, {21, 22, 23, 24}}, x[{2, "..."}]:totable())
    assert.same({{2, 3}, {6, 7}, {10, 11}}, x[{1, "...", {2, 3}}]:totable())
    assert.equal(7, x[{1, 2, 3, "..."}]:item())                    -- a tensor, with its gradient
    assert.equal(7, x[{"...", 1, 2, 3}]:item())
    assert.equal(5, tycho.tensor(5)[{"..."}]:item())
    assert.same({2, 3, 4}, {unpack(x[{"..."}].shape)})
    assert.same({{4, 1}, {8, 5}, {12, 9}}, x[{"...", tycho.tensor({4, 1}, {dtype = "int64"})}][1]:totable())
    assert.same({2, 9}, {unpack(x[{"...", x[1]:gt(3)}].shape)})
    x[{"...", 1}] = 0
    x[{1, "...", 2}] = tycho.tensor({7, 8, 9})
    assert.same({{0, 7, 3, 4}, {0, 8, 7, 8}, {0, 9, 11, 12}}, x[1]:totable())
    fails("'...' can be in a list of indices only once", function() return x[{"...", "..."}] end)
    fails("not by a string", function() return x[{"...", "abc"}] end)
    fails("more indices than the 3 dims", function() return x[{"...", 1, 1, 1, 1}] end)
    fails("not by a string", function() return x[{"..", 1}] end)
    local y = tycho.ones(2, 3, {requires_grad = true})
    y[{"...", 2}]:sum():backward()
    assert.same({{0, 1, 0}, {0, 1, 0}}, y.grad:totable())
  end)

  it("is indexed by numbers, ranges, masks and index tensors", function()
    local x = tycho.range(1, 12):view(3, 4)
    assert.same({5, 6, 7, 8}, x[2]:totable())
    assert.same({9, 10, 11, 12}, x[-1]:totable())
    assert.equal(7, x[{2, 3}])
    assert.equal(7, x[2][3])
    assert.same({{2, 3}, {6, 7}}, x[{ {1, 2}, {2, 3} }]:totable())
    assert.same({{1, 3}, {5, 7}, {9, 11}}, x[{ {}, {1, -1, 2} }]:totable())
    assert.same({{5, 6, 7, 8}}, x[{ {2} }]:totable())
    assert.same({2, 6, 10}, x[{ {}, 2 }]:totable())
    assert.same({{9, 10, 11, 12}}, x[{ {3, 99} }]:totable())
    assert.equal("0x4", tostring(x[{ {2, 1} }].shape))
    assert.same({11, 12}, x[x:gt(10)]:totable())
    assert.same({{9, 10, 11, 12}, {1, 2, 3, 4}}, x[tycho.tensor({3, 1}, {dtype = "int64"})]:totable())
    assert.same({3, 8}, x[{ tycho.tensor({1, 2}, {dtype = "int64"}), tycho.tensor({3, 4}, {dtype = "int64"}) }]:totable())
    assert.same({{4}, {8}, {12}}, x[{ {}, tycho.tensor({-1}, {dtype = "int64"}) }]:totable())
    local v = tycho.tensor {1, 2, 3}
    assert.equal(3, v[3])
    assert.equal(1, v[-3])
    assert.equal(true, tycho.tensor({true})[1])
    x[1]:zero_()
    assert.equal(0, x:select(1, 1):sum():item(), "a slice is a view")
    fails("index 0", function() return x[0] end)
    fails("out of range", function() return x[4] end)
    fails("out of range", function() return x[{1, -5}] end)
    fails("2^53", function() return x[2 ^ 60] end)
    fails("2^53", function() return x[0 / 0] end)
    fails("more indices", function() return x[{1, 1, 1}] end)
    fails("mask", function() return x[tycho.ones(2):eq(1)] end)
  end)

  it("is assigned through the same indices", function()
    local x = tycho.zeros(3, 4)
    x[1] = 5
    x[{2, 3}] = 7
    x[{ {3}, {1, 2} }] = {{8, 9}}
    x[{ {}, 4 }] = tycho.tensor {1, 2, 3}
    assert.same({{5, 5, 5, 1}, {0, 0, 7, 2}, {8, 9, 0, 3}}, x:totable())
    x[x:gt(6)] = -1
    assert.same({{5, 5, 5, 1}, {0, 0, -1, 2}, {-1, -1, 0, 3}}, x:totable())
    x[tycho.tensor({1, 3}, {dtype = "int64"})] = tycho.tensor {1, 2, 3, 4}
    assert.same({{1, 2, 3, 4}, {0, 0, -1, 2}, {1, 2, 3, 4}}, x:totable())
    fails("broadcast", function() x[1] = {1, 2} end)
    fails("a number, a tensor or a nested list", function() x[1] = "a" end)
    local e = tycho.zeros(1, 3):expand(2, 3)
    fails("share memory", function() e[{ {}, {} }] = 1 end)
  end)

  it("assigns overlapping parts of itself as if copied first", function()
    local x = tycho.range(1, 5)
    x[{ {2, 5} }] = x[{ {1, 4} }]
    assert.same({1, 1, 2, 3, 4}, x:totable())
    local m = tycho.range(1, 4):view(2, 2)
    m:copy_(m:t())
    assert.same({{1, 3}, {2, 4}}, m:totable())
  end)

  it("promotes dtypes as PyTorch", function()
    local i = tycho.tensor({1, 2}, {dtype = "int64"})
    assert.equal("int64", (i + 2).dtype)
    assert.equal("float32", (i + 0.5).dtype)
    assert.equal("float32", (i / 2).dtype)
    assert.equal("float64", (i + tycho.tensor({1, 2}, {dtype = "float64"})).dtype)
    assert.equal("float16", (tycho.ones(2, {dtype = "float16"}) * 0.5).dtype)
    assert.equal("int64", (tycho.tensor {true, false} + 1).dtype)
    assert.equal("float32", (tycho.ones(2) + tycho.ones({}, {dtype = "float64"})).dtype)
  end)

  it("compares by identity with == and by elements with methods", function()
    local x, y = tycho.ones(2), tycho.ones(2)
    assert.is_false(x == y)
    assert.is_true(x == x)
    assert.is_true(x:equal(y))
    assert.same({true, true}, x:eq(y):totable())
    fails("x:lt(y)", function() return x < y end)
  end)

  it("is read and written through FFI #cpu", function()
    local x = tycho.zeros(2, 2)
    local p = x:data()
    p[3] = 7
    assert.equal(7, x[{2, 2}])
    local buf = ffi.new("double[6]", 1, 2, 3, 4, 5, 6)
    local y = tycho.from_ffi(buf, {2, 3}, {dtype = "float64"})
    assert.same({{1, 2, 3}, {4, 5, 6}}, y:totable())
    buf[0] = 9
    assert.equal(9, y[{1, 1}])
    local keep
    do keep = tycho.full({1000}, 3):data() end
    collectgarbage() collectgarbage()
    assert.equal(3, keep[999])
    fails("contiguous", function() return tycho.zeros(2, 3):t():data() end)
    fails("FFI pointer", tycho.from_ffi, 5, {1})
    fails("impossible", function() return tycho.from_ffi(buf, {-1}) end)
  end)

  it("prints as PyTorch does", function()
    local function text(x) return (tostring(x):gsub("on cuda:0%]$", "on cpu]")) end
    assert.equal("[[1., 2.],\n [3., 4.]]\n[float32 tensor of size 2x2 on cpu]", text(tycho.tensor {{1, 2}, {3, 4}}))
    assert.equal("[0.5000, 2.2500]\n[float32 tensor of size 2 on cpu]", text(tycho.tensor {0.5, 2.25}))
    assert.equal("[ 1, 20]\n[int64 tensor of size 2 on cpu]", text(tycho.tensor({1, 20}, {dtype = "int64"})))
    assert.equal("3.\n[float32 tensor of size () on cpu]", text(tycho.tensor(3)))
    for i, case in ipairs(dofile "spec/golden/printing.lua") do
      local dtype, size, values, want = unpack(case)
      local x = #values == 0 and tycho.zeros(size, {dtype = dtype}) or tycho.tensor(values, {dtype = dtype}):view(size)
      assert.equal(("%s\n[%s tensor of size %s on cpu]"):format(want, dtype, tostring(x.shape)), text(x), i)
    end
    assert.equal("[]\n[float32 tensor of size 0 on cpu]", text(tycho.zeros(0)))
  end)

  it("computes 16-bit floats in float32 and rounds once", function()
    local x = tycho.tensor({60000, 1}, {dtype = "float16"})
    assert.equal(math.huge, (x + x)[1])
    assert.equal(math.huge, (x * 2 / 2)[1], "two ops round twice")
    assert.equal(2048, (tycho.full({4096}, 0.5, {dtype = "float16"}):sum():item()))
    assert.equal(65504, tycho.tensor(65504, {dtype = "float16"}):item())
    assert.equal(5.9604644775390625e-08, tycho.tensor(6e-8, {dtype = "float16"}):item())
  end)

  it("a list is put where a mask or ids say, on any device; what is past the end is told as it was given", function()
    local x = tycho.zeros(4)
    x[tycho.tensor {true, false, false, true}] = {1, 2}
    x[tycho.tensor({2}, {dtype = "int64"})] = {5}
    assert.same({1, 5, 0, 2}, x:totable())
    fails("index 8589934594 is out of range", function() return x[2^33 + 2] end)
    fails("index 8589934594 is out of range", function() return x[{ {2^33 + 2} }] end)
    fails("dim 8589934594 is out of range", function() return x:size(2^33 + 2) end)
  end)

  it("makes tensors like another in its layout", function()
    local x = tycho.randn(2, 4, 5, 3):permute(1, 4, 2, 3)
    for name, value in pairs {zeros_like = 0, ones_like = 1} do
      local y = tycho[name](x)
      assert.same(x:stride(), y:stride())
      assert.is_true(y:eq(value):all():item())
    end
    assert.same(x:stride(), tycho.full_like(x, 3):stride())
    assert.same(x:stride(), tycho.randn_like(x):stride())
    local leaf = tycho.zeros_like(x, {requires_grad = true, dtype = "float64"})
    assert.is_true(leaf.requires_grad and leaf.is_leaf)
    assert.equal("float64", leaf.dtype)
    assert.is_true(tycho.ones_like(x:contiguous()):is_contiguous())
    -- a layout that an op chose is no wish of the program's, which goes on to see it in other shapes (layout_spec)
    local y = tycho.nn.functional.conv2d(tycho.randn(2, 3, 5, 5), tycho.randn(4, 3, 3, 3))
    assert.equal("2x36", tostring(tycho.zeros_like(y):view(2, -1).shape))
    assert.equal("2x36", tostring(tycho.randn_like(y):view(2, -1).shape))
  end)

  it("gives 0-dim and 0-size tensors their place", function()
    local z = tycho.zeros(0, 3)
    assert.equal(0, z:sum():item())
    assert.equal("3", tostring(z:sum(1).shape))
    assert.equal("0x4", tostring(z:matmul(tycho.ones(3, 4)).shape))
    assert.equal("0x3", tostring((z + 1).shape))
    assert.equal(0, #z)
    assert.same({}, z:totable())
    local s = tycho.tensor(2)
    assert.equal(4, (s * s):item())
    assert.equal("1x1", tostring(s:view(1, 1).shape))
    fails("0-dim", function() return s[1] end)
    fails("0-dim", function() return #s end)
    fails("empty", function() return z:max() end)
  end)

  it("frees at once, and then refuses to be used", function()
    local core = require "tycho.core"
    local x = tycho.zeros(1024, 1024)
    collectgarbage() collectgarbage()      -- what others have left goes now
    local before = core.allocated()
    x:free()
    assert.equal(before - 4 * 1024 * 1024, core.allocated())
    fails("was freed", function() return x + 1 end)
    fails("was freed", function() return x.shape end)
    fails("was freed", function() x:free() end)
    assert.equal("[freed tensor]", tostring(x))
  end)

  it("releases at the end of a scope what is neither returned nor kept", function()
    local core = require "tycho.core"
    local lost, kept
    collectgarbage()
    local before = core.allocated()
    local a, nested = tycho.scope(function()
      lost = tycho.ones(1000)
      kept = tycho.keep(tycho.ones(1000))
      return tycho.ones(10), {x = tycho.ones(20)}
    end)
    assert.equal(before + 4 * 1030, core.allocated())
    assert.equal(10, a:sum():item())
    assert.equal(20, nested.x:sum():item())
    assert.equal(1000, kept:sum():item())
    fails("scope", function() return lost:sum() end)
    fails("inside", tycho.scope, function() error("inside") end)
    local outer = tycho.scope(function()
      local inner = tycho.scope(function() return tycho.ones(3) end)
      return inner * 2
    end)
    assert.equal(6, outer:sum():item())
    fails("argument 1 must be a function", tycho.scope, 3)
  end)

  it("keeps a scope's tensors alive on the tape", function()
    local w = tycho.ones(3, {requires_grad = true})
    local loss = tycho.scope(function() return (w * 2):exp():sum() end)
    loss:backward()
    helper.close(w.grad, tycho.full({3}, 2 * math.exp(2)))
    local twice = tycho.autograd.Function {
      forward = function(ctx, x)
        local y = x * 2
        ctx:save_for_backward(y)
        return y * 1
      end,
      backward = function(ctx, g) return g * ctx:saved_tensors() end,
    }
    tycho.scope(function() return twice(w):sum() end):backward()
    helper.close(w.grad, tycho.full({3}, 2 * math.exp(2) + 2))
  end)

  it("holds nothing after a call but what the function made of ops gave", function()
    local core = require "tycho.core"
    local x, y = tycho.randn(1000), tycho.randn(1000)
    local F, var = tycho.nn.functional, tycho.ones(7)
    local function held(fn, ...)           -- bytes, beside what is returned
      collectgarbage() collectgarbage()
      local before = core.allocated()
      collectgarbage "stop"
      local result = {pcall(fn, ...)}
      local now = core.allocated()
      collectgarbage "restart"
      for i = 2, result[1] and #result or 0 do now = now - 4 * result[i]:numel() end
      return now - before, unpack(result)
    end
    assert.equal(0, (held(F.mse_loss, x, y)))
    assert.equal(0, (held(F.huber_loss, x, y)))
    assert.equal(0, (held(tycho.logsumexp, x, 1)))
    assert.equal(0, (held(tycho.svd, tycho.randn(5, 3))))
    local left, fine, message = held(F.gaussian_nll_loss, x, y, var)
    assert.equal(0, left)
    assert.is_false(fine)
    assert.matches("gaussian_nll_loss", message)
    assert.equal(2000, (tycho.ones(1000) * 2):sum():item(), "after an error tensors last as before")
  end)

  it("leaves tensors of the user's to the user, in functions that call one's own", function()
    local seen = {}
    local loss = tycho.nn.functional.triplet_margin_with_distance_loss(tycho.ones(2, 3), tycho.zeros(2, 3), tycho.ones(2, 3),
      {distance_function = function(a, b)
        seen[#seen + 1] = a - b
        return tycho.scope(function() return (a - b):square():sum(2) end)
      end})
    assert.equal(4, loss:item())
    assert.equal(6, seen[1]:sum():item())
  end)

  it("counts ranges from first to last, both included", function()
    assert.same({1, 2, 3}, tycho.range(1, 3):totable())
    assert.same({0, 0.5, 1}, tycho.range(0, 1, 0.5):totable())
    fails("range", function() return tycho.arange(3) end)
  end)

  it("refuses views that would need a copy", function()
    fails("reshape", function() return tycho.zeros(2, 3):t():view(6) end)
    assert.equal("6", tostring(tycho.zeros(2, 3):t():reshape(6).shape))
    local c = tycho.conv2d(tycho.randn(1, 2, 4, 4), tycho.randn(3, 2, 3, 3))
    assert.equal("1x12", tostring(c:view(1, -1).shape), "channels-last is copied instead")
    helper.close(c:view(1, -1), c:contiguous():view(1, -1))
  end)

  it("walks along a dim", function()
    local sums = {}
    for i, row in tycho.range(1, 6):view(3, 2):iter() do sums[i] = row:sum():item() end
    assert.same({3, 7, 11}, sums)
  end)

  it("keeps PyTorch's order in methods", function()
    local a = tycho.tensor {1, 2, 3}
    assert.same({1, 0, 3}, a:where(a:ne(2), 0):totable())
    assert.same({1, 0, 3}, tycho.where(a:ne(2), a, 0):totable())
    assert.same({1, 2, 2}, a:clamp(nil, 2):totable())
    assert.same({2, 2, 3}, a:clamp(2):totable())
    assert.same({2, 1, 0}, (3 - a):totable())
    assert.same({2, 4, 8}, (2 ^ a):totable())
    assert.same({{1, 2, 3, 1, 2, 3}}, a["repeat"](a, 1, 2):totable())
    assert.equal("3x2", tostring(tycho.ones(3, 1):expand(-1, 2).shape))
  end)

  it("lets foreign memory's owner go once no tensor needs it", function()
    local weak = setmetatable({}, {__mode = "k"})
    coroutine.wrap(function()
      local buf = ffi.new("float[4]")
      weak[buf] = true
      local x = tycho.from_ffi(buf, {4})
      local y = x[{ {2, 3} }]
      x:free()
      collectgarbage() collectgarbage()
      assert.is_truthy(next(weak))
      y:free()
    end)()
    tycho.ones(1)                          -- the next op lets it go
    helper.collected()
    assert.is_nil(next(weak))
  end)

  it("fills and copies in place", function()
    local x = tycho.zeros(2, 2)
    assert.equal(x, x:fill_(3))
    assert.equal(x, x:add_(1):mul_(2))
    assert.same({{8, 8}, {8, 8}}, x:totable())
    x:copy_(tycho.tensor {1, 2})
    assert.same({{1, 2}, {1, 2}}, x:totable())
    fails("doesn't fit in place", function() tycho.ones(2, {dtype = "int64"}):add_(0.5) end)
    fails("doesn't fit in place", function() tycho.ones(2):add_(tycho.ones(3, 2)) end)
    assert.equal("int64", tycho.tensor({1}, {dtype = "int64"}):fill_(2.7).dtype)
  end)

  it("works for whole numbers without dying of division", function()
    local a, z = tycho.tensor({7, -7}, {dtype = "int64"}), tycho.zeros(2, {dtype = "int64"})
    assert.same({0, 0}, a:floor_divide(z):totable())
    assert.same({0, 0}, a:remainder(z):totable())
    assert.same({3, -4}, a:floor_divide(2):totable())
    assert.same({1, 1}, (a % 2):totable())
    assert.same({-128 % 256}, tycho.tensor({-128}, {dtype = "int64"}):to("uint8"):totable())
  end)

  it("walks long operands that lie across as it walks short ones", function()
    local a, b = 1100, 70
    for _, dtype in ipairs {"float32", "float64", "bfloat16", "uint8"} do
      local x = tycho.randint(0, 100, {a, 3, b}):to(dtype)
      local p = helper.pointer(x:double())
      for _, order in ipairs {{3, 2, 1}, {2, 3, 1}, {3, 1, 2}} do
        local y = x:permute(order)
        local size = y.shape
        local copy, sum = y:contiguous():double(), (tycho.ones(size, {dtype = dtype}) + y):double()
        local c, s, n, wrong = helper.pointer(copy), helper.pointer(sum), 0, 0
        local stride = {3 * b, b, 1}
        for i = 0, size[1] - 1 do
          for j = 0, size[2] - 1 do
            for k = 0, size[3] - 1 do
              local v = p[i * stride[order[1]] + j * stride[order[2]] + k * stride[order[3]]]
              if c[n] ~= v or s[n] ~= v + 1 then wrong = wrong + 1 end
              n = n + 1
            end
          end
        end
        assert.equal(0, wrong, dtype)
      end
    end
  end)

  it("gives the same bfloat16 products and convolutions in bfloat16 as through float32", function()
    local core = require "tycho.core"
    local native = core.native_bf16()        -- where oneDNN has no bfloat16 at all, both ways are the same one
    tycho.manual_seed(3)
    local function half(...) return tycho.randn(...):bfloat16() end
    local a, b, c, w, bias, x, k = half(2, 3, 40, 24), half(2, 3, 24, 17), half(24, 40), half(33, 24), half(33),
      half(2, 16, 9, 11), half(32, 16, 3, 3)
    local cases = {
      function() return a:matmul(b) end, function() return a:matmul(c) end,
      function() return b:transpose(3, 4):matmul(c) end, function() return c:t():matmul(w:t()) end,
      function() return a[{1, {}, 1}]:matmul(c:t()[{ {}, {1, 24} }]:t()) end,
      function() return a:matmul(c[{ {}, 5 }]) end, function() return c:t()[3]:matmul(c[{ {}, 5 }]) end,
      function() return tycho.linear(a, w, bias) end, function() return tycho.linear(b:transpose(3, 4), w) end,
      function() return tycho.linear(a[{1, 1}], w, bias, {activation = "relu"}) end,
      function() return tycho.conv2d(x, k, half(32) * 0 + 1, {padding = 1}) end, function() return tycho.conv2d(x, k, {stride = 2}) end,
      function()
        local y, z = x:clone():requires_grad_(), k:clone():requires_grad_()
        tycho.conv2d(y, z, {padding = 1}):float():square():mean():backward()
        return tycho.cat({y.grad:flatten(), z.grad:flatten()})
      end}
    for i, case in ipairs(cases) do
      core.native_bf16(false)
      local expected = case()
      core.native_bf16(true)
      local ok, got = pcall(case)
      core.native_bf16(native)
      assert.is_true(ok, tostring(got))
      assert.equal("bfloat16", got.dtype)
      helper.close(got:float(), expected:float(), "case " .. i, 2e-2)
    end
  end)

  it("attributes stand where attributes.h says", function()
    local said, n = {}, 0
    for line in io.lines "src/core/attributes.h" do
      for name, slot in line:gmatch "TY_AT_([%w_]+) = (%d+)" do said[name], n = tonumber(slot), n + 1 end
    end
    for _, op in ipairs(require("tycho.core").op_table()) do
      for i, name in ipairs(op.attributes) do
        assert.equal(i - 1, said[op.name .. "_" .. name], op.name .. "'s " .. name)
        n = n - 1
      end
    end
    assert.equal(0, n)
  end)
end)
