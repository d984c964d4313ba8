-- Bugs that were, found by a reader.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, data, func = tycho.nn, tycho.optim, tycho.data, tycho.func
local fails, close = helper.fails, helper.close

local function ones(...) return nn.Parameter(tycho.ones(...)) end

describe("a state dict of an optimizer", function()
  -- One with a count of its own, a number for each row and column, and a wider dtype than the parameter's.
  local Own = optim.Optimizer:extend("Own", {lr = 0.1})
  function Own:new_state(p, _, s)
    s.seen, s.calls = tycho.zeros({}, {dtype = "int64"}), 0
    s.rows, s.columns = tycho.zeros(p.shape[1]), tycho.zeros(1, p.shape[2], {dtype = "float64"})
  end
  function Own:rule(group, p, g, s, _, write)
    s.calls = s.calls + 1
    write(s.seen, s.seen + 1)
    write(s.rows, s.rows + g:mean(2))
    write(s.columns, s.columns + g:mean(1, {keepdim = true}))
    write(p, p - group.lr * g)
  end

  it("holds what the program's own class makes, and is loaded #cpu", function()
    local p, q = ones(2, 3), ones(2, 3)
    local opt, other = Own({p}), Own({q})
    p.grad = tycho.ones(2, 3)
    opt:step()
    other:load_state_dict(opt:state_dict())
    local s = other.state[q]
    assert.same({1, "int64", "float64", 1}, {s.seen:item(), s.seen.dtype, s.columns.dtype, s.calls})
    close(s.rows, tycho.ones(2))
    q.grad = tycho.ones(2, 3)
    other:step()
    assert.same({2, 2}, {s.seen:item(), s.calls})
  end)

  it("doesn't fit another shape, or a number in place of a tensor #cpu", function()
    local p = ones(2, 3)
    local opt = Own({p})
    p.grad = tycho.ones(2, 3)
    opt:step()
    local d = opt:state_dict()
    d.state[1].rows = tycho.zeros(3)
    fails("load_state_dict: 'rows' of parameter 1 has shape 3; it must be 2", opt.load_state_dict, opt, d)
    d.state[1].rows = 1
    fails("load_state_dict: 'rows' of parameter 1 must be a tensor, got 1", opt.load_state_dict, opt, d)
    d.state[1].rows = nil
    fails("load_state_dict: the state of parameter 1 has no 'rows'", opt.load_state_dict, opt, d)
  end)

  it("shares no table of settings", function()
    local a, b = optim.Adam({ones(1)}), optim.Adam({ones(1)})
    local d = a:state_dict()
    a.param_groups[1].betas[1] = 0.5
    assert.equal(0.9, d.param_groups[1].betas[1])
    b:load_state_dict(d)
    b.param_groups[1].betas[1] = 0.25
    assert.equal(0.9, d.param_groups[1].betas[1])
  end)

  it("keeps L-BFGS's lists as they were", function()
    local p = nn.Parameter(tycho.tensor({1.5, -2}))
    local opt = optim.LBFGS({p}, {max_iter = 3})
    local function closure()
      opt:zero_grad()
      local loss = ((p * tycho.tensor({1, 10})) ^ 4):sum() + (p ^ 2):sum()
      loss:backward()
      return loss
    end
    opt:step(closure)
    local d = opt:state_dict()
    local n = #d.state[1].dirs
    opt:step(closure)
    assert.equal(n, #d.state[1].dirs)
  end)
end)

describe("optimizers", function()
  it("have tables of settings of their own", function()
    local a, b = optim.Muon({ones(2, 2)}), optim.Muon({ones(2, 2)})
    a.param_groups[1].ns_coefficients[1] = 0
    assert.equal(3.4445, b.param_groups[1].ns_coefficients[1])
    assert.equal(3.4445, optim.Muon({ones(2, 2)}).param_groups[1].ns_coefficients[1])
    local r = optim.Rprop({{params = {ones(1)}}, {params = {ones(1)}}}, {etas = {0.5, 1.2}})
    r.param_groups[1].etas[1] = 0.25
    assert.equal(0.5, r.param_groups[2].etas[1])
  end)
end)

describe("functional_call", function()
  local Slow = nn.Module:extend("Slow")
  function Slow:init()
    self.l = nn.Linear(2, 2)
    self:register_buffer("calls", tycho.zeros({}))
  end
  function Slow:forward(x)
    if coroutine.running() then coroutine.yield() end
    self.calls = self.calls + 1
    return self.l(x)
  end

  it("leaves what forward assigns", function()
    local net = Slow()
    local thread = coroutine.create(func.functional_call)
    coroutine.resume(thread, net, {["l.bias"] = tycho.zeros(2)}, tycho.ones(1, 2))
    assert(coroutine.resume(thread))
    assert.equal(1, net.calls:item())
  end)

  it("refuses another coroutine while one is within, and restores", function()
    local net = Slow()
    local weight, x = net.l.weight, tycho.ones(1, 2)
    local first = coroutine.create(func.functional_call)
    assert(coroutine.resume(first, net, {["l.weight"] = tycho.zeros(2, 2)}, x))
    local second = coroutine.create(func.functional_call)
    local ok, err = coroutine.resume(second, net, {["l.weight"] = tycho.ones(2, 2)}, x)
    assert.is_false(ok)
    assert.is_truthy(err:find("functional_call: another coroutine is within a functional_call of this Slow", 1, true), err)
    local _, y = coroutine.resume(first)
    close(y, net.l.bias:view(1, 2))
    assert.is_true(rawequal(weight, net.l.weight))
    second = coroutine.create(func.functional_call)
    assert(coroutine.resume(second, net, {["l.weight"] = tycho.ones(2, 2)}, x))
    local _, z = coroutine.resume(second)
    close(z, net.l.bias:view(1, 2) + 2)
  end)

  it("may stand in one another", function()
    local net = nn.Linear(2, 2, {bias = false})
    local Outer = nn.Module:extend("Outer")
    function Outer:init() self.net = net end
    function Outer:forward(x) return func.functional_call(net, {weight = tycho.zeros(2, 2)}, x), net(x) end
    local y, z = func.functional_call(Outer(), {["net.weight"] = tycho.ones(2, 2)}, tycho.ones(1, 2))
    close(y, tycho.zeros(1, 2))
    close(z, tycho.full({1, 2}, 2))
  end)
end)

describe("detect_anomaly", function()
  it("ends when the last of two coroutines has left it", function()
    local function watch() tycho.autograd.detect_anomaly(coroutine.yield) end
    local a, b = coroutine.create(watch), coroutine.create(watch)
    coroutine.resume(a)
    coroutine.resume(b)
    coroutine.resume(a)
    assert.is_true(tycho.autograd.is_anomaly_enabled())
    coroutine.resume(b)
    assert.is_false(tycho.autograd.is_anomaly_enabled())
  end)
end)

describe("a scope", function()
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

describe("Sequential", function()
  it("keeps what a replaced forward, or a layer of the program's own within an encoder, has kept", function()
    local kept
    local lin = nn.Linear(2, 2)
    function lin:forward(x)
      kept = nn.Linear.forward(self, x)
      return kept
    end
    nn.Sequential(lin, nn.ReLU())(tycho.ones(1, 2))
    assert.equal("1x2", tostring(kept.shape))
    local Layer = nn.Module:extend("Layer")
    function Layer:init() self.l = nn.Linear(4, 4) end
    function Layer:forward(x)
      self.last = self.l(x)
      return self.last
    end
    local encoder = nn.TransformerEncoder(Layer(), 1)
    nn.Sequential(encoder, nn.Linear(4, 4))(tycho.ones(1, 3, 4))
    assert.equal("1x3x4", tostring(encoder.layers[1].last.shape))
  end)

  it("refuses a list with a hole", function()
    fails("Sequential: item 2 of the list is nil", nn.Sequential, {nn.ReLU(), nil, nn.ReLU()})
  end)
end)

describe("a module", function()
  it("that holds its compiled stand-in is collected", function()
    local gone = setmetatable({}, {__mode = "v"})
    do
      local net = nn.Linear(2, 2)
      net.fast = tycho.compile(net)
      gone[1] = net
    end
    for _ = 1, 3 do collectgarbage() end
    assert.is_nil(gone[1])
  end)

  it("keeps a field whose new value is refused", function()
    local m = nn.Module()
    m["a.b"] = 3
    fails("names can't have dots", function() m["a.b"] = nn.ReLU() end)
    assert.equal(3, m["a.b"])
    local Net = nn.Module:extend("Net")
    function Net:block() end
    fails("the class has a method of that name", function() Net().block = nn.ReLU() end)
  end)
end)

describe("a number -0", function()
  it("keeps its sign", function()
    local zero = -1 / math.huge
    local x = tycho.ones(1)
    assert.equal(-math.huge, 1 / (x * zero)[1])
    assert.equal(-1, tycho.copysign(x, zero)[1])
    assert.equal(-math.huge, 1 / x:clone():fill_(zero)[1])
    assert.equal(-math.huge, 1 / tycho.ones(2, 2):t():select(1, 1):fill_(zero)[1])
    assert.equal("int64", (tycho.ones(1, {dtype = "int64"}) + zero).dtype)
  end)
end)

describe("datasets", function()
  it("joined have the sizes that they have now", function()
    local set = data.TensorDataset(tycho.range(1, 8))
    local part = data.Subset(set, {1, 2, 3})
    local both = data.ConcatDataset {part, set}
    assert.equal(11, both:size())
    part.indices = {1, 2, 3, 4}
    assert.equal(12, both:size())
    assert.equal(8, both:get(12))
  end)

  it("without items have no random positions", function()
    fails("RandomSampler: num_samples is 5, but there are no items", data.RandomSampler, 0, {num_samples = 5})
  end)
end)
