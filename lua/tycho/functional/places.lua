-- Written at places: what index assignment and scatter make possible, without changing x. Indices count from 1.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap = lib.def, lib.fail, lib.wrap

local INPLACE = {inplace = true}
local function same_dtype(name, x, src)
  if src.dtype ~= x.dtype then fail(name, "src has dtype %s; it must be %s as argument 1's", src.dtype, x.dtype) end
end

def("index_put",
  "x, indices:any, values:operand, *, accumulate:bool=false",
  "x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points",
  function(x, indices, values, accumulate)
    if type(indices) ~= "table" or core.is_tensor(indices) then
      fail("index_put", "argument 2 (indices) must be a list of tensors, got %s",
        core.is_tensor(indices) and "tensor" or type(indices))
    end
    local list, dims = {}, {}
    for _, at in ipairs(indices) do
      if not core.is_tensor(at) then fail("index_put", "argument 2 (indices) must list tensors, got %s", type(at)) end
      if at.dtype == "bool" then                             -- a mask stands for as many dims as it has
        local places = ops.nonzero(at)
        for d = 1, M.dim(at) do list[#list + 1] = ops.select(places, 2, d) end
      else list[#list + 1] = M.long(at) end
    end
    for i = 1, #list do dims[i] = i end
    return ops.index_put(x, values, list, dims, {accumulate = accumulate})
  end, INPLACE)
def("put",
  "x, index, src, *, accumulate:bool=false",
  "x with src's elements written (or added) where index points in row-major order",
  function(x, index, src, accumulate)
    same_dtype("put", x, src)
    return M.reshape(ops.index_put(M.flatten(x), M.flatten(src), {M.flatten(index)}, 1, {accumulate = accumulate}), x.shape)
  end, INPLACE)

---- reductions by places ----
-- Each element of src, with its place in x's row-major order (from 1).
local function flat_places(name, x, dim, index, src)
  local n = M.dim(x)
  if M.dim(index) ~= n or M.dim(src) ~= n then
    fail(name, "shapes %s, %s and %s must have the same number of dims", tostring(x.shape), tostring(index.shape),
      tostring(src.shape))
  end
  same_dtype(name, x, src)
  dim = n > 0 and wrap(name, dim, n) or 1
  if M.numel(index) > 0 and n > 0 then ops.gather(M.detach(x), dim, M.long(index)) end       -- refuses what is out of range
  local window, stride, at = {}, 1, ops.ones({}, {dtype = "int64", device = x.device})
  for d = 1, n do
    if index.shape[d] > src.shape[d] or (d ~= dim and index.shape[d] > x.shape[d]) then
      fail(name, "index of shape %s reaches past src of shape %s or argument 1 of shape %s", tostring(index.shape),
        tostring(src.shape), tostring(x.shape))
    end
    window[d] = {1, index.shape[d]}
  end
  for d = n, 1, -1 do
    local shape = {}
    for k = 1, n do shape[k] = k == d and index.shape[d] or 1 end
    at = at + (d == dim and M.long(index) - 1 or
      ops.range(0, index.shape[d] - 1, 1, {dtype = "int64", device = x.device}):view(shape)) * stride
    stride = stride * x.shape[d]
  end
  return M.reshape(ops.expand(at, index.shape), -1), M.reshape(n > 0 and src[window] or src, -1)
end
local function marked(x, at) return ops.index_put(ops.zeros({M.numel(x)}, {dtype = "bool", device = x.device}), true, {at}, 1) end
local function added(flat, at, v) return ops.index_put(flat, v, {at}, 1, {accumulate = true}) end

-- flat with the largest (or smallest) of v written at each place: of v in order, the last of each place is written, the others beside flat.
local function extremes(flat, at, v, smallest)
  local _, by_value = ops.sort(v, 1, smallest)
  local _, by_place = ops.sort(ops.index(at, {by_value}, 1), 1)
  local order = ops.index(by_value, {by_place}, 1)
  local places, n = ops.index(at, {order}, 1), M.numel(flat)
  local last = ops.cat({ops.slice(lib.begins(places, 1), 1, 2), ops.ones({1}, {dtype = "bool", device = flat.device})}, 1)
  local wide = ops.cat({flat, ops.slice(flat, 1, 1, 1)}, 1)
  return ops.slice(ops.index_put(wide, ops.index(v, {order}, 1), {ops.where(last, places, n + 1)}, 1), 1, 1, n)
end

-- x with src's elements added at index along dim, or the mean of what meets there.
local function sums(name, x, dim, index, src, mean, include)
  same_dtype(name, x, src)
  index = M.long(index)
  local ones = ops.expand(ops.ones({}, {dtype = x.dtype, device = x.device}), index.shape)
  local count = (mean or not include) and ops.scatter_add(ops.fill(M.detach(x), include and 1 or 0), dim, index, ones)
  local base = include and x or ops.where(ops.eq(count, 0), x, 0)
  local sum = ops.scatter_add(base, dim, index, src)
  if not mean then return sum end
  count = ops.clamp(count, 1)
  return M.is_floating_point(x) and sum / count or ops.floor_divide(sum, count)
end
local REDUCE = {}
-- One factor of each place at a time.
function REDUCE.prod(flat, at, v)
  if M.numel(v) == 0 then return flat end
  local places, order = ops.sort(at, 1)
  local position = ops.range(1, M.numel(v), 1, {dtype = "int64", device = v.device})
  local first = lib.begins(places, 1)
  local rank = position - (ops.cummax(ops.where(first, position, 0), 1))
  local sorted = ops.index(v, {order}, 1)
  for k = 0, ops.amax(rank):item() do
    local now = ops.nonzero(ops.eq(rank, k)):view(-1)
    flat = flat * ops.index_put(ops.ones({M.numel(flat)}, {dtype = flat.dtype, device = flat.device}),
      ops.index(sorted, {now}, 1), {ops.index(places, {now}, 1)}, 1)
  end
  return flat
end
for name, pick in pairs {amax = ops.maximum, amin = ops.minimum} do
  REDUCE[name] = function(flat, at, v, include)
    if M.numel(v) == 0 then return flat end
    local y = extremes(M.detach(flat), at, M.detach(v), name == "amin")
    if include then y = pick(M.detach(flat), y) end
    if not core.is_grad_enabled() or not (flat.requires_grad or v.requires_grad) then return y end
    -- those that are the extreme share its gradient; `nothing` is 0 with the gradient of its argument
    local own, from = include and ops.eq(flat, y) or ops.logical_not(marked(flat, at)), ops.eq(v, ops.index(y, {at}, 1))
    local share = 1 / added(M.to(own, y.dtype), at, M.to(from, y.dtype))
    local function nothing(x, where) return ops.where(ops.logical_and(where, ops.isfinite(x)), x - M.detach(x), 0) end
    return y + nothing(flat, own) * share + added(ops.fill(y, 0), at, nothing(v, from) * ops.index(share, {at}, 1))
  end
end

def("scatter_reduce",
  "x, dim:int, index, src, reduce:enum(sum,prod,mean,amax,amin), *, include_self:bool=true",
  "x reduced with src's elements at index along dim; without include_self only src's count where there are any",
  function(x, dim, index, src, reduce, include)
    if reduce == "sum" or reduce == "mean" then return sums("scatter_reduce", x, dim, index, src, reduce == "mean", include) end
    local at, v = flat_places("scatter_reduce", x, dim, index, src)
    local flat = M.flatten(x)
    if not include and reduce == "prod" then flat = ops.masked_fill(flat, marked(x, at), 1) end
    return M.reshape(REDUCE[reduce](flat, at, v, include), x.shape)
  end, INPLACE)
def("index_reduce",
  "x, dim:int, index, src, reduce:enum(prod,mean,amax,amin), *, include_self:bool=true",
  "x reduced with src's slices at the positions that the vector index names along dim",
  function(x, dim, index, src, reduce, include)
    lib.need("index_reduce", 3, index, 1)
    local d = wrap("index_reduce", dim, M.dim(x))
    local shape = {}
    for i = 1, M.dim(x) do shape[i] = i == d and index.shape[1] or 1 end
    return lib.functions.scatter_reduce(x, d, ops.expand(M.view(index, shape), src.shape), src, reduce, {include_self = include})
  end, INPLACE)

---- parts written over ----
local function written(x, part, src)
  local y = ops.clone(x)
  M.copy_(part(y), src)
  return y
end
def("slice_scatter",
  "x, src, dim:int=1, first:int?, last:int?, step:int=1",
  "x with src written over elements first to last of dim, every step-th",
  function(x, src, dim, first, last, step)
    return written(x, function(y) return ops.slice(y, dim, first, last, step) end, src)
  end)
def("select_scatter", "x, src, dim:int, index:int", "x with src written over element index of dim", function(x, src, dim, index)
  return written(x, function(y) return ops.select(y, dim, index) end, src)
end)
def("diagonal_scatter",
  "x, src, offset:int=0, dim1:int=1, dim2:int=2",
  "x with src written over a diagonal",
  function(x, src, offset, dim1, dim2)
    return written(x, function(y) return ops.diagonal(y, offset, dim1, dim2) end, src)
  end)
function M.fill_diagonal_(x, value)
  local n = M.dim(x)
  if n < 2 then fail("fill_diagonal_", "argument 1 must have at least 2 dims, got shape %s", tostring(x.shape)) end
  if n == 2 then M.fill_(ops.diagonal(x), value)
  else
    for d = 2, n do
      if x.shape[d] ~= x.shape[1] then
        fail("fill_diagonal_", "all dims must have one size, got shape %s", tostring(x.shape))
      end
    end
    for i = 1, x.shape[1] do
      local part = x
      for _ = 1, n do part = ops.select(part, 1, i) end
      M.fill_(part, value)
    end
  end
  return x
end

def("unravel_index",
  "index, size:sizes",
  "positions in row-major order as indices into a tensor of that size, a tensor for each dim",
  function(index, size)
    local out, rest, all = {}, M.long(index) - 1, 1
    for _, s in ipairs(size) do all = all * s end
    if index.device == "cpu" and M.numel(index) > 0 and (ops.amin(rest):item() < 0 or ops.amax(rest):item() >= all) then
      fail("unravel_index", "argument 1 must hold positions from 1 to %d", all)
    end
    for d = #size, 1, -1 do
      out[d] = ops.remainder(rest, size[d]) + 1
      rest = ops.floor_divide(rest, size[d])
    end
    return unpack(out)
  end)
