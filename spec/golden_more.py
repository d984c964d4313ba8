"""Part of make_golden.py, which runs it: what is made of ops, sorting, scans, resizing, attention."""

# ---- reductions and scans ----
for name in ("cumprod", "logcumsumexp"):
    for dt in FLOATS[:2] + ([torch.int64] if name == "cumprod" else []):
        add(name, lambda x: getattr(torch, name)(x, 1), [values((2, 5), dt, "nonzero")], args=["$1", 2])
    add(name, lambda x: getattr(torch, name)(x, 0), [R(3, 4, d="nonzero")], args=["$1", 1])
    add(name, lambda x: getattr(torch, name)(x, 0), [R(d="nonzero")], args=["$1", 1])
add("cumprod", lambda x: torch.cumprod(x, 0), [torch.tensor([2.0, 0.5, 0, 3, 1.5], dtype=f64)], args=["$1", 1], check_grad=False)
add("cumprod", lambda x: torch.cumprod(x, 0), [torch.tensor([2.0, 0, 3, 0, 1.5], dtype=f64)], args=["$1", 1], check_grad=False)
add("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), [torch.tensor([-float("inf"), 1.0, -float("inf"), float("inf"), 2.0])], args=["$1", 1], grad=False)
for name in ("cummax", "cummin"):
    for dt in FLOATS + INTS[:3]:
        add(name, lambda x: tuple(getattr(torch, name)(x, 1)), [values((3, 6), dt)], args=["$1", 2], out_index=[2])
    add(name, lambda x: tuple(getattr(torch, name)(x, 0)), [torch.tensor([1.0, 3, 3, float("nan"), 2])], args=["$1", 1], out_index=[2], grad=False)
add("nansum", torch.nansum, [torch.tensor([1.0, float("nan"), 3])]); add("nansum", lambda x: torch.nansum(x, 1, keepdim=True), [R(2, 3)], args=["$1", 2], opts={"keepdim": True})
add("nanmean", torch.nanmean, [torch.tensor([1.0, float("nan"), 3])]); add("nanmean", lambda x: torch.nanmean(x, 1), [R(2, 3)], args=["$1", 2])
for name in ("median", "nanmedian"):
    for v in ([1, 3, 3, 3, 5], [float("nan"), 1, 1, 2], [1, float("inf"), float("inf")]):
        add(name, getattr(torch, name), [torch.tensor(v, dtype=f64)], check_grad=False)      # all that are equal share the gradient
    fn = getattr(torch, name)
    add(name, fn, [R(3, 5)]); add(name, lambda x: tuple(fn(x, 1)), [R(3, 5)], args=["$1", 2], out_index=[2]); add(name, lambda x: tuple(fn(x, 0, keepdim=True)), [R(4, 5)], args=["$1", 1], opts={"keepdim": True}, out_index=[2])
    add(name, fn, [torch.tensor([3.0, float("nan"), 1, 2])], grad=False); add(name, fn, [values((7,), torch.int64)]); add(name, fn, [R()])
for q in (0.3, 0.5, 1):
    add("quantile", lambda x: torch.quantile(x, q, dim=1, keepdim=True), [R(3, 5)], args=["$1", q, 2], opts={"keepdim": True})
for how in ("lower", "higher", "nearest", "midpoint"):
    add("quantile", lambda x: torch.quantile(x, 0.35, interpolation=how), [R(7)], args=["$1", 0.35], opts={"interpolation": how})
add("quantile", lambda x, q: torch.quantile(x, q.detach(), dim=0), [R(4, 3), torch.tensor([0.25, 0.6], dtype=f64)], args=["$1", "$2", 1])
add("aminmax", lambda x: tuple(torch.aminmax(x)), [R(3, 4)]); add("aminmax", lambda x: tuple(torch.aminmax(x, dim=1, keepdim=True)), [R(3, 4)], opts={"dim": 2, "keepdim": True})
add("var_mean", lambda x: torch.var_mean(x, 1), [R(3, 4)], args=["$1", 2]); add("std_mean", lambda x: torch.std_mean(x, 1), [R(3, 4)], args=["$1", 2])
add("std", lambda x: torch.std(x, 1), [torch.full((2, 3), 2.0, dtype=f64)], args=["$1", 2], check_grad=False)
add("norm", lambda x: torch.linalg.vector_norm(x, 3, 1), [torch.zeros(2, 3, dtype=f64)], args=["$1", 3, 2], check_grad=False)

# ---- sorting ----
for dt in FLOATS + INTS:
    add("sort", lambda x: tuple(torch.sort(x, dim=1, stable=True)), [values((3, 6), dt)], args=["$1", 2], opts={"stable": True}, out_index=[2])
    add("sort", lambda x: tuple(torch.sort(x, dim=0, descending=True, stable=True)), [values((5, 2), dt)], args=["$1", 1], opts={"descending": True}, out_index=[2])
add("sort", lambda x: tuple(torch.sort(x, stable=True)), [values((3000,), torch.float32)], out_index=[2], grad=False); add("sort", lambda x: tuple(torch.sort(x, stable=True)), [values((9000,), torch.int64)], out_index=[2])
add("sort", lambda x: tuple(torch.sort(x, stable=True)), [torch.tensor([2.0, float("nan"), -0.0, 0.0, -float("inf"), float("nan"), float("inf")])], out_index=[2], grad=False); add("sort", lambda x: tuple(torch.sort(x)), [R()], out_index=[2])
add("sort", lambda x: tuple(torch.sort(x, 1)), [R(2, 0)], args=["$1", 2], out_index=[2])
for dt in FLOATS[:2] + INTS[:1]:
    z = torch.randperm(24, generator=torch.Generator().manual_seed(1)).reshape(4, 6).to(dt)
    add("topk", lambda x: tuple(torch.topk(x, 2)), [z], args=["$1", 2], out_index=[2]); add("topk", lambda x: tuple(torch.topk(x, 3, 0, largest=False)), [z], args=["$1", 3, 1], opts={"largest": False}, out_index=[2])
add("topk", lambda x: tuple(torch.topk(x, 5)), [torch.randperm(1000, generator=torch.Generator().manual_seed(2)).double()], args=["$1", 5], out_index=[2], check_grad=False)
add("argsort", lambda x: torch.argsort(x, 1), [R(3, 5)], args=["$1", 2], out_index=[1]); add("argsort", lambda x: torch.argsort(x, 0, descending=True), [R(3, 5)], args=["$1", 1], opts={"descending": True}, out_index=[1])
add("msort", torch.msort, [R(4, 3)]); add("kthvalue", lambda x: tuple(torch.kthvalue(x, 2, 1)), [R(3, 5)], args=["$1", 2, 2], out_index=[2]); add("kthvalue", lambda x: tuple(torch.kthvalue(x, 1, 0, keepdim=True)), [R(3, 5)], args=["$1", 1, 1], opts={"keepdim": True}, out_index=[2])
for dt in FLOATS[:2] + INTS:
    add("unique", lambda x: torch.unique(x), [values((4, 5), dt)], grad=False)
add("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), [torch.tensor([[3, 1, 3], [2, 1, 3]])], opts={"return_inverse": True, "return_counts": True}, out_index=[2])
add("unique", lambda x: torch.unique(x, return_counts=True), [torch.tensor([1.5, 1.5, -2])], opts={"return_counts": True}, grad=False)
S = torch.tensor([1.0, 3, 3, 5, 9])
for right in (False, True):
    add("searchsorted", lambda s, v: torch.searchsorted(s, v, right=right), [S, torch.tensor([[3.0, 6], [0, 10]])], opts={"right": right}, out_index=[1], grad=False); add("bucketize", lambda v, s: torch.bucketize(v, s, right=right), [torch.tensor([3.0, 4, 10]), S], opts={"right": right}, out_index=[1], grad=False)
    add("searchsorted", lambda s, v: torch.searchsorted(s, v, right=right), [torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[2, 9], [0, 5]])], opts={"right": right}, out_index=[1])
