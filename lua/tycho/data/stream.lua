-- A loader for datasets that have neither size() nor get(i), but only iter(), which returns an iterator for Lua's for.
--
-- Each item is made under its own seed, from the loader's seed, the epoch and the item's number, so that an iterator's random draws depend
-- on those alone. A loader whose state is loaded makes the items before its place again, and drops them.
local core = require "tycho.core"
local collate = require "tycho.data.collate"
local samplers = require "tycho.data.samplers"
local options = require "tycho.options"
local fail = options.fail

local Stream = {}
Stream.__index = Stream
Stream.__tostring = function(l) return ("DataLoader(a stream, batches of %d)"):format(l.batch_size) end

-- o: a DataLoader's options, filled in and checked. place: moves a batch to pinned memory, or passes it on. start(): starts worker
-- processes.
local function new(dataset, o, place, start)
  for _, k in ipairs {"shuffle", "sampler", "batch_sampler"} do
    if o[k] then fail("DataLoader: a dataset with iter() sets its own order; %s can't be used with it", k) end
  end
  return setmetatable({dataset = dataset, batch_size = o.batch_size, drop_last = o.drop_last, collate = o.collate,
    seed = o.seed, place = place, epoch = 0, position = 0, start = start, num_workers = o.num_workers,
    ahead = o.num_workers * o.prefetch_factor}, Stream)
end

function Stream:size() fail("DataLoader: a dataset with iter() doesn't say how many items it has") end
-- Ends worker processes now; a later iter() starts them again.
function Stream:close()
  if self.pool then self.pool:stop() end
  self.pool = nil
end

-- The epoch's items, each a list of fields with n; nil after the last. share(): the worker's number, if it draws for itself, else 0.
local function items_of(dataset, seed, epoch, share)
  local count = 0
  seed = core.mix_seeds(seed, epoch)
  local function drawn(fn, ...)
    count = count + 1
    local mine = share and share() or 0
    return samplers.seeded(core.mix_seeds(mine > 0 and core.mix_seeds(seed, mine) or seed, count), fn, ...)
  end
  local step, state, control = drawn(dataset.iter, dataset)
  if not require("tycho.modes").callable(step) then
    fail("DataLoader: the dataset's iter() must return an iterator, a function, got %s", options.shown(step))
  end
  local function fields(...)
    control = (...)
    if control ~= nil then return options.pack(...) end
  end
  return function() return fields(drawn(step, state, control)) end
end

-- The epoch's batches after the first `from`, made in this process; no value after the last.
local function made_here(self, from)
  local next_item, ended = items_of(self.dataset, self.seed, self.epoch), false
  for _ = 1, from * self.batch_size do ended = ended or next_item() == nil end
  return function()
    local list = {}
    while not ended and #list < self.batch_size do
      local item = next_item()
      ended = item == nil
      list[#list + 1] = item
    end
    if #list > 0 and not (self.drop_last and #list < self.batch_size) then return (self.collate or collate)(list) end
  end
end

local function refuse_shares(of, n)
  fail("load_state_dict: the state is of %s workers, each of which makes items of its own (get_worker_info); this loader has %d",
    tostring(of or 0), n)
end

-- The same, made by worker processes, which are asked in turn until all have reached their end.
local function made_there(self, from)
  if not self.pool or #self.pool.workers == 0 then self.pool = self.start() end
  local pool = self.pool
  pool:forget()
  local n = #pool.workers
  pool.last = math.ceil(pool.last / n) * n               -- each epoch begins with the first worker
  local base, asked, taken, given = pool.last, 0, 0, 0
  local through, left = {}, n              -- which workers are at their end; how many aren't
  local function answer()
    while asked - taken < self.ahead do
      asked = asked + 1
      pool:submit(base + asked, {run = base, batch = asked, size = self.batch_size, seed = self.seed, epoch = self.epoch,
        whole = self.drop_last or nil, apart = self.collate and true or nil, dropped = asked <= from or nil})
    end
    taken = taken + 1
    local got
    repeat got = pool:take(base + taken) until got
    return got
  end
  return function()
    if self.pool ~= pool or #pool.workers == 0 then
      fail("DataLoader: this epoch's workers have been stopped: the loader was closed, or an error was raised")
    end
    if pool.last ~= base + asked then fail("DataLoader: another loop is using this loader's workers") end
    while left > 0 do
      local ok, got = pcall(answer)
      if not ok then fail(options.bare(got)) end
      if got.shares and self.shares ~= n then
        if from > 0 then refuse_shares(self.shares, n) end
        self.shares = n
      end
      if got.empty then
        local who = taken % n
        if not through[who] then through[who], left = true, left - 1 end
      else
        given = given + 1
        if given > from then
          if got.items then return self.collate(got.items) end
          return unpack(got.fields, 1, got.n)
        end
      end
    end
  end
end

function Stream:iter()
  if not self.resuming and self.position ~= 0 then self.epoch, self.position = self.epoch + 1, 0 end
  self.resuming = false
  local next_batch, ended = (self.ahead > 0 and made_there or made_here)(self, self.position), false
  local function given(...)
    if select("#", ...) == 0 then
      ended = true
      if self.position ~= 0 then self.epoch, self.position = self.epoch + 1, 0 end
      return nil
    end
    if (...) == nil then fail("DataLoader: the batch's first value is nil, which would end the loop; collate must return the batch") end
    self.position = self.position + 1
    return self.place(...)
  end
  return function()
    if not ended then return given(next_batch()) end
  end
end

-- shares: of how many workers, where each makes items of its own.
function Stream:state_dict()
  return {epoch = self.epoch, position = self.position, seed = self.seed, batch_size = self.batch_size, shares = self.shares}
end
function Stream:load_state_dict(d)
  if type(d) ~= "table" then fail("load_state_dict: argument 1 must be a loader's state, got %s", type(d)) end
  for _, k in ipairs {"epoch", "position", "seed"} do options.whole("load_state_dict", "the loader's " .. k, d[k], 0) end
  if d.batch_size ~= self.batch_size then
    fail("load_state_dict: the state is of batches of %s, this loader makes batches of %d", tostring(d.batch_size),
      self.batch_size)
  end
  if d.shares and d.position > 0 and d.shares ~= self.num_workers then refuse_shares(d.shares, self.num_workers) end
  self.epoch, self.position, self.seed, self.shares, self.resuming = d.epoch, d.position, d.seed, d.shares, true
end

options.methods(Stream, "loader", function(self) return type(self) == "table" and self.dataset ~= nil end)
return {new = new, items_of = items_of}
