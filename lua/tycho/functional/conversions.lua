-- Conversions of dtype and device, and tensors like others.
--
-- Idea: PyTorch's one name `to` covers several conversions, which are told apart here. Invariant: a conversion that changes nothing returns
-- the tensor itself.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local options = require "tycho.options"
local ops, M = core.ops, core.methods
local def, method, fail = lib.def, lib.method, lib.fail

---- dtype, device, copies ----
local DTYPES = {}
for _, name in ipairs(core.dtypes) do DTYPES[name] = true end
-- A copy on the CPU in pinned memory, which the device fills after its present work: its values are valid once the stream, or an event
-- after it, has been waited for.
local function to_pinned(x) return M.copy_(ops.empty(x.shape, {dtype = x.dtype, device = "cpu", pin_memory = true}), x, true) end
local function to_device(x, device, non_blocking)
  local current = device == "cuda" and core.gpu.is_available() and "cuda:" .. core.gpu.current_device() or device
  if current == x.device then return x end
  if non_blocking and device == "cpu" then return to_pinned(x) end
  return ops.to_device(x, device, {non_blocking = non_blocking})
end
local function to_dtype(x, dtype, second)
  if not DTYPES[dtype] then
    fail("to", (second and "argument 3 (dtype) must be a dtype such as 'float32'" or
      "argument 2 (target) must be a dtype such as 'float32' or a device such as 'cpu' or 'cuda:0'") .. ", got '%s'%s",
      dtype, options.suggest(dtype, core.dtypes))
  end
  return dtype == x.dtype and x or ops.cast(x, dtype)
end
def("to",
  "x, target:any?, dtype:any?, *, device:device?, non_blocking:bool=false, copy:bool=false, \z
    memory_format:enum(preserve,contiguous,channels_last)=preserve",
  "x in another dtype, on another device (both: to(device, dtype)), as target is, or in another memory_format; x \z
    itself where nothing changes, unless copy. non_blocking: to a GPU from pinned memory, and from a GPU to pinned \z
    memory, without waiting",
  function(x, target, dtype, device, non_blocking, copy, format)
    local y = x
    if core.is_tensor(target) then target, device, dtype = nil, device or target.device, dtype or target.dtype end
    if type(dtype) == "boolean" then dtype, non_blocking = nil, dtype end            -- called as to(device, non_blocking)
    if target ~= nil and type(target) ~= "string" then
      fail("to", "argument 2 (target) must be a dtype, a device or a tensor, got %s", type(target))
    end
    if dtype ~= nil and type(dtype) ~= "string" then fail("to", "argument 3 (dtype) must be a dtype, got %s", type(dtype)) end
    if target and (target == "cpu" or target:match "^cuda") then y = to_device(y, target, non_blocking)
    elseif target then y = to_dtype(y, target)
    elseif not (device or dtype or copy) and format == "preserve" then
      fail("to", "argument 2 (target) must be a dtype, a device or a tensor, got nil")
    end
    if device then y = to_device(y, device, non_blocking) end
    if dtype then y = to_dtype(y, dtype, true) end
    if format ~= "preserve" then y = M.contiguous(y, format) end
    return copy and rawequal(x, y) and ops.clone(x) or y
  end)
for name, dtype in pairs {float = "float32", half = "float16", bfloat16 = "bfloat16", double = "float64",
    int = "int32", long = "int64", byte = "uint8", bool = "bool"} do
  -- As to() with that dtype; a tensor that has it already is returned itself.
  M[name] = function(x)
    if core.is_tensor(x) and x.dtype == dtype then return x end
    return M.to(x, dtype)
  end
end
-- As x:to("cpu"): returns x itself if it is there already, else waits for the GPU.
M.cpu = function(x) return M.to(x, "cpu") end
-- cuda(gpu, {non_blocking=false}): moved to that GPU, a number from 0 or "cuda:0", or by default to the current one.
M.cuda = function(x, gpu, o)
  if type(gpu) == "table" then gpu, o = nil, gpu end
  return M.to(x, type(gpu) == "number" and "cuda:" .. gpu or gpu or "cuda", o)
end
-- A copy in pinned memory, from which a GPU copies without blocking the host. Without a GPU it is x itself.
M.pin_memory = function(x) return core.gpu.is_available() and core.gpu.pin_memory(x) or x end
-- Whether the dtype is a floating-point one.
M.is_floating_point = function(x)
  if not core.is_tensor(x) then fail("is_floating_point", "argument 1 must be a tensor, got %s", type(x)) end
  return x.dtype:find("float", 1, true) ~= nil
