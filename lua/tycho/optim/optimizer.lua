-- The base of all optimizers: groups, per-parameter state, steps, hooks.
--
-- Idea: the base class keeps the groups and the per-parameter state; a subclass (init.lua) names its defaults, makes a parameter's state at
-- its first step, and passes lists of tensors to an op. State tensors outlive every scope. With master_weights = true, 16-bit parameters
-- are copies of float32 masters in the state: the step updates the master and writes both.
local core = require "tycho.core"
local ops, M, program = core.ops, core.methods, core.program
local options = require "tycho.options"
local check, shown, fail = options.check, options.shown, options.fail
local module = require "tycho.nn.module"
local zero_grads, is_module = module.zero_grads, module.is_module
local settings = require "tycho.optim.settings"
local check_settings, without_theirs, is_half = settings.check, settings.without_theirs, settings.is_half
local modes = require "tycho.modes"
local callable = modes.callable
local optim = {}                         -- tycho.optim: the classes

local Optimizer = {}
Optimizer.__index = Optimizer

-- Refuses a module in place of a list of parameters, unless it is a ParameterList.
local function check_list(name, params)
  if is_module(params) and not (params[1] == nil or core.is_tensor(params[1])) or
      (is_module(params) and params._name ~= "ParameterList") then
    fail("%s: argument 1 is a module; give its parameters: %s(net:parameters(), ...)", name, name)
  end
end

