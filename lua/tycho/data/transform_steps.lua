-- What transforms (transforms.lua) and their functions (transforms_functional.lua) have in common: arguments as the numbers of steps, and
-- running steps on a picture.
--
-- Invariant: a step is a list of a name and numbers, in the order of src/io/transform.c, which checks them.
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local ops, M = core.ops, core.methods
local steps = {}

-- Runs a list of steps on a picture, or on each of a batch; random: whether there are draws.
function steps.run(x, list, random)
  if not core.is_tensor(x) then error("transforms: argument 1 must be a picture, a tensor CxHxW, got " .. type(x), 0) end
  if M.dim(x) == 4 then
    local out = {}
    for i = 1, #x do out[i] = M.unsqueeze(steps.run(x[i], list, random), 1) end
    return ops.cat(out, 1)
  end
  if M.dim(x) == 2 then x = M.unsqueeze(x, 1) end
  if x.dtype ~= "uint8" and x.dtype ~= "float32" and M.is_floating_point(x) then x = M.float(x) end
  return core.apply_transforms(x:detach(), list, random and ops.randint(0, 2 ^ 52, {1}, {device = "cpu"}):item() or 0)
end

-- The interval {-v, v} of a number, or a list {least, most}; lo, hi: bounds for both ends.
function steps.interval(who, name, v, lo, hi)
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
function steps.sides(who, p)
  if type(p) == "number" then return p, p, p, p end
  if type(p) == "table" and #p == 2 then return p[1], p[1], p[2], p[2] end
  if type(p) == "table" and #p == 4 then return p[1], p[3], p[2], p[4] end
  fail(who .. ": padding must be a number, {left and right, top and bottom} or {left, top, right, bottom}")
end

-- A number, or a list with one for each channel, as four numbers, and how many of them count.
local function four(who, name, v)
  if core.is_tensor(v) then v = M.flatten(v):totable() end           -- of shape C or Cx1x1
  if type(v) == "number" then v = {v} end
  local ok = type(v) == "table" and #v >= 1 and #v <= 4
  for _, n in ipairs(ok and v or {}) do ok = ok and type(n) == "number" end
  if not ok then fail("%s: %s must be a number or a list of 1 to 4, got %s", who, name, options.shown(v)) end
  return {v[1], v[2] or 0, v[3] or 0, v[4] or 0}, #v
end
-- What to fill with, 0 where it isn't given, as four() gives it; an empty table is one of options.
function steps.fill(who, fill, name)
  if fill == nil or type(fill) == "table" and next(fill) == nil then fill = 0 end
  return four(who, name or "fill", fill)
end
-- The step with what it fills with after it; name: the argument's, for errors.
function steps.filled(who, fill, step, name)
  local v, n = steps.fill(who, fill, name)
  local at = #step + 1
  step[at] = n
  for i = 1, 4 do step[at + i] = v[i] end
  return step
end
-- The step with how a warp samples, and what it fills with, after it.
function steps.sampled(who, mode, fill, step)
  step[#step + 1] = mode == "nearest" and 1 or 0
  return steps.filled(who, fill, step)
end
-- The step with the point that it turns about after it: {x, y} in pixels from 1, or nil for the middle.
function steps.centred(who, centre, step)
  local ok = centre == nil or type(centre) == "table" and #centre == 2 and type(centre[1]) == "number" and type(centre[2]) == "number"
  if not ok then fail("%s: center must be a list {x, y}, in pixels from 1, got %s", who, options.shown(centre)) end
  local n = #step
  step[n + 1], step[n + 2], step[n + 3] = centre and 1 or 0, centre and centre[1] - 1 or 0, centre and centre[2] - 1 or 0
  return step
end

-- size: of the shorter side, where the longer one is at most max_size, or {h, w}
function steps.resize(who, size, mode, max_size, antialias)
  if type(size) ~= "number" and not (type(size) == "table" and type(size[1]) == "number" and
      (#size == 1 or (#size == 2 and type(size[2]) == "number"))) then
    fail("%s: size must be a number, for the shorter side, or {height, width}, got %s", who, options.shown(size))
  end
  for _, v in ipairs(type(size) == "table" and size or {size}) do
    if v % 1 ~= 0 or v < 1 or v > 32768 then fail("%s: a size must be a whole number from 1 to 32768, got %s", who, tostring(v)) end
  end
  if type(size) == "number" or #size == 1 then
    if max_size ~= nil and options.whole(who, "max_size", max_size, 1) > 32768 then
      fail("%s: max_size must be at most 32768, got %d", who, max_size)
    end
    return {"resize_short", type(size) == "number" and size or size[1], max_size or 0, core.resamplings[mode], antialias and 1 or 0}
  end
  if max_size ~= nil then fail("%s: max_size is for a size of the shorter side, not for {height, width}", who) end
  return {"resize", size[1], size[2], core.resamplings[mode], antialias and 1 or 0}
end

-- A step that pads.
function steps.pad(who, padding, fill, mode)
  local l, r, t, b = steps.sides(who, padding)
  local step = steps.filled(who, fill, {"pad", l, r, t, b})
  step[#step + 1] = core.borders[mode]
  return step
end

function steps.per_channel(who, mean, std)
  local means, n = four(who, "mean", mean)
  local stds, m = four(who, "std", std)
  if n ~= m then fail("%s: mean has %d values, but std has %d", who, n, m) end
  for i = n + 1, 4 do stds[i] = 1 end
  return {"normalize", n, means[1], means[2], means[3], means[4], stds[1], stds[2], stds[3], stds[4]}
end
-- A step that converts.
function steps.dtype(dtype)
  for i, name in ipairs(core.dtypes) do if name == (dtype or "float32") then return {"dtype", i - 1} end end
end
function steps.one_or_three(who, n)
  if n ~= 1 and n ~= 3 then fail(who .. ": num_output_channels must be 1 or 3, got " .. tostring(n)) end
  return n
end

-- An error of what name calls, without the place and the names in front.
function steps.without_names(name, e) return (options.bare(e):gsub("^" .. name .. ": ", ""):gsub("^transforms: ", "")) end

return steps
