#!/usr/bin/env python3
"""spec/golden/samples.safetensors: calls from PyTorch's own tests, and what it gives for them.

  python3 spec/golden_samples.py [OP ...]      (needs PyPI's torch with expecttest, safetensors; luajit and what make built)

With names it says what would be written of these.

torch.testing's op_db lists, for each operator, the calls its developers thought of: every optional argument, no elements, no dims, shapes
that broadcast. Each becomes a case as make_golden.py's are; dims and indices count from 1, which names of arguments tell. Kept are those with
few elements. spec/samples_spec.lua replays them.
"""
import inspect, itertools, json, math, os, subprocess, sys
import torch
from safetensors.torch import save_file
from torch.testing._internal.common_methods_invocations import op_db

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "samples.safetensors")
KEPT = {torch.float64: 6, torch.int64: 2, torch.bool: 1, torch.uint8: 1}      # calls of each op by dtype
ELEMENTS = 40                                                                # of a tensor, at most
DTYPES = set(KEPT) | {torch.float32, torch.float16, torch.bfloat16, torch.int32}

# what holds a dim, an index; and what does so in one op alone
DIMS = {"dim", "dims", "dimension", "dim0", "dim1", "dim2", "axis", "axes", "axis0", "axis1", "source", "destination", "start_dim", "end_dim"}
INDICES = {"index", "indices"}
ALSO = {"narrow": {"start"}, "take": {1}, "unravel_index": {0}, "searchsorted": {"sorter"}, "slice_scatter": {"start"},
        "nn.functional.one_hot": {0}, "nn.functional.nll_loss": {"target", "ignore_index"}, "nn.functional.multi_margin_loss": {"target"},
        "nn.functional.cross_entropy": {"target", "ignore_index"}}
# which results hold indices
GIVES = {"argmax": [0], "argmin": [0], "argsort": [0], "argwhere": [0], "nonzero": range(8), "unique": [1],
         "unique_consecutive": [1], "searchsorted": [0], "bucketize": [0], "triu_indices": [0], "tril_indices": [0], "unravel_index": range(8), "sort": [1], "kthvalue": [1], "mode": [1], "median": [1], "nanmedian": [1], "cummax": [1],
         "cummin": [1], "max": [1], "min": [1], "topk": [1], "nn.functional.max_pool1d": [1], "nn.functional.max_pool2d": [1],
         "nn.functional.max_pool3d": [1], "nn.functional.adaptive_max_pool1d": [1], "nn.functional.adaptive_max_pool2d": [1],
         "nn.functional.adaptive_max_pool3d": [1]}
# What is not compared, and why: ops, their gradients, dtypes, single calls.
RANDOM = """bernoulli exponential cauchy geometric log_normal uniform normal multinomial rand_like randn_like randn randint randint_like empty
    empty_like new_empty nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.rrelu""".split()
OTHERWISE = {
    "arange": "is range here", "to": "overloads", "T": "a field", "H": "a field", "mH": "a field", "mT": "a field", "zero_": "of a leaf",
    "where": "the operands come in another order than users write", "einsum": "too", "polygamma": "too", "special.polygamma": "too",
    "nn.functional.embedding": "too", "nn.functional.embedding_bag": "too", "__getitem__": "Lua's ranges", "slice": "too",
    "tensor_split": "positions count from 1", "bincount": "ids count from 1", "nn.functional.multilabel_margin_loss": "labels end with 0",
    "stft": "complex", "fft.hfft": "real where pairs are needed", "fft.irfft": "too", "fft.irfft2": "too", "fft.irfftn": "too", "item": "a number",
    "svd": "signs are free", "linalg.svd": "too", "linalg.eigh": "too", "linalg.lstsq": "several results there",
    "linspace": "ends may be tensors there", "logspace": "too", "cdist": "compute_mode", "nn.functional.linear_cross_entropy": "several heads there",
}
VALUES = {"cholesky_inverse": "the triangle that isn't read has no gradient here", "cholesky_solve": "too", "linalg.slogdet": "the sign has none",
          "nn.functional.ctc_loss": "docs/from_pytorch.md", "quantile": "q has none", "nanquantile": "too",
          "linalg.pinv": "one triangle has it", "nn.functional.hardsigmoid": "float32's digits there"}
