-- Activation checkpointing: a function's intermediate values are not kept for backward; backward runs it again, with the random numbers and the
-- autocast that it had. What a function changes besides (batch_norm's running statistics) is changed by the first run alone.
local core = require "tycho.core"
local fail = require("tycho.options").fail
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local tree = require "tycho.tree"
local M = core.methods
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

-- What fn made and nobody holds is memory that checkpoints are there to save: it doesn't wait for the collector's next turn, where it is much. Where
-- a collection gave little back, the next one comes later.
local LEAST = 2^24
local much = LEAST
local function tidy(before, ...)
  local now = core.allocated()
  local garbage = now - before
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if core.is_tensor(v) then garbage = garbage - M.numel(v) * M.element_size(v) end
  end
  if garbage > math.max(much, now / 8) and collectgarbage "isrunning" then
    collectgarbage()
    much = now - core.allocated() > garbage / 2 and LEAST or 2 * garbage
  end
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
    -- Under tycho.grad nothing gets a gradient but what was asked for: arguments through the tape, what fn uses besides by way of `besides`.
    local asked, wanted, places = modes.inputs, {}, {}
    for i = 1, asked and ctx.n or 0 do
      if leaves[i] then wanted[#wanted + 1], places[#wanted + 1] = leaves[i], i end
    end
    local own = #wanted
    for _, x in ipairs(asked and asked.list or {}) do wanted[#wanted + 1] = x end
    wanted[#wanted + 1] = modes.anchor                   -- of checkpoints within
    local found = #roots > 0 and core.backward(roots, grads, asked and wanted or nil, false, false) or {}
    local result = {}
    for i = 1, asked and 0 or ctx.n do result[i + 3] = leaves[i] and leaves[i].grad or nil end
    for k, i in pairs(places) do result[i + 3] = found[k] or nil end
    for k = 1, asked and #asked.list or 0 do
      local g = found[own + k]
      if g then asked.besides[k] = asked.besides[k] and asked.besides[k] + g or g end
    end
    out, roots, grads, leaves, args = nil, nil, nil, nil, nil -- luacheck: ignore
    return tidy(held, unpack(result, 1, ctx.n + 3))
  end}

---- tensors in tables ----
-- Gradients flow to and from arguments and results of a recorded call alone: tensors in plain tables become such, and the tables are made again around them.
local Place = {}
local function plain(v) return type(v) == "table" and getmetatable(v) == nil end

-- v with a place in the list for each tensor; and back.
local function taken_out(v, list)
  return tree.map(v, function(x)
    if not core.is_tensor(x) then return x end
    list.n = list.n + 1
    list[list.n] = x
    return setmetatable({list.n}, Place)
  end)
end
local function put_back(v, list)
  return tree.map(v, function(x) if getmetatable(x) == Place then return list[x[1]] end return x end)
end
local function pack(...) return {n = select("#", ...), ...} end
local function unpacked(t) return unpack(t, 1, t.n) end

local function has_table(...)
  for i = 1, select("#", ...) do if plain((select(i, ...))) then return true end end
  return false
end

-- fn(...), of which only arguments and results are kept. report, where given, is told at each backward how many bytes fn's values in between took
-- while they were there again.
function recompute.run(report, fn, ...)
  if not core.is_grad_enabled() then return fn(...) end
  -- one for all, so that tycho.grad can ask for it, and so for every checkpoint on the way
  modes.anchor = modes.anchor or core.keep(core.ops.zeros(1, {requires_grad = true, device = "cpu"}))
  local results
  local function results_out(...)
    results = nil
    if not has_table(...) then return ... end
    local list = {n = 0}
    results = taken_out(pack(...), list)
    return unpacked(list)
  end
  local function again(...) return results_out(fn(...)) end
  local list = {n = 0}
  local args = has_table(...) and taken_out(pack(...), list)
  local function from_list(...) return results_out(fn(unpacked(put_back(args, pack(...))))) end
  local out = args and pack(Again(modes.anchor, report, from_list, unpacked(list))) or pack(Again(modes.anchor, report, again, ...))
  return unpacked(results and put_back(results, out) or out)
end

-- Options that PyTorch's programs end a call with: here there is one way, and it keeps the random numbers.
local OPTIONS = {use_reentrant = true, preserve_rng_state = true, determinism_check = true, debug = true}
local function is_options(v)
  if not plain(v) or next(v) == nil then return false end
  for k in pairs(v) do if not OPTIONS[k] then return false end end
  return true
end

function recompute.checkpoint(fn, ...)
  if not modes.callable(fn) then fail("checkpoint: argument 1 must be a function, got " .. type(fn)) end
  local n = select("#", ...)
  if n > 0 and is_options((select(n, ...))) then
    local args = {...}
    return recompute.run(nil, fn, unpack(args, 1, n - 1))
  end
  return recompute.run(nil, fn, ...)
end

return recompute
