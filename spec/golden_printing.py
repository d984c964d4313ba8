"""spec/golden/printing.lua: tensors as text, by PyTorch's own formatter at indent 0 (a Lua program prints them without "tensor("), for tensor_spec.lua.
Each case: dtype, sizes, values, text."""
import os, random
import torch
import torch._tensor_str as ts

random.seed(3)
torch.manual_seed(1)
INF, NAN = float("inf"), float("nan")
KINDS = {"normal": lambda x: x, "whole": lambda x: (x * 20).round(), "tiny": lambda x: x * 1e-6, "wide": lambda x: x.exp() ** 4, "halves": lambda x: (x * 64).round() / 32,
         "large": lambda x: (x * 1e6).round() * 5, "eighths": lambda x: (x * 4).round() / 8}


def text(t):
    if t.numel() == 0:
        return "[]"
    summarize, x = t.numel() > 1000, t.float() if t.dtype in (torch.float16, torch.bfloat16) else t
    out = ts._tensor_str_with_formatter(x, 0, summarize, ts._Formatter(ts.get_summarized_data(x) if summarize else x))
    return out.replace("True", "true").replace("False", "false")


def number(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if v == 0 and str(v) == "-0.0":
        return "1/(-1/0)"                # LuaJIT for ARM reads -0.0 as 0
    return "0/0" if v != v else "1/0" if v == INF else "-1/0" if v == -INF else repr(v)


def case(t, dtype):
    values = ",".join(number(v) for v in t.flatten().tolist())
    return '{"%s",{%s},{%s},[==[\n%s]==]}' % (dtype, ",".join(map(str, t.shape)), values, text(t))


cases = [case(torch.tensor(v, dtype=torch.float32), "float32") for v in
         ([1, NAN, INF], [INF, -INF], [-0.0, 0], [0.03125, 0.28125], [NAN], 3, 0.5, [1e-5, 1], [1e9], [123456.0, 0.5], [], [[]], [1001.0, 1.0])]
for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"):
    for kind, make in KINDS.items():
        shape = random.choice([[], [3], [13], [2, 5], [20, 2], [2, 1, 3], [2, 2, 3, 1], [21]])
        x = make(torch.randn(shape, dtype=torch.float64))
        if dtype[0] in "iu":
            x = (x * 3).clamp(-2e9, 2e9) if dtype[0] == "i" else (x.abs() * 9).clamp(0, 255)
        t = x > 0 if dtype == "bool" else x.to(getattr(torch, dtype))
        if t.is_floating_point() and t.numel() > 3 and random.random() < 0.3:
            t.view(-1)[1] = random.choice([NAN, INF, -INF, -0.0])
        cases.append(case(t, dtype))
for shape in ([1001], [3, 400], [200, 7], [7, 2, 90]):
    cases.append(case(torch.arange(torch.tensor(shape).prod().item()).view(shape) * 0.5, "float32"))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "printing.lua")
with open(path, "w") as f:
    f.write("-- From PyTorch, by spec/golden_printing.py: dtype, sizes, values, text.\nreturn {\n%s}\n" % ",\n".join(cases))
