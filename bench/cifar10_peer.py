#!/usr/bin/env python3
"""examples/cifar10.lua in PyTorch, on the CPU: the same data, model, optimizer, steps; for its test accuracy.

    PYTHON bench/cifar10_peer.py --data DIR [--epochs 3] [--amp bfloat16|off] [--seed 1] [--threads 2]      # torch, torchvision, numpy
"""
import argparse, os, time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

p = argparse.ArgumentParser()
p.add_argument("--data")
p.add_argument("--epochs", type=int, default=3)
p.add_argument("--amp", default="bfloat16")
p.add_argument("--seed", type=int, default=1)
p.add_argument("--threads", type=int, default=2)
o = p.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(o.seed)


class Cifar(Dataset):
    def __init__(self, names, transform):
        raw = np.concatenate([np.fromfile(os.path.join(o.data, n), np.uint8).reshape(-1, 3073) for n in names])
        self.y, self.x, self.transform = raw[:, 0].astype(np.int64), torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy()), transform

    def __len__(self): return len(self.y)
    def __getitem__(self, i): return self.transform(self.x[i].float() / 255), self.y[i]


norm = T.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
train = Cifar(["data_batch_%d.bin" % i for i in range(1, 6)], T.Compose([T.RandomCrop(32, padding=4), T.RandomHorizontalFlip(), norm]))
test = Cifar(["test_batch.bin"], norm)
layers = []
for a, b in ((3, 32), (32, 64), (64, 128)):
    layers += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 512), nn.ReLU(), nn.Linear(512, 10))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
auto = lambda: torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.amp != "off")
for epoch in range(o.epochs):
    start = time.time()
    net.train()
    for x, y in DataLoader(train, batch_size=128, shuffle=True, drop_last=True, num_workers=2):
        with auto():
            loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    right = 0
    with torch.no_grad(), auto():
        for x, y in DataLoader(test, batch_size=1000):
            right += (net(x).argmax(1) == y).sum().item()
    print("epoch %d: test accuracy %.4f (%.0f s)" % (epoch + 1, right / len(test), time.time() - start), flush=True)
