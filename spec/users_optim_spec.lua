-- Training as PyTorch's users write it: optimizers, ones of their own, schedules, averages of models, clipping, scalers.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim = tycho.nn, tycho.optim
local close, fails, device = helper.close, helper.fails, helper.device

describe("users' optimizers", function()
  it("optimizers' options are what they must be", function()
    local p = {nn.Parameter(tycho.ones(2))}
    fails("Adadelta: rho must be in 0..1, got 1.5", tycho.optim.Adadelta, p, {rho = 1.5})
    fails("NAdam: decoupled_weight_decay must be a boolean, got 1", tycho.optim.NAdam, p, {decoupled_weight_decay = 1})
    local adam, delta = tycho.optim.Adam(p), tycho.optim.Adadelta(p)
    p[1].grad = tycho.ones(2)
    adam:step()
    fails("load_state_dict: the state of parameter 1 has no '", delta.load_state_dict, delta, adam:state_dict())
    tycho.optim.AdamW(p):load_state_dict(adam:state_dict())
  end)

  it("takes PyTorch's options of optimizers, and prints them", function()
    local p = tycho.ones(2, {requires_grad = true})
    local opt = optim.Adam({{params = p, lr = 0.5}}, {lr = 0.1, fused = true, foreach = false})
    assert.equal(0.5, opt.param_groups[1].lr)
    assert.truthy(tostring(opt):find("Adam (\nParameter Group 1\n    amsgrad: false\n    betas: {0.9, 0.999}", 1, true))
    assert.equal("StepLR(epoch 0, lr 0.5)", tostring(optim.lr_scheduler.StepLR(opt, 1)))
    assert.equal(4, tycho.amp.GradScaler("cpu", {init_scale = 4}):get_scale())
    fails("Adamax: there is no option decoupled_weight_decay; use AdamW", optim.Adamax, {p}, {decoupled_weight_decay = true})
    fails("Adam: a group must be a table", optim.Adam, {{params = {p}}, p})
    assert.truthy(tostring(optim.Adafactor({p})):find("eps: {false, 0.001}", 1, true))
    fails("StepLR: step takes no epoch", function() optim.lr_scheduler.StepLR(opt, 1):step(5) end)
  end)

  it("optimizers made of ops skip with a scaler, keep masters, and compile", function()
    for _, name in ipairs {"Rprop", "ASGD", "Adafactor", "Muon"} do
      local start = tycho.randn(4, 3)
      local w, v, h = start:clone():requires_grad_(), start:clone():requires_grad_(), start:half():requires_grad_()
      local scaler = tycho.amp.GradScaler {init_scale = 8}
      local scaled, plain, half = tycho.optim[name]({w}, 0.1), tycho.optim[name]({v}, 0.1),
        tycho.optim[name]({h}, {lr = 0.1, master_weights = true})
      local function step(factor)
        scaled:zero_grad()
        scaler:scale((w * w):sum() * factor):backward()
        scaler:step(scaled)
        scaler:update()
      end
      step(math.huge)
      helper.close(w:detach(), start, name .. ": skipped", 0)
      step(1)
      ;(v * v):sum():backward()
      plain:step()
      helper.close(w:detach(), v:detach(), name)
      ;(h * h):sum():backward()
      half:step()
      helper.close(h:detach():float(), v:detach(), name .. ": 16 bits", 2e-2)
      local u = start:clone():requires_grad_()
      local opt = tycho.optim[name]({u}, 0.1)
      local compiled = tycho.compile(function()
        opt:zero_grad()
        local loss = (u * u):sum()
        loss:backward()
        opt:step()
        return loss
      end)
      for _ = 1, 5 do compiled() end
      plain:zero_grad()
      for _ = 1, 4 do
        plain:zero_grad()
        ;(v * v):sum():backward()
        plain:step()
      end
      helper.close(u:detach(), v:detach(), name .. ": compiled", helper.device == "cpu" and 1e-5 or 5e-2)
    end
  end)

  it("Rprop takes a rate that is a tensor", function()
    local a, b = tycho.ones(2, {requires_grad = true, device = device}), tycho.ones(2, {requires_grad = true, device = device})
    for p, lr in pairs {[a] = 0.1, [b] = tycho.tensor(0.1, {device = "cpu"})} do
      local opt = optim.Rprop({p}, {lr = lr})
      for i = 1, 3 do
        p.grad = tycho.tensor({1, i == 2 and -1 or 1}, {device = device})
        opt:step()
      end
    end
    close(a, b, "parameters", 1e-6)
  end)
end)

