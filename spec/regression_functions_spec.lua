-- Bugs that were, of functions of tensors: arithmetic, sums, searches, random numbers, matrices, arguments; values are PyTorch's.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, linalg = tycho.nn, tycho.nn.functional, tycho.linalg
local T, is, fails = tycho.tensor, helper.is, helper.fails
local i64, f64, inf, nan = {dtype = "int64"}, {dtype = "float64"}, math.huge, 0 / 0
local cpu = {device = "cpu"}                     -- where what is in a tensor is looked at at once

describe("regressions of arithmetic", function()
  it("extremes of long lines of other dtypes than the loops' are found piece by piece", function()
    local x = tycho.randn(2, 3000)
    for _, k in ipairs {1, 513, 1024, 3000} do
      local y = x:clone()
      y[{ {}, k }] = 9
      for _, dtype in ipairs {"float16", "int32", "uint8"} do
        local z = dtype == "uint8" and y:clamp(0, 200):to(dtype) or y:to(dtype)
        for _, way in ipairs {z, z:t():contiguous():t(), z:repeat_interleave(2, 2)[{ {}, {1, -1, 2} }]} do
          local v, at = way:max(2)
          is({9, 9}, v)
          is({k, k}, at)
          is({k, k}, way:argmax(2))
        end
      end
      y[{ 2, 700 }] = nan
      local _, at = y:half():min(2)
      assert.equal(700, at[2])
      assert.equal(y:argmin(2)[1], at[1])
    end
  end)

  it("numbers come out as they should", function()
    assert.equal(1000, tycho.tensor({1000, 2000, 3000}, {dtype = "float16"}):std():item())
    assert.equal(9, tycho.tensor {1}:floor_divide(0.1):item())
    assert.is_true(tycho.rand(100000, {dtype = "bfloat16"}):max():item() < 1)
    fails("must be whole", function() return tycho.tensor({1}, {dtype = "int64"}):clamp_(0.5) end)
    fails("nothing to pool", tycho.max_pool2d, tycho.zeros(1, 1, 0, 4), 2, {padding = 1})
    fails("must hold indices", tycho.embedding, tycho.tensor {1.9}, tycho.ones(2, 2))
    assert.equal(1, tycho.tensor {1, 2, 3}:var({}):item())
    assert.is_truthy(tycho.tensor({true}):describe())
  end)

  it("whole numbers are divided as such, whatever their size, and numbers without overflow", function()
    local a = tycho.tensor({16777217, 123456789, -123456789, 7, -7}, {dtype = "int64"})
    assert.same({16777217, 123456789, -123456789, 7, -7}, a:div(1, {rounding_mode = "trunc"}):totable())
    assert.same({5592405, 41152263, -41152263, 2, -2}, a:div(3, {rounding_mode = "trunc"}):totable())
    assert.same({-5592405, -41152263, 41152263, -2, 2}, a:div(-3, {rounding_mode = "trunc"}):totable())
    assert.equal("int64", a:div(3, {rounding_mode = "trunc"}).dtype)
    assert.equal(-2, tycho.tensor({3e38}):floor_divide(-2e38):item())
    assert.equal(-1, tycho.tensor({-5}):floor_divide(math.huge):item())
    assert.equal(-3, tycho.tensor({-5}):floor_divide(2):item())
    assert.equal(2, tycho.tensor({5}):floor_divide(2):item())
  end)

  it("div truncates what is whole by a negative number or a boolean", function()
    local function trunc(a, b) return tycho.div(a, b, {rounding_mode = "trunc"}):totable() end
    assert.same({253, 252}, trunc(T({7, 9}, {dtype = "uint8"}), -2))                  -- -3 and -4, as bytes
    assert.same({-3, 3, 0}, trunc(T({7, -7, 1}, {dtype = "int32"}), -2))
    assert.same({-3, -2}, trunc(-7, T({2, 3}, {dtype = "int64"})))
    assert.same({7, -8}, trunc(T({7, -8}, {dtype = "int32"}), true))
    assert.same({2, -1}, trunc(true, T {0.5, -0.7}))
  end)

  it("logic in place on bytes is of truth values", function()
    local u, v = T({4, 0, 2, 1}, {dtype = "uint8"}), T({3, 1, 2, 0}, {dtype = "uint8"})
    for name, want in pairs {logical_and_ = {1, 0, 1, 0}, logical_or_ = {1, 1, 1, 1}, logical_xor_ = {0, 1, 0, 1}} do
      local x = u:clone()
      x[name](x, v)
      assert.same(want, x:totable(), name)
      local b = u:bool()
      b[name](b, v)
      assert.same(want, b:int():totable(), name)
    end
    local x = u:clone()
    x:logical_not_()
    assert.same({0, 1, 0, 0}, x:totable())
    x = u:clone()
    x:bitwise_and_(v)
    assert.same({0, 0, 2, 0}, x:totable())
  end)

  it("isclose and allclose of whole numbers don't wrap around", function()
    local function I(v, dtype) return T(v, {dtype = dtype}) end
    assert.is_false(tycho.allclose(I({2 ^ 31 - 1}, "int32"), I({-1}, "int32")))
    assert.is_false(tycho.allclose(I({0}, "int32"), I({-2 ^ 31}, "int32")))
    assert.is_false(tycho.allclose(I({2 ^ 62}, "int64"), I({-2 ^ 62}, "int64")))
    assert.is_false(tycho.allclose(I({2 ^ 53}, "int64"), I({2 ^ 53}, "int64") + 1, {rtol = 0, atol = 0}))
    assert.is_true(tycho.allclose(I({7, 200}, "uint8"), I({8, 199}, "uint8"), {atol = 1}))
    assert.is_true(tycho.isclose(I({1000000}, "int64"), I({1000001}, "int64")):item())
  end)

  it("signs of 16 bits are changed and taken away in any layout", function()
    for _, d in ipairs {"float16", "bfloat16"} do
      local x = T({1, -2, 0, -0.0, inf, -inf, 0.25, -0.75}, {dtype = d})
      is({-1, 2, -0.0, 0, -inf, inf, -0.25, 0.75}, x:neg(), 0)
      is({1, 2, 0, 0, inf, inf, 0.25, 0.75}, x:abs(), 0)
      assert.same({-inf, inf, inf}, {1 / x:neg()[3], 1 / x:abs()[3], 1 / x:abs()[4]})
      assert.same({true, true}, (T({nan, -1}, {dtype = d}):neg():isnan() + T({1, nan}, {dtype = d}):abs():isnan()):totable())
      local y = tycho.randn(40, 64):to(d)
      for _, v in ipairs {y, y:t(), y[{ {}, {3, 60, 2} }], y[{ {5, 20} }], y[1]:expand(30, 64), y:select(2, 3)} do
        helper.close(v:neg():float(), v:float() * -1, d, 0)
        helper.close(v:abs():float(), v:float():abs(), d, 0)
        helper.close(v:clone():neg_():float(), v:float() * -1, d, 0)
      end
    end
  end)

  it("decimals of 16-bit numbers don't overflow", function()
    local x = T({60000, -700.5}, {dtype = "float16"})
    is({60000, -700.5}, x:round({decimals = 2}))
    assert.equal("float16", x:round({decimals = 2}).dtype)
  end)

  it("a border that is NaN gives NaN, an infinite one floats", function()
    for _, x in ipairs {T({1, 2}):clamp(nan), T({1, 2}):clamp(nan, 5), T({1, 2}):clamp_min(nan), T({1, 2}):clamp_max(nan),
        T({1, 2}):clamp_(nil, nan)} do
      assert.is_true(x:isnan():all():item())
    end
    local x = T({1, 2}, i64):clamp_max(-inf)
    assert.equal("float32", x.dtype)
    assert.same({-inf, -inf}, x:totable())
    assert.equal("float32", T({1, 2}, i64):clamp(-inf, inf).dtype)
    assert.equal("int64", T({1, 2}, i64):clamp(0, 5).dtype)
  end)

  it("a border that no element of the dtype reaches is an error", function()
    local x = T({0, 5, 200}, {dtype = "uint8"})
    helper.fails("clamp: max -1 is below what dtype uint8 holds", x.clamp, x, nil, -1)
    helper.fails("clamp: min 300 is above what dtype uint8 holds", x.clamp_min, x, 300)
    helper.fails("clamp: min 300 is above what dtype uint8 holds", x.clamp_, x, 300)
    assert.same({0, 5, 100}, x:clamp(-1, 100):totable())
    helper.fails("clamp: max -1e+10 is below what dtype int32 holds", x.clamp, x:int(), nil, -1e10)
  end)

  it("nan_to_num's replacements aren't replaced again", function()
    assert.same({inf}, T({nan}):nan_to_num(inf):totable())
    assert.same({-inf}, T({inf}):nan_to_num(0, -inf):totable())
    is({7, 1, 2, 3}, T({nan, inf, -inf, 3}):nan_to_num(7, 1, 2))
    local x = T({nan, inf, -inf, 3}, {requires_grad = true})
    is({0, 0, 0, 1}, tycho.grad(x:nan_to_num():sum(), x))
  end)

  it("values at the edges of what numbers can be", function()
    local x = T({1e-40, -1e-40, 0.5}, {requires_grad = true})
    is({0, 0, -4 / math.pi}, tycho.grad(x:sinc():sum(), x), 1e-5)
    is({1e40, -1e20, -1e10}, tycho.digamma(T({-1e-40, 1e-20, 1e-10}, f64)), 1e-9)
    is({1e30}, T({-1e-15}, f64).polygamma(T({-1e-15}, f64), 1), 1e-9)
    is({0.5, 50}, F.huber_loss(T {1, -10}, T {0, 0}, {delta = inf, reduction = "none"}))
    is({2, 6}, tycho.ldexp(T {1, 3}, true))
    is({0, 2}, tycho.ldexp(T({0, 2 ^ -100}, {dtype = "float32"}), 101))
    is({0, 2}, tycho.ldexp(T({0, 2 ^ -140}, {dtype = "float32"}), T({300, 141}, {dtype = "int64"})))
    assert.equal("float64", tycho.ldexp(T({1}, {dtype = "float32"}), T({1}, {dtype = "float64"})).dtype)
    assert.same({false, true}, tycho.isin(T {1, 3}, 3):totable())
    assert.same({true, false}, T({1, 3}, i64):isin(3, {invert = true}):totable())
    assert.equal("2x0", tostring(tycho.cumulative_trapezoid(tycho.zeros(2, 0)).shape))
    local maxima, places = tycho.max_pool2d(tycho.ones(0, 3, 4, 4), 2, {return_indices = true})
    assert.equal("0x3x4x4", tostring(tycho.max_unpool2d(maxima, places, 2).shape))
    helper.fails("histogram: range 1..inf isn't finite", tycho.histogram, T {1, inf}, 4)
    for _, f in ipairs {tycho.scatter, tycho.scatter_add} do
      helper.fails(": argument 3 has indices into dim 1 of shape 0, which is empty", f, tycho.zeros(0), 1, T({1}, i64), tycho.ones(1))
      assert.equal(0, f(tycho.zeros(0), 1, T({}, i64), tycho.ones(0)):numel())
    end
  end)

  it("ldexp by the dtype of its result", function()
    assert.equal(2 ^ 46, tycho.ldexp(tycho.ones(1, {dtype = "float16"}), T {46}):item())
    is({2 ^ 400}, tycho.ldexp(tycho.ones(1), T({400}, f64)))
    is({-inf, 0}, tycho.ldexp(T {-3, -3}, T({inf, -inf}, f64)))
  end)

  it("gelu by tanh keeps its digits far below 0", function()
    local x = tycho.linspace(-6, -1, 101)
    local want, got = F.gelu(x:double(), {approximate = "tanh"}), F.gelu(x, {approximate = "tanh"})
    assert.is_true(((got:double() - want) / want):abs():max():item() < 5e-6)
  end)
end)

