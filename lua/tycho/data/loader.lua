-- DataLoader and Prefetcher.
--
-- Idea: an epoch's order depends only on the loader's seed and the epoch's number, and the random draws for an item also on its place in
-- that order, whoever makes it. Batches are made by one of four engines (Here, Direct, Threads, Processes). Each has submit(k, items,
-- first), where k is the batch's number in the epoch and first the place before its first item, and take(k); ahead is the number of batches
-- that may be pending. A collate given to the loader runs in the calling thread, whichever engine makes the items.
local core = require "tycho.core"
local source = require "tycho.data.source"
local samplers = require "tycho.data.samplers"
local remote = require "tycho.data.remote"
local new_stream = require("tycho.data.stream").new
local options = require "tycho.options"
local callable = require("tycho.modes").callable
local tree = require "tycho.tree"
local generator = require "tycho.generator"
local fail = options.fail
local bare = options.bare
local ops = core.ops

-- A batch's fields with fn(x) for each tensor x in them, also in tables and in copies of objects, such as packed sequences.
local function mapped(fn, ...)
  local function leaf(x)
    if core.is_tensor(x) then return fn(x) end
    if type(x) ~= "table" then return x end
    local out = {}
    for k, v in pairs(x) do out[k] = tree.map(v, leaf) end
    return setmetatable(out, getmetatable(x))
  end
  local fields = options.pack(...)
  for i = 1, fields.n do fields[i] = tree.map(fields[i], leaf) end
  return unpack(fields, 1, fields.n)
end
-- A batch's tensors in pinned memory, where there is a GPU.
local function pinned(...) return mapped(function(x) return x.device == "cpu" and core.gpu.pin_memory(x) or x end, ...) end
local function same(...) return ... end

-- The items of a batch, each a list of fields as the dataset's get gives them, from the batch's fields.
local function apart(...)
  local items = {}
  for k = 1, select("#", ...) do
    local field = select(k, ...)
    for i = 1, #field do
      items[i] = items[i] or {}
      items[i][k] = field[i]
    end
  end
  return items
end

-- Calls the loader's own collate; its errors keep the line where they were raised.
local function told(ok, ...)
  if ok then return ... end
  local e = ...
  error(type(e) == "string" and e:find "^[^\n:]+:%d+: " and "DataLoader: collate: " .. e or e, 0)
end
local function collated(loader, items) return told(pcall(loader.collate, items)) end

local makes_batches = source.makes_batches

---- engines ----
local Here = {ahead = 1}               -- makes batches in Lua, in the calling thread
Here.__index = Here
function Here:submit(_, items, first) self.items, self.first = items, first end
function Here:take()
  local l = self.loader
  if makes_batches(l.dataset) and not l.collate then return self.place(l.dataset:batch(self.items)) end
  return self.place(remote.batch(self.dataset, self.items:totable(), l.seed, self.epoch, self.first,
    l.collate and function(items) return collated(l, items) end))
end
function Here.stop() end

local Direct = {ahead = 1}             -- makes batches in C, in the calling thread
Direct.__index = Direct
Direct.submit = Here.submit
function Direct:take()
  return self.whole(core.source_batch(self.source, self.items, self.loader.seed, self.epoch, self.pin, self.first))
end
function Direct.stop() end

local Threads = {}                     -- makes batches in C, in threads
Threads.__index = Threads
function Threads:submit(_, items, first)
  self.threads = self.threads or core.loader_start(self.source, self.loader.num_workers)
  core.loader_submit(self.threads, items, self.loader.seed, self.epoch, self.pin, first)
end
local SLICE = 0.1                      -- seconds of waiting, between which Ctrl-C is handled
-- at: the worker and item waited for, and for how many slices. If the program itself was stopped meanwhile, that counts as one slice.
local function taken(self, at, first, ...)
  if first ~= nil then return self.whole(first, ...) end
  local worker, item = core.loader_stands(self.threads)
  if at.worker ~= worker or at.item ~= item then at.worker, at.item, at.slices = worker, item, 0 end
  at.slices = at.slices + 1
  if worker > 0 and at.slices * SLICE >= self.loader.timeout then
    error(("DataLoader: worker %d, item %d: no answer for %g seconds (the DataLoader's timeout= limits how long an item may take)")
      :format(worker, item, self.loader.timeout), 0)
  end
  return taken(self, at, core.loader_take(self.threads, SLICE))
end
function Threads:take() return taken(self, {}, core.loader_take(self.threads, SLICE)) end
function Threads:stop()
  if self.threads then core.loader_stop(self.threads) end
  self.threads = nil
end

