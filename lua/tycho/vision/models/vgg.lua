-- Networks of convolutions one after the other, with large classifiers: AlexNet (Krizhevsky 2014) and VGG (Simonyan and Zisserman 2014);
-- and SqueezeNet (Iandola et al. 2016), which has few parameters.
local options = require "tycho.options"
local nn = require "tycho.nn"
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models

local AlexNet = nn.Module:extend("AlexNet")
models.AlexNet = AlexNet
-- AlexNet(num_classes=1000, dropout=0.5): pictures (N, 3, H, W) of 63x63 or more give (N, num_classes).
function AlexNet:init(...)
  local o = options.arguments("AlexNet", "num_classes=1000, dropout=0.5", ...)
  self.features = nn.Sequential(
    nn.Conv2d(3, 64, 11, {stride = 4, padding = 2}), nn.ReLU(), nn.MaxPool2d(3, 2),
    nn.Conv2d(64, 192, 5, {padding = 2}), nn.ReLU(), nn.MaxPool2d(3, 2),
    nn.Conv2d(192, 384, 3, {padding = 1}), nn.ReLU(),
    nn.Conv2d(384, 256, 3, {padding = 1}), nn.ReLU(),
    nn.Conv2d(256, 256, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(3, 2))
  self.avgpool = nn.AdaptiveAvgPool2d(6)
  self.classifier = nn.Sequential(
    nn.Dropout(o.dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(),
    nn.Dropout(o.dropout), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, o.num_classes))
end
function AlexNet:forward(x) return self.classifier(self.avgpool(self.features(x)):flatten(2)) end
family.network("alexnet", AlexNet, {})

local VGG = nn.Module:extend("VGG")
models.VGG = VGG
-- VGG(channels, batch_norm=false, num_classes=1000, dropout=0.5): pictures (N, 3, H, W) of 32x32 or more give (N, num_classes). channels:
-- those of each 3x3 convolution, with "M" where the size is halved.
function VGG:init(...)
  local o = options.arguments("VGG", "channels, batch_norm=false, num_classes=1000, dropout=0.5", ...)
  local layers, n_in = {}, 3
  for _, n in ipairs(o.channels) do
    if n == "M" then layers[#layers + 1] = nn.MaxPool2d(2, 2)
    else
      layers[#layers + 1] = nn.Conv2d(n_in, n, 3, {padding = 1})
      if o.batch_norm then layers[#layers + 1] = nn.BatchNorm2d(n) end
      layers[#layers + 1] = nn.ReLU()
      n_in = n
    end
  end
  self.features = nn.Sequential(layers)
  self.avgpool = nn.AdaptiveAvgPool2d(7)
  self.classifier = nn.Sequential(
    nn.Linear(n_in * 7 * 7, 4096), nn.ReLU(), nn.Dropout(o.dropout),
    nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(o.dropout), nn.Linear(4096, o.num_classes))
  family.first_values(self, {Conv2d = family.fan_out, Linear = family.normal(0.01)})
end
function VGG:forward(x) return self.classifier(self.avgpool(self.features(x)):flatten(2)) end
-- by the number of convolutions before each halving
for name, counts in pairs {vgg11 = {1, 1, 2, 2, 2}, vgg13 = {2, 2, 2, 2, 2}, vgg16 = {2, 2, 3, 3, 3}, vgg19 = {2, 2, 4, 4, 4}} do
  local channels = {}
  for stage, count in ipairs(counts) do
    for _ = 1, count do channels[#channels + 1] = math.min(512, 32 * 2 ^ stage) end
    channels[#channels + 1] = "M"
  end
  family.network(name, VGG, {channels = channels})
  family.network(name .. "_bn", VGG, {channels = channels, batch_norm = true})
end

local Fire = nn.Module:extend("Fire")
function Fire:init(n_in, squeezed, expanded)
  self.squeeze = nn.Conv2d(n_in, squeezed, 1)
  self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
  self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, {padding = 1})
end
function Fire:forward(x)
  x = self.squeeze(x):relu()
  return ops.cat({self.expand1x1(x), self.expand3x3(x)}, 2):relu()
end

local SqueezeNet = nn.Module:extend("SqueezeNet")
models.SqueezeNet = SqueezeNet
-- SqueezeNet(version="1_0", num_classes=1000, dropout=0.5): pictures (N, 3, H, W) give (N, num_classes). version: "1_0" or "1_1", which
-- halves sizes sooner.
function SqueezeNet:init(...)
  local o = options.arguments("SqueezeNet", "version=1_0, num_classes=1000, dropout=0.5", ...)
  if o.version ~= "1_0" and o.version ~= "1_1" then
    options.fail("SqueezeNet: version must be \"1_0\" or \"1_1\", got %s", options.shown(o.version))
  end
  local function half() return nn.MaxPool2d(3, 2, {ceil_mode = true}) end
  local layers = o.version == "1_0" and {
    nn.Conv2d(3, 96, 7, {stride = 2}), nn.ReLU(), half(), Fire(96, 16, 64), Fire(128, 16, 64), Fire(128, 32, 128), half(),
    Fire(256, 32, 128), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), half(), Fire(512, 64, 256)} or {
    nn.Conv2d(3, 64, 3, {stride = 2}), nn.ReLU(), half(), Fire(64, 16, 64), Fire(128, 16, 64), half(), Fire(128, 32, 128),
    Fire(256, 32, 128), half(), Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256)}
  self.features = nn.Sequential(layers)
  self.classifier = nn.Sequential(nn.Dropout(o.dropout), nn.Conv2d(512, o.num_classes, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
  family.first_values(self, {Conv2d = function(m)
    if m == self.classifier[2] then nn.init.normal_(m.weight, 0, 0.01) else nn.init.kaiming_uniform_(m.weight) end
    nn.init.zeros_(m.bias)
  end})
end
function SqueezeNet:forward(x) return self.classifier(self.features(x)):flatten(2) end
family.network("squeezenet1_0", SqueezeNet, {version = "1_0"})
family.network("squeezenet1_1", SqueezeNet, {version = "1_1"})
