-- The base of learning-rate schedules, which are in lr_scheduler.lua: their constructors, steps, states, and checks of their options.
--
-- Idea: a schedule has lr_at(epoch, base, group), the rate from the epoch alone; one that can be chained also has next_lr(epoch, lr, base,
-- group), the rate that follows the current one. Invariant: all groups' rates are computed before any is set, and a step that fails leaves
-- the epoch.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local no_grad = require("tycho.modes").no_grad
local schedulers = {}

local Scheduler = {}
Scheduler.__index = Scheduler

local WITHOUT_EPOCH = {ChainedScheduler = true, ReduceLROnPlateau = true}

-- The number in a tensor of one element; anything else as it is.
local function as_number(v) return core.is_tensor(v) and core.methods.numel(v) == 1 and v:item() or v end
-- A list's numbers; nil for anything but a list of numbers.
local function as_numbers(list)
  if type(list) ~= "table" or core.is_tensor(list) or #list == 0 then return nil end
  local out = {}
  for i, v in ipairs(list) do
    out[i] = as_number(v)
    if type(out[i]) ~= "number" then return nil end
  end
  return out
end
-- Options that are one number for all groups, or a list with one for each (of_group).
local BY_GROUP = {base_lr = true, max_lr = true, min_lr = true, swa_lr = true, base_momentum = true, max_momentum = true}
local function is_plain(v) return type(v) == "number" or type(v) == "boolean" or type(v) == "string" end

local function rates_of(optimizer)
  local out = {}
  for i, g in ipairs(optimizer.param_groups) do out[i] = core.is_tensor(g.lr) and core.keep(core.ops.clone(g.lr)) or g.lr end
  return out
end

-- signature: as options.lua describes; last_epoch comes last. Gives the class and its constructor, which becomes schedulers[name] unless
-- the class is a user's own.
local function new_class(name, signature, own)
  if not WITHOUT_EPOCH[name] then signature = (signature == "" and "" or signature .. ", ") .. "last_epoch=-1" end
  local class = setmetatable({_name = name}, {__index = Scheduler})
  class.__index = class
  class.__tostring = function(self)
    local rates = {}
    for i, group in ipairs(self.optimizer.param_groups) do rates[i] = ("%g"):format(as_number(group.lr)) end
    return ("%s(epoch %d, lr %s)"):format(name, self.last_epoch, table.concat(rates, ", "))
  end
  local made
  made = setmetatable({}, {__index = class, __newindex = class, __call = function(_, optimizer, ...)
    if select("#", ...) == 0 and type(optimizer) == "table" and optimizer.optimizer ~= nil and getmetatable(optimizer) == nil then
      local named = {}                     -- StepLR{optimizer = opt, step_size = 2}
      for k, v in pairs(optimizer) do if k ~= "optimizer" then named[k] = v end end
      return made(optimizer.optimizer, named)
    end
    if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then fail(name .. ": argument 1 must be an optimizer") end
    local self = setmetatable({optimizer = optimizer, last_epoch = -1}, class)
    for k, v in pairs(options.arguments(name, signature, ...)) do self[k] = v end
    for k, v in pairs(options.defaults(signature)) do
      local is = type(self[k])
      if type(v) == "number" and (not own or is == "string" or is == "number") then options.number(name, k, self[k]) end
    end
    self.resumed = self.last_epoch ~= -1 or nil
    for i, g in ipairs(self.resumed and optimizer.param_groups or {}) do
      if not g.initial_lr then fail("%s: last_epoch is given, but group %d of the optimizer has no initial_lr", name, i) end
    end
    self.last_epoch = self.last_epoch + 1
    self:begin()
    if self.resumed and self.follows then self.last_lr = rates_of(optimizer) else self:set() end
    self.resumed = nil
    return self
  end})
  if not own then schedulers[name] = made end
  return class, made
end

