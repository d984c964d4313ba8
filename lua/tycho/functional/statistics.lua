-- Statistics: medians and quantiles, distinct and frequent values, histograms, covariances.
--
-- Idea: most functions find elements by their rank, or sort, so their gradients follow from those ops. Invariant: NaN is larger than all
-- numbers.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap, need = lib.def, lib.fail, lib.wrap, lib.need

-- v, a value of x's elements; its gradient is shared by all elements equal to it.
local function shared(v, x)
  if not x.requires_grad then return v end
  v = M.detach(v)
  local those = ops.logical_or(ops.eq(x, v), ops.logical_and(ops.isnan(x), ops.isnan(v)))
  local mean = ops.sum(ops.where(those, x, 0)) / ops.clamp(ops.sum(those), 1)
  return ops.where(ops.isfinite(v), v + (mean - M.detach(mean)), mean)
end
local function median(name, ignore)
  def(name, "x, dim:int?, keepdim:bool=false",
    "the middle value (the lower of two), without dim of all elements; with dim its index too" ..
      (ignore and "; NaN is left out" or ""),
    function(x, dim, keepdim)
      local whole, given = dim == nil, x
      if whole then x, dim = M.flatten(x), 1 end
      dim = wrap(name, dim, math.max(M.dim(x), 1))
      local n = M.dim(x) == 0 and 1 or x.shape[dim]
      if n == 0 and whole and M.is_floating_point(x) then return ops.full({}, 0 / 0, {dtype = x.dtype, device = x.device}) end
      if n == 0 then fail(name, "dim %d of shape %s is empty", dim, tostring(x.shape)) end
      local v, i
      if M.dim(x) == 0 then v, i = ops.sort(x)
      else
        local at = math.floor((n + 1) / 2)
        if M.is_floating_point(x) then
          local nan = ops.isnan(x)
          local valid = n - ops.sum(nan, dim, {keepdim = true})
          if ignore then at = ops.clamp(ops.floor_divide(valid + 1, 2), 1)
          else at = ops.where(ops.lt(valid, n), valid + 1, at) end     -- the first NaN
        end
        v, i = lib.order_statistics(x, dim, at)
        if not keepdim or whole then v, i = M.squeeze(v, dim), M.squeeze(i, dim) end
      end
      if whole then return shared(v, given) end
      return v, i
    end)
end
median("median", false)
median("nanmedian", true)
local function quantile(name, ignore)
  def(name,
    "x, q:any, dim:int?, keepdim:bool=false, *, interpolation:enum(linear,lower,higher,nearest,midpoint)=linear",
    "the value below which a part q (a number or a vector, 0..1) of x lies along dim" .. (ignore and "; NaN is left out" or ""),
    function(x, q, dim, keepdim, how)
      if not M.is_floating_point(x) then fail(name, "argument 1 must have a floating dtype, got %s", x.dtype) end
      local parts, out = nil, {}
      if type(q) == "table" then parts, q = type(q[1]) == "number" and q, core.from_value(q, "float64") end
      parts = parts or core.is_tensor(q) and M.totable(M.flatten(q)) or {q}
      local tracked = core.is_tensor(q) and q.requires_grad and M.to(M.flatten(q), x)      -- for q's own gradient
      local whole = not dim and x
      if M.dim(x) == 0 then whole = x end
      dim = wrap(name, dim or 1, math.max(M.dim(x), 1))
      if whole then x, dim = M.flatten(x), 1 end
      local n = x.shape[dim]
      if n == 0 then fail(name, "dim %d of shape %s is empty", dim, tostring(x.shape)) end
      local valid = ops.sum(ops.logical_not(ops.isnan(x)), dim, {keepdim = true})
      -- positions count from 0 in x's dtype, as PyTorch's; 16 bits are too few for them
      local last = M.to(ignore and ops.clamp(valid - 1, 0) or ops.fill(valid, n - 1), M.element_size(x) == 2 and "float32" or x.dtype)
      local at, low, high = {}, {}, {}
      for k, part in ipairs(parts) do
        if type(part) ~= "number" or not (part >= 0 and part <= 1) then
          fail(name, "argument 2 (q) must lie in 0..1, got %s", tostring(part))
        end
        at[k] = last * (tracked and M.select(tracked, 1, k) or part)
        if how == "nearest" then at[k] = ops.round(at[k]) end
        low[k] = how == "higher" and ops.ceil(at[k]) or ops.floor(at[k])
        high[k] = how == "lower" and ops.floor(at[k]) or ops.ceil(at[k])
      end
      local m = #parts
      if m == 0 then fail(name, "argument 2 (q) is empty") end
      local ranks = M.long(ops.cat({ops.cat(low, dim), ops.cat(high, dim)}, dim)) + 1
      local v = ops.order_statistics(x, dim, ops.clamp(ranks, 1, n))         -- positions may have been rounded up
      for k = 1, m do
        local a, b = ops.slice(v, dim, k, k), ops.slice(v, dim, m + k, m + k)
        local y = ops.where(ops.eq(low[k], high[k]), a, ops.lerp(a, b, how == "midpoint" and 0.5 or M.to(at[k] - low[k], x.dtype)))
        if not ignore then y = ops.masked_fill(y, ops.lt(valid, n), 0 / 0) end
        out[k] = keepdim and (whole and lib.all_kept(y, whole) or y) or M.squeeze(y, dim)
      end
      return core.is_tensor(q) and M.dim(q) > 0 and ops.stack(out, 1) or out[1]
    end)
