-- tycho.backends: switches of the libraries underneath, as fields: tycho.backends.cudnn.benchmark = true.
--   cudnn.benchmark      convolutions and products of a new shape time the plans there are; else the library's first choice is taken
--   cudnn.deterministic  only plans that give the same bits each time
--   cuda.allow_tf32      float32 products and convolutions may round their operands to TF32: faster, 10 bits of mantissa
--                        (cuda.matmul.allow_tf32: products alone, cudnn.allow_tf32: convolutions alone)
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail

-- flags: the switches by their names; of several in one table all are set, and all must be for it to be.
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
  -- For programs that ask: there are no GPUs but CUDA's.
  mps = {is_available = function() return false end, is_built = function() return false end}}, "backends")
getmetatable(backends).__newindex = function(t, k) return t[k] end       -- there is nothing to set but what is within: the name is told
return backends
