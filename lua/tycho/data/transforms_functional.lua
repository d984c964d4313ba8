-- tycho.data.transforms.functional: what transforms do, by given numbers. Names and meanings are torchvision's.
--
-- Idea: a function is a step for C (transform_steps.lua), run at once on a picture (C, H, W) or a batch of pictures; those that aren't
-- steps consist of others.
local core = require "tycho.core"
local options = require "tycho.options"
local S = require "tycho.data.transform_steps"
local fail = options.fail
local ops, M = core.ops, core.methods
local colours = core.colours
local functional = {}

local function fixed(name, signature, step)
  functional[name] = core.define(name, "x, " .. signature, function(x, ...)
    local ok, y = pcall(S.run, x, {step(...)}, false)
    if not ok then fail("%s: %s", name, S.without_names(name, y)) end
    return y
  end)
end
-- crop(x, top, left, height, width): the rectangle whose first row is top and first column left, from 1, or less; parts outside the picture
-- are 0. These functions take a picture (C, H, W), or a batch of pictures.
fixed("crop", "top:int, left:int, height:int, width:int", function(top, left, h, w) return {"crop", top - 1, left - 1, h, w} end)
-- center_crop(x, size): as CenterCrop.
fixed("center_crop", "size:pair", function(size) return {"center_crop", size[1], size[2]} end)
-- resize(x, size, {interpolation="bilinear", max_size=, antialias=true}): as Resize.
fixed("resize", "size:any, interpolation:enum(nearest,bilinear,bicubic)=bilinear, max_size:int?, antialias:bool=true",
  function(...) return S.resize("resize", ...) end)
-- resized_crop(x, top, left, height, width, size, {interpolation="bilinear", antialias=true}): a crop, resized.
functional.resized_crop = core.define("resized_crop",
  "x, top:int, left:int, height:int, width:int, size:any, interpolation:enum(nearest,bilinear,bicubic)=bilinear, antialias:bool=true",
  function(x, top, left, h, w, size, mode, antialias)
    return functional.resize(functional.crop(x, top, left, h, w), size, mode, {antialias = antialias})
  end)
-- pad(x, padding, {fill=0, padding_mode="constant"}): as Pad.
fixed("pad", "padding:any, fill:any?, padding_mode:enum(constant,edge,reflect)=constant",
  function(padding, fill, mode) return S.pad("pad", padding, fill, mode) end)
-- hflip(x): left and right swapped.
fixed("hflip", "", function() return {"hflip", 1} end)
-- vflip(x): top and bottom swapped.
fixed("vflip", "", function() return {"vflip", 1} end)
-- rotate(x, degrees, {interpolation="nearest", expand=false, center=, fill=0}): counterclockwise about the middle, or center = {x, y}, in
-- pixels from 1; expand: the picture becomes as large as the rotated one.
fixed("rotate",
  "degrees:number, interpolation:enum(nearest,bilinear)=nearest, expand:bool=false, center:any?, fill:any?",
  function(degrees, mode, expand, centre, fill)
    local step = S.centred("rotate", centre, S.sampled("rotate", mode, fill, {"rotate", degrees}))
    step[#step + 1] = expand and 1 or 0
    return step
  end)
-- affine(x, degrees, translate, scale, shear, {interpolation="nearest", fill=0, center=}): rotated, moved by translate = {x, y} pixels,
-- scaled, sheared by degrees: a number, or {x, y}.
fixed("affine",
  "degrees:number, translate:any, scale:number, shear:any, interpolation:enum(nearest,bilinear)=nearest, fill:any?, center:any?",
  function(degrees, move, scale, shear, mode, fill, centre)
    if type(shear) == "number" then shear = {shear, 0} end
    for _, pair in ipairs {{"translate", move}, {"shear", shear}} do
      local v = pair[2]
      if type(v) ~= "table" or type(v[1]) ~= "number" or type(v[2] or 0) ~= "number" then
        fail("affine: %s must be two numbers, got %s", pair[1], options.shown(v))
      end
    end
    return S.centred("affine", centre,
      S.sampled("affine", mode, fill, {"warp", degrees, move[1], move[2] or 0, scale, shear[1], shear[2] or 0}))
  end)
-- The map that takes four points {{x, y}, ...} of the picture (pixels from 1) to four others.
local function projection(startpoints, endpoints)
  local rows, right = {}, {}
  for k = 1, 4 do
    if type(startpoints) ~= "table" or type(endpoints) ~= "table" then
      fail("perspective: startpoints and endpoints must be lists of four points {x, y}")
    end
    local from, to = startpoints[k], endpoints[k]
    for _, point in ipairs {from or false, to or false} do
      if type(point) ~= "table" or type(point[1]) ~= "number" or type(point[2]) ~= "number" then
        fail("perspective: startpoints and endpoints must be lists of four points {x, y}")
      end
    end
    local x, y, u, v = to[1] - 1, to[2] - 1, from[1] - 1, from[2] - 1
    rows[2 * k - 1], right[2 * k - 1] = {x, y, 1, 0, 0, 0, -u * x, -u * y}, {u}
    rows[2 * k], right[2 * k] = {0, 0, 0, x, y, 1, -v * x, -v * y}, {v}
  end
  local ok, m = pcall(core.ops.solve_system, M.cpu(core.from_value(rows, "float64")), M.cpu(core.from_value(right, "float64")))
  if not ok then fail("perspective: nothing maps startpoints to endpoints: three of the points lie on a line") end
  return m:flatten():totable()
end
-- perspective(x, startpoints, endpoints, {interpolation="bilinear", fill=0}): the map that takes four points {{x, y}, ...}, in pixels from
-- 1, to four others.
fixed("perspective",
  "startpoints:any, endpoints:any, interpolation:enum(nearest,bilinear)=bilinear, fill:any?",
  function(startpoints, endpoints, mode, fill)
    local m = projection(startpoints, endpoints)
    return S.sampled("perspective", mode, fill, {"project", m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]})
  end)
