-- Comparisons for tests, after torch.testing: the error says where two values differ, and by how much.
local core = require "tycho.core"
local options = require "tycho.options"
local lib = require "tycho.functional.lib"
local modes = require "tycho.modes"
local ops, M = core.ops, core.methods
local fail, shown = options.fail, options.shown
local testing = {}

-- rtol and atol by dtype, PyTorch's; other dtypes must be equal.
local TOLERANCE = {float16 = {1e-3, 1e-5}, bfloat16 = {1.6e-2, 1e-5}, float32 = {1.3e-6, 1e-5}, float64 = {1e-7, 1e-7}}
local OPTIONS = {rtol = options.none, atol = options.none, equal_nan = false, check_dtype = true, check_device = true,
  check_stride = false, msg = options.none}

-- The greatest element of x, and its position as text.
local function greatest(x)
  local value, at = M.max(M.flatten(x), 1)
  local k, text = M.item(at) - 1, {}
  for d = M.dim(x), 1, -1 do
    local n = x.shape[d]
    text[d] = ("%d"):format(k % n + 1)
    k = math.floor(k / n)
  end
  return M.item(value), "{" .. table.concat(text, ", ") .. "}"
end

local function allowed(a, b, o)
  if o.rtol or o.atol then return o.rtol, o.atol end
  local t, u = TOLERANCE[a.dtype] or {0, 0}, TOLERANCE[b.dtype] or {0, 0}
  return math.max(t[1], u[1]), math.max(t[2], u[2])
end

local function tensors(a, b, o, differ)
  if a.shape ~= b.shape then differ("the shapes are %s and %s", tostring(a.shape), tostring(b.shape)) end
  if o.check_dtype and a.dtype ~= b.dtype then differ("the dtypes are %s and %s", a.dtype, b.dtype) end
  if o.check_device and a.device ~= b.device then differ("the devices are %s and %s", a.device, b.device) end
  for d = 1, o.check_stride and M.dim(a) or 0 do
    if a:stride()[d] ~= b:stride()[d] then differ("the strides of dim %d are %d and %d", d, a:stride()[d], b:stride()[d]) end
  end
  local rtol, atol = allowed(a, b, o)
  -- int64 values stay exact where they need only be equal
  local exact = rtol == 0 and atol == 0 and a.dtype == b.dtype
  local function wide(x) return exact and x.dtype == "int64" and M.cpu(x:detach()) or M.double(M.cpu(x:detach())) end
  a, b = wide(a), wide(b)
  local close = exact and ops.eq(a, b) or M.isclose(a, b, {rtol = rtol, atol = atol})
  if o.equal_nan then close = ops.logical_or(close, ops.logical_and(ops.isnan(a), ops.isnan(b))) end
  local wrong, n = M.item(ops.sum(ops.logical_not(close))), M.numel(close)
  if wrong == 0 then return end
  a, b = M.double(a), M.double(b)
  if M.dim(close) == 0 then differ("expected %.9g, got %.9g", M.item(b), M.item(a)) end
  -- only elements that differ; a difference of NaN counts as the greatest
  local far = ops.masked_fill(ops.abs(a - b), close, 0)
  local absolute, at = greatest(M.nan_to_num(far, math.huge, math.huge))
  local relative, place = greatest(M.nan_to_num(ops.masked_fill(far / ops.abs(b), close, 0), math.huge, math.huge))
  differ("%d of %d elements (%.1f %%) differ; greatest absolute difference %.9g at %s (%g allowed), \z
    greatest relative %.9g at %s (%g allowed)",
    wrong, n, 100 * wrong / n, absolute, at, atol, relative, place, rtol)
end

