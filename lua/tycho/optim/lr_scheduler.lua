-- Learning-rate schedules: Scheduler(optimizer, arguments in PyTorch's order or by name), then step() after each optimizer step (or epoch).
-- Formulas and names are PyTorch's; epochs count from 0. last_epoch=: continues a schedule at that epoch; the optimizer's groups then need
-- an initial_lr, which its state has.
local core = require "tycho.core"
local options = require "tycho.options"
local schedule = require "tycho.optim.schedule"
local callable = require("tycho.modes").callable
local fail = options.fail
local schedulers, Scheduler, new_class = schedule.classes, schedule.Scheduler, schedule.new_class
local as_number, set_rate, rates_of, rates_in, advance = schedule.as_number, schedule.set_rate, schedule.rates_of, schedule.rates_in,
  schedule.advance
local need, from_zero, one_of, of_group, each = schedule.need, schedule.from_zero, schedule.one_of, schedule.of_group, schedule.each

local function need_momentum(self)
  for _, g in ipairs(self.cycle_momentum and self.optimizer.param_groups or {}) do
    if not (g.betas or g.momentum) then fail("%s: %s has no momentum: set {cycle_momentum = false}", self._name, self.optimizer._name) end
  end
  for _, k in ipairs {"base_momentum", "max_momentum"} do
    for i in ipairs(self.optimizer.param_groups) do
      local v = of_group(self, k, i)
      if v ~= nil then options.number(self._name, k, v, 0) end
    end
  end
end
-- With cycle_momentum, sets group i's momentum: between(its least, its greatest).
local function set_momentum(self, i, between)
  if not self.cycle_momentum then return end
  local group, m = self.optimizer.param_groups[i], between(of_group(self, "base_momentum", i), of_group(self, "max_momentum", i))
  if group.betas then group.betas = {m, group.betas[2]} else group.momentum = m end
end

-- lr * gamma^floor(epoch / step_size)
local StepLR = new_class("StepLR", "step_size, gamma=0.1")
function StepLR:begin()
  need(self, "step_size")
  Scheduler.begin(self)
end
function StepLR:lr_at(epoch, base) return base * self.gamma ^ math.floor(epoch / self.step_size) end
function StepLR:next_lr(epoch, lr) return epoch > 0 and epoch % self.step_size == 0 and lr * self.gamma or lr end

-- lr * gamma at each milestone; milestones: a list of epochs
local MultiStepLR = new_class("MultiStepLR", "milestones, gamma=0.1")
function MultiStepLR:begin()
  if type(self.milestones) ~= "table" then fail("MultiStepLR: milestones must be a list of epochs, got " .. type(self.milestones)) end
  for i, m in ipairs(options.items("MultiStepLR", "milestones", self.milestones)) do
    options.whole("MultiStepLR", "milestones: " .. i, m, 0)
  end
  Scheduler.begin(self)
end
function MultiStepLR:passed(epoch, at)
  local n = 0
  for _, m in ipairs(self.milestones) do if m == epoch or (not at and m < epoch) then n = n + 1 end end
  return n
end
function MultiStepLR:lr_at(epoch, base) return base * self.gamma ^ self:passed(epoch) end
function MultiStepLR:next_lr(epoch, lr) return lr * self.gamma ^ self:passed(epoch, true) end

-- lr * gamma^epoch
local ExponentialLR = new_class("ExponentialLR", "gamma")
function ExponentialLR:begin()
  need(self, "gamma")
  Scheduler.begin(self)
end
function ExponentialLR:lr_at(epoch, base) return base * self.gamma ^ epoch end
function ExponentialLR:next_lr(epoch, lr) return epoch > 0 and lr * self.gamma or lr end

-- along half a cosine from lr to eta_min in T_max epochs, and back
local CosineAnnealingLR = new_class("CosineAnnealingLR", "T_max, eta_min=0")
function CosineAnnealingLR:begin()
  need(self, "T_max")
  Scheduler.begin(self)
end
function CosineAnnealingLR:lr_at(epoch, base)
  return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2
end
function CosineAnnealingLR:next_lr(epoch, lr, base)
  if epoch == 0 then return lr end
  local T = self.T_max
  if (epoch - 1 - T) % (2 * T) == 0 then return lr + (base - self.eta_min) * (1 - math.cos(math.pi / T)) / 2 end
  return (1 + math.cos(math.pi * epoch / T)) / (1 + math.cos(math.pi * (epoch - 1) / T)) * (lr - self.eta_min) + self.eta_min
end

-- along half a cosine from lr to eta_min; restarts after T_0 epochs, then each time after T_mult times as many; step(epoch) also takes
-- fractions
local WarmRestarts = new_class("CosineAnnealingWarmRestarts", "T_0, T_mult=1, eta_min=0")
function WarmRestarts:begin()
  options.whole("CosineAnnealingWarmRestarts", "T_0", self.T_0, 1)
  options.whole("CosineAnnealingWarmRestarts", "T_mult", self.T_mult, 1)
  Scheduler.begin(self)
end
function WarmRestarts:load_state_dict(d)
  for _, name in ipairs {"T_0", "T_mult"} do
    if type(d) == "table" and d[name] ~= nil then options.whole("load_state_dict", name, d[name], 1) end
  end
  return Scheduler.load_state_dict(self, d)
end
-- epoch may be a fraction, such as the share of batches done; unless given, it is the next one.
function WarmRestarts:step(epoch)
  epoch = options.named("step", "epoch", epoch)
  if epoch == nil then return Scheduler.step(self) end
  if options.number("CosineAnnealingWarmRestarts", "step's epoch", epoch, 0) >= 2 ^ 53 then
    fail("CosineAnnealingWarmRestarts: step's epoch must be below 2^53, got %g", epoch)
  end
  advance(self, epoch, self.set)
end
function WarmRestarts:lr_at(epoch, base)
  local T = self.T_0
  if self.T_mult == 1 then epoch = epoch % T end
  while epoch >= T do epoch, T = epoch - T, T * self.T_mult end
  return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / T)) / 2
