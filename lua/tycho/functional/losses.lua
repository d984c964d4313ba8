-- Losses: inputs first, then labels or targets.
--
-- Idea: each is an expression of the elements' losses, and `reduced` ends all of them. Where 16 bits would overflow, a function asks for
-- float32 under autocast. Invariant: labels count from 1; a label out of range is an error that names it.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local ctc = require "tycho.functional.ctc"
local def, fail, LOSS = lib.def, lib.fail, lib.LOSS
local options = require "tycho.options"
local callable, shown, warn = require("tycho.modes").callable, options.shown, options.warn

---- losses ----
local function reduced(loss, reduction)
  if reduction == "mean" then return ops.mean(loss) end
  if reduction == "sum" then return ops.sum(loss) end
  return loss
end
local REDUCTION = "reduction:enum(none,mean,sum)=mean"
-- The loss of x compared with y. Shapes (N, 1) and (N) broadcast to N x N differences, which is rarely intended: warns once.
-- weight: of each term; the mean is then divided by the weights' sum, as in PyTorch, or (plain) by the number of terms.
local function compared(name, x, y, loss, reduction, weight, plain)
  if weight then
    if weight.shape ~= loss.shape and M.numel(weight) ~= 1 then
      local ok, wide = pcall(ops.expand, weight, loss.shape)
      if not ok then fail(name, "weight has shape %s; it must broadcast to the shape of the single losses, %s",
        tostring(weight.shape), tostring(loss.shape)) end
      weight = wide
    end
    loss = loss * weight
    if reduction == "mean" and not plain then return ops.sum(loss) / ops.sum(ops.expand(weight, loss.shape)) end
  end
  if x.shape ~= y.shape then
    warn(name, "shapes %s and %s differ and are broadcast; is that intended?", tostring(x.shape), tostring(y.shape))
  end
  return reduced(loss, reduction)
end
def("mse_loss",
  "x, y, *, weight:tensor?, " .. REDUCTION,
  "squared differences, times weight; with weights the mean is a weighted one",
  function(x, y, weight, reduction) return compared("mse_loss", x, y, ops.square(x - y), reduction, weight) end, LOSS)
def("l1_loss",
  "x, y, *, weight:tensor?, " .. REDUCTION,
  "absolute differences, times weight; with weights the mean is a weighted one",
  function(x, y, weight, reduction) return compared("l1_loss", x, y, ops.abs(x - y), reduction, weight) end, LOSS)
def("smooth_l1_loss",
  "x, y, *, beta:number=1, " .. REDUCTION,
  "squared differences below beta, absolute ones above",
  function(x, y, beta, reduction)
    if beta < 0 then fail("smooth_l1_loss", "beta must not be negative, got %g", beta) end
    return compared("smooth_l1_loss", x, y, ops.smooth_l1_terms(x, y, beta), reduction)
  end, LOSS)
def("huber_loss",
  "x, y, *, delta:number=1, weight:tensor?, " .. REDUCTION,
  "half the squared differences below delta, delta times absolute ones above, times weight",
  function(x, y, delta, weight, reduction)
    if delta <= 0 then fail("huber_loss", "delta must be above 0, got %g", delta) end
    if delta == math.huge then return compared("huber_loss", x, y, ops.square(x - y) * 0.5, reduction, weight, true) end
    local loss = ops.smooth_l1_terms(x, y, delta)
    return compared("huber_loss", x, y, delta == 1 and loss or loss * delta, reduction, weight, true)
  end, LOSS)
local KL = "reduction:enum(none,mean,sum,batchmean)=mean"
def("kl_div",
  "x, target, *, log_target:bool=false, " .. KL,
  "target * (log(target) - x); x is a logarithm, target too where log_target is true",
  function(x, target, log_target, reduction)
    local loss = log_target and ops.exp(target) * (target - x) or ops.xlogy(target, target) - target * x
    if reduction == "batchmean" then return ops.sum(loss) / (M.dim(x) > 0 and x.shape[1] or 1) end
    return reduced(loss, reduction)
  end, LOSS)
