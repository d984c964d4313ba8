-- VonMises: angles around a direction.
--
-- Idea: the density's norm is a Bessel function; core/draws.h has the draws.
local core = require "tycho.core"
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
function VonMises:draw(shape)
  local angle = base.drawn("von_mises", shape, self.concentration) + M.to(self.loc, "float64")
  return M.to(ops.remainder(angle + math.pi, 2 * math.pi) - math.pi, self.loc.dtype)
end
