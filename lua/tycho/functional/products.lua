-- Matrix products, einsum, distances and similarities, and selection by indices.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap, need, NN = lib.def, lib.fail, lib.wrap, lib.need, lib.NN
local F = lib.functions
local modes = require "tycho.modes"
local no_grad = modes.no_grad

---- matrix products ----
local function product(name, doc, dims_a, dims_b)
  def(name, "a, b", doc, function(a, b)
    need(name, 1, a, dims_a)
    need(name, 2, b, dims_b)
    return ops.matmul(a, b)
  end)
end
product("mm", "product of two matrices", 2, 2)
product("bmm", "products of two batches of matrices", 3, 3)
product("mv", "matrix times vector", 2, 1)
-- Under autocast these keep their operands' precision: a sum of many products in 16 bits could overflow.
def("dot", "a, b", "product of two vectors", function(a, b)
  need("dot", 1, a, 1)
  need("dot", 2, b, 1)
  return lib.exactly(ops.matmul, lib.widest(a, b))
end)
def("outer", "a, b", "every element of a times every element of b", function(a, b)
  need("outer", 1, a, 1)
  need("outer", 2, b, 1)
  return M.unsqueeze(a, 2) * b
end)
-- beta * x + alpha * y
local function blend(x, beta, y, alpha)
  if x.dtype ~= y.dtype and core.autocast(y.device ~= "cpu") then x = M.to(x, y.dtype) end
  if alpha ~= 1 then y = y * alpha end
  if beta == 0 then return y end
  return ops.add(y, x, {alpha = beta})
end
for _, row in ipairs {{"addmm", 2, 2}, {"baddbmm", 3, 3}, {"addmv", 2, 1}} do
  local name, da, db = unpack(row)
  def(name, "x, a, b, *, beta:number=1, alpha:number=1", "beta * x + alpha * (a @ b)", function(x, a, b, beta, alpha)
    need(name, 2, a, da)
    need(name, 3, b, db)
    return blend(x, beta, ops.matmul(a, b), alpha)
  end, {inplace = true})
end
def("addbmm",
  "x, a, b, *, beta:number=1, alpha:number=1",
  "beta * x + alpha * the sum over the batch of a @ b",
  function(x, a, b, beta, alpha)
    need("addbmm", 2, a, 3)
    need("addbmm", 3, b, 3)
    local y = ops.matmul(a, b)
    return blend(x, beta, ops.sum(y, 1, {dtype = y.dtype}), alpha)
  end, {inplace = true})
def("addr",
  "x, a, b, *, beta:number=1, alpha:number=1",
  "beta * x + alpha * outer(a, b)",
  function(x, a, b, beta, alpha) return blend(x, beta, M.outer(a, b), alpha) end, {inplace = true})
