-- Layers. Each is a class of its own: parameters in init, arithmetic in forward; names and defaults are PyTorch's.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local module = require "tycho.nn.module"
local F = require "tycho.nn.functional"
local init = require "tycho.nn.init_functions"
local fill = require("tycho.options").fill
local Module, Parameter = module.Module, module.Parameter

local nn = {Module = Module, Parameter = Parameter, functional = F, init = init, utils = require "tycho.nn.utils", is_module = module.is_module}

-- A class of this library. Sequential releases its results as soon as the next layer has used them.
local function layer(name)
  local class = Module:extend(name)
  class._library = true
  nn[name] = class
  return class
end

local function options(name, given, defaults) return fill(name, given, defaults, 3) end

local function whole(name, what, v)
  if type(v) ~= "number" or v < 1 or v % 1 ~= 0 then error(("%s: %s must be a whole number from 1, got %s"):format(name, what, tostring(v)), 3) end
  return v
end
local function pair(v) return type(v) == "table" and v or {v, v} end
local function text(v) return type(v) == "table" and table.concat(v, "x") or tostring(v) end

---- containers ----
local function container(name)
  local class = layer(name)
  class._is_list = true
  class._library = nil
  return class
end

local function append(self, m)
  if not module.is_module(m) then error(self._name .. ": a module is needed, got " .. (core.is_tensor(m) and "tensor" or type(m)), 3) end
  local n = #self._order + 1
  module.put(self, "module", n, m)
  rawset(m, "_label", tostring(n - 1))
  return self
end

local Sequential = container("Sequential")
function Sequential:init(...)
  for i = 1, select("#", ...) do append(self, (select(i, ...))) end
end
Sequential.append = append
function Sequential:forward(input)
  local x, mine = input, false           -- mine: only layers of the library itself have seen x
  for i = 1, #self._order do
    local m = self._parts[i]
    local y = m(x)
    local library = rawget(getmetatable(m)._class, "_library") == true
    if not rawequal(y, x) then
      if mine and library then M.free(x) end
      mine = library and core.is_tensor(y)
    else mine = mine and library end
    x = y
  end
  return x
end

local ModuleList = container("ModuleList")
function ModuleList:init(list)
  for _, m in ipairs(list or {}) do append(self, m) end
end
ModuleList.append = append

local ModuleDict = layer("ModuleDict")
ModuleDict._library = nil
function ModuleDict:init(map)
  local names = {}
  for k in pairs(map or {}) do names[#names + 1] = k end
  table.sort(names)
  for _, k in ipairs(names) do self[k] = map[k] end
end

local Identity = layer("Identity")
function Identity:forward(x) return x end

---- linear ----
local Linear = layer("Linear")
-- Linear(in, out, {bias=true}): x (..., in) -> (..., out)
function Linear:init(n_in, n_out, o)
  o = options("Linear", o, {bias = true})
  self.in_features, self.out_features = whole("Linear", "in_features", n_in), whole("Linear", "out_features", n_out)
  local bound = 1 / math.sqrt(n_in)
  self.weight = Parameter(init.uniform_(ops.empty(n_out, n_in), -bound, bound))
  if o.bias then self.bias = Parameter(init.uniform_(ops.empty(n_out), -bound, bound)) end
end
function Linear:forward(x) return ops.linear(x, self.weight, self.bias) end
function Linear:extra_repr() return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features, self.out_features, tostring(self.bias ~= nil)) end

local Embedding = layer("Embedding")
-- Embedding(count, size): ids from 1 to count -> vectors
function Embedding:init(count, size)
  self.num_embeddings, self.embedding_dim = whole("Embedding", "num_embeddings", count), whole("Embedding", "embedding_dim", size)
  self.weight = Parameter(ops.randn(count, size))
end
function Embedding:forward(ids) return F.embedding(ids, self.weight) end
function Embedding:extra_repr() return ("%d, %d"):format(self.num_embeddings, self.embedding_dim) end

