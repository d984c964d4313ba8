-- Mixed precision: autocast, and loss scaling whose state never leaves the device.
--
-- Idea: autocast is a mode of the core: apply casts operands by the op's class in ops.def. A GradScaler keeps its scale, the count of good
-- steps and each optimizer's "found an infinite gradient" in device memory. An optimizer's step reads them there, so a training step never
-- waits. Invariant: between scale() and update() a gradient is either marked as scaled (the core refuses to clip it or to step with it) or
-- has been unscaled.
local core = require "tycho.core"
local options = require "tycho.options"
local fail, check, fill = options.fail, options.check, options.fill
local modes = require "tycho.modes"
local callable = modes.callable
local devices = require "tycho.devices"
local module = require "tycho.nn.module"
local on = devices.on
local ops, M = core.ops, core.methods
local amp = {debug = require "tycho.amp.debug"}

---- autocast ----
local half = {float16 = true, bfloat16 = true}
local usual = {cpu = "bfloat16", cuda = "float16"}

local OPTIONS = {dtype = true, enabled = true, device = true, device_type = true, cache_enabled = true}
-- PyTorch's form autocast("cpu", "bfloat16", {enabled = false}, fn, ...): arguments between device and function go into o.
local function after_device(o, first, ...)
  if type(first) == "string" then o.dtype = first
  elseif type(first) == "table" and not callable(first) then
    check("autocast", first, OPTIONS)
    for k, v in pairs(first) do o[k] = v end
  else return amp.autocast(o, first, ...) end
  return after_device(o, ...)
end
-- autocast({dtype=, enabled=true, device=}, fn, ...): calls fn(...) and gives its results; inside, matrix products, convolutions and
-- attention compute in the 16-bit dtype, and losses, softmax, norms, sums and powers in float32. device: by default all; dtype: by default
-- float16 on GPUs, bfloat16 on the CPU. backward() belongs outside: it computes in the dtypes that forward chose.
function amp.autocast(o, fn, ...)
  if callable(o) then
    options.first("autocast", OPTIONS, fn, ...)
    return amp.autocast({}, o, fn, ...)
  end
  if type(o) == "string" then return after_device({device = o}, fn, ...) end
  check("autocast", o, OPTIONS)                          -- cache_enabled has no effect: copies are always kept, by version
  if o.device_type ~= nil and o.device == nil then o = {dtype = o.dtype, enabled = o.enabled, device = o.device_type} end
  if not callable(fn) then fail("autocast: argument 2 must be a function, got " .. type(fn)) end
  if o.enabled ~= nil and type(o.enabled) ~= "boolean" then
    fail("autocast: enabled must be true or false, got %s", options.shown(o.enabled))
  end
  local kind = o.device and (type(o.device) == "string" and o.device:match("^%a+") or tostring(o.device))
  if kind and not usual[kind] then fail("autocast: device must be 'cpu' or 'cuda', got '" .. tostring(o.device) .. "'") end
  if o.dtype ~= nil and not half[o.dtype] then
    fail("autocast: dtype must be 'float16' or 'bfloat16', got '" .. tostring(o.dtype) .. "'")
  end
  local state = {}
  for k, dtype in pairs(usual) do
    if not kind or kind == k then state[k] = o.enabled ~= false and (o.dtype or dtype) end
  end
  return modes.autocasting(state, fn, ...)
end

-- is_autocast_enabled(device=): whether autocast is on here for "cpu" or "cuda", or by default for either; and its dtype.
function amp.is_autocast_enabled(device)
  device = options.named("is_autocast_enabled", "device", device)
  local dtype
  local known = device == nil or type(device) == "string" and usual[device:match "^%a+"]
  options.expect("is_autocast_enabled", 1, device, known, "'cpu' or 'cuda'")
  if device == nil or device:match("^cuda") then dtype = core.autocast(true) end
  if not dtype and (device == nil or device == "cpu") then dtype = core.autocast(false) end
  return dtype ~= nil, dtype
end

-- The dtype that autocast computes in on a device ("cuda" or "cpu"), or would.
function amp.get_autocast_dtype(device)
  options.expect("get_autocast_dtype", 1, device, type(device) == "string" and usual[device:match "^%a+"], "'cpu' or 'cuda'")
  return select(2, amp.is_autocast_enabled(device)) or usual[device:match "^%a+"]
end

