-- Declares functions made of ops, with a signature in the language of ops.def: arguments are checked, ordered and completed as for an op,
-- and the function gets them in order. Each becomes a function of tycho and, unless it makes tensors from nothing, a method. Gradients come
-- from the ops.
local core = require "tycho.core"
local drawing = require("tycho.generator").drawing
local given = require "tycho.options"
local modes = require "tycho.modes"
local fail, shown = given.fail, given.shown
local M = core.methods
local lib = {
  shown = shown,
  functions = {},     -- name -> function
  signatures = {},    -- list of {name, signature, doc}, for docs and specs
  nn = {},            -- names that PyTorch keeps in torch.nn.functional
  NN = {nn = true}, MAKES = {method = false}, LIST = {method = false, list = true}, LOSS = {nn = true, float32 = true},
}

-- The table in tycho that holds the function of that name, and its key there: for signal.windows.hann tycho.signal.windows and "hann".
function lib.place(name)
  local at = lib.root
  for step in name:gmatch "(%l+)%." do at = at[step] end
  return at, name:match "[^.]*$"
end

-- Makes f the function of that name, also in tycho unless a program has put its own function there.
function lib.set(name, f)
  local was = rawget(lib.functions, name)
  lib.functions[name] = f
  if not lib.root then return end
  local at, last = lib.place(name)
  local there = rawget(at, last)
  if there == nil or there == was then rawset(at, last, f) end
end
-- Puts functions defined before lib.root existed in their places.
function lib.show()
  for name, f in pairs(lib.functions) do lib.set(name, f) end
end

-- Defines a method f(x, ...) of tensors that isn't a function of tycho.
function lib.method(name, f)
  M[name] = function(x, ...)
    if not core.is_tensor(x) then
      fail("%s: argument 1 must be a tensor, got %s; a method is called with a colon", name, shown(x))
    end
    return f(x, ...)
  end
end

-- fn with 16-bit tensors as float32 where autocast is on: for functions whose steps would overflow or lose precision in 16 bits.
function lib.in_float32(fn)
  local function widen(x)
    local half = core.is_tensor(x) and (x.dtype == "float16" or x.dtype == "bfloat16")
    return half and core.autocast(x.device ~= "cpu") and M.float(x) or x
  end
  return function(...)
    if not (core.autocast(false) or core.autocast(true)) then return fn(...) end
    local args, n = {...}, select("#", ...)
    for i = 1, n do args[i] = widen(args[i]) end
    return fn(unpack(args, 1, n))
  end
end

-- fn(x), computed in float32 for a 16-bit x and rounded once: for functions of several ops that users see as one.
function lib.widened(x, fn)
  if x.dtype ~= "float16" and x.dtype ~= "bfloat16" then return fn(x) end
  return M.to(fn(M.float(x)), x.dtype)
end

-- fn(...) without autocast, which would multiply in 16 bits.
function lib.exactly(fn, ...)
  if not (core.autocast(false) or core.autocast(true)) then return fn(...) end
  return modes.autocasting({cpu = false, cuda = false}, fn, ...)
end

-- Whether a function may read tensors' values: not while a program is recorded, which can't hold a read, nor within vmap.
function lib.reads() return not (core.program.active() or core.is_mapping()) end
-- Whether a function may read x's values to check them: also not where that would wait for a GPU.
function lib.looks(x) return x.device == "cpu" and lib.reads() end

-- The dtype that an op gives for operands of these two dtypes.
function lib.promote_types(a, b)
  return core.ops.add(core.ops.zeros({0}, {dtype = a, device = "cpu"}), core.ops.zeros({0}, {dtype = b, device = "cpu"})).dtype
end

-- The dtype of a + b: two tensors, of which those without dims count less, or a tensor and a number or boolean.
function lib.result_type(a, b)
  local function like(v)
    return core.is_tensor(v) and core.ops.zeros(M.dim(v) > 0 and {0} or {}, {dtype = v.dtype, device = "cpu"}) or v
  end
  return core.ops.add(like(a), like(b)).dtype
end

-- An operand, for its gradient rule: a tensor of the gradient's dtype, so that values computed from it alone keep the gradient's precision.
function lib.operand(v, g)
  if not core.is_tensor(v) then return core.ops.full({}, v, {dtype = g.dtype, device = g.device}) end
  return v.dtype ~= g.dtype and M.to(v, g.dtype) or v
end