describe("regressions of sums, extremes and searches", function()
  it("rows of no elements have a sum", function()
    for _, rows in ipairs {1, 15, 16, 20} do
      for _, dtype in ipairs {"float32", "float64", "bfloat16", "int64", "bool"} do
        local x = tycho.zeros(rows, 0, {dtype = dtype})
        assert.same({rows}, {unpack(x:sum(2).shape)})
        assert.equal(0, x:sum(2):sum():item())
        assert.equal(rows, x:to("float32"):prod(2):sum():item())
        assert.is_true(x:all(2):all():item() and not x:any(2):any():item())
      end
    end
    assert.equal("4x5", tostring(tycho.zeros(4, 5, 0):norm(2, 3).shape))
  end)

  it("sums have the same bits whatever the number of threads", function()
    local x, threads = tycho.randn(300007, {dtype = "float64"}), tycho.get_num_threads()
    local got = {}
    for n = 1, 3 do
      tycho.set_num_threads(n)
      got[n] = x:sum():item() + x:square():sum():item() + x:narrow(1, 1, 300006):view(3, 100002):sum(2)[2]
    end
    tycho.set_num_threads(threads)
    assert.equal(got[1], got[2])
    assert.equal(got[1], got[3])
  end)

  it("long sums keep their digits", function()
    assert.is_true(math.abs(tycho.full({1000000}, 0.3):sum():item() / 300000.0119 - 1) < 5e-7)
    assert.is_true(tycho.full({10000}, 4321.7):var():item() < 4e-6)
  end)

  it("the places of extremes with keepdim are those without", function()
    local x = tycho.randn(2, 3, 4, 1, 1, 1, 1, 40):permute(8, 1, 2, 3, 4, 5, 6, 7)
    for _, y in ipairs {x, x:contiguous(), tycho.randn(5, 70, 6), tycho.randn(30, 8):t()} do
      for dim = 1, y:dim() do
        for _, name in ipairs {"max", "min"} do
          local v, at = y[name](y, dim)
          local kept, kept_at = y[name](y, dim, {keepdim = true})
          assert.is_true(kept:squeeze(dim):equal(v) and kept_at:squeeze(dim):equal(at))
          assert.is_true(y["arg" .. name](y, dim, {keepdim = true}):squeeze(dim):equal(at))
        end
      end
    end
  end)

  it("sort is stable, and gives the elements that came, -0 among them, in any dtype and number", function()
    math.randomseed(5)
    local odd = {nan, -0.0, 0, inf, -inf}
    local make = {float32 = function() return odd[math.random(12)] or (math.random() - 0.5) * 2 ^ math.random(-9, 9) end,
      int64 = function() return math.random(-3, 3) * 2 ^ math.random(0, 50) end, uint8 = function() return math.random(0, 255) end,
      bool = function() return math.random(2) == 1 end}
    make.float64, make.int32 = make.float32, function() return math.random(-2 ^ 20, 2 ^ 20) end
    make.float16 = function() return odd[math.random(12)] or math.random(-99, 99) / 8 end
    make.bfloat16 = make.float16
    local function number(v) return v == true and 1 or v == false and 0 or v end
    for dtype, one in pairs(make) do
      for _, n in ipairs {1, 2, 39, 40, 41, 300, 4095, 4097} do
        local given, order = {}, {}
        for i = 1, n do given[i], order[i] = one(), i end
        local x = T(given, {dtype = dtype})
        given = x:totable()                              -- as the dtype holds them
        for _, descending in ipairs {false, true} do
          table.sort(order, function(a, b)
            local p, q = number(given[a]), number(given[b])
            if p ~= p or q ~= q then
              if (p ~= p) == (q ~= q) then return a < b end
              return (p ~= p) == descending
            end
            if p == q then return a < b end
            return (p > q) == descending
          end)
          local values, places = (n % 2 == 0 and tycho.stack({x, x}, 2):select(2, 1) or x):sort(1, {descending = descending})
          assert.same(order, places:totable(), dtype)
          for i, v in ipairs(values:totable()) do
            local p, q = number(v), number(given[order[i]])
            assert.is_true((p ~= p and q ~= q) or (p == q and 1 / p == 1 / q), dtype)
          end
        end
      end
    end
  end)

  it("numbers are searched for as they are", function()
    assert.same({3}, {tycho.searchsorted(T({1, 2, 3}, i64), 2.5):item()})
    assert.same({4}, {tycho.searchsorted(T({1, 2, 3}, i64), inf):item()})
    assert.same({3}, {tycho.searchsorted(T({1, 2}, {dtype = "uint8"}), 300):item()})
    assert.same({1, 2}, {tycho.bucketize(0.1, T({0.1, 0.2}, f64)):item(), tycho.bucketize(16777217, T({16777216, 16777218}, i64)):item()})
  end)

  it("isin among many values, NaN among them", function()
    local x = T({{1, nan, 3}, {-inf, 5.5, 2}})
    local values = tycho.cat {tycho.range(3, 20), T {nan, -inf}}
    assert.same({{false, false, true}, {true, false, false}}, x:isin(values):totable())
    assert.same({{true, true, false}, {false, true, true}}, x:isin(values, {invert = true}):totable())
    assert.same({true, false}, T({3, 4}, i64):isin(T({1, 3, 9}, i64)):totable())
    assert.same({false, false}, T({3, 4}, i64):isin(tycho.zeros(0)):totable())
    assert.same({true, false}, T({3, 4}, i64):isin(T {{{3}}}):totable())
    assert.same({false, true}, T({true, false}):isin(T {false}):totable())
    assert.is_false(T(0.1):isin(T({0.1}, {dtype = "float64"})):item())            -- in the wider dtype
    local many = tycho.randint(1, 100000, {100000})
    assert.is_true(many:isin(many:flip(1)):all():item())
  end)

  it("histc takes the elements' own range where both ends are the same", function()
    is({0, 0, 1, 0, 0}, tycho.histc(T {2}, 5, 0.5, 0.5))
    is({1, 0, 0, 0, 1}, tycho.histc(T {2, 3}, 5, 0.5, 0.5))
  end)
end)

