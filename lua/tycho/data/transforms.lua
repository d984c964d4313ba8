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
local S = require "tycho.data.transform_steps"
local functional = require "tycho.data.transforms_functional"
local ops, M = core.ops, core.methods
local transforms = {functional = functional}

local Transform = {}
Transform.__index = Transform
Transform.__tostring = function(t) return t.text end

-- The steps of a transform that C can run alone; nil if it can't.
function transforms.steps(t)
  return type(t) == "table" and getmetatable(t) == Transform and t.steps or nil
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
  local ok, y = pcall(S.run, x, self.steps, self.random)
  if not ok then fail(y) end
  return y, ...
end

local borders, colours, resamplings = core.borders, core.colours, core.resamplings
local function bit(b) return b and 1 or 0 end
local function make(text, random, ...) return setmetatable({text = text, random = random, steps = {...}}, Transform) end
-- Defines a transform. Its constructor raises what C finds wrong with a step, rather than the first picture.
local function define(name, signature, fn)
  transforms[name] = core.define(name, signature, function(...)
    local t = fn(...)
    local ok, e = pcall(core.check_transforms, t.steps)
    if not ok then fail("%s: %s", name, S.without_names(name, e)) end
    return t
  end)
end

---- sizes and crops ----
-- Resize(size, {interpolation="bilinear", max_size=, antialias=true}): resizes the shorter side to size, or to less where the longer side
-- would be above max_size; or the picture to {height, width}; "bilinear", "bicubic" or "nearest". Transforms are called with a picture,
-- float32 or uint8 CxHxW, or given as a dataset's transform.
define("Resize",
  "size:any, interpolation:enum(nearest,bilinear,bicubic)=bilinear, max_size:int?, antialias:bool=true",
  function(size, mode, max_size, antialias) return make("Resize", false, S.resize("Resize", size, mode, max_size, antialias)) end)