end
quantile("quantile", false)
quantile("nanquantile", true)
-- The distinct slices of x along dim, in the order of their elements; each slice's index among them; each one's count.
local function unique_slices(x, dim)
  local first = M.movedim(x, dim, 1)
  local n, shape = first.shape[1], {unpack(first.shape)}
  local rows = M.reshape(first, n, M.numel(first) / math.max(n, 1))
  local order = ops.range(1, n, 1, {dtype = "int64", device = x.device})
  for c = M.size(rows, 2), 1, -1 do                        -- last element first: stable sorts keep the order of equals
    order = order[select(2, ops.sort(ops.select(rows, 2, c)[order], 1, {stable = true}))]
  end
  local sorted = rows[order]
  local begins = ops.ones({n}, {dtype = "bool", device = x.device})
  if n > 1 then begins = ops.cat({begins[{ {1, 1} }], ops.any(ops.ne(sorted[{ {2, n} }], sorted[{ {1, n - 1} }]), 2)}) end
  local group = ops.cumsum(M.long(begins), 1)
  local v = sorted[begins]
  shape[1] = v.shape[1]
  return M.contiguous(M.movedim(M.reshape(v, shape), 1, dim)), ops.scatter(group, 1, order, group), ops.bincount(group)
end
def("unique", "x, *, sorted:bool=true, return_inverse:bool=false, return_counts:bool=false, dim:int?",
  "the distinct elements (slices along dim) in order; then, where asked for, each one's index among them, and how often each occurs",
  function(x, _, inverse, counts, dim)
    if dim then
      dim = wrap("unique", dim, M.dim(x))
      local v, i, n = M.detach(x), ops.zeros({0}, {dtype = "int64", device = x.device}), nil
      if M.dim(x) > 0 and M.size(x, dim) > 0 then v, i, n = unique_slices(v, dim) end
      if inverse then return v, i, counts and (n or i) or nil end
      return v, counts and (n or i) or nil
    end
    local v, i, n = ops.unique_values(M.detach(x))
    if inverse and counts then return v, i, n end
    if inverse then return v, i end
    if counts then return v, n end
    return v
  end)
def("unique_consecutive", "x, return_inverse:bool=false, return_counts:bool=false, dim:int?",
  "the elements in row-major order (slices along dim) without those that repeat the one before; then, where asked for, each one's \z
    index among them, and how often each occurs in a row",
  function(x, inverse, counts, dim)
    x = M.detach(x)
    if dim then dim = wrap("unique_consecutive", dim, M.dim(x)) end
    local rows = dim and M.movedim(x, dim, 1) or M.flatten(x)
    local first = M.size(rows, 1) == 0 and ops.zeros({0}, {dtype = "bool", device = x.device}) or lib.begins(rows, 1)
    if M.dim(first) > 1 then first = ops.any(M.flatten(first, 2), 2) end
    local v, at = rows[first], ops.cumsum(M.long(first), 1)
    if dim then v = M.contiguous(M.movedim(v, 1, dim)) end
    local n = counts and ops.bincount(at) or nil
    at = inverse and (dim and at or M.reshape(at, x.shape)) or nil
    if inverse then return v, at, n end
    return v, n
  end)
