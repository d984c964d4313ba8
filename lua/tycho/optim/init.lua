-- Optimizers: each step is one call of a fused op over all parameters of a group that share hyperparameters.
--
-- Idea: the base class keeps groups and per-parameter state; a subclass names its defaults, makes state for a parameter
-- at its first step, and hands lists to the op. State tensors are kept beyond any scope. With master_weights = true, 16-bit parameters
-- are copies of float32 masters in the state: the step updates the master and writes both.
local core = require "tycho.core"
local ops, M, program = core.ops, core.methods, core.program
local options = require "tycho.options"
local check, shown, fail = options.check, options.shown, options.fail
local module = require "tycho.nn.module"
local zero_grads, is_module = module.zero_grads, module.is_module
local settings = require "tycho.optim.settings"
local check_settings, without_theirs = settings.check, settings.without_theirs
local callable = require("tycho.modes").callable
local optim = {}

local Optimizer = {}
Optimizer.__index = Optimizer

-- A list of parameters; a ParameterList is one, another module isn't.
local function check_list(name, params)
  if is_module(params) and not (params[1] == nil or core.is_tensor(params[1])) or
      (is_module(params) and params._name ~= "ParameterList") then
    fail("%s: argument 1 is a module; give its parameters: %s(net:parameters(), ...)", name, name)
  end
end

