-- Transforms of free numbers to the simplex and to triangular, correlation and positive definite matrices.
--
-- Idea: values with joint constraints are computed from free numbers, which can be optimized or drawn without bounds. They use the last dim
-- (vectors) or the last two (matrices); the dims before are a batch. Invariant: forward gives values of the codomain.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local C = require "tycho.distributions.constraints"
local all = require "tycho.distributions.transforms"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local transform = all.define
local REAL_MATRIX = C.independent(C.real, 2)

local function vectors(who, shape)
  if #shape < 1 then fail("%s: values must be vectors along the last dim, got a number", who) end
  return shape[#shape]
end
-- A shape with its last `without` dims replaced by the given ones
local function ending(shape, without, ...)
  local out = {}
  for i = 1, #shape - without do out[i] = shape[i] end
  for i = 1, select("#", ...) do out[#out + 1] = (select(i, ...)) end
  return out
end

-- y = softmax(x) along the last dim: not bijective, as x + c gives the same; its inverse is log(y)
transform("SoftmaxTransform", "", {domain = C.real_vector, codomain = C.simplex, bijective = false,
  forward = function(_, x)
    vectors("SoftmaxTransform", x.shape)
    return ops.softmax(x, -1)
  end,
  inverse = function(_, y) return ops.log(y) end,
  forward_shape = function(_, shape) return vectors("SoftmaxTransform", shape) and shape end,
  inverse_shape = function(_, shape) return vectors("SoftmaxTransform", shape) and shape end})

---- StickBreakingTransform ----
-- shifts x so that x = 0 gives equal shares
local function evened(x)
  return x - ops.log(ops.range(vectors("StickBreakingTransform", x.shape), 1, -1, {dtype = x.dtype, device = x.device}))
end
-- the shares, and the rest that remains after each
local function shares(x)
  local z = ops.clamp(ops.sigmoid(evened(x)), lib.RANGE[x.dtype].tiny, 1 - lib.EPS[x.dtype])
  return z, M.cumprod(1 - z, -1)
end
-- StickBreakingTransform(): n numbers to n + 1 numbers >= 0 that add up to 1: each takes its share of what the ones before left.
transform("StickBreakingTransform", "", {domain = C.real_vector, codomain = C.simplex,
  forward = function(_, x)
    local z, left = shares(x)
    return F.pad(z, {0, 1}, {value = 1}) * F.pad(left, {1, 0}, {value = 1})
  end,
  inverse = function(_, y)
    local n = vectors("StickBreakingTransform", y.shape) - 1
    local part = M.narrow(y, -1, 1, n)
    local left = ops.clamp(1 - ops.cumsum(part, -1), lib.RANGE[y.dtype].tiny)
    return ops.log(part) - ops.log(left) + ops.log(ops.range(n, 1, -1, {dtype = y.dtype, device = y.device}))
  end,
  slope = function(t, x, y)
    local off, n = evened(x), x.shape[M.dim(x)]
    return ops.sum(ops.logsigmoid(off) - off + ops.log(M.narrow(y or t:forward(x), -1, 1, n)), -1)
  end,
  forward_shape = function(_, shape) return ending(shape, 1, vectors("StickBreakingTransform", shape) + 1) end,
  inverse_shape = function(_, shape) return ending(shape, 1, vectors("StickBreakingTransform", shape) - 1) end})

---- matrices ----
local function on_diagonal(x, op) return ops.tril(x, -1) + F.diag_embed(op(ops.diagonal(x, 0, -2, -1))) end
-- Square matrices to lower triangular ones with a diagonal above 0, exp of x's; elements above x's diagonal are ignored: not bijective
transform("LowerCholeskyTransform", "", {domain = REAL_MATRIX, codomain = C.lower_cholesky, bijective = false,
  forward = function(_, x) return on_diagonal(x, ops.exp) end, inverse = function(_, y) return on_diagonal(y, ops.log) end})

-- Square matrices to positive definite ones: LowerCholeskyTransform's result times its transpose: not bijective
transform("PositiveDefiniteTransform", "", {domain = REAL_MATRIX, codomain = C.positive_definite, bijective = false,
  forward = function(_, x)
    local l = on_diagonal(x, ops.exp)
    return ops.matmul(l, M.transpose(l, -2, -1))
  end,
  inverse = function(_, y) return on_diagonal(F["linalg.cholesky"](y), ops.log) end})

---- CorrCholeskyTransform ----
-- The number of rows of a matrix with so many elements below the diagonal
local function rows_of(shape)
  local count = (vectors("CorrCholeskyTransform", shape))
  local n = math.floor(math.sqrt(0.25 + 2 * count) + 0.5 + 0.5)
  if n * (n - 1) / 2 ~= count then
    fail("CorrCholeskyTransform: the last dim must have n (n - 1) / 2 elements (1, 3, 6, ...), got shape %s", table.concat(shape, "x"))
  end
  return n
end
local function square_of(shape)
  local n = shape[#shape]
  if #shape < 2 or shape[#shape - 1] ~= n then
    fail("CorrCholeskyTransform: square matrices are needed, got shape %s", table.concat(shape, "x"))
  end
  return n
end
-- The positions, in a flat n x n matrix, of the elements on diagonal k or below, row by row: a list made on the host, without waiting
local function places(n, k, device)
  local at = {}
  for row = 1, n do
    for column = 1, row + k do at[#at + 1] = (row - 1) * n + column end
  end
  if #at == 0 then return ops.zeros({0}, {dtype = "int64", device = device}) end
  return M.to(core.from_value(at, "int64"), device)
end
local function below(y, n, k) return M.index_select(M.flatten(y, -2, -1), -1, places(n, k, y.device)) end
local function before(x) return F.pad(M.narrow(x, -1, 1, x.shape[M.dim(x)] - 1), {1, 0}, {value = 1}) end
-- CorrCholeskyTransform(): n (n - 1) / 2 numbers to the Cholesky factor of an n x n correlation matrix.
transform("CorrCholeskyTransform", "", {domain = C.real_vector, codomain = C.corr_cholesky,
  forward = function(_, x)
    local n, eps = rows_of(x.shape), lib.EPS[x.dtype]
    local like = {dtype = x.dtype, device = x.device}
    local r = ops.clamp(ops.tanh(x), -1 + eps, 1 - eps)
    local flat = ops.zeros(ending(x.shape, 1, n * n), like)
    r = M.reshape(ops.scatter(flat, -1, ops.expand(places(n, -1, x.device), ending(x.shape, 0)), r), ending(x.shape, 1, n, n))
    return (r + ops.eye(n, like)) * before(M.cumprod(ops.sqrt(1 - ops.square(r)), -1))
  end,
  inverse = function(_, y)
    local n = square_of(y.shape)
    local t = below(y, n, -1) / ops.sqrt(below(before(1 - ops.cumsum(ops.square(y), -1)), n, -1))
    return (ops.log1p(t) - ops.log1p(-t)) / 2
  end,
  -- from x and the elements below y's diagonal
  slope = function(t, x, y)
    local n = rows_of(x.shape)
    local left = below(1 - ops.cumsum(ops.square(y or t:forward(x)), -1), n, -2)
    return ops.sum(ops.log(left), -1) / 2 - ops.sum(x + ops.softplus(x * -2) - math.log(2), -1) * 2
  end,
  forward_shape = function(_, shape)
    local n = rows_of(shape)
    return ending(shape, 1, n, n)
  end,
  inverse_shape = function(_, shape)
    local n = square_of(shape)
    return ending(shape, 2, n * (n - 1) / 2)
  end})