def("mode", "x, dim:int=-1, keepdim:bool=false", "the most frequent value along dim (the least of several) and its last index",
  function(x, dim, keepdim)
    dim = wrap("mode", dim, math.max(M.dim(x), 1))
    if M.dim(x) == 0 then return ops.clone(x), ops.ones({}, {dtype = "int64", device = x.device}) end
    local n, shape = x.shape[dim], {}
    if n == 0 then fail("mode", "dim %d of shape %s is empty", dim, tostring(x.shape)) end
    for i = 1, M.dim(x) do shape[i] = i == dim and n or 1 end
    local v, i = ops.sort(x, dim)
    local place = ops.expand(ops.range(1, n, 1, {dtype = "int64", device = x.device}):view(shape), x.shape)
    local begins = lib.begins(v, dim, true)
    -- the end of the first longest run
    local _, longest = ops.max_dim(place - (ops.cummax(ops.where(begins, place, 0), dim)), dim, true)
    v, i = ops.gather(v, dim, longest), ops.gather(i, dim, longest)
    if not keepdim then v, i = M.squeeze(v, dim), M.squeeze(i, dim) end
    return v, i
  end)
def("histogram", "x, bins:any, *, range:any?, weight:tensor?, density:bool=false",
  "how many elements (or how much weight) fall between neighbouring edges: bins equal parts of range = {least, most}, \z
    x's own where nil, or a tensor of edges; and the edges",
  function(x, bins, range, weight, density)
    if not M.is_floating_point(x) then fail("histogram", "argument 1 must have a floating dtype, got %s", x.dtype) end
    local flat, edges = M.flatten(M.detach(x)), bins
    if not core.is_tensor(bins) then
      if type(bins) ~= "number" or bins < 1 or bins % 1 ~= 0 then
        fail("histogram", "argument 2 (bins) must be a whole number from 1 or a tensor, got %s", tostring(bins))
      end
      local least, most = 0, 0
      if range ~= nil then least, most = (type(range) == "table" and range or {})[1], (type(range) == "table" and range or {})[2]
      elseif M.numel(flat) > 0 then least, most = ops.amin(flat):item(), ops.amax(flat):item() end
      if type(least) ~= "number" or type(most) ~= "number" or least > most or least ~= least or most ~= most then
        fail("histogram", "range must be {least, most}")
      end
      if math.max(-least, most) == math.huge then fail("histogram", "range %g..%g isn't finite", least, most) end
      if least == most then least, most = least - 0.5, most + 0.5 end
      edges = ops.linspace(least, most, bins + 1, {dtype = x.dtype, device = x.device})
    end
    need("histogram", 2, edges, 1)
    local n = M.numel(edges) - 1
    local top = ops.slice(edges, 1, n + 1, n + 1)
    local inside = ops.logical_and(ops.ge(flat, ops.slice(edges, 1, 1, 1)), ops.le(flat, top))
    local at = ops.clamp(ops.searchsorted(edges, flat, {right = true}) - 1, 1, n)
    local amount = M.to(inside, edges.dtype)
    if weight then amount = amount * M.flatten(weight) end
    local h = ops.index_put(ops.zeros({n}, {dtype = edges.dtype, device = x.device}), amount, {at}, 1, {accumulate = true})
    if density then h = h / ops.sum(h) / (ops.slice(edges, 1, 2) - ops.slice(edges, 1, 1, -2)) end
    return h, edges
  end)
-- Operands to compare with each other, in a dtype that holds both; a number may be a fraction though x has whole numbers.
local function compared(x, v)
  if not core.is_tensor(v) then
    if type(v) == "boolean" then v = v and 1 or 0 end
    local whole = v % 1 == 0 and math.abs(v) <= 2 ^ 53
    v = ops.full({}, v, {dtype = M.is_floating_point(x) and x.dtype or whole and "int64" or "float64", device = x.device})
  end
  if x.dtype == v.dtype then return x, v end
  local dtype = lib.promote_types(x.dtype, v.dtype)
  return M.to(x, dtype), M.to(v, dtype)
