-- Normal, LogNormal, Uniform, Exponential, Laplace, Bernoulli, Geometric, Categorical, OneHotCategorical, Independent.
-- Categories count from 1.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local distributions, class, together, need, parameters, same, joined, one_given, one_of,
  open_unit = base.distributions, base.class, base.together, base.need, base.parameters, base.same, base.joined,
  base.one_given, base.one_of, base.open_unit
local KL, C, supports = base.KL, base.constraints, base.supports

---- Normal(loc, scale), LogNormal(loc, scale) ----
local LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2
-- Normal(loc, scale): the mean, and the standard deviation. Distributions have sample(shape), rsample(shape), log_prob(x), entropy(),
-- cdf(x), icdf(p), mean, mode, variance, stddev, batch_shape, event_shape, where these exist. Parameters are numbers or tensors, which
-- broadcast; {validate_args = false} skips the checks of parameters and of log_prob's values.
local Normal = class("Normal", "loc, scale")
Normal.has_rsample = true
parameters(Normal, {"loc", "scale"}, {"scale"})
supports(Normal, C.real, {checked = false})
function Normal.get.mean(self) return self.loc end
function Normal.get.mode(self) return self.loc end
function Normal.get.variance(self) return ops.square(self.scale) end
function Normal:draw(shape) return ops.randn(shape, same(self.loc)) * self.scale + self.loc end
function Normal:log_prob(x) return -ops.square((x - self.loc) / self.scale) / 2 - ops.log(self.scale) - LOG_ROOT_TWO_PI end
function Normal:entropy() return ops.log(self.scale) + (0.5 + LOG_ROOT_TWO_PI) end
function Normal:cdf(x) return (ops.erf((x - self.loc) / (self.scale * math.sqrt(2))) + 1) / 2 end
function Normal:icdf(p) return self.loc + self.scale * (ops.erfinv(p * 2 - 1) * math.sqrt(2)) end

-- LogNormal(loc, scale): e to the power of a draw of Normal(loc, scale).
local LogNormal = class("LogNormal", "loc, scale")
LogNormal.has_rsample = true
function LogNormal:init(o)
  self.base = distributions.Normal(o.loc, o.scale)
  self.loc, self.scale, self.batch_shape = self.base.loc, self.base.scale, self.base.batch_shape
end
function LogNormal.get.mean(self) return ops.exp(self.loc + ops.square(self.scale) / 2) end
function LogNormal.get.mode(self) return ops.exp(self.loc - ops.square(self.scale)) end
function LogNormal:cdf(x) return self.base:cdf(ops.log(x)) end
function LogNormal:icdf(p) return ops.exp(self.base:icdf(p)) end
function LogNormal.get.variance(self)
  local v = ops.square(self.scale)
  return ops.expm1(v) * ops.exp(self.loc * 2 + v)
end
function LogNormal:draw(shape) return ops.exp(self.base:draw(shape)) end
function LogNormal:log_prob(x)
  local y = ops.log(x)
  return self.base:log_prob(y) - y
end
function LogNormal:entropy() return self.base:entropy() + self.loc end
LogNormal.arg_constraints = Normal.arg_constraints
supports(LogNormal, C.positive)

---- Uniform(low, high), Exponential(rate), Laplace(loc, scale) ----
-- Uniform(low, high): low is included, high isn't.
local Uniform = class("Uniform", "low, high")
Uniform.has_rsample = true
function Uniform:init(o)
  self.low, self.high = together("Uniform", o.low, o.high)
  need("Uniform", "low must be below high", self.low, ops.lt(self.low, self.high))
  self.batch_shape = self.low.shape
end
function Uniform.get.mean(self) return (self.low + self.high) / 2 end
function Uniform.get.variance(self) return ops.square(self.high - self.low) / 12 end
function Uniform:draw(shape) return ops.rand(shape, same(self.low)) * (self.high - self.low) + self.low end
function Uniform:log_prob(x)
  local inside = ops.logical_and(ops.ge(x, self.low), ops.lt(x, self.high))
  return ops.where(inside, -ops.log(self.high - self.low), -math.huge)
end
function Uniform.get.mode(self) return self.high * (0 / 0) end                     -- all values are equally likely
function Uniform:cdf(x) return ops.clamp((x - self.low) / (self.high - self.low), 0, 1) end
function Uniform:icdf(p) return p * (self.high - self.low) + self.low end
function Uniform:entropy() return ops.log(self.high - self.low) end
Uniform.arg_constraints = {low = C.real, high = C.real}
supports(Uniform, function(self) return C.interval(self.low, self.high) end, {checked = false})