def counted(x, w=None, n=0): return torch.bincount(x, w, minlength=n)
add("bincount", lambda x: counted(x), [IDX(0, 2, 2, 5)], index=[1]); add("bincount", lambda x: counted(x, n=8), [IDX(0, 2, 2, 5)], index=[1], opts={"minlength": 8}); add("bincount", lambda x, w: counted(x, w.detach()), [IDX(0, 2, 2), torch.tensor([0.5, 1, 2])], index=[1], grad=False)
add("histc", lambda x: torch.histc(x, 4, -2, 2), [values((30,), torch.float32)], args=["$1", 4, -2, 2], grad=False); add("histc", lambda x: torch.histc(x, 5), [values((30,), torch.float32)], args=["$1", 5], grad=False)
add("isin", torch.isin, [torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 4, 7])])

# ---- pointwise, made of others ----
N = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
add("nan_to_num", torch.nan_to_num, [N], grad=False); add("nan_to_num", lambda x: torch.nan_to_num(x, 1.5, 7, -7), [N.double()], args=["$1", 1.5, 7, -7], grad=False); add("nan_to_num", torch.nan_to_num, [N.half()], grad=False); add("nan_to_num", torch.nan_to_num, [R(3)])
add("clamp_min", lambda x: x.clamp_min(0.5), [R(2, 3)], args=["$1", 0.5]); add("clamp_max", lambda x: x.clamp_max(0.5), [R(2, 3)], args=["$1", 0.5]); add("clamp_min", lambda x, y: torch.clamp(x, min=y), [R(2, 3), R(3, salt=1)])
for dt in INTS:
    add("bitwise_not", torch.bitwise_not, [values((5,), dt)])
add("heaviside", lambda x: torch.heaviside(x, torch.tensor(0.5, dtype=f64)), [torch.tensor([-1.0, 0, 2], dtype=f64)], args=["$1", 0.5], grad=False)
add("sinc", torch.sinc, [R(2, 3, d="nonzero")]); add("sinc", torch.sinc, [torch.zeros(2, dtype=f64)], grad=False); add("logit", torch.logit, [R(2, 3, d="prob")]); add("logit", lambda x: torch.logit(x, 0.3), [R(2, 3, d="prob")], args=["$1", 0.3])
add("deg2rad", torch.deg2rad, [R(3)]); add("rad2deg", torch.rad2deg, [R(3)]); add("isposinf", torch.isposinf, [N]); add("isneginf", torch.isneginf, [N]); add("positive", torch.positive, [R(3)])
add("logaddexp2", torch.logaddexp2, [R(3), R(3, salt=1)]); add("cov", torch.cov, [R(3, 5)]); add("cov", torch.cov, [R(5)]); add("corrcoef", torch.corrcoef, [R(3, 5)])
add("rsub", lambda a, b: torch.rsub(a, b), [R(3), R(3, salt=1)]); add("logaddexp2", torch.logaddexp2, [R(3), R(3, salt=1)]); add("cov", torch.cov, [R(3, 5)]); add("cov", torch.cov, [R(5)]); add("corrcoef", torch.corrcoef, [R(3, 5)])
add("rsub", lambda a: torch.rsub(a, 2), [R(3)], args=["$1", 2]); add("float_power", lambda a: torch.float_power(a, 2), [values((3,), torch.int64)], args=["$1", 2]); add("float_power", torch.float_power, [R(3, d="positive"), R(3, salt=1)])
add("diff", torch.diff, [R(5)]); add("diff", lambda x: torch.diff(x, 2, 0), [R(4, 2)], args=["$1", 2, 1]); add("dist", lambda a, b: torch.dist(a, b, 3), [R(2, 3), R(2, 3, salt=1)], args=["$1", "$2", 3]); add("argwhere", torch.argwhere, [torch.tensor([[0, 1.5], [2, 0]])], out_index=[1])
for name, ref in (("fmax", torch.fmax), ("fmin", torch.fmin)):
    add(name, ref, [torch.tensor([1.0, float("nan"), 3, float("nan")]), torch.tensor([float("nan"), 2.0, 1, float("nan")])], grad=False)

x = torch.tensor([-2.5, -0.3, 1e-3, 0.5, 1, 3.7, 20, 1e4])
add("lgamma", torch.lgamma, [x]); add("lgamma", torch.lgamma, [x.double()], grad=False); add("digamma", torch.digamma, [x]); add("mvlgamma", lambda x: torch.mvlgamma(x, 3), [values((4,), torch.float32, "positive") + 1.5], args=["$1", 3])
import mpmath                              # PyTorch's trigamma has 9 digits of float64
for n in range(5):
    psi = lambda x: torch.tensor([float(mpmath.psi(n, v)) for v in x.double().tolist()], dtype=x.dtype)
    if n < 2: add("polygamma", lambda x: torch.polygamma(n, x), [x], args=[n, "$1"])
    add("polygamma", psi, [x.double()], args=[n, "$1"], grad=False)
add("digamma", lambda x: torch.tensor([float(mpmath.digamma(v)) for v in x.tolist()], dtype=f64), [x.double()], grad=False)

# ---- shapes ----
add("roll", lambda x: x.roll((1, -1), (0, 1)), [R(3, 4)], args=["$1", [1, -1], [1, 2]]); add("unflatten", lambda x: x.unflatten(1, (2, -1)), [R(2, 6)], args=["$1", 2, [2, -1]]); add("broadcast_to", lambda x: x.broadcast_to(2, 3), [R(3)], args=["$1", 2, 3])
add("broadcast_tensors", lambda a, b: torch.broadcast_tensors(a, b), [R(3, 1), R(2)], args=[["$1", "$2"]]); add("repeat_interleave", lambda x: x.repeat_interleave(2), [R(2, 3)], args=["$1", 2]); add("repeat_interleave", lambda x: x.repeat_interleave(3, 1), [R(2, 3)], args=["$1", 3, 2])
add("repeat_interleave", lambda x, n: x.repeat_interleave(n, 0), [R(3, 2), torch.tensor([2, 0, 1])], args=["$1", "$2", 1])
for k in (1, 2, 3, 4):
    add("rot90", lambda x: torch.rot90(x, k, (0, 1)), [R(2, 3)], args=["$1", k])
add("fliplr", torch.fliplr, [R(2, 3)]); add("flipud", torch.flipud, [R(2, 3)])
for off in (0, 1, -2):
    add("diag_embed", lambda x: torch.diag_embed(x, off), [R(2, 3)], args=["$1", off]); add("diag", lambda x: torch.diag(x, off), [R(3)], args=["$1", off]); add("diag", lambda x: torch.diag(x, off), [R(3, 4)], args=["$1", off])
    add("diagonal", lambda x: torch.diagonal(x, off), [R(3, 4)], args=["$1", off]); add("diagonal", lambda x: torch.diagonal(x, off, 0, 2), [R(3, 2, 4)], args=["$1", off, 1, 3]); add("diagonal", lambda x: torch.diagonal(x, 5), [R(3, 4)], args=["$1", 5])
add("diagflat", torch.diagflat, [R(2, 2)]); add("trace", torch.trace, [R(3, 4)])
add("meshgrid", lambda a, b: torch.meshgrid(a, b, indexing="ij"), [R(2), R(3)], args=[["$1", "$2"]]); add("meshgrid", lambda a, b, c: torch.meshgrid(a, b, c, indexing="xy"), [R(2), R(3), R(2)], args=[["$1", "$2", "$3"]], opts={"indexing": "xy"})
for n in (1, 2, 3):
    for s in ((), (2,), (2, 3)):
        add("atleast_%dd" % n, getattr(torch, "atleast_%dd" % n), [R(*s)])
for name in ("hstack", "vstack", "dstack", "column_stack"):
    for s in ((2,), (2, 3)):
        add(name, lambda a, b: getattr(torch, name)([a, b]), [R(*s), R(*s, salt=1)], args=[["$1", "$2"]])