describe("regressions of random numbers and distributions", function()
  it("wide ranges of randint are drawn from independent words", function()
    tycho.manual_seed(4)
    local t = tycho.randint(0, 2 ^ 33 - 1, {4000}):totable()
    local same = 0
    for i = 1, 4000, 2 do
      if t[i] % 2 == math.floor(t[i + 1] / 2 ^ 32) then same = same + 1 end
    end
    assert.is_true(same > 850 and same < 1150, same .. " of 2000")
  end)

  it("random numbers fit what they are asked for", function()
    helper.fails("uint8 holds 0 to 255", tycho.randint, 0, 1000, {8}, {dtype = "uint8"})
    helper.fails("uint8 holds 0 to 255", tycho.randint, -1, 8, {8}, {dtype = "uint8"})
    helper.fails("uint8 holds numbers up to 255", tycho.randperm, 300, {dtype = "uint8"})
    assert.equal(255, tycho.randperm(255, {dtype = "uint8"}):amax():item())
    helper.fails("std", function() tycho.zeros(2):normal_(0, -1) end)
    helper.fails("lambd", function() tycho.zeros(2):exponential_(0) end)
    helper.fails("above high", function() tycho.zeros(2):uniform_(2, 1) end)
    local tiny = tycho.tensor({1e-310, 0, 1e-310}, {dtype = "float64"}):multinomial(2):totable()
    table.sort(tiny)
    assert.same({1, 3}, tiny)
  end)

  it("random_ draws what the dtype holds", function()
    for dtype, high in pairs {uint8 = 256, int32 = 2 ^ 31, bool = 2} do
      local x = tycho.zeros(3, {dtype = dtype})
      helper.fails(dtype .. " holds", x.random_, x, 0, high)
      assert.equal(x, x:random_(0, high - 1))
    end
    local x = tycho.zeros(3)
    helper.fails("uint8 holds 0 to 255, but -1 to 3 are asked for", x.random_, x:byte(), -1, 3)
    assert.equal(-3, x:random_(-3, -3)[2])
  end)

  it("draws have sizes that are whole numbers", function()
    local d = tycho.distributions.Categorical(tycho.ones(3))
    for _, shape in ipairs {{1, false}, {1, {}}, {1, -1}, {1, 1.5}} do
      helper.fails("Categorical: sample: size 2 must be a whole number from 0", d.sample, d, shape)
    end
    assert.equal("2x0", tostring(d:sample({2, 0}).shape))
  end)

  it("statistics and distributions refuse what has no meaning", function()
    helper.fails("cov: fweights must not be negative", tycho.cov, tycho.ones(2, 2, cpu), {fweights = T({1, -1}, i64):cpu()})
    helper.fails("cov: fweights must be whole numbers", tycho.cov, tycho.ones(2, 2), {fweights = T {1, 1}})
    helper.fails("gaussian_nll_loss: argument 3 (var) has elements below 0", F.gaussian_nll_loss, T({1}, cpu), T({1}, cpu), T({-1}, cpu))
    local D = tycho.distributions
    helper.fails("Binomial: total_count must be a whole number", D.Binomial, T(2.5, cpu), {probs = 0.5})
    assert.is_true(D.Beta(2, 3, {validate_args = false}):log_prob(1.5):isnan():item())
    assert.is_true(D.Dirichlet(tycho.ones(2)):log_prob(T({0, 1}, i64)):isfinite():item())
    local m = D.MixtureSameFamily(D.Categorical {probs = tycho.ones(1, 3)}, D.Normal(tycho.zeros(5, 3), 1))
    assert.same({7, 5}, {unpack(m:sample({7}).shape)})
  end)
end)

