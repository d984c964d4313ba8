-- Sizes that a trace takes: of models that take multiples of a number only, since they halve a picture and put the parts together again or
-- cut it into patches; and of models whose calls change them.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, jit = tycho.nn, tycho.jit
local path = os.tmpname()
local function reloaded(t)
  t:save(path)
  return jit.load(path, {device = helper.device})
end

local UNet = nn.Module:extend "UNet"
function UNet:init()
  self.down1, self.down2 = nn.Conv2d(3, 4, 3, {padding = 1}), nn.Conv2d(4, 6, 3, {padding = 1})
  self.bottom, self.norm = nn.Conv2d(6, 6, 3, {padding = 1}), nn.BatchNorm2d(6)
  self.up2, self.up1 = nn.ConvTranspose2d(6, 6, 2, {stride = 2}), nn.ConvTranspose2d(12, 4, 2, {stride = 2})
  self.last, self.pool = nn.Conv2d(8, 2, 1), nn.MaxPool2d(2)
end
function UNet:forward(x)
  local a = self.down1(x):relu()
  local b = self.down2(self.pool(a)):relu()
  local c = self.norm(self.bottom(self.pool(b))):relu()
  local d = self.up1(tycho.cat({self.up2(c), b}, 2))
  return self.last(tycho.cat({d, a}, 2))
end

local Patches = nn.Module:extend "Patches"
function Patches:init(size)
  self.size, self.embed = size, nn.Linear(3 * size * size, 5)
end
function Patches:forward(x)
  local n, c, p = x.shape[1], x.shape[2], self.size
  local h, w = x.shape[3] / p, x.shape[4] / p
  local tokens = self.embed(x:view(n, c, h, p, w, p):permute(1, 3, 5, 2, 4, 6):reshape(n, h * w, c * p * p))
  return tokens:transpose(2, 3):reshape(n, 5, h, w), tokens:mean(2)
end

