-- tycho.utils: progress bars, interruption, curves and tensors as pictures.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local utils = {}

---- progress ----
local function clock(s)
  if s ~= s or s == math.huge then return "--:--" end
  s = math.floor(s + 0.5)
  if s >= 3600 then return ("%d:%02d:%02d"):format(math.floor(s / 3600), math.floor(s / 60) % 60, s % 60) end
  return ("%02d:%02d"):format(math.floor(s / 60), s % 60)
end

local Bar = {}
Bar.__index = Bar

-- set{loss = 0.3}: values for the line to show.
function Bar:set(values)
  if type(values) ~= "table" then fail("progress: set takes a table, such as {loss = 0.3}, got %s", options.shown(values)) end
  for k, v in pairs(values) do
    if self.values[k] == nil then self.names[#self.names + 1] = k end
    self.values[k] = core.is_tensor(v) and core.keep(v:detach()) or v      -- read when it is shown
  end
end

function Bar:line(done)
  local t = core.now() - self.start
  local per = (self.done - self.first) / math.max(t, 1e-9)
  local parts = {}
  if self.total then
    local share, width = self.done / math.max(self.total, 1), self.terminal and 20 or 0
    local full = math.floor(share * width)
    parts[1] = ("%3d%%"):format(math.floor(share * 100))
    if width > 0 then parts[1] = parts[1] .. " [" .. ("="):rep(full) .. (" "):rep(width - full) .. "]" end
    parts[1] = parts[1] .. (" %d/%d"):format(self.done, self.total)
  else parts[1] = tostring(self.done) end
  for _, k in ipairs(self.names) do
    local v = self.values[k]
    if core.is_tensor(v) then v = core.methods.numel(v) == 1 and core.methods.item(v) or "of shape " .. tostring(v.shape) end
    parts[#parts + 1] = type(v) == "number" and ("%s %.4g"):format(k, v) or ("%s %s"):format(k, tostring(v))
  end
  parts[#parts + 1] = ("%.0f %s/s"):format(per * self.count, self.unit)
  parts[#parts + 1] = done and "took " .. clock(t) or "left " .. clock(self.total and (self.total - self.done) / per or 0 / 0)
  return (self.desc and self.desc .. " " or "") .. table.concat(parts, "  ")
end

function Bar:show(done)
  local text = self:line(done)
  if self.terminal then
    io.stderr:write("\r" .. text:sub(1, self.width - 1) .. (" "):rep(math.max(0, (self.shown or 0) - #text)) ..
        (done and "\n" or ""))
  else io.stderr:write(text .. "\n") end
  io.stderr:flush()
  self.shown = #text
end

function Bar:__call()
  local now = core.now()
  if self.pending then self.done = self.done + 1 end
  if self.done > self.first and now - self.last >= (self.terminal and 0.1 or 5) then self.last = now; self:show(false) end
  return (function(first, ...)
    self.pending = first ~= nil
    if first == nil and not self.ended then self.ended = true; self:show(true) end
    return first, ...
  end)(self.next())
end
-- Ends the line, for a loop that is left by break.
function Bar:close()
  if not self.ended then self.ended = true; self:show(true) end
end

-- The three values f, state, control of ipairs and the like as one function
local function alone(f, state, control)
  local function step(k, ...)
    control = k
    return k, ...
  end
  return function() return step(f(state, control)) end
end

-- progress(loader, {desc=, total=, count=, unit=, first=}): for x, y in it do: draws a line with the rate meanwhile, redrawn on a terminal,
-- elsewhere a new one every few seconds. Also for a list, for i, x; an iterator function; pairs(t), which can't be followed by options.
-- total: the number of rounds; count: items in a round, for the rate; first: rounds done before. The result has set() and close().
function utils.progress(iter, ...)
  local o, list = ..., nil
  if type(iter) == "function" and select("#", ...) >= 2 then iter, o = alone(iter, ...), select(3, ...)
  elseif iter == next or iter == (ipairs {}) then
    fail "progress: with options, argument 1 must be the list itself: progress(list, {...}); Lua passes only ipairs(list)'s first value"
  elseif type(iter) == "table" and getmetatable(iter) == nil and not iter.iter then
    iter, list = alone(ipairs(iter)), iter
  end
  o = options.fill("progress", o,
    {desc = options.none, total = options.none, count = options.none, unit = options.none, first = options.none})
  local loader = type(iter) == "table" and iter.iter and iter
  local terminal, width = core.terminal()
  for _, name in ipairs {"total", "count", "first"} do if o[name] then options.number("progress", name, o[name], 0) end end
  local total = o.total or (list and #list)
  if not total and loader and loader.size then
    local sized, n = pcall(loader.size, loader)
    total = sized and n                    -- a stream has no size
  end
  local inner = loader and loader.loader or loader                     -- a Prefetcher's
  local first = o.first or (inner and inner.resuming and inner.position) or 0
  if type(iter) ~= "function" and not loader then
    fail("progress: argument 1 must be a list, an iterator or a loader, got %s", type(iter))
  end
  return setmetatable({next = loader and loader:iter() or iter, total = total or nil, desc = o.desc or nil,
    count = o.count or (loader and loader.batch_size) or 1, unit = o.unit or (loader and "items") or "it",
    terminal = terminal, width = width, start = core.now(), last = core.now(), first = first, done = first,
    names = {}, values = {}}, Bar)
end

---- interruption ----
-- From now on Ctrl-C only makes interrupted() true, for a loop that ends between two steps; pressed twice it ends the program at once.
-- catch_interrupt(false): restores the usual behaviour.
function utils.catch_interrupt(on) core.catch_interrupt(on ~= false) end
-- interrupted(): whether Ctrl-C was pressed since catch_interrupt().
utils.interrupted = core.interrupted

local recompute = require "tycho.recompute"
utils.checkpoint, utils.checkpoint_sequential = recompute.checkpoint, recompute.checkpoint_sequential
utils.benchmark = require "tycho.benchmark"
utils.save_curve = require("tycho.plot").save_curve
utils.tensorboard = require "tycho.tensorboard"
utils.make_grid, utils.save_image = require("tycho.pictures").make_grid, require("tycho.pictures").save_image
return options.told(utils, "utils", nil, {data = "datasets and loaders are in tycho.data", tqdm = "use progress(loader)"})
