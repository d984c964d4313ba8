-- Cross-entropy of a linear layer's scores, without storing the scores, the largest tensor of a language model's last layer.
--
-- Idea: it processes some rows at a time; each part's scores give its losses and immediately the gradients of the losses' sum, and are
-- dropped. Gradients are kept unscaled, so that 16-bit ones don't vanish; backward multiplies them by the incoming gradient. If one part is
-- enough, it is linear followed by cross_entropy. Several parts have no second derivative, and keep a function given to tycho.compile
-- uncompiled.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local given = require "tycho.options"
local def, fail = lib.def, lib.fail

local PART = 2^24          -- elements of scores at a time, by default
local LEAST = 256          -- rows; with fewer, products are slow

-- fn(...) in a scope: everything that it makes is released.
local function within(fn, ...)
  local scope = core.scope_begin()
  given.finally(function() core.scope_end(scope) end, fn, ...)
end

local sums                 -- the Function, made at first use since tycho.autograd requires this file
local function make_sums()
  return require("tycho.autograd").Function {
    _as_ops = true,
    -- The sum of the rows' losses, each times its label's weight. o: target, weight, chunk and the loss's options.
    forward = function(ctx, x, w, bias, o)
      local n, wide = x.shape[1], {dtype = o.wide, device = x.device}
      local function zeros(like) return ops.zeros(like.shape, wide) end
      local total = ops.zeros({}, wide)
      local need = o.recording and ctx.needs_input_grad or {}
      local dx, dw, db = need[1] and ops.empty(x.shape, {dtype = x.dtype, device = x.device}), need[2] and zeros(w), need[3] and zeros(bias)
      for first = 1, n, o.chunk do
        within(function()
          local rows = math.min(o.chunk, n - first + 1)
          local part, labels = M.narrow(x, 1, first, rows), M.narrow(o.target, 1, first, rows)
          local scores = ops.linear(part, w, bias)
          if o.weight then scores = M.to(scores, o.wide) end              -- in the dtype of the classes' weights
          local losses, lse = ops.cross_entropy_rows(scores, labels, o.weight, o.loss)
          M.add_(total, ops.sum(losses))
          if not (dx or dw or db) then return end
          local d = ops.cross_entropy_backward(ops.ones(losses.shape, wide), scores, labels, lse,
            o.weight, o.loss)
          d = M.to(d, w.dtype)
          if dx then M.copy_(M.narrow(dx, 1, first, rows), ops.matmul(d, w)) end
          if dw then M.add_(dw, ops.matmul(M.t(d), part)) end
          if db then M.add_(db, ops.sum(d, 1, {dtype = o.wide})) end
        end)
      end
      ctx:save_for_backward(dx or nil, dw or nil, db or nil)
      ctx.dtypes = {x.dtype, w.dtype, bias and bias.dtype}
      return total
    end,
    backward = function(ctx, g)
      if core.is_grad_enabled() then
        fail("linear_cross_entropy", "chunks have no second derivative: set chunk_size to the number of rows, for a single chunk")
      end
      local dx, dw, db = ctx:saved_tensors()
      local function scaled(d, dtype) return d and M.to(M.to(d, g.dtype) * g, dtype) end
      return scaled(dx, ctx.dtypes[1]), scaled(dw, ctx.dtypes[2]), scaled(db, ctx.dtypes[3])
    end}
end

def("linear_cross_entropy",
  "x, linear_weight, target, *, linear_bias:tensor?, weight:tensor?, reduction:enum(none,mean,sum)=mean, ignore_index:int=-100, \z
    label_smoothing:number=0, chunk_size:int?",
  "cross_entropy of linear(x, linear_weight, linear_bias), x (..., in_features), target (...) with labels from 1, or (..., classes) with \z
    probabilities, weight of classes; \z
    chunk_size rows at a time, so that the scores are never there together; such parts have no second derivative and aren't compiled",
  function(x, w, target, bias, weight, reduction, ignore_index, smoothing, chunk)
    if M.dim(x) < 1 or M.dim(w) ~= 2 or x.shape[M.dim(x)] ~= w.shape[2] then
      fail("linear_cross_entropy", "arguments 1 and 2 have shapes %s and %s; they must be (..., in_features) and (classes, in_features)",
        tostring(x.shape), tostring(w.shape))
    end
    if chunk and chunk < 1 then fail("linear_cross_entropy", "chunk_size must be at least 1, got %d", chunk) end
    local before = x.shape
    table.remove(before)
    local in_labels = not M.is_floating_point(target)
    if not in_labels and (M.dim(target) ~= M.dim(x) or M.numel(target) * w.shape[2] ~= M.numel(x) * w.shape[1] or
        target.shape[M.dim(x)] ~= w.shape[1]) then
      fail("linear_cross_entropy", "argument 3 (target) has shape %s; probabilities must have argument 1's shape %s with a last dim of %d",
        tostring(target.shape), tostring(x.shape), w.shape[1])
    end
    if in_labels and target.shape ~= before then
      fail("linear_cross_entropy", "argument 3 (target) has shape %s; it must be %s to match argument 1 of shape %s",
        tostring(target.shape), tostring(before), tostring(x.shape))
    end
    local rows = M.reshape(x, -1, w.shape[2])
    local n = rows.shape[1]
    local loss = {ignore_index = ignore_index, label_smoothing = smoothing}
    chunk = chunk or math.max(LEAST, math.floor(PART / math.max(w.shape[1], 1)))
    if not in_labels or reduction == "none" or n <= chunk then
      local options = {weight = weight, reduction = reduction, ignore_index = ignore_index, label_smoothing = smoothing}
      local flat = in_labels and M.reshape(target, -1) or M.reshape(target, -1, w.shape[1])
      local y = lib.functions.cross_entropy(ops.linear(rows, w, bias), flat, options)
      return reduction == "none" and M.view(y, before) or y
    end
    local labels = M.reshape(M.long(target), -1)
    local half = core.autocast(x.device ~= "cpu")
    if half then rows, w, bias = M.to(rows, half), M.to(w, half), bias and M.to(bias, half) end
    local wide = rows.dtype == "float64" and "float64" or "float32"
    sums = sums or make_sums()
    local total = sums(rows, w, bias, {target = labels, wide = wide, weight = weight and M.to(weight, wide), chunk = chunk, loss = loss,
      recording = core.is_grad_enabled()})
    if reduction == "sum" then return total end
    local valid = ops.ne(labels, ignore_index)
    local count = weight and ops.sum(ops.index(M.to(weight, wide), {ops.where(valid, labels, 1)}, 1) * valid) or M.to(ops.sum(valid), wide)
    local none = ops.eq(count, 0)                        -- an empty mean is NaN, its gradient 0
    return total / ops.where(none, 1, count) + ops.where(none, ops.full({}, 0 / 0, {dtype = wide, device = x.device}), 0)
  end, lib.NN)
