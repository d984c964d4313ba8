-- The Module system: values assigned to a module are registered by name, in the order of assignment.
--
-- Idea: parameters, buffers and modules live in self._parts, everything else in self._plain. Neither are raw fields, so that a second
-- assignment also passes through __newindex; the exception are a list's members, which are raw for ipairs. A class made by extend() is
-- called to construct an instance, and an instance is called to run forward. Errors from forward carry the path of modules that led to
-- them. Invariant: a name is in _parts, with its kind in _kinds and once in _order, or else in _plain.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local options = require "tycho.options"
local fail, bare = options.fail, options.bare
local hooks = require "tycho.nn.hooks"
local takes = require "tycho.nn.takes"
local M = core.methods

local Module = {_name = "Module"}
Module.__index = Module
local is_parameter, is_module = setmetatable({}, {__mode = "k"}), setmetatable({}, {__mode = "k"})
local observers, observer = {}, nil  -- see exports.observe; observer(module, results...): nil if there are none
local function tell_observers(...) for _, o in pairs(observers) do o.ran(...) end end
local said = ""                      -- the place in the last error, by which each module around it recognises that error
local exports = {}
-- Names that Torch7 and PyTorch programs look for in modules. Other absent fields are nil: a layer may be optional.
local elsewhere = {evaluate = "use eval()", getParameters = "use parameters(), or nn.utils.parameters_to_vector to join them",
  zeroGradParameters = "use zero_grad()", zero_grads = "use zero_grad()", updateParameters = "use an optimizer's step()",
  updateOutput = "use forward", updateGradInput = "use loss:backward()", accGradParameters = "use loss:backward()",
  findModules = "use modules() or named_modules()"}

-- Parameter(t, requires_grad=true): t's memory as a leaf that requires grad; assigned to a module, it becomes one of its parameters.
local function Parameter(t, requires_grad)
  if type(requires_grad) == "table" then requires_grad = options.fill("Parameter", requires_grad, {requires_grad = true}).requires_grad end
  if not core.is_tensor(t) then fail("Parameter: argument 1 must be a tensor, got " .. type(t)) end
  local p = core.keep(t:detach())
  if requires_grad ~= nil and type(requires_grad) ~= "boolean" then
    fail("Parameter: requires_grad must be true or false, got %s", options.shown(requires_grad))
  end
  if requires_grad ~= false then p:requires_grad_(true) end
  is_parameter[p] = true
  return p
end

-- The tensors that Buffer has made, and their options.
local buffers = setmetatable({}, {__mode = "k"})
-- Buffer(t, {persistent=true}): t's memory as a tensor that becomes a buffer of the module it is assigned to; persistent = false: left out
-- of state dicts.
local function Buffer(t, o)
  if not core.is_tensor(t) then fail("Buffer: argument 1 must be a tensor, got %s", options.shown(t)) end
  if type(o) == "boolean" then o = {persistent = o} end
  local b = core.keep(t:detach())
  buffers[b] = options.fill("Buffer", o, {persistent = true})
  return b
end

-- Stand-ins for modules, and the modules: a compiled stand-in is called in the module's place; everything else is the module's own.
local stands_for = setmetatable({}, {__mode = "kv"})     -- a stand-in holds its module; weak values, since that may hold the stand-in
function exports.stand_for(v, m) is_module[v], stands_for[v] = true, m end
function exports.behind(v) return stands_for[v] or v end
local function part(m, name)
  local v = m._parts[name]
  return stands_for[v] or v
end

local function need_instance(m)
  if not is_module[m] then fail("%s is a class: make a module with %s(...)", m._name, m._name) end
