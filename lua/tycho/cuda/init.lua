-- tycho.cuda: devices, streams, events, graphs; for memory see cuda/memory.lua. Without a GPU, is_available() gives false and the reason,
-- and the other functions raise it.
--
-- Idea: the GPU library is opened when one of these functions is first called (core.gpu). Devices count from 0, as the driver's do.
-- Invariant: the current device and stream belong to the running coroutine; device(i, fn) and stream(s, fn) restore them even if fn errs.
local core = require "tycho.core"
local options = require "tycho.options"
local modes = require "tycho.modes"
local devices = require "tycho.devices"
local fail = options.fail
local gpu = core.gpu
-- set_device(i): makes GPU i, from 0, or "cuda:0" the current one in this coroutine; current_stream(device=): the stream that a device's
-- work goes to.
local cuda = {set_device = gpu.set_device, current_stream = gpu.current_stream}
for name, f in pairs(require "tycho.cuda.memory") do cuda[name] = f end

-- Whether there is a GPU; if not, false and the reason.
function cuda.is_available() return gpu.is_available() end
-- Whether the GPU library has been opened, which the first use of a GPU does.
function cuda.is_initialized() return gpu.opened() end
-- The number of GPUs.
function cuda.device_count() return gpu.device_count() end
-- The number of the current GPU, from 0.
function cuda.current_device() return gpu.current_device() end
-- Waits until a device (by default the current one) has done all its work.
function cuda.synchronize(device) gpu.synchronize(device) end
-- How often the host has waited for a GPU so far. If this doesn't grow during a step, the host never waited in it.
function cuda.sync_count() return gpu.sync_count() end
-- A table {name=, major=, minor=, multi_processor_count=, total_memory=, warp_size=, max_threads_per_multi_processor=,
-- regs_per_multiprocessor=, L2_cache_size=, shared_memory_per_multiprocessor=, shared_memory_per_block=}; memory in bytes.
function cuda.get_device_properties(device) return gpu.get_device_properties(device) end
-- The GPU's name, such as "NVIDIA H100".
function cuda.get_device_name(device)
  devices.need "get_device_name"
  return gpu.get_device_properties(device, "get_device_name").name
end
-- The compute capability: two numbers, 9 and 0 for sm_90.
function cuda.get_device_capability(device)
  local p = gpu.get_device_properties(device, "get_device_capability")
  return p.major, p.minor
end
-- Whether a GPU can read a peer's memory directly; else copies between them go through the host.
function cuda.can_device_access_peer(device, peer) return gpu.can_device_access_peer(device, peer) end
-- Whether the GPU computes in bfloat16 (sm_80 and later).
function cuda.is_bf16_supported(device) return gpu.is_available() and (cuda.get_device_capability(device)) >= 8 end

-- Autocast and GradScaler by PyTorch's older names.
local amp = require "tycho.amp"
-- tycho.amp, with an autocast for GPUs only.
cuda.amp = setmetatable({}, {__index = amp})
-- autocast({dtype="float16", enabled=true}, fn, ...): as tycho.amp.autocast with device = "cuda".
function cuda.amp.autocast(o, ...)
  if modes.callable(o) then return amp.autocast({device = "cuda"}, o, ...) end
  if type(o) ~= "table" then return amp.autocast(o, ...) end
  local given = {device = "cuda"}
  for k, v in pairs(o) do given[k] = v end
  return amp.autocast(given, ...)
end

---- random generators ----
-- The state of a GPU's random generator (by default the current GPU's), for set_rng_state: a list of its seed and offset.
function cuda.get_rng_state(device) return {gpu.rng_state(devices.gpu("get_rng_state", device))} end
-- A list of all GPUs' states.
function cuda.get_rng_state_all()
  local out = {}
  for i = 0, gpu.device_count() - 1 do out[i + 1] = cuda.get_rng_state(i) end
  return out
