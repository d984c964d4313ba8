"""bench.lua's peer: reads a case's number from standard input, writes PyTorch's seconds for it to the given pipe."""
import sys, time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
out = open(sys.argv[2], "w")
torch.manual_seed(1)


def timed(fn, n):
    for _ in range(max(1, n // 10)):
        fn()
    t = time.perf_counter()
    for _ in range(n):
        fn()
    return (time.perf_counter() - t) / n


one, two = torch.ones(1), torch.ones(1)
net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1, bias=False),
                    nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.randn(128, 1, 28, 28), torch.randint(0, 10, (128,))
a, b, m = torch.randn(512, 512), torch.randn(512, 512), torch.randn(1024, 1024)


def step():
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


cases = {1: lambda: timed(lambda: one + two, 200000), 2: lambda: timed(step, 20), 3: lambda: timed(lambda: a @ b, 100), 4: lambda: timed(m.exp, 100),
         5: lambda: timed(lambda: m.sum(0), 200), 6: lambda: timed(lambda: m.softmax(1), 100)}
for line in sys.stdin:
    k = int(line)
    out.write("%.12g\n" % (cases[k]() if k else 0))
    out.flush()
