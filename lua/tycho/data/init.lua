-- Datasets and loaders.
--
-- A dataset has size() and get(i). If C can make its items, fields() describes them (source.lua), and loaders make whole batches in C, in
-- threads if asked. A dataset that gathers many items at once in Lua has batch(indices).
local core = require "tycho.core"
local samplers = require "tycho.data.samplers"
local source = require "tycho.data.source"
local ops, M = core.ops, core.methods
local options = require "tycho.options"
local WHOLE = require("tycho.functional.lib").WHOLE
local generator = require "tycho.generator"
local fail = options.fail
local check = options.check
-- collate(items): the batch that a loader makes of a list of items, each a list {field}: tensors are stacked, numbers become int64 if all
-- are whole, else float32, tables are collated by their fields, strings become a list.
local function collate(...)
  local function told(ok, ...)
    if not ok then fail("collate: %s", (options.bare((...)):gsub("^collate: ", ""))) end
    return ...
  end
  return told(pcall(require "tycho.data.collate", ...))
end
local remote = require "tycho.data.remote"
local data = {Dataset = remote.Dataset, get_worker_info = remote.get_worker_info, collate = collate, default_collate = collate,
  DataLoader = require("tycho.data.loader").DataLoader, Prefetcher = require("tycho.data.loader").Prefetcher}
for name, make in pairs(samplers) do if name:find "Sampler$" then data[name] = make end end

local TensorDataset = source.class "TensorDataset"
-- The number of items.
function TensorDataset:size() return M.size(self.tensors[1], 1) end
-- Item i: the i-th row of each tensor, as several values.
function TensorDataset:get(i)
  local out = {}
  for k, t in ipairs(self.tensors) do out[k] = t[i] end
  return unpack(out)
end
-- The items at the given positions, an int64 tensor, as a batch.
function TensorDataset:batch(indices)
  local out = {}
  for k, t in ipairs(self.tensors) do out[k] = ops.index(t, {indices}, 1) end
  return unpack(out)
end
function TensorDataset:fields()
  local out = {}
  for k, t in ipairs(self.tensors) do
    local why = t.device ~= "cpu" and "is on " .. t.device or t.requires_grad and "requires grad" or
      not M.is_contiguous(t) and "is not contiguous"
    if why then return nil, ("its tensor %d %s"):format(k, why) end
    out[k] = {kind = "rows", tensor = t}
  end
  if #out > 8 then return nil, "it has more than 8 tensors" end
  return out
end
-- The same items on a device.
function TensorDataset:to(device)
  local out = {}
  for k, t in ipairs(self.tensors) do out[k] = M.to(t, device) end
  return setmetatable({tensors = out}, TensorDataset)
end
-- TensorDataset(x, y, ...): item i is x[i], y[i], ...; tensors of the same dim 1.
function data.TensorDataset(...)
  local tensors = {...}
  for i = 1, select("#", ...) do
    local t = tensors[i]
    if not core.is_tensor(t) or M.dim(t) == 0 then
      fail("TensorDataset: argument %d must be a tensor with dims, got %s", i, core.is_tensor(t) and "shape ()" or options.shown(t))
    end
    if #t ~= #tensors[1] then fail("TensorDataset: argument %d has %d items, argument 1 has %d", i, #t, #tensors[1]) end
  end
  if #tensors == 0 then fail("TensorDataset: at least one tensor is needed") end
  return setmetatable({tensors = tensors}, TensorDataset)
end

