-- tycho.cuda.make_graphed_callables: forward and backward of a part of a model, each as one graph launch.
--
-- Idea: the part's work for sample arguments is recorded as one graph, its backward as another in the same memory pool. An
-- autograd.Function copies arguments and gradients into the graphs' tensors and launches them. Unlike with tycho.compile, the code around
-- the part is free; also unlike it, nothing is checked except that parameters and buffers are the recorded ones: the part must do the
-- same work each time.
-- Invariant: forwards are recorded in the order of the list and backwards in reverse, as they will run.
local core = require "tycho.core"
local autograd = require "tycho.autograd"
local cuda = require "tycho.cuda"
local modes = require "tycho.modes"
local module = require "tycho.nn.module"
local options = require "tycho.options"
local fail = options.fail
local M = core.methods
local WHO = "make_graphed_callables"

-- The tensors in the list, held beyond the running scope.
local function kept(list)
  for _, x in pairs(list) do if x then core.keep(x) end end
  return list
end

-- The i-th part: its sample arguments, and the inputs that gradients flow to, its parameters last.
local function part_of(i, fn, args)
  if not modes.callable(fn) then fail("%s: callable %d must be a module or a function, got %s", WHO, i, options.shown(fn)) end
  local part = {fn = fn, args = args, inputs = {}, runs = 0, training = module.is_module(fn) and fn.training}
  if type(args) ~= "table" then fail("%s: sample arguments %d must be a list of tensors, got %s", WHO, i, options.shown(args)) end
  for k, x in ipairs(args) do
    if not core.is_tensor(x) or x.device == "cpu" then
      fail("%s: sample argument %d of callable %d must be a tensor on a GPU, got %s", WHO, k, i,
        core.is_tensor(x) and "one on the cpu" or options.shown(x))
    end
    part.inputs[k] = x
  end
  part.places = {}                         -- of parameters and buffers: the table, the key, the tensor, its dtype
  if module.is_module(fn) then
    for _, p in ipairs(fn:parameters()) do part.inputs[#part.inputs + 1] = p end
    for _, kind in ipairs {"parameter", "buffer"} do
      module.walk(fn, kind, "", nil, function(_, p, owner, own) part.places[#part.places + 1] = {owner._parts, own, p, p.dtype} end)
    end
  end
  kept(part.inputs)
  part.forward = module.is_module(fn) and function(...) return fn:forward(...) end or fn
  return part
end

local function results_of(part)
  local out = {part.forward(unpack(part.args))}
  for i = 1, #out do
    if not core.is_tensor(out[i]) then fail("%s: result %d must be a tensor, got %s", WHO, i, options.shown(out[i])) end
  end
  return out
end

-- Gradients by input, false where there is none. grads: the results' gradients.
local function gradients_of(part, results, grads, unused)
  local roots, given, inputs, places = {}, {}, {}, {}
  for i, y in ipairs(results) do
    if y.requires_grad then roots[#roots + 1], given[#given + 1] = y, grads[i] end
  end
  for i, x in ipairs(part.inputs) do
    if x.requires_grad then inputs[#inputs + 1], places[#inputs + 1] = x, i end
  end
  local out = {}
  for i = 1, #part.inputs do out[i] = false end
  if #roots > 0 and #inputs > 0 then
    local found = autograd.grad(roots, inputs, {grad_outputs = given, allow_unused = unused})
    for k, i in ipairs(places) do out[i] = found[k] or false end
  end
  return out
end

local function ones_for(results)
  local out = {}
  for i, y in ipairs(results) do out[i] = core.ops.ones(y.shape, {dtype = y.dtype, device = y.device}) end
  return out
end

-- Copies a call's tensors into the recorded ones.
local function take(what, static, given)
  for i, x in ipairs(static) do
    local y = given[i]
    if not core.is_tensor(y) or y.dtype ~= x.dtype or y.shape ~= x.shape or y.device ~= x.device then
      fail("%s: %s %d must be a %s tensor of shape %s on %s like the sample, got %s", WHO, what, i, x.dtype, x.shape, x.device,
        core.is_tensor(y) and ("%s of shape %s on %s"):format(y.dtype, tostring(y.shape), y.device) or options.shown(y))
    end
    if not rawequal(x, y) then M.copy_(x, y) end
  end
end

local function bare(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = x and M.detach(x) or nil end
  return out
end

local function assembled(part)
  local n = #part.inputs
  local F = autograd.Function {
    forward = function(ctx, ...)
      take("argument", part.args, {...})
      part.graph:replay()
      part.runs = part.runs + 1
      ctx.run = part.runs
      return unpack(bare(part.results))
    end,
    backward = function(ctx, ...)
      local g = {...}
      if core.is_grad_enabled() then fail("%s: there is no second derivative through a graph", WHO) end
      if ctx.run ~= part.runs then fail("%s: a later forward overwrote what this backward needs: call backward before it", WHO) end
      take("gradient", part.seeds, g)
      part.back:replay()
      return unpack(bare(part.grads), 1, n)
    end}
  local params = {unpack(part.inputs, #part.args + 1)}
  return function(...)
    if select("#", ...) ~= #part.args then
      fail("%s: %d arguments were recorded, got %d", WHO, #part.args, select("#", ...))
    end
    local all = {...}
    for i, x in ipairs(part.args) do
      if core.is_grad_enabled() and core.is_tensor(all[i]) and all[i].requires_grad and not x.requires_grad then
        fail("%s: argument %d requires grad, the sample did not", WHO, i)
      end
    end
    for i, p in ipairs(params) do all[#part.args + i] = p end
    return F(unpack(all, 1, n))
  end
end

-- Records the parts' graphs, on the current GPU.
local function record(parts, o)
  local pool, side = cuda.graph_pool_handle(), cuda.Stream()
  side:wait_stream(cuda.current_stream())
  cuda.stream(side, function()                           -- runs what is made at first use
    for _, part in ipairs(parts) do
      for _ = 1, o.num_warmup_iters do
        local results = results_of(part)
        gradients_of(part, results, ones_for(results), o.allow_unused_input)
      end
    end
  end)
  cuda.current_stream():wait_stream(side)
  for _, part in ipairs(parts) do part.graph, part.results = cuda.graph({pool = pool}, results_of, part) end
  for i = #parts, 1, -1 do
    local part = parts[i]
    part.seeds = kept(ones_for(part.results))
    part.back, part.grads = cuda.graph({pool = pool}, gradients_of, part, part.results, part.seeds, o.allow_unused_input)
    part.results, part.grads = kept(bare(part.results)), kept(part.grads)      -- frees what was kept for backward, for the parts before
  end
end

return function(callables, sample_args, o)
  o = options.fill(WHO, o, {num_warmup_iters = 3, allow_unused_input = false})
  local single = modes.callable(callables)
  if not single and type(callables) ~= "table" then
    fail("%s: argument 1 must be a module, a function or a list of them, got %s", WHO, options.shown(callables))
  end
  if core.is_tensor(sample_args) then sample_args = {sample_args} end
  if type(sample_args) ~= "table" then fail("%s: argument 2 must be a list of tensors, got %s", WHO, options.shown(sample_args)) end
  local fns, samples = single and {callables} or callables, single and {sample_args} or sample_args
  if #fns ~= #samples then fail("%s: %d callables, but sample arguments for %d", WHO, #fns, #samples) end
  local parts, devices, device = {}, {}, nil
  for i, fn in ipairs(fns) do parts[i] = part_of(i, fn, core.is_tensor(samples[i]) and {samples[i]} or samples[i]) end
  for _, part in ipairs(parts) do
    for _, x in ipairs(part.inputs) do
      if core.is_tensor(x) and x.device ~= "cpu" and not devices[x.device] then
        if device then fail("%s: samples and parameters are on %s and %s; they must be on one GPU", WHO, device, x.device) end
        devices[x.device], device = true, x.device
      end
    end
  end
  cuda.device(device or cuda.current_device(), record, parts, o)
  local out = {}
  for i, part in ipairs(parts) do
    local run = assembled(part)
    if module.is_module(part.fn) then
      local plain = part.fn.forward
      rawset(part.fn, "forward", function(self, ...)
        local recorded = rawequal(self, part.fn) and self.training == part.training       -- a clone has other parameters
        for _, place in ipairs(part.places) do
          recorded = recorded and rawequal(place[1][place[2]], place[3]) and place[3].dtype == place[4]
        end
        if not recorded then return plain(self, ...) end
        return run(...)
      end)
      out[i] = part.fn
    else out[i] = run end
  end
  return single and out[1] or out
end
