-- Optimizers' states as data: what is saved, and how a saved state is loaded.
--
-- Idea: state dicts name parameters by their place over all groups; PyTorch's are accepted too. A dict holds the optimizer's own tensors,
-- and loading replaces these by copies. But where a graph has captured steps (captured), which go on using these tensors, loading writes
-- into them, and a dict holds copies. Invariant: everything is checked before anything changes.
local core = require "tycho.core"
local options = require "tycho.options"
local no_grad = require("tycho.modes").no_grad
local ops, M, program = core.ops, core.methods, core.program
local fail, shown = options.fail, options.shown

local settings = require "tycho.optim.settings"
local check_settings, THEIRS, own_copy, is_half = settings.check, settings.THEIRS, settings.own_copy, settings.is_half
local Optimizer = {}                       -- methods of all optimizers

-- The state and the groups' settings as a table, for tycho.save; parameters are numbered by their place over all groups, from 1. Later
-- steps change the tensors in it.
function Optimizer:state_dict()
  local out, n = {state = {}, param_groups = {}}, 0
  local function own_or_copy(v) return self.captured and core.keep(ops.clone(v:detach())) or v:detach() end
  for i, group in ipairs(self.param_groups) do
    local g = {params = {}}
    for k, v in pairs(group) do
      if k ~= "params" then g[k] = core.is_tensor(v) and core.keep(ops.clone(v:detach())) or own_copy(v) end
    end
    for k, p in ipairs(group.params) do
      n = n + 1
      g.params[k] = n
      if self.state[p] then
        local s = {}
        for name, v in pairs(self.state[p]) do s[name] = core.is_tensor(v) and own_or_copy(v) or v end
        out.state[n] = s
      end
    end
    out.param_groups[i] = g
  end
  return out
end

-- The states in the order of the parameters, by the groups' numbers, which count from 1, or from 0 in PyTorch's.
local function states_in_order(d)
  local out, n = {}, 0
  for _, g in ipairs(d.param_groups) do
    for k = 1, #g.params do
      n = n + 1
      out[n] = d.state[g.params[k]]
    end
  end
  return out
end

