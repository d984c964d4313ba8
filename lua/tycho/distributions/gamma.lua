-- The gamma function's family: Gamma, Chi2, Beta, Dirichlet, StudentT; counts: Poisson, Binomial, NegativeBinomial, Multinomial.
--
-- Draws don't wait for the device, and are made in float64 (core/draws.h), as logarithms where they may be tiny.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local distributions, class, together, need, parameters, same, joined, one_of, drawn = base.distributions,
  base.class, base.together, base.need, base.parameters, base.same, base.joined, base.one_of, base.drawn
local KL, C, supports = base.KL, base.constraints, base.supports
local lgamma, digamma = ops.lgamma, ops.digamma

local DOUBLE = "float64"

-- log of a Gamma(alpha, 1) draw of this shape, float64. Its gradient for alpha is that of the draw at a fixed quantile; its second
-- derivative isn't.
local function log_gamma_draw(shape, alpha)
  local y = drawn("log_gamma", shape, alpha)
  if not (alpha.requires_grad and core.is_grad_enabled()) then return y end
  local a = M.to(ops.expand(alpha, shape), DOUBLE)
  return y + (a - M.detach(a)) * ops.gamma_draw_slope(y, M.detach(a))
end
local function standard_gamma(shape, alpha)
  return ops.clamp(M.to(ops.exp(log_gamma_draw(shape, alpha)), alpha.dtype), lib.RANGE[alpha.dtype].tiny)
end

-- Gamma(concentration, rate): the mean is concentration / rate.
local Gamma = class("Gamma", "concentration, rate")
Gamma.has_rsample = true
parameters(Gamma, {"concentration", "rate"}, {"concentration", "rate"})
function Gamma.get.mean(self) return self.concentration / self.rate end
function Gamma.get.variance(self) return self.concentration / ops.square(self.rate) end
function Gamma.get.mode(self) return ops.clamp((self.concentration - 1) / self.rate, 0) end
function Gamma:draw(shape) return standard_gamma(shape, self.concentration) / self.rate end
function Gamma:log_prob(x)
  local a = self.concentration
  return ops.xlogy(a, self.rate) + ops.xlogy(a - 1, x) - self.rate * x - lgamma(a)
end
function Gamma:cdf(x) return ops.igamma(self.concentration, self.rate * x) end
function Gamma:entropy()
  local a = self.concentration
  return a - ops.log(self.rate) + lgamma(a) + (1 - a) * digamma(a)
end
supports(Gamma, C.nonnegative)

-- Chi2(df): the sum of squares of df standard normal numbers.
local Chi2 = class("Chi2", "df", Gamma)
function Chi2:init(o)
  self.df = together("Chi2", o.df)
  need("Chi2", "df must be above 0", self.df, ops.gt(self.df, 0))
  self.concentration, self.rate, self.batch_shape = self.df / 2, ops.full(self.df.shape, 0.5, same(self.df)), self.df.shape
end
Chi2.arg_constraints = {df = C.positive}

-- Dirichlet(concentration): vectors, along the last dim, of numbers >= 0 that add up to 1.
local Dirichlet = class("Dirichlet", "concentration")
Dirichlet.has_rsample = true
function Dirichlet:init(o)
  local c = o.concentration
  if not core.is_tensor(c) or M.dim(c) == 0 then
    fail("Dirichlet: concentration must be a tensor whose last dim is an event's, got %s", options.shown(c))
  end
  need("Dirichlet", "concentration must be above 0", c, ops.gt(c, 0))
  self.concentration, self.event_shape, self.batch_shape = c, {c.shape[M.dim(c)]}, joined(c.shape)
  table.remove(self.batch_shape)
end
function Dirichlet.get.mean(self) return self.concentration / ops.sum(self.concentration, -1, {keepdim = true}) end
function Dirichlet.get.variance(self)
  local total = ops.sum(self.concentration, -1, {keepdim = true})
  return self.concentration * (total - self.concentration) / (ops.square(total) * (total + 1))
