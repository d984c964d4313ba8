-- Activation checkpointing: a function's intermediate values are not kept for backward; backward runs it again, with
-- the random numbers and the autocast that it had. What a function changes besides (batch_norm's running statistics) is
-- changed by the first run alone.
local core = require "tycho.core"
local options = require "tycho.options"
local fail, finally = options.fail, options.finally
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local tree = require "tycho.tree"
local M = core.methods
local recompute = {}
local FIRST_STATE = 5                       -- among the arguments of Again

-- The states of the generators that a function of these arguments may draw from; none where it isn't to have the same numbers again.
local function generators(fresh, ...)
  if fresh then return {} end
  local states, known = {core.ops.rng_state {device = "cpu"}}, {cpu = true}
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    local device = core.is_tensor(x) and x.device
    if device and not known[device] then states[#states + 1], known[device] = core.ops.rng_state {device = device}, true end
  end
  return states
end
local function restore(states) for _, state in ipairs(states) do core.ops.set_rng_state(state) end end

-- What fn made and nobody holds is memory that checkpoints are there to save: it doesn't wait for the collector's next
-- turn, where it is much. Where a collection gave little back, the next one comes later.
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

-- fn's i-th argument, which stands behind ctx.ahead others of Again's; the tape holds the tensors among them.
local function argument(ctx, i)
  local x = ctx._saved[ctx.ahead + i]
  if x == nil then return ctx.plain[i] end
  return x
end

-- fn again, of leaves that stand for its arguments, with what it had. Gives its results, with n, and the leaves by place.
local function computed_again(ctx)
  local within = core.scope_outside()      -- what fn is given and makes may be kept by the user
  local args, leaves = {}, {}
  for i = 1, ctx.n do
    local x = argument(ctx, i)
    if core.is_tensor(x) then
      if ctx.needs_input_grad[ctx.ahead + i] then leaves[i] = core.leaf_of(x) end
      x = leaves[i] or x:detach()
    end
    args[i] = x
  end
  local now, casts, before = generators(ctx.fresh, unpack(args, 1, ctx.n)), modes.autocast(ctx.autocasts), modes.recomputing
  restore {unpack(ctx._saved, FIRST_STATE, ctx.ahead)}
  modes.recomputing = true
  local grad, begun = core.set_grad_enabled(true), core.kept()
  local out = {pcall(ctx.fn, unpack(args, 1, ctx.n))}
  core.scope_outside(within)
  core.set_grad_enabled(grad)
  modes.recomputing = before
  modes.autocast(casts)
  restore(now)
  if not out[1] then error(out[2], 0) end
  local results = {n = table.maxn(out) - 1}
  for k = 1, results.n do results[k] = out[k + 1] end
  if ctx.report then
    local roots = {}
    for k = 1, results.n do if core.is_tensor(results[k]) and results[k].requires_grad then roots[#roots + 1] = results[k] end end
    ctx.report(core.kept(roots, begun))
  end
  return results, leaves
end
-- Of results, those that a gradient flows to, and the gradients given for them.
local function roots_of(out, given)
  local roots, grads = {}, {}
  for k = 1, out.n do
    if core.is_tensor(out[k]) and given[k] and out[k].shape ~= given[k].shape then
      fail("checkpoint: computed again, result %d has shape %s and not %s: fn must do the same each time", k, out[k].shape, given[k].shape)
    end
    if core.is_tensor(out[k]) and out[k].requires_grad then roots[#roots + 1], grads[#grads + 1] = out[k], given[k] end
  end
  return roots, grads
end

local function add(into, k, g)            -- which outlives what adds to it
  if g then into[k] = core.keep(into[k] and into[k] + g or g) end
end

-- Gradients of roots with respect to leaves (by place; holes are left out). Under tycho.grad nothing else gets one but
-- what was asked for, by way of `besides`; otherwise the leaves that fn uses besides get theirs.
local function pass(roots, grads, leaves, n, retain)
  local asked, wanted, places, result = modes.inputs, {}, {}, {}
  for i = 1, asked and n or 0 do
    if leaves[i] then wanted[#wanted + 1], places[#wanted + 1] = leaves[i], i end
  end
  local own = #wanted
  for _, x in ipairs(asked and asked.list or {}) do wanted[#wanted + 1] = x end
  wanted[#wanted + 1] = modes.anchor                     -- of checkpoints within
  local found = #roots > 0 and core.backward(roots, grads, asked and wanted or nil, retain, false) or {}
  for i = 1, asked and 0 or n do
    local g = leaves[i] and leaves[i].grad
    if g then
      result[i], leaves[i].grad = M.detach(g), nil
      core.mark_as(result[i], leaves[i])                 -- whether it is scaled the pass around this one knows
      g:free()                                           -- a handle of a leaf's gradient is in no scope
    end
  end
  for k, i in pairs(places) do result[i] = found[k] or nil end
  for k = 1, asked and #asked.list or 0 do
    add(asked.besides, k, found[own + k])
  end
  return result
end

-- In a function of its own, so that nothing holds what fn made when the collector comes.
local function once(ctx, ...)
  local out, leaves = computed_again(ctx)
  local roots, grads = roots_of(out, {...})
  return pass(roots, grads, leaves, ctx.n, false)
end

-- The gradients of a checkpoint's arguments, and of what is asked for besides, as a function of the arguments and of
-- the gradients that come: for gradients of gradients.
local Gradients = autograd.Function {
  -- ...: as many gradients as fn has results, then the arguments
  forward = function(c, _, ctx, count, ...)
    local given, asked, out, leaves = {}, modes.inputs, computed_again(ctx)
    c.leaves, c.count = {}, count + ctx.n
    for k = 1, count do
      local g = (select(k, ...))
      if g then given[k] = g:detach():requires_grad_() end
      c.leaves[k] = given[k]
    end
    local roots, grads = roots_of(out, given)
    local wanted, places = {}, {}
    for i = 1, ctx.n do
      c.leaves[count + i] = leaves[i]
      if leaves[i] then wanted[#wanted + 1], places[#wanted + 1] = leaves[i], i end
    end
    for k, x in ipairs(asked.list) do wanted[#wanted + 1], places[#wanted + 1] = x, ctx.n + k end
    wanted[#wanted + 1] = modes.anchor
    -- what checkpoints within find besides goes the same way as what is found here
    local within, results = {list = asked.list, besides = {}}, {}
    modes.inputs = within
    local found = #roots > 0 and finally(function() modes.inputs = asked end, core.backward, roots, grads, wanted, true, true) or {}
    modes.inputs = asked
    c.found = {}
    for w, place in pairs(places) do c.found[place] = found[w] or nil end
    for k, g in pairs(within.besides) do add(c.found, ctx.n + k, g) end
    for place, g in pairs(c.found) do results[place] = g:detach() end
    return unpack(results, 1, ctx.n + #asked.list)
  end,
  backward = function(c, ...)
    if core.is_grad_enabled() then error("checkpoint: third derivatives don't go through what is computed again", 0) end
    local roots, grads = {}, {}
    for place, g in pairs(c.found) do
      local more = (select(place, ...))
      if more and g.requires_grad then roots[#roots + 1], grads[#grads + 1] = g, more end
    end
    -- what was found may be asked for again: whether this pass is the last isn't known here
    return nil, nil, nil, unpack(pass(roots, grads, c.leaves, c.count, true), 1, c.count)
  end}

local Again = autograd.Function {
  -- The first argument is a tensor that requires grad, so that the call is recorded whatever fn's arguments are; then how, fn,
  -- and, from FIRST_STATE on, as many generators' states and fn's arguments. Tensors are in _saved again at backward.
  forward = function(ctx, _, how, fn, states, ...)
    ctx.fn, ctx.ahead, ctx.n, ctx.report, ctx.fresh = fn, FIRST_STATE - 1 + states, select("#", ...) - states, how.report, how.fresh
    ctx.autocasts, ctx.plain = modes.autocast(), {}
    for i = 1, ctx.n do
      local x = select(states + i, ...)
      if not core.is_tensor(x) then ctx.plain[i] = x end
    end
    local held, before = core.allocated(), modes.unseen
    modes.unseen = core.program.active()
    return tidy(held, finally(function() modes.unseen = before end, fn, select(states + 1, ...)))
  end,
  backward = function(ctx, ...)
    local held, asked, result = core.allocated(), modes.inputs
    -- what goes to `besides` comes from this run alone
    if asked and #asked.list > 0 then core.program.settle "tycho.grad goes through a checkpoint" end
    if core.is_grad_enabled() then
      if not asked then error("checkpoint: create_graph goes through what is computed again by tycho.grad, which names the inputs", 0) end
      local all, count = {...}, select("#", ...)
      for i = 1, ctx.n do all[count + i] = argument(ctx, i) end
      result = {Gradients(modes.anchor, ctx, count, unpack(all, 1, count + ctx.n))}
      for k = 1, #asked.list do add(asked.besides, k, result[ctx.n + k]) end
    else result = once(ctx, ...) end
    local gradients = {}
    for i = 1, ctx.n do gradients[ctx.ahead + i] = result[i] end
    return tidy(held, unpack(gradients, 1, ctx.ahead + ctx.n))
  end}
Again.internal = true

---- tensors in tables ----
-- Gradients flow to and from arguments and results of a recorded call alone: tensors in plain tables become such, and
-- the tables are made again around them.
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

-- fn(...), of which only arguments and results are kept. how.report, where given, is told at each backward how many bytes of fn's values
-- in between were made again for it; how.fresh: random numbers are drawn anew then.
function recompute.run(how, fn, ...)
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
  local function recorded(f, ...)
    local all = generators(how.fresh, ...)
    local states = #all
    for i = 1, select("#", ...) do all[states + i] = (select(i, ...)) end
    return pack(Again(modes.anchor, how, f, states, unpack(all, 1, states + select("#", ...))))
  end
  local out = args and recorded(from_list, unpacked(list)) or recorded(again, ...)
  return unpacked(results and put_back(results, out) or out)
end

-- Options that PyTorch's programs end a call with: preserve_rng_state = false draws anew; of the others there is one way here.
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
    return recompute.run({fresh = args[n].preserve_rng_state == false}, fn, unpack(args, 1, n - 1))
  end
  return recompute.run({}, fn, ...)
end

-- Layers one after another, in so many parts, each recomputed by itself.
function recompute.sequence(how, layers, segments, x)
  local n, first = #layers, 1
  for k = 1, math.min(segments, n) do
    local from, to = first, math.floor(k * n / math.min(segments, n))
    x = recompute.run(how, function(y)
      for i = from, to do y = layers[i](y) end
      return y
    end, x)
    first = to + 1
  end
  return x
end

-- checkpoint_sequential(functions, segments, input): a Sequential, or a list of functions and modules, as nn.Checkpoint has it.
function recompute.checkpoint_sequential(functions, segments, x, o)
  if o ~= nil and not is_options(o) then fail("checkpoint_sequential: functions take one input") end
  options.whole("checkpoint_sequential", "segments", segments, 1)
  local layers = type(functions) == "table" and type(functions.children) == "function" and functions:children() or functions
  if type(layers) ~= "table" or core.is_tensor(layers) then
    fail("checkpoint_sequential: argument 1 must be a Sequential or a list of functions, got %s", options.shown(layers))
  end
  for i, f in ipairs(layers) do
    if not modes.callable(f) then fail("checkpoint_sequential: function %d must be callable, got %s", i, options.shown(f)) end
  end
  return recompute.sequence({fresh = o and o.preserve_rng_state == false}, layers, segments, x)
end

return recompute
