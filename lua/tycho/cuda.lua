-- tycho.cuda: devices, memory, streams, events. Without a GPU, is_available() gives false and the reason, and the rest raises it.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local gpu = core.gpu
local cuda = {is_available = gpu.is_available, device_count = gpu.device_count, current_device = gpu.current_device,
  set_device = gpu.set_device, get_device_properties = gpu.get_device_properties, synchronize = gpu.synchronize,
  sync_count = gpu.sync_count, mem_get_info = gpu.mem_get_info, memory_stats = gpu.memory_stats,
  reset_peak_memory_stats = gpu.reset_peak_memory_stats, empty_cache = gpu.empty_cache, current_stream = gpu.current_stream}

function cuda.get_device_name(device) return gpu.get_device_properties(device).name end
for name, field in pairs {memory_allocated = "allocated", max_memory_allocated = "max_allocated",
    memory_reserved = "reserved", max_memory_reserved = "max_reserved"} do
  cuda[name] = function(device) return gpu.is_available() and gpu.memory_stats(device)[field] or 0 end    -- bytes
end

-- The random generator of a device (nil: the current one): a list of its seed and offset.
local function named(device) return type(device) == "string" and device or "cuda:" .. (device or gpu.current_device()) end
function cuda.get_rng_state(device) return {gpu.rng_state(named(device))} end
function cuda.get_rng_state_all()
  local out = {}
  for i = 0, gpu.device_count() - 1 do out[i + 1] = cuda.get_rng_state(i) end
  return out
end
function cuda.set_rng_state_all(states) for i, state in ipairs(states) do cuda.set_rng_state(state, i - 1) end end
function cuda.set_rng_state(state, device) gpu.rng_state(named(device), options.rng_state(state)) end
-- Without a GPU there is nothing to seed, and nothing is held.
function cuda.manual_seed(seed) if gpu.is_available() then gpu.rng_state(named(), seed, 0) end end
function cuda.manual_seed_all(seed)
  for i = 0, gpu.device_count() - 1 do gpu.rng_state(named(i), seed, 0) end
end

-- true: each op is waited for, so that an error (a bad index, a fault of the device) comes from the call that made it. Slow: for debugging.
function cuda.set_sync_debug(on)
  if type(on) ~= "boolean" then fail("set_sync_debug: argument 1 must be a boolean, got " .. type(on)) end
  gpu.flag("sync_debug", on)
end

-- "error": what waits for the device without being asked to (item(), copies to the CPU, sizes that depend on data) is
-- an error, so that hidden waits are found. "default": not.
function cuda.set_sync_debug_mode(mode)
  if mode == 0 then mode = "default" elseif mode == 2 then mode = "error" end
  if mode ~= "default" and mode ~= "error" then
    fail("set_sync_debug_mode: argument 1 must be 'default' or 'error', got %s", options.shown(mode))
  end
  gpu.flag("refuse_sync", mode == "error")
end
function cuda.get_sync_debug_mode() return gpu.flag "refuse_sync" and 2 or 0 end

-- A table of what the allocator holds, as text.
function cuda.memory_summary(device)
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
local Event = {record = gpu.event_record, wait = gpu.event_wait, synchronize = gpu.event_synchronize,
  query = gpu.event_query, elapsed_time = gpu.event_elapsed}
gpu.event_meta.__index = Event
gpu.event_meta.__tostring = function(e) return "event of cuda:" .. gpu.device_of(e) end

-- {enable_timing=} An event of the current device; recorded by record(stream?).
function cuda.Event(o) return gpu.event_new(options.fill("Event", o, {enable_timing = false}).enable_timing) end

---- streams ----
local Stream = {synchronize = gpu.stream_synchronize, query = gpu.stream_query}
gpu.stream_meta.__index = Stream
gpu.stream_meta.__tostring = function(s) return "stream of cuda:" .. gpu.device_of(s) end
gpu.stream_meta.__eq = gpu.same
function Stream:wait_event(e) gpu.event_wait(e, self) end
function Stream:record_event(e)
  e = e or gpu.event_new(false, gpu.device_of(self))
  gpu.event_record(e, self)
  return e
end
-- What is put into this stream from now on waits for what is in the other one now.
function Stream:wait_stream(other) gpu.event_wait(other:record_event(), self) end

-- A stream of a device (nil: the current one).
function cuda.Stream(device) return gpu.stream_new(device) end
function cuda.default_stream(device) return gpu.default_stream(device) end
-- s is the current stream of its device from now on; it stays for the process's life.
function cuda.set_stream(s)
  gpu.set_stream(s)
  cuda._streams[s] = true
end
cuda._streams = {}
-- Calls fn(...) with a device as the current one; gives fn's results.
function cuda.device(device, fn, ...)
  if type(fn) ~= "function" then fail("device: argument 2 must be a function, got " .. type(fn)) end
  local before = gpu.current_device()
  gpu.set_device(device)
  return options.finally(function() gpu.set_device(before) end, fn, ...)
end
function cuda.is_current_stream_capturing() return gpu.capturing() end

-- Calls fn(...) with s as the current stream of its device; gives fn's results.
function cuda.stream(s, fn, ...)
  if type(fn) ~= "function" then fail("stream: argument 2 must be a function, got " .. type(fn)) end
  local before = gpu.set_stream(s)
  return options.finally(function() gpu.set_stream(before) end, fn, ...)
end

---- graphs ----
local Graph = {}
gpu.graph_meta.__index = Graph
gpu.graph_meta.__tostring = function(g) return "graph of cuda:" .. gpu.device_of(g) end
-- Gives its memory back; it can't be replayed any more.
function Graph:reset() gpu.graph_reset(self) end
-- Does again, on the current stream, what the graph recorded: it reads its inputs and writes its results where they lay then.
function Graph:replay() gpu.graph_replay(self) end

local function finish(graph, old, ok, ...)
  gpu.set_stream(old)
  if not ok then
    gpu.graph_end(graph, false)
    error((...), 0)
  end
  gpu.graph_end(graph, true)
  return graph, ...
end
-- graph(fn, ...): records what fn puts into streams of the current device, without doing it; gives the graph and fn's results, which hold
-- values after g:replay(). Sizes stay as they are, new inputs are copied into the old ones (copy_), and fn must not wait for the device.
-- What is made once at first use (plans, an optimizer's state) must be there: call fn once before.
function cuda.graph(fn, ...)
  if type(fn) ~= "function" then fail("graph: argument 1 must be a function, got " .. type(fn)) end
  local old = gpu.current_stream()
  return finish(gpu.graph_begin(), old, pcall(fn, ...))
end

return require("tycho.options").told(cuda, "cuda")
