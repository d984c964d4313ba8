-- ShuffleNet V2 (Ma et al. 2018): half of the channels pass each block unchanged, and then all are mixed.
local options = require "tycho.options"
local nn = require "tycho.nn"
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models

local function conv1(n_in, n_out) return nn.Conv2d(n_in, n_out, 1, {bias = false}) end
local function depthwise(n, stride) return nn.Conv2d(n, n, 3, {stride = stride, padding = 1, groups = n, bias = false}) end

local Block = nn.Module:extend("InvertedResidual")
function Block:init(n_in, n_out, stride)
  local half = n_out / 2
  self.branch1 = stride == 1 and nn.Sequential() or
    nn.Sequential(depthwise(n_in, stride), nn.BatchNorm2d(n_in), conv1(n_in, half), nn.BatchNorm2d(half), nn.ReLU())
  self.branch2 = nn.Sequential(conv1(stride == 1 and half or n_in, half), nn.BatchNorm2d(half), nn.ReLU(),
    depthwise(half, stride), nn.BatchNorm2d(half), conv1(half, half), nn.BatchNorm2d(half), nn.ReLU())
  self.splits = stride == 1
end
function Block:forward(x)
  local left, right = x, x
  if self.splits then left, right = unpack(x:chunk(2, 2)) end
  return ops.cat({self.branch1(left), self.branch2(right)}, 2):channel_shuffle(2)
end

local ShuffleNetV2 = nn.Module:extend("ShuffleNetV2")
models.ShuffleNetV2 = ShuffleNetV2
-- ShuffleNetV2(stages_repeats, stages_out_channels, num_classes=1000): pictures (N, 3, H, W) give (N, num_classes). The first is a list of
-- the blocks of three stages, the second of the channels of the first layer, of the stages, and of the last convolution.
function ShuffleNetV2:init(...)
  local o = options.arguments("ShuffleNetV2", "stages_repeats, stages_out_channels, num_classes=1000", ...)
  local n = o.stages_out_channels[1]
  self.conv1 = nn.Sequential(nn.Conv2d(3, n, 3, 2, 1, {bias = false}), nn.BatchNorm2d(n), nn.ReLU())
  self.maxpool = nn.MaxPool2d(3, 2, 1)
  for stage = 1, 3 do
    local blocks, n_out = {}, o.stages_out_channels[stage + 1]
    for i = 1, o.stages_repeats[stage] do
      blocks[i] = Block(n, n_out, i == 1 and 2 or 1)
      n = n_out
    end
    self["stage" .. stage + 1] = nn.Sequential(blocks)
  end
  local last = o.stages_out_channels[5]
  self.conv5 = nn.Sequential(conv1(n, last), nn.BatchNorm2d(last), nn.ReLU())
  self.fc = nn.Linear(last, o.num_classes)
end
function ShuffleNetV2:forward(x)
  x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
  return self.fc(self.conv5(x):mean({3, 4}))
end

for name, channels in pairs {shufflenet_v2_x0_5 = {24, 48, 96, 192, 1024}, shufflenet_v2_x1_0 = {24, 116, 232, 464, 1024},
    shufflenet_v2_x1_5 = {24, 176, 352, 704, 1024}, shufflenet_v2_x2_0 = {24, 244, 488, 976, 2048}} do
  family.network(name, ShuffleNetV2, {stages_repeats = {4, 8, 4}, stages_out_channels = channels})
end
