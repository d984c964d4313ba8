-- The arithmetic of layers: convolution, pooling, normalisation, dropout, activations, attention.
--
-- Idea: the ops know the two-dimensional case: one dim is two, one of size 1. Inputs without a batch get one for the call. Invariant:
-- modules hold state, functions none.
local core = require "tycho.core"
local modes = require "tycho.modes"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail, wrap, need, batched, NN = lib.def, lib.fail, lib.wrap, lib.need, lib.batched, lib.NN
local F = lib.functions

---- convolution ----
-- A 1-d layer as a 2-d one of height 1. x (N,C,L) or (C,L)
local function flat2d(x, name)
  local n = M.dim(x)
  if name and n ~= 2 and n ~= 3 then fail(name, "argument 1 must have 2 or 3 dims, got shape %s", tostring(x.shape)) end
  return M.unsqueeze(x, -2)
end
def("conv1d",
  "x, weight, bias:tensor?, stride:single=1, padding:any?, dilation:single=1, groups:int=1",
  "1-D convolution of x (N,C,L) with weight (O,C/groups,k); padding may be 'same' or 'valid'",
  function(x, w, b, stride, padding, dilation, groups)
    need("conv1d", 2, w, 3)
    local p, more = lib.window_padding("conv1d", padding, {w.shape[3]}, {stride}, {dilation})
    return batched("conv1d", x, 3, function(y)
      if y.shape[2] ~= w.shape[2] * groups then
        fail("conv1d", "argument 1 has shape %s, argument 2 %s: %d channels are needed", tostring(x.shape), tostring(w.shape),
          w.shape[2] * groups)
      end
      if more[1] > 0 then y = ops.pad_constant(y, {0, more[1]}) end
      return M.squeeze(ops.conv2d(flat2d(y), flat2d(w), b, {1, stride}, {0, p[1]}, {1, dilation}, groups), 3)
    end)
  end, NN)
-- The transpose of a convolution is its gradient with respect to the input.
local function transposed(name, x, w, b, stride, padding, more, groups, dilation)
  for i = 1, 2 do
    if more[i] < 0 or more[i] >= math.max(stride[i], dilation[i]) then
      fail(name, "output_padding %d must be smaller than stride or dilation", more[i])
    end
  end
  local function left_over(i) return more[i] > 0 and more[i] >= stride[i] end
  if left_over(1) or left_over(2) then
    -- output_padding beyond what a convolution drops: crop the full result
    local y = transposed(name, x, w, nil, stride, {0, 0}, {0, 0}, groups, dilation)
    y = ops.pad_constant(y, {-padding[2], more[2] - padding[2], -padding[1], more[1] - padding[1]})
    return b and y + M.to(M.view(b, 1, -1, 1, 1), y.dtype) or y
  end
  local size = {x.shape[1], w.shape[2] * groups}
  for i = 1, 2 do
    size[i + 2] = lib.transposed_size(x.shape[i + 2], w.shape[i + 2], stride[i], padding[i], dilation[i]) + more[i]
    if size[i + 2] < 1 then fail(name, "an input of shape %s gives an empty output", tostring(x.shape)) end
  end
  if x.shape[2] ~= w.shape[1] then
    fail(name, "argument 1 has shape %s; dim 2 must be %d to match argument 2 of shape %s", tostring(x.shape),
      w.shape[1], tostring(w.shape))
  end
  local y = ops.conv2d_backward_input(x, w, size, stride, padding, dilation, groups)
  return b and y + M.to(M.view(b, 1, -1, 1, 1), y.dtype) or y
end
def("conv_transpose2d",
  "x, weight, bias:tensor?, stride:pair=1, padding:pair=0, output_padding:pair=0, groups:int=1, dilation:pair=1",
  "transposed 2-D convolution of x (N,C,H,W) with weight (C,O/groups,kH,kW)",
  function(x, w, b, ...)
    need("conv_transpose2d", 2, w, 4)
    local o = {...}
    return batched("conv_transpose2d", x, 4, function(y) return transposed("conv_transpose2d", y, w, b, unpack(o)) end)
  end, NN)
def("conv_transpose1d",
  "x, weight, bias:tensor?, stride:single=1, padding:single=0, output_padding:single=0, groups:int=1, dilation:single=1",
  "transposed 1-D convolution of x (N,C,L) with weight (C,O/groups,k)",
  function(x, w, b, stride, padding, more, groups, dilation)
    need("conv_transpose1d", 2, w, 3)
    return batched("conv_transpose1d", x, 3, function(y)
      return M.squeeze(transposed("conv_transpose1d", flat2d(y), flat2d(w), b, {1, stride}, {0, padding}, {0, more},
        groups, {1, dilation}), 3)
    end)
  end, NN)

