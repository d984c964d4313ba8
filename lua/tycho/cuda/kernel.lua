-- tycho.cuda.kernel: a user's CUDA C kernels, compiled at first use and launched on tensors.
--
-- Idea: the source's kernel becomes a device function called by a generated entry, whose arguments are one struct, as in fused kernels; so
-- it is compiled, cached on disk and captured in graphs as they are. The kernel's own declaration gives its parameters. Invariant:
-- arguments have been checked against the declaration; a pointer that isn't const is written to.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local gpu, M = core.gpu, core.methods

-- For each C type: the letter that gpu.launch takes for a number, and the dtype of tensors behind a pointer (false: any).
local TYPES = {}
for names, row in pairs {["float"] = {"f", "float32"}, ["double"] = {"d", "float64"}, ["int|int32_t|signed int"] = {"i", "int32"},
    ["long long|int64_t|long|long long int|long int"] = {"l", "int64"}, ["unsigned|unsigned int|uint32_t"] = {"u"},
    ["unsigned long long|uint64_t|size_t|unsigned long"] = {"U"}, ["unsigned char|uint8_t"] = {nil, "uint8"}, ["bool"] = {"b", "bool"},
    ["__half|half"] = {nil, "float16"}, ["__nv_bfloat16|nv_bfloat16"] = {nil, "bfloat16"}, ["unsigned short|uint16_t"] = {nil, "16 bits"},
    ["void"] = {nil, false}} do
  for name in names:gmatch "[^|]+" do TYPES[name] = {number = row[1], dtype = row[2]} end
end
local LEAST = {i = -2 ^ 31, l = -2 ^ 53, u = 0, U = 0}
local MOST = {i = 2 ^ 31 - 1, l = 2 ^ 53, u = 2 ^ 32 - 1, U = 2 ^ 53}

-- Definitions that the run-time compiler lacks; CUDA's headers are included only for 16-bit types.
local PRELUDE = [[
#ifdef __CUDACC_RTC__
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t; typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <cmath>
#include <cstdint>
#endif
]]
local HEADERS = {float16 = "#include <cuda_fp16.h>\n", bfloat16 = "#include <cuda_bf16.h>\n"}

