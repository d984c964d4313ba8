-- Layers that are a function with arguments: activations, pooling, padding, sizes, distances.
--
-- Idea: one line gives name, function and arguments in the language of signatures; class, checks and printing are made from it.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local F = require "tycho.nn.functional"
local init = require "tycho.nn.init_functions"
local module = require "tycho.nn.module"
local lib = require "tycho.nn.layer"
local plain, layer, whole = lib.plain, lib.layer, lib.whole
local fail = require("tycho.options").fail

---- activations ----
for _, name in ipairs {"ReLU", "SiLU", "SELU", "Mish", "Hardswish", "Hardsigmoid"} do plain(name, name:lower(), "", nil, true) end
for _, name in ipairs {"Sigmoid", "Tanh", "Softsign", "LogSigmoid"} do plain(name, name:lower(), "") end
plain("ReLU6", "relu6", "", nil, true)
plain("Tanhshrink", "tanhshrink", "")
plain("GELU", "gelu", "approximate=none")
plain("LeakyReLU", "leaky_relu", "negative_slope=0.01", nil, true)
plain("ELU", "elu", "alpha=1", nil, true)
plain("CELU", "celu", "alpha=1", nil, true)
plain("Softshrink", "softshrink", "lambd=0.5")
plain("Hardshrink", "hardshrink", "lambd=0.5")
plain("Hardtanh", "hardtanh", "min_val=-1, max_val=1", nil, true)
plain("Threshold", "threshold", "threshold, value", nil, true)
plain("Softplus", "softplus", "", "beta=1, threshold=20")
plain("GLU", "glu", "dim=-1")
-- The default dim, as in PyTorch: 1 for tensors of 0, 1 or 3 dims, else 2.
local function some_dim(fn) return function(x, dim) return fn(x, dim or (M.dim(x) == 3 or M.dim(x) < 2) and 1 or 2) end end
-- Softmax(dim=): nn.functional.softmax; without dim: 1 of 1 or 3 dims, else 2.
plain("Softmax", some_dim(ops.softmax), "dim=nil")
-- LogSoftmax(dim=): nn.functional.log_softmax; dim as Softmax's.
plain("LogSoftmax", some_dim(ops.log_softmax), "dim=nil")
-- Softmin(dim=): softmax of -x; dim as Softmax's.
plain("Softmin", some_dim(function(x, dim) return F.softmin(x, dim) end), "dim=nil")
-- Softmax2d(): softmax over the channels of (N, C, H, W) or (C, H, W).
plain("Softmax2d", function(x) return ops.softmax(x, -3) end, "")

local PReLU = layer("PReLU")
-- PReLU(num_parameters=1, init=0.25): max(0, x) + weight * min(0, x), with a learned weight: one, or one for each channel (dim 2).
function PReLU:init(...)
  local o = lib.arguments("PReLU", "num_parameters=1, init=0.25", ...)
  self.weight = module.Parameter(ops.full({whole("PReLU", "num_parameters", o.num_parameters)}, lib.number("PReLU", "init", o.init)))
end
function PReLU:forward(x) return F.prelu(x, self.weight) end
function PReLU:extra_repr() return "num_parameters=" .. M.numel(self.weight) end
local RReLU = layer("RReLU")
-- RReLU(lower=1/8, upper=1/3): leaky_relu; in training with a slope drawn for each element, in evaluation with the mean of lower and upper.
function RReLU:init(...)
  local o = lib.arguments("RReLU", "lower=0.125, upper=nil, inplace=false", ...)
  self.lower, self.upper = lib.number("RReLU", "lower", o.lower), lib.number("RReLU", "upper", o.upper or 1 / 3)
end
function RReLU:extra_repr() return ("lower=%g, upper=%g"):format(self.lower, self.upper) end
function RReLU:forward(x) return F.rrelu(x, self.lower, self.upper, {training = self.training}) end

---- shapes ----
plain("Flatten", "flatten", "start_dim=2, end_dim=-1")
plain("Unflatten", "unflatten", "dim, unflattened_size")
plain("PixelShuffle", "pixel_shuffle", "upscale_factor")
plain("PixelUnshuffle", "pixel_unshuffle", "downscale_factor")
plain("ChannelShuffle", "channel_shuffle", "groups")
plain("UpsamplingNearest2d", "interpolate", "", "size=nil, scale_factor=nil")
-- UpsamplingBilinear2d(size=, scale_factor=): nn.functional.interpolate with mode="bilinear", align_corners=true.
plain("UpsamplingBilinear2d",
  function(x, ...)
    local o = select(-1, ...)
    if select("#", ...) > 1 then fail("UpsamplingBilinear2d: takes one tensor, got %d arguments", select("#", ...)) end
    return F.interpolate(x, {size = o.size, scale_factor = o.scale_factor, mode = "bilinear", align_corners = true})
  end,
  "", "size=nil, scale_factor=nil")
