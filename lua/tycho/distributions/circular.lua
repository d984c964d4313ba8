-- VonMises: angles around a direction.
--
-- Idea: the density's norm is a Bessel function, by the polynomials of Abramowitz and Stegun 9.8 (to 2e-7), as in PyTorch. Draws are
-- made by rejection in rounds enough, as those of gamma.lua: they wait for no device.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local ops, M = core.ops, core.methods
local C = base.constraints

-- In (x / 3.75)^2 below 3.75, in 3.75 / x above, from the constant on; of order 0 and 1.
local BELOW = {[0] = {1, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2},
  {0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3}}
local ABOVE = {[0] = {0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
    0.392377e-2},
  {0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1, -0.420059e-2}}
local function polynomial(x, c)
  local sum = x * c[#c] + c[#c - 1]
  for i = #c - 2, 1, -1 do sum = sum * x + c[i] end
  return sum
end
-- log of the modified Bessel function I of x above 0; where one way isn't taken, it is computed of what does it no harm
local function log_bessel(x, order)
  local low = ops.lt(x, 3.75)
  local a, b = ops.where(low, x, 1), ops.where(low, 3.75, x)
  local small = ops.log(polynomial(ops.square(a / 3.75), BELOW[order]))
  if order == 1 then small = small + ops.log(a) end
  return ops.where(low, small, b - ops.log(b) / 2 + ops.log(polynomial(3.75 / b, ABOVE[order])))
end

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
