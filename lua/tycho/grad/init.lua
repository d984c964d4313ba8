-- Gradient rules, one expression for each operand of each op: here for pointwise ops, reductions, views, products and indexing, in this
-- folder's other files for the rest.
--
-- A rule's parameter names say what it needs, and only that is saved (operands rather than results where PyTorch's rule does so too, so
-- that the same results may be changed in place): g: the incoming gradient; operands and attributes by their names in ops.def; out (out2,
-- ...): the results; x_shape: the shape of operand x; x_needed: whether its gradient is needed; item: the position in a list; x_shapes: the
-- shapes of a list. The engine undoes broadcasting. Rules are made of Tycho's own ops, so second derivatives follow; a faster fused
-- backward op is used only where no graph is asked for. A key of several names gives several gradients at once; a name that also has its
-- own key doesn't trigger it. Loading checks rules against the op table in both directions.
local core = require "tycho.core"
local ops = core.ops
local M = core.methods
local lib = require "tycho.functional.lib"
local operand = lib.operand
local recording = core.is_grad_enabled   -- in a rule: is create_graph asked for?

local R = {}

local function zero(g) return ops.fill(g, 0) end
-- The gradient of step functions: 0, which isn't computed, and stops backward there. grad() returns zeros for it.
local function jump() end
local function zeros(shape, like) return ops.zeros(shape, {dtype = like.dtype, device = like.device}) end

-- g of a reduction's result, expanded to the shape of its operand
local function spread(g, x_shape, dim, keepdim)
  if not keepdim then
    local shape, reduced = {}, {}
    for _, d in ipairs(dim or {}) do reduced[d] = true end
    for i = 1, #x_shape do shape[i] = (not dim or reduced[i]) and 1 or x_shape[i] end
    g = M.reshape(g, shape)
  end
  return ops.expand(g, x_shape)
end

local function count(x_shape, dim)
  local n = 1
  if dim then for _, d in ipairs(dim) do n = n * (x_shape[d] or 1) end
  else for i = 1, #x_shape do n = n * x_shape[i] end end
  return n
end

---- pointwise, one operand ----
R.neg = {x = function(g) return -g end}
R.abs = {x = function(g, x) return g * ops.sign(x) end}
R.sign = {x = zero}
R.floor = {x = zero}
R.ceil = {x = zero}
R.round = {x = zero}
R.trunc = {x = zero}
R.bernoulli = {x = zero}
R.square = {x = function(g, x) return g * x * 2 end}
R.cube = {x = function(g, x) return g * ops.square(x) * 3 end}
R.exp = {x = function(g, out) return g * out end}
R.expm1 = {x = function(g, out) return g * (out + 1) end}
R.log = {x = function(g, x) return g / x end}
R.log2 = {x = function(g, x) return g / (x * math.log(2)) end}
R.log10 = {x = function(g, x) return g / (x * math.log(10)) end}
R.log1p = {x = function(g, x) return g / (x + 1) end}
R.lgamma = {x = function(g, x) return g * ops.digamma(x) end}
R.digamma = {x = function(g, x) return g * ops.gamma_slope(x, 1) end}
R.gamma_slope = {x = function(g, x, n) return g * ops.gamma_slope(x, n + 1) end}
R.sqrt = {x = function(g, out) return g / (out * 2) end}
R.sqrt_or_0 = {x = function(g, out)        -- 0 where out is 0, and so are further derivatives
  local at0 = ops.eq(out, 0)
  return ops.masked_fill(g / (ops.masked_fill(out, at0, 1) * 2), at0, 0)
end}
R.rsqrt = {x = function(g, out) return g * (out * out * out) * -0.5 end}
R.reciprocal = {x = function(g, out) return -g * (out * out) end}
R.sin = {x = function(g, x) return g * ops.cos(x) end}
R.cos = {x = function(g, x) return -g * ops.sin(x) end}
R.tan = {x = function(g, out) return g * (out * out + 1) end}
R.asin = {x = function(g, x) return g * ops.rsqrt(1 - x * x) end}
R.acos = {x = function(g, x) return -g * ops.rsqrt(1 - x * x) end}
R.atan = {x = function(g, x) return g / (x * x + 1) end}
R.sinh = {x = function(g, x) return g * ops.cosh(x) end}
R.cosh = {x = function(g, x) return g * ops.sinh(x) end}
R.asinh = {x = function(g, x) return g * ops.rsqrt(x * x + 1) end}
R.acosh = {x = function(g, x) return g * ops.rsqrt(x * x - 1) end}
R.atanh = {x = function(g, x) return g / (1 - x * x) end}
R.tanh = {x = function(g, out) return ops.tanh_backward(g, out) end}
R.erf = {x = function(g, x) return g * ops.exp(-(x * x)) * (2 / math.sqrt(math.pi)) end}
R.erfc = {x = function(g, x) return g * ops.exp(-(x * x)) * (-2 / math.sqrt(math.pi)) end}
R.erfinv = {x = function(g, x) return g * ops.exp(ops.square(ops.erfinv(x))) * (math.sqrt(math.pi) / 2) end}
R.exp2 = {x = function(g, out) return g * out * math.log(2) end}
R.frac = {x = function(g) return g end}
R.sigmoid = {x = function(g, out) return ops.sigmoid_backward(g, out) end}
R.logit = {x = function(g, x, eps)
  local low = math.max(eps, 0)
  local inside = ops.logical_and(ops.ge(x, low), ops.le(x, 1 - low))
  x = ops.where(inside, x, 0.5)            -- a factor that isn't chosen must be finite for the second derivative
  return ops.where(inside, g / (x * (1 - x)), eps < 0 and 0 / 0 or 0)
end}
R.relu = {x = function(g, out) return ops.relu_backward(g, out) end}
R.silu = {x = function(g, x)
  if not recording() then return ops.silu_backward(g, x) end
  local s = ops.sigmoid(x)
  return g * (s * (x * (1 - s) + 1))
end}
R.gelu_erf = {x = function(g, x)
  if not recording() then return ops.gelu_erf_backward(g, x) end
  return g * ((ops.erf(x * math.sqrt(0.5)) + 1) * 0.5 + x * ops.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)))
