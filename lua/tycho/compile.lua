-- tycho.compile(fn, options): a function that does what fn does, from recorded programs.
--
-- Idea: fn is called with a record running (src/core/program.h). From then on each call runs fn again, but its ops are only compared with
-- the record, which costs a fraction of doing them; when all agreed, the recorded steps run: on the CPU one after another over fixed
-- memory, on a GPU as one captured graph. Any difference is seen, and the call then goes on as it would have without a record. A variant is
-- kept for each shape, dtype and layout of the arguments, value of those that are no tensors, and training mode of the modules that ran.
-- Invariant: what fn leaves behind is what it would have left without compile, but for tensors in tables of the user's own: those made within fn end with the call, unless
-- returned, kept (tycho.keep) or assigned to a module.
local core = require "tycho.core"
local callable = require("tycho.modes").callable
local fill = require("tycho.options").fill
local ops, M = core.ops, core.methods
local program, gpu = core.program, core.gpu

local function debug_print(...)
  if (os.getenv("TYCHO_DEBUG") or ""):find("compile") then io.stderr:write("compile: ", string.format(...), "\n") end
end

local function pack(...) return {n = select("#", ...), ...} end

---- arguments ----
-- Tensors among the arguments are inputs, but for those that require grad: these are what gradients flow to, and stand for themselves.
local function is_input(a) return core.is_tensor(a) and not a.requires_grad end

local function fits(v, args)
  if v.n ~= args.n then return false end
  for i = 1, v.n do
    local was, now = v.args[i], args[i]
    if v.input[i] then
      if not core.is_tensor(now) or not program.alike(was, now) then return false end
    elseif is_input(now) or not rawequal(was, now) then return false end
  end
  for m, training in pairs(v.modules) do if m.training ~= training then return false end end
  return true
end

local function new_variant(args)
  local v = {n = args.n, args = {}, input = {}, modules = {}, calls = 0, misses = 0}
  for i = 1, args.n do
    v.input[i] = is_input(args[i])
    v.args[i] = args[i]
  end
  return v
end

