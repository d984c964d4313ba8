-- tycho.vision.ops.roi_align: a picture's features in each of some regions, as grids of one size.
--
-- Idea: a cell of a region's grid is the mean of bilinear samples, and so a weighted sum of rows of a table of pixels by channels: a bag
-- (embedding_bag), which never has the samples of all channels in memory. Invariant: x and y are handled separately, for each region, cell
-- and sample, as the two neighbouring pixels with their weights; a sample more than a pixel outside of the picture is 0.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions

-- Regions (K, 5), the picture's number first, from such a matrix or from a list of matrices of boxes, one for each picture.
local function regions_of(x, boxes)
  if core.is_tensor(boxes) then
    if M.dim(boxes) ~= 2 or boxes.shape[2] ~= 5 then
      fail("roi_align: argument 2 (boxes) must have 5 columns, a picture's number and 4 corners, got shape %s", tostring(boxes.shape))
    end
    return boxes
  end
  if type(boxes) ~= "table" then
    fail("roi_align: argument 2 (boxes) must be a tensor or a list of tensors, got %s", options.shown(boxes))
  end
  if #boxes ~= x.shape[1] then fail("roi_align: argument 2 (boxes) has %d tensors; there are %d pictures", #boxes, x.shape[1]) end
  local list = {}
  for i, b in ipairs(boxes) do
    if not core.is_tensor(b) or M.dim(b) ~= 2 or b.shape[2] ~= 4 then
      fail("roi_align: item %d of argument 2 (boxes) must be a tensor of 4 columns, got %s", i,
        core.is_tensor(b) and "shape " .. tostring(b.shape) or options.shown(b))
    end
    list[i] = ops.cat({ops.full({b.shape[1], 1}, i, {dtype = b.dtype, device = b.device}), b}, 2)
  end
  return ops.cat(list, 1)
end

-- Along one side of `size` pixels, for regions from `first`, `length` long, in `cells` cells: the pixels (K, cells, samples, 2) from 0, and
-- their weights. samples: per cell; nil: as many as a cell has pixels; most: the largest such number.
local function along(first, length, size, cells, samples, most)
  local K, like = first.shape[1], {dtype = first.dtype, device = first.device}
  local function lone(x) return M.view(x, K, 1, 1) end
  local each = length / cells
  local count = samples and ops.full({K}, samples, like) or ops.ceil(each)
  local cell, sample = M.view(ops.range(0, cells - 1, 1, like), 1, cells, 1), M.view(ops.range(0, most - 1, 1, like), 1, 1, most)
  local at = lone(first) + cell * lone(each) + (sample + 0.5) * lone(each / count)
  local weight = ops.logical_and(ops.logical_and(ops.ge(at, -1), ops.le(at, size)), ops.lt(sample, lone(count)))
  weight = ops.where(weight, lone(1 / ops.clamp(count, 1)), 0)
  at = ops.clamp(at, 0, size - 1)
  local before = ops.floor(at)
  local share = at - before
  return M.long(ops.stack({before, ops.clamp(before + 1, nil, size - 1)}, 4)), ops.stack({weight * (1 - share), weight * share}, 4)
end

-- See vision.ops.roi_align.
return function(x, boxes, size, scale, ratio, aligned)
  if M.dim(x) ~= 4 then fail("roi_align: argument 1 (input) must have 4 dims, got shape %s", tostring(x.shape)) end
  local regions = M.detach(regions_of(x, boxes))
  local N, C, H, W = unpack(x.shape)
  local h, w, K = size[1], size[2], regions.shape[1]
  if h < 1 or w < 1 then fail("roi_align: output_size must be at least 1, got %dx%d", h, w) end
  if K == 0 or N * C * H * W == 0 then return ops.zeros({K, C, h, w}, {dtype = x.dtype, device = x.device}) end
  regions = M.to(regions, x.dtype == "float64" and "float64" or "float32")
  if lib.looks(regions) then                             -- on a GPU that would be a wait
    if not ops.all(M.isfinite(regions)):item() then fail("roi_align: argument 2 (boxes) has numbers that aren't finite") end
    local first, last = M.aminmax(ops.select(regions, 2, 1))
    if first:item() < 1 or last:item() > N then
      fail("roi_align: argument 2 (boxes) has picture numbers %g to %g; they must be from 1 to %d", first:item(), last:item(), N)
    end
  end
  local shift = aligned and 0.5 or 0
  local function side(i) return ops.select(regions, 2, i) * scale - shift end
  local x1, y1 = side(2), side(3)
  local wide, high = side(4) - x1, side(5) - y1
  if not aligned then wide, high = ops.clamp(wide, 1), ops.clamp(high, 1) end
  local samples = ratio > 0 and ratio or nil
  local function most(length, cells) return samples or math.max(1, ops.amax(ops.ceil(length / cells)):item()) end
  local sy, sx = most(high, h), most(wide, w)
  local rows, by_row = along(y1, high, H, h, samples, sy)
  local columns, by_column = along(x1, wide, W, w, samples, sx)
  local function tall(t) return M.view(t, K, h, 1, 2 * sy, 1) end
  local function across(t) return M.view(t, K, 1, w, 1, 2 * sx) end
  local picture = M.view(M.long(ops.select(regions, 2, 1)) - 1, K, 1, 1, 1, 1)
  local ids = (picture * H + tall(rows)) * W + across(columns) + 1
  local table_of_pixels = M.reshape(ops.permute(x, {1, 3, 4, 2}), N * H * W, C)
  local y = F.embedding_bag(M.view(ids, K * h * w, 4 * sy * sx), table_of_pixels,
    {mode = "sum", per_sample_weights = M.view(M.to(tall(by_row) * across(by_column), x.dtype), K * h * w, 4 * sy * sx)})
  return ops.permute(M.view(y, K, h, w, C), {1, 4, 2, 3})
end
