-- Which datasets' items C can make by itself, and the C sources for them (src/io/data.h).
--
-- Such a dataset has fields(): a list of what an item consists of, as core.make_source takes it, or nil. A Subset of one uses the same
-- source and a list of positions in it; a ConcatDataset of such datasets is a source with parts; a StackDataset has the fields of all its
-- datasets.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local ops = core.ops
local promote_types = require("tycho.functional.lib").promote_types
-- By ConcatDataset, and by StackDataset: the list of its datasets; remade: data.Dataset's (remote.lua), which stand for their dataset_here
local source = {concatenated = setmetatable({}, {__mode = "k"}), stacked = setmetatable({}, {__mode = "k"}),
  remade = setmetatable({}, {__mode = "k"})}
local ours = setmetatable({}, {__mode = "k"})    -- classes made by source.class

-- A class of datasets, which print as their name and size. set[i], PyTorch's form, is an error that says what to use.
local function is_table(v) return type(v) == "table" end
function source.class(name)
  local class = setmetatable({}, {__index = function(_, k)
    if type(k) == "number" then fail("%s: items are read with get: set:get(%g)", name, k) end
  end})
  class.__index = class
  -- checks that methods defined later are called with a colon
  getmetatable(class).__newindex = function(_, k, v)
    if k == "size" or k == "get" or k == "batch" then v = options.method(name, "set", k, is_table, v) end
    rawset(class, k, v)
  end
  ours[class] = true
  class.__tostring = function(d) return ("%s(%d items)"):format(rawget(d, "name") or name, d:size()) end
  return class
end

-- Raises unless i is one of the n items.
function source.need_item(i, n)
  if type(i) ~= "number" or i % 1 ~= 0 or i < 1 or i > n then
    fail("get: item %s is out of range: there are %d items%s", options.shown(i), n, i == 0 and ", counted from 1" or "")
  end
end

local function is_subset(d) return type(d) == "table" and ours[getmetatable(d)] and rawget(d, "indices") ~= nil end
-- A Subset's current indices.
function source.positions(subset)
  local list = subset.indices
  if core.is_tensor(list) then return list end
  return core.keep(core.from_value(list, "int64"))
end
-- The dataset under nested Subsets, and their positions in it as an int64 tensor; nil positions if there is no Subset.
function source.base(dataset)
  local at
  while is_subset(dataset) do
    local positions = source.positions(dataset)
    at = at and ops.index(positions, {at}, 1) or positions
    dataset = rawget(dataset, "dataset")
  end
  return dataset, at
end

-- Whether items are made in Lua: a user's dataset, or one whose get the user has replaced.
local function is_lua(base)
  return type(base) ~= "table" or type(base.fields) ~= "function" or (ours[getmetatable(base)] and rawget(base, "get") ~= nil)
end
-- The fields from which C makes a dataset's items; nil and the reason.
local function fields_of(base)
  if is_lua(base) then return nil, "it is written in Lua" end
  local fields, why = base:fields()
  if fields and not (type(fields) == "table" and type(fields[1]) == "table" and fields[1].kind) then fields = nil end  -- a user's own
  return fields, why or "it is written in Lua"
end