---- convolution, pooling ----
local Conv2d = layer("Conv2d")
-- Conv2d(in, out, kernel, {stride=1, padding=0, dilation=1, groups=1, bias=true}): (N, in, H, W) -> (N, out, H', W')
function Conv2d:init(n_in, n_out, kernel, o)
  o = options("Conv2d", o, {stride = 1, padding = 0, dilation = 1, groups = 1, bias = true})
  self.in_channels, self.out_channels = whole("Conv2d", "in_channels", n_in), whole("Conv2d", "out_channels", n_out)
  self.kernel_size, self.stride, self.padding, self.dilation, self.groups = pair(kernel), o.stride, o.padding, o.dilation, whole("Conv2d", "groups", o.groups)
  if n_in % o.groups ~= 0 or n_out % o.groups ~= 0 then error(("Conv2d: groups %d must divide %d and %d channels"):format(o.groups, n_in, n_out), 2) end
  local k = self.kernel_size
  local bound = 1 / math.sqrt(n_in / o.groups * k[1] * k[2])
  self.weight = Parameter(init.uniform_(ops.empty(n_out, n_in / o.groups, k[1], k[2]), -bound, bound))
  if o.bias then self.bias = Parameter(init.uniform_(ops.empty(n_out), -bound, bound)) end
end
function Conv2d:forward(x) return ops.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups) end
function Conv2d:extra_repr()
  return ("%d, %d, kernel_size=%s, stride=%s, padding=%s"):format(self.in_channels, self.out_channels, text(self.kernel_size), text(self.stride), text(self.padding))
end

for name, fn in pairs {MaxPool2d = "max_pool2d", AvgPool2d = "avg_pool2d"} do
  local Pool = layer(name)
  function Pool:init(kernel, o)
    o = options(name, o, {stride = false, padding = 0})
    self.kernel_size, self.stride, self.padding = kernel, o.stride or nil, o.padding
  end
  function Pool:forward(x) return F[fn](x, self.kernel_size, self.stride, self.padding) end
  function Pool:extra_repr() return ("kernel_size=%s, stride=%s, padding=%s"):format(text(self.kernel_size), text(self.stride or self.kernel_size), text(self.padding)) end
end
local AdaptiveAvgPool2d = layer("AdaptiveAvgPool2d")
function AdaptiveAvgPool2d:init(size) self.output_size = size end
function AdaptiveAvgPool2d:forward(x) return ops.adaptive_avg_pool2d(x, self.output_size) end
function AdaptiveAvgPool2d:extra_repr() return "output_size=" .. text(self.output_size) end

---- normalisation, dropout ----
for name, dims in pairs {BatchNorm1d = {2, 3}, BatchNorm2d = {4, 4}} do
  local Norm = layer(name)
  -- (channels, {eps=1e-5, momentum=0.1, affine=true, track_running_stats=true})
  function Norm:init(n, o)
    o = options(name, o, {eps = 1e-5, momentum = 0.1, affine = true, track_running_stats = true})
    self.num_features, self.eps, self.momentum = whole(name, "num_features", n), o.eps, o.momentum
    if o.affine then self.weight, self.bias = Parameter(ops.ones(n)), Parameter(ops.zeros(n)) end
    if o.track_running_stats then
      self:register_buffer("running_mean", ops.zeros(n))
      self:register_buffer("running_var", ops.ones(n))
      self:register_buffer("num_batches_tracked", ops.zeros({}, {dtype = "int64"}))
    end
  end
  function Norm:forward(x)
    local d = M.dim(x)
    if d < dims[1] or d > dims[2] then error(("%s: the input has shape %s; %d dims are needed"):format(name, tostring(x.shape), dims[2]), 2) end
    local batch = self.training or self.running_mean == nil
    if self.training and self.num_batches_tracked then self.num_batches_tracked:add_(1) end
    return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, {training = batch, momentum = self.momentum, eps = self.eps})
  end
  function Norm:extra_repr() return ("%d, eps=%g, momentum=%g"):format(self.num_features, self.eps, self.momentum) end
end

local LayerNorm = layer("LayerNorm")
-- LayerNorm(size | {sizes}, {eps=1e-5, elementwise_affine=true})
function LayerNorm:init(size, o)
  o = options("LayerNorm", o, {eps = 1e-5, elementwise_affine = true})
  self.normalized_shape, self.eps = type(size) == "table" and size or {size}, o.eps
  if o.elementwise_affine then self.weight, self.bias = Parameter(ops.ones(self.normalized_shape)), Parameter(ops.zeros(self.normalized_shape)) end
end
function LayerNorm:forward(x) return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, {eps = self.eps}) end
function LayerNorm:extra_repr() return ("%s, eps=%g"):format(text(self.normalized_shape), self.eps) end

