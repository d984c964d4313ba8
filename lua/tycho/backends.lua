-- tycho.backends: switches of the libraries underneath, as fields: tycho.backends.cudnn.benchmark = true.
--   cudnn.benchmark      convolutions and products of a new shape time the ways there are; else the library's first choice is taken
--   cudnn.deterministic  only ways that give the same bits each time
--   cuda.allow_tf32      float32 products and convolutions may round their operands to TF32: faster, 10 bits of mantissa
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail

local function switches(name, flags)
  return setmetatable({}, {
    __index = function(_, k)
      if not flags[k] then fail("backends.%s has no '%s'", name, tostring(k)) end
      return core.gpu.flag(flags[k])
    end,
    __newindex = function(_, k, v)
      if not flags[k] then fail("backends.%s has no '%s'", name, tostring(k)) end
      if type(v) ~= "boolean" then fail("backends.%s.%s must be a boolean, got %s", name, k, type(v)) end
      core.gpu.flag(flags[k], v)
    end})
end

return options.told({cudnn = switches("cudnn", {benchmark = "cudnn_benchmark", deterministic = "cudnn_deterministic"}), cuda = switches("cuda", {allow_tf32 = "allow_tf32"})}, "backends")
