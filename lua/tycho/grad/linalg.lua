-- Gradient rules of linear algebra (init.lua describes how rules are written). T: transposed matrices; rows: the layout of packed results,
-- see ops.def.
local core = require "tycho.core"
local ops, M = core.ops, core.methods

local function T(x) return M.transpose(x, -2, -1) end
local function eye(x) return ops.eye(x.shape[#x.shape], {dtype = x.dtype, device = x.device}) end
local function columns(x, first, last) return ops.slice(x, -1, first, last) end
local function as_diagonal(v) return M.unsqueeze(v, -1) * eye(v) end
-- x inv(a) for a triangular a
local function over(x, a, upper) return T(ops.solve_triangle(T(a), T(x), {upper = not upper, unit = false})) end
-- the lower triangle and its mirror image
local function mirrored(x) return ops.tril(x) + T(ops.tril(x, -1)) end
local function skew(x) return x - T(x) end
-- x / y, but 0 / 0 is 0, so that vectors that no gradient reaches may belong to equal values, or to 0. Nothing else depends on whether x is
-- 0: the quotient's own derivative must be right there, too.
local function quotient(x, y)
  local none = ops.logical_and(ops.eq(x, 0), ops.eq(y, 0))
  return ops.masked_fill(x / ops.where(none, 1, y), none, 0)
end
-- x_ij / (s_j - s_i), and 0 on the diagonal
local function over_differences(x, s) return quotient(x * (1 - eye(x)), M.unsqueeze(s, -2) - M.unsqueeze(s, -1)) end

local R = {}

R.cholesky_factor = {x = function(g, out)
  local p = ops.matmul(T(out), g)
  p = over(ops.solve_triangle(T(out), ops.tril(p) + ops.tril(p, -1), {upper = true, unit = false}), out, false)
  return (p + T(p)) / 4
end}

R.solve_system = {["a b"] = function(g, a, out, check)
  local gb = ops.solve_system(T(a), g, check)
  return -ops.matmul(gb, T(out)), gb
end}

R.solve_triangle = {["a b"] = function(g, a, out, upper, unit)
  local gb = ops.solve_triangle(T(a), g, {upper = not upper, unit = unit})
  local ga = -ops.matmul(gb, T(out))
  return upper and ops.triu(ga, unit and 1 or 0) or ops.tril(ga, unit and -1 or 0), gb
end}

R.invert = {x = function(g, out) return -ops.matmul(T(out), ops.matmul(g, T(out))) end}

-- The inverse of x, not of T(x), which has other factors: NaN exactly where the determinant is 0.
local function of_each(g, x) return M.unsqueeze(M.unsqueeze(g, -1), -1) * T((ops.invert(x, false))) end
R.log_determinant = {x = of_each}
R.determinant = {x = function(g, x, out) return of_each(g * out, x) end}

-- x[order] = L U, packed in one matrix; m rows, n columns, k the smaller number.
R.lu_factors = {x = function(g, out, out3)
  local m, n = out.shape[#out.shape - 1], out.shape[#out.shape]
  local k = math.min(m, n)
  local function rows(x, first, last) return ops.slice(x, -2, first, last) end
  local square, gs = columns(rows(out, 1, k), 1, k), columns(rows(g, 1, k), 1, k)
  local l, u = ops.tril(square, -1) + eye(square), ops.triu(square)
  local inner_l, inner_u = ops.matmul(T(l), ops.tril(gs, -1)), ops.matmul(ops.triu(gs), T(u))
  if n > k then inner_l = inner_l - ops.matmul(columns(g, k + 1), T(columns(out, k + 1))) end
  if m > k then inner_u = inner_u - ops.matmul(T(rows(out, k + 1)), rows(g, k + 1)) end
  local function before(x) return ops.solve_triangle(T(l), x, {upper = true, unit = true}) end         -- inv(L)^T x
  local function after(x) return T(ops.solve_triangle(u, T(x), {upper = true, unit = false})) end      -- x inv(U)^T
  local gx = before(after(ops.tril(inner_l, -1) + ops.triu(inner_u)))
  if n > k then gx = ops.cat({gx, before(columns(g, k + 1))}, -1) end
  if m > k then gx = ops.cat({gx, after(rows(g, k + 1))}, -2) end
  local at = ops.expand(M.unsqueeze(out3, -1), gx.shape)          -- back in the original order
  return ops.scatter(ops.zeros(gx.shape, {dtype = gx.dtype, device = gx.device}), -2, at, gx)
end}

-- x = V diag(w) V^T; rows (w_i, v_i)
R.eigen_rows = {x = function(g, out)
  local w, v, gv = ops.select(out, -1, 1), T(columns(out, 2)), T(columns(g, 2))
  local inner = as_diagonal(ops.select(g, -1, 1)) + over_differences(skew(ops.matmul(T(v), gv)) / 2, w)
  return ops.matmul(ops.matmul(v, inner), T(v))
end}

-- x = Q R; rows (column i of Q, row i of R). For a wide x, R's further columns are Q^T times x's.
R.qr_rows = {x = function(g, x, out)
  local m, n = x.shape[#x.shape - 1], x.shape[#x.shape]
  local k = math.min(m, n)
  if out.shape[#out.shape - 1] ~= k then error("linalg.qr: mode 'complete' of a matrix with more rows than columns has no gradient", 0) end
  local q, r, gq, gr = T(columns(out, 1, m)), columns(out, m + 1, m + k), T(columns(g, 1, m)), columns(g, m + 1, m + k)
  local further
  if n > k then
    local gs = columns(g, m + k + 1)
    gq = gq + ops.matmul(columns(x, k + 1), T(gs))
    further = ops.matmul(q, gs)
  end
  local inner = mirrored(ops.matmul(r, T(gr)) - ops.matmul(T(gq), q))
  local gx = over(gq + ops.matmul(q, inner), T(r), false)
  return further and ops.cat({gx, further}, -1) or gx
end}

-- x = U diag(s) V^T; rows (u_i, s_i, v_i)
R.svd_rows = {x = function(g, x, out)
  local m, n = x.shape[#x.shape - 1], x.shape[#x.shape]
  local k = math.min(m, n)
  local function parts(t) return T(columns(t, 1, m)), ops.select(t, -1, m + 1), T(columns(t, m + 2)) end
  local u, s, v = parts(out)
  local gu, gs, gv = parts(g)
  local row, column = M.unsqueeze(s, -2), M.unsqueeze(s, -1)
  local a, b = skew(ops.matmul(T(u), gu)), skew(ops.matmul(T(v), gv))
  local inner = over_differences(a, s * s) * row + column * over_differences(b, s * s) + as_diagonal(gs)
  local gx = ops.matmul(ops.matmul(u, inner), T(v))
  -- the part of a gradient outside the vectors' span
  local function beyond(w, gw) return quotient(gw - ops.matmul(w, ops.matmul(T(w), gw)), row) end
  if m > k then gx = gx + ops.matmul(beyond(u, gu), T(v)) end
  if n > k then gx = gx + ops.matmul(u, T(beyond(v, gv))) end
  return gx
end}

return R