end
function Dirichlet.get.mode(self)
  local c = self.concentration
  local over = ops.clamp(c - 1, 0)
  local corner = M.to(F.one_hot(M.argmax(c, -1), c.shape[M.dim(c)]), c.dtype)          -- where no component is inside
  return ops.where(ops.all(ops.lt(c, 1), -1, {keepdim = true}), corner, over / ops.sum(over, -1, {keepdim = true}))
end
function Dirichlet:draw(shape)
  return M.to(ops.softmax(log_gamma_draw(shape, self.concentration), -1), self.concentration.dtype)
end
local function log_beta(c) return ops.sum(lgamma(c), -1) - lgamma(ops.sum(c, -1)) end
function Dirichlet:log_prob(x) return ops.sum(ops.xlogy(self.concentration - 1, x), -1) - log_beta(self.concentration) end
function Dirichlet:entropy()
  local c, total = self.concentration, ops.sum(self.concentration, -1)
  return log_beta(c) + (total - c.shape[M.dim(c)]) * digamma(total) - ops.sum((c - 1) * digamma(c), -1)
end
Dirichlet.arg_constraints = {concentration = C.independent(C.positive, 1)}
supports(Dirichlet, C.simplex)

-- Beta(concentration1, concentration0): within 0..1; the mean is concentration1 / (concentration1 + concentration0).
local Beta = class("Beta", "concentration1, concentration0")
Beta.has_rsample = true
function Beta:init(o)
  self.concentration1, self.concentration0 = together("Beta", o.concentration1, o.concentration0)
  base.need_positive(self, {"concentration1", "concentration0"})
  self.pair = distributions.Dirichlet(ops.stack({self.concentration1, self.concentration0}, -1), {validate_args = false})
  self.batch_shape = self.concentration1.shape
end
function Beta.get.mean(self) return self.concentration1 / (self.concentration1 + self.concentration0) end
function Beta.get.variance(self)
  local total = self.concentration1 + self.concentration0
  return self.concentration1 * self.concentration0 / (ops.square(total) * (total + 1))
end
function Beta.get.mode(self) return ops.select(self.pair.mode, -1, 1) end
function Beta:draw(shape) return ops.select(self.pair:draw(joined(shape, {2})), -1, 1) end
function Beta:log_prob(x)
  return self.pair:log_prob(ops.stack({x, 1 - x}, -1))
end
function Beta:entropy() return self.pair:entropy() end
Beta.arg_constraints = {concentration1 = C.positive, concentration0 = C.positive}
supports(Beta, C.unit_interval)

-- StudentT(df, loc=0, scale=1): Student's t with df degrees of freedom, scaled and shifted.
local StudentT = class("StudentT", "df, loc=0, scale=1")
StudentT.has_rsample = true
parameters(StudentT, {"df", "loc", "scale"}, {"df", "scale"})
supports(StudentT, C.real, {checked = false})
function StudentT.get.mean(self) return ops.where(ops.gt(self.df, 1), self.loc, 0 / 0) end
function StudentT.get.mode(self) return self.loc end
function StudentT.get.variance(self)
  local v = ops.square(self.scale) * self.df / (self.df - 2)
  return ops.where(ops.gt(self.df, 2), v, ops.where(ops.gt(self.df, 1), math.huge, 0 / 0))
end
function StudentT:draw(shape)
  return self.loc + self.scale * ops.randn(shape, same(self.df)) * ops.rsqrt(standard_gamma(shape, self.df / 2) * 2 / self.df)
end
function StudentT:log_prob(x)
  local y = (x - self.loc) / self.scale
  return lgamma((self.df + 1) / 2) - lgamma(self.df / 2) - ops.log(self.scale) -
    (ops.log(self.df) + math.log(math.pi)) / 2 - (self.df + 1) / 2 * ops.log1p(y * y / self.df)
end
function StudentT:entropy()
  local half = (self.df + 1) / 2
  return ops.log(self.scale) + half * (digamma(half) - digamma(self.df / 2)) + ops.log(self.df) / 2 +
    lgamma(self.df / 2) + math.log(math.pi) / 2 - lgamma(half)
