-- A tensor's shape: a list of sizes that compares by value and prints as 2x3.
local core = require "tycho.core"
local fail = require("tycho.options").fail

local Shape = {}
Shape.__index = function(s, i)
  if i == 0 then fail("shape: position 0: dims begin at 1") end
  return type(i) == "number" and i < 0 and rawget(s, #s + 1 + i) or nil        -- from the end, as elsewhere
end
Shape.__eq = function(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do if a[i] ~= b[i] then return false end end
  return true
end
Shape.__tostring = function(s)
  local sizes = {}
  for i = 1, #s do sizes[i] = ("%.0f"):format(s[i]) end
  return #s == 0 and "()" or table.concat(sizes, "x")
end
Shape.__concat = function(a, b) return tostring(a) .. tostring(b) end
Shape.__call = function() fail "shape can't be called: x.shape is a list; use x:size(1) for one dim's size" end
core.set_private("shape_meta", Shape)
return Shape