plain("Upsample", "interpolate", "", "size=nil, scale_factor=nil, mode=nearest, align_corners=nil, recompute_scale_factor=nil")
plain("Unfold", "im2col", "kernel_size", "dilation=1, padding=0, stride=1")
plain("Fold", "fold", "output_size, kernel_size", "dilation=1, padding=0, stride=1")
local function on_all_sides(p, dims)
  if type(p) ~= "number" then return p end
  local out = {}
  for i = 1, 2 * dims do out[i] = p end
  return out
end
for _, row in ipairs {{"ZeroPad", "constant"}, {"ReflectionPad", "reflect"}, {"ReplicationPad", "replicate"},
    {"CircularPad", "circular"}} do
  for dims = 1, 3 do
    -- Adds elements at the edges: zeros, mirrored, repeating the last one, or from the opposite side. padding: a number, or a list {left,
    -- right, top, bottom, ...} beginning with the last dim.
    plain(row[1] .. dims .. "d", function(x, p) return F.pad(x, on_all_sides(p, dims), {mode = row[2]}) end, "padding")
  end
end
for dims = 1, 3 do
  -- Adds elements of this value at the edges; padding as ZeroPad1d's.
  plain(("ConstantPad%dd"):format(dims),
    function(x, p, value) return F.pad(x, on_all_sides(p, dims), {value = value}) end, "padding, value")
end

---- pooling ----
local WINDOW = "kernel_size, stride=nil, padding=0"
for dims = 1, 3 do
  local name = ("MaxUnpool%dd"):format(dims)
  local MaxUnpool = layer(name)
  -- The inverse of max pooling, with zeros between: unpool(x, indices, output_size=), with the indices that max pooling gave.
  function MaxUnpool:init(...)
    local o = lib.arguments(name, WINDOW, ...)
    self.kernel_size, self.stride, self.padding = o.kernel_size, o.stride, o.padding
  end
  function MaxUnpool:extra_repr()
    local stride = self.stride == nil and self.kernel_size or self.stride
    return ("kernel_size=%s, stride=%s, padding=%s"):format(lib.text(self.kernel_size), lib.text(stride), lib.text(self.padding))
  end
  function MaxUnpool:forward(x, indices, size)
    if type(size) == "table" and size.output_size then size = size.output_size end
    return F[("max_unpool%dd"):format(dims)](x, indices, self.kernel_size, self.stride, self.padding, size)
  end
  plain(("MaxPool%dd"):format(dims), "max_pool" .. dims .. "d", WINDOW, "dilation=1, return_indices=false, ceil_mode=false")
  plain(("AvgPool%dd"):format(dims), "avg_pool" .. dims .. "d", WINDOW,
    "ceil_mode=false, count_include_pad=true" .. (dims > 1 and ", divisor_override=nil" or ""))
  plain(("AdaptiveAvgPool%dd"):format(dims), "adaptive_avg_pool" .. dims .. "d", "output_size")
  plain(("AdaptiveMaxPool%dd"):format(dims), "adaptive_max_pool" .. dims .. "d", "output_size", "return_indices=false")
  plain(("LPPool%dd"):format(dims), ("lp_pool%dd"):format(dims), "norm_type, kernel_size, stride=nil", "ceil_mode=false")
end
plain("LocalResponseNorm", "local_response_norm", "size", "alpha=1e-4, beta=0.75, k=1")

---- distances ----
plain("CosineSimilarity", "cosine_similarity", "dim=2, eps=1e-8")
plain("PairwiseDistance", "pairwise_distance", "p=2, eps=1e-6, keepdim=false")