end
-- Sets the states of all GPUs' random generators from a list.
function cuda.set_rng_state_all(states)
  options.expect("set_rng_state_all", 1, states, type(states) == "table", "a list of states")
  for i, state in ipairs(states) do cuda.set_rng_state(state, i - 1) end
end
-- Sets a GPU's random generator to a state that get_rng_state gave.
function cuda.set_rng_state(state, device) gpu.rng_state(devices.gpu("set_rng_state", device), options.rng_state(state)) end
-- The current GPU's generator's last seed.
function cuda.initial_seed() return (gpu.rng_state(devices.gpu "initial_seed")) end
-- Seeds the current GPU's random generator; without a GPU it does nothing. tycho.manual_seed seeds all devices.
function cuda.manual_seed(seed) if gpu.is_available() then gpu.rng_state(devices.gpu "manual_seed", seed, 0) end end
-- Seeds the random generators of all GPUs.
function cuda.manual_seed_all(seed)
  for i = 0, gpu.device_count() - 1 do gpu.rng_state(devices.gpu("manual_seed_all", i), seed, 0) end
end

---- debugging ----
-- true: waits for each op, so that an error (an index out of range, a device fault) is raised at the call that caused it. Slow: for
-- debugging.
function cuda.set_sync_debug(on)
  if type(on) ~= "boolean" then fail("set_sync_debug: argument 1 must be a boolean, got " .. type(on)) end
  gpu.flag("sync_debug", on)
end

-- PyTorch's numbers for the modes.
local MODES = {[0] = "default", "warn", "error"}
-- "error": a hidden wait for the device (item(), copies to the CPU, sizes that depend on data) is an error; "warn": it prints the program's
-- line to stderr; "default": neither. Also as 2, 1, 0.
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

---- events ----
-- record(stream=): the event occurs when the stream (by default the current one) has done its present work; wait(stream=): later work of
-- the stream waits for the event; synchronize(): the host waits for it.
local Event = {record = gpu.event_record, wait = gpu.event_wait, synchronize = gpu.event_synchronize,
  -- query(): whether the event has occurred; elapsed_time(other): milliseconds from this event to the other, both made with enable_timing.
  query = gpu.event_query, elapsed_time = gpu.event_elapsed}
-- The __index of streams, events and graphs: their methods, device, and computed fields.
local function fields(methods, what, computed)
  options.told(methods, what)
  return function(r, k)
    if k == "device" then return "cuda:" .. gpu.device_of(r) end
    if computed and computed[k] then return computed[k](r) end
    return methods[k]
  end
end
gpu.event_meta.__index = fields(Event, "an event")
gpu.event_meta.__tostring = function(e) return "event of cuda:" .. gpu.device_of(e) end

-- Event{enable_timing=false, blocking=false}: a mark in a stream's work, on the current device. blocking: a host that waits for it sleeps
-- rather than spin.
function cuda.Event(o)
  o = options.fill("Event", o, {enable_timing = false, blocking = false})
  return gpu.event_new(o.enable_timing, nil, o.blocking)
end

---- streams ----
-- synchronize(): the host waits for all of the stream's work; query(): whether all of it is done.
local Stream = {synchronize = gpu.stream_synchronize, query = gpu.stream_query}
gpu.stream_meta.__index = fields(Stream, "a stream", {priority = gpu.stream_priority})
gpu.stream_meta.__tostring = function(s) return "stream of cuda:" .. gpu.device_of(s) end
gpu.stream_meta.__eq = gpu.same
-- Makes later work of this stream wait for the event.
function Stream:wait_event(e) gpu.event_wait(e, self) end
-- Records an event, by default a new one, in this stream, and returns it.
function Stream:record_event(e)
  e = e or gpu.event_new(false, gpu.device_of(self))
  gpu.event_record(e, self)
  return e
end
-- Makes later work of this stream wait for the other stream's present work.
function Stream:wait_stream(other)
  if getmetatable(other) ~= gpu.stream_meta then fail("wait_stream: argument 1 must be a stream, got %s", options.shown(other)) end
  gpu.event_wait(other:record_event(), self)
