-- tycho.backends: switches of the libraries underneath, as fields: tycho.backends.cudnn.benchmark = true.
--   cudnn.benchmark      convolutions and products of a new shape time the plans there are; else the library's first choice is taken
--   cudnn.deterministic  only plans that give the same bits each time
--   cuda.allow_tf32      float32 products and convolutions may round their operands to TF32: faster, 10 bits of mantissa
--                        (cuda.matmul.allow_tf32: products alone, cudnn.allow_tf32: convolutions alone; as words, "tf32" or "ieee":
--                        cuda.matmul.fp32_precision, cudnn.conv.fp32_precision)
--   fp32_precision       the same word for both
--   cudnn.enabled        always true
--   cuda.matmul.allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction, allow_fp16_accumulation
--                        always false: products of 16-bit numbers are summed in float32
local core = require "tycho.core"
local modes = require "tycho.modes"
local options = require "tycho.options"
local fail = options.fail

-- A switch: get() and set(v), and how set's value must be. of: the names of the library's flags; all are set, and all must be for it to be.
local function switch(of)
  return {
    get = function()
      local on = true
      for _, one in ipairs(of) do on = on and core.gpu.flag(one) end
      return on
    end,
    set = function(v) for _, one in ipairs(of) do core.gpu.flag(one, v) end end,
    fits = function(v) return type(v) == "boolean" end, needs = "a boolean"}
end
-- The same of TF32, by a word.
local function precision(of)
  local on = switch(of)
  return {get = function() return on.get() and "tf32" or "ieee" end, set = function(v) on.set(v == "tf32") end,
    fits = function(v) return v == "tf32" or v == "ieee" end, needs = "'tf32' or 'ieee'"}
end
local function fixed(value)
  return {get = function() return value end, set = function() end, fits = function(v) return v == value end, needs = tostring(value)}
end
local never = fixed(false)

-- A table whose fields are switches; more: such tables within it, and functions.
local function switches(name, list, more)
  local function find(k)
    if list[k] then return list[k] end
    local known = {}
    for _, names in ipairs {list, more or {}} do for own, v in pairs(names) do known[own] = v end end
    fail("%s has no '%s'%s", name, tostring(k), options.suggest(k, known))
  end
  return setmetatable({}, {
    __index = function(_, k) return more and more[k] or find(k).get() end,
    __newindex = function(_, k, v)
      if more and more[k] then fail("%s.%s can't be set%s", name, k, type(more[k]) == "table" and ": set its fields" or "") end
      local s = find(k)
      if not s.fits(v) then fail("%s.%s must be %s, got %s", name, k, s.needs, options.shown(v)) end
      s.set(v)
    end})
end

-- Functions beside the switches.
local M
local cudnn, cuda = {}, {}
-- cuDNN's version as a number, 91900 for 9.19; nil without a GPU.
function cudnn.version() return core.gpu.dnn_version() end
-- Whether there is a GPU; if not, false and the reason.
function cudnn.is_available() return core.gpu.is_available() end
-- flags(switches, fn, ...): calls fn(...) with these switches, a table {benchmark=, deterministic=, allow_tf32=}, and gives its results.
function cudnn.flags(o, fn, ...)
  if not modes.callable(fn) then fail("backends.cudnn.flags: argument 2 must be a function, got %s", options.shown(fn)) end
  if type(o) ~= "table" then fail("backends.cudnn.flags: argument 1 must be a table of switches, got %s", options.shown(o)) end
  local before = {}
  for k in pairs(o) do before[k] = M.cudnn[k] end
  return options.meanwhile(function(values) for k, v in pairs(values) do M.cudnn[k] = v end end, o, before, fn, ...)
end
for _, way in pairs(require("tycho.nn.attention").SDPBackend) do
  local one = switch {way .. "_sdp"}
  -- Whether scaled_dot_product_attention may go that way (see nn.attention.SDPBackend).
  cuda[way .. "_sdp_enabled"] = function() return one.get() end
  -- Sets whether scaled_dot_product_attention may go that way, a boolean.
  cuda["enable_" .. way .. "_sdp"] = function(on)
    if type(on) ~= "boolean" then fail("enable_%s_sdp: argument 1 must be a boolean, got %s", way, options.shown(on)) end
    one.set(on)
  end
end

local products, convolutions = "allow_tf32", "conv_tf32"
local own = {benchmark = switch {"cudnn_benchmark"}, deterministic = switch {"cudnn_deterministic"}, allow_tf32 = switch {convolutions},
  enabled = fixed(true)}
cudnn.conv = switches("backends.cudnn.conv", {fp32_precision = precision {convolutions}})
cuda.matmul = switches("backends.cuda.matmul", {allow_tf32 = switch {products}, fp32_precision = precision {products},
  allow_fp16_reduced_precision_reduction = never, allow_bf16_reduced_precision_reduction = never, allow_fp16_accumulation = never})
M = switches("backends", {fp32_precision = precision {products, convolutions}}, {
  cudnn = switches("backends.cudnn", own, cudnn),
  cuda = switches("backends.cuda", {allow_tf32 = switch {products, convolutions}}, cuda),
  -- For programs that ask: there are no GPUs but CUDA's.
  mps = {is_available = function() return false end, is_built = function() return false end}})
return M
