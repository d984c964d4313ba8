-- Tycho: tensors, gradients and training for LuaJIT. `local tycho = require "tycho"`.
--
-- Idea: the module gathers the C core's functions, the methods of tensors, and the library's parts, such as tycho.nn, which load when they
-- are first named. Invariant: loading touches no global variable and starts no thread and no device before something is computed.
local ffi = require "ffi"

-- OpenMP's idle threads spin before they sleep. libgomp's default spin time is so long that it slows down whatever else runs: a small
-- training step took twice its time, and two processes on the same cores thirty times. libgomp reads the setting when it is loaded,
-- together with the core, so nothing may require the core before this function does. A setting of the user's own stands; and the
-- environment of a process with other threads, which may be reading it, is left alone.
local function has_threads()
  local f = io.open "/proc/self/stat"
  if not f then return false end
  local threads = f:read("*a"):match("^.*%) %a" .. (" %-?%d+"):rep(16) .. " (%d+)")
  f:close()
  return threads ~= "1"
end
local function load_core()
  if os.getenv("GOMP_SPINCOUNT") or os.getenv("OMP_WAIT_POLICY") or has_threads() then return require "tycho.core" end
  pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);")
  pcall(function() ffi.C.setenv("GOMP_SPINCOUNT", "2000", 1) end)
  local ok, core = pcall(require, "tycho.core")
  pcall(function() ffi.C.unsetenv("GOMP_SPINCOUNT") end)
  if not ok then error(core, 0) end
  return core
end
local core = load_core()
local options = require "tycho.options"
local fail = options.fail
core.set_library(debug.getinfo(1, "S").source:match "^(.*)init%.lua$" or "?")       -- errors name the user's line
local ops, M = core.ops, core.methods

local tycho = {version = core.version, __version__ = core.version, pi = math.pi, e = math.exp(1), inf = math.huge, nan = 0 / 0,
  newaxis = "newaxis"}     -- in braces: a new dim of size 1

local Shape = require "tycho.shape"
core.set_private("format", require("tycho.format").text_of)

-- Every op of the table becomes a function and a method, unless a Lua function replaces it; a trailing _ works in place. Ops of domain
-- "internal" are not public.
local functional = require "tycho.functional"
local later = require "tycho.later"
local makes = {fill = true, random = true}
for _, op in ipairs(core.op_table()) do
  if op.domain ~= "internal" and not functional.has(op.name) then
    tycho[op.name] = ops[op.name]
    if not (makes[op.class] and not op.signature:match("^x")) and op.class ~= "cat" then M[op.name] = ops[op.name] end
    if op.inplace then
      M[op.name .. "_"] = ops[op.name .. "_"]
      tycho[op.name .. "_"] = ops[op.name .. "_"]
    end
  end
end
-- PyTorch's other names for ops
for name, of in pairs {
  absolute = "abs", negative = "neg", multiply = "mul", subtract = "sub", fix = "trunc", arcsin = "asin", arccos = "acos",
  arctan = "atan", arctan2 = "atan2", arcsinh = "asinh", arccosh = "acosh", arctanh = "atanh", greater = "gt", greater_equal = "ge",
  less = "lt", less_equal = "le", not_equal = "ne", concat = "cat", concatenate = "cat", sgn = "sign", expit = "sigmoid",
  log_sigmoid = "logsigmoid"} do
  functional.alias(name, of)
end
M.fill = nil          -- only fill_ and full_like are PyTorch's
tycho.fill, tycho.copy, M.copy = nil, nil, nil
tycho.uniform, tycho.normal, M.uniform, M.normal = nil, nil, nil, nil

-- Makes the __index of a table of functions: looking up a name loads the file that defines it, which fills in all of that file's names.
local function function_of(prefix)
  return function(t, name)
    local _ = functional.functions[prefix .. name]
    return rawget(t, name)
  end
end
local no_eig = "there are eigenvalues of symmetric matrices only: eigh and eigvalsh, which read one triangle"
local elsewhere_in = {linalg = {eig = no_eig, eigvals = no_eig}}
functional.root = tycho
for _, path in ipairs(functional.places) do
  local place, last = functional.place(path)
  place[last] = options.told({}, path, nil, elsewhere_in[path], nil, function_of(path .. "."))
