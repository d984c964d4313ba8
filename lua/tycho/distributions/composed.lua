-- Distributions made of others or of simple draws: Cauchy, HalfNormal, HalfCauchy, Gumbel, Weibull, Pareto,
-- MultivariateNormal, MixtureSameFamily, TransformedDistribution; transforms.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local distributions, class, together, parameters, same, joined, open_unit, KL = base.distributions, base.class,
  base.together, base.parameters, base.same, base.joined, base.open_unit, base.KL
local EULER = 0.57721566490153286

local function nothing(self) return self.loc * 0 + 0 / 0 end

-- Cauchy(loc, scale): the ratio of two normal numbers, scaled and moved; it has no mean.
local Cauchy = class("Cauchy", "loc, scale")
Cauchy.has_rsample = true
parameters(Cauchy, {"loc", "scale"}, {"scale"})
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

-- One of the absolute values of another one.
local function half(name, whole)
  local c = class(name, "scale")
  c.has_rsample = true
  function c:init(o)
    local scale = together(name, o.scale)
    self.base, self.scale, self.batch_shape = distributions[whole](scale * 0, scale), scale, scale.shape
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
base.supports(Weibull, "positive")

-- Pareto(scale, alpha): from scale on, falling as x^-(alpha + 1).
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
base.supports(Pareto, "at least scale", function(self, x) return ops.ge(x, self.scale) end)

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

---- of vectors ----
-- MultivariateNormal(loc, {covariance_matrix=} | {precision_matrix=} | {scale_tril=}): vectors, of loc's last dim; one of the three is
-- given, positive definite or lower triangular.
local MultivariateNormal = class("MultivariateNormal", "loc, covariance_matrix=nil, precision_matrix=nil, scale_tril=nil")
MultivariateNormal.has_rsample = true
local L = "linalg."
local function T(x) return M.transpose(x, -2, -1) end
function MultivariateNormal:init(o)
  local given = {o.covariance_matrix, o.precision_matrix, o.scale_tril}
  local n = (o.covariance_matrix and 1 or 0) + (o.precision_matrix and 1 or 0) + (o.scale_tril and 1 or 0)
  if n ~= 1 then fail("MultivariateNormal: one of covariance_matrix, precision_matrix and scale_tril is needed, got %d", n) end
  local matrix = given[1] or given[2] or given[3]
  if not core.is_tensor(o.loc) or M.dim(o.loc) < 1 then
    fail("MultivariateNormal: loc must be a tensor of 1 dim or more, got %s", options.shown(o.loc))
  end
  local k = o.loc.shape[M.dim(o.loc)]
  if not core.is_tensor(matrix) or M.dim(matrix) < 2 or matrix.shape[M.dim(matrix)] ~= k or matrix.shape[M.dim(matrix) - 1] ~= k then
    fail("MultivariateNormal: the matrix must be %dx%d as loc has %d elements, got %s", k, k, k,
      core.is_tensor(matrix) and "shape " .. tostring(matrix.shape) or type(matrix))
  end
  local tril = o.scale_tril
  if o.covariance_matrix then tril = F[L .. "cholesky"](matrix)
  elseif o.precision_matrix then tril = F[L .. "cholesky"](F[L .. "inv"](matrix)) end
  local batch = lib.common_shape("MultivariateNormal", {ops.select(o.loc, -1, 1).shape, ops.select(ops.select(tril, -1, 1), -1, 1).shape})
  self.batch_shape, self.event_shape = joined(batch), {k}
  self.loc, self.scale_tril = ops.expand(o.loc, joined(batch, {k})), ops.expand(tril, joined(batch, {k, k}))
end
function MultivariateNormal.get.mean(self) return self.loc end
function MultivariateNormal.get.mode(self) return self.loc end
function MultivariateNormal.get.variance(self) return ops.sum(ops.square(self.scale_tril), -1) end
function MultivariateNormal.get.covariance_matrix(self) return ops.matmul(self.scale_tril, T(self.scale_tril)) end
function MultivariateNormal.get.precision_matrix(self) return F.cholesky_inverse(self.scale_tril) end
function MultivariateNormal:draw(shape)
  return self.loc + M.squeeze(ops.matmul(self.scale_tril, M.unsqueeze(ops.randn(shape, same(self.loc)), -1)), -1)
end
local function half_log_det(self) return ops.sum(ops.log(ops.diagonal(self.scale_tril, 0, -2, -1)), -1) end
function MultivariateNormal:log_prob(x)
  local y = F[L .. "solve_triangular"](self.scale_tril, M.unsqueeze(x - self.loc, -1), {upper = false})
  return ops.sum(ops.square(M.squeeze(y, -1)), -1) / -2 - half_log_det(self) - self.event_shape[1] / 2 * math.log(2 * math.pi)
