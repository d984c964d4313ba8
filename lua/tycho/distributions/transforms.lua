-- Transforms of values, as torch.distributions.transforms: of single elements, and made of other transforms.
--
-- Idea: a transform is t(x), its inverse t.inv(y), and t:log_abs_det_jacobian(x, y), the log of the factor by which volume grows at x. The
-- constraints domain and codomain say where values may be and, by their event_dim, how many last dims are transformed together: the
-- log-determinant lacks that many of x's dims. Invariants: t.inv.inv is t; forward and inverse keep all other dims; a transform that isn't
-- bijective has no log-determinant. A transform is defined by forward, inverse and slope; slope gets y only if it is known.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local constraints = require "tycho.distributions.constraints"
local fail = options.fail
local ops, M = core.ops, core.methods
local C = constraints

local HAS = "it has forward, inverse, inv, log_abs_det_jacobian, domain, codomain, event_dim, bijective, sign, forward_shape and " ..
  "inverse_shape"
local transforms, inverse_of = {}, nil
local function is_transform(v) return type(v) == "table" and rawget(getmetatable(v) or {}, "is_transform") == true end

---- what all transforms have ----
local Transform = {is_transform = true, bijective = true, domain = C.real, codomain = C.real}
-- t:log_abs_det_jacobian(x, y): log |det dy/dx| with x's shape except the dims of t.domain.event_dim. y, which is t(x), may be omitted. An
-- error for a transform that isn't bijective.
function Transform:log_abs_det_jacobian(x, y)
  if not self.bijective then fail("%s: this transform has no log_abs_det_jacobian, as it isn't bijective", tostring(self)) end
  return self:slope(x, y)
end
-- t:forward_shape({sizes}), t:inverse_shape({sizes}): the shape of the result for an x, or a y, of this shape
function Transform.forward_shape(_, shape) return shape end
function Transform.inverse_shape(_, shape) return shape end
local get = {}
function get.event_dim(self)
  local a, b = self.domain.event_dim, self.codomain.event_dim
  if a ~= b then fail("%s: no single event_dim: it maps events of %d dims to events of %d; use domain.event_dim or codomain.event_dim",
    tostring(self), a, b) end
  return a
end
local function field(t, self, k)
  local fn = t.get and t.get[k]
  if fn then return fn(self) end
  local v = t[k]
  if v == nil then v = Transform[k] end
  if v == nil and get[k] then return get[k](self) end
  if v == nil and not t.own then fail("%s has no '%s'; %s", tostring(self), tostring(k), HAS) end
  return v
end

-- Checks users' arguments: a tensor or a number; below, a list of sizes
local function of_values(name, what, fn)
  return function(t, x, y)
    if type(x) == "number" then x = ops.full({}, x, {dtype = "float32", device = "cpu"}) end
    if not core.is_tensor(x) then fail("%s: %s needs a tensor or a number, got %s", name, what, options.shown(x)) end
    return fn(t, x, y)
  end
end
local function of_sizes(name, what, fn)
  return function(t, shape)
    if type(shape) ~= "table" or core.is_tensor(shape) then
      fail("%s: %s needs a list of sizes, got %s", name, what, options.shown(shape))
    end
    for i = 1, #shape do options.whole(name, what .. ": size " .. i, shape[i], 0) end
    return fn(t, shape)
  end
end

-- A transform's method with checks of its arguments; other values unchanged.
local function checking(name, k, v)
  if v ~= nil and (k == "forward" or k == "inverse" or k == "slope") then return of_values(name, k, v) end
  if v ~= nil and (k == "forward_shape" or k == "inverse_shape") then return of_sizes(name, k, v) end
  return v
