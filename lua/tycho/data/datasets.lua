-- Readers of datasets that others publish. Their labels count from 0 and become 1-based here: digit 0 has label 1.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local fill = require("tycho.options").fill
local datasets = {}

local function exists(path)
  local f = io.open(path, "rb")
  if f then f:close() end
  return f ~= nil
end

local function find(root, name, help)
  for _, ending in ipairs {"", ".gz"} do
    local path = root .. "/" .. name .. ending
    if exists(path) then return path end
  end
  error(("%s/%s(.gz) is missing; %s"):format(root, name, help), 0)
end

-- Images (N, 28, 28) of bytes with labels, given as float32 (1, 28, 28) in 0..1.
local Images = {}
Images.__index = Images
function Images:size() return M.size(self.labels, 1) end
function Images:get(i)
  local x = M.unsqueeze(M.float(ops.select(self.images, 1, i)), 1) / 255
  if self.transform then x = self.transform(x) end
  return x, self.labels[i]
end
function Images:batch(indices)
  if self.transform then
    local list = {}
    for i, k in ipairs(indices:totable()) do list[i] = M.unsqueeze((self:get(k)), 1) end
    return ops.cat(list, 1), ops.index(self.labels, {indices}, 1)
  end
  local x = ops.index(self.images, {indices}, 1)
  return M.unsqueeze(ops.mul(x, 1 / 255), 2), ops.index(self.labels, {indices}, 1)
end

local function idx_dataset(name, classes, default_root, help)
  -- {root=, train=true, transform=}
  datasets[name] = function(o)
    o = fill(name, o, {root = false, train = true, transform = false}, 2)
    local root, part = o.root or default_root, o.train == false and "t10k" or "train"
    local ok, images, labels = pcall(function()
      return core.read_idx(find(root, part .. "-images-idx3-ubyte", help)), core.read_idx(find(root, part .. "-labels-idx1-ubyte", help))
    end)
    if not ok then error(name .. ": " .. tostring(images), 2) end
    if images.dtype ~= "uint8" or M.dim(images) ~= 3 or labels.dtype ~= "uint8" or M.dim(labels) ~= 1 or #images ~= #labels then
      error(("%s: %s holds images of shape %s and labels of shape %s, which don't belong together"):format(name, root, tostring(images.shape), tostring(labels.shape)), 2)
    end
    if #labels > 0 and ops.amax(labels):item() >= #classes then error(("%s: %s has a label above %d"):format(name, root, #classes - 1), 2) end
    return setmetatable({images = core.keep(images), labels = core.keep(M.long(labels) + 1), classes = classes, transform = o.transform or nil}, Images)
  end
end

idx_dataset("FashionMNIST", {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"},
  "/usr/share/datasets/fashion-mnist", "Debian's package dataset-fashion-mnist brings it (apt-get install dataset-fashion-mnist), or name another folder as root")
idx_dataset("MNIST", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, "mnist", "name the folder of the four IDX files as root")

return datasets