end

-- Stream(device=, {priority=0}): a new stream of a device, by default the current one; work of priority -1 runs before work of priority 0.
-- Its fields: device, priority.
function cuda.Stream(device, o)
  if type(device) == "table" then device, o = nil, device end
  if type(o) == "number" then o = {priority = o} end
  o = options.fill("Stream", o, {device = device or options.none, priority = 0})
  options.whole("Stream", "priority", o.priority, -2 ^ 31)
  return gpu.stream_new(o.device or nil, o.priority)
end
-- ExternalStream(handle, device=): a stream that the program, or a library that it uses, has made itself, so that both put work into it in
-- order. handle: its cudaStream_t, as an FFI pointer or light userdata. It must exist as long as memory of tensors that it was current for
-- may be reused, and graphs that it replayed exist: free them and call empty_cache() before it is destroyed.
function cuda.ExternalStream(handle, device)
  if type(handle) == "cdata" then handle = options.address(handle) end
  if type(handle) ~= "userdata" and type(handle) ~= "number" then
    fail("ExternalStream: argument 1 must be a cudaStream_t, an FFI pointer or light userdata, got %s", options.shown(handle))
  end
  return gpu.stream_external(handle, device)
end
-- CUDA's handle of the stream (a cudaStream_t, as light userdata), for libraries called through the FFI.
function Stream:cuda_stream() return gpu.stream_raw(self) end
-- The stream that is a device's current one initially.
function cuda.default_stream(device) return gpu.default_stream(device) end
-- Makes s the current stream of its device; s is kept for the life of the process.
function cuda.set_stream(s)
  gpu.set_stream(s)
  cuda._streams[gpu.stream_raw(s)] = s
end
cuda._streams = {}
-- Calls fn(...) with a device as the current one, and gives its results.
function cuda.device(device, fn, ...)
  if type(fn) ~= "function" then fail("device: argument 2 must be a function, got " .. type(fn)) end
  local before = gpu.current_device()
  local function restore() gpu.set_device(before) end
  gpu.set_device(device)
  return options.finally(restore, fn, ...)
end
-- Whether a graph is being recorded.
function cuda.is_current_stream_capturing() return gpu.capturing() end

-- Calls fn(...) with s as the current stream, and s's device as the current device; gives its results. s = nil: only calls fn.
function cuda.stream(s, fn, ...)
  if not modes.callable(fn) then fail("stream: argument 2 must be a function, got " .. type(fn)) end
  if s == nil then return fn(...) end
  local before, device = nil, gpu.current_device()
  local function restore()
    gpu.set_device(device)
    if before then gpu.set_stream(before) end
    return s                                             -- keeps s alive until here
  end
  return options.finally(restore, function(...)
    before = gpu.set_stream(s)
    gpu.set_device(gpu.device_of(s))
    return fn(...)
  end, ...)
end

---- graphs ----
local Graph = {}
gpu.graph_meta.__index = fields(Graph, "a graph")
gpu.graph_meta.__tostring = function(g) return "graph of cuda:" .. gpu.device_of(g) end
-- Frees the graph's memory; the graph can't be replayed any more.
function Graph:reset() gpu.graph_reset(self) end
-- Runs the recorded work on the current stream: it reads its inputs and writes its results at the recorded addresses.
function Graph:replay() gpu.graph_replay(self) end

-- The graph's memory, for another graph's option pool: graphs of one pool share memory, so they must be replayed in the order in which they
-- were recorded.
function Graph:pool() return self end
local Pool = {}                                          -- graphs: those recorded with the pool that still exist
-- A pool for the option pool, before there is a graph.
function cuda.graph_pool_handle() return setmetatable({graphs = setmetatable({}, {__mode = "k"})}, Pool) end
local function graph_of(pool)
  if getmetatable(pool) == Pool then
    for graph in pairs(pool.graphs) do if gpu.graph_there(graph) then return graph end end
    return nil
  end
  if not rawequal(getmetatable(pool), gpu.graph_meta) then
    fail("graph: option 'pool' must come from a graph's pool() or from graph_pool_handle(), got %s", options.shown(pool))
  end
  return pool
