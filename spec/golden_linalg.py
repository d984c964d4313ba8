"""Part of make_golden.py, which runs it: linear algebra. Vectors are compared without their signs, which nobody promises."""
import math

la = torch.linalg


def matrices(shape, dtype, salt=0):
    """Of full rank, which make_golden's values, samples of one sine, are not."""
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(salt + 7))


def sign_and_log(x):
    sign, log = la.slogdet(x)
    return sign.detach(), log


def spd(*shape, dtype=f64):
    """Positive-definite matrices."""
    x = matrices(shape, dtype)
    return x @ x.transpose(-2, -1) + shape[-1] * torch.eye(shape[-1], dtype=dtype)


def factor_and_info(f):
    return lambda *args: (f(*args)[0], f(*args)[1].long())


def lua(body):
    return "(function() local L = require('tycho').linalg " + body + " end)()"


for dt in (torch.float64, torch.float32):
    A, B = matrices((2, 3, 3), dt) + 3 * torch.eye(3, dtype=dt), matrices((2, 3, 2), dt, salt=1)
    add("linalg.cholesky", la.cholesky, [spd(2, 3, 3, dtype=dt)], check_grad=False)
    add("linalg.cholesky", lambda x: la.cholesky(x, upper=True), [spd(4, 4, dtype=dt)], opts={"upper": True}, check_grad=False)
    add("linalg.cholesky_ex", factor_and_info(la.cholesky_ex), [spd(2, 3, 3, dtype=dt)], check_grad=False)
    add("linalg.cholesky_ex", lambda x: la.cholesky_ex(x)[1].long(), [spd(2, 3, 3, dtype=dt) * torch.tensor([1., -1]).to(dt)[:, None, None]], call=lua("local _, info = L.cholesky_ex(x) return info"), grad=False)
    add("linalg.solve_ex", factor_and_info(la.solve_ex), [A, B]); add("linalg.inv_ex", factor_and_info(la.inv_ex), [A])
    add("linalg.lu_factor_ex", lambda x: (la.lu_factor(x)[0], la.lu_factor(x)[1].long(), la.lu_factor_ex(x)[2].long()), [A])
    add("linalg.solve", la.solve, [A, B]); add("linalg.solve", la.solve, [A[0], B])
    add("linalg.solve", la.solve, [A, B[:, :, 0]]); add("linalg.solve", la.solve, [A[0], B[0, :, 0]])
    add("linalg.solve", lambda a, b: la.solve(a, b, left=False), [A, B.transpose(1, 2)], opts={"left": False})
    for upper in (False, True):
        for unit in (False, True):
            add("linalg.solve_triangular", lambda a, b: la.solve_triangular(a, b, upper=upper, unitriangular=unit), [A, B], opts={"upper": upper, "unitriangular": unit})
        add("linalg.solve_triangular", lambda a, b: la.solve_triangular(a, b, upper=upper, left=False), [A, B.transpose(1, 2)], opts={"upper": upper, "left": False})
        add("cholesky_inverse", lambda l: torch.cholesky_inverse(l, upper), [la.cholesky(spd(3, 3, dtype=dt), upper=upper)], args=["$1", upper], grad=False)          # PyTorch's gradient is of both triangles
        add("cholesky_solve", lambda b, l: torch.cholesky_solve(b, l.detach(), upper), [B[0], la.cholesky(spd(3, 3, dtype=dt), upper=upper)], args=["$1", "$2", upper], check_grad=False)
    for left, adjoint in ((True, False), (True, True), (False, False)):
        add("linalg.lu_solve", lambda a, b: la.lu_solve(*la.lu_factor(a), b, left=left, adjoint=adjoint), [A, B if left else B.transpose(1, 2)],
            call=lua("local lu, p = L.lu_factor(x) return L.lu_solve(lu, p, i, {left = %s, adjoint = %s})" % (str(left).lower(), str(adjoint).lower())))
    add("linalg.inv", la.inv, [A]); add("linalg.det", la.det, [A]); add("linalg.det", la.det, [-A[0]])
    add("linalg.slogdet", sign_and_log, [A]); add("linalg.slogdet", sign_and_log, [-A]); add("logdet", torch.logdet, [A])
    add("linalg.slogdet", sign_and_log, [torch.zeros(2, 2, dtype=dt)], grad=False)
    add("linalg.eigvalsh", la.eigvalsh, [spd(2, 3, 3, dtype=dt)], check_grad=False)
    add("linalg.eigvalsh", lambda x: la.eigvalsh(x, UPLO="U"), [matrices((4, 4), dt)], opts={"UPLO": "U"}, grad=False)
    add("linalg.eigh", lambda x: (la.eigh(x)[0], la.eigh(x)[1].abs()), [spd(2, 3, 3, dtype=dt)], call=lua("local w, v = L.eigh(x) return w, v:abs()"), check_grad=False)
    for shape in ((2, 4, 3), (3, 4), (3, 3)):
        x = matrices(shape, dt)
        add("linalg.svdvals", la.svdvals, [x])
        add("linalg.svd", lambda x: tuple(t.abs() for t in la.svd(x, full_matrices=False)), [x], call=lua("local u, s, v = L.svd(x, false) return u:abs(), s, v:abs()"))
        add("svd", lambda x: tuple(t.abs() for t in torch.svd(x)), [x], call=lua("local u, s, v = x:svd() return u:abs(), s, v:abs()"))
        add("linalg.qr", lambda x: tuple(t.abs() for t in la.qr(x)), [x], call=lua("local q, r = L.qr(x) return q:abs(), r:abs()"))
        add("linalg.lu", la.lu, [x]); add("linalg.lu_factor", lambda x: (la.lu_factor(x)[0], la.lu_factor(x)[1].long()), [x])
        add("lu_unpack", lambda x: torch.lu_unpack(*la.lu_factor(x)), [x], call="(function() local t = require('tycho') return t.lu_unpack(t.linalg.lu_factor(x)) end)()")
        add("linalg.pinv", la.pinv, [x]); add("linalg.matrix_rank", la.matrix_rank, [x], grad=False); add("linalg.cond", la.cond, [x])
        for ord in ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2):
            add("linalg.matrix_norm", lambda x: la.matrix_norm(x, ord), [x], args=["$1", {math.inf: "inf", -math.inf: "-inf"}.get(ord, ord)])
    add("linalg.qr", lambda x: la.qr(x, mode="r")[1].abs(), [matrices((4, 3), dt)], call="require('tycho').linalg.qr(x, 'r'):abs()", grad=False)
    add("linalg.qr", lambda x: tuple(t.abs() for t in la.qr(x, mode="complete")), [matrices((2, 4), dt)], call=lua("local q, r = L.qr(x, 'complete') return q:abs(), r:abs()"))
    add("linalg.lstsq", lambda a, b: la.lstsq(a, b).solution, [matrices((4, 3), dt), matrices((4, 2), dt, salt=2)]); add("linalg.lstsq", lambda a, b: la.lstsq(a, b).solution, [matrices((2, 2, 4), dt), matrices((2, 2, 1), dt, salt=2)])
    add("linalg.matrix_exp", la.matrix_exp, [matrices((2, 3, 3), dt)]); add("linalg.matrix_exp", la.matrix_exp, [matrices((3, 3), dt) / 10])