local Dropout = layer("Dropout")
function Dropout:init(p)
  self.p = p or 0.5
  if type(self.p) ~= "number" or not (self.p >= 0 and self.p <= 1) then error("Dropout: p must be in 0..1, got " .. tostring(p), 2) end
end
function Dropout:forward(x) return F.dropout(x, self.p, {training = self.training}) end
function Dropout:extra_repr() return ("p=%g"):format(self.p) end

---- activations ----
for name, fn in pairs {ReLU = "relu", SiLU = "silu", Sigmoid = "sigmoid", Tanh = "tanh"} do
  local Act = layer(name)
  function Act:forward(x) return ops[fn](x) end
end
local GELU = layer("GELU")
function GELU:init(o) self.approximate = options("GELU", o, {approximate = "none"}).approximate end
function GELU:forward(x) return ops.gelu(x, self.approximate) end
function GELU:extra_repr() return "approximate=" .. self.approximate end
for name, d in pairs {LeakyReLU = {"leaky_relu", 0.01}, ELU = {"elu", 1}} do
  local Act = layer(name)
  function Act:init(k) self.parameter = k or d[2] end
  function Act:forward(x) return ops[d[1]](x, self.parameter) end
  function Act:extra_repr() return tostring(self.parameter) end
end
local Softplus = layer("Softplus")
function Softplus:init(o) self.options = options("Softplus", o, {beta = 1, threshold = 20}) end
function Softplus:forward(x) return ops.softplus(x, self.options) end
for name, fn in pairs {Softmax = "softmax", LogSoftmax = "log_softmax"} do
  local Act = layer(name)
  function Act:init(dim) self.dim = dim or -1 end
  function Act:forward(x) return ops[fn](x, self.dim) end
  function Act:extra_repr() return "dim=" .. self.dim end
end

local Flatten = layer("Flatten")
function Flatten:init(first, last) self.first, self.last = first or 2, last or -1 end
function Flatten:forward(x) return M.flatten(x, self.first, self.last) end

---- losses: options are the functions' ----
for name, fn in pairs {CrossEntropyLoss = "cross_entropy", NLLLoss = "nll_loss", MSELoss = "mse_loss", L1Loss = "l1_loss", SmoothL1Loss = "smooth_l1_loss",
  BCEWithLogitsLoss = "binary_cross_entropy_with_logits"} do
  local Loss = layer(name)
  function Loss:init(o)
    if o ~= nil and type(o) ~= "table" then error(name .. ": options must be a table, got " .. type(o), 2) end
    self.options = o or {}
    for k, v in pairs(self.options) do if core.is_tensor(v) then self:register_buffer(k, v) end end
  end
  function Loss:forward(x, target)
    local o = {}
    for k, v in pairs(self.options) do o[k] = core.is_tensor(v) and self[k] or v end
    return F[fn](x, target, o)
  end
end

---- summary ----
-- A table of the layers that forward runs for an input of the given sizes (or of the given tensors): results, parameters.
function nn.summary(model, sizes, o)
  o = options("summary", o, {dtype = "float32"})
  local input = core.is_tensor(sizes) and sizes or ops.zeros(sizes, {dtype = o.dtype})
  local rows, depth_of = {}, {}
  for name, m in model:named_modules() do depth_of[m] = name end
  local function count(m)
    local n = 0
    for _, p in ipairs(m:parameters()) do n = n + M.numel(p) end
    return n
  end
  local training = {}
  for _, m in ipairs(model:modules()) do training[m] = m.training end
  local old = core.set_grad_enabled(false)
  module.observe(function(m, y)
    if #m:children() == 0 then rows[#rows + 1] = {depth_of[m] or "", m._name, core.is_tensor(y) and tostring(y.shape) or "-", count(m)} end
  end)
  local ok, err = pcall(function() model:eval()(input) end)
  module.observe(nil)
  core.set_grad_enabled(old)
  for m, t in pairs(training) do rawset(m, "training", t) end
  if not ok then error(err, 0) end
  local lines = {("%-28s %-18s %-20s %12s"):format("layer", "kind", "output", "parameters"), ("-"):rep(81)}
  for _, r in ipairs(rows) do lines[#lines + 1] = ("%-28s %-18s %-20s %12d"):format(r[1] == "" and "(model)" or r[1], r[2], r[3], r[4]) end
  lines[#lines + 1] = ("-"):rep(81)
  lines[#lines + 1] = ("%-68s %12d"):format("total parameters", count(model))
  return table.concat(lines, "\n")
end

return nn
