-- Constraints on values and parameters: distributions.constraints, and a distribution's support and arg_constraints.
--
-- Idea: a constraint is a name, a text for errors, the number of last dims that make one value (event_dim), and ops that check each value.
-- Bounds are fields lower_bound and upper_bound, numbers or tensors, from which divergences know where a density is 0. Invariant: check(x)
-- is bool and has x's shape without its last event_dim dims.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local fail = options.fail
local ops, M = core.ops, core.methods

local Constraint = {event_dim = 0, is_discrete = false}
Constraint.__index = Constraint
function Constraint.__tostring(self) return self.name end
local function is_constraint(v) return type(v) == "table" and getmetatable(v) == Constraint end

-- constraint:check(x): a bool tensor of x's shape without its last event_dim dims: whether each value satisfies it. An error if x isn't a
-- tensor, or has too few dims.
function Constraint:check(x)
  if not core.is_tensor(x) then fail("%s: check needs a tensor, got %s", self.name, options.shown(x)) end
  if M.dim(x) < self.event_dim then
    fail("%s: check: a value must have at least %d dims, got shape %s", self.name, self.event_dim, tostring(x.shape))
  end
  return self:_holds(x)
end
options.colon(Constraint, "constraint", is_constraint)

-- fields: further properties, such as its bounds.
local function made(name, text, holds, fields)
  local c = fields or {}
  c.name, c.text, c._holds = name, text, holds
  return setmetatable(c, Constraint)
end
local function named(c, name)
  c.name = name
  return c
end
local function whole(x) return ops.eq(x, ops.floor(M.is_floating_point(x) and x or M.float(x))) end
local function both(a, b) return ops.logical_and(a, b) end
local function all(x) return ops.all(x, -1) end

local function bound(who, what, b)
  if type(b) ~= "number" and not core.is_tensor(b) then fail("%s: %s must be a number or a tensor, got %s", who, what, options.shown(b)) end
  return type(b) == "number" and ("%g"):format(b) or "a tensor"
end
-- greater_than(lower_bound) and the like: the name, the bound's field, the comparison, the text
local function one_bound(name, field, op, text)
  return function(b)
    local b_text = bound(name, field, b)
    return made(("%s(%s)"):format(name, b_text), text .. " " .. b_text, function(_, x) return op(x, b) end, {[field] = b})
  end
end
local function two_bounds(name, text, holds, discrete)
  return function(a, b)
    local a_text, b_text = bound(name, "lower_bound", a), bound(name, "upper_bound", b)
    return made(("%s(%s, %s)"):format(name, a_text, b_text), text:format(a_text, b_text),
      function(_, x) return holds(x, a, b) end, {lower_bound = a, upper_bound = b, is_discrete = discrete})
  end
end

local constraints = {
  real = made("real", "a number", function(_, x) return ops.eq(x, x) end),
  boolean = made("boolean", "0 or 1", function(_, x) return ops.logical_or(ops.eq(x, 0), ops.eq(x, 1)) end,
    {is_discrete = true, lower_bound = 0, upper_bound = 1}),
  nonnegative_integer = made("nonnegative_integer", "a whole number from 0",
    function(_, x) return both(ops.ge(x, 0), whole(x)) end, {is_discrete = true, lower_bound = 0}),
  positive_integer = made("positive_integer", "a whole number from 1",
    function(_, x) return both(ops.ge(x, 1), whole(x)) end, {is_discrete = true, lower_bound = 1}),
  -- greater_than(lower_bound): numbers above lower_bound. A bound is a number or a tensor that broadcasts with values.
  greater_than = one_bound("greater_than", "lower_bound", ops.gt, "above"),
  -- greater_than_eq(lower_bound): numbers at or above lower_bound.
  greater_than_eq = one_bound("greater_than_eq", "lower_bound", ops.ge, "at least"),
  -- less_than(upper_bound): numbers below upper_bound.
  less_than = one_bound("less_than", "upper_bound", ops.lt, "below"),
  -- interval(lower_bound, upper_bound): numbers between the bounds, both included.
  interval = two_bounds("interval", "in %s..%s", function(x, a, b) return both(ops.ge(x, a), ops.le(x, b)) end),
  -- half_open_interval(lower_bound, upper_bound): numbers between the bounds, only the lower one included.
  half_open_interval = two_bounds("half_open_interval", "from %s and below %s",
    function(x, a, b) return both(ops.ge(x, a), ops.lt(x, b)) end),
  -- integer_interval(lower_bound, upper_bound): whole numbers between the bounds, both included.
  integer_interval = two_bounds("integer_interval", "a whole number from %s to %s",
    function(x, a, b) return both(both(ops.ge(x, a), ops.le(x, b)), whole(x)) end, true),
}
local C = constraints
C.positive, C.nonnegative, C.unit_interval =
  named(C.greater_than(0), "positive"), named(C.greater_than_eq(0), "nonnegative"), named(C.interval(0, 1), "unit_interval")
