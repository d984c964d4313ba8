-- Snapshots of GPU memory in PyTorch's form, for the tools that draw them (its memory_viz page, or python -m torch.cuda._memory_viz).
--
-- Idea: the allocator's blocks and its history get PyTorch's field names, and are written as a pickle of protocol 2, of which dicts, lists,
-- tuples, strings, whole numbers and booleans are needed. Invariants: a table is a list if it is one of list(), a tuple if one of tuple(),
-- and else a dict, so that an empty list stays one; the segments are the state after the last event.
local core = require "tycho.core"
local options = require "tycho.options"
local gpu = core.gpu
local snapshot = {}

local List, Tuple = {}, {}
local function list(t) return setmetatable(t or {}, List) end
local function tuple(...) return setmetatable({...}, Tuple) end

---- pickle ----
local function little(v, n)
  local out = {}
  for i = 1, n do
    out[i] = string.char(v % 256)
    v = math.floor(v / 256)
  end
  return table.concat(out)
end

local function integer(v)
  if v >= 0 and v < 256 then return "K" .. little(v, 1) end                      -- BININT1
  if v >= 0 and v < 2^31 then return "J" .. little(v, 4) end                     -- BININT
  return "\138\8" .. little(v, 8)                                                -- LONG1
end

-- Bytes that aren't UTF-8, such as the half character where a long path was cut, become question marks.
local function utf8(s)
  return (s:gsub("([\192-\255]?)([\128-\191]*)", function(first, rest)
    local lead = first:byte() or 0
    local wanted = lead >= 0xf5 and -1 or lead >= 0xf0 and 3 or lead >= 0xe0 and 2 or lead >= 0xc2 and 1 or lead > 0 and -1 or 0
    if #rest ~= wanted then return ("?"):rep(#first + #rest) end
  end))
end

local encode
-- Lists are written by parts, since the page puts a part on its stack.
local PART = 1000
local function items(out, t, ending)
  for from = 1, math.max(#t, 1), PART do
    out[#out + 1] = "("
    for i = from, math.min(#t, from + PART - 1) do encode(out, t[i]) end
    out[#out + 1] = ending
  end
end
function encode(out, v)
  local kind = getmetatable(v)
  if type(v) == "number" then out[#out + 1] = integer(v)
  elseif type(v) == "boolean" then out[#out + 1] = v and "\136" or "\137"
  elseif type(v) == "string" then out[#out + 1] = "X" .. little(#v, 4) .. utf8(v)
  elseif kind == List then
    out[#out + 1] = "]"
    items(out, v, "e")
  elseif kind == Tuple then items(out, v, "t")                                   -- few
  else
    local keys = {}
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys)
    out[#out + 1] = "}("
    for _, k in ipairs(keys) do
      encode(out, k)
      encode(out, v[k])
    end
    out[#out + 1] = "u"
  end
end

---- PyTorch's form ----
-- "train.lua:12" as a list of one frame.
local function frames(where)
  local file, line = (where or ""):match "^(.*):(%d+)$"
  return list {file and {filename = file, line = tonumber(line), name = "lua"}}
end

-- The files' name for a state, where it isn't memory_snapshot()'s.
local STATES = {active_awaiting_free = "active_pending_free"}
-- A device's segments.
local function segments_of(cuda, i, out)
  for _, s in ipairs(cuda.memory_snapshot(i)) do
    local blocks, active = list(), 0
    for k, b in ipairs(s.blocks) do
      if b.state ~= "inactive" then active = active + b.size end
      blocks[k] = {address = b.address, size = b.size, requested_size = b.size, state = STATES[b.state] or b.state,
        frames = frames(b.where)}
    end
    out[#out + 1] = {device = i, address = s.address, total_size = s.total_size, allocated_size = s.allocated_size, active_size = active,
      requested_size = s.allocated_size, stream = s.stream, segment_type = s.segment_type, segment_pool_id = tuple(0, s.pool),
      is_expandable = s.expandable, frames = list(), blocks = blocks}
  end
end

-- The allocator's state and history on all devices.
function snapshot.take(cuda)
  collectgarbage()                                       -- else it might release tensors between the segments and the history
  collectgarbage()
  local segments, traces = list(), list()
  for i = 0, gpu.device_count() - 1 do
    segments_of(cuda, i, segments)
    local trace = list()
    for k, e in ipairs(cuda.memory_history(i)) do
      trace[k] = {action = e.action, addr = e.address, device_free = e.device_free, size = e.size, stream = e.stream, time_us = e.time_us,
        frames = frames(e.where)}
    end
    traces[i + 1] = trace
  end
  return {segments = segments, device_traces = traces, allocator_settings = {}, external_annotations = list()}
end

-- Writes it to a file.
function snapshot.dump(cuda, path)
  options.file("dump_memory_snapshot", path, function()
    local out = {"\128\2"}
    encode(out, snapshot.take(cuda))
    out[#out + 1] = "."
    local file = assert(io.open(path, "wb"))
    local ok, why = file:write(table.concat(out))
    local closed, later = file:close()
    assert(ok and closed, why or later)
  end)
end

return snapshot
