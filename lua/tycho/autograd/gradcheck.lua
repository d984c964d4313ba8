-- gradcheck and gradgradcheck: gradients beside central differences, in float64.
--
-- Idea: what is compared is always one number, the sum of all outputs' elements times fixed weights that differ, by all inputs that require
-- grad. Invariant: the inputs hold their own elements again, also where the function errs.
local core = require "tycho.core"
local autograd = require "tycho.autograd"
local modes = require "tycho.modes"
local options = require "tycho.options"
local fail, finally = options.fail, options.finally
local M = core.methods
local checks = {}

local function list(v) return core.is_tensor(v) and {v} or v end

-- The float64 tensors among fn(inputs) through which gradients flow.
local function outputs_of(fn, inputs)
  local found, all = {}, options.pack(fn(unpack(inputs)))
  for i = 1, all.n do
    local y = all[i]
    if core.is_tensor(y) and y.dtype == "float64" and y.requires_grad then found[#found + 1] = y end
  end
  return found
end

-- Fixed numbers from 0.5 to 1.5 in y's shape: a sum of elements times these shows an error in any of them.
local function weights_for(y)
  return M.view(1 + core.ops.cos(core.ops.range(1, M.numel(y), {dtype = "float64", device = y.device}) * 1.7) / 2, y.shape)
end
-- The sum of all elements of tensors 1 .. n (nil: none) times weights; nil: there is no tensor.
local function weighed(tensors, n)
  local sum
  for i = 1, n do
    local s = tensors[i] and M.sum(tensors[i] * weights_for(tensors[i]))
    sum = sum and s and sum + s or s or sum
  end
  return sum
end

-- Compares each element of g (nil: 0), the gradient of total() by x, with the central difference of step o.eps. Gives nil, or what differs.
-- place: what x is.
local function compare_gradient(total, x, g, place, o)
  local own = x:detach()
  local flat = M.reshape(own, -1)          -- of other than contiguous memory a copy
  local function set(j, v)
    flat[j] = v
    if not M.is_contiguous(own) then M.copy_(own, M.view(flat, own.shape)) end
  end
  g = g and M.reshape(g:detach(), -1)
  for j = 1, M.numel(x) do
    local v = flat[j]
    local numeric = finally(function() set(j, v) end, function()
      set(j, v + o.eps)
      local up = total():item()
      set(j, v - o.eps)
      return (up - total():item()) / (2 * o.eps)
    end)
    local analytic = g and g[j] or 0
    local near = math.abs(analytic - numeric) <= o.atol + o.rtol * math.abs(numeric)   -- false for NaN
    if not near then return ("%s, element %d: the gradient is %.10g, differences give %.10g"):format(place, j, analytic, numeric) end
  end
end

-- Compares the gradients of total() by leaves, which places name, with differences. Gives nil, or what is wrong.
local function compare(o, total, leaves, places)
  local sum = total()
  local value, again = sum:item(), total():item()
  if math.abs(value - again) > math.max(o.nondet_tol, 1e-9 * math.max(1, math.abs(value))) then       -- sums may be in another order
    return "the function gives different values each time it is called"
  end
  local grads = sum.requires_grad and autograd.grad(sum, leaves, {allow_unused = true}) or {}
  for k, x in ipairs(leaves) do
    local wrong = compare_gradient(total, x, grads[k], places[k], o)
    if wrong then return wrong end
  end
end

-- The inputs that require grad, and what to call them.
local function leaves_of(who, inputs)
  local places, leaves = {}, {}
  for i, x in ipairs(inputs) do
    if core.is_tensor(x) and x.requires_grad then
      if x.dtype ~= "float64" then fail("%s: input %d must be float64, got %s", who, i, x.dtype) end
      places[#places + 1], leaves[#leaves + 1] = "input " .. i, x
    end
  end
  if #leaves == 0 then fail("%s: no input requires grad", who) end
  return leaves, places
end

-- Compares the gradients of what prepare gives: total(), its leaves, and what to call them. prepare gets outputs(), which gives fn's, these
-- outputs, the inputs that require grad, and what to call those. What is wrong becomes an error, or false unless o.raise.
local function checked(who, fn, inputs, o, prepare)
  options.expect(who, 1, fn, modes.callable(fn), "a function")
  inputs = options.expect(who, 2, list(inputs), type(list(inputs)) == "table", "a tensor or a list of tensors")
  local leaves, places = leaves_of(who, inputs)
  local function outputs() return outputs_of(fn, inputs) end
  local ys = outputs()
  if #ys == 0 then fail("%s: no output depends on the inputs", who) end
  local wrong = compare(o, prepare(outputs, ys, leaves, places))
  if wrong and o.raise then fail("%s: %s", who, wrong) end
  return not wrong
end

-- gradcheck(fn, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=true, nondet_tol=0): compares the gradients of fn's results with
-- central differences of step eps, for the float64 inputs that require grad. Returns true; at the first difference it raises an error that
-- shows it, or without raise_exception returns false.
checks.gradcheck = core.define("gradcheck",
  "fn:any, inputs:any, eps:number=1e-6, atol:number=1e-5, rtol:number=1e-3, raise_exception:bool=true, nondet_tol:number=0",
  function(fn, inputs, eps, atol, rtol, raise, nondet_tol)
    local o = {eps = eps, atol = atol, rtol = rtol, raise = raise, nondet_tol = nondet_tol}
    return checked("gradcheck", fn, inputs, o, function(outputs, ys, leaves, places)
      return function() return weighed(outputs(), #ys) end, leaves, places
    end)
  end)

-- gradgradcheck(fn, inputs, grad_outputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=true, nondet_tol=0): the same for the gradients
-- of fn's results, as functions of the inputs and of the incoming gradients grad_outputs (nil: fixed numbers), one for each float64 result.
checks.gradgradcheck = core.define("gradgradcheck",
  "fn:any, inputs:any, grad_outputs:any?, eps:number=1e-6, atol:number=1e-5, rtol:number=1e-3, raise_exception:bool=true, \z
    nondet_tol:number=0",
  function(fn, inputs, grad_outputs, eps, atol, rtol, raise, nondet_tol)
    local o = {eps = eps, atol = atol, rtol = rtol, raise = raise, nondet_tol = nondet_tol}
    return checked("gradgradcheck", fn, inputs, o, function(outputs, ys, leaves, places)
      local given, all, named, incoming = grad_outputs and list(grad_outputs), {unpack(leaves)}, {unpack(places)}, {}
      options.expect("gradgradcheck", 3, grad_outputs, not given or type(given) == "table" and #given == #ys,
        ("a list of one tensor for each float64 output that depends on the inputs, %d in all"):format(#ys))
      for i, y in ipairs(ys) do
        local g = given and given[i] or weights_for(y)
        if not core.is_tensor(g) then fail("gradgradcheck: item %d of argument 3 must be a tensor, got %s", i, options.shown(g)) end
        incoming[i] = M.clone(g:detach(), {memory_format = "contiguous"}):requires_grad_()
        all[#all + 1], named[#named + 1] = incoming[i], "the gradient of output " .. i
      end
      local function total()
        local grads = autograd.grad(outputs(), leaves, {grad_outputs = incoming, create_graph = true, allow_unused = true})
        return weighed(grads, #leaves) or core.ops.zeros({}, {dtype = "float64"})
      end
      return total, all, named
    end)
  end)

return checks
