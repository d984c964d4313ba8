-- tycho.nn.utils.parametrize and parametrizations: parameters that are computed from others on each access.
--
-- Idea: register_parametrization(net, "weight", p) takes the parameter out of net and puts a ParametrizationList into
-- net.parametrizations.weight. The list holds the original (or original0, original1, ... where p.right_inverse gives several) and the
-- modules that compute the weight from it, one after the other; net.weight is the list's result (module.lua). Names in state dicts are
-- PyTorch's. Invariant: assigning net.weight sets the originals, through the modules' right_inverse.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local module = require "tycho.nn.module"
local modes = require "tycho.modes"
local no_grad, fail = modes.no_grad, options.fail
local ops, M = core.ops, core.methods
local parametrize = {}

local List = module.Module:extend("ParametrizationList")
function List:init() self.count = 0 end
function List:__missing(k) return type(k) == "number" and rawget(rawget(self, "_parts"), tostring(k - 1)) or nil end -- the k-th module
-- The originals that stand for value, in order.
local function inverse(m, value)
  if type(m.right_inverse) ~= "function" then return {value} end
  return {no_grad(m.right_inverse, m, value)}
end
local function originals(self)
  local out, i = {}, 0
  if self.original then return {self.original} end
  while self["original" .. i] do out[#out + 1], i = self["original" .. i], i + 1 end
  return out
end
local given = setmetatable({}, {__mode = "k"})           -- by coroutine, within cached(): the lists' results
local function running() return coroutine.running() or "main" end
local function forget(list)
  local known = given[running()]
  if known then known[list] = nil end
end
function List:forward()
  local known = given[running()]
  local x = known and known[self]
  if x then return x end
  x = self["0"](unpack(originals(self)))
  for i = 1, self.count - 1 do x = self[tostring(i)](x) end
  if known then known[self] = core.keep(x) end
  return x
end
-- Sets the originals so that the list gives value.
function List:set(value)
  if not core.is_tensor(value) then fail("a parametrized tensor can only be set to a tensor, got %s", options.shown(value)) end
  for i = 0, self.count - 1 do
    local m = self[tostring(i)]
    if type(m.right_inverse) ~= "function" then
      fail("a parametrized tensor can only be set if all its parametrizations have a right_inverse; %s has none", m._name)
    end
  end
  for i = self.count - 1, 1, -1 do value = inverse(self[tostring(i)], value)[1] end
  forget(self)
  local new, old = inverse(self["0"], value), originals(self)
  if #new ~= #old then fail("right_inverse gave %d tensors, but there are %d originals", #new, #old) end
  no_grad(function() for i, x in ipairs(old) do M.copy_(x, new[i]) end end)
end

local function list_of(m, name)
  local made = module.is_module(m) and rawget(rawget(m, "_parts"), "parametrizations")
  return made and rawget(made._parts, name) or nil
end
local function need_module(who, m)
  return options.expect(who, 1, m, module.is_module(m), "a module")
end

-- is_parametrized(module, name=): whether that tensor of the module, or without name any, is parametrized.
function parametrize.is_parametrized(m, name)
  need_module("is_parametrized", m)
  name = options.named("is_parametrized", "name", name)
  if name then return list_of(m, name) ~= nil end
  return rawget(rawget(m, "_parts"), "parametrizations") ~= nil
end

-- register_parametrization(module, name, parametrization): from now on module[name] is parametrization(original), a module's result,
-- computed on each access; state dicts have the original. A parametrization with right_inverse(value) allows assignment to module[name].
-- Several parametrizations are applied in order; registering a further one leaves the originals, so the tensor changes. The result must
-- have module[name]'s shape and dtype, unless {unsafe=true}. Gives the module.
function parametrize.register_parametrization(m, name, p, o)
  local who = "register_parametrization"
  need_module(who, m)
  options.expect(who, 3, p, module.is_module(p), "a module")
  local unsafe = options.fill(who, o, {unsafe = false}).unsafe
  local function need_alike(w, ...)
    if unsafe then return end
    local y = no_grad(p, ...)
    if not core.is_tensor(y) or y.shape ~= w.shape or y.dtype ~= w.dtype then
      fail("%s: '%s' has shape %s and dtype %s; the parametrization gives %s: {unsafe = true} allows that", who, name,
        tostring(w.shape), w.dtype, core.is_tensor(y) and ("%s of %s"):format(tostring(y.shape), y.dtype) or options.shown(y))
    end
  end
  local list = list_of(m, name)
  if list then
    local value = no_grad(function() return m[name] end)
    need_alike(value, value)
    p:train(m.training)
    list:add_module(tostring(list.count), p)
    list.count = list.count + 1
    forget(list)
    return m
  end
  local w = type(name) == "string" and m[name]
  if not core.is_tensor(w) or not (module.is_parameter(w) or rawget(m, "_kinds")[name] == "buffer") then
    fail("%s: the %s has no parameter or buffer '%s'", who, m._name, tostring(name))
  end
  local learned, values = module.is_parameter(w), inverse(p, M.detach(w))
  for i = 1, math.max(1, #values) do
    options.expect(who, 3, values[i], core.is_tensor(values[i]), "a module whose right_inverse gives tensors")
  end
  need_alike(w, unpack(values))
  list = List()
  for i, v in ipairs(values) do
    local kept = v == w and w or core.keep(M.detach(v))
    local at = #values == 1 and "original" or "original" .. i - 1
    local same = learned and #values == 1 and v.shape == w.shape         -- the parameter itself stays, since an optimizer may hold it
    if same and type(p.right_inverse) == "function" then core.set_data(w, core.keep(ops.clone(M.detach(v)))) end
    if learned then list:register_parameter(at, same and w or module.Parameter(kept, w.requires_grad))
    else list:register_buffer(at, kept) end
  end
  p:train(m.training)
  list:add_module("0", p)
  list.count = 1
  if not rawget(rawget(m, "_parts"), "parametrizations") then m.parametrizations = require("tycho.nn").ModuleDict() end
  m[name] = nil
  m.parametrizations[name] = list
  return m
end

-- cached(fn, ...): calls fn(...) and gives its results; within it each parametrized tensor is computed only once, at its first access, even
-- if its originals change: for weights that a forward pass uses several times, as in a recurrent net.
function parametrize.cached(fn, ...)
  options.expect("cached", 1, fn, modes.callable(fn), "a function")
  local me = running()
  local outer = given[me]
  given[me] = outer or {}
  return options.finally(function() given[me] = outer end, fn, ...)
end

-- remove_parametrizations(module, name, leave_parametrized=true): makes module[name] a parameter again, with its current value or, with
-- leave_parametrized = false, the original. Gives the module.
function parametrize.remove_parametrizations(m, name, ...)
  need_module("remove_parametrizations", m)
  local o = options.arguments("remove_parametrizations", "leave_parametrized=true", ...)
  local list = list_of(m, name)
  if not list then fail("remove_parametrizations: the %s's '%s' isn't parametrized", m._name, tostring(name)) end
  if not o.leave_parametrized and not list.original then
    fail "remove_parametrizations: with several original tensors leave_parametrized must be true"
  end
  local first = originals(list)[1]
  local learned, wants = module.is_parameter(first), first.requires_grad
  local value = o.leave_parametrized and no_grad(function() return M.detach(m[name]) end) or nil
  m.parametrizations[name] = nil
  if #m.parametrizations:keys() == 0 then m.parametrizations = nil end
  if value and learned and list.original then            -- the parameter itself stays, with the new value
    core.set_data(first, core.keep(ops.clone(value)))
    value = nil
  end
  if not value then m[name] = first
  elseif learned then m[name] = module.Parameter(value, wants)
  else m:register_buffer(name, value) end
  return m
end

---- PyTorch's own ----
local parametrizations = {}

local WeightNorm = module.Module:extend("_WeightNorm")
function WeightNorm:init(dim) self.dim = dim end
function WeightNorm:forward(g, v) return v * (g / lib.norm_but(v, self.dim)) end
function WeightNorm:right_inverse(w) return lib.norm_but(w, self.dim), w end
-- weight_norm(module, name="weight", dim=1): computes the tensor from its norm over all dims except dim, original0 (0: over all), and its
-- direction, original1. States of nn.utils.weight_norm, with the names weight_g and weight_v, are accepted too. Gives the module.
function parametrizations.weight_norm(m, ...)
  local o = options.arguments("weight_norm", "name=weight, dim=1", ...)
  need_module("weight_norm", m)
  local w = m[o.name]
  if not core.is_tensor(w) then fail("weight_norm: the %s has no parameter '%s'", m._name, tostring(o.name)) end
  m:register_load_state_dict_pre_hook(function(self, state, prefix)
    local old, new = prefix .. o.name, ("%sparametrizations.%s.original"):format(prefix, o.name)
    if not parametrize.is_parametrized(self, o.name) or state[old .. "_g"] == nil or state[old .. "_v"] == nil then return end
    state[new .. 0], state[new .. 1], state[old .. "_g"], state[old .. "_v"] = state[old .. "_g"], state[old .. "_v"], nil, nil
  end)
  return parametrize.register_parametrization(m, o.name, WeightNorm(lib.norm_dim("weight_norm", o.dim, w)))
end

local SpectralNorm = module.Module:extend("_SpectralNorm")
function SpectralNorm:init(w, rounds, dim, eps)
  self.rounds, self.dim, self.eps = rounds, dim, eps
  if M.dim(w) < 2 then return end                       -- a vector is divided by its norm
  local flat = no_grad(lib.matrix_along, w, dim)
  local function drawn(n) return lib.unit(ops.randn({n}, {dtype = w.dtype, device = w.device}), eps) end
  self:register_buffer("_u", drawn(flat.shape[1]))
  self:register_buffer("_v", drawn(flat.shape[2]))
  no_grad(self.iterate, self, flat, 15)
end
function SpectralNorm:iterate(flat, rounds)
  for _ = 1, rounds do
    M.copy_(self._u, lib.unit(ops.matmul(flat, self._v), self.eps))
    M.copy_(self._v, lib.unit(ops.matmul(M.t(flat), self._u), self.eps))
  end
end
function SpectralNorm:forward(w)
  if M.dim(w) < 2 then return lib.unit(w, self.eps) end
  local flat = lib.matrix_along(w, self.dim)
  if self.training then modes.once(self.iterate, self, M.detach(flat), self.rounds) end
  local u, v = ops.clone(self._u), ops.clone(self._v)    -- the next computation changes them
  return w / ops.sum(u * ops.matmul(flat, v))
end
function SpectralNorm:right_inverse(w) return w end
-- spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=): the tensor divided by its largest singular value, which
-- power iteration updates whenever it is computed in training. dim: the outputs' dim, by default 1, for transposed convolutions 2. Gives
-- the module.
function parametrizations.spectral_norm(m, ...)
  local o = options.arguments("spectral_norm", "name=weight, n_power_iterations=1, eps=1e-12, dim=nil", ...)
  need_module("spectral_norm", m)
  local w = m[o.name]
  if not core.is_tensor(w) then fail("spectral_norm: the %s has no parameter '%s'", m._name, tostring(o.name)) end
  options.whole("spectral_norm", "n_power_iterations", o.n_power_iterations, 1)
  options.number("spectral_norm", "eps", o.eps, 0)
  if o.dim ~= nil then options.whole("spectral_norm", "dim", o.dim) end
  local dim = o.dim or (m._name:find "^ConvTranspose" and 2 or 1)
  return parametrize.register_parametrization(m, o.name, SpectralNorm(w, o.n_power_iterations, dim, o.eps))
end

return {parametrize = options.told(parametrize, "nn.utils.parametrize"),
  parametrizations = options.told(parametrizations, "nn.utils.parametrizations", nil, nil,
    {orthogonal = "tycho.nn.orthogonal"})}
