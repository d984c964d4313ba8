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
  if type(v) ~= "number" or v < least or v % 1 ~= 0 or v >= 2 ^ 53 then error(("%s: %s must be a whole number from %d, got %s"):format(who, name, least, type(v) == "string" and "'" .. v .. "'" or tostring(v)), level + 1) end
  return v
end

-- An error's text without the place in the library that raised it.
function options.bare(e)
  return type(e) == "string" and (e:gsub("^[^\n:]*%.lua:%d+: ", "")) or e
end

return options