end

-- lr * a factor that goes from start_factor to end_factor in total_iters epochs
local LinearLR = new_class("LinearLR", "start_factor=0.33333333333333331, end_factor=1, total_iters=5")
function LinearLR:begin()
  if self.start_factor <= 0 or self.start_factor > 1 then
    fail("LinearLR: start_factor must be above 0, at most 1, got %g", self.start_factor)
  end
  if self.end_factor < 0 or self.end_factor > 1 then fail("LinearLR: end_factor must be in 0..1, got %g", self.end_factor) end
  from_zero(self, false, "total_iters")
  Scheduler.begin(self)
end
-- The share of total_iters that has passed at an epoch, 0..1; 0 if total_iters is 0, as in PyTorch.
local function gone(self, epoch) return self.total_iters > 0 and math.min(self.total_iters, epoch) / self.total_iters or 0 end
function LinearLR:lr_at(epoch, base)
  return base * (self.start_factor + (self.end_factor - self.start_factor) * gone(self, epoch))
end
function LinearLR:next_lr(epoch, lr)
  if epoch == 0 then return lr * self.start_factor end
  if epoch > self.total_iters then return lr end
  return lr * self:lr_at(epoch, 1) / self:lr_at(epoch - 1, 1)
end
-- lr * factor for total_iters epochs, then lr
local ConstantLR = new_class("ConstantLR", "factor=0.33333333333333331, total_iters=5")
function ConstantLR:begin()
  if type(self.factor) ~= "number" or not (self.factor >= 0 and self.factor <= 1) then
    fail("ConstantLR: factor must be in 0..1, got %s", options.shown(self.factor))
  end
  from_zero(self, false, "total_iters")
  Scheduler.begin(self)
end
function ConstantLR:lr_at(epoch, base) return epoch < self.total_iters and base * self.factor or base end
function ConstantLR:next_lr(epoch, lr, base)
  if epoch == 0 then return lr * self.factor end
  return epoch ~= self.total_iters and lr or self.factor == 0 and base or lr / self.factor
end
-- lr * (1 - epoch / total_iters)^power, then 0
local PolynomialLR = new_class("PolynomialLR", "total_iters=5, power=1")
function PolynomialLR:begin()
  from_zero(self, false, "total_iters")
  Scheduler.begin(self)
