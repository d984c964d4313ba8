-- The arithmetic of layers: convolution, pooling, padding, resizing, normalisation, dropout, attention.
--
-- Idea: the ops know the two-dimensional case: one dim is two, one of size 1; other padding modes index the input before the convolution.
-- Inputs without a batch get one for the call. Invariant: modules hold state, functions none.
local core = require "tycho.core"
local options = require "tycho.options"
local modes = require "tycho.modes"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap, need, batched, NN = lib.def, lib.fail, lib.wrap, lib.need, lib.batched, lib.NN
local F = lib.functions

---- convolution ----
-- A 1-d layer as a 2-d one of height 1. x (N,C,L) or (C,L)
local function flat2d(x) return M.unsqueeze(x, -2) end
def("conv1d",
  "x, weight, bias:tensor?, stride:int=1, padding:any?, dilation:int=1, groups:int=1",
  "1-D convolution of x (N,C,L) with weight (O,C/groups,k); padding may be 'same' or 'valid'",
  function(x, w, b, stride, padding, dilation, groups)
    need("conv1d", 2, w, 3)
    local p, more = lib.window_padding("conv1d", padding, {w.shape[3]}, {stride}, {dilation})
    return batched("conv1d", x, 3, function(y)
      if more[1] > 0 then y = ops.pad_constant(y, {0, more[1]}) end
      return M.squeeze(ops.conv2d(flat2d(y), flat2d(w), b, {1, stride}, {0, p[1]}, {1, dilation}, groups), 3)
    end)
  end, NN)
-- The transpose of a convolution is its gradient with respect to the input.
local function transposed(name, x, w, b, stride, padding, more, groups, dilation)
  for i = 1, 2 do
    if more[i] < 0 or more[i] >= math.max(stride[i], dilation[i]) then
      fail(name, "output_padding %d must be smaller than stride or dilation", more[i])
    end
  end
  local function left_over(i) return more[i] > 0 and more[i] >= stride[i] end
  if left_over(1) or left_over(2) then
    -- output_padding beyond what a convolution drops: crop the full result
    local y = transposed(name, x, w, nil, stride, {0, 0}, {0, 0}, groups, dilation)
    y = ops.pad_constant(y, {-padding[2], more[2] - padding[2], -padding[1], more[1] - padding[1]})
    return b and y + M.to(M.view(b, 1, -1, 1, 1), y.dtype) or y
  end
  local size = {x.shape[1], w.shape[2] * groups}
  for i = 1, 2 do
    size[i + 2] = lib.transposed_size(x.shape[i + 2], w.shape[i + 2], stride[i], padding[i], dilation[i]) + more[i]
    if size[i + 2] < 1 then fail(name, "an input of shape %s gives an empty output", tostring(x.shape)) end
  end
  if x.shape[2] ~= w.shape[1] then
    fail(name, "argument 1 has shape %s; dim 2 must be %d to match argument 2 of shape %s", tostring(x.shape),
      w.shape[1], tostring(w.shape))
  end
  local y = ops.conv2d_backward_input(x, w, size, stride, padding, dilation, groups)
  return b and y + M.to(M.view(b, 1, -1, 1, 1), y.dtype) or y
end
def("conv_transpose2d",
  "x, weight, bias:tensor?, stride:pair=1, padding:pair=0, output_padding:pair=0, groups:int=1, dilation:pair=1",
  "transposed 2-D convolution of x (N,C,H,W) with weight (C,O/groups,kH,kW)",
  function(x, w, b, ...)
    need("conv_transpose2d", 2, w, 4)
    local o = {...}
    return batched("conv_transpose2d", x, 4, function(y) return transposed("conv_transpose2d", y, w, b, unpack(o)) end)
  end, NN)
def("conv_transpose1d",
  "x, weight, bias:tensor?, stride:int=1, padding:int=0, output_padding:int=0, groups:int=1, dilation:int=1",
  "transposed 1-D convolution of x (N,C,L) with weight (C,O/groups,k)",
  function(x, w, b, stride, padding, more, groups, dilation)
    need("conv_transpose1d", 2, w, 3)
    return batched("conv_transpose1d", x, 3, function(y)
      return M.squeeze(transposed("conv_transpose1d", flat2d(y), flat2d(w), b, {1, stride}, {0, padding}, {0, more},
        groups, {1, dilation}), 3)
    end)
  end, NN)

