-- tycho.cuda: devices, memory, streams, events. Without a GPU, is_available() gives false and the reason, and the rest raises it.
--
-- Idea: the GPU library is opened when one of these functions is first called (core.gpu); devices count from 0, as the driver's do.
-- Invariant: the current device and stream are the running coroutine's; device(i, fn) and stream(s, fn) restore them also where fn errs.
local core = require "tycho.core"
local options = require "tycho.options"
local modes = require "tycho.modes"
local fail = options.fail
local gpu = core.gpu
-- set_device(i): GPU i, from 0, or "cuda:0" is the current one in this coroutine; current_stream(device=): the stream that a device's work
-- is put into.
local cuda = {set_device = gpu.set_device, current_stream = gpu.current_stream}

local function needed(who)
  local there, why = gpu.is_available()
  if not there then fail("%s: %s", who, why) end
end

-- Whether there is a GPU; false and the reason where there is none.
function cuda.is_available() return gpu.is_available() end
-- How many GPUs there are.
function cuda.device_count() return gpu.device_count() end
-- The number of the current GPU, from 0.
function cuda.current_device() return gpu.current_device() end
-- Waits until a device (the current one unless given) has done all that it was given.
function cuda.synchronize(device) gpu.synchronize(device) end
-- How often the host has waited for a GPU so far. A step during which this doesn't grow never keeps the GPU idle for Lua.
function cuda.sync_count() return gpu.sync_count() end
-- A table {name=, major=, minor=, multi_processor_count=, total_memory= in bytes}.
function cuda.get_device_properties(device) return gpu.get_device_properties(device) end
-- The GPU's name, such as "NVIDIA H100".
function cuda.get_device_name(device)
  needed "get_device_name"
  return gpu.get_device_properties(device, "get_device_name").name
end
-- The compute capability: two numbers, 9 and 0 for sm_90.
function cuda.get_device_capability(device)
  local p = gpu.get_device_properties(device, "get_device_capability")
  return p.major, p.minor
end
-- Whether the GPU computes in bfloat16 (sm_80 and later).
function cuda.is_bf16_supported(device) return gpu.is_available() and (cuda.get_device_capability(device)) >= 8 end

-- Autocast and GradScaler by PyTorch's older names.
local amp = require "tycho.amp"
-- tycho.amp, but for an autocast of GPUs alone.
cuda.amp = setmetatable({}, {__index = amp})
-- autocast({dtype="float16", enabled=true}, fn, ...): as tycho.amp.autocast with device = "cuda".
function cuda.amp.autocast(o, ...)
  if modes.callable(o) then return amp.autocast({device = "cuda"}, o, ...) end
  if type(o) ~= "table" then return amp.autocast(o, ...) end
  local given = {device = "cuda"}
  for k, v in pairs(o) do given[k] = v end
  return amp.autocast(given, ...)
end

---- memory ----
-- The device's free memory and all it has, in bytes: two numbers.
function cuda.mem_get_info(device) return gpu.mem_get_info(device) end
-- max_memory_allocated and max_memory_reserved begin anew with what there is now.
function cuda.reset_peak_memory_stats(device) gpu.reset_peak_memory_stats(device) end
-- Gives memory that no tensor uses back to the devices, and pinned memory to the system. Waits for the devices.
function cuda.empty_cache() gpu.empty_cache() end
-- What the allocator holds: allocated, reserved and their peaks max_allocated, max_reserved in bytes, allocations, segments,
-- num_alloc_retries (the cache was given back for one), num_ooms, blocks (by size, {most=, used=, free=}); by PyTorch's names too,
-- such as "allocated_bytes.all.peak".
function cuda.memory_stats(device)
  local s = gpu.memory_stats(device)
  for name, now in pairs {allocated_bytes = "allocated", active_bytes = "allocated", reserved_bytes = "reserved"} do
    s[name .. ".all.current"], s[name .. ".all.peak"] = s[now], s["max_" .. now]
  end
  s["allocation.all.current"], s["segment.all.current"] = s.allocations, s.segments
  return s
