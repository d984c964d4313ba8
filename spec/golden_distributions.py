"""Part of make_golden.py, which runs it: distributions, divergences of two kinds, transforms. A case is a Lua expression of parameters p, q
and r, and the same in Python; the metadata has a list of cases of each of these."""
import math
import torch.distributions as D

a, b = torch.tensor([0.3, -1.2, 0.9], dtype=f64), torch.tensor([0.5, 1.5, 2.0], dtype=f64)
probs, logits = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]], dtype=f64), values((2, 3), f64)
unit = torch.tensor([0.2, 0.5, 0.9], dtype=f64)
reals, above, counts, bits = values((2, 3), f64), values((2, 3), f64, "positive"), torch.tensor([[0.0, 1, 2], [3, 0, 5]], dtype=f64), torch.tensor([[0.0, 1, 1], [1, 0, 0]], dtype=f64)
classes, hot = torch.tensor([[0, 2], [1, 0], [2, 2]]), torch.eye(3, dtype=f64)[torch.tensor([[0, 2], [1, 0]])]
inside, cov = values((2, 3), f64, "prob") * 0.9 + 0.05, torch.tensor([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]], dtype=f64)
shares = above / above.sum(-1, keepdim=True)
tril = torch.linalg.cholesky(cov)
factors = torch.linalg.cholesky(torch.stack([torch.eye(3, dtype=f64) + 0.3 * k * (torch.ones(3, 3, dtype=f64) - torch.eye(3, dtype=f64)) for k in (0, 1, 2)]))
squares = cov + torch.stack([torch.eye(3, dtype=f64) * k for k in (0.3, 1, 4)])
T = D.transforms
# Lua, Python, a value (classes: from 0 there), parameters, another of its kind
class VonMises(D.VonMises):              # PyTorch's Bessel functions there have 7 digits, those of torch.special all
    def log_prob(self, x): return self.concentration * (torch.cos(x - self.loc) - 1) - math.log(2 * math.pi) - torch.special.i0e(self.concentration).log()
    @property
    def variance(self): return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)