end

local function finish(graph, pool, old, ok, ...)
  gpu.set_stream(old)
  if not ok then
    gpu.graph_end(graph, false)
    error((select(1, ...)), 0)
  end
  if gpu.graph_end(graph, true) == 0 then
    io.stderr:write(("graph: nothing was recorded: fn has started no work on streams of cuda:%d\n"):format(gpu.current_device()))
  end
  if pool and getmetatable(pool) == Pool then pool.graphs[graph] = true end
  return graph, ...
end
local GRAPH_OPTIONS = {pool = options.none}
-- graph({pool=}, fn, ...), or graph(fn, ...): records the work that fn puts into streams of the current device, without running it; gives
-- the graph and fn's results, which hold values after g:replay(). Shapes are fixed, new inputs are copied into the old ones (copy_), and fn
-- must not wait for the device. Things made once at first use (plans, an optimizer's state) must exist already: call fn once before. pool:
-- another graph's g:pool(), or a graph_pool_handle(), whose memory is shared.
function cuda.graph(o, fn, ...)
  if modes.callable(o) then
    options.first("graph", GRAPH_OPTIONS, fn, ...)
    return cuda.graph({}, o, fn, ...)
  end
  if not modes.callable(fn) then fail("graph: argument 1 must be a function, got " .. type(fn or o)) end
  devices.need "graph"
  local pool = options.fill("graph", o, GRAPH_OPTIONS).pool
  local beside, old = pool and graph_of(pool) or nil, gpu.current_stream()
  if not gpu.capturing() then                            -- else cached memory of others would go to the graph
    collectgarbage()
    collectgarbage()
    gpu.empty_cache()
  end
  return finish(gpu.graph_begin(nil, beside), pool, old, pcall(options.run, fn, ...))
end

---- kernels of the program's own ----
-- kernel(source, name): the kernel __global__ void name(...) of a CUDA C source text, called as k(grid, block, arguments ...), which runs
-- in the current stream. grid, block: numbers, or lists of up to 3. A pointer takes a contiguous tensor of its dtype on one GPU (unsigned
-- short *: of any 16-bit dtype, void *: of any); a pointer that isn't const is written to, without a gradient, which an autograd.Function
-- can provide. Numbers are checked against their type. NVRTC compiles the kernel at the first call, without contracting products and sums
-- (use fmaf()), and it is cached on disk.
function cuda.kernel(source, name) return require "tycho.cuda.kernel"(source, name) end

---- profilers outside ----
-- range_pop(): ends the range begun by the last range_push.
cuda.nvtx = options.told({range_pop = function() gpu.range() end}, "cuda.nvtx")
for name, tell in pairs {range_push = gpu.range, mark = gpu.moment} do
  -- Names on the timelines of Nsight and similar tools: range_push(text) begins a range, mark(text) marks a moment.
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
-- start() and stop() bound what an external profiler that waits for them records.
cuda.profiler = options.told({start = function() gpu.recording(true) end, stop = function() gpu.recording(false) end},
  "cuda.profiler")

-- make_graphed_callables(callables, sample_args, {num_warmup_iters=3, allow_unused_input=false}): gives a function or module, or a list of
-- them that run one after another, whose forward and backward are replayed as graphs; a module in its present mode. sample_args: a list of
-- tensors (for a list, a list of such lists) of the arguments' shapes and dtypes, which require grad where the arguments will.
function cuda.make_graphed_callables(...) return require("tycho.graphed")(...) end


return options.told(cuda, "cuda", nil, {CUDAGraph = "use cuda.graph(fn), which records a graph that replay() runs",
  OutOfMemoryError = "give what pcall returns to tycho.is_out_of_memory(err)"})