local Bilinear = layer("Bilinear")
-- Bilinear(in1_features, in2_features, out_features, bias=true): layer(a, b): a^T W_k b + bias_k for each k of out_features.
function Bilinear:init(...)
  local o = lib.arguments("Bilinear", "in1_features, in2_features, out_features, bias=true", ...)
  local n1, n_out = whole("Bilinear", "in1_features", o.in1_features), whole("Bilinear", "out_features", o.out_features)
  local bound = 1 / math.sqrt(n1)
  self.weight = module.Parameter(init.uniform_(ops.empty(n_out, n1, whole("Bilinear", "in2_features", o.in2_features)), -bound, bound))
  if o.bias then self.bias = module.Parameter(init.uniform_(ops.empty(n_out), -bound, bound)) end
end
function Bilinear:forward(a, b) return F.bilinear(a, b, self.weight, self.bias) end
function Bilinear:extra_repr()
  local size = self.weight.shape
  return ("in1_features=%d, in2_features=%d, out_features=%d, bias=%s"):format(size[2], size[3], size[1], tostring(self.bias ~= nil))
end

local EmbeddingBag = layer("EmbeddingBag")
-- EmbeddingBag(num_embeddings, embedding_dim, max_norm=, norm_type=2, {mode="mean", include_last_offset=false, padding_idx=}): the mean (or
-- "sum" or "max") of the rows for each bag of ids, which count from 1. Gradients are dense, also with sparse=true.
function EmbeddingBag:init(...)
  local o = lib.arguments("EmbeddingBag", "num_embeddings, embedding_dim, max_norm=nil, norm_type=2, \z
    scale_grad_by_freq=false, mode=mean, sparse=false, _weight=nil, include_last_offset=false, padding_idx=nil", ...)
  self.scale_grad_by_freq = o.scale_grad_by_freq
  self.max_norm, self.norm_type = o.max_norm and lib.number("EmbeddingBag", "max_norm", o.max_norm) or nil, o.norm_type
  self.mode, self.include_last_offset = o.mode, o.include_last_offset
  self.padding_idx = lib.padding_row("EmbeddingBag", o.padding_idx, o.num_embeddings)
  self.weight = module.Parameter(o._weight or
    init.normal_(ops.empty(whole("EmbeddingBag", "num_embeddings", o.num_embeddings),
    whole("EmbeddingBag", "embedding_dim", o.embedding_dim))))
  if self.padding_idx and not o._weight then init.zeros_(ops.select(self.weight:detach(), 1, self.padding_idx)) end
end
function EmbeddingBag:extra_repr()
  return ("%d, %d, mode=%s%s"):format(self.weight.shape[1], self.weight.shape[2], self.mode,
    self.padding_idx and ", padding_idx=" .. self.padding_idx or "")
end
-- EmbeddingBag.from_pretrained(weight, freeze=true, {options}): over the memory of weight (num_embeddings, embedding_dim).
function EmbeddingBag.from_pretrained(weight, ...)
  local o = lib.arguments("EmbeddingBag.from_pretrained", "freeze=true, max_norm=nil, norm_type=2, scale_grad_by_freq=false, mode=mean, " ..
    "sparse=false, include_last_offset=false, padding_idx=nil", ...)
  if not core.is_tensor(weight) or M.dim(weight) ~= 2 then
    fail("EmbeddingBag.from_pretrained: argument 1 must be a tensor of 2 dims, got %s",
      core.is_tensor(weight) and "shape " .. tostring(weight.shape) or type(weight))
  end
  local e = EmbeddingBag(weight.shape[1], weight.shape[2],
    {max_norm = o.max_norm, norm_type = o.norm_type, scale_grad_by_freq = o.scale_grad_by_freq, mode = o.mode,
      include_last_offset = o.include_last_offset, padding_idx = o.padding_idx, _weight = weight:detach()})
  e.weight:requires_grad_(not o.freeze)
  return e
end
-- forward(ids, offsets=, per_sample_weights=): each row of a matrix of ids is a bag; in a vector the bags begin at offsets, which count
-- from 1.
function EmbeddingBag:forward(ids, ...)
  local given = {...}
  local o = given[#given]
  if type(o) == "table" and not core.is_tensor(o) then
    require("tycho.options").check("EmbeddingBag", o, {offsets = true, per_sample_weights = true})
    given[#given] = nil
  else o = {} end
  local offsets, per_sample_weights = given[1] or o.offsets, given[2] or o.per_sample_weights
  return F.embedding_bag(ids, self.weight, offsets,
    {mode = self.mode, per_sample_weights = per_sample_weights, include_last_offset = self.include_last_offset,
      padding_idx = self.padding_idx, max_norm = self.max_norm, norm_type = self.norm_type,
      scale_grad_by_freq = self.scale_grad_by_freq})
end
