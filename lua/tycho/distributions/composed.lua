-- Distributions made of others or of simple draws: Cauchy, HalfNormal, HalfCauchy, Gumbel, Weibull, Pareto, GeneralizedPareto,
-- MixtureSameFamily.
local core = require "tycho.core"
local options = require "tycho.options"
local base = require "tycho.distributions.base"
local fail = options.fail
local ops, M = core.ops, core.methods
local distributions, class, together, parameters, joined, open_unit, KL = base.distributions, base.class,
  base.together, base.parameters, base.joined, base.open_unit, base.KL
local C, supports = base.constraints, base.supports
local EULER = 0.57721566490153286

local function nothing(self) return self.loc * 0 + 0 / 0 end

-- Cauchy(loc, scale): the ratio of two normal numbers, scaled and shifted; it has no mean.
local Cauchy = class("Cauchy", "loc, scale")
Cauchy.has_rsample = true
parameters(Cauchy, {"loc", "scale"}, {"scale"})
supports(Cauchy, C.real, {checked = false})
Cauchy.get.mean = nothing
function Cauchy.get.variance(self) return self.scale + math.huge end
function Cauchy:draw(shape) return self.loc + self.scale * ops.tan((open_unit(shape, self.loc) - 0.5) * math.pi) end
function Cauchy:log_prob(x) return -math.log(math.pi) - ops.log(self.scale) - ops.log1p(ops.square((x - self.loc) / self.scale)) end
function Cauchy:entropy() return ops.log(self.scale) + math.log(4 * math.pi) end
function Cauchy.get.mode(self) return self.loc end
function Cauchy:icdf(p) return self.loc + self.scale * ops.tan((p - 0.5) * math.pi) end
function Cauchy:cdf(x) return ops.atan((x - self.loc) / self.scale) / math.pi + 0.5 end

-- Gumbel(loc, scale): the distribution that the largest of many numbers approaches.
local Gumbel = class("Gumbel", "loc, scale")
Gumbel.has_rsample = true
parameters(Gumbel, {"loc", "scale"}, {"scale"})
supports(Gumbel, C.real, {checked = false})
function Gumbel.get.mean(self) return self.loc + self.scale * EULER end
function Gumbel.get.variance(self) return ops.square(self.scale) * (math.pi ^ 2 / 6) end
function Gumbel:draw(shape) return self.loc - self.scale * ops.log(-ops.log(open_unit(shape, self.loc))) end
function Gumbel:log_prob(x)
  local y = (self.loc - x) / self.scale
  return y - ops.exp(y) - ops.log(self.scale)
end
function Gumbel.get.mode(self) return self.loc end
function Gumbel:cdf(x) return ops.exp(-ops.exp((self.loc - x) / self.scale)) end
function Gumbel:icdf(p) return self.loc - self.scale * ops.log(-ops.log(p)) end
function Gumbel:entropy() return ops.log(self.scale) + (1 + EULER) end

-- Defines the distribution of another one's absolute values.
local function half(name, whole)
  local c = class(name, "scale")
  c.has_rsample, c.arg_constraints = true, {scale = C.positive}
  supports(c, C.nonnegative, {checked = false})
  function c:init(o)
    local scale = together(name, o.scale)
    self.base, self.scale, self.batch_shape = distributions[whole](ops.fill(scale:detach(), 0), scale), scale, scale.shape
  end
  function c:draw(shape) return ops.abs(self.base:draw(shape)) end
  function c:log_prob(x)
    return ops.where(ops.ge(x, 0), self.base:log_prob(x) + math.log(2), -math.huge)
  end
  function c:entropy() return self.base:entropy() - math.log(2) end
  function c.get.mode(self) return ops.fill(self.scale, 0) end
  function c:cdf(x) return ops.clamp(self.base:cdf(x) * 2 - 1, 0) end
  function c:icdf(p) return self.base:icdf((p + 1) / 2) end
  KL[name] = function(p, q) return KL[whole](p.base, q.base) end
  return c
end
-- HalfNormal(scale), HalfCauchy(scale): the absolute values of Normal(0, scale) and Cauchy(0, scale).
local HalfNormal, HalfCauchy = half("HalfNormal", "Normal"), half("HalfCauchy", "Cauchy")
function HalfNormal.get.mean(self) return self.scale * math.sqrt(2 / math.pi) end
function HalfNormal.get.variance(self) return ops.square(self.scale) * (1 - 2 / math.pi) end
function HalfCauchy.get.mean(self) return self.scale + math.huge end
function HalfCauchy.get.variance(self) return self.scale + math.huge end