CASES = [
    ("D.Normal(p, q)", lambda p, q: D.Normal(p, q), reals, (a, b)), ("D.LogNormal(p, q)", lambda p, q: D.LogNormal(p, q), above, (a, b)), ("D.Uniform(p, q)", lambda p, q: D.Uniform(p, q, validate_args=False), reals, (a, b + 1)), ("D.Exponential(p)", lambda p: D.Exponential(p), above, (b,)),
    ("D.Laplace(p, q)", lambda p, q: D.Laplace(p, q), reals, (a, b)), ("D.Bernoulli{probs=p}", lambda p: D.Bernoulli(probs=p), bits, (unit,)), ("D.Bernoulli{logits=p}", lambda p: D.Bernoulli(logits=p), bits, (a,)), ("D.Geometric(p)", lambda p: D.Geometric(probs=p), counts, (unit,)),
    ("D.Geometric{logits=p}", lambda p: D.Geometric(logits=p), counts, (a,)), ("D.Categorical(p)", lambda p: D.Categorical(probs=p), classes, (probs[:1] + 0.1,)), ("D.Categorical{logits=p}", lambda p: D.Categorical(logits=p), classes, (logits,)),
    ("D.OneHotCategorical{logits=p}", lambda p: D.OneHotCategorical(logits=p), hot, (logits,)), ("D.Independent(D.Normal(p, q), 1)", lambda p, q: D.Independent(D.Normal(p, q), 1), reals, (a, b)),
    ("D.Gamma(p, q)", lambda p, q: D.Gamma(p, q), above, (b, above[0])), ("D.Chi2(p)", lambda p: D.Chi2(p), above, (b * 3,)), ("D.Beta(p, q)", lambda p, q: D.Beta(p, q), inside, (b, above[0])),
    ("D.Dirichlet(p)", lambda p: D.Dirichlet(p), shares, (above,)), ("D.StudentT(p, q, 1.5)", lambda p, q: D.StudentT(p, q, 1.5), reals, (b + 4, a)), ("D.Poisson(p)", lambda p: D.Poisson(p), counts, (b * 6,)),
    ("D.Binomial(7, p)", lambda p: D.Binomial(7, p), counts, (unit,)), ("D.Binomial{total_count=7, logits=p}", lambda p: D.Binomial(7, logits=p), counts, (a,)), ("D.NegativeBinomial(q, {logits=p})", lambda p, q: D.NegativeBinomial(q, logits=p, validate_args=False), counts, (a, b * 3)),
    ("D.Multinomial{total_count=6, logits=p, validate_args=false}", lambda p: D.Multinomial(6, logits=p, validate_args=False), counts, (logits,)), ("D.Cauchy(p, q)", lambda p, q: D.Cauchy(p, q), reals, (a, b)), ("D.Gumbel(p, q)", lambda p, q: D.Gumbel(p, q), reals, (a, b)),
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
    ("D.TransformedDistribution(D.Normal(p, q), {D.transforms.ExpTransform(), D.transforms.AffineTransform(1, -2)})", lambda p, q: D.TransformedDistribution(D.Normal(p, q), [T.ExpTransform(), T.AffineTransform(1, -2)]), 0.7 - above, (a, b)),
    ("D.TransformedDistribution(D.Laplace(p, q), D.transforms.AffineTransform(p, -q))", lambda p, q: D.TransformedDistribution(D.Laplace(p, q), T.AffineTransform(p, -q)), reals, (a, b)),
    ("D.TransformedDistribution(D.Normal(p, 1.5), {D.transforms.StickBreakingTransform()})", lambda p: D.TransformedDistribution(D.Normal(p, torch.tensor(1.5, dtype=f64)), [T.StickBreakingTransform()]), shares, (a[:2],)),
    ("D.TransformedDistribution(D.Normal(p, q), D.transforms.CorrCholeskyTransform())", lambda p, q: D.TransformedDistribution(D.Normal(p, q), T.CorrCholeskyTransform()), factors, (a, b)),
    ("D.TransformedDistribution(D.Normal(0, q), {D.transforms.AffineTransform(p, 2), D.transforms.ReshapeTransform({3}, {3, 1}), D.transforms.ExpTransform()})", lambda p, q: D.TransformedDistribution(D.Normal(torch.zeros(3, dtype=f64), q), [T.AffineTransform(p, 2), T.ReshapeTransform((3,), (3, 1)), T.ExpTransform()]), above[..., None], (a, b)),
    ("D.TransformedDistribution(D.Normal(p, q), {D.transforms.CumulativeDistributionTransform(D.Normal(q, 2))})", lambda p, q: D.TransformedDistribution(D.Normal(p, q), [T.CumulativeDistributionTransform(D.Normal(q, torch.tensor(2.0, dtype=f64)))]), inside, (a, b)),
    ("D.MixtureSameFamily(D.Categorical{logits=p}, D.Laplace(q, 1.5))", lambda p, q: D.MixtureSameFamily(D.Categorical(logits=p), D.Laplace(q, torch.tensor(1.5, dtype=f64))), reals, (a, values((2, 1, 3), f64))),
    ("D.GeneralizedPareto(p, q, r)", lambda p, q, r: D.GeneralizedPareto(p, q, r), a + above.clamp(max=1.5), (a, b, torch.tensor([-0.3, 0.0, 0.15], dtype=f64))),
    ("D.VonMises(p, q)", VonMises, reals, (a, b * 3)),
    ("D.LowRankMultivariateNormal(p, q, r)", lambda p, q, r: D.LowRankMultivariateNormal(p, q, r), reals, (a, values((3, 2), f64), b)),
    ("D.LowRankMultivariateNormal(p, q, r) -- a batch", lambda p, q, r: D.LowRankMultivariateNormal(p, q, r), reals, (values((2, 3), f64, salt=3), values((2, 3, 1), f64), b)),
    ("D.LogisticNormal(p, q)", lambda p, q: D.LogisticNormal(p, q), shares, (a[:2], b[:2])),
    ("D.LKJCholesky(3, p)", lambda p: D.LKJCholesky(3, p), factors, (b,)),
    ("D.Wishart(p, q)", lambda p, q: D.Wishart(p, q), squares, (b + 4, cov)),
    ("D.Wishart(p, {precision_matrix=q})", lambda p, q: D.Wishart(p, precision_matrix=q), squares, (b + 3, cov)),
    ("D.Wishart(p, q) -- one", lambda p, q: D.Wishart(p, q), squares, (torch.tensor(4.5, dtype=f64), cov)),
    ("D.Wishart(p, {scale_tril=q})", lambda p, q: D.Wishart(p, scale_tril=q.tril(), validate_args=False), squares, (b + 3, tril)),
]
torch.set_default_dtype(f64)          # PyTorch's GeneralizedPareto compares with a number of the default dtype
store, cases = {}, []
for i, (text, make, x, params) in enumerate(CASES):
    key = "d%d." % (i + 1)
    ps = [p.clone().requires_grad_() for p in params]
    d = make(*ps)
    lp = d.log_prob(x)
    for k, g in enumerate(torch.autograd.grad(lp.masked_fill(lp.isinf(), 0).sum(), ps)):
        store[key + "p%d" % (k + 1)], store[key + "grad%d" % (k + 1)] = params[k].clone(), g
    other = make(*[p * 0.9 + (0.05 if p.dim() < 2 or "Multivariate" not in text and "Wishart" not in text else 0) for p in params])
    store.update({key + "x": x + (0 if x.is_floating_point() else 1), key + "log_prob": lp.detach()})
    names = ["log_prob"]
    for name, value in (("entropy", lambda: d.entropy()), ("kl", lambda: D.kl_divergence(d, other)), ("mean", lambda: d.mean), ("variance", lambda: d.variance), ("mode", lambda: d.mode), ("cdf", lambda: d.cdf(x)), ("icdf", lambda: d.icdf(inside))):
        if name in ("mean", "variance") and "D.Categorical" in text and "Mixture" not in text: continue
        if name == "mode" and "Kumaraswamy" in text: continue        # PyTorch's is NaN
        if name == "kl" and ("Weibull" in text or "HalfCauchy" in text): continue
        if name == "kl" and "Wishart" in text and lp.dim() > 0 and params[0].dim() > 0: continue        # PyTorch adds up the batch's
        if name in ("cdf", "icdf") and ("LogGamma" in text or "Independent" in text): continue
        try: store[key + name] = value().detach().clone() + (name == "mode" and text.startswith("D.Categorical"))
        except NotImplementedError: continue
        names.append(name)
    cases.append({"make": text, "params": len(params), "names": names, "event": len(d.event_shape)})
