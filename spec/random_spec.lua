-- Random numbers: reproducible, independent of threads and layout, with the right distribution.
local tycho = require "tycho"
local helper = require "spec.helper"

-- Philox 4x32-10 in plain Lua, from its paper: the oracle.
local bit = require "bit"
local function u32(x) return x % 2 ^ 32 end
local function mulhilo(a, b)
  local ah, al, bh, bl = math.floor(a / 65536), a % 65536, math.floor(b / 65536), b % 65536
  local ll, lh, hl = al * bl, al * bh, ah * bl
  local mid = math.floor(ll / 65536) + lh % 65536 + hl % 65536
  return u32(ah * bh + math.floor(lh / 65536) + math.floor(hl / 65536) + math.floor(mid / 65536)), u32((mid % 65536) * 65536 + ll % 65536)
end
local function xor(a, b, c) return u32(bit.bxor(a, b, c)) end
local function philox(seed, block)
  local c0, c1, c2, c3, k0, k1 = block, 0, 0, 0, seed, 0
  for _ = 1, 10 do
    local hb, lb = mulhilo(0xCD9E8D57, c2)
    local ha, la = mulhilo(0xD2511F53, c0)
    c0, c1, c2, c3 = xor(hb, c1, k0), lb, xor(ha, c3, k1), la
    k0, k1 = u32(k0 + 0x9E3779B9), u32(k1 + 0xBB67AE85)
  end
  return {c0, c1, c2, c3}
end

