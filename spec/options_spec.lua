-- Options, states and corner values that once differed from PyTorch's, or that nonsense was taken for.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails, close = helper.fails, helper.close
local nn, F, optim = tycho.nn, tycho.nn.functional, tycho.optim
local L = optim.lr_scheduler
local function parameter(n) return tycho.zeros(n or 1, {requires_grad = true}) end

describe("schedules", function()
  it("begin at last_epoch, from what the groups began with", function()
    local function run(from, to, lr)
      local opt = optim.SGD({{params = {parameter()}, initial_lr = 1, lr = lr}}, {lr = 1})
      local s, rates = L.CosineAnnealingLR(opt, 10, {last_epoch = from}), {}
      for e = from + 2, to do
        rates[e] = opt.param_groups[1].lr
        s:step()
      end
      return rates, opt.param_groups[1].lr
    end
    local whole, last = run(-1, 8)
    local first, lr = run(-1, 5)
    local rest, same = run(4, 8, lr)             -- as PyTorch: 4 is the epoch that has ended, and the rate that holds is the next one's
    assert.same({whole[1], whole[2]}, {first[1], first[2]})
    assert.near(last, same, 1e-12)
    assert.near(whole[6], rest[6], 1e-12)
    fails("StepLR: last_epoch is given, but group 1 of the optimizer has no initial_lr", L.StepLR, optim.SGD({parameter()}, {lr = 1}), 2,
      {last_epoch = 3})
  end)

  it("leave the optimizer's rate to its own state, and tell which they set last", function()
    local opt = optim.SGD({parameter()}, {lr = 1})
    local s = L.StepLR(opt, 100)
    s:step()
    opt.param_groups[1].lr = 0.25
    local other = optim.SGD({parameter()}, {lr = 1})
    local t = L.StepLR(other, 100)
    other:load_state_dict(opt:state_dict())
    t:load_state_dict(s:state_dict())
    assert.equal(0.25, other.param_groups[1].lr)
    assert.same({1}, t:get_last_lr())
    other:load_state_dict {state = {}, param_groups = {{lr = -1.5e-17, momentum = 0, params = {0}}}}     -- as a schedule may leave it
  end)

  it("refuse what is none, and change nothing then", function()
    local opt = optim.SGD({parameter()}, {lr = 0.1})
    fails("SequentialLR: schedulers: item 1 must be a scheduler, got 'a'", L.SequentialLR, opt, {"a"}, {})
    fails("SequentialLR: milestones must be a list of epochs", L.SequentialLR, opt, {L.StepLR(opt, 1)}, 3)
    fails("ChainedScheduler: schedulers: item 2", L.ChainedScheduler, opt, {L.StepLR(opt, 1), 5})
    assert.equal(0.1, opt.param_groups[1].lr)
    fails("LambdaLR: lr_lambda must give a number, got 'x' for epoch 0", L.LambdaLR, opt, function() return "x" end)
    fails("MultiplicativeLR: lr_lambda must be a function", L.MultiplicativeLR, opt, "x")
    fails("SWALR: swa_lr must be a number", L.SWALR, opt, {{}})
    fails("LinearLR: start_factor must be above 0", L.LinearLR, opt, 0)
    fails("T_0 must be a whole number from 1", L.CosineAnnealingWarmRestarts, opt, 1.5)
    fails("gamma must be a number, got nan", L.StepLR, opt, 1, 0 / 0)
    fails("MultiStepLR: milestones: 1 must be a whole number", L.MultiStepLR, opt, {"a"})
    fails("step needs the metric", function() L.ReduceLROnPlateau(opt):step(io.stdout) end)
    fails("min_lr lists 2 rates, the optimizer has 1 groups", L.ReduceLROnPlateau, opt, {min_lr = {0, 0}})
  end)
end)