def("conv2d",
  "x, weight, bias:tensor?, stride:pair=1, padding:any?, dilation:pair=1, groups:int=1",
  "2-D convolution of x (N,C,H,W) with weight (O,C/groups,kH,kW); padding may be 'same' or 'valid'",
  function(x, w, b, stride, padding, dilation, groups)
    if type(padding) == "string" then
      need("conv2d", 2, w, 4)
      local p, more = lib.window_padding("conv2d", padding, {w.shape[3], w.shape[4]}, stride, dilation)
      return batched("conv2d", x, 4, function(y)
        if more[1] + more[2] > 0 then y = ops.pad_constant(y, {0, more[2], 0, more[1]}) end
        return ops.conv2d(y, w, b, stride, p, dilation, groups)
      end)
    end
    if M.dim(x) == 4 then return ops.conv2d(x, w, b, stride, padding, dilation, groups) end
    return batched("conv2d", x, 4, function(y) return ops.conv2d(y, w, b, stride, padding, dilation, groups) end)
  end, NN)

---- pooling ----
-- max_pool2d_indices(x, ...), on a CPU without the indices where they would only be for a gradient that nobody can ask for. A checkpoint
-- that keeps results, though, looks for the same op when it runs again for its gradient.
local function maxima(x, indices, ...)
  if indices or x.device ~= "cpu" or (x.requires_grad and core.is_grad_enabled()) or core.recalls() then
    return ops.max_pool2d_indices(x, ...)
  end
  return ops.max_pool2d_values(x, ...)
end
def("max_pool2d",
  "x, kernel_size:pair, stride:pair?, padding:pair=0, dilation:pair=1, ceil_mode:bool=false, return_indices:bool=false",
  "maximum of each kernel_size window of the last two dims",
  function(x, k, stride, padding, dilation, ceil_mode, indices)
    if not M.is_floating_point(x) then return lib.of_whole("max_pool2d", x, k, stride, padding, dilation, ceil_mode, indices) end
    local y, i = maxima(x, indices, k, stride, padding, ceil_mode, dilation)
    if indices then return y, i end
    return y
  end, NN)
def("max_pool1d",
  "x, kernel_size:single, stride:single?, padding:single=0, dilation:single=1, ceil_mode:bool=false, return_indices:bool=false",
  "maximum of each kernel_size window of the last dim",
  function(x, k, stride, padding, dilation, ceil_mode, indices)
    if not M.is_floating_point(x) then return lib.of_whole("max_pool1d", x, k, stride, padding, dilation, ceil_mode, indices) end
    local y, i = maxima(flat2d(x, "max_pool1d"), indices, {1, k}, {1, stride or k}, {0, padding}, ceil_mode, {1, dilation})
    y = M.squeeze(y, -2)
    if indices then return y, M.squeeze(i, -2) end
    return y
  end, NN)
def("avg_pool1d",
  "x, kernel_size:single, stride:single?, padding:single=0, ceil_mode:bool=false, count_include_pad:bool=true",
  "mean of each kernel_size window of the last dim",
  function(x, k, stride, padding, ceil_mode, count_include_pad)
    return M.squeeze(ops.avg_pool2d(flat2d(x, "avg_pool1d"), {1, k}, {1, stride or k}, {0, padding},
      {ceil_mode = ceil_mode, count_include_pad = count_include_pad}), -2)
  end, NN)
-- {3, false}: the second dim keeps its size, like PyTorch's None.
local function with_kept(x, size)
  if type(size) ~= "table" or (size[1] ~= false and size[2] ~= false) then return size end
  local n = M.dim(x)
  if n < 2 then return 1 end                             -- the op raises
  return {size[1] == false and x.shape[n - 1] or size[1], size[2] == false and x.shape[n] or size[2]}
end
local function adaptive_avg_pool2d(x, size)
  local n = M.dim(x)
  size = with_kept(x, size)
  local ones = type(size) == "table" and size[1] == 1 and size[2] == 1 or size == 1
  local all = ones and (n == 3 or n == 4) and x.shape[n - 1] * x.shape[n] > 0
  -- whole contiguous planes are a reduction; so are channels-last ones on a GPU, where one thread does a window
  local whole = all and (M.is_contiguous(x) or (x.device ~= "cpu" and M.is_channels_last(x)))
  if whole and M.is_floating_point(x) then return ops.mean(x, {-2, -1}, {keepdim = true, dtype = x.dtype}) end
  return ops.adaptive_avg_pool2d_windows(x, size)