local function same(model, traced, shapes)
  for _, shape in ipairs(shapes) do
    local x = tycho.randn(unpack(shape))
    local want, got = {model(x)}, {traced(x)}
    for i = 1, #want do helper.close(got[i], want[i]) end
    assert.are.equal(#want, #got)
  end
end
local function loaded(traced)
  traced:save(path)
  return jit.load(path)
end

describe("a trace of a model that takes multiples of a number", function()
  local limits = require("tycho.jit.bounds").limits
  local seconds, elements = limits.seconds, limits.elements
  setup(function()                                                 -- what is tried must not depend on the machine
    limits.seconds, limits.elements = math.huge, 2 ^ 14
  end)
  teardown(function()
    limits.seconds, limits.elements = seconds, elements
    os.remove(path)
  end)

  it("takes them all: a U-Net", function()
    local net = UNet():eval()
    local traced = loaded(jit.trace(net, tycho.randn(2, 3, 16, 24)))
    assert.matches("dim 1, 3 in multiples of 4, 4 in multiples of 4", traced:graph(), 1, true)
    local shapes = {{2, 3, 16, 24}, {1, 3, 4, 8}, {5, 3, 20, 12}}
    same(net, traced, shapes)
    same(net, loaded(jit.freeze(traced)), shapes)
    helper.fails("has shape 2x3x18x24; the trace was made for 2x3x16x24 (dim 1, 3 in multiples of 4, 4 in multiples of 4 may differ",
      traced, tycho.randn(2, 3, 18, 24))
  end)

  it("takes them all: patches of an odd and of an even size", function()
    for _, size in ipairs {3, 4} do
      local net = Patches(size):eval()
      local traced = loaded(jit.trace(net, tycho.randn(2, 3, 4 * size, 2 * size)))
      same(net, traced, {{2, 3, 4 * size, 2 * size}, {3, 3, size, 7 * size}})
      helper.fails(("dim 1, 3 in multiples of %d, 4 in multiples of %d may differ"):format(size, size), traced,
        tycho.randn(2, 3, 4 * size + 1, size))
    end
  end)

  it("takes no size that may be a case of its own: one window alone", function()
    local function windows(x)
      local b, n = unpack(x.shape)
      local several = n > 4
      if several then x = x:roll(2, 2) end
      x = x:view(b, n / 4, 4):cumsum(3):view(b, n)
      return several and x:roll(-2, 2) or x
    end
    local traced = loaded(jit.trace(windows, tycho.randn(2, 8)))
    same(windows, traced, {{2, 8}, {3, 16}, {1, 12}})
    helper.fails("dim 2 must be at least 8", traced, tycho.ones(1, 4))
    local function at_most(x) return x * math.min(x.shape[2], 6) end
    helper.fails("dim 2 must be at least 6", jit.trace(at_most, tycho.ones(2, 8)), tycho.ones(1, 4))
  end)

  it("follows sums of sizes, and keeps sizes that no step explains", function()
    local function sides(x)
      local b, h, w = unpack(x.shape)
      return x:view(b, h, w / 4, 4):sum(4) + tycho.zeros(h, w / 4) * (h + w)
    end
    assert.matches("(any dim 1, 2, 3 in multiples of 4)", jit.trace(sides, tycho.ones(2, 7, 8)):graph(), 1, true)
    local runs = 0
    local function square(x)
      runs = runs + 1
      local b, n = unpack(x.shape)
      return (x:unsqueeze(3) - x:unsqueeze(2)):view(b, n * n):sum(2)
    end
    jit.trace(square, tycho.ones(2, 60))
    assert.is_true(runs < 25, runs .. " runs")             -- about half of them for other batches
    assert.equal("3x0", tostring(jit.trace(function(x) return x * 2 end, tycho.ones(3, 0))(tycho.ones(3, 0)).shape))
  end)

  it("takes a batch of pairs", function()
    local function pairs_of(x) return x:view(x.shape[1] / 2, 2, -1):mean(2) end
    local traced = loaded(jit.trace(pairs_of, tycho.randn(6, 3)))
    same(pairs_of, traced, {{6, 3}, {2, 3}, {10, 4}})
    helper.fails("1 in multiples of 2", traced, tycho.randn(5, 3))
  end)

  it("keeps a size that the model takes by chance", function()
    local function by_eight(x) return x.shape[2] % 8 == 0 and x * 2 or x.shape[2] % 4 == 0 and x * 3 or x end
    helper.fails("the trace was made for 2x4 (dim 1 may differ", jit.trace(by_eight, tycho.randn(2, 4)), tycho.randn(2, 8))
    helper.fails("the trace was made for 2x4",
      jit.trace(function(x) return x:reshape(-1, 4):mean(2):view(2, 1) end, tycho.randn(2, 4)), tycho.randn(2, 8))
  end)

  it("takes other sizes in training mode, and changes running statistics only once", function()
    local net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    local x, y = tycho.randn(4, 3, 8, 8), tycho.randn(3, 3, 9, 11)
    local copy = net:clone()
    copy(x)
    local traced = jit.trace(net, x)
    for name, buffer in net:named_buffers() do helper.exact(buffer, copy:state_dict()[name], name) end
    helper.close(traced(y), copy(y))
    for name, buffer in net:named_buffers() do helper.close(buffer, copy:state_dict()[name], name) end
  end)

  it("leaves what the model changes in trial runs alone, and the generator", function()
    local Net = nn.Module:extend "Net"
    function Net:init()
      self:register_buffer("seen", tycho.zeros(1))
      self:register_buffer("large", tycho.zeros(1))
    end
    function Net:forward(x)
      self.seen:add_(1)
      if x.shape[1] > 6 then self.large:add_(1) end
      return tycho.dropout(x, 0.5, true)
    end
    local net = Net()
    tycho.manual_seed(4)
    jit.trace(net, tycho.ones(4, 3))
    local drawn = tycho.rand(2)
    assert.same({1, 0}, {net.seen:item(), net.large:item()})
    tycho.manual_seed(4)
    Net()(tycho.ones(4, 3))
    helper.exact(drawn, tycho.rand(2))
  end)

  it("of an earlier version, whose pools have a divisor of 0 for none, still runs", function()
    local function saved_with(model, x, change)
      loaded(jit.trace(model, x))
      local tensors, json = core.read_safetensors(path)
      local names, list, p = {}, {}, core.json_decode(json)
      for name, t in pairs(tensors) do names[#names + 1], list[#list + 1] = name, t end
      for _, node in ipairs(p.tycho_program.nodes) do change(node) end
      core.write_safetensors(path, names, list, core.json_encode(p))
    end
    local pool, x = nn.AvgPool2d(2), tycho.randn(1, 2, 4, 4)
    saved_with(pool, x, function(node)
      assert.is_nil(node.args.divisor_override)
      node.args.divisor_override = 0
    end)
    helper.close(jit.load(path)(x), pool(x))
    saved_with(nn.BatchNorm2d(2), x, function(node) node.args.mean = 5 end)
    helper.fails("node 1 (batch_norm_stats) must change a value", jit.load, path)
  end)

  it("is checked when it is loaded", function()
    loaded(jit.trace(Patches(4), tycho.randn(2, 3, 16, 8)))
    local tensors, json = core.read_safetensors(path)
    local names, list = {}, {}
    for name, t in pairs(tensors) do names[#names + 1], list[#list + 1] = name, t end
    local wrong = {["a step for each free dim"] = {4}, ["dim 4 has the step 0"] = {4, 0}, ["dim 3 has the step 2.5"] = {2.5, 4}}
    for text, steps in pairs(wrong) do
      local p = core.json_decode(json)
      assert.are.same({4, 4}, p.tycho_program.steps)
      p.tycho_program.steps = steps
      core.write_safetensors(path, names, list, core.json_encode(p))
      helper.fails(text, jit.load, path)
    end
  end)

  it("is made in a coroutine that may yield, or be dropped, while others run", function()
    local modes = require "tycho.modes"
    local function traced()
      return jit.trace(function(x)
        coroutine.yield(modes.now.tracing ~= nil)
        return x * 2
      end, tycho.ones(2))
    end
    local co = coroutine.create(traced)
    assert.same({true, true}, {coroutine.resume(co)})
    assert.is_nil(modes.now.tracing)
    local t
    repeat t = select(2, coroutine.resume(co)) until coroutine.status(co) == "dead"
    helper.exact(t(tycho.ones(2)), tycho.full({2}, 2))
    coroutine.resume(coroutine.create(traced))                     -- and never again
    collectgarbage()
    assert.is_nil(modes.now.tracing)
  end)

  it("is right for the sizes that it takes: others are refused where the model does something else with them", function()
    local function ones(...) return tycho.ones(...) end
    local cases = {
      {function(x) return (x.shape[2] > 64 and x[{ {}, {-64, -1} }] or x) * 2 end, ones(2, 8), {1, 64}, {1, 65},
        "dim 2 must be at most 64"},
      {function(x) return x.shape[1] == 1 and x * 0 or x * 2 end, ones(4, 3), {2, 3}, {1, 3}, "dim 1 must be at least 2"},
      {function(x) return x[{ {1, math.min(x.shape[1], x.shape[2])} }] * 1 end, ones(4, 9), {4, 20}, {10, 9}, "dim 1 must be"},
      {function(x) return x[{ {}, {1, math.max(1, x.shape[2] - 8)} }] * 1 end, ones(2, 20), {2, 9}, {2, 8}, "dim 2 must be at least 9"},
      {function(x) return x:squeeze():sum(1) end, ones(4, 3), {5, 3}, {1, 3}, "dim 1 must be at least 2"},
      {function(x) return x.shape[1] > 3 and x.shape[1] < 200 and x + 1 or x - 1 end, ones(9, 2), {199, 2}, {200, 2},
        "dim 1 must be from 4 to 199"},
    }
    for i, c in ipairs(cases) do
      local traced = loaded(jit.trace(c[1], c[2]))
      helper.exact(traced(ones(unpack(c[3]))), c[1](ones(unpack(c[3]))))
      helper.fails(c[5], traced, ones(unpack(c[4])))
      local frozen = loaded(jit.freeze(traced))
      helper.fails(c[5], frozen, ones(unpack(c[4])))
      if i == 1 then assert.matches("(any dim 1, 2 up to 64)", frozen:graph(), 1, true) end
    end
    -- one size beside another; parts that are like the whole but for order; what no bound explains; sizes below a number
    local function means(x) return x:narrow(2, 1, math.min(x.shape[2], 50)):amax(2) end
    helper.fails("dim 2 must be at most", jit.trace(means, tycho.randn(2, 10, 4)), ones(2, 99, 4))
    local function cut(x)
      local y = x:slice(2, 1, math.min(x.shape[2], 20)):cumsum(2):select(2, -1)
      return tycho.cat({y, tycho.full({x.shape[1]}, -1e9)}, 1)
    end
    helper.fails("dim 2 must be at most 20", jit.trace(cut, tycho.randn(2, 5)), ones(2, 30))
    local function ordered(x)
      if x.shape[3] < x.shape[2] then x = x:transpose(2, 3) end
      return x:contiguous():cumsum(3):amax(3):amax(2)
    end
    helper.fails("must be", jit.trace(ordered, tycho.randn(2, 8, 24)), ones(2, 20, 10))
    helper.fails("must be", jit.trace(function(x) return x.shape[1] == x.shape[2] and x * 2 or x end, tycho.randn(8, 6)), ones(7, 7))
    helper.fails("dim 2 must be", jit.trace(function(x) return x.shape[2] % 3 == 0 and x:sum(2) or x:mean(2) end, tycho.randn(2, 5)),
      ones(2, 12))
    helper.fails("dim 2 must be at least 5", jit.trace(function(x) return x:roll(4, 2) end, tycho.randn(2, 8)), ones(2, 2))
    helper.fails("dim 2 must be at least 1", jit.trace(function(x) return x:sum(2) / math.max(x.shape[2], 1) end, tycho.randn(2, 8)),
      ones(2, 0))
    -- sizes that the model doesn't take with those of the example are no bound
    local narrow = jit.trace(function(x) return x:narrow(3, 1, x.shape[2]) end, tycho.randn(2, 4, 8))
    assert.same({2, 10, 10}, {unpack(narrow(ones(2, 10, 20)).shape)})
    -- a size that is right by other ops isn't refused: results are what counts
    local either = jit.trace(function(x) return x.shape[1] > 90 and x + x or x * 2 end, ones(4, 3))
    helper.exact(either(ones(400, 3)), tycho.full({400, 3}, 2))
    assert.matches("(any dim 1, 2)", either:graph(), 1, true)
  end)

  it("leaves the model's fields as one run does", function()
    local Counts = nn.Module:extend "Counts"
    function Counts:init() self.calls, self.linear = 0, nn.Linear(3, 3) end
    function Counts:forward(x)
      self.calls, self.last = self.calls + 1, x.shape[1]
      return self.linear(x)
    end
    local net = Counts()
    jit.trace(net, tycho.randn(2, 3))
    assert.equal(1, net.calls)
    assert.equal(2, net.last)
    local Keeps = nn.Module:extend "Keeps"
    function Keeps:init()
      self.log = {deep = {}}
      self:register_buffer("total", tycho.zeros(1))
    end
    function Keeps:forward(x)
      self.total = self.total + 1
      table.insert(self.log.deep, x.shape[1])
      return x * 2
    end
    local keeps = Keeps()
    jit.trace(keeps, tycho.randn(2, 3))
    assert.equal(1, keeps.total:item())
    assert.same({2}, keeps.log.deep)
    -- a cache that the first run makes is made anew by the trials
    local Cached = nn.Module:extend "Cached"
    function Cached:init() end
    function Cached:forward(t)
      local n = t.shape[2]
      if not self.cache or self.cache.shape[1] < n then self.cache = tycho.range(1, n):unsqueeze(2) end
      return t * self.cache:narrow(1, 1, n)
    end
    local cached = Cached()
    local of_cache = jit.trace(cached, tycho.randn(2, 6, 3))
    assert.equal(6, cached.cache.shape[1])
    helper.exact(of_cache(tycho.ones(1, 9, 3)), cached(tycho.ones(1, 9, 3)))
    -- what it does with other sizes alone, and for a backward pass to come
    local Odd = nn.Module:extend "Odd"
    function Odd:init() self:register_buffer("c", tycho.zeros(1)) end
    function Odd:forward(x)
      if x.shape[1] > 8 then
        self.c:add_(1)
        self:eval()
        self.more = nn.Linear(1, 1)
        rawset(self, "raw", 1)
      end
      return x * 2
    end
    local odd = Odd()
    jit.trace(odd, tycho.randn(4, 3))
    assert.same({0, true}, {odd.c:item(), odd.training})
    assert.is_nil(odd.more or rawget(odd, "raw"))
    local trained = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    local loss = trained(tycho.randn(4, 3)):sum()
    jit.trace(trained, tycho.randn(4, 3))
    loss:backward()
    local lazy, five = nn.LazyLinear(3), tycho.randn(4, 5)
    helper.exact(jit.trace(lazy, five)(five), lazy(five))
    -- memory and time stay small where results grow fast
    jit.trace(function(t) return t:unsqueeze(1) * t:unsqueeze(2) * t:unsqueeze(3) end, tycho.randn(8, 8))
    -- and its own constants as the example's run has left them
    local cache = tycho.zeros(1)
    local traced = jit.trace(function(x)
      cache:add_(x:sum())
      return x + cache:sum()
    end, tycho.ones(2, 3))
    assert.equal(6, cache:item())
    helper.exact(traced(tycho.ones(2, 3)), tycho.full({2, 3}, 13))
  end)

  it("takes arguments that aren't tensors, as they were", function()
    local layer = nn.TransformerEncoderLayer(8, 2, 16, 0, {batch_first = true}):eval()
    local x, pad = tycho.randn(2, 4, 8), tycho.tensor {{false, false, true, true}, {false, false, false, true}}
    local traced = loaded(jit.trace(layer, x, nil, pad))
    helper.close(traced(x, nil, pad), layer(x, nil, pad))
    helper.fails("argument 2 must be nil, as in the example, got a tensor", traced, x, pad, pad)
    helper.fails("takes 3 arguments, got 1", traced, x)
    helper.fails("takes 3 arguments, got 4", traced, x, nil, pad, x)
    local scaled = loaded(jit.trace(function(t, by, o) return (o.twice and t * 2 or t) * by end, x, 3, {twice = true, name = "a"}))
    helper.exact(scaled(x, 3, {twice = true, name = "a"}), x * 2 * 3)
    helper.fails("argument 2 must be 3, as in the example, got 4", scaled, x, 4, {twice = true, name = "a"})
    helper.fails("argument 3 at twice must be true, as in the example, got false", scaled, x, 3, {twice = false, name = "a"})
    helper.fails("argument 3 at name must be 'a', as in the example, got 1", scaled, x, 3, {twice = true, name = 1})
    helper.fails("example 2 is or contains a function; arguments may be tensors, tables of these, booleans", jit.trace, layer, x, print)
    -- what a file may say
    local tensors, json = core.read_safetensors(path)
    local names, list = {}, {}
    for name, t in pairs(tensors) do names[#names + 1], list[#list + 1] = name, t end
    for text, change in pairs {
      ["has a bad constant"] = function(p) p.takes[2] = {const = {1}} end,
      ["what the program takes must be a list"] = function(p) p.takes[2] = {items = 3} end,
      ["a bound has no dim"] = function(p) p.bounds = {{least = 2}} end,
      ["dim 2 has bounds, but isn't free"] = function(p) p.free, p.bounds = {3}, {{dim = 2, least = 2}} end,
      ["dim 0 has the bound 2.5"] = function(p) p.bounds = {{dim = 0, most = 2.5}} end,
      ["the result is not a tree of values"] = function(p) p.results = 3 end,
      ["the result must be a list"] = function(p) p.results = {const = 3} end,
    } do
      local p = core.json_decode(json)
      assert.equal(6, p.tycho_program.version)
      change(p.tycho_program)
      core.write_safetensors(path, names, list, core.json_encode(p))
      helper.fails(text, jit.load, path)
    end
  end)

  it("follows sizes of further arguments, and dims that must be equal", function()
    local F = nn.functional
    local function check(fn, example, other, says)
      local traced = loaded(jit.trace(fn, unpack(example)))
      helper.close(traced(unpack(other)), fn(unpack(other)))
      helper.close(traced(unpack(example)), fn(unpack(example)))
      if says then assert.matches(says, traced:graph(), 1, true) end
      return traced
    end
    local function ids(most, ...) return tycho.randint(1, most, {...}) end
    tycho.manual_seed(1)
    local net = nn.Transformer(8, 2, 1, 1, 16, 0, {batch_first = true}):eval()
    local words = nn.Embedding(20, 8)
    local function translate(source, target, padding)
      local mask = nn.Transformer.generate_square_subsequent_mask(target.shape[2])
      return net(words(source), words(target), {src_key_padding_mask = padding, tgt_mask = mask})
    end
    local function padded(...) return tycho.zeros(...):bool() end
    local t = check(translate, {ids(20, 2, 5), ids(20, 2, 4), padded(2, 5)}, {ids(20, 3, 9), ids(20, 3, 6), padded(3, 9)},
      "%2 = input int64 2x4 (any dim 1, 2)")
    helper.fails("argument 3 has shape 3x8; to match those before it, it must be 3x9", t, ids(20, 3, 9), ids(20, 3, 6), padded(3, 8))
    -- keys and values of the steps before
    local function attend(x, before)
      local k, v = tycho.cat({before.k, x}, 2), tycho.cat({before.v, x}, 2)
      return F.scaled_dot_product_attention(x, k, v)
    end
    local function cache(n) return {k = tycho.randn(2, n, 8), v = tycho.randn(2, n, 8)} end
    check(attend, {tycho.randn(2, 1, 8), cache(5)}, {tycho.randn(2, 1, 8), cache(12)})
    -- graphs: a square matrix; lists of edges
    check(function(x, edges) return edges:matmul(x):sum(1) / x.shape[1] end, {tycho.randn(4, 5), tycho.randn(4, 4)},
      {tycho.randn(9, 5), tycho.randn(9, 9)}, "%2 = input float32 4x4 (any dim 1, 2)")
    local linear = nn.Linear(5, 7)
    check(function(x, from, to)
      return tycho.zeros(x.shape[1], 7):index_add(1, to, linear(x):index_select(1, from)) * from.shape[1]
    end, {tycho.randn(4, 5), tycho.tensor({1, 2, 3, 4, 1, 2}, {dtype = "int64"}), tycho.tensor({2, 3, 4, 1, 3, 4}, {dtype = "int64"})},
      {tycho.randn(9, 5), ids(9, 20), ids(9, 20)})
    -- two pictures
    local a, b = nn.Conv2d(3, 4, 1), nn.Conv2d(5, 4, 1)
    check(function(x, y) return a(x) + F.interpolate(b(y), {size = {x.shape[3], x.shape[4]}}) end,
      {tycho.randn(2, 3, 16, 24), tycho.randn(2, 5, 8, 12)}, {tycho.randn(1, 3, 10, 20), tycho.randn(1, 5, 7, 9)})
    local traced = check(function(x, y) return (a(x) + F.interpolate(b(y), {scale_factor = 2})) * x.shape[4] end,
      {tycho.randn(2, 3, 16, 24), tycho.randn(2, 5, 8, 12)}, {tycho.randn(1, 3, 10, 20), tycho.randn(1, 5, 5, 10)},
      "(any dim 1, 3 in multiples of 2, 4 in multiples of 2)")
    helper.fails("argument 2 has shape 1x5x6x10; to match those before it, it must be 1x5x5x10", traced, tycho.randn(1, 3, 10, 20),
      tycho.randn(1, 5, 6, 10))
    check(function(x, y) return F.avg_pool2d(b(x), 2) + a(y) end, {tycho.randn(2, 5, 16, 24), tycho.randn(2, 3, 8, 12)},
      {tycho.randn(1, 5, 10, 20), tycho.randn(1, 3, 5, 10)})
    check(function(x, y) return x + y:repeat_interleave(49, 1) end, {tycho.randn(98, 3), tycho.randn(2, 3)},
      {tycho.randn(147, 5), tycho.randn(3, 5)}, "%2 = input float32 2x3 (any dim 1, 2)")
    check(function(x, y) return x + y:repeat_interleave(2, 1) end, {tycho.randn(8, 3), tycho.randn(4, 3)},
      {tycho.randn(6, 3), tycho.randn(3, 3)}, "%1 = input float32 8x3 (any dim 1 in multiples of 2, 2)")
    loaded(jit.trace(function(x, y) return a(x) + F.interpolate(b(y), {size = {x.shape[3], x.shape[4]}}) end,
      tycho.randn(2, 3, 16, 24), tycho.randn(2, 5, 8, 12)))
    -- numbers that are products of two sizes, and one more; dims that come and go; dim 2 with both dims of a mask
    local function with_class(x) return tycho.cat({tycho.ones(x.shape[1], 1, 3), x:flatten(3):transpose(2, 3)}, 2):sum(2) end
    check(with_class, {tycho.randn(2, 3, 4, 6)}, {tycho.randn(1, 3, 5, 9)}, "(any dim 1, 3, 4)")
    check(function(x) return x / x:std({3, 4}, {keepdim = true}) end, {tycho.randn(2, 3, 14, 15)}, {tycho.randn(1, 3, 6, 9)},
      "(any dim 1, 2, 3, 4)")
    -- sums of two sizes
    check(function(x, y)
      local both = tycho.cat({x, y}, 2)
      return both:narrow(2, 2, x.shape[2] + y.shape[2] - 2):sum(2) / both.shape[2]
    end, {tycho.randn(2, 9, 4), tycho.randn(2, 7, 4)}, {tycho.randn(3, 4, 4), tycho.randn(3, 11, 4)},
      "%2 = input float32 2x7x4 (any dim 1, 2")
    check(function(x, y) return tycho.zeros(x.shape[2] + y.shape[2] + 3) + tycho.cat({x[1], y[1], tycho.ones(3)}, 1) end,
      {tycho.randn(2, 9), tycho.randn(2, 7)}, {tycho.randn(1, 4), tycho.randn(1, 11)}, "dim2+%2.dim2+3")
    local audio = nn.Sequential(nn.Conv1d(3, 8, 9, {stride = 4, padding = 4}), nn.ReLU(), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(1),
      nn.Flatten())
    check(function(x) return audio(x) end, {tycho.randn(2, 3, 401)}, {tycho.randn(1, 3, 123)}, "%1 = input float32 2x3x401 (any dim 1, 3")
    check(function(x, mask) return (x:matmul(x:transpose(2, 3)) + mask):matmul(x) end, {tycho.randn(8, 8, 8), tycho.zeros(8, 8)},
      {tycho.randn(3, 5, 8), tycho.zeros(5, 5)}, "%2 = input float32 8x8 (any dim 1, 2)")
    loaded(jit.trace(function(x, y) return a(x) + F.interpolate(b(y), {size = {x.shape[3], x.shape[4]}}) end,
      tycho.randn(2, 3, 16, 24), tycho.randn(2, 5, 8, 12)))
    -- what a file may say
    local tensors, json = core.read_safetensors(path)
    local names, list = {}, {}
    for name, x in pairs(tensors) do names[#names + 1], list[#list + 1] = name, x end
    for text, change in pairs {
      ["dim 17 can't be free"] = function(p) p.free[1] = 17 end, ["dim 0 can't be free"] = function(p) p.free[1] = 0 end,
      ["there must be members for each free dim"] = function(p) p.members = {} end,
      ["dim 99 can't follow dim 3"] = function(p) p.members = {{3, 99}, {4}, {11}, {12}} end,
      ["dim 4 can't follow dim 4"] = function(p) p.members = {{3, 4}, {4}, {11}, {12}} end,
      ["dim 3 isn't a member of its own"] = function(p) p.members = {{}, {4}, {11}, {12}} end,
      ["has a bad size"] = function(p)
        for _, node in ipairs(p.nodes) do
          for _, x in ipairs(node.op == "resize" and node.args.size or {}) do x.more = {size = 1} end
        end
      end,
      ["members must be a list"] = function(p) p.members = {3, {4}, {11}, {12}} end,
    } do
      local p = core.json_decode(json)
      assert.same({3, 4, 11, 12}, p.tycho_program.free)
      change(p.tycho_program)
      core.write_safetensors(path, names, list, core.json_encode(p))
      helper.fails(text, jit.load, path)
    end
  end)

  it("refuses other dtypes where the model asks for them, also when loaded", function()
    local Masked = nn.Module:extend("Masked")
    function Masked:init() self.layer = nn.Linear(3, 3) end
    function Masked:forward(x)
      local y = self.layer(x)
      return y:masked_fill(y:gt(0), tycho.finfo(y.dtype).min)
    end
    local asking = {
      Masked():to(helper.device),
      function(x) return x:to("float32"):exp() end,
      function(x) return x:sum({dtype = "float32"}) end,
      function(x) return x.dtype == "float32" and x + 1 or x - 1 end,
    }
    local x = tycho.randn(2, 3)
    for i, model in ipairs(asking) do
      for _, t in ipairs {tycho.jit.trace(model, x), reloaded(tycho.jit.trace(model, x))} do
        helper.close(t(x):detach(), model(x):detach(), "model " .. i)
        helper.fails("argument 1 is float64; the trace was made for float32: with other dtypes", t:double(), x:double())
        t:float()
      end
    end
    local net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU()):to(helper.device)
    for _, model in ipairs {net, function(v) return v:softmax(2):matmul(v:t()) end} do
      local t = tycho.jit.trace(model, x)
      local double = t:double()
      helper.close(double(x:double()):detach(), model(x:double()):detach(), "in float64", 1e-9)
      net:float()
    end
    os.remove(path)
  end)

  it("has no backward where the model has an autograd.Function", function()
    local Sign = tycho.autograd.Function {forward = function(_, x) return x:sign() end, backward = function(_, g) return g end}
    local Net = nn.Module:extend "Net"
    function Net:init() self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2) end
    function Net:forward(x) return self.last(Sign(self.first(x))) end
    local net = Net():to(helper.device)
    local x, own = tycho.randn(2, 3), "backward: the model has an autograd.Function"
    local t = jit.trace(net, x)
    for _, traced in ipairs {t, reloaded(t), jit.trace(t, x), jit.freeze(t:eval())} do
      local y = traced(x:clone():requires_grad_())
      assert.is_true(y:equal(net(x)))
      helper.fails(own, y.backward, y:sum())
      tycho.no_grad(function() assert.is_true(tycho.compile(traced)(x):equal(net(x))) end)
    end
    local cpu = {device = "cpu"}                           -- singular values go by the CPU
    local a = tycho.rand(3, 3, cpu) + tycho.eye(3, cpu) * 3
    local inverse = jit.trace(function(v) return tycho.linalg.pinv(v) end, a * 2)
    local b = a:clone():requires_grad_()
    inverse(a:requires_grad_()):sum():backward()
    tycho.linalg.pinv(b):sum():backward()
    helper.close(a.grad, b.grad, "pinv", 1e-5)
    local checkpointed = nn.Checkpoint(nn.Sequential(nn.Linear(3, 4), nn.Tanh())):to(helper.device)         -- its ops' gradients are right
    local of_trace, of_model = x:clone():requires_grad_(), x:clone():requires_grad_()
    jit.trace(checkpointed, x)(of_trace):sum():backward()
    checkpointed(of_model):sum():backward()
    assert.is_true(of_trace.grad:equal(of_model.grad))
  end)

  it("takes inputs of other layouts where the model makes them contiguous itself", function()
    local wide = tycho.randn(3, 4)
    local function parts(x) return x:contiguous():as_strided({2, 2}, {1, 1}) end
    assert.is_true(tycho.jit.trace(parts, tycho.randn(4, 3))(wide:t()):equal(parts(wide:t())))
    -- but not where it writes to them, or asks for their layout
    local function flat(x) return x:reshape(-1):add_(1) end
    local function writes(x)
      x:add_(1)
      return x:contiguous():view(-1) * 1
    end
    local function asks(x) return x:is_contiguous() and x + 1 or x - 1 end
    for _, fn in ipairs {flat, writes, asks} do
      local t = jit.trace(fn, tycho.randn(4, 3))
      helper.fails("argument 1 isn't contiguous", t, wide:t())
      local y = tycho.randn(4, 3)
      local z = y:clone()
      assert.is_true(t(y):equal(fn(z)) and y:equal(z))
    end
    helper.fails("has shape 2; the trace was made for ()", tycho.jit.trace(function(x) return x * 2 end, tycho.tensor(3)), tycho.ones(2))
  end)
end)
