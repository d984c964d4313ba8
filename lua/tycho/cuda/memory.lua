-- tycho.cuda's functions of memory: what the allocator holds and did, its settings, memory pools.
--
-- Idea: the allocator is in src/cuda/memory.c and segment.c; here its numbers get PyTorch's names and forms. Invariant: a memory pool is
-- current in one coroutine, and use_mem_pool() holds it as long as it is.
local core = require "tycho.core"
local options = require "tycho.options"
local modes = require "tycho.modes"
local devices = require "tycho.devices"
local fail = options.fail
local gpu = core.gpu
local cuda = {}

---- statistics ----
-- The device's free and total memory in bytes: two numbers.
function cuda.mem_get_info(device) return gpu.mem_get_info(device) end
-- Resets max_memory_allocated and max_memory_reserved to the present values.
function cuda.reset_peak_memory_stats(device) gpu.reset_peak_memory_stats(device) end
-- Returns unused cached memory to the devices, and unused pinned memory to the system. Waits for the devices.
function cuda.empty_cache() gpu.empty_cache() end
-- What the allocator holds: allocated, reserved and their peaks max_allocated, max_reserved in bytes, allocations, segments,
-- num_alloc_retries (allocations for which the cache was emptied), num_ooms, blocks (by size, {most=, used=, free=}); also by PyTorch's
-- names: .current and .peak of "allocated_bytes.all", "active_bytes.all" and "reserved_bytes.all", .current of "allocation.all",
-- "active.all" and "segment.all".
function cuda.memory_stats(device)
  local s = gpu.memory_stats(device)
  for name, now in pairs {allocated_bytes = "allocated", active_bytes = "allocated", reserved_bytes = "reserved"} do
    s[name .. ".all.current"], s[name .. ".all.peak"] = s[now], s["max_" .. now]
  end
  s["allocation.all.current"], s["active.all.current"], s["segment.all.current"] = s.allocations, s.allocations, s.segments
  return s
end

for name, field in pairs {memory_allocated = "allocated", max_memory_allocated = "max_allocated",
    memory_reserved = "reserved", max_memory_reserved = "max_reserved"} do
  -- The bytes in tensors (allocated) or taken from the device (reserved), and their peaks (max); 0 without a GPU.
  cuda[name] = function(device) return gpu.is_available() and gpu.memory_stats(device)[field] or 0 end
end

