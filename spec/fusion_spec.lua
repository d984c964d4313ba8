-- Fused kernels: the bits of single ops, whatever the shapes, strides, dtypes and order of what is fused.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local exact = helper.exact

local pointwise = {}
for _, op in ipairs(core.op_table()) do
  if op.class == "pointwise" and op.domain ~= "internal" and not op.signature:find("number,") then
    local arity = 0
    for word in (op.signature .. ","):gsub("%*.*", ""):gmatch("([^,]+),") do
      arity = arity + ((not word:find(":") or word:find(":operand")) and 1 or 0)
    end
    pointwise[#pointwise + 1] = {name = op.name, arity = arity}
  end
end
table.sort(pointwise, function(a, b) return a.name < b.name end)

local drawer = helper.drawer

local shapes = {{7}, {5, 6}, {1, 6}, {5, 1}, {2, 3, 5}, {3, 1}, {1}, {}, {600}, {3, 700}, {1, 700}, {2, 3, 4, 5}}
local dtypes = {"float32", "float32", "float32", "float16", "bfloat16", "float64", "int64", "int32", "bool", "uint8"}

local function laid_out(t, how)
  if how == 1 and t:dim() >= 2 then return t:transpose(1, 2):contiguous():transpose(1, 2) end
  if how == 2 and t:dim() >= 1 then return tycho.cat({t, t}, -1):narrow(-1, 1, t:size(-1)) end
  return t
end

-- Inputs of one base shape and what broadcasts to it, in all dtypes and layouts; then a chain of random ops over them.
local function program(seed, floats)
  local draw = drawer(seed)
  local shape = shapes[draw(#shapes)]
  local function input()
    local s = {}
    for i, n in ipairs(shape) do s[i] = draw(4) == 1 and 1 or n end
    while #s > 0 and draw(5) == 1 do table.remove(s, 1) end
    local d = floats and dtypes[draw(6)] or dtypes[draw(#dtypes)]
    return laid_out((tycho.rand(s, {dtype = "float64"}) * 2.5 + 0.1):to(d), draw(4))
  end
  local inputs = {(laid_out(tycho.rand(shape) + 0.2, draw(4)))}
  for i = 2, 2 + draw(3) do inputs[i] = input() end
  local lines = {}
  for i = 1, 4 + draw(10) do lines[i] = {draw(12), draw(1000), draw(1000), draw(1000), draw(1000)} end
  return function(...)
    local v = {...}
    local n = #v
    local function pick(k) return v[(k - 1) % #v + 1] end
    for _, l in ipairs(lines) do
      local op, a, b, c = pointwise[l[2] % #pointwise + 1], pick(l[3]), pick(l[4]), pick(l[5])
      local ok, z
      if l[1] <= 8 then
        local second = l[1] == 1 and l[4] % 5 - 2 or l[1] == 2 and l[4] % 3 + 0.5 or b
        ok, z = pcall(core.ops[op.name], unpack({a, second, c}, 1, op.arity))
      elseif l[1] == 9 then ok, z = pcall(tycho.where, a:gt(0.5), b, c)
      elseif l[1] == 10 then ok, z = a.dtype ~= dtypes[l[4] % #dtypes + 1], a:to(dtypes[l[4] % #dtypes + 1])
      elseif l[1] == 11 then ok, z = true, a:clone()
      elseif #v > n then                                  -- in place, on what was made here
        local t = v[n + 1 + l[3] % (#v - n)]
        if not pcall(t.add_, t, b) then pcall(t.mul_, t, 0.5) end
      end
      if ok and z then v[#v + 1] = z end
    end
    local out = {}
    for i = math.max(n + 1, #v - 2), #v do out[#out + 1] = v[i] end
    return unpack(out)
  end, inputs
end

describe("fusion", function()
  it("gives the bits of single ops, in 1,000 random programs of shapes, strides, broadcasts and dtypes", function()
    local fused = 0
    for seed = 1, helper.device == "cpu" and 1000 or 40 do
      tycho.manual_seed(seed)
      local fn, inputs = program(seed, seed % 2 == 0)
      local f = tycho.compile(fn)
      local want = {fn(unpack(inputs))}
      for _ = 1, 3 do
        local got = {f(unpack(inputs))}
        assert.equal(#want, #got)
        for i = 1, #want do exact(got[i], want[i], ("program %d, result %d"):format(seed, i)) end
      end
      local report = f:report()[1]
      assert.is_nil(report.why, "program " .. seed)
      for _, k in ipairs(report.kernels or {}) do fused = fused + (k.fused and #k.ops or 0) end
    end
    assert.is_true(fused > (helper.device == "cpu" and 3000 or 100), "only " .. fused .. " ops were fused")
  end)

  local function kernels(f)
    local out = {}
    for _, k in ipairs(f:report()[1].kernels) do
      out[#out + 1] = table.concat(k.ops, " ") .. (k.fused and (" %d>%d"):format(k.reads, k.writes) or "")
    end
    return table.concat(out, ", ")
  end

  local F = tycho.nn.functional
  local function near(got, want, message)
    assert.equal(want.dtype, got.dtype, message)
    assert.same(want.shape, got.shape, message)
    if not want.dtype:find("float") then return exact(got, want, message) end
    local a, b = want:double():cpu(), got:double():cpu()
    local tolerance = ({float16 = 2e-3, bfloat16 = 1.6e-2, float64 = 1e-12})[want.dtype] or 1e-5
    -- what is near 0 is a difference
    local scale = a:abs() + (a:numel() > 0 and a:isfinite():all():item() and a:abs():amax():item() * 0.05 or 0) + 1e-30
    local off = (a - b):abs() / scale
    off = off:masked_fill(a:eq(b):logical_or(a:isnan():logical_and(b:isnan())), 0)
    assert.is_true(a:numel() == 0 or off:amax():item() <= tolerance,
      ("%s: off by %g"):format(message or "", a:numel() == 0 and 0 or off:amax():item()))
  end

  it("makes one kernel of a chain, which reads and writes only what it must", function()
    local x, b, y = tycho.randn(32, 8), tycho.randn(8), tycho.randn(32, 8)
    local function fn() return ((x + b):tanh() * y):sigmoid() end
    local f = tycho.compile(fn)
    for _ = 1, 3 do exact(f(), fn()) end
    assert.equal("add tanh mul sigmoid 3>1", kernels(f))
    local plain = tycho.compile(fn, {fusion = false})
    for _ = 1, 3 do exact(plain(), fn()) end
    assert.equal("add, tanh, mul, sigmoid", kernels(plain))
    assert.error_matches(function() tycho.compile(fn, {fusion = 1}) end, "fusion must be true or false")
  end)

  it("goes around products, and takes in what needn't wait for them", function()
    local x, w = tycho.randn(8, 8), tycho.randn(8, 8)
    local function fn()
      local a = x * 2
      local b = a:matmul(w)
      local c = a:relu() + 1
      return (b + c):exp()
    end
    local f = tycho.compile(fn)
    for _ = 1, 3 do exact(f(), fn()) end
    assert.equal("mul relu add 1>1, matmul, relu add add exp 2>1", kernels(f))
  end)

  it("computes again what backward needs of forward, rather than store it", function()
    local kept
    local w, x, v = tycho.nn.Parameter(tycho.randn(16, 16)), tycho.randn(16, 16), tycho.randn(16, 16)
    local function fn()
      w.grad = nil
      local h = x:matmul(w)
      local y = (h * 2):relu()
      local z = y + v
      local loss = (z:matmul(v) * 0.5):sum()
      loss:backward()
      return loss:detach(), w.grad, kept and tycho.keep(y) or nil
    end
    local f = tycho.compile(fn)
    for i = 1, 5 do
      kept = i > 3
      x:add_(0.1)
      local got, want = {f()}, {fn()}
      for k = 1, #want do exact(got[k], want[k], ("call %d, result %d"):format(i, k)) end
      if i == 3 then assert.is_truthy(kernels(f):find("mul relu add 2>1", 1, true), kernels(f)) end
    end
    assert.is_truthy(kernels(f):find("mul relu add 2>2", 1, true), kernels(f))
  end)

  it("stores what someone keeps of it, from the call on that keeps it", function()
    local x, kept, keep = tycho.randn(600), {}, false
    local function fn()
      local a = x:exp()
      local b = a + 1
      local c = b * 2
      if keep then kept[#kept + 1] = tycho.keep(b) end
      return c:sqrt()
    end
    for _, guard in ipairs {"full", "inputs"} do
      keep = false
      local f = tycho.compile(fn, {guard = guard})
      for _ = 1, 3 do exact(f(), (x:exp() + 1):mul(2):sqrt()) end
      assert.equal("exp add mul sqrt 1>1", kernels(f))
      keep, kept = guard == "full", {}
      local want = {}
      for i = 1, 3 do
        x:add_(0.25)
        want[i] = x:exp() + 1
        exact(f(), want[i]:mul(2):sqrt(), "call " .. i)
        if keep then exact(kept[i], want[i], "kept " .. i) end
      end
      if keep then
        exact(kept[1], want[1])
        assert.equal("exp add mul sqrt 1>2", kernels(f))
      end
    end
  end)

  it("keeps the order of changes in place", function()
    local x, s = tycho.randn(6, 6), tycho.zeros(6, 6)
    local function fn()
      local a = x * 1
      local before = a + 0
      a:add_(1):mul_(3)
      local t = a:t() + a
      a:sub_(before)
      s:add_(a):copy_(s * 2 + t)
      return a:relu(), t
    end
    local state = s:clone()
    local f = tycho.compile(fn)
    local got = {}
    for i = 1, 4 do got[i] = {f()} end
    local final = s:clone()
    s:copy_(state)
    for i = 1, 4 do
      local a, t = fn()
      exact(got[i][1], a, "call " .. i)
      exact(got[i][2], t, "call " .. i)
    end
    exact(final, s)
  end)

  -- Rows: what reduces the last dims, and what is one value a row.
  local rowwise = {
    function(a) return a:softmax(-1) end,
    function(a) return a:log_softmax(-1) end,
    function(a) return F.layer_norm(a, {a:size(-1)}) end,
    function(a, w) return F.layer_norm(a, {a:size(-1)}, w, w + 0.5) end,
    function(a, w) return F.rms_norm(a, {a:size(-1)}, w) end,
    function(a) return a - a:mean({-1}, {keepdim = true}) end,
    function(a) return a / (a:abs():sum({-1}, {keepdim = true}) + 1) end,
    function(a) return a * a:amax({-1}):unsqueeze(-1) end,
    function(a) return a + a:square():sum():mul(1e-3):sqrt() end,
    function(a) return tycho.where(a:gt(a:mean()), a, a * 0.5) end,
    function(a) return F.dropout(a, 0.4) end,
    function(a) return a * a:amin({-1}, {keepdim = true}):tanh() end,
  }
  local function row_program(seed)
    local draw = drawer(seed)
    local shape = ({{6, 40}, {3, 5, 33}, {2, 700}, {8, 8}, {40}, {1, 64}, {4, 2, 3, 32}})[draw(7)]
    local dtype = ({"float32", "float32", "float64", "float16", "bfloat16"})[draw(5)]
    local x, w = laid_out(tycho.randn(shape):to(dtype), draw(4)), (tycho.rand(shape[#shape]) + 0.5):to(dtype)
    local lines = {}
    for i = 1, 2 + draw(5) do lines[i] = {draw(#rowwise + 5), draw(100), draw(100)} end
    return function(a)
      local v = {a}
      for _, l in ipairs(lines) do
        local b, c = v[(l[2] - 1) % #v + 1], v[(l[3] - 1) % #v + 1]
        local z
        if rowwise[l[1]] then z = rowwise[l[1]](b, w)
        else
          z = l[1] % 5 == 0 and b + c or l[1] % 5 == 1 and b * w or l[1] % 5 == 2 and b:sigmoid() or
            l[1] % 5 == 3 and (b * 1):mul_(0.5):sub_(c) or b:gelu()
        end
        v[#v + 1] = z
      end
      return v[#v], v[#v]:abs():sum(), v[math.max(#v - 1, 2)]:square():mean({-1})
    end, x
  end

  it("takes rows in: sums, softmax, normalisation, dropout, in 500 random programs", function()
    local fused = 0
    for seed = 1, helper.device == "cpu" and 500 or 40 do
      tycho.manual_seed(seed)
      local fn, x = row_program(seed)
      local f = tycho.compile(fn)
      for call = 1, 3 do
        tycho.manual_seed(seed + call)
        local want = {fn(x)}
        local after = {tycho.get_rng_state()}
        tycho.manual_seed(seed + call)
        local got = {f(x)}
        assert.same(after, {tycho.get_rng_state()})
        for i = 1, #want do exact(got[i], want[i], ("program %d, result %d"):format(seed, i)) end
      end
      local report = f:report()[1]
      assert.is_true(report.compiled)
      for _, k in ipairs(report.kernels) do fused = fused + (k.fused and #k.ops or 0) end
    end
    assert.is_true(fused > (helper.device == "cpu" and 2000 or 100), "only " .. fused .. " ops were fused")
  end)

  it("makes one kernel of gelu, bias, dropout, add and layer_norm", function()
    local x, b, r, w = tycho.randn(16, 64), tycho.randn(64), tycho.randn(16, 64), tycho.rand(64)
    local f = tycho.compile(function() return F.layer_norm(F.dropout(F.gelu(x + b), 0.1) + r, {64}, w, b) end)
    for _ = 1, 3 do tycho.no_grad(f) end
    assert.equal("add gelu_erf dropout_mask add layer_norm_stats 4>1", kernels(f))
  end)

  -- Each of these once went wrong.
  local function agrees(fn, state, message)
    local f = tycho.compile(fn)
    for call = 1, 4 do
      local before = {}
      for i, t in ipairs(state or {}) do before[i] = t:clone() end
      tycho.manual_seed(call)
      local want, after = {fn()}, {}
      local rng = {tycho.get_rng_state()}
      for i, t in ipairs(state or {}) do after[i] = t:clone() t:copy_(before[i]) end
      tycho.manual_seed(call)
      local got = {f()}
      assert.same(rng, {tycho.get_rng_state()}, message)
      for i = 1, #want do exact(got[i], want[i], ("%s, call %d, result %d"):format(message, call, i)) end
      for i, t in ipairs(state or {}) do exact(t, after[i], ("%s, call %d, state %d"):format(message, call, i)) end
    end
    assert.is_true(f:report()[1].compiled, message)
    return f
  end

  it("reads one memory in several ways: as rows, as columns, by fewer dims", function()
    local v, x = tycho.randn(40), tycho.randn(40, 40)
    agrees(function() return (v:unsqueeze(-1) - v) * 1 end, nil, "outer difference")
    agrees(function() return x * v + v:unsqueeze(-1) end, nil, "both ways")
    agrees(function() local s = x:sum({-1}) return x * s + s:unsqueeze(-1) * x end, nil, "a sum, both ways")
    local y, t = tycho.randn(50, 5, 33), tycho.randn(5, 1)
    agrees(function() return y:sum({-1}, {keepdim = true}) * t end, nil, "fewer dims")
    agrees(function()
      local z = x:sum({-1})
      local u = z + v:tanh()
      local w = x * v
      v:add_(z * 0.01)
      return w, u
    end, {v}, "read by elements, written by rows")
  end)

  it("draws dropout's mask of values a row as of any others", function()
    local x, one = tycho.randn(40, 33), tycho.randn(1)
    agrees(function() return F.dropout(x:sum({-1}), 0.5) + 1 end, nil, "sums")
    agrees(function() local s = x:mul(2):amax({-1}, {keepdim = true}) local d = F.dropout(s, 0.5) return x + d, d end, nil, "kept dims")
    agrees(function() return F.dropout(x:mean(), 0.5) end, nil, "one")
    agrees(function() F.dropout(one * 2, 0.5) return x:sum() end, nil, "not used")
    agrees(function() return F.dropout(F.dropout(x * 2, 0.5) + 1, 0.25) end, nil, "twice")
  end)

  it("gives the bits of single ops also with weights of other dtypes, one channel, what repeats", function()
    for _, pair in ipairs {{"bfloat16", "float32"}, {"float16", "float32"}, {"bfloat16", "float16"}} do
      local x, w, b = tycho.randn(6, 64), tycho.rand(64):to(pair[1]), tycho.randn(64):to(pair[2])
      agrees(function() return F.layer_norm(x, {64}, w, b) * 1 end, nil, "layer_norm, " .. table.concat(pair, ", "))
    end
    local x, r = tycho.randn(16, 1, 28, 28):transpose(-1, -2):contiguous():transpose(-1, -2), tycho.randn(16, 1, 28, 28)
    agrees(function() return F.batch_norm(x, nil, nil, nil, nil, {training = true}) + r end, nil, "one channel")
    local row = tycho.randn(1, 40)
    for _, fn in ipairs {function(a) return a:sum({1}) end, function(a) return (a * 2):sum({2}) + a:sum({2}) end,
        function(a) return a:is_contiguous() and a + 1 or a - 1 end} do
      local f = tycho.compile(fn)
      for k = 1, 4 do
        row:add_(0.1)
        exact(f(row:expand(700, 40)), fn(row:expand(700, 40)), "repeated, call " .. k)
      end
    end
  end)

  it("gives the bits of single ops where rows are short, and parts of longer ones are read and written", function()
    local draw = drawer(9)
    for case = 1, helper.device == "cpu" and 100 or 20 do
      local a, b, c, dtype = draw(40), draw(9), draw(44) + 1, dtypes[draw(6)]
      local x = tycho.randn(a, b + 2, c + 3):to(dtype)[{ {}, {2, b + 1}, {2, c + 1} }]
      local y, z, across = tycho.randn(c):to(dtype), tycho.randn(a, 1, 1):to(dtype), tycho.randn(a, c, b):transpose(2, 3)
      local function fn(out)
        local r = (x * y + z):tanh() - across
        if case % 2 == 0 then r = F.dropout(r, 0.3) end
        local s = (r * y):sigmoid()
        out[{ {}, {2, b + 1}, {1, c} }] = (r + s):to(dtype)
        return s
      end
      local f = tycho.compile(fn)
      for i = 1, 3 do
        local want, got = tycho.zeros(a, b + 2, c + 3):to(dtype), tycho.zeros(a, b + 2, c + 3):to(dtype)
        tycho.manual_seed(i)
        local s = fn(want)
        tycho.manual_seed(i)
        exact(f(got), s, ("case %d"):format(case))
        exact(got, want, ("case %d, what was written"):format(case))
      end
    end
  end)

  it("counts dropout's elements in logical order, whatever lies around it", function()
    local nn = tycho.nn
    local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3))
    local x = tycho.randn(5, 1, 6, 6)
    local f = agrees(function()
      net:zero_grad()
      local y = net(x)
      y:square():sum():backward()
      return y:detach(), net[1].weight.grad
    end, nil, "pictures' channels last before it")
    assert.truthy(kernels(f):find("batch_norm_apply relu clone dropout_mask", 1, true) or helper.device ~= "cpu", kernels(f))
    -- short, even and long runs beside its transpose
    for _, size in ipairs {{3, 30}, {2, 512}, {300, 3}, {40, 41}, helper.simulated and {70, 90} or {1100, 1030}} do
      local y = tycho.randn(unpack(size))
      agrees(function() return F.dropout(y, 0.3), y:t():contiguous() end, nil, ("beside a transposed copy of %dx%d"):format(unpack(size)))
    end
  end)

  it("sees that an argument is in memory that it knows as another tensor's", function()
    for _, dtype in ipairs {"float32", "float16"} do
      for _, guard in ipairs {"full", "inputs"} do
        local w = tycho.randn(8, 8):to(dtype)
        local function fn(x) local a = w * 2 x:add_(1) local b = w:t() * 3 return a + b:t() end
        local f = tycho.compile(fn, {guard = guard})
        for _ = 1, 3 do f(tycho.randn(8, 8):to(dtype)) end
        local was = w:clone()
        local want = fn(w)
        w:copy_(was)
        exact(f(w), want, guard)
        local other = tycho.randn(8, 8):to(dtype)
        exact(f(other:clone()), fn(other), guard)
        assert.is_true(f:report()[1].compiled)
      end
    end
  end)

  it("fuses also what is recorded anew", function()
    local more, x = false, tycho.randn(8)
    local f = tycho.compile(function() local a = x * 2 + 1 if more then a = a:tanh() end return a:exp() end)
    for _ = 1, 3 do f() end
    more = true
    for _ = 1, 3 do f() end
    assert.equal("mul add tanh exp 1>1", kernels(f))
  end)

  it("gives a kernel up that is too large for all that is held", function()
    local leaf = tycho.randn(64, 64):requires_grad_(true)
    local d, g, hold, held = leaf:detach(), tycho.ones(64, 64), false, {}
    local f = tycho.compile(function()
      leaf.grad = nil
      local zs = {}
      for i = 1, 9 do zs[i] = d * i end
      local y1 = leaf * 2
      local y2 = y1:tanh()
      local y3 = y2:sigmoid()
      if hold then
        for i = 1, 9 do held[i] = tycho.keep(zs[i]) end
        held[10], held[11], held[12] = tycho.keep(y1:detach()), tycho.keep(y2:detach()), tycho.keep(y3:detach())
      end
      y3:backward(g)
      return 1
    end)
    local function check()
      near(leaf.grad, (1 - (d * 2):tanh():square()) * 2 * (d * 2):tanh():sigmoid() * (1 - (d * 2):tanh():sigmoid()))
      for i = 1, #held do
        near(held[i], i < 10 and d * i or i == 10 and d * 2 or i == 11 and (d * 2):tanh() or (d * 2):tanh():sigmoid(),
          "held " .. i)
      end
    end
    for _ = 1, 3 do f() check() end
    hold = true
    for _ = 1, 4 do f() check() end
  end)

  it("loses nothing where memory ends while it plans, or makes a kernel anew", function()
    local x = tycho.randn(600)
    for n = 1, 60 do
      local hold, held = false, nil
      local f = tycho.compile(function()
        local a = x:exp()
        local b = a + 1
        if hold then held = tycho.keep(b) end
        return (b * 2):sqrt()
      end)
      f()
      if n % 2 == 0 then
        core.fail_alloc(n / 2, 1)
        pcall(f)
        core.fail_alloc(0)
      end
      f() f()
      hold = true
      if n % 2 == 1 then core.fail_alloc((n + 1) / 2, 1) end
      pcall(f)
      core.fail_alloc(0)
      for _ = 1, 3 do
        exact(f(), ((x:exp() + 1) * 2):sqrt(), "allocation " .. n)
        exact(held, x:exp() + 1, "held, allocation " .. n)
      end
    end
  end)

  it("writes numbers as they are: -0, infinities, NaN, the largest wholes", function()
    local x, h, i = tycho.tensor {-1, 0, 2, 0 / 0}, tycho.tensor({-1, 0, 2, 5}, {dtype = "float16"}),
      tycho.tensor({-3, 0, 3, 5}, {dtype = "int64"})
    local function bits(t) return (1 / t:float()):cpu():totable() end
    for k, fn in ipairs {
      function() return (x * 1):clamp(-1e-320 * 1e-10, 4) end, function() return (h * 1):maximum(-1e-30) end,
      function() return (x + 1):masked_fill(x:gt(0), 1 / 0) - 1 end, function() return (x + 1):masked_fill(x:gt(0), 0 / 0) * 2 end,
      function() local y = i + 1 return y:masked_fill(y:gt(0), 9e18) end,
      function() local y = i + 1 return y:masked_fill(y:gt(0), -2 ^ 63) end,
      function() return (x * 1e-42) + 1.17549435e-38 end,
    } do
      local f = tycho.compile(fn)
      for _ = 1, 3 do
        local got, want = f(), fn()
        exact(got, want, "function " .. k)
        for j, b in ipairs(bits(want)) do assert.is_true(b == bits(got)[j] or b ~= b, "function " .. k) end
      end
    end
  end)

  it("trains under autocast as single ops do; on a GPU the casts of parameters are one launch, and so are those of gradients", function()
    local function trained(compile)
      tycho.manual_seed(3)
      local nn = tycho.nn
      local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16),
        nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
      local opt = tycho.optim.SGD(net:parameters(), {lr = 0.05})
      local x, y, out = tycho.randn(6, 8, 1, 8, 8), tycho.randint(1, 4, {6, 8}), {}
      local function step(a, b)
        opt:zero_grad()
        local loss = F.cross_entropy(tycho.amp.autocast({dtype = "bfloat16"}, net, a), b)
        loss:backward()
        opt:step()
        return loss:detach()
      end
      local f = compile and tycho.compile(step) or step
      for i = 1, 6 do out[i] = f(x[i], y[i]):clone() end
      for _, b in ipairs(net:buffers()) do out[#out + 1] = b end
      return out, compile and f:report()[1]
    end
    local want = trained(false)
    local got, report = trained(true)
    for i = 1, #want do
      exact(got[i], want[i], "value " .. i)
    end
    if helper.device == "cpu" then return end
    local casts = 0
    for _, k in ipairs(report.kernels) do
      if k.fused and table.concat(k.ops, " "):match("^cast cast[cast ]*$") then casts = casts + #k.ops end
    end
    assert.is_true(casts >= 8, casts .. " casts together")
  end)

  it("has batch_norm's second pass as an op, for where nothing is fused", function()
    for _, dtype in ipairs {"float32", "bfloat16", "float64"} do
      local x, mean, rstd, w, b = tycho.randn(3, 4, 2, 5):to(dtype), tycho.randn(4), tycho.rand(4) + 0.5, tycho.randn(4), tycho.randn(4)
      local function at(t) return t:reshape(4, 1, 1) end
      local y = (x:double() - at(mean):double()) * at(rstd * 1):double()
      near(core.ops.batch_norm_apply(x, mean, rstd), y:to(dtype), dtype)
      near(core.ops.batch_norm_apply(x, mean, rstd, w, b), (y * at(w):double() + at(b):double()):to(dtype), dtype)
      near(core.ops.batch_norm_apply(x, mean, rstd, nil, b), (y + at(b):double()):to(dtype), dtype)
    end
    assert.error_matches(function() core.ops.batch_norm_apply(tycho.ones(2, 3), tycho.ones(4), tycho.ones(3)) end,
      "mean has shape 4; it must have a value for each channel")
  end)

  it("keeps batch_norm's channels, whatever the shapes around it", function()
    for _, shape in ipairs {{1, 5}, {1, 5, 1, 1}, {1, 1}, {4, 1, 6}, {3, 2, 4}} do
      local x, rm, rv, w = tycho.randn(shape), tycho.randn(shape[2]), tycho.rand(shape[2]) + 0.5, tycho.randn(shape[2])
      local n = x:numel()
      for _, training in ipairs {false, true} do
        if not training or shape[1] > 1 then
          local function bn(a, b) return F.batch_norm(x, rm, rv, a, b, {training = training}) end
          agrees(function() return bn():relu() end, {rm, rv}, "alone")
          agrees(function() return bn(w * 2, w):relu() + 1 end, {rm, rv}, "weights made here")
          agrees(function() w:mul_(1.01) local y = bn(w, w):relu() w:add_(0.01) return y end, {rm, rv, w}, "weights changed")
          agrees(function() return bn():relu():reshape(-1, n > 6 and n / 2 or 1) + 1 end, {rm, rv}, "another shape")
          agrees(function() return bn(w, w):relu():reshape(n > 6 and 2 or 1, -1):softmax(-1) end, {rm, rv}, "rows")
          agrees(function() return bn(w, w):tanh():reshape(1, -1) + tycho.range(1, n) end, {rm, rv}, "one row")
        end
      end
    end
  end)

  it("takes relu's gradient before it is spread over what was pooled, to the bit", function()
    tycho.backends.cudnn.deterministic = true            -- its float64 convolutions add up in no fixed order otherwise
    finally(function() tycho.backends.cudnn.deterministic = false end)
    local function order(f)
      local names = {}
      for _, k in ipairs(f:report()[1].kernels) do names[#names + 1] = table.concat(k.ops, " ") end
      local all = table.concat(names, " ")
      return all:find("relu_backward", 1, true), all:find("max_pool2d_backward", 1, true)
    end
    local cases = {
      {exchanged = true, fn = function(x) return F.max_pool2d(x:relu(), 2) end},
      {exchanged = true, fn = function(x) return F.max_pool2d(x:relu(), 3, {stride = 2, padding = 1}) end},
      {exchanged = true, fn = function(x) return F.max_pool2d((x - 5):relu(), 2) end},             -- nothing above 0
      {exchanged = true, fn = function(x) return F.max_pool2d((x * x - x * x):relu(), 3, {stride = 1}) end},      -- all equal
      {exchanged = false, fn = function(x) local y = x:relu() return F.max_pool2d(y, 2):sum() + y:sum() end},
      {exchanged = false, fn = function(x) local y = x:relu() return F.max_pool2d(y * 1, 2) end},
      {exchanged = false, fn = function(x) local y, z = x:relu(), (x + 1):relu() return F.max_pool2d(y, 2) + F.max_pool2d(z * y, 2) end},
    }
    for i, case in ipairs(cases) do
      for _, dtype in ipairs {"float32", "float64"} do
        local w, x = tycho.randn(2, 3, 9, 8, {dtype = dtype, requires_grad = true}), tycho.randn(2, 3, 9, 8, {dtype = dtype})
        local conv = tycho.nn.Conv2d(3, 4, 3):to(dtype)
        local f = agrees(function()
          w.grad = nil
          conv:zero_grad()
          local y = case.fn(conv(x * w))
          local loss = (y * y):sum() + y:sum()
          loss:backward()
          return loss:detach(), w.grad, conv.weight.grad
        end, {x}, "case " .. i)
        local relu, pool = order(f)
        assert.equal(case.exchanged, relu < pool, "case " .. i)
      end
    end
  end)
end)
