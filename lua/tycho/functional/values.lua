-- Reductions, comparisons, order, and pointwise functions made of others.
--
-- Idea: where PyTorch uses one name for several functions (max of all elements, along a dim, of two tensors), the right op is chosen here.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local shown = require("tycho.options").shown
local def, fail, wrap = lib.def, lib.fail, lib.wrap
local F = lib.functions

---- reductions ----
def("max", "x, dim:any?, keepdim:bool=false", "without dim the largest element; with dim the maxima and their indices",
  function(x, dim, keepdim)
    if dim == nil then return ops.amax(x) end
    if core.is_tensor(dim) then return ops.maximum(x, dim) end
    return ops.max_dim(x, dim, keepdim)
  end)
def("min", "x, dim:any?, keepdim:bool=false", "without dim the smallest element; with dim the minima and their indices",
  function(x, dim, keepdim)
    if dim == nil then return ops.amin(x) end
    if core.is_tensor(dim) then return ops.minimum(x, dim) end
    return ops.min_dim(x, dim, keepdim)
  end)
local function arg(name, op)
  def(name, "x, dim:int?, keepdim:bool=false",
    "index of the " .. name:sub(4) .. "imum along dim (among all elements where dim is nil)",
    function(x, dim, keepdim)
      if dim then return (select(2, op(x, dim, keepdim))) end
      local _, i = op(M.flatten(x), 1, false)
      return keepdim and lib.all_kept(i, x) or i
    end)
end
arg("argmax", ops.max_dim)
arg("argmin", ops.min_dim)
-- Computes 16-bit operands in float32 and rounds once.
local function widened(fn)
  return function(x, ...)
    if x.dtype == "float16" or x.dtype == "bfloat16" then return M.to(fn(M.float(x), ...), x.dtype) end
    return fn(x, ...)
  end
end
local function variance(name, x, dim, correction, keepdim)
  local n = 1
  for _, d in ipairs(dim or {}) do
    if type(d) ~= "number" then fail(name, "argument 2 (dim) must list whole numbers, got %s", type(d)) end
  end
  if dim and #dim == 0 then dim = nil end
  for i, s in ipairs(x.shape) do
    local inside = not dim
    for _, d in ipairs(dim or {}) do inside = inside or d == i or d + M.dim(x) + 1 == i end
    if inside then n = n * s end
  end
  local mean = ops.mean(x, dim, {keepdim = true})
  return ops.sum(ops.square(x - mean), dim, {keepdim = keepdim}) / math.max(n - correction, 0)
end
-- A root whose gradient at 0 is 0, as in PyTorch's deviations and norms.
local function root(v, fn)
  local at0 = ops.eq(v, 0)
  return ops.masked_fill(fn(ops.masked_fill(v, at0, 1)), at0, 0)
end
-- var(dim, unbiased, keepdim), or var(unbiased), which PyTorch has too.
local function of_spread(name, fn)
  return widened(function(x, dim, unbiased, keepdim, correction)
    if type(dim) == "boolean" then dim, unbiased = nil, dim end
    if dim ~= nil and type(dim) ~= "number" and (type(dim) ~= "table" or core.is_tensor(dim)) then
      fail(name, "argument 2 (dim) must be a whole number or a list of them, got %s", shown(dim))
    end
    return fn(variance(name, x, type(dim) == "number" and {dim} or dim, unbiased and correction or 0, keepdim))
  end)
end
def("var", "x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1",
  "variance over dim; correction (0 where unbiased is false) is subtracted from the count",
  of_spread("var", function(v) return v end))
def("std", "x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1", "standard deviation over dim",
  of_spread("std", function(v) return root(v, ops.sqrt) end))
for _, of in ipairs {"var", "std"} do
  def(of .. "_mean", "x, dim:any?, unbiased:bool=true, keepdim:bool=false, *, correction:number=1", of .. " and mean over dim",
    function(x, dim, unbiased, keepdim, correction)
      local spread = M[of](x, dim, unbiased, keepdim, {correction = correction})
      return spread, ops.mean(x, type(dim) ~= "boolean" and dim or nil, {keepdim = keepdim})
    end)
