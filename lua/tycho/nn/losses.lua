-- Losses as layers.
--
-- Idea: a loss's options and their defaults are read from its function's signature.
local core = require "tycho.core"
local F = require "tycho.nn.functional"
local signature_of = require("tycho.functional").signature_of
local lib = require "tycho.nn.layer"
local options = require "tycho.options"
local layer, fail, shown = lib.layer, options.fail, options.shown

local function loss(name, fn, order)
  local Loss = layer(name)
  -- (options), or PyTorch's leading positional arguments, then options
  function Loss:init(...)
    local signature = signature_of(fn)
    local n, o = select("#", ...), nil
    while n > 0 and select(n, ...) == nil do n = n - 1 end
    if n > 0 and type((select(n, ...))) == "table" and not core.is_tensor((select(n, ...))) then
      o, n = select(n, ...), n - 1
    end
    local own, at = {}, 0
    for k in (order or ""):gmatch "%S+" do
      at = at + 1
      if at <= n then own[k] = select(at, ...) end
    end
    if n > at then
      fail("%s: takes %sa table of options, got %s", name, order and order:gsub(" ", ", ") .. " and " or "", shown((select(n, ...))))
    end
    local weight = own.weight
    if weight ~= nil and not core.is_tensor(weight) then fail("%s: weight must be a tensor, got %s", name, shown(weight)) end
    local known = {}
    for k in signature:gsub("%b()", ""):gmatch "([%w_]+):" do known[k] = true end
    options.check(name, o or {}, known)
    for k, v in pairs(o or {}) do
      if own[k] ~= nil then fail("%s: argument '%s' is given twice", name, k) end
      own[k] = v
    end
    local reductions, reduction = signature:match "reduction:enum(%b())", own.reduction
    if reduction ~= nil and not reductions:find("[(,]" .. tostring(reduction) .. "[,)]") then
      fail("%s: reduction must be one of %s, got %s", name, reductions:sub(2, -2), shown(reduction))
    end
    -- fields, which forward reads: loss.reduction, loss.ignore_index
    for k, kind, default in signature:gsub("%b()", ""):gmatch "([%w_]+):(%l+)=([^,%s]+)" do
      if own[k] == nil and kind == "bool" then own[k] = default == "true"
      elseif own[k] == nil then own[k] = kind == "enum" and default or tonumber(default) end
    end
    self._names = {}
    for k in pairs(known) do self._names[#self._names + 1] = k end
    for k, v in pairs(own) do
      if core.is_tensor(v) then self:register_buffer(k, v) else self[k] = v end
    end
  end
  function Loss:forward(...)
    local o, values, n = {}, {...}, select("#", ...)
    for _, k in ipairs(self._names) do o[k] = self[k] end
    values[n + 1] = o
    return F[fn](unpack(values, 1, n + 1))
  end
end
-- The third item: PyTorch's leading positional arguments.
for _, row in ipairs {{"CrossEntropyLoss", "cross_entropy", "weight"}, {"NLLLoss", "nll_loss", "weight"}, {"MSELoss", "mse_loss"},
  {"L1Loss", "l1_loss"}, {"SmoothL1Loss", "smooth_l1_loss"}, {"HuberLoss", "huber_loss", "reduction delta"}, {"KLDivLoss", "kl_div"},
  {"BCELoss", "binary_cross_entropy", "weight"}, {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "weight"},
  {"PoissonNLLLoss", "poisson_nll_loss", "log_input full"}, {"GaussianNLLLoss", "gaussian_nll_loss"},
  {"HingeEmbeddingLoss", "hinge_embedding_loss", "margin"}, {"MarginRankingLoss", "margin_ranking_loss", "margin"},
  {"SoftMarginLoss", "soft_margin_loss"}, {"CosineEmbeddingLoss", "cosine_embedding_loss", "margin"},
  {"TripletMarginLoss", "triplet_margin_loss", "margin p eps swap"}, {"MultiMarginLoss", "multi_margin_loss", "p margin weight"},
  {"MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", "weight"}, {"MultiLabelMarginLoss", "multilabel_margin_loss"},
  {"TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss"}, {"CTCLoss", "ctc_loss", "blank reduction zero_infinity"}} do
  lib.declare(row[1], loss, row[2], row[3])
end

local LinearCrossEntropyLoss = layer "LinearCrossEntropyLoss"
-- LinearCrossEntropyLoss(in_features, num_classes, bias=false, {weight=, reduction="mean", ignore_index=-100, label_smoothing=0,
-- chunk_size=}): a linear layer and the cross-entropy of its scores, which are never in memory as a whole: loss(x, target). See
-- nn.functional.linear_cross_entropy.
function LinearCrossEntropyLoss:init(...)
  local o = lib.arguments("LinearCrossEntropyLoss", "in_features, num_classes, bias=false, *, weight=nil, reduction=mean, \z
    ignore_index=-100, label_smoothing=0, chunk_size=nil", ...)
  self.linear = lib.classes.Linear(o.in_features, o.num_classes, {bias = o.bias})
  if o.weight then self:register_buffer("weight", o.weight) end
  self.options = {reduction = o.reduction, ignore_index = o.ignore_index, label_smoothing = o.label_smoothing, chunk_size = o.chunk_size}
end
function LinearCrossEntropyLoss:forward(x, target)
  local o = {linear_bias = self.linear.bias, weight = self.weight}
  for k, v in pairs(self.options) do o[k] = v end
  return F.linear_cross_entropy(x, self.linear.weight, target, o)
end
