-- TransformedDistribution: another distribution's draws, transformed; LogisticNormal, which is one.
--
-- Idea: a value's log-probability is the base's at the inverse, minus each transform's log-determinant there. Shapes follow from the
-- transforms: the base is expanded to the shape that they broadcast to, and its last batch dims become event dims where a transform takes
-- several together. Invariant: base_dist's dims are those of the first transform's input.
local core = require "tycho.core"
local options = require "tycho.options"
local base = require "tycho.distributions.base"
local chain = require "tycho.distributions.transforms"
local fail = options.fail
local M = core.methods
local distributions, class, joined, C, KL = base.distributions, base.class, base.joined, base.constraints, base.KL
local sum_last = chain.sum_last

-- The versions of the tensors in a table and its inner tables, always in the same order for the same keys.
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

-- TransformedDistribution(base_distribution, transforms): draws to which a transform, or a list of them in order, is applied. Its batch and
-- event dims follow from the base's. log_prob raises if a transform isn't bijective. Transforms with cache_size = 1, counted back from the
-- last one, remember the input of the last rsample: log_prob of that very tensor then doesn't invert them, which would lose digits (all of
-- them where a tanh is saturated), and has no gradient through it.
local Transformed = class("TransformedDistribution", "base_distribution, transforms")
function Transformed:init(o)
  local of, list, name = o.base_distribution, o.transforms, self._name
  if chain.is_transform(list) then list = {list} end
  if not base.is_distribution(of) then fail("%s: argument 1 must be a distribution, got %s", name, options.shown(of)) end
  if type(list) ~= "table" then fail("%s: argument 2 must be a transform or a list of them, got %s", name, options.shown(list)) end
  list = chain.check_list(name, list)
  local whole = chain.transforms.ComposeTransform(list)
  local shape, event = joined(of.batch_shape, of.event_shape), #of.event_shape
  local into, out = whole.domain.event_dim, whole.codomain.event_dim
  if #shape < into then fail("%s: the transforms need a base of %d dims or more, got shape %s", name, into, tostring(of.batch_shape)) end
  local after = whole:forward_shape(shape)
  local before = whole:inverse_shape(after)
  if table.concat(before, "x") ~= table.concat(shape, "x") then
    of = of:expand {batch_shape = {unpack(joined(before), 1, #before - event)}}
  end
  if into > event then of = distributions.Independent(of, into - event) end
  self.base_dist, self.transforms, self.has_rsample = of, list, of.has_rsample
  local dims = math.max(out, event + out - into)
  self.batch_shape, self.event_shape = {unpack(joined(after), 1, #after - dims)}, {unpack(joined(after), #after - dims + 1)}
end
function Transformed.get.support(self)
  local last = self.transforms[#self.transforms]
  if not last then return self.base_dist.support end
  local more = #self.event_shape - last.codomain.event_dim
  return more > 0 and C.independent(last.codomain, more) or last.codomain
end
function Transformed:expand(...)
  local to, new = base.wider(self, ...), {}
  local shape = joined(to, self.event_shape)
  for i = #self.transforms, 1, -1 do shape = self.transforms[i]:inverse_shape(shape) end
  for k, v in pairs(self) do if k ~= "drawn" then new[k] = v end end
  new.base_dist = self.base_dist:expand {batch_shape = {unpack(joined(shape), 1, #shape - #self.base_dist.event_shape)}}
  new.batch_shape = setmetatable(to, getmetatable(self.batch_shape))
  return setmetatable(new, getmetatable(self))
end

function Transformed:draw(shape)
  local outer = {unpack(shape, 1, #shape - #self.batch_shape - #self.event_shape)}
  local x = self.base_dist:draw(joined(outer, self.base_dist.batch_shape, self.base_dist.event_shape))
  local last = self.transforms[#self.transforms]
  local steps = core.is_grad_enabled() and last and last.cache_size == 1 and {} or nil
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
-- The draw's steps, if y is that draw, and neither it nor a parameter has changed since.
local function steps_to(self, y)
  local d = self.drawn
  if not d or not rawequal(y, d.steps[#d.steps]) then return nil end
  local now = versions({y, self.base_dist, self.transforms})
  for i, v in ipairs(d.versions) do if v ~= now[i] then return nil end end
  return #now == #d.versions and d.steps or nil
end
function Transformed:log_prob(y)
  local lost, dims, steps = nil, #self.event_shape, steps_to(self, y)
  for i = #self.transforms, 1, -1 do
    local t = self.transforms[i]
    if t.cache_size ~= 1 then steps = nil end
    local x, into = steps and steps[i] or t:inverse(y), t.domain.event_dim
    dims = dims + into - t.codomain.event_dim
    local slope = sum_last(t:log_abs_det_jacobian(x, y), dims - into)
    lost, y = lost and lost + slope or slope, x
  end
  local p = sum_last(self.base_dist:log_prob(y), dims - #self.base_dist.event_shape)
  return lost and p - lost or p
end

-- p, or 1 - p if the transforms reverse the order of values
local function monotone(self, what, p)
  local sign = 1
  for _, t in ipairs(self.transforms) do
    if t.domain.event_dim > 0 or not t.bijective then
      fail("%s: this distribution has no %s: %s isn't a monotonic function of single numbers", self._name, what, tostring(t))
    end
    sign = sign * t.sign
  end
  return sign == 1 and p or sign * (p - 0.5) + 0.5
end
-- dist:cdf(y), dist:icdf(p): the probability of draws up to y, and the y whose cdf is p, from the base's; of the shape that y, or p, and
-- the batch broadcast to. An error if the base has none, or a transform takes several numbers together or isn't bijective.
function Transformed:cdf(y)
  for i = #self.transforms, 1, -1 do y = self.transforms[i]:inverse(y) end
  return monotone(self, "cdf", self.base_dist:cdf(y))
end
function Transformed:icdf(p)
  local x = self.base_dist:icdf(monotone(self, "icdf", p))
  for _, t in ipairs(self.transforms) do x = t:forward(x) end
  return x
end
-- Equal transforms lose nothing, so the divergence is that of the bases.
function KL.TransformedDistribution(p, q)
  if not chain.same(p.transforms, q.transforms) or tostring(p.event_shape) ~= tostring(q.event_shape) then
    fail("kl_divergence: %s and %s must have the same transforms and event shape", p._name, q._name)
  end
  return distributions.kl_divergence(p.base_dist, q.base_dist)
end

-- LogisticNormal(loc, scale): StickBreakingTransform of a Normal's vectors: n numbers along the last dim of loc and scale (one if they are
-- numbers) become n + 1 numbers >= 0 that add up to 1. An error if scale isn't above 0.
local LogisticNormal = class("LogisticNormal", "loc, scale", Transformed)
function LogisticNormal:init(o)
  local normal = distributions.Normal(o.loc, o.scale)
  if #normal.batch_shape == 0 then normal = normal:expand {1} end
  Transformed.init(self, {base_distribution = normal, transforms = chain.transforms.StickBreakingTransform()})
end
function LogisticNormal.get.loc(self) return self.base_dist.base_dist.loc end
function LogisticNormal.get.scale(self) return self.base_dist.base_dist.scale end
LogisticNormal.arg_constraints = distributions.Normal.arg_constraints
base.supports(LogisticNormal, C.simplex)

distributions.transforms = options.told(chain.transforms, "distributions.transforms")
