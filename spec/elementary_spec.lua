-- The elementary functions of float32 beside libm's of float64: units in the last place, and C's rules at the edges.
local tycho = require "tycho"
local helper = require "spec.helper"

local INF, NAN = math.huge, 0 / 0
local EDGES = {0, 1 / (-1 / 0), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 7.25, -7.25, 1e-45, -1e-45, 1.2e-38, 3.4e38, -3.4e38, 1e20, 16777215,
  -16777217, 0.99999994, 1.0000001, -1.0000001, 88.7, -103, 89.4, 1e-30, INF, -INF, NAN}

-- 40,000 numbers of either sign over the exponents of `low .. high`, and the edges.
local function operands(low, high)
  local n = 40000
  local sign = tycho.where(tycho.rand(n, {device = "cpu"}):gt(0.5), 1, -1)
  local x = (tycho.rand(n, {dtype = "float64", device = "cpu"}) * (high - low) + low):exp2() * sign
  return tycho.cat({x:float(), tycho.tensor(EDGES, {device = "cpu"})}, 1)
end

-- The largest distance of float32 y from float64 truth, in units of truth's last place in float32.
local function ulps(y, truth)
  local rounded, d = truth:float(), y:double()
  local exponent = truth:abs():log2():floor():clamp(-126, 127) - 23
  local off = (d - truth):abs() / exponent:exp2()
  local both_nan = tycho.logical_and(truth:isnan(), d:isnan())
  local same = tycho.logical_or(both_nan, d:eq(rounded:double()))
  local edge = tycho.logical_and(truth:abs():gt(3.4e38), d:abs():gt(3.4e38))         -- at overflow, the next number
  off = tycho.where(tycho.logical_or(same, edge), 0, off)
  return tycho.where(off:isnan(), INF, off)
end

local function check(name, y, truth, most, ...)
  local off = ulps(y:cpu(), truth)
  local worst, at = off:max(1)
  if worst:item() > most then
    local of = {}
    for i, x in ipairs {...} do of[i] = ("%.9g"):format(x[at:item()]) end
    local got, want = y:cpu()[at:item()], truth[at:item()]
    error(("%s(%s) is %.9g, not %.12g: %.2f units"):format(name, table.concat(of, ", "), got, want, worst:item()), 2)
  end
end