end
-- The names of a module's parts, in order. A list's members are its raw fields, whoever set them, also Lua's table functions: they are
-- counted anew, without the holes that m[2] = nil leaves, and come before named parts.
local function order_of(m)
  need_instance(m)
  if not m._is_list then return m._order end
  local order, kinds, n = {}, m._kinds, 0
  for i = 1, table.maxn(m) do
    local v = rawget(m, i)
    kinds[i] = nil
    if v ~= nil then
      n = n + 1
      if m._wraps and core.is_tensor(v) and not is_parameter[v] then
        v = exports.Parameter(v)
        rawset(m, i, v)
      end
      if n < i then
        rawset(m, n, v)
        rawset(m, i, nil)
      end
      local kind = is_module[v] and "module" or is_parameter[v] and "parameter"
      if not kind then fail("%s: member %d must be a module or a Parameter, got %s", m._name, n, options.shown(v)) end
      if kind == "module" then rawset(v, "_label", tostring(n - 1)) end
      kinds[n] = kind
      order[n] = n
    end
  end
  for i = n + 1, table.maxn(kinds) do kinds[i] = nil end
  for _, name in ipairs(m._order) do if type(name) == "string" then order[#order + 1] = name end end
  rawset(m, "_order", order)
  return order
end
-- A list's _parts: named parts are stored there, parts with a position in the list itself.
local function parts_of_list(m)
  return setmetatable({}, {__index = function(_, k) return type(k) == "number" and rawget(m, k) or nil end,
    __newindex = function(parts, k, v) rawset(type(k) == "number" and m or parts, k, v) end})
end
-- A list's members, in order; a member that occurs several times is listed as often.
function exports.members(m)
  local list, kind = {}, m._wraps and "parameter" or "module"
  for _, name in ipairs(order_of(m)) do if m._kinds[name] == kind then list[#list + 1] = m._parts[name] end end
  return list
end
-- A name as in state dicts and trees: positions count from 0, as in PyTorch.
local function shown_name(name) return type(name) == "number" and tostring(name - 1) or name end

local function class_of(m) return rawget(getmetatable(m), "_class") end
local function put(self, kind, name, value)
  local parts, kinds, order = rawget(self, "_parts"), rawget(self, "_kinds"), rawget(self, "_order")
  if value == nil and kind ~= "buffer" then        -- a buffer may be nil until it is assigned
    self._plain[name] = nil
    for i, k in ipairs(order) do if k == name then table.remove(order, i); break end end
    parts[name] = nil
    kinds[name] = nil
    return
  end
  if kinds[name] == nil then
    local why = type(name) == "string" and (name:find(".", 1, true) and "names can't have dots" or
      type(exports.Module[name]) == "function" and "modules have a method of that name")
    if why then fail("%s: a %s can't be named '%s': %s", class_of(self)._name, kind, name, why) end
    order[#order + 1] = name
  end
  self._plain[name] = nil
  parts[name] = value
  kinds[name] = kind
  if kind == "module" then rawset(value, "_label", shown_name(name)) end
end

-- The position that a name such as "0" means in a list, unless a member has that name; other names stand for themselves.
local function position(list, name)
  return type(name) == "string" and (name == "0" or name:find "^[1-9]%d*$") and not list._kinds[name] and tonumber(name) + 1 or name
end

local function assign(self, name, value)
  if self._is_list then name = position(self, name) end
  if self._is_list and type(name) == "number" then         -- in a list: an existing position or the next; negative from the end
    local order = order_of(self)           -- closes holes
    local n, all = #self, #exports.members(self)
    local at = name < 0 and all + 1 + name or name
    if at > n and at <= all and (n == 0 or at > n + 1) then self[order[at]] = value return end      -- named members come after positions
    if at % 1 ~= 0 or at < 1 or at > n + 1 then
      fail("%s: position %s is out of range 1 to %d", self._name, tostring(name), all > n and all or n + 1)
    end
    if self._wraps and core.is_tensor(value) and not is_parameter[value] then value = exports.Parameter(value) end
    if value ~= nil and not is_module[value] and not is_parameter[value] then
      fail("%s: position %d must hold a module or a Parameter, got %s", self._name, at, options.shown(value))
    end
    if rawget(self, at) ~= nil then
      rawset(self, at, value)
      return
    end
    name = at
  end
  if self._wraps and core.is_tensor(value) and not is_parameter[value] then value = exports.Parameter(value) end
  if is_module[value] then put(self, "module", name, value)
  elseif core.is_tensor(value) and is_parameter[value] then put(self, "parameter", name, value)
  elseif core.is_tensor(value) and buffers[value] then self:register_buffer(name, value, buffers[value])
  else
    local kind = rawget(self, "_kinds")[name]
    if kind == "buffer" and core.is_tensor(value) then put(self, "buffer", name, core.keep(value))
    elseif kind and value ~= nil then fail("%s: '%s' is a %s and can't be replaced by %s", self._name, name, kind, options.shown(value))
    elseif kind then put(self, kind == "buffer" and kind or nil, name, nil)
    elseif rawget(rawget(self, "_parts"), "parametrizations") and rawget(rawget(self, "_parts").parametrizations._parts, name) then
      rawget(rawget(self, "_parts").parametrizations._parts, name):set(value)
    else
      if core.is_tensor(value) then core.keep(value) end
      if name == "forward" then hooks.there = true end          -- it may keep what it sees, too
      self._plain[name] = value
    end
  end
end

local describe = require "tycho.nn.tree_text"(order_of, part, shown_name)

local function where(self, ok, ...)
  if ok then
    if observer then observer(self, ...) end
    return ...
  end
  local message = select(1, ...)
  if type(message) == "string" then
    local label = self._label and ("%s (%s)"):format(self._label, self._name) or self._name
    if not message:find "^in " and (said == "" or message:sub(1, #said) ~= said) then said = core.where() end
    local place = message:sub(1, #said) == said and said or ""                  -- the user's line stays in front
    message = message:sub(#place + 1)
    if #message > 2000 and message:find "^in " then          -- the module contains itself
      message = message:sub(1, 400) .. " ... " .. message:sub(-400)
    end
    message = place .. "in " .. label .. (message:find "^in " and " > " .. message:sub(4) or ": " .. message)
  end
  error(message, 0)
end

local function as_written(self, ...)
  if rawget(self, "_hooks") or hooks.everywhere then return where(self, pcall(hooks.forward, self, ...)) end
  local forward = self.forward
  if select("#", ...) > 1 then takes.refuse_options(self._name, takes.count[forward] or math.huge, ...) end
  return where(self, pcall(forward, self, ...))
end
local function run(self, ...)
  local compiled = rawget(self, "_compiled")
  if compiled then return compiled(...) end
  return as_written(self, ...)
end

-- register_forward_hook(fn, {prepend=false, with_kwargs=false, always_call=false}): fn(module, inputs, output, ...) is called after each
-- forward; inputs is a list. A value other than nil that it returns replaces the results. prepend: runs before the existing hooks.
-- with_kwargs: fn(module, inputs, options, output, ...), where options is the last argument if that is a table of names, else {}.
-- always_call: it is also called when forward errs, without an output. Gives a handle with remove().
function Module:register_forward_hook(fn, o) return hooks.add(self, "register_forward_hook", "after", fn, o) end
-- register_full_backward_hook(fn, {prepend=false}): fn(module, grad_inputs, grad_outputs) is called when backward has computed these
-- gradients: lists by place, nil where there is none. A list that it returns replaces grad_inputs. Gives a handle with remove().
function Module:register_full_backward_hook(fn, o) return hooks.add(self, "register_full_backward_hook", "back", fn, o) end
-- register_full_backward_pre_hook(fn, {prepend=false}): fn(module, grad_outputs) is called when backward has these, before it goes through
-- the module; a list that it returns replaces them. Gives a handle with remove().
function Module:register_full_backward_pre_hook(fn, o) return hooks.add(self, "register_full_backward_pre_hook", "before_back", fn, o) end
-- register_forward_pre_hook(fn, {prepend=false, with_kwargs=false}): fn(module, inputs) is called before each forward; inputs is a list. A
-- list, or a single input, that it returns replaces them. with_kwargs: fn(module, inputs, options), as above; it may return new ones of
-- both. Gives a handle with remove().
function Module:register_forward_pre_hook(fn, o) return hooks.add(self, "register_forward_pre_hook", "before", fn, o) end

-- compile(options): from now on calls of this module go through tycho.compile, with its options, and so does their part of a backward pass;
-- compiling the whole training step as one function is faster. A clone() isn't compiled. Gives the module. tycho.compile(net) instead
-- leaves net as it is, and gives a module that stands in for it.
function Module:compile(o)
  need_instance(self)
  rawset(self, "_compiled", require "tycho.compile"(function(...) return as_written(self, ...) end, o))
  return self
end

-- A new class: local Net = nn.Module:extend("Net"), with methods Net:init(...) and Net:forward(...). Net(...) makes an instance: its init
-- assigns modules, Parameters and buffers to self; net(...) runs forward. A program's class can be extended too, Deep = Net:extend("Deep"):
-- Deep:init calls Net.init(self, ...) before it assigns anything.
function Module:extend(name)
  name = name or "Module"
  if type(name) ~= "string" then fail("extend: argument 1 (name) must be a string, got %s", options.shown(name)) end
  local class = {_name = name, _super = self}
  class.__index = class
  local instance = {_class = class, __newindex = assign, __call = run, __tostring = function(m) return describe(m, "", {}) end,
    __concat = function(a, b) return tostring(a) .. tostring(b) end}
  function instance.__index(m, k)
    local v = rawget(m, "_plain")[k]
    if v ~= nil then return v end
    v = rawget(rawget(m, "_parts"), k)
    if v ~= nil then return v end
    local made = rawget(rawget(m, "_parts"), "parametrizations")         -- computed on access: see parametrize.lua
    if made and rawget(made._parts, k) then return rawget(made._parts, k)() end
    if type(k) ~= "string" and class.__missing then return class.__missing(m, k) end
    v = class[k]
    if v == nil and class._is_list then
      v = rawget(m, position(m, k))                                                  -- by the name that named_children gives
      if v == nil and k == "add" then fail("%s has no 'add': use append(module)", class._name) end
    end
    if v == nil and elsewhere[k] then fail("%s has no '%s': %s", class._name, k, elsewhere[k]) end
    return v
  end
  local function defined(_, k, v)          -- methods and constants belong to a class, trained values to an instance
    if k == "__init" or k == "__init__" then fail("%s: '%s': the constructor is init", name, k)
    elseif is_module[v] or core.is_tensor(v) then
      fail("%s: '%s' is assigned to the class, not to an instance; a subclass's init calls %s.init(self, ...), with a dot", name, k, name)
    end
    rawset(class, k, v)
  end
  return setmetatable(class, {__index = self, __newindex = defined, __tostring = function() return "class " .. class._name end,
    __call = function(_, ...)
    local m = {_kinds = {}, _order = {}, _plain = {}, training = true}
    m._parts = class._is_list and parts_of_list(m) or {}
    is_module[m] = true
    setmetatable(m, instance)
    if not rawget(class, "_builtin") then
      rawset(m, "_made_with", options.pack(...))
      class.init(m, ...)
      return m
    end
    local args, place = options.pack(...), nil           -- {dtype=, device=} among the options are for the parameters
    local o = args[args.n]
    if type(o) == "table" and getmetatable(o) == nil and (type(o.dtype) == "string" or type(o.device) == "string") then
      place, args[args.n] = o, {}
      for k, v in pairs(o) do if k ~= "dtype" and k ~= "device" then args[args.n][k] = v end end
      if next(args[args.n]) == nil then args.n = args.n - 1 end
    end
    local ok, e = pcall(class.init, m, unpack(args, 1, args.n))          -- an error names the line that constructs
    if not ok then error(type(e) == "string" and core.where() .. bare(e) or e, 0) end
    takes.note(class.forward)
    rawset(m, "_made_with", args)
    if place and place.device then m:to(place.device) end
    if place and place.dtype then m:to(place.dtype) end
    return m
  end})
end

local function bare_module() Module._bare = Module._bare or Module:extend "Module"; return Module._bare() end
setmetatable(Module, {__tostring = function() return "class Module" end, __call = bare_module, __index = function(_, k)
  if k == "super" then fail "a class has no 'super': the base class's methods are called by its name, as in Base.init(self, ...)" end
end})
-- Module(): an empty module, to which members are assigned. For a class use Module:extend.
function Module.init() end
function Module:forward() fail(self._name .. " has no forward") end

local function taken(who, self, name, kind)
  need_instance(self)
  if type(name) ~= "string" or name == "" or name:find(".", 1, true) then
    fail("%s: argument 1 must be a name without dots, got %s", who, options.shown(name))
  end
  local has = rawget(self, "_kinds")[name]
  if type(class_of(self)[name]) == "function" or name == "training" then fail("%s: '%s' is a method of modules", who, name) end
  if has and has ~= kind then fail("%s: the %s has a %s '%s' already", who, self._name, has, name) end
  if self._plain[name] ~= nil then fail("%s: the %s has a field '%s' already", who, self._name, name) end
end
-- register_buffer(name, tensor, {persistent=true}): a tensor that moves with the module and isn't trained; nil: only reserves the name.
-- persistent = false: left out of state dicts.
function Module:register_buffer(name, value, o)
  if o == false then o = {persistent = false} end
  o = options.fill("register_buffer", o, {persistent = true})
  if value ~= nil and not core.is_tensor(value) then
    fail("register_buffer: the %s's buffer '%s' must be a tensor or nil, got %s", self._name, tostring(name), type(value))
  end
  taken("register_buffer", self, name, "buffer")
  put(self, "buffer", name, value and core.keep(value))
  local passing = rawget(self, "_passing") or {}
  passing[name] = not o.persistent or nil
  rawset(self, "_passing", passing)
end
-- As self[name] = parameter; value: a Parameter, or nil, which only reserves the name.
function Module:register_parameter(name, value)
  if value ~= nil and not (core.is_tensor(value) and is_parameter[value]) then
    fail("register_parameter: argument 2 must be a Parameter or nil")
  end
  taken("register_parameter", self, name, "parameter")
  put(self, "parameter", name, value)
end
-- As self[name] = module; gives the module that contains it.
function Module:add_module(name, value)
  if not is_module[value] then fail("add_module: argument 2 must be a module, got " .. options.shown(value)) end
  taken("add_module", self, name, "module")
  local at, n = self._is_list and position(self, name), #exports.members(self)
  if type(at) == "number" and at <= (n == #self and n + 1 or #self) then assign(self, at, value)
  else put(self, "module", name, value) end              -- new positions can't follow named members
  return self
end
Module.register_module = Module.add_module

-- Calls fn for every part of a kind below m, with its dotted name, in order; only once each, unless seen is nil. within: the modules on the
-- path to m.
local function walk(m, kind, prefix, seen, fn, within)
  need_instance(m)
  within = within or {}
  if within[m] then return end             -- a module may contain its own container
  within[m] = true
  for _, name in ipairs(order_of(m)) do
    local k, v, label = m._kinds[name], part(m, name), shown_name(name)
    if k == kind and v ~= nil and not (seen and seen[v]) then
      if seen then seen[v] = true end
      fn(prefix .. label, v, m, name)
    end
    if k == "module" then walk(v, kind, prefix .. label .. ".", seen, fn, within) end
  end
  within[m] = nil
end

-- within = false: m's own parts only, not those of modules in it. again: a part with several places is listed for each.
local function collect(m, kind, within, again)
  local names, values = {}, {}
  if within == false then
    for _, name in ipairs(order_of(m)) do
      if m._kinds[name] == kind and m._parts[name] ~= nil then names[#names + 1], values[#values + 1] = shown_name(name), part(m, name) end
    end
    return names, values
  end
  walk(m, kind, "", not again and {} or nil, function(name, v) names[#names + 1], values[#values + 1] = name, v end)
  return names, values
end
-- recurse: a boolean, or {recurse = boolean}
local function recursing(who, recurse)
  if type(recurse) == "table" then recurse = options.fill(who, recurse, {recurse = true}).recurse end
  if recurse ~= nil and type(recurse) ~= "boolean" then fail("%s: recurse must be true or false, got %s", who, options.shown(recurse)) end
  return recurse
end
-- Arguments prefix, recurse, remove_duplicate, in this order or by name. Gives the iterator, and whether it recurses.
local function iterate(m, kind, ...)
  local who = ("named_%ss"):format(kind)
  local o = options.arguments(who, "prefix=nil, recurse=true, remove_duplicate=true", ...)
  local prefix = o.prefix
  if prefix ~= nil and type(prefix) ~= "string" then
    options.fail("%s: argument 1 (prefix) must be a string, got %s", who, options.shown(prefix))
  end
  local names, values = collect(m, kind, o.recurse, not o.remove_duplicate)
  local i = 0
  return function()
    i = i + 1
    return names[i] and (prefix and prefix ~= "" and prefix .. "." .. names[i] or names[i]), values[i]
  end, o.recurse
end

-- for name, part in exports.own(m, kind) do: m's own parts of a kind, by each name.
function exports.own(m, kind) return (iterate(m, kind, nil, false)) end

-- Incomplete lists of parameters, with the name of a lazy layer that has had no input yet. Optimizers refuse such lists.
exports.incomplete = setmetatable({}, {__mode = "k"})
local function note_lazy(m, list)
  if not exports.lazy_layers then return end               -- there has been none
  for name, inner in m:named_modules() do
    if class_of(inner)._is_lazy then exports.incomplete[list] = ("%s (%s)"):format(name == "" and "it" or name, class_of(inner)._name) end
  end
end

-- Parameters that are shards of a whole one (sharded.lua), and the group of processes that holds the others.
exports.sharded = setmetatable({}, {__mode = "k"})

-- parameters(recurse=true): a list of the parameters of the module and of those in it, each once, in the order of assignment; recurse =
-- false: only its own.
function Module:parameters(recurse)
  recurse = recursing("parameters", recurse)
  local list = select(2, collect(self, "parameter", recurse))
  if recurse ~= false then note_lazy(self, list) end
  return list
end
-- named_parameters(prefix="", recurse=true, {remove_duplicate=true}): for name, p in net:named_parameters() do: names with dots, such as
-- "layers.0.weight". remove_duplicate = false: a parameter in several places comes under each of its names.
function Module:named_parameters(...)
  local each, recurse = iterate(self, "parameter", ...)
  if recurse then note_lazy(self, each) end
  return each
end
-- buffers(recurse=true): a list of the buffers, as parameters().
function Module:buffers(recurse) return (select(2, collect(self, "buffer", recursing("buffers", recurse)))) end
-- named_buffers(prefix="", recurse=true, {remove_duplicate=true}): for name, b in net:named_buffers() do.
function Module:named_buffers(...) return (iterate(self, "buffer", ...)) end
-- A list: the module itself, and all modules within it, each once.
function Module:modules()
  local list = {self}
  for _, m in ipairs((select(2, collect(self, "module")))) do if not rawequal(m, self) then list[#list + 1] = m end end
  return list
end
-- named_modules(prefix="", {remove_duplicate=true}): for name, m in net:named_modules() do: the module itself under the name "", then all
-- modules within it.
function Module:named_modules(...)
  local o = options.arguments("named_modules", "prefix=nil, remove_duplicate=true", ...)
  if o.prefix ~= nil and type(o.prefix) ~= "string" then
    fail("named_modules: argument 1 (prefix) must be a string, got %s", options.shown(o.prefix))
  end
  local prefix, names, values = o.prefix or "", collect(self, "module", nil, not o.remove_duplicate)
  local i = -1
  return function()
    i = i + 1
    if i == 0 then return prefix, self end
    if rawequal(values[i], self) then i = i + 1 end        -- a module that contains itself
    return names[i] and (prefix == "" and names[i] or prefix .. "." .. names[i]), values[i]
  end
end
-- A list of the modules directly in this one, each once.
function Module:children()
  local list = {}
  for _, m in self:named_children() do list[#list + 1] = m end
  return list
end
-- for name, m in net:named_children() do: the modules directly in this one, each once.
function Module:named_children()
  local i, order, seen = 0, order_of(self), {}
  local function is_new(name)
    local m = self._kinds[name] == "module" and part(self, name)
    if not m or seen[m] then return false end
    seen[m] = true
    return true
  end
  return function()
    repeat i = i + 1 until not order[i] or is_new(order[i])
    if order[i] then return shown_name(order[i]), part(self, order[i]) end
  end
end

-- The part at a path such as "layers.0.weight", of names as named_modules and named_parameters give them; "" is the module itself.
local function found(self, who, kind, path)
  if type(path) ~= "string" then fail("%s: argument 1 must be a path such as 'layers.0', got %s", who, type(path)) end
  if kind == "module" and path == "" then return self end
  local m, rest = self, path
  while m do
    local name, more = rest:match "^([^.]*)%.(.*)$"
    local key = m._is_list and position(m, name or rest) or name or rest
    local v, is = part(m, key), m._kinds[key]
    if not more and is == kind and v ~= nil then return v end
    m, rest = more and is == "module" and v, more
  end
  fail("%s: the %s has no %s '%s'", who, self._name, kind, path)
end
-- Replaces the module at a path such as "layers.0".
function Module:set_submodule(path, m)
  options.expect("set_submodule", 1, path, type(path) == "string" and path ~= "", "a path such as 'layers.0'")
  options.expect("set_submodule", 2, m, is_module[m], "a module")
  local of, name = path:match "^(.*)%.([^.]*)$"
  found(self, "set_submodule", "module", path)
  assign(found(self, "set_submodule", "module", of or ""), name or path, m)
end
-- The module at a path such as "layers.0"; "" is the module itself. An error if there is none.
function Module:get_submodule(path) return found(self, "get_submodule", "module", path) end
-- The parameter at a path such as "layers.0.weight". An error if there is none.
function Module:get_parameter(path) return found(self, "get_parameter", "parameter", path) end
-- The buffer at a path such as "norm.running_mean". An error if there is none.
function Module:get_buffer(path) return found(self, "get_buffer", "buffer", path) end

require("tycho.nn.states")(Module, walk)

require "tycho.nn.moves"(Module, walk)

local on_the_way = {}                     -- modules whose train() is running, since a module may contain its own container
-- train(mode=true): sets training mode for the module and all within it: dropout drops, batch norm uses the batch's statistics. Gives the
-- module.
function Module:train(mode)
  mode = options.named("train", "mode", mode)
  if mode ~= nil and type(mode) ~= "boolean" then fail("train: argument 1 must be true or false, got " .. options.shown(mode)) end
  if on_the_way[self] then return self end
  if observer then for _, o in pairs(observers) do if o.switched then o.switched(self) end end end
  rawset(self, "training", mode ~= false)
  on_the_way[self] = true
  options.finally(function() on_the_way[self] = nil end, function()
    for _, child in self:named_children() do child:train(mode ~= false) end        -- a child may have a train of its own
  end)
  return self
end
-- Evaluation mode: train(false). Gives the module.
function Module:eval() return self:train(false) end
-- Calls fn(module) for each module, children before the one they are in. Gives the module.
function Module:apply(fn)
  local seen = options.expect("apply", 1, fn, require("tycho.modes").callable(fn), "a function") and {}
  local function visit(m)
    if seen[m] then return end
    seen[m] = true
    for _, child in ipairs(m:children()) do visit(child) end
    fn(m)
  end
  visit(self)
  return self
end
require "tycho.nn.copy"(Module, {order_of = order_of, part = part, parts_of_list = parts_of_list, is_module = is_module,
  is_parameter = is_parameter, Parameter = Parameter})
-- zero_grad({set_to_none=true}): the parameters' gradients become nil or, with set_to_none = false, zeros.
function Module:zero_grad(...) exports.zero_grads(self:parameters(), ...) end
function exports.zero_grads(params, o)
  if type(o) ~= "boolean" then o = options.fill("zero_grad", o, {set_to_none = true}).set_to_none end
  for _, p in ipairs(params) do
    if o then p.grad = nil
    elseif p.grad then
      if p.grad.requires_grad then p.grad = p.grad:detach():clone() end      -- its history ends
      no_grad(M.zero_, p.grad)
    end
  end
end
-- requires_grad_(requires_grad=true): whether the parameters collect gradients: net:requires_grad_(false) freezes them. Gives the module.
function Module:requires_grad_(requires_grad)
  local on = options.named("requires_grad_", "requires_grad", requires_grad)
  if on ~= nil and type(on) ~= "boolean" then fail("requires_grad_: argument 1 must be true or false, got %s", options.shown(on)) end
  for _, p in ipairs(self:parameters()) do p:requires_grad_(on ~= false) end
  return self
end

options.colon(Module, "net",
  function(self) return is_module[self] or self == Module or type(self) == "table" and rawget(self, "_super") ~= nil end)
Module._loads = Module.load_state_dict

exports.Module, exports.Parameter, exports.Buffer, exports.put, exports.walk = Module, Parameter, Buffer, put, walk
-- Whether v is a module of a class, such as nn.Linear, or of a class that extends it; given a list of classes, of one of them.
function exports.isinstance(v, class)
  if type(class) == "table" and getmetatable(class) == nil then
    for _, one in ipairs(options.items("isinstance", "the list of classes", class)) do
      if exports.isinstance(v, one) then return true end
    end
    return false
  end
  if type(class) ~= "table" or not (class == Module or rawget(class, "_super")) then
    fail("isinstance: argument 2 must be a class of modules, such as nn.Linear, or a list of them, got %s", options.shown(class))
  end
  local c = is_module[v] and class_of(stands_for[v] or v)
  while c and c ~= class do c = rawget(c, "_becomes") and c._becomes() or rawget(c, "_super") end          -- as what a lazy layer will be
  return c == class and c ~= nil and c ~= false
end
-- Whether v is a module.
function exports.is_module(v) return is_module[v] == true end
-- In a chain of modules a built-in layer takes only the first of several results: its further arguments aren't the previous layer's further
-- results (a recurrent layer would start with another layer's state). A program's own module takes all.
function exports.takes_one(m)
  local class = is_module[m] and getmetatable(m)._class
  return class and rawget(class, "_builtin") == true
end
function exports.is_parameter(v) return is_parameter[v] == true end
-- Calls ran(module, results...) after each forward, and switched(module), if given, before each train() and eval(), until the returned
-- function is called. Observers may overlap and end in any order, since a coroutine may begin within another's.
function exports.observe(ran, switched)
  local id = {}
  observers[id] = {ran = ran, switched = switched}
  observer = tell_observers
  return function()
    observers[id] = nil
    if next(observers) == nil then observer = nil end
  end
end
return exports