describe("users' optimizers of their own", function()
  local function stepped(opt, net, scaler)
    local x = tycho.ones(2, 3, {device = device})
    net:zero_grad()
    local loss = net(x):sum()
    if scaler then
      scaler:scale(loss):backward()
      scaler:step(opt)
      scaler:update()
    else
      loss:backward()
      opt:step()
    end
  end

  it("around another is stepped by a GradScaler, and skipped", function()
    local Around = optim.Optimizer:extend("Around", {k = 2})
    local calls = 0
    function Around:init() self.base = optim.SGD(self.param_groups, {lr = 0.5}) end
    function Around:step() calls = calls + 1 return self.base:step() end
    local a = nn.Linear(3, 1):to(device)
    local b, scaler = a:clone(), tycho.amp.GradScaler {init_scale = 8}
    local around = Around(a:parameters())
    stepped(around, a, scaler)
    stepped(optim.SGD(b:parameters(), {lr = 0.5}), b)              -- the inner one's rate counts where the outer was given none
    close(a.weight, b.weight)
    assert.equal(1, calls)
    around:register_step_post_hook(function() calls = calls + 10 end)
    stepped(around, a, scaler)
    assert.equal(12, calls)
    stepped(around, a, tycho.amp.GradScaler {init_scale = 2 ^ 127})        -- twice that is too large for float32
    assert.equal(12, calls)
    assert.equal(0.25, Around(a:parameters(), {lr = 0.25}).base.param_groups[1].lr)
    assert.equal(0.125, Around:extend("Further", {lr = 0.125})(a:parameters()).base.param_groups[1].lr)
    local brought = Around(a:parameters())
    assert.equal(0.5, brought.param_groups[1].lr)
    brought:add_param_group {params = {nn.Parameter(tycho.ones(2, {device = device}))}}
    assert.equal(0.5, brought.param_groups[2].lr)
    local late = optim.Optimizer:extend("Late")(a:parameters())
    assert.equal(1e-3, late.param_groups[1].lr)
    late.param_groups[1].lr = 0.75
    assert.equal(0.75, optim.SGD(late.param_groups, {lr = 0.5}).param_groups[1].lr)
  end)

  it("whose step the program has replaced is stepped by that", function()
    local net = nn.Linear(3, 1):to(device)
    local opt, scaler, n = optim.SGD(net:parameters(), {lr = 0.5}), tycho.amp.GradScaler(), 0
    local before, old = net.weight:clone(), opt.step
    opt.step = function(self, ...) n = n + 1 return old(self, ...) end
    stepped(opt, net, scaler)
    assert.equal(1, n)
    close(net.weight, before:detach() - 1)
    opt = optim.SGD(net:parameters(), {lr = 0.5})
    opt:register_step_post_hook(function() n = n + 10 end)
    stepped(opt, net, scaler)
    assert.equal(11, n)
    old = opt.step
    opt.step = function(self, ...) n = n + 100 return old(self, ...) end
    stepped(opt, net, scaler)
    assert.equal(121, n)
  end)

  it("extends another class", function()
    local Mine = optim.AdamW:extend("Mine", {k = 2})
    local steps, a = 0, nn.Linear(3, 1):to(device)
    function Mine:init(_, o) self.twice = 2 * (o.k or self.defaults.k) end
    function Mine:step(closure) steps = steps + self.twice return optim.AdamW.step(self, closure) end
    local b, scaler = a:clone(), tycho.amp.GradScaler {init_scale = 4}
    local mine, plain = Mine(a:parameters(), {lr = 0.1, k = 3}), optim.AdamW(b:parameters(), {lr = 0.1})
    for i = 1, 3 do
      stepped(mine, a, i == 2 and scaler or nil)
      stepped(plain, b)
    end
    assert.equal(18, steps)
    close(a.weight, b.weight, "weight", 1e-6)
    assert.equal(3, mine.param_groups[1].k)
    assert.is_truthy(tostring(mine):find "^Mine %(")
    local again = Mine(a:parameters())
    again:load_state_dict(mine:state_dict())
    assert.equal(3, again.param_groups[1].k)
    fails("Mine: unknown option 'kk'", Mine, a:parameters(), {kk = 1})
    assert.equal(4, Mine:extend("More", {n = 1})(a:parameters()).twice)
    fails("extend: argument 1 (name) must be a string", function() optim.SGD:extend {} end)
  end)

  it("takes a rate that is a tensor on the CPU", function()
    for _, name in ipairs {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"} do
      local a = nn.Linear(3, 1):to(device)
      local b, rate = a:clone(), tycho.tensor(0.25, {device = "cpu"})
      local one = optim[name](a:parameters(), {lr = rate})
      stepped(one, a)
      rate:fill_(0.125)
      stepped(one, a)
      local other = optim[name](b:parameters(), {lr = 0.25})
      stepped(other, b)
      other.param_groups[1].lr = 0.125
      stepped(other, b)
      close(a.weight, b.weight, name, 1e-6)
    end
  end)
end)

describe("users' rules and schedules of their own", function()
  local Lion = tycho.optim.Optimizer:extend("Lion", {lr = 1e-4, betas = {0.9, 0.99}, weight_decay = 0})
  function Lion:new_state(p, _, s) s.exp_avg = tycho.zeros_like(p) end
  function Lion:rule(group, p, g, s, t, write) -- luacheck: ignore
    local b1, b2 = unpack(group.betas)
    write(p, p * (1 - group.lr * group.weight_decay) - (s.exp_avg * b1 + g * (1 - b1)):sign() * group.lr)
    write(s.exp_avg, s.exp_avg * b2 + g * (1 - b2))
  end
  -- the same in plain Lua, of one number
  local function plain(p, grads, lr)
    local m = 0
    for _, g in ipairs(grads) do
      local u = 0.9 * m + 0.1 * g
      p, m = p - lr * (u > 0 and 1 or u < 0 and -1 or 0), 0.99 * m + 0.01 * g
    end
    return p, m
  end

  it("steps with an optimizer of one's own: groups, state dicts, master weights, scalers, compiled steps", function()
    local grads = {1, -2, 0.5, -0.25, 3}
    local want, want_m = plain(0.75, grads, 0.01)
    local function train(step_of, dtype, o)
      local p = tycho.full({1}, 0.75, {dtype = dtype}):requires_grad_()
      local opt = Lion({{params = {p}, lr = 0.01}}, o)
      local step = step_of(p, opt)
      for _, g in ipairs(grads) do step(tycho.full({1}, g)) end
      return p, opt
    end
    local function usual(p, opt)
      return function(g)
        opt:zero_grad()
        ;(p * g):sum():backward()
        opt:step()
      end
    end
    local p, opt = train(usual)
    assert.is_true(math.abs(p:item() - want) < 1e-6)
    local saved = opt:state_dict()
    assert.is_true(math.abs(saved.state[1].exp_avg:item() - want_m) < 1e-6)
    assert.equal(5, saved.state[1].step:item())
    local other = Lion({p})
    other:load_state_dict(saved)
    assert.equal(0.01, other.param_groups[1].lr)
    p = train(function(q, o) return tycho.compile(usual(q, o)) end)
    assert.is_true(math.abs(p:item() - want) < 1e-6)
    local scaler = tycho.amp.GradScaler {init_scale = 8}
    p = train(function(q, o)
      return function(g)
        o:zero_grad()
        scaler:scale((q * g):sum()):backward()
        scaler:step(o)
        scaler:update()
      end
    end)
    assert.is_true(math.abs(p:item() - want) < 1e-6)
    p, opt = train(usual, "float16", {master_weights = true})
    assert.is_true(math.abs(opt:state_dict().state[1].master:item() - want) < 1e-6 and p.dtype == "float16")
    fails("Lion: unknown option 'betaz'; did you mean 'betas'?", Lion, {p}, {betaz = 1})
    fails("a method rule(", function()
      local q = tycho.ones(1, {requires_grad = true})
      q:sum():backward()
      tycho.optim.Optimizer:extend "Bare" ({q}):step()
    end)
    assert.is_nil(rawget(tycho.optim, "Lion"))
  end)

  it("follows a schedule of one's own", function()
    local Halved = tycho.optim.lr_scheduler.LRScheduler:extend("Halved", "every=10")
    function Halved:lr_at(epoch, base) return base * 0.5 ^ math.floor(epoch / self.every) end
    local opt = tycho.optim.SGD({tycho.ones(1, {requires_grad = true})}, {lr = 8})
    local s, seen = Halved(opt, {every = 2}), {}
    for i = 1, 6 do
      seen[i] = opt.param_groups[1].lr
      s:step()
    end
    assert.same({8, 8, 4, 4, 2, 2}, seen)
    assert.equal("Halved(epoch 6, lr 1)", tostring(s))
    fails("a method lr_at(", tycho.optim.lr_scheduler.LRScheduler:extend "Bare", opt)
  end)
end)

describe("users' optimizer states from PyTorch", function()
  local runs = tycho.load("spec/golden/files/optimizers.pt")
  for name, make in pairs {sgd = function(p) return optim.SGD(p, {lr = 0.1, momentum = 0.9}) end,
      adamw = function(p) return optim.AdamW(p, {lr = 0.01, amsgrad = true}) end,
    rmsprop = function(p) return optim.RMSprop(p, {momentum = 0.5}) end} do
    it("go on where they were: " .. name, function()
      local run, params = runs[name], {}
      for i, p in ipairs(run.params) do params[i] = nn.Parameter(p:clone()) end
      local opt = make {{params = {params[1], params[2]}}, {params = {params[3]}}}
      opt:load_state_dict(run.state)
      assert.equal(0.05, opt.param_groups[2].lr)
      for _ = 1, 3 do
        for _, p in ipairs(params) do p.grad = p:detach() * 0.3 + 0.1 end
        opt:step()
      end
      for i, p in ipairs(params) do helper.close(p:detach(), run.after[i], "parameter " .. i, 1e-6) end
      fails("load_state_dict: group 1 has 2 parameters, the optimizer's has 3",
        function() make(params):load_state_dict {state = {}, param_groups = {run.state.param_groups[1]}} end)
    end)
  end
end)

describe("users' schedules", function()
  local L = optim.lr_scheduler

  -- A schedule that goes on from PyTorch's state dict: the rates that PyTorch gives then.
  local function goes_on(make, state, lr, want, metric)
    local opt = optim.SGD({tycho.zeros(1, {requires_grad = true})}, {lr = 0.01})
    local s = make(opt)
    opt.param_groups[1].lr = 0.5 * lr                              -- the rate comes with the optimizer's state
    s:load_state_dict(state)
    assert.near(0.5 * lr, opt.param_groups[1].lr, 1e-12)
    assert.near(lr, s:get_last_lr()[1], 1e-12)
    opt.param_groups[1].lr = lr
    for _, rate in ipairs(want) do
      opt:step()
      s:step(metric)
      assert.near(rate, opt.param_groups[1].lr, 1e-12)
    end
    return s, opt
  end

  it("go on from PyTorch's states", function()
    goes_on(function(o) return L.CosineAnnealingLR(o, 30) end, {T_max = 30, eta_min = 0, base_lrs = {0.01}, last_epoch = 10,
      _step_count = 11, _is_initial = false, _last_lr = {0.007499999999999999}}, 0.0075,
      {0.007033683215379001, 0.0065450849718747366, 0.006039558454088796, 0.0055226423163382676})
    goes_on(function(o) return L.SequentialLR(o, {L.LinearLR(o, 0.1, {total_iters = 5}), L.ExponentialLR(o, 0.9)}, {5}) end,
      {_milestones = {5}, last_epoch = 10, _last_lr = {0.0059049}, _schedulers = {
        {start_factor = 0.1, end_factor = 1, total_iters = 5, base_lrs = {0.01}, last_epoch = 4, _last_lr = {0.0082}},
        {gamma = 0.9, base_lrs = {0.01}, last_epoch = 5, _last_lr = {0.0059049}}}}, 0.0059049,
      {0.00531441, 0.004782969, 0.0043046721, 0.00387420489})
    goes_on(function(o) return L.ReduceLROnPlateau(o, {patience = 3}) end, {factor = 0.1, min_lrs = {0}, patience = 3, cooldown = 0,
      eps = 1e-8, last_epoch = 10, _last_lr = {0.0001}, mode_worse = math.huge, mode = "min", threshold = 1e-4,
      threshold_mode = "rel", best = 1, cooldown_counter = 0, num_bad_epochs = 1}, 1e-4, {1e-4, 1e-4, 1e-5, 1e-5}, 1)
    goes_on(function(o) return L.ChainedScheduler {L.ConstantLR(o, 0.5, 12), L.StepLR(o, 4, 0.5)} end, {_last_lr = {0.00125},
      _schedulers = {{factor = 0.5, total_iters = 12, base_lrs = {0.01}, last_epoch = 10, _last_lr = {0.00125}},
        {step_size = 4, gamma = 0.5, base_lrs = {0.01}, last_epoch = 10, _last_lr = {0.00125}}}}, 0.00125, {0.00125, 0.00125})
  end)

  it("take nothing else for a state", function()
    local opt = optim.SGD({tycho.zeros(1, {requires_grad = true})}, {lr = 0.01})
    local s = L.StepLR(opt, 3)
    fails("must have a last_epoch, got none", s.load_state_dict, s, {})
    fails("must have a last_epoch, got 3", s.load_state_dict, s, 3)
    fails("'last_lr' must be a list of 1 rates", s.load_state_dict, s, {last_epoch = 1, last_lr = {}})
    fails("has a list of 2 schedulers", function()
      L.ChainedScheduler({s, L.ExponentialLR(opt, 0.9)}):load_state_dict {schedulers = {{last_epoch = 1}}}
    end)
    fails("'gamma' of a StepLR must be a number, got 'x'", s.load_state_dict, s, {last_epoch = 2, gamma = "x"})
    s:load_state_dict {last_epoch = 2, step = 5, optimizer = 3}                    -- a state can't be a method, nor of another type
    s:step()
    assert.near(0.001, opt.param_groups[1].lr, 1e-12)
  end)

  it("sequences of schedules go on where they stood", function()
    local function make()
      local opt = tycho.optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = 0.1})
      local S = tycho.optim.lr_scheduler
      return opt,
        S.SequentialLR(opt, {S.LinearLR(opt, {start_factor = 0.1, total_iters = 10}), S.CosineAnnealingLR(opt, {T_max = 90})},
        {milestones = {10}})
    end
    for _, stop in ipairs {0, 4, 9, 10, 30} do
      local opt, s = make()
      for _ = 1, stop do s:step() end
      local opt2, s2 = make()
      opt2:load_state_dict(opt:state_dict())
      s2:load_state_dict(s:state_dict())
      for k = 1, 20 do
        assert.equal(opt.param_groups[1].lr, opt2.param_groups[1].lr, ("stopped at %d, then step %d"):format(stop, k - 1))
        s:step()
        s2:step()
      end
    end
    local opt = tycho.optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = 0.1})
    local w = tycho.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, {T_0 = 10})
    w:step(2.5)
    assert.is_true(math.abs(opt.param_groups[1].lr - 0.08535533905932738) < 1e-15)     -- PyTorch's
    w:step(12.5)
    assert.is_true(math.abs(opt.param_groups[1].lr - 0.08535533905932738) < 1e-15)
  end)

  it("goes to the rate of averaging", function()     -- torch.optim.swa_utils.SWALR's
    for _, case in ipairs {{5, "cos", {1, 0.909283, 0.671783, 0.378217, 0.140717, 0.05, 0.05}},
        {3, "linear", {1, 0.683333, 0.366667, 0.05, 0.05}}, {0, "cos", {0.05, 0.05}}} do
      local opt = optim.SGD({tycho.ones(1, {requires_grad = true})}, {lr = 1})
      local s = optim.swa_utils.SWALR(opt, 0.05, {anneal_epochs = case[1], anneal_strategy = case[2]})
      for _, want in ipairs(case[3]) do
        assert.is_true(math.abs(opt.param_groups[1].lr - want) < 1e-6)
        s:step()
      end
    end
  end)
