#!/usr/bin/env python3
"""Golden files: what PyTorch gives for each op, as spec/golden/NAME.safetensors.

  make golden        (needs python3 with torch, numpy, mpmath and safetensors; luajit for the op table)

A case is a call: tensors, the arguments as Lua writes them ("$1" is tensor 1), and PyTorch's results and gradients. Index
tensors are stored 1-based. The metadata "tycho" lists the cases as JSON. spec/golden_spec.lua replays them.
"""
import itertools, json, os, re, subprocess, sys
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "golden")
torch.manual_seed(7)
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.uint8, torch.bool]
files = {}
skipped = []           # what PyTorch refuses, said at the end


def add(name, fn, tensors, args=None, opts=None, index=(), out_index=(), grad=None, call=None, check_grad=True):
    """fn(*tensors): PyTorch's call. index: numbers of tensors that hold indices; out_index: of results that do."""
    store, cases = files.setdefault(name, ({}, []))
    key = "c%d" % (len(cases) + 1)
    leaves = [t.clone().requires_grad_(t.is_floating_point() and t.dtype in (torch.float64, torch.float32)) for t in tensors]
    try:
        outs = fn(*leaves)
    except (RuntimeError, NotImplementedError, TypeError, IndexError) as e:
        if "not implemented" in str(e) or "not supported" in str(e) or "expected" in str(e) or "must be" in str(e) or "bool" in str(e).lower():
            skipped.append("%s of %s: %s" % (name, [str(t.dtype)[6:] for t in tensors], str(e).split("\n")[0][:90]))
            return
        raise
    single = not isinstance(outs, (tuple, list))
    outs = [outs] if single else list(outs)
    outs = [o if torch.is_tensor(o) else torch.tensor(o) for o in outs]
    args = [a if a is not None else "$nil" for a in args] if args is not None else None
    case = {"args": args if args is not None else ["$%d" % (i + 1) for i in range(len(tensors))], "opts": opts or {}, "outs": len(outs), "tensors": len(tensors)}
    if call:
        case["call"] = call
    for i, t in enumerate(tensors):
        store["%s.in%d" % (key, i + 1)] = (t + 1 if i + 1 in index else t).detach().clone().contiguous()
    for i, o in enumerate(outs):
        store["%s.out%d" % (key, i + 1)] = (o + 1 if i + 1 in out_index else o).detach().clone().contiguous()
    roots = [o for o in outs if o.requires_grad and o.numel() > 0]
    if name == "floor_divide":             # PyTorch gives it no derivative; here it is 0
        grad = False
    if len({t.dtype for t in tensors if t.is_floating_point()}) > 1:   # the gradient of a float64 scalar through float16 has float16's accuracy
        grad = False
    if any(t.dtype == torch.uint8 for t in tensors) and name in ("any", "all") or any(t.dtype == torch.bool for t in tensors) and name == "square":
        return                             # PyTorch gives uint8 and int64 here; Tycho gives bool, as for the other dtypes
    if roots and (grad is None or grad):
        for i, o in enumerate(outs):
            if o.requires_grad:
                store["%s.gout%d" % (key, i + 1)] = torch.cos(torch.arange(1, o.numel() + 1, dtype=torch.float64) * 1.7).to(o.dtype).reshape(o.shape)
        gouts = [store["%s.gout%d" % (key, i + 1)] for i, o in enumerate(outs) if o.requires_grad and o.numel() > 0]
        wanted = [(i, l) for i, l in enumerate(leaves) if l.requires_grad]
        gs = torch.autograd.grad(roots, [l for _, l in wanted], gouts, allow_unused=True)
        case["grad"] = []
        for (i, _), g in zip(wanted, gs):
            if g is not None:
                store["%s.grad%d" % (key, i + 1)] = g.detach().clone().contiguous()
                case["grad"].append(i + 1)
        case["check"] = check_grad and all(o.dtype == torch.float64 for o in outs if o.is_floating_point()) and all(t.dtype == torch.float64 or not t.is_floating_point() for t in tensors)
    cases.append(case)


def values(shape, dtype, domain="any", salt=0):
    n = 1
    for s in shape:
        n *= s
    k = torch.arange(n, dtype=torch.float64) + salt * 0.37
    x = torch.sin(k * 12.9898 + 1) * 3
    if domain == "positive": x = x.abs() + 0.25
    elif domain == "above1": x = x.abs() + 1.25
    elif domain == "unit": x = x / 3.5
    elif domain == "prob": x = (x / 3.5 + 1) / 2
    elif domain == "nonzero": x = x.sign() * (x.abs() + 0.2)
    if dtype == torch.bool: x = x > 0
    elif dtype == torch.uint8: x = x.abs().round() + (1 if domain in ("nonzero", "positive") else 0)
    elif not dtype.is_floating_point: x = (x * 2).round(); x = torch.where(x == 0, torch.ones_like(x), x) if domain in ("nonzero", "positive") else x
    if not dtype.is_floating_point and domain == "positive": x = x.abs() if dtype != torch.bool else x
    return x.reshape(shape).to(dtype)


f64 = torch.float64
R = lambda *s, d="any", salt=0, t=f64: values(s, t, d, salt)
IDX = lambda *v: torch.tensor(v, dtype=torch.int64)
C = lambda t: {"tensor": t.tolist(), "dtype": str(t.dtype)[6:]}        # a tensor among the arguments that takes no part in the check

