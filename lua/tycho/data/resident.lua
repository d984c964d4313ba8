-- Datasets of pictures kept whole on a device: set:to("cuda"). A batch is gathered, cropped, flipped, cut out and normalised by one kernel
-- (the op augment), with random numbers of the device's generator, so that it can be part of a compiled step.
local core = require "tycho.core"
local source = require "tycho.data.source"
local ops, M = core.ops, core.methods
local resident = {}

local Resident = source.class "Pictures"
function Resident:size() return M.size(self.labels, 1) end
-- Pictures (B, C, h, w) and labels (B) at the given positions, an int64 tensor.
function Resident:batch(positions)
  if positions.device ~= self.images.device then positions = M.to(positions, self.images.device, {non_blocking = true}) end
  return ops.augment(self.images, positions, self.mean, self.std, self.crop, self.how), ops.index(self.labels, {positions}, 1)
end
function Resident:fields() return nil, "it is on " .. self.images.device .. ", which makes its batches" end
function Resident:get(i)
  source.need_item(i, self:size())
  local x, y = self:batch(core.from_value({i}, "int64"))
  return x[1], y[1]
end

-- The kernel's arguments for a list of transforms' steps; raises at a step that the kernel can't do.
local function kernel(steps, h, w, channels)
  local crop, how = {h, w}, {padding = 0, flip = 0, cutout = 0, random = false}
  local mean, std, stage = {}, {}, 0
  for c = 1, channels do mean[c], std[c] = 0, 1 end
  local order = {random_crop = 1, hflip = 2, normalize = 3, cutout = 4, dtype = 5}
  for _, s in ipairs(steps) do
    local name = s[1]
    if not order[name] or order[name] <= stage then
      error(("to: on a device, transforms are RandomCrop, RandomHorizontalFlip, Normalize, Cutout and \z
        ConvertImageDtype, each at most once and in this order; got '%s'"):format(name), 0)
    end
    stage = order[name]
    if name == "random_crop" then
      local p = s[4]
      local fill = {unpack(s, 9, 8 + s[8])}
      if s[5] ~= p or s[6] ~= p or s[7] ~= p or math.max(unpack(fill)) ~= 0 or math.min(unpack(fill)) ~= 0 or s[13] ~= 0 or s[14] ~= 0 then
        error("to: on a device, RandomCrop must pad all sides by the same size, with 0, without pad_if_needed", 0)
      end
      crop, how.padding, how.random = {s[2], s[3]}, p, true
    elseif name == "hflip" then how.flip, how.random = s[2], how.random or s[2] > 0
    elseif name == "normalize" then
      if s[2] ~= 1 and s[2] ~= channels then error(("to: Normalize has %d means for %d channels"):format(s[2], channels), 0) end
      for c = 1, channels do
        local k = s[2] == 1 and 0 or c - 1
        mean[c], std[c] = s[3 + k], s[7 + k]
      end
    elseif name == "cutout" then how.cutout, how.random = s[2], true
    else how.dtype = core.dtypes[s[2] + 1] end
  end
  return crop, how, mean, std
end

-- images: uint8 (N, H, W) or (N, C, H, W)
function resident.pictures(images, labels, steps, classes, device)
  if M.dim(images) == 3 then images = M.unsqueeze(images, 2) end
  local crop, how, mean, std = kernel(steps, M.size(images, 3), M.size(images, 4), M.size(images, 2))
  local function there(x) return core.keep(M.to(x, device)) end
  return setmetatable({images = there(images), labels = there(labels), classes = classes, crop = crop, how = how,
    mean = there(core.from_value(mean, "float32")), std = there(core.from_value(std, "float32"))}, Resident)
end

return resident
