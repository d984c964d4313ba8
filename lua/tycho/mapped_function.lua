-- An autograd.Function within vmap.
--
-- Idea: the tape knows the tensors of all examples only, so it gets one Function of those, All. Its forward and its backward call the
-- user's within vmaps like those that ran where the Function was called, since these may have ended when backward runs. Invariant: what
-- the user's functions are given are examples, and nothing of an ended vmap is kept.
local core = require "tycho.core"
local modes = require "tycho.modes"
local options = require "tycho.options"
local fail = options.fail
local mapped = {}

-- Whether vmap maps one of these.
function mapped.any(list)
  for _, x in pairs(list) do if core.is_mapped(x) then return true end end
  return false
end

-- fn(...) within vmaps as `maps` says, a list of sizes and ways to draw, in place of those that run.
local function within(maps, fn, ...)
  return modes.at_level(0, function(...)
    local begun = 0
    return options.finally(function() for _ = 1, begun do core.map_end() end end, function(...)
      for i = 1, #maps, 2 do
        core.map_begin(maps[i], maps[i + 1])
        begun = begun + 1
      end
      return fn(...)
    end, ...)
  end, ...)
end

-- A list with fn(x) in place of its tensors, or, mapped_only, of those that vmap maps.
local function each(list, fn, mapped_only)
  local out = {n = list.n}
  for i = 1, list.n do
    local x = list[i]
    out[i] = core.is_tensor(x) and (not mapped_only or core.is_mapped(x)) and fn(x) or x
  end
  return out
end
local function which_mapped(list)
  local is = {}
  for i = 1, list.n do is[i] = core.is_mapped(list[i]) end
  return is
end
local function as_examples(list, is)
  local out = {n = list.n}
  for i = 1, list.n do out[i] = is[i] and core.map_in_all(list[i]) or list[i] end
  return out
end

local All = {}
-- user: the Function; context: makes the context that it gets; maps: those that ran where it was called; is: which arguments they map
function All.forward(ctx, user, context, maps, is, ...)
  local wholes, needs = options.pack(...), {}
  for i = 1, wholes.n do needs[i] = ctx.needs_input_grad[i + 4] end
  local one = context {_function = user, needs_input_grad = needs}
  ctx.user, ctx.maps, ctx.is, ctx.one, ctx.shapes, ctx.fields = user, maps, is, one, {}, {}
  function one.save_for_backward(_, ...)
    local saved = options.pack(...)
    ctx.saved_is = which_mapped(saved)
    ctx:save_for_backward(unpack(each(saved, core.map_out_all, true), 1, saved.n))
  end
  function one.mark_dirty() fail "Function: mark_dirty: within vmap an autograd.Function can't change its arguments in place" end
  local out = within(maps, function()
    local args, made = as_examples(wholes, is), user.setup_context
    for i = 1, args.n do ctx.shapes[i] = core.is_tensor(args[i]) and args[i].shape end
    local out = made and options.pack(user.forward(unpack(args, 1, args.n))) or options.pack(user.forward(one, unpack(args, 1, args.n)))
    if made then made(one, args, out.n == 1 and out[1] or out) end
    local all, indifferent = each(out, core.map_out_all), {}
    for i = 1, out.n do
      for k = 1, args.n do
        if out[i] ~= nil and rawequal(out[i], args[k]) then all[i] = is[k] and wholes[k] or core.ops.clone(all[i]) end
      end
      for _, x in ipairs(one._indifferent or {}) do if rawequal(x, out[i]) then indifferent[#indifferent + 1] = all[i] end end
    end
    ctx:mark_non_differentiable(unpack(indifferent))
    for k, v in pairs(one) do if core.is_mapped(v) then ctx.fields[k] = core.map_out_all(v) end end
    return all
  end)
  for k in pairs(ctx.fields) do one[k] = nil end
  one._indifferent = nil
  ctx:set_materialize_grads(not one._unmade)
  return unpack(out, 1, out.n)
end

-- The user's gradients for all examples; those of arguments that are the same for all are summed over the examples.
local function whole_gradients(ctx, given)
  local n = #ctx.shapes
  for i = n + 1, given.n do
    if given[i] ~= nil then fail("Function: backward returned %d gradients, forward got %d arguments", given.n, n) end
  end
  local out = {n = n}
  for i = 1, n do
    local g, shape = given[i], ctx.shapes[i]
    if g ~= nil then
      if not shape then fail("Function: backward returned a gradient for argument %d, which was no tensor: return nil there", i) end
      if not core.is_tensor(g) then fail("Function: the gradient of argument %d must be a tensor, got %s", i, options.shown(g)) end
      if g.shape ~= shape then
        fail("Function: backward gave a gradient of shape %s for argument %d of shape %s", tostring(g.shape), i, tostring(shape))
      end
      g = core.map_out_all(g)
      local dims = {}
      for d = 1, ctx.is[i] and 0 or #ctx.maps / 2 do dims[d] = d end
      out[i] = #dims > 0 and core.ops.sum(g, dims) or g
    end
  end
  return out
end

function All.backward(ctx, ...)
  local one, grads, saved = ctx.one, options.pack(...), options.pack(ctx:saved_tensors())
  local function ended()
    one._saved, one.saved_tensors = nil, nil
    for k in pairs(ctx.fields) do one[k] = nil end
  end
  local given = within(ctx.maps, options.finally, ended, function()
    local examples = as_examples(saved, ctx.saved_is or {})
    for k, v in pairs(ctx.fields) do one[k] = core.map_in_all(v) end
    one._saved = examples
    function one.saved_tensors() return unpack(examples, 1, examples.n) end
    local g = each(grads, core.map_in_all)
    return whole_gradients(ctx, options.pack(ctx.user.backward(one, unpack(g, 1, g.n))))
  end)
  return nil, nil, nil, nil, unpack(given, 1, given.n)
end

-- function_of(def) makes an autograd.Function, context(fields) what its functions get as ctx. Gives call(user, ...): user(...), some of
-- whose arguments vmap maps.
function mapped.calls(function_of, context)
  local all = function_of(All)
  return function(user, ...)
    local args, maps = options.pack(...), {core.maps()}
    local is = which_mapped(args)
    args = each(args, core.map_out_all, true)
    local out = options.pack(modes.at_level(0, all, user, context, maps, is, unpack(args, 1, args.n)))
    return unpack(each(out, core.map_in_all), 1, out.n)
  end
end

return mapped
