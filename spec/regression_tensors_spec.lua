-- Bugs that were, of tensors: their making and shapes, indexing, writing in place, memory and finalizers; values are PyTorch's.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn = tycho.nn
local T, is, fails, close = tycho.tensor, helper.is, helper.fails, helper.close
local i64 = {dtype = "int64"}
local function gc() collectgarbage() collectgarbage() end

describe("regressions of tensors", function()
  it("views have a limit that kernels' arithmetic stays below", function()
    fails("too many elements", function() return tycho.zeros(1):expand(2 ^ 31, 2 ^ 31) end)
    fails("too many elements", function() return tycho.zeros(1):expand(2 ^ 31, 2 ^ 30) end)
    assert.equal(0, tycho.zeros(0, 1):expand(0, 2 ^ 31):numel())
  end)

  it("reshape says what doesn't fit before it copies", function()
    local x = tycho.zeros(1000, 100):t()
    core.max_allocated(true)
    local before = core.max_allocated()
    helper.fails("reshape: size 7 asks for 7 elements, the tensor of shape 100x1000 has 100000", function() x:reshape(7) end)
    helper.fails("reshape: size -1 is there twice", function() x:reshape(-1, -1) end)
    helper.fails("reshape", function() x:reshape(-1, 7) end)
    helper.fails("reshape", function() tycho.zeros(2, 0):t():reshape(-1, 0) end)
    assert.equal(before, core.max_allocated())
  end)

  it("unflatten goes by the dim's own size, where others are 0 too", function()
    assert.equal("2x2x0x3", tostring(tycho.zeros(4, 0, 3):unflatten(1, {2, -1}).shape))
    assert.equal("0x3x2", tostring(tycho.zeros(0, 6):unflatten(2, {3, -1}).shape))
    helper.fails("unflatten: sizes 2x2 don't make up the 6 elements of dim 2", tycho.unflatten, tycho.zeros(0, 6), 2, {2, 2})
    helper.fails("unflatten: sizes 4x-1 don't make up the 6 elements of dim 2", tycho.unflatten, tycho.zeros(1, 6), 2, {4, -1})
  end)

  it("sizes beside a size of 0 have the limit that others have", function()
    helper.fails("too large", tycho.zeros, 0, 2 ^ 40, 2 ^ 40)
    assert.equal(2 ^ 40, tycho.zeros(0, 2 ^ 40):size(2))
  end)

  it("new_full and new_tensor take options as new_zeros does", function()
    local x = T {1.5}
    assert.equal("int64", x:new_full({2}, 3, {dtype = "int64"}).dtype)
    assert.same({3, 3}, x:new_full({2}, 3):totable())
    assert.equal("float64", x:new_tensor({1, 2}, {dtype = "float64", requires_grad = true}).dtype)
    assert.equal("int64", T({1}, i64):new_tensor({1, 2}).dtype)
    helper.fails("unknown option 'dtyp'", x.new_full, x, {2}, 3, {dtyp = "int64"})
  end)

  it("names of PyTorch's tell what is here instead", function()
    helper.fails("a tensor has no 'grad_fn': is_leaf tells", function() return tycho.ones(1).grad_fn end)
    helper.fails("a tensor has no 'type': use x.dtype for its dtype's name", function() return tycho.ones(1):type() end)
    helper.fails("tycho has no 'Size': a shape is a plain list", function() return tycho.Size end)
    helper.fails("vision has no 'transforms': use tycho.data.transforms", function() return tycho.vision.transforms end)
    helper.fails("cuda has no 'CUDAGraph': use cuda.graph(fn), which records", function() return tycho.cuda.CUDAGraph end)
    assert.is_false(tycho.backends.mps.is_available())
  end)
end)

