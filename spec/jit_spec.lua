-- Traced models: they do what the model did, also from a file, on other batch sizes, dtypes and compiled; and no file does more than that.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, jit, F = tycho.nn, tycho.jit, tycho.nn.functional

local function saved(traced)
  local path = os.tmpname()
  traced:save(path)
  local again = jit.load(path)
  os.remove(path)
  return again
end

local function models()
  local Residual = nn.Module:extend("Residual")
  function Residual:init()
    self.conv, self.norm, self.scale = nn.Conv2d(3, 3, 3, {padding = 1}), nn.BatchNorm2d(3), tycho.full({1}, 0.5)
  end
  function Residual:forward(x) return x + F.relu(self.norm(self.conv(x))) * self.scale end
  local Two = nn.Module:extend("Two")
  function Two:init() self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3) end
  function Two:forward(x, y) return {sum = self.a(x) + self.b(y), parts = {self.a(x), self.b(y)}} end
  return {
    mlp = {nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.LayerNorm(8), nn.Linear(8, 2)), {3, 4}},
    cnn = {nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
      nn.Linear(36, 5), nn.Softmax(2)), {2, 3, 8, 8}},
    residual = {Residual(), {2, 3, 5, 5}},
    lstm = {nn.LSTM(4, 6, {batch_first = true}), {2, 5, 4}},
    attention = {nn.TransformerEncoderLayer(8, 2, {dim_feedforward = 16, batch_first = true}), {2, 5, 8}},
    two = {Two(), {3, 4}, {3, 4}},
  }
end

