-- The gradient of exchanges between processes (init.lua describes how rules are written): each process has a loss of its own, and what it
-- gave to others receives their gradients.
local core = require "tycho.core"
local ops, M = core.ops, core.methods

local function gradient(g, x_shape, kind, reduction, group)
  local mean = reduction == "mean"
  if reduction ~= "sum" and not mean then error(("distributed: %s has no gradient; only sum and mean have one"):format(reduction), 0) end
  local function back(k, r) return ops.collective(g, k, r or "sum", 0, 0, group) end
  if kind == "all_reduce" then return back("all_reduce", reduction) end
  if kind == "all_gather" then return M.reshape(back "reduce_scatter", x_shape) end
  if kind == "all_to_all" then return back "all_to_all" end
  if kind == "reduce_scatter" then
    local all = back "all_gather"
    return mean and all / (x_shape[1] / g.shape[1]) or all
  end
  error(("distributed: %s has no gradient"):format(kind), 0)
end
return {collective = {x = gradient}}