end
function PolynomialLR:lr_at(epoch, base) return base * (1 - gone(self, epoch)) ^ self.power end
function PolynomialLR:next_lr(epoch, lr)
  if epoch == 0 or epoch > self.total_iters then return lr end
  return lr * ((1 - epoch / self.total_iters) / (1 - (epoch - 1) / self.total_iters)) ^ self.power
end

local function lambda(self, i)
  local fn = callable(self.lr_lambda) and self.lr_lambda or of_group(self, "lr_lambda", i)
  if not callable(fn) then fail(self._name .. ": lr_lambda must be a function or a list with one for each group") end
  return fn
end
local function factor(self, i, epoch)
  local v = lambda(self, i)(epoch)
  if type(v) ~= "number" then fail("%s: lr_lambda must give a number, got %s for epoch %d", self._name, options.shown(v), epoch) end
  return v
end
-- lr * lr_lambda(epoch); lr_lambda: a function, or a list of one for each group
local LambdaLR = new_class("LambdaLR", "lr_lambda")
function LambdaLR:lr_at(epoch, base, i) return base * factor(self, i, epoch) end
-- multiplied by lr_lambda(epoch) at each epoch except the first; lr_lambda as in LambdaLR
local MultiplicativeLR = new_class("MultiplicativeLR", "lr_lambda")
function MultiplicativeLR:begin()
  lambda(self, 1)
  Scheduler.begin(self)
end
function MultiplicativeLR:lr_at(epoch, base, i)
  for e = 1, epoch do base = base * factor(self, i, e) end
  return base
end
function MultiplicativeLR:next_lr(epoch, lr, _, i) return epoch > 0 and lr * factor(self, i, epoch) or lr end
function MultiplicativeLR:restart()                -- it only knows the current rate
  self.last_epoch = 0
  for i, g in ipairs(self.optimizer.param_groups) do set_rate(g, g.lr * factor(self, i, 0)) end
  self.last_lr = rates_of(self.optimizer)
end

