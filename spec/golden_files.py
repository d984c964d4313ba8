"""Files that NumPy and PyTorch write -> spec/golden/files/, with their values as safetensors; and whether they read what Tycho writes.

    PYTHON spec/golden_files.py             # needs numpy, torch, safetensors
    PYTHON spec/golden_files.py --check     # LUAJIT writes files of every dtype; numpy and safetensors read them
"""
import collections, os, subprocess, sys, tempfile
import numpy as np
import torch
from safetensors.torch import load_file, save_file

DTYPES = {"float32": "f4", "float16": "f2", "float64": "f8", "int32": "i4", "int64": "i8", "uint8": "u1", "bool": "b1", "bfloat16": "f4"}
LUA = """
local tycho, dir = require "tycho", arg[1]
local all = {}
for t in ("float32 float16 bfloat16 float64 int32 int64 uint8 bool"):gmatch "%S+" do
  local x = tycho.tensor({{0, 1, 2}, {3, 4, 5}}):to(t)
  tycho.save_npy(dir .. "/" .. t .. ".npy", x:t())
  all[t] = x
end
tycho.save_npz(dir .. "/all.npz", all)
tycho.save(dir .. "/all.safetensors", all)
tycho.save_npy(dir .. "/scalar.npy", tycho.tensor(2.5))
tycho.save_npy(dir .. "/empty.npy", tycho.zeros(0, 3))
tycho.save(dir .. "/back.safetensors", tycho.load(dir .. "/python.safetensors"))
"""


def check():
    with tempfile.TemporaryDirectory() as d:
        python = {k: torch.arange(6).reshape(2, 3).to(getattr(torch, k)) for k in DTYPES}
        save_file(python, d + "/python.safetensors")
        subprocess.run(["luajit", "-", d], input=LUA.encode(), check=True)
        npz, tensors, back = np.load(d + "/all.npz"), load_file(d + "/all.safetensors"), load_file(d + "/back.safetensors")
        for name, code in DTYPES.items():
            want = np.arange(6).reshape(2, 3).astype(code)
            for got in (np.load(f"{d}/{name}.npy").T, npz[name]):
                assert got.dtype == want.dtype and (got == want).all(), name
            for got in (tensors[name], back[name]):
                assert got.dtype == getattr(torch, name) and torch.equal(got, python[name]), name
        assert np.load(d + "/scalar.npy") == 2.5 and np.load(d + "/empty.npy").shape == (0, 3)
    print("numpy %s, safetensors: every dtype is read as written" % np.__version__)


def golden():
    d = os.path.join(os.path.dirname(__file__), "golden", "files")
    os.makedirs(d, exist_ok=True)
    rng = np.random.default_rng(0)
    arrays, values = {}, {}
    for t in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 b1".split():
        a = rng.random((3, 4)) > 0.5 if t == "b1" else (rng.random((3, 4)) * 100 - (50 if t[0] in "if" else 0)).astype(t)
        arrays[t], arrays[t + "_fortran"], arrays[t + "_big"] = a, np.asfortranarray(a), a.astype(a.dtype.newbyteorder(">"))
        values[t] = torch.from_numpy(a.astype("f8"))
    np.savez(d + "/arrays.npz", scalar=np.float32(3), empty=np.zeros((0, 3), "f4"), **arrays)
    np.savez_compressed(d + "/compressed.npz", np.arange(1000))
    np.save(d + "/vector.npy", np.arange(5))
    np.save(d + "/objects.npy", np.array([{}], dtype=object))
    np.save(d + "/records.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2).half())
    o = torch.optim.Adam(m[0].parameters(), lr=0.1)
    m[0](torch.randn(1, 3, 5, 5)).sum().backward()
    o.step()
    x = torch.randn(4, 5)
    torch.save({"device": torch.device("cuda", 1), "plain": torch.device("cpu"), "dtype": torch.float16, "set": {7},
                "count": collections.Counter("aab")}, d + "/settings.pt")
    noted, noted_p = torch.arange(3.0), torch.nn.Parameter(torch.arange(4.0).reshape(2, 2).t())
    noted.note, noted_p.note = "left out", "too"
    torch.save({"bytes": bytes(range(256)), "none": b"", "buffer": torch.nn.Buffer(torch.arange(3.0)), "noted": noted, "noted_p": noted_p,
                "z": torch.complex(torch.arange(6.0), torch.arange(6.0) + 10).reshape(2, 3).t(), "z0": torch.tensor(1 + 2j, dtype=torch.complex128)},
               d + "/more.pt")
    w = torch.arange(6.0).reshape(3, 2)
    torch.save({"a": w, "b": w, "c": w[1:]}, d + "/tied.pt")
    torch.save({"sparse": torch.eye(3).to_sparse()}, d + "/sparse.pt")
    torch.save({"short": torch.ones(3, dtype=torch.uint16)}, d + "/uint16.pt")
    state = {"model": m.state_dict(), "opt": o.state_dict(), "epoch": 7, "lr": 1e-3, "name": "hello", "t": x.t(), "s": x[1:3, ::2], "none": None, "list": [1, True, (2, 3.5)],
             "bf": x.bfloat16(), "p": torch.nn.Parameter(x), "size": x.shape, "big": 2**40, "neg": -5, "e": torch.zeros(0, 3), "x": x.expand(2, 4, 5)}
    torch.save(state, d + "/state.pt")
    torch.save(state, d + "/state_before_1.6.pt", _use_new_zipfile_serialization=False)      # its keys are addresses
    torch.save({"windows": torch.arange(8.).unfold(0, 3, 2), "one": torch.ones(1).expand(2000, 2000), "negative": -(2**52 + 1)}, d + "/strides.pt")
    torch.save({"over": torch.zeros(2400).as_strided((1200, 1200), (1, 1))}, d + "/over.pt")
    for k, v in m.state_dict().items():
        values["model." + k] = v
    values.update(t=x.t(), s=x[1:3, ::2], bf=x.bfloat16(), p=x, x=x.expand(2, 4, 5), exp_avg=o.state_dict()["state"][0]["exp_avg"])
    save_file({k: v.clone().contiguous() for k, v in values.items()}, d + "/values.safetensors")

    # an optimizer's state after 3 steps, and the parameters 3 steps later: the gradient is 0.3 p + 0.1
    runs = {}
    for name, make in {"sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True), "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.5)}.items():
        params = [torch.nn.Parameter(torch.randn(2)) for _ in range(3)]
        opt = make([{"params": params[:2]}, {"params": params[2:], "lr": 0.05}])

        def steps():
            for _ in range(3):
                for p in params:
                    p.grad = 0.3 * p.detach() + 0.1
                opt.step()
            return [p.detach().clone() for p in params]
        before = steps()
        state = opt.state_dict()
        state = {"state": {k: {n: v.clone() if torch.is_tensor(v) else v for n, v in s.items()} for k, s in state["state"].items()}, "param_groups": state["param_groups"]}
        runs[name] = {"params": before, "state": state, "after": steps()}
    torch.save(runs, d + "/optimizers.pt")

    class Evil:
        def __reduce__(self):
            return os.system, ("echo hi",)
    torch.save({"x": Evil()}, d + "/evil.pt")
    torch.save(torch.nn.Linear(1, 1), d + "/module.pt")


check() if "--check" in sys.argv else golden()
