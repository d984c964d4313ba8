-- tycho.nn.utils: over all parameters at once.
local core = require "tycho.core"
local ops = core.ops
local utils = {}

local function grads(params)
  local list = {}
  for _, p in ipairs(core.is_tensor(params) and {params} or params) do
    local g = p.grad
    if g then list[#list + 1] = g end
  end
  return list
end

-- Scales gradients so that their common 2-norm is at most max. Returns the norm they had. No value comes to the host.
function utils.clip_grad_norm_(params, max)
  if type(max) ~= "number" then error("clip_grad_norm_: argument 2 (max) must be a number, got " .. type(max), 2) end
  local list = grads(params)
  if #list == 0 then return ops.zeros({}) end
  local total = ops.multi_norm(list)
  ops.multi_scale(list, ops.clamp(max / (total + 1e-6), nil, 1))
  return total
end

return utils
