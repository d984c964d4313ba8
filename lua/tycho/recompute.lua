-- Activation checkpointing: a function's intermediate values are not kept for backward; backward runs the function again, with the same
-- random numbers and autocast. Other changes that the function makes (batch_norm's running statistics) are made by the first run alone.
--
-- Idea: the call is one node of the tape. Its operands are fn's arguments and whatever else the first run read that needs a gradient:
-- parameters, tensors computed before (core.list_operands). In backward fn runs again with leaves standing in for all operands, whose
-- gradients are the node's. Results of ops that the user names are kept all the same and taken from where they are (core.recall), so that
-- only the rest is computed again. Invariant: backward inside never touches the surrounding graph, so that hooks see whole gradients.
local core = require "tycho.core"
local options = require "tycho.options"
local fail, finally, pack = options.fail, options.finally, options.pack
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local tree = require "tycho.tree"
local M = core.methods
local recompute = {}
local FIRST_STATE = 4                       -- the place of the first generator state among Again's arguments

-- The states of the generators that fn may draw from, given its arguments; none if fresh: fn then needn't draw the same numbers again.
local function generators(fresh, ...)
  if fresh then return {} end
  local states, known = {core.ops.rng_state {device = "cpu"}}, {cpu = true}
  local function note(device)
    if device and not known[device] then states[#states + 1], known[device] = core.ops.rng_state {device = device}, true end
  end
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    note(core.is_tensor(x) and x.device)
  end
  if not core.gpu.opened() then return states end
  note("cuda:" .. core.gpu.current_device())           -- fn may move its arguments there, or to others that the program uses
  if core.program.active() or core.gpu.capturing() then return states end          -- of one device
  for i = 0, core.gpu.device_count() - 1 do
    local device = "cuda:" .. i
    if not known[device] and core.gpu.memory_stats(i).reserved > 0 then note(device) end
  end
  return states
end
local function restore(states) for _, state in ipairs(states) do core.ops.set_rng_state(state) end end
recompute.generators, recompute.restore = generators, restore

-- Memory that fn made and nobody holds is what checkpoints are to save, so a large amount doesn't wait for the collector's next cycle.
-- After a collection that freed little, the threshold for the next is raised. results: tensors that are held.
local LEAST = 2^24
local much = LEAST
local function tidy(before, results)
  local now = core.allocated()
  local garbage = now - before
  for _, v in pairs(results) do
    if core.is_tensor(v) then garbage = garbage - M.numel(v) * M.element_size(v) end
  end
  if garbage > math.max(much, now / 8) and collectgarbage "isrunning" then
    collectgarbage()
    much = now - core.allocated() > garbage / 2 and LEAST or 2 * garbage
  end
end

-- fn's i-th argument; it comes after ctx.ahead other arguments of Again. Tensors among them are held by the tape.
local function argument(ctx, i)
  local x = ctx._saved[ctx.ahead + i]
  if x == nil then return ctx.plain[i] end
  return x
end

-- Calls fn(...). The first time, results of ops that ctx.save names are kept in ctx._recalled; again, they are taken from there. A
-- checkpoint around this one keeps none of them.
local function recalling(ctx, again, fn, ...)
  if not ctx.save then return modes.apart(fn, ...) end
  local list = again and ctx.list or core.recall(ctx.save)
  local function ended(ok, ...)
    local results = core.recall_end(list, not ok)
    if not ok then error((select(1, ...)), 0) end
    if not again then ctx._recalled, ctx.recalled, ctx.list = results, #results, list end
    return ...
  end
  local results
  if again then
    results = {}
    for k = 1, ctx.recalled do results[k] = argument(ctx, ctx.n + k) end
  end
  return ended(pcall(function(...)
    core.recall_begin(list, results)
    return fn(...)
  end, ...))
end

-- Calls fn(...) with leaves[n + k] standing in for operand k under all of its handles that still exist. An operand that fn returns
-- unchanged is returned under a handle of its own.
local function among_leaves(ctx, leaves, fn, ...)
  local handles, before, known = {}, {}, {}
  for i = 1, ctx.n do if leaves[i] then known[core.address(leaves[i])] = 0 end end
  return finally(function()
    core.operands_listed(known)
    for i, h in pairs(handles) do core.stand_in(h, before[i]) end
  end, function(...)
    for k, x in ipairs(ctx._operands) do
      local leaf = core.leaf_of(x)
      leaves[ctx.n + k], known[core.address(leaf)] = leaf, 0
    end
    for i, h in ipairs(ctx._handles) do
      local k = ctx._handles.of[i]
      before[i] = core.stand_in(h, leaves[ctx.n + k], ctx._operands[k])
      handles[i] = before[i] and h           -- nil: it has been freed
    end
    core.list_operands(known)
    local out = {recalling(ctx, true, fn, ...)}
    if known[1] then
      fail("checkpoint: computed again, fn reads a tensor of shape %s that needs a gradient, and wasn't read the first time or needed \z
        none then: it must do the same each time (in the first run what it computes needs none; what func.functional_call puts in \z
        is gone: put the checkpoint around it)", tostring(known[1].shape))
    end
    for i = 1, table.maxn(out) do
      for _, h in pairs(core.is_tensor(out[i]) and handles or {}) do if rawequal(out[i], h) then out[i] = core.same(h) end end
    end
    return unpack(out, 1, table.maxn(out))
  end, ...)
end

-- Runs fn again in its original state. Gives its results, with n, and by place the leaves that stood in for its arguments and other
-- operands.
local function computed_again(ctx)
  local args, leaves, now, casts, begun = {}, {}, nil, nil, nil
  local grad, within = core.is_grad_enabled(), nil
  local function back()
    core.scope_outside(within)
    core.set_grad_enabled(grad)
    if casts then modes.autocast(casts) end
    if now then restore(now) end
  end
  within = core.scope_outside()            -- the user may keep what fn is given and makes
  local results = {finally(back, function()
    for i = 1, ctx.n do
      local x = argument(ctx, i)
      if core.is_tensor(x) then
        if ctx.needs_input_grad[ctx.ahead + i] then leaves[i] = core.leaf_of(x) end
        x = leaves[i] or x:detach()
      end
      args[i] = x
    end
    now, casts = generators(ctx.fresh, unpack(args, 1, ctx.n)), modes.autocast(ctx.autocasts)
    restore {unpack(ctx._saved, FIRST_STATE, ctx.ahead)}
    core.set_grad_enabled(true)
    begun = core.kept()
    return modes.during({recomputing = true, first_run = false}, among_leaves, ctx, leaves, ctx.fn, unpack(args, 1, ctx.n))
  end)}
  results.n = table.maxn(results)
  if ctx.report then
    local roots = {}
    for k = 1, results.n do if core.is_tensor(results[k]) and results[k].requires_grad then roots[#roots + 1] = results[k] end end
    ctx.report(core.kept(roots, begun))
  end
  return results, leaves
end
-- Those results that require grad, and the gradients given for them.
local function roots_of(out, given)
  local roots, grads = {}, {}
  for k = 1, out.n do
    if core.is_tensor(out[k]) and given[k] and out[k].shape ~= given[k].shape then
      fail("checkpoint: computed again, result %d has shape %s, not %s: fn must do the same each time", k, out[k].shape, given[k].shape)
    end
    if core.is_tensor(out[k]) and out[k].requires_grad then roots[#roots + 1], grads[#grads + 1] = out[k], given[k] end
  end
  return roots, grads
end

-- The gradients of roots with respect to leaves, of which up to n places are filled; by place.
local function pass(roots, grads, leaves, n, retain, create)
  local wanted, places, result = {}, {}, {}
  for i = 1, n do if leaves[i] then wanted[#wanted + 1], places[#wanted + 1] = leaves[i], i end end
  local found = #roots > 0 and #wanted > 0 and core.backward(roots, grads, wanted, retain, create) or {}
  for k, i in pairs(places) do result[i] = found[k] or nil end
  return result
end

-- A separate function, so that nothing holds fn's values when the collector runs.
local function once(ctx, n, ...)
  local out, leaves = computed_again(ctx)
  local roots, grads = roots_of(out, {...})
  return pass(roots, grads, leaves, n, false, false)
end

-- The gradients of a checkpoint's operands, as a function of the operands and the incoming gradients: for second derivatives.
local Gradients = autograd.Function {
  -- ...: a gradient for each of fn's count results, then the n operands
  forward = function(c, ctx, count, n, ...)
    local given, results, out, leaves = {}, {}, computed_again(ctx)
    c.leaves, c.count = {}, count + n
    for k = 1, count do
      local g = (select(k, ...))
      if g and M.is_floating_point(g) then given[k] = g:detach():requires_grad_() end
      c.leaves[k] = given[k]
    end
    for i = 1, n do c.leaves[count + i] = leaves[i] end
    local roots, grads = roots_of(out, given)
    c.found = pass(roots, grads, leaves, n, true, true)
    for _, list in ipairs {c.leaves, c.found} do           -- backward may come after a scope's end
      for _, x in pairs(list) do core.keep(x) end
    end
    for place, g in pairs(c.found) do results[place] = g:detach() end
    return unpack(results, 1, n)
  end,
  backward = function(c, ...)
    if core.is_grad_enabled() then error("checkpoint: there is no third derivative through a checkpoint", 0) end
    local roots, grads = {}, {}
    for place, g in pairs(c.found) do
      local more = (select(place, ...))
      if more and g.requires_grad then roots[#roots + 1], grads[#grads + 1] = g, more end
    end
    -- retain: the result may be differentiated again; whether this pass is the last isn't known here
    return nil, nil, nil, unpack(pass(roots, grads, c.leaves, c.count, true, false), 1, c.count)
  end}

-- Operands, and their handles: handles[i] is of operand handles.of[i]. Tensors freed since are left out: nobody can read them again.
local function sorted(list)
  local operands, handles, place, of = {}, {}, {}, {}
  local function put(h, k)
    local x = not place[k] and core.same(h)
    if x then
      operands[#operands + 1] = x
      place[k] = #operands
    end
    if place[k] then handles[#handles + 1], of[#of + 1] = h, place[k] end
  end
  for k, h in ipairs(list) do put(h, k) end
  for i = 1, #list.more, 2 do put(list.more[i], list.more[i + 1]) end
  handles.of = of
  return operands, handles
end

-- Calls fn(...) and collects the operands that it reads. Its arguments, passed under handles of their own, are not among them. A collected
-- operand that fn returns unchanged is returned as another tensor.
local function collecting(ctx, fn, ...)
  local list, args, n = {}, {}, select("#", ...)
  for i = 1, n do
    local x = (select(i, ...))
    args[i] = core.is_tensor(x) and core.same(x, modes.now.call ~= nil) or x   -- a compiled call leaves memory to whoever still holds it
    if core.is_tensor(x) then list[args[i]] = true end
  end
  core.list_operands(list, true)
  local function done() core.operands_listed(list) end
  local out = finally(done, modes.during, {unseen = core.program.active(), first_run = true}, function()
    local out = {recalling(ctx, false, fn, unpack(args, 1, n))}
    for i = 1, table.maxn(out) do
      if core.is_tensor(out[i]) and out[i].requires_grad then
        core.list_read {out[i]}
        out[i] = M.detach(out[i])
      end
    end
    ctx._operands, ctx._handles = sorted(list)
    return out
  end)
  core.list_read(ctx._handles)               -- a checkpoint around this one has read them, too
  return out
end

local Again = autograd.Function {
  _as_ops = true,
  -- how, fn, the number of generator states; then, from FIRST_STATE on, these states and fn's arguments. Tensors are in _saved at backward.
  forward = function(ctx, how, fn, states, ...)
    ctx.fn, ctx.ahead, ctx.n, ctx.report, ctx.fresh = fn, FIRST_STATE - 1 + states, select("#", ...) - states, how.report, how.fresh
    ctx.autocasts, ctx.plain, ctx.save, ctx.recalled = modes.autocast(), {}, how.save, 0
    for i = 1, ctx.n do
      local x = select(states + i, ...)
      if not core.is_tensor(x) then ctx.plain[i] = x end
    end
    local held = core.allocated()
    local out = collecting(ctx, fn, select(states + 1, ...))
    tidy(held, out)
    return unpack(out, 1, table.maxn(out))
  end,
  -- gives a list
  backward = function(ctx, ...)
    local held, n = core.allocated(), ctx.n + #ctx._operands
    local result
    if core.is_grad_enabled() then
      local all, count = {...}, select("#", ...)
      for i = 1, ctx.n do all[count + i] = argument(ctx, i) end
      for k, x in ipairs(ctx._operands) do all[count + ctx.n + k] = x end
      result = {Gradients(ctx, count, n, unpack(all, 1, count + n))}
    else result = once(ctx, n, ...) end
    local gradients = {}
    for i = 1, n do gradients[ctx.ahead + i + (i > ctx.n and ctx.recalled or 0)] = result[i] end
    tidy(held, gradients)
    return gradients
  end}
Again.internal = true                       -- see src/lua/autograd.c

---- tensors in tables ----
-- Gradients flow only to and from tensors that are arguments or results of a recorded call. Tensors in plain tables are therefore passed
-- one by one, and the tables rebuilt around them.
local plain = tree.is_plain

-- A copy of v with a place in the list for each tensor.
local function taken_out(v, list)
  return tree.map(v, function(x)
    if not core.is_tensor(x) then return x end
    list.n = list.n + 1
    list[list.n] = x
    return tree.place(list.n)
  end)
end
local function unpacked(t) return unpack(t, 1, t.n) end

local function has_table(...)
  for i = 1, select("#", ...) do if plain((select(i, ...))) then return true end end
  return false
end

-- Calls fn(...), of which only arguments and results are kept for backward. how.report(bytes), if given, is called at each backward with
-- the bytes of intermediate values that were recomputed; how.fresh: random numbers are drawn anew; how.save: names of ops whose results
-- are kept, too. Within vmap all values are.
function recompute.run(how, fn, ...)
  if not core.is_grad_enabled() then return modes.apart(fn, ...) end
  if core.map_level() > 0 then return fn(...) end
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
  local function from_list(...) return results_out(fn(unpacked(tree.fill(args, pack(...))))) end
  local function recorded(f, ...)
    local all = generators(how.fresh, ...)
    local states = #all
    for i = 1, select("#", ...) do all[states + i] = (select(i, ...)) end
    return pack(Again(how, f, states, unpack(all, 1, states + select("#", ...))))
  end
  local out = args and recorded(from_list, unpacked(list)) or recorded(again, ...)
  return unpacked(results and tree.fill(results, out) or out)
end

-- Options that PyTorch programs put last. preserve_rng_state = false draws new random numbers; save names ops; the others have no effect.
local OPTIONS = {preserve_rng_state = true, use_reentrant = true, determinism_check = true, early_stop = true, debug = true, save = {}}
-- Whether v is a table of these. A table that has other names, too, is an argument of fn, unless a name that is of checkpoints alone is
-- among them.
local TELLING = {preserve_rng_state = true, use_reentrant = true, determinism_check = true}
local TELLING_NAMES = {}
for k in pairs(TELLING) do TELLING_NAMES[#TELLING_NAMES + 1] = k end
local function is_options(who, v)
  if not plain(v) or next(v) == nil then return false end
  local all, some = true, false
  for k in pairs(v) do
    if k == "context_fn" then
      fail("%s: context_fn isn't supported: name the ops whose results are to be kept, {save = {'matmul'}}", who)
    end
    all, some = all and OPTIONS[k] ~= nil, some or TELLING[k]
  end
  local near = nil                         -- a misspelled one of those
  for k in pairs(v) do
    local name = type(k) == "string" and core.nearest(k, TELLING_NAMES)
    if name and math.abs(#name - #k) <= 2 then near = name end
  end
  if some or near and not all then options.check(who, v, OPTIONS) end
  return all
end
-- The value of an option save, a name or a list of names, as a list.
function recompute.names(save)
  if type(save) == "string" then save = {save} end
  core.recall(save)                                         -- raises for a name that isn't an op's
  return {unpack(save)}                                     -- the user may change theirs
end
local function how_of(o) return {fresh = o.preserve_rng_state == false, save = o.save and recompute.names(o.save)} end

-- checkpoint(fn, ...): calls fn(...), whose intermediate values aren't kept for backward; backward runs fn again, with the same random
-- numbers and autocast. Options, in a table after all arguments: save = {"linear", "attention"} keeps results of these ops (by the names
-- that a profile shows) all the same, so that backward needn't compute them again: PyTorch's selective checkpoints. Not those of ops that
-- draw random numbers, and not those of a checkpoint within, which has a list of its own. preserve_rng_state = false draws other
-- random numbers. PyTorch's use_reentrant, determinism_check, early_stop and debug may stand there, too, without effect: results of
-- another shape are always an error. Within vmap nothing is computed again: all values are kept.
function recompute.checkpoint(fn, ...)
  if not modes.callable(fn) then fail("checkpoint: argument 1 must be a function, got " .. type(fn)) end
  local n = select("#", ...)
  if n > 0 and is_options("checkpoint", (select(n, ...))) then
    local args = {...}
    return recompute.run(how_of(args[n]), fn, unpack(args, 1, n - 1))
  end
  return recompute.run({}, fn, ...)
end

-- Runs layers one after another in `segments` parts, each recomputed by itself.
function recompute.sequence(how, layers, segments, ...)
  local module = require "tycho.nn.module"
  local parts = math.min(segments, #layers)
  local function through(i, to, x, ...)                       -- x has a name: see "LuaJIT's compiler" in contributing.md
    if i > to then return x, ... end
    if i > 1 and module.takes_one(layers[i]) then return through(i + 1, to, layers[i](x)) end
    return through(i + 1, to, layers[i](x, ...))
  end
  local function part(k, from, ...)
    if k > parts then return ... end
    local to = math.floor(k * #layers / parts)
    return part(k + 1, to + 1, recompute.run(how, function(...) return through(from, to, ...) end, ...))
  end
  return part(1, 1, ...)
end

-- checkpoint_sequential(functions, segments, input): runs the functions (a Sequential, or a list of functions and modules) one after
-- another, in so many parts, each recomputed by itself. Options as checkpoint's.
function recompute.checkpoint_sequential(functions, segments, x, o)
  if o ~= nil and not is_options("checkpoint_sequential", o) then fail("checkpoint_sequential: takes one input") end
  options.whole("checkpoint_sequential", "segments", segments, 1)
  local module = require "tycho.nn.module"
  local layers = module.is_module(functions) and module.members(module.behind(functions)) or functions
  if type(layers) ~= "table" or core.is_tensor(layers) then
    fail("checkpoint_sequential: argument 1 must be a Sequential or a list of functions, got %s", options.shown(layers))
  end
  for i, f in ipairs(layers) do
    if not modes.callable(f) then fail("checkpoint_sequential: function %d must be callable, got %s", i, options.shown(f)) end
  end
  return recompute.sequence(how_of(o or {}), layers, segments, x)
end

return recompute
