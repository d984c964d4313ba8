-- Reads and writes elements at positions given by indices or masks, without changing x. Indices count from 1.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local options = require "tycho.options"
local shown = options.shown
local def, fail, wrap, need = lib.def, lib.fail, lib.wrap, lib.need
local F = lib.functions

local INPLACE = {inplace = true}
local function same_dtype(name, x, src)
  if src.dtype ~= x.dtype then fail(name, "src has dtype %s; it must be %s as argument 1's", src.dtype, x.dtype) end
end
-- Indices as a vector; without dims: a vector of one element.
local function vector(name, index)
  if M.dim(index) == 0 then index = M.view(index, 1) end
  need(name, 3, index, 1)
  return lib.indices(name, 3, index)
end

def("index_select", "x, dim:int, index", "the elements of dim that the vector index names", function(x, dim, index)
  index = vector("index_select", index)
  if M.dim(x) > 0 then return ops.index(x, {index}, dim) end
  if #index ~= 1 then fail("index_select", "of a tensor without dims exactly one element must be chosen, got %d indices", #index) end
  return M.view(ops.index(M.view(x, 1), {index}, dim), {})
end)
def("index_add",
  "x, dim:int, index, src, *, alpha:number=1",
  "x with alpha times src's slices added at index along dim",
  function(x, dim, index, src, alpha)
    index = vector("index_add", index)
    if src.dtype ~= x.dtype then fail("index_add", "argument 4 has dtype %s; it must be %s as argument 1's", src.dtype, x.dtype) end
    if M.dim(src) == 0 and #index == 1 and M.dim(x) < 2 then src = M.view(src, 1) end
    return lib.of_vector(x, function(y)
      local want = y.shape
      want[wrap("index_add", dim, M.dim(y))] = index.shape[1]
      if src.shape ~= want then fail("index_add", "argument 4 has shape %s; it must be %s", tostring(src.shape), tostring(want)) end
      return ops.index_put(y, alpha == 1 and src or src * alpha, {index}, dim, {accumulate = true})
    end)
  end, INPLACE)
def("masked_select", "x, mask", "the elements where mask is true, as a vector", function(x, mask)
  local shape = ops.logical_or(ops.zeros({}, {dtype = "bool", device = x.device}):expand(x.shape), mask).shape   -- what both broadcast to
  if #shape == 0 then shape = {1} end
  return ops.expand(x, shape)[ops.expand(mask, shape)]
end)
for _, row in ipairs {{"index_copy", "src"}, {"index_fill", "value"}} do
  local name, value = unpack(row)
  def(name,
    ("x, dim:int, index, %s:operand"):format(value),
    ("x with %s written at index along dim"):format(value),
    function(x, dim, index, v)
      index = vector(name, index)
      if name == "index_fill" and core.is_tensor(v) and M.dim(v) > 0 then
        fail("index_fill", "argument 4 (value) must be a number or a tensor without dims, got shape %s", tostring(v.shape))
      end
      if name == "index_fill" and core.is_tensor(v) and v.requires_grad then       -- one gradient, even if a position is named repeatedly
        if M.dim(x) == 0 then return M.view(M[name](M.view(x, 1), dim, index, v), {}) end
        local n, size = x.shape[wrap(name, dim, M.dim(x))], {}
        for k = 1, M.dim(x) do size[k] = k == wrap(name, dim, M.dim(x)) and n or 1 end
        local mask = ops.index_put(ops.zeros({n}, {dtype = "bool", device = x.device}), true, {index}, 1)
        return ops.where(M.view(mask, size), M.to(v, x.dtype), x)
      end
      return lib.of_vector(x, function(y) return ops.index_put(y, v, {index}, dim) end)
    end, INPLACE)
end
def("take",
  "x, index",
  "the elements that index names in row-major order",
  function(x, index) return ops.index(M.flatten(x), {lib.indices("take", 2, index)}, 1) end)
