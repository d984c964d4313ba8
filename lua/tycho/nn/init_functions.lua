-- tycho.nn.init: fill a parameter in place, and return it. Formulas: Glorot & Bengio 2010, He et al. 2015.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local M = core.methods
local check = require("tycho.options").check
local init = {}

local function quietly(fn)
  return function(...)
    local ok, x = pcall(no_grad, fn, ...)
    if not ok then error(x, 2) end
    return x
  end
end

init.uniform_ = quietly(function(x, low, high) return M.uniform_(x, low or 0, high or 1) end)
init.normal_ = quietly(function(x, mean, std) return M.normal_(x, mean or 0, std or 1) end)
init.constant_ = quietly(function(x, value) return M.fill_(x, value) end)
init.zeros_ = quietly(function(x) return M.fill_(x, 0) end)
init.ones_ = quietly(function(x) return M.fill_(x, 1) end)
-- normal within a..b, drawn again where outside
init.trunc_normal_ = quietly(function(x, mean, std, a, b)
  mean, std, a, b = mean or 0, std or 1, a or -2, b or 2
  M.normal_(x, mean, std)
  for _ = 1, 100 do
    local outside = M.logical_or(M.lt(x, a), M.gt(x, b))
    if not M.any(outside):item() then return x end
    M.copy_(x, core.ops.where(outside, core.ops.normal(x, mean, std), x))
  end
  return M.clamp_(x, a, b)
end)

-- Gains of nonlinearities, as PyTorch's calculate_gain.
function init.calculate_gain(name, parameter)
  if name == "relu" then return math.sqrt(2) end
  if name == "leaky_relu" then return math.sqrt(2 / (1 + (parameter or 0.01) ^ 2)) end
  if name == "tanh" then return 5 / 3 end
  if name == "linear" or name == "sigmoid" or name == "conv2d" then return 1 end
  error("calculate_gain: no gain is known for '" .. tostring(name) .. "'", 2)
end

local function fans(x)
  if M.dim(x) < 2 then error("a tensor of at least 2 dims is needed, got shape " .. tostring(x.shape), 0) end
  local field = M.numel(x) / (x.shape[1] * x.shape[2])
  return x.shape[2] * field, x.shape[1] * field
end

init.xavier_uniform_ = quietly(function(x, gain)
  local i, o = fans(x)
  local bound = (gain or 1) * math.sqrt(6 / (i + o))
  return M.uniform_(x, -bound, bound)
end)
init.xavier_normal_ = quietly(function(x, gain)
  local i, o = fans(x)
  return M.normal_(x, 0, (gain or 1) * math.sqrt(2 / (i + o)))
end)
local function kaiming(x, o)
  o = o or {}
  check("kaiming", o, {a = true, mode = true, nonlinearity = true}, 4)
  if o.mode and o.mode ~= "fan_in" and o.mode ~= "fan_out" then error("kaiming: mode must be 'fan_in' or 'fan_out', got " .. tostring(o.mode), 0) end
  local i, out = fans(x)
  return init.calculate_gain(o.nonlinearity or "leaky_relu", o.a or 0) / math.sqrt(o.mode == "fan_out" and out or i)
end
init.kaiming_uniform_ = quietly(function(x, o)
  local bound = kaiming(x, o) * math.sqrt(3)
  return M.uniform_(x, -bound, bound)
end)
init.kaiming_normal_ = quietly(function(x, o) return M.normal_(x, 0, kaiming(x, o)) end)

return init
