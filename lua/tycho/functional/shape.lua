-- Functions of shape, made of the view ops: view, permute, expand, slice, select.
--
-- Invariant: a result is a view of x's memory whenever possible, else (reshape, flatten across strides) silently a copy.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local modes = require "tycho.modes"
local lib = require "tycho.functional.lib"
local def, fail, wrap, need, MAKES, LIST = lib.def, lib.fail, lib.wrap, lib.need, lib.MAKES, lib.LIST
local F = lib.functions
local VIEWS = {scope = false}                              -- they make nothing but their results

-- y, made from x; cloned if it is a view of x where PyTorch's result is none, so that changes to one don't affect the other.
local function fresh(y, x) return M.shares_memory(y, x) and ops.clone(y) or y end

---- shape ----
for _, f in ipairs(core.shape_functions) do lib.given(f) end
def("contiguous",
  "x, memory_format:enum(contiguous,preserve,channels_last)=contiguous",
  "x, or a copy in row-major memory order, or with channels last",
  function(x, format)
    if format == "preserve" or M.is_contiguous(x, format) then return x end
    return ops.clone(x, {memory_format = format})
  end, VIEWS)
def("adjoint", "x", "matrices transposed", function(x)
  if M.dim(x) < 2 then fail("adjoint", "argument 1 must have at least 2 dims, got shape %s", tostring(x.shape)) end
  return M.transpose(x, -2, -1)
end, VIEWS)
-- In place: x has another shape from then on; if it has a history, it becomes a view of its former value.
for _, name in ipairs {"unsqueeze", "squeeze", "transpose", "t"} do
  M[name .. "_"] = function(x, ...)
    if not core.is_tensor(x) then fail(name .. "_", "argument 1 must be a tensor, got %s; a method is called with a colon", type(x)) end
    if x.requires_grad and x.is_leaf and core.is_grad_enabled() then
      fail(name .. "_", "the shape of a leaf that requires grad can't be changed in place")
    end
    local viewed = core.is_view(x)                         -- it stays a view, whose changes are its base's
    local y
    if viewed or not x.is_leaf then y = modes.enable_grad(M[name], x, ...) else y = M[name](x, ...) end
    if rawequal(x, y) then return x end
    -- what others hold is the same leaf afterwards; a record has no such change. A checkpoint's function has handles of its own
    local alone = core.program.made(x) and not modes.now.first_run and not modes.now.recomputing
    if x.is_leaf and not viewed and not alone then core.set_data(x, M.detach(y)) else core.take_over(x, y) end
    return x
  end
