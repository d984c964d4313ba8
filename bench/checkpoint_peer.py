"""Seconds to write and read a state dict with torch and with safetensors: checkpoint_peer.py FOLDER MB. See checkpoint.lua."""
import os, sys, time
import torch
from safetensors.torch import load_file, save_file

torch.set_num_threads(2)
folder, mb = sys.argv[1], int(sys.argv[2])
state = {}
for i in range(1, mb // 16 + 1):
    state["layers.%d.weight" % i] = torch.randn(2048, 2046)
    state["layers.%d.bias" % i] = torch.randn(4096)


def timed(name, fn):
    start = time.time()
    out = fn()
    print("%s: %.4f" % (name, time.time() - start))
    return out


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def durable(save, path):
    save(state, path)
    sync(path)


pt, st = os.path.join(folder, "torch.pt"), os.path.join(folder, "torch.safetensors")
timed("torch.save", lambda: torch.save(state, pt))
timed("torch.load", lambda: torch.load(pt))
timed("safetensors save_file", lambda: save_file(state, st))
loaded = timed("safetensors load_file", lambda: load_file(st))
timed("safetensors load_file, every page read", lambda: [t.clone() for t in load_file(st).values()])
for path in (pt, st):
    sync(path)
    os.remove(path)
timed("torch.save (durable)", lambda: durable(torch.save, pt))
timed("safetensors save_file (durable)", lambda: durable(save_file, st))
