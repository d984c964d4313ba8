-- Relatives of other distributions: InverseGamma, FisherSnedecor, Kumaraswamy, and differentiable stand-ins for discrete choices:
-- RelaxedBernoulli, RelaxedOneHotCategorical, OneHotCategoricalStraightThrough, ContinuousBernoulli.
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local transforms = require("tycho.distributions.transforms").transforms
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local distributions, class, together, need, parameters, same, open_unit, supports, KL = base.distributions, base.class,
  base.together, base.need, base.parameters, base.same, base.open_unit, base.supports, base.KL
local C = base.constraints
local lgamma, digamma = ops.lgamma, ops.digamma
local NAN = 0 / 0

---- of gammas ----
-- InverseGamma(concentration, rate): 1 divided by a draw of Gamma(concentration, rate).
local InverseGamma = class("InverseGamma", "concentration, rate")
InverseGamma.has_rsample = true
function InverseGamma:init(o)
  self.base = distributions.Gamma(o.concentration, o.rate, {validate_args = false})
  self.concentration, self.rate, self.batch_shape = self.base.concentration, self.base.rate, self.base.batch_shape
  base.need_positive(self, {"concentration", "rate"})
end
function InverseGamma.get.mean(self)
  return ops.where(ops.gt(self.concentration, 1), self.rate / (self.concentration - 1), math.huge)
end
function InverseGamma.get.mode(self) return self.rate / (self.concentration + 1) end
function InverseGamma.get.variance(self)
  local a = self.concentration
  return ops.where(ops.gt(a, 2), ops.square(self.rate / (a - 1)) / (a - 2), math.huge)
end
function InverseGamma:draw(shape) return 1 / self.base:draw(shape) end
function InverseGamma:log_prob(x) return self.base:log_prob(1 / x) - ops.log(x) * 2 end
function InverseGamma:cdf(x) return ops.igammac(self.concentration, self.rate / x) end
function InverseGamma:entropy()
  local a = self.concentration
  return a + ops.log(self.rate) + lgamma(a) - (a + 1) * digamma(a)
end
InverseGamma.arg_constraints = {concentration = C.positive, rate = C.positive}
supports(InverseGamma, C.positive)
function KL.InverseGamma(p, q) return KL.Gamma(p.base, q.base) end

-- FisherSnedecor(df1, df2): the ratio of two Chi2 draws, each divided by its degrees of freedom.
local Fisher = class("FisherSnedecor", "df1, df2")
Fisher.has_rsample = true
parameters(Fisher, {"df1", "df2"}, {"df1", "df2"})
function Fisher.get.mean(self) return ops.where(ops.gt(self.df2, 2), self.df2 / (self.df2 - 2), NAN) end
function Fisher.get.mode(self)
  return ops.where(ops.gt(self.df1, 2), (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), NAN)
end
function Fisher.get.variance(self)
  local a, b = self.df1, self.df2
  return ops.where(ops.gt(b, 4), ops.square(b / (b - 2)) * (a + b - 2) * 2 / (a * (b - 4)), NAN)
end
function Fisher:draw(shape)
  local function part(df) return distributions.Gamma(df / 2, df / 2):draw(shape) end
  return part(self.df1) / part(self.df2)
end
function Fisher:log_prob(x)
  local a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
  return lgamma(a + b) - lgamma(a) - lgamma(b) + a * ops.log(ratio) + (a - 1) * ops.log(x) - (a + b) * ops.log1p(ratio * x)
end
supports(Fisher, C.positive)

-- Kumaraswamy(concentration1, concentration0): within 0..1, similar to Beta, with a cdf in closed form.
local Kumaraswamy = class("Kumaraswamy", "concentration1, concentration0")
Kumaraswamy.has_rsample = true
parameters(Kumaraswamy, {"concentration1", "concentration0"}, {"concentration1", "concentration0"})
local function moment(self, n)
  local a, b = n / self.concentration1 + 1, self.concentration0
  return b * ops.exp(lgamma(a) + lgamma(b) - lgamma(a + b))
