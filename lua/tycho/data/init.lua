-- Datasets and loaders.
--
-- A dataset has size() and get(i); one that can gather many items at once also has batch(indices), which the loader then
-- uses. The order of an epoch depends on the loader's seed and the epoch's number alone.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local fill = require("tycho.options").fill
local check = require("tycho.options").check
local data = {datasets = require "tycho.data.datasets"}

---- datasets ----
local TensorDataset = {}
TensorDataset.__index = TensorDataset
function TensorDataset:size() return M.size(self.tensors[1], 1) end
function TensorDataset:get(i)
  local out = {}
  for k, t in ipairs(self.tensors) do out[k] = t[i] end
  return unpack(out)
end
function TensorDataset:batch(indices)
  local out = {}
  for k, t in ipairs(self.tensors) do out[k] = ops.index(t, {indices}, 1) end
  return unpack(out)
end
-- TensorDataset(x, y, ...): item i is x[i], y[i], ...
function data.TensorDataset(...)
  local tensors = {...}
  for i, t in ipairs(tensors) do
    if not core.is_tensor(t) or M.dim(t) == 0 then error("TensorDataset: argument " .. i .. " must be a tensor with dims", 2) end
    if #t ~= #tensors[1] then error(("TensorDataset: argument %d has %d items, argument 1 has %d"):format(i, #t, #tensors[1]), 2) end
  end
  if #tensors == 0 then error("TensorDataset: at least one tensor is needed", 2) end
  return setmetatable({tensors = tensors}, TensorDataset)
end

local Subset = {}
Subset.__index = Subset
function Subset:size() return #self.indices end
function Subset:get(i) return self.dataset:get(self.indices[i]) end
-- Subset(dataset, indices): the items that a list or an int64 tensor names
function data.Subset(dataset, indices)
  local list = core.is_tensor(indices) and indices:totable() or indices
  for _, i in ipairs(list) do
    if i < 1 or i > dataset:size() then error(("Subset: index %d is out of range for %d items"):format(i, dataset:size()), 2) end
  end
  local self = setmetatable({dataset = dataset, indices = list}, Subset)
  if dataset.batch then
    local all = core.from_value(list, "int64")
    self.batch = function(_, at) return dataset:batch(ops.index(all, {at}, 1)) end
  end
  return self
end

-- Calls fn under a seed of its own, and leaves the CPU's generator as it was.
local function seeded(seed, fn)
  local s, o = core.gpu.rng_state("cpu")
  core.gpu.rng_state("cpu", seed, 0)
  local ok, v = pcall(fn)
  core.gpu.rng_state("cpu", s, o)
  if not ok then error(v, 0) end
  return v
end