-- Weibull(scale, concentration): scale times an Exponential(1) draw to the power of 1 / concentration.
local Weibull = class("Weibull", "scale, concentration")
Weibull.has_rsample = true
parameters(Weibull, {"scale", "concentration"}, {"scale", "concentration"})
local function moment(self, k) return ops.exp(ops.lgamma(k / self.concentration + 1)) end
function Weibull.get.mean(self) return self.scale * moment(self, 1) end
function Weibull.get.variance(self) return ops.square(self.scale) * (moment(self, 2) - ops.square(moment(self, 1))) end
function Weibull:draw(shape) return self.scale * ops.pow(-ops.log(open_unit(shape, self.scale)), 1 / self.concentration) end
function Weibull:log_prob(x)
  local y = ops.log(x / self.scale)
  return ops.log(self.concentration / self.scale) + (self.concentration - 1) * y - ops.exp(self.concentration * y)
end
function Weibull.get.mode(self)
  return self.scale * ops.pow(ops.clamp((self.concentration - 1) / self.concentration, 0), 1 / self.concentration)
end
function Weibull:cdf(x) return -ops.expm1(-ops.pow(x / self.scale, self.concentration)) end
function Weibull:icdf(p) return self.scale * ops.pow(-ops.log1p(-p), 1 / self.concentration) end
function Weibull:entropy() return EULER * (1 - 1 / self.concentration) + ops.log(self.scale / self.concentration) + 1 end
supports(Weibull, C.positive)

-- Pareto(scale, alpha): from scale on, with density proportional to x^-(alpha + 1).
local Pareto = class("Pareto", "scale, alpha")
Pareto.has_rsample = true
parameters(Pareto, {"scale", "alpha"}, {"scale", "alpha"})
function Pareto.get.mean(self)
  local a = ops.clamp(self.alpha, 1)
  return a * self.scale / (a - 1)
end
function Pareto.get.variance(self)
  local a = ops.clamp(self.alpha, 2)
  return ops.square(self.scale) * a / (ops.square(a - 1) * (a - 2))
end
function Pareto:draw(shape) return self.scale * ops.exp(-ops.log(open_unit(shape, self.scale)) / self.alpha) end
function Pareto:log_prob(x) return ops.log(self.alpha) + self.alpha * ops.log(self.scale) - (self.alpha + 1) * ops.log(x) end
function Pareto.get.mode(self) return self.scale end
function Pareto:cdf(x) return 1 - ops.pow(ops.minimum(self.scale / x, 1), self.alpha) end
function Pareto:icdf(p) return self.scale * ops.exp(-ops.log1p(-p) / self.alpha) end
function Pareto:entropy() return ops.log(self.scale / self.alpha) + (1 + 1 / self.alpha) end
supports(Pareto, function(self) return C.greater_than_eq(self.scale) end, {text = "at least scale"})

-- GeneralizedPareto(loc, scale, concentration): values that exceed a high level loc, with a light tail if concentration is below 0, an
-- exponential one if it is 0, a heavy one if it is above 0. All three broadcast; scale is above 0.
local Generalized = class("GeneralizedPareto", "loc, scale, concentration")
Generalized.has_rsample = true
parameters(Generalized, {"loc", "scale", "concentration"}, {"scale"})
-- where concentration is 0, and a concentration to compute with that isn't 0 there
local function tail(self)
  local none = ops.le(ops.abs(self.concentration), 1e-8)
  return none, ops.where(none, 1, self.concentration)
end
-- f(a) for concentrations a below most, NaN for others
local function of_light(self, most, f)
  local ok = ops.lt(self.concentration, most)
  return ops.where(ok, f(ops.where(ok, self.concentration, most / 2)), 0 / 0)
end
function Generalized.get.mean(self) return of_light(self, 1, function(a) return self.loc + self.scale / (1 - a) end) end
function Generalized.get.variance(self)
  return of_light(self, 0.5, function(a) return ops.square(self.scale / (1 - a)) / (1 - a * 2) end)
end
function Generalized.get.mode(self) return self.loc end
function Generalized:draw(shape) return self:icdf(open_unit(shape, self.loc)) end
function Generalized:log_prob(x)
  local z, none, a = (x - self.loc) / self.scale, tail(self)
  local y = 1 / a + 1
  return -ops.log(self.scale) - ops.where(none, z, ops.where(ops.eq(y, 0), 0, y * ops.log1p(a * z)))
end
-- dist:log_survival_function(x): the log of the probability of draws above x; dist:log_cdf(x): of draws up to x
function Generalized:log_survival_function(x)
  local z, none, a = (x - self.loc) / self.scale, tail(self)
  return -ops.where(none, z, ops.log1p(a * z) / a)
end
function Generalized:log_cdf(x) return ops.log1p(-ops.exp(self:log_survival_function(x))) end
function Generalized:cdf(x) return -ops.expm1(self:log_survival_function(x)) end
function Generalized:icdf(p)
  local none, a = tail(self)
  local l = ops.log1p(-p)
  return self.loc + self.scale * ops.where(none, -l, ops.expm1(-a * l) / a)
