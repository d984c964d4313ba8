-- tycho.cuda: devices, memory, streams, events. Without a GPU, is_available() gives false and the reason, and the rest raises it.
local core = require "tycho.core"
local options = require "tycho.options"
local gpu = core.gpu
local cuda = {is_available = gpu.is_available, device_count = gpu.device_count, current_device = gpu.current_device, set_device = gpu.set_device,
  get_device_properties = gpu.get_device_properties, synchronize = gpu.synchronize, sync_count = gpu.sync_count, mem_get_info = gpu.mem_get_info,
  memory_stats = gpu.memory_stats, reset_peak_memory_stats = gpu.reset_peak_memory_stats, empty_cache = gpu.empty_cache, current_stream = gpu.current_stream}

function cuda.get_device_name(device) return gpu.get_device_properties(device).name end
function cuda.memory_allocated(device) return gpu.memory_stats(device).allocated end
function cuda.max_memory_allocated(device) return gpu.memory_stats(device).max_allocated end
function cuda.memory_reserved(device) return gpu.memory_stats(device).reserved end
function cuda.max_memory_reserved(device) return gpu.memory_stats(device).max_reserved end

-- A table of what the allocator holds, as text.
function cuda.memory_summary(device)
  local s = gpu.memory_stats(device)
  local function line(name, now, peak) return ("%-24s %12.2f MiB %12.2f MiB"):format(name, now / 2^20, peak / 2^20) end
  return table.concat({("%-24s %16s %16s"):format("memory of cuda:" .. (device or gpu.current_device()), "now", "peak"), line("allocated by tensors", s.allocated, s.max_allocated),
    line("reserved from the device", s.reserved, s.max_reserved), ("%-24s %12d"):format("blocks in use", s.allocations), ("%-24s %12d"):format("segments", s.segments)}, "\n")
end

---- events ----
local Event = {record = gpu.event_record, wait = gpu.event_wait, synchronize = gpu.event_synchronize, query = gpu.event_query, elapsed_time = gpu.event_elapsed}
gpu.event_meta.__index = Event
gpu.event_meta.__tostring = function(e) return "event of cuda:" .. gpu.device_of(e) end

-- {enable_timing=} An event of the current device; recorded by record(stream?).
function cuda.Event(o) return gpu.event_new(options.fill("Event", o, {enable_timing = false}, 2).enable_timing) end

---- streams ----
local Stream = {synchronize = gpu.stream_synchronize, query = gpu.stream_query}
gpu.stream_meta.__index = Stream
gpu.stream_meta.__tostring = function(s) return "stream of cuda:" .. gpu.device_of(s) end
function Stream:wait_event(e) gpu.event_wait(e, self) end
function Stream:record_event(e)
  e = e or cuda.Event()
  gpu.event_record(e, self)
  return e
end
-- What is put into this stream from now on waits for what is in the other one now.
function Stream:wait_stream(other) gpu.event_wait(other:record_event(), self) end

-- A stream of a device (nil: the current one).
function cuda.Stream(device) return gpu.stream_new(device) end

local function leave(old, ok, ...)
  gpu.set_stream(old)
  if not ok then error((...), 0) end
  return ...
end
-- Calls fn(...) with s as the current stream of its device; gives fn's results.
function cuda.stream(s, fn, ...)
  if type(fn) ~= "function" then error("stream: argument 2 must be a function, got " .. type(fn), 2) end
  return leave(gpu.set_stream(s), pcall(fn, ...))
end

return cuda