def("take_along_dim", "x, index, dim:int?", "x's elements at index along dim; other dims broadcast", function(x, index, dim)
  if not dim then return F.take_along_dim(M.flatten(x), M.flatten(index), 1) end
  index = lib.indices("take_along_dim", 2, index)
  local n = M.dim(x)
  if M.dim(index) ~= n then
    fail("take_along_dim", "argument 2 has shape %s; it must have as many dims as argument 1 of shape %s",
      tostring(index.shape), tostring(x.shape))
  end
  dim = wrap("take_along_dim", dim, n)
  local sx, si = x.shape, index.shape
  for i = 1, n do if i ~= dim then
    local s = math.max(sx[i], si[i])
    if sx[i] == 0 or si[i] == 0 then s = 0 end
    sx[i], si[i] = s, s
  end end
  index = ops.where(ops.lt(index, 0), index + (sx[dim] + 1), index)          -- negative: from the end
  return ops.gather(ops.expand(x, sx), dim, ops.expand(index, si))
end)
def("masked_scatter", "x, mask, src", "x with src's elements, in order, where mask is true", function(x, mask, src)
  if mask.dtype ~= "bool" then fail("masked_scatter", "argument 2 (mask) must be a bool tensor, got %s", mask.dtype) end
  x, mask = F.broadcast_tensors({x, mask})
  local at = ops.nonzero(M.flatten(mask)):view(-1)
  local n = M.numel(at)
  if M.numel(src) < n then fail("masked_scatter", "argument 3 has %d elements; the mask needs %d", M.numel(src), n) end
  return M.reshape(ops.index_put(M.flatten(x), ops.slice(M.flatten(src), 1, 1, n), {at}, 1), x.shape)
end, INPLACE)

