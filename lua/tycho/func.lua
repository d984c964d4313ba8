-- tycho.func: modules as functions of their parameters, functions that give derivatives of functions, and functions of one example applied
-- to many: for gradients through an optimizer's steps (MAML), per-sample gradients, ensembles.
--
-- Idea: grad(f) is a function of f's arguments. Its results have a history if the arguments have one, so that grad(grad(f)) is the second
-- derivative. Argument numbers begin at 1; an argument may be a table of tensors, also nested.
local module = require "tycho.nn.module"
local core = require "tycho.core"
local functional = require "tycho.autograd.functional"
local modes = require "tycho.modes"
local options = require "tycho.options"
local weighted = require "tycho.weighted_grad"
local tree = require "tycho.tree"
local fail = options.fail
local M, program = core.methods, core.program
local func = {}

-- The union of tables, such as {parameters, buffers}.
local function together(tables)
  local all = {}
  for i, t in ipairs(tables) do
    if type(t) ~= "table" then fail("functional_call: table %d of argument 2 is %s", i, options.shown(t)) end
    for name, v in pairs(t) do
      if all[name] ~= nil then fail("functional_call: '%s' is given twice", tostring(name)) end
      all[name] = v
    end
  end
  return all
end

-- The options strict and tie_weights, if a table of them alone is the last argument, and the other arguments.
local CALL = {strict = true, tie_weights = true}
local function call_options(...)
  local args = options.pack(...)
  local o = args[args.n]
  if type(o) ~= "table" or core.is_tensor(o) or getmetatable(o) ~= nil or next(o) == nil then return {}, args end
  for k, v in pairs(o) do if not CALL[k] or type(v) ~= "boolean" then return {}, args end end
  args[args.n], args.n = nil, args.n - 1
  return o, args
end

