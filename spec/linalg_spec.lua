-- Linear algebra beyond golden values: what factors must be, gradients where signs are free, many matrices at once, errors.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails, close = helper.fails, helper.close
local L = tycho.linalg

local f64 = {dtype = "float64"}
local function random(...) return tycho.randn({...}, f64) end
local function T(x) return x:transpose(-2, -1) end
local function eye(n, ...) return tycho.eye(n, f64):expand(..., n, n) end
local function positive(x) return x:matmul(T(x)) + tycho.eye(x:size(-2), {dtype = "float64", device = x.device}) end

describe("linalg", function()
  before_each(function() tycho.manual_seed(11) end)

  it("gives factors that are what they should be, and whose product is the matrix", function()
    for _, size in ipairs {{5, 3}, {3, 5}, {4, 4}} do
      local m, n = unpack(size)
      local x, k = random(2, m, n), math.min(m, n)
      for _, mode in ipairs {"reduced", "complete"} do
        local q, r = L.qr(x, mode)
        close(q:matmul(r), x, "QR")
        close(T(q):matmul(q), eye(q:size(3), 2), "Q is orthonormal")
        assert.is_true(r:tril(-1):eq(0):all():item())
      end
      for _, full in ipairs {true, false} do
        local u, s, v = L.svd(x, full)
        assert.equal(("2x%dx%d 2x%dx%d"):format(m, full and m or k, full and n or k, n), tostring(u.shape) .. " " .. tostring(v.shape))
        close((u[{ {}, {}, {1, k} }] * s:unsqueeze(-2)):matmul(v[{ {}, {1, k}, {} }]), x, "SVD")
        close(T(u):matmul(u), eye(u:size(3), 2), "U is orthonormal")
        close(v:matmul(T(v)), eye(v:size(2), 2), "V is orthonormal")
      end
    end
    local x = positive(random(3, 4, 4))
    local w, v = L.eigh(x)
    close(v * w:unsqueeze(-2), x:matmul(v), "eigenvectors")
    close(T(v):matmul(v), eye(4, 3), "they are orthonormal")
    close(L.matrix_exp(x):logdet(), x:diagonal(0, 2, 3):sum(2), "the determinant of e^x")
  end)

  it("has gradients of first and second order, also where signs are free", function()
    local function check(fn, ...)
      local inputs = {...}
      for _, x in ipairs(inputs) do x:requires_grad_() end
      for _, by in ipairs {"gradcheck", "gradgradcheck"} do assert.is_true(tycho.autograd[by](fn, inputs)) end
    end
    check(function(x) return L.cholesky(positive(x)) end, random(2, 3, 3))
    check(function(x)
      local w, v = L.eigh(positive(x))
      return w, v:abs()
    end, random(3, 3))
    check(function(x) return L.eigvalsh(positive(x), "U") end, random(3, 3))
    check(function(b, l) return tycho.cholesky_solve(b, l) end, random(3, 2), random(3, 3))
    for _, size in ipairs {{4, 3}, {3, 4}, {3, 3}} do
      check(L.qr, random(unpack(size)))
      check(function(x)
        local u, s, v = L.svd(x, false)
        return u:abs(), s, v:abs()
      end, random(unpack(size)))
    end
    fails("has no gradient", function() (L.qr(random(4, 3):requires_grad_(), "complete")):sum():backward() end)
  end)

  it("has finite gradients where values repeat", function()
    local function gradient(fn, x)
      x:requires_grad_()
      return tycho.grad(fn(x):sum(), x)
    end
    for _, fn in ipairs {L.svdvals, L.eigvalsh} do close(gradient(fn, tycho.eye(3, f64)), tycho.eye(3, f64)) end
    close(gradient(L.pinv, tycho.eye(2, f64)), -tycho.ones(2, 2, f64))
    close(gradient(function(x) return L.matrix_norm(x, 2) end, tycho.eye(2, f64) * 2), tycho.eye(2, f64) / 2)
    assert.is_true(tycho.autograd.gradgradcheck(L.pinv, {random(4, 3):requires_grad_()}))
  end)

  it("takes a vector for solve alone", function()
    local a, b = eye(2, 2), tycho.ones(2, 2, f64)
    assert.equal("2x2", tostring(L.solve(a, b).shape))
    assert.equal("2x2x2", tostring(L.solve_triangular(a, b, {upper = true}).shape))
    fails("linalg.solve_triangular: argument 2 must be a matrix", L.solve_triangular, a, tycho.ones(2, f64), {upper = true})
    close(tycho.cholesky_solve {input = b, input2 = tycho.eye(2, f64)}, b)
  end)

  it("does many matrices as it does one", function()
    local x, b = random(500, 8, 8), random(500, 8, 3)
    local y, d = L.solve(x, b), L.det(x)
    local w = L.eigvalsh(positive(x))
    for _, i in ipairs {1, 7, 250, 500} do
      close(y[i], L.solve(x[i], b[i]), "solve")
      close(d:select(1, i), L.det(x[i]), "det")
      close(w[i], L.eigvalsh(positive(x[i])), "eigvalsh")
    end
    x[{333, 2}], x[{490, 1}] = 0, 0
    fails("linalg.solve: matrix 333 of the batch is singular", L.solve, x, b)
  end)

  it("does small matrices in groups as it does each by itself, whatever stands beside it", function()
    for _, dtype in ipairs {"float32", "float64"} do
      for _, n in ipairs(helper.device == "cpu" and {1, 2, 3, 5, 8, 13, 24} or {1, 3, 17}) do
        for _, many in ipairs(helper.device == "cpu" and {1, 7, 8, 16, 37} or {1, 3}) do
          local x = (L.qr(random(many, n, n)) * 1.5):to(dtype)            -- far from singular; its rows must be exchanged
          local b, double = tycho.randn({many, n, 3}, f64):to(dtype), x:double()
          local function alike(got, want, what)
            local off = (got:double() - want):abs():max():item() / want:abs():max():item()
            assert(off < (dtype == "float32" and 1e-5 or 1e-13), ("%s of %d %s matrices of %d: %g"):format(what, many, dtype, n, off))
          end
          local kept, spd = x:clone(), positive(x)
          alike(x:matmul(L.inv(x)), eye(n, many), "inv")
          alike(x:matmul(L.solve(x, b)), b:double(), "solve")
          local l = L.cholesky(spd)
          alike(l:matmul(T(l)), spd:double(), "cholesky")
          assert.is_true(l:triu(1):eq(0):all():item())
          local p, low, up = L.lu(x)
          alike(p:matmul(low):matmul(up), double, "lu")
          local sign, log = L.slogdet(x)
          local one = {}
          for i = 1, many do one[i] = L.det(double:select(1, i)) end
          one = tycho.stack(one)
          alike(L.det(x) / one, tycho.ones(many, f64), "det")
          alike(sign * log:exp() / one, tycho.ones(many, f64), "slogdet")
          assert.is_true(x:equal(kept))
          if many > 1 then
            x[many - 1], x[many] = 0, 0 / 0
            local y, info = L.inv_ex(x)
            assert.is_true(y[1]:equal(L.inv(kept)[1]) and y[many - 1]:isnan():all():item() and y[many]:isnan():all():item())
            assert.same({0, 1}, {info[1], info[many - 1]})
            assert.equal(0, L.det(x)[many - 1])
            fails(("matrix %d of the batch is singular"):format(many - 1), L.solve, x, b)
          end
        end
      end
    end
    for _, v in ipairs {{1e200, 1e200, 1e-200, 1e-200}, {1e-200, 1e-200, 1e200, 1e200}} do       -- whose products leave the range
      assert(math.abs(L.det(tycho.diag(tycho.tensor(v, f64))):item() - 1) < 1e-12)
    end
    assert.equal(0, L.det(tycho.diag(tycho.tensor({1e200, 1e200, 0}, f64))):item())
    assert.equal(0, L.det(tycho.diag(tycho.cat({tycho.full({319}, 20, f64), tycho.zeros(1, f64)}, 1))):item())
    local column = random(320, 320)
    column:select(2, 320):zero_()
    assert.equal(0, L.det(column):item())
    local ones = tycho.ones(300, 300):requires_grad_()
    L.det(ones):backward()
    assert.equal(0, ones.grad:abs():max():item())
    assert.equal(10, L.det(tycho.tensor {{4, 7}, {2, 6}}):item())
    assert.equal(0, L.det(tycho.tensor {{1, 2, 3}, {2, 4, 6}, {1, 0, 1}}):item())
  end)

  if helper.device ~= "cpu" then it("is computed by a GPU, which nothing waits for but errors", function()
    local function all(x, b)
      local sign, log = L.slogdet(x)
      local lu, pivots = L.lu_factor(x)
      local up = (L.cholesky_ex(positive(x)))
      return {L.det(x:detach()), sign, log, lu, pivots, up, (L.inv_ex(x)), (L.solve_ex(x, b)),
        L.solve_triangular(up.mT, b, {upper = true}), L.solve_triangular(x, b, {upper = false, unitriangular = true})}
    end
    for _, size in ipairs {{2, 3, 1}, {1, 20, 100}, {2, 70, 3}, {1, 256, 1}} do
      local many, n, more = unpack(size)
      local x = (L.qr(random(many, n, n)) * 1.2):requires_grad_()
      local b = random(many, n, more)
      local waits = tycho.cuda.sync_count()
      local results = all(x, b)
      tycho.grad({results[3]:sum() + results[7]:sum() + results[8]:sum()}, {x})
      assert.equal(waits, tycho.cuda.sync_count())
      for i, want in ipairs(all(x:cpu(), b:cpu())) do close(results[i]:cpu(), want, ("result %d of %d rows"):format(i, n), 1e-9, 1e-9) end
    end
    local large = (L.qr(random(257, 257)))
    close(L.inv(large), T(large), "by the CPU", 1e-9, 1e-9)
    local f = tycho.compile(function(x) return (select(2, L.slogdet(x))), (L.cholesky(positive(x))) end)
    for i = 1, 6 do
      local x = random(3, 4, 4)
      local log, factor = f(x)
      close(log, (select(2, L.slogdet(x))), "compiled call " .. i)
      close(factor, L.cholesky(positive(x)))
    end
    assert.is_true(f:report()[1].compiled)
  end) end

  it("takes empty matrices", function()
    assert.equal(1, L.det(tycho.zeros(0, 0)):item())
    assert.equal("2x0x0", tostring(L.inv(tycho.zeros(2, 0, 0)).shape))
    assert.equal("0", tostring(L.svdvals(tycho.zeros(3, 0)).shape))
    assert.is_true((L.qr(tycho.zeros(3, 0), "complete")):equal(tycho.eye(3)))
    assert.equal("3x0", tostring(L.pinv(tycho.zeros(0, 3)).shape))
    assert.equal(0, L.matrix_rank(tycho.zeros(0, 3)):item())
    assert.equal("0x3", tostring(L.eigvalsh(tycho.zeros(0, 3, 3)).shape))
  end)

  it("tells which matrices have no factors, without an error", function()
    local x = tycho.tensor {{{4, 0}, {0, 9}}, {{1, 0}, {0, -1}}, {{-1, 0}, {0, 1}}}
    local l, info = L.cholesky_ex(x)
    assert.same({0, 2, 1}, info:totable())
    assert.same({{2, 0}, {0, 3}}, l[1]:totable())
    assert.equal("int64", info.dtype)
    local up = L.cholesky_ex(tycho.tensor {{4, 2}, {2, 9}}, {upper = true})
    assert.equal(0, up[{2, 1}])
    assert.is_true(tycho.autograd.gradcheck(function(v) return (L.cholesky_ex(v:matmul(v.mT) + tycho.eye(3, f64))) end,
      {tycho.randn(2, 3, 3, f64):requires_grad_()}))
    local pair = tycho.stack {tycho.ones(2, 2), tycho.eye(2) * 2}
    local inverse, of = L.inv_ex(pair)
    assert.same({2, 0}, of:totable())
    assert.is_true(inverse[1]:isnan():all():item())
    assert.same({{0.5, 0}, {0, 0.5}}, inverse[2]:totable())
    local solved, at = L.solve_ex(tycho.stack {tycho.zeros(2, 2), tycho.eye(2)}, tycho.ones(2, 2))
    assert.same({1, 0}, at:totable())
    assert.same({1, 1}, solved[2]:totable())
    local function u_zero(m) return (select(3, L.lu_factor_ex(m))) end
    assert.same({2, 0}, u_zero(tycho.stack {tycho.ones(3, 3), tycho.eye(3)}):totable())
    assert.equal(2, u_zero(tycho.ones(2, 3)):item())
    assert.equal(1, u_zero(tycho.zeros(3, 2)):item())
    assert.same({0, 0}, (select(2, L.inv_ex(tycho.zeros(2, 0, 0)))):totable())
    assert.equal(2, (select(2, L.solve_ex(tycho.ones(2, 2), tycho.ones(2, 0)))):item())
    local a = tycho.tensor({{{1, 2}, {2, 4}}, {{2, 0}, {0, 2}}}, {requires_grad = true})
    L.inv_ex(a)[2]:sum():backward()
    assert.is_true(a.grad[1]:isnan():all():item())
    assert.same({{-0.25, -0.25}, {-0.25, -0.25}}, a.grad[2]:totable())
    fails("linalg.cholesky_ex: matrix 2 of the batch is not positive-definite", L.cholesky_ex, x, {check_errors = true})
    fails("linalg.inv_ex: matrix 1 of the batch is singular", L.inv_ex, pair, {check_errors = true})
    fails("linalg.lu_factor_ex: argument 1 has a singular matrix", L.lu_factor_ex, pair, {check_errors = true})
  end)

  it("says what is wrong", function()
    fails("linalg.cholesky: the matrix is not positive-definite (its leading minor of order 2)", L.cholesky, tycho.tensor {{1, 0}, {0, -1}})
    fails("linalg.solve: the matrix is singular", L.solve, tycho.ones(2, 2), tycho.ones(2))
    fails("linalg.inv: argument 1 must be square, got shape 2x3", L.inv, tycho.ones(2, 3))
    fails("linalg.solve: arguments 1 and 2 have shapes 2x2 and 3x1; for each matrix argument 2 must have 2 rows",
      L.solve, tycho.ones(2, 2), tycho.ones(3, 1))
    fails("linalg.eigh: argument 1 has elements that are infinite or NaN", L.eigh, tycho.full({2, 2}, 0 / 0))
    fails("linalg.svd: argument 1 has elements that are infinite or NaN", L.svdvals, tycho.full({2, 2}, 1 / 0))
    fails("linalg.cholesky: argument 1 has dtype float16; it must be float32 or float64", L.cholesky, tycho.eye(2):half())
    fails("linalg.qr: argument 1 must be a matrix", L.qr, tycho.ones(2))
    fails("upper", L.solve_triangular, tycho.ones(2, 2), tycho.ones(2, 1))
    fails("linalg has no 'choleski'; did you mean 'cholesky'?", function() return L.choleski end)
  end)

  it("is computed in float32 under autocast", function()
    tycho.amp.autocast({dtype = "bfloat16", device = helper.device}, function()
      local x = tycho.eye(2):matmul(tycho.eye(2) * 2)
      assert.equal("bfloat16", x.dtype)
      assert.equal("float32", L.inv(x).dtype)
      assert.equal("float32", L.pinv(x).dtype)
      close(L.matrix_exp(tycho.eye(2) * 0.3), tycho.eye(2) * math.exp(0.3))
      assert.equal("bfloat16", tycho.eye(2):matmul(tycho.eye(2)).dtype)
    end)
  end)

  it("gives LU factors: of any shape, singular ones too, with gradients, and systems by them", function()
    for _, size in ipairs {{4, 4}, {3, 5}, {5, 3}, {2, 4, 4}, {2, 3, 1, 4}, {0, 3}, {3, 0}} do
      local x = random(unpack(size))
      local p, l, u = L.lu(x)
      close(p:matmul(l):matmul(u), x)
      assert.is_true(l:triu(1):eq(0):all():item() and u:tril(-1):eq(0):all():item())
      for i, part in ipairs {tycho.lu_unpack(L.lu_factor(x))} do close(part, ({p, l, u})[i]) end
      for i = 2, x:numel() > 0 and 3 or 1 do
        assert.is_true(tycho.autograd.gradcheck(function(a) return (select(i, L.lu(a))) end, {x:clone():requires_grad_()}))
      end
    end
    local a = tycho.tensor({{{2, 1, 1}, {4, 3, 3}, {8, 7, 9}}, {{1, 2, 3}, {4, 5, 6}, {7, 8, 10}}}, f64)        -- values: PyTorch's
    local lu, pivots = L.lu_factor(a)
    close(lu, tycho.tensor({{{8, 7, 9}, {0.25, -0.75, -1.25}, {0.5, 2 / 3, -2 / 3}},
      {{7, 8, 10}, {1 / 7, 6 / 7, 11 / 7}, {4 / 7, 0.5, -0.5}}}, f64))
    assert.same({{3, 3, 3}, {3, 3, 3}}, pivots:totable())
    local b = tycho.tensor({{1}, {2}, {3}}, f64):expand(2, 3, 1)
    close(L.lu_solve(lu, pivots, b), tycho.tensor({{{0.5}, {0.5}, {-0.5}}, {{-1 / 3}, {2 / 3}, {0}}}, f64))
    close(L.lu_solve(lu, pivots, b, {adjoint = true}), tycho.tensor({{{-1.5}, {0}, {0.5}}, {{1}, {0}, {0}}}, f64))
    close(L.lu_solve(lu, pivots, T(b), {left = false}), tycho.tensor({{{-1.5, 0, 0.5}}, {{1, 0, 0}}}, f64))
    local singular = L.lu_factor(tycho.ones(3, 3))
    assert.same({1, 0, 0}, singular:diagonal():totable())
    close(tycho.vmap(L.lu_solve)(lu, pivots, b), L.lu_solve(lu, pivots, b))
    fails("argument 2 (pivots) names a row that isn't one of 1 to 3", L.lu_solve, lu, pivots + 1, b)
    fails("argument 2 (pivots) has shape 2x3; for argument 1 of shape 3x3 it must be 3", tycho.lu_unpack, lu[1], pivots)
    fails("argument 1 must be square", L.lu_solve, random(2, 3), pivots, b)
  end)

  it("products of small matrices of every shape and layout are the sums that they stand for", function()
    for _, dtype in ipairs {"float32", "float64"} do
      for _, m in ipairs {1, 2, 3, 5, 6, 7, 13, 17} do
        for _, n in ipairs {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 40} do
          for _, k in ipairs {1, 2, 3, 4, 5, 32, 127, 128, 129} do
            local a, b = tycho.randn(2, m, k, {dtype = dtype}), tycho.randn(2, k, n, {dtype = dtype})
            local at, bt = T(T(a):contiguous()), T(T(b):contiguous())
            local want = (a:double():unsqueeze(-1) * b:double():unsqueeze(2)):sum(3):to(dtype)
            for i, got in ipairs {a:matmul(b), at:matmul(b), a:matmul(bt), at:matmul(bt)} do
              helper.close(got, want, ("%d: %dx%dx%d %s"):format(i, m, n, k, dtype), dtype == "float32" and 3e-6 or 1e-14, 8)
            end
            local added = tycho.baddbmm(tycho.ones(2, m, n, {dtype = dtype}), a, b)
            helper.close(added, want + 1, "added", dtype == "float32" and 3e-6 or 1e-14, 8)
          end
        end
      end
    end
  end)

  it("products of few rows with a large transposed matrix are float64's", function()
    local threads = tycho.get_num_threads()
    finally(function() tycho.set_num_threads(threads) end)
    for _, of in ipairs {{131, 207}, {64, 512}, {33, 1025}, {9, 8200}, {1030, 400}} do
      local n, k = unpack(of)
      local w, bias = tycho.randn(n, k), tycho.randn(n)
      local columns = w:double():t():contiguous()          -- goes another way
      local scale = math.sqrt(k)           -- the standard deviation of what is summed
      -- A GPU may add k products one by one: errors grow by the partial sums, to 3e-8 k in the standard deviation. Six of those:
      local near = helper.device == "cpu" and 3e-6 or math.max(3e-6, 1.8e-7 * scale)
      for _, m in ipairs {3, 4, 5, 6, 7, 8, 13, 31, 32, 33} do
        local wide = tycho.randn(m, k + 5)
        for i, x in ipairs {wide[{ {}, {3, k + 2} }], wide[{ {}, {1, k} }]:contiguous()} do
          local want = x:double():matmul(columns)
          for count = 1, 2 do
            tycho.set_num_threads(count)
            local function like(got, add) helper.close(got, (want + add):float(), ("%d: %dx%dx%d"):format(i, m, n, k), near, scale) end
            like(x:matmul(w:t()), 0)
            like(tycho.linear(x, w, bias), bias:double())
            like(tycho.addmm(tycho.ones(m, n), x, w:t()), 1)
            helper.close(x:double():matmul(w:double():t()), want, ("%d: %dx%dx%d in float64"):format(i, m, n, k), 1e-14, scale)
          end
        end
      end
    end
  end)

  it("svd_lowrank and pca_lowrank give back what has a low rank", function()
    local x = random(2, 20, 3):matmul(random(2, 3, 12))
    for _, a in ipairs {x, T(x), x[1]} do
      local u, s, v = tycho.svd_lowrank(a, 3)
      close(tycho.matmul(u * s:unsqueeze(-2), T(v)), a)
      close(tycho.matmul(T(u), u), tycho.eye(3, f64):expand(tycho.matmul(T(u), u).shape))
      close(s, L.svdvals(a):narrow(-1, 1, 3))
      local less = a - 1
      u, s, v = tycho.svd_lowrank(less, 3, {m = tycho.full({1}, -1, f64)})
      close(tycho.matmul(u * s:unsqueeze(-2), T(v)), a)
    end
    local u, s, v = tycho.pca_lowrank(x[1] + 3, 3)
    close(tycho.matmul(u * s, T(v)), x[1] - x[1]:mean(1, true))
    assert.same({20, 3, 12}, {u.shape[1], #s, v.shape[1]})
    assert.equal(6, #(select(2, tycho.pca_lowrank(random(20, 12)))))
    fails("svd_lowrank: q must be 0 to 12, got 13", tycho.svd_lowrank, x, 13)
    fails("linalg.tensorinv: shape 2x3: the first 1 dims have 2 elements, the others 3", L.tensorinv, random(2, 3), 1)
    fails("linalg.tensorsolve: shapes 2x3x5 and 2x3", L.tensorsolve, random(2, 3, 5), random(2, 3))
    fails("linalg.householder_product: shapes 2x3 and 2", L.householder_product, random(2, 3), random(2))
  end)

  it("norms and condition numbers of matrices without elements are 0, as PyTorch's", function()
    for _, ord in ipairs {1, 2, "nuc", math.huge, "fro"} do
      for _, size in ipairs {{3, 2, 0}, {3, 0, 0}} do
        close(L.matrix_norm(tycho.zeros(size, f64), ord), tycho.zeros(3, f64), tostring(ord))
      end
    end
    close(L.norm(tycho.zeros(2, 0), 1), tycho.zeros({}))
    close(L.cond(tycho.zeros(2, 0, 0)), tycho.zeros(2))
    fails("is empty", L.matrix_norm, tycho.zeros(2, 0), -1)
    fails("ord must be 'fro', 'nuc'", L.matrix_norm, tycho.zeros(0, 3), 7)
    fails("matrix_norm", L.cond, tycho.zeros(2, 0, 0), "foo")
  end)

  it("gradients are linear at 0 too: derivatives along a direction, and second ones where the first are 0", function()
    local function spectral(a) local u, s, v = L.svd(a, false) return u:matmul(s:exp():unsqueeze(-1) * v) end
    local functions = {
      function(a) return (L.eigh(a + T(a))) end,
      function(a) local w, v = L.eigh(a + T(a)) return v:matmul(w:sin():unsqueeze(-1) * T(v)) end,
      spectral, function(a) return spectral(a[{{1, 2}}]) end, function(a) return spectral(a[{{}, {1, 2}}]) end,
      function(a) return L.svdvals(a):square() end, function(a) return L.matrix_norm(a, "nuc") end}
    local a, d, h = random(3, 3), random(3, 3), 1e-5
    for i, f in ipairs(functions) do
      local _, along = tycho.func.jvp(f, {a}, {d})
      close(along, (f(a + d * h) - f(a - d * h)) / (2 * h), i, 1e-6)
      local function g(x) return f(x):square():sum() end
      local _, product = tycho.func.jvp(tycho.func.grad(g), {a}, {d})
      close(product, (tycho.func.grad(g)(a + d * h) - tycho.func.grad(g)(a - d * h)) / (2 * h), i, 1e-5)
    end
    -- the least of a function: its gradient is 0
    local least = functions[2](a)
    local function distance(x) return (functions[2](x) - least):square():sum() end
    local second = tycho.func.hessian(distance)(a):reshape(9, 9)
    local first = tycho.func.jacrev(functions[2])(a):reshape(9, 9)
    close(second, T(first):matmul(first) * 2, nil, 1e-8)
  end)
end)
