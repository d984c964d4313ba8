"""Part of make_golden.py, which runs it: written at places, counted, in order."""

index = torch.tensor([[0, 2, 0, 1], [2, 2, 1, 0]])
for how in ("sum", "prod", "mean", "amax", "amin"):
    for own in (True, False):
        for dt in FLOATS[:2] + [torch.int64]:
            base, src = values((3, 4), dt, "nonzero"), values((2, 4), dt, "nonzero", 3)
            add("scatter_reduce", lambda x, i, s: x.scatter_reduce(0, i, s, how, include_self=own), [base, index, src], args=["$1", 1, "$2", "$3", how], opts={"include_self": own}, index=[2])
tied = torch.tensor([[1.0, 3, 3], [3, 0, 3]], dtype=f64)
add("scatter_reduce", lambda x, i, s: x.scatter_reduce(1, i, s, "amax"), [torch.tensor([[3.0, 1], [0, 5]], dtype=f64), torch.tensor([[0, 0, 1], [1, 0, 0]]), tied], args=["$1", 2, "$2", "$3", "amax"], index=[2], check_grad=False)
at = torch.tensor([1, 0, 1])
for how in ("prod", "mean", "amax", "amin"):
    add("index_reduce", lambda x, i, s: x.index_reduce(0, i, s, how), [R(3, 4, d="nonzero"), at, R(3, 4, d="nonzero", salt=2)], args=["$1", 1, "$2", "$3", how], index=[2])
    add("index_reduce", lambda x, i, s: x.index_reduce(1, i, s, how, include_self=False), [R(2, 3, d="nonzero"), at, R(2, 3, d="nonzero", salt=2)], args=["$1", 2, "$2", "$3", how], opts={"include_self": False}, index=[2])
for acc in (False, True):
    o = {"accumulate": acc}
    rows, cols = (torch.tensor([0, 2, 0]), torch.tensor([1, 1, 1])) if acc else (torch.tensor([0, 2, 1]), torch.tensor([1, 1, 0]))
    add("index_put", lambda x, i, j, v: x.index_put((i, j), v, acc), [R(3, 2), rows, cols, R(3, salt=1)], args=["$1", ["$2", "$3"], "$4"], opts=o, index=[2, 3])
    add("index_put", lambda x, i, v: x.index_put((i,), v, acc), [R(3, 2), torch.tensor([2, 0]), R(2, 2, salt=1)], args=["$1", ["$2"], "$3"], opts=o, index=[2])
    add("put", lambda x, i, v: x.put(i, v, acc), [R(3, 2), torch.tensor([[4, 4], [0, 1]]) if acc else torch.tensor([[4, 3], [0, 1]]), R(2, 2, salt=1)], opts=o, index=[2])
add("index_put", lambda x, m, v: x.index_put((m,), v), [R(3, 2), torch.tensor([[True, False], [True, True], [False, False]]), R(salt=1)], args=["$1", ["$2"], "$3"])
add("slice_scatter", lambda x, s: x.slice_scatter(s, 0, 1, 3), [R(4, 3), R(2, 3, salt=1)], args=["$1", "$2", 1, 2, 3]); add("slice_scatter", lambda x, s: x.slice_scatter(s, 1, 0, 5, 2), [R(2, 5), R(2, 3, salt=1)], args=["$1", "$2", 2, 1, 5, 2])
add("select_scatter", lambda x, s: x.select_scatter(s, 1, 2), [R(2, 3, 2), R(2, 2, salt=1)], args=["$1", "$2", 2, 3]); add("diagonal_scatter", lambda x, s: x.diagonal_scatter(s, 1), [R(3, 4), R(3, salt=1)], args=["$1", "$2", 1])
add("unravel_index", lambda i: torch.unravel_index(i, (3, 4, 2)), [torch.tensor([[0, 23], [7, 11]])], args=["$1", [3, 4, 2]], index=[1], out_index=[1, 2, 3])

# ---- in order, counted ----
many = torch.tensor([[3, 1, 3, 2, 1], [2, 2, 2, 0, 0], [4, 3, 2, 1, 0]])
for dt in (f64, torch.float32, torch.int64):
    add("mode", lambda x: tuple(x.mode(1)), [many[1:2].to(dt)], args=["$1", 2], out_index=[2], check_grad=False); add("mode", lambda x: tuple(x.mode(0, keepdim=True)), [torch.tensor([[1, 2], [1, 0], [3, 2]]).to(dt)], args=["$1", 1, True], out_index=[2], check_grad=False)
