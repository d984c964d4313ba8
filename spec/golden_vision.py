"""Golden values of boxes' functions, from torchvision.ops -> spec/golden/vision.safetensors. Places are torchvision's, from 0.

    PYTHON spec/golden_vision.py      # needs torch, torchvision, safetensors
"""
import os
import torch
import torchvision.ops as V
from safetensors.torch import save_file

torch.manual_seed(5)


def boxes(n):
    xy, size = torch.rand(n, 2) * 60, torch.rand(n, 2) * 40 + 1
    return torch.cat([xy, xy + size], 1)


a, b, many = boxes(5), boxes(7), boxes(150)
b[0] = a[0]
b[1] = torch.tensor([200.0, 200, 210, 230])                     # far from all
scores, classes = torch.rand(150), torch.randint(0, 4, (150,))
masks = torch.rand(3, 9, 11) > 0.9
out = {"a": a, "b": b, "many": many, "scores": scores, "classes": classes, "masks": masks, "masks_to_boxes": V.masks_to_boxes(masks),
       "box_area": V.box_area(a), "clip": V.clip_boxes_to_image(many, (50, 70)), "small": V.remove_small_boxes(many, 12.5)}
for f in ("box_iou", "generalized_box_iou", "distance_box_iou", "complete_box_iou"):
    out[f] = getattr(V, f)(a, b)
for f in ("generalized_box_iou_loss", "distance_box_iou_loss", "complete_box_iou_loss"):
    x = b[:5].clone().requires_grad_()
    for how in ("none", "mean", "sum"):
        out[f + "." + how] = getattr(V, f)(x, a, reduction=how).detach()
    getattr(V, f)(x, a, reduction="sum").backward()
    out[f + ".grad"] = x.grad
x, y = torch.randn(4, 3).requires_grad_(), (torch.rand(4, 3) > 0.5).float()
out["logits"], out["targets"] = x.detach(), y
out["focal"] = V.sigmoid_focal_loss(x, y).detach()
out["focal.plain"] = V.sigmoid_focal_loss(x, y, alpha=-1, gamma=1.5).detach()
V.sigmoid_focal_loss(x, y, reduction="mean").backward()
out["focal.grad"] = x.grad
for t in (0.3, 0.5, 0.7):
    out[f"nms.{t}"], out[f"batched_nms.{t}"] = V.nms(many, scores, t), V.batched_nms(many, scores, classes, t)
for i in ("xyxy", "xywh", "cxcywh"):
    for o in ("xyxy", "xywh", "cxcywh"):
        out[f"convert.{i}.{o}"] = V.box_convert(a, i, o)
x = torch.randn(2, 3, 8, 9).requires_grad_()
rois = [torch.tensor([[1.0, 1, 6, 7], [0, 2, 5, 5.5], [-3, -2, 40, 4]]), torch.tensor([[4.0, 1, 4.2, 1.1], [2, 2, 15, 15]])]
out["pictures"], out["rois.1"], out["rois.2"] = x.detach(), rois[0], rois[1]
for ratio in (-1, 2):
    for aligned in (False, True):
        name = f"roi_align.{ratio}.{aligned}".lower()
        out[name] = V.roi_align(x, rois, (3, 2), 0.9, ratio, aligned).detach()
        x.grad = None
        (V.roi_align(x, rois, (3, 2), 0.9, ratio, aligned) ** 2).sum().backward()
        out[name + ".grad"] = x.grad
x = torch.randn(2, 12, 8, 9).requires_grad_()
out["deep"] = x.detach()
for name, y in (("ps_roi_align.2", V.ps_roi_align(x, rois, (3, 2), 0.9, 2)), ("ps_roi_align.any", V.ps_roi_align(x, rois[:1] + [rois[1][1:]], (3, 2), 0.9)),
                ("roi_pool", V.roi_pool(x, rois, (3, 2), 0.9))):
    x.grad = None
    (y ** 2).sum().backward()
    out[name], out[name + ".grad"] = y.detach(), x.grad
levels = {str(i): torch.randn(2, 3, 16 >> i, 24 >> i) for i in range(3)}
far = [torch.tensor([[1.0, 1, 6, 7], [0, 2, 92, 60], [3, 10, 40, 39]]), torch.tensor([[4.0, 1, 4.2, 1.1], [2, 2, 40, 31]])]
out.update({"level." + k: v for k, v in levels.items()} | {"far.1": far[0], "far.2": far[1]})
out["multi"] = V.MultiScaleRoIAlign(["0", "1", "2"], 3, 2, canonical_scale=30, canonical_level=3)(levels, far, [(62, 96), (64, 95)])
for i, (stride, padding, dilation, groups, parts, masked) in enumerate([(1, 0, 1, 1, 1, False), (2, 1, 1, 2, 2, True), ((1, 2), (2, 1), (2, 1), 1, 4, True)]):
    x, w, b = torch.randn(2, 4, 9, 8), torch.randn(6, 4 // groups, 3, 2), torch.randn(6)
    size = torch.nn.functional.conv2d(x, w, b, stride, padding, dilation, groups).shape[2:]
    given = [x, torch.randn(2, 2 * parts * 6, *size) * 2, w, b] + ([torch.rand(2, parts * 6, *size)] if masked else [])
    given = [t.requires_grad_() for t in given]
    y = V.deform_conv2d(*given[:4], stride, padding, dilation, mask=given[4] if masked else None)
    (y ** 2).sum().backward()
    out[f"deform.{i}"] = y
    for n, t in zip("xowbm", given):
        out[f"deform.{i}.{n}"], out[f"deform.{i}.{n}.grad"] = t, t.grad
fpn = V.FeaturePyramidNetwork([3, 3, 3], 4, extra_blocks=V.feature_pyramid_network.LastLevelMaxPool(), norm_layer=torch.nn.BatchNorm2d)
out.update({"fpn." + k: v.clone() for k, v in fpn.state_dict().items() if "num_batches" not in k})
for k, v in fpn(dict(levels)).items():
    out["fpn.level." + k] = v
retina = V.FeaturePyramidNetwork([3, 3, 3], 4, extra_blocks=V.feature_pyramid_network.LastLevelP6P7(3, 4))
out.update({"retina." + k: v for k, v in retina.state_dict().items()})
for k, v in retina(dict(levels)).items():
    out["retina.level." + k] = v
se = V.SqueezeExcitation(4, 2)
out.update({"se." + k: v for k, v in se.state_dict().items()} | {"se.y": se(out["deform.0.x"])})
save_file({k: v.detach().contiguous() for k, v in out.items()}, os.path.join(os.path.dirname(__file__), "golden", "vision.safetensors"))