schedulers.LRScheduler = setmetatable({}, {__index = Scheduler})
-- A user's own schedule: local Halved = LRScheduler:extend("Halved", "every=10"), with a method Halved:lr_at(epoch, base, i), which gives
-- the rate of group i, whose initial rate is base, at an epoch, counted from 0; here: return base * 0.5 ^ math.floor(epoch / self.every).
-- Then Halved(optimizer, {every = 5}). The second argument lists the arguments' names in order, with defaults; nil: none. Instead of
-- lr_at there may be a method Halved:get_lr(), which gives a list of all groups' rates at self.last_epoch, from self.base_lrs and
-- self.optimizer.param_groups.
function schedulers.LRScheduler:extend(name, signature)
  if type(name) ~= "string" then fail("extend: argument 1 (name) must be a string, got %s", options.shown(name)) end
  local class, made = new_class(name, signature or "", true)
  function class:lr_at() fail("%s: a method lr_at(epoch, base, i), or get_lr(), is needed", self._name) end
  getmetatable(made).__newindex = function(_, k, v)
    if k == "init" then
      fail("%s: 'init' isn't called; define lr_at(epoch, base, i) or get_lr(), and name the arguments in extend",
        name)
    end
    class[k] = v
  end
  return made
end

-- A rate that is a tensor keeps its identity, since recorded steps read that tensor.
local function set_rate(group, lr)
  if not core.is_tensor(group.lr) then group.lr = lr
  elseif core.is_tensor(lr) then no_grad(core.methods.copy_, group.lr, lr)
  else no_grad(core.methods.fill_, group.lr, lr) end
end

-- A group added later starts with the rate that it was given.
local function fill_bases(self)
  for i, g in ipairs(self.optimizer.param_groups) do
    if self.base_lrs[i] == nil then
      g.initial_lr = g.initial_lr or as_number(g.lr)
      self.base_lrs[i] = g.initial_lr
    end
  end
end
function Scheduler:begin()
  self.base_lrs = {}
  fill_bases(self)