-- random_split(dataset, {n1, n2, ...}, {seed=}): a list of subsets
function data.random_split(dataset, sizes, o)
  local total, out, first, part, have = 0, {}, 1, false, dataset:size()
  if o ~= nil then check("random_split", o, {seed = true}, 2) end
  for _, n in ipairs(sizes) do
    if type(n) ~= "number" or n < 0 then error("random_split: argument 2 (sizes) must list numbers from 0, got " .. tostring(n), 2) end
    total, part = total + n, part or n % 1 ~= 0
  end
  if part and math.abs(total - 1) < 1e-6 then       -- fractions; what rounding leaves goes to the first ones
    local whole, left = {}, have
    for i, f in ipairs(sizes) do whole[i] = math.floor(f * have + 1e-9); left = left - whole[i] end
    for i = 1, left do whole[(i - 1) % #whole + 1] = whole[(i - 1) % #whole + 1] + 1 end
    sizes, total = whole, have
  end
  if total ~= dataset:size() then error(("random_split: the sizes add up to %d, the dataset has %d items"):format(total, dataset:size()), 2) end
  local order = o and o.seed and seeded(o.seed, function() return ops.randperm(total, {device = "cpu"}) end) or ops.randperm(total, {device = "cpu"})
  for i, n in ipairs(sizes) do
    out[i] = data.Subset(dataset, ops.slice(order, 1, first, first + n - 1))
    first = first + n
  end
  return out
end

---- collating ----
local function collate_values(list)
  local v = list[1]
  if core.is_tensor(v) then return ops.cat((function() local u = {} for i, x in ipairs(list) do u[i] = M.unsqueeze(x, 1) end return u end)(), 1) end
  if type(v) == "number" then
    local whole = true
    for _, n in ipairs(list) do whole = whole and n % 1 == 0 end
    return M.to(core.from_value(list, whole and "int64" or "float32"), core.gpu.default_device())
  end
  if type(v) == "boolean" then return M.to(core.from_value(list), core.gpu.default_device()) end
  if type(v) == "table" and v[1] == nil then
    local out = {}
    for k in pairs(v) do
      local field = {}
      for i, item in ipairs(list) do field[i] = item[k] end
      out[k] = collate_values(field)
    end
    return out
  end
  return list
end

-- Items (each a list of fields) become fields of whole batches: tensors stacked, numbers tensors, strings lists.
function data.collate(items)
  local out = {}
  for k = 1, table.maxn(items[1]) do
    local field = {}
    for i, item in ipairs(items) do field[i] = item[k] end
    out[k] = collate_values(field)
  end
  return unpack(out)
end

-- What a batch consists of, in pinned memory where there is a GPU.
local function pinned(v, ...)
  if core.is_tensor(v) and v.device == "cpu" then v = core.gpu.pin_memory(v)
  elseif type(v) == "table" and not core.is_tensor(v) then
    local out = {}
    for k, w in pairs(v) do out[k] = pinned(w) end
    v = out
  end
  if select("#", ...) == 0 then return v end
  return v, pinned(...)
end

---- the loader ----
local DataLoader = {}
DataLoader.__index = DataLoader
local defaults = {batch_size = 1, shuffle = false, drop_last = false, seed = 0, collate = false, sampler = false, pin_memory = false, num_workers = 0, prefetch_factor = 2}

function data.DataLoader(dataset, o)
  if type(dataset) ~= "table" or type(dataset.size) ~= "function" or not (dataset.get or dataset.batch) then error("DataLoader: argument 1 must be a dataset with size() and get(i)", 2) end
  local self = setmetatable(fill("DataLoader", o, defaults, 2), DataLoader)
  self.dataset, self.epoch, self.position = dataset, 0, 0
  if type(self.batch_size) ~= "number" or self.batch_size < 1 or self.batch_size % 1 ~= 0 then error("DataLoader: batch_size must be a whole number from 1, got " .. tostring(self.batch_size), 2) end
  if self.num_workers ~= 0 then error("DataLoader: num_workers must be 0: batches are made in the calling thread", 2) end
  return self
end

-- Batches in an epoch.
function DataLoader:size()
  local n = (self.sampler and #self:order() or self.dataset:size()) / self.batch_size
  return self.drop_last and math.floor(n) or math.ceil(n)
end

function DataLoader:order()
  if self.sampler then
    local list = {}
    if not self.sampler.iter then return core.from_value(self.sampler, "int64") end     -- a list of positions
    for i in self.sampler:iter() do list[#list + 1] = i end
    return core.from_value(list, "int64")
  end
  local n, epoch = self.dataset:size(), self.epoch
  if not self.shuffle then return n > 0 and ops.range(1, n, 1, {dtype = "int64", device = "cpu"}) or ops.zeros(0, {dtype = "int64", device = "cpu"}) end
  return seeded((self.seed * 1000003 + epoch) % 2 ^ 52, function() return ops.randperm(n, {device = "cpu"}) end)
end

-- A new epoch, or what is left of the one whose state was loaded: for x, y in loader:iter() do
function DataLoader:iter()
  if not self.resuming and self.position ~= 0 then self.epoch, self.position = self.epoch + 1, 0 end   -- the last one was left early
  self.resuming = false
  local order, at = core.keep(self:order()), self.position
  local total = #order / self.batch_size
  total = self.drop_last and math.floor(total) or math.ceil(total)
  local place = self.pin_memory and core.gpu.is_available() and pinned or function(...) return ... end
  return function()
    if at >= total then
      if self.position ~= 0 then self.epoch, self.position = self.epoch + 1, 0 end
      return nil
    end
    local indices = ops.slice(order, 1, at * self.batch_size + 1, (at + 1) * self.batch_size)
    at = at + 1
    self.position = at
    if self.dataset.batch and not self.collate then return place(self.dataset:batch(indices)) end
    local items = {}
    for i, k in ipairs(indices:totable()) do
      items[i] = {self.dataset:get(k)}
      if #items[i] == 0 then error(("DataLoader: the dataset's get(%d) returned nothing"):format(k), 2) end
    end
    return place((self.collate or data.collate)(items))
  end
end

function DataLoader:state_dict() return {epoch = self.epoch, position = self.position, seed = self.seed} end
function DataLoader:load_state_dict(d) self.epoch, self.position, self.seed, self.resuming = d.epoch, d.position, d.seed, true end

return data
