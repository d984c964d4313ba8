-- tycho.nn.grad: the gradients of convolutions as functions, as torch.nn.grad has them: for an autograd.Function that computes one anew.
--
-- Idea: those of conv2d of many pictures are ops; the others come from the tape. Invariant: they have a history if their operands do.
local core = require "tycho.core"
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local options = require "tycho.options"
local F = require "tycho.nn.functional"
local fail = options.fail
local ops = core.ops
local grads = {}

-- name's gradient by the operand of that size, its input or its weight, where the other one is given. many: whether there are ops for it
local function gradient(name, many, by_input, ...)
  local who = name .. (by_input and "_input" or "_weight")
  local a = options.arguments(who, (by_input and "input_size, weight" or "input, weight_size") ..
    ", grad_output, stride=1, padding=0, dilation=1, groups=1", ...)
  local size, other, g = a.input_size or a.weight_size, a.input or a.weight, a.grad_output
  options.expect(who, by_input and 1 or 2, size, type(size) == "table" or type(size) == "userdata", "a list of sizes")
  options.expect(who, by_input and 2 or 1, other, core.is_tensor(other), "a tensor")
  options.expect(who, 3, g, core.is_tensor(g), "a tensor")
  if many and g.ndim == 4 then
    local op = by_input and ops.conv2d_backward_input or ops.conv2d_backward_weight
    return op(g, other, size, a.stride, a.padding, a.dilation, a.groups)
  end
  local create = core.is_grad_enabled()
  return modes.enable_grad(function()
    local leaf = ops.zeros(size, {dtype = other.dtype, device = other.device}):requires_grad_()
    local x, w = leaf, other
    if not by_input then x, w = other, leaf end
    local y = F[name](x, w, nil, a.stride, a.padding, a.dilation, a.groups)
    if y.shape ~= g.shape then
      fail("%s: the gradient has shape %s, the convolution's result %s", who, tostring(g.shape), tostring(y.shape))
    end
    return autograd.grad(y, leaf, {grad_outputs = g, create_graph = create})
  end)
end

for _, n in ipairs {1, 2, 3} do
  local name = ("conv%dd"):format(n)
  -- conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1): the gradient of conv2d with respect to its
  -- input, of that size; conv1d_input and conv3d_input likewise.
  grads[name .. "_input"] = function(...) return gradient(name, n == 2, true, ...) end
  -- conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1): the gradient with respect to the weight.
  grads[name .. "_weight"] = function(...) return gradient(name, n == 2, false, ...) end
end

return options.told(grads, "nn.grad")
