-- Options tables of constructors in Lua: defaults filled in; an unknown name is refused, with the nearest.
local core = require "tycho.core"
local options = {}

-- Raises, level functions up, unless every name in given is a key of known.
function options.check(who, given, known, level)
  if type(given) ~= "table" then error(who .. ": options must be a table, got " .. (core.is_tensor(given) and "tensor" or type(given)), level + 1) end
  for k in pairs(given) do
    if known[k] == nil then
      local names = {}
      for n in pairs(known) do names[#names + 1] = n end
      local near = type(k) == "string" and core.nearest(k, names)
      error(("%s: unknown option '%s'%s"):format(who, tostring(k), near and "; did you mean '" .. near .. "'?" or ""), level + 1)
    end
  end
end

-- A new table: given over defaults. False stands for "nothing" among the defaults.
function options.fill(who, given, defaults, level)
  if given ~= nil then options.check(who, given, defaults, level + 1) end
  local out = {}
  for k, v in pairs(defaults) do out[k] = v end
  for k, v in pairs(given or {}) do out[k] = v end
  return out
end

-- Raises, level functions up, unless v is a whole number from least.
function options.whole(who, name, v, least, level)
  if type(v) ~= "number" or v < least or v % 1 ~= 0 or v >= 2 ^ 53 then error(("%s: %s must be a whole number from %d, got %s"):format(who, name, least, options.shown(v)), level + 1) end
  return v
end

---- arguments of constructors: PyTorch's positions, and names in a last table ----
local parsed = {}
local function value_of(text)
  if text == "true" or text == "false" then return text == "true" end
  return tonumber(text) or text
end
-- "in, out, bias=true, *, padding_mode=zeros": what has no default is needed; what follows * is named only; a default of false stands for nothing.
local function parse(signature)
  local s = parsed[signature]
  if s then return s end
  s = {order = {}, defaults = {}, known = {}, needed = {}}
  local positional = true
  for item in signature:gmatch "[^,%s]+" do
    local name, default = item:match "^([%w_]+)=(.*)$"
    name = name or item
    if item == "*" then positional = false
    else
      if positional then s.order[#s.order + 1] = name end
      if default then s.defaults[name] = value_of(default) else s.needed[#s.needed + 1] = name end
      s.known[name] = true
    end
  end
  parsed[signature] = s
  return s
end

local function is_options(v) return type(v) == "table" and not core.is_tensor(v) and getmetatable(v) == nil and (next(v) == nil or type(next(v)) == "string") end

-- A table of the arguments by name. Errors are raised level functions up.
function options.arguments(who, signature, level, ...)
  local s, n, out, given = parse(signature), select("#", ...), {}, {}
  local last = n > 0 and select(n, ...)
  local named = is_options(last) and last or nil
  if named then n = n - 1 end
  while n > #s.order and select(n, ...) == nil do n = n - 1 end
  if n > #s.order then error(("%s: at most %d arguments, got %d"):format(who, #s.order, n), level + 1) end
  for k, v in pairs(s.defaults) do out[k] = v end
  for i = 1, n do
    local v = select(i, ...)
    if v ~= nil then out[s.order[i]], given[s.order[i]] = v, true end
  end
  if named then options.check(who, named, s.known, level + 1) end
  for k, v in pairs(named or {}) do
    if given[k] then error(("%s: argument '%s' is given twice"):format(who, k), level + 1) end
    out[k] = v
  end
  for _, k in ipairs(s.needed) do
    if out[k] == nil then error(("%s: argument '%s' is missing"):format(who, k), level + 1) end
  end
  return out
end

-- A value in an error's text: what a number or string is, of anything else only its kind.
function options.shown(v)
  if type(v) == "string" then return "'" .. v .. "'" end
  if type(v) == "number" or type(v) == "boolean" or v == nil then return tostring(v) end
  return "a " .. (core.is_tensor(v) and "tensor" or type(v))
end

-- A typing error in the table's names is told, with the nearest name.
function options.told(t, what)
  return setmetatable(t, {__index = function(_, k)
    if type(k) ~= "string" then return nil end
    local names = {}
    for name in pairs(t) do names[#names + 1] = name end
    local near = core.nearest(k, names)
    error(("%s has no '%s'%s"):format(what, k, near and "; did you mean '" .. near .. "'?" or ""), 2)
  end})
end

-- An error's text without the place that it was raised at: the user's line, or the library's.
function options.bare(e)
  if type(e) ~= "string" then return e end
  local place = core.where()
  if place ~= "" and e:sub(1, #place) == place then return e:sub(#place + 1) end
  return (e:gsub("^[^\n:]*%.lua:%d+: ", ""))
end

return options
