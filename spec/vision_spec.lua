-- Boxes against torchvision's (spec/golden_vision.py), whose places count from 0.
local tycho = require "tycho"
local helper = require "spec.helper"
local V = tycho.vision.ops

describe("boxes", function()
  local G = helper.read "spec/golden/vision.safetensors"
  local function places(t) return t + 1 end

  it("are compared, with gradients", function()
    for _, f in ipairs {"box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"} do
      helper.close(V[f](G.a, G.b), G[f], f)
    end
    helper.close(V.box_area(G.a), G.box_area, "area")
    assert.equal("float32", V.box_iou(G.a:half(), G.b:half()).dtype)
    assert.same({40000}, V.box_area(tycho.tensor({{0, 0, 200, 200}}, {dtype = "uint8"})):totable())
    for _, f in ipairs {"generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"} do
      local x = G.b[{ {1, 5} }]:clone():requires_grad_()
      for _, how in ipairs {"none", "mean", "sum"} do helper.close(V[f](x, G.a, {reduction = how}), G[f .. "." .. how], f .. " " .. how) end
      V[f](x, G.a, {reduction = "sum"}):backward()
      helper.close(x.grad, G[f .. ".grad"], f .. "'s gradient", 1e-4)
      helper.close(V[f](G.a[{ {1, 0} }], G.a[{ {1, 0} }], {reduction = "mean"}), tycho.tensor(0), "of none")
    end
    local x = G.logits:clone():requires_grad_()
    helper.close(V.sigmoid_focal_loss(x, G.targets), G.focal, "focal loss")
    helper.close(V.sigmoid_focal_loss(x, G.targets, -1, 1.5), G["focal.plain"], "focal loss without weights")
    V.sigmoid_focal_loss(x, G.targets, {reduction = "mean"}):backward()
    helper.close(x.grad, G["focal.grad"], "its gradient")
  end)

  it("are converted, clipped, found", function()
    for _, from in ipairs {"xyxy", "xywh", "cxcywh"} do
      for _, to in ipairs {"xyxy", "xywh", "cxcywh"} do
        helper.close(V.box_convert(G.a, from, to), G["convert." .. from .. "." .. to], from .. " to " .. to)
      end
    end
    helper.exact(V.clip_boxes_to_image(G.many, {50, 70}), G.clip)
    helper.exact(V.remove_small_boxes(G.many, 12.5), places(G.small))
    helper.exact(V.masks_to_boxes(G.masks), G.masks_to_boxes)
  end)

  it("that overlap better ones go", function()
    for _, t in ipairs {0.3, 0.5, 0.7} do
      helper.exact(V.nms(G.many, G.scores, t), places(G["nms." .. t]))
      helper.exact(V.batched_nms(G.many, G.scores, G.classes, t), places(G["batched_nms." .. t]))
      helper.exact(V.nms(G.many:double(), G.scores, t), places(G["nms." .. t]))
    end
    assert.equal(0, V.nms(tycho.zeros(0, 4), tycho.zeros(0), 0.5):numel())
    assert.same({2, 1}, V.nms(tycho.tensor {{0, 0, 1, 1}, {5, 5, 6, 6}, {5, 5, 6, 6}}, tycho.tensor {0.1, 0.9, 0.9}, 0.5):totable())
    helper.fails("nms: argument 2 (scores) has shape 3; it must be a vector of 2", V.nms, tycho.zeros(2, 4), tycho.zeros(3), 0.5)
    helper.fails("nms: argument 1 (boxes) must have 4 numbers in its last dim, got shape 2x3", V.nms, tycho.zeros(2, 3), tycho.zeros(2),
      0.5)
  end)

  it("are cut out of pictures, with gradients", function()
    local lists = {G["rois.1"], G["rois.2"]}
    local numbered = tycho.cat {tycho.cat({tycho.ones(3, 1), lists[1]}, 2), tycho.cat({tycho.full({2, 1}, 2), lists[2]}, 2)}
    for _, ratio in ipairs {-1, 2} do
      for _, aligned in ipairs {false, true} do
        local name, x = ("roi_align.%d.%s"):format(ratio, aligned), G.pictures:clone():requires_grad_()
        local y = V.roi_align(x, lists, {3, 2}, 0.9, ratio, aligned)
        helper.close(y, G[name], name)
        helper.close(V.roi_align(x, numbered, {3, 2}, {spatial_scale = 0.9, sampling_ratio = ratio, aligned = aligned}), G[name], name)
        y:pow(2):sum():backward()
        helper.close(x.grad, G[name .. ".grad"], name .. "'s gradient", 1e-4)
      end
    end
    local cut = V.RoIAlign({3, 2}, 0.9, 2, true)
    helper.close(cut(G.pictures, lists), G["roi_align.2.true"], "RoIAlign")
    assert.equal("RoIAlign(output_size=3x2, spatial_scale=0.9, sampling_ratio=2, aligned=true)", tostring(cut))
    helper.close(cut(G.pictures:half(), lists):float(), G["roi_align.2.true"], "in half", 1e-3)
    assert.same({0, 3, 2, 2}, {unpack(V.roi_align(G.pictures, {tycho.zeros(0, 4), tycho.zeros(0, 4)}, 2).shape)})
    helper.fails("roi_align: argument 2 (boxes) has 1 tensors; there are 2 pictures", V.roi_align, G.pictures, {G["rois.1"]}, 2)
    local under = tycho.autocast({dtype = "bfloat16"}, cut, G.pictures, lists)
    helper.close(under, G["roi_align.2.true"], "under autocast")
    helper.fails("roi_align: argument 2 (boxes) must have 5 columns, a picture's number and 4 corners, got shape 3x4", V.roi_align,
      G.pictures, G["rois.1"], 2)
    if helper.device == "cpu" then
      local box = tycho.tensor {{0, 1, 1, 4, 4}}
      helper.fails("roi_align: argument 2 (boxes) has picture numbers 0 to 0; they must be from 1 to 2", V.roi_align, G.pictures, box, 2)
      box[{1, 1}], box[{1, 3}] = 1, 0 / 0
      helper.fails("roi_align: argument 2 (boxes) has numbers that aren't finite", V.roi_align, G.pictures, box, 2)
    end
    helper.fails("roi_align: output_size must be at least 1, got 0x0", V.roi_align, G.pictures, lists, 0)
    helper.fails("roi_align: argument 1 (input) must have 4 dims, got shape 3x8x9", V.roi_align, G.pictures[1], lists, 2)
  end)

  it("branches are left out", function()
    tycho.manual_seed(2)
    local x, layer = tycho.ones(1000, 2, 3, {requires_grad = true}), V.StochasticDepth(0.25, "row")
    local y = layer(x)
    local rows = y:mean({2, 3})
    assert.is_true(rows:eq(0):logical_or(rows:sub(4 / 3):abs():lt(1e-6)):all():item())
    assert.is_true(math.abs(y:mean():item() - 1) < 0.06)
    assert.equal(1, V.stochastic_depth(x, 0.5, "batch"):unique():numel())
    assert.is_true(layer:eval()(x) == x)
    helper.fails("p must be in 0..1", V.stochastic_depth, x, 2, "row")
    helper.fails("p must be in 0..1", V.StochasticDepth, 2, "row")
    helper.fails('mode must be "batch" or "row", got', V.StochasticDepth, 0.5, "rows")
  end)
end)
