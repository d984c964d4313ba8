-- tycho.jit.freeze: a traced module for inference. Values that depend on constants alone are computed now, and a batch_norm is folded into
-- the convolution before it.
local core = require "tycho.core"
local fold_norm = require "tycho.nn.fold_norm"
local fail = require("tycho.options").fail
local module = require "tycho.nn.module"
local modes = require "tycho.modes"
local P = require "tycho.jit.program"
local ops, M = core.ops, core.methods
local is_value, each_value, walk = P.is_value, P.each_value, P.walk

local function copied(x)
  if type(x) ~= "table" then return x end
  local out = {}
  for k, y in pairs(x) do out[k] = copied(y) end
  return out
end

-- A batch_norm node's constants, in the form that fold_norm takes.
local function statistics(norm, const)
  local function of(name) local a = norm.args[name]; return is_value(a or {}) and const[a.v] or nil end
  return {mean = of "mean", var = of "var", weight = of "weight", bias = of "bias", eps = norm.args.eps or 1e-5}
end

-- The state while nodes are visited in order. Values have the old program's numbers; constants made here have negative ones.
--   const, names: a constant's tensor and name     alias: the value that replaces another
--   uses: how often a value is used     by: the node that makes a value     nodes: those that stay
local function begin(p, own)
  local f = {p = p, const = {}, names = {}, alias = {}, uses = {}, by = {}, nodes = {}, made = 0}
  for i, t in ipairs(p.tensors) do
    local v = #p.inputs + i
    f.const[v], f.names[v] = core.keep(ops.clone(own[i]:detach())), t.name
  end
  local function count(v) f.uses[v] = (f.uses[v] or 0) + 1 end
  for _, node in ipairs(p.nodes) do each_value(node.args, function(a) count(a.v) return a end) end
  walk(p.results, count)
  return f
end