end
function Kumaraswamy.get.mean(self) return moment(self, 1) end
function Kumaraswamy.get.variance(self) return moment(self, 2) - ops.square(moment(self, 1)) end
function Kumaraswamy.get.mode(self)
  local a, b = self.concentration1, self.concentration0
  local one = ops.logical_and(ops.logical_and(ops.ge(a, 1), ops.ge(b, 1)), ops.gt(a * b, 1))
  return ops.where(one, ops.pow((a - 1) / (a * b - 1), 1 / a), NAN)
end
function Kumaraswamy:icdf(p) return ops.pow(-ops.expm1(ops.log1p(-p) / self.concentration0), 1 / self.concentration1) end
function Kumaraswamy:cdf(x) return -ops.expm1(ops.log1p(-ops.pow(x, self.concentration1)) * self.concentration0) end
function Kumaraswamy:draw(shape) return self:icdf(open_unit(shape, self.concentration1)) end
function Kumaraswamy:log_prob(x)
  local a, b = self.concentration1, self.concentration0
  return ops.log(a) + ops.log(b) + ops.xlogy(a - 1, x) + (b - 1) * ops.log1p(-ops.pow(x, a))
end
function Kumaraswamy:entropy()
  local a, b = self.concentration1, self.concentration0
  return 1 - 1 / b + (1 - 1 / a) * (digamma(b + 1) + 0.57721566490153286) - ops.log(a) - ops.log(b)
end
supports(Kumaraswamy, C.unit_interval)

---- for choices ----
local function warmth(self, t)                       -- the temperature in the parameters' dtype
  local of = self.base.logits
  t = type(t) == "number" and ops.full({}, t, same(of)) or together(self._name, t)
  need(self._name, "temperature must be above 0", t, ops.gt(t, 0))
  return t
end
local sigmoid = transforms.SigmoidTransform()                  -- keeps draws off 0 and 1
-- RelaxedBernoulli(temperature, {probs=} | {logits=}): between 0 and 1, the closer to a Bernoulli's draws the lower the temperature, with
-- gradients (Maddison et al. 2017, Jang et al. 2017).
local RelaxedBernoulli = class("RelaxedBernoulli", "temperature, probs=nil, logits=nil")
RelaxedBernoulli.has_rsample = true
function RelaxedBernoulli:init(o)
  self.base = distributions.Bernoulli {probs = o.probs, logits = o.logits}
  self.temperature = warmth(self, o.temperature)
  self.batch_shape = self.base.batch_shape
end
function RelaxedBernoulli.get.probs(self) return self.base.probs end
function RelaxedBernoulli.get.logits(self) return self.base.logits end
function RelaxedBernoulli:draw(shape)
  local l = self.base.logits
  local u = open_unit(shape, l)
  return sigmoid:forward((ops.log(u) - ops.log1p(-u) + l) / self.temperature)
end
function RelaxedBernoulli:log_prob(x)
  local y = sigmoid:inverse(x)
  local off = self.base.logits - y * self.temperature
  return ops.log(self.temperature) + off - ops.softplus(off) * 2 + ops.softplus(-y) + ops.softplus(y)
end
RelaxedBernoulli.unbatched = {temperature = true}
RelaxedBernoulli.arg_constraints = {probs = C.unit_interval, logits = C.real}
supports(RelaxedBernoulli, C.unit_interval)

-- RelaxedOneHotCategorical(temperature, {probs=} | {logits=}): vectors of numbers that add up to 1, the closer to OneHotCategorical's the
-- lower the temperature, with gradients.
local RelaxedOneHot = class("RelaxedOneHotCategorical", "temperature, probs=nil, logits=nil")
RelaxedOneHot.has_rsample = true
function RelaxedOneHot:init(o)
  self.base = distributions.OneHotCategorical {probs = o.probs, logits = o.logits}
  self.temperature = warmth(self, o.temperature)
  self.batch_shape, self.event_shape = self.base.batch_shape, self.base.event_shape
end
function RelaxedOneHot.get.probs(self) return self.base.probs end
function RelaxedOneHot.get.logits(self) return self.base.logits end
function RelaxedOneHot:draw(shape)
  local l = self.base.logits
  return ops.softmax((l - ops.log(-ops.log(open_unit(shape, l)))) / self.temperature, -1)
end
function RelaxedOneHot:log_prob(x)
  local l, y, k = self.base.logits, ops.log(x), self.event_shape[1]
  local score = l - y * self.temperature
  score = ops.sum(score - M.logsumexp(score, -1, {keepdim = true}), -1)
  return score - ops.sum(y, -1) + ops.log(self.temperature) * (k - 1) + lgamma(ops.full({}, k, same(l)))
