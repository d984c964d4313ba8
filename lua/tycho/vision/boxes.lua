-- tycho.vision.ops: boxes of detectors, as in torchvision.ops. A box is x1, y1, x2, y2, in pixels from the picture's upper left corner:
-- coordinates, not indices. Indices of boxes, which nms and others return, begin at 1.
--
-- Idea: functions with gradients are made of ops, for any device; nms, which goes box by box, is a loop over host memory that LuaJIT
-- compiles.
local ffi = require "ffi"
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local define = core.define
local V = {}

-- Boxes, checked, in a dtype that can hold areas. what: the argument's name.
local function boxes_of(name, argument, boxes, what)
  local n = M.dim(boxes)
  if n == 0 or boxes.shape[n] ~= 4 then
    fail("%s: argument %d (%s) must have 4 numbers in its last dim, got shape %s", name, argument, what or "boxes", tostring(boxes.shape))
  end
  if boxes.dtype == "float16" or boxes.dtype == "bfloat16" then return M.float(boxes) end
  return (boxes.dtype == "uint8" or boxes.dtype == "bool") and M.int(boxes) or boxes
end
local function column(boxes, i) return ops.select(boxes, -1, i) end
local function corners(boxes, first) return ops.slice(boxes, -1, first, first + 1) end
local function area(boxes) return (column(boxes, 3) - column(boxes, 1)) * (column(boxes, 4) - column(boxes, 2)) end
-- The area spanned by two corners, 0 if they span nothing.
local function spanned(from, to)
  local size = ops.clamp(to - from, 0)
  return column(size, 1) * column(size, 2)
end

-- box_area(boxes): the area of each box.
V.box_area = define("box_area", "boxes", function(boxes) return area(boxes_of("box_area", 1, boxes)) end)

-- Pairs each of N boxes with each of M: as (N, 1, 4) and (1, M, 4).
local function beside(name, a, b)
  a, b = boxes_of(name, 1, a, "boxes1"), boxes_of(name, 2, b, "boxes2")
  if M.dim(a) ~= 2 or M.dim(b) ~= 2 then
    fail("%s: boxes must be matrices, got shapes %s and %s", name, tostring(a.shape), tostring(b.shape))
  end
  return M.unsqueeze(a, 2), M.unsqueeze(b, 1)
end
-- Intersection over union (plus eps), and the union.
local function iou_of(a, b, eps)
  local both = spanned(ops.maximum(corners(a, 1), corners(b, 1)), ops.minimum(corners(a, 3), corners(b, 3)))
  local union = area(a) + area(b) - both
  return both / (eps and union + eps or union), union
end
-- The corners of the smallest box around both.
local function around(a, b) return ops.minimum(corners(a, 1), corners(b, 1)), ops.maximum(corners(a, 3), corners(b, 3)) end
local function squares(xy) return ops.sum(xy * xy, -1) end
-- The squared distance of the centres over the squared diagonal of the box around both.
local function apart(a, b, eps)
  local from, to = around(a, b)
  return squares((corners(a, 1) + corners(a, 3) - corners(b, 1) - corners(b, 3)) / 2) / (squares(to - from) + eps)
end
-- The difference of proportions, and its weight, through which no gradient flows.
local function proportions(a, b, iou, eps)
  local function angle(x) return ops.atan((column(x, 3) - column(x, 1)) / (column(x, 4) - column(x, 2))) end
  local v = ops.square(angle(b) - angle(a)) * (4 / math.pi ^ 2)
  local still = M.detach(v)
  return v, still / (1 - M.detach(iou) + still + eps)
end

-- box_iou(boxes1, boxes2): intersection over union of each of N boxes with each of M: (N, M).
V.box_iou = define("box_iou", "boxes1, boxes2", function(a, b) return (iou_of(beside("box_iou", a, b))) end)
-- generalized_box_iou(boxes1, boxes2): IoU less the share of the box around both that neither covers (Rezatofighi et al. 2019): (N, M).
V.generalized_box_iou = define("generalized_box_iou", "boxes1, boxes2", function(a, b)
  a, b = beside("generalized_box_iou", a, b)
  local iou, union = iou_of(a, b)
  local whole = spanned(around(a, b))
  return iou - (whole - union) / whole
end)
-- distance_box_iou(boxes1, boxes2, eps=1e-7): IoU less the squared distance of the centres over the squared diagonal around both: (N, M).
V.distance_box_iou = define("distance_box_iou", "boxes1, boxes2, eps:number=1e-7", function(a, b, eps)
  a, b = beside("distance_box_iou", a, b)
  return (iou_of(a, b)) - apart(a, b, eps)
end)
-- complete_box_iou(boxes1, boxes2, eps=1e-7): distance_box_iou less a term for different proportions (Zheng et al. 2020): (N, M).
V.complete_box_iou = define("complete_box_iou", "boxes1, boxes2, eps:number=1e-7", function(a, b, eps)
  a, b = beside("complete_box_iou", a, b)
  local iou = iou_of(a, b)
  local v, weight = proportions(a, b, iou, eps)
  return iou - apart(a, b, eps) - weight * v
end)

