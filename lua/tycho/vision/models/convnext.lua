-- ConvNeXt (Liu et al. 2022): depthwise convolutions, and linear layers over the channels of each pixel.
local options = require "tycho.options"
local nn = require "tycho.nn"
local V = require("tycho.vision").ops
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models

-- Layer norm over the channels of each pixel of (N, C, H, W).
local LayerNorm2d = nn.LayerNorm:extend("LayerNorm2d")
function LayerNorm2d:forward(x)
  return nn.LayerNorm.forward(self, x:permute(1, 3, 4, 2)):permute(1, 4, 2, 3)
end

local Block = nn.Module:extend("CNBlock")
function Block:init(n, layer_scale, drop)
  self.layer_scale = nn.Parameter(ops.full({n, 1, 1}, layer_scale))
  self.block = nn.Sequential(
    nn.Conv2d(n, n, 7, {padding = 3, groups = n}), V.Permute {1, 3, 4, 2}, nn.LayerNorm(n, {eps = 1e-6}),
    nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n), V.Permute {1, 4, 2, 3})
  self.stochastic_depth = V.StochasticDepth(drop, "row")
end
function Block:forward(x) return self.stochastic_depth(self.layer_scale * self.block(x)) + x end

local ConvNeXt = nn.Module:extend("ConvNeXt")
models.ConvNeXt = ConvNeXt
-- ConvNeXt(channels, depths, stochastic_depth_prob=0, layer_scale=1e-6, num_classes=1000): pictures (N, 3, H, W) of 32x32 or more give (N,
-- num_classes). channels, depths: the channels and the blocks of each stage, between which sizes are halved. stochastic_depth_prob: that of
-- the last block's being left out; layer_scale: what blocks are multiplied by at first.
function ConvNeXt:init(...)
  local o = options.arguments("ConvNeXt", "channels, depths, stochastic_depth_prob=0, layer_scale=1e-6, num_classes=1000", ...)
  local norm, total, done = family.with(LayerNorm2d, {eps = 1e-6}), 0, 0
  for _, depth in ipairs(o.depths) do total = total + depth end
  local features = {V.Conv2dNormActivation(3, o.channels[1], 4, 4, 0, {norm_layer = norm, activation_layer = false, bias = true})}
  for stage, n in ipairs(o.channels) do
    local blocks, next_n = {}, o.channels[stage + 1]
    for i = 1, o.depths[stage] do
      blocks[i] = Block(n, o.layer_scale, o.stochastic_depth_prob * done / math.max(1, total - 1))
      done = done + 1
    end
    features[#features + 1] = nn.Sequential(blocks)
    if next_n then features[#features + 1] = nn.Sequential(norm(n), nn.Conv2d(n, next_n, 2, 2)) end
  end
  self.features = nn.Sequential(features)
  self.avgpool = nn.AdaptiveAvgPool2d(1)
  local last = o.channels[#o.channels]
  self.classifier = nn.Sequential(norm(last), nn.Flatten(), nn.Linear(last, o.num_classes))
  family.first_values(self, {Conv2d = family.truncated(0.02), Linear = family.truncated(0.02)})
end
function ConvNeXt:forward(x) return self.classifier(self.avgpool(self.features(x))) end

for name, s in pairs {convnext_tiny = {96, 9, 0.1}, convnext_small = {96, 27, 0.4}, convnext_base = {128, 27, 0.5},
    convnext_large = {192, 27, 0.5}} do
  local n = s[1]
  family.network(name, ConvNeXt, {channels = {n, 2 * n, 4 * n, 8 * n}, depths = {3, 3, s[2], 3}, stochastic_depth_prob = s[3]})
end
