-- Nested plain tables (without a metatable), such as arguments and results are: a copy in which leaf(x) stands for each
-- x that is none. What is held twice, or holds itself, is so in the copy.
local function map(v, leaf, seen)
  if type(v) ~= "table" or getmetatable(v) ~= nil then return leaf(v) end
  if seen[v] then return seen[v] end
  local out = {}
  seen[v] = out
  for k, x in pairs(v) do out[k] = map(x, leaf, seen) end
  return out
end

return {map = function(v, leaf) return map(v, leaf, {}) end}