describe("what isn't meant", function()
  it("is told by name, also where a method is written in Lua", function()
    local x, opt = tycho.ones(2), optim.SGD({parameter()}, {lr = 1})
    local scaler = tycho.amp.GradScaler {enabled = helper.device ~= "cpu"}
    local D, A, T = tycho.distributions, tycho.autograd, tycho.data.transforms.functional
    for text, fn in pairs {
      ["retain_grad: argument 1 must be a tensor, got nil; a method is called with a colon"] = function() x.retain_grad() end,
      ["new_zeros: argument 1 must be a tensor"] = function() x.new_zeros(3) end,
      ["reshape_as: argument 2 must be a tensor"] = function() x:reshape_as(5) end,
      ["call it with a colon: scaler:step(...)"] = function() scaler.step(opt) end,
      ["step: argument 1 must be an optimizer, got 5"] = function() scaler:step(5) end,
      ["GradScaler: growth_factor must be a number, got 'x'"] = function() tycho.amp.GradScaler {growth_factor = "x"} end,
      ["GradScaler: growth_interval must be a whole number from 1"] = function() tycho.amp.GradScaler {growth_interval = 0} end,
      ["autocast: enabled must be true or false, got 1"] = function() tycho.amp.autocast({enabled = 1}, print) end,
      ["is_autocast_enabled: argument 1 must be 'cpu' or 'cuda', got 5"] = function() tycho.amp.is_autocast_enabled(5) end,
      ["gradcheck: argument 1 must be a function"] = function() A.gradcheck("x", {x}) end,
      ["gradcheck: argument 2 must be a tensor or a list of tensors"] = function() A.gradcheck(print, 5) end,
      ["detect_anomaly: argument 1 must be a function"] = function() A.detect_anomaly() end,
      ["padding_idx 0 is out of range for 3 entries: they count from 1"] = function() nn.Embedding(3, 2, {padding_idx = 0}) end,
      ["Subset: index 0 is out of range: items count from 1, to 10"] = function()
        tycho.data.Subset(tycho.data.TensorDataset(tycho.ones(10)), {0})
      end,
      ["jacobian: argument 1 must be a function"] = function() A.functional.jacobian(5, x) end,
      ["jacobian: input 2 must be a floating tensor, got nil"] = function() A.functional.jacobian(math.max, {x, nil, x}) end,
      ["jvp: input 2 must be a tensor or a table of tensors, got nil"] = function()
        tycho.func.jvp(math.max, {x, nil, x}, {x, nil, x})
      end,
      ["hessian: argument 1 must be a function"] = function() A.functional.hessian(x, x) end,
      ["hvp: argument 3 must be a tensor or a list of tensors, got 5"] = function() A.functional.hvp(tycho.sum, x, 5) end,
      ["autograd.backward: argument 1 must be a tensor"] = function() A.backward(5) end,
      ["summary: argument 1 must be a module"] = function() tycho.nn.summary() end,
      ["apply: argument 1 must be a function"] = function() tycho.nn.Linear(1, 1):apply(5) end,
      ["relu: argument 1 must be a tensor, got 5"] = function() tycho.nn.functional.relu(5, {inplace = true}) end,
      ["update_bn: argument 2 must be a module"] = function() optim.swa_utils.update_bn({}, 5) end,
      ["collate: a list of items is needed"] = function() tycho.data.collate() end,
      ["affine: translate must be two numbers, got 5"] = function() T.affine(tycho.ones(3, 4, 4), 0, 5, 1, 0) end,
      ["gaussian_blur: sigma must be a number or two"] = function() T.gaussian_blur(tycho.ones(3, 4, 4), 3, true) end,
      ["perspective: startpoints and endpoints must be lists"] = function() T.perspective(tycho.ones(3, 4, 4), 5, 5) end,
      ["save_curve: argument 2 must be a list of numbers"] = function() tycho.utils.save_curve("x", {{}}) end,
      ["Exponential: log_prob: a value must be from 0"] = function() D.Exponential(1):log_prob(-1) end,
      ["Poisson: log_prob: a value must be a whole number from 0"] = function() D.Poisson(1):log_prob(0.5) end,
      ["Bernoulli: log_prob: a value must be 0 or 1"] = function() D.Bernoulli(0.5):log_prob(2) end,
      ["Beta: log_prob: a value must be in 0..1"] = function() D.Beta(2, 2):log_prob(1.5) end,
      ["Binomial: log_prob: a value must be a whole number from 0 to total_count"] = function() D.Binomial(3, 0.5):log_prob(5) end,
      ["Binomial: total_count must not be negative"] = function() D.Binomial(-1, 0.5) end,
      ["Normal: call it with a colon: dist:log_prob(x)"] = function() D.Normal(0, 1).log_prob(3) end,
      ["Normal: log_prob needs a number or a tensor, got 'x'"] = function() D.Normal(0, 1):log_prob("x") end,
      ["binary_cross_entropy: argument 1 (x) must lie in 0..1, its elements are from 2 to 2"] = function()
        tycho.binary_cross_entropy(tycho.full({2}, 2), x)
      end,
      ["rrelu: lower 2 is above upper 1"] = function() tycho.rrelu(x, 2, 1) end,
      ["cdist: p must not be negative"] = function() tycho.cdist(tycho.ones(2, 2), tycho.ones(2, 2), -1) end,
      ["renorm: p must be above 0"] = function() tycho.ones(2, 2):renorm(-1, 1, 1) end,
      ["diff: n must not be negative"] = function() tycho.ones(3):diff(-1) end,
      ["cauchy_: sigma must be a number above 0, got -1"] = function() x:cauchy_(0, -1) end,
      ["get_rank: "] = function() tycho.distributed.get_rank(5) end,
      ["get_rng_state: the device must be a GPU's number or its name, such as 'cuda:0'"] = function() tycho.cuda.get_rng_state({}) end,
    } do
      -- where values are on a device nobody waits for them
      local value = text:find "a value must be" or text:find "total_count" or text:find "0%.%.1, its"
      if helper.device == "cpu" or not value then fails(text, fn) end
    end
    close(D.Exponential(1, {validate_args = false}):log_prob(-1), tycho.tensor(1), nil, 0)
    close(D.Normal(0, 1):perplexity(), tycho.tensor(math.sqrt(2 * math.pi * math.exp(1))), nil, 1e-5)
  end)
end)

