-- Layers over depth, height and width, x (N,C,D,H,W), made of those over height and width.
--
-- Idea: a window of three dims is handled in two passes. A pool first covers height and width at each depth, then depth; a convolution
-- treats the slices of depth that a window covers as additional channels. So both run on every device and in every dtype that the 2-d ones
-- support.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, need, batched, NN = lib.def, lib.fail, lib.need, lib.batched, lib.NN
local F = lib.functions

local function plane(v) return {v[2], v[3]} end        -- a triple without depth

---- convolution ----
def("conv3d",
  "x, weight, bias:tensor?, stride:triple=1, padding:any?, dilation:triple=1, groups:int=1",
  "3-D convolution of x (N,C,D,H,W) with weight (O,C/groups,kD,kH,kW); padding may be 'same' or 'valid'",
  function(x, w, b, stride, padding, dilation, groups)
    need("conv3d", 2, w, 5)
    for i = 1, 3 do
      if stride[i] < 1 or dilation[i] < 1 then
        fail("conv3d", "stride %d and dilation %d must be at least 1", stride[i], dilation[i])
      end
    end
    local p, after = lib.window_padding("conv3d", padding, {w.shape[3], w.shape[4], w.shape[5]}, stride, dilation)
    return batched("conv3d", x, 5, function(y)
      if y.shape[2] ~= w.shape[2] * groups then
        fail("conv3d", "argument 1 has shape %s; dim 2 must be %d to match argument 2 of shape %s", tostring(y.shape),
          w.shape[2] * groups, tostring(w.shape))
      end
      if math.max(unpack(after)) > 0 or p[1] > 0 then y = ops.pad_constant(y, {0, after[3], 0, after[2], p[1], p[1] + after[1]}) end
      local taps, reach = w.shape[3], dilation[1] * (w.shape[3] - 1) + 1
      if y.shape[3] < reach then fail("conv3d", "the window is larger than the padded input of shape %s", tostring(y.shape)) end
      local v = ops.unfold(y, 3, taps, stride[1], {dilation = dilation[1]})       -- N, C, D', H, W, taps
      local n, depth = v.shape[1], v.shape[3]
      v = M.reshape(ops.permute(v, {1, 3, 2, 6, 4, 5}), n * depth, v.shape[2] * taps, v.shape[4], v.shape[5])
      local z = ops.conv2d(v, M.flatten(w, 2, 3), b, plane(stride), plane(p), plane(dilation), groups)
      z = M.reshape(z, n, depth, z.shape[2], z.shape[3], z.shape[4])
      return M.contiguous(M.transpose(z, 2, 3))
    end)
  end, NN)

def("conv_transpose3d",
  "x, weight, bias:tensor?, stride:triple=1, padding:triple=0, output_padding:triple=0, groups:int=1, dilation:triple=1",
  "transposed 3-D convolution of x (N,C,D,H,W) with weight (C,O/groups,kD,kH,kW)",
  function(x, w, b, stride, padding, more, groups, dilation)
    need("conv_transpose3d", 2, w, 5)
    return batched("conv_transpose3d", x, 5, function(y)
      local n, depth, taps = y.shape[1], y.shape[3], w.shape[3]
      if stride[1] < 1 or dilation[1] < 1 or padding[1] < 0 then
        fail("conv_transpose3d", "stride %d and dilation %d must be at least 1, padding %d at least 0", stride[1],
          dilation[1], padding[1])
      end
      if more[1] < 0 or more[1] >= math.max(stride[1], dilation[1]) then
        fail("conv_transpose3d", "output_padding %d must be smaller than stride or dilation", more[1])
      end
      local full = lib.transposed_size(depth, taps, stride[1], 0, dilation[1])
      if full - 2 * padding[1] + more[1] < 1 then fail("conv_transpose3d", "an input of shape %s leaves no output", tostring(y.shape)) end
      local flat = M.reshape(M.transpose(y, 2, 3), n * depth, y.shape[2], y.shape[4], y.shape[5])
      local z = F.conv_transpose2d(flat, M.flatten(w, 2, 3), nil, plane(stride), plane(padding), plane(more), groups, plane(dilation))
      local out = z.shape[2] / taps
      z = ops.permute(M.reshape(z, n, depth, out, taps, z.shape[3], z.shape[4]), {1, 3, 2, 4, 5, 6})      -- N, O, D, kD, H', W'
      local index = {dtype = "int64", device = y.device}
      local at = ops.range(0, depth - 1, 1, index):view(-1, 1) * stride[1] + ops.range(0, taps - 1, 1, index) * dilation[1] + 1
      local zero = ops.zeros({n, out, full, z.shape[5], z.shape[6]}, {dtype = z.dtype, device = y.device})
      z = ops.pad_constant(ops.index_put(zero, z, {at}, 3, {accumulate = true}), {0, 0, 0, 0, -padding[1], more[1] - padding[1]})
      return b and z + M.to(M.view(b, 1, -1, 1, 1, 1), z.dtype) or z
    end)
  end, NN)

