-- The gradient of ctc_loss's forward variables (Graves et al. 2006), made of ordinary ops, so that it can be differentiated again.
local core = require "tycho.core"
local ops, M = core.ops, core.methods

local NEVER = -1e30      -- stands for log 0, TY_CTC_NEVER in C: an infinity would have no gradient
local C = {NEVER = NEVER}

local function shifted(x, by)          -- the states that each state may come from
  return ops.pad_constant(ops.slice(x, 2, 1, x.shape[2] - by), {by, 0}, {value = NEVER})
end
local function first(x)
  return ops.le(ops.range(1, x.shape[3], 1, {dtype = "int64", device = x.device}), 2)
end

-- The states that each state comes from, and all of these together.
local function reached(alpha, skips)
  if alpha.shape[2] == 1 then return alpha end
  local one, two = shifted(alpha, 1), shifted(alpha, 2)
  two = ops.where(skips, two, NEVER)
  return ops.logaddexp(ops.logaddexp(alpha, one), two), one, two
end

-- From logs (T, N, S): the forward variables (N, S) of all steps.
local function paths(logs, skips, lengths)
  local alphas = {ops.where(first(logs), ops.select(logs, 1, 1), NEVER)}
  lengths = M.unsqueeze(lengths, 2)
  for t = 2, logs.shape[1] do
    alphas[t] = ops.where(ops.ge(lengths, t), reached(alphas[t - 1], skips) + ops.select(logs, 1, t), alphas[t - 1])
  end
  return alphas
end

-- The gradient of logs, given that of the last variables, g.
function C.gradients(g, logs, skips, lengths)
  local alphas = paths(logs, skips, lengths)
  local slopes = {}
  lengths = M.unsqueeze(lengths, 2)
  for t = logs.shape[1], 2, -1 do
    local lives = ops.ge(lengths, t)
    local all, one, two = reached(alphas[t - 1], skips)
    local function share(x, by)        -- the gradient for the states it came from
      local part = g * ops.exp(ops.clamp(x - all, nil, 0))
      return by == 0 and part or ops.pad_constant(ops.slice(part, 2, by + 1, part.shape[2]), {0, by})
    end
    slopes[t] = ops.where(lives, g, 0)
    if one then g = ops.where(lives, share(alphas[t - 1], 0) + share(one, 1) + share(two, 2), g) end
  end
  slopes[1] = ops.where(first(logs), g, 0)
  return ops.stack(slopes, 1)
end
return C