end
function MultivariateNormal:entropy() return half_log_det(self) + self.event_shape[1] / 2 * (1 + math.log(2 * math.pi)) end
function KL.MultivariateNormal(p, q)
  local inner = F[L .. "solve_triangular"](q.scale_tril, p.scale_tril, {upper = false})
  local off = M.squeeze(F[L .. "solve_triangular"](q.scale_tril, M.unsqueeze(q.loc - p.loc, -1), {upper = false}), -1)
  return half_log_det(q) - half_log_det(p) + (ops.sum(ops.square(inner), {-2, -1}) + ops.sum(ops.square(off), -1) - p.event_shape[1]) / 2
end

---- made of others ----
-- MixtureSameFamily(mixture_distribution, component_distribution): a Categorical chooses among the last batch dim of the components.
local Mixture = class("MixtureSameFamily", "mixture_distribution, component_distribution")
function Mixture:init(o)
  local which, of = o.mixture_distribution, o.component_distribution
  if type(which) ~= "table" or which._name ~= "Categorical" then
    fail("MixtureSameFamily: argument 1 must be a Categorical, got %s", options.shown(which))
  end
  if type(of) ~= "table" or not of.batch_shape or #of.batch_shape == 0 or of.batch_shape[#of.batch_shape] ~= which.n then
    fail("MixtureSameFamily: argument 2 must be a distribution whose last batch dim has the %d components", which.n)
  end
  self.mixture_distribution, self.component_distribution = which, of
  self.batch_shape, self.event_shape = joined(of.batch_shape), joined(of.event_shape)
  table.remove(self.batch_shape)
end
-- the weights beside the components' events
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

-- Transforms of single elements: forward, inverse, and the logarithm of the slope at x.
local transforms, inverse_of = {}, nil
local function transform(name, signature, t)
  function t.__index(self, k)
    if k == "inv" then return inverse_of(self) end
    if t[k] == nil then fail("%s has no '%s'; it has forward, inverse, inv and log_abs_det_jacobian", name, tostring(k)) end
    return t[k]
  end
  transforms[name] = function(...)
    return setmetatable(signature and options.arguments(name, signature, ...) or t.made(...), t)
  end
  t.__call = function(self, x) return self:forward(x) end
  t.__tostring = function() return name end
  function t:log_abs_det_jacobian(x) return self:slope(x) end
  t.is_transform = true
end
local Inverse = {is_transform = true}
function Inverse.__index(self, k)
  if Inverse[k] == nil then fail("%s has no '%s'; it has forward, inverse, inv and log_abs_det_jacobian", tostring(self), tostring(k)) end
  return Inverse[k]
end
function Inverse:forward(y) return self.inv:inverse(y) end
function Inverse:inverse(x) return self.inv:forward(x) end
function Inverse:slope(y) return -self.inv:slope(self.inv:inverse(y)) end
function Inverse:log_abs_det_jacobian(y) return self:slope(y) end
Inverse.__call = Inverse.forward
Inverse.__tostring = function(self) return tostring(self.inv) .. ".inv" end
function inverse_of(t) return setmetatable({inv = t}, Inverse) end
local function each_parameter(t, fn)
  for _, v in pairs(t) do if core.is_tensor(v) then fn(v) end end
  for _, p in ipairs(rawget(t, "parts") or {rawget(t, "inv")}) do each_parameter(p, fn) end
end
local function check_list(who, list)
  options.items(who, "the list of transforms", list)
  for i, t in ipairs(list) do
    if type(t) ~= "table" or not t.is_transform then fail("%s: %d in the list is %s, no transform", who, i, options.shown(t)) end
  end
  return list
end
-- ComposeTransform{a, b, ...}: one after another. Transforms are called, t(x); t.inv is the inverse, t:log_abs_det_jacobian(x, y) the
-- logarithm of the slope.
transform("ComposeTransform", nil, {
  made = function(parts)
    if type(parts) ~= "table" then fail("ComposeTransform: argument 1 must be a list of transforms, got %s", options.shown(parts)) end
    return {parts = {unpack(check_list("ComposeTransform", parts))}}
  end,
  forward = function(t, x)
    for _, p in ipairs(t.parts) do x = p:forward(x) end
    return x
  end,
  inverse = function(t, y)
    for i = #t.parts, 1, -1 do y = t.parts[i]:inverse(y) end
    return y
  end,
  slope = function(t, x)
    local sum = ops.fill(x, 0)
    for _, p in ipairs(t.parts) do sum, x = sum + p:slope(x), p:forward(x) end
    return sum
  end})
-- ExpTransform(): e to the power of x.
transform("ExpTransform", "",
  {forward = function(_, x) return ops.exp(x) end, inverse = function(_, y) return ops.log(y) end,
    slope = function(_, x) return x end})
-- TanhTransform(): tanh(x).
transform("TanhTransform", "", {forward = function(_, x) return ops.tanh(x) end, inverse = function(_, y) return ops.atanh(y) end,
  slope = function(_, x) return (math.log(2) - x - ops.softplus(x * -2)) * 2 end})
