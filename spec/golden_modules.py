"""Part of make_golden.py, which runs it: weights that are made of others; a softmax of clusters."""
from torch.nn.utils import parametrizations

ORTHOGONAL = [(4, 4, "matrix_exp"), (4, 4, "cayley"), (5, 3, "householder"), (3, 5, "householder"), (5, 3, "cayley"), (3, 6, "matrix_exp")]
store = {}
for i, (n, k, how) in enumerate(ORTHOGONAL):
    layer = torch.nn.Linear(k, n, bias=False).double()
    parametrizations.orthogonal(layer, "weight", how)
    learned = layer.parametrizations.weight.original
    with torch.no_grad():                  # the diagonal is no part of what is learned
        learned.add_((values((n, k), f64) * 0.3).tril(-1))
    layer.weight.backward(torch.cos(torch.arange(n * k, dtype=f64)).reshape(n, k))
    key = "w%d." % (i + 1)
    store.update({key + "original": learned.detach().clone(), key + "base": layer.parametrizations.weight[0].base.clone(),
                  key + "weight": layer.weight.detach().clone(), key + "grad": learned.grad.clone()})
save_file({k: v.contiguous() for k, v in store.items()}, os.path.join(OUT, "orthogonal.safetensors"))

import warnings
from torch.nn.attention.flex_attention import flex_attention, create_mask
warnings.simplefilter("ignore")
q, k, v = (values(s, f64, salt=i).requires_grad_() for i, s in enumerate([(2, 4, 5, 3), (2, 2, 7, 3), (2, 2, 7, 2)]))
bias, cap = (values((4, 12), f64, salt=5) / 2).requires_grad_(), 1.5
mask = create_mask(lambda b, h, q, k: (q + 1 + b >= k) & ((k + h) % 5 != 0), 2, 4, 5, 7, device="cpu")
wide = [t.detach().repeat_interleave(2, 1) for t in (k, v)]
y = flex_attention(q.detach(), *wide, lambda s, b, h, q, k: cap * torch.tanh(s / cap) + bias.detach()[h, q - k + 7], scale=0.7)
# written out, for gradients, which that function doesn't have on a CPU
s = cap * torch.tanh(torch.einsum("bhqd,bhkd->bhqk", q, k.repeat_interleave(2, 1)) * 0.7 / cap)
s = s + bias[torch.arange(4)[:, None, None], torch.arange(5)[:, None] - torch.arange(7) + 7]
out = s.softmax(-1) @ v.repeat_interleave(2, 1)
assert torch.allclose(out, y)
out.backward(torch.cos(torch.arange(y.numel(), dtype=f64)).reshape(y.shape))
s = torch.where(mask, s, -torch.inf)
masked = torch.nan_to_num(s.softmax(-1)) @ v.repeat_interleave(2, 1)
store = {"q": q, "k": k, "v": v, "bias": bias, "y": y, "masked": masked, "lse": s.logsumexp(-1), "q.grad": q.grad, "k.grad": k.grad,
         "v.grad": v.grad, "bias.grad": bias.grad, "mask": mask}
save_file({k: v.detach().clone().contiguous() for k, v in store.items()}, os.path.join(OUT, "flex_attention.safetensors"))

net = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12], div_value=2.0, head_bias=True).double()
with torch.no_grad():
    for i, p in enumerate(net.parameters()): p.copy_(values(p.shape, f64, salt=i) / 3)
x, target = values((9, 8), f64).requires_grad_(), torch.tensor([0, 4, 5, 11, 12, 19, 3, 7, 19])
out, loss = net(x, target)
loss.backward()
store = {"x": x.detach(), "target": target + 1, "out": out.detach(), "loss": loss.detach(), "x_grad": x.grad, "log_prob": net.log_prob(x).detach(), "predict": net.predict(x) + 1}
for name, p in net.named_parameters(): store.update({name: p.detach(), name + ".grad": p.grad})
save_file({k: v.clone().contiguous() for k, v in store.items()}, os.path.join(OUT, "adaptive_softmax.safetensors"))
