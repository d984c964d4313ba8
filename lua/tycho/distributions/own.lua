-- Users' own distributions and transforms: Distribution:extend, Transform:extend.
--
-- Idea: they are made by the same functions as the library's classes, so everything that takes a distribution or a transform takes them:
-- expand, Independent, mixtures, TransformedDistribution, kl_divergence through register_kl. Invariant: a class's methods are checked when
-- they are assigned, so that a name under which PyTorch knows a method is reported there.
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
    fail("extend: '%s' is the name of one of the library's classes: choose another", name)
  end
end

-- Checks that each parameter satisfies its constraint. Parameters not stored under their name are skipped.
local function check_parameters(self)
  for name, constraint in pairs(self.arg_constraints) do
    local v = rawget(self, name)
    if core.is_tensor(v) then base.need(self._name, name .. " must be " .. constraint.text, v, constraint:check(v)) end
  end
end

-- The init of a class without one: all arguments are parameters, which broadcast; an event is a single number.
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
-- A user's own distribution: local Kumaraswamy = Distribution:extend("Kumaraswamy", "a, b"), whose second argument lists the parameters'
-- names in order, with defaults, and whose methods use ops: draw(shape), draws with all these dims, differentiable functions of the
-- parameters if has_rsample = true; log_prob(x); entropy(), cdf(x), icdf(p), where these exist; and get.mean(self), get.variance(self),
-- get.mode(self), which compute fields. support, a constraint, limits the values that log_prob accepts; arg_constraints = {a =
-- constraints.positive} limits parameters. Parameters become tensors of one shape in self; a class whose draws have event dims has init(o),
-- with the arguments by name, which sets self's tensors, self.batch_shape and self.event_shape. The library's classes and users' own can
-- also be extended: distributions.Normal:extend("Mine").
function Distribution:extend(name, signature)
  local meta = type(self) == "table" and getmetatable(self)
  local of = meta and meta.__index
  if of ~= Distribution and not (type(of) == "table" and rawget(of, "_signature")) then
    fail("extend: call it with a colon on a class: distributions.Distribution:extend(\"Name\", \"loc, scale\")")
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
    if CALLED[k] then fail("%s: define %s, which sample and rsample call, instead of '%s'", name, CALLED[k], k) end
    rawset(class, k, nil)                  -- a redefined method is checked again
    if k == "support" then base.supports(class, v) else class[k] = v end
  end
  return made
end
-- The base of all distributions: its method extend makes a class. Calling it is an error.
distributions.Distribution = setmetatable({}, {__index = Distribution, __call = function()
  fail("Distribution: this is a base class: distributions.Distribution:extend(\"Name\", \"loc, scale\") makes a class of your own")
end})

local NEEDED = {forward = "forward(x)", inverse = "inverse(y)", slope = "log_abs_det_jacobian(x, y)"}
local THEIRS = {_call = NEEDED.forward, _inverse = NEEDED.inverse, slope = NEEDED.slope}
local THEIR_FIELDS = {domain = true, codomain = true, inv = true, bijective = true, sign = true, event_dim = true, init = true,
  cache_size = true}
local Transform = {}
-- A user's own transform: local Leaky = Transform:extend("Leaky", "alpha=0.1"), whose second argument lists the arguments' names in order,
-- with defaults; they are self's fields. Methods: forward(x); inverse(y); log_abs_det_jacobian(x, y), with x's dims except the last
-- domain.event_dim; init(self), which checks arguments; forward_shape(shape) and inverse_shape(shape) if sizes change. Fields, with their
-- defaults: domain and codomain, constraints (constraints.real; real_vector treats the last dim as one value, as coupling layers do),
-- bijective (true), sign (of monotone transforms of numbers: 1 keeps their order, -1 reverses it).
function Transform:extend(name, signature)
  check(name, signature)
  local t, make = chain.define(name, signature or "", {own = true})
  for _, arg in ipairs(options.names(signature or "")) do
    if t[arg] ~= nil or NEEDED[arg] or THEIR_FIELDS[arg] then
      fail("%s: an argument can't be named '%s': every transform has a field or method of that name", name, arg)
    end
  end
  for k, call in pairs(NEEDED) do t[k] = function() fail("%s: a method %s is needed", name, call) end end
  return setmetatable({}, {__index = t, __call = function(_, ...) return make(...) end, __tostring = function() return "class " .. name end,
    __newindex = function(_, k, v)
      if THEIRS[k] then fail("%s: define %s instead of '%s', which isn't called", name, THEIRS[k], k) end
      t[k == "log_abs_det_jacobian" and "slope" or k] = chain.checking(name, k, v)
    end})
end
chain.transforms.Transform = Transform
distributions.Transform = Transform
