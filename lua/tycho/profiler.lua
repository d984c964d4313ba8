-- tycho.profiler: where a program's time goes. profile(fn) calls fn and reports for each op that ran, also in gradient rules and compiled
-- steps, its time on the CPU and between two events of the GPU's stream; record_function(name, fn) names a part of the program.
local core = require "tycho.core"
local options = require "tycho.options"
local callable = require("tycho.modes").callable
local fail = options.fail
local profiler = {}

-- A row's figures; table() sorts by any of them.
local FIGURES = {"count", "cpu_time_total", "self_cpu_time_total", "cuda_time_total", "self_cuda_time_total",
  "cpu_time", "cuda_time", "memory", "flops"}

-- PyTorch's names for them.
local SAME = {device_time_total = "cuda_time_total", self_device_time_total = "self_cuda_time_total", device_time = "cuda_time"}
for _, of in ipairs {"cpu", "cuda", "device"} do
  SAME[of .. "_memory_usage"], SAME["self_" .. of .. "_memory_usage"] = "memory", "memory"
end

local Profile = {}
Profile.__index = Profile

-- Each entry's own time: its time less that of the entries within it.
local function own_times(list)
  local open = {}
  for _, e in ipairs(list) do
    e.self_time, e.self_gpu_time = e.time, e.gpu_time
    open[e.depth] = e
    local outer = open[e.depth - 1]
    if outer then
      outer.self_time = outer.self_time - e.time
      if outer.self_gpu_time and e.gpu_time then outer.self_gpu_time = outer.self_gpu_time - e.gpu_time end
    end
  end
  local within = {}                                      -- a range's GPU time is that of the ops in it
  for i = #list, 1, -1 do
    local e = list[i]
    e.gpu_total = e.gpu_time or within[e.depth + 1] or 0
    within[e.depth + 1] = nil
    within[e.depth] = (within[e.depth] or 0) + e.gpu_total
  end
  return list
end