def("inner", "a, b", "sums of products over the last dims", function(a, b)
  if M.dim(a) == 0 or M.dim(b) == 0 then return a * b end
  return F.tensordot(a, b, {{-1}, {-1}})
end)
def("tensordot",
  "a, b, dims:any?",
  "sums of products over dims: the last of a with so many first ones of b, or {{dims of a}, {dims of b}}",
  function(a, b, dims)
    dims = dims or 2
    local da, db = {}, {}
    if type(dims) == "number" then
      if dims % 1 ~= 0 or dims < 0 or dims > math.min(M.dim(a), M.dim(b)) then
        fail("tensordot", "argument 3 (dims) must be a whole number from 0 to the smaller number of dims of shapes %s and %s, got %s",
          tostring(a.shape), tostring(b.shape), tostring(dims))
      end
      for i = 1, dims do da[i], db[i] = M.dim(a) - dims + i, i end
    elseif type(dims) == "table" and type(dims[1]) == "table" and type(dims[2]) == "table" and #dims[1] == #dims[2] then
      for i = 1, #dims[1] do da[i], db[i] = wrap("tensordot", dims[1][i], M.dim(a)), wrap("tensordot", dims[2][i], M.dim(b)) end
    else fail("tensordot", "argument 3 (dims) must be a number or two lists of equally many dims") end
    for i = 1, #da do
      local p, q = a.shape[da[i]], b.shape[db[i]]
      if p ~= q then
        fail("tensordot", "dim %d of shape %s and dim %d of shape %s must have the same size", da[i], tostring(a.shape),
          db[i], tostring(b.shape))
      end
    end
    local function split(x, over, last)
      local inside, order, size, n, rest = {}, {}, {}, 1, 1
      for _, d in ipairs(over) do
        if d < 1 or d > M.dim(x) then fail("tensordot", "dim %d is out of range for shape %s", d, tostring(x.shape)) end
        inside[d] = true
        n = n * x.shape[d]
      end
      for d = 1, M.dim(x) do if not inside[d] then order[#order + 1] = d; size[#size + 1] = x.shape[d]; rest = rest * x.shape[d] end end
      for i, d in ipairs(over) do table.insert(order, last and #order + 1 or i, d) end
      return M.reshape(ops.permute(x, order), last and {rest, n} or {n, rest}), size
    end
    local x, sx = split(a, da, true)
    local y, sy = split(b, db, false)
    for _, s in ipairs(sy) do sx[#sx + 1] = s end
    return M.reshape(lib.exactly(ops.matmul, lib.widest(x, y)), sx)
  end)
def("kron", "a, b", "every element of a times the whole of b", function(a, b)
  local n = math.max(M.dim(a), M.dim(b))
  local sa, sb, size = {}, {}, {}
  for i = 1, n do
    local p, q = i > n - M.dim(a) and a.shape[i - n + M.dim(a)] or 1, i > n - M.dim(b) and b.shape[i - n + M.dim(b)] or 1
    sa[2 * i - 1], sa[2 * i], sb[2 * i - 1], sb[2 * i], size[i] = p, 1, 1, q, p * q
  end
  return M.reshape(M.reshape(a, sa) * M.reshape(b, sb), size)
end)
def("matrix_power", "x, n:int", "a square matrix n times with itself", function(x, n)
  if M.dim(x) < 2 or x.shape[M.dim(x)] ~= x.shape[M.dim(x) - 1] then
    fail("matrix_power", "argument 1 must be square, got shape %s", tostring(x.shape))
  end
  if n < 0 then x, n = F["linalg.inv"](x), -n end
  if n == 0 then                           -- of x too, so that its gradient is 0
    local no, one = ops.zeros({}, {dtype = "bool", device = x.device}), ops.eye(x.shape[M.dim(x)], {dtype = x.dtype, device = x.device})
    return ops.where(no, x, one)
  end
  local y, n0 = nil, n
  while n > 0 do
    if n % 2 == 1 then y = y and ops.matmul(y, x) or x end
    n = math.floor(n / 2)
    if n > 0 then x = ops.matmul(x, x) end
  end
  return n0 == 1 and ops.clone(y) or y
end)
def("cross", "a, b, dim:int?", "vector product along a dim of size 3 (the first one that has it where nil)", function(a, b, dim)
  a, b = F.broadcast_tensors({a, b})
  for d, n in ipairs(a.shape) do
    if not dim and n == 3 then dim = d end
  end
  if not dim then fail("cross", "shape %s has no dim of 3 elements", tostring(a.shape)) end
  if a.shape[wrap("cross", dim, M.dim(a))] ~= 3 then fail("cross", "shape %s must have 3 elements along dim %d", tostring(a.shape), dim) end
  local function parts(x) return ops.select(x, dim, 1), ops.select(x, dim, 2), ops.select(x, dim, 3) end
  local ax, ay, az = parts(a)
  local bx, by, bz = parts(b)
  return ops.stack({ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx}, dim)
end)
local WIDE = 32          -- row length above which products are faster
-- The distances between rows of equal length, whose batches broadcast; 16-bit rows are computed in float32.
local function distances(name, a, b, p)
  local dtype = lib.promote_types(a.dtype, b.dtype)
  if not lib.RANGE[dtype] then dtype = "float32" end
  local wide = dtype == "float64" and dtype or "float32"
  a, b = lib.expand_batches(name, M.to(a, wide), M.to(b, wide))
  return M.to(ops.distances(a, b, p), dtype)
end
local USE, DONT, MAYBE = "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary"
def("cdist", ("a, b, p:number=2, *, compute_mode:enum(%s,%s,%s)=%s"):format(MAYBE, USE, DONT, MAYBE),
  "p-norms of the differences of every row of a with every row of b; by a product of matrices, which is less exact where rows are nearly \z
    equal, for p = 2 and more than 25 rows of more than 32 elements, unless compute_mode says otherwise", function(a, b, p, mode)
  local n, m = M.dim(a), M.dim(b)
  if n < 2 or m < 2 or a.shape[n] ~= b.shape[m] then
    fail("cdist", "shapes %s and %s must have at least 2 dims and equal last dims", tostring(a.shape), tostring(b.shape))
  end
  if p < 0 then fail("cdist", "p must not be negative, got %g", p) end
  local many = a.shape[n] > WIDE and (a.shape[n - 1] > 25 or b.shape[m - 1] > 25)
  if not (p == 2 and (mode == USE or mode == MAYBE and many)) then return distances("cdist", a, b, p) end
  -- for many long rows: |a - b|^2 = -2 a b + |a|^2 + |b|^2 as one product of matrices, of 16-bit rows in float32
  local dtype = lib.promote_types(a.dtype, b.dtype)
  local wide = dtype == "float64" and dtype or "float32"
  a, b = M.to(a, wide), M.to(b, wide)
  local function squares(x) return ops.sum(ops.square(x), -1, {keepdim = true}) end
  local function ones(x) return ops.ones(x.shape, {dtype = x.dtype, device = x.device}) end
  local aa, bb = squares(a), squares(b)
  local left, right = ops.cat({a * -2, aa, ones(aa)}, -1), M.transpose(ops.cat({b, ones(bb), bb}, -1), -2, -1)
  local d = ops.sqrt_or_0(lib.exactly(ops.matmul, left, right))
  return lib.RANGE[dtype] and M.to(d, dtype) or d
end, {float32 = true})
def("cosine_similarity", "a, b, dim:int=2, eps:number=1e-8", "dot product over the product of the norms along dim", function(a, b, dim, eps)
  a, b = F.broadcast_tensors({a, b})
  dim = wrap("cosine_similarity", dim, M.dim(a))
  local p, q = ops.clamp(ops.norm2(a, dim, {keepdim = true}), eps), ops.clamp(ops.norm2(b, dim, {keepdim = true}), eps)
  return ops.sum((a / p) * (b / q), dim)
end, lib.LOSS)
def("pdist", "x, p:number=2", "p-norms of the differences of all pairs of rows, in order", function(x, p)
  need("pdist", 1, x, 2)
  if p < 0 then fail("pdist", "p must not be negative, got %g", p) end
  local n = x.shape[1]
  local pairs_ = M.to(F.triu_indices(n, n, 1), x.device)
  return ops.index(M.flatten(distances("pdist", x, x, p)), {(ops.select(pairs_, 1, 1) - 1) * n + ops.select(pairs_, 1, 2)}, 1)
end, NN)
def("renorm",
  "x, p:number, dim:int, maxnorm:number",
  "x with each slice along dim whose p-norm is above maxnorm scaled down to it",
  function(x, p, dim, maxnorm)
    if p <= 0 then fail("renorm", "p must be above 0, got %g", p) end
    if maxnorm < 0 then fail("renorm", "maxnorm must not be negative, got %g", maxnorm) end
    if M.dim(x) < 2 then fail("renorm", "argument 1 must have at least 2 dims, got shape %s", tostring(x.shape)) end
    local over, d = {}, wrap("renorm", dim, M.dim(x))
    for i = 1, M.dim(x) do if i ~= d then over[#over + 1] = i end end
    local norm = M.norm(x, p, over, {keepdim = true})
    return x * ops.where(ops.gt(norm, maxnorm), maxnorm / (norm + 1e-7), 1)
  end, {inplace = true})
def("pairwise_distance",
  "a, b, p:number=2, eps:number=1e-6, keepdim:bool=false",
  "p-norm of a - b + eps along the last dim",
  function(a, b, p, eps, keepdim)
    return M.norm(a - b + eps, p, -1, {keepdim = keepdim})
  end, lib.LOSS)
def("bilinear", "a, b, weight, bias:tensor?", "a^T weight[k] b + bias[k] for each k", function(a, b, w, bias)
  need("bilinear", 3, w, 3)
  for i, x in ipairs {a, b} do
    if M.dim(x) < 1 or x.shape[M.dim(x)] ~= w.shape[i + 1] then
      fail("bilinear", "argument %d has shape %s; its last dim must be %d to match argument 3 of shape %s", i, tostring(x.shape),
        w.shape[i + 1], tostring(w.shape))
    end
  end
  a, b, w = lib.widest(a, b, w)
  local y = lib.exactly(F.einsum, "...i,kij,...j->...k", a, w, b)
  return bias and y + bias or y
end, NN)

def("linear",
  "x, weight, bias:tensor?, *, activation:enum(none,relu)=none",
  "activation(x @ weight^T + bias); weight: (out, in), or (in), for one output without a dim",
  function(x, weight, bias, activation)
    if M.dim(weight) == 1 then
      local y = F.linear(x, M.unsqueeze(weight, 1), bias and M.reshape(bias, 1), {activation = activation})
      return M.squeeze(y, -1)
    end
    if not M.is_floating_point(x) and not M.is_floating_point(weight) then
      local y = ops.matmul(x, M.t(weight))
      if bias then y = y + bias end
      return activation == "relu" and ops.relu(y) or y
    end
    return (activation == "relu" and ops.linear_relu or ops.linear)(x, weight, bias)
  end, NN)

---- indices ----
-- Scales the rows of weight that ids name down to max_norm, permanently.
local function limit_rows(weight, ids, max_norm, norm_type)
  no_grad(function()
    local used = M.long(ops.unique_values(M.flatten(M.detach(ids))))
    M.index_copy_(weight, 1, used, M.renorm(ops.index(weight, {used}, 1), norm_type, 1, max_norm))
  end)
end
-- Passes rows on; their gradients are divided by how often their id occurs.
local By
local function by_frequency()
  By = By or require("tycho.autograd").Function {forward = function(ctx, rows, ids, count)
    ctx:save_for_backward(ids)
    ctx.count = count
    return rows
  end, backward = function(ctx, g)
    local ids = ctx:saved_tensors()
    local like = {dtype = "float32", device = g.device}
    local counts = ops.index_put(ops.zeros({ctx.count}, like), ops.ones(ids.shape, like), {ids}, 1, {accumulate = true})
    return M.to(g / M.unsqueeze(ops.index(counts, {ids}, 1), -1), g.dtype)
  end}
  return By
end
def("embedding",
  "ids, weight, padding_idx:int?, max_norm:number?, norm_type:number=2, scale_grad_by_freq:bool=false, sparse:bool=false",
  "the rows of weight that ids name; that of padding_idx gets no gradient; max_norm: rows that are named become no longer, in place; \z
    scale_grad_by_freq: an id's gradients are divided by how often it is there; they are dense, sparse or not",
  function(ids, weight, padding, max_norm, norm_type, by_freq)
    need("embedding", 2, weight, 2)
    ids = lib.indices("embedding", 1, ids)
    if max_norm then limit_rows(weight, ids, max_norm, norm_type) end
    if padding then padding = lib.entry("embedding", "padding_idx", padding, weight.shape[1]) end
    local y = ops.index(weight, {ids}, 1, {ids = true})
    if by_freq and y.requires_grad then y = by_frequency()(y, ids, weight.shape[1]) end
    if not padding or not y.requires_grad then return y end
    return ops.where(M.unsqueeze(ops.eq(ids, padding), -1), M.detach(y), y)
  end, NN)
-- The positions where bags begin, followed by the end of the last one.
local function edges_of(name, ids, offsets, ends)
  local n, like = M.numel(ids), {dtype = "int64", device = ids.device}
  if M.dim(ids) == 2 then return ops.range(0, ids.shape[1], 1, like) * ids.shape[2] + 1 end
  offsets = lib.indices(name, 3, offsets)
  local count = #offsets - (ends and 1 or 0)
  if count < 0 then fail(name, "offsets must not be empty with include_last_offset: the last one is the end") end
  if lib.looks(offsets) and #offsets > 0 then            -- on a GPU that would be a wait
    if ends and offsets[-1] ~= n + 1 then fail(name, "the last offset must be the end, %d, got %s", n + 1, tostring(offsets[-1])) end
    if count > 0 and offsets[1] ~= 1 then fail(name, "the first offset must be 1, got %d", offsets[1]) end
    if offsets[-1] > n + 1 or not ops.all(ops.ge(ops.slice(offsets, 1, 2, #offsets), ops.slice(offsets, 1, 1, -2))):item() then
      fail(name, "offsets must ascend within 1..%d", n)
    end
  end
  return ends and offsets or ops.cat({offsets, ops.full({1}, n + 1, like)}, 1)
end
-- taken: the rows that take part, nil: all; the largest of none is 0.
local function largest_of_bags(rows, taken, starts)
  if taken then rows = ops.where(taken, rows, -math.huge) end
  local bags = lib.bags_of(starts, rows.shape[1])
  local y = ops.full({#starts, rows.shape[2]}, -math.huge, {dtype = rows.dtype, device = rows.device})
  y = F.scatter_reduce(y, 1, ops.expand(M.unsqueeze(bags, 2), rows.shape), rows, "amax")
  return ops.masked_fill(y, ops.eq(y, -math.huge), 0)
end
-- For ids in rows, by ops that work for any number of rows: for traces.
local function bags_of_rows(ids, weight, mode, scale, padding)
  local rows, taken = F.embedding(ids, weight), padding > 0 and M.unsqueeze(ops.ne(ids, padding), 3)
  if taken then rows = ops.where(taken, rows, mode == "max" and -math.huge or 0) end
  if mode == "max" then
    local y = ops.amax(rows, 2)
    return ops.masked_fill(y, ops.eq(y, -math.huge), 0)
  end
  if mode == "mean" and not taken then return ops.mean(rows, 2) end
  local y = ops.sum(scale and rows * M.unsqueeze(M.to(scale, weight.dtype), 3) or rows, 2)
  return mode == "mean" and y / M.to(ops.clamp(ops.sum(taken, 2), 1), y.dtype) or y
end
def("embedding_bag",
  "ids, weight, offsets:tensor?, max_norm:number?, norm_type:number=2, *, mode:enum(sum,mean,max)=mean, per_sample_weights:tensor?, \z
    include_last_offset:bool=false, padding_idx:int?, scale_grad_by_freq:bool=false, sparse:bool=false",
  "sum, mean or maximum of the rows of weight that each row of ids names, or each bag that begins at an offset \z
    (include_last_offset: the last one is the end); mode sum takes a weight for each id; padding_idx takes no part",
  function(ids, weight, offsets, max_norm, norm_type, mode, scale, ends, padding, by_freq)
    local name = "embedding_bag"
    if M.dim(ids) == 1 and not offsets then fail(name, "a vector of ids needs offsets") end
    if offsets and M.dim(offsets) ~= 1 then fail(name, "offsets must have 1 dim, got shape %s", tostring(offsets.shape)) end
    if offsets and M.dim(ids) == 2 then fail(name, "each row of a matrix of ids is a bag: offsets go with a vector") end
    if scale and (mode ~= "sum" or scale.shape ~= ids.shape) then
      fail(name, "per_sample_weights need mode 'sum' and the shape of argument 1, %s; got '%s' and %s",
        tostring(ids.shape), mode, tostring(scale.shape))
    end
    if M.dim(ids) ~= 1 and M.dim(ids) ~= 2 then fail(name, "argument 1 (ids) must have 1 or 2 dims, got shape %s", tostring(ids.shape)) end
    if by_freq and mode == "max" then fail(name, "scale_grad_by_freq goes with mode sum or mean") end
    need(name, 2, weight, 2)
    padding = padding and lib.entry(name, "padding_idx", padding, weight.shape[1]) or 0
    ids = lib.indices(name, 1, ids)
    if modes.now.tracing and M.dim(ids) == 2 and not max_norm then return bags_of_rows(ids, weight, mode, scale, padding) end
    local edges = edges_of(name, ids, offsets, ends)
    ids, scale = M.flatten(ids), scale and M.to(M.flatten(scale), weight.dtype)
    if max_norm then limit_rows(weight, ids, max_norm, norm_type) end
    local n, count = #ids, #edges - 1
    local starts = ops.slice(edges, 1, 1, count)
    local function each() return ops.range(1, n, 1, {dtype = "int64", device = ids.device}) end
    local taken = padding > 0 and M.unsqueeze(ops.ne(ids, padding), 2)
    if mode == "max" then return largest_of_bags(F.embedding(ids, weight), taken, starts) end
    local y
    local short = weight.dtype == "float16" or weight.dtype == "bfloat16"
    if by_freq or (mode == "mean" and short) then        -- rows are divided separately, or need more digits
      local rows = F.embedding(ids, weight, nil, nil, nil, by_freq)
      if short then rows, scale = M.float(rows), scale and M.float(scale) end
      y = ops.bag(taken and ops.where(taken, rows, 0) or rows, each(), starts, scale)
    else y = ops.bag(weight, ids, starts, scale, {padding = padding}) end
    if mode == "mean" then                               -- counted in float32 at least: exact up to 2^24 ids in a bag
      local counts = taken and ops.bag(M.to(taken, y.dtype), each(), starts) or M.unsqueeze(ops.slice(edges, 1, 2, count + 1) - starts, 2)
      y = y / M.to(ops.clamp(counts, 1), y.dtype)
    end
    return M.to(y, weight.dtype)
  end, NN)
def("one_hot",
  "ids, num_classes:int?",
  "1 at each id's place along a new last dim of size num_classes (the largest id where nil or -1)",
  function(ids, classes)
    ids = lib.indices("one_hot", 1, ids)
    if classes == -1 then classes = nil end
    if M.numel(ids) == 0 and not classes then fail("one_hot", "num_classes must be given where there are no ids") end
    if lib.looks(ids) and M.numel(ids) > 0 then
      local least, most = ops.amin(ids):item(), ops.amax(ids):item()
      if least < 1 then fail("one_hot", "id %d in argument 1 (ids): ids begin at 1", least) end
      if classes and most > classes then fail("one_hot", "id %d in argument 1 (ids) is above num_classes %d", most, classes) end
    end
    classes = classes or ops.amax(ids):item()
    local size = ids.shape
    size[#size + 1] = classes
    return M.scatter_(ops.zeros(setmetatable(size, nil), {dtype = "int64", device = ids.device}), -1, M.unsqueeze(ids, -1), 1)
  end, NN)
---- einsum ----
-- Operands are contracted from left to right: labels that both share become a batch of matrix products; labels no longer needed are summed
-- first.
local function parse(equation, n)
  local text = equation:gsub("%s", "")
  local left, right = text:match("^(.-)%->(.*)$")
  left = left or text
  local terms = {}
  for term in (left .. ","):gmatch("(.-),") do terms[#terms + 1] = term end
  if #terms ~= n then fail("einsum", "the equation '%s' has %d operands, %d were given", equation, #terms, n) end
  for _, term in ipairs(terms) do
    if not term:gsub("%.%.%.", "", 1):match("^%a*$") then
      fail("einsum", "'%s' in the equation '%s' must be letters and at most one ...", term, equation)
    end
  end
  return terms, right
end
-- The labels of a term's dims: letters, and for the dims of "..." numbers, which count from the last one.
local function labels_of(term, x, equation)
  local before, after = term:match("^(%a*)%.%.%.(%a*)$")
  local labels, letters = {}, before and before .. after or term
  local more = M.dim(x) - #letters
  if more < 0 or (not before and more > 0) then
    fail("einsum", "'%s' in the equation '%s' doesn't fit shape %s", term, equation, tostring(x.shape))
  end
  for c in (before or term):gmatch(".") do labels[#labels + 1] = c end
  if before then
    for i = more, 1, -1 do labels[#labels + 1] = i end
    for c in after:gmatch(".") do labels[#labels + 1] = c end
  end
  return labels
end
local function index_of(list, v) for i, w in ipairs(list) do if w == v then return i end end end
-- x with each label once: repeated labels become their diagonal
local function diagonal(x, labels)
  local i = 1
  while i <= #labels do
    local k
    for j = i + 1, #labels do if labels[j] == labels[i] then k = j end end
    if k then
      local l = labels[i]
      x = ops.diagonal(x, 0, i, k)
      table.remove(labels, k)
      table.remove(labels, i)
      labels[#labels + 1] = l
    else i = i + 1 end
  end
  return x
end
local function arrange(x, labels, order)
  local p, moved = {}, false
  for i, l in ipairs(order) do
    p[i] = index_of(labels, l)
    moved = moved or p[i] ~= i
  end
  return moved and ops.permute(x, p) or x
end
-- x, which has the given sizes or 1 in their place, as a matrix or a batch of matrices
local function matrices(x, sizes, shape)
  local own = x.shape
  for i, n in ipairs(sizes) do
    if own[i] ~= n then return M.reshape(ops.expand(x, sizes), shape) end
  end
  return M.reshape(x, shape)
end
local function contract(a, la, b, lb, needed)
  local batch, left, right, inner, size = {}, {}, {}, {}, {}
  local sa, sb = a.shape, b.shape
  for i, l in ipairs(la) do size[l] = sa[i] end
  for i, l in ipairs(lb) do size[l] = math.max(size[l] or 0, sb[i]) end
  for _, l in ipairs(la) do
    if index_of(lb, l) then table.insert(needed[l] and batch or inner, l) else left[#left + 1] = l end
  end
  for _, l in ipairs(lb) do if not index_of(la, l) then right[#right + 1] = l end end
  local function sizes(...)
    local out = {}
    for _, list in ipairs {...} do for _, l in ipairs(list) do out[#out + 1] = size[l] end end
    return out
  end
  local function total(list) local n = 1 for _, l in ipairs(list) do n = n * size[l] end return n end
  local function joined(...)
    local out = {}
    for _, list in ipairs {...} do for _, l in ipairs(list) do out[#out + 1] = l end end
    return out
  end
  if #inner == 0 then                    -- nothing is summed: a pointwise product
    local function among(x, labels, own, before, after)
      local shape, at = {}, x.shape
      for _, list in ipairs {batch, before, own, after} do
        for _, l in ipairs(list) do shape[#shape + 1] = (list == batch or list == own) and at[index_of(labels, l)] or 1 end
      end
      return M.reshape(arrange(x, labels, joined(batch, own)), shape)
    end
    return among(a, la, left, {}, right) * among(b, lb, right, left, {}), joined(batch, left, right)
  end
  local nb, m, k, n = total(batch), total(left), total(inner), total(right)
  local x = matrices(arrange(a, la, joined(batch, left, inner)), sizes(batch, left, inner), {nb, m, k})
  local y = matrices(arrange(b, lb, joined(batch, inner, right)), sizes(batch, inner, right), {nb, k, n})
  return M.reshape(ops.matmul(x, y), sizes(batch, left, right)), joined(batch, left, right)
end
-- The labels of the result: those after ->, where the dims of "..." are numbered from `most` down; without an arrow the labels that occur
-- only once, in alphabetical order. count: how often each label occurs before the arrow.
local function labels_of_result(right, count, most, equation)
  local out = {}
  local function dots() for i = most, 1, -1 do out[#out + 1] = i end end
  if not right then
    dots()
    local letters = {}
    for l, k in pairs(count) do if k == 1 and type(l) == "string" then letters[#letters + 1] = l end end
    table.sort(letters)
    for _, l in ipairs(letters) do out[#out + 1] = l end
    return out
  end
  local before, after = right:match("^(%a*)%.%.%.(%a*)$")
  for c in (before or right):gmatch(".") do out[#out + 1] = c end
  if before then
    dots()
    for c in after:gmatch(".") do out[#out + 1] = c end
  end
  for i, l in ipairs(out) do
    if not count[l] then fail("einsum", "'%s' is right of -> in '%s', but not left of it", tostring(l), equation) end
    if index_of(out, l) ~= i then fail("einsum", "'%s' is twice right of -> in '%s'", tostring(l), equation) end
  end
  return out
end

-- Each label's size, on which all operands with that label must agree, except for sizes of 1.
local function sizes_of(operands, labels)
  local size = {}
  for i, x in ipairs(operands) do
    local shape = x.shape
    for k, l in ipairs(labels[i]) do
      local s = shape[k]
      if size[l] and size[l] ~= s and size[l] ~= 1 and s ~= 1 then
        fail("einsum", "'%s' has size %d in one operand and %d in another", tostring(l), size[l], s)
      end
      if not size[l] or size[l] == 1 then size[l] = s end
    end
  end
  return size
end

-- The set of labels that occur in the result or in the operands from i on.
local function needed_from(out, labels, i)
  local needed = {}
  for _, l in ipairs(out) do needed[l] = true end
  for j = i, #labels do for _, l in ipairs(labels[j]) do needed[l] = true end end
  return needed
end
-- x summed over the labels that wanted(label) refuses; these are removed from the list.
local function sum_out(x, labels, wanted)
  local drop = {}
  for k, l in ipairs(labels) do if not wanted(l) then drop[#drop + 1] = k end end
  if #drop == 0 then return x end
  for k = #drop, 1, -1 do table.remove(labels, drop[k]) end
  return ops.sum(x, drop)
end

def("einsum",
  "equation:string, a:any, b:tensor?, c:tensor?, d:tensor?, e:tensor?, f:tensor?",
  "sums of products by Einstein's convention, for instance 'bij,bjk->bik', of the tensors given or of a list of them; \z
    ... stands for further dims",
  function(equation, a, ...)
    local list = type(a) == "table"
    if list and (...) then fail("einsum", "the operands come as a list or one by one, not both") end
    local operands = list and {unpack(a)} or {a, ...}
    for i, x in ipairs(operands) do
      if not core.is_tensor(x) then fail("einsum", "operand %d must be a tensor, got %s", i, type(x)) end
    end
    local terms, right = parse(equation, #operands)
    local labels, count, most = {}, {}, 0
    for i, term in ipairs(terms) do
      labels[i] = labels_of(term, operands[i], equation)
      for _, l in ipairs(labels[i]) do
        if type(l) == "number" then most = math.max(most, l) end
        count[l] = (count[l] or 0) + 1
      end
      operands[i] = diagonal(operands[i], labels[i])
    end
    local out = labels_of_result(right, count, most, equation)
    local size = sizes_of(operands, labels)
    local x, lx = operands[1], labels[1]
    for i = 2, #operands do
      local needed, later = needed_from(out, labels, i), needed_from(out, labels, i + 1)
      x = sum_out(x, lx, function(l) return needed[l] end)
      local y = sum_out(operands[i], labels[i], function(l) return later[l] or index_of(lx, l) end)
      x, lx = contract(x, lx, y, labels[i], later)
    end
    local needed, final = needed_from(out, {}, 1), {}
    x = sum_out(x, lx, function(l) return needed[l] end)
    for i, l in ipairs(out) do final[i] = size[l] end
    return ops.expand(arrange(x, lx, out), final)
  end, {method = false})
lib.alias("vdot", "dot")
lib.alias("ger", "outer")
