-- The user's functions for the tape: backward, grad, hooks, Function.
--
-- Idea: the core keeps the tape and calls back into Lua for hooks and Functions; here arguments are checked, and handles made of what it
-- gives. Invariant: a removed hook's place stays while there are later ones, so that a handle removes its own.
local core = require "tycho.core"
local lib = require "tycho.functional.lib"
local M = core.methods
local mapped = require "tycho.mapped_function"
local modes = require "tycho.modes"
local options = require "tycho.options"
local bare, fail, finally = options.bare, options.fail, options.finally
local autograd = {}

local pass                                                 -- of the backward that runs: what hooks of several tensors have got so far
local function run(...)
  local outer = pass
  pass = {}
  local ok, out = pcall(core.backward, ...)
  pass = outer
  if not ok then error(type(out) == "string" and core.where() .. bare(out) or out, 0) end
  return out
end

local function list(v) return core.is_tensor(v) and {v} or v end
-- Results with retain_grad; "kept": its hook has run in this pass.
local retaining = setmetatable({}, {__mode = "k"})

-- Adds the gradients of outputs, weighted by grads, to .grad of the leaves; or of inputs, if given.
local function onto(who, outputs, grads, inputs, retain, create)
  if retain ~= nil and type(retain) ~= "boolean" then fail("%s: retain_graph must be true or false, got %s", who, options.shown(retain)) end
  if retain == nil then retain = create end
  if create then options.warn(who, "with create_graph .grad holds its leaf: set it to nil afterwards, or use tycho.grad, or both leak") end
  if inputs == nil then
    run(outputs, grads, nil, retain, create)
    return
  end
  local given = inputs
  inputs = list(given)
  if type(inputs) ~= "table" or #inputs == 0 then
    fail("%s: inputs must be a tensor or a list of tensors, got %s", who, type(inputs) == "table" and "none" or options.shown(given))
  end
  local leaves = true
  for i, t in ipairs(inputs) do
    if not core.is_tensor(t) then fail("%s: input %d must be a tensor, got %s", who, i, options.shown(t)) end
    leaves = leaves and t.is_leaf
    retaining[t] = retaining[t] and true
  end
  local out = run(outputs, grads, inputs, retain, create, leaves)
  for i, t in ipairs(leaves and {} or inputs) do
    if out[i] and retaining[t] ~= "kept" then t.grad = t.grad and t.grad + out[i] or out[i] end
  end
end

-- backward(grad=, retain_graph=create_graph, create_graph=false, inputs=): computes the gradients of x with respect to the leaves that it
-- was made from and adds them to their .grad. grad: the gradient of x itself, of its shape; it may be left out where x has one element.
-- Afterwards the graph's saved tensors are released, unless retain_graph: a second backward that needs them is then an error. create_graph:
-- the gradients have a graph of their own, for second derivatives; it holds the leaves, so set their .grad to nil (zero_grad) or use
-- tycho.grad, or the memory is never freed.
-- inputs: a tensor or a list, leaves or results; only these get gradients.
M.backward = core.define("backward",
  "x, grad:tensor?, retain_graph:any?, create_graph:bool=false, inputs:any?",
  function(x, grad, retain, create, inputs) onto("backward", {x}, {grad or false}, inputs, retain, create) end)
-- A gradient for each output, or false.
local function by_output(who, grads, outputs)
  if grads ~= nil and type(grads) ~= "table" and not core.is_tensor(grads) then
    fail("%s: the outputs' gradients must be a tensor or a list of tensors, got %s", who, type(grads))
  end
  local given, filled = list(grads or {}), {}
  for i = 1, #list(outputs) do filled[i] = given[i] or false end
  return filled
end

-- backward for several tensors at once; grad_tensors: a gradient for each, false or nil for a tensor of one element.
autograd.backward = core.define("autograd.backward",
  "tensors:any, grad_tensors:any?, retain_graph:any?, create_graph:bool=false, *, inputs:any?",
  function(outputs, grads, retain, create, inputs)
    options.expect("autograd.backward", 1, outputs, type(list(outputs)) == "table" and not core.is_module(outputs),
      "a tensor or a list of tensors")
    onto("autograd.backward", list(outputs), by_output("autograd.backward", grads, outputs), inputs, retain, create)
  end)

