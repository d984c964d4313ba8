-- Copies of modules.
--
-- Idea: one walk copies each assigned value once, so that shared values stay shared among the copies. Plain fields come last, since they
-- may refer to modules that the walk hasn't reached.
local core = require "tycho.core"
local M = core.methods

-- inside: module.lua's functions for a module's parts
return function(Module, inside)

local is_module, is_parameter, Parameter = inside.is_module, inside.is_parameter, inside.Parameter
-- A copy with memory of its own and without gradients: of parameters, buffers and modules (shared ones stay shared), and of tensors and
-- tables in other fields; functions and objects with a metatable aren't copied.
function Module:clone()
  local seen, plain = {}, {}               -- seen: copies by original; plain: modules whose plain fields come last
  local function copy(v, kind)
    if v == nil or seen[v] then return seen[v] end
    if kind == "module" then
      local m = {_kinds = {}, _order = {}, _plain = {}, training = rawget(v, "training"), _label = rawget(v, "_label"), _passing = {}}
      m._parts = v._is_list and inside.parts_of_list(m) or {}
      for when, list in pairs(rawget(v, "_hooks") or {}) do
        m._hooks = m._hooks or {}
        m._hooks[when] = {unpack(list)}
      end
      is_module[m], seen[v] = true, m
      setmetatable(m, getmetatable(v))
      plain[#plain + 1] = {m, v}
      for k, w in pairs(rawget(v, "_passing") or {}) do m._passing[k] = w end
      for i, name in ipairs(inside.order_of(v)) do
        m._order[i], m._kinds[name] = name, v._kinds[name]
        m._parts[name] = copy(inside.part(v, name), v._kinds[name])
      end
      return m
    end
    local t = core.ops.clone(M.detach(v))
    seen[v] = kind == "parameter" and Parameter(t, v.requires_grad) or core.keep(t)
    return seen[v]
  end
  local function deep(v)
    if type(v) ~= "table" and not core.is_tensor(v) then return v end
    if seen[v] ~= nil then return seen[v] end
    if is_module[v] then return copy(v, "module") end
    if core.is_tensor(v) then
      local t = copy(v, is_parameter[v] and "parameter" or "buffer")
      return v.requires_grad and v.is_leaf and t:requires_grad_(true) or t
    end
    if getmetatable(v) ~= nil then return v end
    local t = {}
    seen[v] = t
    for k, w in pairs(v) do t[deep(k)] = deep(w) end
    return t
  end
  local made = copy(self, "module")
  while plain[1] do
    local pair = table.remove(plain)
    for k, w in pairs(pair[2]._plain) do pair[1]._plain[k] = deep(w) end
    for k, w in next, pair[2] do           -- further raw fields that kinds of modules keep
      if type(k) == "string" and rawget(pair[1], k) == nil and k ~= "_hooks" and k ~= "_compiled" then
        rawset(pair[1], k, k == "_made_with" and w or deep(w))
      end
    end
  end
  return made
end

end
