-- Averages of a model's parameters over training: an exponential moving average where decay is given, else the mean of all updates
-- (stochastic weight averaging, Izmailov et al. 2018).
local core = require "tycho.core"
local fail = require("tycho.options").fail
local no_grad = require("tycho.modes").no_grad
local M = core.methods
local fill = require("tycho.options").fill
local Module = require("tycho.nn.module").Module

local AveragedModel = Module:extend("AveragedModel")
-- AveragedModel(model, {decay=, use_buffers=false}): a copy of model in .module, which it runs
function AveragedModel:init(model, o)
  o = fill("AveragedModel", o, {decay = false, use_buffers = false})
  if o.decay and not (type(o.decay) == "number" and o.decay >= 0 and o.decay <= 1) then fail("AveragedModel: decay must be in 0..1, got " .. tostring(o.decay)) end
  self.module = model:clone():requires_grad_(false)
  self.decay, self.use_buffers = o.decay, o.use_buffers
  self:register_buffer("n_averaged", core.ops.zeros({}, {dtype = "int64"}))
end
function AveragedModel:forward(...) return self.module(...) end

-- Takes the model's parameters as they are now into the average; buffers are averaged, or copied.
function AveragedModel:update_parameters(model)
  local n = self.n_averaged:item()
  local weight = n == 0 and 1 or self.decay and 1 - self.decay or 1 / (n + 1)
  local ok, err = pcall(no_grad, function()
    local mine, theirs = self.module:parameters(), model:parameters()
    if #mine ~= #theirs then error(("update_parameters: the model has %d parameters, the average %d"):format(#theirs, #mine), 0) end
    for i, p in ipairs(mine) do
      if weight == 1 then M.copy_(p, theirs[i]) else M.lerp_(p, M.to(theirs[i]:detach(), p.dtype), weight) end
    end
    local buffers = {}
    for name, b in model:named_buffers() do buffers[name] = b end
    for name, b in self.module:named_buffers() do
      if self.use_buffers and weight < 1 and M.is_floating_point(b) then M.lerp_(b, buffers[name], weight) else M.copy_(b, buffers[name]) end
    end
    M.add_(self.n_averaged, 1)
  end)
  if not ok then fail(err) end
end

return {AveragedModel = AveragedModel}