-- The parameters of a list, or of lists: {a:parameters(), b:parameters()} are all of them.
local function all_of(name, params)
  local missing, out = module.incomplete[params], {}
  if getmetatable(params) == nil then
    options.items(name, "the list of parameters", params, ("belongs into a second table: %s(params, {...})"):format(name))
  end
  if missing then fail("%s: %s has no parameters yet: call the module with an input before its optimizer is made", name, missing) end
  for _, p in ipairs(params) do
    if type(p) == "table" and getmetatable(p) == nil and p.params == nil then
      for _, q in ipairs(all_of(name, p)) do out[#out + 1] = q end
    else out[#out + 1] = p end
  end
  return out
end

local every_option = {"params", "initial_lr"}            -- of all optimizers

-- What net:named_parameters() gives, or a list of its pairs {name, parameter}, as a list; everything else as it is.
local function list_of(params)
  local list, first = {}, type(params) == "table" and not core.is_tensor(params) and params[1]
  if type(first) == "table" and not core.is_tensor(first) and type(first[1]) == "string" and core.is_tensor(first[2]) then
    for i, pair in ipairs(params) do list[i] = type(pair) == "table" and not core.is_tensor(pair) and pair[2] or pair end
    return list
  end
  if type(params) ~= "function" then return params end
  for _, p in params do list[#list + 1] = p end
  module.incomplete[list] = module.incomplete[params]
  return list
end

local function add_group(self, given, known)
  local name, group, seen = self._name, {params = {}}, {}
  if type(given) ~= "table" or core.is_tensor(given) then
    fail("%s: a group must be a table {params = list, ...}, got %s", name, shown(given))
  end
  given = without_theirs(name, given, known)
  local initial = given.initial_lr         -- a schedule's, see last_epoch there
  given.initial_lr = nil
  for k in pairs(given) do                 -- what is no optimizer's, nor like that, is the program's own: a name, a factor for its schedule
    if known[k] == nil and (type(k) ~= "string" or core.nearest(k, every_option)) then check(name, given, known) end
  end
  given.params = list_of(given.params)
  if core.is_tensor(given.params) then given.params = {given.params} end
  if type(given.params) ~= "table" then fail("%s: a group needs a list 'params'", name) end
  check_list(name, given.params)
  for k, v in pairs(self.defaults) do group[k] = v end
  for k, v in pairs(given) do if k ~= "params" then group[k] = v end end
  group.initial_lr = initial
  if type(group.betas) == "table" then group.betas = {unpack(group.betas)} end
  for _, other in ipairs(self.param_groups) do         -- a rate that is a tensor is one group's
    if core.is_tensor(group.lr) and group.lr == other.lr then group.lr = core.keep(ops.clone(group.lr)) end
  end
  for _, other in ipairs(self.param_groups) do
    for _, p in ipairs(other.params) do seen[p] = true end
  end
  for i, p in ipairs(all_of(name, given.params)) do
    if not core.is_tensor(p) then fail("%s: parameter %d is a %s", name, i, type(p)) end
    if not p.is_leaf then fail("%s: parameter %d of shape %s is a result, not a leaf", name, i, tostring(p.shape)) end
    if seen[p] then fail("%s: parameter %d is given twice", name, i) end
    if self.needs_whole and module.sharded[p] then fail("%s: its rule takes whole parameters; parameter %d is sharded", name, i) end
    seen[p] = true
    group.params[i] = p
  end
  check_settings(self, group)
  self.param_groups[#self.param_groups + 1] = group
end

local function text_of(v)
  if core.is_tensor(v) then return M.numel(v) == 1 and ("%g"):format(v:item()) or "a tensor" end
  if type(v) ~= "table" then return tostring(v) end
  local out = {}
  for i, x in ipairs(v) do out[i] = text_of(x) end
  return "{" .. table.concat(out, ", ") .. "}"
end
local function describe(self)
  local lines = {self._name .. " ("}
  for i, group in ipairs(self.param_groups) do
    local names = {}
    for k in pairs(group) do if k ~= "params" then names[#names + 1] = k end end
    table.sort(names)
    lines[#lines + 1] = "Parameter Group " .. i
    for _, k in ipairs(names) do lines[#lines + 1] = ("    %s: %s"):format(k, text_of(group[k])) end
  end
  return table.concat(lines, "\n") .. "\n)"
end

-- Gives the class, and what is called to make one, which is optim's of that name unless it is a user's own.
local function new_class(name, defaults, own)
  local class = setmetatable({_name = name}, {__index = Optimizer})
  class.__index, class.defaults_of, class.__tostring, class.optional = class, defaults, describe, {}
  class.__newindex = function(opt, k, v)
    if defaults[k] ~= nil then fail("%s: '%s' is a group's: opt.param_groups[1].%s = %s", name, k, k, text_of(v)) end
    rawset(opt, k, v)
  end
  local known = {params = true}
  for k in pairs(defaults) do
    known[k] = true
    if not own then every_option[#every_option + 1] = k end
  end
  -- (params, {lr=, ...}), (params, lr, {...}), ({params=, lr=, ...})
  local function construct(_, params, lr, o, more)
    if type(params) == "table" and not core.is_tensor(params) and params[1] == nil and type(params.params) == "table" and lr == nil then
      lr, params = params, params.params
      local rest = {}
      for k, v in pairs(lr) do if k ~= "params" then rest[k] = v end end
      lr = rest
    end
    if type(lr) == "table" then lr, o, more = nil, lr, o end
    params = list_of(params)
    check_list(name, params)
    if type(params) ~= "table" or core.is_tensor(params) then
      fail("%s: argument 1 must be a list of parameters or of groups, got %s", name,
        core.is_tensor(params) and "tensor" or type(params))
    end
    if more ~= nil then fail("%s: parameters, lr and a table of options are taken, not more", name) end
    o = without_theirs(name, o or {}, defaults)
    check(name, o, defaults)
    local self = setmetatable({param_groups = {}, state = {}, defaults = {}, sharers = setmetatable({}, {__mode = "k"})}, class)
    for k, v in pairs(defaults) do self.defaults[k] = v end
    for k, v in pairs(o) do self.defaults[k] = v end
    if lr ~= nil then
      if o.lr ~= nil then fail("%s: argument 'lr' is given twice", name) end
      self.defaults.lr = lr
    end
    local listed = type(params[1]) ~= "table" or params[1].params == nil and (core.is_tensor(params[1][1]) or next(params[1]) == nil)
    local groups = listed and {{params = params}} or
      options.items(name, "the list of groups", params, ("belongs into a group, or into a second table: %s(groups, {...})"):format(name))
    for _, given in ipairs(groups) do add_group(self, given, known) end
    if #self.param_groups[1].params == 0 and #self.param_groups == 1 then fail("%s: the list of parameters is empty", name) end
    return self
  end
  -- add_param_group{params = list, lr = ...}: one more group; settings that it doesn't name are those the optimizer was made with.
  function class:add_param_group(group)
    if type(group) ~= "table" or core.is_tensor(group) then
      fail("%s: a group must be a table {params = list, ...}, got %s", name, core.is_tensor(group) and "tensor" or type(group))
    end
    add_group(self, group, known)
    program.hooked()                       -- what was recorded steps without it
  end
  local made = setmetatable({}, {__index = class, __newindex = class, __call = construct,
    __tostring = function() return "class " .. name end})
  if not own then optim[name] = made end
  return class, made
end

-- zero_grad({set_to_none=true}): all gradients become nil or, with set_to_none = false, zeros.
function Optimizer:zero_grad(...)
  for _, group in ipairs(self.param_groups) do zero_grads(group.params, ...) end
end

-- Steps are counted on the device, by one number for all parameters that have always stepped together; sharers[step] says how many
-- those are. So a skipped step needs no word from the device, and a recorded one counts on.
local function count_with(self, s, step)
  if s.step then self.sharers[s.step] = self.sharers[s.step] - 1 end
  s.step = step
  self.sharers[step] = (self.sharers[step] or 0) + 1
end

local function refuse_capture(self, what)
  if core.gpu.capturing() then fail("%s: a graph can't record a step that %s: call step() once before", self._name, what) end
end

local function like(p) return core.keep(ops.zeros(p.shape, {dtype = p.dtype, device = p.device})) end
local function is_half(x) return x.dtype == "float16" or x.dtype == "bfloat16" end

-- State for a parameter that has none, or that lacks what the group's options now ask for. fresh: this step's new counts.
local function begin(self, p, group, s, fresh)
  refuse_capture(self, "makes state")
  if group.master_weights and is_half(p) and not (s and s.master) then
    s = {master = core.keep(M.to(p:detach(), "float32"))}
  end
  s = s or {}
  self:new_state(s.master or p, group, s)
  for _, v in pairs(s) do if core.is_tensor(v) then core.keep(v) end end
  local kind = p.device .. (s.master and " with master" or "")
  fresh[kind] = fresh[kind] or core.keep(ops.zeros({}, {dtype = "int64", device = p.device}))
  count_with(self, s, fresh[kind])
  return s
end

-- What the group's options ask for besides, maybe since a step ago: it begins as zeros.
local function complete(self, group, s, p)
  for _, extra in ipairs(self.optional) do
    if not s[extra.name] and extra.asked(group) then
      refuse_capture(self, "makes state")
      s[extra.name] = like(p)
    end
  end
end

-- A group's settings since it was made: what isn't of its default's kind. Numbers are whatever a schedule made of them.
local function check_kinds(self, group)
  if type(group.params) ~= "table" then fail("%s: a group needs a list 'params', got %s", self._name, shown(group.params)) end
  for k, default in pairs(self.defaults_of) do
    if group[k] == nil then group[k] = self.defaults[k] end  -- of a group that was put there by hand
    local v = group[k]
    if type(v) ~= type(default) and not (k == "lr" and core.is_tensor(v)) then check_settings(self, group, true) end
    if k == "lr" and v ~= v then fail("%s: lr must be a number, got %s", self._name, shown(v)) end
  end
end

-- Whether a compiled function's steps read the group's rate anew at each call.
function Optimizer:reads_rate(group) return not self.of_ops or (not self.own_rule and type(group.lr) == "number") end

-- The update itself. scaling: a GradScaler's found(device) and scale(device), or nil. What can be wrong is looked for in all groups before
-- the first is updated.
function Optimizer:apply_gradients(scaling)
  local work = {}
  if core.gpu.capturing() then self.captured = true end    -- see state.lua
  for i, group in ipairs(self.param_groups) do
    check_kinds(self, group)
    local buckets, order, fresh = {}, {}, {}              -- of the parameters that have gradients, by their count
    work[i] = order
    for _, p in ipairs(group.params) do
      local g = core.grad_of(p)
      if g then
        local s = self.state[p]
        if not s or (self.lacks and self:lacks(s, group)) then
          s = begin(self, p, group, s, fresh)
          self.state[p] = s
        end
        complete(self, group, s, s.master or p)
        local b = buckets[s.step]
        if not b then
          b = {params = {}, grads = {}, state = {}, copies = s.master and {}, step = s.step, lr = group.lr}
          if scaling then b.found, b.scale = scaling.found(p.device), scaling.scale and scaling.scale(p.device) end
          buckets[s.step], order[#order + 1] = b, b
        end
        local n = #b.params + 1
        b.params[n], b.grads[n], b.state[n] = s.master or p, g, s
        if s.master then b.copies[n] = p end
      end
    end
  end
  for n, group in ipairs(self.param_groups) do
    for _, b in ipairs(work[n]) do
      if #b.state < self.sharers[b.step] then             -- some that stepped along so far don't: these count on by themselves
        refuse_capture(self, "leaves parameters out")
        b.step = core.keep(ops.clone(b.step))
        for _, s in ipairs(b.state) do count_with(self, s, b.step) end
      end
      self:update(group, b)
      if program.updates then                              -- for a compiled function
        program.updates[#program.updates + 1] = {group = group, reads_rate = self:reads_rate(group)}
      end
      -- nobody else has these handles: the gradients' memory isn't to wait for the collector
      for _, g in ipairs(self.hands_out and {} or b.grads) do core.free(g) end
    end
  end
end

-- A step that goes between hooks: the optimizer's own, or a GradScaler's, which applies the gradients.
local function between(self, hooks)
  for _, method in ipairs {"step", "apply_gradients"} do
    local inner = self[method]             -- LBFGS applies none
    self[method] = inner and function(opt, given)
      if hooks.under_way then return inner(opt, given) end
      hooks.under_way = true
      return options.finally(function() hooks.under_way = nil end, function()
        for _, h in ipairs {unpack(hooks.pre)} do h.fn(opt, given) end        -- they may remove themselves
        local loss = inner(opt, given)
        for _, h in ipairs {unpack(hooks.post)} do h.fn(opt, given) end
        return loss
      end)
    end
  end
end
for _, when in ipairs {"pre", "post"} do
  local name = "register_step_" .. when .. "_hook"
  -- fn(optimizer) is called before each step (pre) or after it (post). Gives a handle with remove().
  Optimizer[name] = function(self, fn)
    options.expect(name, 1, fn, callable(fn), "a function")
    if not self.step_hooks then
      self.step_hooks = {pre = {}, post = {}}
      between(self, self.step_hooks)
    end
    local list, h = self.step_hooks[when], {fn = fn}
    list[#list + 1] = h
    program.hooked()
    function h.remove() program.hooked() for i, other in ipairs(list) do if other == h then table.remove(list, i) return end end end
    return h
  end
end
-- step(closure=): one update of the parameters from their gradients; those without one are left alone. closure, if given, is called first;
-- its result, the loss, is given back.
function Optimizer:step(closure)
  if closure ~= nil and not callable(closure) then fail("step: argument 1 (closure) must be a function, got " .. shown(closure)) end
  local loss = closure and closure()
  self:apply_gradients()
  return loss
end

local function field(list, name)
  local out = {}
  for i, s in ipairs(list) do out[i] = s[name] end
  return out
end
for name, method in pairs(require "tycho.optim.state") do Optimizer[name] = method end

---- SGD ----
-- Gradient descent: v = momentum v + (1 - dampening)(g + weight_decay p); p = p - lr v. nesterov: by g + momentum v.
local SGD = new_class("SGD",
  {lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0, nesterov = false, maximize = false, master_weights = false})
SGD.foreign = {exp_avg = true, exp_inf = true, square_avg = true, sum = true}    -- it may have no state: what is missing tells nothing
-- Momentum begins with the first gradient after it was asked for.
function SGD:lacks(s, group) return group.momentum ~= 0 and not s.momentum_buffer end
function SGD:new_state(p, group, s) if group.momentum ~= 0 then s.momentum_buffer = like(p) end end
function SGD:update(group, b)
  ops.sgd_step(b.params, b.grads, group.momentum ~= 0 and field(b.state, "momentum_buffer") or nil, b.copies or nil,
    b.step, b.lr, b.found, b.scale, group.momentum, group.dampening, group.weight_decay, group.nesterov, group.maximize)
end

---- Adam, AdamW ----
-- Kingma and Ba 2014. Adam adds weight_decay p to the gradient; AdamW (Loshchilov and Hutter 2017) multiplies p by 1 - lr weight_decay.
for name, decay in pairs {Adam = 0, AdamW = 0.01} do
  local Adam = new_class(name,
    {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = decay, amsgrad = false, maximize = false,
      master_weights = false})
  Adam.optional = {{name = "max_exp_avg_sq", asked = function(group) return group.amsgrad end}}
  function Adam:new_state(p, _, s)
    s.exp_avg, s.exp_avg_sq = like(p), like(p)
  end
  function Adam:update(group, b)
    ops.adamw_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"),
      group.amsgrad and field(b.state, "max_exp_avg_sq") or nil, b.copies or nil, b.step, b.lr, b.found, b.scale,
      group.betas[1], group.betas[2], group.eps, group.weight_decay, name == "AdamW", group.maximize)
  end
end

---- NAdam, RAdam, Adamax, Adadelta ----
-- Adam with Nesterov's momentum (Dozat 2016). Its schedule of momentum follows from the count of steps, the betas and momentum_decay of the
-- step, as if they had always been these.
local NAdam = new_class("NAdam",
  {lr = 2e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3,
    decoupled_weight_decay = false, maximize = false, master_weights = false})
-- Adam whose first steps are without the second moment until that is known well enough (Liu et al. 2019).
local RAdam = new_class("RAdam",
  {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, decoupled_weight_decay = false, maximize = false,
    master_weights = false})
-- Adam with the largest gradient, decayed by the second beta, in the place of the second moment (Kingma and Ba 2014).
local Adamax = new_class("Adamax",
  {lr = 2e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, maximize = false, master_weights = false})
-- Steps of the size of the last ones over that of the last gradients (Zeiler 2012).
local Adadelta = new_class("Adadelta", {lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0, maximize = false, master_weights = false})
for class, names in pairs {[NAdam] = {"exp_avg", "exp_avg_sq"}, [RAdam] = {"exp_avg", "exp_avg_sq"},
    [Adamax] = {"exp_avg", "exp_inf"}, [Adadelta] = {"square_avg", "acc_delta"}} do
  function class:new_state(p, _, s) s[names[1]], s[names[2]] = like(p), like(p) end
end
function NAdam:update(group, b)
  ops.nadam_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"), b.copies or nil, b.step,
    b.lr, b.found, b.scale, group.betas[1], group.betas[2], group.eps, group.weight_decay,
    group.decoupled_weight_decay, group.momentum_decay, group.maximize)
end
function RAdam:update(group, b)
  ops.radam_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"), b.copies or nil, b.step,
    b.lr, b.found, b.scale, group.betas[1], group.betas[2], group.eps, group.weight_decay,
    group.decoupled_weight_decay, group.maximize)
end
function Adamax:update(group, b)
  ops.adamax_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_inf"), b.copies or nil, b.step, b.lr, b.found, b.scale,
    group.betas[1], group.betas[2], group.eps, group.weight_decay, group.maximize)
end
function Adadelta:update(group, b)
  ops.adadelta_step(b.params, b.grads, field(b.state, "square_avg"), field(b.state, "acc_delta"), b.copies or nil,
    b.step, b.lr, b.found, b.scale, group.rho, group.eps, group.weight_decay, group.maximize)
end

---- RMSprop, Adagrad ----
-- The gradient divided by the root of the mean of its last squares (Hinton). centered: by its deviation.
local RMSprop = new_class("RMSprop",
  {lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = false, maximize = false,
    master_weights = false})
RMSprop.optional = {{name = "momentum_buffer", asked = function(group) return group.momentum > 0 end},
  {name = "grad_avg", asked = function(group) return group.centered end}}
function RMSprop:new_state(p, _, s) s.square_avg = like(p) end
function RMSprop:update(group, b)
  ops.rmsprop_step(b.params, b.grads, field(b.state, "square_avg"), group.momentum > 0 and field(b.state, "momentum_buffer") or nil,
    group.centered and field(b.state, "grad_avg") or nil, b.copies or nil, b.step, b.lr, b.found, b.scale,
    group.alpha, group.eps, group.weight_decay, group.momentum, group.maximize)
end

-- The gradient divided by the root of the sum of all its squares (Duchi et al. 2011).
local Adagrad = new_class("Adagrad",
  {lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10, maximize = false,
    master_weights = false})
function Adagrad:new_state(p, group, s)
  s.sum = core.keep(ops.full(p.shape, group.initial_accumulator_value, {dtype = p.dtype, device = p.device}))
end
function Adagrad:update(group, b)
  ops.adagrad_step(b.params, b.grads, field(b.state, "sum"), b.copies or nil, b.step, b.lr, b.found, b.scale,
    group.lr_decay, group.eps, group.weight_decay, group.maximize)
end

options.methods(Optimizer, "opt", function(self) return type(self) == "table" and self.param_groups ~= nil end)
Optimizer._loads = Optimizer.load_state_dict
require("tycho.optim.lbfgs")(new_class)
local composed = require("tycho.optim.composed")(new_class)

optim.Optimizer = {}
-- An optimizer of one's own: local Lion = optim.Optimizer:extend("Lion", {lr = 1e-4, beta = 0.9}), with two methods. Lion:new_state(p,
-- group, s) puts a parameter's state, tensors and numbers, into s at its first step. Lion:rule(group, p, grad, s, t, write) computes by
-- ops what the parameter and its state become, and hands each to write(tensor, new value); t counts steps from 1. Then
-- Lion(net:parameters(), {lr = 1e-3}). Groups, zero_grad, state dicts, schedulers, GradScaler, float32 masters and compiled steps work
-- with it.
function optim.Optimizer:extend(name, defaults) -- luacheck: no self
  if type(name) ~= "string" then fail("extend: argument 1 (name) must be a string, got %s", shown(name)) end
  local all = {lr = 1e-3, maximize = false, master_weights = false}
  if defaults ~= nil and type(defaults) ~= "table" then fail("extend: argument 2 (defaults) must be a table, got %s", shown(defaults)) end
  for k, v in pairs(defaults or {}) do all[k] = v end
  local class, made = composed(name, all, true)
  class.hands_out = true                 -- a rule of the user's may keep a gradient
  function class:new_state() end -- luacheck: no self
  function class:rule() fail("%s: a method rule(group, p, grad, state, t, write) is needed", self._name) end
  return made
end
optim.lr_scheduler = require "tycho.optim.lr_scheduler"
optim.swa_utils = require "tycho.optim.swa_utils"
optim.swa_utils.SWALR = optim.lr_scheduler.SWALR
return require("tycho.options").told(optim, "optim")
