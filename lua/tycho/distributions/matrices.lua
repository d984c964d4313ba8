-- Random matrices: LKJCholesky, factors of correlation matrices, and Wishart, sums of squares of normal vectors.
--
-- Idea: draws are triangular factors made row by row from independent numbers (the onion method, Bartlett's decomposition), so they are
-- positive definite by construction. Events are the last two dims.
local core = require "tycho.core"
local options = require "tycho.options"
local base = require "tycho.distributions.base"
local vectors = require "tycho.distributions.vectors"
local lib = require "tycho.functional.lib"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local distributions, class, together, need, same, joined, C, KL = base.distributions, base.class, base.together, base.need,
  base.same, base.joined, base.constraints, base.KL

-- LKJCholesky(dim, concentration=1): the dim x dim Cholesky factor of a correlation matrix whose density is proportional to its determinant
-- to the power of concentration - 1 (a number, or a tensor of the batch's shape). An error if dim is below 2 or concentration isn't above
-- 0.
local LKJ = class("LKJCholesky", "dim, concentration=1")
function LKJ:init(o)
  self.dim = options.whole(self._name, "dim", o.dim, 2)
  self.concentration = together(self._name, o.concentration)
  need(self._name, "concentration must be above 0", self.concentration, ops.gt(self.concentration, 0))
  self.batch_shape, self.event_shape = self.concentration.shape, {o.dim, o.dim}
  -- The squared length of each row's part left of the diagonal, of k elements: Beta(k / 2, ...) (Lewandowski, Kurowicka and Joe 2009, the
  -- onion). PyTorch 2.15 draws from Beta(k - 1 / 2, ...), by which rows after the second correlate too much.
  local half = F.pad(ops.range(0, o.dim - 2, 1, same(self.concentration)) / 2, {1, 0}, {value = 0})
  self.length = distributions.Beta(half + 0.5, M.unsqueeze(self.concentration + (o.dim - 2) / 2, -1) - half)
end
LKJ.arg_constraints = {concentration = C.positive}
base.supports(LKJ, C.corr_cholesky)
function LKJ:draw(shape)
  local outer = joined(shape)
  table.remove(outer)
  local y, u = M.unsqueeze(self.length:draw(outer), -1), ops.tril(ops.randn(shape, same(self.concentration)), -1)
  local tiny = lib.RANGE[u.dtype].tiny
  local w = u / ops.sqrt(ops.clamp(ops.sum(ops.square(u), -1, {keepdim = true}), tiny)) * ops.sqrt(y)     -- the first row is 0
  return w + F.diag_embed(ops.sqrt(ops.clamp(1 - ops.sum(ops.square(w), -1), tiny)))
end
function LKJ:log_prob(x)
  local n, c = self.dim, self.concentration
  local order = M.unsqueeze(c - 1, -1) * 2 + ops.range(n - 2, 0, -1, same(c))
  local diagonal = M.narrow(ops.diagonal(x, 0, -2, -1), -1, 2, n - 1)
  local alpha = c + (n - 1) / 2
  local norm = M.mvlgamma(alpha - 0.5, n - 1) + (n - 1) / 2 * math.log(math.pi) - ops.lgamma(alpha) * (n - 1)
  return ops.sum(order * ops.log(diagonal), -1) - norm
end

-- Wishart(df, {covariance_matrix=} | {precision_matrix=} | {scale_tril=}): n x n matrices, each the sum of df normal vectors of this
-- covariance times their transposes. df, a number or a tensor that broadcasts with the matrices' batch dims, must be above n - 1, else an
-- error; so is giving no or several matrices. Draws have gradients for df and the matrix.
local Wishart = class("Wishart", "df, covariance_matrix=nil, precision_matrix=nil, scale_tril=nil")
Wishart.has_rsample = true
function Wishart:init(o)
  local name, tril = self._name, vectors.scale_tril(self._name, o)
  local df, n = o.df, tril.shape[M.dim(tril)]
  if type(df) ~= "number" and not core.is_tensor(df) then fail("%s: df must be a number or a tensor, got %s", name, options.shown(df)) end
  df = core.is_tensor(df) and M.to(df, tril.dtype) or ops.full({}, df, same(tril))
  need(name, ("df must be above %d, as the matrices are %dx%d"):format(n - 1, n, n), df, ops.gt(df, n - 1))
  local batch = lib.common_shape(name, {df.shape, ops.select(ops.select(tril, -1, 1), -1, 1).shape})
  self.batch_shape, self.event_shape = batch, {n, n}
  self.df, self.scale_tril = ops.expand(df, joined(batch)), ops.expand(tril, joined(batch, {n, n}))
  -- the squared diagonal elements (Bartlett)
  self.squares = distributions.Chi2(M.unsqueeze(self.df, -1) - ops.range(0, n - 1, 1, same(df)))
end
Wishart.get.arg_constraints = function(self)
  return {df = C.greater_than(self.event_shape[1] - 1), covariance_matrix = C.positive_definite, precision_matrix = C.positive_definite,
    scale_tril = C.lower_cholesky}
end
base.supports(Wishart, C.positive_definite)
local function T(x) return M.transpose(x, -2, -1) end
local function as_matrix(x) return M.unsqueeze(M.unsqueeze(x, -1), -1) end
function Wishart.get.covariance_matrix(self) return ops.matmul(self.scale_tril, T(self.scale_tril)) end
function Wishart.get.precision_matrix(self) return F.cholesky_inverse(self.scale_tril) end
function Wishart.get.mean(self) return as_matrix(self.df) * self.covariance_matrix end
function Wishart.get.mode(self)
  local factor = self.df - (self.event_shape[1] + 1)
  return as_matrix(ops.where(ops.gt(factor, 0), factor, 0 / 0)) * self.covariance_matrix
end
function Wishart.get.variance(self)
  local v = self.covariance_matrix
  local d = ops.diagonal(v, 0, -2, -1)
  return as_matrix(self.df) * (ops.square(v) + M.unsqueeze(d, -1) * M.unsqueeze(d, -2))
end
function Wishart:draw(shape)
  local outer = joined(shape)
  table.remove(outer)
  local diagonal = ops.clamp(ops.sqrt(self.squares:draw(outer)), lib.EPS[self.df.dtype])
  local root = ops.matmul(self.scale_tril, F.diag_embed(diagonal) + ops.tril(ops.randn(shape, same(self.df)), -1))
  return ops.matmul(root, T(root))
end
-- log_scale: n log 2 plus the log of the covariance's determinant; digammas: the multivariate digamma function
local function log_scale(self) return vectors.log_diagonal(self.scale_tril) * 2 + self.event_shape[1] * math.log(2) end
local function trace_of_solved(self, x) return ops.sum(ops.diagonal(F.cholesky_solve(x, self.scale_tril), 0, -2, -1), -1) end
local function digammas(x, n)
  return ops.sum(ops.digamma(M.unsqueeze(x, -1) - ops.range(0, n - 1, 1, same(x)) / 2), -1)
end
function Wishart:log_prob(x)
  local n, df = self.event_shape[1], self.df
  local _, log_det = F["linalg.slogdet"](x)
  return (log_det * (df - (n + 1)) - trace_of_solved(self, x) - df * log_scale(self)) / 2 - M.mvlgamma(df / 2, n)
end
function Wishart:entropy()
  local n, df = self.event_shape[1], self.df
  return (log_scale(self) * (n + 1) - (df - (n + 1)) * digammas(df / 2, n) + df * n) / 2 + M.mvlgamma(df / 2, n)
end
function KL.Wishart(p, q)
  if p.event_shape[1] ~= q.event_shape[1] then
    fail("kl_divergence: matrices must have the same size, got %s and %s", tostring(p.event_shape), tostring(q.event_shape))
  end
  local n = p.event_shape[1]
  return (q.df * (log_scale(q) - log_scale(p)) + p.df * (trace_of_solved(q, p.covariance_matrix) - n) +
    (p.df - q.df) * digammas(p.df / 2, n)) / 2 + M.mvlgamma(q.df / 2, n) - M.mvlgamma(p.df / 2, n)
end
