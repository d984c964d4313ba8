-- Bugs that were, of optimizers, schedules and mixed precision; values are PyTorch's.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, optim = tycho.nn, tycho.optim
local T, is, fails, close = tycho.tensor, helper.is, helper.fails, helper.close
local cpu = {device = "cpu"}                     -- where what is in a tensor is looked at at once
local function ones(...) return nn.Parameter(tycho.ones(...)) end

describe("regressions of optimizers", function()
  it("settings of an optimizer that ask for more state count from then on", function()
    local function after(class, name, value)
      local p = nn.Parameter(tycho.tensor {1})
      local opt = optim[class]({p}, {lr = 0.1})
      for k, g in ipairs {3, 1, 0.01} do
        p.grad = tycho.tensor {g}
        if k > 1 then opt.param_groups[1][name] = value end
        opt:step()
      end
      return p:item()
    end
    assert.is_not.equal(after("RMSprop", "momentum", 0), after("RMSprop", "momentum", 0.9))
    assert.is_not.equal(after("RMSprop", "centered", false), after("RMSprop", "centered", true))
    assert.is_not.equal(after("Adam", "amsgrad", false), after("Adam", "amsgrad", true))
    assert.is_not.equal(after("SGD", "momentum", 0), after("SGD", "momentum", 0.9))
    fails("SGD: 'lr' belongs to a group: set opt.param_groups[1].lr = 0.5", function()
      optim.SGD({nn.Parameter(tycho.ones(1))}, 0.1).lr = 0.5
    end)
  end)

  it("momentum may begin later", function()
    local p = nn.Parameter(tycho.ones(1))
    local opt = optim.SGD({p}, {lr = 0.1})
    for k = 1, 3 do
      p.grad = tycho.ones(1)
      opt.param_groups[1].momentum = k > 1 and 0.9 or 0
      opt:step()
    end
    assert.is_true(math.abs(p:item() - 0.61) < 1e-6)
  end)

  it("NAdam's momentum follows from all betas that there were", function()
    local f64 = {dtype = "float64"}
    local want = {{0.995877262753, 1.995877262740}, {0.990271287491, 1.990271102699}, {0.978142817340, 1.978141624225},
      {0.955576882217, 1.955570605313}, {0.919563377523, 1.919536685383}, {0.868851697908, 1.868758675283}}      -- PyTorch 2.15's
    local function made(x)
      local p = nn.Parameter(T(x, f64))
      local opt = optim.NAdam({p}, {lr = 0.01})
      return p, opt, optim.lr_scheduler.OneCycleLR(opt, 0.1, {total_steps = 30})
    end
    local function step(p, opt, schedule)
      opt:zero_grad();
      (p ^ 2 * T({1, 3}, f64) + p:sin()):sum():backward()
      opt:step()
      schedule:step()
    end
    local p, opt, schedule = made {1, 2}
    local saved, position
    for i, x in ipairs(want) do
      step(p, opt, schedule)
      helper.close(p:detach(), T(x, f64))
      if i == 3 then saved, position = opt:state_dict(), schedule:state_dict() end
      if i == 3 then for _, s in pairs(saved.state) do for k, v in pairs(s) do s[k] = k ~= "beta1_seen" and v:clone() or v end end end
    end
    local q = nn.Parameter(T({1}, f64))                    -- one that comes later counts for itself
    p = nn.Parameter(T({1, 2}, f64))
    opt = optim.NAdam({p, q}, {lr = 0.01})
    schedule = optim.lr_scheduler.OneCycleLR(opt, 0.1, {total_steps = 30})
    for i, x in ipairs(want) do
      p.grad, q.grad = nil, i > 3 and T({1}, f64) or nil;
      (p ^ 2 * T({1, 3}, f64) + p:sin()):sum():backward()
      opt:step()
      schedule:step()
      helper.close(p:detach(), T(x, f64))
    end
    for _, file in ipairs {"Tycho's", "PyTorch's"} do
      if file == "PyTorch's" then
        saved.state[1].beta1_seen = nil
        saved.state[1].mu_product = T(0.10520000755786896)
      end
      p, opt, schedule = made(want[3])
      opt:load_state_dict(saved)
      schedule:load_state_dict(position)
      for i = 4, 6 do
        step(p, opt, schedule)
        helper.close(p:detach(), T(want[i], f64), file, file == "Tycho's" and 1e-10 or 1e-6)
      end
    end
  end)

  it("an optimizer step that fails half-way is seen as a change", function()
    local w, g, p, q = tycho.ones(4), tycho.ones(4), tycho.ones(5, 4):t(), tycho.ones(4, 5)
    local before = w:_version()
    local count = tycho.zeros({}, {dtype = "int64"})
    core.fail_alloc(1, 9)
    local ok = pcall(core.ops.sgd_step, {w, p}, {g, q}, nil, nil, count, 0.5, nil, nil, 0, 0, 0, false, false)
    core.fail_alloc(0)
    assert.is_false(ok)
    assert.equal(0, count:item())
    assert.is_true(w:_version() > before)
  end)

  if helper.device ~= "cpu" then it("an optimizer whose state was left on another device says so", function()
    local net = nn.Linear(2, 2):to "cpu"
    local opt = optim.Adam(net:parameters())
    net(tycho.ones(1, 2, {device = "cpu"})):sum():backward()
    opt:step()
    net:to(helper.device)
    opt:zero_grad()
    net(tycho.ones(1, 2)):sum():backward()
    helper.fails("Adam: the state of a parameter of shape 2x2 is on cpu, the parameter on cuda:0", opt.step, opt)
  end) end

  it("an optimizer of one's own may begin as PyTorch's do", function()
    local Own = optim.Optimizer:extend("Own", {factor = 3})
    local given
    function Own:init(params, o)
      optim.Optimizer.init(self, params, o)
      given = o.factor * #params
    end
    Own({nn.Parameter(tycho.ones(2))}, {factor = 5})
    assert.equal(5, given)
  end)

  it("optimizers take named parameters as a list, too", function()
    local list, net = {}, nn.Linear(2, 2)
    for name, p in net:named_parameters() do list[#list + 1] = {name, p} end
    for _, given in ipairs {list, {{params = list}}} do
      local opt = optim.SGD(given, {lr = 1})
      assert.is_true(opt.param_groups[1].params[1] == net.weight and opt.param_groups[1].params[2] == net.bias)
    end
  end)

  it("optimizers' groups take named_parameters, and only what their own class knows", function()
    local net = nn.Linear(2, 2)
    local opt = optim.SGD {{params = net:named_parameters(), lr = 0.1}}
    assert.equal(2, #opt.param_groups[1].params)
    opt = optim.SGD({T({1}, {requires_grad = true})}, {lr = 0.1})
    opt:add_param_group {params = net:named_parameters()}
    assert.equal(2, #opt.param_groups[2].params)
    optim.Optimizer:extend("Labelled", {marked = 1})
    optim.SGD({{params = net:parameters(), marked = 2}}, {lr = 0.1})
    for _, clip in ipairs {nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_} do
      net(tycho.ones(1, 2)):sum():backward()
      clip({net:parameters(), {net.weight}}, 0.1)
    end
    assert.equal(6, nn.utils.parameters_to_vector {net:parameters()}:numel())
  end)
end)

describe("regressions of schedules", function()
  it("schedules of no epochs leave the rate", function()
    for name, rate in pairs {LinearLR = 0.25, PolynomialLR = 1} do
      local opt = optim.SGD({tycho.zeros(1, {requires_grad = true})}, {lr = 1})
      local schedule = optim.lr_scheduler[name](opt, {total_iters = 0, start_factor = name == "LinearLR" and 0.25 or nil})
      for _ = 1, 3 do
        assert.equal(rate, opt.param_groups[1].lr)
        opt:step()
        schedule:step()
      end
    end
  end)

  it("what extend doesn't call can't be defined", function()
    local S = tycho.optim.lr_scheduler.LRScheduler:extend("S")
    helper.fails("'init' isn't called", function() function S:init() end end)
  end)
end)

describe("regressions of mixed precision", function()
  it("unscale_ looks at all gradients before it changes one", function()
    local a, b = nn.Parameter(tycho.ones(2):half()), nn.Parameter(tycho.ones(2):half())
    local opt = optim.SGD({{params = {a}, master_weights = true}, {params = {b}}}, {lr = 0.1})
    local scaler = tycho.amp.GradScaler {init_scale = 4}
    scaler:scale((a:float() + b:float()):sum()):backward()
    helper.fails("the gradient of a float16 parameter can't be unscaled", scaler.unscale_, scaler, opt)
    assert.equal("float16", a.grad.dtype)
    is({4, 4}, a.grad)
  end)

  it("cuda.amp.autocast is of GPUs alone", function()
    local function dtype() return tycho.mm(tycho.ones(2, 2, cpu), tycho.ones(2, 2, cpu)).dtype end
    assert.equal("float32", tycho.cuda.amp.autocast(dtype))
    assert.equal("float32", (tycho.cuda.amp.autocast({dtype = "bfloat16"}, dtype)))
    assert.equal("bfloat16", tycho.amp.autocast(dtype))
  end)
end)

describe("regressions of optimizers' states: one", function()
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
    fails("load_state_dict: 'rows' of parameter 1 must be a floating tensor, got 1", opt.load_state_dict, opt, d)
    d.state[1].rows = tycho.zeros(2)
    d.state[1].more = tycho.zeros(5)                                       -- which isn't made, and isn't like the parameter
    fails("load_state_dict: 'more' of parameter 1 has shape 5; it must be 2x3", opt.load_state_dict, opt, d)
    d.state[1].more = nil
    d.state[1].calls = "many"
    fails("load_state_dict: 'calls' of parameter 1 must be a number, got 'many'", opt.load_state_dict, opt, d)
    d.state[1].calls, d.state[1].norm = 5, tycho.ones(1)                   -- which the rule may have made
    opt:load_state_dict(d)
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

describe("regressions of optimizers: they", function()
  it("have tables of settings of their own", function()
    local a, b = optim.Muon({ones(2, 2)}), optim.Muon({ones(2, 2)})
    a.param_groups[1].ns_coefficients[1] = 0
    assert.equal(3.4445, b.param_groups[1].ns_coefficients[1])
    assert.equal(3.4445, optim.Muon({ones(2, 2)}).param_groups[1].ns_coefficients[1])
    local r = optim.Rprop({{params = {ones(1)}}, {params = {ones(1)}}}, {etas = {0.5, 1.2}})
    r.param_groups[1].etas[1] = 0.25
    assert.equal(0.5, r.param_groups[2].etas[1])
  end)

  it("give each group a rate of its own, though one tensor was given for all", function()
    for _, place in ipairs {"of each group", "of all"} do
      local rate, lr = tycho.tensor {0.1}, nil
      local groups = {{params = {ones(1)}}, {params = {ones(1)}}}
      if place == "of all" then lr = rate else groups[1].lr, groups[2].lr = rate, rate end
      local opt = optim.SGD(groups, {lr = lr or 1})
      optim.lr_scheduler.LambdaLR(opt, {function() return 1 end, function() return 10 end})
      helper.close(opt.param_groups[1].lr, tycho.tensor(0.1))
      helper.close(opt.param_groups[2].lr, tycho.tensor(1))
    end
  end)

  it("take rates that are places of one vector, and keep them so", function()
    local rates = tycho.tensor {0.1, 0.2}
    local p, q = nn.Parameter(ones(1)), nn.Parameter(ones(1))
    local opt = optim.SGD({{params = {p}, lr = rates:select(1, 1)}, {params = {q}, lr = rates:select(1, 2)}}, {lr = 1})
    rates:mul_(0)
    p.grad, q.grad = ones(1), ones(1)
    opt:step()
    helper.close(p, ones(1))
    helper.close(q, ones(1))
  end)

  it("let a group have keys of its own, and a class say false where its base has a number", function()
    for _, key in ipairs {"steps", "reps", "wlr", "prho"} do
      assert.equal(1, optim.SGD({{params = {ones(1)}, [key] = 1}}, {lr = 1}).param_groups[1][key])
    end
    helper.fails("unknown option 'weight_decy'", optim.SGD, {{params = {ones(1)}, weight_decy = 1}}, {lr = 1})
    local None = optim.SGD:extend("None", {weight_decay = false})
    assert.equal(0.1, None({ones(1)}, {weight_decay = 0.1}).param_groups[1].weight_decay)
    helper.fails("momentum must be a number", optim.SGD:extend("Same", {momentum = 0.9}), {ones(1)}, {momentum = "x"})
  end)

  it("own optimizers that step by themselves load their states as they were", function()
    local Own = optim.Optimizer:extend("Own", {lr = 0.1})
    function Own:step()
      for _, p in ipairs(self.param_groups[1].params) do
        local s = self.state[p] or {step = tycho.tensor(0), count = 0, left = tycho.zeros(2, 2), mu_product = 1,
          wide = tycho.zeros({3}, {dtype = "float64"})}
        self.state[p] = s
        s.step:add_(1)
        s.count = s.count + 1
        s.left:add_(s.step)
      end
    end
    local net = nn.Linear(3, 2)
    local a, b = Own(net:parameters()), Own(net:parameters())
    a:step()
    a:step()
    b:load_state_dict(a:state_dict())
    for _ = 1, 3 do
      a:step()
      b:step()
    end
    for _, p in ipairs(net:parameters()) do
      local s, t = a.state[p], b.state[p]
      assert.equal(5, t.step:item())
      assert.equal("float32", t.step.dtype)
      assert.equal(5, t.count)
      assert.same({1, "float64"}, {t.mu_product, t.wide.dtype})
      assert.is_true(s.left:equal(t.left))
    end
    local Steps = optim.Optimizer:extend("Steps", {lr = 0.1})
    function Steps:step()
      for _, p in ipairs(self.param_groups[1].params) do
        self.state[p] = self.state[p] or {step = 0}
        self.state[p].step = self.state[p].step + 1
      end
    end
    local c, d = Steps(net:parameters()), Steps(net:parameters())
    c:step()
    d:load_state_dict(c:state_dict())
    d:step()
    assert.equal(2, d.state[net.weight].step)
    local Sgd = optim.SGD:extend("Sgd")                  -- steps as SGD does, and more
    function Sgd:step(...)
      optim.SGD.step(self, ...)
      for _, p in ipairs(self.param_groups[1].params) do self.state[p].seen = tycho.ones(1, 4) end
    end
    local function one(o)
      o:zero_grad()
      net(tycho.ones(1, 3)):sum():backward()
      o:step()
    end
    local e, f = Sgd(net:parameters(), {lr = 0.1, momentum = 0.9}), Sgd(net:parameters(), {lr = 0.1, momentum = 0.9})
    one(e)
    one(e)
    f:load_state_dict(e:state_dict())
    one(f)
    assert.equal(3, f.state[net.bias].step:item())
    assert.is_true(rawequal(f.state[net.bias].step, f.state[net.weight].step))
    assert.equal("1x4", tostring(f.state[net.bias].seen.shape))
    fails("'momentum_buffer' of parameter 1 has shape 3; it must be 2x3", f.load_state_dict, f, (function()
      local s = e:state_dict()
      s.state[1].momentum_buffer = tycho.ones(3)
      return s
    end)())
  end)

  it("with hooks, or steps that call the library's, step on after a load", function()
    local net = nn.Linear(3, 2)
    local function one(o)
      o:zero_grad()
      net(tycho.ones(1, 3)):sum():backward()
      o:step()
    end
    local R = optim.Optimizer:extend("R", {lr = 0.1})
    function R:rule(group, p, g, _, _, write) write(p, p - g * group.lr) end
    local S = R:extend("S")
    function S:step(...) return R.step(self, ...) end
    for _, class in ipairs {R, S, optim.AdamW} do
      local o = class(net:parameters())
      o:register_step_post_hook(function() end)
      one(o)
      local d = o:state_dict()
      if class == optim.AdamW then for _, s in pairs(d.state) do s.step = tycho.tensor(1) end end      -- as PyTorch's
      o:load_state_dict(d)
      one(o)
      assert.equal(2, o.state[net.weight].step:item())
    end
  end)

  it("masters that are asked for later, also beside a state without them, are made", function()
    for _, name in ipairs {"AdamW", "SGD", "RMSprop", "Adafactor", "Muon"} do
      local w = tycho.randn(8, 8)
      local function steps(o, p, n)
        for _ = 1, n do
          p.grad = (tycho.ones(8, 8) * 0.1):bfloat16()
          o:step()
        end
      end
      local a = w:bfloat16():requires_grad_()
      local first = optim[name]({a}, {lr = 1e-4})
      steps(first, a, 3)
      local b = a:detach():clone():requires_grad_()
      local second, state = optim[name]({b}, {lr = 1e-4, master_weights = true}), first:state_dict()
      state.param_groups[1].master_weights = nil          -- as PyTorch's
      second:load_state_dict(state)
      steps(second, b, 100)
      assert.equal(103, second.state[b].step:item())
      assert.is_true((second.state[b].master - w):abs():max():item() > 1e-3, name)       -- steps that bfloat16 would round away
      is(second.state[b].master:bfloat16(), b)
      first.param_groups[1].master_weights = true
      steps(first, a, 100)
      is(second.state[b].master, first.state[a].master)
      local c = w:clone():requires_grad_()
      local third = optim[name]({c}, {lr = 1e-4})
      third:load_state_dict(second:state_dict())          -- a float32 parameter needs no master
      c.grad = tycho.ones(8, 8)
      third:step()
      assert.is_nil(third.state[c].master)
    end
  end)

  it("masters that are made later leave moments as wide as they were saved, and own states as these are made", function()
    local a = nn.Parameter(tycho.randn(4))
    local first = optim.Adam({a}, {lr = 1e-3})
    a.grad = tycho.randn(4)
    first:step()
    local b = a:detach():bfloat16():requires_grad_()
    local second, state = optim.Adam({b}, {lr = 1e-3, master_weights = true}), first:state_dict()
    state.param_groups[1].master_weights = nil
    second:load_state_dict(state)
    is(second.state[b].exp_avg, first.state[a].exp_avg)
    local Half = optim.Optimizer:extend("Half", {lr = 0.1})
    function Half:new_state(p, _, s) s.mean, s.half = tycho.zeros_like(p), tycho.zeros({1}, {dtype = "bfloat16"}) end
    function Half:rule(group, p, g, _, _, write) write(p, p - g * group.lr) end
    local c = tycho.ones({2}, {dtype = "bfloat16"}):requires_grad_()
    local own = Half({c})
    for k = 1, 2 do
      own.param_groups[1].master_weights = k == 2
      c.grad = tycho.ones({2}, {dtype = "bfloat16"})
      own:step()
    end
    assert.same({"float32", "bfloat16"}, {own.state[c].mean.dtype, own.state[c].half.dtype})
  end)

  it("a class's own methods may call the base class's", function()
    local Own = optim.Optimizer:extend("Own")
    function Own:rule(group, p, g, _, _, write) write(p, p - g * group.lr) end
    function Own:state_dict()
      local d = optim.Optimizer.state_dict(self)
      d.more = 3
      return d
    end
    assert.equal(3, Own({ones(2)}):state_dict().more)
    assert.is_function(optim.lr_scheduler.LRScheduler.state_dict)
  end)

  it("a scaler's scale that skipped steps have led to 0 can be saved and loaded; float32 can't hold another", function()
    local scaler = tycho.amp.GradScaler()
    scaler:load_state_dict {scale = 0, growth_factor = 2, backoff_factor = 0.5, growth_interval = 2000, _growth_tracker = 0}
    assert.equal(0, scaler:get_scale())
    scaler:scale(tycho.ones(1))
    scaler:update(8)
    assert.equal(8, scaler:get_scale())
    fails("init_scale must be above 0 and within float32, got 1e+39", tycho.amp.GradScaler, {init_scale = 1e39})
    fails("must be above 0 and within float32, got 1e+39", scaler.update, scaler, 1e39)
    fails("init_scale must be above 0 and within float32, got 1e-46", tycho.amp.GradScaler, {init_scale = 1e-46})
  end)
end)