end
lib.set("is_floating_point", M.is_floating_point)
-- The number of the tensor's GPU; -1: it is on the CPU.
method("get_device", function(x) return tonumber(x.device:match ":(%d+)$") or -1 end)
-- Whether the tensor is in pinned memory.
method("is_pinned", function(x) return core.gpu.is_pinned(x) end)
-- The bytes of all elements.
method("nbytes", function(x) return M.numel(x) * M.element_size(x) end)
-- Does nothing: the allocator itself keeps track of streams that use memory.
function M.record_stream() end
-- Converts to the other tensor's dtype and device.
method("type_as", function(x, other) return M.to(x, other) end)
-- Sets all elements to 0.
method("zero_", function(x) return M.fill_(x, 0) end)
lib.set("zero_", M.zero_)
-- A creator's arguments, with x's dtype and device unless the options have others.
local function as_of(x, ...)
  local args, n, o = {...}, select("#", ...), {dtype = x.dtype, device = x.device}
  local last = args[n]
  if n > 0 and type(last) == "table" and getmetatable(last) == nil and #last == 0 and next(last) ~= nil then
    for k, v in pairs(last) do o[k] = v end
    n = n - 1
  end
  args[n + 1] = o
  return unpack(args, 1, n + 1)
end
-- made, a new tensor, with memory for each example of the running vmaps if one of them maps x: then parts of it can be set.
local function for_examples_of(x, made)
  if not core.is_mapped(x) or core.is_mapped(made) or made.requires_grad then return made end
  return core.map_in_all(ops.clone(core.map_out_all(made), {memory_format = "contiguous"}))
end
for _, name in ipairs {"zeros", "ones", "empty"} do
  -- new_zeros(sizes, {dtype=, device=, requires_grad=}): as zeros, ones and empty, by default with x's dtype and device.
  method("new_" .. name, function(x, ...) return for_examples_of(x, ops[name](as_of(x, ...))) end)
end
-- new_full(sizes, value, {dtype=, device=, requires_grad=}): as full, by default with x's dtype and device.
method("new_full", function(x, ...) return for_examples_of(x, ops.full(as_of(x, ...))) end)
-- new_tensor(value, {dtype=, device=, requires_grad=}): as tensor(value), by default with x's dtype and device.
method("new_tensor", function(x, ...) return require("tycho").tensor(as_of(x, ...)) end)
-- reshape to the other tensor's shape.
method("reshape_as", function(x, other)
  if not core.is_tensor(other) then fail("reshape_as", "argument 2 must be a tensor, got %s", type(other)) end
  return M.reshape(x, other.shape)
end)

---- creation like another ----
-- make(shape) in a memory_format; to preserve it: in x's layout, if a user made x channels-last. If the layout is an op's choice and all
-- elements are value, it is filled by an op on x, whose result is marked as channels-last by the library.
local function laid_out_as(x, make, requires_grad, pin_memory, format, value, same)
  local s, made = x.shape
  local preserve = format == "preserve"
  if format == "channels_last" and #s ~= 4 then fail("channels_last", "4 dims are needed, got shape %s", tostring(s)) end
  if preserve and value ~= nil and same and M.is_channels_last(x) and M.is_floating_point(x) then made = ops.fill(M.detach(x), value)
  elseif format == "channels_last" or (preserve and #s == 4 and not M.is_contiguous(x) and not M.is_channels_last(x) and
      M.is_contiguous(ops.permute(x, 1, 3, 4, 2))) then
    made = ops.permute(make({s[1], s[3], s[4], s[2]}), 1, 4, 2, 3)
  elseif preserve and value == nil and #s == 4 and M.is_channels_last(x) then made = ops.clone(make(s), {memory_format = "channels_last"})
  else made = make(s) end
  if pin_memory then made = M.pin_memory(made) end
  return requires_grad and M.requires_grad_(made) or for_examples_of(x, made)
end
local LIKE = "dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false, \z
  memory_format:enum(preserve,contiguous,channels_last)=preserve"
local VALUE = {zeros = 0, ones = 1}
for _, make in ipairs {"zeros", "ones", "rand", "randn", "empty"} do
  def(make .. "_like", "x, *, " .. LIKE,
    make .. " in x's shape, dtype and layout",
    function(x, dtype, device, requires_grad, pin_memory, format)
      return laid_out_as(x, function(shape) return ops[make](shape, {dtype = dtype or x.dtype, device = device or x.device}) end,
        requires_grad, pin_memory, format, VALUE[make], (dtype or x.dtype) == x.dtype and (device or x.device) == x.device)
    end, {draws = make:find "^rand" ~= nil})
end
def("randint_like", "x, low:int, high:int, *, " .. LIKE,
  "whole numbers low to high, both included, in x's shape and dtype",
  function(x, low, high, dtype, device, ...)
    return laid_out_as(x,
      function(shape) return ops.randint(low, high, shape, {dtype = dtype or x.dtype, device = device or x.device}) end, ...)
  end, {draws = true})
def("full_like", "x, value:any, *, " .. LIKE,
  "x's shape, dtype and layout, all value",
  function(x, value, dtype, device, requires_grad, pin_memory, format)
    return laid_out_as(x, function(shape) return ops.full(shape, value, {dtype = dtype or x.dtype, device = device or x.device}) end,
      requires_grad, pin_memory, format, type(value) == "number" and value or nil,
      (dtype or x.dtype) == x.dtype and (device or x.device) == x.device)
  end)
