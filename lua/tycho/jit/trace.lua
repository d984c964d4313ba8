-- Tracing: runs a model and turns the ops that it called, and the tensors that it needs, into a program (jit/program.lua).
--
-- Idea: a recorded op names its operands by the record's values. Values that no recorded op made come from outside: the model's parameters
-- and buffers, or constants. All are renumbered: inputs, then values from outside, then results in order. jit/sizes.lua finds the sizes
-- that may differ in later calls.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local modes = require "tycho.modes"
local P = require "tycho.jit.program"
local sizes = require "tycho.jit.sizes"
local bounds = require "tycho.jit.bounds"
local ops, program = core.ops, core.program
local allowed, each_value, walk = P.allowed, P.each_value, P.walk

---- what a run did ----
local function record(fn, inputs)
  local p = program.new(true)              -- it will run without fn
  program.begin(p, inputs)
  local notes = {}
  local r = {pcall(modes.during, {tracing = notes}, modes.no_grad, fn, unpack(inputs))}
  local tensors, shape = {}, nil
  if r[1] then
    local function note(x)
      return P.fold(x, function(y)
        tensors[#tensors + 1] = y
        return #tensors
      end, "the model gives")
    end
    local n = table.maxn(r) - 1
    local noted = {pcall(function()
      if n == 1 then return note(r[2]) end
      local list = {}
      for i = 1, n do list[i] = note(r[i + 1]) end
      return {items = list}
    end)}
    if noted[1] then shape = {tree = noted[2], several = n ~= 1} else r = {false, noted[2]} end
  end
  local finished, why = pcall(program.finish, p, r[1], tensors)
  if not r[1] then error(r[2], 0) end
  if not finished then error(why, 0) end
  if program.refused(p) then
    error(("trace: %s: a trace runs the same ops for every input, which can't depend on values"):format(program.why(p)), 0)
  end
  local all, inputs_of, results = program.events(p)
  if not all then error("trace: " .. inputs_of, 0) end
  local events = {}
  for _, e in ipairs(all) do               -- numbers moved to a GPU are constants there
    if e.op ~= "to_device" or not program.constant(p, e.out[1]) then events[#events + 1] = e end
  end
  return {p = p, events = events, inputs = inputs_of, results = results, tree = shape.tree, several = shape.several,
    no_backward = notes.no_backward}
end

local function number_out(x)
  if type(x) == "number" and (x ~= x or x == math.huge or x == -math.huge) then
    return {n = x ~= x and "nan" or x > 0 and "inf" or "-inf"}
  end
  return x
end

---- the tensors ----
-- A model's parameters and buffers: a list of {name, kind, tensor}, one entry for each name.
local function state_of(model)
  local list, known, more = {}, {}, {}
  if type(model) ~= "table" or not model.named_parameters then return list end
  local function put(name, kind, t)
    list[#list + 1] = {name = name, kind = kind, tensor = t}
    known[name] = true
  end
  for name, t in model:named_parameters() do put(name, "parameter", t) end
  for name, t in model:named_buffers() do put(name, "buffer", t) end
  local state, first = model:state_dict(), #list
  for name in pairs(state) do if not known[name] then more[#more + 1] = name end end
  table.sort(more)
  for _, name in ipairs(more) do                         -- second names
    for i = 1, first do
      if program.same(state[name]:detach(), list[i].tensor:detach()) then
        put(name, list[i].kind, list[i].tensor)
        break
      end
    end
  end
  return list
end

-- The values that no recorded op made, in the order of their first use.
local function values_from_outside(a)
  local defined, outside = {}, {}
  local function see(v)
    if not defined[v] then
      defined[v] = true
      outside[#outside + 1] = v
    end
  end
  for _, v in ipairs(a.inputs) do defined[v] = true end
  for _, e in ipairs(a.events) do
    if not allowed[e.op] then fail("trace: %s can't be part of a trace", e.op) end
    each_value(e.args, function(x) see(x.v); return x end)
    for _, v in ipairs(e.out) do defined[v] = true end
  end
  for _, v in ipairs(a.results) do see(v) end
  return outside
end

-- Gives number(v), the program's number of the record's value v, for inputs and values from outside; the last number used; and the tensors
-- by name. Fills p.tensors. reserved(name): whether no part of a tensor's name may be `name`.
local function number_tensors(p, a, state, reserved)
  local number, given, numbers = {}, {}, {}              -- numbers: by name
  for i, v in ipairs(a.inputs) do number[v] = i end
  local function add(name, kind, t)
    if numbers[name] then return end
    p.tensors[#p.tensors + 1] = {name = name, kind = kind}
    numbers[name], given[name] = #a.inputs + #p.tensors, t
  end
  local taken = {}
  for _, s in ipairs(state) do taken[s.name] = true end
  for _, v in ipairs(values_from_outside(a)) do
    local t, name = program.value(a.p, v), nil
    for _, s in ipairs(state) do
      if program.same(t, s.tensor:detach()) then
        name = s.name
        add(name, s.kind, s.tensor)
        break
      end
    end
    if not name then
      local k = #p.tensors + 1
      repeat name, k = "constant." .. k, k + 1 until not taken[name] and not numbers[name]
      add(name, "constant", core.keep(ops.clone(t)))
    end
    number[v] = numbers[name]
  end
  for _, s in ipairs(state) do                           -- unused ones and second names too, for the state dict
    for part in s.name:gmatch("[^.]+") do
      if reserved(part) then fail("trace: a part named '%s' would hide that method of the traced module", part) end
    end
    add(s.name, s.kind, s.tensor)
  end
  return number, #a.inputs + #p.tensors, given
end

-- Turns the record's ops into p's nodes, with the program's numbers.
local function number_nodes(p, a, number, last)
  for _, e in ipairs(a.events) do
    each_value(e.args, function(x) return {v = number[x.v]} end)
    for k, x in pairs(e.args) do e.args[k] = number_out(x) end
    local out = {}
    for i, v in ipairs(e.out) do
      last = last + 1
      number[v], out[i] = last, last
    end
    p.nodes[#p.nodes + 1] = {op = e.op, args = e.args, out = out, inplace = e.inplace or nil}
  end
  p.results = walk(a.tree, function(v) return {v = number[a.results[v]]} end)
end

-- trace(model, reserved, example, ...): a program; its tensors by name; and bound(traced), which adds the bounds of sizes to the program of
-- the module made of both. See jit.trace.
return function(model, reserved, ...)
  if not modes.callable(model) then
    fail("trace: argument 1 must be a module or a function, got " .. options.shown(model))
  end
  local whole, given, n = model, {...}, select("#", ...)
  if n == 1 and type(given[1]) == "table" and getmetatable(given[1]) == nil and given[1][1] ~= nil then        -- a list of the arguments
    given, n = given[1], table.maxn(given[1])
  end
  while n > 0 and given[n] == nil do n = n - 1 end
  if n == 0 then fail("trace: argument 2 must be a tensor, or a list of tensors") end
  local p = {version = P.VERSION, inputs = {}, tensors = {}, nodes = {}}
  local copies, takes = {}, {}
  for i = 1, n do
    local x = given[i]
    if not core.is_tensor(x) then p.takes = takes end
    local ok, t = pcall(P.fold, x, function(y)
      copies[#copies + 1] = ops.clone(y:detach())          -- of memory of their own
      p.inputs[#copies] = {dtype = y.dtype, shape = {unpack(y.shape)}}
      return #copies
    end, ("example %d is or contains"):format(i), true)
    if not ok then fail(options.bare(t)) end
    takes[i] = t
  end
  if #copies == 0 then fail("trace: argument 2 must be a tensor, or a list or table of tensors: there is none among the arguments") end
  -- fn, called with the tensors alone
  local function of_tensors(fn)
    return not p.takes and fn or function(...)
      local flat, args = {...}, {}
      for i, t in ipairs(takes) do args[i] = P.unfold(t, function(v) return flat[v] end) end
      return fn(unpack(args, 1, n))
    end
  end
  model = of_tensors(model)
  local modules = type(whole) == "table" and whole.modules and whole:modules() or {}
  for _, m in ipairs(modules) do
    if m._is_lazy then                                     -- the first run makes its parameters
      modes.no_grad(model, unpack(copies))
      break
    end
  end
  local begin = sizes.restoring(modules)
  local a = record(model, copies)
  p.several, p.no_backward = a.several or nil, a.no_backward
  local state = state_of(whole)
  local attempt = sizes.attempts_of(a, modules, state, begin)
  local variables = sizes.note_free_sizes(p, function(inputs)
    if not inputs then return false end
    return unpack(attempt(function() return record(model, inputs) end, inputs), 1, 2)
  end, copies, a)
  local number, last, tensors = number_tensors(p, a, state, reserved)
  number_nodes(p, a, number, last)
  p.nodes = P.sweep(p.nodes, p.results)
  P.lifetimes(p)
  return p, tensors, function(traced)
    local changed = {}                                   -- constants, which are the trace's own
    for _, v in ipairs((select(4, P.changed(p.nodes)))) do
      local t = p.tensors[v - #p.inputs]
      if t and t.kind == "constant" then changed[#changed + 1] = tensors[t.name] end
    end
    bounds.note_bounds(p, attempt, whole, traced, of_tensors, copies, variables, changed)
  end
end
