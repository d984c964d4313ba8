-- tycho.jit: a model as data. trace() runs a model once and records its ops; the result is a module that needs none of the model's Lua code
-- and can be saved as one file.
--
-- Idea: a traced program (jit/program.lua) is a list of ops on numbered values. It is interpreted through the same functions that users
-- call, which check their arguments; so a file can only name ops of the table and its own tensors. Invariant: a program that load() has
-- checked can fail only as an op fails: with an error.
local core = require "tycho.core"
local options = require "tycho.options"
local fail, check = options.fail, options.check
local module = require "tycho.nn.module"
local autograd = require "tycho.autograd"
local P = require "tycho.jit.program"
local trace = require "tycho.jit.trace"
local ops, M = core.ops, core.methods
local allowed, is_value, walk, unfold, arguments, lifetimes = P.allowed, P.is_value, P.walk, P.unfold, P.arguments, P.lifetimes
local jit = {}

---- the module ----
local Traced = module.Module:extend("Traced")

-- Dots in a file's tensor names become nested modules, so that state dicts have the model's names.
local function place(root, name, tensor, kind)
  local at = root
  for part in name:gmatch("([^.]+)%.") do
    local parts = rawget(at, "_parts")
    if not parts[part] then module.put(at, "module", part, module.Module:extend("Part")()) end
    at = parts[part]
  end
  local last = name:match("[^.]+$")
  if kind == "parameter" then
    module.Module.register_parameter(at, last, tensor)
  else
    module.Module.register_buffer(at, last, tensor, {persistent = kind == "buffer"})
  end
  return {at, last}
end

-- p: a program (jit/program.lua); tensors: by name.
function Traced:init(p, tensors)
  -- view fails for an input with other strides than the example's; reshape, which copies then, takes its place unless the result is written
  -- to.
  local outside, written, root = P.changed(p.nodes)
  for _, node in ipairs(p.nodes) do node.copies = node.op == "view" and not outside and not written[root(node.out[1])] end
  rawset(self, "_program", p)
  rawset(self, "_variables", {P.variables(p)})
  local places = {}
  for i, t in ipairs(p.tensors) do places[i] = place(self, t.name, tensors[t.name], t.kind) end
  rawset(self, "_places", places)
end

-- The program, and its tensors in the program's order.
local function inside(self)
  local tensors = {}
  for i, spot in ipairs(rawget(self, "_places")) do tensors[i] = rawget(spot[1], "_parts")[spot[2]] end
  return rawget(self, "_program"), tensors
end
Traced._inside = inside