add("tensor_split", lambda x: torch.tensor_split(x, 3), [R(7, 2)], args=["$1", 3]); add("tensor_split", lambda x: torch.tensor_split(x, (1, 3), 1), [R(2, 5)], args=["$1", [2, 4], 2])
for k in (0, 1, -1):
    add("tril_indices", lambda: torch.tril_indices(3, 4, k) + 1, [], args=[3, 4, k]); add("triu_indices", lambda: torch.triu_indices(3, 4, k) + 1, [], args=[3, 4, k])
add("cartesian_prod", lambda a, b: torch.cartesian_prod(a, b), [R(2), R(3)], args=[["$1", "$2"]]); add("block_diag", lambda a, b: torch.block_diag(a, b), [R(2, 3), R(1, 2)], args=[["$1", "$2"]])
add("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [R(1, 8, 2, 3)], args=["$1", 2])
for align in (False, True):
    for mode in ("bilinear", "nearest"):
        for pad in ("zeros", "border", "reflection"):
            add("grid_sample", lambda x, g: F.grid_sample(x, g.detach() if mode == "nearest" else g, mode=mode, padding_mode=pad, align_corners=align), [R(2, 3, 4, 5), R(2, 3, 6, 2) * 0.7], opts={"mode": mode, "padding_mode": pad, "align_corners": align})
    add("affine_grid", lambda t: F.affine_grid(t, [2, 1, 3, 4], align_corners=align), [R(2, 2, 3)], args=["$1", [2, 1, 3, 4]], opts={"align_corners": align})
    add("affine_grid", lambda t: F.affine_grid(t, [1, 1, 1, 1], align_corners=align), [R(1, 2, 3)], args=["$1", [1, 1, 1, 1]], opts={"align_corners": align})
unpool = F.max_pool2d(R(2, 3, 6, 4), 2, return_indices=True)[1]
add("max_unpool2d", lambda x, i: F.max_unpool2d(x, i, 2), [R(2, 3, 3, 2), unpool], args=["$1", "$2", 2], index=[2])
add("max_unpool2d", lambda x, i: F.max_unpool2d(x, i, 2, output_size=(7, 5)), [R(2, 3, 3, 2), unpool], args=["$1", "$2", 2], opts={"output_size": [7, 5]}, index=[2])
speech = torch.log_softmax(R(7, 3, 5), 2)        # PyTorch's gradient is that of what log_softmax takes; Tycho's is checked by differences
for red in ("none", "mean", "sum"):
    add("ctc_loss", lambda x, t: F.ctc_loss(x, t, [7, 6, 4], [3, 2, 1], reduction=red), [speech, torch.tensor([[1, 2, 2], [4, 3, 0], [2, 0, 0]])], args=["$1", "$2", [7, 6, 4], [3, 2, 1]], opts={"reduction": red}, index=[2], grad=False)
    add("ctc_loss", lambda x, t: F.ctc_loss(x, t, [7, 7, 2], [3, 0, 1], blank=2, reduction=red), [speech, torch.tensor([1, 1, 0, 4])], args=["$1", "$2", [7, 7, 2], [3, 0, 1], 3], opts={"reduction": red}, index=[2], grad=False)
add("ctc_loss", lambda x, t: F.ctc_loss(x, t, [7, 2, 7], [3, 3, 3], reduction="none", zero_infinity=True), [speech, torch.tensor([[1, 2, 3], [4, 4, 1], [2, 3, 2]])], args=["$1", "$2", [7, 2, 7], [3, 3, 3]], opts={"reduction": "none", "zero_infinity": True}, index=[2], grad=False)
add("ctc_loss", lambda x, t: F.ctc_loss(x, t, [7, 2, 7], [3, 3, 3], reduction="none"), [speech, torch.tensor([[1, 2, 3], [4, 4, 1], [2, 3, 2]])], args=["$1", "$2", [7, 2, 7], [3, 3, 3]], opts={"reduction": "none"}, index=[2], grad=False)
add("ctc_loss", lambda x, t: F.ctc_loss(x, t, (6,), (2,)), [torch.log_softmax(R(6, 4), 1), torch.tensor([1, 3])], args=["$1", "$2", [6], [2]], index=[2], grad=False)
add("channel_shuffle", lambda x: F.channel_shuffle(x, 2), [R(2, 6, 2, 3)], args=["$1", 2]); add("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), [R(1, 2, 4, 6)], args=["$1", 2])
add("as_strided", lambda x: x.as_strided((2, 3, 2), (4, 1, 1)), [R(3, 4)], call="x:contiguous():as_strided({2, 3, 2}, {4, 1, 1})"); add("as_strided", lambda x: x.as_strided((2, 2), (1, 4), 3), [R(3, 4)], call="x:contiguous():as_strided({2, 2}, {1, 4}, 3)")
add("unfold", lambda x: x.unfold(1, 3, 2), [R(2, 7)], args=["$1", 2, 3, 2]); add("unfold", lambda x: x.unfold(0, 2, 1), [R(4, 3)], args=["$1", 1, 2, 1])
for mode in ("reflect", "replicate", "circular"):
    add("pad", lambda x: F.pad(x, (2, 1), mode=mode), [R(2, 3, 4)], args=["$1", [2, 1]], opts={"mode": mode}); add("pad", lambda x: F.pad(x, (1, 0, 1, 2), mode=mode), [R(1, 2, 3, 4)], args=["$1", [1, 0, 1, 2]], opts={"mode": mode})

# ---- products ----
for name, a, b, c in [("addmm", (2, 4), (2, 3), (3, 4)), ("baddbmm", (2, 2, 4), (2, 2, 3), (2, 3, 4)), ("addmv", (2,), (2, 3), (3,)), ("addbmm", (2, 4), (2, 2, 3), (2, 3, 4)), ("addr", (2, 3), (2,), (3,))]:
    add(name, getattr(torch, name), [R(*a), R(*b, salt=1), R(*c, salt=2)]); add(name, lambda x, y, z: getattr(torch, name)(x, y, z, beta=0.5, alpha=2), [R(*a), R(*b, salt=1), R(*c, salt=2)], opts={"beta": 0.5, "alpha": 2})
add("inner", torch.inner, [R(2, 3), R(4, 3)]); add("tensordot", lambda a, b: torch.tensordot(a, b, 2), [R(2, 3, 4), R(3, 4, 2)], args=["$1", "$2", 2]); add("tensordot", lambda a, b: torch.tensordot(a, b, ([1, 0], [0, 2])), [R(2, 3, 4), R(3, 4, 2)], args=["$1", "$2", [[2, 1], [1, 3]]])
add("kron", torch.kron, [R(2, 3), R(3, 2)]); add("kron", torch.kron, [R(2), R(3, 2)]); add("cross", lambda a, b: torch.linalg.cross(a, b), [R(2, 3), R(2, 3, salt=1)])
for n in (0, 1, 3):
    add("matrix_power", lambda x: torch.matrix_power(x, n), [R(2, 3, 3)], args=["$1", n], grad=n > 0)
for p in (1, 2, 3):
    add("cdist", lambda a, b: torch.cdist(a, b, p), [R(3, 2), R(4, 2, salt=1)], args=["$1", "$2", p]); add("pairwise_distance", lambda a, b: F.pairwise_distance(a, b, p), [R(3, 2), R(3, 2, salt=1)], args=["$1", "$2", p])
for p in (0, 0.5, 1, 1.5, 3, float("inf")):
    pp = "inf" if p == float("inf") else p
    for dt in FLOATS[:2]:
        add("cdist", lambda a, b: torch.cdist(a, b, p), [values((2, 1, 2, 3), dt), values((2, 37, 3), dt, salt=1)], args=["$1", "$2", pp], check_grad=p >= 1)
    add("pdist", lambda x: F.pdist(x, p), [R(6, 3)], args=["$1", pp], check_grad=p >= 1)
add("cdist", lambda a, b: torch.cdist(a, b), [R(0, 3), R(4, 3)]); add("cdist", lambda a, b: torch.cdist(a, b), [R(2, 3, 0), R(2, 4, 0)], grad=False)
add("cdist", lambda a, b: torch.cdist(a, b, 2, "donot_use_mm_for_euclid_dist"), [R(3, 5), torch.cat([R(3, 5)[:2], R(520, 5, salt=1)])], args=["$1", "$2"], check_grad=False)
add("cosine_similarity", F.cosine_similarity, [R(3, 4), R(3, 4, salt=1)]); add("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, dim=0), [R(3), R(3, salt=1)], args=["$1", "$2", 1]); add("bilinear", F.bilinear, [R(4, 2), R(4, 3), R(5, 2, 3, salt=1), R(5)])
for eq, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 2, 3), (2, 3, 4)]), ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("ij,ij->", [(2, 3), (2, 3)]), ("i,j->ij", [(2,), (3,)]), ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]),
                   ("bhld,bhmd->bhlm", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]), ("ba", [(2, 3)]), ("ij,k->ikj", [(2, 3), (4,)]), ("bn,anm,bm->ba", [(2, 3), (4, 3, 2), (2, 2)]), ("i...->...", [(3, 2, 2)]), ("iij->ij", [(2, 2, 3)])]:
    add("einsum", lambda *t: torch.einsum(eq, *t), [R(*s, salt=i) for i, s in enumerate(shapes)], args=[eq] + ["$%d" % (i + 1) for i in range(len(shapes))])