end
def("searchsorted", "sorted, values:operand, *, right:bool=false, side:enum(left,right)=left, sorter:tensor?, out_int32:bool=false",
  "for each value the index before which it would be put into the sorted last dim (right: after equals); sorter: what sorts it, if nothing has",
  function(sorted, values, right, side, sorter, small)
    sorted, values = compared(sorted, values)
    if sorter then
      if tostring(sorter.shape) ~= tostring(sorted.shape) then
        fail("searchsorted", "sorter has shape %s; it must be %s as argument 1's", tostring(sorter.shape), tostring(sorted.shape))
      end
      sorted = ops.gather(sorted, -1, M.long(sorter))
    end
    local at = ops.searchsorted(sorted, values, {right = right or side == "right"})
    return small and M.int(at) or at
  end)
def("bucketize", "x:operand, boundaries, *, right:bool=false, out_int32:bool=false",
  "for each element the index before which it would be put into boundaries",
  function(x, boundaries, right, small)
    need("bucketize", 2, boundaries, 1)
    boundaries, x = compared(boundaries, x)
    local at = ops.searchsorted(boundaries, x, {right = right})
    return small and M.int(at) or at
  end)
def("histc", "x, bins:int=100, min:number=0, max:number=0",
  "how many elements fall into each of bins equal parts of min..max (of x's own range where both are the same)",
  function(x, bins, min, max)
    x = M.flatten(M.detach(x))
    if x.dtype == "bool" then fail("histc", "argument 1 must hold numbers, got bool") end
    if bins < 1 then fail("histc", "argument 2 (bins) must be at least 1, got %d", bins) end
    local whole = min == max and M.numel(x) > 0
    if whole then min, max = ops.amin(x):item(), ops.amax(x):item() end
    if min == max then min, max = min - 1, max + 1 end
    if not (min < max and max - min < math.huge) then fail("histc", "min %g must be below max %g, and both must be finite", min, max) end
    local function inside() return ops.logical_and(ops.ge(x, min), ops.le(x, max)) end
    if lib.looks(x) then                                 -- where a size that depends on values needs no wait
      local taken = whole and x or x[inside()]
      local at = ops.clamp(M.long((taken - min) * (bins / (max - min))) + 1, 1, bins)
      return M.to(ops.bincount(at, {minlength = bins}), x.dtype)
    end
    local at = ops.clamp(M.long(ops.floor((x - min) * (bins / (max - min)))) + 1, 1, bins)
    local counts = ops.zeros({bins}, {dtype = "int64", device = x.device})
    return M.to(ops.index_put(counts, M.long(inside()), {at}, 1, {accumulate = true}), x.dtype)
  end)
def("cov", "x, *, correction:int=1, fweights:tensor?, aweights:tensor?",
  "covariances of the rows of x; fweights: how often each column counts, aweights: how much", function(x, correction, fweights, aweights)
  if M.dim(x) > 2 then fail("cov", "argument 1 must have at most 2 dims, got shape %s", tostring(x.shape)) end
  local flat = M.dim(x) < 2 or x.shape[1] == 1
  if M.dim(x) < 2 then x = M.reshape(x, 1, -1) end
  if not M.is_floating_point(x) then x = M.float(x) end
  local w = fweights
  for name, v in pairs {fweights = fweights or false, aweights = aweights or false} do
    if v and (M.dim(v) ~= 1 or #v ~= x.shape[2]) then
      fail("cov", "%s must be a vector of %d, one for each column, got shape %s", name, x.shape[2], tostring(v.shape))
    end
    if v and name == "fweights" and M.is_floating_point(v) then fail("cov", "fweights must be whole numbers, got %s", v.dtype) end
    if v and lib.looks(v) and ops.any(ops.lt(v, 0)):item() then fail("cov", "%s must not be negative", name) end
  end
  if aweights then w = w and w * aweights or aweights end
  if w then w = M.to(w, x.dtype) end
  local sum = w and ops.sum(w) or x.shape[2]
  local d = x - (w and ops.sum(x * w, 2, {keepdim = true}) / sum or ops.mean(x, 2, {keepdim = true}))
  local norm = not aweights and sum - correction or correction == 0 and sum or sum - ops.sum(w * aweights) * correction / sum
  local y = ops.matmul(w and d * w or d, M.t(d)) / (w and ops.clamp(norm, 0) or math.max(norm, 0))
  return flat and M.view(y, {}) or y
end)
def("corrcoef", "x", "correlations of the rows of x", function(x)
  local c = M.cov(x)
  if M.dim(c) == 0 then return c / c end
  local s = ops.sqrt(ops.diagonal(c))
  return ops.clamp(c / M.unsqueeze(s, 2) / M.unsqueeze(s, 1), -1, 1)
end)
