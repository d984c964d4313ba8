-- Modules' state dicts: tables of parameters and buffers by their dotted names.
--
-- Idea: one walk over the module gives the names, for reading and for loading; what is loaded is checked as a whole before anything
-- changes, so that a state that doesn't fit leaves the module as it was.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local options = require "tycho.options"
local check, fail = options.check, options.fail

-- walk: module.lua's, over every part of a kind
return function(Module, walk)

local function passes(m, name) return (rawget(m, "_passing") or {})[name] end    -- a buffer that isn't saved
-- state_dict(): a table of parameters and persistent buffers by name, sharing memory with the module. Names are PyTorch's: "0.weight" is
-- seq[1]'s.
function Module:state_dict(o)
  if o ~= nil then check("state_dict", o, {}) end
  local out = {}
  for _, kind in ipairs {"parameter", "buffer"} do
    walk(self, kind, "", nil, function(name, v, m, own) if kind ~= "buffer" or not passes(m, own) then out[name] = v:detach() end end)
  end
  return out
end

-- load_state_dict(state, {strict=true}): copies the tensors of a state dict in. Everything is checked before anything changes; names that
-- are missing or too many are an error, unless strict = false. Gives the module and, with strict = false, what didn't fit: {missing_keys =
-- names, unexpected_keys = names}.
function Module:load_state_dict(state, o)
  local list, unfit = self:check_state_dict(state, o)
  no_grad(function()
    for _, p in ipairs(list) do p[1]:copy_(p[2]) end
  end)
  if unfit then return self, unfit end
  return self
end

-- Raises if load_state_dict would. Gives {tensor of the module, tensor for it} of each.
function Module:check_state_dict(state, o)
  if type(o) == "boolean" then o = {strict = o} end
  if o ~= nil then check("load_state_dict", o, {strict = true}) end
  local strict = not (o and o.strict == false)
  if type(state) ~= "table" then fail("load_state_dict: argument 1 must be a table of tensors, got %s", type(state)) end
  for name, m in self:named_modules() do
    if m._is_lazy then m:learn(state, name == "" and "" or name .. ".") end
  end
  local wrong, pairs_, known, unfit = {}, {}, {}, {missing_keys = {}, unexpected_keys = {}}
  for _, kind in ipairs {"parameter", "buffer"} do
    walk(self, kind, "", nil, function(name, v, m, own)
      if kind == "buffer" and passes(m, own) then return end
      known[name] = true
      local new = state[name]
      if new == nil then
        if strict and own ~= "num_batches_tracked" then wrong[#wrong + 1] = "missing '" .. name .. "'"          -- old files lack it
        elseif not strict then table.insert(unfit.missing_keys, name) end
      elseif not core.is_tensor(new) then wrong[#wrong + 1] = ("'%s' is a %s"):format(name, type(new))
      elseif new.shape ~= v.shape then
        wrong[#wrong + 1] = ("'%s' has shape %s, the module's is %s"):format(name, tostring(new.shape), tostring(v.shape))
      else pairs_[#pairs_ + 1] = {v, new} end
    end)
  end
  for name in pairs(state) do
    if strict and not known[name] then wrong[#wrong + 1] = "unexpected '" .. tostring(name) .. "'"
    elseif not known[name] then table.insert(unfit.unexpected_keys, tostring(name)) end
  end
  table.sort(unfit.unexpected_keys)
  if #wrong > 0 then
    table.sort(wrong)
    fail("load_state_dict: %s", table.concat(wrong, "; "))
  end
  return pairs_, not strict and unfit or nil
end

end
