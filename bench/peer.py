"""bench.lua's peer: reads a case's number from standard input, writes PyTorch's seconds for it to the given pipe. The same list, in the
same order."""
import os, re, sys, time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "spec"))
from models import GPT, ResNet


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


cases = [lambda: 0]


def case(fn):
    cases.append(lambda: timed(fn))


def training(net, x, y):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step():
        loss = F.cross_entropy(net(x).view(len(y), -1), y)
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


def labels(n, *size):
    return torch.randint(0, n, size)


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))


def cnn_step():
    return training(cnn(), R(128, 1, 28, 28), labels(10, 128))


def gpt_step():
    return training(GPT(65, 128, 4, 4, 64), labels(65, 12, 64), labels(65, 768))


if sys.argv[2] == "--memory":
    def kilobytes(what):
        return int(re.search(what + r":\s*(\d+)", open("/proc/self/status").read()).group(1))
    with open("/proc/self/clear_refs", "w") as forget:       # the peak so far
        forget.write("5")
    before, step = kilobytes("VmRSS"), {"cnn": cnn_step, "gpt": gpt_step}[sys.argv[3]]()
    for _ in range(30):
        step()
    print((kilobytes("VmHWM") - before) * 1024)
    sys.exit()

out = open(sys.argv[2], "w")
one, two, grown = torch.ones(1), torch.ones(1), torch.ones(1, requires_grad=True)
case(lambda: one + two)
case(lambda: grown + two)
case(training(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), R(128, 784), labels(10, 128)))
case(cnn_step())
case(training(cnn().bfloat16(), R(128, 1, 28, 28).bfloat16(), labels(10, 128)))
case(gpt_step())
case(training(ResNet(64, 1000), R(32, 3, 224, 224), labels(1000, 32)))
lstm = nn.LSTM(128, 128, 2)


def run_lstm(x):
    lstm.zero_grad()
    return lstm(x)[0]


case(backward(run_lstm, R(64, 32, 128)))
for n in (64, 256, 512, 1024, 2048):
    a, b = R(n, n), R(n, n)
    case(lambda a=a, b=b: a @ b)
p, q, bf = R(64, 32, 64), R(64, 64, 32), R(512, 512).bfloat16()
case(lambda: p @ q)
case(lambda: bf @ bf)


def sized(n):
    m, v, col = R(n, n), R(n), R(n, 1)
    case(lambda: m + m)
    case(lambda: m + v)
    case(lambda: m * col)
    case(lambda: m.exp())
    case(lambda: F.gelu(m))
    case(lambda: m + m.t())
    case(lambda: m.t().contiguous())
    case(lambda: m.sum())
    case(lambda: m.sum(0))
    case(lambda: m.max(1))
    case(lambda: m.cumsum(1))
    case(lambda: m.var(1))
    case(lambda: m.softmax(1))
    case(backward(lambda x: x.softmax(1), m.clone()))
    case(lambda: F.layer_norm(m, (n,), v, v))
    case(backward(lambda x, w, b: F.layer_norm(x, (n,), w, b), m.clone(), v.clone(), v.clone()))


sized(1024)
sized(2048)
m, ids = R(1024, 1024), labels(5000, 4096)
case(lambda: m.sort(1))
case(lambda: m.topk(10))
case(backward(lambda x: F.cross_entropy(x, ids[:512]), R(512, 5000)))
case(backward(lambda w: F.embedding(ids, w), R(5000, 64)))
case(backward(lambda x: sum(x[i].square().sum() for i in range(64)), R(64, 16384)))
for t in (256, 1024, 4096):
    shape = (8 if t == 256 else 1, 4, t, 64)
    case(backward(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), R(shape), R(shape), R(shape)))
case(backward(lambda x, w: F.conv2d(x, w, padding=1), R(8, 64, 28, 28), R(64, 64, 3, 3)))
case(backward(lambda x, w: F.conv2d(x, w, padding=1, groups=64), R(8, 64, 28, 28), R(64, 1, 3, 3)))
case(backward(lambda x: F.max_pool2d(x, 2), R(8, 64, 28, 28)))
case(backward(lambda x: F.avg_pool2d(x, 3, 2, 1), R(32, 64, 28, 28)))
case(backward(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), R(64, 64, 28, 28), R(64), R(64)))
case(lambda: F.interpolate(p.view(8, 16, 32, 32), size=(64, 64), mode="bilinear"))
case(backward(lambda x, w: F.conv3d(x, w, None, 1, 1), R(2, 16, 16, 32, 32), R(32, 16, 3, 3, 3)))
case(backward(lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), R(4, 32, 64, 64)))
places, mask = R(1000, 1000), R(1000, 1000) > 0
def fill_places(): places[mask] = 0
case(fill_places)
case(lambda: places[mask])
case(lambda: mask.nonzero())
case(lambda: torch.randn(1000000))
case(lambda: torch.randperm(1000000))
case(backward(lambda a, b: torch.cdist(a, b), R(500, 64), R(500, 64)))
for fused in (None, True):
    params = [R(1000, 1000, requires_grad=True) for _ in range(10)]
    for x in params:
        x.grad = R(1000, 1000)
    case(torch.optim.AdamW(params, lr=1e-3, fused=fused).step)



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
    x, y, run = R(128, 784), labels(10, 128), []

    def once():
        opt.zero_grad()
        F.cross_entropy(run[0](x), y).backward()
        opt.step()

    def step():
        if not run:                            # compiled when first asked for, as below
            if compiled:
                torch.compiler.reset()
            run.append(torch.compile(net) if compiled else net)
            for _ in range(5):
                once()
        once()
    return step


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


for compiled in (False, True):
    def beside(made):
        fn, args = made
        if not compiled:
            case(lambda: fn(*args))
            return
        ready = []                             # compiled when first asked for: that takes a minute

        def run():
            if not ready:
                torch.compiler.reset()         # its limits of recompilation count over all cases
                ready.append(torch.compile(fn))
                for _ in range(5):
                    ready[0](*args)
            ready[0](*args)
        case(run)
    for width in (128, 32):
        for guard in ("full", "inputs"):
            beside(mlp(width))
    case(net_alone(compiled))
    beside(amp_cnn())
    beside(chain())

for line in sys.stdin:
    out.write("%.12g\n" % cases[int(line)]())
    out.flush()
