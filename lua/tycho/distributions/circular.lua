-- VonMises: angles around a direction.
--
-- Idea: the density's normalizing constant is a Bessel function; draws are in core/draws.h.
local core = require "tycho.core"
local base = require "tycho.distributions.base"
local ops, M = core.ops, core.methods
local C = base.constraints

-- VonMises(loc, concentration): angles in radians, drawn in -pi..pi around loc, the closer the higher concentration, which is above 0; both
-- broadcast. mean and variance are the circular ones. Draws have no gradients.
local VonMises = base.class("VonMises", "loc, concentration")
base.parameters(VonMises, {"loc", "concentration"}, {"concentration"})
base.supports(VonMises, C.real, {checked = false})
function VonMises.get.mean(self) return self.loc end
function VonMises.get.mode(self) return self.loc end
function VonMises.get.variance(self) return 1 - ops.i1e(self.concentration) / ops.i0e(self.concentration) end
function VonMises:log_prob(x)                -- i0e(k) = I0(k) e^-k
  local k = self.concentration
  return k * (ops.cos(x - self.loc) - 1) - math.log(2 * math.pi) - ops.log(ops.i0e(k))
end
function VonMises:draw(shape)
  local angle = base.drawn("von_mises", shape, self.concentration) + M.to(self.loc, "float64")
  return M.to(ops.remainder(angle + math.pi, 2 * math.pi) - math.pi, self.loc.dtype)
end
