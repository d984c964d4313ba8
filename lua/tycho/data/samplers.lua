-- Samplers: which items an epoch has, and in which order. order(seed, epoch) gives their positions, an int64 tensor on the CPU. A loader
-- passes its own seed and the epoch's number, so that an order depends on those alone. size() gives their number.
--
-- A list of positions, or any object with iter() (and size()), can be a DataLoader's sampler too.
local core = require "tycho.core"
local options = require "tycho.options"
local generator = require "tycho.generator"
local fail = options.fail
local fill, whole = options.fill, options.whole
local ops = core.ops
local samplers = {}
local cpu = {device = "cpu"}

-- Seeds the CPU's generator and math.random (where it is LuaJIT's own).
function samplers.reseed(seed)
  core.gpu.rng_state("cpu", seed % 2 ^ 52, 0)
  if core.math_random() then math.randomseed(seed) end
end
-- Calls fn under the given seed, and restores both generators.
function samplers.seeded(seed, fn, ...)
  local own, of_lua = core.keep(core.from_value({0, 0}, "int64")), core.math_random()
  local function restore()
    core.draw_end(own)
    if of_lua then core.math_random(of_lua) end
  end
  core.draw_begin(own)                     -- of this coroutine; math.random is the Lua state's
  samplers.reseed(seed)
  return options.finally(restore, fn, ...)
end
local seeded = samplers.seeded

local mixed = core.mix_seeds            -- a loader's seed and epoch as one seed