# ---- pointwise: from the table ----
table = json.loads(subprocess.check_output(["luajit", "-e", "local c = require 'tycho.core' io.write(c.json_encode(c.op_table()))"]))
SPECIAL = ["entr", "erfcx", "log_ndtr", "ndtri", "i0e", "i1", "i1e", "xlog1py", "zeta"]
TORCH = {**{name: getattr(torch.special, name) for name in SPECIAL},
         "hardsigmoid": lambda x: torch.clamp(x + 3, 0, 6) / 6,    # PyTorch's own gradient is a float32 1/6
         "remainder": torch.remainder, "elu": F.elu, "relu": F.relu, "silu": F.silu, "gelu": F.gelu, "leaky_relu": F.leaky_relu, "softplus": F.softplus,
         "fill": lambda x, v: torch.full_like(x, v) if not torch.is_tensor(v) else v.to(x.dtype).expand_as(x) + x * 0}
for op in table:
    name, domain = op["name"], op["domain"]
    if op["class"] != "pointwise" or domain == "internal" or name in ("fill", "igamma", "igammac", "zeta"):
        continue
    fn = TORCH.get(name) or getattr(torch, name, None) or getattr(F, name)
    operands = [p.strip() for p in re.sub(r"\(.*?\)", "", op["signature"]).split(",")]
    arity = sum(1 for p in operands if p and p != "*" and ":" not in p.replace(":operand", ""))
    dts = FLOATS + INTS
    if arity == 1:
        if name == "threshold":
            for dt in FLOATS:
                add(name, lambda x: F.threshold(x, 0.5, -2.0), [values((2, 3), dt)], args=["$1", 0.5, -2])
            continue
        if name == "clamp":
            for dt in FLOATS + [torch.int64]:
                add(name, lambda x: torch.clamp(x, -1, 1), [values((2, 3), dt)], args=["$1", -1, 1])
            add(name, lambda x: torch.clamp(x, min=0.5), [R(4)], args=["$1", 0.5])
            add(name, lambda x: torch.clamp(x, max=0.5), [R(4)], opts={"max": 0.5})
            continue
        for dt in dts:
            add(name, fn, [values((2, 3), dt, domain)])
        for shape in [(), (0, 3), (2, 1, 3, 2)]:
            add(name, fn, [values(shape, f64, domain)])
        add(name, fn, [values((70,), torch.float32, domain)])
        if name in ("exp", "log", "tanh", "erf", "sqrt", "sigmoid", "isnan", "isinf", "isfinite", "relu", "expm1", "log1p", "sin", "cos", "exp2", "erfc", "softplus", "logsigmoid", "mish", "hardswish", "hardsigmoid"):
            add(name, fn, [torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, 88.0, -104.0, 1e14 if name in ("sin", "cos") else 1e30, 89.5])], grad=False)
    elif arity == 2:
        lo = "nonzero" if domain == "nonzero" else domain
        for dt in dts:
            add(name, fn, [values((2, 3), dt, lo), values((2, 3), dt, lo, 1)])
        add(name, fn, [values((3, 1), f64, lo), values((1, 4), f64, lo, 2)])
        add(name, fn, [values((2, 3), f64, lo), values((), f64, lo, 3)])
        add(name, fn, [values((0, 3), f64, lo), values((1, 3), f64, lo)])
        add(name, fn, [values((2, 3), torch.float32, lo), values((3,), torch.int64, lo)])
        add(name, fn, [values((3,), torch.int32, lo), values((3,), torch.int64, lo)])
        add(name, fn, [values((3,), torch.uint8, lo), values((), torch.int64, lo)])
        add(name, fn, [values((3,), torch.float16, lo), values((), f64, lo)])
        add(name, lambda a: fn(a, torch.tensor(2.0, dtype=f64)) if name in ("maximum", "minimum", "fmax", "fmin", "hypot", "logaddexp", "atan2", "logical_and", "logical_or", "logical_xor") or name.startswith("bitwise") else fn(a, 2.0), [R(2, 3, d=lo)], args=["$1", 2])
        if name in ("add", "sub", "mul", "div", "pow", "remainder", "floor_divide", "fmod"):
            add(name, lambda a: fn(a, 2), [values((4,), torch.int64, lo)], args=["$1", 2])
            add(name, lambda a: fn(a, 2.5), [values((4,), torch.int64, lo)], args=["$1", 2.5])
        if name in ("add", "sub"):
            add(name, lambda a, b: fn(a, b, alpha=3), [R(2, 2), R(2, 2, salt=1)], opts={"alpha": 3})
            add(name, lambda a, b: fn(a, b), [values((2, 3), torch.float32), values((2, 3), torch.float32)])
add("where", torch.where, [R(2, 3) > 0, R(2, 3), R(2, 3, salt=1)])
add("where", torch.where, [R(2, 1) > 0, R(1, 3), R(1, salt=1)])
add("where", lambda c, a: torch.where(c, a, torch.tensor(0.5, dtype=f64)), [R(2, 3) > 0, R(2, 3)], args=["$1", "$2", 0.5])
for dt in [torch.float32, torch.float16, torch.int64, torch.bool]:
    add("where", torch.where, [R(5) > 0, values((5,), dt), values((5,), dt, salt=2)])
