"""Golden values of torchvision.models -> spec/golden/vision_models.safetensors: what networks with given weights make of a picture, and a number
made of the names and shapes in each network's state dict.

    PYTHON spec/golden_vision_models.py      # needs torch, torchvision, safetensors
"""
import os
import torch
import torchvision.models as models
from safetensors.torch import save_file
from torchvision.models.convnext import CNBlockConfig
from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2

SMALL = {     # name: constructor of a network that takes little time, and the size of its picture
    "ResNet": (lambda: models.ResNet(models.resnet.Bottleneck, [1, 1, 2, 1], num_classes=7, groups=2, width_per_group=16,
                                     replace_stride_with_dilation=[False, True, True]), 64),
    "resnet18": (lambda: models.resnet18(num_classes=7), 64), "alexnet": (lambda: models.alexnet(num_classes=7), 70),
    "vgg11_bn": (lambda: models.vgg11_bn(num_classes=7), 32), "squeezenet1_0": (lambda: models.squeezenet1_0(num_classes=7), 64),
    "squeezenet1_1": (lambda: models.squeezenet1_1(num_classes=7), 64),
    "mnasnet0_5": (lambda: models.mnasnet0_5(num_classes=7), 64), "shufflenet_v2_x0_5": (lambda: models.shufflenet_v2_x0_5(num_classes=7), 64),
    "regnet_y_400mf": (lambda: models.regnet_y_400mf(num_classes=7), 64),
    "googlenet": (lambda: models.googlenet(num_classes=7, transform_input=True, init_weights=False), 64),
    "inception_v3": (lambda: models.inception_v3(num_classes=7, transform_input=True, init_weights=False), 299),
    "DenseNet": (lambda: models.DenseNet(8, (2, 3, 2), 16, 2, num_classes=7), 64),
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=7, width_mult=0.35), 64),
    "mobilenet_v3_small": (lambda: models.mobilenet_v3_small(num_classes=7), 64),
    "mobilenet_v3_large": (lambda: models.mobilenet_v3_large(num_classes=7, width_mult=0.5, reduced_tail=True, dilated=True), 64),
    "efficientnet_b0": (lambda: models.efficientnet_b0(num_classes=7), 64),
    "ConvNeXt": (lambda: models.ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 1)],
                                         layer_scale=0.5, num_classes=7), 64),
    "VisionTransformer": (lambda: models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=7, representation_size=12), 32),
    "SwinTransformer": (lambda: SwinTransformer([2, 2], 8, [2, 2], [2, 4], [4, 3], num_classes=7), 27),
    "swin_v2": (lambda: SwinTransformer([2, 2], 8, [2, 2], [2, 4], [4, 3], num_classes=7, block=SwinTransformerBlockV2,
                                        downsample_layer=PatchMergingV2), 27),
}
# Those that aren't there, and large ones that others like them stand for.
LEFT_OUT = ("regnet_x_16", "regnet_x_32", "regnet_y_16", "regnet_y_32", "regnet_y_128", "maxvit", "vit_h_14", "vit_l_", "vgg13", "vgg16_bn", "resnext101_32",
            "wide_resnet101", "efficientnet_v2_l", "convnext_base", "swin_b", "swin_v2_b")
ALL = [n for n in models.list_models(module=models) if not n.startswith(LEFT_OUT) and n != "vgg19"]


def fill(net):
    """Spreads each parameter's values evenly: of a matrix by its fan-in, those of norms around 1, other vectors around 0."""
    with torch.no_grad():
        for i, (name, p) in enumerate(net.state_dict().items()):
            if not p.is_floating_point():
                continue
            u = (torch.arange(1, p.numel() + 1, dtype=torch.float64) * (0.6180339887498949 + 0.001 * (i + 1))) % 1 - 0.5
            last = name.rsplit(".", 1)[-1]
            if p.dim() > 1 and not name.endswith(("pos_embedding", "class_token", "layer_scale", "bias_table", "logit_scale", "coords_table")):
                u = u * 2 * (3 / (p.numel() / p.shape[0])) ** 0.5
            elif p.dim() == 1 and last in ("weight", "running_var"):
                u = 1 + 0.4 * u
            elif name.endswith("coords_table"):
                continue
            else:
                u = 0.4 * u
            p.copy_(u.reshape(p.shape))
    return net


def written(net):
    """The sum of each line's bytes, "name 2x3", times powers of 31, modulo 2^31 - 1."""
    h = 0
    for name, p in net.state_dict().items():
        for byte in f"{name} {'x'.join(map(str, p.shape))}\n".encode():
            h = (h * 31 + byte) % 2147483647
    return h


out = {}
for name, (make, side) in SMALL.items():
    net = fill(make().double()).eval()
    x = torch.sin(torch.arange(2 * 3 * side * side, dtype=torch.float64) * 0.37).reshape(2, 3, side, side)
    out[name] = net(x).detach()
    net.train()
    for m in net.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0
        if type(m).__name__ == "StochasticDepth":
            m.p = 0.0
    y = net(x)
    loss = sum(torch.nn.functional.cross_entropy(z, torch.tensor([2, 5])) for z in (y if isinstance(y, tuple) else [y]))
    loss.backward()
    out[name + ".loss"] = loss.detach()
    out[name + ".norms"] = torch.stack([p.grad.norm() for p in net.parameters()])
for name in ALL:
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device("cpu" if name.startswith("regnet") else "meta"):      # RegNet computes its widths
        out["names." + name] = torch.tensor(written(models.get_model(name, **options)), device="cpu")
save_file(out, os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "vision_models.safetensors"))
