-- RegNet (Radosavovic et al. 2020): residual networks whose widths follow a line, in steps.
local options = require "tycho.options"
local nn = require "tycho.nn"
local V = require("tycho.vision").ops
local family = require "tycho.vision.models.family"
local models = family.models

local function conv(n_in, n_out, size, stride, groups, activation)
  return V.Conv2dNormActivation(n_in, n_out, size, stride, {groups = groups, activation_layer = activation or false})
end

-- The nearest whole number; of two, the even one.
local function round(v)
  local near = math.floor(v + 0.5)
  return near - v == 0.5 and near % 2 == 1 and near - 1 or near
end

local Block = nn.Module:extend("ResBottleneckBlock")
-- squeeze: the share of n_in by which channels are scaled, or nil
function Block:init(n_in, n_out, stride, group_width, squeeze)
  if n_in ~= n_out or stride ~= 1 then self.proj = conv(n_in, n_out, 1, stride, 1) end
  local parts = {{"a", conv(n_in, n_out, 1, 1, 1, nn.ReLU)}, {"b", conv(n_out, n_out, 3, stride, n_out / group_width, nn.ReLU)}}
  if squeeze then parts[3] = {"se", V.SqueezeExcitation(n_out, round(squeeze * n_in))} end
  parts[#parts + 1] = {"c", conv(n_out, n_out, 1, 1, 1)}
  self.f = nn.Sequential(parts)
end
function Block:forward(x) return ((self.proj and self.proj(x) or x) + self.f(x)):relu() end

-- Lists of the widths and the blocks of the stages: block i, from 0, has the width w_0 + w_a i, moved to the nearest w_0 w_m^k and to a
-- multiple of 8; then groups of group_width, or fewer, must fit.
local function stages(depth, w_0, w_a, w_m, group_width)
  local widths, depths = {}, {}
  for i = 0, depth - 1 do
    local k = round(math.log(1 + w_a * i / w_0) / math.log(w_m))
    local width = round(w_0 * w_m ^ k / 8) * 8
    if width ~= widths[#widths] then widths[#widths + 1], depths[#depths + 1] = width, 0 end
    depths[#depths] = depths[#depths] + 1
  end
  local groups = {}
  for i, width in ipairs(widths) do
    groups[i] = math.min(group_width, width)
    widths[i] = family.by(groups[i], width)
  end
  return widths, depths, groups
end

local RegNet = nn.Module:extend("RegNet")
models.RegNet = RegNet
-- RegNet(depth, w_0, w_a, w_m, group_width, se_ratio=nil, num_classes=1000, stem_width=32): pictures (N, 3, H, W) give (N, num_classes).
-- depth: how many blocks; w_0, w_a, w_m: their first width, its increase from block to block, and the ratio of two stages' widths;
-- group_width: the channels of each group of the 3x3 convolutions; se_ratio: that of SqueezeExcitation's inner channels.
function RegNet:init(...)
  local o = options.arguments("RegNet", "depth, w_0, w_a, w_m, group_width, se_ratio=nil, num_classes=1000, stem_width=32", ...)
  local widths, depths, groups = stages(o.depth, o.w_0, o.w_a, o.w_m, o.group_width)
  local n, trunk = o.stem_width, {}
  self.stem = conv(3, n, 3, 2, 1, nn.ReLU)
  for stage, width in ipairs(widths) do
    local blocks = {}
    for i = 1, depths[stage] do
      blocks[i] = {("block%d-%d"):format(stage, i - 1), Block(n, width, i == 1 and 2 or 1, groups[stage], o.se_ratio)}
      n = width
    end
    trunk[stage] = {"block" .. stage, nn.Sequential(blocks)}
  end
  self.trunk_output = nn.Sequential(trunk)
  self.fc = nn.Linear(n, o.num_classes)
  family.first_values(self, {Linear = family.normal(0.01), Conv2d = function(m)
    nn.init.normal_(m.weight, 0, math.sqrt(2 / (m.kernel_size[1] * m.kernel_size[2] * m.out_channels)))
  end})
end
function RegNet:forward(x) return self.fc(self.trunk_output(self.stem(x)):adaptive_avg_pool2d(1):flatten(2)) end

for name, s in pairs {
  y_400mf = {16, 48, 27.89, 2.09, 8}, y_800mf = {14, 56, 38.84, 2.4, 16}, y_1_6gf = {27, 48, 20.71, 2.65, 24},
  y_3_2gf = {21, 80, 42.63, 2.66, 24}, y_8gf = {17, 192, 76.82, 2.19, 56}, y_16gf = {18, 200, 106.23, 2.48, 112},
  y_32gf = {20, 232, 115.89, 2.53, 232}, y_128gf = {27, 456, 160.83, 2.52, 264},
  x_400mf = {22, 24, 24.48, 2.54, 16}, x_800mf = {16, 56, 35.73, 2.28, 16}, x_1_6gf = {18, 80, 34.01, 2.25, 24},
  x_3_2gf = {25, 88, 26.31, 2.25, 48}, x_8gf = {23, 80, 49.56, 2.88, 120}, x_16gf = {22, 216, 55.59, 2.1, 128},
  x_32gf = {23, 320, 69.86, 2, 168},
} do
  family.network("regnet_" .. name, RegNet, {depth = s[1], w_0 = s[2], w_a = s[3], w_m = s[4], group_width = s[5],
    se_ratio = name:find "^y" and 0.25 or nil})
end