end
def("adaptive_avg_pool2d", "x, output_size:any", "means of windows chosen so that output_size results; {h, false} keeps the width",
  adaptive_avg_pool2d, NN)
def("adaptive_avg_pool1d", "x, output_size:single", "means of windows of the last dim chosen so that output_size results", function(x, size)
  return M.squeeze(adaptive_avg_pool2d(flat2d(x, "adaptive_avg_pool1d"), {1, size}), -2)
end, NN)
def("adaptive_max_pool2d",
  "x, output_size:any, return_indices:bool=false",
  "maxima of windows chosen so that output_size results; {h, false} keeps the width",
  function(x, size, indices)
    local y, i = ops.adaptive_max_pool2d_indices(x, with_kept(x, size))
    if indices then return y, i end
    return y
  end, NN)
def("adaptive_max_pool1d",
  "x, output_size:single, return_indices:bool=false",
  "maxima of windows of the last dim chosen so that output_size results",
  function(x, size, indices)
    local y, i = ops.adaptive_max_pool2d_indices(flat2d(x, "adaptive_max_pool1d"), {1, size})
    y = M.squeeze(y, -2)
    if indices then return y, M.squeeze(i, -2) end
    return y
  end, NN)
for dims, size in ipairs {"single", "pair", "triple"} do
  def(("lp_pool%dd"):format(dims),
    ("x, p:number, kernel_size:%s, stride:%s?, ceil_mode:bool=false"):format(size, size),
    "p-norm of each kernel_size window",
    function(x, p, k, stride, ceil_mode)
      if p == 0 or p ~= p or math.abs(p) == math.huge then
        fail(("lp_pool%dd"):format(dims), "p must be finite and not 0, got %g; for the maximum use max_pool%dd", p, dims)
      end
      local y, n = M[("avg_pool%dd"):format(dims)](ops.pow(x, p), k, stride, 0, {ceil_mode = ceil_mode}), 1
      for i = 1, dims do n = n * (dims == 1 and k or k[i]) end
      return ops.pow(ops.sign(y) * ops.relu(ops.abs(y)) * n, 1 / p)
    end, NN)
end

---- dropout and normalisation ----
def("dropout",
  "x, p:number=0.5, training:bool=true",
  "elements set to 0 with probability p, the others scaled by 1 / (1 - p)",
  function(x, p, training)
    if not training or p == 0 then return x end
    -- vmap: a mask that doesn't depend on a mapped tensor can be the same for all examples
    if core.is_mapped(x) then
      local scale = ops.dropout_mask(ops.ones(x.shape, {dtype = x.dtype, device = x.device}), p)
      return ops.where(ops.eq(scale, 0), 0, x * scale)
    end
    return (ops.dropout_mask(x, p))
  end, NN)
def("batch_norm", "x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, training:bool=false, momentum:number=0.1, eps:number=1e-5",
  "each channel (dim 2) normalised by the batch's statistics (training) or the running ones, then scaled and shifted",
  function(x, mean, var, w, b, training, momentum, eps)
    if training and modes.now.recomputing then mean, var = nil, nil end      -- the first run has updated them
    return (ops.batch_norm_stats(x, mean, var, w, b, {training = training, momentum = momentum, eps = eps}))
  end, NN)
def("layer_norm",
  "x, size:sizes, weight:tensor?, bias:tensor?, eps:number=1e-5",
  "normalised over the last dims, of shape size, then scaled and shifted",
  function(x, size, w, b, eps)
    return (ops.layer_norm_stats(x, size, w, b, {eps = eps}))
  end, NN)
def("rms_norm",
  "x, size:sizes, weight:tensor?, eps:number?",
  "divided by the root mean square over the last dims, of shape size, then scaled",
  function(x, size, w, eps)
    return (ops.rms_norm_stats(x, size, w, {eps = eps or lib.EPS[x.dtype == "float64" and "float64" or "float32"]}))
  end, NN)
local function per_channel(x, v)
  local shape = {1, -1}
  for i = 3, M.dim(x) do shape[i] = 1 end
  return M.view(v, shape)