end
functional.show()
core.set_private("read_rules", function() later.require "tycho.grad" end)

---- creation ----
-- A nested list as a tensor. As in torch.tensor, a 0-dim tensor in it counts as its number.
local function from_list(value, dtype)
  local ok, x = pcall(core.from_value, value, dtype)
  if ok then return x end
  if not tostring(x):find("holds a tensor", 1, true) then error(x, 0) end
  return core.from_value(require("tycho.tree").map(value, function(v)
    return core.is_tensor(v) and M.dim(v) == 0 and M.item(v) or v
  end), dtype)
end

-- A new tensor, without history, from a number, a boolean, nested lists of these, or a copy of a tensor. dtype: float32 unless given,
-- "bool" for booleans, its own for a tensor. The lists must be of one length at each depth; a list of 0-dim tensors counts as numbers.
tycho.tensor = core.define("tensor",
  "value:any, *, dtype:dtype?, device:device?, requires_grad:bool=false, pin_memory:bool=false",
  function(value, dtype, device, requires_grad, pin_memory)
    local x
    if core.is_tensor(value) then x = ops.clone(dtype and M.to(value:detach(), dtype) or value:detach())
    else x = from_list(value, dtype) end
    if not device and not core.is_tensor(value) then device = core.gpu.default_device() end
    if device and device ~= x.device then x = M.to(x, device) end
    if pin_memory then x = M.pin_memory(x) end
    return requires_grad and M.requires_grad_(x) or x
  end)

-- As tensor, but a tensor that has that dtype and device already is given back itself, with its history.
tycho.as_tensor = core.define("as_tensor", "value:any, *, dtype:dtype?, device:device?", function(value, dtype, device)
  if not core.is_tensor(value) then return tycho.tensor(value, {dtype = dtype, device = device}) end
  if dtype and dtype ~= value.dtype then value = M.to(value, dtype) end
  return device and device ~= value.device and M.to(value, device) or value
end)

tycho.from_ffi = require "tycho.memory"

tycho.arange = function() fail("arange: there is no arange; range(first, last, step) includes both ends, as Lua's for does") end

