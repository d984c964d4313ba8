"""Part of make_golden.py, which runs it: Fourier transforms. Complex numbers as pairs, in and out."""
pairs, whole = torch.view_as_real, torch.view_as_complex
fft = torch.fft


def out(fn):
    """fn's result as pairs, where it is complex."""
    def call(*tensors):
        y = fn(*tensors)
        return pairs(y) if y.is_complex() else y
    return call


for dt in (torch.float64, torch.float32):
    for n in (1, 2, 7, 8, 17, 19 * 2, 11 * 13):                  # with and without factors above 13, odd and even
        z, x, h = values((3, n, 2), dt), values((3, n), dt), values((3, n // 2 + 1, 2), dt)
        for norm in ("backward", "ortho", "forward") if n == 8 else ("backward",):
            o = {"norm": norm} if n == 8 else {}
            add("fft.fft", out(lambda z: fft.fft(whole(z), norm=norm)), [z], opts=o, check_grad=n < 12)
            add("fft.ifft", out(lambda z: fft.ifft(whole(z), norm=norm)), [z], opts=o, check_grad=n < 12)
            add("fft.rfft", out(lambda x: fft.rfft(x, norm=norm)), [x], opts=o, check_grad=n < 12)
            add("fft.irfft", out(lambda h: fft.irfft(whole(h), n, norm=norm)), [h], args=["$1", n], opts=o, check_grad=n < 12)
for norm in ("backward", "ortho", "forward"):
    add("fft.hfft", out(lambda h: fft.hfft(whole(h), 9, 0, norm)), [R(5, 3, 2)], args=["$1", 9, 1, norm])
    add("fft.ihfft", out(lambda x: fft.ihfft(x, norm=norm).resolve_conj()), [R(3, 8)], opts={"norm": norm})
add("fft.hfft", out(lambda h: fft.hfft(whole(h))), [R(3, 5, 2)])
for norm in ("backward", "ortho", "forward"):
    o = {"norm": norm}
    add("fft.hfftn", out(lambda h: fft.hfftn(whole(h), norm=norm)), [R(3, 4, 2)], opts=o); add("fft.hfftn", out(lambda h: fft.hfftn(whole(h), (2, 7), (2, 0), norm)), [R(4, 2, 3, 2)], args=["$1", [2, 7], [3, 1], norm])
    add("fft.hfft2", out(lambda h: fft.hfft2(whole(h), norm=norm)), [R(2, 3, 4, 2)], opts=o); add("fft.ihfft2", out(lambda x: fft.ihfft2(x, norm=norm).resolve_conj()), [R(2, 3, 6)], opts=o)
    add("fft.ihfftn", out(lambda x: fft.ihfftn(x, norm=norm).resolve_conj()), [R(3, 6)], opts=o); add("fft.ihfftn", out(lambda x: fft.ihfftn(x, (2, 5), (2, 0), norm).resolve_conj()), [R(4, 2, 3)], args=["$1", [2, 5], [3, 1], norm])
for n in (3, 9):                                            # cut, filled up; along another dim
    add("fft.fft", out(lambda z: fft.fft(whole(z), n, 0)), [R(5, 4, 2)], args=["$1", n, 1])
    add("fft.ifft", out(lambda z: fft.ifft(whole(z), n, -2)), [R(5, 4, 2)], args=["$1", n, -2])
    add("fft.rfft", out(lambda x: fft.rfft(x, n, 0)), [R(5, 4)], args=["$1", n, 1])
    add("fft.irfft", out(lambda h: fft.irfft(whole(h), n, 0)), [R(5, 4, 2)], args=["$1", n, 1])
add("fft.irfft", out(lambda h: fft.irfft(whole(h))), [R(3, 5, 2)])
add("fft.rfft", out(fft.rfft), [values((2, 5), torch.int64)])
add("fft.rfft", out(fft.rfft), [values((1, 4100), torch.float32) / 30], grad=False)       # more than a block of a GPU takes
add("fft.fft", out(lambda z: fft.fft(whole(z))), [values((1, 2100, 2), torch.float32) / 30], grad=False)

for name in ("fft", "ifft", "rfft", "irfft"):
    of = whole if name != "rfft" else lambda x: x
    x = R(2, 3, 4, 2) if name != "rfft" else R(2, 3, 4)
    for many in ("2", "n"):
        fn = getattr(fft, name + many)
        add("fft." + name + many, out(lambda z: fn(of(z))), [x])
        add("fft." + name + many, out(lambda z: fn(of(z), (4, 5))), [x], args=["$1", [4, 5]])
        add("fft." + name + many, out(lambda z: fn(of(z), None, (2, 0), "ortho")), [x], args=["$1", None, [3, 1], "ortho"])

for n in (1, 6, 7):
    add("fft.fftfreq", lambda: fft.fftfreq(n, 0.5), [], args=[n, 0.5])
    add("fft.rfftfreq", lambda: fft.rfftfreq(n, dtype=f64), [], args=[n], opts={"dtype": "float64"})
    for periodic in (True, False):
        for window in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
            add(window + "_window", lambda: getattr(torch, window + "_window")(n, periodic), [], args=[n, periodic])
        add("kaiser_window", lambda: torch.kaiser_window(n, periodic, 3.5, dtype=f64), [], args=[n, periodic, 3.5], opts={"dtype": "float64"})
        if not hasattr(torch, "signal") or n == 1:              # PyTorch 1.13 has none; some divide by 0 there
            continue
        W = torch.signal.windows
        for window, o in (("hann", {}), ("hamming", {}), ("blackman", {}), ("bartlett", {}), ("nuttall", {}), ("cosine", {}), ("kaiser", {}),
                          ("kaiser", {"beta": 5.0}), ("gaussian", {"std": 1.7}), ("exponential", {"tau": 2.5}),
                          ("general_hamming", {"alpha": 0.6}), ("general_cosine", {"a": [0.3, 0.4, 0.2]})):
            add("signal.windows." + window, lambda: getattr(W, window)(n, sym=not periodic, dtype=f64, **o), [], args=[n],
                opts=dict(o, sym=not periodic, dtype="float64"))
        if periodic:
            add("signal.windows.exponential", lambda: W.exponential(n, center=1.0, sym=False, dtype=f64), [], args=[n],
                opts={"center": 1, "sym": False, "dtype": "float64"})
add("fft.fftshift", lambda x: fft.fftshift(x, (0, 1)), [R(3, 4, 2)], args=["$1", [1, 2]])
add("fft.ifftshift", lambda x: fft.ifftshift(x, 0), [R(3, 4)], args=["$1", [1]])

re, im = R(2, 3, salt=1), R(2, 3, salt=2)
add("fft.complex", out(torch.complex), [re, im])
add("fft.complex", out(lambda x: torch.complex(x, torch.zeros_like(x))), [re])
add("fft.polar", out(torch.polar), [re.abs(), im])
add("fft.abs", lambda z: whole(z).abs(), [R(2, 3, 2)])
add("fft.angle", lambda z: whole(z).angle(), [R(2, 3, 2)])
add("fft.conj", lambda z: pairs(whole(z).conj().resolve_conj()), [R(2, 3, 2)])
add("fft.mul", out(lambda a, b: whole(a) * whole(b)), [R(2, 3, 2), R(3, 2, salt=1)])

win = R(12, d="positive")
for x in (R(2, 40), R(40)):
    add("stft", out(lambda x: torch.stft(x, 16, return_complex=True, window=torch.ones(16, dtype=f64))), [x], args=["$1", 16])
    add("stft", out(lambda x, w: torch.stft(x, 16, 5, 12, w, return_complex=True)), [x, win], args=["$1", 16, 5, 12, "$2"])
add("stft", out(lambda x: torch.stft(x, 15, 4, window=torch.ones(15, dtype=f64), center=False, normalized=True, onesided=False, return_complex=True)), [R(2, 40)],
    args=["$1", 15, 4], opts={"center": False, "normalized": True, "onesided": False})
add("stft", out(lambda x: torch.stft(x, 16, pad_mode="replicate", window=torch.ones(16, dtype=torch.float32), return_complex=True)), [values((2, 40), torch.float32)],
    args=["$1", 16], opts={"pad_mode": "replicate"})
for z in (R(2, 9, 6, 2), R(9, 6, 2)):
    add("istft", lambda z: torch.istft(whole(z), 16, window=torch.ones(16, dtype=f64)), [z], args=["$1", 16])
    add("istft", lambda z, w: torch.istft(whole(z), 16, 5, 12, w, length=28), [z, win], args=["$1", 16, 5, 12, "$2"], opts={"length": 28})
add("istft", lambda z: torch.istft(whole(z), 16, 4, window=torch.ones(16, dtype=f64), center=False, normalized=True, onesided=False), [R(2, 16, 6, 2)],
    args=["$1", 16, 4], opts={"center": False, "normalized": True, "onesided": False})
