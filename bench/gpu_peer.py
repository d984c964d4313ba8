# PyTorch's side of gpu.lua: the same cases in the same order. Prints name, tab, milliseconds.
import sys
import torch
import torch.nn.functional as F

only = sys.argv[1] if len(sys.argv) > 1 else ""
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
dev = dict(device="cuda")
half = dict(device="cuda", dtype=torch.float16)


def time(fn):
    list_ = []
    for _ in range(3):
        fn()
    for _ in range(5):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        a.record()
        for _ in range(20):
            fn()
        b.record()
        b.synchronize()
        list_.append(a.elapsed_time(b) / 20)
    list_.sort()
    return list_[len(list_) // 2]


def case(name, make):
    if only not in name:
        return
    fn = make()
    print(f"{name}\t{time(fn):.6f}", flush=True)
    del fn
    torch.cuda.empty_cache()


def backward(fn, *inputs):
    for x in inputs:
        if x.is_floating_point():
            x.requires_grad_()
    g = []

    def run():
        y = fn(*inputs)
        if not g:
            g.append(torch.ones_like(y))
        for x in inputs:
            x.grad = None
        y.backward(g[0])
    return run


def with_(make, fn):
    def go():
        x = make()
        return lambda: fn(*x)
    return go


N = 64 * 2 ** 20
r = torch.randn
case("copy 256 MB", with_(lambda: (r(N, **dev), torch.empty(N, **dev)), lambda x, y: y.copy_(x)))
case("add 256 MB", with_(lambda: (r(N, **dev), r(N, **dev)), lambda x, y: x + y))
case("gelu 256 MB", with_(lambda: (r(N, **dev),), F.gelu))
case("add 256 MB float16", with_(lambda: (r(2 * N, **half), r(2 * N, **half)), lambda x, y: x + y))
case("sum of 256 MB", with_(lambda: (r(N, **dev),), lambda x: x.sum()))
case("sum of rows 8192x8192", with_(lambda: (r(8192, 8192, **dev),), lambda x: x.sum(1)))
case("sum of columns 8192x8192", with_(lambda: (r(8192, 8192, **dev),), lambda x: x.sum(0)))
case("softmax 8192x8192 float16", with_(lambda: (r(8192, 8192, **half),), lambda x: F.softmax(x, 1)))
norm = lambda: (r(32768, 1024, **half), r(1024, **half), r(1024, **half))
case("layer_norm 32768x1024 float16", with_(norm, lambda x, w, b: F.layer_norm(x, (1024,), w, b)))
case("layer_norm forward and backward", lambda: backward(lambda x, w, b: F.layer_norm(x, (1024,), w, b), *norm()))
case("sum of 1048576 rows of 16", with_(lambda: (r(2**20, 16, **dev),), lambda x: x.sum(1)))
case("softmax of 1048576 rows of 32 float16", with_(lambda: (r(2**20, 32, **half),), lambda x: F.softmax(x, 1)))
case("layer_norm of 262144 rows of 96 float16, both", lambda: backward(
    lambda x, w, b: F.layer_norm(x, (96,), w, b), r(2**18, 96, **half), r(96, **half), r(96, **half)))


def short_entropy():
    y = torch.randint(0, 21, (2**20,), **dev)
    return backward(lambda x: F.cross_entropy(x, y), r(2**20, 21, **dev))


case("cross_entropy of 1048576 rows of 21, both", short_entropy)
case("softmax along the channels of 8x21x512x512", with_(lambda: (r(8, 21, 512, 512, **dev),), lambda x: F.softmax(x, 1)))


def entropy():
    x, y = r(8192, 50304, **half), torch.randint(0, 50304, (8192,), **dev)
    return backward(lambda p: F.cross_entropy(p, y), x)


def embedding():
    ids, w = torch.randint(0, 50304, (32768,), **dev), r(50304, 768, **dev)
    return backward(lambda p: F.embedding(ids, p), w)


case("cross_entropy 8192x50304 float16, both", entropy)
case("embedding backward 32768 of 50304x768", embedding)
case("matmul 4096 float16", with_(lambda: (r(4096, 4096, **half), r(4096, 4096, **half)), torch.matmul))
case("matmul 4096 float32", with_(lambda: (r(4096, 4096, **dev), r(4096, 4096, **dev)), torch.matmul))
case("linear 8192x1024 by 4096 float16, both", lambda: backward(F.linear, r(8192, 1024, **half), r(4096, 1024, **half), r(4096, **half)))
for c, side, o, k, stride in ((64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (256, 56, 128, 1, 2), (128, 28, 128, 3, 1),
                              (256, 14, 256, 3, 1), (512, 7, 512, 3, 1), (1024, 14, 2048, 1, 2)):
    name = f"conv {c}x{side}x{side} to {o}, {k}x{k}/{stride}, 64 images, float16"
    last = torch.channels_last
    make = lambda: (r(64, c, side, side, **half).to(memory_format=last), r(o, c, k, k, **half).to(memory_format=last))
    conv = lambda x, w: F.conv2d(x, w, None, stride=stride, padding=(k - 1) // 2)
    case(name, with_(make, conv))
    case(name + ", both", lambda: backward(conv, *make()))
sees = torch.rand(16, 1, 1, 1024, **dev) > 0.2          # padding
for name, kind, given in (("causal float16", half, {"is_causal": True}), ("dropout float16", half, {"dropout_p": 0.1}),
                          ("mask float16", half, {"attn_mask": sees}), ("float32", dev, {})):
    heads = lambda: tuple(r(16, 16, 1024, 64, **kind) for _ in range(3))
    attend = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **given)
    case(f"attention 16x16x1024x64 {name}", with_(heads, attend))
    case(f"attention {name}, both", lambda: backward(attend, *heads()))
case("attention of one query, 8x32x4096x128 float16",
     with_(lambda: tuple(r(8, 32, length, 128, **half) for length in (1, 4096, 4096)), F.scaled_dot_product_attention))
case("attention of one query, 32 heads of 8, 8x4096x128 float16", with_(
    lambda: (r(8, 32, 1, 128, **half), r(8, 8, 4096, 128, **half), r(8, 8, 4096, 128, **half)),
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)))
case("group_norm(32) 8x320x64x64 float16, both", lambda: backward(
    lambda x, w, b: F.group_norm(x, 32, w, b), r(8, 320, 64, 64, **half), r(320, **half), r(320, **half)))
for c, side in (64, 56), (128, 28), (512, 7):
    case(f"batch_norm 64x{c}x{side}x{side} float16, channels-last, both", lambda: backward(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        r(64, c, side, side, **half).to(memory_format=torch.channels_last), torch.ones(c, **dev), torch.zeros(c, **dev)))
case("sum of columns 131072x64", with_(lambda: (r(131072, 64, **dev),), lambda x: x.sum(0)))


def adamw():
    shapes = [(50304, 768)] + 12 * [(2304, 768), (768, 768), (3072, 768), (768, 3072), (768,), (768,)]
    params = [r(*s, **dev).requires_grad_() for s in shapes]
    for p in params:
        p.grad = torch.randn_like(p)
    opt = torch.optim.AdamW(params, lr=1e-4, fused=True)
    return opt.step


def small_adds():
    x = r(100, **dev)

    def run():
        for _ in range(1000):
            x.add_(1)
    return run


case("AdamW, 124 M parameters", adamw)
case("pinned to device, 256 MB", with_(lambda: (r(N).pin_memory(),), lambda x: x.to("cuda", non_blocking=True)))
case("device to pinned, 256 MB", with_(lambda: (r(N, **dev), torch.empty(N).pin_memory()), lambda x, y: y.copy_(x)))
case("1000 small adds", small_adds)