end)

describe("users' averages of models", function()
  it("averages of models are made as asked, and their batch_norms anew", function()
    local swa = tycho.optim.swa_utils
    local net = nn.Linear(2, 1)
    local ema, mean, own = swa.AveragedModel(net, {multi_avg_fn = swa.get_ema_multi_avg_fn(0.9)}),
      swa.AveragedModel(net), swa.AveragedModel(net, {avg_fn = function(a, v, n) return a + v * n end})
    local start = net.weight:detach():clone()
    for k = 0, 2 do
      for _, m in ipairs {ema, mean, own} do m:update_parameters(net) end
      tycho.no_grad(function() net.weight:add_(k + 1) end)
    end
    helper.close(ema.module.weight, start + 0.1 * 0.9 * 1 + 0.1 * 3)
    helper.close(mean.module.weight, start + 4 / 3)
    helper.close(own.module.weight, start + (start + 1) + 2 * (start + 3))
    local there = swa.AveragedModel(net, {device = "cpu", decay = 0.5})         -- wherever the model is
    there:update_parameters(net)
    assert.equal("cpu", there.module:parameters()[1].device)
    assert.is_true(there.module:parameters()[1]:equal(net:parameters()[1]:cpu()))
    fails("only one of decay", swa.AveragedModel, net, {decay = 0.9, avg_fn = function() end})
    local bn = nn.Sequential(nn.BatchNorm1d(2))
    bn:eval()
    local x = tycho.randn(40, 2) * 3 + 1
    swa.update_bn(tycho.data.DataLoader(tycho.data.TensorDataset(x), {batch_size = 20}), bn)
    helper.close(bn[1].running_mean, x:mean(1))
    assert.is_false(bn.training)
    assert.equal(0.1, bn[1].momentum)
  end)

  it("averages by PyTorch's functions of one tensor are those of all tensors at once", function()
    local swa, net = optim.swa_utils, nn.Linear(3, 2):to(device)
    local pairs_of = {{{avg_fn = swa.get_swa_avg_fn()}, {}},
      {{avg_fn = swa.get_ema_avg_fn(0.75)}, {multi_avg_fn = swa.get_ema_multi_avg_fn(0.75)}}}
    for k, p in ipairs(pairs_of) do
      local a, b = swa.AveragedModel(net, p[1]), swa.AveragedModel(net, p[2])
      for i = 1, 3 do
        tycho.no_grad(function() for _, q in ipairs(net:parameters()) do q:fill_(i * i) end end)
        a:update_parameters(net)
        b:update_parameters(net)
      end
      close(a.module.weight, b.module.weight, k)
      close(a.module.weight, tycho.full({2, 3}, k == 1 and 14 / 3 or 0.75 * (0.75 + 0.25 * 4) + 0.25 * 9, {device = device}), k)
    end
  end)
end)