end}
R.gelu_tanh = {x = function(g, x)
  if not recording() then return ops.gelu_tanh_backward(g, x) end
  local k = math.sqrt(2 / math.pi)
  local t = ops.tanh((x + x * x * x * 0.044715) * k)
  return g * ((t + 1) * 0.5 + x * (1 - t * t) * (x * x * (3 * 0.044715) + 1) * (0.5 * k))
end}
R.leaky_relu = {x = function(g, x, negative_slope) return ops.leaky_relu_backward(g, x, negative_slope) end}
R.elu = {x = function(g, x, alpha) return ops.where(ops.gt(x, 0), g, g * ops.exp(ops.clamp(x, nil, 0)) * alpha) end}
R.softplus = {x = function(g, x, beta, threshold)
  if not recording() then return ops.softplus_backward(g, x, beta, threshold) end
  return ops.where(ops.gt(x * beta, threshold), g, g * ops.sigmoid(x * beta))
end}
R.selu = {x = function(g, x)
  return ops.where(ops.gt(x, 0), g * 1.0507009873554805, g * ops.exp(ops.clamp(x, nil, 0)) * 1.7580993408473766)
end}
R.celu = {x = function(g, x, alpha) return ops.where(ops.gt(x, 0), g, g * ops.exp(ops.clamp(x, nil, 0) / alpha)) end}
R.mish = {x = function(g, x)
  local t = ops.tanh(ops.softplus(x))
  return g * (t + x * ops.sigmoid(x) * (1 - t * t))
end}
R.logsigmoid = {x = function(g, x) return g * ops.sigmoid(-x) end}
R.softsign = {x = function(g, x) return g / ops.square(ops.abs(x) + 1) end}
R.softshrink = {x = function(g, x, lambd) return ops.where(ops.le(ops.abs(x), lambd), 0, g) end}
R.hardshrink = R.softshrink
R.hardswish = {x = function(g, x) return ops.hardswish_backward(g, x) end}
R.hardsigmoid = {x = function(g, x) return ops.hardtanh_backward(g / 6, x, -3, 3) end}
R.threshold = {x = function(g, x, threshold) return ops.relu_backward(g, x - threshold) end}
R.hardtanh = {x = function(g, x, min_val, max_val) return ops.hardtanh_backward(g, x, min_val, max_val) end}
R.finite = {x = function(g, x, max) return ops.where(ops.le(ops.abs(x), max), g, 0) end}
R.clamp = {x = function(g, x, min, max) return ops.clamp_backward(g, x, min, max) end}

