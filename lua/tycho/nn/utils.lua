-- tycho.nn.utils: functions over all parameters together, layers fused with their batch norms, and the contents of some other files.
--
-- Invariant: functions over gradients wait for no device; numbers that they return are tensors there.
local core = require "tycho.core"
local modes = require "tycho.modes"
local no_grad = modes.no_grad
local devices = require "tycho.devices"
local options = require "tycho.options"
local module = require "tycho.nn.module"
local sequences = require "tycho.nn.sequences"
local flat = require "tycho.nn.flat"
local fold_norm = require "tycho.nn.fold_norm"
local tree = require "tycho.tree"
local fail, on = options.fail, devices.on
local ops, M = core.ops, core.methods
local utils = {}

-- A list of tensors, from one that may contain lists, as optimizers take: {a:parameters(), b:parameters()}.
local function flattened(params)
  local is_list = tree.is_plain
  local nested = false
  if is_list(params) then for _, p in ipairs(params) do nested = nested or is_list(p) end end
  if not nested then return params end
  local out = {}
  for _, p in ipairs(params) do
    for _, q in ipairs(is_list(p) and flattened(p) or {p}) do out[#out + 1] = q end
  end
  return out
end
local function grads(who, params)
  local list, groups = {}, {}              -- groups: the process groups of sharded parameters, by gradient
  params = flattened(params)
  if type(params) ~= "table" and not core.is_tensor(params) or (type(params) == "table" and rawget(params, "_parts")) then
    fail(who .. ": argument 1 must be a tensor or a list of tensors, such as net:parameters()")
  end
  if not core.is_tensor(params) and getmetatable(params) == nil then options.items(who, "argument 1", params) end
  for i, p in ipairs(core.is_tensor(params) and {params} or params) do
    if not core.is_tensor(p) then fail("%s: item %d of argument 1 is a %s, not a tensor", who, i, type(p)) end
    local g = core.grad_of(p)
    if g then
      list[#list + 1] = g
      groups[g] = module.sharded[p]
    end
  end
  return list, groups
end

-- Nobody else has these handles, and the gradients' memory shouldn't wait for the collector.
local function give_back(list, total)
  for _, g in ipairs(list) do core.free(g) end
  return total
end

-- Multiplies all gradients by a factor.
local function scale_all(list, factor) for device, part in devices.each(list) do ops.multi_scale(part, on(factor, device)) end end

-- The norm of all gradients' elements together, on the first gradient's device.
local function norm_of(list, p)
  local norms, first = {}, list[1].device
  for _, part in devices.each(list) do norms[#norms + 1] = on(ops.multi_norm(part), first) end   -- refuses scaled gradients
  if p == 2 then return #norms == 1 and norms[1] or ops.sqrt(ops.sum(ops.square(ops.stack(norms, 1)))) end
  local each = {}
  for i, g in ipairs(list) do
    local a = ops.abs(g.dtype == "float64" and g or M.float(g))
    each[i] = on(p == math.huge and ops.amax(a) or ops.sum(a ^ p), first)
  end
  local all = ops.stack(each, 1)
  return p == math.huge and ops.amax(all) or ops.sum(all) ^ (1 / p)
end

-- The same where some gradients are shards: their norm is taken over all processes of their group.
local function norm_among(list, groups, p)
  if next(groups) == nil then return norm_of(list, p) end
  local kinds, order, powers = {}, {}, {}
  for _, g in ipairs(list) do
    local kind = groups[g] or "whole"
    if not kinds[kind] then
      kinds[kind] = {}
      order[#order + 1] = kind
    end
    if M.numel(g) > 0 then table.insert(kinds[kind], g) end
    kinds[kind].wide = kinds[kind].wide or g.dtype == "float64"          -- the same in all processes, also those without rows
  end
  for i, kind in ipairs(order) do
    local part = kinds[kind]
    local n = #part > 0 and norm_of(part, p) or ops.zeros({}, {device = list[1].device})
    n = M.to(n, part.wide and "float64" or "float32")
    if p ~= math.huge then n = n ^ p end
    powers[i] = kind == "whole" and n or ops.collective(n, "all_reduce", p == math.huge and "max" or "sum", 0, 0, kind.id)
  end
  local all = ops.stack(powers, 1)
  return p == math.huge and ops.amax(all) or ops.sum(all) ^ (1 / p)
end

-- The order of a norm: a number above 0, or "inf".
local function order_of(name, p)
  if p == "inf" then return math.huge end
  options.number(name, "norm_type", p)
  if p <= 0 then fail("%s: norm_type must be above 0, got %g", name, p) end
  return p
end

-- get_total_norm(tensors, norm_type=2, error_if_nonfinite=false): the norm of all elements of a list of tensors, a tensor on their device.
function utils.get_total_norm(tensors, ...)
  local o = options.arguments("get_total_norm", "norm_type=2, error_if_nonfinite=false, foreach=true", ...)
  local order = order_of("get_total_norm", o.norm_type)
  local list = core.is_tensor(tensors) and {tensors} or tensors
  for i, t in ipairs(options.expect("get_total_norm", 1, list, type(list) == "table", "a tensor or a list of tensors")) do
    if not core.is_tensor(t) then fail("get_total_norm: item %d of argument 1 must be a tensor, got %s", i, options.shown(t)) end
  end
  if #list == 0 then return ops.zeros({}) end
  local ok, total = pcall(no_grad, norm_of, list, order)
  if not ok then fail((options.bare(total):gsub("^multi_norm", "get_total_norm"))) end
  if o.error_if_nonfinite and not ops.isfinite(total):item() then fail("get_total_norm: the norm is not finite: %g", total:item()) end
  return total
end
-- clip_grads_with_norm_(params, max_norm, total_norm): multiplies the gradients by max_norm / total_norm if that is below 1.
function utils.clip_grads_with_norm_(params, max_norm, total)
  options.number("clip_grads_with_norm_", "argument 2 (max_norm)", max_norm)
  options.expect("clip_grads_with_norm_", 3, total, core.is_tensor(total), "a tensor")
  local list = grads("clip_grads_with_norm_", params)
  if #list > 0 then scale_all(list, ops.clamp(max_norm / (total + 1e-6), nil, 1)) end
  give_back(list)
end

-- clip_grad_norm_(params, max_norm, norm_type=2, error_if_nonfinite=false): scales the gradients down so that their norm as one vector
-- (math.huge or "inf": the largest element) is at most max_norm. Gives their norm before, a tensor. It doesn't wait for the GPU, unless
-- error_if_nonfinite. PyTorch's foreach has no effect.
function utils.clip_grad_norm_(params, ...)
  local o = options.arguments("clip_grad_norm_", "max_norm=nil, norm_type=2, error_if_nonfinite=false, foreach=true, *, max=nil", ...)
  if o.max_norm == nil then o.max_norm = o.max end
  options.number("clip_grad_norm_", "max_norm", o.max_norm)
  local order = order_of("clip_grad_norm_", o.norm_type)
  local list, groups = grads("clip_grad_norm_", params)
  if #list == 0 then return ops.zeros({}) end
  local ok, total = pcall(norm_among, list, groups, order)
  if not ok then fail((options.bare(total):gsub("^multi_norm", "clip_grad_norm_"))) end
  if o.error_if_nonfinite and not ops.isfinite(total):item() then
    give_back(list)
    fail("clip_grad_norm_: the norm of the gradients is " .. tostring(total:item()) .. "; nothing was scaled")
  end
  scale_all(list, ops.clamp(o.max_norm / (total + 1e-6), nil, 1))
  return give_back(list, total)
end

-- clip_grad_value_(params, clip_value): limits the elements of the gradients to -clip_value..clip_value.
function utils.clip_grad_value_(params, ...)
  local max = options.arguments("clip_grad_value_", "clip_value, foreach=true", ...).clip_value
  if type(max) ~= "number" or max < 0 or max ~= max then
    fail("clip_grad_value_: argument 2 (clip_value) must be a number from 0, got %s", options.shown(max))
  end
  local list = grads("clip_grad_value_", params)
  for _, g in ipairs(list) do M.clamp_(g, -max, max) end
  give_back(list)
end

local function tensors_of(who, n, params)
  params = flattened(params)
  local list = type(params) == "table" and (not rawget(params, "_parts") or params._name == "ParameterList")
  if not list or params[1] == nil and next(params) == nil then
    fail("%s: argument %d must be a list of tensors, such as net:parameters(), got %s", who, n, options.shown(params))
  end
  if getmetatable(params) == nil then options.items(who, "argument " .. n, params) end
  for i, p in ipairs(params) do
    if not core.is_tensor(p) then fail("%s: item %d of argument %d must be a tensor, got %s", who, i, n, options.shown(p)) end
  end
  return params
end
-- The elements of a list of parameters as one vector, with its history.
function utils.parameters_to_vector(params)
  return flat.join(tensors_of("parameters_to_vector", 1, params))
end
-- Writes a vector's elements into a list of parameters, in order.
function utils.vector_to_parameters(v, params)
  params = tensors_of("vector_to_parameters", 2, params)
  local total = 0
  for _, p in ipairs(params) do total = total + M.numel(p) end
  if not core.is_tensor(v) or M.dim(v) ~= 1 or M.numel(v) ~= total then
    fail("vector_to_parameters: argument 1 must be a vector of %d elements, got %s", total,
      core.is_tensor(v) and "shape " .. tostring(v.shape) or options.shown(v))
  end
  no_grad(flat.each, v, params, function(i, part) M.copy_(params[i], part) end)
end

-- The layer and the batch norm after it, both in eval mode, as one new layer.
local function fused(who, m, norm, dim)
  if not module.is_module(m) or not core.is_tensor(m.weight) then fail("%s: argument 1 must be a layer with a weight", who) end
  if not module.is_module(norm) or not norm.running_mean then fail("%s: argument 2 must be a batch norm with running statistics", who) end
  if m.training or norm.training then fail("%s: both must be in eval mode", who) end
  if m.weight.shape[dim] ~= norm.running_mean.shape[1] then
    fail("%s: the layer has %d channels%s, the batch norm %d", who, m.weight.shape[dim],
      (m.groups or 1) > 1 and dim == 2 and " in each group" or "", norm.running_mean.shape[1])
  end
  local copy = m:clone()
  no_grad(function()
    local weight, bias = fold_norm(copy.weight, copy.bias,
      {mean = norm.running_mean, var = norm.running_var, weight = norm.weight, bias = norm.bias, eps = norm.eps}, dim)
    copy.weight, copy.bias = module.Parameter(weight, copy.weight.requires_grad), module.Parameter(bias, copy.weight.requires_grad)
  end)
  return copy
end
-- fuse_conv_bn_eval(conv, bn, transpose=false): a convolution equivalent to conv followed by bn, both in eval mode. transpose: conv is a
-- transposed one, of one group.
function utils.fuse_conv_bn_eval(conv, bn, ...)
  local o = options.arguments("fuse_conv_bn_eval", "transpose=false", ...)
  return fused("fuse_conv_bn_eval", conv, bn, o.transpose and 2 or 1)
end
-- The same for a Linear and a BatchNorm1d after it.
function utils.fuse_linear_bn_eval(linear, bn) return fused("fuse_linear_bn_eval", linear, bn, 1) end

-- Removes prefix from names in a state dict, in place: such as that of a model wrapped by DistributedDataParallel or compile.
function utils.consume_prefix_in_state_dict_if_present(state, prefix)
  local who = "consume_prefix_in_state_dict_if_present"
  if type(state) ~= "table" or core.is_tensor(state) then fail("%s: argument 1 must be a state dict, got %s", who, options.shown(state)) end
  if type(prefix) ~= "string" then fail("%s: argument 2 (prefix) must be a string, got %s", who, options.shown(prefix)) end
  local moved = {}
  for name, t in pairs(state) do
    if type(name) == "string" and name:sub(1, #prefix) == prefix then moved[name] = t end
  end
  for name in pairs(moved) do state[name] = nil end
  for name, t in pairs(moved) do state[name:sub(#prefix + 1)] = t end
end

-- skip_init(nn.Linear, 3, 4): makes the module, for values that will be loaded, and leaves the random generators as they were.
function utils.skip_init(class, ...)
  options.expect("skip_init", 1, class, modes.callable(class), "a class of modules, such as nn.Linear")
  return require("tycho").fork_rng(class, ...)
end

-- Sequences of different lengths: padding and packing.
utils.rnn = {}
for _, name in ipairs {"pad_sequence", "unpad_sequence", "pack_padded_sequence", "pad_packed_sequence", "pack_sequence",
    "unpack_sequence", "PackedSequence"} do
  utils.rnn[name] = sequences[name]
end
options.told(utils.rnn, "nn.utils.rnn")
utils.fusion = options.told({fuse_conv_bn_eval = utils.fuse_conv_bn_eval, fuse_linear_bn_eval = utils.fuse_linear_bn_eval},
  "nn.utils.fusion")

local late = {prune = "tycho.nn.prune", parametrize = {"tycho.nn.parametrize"}, parametrizations = {"tycho.nn.parametrize"}}
for _, name in ipairs {"weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm"} do
  late[name] = {"tycho.nn.normalized"}
end
return options.told(utils, "nn.utils", nil, nil, late)
