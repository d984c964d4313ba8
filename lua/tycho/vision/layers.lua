-- Layers of detectors and of today's convolutional networks, as in torchvision.ops.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local nn = require "tycho.nn"
local plain = require "tycho.vision.plain"
local V = require "tycho.vision.boxes"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local define = core.define

---- left out while training ----
local function share(who, p)
  options.number(who, "p", p)
  if not (p >= 0 and p <= 1) then fail("%s: p must be in 0..1, got %g", who, p) end
end
-- stochastic_depth(input, p, mode, training=true): in training, with probability p zeros, else input / (1 - p); mode: "batch" for all of
-- it, "row" for each row separately.
V.stochastic_depth = define("stochastic_depth", "input, p:number, mode:enum(batch,row), training:bool=true", function(x, p, mode, training)
  share("stochastic_depth", p)
  if not training or p == 0 then return x end
  if p == 1 then return x * 0 end
  local shape = {mode == "row" and x.shape[1] or 1}
  for d = 2, M.dim(x) do shape[d] = 1 end
  return x * (ops.bernoulli(ops.full(shape, 1 - p, {dtype = x.dtype, device = x.device})) / (1 - p))
end)
-- StochasticDepth(p, mode): stochastic_depth as a layer, for residual branches.
local StochasticDepth = plain("StochasticDepth", "p, mode", nil, function(self)
  share("StochasticDepth", self.p)
  if self.mode ~= "batch" and self.mode ~= "row" then
    fail("StochasticDepth: mode must be \"batch\" or \"row\", got %s", options.shown(self.mode))
  end
end)
V.StochasticDepth = StochasticDepth
function StochasticDepth:forward(x) return V.stochastic_depth(x, self.p, self.mode, self.training) end

