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
  local function before(self)
    local e = self[name .. "_made"]
    e.unmapped = core.is_mapping() and (e.unmapped or self[name]) or nil
    self[name] = compute(self)
  end
  local function after(self)             -- the result of a forward within vmap ends with it
    local e = self[name .. "_made"]
    if e.unmapped then self[name], e.unmapped = e.unmapped, nil end
  end
  m:register_forward_pre_hook(before)
  m:register_forward_hook(after)
  m[name .. "_made"] = {before = before, after = after, kind = kind, compute = compute}
  return m
end
-- Makes m[name] a parameter again, `parameter` if given, with its last value; parts: the suffixes of the tensors that it was computed from.
function made.remove(who, kind, m, name, parts, parameter)
  local e = module.is_module(m) and type(name) == "string" and m[name .. "_made"]
  if not e or e.kind ~= kind then fail("%s: '%s' is not computed by %s", who, tostring(name), kind) end
  for _, when in ipairs {"before", "after"} do
    local hooks = rawget(m, "_hooks")[when]
    for i, h in ipairs(hooks) do if h.fn == e[when] then table.remove(hooks, i) break end end
  end
  m[name .. "_made"] = nil
  local w = no_grad(e.compute, m, true)
  m[name] = nil
  for _, part in ipairs(parts) do m[name .. part] = nil end
  if parameter then no_grad(M.copy_, parameter, w) end
  m[name] = parameter or module.Parameter(w)
  return m
end

return made