describe("regressions of indexing", function()
  it("index ops in place write where they lie, and read operands that share memory first #cpu", function()
    local x = tycho.range(1, 4)
    local address = tonumber(require("ffi").cast("intptr_t", x:data()))
    x:index_add_(1, tycho.tensor({1, 1, 4}, {dtype = "int64"}), tycho.ones(3))
    assert.same({3, 2, 3, 5}, x:totable())
    assert.equal(address, tonumber(require("ffi").cast("intptr_t", x:data())))
    x[tycho.tensor({2, 1}, {dtype = "int64"})] = x[{ {1, 2} }]       -- swapped, not smeared
    assert.same({2, 3, 3, 5}, x:totable())
    local i = tycho.tensor({4, 3, 2, 1}, {dtype = "int64"})
    x:scatter_(1, i, x)
    assert.same({5, 3, 3, 2}, x:totable())
    i:scatter_(1, i, i)                                              -- the index is what is written
    assert.same({1, 2, 3, 4}, i:totable())
    fails("out of range", function() x:scatter_(1, tycho.tensor({1, 9}, {dtype = "int64"}), tycho.ones(2)) end)
    assert.same({5, 3, 3, 2}, x:totable())                           -- nothing was written before the check
    local w = tycho.zeros(3, {requires_grad = true})
    local y = w * 1
    y:index_add_(1, tycho.tensor({1, 1}, {dtype = "int64"}), (w * 2)[{ {1, 2} }])
    y:sum():backward()
    assert.same({3, 3, 1}, w.grad:totable())
  end)

  it("tensors made from the same address are told apart from strangers #cpu", function()
    local x = tycho.range(1, 5)
    local y = tycho.from_ffi(x:data(), 5)
    x[{ {2, 5} }] = y[{ {1, 4} }]
    assert.same({1, 1, 2, 3, 4}, x:totable())
    local i = tycho.tensor({2, 3, 1}, {dtype = "int64"})
    local j = tycho.from_ffi(i:data(), 3, {dtype = "int64"})
    i:scatter_(1, j, tycho.tensor({70000000, 8, 9}, {dtype = "int64"}))
    assert.same({9, 70000000, 8}, i:totable())
    local buf = require("ffi").new("float[8]", {0, 1, 2, 3, 4, 5, 6, 7})
    local late = tycho.from_ffi(buf, 8):narrow(1, 5, 4):view(2, 2)
    late:copy_(tycho.from_ffi(buf + 4, 4):view(2, 2):t())
    assert.same({{4, 6}, {5, 7}}, late:totable())
  end)

  it("what names places is looked at before it is taken for some", function()
    local z = tycho.zeros(3)
    helper.fails("index_put: argument 2 (indices) must hold indices (int64), got float32", tycho.index_put, z, {T({1.7})}, 5)
    helper.fails("put: argument 2 (index) must hold indices (int64), got float32", tycho.put, z, T({1.7}), T({5}))
    assert.same({0, 5, 0}, z:put(T({2}, {dtype = "int32"}), T({5})):totable())
    assert.same({5, 0, 5}, tycho.index_put(z, {T({1, 0, 1}, {dtype = "uint8"})}, 5):totable())
    for _, at in ipairs {0, 4, -4} do
      helper.fails(("embedding_bag: padding_idx %d is out of range"):format(at), tycho.embedding_bag, T({{1, 2}}, i64), tycho.ones(3, 2),
        {padding_idx = at})
    end
    helper.fails("cosine_similarity: dim 2 is out of range", tycho.cosine_similarity, z, z)
  end)

  it("scatter adds and multiplies", function()
    local index = T({{1}, {2}}, i64)
    assert.same({{7, 0, 0}, {0, 7, 0}}, tycho.zeros(2, 3):scatter_(2, index, 7, {reduce = "add"}):totable())
    assert.same({{8, 1, 1}, {1, 9, 1}}, tycho.ones(2, 3):scatter(2, index, T {{8}, {9}}, {reduce = "multiply"}):totable())
    assert.same({{5, 1, 1}, {1, 5, 1}}, tycho.ones(2, 3):scatter_(2, index, 5):totable())
    for _, reduce in ipairs {"none", "add"} do
      helper.fails("must hold indices (int64), got float32", function() tycho.ones(3):scatter(1, T {1.7, 2}, 5, {reduce = reduce}) end)
    end
  end)

  it("tensors without dims are vectors of one to functions of indices", function()
    local x, first = T(3), T({1}, i64)
    is(5, x:index_add(1, first, T(2)))
    is(3, x:index_select(1, first))
    is(7, x:index_copy(1, first, T {7}))
    is(7, x:index_fill(1, first, 7))
    is(6, x:index_reduce(1, first, T(2), "prod"))
    is({3, 1}, T({1, 2, 3}):take_along_dim(T({-1, 1}, i64), 1))
    is({3, 1}, T({1, 2, 3}):take_along_dim(T({-1, 1}, i64)))
    helper.fails("must hold indices", x.take_along_dim, T {1, 2}, T {true}, 1)
    helper.fails("out of range", x.index_fill, x, 1, T({5}, i64), T(7, {requires_grad = true}))
    helper.fails("one element must be chosen, got 2", x.index_select, x, 1, T({1, 1}, i64))
  end)

  it("a 0-dim index is a number also where a new dim lies between it and others", function()
    local x = tycho.range(1, 24):view(2, 3, 4)
    local y = x[{ {}, tycho.tensor(2, i64), tycho.newaxis, tycho.tensor({1, 3}, i64) }]
    assert.equal("2x1x2", tostring(y.shape))
    assert.same({{{5, 7}}, {{17, 19}}}, y:totable())
  end)

  it("an element is read and written alone as by views", function()
    local m = tycho.range(1, 6):view(2, 3)
    assert.same({6, 1, 3}, {m[{2, 3}], m[{-2, -3}], m[{1, -1}]})
    m[{2, 3}], m[{1, -1}] = 0.5, -2
    assert.same({{1, 2, -2}, {4, 5, 0.5}}, m:totable())
    local mask, bytes = T {true, false}, T({1, 2}, {dtype = "uint8"})
    mask[2], bytes[1] = true, 255
    assert.same({{true, true}, {255, 2}}, {mask:totable(), bytes:totable()})
    helper.fails("a field that isn't a position", function() return m[{1, 2, x = 3}] end)
    helper.fails("index 4 is out of range for dim 2", function() m[{1, 4}] = 1 end)
    helper.fails("indices begin at 1", function() return m[{0, 1}] end)
    local w, x = tycho.ones(2, {requires_grad = true}), tycho.ones(2)
    helper.fails("a leaf that requires grad", function() w[1] = 2 end)
    local y = (w * x):sum()
    x[1] = 5                                               -- which the product has saved
    helper.fails("was changed in place", y.backward, y)
    local buffer = tycho.ones(2)                           -- which what is compiled has yet to read
    local f = tycho.compile(function(z)
      local sum = z + buffer
      coroutine.yield()
      return sum * 2
    end)
    local function run(between)
      local co = coroutine.create(function() return f(tycho.ones(2)) end)
      coroutine.resume(co)
      between()
      return select(2, coroutine.resume(co))
    end
    for _ = 1, 4 do run(function() end) end
    helper.close(run(function() buffer[1] = 100 end), T {4, 4})
    local r = w * 2
    r[1] = 7
    assert.same({0, 2}, tycho.grad(r:sum(), w):totable())
  end)

  it("take counts negative positions from the end", function()
    assert.same({{3, 1}, {6, 2}}, T({{1, 2, 3}, {4, 5, 6}}):take(T({{3, 1}, {-1, -5}}, {dtype = "int64"})):totable())
  end)

  it("masked_scatter asks for a mask of booleans", function()
    helper.fails("must be a bool tensor, got float32", tycho.masked_scatter, T {1, 2}, T {1, 0}, T {5, 6})
  end)
end)

