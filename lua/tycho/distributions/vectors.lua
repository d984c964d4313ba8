-- Normal vectors: MultivariateNormal, by the triangular factor of its covariance, and LowRankMultivariateNormal, whose covariance is a
-- diagonal plus a matrix of few columns times its transpose.
--
-- Idea: events are vectors along the last dim. Only two things are needed of a covariance: log_det(), and reach(x), the trace of x'
-- inv(covariance) x. Both classes have these; densities, entropies and divergences are written once for both. Invariant: for a low-rank
-- covariance, log_prob and rsample make no n x n matrix.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local base = require "tycho.distributions.base"
local fail = options.fail
local ops, M, F = core.ops, core.methods, lib.functions
local class, same, joined, need, C, KL = base.class, base.same, base.joined, base.need, base.constraints, base.KL
local cholesky, solve_triangular = F["linalg.cholesky"], F["linalg.solve_triangular"]
local LOG_TWO_PI = math.log(2 * math.pi)

local function T(x) return M.transpose(x, -2, -1) end
local function times(matrix, x) return M.squeeze(ops.matmul(matrix, M.unsqueeze(x, -1)), -1) end
local function solve(tril, x) return solve_triangular(tril, x, {upper = false}) end
local function squares(x) return ops.sum(ops.square(x), {-2, -1}) end
local function log_diagonal(tril) return ops.sum(ops.log(ops.diagonal(tril, 0, -2, -1)), -1) end
local function vector_of(name, what, x, k)
  if not core.is_tensor(x) or M.dim(x) < 1 or k and x.shape[M.dim(x)] ~= k then
    fail("%s: %s must be a tensor %s, got %s", name, what, k and "whose last dim has " .. k .. " elements, as loc's" or "of 1 dim or more",
      core.is_tensor(x) and "shape " .. tostring(x.shape) or options.shown(x))
  end
  return x.shape[M.dim(x)]
end