end
-- Defines a transform by its name, its arguments' signature and a table: forward, inverse, slope; init(self) checks the arguments;
-- get.name(self) computes a field. Each also takes cache_size, 0 or 1: see TransformedDistribution. own: a user's own, whose unknown fields
-- are nil. Gives t, the class, and its constructor, which becomes transforms[name] unless it is a user's own.
local function transform(name, signature, t)
  t.is_transform, t._name = true, name
  function t.__index(self, k)
    if k == "inv" then return inverse_of(self) end
    return field(t, self, k)
  end
  for _, k in ipairs {"forward", "inverse", "slope"} do t[k] = checking(name, k, t[k]) end
  for _, k in ipairs {"forward_shape", "inverse_shape"} do t[k] = checking(name, k, t[k] or Transform[k]) end
  function t.__call(self, x) return self:forward(x) end
  function t.__tostring() return name end
  local function make(...)
    local self = setmetatable(options.arguments(name, signature .. (signature == "" and "" or ", ") .. "cache_size=0", ...), t)
    local cache = options.whole(name, "cache_size", self.cache_size, 0)
    if cache > 1 then fail("%s: cache_size must be 0 or 1, got %d", name, cache) end
    if t.init then t.init(self, name) end
    return self
  end
  if not t.own then transforms[name] = make end
  return t, make
end
local Inverse = {is_transform = true, get = {}}
function Inverse.__index(self, k) return field(Inverse, self, k) end
function Inverse.get.domain(self) return self.inv.codomain end
function Inverse.get.codomain(self) return self.inv.domain end
function Inverse.get.bijective(self) return self.inv.bijective end
function Inverse.get.sign(self) return self.inv.sign end
function Inverse.get.cache_size(self) return self.inv.cache_size end
function Inverse:forward(y) return self.inv:inverse(y) end
function Inverse:inverse(x) return self.inv:forward(x) end
function Inverse:slope(y, x) return -self.inv:slope(x or self.inv:inverse(y), y) end
function Inverse:forward_shape(shape) return self.inv:inverse_shape(shape) end
function Inverse:inverse_shape(shape) return self.inv:forward_shape(shape) end
Inverse.__call = Inverse.forward
Inverse.__tostring = function(self) return tostring(self.inv) .. ".inv" end
local inverses = setmetatable({}, {__mode = "kv"})         -- while someone holds it: a transform has one inverse
function inverse_of(t)
  inverses[t] = inverses[t] or setmetatable({inv = t}, Inverse)
  return inverses[t]
end

local function check(who, what, t)
  if not is_transform(t) then fail("%s: %s must be a transform, got %s", who, what, options.shown(t)) end
  return t
end
local function check_list(who, list)
  if type(list) ~= "table" or is_transform(list) then
    fail("%s: argument 1 must be a list of transforms, got %s", who, is_transform(list) and "a transform" or options.shown(list))
  end
  options.items(who, "the list of transforms", list)
  for i, t in ipairs(list) do
    if not is_transform(t) then fail("%s: item %d of the list is %s, not a transform", who, i, options.shown(t)) end
  end
  return {unpack(list)}
end
local function sum_last(x, n)
  local dims = {}
  for i = 1, n do dims[i] = -i end
  return n > 0 and ops.sum(x, dims) or x
