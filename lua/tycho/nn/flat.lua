-- Several tensors as one vector: for exchanges between processes, and for optimizers over all parameters together.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local flat = {}

-- The tensors' elements in order, as one vector, with its history.
function flat.join(tensors)
  local parts = {}
  for i, t in ipairs(tensors) do parts[i] = M.reshape(t, -1) end
  return ops.cat(parts, 1)
end

-- Calls fn(i, part) with each tensor's part of such a vector, in the tensor's shape.
function flat.each(whole, tensors, fn)
  local at = 1
  for i, t in ipairs(tensors) do
    local n = M.numel(t)
    fn(i, M.view(M.narrow(whole, 1, at, n), t.shape))
    at = at + n
  end
end
return flat
