"""Golden values of picture transforms, from torchvision on float tensors -> spec/golden/transforms.safetensors; pictures (PNG, JPEG) from Pillow.

    PYTHON spec/golden_transforms.py      # needs torch, torchvision, pillow, safetensors
"""
import math, os
import torch
import torchvision
import torchvision.transforms.functional as F
from PIL import Image
from safetensors.torch import save_file
from torchvision.transforms import InterpolationMode as I

here = os.path.join(os.path.dirname(__file__), "golden")
torch.manual_seed(7)
x = (torch.rand(3, 13, 17) * 255).round() / 255
x[:, 3:6, 4:9] = 128 / 255                 # grey parts: saturation 0
g = x[:1].clone()
out = {"x": x, "g": g}


def put(name, v):
    out[name] = v.contiguous().float()


for size in [(7, 9), (26, 34), (5, 40)]:
    put(f"resize_{size[0]}_{size[1]}_aa", F.resize(x, list(size), antialias=True))
    put(f"resize_{size[0]}_{size[1]}", F.resize(x, list(size), antialias=False))
    put(f"resize_{size[0]}_{size[1]}_nearest", F.resize(x, list(size), interpolation=I.NEAREST))
    put(f"resize_{size[0]}_{size[1]}_cubic_aa", F.resize(x, list(size), interpolation=I.BICUBIC, antialias=True))
    put(f"resize_{size[0]}_{size[1]}_cubic", F.resize(x, list(size), interpolation=I.BICUBIC, antialias=False))
put("resize_cubic_bytes", F.resize((x > 0.5).to(torch.uint8) * 255, [26, 34], interpolation=I.BICUBIC, antialias=True) / 255)
put("resize_most", F.resize(x, [8], max_size=9, antialias=True))
put("resize_short", F.resize(x, [8], antialias=True))
put("center_crop_9", F.center_crop(x, [9, 9]))
put("center_crop_15", F.center_crop(x, [15, 20]))
put("crop", F.crop(x, 2, 3, 6, 7))
put("pad_constant", F.pad(x, [1, 2, 3, 4], fill=0.25))
put("resized_crop", F.resized_crop(x, 2, 3, 6, 7, [5, 9], antialias=True))
put("crop_outside", F.crop(x, -2, -3, 6, 7))
put("pad_edge", F.pad(x, [2, 3], padding_mode="edge"))
put("pad_reflect", F.pad(x, [4], padding_mode="reflect"))
put("hflip", F.hflip(x))
put("vflip", F.vflip(x))
for a in (0, 17.5, -90, 200):
    put(f"rotate_{a}", F.rotate(x, a))
    # torchvision multiplies by the mask twice where a fill is given with bilinear; without one it doesn't
    put(f"rotate_{a}_bilinear", F.rotate(x - 0.3, a, interpolation=I.BILINEAR) + 0.3)
put("affine", F.affine(x, 20, [2, -3], 1.3, [10.0, 0.0], interpolation=I.BILINEAR))
put("affine_2", F.affine(x, -50, [0, 1], 0.7, [-15.0, 8.0], interpolation=I.NEAREST, fill=[0.5]))
for a in (17.5, -90, 200):
    put(f"rotate_{a}_expand", F.rotate(x, a, expand=True, fill=[0.1, 0.2, 0.3]))
put("rotate_center", F.rotate(x, 30, center=[2, 3]))
put("rotate_center_expand", F.rotate(x, 30, center=[2, 3], expand=True))
put("affine_center", F.affine(x, 20, [2, -3], 1.3, [10.0, 5.0], interpolation=I.NEAREST, center=[4, 5]))
corners = [[0, 0], [16, 0], [16, 12], [0, 12]]
ends = [[2, 1], [14, 0], [15, 10], [1, 12]]
put("perspective", F.perspective(x, corners, ends))
put("perspective_nearest", F.perspective(x, corners, [[3, 2], [13, 1], [16, 11], [1, 9]], interpolation=I.NEAREST))
for f in (0.0, 0.4, 1.0, 1.7):
    put(f"brightness_{f}", F.adjust_brightness(x, f))
    put(f"contrast_{f}", F.adjust_contrast(x, f))
    put(f"saturation_{f}", F.adjust_saturation(x, f))
    put(f"sharpness_{f}", F.adjust_sharpness(x, f))
