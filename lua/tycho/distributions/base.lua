-- What distributions are made of.
--
-- Idea: a class says what its parameters are, how it draws and what a value's log-probability is; all are ops, so
-- gradients flow to parameters: through
-- log_prob(x), and through rsample() where a draw is a function of them. sample(shape) draws without history; its
-- result has dims shape, then the parameters' common (batch) dims, then those of one event. Parameters, and values
-- where supported(x) says what may be, are checked where that waits for no device; {validate_args = false}: values aren't.
local core = require "tycho.core"
local options = require "tycho.options"
local no_grad = require("tycho.modes").no_grad
local lib = require "tycho.functional.lib"
local F = require("tycho.functional").functions
local fail = options.fail
local ops, M = core.ops, core.methods
local distributions = {}

local Distribution = {}

local SHAPE = getmetatable(ops.zeros({}).shape)         -- as tensors' shapes print and compare
local function joined(...)
  local out = {}
  for i = 1, select("#", ...) do
    for _, n in ipairs((select(i, ...)) or {}) do out[#out + 1] = n end
  end
  return out
end

-- Fields that follow from others are found by name: dist.mean, dist.mode, dist.variance, dist.stddev, dist.probs, dist.logits.
local FIELDS = {mean = true, mode = true, variance = true, stddev = true, probs = true, logits = true}
for _, name in ipairs {"cdf", "icdf", "entropy"} do
  -- entropy() in nats; cdf(x), the probability of values up to x; icdf(p), its inverse; an error where the distribution has none.
  Distribution[name] = function(self) fail("%s: there is no %s of it", self._name, name) end
end
local function is_distribution(v) return type(v) == "table" and v.batch_shape ~= nil end
local function class(name, signature)
  local c = setmetatable({_name = name, get = {}}, {__index = Distribution, __newindex = function(t, k, v)
    if k == "entropy" then v = options.method(name, "dist", k, is_distribution, v)
    elseif k == "log_prob" or k == "cdf" or k == "icdf" then                  -- of a number too
      local fn = v
      v = function(self, x, ...)
        if not is_distribution(self) then fail("%s: it is called with a colon: dist:%s(x)", name, k) end
        if select("#", ...) > 0 then fail("%s: %s takes one value", name, k) end
        if type(x) == "number" then x = ops.full({}, x, {dtype = "float32", device = "cpu"}) end
        if not core.is_tensor(x) then fail("%s: %s needs a number or a tensor, got %s", name, k, options.shown(x)) end
        if k == "log_prob" and self.supported and self.validate and lib.looks(x) and not ops.all(self:supported(x)):item() then
          fail("%s: log_prob: a value must be %s", name, self.support_text)
        end
        return fn(self, x)
      end
    end
    rawset(t, k, v)
  end})
  function c.__index(self, k)
    if c.get[k] then return c.get[k](self) end
    if k == "stddev" and c.get.variance then return ops.sqrt(c.get.variance(self)) end
    local v = c[k]
    if v == nil and FIELDS[k] then fail("%s: there is no %s of it", name, k) end
    return v
  end
  -- Normal(loc=0, scale=2) where all parameters are of one element
  c.__tostring = function(self)
    local out, one = {}, true
    for k in signature:gmatch "([%w_]+)[^,]*" do
      local v = rawget(self, k)
      one = one and not (core.is_tensor(v) and M.numel(v) ~= 1)
      if one and core.is_tensor(v) then out[#out + 1] = ("%s=%g"):format(k, v:item()) end
    end
    if #out == 0 or not one then out[1] = ("batch %s, event %s"):format(tostring(self.batch_shape), tostring(self.event_shape)) end
    return ("%s(%s)"):format(name, table.concat(out, ", ", 1, one and #out or 1))
  end
  distributions[name] = setmetatable({}, {__index = c, __call = function(_, ...)
    local self = setmetatable({event_shape = {}}, c)
    local o = options.arguments(name, signature .. (signature == "" and "*" or ", *") .. ", validate_args=true", ...)
    self.validate = o.validate_args
    self:init(o)
    self.batch_shape, self.event_shape = setmetatable(joined(self.batch_shape), SHAPE), setmetatable(self.event_shape, SHAPE)
    return self
  end})
  return c
end

-- Numbers become tensors as the others are; all take one shape. What has it is itself: a distribution that is made once of a parameter can
-- be differentiated again and again.
local function together(name, ...)
  local like, list, n = nil, {}, select("#", ...)
  for i = 1, n do
    local v = select(i, ...)
    if core.is_tensor(v) then like = like or (M.is_floating_point(v) and v or M.float(v))
    elseif type(v) ~= "number" then fail("%s: parameters must be numbers or tensors, got %s", name, options.shown(v)) end
  end
  for i = 1, n do
    local v = select(i, ...)
    list[i] = core.is_tensor(v) and (M.is_floating_point(v) and v or M.float(v)) or
      ops.full({}, v, {dtype = like and like.dtype or "float32", device = like and like.device})
  end
  local out = {F.broadcast_tensors(list)}
  for i = 1, n do if list[i].shape == out[i].shape then out[i] = list[i] end end
  return unpack(out, 1, n)
end
local function need(name, what, x, ok)
  if lib.looks(x) and not ops.all(ok):item() then fail("%s: %s", name, what) end
end
local function same(x) return {dtype = x.dtype, device = x.device} end
local function sizes(name, shape, ...)
  if select("#", ...) > 0 then fail("%s: a shape must be one list of sizes, such as sample({2, 3})", name) end
  if shape == nil then return {} end
  if type(shape) == "table" and type(next(shape)) == "string" then
    options.check(name, shape, {sample_shape = true})
    shape = shape.sample_shape
  end
  if type(shape) == "number" then return {shape} end
  if type(shape) ~= "table" or core.is_tensor(shape) then
    fail("%s: a shape must be a list of sizes, got %s", name, options.shown(shape))
  end
  return shape
end

-- A class's init: its parameters by name, of which those in above are above 0.
local function parameters(c, names, above)
  function c:init(o)
    local given = {}
    for i, name in ipairs(names) do given[i] = o[name] end
    given = {together(self._name, unpack(given, 1, #names))}
    for i, name in ipairs(names) do self[name] = given[i] end
    for _, name in ipairs(above) do need(self._name, name .. " must be above 0", self[name], ops.gt(self[name], 0)) end
    self.batch_shape = given[1].shape
  end
end

---- where values may be ----
local function whole(x) return ops.eq(x, ops.floor(M.is_floating_point(x) and x or M.float(x))) end
local function both(a, b) return ops.logical_and(a, b) end
local SUPPORT = {
  positive = {"above 0", function(_, x) return ops.gt(x, 0) end},
  ["not negative"] = {"from 0", function(_, x) return ops.ge(x, 0) end},
  count = {"a whole number from 0", function(_, x) return both(ops.ge(x, 0), whole(x)) end},
  boolean = {"0 or 1", function(_, x) return ops.logical_or(ops.eq(x, 0), ops.eq(x, 1)) end},
  unit = {"in 0..1", function(_, x) return both(ops.ge(x, 0), ops.le(x, 1)) end},
  simplex = {"from 0 and add up to 1 along the last dim", function(_, x)
    return both(ops.all(ops.ge(x, 0), -1), ops.lt(ops.abs(ops.sum(x, -1) - 1), 1e-6 + 16 * lib.EPS[x.dtype]))
  end},
}
-- Says what log_prob of the class c may be asked for: one of those above, or a text and a function of self and x.
local function supports(c, text, fn)
  local known = SUPPORT[text]
  c.support_text, c.supported = known and known[1] or text, known and known[2] or fn
end
-- e to the power of the entropy.
function Distribution:perplexity() return ops.exp(self:entropy()) end

-- sample(shape): draws without history. The result has the dims shape, a list of sizes, then those of the parameters, then those of one
-- event.
function Distribution:sample(...)
  return M.detach(no_grad(self.draw, self, joined(sizes(self._name, ...), self.batch_shape, self.event_shape)))
end
-- rsample(shape): draws as functions of the parameters, which get gradients; an error where there is no such way.
function Distribution:rsample(...)
  if not self.has_rsample then
    fail("%s: draws aren't a function of the parameters that has gradients: use sample and log_prob", self._name)
  end
  return self:draw(joined(sizes(self._name, ...), self.batch_shape, self.event_shape))
end

---- one of two parameters ----
local function one_given(name, probs, logits)
  if (probs == nil) == (logits == nil) then
    fail("%s: one of probs and logits is needed, got %s", name, probs == nil and "neither" or "both")
  end
end
local function one_of(name, probs, logits)
  one_given(name, probs, logits)
  local given = together(name, probs == nil and logits or probs)
  if probs ~= nil then need(name, "probs must lie in 0..1", given, ops.logical_and(ops.ge(given, 0), ops.le(given, 1))) end
  return given
end
local function open_unit(shape, like) return require("tycho.functional.lib").open_unit(shape, like.dtype, like.device) end

options.colon(Distribution, "dist", is_distribution)

return {distributions = distributions, class = class, together = together, need = need, parameters = parameters,
  supports = supports, whole = whole, same = same, joined = joined, one_given = one_given, one_of = one_of, open_unit = open_unit, KL = {}}
