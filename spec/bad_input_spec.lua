-- Whatever a program passes: a Lua error that names the function, nothing leaked, never the end of the process.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local fails = helper.fails
local NaN = 0 / 0

local freed = tycho.ones(2)
freed:free()
local forged = newproxy(true)
debug.setmetatable(forged, debug.getmetatable(tycho.ones(1)))

describe("bad input", function()
  it("is told apart by name, position and kind", function()
    fails("matmul: argument 2 has shape 3x5; dim 1 must be 4 to match argument 1 of shape 2x4", tycho.matmul,
      tycho.ones(2, 4), tycho.ones(3, 5))
    fails("add: argument 2 (b) must be a tensor or a number, got 'x'", tycho.add, tycho.ones(1), "x")
    fails("add: argument 2 (b) must be a tensor or a number, got nil", tycho.add, tycho.ones(1))
    fails("exp: argument 1 (x) must be a tensor, got 'x'", tycho.exp, "x")
    fails("exp: at most 1 argument, counting a method's tensor, got 2", tycho.exp, tycho.ones(1), 2)
    fails("zeros: argument 1 (size) must be whole numbers, got 'a'", tycho.zeros, 2, "a")
    fails("exp: argument 1 (x) was freed", tycho.exp, freed)
    fails("exp: argument 1 (x) must be a tensor, got userdata", tycho.exp, io.stdout)
    fails("must be a tensor", tycho.exp, forged)
    fails("must be a tensor", function() return forged + 1 end)
    fails("must be a tensor", function() return forged.shape end)
    fails("a tensor is needed", tostring, forged)
    fails("sum: argument 2 (dim) is dim 0: dims begin at 1", tycho.sum, tycho.ones(2), 0)
    fails("sum: dim 3 is out of range for shape 2x2", tycho.sum, tycho.ones(2, 2), 3)
    fails("sum: dim 1 is named twice", tycho.sum, tycho.ones(2, 2), {1, -2})
    fails("argument 2 (dim) must be a dim", tycho.softmax, tycho.ones(2), 1.5)
    fails("argument 2 (dim) must be a dim", tycho.softmax, tycho.ones(2), NaN)
    fails("argument 2 (dim) must be a dim", tycho.softmax, tycho.ones(2), 2 ^ 60)
    fails("sum: unknown option 'keepdimm'; did you mean 'keepdim'?", tycho.sum, tycho.ones(2), 1, {keepdimm = true})
    fails("sum: argument 3 (keepdim) must be a boolean, got 1", tycho.sum, tycho.ones(2), 1, {keepdim = 1})
    fails("sum: argument 2 (dim) is given twice", tycho.sum, tycho.ones(2), 1, {dim = 1})
    fails("zeros: 'flaot32' is not a dtype; did you mean 'float32'?", tycho.zeros, 2, {dtype = "flaot32"})
    fails("zeros: size -1 is negative", tycho.zeros, -1)
    fails("too large", tycho.zeros, 2 ^ 50)
    fails("out of memory", tycho.zeros, 2 ^ 47, {dtype = "float64"})       -- 2^48 elements are the most, of any dtype
    fails("at most 8 dims", tycho.zeros, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    fails("not available", tycho.zeros, 2, {device = "cuda:15"})
    fails("cat: argument 1 (tensors) must be a list of tensors, got number at 2", tycho.cat, {tycho.ones(1), 2})
    for _, n in ipairs {2 ^ 53, 3, -1, 0.5, NaN} do
      fails("tensordot: argument 3 (dims) must be a whole number from 0 to the smaller number of dims of shapes 2x3 and 3x2",
        tycho.tensordot, tycho.ones(2, 3), tycho.ones(3, 2), n)
    end
    fails("cat: argument 1 is an empty list", tycho.cat, {})
    for _, signature in ipairs {"x, mode:enum(a,b", "x, n:int(", "x, n:whole", "x, x:", "x, -"} do
      fails("bad signature", core.define, "named", signature, print)
    end
    for text, value in pairs {["a number that isn't finite"] = {a = {NaN}}, ["neither a table"] = {print}, ["isn't UTF-8"] = {"\255"},
        ["a list that has other fields too"] = {1, 2, a = 3}, ["a key that is neither"] = {[2.5] = 1},
        ["a key that isn't UTF-8"] = {["\255k"] = true}} do
      fails("can't be written as JSON: it has", core.json_encode, value)
      fails(text, core.json_encode, value)
    end
    assert.equal('{"a":[1,2.5,"x"],"b":{},"c":true}', core.json_encode {a = {1, 2.5, "x"}, b = {}, c = true})
    fails("tensor 2 has shape 3x3; apart from dim 1 it must match tensor 1 of shape 2x2", tycho.cat, {tycho.ones(2, 2), tycho.ones(3, 3)})
    fails("don't broadcast: dim 2 has 3 and 4 elements", tycho.add, tycho.ones(2, 3), tycho.ones(2, 4))
    fails("index 0", tycho.gather, tycho.ones(2), 1, tycho.tensor({0}, {dtype = "int64"}))
    fails(helper.device == "cpu" and "index 3 in argument 'index' is out of range for dim 1 of shape 2" or
      "index 3 is out of range 1 to 2", tycho.gather, tycho.ones(2), 1, tycho.tensor({3}, {dtype = "int64"}))
    fails("must hold indices", tycho.gather, tycho.ones(2), 1, tycho.ones(1))
    fails("label 0", tycho.cross_entropy, tycho.ones(1, 3), tycho.tensor({0}, {dtype = "int64"}))
    fails("label 4 is not one of 3 classes", tycho.cross_entropy, tycho.ones(1, 3), tycho.tensor({4}, {dtype = "int64"}))
    fails("one of none,mean,sum", tycho.mse_loss, tycho.ones(1), tycho.ones(1), {reduction = "avg"})
    fails("argument 1 has shape 1x2x4x4; dim 2 must be 3", tycho.conv2d, tycho.ones(1, 2, 4, 4), tycho.ones(2, 3, 3, 3))
    fails("larger than the padded input", tycho.conv2d, tycho.ones(1, 1, 2, 2), tycho.ones(1, 1, 3, 3))
    fails("floating dtype", tycho.softmax, tycho.ones(2, {dtype = "int64"}), 1)
    fails("did you mean 'matmul'", function() return tycho.matmull end)
    fails("eigenvalues of symmetric matrices only", function() return tycho.linalg.eigvals end)
    fails("use fft.angle", function() return tycho.angle end)
    fails("along the last dim", function() return tycho.ones(2).real end)
    fails("there are no sparse tensors", function() return tycho.ones(2):to_sparse() end)
    fails("did you mean 'reshape'", function() return tycho.ones(1):rehsape(1) end)
    fails("no field", function() tycho.ones(1).foo = 1 end)
    fails("can't be assigned", function() tycho.ones(1).shape = {1} end)
  end)

  it("never ends the process, whatever the arguments", function()
    if helper.device ~= "cpu" then                                 -- else a bad index is told by the next call, which may be the pool's
      tycho.cuda.set_sync_debug(true)
      finally(function() tycho.cuda.set_sync_debug(false) end)
    end
    local pool = {
      function() return nil end, function() return true end, function() return 0 end, function() return 1 end, function() return -1 end,
      function() return 2 end, function() return 1.5 end, function() return NaN end, function() return 2 ^ 53 end,
      function() return -2 ^ 60 end, function() return math.huge end,
      function() return "x" end, function() return "float16" end, function() return {} end, function() return {1} end,
      function() return {2, 3} end, function() return {-1, 0} end,
      function() return {x = 1} end, function() return {dim = 1} end, function() return {{}} end,
      function() return print end, function() return io.stdout end,
      function() return forged end, function() return freed end, function() return newproxy() end,
      function() return coroutine.create(print) end,
      function() return tycho.ones(2, 3) end, function() return tycho.ones(3, 2):t() end,
      function() return tycho.ones({}) end, function() return tycho.zeros(0, 3) end,
      function() return tycho.ones(2, {dtype = "int64"}) end, function() return tycho.tensor({true, false}) end,
      function() return tycho.ones(1, 2, 4, 4) end,
      function() return tycho.ones(2, 1, 2, 2, {dtype = "float16"}) end, function() return tycho.full({2}, NaN) end,
      function() return tycho.full({2}, 2 ^ 53, {dtype = "int64"}) end,
      function() return tycho.ones(1, 3):expand(2, 3) end, function() return {tycho.ones(2), tycho.ones(2)} end,
      function() return {tycho.ones(2), nil, 3} end,
      function() return tycho.ones(2, 3, {requires_grad = true}) end,
      function() return tycho.ones(2, 3, {dtype = "float64", requires_grad = true}) * 2 end,
    }
    local functions = {}
    require("tycho.functional").all()
    for name, fn in pairs(core.ops) do functions[#functions + 1] = {name, fn} end
    for name, fn in pairs(require("tycho.functional").functions) do functions[#functions + 1] = {name, fn} end
    for name, fn in pairs(core.methods) do functions[#functions + 1] = {name, fn} end
    for _, name in ipairs {"grad", "tensor", "from_ffi", "load", "manual_seed", "set_num_threads"} do
      functions[#functions + 1] = {name, tycho[name]}
    end
    table.sort(functions, function(a, b) return a[1] < b[1] end)
    collectgarbage() collectgarbage()
    local base = core.allocated()
    local threads = tycho.get_num_threads()
    local state = 12345
    local function random(n)
      state = (state * 1103515245 + 12345) % 2 ^ 31
      return math.floor(state / 65536) % n + 1
    end
    local calls, refused = 0, 0
    for _, f in ipairs(functions) do
      for _ = 1, 60 do
        local args, n = {}, random(6) - 1
        for k = 1, n do args[k] = pool[random(#pool)]() end
        if f[1] ~= "set_num_threads" or args[1] ~= 2 ^ 53 then
          local ok, err = pcall(f[2], unpack(args, 1, n))
          if helper.device ~= "cpu" then pcall(tycho.zeros, 1) end    -- raises what was found late
          calls = calls + 1
          if not ok then
            refused = refused + 1
            if f[1] ~= "no_grad" and f[1] ~= "scope" then assert.equal("string", type(err), f[1]) end
            assert.is_nil(tostring(err):find("attempt to call", 1, true), f[1] .. ": " .. tostring(err))
          end
        end
      end
    end
    tycho.set_num_threads(threads)
    helper.collected()
    assert.is_true(core.allocated() <= base, ("%d bytes leaked"):format(core.allocated() - base))
    assert.is_true(refused > calls / 3)
  end)

  it("keeps indexing and assigning from harm", function()
    local x = tycho.ones(2, 3)
    for _, k in ipairs {0, 3, -3, 1.5, NaN, 2 ^ 60, true, print, io.stdout, {0}, {3}, {1, 2, 3}, {{1, 2, 3, 4}}, {{0}},
        {{1, 2, 0}}, {{1, 2, -1}}, {"a"}, {a = 1}, {{"a"}}, tycho.ones(2), tycho.ones(3):gt(0), freed, forged,
        {1, nil, 2}, {[3] = 1}} do
      assert.is_false(pcall(function() return x[k] end), type(k))
      assert.is_false(pcall(function() x[k] = 1 end), type(k))
    end
    assert.is_false(pcall(function() x[nil] = 1 end))
    for _, v in ipairs {"a", print, {1, 2, 3, 4}, {{1}, {2, 3}}, freed, forged, tycho.ones(4)} do
      assert.is_false(pcall(function() x[1] = v end))
    end
    assert.equal(6, x:sum():item())
  end)

  it("what finalizers change while memory is taken is seen: lists that are read, tensors that are looked at", function()
    -- calls fn while everything that is allocated runs the collector, and so finalize
    local function amid(finalize, fn, ...)
      collectgarbage()
      collectgarbage "stop"
      getmetatable(newproxy(true)).__gc = finalize
      local pause, stride = collectgarbage("setpause", 0), collectgarbage("setstepmul", 1000000)
      collectgarbage "restart"
      local r = {pcall(fn, ...)}
      collectgarbage("setpause", pause)
      collectgarbage("setstepmul", stride)
      return unpack(r, 1, 2)
    end
    for _ = 1, 40 do
      local list = {}
      for i = 1, 4 do list[i] = {i, i, i} end
      local ok, t = amid(function() list[3] = 7 end, tycho.tensor, list)
      if ok then assert.same({3, 3, 3}, t[3]:totable()) else assert.truthy(t:find "nested list") end
      for _, fn in ipairs {core.leaf_of, core.methods.totable, core.methods.item} do
        local x, other = tycho.full({1}, 5), nil
        local fine, y = amid(function()
          if not x then return end
          x:free()
          x, other = nil, tycho.zeros(7, 3)
        end, fn, x)
        if fine then assert.equal(5, type(y) == "number" and y or y[1])
        else assert.truthy(y:find "freed") end
        assert.truthy(x or other)
      end
    end
  end)
end)