C.nonnegative.text = "from 0"

---- vectors ----
C.simplex = made("simplex", "from 0 and add up to 1 along the last dim", function(_, x)
  return both(all(ops.ge(x, 0)), ops.lt(ops.abs(ops.sum(x, -1) - 1), 1e-6 + 16 * (lib.EPS[x.dtype] or 0)))
end, {event_dim = 1})
C.one_hot = made("one_hot", "one 1 and 0s along the last dim", function(_, x)
  return both(all(C.boolean:_holds(x)), ops.eq(ops.sum(x, -1), 1))
end, {event_dim = 1, is_discrete = true})
-- multinomial(upper_bound): counts from 0 along the last dim whose sum is at most upper_bound
function C.multinomial(upper_bound)
  return made(("multinomial(%s)"):format(bound("multinomial", "upper_bound", upper_bound)), "counts along the last dim",
    function(_, x) return both(all(ops.ge(x, 0)), ops.le(ops.sum(x, -1), upper_bound)) end,
    {event_dim = 1, is_discrete = true, upper_bound = upper_bound})
end
-- independent(base_constraint, reinterpreted_batch_ndims): base_constraint holds for all of that many more dims, which belong to the value
function C.independent(base, n)
  if not is_constraint(base) then fail("independent: argument 1 must be a constraint, got %s", options.shown(base)) end
  options.whole("independent", "reinterpreted_batch_ndims", n, 0)
  return made(("independent(%s, %d)"):format(base.name, n), base.text, function(_, x)
    x = base:check(x)
    for _ = 1, n do x = all(x) end
    return x
  end, {event_dim = base.event_dim + n, is_discrete = base.is_discrete, base_constraint = base, reinterpreted_batch_ndims = n,
    lower_bound = base.lower_bound, upper_bound = base.upper_bound})
end
-- throughout(base_constraint, dim): base_constraint holds for x, with a new dim, along all of its bounds there: a mixture's values must be
-- possible for each component
function C.throughout(base, dim)
  if not is_constraint(base) then fail("throughout: argument 1 must be a constraint, got %s", options.shown(base)) end
  return made(("throughout(%s)"):format(base.name), base.text, function(_, x) return all(base:check(M.unsqueeze(x, dim))) end,
    {event_dim = base.event_dim, is_discrete = base.is_discrete, lower_bound = base.lower_bound, upper_bound = base.upper_bound})
end
C.real_vector = named(C.independent(C.real, 1), "real_vector")
C.real_vector.text = "numbers along the last dim"

---- matrices: the last two dims ----
local function matrix(name, text, holds) C[name] = made(name, text, holds, {event_dim = 2}) end
local function square(x) return x.shape[M.dim(x)] == x.shape[M.dim(x) - 1] end
local function everywhere(x, value)
  return ops.full(ops.select(ops.select(x, -1, 1), -1, 1).shape, value, {dtype = "bool", device = x.device})