local function free_text(p, i)
  local variable, example = P.variables(p)
  local out = {}
  for d, n in ipairs(p.inputs[i].shape) do
    local at = P.place(i, d)
    local id, own = variable[at], example[at]
    if id then
      local function of(size) return n == own and size or size * n / own end
      local step, text = of(P.step(p, id) or 1), tostring(d)
      if step > 1 then text = ("%s in multiples of %d"):format(text, step) end
      for _, b in ipairs(p.bounds or {}) do
        if b.dim == id then
          if b.least and b.least > (P.step(p, id) or 1) then text = ("%s from %d"):format(text, of(b.least)) end
          if b.most then text = ("%s up to %d"):format(text, of(b.most)) end
        end
      end
      out[#out + 1] = text
    end
  end
  return table.concat(out, ", ")
end

-- The inputs among a call's arguments, in order.
local function inputs_of(p, ...)
  local given, flat, takes, n = {...}, {}, p.takes and #p.takes or #p.inputs, select("#", ...)
  while n > takes and given[n] == nil do n = n - 1 end               -- omitted optional arguments
  if n ~= takes then fail("Traced: takes %d argument%s, got %d", takes, takes == 1 and "" or "s", n) end
  for i, t in ipairs(p.takes or {}) do
    local wrong = P.match(given[i], t, function(v, x) flat[v] = x end)
    if wrong then fail("Traced: argument %d %s", i, wrong) end
  end
  return p.takes and flat or given
end

-- What errors call an input.
local function shown_input(p, i) return ("%s %d"):format(p.takes and "tensor" or "argument", i) end

-- Input i's shape for the sizes of the free dims that come before, in sizes, by their places; those that begin in x are added.
local function shape_for(self, p, i, x, sizes)
  local variable, example = unpack(rawget(self, "_variables"))
  local shape = {}
  for d, mine in ipairs(p.inputs[i].shape) do
    local at = P.place(i, d)
    local id, own = variable[at], example[at]            -- own: the size of the dim that this one follows, where its own is mine
    if id and not sizes[id] then
      local size = own == mine and x.shape[d] or x.shape[d] * own / mine
      if size % (P.step(p, id) or 1) == 0 then sizes[id] = size end
    end
    local follows = id and sizes[id]
    shape[d] = not follows and mine or own == mine and follows or follows * mine / own
  end
  return shape
end

local function same_shape(a, b)
  for d, n in ipairs(a) do if b[d] ~= n then return false end end
  return true
end

-- Checks the inputs; gives the sizes of the free dims, by their places.
local function sizes_of_call(self, p, given)
  local sizes = {}
  for i, want in ipairs(p.inputs) do
    local x = given[i]
    if not core.is_tensor(x) then fail("Traced: argument %d must be a tensor, got %s", i, type(x)) end
    local same_dims = M.dim(x) == #want.shape
    local shape = same_dims and shape_for(self, p, i, x, sizes) or {}
    if not same_dims or not same_shape(x.shape, shape) then
      local made, needed, dims = #want.shape > 0 and table.concat(want.shape, "x") or "()", table.concat(shape, "x"), free_text(p, i)
      if i > 1 and needed ~= "" and needed ~= made then
        fail("Traced: %s has shape %s; to match those before it, it must be %s", shown_input(p, i), tostring(x.shape), needed)
      end
      fail("Traced: %s has shape %s; the trace was made for %s%s", shown_input(p, i), tostring(x.shape), made,
        dims ~= "" and (" (dim %s may differ, but equally in all)"):format(dims) or "")
    end
    if M.is_floating_point(x) ~= (want.dtype:find("float") ~= nil) or (x.dtype == "bool") ~= (want.dtype == "bool") then
      fail("Traced: %s is %s; the trace was made for %s", shown_input(p, i), x.dtype, want.dtype)
    end
    if p.one_dtype and x.dtype ~= want.dtype and M.is_floating_point(x) then
      fail("Traced: %s is %s; the trace was made for %s: with other dtypes the model does other than what was traced", shown_input(p, i),
        x.dtype, want.dtype)
    end
    if p.one_layout and not M.is_contiguous(x) then
      fail("Traced: %s isn't contiguous; with other layouts the model does other than what was traced: give it contiguous()",
        shown_input(p, i))
    end
  end
  for _, b in ipairs(p.bounds or {}) do
    local size, i, d = sizes[b.dim], P.input_and_dim(b.dim > 0 and b.dim or P.batch_dim(p, 1))
    if size < (b.least or size) or size > (b.most or size) then
      fail("Traced: %s has shape %s; dim %d must be %s: with other sizes the model does other than what was traced", shown_input(p, i),
        tostring(given[i].shape), d, b.least and b.most and ("from %d to %d"):format(b.least, b.most)
        or b.least and ("at least %d"):format(b.least) or ("at most %d"):format(b.most))
    end
  end
  return sizes
end

-- Runs the nodes on the values of inputs and tensors. counts: the free dims' sizes in steps.
local function run(p, value, counts, device)
  for _, node in ipairs(p.nodes) do
    local args = arguments(node.args, value, counts, device)
    if node.inplace then
      local first = allowed[node.op].params[1]
      local x = args[first]
      args[first] = nil
      ops[node.op .. "_"](x, args)
    else
      local r = {(node.copies and M.reshape or ops[node.op])(args)}
      for i, v in ipairs(node.out) do value[v] = r[i] end
    end
    for _, v in ipairs(node.last or {}) do value[v] = nil end        -- frees memory that is no longer needed
  end
end

local no_backward = autograd.Function {forward = function(_, x) return x end, backward = function()
  fail "Traced: backward: the model has an autograd.Function, whose backward is not part of a trace: train the model, then trace it"
end}

function Traced:forward(...)
  local p, tensors = inside(self)
  local given = inputs_of(p, ...)
  local sizes, value, constants = sizes_of_call(self, p, given), {}, {}
  for i in ipairs(p.inputs) do value[i] = p.contiguous and M.contiguous(given[i]) or given[i] end
  for i, t in ipairs(tensors) do
    value[#value + 1] = t
    if p.tensors[i].kind == "constant" then constants[#constants + 1] = t end
  end
  for id, size in pairs(sizes) do sizes[id] = size / (P.step(p, id) or 1) end
  run(p, value, sizes, given[1] and given[1].device)
  if p.no_backward then walk(p.results, function(v) value[v] = no_backward(value[v]) end) end
  local out = unfold(p.results, function(v)              -- a caller may change a result, so it must not share a constant's memory
    for _, c in ipairs(constants) do if M.shares_memory(value[v], c) then return ops.clone(value[v]) end end
    return value[v]
  end)
  if p.several then return unpack(out) end
  return out
end

local function argument_text(a, p)
  if is_value(a) then return "%" .. a.v end
  if type(a) ~= "table" then return tostring(a) end
  if a.n then return a.n end
  local out = {}
  if a.of then
    for k, of in ipairs(a.of) do
      local step, i, d = P.step(p, of) or 1, P.input_and_dim(of)
      out[k] = of == 0 and "batch" or (i > 1 and "%" .. i .. "." or "") .. "dim" .. d .. (step > 1 and "/" .. step or "")
    end
    return table.concat(out, "*") .. (a.size ~= 1 and "*" .. a.size or "") .. (a.more and "+" .. argument_text(a.more, p) or "") ..
      (a.plus and ("%+d"):format(a.plus) or "")
  end
  for i, b in ipairs(a) do out[i] = argument_text(b, p) end
  return "{" .. table.concat(out, ", ") .. "}"
end

-- The program as text, a line for each value.
function Traced:graph()
  local p, lines = inside(self), {}
  for i, x in ipairs(p.inputs) do
    lines[#lines + 1] = ("%%%d = input %s %s%s"):format(i, x.dtype, table.concat(x.shape, "x"),
      free_text(p, i) ~= "" and (" (any dim %s)"):format(free_text(p, i)) or "")
  end
  for i, t in ipairs(p.tensors) do lines[#lines + 1] = ("%%%d = %s %s"):format(#p.inputs + i, t.kind, t.name) end
  for _, node in ipairs(p.nodes) do
    local names, args = {}, {}
    for name in pairs(node.args) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do args[#args + 1] = name .. "=" .. argument_text(node.args[name], p) end
    local out = {}
    for i, v in ipairs(node.out) do out[i] = "%" .. v end
    lines[#lines + 1] = ("%s%s%s(%s)"):format(table.concat(out, ", "), #out > 0 and " = " or "",
      node.op .. (node.inplace and "_" or ""), table.concat(args, ", "))
  end
  local results = {}
  walk(p.results, function(v) results[#results + 1] = "%" .. v end)
  table.sort(results)
  return table.concat(lines, "\n") .. "\nreturn " .. table.concat(results, ", ")
end

---- tracing ----
-- trace(model, example, ...): a module that does the same ops as the model, a module or a function, without its Lua source. The model runs
-- with the examples, tensors or tables of them, without gradients, in its present mode. Later calls may have another batch size where the
-- model does the same ops for two batch sizes; the batch is dim 1 or 2 of the first example, and at most one dim of each other. Other dims
-- (a sequence's length, a picture's height and width) may differ too, where the model does the same ops for several sizes, or for all
-- multiples of a number, with numbers that stay the same or are multiples of sizes. Dims of one size in the examples may have to stay
-- equal: give examples whose sizes are equal only where they must be. Sizes from 0 to 1000 are tried, each as far as that is expected to
-- take less than a tenth of a second: where the model gives other results than the trace, the trace refuses them. Arguments may be nil,
-- booleans, numbers and strings: then a call must have the same ones.
-- A model whose course depends on values is an error. The trace has the ops' own gradients: detach() and no_grad within the model
-- and gradients that an embedding's padding_idx alters are not part of it, and a backward through a trace whose model has an
-- autograd.Function (scale_grad_by_freq is one) is an error: train the model first, then trace it. dtypes that a model asks for, as by
-- x:to(y.dtype), are fixed: trace it in the one that it will run in; where a trial shows such a model, its trace refuses other dtypes.
function jit.trace(model, ...)
  model = module.behind(model)
  local p, tensors, bound = trace(model, function(name) return Traced[name] ~= nil end, ...)
  local traced = Traced(p, tensors)
  bound(traced)
  traced:train(type(model) == "table" and model.training ~= false)
  return traced
end

---- files ----
-- Writes one safetensors file: the tensors under their names, and the program as JSON in the metadata.
function Traced:save(path, more)
  options.no_more("save", more)
  if type(path) ~= "string" then fail("save: argument 1 (path) must be a string, got " .. type(path)) end
  local p, tensors = inside(self)
  local entries, names, data, nodes, first_of = {}, {}, {}, {}, {}
  for i, t in ipairs(p.tensors) do
    local first = first_of[core.address(tensors[i])] or i
    first_of[core.address(tensors[i])] = first
    entries[i] = {name = t.name, kind = t.kind, same = first < i and p.tensors[first].name or nil}      -- one parameter with two names
    if first == i then names[#names + 1], data[#data + 1] = t.name, M.contiguous(M.cpu(tensors[i]:detach())) end
  end
  for i, node in ipairs(p.nodes) do nodes[i] = {op = node.op, args = node.args, out = node.out, inplace = node.inplace} end
  local q = P.said_of(p)
  q.version, q.inputs, q.tensors, q.nodes, q.results = P.version(p), p.inputs, entries, nodes, p.results
  core.write_safetensors(path, names, data, core.json_encode {tycho_program = q})
end

local RENAMED = {adaptive_avg_pool2d = "adaptive_avg_pool2d_windows"}        -- ops by their names in older files

-- load(path, {device=}): the module that save() wrote. The whole file is checked before it is used.
function jit.load(path, o)
  if type(path) ~= "string" then fail("load: argument 1 (path) must be a string, got " .. type(path)) end
  if type(o) == "string" then o = {device = o} end
  check("load", o or {}, {device = true, map_location = true})
  local tensors, json = core.read_safetensors(path)
  local ok, traced = pcall(function()
    local p = json and core.json_decode(json)
    p = type(p) == "table" and p.tycho_program
    if type(p) ~= "table" then error("it holds no traced program", 0) end
    for _, node in ipairs(type(p.nodes) == "table" and p.nodes or {}) do
      if type(node) == "table" and RENAMED[node.op] then node.op = RENAMED[node.op] end
      local args = type(node) == "table" and node.args
      if type(args) == "table" and args.divisor_override == 0 then args.divisor_override = nil end        -- no divisor in older files
    end
    P.validate(p, tensors, function(name) return Traced[name] ~= nil end)
    lifetimes(p)
    for _, t in ipairs(p.tensors) do
      if t.same then tensors[t.name] = tensors[t.same]
      elseif t.kind == "parameter" then tensors[t.name] = module.Parameter(tensors[t.name]) end
    end
    return Traced(p, tensors)
  end)
  if not ok then fail("load: %s: %s", path, tostring(traced)) end
  traced:eval()
  local device = o and (o.device or o.map_location) or core.gpu.default_device()
  return device ~= "cpu" and traced:to(device) or traced
end

jit.freeze = require "tycho.jit.freeze"(Traced)
return require("tycho.options").told(jit, "jit", nil, {script = "use trace(model, example), which records what the model does",
  save = "use traced:save(path)"})