local function constant(f, t)
  f.made = f.made + 1
  f.const[-f.made], f.names[-f.made] = core.keep(t), ("frozen.%d.%d"):format(#f.p.nodes, f.made)
  return {v = -f.made}
end

-- The product of the first n sizes as a multiple of the batch; nil if it isn't one.
local function batches(sizes, n)
  local times, found = 1, false
  for i = 1, n do
    local s = sizes[i]
    if type(s) == "table" and not found then s, found = #s.of == 1 and s.of[1] == 0 and not (s.plus or s.more) and s.size, true end
    if type(s) ~= "number" then return nil end
    times = times * s
  end
  return found and times or nil
end
-- The dim of a node's operand that is dim d of its result, where the node only moves elements, or nil. Of a view of a conv2d's result: 2,
-- where its dim d is the channels and the dims before it are N.
local function dim_before(f, node, d)
  if node.op == "clone" then return d end
  if node.op == "permute" then return node.args.dims[d] end
  if node.op ~= "view" then return nil end
  local conv = f.by[node.args.x.v]
  local given = conv and conv.op == "conv2d" and f.by[conv.args.x.v]
  local n = given and given.op == "view" and batches(given.args.size, 1)
  return n and n == batches(node.args.size, d - 1) and node.args.size[d] == f.const[conv.args.weight.v].shape[1] and 2 or nil
end

-- The convolution that a batch_norm can be folded into: nothing else uses its result, all numbers of both are constants, and the batch_norm
-- doesn't use the batch's statistics. conv1d and conv3d are conv2d, then views; a transposed convolution is a convolution's gradient, to
-- which a bias is added. Gives the node, the node that adds the bias, if there is one, and the weight's output dim; or nil.
local function before(f, norm)
  if norm.op ~= "batch_norm_stats" then return nil end
  for _, name in ipairs {"mean", "var"} do if not is_value(norm.args[name] or {}) then return nil end end
  for _, name in ipairs {"mean", "var", "weight", "bias"} do
    if norm.args[name] and not f.const[norm.args[name].v] then return nil end
  end
  local v, d, sum = norm.args.x.v, 2, nil
  while true do
    local x = f.by[v]
    if not x or f.uses[v] ~= 1 then return nil end
    if x.op == "conv2d" or (x.op == "conv2d_backward_input" and sum and x.args.groups == 1) then
      local fits = d == 2 and f.const[x.args.weight.v] and (not x.args.bias or f.const[x.args.bias.v]) and not (sum and x.op == "conv2d")
      if fits then return x, sum, x.op == "conv2d" and 1 or 2 end
      return nil
    end
    if x.op == "add" and not sum and d == 2 and x.args.alpha == 1 and is_value(x.args.b) and f.const[x.args.b.v] then
      local shape = f.const[x.args.b.v].shape
      if #shape ~= 4 or shape[1] * shape[3] * shape[4] ~= 1 then return nil end
      sum, v = x, x.args.a.v
    else
      d = dim_before(f, x, d)
      if not d then return nil end
      v = x.args.x.v
    end
  end
end

-- Whether all of a node's arguments are constants.
local function is_known(f, node)
  local known = P.allowed[node.op].class ~= "random" and not node.inplace
  each_value(node.args, function(a) known = known and f.const[a.v] ~= nil; return a end)
  for _, a in pairs(node.args) do                        -- numbers that follow sizes aren't known yet
    if type(a) == "table" and a.of then known = false end
    if type(a) == "table" then for _, b in ipairs(a) do if type(b) == "table" and b.of then known = false end end end
  end
  return known
end

-- moved: whether a later node changes this one's result, which then is no constant.
local function fold(f, node, moved, device)
  each_value(node.args, function(a) return {v = f.alias[a.v] or a.v} end)
  local x, sum, dim = before(f, node)
  if x then
    local bias = sum and sum.args.b or x.args.bias
    local w, b = fold_norm(f.const[x.args.weight.v], bias and f.const[bias.v], statistics(node, f.const), dim)
    x.args.weight = constant(f, w)
    if sum then sum.args.b = constant(f, M.view(b, 1, -1, 1, 1)) else x.args.bias = constant(f, b) end
    f.alias[node.out[1]] = node.args.x.v
    f.uses[node.args.x.v] = f.uses[node.out[1]]
  elseif not moved and is_known(f, node) then
    local r = {ops[node.op](P.arguments(node.args, f.const, 0, device))}
    for i, v in ipairs(node.out) do f.alias[v] = constant(f, r[i]).v end
  else
    f.nodes[#f.nodes + 1] = node
    for _, v in ipairs(node.out) do f.by[v] = node end
  end
end

-- The program of the nodes that stay, and its tensors. Values are renumbered: inputs, the constants in use, results.
local function finish(f)
  local p = f.p
  local results = walk(p.results, function(v) return {v = f.alias[v] or v} end)
  local nodes, number, tensors, n = P.sweep(f.nodes, results), {}, {}, #p.inputs
  local q = P.said_of(p)
  q.version, q.inputs, q.tensors = P.VERSION, copied(p.inputs), {}
  for i = 1, n do number[i] = i end
  local function use(v)
    if f.const[v] and not number[v] then
      n = n + 1
      number[v] = n
      q.tensors[#q.tensors + 1], tensors[f.names[v]] = {name = f.names[v], kind = "constant"}, f.const[v]
    end
  end
  for _, node in ipairs(nodes) do each_value(node.args, function(a) use(a.v) return a end) end
  walk(results, use)
  for _, node in ipairs(nodes) do
    each_value(node.args, function(a) return {v = number[a.v]} end)
    for i, v in ipairs(node.out) do
      n = n + 1
      number[v], node.out[i] = n, n
    end
  end
  q.nodes, q.results = nodes, walk(results, function(v) return {v = number[v]} end)
  P.lifetimes(q)
  return q, tensors
end

-- freeze for the given class of traced modules.
local function freeze(Traced, traced)
  if not (type(traced) == "table" and module.is_module(traced) and rawget(traced, "_program")) then
    fail("freeze: argument 1 must be a traced module")
  end
  local p, own = Traced._inside(traced)
  local outside, changed, root = P.changed(p.nodes)
  if outside then
    fail("freeze: %s changes a tensor of the module or an argument%s", outside.op,
      outside.inplace and "" or ": trace the model in eval mode")
  end
  local f, device = begin(p, own), own[1] and own[1].device or core.gpu.default_device()
  modes.no_grad(function()
    for _, node in ipairs(p.nodes) do
      local moved = false
      for _, v in ipairs(node.out) do moved = moved or changed[root(v)] end
      fold(f, {op = node.op, args = copied(node.args), out = copied(node.out), inplace = node.inplace}, moved, device)
    end
  end)
  return Traced(finish(f)):eval()
end

-- freeze(traced): a traced module for inference, whose tensors are constants: values that depend on constants alone are computed now, and a
-- batch_norm in evaluation mode becomes part of the convolution before it.
return function(Traced) return function(traced) return freeze(Traced, traced) end end
