-- kl_divergence(p, q) of two distributions, and register_kl.
--
-- Idea: the divergence is p's expectation of -log q, minus p's entropy. Many densities' logs are sums of few functions: of a value, its
-- square, its log, its exp. So the divergence of p from such a q only needs p's mean and variance, its mean log or its mean exp(-t x):
-- these are written once for each kind of p, and serve all q. Where p reaches beyond q's support, the divergence is infinite. Divergences
-- within one kind are in the classes' files. Invariant: the result has the shape that both batches broadcast to.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local fail = options.fail
local ops = core.ops
local distributions, KL = base.distributions, base.KL
local lgamma, digamma = ops.lgamma, ops.digamma
local EULER = 0.57721566490153286

---- what is known of p ----
-- The mean of the log of uniform values from a to b
local function log_of_uniform(a, b) return (ops.xlogy(b, b) - ops.xlogy(a, a)) / (b - a) - 1 end
local MEAN_LOG = {
  Beta = function(p) return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0) end,
  Exponential = function(p) return -ops.log(p.rate) - EULER end,
  Gamma = function(p) return digamma(p.concentration) - ops.log(p.rate) end,
  Pareto = function(p) return ops.log(p.scale) + 1 / p.alpha end,
  Uniform = function(p) return log_of_uniform(p.low, p.high) end,
}
-- The mean of exp(-t (x - at))
local MEAN_EXP = {
  Exponential = function(p, t, at) return ops.exp(t * at) * p.rate / (p.rate + t) end,
  Gamma = function(p, t, at) return ops.exp(t * at - p.concentration * ops.log1p(t / p.rate)) end,
  Normal = function(p, t, at) return ops.exp(t * (at - p.loc) + ops.square(t * p.scale) / 2) end,
  Uniform = function(p, t, at)
    return (ops.exp(t * (at - p.low)) - ops.exp(t * (at - p.high))) / (t * (p.high - p.low))
  end,
}

---- the mean of -log q(x) over p; name: p's kind ----
local CROSS = {}
function CROSS.Exponential(p, q) return q.rate * p.mean - ops.log(q.rate) end
function CROSS.ContinuousBernoulli(p, q) return -(p.mean * q.logits + ops.log1p(-q.probs) + q:log_norm()) end
function CROSS.Uniform(_, q) return ops.log(q.high - q.low) end
function CROSS.Normal(p, q)
  return (p.variance + ops.square(p.mean - q.loc)) / (ops.square(q.scale) * 2) + ops.log(q.scale) + math.log(2 * math.pi) / 2
end
function CROSS.Gamma(p, q, name)
  local a = q.concentration
  return q.rate * p.mean - (a - 1) * MEAN_LOG[name](p) + lgamma(a) - a * ops.log(q.rate)
end
function CROSS.Pareto(p, q, name) return (q.alpha + 1) * MEAN_LOG[name](p) - ops.log(q.alpha) - q.alpha * ops.log(q.scale) end
function CROSS.Gumbel(p, q, name)
  return (p.mean - q.loc) / q.scale + MEAN_EXP[name](p, 1 / q.scale, q.loc) + ops.log(q.scale)
end
function CROSS.Beta(p, q)                                  -- over a Uniform
  local a, b = q.concentration1, q.concentration0
  return lgamma(a) + lgamma(b) - lgamma(a + b) - (a - 1) * log_of_uniform(p.low, p.high) - (b - 1) * log_of_uniform(1 - p.high, 1 - p.low)
end
function CROSS.Laplace(p, q)                               -- over a Normal: the mean distance from loc
  local off = p.loc - q.loc
  local z = off / p.scale
  local far = p.scale * math.sqrt(2 / math.pi) * ops.exp(-ops.square(z) / 2) + off * ops.erf(z * math.sqrt(0.5))
  return far / q.scale + ops.log(q.scale * 2)
end
function CROSS.Poisson(p, q) return q.rate - p.probs * ops.log(q.rate) end         -- over a Bernoulli: log 0! and log 1! are 0

---- where p reaches beyond q's support, or has no moment that q asks for ----
-- Whether a is below b; nil means minus infinity. true: everywhere.
local function below(a, b)
  if b == nil then return false elseif a == nil then return true end
  if type(a) == "number" and type(b) == "number" then return a < b end
  return type(a) == "number" and ops.gt(b, a) or ops.lt(a, b)
end
local function either(a, b)
  if a == true or b == true then return true end
  return a and b and ops.logical_or(a, b) or a or b
