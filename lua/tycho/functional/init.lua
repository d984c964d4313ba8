-- Functions made of ops. lib.lua says how they are declared; each file here holds one family.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
for _, family in ipairs {"shape", "values", "slopes", "statistics", "products", "linalg", "spectral", "windows", "special", "places",
    "layers", "volumes", "sampling", "quantize", "losses", "linear_cross_entropy"} do
  require("tycho.functional." .. family)
end

-- ops that PyTorch has in nn.functional
for name in ([[
  relu silu sigmoid tanh leaky_relu elu selu celu mish softplus softsign softshrink hardshrink hardswish hardsigmoid logsigmoid
  threshold softmax log_softmax hardtanh avg_pool2d]]):gmatch("%S+") do lib.nn[name] = true end

-- other names that PyTorch has
for name, of in pairs {
  absolute = "abs", negative = "neg", multiply = "mul", divide = "div", true_divide = "div", subtract = "sub",
  clip = "clamp", fix = "trunc", arcsin = "asin", arccos = "acos", arctan = "atan", arctan2 = "atan2",
  arcsinh = "asinh", arccosh = "acosh", arctanh = "atanh", greater = "gt", greater_equal = "ge", less = "lt", less_equal = "le",
  not_equal = "ne", concat = "cat", concatenate = "cat", swapaxes = "transpose", swapdims = "transpose", moveaxis = "movedim", sgn = "sign",
  ravel = "flatten", row_stack = "vstack", vdot = "dot", ger = "outer", expit = "sigmoid", upsample = "interpolate",
  log_sigmoid = "logsigmoid", split_with_sizes = "split"} do
  lib.alias(name, of)
end

-- torch.special's names
for name in ([[
  digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc=igamma gammaincc=igammac gammaln=lgamma i0 i0e i1 i1e log1p
  log_ndtr log_softmax logit logsumexp multigammaln=mvlgamma ndtr ndtri polygamma psi=digamma round sinc softmax xlog1py xlogy
  zeta]]):gmatch "%S+" do
  local shown, own = name:match "^([^=]+)=?(.*)$"
  if own == "" then own = shown end
  lib.functions["special." .. shown] = lib.functions[own] or core.ops[own]
end

-- The tables of tycho that functions are in, those that others are in first: "fft", "signal", "signal.windows" ...; also by name.
lib.places = {}
for name in pairs(lib.functions) do
  for at in name:gmatch "()%." do
    local place = name:sub(1, at - 1)
    if not lib.places[place] then table.insert(lib.places, place) end
    lib.places[place] = true
  end
end
table.sort(lib.places)

return lib