def("conv2d",
  "x, weight, bias:tensor?, stride:pair=1, padding:any?, dilation:pair=1, groups:int=1",
  "2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW); padding may be 'same' or 'valid'",
  function(x, w, b, stride, padding, dilation, groups)
    if type(padding) == "string" then
      need("conv2d", 2, w, 4)
      local p, more = lib.window_padding("conv2d", padding, {w.shape[3], w.shape[4]}, stride, dilation)
      return batched("conv2d", x, 4, function(y)
        if more[1] + more[2] > 0 then y = ops.pad_constant(y, {0, more[2], 0, more[1]}) end
        return ops.conv2d(y, w, b, stride, p, dilation, groups)
      end)
    end
    if M.dim(x) == 4 then return ops.conv2d(x, w, b, stride, padding, dilation, groups) end
    return batched("conv2d", x, 4, function(y) return ops.conv2d(y, w, b, stride, padding, dilation, groups) end)
  end, NN)

---- pooling ----
-- max_pool2d_indices(x, ...), on a CPU without the indices where they would only be for a gradient that nobody can ask for. A checkpoint
-- that keeps results, though, looks for the same op when it runs again for its gradient.
local function maxima(x, indices, ...)
  if indices or x.device ~= "cpu" or (x.requires_grad and core.is_grad_enabled()) or core.recalls() then
    return ops.max_pool2d_indices(x, ...)
  end
  return ops.max_pool2d_values(x, ...)
end
def("max_pool2d",
  "x, kernel_size:pair, stride:pair?, padding:pair=0, dilation:pair=1, ceil_mode:bool=false, return_indices:bool=false",
  "maximum of each kernel_size window of the last two dims",
  function(x, k, stride, padding, dilation, ceil_mode, indices)
    if not M.is_floating_point(x) then return lib.of_whole("max_pool2d", x, k, stride, padding, dilation, ceil_mode, indices) end
    local y, i = maxima(x, indices, k, stride, padding, ceil_mode, dilation)
    if indices then return y, i end
    return y
  end, NN)
def("max_pool1d",
  "x, kernel_size:int, stride:int?, padding:int=0, dilation:int=1, ceil_mode:bool=false, return_indices:bool=false",
  "maximum of each kernel_size window of the last dim",
  function(x, k, stride, padding, dilation, ceil_mode, indices)
    if not M.is_floating_point(x) then return lib.of_whole("max_pool1d", x, k, stride, padding, dilation, ceil_mode, indices) end
    local y, i = maxima(flat2d(x), indices, {1, k}, {1, stride or k}, {0, padding}, ceil_mode, {1, dilation})
    y = M.squeeze(y, -2)
    if indices then return y, M.squeeze(i, -2) end
    return y
  end, NN)
def("avg_pool1d",
  "x, kernel_size:int, stride:int?, padding:int=0, ceil_mode:bool=false, count_include_pad:bool=true",
  "mean of each kernel_size window of the last dim",
  function(x, k, stride, padding, ceil_mode, count_include_pad)
    return M.squeeze(ops.avg_pool2d(flat2d(x), {1, k}, {1, stride or k}, {0, padding},
      {ceil_mode = ceil_mode, count_include_pad = count_include_pad}), -2)
  end, NN)
-- {3, false}: the second dim keeps its size, like PyTorch's None.
local function with_kept(x, size)
  if type(size) ~= "table" or (size[1] ~= false and size[2] ~= false) then return size end
  local n = M.dim(x)
  if n < 2 then return 1 end                             -- the op raises
  return {size[1] == false and x.shape[n - 1] or size[1], size[2] == false and x.shape[n] or size[2]}
end
local function adaptive_avg_pool2d(x, size)
  local n = M.dim(x)
  size = with_kept(x, size)
  local ones = type(size) == "table" and size[1] == 1 and size[2] == 1 or size == 1
  local all = ones and (n == 3 or n == 4) and x.shape[n - 1] * x.shape[n] > 0
  -- whole contiguous planes are a reduction; so are channels-last ones on a GPU, where one thread does a window
  local whole = all and (M.is_contiguous(x) or (x.device ~= "cpu" and M.is_channels_last(x)))
  if whole and M.is_floating_point(x) then return ops.mean(x, {-2, -1}, {keepdim = true, dtype = x.dtype}) end
  return ops.adaptive_avg_pool2d_windows(x, size)
end
def("adaptive_avg_pool2d", "x, output_size:any", "means of windows chosen so that output_size results; {h, false} keeps the width",
  adaptive_avg_pool2d, NN)
def("adaptive_avg_pool1d", "x, output_size:int", "means of windows of the last dim chosen so that output_size results", function(x, size)
  return M.squeeze(adaptive_avg_pool2d(flat2d(x), {1, size}), -2)
end, NN)
def("adaptive_max_pool2d",
  "x, output_size:any, return_indices:bool=false",
  "maxima of windows chosen so that output_size results; {h, false} keeps the width",
  function(x, size, indices)
    local y, i = ops.adaptive_max_pool2d_indices(x, with_kept(x, size))
    if indices then return y, i end
    return y
  end, NN)
