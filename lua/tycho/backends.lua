-- tycho.backends: switches of the underlying libraries, as fields: tycho.backends.cudnn.benchmark = true.
--   cudnn.benchmark      time the available plans for convolutions and products of a new shape; else take the library's first choice
--   cudnn.deterministic  only plans that give the same bits each time
--   cuda.allow_tf32      float32 products and convolutions may round their operands to TF32: faster, 10 bits of mantissa
--                        (cuda.matmul.allow_tf32: products alone, cudnn.allow_tf32: convolutions alone)
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail

-- flags: the switches by name. A field for several switches sets all of them, and is true if all are.
local function switches(name, flags)
  local function flag(k)
    if flags[k] then return flags[k] end
    fail("backends.%s has no '%s'%s", name, tostring(k), options.suggest(k, flags))
  end
  return setmetatable({}, {
    __index = function(_, k)
      local f = flag(k)
      if type(f) == "string" then return core.gpu.flag(f) end
      local on = true
      for _, one in ipairs(f) do on = on and core.gpu.flag(one) end
      return on
    end,
    __newindex = function(_, k, v)
      flag(k)
      if type(v) ~= "boolean" then fail("backends.%s.%s must be a boolean, got %s", name, k, type(v)) end
      for _, one in ipairs(type(flags[k]) == "table" and flags[k] or {flags[k]}) do core.gpu.flag(one, v) end
    end})
end

local cuda = switches("cuda", {allow_tf32 = {"allow_tf32", "conv_tf32"}})
rawset(cuda, "matmul", switches("cuda.matmul", {allow_tf32 = "allow_tf32"}))
local backends = options.told({
  cudnn = switches("cudnn", {benchmark = "cudnn_benchmark", deterministic = "cudnn_deterministic", allow_tf32 = "conv_tf32"}),
  cuda = cuda,
  -- For programs that ask; only CUDA's GPUs are supported.
  mps = {is_available = function() return false end, is_built = function() return false end}}, "backends")
getmetatable(backends).__newindex = function(t, k) return t[k] end       -- nothing can be set at this level; raises with a suggestion
return backends