local Subset = source.class "Subset"
function Subset:size() return #self.indices end
function Subset:get(i)
  source.need_item(i, #self.indices)
  return self.dataset:get(self.indices[i])
end
-- The same items of the dataset on a device, if the dataset has to().
function Subset:to(device)
  if type(self.dataset.to) ~= "function" then fail("to: the subset's dataset can't be moved to a device, as it has no method to()") end
  return data.Subset(self.dataset:to(device), self.indices)
end
local function dataset_at(who, d)
  if type(d) ~= "table" or type(d.size) ~= "function" then fail("%s must be a dataset, got %s", who, options.shown(d)) end
  return d
end
-- Subset(dataset, indices): the items at these positions, a list or an int64 tensor. A change of its field `indices` takes effect in the
-- next epoch.
function data.Subset(dataset, indices)
  dataset_at("Subset: argument 1", dataset)
  local list = core.is_tensor(indices) and M.dim(indices) == 1 and indices:totable() or indices
  if type(list) ~= "table" then
    fail("Subset: argument 2 must list indices, got " ..
      (core.is_tensor(indices) and "a tensor of shape " .. tostring(indices.shape) or type(indices)))
  end
  local n = dataset:size()
  for _, i in ipairs(list) do
    if type(i) ~= "number" or i % 1 ~= 0 then fail("Subset: indices must be whole numbers, got " .. tostring(i)) end
    if i < 1 or i > n then fail("Subset: index %d is out of range: items count from 1, to %d", i, dataset:size()) end
  end
  local self = setmetatable({dataset = dataset, indices = list, classes = dataset.classes}, Subset)
  if dataset.batch then
    local positions
    self._begin = function()                               -- at an epoch's begin: the list may have changed
      positions = nil
      if dataset._begin then dataset._begin() end
    end
    self.batch = function(_, at)
      positions = positions or source.positions(self)
      return dataset:batch(ops.index(positions, {at}, 1))
    end
  end
  return self
end

local Concat = source.class "ConcatDataset"
function Concat:size()
  local n = 0                              -- anew, since a Subset's list may change
  for _, d in ipairs(self.datasets) do n = n + d:size() end
  return n
end
function Concat:get(i)
  local at = i
  if type(i) == "number" and i >= 1 and i % 1 == 0 then
    for _, d in ipairs(self.datasets) do
      local n = d:size()
      if at <= n then return d:get(at) end
      at = at - n
    end
  end
  source.need_item(i, self:size())
end
-- ConcatDataset{a, b, ...}: the items of the datasets, one dataset after another.
function data.ConcatDataset(list, ...)
  if type(list) ~= "table" or list.size or select("#", ...) > 0 then
    fail("ConcatDataset: one list of datasets is needed, such as ConcatDataset{a, b}")
  end
  options.items("ConcatDataset", "argument 1", list)
  for i, d in ipairs(list) do
    local what = ("ConcatDataset: item %d of the list"):format(i)
    options.whole(what, "size()", dataset_at(what, d):size(), 0)
  end
  local self = setmetatable({datasets = list, classes = list[1] and list[1].classes}, Concat)
  source.concatenated[self] = list
  return self
end

-- ChainDataset{a, b, ...}: the items of datasets with iter(), one dataset after another; has iter() itself.
function data.ChainDataset(list)
  if type(list) ~= "table" or list.iter then
    fail("ChainDataset: one list of datasets with iter() is needed, such as ChainDataset{a, b}")
  end
  options.items("ChainDataset", "argument 1", list)
  for i, d in ipairs(list) do
    if type(d) ~= "table" or not d.iter then fail("ChainDataset: item %d of the list has no iter()", i) end
  end
  return {iter = function()
    local at, step, state, control = 0, nil, nil, nil
    local function item(...)                               -- or, at a dataset's end, the next one's first
      control = (...)
      if control ~= nil then return ... end
      at, step = at + 1, nil
      if not list[at] then return nil end
      step, state, control = list[at]:iter()
      return item(step(state, control))
    end
    return function()
      if step then return item(step(state, control)) end
      return item()
    end
  end}
end

local Stack = source.class "StackDataset"
function Stack:size() return self.datasets[self.names and self.names[1] or 1]:size() end
function Stack:get(i)
  local out, n = {}, 0
  for _, name in ipairs(self.names or {}) do
    local fields = options.pack(self.datasets[name]:get(i))
    out[name] = fields.n > 1 and fields or fields[1]
    fields.n = nil
  end
  if self.names then return out end
  local function add(...)
    for k = 1, select("#", ...) do out[n + k] = (select(k, ...)) end
    n = n + select("#", ...)
  end
  for _, d in ipairs(self.datasets) do add(d:get(i)) end
  return unpack(out, 1, n)
end
function Stack:fields()
  local out = {}
  if self.names then return nil, "its items are tables" end
  for k, d in ipairs(self.datasets) do
    local fields, why = source.fields(d, true)
    if not fields then return nil, ("its dataset %d: %s"):format(k, why) end
  end
  for _, d in ipairs(self.datasets) do
    for _, f in ipairs((source.fields(d))) do out[#out + 1] = f end
  end
  if #out > 8 then return nil, "its items have more than 8 fields" end
  return out
end
-- StackDataset(a, b, ...): item i has the fields of a's item i, then b's, and so on. StackDataset{name=a, ...}: item i is a table
-- {name=a's item i, ...}, where an item of several fields is a list.
function data.StackDataset(...)
  local list, n = {...}, select("#", ...)
  local named = n == 1 and type(list[1]) == "table" and getmetatable(list[1]) == nil and list[1].get == nil and list[1]
  if named and next(named) ~= nil then
    local names, sets, first = {}, {}, nil
    for name, d in pairs(named) do
      if type(name) ~= "string" then fail("StackDataset: a table of datasets must have names alone, got %s", options.shown(name)) end
      dataset_at(("StackDataset: '%s'"):format(name), d)
      names[#names + 1], sets[name] = name, d
    end
    table.sort(names)
    for i, name in ipairs(names) do
      first = i == 1 and named[name]:size() or first
      if named[name]:size() ~= first then
        fail("StackDataset: '%s' has %d items, '%s' has %d", name, named[name]:size(), names[1], first)
      end
    end
    return setmetatable({datasets = sets, names = names}, Stack)
  end
  for i = 1, n do
    local d = list[i]
    dataset_at(("StackDataset: argument %d"):format(i), d)
    if d:size() ~= list[1]:size() then fail("StackDataset: argument %d has %d items, argument 1 has %d", i, d:size(), list[1]:size()) end
  end
  if #list == 0 then fail("StackDataset: at least one dataset is needed") end
  local self = setmetatable({datasets = list}, Stack)
  source.stacked[self] = list
  return self
end

-- random_split(dataset, {n1, n2, ...}, {seed=, generator=}): a list of Subsets of that many items, drawn at random. The sizes add up to the
-- number of items, or are fractions that add up to 1.
function data.random_split(dataset, sizes, o)
  dataset_at("random_split: argument 1", dataset)
  if type(sizes) == "table" and type(sizes.lengths) == "table" and o == nil then        -- by name
    o = {}
    for k, v in pairs(sizes) do o[k] = k ~= "lengths" and v or nil end
    sizes = sizes.lengths
  end
  if type(sizes) ~= "table" or core.is_tensor(sizes) then
    fail("random_split: argument 2 (sizes) must be a list, got " .. options.shown(sizes))
  end
  local total, out, first, part, have = 0, {}, 1, false, dataset:size()
  if generator.is_generator(o) then o = {generator = o} end
  if o ~= nil then check("random_split", o, {seed = true, generator = true}) end
  for _, n in ipairs(sizes) do
    if type(n) ~= "number" or n < 0 then fail("random_split: argument 2 (sizes) must list numbers from 0, got " .. tostring(n)) end
    total, part = total + n, part or n % 1 ~= 0
  end
  if (part or have ~= 1) and math.abs(total - 1) < 1e-6 then       -- fractions; items left by rounding go to the first parts
    local whole, left = {}, have
    for i, f in ipairs(sizes) do whole[i] = math.floor(f * have + 1e-9); left = left - whole[i] end
    for i = 1, left do whole[(i - 1) % #whole + 1] = whole[(i - 1) % #whole + 1] + 1 end
    sizes, total = whole, have
  elseif part then fail("random_split: the fractions add up to %g, not to 1", total) end
  if total ~= have then fail("random_split: the sizes add up to %d, the dataset has %d items", total, have) end
  local seed = generator.seed_of("random_split", o or {})
  if seed then options.whole("random_split", "seed", seed, 0) end
  local order = seed and samplers.seeded(seed, ops.randperm, total, {device = "cpu"}) or ops.randperm(total, {device = "cpu"})
  for i, n in ipairs(sizes) do
    out[i] = data.Subset(dataset, ops.slice(order, 1, first, first + n - 1))
    first = first + n
  end
  return out
end

-- read_image(path, {gray=false}): a JPEG or PNG file as a float32 tensor CxHxW of values in 0..1; gray: one channel.
function data.read_image(path, o)
  if type(path) ~= "string" then fail("read_image: argument 1 (path) must be a string, got " .. type(path)) end
  if o ~= nil then check("read_image", o, {gray = true}) end
  local ok, x = pcall(core.read_picture, path, o and o.gray or false)
  if not ok then fail("read_image: %s", options.bare(x)) end
  return x
end

-- Raises if an element of x, what a file has, isn't a whole number that o.dtype holds.
local EXACT = 2 ^ 53 - 1                                   -- the text was read as a Lua number
local function need_whole(path, x, o)
  local whole = WHOLE[o.dtype]
  if not whole then return end
  local least, most = math.max(whole[2], -EXACT), math.min(whole[3], EXACT)
  local bad = ops.logical_or(ops.ne(x, ops.trunc(x)), ops.logical_not(ops.logical_and(ops.ge(x, least), ops.le(x, most))))
  if not M.item(ops.any(bad)) then return end
  local row, column = unpack(ops.nonzero(bad)[1]:totable())
  local v = x[{row, column}]
  fail("read_csv: %s: row %d%s, column %d: %s is not %s %s", path, row, o.header and " after the header" or "", column,
    v ~= v and "an empty field, or NaN," or ("%.17g"):format(v),
    o.dtype == "int64" and "a whole number below 2^53, as needed for" or "a number of",
    o.dtype)
end

-- read_csv(path, {header=true, separator=",", dtype="float32"}): a text file of numbers as a tensor rows x columns, and the list of column
-- names. An empty field is NaN. With an integer dtype each field must be a whole number of its range, and below 2^53.
function data.read_csv(path, o)
  if type(path) ~= "string" then fail("read_csv: argument 1 (path) must be a string, got " .. type(path)) end
  o = options.fill("read_csv", o, {header = true, separator = ",", dtype = "float32"})
  local ok, x, names = pcall(require("tycho.data.source").csv, path, o)
  if not ok then fail("read_csv: %s", options.bare(x)) end
  need_whole(path, x, o)
  return M.to(x, o.dtype), names
end

return options.told(data, "data", nil, {IterableDataset = "any table with iter() is a dataset: see DataLoader"},
  {datasets = "tycho.data.datasets", transforms = "tycho.data.transforms"})