end
function Generalized:entropy() return ops.log(self.scale) + self.concentration + 1 end
supports(Generalized, function(self)
  local none, a = tail(self)
  local light = ops.logical_and(ops.lt(a, 0), ops.logical_not(none))
  return C.interval(self.loc, ops.where(light, self.loc - self.scale / a, math.huge))
end, {text = "from loc, and to loc - scale / concentration where that is below 0"})

function KL.Cauchy(p, q)
  return ops.log(ops.square(p.scale + q.scale) + ops.square(p.loc - q.loc)) - ops.log(p.scale * q.scale * 4)
end
function KL.Gumbel(p, q)
  local ratio, off = p.scale / q.scale, (p.loc - q.loc) / q.scale
  return off - ops.log(ratio) + ratio * EULER + ops.exp(ops.lgamma(ratio + 1) - off) - (1 + EULER)
end
function KL.Pareto(p, q)
  local ratio = q.alpha / p.alpha
  return ops.where(ops.lt(p.scale, q.scale), math.huge, q.alpha * ops.log(p.scale / q.scale) - ops.log(ratio) + ratio - 1)
end

---- made of others ----
-- MixtureSameFamily(mixture_distribution, component_distribution): the first, a Categorical, chooses along the components' last batch dim;
-- values are those of one component. An error if the numbers of components differ.
local Mixture = class("MixtureSameFamily", "mixture_distribution, component_distribution")
function Mixture:init(o)
  local which, of = o.mixture_distribution, o.component_distribution
  if type(which) ~= "table" or which._name ~= "Categorical" then
    fail("MixtureSameFamily: argument 1 must be a Categorical, got %s", options.shown(which))
  end
  if not base.is_distribution(of) or #of.batch_shape == 0 or of.batch_shape[#of.batch_shape] ~= which.n then
    fail("MixtureSameFamily: argument 2 must be a distribution whose last batch dim has %d elements, one for each component", which.n)
  end
  self.batch_shape, self.event_shape = joined(of.batch_shape), joined(of.event_shape)
  table.remove(self.batch_shape)
  self.mixture_distribution, self.component_distribution = which:expand {batch_shape = self.batch_shape}, of
end
supports(Mixture, function(self)
  local each, dim = self.component_distribution.support, -1 - #self.event_shape
  return C.throughout(each, dim)
end, {checked = false})
function Mixture:expand(...)
  local to = base.wider(self, ...)
  local of = self.component_distribution:expand(joined(to, {self.mixture_distribution.n}))
  local new = distributions.MixtureSameFamily(self.mixture_distribution:expand {batch_shape = to}, of)
  new.validate = self.validate
  return new
end
-- the weights, shaped to broadcast with the components' events
local function weights(self)
  local p = self.mixture_distribution.probs
  for _ = 1, #self.event_shape do p = M.unsqueeze(p, -1) end
  return p, -1 - #self.event_shape
end
function Mixture.get.mean(self)
  local p, dim = weights(self)
  return ops.sum(p * self.component_distribution.mean, dim)
end
function Mixture.get.variance(self)
  local p, dim = weights(self)
  local mean = self.component_distribution.mean
  return ops.sum(p * self.component_distribution.variance, dim) +
    ops.sum(p * ops.square(mean - ops.sum(p * mean, dim, {keepdim = true})), dim)
end
-- dist:cdf(x): the probability of draws up to x, of the shape that x and the batch broadcast to. An error if events aren't numbers, or the
-- components have no cdf.
function Mixture:cdf(x)
  if #self.event_shape > 0 then fail("MixtureSameFamily: this mixture has no cdf: its events aren't single numbers") end
  return ops.sum(self.component_distribution:cdf(M.unsqueeze(x, -1)) * self.mixture_distribution.probs, -1)
end
function Mixture:draw(shape)
  local outer, n = {}, self.mixture_distribution.n
  for i = 1, #shape - #self.event_shape do outer[i] = shape[i] end
  local events = self.component_distribution:draw(joined(outer, {n}, self.event_shape))
  local which, dim = self.mixture_distribution:draw(outer), -1 - #self.event_shape
  for _ = 0, #self.event_shape do which = M.unsqueeze(which, -1) end
  return M.squeeze(ops.gather(events, dim, ops.expand(which, joined(outer, {1}, self.event_shape))), dim)
end
function Mixture:log_prob(x)
  local each = self.component_distribution:log_prob(M.unsqueeze(x, -1 - #self.event_shape))
  return M.logsumexp(each + ops.log_softmax(self.mixture_distribution.logits, -1), -1)
end
