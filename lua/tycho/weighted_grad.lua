-- What derivatives of functions (autograd_functional.lua, func.lua) ask of the tape: a gradient for each tensor, zeros where there is none.
local core = require "tycho.core"
local autograd = require "tycho.autograd"

local weighted = {}

-- Whether the outputs' history leads to leaves besides xs: to parameters that a function has captured, say.
function weighted.captured(outputs, xs)
  local roots = {}
  for _, y in ipairs(outputs) do if core.is_tensor(y) and y.requires_grad then roots[#roots + 1] = y end end
  return #roots > 0 and select(2, core.reached(roots, xs))
end

-- Gradients of outputs, weighed by weights, for xs. create: with a history.
function weighted.grad(outputs, xs, weights, create)
  local roots, w = {}, {}
  for i, y in ipairs(outputs) do
    if y.requires_grad then roots[#roots + 1], w[#w + 1] = y, weights[i] end
  end
  local g = #roots > 0 and
    autograd.grad(roots, xs, {grad_outputs = w, retain_graph = true, create_graph = create, allow_unused = true}) or {}
  local out = {}
  for i, x in ipairs(xs) do out[i] = g[i] or core.ops.zeros(x.shape, {dtype = x.dtype, device = x.device}) end
  return out
end

return weighted
