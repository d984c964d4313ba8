-- tycho.testing: what is close passes, what isn't says where and by how much.
local tycho = require "tycho"
local close = tycho.testing.assert_close
local fails = require("spec.helper").fails

describe("assert_close", function()
  it("goes by the dtype's tolerances, or by those given", function()
    close(tycho.tensor {1, 2 + 1e-6}, tycho.tensor {1, 2})
    fails("1 of 2 elements (50.0 %)", close, tycho.tensor {1, 2.001}, tycho.tensor {1, 2})
    close(tycho.tensor {1, 2.001}, tycho.tensor {1, 2}, {rtol = 1e-2, atol = 0})
    close(tycho.tensor({1, 2.001}):half(), tycho.tensor({1, 2}):half())
    fails("float64", close, tycho.tensor {1}, tycho.tensor({1}, {dtype = "float64"}))
    close(tycho.tensor {1}, tycho.tensor({1}, {dtype = "float64"}), {check_dtype = false})
    fails("give both rtol and atol", close, tycho.tensor(1), tycho.tensor(1), {rtol = 1})
    fails("did you mean 'rtol'", close, 1, 1, {rtl = 1})
  end)

  it("says where the greatest differences are", function()
    local b = tycho.zeros(2, 3) + 100
    local a = b:clone()
    a[{2, 3}], a[{1, 2}] = 101, 98
    fails("2 of 6 elements (33.3 %) differ; greatest absolute difference 2 at {1, 2} (1e-05 allowed), greatest relative 0.02 at {1, 2}",
      close, a, b)
    fails("expected 1, got 2", close, tycho.tensor(2), tycho.tensor(1))
    fails("the shapes are 2x3 and 3x2", close, b, b:t())
  end)

  it("compares whole numbers exactly, and what is not finite by its kind", function()
    local big = tycho.tensor({1}, {dtype = "int64"}) * 2 ^ 53
    close(big, big:clone())
    fails("1 of 1", close, big + 1, big)
    close(tycho.tensor {math.huge, -math.huge}, tycho.tensor {math.huge, -math.huge})
    fails("1 of 2", close, tycho.tensor {math.huge, 1}, tycho.tensor {-math.huge, 1})
    local nan = tycho.tensor {0 / 0, 1}
    fails("1 of 2", close, nan, nan)
    close(nan, nan, {equal_nan = true})
    close(tycho.zeros(0, 3), tycho.zeros(0, 3))
    close(tycho.tensor {true, false}, tycho.tensor {true, false})
    fails("1 of 2", close, tycho.tensor {true, false}, tycho.tensor {true, true})
  end)

  it("takes numbers, strings and tables of all these", function()
    close({a = {1, "x", true}, b = tycho.ones(2)}, {a = {1, "x", true}, b = tycho.ones(2)})
    fails("at a[1]: expected 2, got 1", close, {a = {1}}, {a = {2}})
    fails("at b.w: 1 of 2", close, {b = {w = tycho.ones(2)}}, {b = {w = tycho.tensor {1, 2}}})
    fails("'b' is missing", close, {a = 1}, {a = 1, b = 2})
    fails("'b' isn't expected", close, {a = 1, b = 2}, {a = 1})
    fails("expected 'y', got 'x'", close, "x", "y")
    fails("expected a tensor, got 1", close, 1, tycho.tensor(1))
    local mine = setmetatable({}, {__tostring = function() return "weights after the step" end})
    fails("weights after the step", close, 1, 2, {msg = tostring(mine)})
    fails("layer 3: expected 2, got 1", close, 1, 2, {msg = function(m) return "layer 3: " .. m end})
    local a, b = {1}, {1}
    a.self, b.self = a, b
    close(a, b)
  end)

  it("makes tensors of random values", function()
    local make = tycho.testing.make_tensor
    for _, dtype in ipairs {"float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8"} do
      local x = make({300, 20}, {dtype = dtype, exclude_zero = true})
      local low, high = x:double():min():item(), x:double():max():item()
      assert.equal(dtype, x.dtype)
      assert.is_true(low >= (dtype == "uint8" and 1 or -9) and low <= (dtype == "uint8" and 1 or -8) and high > 8 and high <= 9)
      assert.is_false(x:eq(0):any():item())
    end
    local x = make({2, 3}, {noncontiguous = true, requires_grad = true, low = 2, high = 4})
    assert.same({"2x3", false, true, true}, {tostring(x.shape), x:is_contiguous(), x.requires_grad, x.is_leaf})
    assert.is_true(x:ge(2):all():item() and x:le(4):all():item())
    assert.equal("bool", make(5, {dtype = "bool"}).dtype)
    fails("low must be below high, got 3 and 1", make, {2}, {low = 3, high = 1})
  end)
end)
