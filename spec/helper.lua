-- What specs share: comparison of tensors, layouts to put operands in, the replay of golden cases.
local tycho = require "tycho"
local core = require "tycho.core"
local functions = require("tycho.functional").functions
local helper = {}

-- TYCHO_TEST_DEVICE=cuda makes tensors there, where a spec says nothing else.
helper.device = os.getenv("TYCHO_TEST_DEVICE") or "cpu"
if helper.device ~= "cpu" then tycho.set_default_device(helper.device) end
-- Whether that device is the simulated GPU, a hundred times slower: some cases are smaller there, which make test-sim-full has whole.
helper.simulated = helper.device ~= "cpu" and os.getenv "TYCHO_SIM" ~= nil and os.getenv "TYCHO_SIM_WHOLE" == nil
-- How many tensors may live at a time: the simulated GPU without a cache maps each by itself, and a process has 65,530 maps.
helper.many = os.getenv "TYCHO_CUDA_CACHE" == "0" and 10000 or 100000
function helper.on_device(x) return helper.device == "cpu" and x or x:to(helper.device) end
local TOLERANCE = {float64 = 1e-10, float32 = 2e-5, float16 = 2e-3, bfloat16 = 1.6e-2}

-- Raises where a and b differ in shape or dtype, or by more than the dtype's tolerance: relative to each element, and to the largest
-- that b has (1 where that is more), below which small ones lose digits. least: what the largest counts as at least, where b is what
-- larger numbers leave.
function helper.close(a, b, what, tolerance, least)
  what = what or "result"
  if a.shape ~= b.shape then error(("%s: shape %s, expected %s"):format(what, tostring(a.shape), tostring(b.shape)), 2) end
  if a.dtype ~= b.dtype then error(("%s: dtype %s, expected %s"):format(what, a.dtype, b.dtype), 2) end
  if a:numel() == 0 then return end
  local tol = tolerance or TOLERANCE[a.dtype] or 0
  local x, y = a:detach():cpu():double(), b:detach():cpu():double()
  local same = tycho.logical_or(x:eq(y), tycho.logical_and(x:isnan(), y:isnan()))
  local size = tycho.where(y:abs():lt(math.huge), y:abs(), 0)                -- a NaN's too
  local near = ((x - y):abs()):le((size + math.max(math.min(size:max():item(), 1), least or 0)) * tol)
  local bad = tycho.logical_or(same, near):logical_not()
  if bad:any():item() then
    local at = bad:flatten():nonzero()[{1, 1}]
    error(("%s: element %d is %.10g, expected %.10g"):format(what, at, x:flatten()[at], y:flatten()[at]), 2)
  end
end

-- The same of a number or list of what is wanted, in got's dtype.
function helper.is(want, got, tolerance) return helper.close(got, tycho.tensor(want, {dtype = got.dtype}), nil, tolerance) end

-- Raises where a and b differ in shape, dtype or bits, but for those of NaNs.
function helper.exact(a, b, what)
  what = what or "result"
  if a.shape ~= b.shape then error(("%s: shape %s, expected %s"):format(what, tostring(a.shape), tostring(b.shape)), 2) end
  if a.dtype ~= b.dtype then error(("%s: dtype %s, expected %s"):format(what, a.dtype, b.dtype), 2) end
  local same
  if a.dtype:find "float" then
    local x, y = a:detach():cpu():double(), b:detach():cpu():double()
    same = x:eq(y):logical_and((1 / x):eq(1 / y)):logical_or(x:isnan():logical_and(y:isnan())):all():item()     -- 0 isn't -0
  else same = a:equal(b) end
  if not same then error(what .. ": other bits", 2) end
end