-- custom_fwd(fn, {cast_inputs=}): makes fn the forward of an autograd.Function whose backward, made by custom_bwd, runs under the same
-- autocast as forward. cast_inputs: where autocast is on, floating arguments (except float64) are converted to this dtype, and fn runs
-- without autocast.
function amp.custom_fwd(fn, o)
  if not callable(fn) then fail("custom_fwd: argument 1 must be a function, got " .. type(fn)) end
  local cast = fill("custom_fwd", o, {cast_inputs = options.none, device_type = options.none}).cast_inputs
  return function(ctx, ...)
    local state, args, n = modes.autocast(), {...}, select("#", ...)
    if cast and (state.cpu or state.cuda) then
      state = {cpu = false, cuda = false}
      for i = 1, n do
        local x = args[i]
        if core.is_tensor(x) and M.is_floating_point(x) and x.dtype ~= "float64" then args[i] = M.to(x, cast) end
      end
    end
    ctx._autocast = state
    return modes.autocasting(state, fn, ctx, unpack(args, 1, n))
  end
end
-- custom_bwd(fn): makes fn the backward that goes with custom_fwd.
function amp.custom_bwd(fn)
  if not callable(fn) then fail("custom_bwd: argument 1 must be a function, got " .. type(fn)) end
  return function(ctx, ...)
    if not ctx._autocast then fail("custom_bwd: the Function's forward must be wrapped in custom_fwd") end
    return modes.autocasting(ctx._autocast, fn, ctx, ...)
  end
end

---- loss scaling ----
local Scaler = {}
Scaler.__index = Scaler
Scaler.__tostring = function(s)
  if not s._enabled then return "GradScaler(enabled=false)" end
  return ("GradScaler(init_scale=%g, growth_factor=%g, backoff_factor=%g, growth_interval=%d)"):format(s._init_scale, s._growth_factor,
    s._backoff_factor, s._growth_interval)
end

local function number(value, dtype, device) return core.keep(ops.full({}, value, {dtype = dtype, device = device})) end

local function start(self, device)
  if not self._scale then
    self._scale = number(self._init_scale, "float32", device)
    self._growth = number(self._init_growth, "int64", device)
  end
end

-- A loss (or a table of losses) times the scale; its backward gives gradients that are scaled too.
function Scaler:scale(loss, ...)
  if select("#", ...) > 0 then fail("scale: takes one loss or a table of losses, got %d arguments", 1 + select("#", ...)) end
  if not self._enabled then return loss end
  if type(loss) == "table" and not core.is_tensor(loss) then
    local out = {}
    for k, l in pairs(loss) do out[k] = self:scale(l) end
    return out
  end
  if not core.is_tensor(loss) then fail("scale: argument 1 must be a tensor or a table of tensors, got " .. type(loss)) end
  if half[loss.dtype] then
    fail("scale: the loss is " .. loss.dtype ..
      ", where multiplying it by the scale overflows: compute the loss in float32, from logits:float()")
  end
  start(self, loss.device)
  return ops.amp_scale(loss, on(self._scale, loss.device))
end