describe("regressions of matrices", function()
  it("block_diag leaves its list as it is", function()
    local list = {tycho.ones(3), tycho.ones(2, 2)}
    for _ = 1, 2 do assert.same({3, 5}, {unpack(tycho.block_diag(list).shape)}) end
    assert.same({3}, {unpack(list[1].shape)})
  end)

  it("mvlgamma of a dimension beyond memory is an error", function()
    assert.is_false((pcall(tycho.mvlgamma, tycho.ones(2), 2 ^ 53)))
  end)

  it("a singular matrix has an infinite condition", function()
    for _, p in ipairs {"fro", 1, inf, "nuc"} do assert.equal(inf, tycho.linalg.cond(tycho.ones(3, 3), p):item()) end
    local both = tycho.linalg.cond(tycho.stack {tycho.ones(2, 2), tycho.eye(2) * 2}, 1)
    is({inf, 1}, both)
  end)

  it("the power 0 of a matrix can be changed", function()
    assert.same({{{2, 1}, {1, 2}}, {{2, 1}, {1, 2}}}, tycho.matrix_power(tycho.ones(2, 2, 2), 0):add_(1):totable())
  end)

  it("rot90 turns from one dim to another", function()
    helper.fails("rot90: dims 1 and 1 must differ", tycho.rot90, tycho.ones(2, 2), 1, {1, -2})
    helper.fails("rot90: dim 3 is out of range", tycho.rot90, tycho.ones(2, 2), 0, {1, 3})
    helper.fails("rot90: dims must list two dims, got 3", tycho.rot90, tycho.ones(2, 2, 2), 1, {1, 2, 3})
    assert.same({{3, 1}, {4, 2}}, T({{1, 2}, {3, 4}}):rot90(-1, {-2, -1}):totable())
  end)

  it("linspace of whole numbers is between whole numbers", function()
    assert.same({-1, 0, 2, 3, 5, 7}, tycho.linspace(-1, 7.5, 6, {dtype = "int32"}):totable())
  end)

  it("gradient gives a list, and says which dim is too short", function()
    assert.same({{1, 2, 3}}, {tycho.gradient(T {1, 2, 5})[1]:totable()})
    assert.same({2, 2}, tycho.gradient(T({1, 2}, i64), {spacing = 0.5})[1]:totable())
    helper.fails("gradient: dim 2 has 1 elements", tycho.gradient, tycho.ones(3, 1))
    helper.fails("gradient: the places along dim 1 must be a vector of 3", tycho.gradient, tycho.ones(3), {spacing = {T {1, 2}}})
    helper.fails("gradient: spacing has 1 items for 2 dims", tycho.gradient, tycho.ones(3, 3), {spacing = {1}})
  end)
end)

