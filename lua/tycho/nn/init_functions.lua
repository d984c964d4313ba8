-- tycho.nn.init: functions that fill a parameter in place, and return it; arguments in PyTorch's order or by name. (The layers are in
-- nn/init.lua.) Formulas: Glorot & Bengio 2010, He et al. 2015.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local M = core.methods
local lib = require "tycho.functional.lib"
local options = require "tycho.options"
local fail, functions = options.fail, lib.functions
local init = {}

-- init.name(x, ...): calls fn(x, o) without recording; o: the arguments by name (signature: see options.lua)
local function define(name, signature, fn)
  init[name] = function(x, ...)
    if not core.is_tensor(x) then options.fail("%s: argument 1 must be a tensor, got %s", name, type(x)) end
    local ok, y = pcall(no_grad, fn, x, options.arguments(name, signature, ...))
    if not ok then error(core.where() .. options.bare(y), 0) end
    return y
  end
end
local function number(name, o, k) return options.number(name, k, o[k]) end

-- uniform_(x, a=0, b=1, {generator=}): Uniform numbers from a to b.
define("uniform_", "a=0, b=1", function(x, o) return M.uniform_(x, number("uniform_", o, "a"), number("uniform_", o, "b")) end)
-- normal_(x, mean=0, std=1, {generator=}): Normal numbers.
define("normal_", "mean=0, std=1", function(x, o) return M.normal_(x, number("normal_", o, "mean"), number("normal_", o, "std")) end)
-- constant_(x, val): All elements become val.
define("constant_", "val", function(x, o) return M.fill_(x, o.val) end)
-- zeros_(x): All elements become 0.
define("zeros_", "", function(x) return M.fill_(x, 0) end)
-- ones_(x): All elements become 1.
define("ones_", "", function(x) return M.fill_(x, 1) end)
-- Numbers like x from the part a..b of the normal distribution, by the inverse of its cumulative function, in float64, and where that has
-- most digits: in the lower half.
local function from_part(x, mean, std, a, b)
  local low, high, sign = (a - mean) / std, (b - mean) / std, std
  if low > 0 then low, high, sign = -high, -low, -std end
  local ends = functions["special.ndtr"](core.from_value({low, high}, "float64"))
  local first, last = ends[1], ends[2]
  if last <= first then return core.ops.fill(x, high * sign + mean) end          -- too far out for float64
  local u = core.ops.rand(x.shape, {dtype = "float64", device = x.device}) * (last - first) + first
  return M.to(core.ops.clamp(functions["special.ndtri"](u) * sign + mean, a, b), x.dtype)
end
-- trunc_normal_(x, mean=0, std=1, a=-2, b=2, {generator=}): Normal numbers within a..b: others are drawn again. An error unless std is
-- above 0 and a not above b.
define("trunc_normal_", "mean=0, std=1, a=-2, b=2", function(x, o)
  local function get(k) return number("trunc_normal_", o, k) end
  local mean, std, a, b = get "mean", get "std", get "a", get "b"
  if std <= 0 then fail("trunc_normal_: std must be above 0, got %g", std) end
  if a > b then fail("trunc_normal_: a must not be above b, got %g and %g", a, b) end
  M.normal_(x, mean, std)
  for round = 1, 4 do
    local outside = M.logical_or(M.lt(x, a), M.gt(x, b))
    if not M.any(outside):item() then break end
    M.copy_(x, core.ops.where(outside, round < 4 and core.ops.normal(x, mean, std) or from_part(x, mean, std, a, b), x))
  end
  return M.clamp_(x, a, b)
end)

-- calculate_gain(nonlinearity, param=): the gain of "linear", "sigmoid", "conv2d" and the like is 1, of "tanh" 5/3, of "relu" sqrt(2), of
-- "leaky_relu" sqrt(2 / (1 + param^2)) (param: its slope, 0.01), of "selu" 3/4.
function init.calculate_gain(name, parameter)
  if type(parameter) == "table" then parameter = options.fill("calculate_gain", parameter, {param = 0.01}).param end
  if parameter ~= nil then options.number("calculate_gain", "param", parameter) end
  if name == "relu" then return math.sqrt(2) end
  if name == "leaky_relu" then return math.sqrt(2 / (1 + (parameter or 0.01) ^ 2)) end
  if name == "selu" then return 3 / 4 end
  if name == "tanh" then return 5 / 3 end
  if name == "linear" or name == "sigmoid" or tostring(name):find "^conv_?%a*%dd$" then return 1 end
  fail("calculate_gain: no gain is known for '" .. tostring(name) .. "'")
end

local function fans(name, x)
  if M.dim(x) < 2 then error(("%s: a tensor of at least 2 dims is needed, got shape %s"):format(name, tostring(x.shape)), 0) end
  local field = 1
  for d = 3, M.dim(x) do field = field * x.shape[d] end
  return math.max(x.shape[2] * field, 1), math.max(x.shape[1] * field, 1)
end

