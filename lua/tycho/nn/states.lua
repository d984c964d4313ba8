-- Modules' state dicts: tables of parameters and buffers by their dotted names.
--
-- Idea: one walk over the module yields the names, for reading and for loading. A state is checked as a whole before anything changes, so
-- that a state that doesn't fit leaves the module unchanged.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local options = require "tycho.options"
local fill, fail = options.fill, options.fail
local hooks = require "tycho.nn.hooks"

-- walk: module.lua's, over every part of a kind
return function(Module, walk)

local function passes(m, name) return (rawget(m, "_passing") or {})[name] end    -- a buffer that isn't saved
local EXTRA = "_extra_state"               -- the name under which get_extra_state()'s value is stored
-- Calls fn(module, prefix of the names in it) for each module, as often as it occurs.
local function each_module(self, prefix, fn)
  fn(self, prefix)
  walk(self, "module", prefix, nil, function(name, m) fn(m, name .. ".") end)
end

-- state_dict({prefix="", keep_vars=false}): a table of parameters and persistent buffers by name, sharing memory with the module. Names are
-- PyTorch's: "0.weight" is seq[1]'s. The value of a module's get_extra_state() is included. prefix: put before all names; keep_vars: the
-- parameters themselves, not detached.
function Module:state_dict(o)
  o = fill("state_dict", o, {prefix = "", keep_vars = false})
  if type(o.prefix) ~= "string" then fail("state_dict: prefix must be a string, got %s", options.shown(o.prefix)) end
  local out = {}
  each_module(self, o.prefix, function(m, prefix) hooks.call(m, "before_state", m, prefix, o.keep_vars) end)
  for _, kind in ipairs {"parameter", "buffer"} do
    walk(self, kind, o.prefix, nil, function(name, v, m, own)
      if kind ~= "buffer" or not passes(m, own) then out[name] = o.keep_vars and v or v:detach() end
    end)
  end
  each_module(self, o.prefix, function(m, prefix)
    if m.get_extra_state then out[prefix .. EXTRA] = m:get_extra_state() end
    hooks.call(m, "after_state", m, out, prefix)
  end)
  return out
end

-- fn(module, prefix, keep_vars) is called before state_dict() reads the module, also as part of another module.
function Module:register_state_dict_pre_hook(fn) return hooks.add(self, "register_state_dict_pre_hook", "before_state", fn) end
-- fn(module, state, prefix) is called after state_dict() has read the module; it may change the state.
function Module:register_state_dict_post_hook(fn) return hooks.add(self, "register_state_dict_post_hook", "after_state", fn) end
-- fn(module, state, prefix) is called before load_state_dict() checks a state; it may change that table, a copy of the one given.
function Module:register_load_state_dict_pre_hook(fn) return hooks.add(self, "register_load_state_dict_pre_hook", "before_load", fn) end
-- fn(module, {missing_keys=, unexpected_keys=}) is called when everything has been loaded.
function Module:register_load_state_dict_post_hook(fn) return hooks.add(self, "register_load_state_dict_post_hook", "after_load", fn) end

-- Whether several elements of x are one in memory, as after expand.
local function repeats(x)
  local shape, stride = x.shape, x:stride()
  for d = 1, #shape do if shape[d] > 1 and stride[d] == 0 then return true end end
  return false
end