describe("users' clipping", function()
  it("takes other norms, and refuses what isn't finite where that is asked for", function()
    local p, q = nn.Parameter(tycho.zeros(2)), nn.Parameter(tycho.zeros(1))
    local function norm(...)
      p.grad, q.grad = tycho.tensor {3, -4}, tycho.tensor {12}
      return nn.utils.clip_grad_norm_({p, q}, ...):item()
    end
    assert.equal(13, norm(1))
    assert.equal(12, norm(1, {norm_type = math.huge}))
    helper.close(q.grad, tycho.tensor {1}, "clipped", 1e-5)
    assert.equal(19, norm(1, 1))
    assert.is_true(math.abs(norm(100, {norm_type = 3}) - (27 + 64 + 1728) ^ (1 / 3)) < 1e-4)
    assert.equal(-4, p.grad[2])
    fails("clip_grad_norm_: unknown option 'foo'", norm, 1, {foo = 1})
    fails("norm_type must be above 0", norm, 1, 0)
    p.grad = tycho.tensor {0 / 0, 1}
    fails("the norm of the gradients is", nn.utils.clip_grad_norm_, {p}, 1, {error_if_nonfinite = true})
    assert.equal(1, p.grad[2])
  end)

  it("gradients are clipped by the largest, by either name", function()
    local function clipped(order)
      local w = tycho.zeros(3, {device = device, requires_grad = true})
      w.grad = tycho.tensor({1, -4, 2}, {device = device})
      local total = nn.utils.clip_grad_norm_({w}, 2, {norm_type = order})
      return {total:item(), unpack(w.grad:totable())}
    end
    for i, v in ipairs(clipped("inf")) do assert.is_true(math.abs(v - ({4, 0.5, -2, 1})[i]) < 1e-5) end
    assert.same(clipped(math.huge), clipped("inf"))
    assert.equal(4, nn.utils.get_total_norm({tycho.tensor({1, -4}, {device = device})}, "inf"):item())
  end)
end)