local function reduced(loss, reduction)
  if reduction == "mean" then return M.numel(loss) > 0 and ops.mean(loss) or ops.sum(loss) * 0 end
  return reduction == "sum" and ops.sum(loss) or loss
end
-- Defines a loss of N boxes and their targets, (N, 4) each, by fn of their IoU, union and the boxes.
local function box_loss(name, fn)
  return define(name, "boxes1, boxes2, reduction:enum(none,mean,sum)=none, eps:number=1e-7", function(a, b, reduction, eps)
    a, b = boxes_of(name, 1, a, "boxes1"), boxes_of(name, 2, b, "boxes2")
    if a.shape ~= b.shape then
      fail("%s: argument 2 (boxes2) has shape %s; it must be %s as argument 1's", name, tostring(b.shape), tostring(a.shape))
    end
    local iou, union = iou_of(a, b, eps)
    return reduced(fn(a, b, iou, union, eps), reduction)
  end)
end
-- generalized_box_iou_loss(boxes1, boxes2, {reduction="none", eps=1e-7}): 1 - the generalized IoU of each box and its target.
V.generalized_box_iou_loss = box_loss("generalized_box_iou_loss", function(a, b, iou, union, eps)
  local whole = spanned(around(a, b))
  return 1 - iou + (whole - union) / (whole + eps)
end)
-- distance_box_iou_loss(boxes1, boxes2, {reduction="none", eps=1e-7}): 1 - the distance IoU.
V.distance_box_iou_loss = box_loss("distance_box_iou_loss", function(a, b, iou, _, eps) return 1 - iou + apart(a, b, eps) end)
-- complete_box_iou_loss(boxes1, boxes2, {reduction="none", eps=1e-7}): 1 - the complete IoU.
V.complete_box_iou_loss = box_loss("complete_box_iou_loss", function(a, b, iou, _, eps)
  local v, weight = proportions(a, b, iou, eps)
  return 1 - iou + apart(a, b, eps) + weight * v
end)
-- sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"): binary cross-entropy of logits, in which correct predictions
-- count less (Lin et al. 2017); alpha weights targets of 1, 1 - alpha those of 0; negative: no weights.
V.sigmoid_focal_loss = define("sigmoid_focal_loss",
  "inputs, targets, alpha:number=0.25, gamma:number=2, reduction:enum(none,mean,sum)=none", function(x, y, alpha, gamma, reduction)
    local p = ops.sigmoid(x)
    local loss = F.binary_cross_entropy_with_logits(x, y, {reduction = "none"}) * (1 - (p * y + (1 - p) * (1 - y))) ^ gamma
    if alpha >= 0 then loss = (alpha * y + (1 - alpha) * (1 - y)) * loss end
    return reduction == "mean" and ops.mean(loss) or reduced(loss, reduction)              -- NaN for no elements, as other losses
  end)

---- boxes from boxes ----
-- Formats as corners: x, y the upper left one, cx, cy the centre.
local TO_CORNERS = {
  xyxy = function(b) return b end,
  xywh = function(b) return ops.cat({corners(b, 1), corners(b, 1) + corners(b, 3)}, -1) end,
  cxcywh = function(b) return ops.cat({corners(b, 1) - corners(b, 3) / 2, corners(b, 1) + corners(b, 3) / 2}, -1) end,
}
local FROM_CORNERS = {
  xyxy = function(b) return ops.clone(b) end,
  xywh = function(b) return ops.cat({corners(b, 1), corners(b, 3) - corners(b, 1)}, -1) end,
  cxcywh = function(b) return ops.cat({(corners(b, 1) + corners(b, 3)) / 2, corners(b, 3) - corners(b, 1)}, -1) end,
}
-- box_convert(boxes, in_fmt, out_fmt): converts between formats: "xyxy" (corners), "xywh" (corner and size), "cxcywh" (centre and size).
V.box_convert = define("box_convert", "boxes, in_fmt:enum(xyxy,xywh,cxcywh), out_fmt:enum(xyxy,xywh,cxcywh)", function(boxes, from, to)
  boxes_of("box_convert", 1, boxes)
  return FROM_CORNERS[to](TO_CORNERS[from](boxes))
end)
-- clip_boxes_to_image(boxes, {h, w}): the part of each box inside a picture of that size.
V.clip_boxes_to_image = define("clip_boxes_to_image", "boxes, size:sizes", function(boxes, size)
  boxes_of("clip_boxes_to_image", 1, boxes)
  if #size ~= 2 then fail("clip_boxes_to_image: argument 2 (size) must be height and width, got %d numbers", #size) end
  local x, y = ops.slice(boxes, -1, 1, 4, 2), ops.slice(boxes, -1, 2, 4, 2)
  return M.view(ops.stack({ops.clamp(x, 0, size[2]), ops.clamp(y, 0, size[1])}, -1), boxes.shape)
end)
-- remove_small_boxes(boxes, min_size): the indices of the boxes whose width and height are at least min_size.
V.remove_small_boxes = define("remove_small_boxes", "boxes, min_size:number", function(boxes, least)
  boxes_of("remove_small_boxes", 1, boxes)
  local size = corners(boxes, 3) - corners(boxes, 1)
  return M.squeeze(ops.nonzero(ops.all(ops.ge(size, least), -1)), 2)
end)
-- masks_to_boxes(masks): the box around the nonzero elements of each of (N, H, W) masks, none of which may be empty; pixels count from 0.
V.masks_to_boxes = define("masks_to_boxes", "masks", function(masks)
  if M.dim(masks) ~= 3 then fail("masks_to_boxes: argument 1 (masks) must have 3 dims, got shape %s", tostring(masks.shape)) end
  local sides = {}
  for i, dim in ipairs {2, 3} do                                 -- over rows for x, over columns for y
    local any = M.int(ops.any(ops.ne(masks, 0), dim))
    sides[i] = M.argmax(any, 2) - 1
    sides[i + 2] = any.shape[2] - M.argmax(ops.flip(any, 2), 2)
  end
  return M.float(ops.stack(sides, 2))
end)

