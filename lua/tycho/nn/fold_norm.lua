-- A layer and the batch norm after it as one layer: for fuse_conv_bn_eval and for freezing traces.
local core = require "tycho.core"
local ops, M = core.ops, core.methods

-- The weight and bias of the combined layer, in the weight's dtype. weight has its outputs along dim, bias may be nil; norm: {mean=, var=,
-- weight=, bias=, eps=}, of which weight and bias may be nil.
return function(weight, bias, norm, dim)
  local scale = ops.rsqrt(norm.var + norm.eps)
  if norm.weight then scale = scale * norm.weight end
  local shape = {}
  for i = 1, M.dim(weight) do shape[i] = i == dim and -1 or 1 end
  local b = (bias and M.flatten(bias) - norm.mean or -norm.mean) * scale
  return M.to(weight * M.view(scale, shape), weight.dtype), M.to(norm.bias and b + norm.bias or b, weight.dtype)
end