-- The triangular factor, from the one of three matrices that is in o; k: the number of rows that it must have, why: the reason for errors.
local function scale_tril(name, o, k, why)
  local given = {}
  for _, what in ipairs {"covariance_matrix", "precision_matrix", "scale_tril"} do
    if o[what] ~= nil then given[#given + 1] = what end
  end
  if #given ~= 1 then fail("%s: one of covariance_matrix, precision_matrix and scale_tril is needed, got %d", name, #given) end
  local what, m = given[1], o[given[1]]
  local n = core.is_tensor(m) and M.dim(m) >= 2 and m.shape[M.dim(m)]
  if not n or m.shape[M.dim(m) - 1] ~= n or k and n ~= k then
    fail("%s: %s must be %s, got %s", name, what, k and ("%dx%d as %s"):format(k, k, why) or "a square matrix, or several",
      core.is_tensor(m) and "shape " .. tostring(m.shape) or options.shown(m))
  end
  local rule = what == "scale_tril" and C.lower_cholesky or C.symmetric
  need(name, ("%s must hold %s"):format(what, rule.text), m, rule:check(m))
  if what == "scale_tril" then return m end
  local ok, tril = pcall(function() return cholesky(what == "precision_matrix" and F["linalg.inv"](m) or m) end)
  if not ok then fail("%s: %s must be positive definite: %s", name, what, options.bare(tril)) end
  return tril
end

-- The common part of both classes.
local function normal(name, signature)
  local c = class(name, signature)
  c.has_rsample = true
  function c.get.mean(self) return self.loc end
  function c.get.mode(self) return self.loc end
  function c:log_prob(x) return (self:reach(M.unsqueeze(x - self.loc, -1)) + self:log_det() + self.event_shape[1] * LOG_TWO_PI) / -2 end
  function c:entropy() return (self:log_det() + self.event_shape[1] * (1 + LOG_TWO_PI)) / 2 end
  base.supports(c, C.real_vector, {checked = false})
  return c
end

-- MultivariateNormal(loc, {covariance_matrix=} | {precision_matrix=} | {scale_tril=}): events are vectors of n elements, loc's last dim;
-- the matrix is n x n; the dims before broadcast. An error unless exactly one matrix is given, of the right size and positive definite.
local MultivariateNormal = normal("MultivariateNormal", "loc, covariance_matrix=nil, precision_matrix=nil, scale_tril=nil")
function MultivariateNormal:init(o)
  local k = vector_of(self._name, "loc", o.loc)
  local tril = scale_tril(self._name, o, k, "loc has " .. k .. " elements")
  local batch = lib.common_shape(self._name, {ops.select(o.loc, -1, 1).shape, ops.select(ops.select(tril, -1, 1), -1, 1).shape})
  self.batch_shape, self.event_shape = joined(batch), {k}
  self.loc, self.scale_tril = ops.expand(o.loc, joined(batch, {k})), ops.expand(tril, joined(batch, {k, k}))
end
MultivariateNormal.arg_constraints = {loc = C.real_vector, covariance_matrix = C.positive_definite,
  precision_matrix = C.positive_definite, scale_tril = C.lower_cholesky}
function MultivariateNormal.get.variance(self) return ops.sum(ops.square(self.scale_tril), -1) end
function MultivariateNormal.get.covariance_matrix(self) return ops.matmul(self.scale_tril, T(self.scale_tril)) end
function MultivariateNormal.get.precision_matrix(self) return F.cholesky_inverse(self.scale_tril) end
function MultivariateNormal:draw(shape) return self.loc + times(self.scale_tril, ops.randn(shape, same(self.loc))) end
function MultivariateNormal:log_det() return log_diagonal(self.scale_tril) * 2 end
function MultivariateNormal:reach(x)
  local tril, shape = self.scale_tril, x.shape
  if M.dim(tril) > 2 or #shape == 2 then return squares(solve(tril, x)) end
  -- one factor for all points, which are columns of one system
  local y = solve(tril, M.reshape(M.movedim(x, -2, 1), table.remove(shape, #shape - 1), -1))
  return ops.sum(M.reshape(ops.sum(ops.square(y), 1), shape), -1)
end
function MultivariateNormal:reach_of_diagonal(d) return self:reach(F.diag_embed(ops.sqrt(d))) end

-- LowRankMultivariateNormal(loc, cov_factor, cov_diag): the covariance is cov_factor times its transpose plus the diagonal matrix of
-- cov_diag, which is above 0. loc and cov_diag have n elements in their last dim, cov_factor's last two dims are n x rank; the dims before
-- broadcast. An error if sizes don't fit.
local LowRank = normal("LowRankMultivariateNormal", "loc, cov_factor, cov_diag")
function LowRank:init(o)
  local name, W = self._name, o.cov_factor
  local k = vector_of(name, "loc", o.loc)
  vector_of(name, "cov_diag", o.cov_diag, k)
  if not core.is_tensor(W) or M.dim(W) < 2 or W.shape[M.dim(W) - 1] ~= k then
    fail("%s: cov_factor must be a tensor whose last two dims are %d x rank, as loc has %d elements, got %s", name, k, k,
      core.is_tensor(W) and "shape " .. tostring(W.shape) or options.shown(W))
  end
  need(name, "cov_diag must be above 0", o.cov_diag, ops.gt(o.cov_diag, 0))
  local batch = lib.common_shape(name, {ops.select(o.loc, -1, 1).shape, ops.select(o.cov_diag, -1, 1).shape,
    ops.select(ops.select(W, -1, 1), -1, 1).shape})
  local rank = W.shape[M.dim(W)]
  self.batch_shape, self.event_shape = joined(batch), {k}
  self.loc, self.cov_diag = ops.expand(o.loc, joined(batch, {k})), ops.expand(o.cov_diag, joined(batch, {k}))
  self.cov_factor = ops.expand(W, joined(batch, {k, rank}))
  -- the factor of I + W' inv(D) W, from which the covariance's inverse and determinant follow (Woodbury)
  self.weighed = T(W) / M.unsqueeze(o.cov_diag, -2)
  local tril = cholesky(ops.matmul(self.weighed, W) + ops.eye(rank, same(W)))
  self.weighed, self.capacitance_tril = ops.expand(self.weighed, joined(batch, {rank, k})), ops.expand(tril, joined(batch, {rank, rank}))
end
LowRank.arg_constraints = {loc = C.real_vector, cov_factor = C.independent(C.real, 2), cov_diag = C.independent(C.positive, 1)}
function LowRank.get.variance(self) return ops.sum(ops.square(self.cov_factor), -1) + self.cov_diag end
function LowRank.get.covariance_matrix(self) return ops.matmul(self.cov_factor, T(self.cov_factor)) + F.diag_embed(self.cov_diag) end
function LowRank.get.precision_matrix(self)
  local a = solve(self.capacitance_tril, self.weighed)
  return F.diag_embed(1 / self.cov_diag) - ops.matmul(T(a), a)
end
-- from D^1/2 (I + D^-1/2 W W' D^-1/2) D^1/2, whose middle factor has no eigenvalue below 1
function LowRank.get.scale_tril(self)
  local root = M.unsqueeze(ops.sqrt(self.cov_diag), -1)
  local W = self.cov_factor / root
  return root * cholesky(ops.matmul(W, T(W)) + ops.eye(self.event_shape[1], same(W)))
end
function LowRank:draw(shape)
  local rank = self.cov_factor.shape[M.dim(self.cov_factor)]
  local few = joined(shape)
  few[#few] = rank
  return self.loc + times(self.cov_factor, ops.randn(few, same(self.loc))) + ops.sqrt(self.cov_diag) * ops.randn(shape, same(self.loc))
end
function LowRank:log_det() return log_diagonal(self.capacitance_tril) * 2 + ops.sum(ops.log(self.cov_diag), -1) end
function LowRank:reach(x)
  local part = solve(self.capacitance_tril, ops.matmul(self.weighed, x))
  return ops.sum(ops.square(x) / M.unsqueeze(self.cov_diag, -1), {-2, -1}) - squares(part)
end
function LowRank:reach_of_diagonal(d)
  return ops.sum(d / self.cov_diag, -1) - squares(solve(self.capacitance_tril, self.weighed * M.unsqueeze(ops.sqrt(d), -2)))
end

---- divergences: of p, its covariance's trace by q's inverse is how far the columns of a root of it reach ----
local function divergence(trace)
  return function(p, q)
    if p.event_shape[1] ~= q.event_shape[1] then
      fail("kl_divergence: events must have the same size, got %d and %d elements", p.event_shape[1], q.event_shape[1])
    end
    local apart = q:reach(M.unsqueeze(q.loc - p.loc, -1))
    return (q:log_det() - p:log_det() + trace(p, q) + apart - p.event_shape[1]) / 2
  end
end
local of_tril = divergence(function(p, q) return q:reach(p.scale_tril) end)
local of_low_rank = divergence(function(p, q) return q:reach(p.cov_factor) + q:reach_of_diagonal(p.cov_diag) end)
KL.MultivariateNormal, KL["MultivariateNormal LowRankMultivariateNormal"] = of_tril, of_tril
KL.LowRankMultivariateNormal, KL["LowRankMultivariateNormal MultivariateNormal"] = of_low_rank, of_low_rank

return {scale_tril = scale_tril, log_diagonal = log_diagonal}
