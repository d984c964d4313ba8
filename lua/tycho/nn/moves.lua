-- Moves modules to other devices and dtypes.
--
-- Invariant: a parameter or buffer remains the same tensor and only its memory changes, so that optimizers and other holders keep it.
local core = require "tycho.core"
local M = core.methods
local no_grad = require("tycho.modes").no_grad
local options = require "tycho.options"
local check, fail = options.check, options.fail

-- walk: module.lua's, over every part of a kind
return function(Module, walk)

-- to(dtype), to(device), to(tensor), to(device, dtype), or {device=, dtype=, non_blocking=false}: converts the floating parameters and
-- buffers, or moves all of them, in place: handles and optimizers keep them. The state of an optimizer that has stepped isn't moved: move
-- the model first. memory_format is accepted without effect: the library chooses the layout of filters. Gives the module.
function Module:to(target, dtype, o)
  if core.is_module(target) then
    fail("to: argument 1 must be a device, a dtype or a tensor, got %s", options.shown(target))
  end
  if type(target) == "table" and not core.is_tensor(target) then target, o = nil, target end
  if type(dtype) == "table" and not core.is_tensor(dtype) then dtype, o = nil, dtype end
  if o then
    check("to", o, {device = true, dtype = true, non_blocking = true, memory_format = true})
    target, dtype = target or o.device or o.dtype, dtype or (target or o.device) and o.dtype
    if target == nil then return self end
  end
  local non_blocking = o and o.non_blocking or dtype == true
  if dtype and dtype ~= true then return self:to(target, {non_blocking = non_blocking}):to(dtype) end
  if core.is_tensor(target) then return self:to(target.device):to(target.dtype) end
  if type(target) == "string" and (target:match("^u?int") or target == "bool") then
    fail("to: parameters need a floating dtype, got " .. target)
  end
  local ok, err = pcall(no_grad, function()
    for _, kind in ipairs {"parameter", "buffer"} do
      walk(self, kind, "", {}, function(_, v)
        local new = (not M.is_floating_point(v) and target:match("float")) and v or M.to(v, target, {non_blocking = non_blocking})
        if not rawequal(new, v) then
          local grad = v.grad
          v.grad = nil
          core.set_data(v, new:detach())
          if grad then v.grad = M.to(grad, target) end
        end
      end)
    end
  end)
  if not ok then fail(err) end
  return self
end
-- to_empty(device), or {device=}: moves all parameters and buffers without their values, which are anything afterwards: for a state that
-- is to be loaded. Gradients become nil. Gives the module.
function Module:to_empty(device)
  if type(device) == "table" then
    check("to_empty", device, {device = true})
    device = device.device
  end
  options.expect("to_empty", 1, device, type(device) == "string", "a device")
  local ok, err = pcall(no_grad, function()
    for _, kind in ipairs {"parameter", "buffer"} do
      walk(self, kind, "", {}, function(_, v)
        local new = core.ops.empty(v.shape, {dtype = v.dtype, device = device})
        v.grad = nil
        core.set_data(v, new)
      end)
    end
  end)
  if not ok then fail("to_empty: %s", (options.bare(err):gsub("^empty: ", ""):gsub("^argument 3 %(device%)", "argument 1 (device)"))) end
  return self
end
-- As to("float16").
function Module:half() return self:to("float16") end
-- As to("bfloat16").
function Module:bfloat16() return self:to("bfloat16") end
-- As to("float32").
function Module:float() return self:to("float32") end
-- As to("float64").
function Module:double() return self:to("float64") end
-- As to("cpu").
function Module:cpu() return self:to("cpu") end
-- Moves to a GPU: a number from 0, a name, or by default the current one.
function Module:cuda(gpu) return self:to(type(gpu) == "number" and "cuda:" .. gpu or gpu or "cuda") end

end