---- pointwise, two and three operands ----
local function scaled(g, k) return k == 1 and g or g * k end
R.add = {a = function(g) return g end, b = function(g, alpha) return scaled(g, alpha) end}
R.sub = {a = function(g) return g end, b = function(g, alpha) return g * -alpha end}
R.mul = {a = function(g, b) return g * b end, b = function(g, a) return g * a end}
R.amp_scale = {loss = function(g, scale) return g * scale end}
R.div = {a = function(g, b) return g / b end, b = function(g, a, b) return -g * (a / b) / b end}
R.floor_divide = {a = zero, b = zero}
R.remainder = {a = function(g) return g end, b = function(g, a, b) return -g * ops.floor_divide(a, b) end}
R.pow = {
  a = function(g, a, b)
    if type(b) == "number" then return b == 0 and zero(g) or g * (ops.pow(a, b - 1) * b) end
    local none = ops.eq(b, 0)
    return ops.where(none, 0, g * (ops.pow(a, ops.where(none, 1, b - 1)) * b))
  end,
  b = function(g, a, b, out)               -- 0 ^ b is 1 for b = 0, and 0 above
    if type(a) == "number" then return a == 0 and ops.where(ops.ge(b, 0), 0, -math.huge) * g or g * out * math.log(a) end
    return g * out * ops.log(ops.where(ops.logical_and(ops.eq(a, 0), ops.ge(b, 0)), 1, operand(a, g)))
  end}
-- equal operands share the gradient
local function larger(g, a, b) return g * (ops.gt(a, b) + ops.eq(a, b) * 0.5) end
R.maximum = {a = function(g, a, b) return larger(g, a, b) end, b = function(g, a, b) return larger(g, b, a) end}
R.minimum = {a = function(g, a, b) return larger(g, b, a) end, b = function(g, a, b) return larger(g, a, b) end}
R.fmod = {a = function(g) return g end, b = function(g, a, b) return -g * ops.trunc(a / b) end}
local function chosen(g, a, b, out)
  return g * (ops.logical_and(ops.eq(a, out), ops.ne(b, out)) + ops.logical_and(ops.eq(a, out), ops.eq(b, out)) * 0.5)
end
R.fmax = {a = function(g, a, b, out) return chosen(g, a, b, out) end, b = function(g, a, b, out) return chosen(g, b, a, out) end}
R.fmin = R.fmax
R.hypot = {a = function(g, a, out) return g * (a / out) end, b = function(g, b, out) return g * (b / out) end}
R.copysign = {a = function(g, a, out) return g * ops.sign(a) * ops.sign(out) end, b = zero}
R.logaddexp = {a = function(g, a, b) return g * ops.sigmoid(a - b) end, b = function(g, a, b) return g * ops.sigmoid(b - a) end}
R.xlogy = {a = function(g, a, b)
  b = operand(b, g)
  return ops.where(ops.logical_and(ops.eq(a, 0), ops.le(b, 0)), 0, ops.xlogy(g, b))       -- 0 where g is, as a mask leaves it
end, b = function(g, a, b) return g * a / b end}
local function over_squares(a, b, g)      -- 0 at the origin, as in PyTorch
  a, b = operand(a, g), operand(b, g)
  local d = a * a + b * b
  return ops.where(ops.eq(d, 0), 0, 1 / d)
end
R.atan2 = {a = function(g, a, b) return g * b * over_squares(a, b, g) end,
  b = function(g, a, b) return -g * a * over_squares(a, b, g) end}
R.fill = {x = zero, value = function(g) return g end}
R.where = {a = function(g, cond) return ops.where(cond, g, 0) end, b = function(g, cond) return ops.where(cond, 0, g) end}
R.masked_fill = {x = function(g, mask) return ops.masked_fill(g, mask, 0) end, value = function(g, mask) return ops.where(mask, g, 0) end}
R.lerp = {a = function(g, weight) return g * (1 - weight) end, b = function(g, weight) return g * weight end,
  weight = function(g, a, b) return g * (b - a) end}
R.addcmul = {a = function(g) return g end, b = function(g, c, value) return scaled(g * c, value) end,
  c = function(g, b, value) return scaled(g * b, value) end}
R.addcdiv = {a = function(g) return g end, b = function(g, c, value) return scaled(g / c, value) end,
  c = function(g, b, c, value) return g * b / ops.square(operand(c, g)) * -value end}

---- pointwise ops that are gradients themselves ----
R.relu_backward = {grad = function(g, y) return ops.relu_backward(g, y) end, y = jump}
R.sigmoid_backward = {grad = function(g, y) return ops.sigmoid_backward(g, y) end,
  y = function(g, grad, y) return g * grad * (1 - y * 2) end}
R.tanh_backward = {grad = function(g, y) return ops.tanh_backward(g, y) end, y = function(g, grad, y) return g * grad * y * -2 end}
R.leaky_relu_backward = {grad = function(g, x, negative_slope) return ops.leaky_relu_backward(g, x, negative_slope) end,
  x = jump}
