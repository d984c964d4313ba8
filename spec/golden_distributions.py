"""Part of make_golden.py, which runs it: distributions. A case is a Lua expression of parameters a and b, and the same in Python."""
import torch.distributions as D

a, b = torch.tensor([0.3, -1.2, 0.9], dtype=f64), torch.tensor([0.5, 1.5, 2.0], dtype=f64)
probs, logits = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]], dtype=f64), values((2, 3), f64)
unit = torch.tensor([0.2, 0.5, 0.9], dtype=f64)
reals, above, counts, bits = values((2, 3), f64), values((2, 3), f64, "positive"), torch.tensor([[0.0, 1, 2], [3, 0, 5]], dtype=f64), torch.tensor([[0.0, 1, 1], [1, 0, 0]], dtype=f64)
classes, hot = torch.tensor([[0, 2], [1, 0], [2, 2]]), torch.eye(3, dtype=f64)[torch.tensor([[0, 2], [1, 0]])]
# Lua, Python, a value (classes: from 0 there), parameters, another of its kind
CASES = [
    ("D.Normal(p, q)", lambda p, q: D.Normal(p, q), reals, (a, b)), ("D.LogNormal(p, q)", lambda p, q: D.LogNormal(p, q), above, (a, b)), ("D.Uniform(p, q)", lambda p, q: D.Uniform(p, q, validate_args=False), reals, (a, b + 1)), ("D.Exponential(p)", lambda p: D.Exponential(p), above, (b,)),
    ("D.Laplace(p, q)", lambda p, q: D.Laplace(p, q), reals, (a, b)), ("D.Bernoulli{probs=p}", lambda p: D.Bernoulli(probs=p), bits, (unit,)), ("D.Bernoulli{logits=p}", lambda p: D.Bernoulli(logits=p), bits, (a,)), ("D.Geometric(p)", lambda p: D.Geometric(probs=p), counts, (unit,)),
    ("D.Geometric{logits=p}", lambda p: D.Geometric(logits=p), counts, (a,)), ("D.Categorical(p)", lambda p: D.Categorical(probs=p), classes, (probs[:1] + 0.1,)), ("D.Categorical{logits=p}", lambda p: D.Categorical(logits=p), classes, (logits,)),
    ("D.OneHotCategorical{logits=p}", lambda p: D.OneHotCategorical(logits=p), hot, (logits,)), ("D.Independent(D.Normal(p, q), 1)", lambda p, q: D.Independent(D.Normal(p, q), 1), reals, (a, b)),
]
store, cases = {}, []
for i, (text, make, x, params) in enumerate(CASES):
    key = "d%d." % (i + 1)
    ps = [p.clone().requires_grad_() for p in params]
    d = make(*ps)
    lp = d.log_prob(x)
    for k, g in enumerate(torch.autograd.grad(lp.masked_fill(lp.isinf(), 0).sum(), ps)):
        store[key + "p%d" % (k + 1)], store[key + "grad%d" % (k + 1)] = params[k].clone(), g
    other = make(*[p * 0.9 + 0.05 for p in params])
    store.update({key + "x": x + (0 if x.is_floating_point() else 1), key + "log_prob": lp.detach(), key + "entropy": d.entropy().detach(), key + "kl": D.kl_divergence(d, other).detach()})
    names = ["log_prob", "entropy", "kl"]
    if "D.Categorical" not in text:
        store.update({key + "mean": d.mean.detach(), key + "variance": d.variance.detach()})
        names += ["mean", "variance"]
    cases.append({"make": text, "params": len(params), "names": names, "event": len(d.event_shape)})
d = D.Normal(a, b)
store.update({"cdf": d.cdf(reals), "icdf": d.icdf(unit), "a": a, "b": b, "reals": reals, "unit": unit})
save_file({k: v.contiguous() for k, v in store.items()}, os.path.join(OUT, "distributions.safetensors"), {"tycho": json.dumps(cases)})