-- Defines the function and the layer of these names, for that many dims.
local function drop_block(class, name, dims)
  local function check(who, p, block)
    share(who, p)
    options.whole(who, "block_size", block, 1)
  end
  V[name] = define(name, "input, p:number, block_size:int, *, eps:number=1e-6, training:bool=true", function(x, p, block, eps, training)
    check(name, p, block)
    if M.dim(x) ~= dims + 2 then fail("%s: argument 1 must have %d dims, got shape %s", name, dims + 2, tostring(x.shape)) end
    if not training or p == 0 or M.numel(x) == 0 then return x end
    local places, gamma, padding = {x.shape[1], x.shape[2]}, p, {}
    for d = 3, dims + 2 do block = math.min(block, x.shape[d]) end
    for d = 3, dims + 2 do
      places[d] = x.shape[d] - block + 1
      gamma = gamma * x.shape[d] / (block * places[d])
      padding[#padding + 1], padding[#padding + 2] = block - 1, block - 1
    end
    local first = ops.bernoulli(ops.full(places, math.min(gamma, 1), {dtype = x.dtype, device = x.device}))  -- a block's upper left element
    local keep = 1 - F["max_pool" .. dims .. "d"](ops.pad_constant(first, padding), block, 1)
    return x * keep * (M.numel(keep) / (ops.sum(keep, {dtype = x.dtype == "float64" and "float64" or "float32"}) + eps)):to(x.dtype)
  end)
  V[class] = plain(class, "p, block_size, *, eps=1e-6", nil, function(self) check(class, self.p, self.block_size) end)
  V[class].forward = function(self, x) return V[name](x, self.p, self.block_size, {eps = self.eps, training = self.training}) end
end
-- drop_block2d(input, p, block_size, {eps=1e-6, training=true}): in training, zeros blocks of block_size x block_size elements of each
-- channel of (N, C, H, W), about the share p of all elements, and scales the others so that their sum stays (Ghiasi et al. 2018).
-- DropBlock2d(p, block_size, {eps=1e-6}) is the layer.
drop_block("DropBlock2d", "drop_block2d", 2)
-- drop_block3d(input, p, block_size, {eps=1e-6, training=true}): drop_block2d of volumes (N, C, D, H, W); DropBlock3d is the layer.
drop_block("DropBlock3d", "drop_block3d", 3)

---- blocks ----
-- Permute(dims): permute as a layer.
V.Permute = plain("Permute", "dims", function(x, dims) return M.permute(x, dims) end)

-- Appends a layer made by class, unless that is nil or false.
local function append(list, class, ...)
  if class then list[#list + 1] = class(...) end
end
local BLOCK = "in_channels, out_channels, kernel_size=3, stride=1, padding=nil, groups=1, norm_layer=nil, activation_layer=nil, \z
  dilation=1, inplace=true, bias=nil"
local function conv_norm_activation(name, dims)
  local Block = nn.Sequential:extend(name)
  V[name] = Block
  -- Conv2dNormActivation(in_channels, out_channels, kernel_size=3, stride=1, padding=nil, groups=1, norm_layer=nn.BatchNorm2d,
  -- activation_layer=nn.ReLU, dilation=1, {bias=nil}): a convolution that keeps the size (unless padding is given),
  -- norm_layer(out_channels) and activation_layer(); false: none. bias: by default only without a norm. Conv3dNormActivation: of volumes.
  function Block:init(...)
    local o = options.arguments(name, BLOCK, ...)
    local norm = o.norm_layer == nil and nn[("BatchNorm%dd"):format(dims)] or o.norm_layer
    local activation, padding, bias = o.activation_layer == nil and nn.ReLU or o.activation_layer, o.padding, o.bias
    if padding == nil then
      local function of(v, i) return tonumber(type(v) == "table" and v[i] or v) or 1 end       -- what is no number, the convolution refuses
      padding = {}
      for i = 1, dims do padding[i] = math.floor((of(o.kernel_size, i) - 1) / 2) * of(o.dilation, i) end
    end
    if bias == nil then bias = not norm end
    local members, conv = {}, nn[("Conv%dd"):format(dims)]
    append(members, conv, o.in_channels, o.out_channels, o.kernel_size, o.stride, padding, o.dilation, o.groups, bias)
    append(members, norm, o.out_channels)
    append(members, activation)
    nn.Sequential.init(self, members)
    self.out_channels = o.out_channels
  end
end
conv_norm_activation("Conv2dNormActivation", 2)
conv_norm_activation("Conv3dNormActivation", 3)

-- MLP(in_channels, hidden_channels, norm_layer=nil, activation_layer=nn.ReLU, inplace=nil, bias=true, dropout=0): Linear layers to each of
-- the sizes of the list hidden_channels, each but the last followed by norm_layer(size), activation_layer() and Dropout, the last by
-- Dropout.
local MLP = nn.Sequential:extend("MLP")
V.MLP = MLP
function MLP:init(...)
  local o = options.arguments("MLP",
    "in_channels, hidden_channels, norm_layer=nil, activation_layer=nil, inplace=nil, bias=true, dropout=0", ...)
  local sizes, members, from = o.hidden_channels, {}, o.in_channels
  local activation = o.activation_layer == nil and nn.ReLU or o.activation_layer
  if type(sizes) ~= "table" or #sizes == 0 then
    fail("MLP: hidden_channels must be a list of sizes, got %s", options.shown(sizes))
  end
  for i, size in ipairs(sizes) do
    append(members, nn.Linear, from, size, {bias = o.bias})
    if i < #sizes then
      append(members, o.norm_layer, size)
      append(members, activation)
    end
    append(members, nn.Dropout, o.dropout)
    from = size
  end
  nn.Sequential.init(self, members)
end

-- SqueezeExcitation(input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid): scales each channel by a function
-- of all channels' means (Hu et al. 2018).
local SqueezeExcitation = nn.Module:extend("SqueezeExcitation")
V.SqueezeExcitation = SqueezeExcitation
function SqueezeExcitation:init(...)
  local o = options.arguments("SqueezeExcitation", "input_channels, squeeze_channels, activation=nil, scale_activation=nil", ...)
  self.avgpool = nn.AdaptiveAvgPool2d(1)
  self.fc1 = nn.Conv2d(o.input_channels, o.squeeze_channels, 1)
  self.fc2 = nn.Conv2d(o.squeeze_channels, o.input_channels, 1)
  self.activation, self.scale_activation = (o.activation or nn.ReLU)(), (o.scale_activation or nn.Sigmoid)()
end
function SqueezeExcitation:forward(x)
  return x * self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x)))))
end

-- FrozenBatchNorm2d(num_features, eps=1e-5): batch norm in evaluation, whatever the mode, whose statistics, weight and bias are buffers.
local FrozenBatchNorm2d = nn.Module:extend("FrozenBatchNorm2d")
V.FrozenBatchNorm2d = FrozenBatchNorm2d
function FrozenBatchNorm2d:init(...)
  local o = options.arguments("FrozenBatchNorm2d", "num_features, eps=1e-5", ...)
  local n = options.whole("FrozenBatchNorm2d", "num_features", o.num_features, 1)
  self.num_features, self.eps = n, options.number("FrozenBatchNorm2d", "eps", o.eps, 0)
  for name, value in pairs {weight = 1, bias = 0, running_mean = 0, running_var = 1} do self:register_buffer(name, ops.full({n}, value)) end
  self:register_load_state_dict_pre_hook(function(_, state, prefix) state[prefix .. "num_batches_tracked"] = nil end)