-- Floating tensors, which autocast may have given different dtypes, in the widest of these.
function lib.widest(...)
  if not (core.autocast(false) or core.autocast(true)) then return ... end
  local list, dtype = {...}, nil
  for _, x in ipairs(list) do dtype = dtype and dtype ~= x.dtype and lib.promote_types(dtype, x.dtype) or x.dtype end
  for i, x in ipairs(list) do list[i] = M.to(x, dtype) end
  return unpack(list)
end

-- fn, a function of a list of tensors, callable with the tensors one by one too.
local function of_list(fn)
  return function(...)
    local args, n = {...}, select("#", ...)
    local list, at = {}, 0
    while at < n and core.is_tensor(args[at + 1]) do
      at = at + 1
      list[at] = args[at]
    end
    if at == 0 then return fn(...) end
    return fn(list, unpack(args, at + 1, n))
  end
end

-- Whether a call with these arguments may be recorded for backward.
local function is_differentiated(...)
  if not core.is_grad_enabled() then return false end
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if core.is_tensor(x) and x.requires_grad then return true end
    for _, y in pairs(type(x) == "table" and x or {}) do
      if core.is_tensor(y) and y.requires_grad then return true end
    end
  end
  return false
end

-- options: nn = true: PyTorch keeps it in torch.nn.functional; float32 = true: computed in float32 under autocast; method = false: no
-- method; list = true: takes a list of tensors, or tensors one by one; inplace = true: the result has x's shape, and there is a form with a
-- trailing _; draws = true: it takes a generator; scope = false: it makes nothing but its results, or calls a user's function, which may
-- keep tensors. Without that, tensors that fn makes and doesn't return are released when it ends.
function lib.def(name, signature, doc, fn, options)
  options = options or {}
  local f = core.define(name, signature, options.float32 and lib.in_float32(fn) or fn, options.scope ~= false)
  if options.list then f = of_list(f) end
  if options.draws then f = drawing(name, f) end
  lib.set(name, f)
  lib.signatures[#lib.signatures + 1] = {name = name, signature = signature, doc = doc, inplace = options.inplace}
  if options.nn then lib.nn[name] = true end
  if options.method ~= false then M[name] = f end
  if options.inplace then
    local function in_place(x, ...)
      -- backward needs x as it was before the change, also for the other operands; a trace's may come later
      local y = f(core.is_tensor(x) and (modes.now.tracing or is_differentiated(x, ...)) and core.ops.clone(x) or x, ...)
      if (M.is_floating_point(y) and not M.is_floating_point(x)) or (x.dtype == "bool" and y.dtype ~= "bool") then
        fail("%s_: the result of dtype %s doesn't fit in place into dtype %s", name, y.dtype, x.dtype)
      end
      if y.shape ~= x.shape then                   -- copy_ would broadcast it
        fail("%s_: the result of shape %s doesn't fit in place into shape %s", name, tostring(y.shape), tostring(x.shape))
      end
      return M.copy_(x, y)
    end
    lib.set(name .. "_", in_place)
    M[name .. "_"] = in_place
  end
end

-- Declares a function that is written in C: {name, signature, doc, call}.
function lib.given(f)
  lib.set(f.name, f.call)
  M[f.name] = f.call
  lib.signatures[#lib.signatures + 1] = {name = f.name, signature = f.signature, doc = f.doc}
end

-- Gives a function whose file has been read, or an op, a second name, PyTorch's.
function lib.alias(name, of)
  lib.set(name, rawget(lib.functions, of) or core.ops[of])
  M[name], M[name .. "_"] = rawget(M, of), rawget(M, of .. "_")
end

-- Softmax over the last dim; rows that are entirely -inf, which attend to nothing, give 0.
function lib.attention_weights(s)
  if core.methods.numel(s) == 0 then return core.ops.softmax(s, -1) end
  local none = core.ops.eq(core.ops.amax(s, -1, {keepdim = true}), -math.huge)
  return core.ops.masked_fill(core.ops.softmax(core.ops.masked_fill(s, none, 0), -1), none, 0)
end

-- A tensor's elements as one list. A vector is read itself, not a view of it: compiled functions may read what they don't compute with.
function lib.list_of(x) return (core.methods.dim(x) == 1 and x or core.methods.flatten(x)):totable() end

function lib.fail(name, ...) fail("%s: %s", name, string.format(...)) end

-- A dim as a number from 1 to n; negative ones count from the end.
function lib.wrap(name, d, n)
  if type(d) ~= "number" or d % 1 ~= 0 then lib.fail(name, "a dim must be a whole number, got %s", lib.shown(d)) end
  local k = d < 0 and d + n + 1 or d
  if k < 1 or k > n then lib.fail(name, d == 0 and "dim 0: dims begin at 1" or "dim %d is out of range for %d dims", d, n) end
  return k
end

-- The shape to which the given shapes, lists of sizes, broadcast.
function lib.common_shape(name, shapes)
  local out, n = {}, 0
  for _, s in ipairs(shapes) do n = math.max(n, #s) end
  for d = 1, n do
    out[d] = 1
    for _, s in ipairs(shapes) do
      local at = d - n + #s
      local size = at >= 1 and s[at] or 1
      if size ~= 1 and out[d] ~= 1 and size ~= out[d] then
        lib.fail(name, "dim %d has %d and %d elements: the shapes don't broadcast", d, out[d], size)
      end
      if size ~= 1 then out[d] = size end
    end
  end
  return out
end

-- Matrices, or batches of matrices, expanded to their common batch dims.
function lib.expand_batches(name, a, b)
  local function batch(x) return {unpack(x.shape, 1, M.dim(x) - 2)} end
  local shape = lib.common_shape(name, {batch(a), batch(b)})
  local function expanded(x)
    local whole = {unpack(shape)}
    whole[#whole + 1], whole[#whole + 2] = x.shape[M.dim(x) - 1], x.shape[M.dim(x)]
    return core.ops.expand(x, whole)
  end
  return expanded(a), expanded(b)
end

-- An index into n entries as a number from 1; negative ones count from the end.
function lib.entry(name, what, k, n)
  local at = k < 0 and n + 1 + k or k
  if at < 1 or at > n then
    lib.fail(name, "%s %d is out of range for %d entries%s", what, k, n, k == 0 and ": they count from 1" or "")
  end
  return at
end

-- The size of a transposed convolution's result for n elements of a dim, before output_padding.
function lib.transposed_size(n, kernel, stride, padding, dilation) return (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 end

-- A convolution's padding (nil, a number, a list, "valid" or "same") as elements on both sides of each dim, and additional ones at its end.
function lib.window_padding(name, padding, kernel, stride, dilation)
  local both, more = {}, {}
  for i, k in ipairs(kernel) do
    more[i] = 0
    if padding == nil or padding == "valid" then both[i] = 0
    elseif padding ~= "same" then both[i] = type(padding) == "table" and #padding == #kernel and padding[i] or padding
    elseif stride[i] ~= 1 then lib.fail(name, "padding 'same' needs stride 1")
    else
      local total = dilation[i] * (k - 1)
      both[i], more[i] = math.floor(total / 2), total % 2
    end
    local p = both[i]
    if type(p) ~= "number" or p % 1 ~= 0 or p < 0 then
      lib.fail(name, "padding must be whole numbers from 0, 'valid' or 'same', got %s", shown(padding))
    end
  end
  return both, more
end

-- A norm's order: a number, 'fro' or 'nuc'; infinities may be given by name.
function lib.norm_order(name, p, usual)
  if p == nil then return usual elseif p == "inf" then return math.huge elseif p == "-inf" then return -math.huge end
  if type(p) ~= "number" and p ~= "fro" and p ~= "nuc" then
    lib.fail(name, "the order must be a number, 'fro' or 'nuc', got %s", shown(p))
  end
  return p
end

-- A tensor of indices as int64.
function lib.indices(name, argument, index)
  if M.is_floating_point(index) or index.dtype == "bool" then
    lib.fail(name, "argument %s must hold indices (int64), got %s: long() makes it int64", argument, index.dtype)
  end
  return M.long(index)
end

function lib.need(name, position, x, n)
  if M.dim(x) ~= n then lib.fail(name, "argument %d must have %d dims, got shape %s", position, n, tostring(x.shape)) end
end

-- WHOLE: an integer dtype's bits, least and largest number (of int64 as near as a Lua number is).
-- RANGE: a floating dtype's bits, largest number and smallest normal number; EPS: the distance from 1 to the next number.
lib.RANGE, lib.EPS = {}, {}
lib.WHOLE = {int32 = {32, -2 ^ 31, 2 ^ 31 - 1}, int64 = {64, -2 ^ 63, 2 ^ 63}, uint8 = {8, 0, 255}}
for dtype, f in pairs {float64 = {64, 52, 1023}, float32 = {32, 23, 127}, float16 = {16, 10, 15}, bfloat16 = {16, 7, 127}} do
  lib.EPS[dtype], lib.RANGE[dtype] = 2 ^ -f[2], {bits = f[1], max = (2 - 2 ^ -f[2]) * 2 ^ f[3], tiny = 2 ^ (1 - f[3])}
end

-- Uniform numbers in (0, 1).
function lib.open_unit(shape, dtype, device) return core.ops.clamp(core.ops.rand(shape, {dtype = dtype, device = device}), 2 ^ -25) end

-- The elements of a rank along dim, and their indices. rank: a number, or a tensor of x's shape with one element along dim.
function lib.order_statistics(x, dim, rank)
  local shape = x.shape
  shape[dim] = 1
  if not core.is_tensor(rank) then rank = core.ops.full({}, rank, {dtype = "int64", device = x.device}) end
  return core.ops.order_statistics(x, dim, core.ops.expand(rank, setmetatable(shape, nil)))
end

-- True where an element begins a run: it differs from the one before it along dim, or is the first. alike: NaN equals NaN.
function lib.begins(x, dim, alike)
  local ops = core.ops
  local one = ops.ones(ops.slice(x, dim, 1, 1).shape, {dtype = "bool", device = x.device})
  local after, before = ops.slice(x, dim, 2), ops.slice(x, dim, 1, -2)
  local new = ops.ne(after, before)
  if alike and M.is_floating_point(x) then
    new = ops.logical_and(new, ops.logical_not(ops.logical_and(ops.isnan(after), ops.isnan(before))))
  end
  return ops.cat({one, new}, dim)
end

-- A result over all of x's elements, with as many dims as x, each of size 1.
function lib.all_kept(y, x)
  local ones = {}
  for i = 1, M.dim(x) do ones[i] = 1 end
  return M.view(y, ones)
end

-- The method `name` of x, computed in float64, which holds integers up to 2^53, with the first result in x's dtype; other results stay as
-- they are.
function lib.of_whole(name, x, ...)
  if x.dtype == "bool" then lib.fail(name, "argument 1 must hold numbers, got bool") end
  local function back(y, ...) return M.to(y, x.dtype), ... end
  return back(M[name](M.double(x), ...))
end

-- fn(x); an x without dims is passed as a vector of one element.
function lib.of_vector(x, fn)
  if M.dim(x) > 0 then return fn(x) end
  return M.view(fn(M.view(x, 1)), {})
end

-- fn(x) for an x of `dims` dims; an x without the batch dim is a batch of one.
function lib.batched(name, x, dims, fn)
  if M.dim(x) == dims then return fn(x) end
  if M.dim(x) ~= dims - 1 then lib.fail(name, "argument 1 must have %d or %d dims, got shape %s", dims - 1, dims, tostring(x.shape)) end
  local function single(y, ...)
    if y == nil then return end
    return M.squeeze(y, 1), single(...)
  end
  return single(fn(M.unsqueeze(x, 1)))
end

-- For each of n positions the number of its bag, the last one that begins there or before: starts holds where bags begin, in order.
function lib.bags_of(starts, n)
  local begun = core.ops.zeros({n + 1}, {dtype = "int64", device = starts.device})       -- empty bags may begin behind the end
  begun = core.ops.index_put(begun, 1, {starts}, {1}, {accumulate = true})
  return core.ops.cumsum(core.ops.slice(begun, 1, 1, n), 1)
end

-- A weight's dim by its number, or 0 for the whole weight (also false, PyTorch's None); and the norm over all dims except that one.
function lib.norm_dim(who, dim, w)
  if dim == 0 or dim == false then return 0 end
  return lib.wrap(who, given.whole(who, "dim", dim), M.dim(w))
end
function lib.norm_but(x, dim)
  if dim == 0 then return M.norm(x) end
  local over = {}
  for d = 1, M.dim(x) do if d ~= dim then over[#over + 1] = d end end
  return #over > 0 and M.norm(x, 2, over, {keepdim = true}) or core.ops.abs(x)       -- of a vector: each element's
end

-- A weight as the matrix whose rows are its entries along dim; and x divided by its norm, or by eps if that is larger.
function lib.matrix_along(x, dim) return M.flatten(M.movedim(x, dim, 1), 2) end
function lib.unit(x, eps) return x / core.ops.clamp(M.norm(x), eps) end

return lib