add("masked_fill", lambda x, m: x.masked_fill(m, 7), [R(2, 3), R(2, 3, salt=1) > 0], args=["$1", "$2", 7])
add("masked_fill", lambda x, m, v: x.masked_fill(m, v), [R(2, 3), R(3, salt=1) > 0, R()])
add("masked_fill", lambda x, m: x.masked_fill(m, 7), [values((4,), torch.int64), R(4) > 0], args=["$1", "$2", 7])
for dt in FLOATS:
    add("lerp", lambda a, b: torch.lerp(a, b, 0.25), [values((2, 3), dt), values((2, 3), dt, salt=1)], args=["$1", "$2", 0.25])
    add("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=0.5), [values((2, 3), dt), values((2, 3), dt, salt=1), values((2, 3), dt, salt=2)], opts={"value": 0.5})
    add("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c, value=0.5), [values((2, 3), dt), values((2, 3), dt, salt=1), values((2, 3), dt, "nonzero", 2)], opts={"value": 0.5})
add("lerp", torch.lerp, [R(2, 3), R(2, 3, salt=1), R(3, d="prob")])
add("addcmul", torch.addcmul, [R(2, 1), R(1, 3), R(3, salt=1)])
add("addcdiv", torch.addcdiv, [R(2, 1), R(1, 3), R(3, d="nonzero")])
for dt in FLOATS + INTS:
    add("gelu", F.gelu, [values((2, 3), dt)])
for shape in [(), (0, 3), (2, 1, 3, 2)]:
    add("gelu", F.gelu, [values(shape, f64)])
add("gelu", F.gelu, [torch.cat([torch.linspace(-7, 7, 70), torch.tensor([float("nan"), -30.0, 30.0])])], grad=False)
for name, o, kw in [("gelu", {"approximate": "tanh"}, {}), ("softplus", {"beta": 2, "threshold": 3}, {}), ("leaky_relu", {"negative_slope": 0.3}, {}), ("elu", {"alpha": 0.7}, {})]:
    for dt in [f64, torch.float32]:
        add(name, lambda x: getattr(F, name)(x, **o), [values((3, 5), dt, "nonzero")], opts=o)

# ---- reductions ----
RED = {"sum": torch.sum, "mean": torch.mean, "prod": torch.prod, "amax": torch.amax, "amin": torch.amin, "any": torch.any, "all": torch.all}
for name, fn in RED.items():
    dom = "nonzero" if name == "prod" else "any"
    dims = [None, 1, -1] if name == "prod" else [None, 1, -1, [1, 3], [2]]
    for dt in FLOATS + INTS:
        add(name, (lambda x: fn(x)), [values((2, 3), dt, dom)])
        add(name, (lambda x: fn(x, 0)), [values((3, 4), dt, dom)], args=["$1", 1])
    for d, keep in itertools.product(dims, [False, True]):
        if d is None:
            continue
        t = [i - 1 if i > 0 else i for i in d] if isinstance(d, list) else (d - 1 if d > 0 else d)
        if name in ("any", "all") and isinstance(d, list):
            continue
        add(name, lambda x: fn(x, t, keepdim=keep), [R(2, 3, 4, d=dom)], args=["$1", d], opts={"keepdim": keep})
    add(name, fn, [R(d=dom)])
    if name not in ("amax", "amin"):
        add(name, fn, [R(0, 3)])
        add(name, lambda x: fn(x, 0), [R(0, 3)], args=["$1", 1])
    add(name, fn, [values((40, 700), torch.float32, dom if name != "prod" else "unit")], grad=name in ("sum", "mean"))
    add(name, lambda x: fn(x, 0), [values((300, 40), torch.float32, dom)], args=["$1", 1], grad=False)
add("prod", torch.prod, [torch.tensor([2.0, 0.0, 3.0], dtype=f64)], check_grad=False)
add("prod", torch.prod, [torch.tensor([2.0, 0.0, 0.0], dtype=f64)], check_grad=False)
for name in ("max", "min"):
    fn = getattr(torch, name)
    for dt in FLOATS + INTS[:3]:
        add(name + "_dim", lambda x: tuple(fn(x, 1)), [values((3, 5), dt)], args=["$1", 2], out_index=[2])
    add(name + "_dim", lambda x: tuple(fn(x, 0, keepdim=True)), [R(3, 5)], args=["$1", 1], opts={"keepdim": True}, out_index=[2])
    add(name, fn, [R(3, 5)])
    add(name, lambda x: tuple(fn(x, -1)), [R(3, 5)], args=["$1", -1], out_index=[2])
    add("arg" + name, lambda x: getattr(torch, "arg" + name)(x), [R(3, 5)], out_index=[1])
    add("arg" + name, lambda x: getattr(torch, "arg" + name)(x, 1), [R(3, 5)], args=["$1", 2], out_index=[1])
    add(name + "_dim", lambda x: tuple(fn(x, 0)), [torch.tensor([1.0, float("nan"), 5.0, -2.0])], args=["$1", 1], out_index=[2], grad=False)
for dt in FLOATS + INTS[:3]:
    add("cumsum", lambda x: torch.cumsum(x, 1), [values((2, 5), dt)], args=["$1", 2])
add("cumsum", lambda x: torch.cumsum(x, 0), [R(3, 4)], args=["$1", 1])
for name in ("var", "std"):
    fn = getattr(torch, name)
    add(name, lambda x: fn(x), [R(3, 4)])
    add(name, lambda x: fn(x, dim=1, correction=0, keepdim=True), [R(3, 4)], args=["$1", 2], opts={"correction": 0, "keepdim": True})
    add(name, lambda x: fn(x, dim=(0, 2)), [R(3, 4, 2)], args=["$1", [1, 3]])
for p in [2, 1, 3, float("inf"), 0]:
    pp = p if p != float("inf") else "inf"
    add("norm", lambda x: torch.linalg.vector_norm(x, p), [R(3, 4)], args=["$1", pp], grad=p != 0)
    add("norm", lambda x: torch.linalg.vector_norm(x, p, dim=1, keepdim=True), [R(3, 4)], args=["$1", pp, 2], opts={"keepdim": True}, grad=p != 0)
add("logsumexp", lambda x: torch.logsumexp(x, 1), [R(3, 4)], args=["$1", 2])
add("logsumexp", lambda x: torch.logsumexp(x, (0, 1), keepdim=True), [R(3, 4)], args=["$1", [1, 2]], opts={"keepdim": True})
add("count_nonzero", lambda x: torch.count_nonzero(x), [torch.tensor([0.0, 1, 2, 0])])
add("isclose", lambda a, b: torch.isclose(a, b), [torch.tensor([1.0, 2, float("inf"), float("nan")]), torch.tensor([1.0, 2.1, float("inf"), float("nan")])])
add("equal", torch.equal, [R(2, 3), R(2, 3)]); add("equal", torch.equal, [R(2, 3), R(2, 3, salt=1)])
add("allclose", torch.allclose, [R(2, 3), R(2, 3) + 1e-9]); add("allclose", torch.allclose, [R(2, 3), R(2, 3) + 1e-3])

# ---- views and shapes ----
X = R(2, 3, 4)
add("view", lambda x: x.view(6, 4), [X], args=["$1", 6, 4]); add("view", lambda x: x.view(-1), [X], args=["$1", -1]); add("view", lambda x: x.view(2, -1, 2), [X], args=["$1", [2, -1, 2]])
add("reshape", lambda x: x.reshape(4, 6), [X], args=["$1", 4, 6])
add("permute", lambda x: x.permute(2, 0, 1), [X], args=["$1", 3, 1, 2])
add("expand", lambda x: x.expand(2, 3, 4), [R(3, 1)], args=["$1", 2, 3, 4]); add("expand", lambda x: x.expand(-1, 4), [R(3, 1)], args=["$1", -1, 4])
add("slice", lambda x: x[:, 1:3], [X], args=["$1", 2, 2, 3]); add("slice", lambda x: x[:, :, ::2], [X], args=["$1", 3, None, None, 2]); add("slice", lambda x: x[:, :, 3:99], [X], args=["$1", 3, 4, 99])
add("slice", lambda x: x[:, :, 1:1], [X], args=["$1", 3, 2, 1])
add("select", lambda x: x.select(1, 2), [X], args=["$1", 2, 3]); add("select", lambda x: x.select(0, -1), [X], args=["$1", 1, -1])
add("flatten", lambda x: x.flatten(), [X]); add("flatten", lambda x: x.flatten(1), [X], args=["$1", 2])
add("squeeze", lambda x: x.squeeze(), [R(1, 3, 1)]); add("squeeze", lambda x: x.squeeze(0), [R(1, 3, 1)], args=["$1", 1])
add("unsqueeze", lambda x: x.unsqueeze(1), [R(2, 3)], args=["$1", 2]); add("unsqueeze", lambda x: x.unsqueeze(-1), [R(2, 3)], args=["$1", -1])
add("transpose", lambda x: x.transpose(0, 2), [X], args=["$1", 1, 3]); add("swapaxes", lambda x: x.swapaxes(0, 2), [X], args=["$1", 1, 3]); add("t", lambda x: x.t(), [R(2, 3)]); add("movedim", lambda x: x.movedim(0, 2), [X], args=["$1", 1, 3]); add("movedim", lambda x: x.movedim((0, 2), (-1, 0)), [X], args=["$1", [1, 3], [-1, 1]])
add("expand_as", lambda x, y: x.expand_as(y), [R(3, 1), R(3, 2)]); add("view_as", lambda x, y: x.view_as(y), [R(6), R(3, 2)])
add("narrow", lambda x: x.narrow(2, 1, 2), [X], args=["$1", 3, 2, 2])
add("tile", lambda x: x.repeat(2, 3), [R(2, 3)], args=["$1", 2, 3]); add("tile", lambda x: x.repeat(2, 1, 2), [R(2, 3)], args=["$1", [2, 1, 2]])
add("roll", lambda x: x.roll(1, 1), [R(2, 3)], args=["$1", 1, 2]); add("roll", lambda x: x.roll(-2), [R(2, 3)], args=["$1", -2])
add("stack", lambda a, b: torch.stack([a, b], 1), [R(2, 3), R(2, 3, salt=1)], args=[["$1", "$2"], 2])
for dt in FLOATS + INTS:
    add("cat", lambda a, b: torch.cat([a, b], 1), [values((2, 3), dt), values((2, 1), dt, salt=1)], args=[["$1", "$2"], 2])
add("cat", lambda a, b, c: torch.cat([a, b, c]), [R(2, 3), R(0, 3), R(1, 3)], args=[["$1", "$2", "$3"]])
add("cat", lambda a, b: torch.cat([a, b]), [values((2,), torch.int32), values((2,), torch.float32)], args=[["$1", "$2"]])
add("split", lambda x: x.split(2), [R(5, 2)], args=["$1", 2]); add("split", lambda x: x.split([1, 3], 1), [R(2, 4)], args=["$1", [1, 3], 2])
add("chunk", lambda x: x.chunk(2), [R(5, 2)], args=["$1", 2]); add("unbind", lambda x: x.unbind(1), [R(2, 3)], args=["$1", 2])
add("clone", lambda x: x.clone(), [X]); add("contiguous", lambda x: x.contiguous(), [X])
for a, b in itertools.product(FLOATS + INTS, FLOATS + INTS):
    add("cast", lambda x: x.to(b), [values((2, 3), a).abs() if b == torch.uint8 and a != torch.bool else values((2, 3), a)], args=["$1", str(b)[6:]])
add("to", lambda x: x.to(torch.float32), [R(2, 3)], args=["$1", "float32"])
for name in ("tril", "triu"):
    for k in (0, 1, -2):
        add(name, lambda x: getattr(torch, name)(x, k), [R(2, 3, 4)], args=["$1", k])
add("flip", lambda x: x.flip(0, 2), [X], args=["$1", 1, 3])
add("pad", lambda x: F.pad(x, (1, 2)), [R(2, 3)], args=["$1", [1, 2]]); add("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=3.5), [R(2, 3)], args=["$1", [1, 2, 0, 1]], opts={"value": 3.5})
add("pad", lambda x: F.pad(x, (-1, 1)), [R(2, 3)], args=["$1", [-1, 1]])
for n in ("zeros", "ones", "empty"):
    add(n, lambda: getattr(torch, "zeros" if n == "empty" else n)(2, 3), [], args=[2, 3]) if n != "empty" else None
    add(n, lambda: getattr(torch, n)(0, 3, dtype=torch.int64), [], args=[[0, 3]], opts={"dtype": "int64"})
add("full", lambda: torch.full((2, 3), 2.5), [], args=[[2, 3], 2.5]); add("full", lambda: torch.full((2,), True), [], args=[[2], True]); add("full", lambda: torch.full((), 7, dtype=torch.int64), [], args=[[], 7], opts={"dtype": "int64"})
add("range", lambda: torch.arange(1, 6, dtype=torch.float32), [], args=[1, 5]); add("range", lambda: torch.arange(5, 0, -2, dtype=torch.int64), [], args=[5, 1, -2], opts={"dtype": "int64"}); add("range", lambda: torch.arange(0, 1.05, 0.1, dtype=torch.float32), [], args=[0, 1, 0.1])
add("linspace", lambda: torch.linspace(0, 1, 5), [], args=[0, 1, 5]); add("linspace", lambda: torch.linspace(3, 3, 1), [], args=[3, 4, 1]); add("eye", lambda: torch.eye(3), [], args=[3]); add("eye", lambda: torch.eye(2, 4), [], args=[2, 4])
for n in ("zeros_like", "ones_like"):
    add(n, lambda x: getattr(torch, n)(x), [values((2, 3), torch.int64)])
add("full_like", lambda x: torch.full_like(x, 3), [R(2, 3)], args=["$1", 3])

# ---- products ----
for a, b in [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (2, 3, 4)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 4, 3), (3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 2, 3), (3,)), ((3,), (2, 3, 2))]:
    add("matmul", torch.matmul, [R(*a), R(*b, salt=1)])
for dt in FLOATS[1:] + [torch.int64, torch.int32]:
    add("matmul", torch.matmul, [values((2, 3), dt), values((3, 2), dt, salt=1)])
add("matmul", torch.matmul, [values((33, 70), torch.float32), values((70, 41), torch.float32, salt=1)])
add("mm", torch.mm, [R(2, 3), R(3, 2)]); add("bmm", torch.bmm, [R(2, 2, 3), R(2, 3, 2)]); add("mv", torch.mv, [R(2, 3), R(3)]); add("dot", torch.dot, [R(3), R(3, salt=1)]); add("outer", torch.outer, [R(2), R(3)])
for dt in FLOATS:
    add("linear", F.linear, [values((4, 3), dt), values((2, 3), dt, salt=1), values((2,), dt, salt=2)])
add("linear", F.linear, [R(2, 4, 3), R(2, 3, salt=1)]); add("linear", F.linear, [R(3), R(2, 3, salt=1), R(2)])
add("linear", lambda x, w, b: F.relu(F.linear(x, w, b)), [R(4, 3), R(2, 3, salt=1), R(2)], opts={"activation": "relu"})
for name in ("softmax", "log_softmax"):
    fn = getattr(torch, name)
    for dt in FLOATS:
        add(name, lambda x: fn(x, 1), [values((2, 5), dt)], args=["$1", 2])
    add(name, lambda x: fn(x, 0), [R(3, 2)], args=["$1", 1]); add(name, lambda x: fn(x, 1), [R(2, 3, 2)], args=["$1", 2])
    add(name, lambda x: fn(x, 0), [torch.tensor([1000.0, 1001.0, -float("inf")])], args=["$1", 1], grad=False)

# ---- indices ----
add("gather", lambda x, i: x.gather(1, i), [R(2, 4), IDX([0, 3, 1], [2, 2, 0])], args=["$1", 2, "$2"], index=[2]); add("gather", lambda x, i: x.gather(0, i), [R(3, 2), IDX([2, 0])], args=["$1", 1, "$2"], index=[2])
add("scatter", lambda x, i, s: x.scatter(1, i, s), [R(2, 4), IDX([0, 3], [2, 1]), R(2, 2, salt=1)], args=["$1", 2, "$2", "$3"], index=[2]); add("scatter", lambda x, i: x.scatter(0, i, 1.5), [R(3, 2), IDX([2, 0])], args=["$1", 1, "$2", 1.5], index=[2])
add("scatter", lambda x, i, s: x.scatter(1, i, s), [R(2, 4), IDX([0, 3]), R(2, 3, salt=1)], args=["$1", 2, "$2", "$3"], index=[2], grad=False)
add("scatter_add", lambda x, i, s: x.scatter_add(1, i, s), [R(2, 4), IDX([0, 0, 3], [2, 1, 2]), R(2, 3, salt=1)], args=["$1", 2, "$2", "$3"], index=[2])
add("scatter_add", lambda x, i, s: x.scatter_add(0, i, s), [values((3,), torch.int64), IDX(0, 0, 2), values((3,), torch.int64)], args=["$1", 1, "$2", "$3"], index=[2])
add("index_select", lambda x, i: x.index_select(1, i), [R(2, 4), IDX(3, 0, 3)], args=["$1", 2, "$2"], index=[2]); add("index_add", lambda x, i, s: x.index_add(0, i, s), [R(3, 2), IDX(2, 0, 2), R(3, 2, salt=1)], args=["$1", 1, "$2", "$3"], index=[2])
add("masked_select", lambda x, m: x.masked_select(m), [R(2, 3), R(2, 3, salt=1) > 0]); add("embedding", F.embedding, [IDX([0, 2], [2, 1]), R(3, 4)], index=[1])
add("one_hot", lambda i: F.one_hot(i, 4), [IDX(0, 3, 1)], args=["$1", 4], index=[1]); add("nonzero", torch.nonzero, [torch.tensor([[0, 1.5], [2, 0]])], out_index=[1]); add("nonzero", torch.nonzero, [torch.zeros(0, 3)], out_index=[1])
add("index", lambda x, i: x[i], [R(3, 2), IDX(2, 0, 2)], call="x[{i}]", index=[2]); add("index", lambda x, i, j: x[i, :, j], [R(3, 2, 4), IDX(2, 0), IDX(1, 3)], call="x[{i, {}, j}]", index=[2, 3])
add("index", lambda x, i, j: x[:, i, j], [R(2, 3, 4), IDX([2], [0]), IDX(1, 3)], call="x[{{}, i, j}]", index=[2, 3]); add("index", lambda x, m: x[m], [R(3, 2), torch.tensor([True, False, True])], call="x[i]")

# ---- convolution, pooling ----
for kw in [{}, {"padding": 1}, {"stride": 2, "padding": 1}, {"dilation": 2}, {"stride": (2, 1), "padding": (0, 1)}]:
    lo = {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}
    add("conv2d", lambda x, w, b: F.conv2d(x, w, b, **kw), [R(2, 2, 5, 6), R(3, 2, 3, 2, salt=1), R(3)], opts=lo)
    add("conv2d", lambda x, w, b: F.conv2d(x, w, b, **kw), [values((2, 4, 7, 6), torch.float32), values((5, 4, 3, 2), torch.float32, salt=1), values((5,), torch.float32)], opts=lo)
for dt in FLOATS[:2]:
    add("conv2d", lambda x, w: F.conv2d(x, w, groups=2), [values((1, 4, 4, 4), dt), values((4, 2, 2, 2), dt, salt=1)], args=["$1", "$2", None], opts={"groups": 2})
    add("conv2d", lambda x, w: F.conv2d(x, w, groups=4, padding=1), [values((2, 4, 4, 4), dt), values((4, 1, 3, 3), dt, salt=1)], args=["$1", "$2", None], opts={"groups": 4, "padding": 1})
add("conv2d", lambda x, w, b: F.conv2d(x.float(), w.float(), b.float()).half(), [values((1, 2, 4, 4), torch.float16, "unit"), values((3, 2, 2, 2), torch.float16, "unit", 1), values((3,), torch.float16)])
add("conv2d", lambda x, w, b: F.conv2d(x.float(), w.float(), b.float()).bfloat16(), [values((1, 2, 4, 4), torch.bfloat16, "unit"), values((3, 2, 2, 2), torch.bfloat16, "unit", 1), values((3,), torch.bfloat16)])
add("conv2d", lambda x, w: F.conv2d(x, w), [R(0, 2, 4, 4), R(3, 2, 2, 2)], args=["$1", "$2"])
for dt in FLOATS[:2]:
    add("max_pool2d", lambda x: F.max_pool2d(x, 2), [values((2, 3, 4, 5), dt)], args=["$1", 2]); add("max_pool2d", lambda x: F.max_pool2d(x, (3, 2), stride=2, padding=1), [values((1, 2, 5, 5), dt)], args=["$1", [3, 2]], opts={"stride": 2, "padding": 1})
    add("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [values((2, 3, 4, 5), dt)], args=["$1", 2]); add("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), [values((1, 2, 5, 5), dt)], args=["$1", 3, 2, 1])
    add("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [values((1, 2, 5, 5), dt)], args=["$1", 3, 2, 1], opts={"count_include_pad": False})
    add("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (2, 3)), [values((1, 2, 5, 7), dt)], args=["$1", [2, 3]]); add("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 1), [values((2, 3, 4, 4), dt)], args=["$1", 1])
