-- tycho.jit: a model as data. trace() runs it once and notes the ops; what results is a module that needs none of the
-- model's Lua, and one file.
--
-- Idea: a traced program (jit_program.lua) is a list of ops in terms of values. It is interpreted through the same
-- functions that users call, which check their arguments; so a file can name ops of the table and tensors of its own,
-- and nothing else. Invariant: what load() has checked can fail only as an op fails: with an error.
local core = require "tycho.core"
local fail = require("tycho.options").fail
local module = require "tycho.nn.module"
local check = require("tycho.options").check
local modes = require "tycho.modes"
local P = require "tycho.jit_program"
local ops, M, program = core.ops, core.methods, core.program
local allowed, is_value, each_value, walk, unfold, arguments, sweep, lifetimes = P.allowed, P.is_value,
  P.each_value, P.walk, P.unfold, P.arguments, P.sweep, P.lifetimes
local jit = {}

---- the module ----
local Traced = module.Module:extend("Traced")

-- A file's names have dots: modules within modules, so that state dicts have the model's names.
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

-- p: a program (jit_program.lua); tensors: by name.
function Traced:init(p, tensors)
  rawset(self, "_program", p)
  local places = {}
  for i, t in ipairs(p.tensors) do places[i] = place(self, t.name, tensors[t.name], t.kind) end
  rawset(self, "_places", places)
end

-- The program, and its tensors in their order.
local function inside(self)
  local tensors = {}
  for i, spot in ipairs(rawget(self, "_places")) do tensors[i] = rawget(spot[1], "_parts")[spot[2]] end
  return rawget(self, "_program"), tensors
end
Traced._inside = inside

-- Whether input i's dim d may have another size: then all that had the first one's there have the same one.
local function is_free(p, i, d)
  for _, free in ipairs(p.free or {}) do if free == d then return p.inputs[i].shape[d] == p.inputs[1].shape[d] end end
  return false
end
local function free_text(p, i)
  local out = {p.batch and "1"}
  for d = 1, #p.inputs[i].shape do if is_free(p, i, d) then out[#out + 1] = tostring(d) end end
  return table.concat(out, ", ")
end

