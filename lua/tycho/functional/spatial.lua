-- Padding, windows as columns, and resizing, over the last dims.
--
-- Idea: the ops pad by a number and resize pictures; other modes of padding index the input, and other numbers of dims are pictures of
-- another shape. Invariant: any number of dims that PyTorch takes.
local core = require "tycho.core"
local options = require "tycho.options"
local modes = require "tycho.modes"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, batched, NN = lib.def, lib.fail, lib.batched, lib.NN

---- padding ----
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
    local at, dims, places, planes = {}, {}, 1, modes.now.tracing and math.huge or M.numel(x)
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

---- windows as columns ----
-- The number of windows over n elements.
local function windows_of(n, k, stride, padding, dilation) return math.floor((n + 2 * padding - dilation * (k - 1) - 1) / stride) + 1 end
def("im2col",
  "x, kernel_size:pair, dilation:pair=1, padding:pair=0, stride:pair=1",
  "windows of (N,C,H,W) as columns (N, C kH kW, L); PyTorch's nn.functional.unfold",
  function(x, k, dilation, padding, stride)
    for name, v in pairs {kernel_size = k, dilation = dilation, stride = stride} do
      if v[1] < 1 or v[2] < 1 then fail("im2col", "%s must be at least 1, got {%d, %d}", name, v[1], v[2]) end
    end
    if padding[1] < 0 or padding[2] < 0 then fail("im2col", "padding must not be negative, got {%d, %d}", padding[1], padding[2]) end
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

---- resizing ----
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
    if n == 1 then return M.squeeze(ops.resize(M.unsqueeze(x, -2), {1, out[1]}, kind, align_corners, 0, factors[1]), 3) end
    local s = x.shape                        -- each plane, then depth
    local y = ops.resize(M.reshape(x, s[1], s[2] * s[3], s[4], s[5]), {out[2], out[3]}, kind, align_corners, factors[2], factors[3])
    y = ops.resize(M.reshape(y, s[1], s[2], s[3], out[2] * out[3]), {out[1], out[2] * out[3]}, kind, align_corners, factors[1], 0)
    return M.reshape(y, s[1], s[2], out[1], out[2], out[3])
  end, NN)

lib.alias("upsample", "interpolate")
