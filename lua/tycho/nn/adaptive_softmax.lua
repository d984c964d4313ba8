-- AdaptiveLogSoftmaxWithLoss: a softmax over many classes of which few are frequent (Grave et al. 2017).
--
-- Idea: the head has the most frequent classes, and one stand-in for each cluster of the others; a cluster's classes have a smaller layer
-- of their own, which is computed only for the rows that need it. Invariant: classes are in order of frequency, and count from 1.
local core = require "tycho.core"
local lib = require "tycho.nn.layer"
local F = require "tycho.nn.functional"
local options = require "tycho.options"
local fail = options.fail
local ops, M = core.ops, core.methods
local nn = lib.classes

local Adaptive = lib.layer "AdaptiveLogSoftmaxWithLoss"
-- AdaptiveLogSoftmaxWithLoss(in_features, n_classes, cutoffs, div_value=4, head_bias=false): cutoffs, a growing list, has the last class of
-- the head and of each cluster except the last; each cluster's layer has div_value times fewer features than the one before. net(x (N,
-- in_features) or (in_features), target (N) or a 0-dim tensor) gives the target's log-probabilities, and minus their mean. It waits for the
-- GPU, since the targets decide which rows need a cluster.
function Adaptive:init(...)
  local o = lib.arguments("AdaptiveLogSoftmaxWithLoss", "in_features, n_classes, cutoffs, div_value=4, head_bias=false", ...)
  local who, n = "AdaptiveLogSoftmaxWithLoss", options.whole("AdaptiveLogSoftmaxWithLoss", "n_classes", o.n_classes, 2)
  if type(o.cutoffs) ~= "table" or #o.cutoffs == 0 then
    fail("%s: cutoffs must be a list of classes, got %s", who, options.shown(o.cutoffs))
  end
  self.cutoffs = {}
  for i, c in ipairs(o.cutoffs) do
    if type(c) ~= "number" or c % 1 ~= 0 or c <= (self.cutoffs[i - 1] or 0) or c >= n then
      fail("%s: cutoffs must be whole numbers from 1 to %d in ascending order; number %d is %s", who, n - 1, i, options.shown(c))
    end
    self.cutoffs[i] = c
  end
  self.cutoffs[#self.cutoffs + 1] = n
  self.in_features, self.n_classes, self.div_value = o.in_features, n, options.number(who, "div_value", o.div_value)
  self.head = nn.Linear(o.in_features, self.cutoffs[1] + #self.cutoffs - 1, {bias = o.head_bias})
  self.tail = nn.ModuleList {}
  for i = 1, #self.cutoffs - 1 do
    local between = math.floor(o.in_features / self.div_value ^ i)
    self.tail:append(nn.Sequential(nn.Linear(o.in_features, between, {bias = false}),
      nn.Linear(between, self.cutoffs[i + 1] - self.cutoffs[i], {bias = false})))
  end
end
local function need_rows(self, who, x)
  if not core.is_tensor(x) or M.dim(x) ~= 2 or x.shape[2] ~= self.in_features then
    fail("AdaptiveLogSoftmaxWithLoss: %s: argument 1 must have shape (N, %d), got %s", who, self.in_features,
      core.is_tensor(x) and tostring(x.shape) or options.shown(x))
  end
end
function Adaptive:forward(x, target)
  if core.is_tensor(x) and M.dim(x) == 1 then
    local output, loss = self:forward(M.unsqueeze(x, 1), M.view(target, 1))
    return M.squeeze(output, 1), loss
  end
  need_rows(self, "forward", x)
  if not core.is_tensor(target) or M.dim(target) ~= 1 or #target ~= #x then
    fail("AdaptiveLogSoftmaxWithLoss: forward: argument 2 (target) must have shape (%d), got %s", #x,
      core.is_tensor(target) and tostring(target.shape) or options.shown(target))
  end
  target = require("tycho.functional.lib").indices("AdaptiveLogSoftmaxWithLoss", "2 (target)", target)
  local least, most = 1, 1
  if #target > 0 then least, most = ops.amin(target):item(), ops.amax(target):item() end
  if least < 1 or most > self.n_classes then
    fail("AdaptiveLogSoftmaxWithLoss: forward: targets must be from 1 to %d, got %d to %d", self.n_classes, least, most)
  end
  local first = self.cutoffs[1]
  local at, output = ops.clamp(target, nil, first), nil            -- at: each row's column of the head
  for i = 1, #self.cutoffs - 1 do
    local low, high = self.cutoffs[i], self.cutoffs[i + 1]
    local mask = ops.logical_and(ops.gt(target, low), ops.le(target, high))
    local rows = M.flatten(ops.nonzero(mask))
    at = ops.masked_fill(at, mask, first + i)
    if #rows > 0 then
      local scores = F.log_softmax(self.tail[i](M.index_select(x, 1, rows)), 2)
      local own = M.squeeze(ops.gather(scores, 2, M.unsqueeze(M.index_select(target, 1, rows) - low, 2)), 2)
      output = M.index_add(output or ops.zeros({#x}, {dtype = own.dtype, device = own.device}), 1, rows, own)
    end
  end
  local head = M.squeeze(ops.gather(F.log_softmax(self.head(x), 2), 2, M.unsqueeze(at, 2)), 2)
  output = output and output + head or head
  return output, -ops.mean(output)
end
-- net:log_prob(x (N, in_features)): the log-probabilities of all classes, (N, n_classes).
function Adaptive:log_prob(x)
  need_rows(self, "log_prob", x)
  local head, first = F.log_softmax(self.head(x), 2), self.cutoffs[1]
  local parts = {ops.slice(head, 2, 1, first)}
  for i = 1, #self.cutoffs - 1 do
    parts[i + 1] = F.log_softmax(self.tail[i](x), 2) + ops.slice(head, 2, first + i, first + i)
  end
  return ops.cat(parts, 2)
end
-- net:predict(x (N, in_features)): the likeliest class of each row, int64 (N).
function Adaptive:predict(x) return M.argmax(self:log_prob(x), 2) end