-- The parameters of a list or of nested lists, such as {a:parameters(), b:parameters()}.
local function all_of(name, params)
  local missing, out = module.incomplete[params], {}
  if getmetatable(params) == nil then
    options.items(name, "the list of parameters", params, ("belongs in a second table: %s(params, {...})"):format(name))
  end
  if missing then fail("%s: %s has no parameters yet: call the module with an input before its optimizer is made", name, missing) end
  for _, p in ipairs(params) do
    if type(p) == "table" and getmetatable(p) == nil and p.params == nil then
      for _, q in ipairs(all_of(name, p)) do out[#out + 1] = q end
    else out[#out + 1] = p end
  end
  return out
end

local every_option = {"params", "initial_lr"}            -- the options of all optimizers
local made_groups = setmetatable({}, {__mode = "k"})     -- the tables in optimizers' param_groups

-- The iterator net:named_parameters(), or a list of its pairs {name, parameter}, as a list; other values unchanged.
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

local function need_whole(self, p, i)
  if self.needs_whole and module.sharded[p] then fail("%s: needs whole parameters, but parameter %d is sharded", self._name, i) end
end

-- Whether a key is an optimizer's option misspelt.
local function resembles(k)
  local near = core.nearest(k, every_option)
  if not near then return false end
  local a, b = near:lower(), k:lower()
  if a == b then return true end
  if #k <= 2 or math.abs(#a - #b) > 2 then return false end
  return a:byte() == b:byte() or math.min(#a, #b) > 3 and (a:find(b, 1, true) or b:find(a, 1, true)) ~= nil
end
local function add_group(self, given, known)
  local name, group, seen = self._name, {params = {}}, {}
  if is_module(given) then
    fail("%s: group %d is a module; give its parameters: %s({net:parameters(), ...})", name, #self.param_groups + 1, name)
  end
  if type(given) ~= "table" or core.is_tensor(given) then
    fail("%s: a group must be a table {params = list, ...}, got %s", name, shown(given))
  end
  local of_another = made_groups[given] and given  -- as when SAM's base gets SAM's groups: the table is shared, so a schedule reaches both
  given = without_theirs(name, given, known)
  local initial = given.initial_lr         -- a schedule's; see last_epoch in lr_scheduler.lua
  given.initial_lr = nil
  for k in pairs(given) do  -- a key that resembles no optimizer's option is the program's own: a name, a factor for its schedule
    if known[k] == nil and not of_another and (type(k) ~= "string" or resembles(k)) then check(name, {[k] = given[k]}, known) end
  end
  given.params = list_of(given.params)
  if core.is_tensor(given.params) then given.params = {given.params} end
  if type(given.params) ~= "table" then fail("%s: a group needs a list 'params'", name) end
  check_list(name, given.params)
  for k, v in pairs(self.defaults) do group[k] = v end
  for k, v in pairs(given) do if k ~= "params" then group[k] = v end end
  group.initial_lr = initial
  for k, default in pairs(self.defaults_of) do                         -- a program's own table stays the program's
    local v = group[k]
    if rawequal(v, default) or type(v) == "table" and type(v[1]) == "number" then group[k] = settings.own_copy(v) end
  end
  local lr = group.lr
  for _, other in ipairs(core.is_tensor(lr) and self.param_groups or {}) do      -- groups don't share a rate that is a tensor
    if core.is_tensor(other.lr) and core.view_of(lr, other.lr) == 0 then lr = core.keep(ops.clone(lr:detach())) end
  end
  if core.is_tensor(lr) and M.numel(lr) == 1 and M.dim(lr) > 0 then lr = core.keep(M.reshape(lr:detach(), {})) end      -- its memory
  group.lr = lr
  for _, other in ipairs(self.param_groups) do
    for _, p in ipairs(other.params) do seen[p] = true end
  end
  for i, p in ipairs(all_of(name, given.params)) do
    if not core.is_tensor(p) then fail("%s: parameter %d must be a tensor, got %s", name, i, type(p)) end
    if not p.is_leaf then fail("%s: parameter %d of shape %s is a result, not a leaf", name, i, tostring(p.shape)) end
    if seen[p] then fail("%s: parameter %d is given twice", name, i) end
    need_whole(self, p, i)
    seen[p] = true
    group.params[i] = p
  end
  check_settings(self, group)
  if of_another then
    for k, v in pairs(group) do if of_another[k] == nil then of_another[k] = v end end
    group = of_another
  end
  self.param_groups[#self.param_groups + 1], made_groups[group] = group, true
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

-- The defaults of a program's own class: another class's, and `more`.
local function extended(name, defaults, more)
  if type(name) ~= "string" then fail("extend: argument 1 (name) must be a string, got %s", shown(name)) end
  if more ~= nil and type(more) ~= "table" then fail("extend: argument 2 (defaults) must be a table, got %s", shown(more)) end
  local all = {}
  for _, of in ipairs {defaults, more} do for k, v in pairs(of) do all[k] = v end end
  return all
end
-- The options that a program's own classes have named: those of `before`, and of more that aren't known already or are of another kind.
local function names_in(before, more, known)
  local out = {}
  for k in pairs(before or {}) do out[k] = true end
  for k, v in pairs(more or {}) do if type(known[k]) ~= type(v) then out[k] = true end end
  return out
end
-- The signature of a class's constructor: class.places are the settings that may follow lr by place.
local function signature_of(class, defaults)
  local out, placed = {"params", "lr=nil"}, {lr = true}
  for k in (class.places or ""):gmatch "%S+" do out[#out + 1], placed[k] = k .. "=nil", true end
  out[#out + 1] = "*"
  for k in pairs(defaults) do if not placed[k] then out[#out + 1] = k .. "=nil" end end
  return table.concat(out, ", ")
end
-- Gives the class and its constructor, which becomes optim[name] unless the class is a user's own.
local function new_class(name, defaults, own)
  local class = setmetatable({_name = name}, {__index = Optimizer})
  class.__index, class.defaults_of, class.__tostring, class.optional, class.own = class, defaults, describe, {}, own
  class.__newindex = function(opt, k, v)
    if defaults[k] ~= nil then fail("%s: '%s' belongs to a group: set opt.param_groups[1].%s = %s", name, k, k, text_of(v)) end
    rawset(opt, k, v)
  end
  local known = {params = true}
  for k in pairs(defaults) do
    known[k] = true
    if not own then every_option[#every_option + 1] = k end
  end
  local signature
  -- (params, {lr=, ...}), (params, lr, momentum, ..., {...}), ({params=, lr=, ...})
  local function construct(_, ...)
    local args = options.pack(...)
    local last = args[args.n]
    if options.has_names(last) then
      args[args.n] = without_theirs(name, last, known)
      for k in pairs(own and args[args.n] or {}) do
        if known[k] == nil and options.suggest(k, known) == "" then
          fail("%s: unknown option '%s'; an optimizer of your own has those that it names: extend(\"%s\", {%s = default, ...})", name,
            tostring(k), name, tostring(k))
        end
      end
    end
    signature = signature or signature_of(class, defaults)
    local o = options.arguments(name, signature, unpack(args, 1, args.n))
    local params = list_of(o.params)
    o.params = nil
    check_list(name, params)
    if type(params) ~= "table" or core.is_tensor(params) then
      fail("%s: argument 1 must be a list of parameters or of groups, got %s", name,
        shown(params))
    end
    if type(o.lr) == "table" then fail("%s: takes parameters, lr and a table of options, and no more", name) end
    local self = setmetatable({param_groups = {}, state = {}, defaults = {}, sharers = setmetatable({}, {__mode = "k"})}, class)
    for k, v in pairs(defaults) do self.defaults[k] = v end
    for k, v in pairs(o) do self.defaults[k] = v end
    local late = class.lr_unset and o.lr == nil          -- an optimizer that init makes may bring the rate
    if late then self.defaults.lr = nil end
    local listed = type(params[1]) ~= "table" or params[1].params == nil and (core.is_tensor(params[1][1]) or next(params[1]) == nil)
    local groups = listed and {{params = params}} or
      options.items(name, "the list of groups", params, ("belongs in a group, or in a second table: %s(groups, {...})"):format(name))
    for _, given in ipairs(groups) do add_group(self, given, known) end
    if #self.param_groups[1].params == 0 and #self.param_groups == 1 then fail("%s: the list of parameters is empty", name) end
    if own and class.init then self:init(params, o) end
    if late then
      self.defaults.lr = self.param_groups[1].lr or defaults.lr
      for _, group in ipairs(self.param_groups) do group.lr = group.lr or self.defaults.lr end
    end
    return self
  end
  -- add_param_group{params = list, lr = ...}: adds a group; settings that it doesn't name are those the optimizer was made with.
  function class:add_param_group(group)
    if type(group) ~= "table" or core.is_tensor(group) then
      fail("%s: a group must be a table {params = list, ...}, got %s", name, shown(group))
    end
    add_group(self, group, known)
    program.hooked()                       -- recorded steps don't include the group
  end
  local made = setmetatable({}, {__index = class, __newindex = class, __call = construct,
    __tostring = function() return "class " .. name end})
  if not own then optim[name] = made end
  -- A class that begins as this one: local Mine = optim.SGD:extend("Mine", {k = 1}); its methods call this one's as optim.SGD.step(self).
  function class.extend(_, sub_name, more)
    local sub, sub_made = new_class(sub_name, extended(sub_name, defaults, more), true)
    sub.optional = nil
    setmetatable(sub, {__index = class})
    sub.lr_unset = class.lr_unset and not (more and more.lr ~= nil)
    sub.named = names_in(class.named, more, defaults)
    getmetatable(sub_made).__newindex = sub
    return sub_made
  end
  return class, made
end

-- zero_grad({set_to_none=true}): all gradients become nil or, with set_to_none = false, zeros.
function Optimizer:zero_grad(...)
  for _, group in ipairs(self.param_groups) do zero_grads(group.params, ...) end
end

-- Steps are counted on the device, by one tensor for all parameters that have always stepped together; sharers[step] is their number. So a
-- step that the device skips needs no message to the host, and a recorded step keeps counting.
local function count_with(self, s, step)
  if s.step then self.sharers[s.step] = self.sharers[s.step] - 1 end
  s.step = step
  self.sharers[step] = (self.sharers[step] or 0) + 1
end

local function refuse_capture(self, what)
  if core.gpu.capturing() then fail("%s: a graph can't record a step that %s: call step() once before the graph", self._name, what) end
end

-- State like parameter p, of this value, by default 0.
local function like(p, value) return core.keep(ops.full(p.shape, value or 0, {dtype = p.dtype, device = p.device})) end

-- Makes state for a parameter that has none, or that lacks what the group's options now need. fresh: this step's new counts.
local function begin(self, p, group, s, fresh)
  refuse_capture(self, "creates state")
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

-- Adds the float32 master, and state for optional settings, that may have been switched on since the last step, or that a loaded state
-- has not; the latter begins as zeros. counts: of parameters that get their masters in this step, by the counts that these had.
local function complete(self, group, p, s, counts)
  if group.master_weights and is_half(p) and not s.master then
    refuse_capture(self, "creates state")
    local master = core.keep(M.to(p:detach(), "float32"))
    local fresh = self:_first_state(master, group)
    for name, v in pairs(s) do             -- what is 16 bits wide beside a master, too, stays so
      local wide = not core.is_tensor(fresh[name]) or fresh[name].dtype == "float32"
      if core.is_tensor(v) and v.dtype == p.dtype and wide then s[name] = core.keep(M.to(v, "float32")) end
    end
    s.master = master
    counts[s.step] = counts[s.step] or core.keep(ops.clone(s.step))
    count_with(self, s, counts[s.step])
  end
  for _, extra in ipairs(self.optional) do
    if not s[extra.name] and extra.asked(group) then
      refuse_capture(self, "creates state")
      s[extra.name] = like(s.master or p)
    end
  end
end

-- Checks that a group's settings, which may have been changed, are of their defaults' kinds. A schedule may give any number.
local function check_kinds(self, group)
  if type(group.params) ~= "table" then fail("%s: a group needs a list 'params', got %s", self._name, shown(group.params)) end
  for i, p in ipairs(self.needs_whole and group.params or {}) do need_whole(self, p, i) end        -- it may have been sharded since
  for k, default in pairs(self.defaults_of) do
    if group[k] == nil then group[k] = self.defaults[k] end  -- the group was put there by hand
    local v = group[k]
    if k == "betas" and (type(v) ~= "table" or type(v[1]) ~= "number" or type(v[2]) ~= "number") then check_settings(self, group, true) end
    if type(v) ~= type(default) and not (k == "lr" and core.is_tensor(v)) then check_settings(self, group, true) end
    if k == "lr" and v ~= v then fail("%s: lr must be a number, got %s", self._name, shown(v)) end
  end
end

local RATE = {"lr"}
-- The names of the group's numbers that a compiled function's steps read again at each call, in the order in which a step reads them. A
-- user's rule may use them as numbers; a scheduled number that is 0 takes no part.
function Optimizer:read_again(group)
  if not self.of_ops then return RATE end
  local names = {}
  for _, name in ipairs(self.rule == self.built_rule and {"lr", unpack(self.scheduled or {})} or {}) do
    local v = group[name]
    if type(v) == "number" and (name == "lr" or v ~= 0) then names[#names + 1] = name end
  end
  return names
end

-- The rate for parameters on a device, to which a tensor's value goes.
local function rate_on(device, lr)
  if core.is_tensor(lr) and M.dim(lr) > 0 then lr = M.reshape(lr:detach(), {}) end          -- of one element
  return core.is_tensor(lr) and lr.device ~= device and M.to(lr:detach(), device, {non_blocking = true}) or lr
end

-- The update itself. scaling: a GradScaler's found(device) and scale(device), or nil. All groups are checked before the first is updated.
function Optimizer:apply_gradients(scaling)
  local work = {}
  self.stepped = true
  if core.gpu.capturing() then self.captured = true end    -- see state.lua
  for i, group in ipairs(self.param_groups) do
    if type(group) ~= "table" then fail("%s: param_groups[%d] must be a group, got %s", self._name, i, shown(group)) end
    check_kinds(self, group)
  end
  for i, group in ipairs(self.param_groups) do
    local buckets, order, fresh, counts = {}, {}, {}, {}  -- of the parameters that have gradients, by their step count
    work[i] = order
    for _, p in ipairs(group.params) do
      local g = core.grad_of(p)
      if g then
        local s = self.state[p]
        if not s or (self.lacks and self:lacks(s, group)) then
          s = begin(self, p, group, s, fresh)
          self.state[p] = s
        end
        complete(self, group, p, s, counts)
        local b = buckets[s.step]
        if not b then
          if s.step.device ~= p.device then
            fail("%s: the state of a parameter of shape %s is on %s, the parameter on %s: move the model before the first step",
              self._name, tostring(p.shape), s.step.device, p.device)
          end
          b = {params = {}, grads = {}, state = {}, copies = s.master and {}, step = s.step, lr = rate_on(p.device, group.lr)}
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
      if #b.state < self.sharers[b.step] then             -- some that stepped along so far don't: those that do get a count of their own
        refuse_capture(self, "leaves parameters out")
        b.step = core.keep(ops.clone(b.step))
        for _, s in ipairs(b.state) do count_with(self, s, b.step) end
      end
      self:update(group, b)
      if program.updates then                              -- for a compiled function
        program.updates[#program.updates + 1] = {group = group, read_again = self:read_again(group)}
      end
      -- nobody else has these handles, and the gradients' memory shouldn't wait for the collector
      for _, g in ipairs(self.hands_out and {} or b.grads) do core.free(g) end
    end
  end
end

---- hooks: what is called before and after a step, or around a state dict ----
-- The methods that each kind of hook surrounds. A GradScaler's step calls apply_gradients alone; LBFGS doesn't call it.
local AROUND = {step = {"step", "apply_gradients"}, state_dict = {"state_dict"}, load_state_dict = {"load_state_dict"}}
local wrapped = setmetatable({}, {__mode = "k"})         -- what a method that hooks surround calls
-- Wraps the optimizer's methods of this kind in the hooks of lists. A state dict that a hook returns, before loading one or after making
-- one, replaces it.
local function between(self, kind, lists)
  for _, method in ipairs(AROUND[kind]) do
    local inner = self[method]
    self[method] = inner and function(opt, given)
      if lists.under_way then return inner(opt, given) end
      lists.under_way = true
      return options.finally(function() lists.under_way = nil end, function()
        for _, h in ipairs {unpack(lists.pre)} do                              -- a copy: hooks may remove themselves
          local new = h.fn(opt, given)
          if kind == "load_state_dict" and new ~= nil then given = new end
        end
        local result = inner(opt, given)
        for _, h in ipairs {unpack(lists.post)} do
          local new = h.fn(opt, kind == "state_dict" and result or given)
          if kind == "state_dict" and new ~= nil then result = new end
        end
        return result
      end)
    end
    if inner then wrapped[self[method]] = inner end
  end
end
local function register(self, name, kind, when, fn)
  options.expect(name, 1, fn, callable(fn), "a function")
  self.hooks = self.hooks or {}
  local lists = self.hooks[kind]
  if not lists then
    lists = {pre = {}, post = {}}
    self.hooks[kind] = lists
    between(self, kind, lists)
  end
  local list, h = lists[when], {fn = fn}
  list[#list + 1] = h
  program.hooked()
  function h.remove() program.hooked() for i, other in ipairs(list) do if other == h then table.remove(list, i) return end end end
  return h
end
-- fn(optimizer) is called before each step. Gives a handle with remove().
function Optimizer:register_step_pre_hook(fn) return register(self, "register_step_pre_hook", "step", "pre", fn) end
-- fn(optimizer) is called after each step. Gives a handle with remove().
function Optimizer:register_step_post_hook(fn) return register(self, "register_step_post_hook", "step", "post", fn) end
-- fn(optimizer) is called before state_dict makes one. Gives a handle with remove().
function Optimizer:register_state_dict_pre_hook(fn) return register(self, "register_state_dict_pre_hook", "state_dict", "pre", fn) end
-- fn(optimizer, d) is called with each state dict that is made, and may change it or return another. Gives a handle with remove().
function Optimizer:register_state_dict_post_hook(fn) return register(self, "register_state_dict_post_hook", "state_dict", "post", fn) end
-- fn(optimizer, d) is called before a state dict is loaded, and may return another. Gives a handle with remove().
function Optimizer:register_load_state_dict_pre_hook(fn)
  return register(self, "register_load_state_dict_pre_hook", "load_state_dict", "pre", fn)
end
-- fn(optimizer) is called after a state dict is loaded. Gives a handle with remove().
function Optimizer:register_load_state_dict_post_hook(fn)
  return register(self, "register_load_state_dict_post_hook", "load_state_dict", "post", fn)
end
-- step(closure=): one update of the parameters from their gradients; those without one are left alone. closure, if given, is called first,
-- with recording on; its result, the loss, is returned.
function Optimizer:step(closure)
  closure = options.named("step", "closure", closure)
  if closure ~= nil and not callable(closure) then fail("step: argument 1 (closure) must be a function, got " .. shown(closure)) end
  local loss = closure and modes.enable_grad(closure)
  self:apply_gradients()
  return loss
end

-- Whether step is a method of the program's own, of its class or put into the optimizer: then a GradScaler must call it.
function Optimizer:has_own_step()
  return (wrapped[self.step] or self.step) ~= Optimizer.step
end

for name, method in pairs(require "tycho.optim.state") do Optimizer[name] = method end
options.methods(Optimizer, "opt", function(self) return type(self) == "table" and self.param_groups ~= nil end)
Optimizer._loads = Optimizer.load_state_dict

return {Optimizer = Optimizer, new_class = new_class, extended = extended, names_in = names_in, classes = optim, like = like}