describe("regressions of functions' arguments", function()
  it("arguments go by PyTorch's names", function()
    assert.same({3, 3}, {tycho.triu_indices(3, 3, {offset = 1}):size(2), tycho.tril_indices {row = 3, col = 3, offset = -1}:size(2)})
    assert.same({2, 6}, {unpack(tycho.ones(2, 3):tile(2).shape)})
    assert.same({2, 3}, {unpack(nn.utils.rnn.pad_sequence({tycho.ones(3), tycho.ones(1)}, true).shape)})
    assert.equal(2, tycho.compile(function(x) return x * 2 end, {mode = "reduce-overhead", fullgraph = true})(tycho.ones(1)):item())
    assert.equal(3, nn.EmbeddingBag.from_pretrained(tycho.ones(3, 2), {max_norm = 1}).weight.shape[1])
    local w = tycho.zeros(20, 4)
    local g = tycho.Generator(w.device):manual_seed(5)
    nn.init.sparse_(w, 0.5, {generator = g})
    assert.equal(40, w:count_nonzero():item())
  end)

  it("dims are whole numbers, variances tensors or numbers", function()
    for _, dim in ipairs {{}, "x", 1.5, tycho.ones(1)} do
      helper.fails("linalg.matrix_norm: a dim must be a whole number, got", tycho.linalg.matrix_norm, tycho.ones(2, 2), 1, {dim, 2})
    end
    is(0.5, F.gaussian_nll_loss(T {1}, T {0}, true))
  end)

  it("arguments follow one another where PyTorch's may", function()
    local x, y, one = T {1, -2, 4}, T {0.5, 1, -1}, T {1, -1, 1}
    is({9, -3, 6, -4}, x:diff(1, 1, T {-8}, T {0}))
    is({{2, 2}, {2, 3}, {3, 3}}, T({2, 3}):combinations(2, true))
    local planes = tycho.range(1, 16):view(1, 1, 4, 4)
    is({{{{3.5, 5}, {9.5, 11}}}}, F.avg_pool2d(planes, 3, 2, 1, false, false))
    is({{{{-7, -11}, {-23, -27}}}}, F.avg_pool2d(planes, 2, 2, 0, false, true, -2))
    is({{{{{-7, -11}, {-23, -27}}}}}, F.avg_pool3d(planes:unsqueeze(1), {1, 2, 2}, 2, 0, false, true, -2))
    is(0, F.margin_ranking_loss(x, y, one, 0.5))
    is(3, F.hinge_embedding_loss(x, one, 2))
    is(0.2696, F.binary_cross_entropy(T {0.2, 0.9}, T {0, 1}, T {1, 3}), 1e-3)
    is(7.5, F.triplet_margin_loss(x:unsqueeze(1), y:unsqueeze(1), one:unsqueeze(1), 3, 1))
    is(18.3173, F.poisson_nll_loss(x, y:abs(), true, true), 1e-5)
    is(6.6273, F.gaussian_nll_loss(x, y, one:abs(), true), 1e-5)
    is(2.8333, F.multi_margin_loss(T {{1, 2, 3}}, T({1}, i64), 2, 0.5), 1e-4)
    is({0.7062, 1.4072, 2.0979, 2.7735}, F.local_response_norm(planes, 2, 1e-2, 0.5, 2)[{1, 1, 1, {}}]:flatten(), 1e-4)
    is({{{{11}}}}, F.grid_sample(planes, tycho.zeros(1, 1, 1, 2), "nearest", "border", true))
    is({{{{-1, 0}, {1, 0}}}}, F.affine_grid(T {{{1, 0, 0}, {0, 1, 0}}}, {1, 1, 1, 2}, true))
    local var, mean = x:var_mean(false)
    is({6, 1}, tycho.stack {var, mean})
    assert.same({2, 0, 0, 0}, tycho.bincount(T({1, 1}, i64), nil, 4):totable())
    helper.fails("at most 2 arguments", F.mse_loss, x, y, x, x)
  end)

  it("smaller ones of PyTorch's calls", function()
    is({3, -4}, T({7, -7}):div_(2, {rounding_mode = "floor"}))
    is({3, -3}, T({7, -7}):divide_(T {2}, {rounding_mode = "trunc"}))
    local v, at, n = T({{1, 1, 2}, {1, 1, 3}}):unique_consecutive(true, true, 2)
    assert.same({{{1, 2}, {1, 3}}, {1, 1, 2}, {2, 1}}, {v:totable(), at:totable(), n:totable()})
    local rank = tycho.linalg.matrix_rank
    assert.equal(1, rank(tycho.diag(T {1, 1e-3, 0}), {atol = 1e-2}):item())
    assert.same({2, 1}, rank(tycho.stack {tycho.eye(2), tycho.eye(2)} * T({1, 0.1}):diag(), nil, true, {atol = T {0.01, 0.5}}):totable())
    is({{1, 0}, {0, 0}}, tycho.linalg.pinv(T {{1, 0}, {0, 1e-4}}, {atol = 1e-3}))
    local thin = T({{0.1, 0.2}, {0.3, 0.6}}, {dtype = "float64"})
    assert.same({1, 1, 2}, {rank(thin):item(), rank(thin, {atol = 0}):item(), rank(thin, 0):item()})
    is({{0.5, 0}, {0, 1}}, tycho.linalg.pinv(T {{2, 9}, {0, 1}}, {hermitian = true}))
    is({{7, 2}, {1, 8}}, tycho.masked_scatter(T {1, 2}, T {{true, false}, {false, true}}, T {7, 8}))
    assert.equal("2x0", tostring(tycho.linalg.solve(tycho.zeros(2, 0, 0), tycho.zeros(2, 0)).shape))
    local w = tycho.zeros(2, {requires_grad = true})
    is({0, 0}, tycho.grad(tycho.linalg.norm(w, -1), w))
    local two = tycho.atleast_2d {T(1), tycho.zeros(2, 3)}
    assert.same({"1x1", "2x3"}, {tostring(two[1].shape), tostring(two[2].shape)})
    assert.equal("int32", tycho.triu_indices(3, 3, 0, {dtype = "int32"}).dtype)
    assert.same({{0, 1}}, F.one_hot(T({2}, i64), -1):totable())
    assert.equal("0x1x2x2", tostring(F.pixel_shuffle(tycho.zeros(0, 4, 1, 1), 2).shape))
    assert.equal("float64", F.softmin(w, 1, {dtype = "float64"}).dtype)
    assert.equal("1x1x2x2", tostring(F.max_pool2d(tycho.zeros(1, 1, 4, 4), {2}).shape))
  end)

  it("lists stand for vectors where numbers are given", function()
    assert.same({1.75, 2.5}, tycho.tensor({1, 2, 3, 4}):quantile({0.25, 0.5}):totable())
    helper.close(tycho.distributions.Categorical {probs = {1, 3}}.probs, tycho.tensor {0.25, 0.75})
    helper.fails("got an empty one", tycho.data.WeightedRandomSampler, {}, 1)
  end)

  it("names and arguments that PyTorch has beside others", function()
    assert.equal(tycho.nn.utils.fuse_conv_bn_eval, tycho.nn.utils.fusion.fuse_conv_bn_eval)
    local rows = tycho.randn(3, 2)
    helper.exact(tycho.cdist(rows, rows, {compute_mode = "donot_use_mm_for_euclid_dist"}), tycho.cdist(rows, rows))
  end)

  it("PyTorch's names: pad of five dims, vander's N, one precision for all, compiler.is_compiling", function()
    local x = tycho.range(1, 2 ^ 5):view(2, 2, 2, 2, 2)
    local y = F.pad(x, {1, 0, 0, 0, 0, 0, 0, 1, 2, 0}, {value = -1})
    assert.same({4, 3, 2, 2, 3}, y.shape)
    assert.equal(x:sum():item() - (y:numel() - 32), y:sum():item())
    assert.equal(17, y[4][1][1][1][2])
    assert.same({2, 2, 2, 2, 1}, F.pad(x, {-1, 0, 0, 0, 0, 0, 0, 0, 0, 0}).shape)
    for _, wrong in ipairs {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1}} do helper.fails("pad: ", F.pad, x, wrong) end
    is({{1, 2}, {1, 3}}, linalg.vander(T {2, 3}, {N = 2}))
    local b = tycho.backends
    b.fp32_precision = "tf32"
    assert.same({"tf32", "tf32"}, {b.cuda.matmul.fp32_precision, b.cudnn.conv.fp32_precision})
    b.fp32_precision = "ieee"
    assert.same({"ieee", false}, {b.fp32_precision, b.cuda.matmul.allow_fp16_accumulation})
    helper.fails("backends has no 'cudn_'; did you mean 'cudnn'?", function() b.cudn_ = 1 end)
    helper.fails("backends.cudnn can't be set: set its fields", function() b.cudnn = 1 end)
    helper.fails("pad: item 2 of argument 2 (pad) must be a whole number, got 0.5", F.pad, x, {1, 0.5})
    local compiling = {}
    local fn = tycho.compile(function(v) compiling[#compiling + 1] = tycho.compiler.is_compiling() return v * 2 end)
    for _ = 1, 4 do fn(x) end
    assert.is_true(compiling[#compiling])
    assert.is_false(tycho.compiler.is_compiling())
    helper.fails("compiler has no 'disable': a compiled function runs its Lua code", function() return tycho.compiler.disable end)
  end)
end)
