"""ops.lua's peer: ops_peer.py THREADS TEXT. Prints name, tab, seconds for each case of ops.txt whose name holds the text."""
import os, re, sys, time
import torch
import torch.nn.functional as F

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(1)
t, R, I = torch, torch.randn, torch.randint
x, square = R(1024, 1024), R(256, 256)
E = dict(
    t=t, F=F, x=x, y=R(1024, 1024), z=R(1024, 1024), p=t.rand(1024, 1024) + .1, u=t.rand(1024, 1024), row=R(1024),
    col=R(1024, 1), yt=R(1024, 1024).t(), m=x > 0, xh=x.half(), xb=x.bfloat16(), xd=x.double(),
    xi=I(0, 1001, (1024, 1024)), xi1=I(0, 10, (128, 128)), xd5=R(512, 512).double(), xh5=R(512, 512).half(),
    xu=I(0, 256, (1024, 1024)).byte(), yu=I(0, 256, (1024, 1024)).byte(), rh=R(1, 1024).half(), rb=R(1, 1024).bfloat16(),
    wh=R(4096, 1024).half(), wb=R(4096, 1024).bfloat16(),
    xb5=R(512, 512).bfloat16(), img=R(32, 64, 28, 28), img8=R(8, 16, 56, 56), cols=R(8, 144, 54 * 54),
    rgb=R(8, 3, 112, 112), w7=R(64, 3, 7, 7), ch=R(64), p64=t.rand(64) + .1, w3=R(64, 64, 3, 3), w1=R(64, 64, 1, 1),
    wd=R(64, 1, 3, 3), wd7=R(64, 1, 7, 7), seq=R(32, 64, 256), wc=R(64, 64, 3), vol=R(4, 16, 16, 16, 16), wv=R(16, 16, 3, 3, 3),
    s1=R(64, 128), s2=R(128, 128), r1=R(1, 1024), a3=R(32, 64, 64), b3=R(32, 64, 64), a4=R(256, 8, 8), b4=R(256, 8, 8),
    q=R(8, 8, 128, 64), qb=R(4, 8, 128, 64).bfloat16(), qb5=R(1, 8, 512, 64).bfloat16(), qb1=R(1, 8, 1, 64).bfloat16(),
    ids0=I(0, 1000, (64, 128)), bag0=I(0, 1000, (256, 16)), emb=R(1000, 256),
    perm0=t.randperm(1024), gi0=I(0, 1024, (1024, 1024)), z0=t.zeros(1024, 1024), flat=R(1000000),
    sorted=R(10000).sort()[0], x2=R(1024, 1024), xc=x.clone(), lab0=I(0, 1024, (1024,)), seg=R(4, 21, 64, 64), seglab0=I(0, 21, (4, 64, 64)),
    few=R(128, 10), fewlab0=I(0, 10, (128,)),
    grid=t.rand(8, 56, 56, 2) * 2 - 1, lp=R(50, 16, 30).log_softmax(2), tg0=I(1, 30, (16, 20)), il=t.full((16,), 50),
    tl=t.full((16,), 20), spd=square.mm(square.t()) + t.eye(256) * 10, s3=R(8, 8), s0=R(1).sum(), flat4=R(10000),
    l4=R(4, 256, 1024), zn=t.zeros(500, 64), es=R(2000, 64), ed0=I(0, 500, (2000, 1)).expand(2000, 64))
E["list_"] = E["flat4"].tolist()
FIXED = ("ch", "p64", "u")
now = time.perf_counter


def timed(fn):
    fn()
    last = now()
    fn()
    end = now()
    per, stop, best = max(1, int(.01 / (end - last))), end + .12, 9.
    while True:
        last = now()
        for _ in range(per):
            fn()
        end = now()
        best = min(best, (end - last) / per)
        if end > stop:
            return best


for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.txt")):
    m = re.match(r"^([^#|]+?) \| .+? \| (.+?) \|\s*(\w*)$", line.rstrip("\n"))
    if not m or sys.argv[2] not in m[1]:
        continue
    fn = eval("lambda: " + m[2], E)
    with t.no_grad():
        print(m[1], timed(fn), sep="\t", flush=True)
    if m[3]:
        leaves = [k for k, v in list(E.items())
                  if t.is_tensor(v) and k not in FIXED and v.is_floating_point() and v.is_leaf and re.search(r"\b%s\b" % k, m[2])]
        for k in leaves:
            E[k].requires_grad_()
        g = t.ones_like(fn())

        def both():
            y = fn()
            for k in leaves:
                E[k].grad = None
            y.backward(g)
        print(m[1] + ", both ways", timed(both), sep="\t", flush=True)
        for k in leaves:
            E[k] = E[k].detach()