-- normalize(x, mean, std): as Normalize.
fixed("normalize", "mean:any, std:any", function(mean, std) return S.per_channel("normalize", mean, std) end)
-- gaussian_blur(x, kernel_size, sigma=): kernel_size: a number, or {x, y}; sigma likewise, by default 0.3 ((kernel_size - 1) / 2 - 1) +
-- 0.8.
fixed("gaussian_blur", "kernel_size:pair, sigma:any?", function(size, sigma)
  if type(sigma) == "number" then sigma = {sigma, sigma} end
  if sigma ~= nil and type(sigma) ~= "table" then fail("gaussian_blur: sigma must be a number or two, got %s", options.shown(sigma)) end
  sigma = sigma or {0.3 * ((size[1] - 1) * 0.5 - 1) + 0.8, 0.3 * ((size[2] - 1) * 0.5 - 1) + 0.8}
  local x = S.interval("gaussian_blur", "sigma", {sigma[1], sigma[1]}, 1e-9, 1e6)
  local y = S.interval("gaussian_blur", "sigma", {sigma[2] or sigma[1], sigma[2] or sigma[1]}, 1e-9, 1e6)
  return {"blur", size[1], size[2], x, x, y / x}
end)
for _, name in ipairs {"brightness", "contrast", "saturation", "hue", "sharpness"} do
  -- adjust_brightness(x, factor) and so on: a factor of 1 changes nothing; for hue the factor is a shift of -0.5..0.5, and 0 changes
  -- nothing.
  fixed("adjust_" .. name, "factor:number", function(factor) return {"colour", colours[name], factor} end)
end
-- posterize(x, bits): keeps only the upper bits of 8.
fixed("posterize", "bits:int", function(bits) return {"colour", colours.posterize, bits} end)
-- solarize(x, threshold): inverts values at or above threshold, in 0..1.
fixed("solarize", "threshold:number", function(threshold) return {"colour", colours.solarize, threshold} end)
for _, name in ipairs {"rgb_to_grayscale", "to_grayscale"} do
  -- rgb_to_grayscale(x, num_output_channels=1), to_grayscale: as Grayscale.
  fixed(name, "num_output_channels:int=1", function(n) return {"colour", colours.grayscale, S.one_or_three(name, n)} end)
end
for name, step in pairs {autocontrast = "autocontrast", equalize = "equalize", invert = "invert"} do
  -- As RandomAutocontrast, RandomEqualize and RandomInvert, always.
  fixed(name, "", function() return {"colour", colours[step], 0} end)