end

-- The share of the device's memory, above 0 and up to 1, that this process may reserve; more is an out-of-memory error.
function cuda.set_per_process_memory_fraction(fraction, device)
  if type(fraction) ~= "number" or not (fraction > 0 and fraction <= 1) then
    fail("set_per_process_memory_fraction: argument 1 must be a number above 0 and up to 1, got %s", options.shown(fraction))
  end
  gpu.share(device, fraction)
end
-- The share of the device's memory that this process may reserve.
function cuda.get_per_process_memory_fraction(device) return gpu.share(device) end

for name, field in pairs {memory_allocated = "allocated", max_memory_allocated = "max_allocated",
    memory_reserved = "reserved", max_memory_reserved = "max_reserved"} do
  -- Bytes that tensors have (allocated), or that are taken from the device (reserved), and the most so far (max); 0 without a GPU.
  cuda[name] = function(device) return gpu.is_available() and gpu.memory_stats(device)[field] or 0 end
end

local function named(device)
  if device ~= nil and type(device) ~= "string" and type(device) ~= "number" then
    options.fail("a GPU is named by its number or as 'cuda:0', got %s", options.shown(device))
  end
  return type(device) == "string" and device or "cuda:" .. (device or gpu.current_device())
end
-- The state of a GPU's random generator (the current one's unless given), for set_rng_state: a list of its seed and offset.
function cuda.get_rng_state(device) return {gpu.rng_state(named(device))} end
-- A list of all GPUs' states.
function cuda.get_rng_state_all()
  local out = {}
  for i = 0, gpu.device_count() - 1 do out[i + 1] = cuda.get_rng_state(i) end
  return out
end
-- Puts all GPUs' random generators into the states of a list.
function cuda.set_rng_state_all(states)
  options.expect("set_rng_state_all", 1, states, type(states) == "table", "a list of states")
  for i, state in ipairs(states) do cuda.set_rng_state(state, i - 1) end
end
-- Puts a GPU's random generator into a state that get_rng_state gave.
function cuda.set_rng_state(state, device) gpu.rng_state(named(device), options.rng_state(state)) end
-- The seed that the current GPU's generator was last given.
function cuda.initial_seed() return (gpu.rng_state(named())) end
-- Seeds the current GPU's random generator; without a GPU it does nothing. tycho.manual_seed seeds all devices.
function cuda.manual_seed(seed) if gpu.is_available() then gpu.rng_state(named(), seed, 0) end end
-- Seeds the random generators of all GPUs.
function cuda.manual_seed_all(seed)
  for i = 0, gpu.device_count() - 1 do gpu.rng_state(named(i), seed, 0) end
end

-- true: each op is waited for, so that an error (an index out of range, a fault of the device) is raised at the call that made it. Slow:
-- for debugging.
function cuda.set_sync_debug(on)
  if type(on) ~= "boolean" then fail("set_sync_debug: argument 1 must be a boolean, got " .. type(on)) end
  gpu.flag("sync_debug", on)
end

-- By number, as PyTorch has them.
local MODES = {[0] = "default", "warn", "error"}
-- "error": what waits for the device unasked (item(), copies to the CPU, sizes that depend on data) is an error, so that hidden waits are
-- found; "warn": a line on stderr names the program's line; "default": neither. Also as 2, 1, 0.
function cuda.set_sync_debug_mode(mode)
  mode = MODES[mode] or mode
  if mode ~= "default" and mode ~= "warn" and mode ~= "error" then
    fail("set_sync_debug_mode: argument 1 must be 'default', 'warn' or 'error', got %s", options.shown(mode))
  end
  gpu.flag("refuse_sync", mode == "error")
  gpu.flag("warn_sync", mode == "warn")
end
-- The mode as a number: 0, 1 or 2.
function cuda.get_sync_debug_mode() return gpu.flag "refuse_sync" and 2 or gpu.flag "warn_sync" and 1 or 0 end

