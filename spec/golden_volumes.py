"""Part of make_golden.py, which runs it: layers over three dims."""

V = lambda *s, salt=0, dt=f64: values(s, dt, salt=salt)
for kw in [{}, {"stride": 2, "padding": 1}, {"stride": (1, 2, 1), "padding": (2, 0, 1), "dilation": (2, 1, 2)}, {"padding": "same", "dilation": (1, 2, 1)}]:
    lo = {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}
    for dt in FLOATS[:2]:
        add("conv3d", lambda x, w, b: F.conv3d(x, w, b, **kw), [V(2, 2, 4, 5, 6, dt=dt), V(3, 2, 2, 3, 2, salt=1, dt=dt), V(3, dt=dt)], opts=lo, check_grad=kw == {})
add("conv3d", lambda x, w: F.conv3d(x, w, groups=2), [V(4, 3, 4, 3), V(4, 2, 3, 2, 1, salt=1)], args=["$1", "$2"], opts={"groups": 2})
add("conv3d", lambda x, w: F.conv3d(x, w, groups=2, padding=1), [V(1, 4, 2, 3, 2), V(2, 2, 3, 3, 3, salt=1)], args=["$1", "$2"], opts={"groups": 2, "padding": 1})
for kw in [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"stride": (1, 2, 1), "dilation": (2, 1, 1), "padding": (1, 0, 0)}]:
    lo = {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}
    for dt in FLOATS[:2]:
        add("conv_transpose3d", lambda x, w, b: F.conv_transpose3d(x, w, b, **kw), [V(2, 2, 3, 2, 3, dt=dt), V(2, 3, 2, 3, 2, salt=1, dt=dt), V(3, dt=dt)], opts=lo, check_grad=kw == {})
add("conv_transpose3d", lambda x, w: F.conv_transpose3d(x, w, groups=2), [V(4, 2, 2, 3), V(4, 1, 3, 2, 1, salt=1)], args=["$1", "$2"], opts={"groups": 2})

cube = torch.randperm(2 * 2 * 5 * 6 * 4, generator=torch.Generator().manual_seed(3)).reshape(2, 2, 5, 6, 4)      # no equal maxima
for dt in FLOATS[:2]:
    z = cube.to(dt)
    add("max_pool3d", lambda x: F.max_pool3d(x, 2), [z], args=["$1", 2], check_grad=False)
    add("max_pool3d", lambda x: F.max_pool3d(x, (3, 2, 2), stride=(2, 1, 2), padding=1, ceil_mode=True), [z], args=["$1", [3, 2, 2]], opts={"stride": [2, 1, 2], "padding": 1, "ceil_mode": True}, check_grad=False)
    add("max_pool3d", lambda x: F.max_pool3d(x, 2, 1, 0, (2, 3, 1), return_indices=True), [z], args=["$1", 2, 1, 0, [2, 3, 1]], opts={"return_indices": True}, out_index=[2], check_grad=False)
    add("avg_pool3d", lambda x: F.avg_pool3d(x, 2), [V(1, 2, 4, 5, 4, dt=dt)], args=["$1", 2])
    for pad in (True, False):
        add("avg_pool3d", lambda x: F.avg_pool3d(x, 3, 2, 1, True, pad), [V(1, 2, 4, 6, 5, dt=dt)], args=["$1", 3, 2, 1], opts={"ceil_mode": True, "count_include_pad": pad}, check_grad=False)
    add("avg_pool3d", lambda x: F.avg_pool3d(x, (2, 1, 2), divisor_override=3), [V(2, 4, 2, 4, dt=dt)], args=["$1", [2, 1, 2]], opts={"divisor_override": 3})
    add("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), [V(1, 2, 5, 4, 3, dt=dt)], args=["$1", [2, 3, 1]])
    add("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (2, 3, 1), return_indices=True), [z], args=["$1", [2, 3, 1]], opts={"return_indices": True}, out_index=[2], check_grad=False)
    add("lp_pool1d", lambda x: F.lp_pool1d(x, 2, 2), [V(1, 2, 6, dt=dt)], args=["$1", 2, 2])
    add("lp_pool3d", lambda x: F.lp_pool3d(x, 2, 2), [V(1, 2, 4, 2, 4, dt=dt)], args=["$1", 2, 2])
line, at = F.max_pool1d(V(2, 3, 8), 2, return_indices=True)
add("max_unpool1d", lambda x, i: F.max_unpool1d(x, i, 2), [line, at], args=["$1", "$2", 2], index=[2]); add("max_unpool1d", lambda x, i: F.max_unpool1d(x, i, 2, output_size=(9,)), [line, at], args=["$1", "$2", 2], opts={"output_size": [9]}, index=[2])
small = F.max_pool3d(cube.double(), 2, return_indices=True)[1]
add("max_unpool3d", lambda x, i: F.max_unpool3d(x, i, 2, output_size=(5, 6, 4)), [V(2, 2, 2, 3, 2), small], args=["$1", "$2", 2], opts={"output_size": [5, 6, 4]}, index=[2])

for mode in ("nearest", "nearest-exact", "trilinear", "area"):
    for kw in [{"size": (3, 5, 2)}, {"scale_factor": 1.7}] + ([{"size": (3, 2, 6), "align_corners": True}] if mode[0] == "t" else []):
        lo = {k: list(v) if isinstance(v, tuple) else v for k, v in kw.items()}
        add("interpolate", lambda x: F.interpolate(x, mode=mode, **kw), [V(1, 2, 2, 3, 4)], opts={"mode": mode, **lo})
add("interpolate", lambda x: F.interpolate(x, size=3, mode="area"), [V(1, 2, 7)], opts={"mode": "area", "size": 3}); add("interpolate", lambda x: F.interpolate(x, size=(3, 2), mode="area"), [V(1, 2, 7, 5)], opts={"mode": "area", "size": [3, 2]})
