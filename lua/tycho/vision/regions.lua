-- Regions of pictures as features of one size: roi_align, ps_roi_align, roi_pool, and roi_align on the levels of a pyramid.
--
-- Idea: a cell of roi_align's grid is the mean of bilinear samples, and so a weighted sum of rows of a table of pixels by channels: a bag
-- (embedding_bag), which never has the samples of all channels in memory. Invariant: x and y are handled separately, for each region, cell
-- and sample, as the two neighbouring pixels with their weights; a sample more than a pixel outside of the picture is 0.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local plain = require "tycho.vision.plain"
local V = require "tycho.vision.boxes"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local define = core.define

-- Regions (K, 5), the picture's number first, from such a matrix or from a list of matrices of boxes, one for each picture (or
-- for the first ones).
local function regions_of(name, x, boxes)
  if core.is_tensor(boxes) then
    if M.dim(boxes) ~= 2 or boxes.shape[2] ~= 5 then
      fail(name .. ": argument 2 (boxes) must have 5 columns, a picture's number and 4 corners, got shape %s", tostring(boxes.shape))
    end
    return boxes
  end
  if type(boxes) ~= "table" then
    fail(name .. ": argument 2 (boxes) must be a tensor or a list of tensors, got %s", options.shown(boxes))
  end
  if #boxes > x.shape[1] then fail(name .. ": argument 2 (boxes) has %d tensors; there are %d pictures", #boxes, x.shape[1]) end
  local list = {}
  for i, b in ipairs(boxes) do
    if not core.is_tensor(b) or M.dim(b) ~= 2 or b.shape[2] ~= 4 then
      fail(name .. ": item %d of argument 2 (boxes) must be a tensor of 4 columns, got %s", i,
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

-- Checks input and boxes; gives the regions, without history, as float32 or float64.
local function checked(name, x, boxes, size)
  if M.dim(x) ~= 4 then fail("%s: argument 1 (input) must have 4 dims, got shape %s", name, tostring(x.shape)) end
  if size[1] < 1 or size[2] < 1 then fail("%s: output_size must be at least 1, got %dx%d", name, size[1], size[2]) end
  local regions = M.detach(regions_of(name, x, boxes))
  regions = M.to(regions, x.dtype == "float64" and "float64" or "float32")
  if regions.shape[1] > 0 and lib.looks(regions) then    -- on a GPU that would be a wait
    if not ops.all(M.isfinite(regions)):item() then fail("%s: argument 2 (boxes) has numbers that aren't finite", name) end
    local first, last = M.aminmax(ops.select(regions, 2, 1))
    local numbers = ops.select(regions, 2, 1)
    if first:item() < 1 or last:item() > x.shape[1] or not M.equal(numbers, ops.floor(numbers)) then
      fail("%s: argument 2 (boxes) has picture numbers %g to %g; they must be whole, from 1 to %d", name, first:item(), last:item(),
        x.shape[1])
    end
  end
  return regions
end

-- Samples of the regions as (K, channels, h, w). apart: each cell has channels of its own, C = channels * h * w.
local function sampled(x, regions, size, scale, ratio, aligned, apart)
  local N, C, H, W = unpack(x.shape)
  local h, w, K = size[1], size[2], regions.shape[1]
  local groups = apart and h * w or 1
  C = C / groups
  if K == 0 or N * C * H * W == 0 then return ops.zeros({K, C, h, w}, {dtype = x.dtype, device = x.device}) end
  local shift = aligned and 0.5 or 0
  local function side(i) return ops.select(regions, 2, i) * scale - shift end
  local x1, y1 = side(2), side(3)
  local wide, high = side(4) - x1, side(5) - y1
  if not aligned then wide, high = ops.clamp(wide, 1), ops.clamp(high, 1) end
  local samples = ratio > 0 and ratio or nil
  local function most(length, cells) return samples or math.max(1, ops.amax(ops.ceil(length / cells)):item()) end
  local sy, sx = most(high, h), most(wide, w)
  if K * h * w * 4 * sy * sx > 2 ^ 31 then
    fail("roi_align: boxes of up to %g x %g pixels take too many samples: set sampling_ratio, or check spatial_scale", sy * h, sx * w)
  end
  local rows, by_row = along(y1, high, H, h, samples, sy)
  local columns, by_column = along(x1, wide, W, w, samples, sx)
  local function tall(t) return M.view(t, K, h, 1, 2 * sy, 1) end
  local function across(t) return M.view(t, K, 1, w, 1, 2 * sx) end
  local plane = M.view(M.long(ops.select(regions, 2, 1)) - 1, K, 1, 1, 1, 1) * groups
  if apart then plane = plane + M.view(ops.range(0, groups - 1, 1, {dtype = "int64", device = x.device}), 1, h, w, 1, 1) end
  local ids = (plane * H + tall(rows)) * W + across(columns) + 1
  local by_group = groups == 1 and M.unsqueeze(x, 3) or M.view(M.contiguous(x), N, C, groups, H, W)
  local pixels = M.reshape(ops.permute(by_group, {1, 3, 4, 5, 2}), N * groups * H * W, C)
  local y = F.embedding_bag(M.view(ids, K * h * w, 4 * sy * sx), pixels,
    {mode = "sum", per_sample_weights = M.view(M.to(tall(by_row) * across(by_column), x.dtype), K * h * w, 4 * sy * sx)})
  return ops.permute(M.view(y, K, h, w, C), {1, 4, 2, 3})
end

-- roi_align(input, boxes, output_size, spatial_scale=1, sampling_ratio=-1, aligned=false): the features (N, C, H, W) in each box, as a grid
-- of output_size cells, a number or {height, width}: (K, C, height, width) (He et al. 2017). boxes: (K, 5), the picture's number, from 1,
-- and the box; or a list with a matrix (L, 4) for each picture. spatial_scale converts them to the features' pixels. A cell is the mean of
-- sampling_ratio^2 samples or, if that isn't above 0, of about one for each pixel (then it waits for the GPU). aligned: pixels have their
-- centres at halves, and boxes may be smaller than a pixel. Boxes have no gradient.
V.roi_align = define("roi_align",
  "input, boxes:any, output_size:pair, spatial_scale:number=1, sampling_ratio:int=-1, aligned:bool=false",
  function(x, boxes, size, scale, ratio, aligned)
    return sampled(x, checked("roi_align", x, boxes, size), size, scale, ratio, aligned, false)
  end)

-- ps_roi_align(input, boxes, output_size, spatial_scale=1, sampling_ratio=-1): roi_align, aligned, in which each cell of the grid has
-- channels of its own: (N, C * height * width, H, W) gives (K, C, height, width) (Dai et al. 2016).
V.ps_roi_align = define("ps_roi_align", "input, boxes:any, output_size:pair, spatial_scale:number=1, sampling_ratio:int=-1",
  function(x, boxes, size, scale, ratio)
    local regions = checked("ps_roi_align", x, boxes, size)
    if x.shape[2] % (size[1] * size[2]) ~= 0 then
      fail("ps_roi_align: argument 1 (input) has %d channels; they must be a multiple of %dx%d cells", x.shape[2], size[1], size[2])
    end
    return sampled(x, regions, size, scale, ratio, true, true)
  end)

-- The whole number nearest to v, halves away from 0.
local function rounded(v) return v < 0 and math.ceil(v - 0.5) or math.floor(v + 0.5) end
-- The pixels, counted from 1, of cell number k, from 0, of `cells` of a region `length` long from `first`, within a side of `most` pixels.
local function window(first, length, cells, k, most)
  return math.max(first + math.floor(k * length / cells) + 1, 1), math.min(first + math.ceil((k + 1) * length / cells), most)
end
-- roi_pool(input, boxes, output_size, spatial_scale=1): as roi_align, but boxes are rounded to whole pixels, and a cell is the maximum of
-- its pixels, 0 where it has none (Girshick 2015). Waits for the GPU.
V.roi_pool = define("roi_pool", "input, boxes:any, output_size:pair, spatial_scale:number=1", function(x, boxes, size, scale)
  if not M.is_floating_point(x) then fail("roi_pool: argument 1 (input) must have a floating dtype, got %s", x.dtype) end
  local regions = checked("roi_pool", x, boxes, size)
  local C, H, W = unpack(x.shape, 2)
  if regions.shape[1] == 0 then return ops.zeros({0, C, size[1], size[2]}, {dtype = x.dtype, device = x.device}) end
  local out = {}
  for i, r in ipairs(M.totable(regions)) do
    local x1, y1, x2, y2 = rounded(r[2] * scale), rounded(r[3] * scale), rounded(r[4] * scale), rounded(r[5] * scale)
    local high, wide, picture = math.max(y2 - y1 + 1, 1), math.max(x2 - x1 + 1, 1), ops.select(x, 1, r[1])
    if x1 >= 0 and y1 >= 0 and x1 + wide <= W and y1 + high <= H then
      out[i] = F.adaptive_max_pool2d(ops.slice(ops.slice(picture, 2, y1 + 1, y1 + high), 3, x1 + 1, x1 + wide), size)
    else                                   -- cell by cell, as far as these are within the picture
      local cells = {}
      for row = 0, size[1] - 1 do
        local top, bottom = window(y1, high, size[1], row, H)
        for column = 0, size[2] - 1 do
          local left, right = window(x1, wide, size[2], column, W)
          cells[#cells + 1] = top <= bottom and left <= right
            and F.adaptive_max_pool2d(ops.slice(ops.slice(picture, 2, top, bottom), 3, left, right), 1)
            or ops.zeros({C, 1, 1}, {dtype = x.dtype, device = x.device})
        end
      end
      out[i] = M.view(ops.cat(cells, 3), C, size[1], size[2])
    end
  end
  return ops.stack(out, 1)
end)

-- RoIAlign(output_size, spatial_scale, sampling_ratio, aligned=false): roi_align as a layer, called with pictures and boxes.
V.RoIAlign = plain("RoIAlign", "output_size, spatial_scale, sampling_ratio, aligned=false", V.roi_align)
-- PSRoIAlign(output_size, spatial_scale, sampling_ratio): ps_roi_align as a layer, called with pictures and boxes.
V.PSRoIAlign = plain("PSRoIAlign", "output_size, spatial_scale, sampling_ratio", V.ps_roi_align)
-- RoIPool(output_size, spatial_scale): roi_pool as a layer, called with pictures and boxes.
V.RoIPool = plain("RoIPool", "output_size, spatial_scale", V.roi_pool)

---- pyramids ----
-- The scale of features (N, C, H, W) of pictures at most `high` tall and `wide` wide: a power of two.
local function scale_of(x, high, wide)
  local function power(n, of) return 2 ^ math.floor(math.log(n / of) / math.log(2) + 0.5) end
  local scale = power(x.shape[3], high)
  if power(x.shape[4], wide) ~= scale then
    fail("MultiScaleRoIAlign: features of shape %s have another scale in height than in width of pictures of %dx%d", tostring(x.shape),
      high, wide)
  end
  return scale
end
-- MultiScaleRoIAlign(featmap_names, output_size, sampling_ratio, {canonical_scale=224, canonical_level=4}): roi_align of each box on the
-- level of a pyramid that fits its size (Lin et al. 2017): one of canonical_scale pixels on canonical_level, one half as large on the next
-- finer level; level l is the features that are 2^l times smaller than the pictures. Called with features, boxes (a list with a matrix
-- (L, 4) for each picture, in the pictures' pixels) and the pictures' sizes (a list of {height, width}); featmap_names lists the fields of
-- the features that are used, finest first, as {1, 2, 3}. Gives (K, C, height, width) in the boxes' order. Waits for the GPU.
local MultiScale = plain("MultiScaleRoIAlign", "featmap_names, output_size, sampling_ratio, *, canonical_scale=224, canonical_level=4",
  nil, function(self)
    if type(self.featmap_names) == "table" and #self.featmap_names > 0 then return end
    fail("MultiScaleRoIAlign: featmap_names must list the features' names, got %s", options.shown(self.featmap_names))
  end)
V.MultiScaleRoIAlign = MultiScale
function MultiScale:forward(x, boxes, sizes)
  local name, levels, high, wide = "MultiScaleRoIAlign", {}, 0, 0
  if type(x) ~= "table" or core.is_tensor(x) then fail("%s: argument 1 must be a table of features, got %s", name, options.shown(x)) end
  for i, key in ipairs(self.featmap_names) do
    levels[i] = x[key]
    if not core.is_tensor(x[key]) or M.dim(x[key]) ~= 4 then
      fail("%s: feature %s must be a tensor of 4 dims, got %s", name, options.shown(key),
        core.is_tensor(x[key]) and "shape " .. tostring(x[key].shape) or options.shown(x[key]))
    end
  end
  if type(sizes) ~= "table" or #sizes == 0 then
    fail("%s: argument 3 must be a list of the pictures' sizes, {height, width}, got %s", name, options.shown(sizes))
  end
  for i, size in ipairs(sizes) do
    if type(size) ~= "table" or type(size[1]) ~= "number" or type(size[2]) ~= "number" then
      fail("%s: item %d of argument 3 must be {height, width}, got %s", name, i, options.shown(size))
    end
    high, wide = math.max(high, size[1]), math.max(wide, size[2])
  end
  local regions = regions_of(name, levels[1], boxes)
  local scales = {}
  for i, level in ipairs(levels) do scales[i] = scale_of(level, high, wide) end
  if #levels == 1 then return V.roi_align(levels[1], regions, self.output_size, scales[1], self.sampling_ratio) end
  local finest, coarsest = -math.log(scales[1]) / math.log(2), -math.log(scales[#levels]) / math.log(2)
  local area = ops.clamp(M.nan_to_num(V.box_area(ops.slice(regions, 2, 2, 5)), 0), 0)
  local of = ops.floor(self.canonical_level + ops.log2(ops.sqrt(area) / self.canonical_scale) + 1e-6)
  of = ops.clamp(of, finest, coarsest) - finest + 1
  local parts, order = {}, {}
  for i, level in ipairs(levels) do
    local places = M.squeeze(ops.nonzero(ops.eq(of, i)), 2)
    parts[i] = V.roi_align(level, M.index_select(regions, 1, places), self.output_size, scales[i], self.sampling_ratio)
    order[i] = places
  end
  return M.index_select(ops.cat(parts, 1), 1, M.argsort(ops.cat(order, 1)))
end