describe("random", function()
  it("is Philox of seed and position", function()
    tycho.manual_seed(42)
    local x = tycho.rand(10)
    for i = 1, 10 do
      local word = philox(42, math.floor((i - 1) / 4))[(i - 1) % 4 + 1]
      assert.equal(math.floor(word / 256) / 2 ^ 24, x[i])
    end
    local y = tycho.rand(1)      -- ten elements took three blocks
    assert.equal(math.floor(philox(42, 3)[1] / 256) / 2 ^ 24, y[1])
  end)

  it("doesn't depend on threads", function()
    local n = tycho.get_num_threads()
    tycho.manual_seed(1)
    local a = tycho.randn(300000)
    tycho.set_num_threads(1)
    tycho.manual_seed(1)
    local b = tycho.randn(300000)
    tycho.set_num_threads(n)
    assert.is_true(a:equal(b))
  end)

  it("doesn't depend on the memory order of what is filled", function()
    tycho.manual_seed(5)
    local a = tycho.zeros(6, 4):uniform_()
    tycho.manual_seed(5)
    local b = tycho.zeros(4, 6):t():uniform_()
    assert.is_true(a:equal(b))
  end)

  it("has the moments of its distributions", function()
    tycho.manual_seed(3)
    local n = tycho.randn(200000)
    assert.is_true(math.abs(n:mean():item()) < 0.01)
    assert.is_true(math.abs(n:var():item() - 1) < 0.02)
    assert.is_true(math.abs((n ^ 3):mean():item()) < 0.05)
    assert.is_true(math.abs((n ^ 4):mean():item() - 3) < 0.1)
    local u = tycho.rand(200000)
    assert.is_true(u:min():item() >= 0 and u:max():item() < 1)
    assert.is_true(math.abs(u:mean():item() - 0.5) < 0.005)
    assert.is_true(math.abs(u:var():item() - 1 / 12) < 0.002)
    local k = tycho.randint(1, 6, {60000})
    assert.equal("int64", k.dtype)
    for face = 1, 6 do assert.is_true(math.abs(k:eq(face):sum():item() - 10000) < 500) end
    local b = tycho.full({100000}, 0.3):bernoulli()
    assert.is_true(math.abs(b:mean():item() - 0.3) < 0.01)
    local d = tycho.ones(100000):uniform_(2, 4)
    assert.is_true(math.abs(d:mean():item() - 3) < 0.01)
    local v = tycho.ones(100000):normal_(5, 0.1)
    assert.is_true(math.abs(v:mean():item() - 5) < 0.01)
  end)

  it("permutes", function()
    tycho.manual_seed(2)
    local p = tycho.randperm(1000)
    local seen = {}
    for i = 1, 1000 do seen[p[i]] = true end
    for i = 1, 1000 do assert.is_true(seen[i]) end
    assert.is_false(p:equal(tycho.randperm(1000)))
    assert.equal(0, tycho.randperm(0):numel())
  end)

  it("drops out, and scales what is left", function()
    tycho.manual_seed(4)
    local x = tycho.ones(100000, {requires_grad = true})
    local y = tycho.dropout(x, 0.25)
    local kept = y:ne(0)
    assert.is_true(math.abs(kept:double():mean():item() - 0.75) < 0.01)
    helper.close(y[kept], tycho.full({kept:sum():item()}, 1 / 0.75))
    y:sum():backward()
    assert.is_true(x.grad:equal(y:detach()))
    assert.equal(0, tycho.dropout(tycho.ones(10), 1):sum():item())
    helper.fails("0..1", tycho.dropout, tycho.ones(2), 1.5)
  end)

  it("draws indices in proportion to their probabilities", function()
    tycho.manual_seed(6)
    local p = tycho.tensor({1, 0, 3, 4})
    local n = p:multinomial(40000, true):bincount({minlength = 4}):double() / 40000
    helper.close(n, tycho.tensor({0.125, 0, 0.375, 0.5}, {dtype = "float64"}), "frequencies", 0.01)
    for _ = 1, 3000 do
      local i = p:multinomial(3):totable()
      table.sort(i)
      assert.same({1, 3, 4}, i)
    end
    local rows = p:expand(6000, 4):multinomial(2)
    assert.equal("6000x2", tostring(rows.shape))
    assert.equal(0, rows:select(2, 1):eq(rows:select(2, 2)):sum():item())
    local first = rows:select(2, 1):bincount({minlength = 4}):double() / 6000
    helper.close(first, tycho.tensor({0.125, 0, 0.375, 0.5}, {dtype = "float64"}), "first draws", 0.03)
    helper.fails("without replacement", tycho.multinomial, p, 5)
    helper.fails("3 elements above 0", tycho.multinomial, p, 4)
    helper.fails("not negative", tycho.multinomial, tycho.tensor({1, -1}), 1)
    helper.fails("finite", tycho.multinomial, tycho.tensor({1, 1 / 0}), 1)
    assert.equal("int64", tycho.multinomial(tycho.tensor({0.5}, {dtype = "float16"}), 1).dtype)
  end)

  it("draws exponential numbers, and Gumbel's samples", function()
    tycho.manual_seed(7)
    local x = tycho.empty(100000):exponential_(2)
    assert.is_true(math.abs(x:mean():item() - 0.5) < 0.01)
    assert.is_true(math.abs(x:std():item() - 0.5) < 0.02)
    assert.is_true(x:min():item() > 0)
    local logits = tycho.tensor({0, math.log(3)}):expand(20000, 2)
    local y = tycho.gumbel_softmax(logits, 1, true)
    assert.is_true(y:sum(2):eq(1):all():item())
    assert.is_true(math.abs(y:mean(1)[2] - 0.75) < 0.02)
    local w = tycho.zeros(2, {requires_grad = true})
    tycho.gumbel_softmax(w, 1, true):select(1, 1):backward()
    assert.is_true(w.grad:abs():sum():item() > 0)
    local z = tycho.randint_like(tycho.zeros(1000, {dtype = "int32"}), 2, 4)
    assert.equal("int32", z.dtype)
    assert.same({2, 3, 4}, z:unique():totable())
  end)

  it("drops whole channels", function()
    tycho.manual_seed(9)
    local y = tycho.nn.functional.dropout2d(tycho.ones(50, 40, 3, 3), 0.5)
    local m = y:mean({3, 4})
    assert.same({0, 2}, m:unique():totable())
    assert.is_true(math.abs(m:mean():item() - 1) < 0.1)
    local z = tycho.nn.functional.alpha_dropout(tycho.randn(100000), 0.3, {training = true})
    assert.is_true(math.abs(z:mean():item()) < 0.02 and math.abs(z:std():item() - 1) < 0.02)
  end)

  it("takes seeds and ranges to task", function()
    helper.fails("whole number", tycho.manual_seed, 0.5)
    helper.fails("above high", tycho.randint, 5, 1, {2})
    helper.fails("floating", tycho.rand, 2, {dtype = "int64"})
  end)

  it("normal takes numbers or tensors for mean and deviation", function()
    tycho.manual_seed(9)
    local x = tycho.normal(3, 2, {40000})
    assert.is_true(math.abs(x:mean():item() - 3) < 0.05 and math.abs(x:std():item() - 2) < 0.05)
    local y = tycho.normal(tycho.range(1, 4):view(4, 1):expand(4, 20000), tycho.full({20000}, 0.5))
    assert.equal("4x20000", tostring(y.shape))
    helper.close(y:mean(2), tycho.range(1, 4), "means", 0.02)
    helper.close(y:std(2), tycho.full({4}, 0.5), "deviations", 0.02)
    assert.equal("float64", tycho.normal(tycho.zeros(2, {dtype = "float64"})).dtype)
    tycho.manual_seed(9)
    helper.close(tycho.normal(3, 2, {40000}), x, "the same seed", 0)
    helper.fails("a size is needed", function() tycho.normal(0, 1) end)
    helper.fails("size can't be given where", function() tycho.normal(tycho.zeros(2), 1, {2}) end)
    helper.fails("std) must not be negative, got -1", function() tycho.normal(0, -1, {2}) end)
    helper.fails("argument 1 must be a number or a tensor, got string", function() tycho.normal("x", 1, {2}) end)
  end)
end)

