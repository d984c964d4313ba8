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
    local three = {lists[1], lists[2], lists[1]}
    helper.fails("roi_align: argument 2 (boxes) has 3 tensors; there are 2 pictures", V.roi_align, G.pictures, three, 2)
    helper.exact(V.roi_align(G.pictures, {lists[1]}, 2), V.roi_align(G.pictures[{ {1, 1} }], {lists[1]}, 2))     -- as torchvision's
    local under = tycho.autocast({dtype = "bfloat16"}, cut, G.pictures, lists)
    helper.close(under, G["roi_align.2.true"], "under autocast")
    helper.fails("roi_align: argument 2 (boxes) must have 5 columns, a picture's number and 4 corners, got shape 3x4", V.roi_align,
      G.pictures, G["rois.1"], 2)
    if helper.device == "cpu" then
      local box = tycho.tensor {{0, 1, 1, 4, 4}}
      helper.fails("roi_align: argument 2 (boxes) has picture numbers 0 to 0; they must be whole, from 1 to 2", V.roi_align, G.pictures,
        box, 2)
      box[{1, 1}], box[{1, 3}] = 1, 0 / 0
      helper.fails("roi_align: argument 2 (boxes) has numbers that aren't finite", V.roi_align, G.pictures, box, 2)
    end
    helper.fails("roi_align: output_size must be at least 1, got 0x0", V.roi_align, G.pictures, lists, 0)
    helper.fails("roi_align: argument 1 (input) must have 4 dims, got shape 3x8x9", V.roi_align, G.pictures[1], lists, 2)
  end)

  it("are pooled, with gradients; and by cells with channels of their own", function()
    local lists = {G["rois.1"], G["rois.2"]}
    local function check(name, fn, boxes, ...)
      local x = G.deep:clone():requires_grad_()
      local y = fn(x, boxes, {3, 2}, 0.9, ...)
      helper.close(y, G[name], name)
      y:pow(2):sum():backward()
      helper.close(x.grad, G[name .. ".grad"], name .. "'s gradient", 1e-4)
    end
    check("roi_pool", V.roi_pool, lists)
    check("ps_roi_align.2", V.ps_roi_align, lists, 2)
    check("ps_roi_align.any", V.ps_roi_align, {lists[1], lists[2][{ {2, 2} }]})
    helper.exact(V.RoIPool({3, 2}, 0.9)(G.deep, lists), V.roi_pool(G.deep, lists, {3, 2}, 0.9))
    helper.exact(V.PSRoIAlign({3, 2}, 0.9, 2)(G.deep, lists), V.ps_roi_align(G.deep, lists, {3, 2}, 0.9, 2))
    assert.equal("RoIPool(output_size=3x2, spatial_scale=0.9)", tostring(V.RoIPool({3, 2}, 0.9)))
    assert.same({0, 12, 3, 2}, {unpack(V.roi_pool(G.deep, {tycho.zeros(0, 4), tycho.zeros(0, 4)}, {3, 2}).shape)})
    assert.equal(0, V.roi_pool(G.deep, {tycho.tensor {{50, 50, 60, 60}}, tycho.zeros(0, 4)}, 2):abs():max():item())    -- outside
    local large = V.roi_pool(G.deep, {tycho.tensor {{-1e6, -1e6, 1e6, 1e6}}, tycho.zeros(0, 4)}, 1)          -- around the picture
    helper.exact(large:flatten(), G.deep[1]:flatten(2):amax(2))
    local low = tycho.full({1, 1, 4, 4}, -math.huge)
    assert.equal(-math.huge, V.roi_pool(low, tycho.tensor {{1, 0, 0, 5, 2}}, 1):item())
    helper.fails("ps_roi_align: argument 1 (input) has 12 channels; they must be a multiple of 5x5 cells", V.ps_roi_align, G.deep, lists, 5)
    helper.fails("roi_pool: argument 2 (boxes) has 3 tensors; there are 2 pictures", V.roi_pool, G.deep, {lists[1], lists[2], lists[1]}, 2)
  end)

  it("are cut out of the levels of a pyramid that fit their sizes", function()
    local levels, boxes, sizes = {G["level.0"], G["level.1"], G["level.2"]}, {G["far.1"], G["far.2"]}, {{62, 96}, {64, 95}}
    local cut = V.MultiScaleRoIAlign({1, 2, 3}, 3, 2, {canonical_scale = 30, canonical_level = 3})
    helper.close(cut(levels, boxes, sizes), G.multi, "MultiScaleRoIAlign")
    local named = V.MultiScaleRoIAlign({"a", "b", "c"}, 3, 2, {canonical_scale = 30, canonical_level = 3})
    helper.exact(named({a = levels[1], b = levels[2], c = levels[3], d = 1}, boxes, sizes), cut(levels, boxes, sizes))
    local one = V.MultiScaleRoIAlign({2}, 3, 2)
    helper.exact(one(levels, boxes, sizes), V.roi_align(levels[2], boxes, 3, 1 / 8, 2))
    local turned = {tycho.tensor {{5, 5, 1, 9}, {2, 2, 40, 31}}, G["far.2"]}                                  -- one of negative area
    helper.exact(cut(levels, turned, sizes)[2], cut(levels, {turned[1][{ {2, 2} }], G["far.2"]}, sizes)[1])
    helper.fails("MultiScaleRoIAlign: feature 4 must be a tensor of 4 dims, got nil", V.MultiScaleRoIAlign({1, 4}, 3, 2), levels, boxes,
      sizes)
    helper.fails("argument 3 must be a list of the pictures' sizes, {height, width}, got nil", cut, levels, boxes)
    helper.fails("features of shape 2x3x16x24 have another scale in height than in width of pictures of 64x300", cut, levels, boxes,
      {{64, 300}, {5, 5}})
  end)

  it("features of several scales are brought together", function()
    local function features() return {G["level.0"], G["level.1"], G["level.2"]} end
    local function check(name, net, count)
      local state = {}
      for k, v in pairs(G) do
        local key = k:match("^" .. name .. "%.(.+)$")
        if key and not key:find "^level" then state[key] = v end
      end
      net:load_state_dict(state, {strict = name == "retina"})
      local y = net(features())
      assert.equal(count, #y)
      local last = {[4] = name == "retina" and "p6" or "pool", [5] = "p7"}
      for i = 1, count do helper.close(y[i], G[name .. ".level." .. (i < 4 and i - 1 or last[i])], name .. " " .. i, 1e-4) end
    end
    check("fpn", V.FeaturePyramidNetwork({3, 3, 3}, 4, {extra_blocks = V.LastLevelMaxPool(), norm_layer = tycho.nn.BatchNorm2d}), 4)
    check("retina", V.FeaturePyramidNetwork({3, 3, 3}, 4, V.LastLevelP6P7(3, 4)), 5)
    helper.fails("FeaturePyramidNetwork: argument 1 must be a list of 2 features, finest first, got a list of 3",
      V.FeaturePyramidNetwork({3, 3}, 4), features())
    helper.fails("in_channels_list is empty", V.FeaturePyramidNetwork, {}, 4)
    helper.fails("FeaturePyramidNetwork: in_channels_list must be a list of channels, got 3", V.FeaturePyramidNetwork, 3, 4)
    helper.fails("MultiScaleRoIAlign: featmap_names must list the features' names, got 3", V.MultiScaleRoIAlign, 3, 2, 2)
    helper.fails("Conv2d: kernel_size must be a whole number from 1, got 'x'", V.Conv2dNormActivation, 3, 4, "x")
    helper.fails("MultiScaleRoIAlign: canonical_scale must be a number", V.MultiScaleRoIAlign, {1}, 2, 2, {canonical_scale = "x"})
  end)

  it("windows are deformed, with gradients", function()
    for i, c in ipairs {{1, 0, 1}, {2, 1, 1}, {{1, 2}, {2, 1}, {2, 1}}} do
      local name, t = ("deform.%d"):format(i - 1), {}
      for k in ("xowbm"):gmatch "." do
        local given = G[name .. "." .. k]
        t[k] = given and given:clone():requires_grad_()
      end
      local y = V.deform_conv2d(t.x, t.o, t.w, t.b, c[1], c[2], c[3], t.m)
      helper.close(y, G[name], name, 1e-4)
      y:pow(2):sum():backward()
      for k, v in pairs(t) do helper.close(v.grad, G[name .. "." .. k .. ".grad"], name .. "'s gradient of " .. k, 1e-4) end
      if not t.m then
        local layer = V.DeformConv2d(4, 6, {3, 2})
        layer:load_state_dict {weight = t.w:detach(), bias = t.b:detach()}
        helper.exact(layer(t.x, t.o), y)
        helper.close(layer(t.x, t.o * 0), tycho.nn.functional.conv2d(t.x, t.w, t.b), "without offsets", 1e-4)
        assert.equal("DeformConv2d(4, 6, kernel_size=3x2, stride=1x1, padding=0x0)", tostring(layer))
        helper.fails("deform_conv2d: argument 2 (offset) has shape 2x6x7x7; it must be 2x12x7x7", layer, t.x, tycho.zeros(2, 6, 7, 7))
        helper.fails("deform_conv2d: argument 2 (offset) has shape 2x27x7x7", V.deform_conv2d, tycho.zeros(2, 3, 9, 8),
          tycho.zeros(2, 27, 7, 7), tycho.zeros(4, 3, 3, 2))
        local narrow = V.deform_conv2d(t.x:bfloat16(), t.o:bfloat16(), t.w:bfloat16(), t.b:bfloat16())
        assert.equal("bfloat16", narrow.dtype)
        helper.close(narrow:float(), y, "bfloat16", 0.15)
        helper.fails("deform_conv2d: argument 8 (mask) has shape 2x1x7x7; it must be 2x6x7x7", layer, t.x, t.o, tycho.zeros(2, 1, 7, 7))
      end
    end
    local x, w = tycho.zeros(1, 2, 3, 3), tycho.zeros(1, 2, 5, 5)
    helper.fails("deform_conv2d: the window is larger than the padded picture of shape 1x2x3x3", V.deform_conv2d, x,
      tycho.zeros(1, 50, 1, 1), w)
    helper.fails("deform_conv2d: stride must be from 1, got 0", V.deform_conv2d, x, x, w, nil, 0)
    helper.fails("argument 3 (weight) of shape 1x3x1x1 doesn't fit the channels of shape 1x2x3x3", V.deform_conv2d, x, x,
      tycho.zeros(1, 3, 1, 1))
  end)

  it("blocks are those of torchvision", function()
    local nn = tycho.nn
    local se = V.SqueezeExcitation(4, 2)
    local state = {}
    for k, v in pairs(G) do
      if k:find "^se%.f" then state[k:sub(4)] = v end
    end
    se:load_state_dict(state)
    helper.close(se(G["deform.0.x"]), G["se.y"], "SqueezeExcitation")
    local block = V.Conv2dNormActivation(3, 8, {kernel_size = {3, 5}, stride = 2, activation_layer = nn.SiLU})
    assert.same({1, 8, 5, 5}, {unpack(block(tycho.randn(1, 3, 10, 10)).shape)})
    assert.equal(3, #block)
    assert.is_nil(block[1].bias)
    assert.is_true(V.Conv2dNormActivation(3, 8, {norm_layer = false})[1].bias ~= nil)
    assert.equal("SiLU()", tostring(block[3]))
    assert.same({1, 8, 4, 4, 4}, {unpack(V.Conv3dNormActivation(3, 8)(tycho.randn(1, 3, 4, 4, 4)).shape)})
    local mlp = V.MLP(4, {8, 2}, {norm_layer = nn.LayerNorm, dropout = 0.5})
    local names = {}
    for _, m in ipairs(mlp) do names[#names + 1] = m._name end
    assert.same({"Linear", "LayerNorm", "ReLU", "Dropout", "Linear", "Dropout"}, names)
    assert.same({3, 2}, {unpack(mlp(tycho.randn(3, 4)).shape)})
    assert.same({4, 2, 3}, {unpack(V.Permute({3, 1, 2})(tycho.zeros(2, 3, 4)).shape)})
    helper.fails("MLP: hidden_channels must be a list of sizes, got 3", V.MLP, 4, 3)
  end)

  it("frozen norms are norms in evaluation, and load their state", function()
    local norm, frozen = tycho.nn.BatchNorm2d(3), V.FrozenBatchNorm2d(3)
    tycho.manual_seed(8)
    for _ = 1, 3 do norm(tycho.randn(4, 3, 5, 5) * 2 + 1) end
    frozen:load_state_dict(norm:state_dict())
    assert.equal(0, #frozen:parameters())
    local x = tycho.randn(2, 3, 4, 4)
    helper.close(frozen:train()(x), norm:eval()(x), "FrozenBatchNorm2d")
    assert.equal("FrozenBatchNorm2d(3, eps=1e-05)", tostring(frozen))
  end)

  it("blocks of elements are left out", function()
    tycho.manual_seed(3)
    local x = tycho.ones(8, 16, 20, 20)
    local y = V.drop_block2d(x, 0.2, 4)
    local gone = y:eq(0)
    local rate = gone:float():mean():item()
    assert.is_true(rate > 0.12 and rate < 0.25, "share " .. rate)
    assert.is_true(math.abs(y:sum():item() / x:sum():item() - 1) < 1e-4)
    -- each zero is in a block of zeros: eroded and dilated again, they are the same
    local F = tycho.nn.functional
    local whole = F.avg_pool2d(gone:float(), 4, 1):sub(1):abs():lt(1e-4):float()
    helper.exact(F.max_pool2d(F.pad(whole, {3, 3, 3, 3}), 4, 1):gt(0), gone)
    assert.same({2, 3, 4, 5, 6}, {unpack(V.drop_block3d(tycho.ones(2, 3, 4, 5, 6), 0.3, 2).shape)})
    local layer = V.DropBlock2d(0.2, 4)
    assert.is_true(layer(x):eq(0):any():item())
    assert.is_true(layer:eval()(x) == x)
    helper.fails("p must be in 0..1", V.DropBlock2d, 2, 3)
    helper.fails("block_size must be a whole number from 1, got 0", V.DropBlock3d, 0.5, 0)
    helper.fails("drop_block2d: argument 1 must have 4 dims, got shape 2", V.drop_block2d, tycho.ones(2), 0.5, 2)
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