add("mode", lambda x: x.mode()[0], [torch.tensor([float("nan"), 1, float("nan"), 2, 3])], call="(x:mode())", grad=False)
holes = torch.tensor([[1.0, float("nan"), 3, 2], [float("nan")] * 4, [4, 3, 2, 1]], dtype=f64)
add("nanquantile", lambda x: x.nanquantile(0.3, dim=1), [holes], args=["$1", 0.3, 2], grad=False); add("nanquantile", lambda x: x.nanquantile(0.75), [holes], args=["$1", 0.75], grad=False); add("nanquantile", lambda x, q: x.nanquantile(q.detach(), dim=0, keepdim=True), [holes[:, 2:], torch.tensor([0.25, 1.0], dtype=f64)], args=["$1", "$2", 1, True], grad=False)
row = torch.tensor([[1, 1, 2], [2, 2, 1]])
add("unique_consecutive", torch.unique_consecutive, [row]); add("unique_consecutive", lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), [row], opts={"return_inverse": True, "return_counts": True}, out_index=[2]); add("unique_consecutive", lambda x: torch.unique_consecutive(x, return_counts=True), [row.double()], opts={"return_counts": True}, grad=False)
add("histogram", lambda x: tuple(torch.histogram(x, 4)), [values((30,), torch.float32)], args=["$1", 4], grad=False); add("histogram", lambda x: tuple(torch.histogram(x, 5, range=(-2, 2), density=True)), [values((30,), torch.float32)], args=["$1", 5], opts={"range": [-2, 2], "density": True}, grad=False)
add("histogram", lambda x, e, w: tuple(torch.histogram(x, e.detach(), weight=w.detach())), [R(6, 5), torch.tensor([-3.0, -1, 0.5, 2], dtype=f64), R(6, 5, d="prob", salt=1)], args=["$1", "$2"], call="x:histogram(i, {weight=j})", grad=False)
add("combinations", torch.combinations, [R(4)]); add("combinations", lambda x: torch.combinations(x, 3, with_replacement=True), [R(3)], args=["$1", 3], opts={"with_replacement": True}); add("combinations", lambda x: torch.combinations(x, 3), [R(2)], args=["$1", 3], grad=False)
add("pdist", lambda x: F.pdist(x), [R(4, 3)]); add("pdist", lambda x: F.pdist(x, 1), [R(4, 3)], args=["$1", 1]); add("renorm", lambda x: torch.renorm(x, 2, 0, 3), [R(4, 3)], args=["$1", 2, 1, 3]); add("renorm", lambda x: torch.renorm(x, 1, 1, 4), [R(2, 3, 2)], args=["$1", 1, 2, 4])
add("adjoint", torch.adjoint, [R(2, 3, 4)]); add("sum_to_size", lambda x: x.sum_to_size(3, 1), [R(2, 3, 4)], args=["$1", [3, 1]]); add("sum_to_size", lambda x: x.sum_to_size(1, 4), [R(3, 4)], args=["$1", [1, 4]])
add("round", lambda x: torch.round(x, decimals=2), [R(5)], opts={"decimals": 2}); add("round", lambda x: torch.round(x, decimals=-1), [R(5) * 20], opts={"decimals": -1})
add("var", lambda x: torch.var(x, 1, unbiased=False), [R(3, 4)], args=["$1", 2], opts={"unbiased": False}); add("std", lambda x: torch.std(x, unbiased=False), [R(3, 4)], opts={"unbiased": False})
add("argmax", lambda x: torch.argmax(x, keepdim=True), [R(3, 4)], opts={"keepdim": True}, out_index=[1])
labels = torch.tensor([[3, 0, -1, 1], [-1, 1, 2, 0], [0, 1, 2, 3]])
for red in ("none", "mean", "sum"):
    add("multilabel_margin_loss", lambda x, t: F.multilabel_margin_loss(x, t, reduction=red), [R(3, 4), labels], opts={"reduction": red}, index=[2])
    add("triplet_margin_with_distance_loss", lambda a, b, c: F.triplet_margin_with_distance_loss(a, b, c, margin=0.5, swap=red == "sum", reduction=red), [R(3, 4), R(3, 4, salt=1), R(3, 4, salt=2)], opts={"margin": 0.5, "swap": red == "sum", "reduction": red})
add("multilabel_margin_loss", lambda x, t: F.multilabel_margin_loss(x, t), [R(4), labels[0]], index=[2])
words = torch.tensor([4, 0, 2, 2, 1])
for red in ("none", "mean", "sum"):
    add("linear_cross_entropy", lambda x, w, t: F.cross_entropy(F.linear(x, w), t, reduction=red), [R(5, 3), R(6, 3, salt=1), words], opts={"reduction": red}, index=[3])
add("linear_cross_entropy", lambda x, w, t: F.cross_entropy(F.linear(x, w), t, label_smoothing=0.1), [R(5, 3), R(6, 3, salt=1), words], opts={"label_smoothing": 0.1, "chunk_size": 2}, index=[3], check_grad=False)
add("linear_cross_entropy", lambda x, w, t: F.cross_entropy(F.linear(x, w), t, ignore_index=2, reduction="sum"), [values((5, 3), torch.float32), values((6, 3), torch.float32, salt=1), words], opts={"ignore_index": 3, "reduction": "sum", "chunk_size": 3}, index=[3], check_grad=False)
add("cdist", lambda a, b: torch.cdist(a, b), [R(30, 3), R(28, 3, salt=1)], check_grad=False); add("cdist", lambda a, b: torch.cdist(a, b), [values((2, 27, 4), torch.float32), values((2, 3, 4), torch.float32, salt=1)])
add("atan2", torch.atan2, [torch.tensor([0.0, 0.0, -1.0, 2.0], dtype=f64), torch.tensor([0.0, 2.0, 0.0, -1.5], dtype=f64)], check_grad=False)