describe("a generator of one's own", function()
  it("gives the numbers of the device's own after the same seed, and leaves that one alone", function()
    local g = tycho.Generator(tycho.get_default_device()):manual_seed(5)
    tycho.manual_seed(5)
    local want, then_ = tycho.randn(7), tycho.rand(3)
    tycho.manual_seed(9)
    local after = tycho.randn(3)
    tycho.manual_seed(9)
    assert.is_true(want:equal(tycho.randn(7, {generator = g})))
    assert.is_true(then_:equal(tycho.rand(3, {generator = g})))
    assert.is_true(after:equal(tycho.randn(3)))
  end)

  it("goes with everything that draws", function()
    local function drawn(seed)
      local g = tycho.Generator(tycho.get_default_device()):manual_seed(seed)
      local o = {generator = g}
      return {tycho.rand({2, 3}, {generator = g, dtype = "float64"}), tycho.randint(1, 100, {5}, o), tycho.randperm(9, o),
        tycho.empty(4):uniform_(2, 3, o), tycho.empty(4):normal_(o), tycho.empty(4):exponential_(1, o), tycho.empty(3):log_normal_(1, 2, o),
        tycho.empty(3):cauchy_(0, 1, o), tycho.empty(3):geometric_(0.3, o), tycho.empty(3):random_(50, o),
        tycho.full({9}, 0.5):bernoulli(o),
        tycho.zeros(9):bernoulli_(0.5, o), tycho.ones(8):multinomial(3, o), tycho.rand_like(tycho.zeros(2, 2), o),
        tycho.nn.init.kaiming_uniform_(tycho.empty(3, 4), o), tycho.nn.init.trunc_normal_(tycho.empty(5), o),
        tycho.nn.init.orthogonal_(tycho.empty(3, 3), o)}
    end
    local a, b, c = drawn(1), drawn(1), drawn(2)
    for i = 1, #a do assert.is_true(a[i]:equal(b[i]), "case " .. i) end
    local other = 0
    for i = 1, #a do if not a[i]:equal(c[i]) then other = other + 1 end end
    assert.is_true(other >= #a - 3)
    assert.same("float64", a[1].dtype)
  end)

  it("has a state that can be kept", function()
    local g = tycho.Generator(tycho.get_default_device())
    assert.same(67280421310721, g:initial_seed())
    tycho.randn(5, {generator = g})
    local state, twin = g:get_state(), g:clone_state()
    local want = tycho.randn(5, {generator = g})
    assert.is_true(want:equal(tycho.randn(5, {generator = twin})))
    g:set_state(state)
    assert.is_true(want:equal(tycho.randn(5, {generator = g})))
    assert.is_true(want:equal(tycho.Generator(tycho.get_default_device()):set_state(state):draw(tycho.randn, 5)))
    assert.same(g:initial_seed(), g:seed() and g:manual_seed(67280421310721):initial_seed())
  end)

  it("decides splits and orders of loaders", function()
    local set = tycho.data.TensorDataset(tycho.range(1, 10, {device = "cpu"}))
    local function order(seed)
      local g = tycho.Generator("cpu"):manual_seed(seed)
      local out = {}
      for _, part in ipairs(tycho.data.random_split(set, {4, 6}, {generator = g})) do
        for i = 1, part:size() do out[#out + 1] = part:get(i) end
      end
      for x in tycho.data.DataLoader(set, {batch_size = 10, shuffle = true, generator = g}):iter() do out[#out + 1] = x:totable() end
      local loader = tycho.data.DataLoader(set, {batch_size = 10, sampler = tycho.data.RandomSampler(set, {generator = g})})
      for x in loader:iter() do out[#out + 1] = x:totable() end
      return out
    end
    assert.same(order(1), order(1))
    assert.is_not.same(order(1), order(2))
  end)

  it("goes on also where what draws errs", function()
    local g = tycho.Generator("cpu"):manual_seed(3)
    tycho.manual_seed(8)
    local want = tycho.get_rng_state()
    assert.has_error(function() g:draw(function() tycho.rand(2, {device = "cpu"}); error("stop", 0) end) end, "stop")
    assert.same(want, tycho.get_rng_state())
    assert.same({3, 1}, g:get_state())
  end)

  it("outlives a coroutine that never comes back from drawing", function()
    coroutine.wrap(function()
      tycho.Generator():manual_seed(3):draw(function()
        tycho.rand(3, {device = "cpu"})
        coroutine.yield()
      end)
    end)()
    collectgarbage()
    collectgarbage()
    tycho.rand(1000, {device = "cpu"})
    local g = tycho.Generator():manual_seed(7)
    local a = g:draw(tycho.rand, 4, {device = "cpu"})
    g:manual_seed(7)
    helper.close(a, g:draw(tycho.rand, 4, {device = "cpu"}), "again", 0)
  end)

  it("says what is wrong", function()
    local g = tycho.Generator("cpu")
    local set = tycho.data.TensorDataset(tycho.zeros(2))
    for _, case in ipairs {{"randn: generator must be a Generator, got 3", tycho.randn, 2, {generator = 3}},
        {"seed and generator exclude each other", tycho.data.DataLoader, set, {seed = 1, generator = g}},
        {"manual_seed: call it with a colon: generator:manual_seed(...)", g.manual_seed, 3},
        {"argument 1 (seed) must be a whole number from 0, got -1", g.manual_seed, g, -1}} do
      local ok, message = pcall(unpack(case, 2))
      assert.is_false(ok)
      assert.is_truthy(message:find(case[1], 1, true), message)
    end
  end)

  it("uniform_ gives nothing that rounds to its upper bound, in any dtype", function()
    for dtype, bounds in pairs {float32 = {1, 2}, float16 = {1, 2}, bfloat16 = {-3, 0}, float64 = {2 ^ 40, 2 ^ 40 + 1}} do
      local x = tycho.empty(2 ^ 18, {dtype = dtype}):uniform_(bounds[1], bounds[2])
      assert.is_true(x:max():item() < bounds[2] and x:min():item() >= bounds[1], dtype)
    end
    assert.is_true(tycho.empty(2 ^ 22):uniform_(1, 2):max():item() < 2)
    assert.equal(1, tycho.empty(100):uniform_(1, 1 + 2 ^ -30):max():item())
  end)
end)