FLOATS = """nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d
    nn.functional.conv_transpose3d nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.local_response_norm
    nn.functional.pairwise_distance nn.functional.margin_ranking_loss nn.functional.hardtanh addbmm addmv baddbmm square sum_to_size all any
    trapezoid trapz cumulative_trapezoid kthvalue special.ndtr add addr index_add scatter scatter_reduce""".split()
UNLESS = {                                  # a call that is left out
    "narrow": lambda a, k: torch.is_tensor(a[2]), "tensordot": lambda a, k: not isinstance(k.get("dims", 2), int),
    "nn.functional.scaled_dot_product_attention": lambda a, k: k.get("dropout_p") or a[0].dim() != a[1].dim(),
    "unique": lambda a, k: not k.get("return_inverse"), "unique_consecutive": lambda a, k: not k.get("return_inverse"),
    "nn.functional.batch_norm": lambda a, k: a[0].dim() < 2, "nn.functional.cosine_similarity": lambda a, k: a[0].dim() == 0,
    "linalg.matrix_power": lambda a, k: a[1] == 0, "nn.functional.avg_pool2d": lambda a, k: a[2:] and a[2] == (),
    "unfold": lambda a, k: a[0].dim() == 0, "gather": lambda a, k: a[0].dim() != a[2].dim(),
    "nn.functional.grid_sample": lambda a, k: a[0].dim() == 5 and k.get("mode") == "bicubic", "logit": lambda a, k: a[1:] and a[1] > 0.5,
    "cov": lambda a, k: k.get("aweights") is not None, "linalg.pinv": lambda a, k: len(a) > 1,
    "histogram": lambda a, k: a[0].numel() < 2 or isinstance(a[1], int) and a[0].unique().numel() < 2,
    "nn.functional.adaptive_avg_pool2d": lambda a, k: not isinstance(a[1], int) and None in a[1],
    "nn.functional.adaptive_avg_pool3d": lambda a, k: not isinstance(a[1], int) and None in a[1],
    "nn.functional.adaptive_max_pool2d": lambda a, k: not isinstance(a[1], int) and None in a[1],
    "nn.functional.adaptive_max_pool3d": lambda a, k: not isinstance(a[1], int) and None in a[1],
}


class Unfit(Exception):
    pass


HAS = """local tycho = require "tycho"
for name in io.lines() do
  local at = require("tycho.core").methods[name] or tycho
  for part in (at == tycho and name or ""):gmatch "[^.]+" do
    local known, found = pcall(function() return at[part] end)
    at = known and found or nil
    if not at then break end
  end
  if at then print(name) end
end"""


def here(names):
    """Those of the names that Tycho has."""
    root = os.path.dirname(os.path.dirname(OUT)) + "/.."
    env = dict(os.environ, LUA_PATH="%s/lua/?.lua;%s/lua/?/init.lua;;" % (root, root), LUA_CPATH="%s/build/?.so;;" % root)
    return set(subprocess.run(["luajit", "-e", HAS], input="\n".join(names), env=env, check=True, capture_output=True, text=True).stdout.split())


def names_of(op, args, kwargs):
    """The arguments' names by position, as far as they can be known."""
    try:
        parameters = inspect.signature(op.op).parameters.values()
        if all(p.kind != p.VAR_POSITIONAL for p in parameters):
            return [p.name for p in parameters]
    except ValueError:
        pass

    def takes(declared, value):
        t = str(declared.type)
        if torch.is_tensor(value): return "Tensor" in t
        if isinstance(value, (list, tuple)): return "List" in t
        if isinstance(value, str): return "str" in t
        return value is None or "Tensor" not in t or "List" in t

    base = op.name.split(".")[-1]
    for name in (base, "fft_" + base, "linalg_" + base, "special_" + base):
        for schema in torch._C._jit_get_schemas_for_operator("aten::" + name):
            declared = [a for a in schema.arguments if not a.kwarg_only]
            known = {a.name for a in schema.arguments}
            if "out" not in known and len(args) <= len(declared) and all(map(takes, declared, args)) and known.issuperset(kwargs):
                return [a.name for a in declared]
    return []


