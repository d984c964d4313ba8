-- Differences of neighbours along a dim, slopes from these, and integrals.
--
-- They are made of slices, and so have gradients.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap = lib.def, lib.fail, lib.wrap
local F = lib.functions

def("diff", "x, n:int=1, dim:int=-1, prepend:tensor?, append:tensor?",
  "differences of neighbours along dim, n times; prepend and append: what comes before x and after it",
  function(x, n, dim, before, after)
    dim = wrap("diff", dim, M.dim(x))
    if n < 0 then fail("diff", "n must not be negative, got %d", n) end
    if n == 0 then return x end
    if before or after then
      local parts = {before or x, before and x or after}
      parts[3] = before and after or nil
      x = ops.cat(parts, dim)
    end
    for _ = 1, n do
      local size = x.shape[dim]
      if size == 0 then return x end
      local later, earlier = ops.slice(x, dim, 2, math.max(size, 1)), ops.slice(x, dim, 1, size - 1 > 0 and size - 1 or 0)
      x = x.dtype == "bool" and ops.ne(later, earlier) or later - earlier
    end
    return x
  end)
def("trapezoid",
  "y, x:any?, dim:int=-1, *, dx:number=1",
  "integral along dim by the trapezoidal rule, at places x or dx apart",
  function(y, x, dim, dx)
    if y.shape[wrap("trapezoid", dim, M.dim(y))] < 2 then return ops.sum(ops.slice(y, dim, 1, 0), dim) * 1.0 end
    if x == nil then return (ops.sum(y, dim) - (ops.select(y, dim, 1) + ops.select(y, dim, -1)) / 2) * dx end
    local means = (ops.slice(y, dim, 2) + ops.slice(y, dim, 1, -2)) / 2
    if not core.is_tensor(x) then fail("trapezoid", "argument 2 (x) must be a tensor, got %s", type(x)) end
    local widths = F.diff(x, 1, M.dim(x) == 1 and 1 or dim)
    if M.dim(x) == 1 then means = M.transpose(means, dim, -1); dim = -1 end
    return ops.sum(means * widths, dim)
  end)
lib.alias("trapz", "trapezoid")
def("cumulative_trapezoid",
  "y, x:any?, dim:int=-1, *, dx:number=1",
  "trapezoid up to each place along dim, from the second on",
  function(y, x, dim, dx)
    dim = wrap("cumulative_trapezoid", dim, M.dim(y))
    if y.shape[dim] == 0 then return y * 1.0 end
    local means = (ops.slice(y, dim, 2) + ops.slice(y, dim, 1, -2)) / 2
    if x == nil then return ops.cumsum(means, dim) * dx end
    if not core.is_tensor(x) then fail("cumulative_trapezoid", "argument 2 (x) must be a tensor, got %s", type(x)) end
    local widths = F.diff(x, 1, M.dim(x) == 1 and 1 or dim)
    if M.dim(x) == 1 then return M.transpose(ops.cumsum(M.transpose(means, dim, -1) * widths, -1), dim, -1) end
    return ops.cumsum(means * widths, dim)
  end)
-- The slopes of x along dim d, whose positions are h apart, or the elements of a vector h: from the parabola through three neighbours; at
-- the ends from a line (edge 1) or that parabola too (edge 2).
local function slopes(x, d, h, edge)
  local n = x.shape[d]
  if n <= edge then fail("gradient", "dim %d has %d elements; with edge_order = %d it must have at least %d", d, n, edge, edge + 1) end
  local shape = {}
  for i = 1, M.dim(x) do shape[i] = i == d and -1 or 1 end
  if core.is_tensor(h) and (M.dim(h) ~= 1 or #h ~= n) then
    fail("gradient", "the places along dim %d must be a vector of %d, got shape %s", d, n, tostring(h.shape))
  end
  -- the steps between neighbours, shaped to broadcast with x
  local steps = core.is_tensor(h) and M.view(F.diff(h), shape)
  local function step(first, last) return steps and ops.slice(steps, d, first, last) or h end
  local function at(first, last) return ops.slice(x, d, first, last) end
  local function line(i) return (at(i + 1, i + 1) - at(i, i)) / step(i, i) end
  local parts = {}
  if n > 2 then
    local a, b = step(1, n - 2), step(2, n - 1)
    parts[1] = not steps and (at(3, n) - at(1, n - 2)) / (2 * h)
      or at(1, n - 2) * (-b / (a * (a + b))) + at(2, n - 1) * ((b - a) / (a * b)) + at(3, n) * (a / (b * (a + b)))
  end
  if edge == 1 then
    table.insert(parts, 1, line(1))
    parts[#parts + 1] = line(n - 1)
  else
    local a, b, y, z = step(1, 1), step(2, 2), step(n - 2, n - 2), step(n - 1, n - 1)
    table.insert(parts, 1, at(1, 1) * (-(a * 2 + b) / (a * (a + b))) + at(2, 2) * ((a + b) / (a * b)) - at(3, 3) * (a / (b * (a + b))))
    parts[#parts + 1] = at(n - 2, n - 2) * (z / (y * (y + z))) - at(n - 1, n - 1) * ((y + z) / (y * z)) +
      at(n, n) * ((z * 2 + y) / (z * (y + z)))
  end
  return ops.cat(parts, d)
end
def("gradient",
  "x, *, spacing:any?, dim:dims?, edge_order:int=1",
  "a list of x's slopes along each dim; spacing: how far apart places are (1), or a list with that, or a vector of places, for each",
  function(x, spacing, dims, edge)
    if edge ~= 1 and edge ~= 2 then fail("gradient", "edge_order must be 1 or 2, got %d", edge) end
    if not M.is_floating_point(x) then x = M.float(x) end
    local list, out = {}, {}
    for i = 1, dims and #dims or M.dim(x) do list[i] = wrap("gradient", dims and dims[i] or i, M.dim(x)) end
    local each = type(spacing) == "table" and not core.is_tensor(spacing)
    if each and #spacing ~= #list then fail("gradient", "spacing has %d items for %d dims", #spacing, #list) end
    for i, d in ipairs(list) do
      local h = each and spacing[i] or not each and spacing or 1
      if type(h) ~= "number" and not core.is_tensor(h) then
        fail("gradient", "spacing must be a number, or a list of numbers or vectors, got %s", lib.shown(h))
      end
      out[i] = slopes(x, d, h, edge)
    end
    return out
  end)
