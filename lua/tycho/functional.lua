-- Functions made of ops: shapes, dtypes, reductions with options, losses, layers' arithmetic.
--
-- Idea: each is declared with a signature in the language of ops.def, so that arguments are checked, ordered and completed
-- as for an op; the function then gets them in order. Each becomes a function of tycho and, unless it makes tensors
-- from nothing, a method. Gradients come from the ops.
local core = require "tycho.core"
local ops = core.ops
local M = core.methods
local F = {}          -- name -> function
local signatures = {} -- list of {name, signature, doc}, for docs and specs

-- options: nn = true: PyTorch keeps it in torch.nn.functional; method = false: no method
local nn_names, no_method = {}, {}
local function def(name, signature, doc, fn, options)
  F[name] = core.define(name, signature, fn)
  signatures[#signatures + 1] = {name = name, signature = signature, doc = doc}
  if options and options.nn then nn_names[name] = true end
  if options and options.method == false then no_method[name] = true
  else M[name] = F[name] end
end

local function fail(name, ...) error(name .. ": " .. string.format(...), 4) end
local function wrap(name, d, n)   -- a dim from 1 to n
  local k = d < 0 and d + n + 1 or d
  if k < 1 or k > n then fail(name, "dim %d is out of range for %d dims", d, n) end
  return k
end
local NN = {nn = true}
local MAKES = {method = false}

---- shape ----
def("reshape", "x, size:sizes", "the elements in another shape; a view where that is possible, else a copy", function(x, size)
  local ok, y = pcall(ops.view, x, size)
  if ok then return y end
  return ops.view(ops.clone(x, {memory_format = "contiguous"}), size)
end)
def("contiguous", "x", "x, or a copy in row-major memory order", function(x)
  return M.is_contiguous(x) and x or ops.clone(x, {memory_format = "contiguous"})
end)
def("flatten", "x, first:int=1, last:int=-1", "dims first to last as one", function(x, first, last)
  local shape, n = x.shape, M.dim(x)
  if n == 0 then return M.reshape(x, 1) end
  first, last = wrap("flatten", first, n), wrap("flatten", last, n)
  if first > last then fail("flatten", "first dim %d is behind last dim %d", first, last) end
  local size, k = {}, 1
  for i = 1, n do
    if i >= first and i <= last then
      k = k * shape[i]
      if i == last then size[#size + 1] = k end
    else size[#size + 1] = shape[i] end
  end
  return M.reshape(x, size)
end)
def("squeeze", "x, dim:dims?", "without dims of size 1 (all of them where dim is nil)", function(x, dim)
  local size, drop, n = {}, {}, M.dim(x)
  for _, d in ipairs(dim or {}) do drop[n == 0 and 1 or wrap("squeeze", d, n)] = true end
  for i, s in ipairs(x.shape) do
    if s ~= 1 or (dim and not drop[i]) then size[#size + 1] = s end
  end
  return ops.view(x, size)
end)
def("unsqueeze", "x, dim:int", "with a dim of size 1 more, at dim", function(x, dim)
  local size = x.shape
  table.insert(size, wrap("unsqueeze", dim, #size + 1), 1)
  return ops.view(x, setmetatable(size, nil))
end)
local function swapped(name, x, a, b)
  local order, n = {}, M.dim(x)
  if n == 0 then return x end
  a, b = wrap(name, a, n), wrap(name, b, n)
  for i = 1, n do order[i] = i end
  order[a], order[b] = order[b], order[a]
  return ops.permute(x, order)
end
def("transpose", "x, a:int, b:int", "dims a and b exchanged", function(x, a, b) return swapped("transpose", x, a, b) end)
def("t", "x", "a matrix transposed", function(x)
  if M.dim(x) > 2 then fail("t", "argument 1 must have at most 2 dims, got shape %s", tostring(x.shape)) end
  return M.dim(x) < 2 and x or ops.permute(x, {2, 1})
end)
def("movedim", "x, from:int, to:int", "dim from moved to place to", function(x, from, to)
  local order, n = {}, M.dim(x)
  from, to = wrap("movedim", from, n), wrap("movedim", to, n)
  for i = 1, n do if i ~= from then order[#order + 1] = i end end
  table.insert(order, to, from)
  return ops.permute(x, order)
end)
def("expand_as", "x, other", "expanded to other's shape", function(x, other) return ops.expand(x, other.shape) end)
def("view_as", "x, other", "viewed in other's shape", function(x, other) return ops.view(x, other.shape) end)
def("narrow", "x, dim:int, first:int, length:int", "length elements of dim from first on", function(x, dim, first, length)
  local n = x.shape[wrap("narrow", dim, M.dim(x))]
  if first < 0 then first = first + n + 1 end
  if first < 1 or length < 0 or first + length - 1 > n then fail("narrow", "elements %d to %d are out of range for dim %d of shape %s", first, first + length - 1, dim, tostring(x.shape)) end
  return ops.slice(x, dim, first, first + length - 1)
end)
def("stack", "tensors:tensors, dim:int=1", "tensors of one shape along a new dim", function(list, dim)
  if #list == 0 then fail("stack", "argument 1 is an empty list") end
  local out = {}
  for i, x in ipairs(list) do
    if x.shape ~= list[1].shape then fail("stack", "tensor %d has shape %s; it must be %s as tensor 1's", i, tostring(x.shape), tostring(list[1].shape)) end
    out[i] = M.unsqueeze(x, dim)
  end
  return ops.cat(out, dim)
end, MAKES)
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
    parts[i] = M.narrow(x, dim, first, s)
    first = first + s
  end
  return parts
end)
def("chunk", "x, n:int, dim:int=1", "a list of at most n parts of equal size along dim (the last may be smaller)", function(x, n, dim)
  if n < 1 then fail("chunk", "argument 2 (n) must be at least 1, got %d", n) end
  local size = x.shape[wrap("chunk", dim, M.dim(x))]
  return M.split(x, math.max(math.ceil(size / n), 1), dim)
end)
def("unbind", "x, dim:int=1", "the list of slices along dim", function(x, dim)
  local parts = {}
  for i = 1, x.shape[wrap("unbind", dim, M.dim(x))] do parts[i] = ops.select(x, dim, i) end
  return parts
end)
def("tile", "x, repeats:sizes", "x repeated along each dim (PyTorch's Tensor.repeat)", function(x, repeats)
  local shape, n = x.shape, #repeats
  while #shape < n do table.insert(shape, 1, 1) end
  if #shape > n then fail("tile", "%d repeats for shape %s", n, tostring(x.shape)) end
  local outer, inner, size = {}, {}, {}
  for i = 1, n do
    if repeats[i] < 0 then fail("tile", "repeat %d is negative", repeats[i]) end
    outer[2 * i - 1], outer[2 * i] = 1, shape[i]
    inner[2 * i - 1], inner[2 * i] = repeats[i], shape[i]
    size[i] = repeats[i] * shape[i]
  end
  if 2 * n > 8 then                      -- too many dims to expand: dim by dim
    local y = M.reshape(x, setmetatable(shape, nil))
    for i = 1, n do
      local list = {}
      for k = 1, repeats[i] do list[k] = y end
      y = #list > 0 and ops.cat(list, i) or ops.slice(y, i, 1, 0)
    end
    return y
  end
  return M.reshape(ops.expand(M.reshape(x, outer), inner), size)
end)
M["repeat"] = F.tile
def("roll", "x, shift:int, dim:int?", "elements moved by shift along dim, around the end (through all elements where dim is nil)", function(x, shift, dim)
  if not dim then return M.reshape(M.roll(M.flatten(x), shift, 1), x.shape) end
  local n = x.shape[wrap("roll", dim, M.dim(x))]
  if n == 0 then return ops.clone(x) end
  shift = shift % n
  if shift == 0 then return ops.clone(x) end
  return ops.cat({ops.slice(x, dim, n - shift + 1, n), ops.slice(x, dim, 1, n - shift)}, dim)
end)

---- dtype, device, copies ----
local dtypes = {float32 = true, float16 = true, bfloat16 = true, float64 = true, int32 = true, int64 = true, uint8 = true, bool = true}
def("to", "x, target:any, *, non_blocking:bool=false", "x in another dtype, on another device, or as target is; x itself where nothing changes", function(x, target)
  if core.is_tensor(target) then target = target.dtype end
  if type(target) ~= "string" then fail("to", "argument 2 (target) must be a dtype, a device or a tensor, got %s", type(target)) end
  if target == "cpu" or target == x.dtype then return x end
  if target:match("^cuda") then fail("to", "device '%s' is not available: tycho was built without CUDA", target) end
  if not dtypes[target] then return ops.cast(x, target) end   -- raises with the nearest name
  return ops.cast(x, target)
end)
for name, dtype in pairs {float = "float32", half = "float16", bfloat16 = "bfloat16", double = "float64", int = "int32", long = "int64", byte = "uint8", bool = "bool"} do
  M[name] = function(x) return M.to(x, dtype) end
end
M.cpu = function(x) return M.to(x, "cpu") end
M.cuda = function(x) return M.to(x, "cuda") end
M.pin_memory = function(x) return x end     -- without a GPU there is nothing to pin for
M.is_floating_point = function(x) return x.dtype:find("float", 1, true) ~= nil end
M.zero_ = function(x) return M.fill_(x, 0) end
M.new_tensor = function(x, value) return core.from_value(value, x.dtype) end

---- creation like another ----
for _, make in ipairs {"zeros", "ones", "rand", "randn", "empty"} do
  def(make .. "_like", "x, *, dtype:dtype?, device:device?, requires_grad:bool=false", make .. " in x's shape and dtype", function(x, dtype, device, requires_grad)
    return ops[make](x.shape, {dtype = dtype or x.dtype, device = device, requires_grad = requires_grad})
  end)
end
def("full_like", "x, value:any, *, dtype:dtype?, device:device?, requires_grad:bool=false", "x's shape and dtype, all value", function(x, value, dtype, device, requires_grad)
  return ops.full(x.shape, value, {dtype = dtype or x.dtype, device = device, requires_grad = requires_grad})
end)

---- reductions ----
def("max", "x, dim:any?, *, keepdim:bool=false", "without dim the largest element; with dim the maxima and their indices", function(x, dim, keepdim)
  if dim == nil then return ops.amax(x) end
  if core.is_tensor(dim) then return ops.maximum(x, dim) end
  return ops.max_dim(x, dim, keepdim)
end)
def("min", "x, dim:any?, *, keepdim:bool=false", "without dim the smallest element; with dim the minima and their indices", function(x, dim, keepdim)
  if dim == nil then return ops.amin(x) end
  if core.is_tensor(dim) then return ops.minimum(x, dim) end
  return ops.min_dim(x, dim, keepdim)
end)
local function arg(name, op)
  def(name, "x, dim:int?, *, keepdim:bool=false", "index of the " .. name:sub(4) .. "imum along dim (among all elements where dim is nil)", function(x, dim, keepdim)
    if dim then return (select(2, op(x, dim, keepdim))) end
    return (select(2, op(M.flatten(x), 1, false)))
  end)
end
arg("argmax", ops.max_dim)
arg("argmin", ops.min_dim)
-- 16-bit operands are computed in float32 and rounded once.
local function widened(fn)
  return function(x, ...)
    if x.dtype == "float16" or x.dtype == "bfloat16" then return M.to(fn(M.float(x), ...), x.dtype) end
    return fn(x, ...)
  end
end
local function variance(x, dim, correction, keepdim)
  local n = 1
  if dim and #dim == 0 then dim = nil end
  for i, s in ipairs(x.shape) do
    local inside = not dim
    for _, d in ipairs(dim or {}) do inside = inside or d == i or d + M.dim(x) + 1 == i end
    if inside then n = n * s end
  end
  local d = x - ops.mean(x, dim, {keepdim = true})
  return ops.sum(d * d, dim, {keepdim = keepdim}) / math.max(n - correction, 0)
end
def("var", "x, dim:dims?, *, correction:number=1, keepdim:bool=false", "variance over dim; correction is subtracted from the count", widened(variance))
def("std", "x, dim:dims?, *, correction:number=1, keepdim:bool=false", "standard deviation over dim", widened(function(x, dim, correction, keepdim)
  return ops.sqrt(variance(x, dim, correction, keepdim))
end))
def("norm", "x, p:number=2, dim:dims?, *, keepdim:bool=false", "the p-norm over dim", widened(function(x, p, dim, keepdim)
  local o = {keepdim = keepdim}
  if p == 2 then return ops.norm2(x, dim, o) end
  local a = ops.abs(x)
  if p == math.huge then return ops.amax(a, dim, o) end
  if p == -math.huge then return ops.amin(a, dim, o) end
  if p == 0 then return M.to(ops.sum(ops.ne(x, 0), dim, o), x.dtype) end
  if p == 1 then return ops.sum(a, dim, o) end
  return ops.pow(ops.sum(ops.pow(a, p), dim, o), 1 / p)
end))
def("logsumexp", "x, dim:dims, *, keepdim:bool=false", "log of the sum of exp(x) over dim, without overflow", function(x, dim, keepdim)
  local top = M.detach(ops.amax(x, dim, {keepdim = true}))
  top = ops.masked_fill(top, ops.isinf(top), 0)
  local y = ops.log(ops.sum(ops.exp(x - top), dim, {keepdim = true})) + top
  return keepdim and y or M.squeeze(y, dim)
end)
def("count_nonzero", "x, dim:dims?", "how many elements are not 0", function(x, dim) return ops.sum(ops.ne(x, 0), dim) end)
def("equal", "a, b", "whether both have the same shape and elements (a boolean)", function(a, b)
  return a.shape == b.shape and M.item(ops.all(ops.eq(a, b)))
end)
def("isclose", "a, b, *, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false", "true where |a - b| <= atol + rtol |b|", function(a, b, rtol, atol, equal_nan)
  local near = ops.logical_or(ops.eq(a, b), ops.logical_and(ops.isfinite(a - b), ops.le(ops.abs(a - b), ops.abs(b) * rtol + atol)))
  return equal_nan and ops.logical_or(near, ops.logical_and(ops.isnan(a), ops.isnan(b))) or near
end)
def("allclose", "a, b, *, rtol:number=1e-5, atol:number=1e-8, equal_nan:bool=false", "whether all elements are close (a boolean)", function(a, b, rtol, atol, equal_nan)
  return M.item(ops.all(F.isclose(a, b, {rtol = rtol, atol = atol, equal_nan = equal_nan})))
end)

---- matrix products ----
local function need(name, position, x, n)
  if M.dim(x) ~= n then fail(name, "argument %d must have %d dims, got shape %s", position, n, tostring(x.shape)) end
end
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
product("dot", "product of two vectors", 1, 1)
def("outer", "a, b", "every element of a times every element of b", function(a, b)
  need("outer", 1, a, 1)
  need("outer", 2, b, 1)
  return M.unsqueeze(a, 2) * b
end)
def("linear", "x, weight, bias:tensor?, *, activation:enum(none,relu)=none", "activation(x @ weight^T + bias)", function(x, weight, bias, activation)
  return (activation == "relu" and ops.linear_relu or ops.linear)(x, weight, bias)
end, NN)

---- indices ----
local function whole(name, position, ids)
  if M.is_floating_point(ids) or ids.dtype == "bool" then fail(name, "argument %d must hold indices (int64), got %s", position, ids.dtype) end
  return M.to(ids, "int64")
end
def("index_select", "x, dim:int, index", "the elements of dim that the vector index names", function(x, dim, index)
  need("index_select", 3, index, 1)
  return ops.index(x, {whole("index_select", 3, index)}, dim)
end)
def("index_add", "x, dim:int, index, src", "x with src's slices added at index along dim", function(x, dim, index, src)
  need("index_add", 3, index, 1)
  return ops.index_put(x, src, {whole("index_add", 3, index)}, dim, {accumulate = true})
end)
def("masked_select", "x, mask", "the elements where mask is true, as a vector", function(x, mask)
  local shape = ops.logical_or(ops.zeros({}, {dtype = "bool"}):expand(x.shape), mask).shape   -- what both broadcast to
  return ops.expand(x, shape)[ops.expand(mask, shape)]
end)
def("embedding", "ids, weight", "the rows of weight that ids name", function(ids, weight)
  need("embedding", 2, weight, 2)
  ids = whole("embedding", 1, ids)
  if M.numel(ids) > 0 and ops.amin(ids):item() < 1 then fail("embedding", "index %d in argument 1 (ids): indices begin at 1", ops.amin(ids):item()) end
  return ops.index(weight, {ids}, 1)
end, NN)
def("one_hot", "ids, classes:int", "1 at each id's place along a new last dim of size classes", function(ids, classes)
  ids = whole("one_hot", 1, ids)
  local size = ids.shape
  size[#size + 1] = classes
  return ops.scatter(ops.zeros(setmetatable(size, nil), {dtype = "int64"}), -1, M.unsqueeze(ids, -1), 1)
end, NN)

---- layers ----
def("max_pool2d", "x, kernel_size:pair, stride:pair?, padding:pair=0, *, return_indices:bool=false", "maximum of each kernel_size window of the last two dims", function(x, k, stride, padding, indices)
  local y, i = ops.max_pool2d_indices(x, k, stride, padding)
  if indices then return y, i end
  return y
end, NN)
def("dropout", "x, p:number=0.5, *, training:bool=true", "elements set to 0 with probability p, the others scaled by 1 / (1 - p)", function(x, p, training)
  if not training then return x end
  return (ops.dropout_mask(x, p))
end, NN)
def("batch_norm", "x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, *, training:bool=false, momentum:number=0.1, eps:number=1e-5",
  "each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted", function(x, mean, var, w, b, training, momentum, eps)
  return (ops.batch_norm_stats(x, mean, var, w, b, {training = training, momentum = momentum, eps = eps}))
end, NN)
def("layer_norm", "x, size:sizes, weight:tensor?, bias:tensor?, *, eps:number=1e-5", "normalised over the last dims, of shape size, then scaled and shifted", function(x, size, w, b, eps)
  return (ops.layer_norm_stats(x, size, w, b, {eps = eps}))
end, NN)

---- losses ----
local function reduced(loss, reduction)
  if reduction == "mean" then return ops.mean(loss) end
  if reduction == "sum" then return ops.sum(loss) end
  return loss
end
local REDUCTION = "reduction:enum(none,mean,sum)=mean"
def("mse_loss", "x, y, *, " .. REDUCTION, "squared differences", function(x, y, reduction) return reduced(ops.square(x - y), reduction) end, NN)
def("l1_loss", "x, y, *, " .. REDUCTION, "absolute differences", function(x, y, reduction) return reduced(ops.abs(x - y), reduction) end, NN)
def("smooth_l1_loss", "x, y, *, beta:number=1, " .. REDUCTION, "squared differences below beta, absolute ones above", function(x, y, beta, reduction)
  local d = ops.abs(x - y)
  if beta == 0 then return reduced(d, reduction) end
  return reduced(ops.where(ops.lt(d, beta), ops.square(d) * (0.5 / beta), d - 0.5 * beta), reduction)
end, NN)
def("binary_cross_entropy_with_logits", "x, y, *, weight:tensor?, pos_weight:tensor?, " .. REDUCTION, "cross-entropy of sigmoid(x) with y in 0..1", function(x, y, weight, pos_weight, reduction)
  local softplus = ops.softplus(-x, {threshold = 40})                 -- log(1 + exp(-x))
  local loss = pos_weight and (1 - y) * x + softplus * (y * (pos_weight - 1) + 1) or (1 - y) * x + softplus
  if weight then loss = loss * weight end
  return reduced(loss, reduction)
end, NN)
-- Dims (N, C, ...) as rows of classes, and what brings a row's loss back.
local function class_rows(name, x, target)
  local n = M.dim(x)
  local want = x.shape
  table.remove(want, n > 1 and 2 or 1)
  if n > 0 and target.shape ~= want then fail(name, "argument 2 has shape %s; it must be %s to match argument 1 of shape %s", tostring(target.shape), tostring(want), tostring(x.shape)) end
  if n == 1 then return M.unsqueeze(x, 1), M.view(target, 1), {} end
  if n == 2 then return x, target, target.shape end
  if n == 0 then fail(name, "argument 1 must have dims (N, C, ...), got a 0-dim tensor") end
  local order = {1}
  for i = 3, n do order[#order + 1] = i end
  order[#order + 1] = 2
  local y = ops.permute(x, order)
  return M.reshape(y, -1, x.shape[2]), M.reshape(target, -1), target.shape
end
local function weighted_mean(loss, target, weight, ignore_index)
  local valid = ops.ne(target, ignore_index)
  if not weight then return ops.sum(loss) / ops.sum(valid) end
  local w = ops.index(weight, {ops.where(valid, target, 1)}, 1)
  return ops.sum(loss) / ops.sum(w * valid)
end
def("cross_entropy", "x, target, *, weight:tensor?, ignore_index:int=-100, label_smoothing:number=0, " .. REDUCTION,
  "cross-entropy of softmax(x) along dim 2 with labels from 1 (int64), or with class probabilities in x's shape", function(x, target, weight, ignore_index, smoothing, reduction)
  if M.is_floating_point(target) then
    if target.shape ~= x.shape then fail("cross_entropy", "probabilities have shape %s; they must have argument 1's, %s", tostring(target.shape), tostring(x.shape)) end
    local dim = M.dim(x) == 1 and 1 or 2
    if smoothing > 0 then target = target * (1 - smoothing) + smoothing / x.shape[dim] end
    local logp = ops.log_softmax(x, dim)
    if weight then
      local shape = {}
      for i = 1, M.dim(x) do shape[i] = i == dim and x.shape[i] or 1 end
      logp = logp * M.view(weight, shape)
    end
    local loss = -ops.sum(target * logp, dim)
    return reduced(loss, reduction)
  end
  local rows, labels, shape = class_rows("cross_entropy", x, target)
  local loss = ops.cross_entropy_rows(rows, labels, weight, {ignore_index = ignore_index, label_smoothing = smoothing})
  if reduction == "mean" then return weighted_mean(loss, labels, weight, ignore_index) end
  if reduction == "sum" then return ops.sum(loss) end
  return M.view(loss, shape)
end, NN)
def("nll_loss", "x, target, *, weight:tensor?, ignore_index:int=-100, " .. REDUCTION, "minus the log-probability in x of each label", function(x, target, weight, ignore_index, reduction)
  local rows, labels, shape = class_rows("nll_loss", x, target)
  local valid = ops.ne(labels, ignore_index)
  local picked = ops.where(valid, labels, 1)
  local loss = ops.where(valid, -M.squeeze(ops.gather(rows, 2, M.unsqueeze(picked, 2)), 2), 0)
  if weight then loss = loss * ops.index(weight, {picked}, 1) end
  if reduction == "mean" then return weighted_mean(loss, labels, weight, ignore_index) end
  if reduction == "sum" then return ops.sum(loss) end
  return M.view(loss, shape)
end, NN)

-- ops that PyTorch has in nn.functional
for name in ([[relu gelu silu sigmoid tanh leaky_relu elu softplus softmax log_softmax pad conv2d avg_pool2d adaptive_avg_pool2d]]):gmatch("%S+") do nn_names[name] = true end

return {functions = F, signatures = signatures, nn = nn_names, no_method = no_method}
