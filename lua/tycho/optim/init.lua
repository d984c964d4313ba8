-- Optimizers: each step is one call of a fused op over all parameters of a group that share hyperparameters.
--
-- Idea: the base class keeps groups and per-parameter state; a subclass names its defaults, makes state for a parameter
-- at its first step, and hands lists to the op. State tensors are kept beyond any scope.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local check = require("tycho.options").check
local optim = {}

local Optimizer = {}
Optimizer.__index = Optimizer

local function add_group(self, given, known, level)
  local name, group, seen = self._name, {params = {}}, {}
  check(name, given, known, level)
  if type(given.params) ~= "table" then error(name .. ": a group needs a list 'params'", level) end
  for k, v in pairs(self.defaults) do group[k] = v end
  for k, v in pairs(given) do if k ~= "params" then group[k] = v end end
  for _, other in ipairs(self.param_groups) do
    for _, p in ipairs(other.params) do seen[p] = true end
  end
  for i, p in ipairs(given.params) do
    if not core.is_tensor(p) then error(("%s: parameter %d is a %s"):format(name, i, type(p)), level) end
    if not p.is_leaf then error(("%s: parameter %d of shape %s is a result, not a leaf"):format(name, i, tostring(p.shape)), level) end
    if seen[p] then error(("%s: parameter %d is given twice"):format(name, i), level) end
    seen[p] = true
    group.params[i] = p
  end
  for k, v in pairs(group) do
    if k ~= "params" and type(v) == "number" and (v ~= v or (k == "lr" or k == "weight_decay" or k == "momentum" or k == "eps") and v < 0) then
      error(("%s: %s must not be negative, got %g"):format(name, k, v), level)
    end
  end
  self.param_groups[#self.param_groups + 1] = group
end

local function new_class(name, defaults)
  local class = setmetatable({_name = name}, {__index = Optimizer})
  class.__index = class
  local known = {params = true}
  for k in pairs(defaults) do known[k] = true end
  local function construct(_, params, o)
    if type(params) ~= "table" or core.is_tensor(params) then error(name .. ": argument 1 must be a list of parameters or of groups, got " .. (core.is_tensor(params) and "tensor" or type(params)), 3) end
    o = o or {}
    check(name, o, defaults, 3)
    local self = setmetatable({param_groups = {}, state = {}, defaults = {}}, class)
    for k, v in pairs(defaults) do self.defaults[k] = v end
    for k, v in pairs(o) do self.defaults[k] = v end
    local groups = (params[1] and type(params[1]) == "table") and params or {{params = params}}
    for _, given in ipairs(groups) do add_group(self, given, known, 4) end
    if #self.param_groups[1].params == 0 and #self.param_groups == 1 then error(name .. ": the list of parameters is empty", 3) end
    return self
  end
  -- A group more: {params = list, lr = ...}; what it doesn't name is as the optimizer was made with.
  function class:add_param_group(group)
    if type(group) ~= "table" or core.is_tensor(group) then error(name .. ": a group must be a table {params = list, ...}, got " .. (core.is_tensor(group) and "tensor" or type(group)), 2) end
    add_group(self, group, known, 3)
  end
  optim[name] = setmetatable({}, {__index = class, __call = construct})
  return class
end

-- All gradients become nil.
function Optimizer:zero_grad()
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do p.grad = nil end
  end
end

-- A graph does again what was recorded: it may hold no number of the host's that changes from step to step, nor the making of state.
local function check_capture(self, group, b)
  if not self.key then
    error(self._name .. ": its step count is a number of the host's, which a graph would keep as it is: capture the forward and backward pass, and call step() after replay()", 3)
  end
  for i, s in ipairs(b.state) do
    local key = self:key(s, group)
    if key == "first" or (key ~= "plain" and b.steps[i] == 1) then
      error(self._name .. ": a graph can't record the first step, which makes the state: call step() once before", 3)
    end
  end
end

-- One update from the parameters' gradients; those without one are left alone. closure, if given, computes the loss first.
function Optimizer:step(closure)
  local loss = closure and closure()
  for _, group in ipairs(self.param_groups) do
    local buckets = {}                   -- by what the op takes as one number: PyTorch counts steps for each parameter
    for _, p in ipairs(group.params) do
      local g = p.grad
      if g then
        local s = self.state[p]
        if not s then
          s = self:new_state(p, group)
          self.state[p] = s
        end
        local step = s.step + 1
        local key = self.key and self:key(s, group) or step
        local b = buckets[key]
        if not b then
          b = {params = {}, grads = {}, state = {}, steps = {}}
          buckets[key] = b
        end
        local n = #b.params + 1
        b.params[n], b.grads[n], b.state[n], b.steps[n] = p, g, s, step
      end
    end
    for _, b in pairs(buckets) do
      if core.gpu.capturing() then check_capture(self, group, b) end
      self:update(group, b)
      for i, s in ipairs(b.state) do s.step = b.steps[i] end    -- after the update: one that failed didn't happen
    end
  end
  return loss
end

local function field(list, name)
  local out = {}
  for i, s in ipairs(list) do out[i] = s[name] end
  return out
end
local function like(p) return core.keep(ops.zeros(p.shape, {dtype = p.dtype, device = p.device})) end

-- Parameters by their place over all groups, so that it can be saved.
function Optimizer:state_dict()
  local out, n = {state = {}, param_groups = {}}, 0
  for i, group in ipairs(self.param_groups) do
    local g = {params = {}}
    for k, v in pairs(group) do if k ~= "params" then g[k] = v end end
    for k, p in ipairs(group.params) do
      n = n + 1
      g.params[k] = n
      if self.state[p] then
        local s = {}
        for name, v in pairs(self.state[p]) do s[name] = core.is_tensor(v) and v:detach() or v end
        out.state[n] = s
      end
    end
    out.param_groups[i] = g
  end
  return out
end

function Optimizer:load_state_dict(d)
  if type(d) ~= "table" or type(d.param_groups) ~= "table" or type(d.state) ~= "table" then error("load_state_dict: a table with state and param_groups is needed", 2) end
  if #d.param_groups ~= #self.param_groups then error(("load_state_dict: %d groups, the optimizer has %d"):format(#d.param_groups, #self.param_groups), 2) end
  local new, n = {}, 0
  for i, group in ipairs(self.param_groups) do
    if #d.param_groups[i].params ~= #group.params then error(("load_state_dict: group %d has %d parameters, the optimizer's has %d"):format(i, #d.param_groups[i].params, #group.params), 2) end
    for _, p in ipairs(group.params) do
      n = n + 1
      local s = d.state[n]
      if s then
        local t = {}
        for name, v in pairs(s) do
          if core.is_tensor(v) then
            if v.shape ~= p.shape then error(("load_state_dict: '%s' of parameter %d has shape %s; it must be %s"):format(name, n, tostring(v.shape), tostring(p.shape)), 2) end
            t[name] = core.keep(ops.clone(M.to(M.to(v:detach(), M.is_floating_point(v) and p.dtype or v.dtype), p.device)))
          else t[name] = v end
        end
        new[p] = t
      end
    end
  end
  for i, group in ipairs(self.param_groups) do
    for k, v in pairs(d.param_groups[i]) do if k ~= "params" then group[k] = v end end
  end
  self.state = new
end

---- SGD ----
local SGD = new_class("SGD", {lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0, nesterov = false, maximize = false})
function SGD:new_state() return {step = 0} end
-- Momentum begins with the first gradient after it was asked for, for each parameter.
function SGD:key(s, group) return group.momentum == 0 and "plain" or s.momentum_buffer and "moving" or "first" end
function SGD:update(group, b)
  local buffers, first = {}, false
  if group.momentum ~= 0 then
    for i, s in ipairs(b.state) do
      first = first or not s.momentum_buffer
      buffers[i] = s.momentum_buffer or like(b.params[i])
    end
  end
  ops.sgd_step(b.params, b.grads, buffers, group.lr, group.momentum, group.dampening, group.weight_decay, group.nesterov, first, group.maximize)
  if first then for i, s in ipairs(b.state) do s.momentum_buffer = buffers[i] end end
end

---- Adam: weight decay in the gradient; AdamW: decoupled ----
for name, decay in pairs {Adam = 0, AdamW = 0.01} do
  local Adam = new_class(name, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = decay, amsgrad = false, maximize = false})
  function Adam:new_state(p, group)
    return {step = 0, exp_avg = like(p), exp_avg_sq = like(p), max_exp_avg_sq = group.amsgrad and like(p) or nil}
  end
  function Adam:update(group, b)
    ops.adamw_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"), group.amsgrad and field(b.state, "max_exp_avg_sq") or nil,
      group.lr, group.betas[1], group.betas[2], group.eps, group.weight_decay, b.steps[1], name == "AdamW", group.maximize)
  end