end
-- The rate that follows the current one: so several schedules, or a rate set by hand, combine. A schedule whose rates change in every epoch
-- so, and that is made with last_epoch, begins with the rate that holds (follows), as PyTorch's does.
function Scheduler:next_lr(epoch, _, base, i) return self:lr_at(epoch, base, i) end
-- The rates that a user's own get_lr gives; nil if there is no get_lr.
local function rates_asked(self)
  if not self.get_lr then return nil end
  local rates, n = self:get_lr(), #self.optimizer.param_groups
  if type(rates) ~= "table" or core.is_tensor(rates) or #rates ~= n then
    fail("%s: get_lr must give a list of %d rates, one for each group, got %s", self._name, n,
      type(rates) == "table" and #rates or options.shown(rates))
  end
  for i = 1, n do
    if not core.is_tensor(rates[i]) then options.number(self._name, "get_lr's rate " .. i, rates[i]) end
  end
  return rates
end
function Scheduler:set()
  fill_bases(self)
  local new, own = {}, rates_asked(self)   -- compute all before setting any: groups may share a tensor
  for i, g in ipairs(self.optimizer.param_groups) do
    if own then new[i] = own[i] else new[i] = self:next_lr(self.last_epoch, g.lr, self.base_lrs[i], i) end
    if not core.is_tensor(new[i]) then options.number(self._name, "the rate of epoch " .. tostring(self.last_epoch), new[i]) end
  end
  for i, g in ipairs(self.optimizer.param_groups) do set_rate(g, new[i]) end
  self.last_lr = rates_of(self.optimizer)
end
-- Moves to an epoch by calling set; if that fails, moves back.
local function advance(self, epoch, set)
  if select(2, core.program.active()) then core.program.settle "a scheduler steps, which guard = 'inputs' would leave out" end
  local before = self.last_epoch
  self.last_epoch = epoch
  local ok, e = pcall(set, self)
  if not ok then
    self.last_epoch = before
    error(e, 0)
  end
end
-- Moves to the next epoch (or other unit), and sets the groups' rates. Called after the optimizer's step.
function Scheduler:step(epoch)
  if epoch ~= nil then fail("%s: step takes no epoch; set last_epoch, or make a new scheduler", self._name) end
  local opt = self.optimizer               -- perhaps not one of the library's
  local early = self.last_epoch == 0 and opt.has_own_step and not opt.stepped and not opt:has_own_step()
  if early then options.warn("scheduler:step()", "called before the first optimizer:step(): the first rate is never used") end
  advance(self, self.last_epoch + 1, self.set)             -- set computes all rates before it sets any
end
-- Is at epoch 0, as if made anew where the rates are the current ones.
function Scheduler:start() self.last_epoch = 0 self:set() end
-- Starts again at epoch 0, whatever the current rate.
function Scheduler:restart()
  self.last_epoch = 0
  local own = rates_asked(self)
  for i, g in ipairs(self.optimizer.param_groups) do set_rate(g, own and own[i] or self:lr_at(0, self.base_lrs[i], i)) end
  self.last_lr = rates_of(self.optimizer)
end
-- A list of the rates that it set last, one for each group.
function Scheduler:get_last_lr() return {unpack(self.last_lr)} end
-- Its position and settings, as a table of numbers and lists of numbers, for tycho.save.
function Scheduler:state_dict()
  local out = {}
  for k, v in pairs(self) do
    if is_plain(v) then out[k] = v else out[k] = as_numbers(v) end
  end
  return out
end
-- The list of rates in a state, one for each group, under either of two names; nil if it has neither.
local function rates_in(self, d, name, other)
  local list, out = d[name] or d[other], {}
  if list == nil then return nil end
  for i = 1, #self.optimizer.param_groups do
    out[i] = type(list) == "table" and as_number(list[i])
    if type(out[i]) ~= "number" then fail("load_state_dict: '%s' must be a list of %d rates", name, #self.optimizer.param_groups) end
  end
  return out
end
-- Continues from what state_dict gave, Tycho's or PyTorch's. The current rates belong to the optimizer, and come with its state.
function Scheduler:load_state_dict(d)
  if type(d) ~= "table" or type(d.last_epoch) ~= "number" then
    fail("load_state_dict: the state of a %s must have a last_epoch, got %s", self._name, type(d) == "table" and "none" or options.shown(d))
  end
  if not (d.last_epoch >= -1 and d.last_epoch < 2 ^ 53) then
    fail("load_state_dict: the last_epoch of a %s must be from -1 and below 2^53, got %g", self._name, d.last_epoch)
  end
  local base, last, own = rates_in(self, d, "base_lrs"), rates_in(self, d, "last_lr", "_last_lr"), {}
  for k, v in pairs(d) do
    local named, mine, list = type(k) == "string" and not k:find "^_", self[k], as_numbers(v)
    if named and is_plain(v) and (mine == nil or type(mine) == type(v) or (type(v) == "number" and BY_GROUP[k])) then own[k] = v
    elseif named and list and not d._last_lr and (as_numbers(mine) or BY_GROUP[k]) then own[k] = list          -- not PyTorch's
    elseif type(v) == "string" and type(mine) == "number" then
      fail("load_state_dict: '%s' of a %s must be a number, got %s", k, self._name, options.shown(v))
    end
  end
  for k, v in pairs(own) do self[k] = v end
  self.base_lrs = base or self.base_lrs
  self.last_lr = last or rates_of(self.optimizer)
end

options.methods(Scheduler, "scheduler", function(self) return type(self) == "table" and self.optimizer ~= nil end)

local function need(self, k)
  if type(self[k]) ~= "number" or self[k] <= 0 then fail("%s: %s must be a number above 0, got %s", self._name, k, tostring(self[k])) end
end

-- Options that may be left out, but must be numbers from 0 (above: above 0) where they are given.
local function from_zero(self, above, ...)
  for _, k in ipairs {...} do
    local v = self[k]
    if v ~= nil and (type(v) ~= "number" or not (v > 0 or v == 0 and not above)) then
      fail("%s: %s must be a number %s 0, got %s", self._name, k, above and "above" or "from", options.shown(v))
    end
  end
end

local function one_of(self, k, ...)
  for _, v in ipairs {...} do if self[k] == v then return end end
  fail("%s: %s must be one of '%s', got %s", self._name, k, table.concat({...}, "', '"), options.shown(self[k]))
end

-- Option k for group i: one value for all groups, or a list with one for each.
local function of_group(self, k, i)
  local v, n = self[k], #self.optimizer.param_groups
  if type(v) ~= "table" then return v end
  if #v ~= n then fail("%s: %s must be one for all groups, or a list of %d, one for each; got a list of %d", self._name, k, n, #v) end
  return v[i]
end
local function each(self, k, i)
  local v = of_group(self, k, i)
  if type(v) ~= "number" or v <= 0 then
    fail("%s: %s must be a number above 0, or a list of one for each group, got %s", self._name, k, tostring(v))
  end
  return v
end

return {classes = schedulers, Scheduler = Scheduler, new_class = new_class, as_number = as_number, set_rate = set_rate,
  rates_of = rates_of, rates_in = rates_in, advance = advance, need = need, from_zero = from_zero, one_of = one_of, of_group = of_group,
  each = each}