end
matrix("square", "square matrices", function(_, x) return everywhere(x, square(x)) end)
matrix("lower_triangular", "lower triangular matrices", function(_, x) return all(all(ops.eq(ops.tril(x), x))) end)
matrix("lower_cholesky", "lower triangular matrices with a diagonal above 0", function(_, x)
  return both(C.lower_triangular:_holds(x), all(ops.gt(ops.diagonal(x, 0, -2, -1), 0)))
end)
matrix("corr_cholesky", "Cholesky factors of correlation matrices", function(_, x)
  local off = ops.abs(ops.sum(ops.square(x), -1) - 1)
  return both(C.lower_cholesky:_holds(x), all(ops.le(off, (lib.EPS[x.dtype] or 0) * x.shape[M.dim(x)] * 10)))
end)
matrix("symmetric", "symmetric matrices", function(_, x)
  if not square(x) then return everywhere(x, false) end
  return all(all(M.isclose(x, M.transpose(x, -2, -1), {atol = 1e-6})))
end)
local function by_eigenvalues(name, text, op)
  matrix(name, text, function(_, x)
    if not square(x) then return everywhere(x, false) end
    local ok = both(C.symmetric:_holds(x), all(all(M.isfinite(x))))
    local eye = ops.eye(x.shape[M.dim(x)], {dtype = x.dtype, device = x.device})
    x = ops.where(M.unsqueeze(M.unsqueeze(ok, -1), -1), x, eye)          -- others have no eigenvalues
    return both(ok, all(op(lib.functions["linalg.eigvalsh"](x), 0)))
  end)
end
by_eigenvalues("positive_semidefinite", "symmetric matrices without eigenvalues below 0", ops.ge)
by_eigenvalues("positive_definite", "symmetric positive definite matrices", ops.gt)

---- several constraints along a dim ----
local function list_of(who, list, dim)
  if type(dim) ~= "number" or dim % 1 ~= 0 or dim == 0 then
    fail("%s: dim must be a whole number other than 0, got %s", who, options.shown(dim))
  end
  if type(list) ~= "table" then fail("%s: argument 1 must be a list of constraints, got %s", who, options.shown(list)) end
  options.items(who, "the list of constraints", list)
  local event_dim, discrete = 0, false
  for i, c in ipairs(list) do
    if not is_constraint(c) then fail("%s: item %d of the list is %s, not a constraint", who, i, options.shown(c)) end
    event_dim, discrete = math.max(event_dim, c.event_dim), discrete or c.is_discrete
  end
  return list, event_dim, discrete
end
-- cat(list, dim=1, lengths): the first constraint holds for lengths[1] elements along dim (by default 1 each), and so on
function C.cat(list, dim, lengths)
  local event_dim, discrete
  dim = dim or 1
  list, event_dim, discrete = list_of("cat", list, dim)
  if lengths ~= nil and (type(lengths) ~= "table" or #lengths ~= #list) then
    fail("cat: lengths must be a list of %d numbers, one for each constraint, got %s", #list, options.shown(lengths))
  end
  return made("cat", "what its parts are, along a dim", function(_, x)
    local out, first = {}, 1
    for i, c in ipairs(list) do
      local n = lengths and lengths[i] or 1
      out[i], first = c:check(M.narrow(x, dim, first, n)), first + n
    end
    return ops.cat(out, dim)
  end, {event_dim = event_dim, is_discrete = discrete})
end
-- stack(list, dim=1): the i-th constraint holds for select(dim, i)
function C.stack(list, dim)
  local event_dim, discrete
  dim = dim or 1
  list, event_dim, discrete = list_of("stack", list, dim)
  if dim + event_dim < 0 then event_dim = event_dim + 1 end
  return made("stack", "what its parts are, along a dim", function(_, x)
    local out = {}
    for i, c in ipairs(list) do out[i] = c:check(ops.select(x, dim, i)) end
    return ops.stack(out, dim)
  end, {event_dim = event_dim, is_discrete = discrete})
end

return options.told(constraints, "distributions.constraints")