d = D.Normal(a, b)
store.update({"cdf": d.cdf(reals), "icdf": d.icdf(unit), "a": a, "b": b, "reals": reals, "unit": unit, "inside": inside})

# ---- divergences of two kinds: all that PyTorch has registered; infinite for some elements where the supports differ ----
def numbers(*xs): return torch.tensor(xs, dtype=f64)
P_KINDS = {"Beta": (b, b + 0.7), "ContinuousBernoulli": (numbers(0.2, 0.4, 0.9),), "Exponential": (b,), "Gamma": (b, b * 0.6 + 0.3), "Chi2": (b * 2,), "Gumbel": (a, b), "Laplace": (a, b), "Normal": (a, b),
    "Pareto": (b, numbers(0.8, 1.5, 3.5)), "Uniform": (numbers(0.2, -0.5, 0.1), numbers(0.8, 0.7, 1.4)), "Bernoulli": (unit,), "Poisson": (b,)}
Q_KINDS = {"Beta": (b + 0.3, b * 0.8), "ContinuousBernoulli": (numbers(0.7, 0.3, 0.1),), "Exponential": (b * 1.3,), "Gamma": (b + 0.2, b * 0.4 + 0.5), "Chi2": (b * 3,), "Gumbel": (a * 0.5, b + 0.4), "Laplace": (a - 0.3, b * 1.2),
    "Normal": (a + 0.2, b * 0.9), "Pareto": (numbers(0.1, 0.5, 0.05), b + 0.5), "Uniform": (numbers(-1, 0.1, -0.5), numbers(2, 3, 0.9)), "Bernoulli": (unit,), "Poisson": (b * 2,), "Binomial": (numbers(3, 4, 5), unit)}
def build(kind, ps): return D.Binomial(ps[0], probs=ps[1]) if kind == "Binomial" else getattr(D, kind)(*ps, validate_args=False)
divergences = []
for p_kind, p_params in P_KINDS.items():
    for q_kind, q_params in Q_KINDS.items():
        found = D.kl._dispatch_kl(getattr(D, p_kind), getattr(D, q_kind))
        if found is NotImplemented or found.__name__ in ("_kl_expfamily_expfamily", "_kl_transformed_transformed") or p_kind == q_kind: continue
        key = "k%d." % (len(divergences) + 1)
        leaves = [t.clone().requires_grad_() for t in p_params + q_params]
        kl = D.kl_divergence(build(p_kind, leaves[:len(p_params)]), build(q_kind, leaves[len(p_params):]))
        for k, t in enumerate(p_params + q_params): store[key + "p%d" % (k + 1)] = t.clone()
        store[key + "kl"] = kl.detach().clone()
        grads = kl.isfinite().all().item()
        if grads:
            for k, g in enumerate(torch.autograd.grad(kl.sum(), leaves)): store[key + "grad%d" % (k + 1)] = g
        divergences.append({"p": p_kind, "q": q_kind, "first": len(p_params), "params": len(leaves), "grads": grads})

