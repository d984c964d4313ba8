-- Learning-rate schedules: Scheduler(optimizer, options), then step() after each optimizer step (or epoch). Formulas and
-- names are PyTorch's; epochs count from 0.
local check = require("tycho.options").check
local schedulers = {}

local Scheduler = {}
Scheduler.__index = Scheduler

local function new_class(name, defaults, required)
  local class = setmetatable({_name = name}, {__index = Scheduler})
  class.__index = class
  local known = {}
  for k in pairs(defaults) do known[k] = true end
  for _, k in ipairs(required) do known[k] = true end
  schedulers[name] = setmetatable({}, {__index = class, __call = function(_, optimizer, o)
    if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then error(name .. ": argument 1 must be an optimizer", 2) end
    local self = setmetatable({optimizer = optimizer, last_epoch = 0}, class)
    for k, v in pairs(defaults) do self[k] = v end
    check(name, o or {}, known, 2)
    for k, v in pairs(o or {}) do self[k] = v end
    self:begin()
    self:set()
    return self
  end})
  return class
end

function Scheduler:begin()
  self.base_lrs = {}
  for i, g in ipairs(self.optimizer.param_groups) do
    g.initial_lr = g.initial_lr or g.lr
    self.base_lrs[i] = g.initial_lr
  end
end
function Scheduler:set()
  for i, g in ipairs(self.optimizer.param_groups) do g.lr = self:lr_at(self.last_epoch, self.base_lrs[i], i) end
end
function Scheduler:step()
  self.last_epoch = self.last_epoch + 1
  self:set()
end
function Scheduler:get_last_lr()
  local out = {}
  for i, g in ipairs(self.optimizer.param_groups) do out[i] = g.lr end
  return out
end
function Scheduler:state_dict()
  local out = {}
  for k, v in pairs(self) do
    if type(v) == "number" or type(v) == "boolean" or type(v) == "string" or k == "base_lrs" then out[k] = v end
  end
  return out
end
function Scheduler:load_state_dict(d)
  for k, v in pairs(d) do if k ~= "optimizer" then self[k] = v end end
  self:set()
end

local function need(self, k)
  if type(self[k]) ~= "number" or self[k] <= 0 then error(("%s: %s must be a number above 0, got %s"):format(self._name, k, tostring(self[k])), 4) end
end

-- lr * gamma^floor(epoch / step_size)
local StepLR = new_class("StepLR", {gamma = 0.1}, {"step_size"})
function StepLR:begin()
  need(self, "step_size")
  Scheduler.begin(self)
end
function StepLR:lr_at(epoch, base) return base * self.gamma ^ math.floor(epoch / self.step_size) end

-- Smith & Topin's one cycle: up to max_lr in pct_start of total_steps, then down to almost nothing; momentum runs opposite.
local OneCycleLR = new_class("OneCycleLR", {pct_start = 0.3, anneal_strategy = "cos", div_factor = 25, final_div_factor = 1e4, cycle_momentum = true,
  base_momentum = 0.85, max_momentum = 0.95}, {"max_lr", "total_steps", "epochs", "steps_per_epoch"})
function OneCycleLR:begin()
  if not self.total_steps and self.epochs and self.steps_per_epoch then self.total_steps = self.epochs * self.steps_per_epoch end
  need(self, "max_lr")
  need(self, "total_steps")
  self.base_lrs = {}
  for i, g in ipairs(self.optimizer.param_groups) do
    self.base_lrs[i] = self.max_lr / self.div_factor
    g.initial_lr = self.base_lrs[i]
  end
end
-- low, high, low again, along the two phases
function OneCycleLR:along(step, first, top, last)
  local up = self.pct_start * self.total_steps - 1
  local a, b, t
  if step <= up then a, b, t = first, top, up > 0 and step / up or 1
  else a, b, t = top, last, (step - up) / (self.total_steps - 1 - up) end
  if self.anneal_strategy == "linear" then return a + (b - a) * t end
  return b + (a - b) / 2 * (1 + math.cos(math.pi * t))
end
function OneCycleLR:lr_at(step, base, i)
  if step > self.total_steps - 1 then
    if step > self.total_steps then error(("OneCycleLR: step %d is past total_steps %d"):format(step, self.total_steps), 4) end
    step = self.total_steps - 1
  end
  local group = self.optimizer.param_groups[i]
  if self.cycle_momentum then
    local m = self:along(step, self.max_momentum, self.base_momentum, self.max_momentum)
    if group.betas then group.betas = {m, group.betas[2]}
    elseif group.momentum and group.momentum ~= 0 then group.momentum = m end
  end
  return self:along(step, base, self.max_lr, base / self.final_div_factor)
end

return schedulers