function Traced:forward(...)
  local p, tensors = inside(self)
  local value, given, batch = {}, {...}, nil
  if select("#", ...) ~= #p.inputs then fail("Traced: %d arguments, the trace has %d inputs", select("#", ...), #p.inputs) end
  for i, want in ipairs(p.inputs) do
    local x = given[i]
    if not core.is_tensor(x) then fail("Traced: argument %d must be a tensor, got %s", i, type(x)) end
    local fits = M.dim(x) == #want.shape
    batch = batch or (fits and p.batch and x.shape[1]) or nil
    for d = 1, fits and #want.shape or 0 do
      local size = is_free(p, i, d) and M.dim(given[1]) >= d and given[1].shape[d]
      fits = fits and x.shape[d] == (size or d == 1 and batch or want.shape[d])
    end
    if not fits then
      local dims = free_text(p, i)
      fail("Traced: argument %d has shape %s; the trace was made for %s%s", i, tostring(x.shape),
        table.concat(want.shape, "x"), dims ~= "" and (" (dim %s may differ, in all alike)"):format(dims) or "")
    end
    if M.is_floating_point(x) ~= (want.dtype:find("float") ~= nil) then
      fail("Traced: argument %d is %s; the trace was made for %s", i, x.dtype, want.dtype)
    end
    value[i] = x
  end
  local constants = {}
  for i, t in ipairs(tensors) do
    value[#value + 1] = t
    if p.tensors[i].kind == "constant" then constants[#constants + 1] = t end
  end
  local device = given[1] and given[1].device
  for _, node in ipairs(p.nodes) do
    local args = arguments(node.args, value, batch, device)
    if node.inplace then
      local first = allowed[node.op].params[1]
      local x = args[first]
      args[first] = nil
      ops[node.op .. "_"](x, args)
    else
      local r = {ops[node.op](args)}
      for i, v in ipairs(node.out) do value[v] = r[i] end
    end
    for _, v in ipairs(node.last or {}) do value[v] = nil end        -- so that memory goes when it is no longer needed
  end
  local out = unfold(p.results, function(v)              -- what the caller may change is no constant of ours
    for _, c in ipairs(constants) do if M.shares_memory(value[v], c) then return ops.clone(value[v]) end end
    return value[v]
  end)
  if p.several then return unpack(out) end
  return out
end

local function argument_text(a)
  if is_value(a) then return "%" .. a.v end
  if type(a) ~= "table" then return tostring(a) end
  if a.n then return a.n end
  local out = {}
  for i, b in ipairs(a) do out[i] = is_value(b) and "%" .. b.v or type(b) == "table" and ("batch*%d"):format(b.batch) or tostring(b) end
  return "{" .. table.concat(out, ", ") .. "}"
end

-- The program as text: one line a value.
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
    for _, name in ipairs(names) do args[#args + 1] = name .. "=" .. argument_text(node.args[name]) end
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
local function record(fn, inputs)
  local p = program.new()
  program.begin(p, false, inputs)
  local r = {pcall(modes.no_grad, fn, unpack(inputs))}
  local tensors, shape = {}, nil
  if r[1] then
    local function note(x, path, depth)
      if core.is_tensor(x) then
        tensors[#tensors + 1] = x
        return {v = #tensors}
      end
      if type(x) ~= "table" or getmetatable(x) ~= nil or depth > 50 then
        error("trace: the model gives a " .. type(x) .. (path ~= "" and " at " .. path or "") ..
          "; tensors, and tables of tensors, can be traced", 0)
      end
      local keys, out, n = {}, {items = {}}, 0
      for k in pairs(x) do
        n = n + 1
        if type(k) == "string" then keys[#keys + 1] = k end
      end
      table.sort(keys)
      if n > 0 and #keys == n then out.keys = keys
      elseif n ~= #x or #keys > 0 then
        error("trace: the model gives a table" .. (path ~= "" and " at " .. path or "") ..
          " that is neither a list nor all names", 0)
      end
      for i = 1, n do out.items[i] = note(x[out.keys and keys[i] or i], path .. "." .. (out.keys and keys[i] or i), depth + 1) end
      return out
    end
    local n = table.maxn(r) - 1
    local noted = {pcall(function()
      if n == 1 then return note(r[2], "", 0) end
      local list = {}
      for i = 1, n do list[i] = note(r[i + 1], "", 0) end
      return {items = list}
    end)}
    if noted[1] then shape = {tree = noted[2], several = n ~= 1} else r = {false, noted[2]} end
  end
  local finished, why = pcall(program.finish, p, r[1], tensors)
  if not r[1] then error(r[2], 0) end
  if not finished then error(why, 0) end
  if program.dead(p) then
    error(("trace: %s: a trace does the same ops for every input, and can't follow what depends on values"):format(program.why(p)), 0)
  end
  local events, inputs_of, results = program.events(p)
  if not events then error("trace: " .. inputs_of, 0) end
  return {p = p, events = events, inputs = inputs_of, results = results, tree = shape.tree, several = shape.several}
end

local function number_out(x)
  if type(x) == "number" and (x ~= x or x == math.huge or x == -math.huge) then
    return {n = x ~= x and "nan" or x > 0 and "inf" or "-inf"}
  end
  return x
end

-- Sizes that grew with the batch become {batch = k}. False: the second run did something else.
local function generalise(a, b, n, m)
  if #a.events ~= #b.events or a.several ~= b.several then return false end
  local grown, pair = {}, {}                             -- pair: a's values to b's
  for i, v in ipairs(a.inputs) do pair[v] = b.inputs[i] end
  local function same_value(x, y)
    if pair[x] == nil then                               -- from outside: the same tensor, or one of the same numbers
      local s, t = program.value(a.p, x), program.value(b.p, y)
      if not program.same(s, t) and (s.dtype ~= t.dtype or s.shape ~= t.shape or not M.equal(s, t)) then return false end
      pair[x] = y
    end
    return pair[x] == y
  end
  local function same_item(x, y, list, k)
    if type(x) ~= type(y) then return false end
    if type(x) == "table" then return is_value(x) and is_value(y) and same_value(x.v, y.v) end
    if x == y or (x ~= x and y ~= y) then return true end
    if type(x) ~= "number" or not list or x % n ~= 0 or y ~= x / n * m then return false end
    grown[#grown + 1] = {list, k, {batch = x / n}}
    return true
  end
  for i, e in ipairs(a.events) do
    local f = b.events[i]
    if e.op ~= f.op or (e.inplace or false) ~= (f.inplace or false) then return false end
    for name in pairs(f.args) do if e.args[name] == nil then return false end end
    for name, x in pairs(e.args) do
      local y = f.args[name]
      if type(x) == "table" and not is_value(x) then
        if type(y) ~= "table" or #x ~= #y then return false end
        for k = 1, #x do if not same_item(x[k], y[k], x, k) then return false end end
      elseif not same_item(x, y) then return false end
    end
    for k, v in ipairs(e.out) do pair[v] = f.out[k] end
  end
  local function same_tree(x, y)
    if is_value(x) or is_value(y) then return is_value(x) and is_value(y) and same_value(a.results[x.v], b.results[y.v]) end
    if #x.items ~= #y.items or (x.keys == nil) ~= (y.keys == nil) then return false end
    for k = 1, #x.items do if (x.keys and x.keys[k] ~= y.keys[k]) or not same_tree(x.items[k], y.items[k]) then return false end end
    return true
  end
  if not same_tree(a.tree, b.tree) then return false end
  for _, g in ipairs(grown) do g[1][g[2]] = g[3] end
  return true
end

-- x with size elements along d: its own, over and over
local function resized(x, d, size)
  local at = ops.remainder(ops.range(0, size - 1, 1, {dtype = "int64", device = x.device}), x.shape[d]) + 1
  return ops.index(x, {at}, d)
end
-- A trial with other sizes, which may fail: on a GPU later than the call that is at fault, so it is waited for.
local function tried(model, inputs)
  local ok, r = pcall(record, model, inputs)
  for _, x in ipairs(inputs) do
    if x.device ~= "cpu" then ok = pcall(core.gpu.synchronize, x.device) and ok end
  end
  return ok, r
end

-- The dims whose size no number in the model follows: with a larger and a smaller one, odd or even as it wasn't, and with all of them
-- changed at once, the model does the very same ops, of the same numbers. In all inputs where the size is the first one's.
local function free_dims(model, copies, a)
  local first = copies[1].shape
  local function same(sizes)
    local other = {}
    for i, x in ipairs(copies) do
      for d, size in pairs(sizes) do if M.dim(x) >= d and x.shape[d] == first[d] then x = resized(x, d, size) end end
      other[i] = x
    end
    local ok, b = tried(model, other)
    return ok and generalise(a, b, math.huge, math.huge)
  end
  local free, at_once = {}, {}
  for d = 1, #first do
    local n = first[d]
    local less = math.max(math.floor(n / 2) + (math.floor(n / 2) % 2 == n % 2 and 1 or 0), 1)
    if n > 0 and same({[d] = 2 * n + 1}) and (less == n or same({[d] = less})) then
      free[#free + 1] = d
      at_once[d] = (#free + 1) * n + 1
    end
  end
  return (#free == 1 or #free > 1 and same(at_once)) and free or nil
end

-- trace(model, example, ...): example: a tensor, or several, or a list of them. The model (a module, or a function) runs with them,
-- without gradients, in the mode it is in. Returns a module that does the same ops. Dim 1 of the inputs may differ in later calls where the
-- model does the same for two sizes of it, and so may other dims where it does the very same for several sizes (a picture's height and
-- width where all is convolution and pooling, a sequence's length): the model runs with each of them. Errors where the model's course
-- depends on values. The trace has the ops' own gradients: detach() within the model, and the backward of an autograd.Function, are not
-- part of it.
function jit.trace(model, ...)
  model = module.behind(model)
  if not modes.callable(model) then
    fail("trace: argument 1 must be a module or a function, got " .. (core.is_tensor(model) and "tensor" or type(model)))
  end
  local inputs = select("#", ...) == 1 and type((...)) == "table" and not core.is_tensor((...)) and (...) or {...}
  if #inputs == 0 then fail("trace: argument 2 must be a tensor, or a list of tensors") end
  local copies = {}
  for i, x in ipairs(inputs) do
    if not core.is_tensor(x) then fail("trace: argument %d must be a tensor, got %s", i + 1, type(x)) end
    copies[i] = ops.clone(x:detach())                    -- of memory of their own
  end
  local a = record(model, copies)
  local p = {version = P.VERSION, inputs = {}, tensors = {}, nodes = {}, several = a.several or nil}
  local n, mutates = M.dim(copies[1]) > 0 and copies[1].shape[1] or 0, P.changed(a.events)
  for _, x in ipairs(copies) do if M.dim(x) == 0 or x.shape[1] ~= n then n = 0 end end
  if not mutates then p.free = free_dims(model, copies, a) end
  if n > 0 and not mutates then
    local twice = {}
    for i, x in ipairs(copies) do twice[i] = resized(x, 1, 2 * n) end
    local ok, b = tried(model, twice)
    if ok and generalise(a, b, n, 2 * n) then p.batch = true end
    if p.batch and p.free and p.free[1] == 1 then p.free = #p.free > 1 and {unpack(p.free, 2)} or nil end
  end

  local number, tensors, names, kinds, next_value = {}, {}, {}, {}, #copies
  for i, v in ipairs(a.inputs) do
    number[v] = i
    p.inputs[i] = {dtype = copies[i].dtype, shape = {unpack(copies[i].shape)}}
  end
  if type(model) == "table" and model.named_parameters then
    for name, t in model:named_parameters() do names[#names + 1], kinds[#kinds + 1], tensors[#tensors + 1] = name, "parameter", t end
    for name, t in model:named_buffers() do names[#names + 1], kinds[#kinds + 1], tensors[#tensors + 1] = name, "buffer", t end
    local known, more, state = {}, {}, model:state_dict()
    for _, name in ipairs(names) do known[name] = true end
    for name in pairs(state) do if not known[name] then more[#more + 1] = name end end
    table.sort(more)
    for _, name in ipairs(more) do                       -- second names
      for i = 1, #tensors do
        if program.same(state[name]:detach(), tensors[i]:detach()) then
          names[#names + 1], kinds[#kinds + 1], tensors[#tensors + 1] = name, kinds[i], tensors[i]
          break
        end
      end
    end
  end
  -- values from outside, in the order of their first use
  local defined, outside = {}, {}
  for _, v in ipairs(a.inputs) do defined[v] = true end
  local function see(v)
    if not defined[v] then
      defined[v] = true
      outside[#outside + 1] = v
    end
  end
  for _, e in ipairs(a.events) do
    if not allowed[e.op] then fail("trace: %s can't be part of a trace", e.op) end
    each_value(e.args, function(x) see(x.v); return x end)
    for _, v in ipairs(e.out) do defined[v] = true end
  end
  for _, v in ipairs(a.results) do see(v) end
  local found = {}
  for _, v in ipairs(outside) do
    local t = program.value(a.p, v)
    local name, kind, given
    for i, q in ipairs(tensors) do
      if not name and program.same(t, q:detach()) then name, kind, given = names[i], kinds[i], q end
    end
    if not name then name, kind, given = "constant." .. (#p.tensors + 1), "constant", core.keep(ops.clone(t)) end
    if not found[name] then
      next_value = next_value + 1
      p.tensors[#p.tensors + 1] = {name = name, kind = kind}
      found[name] = {next_value, given}
    end
    number[v] = found[name][1]
  end
  for i, name in ipairs(names) do                        -- those that aren't used, or have a second name, for the state dict
    for part in name:gmatch("[^.]+") do
      if Traced[part] ~= nil then fail("trace: a part named '%s' would hide that method of the traced module", part) end
    end
    if not found[name] then
      next_value = next_value + 1
      p.tensors[#p.tensors + 1] = {name = name, kind = kinds[i]}
      found[name] = {next_value, tensors[i]}
    end
  end
  for _, e in ipairs(a.events) do
    each_value(e.args, function(x) return {v = number[x.v]} end)
    for k, x in pairs(e.args) do e.args[k] = number_out(x) end
    local out = {}
    for i, v in ipairs(e.out) do
      next_value = next_value + 1
      number[v], out[i] = next_value, next_value
    end
    p.nodes[#p.nodes + 1] = {op = e.op, args = e.args, out = out, inplace = e.inplace or nil}
  end
  p.results = walk(a.tree, function(v) return {v = number[a.results[v]]} end)
  p.nodes = sweep(p.nodes, p.results)
  lifetimes(p)
  local given = {}
  for name, f in pairs(found) do given[name] = f[2] end
  local traced = Traced(p, given)
  traced:train(type(model) == "table" and model.training ~= false)
  return traced
end

---- files ----
-- One safetensors file: the tensors under their names, the program as JSON in the metadata.
function Traced:save(path)
  if type(path) ~= "string" then fail("save: argument 1 (path) must be a string, got " .. type(path)) end
  local p, tensors = inside(self)
  local entries, names, data, nodes = {}, {}, {}, {}
  for i, t in ipairs(p.tensors) do
    local first = i
    for k = i - 1, 1, -1 do if rawequal(tensors[k], tensors[i]) then first = k end end
    entries[i] = {name = t.name, kind = t.kind, same = first < i and p.tensors[first].name or nil}      -- one parameter with two names
    if first == i then names[#names + 1], data[#data + 1] = t.name, M.contiguous(M.cpu(tensors[i]:detach())) end
  end
  for i, node in ipairs(p.nodes) do nodes[i] = {op = node.op, args = node.args, out = node.out, inplace = node.inplace} end
  core.write_safetensors(path, names, data,
    core.json_encode {tycho_program = {version = p.version, inputs = p.inputs, tensors = entries, nodes = nodes,
    results = p.results, batch = p.batch, free = p.free, several = p.several}})
end

local RENAMED = {adaptive_avg_pool2d = "adaptive_avg_pool2d_windows"}        -- ops that older files name

-- load(path, {device = }): the module that save() wrote. Everything is checked before it is used.
function jit.load(path, o)
  if type(path) ~= "string" then fail("load: argument 1 (path) must be a string, got " .. type(path)) end
  check("load", o or {}, {device = true, map_location = true})
  local tensors, json = core.read_safetensors(path)
  local ok, traced = pcall(function()
    local p = json and core.json_decode(json)
    p = type(p) == "table" and p.tycho_program
    if type(p) ~= "table" then error("it holds no traced program", 0) end
    for _, node in ipairs(type(p.nodes) == "table" and p.nodes or {}) do
      if type(node) == "table" and RENAMED[node.op] then node.op = RENAMED[node.op] end
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

jit.freeze = require "tycho.jit_freeze"(Traced)
return require("tycho.options").told(jit, "jit")