end

---- counts ----
local function poisson(shape, rate) return M.to(drawn("poisson", shape, rate), rate.dtype) end

-- Poisson(rate): counts from 0, floating, with mean rate.
local Poisson = class("Poisson", "rate")
function Poisson:init(o)
  self.rate = together("Poisson", o.rate)
  need("Poisson", "rate must not be negative", self.rate, ops.ge(self.rate, 0))
  self.batch_shape = self.rate.shape
end
function Poisson.get.mean(self) return self.rate end
function Poisson.get.variance(self) return self.rate end
function Poisson.get.mode(self) return ops.floor(self.rate) end
function Poisson:draw(shape) return poisson(shape, self.rate) end
function Poisson:log_prob(x) return ops.xlogy(x, self.rate) - self.rate - lgamma(x + 1) end
Poisson.arg_constraints = {rate = C.nonnegative}
supports(Poisson, C.nonnegative_integer)

-- Binomial(total_count=1, probs=, logits=): the number of successes in total_count trials, a whole number or a tensor of them.
local Binomial = class("Binomial", "total_count=1, probs=nil, logits=nil")
local Bernoulli = distributions.Bernoulli
function Binomial:init(o)
  local given = one_of(self._name, o.probs, o.logits)
  self.total_count, given = together(self._name, o.total_count, given)
  need(self._name, "total_count must not be negative", self.total_count, ops.ge(self.total_count, 0))
  if self._name == "Binomial" then
    need("Binomial", "total_count must be a whole number", self.total_count, ops.eq(self.total_count, ops.floor(self.total_count)))
  end
  self.total_count = M.to(self.total_count, given.dtype)
  self.p, self.l, self.batch_shape = o.probs ~= nil and given or nil, o.logits ~= nil and given or nil, given.shape
end
Binomial.get.probs, Binomial.get.logits = function(self) return Bernoulli.get.probs(self) end,
  function(self) return Bernoulli.get.logits(self) end
function Binomial.get.mean(self) return self.total_count * self.probs end
function Binomial.get.variance(self) return self.total_count * self.probs * (1 - self.probs) end
function Binomial.get.mode(self) return ops.minimum(ops.floor((self.total_count + 1) * self.probs), self.total_count) end
function Binomial:draw(shape)
  local p = self.probs
  return M.to(drawn("binomial", shape, self.total_count, p), p.dtype)
end
local function choices(n, k) return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) end
Binomial.has_enumerate_support = true
Binomial.arg_constraints = {total_count = C.nonnegative_integer, probs = C.unit_interval, logits = C.real}
supports(Binomial, function(self) return C.integer_interval(0, self.total_count) end, {text = "a whole number from 0 to total_count"})
function Binomial:log_prob(x)
  return choices(self.total_count, x) + x * self.logits - self.total_count * ops.softplus(self.logits, {threshold = 40})
end

function Binomial:values()
  local n = self.total_count
  local most = M.numel(n) > 0 and ops.amax(n):item() or 0
  if M.numel(n) > 0 and ops.amin(n):item() ~= most then
    fail("Binomial: entropy and enumerate_support need the same total_count everywhere, got values from %d to %d", ops.amin(n):item(), most)
  end
  return ops.range(0, most, 1, same(n))
end
function Binomial:entropy()
  local l = self:log_prob(self:enumerate_support {expand = false})
  return -ops.sum(ops.exp(l) * l, 1)
end

-- NegativeBinomial(total_count, probs=, logits=): the number of successes before total_count failures; probs: of a success.
local NegativeBinomial = class("NegativeBinomial", "total_count, probs=nil, logits=nil")
NegativeBinomial.init, NegativeBinomial.get.probs, NegativeBinomial.get.logits = Binomial.init, Binomial.get.probs, Binomial.get.logits
function NegativeBinomial.get.mean(self) return self.total_count * ops.exp(self.logits) end
function NegativeBinomial.get.variance(self) return self.mean / ops.sigmoid(-self.logits) end
function NegativeBinomial.get.mode(self) return ops.clamp(ops.floor((self.total_count - 1) * ops.exp(self.logits)), 0) end
function NegativeBinomial:draw(shape)
  return poisson(shape, standard_gamma(shape, M.detach(self.total_count)) * ops.exp(ops.expand(M.detach(self.logits), shape)))
