-- ModuleDict and ParameterDict: members by name, in the order in which they were given.
--
-- Idea: both are modules whose members are their parts of one kind; the common code is written over that kind's iterator.
local core = require "tycho.core"
local module = require "tycho.nn.module"
local lib = require "tycho.nn.layer"
local options = require "tycho.options"
local shown, fail = lib.shown, lib.fail

-- Converts {name = member, ...}, in alphabetical order, or {{name, member}, ...}, in the list's order, to the latter form.
local function listed(name, map, ...)
  local other = module.is_module(map)
  if map ~= nil and (type(map) ~= "table" or core.is_tensor(map) or select("#", ...) > 0 or (other and not map.items)) then
    fail("%s: one table is needed, such as %s{a = x, b = y}", name, name)
  end
  local list = {}
  if other then
    for k, v in map:items() do list[#list + 1] = {k, v} end
    return list
  end
  local named = {}
  for k, v in pairs(map or {}) do
    if type(k) == "number" then list[k] = v else named[#named + 1] = {k, v} end
  end
  options.items(name, "the list", list)
  table.sort(named, function(a, b) return tostring(a[1]) < tostring(b[1]) end)
  for _, item in ipairs(named) do list[#list + 1] = item end
  return list
end

-- is(v): whether v may be a member; put(dict, name, v) adds it.
local function dict(name, what, is, put, items)
  local Dict = lib.layer(name)
  Dict._library = nil
  function Dict:init(map, ...) self:update(map, ...) end
  -- Adds members from a table, a list of {name, member}, or another dict; they replace members of the same names.
  function Dict:update(map, ...)
    local list = listed(name, map, ...)
    for i, item in ipairs(list) do
      local ok = type(item) == "table" and type(item[1]) == "string" and is(item[2])
      if not ok then fail("%s: item %d must be {name, %s}", name, i, what) end
    end
    for _, item in ipairs(list) do put(self, item[1], item[2]) end
    return self
  end
  -- for name, member in dict:items() do: in the order in which they were given
  Dict.items = items
  -- A list of the names; also for name in dict:keys() do.
  function Dict:keys()
    local out = {}
    for k in items(self) do out[#out + 1] = k end
    local place = {}
    for i, k in ipairs(out) do place[k] = i end
    return setmetatable(out, {__call = function(list, _, last) return list[last == nil and 1 or place[last] + 1] end})
  end
  -- A list of the members, in order.
  function Dict:values()
    local out = {}
    for _, v in items(self) do out[#out + 1] = v end
    return out
  end
  -- The number of members, which # can't give for a table such as a module.
  function Dict:len() return #self:keys() end
  -- Whether there is a member of that name.
  function Dict:contains(key) return rawget(self, "_kinds")[key] ~= nil end
  -- The member of that name, or default.
  function Dict:get(key, default)
    if self:contains(key) then return self[key] end
    return default
  end
  -- The member of that name; if there is none, default is added as it.
  function Dict:setdefault(key, default)
    if not self:contains(key) then self:update {{key, default}} end
    return self[key]
  end
  -- Removes the member of that name, and returns it.
  function Dict:pop(key)
    local v = self:contains(key) and self[key]
    if not v then fail("%s:pop: there is no member %s", name, shown(key)) end
    self[key] = nil
    return v
  end
  -- Removes all members.
  function Dict:clear()
    for _, k in ipairs(self:keys()) do self[k] = nil end
  end
  return Dict
end

-- ModuleDict{name = module, ...}, in alphabetical order, or ModuleDict{{name, module}, ...}, in the list's: modules by name, d.name.
dict("ModuleDict", "module", module.is_module, function(self, k, v)
  if self:contains(k) then self[k] = v else self:add_module(k, v) end
end, function(self) return module.own(self, "module") end)

-- ParameterDict{name = parameter or tensor, ...}, in alphabetical order, or ParameterDict{{name, tensor}, ...}, in the list's: d.name.
local ParameterDict = dict("ParameterDict", "tensor", core.is_tensor, function(self, k, v)
  if not module.is_parameter(v) then v = module.Parameter(v) end
  if self:contains(k) then self[k] = v else self:register_parameter(k, v) end
end, function(self) return module.own(self, "parameter") end)
ParameterDict._wraps, ParameterDict._tells_parameters = true, true