# ---- indices ----
add("index_copy", lambda x, i, s: x.index_copy(0, i, s), [R(3, 2), IDX(2, 0), R(2, 2, salt=1)], args=["$1", 1, "$2", "$3"], index=[2]); add("index_fill", lambda x, i: x.index_fill(1, i, 7), [R(2, 4), IDX(3, 0)], args=["$1", 2, "$2", 7], index=[2])
add("index_add", lambda x, i, s: x.index_add(1, i, s, alpha=2), [R(2, 3), IDX(2, 0, 2), R(2, 3, salt=1)], args=["$1", 2, "$2", "$3"], opts={"alpha": 2}, index=[2])
add("take", torch.take, [R(2, 3), IDX([4, 0], [2, 2])], index=[2]); add("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 1), [R(2, 4), IDX([3, 0]).reshape(1, 2)], args=["$1", "$2", 2], index=[2]); add("take_along_dim", lambda x, i: torch.take_along_dim(x, i), [R(2, 3), IDX(5, 1)], index=[2])
add("masked_scatter", lambda x, m, s: x.masked_scatter(m, s), [R(2, 3), R(2, 3, salt=1) > 0, R(6, salt=2)])
add("embedding", lambda i, w: F.embedding(i, w, padding_idx=2), [IDX([0, 2], [2, 1]), R(3, 4)], args=["$1", "$2", 3], index=[1], check_grad=False)
for mode in ("sum", "mean", "max"):
    add("embedding_bag", lambda i, w: F.embedding_bag(i, w, mode=mode), [IDX([0, 2], [2, 1]), R(3, 4)], opts={"mode": mode}, index=[1]); add("embedding_bag", lambda i, w, o: F.embedding_bag(i, w, o, mode=mode), [IDX(0, 2, 2, 1), R(3, 4), IDX(0, 1)], opts={"mode": mode}, index=[1, 3])
add("embedding_bag", lambda i, w: F.embedding_bag(i, w, mode="sum", per_sample_weights=torch.tensor([[0.5, 2], [1, -1]], dtype=f64)), [IDX([0, 2], [2, 1]), R(3, 4)], opts={"mode": "sum", "per_sample_weights": C(torch.tensor([[0.5, 2], [1, -1]], dtype=f64))}, index=[1])
add("gather", lambda x, i: x.gather(2, i), [values((2, 3, 5), torch.float16), IDX([[4, 0], [1, 1]])], args=["$1", 3, "$2"], index=[2])

# ---- convolution, pooling, resizing ----
for kw in [{}, {"padding": 1}, {"stride": 2}, {"dilation": 2, "padding": 2}]:
    add("conv1d", lambda x, w, b: F.conv1d(x, w, b, **kw), [R(2, 2, 7), R(3, 2, 3, salt=1), R(3)], opts=kw)
add("conv1d", lambda x, w: F.conv1d(x, w, groups=2), [R(4, 6), R(4, 2, 3, salt=1)], args=["$1", "$2"], opts={"groups": 2})
for kw in [{}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2}, {"stride": (2, 1), "padding": (0, 1)}]:
    lo = {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}
    for dt in FLOATS[:2]:
        add("conv_transpose2d", lambda x, w, b: F.conv_transpose2d(x, w, b, **kw), [values((2, 2, 3, 4), dt), values((2, 3, 3, 2), dt, salt=1), values((3,), dt)], opts=lo)
