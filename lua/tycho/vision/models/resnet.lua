-- Residual networks (He et al. 2015), with the stride in the 3x3 convolution; wide ones (Zagoruyko and Komodakis 2016) and ResNeXt (Xie et
-- al. 2016), whose 3x3 convolutions have groups.
local options = require "tycho.options"
local nn = require "tycho.nn"
local family = require "tycho.vision.models.family"
local models = family.models
local fail = options.fail

local function conv3(n_in, n_out, stride, groups, dilation)
  return nn.Conv2d(n_in, n_out, 3, {stride = stride, padding = dilation, groups = groups, dilation = dilation, bias = false})
end
local function conv1(n_in, n_out, stride) return nn.Conv2d(n_in, n_out, 1, {stride = stride, bias = false}) end

local BLOCK = "inplanes, planes, stride=1, downsample=nil, groups=1, base_width=64, dilation=1, norm_layer=nil"
local BasicBlock = nn.Module:extend("BasicBlock")
models.BasicBlock = BasicBlock
BasicBlock.expansion, BasicBlock.last_norm = 1, "bn2"
-- BasicBlock(inplanes, planes, stride=1, downsample=nil, groups=1, base_width=64, dilation=1, norm_layer=nn.BatchNorm2d): two 3x3
-- convolutions and what goes around them: x, or downsample(x). For ResNet.
function BasicBlock:init(...)
  local o = options.arguments("BasicBlock", BLOCK, ...)
  local norm = o.norm_layer or nn.BatchNorm2d
  if o.groups ~= 1 or o.base_width ~= 64 or o.dilation ~= 1 then
    fail("BasicBlock: groups, base_width and dilation must be 1, 64 and 1, got %s, %s and %s", options.shown(o.groups),
      options.shown(o.base_width), options.shown(o.dilation))
  end
  self.conv1 = conv3(o.inplanes, o.planes, o.stride, 1, 1)
  self.bn1 = norm(o.planes)
  self.conv2 = conv3(o.planes, o.planes, 1, 1, 1)
  self.bn2 = norm(o.planes)
  self.downsample = o.downsample
end
function BasicBlock:forward(x)
  local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
  return (y + (self.downsample and self.downsample(x) or x)):relu()
end

local Bottleneck = nn.Module:extend("Bottleneck")
models.Bottleneck = Bottleneck
Bottleneck.expansion, Bottleneck.last_norm = 4, "bn3"
-- Bottleneck(inplanes, planes, stride=1, downsample=nil, groups=1, base_width=64, dilation=1, norm_layer=nn.BatchNorm2d): convolutions of
-- 1x1, 3x3 and 1x1, the last to 4 * planes channels, and what goes around them. For ResNet.
function Bottleneck:init(...)
  local o = options.arguments("Bottleneck", BLOCK, ...)
  local norm = o.norm_layer or nn.BatchNorm2d
  local width, n_out = math.floor(o.planes * o.base_width / 64) * o.groups, o.planes * 4
  self.conv1 = conv1(o.inplanes, width, 1)
  self.bn1 = norm(width)
  self.conv2 = conv3(width, width, o.stride, o.groups, o.dilation)
  self.bn2 = norm(width)
  self.conv3 = conv1(width, n_out, 1)
  self.bn3 = norm(n_out)
  self.downsample = o.downsample
end
function Bottleneck:forward(x)
  local y = self.bn1(self.conv1(x)):relu()
  y = self.bn2(self.conv2(y)):relu()
  y = self.bn3(self.conv3(y))
  return (y + (self.downsample and self.downsample(x) or x)):relu()
end

local ResNet = nn.Module:extend("ResNet")
models.ResNet = ResNet
-- ResNet(block, layers, num_classes=1000, zero_init_residual=false, groups=1, width_per_group=64, replace_stride_with_dilation=nil,
-- norm_layer=nn.BatchNorm2d): pictures (N, 3, H, W) give (N, num_classes). block: BasicBlock or Bottleneck; layers: how many of them each
-- of the four stages has. zero_init_residual: blocks begin as the identity. replace_stride_with_dilation: for each of the last three stages
-- whether it dilates instead of halving the size.
function ResNet:init(...)
  local o = options.arguments("ResNet", "block, layers, num_classes=1000, zero_init_residual=false, groups=1, width_per_group=64, \z
    replace_stride_with_dilation=nil, norm_layer=nil", ...)
  local norm, dilates, block = o.norm_layer or nn.BatchNorm2d, o.replace_stride_with_dilation or {false, false, false}, o.block
  for name, list in pairs {layers = o.layers, replace_stride_with_dilation = dilates} do
    local count = name == "layers" and 4 or 3
    if type(list) ~= "table" or #list ~= count then
      fail("ResNet: %s must be a list of %d, got %s", name, count, type(list) == "table" and #list or options.shown(list))
    end
  end
  self.conv1 = nn.Conv2d(3, 64, 7, {stride = 2, padding = 3, bias = false})
  self.bn1 = norm(64)
  local n_in, dilation = 64, 1
  for stage = 1, 4 do
    local planes, stride, blocks = 64 * 2 ^ (stage - 1), stage == 1 and 1 or 2, {}
    local n_out, before = planes * block.expansion, dilation
    if stage > 1 and dilates[stage - 1] then dilation, stride = dilation * stride, 1 end
    for i = 1, options.whole("ResNet", ("layers[%d]"):format(stage), o.layers[stage], 1) do
      local first = i == 1
      blocks[i] = block(n_in, planes, first and stride or 1,
        first and (stride ~= 1 or n_in ~= n_out) and nn.Sequential(conv1(n_in, n_out, stride), norm(n_out)) or nil,
        o.groups, o.width_per_group, first and before or dilation, norm)
      n_in = n_out
    end
    self["layer" .. stage] = nn.Sequential(blocks)
  end
  self.fc = nn.Linear(n_in, o.num_classes)
  family.first_values(self, {Conv2d = family.fan_out, [block._name] = o.zero_init_residual and function(m)
    nn.init.zeros_(m[m.last_norm].weight)
  end or nil})
end
function ResNet:forward(x)
  x = self.bn1(self.conv1(x)):relu():max_pool2d(3, 2, 1)
  for stage = 1, 4 do x = self["layer" .. stage](x) end
  return self.fc(x:adaptive_avg_pool2d(1):flatten(2))
end

for name, settings in pairs {
  resnet18 = {BasicBlock, {2, 2, 2, 2}}, resnet34 = {BasicBlock, {3, 4, 6, 3}}, resnet50 = {Bottleneck, {3, 4, 6, 3}},
  resnet101 = {Bottleneck, {3, 4, 23, 3}}, resnet152 = {Bottleneck, {3, 8, 36, 3}},
  resnext50_32x4d = {Bottleneck, {3, 4, 6, 3}, 32, 4}, resnext101_32x8d = {Bottleneck, {3, 4, 23, 3}, 32, 8},
  resnext101_64x4d = {Bottleneck, {3, 4, 23, 3}, 64, 4},
  wide_resnet50_2 = {Bottleneck, {3, 4, 6, 3}, 1, 128}, wide_resnet101_2 = {Bottleneck, {3, 4, 23, 3}, 1, 128},
} do
  family.network(name, ResNet, {block = settings[1], layers = settings[2], groups = settings[3], width_per_group = settings[4]})
end
