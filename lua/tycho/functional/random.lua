-- Random numbers made from the generators' ops. Invariant: each function also takes a generator.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local drawing = require("tycho.generator").drawing
local options = require "tycho.options"
local ops, M = core.ops, core.methods
local def, fail = lib.def, lib.fail

def("normal", "mean:any, std:any?, size:any?, *, dtype:string?",
  "normally distributed numbers; mean and std are numbers or tensors, whose common shape is the result's, or numbers \z
    for a given size",
  function(mean, std, size, dtype)
    std = std or 1
    for i, v in ipairs {mean, std} do
      local kind = core.is_tensor(v) and v.dtype or type(v)
      local fits = kind == "number" or core.is_tensor(v) and kind ~= "bool"
      if not fits then fail("normal", "argument %d must be a number or a tensor, got %s", i, kind) end
    end
    local low = core.is_tensor(std) and lib.looks(std) and M.numel(std) > 0 and ops.amin(std):item() or type(std) == "number" and std or 0
    if low < 0 then fail("normal", "argument 2 (std) must not be negative, got %g", low) end
    local like, shapes = nil, {}
    for _, x in ipairs {mean, std} do
      if core.is_tensor(x) then like, shapes[#shapes + 1] = like or x, x.shape end
    end
    if not like then
      if not size then fail("normal", "a size is needed where mean and std are numbers") end
      return ops.randn(size, {dtype = dtype}) * std + mean
    end
    if size then fail("normal", "size can't be given where mean or std is a tensor: their shapes determine it") end
    return ops.randn(lib.common_shape("normal", shapes), {dtype = dtype or like.dtype, device = like.device}) * std + mean
  end, {method = false, draws = true})
-- normal_ is the op, with a generator.
M.normal_ = drawing("normal_", ops.normal_)
lib.set("normal_", M.normal_)

-- In-place functions, as in PyTorch.
local function open_unit(x) return lib.open_unit(x.shape, "float64", x.device) end
-- fn(x, ...) with the arguments of signature in their order.
local function drawn(name, signature, fn)
  local order = options.names(signature)
  M[name] = drawing(name, function(x, ...)
    if not core.is_tensor(x) then fail(name, "argument 1 must be a tensor, got %s", type(x)) end
    if x.requires_grad and x.is_leaf and core.is_grad_enabled() then
      fail(name, "a leaf that requires grad can't be changed in place outside no_grad")
    end
    local o, args = options.arguments(name, signature, ...), {}
    for i, k in ipairs(order) do args[i] = o[k] end
    return M.copy_(x, fn(x, unpack(args, 1, #order)))
  end)
end
local function need_above(name, what, v)
  if v ~= nil and not (type(v) == "number" and v > 0) then fail(name, "%s must be a number above 0, got %s", what, tostring(v)) end
end
-- log_normal_(mean=1, std=2): in place, e to the power of draws from a normal distribution of this mean and deviation.
drawn("log_normal_", "mean=1, std=2", function(x, mean, std)
  need_above("log_normal_", "std", std)
  return ops.exp(ops.randn(x.shape, {dtype = "float64", device = x.device}) * std + mean)
end)
-- cauchy_(median=0, sigma=1): in place, draws from a Cauchy distribution.
drawn("cauchy_", "median=0, sigma=1", function(x, median, sigma)
  need_above("cauchy_", "sigma", sigma)
  return ops.tan((open_unit(x) - 0.5) * math.pi) * sigma + median
end)
-- geometric_(p): in place, the number of trials of probability p (0 < p < 1) up to the first success: whole numbers from 1.
drawn("geometric_", "p", function(x, p)
  if type(p) ~= "number" or not (p > 0 and p < 1) then
    fail("geometric_", "argument 2 (p) must lie between 0 and 1, got %s", tostring(p))
  end
  return ops.ceil(ops.log(open_unit(x)) / math.log(1 - p))
end)
-- random_(low, high): in place, whole numbers from low to high, both included; random_(high) from 0; random_() up to the largest for which
-- the dtype holds all whole numbers.
drawn("random_", "low=nil, high=nil", function(x, low, high)
  if high == nil then low, high = nil, low end
  local most = {float16 = 2048, bfloat16 = 256, float32 = 2 ^ 24, float64 = 2 ^ 53, int32 = 2 ^ 31 - 1,
    int64 = 2 ^ 53, uint8 = 255, bool = 1}
  return ops.randint(low or 0, high or most[x.dtype], x.shape, {dtype = not M.is_floating_point(x) and x.dtype or nil, device = x.device})
end)

def("bernoulli", "x, p:any?", "1 with probability x, else 0; with p like x, 1 with probability p", function(x, p)
  if p == nil then return ops.bernoulli(x) end
  if core.is_tensor(p) then return M.to(ops.bernoulli(ops.expand(p, x.shape)), x.dtype) end
  if type(p) ~= "number" or not (p >= 0 and p <= 1) then
    fail("bernoulli", "argument 2 (p) must be a probability or a tensor of them, got %s", tostring(p))
  end
  return M.to(ops.bernoulli(ops.full(x.shape, p, {dtype = M.is_floating_point(x) and x.dtype or "float32", device = x.device})), x.dtype)
end, {draws = true})
-- sets x to 1 with probability p, else to 0, whatever its values
M.bernoulli_ = drawing("bernoulli_", function(x, p) return M.copy_(x, M.bernoulli(x, p == nil and 0.5 or p)) end)
lib.set("bernoulli_", M.bernoulli_)
lib.set("random_", M.random_)
