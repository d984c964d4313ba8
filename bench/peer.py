"""bench.lua's peer: reads a case's number from standard input, writes PyTorch's seconds for it to the given pipe. The same list, in the
same order."""
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


cases = [lambda: 0]


def case(n, fn):
    cases.append(lambda: timed(fn, n))


def training(net, x, y):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step():
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return step


def backward(fn, *inputs):
    for x in inputs:
        x.requires_grad_()
    g = torch.ones_like(fn(*inputs))

    def run():
        y = fn(*inputs)
        for x in inputs:
            x.grad = None
        y.backward(g)
    return run


R = torch.randn
one, two = torch.ones(1), torch.ones(1)
case(200000, lambda: one + two)
case(10, training(nn.Sequential(nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1, bias=False),
                                nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10)),
                  R(128, 1, 28, 28), torch.randint(0, 10, (128,))))
case(10, training(nn.Sequential(nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True), nn.Flatten(0, 1), nn.Linear(128, 64)), R(8, 64, 128), torch.randint(0, 64, (512,))))
case(50, training(nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), R(64, 784), torch.randint(0, 10, (64,))))
for k in (64, 512):
    a, b = R(k, k), R(k, k)
    case(50 if k > 100 else 2000, lambda a=a, b=b: a @ b)
p, q = R(64, 32, 64), R(64, 64, 32)
case(200, lambda: p @ q)
m, v, col, bf, ids = R(1024, 1024), R(1024), R(1024, 1), R(512, 512).bfloat16(), torch.randint(0, 5000, (4096,))
case(50, lambda: m.exp())
case(50, lambda: F.gelu(m))
case(50, lambda: m + v)
case(50, lambda: m * col)
case(50, lambda: m + m.t())
case(50, lambda: m.t().contiguous())
case(100, lambda: m.sum())
case(100, lambda: m.sum(0))
case(50, lambda: m.max(1))
case(50, lambda: m.cumsum(1))
case(50, lambda: m.var(1))
case(5, lambda: m.sort(1))
case(20, lambda: m.topk(10))
case(50, lambda: m.softmax(1))
case(20, backward(lambda x, w, b: F.layer_norm(x, (1024,), w, b), m.clone(), v.clone(), v.clone()))
case(10, backward(lambda x: F.cross_entropy(x, ids[:512]), R(512, 5000)))
case(50, backward(lambda w: F.embedding(ids, w), R(5000, 64)))
case(10, backward(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), R(8, 4, 128, 32), R(8, 4, 128, 32), R(8, 4, 128, 32)))
case(5, backward(lambda x, w: F.conv2d(x, w, padding=1), R(8, 64, 28, 28), R(64, 64, 3, 3)))
case(5, backward(lambda x, w: F.conv2d(x, w, padding=1, groups=64), R(8, 64, 28, 28), R(64, 1, 3, 3)))
case(10, backward(lambda x: F.max_pool2d(x, 2), R(8, 64, 28, 28)))
case(10, lambda: F.interpolate(p.view(8, 16, 32, 32), size=(64, 64), mode="bilinear"))
case(20, lambda: bf @ bf)

for line in sys.stdin:
    out.write("%.12g\n" % cases[int(line)]())
    out.flush()