---- what overlaps ----
-- Indices, from 1, of the boxes that are kept, of n in the given order; class: nil, or only boxes of one class suppress each other.
local function kept(n, order, p, class, threshold)
  local function numbers() return ffi.new("double[?]", n) end
  local x1s, y1s, x2s, y2s = numbers(), numbers(), numbers(), numbers()          -- in the order that is given
  local gone, keep, count = ffi.new("uint8_t[?]", n), {}, 0
  local following, last = ffi.new("int32_t[?]", n), {}     -- of each box: the next one of its class that may still be kept; -1: none
  for i = 0, n - 1 do
    local k = tonumber(order[i]) - 1
    x1s[i], y1s[i], x2s[i], y2s[i] = p[4 * k], p[4 * k + 1], p[4 * k + 2], p[4 * k + 3]
    local kind = class and tonumber(class[k]) or 0
    if last[kind] then following[last[kind]] = i end
    following[i], last[kind] = -1, i
  end
  for i = 0, n - 1 do
    if gone[i] == 0 then
      count = count + 1
      keep[count] = tonumber(order[i])
      local x1, y1, x2, y2 = x1s[i], y1s[i], x2s[i], y2s[i]
      local size, before, j = (x2 - x1) * (y2 - y1), i, following[i]
      while j >= 0 do
        local a1, b1, a2, b2, over = x1s[j], y1s[j], x2s[j], y2s[j], false
        if a1 < x2 and a2 > x1 and b1 < y2 and b2 > y1 then
          local w, h = math.min(x2, a2) - math.max(x1, a1), math.min(y2, b2) - math.max(y1, b1)
          over = w > 0 and h > 0 and w * h / (size + (a2 - a1) * (b2 - b1) - w * h) > threshold
        end
        if over then gone[j], following[before] = 1, following[j] else before = j end
        j = following[j]
      end
    end
  end
  return keep
end
local function suppress(name, boxes, scores, class, threshold)
  boxes_of(name, 1, boxes)
  local n = boxes.shape[1]
  if M.dim(boxes) ~= 2 then fail("%s: argument 1 (boxes) must be a matrix, got shape %s", name, tostring(boxes.shape)) end
  for i, x in pairs {[2] = scores, [3] = class} do
    if M.dim(x) ~= 1 or x.shape[1] ~= n then
      fail("%s: argument %d (%s) has shape %s; it must be a vector of %d", name, i, i == 2 and "scores" or "idxs", tostring(x.shape), n)
    end
  end
  local _, order = ops.sort(M.detach(scores), 1, {descending = true})
  local function host(x, dtype) return M.contiguous(M.to(M.to(M.detach(x), "cpu"), dtype)) end
  local places, numbers, kinds = host(order, "int64"), host(boxes, boxes.dtype == "float64" and "float64" or "float32"),
    class and host(class, "int64")
  local keep = kept(n, M.data(places), M.data(numbers), kinds and M.data(kinds), threshold)
  local out = ops.empty({#keep}, {dtype = "int64", device = "cpu"})
  local at = M.data(out)
  for i = 1, #keep do at[i - 1] = keep[i] end
  return M.to(out, boxes.device)
end
-- nms(boxes, scores, iou_threshold): the indices of the boxes that don't overlap a better one by more than the threshold (intersection over
-- union), best first: int64. Waits for the GPU.
V.nms = define("nms", "boxes, scores, iou_threshold:number", function(boxes, scores, threshold)
  return suppress("nms", boxes, scores, nil, threshold)
end)
-- batched_nms(boxes, scores, idxs, iou_threshold): nms separately for each class; idxs: the boxes' classes.
V.batched_nms = define("batched_nms", "boxes, scores, idxs, iou_threshold:number", function(boxes, scores, idxs, threshold)
  return suppress("batched_nms", boxes, scores, idxs, threshold)
end)
return V