---- pooling ----
-- over(y, in_plane): a pool of (N, C', H, W), called first for height and width at each depth, then for depth at each position. Its
-- indices, if it gives any, are combined.
local function by_planes(name, x, over)
  return batched(name, x, 5, function(y)
    local n, c, d = y.shape[1], y.shape[2], y.shape[3]
    local flat, i = over(M.reshape(y, n, c * d, y.shape[4], y.shape[5]), true)
    local h, w = flat.shape[3], flat.shape[4]
    local z, k = over(M.reshape(flat, n, c, d, h * w), false)
    local shape = {n, c, z.shape[3], h, w}
    if not i then return M.reshape(z, shape) end
    -- the position that the plane chose, in the plane that depth chose
    local first = ops.floor_divide(k - 1, h * w) * (y.shape[4] * y.shape[5])
    local chosen = ops.gather(M.reshape(i, n, c, d * h * w), 3, ops.clamp(M.flatten(k, 3), 1))      -- 0 for an empty window
    return M.reshape(z, shape), M.reshape(first, shape) + M.reshape(chosen, shape)
  end)
end
local function split(v, in_plane) return in_plane and plane(v) or {v[1], 1} end
local function split_padding(v, in_plane) return in_plane and plane(v) or {v[1], 0} end
local function only_values(indices, y, i)
  if indices then return y, i end
  return y
end

def("max_pool3d",
  "x, kernel_size:triple, stride:triple?, padding:triple=0, dilation:triple=1, ceil_mode:bool=false, return_indices:bool=false",
  "maximum of each kernel_size window of the last three dims",
  function(x, k, stride, padding, dilation, ceil_mode, indices)
    stride = stride or k
    if not M.is_floating_point(x) then return lib.of_whole("max_pool3d", x, k, stride, padding, dilation, ceil_mode, indices) end
    return only_values(indices, by_planes("max_pool3d", x, function(y, p)
      return ops.max_pool2d_indices(y, split(k, p), split(stride, p), split_padding(padding, p), ceil_mode, split(dilation, p))
    end))
  end, NN)
def("avg_pool3d",
  "x, kernel_size:triple, stride:triple?, padding:triple=0, ceil_mode:bool=false, count_include_pad:bool=true, \z
    divisor_override:int?",
  "mean of each kernel_size window of the last three dims",
  function(x, k, stride, padding, ceil_mode, count, divisor)
    stride = stride or k
    return by_planes("avg_pool3d", x, function(y, p)
      return ops.avg_pool2d(y, split(k, p), split(stride, p), split_padding(padding, p),
        {ceil_mode = ceil_mode, count_include_pad = count, divisor_override = divisor and (p and 1 or divisor)})
    end)
  end, NN)
local function three_sizes(name, x, size)
  size = type(size) == "table" and {size[1], size[2], size[3]} or {size, size, size}
  for i = 1, 3 do
    if size[i] == false then size[i] = x.shape[M.dim(x) - 3 + i] end
    if type(size[i]) ~= "number" or size[i] < 0 or size[i] % 1 ~= 0 then
      fail(name, "output_size must be a whole number from 0 or three of them, got %s", lib.shown(size[i]))
    end
  end
  return size
end
def("adaptive_avg_pool3d",
  "x, output_size:any",
  "means of windows of the last three dims chosen so that output_size results: a number, or three, of which false keeps a dim's size",
  function(x, size)
    size = three_sizes("adaptive_avg_pool3d", x, size)
    return by_planes("adaptive_avg_pool3d", x,
      function(y, p) return lib.functions.adaptive_avg_pool2d(y, p and plane(size) or {size[1], y.shape[4]}) end)
  end, NN)
def("adaptive_max_pool3d",
  "x, output_size:any, return_indices:bool=false",
  "maxima of windows of the last three dims chosen so that output_size results: as adaptive_avg_pool3d's",
  function(x, size, indices)
    size = three_sizes("adaptive_max_pool3d", x, size)
    return only_values(indices,
      by_planes("adaptive_max_pool3d", x,
      function(y, p) return ops.adaptive_max_pool2d_indices(y, p and plane(size) or {size[1], y.shape[4]}) end))
  end, NN)