local function same_shape(name, x, y)
  if x.shape ~= y.shape then fail(name, "argument 2 has shape %s; it must be %s as argument 1's", tostring(y.shape), tostring(x.shape)) end
end
def("binary_cross_entropy",
  "x, y, weight:tensor?, *, " .. REDUCTION,
  "cross-entropy of probabilities x with y in 0..1; logarithms are kept above -100",
  function(x, y, weight, reduction)
    same_shape("binary_cross_entropy", x, y)
    if not M.is_floating_point(x) then fail("binary_cross_entropy", "argument 1 (x) must be floating, got %s", x.dtype) end
    local function check(name, v, hint)
      local low, high = ops.amin(v):item(), ops.amax(v):item()
      if not (low >= 0 and high <= 1) then
        fail("binary_cross_entropy", "argument %s must lie in 0..1, its elements are from %g to %g%s", name, low, high, hint)
      end
    end
    if lib.looks(x) and M.numel(x) > 0 then
      check("1 (x)", x, "; of scores it is binary_cross_entropy_with_logits")
      if y.dtype ~= "bool" then check("2 (y)", y, "") end
    end
    local loss = ops.bce_terms(x, y)
    return reduced(weight and loss * weight or loss, reduction)
  end, LOSS)
def("binary_cross_entropy_with_logits",
  "x, y, weight:tensor?, *, pos_weight:tensor?, " .. REDUCTION,
  "cross-entropy of sigmoid(x) with y in 0..1",
  function(x, y, weight, pos_weight, reduction)
    same_shape("binary_cross_entropy_with_logits", x, y)
    local loss = pos_weight and (1 - y) * x + ops.softplus(-x, {threshold = 40}) * (y * (pos_weight - 1) + 1)
      or ops.bce_logits_terms(x, y)
    if weight then loss = loss * weight end
    return reduced(loss, reduction)
  end, LOSS)
-- target must have x's shape without the dim of classes, dim 2 of (N, C, ...) or the only one of (C).
local function check_labels(name, x, target)
  local n = M.dim(x)
  if n == 0 then fail(name, "argument 1 must have dims (N, C, ...), got a 0-dim tensor") end
  local want = x.shape
  table.remove(want, n > 1 and 2 or 1)
  if target.shape ~= want then
    fail(name, "argument 2 has shape %s; it must be %s to match argument 1 of shape %s", tostring(target.shape),
      tostring(want), tostring(x.shape))
  end
end
-- Reshapes (N, C, ...) to rows of classes; the last result is the shape for the rows' losses.
local function class_rows(name, x, target)
  local n = M.dim(x)
  check_labels(name, x, target)
  if n == 1 then return M.unsqueeze(x, 1), M.view(target, 1), {} end
  if n == 2 then return x, target, target.shape end
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
local soft_cross_entropy = lib.in_float32(function(x, target, weight, smoothing, reduction)
  if target.shape ~= x.shape and M.dim(target) < M.dim(x) then
    fail("cross_entropy", "argument 2 (target) has dtype %s and shape %s: class labels must be int64 (target:long())",
      target.dtype, tostring(target.shape))
  end
  if target.shape ~= x.shape then
    fail("cross_entropy", "class probabilities have shape %s; they must have argument 1's shape %s", tostring(target.shape),
      tostring(x.shape))
  end
  if M.dim(x) == 0 then fail("cross_entropy", "argument 1 must have a dim of classes, got shape ()") end
  local dim = M.dim(x) == 1 and 1 or 2
  if smoothing > 0 then target = target * (1 - smoothing) + smoothing / x.shape[dim] end
  local logp = ops.log_softmax(x, dim)
  if weight then
    local shape = {}
    for i = 1, M.dim(x) do shape[i] = i == dim and x.shape[i] or 1 end
    logp = logp * M.view(weight, shape)
  end
  return reduced(-ops.sum(target * logp, dim), reduction)
end)
local both_in_float32 = lib.in_float32(function(x, weight) return x, weight end)
def("cross_entropy", "x, target, weight:tensor?, *, ignore_index:int=-100, label_smoothing:number=0, " .. REDUCTION,
  "cross-entropy of softmax(x) along dim 2 with labels from 1 (int64), or with class probabilities in x's shape",
  function(x, target, weight, ignore_index, smoothing, reduction)
    if M.is_floating_point(target) then return soft_cross_entropy(x, target, weight, smoothing, reduction) end
    -- 16-bit scores stay as they are, also under autocast: the ops compute in float32 and give float32 losses
    if weight and weight.dtype ~= x.dtype then x, weight = both_in_float32(x, weight) end
    if target.dtype ~= "int64" then
      fail("cross_entropy", "argument 2 (target) has dtype %s: class labels must be int64 (target:long())", target.dtype)
    end
    check_labels("cross_entropy", x, target)
    local scores, labels = x, target
    if M.dim(x) == 1 then scores, labels = M.unsqueeze(x, 1), M.view(target, 1) end
    local how = {ignore_index = ignore_index, label_smoothing = smoothing}
    if reduction == "mean" then return (ops.cross_entropy_mean(scores, labels, weight, how)) end
    local loss = ops.cross_entropy_rows(scores, labels, weight, how)
    if reduction == "sum" then return ops.sum(loss) end
    return M.dim(x) == 1 and M.squeeze(loss, 1) or loss
  end, lib.NN)
