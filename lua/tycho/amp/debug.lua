-- amp.debug(fn, {dtype = "float16"}): runs fn and reports, for each layer, how its activations and their gradients would suffer in a 16-bit
-- dtype.
--
-- Idea: every module's results are observed, except those that a module inside it returned. For each result, and its gradient if a backward
-- pass within fn reaches it, four numbers are computed on the device and read once at the end.
local core = require "tycho.core"
local fail = require("tycho.options").fail
local module = require "tycho.nn.module"
local fill = require("tycho.options").fill
local no_grad = require("tycho.modes").no_grad
local ops, M = core.ops, core.methods

-- The largest number, and the smallest with full precision.
local limits = {float16 = {65504, 2^-14}, bfloat16 = {3.3895313892515355e38, 2^-126}}

local function measure(x, limit)
  return no_grad(function()
    local a = ops.abs(M.to(x:detach(), "float32"))
    local zero, n = ops.eq(a, 0), math.max(M.numel(a), 1)
    local over = ops.logical_or(ops.gt(a, limit[1]), ops.ne(a, a))
    local under = ops.logical_and(ops.lt(a, limit[2]), ops.logical_not(zero))
    local finite = ops.where(ops.isfinite(a), a, 0)
    if M.numel(a) == 0 then return core.keep(ops.zeros({4})) end
    return core.keep(ops.stack({ops.amax(finite), ops.amin(ops.where(zero, math.huge, a)), ops.sum(over) / n, ops.sum(under) / n}))
  end)
end

local function entry(row, kind, numbers)
  local v = M.totable(numbers)
  local e = row[kind]
  if not e then
    row[kind] = {max = v[1], min = v[2], overflow = v[3], underflow = v[4]}
    return
  end
  e.max, e.min = math.max(e.max, v[1]), math.min(e.min, v[2])
  e.overflow, e.underflow = math.max(e.overflow, v[3]), math.max(e.underflow, v[4])
end

-- Names start from the outermost modules that ran, which no other one contains.
local function names_of(seen)
  local inner, names = {}, {}
  for m in pairs(seen) do
    for _, child in ipairs(m:modules()) do if child ~= m then inner[child] = true end end
  end
  for m in pairs(seen) do
    if not inner[m] then for name, part in m:named_modules() do names[part] = name == "" and m._name or name end end
  end
  return names
end

local Report = {}
Report.__index = Report
local function columns(e)
  if not e then return ("%10s %10s %7s %7s"):format("-", "-", "-", "-") end
  return ("%10.3g %10.3g %6.2f%% %6.2f%%"):format(e.max, e.min == math.huge and 0 / 0 or e.min, e.overflow * 100, e.underflow * 100)
end
function Report:__tostring()
  local head = ("%10s %10s %7s %7s"):format("max |x|", "min |x|", "over", "under")
  local form = "%-28s %-9s | %-37s | %-37s"
  local lines = {form:format("in " .. self.dtype, "", "activations", "gradients") .. "\n" .. form:format("layer", "dtype", head, head)}
  lines[2] = ("-"):rep(#form:format("", "", "", ""))
  for _, r in ipairs(self) do lines[#lines + 1] = form:format(r.name, r.dtype, columns(r.activation), columns(r.gradient)) end
  return table.concat(lines, "\n")
end

-- debug(fn, {dtype="float16"}): calls fn(), which runs forward, or backward too, and reports how each layer's results and their gradients
-- would suffer in a 16-bit dtype. Gives a report, then fn's results. The report is a list of {name=, kind=, dtype=, activation=,
-- gradient=}, in the order of first use, and prints as a table; activation and gradient hold max and min of |x| (finite, not 0), and the
-- shares of elements too large for the dtype (overflow), or so small that they lose digits or become 0 (underflow); over several calls the
-- worst.
return function(fn, o)
  o = fill("amp.debug", o, {dtype = "float16"})
  if type(fn) ~= "function" then fail("amp.debug: argument 1 must be a function, got " .. type(fn)) end
  local limit = limits[o.dtype]
  if not limit then fail("amp.debug: dtype must be 'float16' or 'bfloat16', got '" .. tostring(o.dtype) .. "'") end
  local seen, order, pending, given = {}, {}, {}, setmetatable({}, {__mode = "k"})
  local ended = module.observe(function(m, ...)
    seen[m] = seen[m] or {}
    for i = 1, select("#", ...) do
      local y = select(i, ...)
      if core.is_tensor(y) and M.is_floating_point(y) and not given[y] then
        given[y] = true
        if not seen[m].kind then
          seen[m].kind, seen[m].dtype = m._name, y.dtype
          order[#order + 1] = m
        end
        pending[#pending + 1] = {m, "activation", measure(y, limit)}
        if y.requires_grad then M.register_hook(y, function(g) pending[#pending + 1] = {m, "gradient", measure(g, limit)} end) end
      end
    end
  end)
  local results = {pcall(fn)}
  ended()
  if not results[1] then error(results[2], 0) end
  for _, p in ipairs(pending) do entry(seen[p[1]], p[2], p[3]) end
  local names, report = names_of(seen), {dtype = o.dtype}
  for i, m in ipairs(order) do
    seen[m].name = names[m] or m._name
    report[i] = seen[m]
  end
  return setmetatable(report, Report), unpack(results, 2, table.maxn(results))
end