end
def("group_norm",
  "x, groups:int, weight:tensor?, bias:tensor?, eps:number=1e-5",
  "channels (dim 2) normalised in groups, for each item of the batch, then scaled and shifted",
  function(x, groups, w, b, eps)
    if M.dim(x) < 2 or groups < 1 or x.shape[2] % groups ~= 0 then
      fail("group_norm", "the number of channels of shape %s must be a multiple of %d", tostring(x.shape), groups)
    end
    for i, t in pairs {w or false, b or false} do
      if t and M.numel(t) ~= x.shape[2] then
        fail("group_norm", "argument 1 has shape %s, %d channels; %s has %d elements", tostring(x.shape), x.shape[2],
          i == 1 and "weight" or "bias", M.numel(t))
      end
    end
    if M.numel(x) == groups then
      fail("group_norm", "shape %s has one value per group, which can't be normalised", tostring(x.shape))
    end
    return (ops.group_norm_stats(x, groups, w and M.reshape(w, -1), b and M.reshape(b, -1), {eps = eps}))
  end, NN)
def("instance_norm",
  "x, mean:tensor?, var:tensor?, weight:tensor?, bias:tensor?, use_input_stats:bool=true, momentum:number=0.1, eps:number=1e-5",
  "each channel of each item normalised on its own, then scaled and shifted",
  function(x, mean, var, w, b, own, momentum, eps)
    if M.dim(x) < 3 then fail("instance_norm", "argument 1 must have at least 3 dims, got shape %s", tostring(x.shape)) end
    if not own then return F.batch_norm(x, mean, var, w, b, {eps = eps}) end
    local n, c = x.shape[1], x.shape[2]
    if M.numel(x) == n * c and n > 0 then
      fail("instance_norm", "shape %s has one value per channel, which can't be normalised", tostring(x.shape))
    end
    if mean and var and n > 0 then
      modes.once(function()
        local rows = M.reshape(x, n, c, -1)
        M.lerp_(mean, M.to(ops.mean(ops.mean(rows, 3), 1), mean.dtype), momentum)
        M.lerp_(var, M.to(ops.mean(M.var(rows, 3), 1), var.dtype), momentum)
      end)
    end
    return F.group_norm(x, c, w, b, {eps = eps})
  end, NN)
def("local_response_norm",
  "x, size:int, alpha:number=1e-4, beta:number=0.75, k:number=1",
  "divided by a power of the mean square over size neighbouring channels",
  function(x, size, alpha, beta, k)
    if size < 1 then fail("local_response_norm", "size must be at least 1, got %d", size) end
    if M.numel(x) == 0 then return ops.clone(x) end
    local shape = {x.shape[1], 1, x.shape[2], -1}
    local sq = M.reshape(ops.square(x), shape)
    sq = ops.pad_constant(sq, {0, 0, math.floor(size / 2), math.floor((size - 1) / 2)})
    local mean = M.reshape(ops.avg_pool2d(sq, {size, 1}, 1), x.shape)
    return x / ops.pow(mean * alpha + k, beta)
  end, NN)
def("normalize", "x, p:number=2, dim:dims?, eps:number=1e-12", "divided by its p-norm along dim (2), or dims", function(x, p, dim, eps)
  return x / ops.clamp(M.norm(x, p, dim or 2, {keepdim = true}), eps)
end, NN)

---- dropout of whole channels, or that keeps mean and variance ----
local function channels(name, dims)
  def(name,
    "x, p:number=0.5, training:bool=true",
    "whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)",
    function(x, p, training)
      if not training or p == 0 then return x end
      local shape = {}
      local n = M.dim(x)
      local first = n - math.min(dims, math.max(n - 2, 1))      -- (N,C,L) is a batch
      for i = 1, n do shape[i] = i <= first and x.shape[i] or 1 end
      return x * (ops.dropout_mask(ops.ones(shape, {dtype = x.dtype, device = x.device}), p))
    end, NN)
end
channels("dropout1d", 1)
channels("dropout2d", 2)
channels("dropout3d", 3)
local function keeping_moments(name, doc, of_channels)
  def(name, "x, p:number=0.5, training:bool=false", doc, function(x, p, training)
    if not (p >= 0 and p <= 1) then fail(name, "p must be in 0..1, got %g", p) end
    if of_channels and M.dim(x) < 2 then fail(name, "argument 1 must have dims (N, C, ...), got shape %s", tostring(x.shape)) end
    if not training or p == 0 then return x end
    if p == 1 then return x * 0 end
    local alpha, shape = -1.7580993408473766, x.shape
    local a = (((1 - p) * (1 + p * alpha * alpha)) ^ -0.5)
    for d = 3, of_channels and #shape or 0 do shape[d] = 1 end
    local keep = ops.gt(ops.rand(shape, {device = x.device}), p)
    return ops.where(keep, x, alpha) * a - a * alpha * p
  end, NN)
