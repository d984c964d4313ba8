-- Traced programs as data: jit/init.lua makes, saves and runs them, and jit/freeze.lua changes them.
--
-- A program is {version, inputs = {{dtype, shape}}, takes, tensors = {{name, kind}}, nodes = {{op, args by name, out, inplace}}, results,
-- batch, free, steps, members, bounds, several, one_dtype, contiguous, one_layout, no_backward}. Values are numbered: the inputs, then the
-- tensors, then the nodes' results. In arguments a value is {v = n}, and a number that JSON can't express {n = "inf"}. A number that
-- follows sizes is {size = times, of = list, plus = number, more = another such}: times, multiplied by the sizes, in steps, of the listed
-- free dims (0: the batch), plus the number, plus the other one.
-- takes: if some arguments aren't tensors, a tree of inputs for each argument, in which {const = value} is a boolean, number or string that
-- must be given as it was in the example, and {none = true} stands for nil.
-- batch: the dim of the inputs whose size may differ, the same in all: true: dim 1; a list: a dim for each input, 0 for none.
-- free: places (P.place) of further dims whose sizes may differ: of input 1 the dim itself.
-- members: the places of the dims whose sizes follow each of these, in the examples' proportion, itself among them; nil: of input 1's dims
-- the same dims of all inputs, if their size is the same in the example, and of other inputs' the dim alone.
-- steps: if some of them have steps, the step of each: the size must be a multiple of it.
-- bounds: a list of {dim, least, most}: the sizes that dim may have (0: the batch), where not all are right.
-- one_dtype: floating inputs must have the example's dtype; contiguous: inputs are made so; one_layout: they must be so.
-- no_backward: the model has an autograd.Function, whose backward the ops don't have.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
-- 2: tensors with two names; 3: arguments that are tables; 4: numbers that follow any free dim; 5: steps; 6: bounds, members, free dims of
-- other inputs than 1, constants among the arguments, numbers that are sums of sizes; 7: one_dtype, contiguous, one_layout; 8: no_backward
local P = {VERSION = 8}

