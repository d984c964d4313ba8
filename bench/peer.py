"""cases.lua's peer: the same list in the same order. For each line of its input writes the seconds that a call of PyTorch takes:
  python3 bench/peer.py THREADS PIPE NUMBER         (NUMBER cnn or gpt: the bytes by which 30 steps of that model grow the process)"""
import os, re, sys, time

out, which = open(sys.argv[2], "w"), sys.argv[3]             # first: bench.lua waits for it
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "spec"))
from models import GPT, ResNet

R = torch.randn
cases = []
case = cases.append          # of a function that makes what is timed


def labels(n, *size):
    return torch.randint(0, n, size)


def on(fn, *shapes):
    """Makes fn of random tensors of these shapes."""
    def make():
        inputs = [R(shape) for shape in shapes]
        return lambda: fn(*inputs)
    return make


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


def both(fn, *shapes):
    """Makes fn of random tensors of these shapes, forward and backward."""
    return lambda: backward(fn, *[R(shape) for shape in shapes])


def training(net, x, y):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step():
        loss = F.cross_entropy(net(x).view(len(y), -1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return step


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))


def mlp_step():
    return training(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), R(128, 784), labels(10, 128))


def cnn_step():
    return training(cnn(), R(128, 1, 28, 28), labels(10, 128))


def gpt_step():
    return training(GPT(65, 128, 4, 4, 64), labels(65, 12, 64), labels(65, 768))


def growing():
    a, b = R(1).requires_grad_(), R(1)
    return lambda: a + b


def lstm_step():
    lstm = nn.LSTM(128, 128, 2)

    def run(x):
        lstm.zero_grad()
        return lstm(x)[0]
    return backward(run, R(64, 32, 128))


def bf16_product():
    x = R(512, 512).bfloat16()
    return lambda: x @ x


case(on(lambda a, b: a + b, (1,), (1,)))
case(growing)
case(mlp_step)
case(cnn_step)
case(lambda: training(cnn().bfloat16(), R(128, 1, 28, 28).bfloat16(), labels(10, 128)))
case(gpt_step)
case(lambda: training(ResNet(64, 1000), R(32, 3, 224, 224), labels(1000, 32)))
case(lstm_step)
for n in (64, 256, 512, 1024, 2048):
    case(on(lambda a, b: a @ b, (n, n), (n, n)))
case(on(lambda a, b: a @ b, (64, 32, 64), (64, 64, 32)))
case(bf16_product)


def sized(n):
    square, row, column = (n, n), (n,), (n, 1)
    def norm(m, w, b): return F.layer_norm(m, row, w, b)
    case(on(lambda m: m + m, square))
    case(on(lambda m, v: m + v, square, row))
    case(on(lambda m, v: m * v, square, column))
    case(on(lambda m: m.exp(), square))
    case(on(lambda m: F.gelu(m), square))
    case(on(lambda m: m + m.t(), square))
    case(on(lambda m: m.t().contiguous(), square))
    case(on(lambda m: m.sum(), square))
    case(on(lambda m: m.sum(0), square))
    case(on(lambda m: m.max(1), square))
    case(on(lambda m: m.cumsum(1), square))
    case(on(lambda m: m.var(1), square))
    case(on(lambda m: m.softmax(1), square))
    case(both(lambda m: m.softmax(1), square))
    case(on(norm, square, row, row))
    case(both(norm, square, row, row))


def cross_entropy():
    y = labels(5000, 512)
    return backward(lambda x: F.cross_entropy(x, y), R(512, 5000))


def embedding():
    ids = labels(5000, 4096)
    return backward(lambda w: F.embedding(ids, w), R(5000, 64))


sized(1024)
sized(2048)
case(on(lambda m: m.sort(1), (1024, 1024)))
case(on(lambda m: m.topk(10), (1024, 1024)))
case(cross_entropy)
case(embedding)
case(both(lambda x: sum(x[i].square().sum() for i in range(64)), (64, 16384)))
for t in (256, 1024, 4096):
    shape = (8 if t == 256 else 1, 4, t, 64)
    case(both(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), shape, shape, shape))