add("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, groups=2), [R(1, 4, 3, 3), R(4, 2, 2, 2, salt=1)], args=["$1", "$2"], opts={"groups": 2}); add("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1), [R(2, 2, 4), R(2, 3, 3, salt=1), R(3)], opts={"stride": 2, "padding": 1, "output_padding": 1})
for dt in FLOATS[:2]:
    add("max_pool2d", lambda x: F.max_pool2d(x, 2, 2, 0, 1, ceil_mode=True), [values((1, 2, 5, 5), dt)], args=["$1", 2], opts={"ceil_mode": True}); add("max_pool2d", lambda x: F.max_pool2d(x, 2, 1, 1, 2), [values((1, 2, 5, 6), dt)], args=["$1", 2, 1, 1, 2])
    add("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), [values((1, 2, 6, 6), dt)], args=["$1", 3, 2, 1], opts={"ceil_mode": True}); add("avg_pool2d", lambda x: F.avg_pool2d(x, 2, divisor_override=3), [values((1, 2, 4, 6), dt)], args=["$1", 2], opts={"divisor_override": 3})
    add("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), [values((1, 2, 6, 6), dt)], args=["$1", 3, 2, 1], opts={"ceil_mode": True, "count_include_pad": False})
    add("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 3)), [values((1, 2, 5, 7), dt)], args=["$1", [2, 3]]); add("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), [values((2, 3, 7), dt)], args=["$1", 3, 2, 1]); add("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), [values((2, 3, 7), dt)], args=["$1", 3, 2, 1])
    add("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), [values((2, 3, 7), dt)], args=["$1", 3]); add("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 3), [values((2, 3, 7), dt)], args=["$1", 3]); add("lp_pool2d", lambda x: F.lp_pool2d(x, 2, 2), [values((1, 2, 4, 6), dt)], args=["$1", 2, 2])
    add("im2col", lambda x: F.unfold(x, (2, 3), padding=1, stride=2), [values((2, 2, 5, 6), dt)], args=["$1", [2, 3]], opts={"padding": 1, "stride": 2}); add("im2col", lambda x: F.unfold(x, 2, dilation=2), [values((1, 2, 5, 6), dt)], args=["$1", 2, 2]); add("fold", lambda x: F.fold(x, (4, 5), 2, padding=1, stride=2), [values((2, 8, 9), dt)], args=["$1", [4, 5], 2], opts={"padding": 1, "stride": 2})
add("fold", lambda x: F.fold(x, (4, 5), (2, 2)), [R(1, 8, 12)], args=["$1", [4, 5], 2])
for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
    for kw in [{"size": (5, 7)}, {"size": (2, 2)}, {"scale_factor": 2}, {"scale_factor": 1.7}] + ([{"size": (5, 7), "align_corners": True}, {"scale_factor": 0.6, "recompute_scale_factor": True}] if mode[0] == "b" else []):
        lo = {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}
        add("interpolate", lambda x: F.interpolate(x, mode=mode, **kw), [R(1, 2, 3, 4)], opts={"mode": mode, **lo})
for shape, kw in (((1, 1, 3), {"scale_factor": 2.3}), ((1, 1, 5), {"scale_factor": 2.1}), ((1, 1, 5), {"scale_factor": 1.15}), ((1, 1, 2), {"scale_factor": 1.3, "mode": "linear"}), ((1, 1, 3, 5), {"scale_factor": 2.3}), ((1, 1, 2, 3, 5), {"scale_factor": 2.3}), ((1, 1, 2, 3, 5), {"scale_factor": 1.3, "mode": "trilinear"})):
    add("interpolate", lambda x: F.interpolate(x, **kw), [R(*shape)], opts=kw, grad=False)    # PyTorch's backward takes other sources than its forward
for mode in ("bilinear", "bicubic"):
    for kw in [{"size": [4, 5]}, {"size": [12, 3]}, {"scale_factor": 0.4}, {"size": [3, 4], "align_corners": True}]:
        add("interpolate", lambda x: F.interpolate(x, mode=mode, antialias=True, **kw), [R(1, 2, 9, 7)], opts={"mode": mode, "antialias": True, **kw})
add("interpolate", lambda x: F.interpolate(x, 7, mode="linear"), [R(1, 2, 3)], args=["$1", 7], opts={"mode": "linear"}); add("interpolate", lambda x: F.interpolate(x, scale_factor=2.5), [R(1, 2, 3)], opts={"scale_factor": 2.5}); add("interpolate", lambda x: F.interpolate(x, size=(5, 7), mode="bilinear"), [values((2, 3, 3, 4), torch.float32)], opts={"mode": "bilinear", "size": [5, 7]})

# ---- normalisation, activations ----
for dt in FLOATS[:2]:
    add("rms_norm", lambda x, w: F.rms_norm(x, (5,), w), [values((3, 5), dt), values((5,), dt, "positive")], args=["$1", [5], "$2"]); add("rms_norm", lambda x: F.rms_norm(x, (2, 4), eps=0.01), [values((3, 2, 4), dt)], args=["$1", [2, 4]], opts={"eps": 0.01}); add("rms_norm", lambda x, w: F.rms_norm(x, (70,), w), [values((2, 2, 70), dt), values((70,), dt, "positive")], args=["$1", [70], "$2"], check_grad=False)
    add("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), [values((2, 4, 3, 2), dt), values((4,), dt, "positive"), values((4,), dt)], args=["$1", 2, "$2", "$3"]); add("group_norm", lambda x: F.group_norm(x, 3, eps=0.1), [values((2, 6), dt)], args=["$1", 3], opts={"eps": 0.1})
    add("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [values((2, 3, 4), dt), values((3,), dt, "positive"), values((3,), dt)], args=["$1", None, None, "$2", "$3"]); add("local_response_norm", lambda x: F.local_response_norm(x, 3), [values((2, 5, 4), dt)], args=["$1", 3])
    add("normalize", lambda x: F.normalize(x), [values((3, 4), dt)]); add("normalize", lambda x: F.normalize(x, 3, 0), [values((3, 4), dt)], args=["$1", 3, 1])
    for name in ("relu6", "hardtanh", "tanhshrink"):
        add(name, getattr(F, name), [values((2, 5), dt)])
    add("softmin", lambda x: F.softmin(x, 1), [values((2, 5), dt)], args=["$1", 2]); add("glu", lambda x: F.glu(x, 1), [values((2, 6), dt)], args=["$1", 2]); add("prelu", F.prelu, [values((2, 3, 2), dt, "nonzero"), values((3,), dt, "prob")]); add("prelu", F.prelu, [values((4,), dt, "nonzero"), values((1,), dt, "prob")]); add("rrelu", F.rrelu, [values((2, 5), dt, "nonzero")])
for i, name in enumerate(("dropout1d", "dropout2d", "dropout3d", "alpha_dropout")):
    add(name, lambda x: getattr(F, name)(x, 0.5, training=False), [R(*(2, 3, 2, 2, 2)[:3 + i % 3])], args=["$1", 0.5], opts={"training": False})

# ---- attention ----
A = F.scaled_dot_product_attention
add("scaled_dot_product_attention", A, [R(2, 2, 3, 4), R(2, 2, 5, 4, salt=1), R(2, 2, 5, 3, salt=2)]); add("scaled_dot_product_attention", lambda q, k, v: A(q, k, v, is_causal=True), [R(1, 2, 4, 2), R(1, 2, 4, 2, salt=1), R(1, 2, 4, 2, salt=2)], opts={"is_causal": True})
add("scaled_dot_product_attention", lambda q, k, v, m: A(q, k, v, m), [R(2, 3, 4), R(2, 5, 4, salt=1), R(2, 5, 4, salt=2), R(3, 5) > -1.5]); add("scaled_dot_product_attention", lambda q, k, v, m: A(q, k, v, m, scale=0.3), [R(2, 2, 3, 2), R(2, 2, 4, 2, salt=1), R(2, 2, 4, 2, salt=2), R(2, 1, 3, 4, salt=3)], opts={"scale": 0.3})
add("scaled_dot_product_attention", A, [R(3, 4), R(5, 4, salt=1), R(5, 4, salt=2)])
for dt in FLOATS[1:]:
    add("scaled_dot_product_attention", lambda q, k, v: A(q.float(), k.float(), v.float(), is_causal=True).to(dt), [values((1, 2, 9, 8), dt, "unit"), values((1, 2, 9, 8), dt, "unit", 1), values((1, 2, 9, 8), dt, "unit", 2)], opts={"is_causal": True})
add("scaled_dot_product_attention", lambda q, k, v: A(q, k, v, is_causal=True), [values((1, 2, 150, 16), torch.float32), values((1, 2, 150, 16), torch.float32, salt=1), values((1, 2, 150, 16), torch.float32, salt=2)], opts={"is_causal": True})
add("scaled_dot_product_attention", lambda q, k, v: A(q, k, v, enable_gqa=True), [R(1, 4, 3, 2), R(1, 2, 5, 2, salt=1), R(1, 2, 5, 2, salt=2)], opts={"enable_gqa": True})

# ---- options of later PyTorch ----
for name in ("mse_loss", "l1_loss", "huber_loss"):
    for how in ("mean", "sum", "none"):
        add(name, lambda x, y, w: getattr(F, name)(x, y, weight=w.detach(), reduction=how), [R(3, 4), R(3, 4) * 0.5, values((3, 4), f64, "positive")], args=["$1", "$2"], opts={"weight": "$3", "reduction": how}, grad=None)
add("gaussian_nll_loss", lambda x, y: F.gaussian_nll_loss(x, y, 0.5), [R(3, 4), R(3, 4) * 0.5], args=["$1", "$2", 0.5])
add("normalize", lambda x: F.normalize(x, 2.0, dim=(1, 2)), [R(2, 3, 4)], args=["$1", 2, [2, 3]])
add("repeat_interleave", lambda n: torch.repeat_interleave(n), [torch.tensor([2, 0, 3, 1])], out_index=[1])
add("diag_embed", lambda x: torch.diag_embed(x, 1, 0, 2), [R(2, 3)], args=["$1", 1, 1, 3]); add("diag_embed", lambda x: torch.diag_embed(x, -1, -1, -3), [R(2, 3)], args=["$1", -1, -1, -3])
for pad in ("zeros", "border", "reflection"):
    for corners in (False, True):
        o = {"padding_mode": pad, "align_corners": corners}
        grid2, grid3 = values((2, 2, 3, 2), f64, salt=4) * 0.9 + 0.03, values((1, 2, 2, 3, 3), f64, salt=5) * 0.9 + 0.03
        add("grid_sample", lambda x, g: F.grid_sample(x, g, "bicubic", pad, corners), [R(2, 2, 4, 5), grid2], opts=dict(o, mode="bicubic"))
        for mode in ("bilinear", "nearest"):
            add("grid_sample", lambda x, g: F.grid_sample(x, g, mode, pad, corners), [R(1, 2, 3, 4, 3), grid3], opts=dict(o, mode=mode), check_grad=mode == "bilinear")
add("affine_grid", lambda t: F.affine_grid(t, (2, 3, 2, 4, 3), align_corners=False), [R(2, 3, 4)], args=["$1", [2, 3, 2, 4, 3]]); add("affine_grid", lambda t: F.affine_grid(t, (2, 3, 2, 4, 3), align_corners=True), [R(2, 3, 4)], args=["$1", [2, 3, 2, 4, 3]], opts={"align_corners": True})
W, V = torch.tensor([1, 3, 2, 1]), torch.tensor([0.5, 1.5, 2.0, 0.25], dtype=f64)
add("cov", lambda x, w: torch.cov(x, fweights=w), [R(3, 4), W], args=["$1"], opts={"fweights": "$2"}); add("cov", lambda x, v: torch.cov(x, aweights=v.detach()), [R(3, 4), V], args=["$1"], opts={"aweights": "$2"})
add("cov", lambda x, w, v: torch.cov(x, correction=0, fweights=w, aweights=v.detach()), [R(3, 4), W, V], args=["$1"], opts={"correction": 0, "fweights": "$2", "aweights": "$3"})
add("cumulative_trapezoid", lambda y: torch.cumulative_trapezoid(y, dx=0.5, dim=1), [R(3, 4)], args=["$1"], opts={"dx": 0.5, "dim": 2}); add("cumulative_trapezoid", lambda y, x: torch.cumulative_trapezoid(y, x.detach()), [R(3, 4), torch.tensor([0.0, 1, 1.5, 4], dtype=f64)], args=["$1", "$2"])
add("cumulative_trapezoid", lambda y, x: torch.cumulative_trapezoid(y, x.detach(), dim=0), [R(3, 4), torch.tensor([0.0, 1, 1.5], dtype=f64)], args=["$1", "$2", 1])
add("vander", lambda x: torch.vander(x), [R(3)], grad=False); add("vander", lambda x: torch.vander(x, 5, increasing=True), [R(3)], args=["$1", 5, True], grad=False); add("vander", lambda x: torch.vander(x, 2), [torch.tensor([2, 3, -1])], args=["$1", 2])
add("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (3, None, 2)), [R(1, 2, 4, 5, 4)], args=["$1", [3, False, 2]])
add("pad", lambda x: F.pad(x, (1, 2), value=True), [torch.tensor([[True, False], [False, True]])], args=["$1", [1, 2]], opts={"value": True})
add("bucketize", lambda b: torch.bucketize(3.5, b), [torch.tensor([1.0, 3, 4])], args=[3.5, "$1"], out_index=[1], grad=False); add("bucketize", lambda x, b: torch.bucketize(x, b, out_int32=True), [torch.tensor([0.0, 3]), torch.tensor([1.0, 3, 4])], args=["$1", "$2"], opts={"out_int32": True}, out_index=[1], grad=False)
add("logaddexp2", torch.logaddexp2, [values((3,), torch.float32), torch.tensor(0.5, dtype=f64)], grad=False)
for name in ("quantile", "nanquantile"):
    add(name, lambda x: getattr(torch, name)(x, 0.5, keepdim=True), [R()], args=["$1", 0.5], opts={"keepdim": True})
add("masked_select", torch.masked_select, [R(), torch.tensor(True)])
add("embedding_bag", lambda i, w: F.embedding_bag(i, w, scale_grad_by_freq=True), [IDX(0, 2, 2, 5, 0, 0).view(2, 3), R(6, 2)], index=[1], opts={"scale_grad_by_freq": True}, check_grad=False)

# ---- layers: PyTorch's state dict, an input, the output and all gradients; a layer is a Lua expression ----
torch.manual_seed(11)
nn = torch.nn
LAYERS = [
    ("nn.Linear(3, 2)", nn.Linear(3, 2), [(4, 3)]), ("nn.Bilinear(2, 3, 4)", nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)]),
    ("nn.Conv1d(2, 3, 3, {stride=2, padding=1})", nn.Conv1d(2, 3, 3, stride=2, padding=1), [(2, 2, 7)]), ("nn.Conv2d(2, 4, 3, {padding='same', groups=2})", nn.Conv2d(2, 4, 3, padding="same", groups=2), [(1, 2, 5, 4)]),
    ("nn.Conv2d(2, 3, {3, 1}, {padding={1, 0}, padding_mode='reflect'})", nn.Conv2d(2, 3, (3, 1), padding=(1, 0), padding_mode="reflect"), [(1, 2, 5, 4)]),
    ("nn.ConvTranspose2d(4, 2, 3, {stride=2, padding=1, output_padding=1, groups=2})", nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2), [(1, 4, 3, 4)]), ("nn.ConvTranspose1d(2, 3, 3, {stride=2})", nn.ConvTranspose1d(2, 3, 3, stride=2), [(1, 2, 4)]),
    ("nn.BatchNorm1d(3)", nn.BatchNorm1d(3), [(5, 3)]), ("nn.BatchNorm2d(3)", nn.BatchNorm2d(3), [(2, 3, 2, 2)]), ("nn.GroupNorm(2, 4)", nn.GroupNorm(2, 4), [(2, 4, 3)]), ("nn.LayerNorm({2, 3})", nn.LayerNorm((2, 3)), [(4, 2, 3)]), ("nn.RMSNorm(5)", nn.RMSNorm(5), [(3, 5)]),
    ("nn.InstanceNorm2d(3, {affine=true, track_running_stats=true})", nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [(2, 3, 3, 2)]), ("nn.PReLU(3)", nn.PReLU(3), [(2, 3, 2)]),
    ("nn.MaxPool2d(3, 2, 1)", nn.MaxPool2d(3, 2, 1), [(1, 2, 5, 5)]), ("nn.AvgPool1d(2)", nn.AvgPool1d(2), [(1, 2, 6)]), ("nn.AdaptiveMaxPool2d({2, 1})", nn.AdaptiveMaxPool2d((2, 1)), [(1, 2, 5, 5)]), ("nn.Upsample({scale_factor=2, mode='bilinear'})", nn.Upsample(scale_factor=2, mode="bilinear"), [(1, 2, 3, 3)]),
    ("nn.ReflectionPad2d(1)", nn.ReflectionPad2d(1), [(1, 2, 3, 3)]), ("nn.GELU({approximate='tanh'})", nn.GELU("tanh"), [(2, 3)]), ("nn.Hardtanh(-0.5, 0.7)", nn.Hardtanh(-0.5, 0.7), [(2, 3)]), ("nn.GLU()", nn.GLU(), [(2, 4)]), ("nn.Softplus({beta=2})", nn.Softplus(beta=2), [(2, 3)]),
    ("nn.MultiheadAttention(8, 2, {batch_first=true})", nn.MultiheadAttention(8, 2, batch_first=True), [(2, 3, 8), (2, 5, 8), (2, 5, 8)]), ("nn.MultiheadAttention(8, 2, {kdim=3, vdim=5, batch_first=true})", nn.MultiheadAttention(8, 2, kdim=3, vdim=5, batch_first=True), [(2, 3, 8), (2, 4, 3), (2, 4, 5)]),
    ("nn.TransformerEncoderLayer(8, 2, {batch_first=true, dim_feedforward=16, dropout=0})", nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), [(2, 5, 8)]), ("nn.TransformerEncoderLayer(8, 2, {batch_first=true, dim_feedforward=16, dropout=0, norm_first=true, activation='gelu'})", nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), [(2, 5, 8)]),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, {batch_first=true, dim_feedforward=16, dropout=0}), 2, nn.LayerNorm(8))", nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, nn.LayerNorm(8)), [(2, 5, 8)]),
    ("nn.TransformerDecoderLayer(8, 2, {batch_first=true, dim_feedforward=16, dropout=0})", nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), [(2, 4, 8), (2, 5, 8)]),
    ("nn.RNN(4, 3)", nn.RNN(4, 3), [(5, 2, 4)]), ("nn.RNN(4, 3, 2, {nonlinearity='relu', batch_first=true, bias=false})", nn.RNN(4, 3, 2, nonlinearity="relu", batch_first=True, bias=False), [(2, 5, 4)]),
    ("nn.LSTM(4, 3)", nn.LSTM(4, 3), [(5, 2, 4)]), ("nn.LSTM(4, 3, {num_layers=2, bidirectional=true, batch_first=true})", nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), [(2, 5, 4)]), ("nn.LSTM(4, 3)", nn.LSTM(4, 3), [(5, 4)]),
    ("nn.GRU(4, 3, 2, {bidirectional=true})", nn.GRU(4, 3, 2, bidirectional=True), [(5, 2, 4), (4, 2, 3)]), ("nn.GRU(4, 3)", nn.GRU(4, 3), [(1, 2, 4)]),
    ("nn.RNNCell(4, 3)", nn.RNNCell(4, 3), [(2, 4), (2, 3)]), ("nn.LSTMCell(4, 3)", nn.LSTMCell(4, 3), [(2, 4)]), ("nn.GRUCell(4, 3)", nn.GRUCell(4, 3), [(2, 4), (2, 3)]),
    ("nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))", nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), [(4, 3)]), ("nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 3, 3), {dim=2})", nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 3, 3), dim=1), [(1, 2, 5)]), ("nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))", nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)), [(4, 3)]),
    ("nn.utils.weight_norm(nn.Linear(3, 2))", nn.utils.weight_norm(nn.Linear(3, 2)), [(4, 3)]), ("nn.utils.weight_norm(nn.Conv1d(2, 3, 3), {dim=2})", nn.utils.weight_norm(nn.Conv1d(2, 3, 3), dim=1), [(1, 2, 5)]), ("nn.utils.spectral_norm(nn.Linear(3, 4))", nn.utils.spectral_norm(nn.Linear(3, 4)), [(4, 3)]), ("nn.utils.spectral_norm(nn.ConvTranspose2d(2, 3, 2), {n_power_iterations=2})", nn.utils.spectral_norm(nn.ConvTranspose2d(2, 3, 2), n_power_iterations=2), [(1, 2, 3, 3)]),
    ("nn.Conv3d(4, 6, {3, 2, 1}, {stride={1, 2, 1}, padding={1, 0, 2}, groups=2})", nn.Conv3d(4, 6, (3, 2, 1), stride=(1, 2, 1), padding=(1, 0, 2), groups=2), [(2, 4, 3, 4, 2)]), ("nn.Conv3d(2, 3, 2, {padding='same', padding_mode='circular'})", nn.Conv3d(2, 3, 2, padding="same", padding_mode="circular"), [(1, 2, 3, 4, 5)]),
    ("nn.ConvTranspose3d(2, 3, 3, {stride=2, output_padding=1})", nn.ConvTranspose3d(2, 3, 3, stride=2, output_padding=1), [(1, 2, 3, 2, 2)]), ("nn.BatchNorm3d(3)", nn.BatchNorm3d(3), [(2, 3, 2, 3, 2)]), ("nn.InstanceNorm3d(3, {affine=true})", nn.InstanceNorm3d(3, affine=True), [(2, 3, 2, 3, 2)]),
    ("nn.MaxPool3d(2, {stride=1, dilation=2})", nn.MaxPool3d(2, stride=1, dilation=2), [(1, 2, 4, 4, 3)]), ("nn.AvgPool3d({1, 2, 2})", nn.AvgPool3d((1, 2, 2)), [(1, 2, 3, 4, 4)]), ("nn.ReplicationPad3d({1, 0, 2, 1, 0, 1})", nn.ReplicationPad3d((1, 0, 2, 1, 0, 1)), [(1, 2, 3, 3, 2)]), ("nn.LPPool1d(2, 3, {stride=2})", nn.LPPool1d(2, 3, stride=2), [(1, 2, 7)]),
    ("nn.MultiheadAttention(8, 2, {add_bias_kv=true, add_zero_attn=true})", nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True), [(3, 2, 8), (5, 2, 8), (5, 2, 8)]),
    ("nn.LSTM(4, 5, {num_layers=2, proj_size=3, bidirectional=true})", nn.LSTM(4, 5, 2, proj_size=3, bidirectional=True), [(5, 2, 4)]), ("nn.LSTM(4, 5, {proj_size=2, bias=false, batch_first=true})", nn.LSTM(4, 5, proj_size=2, bias=False, batch_first=True), [(2, 3, 4)]),
    ("nn.BatchNorm2d(3, {bias=false})", nn.BatchNorm2d(3, bias=False), [(2, 3, 2, 4)]), ("nn.GroupNorm(2, 4, {bias=false})", nn.GroupNorm(2, 4, bias=False), [(2, 4, 3)]), ("nn.InstanceNorm1d(3, {affine=true, bias=false})", nn.InstanceNorm1d(3, affine=True, bias=False), [(2, 3, 5)]),
    ("nn.ConvTranspose2d(2, 3, 2, {stride={1, 2}, dilation={2, 3}, output_padding={1, 2}, padding=1})", nn.ConvTranspose2d(2, 3, 2, stride=(1, 2), dilation=(2, 3), output_padding=(1, 2), padding=1), [(2, 2, 3, 4)]),
]
store, cases = {}, []
for i, (text, net, shapes) in enumerate(LAYERS):
    xs = [torch.randn(*s).requires_grad_() for s in shapes]
    key = "l%d." % (i + 1)
    store.update({key + "state." + k: v.clone() for k, v in net.state_dict().items()})
    y = net(*xs)
    y = y[0] if isinstance(y, tuple) else y
    g = torch.cos(torch.arange(y.numel(), dtype=torch.float32)).reshape(y.shape)
    y.backward(g)
    store.update({key + "out": y.detach().clone(), key + "gout": g})
    for k, x in enumerate(xs):
        store[key + "in%d" % (k + 1)], store[key + "gin%d" % (k + 1)] = x.detach().clone(), x.grad.clone()
    store.update({key + "grad." + k: p.grad.clone() for k, p in net.named_parameters()})
    store.update({key + "after." + k: v.clone() for k, v in net.named_buffers()})
    cases.append({"layer": text, "inputs": len(shapes)})
