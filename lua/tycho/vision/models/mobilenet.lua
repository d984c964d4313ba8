-- Networks of depthwise convolutions between 1x1 ones: MNASNet, MobileNet of versions 2 (Sandler et al. 2018) and 3 (Howard et al. 2019),
-- EfficientNet (Tan and Le 2019) and EfficientNetV2 (Tan and Le 2021).
--
-- Idea: all blocks are made by inverted(): channels are expanded, convolved each by itself, perhaps scaled by all, and brought to n_out.
local options = require "tycho.options"
local nn = require "tycho.nn"
local V = require("tycho.vision").ops
local family = require "tycho.vision.models.family"
local models = family.models
local function by_8(v) return family.by(8, v) end

-- A convolution that keeps the size, its norm, and its activation (nil: none).
local function conv(n_in, n_out, size, stride, norm, activation, groups, dilation)
  return V.Conv2dNormActivation(n_in, n_out, size, stride, {groups = groups, dilation = dilation, norm_layer = norm,
    activation_layer = activation or false})
end
-- The list of a block's layers; o: n_in, n_out, expanded, kernel, stride, dilation, norm, activation, squeeze (a layer, or nil).
local function inverted(o)
  local layers = {}
  if o.expanded ~= o.n_in then layers[1] = conv(o.n_in, o.expanded, 1, 1, o.norm, o.activation) end
  layers[#layers + 1] = conv(o.expanded, o.expanded, o.kernel, o.dilation == 1 and o.stride or 1, o.norm, o.activation, o.expanded,
    o.dilation)
  layers[#layers + 1] = o.squeeze
  layers[#layers + 1] = conv(o.expanded, o.n_out, 1, 1, o.norm)
  return layers
end

-- The members of these convolutions as one list.
local function flat(convolutions)
  local all = {}
  for _, c in ipairs(convolutions) do for _, m in ipairs(c) do all[#all + 1] = m end end
  return all
end

local Residual = nn.Module:extend("InvertedResidual")
-- A block whose layers lie in the member of that name. Keeps x beside them where sizes allow.
function Residual:init(name, layers, keeps, drop)
  self[name] = nn.Sequential(layers)
  self.layers_name, self.keeps = name, keeps
  if drop then self.stochastic_depth = V.StochasticDepth(drop, "row") end
end
function Residual:forward(x)
  local y = self[self.layers_name](x)
  if not self.keeps then return y end
  return (self.stochastic_depth and self.stochastic_depth(y) or y) + x
end

-- Pictures to numbers: features, the mean of each channel, classifier.
local function classify(self, x) return self.classifier(self.features(x):adaptive_avg_pool2d(1):flatten(2)) end

---- MobileNet ----
local MobileNetV2 = nn.Module:extend("MobileNetV2")
models.MobileNetV2, MobileNetV2.forward = MobileNetV2, classify
local V2 = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}
-- MobileNetV2(num_classes=1000, width_mult=1, dropout=0.2, norm_layer=nn.BatchNorm2d): pictures (N, 3, H, W) give (N, num_classes).
-- width_mult multiplies the channels, which stay multiples of 8.
function MobileNetV2:init(...)
  local o = options.arguments("MobileNetV2", "num_classes=1000, width_mult=1, dropout=0.2, norm_layer=nil", ...)
  local norm, n = o.norm_layer or nn.BatchNorm2d, by_8(32 * o.width_mult)
  local last, features = by_8(1280 * math.max(1, o.width_mult)), {conv(3, n, 3, 2, norm, nn.ReLU6)}
  for _, s in ipairs(V2) do                -- expansion, channels, blocks, stride
    for i = 1, s[3] do
      local n_out, stride = by_8(s[2] * o.width_mult), i == 1 and s[4] or 1
      local layers = inverted {n_in = n, n_out = n_out, expanded = n * s[1], kernel = 3, stride = stride, dilation = 1, norm = norm,
        activation = nn.ReLU6}
      for _, m in ipairs(flat {table.remove(layers)}) do layers[#layers + 1] = m end
      features[#features + 1] = Residual("conv", layers, stride == 1 and n == n_out)
      n = n_out
    end
  end
  features[#features + 1] = conv(n, last, 1, 1, norm, nn.ReLU6)
  self.features = nn.Sequential(features)
  self.classifier = nn.Sequential(nn.Dropout(o.dropout), nn.Linear(last, o.num_classes))
  family.first_values(self, {Conv2d = family.fan_out, Linear = family.normal(0.01)})
end
family.network("mobilenet_v2", MobileNetV2, {})

local MobileNetV3 = nn.Module:extend("MobileNetV3")
models.MobileNetV3, MobileNetV3.forward = MobileNetV3, classify
local slow_norm = family.with(nn.BatchNorm2d, {eps = 0.001, momentum = 0.01})
-- MobileNetV3(blocks, last_channel, num_classes=1000, width_mult=1, dropout=0.2, norm_layer=nil, reduced_tail=false, dilated=false):
-- pictures (N, 3, H, W) give (N, num_classes). blocks: a list of {kernel, expanded channels, channels, "SE" or "", "RE" or "HS", stride};
-- of the last three, reduced_tail halves the channels, and dilated keeps the size. norm_layer: by default nn.BatchNorm2d with eps 0.001,
-- momentum 0.01.
function MobileNetV3:init(...)
  local o = options.arguments("MobileNetV3", "blocks, last_channel, num_classes=1000, width_mult=1, dropout=0.2, norm_layer=nil, \z
    reduced_tail=false, dilated=false", ...)
  local norm, n = o.norm_layer or slow_norm, by_8(16 * o.width_mult)
  local features, count = {conv(3, n, 3, 2, norm, nn.Hardswish)}, #o.blocks
  for i, b in ipairs(o.blocks) do
    local kernel, expanded, n_out, squeezes, activation, stride = unpack(b)
    local tail = i > count - 3
    if tail and o.reduced_tail then n_out, expanded = n_out / 2, i > count - 2 and expanded / 2 or expanded end
    expanded, n_out = by_8(expanded * o.width_mult), by_8(n_out * o.width_mult)
    local squeeze = squeezes == "SE" and
      V.SqueezeExcitation(expanded, by_8(math.floor(expanded / 4)), {scale_activation = nn.Hardsigmoid}) or nil
    features[i + 1] = Residual("block", inverted {n_in = n, n_out = n_out, expanded = expanded, kernel = kernel, stride = stride,
      dilation = tail and o.dilated and 2 or 1, norm = norm, activation = activation == "HS" and nn.Hardswish or nn.ReLU,
      squeeze = squeeze}, stride == 1 and n == n_out)
    n = n_out
  end
  features[count + 2] = conv(n, 6 * n, 1, 1, norm, nn.Hardswish)
  self.features = nn.Sequential(features)
  local last = by_8(o.last_channel / (o.reduced_tail and 2 or 1) * o.width_mult)
  self.classifier = nn.Sequential(nn.Linear(6 * n, last), nn.Hardswish(), nn.Dropout(o.dropout), nn.Linear(last, o.num_classes))
  family.first_values(self, {Conv2d = family.fan_out, Linear = family.normal(0.01)})
end
family.network("mobilenet_v3_large", MobileNetV3, {last_channel = 1280, blocks = {
  {3, 16, 16, "", "RE", 1}, {3, 64, 24, "", "RE", 2}, {3, 72, 24, "", "RE", 1}, {5, 72, 40, "SE", "RE", 2}, {5, 120, 40, "SE", "RE", 1},
  {5, 120, 40, "SE", "RE", 1}, {3, 240, 80, "", "HS", 2}, {3, 200, 80, "", "HS", 1}, {3, 184, 80, "", "HS", 1}, {3, 184, 80, "", "HS", 1},
  {3, 480, 112, "SE", "HS", 1}, {3, 672, 112, "SE", "HS", 1}, {5, 672, 160, "SE", "HS", 2}, {5, 960, 160, "SE", "HS", 1},
  {5, 960, 160, "SE", "HS", 1}}})
family.network("mobilenet_v3_small", MobileNetV3, {last_channel = 1024, blocks = {
  {3, 16, 16, "SE", "RE", 2}, {3, 72, 24, "", "RE", 2}, {3, 88, 24, "", "RE", 1}, {5, 96, 40, "SE", "HS", 2}, {5, 240, 40, "SE", "HS", 1},
  {5, 240, 40, "SE", "HS", 1}, {5, 120, 48, "SE", "HS", 1}, {5, 144, 48, "SE", "HS", 1}, {5, 288, 96, "SE", "HS", 2},
  {5, 576, 96, "SE", "HS", 1}, {5, 576, 96, "SE", "HS", 1}}})

---- MNASNet ----
local MNASNet = nn.Module:extend("MNASNet")
models.MNASNet = MNASNet
-- MNASNet(alpha, num_classes=1000, dropout=0.2): pictures (N, 3, H, W) give (N, num_classes) (Tan et al. 2018, B1). alpha multiplies the
-- channels, which stay multiples of 8.
function MNASNet:init(...)
  local o = options.arguments("MNASNet", "alpha, num_classes=1000, dropout=0.2", ...)
  local norm, n = family.with(nn.BatchNorm2d, {momentum = 0.0003}), by_8(32 * o.alpha)
  local layers = flat {conv(3, n, 3, 2, norm, nn.ReLU), conv(n, n, 3, 1, norm, nn.ReLU, n), conv(n, by_8(16 * o.alpha), 1, 1, norm)}
  n = by_8(16 * o.alpha)
  for _, s in ipairs {{3, 24, 3, 3, 2}, {3, 40, 3, 5, 2}, {6, 80, 3, 5, 2}, {6, 96, 2, 3, 1}, {6, 192, 4, 5, 2}, {6, 320, 1, 3, 1}} do
    local blocks, n_out = {}, by_8(s[2] * o.alpha)           -- expansion, channels, blocks, kernel, stride
    for i = 1, s[3] do
      local stride = i == 1 and s[5] or 1
      blocks[i] = Residual("layers", flat(inverted {n_in = n, n_out = n_out, expanded = n * s[1], kernel = s[4], stride = stride,
        dilation = 1, norm = norm, activation = nn.ReLU}), stride == 1 and n == n_out)
      n = n_out
    end
    layers[#layers + 1] = nn.Sequential(blocks)
  end
  for _, m in ipairs(flat {conv(n, 1280, 1, 1, norm, nn.ReLU)}) do layers[#layers + 1] = m end
  self.layers = nn.Sequential(layers)
  self.classifier = nn.Sequential(nn.Dropout(o.dropout), nn.Linear(1280, o.num_classes))
  family.first_values(self, {Conv2d = family.fan_out, Linear = function(m)
    nn.init.kaiming_uniform_(m.weight, {mode = "fan_out", nonlinearity = "sigmoid"})
    nn.init.zeros_(m.bias)
  end})
end
function MNASNet:forward(x) return self.classifier(self.layers(x):mean({3, 4})) end
for name, alpha in pairs {mnasnet0_5 = 0.5, mnasnet0_75 = 0.75, mnasnet1_0 = 1, mnasnet1_3 = 1.3} do
  family.network(name, MNASNet, {alpha = alpha})
end

---- EfficientNet ----
-- The list of the layers of a block without depthwise convolution: a dense one expands.
local function fused(o)
  if o.expanded == o.n_in then return {conv(o.n_in, o.n_out, o.kernel, o.stride, o.norm, o.activation)} end
  return {conv(o.n_in, o.expanded, o.kernel, o.stride, o.norm, o.activation), conv(o.expanded, o.n_out, 1, 1, o.norm)}
end

local EfficientNet = nn.Module:extend("EfficientNet")
models.EfficientNet, EfficientNet.forward = EfficientNet, classify
-- EfficientNet(stages, dropout, stochastic_depth_prob=0.2, num_classes=1000, norm_layer=nn.BatchNorm2d, last_channel=nil, width_mult=1,
-- depth_mult=1): pictures (N, 3, H, W) give (N, num_classes). stages: a list of {"mb" or "fused", expansion, kernel, stride, channels
-- before, channels, blocks}, whose channels and blocks the last two arguments multiply. stochastic_depth_prob: that of the last block's
-- being left out. last_channel: the channels that the classifier reads, by default 4 times the last stage's.
function EfficientNet:init(...)
  local o = options.arguments("EfficientNet", "stages, dropout, stochastic_depth_prob=0.2, num_classes=1000, norm_layer=nil, \z
    last_channel=nil, width_mult=1, depth_mult=1", ...)
  local norm, total, done, counts = o.norm_layer or nn.BatchNorm2d, 0, 0, {}
  for i, s in ipairs(o.stages) do
    counts[i] = math.ceil(s[7] * o.depth_mult)
    total = total + counts[i]
  end
  local n = by_8(o.stages[1][5] * o.width_mult)
  local features = {conv(3, n, 3, 2, norm, nn.SiLU)}
  for i, s in ipairs(o.stages) do
    local blocks, n_out = {}, by_8(s[6] * o.width_mult)
    for k = 1, counts[i] do
      local b = {n_in = n, n_out = n_out, expanded = by_8(n * s[2]), kernel = s[3], stride = k == 1 and s[4] or 1, dilation = 1,
        norm = norm, activation = nn.SiLU}
      if s[1] == "mb" then b.squeeze = V.SqueezeExcitation(b.expanded, math.max(1, math.floor(n / 4)), {activation = nn.SiLU}) end
      blocks[k] = Residual("block", (s[1] == "mb" and inverted or fused)(b), b.stride == 1 and n == n_out,
        o.stochastic_depth_prob * done / total)
      n, done = n_out, done + 1
    end
    features[i + 1] = nn.Sequential(blocks)
  end
  local last = o.last_channel or 4 * n
  features[#features + 1] = conv(n, last, 1, 1, norm, nn.SiLU)
  self.features = nn.Sequential(features)
  self.classifier = nn.Sequential(nn.Dropout(o.dropout), nn.Linear(last, o.num_classes))
  family.first_values(self, {Conv2d = family.fan_out, Linear = function(m)
    local range = 1 / math.sqrt(m.out_features)
    nn.init.uniform_(m.weight, -range, range)
    nn.init.zeros_(m.bias)
  end})
end
local B = {{"mb", 1, 3, 1, 32, 16, 1}, {"mb", 6, 3, 2, 16, 24, 2}, {"mb", 6, 5, 2, 24, 40, 2}, {"mb", 6, 3, 2, 40, 80, 3},
  {"mb", 6, 5, 1, 80, 112, 3}, {"mb", 6, 5, 2, 112, 192, 4}, {"mb", 6, 3, 1, 192, 320, 1}}
for i, s in ipairs {{1, 1, 0.2}, {1, 1.1, 0.2}, {1.1, 1.2, 0.3}, {1.2, 1.4, 0.3}, {1.4, 1.8, 0.4}, {1.6, 2.2, 0.4}, {1.8, 2.6, 0.5},
    {2, 3.1, 0.5}} do
  family.network("efficientnet_b" .. i - 1, EfficientNet, {stages = B, width_mult = s[1], depth_mult = s[2], dropout = s[3],
    norm_layer = i > 5 and slow_norm or nil})
end
local exact_norm = family.with(nn.BatchNorm2d, {eps = 0.001})
for name, s in pairs {
  efficientnet_v2_s = {0.2, {"fused", 1, 3, 1, 24, 24, 2}, {"fused", 4, 3, 2, 24, 48, 4}, {"fused", 4, 3, 2, 48, 64, 4},
    {"mb", 4, 3, 2, 64, 128, 6}, {"mb", 6, 3, 1, 128, 160, 9}, {"mb", 6, 3, 2, 160, 256, 15}},
  efficientnet_v2_m = {0.3, {"fused", 1, 3, 1, 24, 24, 3}, {"fused", 4, 3, 2, 24, 48, 5}, {"fused", 4, 3, 2, 48, 80, 5},
    {"mb", 4, 3, 2, 80, 160, 7}, {"mb", 6, 3, 1, 160, 176, 14}, {"mb", 6, 3, 2, 176, 304, 18}, {"mb", 6, 3, 1, 304, 512, 5}},
  efficientnet_v2_l = {0.4, {"fused", 1, 3, 1, 32, 32, 4}, {"fused", 4, 3, 2, 32, 64, 7}, {"fused", 4, 3, 2, 64, 96, 7},
    {"mb", 4, 3, 2, 96, 192, 10}, {"mb", 6, 3, 1, 192, 224, 19}, {"mb", 6, 3, 2, 224, 384, 25}, {"mb", 6, 3, 1, 384, 640, 7}},
} do
  family.network(name, EfficientNet, {dropout = table.remove(s, 1), stages = s, norm_layer = exact_norm, last_channel = 1280})
end