add("linalg.matrix_norm", lambda x: la.matrix_norm(x, "nuc", dim=(0, 2), keepdim=True), [matrices((3, 2, 4), f64)], args=["$1", "nuc", [1, 3]], opts={"keepdim": True})
add("linalg.matrix_norm", lambda x: la.matrix_norm(x, 1, dim=(2, 0)), [matrices((3, 2, 4), f64)], args=["$1", 1, [3, 1]])
add("linalg.matrix_norm", lambda x: la.matrix_norm(x, -math.inf, dim=(2, 0), keepdim=True), [matrices((3, 2, 4), f64)], args=["$1", "-inf", [3, 1]], opts={"keepdim": True})
add("linalg.matrix_rank", lambda x: la.matrix_rank(x, atol=1.5), [matrices((3, 3), f64)], opts={"atol": 1.5}, grad=False); add("linalg.matrix_rank", lambda x: la.matrix_rank(x, rtol=0.5), [matrices((3, 3), f64)], opts={"rtol": 0.5}, grad=False)
add("linalg.pinv", lambda x: la.pinv(x, rtol=0.5), [matrices((3, 3), f64)], opts={"rtol": 0.5}, grad=False)
add("pinverse", lambda x: torch.pinverse(x, rcond=1e-3), [matrices((3, 4), f64)], opts={"rcond": 1e-3}); add("pinverse", lambda x: torch.pinverse(x, rcond=0.5), [matrices((3, 4), f64)], args=["$1", 0.5], grad=False)
add("linalg.cond", lambda x: la.cond(x, "fro"), [matrices((3, 3), f64)], args=["$1", "fro"], grad=False); add("linalg.cond", lambda x: la.cond(x, -2), [matrices((3, 3), f64)], args=["$1", -2])
add("linalg.norm", la.norm, [matrices((3, 2, 4), f64)]); add("linalg.norm", lambda x: la.norm(x, 3, dim=1), [matrices((3, 2), f64)], args=["$1", 3, 2]); add("linalg.norm", lambda x: la.norm(x, "nuc"), [matrices((3, 2), f64)], args=["$1", "nuc"])
add("linalg.norm", lambda x: la.norm(x, math.inf), [matrices((3,), f64)], args=["$1", "inf"]); add("linalg.norm", lambda x: la.norm(x, 1, (1, 2), True), [matrices((3, 2, 4), f64)], args=["$1", 1, [2, 3], True])
add("linalg.vector_norm", la.vector_norm, [matrices((3, 2), f64)]); add("linalg.vector_norm", lambda x: la.vector_norm(x, 1, 0, True), [matrices((3, 2), f64)], args=["$1", 1, 1, True])
for dt in (torch.float64, torch.float32):
    x = matrices((6, 2, 3), dt)
    add("linalg.tensorinv", lambda x: la.tensorinv(x, ind=1), [x], args=["$1", 1]); add("linalg.tensorinv", la.tensorinv, [matrices((2, 3, 3, 2), dt)]) if dt == f64 else None
    add("linalg.tensorsolve", la.tensorsolve, [matrices((2, 3, 6), dt), matrices((2, 3), dt, salt=1)]); add("linalg.tensorsolve", lambda a, b: la.tensorsolve(a, b, dims=(0, 2)), [matrices((2, 4, 2), dt), matrices((4,), dt, salt=1)], args=["$1", "$2", [1, 3]])
    add("linalg.householder_product", la.householder_product, [matrices((2, 4, 3), dt), matrices((2, 3), dt, salt=1)]); add("linalg.householder_product", la.householder_product, [matrices((3, 3), dt), matrices((2,), dt, salt=1)])
    add("linalg.vander", la.vander, [R(3).to(dt)]); add("linalg.vander", lambda x: la.vander(x, N=4), [R(2, 3).to(dt)], opts={"n": 4})
