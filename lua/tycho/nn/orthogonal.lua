-- tycho.nn.utils.parametrizations.orthogonal: keeps a weight an orthogonal matrix while it is learned (Lezcano-Casado & Martinez-Rubio
-- 2019). State dicts are PyTorch's: parametrizations.weight.original, parametrizations.weight.0.base.
--
-- Idea: a map takes any tall matrix X to a matrix Q with orthonormal columns, which is multiplied by base, the weight's earlier value:
-- weight = base Q. X begins where Q is the identity, so that an orthogonal weight keeps its value. Wide matrices are handled transposed.
local core = require "tycho.core"
local module = require "tycho.nn.module"
local register = require("tycho.nn.parametrize").parametrize.register_parametrization
local options = require "tycho.options"
local linalg = require("tycho.functional.lib").functions
local ops, M = core.ops, core.methods
local fail = options.fail

local function mt(x) return M.transpose(x, -2, -1) end
local function eye(n, like) return ops.eye(n, {dtype = like.dtype, device = like.device}) end
local function sizes(x) return M.size(x, -2), M.size(x, -1) end

-- The skew-symmetric matrix (n, n) from the part of X (n, k), n >= k, below the diagonal.
local function skew(x)
  local n, k = sizes(x)
  x = ops.tril(x)
  if n > k then x = ops.pad_constant(x, {0, n - k}) end
  return x - mt(x)
end
local maps = {}
function maps.matrix_exp(x) return linalg["linalg.matrix_exp"](skew(x)) end
-- (I - A/2)^-1 (I + A/2)
function maps.cayley(x)
  local a, id = skew(x), eye(M.size(x, -2), x)
  return linalg["linalg.solve"](ops.expand(id, a.shape) - a / 2, ops.expand(id, a.shape) + a / 2)
end
-- A product of reflections, one for each column below its 1; the diagonal of X, of 1 and -1, gives signs.
function maps.householder(x)
  local n, k = sizes(x)
  local below, id = ops.tril(x, -1), eye(n, x)
  local q = ops.slice(id, 2, 1, k)
  for i = k, 1, -1 do
    local v = ops.slice(below, -1, i, i) + ops.slice(id, 2, i, i)
    q = q - ops.matmul(v, ops.matmul(mt(v), q)) * (2 / ops.sum(v * v, {-2}, {keepdim = true}))
  end
  return q * M.unsqueeze(ops.trunc(M.detach(ops.diagonal(x, 0, -2, -1))), -2)
end

-- The orthogonal factor of x, with signs such that the triangular one has a positive diagonal.
local function orthogonal_of(x)
  local q, r = linalg["linalg.qr"](x)
  return q * M.unsqueeze(ops.sign(ops.diagonal(r, 0, -2, -1)), -2)
end

-- right_inverse for maps with a base.
local function right_inverse(self, q)
  if q.shape ~= self.size then fail("orthogonal: the weight has shape %s; it must be %s", tostring(q.shape), tostring(self.size)) end
  local n, k = sizes(q)
  local tall = n < k and mt(q) or q
  if n < k then n, k = k, n end
  if n > k then
    local more = tall.shape
    more[#more] = n - k
    tall = ops.cat({tall, ops.randn(setmetatable(more, nil), {dtype = q.dtype, device = q.device})}, -1)
  end
  local off = ops.matmul(mt(tall), tall) - eye(n, q)
  local is = n == k and ops.amax(ops.abs(off)):item() < 10 * n * (q.dtype == "float64" and 2.3e-16 or 1.2e-7)
  self.base = is and ops.clone(tall) or orthogonal_of(tall)
  return ops.expand(-ops.eye(M.size(q, -2), M.size(q, -1), {dtype = q.dtype, device = q.device}), q.shape):clone()
end

local Orthogonal = module.Module:extend("_Orthogonal")
function Orthogonal:init(w, map, trivial)
  self.map, self.size = map, w.shape
  if not trivial then return end
  self:register_buffer("base", nil)
  self.right_inverse = right_inverse
end
function Orthogonal:forward(x)
  local n, k = sizes(x)
  local wide = n < k
  if wide then x, k = mt(x), n end
  local q = maps[self.map](x)
  if M.size(q, -1) > k then q = ops.slice(q, -1, 1, k) end
  if self.base then q = ops.matmul(self.base, q) end
  return wide and mt(q) or q
end
-- orthogonal(module, name="weight", orthogonal_map=, use_trivialization=true): the weight (..., n, k) has orthonormal columns, or rows if
-- it is wide. orthogonal_map: "matrix_exp" (default for square matrices), "cayley" or "householder" (default for others).
-- use_trivialization = false, which "householder" doesn't allow: it begins at the map's own value for the weight. Gives the module.
return function(m, ...)
  local o = options.arguments("orthogonal", "name=weight, orthogonal_map=nil, use_trivialization=true", ...)
  if not module.is_module(m) then fail("orthogonal: argument 1 must be a module, got %s", options.shown(m)) end
  local w = m[o.name]
  if not core.is_tensor(w) or M.dim(w) < 2 then
    fail("orthogonal: the %s's '%s' must be a parameter of at least 2 dims, got %s", m._name, tostring(o.name),
      core.is_tensor(w) and "shape " .. tostring(w.shape) or options.shown(w))
  end
  local n, k = sizes(w)
  local map = o.orthogonal_map or (n == k and "matrix_exp" or "householder")
  if not maps[map] then fail("orthogonal: orthogonal_map must be 'matrix_exp', 'cayley' or 'householder', got %s", options.shown(map)) end
  if map == "householder" and not o.use_trivialization then fail("orthogonal: 'householder' needs use_trivialization") end
  local p = Orthogonal(w, map, o.use_trivialization)
  return register(m, o.name, p)
end