def case_of(op, sample, grad):
    """A call as a case, and its tensors."""
    tensors, stored, also = [], {}, ALSO.get(op.name, ())

    def written(value, name, position=None):
        index = name in INDICES or position in also or name in also
        if torch.is_tensor(value):
            if value.dtype not in DTYPES or value.layout != torch.strided or value.numel() > ELEMENTS:
                raise Unfit
            tensors.append(value)
            held = torch.where(value >= 0, value + 1, value) if index and not value.is_floating_point() and value.dtype != torch.bool else value
            stored["in%d" % len(tensors)] = held.detach().clone().contiguous()
            return "$%d" % len(tensors)
        if value is None: return "$nil"
        if isinstance(value, (list, tuple)): return [written(v, name, position) for v in value]
        if isinstance(value, bool) or isinstance(value, str): return value
        if isinstance(value, int): return value + 1 if value >= 0 and (index or name in DIMS and op.name not in ("tile", "repeat", "tensordot")) else value
        if isinstance(value, float): return value if math.isfinite(value) else "inf" if value > 0 else "-inf" if value < 0 else "nan"
        if isinstance(value, torch.dtype) and value in DTYPES: return str(value)[6:]
        raise Unfit

    args = (sample.input,) + tuple(sample.args)
    if op.name in UNLESS and UNLESS[op.name](args, sample.kwargs):
        raise Unfit
    names = names_of(op, args, sample.kwargs)
    names += [None] * (len(args) - len(names))

    case = {"name": op.name, "args": [written(v, names[i], i) for i, v in enumerate(args)],
            "opts": {k: written(v, k) for k, v in sample.kwargs.items() if v is not None and k not in ("device", "layout", "pin_memory")}}
    try:
        result = op.op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        raise Unfit
    outs = [result] if not isinstance(result, (tuple, list)) else list(result)
    for i, out in enumerate(outs):
        if isinstance(out, (bool, int)): outs[i] = out = torch.tensor(out)
        if not torch.is_tensor(out) or out.dtype not in DTYPES or out.layout != torch.strided or out.numel() > 2 * ELEMENTS:
            raise Unfit
        index = i in GIVES.get(op.name, ()) and out.dtype in (torch.int64, torch.int32)
        stored["out%d" % (i + 1)] = (out + 1 if index else out).detach().clone().contiguous()
    case["outs"] = len(outs)
    roots = [(i, o) for i, o in enumerate(outs) if o.requires_grad and o.numel() > 0]
    leaves = [(i, t) for i, t in enumerate(tensors) if t.requires_grad]
    if grad and roots and leaves and op.name not in VALUES:
        gouts = [torch.cos(torch.arange(1, o.numel() + 1, dtype=torch.float64) * 1.7).to(o.dtype).reshape(o.shape) for _, o in roots]
        for (i, _), g in zip(roots, gouts):
            stored["gout%d" % (i + 1)] = g
        case["grad"] = []
        for (i, _), g in zip(leaves, torch.autograd.grad([o for _, o in roots], [t for _, t in leaves], gouts, allow_unused=True)):
            if g is not None and bool(torch.isfinite(g).all()):
                case["grad"].append(i + 1)
                stored["grad%d" % (i + 1)] = g.detach().clone().contiguous()
    case["tensors"] = len(tensors)
    return case, stored


def main(only):
    cases, stored = [], {}
    known = here({op.name for op in op_db})
    for op in op_db:
        if op.name not in known or only and op.name not in only or op.name in RANDOM or op.name in OTHERWISE or op.name.startswith(("_", "torch.", "jiterator", "sparse", "signal")):
            continue
        for dtype, most in KEPT.items():
            if dtype not in op.supported_dtypes("cpu") or dtype != torch.float64 and op.name in FLOATS:
                continue
            torch.manual_seed(0)
            kept, seen = [], set()
            for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=dtype == torch.float64 and op.supports_autograd), 4000):
                try:
                    case, tensors = case_of(op, sample, dtype == torch.float64)
                except Unfit:
                    continue
                call = json.dumps([case["args"], case["opts"], [list(t.shape) for t in tensors.values()]])
                if call not in seen:
                    kept.append((case, tensors))
                seen.add(call)
            for case, tensors in kept[::max(1, -(-len(kept) // most))][:most]:       # from all of the list
                cases.append(case)
                for key, t in tensors.items():
                    stored["c%d.%s" % (len(cases), key)] = t
    if only:
        print(json.dumps(cases, indent=1))
        return
    save_file(stored, OUT, {"tycho": json.dumps(cases)})
    print(len(cases), "calls of", len({c["name"] for c in cases}), "ops")


if __name__ == "__main__":
    main(sys.argv[1:])