-- sparse_(x, sparsity, std=0.01, {generator=}): for a matrix: normal numbers, with the share `sparsity` of each column, at random places,
-- set to 0.
define("sparse_", "sparsity, std=0.01", function(x, o)
  if M.dim(x) ~= 2 then error(("sparse_: a matrix is needed, got shape %s"):format(tostring(x.shape)), 0) end
  local rows, part = x.shape[1], number("sparse_", o, "sparsity")
  if not (part >= 0 and part <= 1) then error(("sparse_: sparsity must lie in 0..1, got %g"):format(part), 0) end
  M.normal_(x, 0, number("sparse_", o, "std"))
  local order = M.argsort(core.ops.rand(x.shape, {device = x.device}), 1)              -- a random order of each column's rows
  return M.masked_fill_(x, M.le(order, math.ceil(part * rows)), 0)
end)

-- xavier_uniform_(x, gain=1, {generator=}): Glorot and Bengio 2010: uniform numbers in -b..b, b = gain sqrt(6 / (fan_in + fan_out)).
define("xavier_uniform_", "gain=1", function(x, o)
  local n_in, n_out = fans("xavier_uniform_", x)
  local bound = number("xavier_uniform_", o, "gain") * math.sqrt(6 / (n_in + n_out))
  return M.uniform_(x, -bound, bound)
end)
-- xavier_normal_(x, gain=1, {generator=}): Glorot and Bengio 2010: normal numbers of std gain sqrt(2 / (fan_in + fan_out)).
define("xavier_normal_", "gain=1", function(x, o)
  local n_in, n_out = fans("xavier_normal_", x)
  return M.normal_(x, 0, number("xavier_normal_", o, "gain") * math.sqrt(2 / (n_in + n_out)))
end)
local KAIMING = "a=0, mode=fan_in, nonlinearity=leaky_relu"
local function kaiming(name, x, o)
  if o.mode ~= "fan_in" and o.mode ~= "fan_out" then
    error(("%s: mode must be 'fan_in' or 'fan_out', got %s"):format(name, options.shown(o.mode)), 0)
  end
  local n_in, n_out = fans(name, x)
  return init.calculate_gain(o.nonlinearity, number(name, o, "a")) / math.sqrt(o.mode == "fan_out" and n_out or n_in)
end
-- kaiming_uniform_(x, a=0, mode="fan_in", nonlinearity="leaky_relu", {generator=}): He et al. 2015: uniform numbers in -b..b, b = gain
-- sqrt(3 / fan), with the gain of nonlinearity for slope a; mode: "fan_in" or "fan_out".
define("kaiming_uniform_", KAIMING, function(x, o)
  local bound = kaiming("kaiming_uniform_", x, o) * math.sqrt(3)
  return M.uniform_(x, -bound, bound)
end)
-- kaiming_normal_(x, a=0, mode="fan_in", nonlinearity="leaky_relu", {generator=}): He et al. 2015: normal numbers of std gain / sqrt(fan);
-- as kaiming_uniform_.
define("kaiming_normal_", KAIMING, function(x, o) return M.normal_(x, 0, kaiming("kaiming_normal_", x, o)) end)

-- eye_(x): The identity matrix, for a tensor of 2 dims.
define("eye_", "", function(x)
  if M.dim(x) ~= 2 then error("eye_: a tensor of 2 dims is needed, got shape " .. tostring(x.shape), 0) end
  return M.copy_(x, core.ops.eye(x.shape[1], x.shape[2], {dtype = x.dtype, device = x.device}))
end)
-- dirac_(x, groups=1): The identity for a convolution's weight, in each of its groups: as many channels as possible pass unchanged.
define("dirac_", "groups=1", function(x, o)
  local groups = options.whole("dirac_", "groups", o.groups, 1)
  if M.dim(x) < 3 then error("dirac_: a tensor of at least 3 dims is needed, got shape " .. tostring(x.shape), 0) end
  if x.shape[1] % groups ~= 0 then error(("dirac_: %d output channels can't be divided into %d groups"):format(x.shape[1], groups), 0) end
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
-- orthogonal_(x, gain=1, {generator=}): Orthogonal rows, or columns if there are fewer of them, of length gain (Saxe et al. 2013).
define("orthogonal_", "gain=1", function(x, o)
  if M.dim(x) < 2 then error("orthogonal_: a tensor of at least 2 dims is needed, got shape " .. tostring(x.shape), 0) end
  local rows, cols = x.shape[1], M.numel(x) / math.max(x.shape[1], 1)
  if M.numel(x) == 0 then return x end
  local few, many = math.min(rows, cols), math.max(rows, cols)
  local dtype = x.dtype == "float64" and "float64" or "float32"
  local q, r = lib.functions["linalg.qr"](core.ops.randn({many, few}, {dtype = dtype, device = x.device}))
  q = q * core.ops.sign(core.ops.diagonal(r))               -- else the decomposition's choice of signs would show
  if rows < cols then q = M.t(q) end
  return M.copy_(x, M.reshape(q * number("orthogonal_", o, "gain"), x.shape))
end)

local generator = require "tycho.generator"
for _, name in ipairs {"uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_",
    "orthogonal_", "sparse_"} do
  init[name] = generator.drawing(name, init[name])
end

return init
