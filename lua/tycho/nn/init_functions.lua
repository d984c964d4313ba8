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

init.eye_ = quietly(function(x)
  if M.dim(x) ~= 2 then error("eye_: a tensor of 2 dims is needed, got shape " .. tostring(x.shape), 0) end
  return M.copy_(x, core.ops.eye(x.shape[1], x.shape[2], {dtype = x.dtype, device = x.device}))
end)
-- The identity for a convolution, in each of its groups: as many channels as possible come out as they went in.
init.dirac_ = quietly(function(x, groups)
  groups = groups or 1
  if M.dim(x) < 3 then error("dirac_: a tensor of at least 3 dims is needed, got shape " .. tostring(x.shape), 0) end
  if x.shape[1] % groups ~= 0 then error(("dirac_: %d output channels can't be in %d groups"):format(x.shape[1], groups), 0) end
  M.zero_(x)
  local each = x.shape[1] / groups
  for g = 0, groups - 1 do
    for i = 1, math.min(each, x.shape[2]) do
      local at = x[g * each + i][i]
      for d = 1, M.dim(x) - 2 do at = M.select(at, 1, math.floor(x.shape[d + 2] / 2) + 1) end
      M.fill_(at, 1)
    end
  end
  return x
end)
-- Rows (or columns, where there are fewer of them) that are orthogonal and of length gain: Saxe et al. 2013. Modified Gram-Schmidt, twice, in float64.
init.orthogonal_ = quietly(function(x, gain)
  if M.dim(x) < 2 then error("orthogonal_: a tensor of at least 2 dims is needed, got shape " .. tostring(x.shape), 0) end
  local rows, cols = x.shape[1], M.numel(x) / math.max(x.shape[1], 1)
  if M.numel(x) == 0 then return x end
  local few, many = math.min(rows, cols), math.max(rows, cols)
  local q = core.ops.randn({few, many}, {dtype = "float64", device = "cpu"})
  for _ = 1, 2 do
    for i = 1, few do
      local v = M.select(q, 1, i)
      if i > 1 then
        local before = q[{ {1, i - 1} }]
        M.sub_(v, M.matmul(M.matmul(before, v), before))
      end
      M.div_(v, M.norm(v))
    end
  end
  if rows > cols then q = M.t(q) end
  return M.copy_(x, M.to(M.reshape(q * (gain or 1), x.shape), x.device))
end)

return init