describe("regressions of writing in place", function()
  it("reading through a pointer changes no version #cpu", function()
    local w = tycho.ones(2, {requires_grad = true})
    local y = (w * w):sum()
    assert.equal(1, w:data()[0])
    y:backward()
    assert.same({2, 2}, w.grad:totable())
  end)

  it("an in-place op that runs out of memory has changed nothing", function()
    for n = 1, 4 do
      local x = tycho.ones(3, {requires_grad = true})
      local y = x * 1
      local v = y[{ {1, 2} }]
      core.fail_alloc(n)
      local ok = pcall(v.mul_, v, 3)
      core.fail_alloc(0)
      y:sum():backward()
      local k = ok and 3 or 1
      assert.same({k, k, 1}, y:detach():totable())
      assert.same({k, k, 1}, x.grad:totable())
    end
  end)

  it("a fraction makes a bool tensor true", function()
    local m = tycho.tensor {true, false}
    assert.same({true, true}, tycho.zeros(2, {dtype = "bool"}):fill_(0.5):totable())
    assert.same({true, false}, m:masked_fill(m, 0.5):totable())
    assert.same({false, false}, m:masked_fill(m, 0):totable())
  end)

  it("whole numbers don't fit in place into booleans", function()
    local x = T({true, false}, {dtype = "bool"})
    helper.fails("clamp_: the result of dtype int64 doesn't fit in place into dtype bool", x.clamp_, x, 2)
    helper.fails("doesn't fit in place into dtype bool", x.clip_, x, 0, T(1, {dtype = "int32"}))
    assert.same({true, false}, x:totable())
  end)

  it("a result with more dims doesn't fit in place", function()
    local x = tycho.ones(2, 2)
    helper.fails("clamp_: the result of shape 1x2x2 doesn't fit in place into shape 2x2", x.clamp_, x, tycho.full({1, 2, 2}, 3), nil)
    assert.same({{1, 1}, {1, 1}}, x:totable())
  end)
end)