-- Exponential(rate): the mean is 1 / rate.
local Exponential = class("Exponential", "rate")
Exponential.has_rsample = true
parameters(Exponential, {"rate"}, {"rate"})
function Exponential.get.mean(self) return 1 / self.rate end
function Exponential.get.variance(self) return 1 / ops.square(self.rate) end
function Exponential:draw(shape) return -ops.log(open_unit(shape, self.rate)) / self.rate end
function Exponential:log_prob(x) return ops.log(self.rate) - self.rate * x end
function Exponential.get.mode(self) return ops.fill(self.rate, 0) end
function Exponential:cdf(x) return -ops.expm1(-self.rate * x) end
function Exponential:icdf(p) return -ops.log1p(-p) / self.rate end
function Exponential:entropy() return 1 - ops.log(self.rate) end
supports(Exponential, C.nonnegative)

-- Laplace(loc, scale): the density is proportional to exp(-|x - loc| / scale).
local Laplace = class("Laplace", "loc, scale")
Laplace.has_rsample = true
parameters(Laplace, {"loc", "scale"}, {"scale"})
supports(Laplace, C.real, {checked = false})
function Laplace.get.mean(self) return self.loc end
function Laplace.get.variance(self) return ops.square(self.scale) * 2 end
function Laplace:draw(shape)
  local u = open_unit(shape, self.loc) - 0.5
  return self.loc - self.scale * ops.sign(u) * ops.log1p(-ops.clamp(ops.abs(u) * 2, nil, 1 - 2 ^ -24))
end
function Laplace:log_prob(x) return -ops.log(self.scale * 2) - ops.abs(x - self.loc) / self.scale end
Laplace.get.mode = Normal.get.mode
function Laplace:cdf(x)
  local d = x - self.loc
  return 0.5 - ops.sign(d) * ops.expm1(-ops.abs(d) / self.scale) * 0.5
end
function Laplace:icdf(p) return self.loc - self.scale * ops.sign(p - 0.5) * ops.log1p(ops.abs(p - 0.5) * -2) end
function Laplace:entropy() return ops.log(self.scale * 2) + 1 end

---- by probabilities or logits ----
-- Bernoulli(probs=, logits=): 1 with probability probs, else 0, floating. Exactly one of the two is given; logits are log(p / (1 - p)).
local Bernoulli = class("Bernoulli", "probs=nil, logits=nil")
function Bernoulli:init(o)
  local given = one_of("Bernoulli", o.probs, o.logits)
  self.p, self.l, self.batch_shape = o.probs ~= nil and given or nil, o.logits ~= nil and given or nil, given.shape
end
function Bernoulli.get.probs(self) return rawget(self, "p") or ops.sigmoid(rawget(self, "l")) end
function Bernoulli.get.logits(self) return rawget(self, "l") or M.logit(rawget(self, "p"), lib.EPS[rawget(self, "p").dtype]) end
function Bernoulli.get.mean(self) return self.probs end
function Bernoulli.get.variance(self) return self.probs * (1 - self.probs) end
function Bernoulli.get.mode(self)
  local p = self.probs
  return ops.masked_fill(M.to(ops.ge(p, 0.5), p.dtype), ops.eq(p, 0.5), 0 / 0)     -- both are modes
end
function Bernoulli:draw(shape) return ops.bernoulli(ops.expand(self.probs, shape)) end
function Bernoulli:log_prob(x) return x * self.logits - ops.softplus(self.logits, {threshold = 40}) end
function Bernoulli:entropy() return ops.softplus(self.logits, {threshold = 40}) - self.logits * self.probs end
Bernoulli.has_enumerate_support, Bernoulli.arg_constraints = true, {probs = C.unit_interval, logits = C.real}
function Bernoulli:values() return ops.range(0, 1, 1, same(self.probs)) end
supports(Bernoulli, C.boolean)

-- Geometric(probs=, logits=): the number of failures before the first success, from 0.
local Geometric = class("Geometric", "probs=nil, logits=nil")
Geometric.get.probs, Geometric.get.logits = Bernoulli.get.probs, Bernoulli.get.logits
function Geometric:init(o)
  Bernoulli.init(self, o)
  if o.probs ~= nil then need("Geometric", "probs must be above 0", self.probs, ops.gt(self.probs, 0)) end
