-- Gradient rules of layers, losses and dropout (init.lua describes how rules are written, and registers these). Most return a fused
-- backward op's results, and where a graph is asked for compute the same gradients by ordinary ops.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local attention_weights = require("tycho.functional.lib").attention_weights
local ctc = require "tycho.functional.ctc"
local recurrent_gradients = require "tycho.grad.recurrent"
local recording = core.is_grad_enabled   -- in a rule: is create_graph asked for?

local R = {}

---- convolution, pooling: each is linear in each operand ----
R.conv2d = {
  x = function(g, weight, x_shape, stride, padding, dilation, groups)
    return ops.conv2d_backward_input(g, weight, x_shape, stride, padding, dilation, groups)
  end,
  weight = function(g, x, weight_shape, stride, padding, dilation, groups)
    return ops.conv2d_backward_weight(g, x, weight_shape, stride, padding, dilation, groups)
  end,
  bias = function(g) return ops.sum(g, {1, 3, 4}) end}
R.conv2d_backward_input = {
  grad = function(g, weight, stride, padding, dilation, groups) return ops.conv2d(g, weight, nil, stride, padding, dilation, groups) end,
  weight = function(g, grad, weight_shape, stride, padding, dilation, groups)
    return ops.conv2d_backward_weight(grad, g, weight_shape, stride, padding, dilation, groups)
  end}
R.conv2d_backward_weight = {
  grad = function(g, x, stride, padding, dilation, groups) return ops.conv2d(x, g, nil, stride, padding, dilation, groups) end,
  x = function(g, grad, x_shape, stride, padding, dilation, groups)
    return ops.conv2d_backward_input(grad, g, x_shape, stride, padding, dilation, groups)
  end}