add("max_pool2d", lambda x: F.max_pool2d(x, 2), [R(3, 4, 4)], args=["$1", 2]); add("max_pool2d", lambda x: F.max_pool2d(x, 2, return_indices=True), [R(3, 4, 4)], args=["$1", 2], opts={"return_indices": True}, out_index=[2])

# ---- normalisation ----
for dt in FLOATS[:2]:
    for shape in [(4, 3), (2, 3, 4), (2, 3, 4, 2)]:
        add("batch_norm", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [values(shape, dt), values((3,), dt, "positive"), values((3,), dt)], args=["$1", None, None, "$2", "$3"], opts={"training": True})
        add("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach(), w, b), [values(shape, dt), values((3,), dt, salt=3), values((3,), dt, "positive"), values((3,), dt, "positive"), values((3,), dt)])
    add("batch_norm", lambda x: F.batch_norm(x, None, None, training=True, eps=0.1), [values((2, 3, 4, 2), dt)], args=["$1", None, None], opts={"training": True, "eps": 0.1})
    add("layer_norm", lambda x, w, b: F.layer_norm(x, (5,), w, b), [values((3, 5), dt), values((5,), dt, "positive"), values((5,), dt)], args=["$1", [5], "$2", "$3"])
    add("layer_norm", lambda x: F.layer_norm(x, (2, 4), eps=0.01), [values((3, 2, 4), dt)], args=["$1", [2, 4]], opts={"eps": 0.01})
    add("layer_norm", lambda x, w: F.layer_norm(x, (70,), w), [values((2, 2, 70), dt), values((70,), dt, "positive")], args=["$1", [70], "$2"], check_grad=False)
for dt in FLOATS[2:]:
    add("layer_norm", lambda x, w, b: F.layer_norm(x.float(), (5,), w.float(), b.float()).to(dt), [values((3, 5), dt), values((5,), dt, "positive"), values((5,), dt)], args=["$1", [5], "$2", "$3"])
add("dropout", lambda x: F.dropout(x, 0.5, training=False), [R(2, 3)], args=["$1", 0.5], opts={"training": False}); add("dropout", lambda x: F.dropout(x, 0.0), [R(2, 3)], args=["$1", 0])

# ---- losses ----
T = IDX(2, 0, 1, 3)
for dt in FLOATS[:2]:
    x, w = values((4, 5), dt), values((5,), dt, "positive")
    for red in ("mean", "sum", "none"):
        add("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction=red), [x, T], index=[2], opts={"reduction": red})
        add("cross_entropy", lambda x, t: F.cross_entropy(x, t, weight=w.detach(), label_smoothing=0.1, reduction=red), [x, T], index=[2], opts={"reduction": red, "label_smoothing": 0.1, "weight": w.tolist()})
        add("nll_loss", lambda x, t: F.nll_loss(x, t, reduction=red, weight=w), [x, T], index=[2], opts={"reduction": red, "weight": w.tolist()})
    add("cross_entropy", lambda x, t: F.cross_entropy(x, t, ignore_index=0), [x, T], index=[2], opts={"ignore_index": 1})
    add("cross_entropy", lambda x, t: F.cross_entropy(x, t), [values((2, 3, 4), dt), IDX([0, 1, 2, 0], [2, 2, 1, 0])], index=[2]); add("cross_entropy", lambda x, t: F.cross_entropy(x, t), [values((5,), dt), IDX(3).reshape(())], index=[2])
    add("cross_entropy", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2), [x, torch.softmax(values((4, 5), dt, salt=2), 1)], opts={"label_smoothing": 0.2})
    add("nll_loss", lambda x, t: F.nll_loss(x, t), [x, T], index=[2])
    for name, fn in (("mse_loss", F.mse_loss), ("l1_loss", F.l1_loss), ("smooth_l1_loss", F.smooth_l1_loss)):
        for red in ("mean", "sum", "none"):
            add(name, lambda a, b: fn(a, b, reduction=red), [values((2, 3), dt), values((2, 3), dt, salt=1)], opts={"reduction": red})
    add("smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, beta=2.5), [values((2, 3), dt), values((2, 3), dt, salt=1)], opts={"beta": 2.5})
    B = F.binary_cross_entropy_with_logits
    add("binary_cross_entropy_with_logits", lambda x, y: B(x, y), [values((2, 3), dt), values((2, 3), dt, "prob")]); add("binary_cross_entropy_with_logits", lambda x, y: B(x, y, pos_weight=torch.tensor([2.0, 3, 4], dtype=dt), weight=torch.tensor([1.0, 0.5, 2], dtype=dt), reduction="sum"), [values((2, 3), dt), values((2, 3), dt, "prob")], opts={"pos_weight": [2, 3, 4], "weight": [1, 0.5, 2], "reduction": "sum"})

    for red in ("mean", "sum", "none"):
        o = {"reduction": red}
        add("huber_loss", lambda a, b: F.huber_loss(a, b, delta=0.7, reduction=red), [values((2, 3), dt), values((2, 3), dt, salt=1)], opts={"delta": 0.7, **o})
        add("binary_cross_entropy", lambda a, b: F.binary_cross_entropy(a, b, reduction=red), [values((2, 3), dt, "prob"), values((2, 3), dt, "prob", 1)], opts=o)
        add("kl_div", lambda a, b: F.kl_div(a, b, reduction=red), [values((2, 3), dt), values((2, 3), dt, "prob", 1)], opts=o)
        add("soft_margin_loss", lambda a: F.soft_margin_loss(a, values((2, 3), dt, salt=1).sign(), reduction=red), [values((2, 3), dt)], args=["$1", C(values((2, 3), dt, salt=1).sign())], opts=o)
        add("margin_ranking_loss", lambda a, b: F.margin_ranking_loss(a, b, values((4,), dt, salt=2).sign(), margin=0.3, reduction=red), [values((4,), dt), values((4,), dt, salt=1)], args=["$1", "$2", C(values((4,), dt, salt=2).sign())], opts={"margin": 0.3, **o})
        add("hinge_embedding_loss", lambda a: F.hinge_embedding_loss(a, values((4,), dt, salt=2).sign(), margin=0.3, reduction=red), [values((4,), dt)], args=["$1", C(values((4,), dt, salt=2).sign())], opts={"margin": 0.3, **o})
        add("cosine_embedding_loss", lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1.0, -1, 1], dtype=dt), margin=0.1, reduction=red), [values((3, 4), dt), values((3, 4), dt, salt=1)], args=["$1", "$2", C(torch.tensor([1.0, -1, 1], dtype=dt))], opts={"margin": 0.1, **o})
        add("triplet_margin_loss", lambda a, b, c: F.triplet_margin_loss(a, b, c, reduction=red, swap=red == "sum"), [values((3, 4), dt), values((3, 4), dt, salt=1), values((3, 4), dt, salt=2)], opts={"swap": red == "sum", **o})
        add("multi_margin_loss", lambda a: F.multi_margin_loss(a, T, reduction=red), [x], args=["$1", C(T + 1)], opts=o)
        add("multilabel_soft_margin_loss", lambda a: F.multilabel_soft_margin_loss(a, (values((2, 3), dt, salt=1) > 0).to(dt), reduction=red), [values((2, 3), dt)], args=["$1", C((values((2, 3), dt, salt=1) > 0).to(dt))], opts=o)
        add("poisson_nll_loss", lambda a, b: F.poisson_nll_loss(a, b, reduction=red, full=red == "sum"), [values((2, 3), dt), values((2, 3), dt, "positive", 1).round()], opts={"full": red == "sum", **o}, grad=False)
        add("gaussian_nll_loss", lambda a, b, c: F.gaussian_nll_loss(a, b, c, reduction=red, full=red == "sum"), [values((2, 3), dt), values((2, 3), dt, salt=1), values((2, 3), dt, "positive", 2)], opts={"full": red == "sum", **o})
    add("poisson_nll_loss", lambda a: F.poisson_nll_loss(a, values((2, 3), dt, "positive", 1).round(), log_input=False), [values((2, 3), dt, "positive")], args=["$1", C(values((2, 3), dt, "positive", 1).round())], opts={"log_input": False})
    add("kl_div", lambda a, b: F.kl_div(a, b, reduction="batchmean", log_target=True), [values((2, 3), dt), values((2, 3), dt, salt=1)], opts={"reduction": "batchmean", "log_target": True})
    add("smooth_l1_loss", lambda a, b: F.smooth_l1_loss(a, b, beta=0.0), [values((2, 3), dt), values((2, 3), dt, salt=1)], opts={"beta": 0})