-- A function that draws 1 .. n, from a seed alone, whatever Tycho's generators do.
function helper.drawer(seed)
  local state = seed * 7919 + 17
  return function(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % n + 1
  end
end

-- Collects until nothing more goes, what earlier specs have left too; gives the bytes of tensors that stay.
function helper.collected()
  local bytes
  jit.flush()                              -- compiled code holds tensors that it was compiled with
  repeat
    bytes = core.allocated()
    collectgarbage()
    collectgarbage()
  until core.allocated() == bytes
  return bytes
end

-- Allocations that fail, so many in a row from the n-th on, n = 1, 2, ... until there are no more: prepare() gives what allocates, and what
-- is looked at afterwards (or nothing). It must go well or say what is lacking, and leave no bytes behind. Gives how often it failed.
function helper.failing_allocations(times, prepare)
  local failures = 0
  local function failing(n)
    local fn, after = prepare()
    core.fail_alloc(n, times)
    local ok, err = pcall(fn)
    local left = core.fail_alloc(0)
    if not ok then
      failures = failures + 1
      if not (tostring(err):find "out of memory" or tostring(err):find "not enough memory") then error(err, 0) end
    end
    if after then after() end
    return ok and left > 0
  end
  failing(2 ^ 30)
  local base, n = helper.collected(), 0
  repeat
    n = n + 1
    local done = failing(n)
    local bytes = helper.collected()
    if bytes > base then error(("allocation %d: %d bytes leaked"):format(n, bytes - base), 0) end
    base = bytes
    if n == 20000 then error("allocations still fail: what is tested makes ever more of them", 0) end
  until done
  return failures
end

-- fn must raise an error that contains pattern (plain text).
function helper.fails(pattern, fn, ...)
  if helper.device ~= "cpu" then tycho.cuda.set_sync_debug(true) end   -- else a bad index is reported later
  local ok, err = pcall(fn, ...)
  if helper.device ~= "cpu" then tycho.cuda.set_sync_debug(false) end
  if ok then error("no error; expected one with '" .. pattern .. "'", 2) end
  if not tostring(err):find(pattern, 1, true) then error(("error '%s' lacks '%s'"):format(tostring(err), pattern), 2) end
end

-- The same elements in memory of another shape; nil where x can't be laid out so.
helper.layouts = {
  contiguous = function(x) return x end,
  transposed = function(x) if x:dim() >= 2 then return x:transpose(1, -1):contiguous():transpose(1, -1) end end,
  strided = function(x)
    if x:dim() == 0 then return end
    local big = tycho.zeros(x.shape, {dtype = x.dtype, device = x.device}):unsqueeze(-1):tile(unpack((function()
      local r = {}
      for i = 1, x:dim() do r[i] = 1 end
      r[#r + 1] = 2
      return r
    end)()))
    local v = big:select(-1, 2)
    v:copy_(x)
    return v
  end,
  offset = function(x)
    local flat = tycho.zeros(x:numel() + 3, {dtype = x.dtype, device = x.device})
    local v = flat[{ {4, x:numel() + 3} }]:view(x.shape)
    v:copy_(x)
    return v
  end,
}

-- A file's tensors, on the device, and its metadata.
function helper.read(path)
  local tensors, json = core.read_safetensors(path)
  for name, t in pairs(tensors) do tensors[name] = helper.on_device(t) end
  return tensors, json
end

-- Its elements by an FFI pointer, 0-based: a copy's where x isn't on the CPU.
function helper.pointer(x) return x:cpu():contiguous():data() end

-- The cases of a golden file, with their tensors.
function helper.golden(name)
  local path = "spec/golden/" .. name .. ".safetensors"
  local f = io.open(path, "rb")
  if not f then return nil end
  f:close()
  local tensors, json = helper.read(path)
  local cases = core.json_decode(json)
  for i, c in ipairs(cases) do
    function c.tensor(kind, k) return tensors[("c%d.%s%d"):format(i, kind, k)] end
    c.number = i
  end
  return cases
end

-- The function that PyTorch's samples call so: a method, or one of the library's, as nn.functional.relu.
function helper.named(name)
  if core.methods[name] then return core.methods[name] end
  local at = tycho
  for part in name:gmatch "[^.]+" do at = at[part] end
  return at
end

-- Runs a case's call, of a function or of one that is named, on the given tensors; results as a list.
function helper.run(name, case, inputs)
  local function value(a)
    if type(a) == "string" and a:match("^%$%d+$") then return inputs[tonumber(a:sub(2))] end
    if a == "$nil" then return nil end
    if a == "inf" then return math.huge elseif a == "-inf" then return -math.huge elseif a == "nan" then return 0 / 0 end
    if type(a) == "table" and a.tensor then return tycho.tensor(a.tensor, {dtype = a.dtype, device = helper.device}) end
    if type(a) == "table" then
      local out = {}
      for k, v in pairs(a) do out[k] = value(v) end
      return out
    end
    return a
  end
  if case.call then return {assert(loadstring("local x, i, j = ... return " .. case.call))(unpack(inputs))} end
  local args, n = {}, #case.args
  for k = 1, n do args[k] = value(case.args[k]) end
  if next(case.opts) then
    n = n + 1
    args[n] = {}
    for k, v in pairs(case.opts) do
      if type(v) == "string" or type(v) == "table" then v = value(v) end
      if type(v) == "table" and type(v[1]) == "number" and (k == "weight" or k == "pos_weight") then
        v = tycho.tensor(v, {dtype = inputs[1].dtype, device = helper.device})
      end
      args[n][k] = v
    end
  end
  local fn = type(name) ~= "string" and name or rawget(tycho, name) or functions[name] or core.ops[name]
  local out = {fn(unpack(args, 1, n))}
  if type(out[1]) == "table" then out = out[1] end
  for k, v in ipairs(out) do if type(v) == "boolean" then out[k] = tycho.tensor(v) end end
  return out
end

---- compiled functions ----
-- make(): a fresh setting, and a function of the call's number. Called n times plain and n times compiled, results must
-- be equal to the bit, and so must what state() gives in the end; with fusion too (on the CPU: a GPU's kernels take
-- long to compile). Returns the function compiled without.
function helper.compiled_same(make, n, options)
  local function run(fusion)
    tycho.manual_seed(7)
    local fn, state, arguments = make()
    local o = {fusion = fusion}
    for k, v in pairs(options or {}) do o[k] = v end
    local f = fusion ~= nil and tycho.compile(fn, o) or fn
    local out = {}
    for i = 1, n do
      local args = arguments and arguments(i) or {}
      local r = {f(unpack(args, 1, table.maxn(args)))}
      for k = 1, table.maxn(r) do out[#out + 1] = tycho.is_tensor(r[k]) and r[k]:detach():clone() or r[k] end
    end
    if state then for _, x in ipairs(state()) do out[#out + 1] = x end end
    return out, f
  end
  local plain = run()
  local function compare(got, f)
    if #plain ~= #got then error(("%d results, expected %d"):format(#got, #plain), 3) end
    for i = 1, #plain do
      if tycho.is_tensor(plain[i]) then helper.close(got[i], plain[i], "value " .. i, 0)
      elseif plain[i] ~= got[i] then error(("value %d is %s, expected %s"):format(i, tostring(got[i]), tostring(plain[i])), 3) end
    end
    return f
  end
  if helper.device == "cpu" then compare(run(true)) end    -- elsewhere fusion_spec sees to it: compiling every kernel takes long
  return compare(run(false))
end

-- Two cases for each program, by name: every call goes as recorded; and calls that differ at a place in the middle, which leave what they
-- leave uncompiled. make(here) gives what compiled_same's does; here(x) is a place, of which there are so many at most.
function helper.compiled_programs(programs, places)
  local it = require("busted").it
  local function runs(make, act)
    return function()
      local i, at = 0, 0
      local step, state, arguments = make(function(x)
        at = at + 1
        act(i, at, x)
      end)
      return function(...)
        i, at = i + 1, 0
        return step(...)
      end, state, arguments
    end
  end
  for name, make in pairs(programs) do
    it(name .. ": as recorded", function()
      local r = helper.compiled_same(runs(make, function() end), 8):report()[1]
      if not r.compiled then error(tostring(r.why)) end
      if r.calls ~= 7 then error(("%d calls went as recorded, expected 7"):format(r.calls)) end
    end)
    it(name .. ": read, or left, in the middle", function()
      for place = 1, places do
        helper.compiled_same(runs(make, function(i, at, x)
          if at ~= place then return end
          if i % 4 == 0 then x:sum():item() end                          -- nothing of the call is compiled
          if i % 4 == 2 then tycho.relu(x:detach()) end                  -- another way
        end), 13)
        helper.compiled_same(function()                                  -- fails, is caught, and goes on
          local step, state, arguments = runs(make, function(i, at) if at >= place and i % 5 == 0 then error("once") end end)()
          return function(...)
            local out = {pcall(step, ...)}
            if not out[1] then assert(out[2]:find "once", out[2]) end
            return unpack(out, 2)
          end, state, arguments
        end, 13)
      end
    end)
  end
end

function helper.compiled(f, i) return f:report()[i or 1].compiled end

-- What a Lua program prints, run by itself, on the CPU.
function helper.printed(program, settings)
  local path = os.tmpname()
  local f = assert(io.open(path, "w"))
  f:write(program)
  f:close()
  local p = assert(io.popen((settings or "") .. " TYCHO_TEST_DEVICE= luajit " .. path .. " 2>&1"))
  local text = p:read "*a"
  p:close()
  os.remove(path)
  return text
end

-- Files of specs: what a spec makes under os.tmpname goes when its process ends, also where the spec fails; a fresh folder; a file's
-- bytes; a file of these bytes.
local name, names = os.tmpname, {}
rawset(os, "tmpname", function()
  names[#names + 1] = name()
  return names[#names]
end)
helper.at_end = newproxy(true)             -- busted closes the state; a forked child, which ends by _exit, doesn't
getmetatable(helper.at_end).__gc = function() os.execute("rm -rf " .. table.concat(names, " ")) end
function helper.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir -p " .. path) == 0)
  return path
end
function helper.read_file(path)
  local f = assert(io.open(path, "rb"))
  local s = f:read "*a"
  f:close()
  return s
end
function helper.write_file(path, s)
  local f = assert(io.open(path, "wb"))
  f:write(s)
  f:close()
end

-- Worker processes of this process, known by a variable in their environment: other programs on the machine may have workers, too.
local ours
function helper.mark_workers()
  local ffi = require "ffi"
  ffi.cdef "int getpid(void); int setenv(const char *name, const char *value, int overwrite);"
  ours = "TYCHO_SPEC_PROCESS=" .. ffi.C.getpid()
  ffi.C.setenv(ours:match "(.*)=", ours:match "=(.*)", 1)
end
local function has(pid, file, text)
  local f = io.open("/proc/" .. pid .. "/" .. file)
  local all = f and f:read "*a" or ""
  if f then f:close() end
  return all:find(text, 1, true) ~= nil
end
-- Their numbers; there may be no ps.
function helper.worker_pids()
  local out = {}
  for _, pid in ipairs(core.list_folder "/proc") do
    if tonumber(pid) and has(pid, "cmdline", "tycho.data.remote") and has(pid, "environ", ours .. "\0") then out[#out + 1] = pid end
  end
  return out
end

return helper