-- State fields not copied as they are: the count, and a value that follows from it (saved by PyTorch's NAdam).
local FOLLOWS = {step = true, mu_product = true}

-- new_state(p, group, s): puts what parameter p begins with into its state s; a program's own class may have none.
function Optimizer:new_state() end
-- rule(group, p, grad, state, t, write): computes a step; a program's own class must have one, or a step of its own.
function Optimizer:rule() fail("%s: a method rule(group, p, grad, state, t, write) is needed", self._name) end
-- Whether the program itself has written this method, in a class of its own or for this optimizer.
local function has_own(self, method)
  local of = self
  while rawget(of, method) == nil do of = getmetatable(of).__index end
  return of == self or rawget(of, "own") == true
end
-- Whether the library counts steps, in the states' `step`. A class made of none of the library's that steps by itself, without a rule, has
-- states that are its own.
local function is_counted(self) return not self.generic or not self:has_own_step() or has_own(self, "rule") end
-- The state that a parameter, or its master, begins with, to compare with another. group: with all settings.
function Optimizer:_first_state(p, group)
  local fresh = {}
  no_grad(function() self:new_state(p, group, fresh) end)
  return fresh
end

-- Copies a loaded state into the existing tensors where they match, since a captured graph steps with those. Step counts too, if the same
-- parameters share them.
local function into_present(old, new)
  local count_of, shared_with = {}, {}     -- of each new count: the old one, and back; false: ambiguous
  local function pair(map, a, b) if map[a] == nil then map[a] = b elseif not rawequal(map[a], b) then map[a] = false end end
  for p, s in pairs(new) do
    local before = old[p] and old[p].step or false
    if core.is_tensor(s.step) then
      pair(count_of, s.step, before)
      if before then pair(shared_with, before, s.step) end
    end
  end
  for p, s in pairs(new) do
    local was = old[p] or {}
    for name, v in pairs(s) do
      local to = was[name]
      local fits = core.is_tensor(v) and core.is_tensor(to) and to.dtype == v.dtype and to.shape == v.shape and to.device == v.device
      if name == "step" then fits = fits and rawequal(count_of[v], to) and rawequal(shared_with[to], v) end
      if fits then
        no_grad(M.copy_, to, v)
        s[name] = to
      end
    end
  end
end

-- Loads copies of what state_dict gave, Tycho's or, but for LBFGS, PyTorch's, parameter by place. Everything is checked before anything
-- changes.
function Optimizer:load_state_dict(d)
  local dtypes = self:check_state_dict(d)
  local new, n, counts, shared, states = {}, 0, {}, setmetatable({}, {__mode = "k"}), states_in_order(d)
  local counted = is_counted(self)
  for i, group in ipairs(self.param_groups) do
    local masters = d.param_groups[i].master_weights
    if masters == nil then masters = group.master_weights end
    for _, p in ipairs(group.params) do
      n = n + 1
      local s = states[n]
      if s then
        local t = {}
        local half = is_half(p)
        for name, v in pairs(s) do
          local follows = counted and (FOLLOWS[name] or (name == "master" and not half))           -- such a parameter needs none
          if not follows and core.is_tensor(v) then
            local like = counted and M.is_floating_point(v) and (half and (s.master or masters) and "float32" or p.dtype)
            local dtype = dtypes[n] and dtypes[n][name] or like or v.dtype
            t[name] = core.keep(ops.clone(M.to(M.to(v:detach(), dtype), p.device)))
          elseif not follows and name ~= "version" then t[name] = v end               -- older files have a version
        end
        if self.took_over then self:took_over(d.param_groups[i], s, t) end
        if counted then
          local count = s.step or 1                       -- PyTorch's SGD has no count
          count = core.is_tensor(count) and count:item() or count
          local key = ("%d %s %s %.17g"):format(i, p.device, tostring(t.master ~= nil), count)
          counts[key] = counts[key] or core.keep(ops.full({}, count, {dtype = "int64", device = p.device}))
          t.step = counts[key]                            -- parameters of a group with equal counts share one again
        end
        new[p] = t
      end
    end
  end
  program.hooked()                         -- recorded steps may use the old state
  if self.captured then into_present(self.state, new) end
  for _, s in pairs(counted and new or {}) do shared[s.step] = (shared[s.step] or 0) + 1 end
  for i, group in ipairs(self.param_groups) do
    if d.param_groups[i].initial_lr == nil then group.initial_lr = nil end          -- saved before there was a scheduler
    local lr = group.lr                    -- a tensor rate keeps its identity: recorded steps read it
    for k, v in pairs(d.param_groups[i]) do
      local own = core.is_tensor(v) and k ~= "lr" and core.keep(ops.clone(v:detach())) or own_copy(v)
      if k ~= "params" and (not THEIRS[k] or self.defaults_of[k] ~= nil) then group[k] = own end
    end
    if core.is_tensor(lr) then
      no_grad(M.copy_, lr, core.is_tensor(group.lr) and group.lr or ops.full(lr.shape, group.lr, {dtype = lr.dtype}))
      group.lr = lr
    elseif core.is_tensor(group.lr) then
      group.lr = core.keep(ops.clone(M.to(group.lr:detach(), group.params[1] and group.params[1].device or "cpu")))
    end
  end
  self.state, self.sharers = new, shared
end

-- Raises if load_state_dict would. Returns the dtypes of the states that the program's own class makes, by parameter and name.
function Optimizer:check_state_dict(d)
  if type(d) ~= "table" or type(d.param_groups) ~= "table" or type(d.state) ~= "table" then
    fail "load_state_dict: a table with state and param_groups is needed"
  end
  if #d.param_groups ~= #self.param_groups then
    fail("load_state_dict: the state has %d groups, the optimizer has %d", #d.param_groups, #self.param_groups)
  end
  local made, settings_of = {}, {}         -- by group: what the library puts into its parameters' states; all settings
  local own_state, counted, dtypes = has_own(self, "new_state"), is_counted(self), {}
  for i, g in ipairs(d.param_groups) do
    if type(g) ~= "table" or type(g.params) ~= "table" then fail("load_state_dict: group %d has no list of parameters", i) end
    local own, all = self.param_groups[i], {}
    if #g.params ~= #own.params then
      fail("load_state_dict: group %d has %d parameters, the optimizer's has %d", i, #g.params, #own.params)
    end
    for k, number in ipairs(g.params) do
      if type(number) ~= "number" then fail("load_state_dict: group %d: parameter %d must be a number, got %s", i, k, shown(number)) end
    end
    for k, v in pairs(own) do all[k] = v end
    for k, v in pairs(g) do all[k] = v end
    check_settings(self, all, true)
    made[i], settings_of[i] = {}, all
    if not own_state then self:new_state(ops.zeros({1}), all, made[i]) end
  end
  local n, states = 0, states_in_order(d)
  for i, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do
      n = n + 1
      local s = states[n]
      if s ~= nil and type(s) ~= "table" then fail("load_state_dict: the state of parameter %d must be a table, got %s", n, type(s)) end
      local fresh, present = {}, self.state[p] or {}
      if s and own_state then fresh = self:_first_state(core.is_tensor(s.master) and M.to(p:detach(), "float32") or p, settings_of[i]) end
      dtypes[n] = {}
      for name, first in pairs(s and (own_state and fresh or not self.lacks and made[i]) or {}) do
        local v = s[name]
        if v == nil and not self.lacks then
          fail("load_state_dict: the state of parameter %d has no '%s'; is it another optimizer's?", n, name)
        end
        local floating = core.is_tensor(first) and M.is_floating_point(first)
        if v ~= nil and core.is_tensor(first) and not (core.is_tensor(v) and (M.is_floating_point(v) == floating or FOLLOWS[name])) then
          fail("load_state_dict: '%s' of parameter %d must be a %stensor, got %s", name, n, floating and "floating " or "", shown(v))
        end
        if own_state and core.is_tensor(first) then dtypes[n][name] = first.dtype end
        if type(first) == "number" and (type(v) == "string" or type(v) == "table") then
          fail("load_state_dict: '%s' of parameter %d must be a number, got %s", tostring(name), n, shown(v))
        end
      end
      for name, v in pairs(s or {}) do
        if self.foreign and self.foreign[name] then
          fail("load_state_dict: the state of parameter %d has '%s', which %s doesn't have; is it another optimizer's?", n, tostring(name),
            self._name)
        end
        -- as the optimizer makes it, or has it; else as the parameter, or, beside a program's own new_state, one number; what a program's
        -- own step() makes may be anything
        local like = core.is_tensor(fresh[name]) and fresh[name] or own_state and core.is_tensor(present[name]) and present[name] or nil
        local want = like and like.shape or self.state_shape and self:state_shape(name, p) or p.shape
        local free = not like and name ~= "master" and (own_state and core.is_tensor(v) and M.numel(v) == 1 or
          not own_state and self.own and self:has_own_step() and made[i][name] == nil)
        local fits = core.is_tensor(v) and (v.shape == want or free)
        if not FOLLOWS[name] and core.is_tensor(v) and not fits then
          fail("load_state_dict: '%s' of parameter %d has shape %s; it must be %s", tostring(name), n, tostring(v.shape), tostring(want))
        end
      end
      local count = counted and s and s.step or nil
      if core.is_tensor(count) then count = M.numel(count) == 1 and count:item() or false end
      if count ~= nil and not (type(count) == "number" and count >= 0) then
        fail("load_state_dict: 'step' of parameter %d must be a number", n)
      end
    end
  end
  return dtypes
end

return Optimizer
