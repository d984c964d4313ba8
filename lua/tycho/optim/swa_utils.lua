-- Averages of a model's parameters over training: by a function of the user's, an exponential moving average if decay is given, else the
-- mean of all updates (stochastic weight averaging, Izmailov et al. 2018).
local core = require "tycho.core"
local options = require "tycho.options"
local modes = require "tycho.modes"
local no_grad = modes.no_grad
local Module, is_module = require("tycho.nn.module").Module, require("tycho.nn.module").is_module
local fail = options.fail
local ops, M = core.ops, core.methods
local swa_utils = {}

-- By averaging function: gives the weight of the new value from the count, a number, or a tensor, so that the count stays on its device.
local weight_of = setmetatable({}, {__mode = "k"})
-- first: nil, or a boolean tensor: whether this is the first value, which is copied.
local function mix(average, values, weight, first)
  local at, whether = {}, {}               -- by device
  for i, p in ipairs(average) do
    local d = p.device
    at[d] = at[d] or (core.is_tensor(weight) and M.to(weight, d) or weight)
    if first then
      whether[d] = whether[d] or M.to(first, d)
      M.copy_(p, ops.where(whether[d], values[i], ops.lerp(p, values[i], at[d])))
    else M.lerp_(p, values[i], at[d]) end
  end
end
local function averaging(weight)
  local function fn(average, values, n) mix(average, values, weight(n)) end
  weight_of[fn] = weight
  return fn
end
-- The mean of all values, as AveragedModel's multi_avg_fn: a function (average, values, n) of two lists of tensors, which changes the first
-- list's in place; n: the number of updates so far.
function swa_utils.get_swa_multi_avg_fn() return averaging(function(n) return 1 / (n + 1) end) end
-- get_ema_multi_avg_fn(decay=0.999): an exponential moving average, decay * average + (1 - decay) * value, as multi_avg_fn.
function swa_utils.get_ema_multi_avg_fn(decay)
  decay = options.named("get_ema_multi_avg_fn", "decay", decay) or 0.999
  if type(decay) ~= "number" or not (decay >= 0 and decay <= 1) then
    fail("get_ema_multi_avg_fn: decay must be in 0..1, got " .. options.shown(decay))
  end
  return averaging(function() return 1 - decay end)
end
-- The same for one tensor, as a function that returns the new average.
local function of_one(multi)
  return function(average, value, n)
    local new = {ops.clone(average)}
    multi(new, {value}, n)
    return new[1]
  end
end
-- The mean of all values, as AveragedModel's avg_fn: a function (average, value, n) of tensors that returns the new average.
function swa_utils.get_swa_avg_fn() return of_one(swa_utils.get_swa_multi_avg_fn()) end
-- get_ema_avg_fn(decay=0.999): an exponential moving average, as avg_fn.
function swa_utils.get_ema_avg_fn(decay) return of_one(swa_utils.get_ema_multi_avg_fn(decay)) end

local AveragedModel = Module:extend("AveragedModel")
-- AveragedModel(model, {device=, decay=, avg_fn=, multi_avg_fn=, use_buffers=false}): a copy of the model, in .module, which it runs, on
-- the model's device unless given. Its parameters are averages: exponential with decay, by the user's function if given, else the mean of
-- all updates (stochastic weight averaging, Izmailov et al. 2018). use_buffers: floating buffers are averaged too; others are copied.
function AveragedModel:init(model, o)
  if not is_module(model) then fail("AveragedModel: argument 1 must be a module, got %s", options.shown(model)) end
  if type(o) == "string" then o = {device = o} end
  o = options.fill("AveragedModel", o, {device = options.none, decay = options.none, avg_fn = options.none,
    multi_avg_fn = options.none, use_buffers = false})
  if (o.decay and 1 or 0) + (o.avg_fn and 1 or 0) + (o.multi_avg_fn and 1 or 0) > 1 then
    fail "AveragedModel: only one of decay, avg_fn and multi_avg_fn can be given"
  end
  for _, name in ipairs {"avg_fn", "multi_avg_fn"} do
    if o[name] and not modes.callable(o[name]) then fail("AveragedModel: %s must be a function, got %s", name, options.shown(o[name])) end
  end
  self.module = model:clone():requires_grad_(false)
  if o.device then self.module:to(o.device) end
  self.use_buffers = o.use_buffers
  self.average = o.multi_avg_fn or (o.decay and swa_utils.get_ema_multi_avg_fn(o.decay)) or
    (not o.avg_fn and swa_utils.get_swa_multi_avg_fn()) or function(average, values, n)
      for i, p in ipairs(average) do M.copy_(p, o.avg_fn(p, values[i], n)) end
    end
  local first = self.module:parameters()[1]
  self:register_buffer("n_averaged", ops.zeros({}, {dtype = "int64", device = first and first.device or "cpu"}))
