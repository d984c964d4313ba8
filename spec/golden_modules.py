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

net = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12], div_value=2.0, head_bias=True).double()
with torch.no_grad():
    for i, p in enumerate(net.parameters()): p.copy_(values(p.shape, f64, salt=i) / 3)
x, target = values((9, 8), f64).requires_grad_(), torch.tensor([0, 4, 5, 11, 12, 19, 3, 7, 19])
out, loss = net(x, target)
loss.backward()
store = {"x": x.detach(), "target": target + 1, "out": out.detach(), "loss": loss.detach(), "x_grad": x.grad, "log_prob": net.log_prob(x).detach(), "predict": net.predict(x) + 1}
for name, p in net.named_parameters(): store.update({name: p.detach(), name + ".grad": p.grad})
save_file({k: v.clone().contiguous() for k, v in store.items()}, os.path.join(OUT, "adaptive_softmax.safetensors"))
