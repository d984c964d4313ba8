-- Pictures of tensors: several side by side, and as PNG files (torchvision.utils' make_grid and save_image).
local core = require "tycho.core"
local options = require "tycho.options"
local no_grad = require("tycho.modes").no_grad
local fail = options.fail
local ops, M = core.ops, core.methods
local pictures = {}

local OPTIONS = {nrow = 8, padding = 2, normalize = false, value_range = options.none, scale_each = false, pad_value = 0}

-- x scaled to 0..1 from its least and largest value, or from the given range
local function stretched(x, range)
  local lo, hi = ops.amin(x), ops.amax(x)
  if range then lo, hi = range[1], range[2] end
  return ops.clamp((x - lo) / ops.clamp(core.is_tensor(hi) and hi - lo or
    ops.full({}, hi - lo, {dtype = x.dtype, device = x.device}), 1e-5), 0, 1)
end

local function grid(who, x, o)
  o = options.fill(who, o, OPTIONS)
  if o.value_range then
    local range = o.value_range
    if type(range) ~= "table" or type(range[1]) ~= "number" or type(range[2]) ~= "number" then
      fail("%s: value_range must be a list of two numbers, got %s", who, options.shown(range))
    end
  end
  if type(x) == "table" and not core.is_tensor(x) then x = core.ops.stack(x, 1) end
  if not core.is_tensor(x) or M.dim(x) < 2 or M.dim(x) > 4 then
    fail("%s: argument 1 must be a tensor NxCxHxW, CxHxW or HxW, or a list of tensors, got %s", who,
      core.is_tensor(x) and "shape " .. tostring(x.shape) or type(x))
  end
  x = M.detach(x)
  while M.dim(x) < 4 do x = M.unsqueeze(x, 1) end
  if x.dtype == "uint8" then x = M.float(x) / 255 else x = M.float(x) end
  if x.shape[2] ~= 1 and x.shape[2] ~= 3 then fail("%s: pictures must have 1 or 3 channels, got shape %s", who, tostring(x.shape)) end
  x = ops.expand(x, -1, 3, -1, -1)
  local n, h, w = x.shape[1], x.shape[3], x.shape[4]
  if o.normalize then
    if not o.scale_each then x = stretched(x, o.value_range)
    else
      local each = {}
      for i = 1, n do each[i] = stretched(ops.slice(x, 1, i, i), o.value_range) end
      x = ops.cat(each, 1)
    end
  end
  if n == 1 then return ops.select(x, 1, 1) end
  local p, wide = options.whole(who, "padding", o.padding, 0), math.min(options.whole(who, "nrow", o.nrow, 1), n)
  local tall = math.ceil(n / wide)
  local out = ops.full({3, tall * (h + p) + p, wide * (w + p) + p}, o.pad_value, {device = x.device})
  for i = 1, n do
    local row, column = math.floor((i - 1) / wide), (i - 1) % wide
    M.copy_(ops.slice(ops.slice(out, 2, row * (h + p) + p + 1, row * (h + p) + p + h), 3, column * (w + p) + p + 1,
      column * (w + p) + p + w), ops.select(x, 1, i))
  end
  return out
end

-- make_grid(pictures, {nrow=8, padding=2, normalize=false, value_range={lo, hi}, scale_each=false, pad_value=0}): joins pictures N x C x H
-- x W of values in 0..1 (uint8: 0..255), or a list of CxHxW, to one picture 3xHxW, with nrow of them in a row.
function pictures.make_grid(x, o) return no_grad(grid, "make_grid", x, o) end

-- save_image(pictures, path, {options of make_grid}): writes that picture as a PNG file.
function pictures.save_image(x, path, o)
  if type(path) ~= "string" then fail("save_image: argument 2 must be a file's name, got " .. type(path)) end
  local picture = no_grad(grid, "save_image", x, o)
  local ok, e = pcall(core.write_png, path, M.contiguous(M.to(
    ops.floor(ops.permute(ops.clamp(ops.masked_fill(picture, ops.isnan(picture), 0), 0, 1) * 255 + 0.5, {2, 3, 1})),
    "uint8"):cpu()))
  if not ok then fail("save_image: %s", tostring(options.bare(e))) end
end

return pictures
