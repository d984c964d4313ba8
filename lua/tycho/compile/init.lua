-- tycho.compile(fn, options): a function that does what fn does, by replaying recorded programs.
--
-- Idea: fn is called while a program records (src/core/program.h). Each later call runs fn again, but its ops are only compared with the
-- record, which costs a fraction of computing them. When all of them agree, the recorded steps run: on the CPU one after another over fixed
-- memory, on a GPU as one captured graph; pointwise chains are fused (src/core/fuse.c). At the first difference the call goes on as it
-- would without a record, and is recorded as another way through fn. There is one variant for each combination of the arguments' shapes,
-- dtypes and layouts, the values of arguments that aren't tensors, and the training modes of the modules that ran; each variant holds its
-- ways.
-- Invariant: fn leaves behind what it would leave without compile. Tensors that fn makes and that nobody holds after the recorded call end
-- with each call; a garbage collection finds out which they are, once per recording.
local core = require "tycho.core"
local module = require "tycho.nn.module"
local outside = require "tycho.compile.outside"
local results_of = require "tycho.compile.results"
local shared = require "tycho.compile.shared"
local tables = require "tycho.compile.tables"
local modes = require "tycho.modes"
local callable = modes.callable
local options = require "tycho.options"
local fail, fill, whole = options.fail, options.fill, options.whole
local ops, M = core.ops, core.methods
local program = core.program
local debug_print, pack, run = shared.debug_print, options.pack, shared.run

---- arguments ----
-- Tensor arguments are inputs, except those that require grad: gradients flow to these, so they are compared by identity.
local function fits(self, v, args)
  if v.n ~= args.n or v.overlap ~= args.overlap then return false end
  for i = 1, v.n do
    local now = args[i]
    if v.twin[i] ~= args.twin[i] then return false end
    local signature = core.is_tensor(now) and program.signature(now) or nil
    if signature ~= v.signature[i] or (not signature and not tables.same_value(v.args[i], now, v.content[i], self.guard == "inputs")) then
      return false
    end
  end
  for m, training in pairs(v.modules) do if m.training ~= training then return false end end
  return true
end

-- With steps = k each tensor has a row for each step.
local function check_rows(args, k)
  for i = 1, args.n do
    local shape = core.is_tensor(args[i]) and args[i].shape
    if shape and shape[1] ~= k then fail("compile: argument %d has shape %s; dim 1 must be %d, a row for each step", i, shape, k) end
    if not shape and tables.hold_tensors(args[i]) then
      fail("compile: argument %d is a table of tensors; with steps = %d each must be an argument of its own", i, k)
    end
  end
end

-- Why the arguments can't be recorded, or nil. args.twin: by argument, the earlier one that is the same tensor. Where others have elements
-- in common, args.overlap: their numbers, as text; args.overlapping: these arguments.
local NONE = {}
local function refused(self, args)
  args.twin = NONE
  for i = 1, args.n do
    if core.is_tensor(args[i]) then
      -- fn may also keep it, hook it or call backward on it; all of this would reach the stand-in, not the argument
      if self.joins and args[i].requires_grad then return "an argument requires a gradient, and backward is called outside fn" end
      for k = 1, i - 1 do
        if rawequal(args[i], args[k]) then
          if args.twin == NONE then args.twin = {} end
          args.twin[i] = args.twin[i] or k
        elseif core.is_tensor(args[k]) and program.overlap(args[i], args[k]) then
          args.overlap, args.overlapping = ("%s %d %d"):format(args.overlap or "", k, i), args.overlapping or {}
          args.overlapping[i], args.overlapping[k] = true, true
        end
      end
    end
  end
end