for part in ("golden_more.py", "golden_linalg.py", "golden_spectral.py", "golden_special.py", "golden_volumes.py", "golden_places.py", "golden_distributions.py", "golden_modules.py"):
    exec(open(os.path.join(HERE, part)).read())

os.makedirs(OUT, exist_ok=True)
for f in os.listdir(OUT):
    if f.endswith(".safetensors") and f[:-12] not in ("cnn", "layers", "optimizers", "models", "amp", "pictures", "transforms", "distributions", "orthogonal", "adaptive_softmax", "flex_attention", "vision"): os.unlink(os.path.join(OUT, f))
for name, (store, cases) in sorted(files.items()):
    save_file(store or {"none": torch.zeros(0)}, os.path.join(OUT, name + ".safetensors"), {"tycho": json.dumps(cases)})

# ---- 100 steps of a small CNN: the same weights and data must follow the same losses ----
torch.manual_seed(3)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(4, 6, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24, 5))
x, y = torch.randn(8, 1, 8, 8), torch.arange(8) % 5
store = {"net." + k: v.clone() for k, v in net.state_dict().items() if v.is_floating_point()}
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=100)
losses, lrs = [], []
for _ in range(100):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0); lrs.append(opt.param_groups[0]["lr"]); opt.step(); sched.step(); losses.append(loss.item())
net2 = torch.nn.Linear(3, 2); store.update({"sgd." + k: v.clone() for k, v in net2.state_dict().items()})
opt2 = torch.optim.SGD(net2.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True); xs = torch.randn(4, 3); ls = []
for _ in range(20):
    l = net2(xs).pow(2).sum(); opt2.zero_grad(); l.backward(); opt2.step(); ls.append(l.item())
store.update({"x": x, "y": y + 1, "losses": torch.tensor(losses, dtype=torch.float64), "lrs": torch.tensor(lrs, dtype=torch.float64), "sgd.x": xs, "sgd.losses": torch.tensor(ls, dtype=torch.float64)})
save_file(store, os.path.join(OUT, "cnn.safetensors"))
print("%d files, %d cases, torch %s" % (len(files) + 1, sum(len(c) for _, c in files.values()), torch.__version__))
print("PyTorch refuses:\n  " + "\n  ".join(skipped))
