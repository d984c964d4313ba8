-- nn.summary: a text table of a model's layers, from one forward in evaluation mode, watched by module.observe.
local core = require "tycho.core"
local options = require "tycho.options"
local module = require "tycho.nn.module"
local no_grad = require("tycho.modes").no_grad
local fail, shown = options.fail, options.shown
local ops, M = core.ops, core.methods

local function count(m)
  local n = 0
  for _, p in ipairs(m:parameters()) do n = n + M.numel(p) end
  return n
end

-- The inputs that sizes stand for: sizes, a tensor, or a list of these.
local function inputs_of(sizes, like)
  if core.is_tensor(sizes) then return {sizes} end
  if type(sizes) ~= "table" or sizes[1] == nil then
    fail("summary: argument 2 must be a list of sizes, as {1, 3, 32, 32}, an input, or a list of these, got %s", shown(sizes))
  end
  if type(sizes[1]) == "number" then sizes = {sizes} end
  local out = {}
  for i, v in ipairs(sizes) do out[i] = core.is_tensor(v) and v or ops.ones(v, like) end
  return out
end

return function(model, sizes, o)
  if not module.is_module(model) then fail("summary: argument 1 must be a module, got %s", shown(model)) end
  local first = model:parameters()[1]
  o = options.fill("summary", o, {dtype = first and first.dtype or "float32"})
  local inputs = inputs_of(sizes, {dtype = o.dtype, device = first and first.device})
  local rows, names, training = {}, {}, {}
  for name, m in model:named_modules() do names[m] = name end
  for _, m in ipairs(model:modules()) do training[m] = m.training end
  local ended = module.observe(function(m, y)
    if #m:children() == 0 then rows[#rows + 1] = {names[m] or "", m._name, core.is_tensor(y) and tostring(y.shape) or "-", count(m)} end
  end)
  local ok, err = pcall(no_grad, function() model:eval()(unpack(inputs)) end)
  ended()
  for m, t in pairs(training) do rawset(m, "training", t) end
  if not ok then error(err, 0) end
  local lines = {("%-28s %-18s %-20s %12s"):format("layer", "kind", "output", "parameters"), ("-"):rep(81)}
  for _, r in ipairs(rows) do lines[#lines + 1] = ("%-28s %-18s %-20s %12d"):format(r[1] == "" and "(model)" or r[1], r[2], r[3], r[4]) end
  lines[#lines + 1] = ("-"):rep(81)
  lines[#lines + 1] = ("%-68s %12d"):format("total parameters", count(model))
  return table.concat(lines, "\n")
end