local Processes = {}                   -- makes batches in Lua, in processes, which are kept for further epochs
Processes.__index = Processes
function Processes:submit(k, items, first)
  self.pool:submit(self.base + k, {indices = items, seed = self.loader.seed, epoch = self.epoch, first = first,
    apart = self.loader.collate and true or nil})
end
function Processes:take(k)
  local answer
  repeat answer = self.pool:take(self.base + k) until answer
  if answer.items then return self.place(collated(self.loader, answer.items)) end
  return self.place(unpack(answer.fields, 1, answer.n))
end
function Processes:stop()
  if not self.pool then return end
  self.pool:forget()
  self.pool = nil
end

---- the loader ----
local DataLoader = {}
DataLoader.__index = DataLoader
local SIGNATURE = "batch_size=1, shuffle=false, sampler=nil, batch_sampler=nil, num_workers=0, collate_fn=nil, pin_memory=false, \z
  drop_last=false, timeout=5, *, persistent_workers=true, prefetch_factor=2, seed=nil, generator=nil, collate=nil, worker_init_fn=nil, \z
  multiprocessing_context=nil, pin_memory_device=nil, in_order=true"
DataLoader.__tostring = function(l)
  return ("DataLoader(%d items in %d batch%s)"):format(l.dataset:size(), l:size(), l:size() == 1 and "" or "es")
end
DataLoader.__call = function() fail("DataLoader: a loader can't be called; write for x, y in loader:iter() do") end

local function whole(self, name, least) options.whole("DataLoader", name, self[name], least) end

-- A list of items, each a list of fields or one field.
local Listed = source.class "list"
function Listed:size() return #self.items end
function Listed:get(i)
  local item = self.items[i]
  if type(item) == "table" and not core.is_tensor(item) and item[1] ~= nil then return unpack(item) end
  return item
end
local function as_dataset(d)
  if core.is_tensor(d) and core.methods.dim(d) > 0 then return require("tycho.data").TensorDataset(d) end
  local list = type(d) == "table" and getmetatable(d) == nil and d[1] ~= nil and not (d.size or d.get or d.iter)
  return list and setmetatable({items = d}, Listed) or d
end