end
local norm = widened(function(x, p, dim, keepdim)
  local o = {keepdim = keepdim}
  p = lib.norm_order("norm", p, 2)
  if p == "nuc" then return F["linalg.matrix_norm"](x, p, dim, keepdim) end
  if p == 2 or p == "fro" then return ops.norm2(x, dim, o) end
  local a = ops.abs(x)
  if p == math.huge then return ops.amax(a, dim, o) end
  if p == -math.huge then return ops.amin(a, dim, o) end
  if p == 0 then
    local count = M.to(ops.sum(ops.ne(x, 0), dim, o), x.dtype)
    return x.requires_grad and count + ops.sum(ops.fill(x, 0), dim, o) or count                -- with a slope of 0
  end
  if p < 1 then                -- no gradient where an element is 0
    local at0 = ops.eq(a, 0)
    local powers = ops.masked_fill(ops.pow(ops.masked_fill(a, at0, 1), p), at0, p > 0 and 0 or math.huge)
    return root(ops.sum(powers, dim, o), function(v) return ops.pow(v, 1 / p) end)
  end
  if p == 1 then return ops.sum(a, dim, o) end
  return root(ops.sum(ops.pow(a, p), dim, o), function(v) return ops.pow(v, 1 / p) end)
end)
def("norm", "x, p:any?, dim:dims?, keepdim:bool=false, *, dtype:dtype?",
  "the p-norm over dim; 2 where p is nil or 'fro'; x is converted to dtype first",
  function(x, p, dim, keepdim, dtype) return norm(dtype and M.to(x, dtype) or x, p, dim, keepdim) end, {float32 = true})
