-- Tensors as PyTorch's users write them: memory formats, dtypes, values, printing, indexing, random numbers.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, cuda = tycho.nn, tycho.cuda
local close, fails, device = helper.close, helper.fails, helper.device
local DEVICE = tycho.get_default_device()

describe("users' tensors", function()
  it("have PyTorch's smaller things too", function()
    local x = tycho.ones(2, 3, {requires_grad = true})
    assert.equal(2, x.ndim)
    assert.equal(helper.device ~= "cpu", x.is_cuda)
    local y = x * 2
    y:retain_grad()
    y:square():sum():backward()
    assert.same({{4, 4, 4}, {4, 4, 4}}, y.grad:totable())
    fails("retain_grad: the tensor doesn't require grad", function() tycho.ones(1):retain_grad() end)
    tycho.set_grad_enabled(false)
    local ok = pcall(function() assert(not (x * 2).requires_grad) end)
    tycho.set_grad_enabled(true)
    assert.is_true(ok and (x * 2).requires_grad)
    assert.is_false(tycho.inference_mode(function() return (x * 2).requires_grad end))
  end)

  it("go to a dtype, a device, or both, and are copied where that is asked for", function()
    local x = tycho.randn(3)
    assert.equal(x, x:to "float32")
    assert.is_false(rawequal(x, x:to("float32", {copy = true})))
    assert.equal("float16", x:to(DEVICE, "float16").dtype)
    assert.equal("float64", x:to({dtype = "float64"}).dtype)
    assert.equal("int64", x:to(tycho.ones(1, {dtype = "int64"})).dtype)
    assert.equal(x, x:to(DEVICE, true))                    -- non_blocking, as PyTorch's position has it
    fails("did you mean 'float16'", x.to, x, "floot16")
    fails("got nil", x.to, x)
    assert.equal(12, x:nbytes())
    assert.equal("float64", nn.Linear(2, 2):to(DEVICE, {dtype = "float64", non_blocking = true}).weight.dtype)
  end)

  it("shapes change in place where there is no history", function()
    local x = tycho.range(1, 6):view(2, 3)
    assert.equal(x, x:unsqueeze_(1))
    assert.same({1, 2, 3}, {unpack(x.shape)})
    x:squeeze_():t_()
    assert.same({{1, 4}, {2, 5}, {3, 6}}, x:totable())
    x:transpose_(1, 2)
    assert.same({2, 3}, {unpack(x.shape)})
    fails("requires grad", function() tycho.ones(2, {requires_grad = true}):unsqueeze_(1) end)
    assert.same({4}, {unpack(tycho.zeros(2, 2):view(4):type_as(tycho.zeros(1, {dtype = "int64"})).shape)})
    local m = tycho.zeros(3, 3):fill_diagonal_(2)
    assert.same({{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}, m:totable())
    assert.equal(6, tycho.zeros(2, 2, 2):fill_diagonal_(3):sum():item())
  end)

  it("shapes count from the end, modules may hold each other, numbers that a dtype can't hold are refused", function()
    local x = tycho.zeros(2, 3, 5)
    assert.same({5, 3, 2}, {x.shape[-1], x.shape[-2], x.shape[-3]})
    assert.is_nil(x.shape[-4])
    assert.is_nil(x.shape[4])
    local a, b = nn.Linear(2, 2), nn.Linear(2, 3)
    a.b, b.a = b, a
    assert.equal(4, #a:parameters())
    local names = {}
    for name in a:named_parameters() do names[#names + 1] = name end
    assert.same({"weight", "bias", "b.weight", "b.bias"}, names)
    assert.is_truthy(tostring(a):find("(a): Linear(...)", 1, true))
    a:train()
    local n = tycho.zeros(2):long()
    fails("fill: argument 2 (value) is NaN, which int64 can't hold", function() n:fill_(0 / 0) end)
    fails("the value 1e+30 is out of range for int64", function() n[1] = 1e30 end)
    fails("masked_fill: argument 3 (value) 10000000000 is out of range for int32",
      function() return tycho.zeros(2):int():masked_fill(tycho.ones(2):bool(), 1e10) end)
    assert.same({0, 0}, n:totable())
  end)

  it("take another memory format, and tell", function()
    local x = tycho.randn(2, 3, 4, 5)
    local y = x:to {memory_format = "channels_last"}
    assert.is_true(y:is_contiguous {memory_format = "channels_last"} and not y:is_contiguous())
    assert.same({60, 1, 15, 3}, {unpack(y:stride())})
    close(y, x, "elements", 0)
    assert.is_false(x:is_contiguous "channels_last")
    assert.is_true(y:contiguous():is_contiguous())
    assert.equal(x, x:contiguous())
    assert.equal(y, y:contiguous {memory_format = "channels_last"})
    assert.is_true(nn.functional.max_pool2d(y, 2):is_contiguous "channels_last")
    assert.equal("2x4x2x3", tostring(nn.Conv2d(3, 4, 3):to {memory_format = "channels_last"}(y).shape))
    fails("must be 'contiguous' or 'channels_last'", x.is_contiguous, x, {memory_format = "sideways"})
    fails("4 dims", function() tycho.ones(3):to {memory_format = "channels_last"} end)
    local z = x:detach():requires_grad_()
    ;(z:to {memory_format = "channels_last"} * 2):sum():backward()
    close(z.grad, tycho.full({2, 3, 4, 5}, 2), "gradient", 0)
  end)

  it("keep another memory format where they are joined, padded, moved and pinned", function()
    local CL = {memory_format = "channels_last"}
    local x = tycho.randn(2, 3, 4, 5)
    local y = x:to(CL)
    for _, fn in ipairs {function(v) return tycho.cat({v, v * 2, v + 1}, 2) end, function(v) return tycho.cat({v, v}, 4) end,
        function(v) return nn.functional.pad(v, {1, 2, 0, 1}) end, function(v) return nn.functional.pad(v, {-1, 2, 1, -1, 1, 0}) end} do
      local a, b = x:detach():requires_grad_(), y:detach():requires_grad_()
      local p, q = fn(a), fn(b)
      assert.is_true(q:is_contiguous(CL) and p:is_contiguous())
      assert.is_true(p:equal(q))
      local g = tycho.randn(p.shape)
      assert.is_true(tycho.grad((p * g):sum(), a):equal(tycho.grad((q * g):sum(), b)))
    end
    if not cuda.is_available() then return end
    for _, v in ipairs {y, y:transpose(1, 2), y[{ {}, {}, {2, 3} }], x} do
      v = v:to "cpu"
      local moved = v:to "cuda"
      assert.equal(v:is_contiguous(CL), moved:is_contiguous(CL))
      assert.is_true(moved:cpu():equal(v))
      assert.equal(v:is_contiguous(CL), moved:cpu():is_contiguous(CL))
      assert.is_true(v:pin_memory():equal(v))
      assert.equal(v:is_contiguous(CL), v:pin_memory():is_contiguous(CL))
    end
  end)

  it("are limited by numbers of another kind", function()
    local x = tycho.tensor({1, 2}, {dtype = "int64"})
    assert.same({"float32", 1.5, 2}, {x:clamp(1.5).dtype, unpack(x:clamp(1.5):totable())})
    assert.equal("int64", x:clamp(nil, 1).dtype)
    assert.equal("float32", x:clamp_max(0.5).dtype)
    assert.equal("int64", tycho.tensor({true}):clamp(2).dtype)
    fails("clamp: min or max is needed", x.clamp, x)
  end)

  it("say what dtypes become together", function()
    assert.equal("float32", tycho.promote_types("float16", "bfloat16"))
    assert.equal("float16", tycho.promote_types("int64", "float16"))
  end)
end)

describe("users' names of layouts", function()
  it("are taken", function()
    local x = tycho.randn(2, 3, 4, 4, {device = device}):contiguous {memory_format = tycho.channels_last}
    assert.is_true(x:is_contiguous {memory_format = "channels_last"})
    assert.same({48, 16, 4, 1}, x:clone({memory_format = tycho.contiguous_format}):stride())
    assert.same(x:stride(), x:clone({memory_format = tycho.preserve_format}):stride())
    fails("must be one of preserve,contiguous,channels_last, got 'contiguous_form'", x.clone, x, {memory_format = "contiguous_form"})
  end)
end)

describe("users' values", function()
  it("that PyTorch refuses are refused", function()
    fails("256 is out of range for uint8", tycho.tensor, {256}, {dtype = "uint8"})
    fails("out of range for int64", tycho.tensor, {2 ^ 63}, {dtype = "int64"})
    fails("out of range for int32", tycho.tensor, {0 / 0}, {dtype = "int32"})
    fails("full: argument 2 (value) 300 is out of range for uint8", tycho.full, {1}, 300, {dtype = "uint8"})
    assert.equal(255, tycho.tensor({-1}, {dtype = "uint8"})[1])
    local i, b = tycho.tensor({2, 3}, {dtype = "int64"}), tycho.tensor {true, false}
    fails("pow: argument 2 is -1; whole numbers (int64) have no negative powers", function() return i ^ -1 end)
    fails("sub: bool operands can't be subtracted", function() return b - b end)
    fails("neg: bool operands can't be", function() return -b end)
    assert.same({0, -1}, (b - 1):totable())
  end)

  it("print as they are beyond 2^53", function()
    local x = tycho.tensor({2 ^ 53, -2 ^ 60, 7}, {dtype = "int64"}) + 1
    assert.equal("[ 9007199254740993, -1152921504606846975, 8]", (tostring(x):match "^[^\n]*":gsub("  +", " ")))
    assert.equal("[]", tostring(tycho.zeros(2, 0)):match "^[^\n]*")
    assert.equal("[1.0000e+00, 5.0000e+03]", tostring(tycho.tensor {1, 5000}):match "^[^\n]*")
  end)

  it("of FFI arrays are what their type says", function()
    local ffi = require "ffi"
    pcall(ffi.cdef, "void *malloc(size_t);")
    local d, i, f = ffi.new("double[3]", {1, 2, 3}), ffi.new("int32_t[2]", {4, 5}), ffi.new("float[2][2]", {{1, 2}, {3, 4}})
    assert.same({1, 2, 3}, tycho.from_ffi(d, {3}):totable())
    assert.equal("float64", tycho.from_ffi(d, {3}).dtype)
    assert.same({4, 5}, tycho.from_ffi(i, {2}):totable())
    assert.same({{1, 2}, {3, 4}}, tycho.from_ffi(f, {2, 2}):totable())
    assert.same({1, 2}, tycho.from_ffi(ffi.cast("void *", f), {2}):totable())
    fails("the array has 16 bytes, a tensor of shape 300 in float32 needs 1200", tycho.from_ffi, f, {300})
    fails("elements of type 'double' can't be read as float32", tycho.from_ffi, d, {3}, {dtype = "float32"})
    assert.same({{1, 2}, {3, 4}}, tycho.from_ffi(ffi.cast("float (*)[2]", f), {2, 2}):totable())
    assert.same({1, 2}, tycho.from_ffi(ffi.cast("uint8_t *", f), {2}, {dtype = "float32"}):totable())
    assert.same({7, 8}, tycho.from_ffi(ffi.new("uint64_t[2]", {7, 8}), {2}, {dtype = "int64"}):totable())
    assert.same({1, 2, 3}, tycho.from_ffi(ffi.new("struct { float x, y, z; }[1]", {{1, 2, 3}}), {3}, {dtype = "float32"}):totable())
    assert.equal("uint8", tycho.from_ffi(ffi.new("uint8_t[2]"), {2}).dtype)
    fails("need a dtype", tycho.from_ffi, ffi.new("int8_t[2]"), {2})
    fails("elements of type 'unsigned int' need a dtype", tycho.from_ffi, ffi.new("uint32_t[2]"), {2})
    fails("elements of type 'int' can't be read as float32", tycho.from_ffi, i, {2}, {dtype = "float32"})
    fails("elements of type 'unsigned int' can't be read as int64", tycho.from_ffi, ffi.new("uint32_t[2]"), {1}, {dtype = "int64"})
    for _, cdata in ipairs {ffi.new("float *[4]"), ffi.new("float **"), ffi.new("struct { int a; }"),
        ffi.new("int64_t", 3), ffi.C.malloc} do
      fails("must be an FFI pointer or array of numbers, got", tycho.from_ffi, cdata, {1})
    end
  end)
end)

describe("users' printing", function()
  it("are printed as they are asked to be", function()
    local x = tycho.tensor {1.23456, 100}
    local function text(v) return tostring(v):match "^(.*)\n" end
    tycho.set_printoptions {precision = 2}
    assert.equal("[  1.23, 100.00]", text(x))
    tycho.set_printoptions {sci_mode = true, precision = 3}
    assert.equal("[1.235e+00, 1.000e+02]", text(x))
    tycho.set_printoptions {profile = "default", threshold = 3, edgeitems = 1}
    assert.equal("[1.,  ..., 5.]", text(tycho.range(1, 5)))
    tycho.set_printoptions {profile = "default"}
    assert.equal("[  1.2346, 100.0000]", text(x))
    fails("unknown option 'precison'; did you mean 'precision'", tycho.set_printoptions, {precison = 2})
    fails("sci_mode must be", tycho.set_printoptions, {sci_mode = 3})
    fails("precision must be a whole number from 0", tycho.set_printoptions, {precision = -1})
  end)

  it("set_printoptions takes a profile and sci_mode together", function()
    tycho.set_printoptions {profile = "default", sci_mode = true}
    local text = tostring(tycho.tensor {0.901, 3.111})
    tycho.set_printoptions {profile = "default"}
    assert.is_truthy(text:find("[9.0100e-01, 3.1110e+00]", 1, true))
    assert.is_truthy(tostring(tycho.tensor {0.901, 3.111}):find("[0.9010, 3.1110]", 1, true))
  end)
end)

describe("users' indexing", function()
  it("masks may be 0-dim", function()
    local x, m = tycho.tensor(2, {device = device}), tycho.ones(2, 3, {device = device})
    assert.same({2}, x[x:gt(0)]:totable())
    assert.same({0}, {unpack(x[x:lt(0)].shape)})
    assert.equal("1x2x3", tostring(m[tycho.tensor(true, {device = device})].shape))
    assert.equal("2x0x3", tostring(m[{{}, tycho.tensor(false, {device = device})}].shape))
    x[x:gt(0)] = 5
    assert.equal(5, x:item())
    m[tycho.tensor(true, {device = device})] = tycho.tensor({7, 8, 9}, {device = device})
    close(m, tycho.tensor {{7, 8, 9}, {7, 8, 9}})
    m[tycho.tensor(false, {device = device})] = 0
    assert.equal(48, m:sum():item())
  end)

  it("numbers written into a bool tensor by index are true unless 0", function()
    local z, i = tycho.zeros(2, {dtype = "bool", device = device}), tycho.tensor({1}, {dtype = "int64", device = device})
    local half = tycho.tensor({0.5}, {device = device})
    local y, w = z:clone(), z:clone()
    y[i] = 0.5
    w[w:logical_not()] = half:select(1, 1)
    for k, x in ipairs {z:index_fill(1, i, 0.5), z:index_put({i}, 0.5), z:scatter(1, i, 0.5), z:index_copy(1, i, half),
        z:index_put({i}, half), y} do
      assert.same({true, false}, x:totable(), k)
    end
    assert.same({true, true}, w:totable())
    assert.same({false, false}, z:index_fill(1, i, 0):totable())
    local edges, values = tycho.rand(2, 3, {device = device}), tycho.rand(3, 1, {device = device})
    fails("searchsorted: argument 1 has shape 2x3", tycho.searchsorted, edges, values)
  end)

  it("nonzero_static gives as many rows as asked for, the first of nonzero's", function()
    local x = tycho.rand(3, 4, 2, {device = device}):gt(0.6)
    local rows = x:nonzero()
    for _, n in ipairs {0, 3, rows.shape[1], rows.shape[1] + 2} do
      local got = x:nonzero_static(n, {fill_value = -7})
      local k = math.min(n, rows.shape[1])
      assert.same({n, 3}, {got.shape[1], got.shape[2]})
      assert.is_true(got[{{1, k}}]:equal(rows[{{1, k}}]))
      assert.is_true(n == k or got[{{k + 1, n}}]:eq(-7):all():item())
    end
    assert.same({{0}, {0}}, tycho.zeros(0, {device = device}):nonzero_static(2):totable())
    fails("nonzero_static: size must be at least 0", x.nonzero_static, x, -1)
  end)

  -- not beside PyTorch 2.15's, which gives x the gradient of exactly those elements that are written over
  it("as_strided_scatter writes where as_strided reads, and passes on the gradient of what stays", function()
    local o = {dtype = "float64", device = device}
    local x, src = tycho.randn(2, 4, o), tycho.randn(2, 2, o)
    local y = x:as_strided_scatter(src, {2, 2}, {3, 2}, 1)
    assert.is_true(y:as_strided({2, 2}, {3, 2}, 1):equal(src))
    assert.same({true, false, true, false, false, true, false, true}, y:eq(x):flatten():totable())
    assert.is_true(tycho.autograd.gradcheck(function(a, b) return a:as_strided_scatter(b, {2, 2}, {3, 2}, 1) end,
      {x:clone():requires_grad_(), src:clone():requires_grad_()}))
  end)

  it("tensor({}) is where lists begin to grow", function()
    local a, b = tycho.randn(2, 3, {requires_grad = true}), tycho.randn(2, 3, {requires_grad = true})
    local empty = tycho.zeros(0, {requires_grad = true})
    for dim = 1, 2 do
      for _, list in ipairs {{empty, a, b}, {a, empty, b}, {empty, empty, a, b}, {a, b, empty}} do
        a.grad, b.grad, empty.grad = nil, nil, nil
        local y = tycho.cat(list, dim)
        helper.close(y, tycho.cat({a, b}, dim), "cat", 0)
        local w = tycho.range(1, 12):view(y.shape)
        local loss = (y * w):sum()
        loss:backward()
        helper.close(tycho.cat({a.grad, b.grad}, dim), w, "gradient", 0)
        assert.equal("0", tostring(empty.grad.shape))
      end
    end
    assert.equal("0", tostring(tycho.cat({tycho.zeros(0), tycho.zeros(0)}, 1).shape))
    fails("tensor 3 has shape 2; apart from dim 1 it must match tensor 2 of shape 2x3", tycho.cat, {empty, a, tycho.ones(2)}, 1)
  end)
end)

describe("users' random numbers", function()
  it("have their random numbers forked", function()
    tycho.manual_seed(5)
    assert.equal(5, tycho.initial_seed())
    local a = tycho.fork_rng(function() return tycho.randn(3) end)
    close(tycho.randn(3), a, "as if the fork hadn't been", 0)
    assert.is_false(pcall(tycho.fork_rng, error, "x"))
  end)

  it("random numbers are drawn in place", function()
    tycho.manual_seed(1)
    local x = tycho.empty(40000):geometric_(0.25)
    assert.is_true(math.abs(x:mean():item() - 4) < 0.1 and x:amin():item() == 1)
    x:log_normal_(0, 0.5)
    assert.is_true(math.abs(x:log():std():item() - 0.5) < 0.02)
    x:cauchy_(3, 2)
    assert.is_true(math.abs(x:median():item() - 3) < 0.1)
    local k = tycho.empty(1000, {dtype = "int64"}):random_(2, 5)
    assert.same({2, 3, 4, 5}, k:unique():totable())
    assert.is_true(tycho.empty(1000, {dtype = "uint8"}):random_():amax():item() > 200)
    fails("p) must lie between", function() x:geometric_(1) end)
  end)

  it("numbers that the result's dtype can't hold are refused where an operand becomes the result", function()
    local u = tycho.ones(2, {dtype = "uint8"})
    fails("maximum: argument 2 (b) 300 is out of range for uint8", u.maximum, u, 300)
    fails("minimum: argument 2 (b) -1 is out of range for uint8", u.minimum, u, -1)
    fails("where: argument 3 (b) -1 is out of range for uint8", tycho.where, tycho.tensor {true, false}, u, -1)
    assert.same({1, 1}, u:minimum(300):totable())
    assert.same({1, 1}, u:maximum(-1):totable())
    assert.same({1, 1}, u:int():minimum(2 ^ 40):totable())
    fails("where: argument 3 (b) 300 is out of range for uint8", tycho.where, tycho.tensor {true, false}, u, 300)
    fails("out of range for int32", tycho.ones(2, {dtype = "int32"}).maximum, tycho.ones(2, {dtype = "int32"}), 2 ^ 40)
    assert.same({3, 3}, u:maximum(3):totable())
    assert.equal("float32", u:maximum(2.5).dtype)
    assert.equal("int64", tycho.tensor({true, false}):square().dtype)
    assert.same({1, 0}, tycho.tensor({true, false}):square():totable())
    fails("size -1 keeps a dim of the tensor, but shape 3 has none for dim 1 of -1x2x3", u.expand, tycho.zeros(3), -1, 2, 3)
    local n = tycho.zeros(2, {dtype = "int64"})
    fails("index assignment: the value nan is out of range for int64", function() n[1] = 0 / 0 end)
    fails("index assignment: a tensor of shape 2x3 whose elements share memory", function()
      tycho.zeros(3):expand(2, 3)[tycho.tensor({1}, {dtype = "int64"})] = 3
    end)
  end)

  it("like another keep its layout, whatever is in them", function()
    for _, x in ipairs {tycho.randn(2, 3, 4, 4):to {memory_format = "channels_last"}, tycho.randn(2, 4, 4, 3):permute(1, 4, 2, 3)} do
      for _, name in ipairs {"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"} do
        local y = tycho[name](x)
        assert.is_true(y:is_contiguous "channels_last", name)
        assert.equal(x.shape, y.shape)
      end
    end
    assert.is_true(tycho.randn_like(tycho.randn(2, 3, 4, 4)):is_contiguous())
  end)
end)