-- before: calls of variants in whose place this one came; ways: by the number of the program's recording; trusted: the way that runs
-- without calling fn; misses: consecutive calls that agreed with no way. Or nil, and why there can be none.
local function new_variant(self, args)
  local v = {n = args.n, args = {}, twin = args.twin, overlap = args.overlap, overlapping = args.overlapping or NONE, signature = {},
    content = {}, modules = setmetatable({}, {__mode = "k"}), calls = 0, before = 0, misses = 0, ways = {}}
  for i = 1, args.n do
    v.signature[i] = core.is_tensor(args[i]) and program.signature(args[i]) or nil
    if not v.signature[i] then v.args[i], v.content[i] = args[i], tables.content(args[i]) end
    if self.guard == "inputs" and type(args[i]) == "table" and getmetatable(args[i]) == nil and not v.content[i] then
      return nil, "an argument is a table, whose contents may change"
    end
  end
  return v
end

-- a with each expanded dim cut to size 1, so that a copy can be laid out alike.
local function once(a)
  local stride = M.stride(a)
  for d = 1, M.dim(a) do
    if stride[d] == 0 and a.shape[d] > 1 then a = ops.slice(a, d, 1, 1) end
  end
  return a
end

-- Whether fn has kept an argument's copy or a view of it. The copy then belongs to fn.
local function held(v, s)
  if not v.program then return false end
  local own = rawequal(s.tensor, s.copy) and 1 or 2
  for _, way in pairs(v.ways) do own = own + (way.graph and way.graph_holds[s] or 0) end
  return program.input_holders(v.program, s.copy) > own
end