case(both(lambda x, w: F.conv2d(x, w, padding=1), (8, 64, 28, 28), (64, 64, 3, 3)))
case(both(lambda x, w: F.conv2d(x, w, padding=1, groups=64), (8, 64, 28, 28), (64, 1, 3, 3)))
case(both(lambda x: F.max_pool2d(x, 2), (8, 64, 28, 28)))
case(both(lambda x: F.avg_pool2d(x, 3, 2, 1), (32, 64, 28, 28)))
case(both(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (64, 64, 28, 28), (64,), (64,)))
case(on(lambda x: F.interpolate(x, size=(64, 64), mode="bilinear"), (8, 16, 32, 32)))
case(both(lambda x, w: F.conv3d(x, w, None, 1, 1), (2, 16, 16, 32, 32), (32, 16, 3, 3, 3)))
case(both(lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), (4, 32, 64, 64)))


def masked(fn):
    """Makes fn of 1 M random numbers and where others are above 0."""
    def make():
        x, mask = R(1000, 1000), R(1000, 1000) > 0
        return lambda: fn(x, mask)
    return make


def fill_places(x, mask):
    x[mask] = 0


def adamw(fused):
    params = [R(1000, 1000).requires_grad_() for _ in range(10)]
    for x in params:
        x.grad = R(1000, 1000)
    return torch.optim.AdamW(params, lr=1e-3, fused=fused).step


case(masked(fill_places))
case(masked(lambda x, mask: x[mask]))
case(masked(lambda x, mask: mask.nonzero()))
case(on(lambda: torch.randn(1000000)))
case(on(lambda: torch.randperm(1000000)))
case(both(lambda a, b: torch.cdist(a, b), (500, 64), (500, 64)))
case(lambda: adamw(None))
case(lambda: adamw(True))


def mlp(width):
    net = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss.detach()
    return step, (R(128, 784), labels(10, 128))


def net_alone(compiled):
    layers = [nn.Linear(784, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.LayerNorm(128), nn.GELU(),
              nn.Dropout(0.1), nn.Linear(128, 10)]
    net = nn.Sequential(*layers)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, y, run = R(128, 784), labels(10, 128), torch.compile(net) if compiled else net

    def step():
        opt.zero_grad()
        F.cross_entropy(run(x), y).backward()
        opt.step()
    return warm(step)


def amp_cnn():
    net, x, y = cnn(), R(128, 1, 28, 28), labels(10, 128)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def step():
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    return step, ()


def chain():
    x, b, w, r = R(4096, 1024), R(1024), torch.ones(1024), R(4096, 1024)

    def fn():
        with torch.no_grad():
            return F.layer_norm(F.dropout(F.gelu(x + b), 0.1) + r, (1024,), w, b)
    return fn, ()


def warm(fn):
    for _ in range(5):
        fn()
    return fn


def beside(make, compiled, *args):
    """Adds the case of the function and arguments that make gives, by torch.compile where compiled."""
    def made():
        fn, inputs = make(*args)
        run = torch.compile(fn) if compiled else fn
        return warm(lambda: run(*inputs))
    case(made)


for compiled in (False, True):
    for width in (128, 32):
        for guard in ("full", "inputs"):
            beside(mlp, compiled, width)
    case(lambda compiled=compiled: net_alone(compiled))
    beside(amp_cnn, compiled)
    beside(chain, compiled)


def timed(fn):
    t, n = time.perf_counter(), 0
    fn()
    last = time.perf_counter()
    per, t = max(1, int(0.02 / (last - t))), last
    while last - t <= 0.2:
        for _ in range(per):
            fn()
        n, last = n + per, time.perf_counter()
    return (last - t) / n


def grown_by(step):
    def kilobytes(what):
        return int(re.search(what + r":\s*(\d+)", open("/proc/self/status").read()).group(1))
    with open("/proc/self/clear_refs", "w") as forget:       # the peak so far
        forget.write("5")
    before, fn = kilobytes("VmRSS"), step()
    for _ in range(30):
        fn()
    return (kilobytes("VmHWM") - before) * 1024


steps = {"cnn": cnn_step, "gpt": gpt_step}
fn = None if which in steps else cases[int(which) - 1]()
began = time.perf_counter()
while fn and time.perf_counter() - began < 1:                # memory is touched for the first time
    fn()
for _ in sys.stdin:
    out.write("%.12g\n" % (timed(fn) if fn else grown_by(steps[which])))
    out.flush()