def("adaptive_max_pool1d",
  "x, output_size:int, return_indices:bool=false",
  "maxima of windows of the last dim chosen so that output_size results",
  function(x, size, indices)
    local y, i = ops.adaptive_max_pool2d_indices(flat2d(x), {1, size})
    y = M.squeeze(y, -2)
    if indices then return y, M.squeeze(i, -2) end
    return y
  end, NN)
for dims, size in ipairs {"int", "pair", "triple"} do
  def(("lp_pool%dd"):format(dims),
    ("x, p:number, kernel_size:%s, stride:%s?, ceil_mode:bool=false"):format(size, size),
    "p-norm of each kernel_size window",
    function(x, p, k, stride, ceil_mode)
      if p == 0 or p ~= p or math.abs(p) == math.huge then
        fail(("lp_pool%dd"):format(dims), "p must be finite and not 0, got %g; for the maximum use max_pool%dd", p, dims)
      end
      local y, n = M[("avg_pool%dd"):format(dims)](ops.pow(x, p), k, stride, 0, {ceil_mode = ceil_mode}), 1
      for i = 1, dims do n = n * (dims == 1 and k or k[i]) end
      return ops.pow(ops.sign(y) * ops.relu(ops.abs(y)) * n, 1 / p)
    end, NN)
end

---- padding, windows, sizes ----
-- Positions from 1 - before to n + after, mapped into 1..n; computed on x's device, so that nothing is copied from the host.
local function beyond(x, n, before, after, mode)
  local at = ops.range(1 - before, n + after, 1, {dtype = "int64", device = x.device})
  if mode == "replicate" then return ops.clamp(at, 1, n) end
  if mode == "circular" then return ops.remainder(at - 1, n) + 1 end
  return n - ops.abs(n - 1 - ops.abs(at - 1))
end
-- pad_constant of any number of dims, though an op takes numbers for four.
local function pad_constant(x, pad, value)
  if #pad <= 8 then return ops.pad_constant(x, pad, {value = value}) end
  local n, turned, back = M.dim(x), {}, {}
  for i = 1, #pad / 2 do
    local d, before, after = n + 1 - i, pad[2 * i - 1], pad[2 * i]
    if x.shape[d] + before + after < 0 then
      fail("pad", "padding %d and %d makes dim %d of shape %s negative", before, after, d, tostring(x.shape))
    end
  end
  for d = 1, n do turned[d], back[d] = (d + n - 5) % n + 1, (d + 3) % n + 1 end         -- the last four dims in front of the others
  x = ops.permute(ops.pad_constant(x, {unpack(pad, 1, 8)}, {value = value}), turned)
  return M.contiguous(ops.permute(ops.pad_constant(x, {unpack(pad, 9)}, {value = value}), back))
