-- Replaces a parameter by a tensor computed from others before each forward: the base of weight_norm, spectral_norm and pruning.
--
-- Invariant: until it is removed, m[name] is a result with a history, not a parameter; m[name .. "_made"] tells its kind.
local core = require "tycho.core"
local options = require "tycho.options"
local module = require "tycho.nn.module"
local no_grad = require("tycho.modes").no_grad
local fail = options.fail
local M = core.methods
local made = {}

-- The parameter m[name].
function made.begin(who, m, name)
  if not module.is_module(m) then fail("%s: argument 1 must be a module, got %s", who, options.shown(m)) end
  local w = m[name]
  if not core.is_tensor(w) or not module.is_parameter(w) then fail("%s: the %s has no parameter '%s'", who, m._name, tostring(name)) end
  return w
end
-- From now on m[name] is compute(m), computed before each forward; compute(m, true) must not change m.
function made.install(m, name, kind, compute)
  m[name] = nil
  m[name] = compute(m, true)
  local function before(self) self[name] = compute(self) end
  m:register_forward_pre_hook(before)
  m[name .. "_made"] = {before = before, kind = kind, compute = compute}
  return m
end
-- Makes m[name] a parameter again, `parameter` if given, with its last value; parts: the suffixes of the tensors that it was computed from.
function made.remove(who, kind, m, name, parts, parameter)
  local e = module.is_module(m) and type(name) == "string" and m[name .. "_made"]
  if not e or e.kind ~= kind then fail("%s: '%s' is not computed by %s", who, tostring(name), kind) end
  local hooks = rawget(m, "_hooks").before
  for i, h in ipairs(hooks) do if h.fn == e.before then table.remove(hooks, i) break end end
  m[name .. "_made"] = nil
  local w = no_grad(e.compute, m, true)
  m[name] = nil
  for _, part in ipairs(parts) do m[name .. part] = nil end
  if parameter then no_grad(M.copy_, parameter, w) end
  m[name] = parameter or module.Parameter(w)
  return m
end

return made