---- methods beside ops ----
functional.method("where", function(a, cond, b) return ops.where(cond, a, b) end)     -- PyTorch's order for the method
-- for i, row in x:iter(dim) do: the slices along a dim (1 unless given), each a view.
functional.method("iter", function(x, dim)
  dim = options.named("iter", "dim", dim) or 1
  local i, n = 0, M.size(x, dim)
  return function()
    i = i + 1
    if i <= n then return i, ops.select(x, dim, i) end
  end
end)
-- A text that describes a tensor: dtype, shape, device, strides, bytes; least and largest element, mean and std of those that aren't NaN or
-- infinite, and how many are. It waits for the GPU.
functional.method("describe", function(x)
  local y = M.double(M.detach(x))
  local text = ("%s tensor of size %s on %s, strides %s, %d bytes"):format(x.dtype, tostring(x.shape), x.device,
    tostring(M.stride(x)), M.numel(x) * M.element_size(x))
  if M.numel(x) > 0 then
    local nan, inf, finite = M.sum(ops.isnan(y)):item(), M.sum(ops.isinf(y)):item(), M.masked_select(y, ops.isfinite(y))
    if #finite > 0 then
      text = text .. ("\nmin %g, max %g, mean %g, std %g,"):format(M.min(finite):item(), M.max(finite):item(), M.mean(finite):item(),
        M.std(finite, {correction = #finite > 1 and 1 or 0}):item())
    else text = text .. "\nno finite element," end
    text = text .. (" NaN %d, inf %d"):format(nan, inf)
  end
  return text
end)

-- where(cond): the places where cond isn't 0, as nonzero(cond, {as_tuple = true}) gives them
function tycho.where(cond, ...)
  if select("#", ...) == 0 and core.is_tensor(cond) then return M.nonzero(cond, {as_tuple = true}) end
  return ops.where(cond, ...)
end
-- As totable().
M.tolist = M.totable
for _, dtype in ipairs(core.dtypes) do if not tycho[dtype] then tycho[dtype] = dtype end end          -- tycho.float32 is "float32"
for name, dtype in pairs {float = "float32", half = "float16", double = "float64", int = "int32", long = "int64"} do tycho[name] = dtype end

---- modes ----
local modes = require "tycho.modes"
tycho.no_grad, tycho.enable_grad = modes.no_grad, modes.enable_grad
-- inference_mode(fn, ...): as no_grad. inference_mode(false, fn, ...) only calls fn.
function tycho.inference_mode(mode, ...)
  if type(mode) ~= "boolean" then return modes.no_grad(mode, ...) end
  if not mode then
    local fn = ...
    if not modes.callable(fn) then fail("inference_mode: argument 2 must be a function, got " .. type(fn)) end
    return fn(select(2, ...))
  end
  return modes.no_grad(...)
end
-- is_grad_enabled(): whether ops are recorded for backward at this point.
tycho.is_grad_enabled = core.is_grad_enabled
-- set_grad_enabled(on): turns recording on or off from here on, in this coroutine. set_grad_enabled(on, fn, ...): only while fn runs.
function tycho.set_grad_enabled(on, fn, ...)
  if type(on) ~= "boolean" then fail("set_grad_enabled: argument 1 must be true or false, got " .. type(on)) end
  if fn ~= nil then return (on and modes.enable_grad or modes.no_grad)(fn, ...) end
  modes.set_grad_enabled(on)
end
tycho.scope = modes.scope
-- keep(x): the tensor outlives every scope; returns x.
tycho.keep = core.keep

---- the rest of the library ----
-- is_tensor(value): whether it is a tensor.
tycho.is_tensor = core.is_tensor
tycho.numel, tycho.detach = M.numel, M.detach
-- manual_seed(seed): seeds the random generators of the CPU and of all GPUs with a whole number from 0.
tycho.manual_seed = core.manual_seed
-- The state of the CPU's random generator, for set_rng_state: a list of its seed and offset. For GPUs see tycho.cuda.get_rng_state.
function tycho.get_rng_state() return {core.gpu.rng_state("cpu")} end
-- Puts the CPU's random generator into a state that get_rng_state gave.
function tycho.set_rng_state(state, offset) core.gpu.rng_state("cpu", options.rng_state(state, offset)) end
-- set_printoptions{precision=4, threshold=1000, edgeitems=3, linewidth=80, sci_mode=, profile=}: how tensors are printed. sci_mode:
-- scientific notation always (true), never (false), or "auto", as the numbers need it. profile: "default", "full" or "short" sets several
-- options at once.
function tycho.set_printoptions(o)
  local settings = require("tycho.format").settings
  local profiles = {default = {precision = 4, threshold = 1000, edgeitems = 3, linewidth = 80},
    short = {precision = 2, threshold = 1000, edgeitems = 2, linewidth = 80},
    full = {precision = 4, threshold = math.huge, edgeitems = 3, linewidth = 80}}
  options.check("set_printoptions", o,
    {precision = true, threshold = true, edgeitems = true, linewidth = true, sci_mode = true, profile = true})
  if o.profile ~= nil and not profiles[o.profile] then
    fail("set_printoptions: profile must be 'default', 'full' or 'short', got %s", options.shown(o.profile))
  end
  if o.sci_mode ~= nil and type(o.sci_mode) ~= "boolean" and o.sci_mode ~= "auto" then
    fail("set_printoptions: sci_mode must be true, false or 'auto', got %s", options.shown(o.sci_mode))
  end
  for k, least in pairs {precision = 0, edgeitems = 1, linewidth = 1} do
    if o[k] ~= nil then options.whole("set_printoptions", k, o[k], least) end
  end
  if (o.precision or 0) > 64 then fail("set_printoptions: precision must be at most 64, got %.0f", o.precision) end
  if o.threshold ~= nil then options.number("set_printoptions", "threshold", o.threshold, 0) end
  for k, v in pairs(profiles[o.profile] or {}) do settings[k] = v end
  for k, v in pairs(o) do if k ~= "profile" and k ~= "sci_mode" then settings[k] = v end end
  if o.sci_mode == "auto" or o.profile then settings.sci_mode = nil end
  if type(o.sci_mode) == "boolean" then settings.sci_mode = o.sci_mode end
end
-- broadcast_shapes({sizes}, {sizes}, ...): the common shape that tensors of these shapes broadcast to.
function tycho.broadcast_shapes(...)
  local list = {...}
  for i = 1, select("#", ...) do
    if type(list[i]) ~= "table" then fail("broadcast_shapes: argument %d must be a list of sizes, got %s", i, options.shown(list[i])) end
    for d, size in ipairs(list[i]) do options.whole("broadcast_shapes", ("dim %d of argument %d"):format(d, i), size, 0) end
  end
  return setmetatable(functional.common_shape("broadcast_shapes", list), Shape)
end
tycho.promote_types = require("tycho.functional.lib").promote_types
-- The dtype that a + b would have: tensors, numbers, booleans.
function tycho.result_type(a, b)
  for i, v in ipairs {a == nil and {} or a, b == nil and {} or b} do
    if not core.is_tensor(v) and type(v) ~= "number" and type(v) ~= "boolean" then
      fail("result_type: argument %d must be a tensor, a number or a boolean, got %s", i, options.shown(({a, b})[i]))
    end
  end
  if not core.is_tensor(a) and not core.is_tensor(b) then a = core.from_value(a, type(a) == "number" and a % 1 == 0 and "int64" or nil) end
  return require("tycho.functional.lib").result_type(a, b)
end
-- Whether a value of dtype `from` can become one of dtype `to`, perhaps rounded: a float can't become an integer, nor an integer a boolean.
function tycho.can_cast(from, to)
  local function rank(dtype)
    local d = core.ops.zeros({0}, {dtype = dtype, device = "cpu"})
    return M.is_floating_point(d) and 3 or d.dtype == "bool" and 1 or 2
  end
  return rank(from) <= rank(to)
end
-- "highest": float32 products are full precision. "high", "medium": on GPUs operands may be rounded to TF32 (10 bits of mantissa), which
-- is faster.
function tycho.set_float32_matmul_precision(precision)
  if precision ~= "highest" and precision ~= "high" and precision ~= "medium" then
    fail("set_float32_matmul_precision: argument 1 must be 'highest', 'high' or 'medium', got %s",
      options.shown(precision))
  end
  tycho.backends.cuda.matmul.allow_tf32 = precision ~= "highest"
end
-- "highest", or "high" where products may use TF32.
function tycho.get_float32_matmul_precision() return tycho.backends.cuda.matmul.allow_tf32 and "high" or "highest" end
-- The seed set by the last manual_seed, or at the start of the process.
function tycho.initial_seed() return (core.gpu.rng_state "cpu") end
-- Calls fn(...) and gives its results; afterwards restores the random generators of the CPU and the GPUs to their states before the call.
function tycho.fork_rng(fn, ...)
  if not modes.callable(fn) then fail("fork_rng: argument 1 must be a function, got " .. type(fn)) end
  local seed, offset = core.gpu.rng_state "cpu"
  local gpus = tycho.cuda.is_available() and tycho.cuda.get_rng_state_all() or {}
  return options.finally(function()
    core.gpu.rng_state("cpu", seed, offset)
    tycho.cuda.set_rng_state_all(gpus)
  end, fn, ...)
end
-- The dtype that creators use where none is given: always "float32". It can't be changed; creators take {dtype=}.
function tycho.get_default_dtype() return "float32" end
-- The device that creators use where none is given: "cpu" at first; "cuda" means the GPU that is current at the time.
function tycho.get_default_device() return (select(2, core.gpu.default_device())) end
-- From now on creators, modules' parameters and tycho.load use this device where none is given: "cpu", "cuda", "cuda:1".
function tycho.set_default_device(device)
  if type(device) ~= "string" then
    fail("set_default_device: argument 1 must be a device such as 'cpu' or 'cuda:0', got " .. type(device))
  end
  core.gpu.default_device(device)
end
-- A device's name, checked: "cpu", "cuda"; device("cuda", 1) is "cuda:1".
function tycho.device(name, index)
  if index ~= nil then options.whole("device", "argument 2 (index)", index, 0) end
  if type(name) ~= "string" or not (name == "cpu" or name:match "^cuda$" or name:match "^cuda:%d+$") then
    fail("device: argument 1 must be 'cpu', 'cuda' or 'cuda:0', got " .. options.shown(name))
  end
  if index and name ~= "cuda" then fail("device: an index goes with 'cuda', not with '%s'", name) end
  return index and name .. ":" .. index or name
end
-- What a floating dtype can hold: {bits=, eps=, max=, min=, tiny=, smallest_normal=, dtype=}.
function tycho.finfo(dtype)
  dtype = dtype or "float32"
  local range = functional.RANGE[dtype] or fail("finfo: argument 1 must be a floating dtype, got " .. options.shown(dtype))
  return {bits = range.bits, eps = functional.EPS[dtype], max = range.max, min = -range.max, tiny = range.tiny,
    smallest_normal = range.tiny, dtype = dtype}
end
-- What int32, int64 or uint8 can hold: {bits=, min=, max=, dtype=}; numbers are exact to 2^53.
function tycho.iinfo(dtype)
  local w = functional.WHOLE[dtype] or fail("iinfo: argument 1 must be int32, int64 or uint8, got " .. options.shown(dtype))
  return {bits = w[1], min = w[2], max = w[3], dtype = dtype}
end
-- true: the same inputs give the same bits in every run, with which some GPU kernels are slower.
function tycho.use_deterministic_algorithms(on)
  if type(on) ~= "boolean" then fail("use_deterministic_algorithms: argument 1 must be a boolean, got " .. type(on)) end
  core.gpu.flag("deterministic", on)
end
-- Whether err, what pcall gave, is an error for lack of memory, on a device or the host: then fewer items at a time may do.
function tycho.is_out_of_memory(err)
  return type(err) == "string" and (err:find("out of memory", 1, true) or err:find("not enough memory", 1, true)) ~= nil
end
-- Whether use_deterministic_algorithms(true) is in force.
function tycho.are_deterministic_algorithms_enabled() return core.gpu.flag("deterministic") end
tycho.backends = require "tycho.backends"
tycho.compiler = options.told({}, "compiler", nil, {
  disable = "a compiled function runs its Lua code in each call, so that any function may stand in it",
  reset = "what was recorded goes with the compiled function: make another one",
  cudagraph_mark_step_begin = "results are the caller's own, so that nothing has to be marked"})
-- Whether this is the call of a compiled function that is recorded, or compared with what was recorded.
function tycho.compiler.is_compiling() return (core.program.active()) end
-- set_num_threads(n): how many threads CPU ops use, from 1; get_num_threads() tells. The default is OpenMP's (OMP_NUM_THREADS).
tycho.set_num_threads, tycho.get_num_threads = core.set_num_threads, core.get_num_threads
tycho.autograd = require "tycho.autograd"
tycho.grad = tycho.autograd.grad

-- steps numbers from base^first to base^last, their exponents evenly spaced.
tycho.logspace = core.define("logspace",
  "first:number, last:number, steps:int, base:number=10, *, dtype:dtype?, device:device?, requires_grad:bool=false",
  function(first, last, steps, base, dtype, device, requires_grad)
    options.whole("logspace", "argument 3 (steps)", steps, 0)
    local exponents = ops.linspace(first, last, steps, {dtype = "float64", device = device or core.gpu.default_device()})
    return M.requires_grad_(M.to(ops.pow(base, exponents), dtype or "float32"), requires_grad)
  end)
-- Random counts from Poisson distributions whose rates are x's elements, in x's shape and dtype.
tycho.poisson = core.define("poisson", "x", function(x) return require("tycho.distributions").Poisson(x):sample() end)
-- Random numbers of successes in count trials, each of probability prob: floating tensors of one shape.
tycho.binomial = core.define("binomial", "count, prob", function(count, prob)
  return require("tycho.distributions").Binomial(count, {probs = prob}):sample()
end)

-- Functions that draw random numbers also accept a generator of the caller's.
local generator = require "tycho.generator"
tycho.Generator = generator.Generator
for _, name in ipairs {"rand", "randn", "randint", "randperm", "uniform_", "exponential_", "multinomial", "poisson", "binomial"} do
  if rawget(M, name) then M[name] = generator.drawing(name, M[name]) end
  if rawget(tycho, name) then tycho[name] = generator.drawing(name, tycho[name]) end
end

-- Loaded when first used.
local late = {nn = "tycho.nn", optim = "tycho.optim", data = "tycho.data", cuda = "tycho.cuda", utils = "tycho.utils",
  amp = "tycho.amp", compile = "tycho.compile", jit = "tycho.jit", distributions = "tycho.distributions",
  checkpoint = "tycho.checkpoint", profiler = "tycho.profiler", distributed = "tycho.distributed", func = "tycho.func",
  testing = "tycho.testing", vision = "tycho.vision"}
for module, names in pairs {amp = "autocast GradScaler is_autocast_enabled get_autocast_dtype", func = "vmap", saving = "save load",
    numpy = "load_npy save_npy load_npz save_npz"} do
  for name in names:gmatch "%S+" do late[name] = {"tycho." .. module} end
end
-- The layouts that memory_format takes, by PyTorch's names.
tycho.channels_last, tycho.contiguous_format, tycho.preserve_format = "channels_last", "contiguous", "preserve"
-- Names that PyTorch programs look for here, and what to use instead.
local elsewhere = {
  set_flush_denormal = "there is no such mode", set_num_interop_threads = "there is one pool of threads: use set_num_threads",
  set_default_dtype = "give {dtype = \"float64\"} where a tensor is made, and call double() of modules",
  hessian = "use tycho.autograd.functional.hessian", jacobian = "use tycho.autograd.functional.jacobian",
  Tensor = "use tycho.tensor(list), zeros or empty", FloatTensor = "use tycho.tensor(list), which gives float32",
  LongTensor = "use tycho.tensor(list, {dtype = \"int64\"})", from_numpy = "use tycho.load_npy for a file, from_ffi for a pointer",
  Size = "a shape is a plain list, as in {2, 3}", deepcopy = "use clone(), which copies tensors and modules",
  seed = "use manual_seed(n)", OutOfMemoryError = "give what pcall returns to is_out_of_memory(err)",
  random = "use manual_seed, get_rng_state and set_rng_state of tycho", accelerator = "use tycho.cuda",
  export = "use jit.trace(model, example)", onnx = "use jit.trace(model, example) and traced:save(path)",
  hub = "use tycho.load or jit.load, which read files", models = "use vision.models, or jit.load, which reads a trace",
  asarray = "use tycho.tensor(list), or from_ffi for a pointer", frombuffer = "use from_ffi, which takes a pointer",
  cholesky = "use linalg.cholesky", qr = "use linalg.qr", lu = "use linalg.lu_factor or linalg.lu", chain_matmul = "use linalg.multi_dot",
  complex = "use fft.complex, which joins real and imaginary parts", solve = "use linalg.solve", is_nonzero = "use x:item() ~= 0",
  angle = "use fft.angle", polar = "use fft.polar", view_as_complex = "complex numbers are pairs along a last dim of 2; use fft.complex",
  view_as_real = "complex numbers are pairs along a last dim of 2, as they are", real = "use x[{\"...\", 1}] of complex numbers as pairs",
  imag = "use x[{\"...\", 2}] of complex numbers as pairs", segment_reduce = "use scatter_reduce",
  sparse = "there are no sparse tensors; use index_add or scatter_add to sum by index",
  sparse_coo_tensor = "there are no sparse tensors; use index_add or scatter_add to sum by index"}
later.note(tycho)
if os.getenv "TYCHO_CUDA_ALLOC_CONF" then require "tycho.cuda" end             -- it sets them
return options.told(tycho, "tycho", nil, elsewhere, late, function_of "")
