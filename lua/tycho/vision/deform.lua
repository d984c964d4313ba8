-- Deformable convolution (Dai et al. 2017; with a mask: Zhu et al. 2019): each point of a window is read beside its place, as far as an
-- offset says.
--
-- Idea: the points of all windows are a grid on which the picture is sampled (grid_sample), which has gradients for both; the samples are
-- then the columns of a matrix product, as in any convolution.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local nn = require "tycho.nn"
local V = require "tycho.vision.boxes"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions

-- The places of a dim's window points without offsets, from 0: (taps, count).
local function places(taps, count, stride, padding, dilation, like)
  local function steps(n, by) return ops.range(0, n - 1, 1, like) * by end
  return M.unsqueeze(steps(taps, dilation), 2) + M.unsqueeze(steps(count, stride), 1) - padding
end

-- deform_conv2d(input, offset, weight, bias=nil, stride=1, padding=0, dilation=1, mask=nil): (N, C, H, W) and weight (O, C/groups, KH, KW)
-- give (N, O, OH, OW). offset (N, 2 * G * KH * KW, OH, OW): by how many pixels down, then right, each point of a window lies beside its
-- place, for each of G groups of channels. mask (N, G * KH * KW, OH, OW) multiplies the points. Outside of the picture is 0.
V.deform_conv2d = core.define("deform_conv2d",
  "input, offset, weight, bias:tensor?, stride:pair=1, padding:pair=0, dilation:pair=1, mask:tensor?",
  function(x, offset, weight, bias, stride, padding, dilation, mask)
    local name = "deform_conv2d"
    for i, t in ipairs {x, offset, weight} do
      if M.dim(t) ~= 4 then fail("%s: argument %d must have 4 dims, got shape %s", name, i, tostring(t.shape)) end
    end
    local N, C, H, W = unpack(x.shape)
    local O, CG, KH, KW = unpack(weight.shape)
    local taps, size = KH * KW, {}
    for i, least in ipairs {1, 0, 1} do
      for _, v in ipairs(({stride, padding, dilation})[i]) do
        if v < least then fail("%s: %s must be from %d, got %d", name, ({"stride", "padding", "dilation"})[i], least, v) end
      end
    end
    for i = 1, 2 do
      size[i] = math.floor((x.shape[i + 2] + 2 * padding[i] - dilation[i] * (weight.shape[i + 2] - 1) - 1) / stride[i]) + 1
      if size[i] < 1 then fail("%s: the window is larger than the padded picture of shape %s", name, tostring(x.shape)) end
    end
    if CG == 0 or C % CG ~= 0 or O % (C / CG) ~= 0 then
      fail("%s: argument 3 (weight) of shape %s doesn't fit the channels of shape %s", name, tostring(weight.shape), tostring(x.shape))
    end
    if bias and tostring(bias.shape) ~= tostring(O) then
      fail("%s: argument 4 (bias) has shape %s; it must have %d elements, one for each channel", name, tostring(bias.shape), O)
    end
    local OH, OW = size[1], size[2]
    local G = offset.shape[2] / (2 * taps)
    if offset.shape[1] ~= N or offset.shape[3] ~= OH or offset.shape[4] ~= OW or G < 1 or G % 1 ~= 0 or C % G ~= 0 then
      fail("%s: argument 2 (offset) has shape %s; it must be %dx%dx%dx%d, or have a multiple of these channels that divides %d", name,
        tostring(offset.shape), N, 2 * taps, OH, OW, C)
    end
    local points = ("%dx%dx%dx%d"):format(N, G * taps, OH, OW)
    if mask and tostring(mask.shape) ~= points then
      fail("%s: argument 8 (mask) has shape %s; it must be %s", name, tostring(mask.shape), points)
    end
    -- places of pixels need more digits than 16 bits have
    local wide = x.dtype == "float64" and "float64" or "float32"
    local like = {dtype = wide, device = x.device}
    local y = M.view(places(KH, OH, stride[1], padding[1], dilation[1], like), KH, 1, OH, 1)
    local across = M.view(places(KW, OW, stride[2], padding[2], dilation[2], like), 1, KW, 1, OW)
    local moved = M.reshape(M.to(offset, wide), N * G, KH, KW, 2, OH, OW)
    -- pixel p of n lies at (2 p + 1) / n - 1 of the grid
    local down = ((ops.select(moved, 4, 1) + y) * 2 + 1) / H - 1
    local right = ((ops.select(moved, 4, 2) + across) * 2 + 1) / W - 1
    local grid = M.reshape(ops.stack({right, down}, 6), N * G, taps * OH, OW, 2)
    local columns = F.grid_sample(M.reshape(M.to(x, wide), N * G, C / G, H, W), grid, {align_corners = false})
    if mask then
      columns = M.view(columns, N, G, C / G, taps, OH * OW) * M.reshape(M.to(mask, wide), N, G, 1, taps, OH * OW)
    end
    local groups = C / CG
    columns = M.reshape(M.to(columns, weight.dtype), N, groups, CG * taps, OH * OW)
    local out = M.view(ops.matmul(M.reshape(weight, 1, groups, O / groups, CG * taps), columns), N, O, OH, OW)
    return bias and out + M.view(bias, 1, -1, 1, 1) or out
  end)

-- DeformConv2d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=true): deform_conv2d as a layer,
-- called with pictures, offset and mask (or nil).
local DeformConv2d = nn.Conv2d:extend("DeformConv2d")
V.DeformConv2d = DeformConv2d
function DeformConv2d:forward(x, offset, mask)
  return V.deform_conv2d(x, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask)
end
