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
    iqr = quantile(sorted, 0.75) - quantile(sorted, 0.25), num_threads = timer.num_threads, label = timer.label,
    sub_label = timer.sub_label, description = timer.description, env = timer.env}, Measurement)
end
local UNITS = {{1, "s", "seconds"}, {1e-3, "ms", "milliseconds"}, {1e-6, "us", "microseconds"}, {1e-9, "ns", "nanoseconds"}}
local function unit_of(seconds)
  for _, u in ipairs(UNITS) do if seconds >= u[1] or u[2] == "ns" then return u end end
end
local function shown(seconds)
  local u = unit_of(seconds)
  return ("%.2f %s"):format(seconds / u[1], u[2])
end
function Measurement:__tostring()
  return ("%s%s (median of %d x %d calls, IQR %s, %d thread%s)"):format(self.label and self.label .. ": " or "", shown(self.median),
    #self.times, self.number_per_run, shown(self.iqr), self.num_threads, self.num_threads == 1 and "" or "s")
end

local Timer = {}
Timer.__index = Timer

local function row(self, n)                              -- seconds of n calls
  local stmt, wait = self.stmt, core.gpu.opened() and core.gpu.synchronize
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
  number = options.named("timeit", "number", number)
  number = options.whole("timeit", "number", number or 1000000, 1)
  return under(self, function() return measured(self, {row(self, number) / number}, number) end)
end
-- blocked_autorange({min_run_time=0.2}): times rows of calls, each row long enough to be measured well, for min_run_time seconds in total;
-- gives a measurement as timeit's.
function Timer:blocked_autorange(o)
  local least = options.fill("blocked_autorange", o, {min_run_time = 0.2}).min_run_time
  if not (least >= 1e-6 and least < math.huge) then fail("blocked_autorange: min_run_time must be seconds from 1e-6, got %g", least) end
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

-- Timer(stmt, {setup=, num_threads=1, label=, sub_label=, description=, env=}): times calls of the function stmt, without arguments;
-- setup is called first. Waits for GPUs. The texts say where Compare puts what it measures: label names a table, sub_label a row,
-- description a column.
function benchmark.Timer(stmt, o)
  if type(stmt) == "table" and not callable(stmt) then stmt, o = stmt.stmt, stmt end
  if not callable(stmt) then fail("Timer: argument 1 (stmt) must be a function, got %s", options.shown(stmt)) end
  o = options.fill("Timer", o, {stmt = options.none, setup = options.none, num_threads = 1, label = options.none,
    sub_label = options.none, description = options.none, env = options.none})
  if o.setup and not callable(o.setup) then fail("Timer: option 'setup' must be a function, got %s", options.shown(o.setup)) end
  options.whole("Timer", "num_threads", o.num_threads, 1)
  for _, name in ipairs {"label", "sub_label", "description", "env"} do
    if o[name] and type(o[name]) ~= "string" then fail("Timer: %s must be a string, got %s", name, options.shown(o[name])) end
  end
  return setmetatable({stmt = stmt, setup = o.setup or nil, num_threads = o.num_threads, label = o.label or nil,
    sub_label = o.sub_label or nil, description = o.description or nil, env = o.env or nil}, Timer)
end

local Compare = {}
Compare.__index = Compare
-- Adds the measurements in a list.
function Compare:extend_results(results)
  options.expect("extend_results", 1, results, type(results) == "table", "a list of measurements")
  for i, m in ipairs(results) do
    if getmetatable(m) ~= Measurement then fail("Compare: result %d must be a measurement, got %s", i, options.shown(m)) end
    self.results[#self.results + 1] = m
  end
end
-- Shows times with only the digits that the spread of the measurements bears out.
function Compare:trim_significant_figures() self.trims = true end

-- The list's item of that key, made where there is none.
local function item(list, key, make)
  if not list[key] then
    list[key] = make()
    list[#list + 1] = list[key]
  end
  return list[key]
end
-- One label's table: a column for each description, and a line for each number of threads, environment and sub_label.
local function table_of(label, results, trims)
  local columns, lines, least, wide = {}, {}, math.huge, 0
  for k, m in ipairs(results) do
    local name = (m.env and ("(%s) "):format(tostring(m.env)) or "") .. tostring(m.sub_label or "call")
    local column = item(columns, " " .. tostring(m.description or "time"), function() return {name = tostring(m.description or "time")} end)
    local line = item(lines, m.num_threads .. " " .. name, function() return {threads = m.num_threads, name = name, first = k} end)
    line[column], least, wide = m, math.min(least, m.median), math.max(wide, #name + 6)
  end
  table.sort(lines, function(a, b)
    if a.threads ~= b.threads then return a.threads < b.threads end
    return a.first < b.first
  end)
  local unit = unit_of(least)
  local function cell(m)
    if not m then return "" end
    local digits = 1
    if trims and m.iqr > 0 then digits = math.max(0, math.min(3, -math.floor(math.log10(m.iqr / unit[1])))) end
    return ("%%.%df"):format(digits):format(m.median / unit[1])
  end
  for _, column in ipairs(columns) do
    column.width = #column.name
    for _, line in ipairs(lines) do column.width = math.max(column.width, #cell(line[column])) end
  end
  local function text(name, of)
    local cells = {name .. (" "):rep(wide - #name)}
    for i, column in ipairs(columns) do cells[i + 1] = (" "):rep(column.width - #of(column)) .. of(column) end
    return (table.concat(cells, "  |  "):gsub("%s+$", ""))
  end
  local head = text("", function(column) return column.name end)
  local dashes = math.max(2, #head - #label - 4)
  local out = {("[%s %s %s]"):format(("-"):rep(math.floor(dashes / 2)), label, ("-"):rep(math.ceil(dashes / 2))), head}
  local threads
  for _, line in ipairs(lines) do
    if line.threads ~= threads then
      threads = line.threads
      local title = ("%d thread%s: "):format(threads, threads == 1 and "" or "s")
      out[#out + 1] = title .. ("-"):rep(math.max(0, #head - #title))
    end
    out[#out + 1] = text("      " .. line.name, function(column) return cell(line[column]) end)
  end
  out[#out + 1] = ("\nTimes are in %s (%s)."):format(unit[3], unit[2])
  return table.concat(out, "\n")
end
function Compare:__tostring()
  local labels, out = {}, {}
  for _, m in ipairs(self.results) do
    local label = tostring(m.label or "call")
    table.insert(item(labels, " " .. label, function() return {label = label} end), m)
  end
  for i, of in ipairs(labels) do out[i] = table_of(of.label, of, self.trims) end
  return table.concat(out, "\n\n")
end
-- Prints the tables.
function Compare:print() print(tostring(self)) end
-- Compare(results): tables of measurements side by side, by the label, sub_label, description and number of threads of their timers;
-- print() prints them, tostring gives them as text.
function benchmark.Compare(results)
  local self = setmetatable({results = {}, trims = false}, Compare)
  self:extend_results(results)
  return self
end

return options.told(benchmark, "utils.benchmark")