describe("float32 functions", function()
  setup(function() tycho.manual_seed(5) end)

  local UNARY = {
    {"exp", 1}, {"expm1", 1.5}, {"exp2", 1}, {"log", 1}, {"log1p", 1.5}, {"log2", 0.6}, {"log10", 0.6}, {"tan", 3.6, 40},
    {"sin", 1.6, 40}, {"cos", 1.6, 40}, {"asin", 2.5, 0}, {"acos", 1.5, 0}, {"atan", 1.5}, {"sinh", 2}, {"cosh", 1.5}, {"asinh", 2},
    {"acosh", 2}, {"atanh", 2.5, 0}, {"tanh", 4.5}, {"erf", 1}, {"erfc", 3.5}, {"lgamma", 1}, {"digamma", 1}}
  for _, row in ipairs(UNARY) do
    local name, most, high = row[1], row[2], row[3] or 8
    it("have " .. name .. " within " .. most .. " units in the last place", function()
      for _, from in ipairs {-8, -120} do
        local x = operands(from, high)
        if high == 40 then x = tycho.where(x:abs():gt(1e14), 1, x) end            -- beyond, NaN (docs)
        local y, truth = helper.on_device(x), x:double()
        check(name, y[name](y), truth[name](truth), most, x)
      end
    end)
  end

  it("have pow and atan2 within 1.1 and 1.6", function()
    for _, range in ipairs {{-1, 1}, {-8, 8}, {-120, 120}} do
      local a, b = operands(unpack(range)), operands(unpack(range)):flip(1)
      local near = tycho.randn(a.shape[1], {device = "cpu"}) * 60 / a:abs():log():abs():clamp(0.1, 88)     -- powers without overflow
      for _, pair in ipairs {{a, b}, {b, a}, {a:abs(), near}, {a, b:round()}, {a, near:trunc()}} do
        local x, y = pair[1], pair[2]
        check("pow", helper.on_device(x):pow(helper.on_device(y)), x:double():pow(y:double()), 1.1, x, y)
        check("atan2", tycho.atan2(helper.on_device(x), helper.on_device(y)), tycho.atan2(x:double(), y:double()), 1.6, x, y)
      end
    end
  end)

  it("follow C at zeros, infinities, NaN and negative bases", function()
    local xs, ys = {}, {}
    for _, x in ipairs(EDGES) do
      for _, y in ipairs(EDGES) do xs[#xs + 1], ys[#ys + 1] = x, y end
    end
    local a, b = tycho.tensor(xs), tycho.tensor(ys)
    local power, angle, fmod = a:pow(b):cpu(), tycho.atan2(a, b):cpu(), a:fmod(b):cpu()
    a, b = a:cpu():double(), b:cpu():double()
    local function same(name, y, want, most)
      for i = 1, #xs do
        local got, truth = y[i], want(a[i], b[i])
        local scale = math.max(math.abs(truth), 1.2e-38)
        local near = math.abs(got - truth) <= most * scale or (truth ~= truth and got ~= got) or got == truth
        if math.abs(truth) > 3.4e38 then near = math.abs(got) > 3.4e38 and got * truth > 0 end
        if not near or (got == 0 and truth == 0 and 1 / got ~= 1 / truth) then
          error(("%s(%.9g, %.9g) is %.9g, not %.9g"):format(name, a[i], b[i], got, truth))
        end
      end
    end
    same("pow", power, function(x, y) return x ^ y end, 2e-7)
    same("atan2", angle, math.atan2, 2e-7)
    same("fmod", fmod, math.fmod, 0)
  end)

  it("have exact rests of division, whatever the quotient", function()
    for _, range in ipairs {{-3, 3}, {-10, 20}, {-60, 60}} do
      local a, b = operands(unpack(range)), operands(unpack(range)):flip(1)
      local rest, floor = helper.on_device(a):fmod(helper.on_device(b)):cpu(), (helper.on_device(a) % helper.on_device(b)):cpu()
      for i = 1, a.shape[1], 7 do
        local x, y, got, mod = a[i], b[i], rest[i], floor[i]
        local truth = math.fmod(x, y)
        assert(got == truth or (got ~= got and truth ~= truth), ("fmod(%.9g, %.9g) is %.9g, not %.9g"):format(x, y, got, truth))
        if truth ~= 0 and (truth < 0) ~= (y < 0) then truth = tycho.tensor({truth}, {device = "cpu"}):add(y)[1] end
        assert(mod == truth or (mod ~= mod and truth ~= truth), ("%.9g %% %.9g is %.9g, not %.9g"):format(x, y, mod, truth))
      end
    end
  end)

  it("give whole results where they are whole", function()
    for k = -149, 127 do
      assert.equal(k, tycho.tensor({2 ^ k}):log2():item())
      assert.equal(2 ^ k, tycho.tensor({k}, {dtype = "float32"}):exp2():item())
    end
    for k = 0, 10 do assert.equal(k, tycho.tensor({10 ^ k}):log10():item()) end
    local base = tycho.range(1, 1000, {dtype = "float32"})
    for k = 0, 7 do
      local want = base:cpu():double():pow(k)      -- a device's own pow of doubles isn't exact
      local exact = want:lt(2 ^ 24)
      assert.is_true(base:pow(k):cpu():double():eq(want):logical_or(exact:logical_not()):all():item())
    end
  end)
end)

describe("float64 functions", function()
  local ffi = require "ffi"
  local most = {exp = 1, exp2 = 1, expm1 = 1.5, log = 1, log1p = 1.5, tanh = 3, log2 = 1, log10 = 2, erf = 1, sin = 1, cos = 1, tan = 2,
    atan = 1}                                              -- near 1 it is libm's log10 that is 2 off
  for name in pairs(most) do ffi.cdef(("double %s(double);"):format(name)) end
  local edges = {0, 1 / (-1 / 0), 5e-324, -5e-324, 2.2250738585072014e-308, 1e-310, -1e-310, 1, -1, 0.5, -0.5, 2, -2,
    1 - 2 ^ -53, 1 + 2 ^ -52, 709.782712893384, 709.7827128933841, -708.4, -745.1, -745.14,
    -746, 1023.9999, 1024, -1022, -1074, -1075, -1076, 19, 20, -37, -40, 499, 501, 2 ^ 53, 1.7e308, -1.7e308, INF, -INF, NAN}

  for name, units in pairs(most) do
    it("have " .. name .. " within " .. units .. " units of libm's last place", function()
      tycho.manual_seed(8)
      local o = {dtype = "float64", device = "cpu"}
      local n, parts = 5000, {tycho.tensor(edges, o)}
      for _, scale in ipairs {0.4, 3, 40, 700, 1100} do parts[#parts + 1] = (tycho.rand(n, o) * 2 - 1) * scale end
      for _, range in ipairs {{-1074, 1023}, {-60, 4}} do
        parts[#parts + 1] = (tycho.rand(n, o) * (range[2] - range[1]) + range[1]):exp2() * (tycho.rand(n, o) - 0.3):sign()
      end
      parts[#parts + 1] = 1 + (tycho.rand(n, o) - 0.5) * 2 ^ -20
      local x = tycho.cat(parts, 1)
      local on = helper.on_device(x)
      local y = on[name](on):cpu()
      local px, py = x:data(), y:data()
      for i = 0, #x - 1 do
        local got, truth = py[i], ffi.C[name](px[i])
        local _, e = math.frexp(truth)
        local near = math.abs(got - truth) <= units * 2 ^ math.max(e - 53, -1074)
        if not (near or got == truth or (got ~= got and truth ~= truth)) or (truth == 0 and got == 0 and 1 / got ~= 1 / truth) then
          error(("%s(%.17g) is %.17g, not %.17g"):format(name, px[i], got, truth))
        end
      end
    end)
  end
end)

-- The truth is mpmath's, of 40 digits.
describe("float64 functions", function()
  it("keep their digits near 0, and near poles", function()
    local rows = {
      erfinv = {{1e-300, 8.86226925452757999e-301}, {1e-20, 8.8622692545275801e-21}, {1e-6, 8.86226925452989987e-7},
        {-0.3, -0.272462714726754345}, {0.5, 0.476936276204469873}, {0.7, 0.732869077959216785},
        {1 - 1e-9, 4.32000538810536205}, {1 - 2^-53, 5.86358474875516793}, {2^-53 - 1, -5.86358474875516793}},
      digamma = {{-2.999999, -999998.743739547556}, {-1.0000001, 10000000.4169453988}, {-0.5, 0.0364899739785765206}}}
    for name, of in pairs(rows) do
      for _, row in ipairs(of) do
        local y = tycho[name](helper.on_device(tycho.tensor({row[1]}, {dtype = "float64"})))[1]
        assert.is_true(math.abs(y / row[2] - 1) < 4e-15 + (row[1] == -0.5 and 1e-13 or 0), ("%s(%g) is %.17g"):format(name, row[1], y))
      end
    end
    assert.equal(-math.huge, 1 / tycho.erfinv(helper.on_device(tycho.tensor({-0.0}, {dtype = "float64"})))[1])
    local slope = tycho.polygamma(1, tycho.tensor({-1.0000001}, {dtype = "float64"}))[1]
    assert.is_true(math.abs(slope / 99999999883229.2097 - 1) < 1e-14)
  end)

  it("quotients and remainders of whole numbers are those of C's division, of any size and sign", function()
    local ffi = require "ffi"
    local least, edges = ffi.cast("int64_t", 2) ^ 63, {0, 1, -1, 2, -2, 7, -7, 2 ^ 31, 2 ^ 32 - 1, -2 ^ 32 + 1, 2 ^ 32, -2 ^ 32, 2 ^ 53}
    local draw, pairs_of = helper.drawer(7), {}
    for i, v in ipairs(edges) do edges[i] = ffi.cast("int64_t", v) end
    edges[#edges + 1], edges[#edges + 2], edges[#edges + 3] = least, least + 1, -(least + 1)
    for _ = 1, 30 do
      local sign = draw(2) == 1 and -1LL or 1LL
      edges[#edges + 1] = sign * ffi.cast("int64_t", draw(2 ^ draw(31))) * ffi.cast("int64_t", draw(2 ^ draw(31)))
    end
    for _, a in ipairs(edges) do for _, b in ipairs(edges) do pairs_of[#pairs_of + 1] = {a, b} end end
    local n = #pairs_of
    local x, y = tycho.zeros(n, {dtype = "int64", device = "cpu"}), tycho.zeros(n, {dtype = "int64", device = "cpu"})
    local px, py = x:data(), y:data()
    for i, p in ipairs(pairs_of) do px[i - 1], py[i - 1] = p[1], p[2] end
    x, y = helper.on_device(x), helper.on_device(y)
    local results = {x:floor_divide(y), x:remainder(y), x:fmod(y)}
    local got = {}
    for i, r in ipairs(results) do
      results[i] = r:cpu()
      got[i] = results[i]:data()
    end
    for i, p in ipairs(pairs_of) do
      local a, b = p[1], p[2]
      local q, m = 0LL, 0LL
      if b == -1 then q = -a elseif b ~= 0 then q, m = a / b, a % b end
      local differ = m ~= 0 and (a < 0) ~= (b < 0)
      local want = {differ and q - 1 or q, differ and m + b or m, m}
      for k = 1, 3 do assert.is_true(got[k][i - 1] == want[k], ("%s by %s: %d"):format(tostring(a), tostring(b), k)) end
    end
  end)
end)