end
keeping_moments("alpha_dropout", "dropout that keeps mean and variance under selu")
keeping_moments("feature_alpha_dropout", "alpha_dropout of whole channels", true)

---- activations made of others ----
def("gelu",
  "x, approximate:enum(none,tanh)=none",
  "Gaussian error linear unit: x times the normal distribution's value at x",
  function(x, approximate)
    return (approximate == "tanh" and ops.gelu_tanh or ops.gelu_erf)(x)
  end, {nn = true, inplace = true})
def("relu6", "x", "x limited to 0..6", function(x) return ops.hardtanh(x, 0, 6) end, {nn = true, inplace = true})
def("tanhshrink", "x", "x - tanh(x)", function(x) return x - ops.tanh(x) end, NN)
def("softmin", "x, dim:int, *, dtype:dtype?", "softmax of -x", function(x, dim, dtype) return ops.softmax(-x, dim, {dtype = dtype}) end, NN)
def("glu", "x, dim:int=-1", "the first half of dim times sigmoid of the second", function(x, dim)
  local n = x.shape[wrap("glu", dim, M.dim(x))]
  if n % 2 == 1 then fail("glu", "dim %d of shape %s must be even", dim, tostring(x.shape)) end
  if n == 0 then return ops.clone(x) end
  return lib.widened(x, function(wide)
    local h = M.split(wide, n / 2, dim)
    return h[1] * ops.sigmoid(h[2])
  end)
end, NN)
def("prelu", "x, weight", "x where x > 0, else weight * x; weight has one element, or one for each channel (dim 2)", function(x, w)
  local c, n = M.dim(x) > 1 and x.shape[2] or 1, M.numel(w)
  if n ~= 1 and n ~= c then
    fail("prelu", "argument 2 (weight) of shape %s must have one element, or one for each of %d channels", tostring(w.shape), c)
  end
  return ops.prelu_values(x, n == 1 and M.view(w, {}) or per_channel(x, w))
end, NN)
def("rrelu",
  "x, lower:number=0.125, upper:number=0.3333333333333333, training:bool=false",
  "leaky_relu whose slope is drawn from lower..upper while training",
  function(x, lower, upper, training)
    if lower > upper then fail("rrelu", "lower %g is above upper %g", lower, upper) end
    if not training then return ops.leaky_relu(x, (lower + upper) / 2) end
    return ops.where(ops.ge(x, 0), x, x * (ops.rand(x.shape, {dtype = x.dtype, device = x.device}) * (upper - lower) + lower))
  end, NN)
def("gumbel_softmax",
  "x, tau:number=1, hard:bool=false, dim:int=-1, *, eps:number?",
  "a sample from the categories along dim that gradients flow through; eps has no effect",
  function(x, tau, hard, dim)
    local noise = -ops.log(ops.exponential(ops.empty(x.shape, {dtype = x.dtype, device = x.device})))
    local y = ops.softmax((x + noise) / tau, dim)
    if not hard then return y end
    local _, top = ops.max_dim(y, dim, true)
    return ops.scatter(ops.fill(M.detach(y), 0), dim, top, 1) - M.detach(y) + y
  end, NN)

---- attention ----
-- x's shape without its last two dims; and such a shape with two dims added.
local function leading(x)
  local s = x.shape
  table.remove(s)
  table.remove(s)
  return s