end
function NegativeBinomial:log_prob(x)
  local ways = lgamma(self.total_count + x) - lgamma(x + 1) - lgamma(self.total_count)
  return self.total_count * ops.logsigmoid(-self.logits) + x * ops.logsigmoid(self.logits) +
    ops.where(ops.eq(self.total_count + x, 0), 0, ways)
end
NegativeBinomial.arg_constraints = {total_count = C.nonnegative, probs = C.unit_interval, logits = C.real}
supports(NegativeBinomial, C.nonnegative_integer)

-- Multinomial(total_count=1, probs=, logits=): for each category the number of total_count draws (a number) of a Categorical that chose it:
-- vectors along the last dim.
local Multinomial = class("Multinomial", "total_count=1, probs=nil, logits=nil")
function Multinomial:init(o)
  self.total_count = options.whole("Multinomial", "total_count", o.total_count, 0)
  self.base = distributions.Categorical {probs = o.probs, logits = o.logits}
  self.batch_shape, self.event_shape = self.base.batch_shape, {self.base.n}
end
function Multinomial.get.probs(self) return self.base.probs end
function Multinomial.get.logits(self) return self.base.logits end
function Multinomial.get.mean(self) return self.base.probs * self.total_count end
function Multinomial.get.variance(self) return self.base.probs * (1 - self.base.probs) * self.total_count end
function Multinomial:draw(shape)
  local outer = joined(shape)
  table.remove(outer)
  local each = self.base:draw(joined({self.total_count}, outer))
  return M.to(ops.sum(F.one_hot(each, self.base.n), 1), self.base.probs.dtype)
end
function Multinomial:log_prob(x)
  local logits = self.base.logits
  local never = ops.logical_and(ops.eq(x, 0), ops.eq(logits, -math.huge))          -- 0 times an impossible category is 0
  return lgamma(ops.sum(x, -1) + 1) - ops.sum(lgamma(x + 1), -1) + ops.sum(x * ops.masked_fill(logits, never, 0), -1)
end
Multinomial.arg_constraints = {probs = C.simplex, logits = C.real_vector}
supports(Multinomial, function(self) return C.multinomial(self.total_count) end, {text = "counts that add up to total_count"})
function Multinomial:entropy()
  local n, p = self.total_count, self.base.probs
  local one = distributions.Binomial(n, {probs = p})         -- each category's count
  local k = one:enumerate_support {expand = false}
  local each = ops.exp(one:log_prob(k)) * lgamma(k + 1)
  return self.base:entropy() * n - lgamma(ops.full({}, n + 1, same(p))) + ops.sum(each, {1, -1})
end

---- divergences ----
function KL.Gamma(p, q)
  local a, b = p.concentration, q.concentration
  return b * ops.log(p.rate / q.rate) + lgamma(b) - lgamma(a) + (a - b) * digamma(a) + (q.rate - p.rate) * a / p.rate
end
function KL.Dirichlet(p, q)
  local a, b = p.concentration, q.concentration
  local t = digamma(a) - M.unsqueeze(digamma(ops.sum(a, -1)), -1)
  return log_beta(b) - log_beta(a) + ops.sum((a - b) * t, -1)
end
function KL.Beta(p, q) return KL.Dirichlet(p.pair, q.pair) end
function KL.Poisson(p, q) return p.rate * (ops.log(p.rate) - ops.log(q.rate)) - p.rate + q.rate end
function KL.Binomial(p, q)
  base.need("kl_divergence", "the first's total_count must be at least the second's", p.total_count, ops.ge(p.total_count, q.total_count))
  local loss = p.total_count * (p.probs * (p.logits - q.logits) + ops.log1p(-p.probs) - ops.log1p(-q.probs))
  return ops.where(ops.gt(p.total_count, q.total_count), math.huge, loss)
end
