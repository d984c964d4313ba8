-- Transforms of pictures: float32 or uint8 tensors CxHxW (uint8: 0..255, read as 0..1). Names and meanings are torchvision's.
--
-- Idea: a transform is a list of steps for C (src/io/transform.c), each a name and numbers. A Compose of such transforms is one longer
-- list, which a loader's threads run without Lua; if it contains a function, it runs in Lua. In a loader, random draws follow from its
-- seed, the epoch, the item's place in the epoch and the item; a transform called directly draws from the CPU's generator. Positions are
-- 1-based.
local core = require "tycho.core"
local options = require "tycho.options"
local callable = require("tycho.modes").callable
local fail = options.fail
local ops, M = core.ops, core.methods
local transforms, functional = {}, {}
transforms.functional = functional

local Transform = {}
Transform.__index = Transform
Transform.__tostring = function(t) return t.text end

-- The steps of a transform that C can run alone; nil if it can't.
function transforms.steps(t)
  return type(t) == "table" and getmetatable(t) == Transform and t.steps or nil
end

local function run(x, steps, random)
  if not core.is_tensor(x) then error("transforms: argument 1 must be a picture, a tensor CxHxW, got " .. type(x), 0) end
  if M.dim(x) == 4 then
    local out = {}
    for i = 1, #x do out[i] = M.unsqueeze(run(x[i], steps, random), 1) end
    return ops.cat(out, 1)
  end
  if M.dim(x) == 2 then x = M.unsqueeze(x, 1) end
  if x.dtype ~= "uint8" and x.dtype ~= "float32" and M.is_floating_point(x) then x = M.float(x) end
  return core.apply_transforms(x:detach(), steps, random and ops.randint(0, 2 ^ 52, {1}, {device = "cpu"}):item() or 0)
end

local function uniform() return ops.rand({1}, {device = "cpu", dtype = "float64"}):item() end

-- Applies a list's transforms in order, from the i-th. Values that come with the picture, such as its label, pass through where a transform
-- returns nothing in their place.
local function in_turn(list, i, x, ...)
  if not list[i] then return x, ... end
  local out
  local function take(...) out = options.pack(...) end
  take(list[i](x, ...))
  if out.n > 1 and select("#", ...) > 0 then return in_turn(list, i + 1, unpack(out, 1, out.n)) end
  return in_turn(list, i + 1, out[1], ...)
end

function Transform:__call(x, ...)
  if self.weights then                     -- runs one of the list
    local share = uniform()
    for i, w in ipairs(self.weights) do
      share = share - w
      if share < 0 or i == #self.weights then return in_turn({self.list[i]}, 1, x, ...) end
    end
  elseif self.list then
    if self.p and uniform() >= self.p then return x, ... end
    local list = self.list
    if self.any_order then
      list = {unpack(list)}
      for i = #list, 2, -1 do
        local k = math.floor(uniform() * i) + 1
        list[i], list[k] = list[k], list[i]
      end
    end
    return in_turn(list, 1, x, ...)
  end
  local ok, y = pcall(run, x, self.steps, self.random)
  if not ok then fail(y) end
  return y, ...
end

local function make(text, random, ...) return setmetatable({text = text, random = random, steps = {...}}, Transform) end
local function bit(b) return b and 1 or 0 end
local borders, colours = core.borders, core.colours

-- The interval {-v, v} of a number, or a list {least, most}; lo, hi: bounds for both ends.
local function interval(who, name, v, lo, hi)
  local a, b, shown
  if type(v) == "number" then a, b = -v, v
  elseif type(v) == "table" then a, b, shown = v[1], v[2], ("{%s, %s}"):format(options.shown(v[1]), options.shown(v[2])) end
  if type(a) ~= "number" or type(b) ~= "number" or a > b or (lo and a < lo) or (hi and b > hi) then
    fail("%s: %s must be a number or a list of two, {least, most}%s, got %s", who, name,
      lo and (" of %g to %g"):format(lo, hi) or "", shown or options.shown(v))
  end
  return a, b
end