R.hardtanh_backward = {grad = function(g, x, min_val, max_val) return ops.hardtanh_backward(g, x, min_val, max_val) end, x = jump}
R.prelu_backward = {grad = function(g, x, weight) return ops.prelu_backward(g, x, weight) end, x = jump,
  weight = function(g, grad, x) return ops.where(ops.gt(x, 0), 0, g * grad) end}
R.hardswish_backward = {grad = function(g, x) return ops.hardswish_backward(g, x) end,
  x = function(g, grad, x) return ops.hardtanh_backward(g * grad / 3, x, -3, 3) end}
R.clamp_backward = {grad = function(g, x, min, max) return ops.clamp_backward(g, x, min, max) end, x = jump}

---- reductions, scans ----
R.sum = {x = spread}
R.nansum = {x = function(g, x, x_shape, dim, keepdim) return ops.where(ops.isnan(x), 0, spread(g, x_shape, dim, keepdim)) end}
R.mean = {x = function(g, x_shape, dim, keepdim) return spread(g * (1 / count(x_shape, dim)), x_shape, dim, keepdim) end}
-- products of the elements before each element of the last dim
local function products_before(x)
  local n = x.shape[#x.shape]
  local shape = x.shape
  shape[#shape] = 1
  return ops.cumprod(ops.cat({
    ops.ones(setmetatable(shape, nil), {dtype = x.dtype, device = x.device}),
    ops.slice(x, -1, 1, n - 1 > 0 and n - 1 or nil)}, -1), -1)
end
R.prod = {x = function(g, x, x_shape, dim, keepdim)   -- also right where elements are 0
  if recording() and M.numel(x) > 0 and #x_shape > 0 then    -- the product of all others, without a division
    local kept, order, back, inside, n = {}, {}, {}, {}, 1
    for i = 1, #x_shape do inside[i] = not dim end
    for _, d in ipairs(dim or {}) do inside[d] = true end
    for i = 1, #x_shape do if not inside[i] then order[#order + 1] = i; kept[#kept + 1] = x_shape[i] end end
    for i = 1, #x_shape do if inside[i] then order[#order + 1] = i; n = n * x_shape[i] end end
    for i, d in ipairs(order) do back[d] = i end
    local y = ops.permute(x, order)
    local shape = y.shape
    kept[#kept + 1] = n
    y = M.reshape(y, kept)
    if n > 1 then y = products_before(y) * ops.flip(products_before(ops.flip(y, -1)), -1) else y = ops.fill(y, 1) end
    return spread(g, x_shape, dim, keepdim) * ops.permute(M.reshape(y, shape), back)
  end
  local at0 = ops.eq(x, 0)
  local y = ops.masked_fill(x, at0, 1)
  local others = spread(ops.prod(y, dim, {keepdim = true}), x_shape, dim, true) / y
  local n = spread(ops.sum(at0, dim, {keepdim = true}), x_shape, dim, true)
  local keep = ops.logical_or(ops.eq(n, 0), ops.logical_and(ops.eq(n, 1), at0))
  return spread(g, x_shape, dim, keepdim) * ops.where(keep, others, 0)
end}
local function extreme(g, x, out, x_shape, dim, keepdim)   -- equal elements share the gradient, NaN among them
  local hit = ops.alike(x, spread(out, x_shape, dim, keepdim))
  return spread(g, x_shape, dim, keepdim) * hit / spread(ops.sum(hit, dim, {keepdim = true}), x_shape, dim, true)
end
R.amax = {x = extreme}
R.amin = R.amax
R.norm2 = {x = function(g, x, out, x_shape, dim, keepdim)
  local n = spread(out, x_shape, dim, keepdim)
  if recording() then                                    -- at 0 the second derivative is 0 too
    local at0 = ops.eq(n, 0)
    return spread(g, x_shape, dim, keepdim) * ops.masked_fill(x / ops.masked_fill(n, at0, 1), at0, 0)
  end
  return spread(g, x_shape, dim, keepdim) * ops.where(ops.eq(n, 0), 0, x / n)
end}
R.max_dim = {x = function(g, out2, x_shape, dim, keepdim)
  if not keepdim and #x_shape > 0 then g, out2 = M.unsqueeze(g, dim), M.unsqueeze(out2, dim) end
  return ops.scatter(zeros(x_shape, g), dim, out2, g)
end}
R.min_dim = R.max_dim
R.cumsum = {x = function(g, dim) return ops.flip(ops.cumsum(ops.flip(g, dim), dim), dim) end}

R.cumprod = {x = function(g, x, out, dim)
  if not recording() then return ops.cumprod_backward(g, x, dim) end
  if #out.shape == 0 then return g end
  -- row i of p: the running products without element i; without division, so that it is right at 0, for any derivative
  local y, h = M.movedim(x, dim, -1), M.movedim(g, dim, -1)
  local n, wide = y.shape[#y.shape], y.shape
  table.insert(wide, n)
  local eye = ops.eye(n, {dtype = "bool", device = g.device})
  local p = ops.cumprod(ops.masked_fill(ops.expand(M.unsqueeze(y, -2), setmetatable(wide, nil)), eye, 1), -1)
  return M.movedim(ops.sum(ops.triu(p * M.unsqueeze(h, -2)), -1), -1, dim)
end}
R.cummax = {x = function(g, out2, x_shape, dim)
  if #x_shape == 0 then return g end
  return ops.scatter_add(zeros(x_shape, g), dim, out2, g)
end}
R.cummin = R.cummax
R.logcumsumexp = {x = function(g, x, out, dim)   -- positive and negative parts separately, as logarithms
  local n = #x.shape > 0 and M.size(x, dim) or 1
  if recording() and n * M.numel(x) <= 2 ^ 24 then        -- each pair's share: linear in g, and no factor overflows
    local function last(v) return #x.shape > 0 and M.movedim(v, dim, -1) or M.view(v, 1) end
    local later = M.bool(ops.triu(ops.ones({n, n}, {device = x.device})))
    local share = ops.exp(ops.where(later, M.unsqueeze(last(x), -1) - M.unsqueeze(last(out), -2), -math.huge))
    local dx = ops.sum(share * M.unsqueeze(last(g), -2), -1)
    return #x.shape > 0 and M.movedim(dx, -1, dim) or M.view(dx, {})
  end
  if recording() then
    local wide, wide_out = M.double(x), M.double(out)                                  -- whose exp overflows later
    local top = M.detach(ops.amax(wide, dim, {keepdim = true}))
    top = ops.masked_fill(top, ops.isinf(top), 0)
    return M.to(ops.exp(wide - top) * R.cumsum.x(M.double(g) * ops.exp(top - wide_out), dim), g.dtype)
  end
  local function part(h) return ops.exp(ops.flip(ops.logcumsumexp(ops.flip(ops.log(ops.clamp(h, 0)) - out, dim), dim), dim) + x) end
  return part(g) - part(-g)
end}

---- sorting ----
local function unsort(g, out2, x_shape, dim)
  if #x_shape == 0 then return M.reshape(g, x_shape) end
  return ops.scatter(zeros(x_shape, g), dim, out2, g)
end
R.sort = {x = unsort}
R.topk = R.sort
R.order_statistics = {x = function(g, out2, x_shape, dim)
  return (recording() and ops.scatter_add or ops.scatter_add_)(zeros(x_shape, g), dim, out2, g)       -- ranks may occur twice
end}

---- views, copies ----
local function contiguous_strides(shape)
  local stride, n = {}, 1
  for i = #shape, 1, -1 do stride[i], n = n, n * math.max(shape[i], 1) end
  return stride
end
-- g put into zeros of the given shape, at the window of its shape, with these strides and offset (0-based) in the layout.
local function put(g, shape, stride, offset, layout)
  return ops.strided_put(ops.expand(zeros({}, g), shape), g, layout or {}, g.shape, stride, offset)
end
-- The places, from 1, of a window's elements.
local function places(size, stride, offset, like)
  local at = ops.full({}, offset + 1, {dtype = "int64", device = like.device})
  for i, n in ipairs(size) do
    at = M.unsqueeze(at, -1) + ops.range(0, n - 1, 1, {dtype = "int64", device = like.device}) * stride[i]
  end
  return at
end
R.view = {x = function(g, x_shape) return M.reshape(g, x_shape) end}
R.permute = {x = function(g, dims)
  local back = {}
  for i, d in ipairs(dims) do back[d] = i end
  return ops.permute(g, back)
end}
R.expand = {x = function(g) return g end}
R.slice = {x = function(g, x_shape, dim, first, step)
  local stride = contiguous_strides(x_shape)
  local offset = first * stride[dim]
  stride[dim] = stride[dim] * step
  return put(g, x_shape, stride, offset)
end}
R.select = {x = function(g, x_shape, dim, index)
  local stride = contiguous_strides(x_shape)
  local offset = index * table.remove(stride, dim)
  return put(g, x_shape, stride, offset)
end}
R.diagonal = {x = function(g, x_shape, offset, dim1, dim2)
  local stride, at = contiguous_strides(x_shape), {}
  for i = 1, #x_shape do if i ~= dim1 and i ~= dim2 then at[#at + 1] = stride[i] end end
  at[#at + 1] = stride[dim1] + stride[dim2]
  return put(g, x_shape, at, math.max(-offset, 0) * stride[dim1] + math.max(offset, 0) * stride[dim2])
end}
R.as_strided = {x = function(g, x_shape, size, stride, storage_offset)
  local n = 1
  for _, k in ipairs(x_shape) do n = n * k end
  local at = places(size, stride, storage_offset, g)
  return M.view(ops.scatter_add(zeros({n}, g), 1, M.reshape(at, -1), M.reshape(g, -1)), x_shape)
end}
R.unfold = {x = function(g, x_shape, dim, step, dilation) return ops.overlap_add(g, dim, x_shape[dim], step, dilation) end}
R.overlap_add = {x = function(g, x_shape, dim, step, dilation)
  return ops.unfold(g, dim, x_shape[#x_shape], step, {dilation = dilation})
end}
-- Whether a window has an element twice: sorted by stride, each dim must step beyond the extent of those before.
local function overlaps(size, stride)
  local dims, reach = {}, 0
  for i, n in ipairs(size) do if n ~= 1 then dims[#dims + 1] = i end end
  table.sort(dims, function(a, b) return stride[a] < stride[b] end)
  for _, i in ipairs(dims) do
    if stride[i] <= reach then return true end
    reach = reach + stride[i] * (size[i] - 1)
  end
  return false
end
R.strided_take = {x = function(g, x_shape, layout, size, stride, offset)
  if not overlaps(size, stride) then return put(g, x_shape, stride, offset, layout) end
  if M.numel(g) == 0 then return zeros(x_shape, g) end
  local own, extent = #layout > 0 and layout or contiguous_strides(x_shape), 1           -- elements seen twice add up
  for i, n in ipairs(x_shape) do extent = extent + math.max(n - 1, 0) * own[i] end
  local flat = ops.index_put(zeros({extent}, g), g, {places(size, stride, offset, g)}, 1, {accumulate = true})
  return ops.strided_take(flat, {}, x_shape, own, 0)
end}
R.strided_put = {
  x = function(g, layout, size, stride, offset) return ops.strided_put(g, 0, layout, size, stride, offset) end,
  src = function(g, layout, size, stride, offset) return ops.strided_take(g, layout, size, stride, offset) end}
R.clone = {x = function(g) return g end}
R.cast = R.clone
R.copy = {x = zero, src = function(g, src_device) return M.to(g, src_device) end}
R.to_device = {x = function(g, x_device) return M.to(g, x_device) end}
R.tril = {x = function(g, k) return ops.tril(g, k) end}
R.triu = {x = function(g, k) return ops.triu(g, k) end}
R.flip = {x = function(g, dims) return ops.flip(g, dims) end}
local FOURIER = {forward = "inverse", inverse = "forward", real = "half_once", half_once = "real", real_twice = "half", half = "real_twice"}
R.pairs_product = {
  a = function(g, b, conjugate) return ops.pairs_product(g, b, not conjugate) end,
  b = function(g, a, conjugate)
    if conjugate then return ops.pairs_product(a, g, true) end
    return ops.pairs_product(g, a, true)
  end}
R.fourier = {x = function(g, n, kind, scale, inner) return ops.fourier(g, n, FOURIER[kind], scale, inner) end}
R.pad_constant = {x = function(g, pad)
  local back = {}
  for i, n in ipairs(pad) do back[i] = -n end
  return ops.pad_constant(g, back)
end}
R.cat = {tensors = function(g, item, dim, tensors_shapes)
  local dims, ends = #g.shape, tensors_shapes.ends
  if #tensors_shapes[item] ~= dims then return zeros({0}, g) end                       -- tensor({}), which fits any shape
  if not ends then                                                                     -- computed once: all items share the table
    ends = {}
    for i, shape in ipairs(tensors_shapes) do ends[i] = (ends[i - 1] or 0) + (#shape == dims and shape[dim] or 0) end
    tensors_shapes.ends = ends
  end
  return ops.slice(g, dim, (ends[item - 1] or 0) + 1, ends[item])
end}

R.stack = {tensors = function(g, item, dim) return ops.select(g, dim, item) end}

---- matrix products ----
local function rows(x)
  local n = 1
  for i = 1, #x.shape - 1 do n = n * x.shape[i] end
  return M.reshape(x, n, x.shape[#x.shape])
end
-- The columns of x's matrices, one after another: a matrix.
local function columns(x) return M.reshape(M.movedim(x, -2, 1), x.shape[#x.shape - 1], -1) end
local FEW = 32                             -- columns; with more, a product for each matrix costs less than to move them
R.matmul = {
  a = function(g, b, a_shape)
    if #b.shape == 1 then return M.unsqueeze(g, -1) * b end
    if #a_shape == 1 then return ops.matmul(b, M.unsqueeze(g, -1)):squeeze(-1) end
    if #a_shape == 2 and #b.shape > 2 and b.shape[#b.shape] <= FEW and M.numel(g) > 0 and M.numel(b) > 0 then      -- one product
      return ops.matmul(columns(g), M.t(columns(b)))
    end
    return ops.matmul(g, M.transpose(b, -2, -1))
  end,
  b = function(g, a, b_shape)
    if #b_shape == 1 then
      if #a.shape == 1 then return g * a end
      return ops.matmul(M.transpose(a, -2, -1), M.unsqueeze(g, -1)):squeeze(-1)
    end
    if #a.shape == 1 then return M.unsqueeze(a, -1) * M.unsqueeze(g, -2) end
    if #b_shape == 2 and #a.shape > 2 then     -- many rows against one matrix: one product
      return ops.matmul(M.t(rows(a)), rows(g))
    end
    return ops.matmul(M.transpose(a, -2, -1), g)
  end}
-- The bias gradient is summed in the same pass as the product.
local function linear_gradients(g, x, bias_needed)
  if bias_needed and not recording() then return ops.linear_backward_weight(rows(g), rows(x)) end
  return ops.matmul(M.t(rows(g)), rows(x)), g
end
R.linear = {
  x = function(g, weight) return ops.matmul(g, weight) end,
  bias = function(g) return g end,
  ["weight bias"] = linear_gradients}
R.linear_relu = {["x weight bias"] = function(g, x, weight, out, bias_needed)
  g = ops.relu_backward(g, out)
  return ops.matmul(g, weight), linear_gradients(g, x, bias_needed)
end}

---- softmax ----
R.softmax = {x = function(g, out, dim)
  if not recording() then return ops.softmax_backward(g, out, dim) end
  return out * (g - ops.sum(g * out, dim, {keepdim = true}))
end}
R.log_softmax = {x = function(g, out, dim)
  if not recording() then return ops.log_softmax_backward(g, out, dim) end
  return g - ops.exp(out) * ops.sum(g, dim, {keepdim = true})
end}

---- indices ----
-- zeros with g added at indices; in place unless a graph is asked for
R.index = {x = function(g, x_shape, indices, dims)
  return (recording() and ops.index_put or ops.index_put_)(zeros(x_shape, g), g, indices, dims, {accumulate = true})
end}
R.index_put = {
  x = function(g, indices, dims, accumulate) return accumulate and g or ops.index_put(g, 0, indices, dims) end,
  value = function(g, indices, dims) return ops.index(g, indices, dims) end}
-- for each id, the gradient of the row that it names: its bag's part of g
local function of_bags(g, ids, starts, padding)
  local each = ops.index(M.contiguous(g), {lib.bags_of(starts, ids.shape[1])}, {1}, {ids = true})
  return padding == 0 and each or ops.where(M.unsqueeze(ops.eq(ids, padding), 2), 0, each)
end
R.bag = {
  weight = function(g, weight_shape, ids, starts, scale, padding)
    local each = of_bags(g, ids, starts, padding)
    return R.index.x(scale and each * M.unsqueeze(scale, 2) or each, weight_shape, {ids}, {1})
  end,
  scale = function(g, weight, ids, starts, padding)
    return ops.sum(of_bags(g, ids, starts, padding) * ops.index(weight, {ids}, {1}, {ids = true}), {2})
  end}
R.gather = {x = function(g, x_shape, dim, index)
  return (recording() and ops.scatter_add or ops.scatter_add_)(zeros(x_shape, g), dim, index, g)
end}
-- the gradient of a source of which only the part covered by index was read
local function read_part(g, dim, index, src_shape)
  local part, pad = ops.gather(g, dim, index), {}
  for i = #src_shape, 1, -1 do
    pad[#pad + 1] = 0
    pad[#pad + 1] = src_shape[i] - index.shape[i]
  end
  return index.shape == src_shape and part or ops.pad_constant(part, pad)
end
R.scatter = {x = function(g, dim, index) return ops.scatter(g, dim, index, 0) end,
  src = function(g, dim, index, src_shape) return read_part(g, dim, index, src_shape) end}
R.scatter_add = {x = function(g) return g end, src = R.scatter.src}
local product_of_others
R.scatter_combine = {["x src"] = function(g, x, dim, index, src, how, out)
  if how == "prod" then return product_of_others(g, x, dim, index, src, out) end
  local wide = g.dtype == "float64" and "float64" or "float32"                      -- a dtype that holds the count
  local own, from = M.to(ops.alike(x, out), wide), M.to(ops.alike(src, ops.gather(out, dim, index)), wide)
  local share = g / ops.scatter_add(own, dim, index, from)                          -- equal extremes share the gradient
  return M.to(own * share, g.dtype), M.to(from * ops.gather(share, dim, index), g.dtype)
end}
-- Quotients by a nonzero factor; where only one factor is 0, the product of the others.
function product_of_others(g, x, dim, index, src, out)
  local none, none_x = ops.eq(src, 0), ops.eq(x, 0)
  local many = ops.scatter_add(zero(g), dim, index, M.to(none, g.dtype))
  if recording() and ops.any(ops.gt(many, 1)):item() then
    error("scatter_reduce: 'prod' has no second derivative where several zeros go to the same place", 0)
  end
  local alone = ops.logical_and(none, ops.eq(ops.gather(many, dim, index), 1))
  local filled = ops.masked_fill(x, none_x, 1)
  local others = ops.scatter_combine(x, dim, index, ops.masked_fill(src, alone, 1), "prod")
  return g * ops.scatter_combine(filled, dim, index, src, "prod") / filled,
    ops.where(alone, ops.gather(g * others, dim, index), ops.gather(g * out, dim, index) / ops.masked_fill(src, none, 1))
end

---- rules that stand elsewhere ----
for _, family in ipairs {"layers", "linalg", "special", "sampling", "collective"} do
  for name, rules in pairs(require("tycho.grad." .. family)) do R[name] = rules end
end

---- no gradient ----
local NONE = [[
  isnan isinf isfinite signbit logical_not gcd lcm bitwise_and bitwise_or bitwise_xor bitwise_left_shift
  bitwise_right_shift alike eq ne lt le gt ge logical_and logical_or logical_xor any all
  silu_backward gelu_erf_backward gelu_tanh_backward softplus_backward
  smooth_l1_backward bce_logits_backward grid_sample_backward_grid grid_sample_backward_x softmax_backward log_softmax_backward
  batch_norm_backward layer_norm_backward group_norm_backward distances_backward cross_entropy_backward
  cross_entropy_mean_backward ctc_backward linear_backward_weight empty zeros ones full range linspace eye rand randn randint randperm
  rng_state set_rng_state uniform normal exponential multinomial drawn augment nonzero unique_values searchsorted bincount
  cumprod_backward attention_backward attention_backward_with_mask rms_norm_backward sgd_step adamw_step rmsprop_step adagrad_step
  nadam_step radam_step adamax_step adadelta_step multi_norm multi_scale recurrent_backward
  multi_found multi_unscale amp_update exp_down batch_norm_apply gamma_draw_slope order_of_rows]]

-- Registers a function under the operands that it differentiates; its parameters' names are read from the function.
local function register(op, n, operands, fn)
  local names, params = {}, {}
  for name in operands:gmatch("%S+") do names[#names + 1] = name end
  local i = 1
  while true do
    local name = debug.getlocal(fn, i)
    if not name then break end
    params[i], i = name, i + 1
  end
  if #params == 0 and fn ~= jump then
    error("tycho.grad was stripped of its parameters' names: load it as source, or compile it with -g")
  end
  core.set_rule(op, n, names, params, fn)
end

local none = {}
for name in NONE:gmatch("%S+") do none[name] = true end
local known = {}
for _, op in ipairs(core.op_table()) do
  known[op.name] = true
  if not R[op.name] and not none[op.name] then error("tycho.grad has no rule for op '" .. op.name .. "', nor is it in NONE") end
  if R[op.name] and none[op.name] then error("tycho.grad: op '" .. op.name .. "' has a rule and is listed as having none") end
end
for name, rules in pairs(R) do
  if not known[name] then error("tycho.grad has a rule for '" .. name .. "', which is no op") end
  local operands, n = {}, 0
  for key in pairs(rules) do operands[#operands + 1] = key end
  table.sort(operands)
  for _, key in ipairs(operands) do
    register(name, n, key, rules[key])
    n = n + 1
  end
end
for name in pairs(none) do
  if not known[name] then error("tycho.grad lists '" .. name .. "' as having no gradient, but there is no such op") end
end
