-- torch.autograd.functional: derivatives of functions of tensors: jacobian, hessian, vjp, jvp, hvp, vhp.
--
-- Each takes fn, inputs (a tensor, or a list of fn's arguments) and, if needed, v to multiply by; lists are returned for lists, and for
-- several results of fn. With {create_graph = true} the results have a history that leads to the inputs.
local core = require "tycho.core"
local weighted = require "tycho.weighted_grad"
local options = require "tycho.options"
local modes = require "tycho.modes"
local enable_grad, callable = modes.enable_grad, modes.callable
local fail = options.fail
local ops, M = core.ops, core.methods
local functional = {}

local function list(v) return core.is_tensor(v) and {v} or v end

-- Inputs for fn: new leaves, or (create) tensors whose history leads to the user's.
local function prepared(who, fn, inputs, create)
  local out = {}
  options.expect(who, 1, fn, callable(fn), "a function")
  options.expect(who, 2, inputs, core.is_tensor(inputs) or type(inputs) == "table", "a tensor or a list of tensors")
  local given = list(inputs)
  for i = 1, table.maxn(given) do
    local x = given[i]
    if not core.is_tensor(x) or not M.is_floating_point(x) then
      fail("%s: input %d must be a floating tensor, got %s", who, i, core.is_tensor(x) and x.dtype or type(x))
    end
    out[i] = weighted.leaf(x, create)
  end
  if #out == 0 then fail("%s: argument 2 must be a tensor or a list of tensors, got %s", who, options.shown(inputs)) end
  return out
end
local function results(who, ...)
  local out = {...}
  for i = 1, math.max(1, #out) do
    if not core.is_tensor(out[i]) then fail("%s: argument 1 must return tensors, got %s", who, options.shown(out[i])) end
  end
  return out
end
local function given(who, o) return options.fill(who, o, {create_graph = false, strict = false, vectorize = false}).create_graph end

local function as_given(inputs, found) return core.is_tensor(inputs) and found[1] or found end

-- v as a list of tensors with the shapes of xs; if v is nil and xs is a single number, a one.
local function beside(who, v, xs)
  if v == nil then
    if #xs == 1 and M.numel(xs[1]) == 1 then return {ops.ones(xs[1].shape, {dtype = xs[1].dtype, device = xs[1].device})} end
    fail("%s: argument 3 (v) is needed unless there is a single tensor of one element", who)
  end
  v = options.expect(who, 3, list(v), type(list(v)) == "table", "a tensor or a list of tensors")
  for i, x in ipairs(xs) do
    if not core.is_tensor(v[i]) or v[i].shape ~= x.shape then
      fail("%s: argument 3 (v) must have shape %s for tensor %d, got %s", who, tostring(x.shape), i,
        core.is_tensor(v[i]) and "shape " .. tostring(v[i].shape) or type(v[i]))
    end
  end
  return v
end

-- The Jacobian of one result: for each of xs a tensor with y's dims, then x's.
local function rows_of(y, xs, create)
  local flat, rows, out = M.reshape(y, -1), {}, {}
  for i = 1, #xs do rows[i] = {} end
  for j = 1, M.numel(y) do
    local g = weighted.grad({ops.select(flat, 1, j)}, xs, {}, create)
    for i = 1, #xs do rows[i][j] = M.reshape(g[i], -1) end
  end
  for i, x in ipairs(xs) do
    local shape = {unpack(y.shape)}
    for _, n in ipairs(x.shape) do shape[#shape + 1] = n end
    out[i] = #rows[i] > 0 and M.reshape(core.ops.stack(rows[i], 1), shape) or
      ops.zeros(shape, {dtype = y.dtype, device = y.device})
  end
  return out
end

-- jacobian(fn, inputs, {create_graph=false}): for each result of fn and each input a tensor with the result's dims, then the input's.
-- inputs: a tensor, or a list of fn's arguments; lists are returned for lists, and for several results. create_graph: the results have a
-- history that leads to the inputs.
-- captured, used by func.lua: also keep a history that leads to tensors captured by fn.
function functional.jacobian(fn, inputs, o, captured)
  local create = given("jacobian", o)
  return enable_grad(function()
    local xs = prepared("jacobian", fn, inputs, create)
    local given_back, made = weighted.watched(fn, unpack(xs))
    local outputs, out = results("jacobian", unpack(given_back, 1, given_back.n)), {}
    create = create or captured and weighted.captured(outputs, xs, made)
    for k, y in ipairs(outputs) do out[k] = as_given(inputs, rows_of(y, xs, create)) end
    return #outputs == 1 and out[1] or out
  end)
end

local function one_number(who, ...)
  local out = results(who, ...)
  if #out ~= 1 or M.numel(out[1]) ~= 1 then fail("%s: argument 1 must return one tensor of one element", who) end
  return M.reshape(out[1], {})
end

-- As hessian, for a result of any shape, whose dims come first unless it is one number.
function functional._second_derivatives(fn, inputs, o, captured)
  local found = functional.jacobian(function(...)
    local y = results("hessian", fn(...))[1]
    return unpack(rows_of(M.numel(y) == 1 and M.reshape(y, {}) or y, {...}, true))
  end, inputs, o, captured)
  return (core.is_tensor(inputs) or #inputs > 1) and found or {found}
end
-- hessian(fn, inputs, {create_graph=false}): the second derivatives of a function whose result is one number: a tensor with the input's
-- dims twice; for a list of inputs a list of lists.
function functional.hessian(fn, inputs, o)
  options.expect("hessian", 1, fn, callable(fn), "a function")
  local create = given("hessian", o)
  return functional._second_derivatives(function(...) return one_number("hessian", fn(...)) end, inputs, {create_graph = create})
end

-- vjp(fn, inputs, v, {create_graph=false}): fn's results, and v, which has the results' shapes, times the Jacobian.
function functional.vjp(fn, inputs, v, o)
  local create = given("vjp", o)
  return enable_grad(function()
    local xs = prepared("vjp", fn, inputs, create)
    local outputs = results("vjp", fn(unpack(xs)))
    local g = weighted.grad(outputs, xs, beside("vjp", v, outputs), create)
    if not create then for i, y in ipairs(outputs) do outputs[i] = M.detach(y) end end
    return #outputs == 1 and outputs[1] or outputs, as_given(inputs, g)
  end)
end

-- fn's results at the inputs, a list, and a function that gives the Jacobian times v, which has the inputs' shapes. That product is the
-- gradient, with respect to the weights, of a weighted gradient; all but the last pass is done once.
function functional._linearized(who, fn, inputs, create, captured)
  return enable_grad(function()
    local xs = prepared(who, fn, inputs, create)
    local given_back, made = weighted.watched(fn, unpack(xs))
    local outputs, weights = results(who, unpack(given_back, 1, given_back.n)), {}
    create = create or captured and weighted.captured(outputs, xs, made)
    for i, y in ipairs(outputs) do weights[i] = weighted.leaf(ops.zeros(y.shape, {dtype = y.dtype, device = y.device})) end
    local g = weighted.grad(outputs, xs, weights, true)
    if not create then for i, y in ipairs(outputs) do outputs[i] = M.detach(y) end end
    return outputs, function(v)
      return enable_grad(weighted.grad, g, weights, beside(who, v, xs), create)
    end
  end)
end

-- jvp(fn, inputs, v, {create_graph=false}): fn's results, and the Jacobian times v, which has the inputs' shapes. Computed as the gradient
-- of a gradient.
function functional.jvp(fn, inputs, v, o, captured)
  local outputs, push = functional._linearized("jvp", fn, inputs, given("jvp", o), captured)
  local out = push(v)
  if #outputs == 1 then return outputs[1], out[1] end
  return outputs, out
end

-- hvp(fn, inputs, v, {create_graph=false}): fn's result, one number, and its Hessian times v, which has the inputs' shapes. vhp is the
-- same, since the Hessian is symmetric.
function functional.hvp(fn, inputs, v, o)
  local create = given("hvp", o)
  return enable_grad(function()
    local xs = prepared("hvp", fn, inputs, create)
    local y = one_number("hvp", fn(unpack(xs)))
    local g = weighted.grad(weighted.grad({y}, xs, {}, true), xs, beside("hvp", v, xs), create)
    return create and y or M.detach(y), as_given(inputs, g)
  end)
end
functional.vhp = functional.hvp

return options.told(functional, "autograd.functional")
