#!/usr/bin/env python3
"""Writes docs/torch_names.txt: the names of PyTorch's public functions, methods, layers and optimizers, for docs/coverage.md.

  python3 scripts/torch_names.py        (needs torch)
"""
import inspect, os
import torch
from torch.overrides import get_overridable_functions

names = {"torch": set(), "Tensor": set(), "nn.functional": set(), "linalg": set(), "fft": set(), "special": set(), "nn": set(), "optim": set(), "optim.lr_scheduler": set()}
for space, functions in get_overridable_functions().items():
    key = {torch: "torch", torch.Tensor: "Tensor", torch.nn.functional: "nn.functional"}.get(space)
    if key:
        names[key] |= {f.__name__ for f in functions if hasattr(f, "__name__")}
names["Tensor"] |= {n for n in dir(torch.Tensor) if callable(getattr(torch.Tensor, n, None))}
names["nn.functional"] |= {n for n, f in vars(torch.nn.functional).items() if inspect.isfunction(f) or inspect.isbuiltin(f)}
names["linalg"] = {n for n, f in vars(torch.linalg).items() if inspect.isfunction(f) or inspect.isbuiltin(f)}
names["fft"] = {n for n, f in vars(torch.fft).items() if inspect.isfunction(f) or inspect.isbuiltin(f)}
names["special"] = {n for n, f in vars(torch.special).items() if inspect.isfunction(f) or inspect.isbuiltin(f)}
names["nn"] = {n for n, c in vars(torch.nn).items() if inspect.isclass(c) and issubclass(c, torch.nn.Module)}
names["optim"] = {n for n, c in vars(torch.optim).items() if inspect.isclass(c) and issubclass(c, torch.optim.Optimizer)}
names["optim.lr_scheduler"] = {n for n, c in vars(torch.optim.lr_scheduler).items() if inspect.isclass(c) and issubclass(c, torch.optim.lr_scheduler.LRScheduler)}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "torch_names.txt")
with open(path, "w") as f:
    f.write("# Made by scripts/torch_names.py from torch %s.\n" % torch.__version__.split("+")[0])
    for space in names:
        for n in sorted(names[space]):
            if not n.startswith("_"):
                f.write("%s %s\n" % (space, n))