-- The parts of modules that a functional_call has replaced, and in which coroutine, unless that is the main one.
local within = setmetatable({}, {__mode = "kv"})
-- functional_call(net, tensors, ...): the result of net(...) with these tensors in place of its parameters and buffers, named as in its
-- state dict, in a table or a list of such tables; others stay. A parameter in several places is replaced in all of them, and two tensors
-- for it are an error. Gradients flow to the tensors given; the module is restored when forward ends, or errs. If forward yields, other
-- coroutines can't replace the same module's meanwhile; its coroutine must be resumed to its end, and one that forward resumes must leave
-- its own functional_call of the module first. PyTorch's options, in a table after all arguments: strict = true: all must be given;
-- tie_weights = false: only the named place is replaced.
function func.functional_call(net, tensors, ...)
  if not module.is_module(net) then fail("functional_call: argument 1 must be a module, got %s", options.shown(net)) end
  if type(tensors) ~= "table" or core.is_tensor(tensors) then
    fail("functional_call: argument 2 must be a table of tensors by name, got %s", options.shown(tensors))
  end
  if type(tensors[1]) == "table" then tensors = together(tensors) end
  net = module.behind(net)
  local o, args = call_options(...)
  local places, instead, known, named = {}, {}, {}, {}
  for _, kind in ipairs {"parameter", "buffer"} do
    module.walk(net, kind, "", nil, function(name, v, owner, own)
      places[#places + 1], known[name] = {owner._parts, own, v, name}, true
      if tensors[name] ~= nil then named[#named + 1] = {name, v} end
    end)
  end
  for name, t in pairs(tensors) do
    if not known[name] then fail("functional_call: the %s has no parameter or buffer '%s'", net._name, tostring(name)) end
    if not core.is_tensor(t) then fail("functional_call: '%s' must be a tensor, got %s", name, options.shown(t)) end
  end
  for _, n in ipairs(named) do
    local name, new, before = n[1], tensors[n[1]], instead[n[2]]
    local other = before and o.tie_weights ~= false and new ~= tensors[before] and tensors[before]
    if other and (core.is_mapped(new) or core.is_mapped(other) or not program.same(new:detach(), other:detach())) then
      fail("functional_call: '%s' and '%s' are one tensor of the %s and are given two: say tie_weights = false", before, name, net._name)
    end
    instead[n[2]] = before or name
  end
  local function new_at(p)
    local new = tensors[p[4]]
    if new == nil and o.tie_weights ~= false then new = tensors[instead[p[3]]] end
    return new
  end
  for _, p in ipairs(o.strict and places or {}) do
    if new_at(p) == nil then fail("functional_call: '%s' isn't given, and strict = true", p[4]) end
  end
  local replaced, here = {}, coroutine.running()
  for _, p in ipairs(places) do
    if new_at(p) ~= nil then
      local by = within[p[1]]
      if by and by ~= here and coroutine.status(by) == "suspended" then
        fail("functional_call: another coroutine is within a functional_call of this %s", net._name)
      end
      replaced[#replaced + 1] = {p[1], p[2], p[3], new_at(p), by}
    end
  end
  local function restore()
    for _, p in ipairs(replaced) do p[1][p[2]], within[p[1]] = p[3], p[5] end
  end
  return options.finally(restore, function(...)
    for _, p in ipairs(replaced) do p[1][p[2]], within[p[1]] = p[4], here end
    return net(...)
  end, unpack(args, 1, args.n))
end

-- Argument n with fn(x) in place of each tensor x; raises if it contains anything but floating tensors.
local function each_tensor(who, n, argument, fn, what)
  return tree.map(argument, function(x)
    if not core.is_tensor(x) or not M.is_floating_point(x) then
      fail("%s: %s %d must be a floating tensor or a table of floating tensors, got %s", who, what or "argument", n,
        core.is_tensor(x) and x.dtype or options.shown(x))
    end
    return fn(x)
  end)
end

local RANDOMNESS = {error = true, different = true, same = true}
-- The list of argument numbers, and the options, of which argnums may be one; known: those that there are.
local function numbers_of(who, argnums, o, known)
  if o == nil and type(argnums) == "table" and next(argnums) ~= nil and argnums[1] == nil then argnums, o = nil, argnums end
  o = o or {}
  options.check(who, o, known)
  if argnums ~= nil and o.argnums ~= nil then fail("%s: argument 'argnums' is given twice", who) end
  if o.has_aux ~= nil and type(o.has_aux) ~= "boolean" then
    fail("%s: has_aux must be true or false, got %s", who, options.shown(o.has_aux))
  end
  if o.chunk_size ~= nil then options.whole(who, "chunk_size", o.chunk_size, 1) end
  if o.randomness ~= nil and not RANDOMNESS[o.randomness] then
    fail("%s: randomness must be 'error', 'different' or 'same', got %s", who, options.shown(o.randomness))
  end
  argnums = argnums or o.argnums or 1
  local list = type(argnums) == "table" and argnums or {argnums}
  options.items(who, "argnums", list)
  for _, n in ipairs(list) do options.whole(who, "argnums", n, 1) end
  return list, o
end

-- Something that a function gave, without history.
local function as_it_is(v) return v end
local function bare_of(v) return tree.map(v, function(x) return core.is_tensor(x) and M.detach(x) or x end) end

-- fn's results for these arguments, n of them; pull(outputs, weights), which gives a gradient for each argument in argnums; and a function
-- that prepares a result for the caller.
local function derived(who, argnums, fn, args)
  local create, leaves, copies, tracked = false, {}, {}, core.is_grad_enabled()
  for _, n in ipairs(argnums) do
    copies[n] = each_tensor(who, n, args[n], function(x)
      create = create or tracked and x.requires_grad
      leaves[#leaves + 1] = weighted.leaf(x, tracked)
      return leaves[#leaves]
    end)
  end
  local with = {unpack(args, 1, args.n)}
  for n, copy in pairs(copies) do with[n] = copy end
  local out, made = weighted.watched(modes.enable_grad, fn, unpack(with, 1, args.n))
  create = create or tracked and weighted.captured(out, leaves, made)
  local function pull(outputs, weights)
    local at, given, history = {}, {}, create
    for _, w in pairs(core.is_grad_enabled() and weights or {}) do history = history or (core.is_tensor(w) and w.requires_grad) end
    for k, g in ipairs(weighted.grad(outputs, leaves, weights, history)) do at[leaves[k]] = g end
    for k, n in ipairs(argnums) do given[k] = tree.map(copies[n], function(x) return at[x] end) end
    return given
  end
  return out, pull, function(y) return create and y or bare_of(y) end
end

local OF_GRAD, OF_HESSIAN = {argnums = true, has_aux = true}, {argnums = true}
local OF_JACOBIAN = {argnums = true, has_aux = true, chunk_size = true, randomness = true}
local function gradient(who, fn, first, argnums, o)
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  local numbers = numbers_of(who, argnums, o, OF_GRAD)
  return function(...)
    local out, pull, plain = derived(who, numbers, fn, options.pack(...))
    if not core.is_tensor(out[1]) or M.numel(out[1]) ~= 1 then fail("%s: the function's result 1 must be a tensor of one element", who) end
    local given, n = pull({out[1]}, {}), #numbers
    for k = first, out.n do given[n + 1 + k - first] = plain(out[k]) end
    return unpack(given, 1, n + math.max(0, out.n + 1 - first))
  end
end
-- grad(fn, argnums=1, {has_aux=}): a function of fn's arguments that gives the gradient of fn's first result, one number, with respect to
-- argument argnums (a list of numbers: as many gradients), then fn's further results, with PyTorch's has_aux or without.
function func.grad(fn, argnums, o) return gradient("grad", fn, 2, argnums, o) end
-- grad_and_value(fn, argnums=1, {has_aux=}): as grad; the value follows the gradients, then fn's further results.
function func.grad_and_value(fn, argnums, o) return gradient("grad_and_value", fn, 1, argnums, o) end
-- {has_aux=} alone, as vjp and jvp take it last; nil for anything else
local function aux_of(who, o)
  if type(o) ~= "table" or core.is_tensor(o) or o.has_aux == nil then return nil end
  local has = options.fill(who, o, {has_aux = false}).has_aux
  if type(has) ~= "boolean" then fail("%s: has_aux must be true or false, got %s", who, options.shown(has)) end
  return has
end
-- fn with its results, tensors or tables of tensors, as one flat list: the first result alone with has_aux; and structured(list), which
-- gives a list for such results their structure: one value, or a list for several results (each: it gives them one by one), and aux(given),
-- which gives fn's further results as given(result).
local function flat_results(who, fn, has_aux)
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  local places, further
  local function flat(...)
    local out, list = options.pack(fn(...)), {}
    places, further = {}, out
    if out.n == 0 then fail("%s: the function must give tensors, got nothing", who) end
    for k = 1, has_aux and 1 or out.n do
      places[k] = each_tensor(who, k, out[k], function(x)
        list[#list + 1] = x
        return tree.place(#list)
      end, "the function's result")
    end
    return unpack(list)
  end
  local function structured(list, each)
    local out = {}
    for k, place in ipairs(places) do out[k] = tree.fill(place, list) end
    if each then return unpack(out) end
    return #out > 1 and out or out[1]
  end
  return flat, structured, function(given)
    local out = {}
    for k = 2, has_aux and further.n or 0 do out[k - 1] = given(further[k]) end
    return unpack(out, 1, has_aux and further.n - 1 or 0)
  end
end
-- vjp(fn, ..., {has_aux=false}): fn's results for these arguments, tensors or tables of tensors, and last a function that takes a weight
-- for each result, of the same structure, and gives the arguments' gradients. has_aux: fn's first result, that function, then fn's further
-- results, which have no gradients.
function func.vjp(fn, ...)
  options.expect("vjp", 1, fn, modes.callable(fn), "a function")
  local args, numbers = options.pack(...), {}
  local has_aux = aux_of("vjp", args[args.n])
  if has_aux ~= nil then args.n = args.n - 1 end
  for n = 1, args.n do numbers[n] = n end
  local flat, structured, aux = flat_results("vjp", fn, has_aux)
  local out, pull, plain = derived("vjp", numbers, flat, args)
  local bare = {}
  for k = 1, out.n do bare[k] = plain(out[k]) end
  local function pulled(...)
    local weights, given = {}, {...}
    for k, place in ipairs {structured(tree.place, true)} do tree.each_place(place, given[k], function(i, w) weights[i] = w end) end
    for i = 1, out.n do
      if weights[i] == nil and M.numel(out[i]) ~= 1 then
        fail("vjp: a weight is needed for each tensor of the function's results; number %d, of shape %s, has none", i,
          tostring(out[i].shape))
      end
    end
    return unpack(pull(out, weights))
  end
  if has_aux then return structured(bare), pulled, aux(plain) end
  local results = {structured(bare, true)}
  results[#results + 1] = pulled
  return unpack(results)
end
-- A list's tensors in one flat list, also those within tables; a function of these that calls fn with the original structure; whether one
-- requires grad; and in_order(given), which flattens a similar list.
local function in_a_row(who, fn, list, tensors)
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  local leaves, places, create = {}, {}, false
  for n = 1, table.maxn(list) do
    local x = list[n]
    if x == nil then fail("%s: input %d must be a tensor or a table of tensors, got nil", who, n) end
    places[n] = each_tensor(who, n, x, function(leaf)
      create = create or leaf.requires_grad
      leaves[#leaves + 1] = leaf
      return tree.place(#leaves)
    end, "input")
  end
  local function called(...)
    local with, at = {}, {...}
    for n in ipairs(places) do with[n] = tree.fill(places[n], at) end
    return fn(unpack(with, 1, #places))
  end
  return leaves, called, create, function(given)
    local row = {}
    if #given ~= #places then fail("%s: %s must be as many as the %d inputs, got %d", who, tensors, #places, #given) end
    for n in ipairs(places) do tree.each_place(places[n], given[n], function(i, x) row[i] = x end) end
    for i in ipairs(leaves) do
      if not core.is_tensor(row[i]) then fail("%s: %s must have a tensor for each tensor of the inputs", who, tensors) end
    end
    return row
  end
end
-- jvp(fn, primals, tangents, {has_aux=false}): fn's result for a list of arguments, tensors or tables of tensors, and its derivative along
-- a list of directions of the same structure; lists of them for several results. A result may be a table of tensors too. has_aux: fn's
-- further results follow, and have no derivative.
function func.jvp(fn, primals, tangents, o)
  local records = core.is_grad_enabled()
  options.check("jvp", o or {}, {has_aux = true})
  options.expect("jvp", 1, fn, modes.callable(fn), "a function")
  local has_aux = aux_of("jvp", o)
  local flat, structured, aux = flat_results("jvp", fn, has_aux)
  local outputs, push, row
  if type(primals) ~= "table" or core.is_tensor(primals) then
    outputs, push = functional._linearized("jvp", flat, primals, false, records)
    row = tangents
  else
    local leaves, called, create, in_order = in_a_row("jvp", flat, primals, "argument 3 (tangents)")
    if type(tangents) ~= "table" then
      fail("jvp: argument 3 (tangents) must be a list of directions, one for each argument, got %s", options.shown(tangents))
    end
    row = in_order(tangents)
    for _, x in ipairs(row) do create = create or x.requires_grad end
    outputs, push = functional._linearized("jvp", called, leaves, records and create, records)
  end
  local y, along = structured(outputs), structured(push(row))
  if not has_aux then return y, along end
  return y, along, aux(outputs[1].requires_grad and as_it_is or bare_of)
end
-- linearize(fn, ...): fn's results for these arguments, tensors or tables of tensors, and last a function that takes a direction for each
-- argument and gives the results' derivatives along them: jvp for many directions at one point, for which fn is called once.
function func.linearize(fn, ...)
  local records = core.is_grad_enabled()
  local flat, structured = flat_results("linearize", fn)
  local leaves, called, create, in_order = in_a_row("linearize", flat, {...}, "the directions")
  local outputs, push = functional._linearized("linearize", called, leaves, records and create, records)
  local results = {structured(outputs, true)}
  results[#results + 1] = function(...) return structured(push(in_order {...}), true) end
  return unpack(results)
end
-- A function of fn's arguments that calls derive(f, leaves), with f a function of flat tensors, and rebuilds the result for each argument
-- in argnums by shaped(place, list). With has_aux fn's results from the second on follow.
local function derivatives(who, fn, known, derive, shaped, argnums, o)
  local numbers
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  numbers, o = numbers_of(who, argnums, o, known)
  return function(...)
    local args, leaves, places, create = options.pack(...), {}, {}, false
    local flat, structured, aux = flat_results(who, fn, o.has_aux)
    for k, n in ipairs(numbers) do
      places[k] = each_tensor(who, n, args[n], function(x)
        create = create or x.requires_grad
        leaves[#leaves + 1] = x
        return tree.place(#leaves)
      end)
    end
    local count
    local list = derive(function(...)
      local with, at = {unpack(args, 1, args.n)}, {...}
      for k, n in ipairs(numbers) do with[n] = tree.fill(places[k], at) end
      local y = {flat(unpack(with, 1, args.n))}
      count = #y
      if who == "hessian" and count > 1 then fail("hessian: the function must give one tensor, got %d", count) end
      return unpack(y)
    end, leaves, {create_graph = create}, core.is_grad_enabled())
    local out = {}
    for k, place in ipairs(places) do
      out[k] = structured(function(i) return shaped(place, count > 1 and list[i] or list, places) end)
    end
    local further = options.pack(aux(create and as_it_is or bare_of))
    for k = 1, further.n do out[#numbers + k] = further[k] end
    return unpack(out, 1, #numbers + further.n)
  end
end
-- jacrev(fn, argnums=1, {has_aux=false, chunk_size=}): a function of fn's arguments that gives the Jacobian of fn's result with respect to
-- argument argnums: a tensor; for a table of tensors a table alike; for a list of numbers as many. For a result that is a table, such a
-- table of Jacobians; for several results a list. has_aux: fn's further results follow,
-- and have no Jacobian. Rows are computed one by one, in the least memory, so chunk_size changes nothing.
function func.jacrev(fn, ...) return derivatives("jacrev", fn, OF_JACOBIAN, functional.jacobian, tree.fill, ...) end
-- jacfwd(fn, argnums=1, {has_aux=false, chunk_size=, randomness=}): as jacrev, and computed the same way.
function func.jacfwd(fn, ...) return derivatives("jacfwd", fn, OF_JACOBIAN, functional.jacobian, tree.fill, ...) end
-- hessian(fn, argnums=1): a function of fn's arguments that gives the second derivatives of fn's result with respect to that argument: a
-- tensor with the argument's dims twice, after the result's dims if that isn't one number; for tables and lists of numbers, nested tables.
function func.hessian(fn, ...)
  return derivatives("hessian", fn, OF_HESSIAN, functional._second_derivatives, function(place, list, places)
    local rows = {}
    for i, row in ipairs(list) do
      local each = {}
      for k, other in ipairs(places) do each[k] = tree.fill(other, row) end
      rows[i] = #each == 1 and each[1] or each
    end
    return tree.fill(place, rows)
  end, ...)
end

-- stack_module_state(models): the parameters of modules of one kind, stacked by name, as new leaves, and their buffers: two tables, for
-- vmap of functional_call over an ensemble.
function func.stack_module_state(models)
  if type(models) ~= "table" or module.is_module(models) or #models == 0 then
    fail("stack_module_state: argument 1 must be a list of modules, got %s", options.shown(models))
  end
  local function stacked(kind)
    local lists, out = {}, {}
    for i, m in ipairs(models) do
      if not module.is_module(m) then fail("stack_module_state: item %d must be a module, got %s", i, options.shown(m)) end
      local left = {}
      for name in pairs(lists) do left[name] = true end
      for name, x in m["named_" .. kind](m) do
        if i == 1 then lists[name] = {} end
        local first = lists[name] and (lists[name][1] or x)
        if not first or first.shape ~= x.shape or first.dtype ~= x.dtype then
          fail("stack_module_state: '%s' of module %d has shape %s and dtype %s; module 1 has %s", name, i, tostring(x.shape), x.dtype,
            first and ("%s and %s"):format(tostring(first.shape), first.dtype) or "none")
        end
        lists[name][i], left[name] = M.detach(x), nil
      end
      if next(left) then fail("stack_module_state: module %d lacks '%s', which module 1 has", i, next(left)) end
    end
    for name, list in pairs(lists) do out[name] = core.keep(core.ops.stack(list)):requires_grad_(kind == "parameters") end
    return out
  end
  return stacked "parameters", stacked "buffers"
end

-- func.replace_all_batch_norm_modules_(root): makes the batch norms in a module keep no running statistics and use the batch's also in
-- evaluation: so calls write nothing, which vmap requires of what it doesn't map. Gives root. An error if root isn't a module.
function func.replace_all_batch_norm_modules_(root)
  if not module.is_module(root) then
    fail("replace_all_batch_norm_modules_: argument 1 must be a module, got %s", options.shown(root))
  end
  local nn = require "tycho.nn"
  for _, m in ipairs(root:modules()) do
    if nn.isinstance(m, {nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm}) then
      m.running_mean, m.running_var, m.num_batches_tracked, m.track_running_stats = nil, nil, nil, false
    end
  end
  return root
end

-- func.vmap: see vmap.lua.
func.vmap = require "tycho.vmap"

return options.told(func, "func")
