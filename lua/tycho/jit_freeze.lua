-- tycho.jit.freeze: a traced module for inference. What depends on constants alone is computed, and a batch_norm goes
-- into the convolution before it.
local core = require "tycho.core"
local fail = require("tycho.options").fail
local module = require "tycho.nn.module"
local modes = require "tycho.modes"
local P = require "tycho.jit_program"
local ops, M = core.ops, core.methods
local is_value, each_value, walk = P.is_value, P.each_value, P.walk

local function copied(x)
  if type(x) ~= "table" then return x end
  local out = {}
  for k, y in pairs(x) do out[k] = copied(y) end
  return out
end

-- The weight and bias of a convolution that does the batch_norm behind it too.
local function with_norm(weight, bias, norm, const)
  local function of(name) local a = norm.args[name]; return is_value(a or {}) and const[a.v] or nil end
  local mean, var, gain, shift = of("mean"), of("var"), of("weight"), of("bias")
  local scale = ops.rsqrt(var + (norm.args.eps or 1e-5))
  if gain then scale = scale * gain end
  local shape = {-1}
  for i = 2, M.dim(weight) do shape[i] = 1 end
  local b = (bias and bias - mean or -mean) * scale
  return M.to(weight * M.view(scale, shape), weight.dtype), M.to(shift and b + shift or b, weight.dtype)
end

-- freeze(traced): for inference: a traced module whose tensors are constants. What depends on nothing else is computed
-- now, and a batch_norm (in eval mode) becomes part of the convolution before it.
local function freeze(Traced, traced)
  if not (type(traced) == "table" and module.is_module(traced) and rawget(traced, "_program")) then
    fail("freeze: argument 1 must be a traced module")
  end
  local p, own = Traced._inside(traced)
  local device = own[1] and own[1].device or core.gpu.default_device()
  local const, names, uses, by, alias = {}, {}, {}, {}, {}
  for i, t in ipairs(p.tensors) do
    const[#p.inputs + i], names[#p.inputs + i] = core.keep(ops.clone(own[i]:detach())), t.name
  end
  local outside, moves, root = P.changed(p.nodes)
  if outside then
    fail("freeze: %s changes a tensor of the module or an argument%s", outside.op,
      outside.inplace and "" or ": trace the model in eval mode")
  end
  for _, node in ipairs(p.nodes) do
    each_value(node.args, function(a) uses[a.v] = (uses[a.v] or 0) + 1; return a end)
  end
  walk(p.results, function(v) uses[v] = (uses[v] or 0) + 1 end)
  local nodes, made = {}, 0
  local function constant(t)
    made = made + 1
    const[-made], names[-made] = core.keep(t), ("frozen.%d.%d"):format(#p.nodes, made)
    return {v = -made}
  end
  modes.no_grad(function()
    for _, original in ipairs(p.nodes) do
      local node, known = {op = original.op, args = copied(original.args), out = copied(original.out), inplace = original.inplace},
        not original.inplace
      for _, v in ipairs(original.out) do known = known and not moves[root(v)] end       -- a constant is nothing that is changed later
      each_value(node.args, function(a)
        local v = alias[a.v] or a.v
        known = known and const[v] ~= nil
        return {v = v}
      end)
      for _, a in pairs(node.args) do                    -- sizes that follow the batch aren't known yet
        if type(a) == "table" then for _, b in ipairs(a) do if type(b) == "table" and b.batch then known = false end end end
      end
      local x = node.op == "batch_norm_stats" and by[node.args.x.v]
      local fits = x and x.op == "conv2d" and uses[node.args.x.v] == 1 and const[x.args.weight.v] and
        (not x.args.bias or const[x.args.bias.v])
      for _, name in ipairs(fits and {"mean", "var", "weight", "bias"} or {}) do
        fits = fits and (not node.args[name] or const[node.args[name].v])
      end
      if fits then
        local w, b = with_norm(const[x.args.weight.v], x.args.bias and const[x.args.bias.v], node, const)
        x.args.weight, x.args.bias = constant(w), constant(b)
        alias[node.out[1]] = x.out[1]
        uses[x.out[1]] = uses[node.out[1]]
      elseif known and P.allowed[node.op].class ~= "random" then
        local r = {ops[node.op](P.arguments(node.args, const, 0, device))}
        for i, v in ipairs(node.out) do alias[v] = constant(r[i]).v end
      else
        nodes[#nodes + 1] = node
        for _, v in ipairs(node.out) do by[v] = node end
      end
    end
  end)
  local results = walk(p.results, function(v) return {v = alias[v] or v} end)
  nodes = P.sweep(nodes, results)
  -- numbers anew: inputs, the constants in use, results
  local number, q, tensors, n = {},
    {version = P.VERSION, inputs = copied(p.inputs), tensors = {}, batch = p.batch, free = p.free, several = p.several}, {}, #p.inputs
  for i = 1, n do number[i] = i end
  local function use(v)
    if const[v] and not number[v] then
      n = n + 1
      number[v] = n
      q.tensors[#q.tensors + 1], tensors[names[v]] = {name = names[v], kind = "constant"}, const[v]
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
  return Traced(q, tensors):eval()
end

-- Given the class of traced modules.
return function(Traced) return function(traced) return freeze(Traced, traced) end end
