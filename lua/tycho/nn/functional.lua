-- tycho.nn.functional: what PyTorch keeps there, under the same names. Nothing is defined here.
local core = require "tycho.core"
local functional = require "tycho.functional"
local F = {}
for name in pairs(functional.nn) do F[name] = functional.functions[name] or core.ops[name] end
F.unfold = functional.functions.im2col      -- tycho.unfold is Tensor.unfold
F.upsample = F.interpolate
for _, name in ipairs {"relu", "elu", "celu", "selu", "leaky_relu", "hardtanh", "threshold"} do F[name .. "_"] = core.ops[name .. "_"] end
return F