-- SigmoidTransform(): 1 / (1 + exp(-x)).
transform("SigmoidTransform", "", {forward = function(_, x) return ops.sigmoid(x) end,
  inverse = function(_, y) return ops.log(y) - ops.log1p(-y) end,
  slope = function(_, x) return -ops.softplus(-x) - ops.softplus(x) end})
-- SoftplusTransform(): log(1 + exp(x)).
transform("SoftplusTransform", "",
  {forward = function(_, x) return ops.softplus(x) end,
    inverse = function(_, y) return ops.log(-ops.expm1(-y)) + y end, slope = function(_, x) return -ops.softplus(-x) end})
-- AffineTransform(loc, scale): loc + scale x.
transform("AffineTransform", "loc, scale", {forward = function(t, x) return t.loc + t.scale * x end,
  inverse = function(t, y) return (y - t.loc) / t.scale end,
  slope = function(t, x) return x * 0 +
  (core.is_tensor(t.scale) and ops.log(ops.abs(t.scale)) or math.log(math.abs(t.scale))) end})
-- PowerTransform(exponent): x^exponent.
transform("PowerTransform", "exponent", {forward = function(t, x) return ops.pow(x, t.exponent) end,
  inverse = function(t, y) return ops.pow(y, 1 / t.exponent) end,
  slope = function(t, x) return ops.log(ops.abs(t.exponent * ops.pow(x, t.exponent) / x)) end})
distributions.transforms = options.told(transforms, "distributions.transforms")

-- The versions of the tensors in a table, and in those within it, in an order that is the same while these are.
local function versions(t, out, seen)
  out, seen = out or {}, seen or {}
  if seen[t] then return out end
  seen[t] = true
  local names = {}
  for k in pairs(t) do names[#names + 1] = k end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(names) do
    if core.is_tensor(t[k]) then out[#out + 1] = M._version(t[k])
    elseif type(t[k]) == "table" and k ~= "drawn" then versions(t[k], out, seen) end
  end
  return out
end

-- TransformedDistribution(base_distribution, transforms): what becomes of a draw by a transform of distributions.transforms, or by a list
-- of them in turn.
local Transformed = class("TransformedDistribution", "base_distribution, transforms")
function Transformed:init(o)
  local list = o.transforms
  if type(list) == "table" and list.is_transform then list = {list} end
  if type(o.base_distribution) ~= "table" or not o.base_distribution.batch_shape then
    fail("TransformedDistribution: argument 1 must be a distribution, got %s", options.shown(o.base_distribution))
  end
  if type(list) ~= "table" then
    fail("TransformedDistribution: argument 2 must be a transform or a list of them, got %s", options.shown(list))
  end
  check_list("TransformedDistribution", list)
  self.base_dist, self.transforms, self.has_rsample = o.base_distribution, list, o.base_distribution.has_rsample
  self.event_shape, self.batch_shape = joined(self.base_dist.event_shape), {}
  -- transforms of many parameters are of as many draws
  local shapes = {joined(self.base_dist.batch_shape, self.event_shape)}
  for _, t in ipairs(list) do each_parameter(t, function(v) shapes[#shapes + 1] = v.shape end) end
  local shape = lib.common_shape("TransformedDistribution", shapes)
  for i = 1, #shape - #self.event_shape do self.batch_shape[i] = shape[i] end
end
-- What the last draw that may be differentiated came of, step by step, is remembered: the way back loses digits, all of them where a
-- tanh is saturated.
function Transformed:draw(shape)
  local x, steps = self.base_dist:draw(shape), core.is_grad_enabled() and {} or nil
  for i, t in ipairs(self.transforms) do
    if steps then steps[i] = core.keep(x) end
    x = t:forward(x)
  end
  if steps then
    steps[#steps + 1] = x
    self.drawn = {steps = steps, versions = versions({x, self.base_dist, self.transforms})}
  end
  return x
end
-- The draw's steps, where y is it, and neither it nor a parameter has changed since.
local function steps_to(self, y)
  local d = self.drawn
  if not d or not rawequal(y, d.steps[#d.steps]) then return nil end
  local now = versions({y, self.base_dist, self.transforms})
  for i, v in ipairs(d.versions) do if v ~= now[i] then return nil end end
  return #now == #d.versions and d.steps or nil
end
function Transformed:log_prob(y)
  local lost, over, steps = nil, {}, steps_to(self, y)
  for i = 1, #self.event_shape do over[i] = -i end
  for i = #self.transforms, 1, -1 do
    local t = self.transforms[i]
    local x = steps and steps[i] or t:inverse(y)
    local slope = t:slope(x)
    if #over > 0 then slope = ops.sum(slope, over) end
    lost, y = lost and lost + slope or slope, x
  end
  local p = self.base_dist:log_prob(y)
  return lost and p - lost or p
end
