-- Weights computed from others before each forward: weight_norm (Salimans & Kingma 2016) and spectral_norm (Miyato et al. 2018). Names in
-- state dicts are those of PyTorch's torch.nn.utils: weight_g and weight_v; weight_orig, weight_u and weight_v.
local core = require "tycho.core"
local options = require "tycho.options"
local module = require "tycho.nn.module"
local made = require "tycho.nn.made"
local modes = require "tycho.modes"
local no_grad = modes.no_grad
local lib = require "tycho.functional.lib"
local ops, M = core.ops, core.methods
local normalized = {}

local begin, install, remove = made.begin, made.install, made.remove

-- weight_norm(module, name="weight", dim=1): from now on module[name] is computed from two parameters: name_v, its direction, and name_g,
-- its norm over all dims except dim (0: over all). Gives the module.
function normalized.weight_norm(m, ...)
  local o = options.arguments("weight_norm", "name=weight, dim=1", ...)
  local name, w = o.name, begin("weight_norm", m, o.name)
  local dim = lib.norm_dim("weight_norm", o.dim, w)
  local g = no_grad(lib.norm_but, w, dim)
  m:register_parameter(name .. "_g", module.Parameter(g))
  m:register_parameter(name .. "_v", module.Parameter(w:detach()))
  return install(m, name, "weight_norm", function(self)
    local v = self[name .. "_v"]
    return v * (self[name .. "_g"] / lib.norm_but(v, dim))
  end)
end
-- remove_weight_norm(module, name="weight"): makes module[name] a parameter again, with its last value. Gives the module.
function normalized.remove_weight_norm(m, name)
  name = options.named("remove_weight_norm", "name", name)
  return remove("remove_weight_norm", "weight_norm", m, name or "weight", {"_g", "_v"})
end

-- spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=): from now on module[name] is the parameter name_orig divided
-- by its largest singular value, which power iteration updates at each forward in training. dim: the outputs' dim, by default 1, for
-- transposed convolutions 2. Gives the module.
function normalized.spectral_norm(m, ...)
  local o = options.arguments("spectral_norm", "name=weight, n_power_iterations=1, eps=1e-12, dim=nil", ...)
  local name, w = o.name, begin("spectral_norm", m, o.name)
  options.whole("spectral_norm", "n_power_iterations", o.n_power_iterations, 1)
  options.number("spectral_norm", "eps", o.eps, 0)
  if o.dim ~= nil then options.whole("spectral_norm", "dim", o.dim) end
  local dim = o.dim or (m._name:find "^ConvTranspose" and 2 or 1)
  local rows, cols = unpack(no_grad(lib.matrix_along, w, dim).shape)
  m:register_parameter(name .. "_orig", w)
  for _, part in ipairs {{"_u", rows}, {"_v", cols}} do
    m:register_buffer(name .. part[1], lib.unit(ops.randn({part[2]}, {dtype = w.dtype, device = w.device}), o.eps))
  end
  return install(m, name, "spectral_norm", function(self, still)
    local x, u, v = self[name .. "_orig"], self[name .. "_u"], self[name .. "_v"]
    local flat = lib.matrix_along(x, dim)
    if self.training and not still and not modes.now.recomputing then
      modes.once(function()
        for _ = 1, o.n_power_iterations do
          M.copy_(v, lib.unit(ops.matmul(M.t(flat), u), o.eps))
          M.copy_(u, lib.unit(ops.matmul(flat, v), o.eps))
        end
      end)
      u, v = ops.clone(u), ops.clone(v)      -- the next forward changes them
    end
    return x / ops.sum(u * ops.matmul(flat, v))
  end)
end
-- remove_spectral_norm(module, name="weight"): makes module[name] a parameter again, with its last value. Gives the module.
function normalized.remove_spectral_norm(m, name)
  name = options.named("remove_spectral_norm", "name", name)
  return remove("remove_spectral_norm", "spectral_norm", m, name or "weight", {"_orig", "_u", "_v"})
end

return normalized
