-- Special functions made of ops. The ops in ops.def are computed in core/special.h; tycho.special has both kinds.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local ops, M = core.ops, core.methods
local def, fail = lib.def, lib.fail
local F = lib.functions

-- PyTorch's argument order; the method's differs
def("polygamma", "n:int, x", "n-th derivative of digamma", function(n, x)
  if n < 0 or n > 100 then fail("polygamma", "argument 1 (n) must be 0 to 100, got %d", n) end
  return n == 0 and ops.digamma(x) or ops.gamma_slope(x, n)
end, {method = false})
function M.polygamma(x, n) return F.polygamma(n, x) end
def("mvlgamma", "x, p:int", "logarithm of the multivariate gamma function of dimension p", function(x, p)
  if p < 1 or p > 10000 then fail("mvlgamma", "argument 2 (p) must be 1 to 10000, got %d", p) end
  if not M.is_floating_point(x) then x = M.float(x) end
  local halves = ops.range(0, p - 1, 1, {dtype = x.dtype, device = x.device}) * 0.5
  return ops.sum(ops.lgamma(M.unsqueeze(x, -1) - halves), -1) + p * (p - 1) / 4 * math.log(math.pi)
end)
def("ndtr", "x", "the standard normal distribution function", function(x)
  return lib.widened(x, function(wide) return ops.erfc(wide * -math.sqrt(0.5)) / 2 end)
end, {inplace = true})
def("ldexp", "x, other:operand", "x * 2^other", function(x, other)
  if type(other) == "boolean" then other = other and 1 or 0 end
  -- in three factors: 2^other may overflow where the result doesn't; beyond three factors the result overflows anyway
  local dtype = lib.result_type(x, core.is_tensor(other) and other or 1)
  if not lib.RANGE[dtype] then dtype = "float32" end
  local most = dtype == "float64" and 2200 or dtype == "float16" and 45 or 300
  if not core.is_tensor(other) then
    other = math.max(-most, math.min(most, other))
    local part = math.floor(other / 3)
    return x * 2 ^ part * 2 ^ part * 2 ^ (other - 2 * part)
  end
  if not M.is_floating_point(other) then other = M.to(other, dtype) end
  other = ops.clamp(other, -most, most)
  local part = ops.floor(other / 3)
  local factor = ops.exp2(part)
  return x * factor * factor * ops.exp2(other - 2 * part)
end, {inplace = true})

---- torch.special's names ----
for name in ([[
  digamma entr erf erfc erfcx erfinv exp2 expit=sigmoid expm1 gammainc=igamma gammaincc=igammac gammaln=lgamma i0 i0e i1 i1e log1p
  log_ndtr log_softmax logit logsumexp multigammaln=mvlgamma ndtr ndtri polygamma psi=digamma round sinc softmax xlog1py xlogy
  zeta]]):gmatch "%S+" do
  local shown, own = name:match "^([^=]+)=?(.*)$"
  lib.set("special." .. shown, lib.find(own == "" and shown or own))
end
