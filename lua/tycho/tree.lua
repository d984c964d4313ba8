-- Nested plain tables (without a metatable), such as arguments and results: their copies, and their tensors as one flat list.
--
-- Idea: map copies such a value, with leaf(x) in place of each other value x. A leaf that becomes a place remembers its number in a list,
-- so that fill can put another list's items where the first one's were. Invariant: what is held twice, or holds itself, is so in the copy.
local function map(v, leaf, seen)
  if type(v) ~= "table" or getmetatable(v) ~= nil then return leaf(v) end
  if seen[v] then return seen[v] end
  local out = {}
  seen[v] = out
  for k, x in pairs(v) do out[k] = map(x, leaf, seen) end
  return out
end

local tree = {}
function tree.is_plain(v) return type(v) == "table" and getmetatable(v) == nil end
function tree.map(v, leaf) return map(v, leaf, {}) end

-- A place in such a table, for item i of a list that comes later; note: any value of its maker's.
local Place = {}
function tree.place(i, note) return setmetatable({i, note = note}, Place) end
-- Calls fn(i, x) for each place i in v; x is what `like` has there.
function tree.each_place(v, like, fn)
  if getmetatable(v) == Place then fn(v[1], like)
  elseif type(v) == "table" and type(like) == "table" then for k, x in pairs(v) do tree.each_place(x, like[k], fn) end end
end
-- v with the list's items, or with at(i, note), in its places.
function tree.fill(v, at)
  local list = type(at) == "table" and at
  return map(v, function(x)
    if getmetatable(x) ~= Place then return x end
    if list then return list[x[1]] end
    return at(x[1], x.note)
  end, {})
end
return tree
