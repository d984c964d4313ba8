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

-- A list's tensors for all examples as one example's, and back.
local function each(list, fn)
  local out = {n = list.n}
  for i = 1, list.n do out[i] = core.is_tensor(list[i]) and fn(list[i]) or list[i] end
  return out
end

local All = {}
-- user: the Function; context: makes the context that it gets
function All.forward(ctx, user, context, maps, ...)
  local wholes, needs = options.pack(...), {}
  for i = 1, wholes.n do needs[i] = ctx.needs_input_grad[i + 3] end
  local one = context {_function = user, needs_input_grad = needs}
  ctx.user, ctx.maps, ctx.one, ctx.shapes = user, maps, one, {}
  function one.save_for_backward(_, ...)
    ctx.examples = {}
    local saved = options.pack(...)
    for i = 1, saved.n do ctx.examples[i] = core.is_mapped(saved[i]) end
    ctx:save_for_backward(unpack(each(saved, core.map_out_all), 1, saved.n))
  end
  function one.mark_dirty() fail "Function: mark_dirty: within vmap an autograd.Function can't change its arguments in place" end
  local out = within(maps, function()
    local args, made = each(wholes, core.map_in_all), user.setup_context
    for i = 1, args.n do ctx.shapes[i] = core.is_tensor(args[i]) and args[i].shape end
    local out = made and options.pack(user.forward(unpack(args, 1, args.n))) or options.pack(user.forward(one, unpack(args, 1, args.n)))
    if made then made(one, args, out.n == 1 and out[1] or out) end
    local all, indifferent = each(out, core.map_out_all), {}
    for i = 1, out.n do
      for k = 1, args.n do if out[i] ~= nil and rawequal(out[i], args[k]) then all[i] = wholes[k] end end
      for _, x in ipairs(one._indifferent or {}) do if rawequal(x, out[i]) then indifferent[#indifferent + 1] = all[i] end end
    end
    ctx:mark_non_differentiable(unpack(indifferent))
    return all
  end)
  ctx:set_materialize_grads(not one._unmade)
  return unpack(out, 1, out.n)
end

function All.backward(ctx, ...)
  local grads, saved = options.pack(...), options.pack(ctx:saved_tensors())
  local given = within(ctx.maps, function()
    local one = ctx.one
    one._saved = {n = saved.n}
    for i = 1, saved.n do one._saved[i] = ctx.examples[i] and core.map_in_all(saved[i]) or saved[i] end
    function one.saved_tensors() return unpack(one._saved, 1, saved.n) end
    local g = each(grads, core.map_in_all)
    local out = options.pack(ctx.user.backward(one, unpack(g, 1, g.n)))
    for i, shape in ipairs(ctx.shapes) do
      if out[i] ~= nil and not shape then
        fail("Function: backward returned a gradient for argument %d, which was no tensor: return nil there", i)
      elseif core.is_tensor(out[i]) and out[i].shape ~= shape then
        fail("Function: backward gave a gradient of shape %s for argument %d of shape %s", tostring(out[i].shape), i, tostring(shape))
      end
    end
    return each(out, core.map_out_all)
  end)
  return nil, nil, nil, unpack(given, 1, given.n)
end

-- function_of(def) makes an autograd.Function. Gives call(user, context, ...): user(...), some of whose arguments vmap maps.
function mapped.calls(function_of)
  local all = function_of(All)
  return function(user, context, ...)
    local args, maps = each(options.pack(...), core.map_out_all), {core.maps()}
    local out = options.pack(modes.at_level(0, all, user, context, maps, unpack(args, 1, args.n)))
    return unpack(each(out, core.map_in_all), 1, out.n)
  end
end

return mapped