-- The kernel's parameters as declared in the source: {type=, kind=, dtype=}, their types as text, and its launch bounds.
local function declared(name, source)
  local bare = source:gsub("/%*.-%*/", " "):gsub("//[^\n]*", " ")
  local bounds = ""
  for head in bare:gmatch("([^;{}]*)%f[%w_]" .. name .. "%s*%b()") do
    if head:find("__global__", 1, true) then bounds = head:match "__launch_bounds__%s*%b()" or "" end
  end
  bare = bare:gsub("__launch_bounds__%s*%b()", " ")
  local list = bare:match("__global__%s+void%s+" .. name .. "%s*(%b())")
  if not list then fail("kernel: the source has no __global__ void %s(...)", name) end
  local params, types = {}, {}
  for text in list:sub(2, -2):gmatch "[^,]+" do
    local constant, pointers = text:match "^[^*]*":find "%f[%w_]const%f[^%w_]" ~= nil, select(2, text:gsub("%*", "*"))
    local words = text:gsub("%*", " * "):gsub("__restrict__", " "):gsub("%f[%w_]const%f[^%w_]", " "):gsub("%f[%w_]volatile%f[^%w_]", " ")
    local type_name = words:match "^%s*(.-)%s*%*" or words:match "^%s*(.-)%s+[%w_]+%s*$" or words
    type_name = type_name:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
    if list:match "^%(%s*%)$" or list:match "^%(%s*void%s*%)$" then break end
    local known = TYPES[type_name]
    if not known or pointers > 1 or (pointers == 0 and not known.number) then
      fail("kernel: %s: parameter %d, '%s', must be a number or a pointer to a tensor's elements", name,
        #params + 1, (text:gsub("^%s+", "")))
    end
    params[#params + 1] = {text = type_name .. (pointers == 1 and " *" or ""), dtype = known.dtype,
      kind = pointers == 1 and (constant and "p" or "w") or known.number}
    types[#types + 1] = (constant and "const " or "") .. type_name .. (pointers == 1 and " *" or "")
  end
  return params, types, bounds
end

-- The source with a generated entry.
local function whole(name, source, params, types, bounds)
  local fields, passed = {}, {}
  for i, t in ipairs(types) do fields[i], passed[i] = ("  %s p%d;"):format(t:gsub("^const (.*[^*])$", "%1"), i), "tycho_given.p" .. i end
  if #types == 0 then fields[1] = "  int none;" end
  source = source:gsub("__launch_bounds__%s*%b()", ""):gsub("__global__", "__device__")
  local headers = {}
  for _, p in ipairs(params) do
    local h = HEADERS[p.dtype]
    if h and not headers[h] then headers[h], headers[#headers + 1] = true, h end
  end
  return table.concat(headers) .. PRELUDE .. ('#line 1 "%s"\n'):format(name) .. source ..
    "\nstruct arguments {\n" .. table.concat(fields, "\n") .. "\n};\n" ..
    ('extern "C" __global__ void %s fused(const arguments tycho_given) { %s(%s); }\n'):format(bounds, name, table.concat(passed, ", "))
end

local Kernel = {}
local inside = setmetatable({}, {__mode = "k"})          -- a kernel's data, which users can't change
function Kernel:__tostring() return ("kernel %s of %d parameters"):format(inside[self].name, #inside[self].params) end

local function sizes(name, what, v, most)
  local out = type(v) == "number" and {v, 1, 1} or type(v) == "table" and {v[1] or 1, v[2] or 1, v[3] or 1} or {}
  for d = 1, 3 do
    local n = out[d]
    if type(n) ~= "number" or n < 1 or n % 1 ~= 0 or n > most[d] then
      fail("%s: %s must be a whole number from 1 to %.0f, or a list of up to 3, got %s", name, what, most[d],
        options.shown(n == nil and v or n))
    end
  end
  return out
end

function Kernel.__call(kernel, grid, block, ...)
  local self = inside[kernel]
  local name, n = self.name, select("#", ...)
  if n ~= #self.params then fail("%s: %d arguments are needed after grid and block, got %d", name, #self.params, n) end
  grid, block = sizes(name, "the grid", grid, {2 ^ 31 - 1, 65535, 65535}), sizes(name, "the block", block, {1024, 1024, 64})
  local threads = block[1] * block[2] * block[3]
  if threads > 1024 then fail("%s: a block has at most 1024 threads, got %d", name, threads) end
  local kinds, device = {}, nil
  for i, p in ipairs(self.params) do
    local v = select(i, ...)
    kinds[i] = p.kind
    if p.kind == "p" or p.kind == "w" then
      if not core.is_tensor(v) then fail("%s: argument %d must be a tensor (%s), got %s", name, i, p.text, options.shown(v)) end
      local fits = not p.dtype or v.dtype == p.dtype or (p.dtype == "16 bits" and (v.dtype == "float16" or v.dtype == "bfloat16"))
      if not fits then fail("%s: argument %d is %s; the kernel's parameter is %s", name, i, v.dtype, p.text) end
      if v.device == "cpu" or (device and v.device ~= device) then
        fail("%s: argument %d is on %s; it must be on %s", name, i, v.device, device or "a GPU")
      end
      if not M.is_contiguous(v) then fail("%s: argument %d of shape %s isn't contiguous: call contiguous() first", name, i, v.shape) end
      device = v.device
    elseif type(v) ~= "number" and not (p.kind == "b" and type(v) == "boolean") then
      fail("%s: argument %d must be a number (%s), got %s", name, i, p.text, options.shown(v))
    elseif LEAST[p.kind] and (v % 1 ~= 0 or v < LEAST[p.kind] or v > MOST[p.kind]) then
      fail("%s: argument %d must be a whole number that fits %s, got %s", name, i, p.text, tostring(v))
    end
  end
  device = device or "cuda:" .. gpu.current_device()
  self.made[device] = self.made[device] or gpu.kernel(device, self.source)
  gpu.launch(device, self.made[device], name, grid, block, table.concat(kinds), ...)
end

return function(source, name, ...)
  if select("#", ...) > 0 then fail("kernel: takes 2 arguments, source and name, and no options; got %d", 2 + select("#", ...)) end
  if type(source) ~= "string" then fail("kernel: argument 1 (source) must be a string, got %s", options.shown(source)) end
  if type(name) ~= "string" or not name:find "^[%a_][%w_]*$" or name == "fused" or name == "arguments" then
    fail("kernel: argument 2 (name) must be the kernel's name (not 'fused' or 'arguments'), got %s", options.shown(name))
  end
  if source:find "extern%s+__shared__" then fail("kernel: %s: give shared memory a fixed size: extern isn't supported", name) end
  local params, types, bounds = declared(name, source)
  local kernel = setmetatable({}, Kernel)
  inside[kernel] = {name = name, params = params, source = whole(name, source, params, types, bounds), made = {}}
  return kernel
end
