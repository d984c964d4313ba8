-- Gradients that come to a compiled function's results from outside: net = tycho.compile(net), and then loss:backward().
--
-- Idea: the function is recorded up to its results, and the tensors that its tape saved for backward become results of the record too. The
-- tape without its tensors, the skeleton (src/core/skeleton.h), says how backward goes. Backward is a program of its own, whose inputs are
-- the saved tensors and the incoming gradients. One tape node, whose operands are the saved tensors and the parameters, joins the two.
-- Invariant: saved tensors are unchanged at backward, which the tape's version checks ensure; gradients are bitwise those of the function's
-- own tape.
local core = require "tycho.core"
local fail = require "tycho.options".fail
local shared = require "tycho.compile.shared"
local ops, M = core.ops, core.methods
local program = core.program
local outside = {}

-- What join() needs of a record that is being made; or nil, and why there can be none (no reason: no result needs a graph). tensors: its
-- results.
function outside.part(fusion, tensors)
  local roots, places = {}, {}
  for i, x in ipairs(tensors) do
    if program.needs_graph(x) then
      roots[#roots + 1] = x
      places[#roots] = i
    end
  end
  if #roots == 0 then return nil end
  local skeleton, parameters, saved = program.skeleton(roots)
  if not skeleton then return nil, "a result still needs its graph: " .. parameters end
  return {fusion = fusion, skeleton = skeleton, results = #tensors, places = places,
    parameters = parameters, saved = saved, passes = {}, kinds = 0}
end

-- Why the part can't be used now that it is recorded, or nil. kept: the function has put a tensor that needs its graph elsewhere.
function outside.refused(part, p, tensors, kept)
  if kept then return "a tensor that the function keeps still needs its graph" end
  for _, i in ipairs(part.places) do
    if program.result_kind(p, i) ~= "own" then return "a result that is a view of an argument or a parameter still needs its graph" end
    for k, x in ipairs(tensors) do
      if k ~= i and not rawequal(x, tensors[i]) and M.shares_memory(x, tensors[i]) then
        return "results that need their graph share memory"
      end
    end
  end
end

---- backward ----
local MOST = 8                                           -- kinds of gradients for which a backward pass is recorded

-- Copies of the gradients at fixed addresses, which a GPU's graph needs.
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
  program.follow(b.program)
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

-- The leaves' gradients; false or nil where there is none. grads: the results' gradients, or false.
local function pass(part, saved, grads)
  if shared.busy() then return program.pass(part.skeleton, saved, grads) end
  local kind = ""
  for _, g in ipairs(grads) do kind = kind .. (g and program.signature(g) or "-") end
  for i, x in ipairs(part.parameters) do if not x.requires_grad then kind = kind .. " " .. i end end            -- frozen: left out
  local b = part.passes[kind]
  if not b then
    if part.kinds == MOST then return program.pass(part.skeleton, saved, grads) end
    b = {seeds = {}, calls = 0}
    part.passes[kind], part.kinds = b, part.kinds + 1
  end
  b.calls = b.calls + 1
  if b.program then program.follow(b.program) end
  grads = seeded(b, grads)
  local inputs = {}
  for _, g in ipairs(grads) do if g then inputs[#inputs + 1] = g end end
  for _, x in ipairs(saved) do inputs[#inputs + 1] = x end
  if not (b.program and program.recorded(b.program) and program.trust(b.program, inputs)) then
    return record(part, b, inputs, saved, grads)
  end
  shared.run(b, b.way)
  local found = {}
  for i, place in pairs(b.places) do found[i] = program.result(b.program, place) end
  return found
end

local Outside = {internal = true}
function Outside.backward(ctx, ...)
  if core.is_grad_enabled() then
    fail("compile: gradients of gradients don't go through a compiled function whose backward is outside: call it uncompiled, or have all \z
      within it")
  end
  local part, grads, gradients = ctx.part, {}, {}
  for k = 1, #part.places do
    local g = select(k, ...)
    grads[k] = g and M.detach(g) or false
  end
  for i, g in pairs(pass(part, ctx._saved, grads)) do gradients[part.saved + i] = g or nil end
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
-- Gives the call's results their history: the node that stands for the function. p: its program, which has run; false: this is the call
-- that was recorded.
function outside.join(part, p, results)
  local tensors, out = shared.tensors_of(results), {}
  for k, i in ipairs(part.places) do out[k] = tensors[i] end
  program.join(part.skeleton, p, part.results + 1, {_function = Outside, _unmade = true, part = part}, part.parameters, out)
end

return outside
