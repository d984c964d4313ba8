-- Hooks of modules: functions called before and after forward, when backward has a module's gradients, and around its state dict.
--
-- Idea: a module's hooks are lists, by kind, in its raw field _hooks; those of every module are such lists in hooks.everywhere, and run
-- first. A module without hooks lacks that field; where there are none of either, forward is called directly.
local core = require "tycho.core"
local options = require "tycho.options"
local callable = require("tycho.modes").callable
local fail, check, pack = options.fail, options.check, options.pack
local hooks = {there = false}          -- there: a module has had hooks, or a forward of its own, which may keep what they see

-- The hooks of a kind to call now: a copy, since hooks may add others, or remove themselves.
local function now(own, when)
  local list = {unpack(hooks.everywhere and hooks.everywhere[when] or {})}
  for _, h in ipairs(own and own[when] or {}) do list[#list + 1] = h end
  return list
end
local function passed(given, ...) return (...) ~= nil and pack(...) or given end

-- The arguments without a last table of options, and that table.
local function apart(inputs)
  local last, n = inputs[inputs.n], inputs.n
  local named = options.has_names(last)
  if named then n = n - 1 end
  return {n = n, unpack(inputs, 1, n)}, named and last or {}
end
local function arguments(new, n)
  if type(new) ~= "table" or getmetatable(new) ~= nil then return pack(new) end
  n = math.max(table.maxn(new), n)                       -- trailing nils count
  return {n = n, unpack(new, 1, n)}
end
local function before_forward(self, h, inputs)
  if not h.with_kwargs then
    local new = h.fn(self, inputs)
    return new == nil and inputs or arguments(new, inputs.n)
  end
  local list, named = apart(inputs)
  local new, new_named = h.fn(self, list, named)
  if new_named ~= nil and type(new_named) ~= "table" then
    fail("register_forward_pre_hook: a hook's options must be a table or nil, got %s", options.shown(new_named))
  end
  local out = new == nil and list or arguments(new, list.n)
  named = new_named or named
  if next(named) == nil then return out end
  out = {n = out.n + 1, unpack(out, 1, out.n)}
  out[out.n] = named
  return out
end
local function after_forward(self, h, inputs, outputs)
  if not h.with_kwargs then return passed(outputs, h.fn(self, inputs, unpack(outputs, 1, outputs.n))) end
  local list, named = apart(inputs)
  return passed(outputs, h.fn(self, list, named, unpack(outputs, 1, outputs.n)))
end

-- Passes the tensors in list that require grad through a recorded identity whose backward is fn(gradients by place), which returns
-- gradients.
local function passed_through(who, list, fn)
  local tensors, places = {}, {}
  for i = 1, list.n do
    if core.is_tensor(list[i]) and list[i].requires_grad then
      tensors[#tensors + 1], places[#places + 1] = list[i], i
    end
  end
  if #tensors == 0 then return list, false end
  local identity = require("tycho.autograd").Function {forward = function(_, ...) return ... end, backward = function(_, ...)
    local grads, out = {n = list.n}, {}
    for k, i in ipairs(places) do grads[i] = (select(k, ...)) end
    local new = fn(grads)
    if new ~= nil and (type(new) ~= "table" or core.is_tensor(new)) then
      fail("%s: a hook must return a list of gradients or nil, got %s", who, options.shown(new))
    end
    grads = new or grads
    for k, i in ipairs(places) do out[k] = grads[i] end
    return unpack(out, 1, #places)
  end}
  local passed_on, out = {identity(unpack(tensors))}, {n = list.n, unpack(list, 1, list.n)}
  for k, i in ipairs(places) do out[i] = passed_on[k] end
  return out, true
end
-- forward, with gradients of inputs and outputs, by place, passed to the backward hooks.
local function watched(self, own, inputs)
  local given
  local function tell(grads)
    if not given then return grads end               -- a pass that didn't reach the outputs: a second derivative's
    for _, h in ipairs(now(own, "back")) do
      local new = h.fn(self, grads, given)
      if new ~= nil then grads = new end
    end
    given = nil
    return grads
  end
  local ins, any = passed_through("register_full_backward_hook", inputs, tell)
  local outputs = passed_through("register_full_backward_pre_hook", pack(self:forward(unpack(ins, 1, ins.n))), function(grads)
    for _, h in ipairs(now(own, "before_back")) do grads = h.fn(self, grads) or grads end
    given = grads
    if not any then tell {n = inputs.n} end
    return grads
  end)
  return outputs
end

-- Calls forward between the module's hooks. A value other than nil that a hook returns replaces what it was given. called: the hooks after
-- forward that have run, the inputs that forward got, and its outputs.
local function between(self, own, called, inputs)
  for _, h in ipairs(now(own, "before")) do inputs = before_forward(self, h, inputs) end
  called.inputs = inputs
  local outputs = core.is_grad_enabled() and #now(own, "back") + #now(own, "before_back") > 0 and watched(self, own, inputs) or
    pack(self:forward(unpack(inputs, 1, inputs.n)))
  for _, h in ipairs(now(own, "after")) do
    called[h], called.outputs = true, outputs
    outputs = after_forward(self, h, inputs, outputs)
  end
  return outputs
end
function hooks.forward(self, ...)
  local own, called, always = rawget(self, "_hooks"), {inputs = pack(...)}, false
  for _, h in ipairs(now(own, "after")) do always = always or h.always_call end
  if not always then
    local outputs = between(self, own, called, called.inputs)
    return unpack(outputs, 1, outputs.n)
  end
  local ok, outputs = pcall(between, self, own, called, called.inputs)
  if ok then return unpack(outputs, 1, outputs.n) end
  for _, h in ipairs(now(own, "after")) do
    if h.always_call and not called[h] then pcall(after_forward, self, h, called.inputs, called.outputs or {n = 0}) end
  end
  error(outputs, 0)
end

-- Calls a module's hooks of a kind whose results don't count.
function hooks.call(self, when, ...)
  for _, h in ipairs(now(rawget(self, "_hooks"), when)) do h.fn(...) end
end

local KINDS = {"before", "after", "back", "before_back", "before_state", "after_state", "before_load", "after_load"}
local FLAGS = {"prepend", "with_kwargs", "always_call"}
-- Adds fn to the lists of a module, or to those of all; name: what was called, when: one of KINDS. Gives a handle with remove().
local function put(lists, name, when, fn, o)
  o = o or {}
  check(name, o, {prepend = true, with_kwargs = when == "before" or when == "after" or nil, always_call = when == "after" or nil})
  for _, flag in ipairs(FLAGS) do
    if o[flag] ~= nil and type(o[flag]) ~= "boolean" then
      fail("%s: %s must be true or false, got %s", name, flag, options.shown(o[flag]))
    end
  end
  options.expect(name, 1, fn, callable(fn), "a function")
  hooks.there = true
  core.program.hooked(when == "back" or when == "before_back")
  local list, h = lists[when], {fn = fn, with_kwargs = o.with_kwargs, always_call = o.always_call}
  table.insert(list, o.prepend and 1 or #list + 1, h)
  function h.remove()
    core.program.hooked(when == "back" or when == "before_back")
    for i, other in ipairs(list) do
      if other == h then
        table.remove(list, i)
        break
      end
    end
    if lists ~= hooks.everywhere then return end
    for _, kind in ipairs(KINDS) do if #lists[kind] > 0 then return end end
    hooks.everywhere = nil                 -- modules are as quick as before
  end
  return h
end
local function empty_lists()
  local lists = {}
  for _, kind in ipairs(KINDS) do lists[kind] = {} end
  return lists
end
function hooks.add(self, ...)
  if not core.is_module(self) then fail("%s is a class: make a module with %s(...)", self._name, self._name) end
  if not rawget(self, "_hooks") then rawset(self, "_hooks", empty_lists()) end
  return put(rawget(self, "_hooks"), ...)
end

---- hooks of every module ----
local function add_everywhere(...)
  local lists = hooks.everywhere or empty_lists()
  local h = put(lists, ...)                -- errs, and nothing has changed
  hooks.everywhere = lists
  return h
end
-- register_module_forward_hook(fn, {prepend=false, with_kwargs=false, always_call=false}): as Module's register_forward_hook, for every
-- module that there is and will be; called before a module's own. Gives a handle with remove().
function hooks.register_module_forward_hook(fn, o) return add_everywhere("register_module_forward_hook", "after", fn, o) end
-- register_module_forward_pre_hook(fn, {with_kwargs=false}): as Module's register_forward_pre_hook, for every module; called before a
-- module's own. Gives a handle with remove().
function hooks.register_module_forward_pre_hook(fn, o) return add_everywhere("register_module_forward_pre_hook", "before", fn, o) end
-- register_module_full_backward_hook(fn): as Module's register_full_backward_hook, for every module. Gives a handle with remove().
function hooks.register_module_full_backward_hook(fn, o) return add_everywhere("register_module_full_backward_hook", "back", fn, o) end
-- register_module_full_backward_pre_hook(fn): as Module's register_full_backward_pre_hook, for every module. Gives a handle with remove().
function hooks.register_module_full_backward_pre_hook(fn, o)
  return add_everywhere("register_module_full_backward_pre_hook", "before_back", fn, o)
end

return hooks