-- from base_lr to max_lr and back in straight lines; triangular2 halves the height each cycle, exp_range shrinks it by gamma each step.
-- Momentum moves in the opposite direction, from max_momentum to base_momentum. scale_fn(n): a height of the user's own, where n is the
-- cycle from 1 or, with scale_mode="iterations", the step from 0
local CyclicLR = new_class("CyclicLR", "base_lr, max_lr, step_size_up=2000, step_size_down=nil, mode=triangular, \z
  gamma=1, scale_fn=nil, scale_mode=cycle, cycle_momentum=true, base_momentum=nil, max_momentum=nil")
function CyclicLR:begin()
  need_momentum(self)
  one_of(self, "mode", "triangular", "triangular2", "exp_range")
  one_of(self, "scale_mode", "cycle", "iterations")
  if self.scale_fn and not callable(self.scale_fn) then
    fail("CyclicLR: scale_fn must be a function, got %s", options.shown(self.scale_fn))
  end
  from_zero(self, true, "step_size_up", "step_size_down")
  self.base_momentum, self.max_momentum = self.base_momentum or 0.8, self.max_momentum or 0.9
  self.base_lrs = {}
  for i, g in ipairs(self.optimizer.param_groups) do
    self.base_lrs[i] = each(self, "base_lr", i)
    g.initial_lr = g.initial_lr or self.base_lrs[i]
  end
end
function CyclicLR:lr_at(step, base, i)
  local up, total = self.step_size_up, self.step_size_up + (self.step_size_down or self.step_size_up)
  local cycle = math.floor(1 + step / total)
  local x = 1 + step / total - cycle
  local height = x <= up / total and x / (up / total) or (x - 1) / (up / total - 1)
  local scale = self.scale_fn and self.scale_fn(self.scale_mode == "cycle" and cycle or step) or
    self.mode == "triangular2" and 1 / 2 ^ (cycle - 1) or self.mode == "exp_range" and self.gamma ^ step or 1
  options.number("CyclicLR", "what scale_fn gives", scale)
  set_momentum(self, i, function(low, high) return high - (high - low) * height * scale end)
  return base + (each(self, "max_lr", i) - base) * height * scale
end

-- up to max_lr in pct_start of total_steps (or epochs * steps_per_epoch), then down to almost nothing (Smith and Topin 2017); momentum
-- moves in the opposite direction; step() after each batch
local OneCycleLR = new_class("OneCycleLR",
  "max_lr, total_steps=nil, epochs=nil, steps_per_epoch=nil, pct_start=0.3, anneal_strategy=cos, cycle_momentum=true, "
  .. "base_momentum=nil, max_momentum=nil, div_factor=25, final_div_factor=1e4, three_phase=false")
function OneCycleLR:begin()
  need_momentum(self)
  one_of(self, "anneal_strategy", "cos", "linear")
  for _, k in ipairs {"epochs", "steps_per_epoch"} do if self[k] ~= nil then options.whole("OneCycleLR", k, self[k], 1) end end
  if not self.total_steps and self.epochs and self.steps_per_epoch then self.total_steps = self.epochs * self.steps_per_epoch end
  options.whole("OneCycleLR", "total_steps", self.total_steps, 1)
  from_zero(self, true, "div_factor", "final_div_factor")
  if type(self.pct_start) ~= "number" or not (self.pct_start >= 0 and self.pct_start <= 1) then
    fail("OneCycleLR: pct_start must be in 0..1, got %s", options.shown(self.pct_start))
  end
  self.base_momentum, self.max_momentum = self.base_momentum or 0.85, self.max_momentum or 0.95
  self.base_lrs = {}
  for i, g in ipairs(self.optimizer.param_groups) do
    if not self.resumed then g.initial_lr = each(self, "max_lr", i) / self.div_factor end
    self.base_lrs[i] = g.initial_lr
  end
end
-- From first to top, then to last; with three phases back from top to first, then to last.
function OneCycleLR:along(step, first, top, last)
  local up, stop = self.pct_start * self.total_steps - 1, self.total_steps - 1
  local down = self.three_phase and 2 * self.pct_start * self.total_steps - 2 or stop
  local a, b, t
  if step <= up then a, b, t = first, top, up > 0 and step / up or 1
  elseif step <= down then a, b, t = top, self.three_phase and first or last, (step - up) / (down - up)
  else a, b, t = first, last, (step - down) / (stop - down) end
  if self.anneal_strategy == "linear" then return a + (b - a) * t end
  return b + (a - b) / 2 * (1 + math.cos(math.pi * t))
end
function OneCycleLR:lr_at(step, base, i)
  if step > self.total_steps then fail("OneCycleLR: step %d is past total_steps %d", step, self.total_steps) end
  step = math.min(step, self.total_steps - 1)
  set_momentum(self, i, function(low, high) return self:along(step, high, low, high) end)
  return self:along(step, base, each(self, "max_lr", i), base / self.final_div_factor)
end

---- of other schedules ----
local function members(name, list, optimizer)
  if type(list) ~= "table" or next(list) == nil then fail(name .. ": schedulers must be a list") end
  options.items(name, "schedulers", list)
  for i, s in ipairs(list) do
    if type(s) ~= "table" or type(s.optimizer) ~= "table" or not s.last_epoch then
      fail("%s: schedulers: item %d must be a scheduler, got %s", name, i, options.shown(s))
    end
    if s.optimizer ~= optimizer then fail("%s: schedulers: item %d belongs to another optimizer", name, i) end
    if s._name == "ReduceLROnPlateau" then fail("%s: schedulers: item %d is a ReduceLROnPlateau, which needs a metric", name, i) end
  end
  return list
end
local function restart_all(self)
  for _, g in ipairs(self.optimizer.param_groups) do set_rate(g, g.initial_lr) end
  self:start()
end
local function check_milestones(self, milestones)
  if type(milestones) ~= "table" then fail("SequentialLR: milestones must be a list of epochs, got %s", options.shown(milestones)) end
  for i, m in ipairs(milestones) do options.whole("SequentialLR", "milestones: " .. i, m, 0) end
  if #self.schedulers ~= #milestones + 1 then fail("SequentialLR: there must be one milestone fewer than schedulers") end
end
local function member_states(self)
  local out = {last_epoch = self.last_epoch, last_lr = self.last_lr, milestones = self.milestones and {unpack(self.milestones)},
    schedulers = {}}
  for i, s in ipairs(self.schedulers) do out.schedulers[i] = s:state_dict() end
  return out
end
local function load_members(self, d)
  local list = type(d) == "table" and (d.schedulers or d._schedulers)
  if type(list) ~= "table" or #list ~= #self.schedulers then
    fail("load_state_dict: the state of a %s has a list of %d schedulers", self._name, #self.schedulers)
  end
  local last, milestones = rates_in(self, d, "last_lr", "_last_lr"), self.milestones and (d.milestones or d._milestones)
  if milestones then check_milestones(self, milestones) end
  for i, s in ipairs(self.schedulers) do s:load_state_dict(list[i]) end
  self.milestones = milestones and {unpack(milestones)} or self.milestones
  self.last_epoch = type(d.last_epoch) == "number" and d.last_epoch or self.schedulers[1].last_epoch
  self.last_lr = last or rates_of(self.optimizer)
end

-- one schedule after another: at each milestone the next one begins, at its own epoch 0, also one that has schedules of its own
local SequentialLR = new_class("SequentialLR", "schedulers, milestones")
function SequentialLR:begin()
  members("SequentialLR", self.schedulers, self.optimizer)
  check_milestones(self, self.milestones)
  for _, s in ipairs(self.schedulers) do s.last_epoch = -1 end
  self:restart()
end
function SequentialLR:set() self.last_lr = rates_of(self.optimizer) end
-- The schedule of an epoch, and whether it begins there.
local function member_at(self, epoch)
  local k, begins = 1, epoch == 0
  for i, m in ipairs(self.milestones) do if epoch >= m then k, begins = i + 1, epoch == m end end
  return self.schedulers[k], begins
end
local function of_the_epoch(self)
  local s, begins = member_at(self, self.last_epoch)
  if begins then s:restart() else s:step() end
  self:set()
end
function SequentialLR:step() advance(self, self.last_epoch + 1, of_the_epoch) end
function SequentialLR:start()
  self.last_epoch = 0
  member_at(self, 0):start()
  self:set()
end
SequentialLR.state_dict, SequentialLR.load_state_dict = member_states, load_members

-- all schedules at every step, each applied to the result of the others. ChainedScheduler(schedulers), as PyTorch's, or (optimizer,
-- schedulers)
local ChainedScheduler, chained = new_class("ChainedScheduler", "schedulers")
local of_optimizer = getmetatable(chained).__call
getmetatable(chained).__call = function(self, first, second, ...)
  if options.has_names(first) and first.schedulers then          -- by name
    options.check("ChainedScheduler", first, {schedulers = true, optimizer = true})
    first, second = first.schedulers, first.optimizer
  end
  local list = type(first) == "table" and type(first[1]) == "table" and first[1].optimizer and first
  if list then return of_optimizer(self, type(second) == "table" and second.param_groups and second or list[1].optimizer, list, ...) end
  return of_optimizer(self, first, second, ...)
end
function ChainedScheduler:begin() members("ChainedScheduler", self.schedulers, self.optimizer) end
function ChainedScheduler:set() self.last_lr = rates_of(self.optimizer) end
local function all_of_them(self)
  for _, s in ipairs(self.schedulers) do s:step() end
  self:set()
end
function ChainedScheduler:step() advance(self, self.last_epoch + 1, all_of_them) end
function ChainedScheduler:start()
  self.last_epoch = 0
  for _, s in ipairs(self.schedulers) do s:start() end
  self:set()
end
SequentialLR.restart, ChainedScheduler.restart = restart_all, restart_all
ChainedScheduler.state_dict, ChainedScheduler.load_state_dict = member_states, load_members

-- from the current rate to swa_lr in anneal_epochs, where it stays: for stochastic weight averaging; anneal_strategy "cos" or "linear"
local SWALR = new_class("SWALR", "swa_lr, anneal_epochs=10, anneal_strategy=cos")
function SWALR:begin()
  Scheduler.begin(self)
  one_of(self, "anneal_strategy", "cos", "linear")
  options.whole("SWALR", "anneal_epochs", self.anneal_epochs, 0)
  for i, g in ipairs(self.optimizer.param_groups) do
    g.swa_lr = options.number("SWALR", "swa_lr", of_group(self, "swa_lr", i), 0)
  end
end
function SWALR:restart()                          -- from the current rate
  self.last_epoch = 0
  self:set()
end
function SWALR:share(epoch)
  local t = math.max(0, math.min(1, epoch / math.max(1, self.anneal_epochs)))
  return self.anneal_strategy == "cos" and (1 - math.cos(math.pi * t)) / 2 or t
end
function SWALR:next_lr(epoch, lr, _, i)
  local g = self.optimizer.param_groups[i]
  if self.anneal_epochs == 0 then return g.swa_lr end
  if epoch < 1 then return lr end
  local before = self:share(epoch - 1)
  local own = before == 1 and g.swa_lr or (lr - g.swa_lr * before) / (1 - before)          -- the rate where annealing began
  local now = self:share(epoch)
  return g.swa_lr * now + own * (1 - now)
end

for _, class in ipairs {ExponentialLR, CosineAnnealingLR, LinearLR, PolynomialLR, MultiplicativeLR, SWALR} do class.follows = true end

-- lr * factor when the metric passed to step(metric) hasn't improved for more than patience steps
local Plateau = new_class("ReduceLROnPlateau",
  "mode=min, factor=0.1, patience=10, threshold=1e-4, threshold_mode=rel, cooldown=0, min_lr=nil, eps=1e-8")
function Plateau:begin()
  if not (type(self.factor) == "number" and self.factor >= 0 and self.factor < 1) then
    fail("ReduceLROnPlateau: factor must be from 0 and below 1, got " .. tostring(self.factor))
  end
  from_zero(self, false, "patience", "cooldown")
  one_of(self, "mode", "min", "max")
  one_of(self, "threshold_mode", "rel", "abs")
  self.last_epoch = 0
  self.min_lr = self.min_lr or 0
  if type(self.min_lr) == "table" and #self.min_lr ~= #self.optimizer.param_groups then
    fail("ReduceLROnPlateau: min_lr lists %d rates, the optimizer has %d groups", #self.min_lr, #self.optimizer.param_groups)
  end
  for i in ipairs(self.optimizer.param_groups) do options.number("ReduceLROnPlateau", "min_lr", of_group(self, "min_lr", i)) end
  self.best, self.num_bad_epochs, self.cooldown_counter = self.mode == "min" and math.huge or -math.huge, 0, 0
end
function Plateau:set() self.last_lr = rates_of(self.optimizer) end
function Plateau:is_better(v)
  if self.threshold_mode == "rel" then
    return self.mode == "min" and v < self.best * (1 - self.threshold) or self.mode == "max" and
      v > self.best * (1 + self.threshold)
  end
  return self.mode == "min" and v < self.best - self.threshold or self.mode == "max" and v > self.best + self.threshold
end
function Plateau:step(metric)
  metric = options.named("step", "metrics", metric)
  if core.is_tensor(metric) then metric = metric:item() end
  if type(metric) ~= "number" then fail("ReduceLROnPlateau: step needs the metric, a number, got " .. type(metric)) end
  advance(self, self.last_epoch + 1, function() self:take(metric) end)
end
function Plateau:take(metric)
  local lower = {}                         -- compute all before changing any
  for i, g in ipairs(self.optimizer.param_groups) do
    local least = options.number("ReduceLROnPlateau", "min_lr of group " .. i, of_group(self, "min_lr", i))
    lower[i] = math.max(as_number(g.lr) * self.factor, least)
  end
  if self:is_better(metric) then self.best, self.num_bad_epochs = metric, 0
  else self.num_bad_epochs = self.num_bad_epochs + 1 end
  if self.cooldown_counter > 0 then self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0 end
  if self.num_bad_epochs > self.patience then
    for i, g in ipairs(self.optimizer.param_groups) do
      if as_number(g.lr) - lower[i] > self.eps then set_rate(g, lower[i]) end
    end
    self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
  end
  self:set()
end

return options.told(schedulers, "optim.lr_scheduler")