end
function AveragedModel:forward(...) return self.module(...) end

-- Adds the model's current parameters to the averages; the first time they are copied.
function AveragedModel:update_parameters(model)
  options.expect("update_parameters", 1, model, is_module(model), "a module")
  local weight = weight_of[self.average]
  local ok, err = pcall(no_grad, function()
    local mine, theirs, values = self.module:parameters(), model:parameters(), {}
    if #mine ~= #theirs then error(("update_parameters: the model has %d parameters, the average has %d"):format(#theirs, #mine), 0) end
    local of = {}
    for name, b in model:named_buffers() do of[name] = b end
    for i, p in ipairs(theirs) do values[i] = p end
    for name, b in self.module:named_buffers() do
      if of[name] == nil then error(("update_parameters: the model has no buffer '%s'"):format(name), 0) end
      if not self.use_buffers or not M.is_floating_point(b) then M.copy_(b, of[name])
      else mine[#mine + 1], values[#values + 1] = b, of[name] end
    end
    for i, v in ipairs(values) do values[i] = M.to(M.to(v:detach(), mine[i].dtype), mine[i].device) end
    local last = self.counted              -- a count written here last time isn't a first one's
    local later = last and last.tensor == self.n_averaged and last.version == M._version(self.n_averaged)
    local n = weight and M.double(self.n_averaged) or later and last.count or self.n_averaged:item()
    if weight then mix(mine, values, ops.mul(ops.fill(n, 1), weight(n)), not later and ops.eq(n, 0) or nil)
    elseif n == 0 then for i, p in ipairs(mine) do M.copy_(p, values[i]) end
    else self.average(mine, values, n) end
    M.add_(self.n_averaged, 1)
    self.counted = {tensor = self.n_averaged, version = M._version(self.n_averaged), count = not weight and n + 1 or nil}
  end)
  if not ok then fail(err) end
end

-- update_bn(loader, model, {device=}): recomputes batch norm's running statistics, as means over the loader's batches, whose first field is
-- the input: for an averaged model, which has never run.
function swa_utils.update_bn(loader, model, device)
  options.expect("update_bn", 2, model, is_module(model), "a module")
  options.expect("update_bn", 1, loader, type(loader) == "table" or type(loader) == "function", "a loader or a list of batches")
  if type(device) == "table" then device = options.fill("update_bn", device, {device = options.none}).device or nil end
  if device ~= nil and type(device) ~= "string" then fail("update_bn: device must be a string, got %s", options.shown(device)) end
  local norms, momenta = {}, {}
  for _, m in ipairs(model:modules()) do if m.running_mean then norms[m], momenta[m] = true, m.momentum end end
  if not next(norms) then return end
  local training = {}
  for _, m in ipairs(model:modules()) do training[m] = m.training end
  model:train()
  for m in pairs(norms) do
    M.zero_(m.running_mean)
    M.fill_(m.running_var, 1)
    M.zero_(m.num_batches_tracked)
  end
  local k = 0
  local ok, err = pcall(no_grad, function()
    local batches, i = loader, 0
    if type(loader) == "table" and type(loader.iter) == "function" then batches = loader:iter()
    elseif type(loader) == "table" then batches = function() i = i + 1 return loader[i] end end          -- a list of batches
    for x in batches do
      k = k + 1
      for m in pairs(norms) do m.momentum = 1 / k end
      if type(x) == "table" and not core.is_tensor(x) then x = x[1] end
      model(device and M.to(x, device) or x)
    end
  end)
  for m in pairs(norms) do m.momentum = momenta[m] end
  for m, on in pairs(training) do rawset(m, "training", on) end
  if not ok then error(err, 0) end
end

swa_utils.AveragedModel = AveragedModel
return options.told(swa_utils, "optim.swa_utils", nil, nil, {SWALR = {"tycho.optim.lr_scheduler"}})
