-- Densely connected networks (Huang et al. 2016): each layer reads the results of all layers before it in its block.
local options = require "tycho.options"
local nn = require "tycho.nn"
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models

local Layer = nn.Module:extend("DenseLayer")
function Layer:init(n_in, growth, bottleneck, drop_rate)
  self.norm1 = nn.BatchNorm2d(n_in)
  self.conv1 = nn.Conv2d(n_in, bottleneck * growth, 1, {bias = false})
  self.norm2 = nn.BatchNorm2d(bottleneck * growth)
  self.conv2 = nn.Conv2d(bottleneck * growth, growth, 3, {padding = 1, bias = false})
  self.drop_rate = drop_rate
end
function Layer:forward(x)
  x = self.conv1(self.norm1(x):relu())
  x = self.conv2(self.norm2(x):relu())
  return self.drop_rate > 0 and x:dropout(self.drop_rate, self.training) or x
end

local Block = nn.Module:extend("DenseBlock")
function Block:init(count, n_in, growth, bottleneck, drop_rate)
  self.count = count
  for i = 1, count do self["denselayer" .. i] = Layer(n_in + (i - 1) * growth, growth, bottleneck, drop_rate) end
end
function Block:forward(x)
  for i = 1, self.count do x = ops.cat({x, self["denselayer" .. i](x)}, 2) end
  return x
end

local DenseNet = nn.Module:extend("DenseNet")
models.DenseNet = DenseNet
-- DenseNet(growth_rate=32, block_config={6, 12, 24, 16}, num_init_features=64, bn_size=4, drop_rate=0, num_classes=1000): pictures (N, 3,
-- H, W) of 32x32 or more give (N, num_classes). growth_rate: the channels that each layer adds; block_config: the layers of each block;
-- bn_size: how many times growth_rate channels the 3x3 convolutions read.
function DenseNet:init(...)
  local o = options.arguments("DenseNet", "growth_rate=32, block_config=nil, num_init_features=64, bn_size=4, drop_rate=0, \z
    num_classes=1000", ...)
  local n, blocks = o.num_init_features, o.block_config or {6, 12, 24, 16}
  local parts = {{"conv0", nn.Conv2d(3, n, 7, {stride = 2, padding = 3, bias = false})}, {"norm0", nn.BatchNorm2d(n)}, {"relu0", nn.ReLU()},
    {"pool0", nn.MaxPool2d(3, 2, 1)}}
  for i, count in ipairs(blocks) do
    parts[#parts + 1] = {"denseblock" .. i, Block(count, n, o.growth_rate, o.bn_size, o.drop_rate)}
    n = n + count * o.growth_rate
    if i < #blocks then
      local half = math.floor(n / 2)
      parts[#parts + 1] = {"transition" .. i, nn.Sequential {{"norm", nn.BatchNorm2d(n)}, {"relu", nn.ReLU()},
        {"conv", nn.Conv2d(n, half, 1, {bias = false})}, {"pool", nn.AvgPool2d(2, 2)}}}
      n = half
    end
  end
  parts[#parts + 1] = {"norm5", nn.BatchNorm2d(n)}
  self.features = nn.Sequential(parts)
  self.classifier = nn.Linear(n, o.num_classes)
  family.first_values(self, {Conv2d = function(m) nn.init.kaiming_normal_(m.weight) end, Linear = function(m) nn.init.zeros_(m.bias) end})
  self:register_load_state_dict_pre_hook(function(_, state, prefix)      -- older files: denselayer1.norm.1.weight
    local renamed = {}
    for name in pairs(state) do
      local before, kind, i, after = name:match "^(.*denselayer%d+%.)(%l+)%.([12])(%..*)$"
      if before and name:sub(1, #prefix) == prefix then renamed[name] = before .. kind .. i .. after end
    end
    for old, new in pairs(renamed) do state[new], state[old] = state[old], nil end
  end)
end
function DenseNet:forward(x) return self.classifier(self.features(x):relu():adaptive_avg_pool2d(1):flatten(2)) end

family.network("densenet121", DenseNet, {})
family.network("densenet161", DenseNet, {growth_rate = 48, block_config = {6, 12, 36, 24}, num_init_features = 96})
family.network("densenet169", DenseNet, {block_config = {6, 12, 32, 32}})
family.network("densenet201", DenseNet, {block_config = {6, 12, 48, 32}})
