"""Part of make_golden.py, which runs it: distributions. A case is a Lua expression of parameters a and b, and the same in Python."""
import torch.distributions as D

a, b = torch.tensor([0.3, -1.2, 0.9], dtype=f64), torch.tensor([0.5, 1.5, 2.0], dtype=f64)
probs, logits = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]], dtype=f64), values((2, 3), f64)
unit = torch.tensor([0.2, 0.5, 0.9], dtype=f64)
reals, above, counts, bits = values((2, 3), f64), values((2, 3), f64, "positive"), torch.tensor([[0.0, 1, 2], [3, 0, 5]], dtype=f64), torch.tensor([[0.0, 1, 1], [1, 0, 0]], dtype=f64)
classes, hot = torch.tensor([[0, 2], [1, 0], [2, 2]]), torch.eye(3, dtype=f64)[torch.tensor([[0, 2], [1, 0]])]
inside, cov = values((2, 3), f64, "prob") * 0.9 + 0.05, torch.tensor([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]], dtype=f64)
shares = above / above.sum(-1, keepdim=True)
# Lua, Python, a value (classes: from 0 there), parameters, another of its kind
CASES = [
    ("D.Normal(p, q)", lambda p, q: D.Normal(p, q), reals, (a, b)), ("D.LogNormal(p, q)", lambda p, q: D.LogNormal(p, q), above, (a, b)), ("D.Uniform(p, q)", lambda p, q: D.Uniform(p, q, validate_args=False), reals, (a, b + 1)), ("D.Exponential(p)", lambda p: D.Exponential(p), above, (b,)),
    ("D.Laplace(p, q)", lambda p, q: D.Laplace(p, q), reals, (a, b)), ("D.Bernoulli{probs=p}", lambda p: D.Bernoulli(probs=p), bits, (unit,)), ("D.Bernoulli{logits=p}", lambda p: D.Bernoulli(logits=p), bits, (a,)), ("D.Geometric(p)", lambda p: D.Geometric(probs=p), counts, (unit,)),
    ("D.Geometric{logits=p}", lambda p: D.Geometric(logits=p), counts, (a,)), ("D.Categorical(p)", lambda p: D.Categorical(probs=p), classes, (probs[:1] + 0.1,)), ("D.Categorical{logits=p}", lambda p: D.Categorical(logits=p), classes, (logits,)),
    ("D.OneHotCategorical{logits=p}", lambda p: D.OneHotCategorical(logits=p), hot, (logits,)), ("D.Independent(D.Normal(p, q), 1)", lambda p, q: D.Independent(D.Normal(p, q), 1), reals, (a, b)),
    ("D.Gamma(p, q)", lambda p, q: D.Gamma(p, q), above, (b, above[0])), ("D.Chi2(p)", lambda p: D.Chi2(p), above, (b * 3,)), ("D.Beta(p, q)", lambda p, q: D.Beta(p, q), inside, (b, above[0])),
    ("D.Dirichlet(p)", lambda p: D.Dirichlet(p), shares, (above,)), ("D.StudentT(p, q, 1.5)", lambda p, q: D.StudentT(p, q, 1.5), reals, (b + 4, a)), ("D.Poisson(p)", lambda p: D.Poisson(p), counts, (b * 6,)),
    ("D.Binomial(7, p)", lambda p: D.Binomial(7, p), counts, (unit,)), ("D.Binomial{total_count=7, logits=p}", lambda p: D.Binomial(7, logits=p), counts, (a,)), ("D.NegativeBinomial(q, {logits=p})", lambda p, q: D.NegativeBinomial(q, logits=p, validate_args=False), counts, (a, b * 3)),
    ("D.Multinomial{total_count=6, logits=p}", lambda p: D.Multinomial(6, logits=p, validate_args=False), counts, (logits,)), ("D.Cauchy(p, q)", lambda p, q: D.Cauchy(p, q), reals, (a, b)), ("D.Gumbel(p, q)", lambda p, q: D.Gumbel(p, q), reals, (a, b)),
    ("D.HalfNormal(p)", lambda p: D.HalfNormal(p), above, (b,)), ("D.HalfCauchy(p)", lambda p: D.HalfCauchy(p), above, (b,)), ("D.Weibull(p, q)", lambda p, q: D.Weibull(p, q), above, (b, above[0] + 0.7)), ("D.Pareto(p, q)", lambda p, q: D.Pareto(p, q), above + 2, (b, above[0] + 5)),
    ("D.MultivariateNormal(p, q)", lambda p, q: D.MultivariateNormal(p, q), reals, (a, cov)), ("D.MultivariateNormal{loc=p, scale_tril=q}", lambda p, q: D.MultivariateNormal(p, scale_tril=q, validate_args=False), reals, (a, torch.linalg.cholesky(cov))),
    ("D.MultivariateNormal{loc=p, precision_matrix=q}", lambda p, q: D.MultivariateNormal(p, precision_matrix=q), reals, (a, cov)),
    ("D.MixtureSameFamily(D.Categorical{logits=p}, D.Normal(p, q))", lambda p, q: D.MixtureSameFamily(D.Categorical(logits=p), D.Normal(p, q)), reals[0, :2], (a, b)),
    ("D.MixtureSameFamily(D.Categorical{logits=p}, D.Independent(D.Normal(q, 1.5), 1))", lambda p, q: D.MixtureSameFamily(D.Categorical(logits=p), D.Independent(D.Normal(q, torch.tensor(1.5, dtype=f64)), 1)), reals, (a, values((3, 3), f64))),
    ("D.TransformedDistribution(D.Normal(p, q), D.transforms.TanhTransform())", lambda p, q: D.TransformedDistribution(D.Normal(p, q), D.transforms.TanhTransform()), inside * 1.6 - 0.8, (a, b)),
    ("D.TransformedDistribution(D.Independent(D.Normal(p, q), 1), {D.transforms.SigmoidTransform(), D.transforms.AffineTransform(1, 3)})", lambda p, q: D.TransformedDistribution(D.Independent(D.Normal(p, q), 1), [D.transforms.SigmoidTransform(), D.transforms.AffineTransform(1, 3)]), inside * 3 + 1, (a, b)),
    ("D.TransformedDistribution(D.Gamma(p, q), {D.transforms.PowerTransform(0.5), D.transforms.ExpTransform()})", lambda p, q: D.TransformedDistribution(D.Gamma(p, q), [D.transforms.PowerTransform(torch.tensor(0.5, dtype=f64)), D.transforms.ExpTransform()]), above + 1, (b, above[0])),
    ("D.InverseGamma(p, q)", lambda p, q: D.InverseGamma(p, q), above, (b + 4, above[0])), ("D.FisherSnedecor(p, q)", lambda p, q: D.FisherSnedecor(p, q), above, (b + 3, b + 12)),
    ("D.Kumaraswamy(p, q)", lambda p, q: D.Kumaraswamy(p, q), inside, (b + 1, above[0] + 1)), ("D.ContinuousBernoulli(p)", lambda p: D.ContinuousBernoulli(p), inside, (torch.tensor([0.2, 0.5003, 0.9], dtype=f64),)),
    ("D.ContinuousBernoulli{logits=p}", lambda p: D.ContinuousBernoulli(logits=p), inside, (a,)), ("D.OneHotCategoricalStraightThrough{logits=p}", lambda p: D.OneHotCategoricalStraightThrough(logits=p), hot, (logits,)),
    ("D.RelaxedBernoulli(0.7, {logits=p})", lambda p: D.RelaxedBernoulli(torch.tensor(0.7, dtype=f64), logits=p), inside, (a,)), ("D.RelaxedBernoulli(0.7, {probs=p})", lambda p: D.RelaxedBernoulli(torch.tensor(0.7, dtype=f64), probs=p), inside, (unit,)),
    ("D.RelaxedOneHotCategorical(0.7, {logits=p})", lambda p: D.RelaxedOneHotCategorical(torch.tensor(0.7, dtype=f64), logits=p), shares, (logits,)),
    ("D.TransformedDistribution(D.Normal(p, q), {D.transforms.SoftplusTransform()})", lambda p, q: D.TransformedDistribution(D.Normal(p, q), [D.transforms.SoftplusTransform()]), above, (a, b)),
]
store, cases = {}, []
for i, (text, make, x, params) in enumerate(CASES):
    key = "d%d." % (i + 1)
    ps = [p.clone().requires_grad_() for p in params]
    d = make(*ps)
    lp = d.log_prob(x)
    for k, g in enumerate(torch.autograd.grad(lp.masked_fill(lp.isinf(), 0).sum(), ps)):
        store[key + "p%d" % (k + 1)], store[key + "grad%d" % (k + 1)] = params[k].clone(), g
    other = make(*[p * 0.9 + (0.05 if p.dim() < 2 or "Multivariate" not in text else 0) for p in params])
    store.update({key + "x": x + (0 if x.is_floating_point() else 1), key + "log_prob": lp.detach()})
    names = ["log_prob"]
    for name, value in (("entropy", lambda: d.entropy()), ("kl", lambda: D.kl_divergence(d, other)), ("mean", lambda: d.mean), ("variance", lambda: d.variance), ("mode", lambda: d.mode), ("cdf", lambda: d.cdf(x)), ("icdf", lambda: d.icdf(inside))):
        if name in ("mean", "variance") and "D.Categorical" in text and "Mixture" not in text: continue
        if name == "mode" and "Kumaraswamy" in text: continue        # PyTorch's is NaN
        if name == "kl" and ("Weibull" in text or "HalfCauchy" in text or "Transformed" in text): continue
        if name in ("cdf", "icdf") and ("Gamma" in text or "Chi2" in text or "Mixture" in text or "Transformed" in text or "Independent" in text): continue
        try: store[key + name] = value().detach().clone() + (name == "mode" and text.startswith("D.Categorical"))
        except NotImplementedError: continue
        names.append(name)
    cases.append({"make": text, "params": len(params), "names": names, "event": len(d.event_shape)})
d = D.Normal(a, b)
store.update({"cdf": d.cdf(reals), "icdf": d.icdf(unit), "a": a, "b": b, "reals": reals, "unit": unit, "inside": inside})
save_file({k: v.contiguous() for k, v in store.items()}, os.path.join(OUT, "distributions.safetensors"), {"tycho": json.dumps(cases)})
