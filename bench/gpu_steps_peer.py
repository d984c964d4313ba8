"""PyTorch's side of gpu_steps.lua: the same steps, eager, as one CUDA graph captured by hand, and with the forward pass
and the loss by torch.compile.
Prints name, variant, milliseconds of a step alone, milliseconds of a step in a row, between them tabs; or name, variant, "error" and why.
  python3 bench/gpu_steps_peer.py [--only TEXT --rounds 1 --small 1 --device cpu --wait 1]
--wait 1: says "ready" for each case, begins a round when it is given a line, ends it with "done". Variants are made
once and stay for all rounds.
What is captured is all that a step does, zero_grad to the optimizer; with a GradScaler also unscaling, the check for
infinities and update(), which stay on the device as the optimizers are fused ones. What is compiled is compiled for
forward and backward; zero_grad, scaler and optimizer are called as ever."""
import gc
import sys
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

options = dict(only="", rounds="1", small="0", device="cuda", wait="0")
options.update(zip((name.lstrip("-") for name in sys.argv[1::2]), sys.argv[2::2]))
device, small, wait = options["device"], options["small"] != "0", options["wait"] != "0"
gpu = device != "cpu"
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
R = torch.randn


def size(n, least):
    return least if small else n


def labels(n, *shape):
    return torch.randint(0, n, shape)


warm, calls, batch = size(10, 4), size(20, 3), size(128, 4)
cases = {}


def case(name):
    def add(make):
        cases[name] = make
    return add


def training(variant, net, make_opt, x, y, dtype=None):
    """A training step: dtype is autocast's, float16 comes with a GradScaler."""
    opt = make_opt(net.parameters())

    def loss_of(x, y):
        return F.cross_entropy(net(x).flatten(0, -2), y)
    loss_fn = loss_of
    if dtype:
        def loss_fn(x, y):
            # no weight is used twice; a cache mustn't outlive a capture
            with torch.autocast(device, dtype=dtype, cache_enabled=variant != "graph"):
                return loss_of(x, y)
    if variant == "compile":
        loss_fn = torch.compile(loss_fn)
    scaler = torch.amp.GradScaler(device) if dtype == torch.float16 else None

    def step():
        opt.zero_grad()
        loss = loss_fn(x, y)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        else:
            loss.backward()
            opt.step()
        return loss.detach()
    return step


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, fused=True)


def adam(variant, kind, lr):
    return lambda parameters: kind(parameters, lr=lr, fused=True, capturable=variant == "graph")


def mlp(width):
    def make(variant):
        net = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
        return training(variant, net, sgd, R(batch, 784), labels(10, batch))
    return make


for width in (128, 32):
    case(f"MLP 784-{width}-10, batch 128")(mlp(width))


@case("gelu-bias-dropout-add-layer_norm, 16 MB")
def chain(variant):
    rows, width = size(4096, 16), size(1024, 64)
    x, b, w, r = R(rows, width), R(width), torch.ones(width), R(rows, width)

    def fn():
        with torch.no_grad():
            return F.layer_norm(F.dropout(F.gelu(x + b), 0.1) + r, (width,), w, b)
    return torch.compile(fn) if variant == "compile" else fn


# Convolutions' data are channels-last, which is faster in 16 bits.
last = torch.channels_last


@case("demo's CNN, batch 128, bfloat16 autocast")
def demo(variant):
    a, b, c = size(32, 4), size(64, 8), size(128, 16)
    net = nn.Sequential(nn.Conv2d(1, a, 3, padding=1, bias=False), nn.BatchNorm2d(a), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(b * 49, c), nn.ReLU(), nn.Dropout(0.3), nn.Linear(c, 10))
    return training(variant, net.to(memory_format=last), sgd, R(batch, 1, 28, 28).to(memory_format=last), labels(10, batch), torch.bfloat16)