-- An optimizer's entry since the last update(): its state, and by device whether an infinite gradient was found.
local function entry(self, opt)
  local e = self._optimizers[opt]
  if not e then
    e = {state = "ready", found = {}}
    self._optimizers[opt] = e
    self._entries[#self._entries + 1] = e
  end
  return e
end

local function found_on(self, e, device)
  -- reuses those of earlier steps, which are 0 again
  local f = self._founds[device] and table.remove(self._founds[device], 1) or number(0, "float32", device)
  e.found[device] = f
  return f
end

-- Calls fn(gradients, found, scale) for the optimizer's gradients on each device. 16-bit gradients can't be unscaled, so those of
-- parameters with masters are converted to float32 first.
local function each_device(self, who, opt, e, widen, fn)
  local list, wider = {}, {}
  for _, group in ipairs(opt.param_groups) do
    for _, p in ipairs(group.params) do
      local g = core.grad_of(p)
      if g then
        if g.dtype == "float16" and not group.master_weights then
          fail(who .. ": the gradient of a float16 parameter can't be unscaled: keep parameters in float32 under \z
            autocast, or give the optimizer master_weights = true")
        end
        list[#list + 1] = g
        if widen and half[g.dtype] and group.master_weights then wider[#list] = p end
      end
    end
  end
  if #list == 0 then fail(who .. ": none of this optimizer's parameters has a gradient") end
  for i, p in pairs(wider) do list[i] = core.replace_grad(p, M.to(list[i], "float32")) end
  for device, there in devices.each(list) do
    fn(there, e.found[device] or found_on(self, e, device), on(self._scale, device))
    for _, g in ipairs(there) do core.free(g) end        -- their memory shouldn't wait for the collector
  end
end

local LEAST, MOST = 2 ^ -149, 3.4028234663852886e38          -- float32's: scales are float32
-- Checks the scale or another setting: it must be above 0, and make sense.
local function check_setting(who, name, v)
  if name == "growth_interval" then return options.whole(who, name, v, 1) end
  if options.number(who, name, v) < LEAST or v > MOST then fail("%s: %s must be above 0 and within float32, got %g", who, name, v) end
  if name == "growth_factor" and v <= 1 then fail("%s: growth_factor must be above 1, got %g", who, v) end
  if name == "backoff_factor" and v >= 1 then fail("%s: backoff_factor must be below 1, got %g", who, v) end
  return v
end

local function need_scale(self, who)
  if not self._scale then fail(who .. ": no loss has been scaled: call scaler:scale(loss):backward() first") end
end

local function need_optimizer(who, opt)
  if type(opt) ~= "table" or type(opt.param_groups) ~= "table" then
    fail("%s: argument 1 must be an optimizer, got %s", who, options.shown(opt))
  end
end

-- Divides the optimizer's gradients by the scale, in place, for code between backward() and step(), such as clipping. Once for each step.
function Scaler:unscale_(opt)
  need_optimizer("unscale_", opt)
  if not self._enabled then return end
  need_scale(self, "unscale_")
  local e = entry(self, opt)
  if e.state == "unscaled" then fail("unscale_: already called for this optimizer since the last update()") end
  if e.state == "stepped" then fail("unscale_: must be called before step(), not after it") end
  each_device(self, "unscale_", opt, e, true, function(list, found, scale) ops.multi_unscale(list, scale, found) end)
  e.state = "unscaled"
end

-- A step is taken with all parameters or with none, so what one device found counts for all.
local function agree(found)
  local at, all = next(found)
  if next(found, at) == nil then return end
  for device, f in next, found, at do
    if device ~= at then M.add_(all, on(f, at)) end
  end
  for device, f in pairs(found) do
    if device ~= at then M.copy_(f, on(all, device)) end
  end
end

-- What a process found in its shard of a parameter counts for all processes.
local function agree_among(opt, found)
  if next(module.sharded) == nil then return end
  local known = {}
  for _, group in ipairs(opt.param_groups) do
    for _, p in ipairs(group.params) do
      local among = module.sharded[p]
      if among and not known[among] then
        known[among] = true
        for _, f in pairs(found) do ops.collective_(f, "all_reduce", "max", 0, 0, among.id) end
      end
    end
  end
end

-- step(opt): the optimizer's step, unless one of its gradients is infinite or NaN; the device decides that, and the host doesn't wait. If
-- unscale_() wasn't called, the step itself divides by the scale, and p.grad stays scaled.
function Scaler:step(opt, ...)
  need_optimizer("step", opt)
  if not self._enabled then return opt:step(...) end
  if select("#", ...) > 0 then fail("step: closures aren't supported with a scaler") end
  need_scale(self, "step")
  local e = entry(self, opt)
  if e.state == "stepped" then fail("step: already called for this optimizer since the last update()") end
  if opt.apply_gradients == false then fail("step: %s evaluates the loss itself, and can't be used with a GradScaler", opt._name) end
  if not opt.apply_gradients or (opt.has_own_step and opt:has_own_step()) then      -- a program's own step(): the host decides
    if e.state == "ready" then self:unscale_(opt) end
    local bad = false
    for _, f in pairs(e.found) do bad = bad or f:item() ~= 0 end
    e.state = "stepped"
    if not bad then return opt:step() end
    return
  end
  if e.state == "ready" then each_device(self, "step", opt, e, false, function(list, found) ops.multi_found(list, found) end) end
  local scaled = e.state == "ready"
  agree(e.found)
  agree_among(opt, e.found)
  opt:apply_gradients {found = function(device) return e.found[device] end,
    scale = scaled and function(device) return on(self._scale, device) end or nil}
  e.state = "stepped"
end

-- update(new_scale=): ends the iteration: the scale shrinks by backoff_factor if a step was skipped, and grows by growth_factor after
-- growth_interval consecutive steps without a skip. new_scale, a number or a tensor of one element, sets the scale instead.
function Scaler:update(new_scale)
  new_scale = options.named("update", "new_scale", new_scale)
  if not self._enabled then return end
  need_scale(self, "update")
  local given = core.is_tensor(new_scale) and M.numel(new_scale) == 1 and M.reshape(new_scale:detach(), {})
  if type(new_scale) == "number" then check_setting("update", "new_scale", new_scale)
  elseif new_scale ~= nil and not given then
    fail("update: new_scale must be a number or a tensor of one element, got %s", options.shown(new_scale))
  end
  local found = false
  for _, e in ipairs(self._entries) do found = found or next(e.found) ~= nil end
  if not found and new_scale == nil then fail("update: call step() or unscale_() first") end
  local founds, device = {}, self._scale.device
  for _, e in ipairs(self._entries) do                   -- in the order of their steps, always the same
    for at, f in pairs(e.found) do
      self._founds[at] = self._founds[at] or {}
      table.insert(self._founds[at], f)
      founds[#founds + 1] = on(f, device)
      if at ~= device then M.zero_(f) end
    end
  end
  if new_scale ~= nil then
    for _, f in ipairs(founds) do M.zero_(f) end
    if given then M.copy_(self._scale, given) else M.fill_(self._scale, new_scale) end
  else ops.amp_update(founds, self._scale, self._growth, self._growth_factor, self._backoff_factor, self._growth_interval) end
  self._optimizers, self._entries = setmetatable({}, {__mode = "k"}), {}
end

-- The scale as a number. Waits for the GPU.
function Scaler:get_scale()
  if not self._enabled then return 1 end
  return self._scale and self._scale:item() or self._init_scale
end
-- Whether the scaler has any effect: the option enabled.
function Scaler:is_enabled() return self._enabled end
for _, name in ipairs {"growth_factor", "backoff_factor", "growth_interval"} do
  -- The current value of this setting.
  Scaler["get_" .. name] = function(self) return self["_" .. name] end
  -- Changes this setting.
  Scaler["set_" .. name] = function(self, v) self["_" .. name] = check_setting("set_" .. name, name, v) end
end

-- Scale, settings and count as a table of numbers, for tycho.save. Waits for the GPU.
function Scaler:state_dict()
  if not self._enabled then return {} end
  return {scale = self:get_scale(), growth_factor = self._growth_factor, backoff_factor = self._backoff_factor,
    growth_interval = self._growth_interval, _growth_tracker = self._growth and self._growth:item() or self._init_growth}
end
-- Continues from what state_dict gave.
function Scaler:load_state_dict(d)
  if not self._enabled then return end
  if type(d) ~= "table" or type(d.scale) ~= "number" then
    fail("load_state_dict: argument 1 must be the state_dict() of an enabled scaler; a disabled one saves nothing")
  end
  -- 0 and infinity: where steps may have led
  if d.scale ~= 0 and d.scale ~= math.huge then check_setting("load_state_dict", "scale", d.scale) end
  for _, name in ipairs {"growth_factor", "backoff_factor", "growth_interval"} do
    if d[name] ~= nil then check_setting("load_state_dict", name, d[name]) end
  end
  self._init_scale, self._init_growth = d.scale, d._growth_tracker or 0
  for _, name in ipairs {"growth_factor", "backoff_factor", "growth_interval"} do self["_" .. name] = d[name] or self["_" .. name] end
  if self._scale then
    M.fill_(self._scale, self._init_scale)
    M.fill_(self._growth, self._init_growth)
  end
end

options.methods(Scaler, "scaler", function(self) return getmetatable(self) == Scaler end)

-- GradScaler(init_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000, enabled=true): scales losses so that 16-bit
-- gradients don't become 0. Its state lives on the loss's device; PyTorch's argument for that, a string, may come first.
function amp.GradScaler(...)
  local first = select("#", ...) > 0 and type((...)) == "string" and 2 or 1
  local o = options.arguments("GradScaler", "init_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000, enabled=true, \z
    device=nil", select(first, ...))
  for _, k in ipairs {"init_scale", "growth_factor", "backoff_factor", "growth_interval"} do check_setting("GradScaler", k, o[k]) end
  if type(o.enabled) ~= "boolean" then fail("GradScaler: enabled must be true or false, got %s", options.shown(o.enabled)) end
  return setmetatable({_enabled = o.enabled, _init_scale = o.init_scale, _init_growth = 0,
    _growth_factor = o.growth_factor, _backoff_factor = o.backoff_factor, _growth_interval = o.growth_interval,
    _optimizers = setmetatable({}, {__mode = "k"}), _entries = {}, _founds = {}}, Scaler)
end

return require("tycho.options").told(amp, "amp")