# ---- transforms: Lua, Python, x ----
three = values((2, 3), f64, salt=5)
six = values((2, 6), f64, salt=2) / 2
maps = values((2, 3, 3), f64, salt=4) / 2
TRANSFORMS = [
    ("T.StickBreakingTransform()", T.StickBreakingTransform(), three), ("T.SoftmaxTransform()", T.SoftmaxTransform(), three), ("T.AbsTransform()", T.AbsTransform(), three),
    ("T.CorrCholeskyTransform()", T.CorrCholeskyTransform(), six), ("T.CorrCholeskyTransform() -- of 2x2", T.CorrCholeskyTransform(), values((3, 1), f64)), ("T.LowerCholeskyTransform()", T.LowerCholeskyTransform(), maps), ("T.PositiveDefiniteTransform()", T.PositiveDefiniteTransform(), maps),
    ("T.ReshapeTransform({2, 3}, {6})", T.ReshapeTransform((2, 3), (6,)), values((4, 2, 3), f64)), ("T.IndependentTransform(T.ExpTransform(), 1)", T.IndependentTransform(T.ExpTransform(), 1), three), ("T.IndependentTransform(T.StickBreakingTransform(), 1)", T.IndependentTransform(T.StickBreakingTransform(), 1), maps),
    ("T.StackTransform({T.ExpTransform(), T.TanhTransform(), T.AffineTransform(1, 2)}, 2)", T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.AffineTransform(1, 2)], 1), three / 2), ("T.StackTransform({T.ExpTransform(), T.SigmoidTransform()})", T.StackTransform([T.ExpTransform(), T.SigmoidTransform()]), three),
    ("T.CatTransform({T.ExpTransform(), T.identity_transform}, {dim=2, lengths={2, 1}})", T.CatTransform([T.ExpTransform(), T.identity_transform], 1, [2, 1]), three), ("T.CatTransform({T.ExpTransform(), T.AffineTransform(1, -2)}, -2, {1, 1})", T.CatTransform([T.ExpTransform(), T.AffineTransform(1, -2)], -2, [1, 1]), three), ("T.CatTransform({T.IndependentTransform(T.ExpTransform(), 1), T.AffineTransform(1, 2, {event_dim=1})}, {dim=2, lengths={1, 2}})", T.CatTransform([T.IndependentTransform(T.ExpTransform(), 1), T.AffineTransform(1, 2, 1)], 1, [1, 2]), three),
    ("T.CumulativeDistributionTransform(D.Normal(half, 2))", T.CumulativeDistributionTransform(D.Normal(torch.tensor(0.5, dtype=f64), torch.tensor(2.0, dtype=f64))), three), ("T.CumulativeDistributionTransform(D.Gumbel(half, 2))", T.CumulativeDistributionTransform(D.Gumbel(torch.tensor(0.5, dtype=f64), torch.tensor(2.0, dtype=f64))), three),
    ("T.ComposeTransform{T.AffineTransform(1, 2), T.StickBreakingTransform(), T.ExpTransform()}", T.ComposeTransform([T.AffineTransform(1, 2), T.StickBreakingTransform(), T.ExpTransform()]), three), ("T.ComposeTransform{T.ReshapeTransform({6}, {2, 3}), T.StickBreakingTransform()}", T.ComposeTransform([T.ReshapeTransform((6,), (2, 3)), T.StickBreakingTransform()]), six),
    ("T.AffineTransform(1, 2, {event_dim=1})", T.AffineTransform(1, 2, 1), three), ("T.PowerTransform(-2)", T.PowerTransform(torch.tensor(-2.0, dtype=f64)), three.abs() + 0.2), ("T.StickBreakingTransform().inv", T.StickBreakingTransform().inv, shares), ("T.CorrCholeskyTransform().inv", T.CorrCholeskyTransform().inv, factors),
]
transforms = []
for i, (text, t, x) in enumerate(TRANSFORMS):
    key, leaf = "t%d." % (i + 1), x.clone().requires_grad_()
    y = t(leaf)
    store.update({key + "x": x.clone(), key + "y": y.detach().clone(), key + "back": t.inv(y.detach()).clone()})
    total = (y * torch.cos(torch.arange(y.numel(), dtype=f64)).reshape(y.shape)).sum()
    if t.bijective:
        slope = t.log_abs_det_jacobian(leaf, y)
        store[key + "slope"] = slope.detach().clone()
        total = total + slope.sum()
    store[key + "grad"] = torch.autograd.grad(total, leaf)[0]
    transforms.append({"make": text, "bijective": t.bijective, "into": t.domain.event_dim, "out": t.codomain.event_dim})
torch.set_default_dtype(torch.float32)
save_file({k: v.contiguous() for k, v in store.items()}, os.path.join(OUT, "distributions.safetensors"), {"tycho": json.dumps({"cases": cases, "divergences": divergences, "transforms": transforms})})