-- What the allocator holds, as a text table.
function cuda.memory_summary(device)
  devices.need "memory_summary"
  local s = gpu.memory_stats(device)
  local function line(name, now, peak) return ("%-24s %12.2f MiB %12.2f MiB"):format(name, now / 2^20, peak / 2^20) end
  local out = {("%-24s %16s %16s"):format("memory of " .. devices.gpu("memory_summary", device), "now", "peak"),
    line("allocated by tensors", s.allocated, s.max_allocated),
    line("reserved from the device", s.reserved, s.max_reserved), ("%-24s %12d"):format("segments", s.segments),
    ("%-24s %16s %16s"):format("blocks up to", "in use", "cached")}
  for _, b in ipairs(s.blocks) do
    local size = not b.most and "any size" or b.most < 2^20 and ("%d KiB"):format(b.most / 2^10) or ("%d MiB"):format(b.most / 2^20)
    out[#out + 1] = ("%24s %16d %16d"):format(size, b.used, b.free)
  end
  return table.concat(out, "\n")
end

---- limits and settings ----
-- Sets the share of the device's memory, above 0 and up to 1, that this process may reserve; beyond it there is an out-of-memory error.
function cuda.set_per_process_memory_fraction(fraction, device)
  if type(fraction) ~= "number" or not (fraction > 0 and fraction <= 1) then
    fail("set_per_process_memory_fraction: argument 1 must be a number above 0 and up to 1, got %s", options.shown(fraction))
  end
  gpu.share(device, fraction)
end
-- The share of the device's memory that this process may reserve.
function cuda.get_per_process_memory_fraction(device) return gpu.share(device) end

-- Settings by the name that users know: the core's flag, what a number is multiplied by there, and what they must be.
local SETTINGS = {
  max_split_size_mb = {"max_split_size", 2^20, "a whole number of MiB above 20", function(v) return v > 20 and v % 1 == 0 end},
  garbage_collection_threshold = {"garbage_collection_threshold", 1, "a number between 0 and 1", function(v) return v > 0 and v < 1 end},
  roundup_power2_divisions = {"roundup_power2_divisions", 1, "a power of two from 1 to 64",
    function(v) return v >= 1 and v <= 64 and math.frexp(v) == 0.5 end},
  expandable_segments = {"expandable_segments", nil, "true", function() return false end}}
local WORDS = {["True"] = true, ["true"] = true, ["False"] = false, ["false"] = false}
-- PyTorch's text as a table.
local function parsed(who, text)
  local o = {}
  for item in text:gmatch "[^,]+" do
    local name, value = item:match "^%s*([%w_]+)%s*:%s*(%S+)%s*$"
    if not name then fail("%s: '%s' isn't 'name:value'", who, item) end
    o[name] = tonumber(value) or value
  end
  return o
end
-- Checks all settings, then sets them.
local function set(who, settings)
  local known, flags = {}, {}
  for name in pairs(SETTINGS) do known[name] = options.none end
  options.fill(who, settings, known)
  for name, value in pairs(settings) do
    local at, factor, wanted, is = unpack(SETTINGS[name])
    if WORDS[value] ~= nil then value = WORDS[value] end
    if value ~= false and not (value == true and not factor) and not (type(value) == "number" and is(value)) then
      fail("%s: option '%s' must be %s, or false, got %s", who, name, wanted, options.shown(value))
    end
    if factor then value = (value or 0) * factor end
    flags[at] = value
  end
  for at, value in pairs(flags) do gpu.flag(at, value) end
end
-- Settings of the GPUs' allocator, from now on, as a table or as PyTorch's text "max_split_size_mb:128,garbage_collection_threshold:0.8";
-- also read from the environment variable TYCHO_CUDA_ALLOC_CONF at first. Those left out stay as they are; false switches one
-- off. max_split_size_mb: cached blocks that are larger aren't cut up, so that requests of many sizes fragment memory less.
-- garbage_collection_threshold: above this share of the device's memory, or of what set_per_process_memory_fraction allows, the cached
-- segments unused longest are given back before new ones are taken. roundup_power2_divisions: sizes are rounded up to one of so many steps
-- between two powers of two, so that blocks are reused for similar sizes. expandable_segments: new segments are ranges of addresses that
-- get memory piece by piece where it is needed, so that shapes which change from step to step don't scatter free memory over segments.
function cuda.set_allocator_settings(settings)
  if type(settings) == "string" then settings = parsed("set_allocator_settings", settings) end
  options.expect("set_allocator_settings", 1, settings, type(settings) == "table", "a table or a text of settings")
  set("set_allocator_settings", settings)
end
local CONF = "TYCHO_CUDA_ALLOC_CONF"
if os.getenv(CONF) and gpu.first_settings() then set(CONF, parsed(CONF, os.getenv(CONF))) end

---- memory pools ----
-- CUDAPluggableAllocator(path, alloc_name, free_name): functions of a shared library that give GPU memory instead of the driver, for a
-- MemPool or change_current_allocator(): void *alloc(ssize_t size, int device, cudaStream_t stream), NULL where there is none, and void
-- free(void *p, ssize_t size, int device, cudaStream_t stream). They may be called from any thread, must not call Tycho, and are asked for
-- segments that Tycho caches and cuts into tensors' blocks.
function cuda.CUDAPluggableAllocator(path, alloc_name, free_name)
  for i, v in ipairs {path or false, alloc_name or false, free_name or false} do
    options.expect("CUDAPluggableAllocator", i, v, type(v) == "string", "a string")
  end
  return gpu.source(path, alloc_name, free_name)
end
-- Makes a CUDAPluggableAllocator give all GPU memory that isn't in pools; before the first tensor on a GPU.
function cuda.change_current_allocator(allocator)
  options.expect("change_current_allocator", 1, allocator, allocator ~= nil, "an allocator")
  gpu.set_source(allocator)
end

-- snapshot(device): the pool's segments, as memory_snapshot() gives them.
local MemPool = {}
local POOL_META = {__index = MemPool, __tostring = function(p) return "memory pool " .. p.id end}
-- MemPool(allocator=): a pool of GPU memory, whose segments only serve what is allocated within use_mem_pool(): apart from other memory, or
-- from an allocator of the program's own. Field id. When it and its tensors are gone, the memory goes back;
-- what graphs had, with empty_cache().
function cuda.MemPool(allocator)
  local pool = gpu.mempool_new(allocator)
  return setmetatable({held = pool, id = gpu.mempool_id(pool)}, POOL_META)
end
local function is_pool(p) return type(p) == "table" and getmetatable(p) == POOL_META end
function MemPool:snapshot(device)
  if not is_pool(self) then fail "snapshot: call it with a colon: pool:snapshot()" end
  local out = {}
  for _, s in ipairs(cuda.memory_snapshot(device)) do if s.pool == self.id then out[#out + 1] = s end end
  return out
end
-- Calls fn(...), whose new GPU memory comes from a MemPool; gives its results.
function cuda.use_mem_pool(pool, fn, ...)
  options.expect("use_mem_pool", 1, pool, is_pool(pool), "a MemPool")
  if not modes.callable(fn) then fail("use_mem_pool: argument 2 must be a function, got " .. type(fn)) end
  local held, before = pool.held, nil
  local function restore()
    gpu.use_mempool(before)
    return held                                          -- keeps it alive until here
  end
  before = gpu.use_mempool(held)
  return options.finally(restore, fn, ...)
end

---- history ----
local HISTORY = {enabled = "all", max_entries = 100000, context = "all", stacks = "all"}
-- record_memory_history(on=true, {max_entries=100000}): begins the history of GPU memory, for memory_history() and dump_memory_snapshot():
-- the allocator's last max_entries events of each device, and the line of the program that allocated each block. false: ends it and drops
-- the events; blocks keep their lines. As in PyTorch, on may be an option, enabled: "all" (true), "state" (only the lines of blocks) or
-- false; context and stacks are taken without effect.
function cuda.record_memory_history(on, o)
  if type(on) == "table" then on, o = nil, on end
  o = options.fill("record_memory_history", o, HISTORY)
  if on == nil then on = o.enabled end
  if type(on) ~= "boolean" and on ~= "all" and on ~= "state" then
    fail("record_memory_history: argument 1 (enabled) must be a boolean, 'all' or 'state', got %s", options.shown(on))
  end
  if o.max_entries ~= math.huge then options.whole("record_memory_history", "max_entries", o.max_entries, 1) end
  gpu.history_begin((on == true or on == "all") and math.min(o.max_entries, 2^31) or 0)
  gpu.flag("memory_history", on ~= false)
end
-- "train.lua:12: " as the line alone
local function line_of(where) return where and where:gsub(": $", "") or nil end
-- What the allocator did since record_memory_history(), the oldest first: a list of {action=, address=, size=, stream=, time_us=, where=}.
-- action: "alloc", "free_requested", "free_completed" (no stream uses the block any more), "segment_alloc" and "segment_free" (memory from
-- the device, and back), "segment_map" and "segment_unmap" (the same, of a part of an expandable segment), "oom" (it has device_free=
-- instead of an address). size in bytes; time_us: microseconds since 1970; where="train.lua:12", or nil: the line that allocated the block.
function cuda.memory_history(device)
  local events = gpu.memory_events(device)
  for _, e in ipairs(events) do e.where = line_of(e.where) end
  return events
end
-- Names for the allocator's numbers.
local STATES = {[0] = "inactive", "active_allocated", "active_awaiting_free"}
-- What the allocator holds, a list of segments {device=, address=, total_size=, allocated_size=, segment_type="small"|"large", stream=,
-- pool= (a MemPool's id, or 0), expandable= (one range of an expandable segment), blocks={ {address=, size=, where="train.lua:12" or nil,
-- state="active_allocated"|"active_awaiting_free"|"inactive"}, ...}}; sizes in bytes.
function cuda.memory_snapshot(device)
  local segments, name, s = {}, devices.gpu("memory_snapshot", device), nil
  for _, b in ipairs(gpu.memory_blocks(device)) do
    if b.first then
      s = {device = name, address = b.address, total_size = 0, allocated_size = 0, stream = b.stream, pool = b.pool,
        segment_type = b.small and "small" or "large",
        expandable = b.expandable, blocks = {}}
      segments[#segments + 1] = s
    end
    s.total_size = s.total_size + b.size
    if b.state == 1 then s.allocated_size = s.allocated_size + b.size end
    s.blocks[#s.blocks + 1] = {address = b.address, size = b.size, state = STATES[b.state], where = line_of(b.where)}
  end
  return segments
end

-- Writes the allocator's segments and its history on all devices to a file in PyTorch's form, for its tools that draw them (python -m
-- torch.cuda._memory_viz trace_plot FILE, or the page memory_viz).
function cuda.dump_memory_snapshot(path)
  devices.need "dump_memory_snapshot"
  require("tycho.cuda.snapshot").dump(cuda, path)
end

-- The functions of memory by PyTorch's place and names. _snapshot(): what dump_memory_snapshot() writes, as a table.
local memory = {_record_memory_history = cuda.record_memory_history, _dump_snapshot = cuda.dump_memory_snapshot,
  _set_allocator_settings = cuda.set_allocator_settings,
  _snapshot = function() return require("tycho.cuda.snapshot").take(cuda) end}
for name, f in pairs(cuda) do memory[name] = f end
cuda.memory = options.told(memory, "cuda.memory", "tycho.cuda")

return cuda
