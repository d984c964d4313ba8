-- Windows for pieces of a signal: torch's, periodic by default, and torch.signal.windows', symmetric by default.
--
-- They are computed in float64 and rounded once. A window of one element is 1.
local core = require "tycho.core"
local ops, M = core.ops, core.methods
local lib = require "tycho.functional.lib"
local def, fail = lib.def, lib.fail

local MAKE = ", dtype:dtype?, device:device?"

-- shape(k, last) gives the values at k = 0 .. n - 1; last: n - 1 for a symmetric window, n for one period of many.
local function window(name, n, symmetric, dtype, device, shape)
  if n < 0 then fail(name, "argument 1 must be a whole number from 0, got %d", n) end
  local o = {dtype = "float64", device = device or core.gpu.default_device()}
  local y = n < 2 and ops.ones({n}, o) or shape(ops.range(0, n - 1, 1, o), symmetric and n - 1 or n)
  return M.to(y, dtype or "float32")
end

local function cosines(weights)
  return function(k, last)
    local y
    for i, w in ipairs(weights) do
      local term = ops.cos(k * (2 * math.pi * (i - 1) / last)) * (i % 2 == 1 and w or -w)
      y = y and y + term or term
    end
    return y
  end
end
local function triangle(k, last) return 1 - M.abs(k * (2 / last) - 1) end
local function kaiser(beta)
  return function(k, last)
    local x = k * (2 / last) - 1
    local top = ops.full({}, beta, {dtype = x.dtype, device = x.device})
    return ops.i0(M.sqrt(M.clamp(1 - x * x, 0)) * beta) / ops.i0(top)
  end
end
local function gaussian(std)
  return function(k, last)
    local x = (k - last / 2) / std
    return ops.exp(x * x * -0.5)
  end
end

local HANN, HAMMING, BLACKMAN = {0.5, 0.5}, {0.54, 0.46}, {0.42, 0.5, 0.08}
local NUTTALL = {0.3635819, 0.4891775, 0.1365995, 0.0106411}
local ALL = {{"hann", cosines(HANN)}, {"hamming", cosines(HAMMING)}, {"blackman", cosines(BLACKMAN)}, {"bartlett", triangle}}
for _, w in ipairs(ALL) do
  local name, shape = w[1] .. "_window", w[2]
  def(name, "n:int, periodic:bool=true, *" .. MAKE,
    ("the %s window of n elements; periodic=false: a symmetric one"):format(w[1]:gsub("^%l", string.upper)),
    function(n, periodic, dtype, device) return window(name, n, not periodic, dtype, device, shape) end, lib.MAKES)
end
def("kaiser_window", "n:int, periodic:bool=true, beta:number=12, *" .. MAKE,
  "the Kaiser window of n elements; a larger beta: a narrower one",
  function(n, periodic, beta, dtype, device) return window("kaiser_window", n, not periodic, dtype, device, kaiser(beta)) end, lib.MAKES)

ALL[#ALL + 1] = {"nuttall", cosines(NUTTALL)}
ALL[#ALL + 1] = {"cosine", function(k, last) return ops.sin((k + 0.5) * (math.pi / (last + 1))) end}
for _, w in ipairs(ALL) do
  local name, shape = "signal.windows." .. w[1], w[2]
  def(name, "n:int, *, sym:bool=true" .. MAKE,
    ("the %s window of n elements; sym=false: one period of many"):format(w[1]:gsub("^%l", string.upper)),
    function(n, sym, dtype, device) return window(name, n, sym, dtype, device, shape) end, lib.MAKES)
end
def("signal.windows.kaiser", "n:int, *, beta:number=12, sym:bool=true" .. MAKE, "the Kaiser window; a larger beta: a narrower one",
  function(n, beta, sym, dtype, device) return window("signal.windows.kaiser", n, sym, dtype, device, kaiser(beta)) end, lib.MAKES)
def("signal.windows.gaussian", "n:int, *, std:number=1, sym:bool=true" .. MAKE,
  "the Gaussian window of standard deviation std, in elements",
  function(n, std, sym, dtype, device)
    if std <= 0 or std ~= std then fail("signal.windows.gaussian", "std must be above 0, got %g", std) end
    return window("signal.windows.gaussian", n, sym, dtype, device, gaussian(std))
  end, lib.MAKES)
def("signal.windows.exponential", "n:int, *, center:number?, tau:number=1, sym:bool=true" .. MAKE,
  "exp(-|k - center| / tau) for k = 0 .. n - 1; center, which only a window with sym=false may have, defaults to the middle",
  function(n, center, tau, sym, dtype, device)
    local name = "signal.windows.exponential"
    if tau <= 0 or tau ~= tau then fail(name, "tau must be above 0, got %g", tau) end
    if center and sym then fail(name, "center can't be given for a symmetric window; use sym=false") end
    return window(name, n, sym, dtype, device, function(k, last) return ops.exp(M.abs(k - (center or last / 2)) * (-1 / tau)) end)
  end, lib.MAKES)
def("signal.windows.general_cosine", "n:int, *, a:any, sym:bool=true" .. MAKE,
  "sums of cosines: of a's numbers the i-th is the weight of cos(2 pi (i - 1) k / (n - 1)), with the other sign for each second one",
  function(n, a, sym, dtype, device)
    local name = "signal.windows.general_cosine"
    if core.is_tensor(a) then a = M.totable(a) end
    if type(a) ~= "table" or #a == 0 then fail(name, "a must be a list of numbers, got %s", lib.shown(a)) end
    for i, w in ipairs(a) do
      if type(w) ~= "number" then fail(name, "a[%d] must be a number, got %s", i, lib.shown(w)) end
    end
    return window(name, n, sym, dtype, device, cosines(a))
  end, lib.MAKES)
def("signal.windows.general_hamming", "n:int, *, alpha:number=0.54, sym:bool=true" .. MAKE, "alpha - (1 - alpha) cos(2 pi k / (n - 1))",
  function(n, alpha, sym, dtype, device)
    return window("signal.windows.general_hamming", n, sym, dtype, device, cosines {alpha, 1 - alpha})
  end, lib.MAKES)
