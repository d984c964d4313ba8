-- Gradients of a compiled function's results that come from outside: net = tycho.compile(net), and then loss:backward().
--
-- Idea: the function is recorded up to its results, and what its tape has saved for backward becomes results of the record too. The tape,
-- emptied (src/core/skeleton.h), says how backward goes; that is a program of its own, of the saved tensors and of the gradients that
-- come. Between the two is one node of the tape, whose operands are the saved tensors, the arguments that need a gradient and the
-- parameters. Invariant: what is saved is as it was, which the tape's own versions see to; gradients are the ones that the function's own
-- tape would have given, to the bit. A pass whose gradients are to have gradients runs the function again, uncompiled.
local core = require "tycho.core"
local modes = require "tycho.modes"
local fail = require "tycho.options".fail
local recompute = require "tycho.recompute"
local shared = require "tycho.compile_shared"
local ops, M = core.ops, core.methods
local program = core.program
local outside = {}

-- Of a record that is being made of fn: what join() needs; or nil, and why there can be none (nil: no result needs it). tensors: its
-- results; leaves: what stands for the arguments that need a gradient.
function outside.part(fn, fusion, tensors, leaves)
  local roots, places, place = {}, {}, {}
  for i, x in ipairs(tensors) do
    if program.needs_graph(x) then
      roots[#roots + 1] = x
      places[#roots], place[i] = i, #roots
    end
  end
  if #roots == 0 then return nil end
  local skeleton, parameters, saved = program.skeleton(roots, leaves)
  if not skeleton then return nil, "a result still needs its graph: " .. parameters end
  return {fn = fn, fusion = fusion, skeleton = skeleton, results = #tensors, places = places, place = place,
    parameters = parameters, leaves = #leaves + #parameters, saved = saved, autocasts = modes.autocast(), passes = {}, kinds = 0}
end

-- Why the part can't be used now that it is recorded, or nil. kept: the function has put a tensor elsewhere that needs its graph.
function outside.refused(part, p, kept)
  if kept then return "a tensor that the function keeps still needs its graph" end
  for _, i in ipairs(part.places) do
    if program.result_kind(p, i) ~= "own" then return "a result that is a view of an argument or a parameter still needs its graph" end
  end
  part.draws = program.draws(p)
end

---- backward ----
local MOST = 8                                           -- kinds of gradients for which a pass is recorded

-- The gradients where a program reads them: a GPU's graph keeps addresses.
local function seeded(b, grads)
  local out = {}
  for k, g in ipairs(grads) do
    out[k] = g
    if g and g.device ~= "cpu" then
      if b.seeds[k] then M.copy_(b.seeds[k], g) else b.seeds[k] = core.keep(ops.clone(g)) end
      out[k] = b.seeds[k]
    end
  end
  return out
end

local function record(part, b, inputs, saved, grads)
  b.program, b.way, b.static, b.places = program.new(true, part.fusion, 1), {}, {}, {}
  program.begin(b.program, inputs)
  local ok, found = pcall(program.pass, part.skeleton, saved, grads)
  local tensors = {}
  for i, g in ipairs(ok and found or {}) do
    if g then
      tensors[#tensors + 1] = g
      b.places[i] = #tensors
    end
  end
  program.finish(b.program, ok, tensors)
  if not ok then error(found, 0) end
  if program.recorded(b.program) then
    shared.debug_print("recorded: backward of %d steps", #program.steps(b.program))
    shared.print_kernels(program.kernels(b.program))
  end
  return found
end

-- The leaves' gradients, false or nil where there is none. grads: the results', or false.
local function pass(part, saved, grads)
  if shared.busy() then return program.pass(part.skeleton, saved, grads) end
  local kind = ""
  for _, g in ipairs(grads) do kind = kind .. (g and program.signature(g, true) or "-") end
  local b = part.passes[kind]
  if not b then
    if part.kinds == MOST then return program.pass(part.skeleton, saved, grads) end
    b = {seeds = {}, calls = 0}
    part.passes[kind], part.kinds = b, part.kinds + 1
  end
  b.calls = b.calls + 1
  grads = seeded(b, grads)
  local inputs = {}
  for _, g in ipairs(grads) do if g then inputs[#inputs + 1] = M.detach(g) end end
  for _, x in ipairs(saved) do inputs[#inputs + 1] = x end
  if not (b.program and program.recorded(b.program) and program.trust(b.program, inputs)) then
    return record(part, b, inputs, saved, grads)
  end
  shared.run(b, b.way)
  local found = {}
  for i, place in pairs(b.places) do found[i] = program.result(b.program, place) end
  return found
end

-- The same, with a graph of their own: of the function itself, called again with what it had.
local function with_graph(part, call, grads)
  if part.draws and not call.states then                 -- another way before it didn't draw
    fail("compile: this call's random numbers are gone: its gradients can't have gradients; the next call's can")
  end
  local out = recompute.again(call.states or {}, part.autocasts, part.fn, unpack(call.args, 1, call.args.n))
  local tensors, roots, given = shared.tensors_of(out), {}, {}
  for k, i in ipairs(part.places) do
    if grads[k] then roots[#roots + 1], given[#given + 1] = tensors[i], grads[k] end
  end
  return core.backward(roots, given, call.operands, true, true, false, true)
end

local Outside = {internal = true}
function Outside.backward(ctx, ...)
  local part, grads, gradients = ctx.part, {}, {}
  for k = 1, #part.places do grads[k] = (select(k, ...)) or false end
  local found
  if core.is_grad_enabled() then found = with_graph(part, ctx._operands, grads)
  else found = pass(part, ctx._saved, grads) end
  for i, g in pairs(found) do gradients[part.saved + i] = g or nil end
  return gradients
end

-- The recorded passes, for Compiled:report().
function outside.report(part)
  local out = {}
  for _, b in pairs(part.passes) do
    if b.program and program.recorded(b.program) then
      out[#out + 1] = {calls = b.calls, steps = program.steps(b.program), kernels = program.kernels(b.program), nodes = b.way.nodes}
    end
  end
  return out
end

---- forward ----
-- What has to be noted before a call of fn so that with_graph() can call it again as it was. draws: nil, not known.
function outside.begun(draws, args)
  return {states = draws ~= false and recompute.generators(false, unpack(args, 1, args.n)) or nil, args = args}
end

-- The call's results get their history: of the node that stands for the function. p: its program, which has run; or false: the call was
-- the one that has been recorded.
function outside.join(part, p, call, results)
  local args, operands, out, n = call.args, part.parameters, {}, 0
  if part.leaves > #operands then
    operands = {}
    for i = 1, args.n do
      if core.is_tensor(args[i]) and args[i].requires_grad then operands[#operands + 1] = args[i] end
    end
    for _, x in ipairs(part.parameters) do operands[#operands + 1] = x end
  end
  call.operands = operands
  shared.each_tensor(results, function(x)
    n = n + 1
    if part.place[n] then out[part.place[n]] = x end
    return x
  end)
  program.join(part.skeleton, p, part.results + 1, {_function = Outside, _unmade = true, _operands = call, part = part}, operands, out)
end

return outside