end
local function with_last(lead, rows, columns)
  local s = {unpack(lead)}
  s[#s + 1], s[#s + 2] = rows, columns
  return s
end

-- Whether only plain ops may compute attention, as nn.attention's MATH: else an op does, which chooses further on a GPU.
local function by_math(q)
  local flag = core.gpu.flag
  if flag "flash_sdp" or flag "mem_efficient_sdp" or (flag "cudnn_sdp" and not flag "math_sdp" and q.is_cuda) then return false end
  if not flag "math_sdp" then
    fail("scaled_dot_product_attention", "flash, mem_efficient and math are all switched off%s (backends.cuda.enable_math_sdp)",
      flag "cudnn_sdp" and ", and on the CPU there is no cuDNN" or "")
  end
  return true
end

-- softmax(q k^T * scale + mask) v over (..., L, D). The fused op's memory grows with L only; nn.attention's MATH uses the plain ops.
def("scaled_dot_product_attention",
  "q, k, v, attn_mask:tensor?, dropout_p:number=0, is_causal:bool=false, *, scale:number?, enable_gqa:bool=false",
  "softmax(q @ k^T * scale + attn_mask) @ v; a bool mask is true where to attend; scale defaults to 1 / sqrt(D); what is dropped, \z
    not by what the rest is multiplied, goes by dropout_p rounded to 1 / 65536",
  function(q, k, v, mask, p, causal, scale, gqa)
    local n = M.dim(q)
    if n < 2 or M.dim(k) ~= n or M.dim(v) ~= n then
      fail("scaled_dot_product_attention", "shapes %s, %s and %s must have the same number of dims, at least 2",
        tostring(q.shape), tostring(k.shape), tostring(v.shape))
    end
    if mask and mask.dtype ~= "bool" and not M.is_floating_point(mask) then
      fail("scaled_dot_product_attention", "attn_mask must be bool or floating, got %s", mask.dtype)
    end
    if mask and causal then fail("scaled_dot_product_attention", "attn_mask and is_causal exclude each other") end
    scale = scale or 1 / math.sqrt(math.max(q.shape[n], 1))
    if gqa and n >= 3 and k.shape[n - 2] ~= q.shape[n - 2] then
      local times = q.shape[n - 2] / k.shape[n - 2]
      if times % 1 ~= 0 then
        fail("scaled_dot_product_attention", "%d query heads must be a multiple of the %d key heads", q.shape[n - 2], k.shape[n - 2])
      end
      -- few queries: heads that share keys are joined to one, so that keys are read once and never repeated
      local queries, lead = q.shape[n - 1], leading(q)
      lead[n - 2] = k.shape[n - 2]
      if not causal and lead == leading(k) and lead == leading(v) and (queries == 1 or not mask and 2 * queries <= k.shape[n - 1]) then
        local function folded(x) return M.reshape(x, unpack(with_last(lead, times * queries, x.shape[n]))) end
        if mask then mask = folded(ops.expand(mask, with_last(leading(q), queries, k.shape[n - 1]))) end
        local y = M.scaled_dot_product_attention(folded(q), k, v, mask, {dropout_p = p, scale = scale})
        return M.reshape(y, unpack(with_last(leading(q), queries, v.shape[n])))
      end
      k, v = M.repeat_interleave(k, times, n - 2), M.repeat_interleave(v, times, n - 2)
    end
    if by_math(q) then
      local root = math.sqrt(math.abs(scale))            -- on both operands: unscaled 16-bit products may overflow
      local s = ops.matmul(q * (scale < 0 and -root or root), M.transpose(k * root, -2, -1))
      if causal then mask = ops.tril(ops.ones({q.shape[n - 1], k.shape[n - 1]}, {dtype = "bool", device = q.device})) end
      if mask then s = mask.dtype == "bool" and ops.masked_fill(s, ops.logical_not(mask), -math.huge) or s + mask end
      local w = lib.attention_weights(s)
      return ops.matmul(M.to(p > 0 and ops.dropout_mask(w, p) or w, v.dtype), v)
    end
    local lead = leading(q)
    if leading(k) ~= lead or leading(v) ~= lead then        -- batch and head dims broadcast
      lead = lib.common_shape("scaled_dot_product_attention", {lead, leading(k), leading(v)})
      local function widened(x) return ops.expand(x, with_last(lead, x.shape[n - 1], x.shape[n])) end
      q, k, v = widened(q), widened(k), widened(v)
    end
    local function four(x)
      if n == 4 then return x end
      if n == 3 then return M.unsqueeze(x, 1) end
      if n == 2 then return ops.view(x, {1, 1, x.shape[1], x.shape[2]}) end
      return M.reshape(x, -1, x.shape[n - 2], x.shape[n - 1], x.shape[n])
    end
    if mask then
      local shape = q.shape
      shape[n] = k.shape[n - 1]
      mask = four(ops.expand(mask, setmetatable(shape, nil)))
      if mask.dtype ~= "bool" and mask.dtype ~= q.dtype then mask = M.to(mask, q.dtype) end
    end
    local y = ops.attention(four(q), four(k), four(v), mask, {causal = causal, scale = scale, dropout = p})
    return n == 4 and y or M.view(y, with_last(lead, q.shape[n - 1], v.shape[n]))
  end, NN)
