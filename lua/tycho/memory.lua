-- Tensors' memory through the FFI: tensors over a host's pointer, and pointers to a tensor's elements.
--
-- Invariant: whoever can read memory keeps it alive: a tensor holds the cdata that it was made of, and a tensor's cdata holds its storage.
local ffi = require "ffi"
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local M = core.methods

local ctypes = {float32 = "float *", float64 = "double *", int32 = "int32_t *", int64 = "int64_t *",
  uint8 = "uint8_t *", bool = "bool *", float16 = "uint16_t *", bfloat16 = "uint16_t *"}
-- The dtype of elements of a C type, where none is asked for. BYTES: types that can be any dtype of that many bytes.
local ELEMENTS = {float = "float32", double = "float64", int = "int32", int32_t = "int32", int64_t = "int64",
  uint8_t = "uint8", bool = "bool",
  ["unsigned short"] = "float16", uint16_t = "float16", void = "float32"}
local BYTES = {short = 2, int16_t = 2, ["unsigned int"] = 4, uint32_t = 4, uint64_t = 8}
-- LuaJIT's name for the fixed-width type that char is, is "char": int8_t on x86, uint8_t on ARM.
local function name_of(ctype) return tostring(ffi.typeof(ctype)):match "^ctype<(.-)>$" end
ELEMENTS[name_of "uint8_t"], BYTES[name_of "int8_t"] = "uint8", 1
local widths = {float32 = 4, float64 = 8, int64 = 8, int32 = 4, float16 = 2, bfloat16 = 2, uint8 = 1, bool = 1}

-- The element type of an FFI pointer or array, and an array's size in bytes. nil: ptr is neither, or its elements are pointers.
local function elements_of(ptr)
  local text = tostring(ptr):match "^cdata<(.-)>" or ""
  local element, shape = text:match "^(.-)%s*([%[%*&(].*)$"
  if not element or not (shape:find "^%[[^*(]*$" or shape == "*" or shape == "&" or shape:find "^%([*&]%)%[[^*(]*$") then return nil end
  element = element:gsub("const", ""):gsub("volatile", ""):match "^%s*(.-)%s*$"
  return element, (shape:find "^%[" or shape:find "^%(&") and ffi.sizeof(ptr) or nil
end
-- Whether elements of a C type can be read as dtype. Numbers of one kind aren't another's; for bytes, void and integers without a dtype of
-- their own the user decides.
local function may_be(element, dtype)
  local own = ELEMENTS[element]
  if BYTES[element] then return BYTES[element] == widths[dtype] end
  if not own or own == dtype or own == "uint8" or element == "void" then return true end
  if own == "float16" then return widths[dtype] == 2 end
  return widths[own] == widths[dtype] and not own:find "float" and not dtype:find "float"
end

-- from_ffi(ptr, {sizes}, {dtype=}): a CPU tensor over the memory of an FFI array or pointer of numbers, which the tensor keeps alive.
-- Nothing is copied: changes show on both sides. dtype follows from the element type (void *: float32, bytes: uint8; an unsigned 16-bit
-- type is float16), and may be another one of the same width. An array that is too small for the sizes is an error; a pointer's end can't
-- be checked.
local from_ffi = core.define("from_ffi", "ptr:any, size:sizes, *, dtype:dtype?", function(ptr, size, dtype)
  if type(ptr) ~= "cdata" then fail("from_ffi: argument 1 (ptr) must be an FFI pointer or array, got " .. type(ptr)) end
  local address, element, bytes = options.address(ptr), elements_of(ptr)
  if not address or not element then
    fail("from_ffi: argument 1 (ptr) must be an FFI pointer or array of numbers, got " .. tostring(ptr):gsub(": 0x.*", ""))
  end
  local d = dtype or ELEMENTS[element]
  if not d then fail("from_ffi: elements of type '%s' need a dtype, such as {dtype = \"float32\"}", element) end
  if not may_be(element, d) then fail("from_ffi: elements of type '%s' can't be read as %s", element, d) end
  local need = widths[d]
  for _, n in ipairs(size) do need = need * n end
  if bytes and need > bytes then
    fail("from_ffi: the array has %d bytes, a tensor of shape %s in %s needs %.0f", bytes, table.concat(size, "x"), d, need)
  end
  return core.from_address(address, size, d, ptr)
end)

-- A void * to the first element, also in device memory: for libraries called through the FFI. That cdata keeps the memory alive; a pointer
-- computed from it doesn't.
function M.data_ptr(x)
  local address, storage = core.data_ptr(x, true)
  return ffi.gc(ffi.cast("void *", address), function() return storage end)
end
local function no_operand()
  fail "data: x:data() is a method and gives an FFI pointer; compute with x:detach(), or with x within tycho.no_grad(fn)"
end
-- data(): an FFI pointer (float *, int64_t *, ...; 16-bit floats are uint16_t) to the elements of a contiguous CPU tensor, for loops that
-- LuaJIT compiles; its indices begin at 0. That cdata keeps the memory alive; a pointer computed from it doesn't. PyTorch's x.data, without
-- a call, is an error. LuaJIT doesn't check the values that it reads this way: a NaN with unusual bits, as unwritten memory or a file may
-- hold, becomes another Lua value, and may crash. totable() and item() do check.
M.data = setmetatable({}, {__add = no_operand, __sub = no_operand, __mul = no_operand, __div = no_operand, __mod = no_operand,
  __pow = no_operand, __unm = no_operand, __newindex = function(_, k)
    fail("data: x:data() is a method and gives an FFI pointer; assign x[%s] = v within tycho.no_grad(fn)", options.shown(k))
  end,
  __call = function(_, x)
    local address, storage = core.data_ptr(x)
    return ffi.gc(ffi.cast(ctypes[x.dtype], address), function() return storage end)
  end,
  __index = function(_, k)
    fail("data: x:data() is a method and gives an FFI pointer; use '%s' of x:detach(), or of x within tycho.no_grad(fn)", tostring(k))
  end})

-- The bytes of an element.
require("tycho.functional.lib").method("element_size", function(x) return widths[x.dtype] end)

return from_ffi
