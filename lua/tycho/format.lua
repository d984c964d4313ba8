-- Tensors as text, as PyTorch prints them: precision 4, edge items of large tensors, width 80.
local ffi = require "ffi"
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local ops, M = core.ops, core.methods
-- Set by tycho.set_printoptions. sci_mode: whether numbers are in scientific form; nil: as needed.
local settings = {threshold = 1000, edgeitems = 3, linewidth = 80, precision = 4}

ffi.cdef "int snprintf(char *, size_t, const char *, ...);"
local buffer = ffi.new "char[400]"
-- Formats as C does: LuaJIT itself rounds 0.03125 up, C and Python to the even digit. A locale's comma becomes a dot.
local function c_format(fmt, v)
  ffi.C.snprintf(buffer, 400, fmt, ffi.cast("double", v))
  return (ffi.string(buffer):gsub("[^%d+e-]+", "."))
end

-- How to print the numbers of a tensor (whole ones with a dot, others with 4 digits, or in scientific form), and their width. NaN,
-- infinities and zeros don't affect the form.
local function number_format(values)
  local top, low, whole, finite = 0, math.huge, true, {}
  for _, v in ipairs(values) do
    if v == v and math.abs(v) ~= math.huge and v ~= 0 then
      local a = math.abs(v)
      top, low = math.max(top, a), math.min(low, a)
      if v % 1 ~= 0 then whole = false end
      finite[#finite + 1] = v
    end
  end
  local scientific = top > 0 and (top / low > 1000 or top > 1e8 or (not whole and low < 1e-4))
  if settings.sci_mode ~= nil then scientific = settings.sci_mode end
  local fmt = ("%%.%d%s"):format(not scientific and whole and 0 or settings.precision, scientific and "e" or "f")
  local function show(v)
    if v ~= v then return "nan" elseif v == math.huge then return "inf" elseif v == -math.huge then return "-inf" end
    return c_format(fmt, v) .. (whole and not scientific and "." or "")
  end
  local width = 1
  for _, v in ipairs(finite) do width = math.max(width, #show(v)) end
  return show, width
end

-- The indices of the printed elements in order, without "...": of a nested list
local function edge_indices(n, summarize)
  local list = {}
  local edge = settings.edgeitems
  if summarize and n > 2 * edge then
    for i = 1, edge do list[i] = i end
    list[edge + 1] = false
    for i = n - edge + 1, n do list[#list + 1] = i end
  else
    for i = 1, n do list[i] = i end
  end
  return list
end

-- An element as a number, or as text if it is an integer too large for a Lua number.
local function value_of(x)
  local v = M.item(x)
  if x.dtype == "int64" and math.abs(v) >= 2 ^ 53 then return (tostring(M.data(M.cpu(x))[0]):gsub("LL$", "")) end
  return v
end

local function collect(x, summarize, values)
  if M.dim(x) == 0 then values[#values + 1] = value_of(x); return end
  for _, i in ipairs(edge_indices(M.size(x, 1), summarize)) do
    if i then collect(ops.select(x, 1, i), summarize, values) end
  end
end

local function lines(x, summarize, show, width, indent)
  if M.dim(x) == 0 then return show(value_of(x)) end
  local items, parts = edge_indices(M.size(x, 1), summarize), {}
  if M.dim(x) == 1 then
    local per_line = math.max(1, math.floor((settings.linewidth - indent) / (width + 2)))
    local rows, row = {}, {}
    for _, i in ipairs(items) do
      local text = i and show(value_of(ops.select(x, 1, i))) or " ..."
      row[#row + 1] = i and (" "):rep(width - #text) .. text or text
      if #row == per_line then rows[#rows + 1] = table.concat(row, ", "); row = {} end
    end
    if #row > 0 then rows[#rows + 1] = table.concat(row, ", ") end
    return "[" .. table.concat(rows, ",\n" .. (" "):rep(indent + 1)) .. "]"
  end
  for _, i in ipairs(items) do
    parts[#parts + 1] = i and lines(ops.select(x, 1, i), summarize, show, width, indent + 1) or "..."
  end
  return "[" .. table.concat(parts, "," .. ("\n"):rep(M.dim(x) - 1) .. (" "):rep(indent + 1)) .. "]"
end

local function text_of(x)
  local last = ("[%s tensor of size %s on %s]"):format(x.dtype, tostring(x.shape), x.device)
  local text = no_grad(function()
    local summarize, values, show, width = M.numel(x) > settings.threshold, {}, tostring, 0
    if not summarize then x = M.cpu(x) end   -- one copy for all elements; of a large tensor few are shown
    if M.numel(x) == 0 then return "[]" end
    collect(x, summarize, values)
    if x.dtype:find "float" then show, width = number_format(values)
    else
      if x.dtype ~= "bool" then show = function(v) return type(v) == "string" and v or ("%.0f"):format(v) end end
      for _, v in ipairs(values) do width = math.max(width, #show(v)) end
    end
    return lines(x, summarize, show, width, 0)
  end)
  return text .. "\n" .. last
end

return {text_of = text_of, settings = settings}