end
RelaxedOneHot.unbatched, RelaxedOneHot.arg_constraints = {temperature = true}, {probs = C.simplex, logits = C.real_vector}
supports(RelaxedOneHot, C.simplex)

local OneHot = getmetatable(distributions.OneHotCategorical).__index
-- OneHotCategoricalStraightThrough(probs=, logits=): as OneHotCategorical, but rsample's draws pass gradients on to the probabilities
-- (Bengio et al. 2013).
local Straight = class("OneHotCategoricalStraightThrough", "probs=nil, logits=nil", OneHot)
Straight.has_rsample = true
function Straight:draw(shape)
  local p = self.base.probs
  return OneHot.draw(self, shape) + (p - M.detach(p))
end

-- ContinuousBernoulli({probs=} | {logits=}): within 0..1, for grey levels of pictures (Loaiza-Ganem and Cunningham 2019).
local Continuous = class("ContinuousBernoulli", "probs=nil, logits=nil")
local Bernoulli = getmetatable(distributions.Bernoulli).__index
Continuous.has_rsample, Continuous.init = true, Bernoulli.init
Continuous.get.logits = Bernoulli.get.logits
-- kept off 0 and 1, where no density exists
function Continuous.get.probs(self)
  local p = Bernoulli.get.probs(self)
  return ops.clamp(p, lib.EPS[p.dtype], 1 - lib.EPS[p.dtype])
end
-- where probs are far enough from 1/2, and values to compute with elsewhere
local function apart(self)
  local p = self.probs
  local far = ops.gt(ops.abs(p - 0.5), 0.001)
  return p, far, ops.where(far, p, 0.499)
end
function Continuous:log_norm()
  local p, far, c = apart(self)
  local low = ops.le(c, 0.5)
  local bend = ops.log(ops.abs(ops.log1p(-c) - ops.log(c))) -
    ops.where(low, ops.log1p(ops.where(low, c, 0) * -2), ops.log(ops.where(low, 1, c) * 2 - 1))
  local x = ops.square(p - 0.5)
  return ops.where(far, bend, math.log(2) + (4 / 3 + x * (104 / 45)) * x)
end
function Continuous.get.mean(self)
  local p, far, c = apart(self)
  local x = p - 0.5
  return ops.where(far, c / (c * 2 - 1) + 1 / (ops.log1p(-c) - ops.log(c)), 0.5 + (1 / 3 + ops.square(x) * (16 / 45)) * x)
end
function Continuous.get.variance(self)
  local p, far, c = apart(self)
  local x = ops.square(p - 0.5)
  return ops.where(far, c * (c - 1) / ops.square(1 - c * 2) + 1 / ops.square(ops.log1p(-c) - ops.log(c)),
    1 / 12 - (1 / 15 - x * (128 / 945)) * x)
end
function Continuous:icdf(u)
  local _, far, c = apart(self)
  return ops.where(far, (ops.log1p(u * (c * 2 - 1) - c) - ops.log1p(-c)) / (ops.log(c) - ops.log1p(-c)), u)
end
function Continuous:cdf(x)
  local _, far, c = apart(self)
  local y = ops.where(far, (ops.pow(c, x) * ops.pow(1 - c, 1 - x) + c - 1) / (c * 2 - 1), x)
  return ops.where(ops.le(x, 0), 0, ops.where(ops.ge(x, 1), 1, y))
end
function Continuous:draw(shape) return self:icdf(open_unit(shape, self.probs)) end
function Continuous:log_prob(x)
  return x * self.logits - ops.softplus(self.logits, {threshold = 40}) + self:log_norm()
end
function Continuous:entropy()
  local p = self.probs
  return self.mean * (ops.log1p(-p) - ops.log(p)) - self:log_norm() - ops.log1p(-p)
end
Continuous.arg_constraints = Bernoulli.arg_constraints
supports(Continuous, C.unit_interval)
function KL.ContinuousBernoulli(p, q)
  return p.mean * (p.logits - q.logits) + p:log_norm() + ops.log1p(-p.probs) - q:log_norm() - ops.log1p(-q.probs)
end