def("index_put",
  "x, indices:any, values:operand, accumulate:bool=false",
  "x with values written (or added) where a list of index tensors, one for each dim from the first on, or of masks points",
  function(x, indices, values, accumulate)
    if type(indices) ~= "table" or core.is_tensor(indices) then
      fail("index_put", "argument 2 (indices) must be a list of tensors, got %s",
        shown(indices))
    end
    local list, dims = {}, {}
    for _, at in ipairs(indices) do
      if not core.is_tensor(at) then fail("index_put", "argument 2 (indices) must list tensors, got %s", type(at)) end
      if at.dtype == "bool" or at.dtype == "uint8" then      -- a mask stands for as many dims as it has
        local places = ops.nonzero(at)
        for d = 1, M.dim(at) do list[#list + 1] = ops.select(places, 2, d) end
      else list[#list + 1] = lib.indices("index_put", "2 (indices)", at) end
    end
    for i = 1, #list do dims[i] = i end
    return ops.index_put(x, values, list, dims, {accumulate = accumulate})
  end, INPLACE)
def("put",
  "x, index, src, accumulate:bool=false",
  "x with src's elements written (or added) where index points in row-major order",
  function(x, index, src, accumulate)
    same_dtype("put", x, src)
    index = lib.indices("put", "2 (index)", index)
    return M.reshape(ops.index_put(M.flatten(x), M.flatten(src), {M.flatten(index)}, 1, {accumulate = accumulate}), x.shape)
  end, INPLACE)

---- reductions by places ----
-- How many elements of index meet in each position of x, plus initial; of size 1 in dims along which index is expanded.
local function counts(name, x, dim, index, initial)
  local like = M.detach(x)
  for d = 1, M.dim(x) == M.dim(index) and M.dim(x) or 0 do
    if d ~= wrap(name, dim, M.dim(x)) and index.shape[d] == x.shape[d] and index.shape[d] > 0 and M.stride(index, d) == 0 then
      like, index = ops.slice(like, d, 1, 1), ops.slice(index, d, 1, 1)
    end
  end
  local dtype = x.dtype == "float64" and "float64" or M.is_floating_point(x) and "float32" or "int64"     -- dtypes that hold the count
  local ones = ops.expand(ops.ones({}, {dtype = dtype, device = x.device}), index.shape)
  return ops.scatter_add(ops.fill(M.to(like, dtype), initial), dim, index, ones)
end

-- x with src's elements added at index along dim, or the mean of those that meet there.
local function sums(name, x, dim, index, src, mean, include)
  if x.dtype == "bool" then lib.fail(name, "argument 1 (x) must hold numbers, got bool") end
  same_dtype(name, x, src)
  local count = (mean or not include) and counts(name, x, dim, index, include and 1 or 0)
  local base = include and x or ops.where(ops.eq(count, 0), x, 0)
  local sum = ops.scatter_add(base, dim, index, src)
  if not mean then return sum end
  count = ops.clamp(count, 1)
  return M.to(M.is_floating_point(x) and sum / count or ops.floor_divide(sum, count), x.dtype)
end

-- x where nothing is reduced, elsewhere a value that doesn't affect the reduction
local function neutral(x, dim, index, src, reduce)
  if reduce ~= "prod" and not M.is_floating_point(x) then return ops.scatter(x, dim, index, src) end      -- any one of those that meet
  local met = ops.scatter(ops.zeros(x.shape, {dtype = "bool", device = x.device}), dim, index, true)
  return ops.masked_fill(x, met, reduce == "prod" and 1 or reduce == "amax" and -math.huge or math.huge)
end

def("scatter", "x, dim:int, index, src:operand, *, reduce:enum(none,add,multiply)=none",
  "x with src written at index along dim; reduce: added to what is there, or multiplied with it",
  function(x, dim, index, src, reduce)
    if reduce == "none" then return ops.scatter(x, dim, index, src) end
    if not core.is_tensor(src) then src = ops.expand(ops.full({}, src, {dtype = x.dtype, device = x.device}), index.shape) end
    return F.scatter_reduce(x, dim, index, src, reduce == "add" and "sum" or "prod")
  end, INPLACE)
-- Without reduce, the op's own in-place form.
local reduced_ = M.scatter_
M.scatter_ = core.define("scatter_", "x, dim:int, index, src:operand, *, reduce:enum(none,add,multiply)=none",
  function(x, dim, index, src, reduce)
    if reduce == "none" then return ops.scatter_(x, dim, index, src) end
    return reduced_(x, dim, index, src, {reduce = reduce})
  end)
lib.set("scatter_", M.scatter_)

def("scatter_reduce",
  "x, dim:int, index, src, reduce:enum(sum,prod,mean,amax,amin), *, include_self:bool=true",
  "x reduced with src's elements at index along dim; without include_self only src's count where there are any",
  function(x, dim, index, src, reduce, include)
    index = lib.indices("scatter_reduce", "3 (index)", index)
    if reduce == "sum" or reduce == "mean" then return sums("scatter_reduce", x, dim, index, src, reduce == "mean", include) end
    for d = 1, math.min(M.dim(index), M.dim(src)) do
      if src.shape[d] > index.shape[d] then src = ops.slice(src, d, 1, index.shape[d]) end
    end
    return ops.scatter_combine(include and x or neutral(x, dim, index, src, reduce), dim, index, src, reduce)
  end, INPLACE)
def("index_reduce",
  "x, dim:int, index, src, reduce:enum(prod,mean,amax,amin), *, include_self:bool=true",
  "x reduced with src's slices at the positions that the vector index names along dim",
  function(x, dim, index, src, reduce, include)
    index = vector("index_reduce", index)
    if M.dim(x) == 0 then return M.scatter_reduce(x, dim, M.view(index, {}), M.view(src, {}), reduce, {include_self = include}) end
    local d = wrap("index_reduce", dim, M.dim(x))
    local shape = {}
    for i = 1, M.dim(x) do shape[i] = i == d and index.shape[1] or 1 end
    return F.scatter_reduce(x, d, ops.expand(M.view(index, shape), src.shape), src, reduce, {include_self = include})
  end, INPLACE)

---- parts written over ----
local function written(x, part, src)
  local y = ops.clone(core.is_mapping() and core.map_in_all(core.map_out_all(x)) or x)
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
def("as_strided_scatter",
  "x, src, size:ints, stride:ints, storage_offset:int=0",
  "x, contiguous, with src written over its elements at as_strided's places",
  function(x, src, size, stride, offset)
    return written(x, function(y) return ops.as_strided(y, size, stride, offset) end, src)
  end)
-- fill_diagonal_(value, wrap=false): in place. For more than 2 dims, of equal size: the elements whose indices are all equal. wrap: in a
-- matrix with more rows than columns the diagonal restarts after one further row.
function M.fill_diagonal_(x, value, again)
  local n = M.dim(x)
  if type(value) == "table" and not core.is_tensor(value) then
    local o = options.arguments("fill_diagonal_", "value, wrap=false", value)
    value, again = o.value, o.wrap
  else again = options.arguments("fill_diagonal_", "value, wrap=false", value, again).wrap end
  if again and n == 2 and x.shape[1] > x.shape[2] and x.shape[2] > 0 then
    for first = 1, x.shape[1], x.shape[2] + 1 do
      M.fill_(ops.diagonal(ops.slice(x, 1, first, math.min(first + x.shape[2] - 1, x.shape[1]))), value)
    end
    return x
  end
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
    if lib.looks(index) and M.numel(index) > 0 and (ops.amin(rest):item() < 0 or ops.amax(rest):item() >= all) then
      fail("unravel_index", "argument 1 must hold positions from 1 to %d", all)
    end
    for d = #size, 1, -1 do
      out[d] = ops.remainder(rest, size[d]) + 1
      rest = ops.floor_divide(rest, size[d])
    end
    return unpack(out)
  end)