end
function Geometric.get.mean(self) return 1 / self.probs - 1 end
function Geometric.get.variance(self) return (1 / self.probs - 1) / self.probs end
function Geometric.get.mode(self) return ops.fill(self.probs, 0) end
function Geometric:draw(shape) return ops.floor(ops.log(open_unit(shape, self.probs)) / ops.log1p(-self.probs)) end
function Geometric:log_prob(x) return ops.xlog1py(x, -self.probs) + ops.log(self.probs) end
function Geometric:entropy() return Bernoulli.entropy(self) / self.probs end
Geometric.arg_constraints = Bernoulli.arg_constraints
supports(Geometric, C.nonnegative_integer)

-- Categorical(probs=, logits=): int64 from 1 to n, the size of the last dim of probs, which needn't add up to 1, or of logits.
local Categorical = class("Categorical", "probs=nil, logits=nil")
function Categorical:init(o)
  local name = self._name
  one_given(name, o.probs, o.logits)
  local given = o.probs == nil and o.logits or o.probs
  if type(given) == "table" and #given > 0 then given = core.from_value(given, "float32") end
  if not core.is_tensor(given) or M.dim(given) == 0 then
    fail("%s: probs and logits must be tensors whose last dim has the categories", name)
  end
  if o.probs ~= nil then
    need(name, "probs must not be negative, nor all 0", given,
        ops.logical_and(ops.all(ops.ge(given, 0), -1), ops.gt(ops.sum(given, -1), 0)))
    self.p = given / ops.sum(given, -1, {keepdim = true})
  else
    need(name, "logits must be numbers below inf, not all -inf", given,
      ops.logical_and(ops.all(ops.lt(given, math.huge), -1), ops.any(ops.gt(given, -math.huge), -1)))
    self.l = ops.log_softmax(given, -1)
  end
  self.n = given.shape[M.dim(given)]
  self.batch_shape = joined(given.shape)
  table.remove(self.batch_shape)
end
function Categorical.get.probs(self) return rawget(self, "p") or ops.exp(rawget(self, "l")) end
function Categorical.get.logits(self)
  local p = rawget(self, "p")
  if not p then return rawget(self, "l") end
  local eps = lib.EPS[p.dtype]
  return ops.log(ops.clamp(p, eps, 1 - eps))
end
function Categorical.get.mode(self) return M.argmax(self.probs, -1) end
function Categorical:draw(shape)
  local p, total = M.reshape(self.probs, -1, self.n), 1
  for i = 1, #shape - #self.batch_shape do total = total * shape[i] end
  if total == 0 or p.shape[1] == 0 then return ops.zeros(shape, {dtype = "int64", device = p.device}) end
  return M.reshape(M.t(ops.multinomial(p, total, {replacement = true})), shape)
end
function Categorical:log_prob(x)
  local l = self.logits
  local shape = lib.common_shape("log_prob", {x.shape, ops.select(l, -1, 1).shape})
  local wide = joined(shape, {self.n})
  if M.dim(x) == 0 then x = M.to(x, l.device) end          -- a tensor made of a number is on the CPU
  return M.squeeze(ops.gather(ops.expand(l, wide), -1, M.unsqueeze(ops.expand(M.long(x), joined(shape)), -1)), -1)
end
Categorical.has_enumerate_support, Categorical.arg_constraints = true, {probs = C.simplex, logits = C.real_vector}
function Categorical:values() return ops.range(1, self.n, 1, {dtype = "int64", device = self.probs.device}) end
supports(Categorical, function(self) return C.integer_interval(1, self.n) end, {text = "a category, a whole number from 1"})
function Categorical:entropy() return -ops.sum(ops.clamp(self.logits, -lib.RANGE[self.logits.dtype].max) * self.probs, -1) end

-- OneHotCategorical(probs=, logits=): as Categorical; values are vectors with a 1 at the category's place.
local OneHot = class("OneHotCategorical", "probs=nil, logits=nil")
function OneHot:init(o)
  self.base = distributions.Categorical {probs = o.probs, logits = o.logits}
  self.batch_shape, self.event_shape = self.base.batch_shape, {self.base.n}
end
function OneHot.get.probs(self) return self.base.probs end
function OneHot.get.logits(self) return self.base.logits end
function OneHot.get.mean(self) return self.base.probs end
function OneHot.get.variance(self) return self.base.probs * (1 - self.base.probs) end
function OneHot.get.mode(self) return M.to(F.one_hot(self.base.mode, self.base.n), self.base.probs.dtype) end
function OneHot:draw(shape)
  local outer = joined(shape)
  table.remove(outer)
  return M.to(F.one_hot(self.base:draw(outer), self.base.n), self.base.probs.dtype)
