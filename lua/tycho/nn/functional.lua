-- tycho.nn.functional: the functions that PyTorch has there, by the same names. Nothing is defined here.
local core = require "tycho.core"
local options = require "tycho.options"
local functional = require "tycho.functional"

-- Those that PyTorch can do in place take {inplace = true}.
local INPLACE = {}
for name in ([[
  relu relu6 leaky_relu elu selu celu silu mish hardswish hardsigmoid hardtanh threshold rrelu
  dropout dropout1d dropout2d dropout3d alpha_dropout]]):gmatch "%S+" do INPLACE[name] = true end
local function maybe_in_place(name, f)
  return function(x, ...)
    local n = select("#", ...)
    local o = n > 0 and select(n, ...)
    if type(o) ~= "table" or o.inplace == nil then return f(x, ...) end
    if not core.is_tensor(x) then options.fail("%s: argument 1 must be a tensor, got %s", name, options.shown(x)) end
    local args, rest = {...}, {}
    for k, v in pairs(o) do if k ~= "inplace" then rest[k] = v end end
    args[n] = rest
    if not o.inplace then return f(x, unpack(args, 1, next(rest) and n or n - 1)) end
    local was = core.is_grad_enabled() and x.requires_grad and core.ops.clone(x) or x          -- backward needs the old value
    return core.methods.copy_(x, f(was, unpack(args, 1, next(rest) and n or n - 1)))
  end
end

local other = {unfold = "im2col", upsample = "interpolate"}            -- tycho.unfold is Tensor.unfold
local F = {}
for _, name in ipairs {"relu", "elu", "celu", "selu", "leaky_relu", "hardtanh", "threshold"} do F[name .. "_"] = core.ops[name .. "_"] end

-- The function of that name, if PyTorch has it there.
local function find(_, name)
  local own = other[name] or name
  local f = functional.find(own)
  if f and functional.nn[own] then return INPLACE[name] and maybe_in_place(name, f) or f end
  functional.all()                                     -- names to suggest may be in any family
  for _, names in ipairs {functional.nn, other} do for near in pairs(names) do local _ = F[near] end end
end
return options.told(F, "nn.functional", "tycho", nil, nil, find)