local GROUPS = {group_by_input_shape = false, group_by_stack_n = 0}
-- key_averages({group_by_input_shape=false, group_by_stack_n=0}): what ran, by name (and shapes; and, with group_by_stack_n of 1 or more,
-- the line of the program), in the order of first calls: a list of {key=, input_shapes=, line=, count=, cpu_time_total=,
-- self_cpu_time_total=, cuda_time_total=, self_cuda_time_total=, cpu_time=, cuda_time=, memory=, flops=}; times in us, those without _total
-- are means per call; memory: bytes of an op's results, or for a range the growth from its begin to its end; flops: the products and sums
-- of matrix products, convolutions and attention. GPU times lie between events around an op: for a short op on an idle device they are
-- mostly launch latency.
function Profile:key_averages(o)
  if type(o) == "boolean" then o = {group_by_input_shape = o} end        -- PyTorch's place
  o = options.fill("key_averages", o, GROUPS)
  options.whole("key_averages", "group_by_stack_n", o.group_by_stack_n, 0)
  if o.group_by_stack_n > 0 and not self._lines then
    fail "key_averages: group_by_stack_n needs a profile taken with {with_stack = true}"
  end
  local list, by = {}, {}
  for _, e in ipairs(self.events) do
    local shapes, line = o.group_by_input_shape and e.shapes or nil, o.group_by_stack_n > 0 and e.line or nil
    local id = e.name .. "\0" .. (shapes or "") .. "\0" .. (line or "")
    local row = by[id]
    if not row then
      row = {key = e.name, input_shapes = shapes, line = line}
      for _, name in ipairs(FIGURES) do row[name] = 0 end
      by[id], list[#list + 1] = row, row
    end
    row.count = row.count + 1
    row.cpu_time_total, row.self_cpu_time_total = row.cpu_time_total + e.time, row.self_cpu_time_total + e.self_time
    row.cuda_time_total, row.self_cuda_time_total = row.cuda_time_total + e.gpu_total,
      row.self_cuda_time_total + (e.self_gpu_time or 0)
    row.memory, row.flops = row.memory + e.bytes, row.flops + e.flops
  end
  for _, row in ipairs(list) do row.cpu_time, row.cuda_time = row.cpu_time_total / row.count, row.cuda_time_total / row.count end
  return setmetatable(list, {__index = {table = function(_, more)
    local all = {}
    for k in pairs(GROUPS) do all[k] = o[k] end
    for k, v in pairs(more or {}) do all[k] = v end
    return self:table(all)
  end}})
end

local function size(bytes)
  local n = math.abs(bytes)
  return n < 2^10 and ("%d B"):format(bytes) or n < 2^20 and ("%.2f KiB"):format(bytes / 2^10) or ("%.2f MiB"):format(bytes / 2^20)
end
local function operations(n)
  if n >= 1e9 then return ("%.3f GFLOP"):format(n / 1e9) elseif n >= 1e6 then return ("%.3f MFLOP"):format(n / 1e6) end
  return ("%d FLOP"):format(n)
end
local function duration(us)
  if us >= 1e6 then return ("%.3fs"):format(us / 1e6) elseif us >= 1e3 then return ("%.3fms"):format(us / 1e3) end
  return ("%.3fus"):format(us)
end

-- table({sort_by="self_cpu_time_total", row_limit=20, group_by_input_shape=false, group_by_stack_n=0}): the averages as text, the largest
-- first.
function Profile:table(o)
  if type(o) == "string" then o = {sort_by = o} end                      -- PyTorch's place
  o = options.fill("table", o, {sort_by = "self_cpu_time_total", row_limit = 20, group_by_input_shape = false, group_by_stack_n = 0})
  local known = false
  o.sort_by = SAME[o.sort_by] or o.sort_by
  for _, name in ipairs(FIGURES) do known = known or name == o.sort_by end
  if not known then
    local near = options.suggest(o.sort_by, FIGURES)
    fail("table: sort_by can't be %s%s", options.shown(o.sort_by), near ~= "" and near or "; it is one of " .. table.concat(FIGURES, ", "))
  end
  local groups = {}
  for k in pairs(GROUPS) do groups[k] = o[k] end
  local list, cpu, gpu, flops = self:key_averages(groups), 0, 0, 0
  for i, row in ipairs(list) do
    cpu, gpu, flops, row.place = cpu + row.self_cpu_time_total, gpu + row.self_cuda_time_total, flops + row.flops, i
  end
  table.sort(list, function(a, b)
    if a[o.sort_by] ~= b[o.sort_by] then return a[o.sort_by] > b[o.sort_by] end
    return a.place < b.place
  end)
  local most = o.row_limit
  if most ~= math.huge then options.whole("table", "row_limit", most, -1) end
  if most == -1 then most = math.huge end                  -- PyTorch's: all
  local head = {"name", "calls", "self CPU", "%", "CPU", "CPU a call"}
  if gpu > 0 then for _, name in ipairs {"self GPU", "%", "GPU", "GPU a call"} do head[#head + 1] = name end end
  local bytes = o.sort_by == "memory"
  local counted = self._flops or o.sort_by == "flops"
  if bytes then head[#head + 1] = "memory" end
  if counted then head[#head + 1] = "FLOP" end
  if o.group_by_input_shape then head[#head + 1] = "shapes" end
  if o.group_by_stack_n > 0 then head[#head + 1] = "line" end
  local rows = {head}
  for i = 1, math.min(#list, most) do
    local r = list[i]
    local row = {r.key, tostring(r.count), duration(r.self_cpu_time_total),
      ("%.1f"):format(100 * r.self_cpu_time_total / math.max(cpu, 1e-9)), duration(r.cpu_time_total), duration(r.cpu_time)}
    if gpu > 0 then
      for _, text in ipairs {duration(r.self_cuda_time_total), ("%.1f"):format(100 * r.self_cuda_time_total / gpu),
          duration(r.cuda_time_total), duration(r.cuda_time)} do
        row[#row + 1] = text
      end
    end
    if bytes then row[#row + 1] = size(r.memory) end
    if counted then row[#row + 1] = r.flops > 0 and operations(r.flops) or "" end
    if o.group_by_input_shape then row[#row + 1] = r.input_shapes or "" end
    if o.group_by_stack_n > 0 then row[#row + 1] = r.line or "" end
    rows[#rows + 1] = row
  end
  local width, lines = {}, {}
  for _, row in ipairs(rows) do for k, text in ipairs(row) do width[k] = math.max(width[k] or 0, #text) end end
  for _, row in ipairs(rows) do
    local cells = {}
    for k, text in ipairs(row) do
      local gap = (" "):rep(width[k] - #text)
      cells[k] = (k == 1 or head[k] == "shapes" or head[k] == "line") and text .. gap or gap .. text
    end
    lines[#lines + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  lines[#lines + 1] = ("total: %s of the CPU%s%s"):format(duration(cpu), gpu > 0 and ", " .. duration(gpu) .. " of GPUs" or "",
    counted and ", " .. operations(flops) or "")
  return table.concat(lines, "\n")
end
function Profile:__tostring() return self:table() end

-- Writes a file for chrome://tracing and Perfetto: the CPU's ops in one row, each GPU's in another.
function Profile:export_chrome_trace(path)
  local list = {}
  local function add(name, row, begin, time, e)
    list[#list + 1] = {name = name, ph = "X", pid = 0, tid = row, ts = begin, dur = time,
      args = {shapes = e.shapes or "", line = e.line, bytes = e.bytes, flops = e.flops}}
  end
  for _, e in ipairs(self.events) do
    add(e.name, "cpu", e.begin, e.time, e)
    if e.gpu then add(e.name, "cuda:" .. e.gpu, e.gpu_begin, e.gpu_time, e) end
  end
  options.file("export_chrome_trace", path, core.file_write, path, core.json_encode {traceEvents = list},
    core.ops.zeros(0, {device = "cpu"}))
end

---- profiles of some steps ----
-- schedule{skip_first=0, wait=0, warmup=0, active=1, repeats=0, skip_first_wait=0}: what each step of a profile does: skip_first steps do
-- nothing; then come rounds of wait steps that do nothing, warmup steps whose record is thrown away, and active steps that are recorded.
-- repeats, or ["repeat"]: the number of rounds (0: without end). skip_first_wait, if not 0: the first round has no wait.
function profiler.schedule(o)
  if type(o) == "table" and o["repeat"] ~= nil then
    local given = o
    if o.repeats ~= nil then fail "schedule: repeats is given twice" end
    o = {}
    for k, v in pairs(given) do o[k == "repeat" and "repeats" or k] = v end
  end
  o = options.fill("schedule", o, {wait = 0, warmup = 0, active = 1, repeats = 0, skip_first = 0, skip_first_wait = 0})
  for name, v in pairs(o) do options.whole("schedule", name, v, name == "active" and 1 or 0) end
  local round = o.wait + o.warmup + o.active
  return function(step)
    step = options.whole("schedule", "argument 1 (step)", step, 0) - o.skip_first
    if step >= 0 and o.skip_first_wait > 0 then step = step + o.wait end
    local place = step % round
    if step < 0 or (o.repeats > 0 and step >= o.repeats * round) or place < o.wait then return "none" end
    return place < o.wait + o.warmup and "warmup" or place < round - 1 and "record" or "save"
  end
end

-- tensorboard_trace_handler(folder, worker_name="step"): for on_trace_ready: writes each trace into the folder, as a file for TensorBoard
-- and Perfetto.
function profiler.tensorboard_trace_handler(folder, ...)
  local o = options.arguments("tensorboard_trace_handler", "worker_name=step", ...)
  if type(folder) ~= "string" then fail("tensorboard_trace_handler: argument 1 must be a string, got %s", options.shown(folder)) end
  return function(p)
    core.make_folder(folder)
    p:export_chrome_trace(("%s/%s%d.%.0f.pt.trace.json"):format(folder, o.worker_name, p.step_num, os.time()))
  end
end

local ACTIONS = {none = true, warmup = true, record = true, save = true}
local function turn(p, action)
  if not ACTIONS[action] then
    fail("profile: the schedule must return 'none', 'warmup', 'record' or 'save', got %s", options.shown(action))
  end
  local before, running, on = p._action, p._action ~= "none", action ~= "none"
  if before == "save" or (before == "record" and not on) then
    p.events, running, p._action = own_times(core.profile_stop(p._record)), false, "none"
    if p._ready then p._ready(p) end
  elseif before == "warmup" and action ~= "warmup" then
    core.profile_stop(p._record)
    running, p._action = false, "none"
  end
  if on and not running then p._record = core.profile_start(p._shapes, p._lines) end
  p._action = action
end
-- Begins the next step.
function Profile:step()
  if not self._running then fail("step: the profile has ended") end
  self.step_num = self.step_num + 1
  turn(self, self._schedule(self.step_num))
end
-- start(): begins to record, for a profile made without a function.
function Profile:start()
  if self._running then fail "start: the profile has begun already" end
  self.step_num = 0
  turn(self, self._schedule(0))
  self._running = true
end
-- stop(): ends what start() began; the profile prints as a table then. Waits for GPUs.
function Profile:stop()
  if not self._running then fail "stop: the profile hasn't begun" end
  self._running = false
  turn(self, "none")
end

-- For PyTorch's option `activities`: all that there are are recorded.
profiler.ProfilerActivity = options.told({CPU = "cpu", CUDA = "cuda"}, "ProfilerActivity")
local OPTIONS = {record_shapes = false, with_stack = false, with_flops = false, schedule = options.none, on_trace_ready = options.none,
  profile_memory = true, activities = options.none}
local function always() return "record" end
local function new_profile(o)
  o = options.fill("profile", o, OPTIONS)
  for _, name in ipairs {"record_shapes", "with_stack", "with_flops"} do
    if type(o[name]) ~= "boolean" then fail("profile: %s must be true or false, got %s", name, options.shown(o[name])) end
  end
  for _, name in ipairs {"schedule", "on_trace_ready"} do
    if o[name] and not callable(o[name]) then fail("profile: %s must be a function, got %s", name, options.shown(o[name])) end
  end
  return setmetatable({events = {}, step_num = 0, _action = "none", _schedule = o.schedule or always, _ready = o.on_trace_ready or nil,
    _shapes = o.record_shapes, _lines = o.with_stack, _flops = o.with_flops}, Profile), o
end

-- profile({record_shapes=false, with_stack=false, with_flops=false, schedule=, on_trace_ready=}, fn, ...): calls fn(...) and gives its
-- profile, which prints as a table, then fn's results. The options may be left out. with_stack: the line of the program that called each op
-- is recorded. with_flops: the table has a column of floating-point operations, of matrix products, convolutions and attention. With a
-- schedule fn gets the profile as its first argument and calls p:step() after each step; on_trace_ready(p) is called at the end of each
-- round. Waits for GPUs at the end. Without fn: a profile for p:start() and p:stop(). PyTorch's activities and profile_memory are taken;
-- memory is always recorded, and each device that something ran on.
function profiler.profile(o, fn, ...)
  if callable(o) then
    options.first("profile", OPTIONS, fn, ...)
    return profiler.profile({}, o, fn, ...)
  end
  local p, asked = new_profile(o)
  if fn == nil and select("#", ...) == 0 then return p end
  if not callable(fn) then fail("profile: a function is needed, got %s", type(fn)) end
  local function ended(ok, ...)
    if not ok then
      p._running = false
      if p._action ~= "none" then core.profile_stop(p._record) end
      error((select(1, ...)), 0)
    end
    if p._running then p:stop() end
    return p, ...
  end
  p:start()
  if asked.schedule then return ended(pcall(fn, p, ...)) end
  return ended(pcall(fn, ...))
end

-- Calls fn(...) and gives its results; each op and range appears on the timelines of Nsight and similar tools (tycho.cuda.nvtx).
function profiler.emit_nvtx(fn, ...)
  if not callable(fn) then fail("emit_nvtx: argument 1 must be a function, got %s", type(fn)) end
  if not core.gpu.is_available() then return fn(...) end
  local record = core.profile_start(false, false, true)
  return options.finally(function() core.profile_stop(record) end, fn, ...)
end

-- Calls fn(...) and gives its results; a profile that is being taken gets an entry of that name.
function profiler.record_function(name, fn, ...)
  if type(name) ~= "string" then fail("record_function: argument 1 (name) must be a string, got %s", type(name)) end
  if not callable(fn) then fail("record_function: argument 2 must be a function, got %s", type(fn)) end
  local range = core.profile_enter(name)
  return options.finally(function() core.profile_leave(range) end, fn, ...)
end

return options.told(profiler, "profiler")