end
-- A shape broadcast with those of parameters, numbers or tensors
local function with_parameters(who, shape, ...)
  local shapes = {shape}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if core.is_tensor(v) then shapes[#shapes + 1] = v.shape end
  end
  return #shapes > 1 and lib.common_shape(who, shapes) or shape
end

-- Whether two transforms are the same mapping: one object, or of one class with equal parameters.
local function same(a, b)
  if rawequal(a, b) then return true end
  if core.is_tensor(a) and core.is_tensor(b) then return M.equal(a, b) end
  if type(a) ~= "table" or type(b) ~= "table" or core.is_tensor(a) or core.is_tensor(b) or getmetatable(a) ~= getmetatable(b) then
    return false
  end
  for k, v in pairs(a) do if k ~= "cache_size" and not same(v, rawget(b, k)) then return false end end
  for k in pairs(b) do if rawget(a, k) == nil then return false end end
  return true
end

---- of single elements ----
-- y = exp(x)
transform("ExpTransform", "", {codomain = C.positive, sign = 1,
  forward = function(_, x) return ops.exp(x) end, inverse = function(_, y) return ops.log(y) end, slope = function(_, x) return x end})
-- y = tanh(x)
transform("TanhTransform", "", {codomain = C.interval(-1, 1), sign = 1,
  forward = function(_, x) return ops.tanh(x) end, inverse = function(_, y) return ops.atanh(y) end,
  slope = function(_, x) return (math.log(2) - x - ops.softplus(x * -2)) * 2 end})
local function within_unit(y)
  if not M.is_floating_point(y) then y = M.float(y) end
  return ops.clamp(y, lib.RANGE[y.dtype].tiny, 1 - lib.EPS[y.dtype])
end
-- y = 1 / (1 + exp(-x)), kept off 0 and 1, and so is y in the inverse
transform("SigmoidTransform", "", {codomain = C.unit_interval, sign = 1,
  forward = function(_, x) return within_unit(ops.sigmoid(x)) end,
  inverse = function(_, y)
    y = within_unit(y)
    return ops.log(y) - ops.log1p(-y)
  end,
  slope = function(_, x) return -ops.softplus(-x) - ops.softplus(x) end})
-- y = log(1 + exp(x))
transform("SoftplusTransform", "", {codomain = C.positive, sign = 1,
  forward = function(_, x) return ops.softplus(x) end, inverse = function(_, y) return ops.log(-ops.expm1(-y)) + y end,
  slope = function(_, x) return -ops.softplus(-x) end})
-- y = |x|: not bijective; its inverse is the nonnegative value
transform("AbsTransform", "", {codomain = C.nonnegative, bijective = false,
  forward = function(_, x) return ops.abs(x) end, inverse = function(_, y) return y end})

-- AffineTransform(loc, scale, {event_dim=0}): y = loc + scale x; loc and scale are numbers or tensors that broadcast with x;
-- log-determinants are summed over the last event_dim dims
transform("AffineTransform", "loc, scale, event_dim=0", {
  init = function(t, name) options.whole(name, "event_dim", t.event_dim, 0) end,
  get = {
    domain = function(t) return t.event_dim == 0 and C.real or C.independent(C.real, t.event_dim) end,
    codomain = function(t) return t.domain end,
    sign = function(t)
      local s = t.scale
      if core.is_tensor(s) then return ops.sign(s) end
      return s > 0 and 1 or s < 0 and -1 or 0
    end,
  },
  forward = function(t, x) return t.loc + t.scale * x end, inverse = function(t, y) return (y - t.loc) / t.scale end,
  slope = function(t, x)
    local s = t.scale
    local flat = ops.zeros(x.shape, {dtype = x.dtype, device = x.device})
    return sum_last(flat + (core.is_tensor(s) and ops.log(ops.abs(s)) or math.log(math.abs(s))), t.event_dim)
  end,
  forward_shape = function(t, shape) return with_parameters("AffineTransform", shape, t.loc, t.scale) end,
  inverse_shape = function(t, shape) return with_parameters("AffineTransform", shape, t.loc, t.scale) end})

-- PowerTransform(exponent): y = x ^ exponent for values above 0; exponent is a number or a tensor that broadcasts with x
transform("PowerTransform", "exponent", {domain = C.positive, codomain = C.positive,
  get = {sign = function(t)
    local e = t.exponent
    if core.is_tensor(e) then return ops.sign(e) end
    return e > 0 and 1 or e < 0 and -1 or 0
  end},
  forward = function(t, x) return ops.pow(x, t.exponent) end, inverse = function(t, y) return ops.pow(y, 1 / t.exponent) end,
  slope = function(t, x, y) return ops.log(ops.abs(t.exponent * (y or ops.pow(x, t.exponent)) / x)) end,
  forward_shape = function(t, shape) return with_parameters("PowerTransform", shape, t.exponent) end,
  inverse_shape = function(t, shape) return with_parameters("PowerTransform", shape, t.exponent) end})

-- CumulativeDistributionTransform(distribution): y = distribution:cdf(x), within 0..1; the inverse needs the distribution's icdf
transform("CumulativeDistributionTransform", "distribution", {codomain = C.unit_interval, sign = 1,
  init = function(t, name)
    local d = t.distribution
    if type(d) ~= "table" or rawget(d, "batch_shape") == nil then
      fail("%s: argument 1 must be a distribution, got %s", name, options.shown(d))
    end
    if #d.event_shape > 0 then fail("%s: the distribution's events must be numbers, got event shape %s", name, tostring(d.event_shape)) end
  end,
  get = {domain = function(t) return t.distribution.support end},
  forward = function(t, x) return t.distribution:cdf(x) end, inverse = function(t, y) return t.distribution:icdf(y) end,
  slope = function(t, x) return t.distribution:log_prob(x) end,
  forward_shape = function(t, shape) return lib.common_shape("CumulativeDistributionTransform", {shape, t.distribution.batch_shape}) end,
  inverse_shape = function(t, shape) return lib.common_shape("CumulativeDistributionTransform", {shape, t.distribution.batch_shape}) end})

---- of several last dims ----
-- IndependentTransform(base_transform, reinterpreted_batch_ndims): base_transform with its log-determinants summed over that many more dims
transform("IndependentTransform", "base_transform, reinterpreted_batch_ndims", {
  init = function(t, name)
    check(name, "argument 1", t.base_transform)
    options.whole(name, "reinterpreted_batch_ndims", t.reinterpreted_batch_ndims, 0)
  end,
  get = {
    domain = function(t) return C.independent(t.base_transform.domain, t.reinterpreted_batch_ndims) end,
    codomain = function(t) return C.independent(t.base_transform.codomain, t.reinterpreted_batch_ndims) end,
    bijective = function(t) return t.base_transform.bijective end,
    sign = function(t) return t.base_transform.sign end,
  },
  forward = function(t, x)
    if M.dim(x) < t.domain.event_dim then
      fail("IndependentTransform: values must have at least %d dims, got shape %s", t.domain.event_dim, tostring(x.shape))
    end
    return t.base_transform:forward(x)
  end,
  inverse = function(t, y)
    if M.dim(y) < t.codomain.event_dim then
      fail("IndependentTransform: values must have at least %d dims, got shape %s", t.codomain.event_dim, tostring(y.shape))
    end
    return t.base_transform:inverse(y)
  end,
  slope = function(t, x, y) return sum_last(t.base_transform:slope(x, y), t.reinterpreted_batch_ndims) end,
  forward_shape = function(t, shape) return t.base_transform:forward_shape(shape) end,
  inverse_shape = function(t, shape) return t.base_transform:inverse_shape(shape) end})

-- The shape with its last dims, which must equal `from`, replaced by `to`
local function swapped(shape, from, to)
  local out, cut = {}, #shape - #from
  for i, n in ipairs(from) do
    if shape[cut + i] ~= n then
      fail("ReshapeTransform: the last dims must be %s, got shape %s", table.concat(from, "x"), table.concat(shape, "x"))
    end
  end
  for i = 1, cut do out[i] = shape[i] end
  for _, n in ipairs(to) do out[#out + 1] = n end
  return out
end
-- ReshapeTransform({in_shape}, {out_shape}): reshapes the last dims, in_shape, to out_shape, which has as many elements
transform("ReshapeTransform", "in_shape, out_shape", {
  init = function(t, name)
    local count = {}
    for _, k in ipairs {"in_shape", "out_shape"} do
      if type(t[k]) ~= "table" then fail("%s: %s must be a list of sizes, got %s", name, k, options.shown(t[k])) end
      t[k], count[k] = {unpack(t[k])}, 1
      for i, n in ipairs(t[k]) do count[k] = count[k] * options.whole(name, k .. "[" .. i .. "]", n, 0) end
    end
    if count.in_shape ~= count.out_shape then
      fail("%s: in_shape and out_shape must have the same number of elements, got %d and %d", name, count.in_shape, count.out_shape)
    end
  end,
  get = {
    domain = function(t) return C.independent(C.real, #t.in_shape) end,
    codomain = function(t) return C.independent(C.real, #t.out_shape) end,
  },
  forward = function(t, x) return M.reshape(x, t:forward_shape(x.shape)) end,
  inverse = function(t, y) return M.reshape(y, t:inverse_shape(y.shape)) end,
  slope = function(t, x) return ops.zeros(swapped(x.shape, t.in_shape, {}), {dtype = x.dtype, device = x.device}) end,
  forward_shape = function(t, shape) return swapped(shape, t.in_shape, t.out_shape) end,
  inverse_shape = function(t, shape) return swapped(shape, t.out_shape, t.in_shape) end})

---- made of others ----
-- The event dims of a chain's domain and codomain: as many as its parts together need.
local function chain_dims(parts)
  local into, out = 0, 0
  for i = #parts, 1, -1 do
    local a, b = parts[i].domain.event_dim, parts[i].codomain.event_dim
    into = math.max((i == #parts and b or into) + a - b, a)
  end
  for i, p in ipairs(parts) do
    local a, b = p.domain.event_dim, p.codomain.event_dim
    out = math.max((i == 1 and a or out) + b - a, b)
  end
  return into, out
end
local function widened(constraint, dims)
  return dims > constraint.event_dim and C.independent(constraint, dims - constraint.event_dim) or constraint
end
local function all_bijective(list)
  for _, p in ipairs(list) do if not p.bijective then return false end end
  return true
end
local function through(method, first, last, step)
  return function(t, x)
    for i = first == 1 and 1 or #t.parts, last == 1 and 1 or #t.parts, step do x = t.parts[i][method](t.parts[i], x) end
    return x
  end
end
-- ComposeTransform{parts}: the parts in order
transform("ComposeTransform", "parts", {
  init = function(t, name) t.parts = check_list(name, t.parts) end,
  get = {
    domain = function(t) return #t.parts == 0 and C.real or widened(t.parts[1].domain, (chain_dims(t.parts))) end,
    codomain = function(t) return #t.parts == 0 and C.real or widened(t.parts[#t.parts].codomain, (select(2, chain_dims(t.parts)))) end,
    bijective = function(t) return all_bijective(t.parts) end,
    sign = function(t)
      local s = 1
      for _, p in ipairs(t.parts) do s = s * p.sign end
      return s
    end,
  },
  forward = through("forward", 1, 2, 1), inverse = through("inverse", 2, 1, -1),
  slope = function(t, x, y)
    local dims, sum = chain_dims(t.parts), nil
    for i, p in ipairs(t.parts) do
      local after = i == #t.parts and y or i < #t.parts and p:forward(x) or nil
      local one = sum_last(p:slope(x, after), dims - p.domain.event_dim)
      sum, x, dims = sum and sum + one or one, after, dims + p.codomain.event_dim - p.domain.event_dim
    end
    return sum or ops.fill(x, 0)
  end,
  forward_shape = through("forward_shape", 1, 2, 1), inverse_shape = through("inverse_shape", 2, 1, -1)})

-- Common to CatTransform and StackTransform: each part i of x (and of y) along dim goes through its transform, and the results are joined.
local function parts_of(t, x)
  local dim = lib.wrap(t.name, t.dim, M.dim(x))
  if x.shape[dim] ~= t.total then
    fail("%s: dim %d must have %d elements, got shape %s", t.name, t.dim, t.total, tostring(x.shape))
  end
  return dim
end
local function each(method)
  return function(t, x)
    local dim, out = parts_of(t, x), {}
    for i, p in ipairs(t.transforms) do out[i] = p[method](p, t:part(x, dim, i)) end
    return t.join(out, dim)
  end
end
local function list_init(t, name, lengths)
  if type(t.dim) ~= "number" or t.dim % 1 ~= 0 or t.dim == 0 then
    fail("%s: dim must be a whole number other than 0, got %s", name, options.shown(t.dim))
  end
  t.transforms, t.total = check_list(name, t.tseq), 0
  t.tseq, t.name = nil, name
  for i = 1, #t.transforms do t.total = t.total + (lengths and lengths[i] or 1) end
end
local function constraints_of(t, which)
  local list = {}
  for i, p in ipairs(t.transforms) do list[i] = p[which] end
  return list
end
local function dims_of_parts(t)
  local most = 0
  for _, p in ipairs(t.transforms) do most = math.max(most, p.event_dim) end
  return most
end

-- CatTransform({transforms}, {dim=1, lengths}): transforms the first lengths[1] elements along dim (by default 1 each) by the first, and so
-- on. An error if x has another number of elements there.
transform("CatTransform", "tseq, dim=1, lengths=nil", {
  init = function(t, name)
    local n = type(t.tseq) == "table" and #t.tseq or 0
    if rawget(t, "lengths") == nil then
      t.lengths = {}
      for i = 1, n do t.lengths[i] = 1 end
    end
    if type(t.lengths) ~= "table" or #t.lengths ~= n then
      fail("%s: lengths must be a list of %d numbers, one for each transform, got %s", name, n,
        type(t.lengths) == "table" and #t.lengths or options.shown(t.lengths))
    end
    for i, length in ipairs(t.lengths) do options.whole(name, "lengths[" .. i .. "]", length, 0) end
    list_init(t, name, t.lengths)
  end,
  get = {
    domain = function(t) return C.cat(constraints_of(t, "domain"), t.dim, t.lengths) end,
    codomain = function(t) return C.cat(constraints_of(t, "codomain"), t.dim, t.lengths) end,
    event_dim = dims_of_parts,
    bijective = function(t) return all_bijective(t.transforms) end,
  },
  part = function(t, x, dim, i)
    local first = 1
    for k = 1, i - 1 do first = first + t.lengths[k] end
    return M.narrow(x, dim, first, t.lengths[i])
  end,
  join = function(list, dim) return ops.cat(list, dim) end,
  forward = each "forward", inverse = each "inverse",
  slope = function(t, x, y)
    local dim, out, most = parts_of(t, x), {}, t.event_dim
    for i, p in ipairs(t.transforms) do
      out[i] = sum_last(p:slope(t:part(x, dim, i), y and t:part(y, dim, i)), most - p.event_dim)
    end
    if dim <= M.dim(x) - most then return ops.cat(out, dim) end        -- else dim is an event's: its parts add up
    local sum = out[1]
    for i = 2, #out do sum = sum + out[i] end
    return sum
  end})

-- StackTransform({transforms}, {dim=1}): transforms select(dim, i) by the i-th transform
transform("StackTransform", "tseq, dim=1", {
  init = list_init,
  get = {
    domain = function(t) return C.stack(constraints_of(t, "domain"), t.dim) end,
    codomain = function(t) return C.stack(constraints_of(t, "codomain"), t.dim) end,
    bijective = function(t) return all_bijective(t.transforms) end,
  },
  part = function(_, x, dim, i) return ops.select(x, dim, i) end,
  join = function(list, dim) return ops.stack(list, dim) end,
  forward = each "forward", inverse = each "inverse",
  slope = function(t, x, y)
    local dim, out = parts_of(t, x), {}
    for i, p in ipairs(t.transforms) do out[i] = p:slope(t:part(x, dim, i), y and t:part(y, dim, i)) end
    return ops.stack(out, dim)
  end})

-- The identity
transforms.identity_transform = transforms.ComposeTransform({})

return {transforms = transforms, define = transform, checking = checking, is_transform = is_transform, check_list = check_list,
  sum_last = sum_last, same = same}