-- CenterCrop(size): the middle; size: a number, or {height, width}.
define("CenterCrop", "size:pair", function(size) return make("CenterCrop", false, {"center_crop", size[1], size[2]}) end)
-- RandomCrop(size, padding=0, {pad_if_needed=false, fill=0, padding_mode="constant"}): a crop at a random place, after padding as in Pad;
-- pad_if_needed: smaller pictures are padded further, else they are an error.
define("RandomCrop",
  "size:pair, padding:any?, pad_if_needed:bool=false, fill:any?, padding_mode:enum(constant,edge,reflect)=constant",
  function(size, padding, needed, fill, mode)
    local l, r, t, b = S.sides("RandomCrop", padding or 0)
    local step = S.filled("RandomCrop", fill, {"random_crop", size[1], size[2], l, r, t, b})
    step[#step + 1], step[#step + 2] = borders[mode], bit(needed)
    return make("RandomCrop", true, step)
  end)
-- RandomResizedCrop(size, scale={0.08, 1}, ratio={3/4, 4/3}, {interpolation="bilinear", antialias=true}): a random rectangle, whose share
-- of the area is in scale and whose width over height in ratio, resized to size.
define("RandomResizedCrop",
  "size:pair, scale:any?, ratio:any?, interpolation:enum(nearest,bilinear,bicubic)=bilinear, antialias:bool=true",
  function(size, scale, ratio, mode, antialias)
    local a, b = S.interval("RandomResizedCrop", "scale", scale or {0.08, 1}, 1e-9, 1)
    local c, d = S.interval("RandomResizedCrop", "ratio", ratio or {3 / 4, 4 / 3}, 1e-9, 1e6)
    return make("RandomResizedCrop", true, {"resized_crop", size[1], size[2], a, b, c, d, resamplings[mode], bit(antialias)})
  end)
-- Pad(padding, {fill=0, padding_mode="constant"}): padding: a number, {left and right, top and bottom} or {left, top, right, bottom};
-- "constant", "edge" or "reflect". fill, here and elsewhere: a number, or a list with one for each channel.
define("Pad",
  "padding:any, fill:any?, padding_mode:enum(constant,edge,reflect)=constant",
  function(padding, fill, mode) return make("Pad", false, S.pad("Pad", padding, fill, mode)) end)
-- RandomHorizontalFlip(p=0.5): left and right swapped, with probability p.
define("RandomHorizontalFlip", "p:number=0.5", function(p) return make("RandomHorizontalFlip", true, {"hflip", p}) end)
-- RandomVerticalFlip(p=0.5): top and bottom swapped, with probability p.
define("RandomVerticalFlip", "p:number=0.5", function(p) return make("RandomVerticalFlip", true, {"vflip", p}) end)

---- affine maps ----
-- RandomRotation(degrees, {interpolation="nearest", expand=false, center=, fill=0}): by an angle of -degrees..degrees, or {least, most},
-- about the middle, or center = {x, y}, in pixels from 1; expand: the picture becomes as large as the rotated one.
define("RandomRotation",
  "degrees:any, interpolation:enum(nearest,bilinear)=nearest, expand:bool=false, center:any?, fill:any?",
  function(degrees, mode, expand, centre, fill)
    local a, b = S.interval("RandomRotation", "degrees", degrees)
    local step = S.centred("RandomRotation", centre, S.sampled("RandomRotation", mode, fill, {"rotation", a, b}))
    step[#step + 1] = bit(expand)
    return make("RandomRotation", true, step)
  end)
-- RandomAffine(degrees, {translate=, scale=, shear=, interpolation="nearest", fill=0, center=}): rotated as in RandomRotation; moved by up
-- to translate = {share of the width, of the height}; scaled by a factor in scale = {least, most}; sheared by degrees: a number, {least,
-- most} along x, or four numbers, along y too.
define("RandomAffine",
  "degrees:any, translate:any?, scale:any?, shear:any?, interpolation:enum(nearest,bilinear)=nearest, fill:any?, center:any?",
  function(degrees, translate, scale, shear, mode, fill, centre)
    local a, b = S.interval("RandomAffine", "degrees", degrees)
    local s, t = S.interval("RandomAffine", "scale", scale or {1, 1}, 1e-9, 1e6)
    local move = translate or {0, 0}
    if type(move) ~= "table" or #move ~= 2 then
      fail("RandomAffine: translate must be a list of two shares, {of the width, of the height}")
    end
    local x1, x2 = S.interval("RandomAffine", "shear", type(shear) == "table" and {shear[1], shear[2]} or shear or 0)
    local y1, y2 = 0, 0
    if type(shear) == "table" and #shear == 4 then y1, y2 = S.interval("RandomAffine", "shear", {shear[3], shear[4]}) end
    return make("RandomAffine", true, S.centred("RandomAffine", centre,
      S.sampled("RandomAffine", mode, fill, {"affine", a, b, move[1], move[2], s, t, x1, x2, y1, y2})))
  end)

-- RandomPerspective(distortion_scale=0.5, p=0.5, {interpolation="bilinear", fill=0}): with probability p each corner moves inwards by up
-- to distortion_scale of half the picture.
define("RandomPerspective",
  "distortion_scale:number=0.5, p:number=0.5, interpolation:enum(nearest,bilinear)=bilinear, fill:any?",
  function(scale, p, mode, fill)
    return make("RandomPerspective", true, S.sampled("RandomPerspective", mode, fill, {"perspective", scale, p}))
  end)

---- colours ----
-- ColorJitter(brightness=0, contrast=0, saturation=0, hue=0): each a number x, a factor of 1 - x to 1 + x (hue: a shift of -x to x, up to
-- 0.5), or a list {least, most}.
define("ColorJitter", "brightness:any?, contrast:any?, saturation:any?, hue:any?", function(brightness, contrast, saturation, hue)
  local step = {"jitter"}
  for i, v in ipairs {brightness or 0, contrast or 0, saturation or 0} do
    local name = ({"brightness", "contrast", "saturation"})[i]
    if type(v) == "number" and v >= 0 then v = {math.max(0, 1 - v), 1 + v} end
    step[2 * i], step[2 * i + 1] = S.interval("ColorJitter", name, v, 0, 1e6)
  end
  step[8], step[9] = S.interval("ColorJitter", "hue", hue or 0, -0.5, 0.5)
  return make("ColorJitter", true, step)
end)
-- Grayscale(num_output_channels=1): grey, in 1 or 3 channels.
define("Grayscale",
  "num_output_channels:int=1",
  function(n) return make("Grayscale", false, {"colour", colours.grayscale, S.one_or_three("Grayscale", n)}) end)
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
  local a, b = S.interval("GaussianBlur", "sigma", sigma or {0.1, 2}, 1e-9, 1e6)
  return make("GaussianBlur", true, {"blur", size[1], size[2], a, b, 1})
end)
-- Normalize(mean, std): (x - mean) / std for each channel; numbers or lists of 1 to 4.
define("Normalize", "mean:any, std:any", function(mean, std)
  local step = S.per_channel("Normalize", mean, std)
  local function list(from) return table.concat(step, ", ", from, from + step[2] - 1) end
  return make(("Normalize({%s}, {%s})"):format(list(3), list(7)), false, step)
end)

---- whole policies ----
-- RandomErasing(p=0.5, scale={0.02, 0.33}, ratio={0.3, 3.3}, value=0): with probability p sets a rectangle to value: a number, a list
-- with one for each channel, or "random", normal variates. scale: its share of the area, ratio: of its sides.
define("RandomErasing", "p:number=0.5, scale:any?, ratio:any?, value:any?", function(p, scale, ratio, value)
  local a, b = S.interval("RandomErasing", "scale", scale or {0.02, 0.33}, 1e-9, 1)
  local c, d = S.interval("RandomErasing", "ratio", ratio or {0.3, 3.3}, 1e-9, 1e6)
  local random = value == "random"
  if type(value) == "string" and not random then
    fail("RandomErasing: value must be a number, a list of 1 to 4 or 'random', got '%s'", value)
  end
  local step = S.filled("RandomErasing", not random and value or 0, {"erase", p, a, b, c, d}, "value")
  step[#step + 1] = bit(random)
  return make("RandomErasing", true, step)
end)
-- Cutout(size): sets a square of that side, at a random place, to 0.
define("Cutout", "size:int", function(size) return make("Cutout", true, {"cutout", size}) end)
-- RandAugment(num_ops=2, magnitude=9, {interpolation="nearest", fill=0}): num_ops random changes out of fourteen (shear, move, rotate,
-- colours, ...), of strength magnitude out of 30.
define("RandAugment",
  "num_ops:int=2, magnitude:int=9, *, interpolation:enum(nearest,bilinear)=nearest, fill:any?",
  function(n, magnitude, mode, fill)
    return make("RandAugment", true, S.sampled("RandAugment", mode, fill, {"augment", n, magnitude, 0}))
  end)
-- AutoAugment(policy="imagenet", {interpolation="nearest", fill=0}): two of these changes, each with a probability; the pair is one of 25
-- found for a dataset: "imagenet", "cifar10" or "svhn" (Cubuk et al. 2019).
define("AutoAugment",
  "policy:enum(imagenet,cifar10,svhn)=imagenet, interpolation:enum(nearest,bilinear)=nearest, fill:any?",
  function(policy, mode, fill)
    return make("AutoAugment", true, S.sampled("AutoAugment", mode, fill, {"auto_augment", core.policies[policy]}))
  end)
-- TrivialAugmentWide{interpolation="nearest", fill=0}: one of RandAugment's changes, of any strength.
define("TrivialAugmentWide",
  "*, interpolation:enum(nearest,bilinear)=nearest, fill:any?",
  function(mode, fill)
    return make("TrivialAugmentWide", true, S.sampled("TrivialAugmentWide", mode, fill, {"augment", 1, 0, 1}))
  end)

---- dtypes, lists ----
-- ToTensor(): returns its input: pictures are tensors already.
define("ToTensor", "", function() return make("ToTensor", false) end)
-- LinearTransformation(matrix, mean): a picture of D values as a row, less mean (D), times matrix (D x D): whitening.
transforms.LinearTransformation = core.define("LinearTransformation", "matrix:tensor, mean:tensor", function(matrix, mean)
  local d = M.numel(mean)
  if M.dim(matrix) ~= 2 or matrix.shape[1] ~= d or matrix.shape[2] ~= d then
    fail("LinearTransformation: matrix must be %dx%d, as mean has %d values; got shape %s", d, d, d, tostring(matrix.shape))
  end
  return transforms.Lambda(function(x)
    if core.is_tensor(x) and x.dtype == "uint8" then x = S.run(x, {}, false) end
    if not core.is_tensor(x) or M.dim(x) < 3 or x.shape[M.dim(x)] * x.shape[M.dim(x) - 1] * x.shape[M.dim(x) - 2] ~= d then
      fail("LinearTransformation: pictures must have %d values, got %s", d, core.is_tensor(x) and "shape " .. tostring(x.shape) or type(x))
    end
    return M.view(ops.matmul(M.reshape(x, -1, d) - M.view(mean, 1, -1), matrix), x.shape)
  end)
end)
-- ElasticTransform(alpha=50, sigma=5, {interpolation="bilinear", fill=0}): pixels moved by random, smooth distances: each of -alpha..alpha,
-- blurred by a Gaussian of sigma, pixels; alpha, sigma: a number, or {along x, along y}.
transforms.ElasticTransform = core.define("ElasticTransform",
  "alpha:any?, sigma:any?, interpolation:enum(nearest,bilinear)=bilinear, fill:any?",
  function(alpha, sigma, mode, fill)
    local function two(name, v, default)
      if v == nil then v = default end
      if type(v) == "number" then v = {v, v} end
      if type(v) ~= "table" then fail("ElasticTransform: %s must be a number or two, got %s", name, options.shown(v)) end
      options.items("ElasticTransform", name, v)
      if #v > 2 then fail("ElasticTransform: %s must be a number or two, got %d", name, #v) end
      return {options.number("ElasticTransform", name, v[1], 0), options.number("ElasticTransform", name, v[2] or v[1], 0)}
    end
    local far, wide = two("alpha", alpha, 50), two("sigma", sigma, 5)
    S.fill("ElasticTransform", fill)                   -- raises where it is none
    return transforms.Lambda(function(x)
      local h, w, moves = M.size(x, -2), M.size(x, -1), {}
      for i = 1, 2 do
        local move = ops.rand({1, h, w}, {device = "cpu"}) * 2 - 1
        local size = math.floor(8 * wide[i] + 1)
        if wide[i] > 0 then move = functional.gaussian_blur(move, size + 1 - size % 2, wide) end
        moves[i] = move * (far[i] / (i == 1 and h or w))
      end
      return functional.elastic_transform(x, M.to(ops.stack(moves, 4), x.device), mode, fill)
    end)
  end)
-- ConvertImageDtype(dtype="float32"): converts to this floating dtype; uint8's 0..255 become 0..1.
define("ConvertImageDtype", "dtype:dtype?", function(dtype) return make("ConvertImageDtype", false, S.dtype(dtype)) end)
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
-- FiveCrop(size): a list of the four corners and the centre.
transforms.FiveCrop = core.define("FiveCrop",
  "size:pair",
  function(size) return transforms.Lambda(function(x) return functional.five_crop(x, size) end) end)
-- TenCrop(size, vertical_flip=false): FiveCrop's five, and five of the mirrored picture.
transforms.TenCrop = core.define("TenCrop", "size:pair, vertical_flip:bool=false", function(size, vertical)
  return transforms.Lambda(function(x) return functional.ten_crop(x, size, vertical) end)
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

return require("tycho.options").told(transforms, "transforms")