add("linalg.vander", la.vander, [torch.tensor([1, 2, -3])], grad=False)
for dt in (torch.float32,):
    x, scale, zero = R(3, 4).to(dt) * 3, torch.tensor([0.1, 0.25, 0.5, 0.3]), torch.tensor([0, 1, 3, 2], dtype=torch.int32)
    add("fake_quantize_per_tensor_affine", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7), [x], args=["$1", 0.1, 3, -8, 7], check_grad=False)
    add("fake_quantize_per_tensor_affine", lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, s.detach(), z, 0, 15), [x, torch.tensor(0.25), torch.tensor(4, dtype=torch.int32)], args=["$1", "$2", "$3", 0, 15], grad=False)
    add("fake_quantize_per_channel_affine", lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s.detach(), z, 1, 0, 15), [x, scale, zero], args=["$1", "$2", "$3", 2, 0, 15], grad=False)
add("linalg.diagonal", la.diagonal, [R(2, 3, 4)]); add("linalg.diagonal", lambda x: la.diagonal(x, offset=-1), [R(2, 3, 3)], args=["$1", {"offset": -1}])
add("linalg.diagonal", lambda x: la.diagonal(x, dim1=0, dim2=2), [R(2, 3, 4)], args=["$1", {"dim1": 1, "dim2": 3}])
add("linalg.vecdot", la.vecdot, [R(3, 4), R(3, 4, salt=1)]); add("linalg.vecdot", lambda a, b: la.vecdot(a, b, dim=0), [R(3, 4), R(3, 4, salt=1)], args=["$1", "$2", 1])
M1, M2, M3 = R(2, 5), R(5, 3, salt=1), R(3, 4, salt=2)
add("linalg.multi_dot", lambda a, b, c: la.multi_dot([a, b, c]), [M1, M2, M3], args=[["$1", "$2", "$3"]]); add("linalg.multi_dot", lambda a, b, c: la.multi_dot([a, b, c]), [M1[0], M2, M3[:, 0]], args=[["$1", "$2", "$3"]])
add("gradient", lambda x: torch.gradient(x), [R(3, 4)]); add("gradient", lambda x: torch.gradient(x, spacing=0.5, dim=(2, 1), edge_order=2), [R(2, 5, 3)], opts={"spacing": 0.5, "dim": [3, 2], "edge_order": 2})
for edge in (1, 2):
    add("gradient", lambda x: torch.gradient(x, spacing=[2.0, 0.25], edge_order=edge), [R(3, 4)], opts={"spacing": [2.0, 0.25], "edge_order": edge})
    add("gradient", lambda x: torch.gradient(x, spacing=(torch.tensor([0, 0.5, 2], dtype=f64), torch.tensor([-1, 0, 1, 4], dtype=f64)), edge_order=edge), [R(3, 4)], call=lua("local tycho = require 'tycho' local function at(v) return tycho.tensor(v, {dtype = 'float64', device = x.device}) end return unpack(tycho.gradient(x, {spacing = {at {0, 0.5, 2}, at {-1, 0, 1, 4}}, edge_order = %d}))" % edge))
add("trapezoid", torch.trapezoid, [R(3, 4)]); add("trapezoid", lambda y: torch.trapezoid(y, dx=0.5, dim=0), [R(3, 4)], opts={"dx": 0.5, "dim": 1})
add("trapezoid", torch.trapezoid, [R(3, 4), R(4, salt=1)]); add("trapezoid", lambda y, x: torch.trapezoid(y, x, dim=0), [R(3, 4), R(3, 4, salt=1)], args=["$1", "$2", 1]); add("trapezoid", lambda y, x: torch.trapezoid(y, x, dim=0), [R(3, 4), R(3, salt=1)], args=["$1", "$2", 1])
