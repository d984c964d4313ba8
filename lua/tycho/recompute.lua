-- Activation checkpointing: a function's intermediate values are not kept for backward; backward runs it again, with the random numbers and the
-- autocast that it had. What a function changes besides (batch_norm's running statistics) is changed by the first run alone.
local core = require "tycho.core"
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local recompute = {}

-- The states of the generators that a function of these arguments may draw from.
local function generators(args, n)
  local kept = {cpu = core.gpu.keep_rng("cpu")}
  for i = 1, n do
    local device = core.is_tensor(args[i]) and args[i].device
    if device and not kept[device] then kept[device] = core.gpu.keep_rng(device) end
  end
  return kept
end
-- Neither of these nor the arguments end with the scope of the forward pass.
local function keep_all(...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if core.is_tensor(v) then core.keep(v) end
  end
  return ...
end
local function restore(kept) for _, state in pairs(kept) do core.gpu.give_rng(state) end end

-- What fn made and nobody holds is memory that checkpoints are there to save: it doesn't wait for the collector's next turn, where it is much.
local MUCH = 2^24
local function tidy(before, ...)
  local now = core.allocated()
  if now - before > math.max(MUCH, now / 8) and collectgarbage "isrunning" then collectgarbage() end
  return ...
end

local function autocasts(on)           -- of the CPU and of GPUs; gives what they were
  if not on then return {core.autocast(false) or false, core.autocast(true) or false} end
  return {core.autocast(false, on[1] or nil) or false, core.autocast(true, on[2] or nil) or false}
end

local Again = autograd.Function {
  -- the first argument is a tensor that requires grad, so that the call is recorded whatever fn's arguments are
  forward = function(ctx, _, report, fn, ...)
    ctx.fn, ctx.args, ctx.n, ctx.report = fn, {keep_all(...)}, select("#", ...), report
    ctx.rng, ctx.autocasts = generators(ctx.args, ctx.n), autocasts()
    for _, state in pairs(ctx.rng) do keep_all(state) end
    return tidy(core.allocated(), fn(...))
  end,
  backward = function(ctx, ...)
    if core.is_grad_enabled() then error("checkpoint: create_graph doesn't go through what is computed again", 0) end
    local args, leaves = {}, {}
    for i = 1, ctx.n do
      local x = ctx.args[i]
      if core.is_tensor(x) then
        local leaf = x:detach()
        if x.requires_grad then leaves[i] = leaf:requires_grad_() end
        x = leaf
      end
      args[i] = x
    end
    local now, casts, again = generators(ctx.args, ctx.n), autocasts(ctx.autocasts), modes.recomputing
    restore(ctx.rng)
    modes.recomputing = true
    local grad, held = core.set_grad_enabled(true), core.allocated()
    local out = {pcall(ctx.fn, unpack(args, 1, ctx.n))}
    if ctx.report then ctx.report(core.allocated() - held) end
    core.set_grad_enabled(grad)
    modes.recomputing = again
    autocasts(casts)
    restore(now)
    if not out[1] then error(out[2], 0) end
    local roots, grads = {}, {}
    for k = 2, table.maxn(out) do
      if core.is_tensor(out[k]) and out[k].requires_grad then
        roots[#roots + 1], grads[#grads + 1] = out[k], (select(k - 1, ...))
      end
    end
    -- under tycho.grad nothing but what was asked for gets a gradient: not what fn uses besides its arguments
    local wanted, places = modes.inputs and {} or nil, {}
    for i = 1, wanted and ctx.n or 0 do
      if leaves[i] then wanted[#wanted + 1], places[#places + 1] = leaves[i], i end
    end
    local found = #roots > 0 and not (wanted and #wanted == 0) and core.backward(roots, grads, wanted, false, false, true) or {}
    local result = {}
    for i = 1, wanted and 0 or ctx.n do result[i + 3] = leaves[i] and leaves[i].grad or nil end
    for k, i in ipairs(places) do result[i + 3] = found[k] or nil end
    out, roots, grads, leaves, args = nil, nil, nil, nil, nil -- luacheck: ignore
    return tidy(held, unpack(result, 1, ctx.n + 3))
  end}

-- fn(...), of which only arguments and results are kept. report, where given, is told at each backward how many bytes fn's values in between took
-- while they were there again.
function recompute.run(report, fn, ...)
  if not core.is_grad_enabled() then return fn(...) end
  return Again(core.keep(core.ops.zeros(1, {requires_grad = true})), report, fn, ...)
end

function recompute.checkpoint(fn, ...)
  if not modes.callable(fn) then error("checkpoint: argument 1 must be a function, got " .. type(fn), 2) end
  return recompute.run(nil, fn, ...)
end

return recompute