def("nll_loss",
  "x, target, weight:tensor?, *, ignore_index:int=-100, " .. REDUCTION,
  "minus the log-probability in x of each label",
  function(x, target, weight, ignore_index, reduction)
    if M.is_floating_point(target) then
      fail("nll_loss", "argument 2 (target) has dtype %s: class labels must be int64 (target:long())", target.dtype)
    end
    local rows, labels, shape = class_rows("nll_loss", x, target)
    if weight and (M.dim(weight) ~= 1 or #weight ~= rows.shape[2]) then
      fail("nll_loss", "argument 3 (weight) has shape %s; it must be a vector of %d, one for each class", tostring(weight.shape),
        rows.shape[2])
    end
    local valid = ops.ne(labels, ignore_index)
    local picked = ops.where(valid, labels, 1)
    local ok, values = pcall(ops.gather, rows, 2, M.unsqueeze(picked, 2))
    if not ok then
      local label = options.bare(values):match "index (%-?%d+) in argument"
      if not label then error(values, 0) end
      fail("nll_loss", "label %s is not one of %d classes, 1 to %d", label, rows.shape[2], rows.shape[2])
    end
    local loss = ops.where(valid, -M.squeeze(values, 2), 0)
    if weight then loss = loss * ops.index(weight, {picked}, 1) end
    if reduction == "mean" then return weighted_mean(loss, labels, weight, ignore_index) end
    if reduction == "sum" then return ops.sum(loss) end
    return M.view(loss, shape)
  end, LOSS)

-- Lengths as a list and as a column.
local function lengths_of(name, given, n, most, like)
  local list = core.is_tensor(given) and lib.list_of(given) or type(given) == "number" and {given} or given
  if type(list) ~= "table" or #list ~= n then fail("ctc_loss", "%s must be %d whole numbers, one for each sequence", name, n) end
  for i, v in ipairs(list) do
    if type(v) ~= "number" or v % 1 ~= 0 or v < 0 or (most and v > most) then
      fail("ctc_loss", "%s: number %d is %s; it must be whole, from 0%s", name, i, tostring(v),
        most and (" to %d"):format(most) or "")
    end
  end
  return list, M.unsqueeze(core.from_value(list, "int64"):to(like.device), 2)
end
def("ctc_loss",
  "log_probs, targets, input_lengths:any, target_lengths:any, blank:int=1, reduction:enum(none,mean,sum)=mean, \z
    zero_infinity:bool=false",
  "minus the log-probability that log_probs (T,N,C) spell the targets (N,S), or one after the other (sum of lengths), \z
    with repeats and blanks between them; labels and blank count from 1",
  function(x, targets, inputs, lengths, blank, reduction, zero_infinity)
    if x.dtype == "float16" or x.dtype == "bfloat16" then x = M.float(x) end
    if M.dim(x) == 2 then
      x, targets = M.unsqueeze(x, 2), M.dim(targets) == 1 and M.unsqueeze(targets, 1) or targets
      local loss = lib.functions.ctc_loss(x, targets, inputs, lengths, blank, {reduction = reduction, zero_infinity = zero_infinity})
      return reduction == "none" and M.squeeze(loss, 1) or loss
    end
    if M.dim(x) ~= 3 then fail("ctc_loss", "argument 1 must have dims (T, N, C), got shape %s", tostring(x.shape)) end
    local steps, n, classes = x.shape[1], x.shape[2], x.shape[3]
    if blank < 1 or blank > classes then fail("ctc_loss", "blank must be from 1 to %d, got %d", classes, blank) end
    local _, until_step = lengths_of("input_lengths", inputs, n, steps, x)
    local list, many = lengths_of("target_lengths", lengths, n, M.dim(targets) == 2 and targets.shape[2] or nil, x)
    local most, sum = 0, 0
    for _, v in ipairs(list) do most, sum = math.max(most, v), sum + v end
    targets = M.long(targets)
    local labels
    if M.dim(targets) == 2 and targets.shape[1] == n then labels = ops.slice(targets, 2, 1, most)
    elseif M.dim(targets) == 1 and M.numel(targets) == sum then
      local rows, at = {}, 0
      for i, v in ipairs(list) do
        rows[i] = M.unsqueeze(ops.pad_constant(ops.slice(targets, 1, at + 1, at + v), {0, most - v}, {value = blank}), 1)
        at = at + v
      end
      labels = ops.cat(rows, 1)
    else
      fail("ctc_loss", "targets have shape %s; they must be (%d, S), or %d labels one after the other",
        tostring(targets.shape), n, sum)
    end
    local o = {dtype = "int64", device = x.device}
    local width = 2 * most + 1
    if most > 0 then labels = ops.where(ops.le(M.unsqueeze(ops.range(1, most, 1, o), 1), many), labels, blank) end
    if most > 0 and lib.looks(labels) then
      for i, row in ipairs(M.totable(labels)) do
        for k = 1, list[i] do
          local label = row[k]
          if label < 1 or label > classes then
            fail("ctc_loss", "argument 2 (targets) has label %d: labels are from 1 to %d", label, classes)
          end
          if label == blank then fail("ctc_loss", "argument 2 (targets) has label %d, which is the blank", blank) end
        end
      end
    end
    -- blank, label, blank, label ... blank
    local path = ops.full({n, 1}, blank, o)
    if most > 0 then path = ops.cat({path, M.reshape(ops.stack({labels, ops.full({n, most}, blank, o)}, 3), n, 2 * most)}, 2) end
    local logs = ops.gather(x, 3, ops.expand(M.unsqueeze(path, 1), steps, n, width))
    local skips = ops.zeros({n, math.min(2, width)}, {dtype = "bool", device = x.device})
    if most > 0 then
      skips = ops.cat({skips, ops.logical_and(ops.ne(ops.slice(path, 2, 3, width), blank),
        ops.ne(ops.slice(path, 2, 3, width), ops.slice(path, 2, 1, width - 2)))}, 2)
    end
    local alpha = ops.ctc_paths(logs, skips, M.squeeze(until_step, 2))
    local last = M.squeeze(ops.gather(alpha, 2, many * 2 + 1), 2)
    if most > 0 then
      local before = M.squeeze(ops.gather(alpha, 2, ops.clamp(many * 2, 1)), 2)
      last = ops.logaddexp(last, ops.where(ops.gt(M.squeeze(many, 2), 0), before, ctc.NEVER))
    end
    -- no steps: only an empty target is possible
    last = ops.where(ops.eq(M.squeeze(until_step, 2), 0), M.to(ops.gt(M.squeeze(many, 2), 0), last.dtype) * ctc.NEVER, last)
    local loss = -last
    loss = ops.where(ops.gt(loss, -ctc.NEVER / 10), zero_infinity and 0 or math.huge, loss)
    if reduction == "mean" then return ops.mean(loss / M.to(ops.clamp(M.squeeze(many, 2), 1), loss.dtype)) end
    return reduced(loss, reduction)
  end, LOSS)

---- losses of other targets ----
def("poisson_nll_loss",
  "x, target, log_input:bool=true, full:bool=false, *, eps:number=1e-8, " .. REDUCTION,
  "negative log-likelihood of counts under a Poisson of rate exp(x), or x",
  function(x, target, log_input, full, eps, reduction)
    local loss = log_input and ops.exp(x) - target * x or x - target * ops.log(x + eps)
    if full then       -- Stirling's formula for log(target!)
      local t = ops.clamp(target, 1)
      loss = loss + ops.where(ops.gt(target, 1), t * ops.log(t) - t + ops.log(t * (2 * math.pi)) * 0.5, 0)
    end
    return reduced(loss, reduction)
  end, LOSS)
def("gaussian_nll_loss",
  "x, target, var:operand, full:bool=false, eps:number=1e-6, " .. REDUCTION,
  "negative log-likelihood under a normal of mean x and variance var",
  function(x, target, var, full, eps, reduction)
    if eps ~= eps or eps < 0 then fail("gaussian_nll_loss", "eps must not be negative, got %g", eps) end
    if type(var) == "boolean" then var = var and 1 or 0 end
    if type(var) == "number" then var = ops.full({}, var, {dtype = x.dtype, device = x.device}) end
    if lib.looks(var) and ops.any(ops.lt(var, 0)):item() then fail("gaussian_nll_loss", "argument 3 (var) has elements below 0") end
    if M.dim(var) == M.dim(x) - 1 then var = M.unsqueeze(var, -1) end
    var = var + M.detach(ops.clamp(var, eps) - var)           -- limited, without effect on the gradient
    local loss = (ops.log(var) + ops.square(x - target) / var) * 0.5
    return reduced(full and loss + 0.5 * math.log(2 * math.pi) or loss, reduction)
  end, LOSS)
def("hinge_embedding_loss",
  "x, target, margin:number=1, *, " .. REDUCTION,
  "x where target is 1, margin - x (not below 0) where it is -1",
  function(x, target, margin, reduction)
    return reduced(ops.where(ops.ne(target, 1), ops.relu(margin - x), 0) + ops.where(ops.ne(target, -1), x, 0), reduction)
  end, LOSS)
def("margin_ranking_loss",
  "a, b, target, margin:number=0, *, " .. REDUCTION,
  "how much target * (a - b) falls short of margin",
  function(a, b, target, margin, reduction)
    return reduced(ops.clamp(-target * (a - b) + margin, 0), reduction)
  end, LOSS)
def("soft_margin_loss", "x, target, *, " .. REDUCTION, "log(1 + exp(-target * x))", function(x, target, reduction)
  return reduced(ops.softplus(-target * x), reduction)
end, LOSS)
def("cosine_embedding_loss",
  "a, b, target, margin:number=0, *, " .. REDUCTION,
  "1 - cos where target is 1, cos - margin (not below 0) where it is -1",
  function(a, b, target, margin, reduction)
    local eps = 1e-12
    local c = ops.sum(a * b, -1) / ops.sqrt((ops.sum(ops.square(a), -1) + eps) * (ops.sum(ops.square(b), -1) + eps))
    return reduced(ops.where(ops.eq(target, 1), 1 - c, 0) + ops.where(ops.eq(target, -1), ops.clamp(c - margin, 0), 0), reduction)
  end, LOSS)
def("triplet_margin_loss",
  "anchor, near, far, margin:number=1, p:number=2, eps:number=1e-6, swap:bool=false, *, " .. REDUCTION,
  "how much the distance to near plus margin exceeds that to far",
  function(anchor, near, far, margin, p, eps, swap, reduction)
    local d, e = M.pairwise_distance(anchor, near, p, eps), M.pairwise_distance(anchor, far, p, eps)
    if swap then e = ops.minimum(e, M.pairwise_distance(near, far, p, eps)) end
    return reduced(ops.clamp(d - e + margin, 0), reduction)
  end, LOSS)
def("multi_margin_loss",
  "x, target, p:number=1, margin:number=1, weight:tensor?, *, " .. REDUCTION,
  "how much the other classes come within margin of the label's",
  function(x, target, p, margin, weight, reduction)
    if p ~= 1 and p ~= 2 then fail("multi_margin_loss", "argument 3 (p) must be 1 or 2, got %g", p) end
    if M.dim(x) == 0 then x = M.view(x, 1) end
    if M.dim(x) == 1 and M.numel(target) == 1 then target = M.view(target, {}) end
    local rows, labels = class_rows("multi_margin_loss", x, target)
    local label = M.unsqueeze(labels, 2)
    local m = ops.relu(rows - ops.gather(rows, 2, label) + margin)        -- slope 0 at the margin
    if p ~= 1 then m = ops.pow(m, p) end
    if weight then m = m * ops.gather(ops.expand(weight, rows.shape), 2, label) end
    local loss = ops.sum(ops.scatter(m, 2, label, 0), 2) / rows.shape[2]
    return reduced(M.dim(x) == 1 and M.squeeze(loss, 1) or loss, reduction)
  end, LOSS)
def("multilabel_soft_margin_loss",
  "x, target, weight:tensor?, *, " .. REDUCTION,
  "binary cross-entropy with logits, mean over classes",
  function(x, target, weight, reduction)
    local loss = -(target * ops.logsigmoid(x) + (1 - target) * ops.logsigmoid(-x))
    return reduced(ops.mean(weight and loss * weight or loss, -1), reduction)
  end, LOSS)
def("multilabel_margin_loss",
  "x, target, *, " .. REDUCTION,
  "how much classes that aren't labels come within 1 of those that are; target has x's shape: labels, then 0",
  function(x, target, reduction)
    if M.dim(x) == 0 and M.dim(target) == 0 then x, target = M.view(x, 1), M.view(target, 1) end
    if target.shape ~= x.shape or M.dim(x) < 1 or M.dim(x) > 2 then
      fail("multilabel_margin_loss", "argument 2 has shape %s; it must be %s as argument 1's, of 1 or 2 dims",
        tostring(target.shape), tostring(x.shape))
    end
    local classes = x.shape[M.dim(x)]
    local rows, labels = M.reshape(x, -1, classes), M.reshape(lib.indices("multilabel_margin_loss", "2 (target)", target), -1, classes)
    if lib.looks(labels) and M.numel(labels) > 0 and ops.amax(labels):item() > classes then
      fail("multilabel_margin_loss", "argument 2 (target) has label %d, but argument 1 has %d classes", ops.amax(labels):item(), classes)
    end
    local valid = ops.cumprod(M.long(ops.gt(labels, 0)), 2)                       -- up to the first 0
    local wide = ops.zeros({rows.shape[1], rows.shape[2] + 1}, {dtype = x.dtype, device = x.device})
    local is_label = ops.slice(ops.scatter(wide, 2, labels * valid + 1, 1), 2, 2)   -- column 1 takes those that aren't valid
    local own = ops.gather(rows, 2, ops.clamp(labels * valid, 1))
    local m = ops.relu(1 - M.unsqueeze(own, 3) + M.unsqueeze(rows, 2)) * M.unsqueeze(valid, 3) * M.unsqueeze(1 - is_label, 2)
    local loss = ops.sum(m, {2, 3}) / rows.shape[2]
    return reduced(M.dim(x) == 1 and M.squeeze(loss, 1) or loss, reduction)
  end, LOSS)
def("triplet_margin_with_distance_loss",
  "anchor, near, far, *, distance_function:any?, margin:number=1, swap:bool=false, " .. REDUCTION,
  "triplet_margin_loss with a distance of one's own, a function of two tensors",
  function(anchor, near, far, distance, margin, swap, reduction)
    local measure = distance or M.pairwise_distance
    if not callable(measure) then
      fail("triplet_margin_with_distance_loss", "distance_function must be a function, got %s", shown(distance))
    end
    local function between(a, b)
      local d = measure(a, b)
      if not core.is_tensor(d) then
        fail("triplet_margin_with_distance_loss", "distance_function must return a tensor, got %s", shown(d))
      end
      return d
    end
    local d, e = between(anchor, near), between(anchor, far)
    if swap then e = ops.minimum(e, between(near, far)) end
    return reduced(ops.relu(d - e + margin), reduction)
  end, {nn = true, float32 = true, scope = false})