os.makedirs(OUT, exist_ok=True)
save_file({k: v.contiguous() for k, v in store.items()}, os.path.join(OUT, "layers.safetensors"), {"tycho": json.dumps(cases)})

# ---- optimizers: 25 steps on one problem; schedules: 24 learning rates ----
O = torch.optim
OPTIMIZERS = [("SGD", dict(lr=0.05, momentum=0.9, dampening=0.1, weight_decay=0.01)), ("Adam", dict(lr=0.02, weight_decay=0.1)), ("Adam", dict(lr=0.02, amsgrad=True)), ("AdamW", dict(lr=0.02, betas=(0.8, 0.9))), ("AdamW", dict(lr=0.02, maximize=True)),
              ("RMSprop", dict(lr=0.01)), ("RMSprop", dict(lr=0.01, momentum=0.9, centered=True, weight_decay=0.05)), ("Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.01, initial_accumulator_value=0.1)), ("NAdam", dict(lr=0.02, weight_decay=0.05)), ("NAdam", dict(lr=0.02, betas=(0.8, 0.9), momentum_decay=0.1)), ("RAdam", dict(lr=0.05, weight_decay=0.05)), ("RAdam", dict(lr=0.05, betas=(0.9, 0.9))), ("Adamax", dict(lr=0.02, weight_decay=0.05)), ("Adadelta", dict(lr=1.0, rho=0.8, weight_decay=0.01)), ("Rprop", dict(lr=0.05)), ("Rprop", dict(lr=0.01, etas=(0.4, 1.3), step_sizes=(1e-4, 0.1))), ("ASGD", dict(lr=0.05, weight_decay=0.01)), ("ASGD", dict(lr=0.05, t0=3, lambd=0.1, alpha=0.5)), ("Adafactor", dict(lr=0.1, weight_decay=0.05)), ("Adafactor", dict(lr=0.05, beta2_decay=-0.5, d=1.5)), ("LBFGS", dict(lr=0.5, max_iter=4, history_size=3)), ("LBFGS", dict(max_iter=5, line_search_fn="strong_wolfe"))]
store, cases = {}, []
A, b, w0 = torch.randn(6, 3, dtype=f64), torch.randn(6, dtype=f64), torch.randn(3, dtype=f64)
store.update({"A": A, "b": b, "w": w0})
def problem(w): return ((torch.tanh(A @ w) - b) ** 2).sum() + 0.1 * (w ** 4).sum()
for i, (name, kw) in enumerate(OPTIMIZERS):
    w = w0.clone().requires_grad_()
    opt, ls = getattr(O, name)([w], **kw), []
    def closure():
        opt.zero_grad(); l = problem(w); l.backward(); return l
    for _ in range(25):
        ls.append(opt.step(closure).item())
    store["o%d.losses" % (i + 1)], store["o%d.w" % (i + 1)] = torch.tensor(ls, dtype=f64), w.detach().clone()
    cases.append({"name": name, "options": {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}})
# of matrices: steps with gradients that depend on nothing
MATRICES = [("Adafactor", dict(lr=0.05, weight_decay=0.02)), ("Muon", dict(lr=0.05)), ("Muon", dict(lr=0.1, nesterov=False, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"))]
matrices = []
rounding, torch.bfloat16 = torch.bfloat16, torch.float32      # Muon's iteration in full precision: rounding to bfloat16 makes it differ by a percent
for i, (name, kw) in enumerate(MATRICES):
    ws = [values(s, torch.float32).requires_grad_() for s in ((4, 3), (3, 6))]
    opt = getattr(O, name)(ws, **kw)
    for k in range(5):
        for w in ws:
            w.grad = values(w.shape, torch.float32, salt=k + 1)
        opt.step()
    for k, w in enumerate(ws):
        store["m%d.%d" % (i + 1, k + 1)] = w.detach().clone()
    matrices.append({"name": name, "options": kw})
torch.bfloat16 = rounding
for k in range(5):
    for j, s in enumerate(((4, 3), (3, 6))):
        store["mg%d.%d" % (k + 1, j + 1)] = values(s, torch.float32, salt=k + 1)
store["mw.1"], store["mw.2"] = values((4, 3), torch.float32), values((3, 6), torch.float32)
S = O.lr_scheduler
SCHEDULES = [
    ("s.StepLR(o, {step_size=5, gamma=0.5})", lambda o: S.StepLR(o, 5, 0.5)), ("s.MultiStepLR(o, {milestones={3, 9, 9}, gamma=0.5})", lambda o: S.MultiStepLR(o, [3, 9, 9], 0.5)), ("s.ExponentialLR(o, {gamma=0.9})", lambda o: S.ExponentialLR(o, 0.9)), ("s.CosineAnnealingLR(o, {T_max=7, eta_min=0.01})", lambda o: S.CosineAnnealingLR(o, 7, 0.01)),
    ("s.CosineAnnealingWarmRestarts(o, {T_0=4, T_mult=2, eta_min=0.01})", lambda o: S.CosineAnnealingWarmRestarts(o, 4, 2, 0.01)), ("s.LinearLR(o, {start_factor=0.2, total_iters=6})", lambda o: S.LinearLR(o, 0.2, total_iters=6)), ("s.ConstantLR(o, {factor=0.3, total_iters=4})", lambda o: S.ConstantLR(o, 0.3, 4)), ("s.PolynomialLR(o, {total_iters=10, power=2})", lambda o: S.PolynomialLR(o, 10, 2)),
    ("s.LambdaLR(o, {lr_lambda=function(e) return 0.9 ^ e end})", lambda o: S.LambdaLR(o, lambda e: 0.9 ** e)), ("s.MultiplicativeLR(o, {lr_lambda=function() return 0.95 end})", lambda o: S.MultiplicativeLR(o, lambda e: 0.95)), ("s.OneCycleLR(o, {max_lr=1, total_steps=30})", lambda o: S.OneCycleLR(o, 1, 30)),
    ("s.OneCycleLR(o, {max_lr=1, total_steps=26, pct_start=0.4, three_phase=true})", lambda o: S.OneCycleLR(o, 1, 26, pct_start=0.4, three_phase=True)), ("s.CyclicLR(o, {base_lr=0.01, max_lr=0.1, step_size_up=4, mode='triangular2'})", lambda o: S.CyclicLR(o, 0.01, 0.1, 4, mode="triangular2", cycle_momentum=False)), ("s.CyclicLR(o, {base_lr=0.01, max_lr=0.1, step_size_up=3, step_size_down=5, mode='exp_range', gamma=0.95})", lambda o: S.CyclicLR(o, 0.01, 0.1, 3, 5, mode="exp_range", gamma=0.95, cycle_momentum=False)),
    ("s.SequentialLR(o, {schedulers={s.LinearLR(o, {start_factor=0.1, total_iters=5}), s.CosineAnnealingLR(o, {T_max=15})}, milestones={5}})", lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=5), S.CosineAnnealingLR(o, 15)], [5])), ("s.ChainedScheduler(o, {schedulers={s.ConstantLR(o, {factor=0.1, total_iters=3}), s.ExponentialLR(o, {gamma=0.9})}})", lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 3), S.ExponentialLR(o, 0.9)])),
    ("s.ReduceLROnPlateau(o, {patience=2, cooldown=1, factor=0.5})", lambda o: S.ReduceLROnPlateau(o, patience=2, cooldown=1, factor=0.5)),
    ("s.SequentialLR(o, {s.ExponentialLR(o, 0.5), s.MultiplicativeLR(o, function(e) return 0.9 ^ e end)}, {3})", lambda o: S.SequentialLR(o, [S.ExponentialLR(o, 0.5), S.MultiplicativeLR(o, lambda e: 0.9 ** e)], [3])),
    ("s.SequentialLR(o, {s.LinearLR(o, 0.5, {total_iters=4}), s.SWALR(o, 0.05, {anneal_epochs=5})}, {6})", lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.5, total_iters=4), torch.optim.swa_utils.SWALR(o, 0.05, 5)], [6])),
    ("s.CyclicLR(o, 0.01, 0.1, 3, {scale_fn=function(c) return 1 / c end, cycle_momentum=false})", lambda o: S.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda c: 1 / c, cycle_momentum=False)),
    ("s.CyclicLR(o, 0.01, 0.1, 3, {scale_fn=function(i) return 0.9 ^ i end, scale_mode='iterations', cycle_momentum=false})", lambda o: S.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda i: 0.9 ** i, scale_mode="iterations", cycle_momentum=False)),
    ("s.ReduceLROnPlateau(o, {patience=1, factor=0.5, min_lr={0.1}})", lambda o: S.ReduceLROnPlateau(o, patience=1, factor=0.5, min_lr=[0.1])),
]
schedules = []
for i, (text, make) in enumerate(SCHEDULES):
    opt = O.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    sch, lrs = make(opt), []
    for e in range(24):
        lrs.append(opt.param_groups[0]["lr"]); opt.step(); sch.step(*([1 / (1 + min(e, 5))] if "Plateau" in text else []))
    store["s%d" % (i + 1)] = torch.tensor(lrs, dtype=f64)
    schedules.append(text)
save_file(store, os.path.join(OUT, "optimizers.safetensors"), {"tycho": json.dumps({"optimizers": cases, "schedules": schedules, "matrices": matrices})})

# ---- the two models of examples/, tiny: outputs and gradients from the same weights ----
from models import ResNet, Transformer

torch.manual_seed(4)
store = {}
for key, net, x in (("resnet.", ResNet(4, 5), torch.randn(2, 3, 64, 64)), ("transformer.", Transformer(11, 16, 12), torch.randint(0, 11, (2, 12)))):
    store.update({key + "state." + k: v.clone() for k, v in net.state_dict().items()})
    y = net(x)
    g = torch.cos(torch.arange(y.numel(), dtype=torch.float32)).reshape(y.shape)
    y.backward(g)
    store.update({key + "in": x + (0 if x.is_floating_point() else 1), key + "out": y.detach(), key + "gout": g})
    store.update({key + "grad." + k: p.grad.clone() for k, p in net.named_parameters()})
    store[key + "eval"] = net.eval()(x).detach()
save_file({k: v.contiguous() for k, v in store.items()}, os.path.join(OUT, "models.safetensors"))