put("contrast_gray", F.adjust_contrast(g, 0.4))
for f in (-0.5, -0.2, 0.1, 0.5):
    put(f"hue_{f}", F.adjust_hue(x, f))
put("grayscale", F.rgb_to_grayscale(x, 3))
put("normalize", F.normalize(x, [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]))
put("blur", F.gaussian_blur(x, [5, 3], [1.3, 0.7]))
put("blur_default", F.gaussian_blur(x, [7, 7]))
put("gamma", F.adjust_gamma(x, 0.7, 1.2))
move = torch.rand(1, 13, 17, 2, generator=torch.Generator().manual_seed(8)) * 0.3 - 0.15
put("displacement", move)
put("elastic", F.elastic_transform(x, move))
put("elastic_nearest", F.elastic_transform(x, move, interpolation=I.NEAREST, fill=[0.5, 0.2, 0.1]))
put("whitened", torchvision.transforms.LinearTransformation(torch.eye(3 * 13 * 17).roll(1, 0) * 2, torch.full((3 * 13 * 17,), 0.25))(x))
put("solarize", F.solarize(x, 0.5))
put("invert", F.invert(x))
put("autocontrast", F.autocontrast(x * 0.5 + 0.2))
u = (x * 255).round().to(torch.uint8)
put("posterize", F.posterize(u, 3) / 255)
put("equalize", F.equalize(u).float() / 255)
# All that AutoAugment makes of a small picture, and how often it stays as it is.
from torchvision.transforms import AutoAugment, AutoAugmentPolicy
from torchvision.transforms.autoaugment import _apply_op
small = (torch.rand(3, 6, 7) * 255).round().byte()
out["small"] = small
for policy in ("imagenet", "cifar10", "svhn"):
    t = AutoAugment(AutoAugmentPolicy[policy.upper()])
    space = t._augmentation_space(10, (6, 7))
    made = {}
    for pair in t.policies:
        branches = [(small, 1 / 25)]
        for name, p, magnitude in pair:
            values, signed = space[name]
            sizes = [float(values[magnitude].item()) if magnitude is not None else 0.0]
            if signed:
                sizes.append(-sizes[0])
            after = [(y, q * (1 - p)) for y, q in branches]
            after += [(_apply_op(y, name, v, interpolation=I.NEAREST, fill=None), q * p / len(sizes)) for y, q in branches for v in sizes]
            branches = after
        for y, q in branches:
            key = y.numpy().tobytes()
            made[key] = (y, made.get(key, (y, 0))[1] + q)
    kept = {k: v for k, v in made.items() if v[1] > 0}
    out["auto_augment_" + policy] = torch.stack([y for y, q in kept.values()])
    out["auto_augment_" + policy + "_same"] = torch.tensor([kept[small.numpy().tobytes()][1]])
save_file(out, os.path.join(here, "transforms.safetensors"), metadata={"torchvision": torchvision.__version__})

# Pictures: smooth, so that JPEG is near the original; Pillow's own decoding of it is the golden value.
yy, xx = torch.meshgrid(torch.arange(24), torch.arange(31), indexing="ij")
pic = torch.stack([xx * 8, yy * 10, (xx + yy) * 4], -1).clamp(0, 255).to(torch.uint8)
im = Image.fromarray(pic.numpy())
im.save(os.path.join(here, "picture.png"))
im.convert("P", palette=Image.ADAPTIVE, colors=16).save(os.path.join(here, "palette.png"))
im.convert("L").save(os.path.join(here, "gray.png"))
im.save(os.path.join(here, "picture.jpg"), quality=95, subsampling=0)
im.convert("L").save(os.path.join(here, "gray.jpg"), quality=95)
im.convert("CMYK").save(os.path.join(here, "cmyk.jpg"))
# The same four components, said to be YCCK: the last byte of Adobe's marker.
cmyk = bytearray(open(os.path.join(here, "cmyk.jpg"), "rb").read())
cmyk[cmyk.index(b"Adobe") + 11] = 2
open(os.path.join(here, "ycck.jpg"), "wb").write(cmyk)
files = {}
for name in ("picture.png", "palette.png", "gray.png", "picture.jpg", "gray.jpg", "cmyk.jpg", "ycck.jpg"):
    import numpy
    a = torch.from_numpy(numpy.array(Image.open(os.path.join(here, name)).convert("RGB")))
    files[name] = a.permute(2, 0, 1).contiguous()
save_file(files, os.path.join(here, "pictures.safetensors"))