end
function FrozenBatchNorm2d:forward(x)
  return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, false, 0, self.eps)
end
function FrozenBatchNorm2d:extra_repr() return ("%d, eps=%g"):format(self.num_features, self.eps) end

---- pyramids ----
-- LastLevelMaxPool(): one more level of a pyramid: every second pixel of the coarsest.
local LastLevelMaxPool = plain("LastLevelMaxPool", "")
V.LastLevelMaxPool = LastLevelMaxPool
function LastLevelMaxPool:forward(results)
  results[#results + 1] = F.max_pool2d(results[#results], 1, 2, 0)
  return results
end
-- LastLevelP6P7(in_channels, out_channels): two more levels, by convolutions of stride 2 (Lin et al. 2017, RetinaNet): of the coarsest
-- result if in_channels and out_channels are the same, else of the coarsest input.
local LastLevelP6P7 = nn.Module:extend("LastLevelP6P7")
V.LastLevelP6P7 = LastLevelP6P7
function LastLevelP6P7:init(n_in, n_out)
  self.p6 = nn.Conv2d(n_in, n_out, 3, 2, 1)
  self.p7 = nn.Conv2d(n_out, n_out, 3, 2, 1)
  for _, conv in ipairs {self.p6, self.p7} do
    nn.init.kaiming_uniform_(conv.weight, {a = 1})
    nn.init.zeros_(conv.bias)
  end
  self.use_results = n_in == n_out
end
function LastLevelP6P7:forward(results, inputs)
  local p6 = self.p6(self.use_results and results[#results] or inputs[#inputs])
  results[#results + 1], results[#results + 2] = p6, self.p7(M.relu(p6))
  return results
end

-- FeaturePyramidNetwork(in_channels_list, out_channels, extra_blocks=nil, norm_layer=nil): brings features of several scales to
-- out_channels, each with what the coarser ones know (Lin et al. 2017). Called with a list of features (N, C, H, W), finest first, whose
-- channels are in_channels_list; gives such a list. extra_blocks(results, inputs): a module that adds levels, as LastLevelMaxPool().
local Pyramid = nn.Module:extend("FeaturePyramidNetwork")
V.FeaturePyramidNetwork = Pyramid
function Pyramid:init(...)
  local o = options.arguments("FeaturePyramidNetwork", "in_channels_list, out_channels, extra_blocks=nil, norm_layer=nil", ...)
  self.inner_blocks = nn.ModuleList {}
  self.layer_blocks = nn.ModuleList {}
  local norm = o.norm_layer or false
  if type(o.in_channels_list) ~= "table" then
    fail("FeaturePyramidNetwork: in_channels_list must be a list of channels, got %s", options.shown(o.in_channels_list))
  end
  for i, channels in ipairs(o.in_channels_list) do
    options.whole("FeaturePyramidNetwork", ("in_channels_list[%d]"):format(i), channels, 1)
    self.inner_blocks:append(V.Conv2dNormActivation(channels, o.out_channels, 1, {norm_layer = norm, activation_layer = false}))
    self.layer_blocks:append(V.Conv2dNormActivation(o.out_channels, o.out_channels, {norm_layer = norm, activation_layer = false}))
  end
  if #self.inner_blocks == 0 then fail("FeaturePyramidNetwork: in_channels_list is empty") end
  for _, m in ipairs(self:modules()) do
    if m._name == "Conv2d" then
      nn.init.kaiming_uniform_(m.weight, {a = 1})
      if m.bias then nn.init.zeros_(m.bias) end
    end
  end
  if o.extra_blocks then self.extra_blocks = o.extra_blocks end
end
function Pyramid:forward(x)
  local n = #self.inner_blocks
  if type(x) ~= "table" or core.is_tensor(x) or #x ~= n then
    fail("FeaturePyramidNetwork: argument 1 must be a list of %d features, finest first, got %s", n,
      type(x) == "table" and not core.is_tensor(x) and ("a list of %d"):format(#x) or options.shown(x))
  end
  local results, coarser = {}, nil
  for i = n, 1, -1 do
    local inner = self.inner_blocks[i](x[i])
    if coarser then inner = inner + F.interpolate(coarser, {size = {inner.shape[3], inner.shape[4]}, mode = "nearest"}) end
    results[i], coarser = self.layer_blocks[i](inner), inner
  end
  if self.extra_blocks then results = self.extra_blocks(results, x) end
  return results
end
return V
