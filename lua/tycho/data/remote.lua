-- Datasets made in worker processes: Dataset("module", {plain data}), the workers, and the messages between them and the parent.
--
-- Idea: a worker is a LuaJIT process (src/io/process.c). It requires the module, calls the function that the module returns with the data,
-- and answers each request for a batch with the collated fields. Before each item, in workers and in the parent alike, Tycho's generator
-- and math.random get a seed of (loader's seed, epoch, place, item), so that items are the same whoever makes them. A dataset with iter()
-- is iterated in full by each worker, which makes the batches that it is asked for; if the dataset asks get_worker_info which worker it is
-- in, everything that it gives there is that worker's share.
local core = require "tycho.core"
local shown = require("tycho.options").shown
local fail = require("tycho.options").fail
local ops = core.ops
local samplers = require "tycho.data.samplers"
local collate = require "tycho.data.collate"
local source = require "tycho.data.source"
local items_of = require("tycho.data.stream").items_of
local tree = require "tycho.tree"
local remote = {}

---- the description of a dataset ----
local function plain(v, path, seen)
  local t = type(v)
  if core.is_tensor(v) or t == "number" or t == "string" or t == "boolean" then return end
  if t == "function" then
    local info = debug.getinfo(v, "S")
    error(("Dataset: argument 2 (data): '%s' is a function (made at %s:%d); a worker is another process and can't \z
      have it: make it in the module"):format(path, info.short_src, info.linedefined), 0)
  end
  if t ~= "table" then
    error(("Dataset: argument 2 (data): '%s' is a %s; plain data goes to workers: tables, tensors, numbers, strings \z
      and booleans"):format(path, t), 0)
  end
  if getmetatable(v) and not getmetatable(v).__eq then
    error(("Dataset: argument 2 (data): '%s' is an object; plain data goes to workers, and the module makes \z
      the rest"):format(path), 0)
  end
  if seen[v] then error(("Dataset: argument 2 (data): '%s' contains itself"):format(path), 0) end
  seen[v] = true
  for k, x in pairs(v) do
    if type(k) ~= "string" and type(k) ~= "number" and type(k) ~= "boolean" then
      error(("Dataset: argument 2 (data): '%s' has %s as a key; keys are strings, numbers and booleans"):format(path,
        shown(k)), 0)
    end
    plain(x, path == "data" and tostring(k) or path .. "." .. tostring(k), seen)
  end
  seen[v] = nil
end

local function build(module, data)
  local found, make = pcall(require, module)
  if not found then error("Dataset: " .. tostring(make), 0) end
  if type(make) ~= "function" then
    error(("Dataset: module '%s' must return a function from the data to a dataset, it returned a %s"):format(module,
      type(make)), 0)
  end
  local dataset = make(tree.map(data, function(x) return x end))         -- a copy, which the module may turn into an object
  local indexed = type(dataset) == "table" and type(dataset.size) == "function" and type(dataset.get) == "function"
  if not indexed and not source.streams(dataset) then
    error(("Dataset: the dataset that module '%s' made must have size() and get(i), or iter()"):format(module), 0)
  end
  return dataset
end

-- What a worker needs to make a dataset: a module and its data, or for a ConcatDataset a list of parts. nil: workers can't make it.
function remote.recipe(dataset)
  if remote.is(dataset) then return {module = dataset.module, data = dataset.data} end
  local parts = type(dataset) == "table" and source.concatenated[dataset]
  if not parts or rawget(dataset, "get") ~= nil then return nil end
  local out = {parts = {}}
  for i, part in ipairs(parts) do
    local base, at = source.base(part)
    local one = remote.recipe(base)
    if not one then return nil end
    out.parts[i] = {of = one, at = at}
  end
  return out
end
local function from_recipe(recipe)
  if recipe.module then return build(recipe.module, recipe.data) end
  local data, list = require "tycho.data", {}
  for i, part in ipairs(recipe.parts) do
    list[i] = from_recipe(part.of)
    if part.at then list[i] = data.Subset(list[i], part.at) end
  end
  return data.ConcatDataset(list)
end

local Dataset = {}
Dataset.__index = function(self, k)
  if Dataset[k] ~= nil then return Dataset[k] end
  if k == "dataset_here" then
    local made = build(rawget(self, "module"), rawget(self, "data"))
    rawset(self, k, made)
    return made
  end
  local v = self.dataset_here[k]              -- such as its classes
  if type(v) == "function" then return nil end
  return v
end
local function indexed(self, name)
  local here = self.dataset_here
  if source.streams(here) then
    fail("%s: module '%s' made a dataset with iter(), which has neither size() nor get(i)", name, self.module)
  end
  return here
end
-- The number of items. The dataset is made in this process too for that.
function Dataset:size() return indexed(self, "size"):size() end
-- Item i, made in this process.
function Dataset:get(i) return indexed(self, "get"):get(i) end

-- Dataset(module, data): a dataset that worker processes make for themselves: require(module) returns a function, which is called with
-- data, a plain table of numbers, strings, booleans, tensors and tables, and returns an object with size() and get(i), or only with iter().
function remote.Dataset(module, data)
  if type(module) == "function" then
    local info = debug.getinfo(module, "S")
    fail("Dataset: argument 1 (module) must be a module's name, got a function (made at %s:%d): put it into a module \z
      that returns it", info.short_src, info.linedefined)
  end
  if type(module) ~= "string" then fail("Dataset: argument 1 (module) must be a module's name, got " .. type(module)) end
  if data ~= nil and (type(data) ~= "table" or core.is_tensor(data)) then
    fail("Dataset: argument 2 (data) must be a table, got " .. shown(data))
  end
  local ok, e = pcall(plain, data or {}, "data", {})
  if not ok then fail(e) end
  local self = setmetatable({module = module, data = data or {}}, Dataset)
  source.remade[self] = true
  return self
end
function remote.is(dataset) return type(dataset) == "table" and getmetatable(dataset) == Dataset end

-- The items of a batch, each made under its own seed. first: the number of items before the batch in the epoch. note(i): called before item
-- i.
local function gather(dataset, indices, seed, epoch, first, note)
  local items = {}
  for k, i in ipairs(indices) do
    local own = core.mix_seeds(core.mix_seeds(core.mix_seeds(seed, epoch), first + k - 1), i)
    if note then note(i) end
    samplers.reseed(own)
    local got = {pcall(dataset.get, dataset, i)}
    if not got[1] then
      local e = got[2]
      local text = type(e) == "string" or type(e) == "table" and getmetatable(e) and getmetatable(e).__tostring
      error(text and ("item %d: %s"):format(i, tostring(e)) or e, 0)         -- an error object of the program's is passed on
    end
    if table.maxn(got) < 2 then error(("item %d: the dataset's get returned nothing"):format(i), 0) end
    items[k] = {unpack(got, 2, table.maxn(got))}
  end
  return items
end
-- Collates items by the dataset's own collate, if it has one.
local function whole(dataset, items, device, indices)
  if type(dataset.collate) == "function" then return dataset:collate(items) end
  return collate(items, device, indices, source.dtypes(dataset))
end
-- A batch made in this process, for any dataset in Lua; the generators' states are restored. make: collates, if given.
function remote.batch(dataset, indices, seed, epoch, first, make)
  if remote.is(dataset) then dataset = dataset.dataset_here end
  local items = samplers.seeded(0, gather, dataset, indices, seed, epoch, first)
  if make then return make(items) end
  return whole(dataset, items, nil, indices)
end

---- messages ----
local function send(process, tag, value, wait)
  local text, tensors = require("tycho.saving").pack(value)
  return core.message_send(process, tag, text, tensors, wait)
end
local function open(text, memory) return require("tycho.saving").unpack(text, memory) end

---- the worker's side: luajit -e 'require("tycho.data.remote").work()' ----
local info                               -- the result of get_worker_info
local stream                             -- the state of a dataset with iter(): {run=, next=, asked=, shared=, passed=, held=, over=}

-- get_worker_info(): in a worker process {id, num_workers}, id from 1, else nil. A dataset with iter() that calls this before its first
-- item decides itself which share it gives in each worker; otherwise every worker goes over all items, and makes some of the batches.
function remote.get_worker_info()
  if not info then return nil end
  if stream and stream.shared then
    fail("get_worker_info: call it before iter() gives its first item; after that the loader divides the batches among the workers")
  end
  if stream and not stream.asked then    -- from here on each worker draws its own numbers
    stream.asked = true
    samplers.reseed(core.mix_seeds(ops.randint(0, 2 ^ 52, {1}, {device = "cpu"}):item(), info.id))
  end
  return {id = info.id, num_workers = info.num_workers}
end

local function step(process)
  core.process_note(process, stream.passed + 1)
  local item = stream.held
  if item == nil and not stream.over then item = stream.next() end
  stream.held, stream.over, stream.passed = nil, item == nil, stream.passed + 1
  return item
end
-- The items of the requested batch of a dataset with iter(); none after the last.
local function next_items(dataset, request, process)
  if not stream or stream.run ~= request.run then
    stream = {run = request.run, passed = 0}
    stream.next = items_of(dataset, request.seed, request.epoch, function() return stream.asked and info.id or 0 end)
    stream.held = step(process)          -- by now it has asked, if it makes shares
    stream.passed, stream.shared = 0, not stream.asked
  end
  if stream.shared then
    while not stream.over and stream.passed < (request.batch - 1) * request.size do step(process) end
  end
  local items = {}
  while not stream.over and #items < request.size do items[#items + 1] = step(process) end
  return request.whole and #items < request.size and {} or items
end

function remote.work()
  require "tycho"                          -- the whole library, whatever the dataset's module requires
  local process = core.process_enter()
  local dataset
  core.set_num_threads(1)
  io.stdout:setvbuf "line"                 -- a dataset's prints appear at once
  while true do
    local tag, text, memory = core.message_receive(process, -1)
    if tag then
      local collating
      local ok, answer = pcall(function()
        local request = open(text, memory)
        if tag == 0 then
          info = request.info
          dataset = from_recipe(request.recipe)
          return {}
        end
        local indices, items
        if request.run then
          items = next_items(dataset, request, process)
          if request.dropped or #items == 0 then return {empty = #items == 0, shares = stream.asked} end
        else
          indices = request.indices:totable()
          items = gather(dataset, indices, request.seed, request.epoch, request.first, function(i) core.process_note(process, i) end)
        end
        collating = #items > 1             -- an error from here on belongs to no single item
        local shares = request.run and stream.asked
        if request.apart then return {items = items, shares = shares} end
        local fields
        if request.run then fields = {collate(items, "cpu")}
        else
          fields = {whole(dataset, items, "cpu", indices)}
          core.process_note(process, indices[#indices])
        end
        return {n = table.maxn(fields), fields = fields, shares = shares}
      end)
      if ok then ok, answer = pcall(send, process, tag, answer, true) end
      if not ok then
        send(process, tag,
          {error = type(answer) == "string" and answer or "an error that is a " .. type(answer),
            item = not collating and core.process_note(process) or nil}, true)
      end
    elseif text == "closed" then return
    end
  end
end

---- the parent's side ----
-- The LuaJIT to run: TYCHO_LUAJIT, or the one that runs this program, or the one on PATH.
local function program()
  local named = os.getenv "TYCHO_LUAJIT"
  if named and named ~= "" then return named end
  local own = core.own_program() or ""
  if own:match "/luajit[^/]* %(deleted%)$" then return "/proc/self/exe" end      -- an upgrade has replaced it
  return own:match "/luajit[^/]*$" and own or "luajit"
end

local Pool = {}
Pool.__index = Pool

local START = 60                -- seconds that a worker may take to make its dataset, at least

-- Starts workers for a recipe. timeout: seconds that one item may take.
function remote.start(recipe, n, timeout)
  -- last: the number of the batch asked for last
  local self = setmetatable({timeout = timeout, workers = {}, owner = {}, done = {}, last = 0}, Pool)
  local env = {"LUA_PATH=" .. package.path, "LUA_CPATH=" .. package.cpath, "OMP_NUM_THREADS=1", "TYCHO_WORKER=1"}
  local ok, e = pcall(function()
    for k = 1, n do
      local w = {process = core.process_start({program(), "-e", "require('tycho.data.remote').work()"}, env),
        number = k, waiting = 1, said = -1, waited = 0}
      self.workers[k] = w
      send(w.process, 0, {recipe = recipe, info = {id = k, num_workers = n}}, true)
    end
  end)
  if not ok then
    self:stop()
    error(e, 0)
  end
  return self
end

function Pool:stop()
  for _, w in ipairs(self.workers) do core.process_end(w.process) end
  self.workers = {}
end

local function broken(self, w, text)
  self:stop()
  error(("DataLoader: worker %d%s"):format(w.number, text), 0)
end
local function at(w)
  local item = core.process_note(w.process)
  return item > 0 and (", item %d"):format(item) or " at its start"
end

-- Requests batch number `tag` (from 1, in order). request: the indices of its items, their seeds, and whether to leave them uncollated.
function Pool:submit(tag, request)
  local w = self.workers[(tag - 1) % #self.workers + 1]
  self.owner[tag], self.last = w, tag
  if w.waiting == 0 then w.waited = 0 end
  w.waiting = w.waiting + 1
  local ok, went = pcall(send, w.process, tag, request, false)
  while ok and not went do                       -- its pipe is full, perhaps because it waits until we read
    self:look(w, 0.1)
    ok, went = pcall(send, w.process, tag, request, false)
  end
  if not ok then self:look(w, 0); broken(self, w, at(w) .. ": " .. tostring(went)) end
end

-- Receives what w has sent, within some seconds; raises if w failed, is gone, or has spent too long on one item. waited: the seconds spent
-- so far; one call adds at most `seconds`, so time in which this program itself was stopped hardly counts.
function Pool:look(w, seconds)
  local before = core.now()
  local tag, text, memory = core.message_receive(w.process, seconds)
  if tag then
    w.waiting, w.waited = w.waiting - 1, 0
    local answer = open(text, memory)
    if answer.error then
      local item, rest = answer.error:match "^item (%d+): (.*)$"
      item = item or answer.item
      broken(self, w, (not item and "" or item == 0 and " at its start" or ", item " .. item) .. ": " .. (rest or answer.error))
    end
    if self.owner[tag] then self.done[tag] = answer end
    return true
  end
  if text == "closed" or core.process_gone(w.process) then broken(self, w, at(w) .. ": the process ended (killed, or out of memory?)") end
  local _, said = core.process_note(w.process)
  w.waited = w.waited + math.min(core.now() - before, seconds)
  if said ~= w.said then w.said, w.waited = said, 0 end
  local most = core.process_note(w.process) > 0 and self.timeout or math.max(START, self.timeout)
  if w.waited >= most then
    broken(self, w,
      (at(w) .. ": no answer for %g seconds (the DataLoader's timeout= limits how long an item may take)"):format(most))
  end
end

-- The answer for batch `tag`, or nil if it doesn't come within a tenth of a second.
function Pool:take(tag)
  local w = self.owner[tag]
  if not self.done[tag] then self:look(w, 0.1) end
  local answer = self.done[tag]
  if not answer then return nil end
  self.done[tag], self.owner[tag] = nil, nil
  return answer
end

-- Forgets requests whose answers haven't been taken.
function Pool:forget() self.owner, self.done = {}, {} end

return remote
