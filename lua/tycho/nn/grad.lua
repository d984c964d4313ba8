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

local function arguments(who, first, second, ...)
  local a = options.arguments(who, first .. ", " .. second .. ", grad_output, stride=1, padding=0, dilation=1, groups=1", ...)
  local size, other = a.input_size or a.weight_size, a.input or a.weight
  options.expect(who, a.input_size and 1 or 2, size, type(size) == "table" or type(size) == "userdata", "a list of sizes")
  for i, x in pairs {[a.input_size and 2 or 1] = other, [3] = a.grad_output} do
    options.expect(who, i, x, core.is_tensor(x), "a tensor")
  end
  return a, size, other
end

-- The gradient of name's result by its operand of that size, the first or the second, where the other one is given.
local function by_tape(who, name, size, other, first, a)
  local create = core.is_grad_enabled()
  return modes.enable_grad(function()
    local leaf = ops.zeros(size, {dtype = other.dtype, device = other.device}):requires_grad_()
    local x, w = leaf, other
    if not first then x, w = other, leaf end
    local y = F[name](x, w, nil, a.stride, a.padding, a.dilation, a.groups)
    if y.shape ~= a.grad_output.shape then
      fail("%s: the gradient has shape %s, the convolution's result %s", who, tostring(a.grad_output.shape), tostring(y.shape))
    end
    return autograd.grad(y, leaf, {grad_outputs = a.grad_output, create_graph = create})
  end)
end

for _, n in ipairs {1, 2, 3} do
  local name = ("conv%dd"):format(n)
  -- conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1): the gradient of conv2d with respect to its
  -- input, of that size; conv1d_input and conv3d_input likewise.
  grads[name .. "_input"] = function(...)
    local who = name .. "_input"
    local a, size, w = arguments(who, "input_size", "weight", ...)
    if n == 2 and a.grad_output.ndim == 4 then
      return ops.conv2d_backward_input(a.grad_output, w, size, a.stride, a.padding, a.dilation, a.groups)
    end
    return by_tape(who, name, size, w, true, a)
  end
  -- conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1): the gradient with respect to the weight.
  grads[name .. "_weight"] = function(...)
    local who = name .. "_weight"
    local a, size, x = arguments(who, "input", "weight_size", ...)
    if n == 2 and a.grad_output.ndim == 4 then
      return ops.conv2d_backward_weight(a.grad_output, x, size, a.stride, a.padding, a.dilation, a.groups)
    end
    return by_tape(who, name, size, x, false, a)
  end
end

return options.told(grads, "nn.grad")
