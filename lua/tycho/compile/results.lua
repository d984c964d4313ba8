-- The results of a compiled function: what its caller gets for the tensors that fn returned.
--
-- Invariant: nothing that the caller holds changes by a later call; a result that is a part of another, or the same, is so for the caller.
local core = require "tycho.core"
local shared = require "tycho.compile.shared"
local tree = require "tycho.tree"
local ops, M, program = core.ops, core.methods, core.program

local results_of = {}

-- The argument that each handle given to fn stands for; nil: none stands for one. The handles may be collected.
function results_of.by_handle(v, args, given)
  if next(v.static) == nil then return nil end
  local argument = setmetatable({}, {__mode = "k"})
  for i in pairs(v.static) do argument[given[i]] = args[i] end
  return argument
end
-- Puts the arguments in the place of their handles among the results, so that a handle that is still held is one that fn has kept. Gives
-- the results' tensors, and those that aren't arguments.
function results_of.swapped(results, argument)
  local all, others = {}, {}
  shared.each_tensor(results, function(x)
    all[#all + 1] = argument[x] or x
    if not argument[x] then others[#others + 1] = x end
    return all[#all]
  end)
  return all, others
end

-- The tensor that the caller gets for a result x. For an argument's copy: the argument. For a view of a copy: the same view of the
-- argument, or a clone where the strides differ. For memory that the next call overwrites: a clone, or the same view of an earlier one;
-- made: {the result, its clone} of each. On the CPU, memory that is still held when the next call begins is left to its holder.
local function given_for(v, args, given, x, made)
  for i in pairs(v.static) do
    if program.same(x, given[i]) then return args[i] end
    if M.shares_memory(x, given[i]) then return program.seen_in(x, given[i], args[i]) or ops.clone(x) end
  end
  if x.device == "cpu" or not program.owns(v.program, x) then return x end
  local copy
  for _, m in ipairs(made) do copy = copy or (M.shares_memory(x, m[1]) and program.seen_in(x, m[1], m[2])) end
  if not copy then
    local plain = x:detach()
    copy = ops.clone(plain)
    made[#made + 1] = {plain, copy:detach()}
  end
  return core.take_over(x, copy)                         -- fn may have put the result elsewhere too
end
local function let_go(made)                              -- handles left to the collector would seem to hold the memory
  for _, m in ipairs(made) do
    M.free(m[1])
    M.free(m[2])
  end
end
-- Calls visit for each tensor once, wholes before their parts: those first that span most memory, and of these the dense ones.
local function wholes_first(list, visit)
  local span = {}
  for _, x in ipairs(#list > 1 and list or {}) do
    local stride = M.stride(x)
    span[x] = M.numel(x) > 0 and 1 or 0
    for d = 1, M.dim(x) do span[x] = span[x] + math.max(x.shape[d] - 1, 0) * stride[d] end
  end
  table.sort(list, function(a, b)
    if span[a] ~= span[b] then return span[a] > span[b] end
    return M.numel(a) == span[a] and M.numel(b) ~= span[b]
  end)
  for _, x in ipairs(list) do visit(x) end
end
function results_of.for_caller(v, args, given, results)
  local made, out = {}, {}
  wholes_first(shared.tensors_of(results), function(x) out[x] = out[x] or given_for(v, args, given, x, made) end)
  shared.each_tensor(results, function(x) return out[x] end)
  let_go(made)
end

-- The results with a place (its number) for each tensor that belongs to the program, to an argument or to fn's constants; and the reverse.
function results_of.templated(v, results)
  local n, first = 0, {}
  return tree.map(results, function(x)
    if not core.is_tensor(x) then return x end
    n = n + 1
    first[x] = first[x] or n
    local kind = program.result_kind(v.program, first[x])
    return kind ~= "other" and tree.place(first[x], kind) or core.keep(x)
  end)
end
function results_of.filled(v, way, args, given)
  local made, list, number, kinds, out = {}, {}, {}, {}, {}
  tree.fill(way.results, function(n, kind)
    if kinds[n] then return end
    local r = program.result(v.program, n)
    list[#list + 1], number[r], kinds[n] = r, n, kind
  end)
  wholes_first(list, function(r)
    local n = number[r]
    out[n] = kinds[n] == "constant" and ops.clone(r) or given_for(v, args, given, r, made)
    for i = 1, args.n do if v.signature[i] and program.same(r, given[i]) then out[n] = args[i] end end
    if not rawequal(out[n], r) then M.free(r) end
  end)
  let_go(made)
  return tree.fill(way.results, function(n) return out[n] end)
end

return results_of
