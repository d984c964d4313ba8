-- A loader of what comes one after another: a dataset that has iter(), which gives a function as Lua's for calls it,
-- and neither size() nor get(i).
--
-- Each item is asked for under a seed of its own, made of the loader's seed, the epoch and the item's number, so that
-- what an iterator draws at random depends on those alone. A loader whose state is loaded asks for the items before its
-- place again, and drops them.
local core = require "tycho.core"
local collate = require "tycho.data.collate"
local samplers = require "tycho.data.samplers"
local options = require "tycho.options"
local fail = options.fail

local Stream = {}
Stream.__index = Stream
Stream.__tostring = function(l) return ("DataLoader(a stream, batches of %d)"):format(l.batch_size) end

-- o: a DataLoader's options, filled in and checked. place: brings a batch to pinned memory, or hands it on.
local function new(dataset, o, place)
  for _, k in ipairs {"shuffle", "sampler", "batch_sampler"} do
    if o[k] then fail("DataLoader: a dataset with iter() has an order of its own; %s can't be asked for", k) end
  end
  if o.num_workers > 0 then fail("DataLoader: a dataset with iter() is read in this process; num_workers must be 0") end
  return setmetatable({dataset = dataset, batch_size = o.batch_size, drop_last = o.drop_last, collate = o.collate,
    seed = o.seed, place = place, epoch = 0, position = 0}, Stream)
end

function Stream:size() fail("DataLoader: a dataset with iter() doesn't say how many items it has") end
function Stream:close() end -- luacheck: no self

-- The epoch's items, each a list of fields with n; nil after the last.
local function items_of(self)
  local seed, count = core.mix_seeds(self.seed, self.epoch), 0
  local function drawn(fn, ...)
    count = count + 1
    return samplers.seeded(core.mix_seeds(seed, count), fn, ...)
  end
  local step, state, control = drawn(self.dataset.iter, self.dataset)
  if not require("tycho.modes").callable(step) then
    fail("DataLoader: the dataset's iter() must return an iterator, a function, got %s", options.shown(step))
  end
  local function fields(...)
    control = (...)
    if control ~= nil then return {n = select("#", ...), ...} end
  end
  return function() return fields(drawn(step, state, control)) end
end

function Stream:iter()
  if not self.resuming and self.position ~= 0 then self.epoch, self.position = self.epoch + 1, 0 end
  self.resuming = false
  local next_item, ended = items_of(self), false
  for _ = 1, self.position * self.batch_size do ended = ended or next_item() == nil end
  local function given(...)
    if (...) == nil then fail("DataLoader: the batch's first value is nil, which would end the loop; collate must return the batch") end
    return ...
  end
  return function()
    local list = {}
    while not ended and #list < self.batch_size do
      local item = next_item()
      ended = item == nil
      list[#list + 1] = item
    end
    if #list == 0 or (self.drop_last and #list < self.batch_size) then
      if self.position ~= 0 then self.epoch, self.position = self.epoch + 1, 0 end
      return nil
    end
    self.position = self.position + 1
    return given(self.place((self.collate or collate)(list)))
  end
end

function Stream:state_dict() return {epoch = self.epoch, position = self.position, seed = self.seed, batch_size = self.batch_size} end
function Stream:load_state_dict(d)
  if type(d) ~= "table" then fail("load_state_dict: argument 1 must be a loader's state, got %s", type(d)) end
  for _, k in ipairs {"epoch", "position", "seed"} do options.whole("load_state_dict", "the loader's " .. k, d[k], 0) end
  if d.batch_size ~= self.batch_size then
    fail("load_state_dict: the state is of batches of %s, this loader makes batches of %d", tostring(d.batch_size),
      self.batch_size)
  end
  self.epoch, self.position, self.seed, self.resuming = d.epoch, d.position, d.seed, true
end

options.methods(Stream, "loader", function(self) return type(self) == "table" and self.dataset ~= nil end)
return new
