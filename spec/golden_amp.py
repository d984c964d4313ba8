#!/usr/bin/env python3
"""spec/golden/amp.safetensors: what PyTorch's GradScaler and autocast do on the CPU.

  PYTHON=... spec/golden_amp.py        (PyTorch 2.3 or later, for torch.amp.GradScaler("cpu"); safetensors)

steps    what each of 10,000 steps' gradient holds: 0 numbers, 1 inf, 2 -inf, 3 NaN
scales   the scale after each step; counts  the growth tracker;  weights  the weight after each step (SGD, lr 0.01)
mlp.*    a network of linear, gelu, layer_norm, softmax and cross-entropy in bfloat16 autocast: parameters, loss, gradients
"""
import os
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

if not hasattr(torch.amp, "GradScaler"):
    raise SystemExit("golden_amp.py: PyTorch %s has no torch.amp.GradScaler; amp.safetensors stays as it is" % torch.__version__)
torch.manual_seed(11)
g = torch.Generator().manual_seed(5)
n = 10000
steps = torch.zeros(n, dtype=torch.uint8)
at = 0
while at < n:                       # stretches of luck of very different lengths: the scale runs to both of its ends
    share, most = [(0.0, 1200), (0.01, 900), (0.05, 500), (0.3, 60), (0.95, 40)][int(torch.randint(0, 5, (1,), generator=g))]
    length = int(torch.randint(1, most, (1,), generator=g))
    bad = torch.rand(length, generator=g) < share
    kind = torch.randint(1, 4, (length,), generator=g)
    part = torch.where(bad, kind, torch.zeros_like(kind)).to(torch.uint8)[: n - at]
    steps[at:at + len(part)] = part
    at += length
steps[9650:] = torch.where(torch.rand(350, generator=g) < 0.99, 1, 0)     # at the end down to 0, where it stays

scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=7)
w = torch.zeros(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.01)
value = {0: 1.0, 1: float("inf"), 2: float("-inf"), 3: float("nan")}
scales, counts, weights = [], [], []
for i in range(n):
    opt.zero_grad()
    loss = (w * torch.tensor([1.0, 0.5, 0.25])).sum()
    scaler.scale(loss).backward()
    if steps[i]:
        w.grad[i % 3] = value[int(steps[i])]
    scaler.step(opt)
    scaler.update()
    scales.append(scaler.get_scale())
    counts.append(scaler._growth_tracker.item())
    weights.append(w.detach()[0].clone())
out = {"steps": steps, "scales": torch.tensor(scales), "counts": torch.tensor(counts, dtype=torch.int32), "weights": torch.stack(weights)}

x, y = torch.randn(32, 24), torch.randint(0, 10, (32,))
p = {"w1": torch.randn(48, 24) * 0.2, "b1": torch.randn(48) * 0.1, "g": torch.rand(48) + 0.5, "b": torch.randn(48) * 0.1, "w2": torch.randn(10, 48) * 0.2, "b2": torch.randn(10) * 0.1}
p = {k: v.requires_grad_() for k, v in p.items()}
with torch.autocast("cpu", dtype=torch.bfloat16):
    h = F.linear(x, p["w1"], p["b1"])
    assert h.dtype == torch.bfloat16
    h = F.layer_norm(F.gelu(h).float(), (48,), p["g"], p["b"])      # float32, as on CUDA
    z = F.linear(h, p["w2"], p["b2"])
    loss = F.cross_entropy(z.float(), y)
loss.backward()
out.update({"mlp.x": x, "mlp.y": y + 1, "mlp.loss": loss.detach(), "mlp.z": z.detach()})
for k, v in p.items():
    out["mlp." + k] = v.detach()
    out["mlp.grad." + k] = v.grad
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "amp.safetensors")
save_file({k: v.contiguous() for k, v in out.items()}, path, {"tycho": "[]"})
print("PyTorch %s: scales from %g to %g, %d steps skipped" % (torch.__version__, min(scales), max(scales), int((steps != 0).sum())))
