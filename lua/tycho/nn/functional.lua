-- tycho.nn.functional: the functions that PyTorch has there, by the same names. Nothing is defined here.
local core = require "tycho.core"
local options = require "tycho.options"
local functional = require "tycho.functional"

-- Those that PyTorch can do in place take {inplace = true}, or true as the argument of that number.
local INPLACE = {relu = 2, relu6 = 2, selu = 2, silu = 2, mish = 2, hardswish = 2, hardsigmoid = 2, leaky_relu = 3, elu = 3, celu = 3,
  hardtanh = 4, threshold = 4, rrelu = 5, dropout = 4, dropout1d = 4, dropout2d = 4, dropout3d = 4, alpha_dropout = 4,
  feature_alpha_dropout = 4}
local function maybe_in_place(name, f)
  local at = INPLACE[name] - 1
  return function(x, ...)
    local n = select("#", ...)
    while n > 0 and select(n, ...) == nil do n = n - 1 end
    local o = n > 0 and select(n, ...)
    if n == at and type(o) == "boolean" then o = {inplace = o} end
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