end
def("pad",
  "x, pad:any, mode:enum(constant,reflect,replicate,circular)=constant, value:any?",
  "x with pad = {left, right, top, bottom, ...} elements more, from the last dim on; value (0, false where nil) is a constant padding's",
  function(x, pad, mode, value)
    if type(value) ~= "number" and (value == nil or type(value) == "boolean") then value = value and 1 or 0 end
    if type(value) ~= "number" then fail("pad", "value must be a number or a boolean, got %s", lib.shown(value)) end
    if type(pad) ~= "table" then fail("pad", "argument 2 (pad) must be a list of whole numbers, got %s", lib.shown(pad)) end
    for i, k in ipairs(pad) do options.whole("pad", "item " .. i .. " of argument 2 (pad)", k) end
    if #pad % 2 == 1 or #pad / 2 > M.dim(x) then
      fail("pad", "argument 2 has %d numbers; it needs two for each of up to %d dims", #pad, M.dim(x))
    end
    if mode == "constant" then return pad_constant(x, pad, value) end
    local crop, more, any = {}, {}, false
    for i, k in ipairs(pad) do crop[i], more[i], any = math.min(k, 0), math.max(k, 0), any or k < 0 end
    if any and mode == "circular" then return M.pad(ops.pad_constant(x, crop), more, mode) end
    if any then return ops.pad_constant(M.pad(x, more, mode), crop) end
    -- Pads neighbouring dims together while a plane has no more positions than there are planes, since each position costs more than an
    -- element. A trace must do the same for every batch.
    local at, dims, places, planes = {}, {}, 1, modes.tracing and math.huge or M.numel(x)
    for i = 1, #pad / 2 do
      local n = x.shape[M.dim(x) + 1 - i]
      places, planes = places * (n + pad[2 * i - 1] + pad[2 * i]), planes / math.max(n, 1)
    end
    for i = #pad / 2, 1, -1 do
      local d, before, after = M.dim(x) + 1 - i, pad[2 * i - 1], pad[2 * i]
      local n = x.shape[d]
      local most = mode == "reflect" and n - 1 or mode == "circular" and n or math.huge
      if n < 1 or before > most or after > most then
        fail("pad", "padding %d and %d doesn't fit mode '%s' for dim %d of shape %s", before, after, mode, d, tostring(x.shape))
      end
      if before ~= 0 or after ~= 0 then
        if #dims > 0 and (places > planes or dims[#dims] ~= d - 1) then x, at, dims = ops.index(x, at, dims), {}, {} end
        for k, v in ipairs(at) do at[k] = M.unsqueeze(v, -1) end
        at[#at + 1], dims[#dims + 1] = beyond(x, n, before, after, mode), d
      end
    end
    return #dims > 0 and ops.index(x, at, dims) or x
  end, NN)
-- the number of windows over n elements
local function windows_of(n, k, stride, padding, dilation) return math.floor((n + 2 * padding - dilation * (k - 1) - 1) / stride) + 1 end
def("im2col",
  "x, kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1",
  "windows of (N,C,H,W) as columns (N, C kH kW, L); PyTorch's nn.functional.unfold",
  function(x, k, dilation, padding, stride)
    return batched("im2col", x, 4, function(y)
      local n, c = y.shape[1], y.shape[2]
      local nh = windows_of(y.shape[3], k[1], stride[1], padding[1], dilation[1])
      local nw = windows_of(y.shape[4], k[2], stride[2], padding[2], dilation[2])
      if nh < 1 or nw < 1 then fail("im2col", "the window is larger than the padded input of shape %s", tostring(y.shape)) end
      local v = ops.pad_constant(y, {padding[2], padding[2], padding[1], padding[1]})
      v = ops.unfold(v, 3, k[1], stride[1], {dilation = dilation[1]})
      v = ops.unfold(v, 4, k[2], stride[2], {dilation = dilation[2]})      -- N, C, nh, nw, kh, kw
      return M.reshape(ops.permute(v, {1, 2, 5, 6, 3, 4}), n, c * k[1] * k[2], nh * nw)
    end)
  end, NN)
def("fold",
  "x, output_size:pair, kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1",
  "columns (N, C kH kW, L) added up into (N,C,H,W): im2col's transpose",
  function(x, size, k, dilation, padding, stride)
    return batched("fold", x, 3, function(y)
      local nh = windows_of(size[1], k[1], stride[1], padding[1], dilation[1])
      local nw = windows_of(size[2], k[2], stride[2], padding[2], dilation[2])
      local c = y.shape[2] / (k[1] * k[2])
      if nh < 1 or nw < 1 then fail("fold", "the window is larger than the padded output of size %d x %d", size[1], size[2]) end
      if c % 1 ~= 0 or y.shape[3] ~= nh * nw then
        fail("fold", "argument 1 has shape %s; its channels must be a multiple of %d, and its columns %d",
          tostring(y.shape), k[1] * k[2], nh * nw)
      end
      local H, W = size[1] + 2 * padding[1], size[2] + 2 * padding[2]
      local v = ops.permute(M.reshape(y, y.shape[1], c, k[1], k[2], nh, nw), {1, 2, 3, 5, 6, 4})      -- N, C, kh, nh, nw, kw
      v = ops.permute(ops.overlap_add(v, 5, W, stride[2], dilation[2]), {1, 2, 4, 5, 3})               -- N, C, nh, W, kh
      v = ops.overlap_add(v, 3, H, stride[1], dilation[1])
      return ops.pad_constant(v, {-padding[2], -padding[2], -padding[1], -padding[1]})
    end)
  end, NN)
local FITS = {linear = 1, bilinear = 2, bicubic = 2, trilinear = 3}      -- by mode: the number of dims that it resizes

-- The matrix that maps n pixels to `out`, each a mean over all pixels that it covers, weighted as in PIL (Keys' cubic with a = -1/2).
local function covering(x, n, out, mode, corners, factor)
  local scale = corners and (out > 1 and (n - 1) / (out - 1) or 0) or factor > 0 and 1 / factor or n / out
  local wide = math.max(scale, 1)
  local reach = (mode == "bicubic" and 2 or 1) * wide
  local function weight(t)
    t = math.abs(t / wide)
    if mode == "bilinear" then return math.max(0, 1 - t) end
    return t < 1 and (1.5 * t - 2.5) * t * t + 1 or t < 2 and ((-0.5 * t + 2.5) * t - 4) * t + 2 or 0
  end
  local rows = {}
  for i = 1, out do
    local centre, row, sum = scale * (i - 0.5), {}, 0
    local first, last = math.max(0, math.floor(centre - reach + 0.5)), math.min(n, math.floor(centre + reach + 0.5))
    for j = 1, n do
      row[j] = j > first and j <= last and weight(j - 0.5 - centre) or 0
      sum = sum + row[j]
    end
    for j = 1, n do row[j] = row[j] / sum end
    rows[i] = row
  end
  return M.to(M.to(core.from_value(rows, "float64"), x.dtype), x.device)
end
-- Images x resized to h x w pixels; factors: of x's size, 0 where sizes were given.
local function resized(x, h, w, mode, corners, factors, antialias)
  if not antialias then return ops.resize(x, {h, w}, mode, corners, factors[1], factors[2]) end
  local down = covering(x, x.shape[3], h, mode, corners, factors[1])
  return ops.matmul(ops.matmul(down, x), M.t(covering(x, x.shape[4], w, mode, corners, factors[2])))
end
-- The same for uint8, as PyTorch does it: rows first, rounded to uint8 in between.
local function resized_bytes(x, h, w, mode, corners, factors, antialias)
  local function rounded(y) return ops.clamp(ops.floor(y + 0.5), 0, 255) end
  local rows = rounded(resized(M.float(x), x.shape[3], w, mode, corners, {0, factors[2]}, antialias))
  return M.byte(rounded(resized(rows, h, w, mode, corners, {factors[1], 0}, antialias)))
end
def("interpolate",
  "x, size:any?, scale_factor:any?, mode:enum(nearest,nearest-exact,linear,bilinear,bicubic,trilinear,area)=nearest, \z
    align_corners:bool=false, recompute_scale_factor:bool=false, antialias:bool=false",
  "images (N,C,H,W), lines (N,C,L) or volumes (N,C,D,H,W) of another size",
  function(x, size, factor, mode, align_corners, recompute, antialias)
    local n = M.dim(x) - 2
    if n < 1 or n > 3 then fail("interpolate", "argument 1 must have 3 to 5 dims, got shape %s", tostring(x.shape)) end
    if (FITS[mode] or n) ~= n then fail("interpolate", "mode '%s' doesn't fit shape %s", mode, tostring(x.shape)) end
    local nearest = mode:find "nearest"
    local bytes = x.dtype == "uint8" and n == 2 and mode ~= "area"
    if not bytes and not nearest and not M.is_floating_point(x) then
      fail("interpolate", "argument 1 must have a floating dtype%s, got %s", n == 2 and mode ~= "area" and " or be uint8" or "", x.dtype)
    end
    if nearest and not M.is_floating_point(x) then             -- masks, labels: elements stay exact, up to 2^53
      return M.to(M.interpolate(M.double(x), size, factor, mode, align_corners, recompute, antialias), x.dtype)
    end
    if (size == nil) == (factor == nil) then fail("interpolate", "one of size and scale_factor must be given") end
    if align_corners and not FITS[mode] then fail("interpolate", "align_corners doesn't go with mode '%s'", mode) end
    if antialias and mode ~= "bilinear" and mode ~= "bicubic" then
      fail("interpolate", "antialias goes with modes 'bilinear' and 'bicubic', not with '%s'", mode)
    end
    local out, factors = {}, {0, 0, 0}
    for i = 1, n do
      local v = size ~= nil and size or factor
      if type(v) == "table" then
        if #v ~= n then
          fail("interpolate", "%s must be a number or a list of %d, got a list of %d",
            size ~= nil and "size" or "scale_factor", n, #v)
        end
        v = v[i]
      end
      if type(v) ~= "number" or v <= 0 or v ~= v then
        fail("interpolate", "%s must be numbers above 0, got %s", size ~= nil and "size" or "scale_factor", tostring(v))
      end
      out[i] = size ~= nil and v or math.floor(x.shape[i + 2] * v)
      if factor ~= nil and not recompute then factors[i] = v end
    end
    if mode == "area" then return M[("adaptive_avg_pool%dd"):format(n)](x, n == 1 and out[1] or out) end
    local kind = (mode == "linear" or mode == "trilinear") and "bilinear" or mode
    if antialias then
      for i = 1, 2 do
        if out[i] < 1 or out[i] * x.shape[i + 2] > 2 ^ 26 then
          fail("interpolate", "size %.4g of dim %d is too %s with antialias", out[i], i + 2, out[i] < 1 and "small" or "large")
        end
      end
    end
    if n == 2 then return (bytes and resized_bytes or resized)(x, out[1], out[2], kind, align_corners, factors, antialias) end
    for i = 1, n do factors[i] = -factors[i] end               -- the sign that ty_taps expects
    if n == 1 then return M.squeeze(ops.resize(flat2d(x), {1, out[1]}, kind, align_corners, 0, factors[1]), 3) end
    local s = x.shape                        -- each plane, then depth
    local y = ops.resize(M.reshape(x, s[1], s[2] * s[3], s[4], s[5]), {out[2], out[3]}, kind, align_corners, factors[2], factors[3])
    y = ops.resize(M.reshape(y, s[1], s[2], s[3], out[2] * out[3]), {out[1], out[2] * out[3]}, kind, align_corners, factors[1], 0)
    return M.reshape(y, s[1], s[2], out[1], out[2], out[3])
  end, NN)

---- dropout and normalisation ----
def("dropout",
  "x, p:number=0.5, training:bool=true",
  "elements set to 0 with probability p, the others scaled by 1 / (1 - p)",
  function(x, p, training)
    if not training or p == 0 then return x end
    -- vmap: a mask that doesn't depend on a mapped tensor can be the same for all examples
    if core.is_mapped(x) then
      local scale = ops.dropout_mask(ops.ones(x.shape, {dtype = x.dtype, device = x.device}), p)
      return ops.where(ops.eq(scale, 0), 0, x * scale)
    end
    return (ops.dropout_mask(x, p))
  end, NN)
def("batch_norm", "x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, training:bool=false, momentum:number=0.1, eps:number=1e-5",
  "each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted",
  function(x, mean, var, w, b, training, momentum, eps)
    if training and modes.now.recomputing then mean, var = nil, nil end      -- the first run has updated them
    return (ops.batch_norm_stats(x, mean, var, w, b, {training = training, momentum = momentum, eps = eps}))
  end, NN)
def("layer_norm",
  "x, size:sizes, weight:tensor?, bias:tensor?, eps:number=1e-5",
  "normalised over the last dims, of shape size, then scaled and shifted",
  function(x, size, w, b, eps)
    return (ops.layer_norm_stats(x, size, w, b, {eps = eps}))
  end, NN)
def("rms_norm",
  "x, size:sizes, weight:tensor?, eps:number?",
  "divided by the root mean square over the last dims, of shape size, then scaled",
  function(x, size, w, eps)
    return (ops.rms_norm_stats(x, size, w, {eps = eps or lib.EPS[x.dtype == "float64" and "float64" or "float32"]}))
  end, NN)
local function per_channel(x, v)
  local shape = {1, -1}
  for i = 3, M.dim(x) do shape[i] = 1 end
  return M.view(v, shape)
end
def("group_norm",
  "x, groups:int, weight:tensor?, bias:tensor?, eps:number=1e-5",
  "channels (dim 2) normalised in groups, for each item of the batch, then scaled and shifted",
  function(x, groups, w, b, eps)
    if M.dim(x) < 2 or groups < 1 or x.shape[2] % groups ~= 0 then
      fail("group_norm", "the number of channels of shape %s must be a multiple of %d", tostring(x.shape), groups)
    end
    for i, t in pairs {w or false, b or false} do
      if t and M.numel(t) ~= x.shape[2] then
        fail("group_norm", "argument 1 has shape %s, %d channels; %s has %d elements", tostring(x.shape), x.shape[2],
          i == 1 and "weight" or "bias", M.numel(t))
      end
    end
    if M.numel(x) == groups then
      fail("group_norm", "shape %s has one value per group, which can't be normalised", tostring(x.shape))
    end
    return (ops.group_norm_stats(x, groups, w and M.reshape(w, -1), b and M.reshape(b, -1), {eps = eps}))
  end, NN)
def("instance_norm",
  "x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, use_input_stats:bool=true, momentum:number=0.1, eps:number=1e-5",
  "each channel of each item normalised on its own, then scaled and shifted",
  function(x, mean, var, w, b, own, momentum, eps)
    if M.dim(x) < 3 then fail("instance_norm", "argument 1 must have at least 3 dims, got shape %s", tostring(x.shape)) end
    if not own then return F.batch_norm(x, mean, var, w, b, {eps = eps}) end
    local n, c = x.shape[1], x.shape[2]
    if M.numel(x) == n * c and n > 0 then
      fail("instance_norm", "shape %s has one value per channel, which can't be normalised", tostring(x.shape))
    end
    if mean and var and n > 0 then
      modes.once(function()
        local rows = M.reshape(x, n, c, -1)
        M.lerp_(mean, M.to(ops.mean(ops.mean(rows, 3), 1), mean.dtype), momentum)
        M.lerp_(var, M.to(ops.mean(M.var(rows, 3), 1), var.dtype), momentum)
      end)
    end
    return F.group_norm(x, c, w, b, {eps = eps})
  end, NN)
def("local_response_norm",
  "x, size:int, alpha:number=1e-4, beta:number=0.75, k:number=1",
  "divided by a power of the mean square over size neighbouring channels",
  function(x, size, alpha, beta, k)
    if size < 1 then fail("local_response_norm", "size must be at least 1, got %d", size) end
    if M.numel(x) == 0 then return ops.clone(x) end
    local shape = {x.shape[1], 1, x.shape[2], -1}
    local sq = M.reshape(ops.square(x), shape)
    sq = ops.pad_constant(sq, {0, 0, math.floor(size / 2), math.floor((size - 1) / 2)})
    local mean = M.reshape(ops.avg_pool2d(sq, {size, 1}, 1), x.shape)
    return x / ops.pow(mean * alpha + k, beta)
  end, NN)
def("normalize", "x, p:number=2, dim:dims?, eps:number=1e-12", "divided by its p-norm along dim (2), or dims", function(x, p, dim, eps)
  return x / ops.clamp(M.norm(x, p, dim or 2, {keepdim = true}), eps)
end, NN)

---- dropout of whole channels, or that keeps mean and variance ----
local function channels(name, dims)
  def(name,
    "x, p:number=0.5, training:bool=true",
    "whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)",
    function(x, p, training)
      if not training or p == 0 then return x end
      local shape = {}
      local n = M.dim(x)
      local first = n - math.min(dims, math.max(n - 2, 1))      -- (N,C,L) is a batch
      for i = 1, n do shape[i] = i <= first and x.shape[i] or 1 end
      return x * (ops.dropout_mask(ops.ones(shape, {dtype = x.dtype, device = x.device}), p))
    end, NN)
end
channels("dropout1d", 1)
channels("dropout2d", 2)
channels("dropout3d", 3)
def("alpha_dropout", "x, p:number=0.5, training:bool=false", "dropout that keeps mean and variance under selu", function(x, p, training)
  if not (p >= 0 and p <= 1) then fail("alpha_dropout", "p must be in 0..1, got %g", p) end
  if not training or p == 0 then return x end
  if p == 1 then return x * 0 end
  local alpha = -1.7580993408473766
  local a = (((1 - p) * (1 + p * alpha * alpha)) ^ -0.5)
  local keep = ops.gt(ops.rand(x.shape, {device = x.device}), p)
  return ops.where(keep, x, alpha) * a - a * alpha * p
end, NN)

---- activations made of others ----
def("gelu",
  "x, approximate:enum(none,tanh)=none",
  "Gaussian error linear unit: x times the normal distribution's value at x",
  function(x, approximate)
    return (approximate == "tanh" and ops.gelu_tanh or ops.gelu_erf)(x)
  end, {nn = true, inplace = true})
def("relu6", "x", "x limited to 0..6", function(x) return ops.hardtanh(x, 0, 6) end, {nn = true, inplace = true})
def("tanhshrink", "x", "x - tanh(x)", function(x) return x - ops.tanh(x) end, NN)
def("softmin", "x, dim:int, *, dtype:dtype?", "softmax of -x", function(x, dim, dtype) return ops.softmax(-x, dim, {dtype = dtype}) end, NN)
def("glu", "x, dim:int=-1", "the first half of dim times sigmoid of the second", function(x, dim)
  local n = x.shape[wrap("glu", dim, M.dim(x))]
  if n % 2 == 1 then fail("glu", "dim %d of shape %s must be even", dim, tostring(x.shape)) end
  if n == 0 then return ops.clone(x) end
  return lib.widened(x, function(wide)
    local h = M.split(wide, n / 2, dim)
    return h[1] * ops.sigmoid(h[2])
  end)
end, NN)
def("prelu", "x, weight", "x where x > 0, else weight * x; weight has one element, or one for each channel (dim 2)", function(x, w)
  local c, n = M.dim(x) > 1 and x.shape[2] or 1, M.numel(w)
  if n ~= 1 and n ~= c then
    fail("prelu", "argument 2 (weight) of shape %s must have one element, or one for each of %d channels", tostring(w.shape), c)
  end
  return ops.prelu_values(x, n == 1 and M.view(w, {}) or per_channel(x, w))
end, NN)
def("rrelu",
  "x, lower:number=0.125, upper:number=0.3333333333333333, training:bool=false",
  "leaky_relu whose slope is drawn from lower..upper while training",
  function(x, lower, upper, training)
    if lower > upper then fail("rrelu", "lower %g is above upper %g", lower, upper) end
    if not training then return ops.leaky_relu(x, (lower + upper) / 2) end
    return ops.where(ops.ge(x, 0), x, x * (ops.rand(x.shape, {dtype = x.dtype, device = x.device}) * (upper - lower) + lower))
  end, NN)
def("gumbel_softmax",
  "x, tau:number=1, hard:bool=false, dim:int=-1",
  "a sample from the categories along dim that gradients flow through",
  function(x, tau, hard, dim)
    local noise = -ops.log(ops.exponential(ops.empty(x.shape, {dtype = x.dtype, device = x.device})))
    local y = ops.softmax((x + noise) / tau, dim)
    if not hard then return y end
    local _, top = ops.max_dim(y, dim, true)
    return ops.scatter(ops.fill(M.detach(y), 0), dim, top, 1) - M.detach(y) + y
  end, NN)

---- attention ----
-- x's shape without its last two dims; and such a shape with two dims added.
local function leading(x)
  local s = x.shape
  table.remove(s)
  table.remove(s)
  return s
end
local function with_last(lead, rows, columns)
  local s = {unpack(lead)}
  s[#s + 1], s[#s + 2] = rows, columns
  return s
end

-- softmax(q k^T * scale + mask) v over (..., L, D). The fused op's memory grows with L only; a float mask that requires grad uses the plain
-- ops instead.
def("scaled_dot_product_attention",
  "q, k, v, attn_mask:tensor?, dropout_p:number=0, is_causal:bool=false, *, scale:number?, enable_gqa:bool=false",
  "softmax(q @ k^T * scale + attn_mask) @ v; a bool mask is true where to attend; scale defaults to 1 / sqrt(D); what is dropped, \z
    not by what the rest is multiplied, goes by dropout_p rounded to 1 / 65536",
  function(q, k, v, mask, p, causal, scale, gqa)
    local n = M.dim(q)
    if n < 2 or M.dim(k) ~= n or M.dim(v) ~= n then
      fail("scaled_dot_product_attention", "shapes %s, %s and %s must have the same number of dims, at least 2",
        tostring(q.shape), tostring(k.shape), tostring(v.shape))
    end
    if mask and mask.dtype ~= "bool" and not M.is_floating_point(mask) then
      fail("scaled_dot_product_attention", "attn_mask must be bool or floating, got %s", mask.dtype)
    end
    if mask and causal then fail("scaled_dot_product_attention", "attn_mask and is_causal exclude each other") end
    scale = scale or 1 / math.sqrt(math.max(q.shape[n], 1))
    if gqa and n >= 3 and k.shape[n - 2] ~= q.shape[n - 2] then
      local times = q.shape[n - 2] / k.shape[n - 2]
      if times % 1 ~= 0 then
        fail("scaled_dot_product_attention", "%d query heads must be a multiple of the %d key heads", q.shape[n - 2], k.shape[n - 2])
      end
      -- few queries: heads that share keys are joined to one, so that keys are read once and never repeated
      local queries, lead = q.shape[n - 1], leading(q)
      lead[n - 2] = k.shape[n - 2]
      if not causal and lead == leading(k) and lead == leading(v) and (queries == 1 or not mask and 2 * queries <= k.shape[n - 1]) then
        local function folded(x) return M.reshape(x, unpack(with_last(lead, times * queries, x.shape[n]))) end
        if mask then mask = folded(ops.expand(mask, with_last(leading(q), queries, k.shape[n - 1]))) end
        local y = M.scaled_dot_product_attention(folded(q), k, v, mask, {dropout_p = p, scale = scale})
        return M.reshape(y, unpack(with_last(leading(q), queries, v.shape[n])))
      end
      k, v = M.repeat_interleave(k, times, n - 2), M.repeat_interleave(v, times, n - 2)
    end
    if mask and mask.requires_grad and core.is_grad_enabled() then
      local root = math.sqrt(math.abs(scale))            -- on both operands: unscaled 16-bit products may overflow
      local w = lib.attention_weights(ops.matmul(q * (scale < 0 and -root or root), M.transpose(k * root, -2, -1)) + mask)
      return ops.matmul(M.to(p > 0 and ops.dropout_mask(w, p) or w, v.dtype), v)
    end
    local lead = leading(q)
    if leading(k) ~= lead or leading(v) ~= lead then        -- batch and head dims broadcast
      lead = lib.common_shape("scaled_dot_product_attention", {lead, leading(k), leading(v)})
      local function widened(x) return ops.expand(x, with_last(lead, x.shape[n - 1], x.shape[n])) end
      q, k, v = widened(q), widened(k), widened(v)
    end
    local function four(x)
      if n == 4 then return x end
      if n == 3 then return M.unsqueeze(x, 1) end
      if n == 2 then return ops.view(x, {1, 1, x.shape[1], x.shape[2]}) end
      return M.reshape(x, -1, x.shape[n - 2], x.shape[n - 1], x.shape[n])
    end
    if mask then
      local shape = q.shape
      shape[n] = k.shape[n - 1]
      mask = four(ops.expand(mask, setmetatable(shape, nil)))
      if mask.dtype ~= "bool" and mask.dtype ~= q.dtype then mask = M.to(mask, q.dtype) end
    end
    local y = ops.attention(four(q), four(k), four(v), mask, {causal = causal, scale = scale, dropout = p})
    return n == 4 and y or M.view(y, with_last(lead, q.shape[n - 1], v.shape[n]))
  end, NN)
lib.alias("upsample", "interpolate")