end
-- adjust_gamma(x, gamma, gain=1): gain * x ^ gamma, kept in 0..1.
functional.adjust_gamma = core.define("adjust_gamma", "x, gamma:number, gain:number=1", function(x, gamma, gain)
  options.number("adjust_gamma", "gamma", gamma, 0)
  return ops.clamp(ops.pow(S.run(x, {}, false), gamma) * gain, 0, 1)
end)
-- convert_image_dtype(x, dtype="float32"): as ConvertImageDtype.
fixed("convert_image_dtype", "dtype:dtype?", S.dtype)
-- erase(x, top, left, height, width, value, {inplace=false}): with a rectangle, from 1, set to value: a number or a tensor that expands to
-- C x height x width.
functional.erase = core.define("erase",
  "x, top:int, left:int, height:int, width:int, value:operand, *, inplace:bool=false",
  function(x, top, left, h, w, value, inplace)
    local rows, columns = M.size(x, -2), M.size(x, -1)
    if top < 1 or left < 1 or h < 0 or w < 0 or top + h - 1 > rows or left + w - 1 > columns then
      fail("erase: the rectangle of %dx%d at row %d, column %d isn't within the picture of %dx%d", h, w, top, left, rows, columns)
    end
    local y = inplace and x or ops.clone(x)
    local part = M.narrow(M.narrow(y, -2, top, h), -1, left, w)
    if core.is_tensor(value) then M.copy_(part, value) else M.fill_(part, value) end
    return y
  end)
-- five_crop(x, size): a list of the four corners and the centre.
functional.five_crop = core.define("five_crop", "x, size:pair", function(x, size)
  local h, w, crop = M.size(x, -2), M.size(x, -1), functional.crop
  if size[1] > h or size[2] > w then fail("five_crop: the crop of %dx%d is larger than the picture of %dx%d", size[1], size[2], h, w) end
  local bottom, right = h - size[1] + 1, w - size[2] + 1
  return {crop(x, 1, 1, size[1], size[2]), crop(x, 1, right, size[1], size[2]), crop(x, bottom, 1, size[1], size[2]),
    crop(x, bottom, right, size[1], size[2]), functional.center_crop(x, size)}
end)
-- ten_crop(x, size, vertical_flip=false): five_crop's five, and five of the mirrored picture.
functional.ten_crop = core.define("ten_crop", "x, size:pair, vertical_flip:bool=false", function(x, size, vertical)
  local out = functional.five_crop(x, size)
  for _, y in ipairs(functional.five_crop((vertical and functional.vflip or functional.hflip)(x), size)) do out[#out + 1] = y end
  return out
end)
-- elastic_transform(x, displacement, {interpolation="bilinear", fill=0}): each pixel of the result comes from where displacement (1, H, W,
-- 2), in x and y, moves it; the picture's width and height are 2.
functional.elastic_transform = core.define("elastic_transform",
  "x, displacement:tensor, interpolation:enum(nearest,bilinear)=bilinear, fill:any?",
  function(x, displacement, mode, fill)
    x = S.run(x, {}, false)
    local lone = M.dim(x) == 3
    if lone then x = M.unsqueeze(x, 1) end
    local n, c, h, w = unpack(x.shape)
    if tostring(displacement.shape) ~= ("1x%dx%dx2"):format(h, w) then
      fail("elastic_transform: displacement must have shape 1x%dx%dx2, got %s", h, w, tostring(displacement.shape))
    end
    local function places(size) return ops.linspace((1 - size) / size, (size - 1) / size, size, {device = x.device}) end
    local grid = ops.stack({ops.expand(places(w), h, w), ops.expand(M.unsqueeze(places(h), 2), h, w)}, 3)
    grid = ops.expand(M.unsqueeze(grid, 1) + displacement, n, h, w, 2)
    local sample = require("tycho.functional").functions.grid_sample
    local function taken(y) return sample(y, grid, mode, "zeros", false) end
    local y = taken(x)
    local values, count = S.fill("elastic_transform", fill)
    if count ~= 1 and count ~= c then fail("elastic_transform: a picture of %d channels with %d values to fill with", c, count) end
    local outside = core.from_value({unpack(values, 1, count)}, "float32")
    if fill then y = y + (1 - taken(ops.fill(x, 1))) * M.view(M.to(outside, x.device), 1, -1, 1, 1) end
    return lone and M.squeeze(y, 1) or y
  end)

return options.told(functional, "transforms.functional")