describe("parametrizations", function()
  local P = nn.utils.parametrize
  local Symmetric = nn.Module:extend("Symmetric")
  function Symmetric:forward(x) return x:triu() + x:triu(1):t() end

  it("compute a parameter wherever it is asked for", function()
    local m = nn.Linear(3, 3)
    local opt = optim.SGD(m:parameters(), {lr = 0.1})
    assert.equal(m, P.register_parametrization(m, "weight", Symmetric()))
    assert.is_true(P.is_parametrized(m, "weight") and P.is_parametrized(m) and not P.is_parametrized(m, "bias"))
    local names = {}
    for name in m:named_parameters() do names[#names + 1] = name end
    assert.same({"bias", "parametrizations.weight.original"}, names)
    local before = m.weight:clone()
    m(tycho.ones(2, 3)):pow(2):sum():backward()
    opt:step()                                                     -- of the parameter that it had
    assert.is_true(m.weight:equal(m.weight:t()) and not m.weight:equal(before))
    local copy = m:clone()
    assert.is_true(copy.weight:equal(m.weight))
    tycho.no_grad(function() copy.parametrizations.weight.original:zero_() end)
    assert.is_false(copy.weight:equal(m.weight))
    local step = tycho.compile(function(x) return m(x) end)
    for k = 1, 4 do
      tycho.no_grad(function() m.parametrizations.weight.original:fill_(k) end)
      close(step(tycho.ones(1, 3)):detach(), tycho.full({1, 3}, 3 * k) + m.bias:detach(), "compiled", 1e-5)
    end
    local value = m.weight:detach():clone()
    assert.equal(m, P.remove_parametrizations(m, "weight"))
    assert.is_true(m.weight:equal(value) and m.weight.is_leaf and not P.is_parametrized(m))
    P.remove_parametrizations(copy, "weight", {leave_parametrized = false})
    assert.equal(0, copy.weight:abs():sum():item())
  end)

  it("are set by what they would give, and follow one another", function()
    local m = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    m.weight = tycho.full({2, 3}, 2)
    close(m.weight:detach(), tycho.full({2, 3}, 2), nil, 1e-6)
    close(m.parametrizations.weight.original0:detach(), tycho.full({2, 1}, 12 ^ 0.5), nil, 1e-6)
    local other = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    other:load_state_dict(m:state_dict())
    assert.is_true(other.weight:equal(m.weight))
    tycho.manual_seed(1)                   -- of singular values that are nearly equal the iteration finds the largest one slowly
    local square = nn.Linear(3, 3)
    P.register_parametrization(square, "weight", Symmetric())
    nn.utils.parametrizations.spectral_norm(square)
    for _ = 1, 30 do square(tycho.ones(1, 3)) end
    local largest = tycho.linalg.svdvals(square:eval().weight:detach()):max():item()
    assert.near(1, largest, 1e-3)
    fails("a parametrized tensor can only be set to a tensor, got 5", function() m.weight = 5 end)
    fails("'bias' isn't parametrized", P.remove_parametrizations, m, "bias")
    fails("with several original tensors", P.remove_parametrizations, m, "weight", {leave_parametrized = false})
    fails("has no parameter or buffer 'x'", P.register_parametrization, m, "x", Symmetric())
    fails("argument 3 must be a module", P.register_parametrization, m, "bias", 5)
  end)
end)

describe("what would end badly", function()
  it("ends soon, or isn't begun", function()
    local m = nn.Linear(1, 1)
    for _ = 1, 1000 do m = nn.Sequential(m) end
    local from = os.clock()
    local ok, e = pcall(m, tycho.ones(1, 2))
    assert.is_false(ok)
    assert.truthy(e:find "^spec/options_spec.lua:%d+: in Sequential > 0 %(Sequential%) > 0" and e:find "linear: ")
    local round = nn.Sequential()
    round:append(round)
    assert.is_false(pcall(round, tycho.ones(1)))
    assert.is_true(os.clock() - from < 20)                         -- it was minutes: each error walked the whole stack again
    fails("combinations: there are too many combinations of 20 of 40 elements", tycho.combinations, tycho.ones(40), 20)
    assert.equal("45x2", tostring(tycho.combinations(tycho.ones(10), 2).shape))
    assert.equal("55x2", tostring(tycho.combinations(tycho.ones(10), 2, {with_replacement = true}).shape))
  end)

  it("and numbers beyond all measure are told, or make no difference", function()
    assert.equal("40x39", tostring(tycho.combinations(tycho.ones(40), 39).shape))
    assert.equal("0x2147483647", tostring(tycho.combinations(tycho.ones(40), 2 ^ 31 - 1).shape))
    fails("too many", tycho.combinations, tycho.ones(3), 1e12, {with_replacement = true})
    assert.equal("1x100000", tostring(tycho.combinations(tycho.ones(1), 1e5, {with_replacement = true}).shape))
    helper.close(tycho.combinations(tycho.range(1, 3), 2, {with_replacement = true}),
      tycho.tensor {{1, 1}, {1, 2}, {1, 3}, {2, 2}, {2, 3}, {3, 3}}, "choices", 0)
    local function counts(...) return tycho.tensor({...}, {dtype = "int64"}) end
    helper.close(tycho.repeat_interleave(tycho.tensor {10, 20, 30}, counts(2, 0, 3)), tycho.tensor {10, 10, 30, 30, 30}, "repeats", 0)
    assert.equal(0, tycho.repeat_interleave(tycho.ones(2), counts(0, 0)):numel())
    local again = tycho.compile(function(n) return tycho.repeat_interleave(tycho.range(1, 3), n, {output_size = 5}) end)
    for _ = 1, 3 do assert.same({1, 1, 2, 3, 3}, again(counts(2, 1, 2)):totable()) end
    assert.is_true(again:report()[1].compiled)
    if helper.device == "cpu" then
      fails("output_size is 4, but the repeats add up to 5", tycho.repeat_interleave, tycho.ones(2), counts(2, 3), {output_size = 4})
    end
    assert.same({3, 1}, tycho.ones(2):index_put({counts(1, 1)}, tycho.ones(2), true):totable())        -- accumulate, by its place
    assert.same({3, 1}, tycho.ones(2):put(counts(1, 1), tycho.ones(2), true):totable())
    fails("-1 repeats are negative", tycho.repeat_interleave, tycho.ones(2), counts(2, -1))
    fails("too many", tycho.repeat_interleave, tycho.ones(2), counts(2 ^ 62, 2 ^ 62))
    local x = tycho.range(1, 24):reshape(1, 2, 3, 4, 1)
    local y = tycho.cat({x, x}, 1)
    y = tycho.cat({y, y}, 3)
    y = tycho.cat({y, y, y}, 4)
    helper.close(x:tile(2, 1, 2, 3, 2), tycho.cat({y, y}, 5), "tiles", 0)
    fails("out of memory", x.tile, x, 1, 2 ^ 30, 1, 1, 2 ^ 10)
    fails("nn.functional has no 'cos': it is tycho.cos", function() return F.cos end)
    fails("nn.functional has no 'reluu'; did you mean 'relu'?", function() return F.reluu end)
    fails("precision must be at most 64", tycho.set_printoptions, {precision = 1e8})
    fails("index 9007199254740991 is out of range for dim 1 of shape 2", function() return tycho.ones(2)[2 ^ 53 - 1] end)
    fails("from 1 to", tycho.set_num_threads, 1e6)
    fails("too large with antialias", F.interpolate, tycho.ones(1, 1, 4, 4), {antialias = true, mode = "bilinear", scale_factor = 1e300})
    fails("size 0 of dim 3 is too small", F.interpolate, tycho.ones(1, 1, 4, 4), {antialias = true, mode = "bicubic", scale_factor = 1e-3})
    assert.equal("AdaptiveAvgPool2d(output_size=falsex3)", tostring(nn.AdaptiveAvgPool2d({false, 3})))
    fails("/dev/zero: not a regular file", tycho.data.datasets.TextFile, {root = "/dev/zero"})
  end)

  it("and curves of any numbers are drawn", function()
    local path = os.tmpname()
    for _, c in ipairs {{{1e17, 1e17}}, {{-1e308, 1e308}}, {{1, 2, 3}, {0, 1e300, 1}}, {{5}}, {{1, 2, 3}, {3, 2, 1}}, {{0 / 0, 1 / 0}}} do
      tycho.utils.save_curve(path, c[1], {xs = c[2]})
      assert.equal("400x640x3", tostring(tycho.data.read_image(path):permute(2, 3, 1).shape))
    end
    fails("xs must be a list of numbers", tycho.utils.save_curve, path, {1, 2}, {xs = {0, 1 / 0}})
    fails("xs has 1 numbers, argument 2 has 2", tycho.utils.save_curve, path, {1, 2}, {xs = {1}})
    os.remove(path)
  end)

  it("and a schedule or a search that an error ended goes on", function()
    local function weights() return {tycho.ones(3, {requires_grad = true})} end
    local S = tycho.optim.lr_scheduler
    local o, other = tycho.optim.SGD(weights(), {lr = 0.1}), tycho.optim.SGD(weights(), {lr = 0.1})
    local warm = S.CosineAnnealingWarmRestarts(o, {T_0 = 4})
    for _, epoch in ipairs {2 ^ 63, 1 / 0} do fails("below 2^53", warm.step, warm, epoch) end
    warm:step(2 ^ 52 + 1)
    fails("schedulers: item 1 belongs to another optimizer", S.SequentialLR, o, {S.LinearLR(other), S.StepLR(o, 3)}, {5})
    local Mine = S.LRScheduler:extend("Mine")
    function Mine:lr_at() return "x" end
    fails("the rate of epoch 0 must be a number, got 'x'", Mine, o)
    fails("what scale_fn gives must be a number", S.CyclicLR, o,
      {base_lr = 0.1, max_lr = 1, scale_fn = function() return "x" end, cycle_momentum = false})
    local steps = S.StepLR(o, 3)
    fails("the last_epoch of a StepLR must be from -1 and below 2^53, got nan", steps.load_state_dict, steps, {last_epoch = 0 / 0})
    for _, search in ipairs {false, "strong_wolfe"} do
      for failing = 1, 8 do
        local w, n, bad = tycho.ones(3, {requires_grad = true}), 0, true
        local lbfgs = tycho.optim.LBFGS({w}, {lr = 0.1, line_search_fn = search})
        local function closure()
          n = n + 1
          if bad and n == failing then error("boom", 0) end
          lbfgs:zero_grad()
          local loss = (w * w * w * w):sum()
          loss:backward()
          return loss
        end
        pcall(lbfgs.step, lbfgs, closure)
        bad = false
        tycho.optim.LBFGS({w}):load_state_dict(lbfgs:state_dict())
        local loss
        for _ = 1, 15 do
          loss = lbfgs:step(closure)
          if loss:item() < 1e-3 then break end
        end
        assert.is_true(loss:item() < 1e-3, failing .. " " .. tostring(search))
      end
    end
  end)

  it("writes no file that isn't one #cpu", function()
    fails("/dev/full: not a regular file", tycho.save, "/dev/full", {a = tycho.ones(3)})
    fails("a file name must not contain a zero byte", tycho.save, "/tmp/a\0b", {a = tycho.ones(3)})
    fails("a file name must not contain a zero byte", tycho.load, "/tmp/a\0b")
  end)
end)

describe("gradients", function()
  it("of results are kept as all hooks leave them, once", function()
    for _, first in ipairs {true, false} do
      local a = tycho.ones(2, {requires_grad = true})
      local b = a * 2
      if first then
        b:retain_grad()
        b:retain_grad()
      end
      b:register_hook(function(g) return g * 10 end)
      if not first then b:retain_grad() end
      (b * 3):sum():backward()
      close(b.grad, tycho.full({2}, 30), nil, 0)
      close(a.grad, tycho.full({2}, 60), nil, 0)
    end
  end)

  it("may be asked for results alone", function()
    local a = tycho.ones(2, {requires_grad = true})
    local b = a * 2
    local loss = (b * b):sum()
    loss:backward {inputs = {b}, retain_graph = true}
    close(b.grad, tycho.full({2}, 4), nil, 0)
    assert.is_nil(a.grad)
    loss:backward {inputs = {a, b}}
    close(b.grad, tycho.full({2}, 8), nil, 0)
    close(a.grad, tycho.full({2}, 8), nil, 0)
    fails("backward: input 1 must be a tensor, got 'x'", function() loss:backward {inputs = {"x"}} end)
  end)

  it("keep their dtype, whatever a hook returns", function()
    local a = tycho.ones(3, {requires_grad = true})
    local b = a * 2
    b:register_hook(function(g) return g:long() end)
    fails("register_hook: the hook returned int64 on " .. a.device .. " for a gradient of float32", function() b:sum():backward() end)
  end)
end)

describe("optimizers", function()
  it("have all of PyTorch's settings", function()
    local p = parameter(3)
    local calls = 0
    local opt = optim.LBFGS({p}, {max_eval = 3, max_iter = 20})
    opt:step(function()
      calls = calls + 1
      opt:zero_grad()
      local loss = (p - tycho.tensor {1, 2, 3}):pow(4):sum()
      loss:backward()
      return loss
    end)
    assert.is_true(calls >= 3 and calls <= 5, calls)
    -- a float64 parameter's step sizes are float64
    local q = tycho.zeros(1, {dtype = "float64", requires_grad = true})
    local rprop = optim.Rprop({q}, {lr = 0.01})
    for _ = 1, 10 do
      q.grad = tycho.ones(1, {dtype = "float64"})
      rprop:step()
    end
    local want, size = 0, 0.01
    for k = 1, 10 do
      if k > 1 then size = size * 1.2 end
      want = want - size
    end
    close(q:detach(), tycho.tensor({want}, {dtype = "float64"}), "Rprop", 1e-14)
  end)

  it("are scheduled by a program's get_lr", function()
    local S = optim.lr_scheduler
    local Warm = S.LRScheduler:extend("Warm", "factor=0.5")     -- as PyTorch's: all groups at once
    function Warm:get_lr()
      local out = {}
      for i, group in ipairs(self.optimizer.param_groups) do
        out[i] = self.last_epoch == 0 and self.base_lrs[i] or group.lr * self.factor
      end
      return out
    end
    local opt = optim.SGD({{params = {parameter(1)}, lr = 8}, {params = {parameter(1)}}}, {lr = 1})
    local s = Warm(opt)
    s:step()
    s:step()
    assert.same({2, 0.25}, s:get_last_lr())
    local chained = S.SequentialLR(opt, {S.ConstantLR(opt), Warm(opt)}, {1})
    chained:step()
    assert.same({8, 1}, chained:get_last_lr())
    local function rates(make, n)          -- schedules of schedules begin at their own epoch 0, as others do
      local o, out = optim.SGD({parameter(1)}, {lr = 1}), {}
      local all = make(o)
      for i = 1, n do
        out[i] = o.param_groups[1].lr
        o:step()
        all:step()
      end
      return out
    end
    local function near(want, make)
      for i, lr in ipairs(rates(make, #want)) do assert.near(want[i], lr, 1e-12) end
    end
    local function first_half(o) return S.SequentialLR(o, {S.ConstantLR(o, 0.1, {total_iters = 9}), S.ExponentialLR(o, 0.5)}, {2}) end
    local function product(o) return S.ChainedScheduler {S.ConstantLR(o, 0.1, {total_iters = 2}), S.ExponentialLR(o, 0.5)} end
    near({0.1, 0.1, 1, 0.5, 1, 0.9}, function(o) return S.SequentialLR(o, {first_half(o), S.ExponentialLR(o, 0.9)}, {4}) end)
    near({1, 0.9, 0.1, 0.1, 1, 0.5}, function(o) return S.SequentialLR(o, {S.ExponentialLR(o, 0.9), first_half(o)}, {2}) end)
    near({0.1, 0.05, 0.25, 0.125, 1, 0.5}, function(o) return S.SequentialLR(o, {product(o), S.StepLR(o, 1, 0.5)}, {4}) end)
    near({1, 0.5, 0.1, 0.05, 0.25, 0.125}, function(o) return S.SequentialLR(o, {S.StepLR(o, 1, 0.5), product(o)}, {2}) end)
    local Wrong = S.LRScheduler:extend "Wrong"
    function Wrong:get_lr() return {1} end
    fails("Wrong: get_lr must give a list of 2 rates, one for each group, got 1", Wrong, opt)
  end)

  it("go around another: SAM", function()
    local SAM = optim.Optimizer:extend("SAM", {rho = 0.05, lr = 0.1})
    function SAM:init() self.base = optim.SGD(self.param_groups, {momentum = 0.9}) end
    function SAM:step(closure)
      local loss, before = closure(), {}
      tycho.no_grad(function()
        for _, group in ipairs(self.param_groups) do
          for _, p in ipairs(group.params) do
            before[p] = p:clone()
            p:add_(p.grad / p.grad:norm(), {alpha = group.rho})
          end
        end
      end)
      closure()
      tycho.no_grad(function() for p, was in pairs(before) do p:copy_(was) end end)
      self.base:step()
      return loss
    end
    local w = tycho.tensor({3, 4}, {dtype = "float64", requires_grad = true})
    local opt = SAM({w}, {rho = 0.5, lr = 0.1})
    assert.equal(0.5, opt.base.param_groups[1].rho)
    local function closure()
      opt:zero_grad()
      local loss = w:square():sum()
      loss:backward()
      return loss
    end
    assert.equal(25, opt:step(closure):item())
    close(w:detach(), tycho.tensor({3 - 0.1 * 2 * 3.3, 4 - 0.1 * 2 * 4.4}, {dtype = "float64"}), "one step", 1e-12)
    optim.lr_scheduler.StepLR(opt, 1, 0.1):step()
    assert.near(0.01, opt.base.param_groups[1].lr, 1e-15)
    fails("SGD: unknown option 'rho'", optim.SGD, {{params = {parameter(1)}, rho = 0.1}})
  end)

  it("call hooks around a step", function()
    local p = parameter(1)
    p.grad = tycho.ones(1)
    local opt, seen = optim.SGD({p}, {lr = 1}), {}
    local before = opt:register_step_pre_hook(function(o) seen[#seen + 1] = {"before", o == opt, p:item()} end)
    opt:register_step_post_hook(function() seen[#seen + 1] = {"after", true, p:item()} end)
    opt:step()
    before.remove()
    opt:step()
    assert.same({{"before", true, 0}, {"after", true, -1}, {"after", true, -2}}, seen)
    local scaler = tycho.amp.GradScaler {init_scale = 2}             -- its steps too
    opt:zero_grad()
    scaler:scale(p:sum()):backward()
    scaler:step(opt)
    assert.same({"after", true, -3}, seen[4])
    assert.equal(4, #seen)
    fails("register_step_post_hook: argument 1 must be a function", function() opt:register_step_post_hook(5) end)
  end)

  it("call hooks around state dicts", function()
    local p = parameter(1)
    p.grad = tycho.ones(1)
    local opt, seen = optim.SGD({p}, {lr = 1, momentum = 0.5}), {}
    opt:step()
    opt:register_state_dict_pre_hook(function(o) seen[#seen + 1] = o == opt and "asked" end)
    local named = opt:register_state_dict_post_hook(function(_, d) d.name = "mine" end)
    assert.equal("mine", opt:state_dict().name)
    opt:register_state_dict_post_hook(function(_, d) return {inner = d} end)
    local d = opt:state_dict()
    assert.equal("mine", d.inner.name)
    local before = opt:register_load_state_dict_pre_hook(function(_, given) return given.inner end)
    opt:register_load_state_dict_post_hook(function(o) seen[#seen + 1] = o == opt and "loaded" end)
    opt.param_groups[1].lr = 5
    opt:load_state_dict(d)
    assert.equal(1, opt.param_groups[1].lr)
    assert.same({"asked", "asked", "loaded"}, seen)
    before.remove()
    named.remove()
    assert.is_nil(opt:state_dict().inner.name)
    assert.is_false((pcall(opt.load_state_dict, opt, d)))
    fails("register_state_dict_post_hook: argument 1 must be a function", function() opt:register_state_dict_post_hook(5) end)
  end)

  it("limit gradients by a norm that is computed before", function()
    local p, q = parameter(2), parameter(1)
    p.grad, q.grad = tycho.tensor {3, 0}, tycho.tensor {4}
    local U = tycho.nn.utils
    local norm = U.get_total_norm({p.grad, q.grad})
    assert.near(5, norm:item(), 1e-6)
    assert.near(4, U.get_total_norm({p.grad, q.grad}, {norm_type = math.huge}):item(), 1e-6)
    U.clip_grads_with_norm_({p, q}, 1, norm)
    close(p.grad, tycho.tensor {0.6, 0}, nil, 1e-5)
    close(q.grad, tycho.tensor {0.8}, nil, 1e-5)
  end)

  it("check settings and states before anything changes", function()
    local p = parameter(2)
    p.grad = tycho.ones(2)
    fails("SGD: lr must be a number or a tensor of one element, got shape 2", optim.SGD, {p}, {lr = tycho.ones(2)})
    fails("Muon: ns_steps must be less than 100", optim.Muon, {parameter(2):view(1, 2):detach():requires_grad_()}, {ns_steps = 1e9})
    fails("Muon: ns_steps must be a whole number from 0", optim.Muon, {parameter(2)}, {ns_steps = -1})
    fails("Adafactor: eps must be two numbers from 0", optim.Adafactor, {p}, {eps = -1})
    fails("Adafactor: beta2_decay must be at most 0", optim.Adafactor, {p}, {beta2_decay = 1})
    fails("LBFGS: line_search_fn must be 'strong_wolfe', got 'x'", optim.LBFGS, {p}, {line_search_fn = "x"})
    fails("LBFGS: max_iter must be a whole number from 1", optim.LBFGS, {p}, {max_iter = 1.5})
    local lbfgs = optim.LBFGS({p})
    fails("the closure must not call step", function() lbfgs:step(function() return lbfgs:step(function() return 1 end) end) end)
    local adam = optim.Adam({p}, {lr = 0.1})
    adam:step()
    local function damaged(change)
      local d = adam:state_dict()
      change(d)
      return function() adam:load_state_dict(d) end
    end
    fails("'exp_avg' of parameter 1 must be a floating tensor, got 'x'", damaged(function(d) d.state[1].exp_avg = "x" end))
    fails("'exp_avg' of parameter 1 must be a floating tensor", damaged(function(d) d.state[1].exp_avg = tycho.ones(2):long() end))
    fails("'step' of parameter 1 must be a number", damaged(function(d) d.state[1].step = -1 end))
    fails("lr must be a number or a tensor of one element", damaged(function(d) d.param_groups[1].lr = tycho.ones(7) end))
    fails("group 1: parameter 1 must be a number, got 'x'", damaged(function(d) d.param_groups[1].params = {"x"} end))
  end)
end)

describe("forms", function()
  it("written as in PyTorch: that differ by release or by habit", function()
    local x = tycho.tensor({{1, 2, 4}, {3, 5, 9}})
    local function same(want, got) helper.close(got, want, nil, 1e-5) end
    same(x:var(2, {correction = 0}), x:var(2, false))
    same(x:var({correction = 0}), x:var(false))
    same(x:std(1, {keepdim = true}), x:std(1, true, true))
    same(x:argsort(2, {descending = true}), x:argsort(2, true))
    same(tycho.tensor {1, 3}, tycho.range(1, 3)[tycho.tensor({1, 3}, {dtype = "int32"})])
    same(tycho.tensor {1, 3}, tycho.range(1, 3)[tycho.tensor({1, 0, 1}, {dtype = "uint8"})])
    local one, two = tycho.tensor(1, {dtype = "int64"}), tycho.tensor({1, 2}, {dtype = "int64"})
    assert.equal("3x2", tostring(tycho.zeros(2, 3, 5)[{one, {}, two}].shape))          -- a 0-dim tensor is a number
    assert.equal("3x5", tostring(tycho.zeros(2, 3, 5)[one].shape))
    same(tycho.tensor {{{1, 1}}, {{1, 1}}, {{2, 2}}, {{2, 2}}}:view(2, 2, 2):transpose(1, 2):reshape(2, 1, 4):sum(),
      tycho.tensor {1, 2}:kron(tycho.ones(2, 1, 2)):sum())
    assert.equal("2x1x4", tostring(tycho.tensor {1, 2}:kron(tycho.ones(2, 1, 2)).shape))
    assert.equal("3x0x4", tostring(nn.MultiheadAttention(4, 2)(tycho.zeros(3, 0, 4)).shape))
    assert.equal("int64", tycho.zeros(2, {dtype = tycho.long}).dtype)
    local rows = tycho.tensor {{2, 1}, {1, 3}, {2, 1}, {1, 2}}
    local v, i, n = rows:unique({dim = 1, return_inverse = true, return_counts = true})
    same(tycho.tensor {{1, 2}, {1, 3}, {2, 1}}, v)
    assert.same({{3, 2, 3, 1}, {1, 1, 2}}, {i:totable(), n:totable()})
    same(tycho.tensor {{1, 2}, {3, 4}}, tycho.tensor {{2, 1, 2}, {4, 3, 4}}:unique({dim = 2}))
    assert.equal("0x3", tostring(tycho.zeros(0, 3):unique({dim = 1}).shape))
    fails("var: argument 2 (dim) must be", x.var, x, "a")
    local a, b = nn.Linear(2, 2), nn.Linear(2, 3)
    assert.equal(2, #tycho.optim.SGD({nn.ReLU():parameters(), a:parameters()}, {lr = 1}).param_groups[1].params)
    assert.equal(4, #tycho.optim.SGD({a:parameters(), b:parameters()}, {lr = 1}).param_groups[1].params)
    local w = tycho.ones(2, {requires_grad = true})
    same(tycho.tensor {2, 2}, tycho.grad((w * 2):sum(), w, {only_inputs = true}))
    assert.equal("bfloat16", tycho.amp.autocast(helper.device, {dtype = "bfloat16"}, function() return (a(tycho.ones(1, 2))).dtype end))
    local tall = tycho.zeros(7, 3)
    assert.equal(tall, tall:fill_diagonal_(1, true))
    assert.same({1, 1, 1, 0, 1, 1, 1}, tall:sum(2):totable())
    assert.equal("bfloat16", (nn.GroupNorm(2, 4)(tycho.randn(2, 4, 3):bfloat16())).dtype)
    assert.equal("Conv2d(3, 4, kernel_size=3x3, stride=1x1, padding=0x0, bias=false)", tostring(nn.Conv2d(3, 4, 3, {bias = false})))
    fails("is missing; name the folder", tycho.data.datasets.MNIST, {root = "/nowhere", download = true})
    fails("'conv' is a name", nn.Sequential, {conv = a})
    fails("got the class ReLU", nn.Sequential, nn.ReLU)
    fails("ModuleDict has members with names", nn.ModuleList, {a = a})
    fails("dim is a setting, not a tensor", nn.Softmax, x)
    fails("position 0: dims begin at 1", function() return x.shape[0] end)
    fails("unknown option 'learning_rate'; the options are dampening, lr", tycho.optim.SGD, a:parameters(), {learning_rate = 1})
  end)

  it("leave results to be changed in place where PyTorch's may", function()
    for name, fn in pairs {elu = F.elu, selu = F.selu, softshrink = F.softshrink, hardshrink = F.hardshrink, erfinv = tycho.erfinv} do
      local w = tycho.tensor({-0.7, 0.2, 0.9}, {requires_grad = true})
      local want, y = tycho.grad(fn(w):sum(), w), fn(w)
      y:add_(1)
      helper.close(tycho.grad(y:sum(), w), want, name)
    end
    local w = tycho.tensor({2, 4}, {requires_grad = true})
    local z = tycho.ones(2) / w
    z:add_(1)
    z:sum():backward()
    helper.close(w.grad, tycho.tensor {-0.25, -0.0625})
    local big = tycho.tensor({math.huge, 1}, {requires_grad = true})
    helper.close(tycho.grad(tycho.logaddexp(big, tycho.tensor {1, 1}):sum(), big), tycho.tensor {1, 0.5})
  end)

  it("go by the names that the API page has", function()
    local w = parameter(4)
    w.grad = tycho.full({4}, 3)
    close(nn.utils.clip_grad_norm_({w}, {max = 1}), tycho.tensor(6))
    close(w.grad, tycho.full({4}, 0.5))
    fails("clip_grad_norm_: max_norm must be a number, got nil", nn.utils.clip_grad_norm_, {w})
    assert.equal(2, #tycho.data.WeightedRandomSampler(tycho.ones(2, {dtype = "bool"}), 2):order(1, 1))
  end)
end)