-- autograd.grad for each row of the outputs' gradients; the results are stacked.
local function by_row(outputs, inputs, grads, retain, o)
  local n, rows = nil, {}
  for i, g in ipairs(grads) do
    local y = list(outputs)[i]
    local size = core.is_tensor(g) and g.shape[1]
    if not size or M.dim(g) ~= M.dim(y) + 1 or (n and size ~= n) or size == 0 then
      fail("grad: is_grads_batched: gradient %d must have %s in front of the output's shape %s, got %s", i,
        n and ("a dim of %d"):format(n) or "one dim", tostring(y.shape), core.is_tensor(g) and tostring(g.shape) or options.shown(g or nil))
    end
    n = size
  end
  for k = 1, n do
    o.grad_outputs, o.retain_graph = {}, retain or k < n
    for i, g in ipairs(grads) do o.grad_outputs[i] = core.ops.select(g, 1, k) end
    for i, x in pairs(autograd.grad(list(outputs), list(inputs), o)) do
      rows[i] = rows[i] or {}
      rows[i][k] = x
    end
  end
  for i, parts in pairs(rows) do rows[i] = core.ops.stack(parts) end
  return core.is_tensor(inputs) and rows[1] or rows
end

-- Returns the gradients of outputs with respect to inputs, and leaves .grad alone: a tensor for a tensor, a list for a list. grad_outputs:
-- the gradients of the outputs, needed where an output has several elements. is_grads_batched: these have an additional first dim, and so
-- have the results: one pass for each index of it. An input that wasn't used is an error; allow_unused: it gets nil; materialize_grads:
-- zeros, as an input gets that was used, but that no gradient reaches (steps such as relu's second derivative).
autograd.grad = core.define("grad",
  "outputs:any, inputs:any, grad_outputs:any?, retain_graph:any?, create_graph:bool=false, *, \z
    allow_unused:bool=false, materialize_grads:bool=false, only_inputs:bool=true, is_grads_batched:bool=false",
  function(outputs, inputs, grads, retain, create, unused, zeros, only, batched)
    if not only then fail("grad: only_inputs must be true, got false; use backward() for the gradients of all leaves") end
    for k, v in pairs {outputs = outputs, inputs = inputs} do
      if not core.is_tensor(v) and (type(v) ~= "table" or not core.is_tensor(v[1])) then
        fail("grad: argument '" .. k .. "' must be a tensor or a list of tensors")
      end
    end
    if retain == nil then retain = create end
    if type(retain) ~= "boolean" then fail("grad: retain_graph must be true or false, got %s", options.shown(retain)) end
    if batched then
      return by_row(outputs, inputs, by_output("grad", grads, outputs), retain, {create_graph = create, allow_unused = unused,
        materialize_grads = zeros})
    end
    local out = run(list(outputs), by_output("grad", grads, outputs), list(inputs), retain, create)
    for i, x in ipairs(list(inputs)) do
      if not out[i] and (zeros or not unused and core.reached(list(outputs), {x})[1]) then
        out[i] = core.ops.zeros(x.shape, {dtype = x.dtype, device = x.device, requires_grad = create or nil})
      end
      if not out[i] and not unused then
        fail("grad: input %d wasn't used in computing the outputs; {allow_unused = true} gives nil for it", i)
      end
    end
    if core.is_tensor(inputs) then return out[1] or nil end
    for i = 1, #out do out[i] = out[i] or nil end
    return out
  end)

-- A handle whose remove() removes hook i.
local function handle(hooks, i)
  local removed = false
  return {remove = function()
    if removed then return end
    removed, hooks[i] = true, false
    while hooks[#hooks] == false do hooks[#hooks] = nil end        -- trailing ones only, so that other indices stay
  end}
end
-- A module or a compiled function may be a hook, too.
local function as_function(fn)
  if type(fn) ~= "table" or not modes.callable(fn) then return fn end
  return function(...) return fn(...) end
end
-- fn(grad) is called in backward when this tensor's gradient is complete; a value other than nil that it returns replaces the gradient.
-- Gives a handle with remove().
lib.method("register_hook", function(x, fn)
  -- in a checkpoint's first run nothing requires grad
  if modes.now.first_run and not x.requires_grad then return {remove = function() end} end
  return handle(core.register_hook(x, as_function(fn)))
end)

-- fn(leaf) is called after backward has added to this leaf's .grad: an optimizer can step at once, and drop the gradient. Gives a handle
-- with remove().
function M.register_post_accumulate_grad_hook(x, fn)
  if core.is_tensor(x) and not x.is_leaf then
    fail("register_post_accumulate_grad_hook: only leaves accumulate gradients; use register_hook for an op's result")
  end
  local hooks, i = core.register_hook(x, as_function(fn))
  hooks[i] = {hooks[i]}
  return handle(hooks, i)
end

-- backward also puts this result's gradient into its .grad, as for a leaf.
lib.method("retain_grad", function(x)
  if modes.now.first_run and not x.requires_grad then return end
  if not x.requires_grad then fail("retain_grad: the tensor doesn't require grad") end
  if x.is_leaf then return end
  retaining[x] = true
  local hooks, i = core.register_hook(x, function(g) x.grad, retaining[x] = x.grad and x.grad + g or g, "kept" end)
  hooks[i], hooks.retain = false, hooks[i]                 -- runs after all others, even those registered later
end)

---- hooks of several tensors ----
local MODE = {mode = "all"}
local function multi_grad_hook(tensors, fn, o)
  local who = "register_multi_grad_hook"
  local mode = options.fill(who, o, MODE).mode
  options.expect(who, 1, tensors, type(tensors) == "table" and #tensors > 0, "a list of tensors")
  options.expect(who, 2, fn, modes.callable(fn), "a function")
  if mode ~= "all" and mode ~= "any" then fail("%s: mode must be 'all' or 'any', got %s", who, options.shown(mode)) end
  local n, wanted, handles, own = #tensors, 0, {}, {}
  for i, x in ipairs(tensors) do
    if not core.is_tensor(x) then fail("%s: item %d must be a tensor, got %s", who, i, options.shown(x)) end
    if x.requires_grad then wanted = wanted + 1 end
  end
  if modes.now.first_run then return {remove = function() end} end             -- a checkpoint's, after which the hook is registered again
  if wanted == 0 then fail("%s: none of the tensors requires grad", who) end
  for i, x in ipairs(tensors) do
    if x.requires_grad then
      handles[#handles + 1] = M.register_hook(x, function(g)
        local got = pass[own] or {count = 0, grads = {}}
        pass[own], got.count, got.grads[i] = got, got.count + 1, mode == "all" and g or nil
        if mode == "any" and got.count == 1 then fn(g)
        elseif mode == "all" and got.count == wanted then fn(got.grads, n) end
      end)
    end
  end
  return {remove = function() for _, h in ipairs(handles) do h.remove() end end}
end

---- what is saved for backward ----
autograd.graph = options.told({}, "autograd.graph")
-- register_multi_grad_hook(tensors, fn, {mode="all"}): "all": fn(grads, n) is called in backward when each of the n tensors that requires
-- grad has got its gradient; grads: a table with these at the tensors' places. "any": fn(grad) is called with the first gradient of a
-- backward. Gives a handle with remove(). A backward that reaches a part of the tensors doesn't call fn in mode "all".
autograd.graph.register_multi_grad_hook = multi_grad_hook
-- Calls fn(...) and gives its results. For each tensor that ops save for backward meanwhile, pack(tensor) returns a value that is kept
-- instead; in backward unpack(value) returns the tensor, of the same shape, dtype and device. Both run without recording, and fn isn't
-- compiled. An in-place op saves its result as it is. Of nested saved_tensors_hooks only the innermost counts. Tensors that pack returns,
-- also in a table, outlive every scope.
function autograd.graph.saved_tensors_hooks(pack, unpack, fn, ...)
  for i, f in ipairs {pack or false, unpack or false, fn or false} do
    if not modes.callable(f) then fail("saved_tensors_hooks: argument %d must be a function, got %s", i, options.shown(f or nil)) end
  end
  local hooks = {function(x)
    local v = pack(x)
    if core.is_tensor(v) then core.keep(v)                -- backward comes after any scope that is open now
    elseif type(v) == "table" then for _, part in pairs(v) do if core.is_tensor(part) then core.keep(part) end end end
    return v
  end, unpack}
  local before
  local function restore()
    core.saved_hooks(before or false)
    return hooks                                         -- the core doesn't keep them alive; this does
  end
  before = core.saved_hooks(hooks)
  return finally(restore, fn, ...)
end

local ON_CPU = {pin_memory = true}
-- save_on_cpu({pin_memory=true}, fn, ...): calls fn(...) and gives its results; tensors that GPU ops save for backward meanwhile are moved
-- to the CPU, into pinned memory unless pin_memory = false, and copied back when backward needs them, so that they occupy GPU memory only
-- while they are copied. Leaves stay where they are. The options may be left out.
function autograd.graph.save_on_cpu(o, fn, ...)
  if modes.callable(o) then
    options.first("save_on_cpu", ON_CPU, fn, ...)
    return autograd.graph.save_on_cpu({}, o, fn, ...)
  end
  local pin = options.fill("save_on_cpu", o, ON_CPU).pin_memory
  return autograd.graph.saved_tensors_hooks(function(x)
    if x.device == "cpu" or x.requires_grad then return x end
    return {pin and core.gpu.to_pinned(x) or M.cpu(x), x.device}
  end, function(kept)
    if core.is_tensor(kept) then return kept end
    return M.to(kept[1], kept[2], {non_blocking = true})
  end, fn, ...)
end

---- autograd.Function ----
-- A context holds what forward leaves for backward; it lives until the last tensor that needs it is collected. Its field _saved is dropped
-- when backward has run and the graph isn't retained (run_function in src/lua/autograd.c), like other nodes' saved tensors.
local Context = {}
Context.__index = Context
-- save_for_backward(x, ...): in forward: keeps tensors among its arguments and results for backward, where saved_tensors() returns them.
function Context:save_for_backward(...)
  self._saved = options.pack(...)
  self._versions, self._memory, self._like = {}, {}, {}
  local hooks = core.saved_hooks()
  for i = 1, self._saved.n do
    local x = self._saved[i]
    if x ~= nil then
      if not core.is_tensor(x) then fail("save_for_backward: argument " .. i .. " must be a tensor, got " .. type(x)) end
      self._versions[i], self._memory[i] = M._version(x), core.memory_of(x)
      if modes.now.call then core.scope_take(modes.now.call, x)  -- backward is in the same compiled call, or this isn't recorded
      else core.keep(x) end                              -- in whatever scope it was made
      if hooks then
        self._like[i] = {x.dtype, x.shape, x.device}
        self._saved[i] = hooks[1](x.is_leaf and x.requires_grad and x or M.detach(x))
        if M._version(x) ~= self._versions[i] then fail("saved_tensors_hooks: pack has changed the tensor that it was given") end
      end
    end
  end
  self._unpack = hooks and hooks[2]
end
-- What save_for_backward was given, as several values. A tensor that was changed in place since is an error.
function Context:saved_tensors()
  local s = self._saved
  if not s then return end
  if self._unpack then
    if core.is_grad_enabled() then
      fail("saved_tensors: tensors that hooks packed for an autograd.Function have no history, so no second derivative")
    end
    local out = {}
    for i, like in pairs(self._like) do
      local x = self._unpack(s[i])
      if not core.is_tensor(x) or x.dtype ~= like[1] or x.shape ~= like[2] or x.device ~= like[3] then
        fail("saved_tensors_hooks: unpack must return a %s tensor of shape %s on %s, got %s", like[1], like[2], like[3], options.shown(x))
      end
      out[i] = x
    end
    return unpack(out, 1, s.n)
  end
  for i = 1, s.n do
    -- memory that has moved is a compiled call's doing, no change in place
    if s[i] and M._version(s[i]) ~= self._versions[i] and core.memory_of(s[i]) == self._memory[i] then
      fail("saved_tensors: saved tensor " .. i .. " was changed in place after forward")
    end
  end
  return unpack(s, 1, s.n)
end

-- mark_non_differentiable(y, ...): in forward: these results, such as indices, carry no gradient.
function Context:mark_non_differentiable(...) self._indifferent = {...} end
-- mark_dirty(x, ...): in forward: these arguments, which it returns, were changed in place; they get the new history.
function Context:mark_dirty(...) self._dirty = {...} end
-- false: for a result that nothing used, backward gets nil instead of zeros.
function Context:set_materialize_grads(on) self._unmade = not on end

-- In a compiled call, a backward that differs from the record runs again, with the context as it was before.
local function as_before(ctx, before, ok, ...)
  if core.program.broken() then
    for k in pairs(ctx) do ctx[k] = before[k] end
    for k, v in pairs(before) do ctx[k] = v end
  end
  if not ok then error((select(1, ...)), 0) end
  return ...
end
core.set_private("function", function(ctx, ...)
  if not modes.now.call then return ctx._function.backward(ctx, ...) end
  local before = {}
  for k, v in pairs(ctx) do before[k] = v end
  return as_before(ctx, before, pcall(ctx._function.backward, ctx, ...))
end)

options.colon(Context, "ctx", function(self) return getmetatable(self) == Context end)

-- Whether x is marked as changed in place; raises where x can't be.
local function changed(ctx, x)
  for _, d in ipairs(ctx._dirty or {}) do
    if rawequal(d, x) then
      if x.requires_grad and x.is_leaf then fail("Function: mark_dirty: a leaf that requires grad can't be changed in place") end
      if core.is_view(x) then
        fail("Function: mark_dirty: an autograd.Function can't change a view in place: pass it a clone()")
      end
      return true
    end
  end
end

local function context_of(fields) return setmetatable(fields, Context) end
local on_examples
local Function = {}
Function.__index = Function
function Function:__call(...)
  local n = select("#", ...)
  local args, ctx = {...}, context_of {_function = self}
  local trace = modes.now.tracing
  if trace and not self._as_ops then trace.no_backward = true end
  local tensors, needs = {}, false
  ctx.needs_input_grad = {}
  for i = 1, n do
    tensors[i] = core.is_tensor(args[i]) and args[i] or false
    ctx.needs_input_grad[i] = tensors[i] and args[i].requires_grad
    needs = needs or ctx.needs_input_grad[i]
  end
  if needs and core.is_mapping() and core.is_grad_enabled() and mapped.any(tensors) then return on_examples(self, ...) end
  local old = core.set_grad_enabled(false)
  local function taken(ok, ...)
    core.set_grad_enabled(old)
    if not ok then error((select(1, ...)), 0) end
    return {...}, select("#", ...)
  end
  local out, count
  if self.setup_context then
    out, count = taken(pcall(self.forward, ...))
    core.set_grad_enabled(false)
    taken(pcall(self.setup_context, ctx, args, count == 1 and out[1] or out))
  else out, count = taken(pcall(self.forward, ctx, ...)) end
  -- what forward lists in ctx._recalled is kept for backward, as arguments are; tensors that it read besides its arguments, listed in
  -- ctx._operands, are operands too, but aren't kept
  local held = n + #(ctx._recalled or {})
  for k, x in ipairs(ctx._recalled or {}) do tensors[n + k], ctx.needs_input_grad[n + k] = x, false end
  for k, x in ipairs(ctx._operands or {}) do
    tensors[held + k], ctx.needs_input_grad[held + k], needs = x, true, true
  end
  if needs then core.list_read(tensors) end
  if needs and old then
    local results, indifferent = {}, {}
    for i = 1, count do
      results[i] = core.is_tensor(out[i]) and out[i] or false
      for _, x in ipairs(ctx._indifferent or {}) do indifferent[i] = indifferent[i] or rawequal(x, results[i]) end
      for k = 1, n do          -- a returned operand becomes another tensor, with a history of its own
        if results[i] and rawequal(out[i], args[k]) and not changed(ctx, args[k]) then
          out[i] = core.hand_on(out[i])
          results[i] = out[i]
        end
      end
    end
    core.record_function(ctx, tensors, results, held)
    for i, is in pairs(indifferent) do if is then out[i] = M.detach(out[i]) end end
  end
  for _, x in ipairs(ctx._recalled or {}) do M.free(x) end                 -- the tape has them
  ctx._recalled = nil
  return unpack(out, 1, count)
end

-- Of the library's own: _as_ops says that backward gives what the ops in forward would give.
local PARTS = {forward = true, backward = true, setup_context = true}
-- Function{forward = function(ctx, ...), backward = function(ctx, g, ...)}: an op of the user's, which is called as F(x) or F.apply(x).
-- forward runs without recording; backward gets a gradient for each result and returns one, or nil, for each argument of forward. With a
-- third function setup_context(ctx, inputs, output), forward is called without ctx. ctx.needs_input_grad[i]: whether argument i needs a
-- gradient. PyTorch's jvp, vmap and generate_vmap_rule may be there, and aren't called: func.jvp and vmap follow from these two. Within
-- vmap both are called with one example's tensors, which are held by save_for_backward or a field of ctx, and mark_dirty is an error.
function autograd.Function(def)
  if type(def) ~= "table" or type(def.forward) ~= "function" or type(def.backward) ~= "function" then
    fail("Function: a table with functions 'forward' and 'backward' is needed")
  end
  for k, v in pairs(def) do
    if PARTS[k] and type(v) ~= "function" then fail("Function: '" .. k .. "' must be a function, got " .. type(v)) end
  end
  def.apply = function(...)
    if rawequal((...), def) then return def(select(2, ...)) end            -- with a colon
    return def(...)
  end
  return setmetatable(def, Function)
end
on_examples = mapped.calls(autograd.Function, context_of)

-- Gives a gradient on; its own derivative with respect to what it came from is an error.
local Once = autograd.Function {
  forward = function(_, g) return g end,
  backward = function() fail("Function: this backward is marked with once_differentiable, so it can't be differentiated") end}
-- once_differentiable(backward): an autograd.Function's backward that computes without recording, for code that can't be differentiated
-- itself, such as a kernel of the program's own. Gradients of its gradients, with respect to what came to it or was saved by
-- save_for_backward, are an error instead of being silently zero.
function autograd.once_differentiable(backward)
  if not modes.callable(backward) then fail("once_differentiable: argument 1 must be a function, got %s", options.shown(backward)) end
  return function(ctx, ...)
    local grads = options.pack(modes.no_grad(backward, ctx, ...))
    if not core.is_grad_enabled() then return unpack(grads, 1, grads.n) end
    if ctx._unpack then ctx:saved_tensors() end                            -- raises: packed tensors have no history
    local sources = {}                                                     -- what the gradients may depend on
    for _, from in ipairs {{...}, ctx._saved or {}} do
      for _, x in pairs(from) do if core.is_tensor(x) and x.requires_grad then sources[#sources + 1] = x end end
    end
    for i = 1, grads.n do
      if core.is_tensor(grads[i]) and #sources > 0 then grads[i] = Once(grads[i], unpack(sources)) end
    end
    return unpack(grads, 1, grads.n)
  end
end

---- anomalies ----
local function watcher(name, place, grads)
  for i, g in pairs(grads) do
    if M.is_floating_point(g) and M.any(core.ops.isnan(g)):item() then
      error(("backward: %s, called at %s, gave a gradient with NaN for its operand %d"):format(name,
        place and place:match "^(.+): $" or "an unknown place", i), 0)
    end
  end
end
-- true: a gradient that contains NaN is an error, which names the op that made it and the line of the program that called that op. Compiled
-- functions run uncompiled meanwhile. Slow: for debugging. The mode belongs to the running coroutine.
function autograd.set_detect_anomaly(on)
  if type(on) ~= "boolean" then fail("set_detect_anomaly: argument 1 must be a boolean, got " .. type(on)) end
  core.watch(on, watcher)
end
-- Whether set_detect_anomaly(true) is in force here.
function autograd.is_anomaly_enabled() return core.watch() end
-- Calls fn(...) with set_detect_anomaly(true), and gives its results.
function autograd.detect_anomaly(fn, ...)
  options.expect("detect_anomaly", 1, fn, modes.callable(fn), "a function")
  return options.meanwhile(autograd.set_detect_anomaly, true, core.watch(), fn, ...)
end

return options.told(autograd, "autograd", nil, {forward_ad = "use func.jvp"},
  {functional = "tycho.autograd.functional", gradcheck = {"tycho.autograd.gradcheck"}, gradgradcheck = {"tycho.autograd.gradcheck"}})