end
for _, name in ipairs {"unsqueeze_", "squeeze_", "transpose_", "t_"} do lib.set(name, M[name]) end
def("sum_to_size", "x, size:sizes", "x summed over the dims along which size broadcasts to its shape", function(x, size)
  local lead = M.dim(x) - #size
  if lead < 0 then fail("sum_to_size", "shape %s has fewer than %d dims", tostring(x.shape), #size) end
  local over = {}
  for i = 1, #size do
    if size[i] == 1 and x.shape[lead + i] ~= 1 then over[#over + 1] = lead + i
    elseif size[i] ~= x.shape[lead + i] then
      fail("sum_to_size", "shape %s doesn't broadcast to %s", table.concat(size, "x"), tostring(x.shape))
    end
  end
  if #over > 0 then x = ops.sum(x, over, {keepdim = true}) end
  for _ = 1, lead do x = ops.sum(x, 1) end
  return x
end)
-- Whether both have the same shape.
lib.method("is_same_size", function(x, other)
  if not core.is_tensor(other) then fail("is_same_size", "argument 2 must be a tensor, got %s", type(other)) end
  return x.shape == other.shape
end)
-- Other names of dim() and numel().
M.ndimension, M.nelement = M.dim, M.numel
def("movedim",
  "x, from:any, to:any",
  "dim from, or several in a list, moved to place to, or places; the others keep their order",
  function(x, from, to)
    local n, order, moved = M.dim(x), {}, {}
    local function list(v, position)
      v = type(v) == "table" and v or {v}
      for _, d in ipairs(v) do
        if type(d) ~= "number" or d % 1 ~= 0 then
          fail("movedim", "argument %s must be a whole number or a list of them, got %s", position, type(d))
        end
      end
      return v
    end
    from, to = list(from, "2 (from)"), list(to, "3 (to)")
    if #from ~= #to then fail("movedim", "arguments 2 (from) and 3 (to) list %d and %d dims", #from, #to) end
    for i, d in ipairs(from) do
      local f, t = wrap("movedim", d, math.max(n, 1)), wrap("movedim", to[i], math.max(n, 1))
      if moved[f] or order[t] then fail("movedim", "a dim is named twice") end
      order[t], moved[f] = f, true
    end
    if n == 0 then return ops.view(x, {}) end
    local place = 1
    for d = 1, n do
      if not moved[d] then
        while order[place] do place = place + 1 end
        order[place] = d
      end
    end
    return ops.permute(x, order)
  end, VIEWS)
def("expand_as", "x, other", "expanded to other's shape", function(x, other) return ops.expand(x, other.shape) end, VIEWS)
def("view_as", "x, other", "viewed in other's shape", function(x, other) return ops.view(x, other.shape) end, VIEWS)
def("split", "x, size:any, dim:int=1", "a list of parts of size elements (or of the sizes in a list) along dim", function(x, size, dim)
  dim = wrap("split", dim, M.dim(x))
  local n, parts, first = x.shape[dim], {}, 1
  if type(size) == "number" then
    if size < 1 or size % 1 ~= 0 then fail("split", "argument 2 (size) must be at least 1, got %s", size) end
    local sizes = {}
    for at = 0, math.max(n - 1, 0), size do sizes[#sizes + 1] = math.min(size, n - at) end
    size = sizes
  elseif type(size) ~= "table" then fail("split", "argument 2 (size) must be a number or a list of numbers, got %s", type(size)) end
  local total = 0
  for _, s in ipairs(size) do
    if type(s) ~= "number" or s < 0 or s % 1 ~= 0 then fail("split", "argument 2 (size) must list whole numbers, got %s", tostring(s)) end
    total = total + s
  end
  if total ~= n then fail("split", "the sizes add up to %d; dim %d of shape %s has %d", total, dim, tostring(x.shape), n) end
  for i, s in ipairs(size) do
    if s == 0 then parts[i] = ops.slice(x, dim, 1, 0) else parts[i] = ops.slice(x, dim, first, first + s - 1) end
    first = first + s
  end
  return parts
end, VIEWS)
def("chunk", "x, n:int, dim:int=1", "a list of at most n parts of equal size along dim (the last may be smaller)", function(x, n, dim)
  if n < 1 then fail("chunk", "argument 2 (n) must be at least 1, got %d", n) end
  local size = x.shape[wrap("chunk", dim, M.dim(x))]
  if size > 0 then return M.split(x, math.ceil(size / n), dim) end
  local empty = {}
  for i = 1, n do empty[i] = 0 end
  return M.split(x, empty, dim)
end, VIEWS)
def("unbind", "x, dim:int=1", "the list of slices along dim", function(x, dim)
  local parts = {}
  for i = 1, x.shape[wrap("unbind", dim, M.dim(x))] do parts[i] = ops.select(x, dim, i) end
  return parts
end, VIEWS)
def("tile", "x, repeats:sizes", "x repeated along each dim, or the last (PyTorch's Tensor.repeat, and tile)", function(x, repeats)
  local shape, n = x.shape, math.max(#repeats, M.dim(x))
  while #shape < n do table.insert(shape, 1, 1) end
  while #repeats < n do table.insert(repeats, 1, 1) end
  local outer, inner, size = {}, {}, {}
  for i = 1, n do
    if repeats[i] < 0 or repeats[i] > 2 ^ 31 then
      fail("tile", "repeat %.0f is %s", repeats[i], repeats[i] < 0 and "negative" or "too many")
    end
    if repeats[i] ~= 1 then outer[#outer + 1], inner[#inner + 1] = 1, repeats[i] end
    outer[#outer + 1], inner[#inner + 1] = shape[i], shape[i]
    size[i] = repeats[i] * shape[i]
  end
  if #outer > (core.is_mapping() and 4 or 8) then                     -- too many dims to expand (vmap adds its own): one dim at a time
    local y = M.reshape(x, setmetatable(shape, nil))
    for i = 1, n do
      local behind = 1                     -- (before, repeats, behind) has few dims
      for k = i, n do behind = behind * shape[k] end
      local before = M.numel(y) / math.max(behind, 1)
      y = M.reshape(ops.expand(M.reshape(y, before, 1, behind), {before, repeats[i], behind}), before * repeats[i], behind)
    end
    return fresh(M.reshape(y, size), x)
  end
  return fresh(M.reshape(ops.expand(M.reshape(x, outer), inner), size), x)
end)
M["repeat"] = F.tile
lib.set("repeat", F.tile)
local function rolled(x, shift, dim)
  local n = x.shape[wrap("roll", dim, M.dim(x))]
  if n == 0 then return x end
  shift = shift % n
  if shift == 0 then return x end
  return ops.cat({ops.slice(x, dim, n - shift + 1, n), ops.slice(x, dim, 1, n - shift)}, dim)
end
def("roll",
  "x, shift:any, dim:dims?",
  "elements moved by shift along dim, around the end (through all elements where dim is nil); lists for several dims",
  function(x, shift, dim)
    local shifts = type(shift) == "table" and shift or {shift}
    for _, k in ipairs(shifts) do
      if type(k) ~= "number" or k % 1 ~= 0 then
        fail("roll", "argument 2 (shift) must be a whole number or a list of them, got %s", tostring(k))
      end
    end
    if not dim then
      if #shifts ~= 1 then fail("roll", "%d shifts need a dim for each", #shifts) end
      return fresh(M.reshape(rolled(M.flatten(x), shifts[1], 1), x.shape), x)
    end
    if #shifts ~= #dim then fail("roll", "%d shifts are given for %d dims", #shifts, #dim) end
    local y = x
    for i, d in ipairs(dim) do y = rolled(y, shifts[i], d) end
    return fresh(y, x)
  end)
def("unflatten", "x, dim:int, size:sizes", "dim as several dims of the given sizes (one may be -1)", function(x, dim, size)
  local shape, known, rest = {}, 1, nil
  dim = wrap("unflatten", dim, M.dim(x))
  for i, s in ipairs(x.shape) do
    if i == dim then
      for _, n in ipairs(size) do
        shape[#shape + 1] = n
        if n == -1 and not rest then rest = #shape else known = known * n end
      end
    else shape[#shape + 1] = s end
  end
  -- by this dim's size, since others may be 0
  local whole = x.shape[dim]
  if rest and known > 0 and whole % known == 0 then shape[rest] = whole / known
  elseif known ~= whole or rest then
    fail("unflatten", "sizes %s don't make up the %d elements of dim %d", table.concat(size, "x"), whole, dim)
  end
  return ops.view(x, shape)
end)
def("broadcast_to", "x, size:sizes", "expanded to size", function(x, size) return ops.expand(x, size) end, VIEWS)
def("broadcast_tensors", "tensors:tensors", "the tensors, all expanded to one shape, as so many results", function(list)
  local shapes, out = {}, {}
  for i, x in ipairs(list) do shapes[i] = x.shape end
  local shape = lib.common_shape("broadcast_tensors", shapes)
  for i, x in ipairs(list) do out[i] = ops.expand(x, shape) end
  return unpack(out)
end, LIST)
def("repeat_interleave",
  "x, repeats:any?, dim:int?, *, output_size:int?",
  "each element of dim repeats times in a row (of all elements where dim is nil); repeats may be a tensor of counts; without it x is the \z
    counts, of their positions. output_size: the sum of the counts, which a GPU is waited for without it",
  function(x, repeats, dim, total)
    if repeats == nil then
      if M.dim(x) ~= 1 then fail("repeat_interleave", "counts must be a vector, got shape %s", tostring(x.shape)) end
      x, repeats = ops.range(1, #x, 1, {dtype = "int64", device = x.device}), x
    end
    if not dim then x, dim = M.flatten(x), 1 end
    dim = wrap("repeat_interleave", dim, M.dim(x))
    local n = x.shape[dim]
    if core.is_tensor(repeats) then
      if M.is_floating_point(repeats) or repeats.dtype == "bool" then
        fail("repeat_interleave", "argument 2 (repeats) must hold whole numbers, got %s", repeats.dtype)
      end
      if M.numel(repeats) == 1 then repeats = ops.expand(M.flatten(repeats), {n}) end
      if M.dim(repeats) ~= 1 or M.numel(repeats) ~= n then
        fail("repeat_interleave", "argument 2 (repeats) has shape %s; it must have %d elements", tostring(repeats.shape), n)
      end
      if n == 0 then return ops.slice(x, dim, 1, 0) end
      repeats = M.long(repeats)
      local ends = ops.cumsum(repeats, 1)
      if not total or lib.looks(repeats) then
        local least, sum = ops.amin(repeats):item(), M.double(repeats):sum():item()
        if least < 0 or sum > 2 ^ 40 then
          fail("repeat_interleave", "%.0f repeats are %s", least < 0 and least or sum, least < 0 and "negative" or "too many")
        end
        if total and total ~= sum then fail("repeat_interleave", "output_size is %d, but the repeats add up to %d", total, sum) end
        total = sum
      end
      if total == 0 then return ops.slice(x, dim, 1, 0) end
      local at = ops.searchsorted(ends, ops.range(1, total, 1, {dtype = "int64", device = ends.device}))
      return ops.index(x, {M.to(at, x.device)}, dim)
    end
    if type(repeats) ~= "number" or repeats < 0 or repeats % 1 ~= 0 then
      fail("repeat_interleave", "argument 2 (repeats) must be a whole number from 0 or a tensor, got %s", tostring(repeats))
    end
    local wide, size = {}, {}
    for i, s in ipairs(x.shape) do
      wide[#wide + 1], size[i] = s, i == dim and s * repeats or s
      if i == dim then wide[#wide + 1] = repeats end
    end
    return fresh(M.reshape(ops.expand(M.unsqueeze(x, dim + 1), wide), size), x)
  end)
def("rot90", "x, k:int=1, dims:dims?", "turned k times by 90 degrees from the first of dims to the second", function(x, k, dims)
  dims = dims or {1, 2}
  if #dims ~= 2 then fail("rot90", "dims must list two dims, got %d", #dims) end
  local a, b = wrap("rot90", dims[1], M.dim(x)), wrap("rot90", dims[2], M.dim(x))
  if a == b then fail("rot90", "dims %d and %d must differ", a, b) end
  k = k % 4
  if k == 0 then return ops.clone(x) end
  if k == 2 then return ops.flip(x, {a, b}) end
  if k == 1 then return M.transpose(ops.flip(x, b), a, b) end
  return ops.flip(M.transpose(x, a, b), b)
end)
def("fliplr", "x", "dim 2 in reverse order", function(x) return ops.flip(x, 2) end)
def("flipud", "x", "dim 1 in reverse order", function(x) return ops.flip(x, 1) end)
def("diag_embed", "x, offset:int=0, dim1:int=-2, dim2:int=-1",
  "matrices, of dims dim1 and dim2, whose diagonal is x's last dim", function(x, offset, dim1, dim2)
  local dims = M.dim(x) + 1
  if dim1 ~= -2 or dim2 ~= -1 then
    dim1, dim2 = wrap("diag_embed", dim1, dims), wrap("diag_embed", dim2, dims)
    if dim1 == dim2 then fail("diag_embed", "dim1 and dim2 are both %d", dim1) end
    return lib.functions.movedim(lib.functions.diag_embed(x, offset), {-2, -1}, {dim1, dim2})
  end
  local shape, n = {}, x.shape[M.dim(x)]
  if not n then fail("diag_embed", "a 0-dim tensor has no diagonal") end
  for i = 1, M.dim(x) - 1 do shape[i] = x.shape[i] end
  local size = n + math.abs(offset)
  shape[#shape + 1], shape[#shape + 2] = size, size
  if M.numel(x) == 0 then return ops.zeros(shape, {dtype = x.dtype, device = x.device}) end
  local stride, step = {}, size * size
  for i = #shape - 2, 1, -1 do stride[i], step = step, step * shape[i] end
  stride[#shape - 1] = size + 1
  return ops.strided_put(ops.zeros(shape, {dtype = x.dtype, device = x.device}), x, {}, x.shape, stride,
    math.max(-offset, 0) * size + math.max(offset, 0))
end)
def("diag", "x, offset:int=0", "a matrix with the vector x on its diagonal, or the diagonal of the matrix x", function(x, offset)
  if M.dim(x) == 1 then return M.diag_embed(x, offset) end
  need("diag", 1, x, 2)
  return ops.clone(ops.diagonal(x, offset))
end)
def("diagflat",
  "x, offset:int=0",
  "a matrix with all elements of x on its diagonal",
  function(x, offset) return M.diag_embed(M.flatten(x), offset) end)
def("trace", "x", "sum of a matrix's diagonal", function(x)
  need("trace", 1, x, 2)
  return ops.sum(ops.diagonal(x))
end)
def("meshgrid",
  "tensors:tensors, *, indexing:enum(ij,xy)=ij",
  "the vectors, each expanded to the grid of all, as so many results",
  function(list, indexing)
    local n, out = #list, {}
    local flip = indexing == "xy" and n >= 2
    local shape = {}
    for i, x in ipairs(list) do
      if M.dim(x) > 1 then fail("meshgrid", "tensor %d has shape %s; vectors are needed", i, tostring(x.shape)) end
      shape[i] = M.numel(x)
    end
    if flip then shape[1], shape[2] = shape[2], shape[1] end
    for i, x in ipairs(list) do
      local at, size = flip and i <= 2 and 3 - i or i, {}
      for k = 1, n do size[k] = k == at and shape[k] or 1 end
      out[i] = ops.expand(M.reshape(x, size), shape)
    end
    return unpack(out)
  end, LIST)
local function at_least(n)
  return function(x)
    if n == 3 and M.dim(x) == 2 then return M.unsqueeze(x, 3) end
    while M.dim(x) < n do x = M.unsqueeze(x, (n == 3 and M.dim(x) == 1 or M.dim(x) == 0) and 1 or (n == 3 and 3 or 1)) end
    return x
  end
end
for n = 1, 3 do
  local name, one = ("atleast_%dd"):format(n), at_least(n)
  def(name, "x:any", ("x, or each tensor of a list, with at least %d dims"):format(n), function(x)
    if core.is_tensor(x) then return one(x) end
    if type(x) ~= "table" then fail(name, "argument 1 must be a tensor or a list of tensors, got %s", lib.shown(x)) end
    local out = {}
    for i, each in ipairs(x) do
      if not core.is_tensor(each) then fail(name, "argument 1 must be a list of tensors, got %s at %d", lib.shown(each), i) end
      out[i] = one(each)
    end
    return out
  end)
end
local function joined(name, least, dim)
  def(name, "tensors:tensors", ("tensors of at least %d dims one after another along dim %d"):format(least, dim), function(list)
    local out = {}
    for i, x in ipairs(list) do out[i] = M["atleast_" .. least .. "d"](x) end
    if #out == 0 then fail(name, "argument 1 is an empty list") end
    return ops.cat(out, (name == "hstack" and M.dim(out[1]) == 1) and 1 or dim)
  end, MAKES)
end
for name, dim in pairs {hsplit = 2, vsplit = 1, dsplit = 3} do
  -- hsplit(sections): a list of parts along dim 2 (of a vector 1); vsplit along dim 1, dsplit along dim 3. sections: the number of parts,
  -- or a list of the positions before which to cut. As tensor_split.
  M[name] = function(x, sections)
    local d = name == "hsplit" and core.is_tensor(x) and M.dim(x) == 1 and 1 or dim
    local n = core.is_tensor(x) and x.shape[d]
    if n and type(sections) == "number" and sections >= 1 and sections % 1 == 0 and n % sections ~= 0 then
      fail(name, "dim %d of shape %s can't be split into %d equal parts", d, tostring(x.shape), sections)
    end
    return M.tensor_split(x, sections, d)
  end
  lib.set(name, M[name])
end
joined("hstack", 1, 2)
joined("vstack", 2, 1)
joined("dstack", 3, 3)
def("column_stack", "tensors:tensors", "vectors as columns beside matrices", function(list)
  local out = {}
  for i, x in ipairs(list) do out[i] = M.dim(x) < 2 and M.reshape(x, -1, 1) or x end
  return ops.cat(out, 2)
end, MAKES)
def("tensor_split",
  "x, sections:any, dim:int=1",
  "a list of parts: so many of near equal size, or cut before the indices in a list or tensor",
  function(x, sections, dim)
    dim = wrap("tensor_split", dim, M.dim(x))
    local n, cuts = x.shape[dim], {}
    if core.is_tensor(sections) then sections = M.cpu(sections):totable() end
    if type(sections) == "number" and sections > 2 ^ 20 then fail("tensor_split", "%g sections are too many", sections) end
    if type(sections) == "number" and sections >= 1 and sections % 1 == 0 then
      local small, more, at = math.floor(n / sections), n % sections, 1
      for i = 1, sections - 1 do
        at = at + small + (i <= more and 1 or 0)
        cuts[i] = at
      end
    elseif type(sections) == "table" then cuts = sections
    else fail("tensor_split", "argument 2 (sections) must be a whole number from 1 or a list of indices, got %s", tostring(sections)) end
    local parts, first = {}, 1
    for i = 1, #cuts + 1 do
      local stop = cuts[i] or n + 1
      if type(stop) ~= "number" or stop % 1 ~= 0 then
        fail("tensor_split", "argument 2 (sections) must list whole numbers, got %s", tostring(stop))
      end
      if stop < 0 then stop = math.max(stop + n + 1, 1) end
      stop = math.min(stop, n + 1)
      parts[i] = stop > first and ops.slice(x, dim, first, stop - 1) or ops.slice(x, dim, 1, 0)
      first = stop
    end
    return parts
  end)
-- The number of elements of a row x col matrix on or below a diagonal.
local function count_below(row, col, offset)
  local function first(m)                  -- in the m rows from the diagonal's begin
    m = math.max(m, 0)
    local full = math.max(m - col, 0)
    return full * col + (m - full) * (m - full + 1) / 2
  end
  return first(row + offset) - first(offset)
end
-- Computed by counting, not by nonzero: doesn't wait for a GPU, and works in compiled functions.
for _, keep in ipairs {"tril", "triu"} do
  local name, upper = keep .. "_indices", keep == "triu"
  def(name,
    "row:int, col:int, offset:int=0, *, dtype:enum(int64,int32)=int64, device:device?",
    "a 2 x n tensor: row and column of each element of the triangle of row x col",
    function(row, col, offset, dtype, device)
      if math.min(row, col) < 0 then fail(name, "row and col must be at least 0, got %d and %d", row, col) end
      if upper then offset = offset - 1 end                                      -- counts the elements below, which are left out
      local n = count_below(row, col, offset)
      if upper then n = row * col - n end
      if n > 2 ^ 47 then fail(name, "there are %g such elements, which are too many", n) end
      local like = {dtype = "int64", device = device}
      if n == 0 then return ops.empty({2, 0}, {dtype = dtype, device = device}) end
      local below = ops.clamp(ops.range(1, row, 1, like) + offset, 0, col)
      local count = upper and col - below or below
      local before = ops.cumsum(count, 1) - count                                -- elements of the rows above
      local begins = ops.scatter_add(ops.zeros({n + 1}, like), 1, before + 1, ops.ones({row}, like))
      local at = ops.cumsum(ops.slice(begins, 1, 1, n), 1)
      if upper then before = before - below end
      return M.to(ops.stack({at, ops.range(1, n, 1, like) - ops.index(before, {at}, 1)}, 1), dtype)
    end, MAKES)
end
def("cartesian_prod", "tensors:tensors", "all combinations of the vectors' elements, one row each", function(list)
  if #list == 1 then return list[1] end
  local flat = {}
  for i, g in ipairs {F.meshgrid(list)} do flat[i] = M.reshape(g, -1) end
  return ops.stack(flat, 2)
end, LIST)
local MOST_CHOSEN = 2 ^ 26                 -- elements
def("combinations",
  "x, r:int=2, with_replacement:bool=false",
  "all choices of r elements of a vector in order, one row each",
  function(x, r, again)
    need("combinations", 1, x, 1)
    if r < 0 then fail("combinations", "argument 2 (r) must not be negative, got %d", r) end
    local n, rows, row = M.numel(x), {}, {}
    if r == 0 or (again and n or n - r + 1) < 1 then return ops.empty({0, r}, {dtype = x.dtype, device = x.device}) end
    local count, k = 1, 0
    while k < r and count * r <= MOST_CHOSEN do
      k = k + 1
      count = count * ((again and n - 1 + k or n - r + k) / k)
    end
    if count * r > MOST_CHOSEN then fail("combinations", "there are too many combinations of %.0f of %d elements", r, n) end
    for i = 1, r do row[i] = again and 1 or i end
    local at = r
    while at > 0 do                        -- advance the last position that can still grow
      for i = 1, r do rows[#rows + 1] = row[i] end
      at = r
      while at > 0 and row[at] == (again and n or n - r + at) do at = at - 1 end
      for i = at, at > 0 and r or -1 do row[i] = i == at and row[i] + 1 or again and row[i - 1] or row[i - 1] + 1 end
    end
    return ops.index(x, {M.to(M.view(core.from_value(rows, "int64"), {#rows / r, r}), x.device)}, 1)
  end)
def("block_diag", "tensors:tensors", "a matrix with the matrices along its diagonal", function(list)
  local blocks, rows, width = {}, {}, 0
  for i, x in ipairs(list) do
    blocks[i] = M.atleast_2d(x)
    width = width + blocks[i].shape[2]
  end
  local left = 0
  for i, x in ipairs(blocks) do
    rows[i] = ops.pad_constant(x, {left, width - left - x.shape[2]})
    left = left + x.shape[2]
  end
  return ops.cat(rows, 1)
end, LIST)
-- x's first n sizes, and their product
local function leading(x, n)
  local lead, count = {}, 1
  for i = 1, n do lead[i], count = x.shape[i], count * x.shape[i] end
  return lead, count
end
def("pixel_shuffle", "x, factor:int", "(N, C r^2, H, W) as (N, C, H r, W r)", function(x, r)
  local n = M.dim(x)
  if n < 3 or r < 1 or x.shape[n - 2] % (r * r) ~= 0 then
    fail("pixel_shuffle", "the number of channels of shape %s must be a multiple of %d", tostring(x.shape), r * r)
  end
  local c, h, w = x.shape[n - 2] / (r * r), x.shape[n - 1], x.shape[n]
  local lead, batch = leading(x, n - 3)
  local y = M.reshape(x, batch, c, r, r, h, w)
  lead[#lead + 1], lead[#lead + 2], lead[#lead + 3] = c, h * r, w * r
  return fresh(M.reshape(ops.permute(y, {1, 2, 5, 3, 6, 4}), lead), x)
end, {nn = true})
def("channel_shuffle", "x, groups:int", "channels (dim 2), which lie in groups, so that each group's first come first", function(x, groups)
  local n = M.dim(x)
  if n < 3 or groups < 1 or x.shape[2] % groups ~= 0 then
    fail("channel_shuffle", "the number of channels of shape %s must be a multiple of %d", tostring(x.shape), groups)
  end
  local shape = {x.shape[1], groups, x.shape[2] / groups}
  for i = 3, n do shape[i + 1] = x.shape[i] end
  return fresh(M.reshape(M.transpose(M.reshape(x, shape), 2, 3), x.shape), x)
end, {nn = true})
def("pixel_unshuffle", "x, factor:int", "(N, C, H r, W r) as (N, C r^2, H, W)", function(x, r)
  local n = M.dim(x)
  if n < 3 or r < 1 or x.shape[n - 1] % r ~= 0 or x.shape[n] % r ~= 0 then
    fail("pixel_unshuffle", "the last two dims of shape %s must be multiples of %d", tostring(x.shape), r)
  end
  local c, h, w = x.shape[n - 2], x.shape[n - 1] / r, x.shape[n] / r
  local lead, batch = leading(x, n - 3)
  local y = M.reshape(x, batch, c, h, r, w, r)
  lead[#lead + 1], lead[#lead + 2], lead[#lead + 3] = c * r * r, h, w
  return fresh(M.reshape(ops.permute(y, {1, 2, 4, 6, 3, 5}), lead), x)
end, {nn = true})

---- other names that PyTorch has ----
def("swapaxes", "x, axis0:int, axis1:int", "as transpose", function(x, a, b) return M.transpose(x, a, b) end)
M.swapaxes_ = core.define("swapaxes_", "x, axis0:int, axis1:int", function(x, a, b) return M.transpose_(x, a, b) end)
for name, of in pairs {swapdims = "transpose", moveaxis = "movedim", ravel = "flatten", row_stack = "vstack",
    split_with_sizes = "split"} do
  lib.alias(name, of)
end
