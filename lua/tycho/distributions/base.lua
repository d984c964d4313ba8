-- The common base of distributions.
--
-- Idea: a class defines its parameters, how it draws and a value's log-probability, all by ops, so gradients flow to parameters: through
-- log_prob(x), and through rsample() where draws are differentiable functions of them. sample(shape) draws without history; its result has
-- the dims of shape, then the parameters' common (batch) dims, then those of one event. Parameters, and values of classes that supports()
-- names, are checked where that waits for no device; {validate_args = false}: they aren't. Invariant: all tensors and inner distributions
-- of a distribution have its batch dims first (except those that its class calls unbatched), so expand() needs no knowledge of the class.
local core = require "tycho.core"
local options = require "tycho.options"
local no_grad = require("tycho.modes").no_grad
local lib = require "tycho.functional.lib"
local constraints = require "tycho.distributions.constraints"
local F = require("tycho.functional").functions
local fail = options.fail
local ops, M = core.ops, core.methods
local distributions = {}

local Distribution = {has_rsample = false, has_enumerate_support = false, arg_constraints = {}}

local validates, unchecked = true, false                -- validate_args by default; whether a distribution is being made without
local SHAPE = getmetatable(ops.zeros({}).shape)         -- the metatable of tensors' shapes, which print and compare
local function joined(...)
  local out = {}
  for i = 1, select("#", ...) do
    for _, n in ipairs((select(i, ...)) or {}) do out[#out + 1] = n end
  end
  return out
end

-- Fields computed on access: dist.mean, dist.mode, dist.variance, dist.stddev, dist.probs, dist.logits, dist.support (a constraint). A
-- class's fields: has_rsample, has_enumerate_support, arg_constraints (a table: parameter -> constraint).
local FIELDS = {mean = true, mode = true, variance = true, stddev = true, probs = true, logits = true, support = true}
for _, name in ipairs {"cdf", "icdf", "entropy"} do
  -- entropy() in nats; cdf(x), the probability of values up to x; icdf(p), its inverse; an error if the distribution has none.
  Distribution[name] = function(self) fail("%s: this distribution has no %s", self._name, name) end
end
for name, call in pairs {draw = "draw(shape)", log_prob = "log_prob(x)"} do     -- for a user's own class
  Distribution[name] = function(self) fail("%s: a method %s is needed", self._name, call) end
end
local function is_distribution(v) return type(v) == "table" and rawget(v, "batch_shape") ~= nil end
-- One of dist's floating tensors, or of those of its inner distributions, a float64 one if there is any; nil if there is none.
local function parameter_of(dist)
  local found
  for _, v in pairs(dist) do
    local p = core.is_tensor(v) and M.is_floating_point(v) and v or is_distribution(v) and parameter_of(v) or nil
    if p and p.dtype == "float64" then return p end
    found = found or p
  end
  return found
end
-- A value's dims must broadcast with the batch dims followed by the event's.
local function fits(dist, what, x)
  local whole, n = joined(dist.batch_shape, dist.event_shape), M.dim(x)
  for i = 1, math.min(n, #whole) do
    local a, b = x.shape[n + 1 - i], whole[#whole + 1 - i]
    if a ~= b and a ~= 1 and b ~= 1 then
      fail("%s: %s: a value of shape %s doesn't broadcast with the batch and event shape, %s", dist._name, what, tostring(x.shape),
        table.concat(whole, "x"))
    end
  end
end
-- Refuses NaN in a new distribution's arguments, which would otherwise show only in a draw, or never.
local function refuse_nan(name, signature, o)
  for _, k in ipairs(options.names(signature)) do
    local v = o[k]
    if core.is_tensor(v) and M.is_floating_point(v) and M.numel(v) > 0 and lib.looks(v) then
      v = ops.amax(M.detach(v)):item()                     -- NaN if there is one
    end
    if type(v) == "number" and v ~= v then fail("%s: %s is or contains NaN", name, k) end
  end
end
-- parent: the class from which this one inherits methods and fields. Gives the class and its constructor, which becomes distributions[name]
-- unless the class is a user's own.
local function class(name, signature, parent, own)
  local get = setmetatable({}, {__index = parent and parent.get})
  local c = setmetatable({_name = name, _parent = parent, get = get}, {__index = parent or Distribution, __newindex = function(t, k, v)
    if k == "entropy" or k == "expand" then v = options.method(name, "dist", k, is_distribution, v)
    elseif k == "log_prob" or k == "cdf" or k == "icdf" then                  -- also of a number, on the parameters' device
      local fn = v
      v = function(self, x, ...)
        if not is_distribution(self) then fail("%s: call it with a colon: dist:%s(x)", name, k) end
        if select("#", ...) > 0 then fail("%s: %s takes one value", self._name, k) end
        local like = type(x) == "number" and parameter_of(self) or nil
        if type(x) == "number" then
          x = ops.full({}, x, {dtype = like and like.dtype == "float64" and "float64" or "float32", device = "cpu"})    -- checked there
        end
        if not core.is_tensor(x) then fail("%s: %s needs a number or a tensor, got %s", self._name, k, options.shown(x)) end
        if x.shape ~= self.batch_shape then fits(self, k, x) end
        local checks = (k == "log_prob" or k == "cdf") and self.checked and self.validate and lib.looks(x)
        if checks and not ops.all(self.support:check(x)):item() then
          fail("%s: %s: a value must be %s", self._name, k, type(self.checked) == "string" and self.checked or self.support.text)
        end
        return fn(self, like and M.to(x, like.device) or x)
      end
    end
    rawset(t, k, v)
  end})
  function c.__index(self, k)
    if c.get[k] then return c.get[k](self) end
    if k == "stddev" and c.get.variance then return ops.sqrt(c.get.variance(self)) end
    local v = c[k]
    if v == nil and FIELDS[k] then fail("%s: this distribution has no %s", name, k) end
    return v
  end
  -- Normal(loc=0, scale=2) if all parameters have one element
  c.__tostring = function(self)
    local out, one = {}, true
    for _, k in ipairs(options.names(signature)) do
      local v = rawget(self, k)
      one = one and not (core.is_tensor(v) and M.numel(v) ~= 1)
      if one and core.is_tensor(v) then out[#out + 1] = ("%s=%g"):format(k, v:item()) end
    end
    if #out == 0 or not one then out[1] = ("batch %s, event %s"):format(tostring(self.batch_shape), tostring(self.event_shape)) end
    return ("%s(%s)"):format(name, table.concat(out, ", ", 1, one and #out or 1))
  end
  c._signature = signature
  local made = setmetatable({}, {__index = c, __call = function(_, ...)
    local self = setmetatable({event_shape = {}}, c)
    local o = options.arguments(name, signature .. (signature == "" and "*" or ", *") .. ", validate_args=nil", ...)
    if o.validate_args == nil then o.validate_args = validates and not unchecked end     -- inner ones are as those that make them
    if type(o.validate_args) ~= "boolean" then
      fail("%s: validate_args must be true or false, got %s", name, options.shown(o.validate_args))
    end
    self.validate = o.validate_args
    if self.validate then refuse_nan(name, signature, o) end
    local before = unchecked
    if before == not self.validate then self:init(o)
    else
      local function restore() unchecked = before end
      unchecked = not self.validate
      options.finally(restore, self.init, self, o)
    end
    if self.finish then self:finish() end    -- a user's own class
    self.batch_shape, self.event_shape = setmetatable(joined(self.batch_shape), SHAPE), setmetatable(self.event_shape, SHAPE)
    return self
  end})
  if not own then distributions[name] = made end
  return c, made
end

-- Makes numbers tensors like the others, and gives all one shape. A tensor that has it stays itself, so that a distribution made once from
-- a parameter can be differentiated repeatedly.
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
  if not unchecked and lib.looks(x) and not ops.all(ok):item() then fail("%s: %s", name, what) end
end
local function same(x) return {dtype = x.dtype, device = x.device} end
-- A shape as a list, from sample({2, 3}), sample(2) or sample{sample_shape = {2, 3}}. how: the call, for errors.
local function sizes(name, how, option, shape, ...)
  if select("#", ...) > 0 then fail("%s: a shape must be one list of sizes, such as %s({2, 3})", name, how) end
  if shape == nil then return {} end
  if options.has_names(shape) then
    options.check(name, shape, {[option] = true})
    shape = shape[option]
  end
  local list = type(shape) == "number" and {shape} or shape
  if type(list) ~= "table" or core.is_tensor(list) then
    fail("%s: a shape must be a list of sizes, got %s", name, options.shown(shape))
  end
  for i, n in ipairs(list) do options.whole(name, how .. ": size " .. i, n, 0) end
  return list
end

local function need_positive(self, names)
  for _, name in ipairs(names) do need(self._name, name .. " must be above 0", self[name], ops.gt(self[name], 0)) end
end

-- Defines a class's init: its parameters by name; those in `above` must be above 0.
local function parameters(c, names, above)
  c.arg_constraints = {}
  for _, name in ipairs(names) do c.arg_constraints[name] = constraints.real end
  for _, name in ipairs(above) do c.arg_constraints[name] = constraints.positive end
  function c:init(o)
    local given = {}
    for i, name in ipairs(names) do given[i] = o[name] end
    given = {together(self._name, unpack(given, 1, #names))}
    for i, name in ipairs(names) do self[name] = given[i] end
    need_positive(self, above)
    self.batch_shape = given[1].shape
  end
end

-- Sets the support of class c: a constraint, or a function of self that gives one. log_prob raises for other values, unless {checked =
-- false}: then it gives -inf, or anything. text: what errors say a value must be.
local function supports(c, constraint, o)
  c.get.support = type(constraint) == "function" and constraint or function() return constraint end
  c.checked = not (o and o.checked == false) and (o and o.text or true)
end
-- dist:perplexity(): exp of the entropy, of the batch's shape. An error if there is no entropy.
function Distribution:perplexity() return ops.exp(self:entropy()) end

-- sample(sample_shape): draws without history. The result has the dims of sample_shape, a list of sizes, then the batch dims, then those
-- of one event.
function Distribution:sample(...)
  return M.detach(no_grad(self.draw, self, joined(sizes(self._name, "sample", "sample_shape", ...), self.batch_shape, self.event_shape)))
end
-- rsample(sample_shape): draws as differentiable functions of the parameters; an error if there is no such way.
function Distribution:rsample(...)
  if not self.has_rsample then
    fail("%s: there is no rsample, as draws have no gradients for the parameters: use sample and log_prob", self._name)
  end
  return self:draw(joined(sizes(self._name, "rsample", "sample_shape", ...), self.batch_shape, self.event_shape))
end

-- the batch dims requested from expand(), to which dist's must broadcast
local function wider(dist, ...)
  local name, from = dist._name, joined(dist.batch_shape)
  local to = sizes(name, "expand", "batch_shape", ...)
  for i = 1, math.max(#from, #to) do
    local a, b = from[#from + 1 - i], to[#to + 1 - i]
    if a ~= nil and a ~= b and (a ~= 1 or b == nil) then
      fail("%s: expand: batch shape %s doesn't broadcast to %s", name, tostring(dist.batch_shape), table.concat(to, "x"))
    end
  end
  return joined(to)
end
-- dist:expand({batch_shape}): the same distribution with these batch dims, its parameters as views. An error if its own batch dims don't
-- broadcast to them. Values have the new batch dims before the event's.
function Distribution:expand(...)
  local to, from = wider(self, ...), #self.batch_shape
  local function rest(shape) return joined(to, {unpack(joined(shape), from + 1)}) end
  local new = {}
  for k, v in pairs(self) do
    if k == "batch_shape" then v = setmetatable(joined(to), SHAPE)
    elseif self.unbatched and self.unbatched[k] then v = self[k]
    elseif core.is_tensor(v) then v = ops.expand(v, rest(v.shape))
    elseif is_distribution(v) then v = v:expand(rest(v.batch_shape)) end
    new[k] = v
  end
  return setmetatable(new, getmetatable(self))
end
-- dist:enumerate_support({expand=true}): every possible value, along dim 1: a tensor with as many entries, then the batch dims (each of
-- size 1 with expand=false) and the event's. An error if there is no finite list of them, see has_enumerate_support.
function Distribution:enumerate_support(...)
  local o = options.arguments("enumerate_support", "expand=true", ...)
  if not self.has_enumerate_support then fail("%s: this distribution has no enumerate_support: it has too many values", self._name) end
  local values, ones = self:values(), {}
  for i = 1, #self.batch_shape do ones[i] = 1 end
  local n, event = {values.shape[1]}, self.event_shape
  values = M.reshape(values, joined(n, ones, event))
  return o.expand and ops.expand(values, joined(n, self.batch_shape, event)) or values
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
-- Draws by a generator of core/draws.h, of this shape, float64, without history.
local function drawn(kind, shape, x, y)
  local function wide(v) return v and M.to(ops.expand(M.detach(v), shape), "float64") end
  return ops.drawn(wide(x), wide(y), {kind = kind})
end
local function open_unit(shape, like) return lib.open_unit(shape, like.dtype, like.device) end

options.colon(Distribution, "dist", is_distribution)
-- set_default_validate_args(on): whether parameters and values are checked where validate_args isn't given.
function Distribution.set_default_validate_args(on, given)
  if type(on) == "table" then on = given end               -- with a colon
  if type(on) ~= "boolean" then fail("set_default_validate_args: argument 1 must be true or false, got %s", options.shown(on)) end
  validates = on
end

-- KL: the divergences of two distributions, by their classes' names: KL.Normal(p, q), KL["Normal Laplace"](p, q).
return {distributions = distributions, Distribution = Distribution, constraints = constraints, class = class,
  together = together, need = need, need_positive = need_positive,
  parameters = parameters, supports = supports, same = same, joined = joined, one_given = one_given, one_of = one_of,
  open_unit = open_unit, drawn = drawn, is_distribution = is_distribution, wider = wider, KL = {}}