-- record_memory_history(on=true): from now on (false: no longer) memory_snapshot() tells which line of the program made each block.
function cuda.record_memory_history(on)
  options.expect("record_memory_history", 1, on, on == nil or type(on) == "boolean", "a boolean")
  gpu.flag("memory_history", on ~= false)
end
-- By the allocator's numbers.
local STATES = {[0] = "inactive", "active_allocated", "active_awaiting_free"}
-- What the allocator holds, a list of segments {device=, address=, total_size=, allocated_size=, segment_type="small"|"large", stream=,
-- blocks={ {address=, size=, state="active_allocated"|"active_awaiting_free"|"inactive", where="train.lua:12" or nil}, ...}}; sizes in
-- bytes.
function cuda.memory_snapshot(device)
  local segments, name, s = {}, named(device), nil
  for _, b in ipairs(gpu.memory_blocks(device)) do
    if b.first then
      s = {device = name, address = b.address, total_size = 0, allocated_size = 0, stream = b.stream, blocks = {}}
      segments[#segments + 1] = s
    end
    s.total_size = s.total_size + b.size
    if b.state == 1 then s.allocated_size = s.allocated_size + b.size end
    local where = b.where and b.where:gsub(": $", "")
    s.blocks[#s.blocks + 1] = {address = b.address, size = b.size, state = STATES[b.state], where = where}
  end
  for _, segment in ipairs(segments) do segment.segment_type = segment.total_size <= 2^21 and "small" or "large" end
  return segments
end

-- What the allocator holds, as a text table.
function cuda.memory_summary(device)
  needed "memory_summary"
  local s = gpu.memory_stats(device)
  local function line(name, now, peak) return ("%-24s %12.2f MiB %12.2f MiB"):format(name, now / 2^20, peak / 2^20) end
  local out = {("%-24s %16s %16s"):format("memory of " .. named(device), "now", "peak"),
    line("allocated by tensors", s.allocated, s.max_allocated),
    line("reserved from the device", s.reserved, s.max_reserved), ("%-24s %12d"):format("segments", s.segments),
    ("%-24s %16s %16s"):format("blocks up to", "in use", "cached")}
  for _, b in ipairs(s.blocks) do
    local size = not b.most and "any size" or b.most < 2^20 and ("%d KiB"):format(b.most / 2^10) or ("%d MiB"):format(b.most / 2^20)
    out[#out + 1] = ("%24s %16d %16d"):format(size, b.used, b.free)
  end
  return table.concat(out, "\n")
end

---- events ----
-- record(stream=): the event comes when the stream (the current one) has done what it has now; wait(stream=): what is put into the stream
-- from now on waits for the event; synchronize(): the host does.
local Event = {record = gpu.event_record, wait = gpu.event_wait, synchronize = gpu.event_synchronize,
  -- query(): whether the event has come; elapsed_time(other): milliseconds from this one to the other, both made with enable_timing.
  query = gpu.event_query, elapsed_time = gpu.event_elapsed}
-- Fields of a stream, an event, a graph: their methods, and device.
local function fields(methods, what)
  options.told(methods, what)
  return function(r, k) return k == "device" and "cuda:" .. gpu.device_of(r) or methods[k] end
end
gpu.event_meta.__index = fields(Event, "an event")
gpu.event_meta.__tostring = function(e) return "event of cuda:" .. gpu.device_of(e) end

-- Event{enable_timing=false}: a mark among a stream's work, of the current device.
function cuda.Event(o) return gpu.event_new(options.fill("Event", o, {enable_timing = false}).enable_timing) end

---- streams ----
-- synchronize(): the host waits for all that the stream has; query(): whether it has done all.
local Stream = {synchronize = gpu.stream_synchronize, query = gpu.stream_query}
gpu.stream_meta.__index = fields(Stream, "a stream")
gpu.stream_meta.__tostring = function(s) return "stream of cuda:" .. gpu.device_of(s) end
gpu.stream_meta.__eq = gpu.same
-- What is put into this stream from now on waits for the event.
function Stream:wait_event(e) gpu.event_wait(e, self) end
-- Records an event, a new one unless given, in this stream, and gives it.
function Stream:record_event(e)
  e = e or gpu.event_new(false, gpu.device_of(self))
  gpu.event_record(e, self)
  return e
end
-- What is put into this stream from now on waits for what the other one has now.
function Stream:wait_stream(other) gpu.event_wait(other:record_event(), self) end

-- Stream(device=, {priority=0}): a stream of a device, the current one unless given; priority -1 goes before 0 where both have work.
function cuda.Stream(device, o)
  if type(device) == "table" then device, o = nil, device end
  if type(o) == "number" then o = {priority = o} end
  o = options.fill("Stream", o, {device = device or false, priority = 0})
  options.whole("Stream", "priority", o.priority, -2 ^ 31)
  return gpu.stream_new(o.device or nil, o.priority)
end
-- CUDA's handle of the stream (a cudaStream_t, as light userdata), for libraries that are called through FFI.
function Stream:cuda_stream() return gpu.stream_raw(self) end
-- The stream that is a device's current one at first.
function cuda.default_stream(device) return gpu.default_stream(device) end
-- Makes s the current stream of its device; it stays for the process's life.
function cuda.set_stream(s)
  gpu.set_stream(s)
  cuda._streams[gpu.stream_raw(s)] = s
end
cuda._streams = {}
-- Calls fn(...) with a device as the current one; gives its results.
function cuda.device(device, fn, ...)
  if type(fn) ~= "function" then fail("device: argument 2 must be a function, got " .. type(fn)) end
  local before = gpu.current_device()
  gpu.set_device(device)
  return options.finally(function() gpu.set_device(before) end, fn, ...)
end
-- Whether a graph is being recorded.
function cuda.is_current_stream_capturing() return gpu.capturing() end

-- Calls fn(...) with s as the current stream of its device, which is the current device meanwhile; gives its results. s = nil: only calls
-- fn.
function cuda.stream(s, fn, ...)
  if not modes.callable(fn) then fail("stream: argument 2 must be a function, got " .. type(fn)) end
  if s == nil then return fn(...) end
  local before, device = gpu.set_stream(s), gpu.current_device()
  gpu.set_device(gpu.device_of(s))
  return options.finally(function()
    gpu.set_device(device)
    gpu.set_stream(before)
    return s                                             -- which is held until here: nobody else does
  end, fn, ...)
end

---- graphs ----
local Graph = {}
gpu.graph_meta.__index = fields(Graph, "a graph")
gpu.graph_meta.__tostring = function(g) return "graph of cuda:" .. gpu.device_of(g) end
-- Gives the graph's memory back; it can't be replayed any more.
function Graph:reset() gpu.graph_reset(self) end
-- Does again, on the current stream, what the graph recorded: it reads its inputs and writes its results where they lay then.
function Graph:replay() gpu.graph_replay(self) end

-- The graph's memory, for another graph's option pool: graphs with one pool use the same memory, so they are to be replayed in the order
-- in which they were recorded.
function Graph:pool() return self end
local Pool = {}                                          -- the graphs that were recorded with it and are there still
-- A pool for graph's option pool, before there is a graph.
function cuda.graph_pool_handle() return setmetatable({graphs = setmetatable({}, {__mode = "k"})}, Pool) end
local function graph_of(pool)
  if getmetatable(pool) == Pool then
    for graph in pairs(pool.graphs) do if gpu.graph_there(graph) then return graph end end
    return nil
  end
  if not rawequal(getmetatable(pool), gpu.graph_meta) then
    fail("graph: option 'pool' must be what a graph's pool() or graph_pool_handle() gave, got %s", options.shown(pool))
  end
  return pool
end

local function finish(graph, pool, old, ok, ...)
  gpu.set_stream(old)
  if not ok then
    gpu.graph_end(graph, false)
    error((...), 0)
  end
  if gpu.graph_end(graph, true) == 0 then
    io.stderr:write(("graph: nothing was recorded: fn has put no work into streams of cuda:%d\n"):format(gpu.current_device()))
  end
  if pool and getmetatable(pool) == Pool then pool.graphs[graph] = true end
  return graph, ...
end
local GRAPH_OPTIONS = {pool = false}
-- graph({pool=}, fn, ...), or graph(fn, ...): records what fn puts into streams of the current device, without doing it; gives the graph
-- and fn's results, which hold values after g:replay(). Shapes stay as they are, new inputs are copied into the old ones (copy_), and fn
-- must not wait for the device. What is made once at first use (plans, an optimizer's state) must be there: call fn once before. pool:
-- another graph's g:pool(), or a graph_pool_handle(), to use its memory again.
function cuda.graph(o, fn, ...)
  if modes.callable(o) then
    options.first("graph", GRAPH_OPTIONS, fn, ...)
    return cuda.graph({}, o, fn, ...)
  end
  if not modes.callable(fn) then fail("graph: argument 1 must be a function, got " .. type(fn or o)) end
  needed "graph"
  local pool = options.fill("graph", o, GRAPH_OPTIONS).pool
  local beside, old = pool and graph_of(pool) or nil, gpu.current_stream()
  if not gpu.capturing() then                            -- else what is cached for others is lost to the graph
    collectgarbage()
    collectgarbage()
    gpu.empty_cache()
  end
  return finish(gpu.graph_begin(nil, beside), pool, old, pcall(fn, ...))
end

---- kernels of the program's own ----
-- kernel(source, name): the kernel __global__ void name(...) of a CUDA C source text, as k(grid, block, arguments ...), which runs in the
-- current stream. grid, block: numbers, or lists of up to 3. A pointer takes a contiguous tensor of its dtype on one GPU (unsigned short
-- *: of any 16-bit dtype, void *: of any); what isn't const is written to, without a gradient, which an autograd.Function can give.
-- Numbers are checked against their type. NVRTC compiles it at the first call, without contraction of products and sums (fmaf() is one),
-- and it is kept on disk.
function cuda.kernel(source, name) return require "tycho.cuda_kernel"(source, name) end

---- profilers outside ----
-- Ends the range that the last range_push began.
cuda.nvtx = options.told({range_pop = function() gpu.range() end}, "cuda.nvtx")
for name, tell in pairs {range_push = gpu.range, mark = gpu.moment} do
  -- Names on the timelines of Nsight and its like: range_push(text) begins a range, mark(text) marks a moment.
  cuda.nvtx[name] = function(text)
    if type(text) ~= "string" then fail("%s: argument 1 must be a string, got %s", name, type(text)) end
    tell(text)
  end
end
-- Calls fn(...) within a range of that name; gives its results.
function cuda.nvtx.range(text, fn, ...)
  if not modes.callable(fn) then fail("range: argument 2 must be a function, got " .. type(fn)) end
  cuda.nvtx.range_push(text)
  return options.finally(gpu.range, fn, ...)
end
-- What a profiler that was told to wait records lies between start() and stop().
cuda.profiler = options.told({start = function() gpu.recording(true) end, stop = function() gpu.recording(false) end},
  "cuda.profiler")

-- make_graphed_callables(callables, sample_args, {num_warmup_iters=3, allow_unused_input=false}): a function, or a module, or a list of
-- them that run one after another, whose forward and backward are replayed as graphs; a module for the mode that it is in. sample_args: a
-- list of tensors (for a list, a list of those) of the arguments' shapes and dtypes, which require grad where the arguments will.
function cuda.make_graphed_callables(...) return require("tycho.graphed")(...) end


return options.told(cuda, "cuda", nil, {CUDAGraph = "cuda.graph(fn) records one, and replay() runs it"})