end
function OneHot:log_prob(x) return ops.sum(x * self.base.logits, -1) end
function OneHot:entropy() return self.base:entropy() end
OneHot.has_enumerate_support, OneHot.arg_constraints = true, Categorical.arg_constraints
function OneHot:values() return ops.eye(self.base.n, same(self.base.probs)) end
supports(OneHot, C.one_hot)

-- Independent(base_distribution, reinterpreted_batch_ndims): treats that many last batch dims as dims of one event, whose log-probabilities
-- add up.
local Independent = class("Independent", "base_distribution, reinterpreted_batch_ndims")
function Independent:init(o)
  local of, n = o.base_distribution, o.reinterpreted_batch_ndims
  if type(of) ~= "table" or not of.batch_shape then fail("Independent: argument 1 must be a distribution, got %s", options.shown(of)) end
  if type(n) ~= "number" or n < 0 or n > #of.batch_shape or n % 1 ~= 0 then
    fail("Independent: argument 2 must be a number of batch dims, from 0 to %d, got %s", #of.batch_shape, options.shown(n))
  end
  local event = {}
  self.base, self.n, self.has_rsample, self.batch_shape = of, n, of.has_rsample, {}
  self.has_enumerate_support = n == 0 and of.has_enumerate_support
  for i, size in ipairs(of.batch_shape) do table.insert(i <= #of.batch_shape - n and self.batch_shape or event, size) end
  self.event_shape = joined(event, of.event_shape)
end
function Independent.get.mean(self) return self.base.mean end
function Independent.get.mode(self) return self.base.mode end
function Independent.get.variance(self) return self.base.variance end
function Independent.get.base_dist(self) return self.base end
function Independent.get.reinterpreted_batch_ndims(self) return self.n end
supports(Independent, function(self) return C.independent(self.base.support, self.n) end, {checked = false})
function Independent:values() return self.base:values() end
function Independent:over(x)
  local dims = {}
  for i = 1, self.n do dims[i] = -i end
  return self.n > 0 and ops.sum(x, dims) or x
end
function Independent:draw(shape) return self.base:draw(shape) end
function Independent:log_prob(x) return self:over(self.base:log_prob(x)) end
function Independent:entropy() return self:over(self.base:entropy()) end

---- how much is lost where q stands for p ----
function KL.Normal(p, q)
  local ratio = ops.square(p.scale / q.scale)
  return (ratio + ops.square((p.loc - q.loc) / q.scale) - 1 - ops.log(ratio)) / 2
end
KL.LogNormal = KL.Normal
function KL.Uniform(p, q)
  local within = ops.logical_and(ops.le(q.low, p.low), ops.ge(q.high, p.high))
  return ops.where(within, ops.log((q.high - q.low) / (p.high - p.low)), math.huge)
end
function KL.Exponential(p, q)
  local ratio = q.rate / p.rate
  return ratio - 1 - ops.log(ratio)
end
function KL.Laplace(p, q)
  local ratio, far = p.scale / q.scale, ops.abs(p.loc - q.loc)
  return -ops.log(ratio) + far / q.scale + ratio * ops.exp(-far / p.scale) - 1
end
-- Uses log-odds, since probabilities near 1 lose precision.
function KL.Bernoulli(p, q)
  local function part(a, b, of_p, of_q)
    local t = a * (ops.softplus(of_q, {threshold = 40}) - ops.softplus(of_p, {threshold = 40}))
    return ops.where(ops.eq(a, 0), 0, ops.where(ops.eq(b, 0), math.huge, t))
  end
  return part(p.probs, q.probs, -p.logits, -q.logits) + part(1 - p.probs, 1 - q.probs, p.logits, q.logits)
end
function KL.Geometric(p, q) return -p:entropy() - ops.log1p(-q.probs) / p.probs - q.logits end
function KL.Categorical(p, q)
  local t = p.probs * (p.logits - q.logits)
  return ops.sum(ops.where(ops.eq(p.probs, 0), 0, ops.where(ops.eq(q.probs, 0), math.huge, t)), -1)
end
function KL.OneHotCategorical(p, q) return KL.Categorical(p.base, q.base) end
function KL.Independent(p, q)
  if p.n ~= q.n then fail("kl_divergence: two Independent must be over the same number of dims, got %d and %d", p.n, q.n) end
  return p:over(distributions.kl_divergence(p.base, q.base))
end
