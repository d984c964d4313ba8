-- Gradients of special functions (init.lua says how rules are written).
local core = require "tycho.core"
local ops = core.ops
local recording = core.is_grad_enabled
local R = {}

local operand = require("tycho.functional.lib").operand

R.entr = {x = function(g, x) return -g * (ops.log(x) + 1) end}
R.erfcx = {x = function(g, x, out) return g * (x * 2 * out - 2 / math.sqrt(math.pi)) end}
-- The density over the distribution function: for large x as it stands, else by erfcx, whose own slope is infinite there. Each way is
-- computed for numbers that it is right for, since a slope that isn't finite would stay after the choice.
R.log_ndtr = {x = function(g, x, out)
  local large = ops.gt(x, 5)
  local small = ops.logical_not(large)
  local by_erfcx = math.sqrt(2 / math.pi) / ops.erfcx(ops.masked_fill(x, large, 5) * -math.sqrt(0.5))
  local density = ops.exp(ops.square(ops.masked_fill(x, small, 5)) * -0.5 - ops.masked_fill(out, small, 0)) * (1 / math.sqrt(2 * math.pi))
  return g * ops.where(large, density, by_erfcx)
end}
R.ndtri = {x = function(g, out) return g * ops.exp(ops.square(out) / 2) * math.sqrt(2 * math.pi) end}
R.xlog1py = {a = function(g, a, b)
  b = operand(b, g)
  return ops.where(ops.logical_and(ops.eq(a, 0), ops.le(b, -1)), 0, ops.xlog1py(g, b))
end, b = function(g, a, b) return g * a / (operand(b, g) + 1) end}

---- Bessel functions ----
-- of order 1 divided by x, whose limit at 0 is 1/2; the 1 avoids 0 / 0 in second derivatives
local function over(out, x)
  local at0 = ops.eq(x, 0)
  return ops.where(at0, 0.5, out / ops.masked_fill(x, at0, 1))
end
R.i0 = {x = function(g, x) return g * ops.i1(x) end}
R.i0e = {x = function(g, x, out) return g * (ops.i1e(x) - ops.sign(x) * out) end}
R.i1 = {x = function(g, x, out) return g * (ops.i0(x) - over(out, x)) end}
R.i1e = {x = function(g, x, out) return g * (ops.i0e(x) - ops.sign(x) * out - over(out, x)) end}

---- incomplete gamma functions, zeta ----
-- By x: the density of Gamma(a, 1); by a: as draws change with a.
local function density(a, x) return ops.exp(ops.xlogy(a - 1, x) - x - ops.lgamma(a)) end
local function by_a(name, g, a, x)
  if recording() then error(name .. ": there is no second derivative with respect to its first argument", 0) end
  a, x = operand(a, g), operand(x, g)
  local edge = ops.logical_or(ops.eq(x, 0), ops.eq(x, math.huge))             -- where nothing changes
  x = ops.masked_fill(x, edge, 1)
  return ops.masked_fill(g * ops.gamma_draw_slope(ops.log(x), a) * x * density(a, x), edge, 0)
end
R.igamma = {a = function(g, a, x) return -by_a("igamma", g, a, x) end,
  x = function(g, a, x) return g * density(operand(a, g), operand(x, g)) end}
R.igammac = {a = function(g, a, x) return by_a("igammac", g, a, x) end,
  x = function(g, a, x) return -g * density(operand(a, g), operand(x, g)) end}
R.zeta = {s = function(g) error("zeta: there is no gradient with respect to its first argument", 0) end,
  q = function(g, s, q) return -g * s * ops.zeta(s + 1, q) end}

return R
