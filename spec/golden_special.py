"""Part of make_golden.py, which runs it: special functions, over wide ranges by mpmath."""
import mpmath
mpmath.mp.dps = 40

def exactly(fn, *tensors):               # fn of numbers, by elements
    t = torch.broadcast_tensors(*tensors)
    return torch.tensor([float(fn(*v)) for v in zip(*(x.double().flatten().tolist() for x in t))], dtype=t[0].dtype).reshape(t[0].shape)
def widely(name, fn, *tensors):
    for dt in (f64, torch.float32):
        add(name, lambda *x: exactly(fn, *x).clone(), [x.to(dt) for x in tensors], grad=False)

half = mpmath.mpf(1) / 2
WIDE = torch.tensor([-45.5, -29.75, -12.125, -3, -0.75, -0.0078125, 0, 0.0009765625, 0.5, 1.25, 3.75, 8, 11.9375, 12.0625, 29.875, 30.125, 80])
for n in (0, 1):
    widely("i%d" % n, lambda x: mpmath.besseli(n, x), WIDE)
    widely("i%de" % n, lambda x: mpmath.besseli(n, x) * mpmath.exp(-abs(x)), torch.cat([WIDE, torch.tensor([700.0, 1e6])]))
widely("erfcx", lambda x: mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x), torch.cat([WIDE.clamp(min=-8), torch.tensor([300.0, 1e10])]))
widely("ndtr", lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, WIDE.clamp(-9, 9))
widely("log_ndtr", lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2), torch.cat([WIDE.clamp(max=6), torch.tensor([-1000.0])]))
widely("ndtri", lambda p: -mpmath.sqrt(2) * mpmath.findroot(lambda y: mpmath.erfc(y) - 2 * mpmath.mpf(p), -float(torch.special.ndtri(torch.tensor(p, dtype=f64))) / 2 ** 0.5),
       torch.tensor([2.0 ** -100, 2.0 ** -40, 0.0009765625, 0.0625, 0.1875, 0.5, 0.75, 0.9375, 0.9990234375]))

A = torch.tensor([0.0009765625, 0.0078125, 0.25, 1, 2.5, 19.5, 20.5, 130, 1.0, 4000, 2e5])[:, None]
X = torch.cat([A * f for f in (0.25, 0.9375, 1, 1.0625, 3)], 1)
SMALL = torch.tensor([0.03125, 0.4375, 0.625, 1.0625, 2, 40])
for name, bounds in (("igamma", lambda x: (0, x)), ("igammac", lambda x: (x, mpmath.inf))):
    def regularized(a, x):
        lower = mpmath.hyp1f1(1, a + mpmath.mpf(1), x) * mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + mpmath.mpf(1))) if a < 1000 else mpmath.gammainc(a, 0, x, regularized=True)
        return lower if name == "igamma" else 1 - lower
    with mpmath.workdps(120):
        widely(name, regularized, A, X)
        widely(name, regularized, A[:4], SMALL)
    edge = torch.tensor([0.0, 1, float("inf"), -1, float("nan")])
    add(name, getattr(torch, name), [edge[:4, None], edge[:4]], grad=False)      # of infinity and NaN PyTorch has a number
    for dt in FLOATS[:2]:
        add(name, lambda a, x: getattr(torch, name)(a.detach(), x), [values((2, 3), dt, "positive"), values((2, 3), dt, "positive", 1)], check_grad=False)
    add(name, lambda x: getattr(torch, name)(torch.tensor(2.5, dtype=f64), x), [R(2, 3, d="positive")], args=[2.5, "$1"])
    # the gradient by a, which PyTorch lacks
    class By(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, x): ctx.save_for_backward(a, x); return exactly(regularized, a, x)
        @staticmethod
        def backward(ctx, g):
            a, x = ctx.saved_tensors
            return g * exactly(lambda a, x: mpmath.diff(lambda s: regularized(s, x), a), a, x), None
    add(name, lambda a, x: By.apply(a, x.detach()), [R(2, 3, d="positive"), R(2, 3, d="positive", salt=1)], check_grad=False)
widely("zeta", mpmath.zeta, torch.tensor([1.125, 2, 3.5, 12, 40])[:, None], torch.tensor([0.0078125, 0.5, 1, 7.25, 300, 1e6]))
add("zeta", torch.special.zeta, [torch.tensor([0.5, 1, 2, 3, 2.5, 2]), torch.tensor([2.0, 2, -1, -1.5, -1.5, 1e9])], grad=False)
add("zeta", lambda q: torch.special.zeta(torch.tensor(2.5, dtype=f64), q), [R(2, 3, d="above1")], args=[2.5, "$1"])
for dt in (f64, torch.float32, torch.float16):
    add("ndtr", torch.special.ndtr, [values((2, 3), dt)])
for dt in (torch.float32, f64):
    add("ldexp", torch.ldexp, [values((2, 3), dt), values((3,), torch.int64)])
add("ldexp", torch.ldexp, [values((3,), torch.int64), values((3,), torch.int32)])
add("gcd", torch.gcd, [torch.tensor([0, 12, -18, 7]), torch.tensor([[0], [30]])]); add("lcm", torch.lcm, [torch.tensor([0, 12, -18, 7]), torch.tensor([[0], [30]])])
add("entr", torch.special.entr, [torch.tensor([-1.0, -0.0, 0, 2, float("inf"), float("nan")])], grad=False)
add("xlog1py", torch.special.xlog1py, [torch.tensor([0.0, 0, 0, 1]), torch.tensor([-1.0, float("nan"), -3, -1])], grad=False)