-- Compares the values at the same path; a key that only one has is a difference.
local function compare(a, b, o, path, seen)
  local function differ(text, ...)
    local whole = (path == "" and "" or "at " .. path .. ": ") .. text:format(...)
    if type(o.msg) == "function" then whole = o.msg(whole) elseif o.msg then whole = o.msg end
    fail("assert_close: %s", tostring(whole))
  end
  if core.is_tensor(a) and core.is_tensor(b) then return tensors(a, b, o, differ) end
  if type(a) == "number" and type(b) == "number" then
    local rtol, atol = o.rtol or 1e-7, o.atol or 1e-7
    local near = a == b or math.abs(a - b) <= atol + rtol * math.abs(b) and math.abs(b) < math.huge
    if not near and not (o.equal_nan and a ~= a and b ~= b) then differ("expected %.17g, got %.17g", b, a) end
  elseif type(a) == "table" and type(b) == "table" and not core.is_tensor(a) and not core.is_tensor(b) then
    if seen[a] == b then return end                       -- tables that contain themselves
    seen[a] = b
    local function inside(k) return path .. (type(k) == "number" and ("[%g]"):format(k) or (path == "" and "" or ".") .. tostring(k)) end
    for k in pairs(b) do if a[k] == nil then differ("'%s' is missing", inside(k)) end end
    for k, v in pairs(a) do
      if b[k] == nil then differ("'%s' isn't expected", inside(k)) end
      compare(v, b[k], o, inside(k), seen)
    end
  elseif a ~= b then
    local function text(v) return type(v) == "cdata" and tostring(v) or shown(v) end
    differ("expected %s, got %s", text(b), text(a))
  end
end

-- assert_close(actual, expected, {rtol=, atol=, equal_nan=false, check_dtype=true, check_device=true, check_stride=false, msg=}): raises,
-- with where and by how much, unless |actual - expected| <= atol + rtol |expected| for each element. Default tolerances depend on the dtype
-- (float32: 1.3e-6 and 1e-5). For tensors, numbers, strings, booleans, and tables of these; shapes must be the same, and dtypes and devices
-- unless the options say otherwise. msg: the error's text, or a function that gets it and returns another.
function testing.assert_close(actual, expected, o)
  o = options.fill("assert_close", o, OPTIONS)
  if (o.rtol == false) ~= (o.atol == false) then fail("assert_close: give both rtol and atol, or neither") end
  for _, name in ipairs {"rtol", "atol"} do if o[name] then options.number("assert_close", name, o[name], 0) end end
  modes.no_grad(compare, actual, expected, o, "", {})
end

-- The default ranges of make_tensor, by dtype: PyTorch's.
local RANGES = {bool = {0, 2}, uint8 = {0, 10}}
-- make_tensor(shape, {dtype="float32", device="cpu", low=, high=, requires_grad=false, exclude_zero=false, noncontiguous=false}): a tensor
-- of random values from low to below high; by default from -9 to 9, for uint8 from 0 to 9, for booleans both. exclude_zero: zeros become 1
-- (for a floating dtype its smallest number). noncontiguous: elements are two apart in memory.
function testing.make_tensor(shape, o)
  o = options.fill("make_tensor", o, {dtype = "float32", device = options.none, low = options.none, high = options.none,
    requires_grad = false, exclude_zero = false, noncontiguous = false})
  if type(o.dtype) ~= "string" then fail("make_tensor: dtype must be a dtype, got %s", shown(o.dtype)) end
  if core.is_tensor(shape) or type(shape) ~= "table" and type(shape) ~= "number" then
    fail("make_tensor: argument 1 (shape) must be a list of sizes, got %s", shown(shape))
  end
  local sizes, range = type(shape) == "number" and {shape} or {unpack(shape)}, RANGES[o.dtype] or {-9, o.dtype:find "float" and 9 or 10}
  local low, high = o.low or range[1], o.high or range[2]
  for _, name in ipairs {"low", "high"} do if o[name] then options.number("make_tensor", name, o[name]) end end
  if low >= high then fail("make_tensor: low must be below high, got %g and %g", low, high) end
  local wide = o.noncontiguous and #sizes > 0
  if wide then sizes[#sizes] = sizes[#sizes] * 2 end
  local x
  if o.dtype:find "float" then
    x = ops.rand(sizes, {dtype = o.dtype == "float64" and "float64" or "float32", device = o.device or nil})
    x = M.clamp(M.to(x * (high - low) + low, o.dtype), low, high)
  else x = M.to(ops.randint(math.floor(low), math.ceil(high) - 1, sizes, {device = o.device or nil}), o.dtype) end
  if o.exclude_zero then
    x = ops.masked_fill(x, ops.eq(x, 0), lib.RANGE[o.dtype] and lib.RANGE[o.dtype].tiny or 1)
  end
  if wide then x = ops.slice(x, -1, 1, -1, 2) end
  return core.keep(x:detach()):requires_grad_(o.requires_grad)
end

return options.told(testing, "testing")