local function count(who, of)
  if type(of) == "table" and type(of.size) == "function" then return whole(who, "what the dataset's size() returns", of:size(), 0) end
  if type(of) == "number" then return whole(who, "argument 1, a number of items,", of, 0) end
  if core.is_tensor(of) and core.methods.dim(of) > 0 then return of.shape[1] end
  if type(of) == "table" and getmetatable(of) == nil and of.size == nil and (#of > 0 or next(of) == nil) then return #of end
  fail("%s: argument 1 must be a dataset or a number of items, got %s", who, options.shown(of))
end
local function positions(n)
  return n > 0 and ops.range(1, n, 1, {dtype = "int64", device = "cpu"}) or ops.zeros(0, {dtype = "int64", device = "cpu"})
end
local function shuffled(n, seed) return seeded(seed, ops.randperm, n, cpu) end

local function class(name)
  local C = {}
  C.__index = C
  C.__tostring = function() return name end
  -- used without a loader, a sampler that draws gives another order each time, by the CPU's generator
  function C:iter(seed, epoch)
    if not seed and self.draws and not self.seed then seed = ops.randint(0, 2 ^ 31 - 1, {1}, cpu)[1] end
    local order, i = self:order(seed or 0, epoch or 0), 0
    return function()
      i = i + 1
      if i <= #order then return order[i] end
    end
  end
  function C:size() return self.n end
  return C
end

local Sequential = class "SequentialSampler"
function Sequential:order() return positions(self.n) end
-- SequentialSampler(dataset): all positions in order. dataset may be a number of items, here and below.
function samplers.SequentialSampler(of) return setmetatable({n = count("SequentialSampler", of)}, Sequential) end

local Random = class "RandomSampler"
Random.draws = true
function Random:order(seed, epoch)
  seed = mixed(self.seed or seed, epoch)
  if self.replacement then return seeded(seed, ops.randint, 1, self.of, {self.n}, cpu) end
  if self.n <= self.of then return ops.slice(shuffled(self.of, seed), 1, 1, self.n) end
  local parts, left, k = {}, self.n, 0
  while left > 0 do
    parts[#parts + 1] = ops.slice(shuffled(self.of, mixed(seed, k)), 1, 1, math.min(left, self.of))
    left, k = left - self.of, k + 1
  end
  return ops.cat(parts, 1)
end
-- RandomSampler(dataset, replacement=false, num_samples=, generator=, {seed=}): positions in random order, num_samples of them (as many as
-- items unless given). seed, or a seed that generator draws now, replaces the loader's.
function samplers.RandomSampler(of, ...)
  local o = options.arguments("RandomSampler", "replacement=false, num_samples=nil, generator=nil, *, seed=nil", ...)
  local n = count("RandomSampler", of)
  if o.num_samples then whole("RandomSampler", "num_samples", o.num_samples, 1) end
  if o.num_samples and n == 0 then fail("RandomSampler: num_samples is %d, but there are no items", o.num_samples) end
  return setmetatable({of = n, n = o.num_samples or n, replacement = o.replacement,
    seed = generator.seed_of("RandomSampler", o)}, Random)
end

local Listed = class "SubsetRandomSampler"
Listed.draws = true
function Listed:order(seed, epoch) return ops.index(self.list, {shuffled(self.n, mixed(self.seed or seed, epoch))}, 1) end
-- SubsetRandomSampler(positions, {seed=, generator=}): the positions of a list in random order.
function samplers.SubsetRandomSampler(list, o)
  o = fill("SubsetRandomSampler", o, {seed = options.none, generator = options.none})
  local ok, t = pcall(function() return core.is_tensor(list) and core.methods.cpu(list) or core.from_value(list, "int64") end)
  if not ok or core.methods.dim(t) ~= 1 then fail("SubsetRandomSampler: argument 1 must list positions, got %s", options.shown(list)) end
  if #t > 0 and ops.amin(t):item() < 1 then fail("SubsetRandomSampler: positions count from 1, got %g", ops.amin(t):item()) end
  return setmetatable({list = core.keep(core.methods.long(t)), n = #t,
    seed = generator.seed_of("SubsetRandomSampler", o)}, Listed)
end

local Weighted = class "WeightedRandomSampler"
Weighted.draws = true
function Weighted:order(seed, epoch)
  return seeded(mixed(self.seed or seed, epoch), ops.multinomial, self.weights, self.n, {replacement = self.replacement})
end
-- WeightedRandomSampler(weights, num_samples, {replacement=true, seed=, generator=}): position i is drawn in proportion to weights[i].
function samplers.WeightedRandomSampler(weights, ...)
  local o = options.arguments("WeightedRandomSampler", "num_samples, replacement=true, *, seed=nil, generator=nil", ...)
  local n = o.num_samples
  local given = weights
  if type(weights) == "table" then
    local ok, t = pcall(core.from_value, weights, "float64")
    weights = ok and t
  end
  if not core.is_tensor(weights) or core.methods.dim(weights) ~= 1 or #weights == 0 then
    fail("WeightedRandomSampler: argument 1 (weights) must be a list of numbers, got %s",
      core.is_tensor(given) and "shape " .. tostring(given.shape) or type(given) == "table" and next(given) == nil and "an empty one"
        or options.shown(given))
  end
  weights = core.methods.double(weights)
  local low, most = ops.amin(weights):item(), ops.sum(weights):item()
  if not (low >= 0 and most > 0 and most < math.huge) then
    fail("WeightedRandomSampler: argument 1 (weights) must be numbers from 0 with a finite sum above 0, got a minimum of %g, a sum of %g",
      low, most)
  end
  whole("WeightedRandomSampler", "argument 2 (num_samples)", n, 1)
  if not o.replacement and n > #weights then
    fail("WeightedRandomSampler: %d of %d items can't be drawn without replacement", n, #weights)
  end
  return setmetatable({weights = core.keep(core.methods.cpu(weights)), n = n,
    replacement = o.replacement, seed = generator.seed_of("WeightedRandomSampler", o)}, Weighted)
end

local Distributed = class "DistributedSampler"
-- PyTorch's: sets the epoch of the next order. A loader passes its own otherwise.
function Distributed:set_epoch(epoch) self.epoch = whole("DistributedSampler", "epoch", epoch, 0) end
function Distributed:order(_, epoch)          -- the loader's seed isn't used: it may differ between processes
  epoch = self.epoch or epoch
  local order = self.shuffle and shuffled(self.of, mixed(self.seed, epoch)) or positions(self.of)
  local total = self.n * self.replicas
  if total == 0 then return ops.slice(order, 1, 1, 0) end
  while #order < total do order = ops.cat({order, ops.slice(order, 1, 1, math.min(#order, total - #order))}, 1) end
  return ops.slice(order, 1, self.rank + 1, total, self.replicas)
end
-- DistributedSampler(dataset, num_replicas=, rank=, shuffle=true, seed=0, drop_last=false): this process's share of the positions; ranks
-- count from 0; num_replicas and rank follow from tycho.distributed unless given. Shares are equal: some items are repeated, or with
-- drop_last left out. All processes need the same seed.
function samplers.DistributedSampler(of, ...)
  local processes = require "tycho.distributed"
  local among = processes.is_initialized()
  local o = options.arguments("DistributedSampler", "num_replicas=nil, rank=nil, shuffle=true, seed=0, drop_last=false", ...)
  whole("DistributedSampler", "seed", o.seed, 0)
  local n, r = count("DistributedSampler", of), o.num_replicas or (among and processes.get_world_size() or 1)
  o.rank = o.rank or (among and processes.get_rank() or 0)
  whole("DistributedSampler", "num_replicas", r, 1)
  if type(o.rank) ~= "number" or o.rank < 0 or o.rank >= r or o.rank % 1 ~= 0 then
    fail("DistributedSampler: rank must be from 0 to %d, got %s", r - 1, tostring(o.rank))
  end
  return setmetatable({of = n, n = o.drop_last and math.floor(n / r) or math.ceil(n / r), replicas = r, rank = o.rank,
    shuffle = o.shuffle, seed = o.seed}, Distributed)
end

local Batches = class "BatchSampler"
function Batches:iter(seed, epoch)
  local next_item, ended = self.sampler:iter(seed, epoch), false
  return function()
    local list = {}
    while #list < self.batch_size and not ended do
      local i = next_item()
      ended = i == nil
      list[#list + 1] = i
    end
    if #list == self.batch_size or (#list > 0 and not self.drop_last) then return list end
  end
end
function Batches:size()
  local n = 0
  if type(self.sampler.size) == "function" then
    return (self.drop_last and math.floor or math.ceil)(self.sampler:size() / self.batch_size)
  end
  for _ in self:iter() do n = n + 1 end
  return n
end
-- BatchSampler(sampler, batch_size, drop_last=false): lists of positions, for a DataLoader's batch_sampler.
function samplers.BatchSampler(sampler, ...)
  local o = options.arguments("BatchSampler", "batch_size, drop_last=false", ...)
  if type(sampler) == "table" and #sampler > 0 and type(sampler.iter) ~= "function" then
    local list = sampler
    sampler = {size = function() return #list end, iter = function()
      local i = 0
      return function() i = i + 1 return list[i] end
    end}
  end
  if type(sampler) ~= "table" or type(sampler.iter) ~= "function" then
    fail("BatchSampler: argument 1 must be a sampler or a list of positions, got " .. options.shown(sampler))
  end
  return setmetatable({sampler = sampler, batch_size = whole("BatchSampler", "batch_size", o.batch_size, 1),
    drop_last = o.drop_last}, Batches)
end

-- Positions of items, from 1 to n, as a vector. who: names the source in errors.
local function positions_of(t, n, who)
  local ok, x = pcall(function() return core.is_tensor(t) and core.methods.cpu(t) or core.from_value(t, "float64") end)
  if not ok or core.methods.dim(x) ~= 1 then error(("DataLoader: %s must list positions of items, whole numbers from 1"):format(who), 0) end
  for _, i in ipairs(x:totable()) do
    if type(i) ~= "number" or i % 1 ~= 0 or i < 1 or i > n then
      error(("DataLoader: %s names item %s, which is out of range for %d items"):format(who, tostring(i), n), 0)
    end
  end
  return core.keep(core.methods.long(x))
end
local function none() return ops.zeros(0, {dtype = "int64", device = "cpu"}) end

-- A DataLoader's batch_sampler, a list of lists or an object with iter(), which gives lists, as an object with order(seed, epoch), which
-- gives the positions of all batches and where each batch ends, from 0, and size().
function samplers.batches_of(s, n)
  if type(s) ~= "table" or core.is_tensor(s) then
    error("DataLoader: batch_sampler must be a list of lists of positions or an object with iter(), got " ..
      options.shown(s), 0)
  end
  local function joined(next_list)
    local all, ends = {}, {0}
    if type(next_list) ~= "function" then
      error("DataLoader: batch_sampler's iter() must return an iterator, a function, got " .. type(next_list), 0)
    end
    for list in next_list do
      if core.is_tensor(list) then list = list:totable() end
      if type(list) ~= "table" or #list == 0 then
        error("DataLoader: batch_sampler must give lists of positions, got " .. (type(list) == "table" and
          "an empty one" or type(list)), 0)
      end
      for _, i in ipairs(list) do all[#all + 1] = i end
      ends[#ends + 1] = #all
    end
    return positions_of(#all > 0 and all or none(), n, "batch_sampler"), ends
  end
  if type(s.iter) ~= "function" and (core.is_module(s) or next(s) ~= nil and s[1] == nil) then
    error("DataLoader: batch_sampler must be a list of lists of positions or an object with iter(), got " ..
      (core.is_module(s) and "a module" or options.shown(s)), 0)
  end
  local own = {}
  if type(s.iter) ~= "function" then
    local i = 0
    local order, ends = joined(function() i = i + 1 return s[i] end)
    function own.order() return order, ends end
    function own.size() return #ends - 1 end
    return own
  end
  function own:order(seed, epoch) return seeded(mixed(seed, epoch), function() return joined(s:iter(seed, epoch)) end) end
  function own:size(seed, epoch) return type(s.size) == "function" and s:size() or #select(2, self:order(seed, epoch)) - 1 end
  return own
end

-- A DataLoader's sampler, positions in a list or tensor or an object with iter(), as an object with order(seed, epoch) and size(). n: the
-- number of items. Random draws of an iter() are seeded by seed and epoch.
function samplers.of(s, n)
  if core.is_tensor(s) or (type(s) == "table" and type(s.iter) ~= "function" and type(s.order) ~= "function") then
    if not core.is_tensor(s) and next(s) == nil then s = none() end
    local t = positions_of(s, n, "sampler")
    return {order = function() return t end, size = function() return #t end}
  end
  if type(s) ~= "table" then error("DataLoader: sampler must be a list of positions or an object with iter(), got " .. type(s), 0) end
  if type(s.order) == "function" then return s end
  local own = {}
  function own:order(seed, epoch)
    return seeded(mixed(seed, epoch), function()
      local list, it = {}, s:iter()
      if type(it) ~= "function" then error("DataLoader: the sampler's iter() must return an iterator, a function, got " .. type(it), 0) end
      for i in it do list[#list + 1] = i end
      return positions_of(#list > 0 and list or none(), n, "sampler")
    end)
  end
  function own:size(seed, epoch) return type(s.size) == "function" and s:size() or #self:order(seed, epoch) end
  return own
end

return samplers