-- DataLoader(dataset, {batch_size=1, shuffle=false, drop_last=false, num_workers=0, pin_memory=false, prefetch_factor=2, seed=, generator=,
-- sampler=, batch_sampler=, collate=, timeout=5}): for x, y in loader:iter() do gives batches: the items' fields, stacked. The dataset has
-- size() and get(i), or only iter(), whose order it then follows; a list of items or a tensor will do too. num_workers: threads, or
-- processes for datasets written in Lua, which must be given as data.Dataset("module", {...}). seed: determines the order; unless given it
-- is drawn now, from generator or the CPU's own. sampler, batch_sampler: an object of data's, a list of positions (a list of such lists),
-- or any object with iter(). collate(items): gets a list of items, each a list of fields, and returns the batch's fields; it runs in this
-- thread, a dataset's own collate(items) where the items are made. batch_size = false: items one by one. prefetch_factor: pending batches
-- for each worker; timeout: seconds that an item may take in a worker, 0: no limit. Accepted without effect: persistent_workers (they stay
-- until close()), multiprocessing_context, pin_memory_device, in_order (batches always come in order).
local function new(dataset, ...)
  local o = options.arguments("DataLoader", SIGNATURE, ...)
  dataset = as_dataset(dataset)
  local here = remote.is(dataset) and dataset.dataset_here or dataset
  local streams = source.streams(here)
  if type(dataset) ~= "table" or not (streams or (type(dataset.size) == "function" and (dataset.get or makes_batches(dataset)))) then
    fail("DataLoader: argument 1 must be a dataset with size() and get(i), or with iter()")
  end
  local self = setmetatable(o, DataLoader)
  self.dataset, self.epoch, self.position, self.closes = dataset, 0, 0, 0     -- closes: how often it has been closed
  self.collate = self.collate or self.collate_fn           -- PyTorch's name for it
  if self.batch_size == false and self.batch_sampler then fail("DataLoader: batch_sampler and batch_size=false exclude each other") end
  if self.batch_size == false then                         -- no batches: an item's own fields, or what collate makes of them
    local one = self.collate or function(...) return ... end
    self.batch_size, self.collate = 1, function(items) return one(unpack(items[1])) end
  end
  if self.worker_init_fn and self.num_workers > 0 then
    fail("DataLoader: worker_init_fn: workers are programs of their own; what one does first stands in the dataset's module, and each \z
      item has random numbers of its own")
  end
  whole(self, "batch_size", 1)
  whole(self, "num_workers", 0)
  whole(self, "prefetch_factor", 1)
  if type(self.timeout) ~= "number" or self.timeout < 0 or self.timeout ~= self.timeout then
    fail("DataLoader: timeout must be a number of seconds, 0 for no limit, got " .. tostring(self.timeout))
  end
  if self.timeout == 0 then self.timeout = math.huge end
  self.seed = generator.seed_of("DataLoader", self)
  if self.seed then whole(self, "seed", 0) else self.seed = ops.randint(0, 2 ^ 52, {1}, {device = "cpu"}):item() end
  if self.collate and not callable(self.collate) then
    fail("DataLoader: collate must be a function, got %s", options.shown(self.collate))
  end
  self.recipe = self.num_workers > 0 and remote.recipe((source.base(dataset))) or nil      -- from which worker processes make it
  if streams then
    if self.num_workers > 0 and not self.recipe then
      fail("DataLoader: workers can't read this dataset with iter(): pass it as tycho.data.Dataset(\"module\", {plain data})")
    end
    return new_stream(here, self, self.pin_memory and core.gpu.is_available() and pinned or same,
      function() return remote.start(self.recipe, self.num_workers, self.timeout) end)
  end
  if self.sampler and self.shuffle then fail("DataLoader: sampler and shuffle exclude each other") end
  if self.batch_sampler then
    for _, k in ipairs {"shuffle", "sampler", "drop_last"} do
      if self[k] then fail("DataLoader: batch_sampler and %s exclude each other", k) end
    end
    if self.batch_size ~= 1 then fail("DataLoader: batch_sampler and batch_size exclude each other") end
    local ok, made = pcall(samplers.batches_of, self.batch_sampler, dataset:size())
    if not ok then fail(made) end
    self.batch_sampler = made
  end
  if self.sampler then
    local ok, made = pcall(samplers.of, self.sampler, dataset:size())
    if not ok then fail(made) end
    self.sampler = made
  end
  if self.num_workers > 0 and not self.recipe then
    local made, why = source.of(dataset)
    if not made and why ~= "it is empty" then
      fail("DataLoader: workers can't make this dataset's items: %s. num_workers needs a dataset that C can read (tensors \z
        on the cpu, tycho.data.datasets with transforms of tycho.data.transforms) or tycho.data.Dataset(\"module\", \z
        {plain data}), which each worker makes for itself", why)
    end
  end
  return self
end

-- The number of batches in an epoch.
function DataLoader:size()
  if self.batch_sampler then return self.batch_sampler:size(self.seed, self.epoch) end
  local items = self.sampler and self.sampler:size(self.seed, self.epoch) or self.dataset:size()
  local n = options.whole("DataLoader", self.sampler and "the sampler's size()" or "the dataset's size()", items, 0) / self.batch_size
  return self.drop_last and math.floor(n) or math.ceil(n)
end

-- The epoch's positions; with a batch_sampler also where each batch ends, from 0.
function DataLoader:order()
  if self.batch_sampler then return self.batch_sampler:order(self.seed, self.epoch) end
  local s = self.sampler or (self.shuffle and samplers.RandomSampler(self.dataset) or samplers.SequentialSampler(self.dataset))
  return s:order(self.seed, self.epoch)
end

-- The engine of this epoch; and, if it works on the dataset under a Subset, the positions there of the Subset's items.
function DataLoader:engine()
  local pin = self.pin_memory and core.gpu.is_available()
  local e = {loader = self, epoch = self.epoch, pin = pin, place = pin and pinned or same, ahead = self.num_workers * self.prefetch_factor}
  local base, within = source.base(self.dataset)
  if self.dataset._begin then self.dataset._begin() end
  if self.recipe then
    if not self.pool or #self.pool.workers == 0 then self.pool = remote.start(self.recipe, self.num_workers, self.timeout) end
    e.pool, e.base = self.pool, self.pool.last                  -- batch numbers continue those of earlier epochs
    return setmetatable(e, Processes), within
  end
  local made, at = source.of(self.dataset)
  e.source, e.whole = made, same
  if self.collate then
    e.pin, e.whole = false, function(...) return e.place(collated(self, apart(...))) end
  end
  if not made then
    e.ahead, e.dataset = nil, base
    if makes_batches(self.dataset) and not self.collate then within = nil end        -- it maps positions itself
    return setmetatable(e, Here), within
  end
  if self.num_workers > 0 then return setmetatable(e, Threads), at end
  e.ahead = nil
  return setmetatable(e, Direct), at
end

-- Ends threads and worker processes now, not only when the loader is collected; a later iter() starts them again.
function DataLoader:close()
  if self.running then self.running:stop(); self.running.ended = true end
  if self.pool then self.pool:stop() end
  self.running, self.pool, self.closes = nil, nil, self.closes + 1
end

local function answer(self, engine, ok, ...)
  if not ok then
    engine:stop()
    engine.ended = true
    if self.running == engine then self.running = nil end
    local text = bare((select(1, ...)))
    if type(text) == "string" and not text:find "^DataLoader" then text = "DataLoader: " .. text end
    fail(text)                          -- here, since iterators end in a tail call, the error names the caller's place
  end
  if (...) == nil then fail("DataLoader: the batch's first value is nil, which would end the loop; collate must return the batch") end
  self.position, self.at_epoch = engine.at, engine.epoch
  return ...
end

-- The workers serve one epoch at a time.
local function give_way(self)
  if not self.running then return end
  self.running:stop()
  self.running.gave_way, self.running = true, nil
end

-- for x, y in loader:iter() do: a new epoch, or the rest of the one whose state was loaded. Leaving the loop early ends its epoch. Loops
-- may be nested.
function DataLoader:iter()
  -- the last epoch was left early, or another loop has just begun it
  if not self.resuming and (self.position ~= 0 or self.begun) then self.epoch, self.position = self.epoch + 1, 0 end
  self.resuming, self.begun = false, true
  give_way(self)
  local made, order, ends = pcall(self.order, self)
  if not made then fail(bare(order)) end
  local at, total = self.position, #order / self.batch_size
  total = ends and #ends - 1 or self.drop_last and math.floor(total) or math.ceil(total)
  local engine, stand_for = self:engine()
  if stand_for then order = ops.index(stand_for, {order}, 1) end
  core.keep(order)
  if self.num_workers > 0 then self.running = engine end
  local asked, closes = at, self.closes
  return function()
    if at >= total then
      if self.running == engine then engine:stop(); self.running = nil end
      if self.position ~= 0 and not engine.over then self.epoch, self.position, self.begun = self.epoch + 1, 0, false end
      engine.over = true
      return nil
    end
    if engine.ended or self.closes ~= closes then
      fail("DataLoader: this epoch's workers have been stopped: the loader was closed, or an error was raised")
    end
    if engine.gave_way then                -- to another iter(): batches requested before are made again
      local epoch = engine.epoch
      give_way(self)
      engine, asked = self:engine(), at
      engine.epoch, self.running = epoch, engine
    end
    local ok, e = true, nil
    while ok and asked < total and asked - at < engine.ahead do
      local before, last = asked * self.batch_size, (asked + 1) * self.batch_size
      if ends then before, last = ends[asked + 1], ends[asked + 2] end
      ok, e = pcall(engine.submit, engine, asked + 1, ops.slice(order, 1, before + 1, last), before)
      asked = asked + 1
    end
    if not ok then return answer(self, engine, false, e) end
    at = at + 1
    engine.at = at
    return answer(self, engine, pcall(engine.take, engine, at))
  end
end

-- Its place in the data: epoch, position and seed, as a table of numbers for tycho.save.
function DataLoader:state_dict()
  return {epoch = self.position ~= 0 and self.at_epoch or self.epoch, position = self.position, seed = self.seed,
    batch_size = not self.batch_sampler and self.batch_size or nil, batch_sampler = self.batch_sampler and true or nil,
    items = self.dataset:size(), shuffle = self.shuffle and true or nil, replicas = self.sampler and self.sampler.replicas or nil}
end
-- Makes the next iter() continue at the place that state_dict gave. The batch size must be the same.
function DataLoader:load_state_dict(d)
  if type(d) ~= "table" then fail("load_state_dict: argument 1 must be a loader's state, got " .. type(d)) end
  for _, k in ipairs {"epoch", "position", "seed"} do options.whole("load_state_dict", "the loader's " .. k, d[k], 0) end
  if (d.batch_sampler or false) ~= (self.batch_sampler and true or false) then
    fail("load_state_dict: the state is of a loader %s a batch_sampler, unlike this one", d.batch_sampler and "with" or "without")
  end
  if d.batch_size then options.whole("load_state_dict", "the loader's batch_size", d.batch_size, 1) end
  if d.batch_size and d.batch_size ~= self.batch_size then
    fail("load_state_dict: the state is of batches of %d, this loader makes batches of %d", d.batch_size, self.batch_size)
  end
  if d.position > 0 and d.items and d.items ~= self.dataset:size() then
    fail("load_state_dict: the state is of an epoch of %s items, the dataset has %d", tostring(d.items), self.dataset:size())
  end
  if d.position > 0 and d.items and (d.shuffle or false) ~= (self.shuffle and true or false) then
    fail("load_state_dict: the state is of an epoch %s, this loader %s", d.shuffle and "that is shuffled" or "in order",
      self.shuffle and "shuffles" or "doesn't shuffle")
  end
  local position, now = d.position, self.sampler and self.sampler.replicas
  if d.replicas and now then               -- another number of processes continues after what all had; if that is uneven, some items repeat
    position = math.floor(position * options.whole("load_state_dict", "the loader's replicas", d.replicas, 1) / now)
  end
  self.epoch, self.position, self.seed, self.resuming, self.at_epoch = d.epoch, position, d.seed, true, nil
end

options.methods(DataLoader, "loader", function(self) return type(self) == "table" and self.dataset ~= nil end)

---- the next batch, while this one is worked on ----
local Prefetcher = {}
Prefetcher.__index = Prefetcher

-- Prefetcher(loader, device="cuda"): iterates as the loader does, with batches on the device: the next batch is copied meanwhile, on a
-- stream of its own, from pinned memory (the loader's pin_memory) without blocking the host. On the CPU it passes batches on. Field waited:
-- the seconds spent waiting for batches.
local function prefetcher(loader, device, more)
  if type(loader) ~= "table" or type(loader.iter) ~= "function" then fail("Prefetcher: argument 1 must be a loader") end
  if type(device) == "table" then device = options.fill("Prefetcher", device, {device = "cuda"}).device end
  options.no_more("Prefetcher", more)
  device = device or "cuda"
  if type(device) ~= "string" then
    fail("Prefetcher: argument 2 (device) must be a device such as 'cuda' or 'cuda:0', got " .. type(device))
  end
  local ok, e = pcall(ops.zeros, {1}, {device = device})
  if not ok then fail("Prefetcher: " .. options.bare(e):gsub("^zeros: ", "")) end
  return setmetatable({loader = loader, device = e.device, batch_size = loader.batch_size, waited = 0}, Prefetcher)
end

local function moved(device, ...)
  return mapped(function(x) return core.keep(core.methods.to(x, device, {non_blocking = true})) end, ...)      -- outlives the current scope
end

-- The loader's size.
function Prefetcher:size() return self.loader:size() end

-- for x, y in prefetcher:iter() do: as the loader's.
function Prefetcher:iter()
  local loader, device, cuda = self.loader, self.device, require "tycho.cuda"
  local next_batch = loader:iter()
  local gpu = device ~= "cpu" and tonumber(device:match "%d+")
  local stream = gpu and cuda.Stream(gpu)
  -- The loader is one batch ahead, but its state remains that of the batch given last.
  local function fetch()
    local epoch, position = loader.epoch, loader.position
    local function arrived(first, ...)
      local b = {epoch = loader.epoch, position = loader.position, n = 0}
      if first ~= nil then
        b.n = 1 + select("#", ...)
        if stream then b.fields = {cuda.stream(stream, moved, device, first, ...)} else b.fields = {first, ...} end
      end
      loader.epoch, loader.position = epoch, position
      return b
    end
    local now = core.now()
    local ok, b = pcall(function() return arrived(next_batch()) end)
    self.waited = self.waited + core.now() - now
    if ok then return b end
    loader.epoch, loader.position = epoch, position
    return {error = b}
  end
  local ready
  return function()
    local b = ready or fetch()
    if b.error then fail(b.error) end                  -- the batch before has been given already
    loader.epoch, loader.position = b.epoch, b.position
    if b.n == 0 then ready = b; return nil end
    if stream then                                         -- the copy must end before the work that follows
      local event = stream:record_event()
      event:wait(core.gpu.current_stream(gpu))
    end
    ready = stream and fetch() or nil
    return unpack(b.fields, 1, b.n)
  end
end

-- The loader's place after the batch given last.
function Prefetcher:state_dict() return self.loader:state_dict() end
-- As the loader's.
function Prefetcher:load_state_dict(d) self.loader:load_state_dict(d) end
-- As the loader's.
function Prefetcher:close() if self.loader.close then self.loader:close() end end

-- DataLoader {dataset=, ...}: all arguments by name.
local function named(dataset, ...)
  local by_name = select("#", ...) == 0 and type(dataset) == "table" and getmetatable(dataset) == nil and dataset.dataset and
    not (dataset.size or dataset.get or dataset.iter)
  if not by_name then return new(dataset, ...) end
  local o = {}
  for k, v in pairs(dataset) do if k ~= "dataset" then o[k] = v end end
  return new(dataset.dataset, o)
end

return {DataLoader = named, Prefetcher = prefetcher}