R.max_pool2d_indices = {x = function(g, out2, x_shape, kernel_size, stride, padding, ceil_mode, dilation)
  return ops.max_pool2d_backward(g, out2, x_shape, kernel_size, stride, padding, ceil_mode, dilation)
end}
R.max_pool2d_values = {x = function(g, x, kernel_size, stride, padding, ceil_mode, dilation)
  local _, at = ops.max_pool2d_indices(x, kernel_size, stride, padding, ceil_mode, dilation)
  return ops.max_pool2d_backward(g, at, x.shape, kernel_size, stride, padding, ceil_mode, dilation)
end}
R.max_pool2d_backward = {grad = function(g, indices, grad_shape)
  return ops.gather(M.flatten(g, -2), -1, M.flatten(indices, -2)):view(grad_shape)
end}
R.adaptive_max_pool2d_indices = {x = function(g, out2, x_shape) return ops.max_pool2d_backward(g, out2, x_shape) end}
R.avg_pool2d = {x = function(g, x_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
  return ops.avg_pool2d_backward(g, x_shape, kernel_size, stride, padding,
    {ceil_mode = ceil_mode, count_include_pad = count_include_pad, divisor_override = divisor_override})
end}
R.avg_pool2d_backward = {grad = function(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
  return ops.avg_pool2d(g, kernel_size, stride, padding,
    {ceil_mode = ceil_mode, count_include_pad = count_include_pad, divisor_override = divisor_override})
end}
R.adaptive_avg_pool2d_windows = {x = function(g, x_shape) return ops.adaptive_avg_pool2d_backward(g, x_shape) end}
R.adaptive_avg_pool2d_backward = {grad = function(g, grad_shape)
  return ops.adaptive_avg_pool2d_windows(g, {grad_shape[#grad_shape - 1], grad_shape[#grad_shape]})
end}
R.resize = {x = function(g, x_shape, size, mode, align_corners, factor_h, factor_w)
  return ops.resize_backward(g, x_shape, size, mode, align_corners, factor_h, factor_w)
end}
R.resize_backward = {grad = function(g, size, mode, align_corners, factor_h, factor_w)
  return ops.resize(g, size, mode, align_corners, factor_h, factor_w)
end}

---- attention ----
-- By plain ops, which have gradients in turn: the weights of queries and keys, and the gradient of what softmax took.
local function attention_slopes(g, q, k, v, mask, causal, scale, dropout)
  if dropout > 0 then error("attention: there is no second derivative with dropout; nn.attention.sdpa_kernel('math', fn) has one", 0) end
  local s = ops.matmul(q, M.transpose(k, -2, -1)) * scale
  if causal then
    s = ops.masked_fill(s,
      ops.logical_not(ops.tril(ops.ones(q.shape[3], k.shape[3], {dtype = "bool", device = q.device}))), -math.huge)
  end
  if mask then s = mask.dtype == "bool" and ops.masked_fill(s, ops.logical_not(mask), -math.huge) or s + mask end
  local p = attention_weights(s)
  local dp = ops.matmul(g, M.transpose(v, -2, -1))
  return p, p * (dp - ops.sum(dp * p, -1, {keepdim = true}))
end
R.attention = {["q k v mask"] = function(g, q, k, v, mask, mask_needed, out, out2, out3, causal, scale, dropout)
  if recording() then
    local p, ds = attention_slopes(g, q, k, v, mask, causal, scale, dropout)
    local dq = ds * scale
    return ops.matmul(dq, k), ops.matmul(M.transpose(dq, -2, -1), q), ops.matmul(M.transpose(p, -2, -1), g), mask_needed and ds
  end
  local backward = mask_needed and ops.attention_backward_with_mask or ops.attention_backward
  return backward(g, q, k, v, mask, out, out2, out3, {causal = causal, scale = scale, dropout = dropout})
end}

---- recurrent layers ----
R.recurrent = {["x weight bias h0 c0"] = function(g, x, weight, bias, h0, c0, out, out2, kind, reverse)
  if recording() then return recurrent_gradients(g, x, weight, bias, h0, c0, kind, reverse) end
  local dx, dy, dh0, dc0 = ops.recurrent_backward(g, weight, h0, c0, out, out2, kind, {reverse = reverse})
  if kind ~= "gru" then dy = dx end
  local steps, last = x.shape[1], reverse and x.shape[1] or 1                       -- there the weight met h0, elsewhere the results
  local dw = ops.matmul(M.t(M.select(dy, 1, last)), h0)
  if steps > 1 then
    local later, before = ops.slice(dy, 1, reverse and 1 or 2, reverse and steps - 1 or steps),
      ops.slice(out, 1, reverse and 2 or 1, reverse and steps or steps - 1)
    dw = dw + ops.matmul(M.t(M.flatten(later, 1, 2)), M.flatten(before, 1, 2))
  end
  return dx, dw, ops.sum(dy, {1, 2}), dh0, c0 and dc0
end}

---- normalisation ----
-- The same gradients by ordinary ops: x is normalised over dims, with statistics that depend on x if own is true.
local function normalised(g, x, mean, rstd, scale, dims, own, eps)
  if own then
    mean = ops.mean(x, dims, {keepdim = true})
    rstd = ops.rsqrt(ops.mean(ops.square(x - mean), dims, {keepdim = true}) + eps)
  end
  local h, gw = (x - mean) * rstd, scale and g * scale or g
  local dx = gw * rstd
  if own then dx = (gw - ops.mean(gw, dims, {keepdim = true}) - h * ops.mean(gw * h, dims, {keepdim = true})) * rstd end
  return dx, g * h
end
R.batch_norm_stats = {["x weight bias"] = function(g, x, weight, out2, out3, training, eps)
  if not recording() then return ops.batch_norm_backward(g, x, weight, out2, out3, {training = training}) end
  local dims, shape = {1}, {1, x.shape[2]}
  for i = 3, #x.shape do dims[#dims + 1] = i; shape[i] = 1 end
  local dx, gh = normalised(g, x, M.view(out2, shape), M.view(out3, shape), weight and M.view(weight, shape), dims, training, eps)
  return dx, ops.sum(gh, dims), ops.sum(g, dims)
end}
-- The last dims, which have the given sizes, and the dims before.
local function last_dims(x, size)
  local dims, before = {}, {}
  for i = 1, #x.shape do
    local list = i > #x.shape - #size and dims or before
    list[#list + 1] = i
  end
  return dims, before
end
R.layer_norm_stats = {["x weight bias"] = function(g, x, weight, out2, out3, size, eps)
  if not recording() then return ops.layer_norm_backward(g, x, weight, out2, out3) end
  local dims, before = last_dims(x, size)
  local dx, gh = normalised(g, x, nil, nil, weight, dims, true, eps)
  if #before == 0 then return dx, gh, g end
  return dx, ops.sum(gh, before), ops.sum(g, before)
end}
R.group_norm_stats = {["x weight bias"] = function(g, x, weight, out2, out3, groups, eps)
  if not recording() then return ops.group_norm_backward(g, x, weight, out2, out3) end
  local n, c = x.shape[1], x.shape[2]
  local pixels = 1
  for i = 3, #x.shape do pixels = pixels * x.shape[i] end
  local function apart(t) return M.reshape(t, n, groups, c / groups, pixels) end
  local G = apart(g)
  local dx, gh = normalised(G, apart(x), nil, nil, weight and M.view(weight, 1, groups, c / groups, 1), {3, 4}, true, eps)
  return M.view(dx, x.shape), M.view(ops.sum(gh, {1, 4}), c), M.view(ops.sum(G, {1, 4}), c)
end}

R.rms_norm_stats = {["x weight"] = function(g, x, weight, out2, size, eps)
  if not recording() then return ops.rms_norm_backward(g, x, weight, out2) end
  local dims, before = last_dims(x, size)
  local r = ops.rsqrt(ops.mean(ops.square(x), dims, {keepdim = true}) + eps)
  local gw = weight and g * weight or g
  local dx = gw * r - x * (r * r * r) * ops.mean(gw * x, dims, {keepdim = true})
  local dw = g * x * r
  return dx, #before == 0 and dw or ops.sum(dw, before)
end}

---- losses, dropout ----
local function smooth_l1_slope(g, x, y, beta)
  if not recording() then return ops.smooth_l1_backward(g, x, y, beta) end
  return g * (beta == 0 and ops.sign(x - y) or ops.clamp((x - y) / beta, -1, 1))
end
R.smooth_l1_terms = {x = smooth_l1_slope, y = function(g, x, y, beta) return smooth_l1_slope(g, y, x, beta) end}
R.bce_logits_terms = {x = function(g, x, y)
  if not recording() then return ops.bce_logits_backward(g, x, y) end
  return g * (ops.sigmoid(x) - y)
end, y = function(g, x) return -g * x end}
R.prelu_values = {x = function(g, x, weight) return ops.prelu_backward(g, x, weight) end,
  weight = function(g, x) return ops.where(ops.gt(x, 0), 0, g * x) end}
R.bce_terms = {x = function(g, x, y) return g * (x - y) / ops.clamp((1 - x) * x, 1e-12) end,
  y = function(g, x) return g * (ops.clamp(ops.log1p(-x), -100) - ops.clamp(ops.log(x), -100)) end}

-- By other ops, from the losses' gradients g; for 16-bit scores in float32, as in the op.
local function cross_entropy(g, x, target, weight, ignore_index, label_smoothing)
  if x.dtype ~= "float64" then x, weight = M.float(x), weight and M.float(weight) end
  local valid = ops.ne(target, ignore_index)
  if weight then                           -- the classes are dim 2
    local shape = {M.numel(weight)}
    for i = 2, M.dim(target) do shape[i] = 1 end
    weight = M.view(weight, shape)
  end
  local label = M.unsqueeze(ops.where(valid, target, 1), 2)
  local q = ops.zeros(x.shape, {dtype = x.dtype, device = x.device})
  local picked = weight and ops.gather(ops.expand(weight, x.shape), 2, label) or ops.fill(M.to(label, x.dtype), 1)
  q = ops.scatter(q, 2, label, picked * (1 - label_smoothing))
  q = q + (weight and weight * (label_smoothing / x.shape[2]) or label_smoothing / x.shape[2])
  return ops.where(M.unsqueeze(valid, 2), g * (ops.softmax(x, 2) * ops.sum(q, 2, {keepdim = true}) - q), 0)
end
R.cross_entropy_rows = {x = function(g, x, target, weight, out2, ignore_index, label_smoothing)
  if not recording() then
    return ops.cross_entropy_backward(g, x, target, out2, weight,
      {ignore_index = ignore_index, label_smoothing = label_smoothing})
  end
  return cross_entropy(M.unsqueeze(g, 2), x, target, weight, ignore_index, label_smoothing)
end}
R.cross_entropy_mean = {x = function(g, x, target, weight, out2, out3, ignore_index, label_smoothing)
  if not recording() then
    return ops.cross_entropy_mean_backward(g, x, target, out2, out3, weight,
      {ignore_index = ignore_index, label_smoothing = label_smoothing})
  end
  local sum = ops.where(ops.eq(out3, 0), 1, out3)           -- 0 where all targets are ignored: then all gradients are 0
  return cross_entropy(g / sum, x, target, weight, ignore_index, label_smoothing)
end}
R.ctc_paths = {logs = function(g, logs, skips, lengths, out2)
  if recording() then return ctc.gradients(g, logs, skips, lengths) end
  return ops.ctc_backward(g, logs, skips, lengths, out2)
end}
R.dropout_mask = {x = function(g, out2, p) return g * out2 * (p < 1 and 1 / (1 - p) or 0) end}

---- cdist ----
-- The derivatives of the norms of a's rows minus b's with respect to each difference, times g.
local function of_differences(g, a, b, p, norms)
  local d = M.unsqueeze(a, -2) - M.unsqueeze(b, -3)
  if p == 0 then return d * 0 end
  if p == math.huge then return ops.sign(d) * M.unsqueeze(g, -1) * ops.eq(ops.abs(d), M.unsqueeze(norms, -1)) end
  local none = ops.eq(norms, 0)
  local norm = ops.masked_fill(norms, none, 1)
  local share = M.unsqueeze(ops.masked_fill(p == 1 and g or g / (p == 2 and norm or norm ^ (p - 1)), none, 0), -1)
  if p == 1 then return ops.sign(d) * share elseif p == 2 then return d * share end
  local at0 = ops.eq(d, 0)
  return ops.masked_fill(ops.sign(d) * ops.masked_fill(ops.abs(d), at0, 1) ^ (p - 1) * share, at0, 0)
end
local function turned(x) return M.transpose(x, -2, -1) end
R.distances = {a = function(g, a, b, p, out)
  if recording() then return ops.sum(of_differences(g, a, b, p, out), -2) end
  return ops.distances_backward(g, a, b, out, p)
end, b = function(g, a, b, p, out)
  if recording() then return -ops.sum(of_differences(g, a, b, p, out), -3) end
  return ops.distances_backward(turned(g), b, a, turned(out), p)
end}

return R