-- The ops that a program may use; op.params also gets each parameter's place by its name.
local allowed = {}
for _, op in ipairs(core.op_table()) do
  if op.class ~= "optim" and op.class ~= "move" then
    for i, name in ipairs(op.params) do op.params[name] = i end
    op.mutated = {}
    for name in op.signature:gmatch "([%w_]+)!" do op.mutated[#op.mutated + 1] = name end
    allowed[op.name] = op
  end
end
P.allowed = allowed

-- What p says of its inputs and results beside their dtypes and shapes, as a new table.
local SAID = {"takes", "batch", "free", "steps", "members", "bounds", "several", "one_dtype", "contiguous", "one_layout", "no_backward"}
function P.said_of(p)
  local out = {}
  for _, name in ipairs(SAID) do out[name] = p[name] end
  return out
end

-- The batch dim of p's input i; 0: none.
function P.batch_dim(p, i) return not p.batch and 0 or p.batch == true and 1 or p.batch[i] end

---- values in arguments: {v = n}, or lists of them ----
local function is_value(a) return type(a) == "table" and a.v ~= nil end
local function each_value(args, fn)
  for name, a in pairs(args) do
    if is_value(a) then args[name] = fn(a)
    elseif type(a) == "table" then
      for i, b in ipairs(a) do if is_value(b) then a[i] = fn(b) end end
    end
  end
end

-- Results are a tree: {v = n}, {items = list}, or {keys = list of strings, items = list}. fold makes such a tree of tensors in plain
-- tables; add(tensor) gives a tensor's number; what: whose they are, for errors. constants: other values may be among them.
local function fold(x, add, what, constants, path, depth)
  path, depth = path or "", depth or 0
  local at = path ~= "" and " at " .. (depth > 20 and path:sub(1, 60) .. "..." or path) or ""
  if core.is_tensor(x) then return {v = add(x)} end
  if constants and x == nil then return {none = true} end
  local kind = constants and type(x)
  if kind == "boolean" or kind == "string" or kind == "number" and math.abs(x) < math.huge then return {const = x} end
  if type(x) ~= "table" or getmetatable(x) ~= nil or depth > 100 then
    error(("trace: %s a %s%s; %s"):format(what, type(x), at, constants and
      "arguments may be tensors, tables of these, booleans, strings, nil and finite numbers" or
      "only tensors and tables of tensors can be traced"), 0)
  end
  local keys, out, n = {}, {items = {}}, 0
  for k in pairs(x) do
    n = n + 1
    if type(k) == "string" then keys[#keys + 1] = k end
  end
  table.sort(keys)
  if n > 0 and #keys == n then out.keys = keys
  elseif n ~= #x or #keys > 0 then error(("trace: %s a table%s that is neither a list nor a table with names only"):format(what, at), 0) end
  for i = 1, n do
    local k = out.keys and keys[i] or i
    out.items[i] = fold(x[k], add, what, constants, (depth > 0 and path .. "." or "") .. k, depth + 1)
  end
  return out
end
-- Calls fn(n, tensor) for the tensors in x, whose structure must be the tree's; gives a text of what is wrong, or nil.
local function match(x, t, fn)
  if is_value(t) then
    if not core.is_tensor(x) then return "must be a tensor, got " .. type(x) end
    return fn(t.v, x)
  end
  if t.none or t.const ~= nil then
    if x == t.const then return end
    local function text(v) return type(v) == "string" and ("'%s'"):format(v) or core.is_tensor(v) and "a tensor" or tostring(v) end
    return ("must be %s, as in the example, got %s"):format(text(t.const), text(x))
  end
  if type(x) ~= "table" or getmetatable(x) ~= nil then return "must be a table, got " .. (core.is_tensor(x) and "a tensor" or type(x)) end
  local n = 0
  for _ in pairs(x) do n = n + 1 end
  if n ~= #t.items then return ("must have %d fields, got %d"):format(#t.items, n) end
  for i, y in ipairs(t.items) do
    local k = t.keys and t.keys[i] or i
    local wrong = match(x[k], y, fn)
    if wrong then return (wrong:find "^at " and "at %s.%s" or "at %s %s"):format(k, (wrong:gsub("^at ", ""))) end
  end
end

-- The tree with each value replaced by fn(n).
local function walk(x, fn)
  if is_value(x) then return fn(x.v) end
  local out = {keys = x.keys, items = {}}
  for i, y in ipairs(x.items) do out.items[i] = walk(y, fn) end
  return out
end
-- The plain tables of a tree, with fn(n) for each value.
local function unfold(x, fn)
  if is_value(x) then return fn(x.v) end
  if x.none or x.const ~= nil then return x.const end
  local out = {}
  for i, y in ipairs(x.items) do out[x.keys and x.keys[i] or i] = unfold(y, fn) end
  return out
end

---- nodes ----
-- Dim d of input i as one number, and back.
local DIMS = 8
function P.place(i, d) return (i - 1) * DIMS + d end
function P.input_and_dim(place) return math.floor((place - 1) / DIMS) + 1, (place - 1) % DIMS + 1 end
-- The step of the free dim at a place; nil: its size is fixed, or it is the batch.
function P.step(p, place)
  for i, free in ipairs(p.free or {}) do if free == place then return p.steps and p.steps[i] or 1 end end
end
-- The places of the dims that have the size of p.free[k].
function P.members(p, k)
  if p.members then return p.members[k] end
  local first, d = P.input_and_dim(p.free[k])
  if first > 1 then return {p.free[k]} end
  local list = {}
  for i, x in ipairs(p.inputs) do
    if x.shape[d] == p.inputs[1].shape[d] and d ~= P.batch_dim(p, i) then list[#list + 1] = P.place(i, d) end
  end
  return list
end
-- The free dim that each input's dim follows, by its place: 0 for the batch, nil for a fixed size; and that dim's size in the example.
function P.variables(p)
  local of, own = {}, {}
  local function size(place)
    local i, d = P.input_and_dim(place)
    return p.inputs[i].shape[d]
  end
  for k, place in ipairs(p.free or {}) do
    for _, member in ipairs(P.members(p, k)) do of[member], own[member] = place, size(place) end
  end
  for i in ipairs(p.inputs) do
    local place = P.batch_dim(p, i) > 0 and P.place(i, P.batch_dim(p, i))
    if place then of[place], own[place] = 0, size(place) end
  end
  return of, own
end

-- The value of a number that follows sizes, which are in steps.
local function sized(x, sizes)
  local n = x.size
  for _, d in ipairs(x.of) do n = n * sizes[d] end
  return n + (x.plus or 0) + (x.more and sized(x.more, sizes) or 0)
end
P.sized = sized
-- A node's arguments for its op, from the values so far. sizes: the batch's at [0], and those of free dims by their places, in steps.
local function arguments(args, value, sizes, device)
  local out = {}
  for name, a in pairs(args) do
    if is_value(a) then out[name] = value[a.v]
    elseif type(a) == "table" and a.of then out[name] = sized(a, sizes)
    elseif type(a) == "table" and a.n then
      out[name] = tonumber(a.n) or (a.n == "inf" and math.huge or a.n == "-inf" and -math.huge or 0 / 0)
    elseif type(a) == "table" then
      local list = {}
      for i, b in ipairs(a) do
        if is_value(b) then list[i] = value[b.v]
        elseif type(b) == "table" then list[i] = sized(b, sizes)
        else list[i] = b end
      end
      out[name] = list
    else out[name] = a end
  end
  if out.device then out.device = device end
  return out
end

-- The existing values that a node changes, in place or as running statistics: a list.
local function changes(node)
  local op, list = allowed[node.op], {}
  if node.inplace then return {node.args[op.params[1]].v} end
  for _, name in ipairs(node.args.training ~= false and op.mutated or {}) do
    if node.args[name] ~= nil then list[#list + 1] = node.args[name].v end
  end
  return list
end

-- What nodes change: the first node that changes an input or a tensor of the module, or nil; the set of values that a node made and a later
-- one changes; root(v): the value that v is a view of, or v; and the list of the inputs and tensors that change.
local function changed(nodes)
  local from, made, set, outside, others = {}, {}, {}, nil, {}
  local function root(v) return from[v] or v end
  for _, node in ipairs(nodes) do
    local op = allowed[node.op]
    local x = op and node.args[op.params[1]]
    for _, v in ipairs(node.out) do
      made[v] = true
      if op and op.class == "view" and type(x) == "table" and is_value(x) then from[v] = root(x.v) end
    end
    for _, v in ipairs(op and changes(node) or {}) do
      if made[root(v)] then set[root(v)] = true
      else outside, others[#others + 1] = outside or node, root(v) end
    end
  end
  return outside, set, root, others
end

-- Drops nodes whose results are unused, unless they change existing values or draw random numbers.
local function sweep(nodes, results)
  local used, kept = {}, {}
  walk(results, function(v) used[v] = true end)
  for i = #nodes, 1, -1 do
    local node = nodes[i]
    local needed = #changes(node) > 0 or allowed[node.op].class == "random"
    for _, v in ipairs(node.out) do needed = needed or used[v] end
    if needed then
      each_value(node.args, function(a) used[a.v] = true; return a end)
      table.insert(kept, 1, node)
    end
  end
  return kept
end

-- Notes in node.last which values each node is the last to use.
local function lifetimes(p)
  local last, from = {}, #p.inputs + #p.tensors
  for i, node in ipairs(p.nodes) do
    node.last = nil
    each_value(node.args, function(a) last[a.v] = i; return a end)
    for _, v in ipairs(node.out) do last[v] = last[v] or i end
  end
  walk(p.results, function(v) last[v] = nil end)
  for v, i in pairs(last) do
    if v > from then
      p.nodes[i].last = p.nodes[i].last or {}
      table.insert(p.nodes[i].last, v)
    end
  end
end

---- what may stand in a file ----
local function whole(x, most) return type(x) == "number" and x >= 1 and x <= most and x % 1 == 0 end
local dtypes = {}
for _, d in ipairs(core.dtypes) do dtypes[d] = true end

local function need(ok, what, ...) if not ok then error(what:format(...), 0) end end
local function list(x, what)
  need(type(x) == "table" and #x <= 1e6, "%s must be a list", what)
  local n = 0
  for _ in pairs(x) do n = n + 1 end
  need(n == #x, "%s must be a list", what)
  return x
end

local function validate_inputs(p)
  for i, x in ipairs(list(p.inputs, "inputs")) do
    need(type(x) == "table" and dtypes[x.dtype], "input %d has no dtype", i)
    for _, n in ipairs(list(x.shape, "a shape")) do need(n == 0 or whole(n, 2^48), "input %d has size %s", i, tostring(n)) end
  end
  need(not (p.batch or p.free) or #p.inputs > 0, "there are no inputs")
  if p.batch ~= nil and p.batch ~= true then
    need(#list(p.batch, "batch") == #p.inputs, "batch must be true or a dim of each input")
    for _, d in ipairs(p.batch) do need(d == 0 or whole(d, 8), "dim %s can't be the batch dim", tostring(d)) end
    need(p.batch[1] > 0, "input 1 has no batch dim")
  end
  for i, x in ipairs(p.inputs) do need(P.batch_dim(p, i) <= #x.shape, "input %d has no dim %d", i, P.batch_dim(p, i)) end
  local function is_dim(place)
    if not whole(place, DIMS * #p.inputs) then return false end
    local i, d = P.input_and_dim(place)
    return d <= #p.inputs[i].shape and d ~= P.batch_dim(p, i), p.inputs[i].shape[d]
  end
  for _, place in ipairs(p.free ~= nil and list(p.free, "free dims") or {}) do
    need(is_dim(place), "dim %s can't be free", tostring(place))
  end
  need(p.members == nil or #list(p.members, "members") == #(p.free or {}), "there must be members for each free dim")
  local taken = {}
  for k, members in ipairs(p.members or {}) do
    local own, _, size = false, is_dim(p.free[k])
    for _, place in ipairs(list(members, "members")) do
      local is, other = is_dim(place)
      need(is and not taken[place] and (other == size or other * size > 0), "dim %s can't follow dim %d", tostring(place), p.free[k])
      own, taken[place] = own or place == p.free[k], true
    end
    need(own, "dim %d isn't a member of its own", p.free[k])
  end
  need(p.steps == nil or #list(p.steps, "steps") == #(p.free or {}), "there must be a step for each free dim")
  for i, step in ipairs(p.steps or {}) do need(whole(step, 2^48), "dim %d has the step %s", p.free[i], tostring(step)) end
  for _, b in ipairs(p.bounds ~= nil and list(p.bounds, "bounds") or {}) do
    need(type(b) == "table" and type(b.dim) == "number", "a bound has no dim")
    need(b.dim == 0 and p.batch or P.step(p, b.dim), "dim %s has bounds, but isn't free", tostring(b.dim))
    for _, size in pairs {b.least, b.most} do need(whole(size, 2^48), "dim %d has the bound %s", b.dim, tostring(size)) end
  end
end

local function validate_tensors(p, tensors, reserved)
  local seen = {}
  for i, t in ipairs(list(p.tensors, "tensors")) do
    need(type(t) == "table" and type(t.name) == "string", "tensor %d has no name", i)
    need(t.same == nil or (seen[t.same] == t.kind and tensors[t.same] and not tensors[t.name]), "tensor '%s' can't alias '%s'", t.name,
      tostring(t.same))
    local data = tensors[t.same == nil and t.name or t.same]
    need(data, "tensor %d isn't in the file", i)
    need(t.kind == "parameter" or t.kind == "buffer" or t.kind == "constant", "tensor '%s' has no valid kind", t.name)
    need(t.kind ~= "parameter" or M.is_floating_point(data), "parameter '%s' is %s", t.name, data.dtype)
    for part in t.name:gmatch("[^.]+") do need(not reserved(part), "a tensor can't be named '%s'", t.name) end
    need(not seen[t.name] and #t.name < 1000 and not t.name:find("^%.") and not t.name:find("%.%.") and
      not t.name:find("%.$") and t.name ~= "", "tensor %d has the name '%s'", i, t.name)
    seen[t.name] = t.kind
  end
  for name in pairs(seen) do                             -- no tensor within another
    for prefix in name:gmatch("()%.") do
      need(not seen[name:sub(1, prefix - 1)], "tensors '%s' and '%s' can't both exist", name, name:sub(1, prefix - 1))
    end
  end
end

-- Checks that t is a tree as fold makes it; leaf(value) checks each value.
local function validate_tree(t, what, leaf, constants, depth)
  need(type(t) == "table" and depth < 100, "%s is not a tree of values", what)
  if is_value(t) then return leaf(t) end
  if constants and (t.none == true or t.const ~= nil) then
    return need(type(t.const) ~= "table" and (t.none == nil or t.const == nil), "%s has a bad constant", what)
  end
  for _, y in ipairs(list(t.items, what)) do validate_tree(y, what, leaf, constants, depth + 1) end
  for i, k in ipairs(t.keys ~= nil and list(t.keys, "keys") or {}) do
    need(type(k) == "string" and t.items[i] ~= nil, "a field of %s has no name", what)
  end
  need(t.keys == nil or #t.keys == #t.items, "the names in %s don't match its items", what)
end

-- Each input must occur exactly once in what the program takes.
local function validate_takes(p)
  local seen, count = {}, 0
  for _, t in ipairs(list(p.takes, "takes")) do
    validate_tree(t, "what the program takes", function(a)
      need(p.inputs[a.v] and not seen[a.v], "the program takes input %s twice, or there is no such input", tostring(a.v))
      seen[a.v], count = true, count + 1
    end, true, 0)
  end
  need(count == #p.inputs, "the program takes %d tensors, there are %d inputs", count, #p.inputs)
end

-- defined: the values so far, as a set.
local function validate_value(a, defined, where)
  need(type(a.v) == "number" and defined[a.v], "%s uses an undefined value", where)
  for k in pairs(a) do need(k == "v", "%s has a bad value", where) end
end

-- Converts a size from the form of version 3 files.
local function renewed(a) if a.batch ~= nil and a.of == nil then a.size, a.of, a.batch = a.batch, {0}, nil end end
local function validate_size(a, p, where, depth)
  local free = {[0] = p.batch}
  for _, d in ipairs(p.free or {}) do free[d] = true end
  need(type(a.size) == "number" and whole(a.size, 2^48) and #list(a.of, "a size's dims") > 0 and #a.of <= 8, "%s has a bad size", where)
  need(a.plus == nil or type(a.plus) == "number" and a.plus % 1 == 0 and math.abs(a.plus) <= 2^48, "%s has a bad size", where)
  for _, d in ipairs(a.of) do
    need(type(d) == "number" and free[d], "%s has a size that follows dim %s, which isn't free", where, tostring(d))
  end
  if a.more ~= nil then
    need(depth < 8 and type(a.more) == "table" and a.more.of ~= nil, "%s has a bad size", where)
    validate_size(a.more, p, where, depth + 1)
  end
end

local function validate_argument(a, p, defined, where)
  if type(a) == "table" then renewed(a) end
  if type(a) ~= "table" then
    need(type(a) == "number" or type(a) == "boolean" or type(a) == "string", "%s has a bad argument", where)
  elseif is_value(a) then validate_value(a, defined, where)
  elseif a.of ~= nil then validate_size(a, p, where, 0)
  elseif a.n ~= nil then need(a.n == "inf" or a.n == "-inf" or a.n == "nan", "%s has a bad number", where)
  else
    for _, b in ipairs(list(a, "an argument")) do
      if type(b) ~= "table" then need(type(b) == "number" or type(b) == "boolean", "%s has a bad argument", where)
      elseif is_value(b) then validate_value(b, defined, where)
      else
        renewed(b)
        need(b.of ~= nil, "%s has a bad argument", where)
        validate_size(b, p, where, 0)
      end
    end
  end
end

local function validate_nodes(p, defined)
  for i, node in ipairs(list(p.nodes, "nodes")) do
    need(type(node) == "table" and type(node.op) == "string" and allowed[node.op],
      "node %d has an op that a trace can't have: %s", i, tostring(type(node) == "table" and node.op))
    local op = allowed[node.op]
    local where = ("node %d (%s)"):format(i, node.op)
    need(node.inplace == nil or (node.inplace == true and op.inplace and ops[node.op .. "_"]), "%s has no in-place form", where)
    need(type(node.args) == "table", "%s has no arguments", where)
    for name, a in pairs(node.args) do
      need(type(name) == "string" and op.params[name], "%s has no parameter '%s'", where, tostring(name))
      validate_argument(a, p, defined, where)
    end
    need(not node.inplace or is_value(node.args[op.params[1]] or {}), "%s must change a value", where)
    for _, name in ipairs(op.mutated) do
      need(node.args[name] == nil or type(node.args[name]) == "table" and is_value(node.args[name]), "%s must change a value", where)
    end
    need(#list(node.out, "results") == (node.inplace and 0 or op.results), "%s has %d results", where, #node.out)
    for _, v in ipairs(node.out) do
      need(whole(v, 2^31) and not defined[v], "%s defines a value that exists already", where)
      defined[v] = true
    end
  end
end

-- Raises unless p is a valid program over the given tensors. reserved(name): whether no part of a tensor's name may be `name`.
function P.validate(p, tensors, reserved)
  need(type(p) == "table", "there is no program")
  need(type(p.version) == "number", "the program has no version")
  need(p.version <= P.VERSION, "the program is of version %s, this library reads up to %d", tostring(p.version), P.VERSION)
  validate_inputs(p)
  if p.takes ~= nil then validate_takes(p) end
  validate_tensors(p, tensors, reserved)
  local defined = {}
  for i = 1, #p.inputs + #p.tensors do defined[i] = true end
  validate_nodes(p, defined)
  validate_tree(p.results, "the result", function(a) validate_value(a, defined, "the result") end, false, 0)
  for _, name in ipairs {"several", "one_dtype", "contiguous", "one_layout", "no_backward"} do
    need(p[name] == nil or p[name] == true, "%s must be true", name)
  end
  need(not p.several or (not is_value(p.results) and p.results.keys == nil), "several results must be a list")
end

-- The oldest version that has what p has.
function P.version(p)
  if p.no_backward then return 8 end
  if p.one_dtype or p.contiguous or p.one_layout then return 7 end
  local function constant(t)
    local found = t.none or t.const ~= nil
    for _, y in ipairs(t.items or {}) do found = found or constant(y) end
    return found
  end
  for _, t in ipairs(p.takes or {}) do if constant(t) then return 6 end end
  for _, place in ipairs(p.free or {}) do if place > DIMS then return 6 end end
  local function sum(a)
    if type(a) ~= "table" or is_value(a) then return false end
    for _, b in ipairs(a) do if sum(b) then return true end end
    return a.more ~= nil
  end
  for _, node in ipairs(p.nodes) do
    for _, a in pairs(node.args) do if sum(a) then return 6 end end
  end
  return (p.bounds or p.members) and 6 or p.steps and 5 or 4
end

P.is_value, P.each_value, P.walk, P.unfold, P.fold, P.match = is_value, each_value, walk, unfold, fold, match
P.arguments, P.changed, P.sweep, P.lifetimes = arguments, changed, sweep, lifetimes
return P
