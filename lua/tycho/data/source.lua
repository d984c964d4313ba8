-- Which datasets C can make items of by itself, and their sources (src/io/data.h).
--
-- A dataset says so by fields(): a list of what an item consists of, as core.make_source takes it, or nil. A Subset of such a one is the same
-- source and a list of positions in it.
local core = require "tycho.core"
local ops = core.ops
local source = {}

local made = setmetatable({}, {__mode = "k"})    -- by dataset: its source, and the transform that is part of it

local function own(dataset)
  local have = made[dataset]
  if have and have.transform == dataset.transform then return have.source end
  local fields = dataset:size() > 0 and dataset:fields()
  if not fields then return nil end
  have = {source = core.make_source(dataset:size(), fields), transform = dataset.transform}
  made[dataset] = have
  return have.source
end

-- The source and, for a Subset, its positions as an int64 tensor; nil where items are made in Lua.
function source.of(dataset)
  local at
  while type(dataset) == "table" and dataset.positions do
    at = at and ops.index(dataset.positions, {at}, 1) or dataset.positions
    dataset = dataset.dataset
  end
  if type(dataset) ~= "table" or type(dataset.fields) ~= "function" then return nil end
  return own(dataset), at
end

-- Item i by C, random transforms drawn by the CPU's generator.
function source.get(dataset, i)
  if type(i) ~= "number" or i % 1 ~= 0 or i < 1 or i > dataset:size() then error(("item %s is out of range for %d items"):format(tostring(i), dataset:size()), 3) end
  local random = dataset.transform and dataset.transform.random
  local function one(x, ...)
    if x == nil then return end
    return x[1], one(...)          -- a number where items are numbers
  end
  return one(core.source_batch(own(dataset), core.from_value({i}, "int64"), random and ops.randint(0, 2 ^ 52, {1}, {device = "cpu"}):item() or 0, 0, false))
end

return source
