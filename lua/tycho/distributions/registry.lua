-- Transforms of the real numbers to the values that satisfy a constraint, as torch.distributions.constraint_registry.
--
-- Idea: the constraint's name decides. Invariant: the transform's codomain satisfies the constraint.
local options = require "tycho.options"
local constraints = require "tycho.distributions.constraints"
local T = require("tycho.distributions.transforms").transforms
local fail = options.fail
local registry = {}

local function above(c)
  return c.lower_bound == 0 and T.ExpTransform() or T.ComposeTransform {T.ExpTransform(), T.AffineTransform(c.lower_bound, 1)}
end
local function as_it_is() return T.identity_transform end
local function between(c)
  if c.lower_bound == 0 and c.upper_bound == 1 then return T.SigmoidTransform() end
  return T.ComposeTransform {T.SigmoidTransform(), T.AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)}
end
-- By the constraints' names, without arguments in parentheses.
local ways = {
  real = as_it_is,
  positive = above, nonnegative = above, greater_than = above, greater_than_eq = above,
  less_than = function(c) return T.ComposeTransform {T.ExpTransform(), T.AffineTransform(c.upper_bound, -1)} end,
  unit_interval = between, interval = between, half_open_interval = between,
  lower_cholesky = function() return T.LowerCholeskyTransform() end, corr_cholesky = function() return T.CorrCholeskyTransform() end,
  positive_definite = function() return T.PositiveDefiniteTransform() end,
}
local function way(who, c, simplex)
  if type(c) ~= "table" or getmetatable(c) ~= getmetatable(constraints.real) then
    fail("%s: argument 1 must be a constraint, got %s", who, options.shown(c))
  end
  if c.name == "simplex" then return simplex() end
  if c.base_constraint then
    return T.IndependentTransform(way(who, c.base_constraint, simplex), c.reinterpreted_batch_ndims)
  end
  local make = ways[c.name:match "^[%w_]+"]
  if not make then fail("%s: no transform is known to the constraint %s", who, tostring(c)) end
  return make(c)
end
-- A bijective transform of the real numbers to the values that satisfy the constraint; an error if there is none.
function registry.biject_to(constraint) return way("biject_to", constraint, function() return T.StickBreakingTransform() end) end
-- A transform of the real numbers to the values that satisfy the constraint, for optimizing parameters: it needn't be bijective.
function registry.transform_to(constraint) return way("transform_to", constraint, function() return T.SoftmaxTransform() end) end

return registry