-- The tensors that fn is given. On the CPU these are the caller's own: the program binds to their memory. On a GPU, whose graphs keep
-- addresses, and where two arguments shared storage when recorded, they are copies, refreshed unless the argument is unchanged since the
-- last copy.
local function inputs_of(v, args)
  local given, list = {n = args.n}, {}
  local first = not v.copies
  if first then v.copies, v.static = {}, {} end
  for i = 1, args.n do
    local a = args[i]
    if not v.signature[i] then given[i] = a
    elseif v.twin[i] then given[i] = given[v.twin[i]]
    else
      if first then
        local copied = a.device ~= "cpu" or v.overlapping[i] or program.exposed(a)          -- others may write to it at any time
        for k = 1, i - 1 do copied = copied or (v.signature[k] and M.shares_memory(a, args[k])) end
        v.copies[i] = copied
      end
      if v.copies[i] then
        local s = v.static[i]
        if s and held(v, s) then s = nil end
        if not s then
          s = {copy = core.keep(ops.clone(once(a)))}
          s.tensor = s.copy.shape == a.shape and s.copy or core.keep(ops.expand(s.copy, a.shape))
          v.static[i] = s
        elseif not (s.of and program.marked(s.of, a) and s.own == M._version(s.tensor)) then M.copy_(s.copy, once(a)) end
        s.of, s.own = program.mark(a, s.of), M._version(s.tensor)
        given[i] = s.tensor
      else given[i] = a end
      list[#list + 1] = given[i]
    end
  end
  return given, list
end

-- Changes that fn made in place to a copy are made in the argument too.
local function copy_back(v, args)
  for i, s in pairs(v.static) do
    if M._version(s.tensor) ~= s.own then
      M.copy_(once(args[i]), s.copy)
      s.of, s.own = program.mark(args[i], s.of), M._version(s.tensor)
    end
  end
end

---- running ----
-- again: the call from which on recording is tried once more; nil: never.
local function give_up(v, why, again)
  debug_print("not compiled: %s", why)
  v.given_up, v.why = again or math.huge, why
  v.program, v.static, v.trusted, v.ways = nil, nil, nil, {}
end

-- The settings of the optimizers' steps ({group=, read_again=}), by name, or by name and place; where they have changed, fn is called
-- again. Numbers that the step itself reads again aren't among them.
local function settings_of(steps)
  local out = {}
  for i, step in ipairs(steps) do
    local s = {}
    for k, x in pairs(step.group) do
      if type(x) ~= "table" then s[k] = x
      elseif k ~= "params" then for place, y in pairs(x) do s[k .. " " .. place] = y end end
    end
    for _, name in ipairs(step.read_again) do
      if type(step.group[name]) == "number" then s[name] = nil end
    end
    out[i] = s
  end
  return out
end
local function as_recorded(way)
  for i, s in ipairs(settings_of(way.updates)) do
    local was = way.settings[i]
    for k, x in pairs(s) do if was[k] ~= x then return false end end
    for k in pairs(was) do if s[k] == nil then return false end end
  end
  return true
end

-- Calls fn under pcall and gives the outcome as a list. The variant learns in which mode the modules were that ran before fn switched them,
-- or that fn switched and put back.
local function observed(v, fn, ...)
  local seen, own = {}, {}                 -- own: true where fn has switched the mode itself; "moved": it was another one for a while
  local ended = module.observe(function(m)
    if own[m] == nil and seen[m] == nil then seen[#seen + 1], seen[m] = m, m.training end
  end, function(m)
    if seen[m] == nil then
      seen[#seen + 1], seen[m], own[m] = m, m.training, true
    elseif own[m] and m.training ~= seen[m] then own[m] = "moved" end
  end)
  local out = pack(pcall(fn, ...))
  ended()
  for _, m in ipairs(seen) do
    if own[m] == nil or (own[m] == "moved" and m.training == seen[m]) then v.modules[m] = seen[m] end
  end
  return out
end

-- Runs fn while the program records or compares. Gives pcall's results as a list, whether comparison began, and the optimizers' steps.
local function call(self, v, given, list)
  local updates, before = {}, program.updates
  local check = program.begin(v.program, list)
  program.updates = updates
  local out
  if check and self.guard ~= "inputs" then out = pack(pcall(self.fn, unpack(given, 1, given.n)))
  else out = observed(v, self.fn, unpack(given, 1, given.n)) end
  program.updates = before
  return out, check, updates
end

-- Whether results need gradients from outside and fn hasn't been recorded up to its results: then that begins.
local function joins(self, results)
  if self.joins then return false end
  local any = false
  for _, x in ipairs(shared.tensors_of(results)) do any = any or program.needs_graph(x) end
  if not any then return false end
  self.joins, self.variants = true, {}
  return true
end

-- The sum of the overlapping arguments' versions: more where one has changed in place.
local function versions(v, args)
  local sum = 0
  for i in pairs(v.overlapping) do sum = sum + M._version(args[i]) end
  return sum
end
local CHANGES = "arguments share memory, and the function changes it: pass a clone() of one"

-- A variant's first call isn't recorded: it makes what is made only once, such as an optimizer's state. Copies stand for arguments that
-- overlap, so they may only be read.
local function first_call(self, v, args)
  local before = v.overlap and versions(v, args)
  local out = observed(v, self.fn, unpack(args, 1, args.n))
  if not out[1] then error(out[2], 0) end
  if before and versions(v, args) ~= before then give_up(v, CHANGES) end
  local results = {n = out.n - 1, unpack(out, 2, out.n)}
  local why = self.guard == "inputs" and tables.refused(v.content, args, results)
  if why then give_up(v, why) end
  if joins(self, results) then self.variants[1] = v end
  return unpack(results, 1, results.n)
end

-- The way of the recording that the call agreed with or has made. Ways whose recordings the program has dropped are forgotten.
local function way_of(v)
  local numbers = program.numbers(v.program)
  local way = v.ways[numbers[1]]
  if way and v.known == #numbers then return way end
  local ways = {[numbers[1]] = way or {calls = 1}}
  for i = 2, #numbers do ways[numbers[i]] = v.ways[numbers[i]] end
  v.ways, v.known = ways, #numbers
  return ways[numbers[1]]
end

-- What the end of a call's record needs to know: which arguments results are, by their handles; the tensors in the results (false: fn has
-- failed); and, where their gradients come from outside, that part, or nil and why it can't be recorded.
local function look_at(self, v, args, given, results)
  local argument, tensors = results_of.by_handle(v, args, given), results and shared.tensors_of(results) or {}
  if results and self.joins and program.records(v.program) then return argument, tensors, outside.part(self.fusion, tensors) end
  return argument, tensors
end

-- A function whose calls differed is recorded again after so many times as many calls.
local PATIENCE = 4

-- Gives {ok=, results=, way=, why=, again=, made=}: pcall's outcome; the way whose steps are to run, or nil; the reason to give up
-- recording fn, or nil; the call from which on to try again, or nil: never; and the way that was recorded, or nil. scope: the scope of fn's
-- call. Tensors that fn put where others find them (an upvalue, a table) are kept. way.left lists their numbers in the scope, for each
-- count of tensors seen (calls may differ in tensors that no step makes).
local function record_or_check(self, v, args, given, list, scope)
  v.trusted = nil
  local out, check, updates = call(self, v, given, list)
  local ok, results = out[1], {n = out.n - 1, unpack(out, 2, out.n)}
  local read, argument, tensors, part, none = pcall(look_at, self, v, args, given, ok and results)
  if not read then                         -- such as results nested too deeply; the record must not stay open
    program.finish(v.program, false, {})
    error(argument, 0)
  end
  local useless
  for i = 1, given.n do given[i] = nil end               -- tensors still held after this are those that fn kept
  local due = program.finish(v.program, ok, tensors, part and part.skeleton)
  local unrecorded, said = program.refused(v.program), none or program.why(v.program) or "?"
  local made = tensors                     -- by fn
  if argument then tensors, made = results_of.swapped(results, argument) end
  if part and not unrecorded then
    collectgarbage()
    useless = outside.refused(part, v.program, tensors, core.scope_unfinished(scope, made))
  end
  if unrecorded or useless then core.scope_let_go(scope, made) end           -- the collector frees them, as without compile
  local outcome = {ok = ok, results = results, why = useless}
  if useless or (unrecorded and ok and joins(self, results)) then return outcome end
  local way = not unrecorded and way_of(v) or {}
  if not unrecorded then
    way.left = way.left or {}
    local count = core.scope_count(scope)
    if way.left[count] == nil or not due then
      if not part then collectgarbage() end
      way.left[count] = core.scope_left(scope, made) or false
    end
    if way.left[count] then core.scope_keep(scope, way.left[count]) end
  end
  way.updates, way.settings = updates, settings_of(updates)
  if self.guard == "inputs" and due then v.trusted = way end
  if due then
    v.misses, way.calls, outcome.way = 0, way.calls + 1, way
    return outcome
  end
  v.misses = v.misses + ((check or unrecorded) and 1 or 0)
  if unrecorded then
    v.why = said
    debug_print("not recorded: %s", said)
  else
    v.why = nil
    debug_print(check and "another way is recorded, of %d steps: %s" or "recorded: %d steps", #program.steps(v.program), said)
    shared.print_kernels(program.kernels(v.program))
    if self.guard == "inputs" then way.results = results_of.templated(v, results) end
    way.part = part
  end
  outcome.made = way
  if v.misses >= self.max_variants then
    outcome.why = unrecorded and said or "each call differed from the recording: " .. said
    -- a warm-up may end; arguments that share memory may be changed only where nothing is recorded
    outcome.again = not (unrecorded or v.overlap) and PATIENCE * (v.before + v.calls) - v.before or nil
  end
  return outcome
end

-- The handles that fn made end before the steps run, so that a tensor still held then is one that someone has kept.
local function call_and_run(self, v, args)
  v.program = v.program or program.new(self.guard == "inputs", self.fusion, self.max_variants)
  program.follow(v.program)
  local given, list = inputs_of(v, args)
  local scope = core.scope_begin()
  local handed = {n = given.n}                           -- fn may keep these handles
  for i = 1, given.n do
    if v.twin[i] and v.signature[i] then handed[i] = handed[v.twin[i]]
    else handed[i] = v.static[i] and M.detach(given[i]) or given[i] end
  end
  local before = v.overlap and versions(v, given)
  local done, outcome = pcall(modes.during, {call = scope}, record_or_check, self, v, args, handed, list, scope)
  if not done then
    core.scope_end(scope)
    error(outcome, 0)
  end
  local ok, results, way, why = outcome.ok, outcome.results, outcome.way, outcome.why
  local part = (way or outcome.made or {}).part
  core.scope_end(scope, unpack(results, 1, ok and results.n or 0))
  if way then run(v, way) end
  local missed = before and versions(v, given) ~= before                 -- by a copy: from now on fn itself is called
  if not (missed and ok) then copy_back(v, args) end
  if missed then
    give_up(v, CHANGES)
    if ok then fail("compile: %s; this call has not changed it", CHANGES) end
  end
  if ok then results_of.for_caller(v, args, given, results) end
  if ok and part then outside.join(part, way and v.program, results) end
  why = why or ok and self.guard == "inputs" and tables.refused(v.content, args, results)
  if why then give_up(v, why, outcome.again) end
  if not ok then error(results[1], 0) end
  return unpack(results, 1, results.n)
end

-- {guard = "inputs"}: runs the way without calling fn. fn is called until a call has agreed with the record, since what is made once (an
-- optimizer's state) may be in a record and not in later calls; and again after a call that went another way. Gives nil where the record
-- doesn't fit the present state.
local function trusted(v, way, args)
  if not as_recorded(way) then return nil end
  program.follow(v.program)
  local given, list = inputs_of(v, args)
  if not program.trust(v.program, list) then return nil end
  local n = 0
  for _, step in ipairs(way.updates) do
    for _, name in ipairs(step.read_again) do
      n = n + 1
      if type(step.group[name]) == "number" then program.rate(v.program, n, step.group[name]) end
    end
  end
  way.calls = way.calls + 1
  run(v, way)
  copy_back(v, args)
  local results = results_of.filled(v, way, args, given)
  if way.part then outside.join(way.part, v.program, results) end
  return results
end

-- The variant that the arguments fit, a new one if there is none; or nil and why. Where there are too many, a new one takes the place of
-- the one unused for longest, but only now and then: recording what is soon replaced costs more than it gains.
local RARELY = 1024          -- calls that fit no variant, at most, between two that replace one
local function variant_for(self, args)
  for i, v in ipairs(self.variants) do
    if fits(self, v, args) then
      if i > 1 then
        table.remove(self.variants, i)
        table.insert(self.variants, 1, v)
      end
      if v.calls == 32 then self.pause, self.left = 1, 0 end                 -- it was worth its record
      if v.given_up and v.calls >= v.given_up then
        local new = new_variant(self, args)
        if not new then return v end
        new.before, self.variants[1], v = v.before + v.calls, new, new
      end
      return v
    end
  end
  local new, unfit = new_variant(self, args)
  if not new then return nil, unfit end
  if #self.variants >= self.max_variants then
    local why = ("there are more than %d variants: arguments' shapes, dtypes or plain values, or modules' modes, differ from \z
      call to call ({max_variants=} sets the limit)"):format(self.max_variants)
    for i = 1, args.n do                   -- such a leaf is compared by identity, as parameters are
      if core.is_tensor(args[i]) and args[i].requires_grad and not rawequal(args[i], self.variants[1].args[i]) then
        why = ("argument %d requires a gradient, and is a different tensor in each call"):format(i)
      end
    end
    if self.left > 0 then
      self.left = self.left - 1
      return nil, why
    end
    self.pause, self.why = math.min(2 * self.pause, RARELY), why
    self.left = self.pause
    debug_print("%s", why)
    table.remove(self.variants)
  end
  table.insert(self.variants, 1, new)
  return new
end

local Compiled = {}
Compiled.__index = Compiled

local function new_compiled(fn, o)
  return setmetatable({fn = fn, guard = o.guard, max_variants = o.max_variants, fusion = o.fusion, steps = o.steps, variants = {},
    refused = {}, trees = {}, pause = 1, left = 0}, Compiled)     -- refused: counts of calls by the reason their arguments were refused
end

-- Calls a function whose arguments are tables of tensors, through another compiled function whose arguments are the tensors.
local function of_leaves(self, args, text, flat)
  self.leaves = self.leaves or new_compiled(tables.together(self.fn, self.trees, function() return self.given end,
    function() self.wrote = true end), self)
  if self.wrote and self.guard == "inputs" then          -- a replay without fn would not change the table
    self.leaves.why = "an argument is a table that the function changes or returns"
    return self.fn(unpack(args, 1, args.n))
  end
  local before = self.given
  self.given = args
  return options.finally(function() self.given = before end, self.leaves, text, unpack(flat, 1, flat.n))
end

function Compiled:__tostring() return "compiled function" end
function Compiled.__call(self, ...)
  local args = pack(...)
  if self.steps then check_rows(args, self.steps) end
  -- inside another record, a vmap, a checkpoint, the user's graph capture or anomaly detection, or under saved-tensor hooks
  if shared.busy() or core.lists_operands() or core.saved_hooks() then return self.fn(...) end
  if not self.steps then
    local text, flat = tables.apart(args, self.trees)
    if text then return of_leaves(self, args, text, flat) end
  end
  local why, v = refused(self, args), nil
  if not why then v, why = variant_for(self, args) end
  if why then
    if not self.refused[why] then debug_print("not compiled: %s", why) end
    self.refused[why], self.why = (self.refused[why] or 0) + 1, why
  else v.calls = v.calls + 1 end
  if v and v.calls == 1 then return first_call(self, v, args) end
  -- a coroutine may call in the middle of another coroutine's call
  if why or v.given_up or (v.program and (not program.at_rest(v.program) or program.aliased(v.program, ...))) then
    return self.fn(...)
  end
  if v.trusted and program.recorded(v.program) then
    local results = trusted(v, v.trusted, args)
    if results then return unpack(results, 1, results.n) end
  end
  return modes.scope(call_and_run, self, v, args)     -- results are copied from tensors that end with this scope
end

local function counted(way)
  return ("%d ops, %d kernels"):format(#way.steps, #way.kernels) .. (way.nodes and (", %d nodes"):format(way.nodes) or "")
end
-- A report as text, a line for each way.
local Report = {__tostring = function(ways)
  local lines = {}
  for i, way in ipairs(ways) do
    local what = "as written: " .. (way.why or "not recorded yet")
    if way.compiled then
      what = counted(way)
      for _, back in ipairs(way.backward or {}) do
        what = ("%s; backward from outside: %d calls, %s"):format(what, back.calls, counted(back))
      end
    end
    lines[i] = ("way %d: %d calls, %s"):format(i, way.calls or 0, what)
  end
  return #lines > 0 and table.concat(lines, "\n") or "the function has not been called yet"
end}
-- What was recorded: a list, which prints as text, with an entry for each way through fn: {calls=, compiled=, steps= (names of the recorded
-- ops), kernels= (what runs: {ops=, fused=, elements=, reads=, writes=, why= (no more was fused)}), nodes= (of the captured graph, on a
-- GPU), backward= (where the results' gradients come from outside: a list of {calls=, steps=, kernels=, nodes=}, an entry for each kind of
-- gradients), why= (it isn't compiled)}; a field that doesn't apply is nil.
function Compiled:report()
  local out = {}
  for _, v in ipairs(self.variants) do
    local numbers = v.program and program.recorded(v.program) and program.numbers(v.program) or {}
    for _, n in ipairs(numbers) do
      local way = v.ways[n] or {}
      out[#out + 1] = {calls = way.calls, compiled = true, steps = program.steps(v.program, n), kernels = program.kernels(v.program, n),
        nodes = way.nodes, backward = way.part and outside.report(way.part)}
    end
    if #numbers == 0 then out[#out + 1] = {calls = v.before + v.calls, compiled = false,
      why = v.why or self.why or next(v.ways) and "hooks, or an optimizer's parameters or state, have changed since it was recorded"} end
  end
  for why, calls in pairs(self.refused) do out[#out + 1] = {calls = calls, compiled = false, why = why} end
  for _, of in ipairs(self.leaves and self.leaves:report() or {}) do out[#out + 1] = of end
  return setmetatable(out, Report)
end

-- {steps = k}: a function that calls fn k times, and so becomes one record and one graph. Tensor arguments have a row for each step; fn's
-- results are stacked, without history.
local function repeated(fn, k)
  return function(...)
    local args, all, n = pack(...), {}, nil
    for step = 1, k do
      local row = {}
      for i = 1, args.n do
        row[i] = args[i]
        if core.is_tensor(args[i]) then row[i] = M.select(args[i], 1, step) end
      end
      local out = pack(fn(unpack(row, 1, args.n)))
      if n and out.n ~= n then
        fail("compile: with steps = %d fn must give the same number of results in each step; it gave %d, then %d", k, n, out.n)
      end
      n = out.n
      for i = 1, n do
        if not core.is_tensor(out[i]) then fail("compile: with steps = %d fn must give tensors; result %d is a %s", k, i, type(out[i])) end
        all[i] = all[i] or {}
        all[i][step] = M.detach(out[i])
      end
    end
    for i = 1, n do all[i] = ops.stack(all[i], 1) end
    return unpack(all, 1, n)
  end
end

-- A module whose forward is compiled. Otherwise it behaves as the module itself, also as part of another one, and has report() too.
local function as_module(compiled, m)
  local stand_in
  local function back(first, ...)
    if rawequal(first, m) then return stand_in, ... end    -- train(), to() and others return what they were called on
    return first, ...
  end
  local function index(_, k)
    if k == "report" then return function() return compiled:report() end end
    local v = m[k]
    if type(v) ~= "function" then return v end
    return function(this, ...)
      if rawequal(this, stand_in) then this = m end
      return back(v(this, ...))
    end
  end
  stand_in = setmetatable({}, {_class = rawget(getmetatable(m), "_class"), __index = index, __newindex = function(_, k, v) m[k] = v end,
    __call = function(_, ...) return compiled(...) end, __tostring = function() return "compiled " .. tostring(m) end})
  module.stand_for(stand_in, m)
  return stand_in
end

local THEIRS = {mode = true, fullgraph = true, dynamic = true, backend = true}

-- tycho.compile(fn, {guard="full", max_variants=8, fusion=true, steps=}): a function (for a module, a module) that does what fn does: its
-- first calls run as written and are recorded, later ones replay the record. guard = "full": fn still runs, without computing, and is
-- compared with the record, so that every change is seen; "inputs": only the arguments are compared. max_variants: how many kinds of
-- arguments (shapes, dtypes, modes) are recorded, and how many ways through fn for each; after as many consecutive calls that went a new
-- way, or couldn't be recorded, it gives up; where calls had only differed it tries again after four times as many calls. fusion: chains of
-- pointwise ops become one kernel. steps = k: one call does k steps, and the arguments and results have a row for each. Backward may be
-- called within fn, or outside of it: then it is recorded separately. torch.compile's mode, fullgraph, dynamic and backend are accepted,
-- and have no effect. TYCHO_DEBUG=compile prints what is recorded and why not, TYCHO_DEBUG=fusion what becomes one kernel.
return function(fn, o)
  if type(o) == "table" then
    local own = {}
    for k, v in pairs(o) do if not THEIRS[k] then own[k] = v end end
    o = own
  end
  o = fill("compile", o, {guard = "full", max_variants = 8, fusion = true, steps = options.none})
  if not callable(fn) then
    fail("compile: argument 1 must be a function or a module, got %s", options.shown(fn))
  end
  whole("compile", "max_variants", o.max_variants, 1)
  if type(o.fusion) ~= "boolean" then fail("compile: fusion must be true or false, got %s", tostring(o.fusion)) end
  if o.guard ~= "full" and o.guard ~= "inputs" then fail("compile: guard must be 'full' or 'inputs', got '%s'", tostring(o.guard)) end
  local of = module.is_module(fn) and fn
  if o.steps then fn = repeated(fn, whole("compile", "steps", o.steps, 1)) end
  local compiled = new_compiled(fn, o)
  return of and as_module(compiled, of) or compiled
end
