-- VonMises: angles around a direction.
--
-- Idea: the density's norm is a Bessel function. Draws are made by rejection in rounds enough, as those of gamma.lua: they wait for no
-- device.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local ops, M = core.ops, core.methods
local C = base.constraints

-- log of the modified Bessel function I of x above 0
local function log_bessel(x, order) return ops.log(order == 0 and ops.i0e(x) or ops.i1e(x)) + x end

-- VonMises(loc, concentration): angles in radians, drawn in -pi..pi around loc, the closer the higher concentration, which is above 0; both
-- broadcast. mean and variance are the circular ones. Draws have no gradients.
local VonMises = base.class("VonMises", "loc, concentration")
base.parameters(VonMises, {"loc", "concentration"}, {"concentration"})
base.supports(VonMises, C.real, {checked = false})
function VonMises.get.mean(self) return self.loc end
function VonMises.get.mode(self) return self.loc end
function VonMises.get.variance(self) return 1 - ops.exp(log_bessel(self.concentration, 1) - log_bessel(self.concentration, 0)) end
function VonMises:log_prob(x)
  return self.concentration * ops.cos(x - self.loc) - math.log(2 * math.pi) - log_bessel(self.concentration, 0)
end
-- Best and Fisher 1979, in float64: a wrapped Cauchy proposes, of which each round takes more than 0.65.
function VonMises:draw(shape)
  local k = M.to(ops.expand(self.concentration, shape), "float64")
  local tau = ops.sqrt(ops.square(k) * 4 + 1) + 1
  local rho = (tau - ops.sqrt(tau * 2)) / (k * 2)
  local r = ops.where(ops.lt(k, 1e-5), 1 / k + k, (ops.square(rho) + 1) / (rho * 2))
  local angle, done
  for round = 1, 32 do
    local z, u = ops.cos(ops.rand(shape, base.same(k)) * math.pi), lib.open_unit(shape, k.dtype, k.device)
    local f = ops.clamp((r * z + 1) / (r + z), -1, 1)
    local c = k * (r - f)
    local ok = ops.logical_or(ops.gt(c * (2 - c), u), ops.ge(ops.log(c / u) + 1 - c, 0))
    angle = round == 1 and ops.acos(f) or ops.where(done, angle, ops.acos(f))
    done = round == 1 and ok or ops.logical_or(done, ok)
  end
  angle = ops.where(ops.lt(ops.rand(shape, base.same(k)), 0.5), -angle, angle) + M.to(self.loc, k.dtype)
  return M.to(ops.remainder(angle + math.pi, 2 * math.pi) - math.pi, self.loc.dtype)
end