@case("CIFAR CNN, batch 128, float16 autocast, GradScaler, Adam")
def cifar(variant):
    layers, n = [], 3
    for o in size((32, 64, 128), (4, 8, 8)):
        layers += [nn.Conv2d(n, o, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        n = o
    hidden = size(512, 16)
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(n * 16, hidden), nn.ReLU(), nn.Linear(hidden, 10)).to(memory_format=last)
    return training(variant, net, adam(variant, torch.optim.Adam, 1e-3),
                    R(batch, 3, 32, 32).to(memory_format=last), labels(10, batch), torch.float16)


class Layer(nn.Module):
    """nn.TransformerEncoderLayer with norm_first and gelu, written out with scaled_dot_product_attention, as users of
    PyTorch write it for speed."""
    def __init__(self, w, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(w), nn.LayerNorm(w)
        self.qkv, self.out = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.linear1, self.linear2 = nn.Linear(w, 4 * w), nn.Linear(4 * w, w)

    def forward(self, x):
        n, length, w = x.shape
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(w, 2))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, w))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, tokens, w, heads, layers, length):
        super().__init__()
        self.token, self.position = nn.Embedding(tokens, w), nn.Embedding(length, w)
        self.layers = nn.Sequential(*(Layer(w, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(w), nn.Linear(w, tokens)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device)))))


@case("GPT-2 124M, batch 8x1024, float16 autocast, AdamW")
def gpt(variant):
    tokens, n, length = size(50304, 100), size(8, 2), size(1024, 16)
    net = GPT(tokens, size(768, 32), size(12, 2), size(12, 2), length)
    return training(variant, net, adam(variant, torch.optim.AdamW, 1e-4), labels(tokens, n, length),
                    labels(tokens, n * length), torch.float16)


def graphed(step):
    """The whole step as one graph, captured after it has run on another stream, as PyTorch's notes on graphs say."""
    if not gpu:
        raise RuntimeError("graphs need a GPU")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = step()

    def replay(step=step, kept=kept):       # what the graph works on lives as long
        graph.replay()
    return replay


def made(make, variant):
    with torch.device(device):                  # not for longer: it costs time at each call
        step = make(variant)
    if variant == "graph":
        step = graphed(step)
    for _ in range(warm):
        step()
    return step


def span(n, fn):
    """Milliseconds of n calls."""
    if not gpu:
        t = time.perf_counter()
        for _ in range(n):
            fn()
        return (time.perf_counter() - t) * 1e3
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    a.record()
    for _ in range(n):
        fn()
    b.record()
    b.synchronize()
    return a.elapsed_time(b)


def measure(fn):
    for _ in range(warm):
        fn()
    alone = sorted(span(1, fn) for _ in range(calls))
    return alone[(len(alone) - 1) // 2], span(calls, fn) / calls


def clean():
    gc.collect()
    if gpu:
        torch.cuda.empty_cache()


def rounds_of(name, make):
    steps = {}
    torch.compiler.reset()                   # its limits of recompilation count over all cases
    if wait:
        print("ready", flush=True)
    for _ in range(int(options["rounds"])):
        if wait and not sys.stdin.readline():
            sys.exit()
        for variant in ("eager", "compile", "graph"):
            stream = torch.cuda.current_stream() if gpu else None
            try:
                if variant not in steps:
                    steps[variant] = None    # one that has failed isn't tried again
                    steps[variant] = made(make, variant)
                if steps[variant]:
                    alone, row = measure(steps[variant])
                    print(f"{name}\t{variant}\t{alone:.6g}\t{row:.6g}", flush=True)
            except Exception as e:
                if gpu:
                    torch.cuda.set_stream(stream)
                steps[variant] = None
                text = " ".join((str(e).strip() or "no text").split())
                print(f"{name}\t{variant}\terror {type(e).__name__}: {text[:300]}", flush=True)
            clean()
        if wait:
            print("done", flush=True)


if gpu and not torch.cuda.is_available():
    sys.exit("no GPU")
print(f"#\tPyTorch {torch.__version__}", flush=True)
for name, make in cases.items():
    if options["only"] in name:
        rounds_of(name, make)
        clean()
