-- Distributions and transforms of a program's own: Distribution:extend, Transform:extend.
--
-- Idea: what the library's classes are made by makes these too, so all that takes a distribution, or a transform, takes them: expand,
-- Independent, mixtures, TransformedDistribution, kl_divergence through register_kl. Invariant: a class's methods are looked at when they
-- are assigned, so that what PyTorch calls otherwise is told there.
local core = require "tycho.core"
local options = require "tycho.options"
local base = require "tycho.distributions.base"
local chain = require "tycho.distributions.transforms"
local fail = options.fail
local distributions, Distribution = base.distributions, base.Distribution

local function check(name, signature)
  if type(name) ~= "string" then fail("extend: argument 1 (name) must be a string, got %s", options.shown(name)) end
  if signature ~= nil and type(signature) ~= "string" then
    fail("extend: argument 2 (signature) must be a string of the arguments' names, such as \"loc, scale\", got %s",
      options.shown(signature))
  end
  if rawget(distributions, name) or rawget(chain.transforms, name) then
    fail("extend: '%s' is one of the library's: take another name", name)
  end
end

-- Says of each name in a constraint table that the parameter holds. Those that aren't kept under their name aren't looked at.
local function check_parameters(self)
  for name, constraint in pairs(self.arg_constraints) do
    local v = rawget(self, name)
    if core.is_tensor(v) then base.need(self._name, name .. " must be " .. constraint.text, v, constraint:check(v)) end
  end
end

-- Of a class that has no init: all arguments are parameters, which broadcast; a draw is one value of their shape.
local function plain_init(self, o)
  local names, given = {}, {}
  for _, name in ipairs(options.names(self._signature)) do
    if o[name] ~= nil then names[#names + 1], given[#given + 1] = name, o[name] end
  end
  given = {base.together(self._name, unpack(given))}
  for i, name in ipairs(names) do self[name] = given[i] end
  self.batch_shape = given[1] and given[1].shape or {}
end

local CALLED = {sample = "draw(shape)", rsample = "draw(shape)"}
-- A distribution of one's own: local Kumaraswamy = Distribution:extend("Kumaraswamy", "a, b"), whose second argument has the parameters'
-- names in order, with defaults, and whose methods are computed by ops: draw(shape), draws of all these dims, as functions of the
-- parameters where has_rsample = true; log_prob(x); entropy(), cdf(x), icdf(p) as far as there are such; and get.mean(self),
-- get.variance(self), get.mode(self), which make fields. support, a constraint, says where values are: log_prob is asked for these alone;
-- arg_constraints = {a = constraints.positive} where parameters are. Parameters become tensors of one shape in self; a class whose draws
-- have dims of their own has init(o), with the arguments by name, which sets self's tensors, self.batch_shape and self.event_shape.
-- Classes of the library and of one's own can be extended too: distributions.Normal:extend("Mine").
function Distribution:extend(name, signature)
  local meta = type(self) == "table" and getmetatable(self)
  local of = meta and meta.__index
  if of ~= Distribution and not (type(of) == "table" and rawget(of, "_signature")) then
    fail("extend: it is called with a colon, of a class: distributions.Distribution:extend(\"Name\", \"loc, scale\")")
  end
  check(name, signature)
  signature = signature or (of ~= Distribution and of._signature) or ""
  local class, made = base.class(name, signature, of ~= Distribution and of or nil, true)
  if of == Distribution then class.init = plain_init end
  function class.finish(dist)
    if dist.batch_shape == nil then fail("%s: its init must set self.batch_shape, and self.event_shape where draws have dims", name) end
    if dist.validate then check_parameters(dist) end
  end
  meta = getmetatable(made)
  function meta.__newindex(_, k, v)
    if CALLED[k] then fail("%s: a distribution of one's own has %s, which sample and rsample call; '%s' isn't", name, CALLED[k], k) end
    rawset(class, k, nil)                  -- what is defined again is looked at again
    if k == "support" then base.supports(class, v) else class[k] = v end
  end
  return made
end
-- The base of all: its method extend makes a class. Calling it is an error.
distributions.Distribution = setmetatable({}, {__index = Distribution, __call = function()
  fail("Distribution: it is a base class: distributions.Distribution:extend(\"Name\", \"loc, scale\") makes a class of it")
end})

local NEEDED = {forward = "forward(x)", inverse = "inverse(y)", slope = "log_abs_det_jacobian(x, y)"}
local THEIRS = {_call = NEEDED.forward, _inverse = NEEDED.inverse, slope = NEEDED.slope}
local THEIR_FIELDS = {domain = true, codomain = true, inv = true, bijective = true, sign = true, event_dim = true, init = true,
  cache_size = true}
local Transform = {}
-- A transform of one's own: local Leaky = Transform:extend("Leaky", "alpha=0.1"), whose second argument has the arguments' names in order,
-- with defaults; they are self's fields. Methods: forward(x); inverse(y); log_abs_det_jacobian(x, y) of all but the last domain.event_dim
-- dims; init(self), which looks at arguments, and forward_shape(shape) and inverse_shape(shape) where sizes change. Fields, with what they
-- are if they aren't set: domain and codomain, constraints (constraints.real; real_vector takes the last dim together, as coupling layers
-- do), bijective (true), sign (where numbers keep their order 1, where they turn it around -1).
function Transform:extend(name, signature) -- luacheck: no self
  check(name, signature)
  local t, make = chain.define(name, signature or "", {own = true})
  for _, arg in ipairs(options.names(signature or "")) do
    if t[arg] ~= nil or NEEDED[arg] or THEIR_FIELDS[arg] then
      fail("%s: an argument can't be named '%s': transforms have that themselves", name, arg)
    end
  end
  for k, call in pairs(NEEDED) do t[k] = function() fail("%s: a method %s is needed", name, call) end end
  return setmetatable({}, {__index = t, __call = function(_, ...) return make(...) end, __tostring = function() return "class " .. name end,
    __newindex = function(_, k, v)
      if THEIRS[k] then fail("%s: a transform of one's own has %s; '%s' isn't called", name, THEIRS[k], k) end
      t[k == "log_abs_det_jacobian" and "slope" or k] = chain.checking(name, k, v)
    end})
end
chain.transforms.Transform = Transform
distributions.Transform = Transform