def("logsumexp", "x, dim:dims, keepdim:bool=false", "log of the sum of exp(x) over dim, without overflow", function(x, dim, keepdim)
  if not M.is_floating_point(x) then x = M.float(x) end
  if M.numel(x) == 0 then return ops.log(ops.sum(x, dim, {keepdim = keepdim})) end
  local top = M.detach(ops.amax(x, dim, {keepdim = true}))
  top = ops.masked_fill(top, ops.isinf(top), 0)
  local y = ops.log(ops.sum(ops.exp(x - top), dim, {keepdim = true})) + top
  return keepdim and y or M.squeeze(y, dim)
end)
def("count_nonzero", "x, dim:dims?", "how many elements are not 0", function(x, dim) return ops.sum(ops.ne(x, 0), dim) end)
local function same_elements(a, b) return M.item(ops.all(ops.eq(a, b))) end
def("equal", "a, b", "whether both have the same shape and elements (a boolean)", function(a, b)
  if a.shape ~= b.shape then return false end
  local n = M.numel(a)
  if n > 2 ^ 16 and a.device == "cpu" then                 -- tensors that differ mostly do so early
    local few = math.max(1, math.floor(2 ^ 13 / n * #a))
    if not same_elements(ops.slice(a, 1, 1, few), ops.slice(b, 1, 1, few)) then return false end
  end
  return same_elements(a, b)
end)
def("isclose", "a, b, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false", "true where |a - b| <= atol + rtol |b|",
  function(a, b, rtol, atol, equal_nan)
    if not (rtol >= 0 and atol >= 0) then fail("isclose", "rtol and atol must not be negative, got %g and %g", rtol, atol) end
    if a.dtype == "bool" and b.dtype == "bool" then return ops.eq(a, b) end
    local gap, scale
    if M.is_floating_point(a) or M.is_floating_point(b) then gap, scale = ops.abs(a - b), b
    else                                                   -- int64's difference is exact; float64's can't wrap around
      scale = M.double(b)
      gap = ops.maximum(M.double(ops.abs(M.long(a) - M.long(b))), ops.abs(M.double(a) - scale))
    end
    local near = ops.logical_or(ops.eq(a, b), ops.logical_and(ops.isfinite(gap), ops.le(gap, ops.abs(scale) * rtol + atol)))
    return equal_nan and ops.logical_or(near, ops.logical_and(ops.isnan(a), ops.isnan(b))) or near
  end)
def("allclose", "a, b, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false",
  "whether all elements are close (a boolean)",
  function(a, b, rtol, atol, equal_nan)
    return M.item(ops.all(F.isclose(a, b, {rtol = rtol, atol = atol, equal_nan = equal_nan})))
  end)
def("aminmax", "x, *, dim:int?, keepdim:bool=false", "minimum and maximum over dim (all dims where nil)", function(x, dim, keepdim)
  return ops.amin(x, dim, {keepdim = keepdim}), ops.amax(x, dim, {keepdim = keepdim})
end)
def("nanmean", "x, dim:dims?, keepdim:bool=false, *, dtype:dtype?", "mean over dim of what isn't NaN", function(x, dim, keepdim, dtype)
  if dtype then x = M.to(x, dtype) end
  return ops.nansum(x, dim, {keepdim = keepdim}) / ops.sum(ops.logical_not(ops.isnan(x)), dim, {keepdim = keepdim})
end)

---- by order ----
def("argsort", "x, dim:int=-1, descending:bool=false, stable:bool=false", "the indices that put x in order along dim",
  function(x, dim, descending)
    return (select(2, ops.sort(x, dim, {descending = descending})))
  end)
def("msort", "x", "x in order along dim 1", function(x) return (ops.sort(x, 1)) end)
def("kthvalue", "x, k:int, dim:int=-1, keepdim:bool=false", "the k-th smallest along dim and its index", function(x, k, dim, keepdim)
  dim = wrap("kthvalue", dim, math.max(M.dim(x), 1))
  local n = M.dim(x) == 0 and 1 or x.shape[dim]
  if k < 1 or k > n then fail("kthvalue", "k %d must be in 1..%d", k, n) end
  if M.dim(x) == 0 then return ops.sort(x) end
  local value, index
  -- for few the first k are faster; on a GPU, order statistics sort all
  if k * 16 <= n and (x.device ~= "cpu" or k * 64 <= n or n < 512) then
    local v, i = ops.topk(x, k, dim, false)
    value, index = ops.slice(v, dim, k, k), ops.slice(i, dim, k, k)
  else
    value, index = lib.order_statistics(x, dim, k)
  end
  if keepdim then return value, index end
  return M.squeeze(value, dim), M.squeeze(index, dim)
end)
-- x is among the values if the sorted values have it at the place where x would be inserted.
local function among(x, values)
  if M.numel(values) == 0 then return ops.zeros(x.shape, {dtype = "bool", device = x.device}) end
  local dtype = lib.promote_types(x.dtype, values.dtype)
  if dtype == "bool" then dtype = "uint8" end
  local flat, sorted = M.to(M.flatten(x), dtype), (ops.sort(M.to(M.flatten(values), dtype), 1))
  local at = ops.clamp(ops.searchsorted(sorted, flat), 1, #sorted)
  return M.reshape(ops.eq(ops.index(sorted, {at}, 1), flat), x.shape)
end
def("isin", "x, values:operand, *, assume_unique:bool=false, invert:bool=false",
  "true where an element of x is among values (invert: is not); assume_unique has no effect",
  function(x, values, _, invert)
    local found = core.is_tensor(values) and among(x, values) or ops.eq(x, values)
    return invert and ops.logical_not(found) or found
  end)

---- pointwise, made of others ----
local PLACE = {inplace = true}
local function limits(x) return lib.RANGE[x.dtype] and lib.RANGE[x.dtype].max or 0 end
def("nan_to_num", "x, nan:number=0, posinf:number?, neginf:number?",
  "NaN and infinities as numbers: posinf and neginf default to the dtype's largest and smallest",
  function(x, nan, posinf, neginf)
    if not M.is_floating_point(x) then return ops.clone(x) end
    local y = ops.finite(x, -limits(x), limits(x))
    if nan == 0 and not posinf and not neginf then return y end
    if posinf then y = ops.masked_fill(y, ops.eq(x, math.huge), posinf) end
    if neginf then y = ops.masked_fill(y, ops.eq(x, -math.huge), neginf) end
    return ops.masked_fill(y, ops.isnan(x), nan)
  end, PLACE)
local HOLDS = {uint8 = {0, 255}, int32 = {-2 ^ 31, 2 ^ 31 - 1}}
-- A border that the dtype can't hold would become the value of all elements.
local function need_held(x, min, max)
  local held = HOLDS[x.dtype]
  if not held then return end
  if type(min) == "number" and min > held[2] and min < math.huge then
    fail("clamp", "min %g is above what dtype %s holds", min, x.dtype)
  end
  if type(max) == "number" and max < held[1] and max > -math.huge then
    fail("clamp", "max %g is below what dtype %s holds", max, x.dtype)
  end
end
-- Borders that are numbers affect the dtype as operands do.
local function limited(x, min, max)
  if type(min) == "boolean" then min = min and 1 or 0 end
  if type(max) == "boolean" then max = max and 1 or 0 end
  local fraction = min and min % 1 ~= 0 or max and max % 1 ~= 0               -- infinity and NaN too
  if fraction and not M.is_floating_point(x) then x = M.float(x) elseif x.dtype == "bool" then x = M.long(x) end
  if min ~= min or max ~= max then return ops.clamp(x, min, max) * (0 / 0) end
  need_held(x, min, max)
  return ops.clamp(x, min, max)
end
-- Borders may be tensors.
def("clamp", "x, min:operand?, max:operand?", "x limited to min..max; either may be nil, a number or a tensor", function(x, min, max)
  if min == nil and max == nil then fail("clamp", "min or max is needed") end
  if not core.is_tensor(min) and not core.is_tensor(max) then return limited(x, min, max) end
  if min ~= nil then x = ops.maximum(x, min) end
  return max ~= nil and ops.minimum(x, max) or x
end, {inplace = true})
local with_tensors = M.clamp_
M.clamp_ = core.define("clamp_", "x, min:operand?, max:operand?", function(x, min, max)
  if core.is_tensor(min) or core.is_tensor(max) or min ~= min or max ~= max or x.dtype == "bool" then return with_tensors(x, min, max) end
  need_held(x, min, max)
  return ops.clamp_(x, min, max)
end)
lib.set("clamp_", M.clamp_)
def("div", "a:operand, b:operand, *, rounding_mode:enum(none,trunc,floor)=none",
  "a / b, by elements; rounded towards 0 (trunc) or down (floor), where asked for, in the operands' dtype",
  function(a, b, mode)
    if mode == "floor" then return ops.floor_divide(a, b) end
    if mode == "none" then return ops.div(a, b) end
    if type(a) == "boolean" then a = a and 1 or 0 end
    if type(b) == "boolean" then b = b and 1 or 0 end
    local function whole(x) if core.is_tensor(x) then return not M.is_floating_point(x) end return x % 1 == 0 end
    if not whole(a) or not whole(b) then
      local q = ops.trunc(ops.div(a, b))
      if not q.requires_grad then return q end
      q = M.detach(q)                      -- the quotient's slope may be infinite; the rounded one's is 0
      for _, v in ipairs {a, b} do
        if core.is_tensor(v) and v.requires_grad then q = q + ops.sign(v) * 0 end
      end
      return q
    end
    local function below(x) if core.is_tensor(x) then return ops.lt(x, 0) end return x < 0 end
    local negative = ops.ne(below(a), below(b))            -- whether the quotient is negative; a uint8 quotient doesn't show it
    return ops.floor_divide(a, b) + ops.logical_and(negative, ops.ne(ops.remainder(a, b), 0))
  end, PLACE)
local rounded_ = M.div_
M.div_ = core.define("div_", "a, b:operand, *, rounding_mode:enum(none,trunc,floor)=none", function(a, b, mode)
  if mode == "none" then return ops.div_(a, b) end
  return rounded_(a, b, {rounding_mode = mode})
end)
lib.set("div_", M.div_)
def("clamp_min", "x, min:operand", "the larger of x and min", function(x, min)
  if core.is_tensor(min) then return ops.maximum(x, min) end
  return limited(x, min)
end, PLACE)
def("clamp_max", "x, max:operand", "the smaller of x and max", function(x, max)
  if core.is_tensor(max) then return ops.minimum(x, max) end
  return limited(x, nil, max)
end, PLACE)
def("bitwise_not", "x", "all bits inverted; booleans negated", function(x)
  if x.dtype == "bool" then return ops.logical_not(x) end
  return ops.bitwise_xor(x, x.dtype == "uint8" and 255 or -1)
end, PLACE)
def("heaviside", "x, values:operand", "0 below 0, 1 above, values at 0", function(x, values)
  return ops.where(ops.eq(x, 0), values, M.to(ops.gt(x, 0), x.dtype))
end, PLACE)
def("sinc", "x", "sin(pi x) / (pi x), 1 at 0", function(x)
  return lib.widened(x, function(wide)
    local at0 = ops.lt(ops.abs(wide), 1e-36)             -- a denormal has no finite quotient, needed by the gradient
    local y = ops.masked_fill(wide, at0, 1) * math.pi
    return ops.masked_fill(ops.sin(y) / y, at0, 1)
  end)
end, PLACE)
def("deg2rad", "x", "degrees as radians", function(x) return x * (math.pi / 180) end, PLACE)
def("rad2deg", "x", "radians as degrees", function(x) return x * (180 / math.pi) end, PLACE)
def("isposinf", "x", "true where x is infinite and positive", function(x) return ops.eq(x, math.huge) end)
def("isneginf", "x", "true where x is infinite and negative", function(x) return ops.eq(x, -math.huge) end)
def("positive", "x", "x itself", function(x) return x end)
def("logaddexp2", "a, b", "log2(2^a + 2^b), without overflow", function(a, b)
  local k, dtype = math.log(2), lib.result_type(a, b)
  if not lib.RANGE[dtype] then dtype = "float32" end
  local wide = dtype == "float64" and dtype or "float32"
  return M.to(ops.logaddexp(M.to(a, wide) * k, M.to(b, wide) * k) / k, dtype)
end)
def("round", "x, *, decimals:int=0", "nearest number of so many decimals, halves to even", function(x, decimals)
  if decimals == 0 then return ops.round(x) end
  local scale = 10 ^ math.abs(decimals)
  return lib.widened(x, function(wide)
    if decimals > 0 then return ops.round(wide * scale) / scale end
    return ops.round(wide / scale) * scale
  end)
end, PLACE)
def("rsub", "a, b:operand, *, alpha:number=1", "b - alpha * a", function(a, b, alpha) return ops.sub(b, a, {alpha = alpha}) end)
def("float_power", "a:operand, b:operand", "a to the power of b in float64", function(a, b)
  return ops.pow(core.is_tensor(a) and M.double(a) or a, core.is_tensor(b) and M.double(b) or b)
end)
def("dist", "a, b, p:number=2", "the p-norm of a - b", function(a, b, p) return M.norm(a - b, p) end, {float32 = true})
def("nonzero", "x, *, as_tuple:bool=false",
  "indices of the elements that are not 0, one row each; as_tuple: a result for each dim",
  function(x, as_tuple)
    local rows = ops.nonzero(x)
    if not as_tuple then return rows end
    if M.dim(x) == 0 then return ops.ones({rows.shape[1]}, {dtype = "int64", device = x.device}) end
    local out = {}
    for d = 1, M.dim(x) do out[d] = ops.select(rows, 2, d) end
    return unpack(out)
  end)
def("nonzero_static", "x, size:int, fill_value:int=0",
  "indices of the first elements that are not 0, in exactly `size` rows; rows that are left have fill_value. Doesn't wait for a GPU",
  function(x, size, fill)
    if size < 0 then fail("nonzero_static", "size must be at least 0, got %d", size) end
    local n, o = M.numel(x), {dtype = "int64", device = x.device}
    if M.dim(x) == 0 then return ops.zeros({size, 0}, o) end
    local found = M.flatten(ops.ne(x, 0))
    local count = ops.cumsum(M.long(found), 1)
    local to = ops.where(ops.logical_and(found, ops.le(count, size)), count, size + 1)       -- the others' row is dropped
    local at = ops.scatter(ops.zeros({size + 1}, o), 1, to, ops.range(1, n, 1, o))
    at = ops.slice(at, 1, 1, size)
    local none, columns, step = ops.eq(at, 0), {}, n
    for d, extent in ipairs(x.shape) do
      step = step / math.max(extent, 1)
      columns[d] = ops.where(none, fill, ops.remainder(ops.floor_divide(at - 1, math.max(step, 1)), math.max(extent, 1)) + 1)
    end
    return ops.stack(columns, 2)
  end)
def("argwhere", "x", "indices of the elements that are not 0, one row each", function(x) return ops.nonzero(x) end)

---- other names that PyTorch has ----
lib.alias("clip", "clamp")
lib.alias("divide", "div")
lib.alias("true_divide", "div")
