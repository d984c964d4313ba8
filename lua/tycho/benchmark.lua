-- tycho.utils.benchmark: how long a piece of a program takes, measured as torch.utils.benchmark does.
--
-- Idea: the piece runs so many times in a row that the cost of the clock and the loop is negligible. Several rows are timed, and the median
-- is reported.
-- Invariant: GPUs are waited for before the clock is read, once for each row.
local core = require "tycho.core"
local options = require "tycho.options"
local callable = require("tycho.modes").callable
local fail = options.fail
local benchmark = {}

local Measurement = {}
Measurement.__index = Measurement

local function quantile(sorted, q)
  local at = 1 + (#sorted - 1) * q
  local low = math.floor(at)
  return sorted[low] + (sorted[math.min(low + 1, #sorted)] - sorted[low]) * (at - low)
end
local function measured(timer, times, number)
  local sorted, sum = {unpack(times)}, 0
  table.sort(sorted)
  for _, t in ipairs(times) do sum = sum + t end
  return setmetatable({times = times, number_per_run = number, median = quantile(sorted, 0.5), mean = sum / #times,
    iqr = quantile(sorted, 0.75) - quantile(sorted, 0.25), label = timer.label or nil, num_threads = timer.num_threads}, Measurement)
end
local UNITS = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}
local function shown(seconds)
  for _, u in ipairs(UNITS) do if seconds >= u[1] or u[2] == "ns" then return ("%.2f %s"):format(seconds / u[1], u[2]) end end
end
function Measurement:__tostring()
  return ("%s%s (median of %d x %d calls, IQR %s, %d thread%s)"):format(self.label and self.label .. ": " or "", shown(self.median),
    #self.times, self.number_per_run, shown(self.iqr), self.num_threads, self.num_threads == 1 and "" or "s")
end

local Timer = {}
Timer.__index = Timer

local function row(self, n)                              -- seconds of n calls
  local stmt, wait = self.stmt, core.gpu.is_available() and core.gpu.synchronize
  if wait then wait() end
  local begin = core.now()
  for _ = 1, n do stmt() end
  if wait then wait() end
  return core.now() - begin
end
local function under(self, fn)
  local threads = core.get_num_threads()
  core.set_num_threads(self.num_threads)
  return options.finally(function() core.set_num_threads(threads) end, function()
    if self.setup then self.setup() end
    self.stmt()                                          -- runs what happens only at first use
    return fn()
  end)
end

-- timeit(number=1000000): times that many calls in a row: a measurement {median=, mean=, iqr=, times=, number_per_run=}, in seconds per
-- call, that prints as text.
function Timer:timeit(number)
  number = options.whole("timeit", "number", number or 1000000, 1)
  return under(self, function() return measured(self, {row(self, number) / number}, number) end)
end
-- blocked_autorange({min_run_time=0.2}): times rows of calls, each row long enough to be measured well, for min_run_time seconds in total;
-- gives a measurement as timeit's.
function Timer:blocked_autorange(o)
  local least = options.fill("blocked_autorange", o, {min_run_time = 0.2}).min_run_time
  options.number("blocked_autorange", "min_run_time", least, 1e-6)
  return under(self, function()
    local number, took = 1, row(self, 1)
    while took < math.min(1e-3, least / 10) do
      number = number * math.max(2, math.min(10, math.ceil(1.2e-3 / math.max(took, 1e-7))))
      took = row(self, number)
    end
    local times, sum = {}, 0
    while sum < least or #times < 3 do
      took = row(self, number)
      times[#times + 1], sum = took / number, sum + took
    end
    return measured(self, times, number)
  end)
end

-- Timer(fn, {setup=, num_threads=1, label=}): times calls of fn, without arguments; setup is called first. Waits for GPUs.
function benchmark.Timer(stmt, o)
  if type(stmt) == "table" and not callable(stmt) then stmt, o = stmt.stmt, stmt end
  if not callable(stmt) then fail("Timer: argument 1 (stmt) must be a function, got %s", options.shown(stmt)) end
  o = options.fill("Timer", o, {stmt = false, setup = false, num_threads = 1, label = false})
  if o.setup and not callable(o.setup) then fail("Timer: option 'setup' must be a function, got %s", options.shown(o.setup)) end
  options.whole("Timer", "num_threads", o.num_threads, 1)
  return setmetatable({stmt = stmt, setup = o.setup or nil, num_threads = o.num_threads, label = o.label or nil}, Timer)
end

return options.told(benchmark, "utils.benchmark")
