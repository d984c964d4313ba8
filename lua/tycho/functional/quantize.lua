-- Fake quantization, for training that accounts for integer arithmetic: rounds x to scale (q - zero_point), with q whole and within
-- quant_min and quant_max. Gradients pass unchanged where q was within these, and are 0 elsewhere.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local ops, M = core.ops, core.methods
local def, fail = lib.def, lib.fail

local function quantized(name, x, scale, zero, least, most)
  if least > most then fail(name, "quant_min %d is above quant_max %d", least, most) end
  local q = ops.round(x:detach() / scale) + zero
  local within = ops.logical_and(ops.ge(q, least), ops.le(q, most))
  local rounded = M.to((ops.clamp(q, least, most) - zero) * scale, x.dtype)
  local passing = ops.masked_fill(x, ops.logical_not(within), 0)     -- without infinities, whose difference is NaN
  return rounded + (passing - passing:detach())
end

def("fake_quantize_per_tensor_affine", "x, scale:any, zero_point:any, quant_min:int, quant_max:int",
  "x rounded to scale (q - zero_point), q whole from quant_min to quant_max; scale and zero_point: numbers, or tensors of one element",
  function(x, scale, zero, least, most)
    for i, v in ipairs {scale, zero} do
      if type(v) ~= "number" and not (core.is_tensor(v) and M.numel(v) == 1) then
        fail("fake_quantize_per_tensor_affine", "argument %d must be a number or a tensor of one element, got %s", i + 1, lib.shown(v))
      end
    end
    return quantized("fake_quantize_per_tensor_affine", x, scale, zero, least, most)
  end, {method = false})
def("fake_quantize_per_channel_affine", "x, scale:tensor, zero_point:tensor, axis:int, quant_min:int, quant_max:int",
  "the same with a scale and a zero_point for each index of dim axis: vectors",
  function(x, scale, zero, axis, least, most)
    axis = lib.wrap("fake_quantize_per_channel_affine", axis, M.dim(x))
    local shape = {}
    for d = 1, M.dim(x) do shape[d] = d == axis and x.shape[d] or 1 end
    for i, v in ipairs {scale, zero} do
      if M.dim(v) ~= 1 or #v ~= x.shape[axis] then
        fail("fake_quantize_per_channel_affine", "argument %d must be a vector of %d, as dim %d has, got shape %s", i + 1, x.shape[axis],
          axis, tostring(v.shape))
      end
    end
    return quantized("fake_quantize_per_channel_affine", x, M.view(scale, shape), M.view(zero, shape), least, most)
  end, {method = false})
