-- tycho.func: modules as functions of their parameters, and functions that give derivatives of functions: for gradients through an
-- optimizer's steps (MAML) and the like.
--
-- Idea: grad(f) is a function of f's arguments. Its results have a history where the arguments have one, so that grad(grad(f)) is the
-- second derivative. Numbers of arguments begin at 1; an argument may be a table of tensors, nested too.
local module = require "tycho.nn.module"
local core = require "tycho.core"
local functional = require "tycho.autograd_functional"
local modes = require "tycho.modes"
local options = require "tycho.options"
local pulled = require "tycho.pulled"
local tree = require "tycho.tree"
local fail = options.fail
local ops, M = core.ops, core.methods
local func = {}

-- What net(...) gives with these tensors in the places of its parameters and buffers, named as in its state dict; those that
-- aren't named stay. Where one parameter stands in several places, all of them change. Gradients flow to the tensors given; the
-- module is as before afterwards, also when forward errs.
function func.functional_call(net, tensors, ...)
  if not module.is_module(net) then fail("functional_call: argument 1 must be a module, got %s", options.shown(net)) end
  if type(tensors) ~= "table" or core.is_tensor(tensors) then
    fail("functional_call: argument 2 must be a table of tensors by name, got %s", options.shown(tensors))
  end
  net = module.behind(net)
  local places, instead, known = {}, {}, {}
  for _, kind in ipairs {"parameter", "buffer"} do
    module.walk(net, kind, "", nil, function(name, v, owner, own)
      places[#places + 1], known[name] = {owner._parts, own, v}, true
      if tensors[name] ~= nil then instead[v] = tensors[name] end
    end)
  end
  for name, t in pairs(tensors) do
    if not known[name] then fail("functional_call: the %s has no parameter or buffer '%s'", net._name, tostring(name)) end
    if not core.is_tensor(t) then fail("functional_call: '%s' must be a tensor, got %s", name, options.shown(t)) end
  end
  for _, p in ipairs(places) do if instead[p[3]] then p[1][p[2]] = instead[p[3]] end end
  return options.finally(function()
    for _, p in ipairs(places) do p[1][p[2]] = p[3] end
  end, net, ...)
end

local function numbers_of(who, argnums)
  local list = type(argnums) == "table" and argnums or {argnums}
  options.items(who, "argnums", list)
  for _, n in ipairs(list) do options.whole(who, "argnums", n, 1) end
  return list
end

-- fn's results for these arguments; what pull(outputs, weights) gives: of each argument that is named a gradient like it; and a result as
-- it is handed on.
local function derived(who, argnums, fn, args)
  local create, leaves, copies = false, {}, {}
  for _, n in ipairs(argnums) do
    copies[n] = tree.map(args[n], function(x)
      if not core.is_tensor(x) or not M.is_floating_point(x) then
        fail("%s: argument %d must be a floating tensor or a table of such, got %s", who, n,
          core.is_tensor(x) and x.dtype or options.shown(x))
      end
      create = create or x.requires_grad
      leaves[#leaves + 1] = x.requires_grad and ops.view(x, x.shape) or M.detach(x):requires_grad_()
      return leaves[#leaves]
    end)
  end
  local with = {unpack(args, 1, args.n)}
  for n, copy in pairs(copies) do with[n] = copy end
  local out = {modes.enable_grad(fn, unpack(with, 1, args.n))}
  local function pull(outputs, weights)
    local at, given = {}, {}
    for k, g in ipairs(pulled(outputs, leaves, weights, create)) do at[leaves[k]] = g end
    for k, n in ipairs(argnums) do given[k] = tree.map(copies[n], function(x) return at[x] end) end
    return given
  end
  return out, pull, function(y) return core.is_tensor(y) and not create and M.detach(y) or y end
end

local function gradient(who, fn, argnums, first)
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  local numbers = numbers_of(who, argnums or 1)
  return function(...)
    local out, pull, plain = derived(who, numbers, fn, {n = select("#", ...), ...})
    if not core.is_tensor(out[1]) or M.numel(out[1]) ~= 1 then fail("%s: the function must give one tensor of one element first", who) end
    local given = pull({out[1]}, {})
    for k = first, #out do given[#given + 1] = plain(out[k]) end
    return unpack(given)
  end
end
-- func.grad(fn, argnums=1): a function of fn's arguments that gives the gradient of fn's first result, one number, for the argument of that
-- number (a list of numbers: as many gradients), then fn's further results
function func.grad(fn, argnums) return gradient("grad", fn, argnums, 2) end
-- func.grad_and_value(fn, argnums=1): as grad; the value comes behind the gradients, then fn's further results
function func.grad_and_value(fn, argnums) return gradient("grad_and_value", fn, argnums, 1) end
-- func.vjp(fn, ...): fn's results for these arguments, and last a function that gives, of a weight for each result, the arguments'
-- gradients
function func.vjp(fn, ...)
  options.expect("vjp", 1, fn, modes.callable(fn), "a function")
  local args, numbers, results = {n = select("#", ...), ...}, {}, {}
  for n = 1, args.n do numbers[n] = n end
  local out, pull, plain = derived("vjp", numbers, fn, args)
  for k, y in ipairs(out) do
    if not core.is_tensor(y) then fail("vjp: result %d of the function must be a tensor, got %s", k, options.shown(y)) end
    results[k] = plain(y)
  end
  results[#results + 1] = function(...) return unpack(pull(out, {...})) end
  return unpack(results)
end
-- func.jvp(fn, primals, tangents): fn's result for the list of primals, and its derivative along the tangents
function func.jvp(fn, primals, tangents) return functional.jvp(fn, primals, tangents) end
local function jacobian(who, fn, argnum)
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  local at = options.whole(who, "argument 2 (argnum)", argnum or 1, 1)
  return function(...)
    local args = {n = select("#", ...), ...}
    local at_hand = args[at]
    if not core.is_tensor(at_hand) or not M.is_floating_point(at_hand) then
      fail("%s: argument %d must be a floating tensor, got %s", who, at,
        core.is_tensor(at_hand) and at_hand.dtype or options.shown(at_hand))
    end
    return functional.jacobian(function(x)
      local with = {unpack(args, 1, args.n)}
      with[at] = x
      return fn(unpack(with, 1, args.n))
    end, at_hand, {create_graph = at_hand.requires_grad})
  end
end
-- func.jacrev(fn, argnum=1), and jacfwd: a function of fn's arguments that gives the Jacobian of fn's result for that argument, a tensor
function func.jacrev(fn, argnum) return jacobian("jacrev", fn, argnum) end
function func.jacfwd(fn, argnum) return jacobian("jacfwd", fn, argnum) end
-- func.hessian(fn, argnum=1): a function of fn's arguments that gives the second derivatives of fn's result, one number, for that argument
function func.hessian(fn, argnum) return jacobian("hessian", gradient("hessian", fn, argnum, 2), argnum) end

return options.told(func, "func")