-- Raises if load_state_dict would. Gives a list of {tensor of the module, its new value}; names that don't fit, where that is allowed; and
-- a list of {module, its extra state}. learned: gets functions that make lazy layers, which took their sizes from the state, lazy again.
local function checked(self, state, o, learned)
  if type(o) == "boolean" then o = {strict = o} end
  o = fill("load_state_dict", o, {strict = true, assign = false})
  local strict = o.strict ~= false
  if type(state) ~= "table" or core.is_module(state) then
    fail("load_state_dict: argument 1 must be a table of tensors, such as state_dict() gives, got %s", options.shown(state))
  end
  if hooks.there then                      -- these may change it
    local copy = {}
    for k, v in pairs(state) do copy[k] = v end
    state = copy
    each_module(self, "", function(m, prefix) hooks.call(m, "before_load", m, state, prefix) end)
  end
  for name, m in self:named_modules() do
    if m._is_lazy then learned[#learned + 1] = m:learn(state, name == "" and "" or name .. ".") end
  end
  local wrong, pairs_, known, unfit, extra = {}, {}, {}, {missing_keys = {}, unexpected_keys = {}}, {}
  local function missing(name)
    if strict then wrong[#wrong + 1] = "missing '" .. name .. "'" else table.insert(unfit.missing_keys, name) end
  end
  for _, kind in ipairs {"parameter", "buffer"} do
    walk(self, kind, "", nil, function(name, v, m, own)
      if kind == "buffer" and passes(m, own) then return end
      known[name] = true
      local new = state[name]
      if new == nil then
        if not strict or own ~= "num_batches_tracked" then missing(name) end       -- absent from old files
      elseif not core.is_tensor(new) then wrong[#wrong + 1] = ("'%s' is a %s"):format(name, type(new))
      elseif new.shape ~= v.shape then
        wrong[#wrong + 1] = ("'%s' has shape %s, the module's is %s"):format(name, tostring(new.shape), tostring(v.shape))
      elseif not o.assign and repeats(v) then
        wrong[#wrong + 1] = ("'%s' is an expanded tensor, which can't be written to"):format(name)
      elseif o.assign and kind == "parameter" and v.requires_grad and not core.methods.is_floating_point(new) then
        wrong[#wrong + 1] = ("'%s' has dtype %s, which has no gradients"):format(name, new.dtype)
      else pairs_[#pairs_ + 1] = {v, new} end
    end)
  end
  each_module(self, "", function(m, prefix)
    if not m.set_extra_state then return end
    known[prefix .. EXTRA] = true
    if state[prefix .. EXTRA] == nil then
      if not (m.get_extra_state and m:get_extra_state() == nil) then missing(prefix .. EXTRA) end       -- the module may have none
    else extra[#extra + 1] = {m, state[prefix .. EXTRA]} end
  end)
  for name in pairs(state) do
    if strict and not known[name] then wrong[#wrong + 1] = "unexpected '" .. tostring(name) .. "'"
    elseif not known[name] then table.insert(unfit.unexpected_keys, tostring(name)) end
  end
  table.sort(unfit.unexpected_keys)
  if #wrong > 0 then
    table.sort(wrong)
    fail("load_state_dict: %s", table.concat(wrong, "; "))
  end
  return pairs_, not strict and unfit or nil, extra
end

local function unlearn(learned) for _, undo in ipairs(learned) do undo() end end
-- check_state_dict(state, {strict=true, assign=false}): raises if load_state_dict would; changes nothing.
function Module:check_state_dict(state, o)
  local learned = {}
  local ok, e = pcall(checked, self, state, o, learned)
  unlearn(learned)
  if not ok then error(e, 0) end
end

-- load_state_dict(state, {strict=true, assign=false}): copies the tensors of a state dict in. Everything is checked before anything
-- changes, but for what a class's own set_extra_state refuses: it is called last. Missing or unexpected names are an error, unless
-- strict = false. assign: the parameters and buffers take over the state's own tensors, memory and dtype. Gives the module and, with
-- strict = false, the names that didn't fit: {missing_keys = names, unexpected_keys = names}.
function Module:load_state_dict(state, o, more)
  if type(o) == "boolean" then o = options.fill("load_state_dict", more, {strict = o, assign = false}) end
  local learned = {}
  local ok, list, unfit, extra = pcall(checked, self, state, o, learned)
  if not ok then
    unlearn(learned)
    error(list, 0)
  end
  no_grad(function()
    for _, p in ipairs(list) do
      if type(o) == "table" and o.assign then
        core.set_data(p[1], core.keep(p[2]:detach()))
        p[1].grad = nil                      -- it belongs to the old value
      else p[1]:copy_(p[2]) end
    end
  end)
  for _, e in ipairs(extra) do e[1]:set_extra_state(e[2]) end          -- which may need the tensors
  for _, m in ipairs(self:modules()) do hooks.call(m, "after_load", m, unfit or {missing_keys = {}, unexpected_keys = {}}) end
  if unfit then return self, unfit end
  return self
end

end