local function results(...)
  local out = {}
  local function walk(x)
    if tycho.is_tensor(x) then out[#out + 1] = x:detach()
    elseif type(x) == "table" then
      local keys = {}
      for k in pairs(x) do keys[#keys + 1] = k end
      table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
      for _, k in ipairs(keys) do walk(x[k]) end
    end
  end
  for i = 1, select("#", ...) do walk((select(i, ...))) end
  return out
end
local function equal(a, b, what, tolerance)
  assert.equal(#a, #b)
  for i = 1, #a do helper.close(b[i], a[i], what .. ", result " .. i, tolerance or 0) end
end

describe("jit.trace", function()
  it("finds the dim of each argument that is the batch, or none", function()
    for _, first in ipairs {false, true} do
      local lstm = nn.LSTM(3, 4, {batch_first = first}):eval()
      local function step(x, h, c) return lstm(x, {h, c}) end
      local function inputs(batch, length)
        local x = first and tycho.randn(batch, length, 3) or tycho.randn(length, batch, 3)
        return {x, tycho.randn(1, batch, 4), tycho.randn(1, batch, 4)}
      end
      local traced = jit.trace(step, unpack(inputs(2, 5)))
      for _, again in ipairs {traced, saved(traced)} do
        for _, size in ipairs {{2, 5}, {7, 5}, {1, 8}} do
          local x = inputs(unpack(size))
          equal({step(unpack(x))}, {again(unpack(x))}, tostring(first))
        end
        local x = inputs(3, 5)
        x[3] = tycho.randn(1, 2, 4)
        helper.fails("argument 3 has shape 1x2x4; to match those before it, it must be 1x3x4", again, unpack(x))
      end
    end
    helper.fails("argument 1 has shape 7x5; the trace was made for 4x3 (dim 1 may differ, but equally in all)",
      jit.trace(nn.Linear(3, 2), tycho.randn(4, 3)), tycho.randn(7, 5))
    local function masked(x, mask) return (x:matmul(x:transpose(2, 3)) + mask):softmax(-1):view(x.shape[1], -1) end
    local traced, x, mask = saved(jit.trace(masked, tycho.randn(2, 5, 3), tycho.randn(5, 5))), tycho.randn(7, 5, 3), tycho.randn(5, 5)
    equal({masked(x, mask)}, {traced(x, mask)}, "masked")
    -- as many by chance
    local function apart(v, points, more) return v * 3, (points * points):sum(2), points + more end
    local points, more = tycho.randn(7, 2), tycho.randn(7, 2)
    traced, x = saved(jit.trace(apart, tycho.randn(2, 5), points, more)), tycho.randn(3, 5)
    equal({apart(x, points, more)}, {traced(x, points, more)}, "apart")
    -- filled up to an even length: not for other lengths than even ones
    local function even(v) return F.pad(v, {0, 0, 0, v.shape[2] % 2}):reshape(v.shape[1], -1) end
    helper.fails("made for 3x4x2 (dim 1, 2 in multiples of 2, 3 may differ", jit.trace(even, tycho.randn(3, 4, 2)), tycho.randn(3, 5, 2))
  end)

  for name in pairs(models()) do
    it("gives a module that does what the model does: " .. name, function()
      local m = models()[name]
      local model = m[1]:eval()
      local function inputs(n)
        local out = {}
        for i = 2, #m do
          local size = {unpack(m[i])}
          size[1] = n or size[1]
          out[#out + 1] = tycho.randn(size)
        end
        return out
      end
      local traced = jit.trace(model, unpack(inputs()))
      for _, again in ipairs {traced, saved(traced)} do
        for _, n in ipairs {m[2][1], 1, 7} do
          local x = inputs(n)
          equal(results(model(unpack(x))), results(again(unpack(x))), "batch " .. n)
        end
        for k, v in pairs(model:state_dict()) do if again:state_dict()[k] then helper.close(again:state_dict()[k], v, k, 0) end end
        assert.is_truthy(again:graph():find("return %%"))
      end
      local compiled, fused = tycho.compile(saved(traced):requires_grad_(false), {fusion = false}),
        tycho.compile(saved(traced):requires_grad_(false))
      for _ = 1, 4 do
        local x = inputs()
        equal(results(model(unpack(x))), results(compiled(unpack(x))), "compiled")
        equal(results(model(unpack(x))), results(fused(unpack(x))), "fused")
      end
      if name ~= "lstm" then
        local half, x = saved(traced):to("float64"), inputs()
        for i = 1, #x do x[i] = x[i]:double() end
        equal(results(model:to("float64")(unpack(x))), results(half(unpack(x))), "float64")
      end
    end)
  end

  it("keeps gradients: a traced model can be trained on", function()
    local model, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)):eval(), tycho.randn(5, 4)
    local traced = saved(jit.trace(model, x))
    traced(x):sum():backward()
    model(x):sum():backward()
    local grads = {}
    for n, p in model:named_parameters() do grads[n] = p.grad end
    local count = 0
    for n, p in traced:named_parameters() do
      helper.close(p.grad, grads[n], n)
      count = count + 1
    end
    assert.equal(4, count)
  end)

  it("drops what nobody needs, and keeps changes of buffers and random numbers", function()
    local x = tycho.randn(3)
    local traced = jit.trace(function(a) local _ = a:exp() return a * 2 end, x)
    assert.equal(1, #rawget(traced, "_program").nodes)
    local counter = nn.Module:extend("Counter")()
    counter:register_buffer("n", tycho.zeros(1))
    function counter:forward(a) self.n:add_(1) return a + self.n end
    local t = jit.trace(counter, x)
    local before = counter.n:clone()
    helper.close(t(x), x + (before + 1), "first", 0)
    helper.close(t(x), x + (before + 2), "second", 0)
    tycho.manual_seed(4)
    local r = jit.trace(function(a) return a + tycho.randn(3) end, x)
    tycho.manual_seed(5)
    local want = x + tycho.randn(3)
    tycho.manual_seed(5)
    helper.close(r(x), want, "random", 0)
  end)

  it("frozen, computes what is constant and folds batch_norm into what comes before it", function()
    local m = models()
    for _, name in ipairs {"cnn", "residual", "mlp"} do
      local model = m[name][1]
      local x = tycho.randn(m[name][2])
      for _ = 1, 3 do model(x) end                       -- statistics other than 0 and 1
      model:eval()
      for _, q in ipairs(model:parameters()) do tycho.no_grad(function() q:add_(tycho.randn(q.shape) * 0.1) end) end
      local traced = jit.trace(model, x)
      local frozen = jit.freeze(traced)
      helper.close(frozen(x), model(x), name)
      helper.close(saved(frozen)(x), frozen(x), name .. " saved", 0)
      assert.is_falsy(name ~= "mlp" and frozen:graph():find("batch_norm"))
      assert.equal(0, #frozen:parameters())
    end
    local known = jit.freeze(jit.trace(function(a) return a + (tycho.ones(3) * 2):exp() end, tycho.randn(3)))
    assert.equal(1, #rawget(known, "_program").nodes)
    local net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    net(tycho.randn(6, 3))
    local frozen = jit.freeze(jit.trace(net:eval(), tycho.randn(2, 3)))
    local y = tycho.randn(5, 3)
    helper.close(frozen(y), net(y), "behind a linear layer, whose channels may be another dim")
    local Own = nn.Module:extend("Own")                  -- changes what it has made itself
    function Own:init()
      self.linear, self.scale = nn.Linear(3, 3), nn.Parameter(tycho.randn(3))
    end
    function Own:forward(x)
      local h, k = self.linear(x), self.scale * 2
      h:add_(x):relu_()
      h[{ {}, 1 }] = 0
      k:add_(1)
      return h * k:view(1, 3)
    end
    local own = Own():eval()
    local whole = jit.trace(own, tycho.randn(2, 3))
    for _, t in ipairs {whole, jit.freeze(whole)} do
      for _, n in ipairs {1, 2, 5} do
        local x = tycho.randn(n, 3)
        helper.close(t(x), own(x), nil, 1e-6)
      end
    end
    helper.fails("freeze: add changes a tensor of the module or an argument", jit.freeze,
      jit.trace(function(x) x:add_(1) return x * 2 end, tycho.randn(2)))
    helper.fails("trace the model in eval mode", jit.freeze, jit.trace(net:train(), tycho.randn(2, 3)))
    helper.fails("must be a traced module", jit.freeze, net)
  end)

  it("keeps numbers as they are, and generalises only what the model does for two sizes", function()
    local x = tycho.ones(2, 3)
    for _, value in ipairs {0.5, 1, math.huge, -1e30} do
      helper.close(saved(jit.trace(function(a) return a + tycho.full({3}, value) end, x))(x), x + value, "full", 0)
    end
    assert.equal("bool",
      jit.trace(function(a) return a, tycho.full({2}, true) end, x)(x) and
      select(2, jit.trace(function(a) return a, tycho.full({2}, true) end, x)(x)).dtype)
    local a, b = tycho.full({1}, 2), tycho.full({1}, 5)
    for _, fn in ipairs {
      function(y) return y * tycho.full({}, 1 / y:size(1)) end, function(y) return y * (y:size(1) == 2 and a or b) end,
      function(y) if y:size(1) == 2 then return y + 1, y * 2 end local p = y + 1 return y * 2, p end} do
      helper.fails("argument 1 has shape 5x3; the trace was made for 2x3", jit.trace(fn, x), tycho.ones(5, 3))
    end
    local two = jit.trace(function(p, q) return p:sum() + q:reshape(q:size(1), -1) end, x, x)
    assert.same({6, 3}, {unpack(two(tycho.ones(6, 3), tycho.rand(6, 3)).shape)})
    helper.fails("argument 2 has shape 6x3", two, tycho.ones(3, 3), tycho.rand(6, 3))
    helper.fails("argument 1 is int64; the trace was made for float32", two, tycho.ones(2, 3):long(), x)
  end)

  it("has the model's names, also of what isn't used or has two, and any parts' names but methods'", function()
    local model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)):eval()
    local traced = saved(jit.trace(model, tycho.rand(1, 3, 8, 8)))
    traced:load_state_dict(model:state_dict())
    local Tied = nn.Module:extend("Tied")
    function Tied:init()
      self.program = nn.ModuleList {nn.Linear(3, 3)}
      self.places, self.last = nn.Linear(3, 3), nn.Linear(3, 3)
      self.last.weight = self.places.weight
    end
    function Tied:forward(x) return self.last(self.places(self.program[1](x))) end
    local tied, x = Tied():eval(), tycho.randn(2, 3)
    traced = saved(jit.trace(tied, x))
    helper.close(traced(x), tied(x), "tied", 0)
    traced:load_state_dict(tied:state_dict())
    local Bad = nn.Module:extend("Bad")
    function Bad:init() self.save = nn.Linear(3, 3) end
    function Bad:forward(y) return self.save(y) end
    helper.fails("a part named 'save' would hide that method", jit.trace, Bad(), x)
  end)

  it("gives results of any shape of tables, which the caller may change", function()
    local x = tycho.ones(2)
    local k = tycho.tensor({1, 2})                         -- on a GPU this can't be within: it comes from the host
    local traced = saved(jit.trace(function(a)
      return {q = a + 1, v = a * 2, l = {a, k}}, a + k
    end, x))
    for _ = 1, 3 do
      local t, y = traced(x)
      assert.same({{2, 2}, {2, 2}, {1, 1}, {1, 2}, {2, 3}}, {t.q:totable(), t.v:totable(), t.l[1]:totable(), t.l[2]:totable(), y:totable()})
      t.l[2]:add_(5)
    end
    assert.equal(0, select("#", jit.trace(function(a) local _ = a + 1 end, x)(x)))
    helper.fails("neither a list nor a table with names only", jit.trace, function(a) return {a, b = a} end, x)
    helper.fails("gives a table", jit.trace, function(a) local t = {a} t[2] = t return t end, x)
  end)

  it("takes tables of tensors, as it gives them", function()
    local Net = nn.Module:extend("Net")
    function Net:init() self.l = nn.Linear(4, 3) end
    function Net:forward(batch, more)
      return {y = self.l(batch.x) * batch.mask:unsqueeze(2), z = {more[1] + more[2].deep}}
    end
    local function some(n)
      return {x = tycho.randn(n, 4), mask = tycho.rand(n)}, {tycho.randn(n, 2), {deep = tycho.randn(n, 2)}}
    end
    local net, path = Net(), os.tmpname()
    local traced = jit.trace(net, some(5))
    traced:save(path)
    local loaded = jit.load(path)
    for _, t in ipairs {traced, loaded, jit.freeze(loaded), tycho.compile(loaded)} do
      for _ = 1, 3 do
        local batch, more = some(7)                        -- of another size
        local got, want = t(batch, more), net(batch, more)
        helper.close(want.y, got.y)
        helper.close(want.z[1], got.z[1])
      end
    end
    local batch, more = some(2)
    helper.fails("Traced: takes 2 arguments, got 1", traced, batch)
    helper.fails("argument 2 at 2 must have 1 fields, got 0", traced, batch, {more[1], {}})
    helper.fails("argument 1 at mask must be a tensor, got number", traced, {x = batch.x, mask = 1}, more)
    helper.fails("tensor 4 has shape 3x2; to match those before it, it must be 2x2", traced, batch, {more[1], {deep = tycho.ones(3, 2)}})
    helper.fails("example 1 is or contains a function at x", jit.trace, net, {x = print}, more)
    local tensors, json = core.read_safetensors(path)
    local names, list = {}, {}
    for name, t in pairs(tensors) do names[#names + 1], list[#list + 1] = name, t end
    for text, change in pairs {
      ["takes input 9 twice, or there is no such input"] = function(p) p.takes[1].items[1].v = 9 end,
      ["takes input 1 twice"] = function(p) p.takes[1].items[2].v = 1 end,
      ["takes 2 tensors, there are 4 inputs"] = function(p) p.takes[2] = nil end,
      ["is not a tree"] = function(p) p.takes[2] = 3 end,
      ["don't match"] = function(p) p.takes[1].keys[2] = nil end} do
      local p = core.json_decode(json)
      change(p.tycho_program)
      core.write_safetensors(path, names, list, core.json_encode(p))
      helper.fails(text, jit.load, path)
    end
    os.remove(path)
  end)

  it("runs inputs that lie otherwise than the example", function()
    local m = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    local traced = jit.trace(m, tycho.randn(2, 3, 4, 4))
    local x = tycho.rand(2, 4, 4, 3):permute(1, 4, 2, 3)
    helper.close(m(x), traced(x))
    local changes = jit.trace(function(z) return (z:view(24) + 1):add_(1) end, tycho.randn(4, 6))
    local z = tycho.randn(6, 4):t()
    helper.close(z:reshape(24) + 2, changes(z))            -- who is written isn't the view
    local back = jit.trace(function(y) return y:contiguous():view(2, -1) * 2 end, tycho.randn(4, 2):t())
    local y = tycho.randn(2, 4)
    helper.close(y * 2, back(y))
  end)

  it("has the batch free where padding follows a convolution, and a recurrent layer's dtype", function()
    for _, n in ipairs {8, 16} do
      local m = nn.Sequential(nn.Conv2d(4, 8, 3, {padding = 1}), nn.ReflectionPad2d(1), nn.Conv2d(8, 4, 3), nn.ReplicationPad2d(2)):eval()
      local x = tycho.randn(5, 4, 9, 9)
      helper.close(m(x), jit.trace(m, tycho.randn(n, 4, 9, 9))(x))
    end
    local gru, x = nn.GRU(4, 5, {num_layers = 2, batch_first = true}), tycho.randn(3, 7, 4)
    helper.close((gru(x)), jit.trace(gru, x):double()(x:double()):float(), 1e-5)
  end)

  it("says what it can't follow", function()
    local x = tycho.randn(4)
    helper.fails("item() is called (spec/jit_spec.lua:334): a trace runs the same ops for every input", jit.trace,
      function(a) return a:sum():item() > 0 and a or -a end, x)
    helper.fails("an element is read", jit.trace, function(a) return a * a[1] end, x)
    helper.fails("depends on data", jit.trace, function(a) return a[a:gt(0)] end, x)
    helper.fails("gives a number", jit.trace, function(a) return a, 3 end, x)
    helper.fails("oops", jit.trace, function() error("oops") end, x)
    helper.fails("argument 1 must be a module or a function", jit.trace, 3, x)
    helper.fails("argument 2 must be a tensor", jit.trace, nn.ReLU(), {})
    local traced = jit.trace(function(a) return a:reshape(2, 2) end, x)
    helper.fails("argument 1 has shape 5; the trace was made for 4", traced, tycho.randn(5))
    helper.fails("Traced: takes 1 argument, got 2", traced, x, x)
  end)
end)

describe("a trace file", function()
  local path, bytes
  setup(function()
    path = os.tmpname()
    local model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)):eval()
    jit.trace(model, tycho.randn(2, 1, 4, 4)):save(path)
    local f = io.open(path, "rb")
    bytes = f:read("*a")
    f:close()
  end)
  teardown(function() os.remove(path) end)

  local function with(text)
    local f = io.open(path, "wb")
    f:write(text)
    f:close()
  end

  it("runs with other heights, widths and lengths where nothing depends on them", function()
    local net = nn.Sequential(nn.Conv2d(2, 4, 3, {padding = 1}), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
      nn.AdaptiveAvgPool2d(3)):eval()
    local traced = jit.trace(net, tycho.randn(1, 2, 8, 8))
    local file = os.tmpname()
    traced:save(file)
    for _, t in ipairs {traced, jit.load(file), jit.freeze(traced)} do
      for _, size in ipairs {{1, 2, 8, 8}, {3, 2, 16, 12}, {2, 2, 7, 31}} do
        local x = tycho.randn(size)
        helper.close(t(x), net(x), "result", 1e-5)
      end
      helper.fails("argument 1 has shape 1x3x8x8; the trace was made for 1x2x8x8 (dim 1, 3, 4 may differ", t, tycho.randn(1, 3, 8, 8))
    end
    assert.truthy(traced:graph():find("(any dim 1, 3, 4)", 1, true))
    os.remove(file)
    local lstm = nn.LSTM(3, 4, {batch_first = true})
    local sequence = jit.trace(function(x) return (lstm(x)) end, tycho.randn(2, 5, 3))
    local x = tycho.randn(3, 9, 3)
    helper.close(sequence(x), (lstm(x)))
    local flat = jit.trace(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), tycho.randn(2, 3, 4))
    helper.fails("(dim 1 may differ", flat, tycho.randn(2, 3, 8))
    local sized = jit.trace(function(y) return y * tycho.range(1, y.shape[2]) end, tycho.randn(2, 3))        -- follows dim 2
    helper.close(sized(tycho.ones(3, 4)), tycho.range(1, 4):expand(3, 4))
    -- what hangs on a size's parity, on a threshold, on two sizes, or on another input's
    local function same_or_error(fn, made, tried)
      local t = jit.trace(fn, unpack(made))
      local ok, got = pcall(t, unpack(tried))
      if ok then helper.close(got, fn(unpack(tried))) end
    end
    local R = tycho.randn
    same_or_error(function(y) local n = math.min(y.shape[3], y.shape[4]) return y[{{}, {}, {1, n}, {1, n}}]:mean({3, 4}) end,
      {R(1, 1, 8, 8)}, {R(1, 1, 16, 16)})
    same_or_error(function(y)
      local p = (4 - y.shape[3] % 4) % 4
      return F.avg_pool2d(p > 0 and F.pad(y, {0, 0, 0, p}) or y, 4, {ceil_mode = true})
    end, {R(1, 1, 8, 8)}, {R(1, 1, 9, 8)})
    same_or_error(function(y) return (y.shape[2] > 6 and y[{{}, {1, 6}}] or y):mean(2) end, {R(2, 3, 2)}, {R(2, 9, 2)})
    same_or_error(function(y) local n = math.min(y.shape[2], 4) return y[{{}, {1, n}}]:sum(2) / n end, {R(2, 5)}, {R(2, 3)})
    same_or_error(function(y, z) return y.shape[2] == z.shape[2] and y * 2 + z or y + z end, {R(2, 4), R(2, 4)}, {R(2, 4), R(2, 1)})
    local even = jit.trace(function(y) return y.shape[2] % 2 == 0 and y * 2 or y end, tycho.randn(2, 4))
    helper.fails("the trace was made for 2x4 (dim 1, 2 in multiples of 2 may differ", even, tycho.randn(2, 5))
  end)

  it("that was damaged anywhere gives an error or a model, and nothing else", function()
    local n = tonumber(os.getenv("TYCHO_MUTATIONS")) or 4000
    local header = 8
    for i = 1, 8 do header = header + bytes:byte(i) * 256 ^ (i - 1) end
    local x = tycho.randn(2, 1, 4, 4, {device = "cpu"})
    local state, errors, alive = 99, 0, 0
    local function draw(k)
      state = (state * 1103515245 + 12345) % 2147483648
      return math.floor(state / 1024) % k + 1
    end
    for _ = 1, n do
      local t, at = bytes, draw(header)
      local kind = draw(4)
      if kind == 1 then t = t:sub(1, at - 1) .. string.char(draw(256) - 1) .. t:sub(at + 1)
      elseif kind == 2 then t = t:sub(1, at - 1) .. t:sub(at + draw(12))
      elseif kind == 3 then
        local digit = t:find("%d", math.max(at, 9)) or 9
        t = t:sub(1, digit - 1) .. draw(10) - 1 .. t:sub(digit + 1)
      else
        local from = draw(header)
        t = t:sub(1, at - 1) .. t:sub(from, from + at % 20) .. t:sub(at + at % 20 + 1)
      end
      with(t)
      local ok, traced = pcall(jit.load, path, {device = "cpu"})
      if ok then ok = pcall(traced, x) end
      if ok then alive = alive + 1 else errors = errors + 1 end
    end
    assert.equal(n, errors + alive)
    assert.is_true(errors > n / 2)
  end)

  it("keep one parameter with two names one", function()
    local Tied = nn.Module:extend("Tied")
    function Tied:init()
      self.embed, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, false)
      self.head.weight = self.embed.weight
    end
    function Tied:forward(ids) return self.head(self.embed(ids)) end
    local net, ids, y = Tied(), tycho.randint(1, 5, {6}), tycho.randint(1, 5, {6})
    jit.trace(net, ids):save(path)
    for _ = 1, 2 do                                      -- what was loaded is saved alike
      local loaded = jit.load(path)
      assert.equal(1, #loaded:parameters())
      local opt = tycho.optim.Adam(loaded:parameters(), {lr = 0.1})
      for _ = 1, 3 do
        opt:zero_grad()
        nn.functional.cross_entropy(loaded(ids), y):backward()
        opt:step()
      end
      net:load_state_dict(loaded:state_dict())
      helper.close(net(ids), loaded(ids), nil, 0)
      loaded:save(path)
    end
  end)

  it("has numbers that follow sizes: of several dims, in ranges and masks, with a number added", function()
    local R = tycho.randn
    local linear, attention = nn.Linear(8, 4), nn.MultiheadAttention(8, 2, {batch_first = true}):eval()
    local layer, ids, places = nn.TransformerEncoderLayer(8, 2, 16, {batch_first = true}):eval(), nn.Embedding(20, 8), nn.Embedding(64, 8)
    local function I(...) return tycho.randint(1, 20, {...}) end
    local cases = {
      {nn.TransformerEncoder(layer, 1):eval(), R(2, 5, 8), R(3, 7, 8), R(1, 1, 8)},
      {function(x) return (attention(x, x, x)) end, R(2, 5, 8), R(3, 7, 8)},
      {function(x) local b, t, c = unpack(x.shape); return linear(x:view(b * t, c)):view(b, t, 4) end, R(2, 5, 8), R(3, 7, 8)},
      {function(x)
        local t = x:size(2)
        local mask = tycho.ones(t, t):triu(1):bool()
        return layer(ids(x) + places(tycho.range(1, t, 1, {dtype = "int64"})), {src_mask = mask})
      end, I(2, 6), I(3, 9), I(1, 2)},
      {nn.Sequential(nn.Conv2d(1, 2, 3), nn.Upsample {scale_factor = 2}), R(2, 1, 8, 8), R(3, 1, 12, 9)},
      {function(x) return F.interpolate(F.avg_pool2d(x, 2), {size = {x:size(3), x:size(4)}}) end, R(2, 1, 8, 8), R(3, 1, 12, 10)},
      {function(x) return x:view(x:numel()):sum() / x:numel() end, R(2, 5), R(3, 4)}}
    for i, m in ipairs(cases) do
      local traced = jit.trace(m[1], m[2])
      traced:save(path)
      for _, t in ipairs {traced, jit.load(path), jit.freeze(jit.load(path))} do
        for k = 2, #m do helper.close(t(m[k]), m[1](m[k]), ("model %d, input %d"):format(i, k), 1e-5) end
      end
    end
    local tensors, json = core.read_safetensors(path)    -- the last one's, as version 3 had its batch
    local p, names, list = core.json_decode(json), {}, {}
    for name, t in pairs(tensors) do names[#names + 1], list[#list + 1] = name, t end
    local function with_size(size)
      p.tycho_program.version, p.tycho_program.nodes[1].args.size = 3, {size}
      core.write_safetensors(path, names, list, core.json_encode(p))
      return jit.load(path)
    end
    helper.close(with_size({batch = 5})(R(4, 5)):mul(0), tycho.tensor(0))
    helper.fails("follows dim 3, which isn't free", with_size, {size = 5, of = {3}})
    helper.fails("has a bad size", with_size, {size = 0.5, of = {1}})
    helper.fails("has a bad size", with_size, {size = 5, of = {1}, plus = "1"})
  end)

  it("can't name what is no op, use what isn't there, or be of a later version", function()
    with(bytes)
    local tensors, json = core.read_safetensors(path)
    local names, list = {}, {}
    for name, t in pairs(tensors) do names[#names + 1], list[#list + 1] = name, t end
    local function damaged(change, text)
      local p = core.json_decode(json)
      change(p.tycho_program)
      core.write_safetensors(path, names, list, core.json_encode(p))
      helper.fails(text, jit.load, path)
    end
    damaged(function(p) p.version = 9 end, "is of version 9, this library reads up to 8")
    damaged(function(p) p.no_backward = 1 end, "no_backward must be true")
    damaged(function(p) p.one_dtype = "float32" end, "one_dtype must be true")
    damaged(function(p) p.tensors[1].same = "x" end, "can't alias 'x'")
    damaged(function(p) p.tensors[2].same = p.tensors[1].name end, "can't alias '")
    damaged(function(p) p.nodes[1].op = "os_execute" end, "node 1 has an op that a trace can't have: os_execute")
    damaged(function(p) p.nodes[1].op = "adamw_step" end, "has an op that a trace can't have")
    damaged(function(p) p.nodes[1].args.x = {v = 99} end, "uses an undefined value")
    damaged(function(p) p.nodes[1].args.code = "x" end, "has no parameter 'code'")
    damaged(function(p) p.nodes[2].out = {1} end, "defines a value that exists already")
    damaged(function(p) p.nodes[2].out = {} end, "has 0 results")
    damaged(function(p) p.nodes[2].inplace = true end, "relu")
    damaged(function(p) p.tensors[1].name = "nope" end, "tensor 1 isn't in the file")
    damaged(function(p) p.tensors[1].kind = "function" end, "has no valid kind")
    damaged(function(p) p.results = {v = 50} end, "the result uses an undefined value")
    damaged(function(p) p.inputs[1].shape[1] = -3 end, "has size -3")
    with(bytes)
    tycho.save(path, {a = 1})
    helper.fails("it holds no traced program", jit.load, path)
  end)

  it("trials with other sizes leave no error behind, of labels of the function's own for one", function()
    local y = tycho.tensor({1, 3, 2, 3}, {dtype = "int64"})
    local x = tycho.randn(4, 3)
    local traced = tycho.jit.trace(function(z) return tycho.cross_entropy(z, y) end, x)
    helper.close(traced(x), tycho.cross_entropy(x, y))
  end)

  it("a constant's name is none of a part's", function()
    local Net = nn.Module:extend("Net")
    function Net:init() self.constant = nn.ParameterList {tycho.ones(1), tycho.full({1}, 2), tycho.full({1}, 3)} end
    local k = tycho.full({1}, 100)
    function Net:forward(x) return x * self.constant[3] + k end
    local net = Net()
    local traced = tycho.jit.trace(net, tycho.ones(1))
    assert.equal(103, traced(tycho.ones(1)):item())
  end)

  it("freeze folds batch norm into what convolution there is before it; a batch's own statistics stay", function()
    for kind, case in pairs {conv1d = {nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), {2, 3, 8}},
        conv3d = {nn.Conv3d(2, 4, 3), nn.BatchNorm3d(4), {2, 2, 5, 4, 6}},
        transposed = {nn.ConvTranspose2d(3, 4, 3, {stride = 2}), nn.BatchNorm2d(4), {2, 3, 4, 4}},
        grouped = {nn.Conv2d(4, 6, 3, {groups = 2, bias = false}), nn.BatchNorm2d(6, {affine = false}), {2, 4, 5, 5}}} do
      local net = nn.Sequential(case[1], case[2], nn.ReLU()):train()
      for _ = 1, 3 do net(tycho.randn(case[3]) * 2 + 1) end
      local x = tycho.randn(case[3])
      local want = net:eval()(x)
      local frozen = jit.freeze(jit.trace(net, x))
      assert.is_nil(frozen:graph():find "batch_norm", kind)
      helper.close(frozen(x), want, kind, 1e-5)
    end
    local own = nn.Sequential(nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2, {track_running_stats = false})):eval()
    local x = tycho.randn(2, 2, 5, 5)
    helper.close(jit.freeze(jit.trace(own, x))(x), own(x), "own statistics", 1e-6)
    local grouped = nn.Sequential(nn.ConvTranspose2d(4, 4, 3, {groups = 2}), nn.BatchNorm2d(4)):eval()
    x = tycho.randn(2, 4, 5, 5)
    helper.close(jit.freeze(jit.trace(grouped, x))(x), grouped(x), "not folded", 1e-6)
  end)

  it("runs on another device than it was traced on, where that hasn't all of its ops", function()
    local x = tycho.randn(5, 2, 4, {device = "cpu"}):log_softmax(3)
    local targets = tycho.tensor({{2, 3}, {3, 3}}, {dtype = "int64", device = "cpu"})
    local function loss(logs, labels) return F.ctc_loss(logs, labels, {5, 4}, {2, 1}) end
    local device = tycho.ones(1).device
    local there = jit.trace(loss, x, targets):to(device)
    x = x:to(device):requires_grad_()
    local y = there(x, targets:to(device))
    helper.close(y:detach(), loss(x:detach(), targets:to(device)), "a loss", 1e-6)
    y:backward()
    local slopes = x.grad
    x.grad = nil
    loss(x, targets:to(device)):backward()
    helper.close(slopes, x.grad, "its gradient", 1e-6)
  end)

  it("takes an operand that another size would have computed", function()
    local p, q = tycho.tensor {1, 2, 3}, tycho.tensor {4, 5, 6}
    local function fn(x)
      local a = p * 2
      return x + (x:size(1) == 4 and q or a)
    end
    local traced = tycho.jit.trace(fn, tycho.ones(4, 3))
    assert.is_true(traced(tycho.zeros(4, 3)):equal(fn(tycho.zeros(4, 3))))
  end)
end)