end

---- RMSprop (Hinton), Adagrad (Duchi et al. 2011) ----
local RMSprop = new_class("RMSprop", {lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = false, maximize = false})
function RMSprop:new_state(p, group)
  return {step = 0, square_avg = like(p), momentum_buffer = group.momentum > 0 and like(p) or nil, grad_avg = group.centered and like(p) or nil}
end
function RMSprop:key() return "all" end
function RMSprop:update(group, b)
  ops.rmsprop_step(b.params, b.grads, field(b.state, "square_avg"), group.momentum > 0 and field(b.state, "momentum_buffer") or nil,
    group.centered and field(b.state, "grad_avg") or nil, group.lr, group.alpha, group.eps, group.weight_decay, group.momentum, group.maximize)
end

local Adagrad = new_class("Adagrad", {lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10, maximize = false})
function Adagrad:new_state(p, group) return {step = 0, sum = core.keep(ops.full(p.shape, group.initial_accumulator_value, {dtype = p.dtype, device = p.device}))} end
function Adagrad:update(group, b)
  ops.adagrad_step(b.params, b.grads, field(b.state, "sum"), group.lr / (1 + (b.steps[1] - 1) * group.lr_decay), group.eps, group.weight_decay, group.maximize)
end

require("tycho.optim.lbfgs")(new_class)
optim.lr_scheduler = require "tycho.optim.lr_scheduler"
optim.swa_utils = require "tycho.optim.swa_utils"
return optim