describe("regressions of memory", function()
  it("scopes leave alone what is older than they are", function()
    local w = tycho.ones(3)
    local net = tycho.scope(function() return nn.Sequential(nn.Sequential(nn.Linear(1, 1))) end)
    tycho.scope(function() tycho.scope(function() return w, net end) end)
    assert.equal(3, w:sum():item())
    assert.equal("1x1", tostring(net(tycho.ones(1, 1)).shape))
    tycho.scope(function() local t = {} t.a, t.b = t, t return t end)
  end)

  it("assignment keeps alive what the value's gradient needs", function()
    local F = tycho.autograd.Function {forward = function(ctx, x) ctx:save_for_backward(x) return x * x end,
      backward = function(ctx, g) return g * ctx:saved_tensors() * 2 end}
    local x, y = tycho.ones(3, {requires_grad = true}), tycho.zeros(2, 3)
    y[1] = F(x)
    gc()
    y:sum():backward()
    assert.same({2, 2, 2}, x.grad:totable())
  end)

  it("backward outlives the handles that hooks free", function()
    local x = tycho.ones(2, {requires_grad = true})
    local h = x * 2
    local y = h:sum()
    x:register_hook(function() y:free() gc() end)
    h:register_hook(function() h:free() gc() end)
    y:backward()
    assert.same({2, 2}, x.grad:totable())
  end)

  it("keep keeps all that it is given", function()
    local a, b
    tycho.scope(function()
      a, b = tycho.ones(1), {tycho.ones(2)}
      local c, d = tycho.keep(a, b)
      assert.is_true(rawequal(c, a) and rawequal(d, b))
    end)
    assert.same({1, {1, 1}}, {a:item(), b[1]:totable()})
  end)

  -- Calls fn again and again while collections, which come at any allocation, run finalize.
  local function amid_finalizers(finalize, fn)
    for _ = 1, 60 do
      pcall(function() for _ = 1, 50 do getmetatable(newproxy(true)).__gc = finalize end end)
      for _ = 1, 100 do fn() end
    end
    gc()
  end

  it("an operand that a finalizer frees isn't read when another one has hooks", function()
    local x = tycho.ones(4, {requires_grad = true})
    local hooked, kept, y = x * 1, {}, nil
    hooked:register_hook(function() return kept[1] and nil end)
    amid_finalizers(function()
      if y then pcall(y.free, y) end
      for i = 1, 8 do kept[i] = tycho.full({4}, 7) end
    end, function()
      y = tycho.ones(4)
      local ok, sum = pcall(function() return (y + hooked):sum():item() end)
      if ok then assert.equal(8, sum) end
      y = nil
    end)
  end)

  it("a list that a finalizer makes longer is read as far as there is room", function()
    local list, more = {}, tycho.ones(2)
    for i = 1, 17 do list[i] = tycho.ones(2) end
    amid_finalizers(function() for _ = 1, 500 do list[#list + 1] = more end end, function()
      local n = #list
      local ok, x = pcall(tycho.cat, list, 1)
      if ok then assert.is_true(x:numel() >= 2 * n) else assert.is_truthy(x:find("changed while it was read", 1, true), x) end
      for i = #list, 18, -1 do list[i] = nil end
    end)
  end)

  it("ops outlive the operands that finalizers free", function()
    local right, wrong = 0, 0
    for _ = 1, 200 do
      local x = tycho.ones(50)
      getmetatable(newproxy(true)).__gc = function() pcall(x.free, x) end
      for _ = 1, 20 do
        local ok, sum = pcall(function() return (x + x):sum():item() end)
        if ok and sum == 100 then right = right + 1 elseif ok then wrong = wrong + 1 end
      end
    end
    collectgarbage()
    assert.equal(0, wrong)
    assert.is_true(right > 200)
  end)

  it("finalizers that raise or free leave calls unharmed", function()
    local old, mul = collectgarbage("setpause", 1), collectgarbage("setstepmul", 100000)
    for _ = 1, 200 do
      local x = tycho.zeros(3, 3)
      local p = newproxy(true)
      getmetatable(p).__gc = function() pcall(x.free, x) end
      p = nil
      for _ = 1, 10 do pcall(function() return x[1], x[{ {1, 2}, 2 }], x:detach(), x:size(), x:totable(), x:data(), p end) end
    end
    collectgarbage("setpause", old)
    collectgarbage("setstepmul", mul)
    assert.is_true(core.is_grad_enabled())
  end)

  it("assignment outlives the operands that finalizers free when memory runs out", function()
    local x, at, v = tycho.zeros(1000), tycho.range(1, 100, {dtype = "int64"}), tycho.ones(100):double()
    collectgarbage() collectgarbage()
    do
      local trap = newproxy(true)
      getmetatable(trap).__gc = function() if x then x:free() end end
      trap = nil -- luacheck: ignore
    end
    core.fail_alloc(2, 1)
    pcall(function() x[at] = v end)
    core.fail_alloc(0)
    assert.equal(1000, tycho.ones(1000):sum():item())
  end)

  it("hooks outlive a handle whose tensor others hold", function()
    local x = tycho.ones(4, {requires_grad = true})
    local y, fired = x * 1, false
    local w = y[{ {1, 2} }]
    y:mul_(2)
    y:register_hook(function() fired = true end)
    y = nil
    collectgarbage() collectgarbage()
    w:sum():backward()
    assert.is_true(fired)
    assert.is_nil(y)
  end)

  it("gradients of gradients of gradients are freed without deep recursion", function()
    local head = tycho.zeros(1)
    local t = head
    for _ = 1, 2 * helper.many do
      local n = tycho.zeros(1)
      t.grad = n
      t = n
    end
    t = nil
    collectgarbage() collectgarbage()
    head:free()
    assert.is_nil(t)
  end)

  it("what holds C's objects can't be forged into ending others", function()
    local _, keep = core.data_ptr(tycho.ones(4, {device = "cpu"}))
    local program = core.program.new()
    assert.is_nil(debug.getmetatable(program).__gc(keep))
    assert.is_nil(debug.getmetatable(keep).__gc(io.stdout))
    collectgarbage() collectgarbage()
  end)
end)

describe("regressions of scopes", function()
  it("ends where its results are nested too deeply", function()
    local y = tycho.scope(function()
      fails("tables nested too deeply", tycho.scope, function()
        local root = {}
        local at = root
        for _ = 1, 20000 do
          at.n = {}
          at = at.n
        end
        return root
      end)
      return tycho.ones(2)
    end)
    close(y, tycho.ones(2))
  end)
end)

describe("regressions of a number -0", function()
  it("keeps its sign", function()
    local zero = -1 / math.huge
    local x = tycho.ones(1)
    assert.equal(-math.huge, 1 / (x * zero)[1])
    assert.equal(-1, tycho.copysign(x, zero)[1])
    assert.equal(-math.huge, 1 / x:clone():fill_(zero)[1])
    assert.equal(-math.huge, 1 / tycho.ones(2, 2):t():select(1, 1):fill_(zero)[1])
    assert.equal("int64", (tycho.ones(1, {dtype = "int64"}) + zero).dtype)
    assert.equal(-math.huge, 1 / tycho.full({1}, zero)[1])
    local y = tycho.ones(1):requires_grad_()
    assert.equal(-math.huge, 1 / tycho.grad((y * zero):sum(), y)[1])
    assert.equal(-math.huge, 1 / tycho.jit.trace(function(v) return v * zero end, x)(x)[1])
  end)
end)