-- left, right, top, bottom of a number, {left/right, top/bottom} or {left, top, right, bottom}
local function sides(who, p)
  if type(p) == "number" then return p, p, p, p end
  if type(p) == "table" and #p == 2 then return p[1], p[1], p[2], p[2] end
  if type(p) == "table" and #p == 4 then return p[1], p[3], p[2], p[4] end
  fail(who .. ": padding must be a number, {left and right, top and bottom} or {left, top, right, bottom}")
end

-- size: of the shorter side, or {h, w}
local function resize_step(size, nearest, antialias)
  if type(size) ~= "number" and not (type(size) == "table" and type(size[1]) == "number" and
      (#size == 1 or (#size == 2 and type(size[2]) == "number"))) then
    fail("Resize: size must be a number, for the shorter side, or {height, width}")
  end
  for _, v in ipairs(type(size) == "table" and size or {size}) do
    if v % 1 ~= 0 or v < 1 or v > 32768 then fail("Resize: a size must be a whole number from 1 to 32768, got " .. tostring(v)) end
  end
  if type(size) == "number" or #size == 1 then
    return {"resize_short", type(size) == "number" and size or size[1], bit(nearest), bit(antialias)}
  end
  return {"resize", size[1], size[2], bit(nearest), bit(antialias)}
end

local function per_channel(who, mean, std)
  local function list(name, v)
    if core.is_tensor(v) then v = M.flatten(v):totable() end           -- of shape C or Cx1x1
    if type(v) == "number" then v = {v} end
    local ok = type(v) == "table" and #v >= 1 and #v <= 4
    for _, n in ipairs(ok and v or {}) do ok = ok and type(n) == "number" end
    if not ok then fail("%s: %s must be a number or a list of 1 to 4, got %s", who, name, options.shown(v)) end
    return v
  end
  mean, std = list("mean", mean), list("std", std)
  if #mean ~= #std then fail("%s: mean has %d values, but std has %d", who, #mean, #std) end
  return {"normalize", #mean, mean[1], mean[2] or 0, mean[3] or 0, mean[4] or 0, std[1], std[2] or 1, std[3] or 1, std[4] or 1}
end

-- An error of what name calls, without the place and the names in front.
local function without_names(name, e) return (options.bare(e):gsub("^" .. name .. ": ", ""):gsub("^transforms: ", "")) end
-- Defines a transform. Its constructor raises what C finds wrong with a step, rather than the first picture.
local function define(name, signature, fn)
  transforms[name] = core.define(name, signature, function(...)
    local t = fn(...)
    local ok, e = pcall(core.check_transforms, t.steps)
    if not ok then fail("%s: %s", name, without_names(name, e)) end
    return t
  end)
end

---- sizes and crops ----
-- Resize(size, {interpolation="bilinear", antialias=true}): resizes the shorter side to size, or the picture to {height, width}; "bilinear"
-- or "nearest". Transforms are called with a picture, float32 or uint8 CxHxW, or given as a dataset's transform.
define("Resize", "size:any, interpolation:enum(nearest,bilinear)=bilinear, *, antialias:bool=true", function(size, mode, antialias)
  return make("Resize", false, resize_step(size, mode == "nearest", antialias))
end)
-- CenterCrop(size): the middle; size: a number, or {height, width}.
define("CenterCrop", "size:pair", function(size) return make("CenterCrop", false, {"center_crop", size[1], size[2]}) end)
-- RandomCrop(size, padding=0, {fill=0, padding_mode="constant"}): a crop at a random place, after padding as in Pad.
define("RandomCrop",
  "size:pair, padding:any?, *, fill:number=0, padding_mode:enum(constant,edge,reflect)=constant",
  function(size, padding, fill, mode)
    local l, r, t, b = sides("RandomCrop", padding or 0)
    return make("RandomCrop", true, {"random_crop", size[1], size[2], l, r, t, b, fill, borders[mode]})
  end)
-- RandomResizedCrop(size, scale={0.08, 1}, ratio={3/4, 4/3}, {interpolation="bilinear", antialias=true}): a random rectangle, whose share
-- of the area is in scale and whose width over height in ratio, resized to size.
define("RandomResizedCrop",
  "size:pair, scale:any?, ratio:any?, interpolation:enum(nearest,bilinear)=bilinear, antialias:bool=true",
  function(size, scale, ratio, mode, antialias)
    local a, b = interval("RandomResizedCrop", "scale", scale or {0.08, 1}, 1e-9, 1)
    local c, d = interval("RandomResizedCrop", "ratio", ratio or {3 / 4, 4 / 3}, 1e-9, 1e6)
    return make("RandomResizedCrop", true, {"resized_crop", size[1], size[2], a, b, c, d, bit(mode == "nearest"), bit(antialias)})
  end)
-- Pad(padding, {fill=0, padding_mode="constant"}): padding: a number, {left and right, top and bottom} or {left, top, right, bottom};
-- "constant", "edge" or "reflect".
define("Pad", "padding:any, fill:number=0, padding_mode:enum(constant,edge,reflect)=constant", function(padding, fill, mode)
  local l, r, t, b = sides("Pad", padding)
  return make("Pad", false, {"pad", l, r, t, b, fill, borders[mode]})
end)
-- RandomHorizontalFlip(p=0.5): left and right swapped, with probability p.
define("RandomHorizontalFlip", "p:number=0.5", function(p) return make("RandomHorizontalFlip", true, {"hflip", p}) end)
-- RandomVerticalFlip(p=0.5): top and bottom swapped, with probability p.
define("RandomVerticalFlip", "p:number=0.5", function(p) return make("RandomVerticalFlip", true, {"vflip", p}) end)

---- affine maps ----
-- RandomRotation(degrees, {interpolation="nearest", fill=0}): by an angle of -degrees..degrees, or {least, most}, about the centre.
define("RandomRotation", "degrees:any, interpolation:enum(nearest,bilinear)=nearest, *, fill:number=0", function(degrees, mode, fill)
  local a, b = interval("RandomRotation", "degrees", degrees)
  return make("RandomRotation", true, {"rotation", a, b, bit(mode == "nearest"), fill})
end)
-- RandomAffine(degrees, {translate=, scale=, shear=, interpolation="nearest", fill=0}): rotated as in RandomRotation; moved by up to
-- translate = {share of the width, of the height}; scaled by a factor in scale = {least, most}; sheared by degrees: a number, {least, most}
-- along x, or four numbers, along y too.
define("RandomAffine",
  "degrees:any, translate:any?, scale:any?, shear:any?, interpolation:enum(nearest,bilinear)=nearest, fill:number=0",
  function(degrees, translate, scale, shear, mode, fill)
    local a, b = interval("RandomAffine", "degrees", degrees)
    local s, t = interval("RandomAffine", "scale", scale or {1, 1}, 1e-9, 1e6)
    local move = translate or {0, 0}
    if type(move) ~= "table" or #move ~= 2 then
      fail("RandomAffine: translate must be a list of two shares, {of the width, of the height}")
    end
    local x1, x2 = interval("RandomAffine", "shear", type(shear) == "table" and {shear[1], shear[2]} or shear or 0)
    local y1, y2 = 0, 0
    if type(shear) == "table" and #shear == 4 then y1, y2 = interval("RandomAffine", "shear", {shear[3], shear[4]}) end
    return make("RandomAffine", true, {"affine", a, b, move[1], move[2], s, t, x1, x2, y1, y2, bit(mode == "nearest"), fill})
  end)

-- RandomPerspective(distortion_scale=0.5, p=0.5, {interpolation="bilinear", fill=0}): with probability p each corner moves inwards by up
-- to distortion_scale of half the picture.
define("RandomPerspective",
  "distortion_scale:number=0.5, p:number=0.5, interpolation:enum(nearest,bilinear)=bilinear, fill:number=0",
  function(scale, p, mode, fill) return make("RandomPerspective", true, {"perspective", scale, p, bit(mode == "nearest"), fill}) end)

---- colours ----
-- ColorJitter(brightness=0, contrast=0, saturation=0, hue=0): each a number x, a factor of 1 - x to 1 + x (hue: a shift of -x to x, up to
-- 0.5), or a list {least, most}.
define("ColorJitter", "brightness:any?, contrast:any?, saturation:any?, hue:any?", function(brightness, contrast, saturation, hue)
  local step = {"jitter"}
  for i, v in ipairs {brightness or 0, contrast or 0, saturation or 0} do
    local name = ({"brightness", "contrast", "saturation"})[i]
    if type(v) == "number" and v >= 0 then v = {math.max(0, 1 - v), 1 + v} end
    step[2 * i], step[2 * i + 1] = interval("ColorJitter", name, v, 0, 1e6)
  end
  step[8], step[9] = interval("ColorJitter", "hue", hue or 0, -0.5, 0.5)
  return make("ColorJitter", true, step)
end)
local function one_or_three(who, n)
  if n ~= 1 and n ~= 3 then fail(who .. ": num_output_channels must be 1 or 3, got " .. tostring(n)) end
  return n
end
-- Grayscale(num_output_channels=1): grey, in 1 or 3 channels.
define("Grayscale",
  "num_output_channels:int=1",
  function(n) return make("Grayscale", false, {"colour", colours.grayscale, one_or_three("Grayscale", n)}) end)
-- RandomGrayscale(p=0.1): grey in all channels, with probability p.
define("RandomGrayscale", "p:number=0.1", function(p) return make("RandomGrayscale", true, {"random_colour", colours.grayscale, 0, p}) end)
-- RandomInvert(p=0.5): 1 - x, with probability p.
define("RandomInvert", "p:number=0.5", function(p) return make("RandomInvert", true, {"random_colour", colours.invert, 0, p}) end)
-- RandomPosterize(bits, p=0.5): keeps only the upper bits of 8, with probability p.
define("RandomPosterize",
  "bits:int, p:number=0.5",
  function(bits, p) return make("RandomPosterize", true, {"random_colour", colours.posterize, bits, p}) end)
-- RandomSolarize(threshold, p=0.5): inverts values at or above threshold, in 0..1, with probability p.
define("RandomSolarize",
  "threshold:number, p:number=0.5",
  function(threshold, p) return make("RandomSolarize", true, {"random_colour", colours.solarize, threshold, p}) end)
-- RandomAutocontrast(p=0.5): stretches each channel to the whole range, with probability p.
define("RandomAutocontrast",
  "p:number=0.5",
  function(p) return make("RandomAutocontrast", true, {"random_colour", colours.autocontrast, 0, p}) end)
-- RandomEqualize(p=0.5): equalizes each channel's histogram, with probability p.
define("RandomEqualize", "p:number=0.5", function(p) return make("RandomEqualize", true, {"random_colour", colours.equalize, 0, p}) end)
-- RandomAdjustSharpness(factor, p=0.5): a factor of 0 blurs, 1 changes nothing, 2 sharpens, with probability p.
define("RandomAdjustSharpness",
  "factor:number, p:number=0.5",
  function(factor, p) return make("RandomAdjustSharpness", true, {"random_colour", colours.sharpness, factor, p}) end)
-- GaussianBlur(kernel_size, sigma={0.1, 2}): sigma: a number, or a list {least, most} from which it is drawn.
define("GaussianBlur", "kernel_size:pair, sigma:any?", function(size, sigma)
  if type(sigma) == "number" then sigma = {sigma, sigma} end
  local a, b = interval("GaussianBlur", "sigma", sigma or {0.1, 2}, 1e-9, 1e6)
  return make("GaussianBlur", true, {"blur", size[1], size[2], a, b, 1})
end)
-- Normalize(mean, std): (x - mean) / std for each channel; numbers or lists of 1 to 4.
define("Normalize", "mean:any, std:any", function(mean, std)
  local step = per_channel("Normalize", mean, std)
  local function list(from) return table.concat(step, ", ", from, from + step[2] - 1) end
  return make(("Normalize({%s}, {%s})"):format(list(3), list(7)), false, step)
end)

---- whole policies ----
-- RandomErasing(p=0.5, scale={0.02, 0.33}, ratio={0.3, 3.3}, value=0): with probability p sets a rectangle to value; scale: its share of
-- the area, ratio: of its sides.
define("RandomErasing", "p:number=0.5, scale:any?, ratio:any?, value:number=0", function(p, scale, ratio, value)
  local a, b = interval("RandomErasing", "scale", scale or {0.02, 0.33}, 1e-9, 1)
  local c, d = interval("RandomErasing", "ratio", ratio or {0.3, 3.3}, 1e-9, 1e6)
  return make("RandomErasing", true, {"erase", p, a, b, c, d, value})
end)
-- Cutout(size): sets a square of that side, at a random place, to 0.
define("Cutout", "size:int", function(size) return make("Cutout", true, {"cutout", size}) end)
-- RandAugment(num_ops=2, magnitude=9): num_ops random changes out of fourteen (shear, move, rotate, colours, ...), of strength magnitude
-- out of 30.
define("RandAugment",
  "num_ops:int=2, magnitude:int=9",
  function(n, magnitude) return make("RandAugment", true, {"augment", n, magnitude, 0}) end)
-- AutoAugment(policy="imagenet"): two of these changes, each with a probability; the pair is one of 25 found for a dataset: "imagenet",
-- "cifar10" or "svhn" (Cubuk et al. 2019).
define("AutoAugment",
  "policy:enum(imagenet,cifar10,svhn)=imagenet",
  function(policy) return make("AutoAugment", true, {"auto_augment", core.policies[policy]}) end)
-- TrivialAugmentWide(): one of RandAugment's changes, of any strength.
define("TrivialAugmentWide", "", function() return make("TrivialAugmentWide", true, {"augment", 1, 0, 1}) end)

---- dtypes, lists ----
-- ToTensor(): returns its input: pictures are tensors already.
define("ToTensor", "", function() return make("ToTensor", false) end)
-- ConvertImageDtype(dtype): converts to this floating dtype; uint8's 0..255 become 0..1.
define("ConvertImageDtype", "dtype:dtype", function(dtype)
  local n
  for i, name in ipairs(core.dtypes) do if name == dtype then n = i - 1 end end
  return make("ConvertImageDtype", false, {"dtype", n})
end)
-- Lambda(fn): a function of a picture as a transform; a dataset that uses it makes its items in Lua.
function transforms.Lambda(fn)
  options.expect("Lambda", 1, fn, callable(fn), "a function")
  return setmetatable({text = "Lambda", list = {fn}}, Transform)
end
-- A list of transforms and functions: its text, its members' steps (nil: there is a function among them), and whether one is random.
local function members(who, list)
  if type(list) ~= "table" or core.is_tensor(list) then
    fail("%s: argument 1 must be a list of transforms, got %s", who, options.shown(list))
  end
  if getmetatable(list) == Transform or table.maxn(list) ~= #list then
    fail(who .. ": argument 1 must be a list of transforms without holes")
  end
  local steps, texts, random = {}, {}, false
  for i, t in ipairs(list) do
    if type(t) ~= "function" and getmetatable(t) ~= Transform and
        not (type(t) == "table" and getmetatable(t) and getmetatable(t).__call) then
      fail("%s: item %d of the list is a %s, neither a transform nor a function", who, i, type(t))
    end
    texts[i] = tostring(t)
    if steps then steps[i] = transforms.steps(t) end
    if steps and not steps[i] then steps = nil end
    random = random or (type(t) == "table" and t.random)
  end
  return table.concat(texts, ", "), steps, random
end
-- The steps of several transforms in order. dtypes: whether one may change the pictures' dtype.
local function joined(who, lists, dtypes)
  local out = {}
  for _, steps in ipairs(lists) do
    for _, s in ipairs(steps) do
      if s[1] == "dtype" and not dtypes then fail(who .. ": all pictures must get one dtype: put ConvertImageDtype after it") end
      out[#out + 1] = s
    end
  end
  return out
end
-- Compose{a, b, ...}: transforms one after another; functions may be among them.
function transforms.Compose(list, ...)
  if select("#", ...) > 0 then fail("Compose: one list of transforms is needed, such as Compose{a, b}") end
  local text, steps, random = members("Compose", list)
  return setmetatable({text = "Compose(" .. text .. ")", random = random,
    steps = steps and joined("Compose", steps, true), list = not steps and {unpack(list)} or nil}, Transform)
end
-- RandomApply({a, b, ...}, p=0.5): all of them with probability p, else none.
function transforms.RandomApply(...)
  local o = options.arguments("RandomApply", "transforms, p=0.5", ...)
  local p = options.number("RandomApply", "p", o.p, 0)
  if p > 1 then fail("RandomApply: p must be a probability from 0 to 1, got " .. p) end
  local text, steps = members("RandomApply", o.transforms)
  text = ("RandomApply({%s}, p=%g)"):format(text, p)
  if not steps then return setmetatable({text = text, list = {unpack(o.transforms)}, p = p}, Transform) end
  steps = joined("RandomApply", steps)
  return setmetatable({text = text, random = true, steps = {{"maybe", p, #steps}, unpack(steps)}}, Transform)
end
-- RandomOrder{a, b, ...}: all of them, in an order drawn anew for each picture.
function transforms.RandomOrder(list, ...)
  if select("#", ...) > 0 then fail("RandomOrder: one list of transforms is needed, such as RandomOrder{a, b}") end
  return setmetatable({text = "RandomOrder(" .. members("RandomOrder", list) .. ")", list = {unpack(list)}, any_order = true}, Transform)
end
-- RandomChoice({a, b, ...}, {p=weights}): one of them.
function transforms.RandomChoice(...)
  local o = options.arguments("RandomChoice", "transforms, p=nil", ...)
  local text, steps = members("RandomChoice", o.transforms)
  local n, sum, weights = #o.transforms, 0, {}
  if n == 0 then fail("RandomChoice: the list is empty") end
  if o.p ~= nil and (type(o.p) ~= "table" or #o.p ~= n) then fail("RandomChoice: p must be a list of %d weights", n) end
  for i = 1, n do
    weights[i] = options.number("RandomChoice", "a weight", o.p and o.p[i] or 1, 0)
    sum = sum + weights[i]
  end
  if sum <= 0 then fail("RandomChoice: a weight must be above 0") end
  for i = 1, n do weights[i] = weights[i] / sum end
  text = ("RandomChoice({%s})"):format(text)
  if not steps then return setmetatable({text = text, list = {unpack(o.transforms)}, weights = weights}, Transform) end
  local out = {}                           -- from the last: each with its share of the rest, and a jump past the others
  for i = n, 1, -1 do
    local own, left = joined("RandomChoice", {steps[i]}), 0
    for k = i, n do left = left + weights[k] end
    if #out > 0 then own[#own + 1] = {"maybe", 0, #out} end
    out = joined("RandomChoice", {#out > 0 and {{"maybe", left > 0 and math.min(1, weights[i] / left) or 0, #own}} or {}, own, out})
  end
  return setmetatable({text = text, random = true, steps = out}, Transform)
end

---- several of one ----
local function five(x, size)
  local h, w, crop = M.size(x, -2), M.size(x, -1), functional.crop
  if size[1] > h or size[2] > w then fail("FiveCrop: the crop of %dx%d is larger than the picture of %dx%d", size[1], size[2], h, w) end
  local bottom, right = h - size[1] + 1, w - size[2] + 1
  return {crop(x, 1, 1, size[1], size[2]), crop(x, 1, right, size[1], size[2]), crop(x, bottom, 1, size[1], size[2]),
    crop(x, bottom, right, size[1], size[2]), functional.center_crop(x, size)}
end
-- FiveCrop(size): a list of the four corners and the centre.
transforms.FiveCrop = core.define("FiveCrop",
  "size:pair",
  function(size) return transforms.Lambda(function(x) return five(x, size) end) end)
-- TenCrop(size, vertical_flip=false): FiveCrop's five, and five of the mirrored picture.
transforms.TenCrop = core.define("TenCrop", "size:pair, vertical_flip:bool=false", function(size, vertical)
  return transforms.Lambda(function(x)
    local out = five(x, size)
    for _, y in ipairs(five((vertical and functional.vflip or functional.hflip)(x), size)) do out[#out + 1] = y end
    return out
  end)
end)

---- of batches ----
local function soft(who, x, y, classes)
  if not core.is_tensor(x) or M.dim(x) ~= 4 then fail(who .. ": argument 1 must be a batch of pictures NxCxHxW") end
  if not core.is_tensor(y) or #y ~= #x then fail(who .. ": argument 2 must have a label for each picture") end
  if M.dim(y) == 2 then return M.float(y) end
  if not classes then fail(who .. ": num_classes= is needed where labels are numbers") end
  return M.float(require("tycho.functional").functions.one_hot(y, classes))
end
-- A draw from Beta(a, a), by two Gamma draws (Marsaglia and Tsang) from the CPU's generator
local function beta(a)
  local function gamma(k)
    if k < 1 then return gamma(k + 1) * uniform() ^ (1 / k) end
    local d = k - 1 / 3
    while true do
      local x = ops.randn({1}, {device = "cpu", dtype = "float64"}):item()
      local v = (1 + x / math.sqrt(9 * d)) ^ 3
      if v > 0 and math.log(uniform()) < x * x / 2 + d - d * v + d * math.log(v) then return d * v end
    end
  end
  local x, y = gamma(a), gamma(a)
  return x + y > 0 and x / (x + y) or 0.5
end
local function mixer(name, mix)
  transforms[name] = function(o)
    o = options.fill(name, o, {alpha = 1, num_classes = options.none})
    if type(o.alpha) ~= "number" or o.alpha <= 0 then fail(name .. ": alpha must be a number above 0, got " .. tostring(o.alpha)) end
    return function(x, y)
      local t = soft(name, x, y, o.num_classes)
      local mixed, share = mix(x, M.roll(x, 1, 1), beta(o.alpha))
      return mixed, t * share + M.roll(t, 1, 1) * (1 - share)
    end
  end
end
-- MixUp{alpha=1, num_classes=}: called with a batch x (N, C, H, W) and its labels; gives x mixed with itself rolled by one item, with a
-- share drawn from Beta(alpha, alpha), and the labels as shares (N, num_classes), which cross_entropy accepts.
mixer("MixUp", function(x, other, share) return x * share + other * (1 - share), share end)
-- CutMix{alpha=1, num_classes=}: as MixUp; a rectangle of the picture is replaced by that of the other picture.
mixer("CutMix", function(x, other, share)
  local h, w = M.size(x, 3), M.size(x, 4)
  local r = 0.5 * math.sqrt(1 - share)
  local cy, cx = ops.randint(0, h - 1, {1}, {device = "cpu"}):item(), ops.randint(0, w - 1, {1}, {device = "cpu"}):item()
  local rh, rw = math.floor(r * h), math.floor(r * w)
  local y1, y2, x1, x2 = math.max(cy - rh, 0), math.min(cy + rh, h), math.max(cx - rw, 0), math.min(cx + rw, w)
  local out = ops.clone(x)
  if y2 > y1 and x2 > x1 then
    local where = {{}, {}, {y1 + 1, y2}, {x1 + 1, x2}}
    out[where] = other[where]
  end
  return out, 1 - (y2 - y1) * (x2 - x1) / (h * w)
end)

---- the same by given numbers ----
local function fixed(name, signature, step)
  functional[name] = core.define(name, "x, " .. signature, function(x, ...)
    local ok, y = pcall(run, x, {step(...)}, false)
    if not ok then fail("%s: %s", name, without_names(name, y)) end
    return y
  end)
end
-- crop(x, top, left, height, width): the rectangle whose first row is top and first column left, from 1; parts outside the picture are 0.
-- These functions take a picture (C, H, W), or a batch of pictures.
fixed("crop", "top:int, left:int, height:int, width:int", function(top, left, h, w)
  options.whole("crop", "top", top, 1)
  options.whole("crop", "left", left, 1)
  return {"crop", top - 1, left - 1, h, w}
end)
-- center_crop(x, size): as CenterCrop.
fixed("center_crop", "size:pair", function(size) return {"center_crop", size[1], size[2]} end)
-- resize(x, size, {interpolation="bilinear", antialias=true}): as Resize.
fixed("resize",
  "size:any, interpolation:enum(nearest,bilinear)=bilinear, *, antialias:bool=true",
  function(size, mode, antialias) return resize_step(size, mode == "nearest", antialias) end)
-- pad(x, padding, {fill=0, padding_mode="constant"}): as Pad.
fixed("pad", "padding:any, fill:number=0, padding_mode:enum(constant,edge,reflect)=constant", function(padding, fill, mode)
  local l, r, t, b = sides("pad", padding)
  return {"pad", l, r, t, b, fill, borders[mode]}
end)
-- hflip(x): left and right swapped.
fixed("hflip", "", function() return {"hflip", 1} end)
-- vflip(x): top and bottom swapped.
fixed("vflip", "", function() return {"vflip", 1} end)
-- rotate(x, degrees, {interpolation="nearest", fill=0}): counterclockwise about the centre.
fixed("rotate",
  "degrees:number, interpolation:enum(nearest,bilinear)=nearest, *, fill:number=0",
  function(degrees, mode, fill) return {"rotate", degrees, bit(mode == "nearest"), fill} end)
-- affine(x, degrees, translate, scale, shear, {interpolation="nearest", fill=0}): rotated, moved by translate = {x, y} pixels, scaled,
-- sheared by degrees: a number, or {x, y}.
fixed("affine",
  "degrees:number, translate:any, scale:number, shear:any, interpolation:enum(nearest,bilinear)=nearest, fill:number=0",
  function(degrees, move, scale, shear, mode, fill)
    if type(shear) == "number" then shear = {shear, 0} end
    for _, pair in ipairs {{"translate", move}, {"shear", shear}} do
      local v = pair[2]
      if type(v) ~= "table" or type(v[1]) ~= "number" or type(v[2] or 0) ~= "number" then
        fail("affine: %s must be two numbers, got %s", pair[1], options.shown(v))
      end
    end
    return {"warp", degrees, move[1], move[2] or 0, scale, shear[1], shear[2] or 0, bit(mode == "nearest"), fill}
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
  "startpoints:any, endpoints:any, interpolation:enum(nearest,bilinear)=bilinear, fill:number=0",
  function(startpoints, endpoints, mode, fill)
    local m = projection(startpoints, endpoints)
    return {"project", m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], bit(mode == "nearest"), fill}
  end)
-- normalize(x, mean, std): as Normalize.
fixed("normalize", "mean:any, std:any", function(mean, std) return per_channel("normalize", mean, std) end)
-- gaussian_blur(x, kernel_size, sigma=): kernel_size: a number, or {x, y}; sigma likewise, by default 0.3 ((kernel_size - 1) / 2 - 1) +
-- 0.8.
fixed("gaussian_blur", "kernel_size:pair, sigma:any?", function(size, sigma)
  if type(sigma) == "number" then sigma = {sigma, sigma} end
  if sigma ~= nil and type(sigma) ~= "table" then fail("gaussian_blur: sigma must be a number or two, got %s", options.shown(sigma)) end
  sigma = sigma or {0.3 * ((size[1] - 1) * 0.5 - 1) + 0.8, 0.3 * ((size[2] - 1) * 0.5 - 1) + 0.8}
  local x = interval("gaussian_blur", "sigma", {sigma[1], sigma[1]}, 1e-9, 1e6)
  local y = interval("gaussian_blur", "sigma", {sigma[2] or sigma[1], sigma[2] or sigma[1]}, 1e-9, 1e6)
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
-- rgb_to_grayscale(x, num_output_channels=1): as Grayscale.
fixed("rgb_to_grayscale",
  "num_output_channels:int=1",
  function(n) return {"colour", colours.grayscale, one_or_three("rgb_to_grayscale", n)} end)
for name, step in pairs {autocontrast = "autocontrast", equalize = "equalize", invert = "invert"} do
  -- As RandomAutocontrast, RandomEqualize and RandomInvert, always.
  fixed(name, "", function() return {"colour", colours[step], 0} end)
end

return require("tycho.options").told(transforms, "transforms")