describe("users' scalers", function()
  it("a scaler says whether it is enabled, and dtypes which others they can become", function()
    assert.is_true(tycho.amp.GradScaler():is_enabled())
    assert.is_false(tycho.amp.GradScaler{enabled = false}:is_enabled())
    local can = {{"float32", "float16", true}, {"float16", "int64", false}, {"int32", "uint8", true}, {"int64", "bool", false},
      {"bool", "int32", true}, {"uint8", "float64", true}}
    for _, c in ipairs(can) do assert.equal(c[3], tycho.can_cast(c[1], c[2]), c[1] .. " to " .. c[2]) end
  end)
end)

describe("users' own optimizers and schedules", function()
  local function leaf()
    local p = nn.Parameter(tycho.ones(2))
    p.grad = tycho.ones(2)
    return p
  end
  local half = setmetatable({}, {__call = function() return 0.5 end})

  it("have options that are nothing at first, and tensors for numbers", function()
    local Own = optim.Optimizer:extend("Own", {lr = 0.1, max_norm = false, beta = 0.5})
    function Own:rule(group, p, g, _, _, write) write(p, p - g * group.lr * group.beta * (group.max_norm or 1)) end
    local p = leaf()
    Own({p}, {max_norm = 2, beta = tycho.tensor(0.25)}):step()
    assert.near(0.95, p[1], 1e-6)
    fails("Own: maximize must be a boolean, got 1", Own, {p}, {maximize = 1})
    local Halved = optim.lr_scheduler.LRScheduler:extend("Halved", "warmup=nil, factor=0.5")
    function Halved:lr_at(_, base) return base * self.factor(self.warmup) end
    local opt = optim.SGD({p}, {lr = 1})
    Halved(opt, {warmup = 5, factor = function(n) return n end})
    assert.equal(5, opt.param_groups[1].lr)
  end)

  it("take what can be called as a function", function()
    local opt = optim.SGD({leaf()}, {lr = 1})
    optim.lr_scheduler.LambdaLR(opt, half)
    assert.equal(0.5, opt.param_groups[1].lr)
    local seen = 0
    local hook = setmetatable({}, {__call = function() seen = seen + 1 end})
    local net = nn.Linear(2, 2)
    net:register_forward_hook(hook)
    net(tycho.ones(1, 2))
    assert.equal(1, seen)
    assert.equal("GELU", nn.TransformerEncoderLayer(8, 2, {activation = nn.GELU()}).activation._name)
  end)

  it("take a rate of one element, and schedules by name", function()
    for _, name in ipairs {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad"} do
      local p, q = leaf(), leaf()
      optim[name]({p}, {lr = tycho.tensor {0.1}}):step()
      optim[name]({q}, {lr = 0.1}):step()
      helper.close(p:detach(), q:detach(), name)
    end
    local S, opt = optim.lr_scheduler, optim.SGD({leaf()}, {lr = 1})
    local s = S.ChainedScheduler {schedulers = {S.ConstantLR(opt, 0.5), S.ExponentialLR(opt, 0.5)}, optimizer = opt}
    opt:step()
    s:step()
    assert.equal(0.25, opt.param_groups[1].lr)
    local plateau = S.ReduceLROnPlateau(opt)
    plateau:step({metrics = 3})
    assert.equal(3, plateau.best)
  end)

  it("schedules take their optimizer by name, too", function()
    local opt = optim.SGD(nn.Linear(1, 1):parameters(), 0.1)
    local steps = optim.lr_scheduler.StepLR {optimizer = opt, step_size = 2}
    assert.equal(2, steps.step_size)
    assert.equal(opt, steps.optimizer)
    fails("StepLR", optim.lr_scheduler.StepLR, {optimizer = opt, step_sise = 2})
    fails("StepLR: argument 1 must be an optimizer", optim.lr_scheduler.StepLR, {optimizer = {}, step_size = 2})
  end)

  it("an own optimizer's unknown option says where its options stand", function()
    local Sam = optim.Optimizer:extend("Sam")
    fails('Sam: unknown option \'rho\'; an optimizer of your own has those that it names: extend("Sam", {rho = default, ...})',
      Sam, {nn.Parameter(tycho.ones(2))}, {rho = 0.05})
    fails("did you mean 'momentum'?", optim.SGD:extend("Mine"), {nn.Parameter(tycho.ones(2))}, {lr = 0.1, momentun = 0.05})
  end)
end)
