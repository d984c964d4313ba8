-- What holds while a function runs: recording (no_grad, enable_grad), autocast, the level of vmap, scopes, and what the library itself
-- notes for the functions within (during).
--
-- Idea: a mode belongs to the coroutine that sets it. Each function here sets one, calls fn(...), and gives its results. Invariant: what
-- held before holds again afterwards, also if fn errs.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail

local function restore(old, ok, ...)
  core.set_grad_enabled(old)
  if not ok then error((select(1, ...)), 0) end
  return ...
end

-- A function, or a value that can be called like one: a module.
local function callable(fn) return type(fn) == "function" or (type(fn) == "table" and (getmetatable(fn) or {}).__call ~= nil) end

-- What holds while a function runs, in the coroutine that called it and in those that it resumes, as src/lua/extents.c says.
local open = 0
local now = setmetatable({}, {__index = function(_, name)
  local values = open > 0 and core.extent() or nil
  return values and values[name]
end})
-- Calls fn(...) and gives its results; meanwhile modes.now has these values, and those before of other names. Names: call, the scope of the
-- compiled call that runs; tracing: functions with several ways take the one that is right for every size and dtype, and an
-- autograd.Function notes in this table that it ran (jit/trace.lua); made_leaves: a list of the leaves that are made (weighted_grad.lua);
-- of checkpoints first_run, recomputing, and unseen: their first run records no gradients whatever mode the function sets, so where it is
-- recorded or compared, the record can't show that mode.
local function during(values, fn, ...)
  local function done() open = core.extent_end(values) end
  setmetatable(values, {__index = core.extent()})
  open = core.extent_begin(values)
  return options.finally(done, fn, ...)
end

local modes = {callable = callable, now = now, during = during}
function modes.set_grad_enabled(on)
  if now.unseen then core.program.settle "a checkpoint's function switches gradients on or off" end
  return core.set_grad_enabled(on)
end
local function under(on, name)
  return function(fn, ...)
    if not callable(fn) then fail(name .. ": argument 1 must be a function, got " .. type(fn)) end
    return restore(modes.set_grad_enabled(on), pcall(options.run, fn, ...))
  end
end

-- autocast({cpu =, cuda =}): sets the dtype that autocast computes in on these kinds of device (false: off); gives the previous settings.
local function autocast(state)
  local was = {cpu = core.autocast(false) or false, cuda = core.autocast(true) or false}
  for kind, dtype in pairs(state or {}) do core.autocast(kind == "cuda", dtype or nil) end
  return was
end
-- fn(...) under such settings.
local function autocasting(state, fn, ...)
  return options.meanwhile(autocast, state, autocast(), fn, ...)
end

-- fn(...), of which a checkpoint around it keeps no results (core.recall).
function modes.apart(fn, ...)
  if not core.recalls() then return fn(...) end
  local none = core.recall {}
  return options.finally(function() core.recall_end(none, true) end, function(...)
    core.recall_begin(none)
    return fn(...)
  end, ...)
end

-- fn(...) where only the outermost `level` of the vmaps run that do here.
function modes.at_level(level, fn, ...)
  if not core.is_mapping() then return fn(...) end
  local within
  local function done() core.map_back(within) end
  within = core.map_to(level)
  return options.finally(done, fn, ...)
end

local function leave(scope, ok, ...)
  if ok then core.scope_end(scope, ...) else core.scope_end(scope) end
  if not ok then error((select(1, ...)), 0) end
  return ...
end
-- Calls fn(...) and gives its results. Tensors made meanwhile are released when it ends, and their memory with them, except the results,
-- also in tables, and those that keep() was called for; a later use of a released tensor is an error. For loops over large tensors, which
-- would otherwise wait for the collector.
function modes.scope(fn, ...)
  if not callable(fn) then fail("scope: argument 1 must be a function, got " .. type(fn)) end
  return leave(core.scope_begin(), pcall(options.run, fn, ...))
end

modes.autocast, modes.autocasting = autocast, autocasting
-- no_grad(fn, ...): calls fn(...) without recording ops for backward, and gives its results; enable_grad with recording. fn may be a
-- module. Afterwards, even if fn errs, the previous mode is restored; it belongs to the running coroutine.
modes.no_grad, modes.enable_grad = under(false, "no_grad"), under(true, "enable_grad")
-- fn(...) without gradients, for changes that a checkpoint's first run makes and its run in backward doesn't, such as running statistics.
function modes.once(fn, ...) if not now.recomputing then modes.apart(modes.no_grad, fn, ...) end end
return modes