-- The tensors that fn is given. On the CPU the caller's own: the program is bound to their memory. On a GPU, whose graphs keep addresses, and
-- where two share memory: copies, which are made anew unless they were made of the same.
local function inputs_of(v, args)
  v.static = v.static or {}
  local given, list = {n = args.n}, {}
  for i = 1, args.n do
    local a = args[i]
    if not v.input[i] then given[i] = a
    else
      if v.copies == nil or v.copies[i] == nil then
        v.copies = v.copies or {}
        local shared = a.device ~= "cpu"
        for k = 1, i - 1 do shared = shared or (v.input[k] and M.shares_memory(a, args[k])) end
        v.copies[i] = shared
      end
      if v.copies[i] then
        local s = v.static[i]
        if not s then
          s = {tensor = core.keep(ops.clone(a:detach()))}
          v.static[i] = s
        elseif not (s.of and program.same(s.of, a) and s.version == M._version(a) and s.own == M._version(s.tensor) and M._unexposed(a)) then M.copy_(s.tensor, a) end
        s.of, s.version, s.own = core.keep(a:detach()), M._version(a), M._version(s.tensor)
        given[i] = s.tensor
      else given[i] = a end
      list[#list + 1] = given[i]
    end
  end
  return given, list
end

---- results ----
-- Calls visit for each tensor in the results and in plain tables among them, and puts what that gives in its place.
local function each_tensor(results, visit)
  local function walk(x)
    if core.is_tensor(x) then return visit(x) end
    if type(x) == "table" and getmetatable(x) == nil then
      for k, y in pairs(x) do
        local z = walk(y)
        if z ~= y then x[k] = z end
      end
    end
    return x
  end
  for i = 1, results.n do
    if results[i] ~= nil then results[i] = walk(results[i]) end
  end
  return results
end

local function copied(v, results)
  return each_tensor(results, function(x) return program.owns(v.program, x) and ops.clone(x:detach()) or x end)
end

-- A copy of the results with each tensor's number in its place, or the tensor itself where it isn't the program's; and back.
local Number = {}
local function templated(v, results)
  local n = 0
  local function walk(x)
    if core.is_tensor(x) then
      n = n + 1
      return program.owned(v.program, n) and setmetatable({n}, Number) or core.keep(x)
    end
    if type(x) ~= "table" or getmetatable(x) ~= nil then return x end
    local out = {}
    for k, y in pairs(x) do out[k] = walk(y) end
    return out
  end
  local out = {n = results.n}
  for i = 1, results.n do out[i] = walk(results[i]) end
  return out
end
local function filled(v, x)
  if getmetatable(x) == Number then return ops.clone(program.result(v.program, x[1])) end
  if type(x) ~= "table" or getmetatable(x) ~= nil then return x end
  local out = {}
  for k, y in pairs(x) do out[k] = filled(v, y) end
  return out
end

local function in_scope(scope, ok, ...)
  if ok then core.scope_end(scope, ...) else core.scope_end(scope) end
  if not ok then error((...), 0) end
  return ...
end

---- running ----
local function run(v)
  if not program.on_gpu(v.program) then return program.run(v.program) end
  if program.moved(v.program) or not v.graph then
    v.graph = nil
    local old, graph = gpu.current_stream(), gpu.graph_begin()
    local ok, err = pcall(program.capture, v.program)
    gpu.set_stream(old)
    gpu.graph_end(graph, ok)
    if not ok then error(err, 0) end
    v.graph = graph
  end
  program.rates(v.program)
  gpu.graph_replay(v.graph)
  program.ran(v.program)
end

local function record_or_check(self, v, args)
  local check = v.program ~= nil and program.recorded(v.program)
  v.program = v.program or program.new()
  local given, list = inputs_of(v, args)
  local scope = core.scope_begin()
  local observed = not check and not self.observing
  if observed then self.module.observe(function(m) v.modules[m] = m.training end) end
  program.begin(v.program, check, list)
  program.groups = {}
  local out = pack(pcall(self.fn, unpack(given, 1, given.n)))
  v.groups, program.groups = program.groups, nil
  if observed then self.module.observe(nil) end
  local ok = out[1]
  local results = {n = out.n - 1, unpack(out, 2, out.n)}
  local tensors = {}
  if ok then each_tensor(results, function(x) tensors[#tensors + 1] = x; return x end) end
  local finished, due = pcall(program.finish, v.program, ok, tensors)
  if not finished then
    core.scope_end(scope)
    v.dead = true
    error(ok and due or results[1], 0)
  end
  if due then
    run(v)
    copied(v, results)
    v.misses = 0
  elseif program.dead(v.program) then
    v.dead = true
    debug_print("not compiled: %s", program.why(v.program) or "?")
    self.why = program.why(v.program)
  else
    if check then
      v.misses = v.misses + 1
      v.graph = nil
      debug_print("recorded anew: %s", program.why(v.program) or "?")
      if v.misses >= self.max_variants then
        v.dead = true
        debug_print("not compiled: it differed from the record %d times in a row", v.misses)
        self.why = "it differed from the record each time: " .. (program.why(v.program) or "?")
      end
    else debug_print("recorded: %d steps", #program.steps(v.program)) end
  end
  if v.dead then v.program, v.graph, v.static = nil, nil, nil
  elseif not due and self.guard == "inputs" then v.results = templated(v, results) end
  return in_scope(scope, ok, unpack(results, 1, results.n))
end

-- {guard = "inputs"}: fn is asked only where there is no record.
local function trusted(v, args)
  local _, list = inputs_of(v, args)
  if not program.trust(v.program, list) then return nil end
  for i, group in ipairs(v.groups) do
    if type(group.lr) == "number" then program.rate(v.program, i, group.lr) end
  end
  run(v)
  return filled(v, v.results)
end

local Compiled = {}
Compiled.__index = Compiled
function Compiled.__call(self, ...)
  if program.active() then return self.fn(...) end                -- within another one: part of its record
  local args = pack(...)
  local v
  for i, candidate in ipairs(self.variants) do
    if fits(candidate, args) then
      v = candidate
      if i > 1 then
        table.remove(self.variants, i)
        table.insert(self.variants, 1, v)
      end
      break
    end
  end
  if not v then
    if #self.variants >= self.max_variants then
      local dropped = table.remove(self.variants)
      debug_print("more than %d variants: one that was recorded %s is dropped", self.max_variants, dropped.calls > 1 and "and used" or "or not yet")
    end
    v = new_variant(args)
    table.insert(self.variants, 1, v)
  end
  v.calls = v.calls + 1
  if v.calls == 1 or v.dead then return in_scope(core.scope_begin(), pcall(self.fn, ...)) end     -- the first call makes what is made once
  if self.guard == "inputs" and v.results and program.recorded(v.program) then
    local results = trusted(v, args)
    if results then return unpack(results, 1, results.n) end
  end
  return record_or_check(self, v, args)
end

-- What is known of the variants: a list of {calls, steps (names of the recorded ops, or nil), why (it isn't compiled), graph}.
function Compiled:report()
  local out = {}
  for i, v in ipairs(self.variants) do
    out[i] = {calls = v.calls, steps = v.program and program.recorded(v.program) and program.steps(v.program) or nil, compiled = v.program ~= nil and program.recorded(v.program), why = v.dead and self.why or nil}
  end
  return out
end

return function(fn, o)
  o = fill("compile", o, {guard = "full", max_variants = 8}, 2)
  if not callable(fn) then error("compile: argument 1 must be a function or a module, got " .. (core.is_tensor(fn) and "tensor" or type(fn)), 2) end
  if o.guard ~= "full" and o.guard ~= "inputs" then error("compile: guard must be 'full' or 'inputs', got '" .. tostring(o.guard) .. "'", 2) end
  return setmetatable({fn = fn, guard = o.guard, max_variants = o.max_variants, variants = {}, module = require "tycho.nn.module"}, Compiled)
end