-- The transforms that are part of a source; users may change them.
local function transforms_of(dataset, out)
  local base = source.base(dataset)
  out[#out + 1] = base.transform or false
  for _, d in ipairs(source.stacked[base] or {}) do transforms_of(d, out) end
  return out
end
local function same(a, b)
  for i = 1, math.max(#a, #b) do if a[i] ~= b[i] then return false end end
  return true
end

-- The tensors among a dataset's fields and in lists there; users may replace them.
local function tensors_of(dataset)
  local out = {}
  for k, v in pairs(dataset) do
    if core.is_tensor(v) then out[k] = v
    elseif type(v) == "table" and core.is_tensor(v[1]) then for i, x in ipairs(v) do out[tostring(k) .. i] = x end end
  end
  return out
end
local function has_same(a, b)
  for k, v in pairs(a) do if not rawequal(b[k], v) then return false end end
  for k in pairs(b) do if a[k] == nil then return false end end
  return true
end

local made = setmetatable({}, {__mode = "k"})    -- by dataset: its source, and the transforms and tensors it was made with
local function own(dataset)
  local have, transforms, tensors = made[dataset], transforms_of(dataset, {}), tensors_of(dataset)
  if have and same(have.transforms, transforms) and has_same(have.tensors, tensors) then return have.source end
  if dataset:size() == 0 then return nil, "it is empty" end
  local fields, why = dataset:fields()
  if not fields then return nil, why end
  have = {source = core.make_source(dataset:size(), fields), transforms = transforms, tensors = tensors}
  made[dataset] = have
  return have.source
end

-- Whether a dataset makes batches itself, from positions.
function source.makes_batches(d) return type(d.batch) == "function" end
-- Whether a dataset can only be iterated: it has iter(), and neither get(i) nor batch.
function source.streams(d)
  return type(d) == "table" and type(d.iter) == "function" and not d.get and not source.makes_batches(d)
end

-- A source of several datasets, one after the other. Not cached, since parts may have got other transforms.
local function joined(datasets)
  local parts = {}
  for i, d in ipairs(datasets) do
    if d:size() > 0 then
      local part, at = source.of(d)
      if not part then return nil, ("its dataset %d: %s"):format(i, at) end
      parts[#parts + 1] = {part, at}
    end
  end
  if #parts == 0 then return nil, "it is empty" end
  local ok, whole = pcall(core.join_sources, parts)
  if not ok then return nil, options.bare(whole) end
  return whole
end

-- A dataset's source and, for a Subset, its positions; nil and the reason where items are made in Lua.
function source.of(dataset)
  local base, at = source.base(dataset)
  local parts = source.concatenated[base]
  if parts and rawget(base, "get") == nil then
    local whole, why = joined(parts)
    return whole, whole and at or why
  end
  if is_lua(base) then return nil, "it is written in Lua" end
  local made_of, why = own(base)
  if not made_of then return nil, why end
  return made_of, at
end

-- A dataset's fields; nil and the reason where there are none. A Subset's are reduced copies; with whole they are those of the dataset
-- under it.
function source.fields(dataset, whole)
  local base, at = source.base(dataset)
  local fields, why = fields_of(base)
  if not fields or not at or whole then return fields, why end
  local out = {}
  for k, f in ipairs(fields) do
    out[k] = {}
    for name, v in pairs(f) do out[k][name] = v end
    if f.tensor then out[k].tensor = ops.index(f.tensor, {at}, 1) end
    if f.paths then
      out[k].paths = {}
      for i, from in ipairs(at:totable()) do out[k].paths[i] = f.paths[from] end
    end
  end
  return out
end

-- The dtypes of items' numbers by field, where known, and the number of fields (nil: unknown). For datasets whose items are made in Lua,
-- from other datasets that have tensors.
function source.dtypes(dataset)
  local base, out = dataset, {}
  while is_subset(base) do base = rawget(base, "dataset") end
  if source.remade[base] then return source.dtypes(base.dataset_here) end
  if source.stacked[base] then
    local n = 0
    for _, d in ipairs(source.stacked[base]) do
      local known, more = source.dtypes(d)
      for k, dtype in pairs(known) do out[n + k] = dtype end
      if not more then return out end
      n = n + more
    end
    return out, n
  elseif not source.concatenated[base] then
    local fields = fields_of(base)
    for k, f in ipairs(fields or {}) do out[k] = f.tensor and f.tensor.dtype or nil end
    return out, fields and #fields
  end
  local known, n = {}, nil
  for i, d in ipairs(source.concatenated[base]) do
    local more
    known[i], more = source.dtypes(d)
    n = n or more
  end
  for k in pairs(known[1] or {}) do
    local dtype, all = nil, true
    for i = 1, #known do
      local one = known[i][k]
      dtype, all = one and (dtype and promote_types(dtype, one) or one) or dtype, all and one ~= nil
    end
    if all or (dtype and dtype:find "float") then out[k] = dtype end       -- a Lua number may be fractional
  end
  return out, n
end

-- Item i, made by C; random transforms are seeded by the CPU's generator.
function source.get(dataset, i)
  source.need_item(i, dataset:size())
  local random = dataset.transform and dataset.transform.random
  local function one(x, ...)
    if x == nil then return end
    return x[1], one(...)          -- a number, where items are numbers
  end
  return one(core.source_batch(own(dataset), core.from_value({i}, "int64"),
    random and ops.randint(0, 2 ^ 52, {1}, {device = "cpu"}):item() or 0, 0, false))
end

-- A CSV file's numbers as a float64 tensor, and the names of its columns.
function source.csv(path, o)
  if type(o.separator) ~= "string" or #o.separator ~= 1 then error("separator must be one character", 0) end
  local all, names = core.read_csv(path, o.separator, o.header)
  local list = names and {}
  for name in (names or ""):gmatch "([^\n]*)\n" do list[#list + 1] = name end
  return all, list
end

return source