end
local function negative(x) return x and -x end
local function beyond(p, q)
  local a, b = p.support, q.support
  return either(below(a.lower_bound, b.lower_bound), below(negative(a.upper_bound), negative(b.upper_bound)))
end

-- The order of a Pareto's moment that each q needs; it exists only if alpha is above that order
local ORDER = {Exponential = 1, Gamma = 1, Normal = 2}
-- Replaces p where the divergence is infinite anyway, so that shared parameters get gradients of 0 there, not NaN
local STAND_IN = {
  Pareto = function(p, out) return distributions.Pareto(p.scale, ops.where(out, 3, p.alpha)) end,
  Uniform = function(p, out) return distributions.Uniform(ops.where(out, 0.25, p.low), ops.where(out, 0.75, p.high)) end,
}

-- Infinite divergences of the right shape
local function infinite(p, q)
  local like = p.mean
  return ops.full(lib.common_shape("kl_divergence", {p.batch_shape, q.batch_shape}), math.huge, base.same(like))
end
local function pair(p_name, q_name)
  local cross = CROSS[q_name]
  KL[p_name .. " " .. q_name] = function(p, q)
    local out = beyond(p, q)
    if p_name == "Pareto" and ORDER[q_name] then out = either(out, ops.le(p.alpha, ORDER[q_name])) end
    if out == true then return infinite(p, q) end
    if out and STAND_IN[p_name] then p = STAND_IN[p_name](p, out) end
    local loss = cross(p, q, p_name) - p:entropy()
    return out and ops.where(out, math.huge, loss) or loss
  end
end
for q, ps in pairs {
  Exponential = "Beta ContinuousBernoulli Gamma Gumbel Laplace Normal Pareto Uniform",
  Normal = "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Pareto Uniform",
  Gamma = "Beta Exponential Gumbel Laplace Normal Pareto Uniform",
  Pareto = "Beta Exponential Gamma Gumbel Laplace Normal Uniform",
  Beta = "Exponential Gamma Gumbel Laplace Normal Pareto Uniform",
  ContinuousBernoulli = "Beta Exponential Gamma Gumbel Laplace Normal Pareto Uniform",
  Uniform = "Beta ContinuousBernoulli Exponential Gamma Gumbel Laplace Normal Pareto",
  Gumbel = "Exponential Gamma Normal Uniform", Laplace = "Normal", Poisson = "Bernoulli",
  Bernoulli = "Poisson", Binomial = "Poisson",
} do
  for p in ps:gmatch "%a+" do pair(p, q) end
end
KL["ContinuousBernoulli Pareto"] = infinite

---- any two ----
-- The name of a class, such as D.Normal
local function name_of(who, n, c)
  local class = type(c) == "table" and getmetatable(c) and getmetatable(c).__index
  if type(class) ~= "table" or not rawget(class, "_name") then
    fail("%s: argument %d must be a class of distributions, such as distributions.Normal, got %s", who, n, options.shown(c))
  end
  return rawget(class, "_name")
end
local function key(p, q) return p == q and p or p .. " " .. q end
-- register_kl(P, Q, fn): makes fn(p, q) the kl_divergence of a p of class P and a q of class Q; it returns a tensor of the shape that both
-- batches broadcast to. It also holds for subclasses for which nothing is registered. Without fn: gives a function that takes fn. The last
-- one registered counts. An error if P or Q isn't a class, or fn can't be called.
function distributions.register_kl(P, Q, fn)
  local at = key(name_of("register_kl", 1, P), name_of("register_kl", 2, Q))
  if fn == nil then return function(f) return distributions.register_kl(P, Q, f) end end
  if type(fn) ~= "function" then fail("register_kl: argument 3 must be a function, got %s", options.shown(fn)) end
  KL[at] = fn
  return fn
end

-- kl_divergence(p, q): how much is lost, in nats, if q stands for p: a tensor of the shape that both batches broadcast to, infinite where p
-- has values that q never has. An error if no rule is known for their classes.
function distributions.kl_divergence(p, q)
  for i = 1, 2 do
    local d = select(i, p, q)
    if not base.is_distribution(d) then fail("kl_divergence: argument %d must be a distribution, got %s", i, options.shown((d))) end
  end
  local a = getmetatable(p)
  while a do
    local b = getmetatable(q)
    while b do
      local fn = KL[key(rawget(a, "_name"), rawget(b, "_name"))]
      if fn then return fn(p, q) end
      b = rawget(b, "_parent")
    end
    a = rawget(a, "_parent")
  end
  fail("kl_divergence: no formula is known for %s and %s; add one with register_kl", p._name, q._name)
end
