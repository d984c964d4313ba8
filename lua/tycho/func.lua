-- tycho.func: modules as functions of their parameters, for gradients through an optimizer's steps (MAML) and the like.
local module = require "tycho.nn.module"
local core = require "tycho.core"
local options = require "tycho.options"
local fail = options.fail
local func = {}

-- What net(...) gives with these tensors in the places of its parameters and buffers, named as in its state dict; those that
-- aren't named stay. Where one parameter stands in several places, all of them change. Gradients flow to the tensors given; the
-- module is as before afterwards, also when forward errs.
function func.functional_call(net, tensors, ...)
  if not module.is_module(net) then fail("functional_call: argument 1 must be a module, got %s", options.shown(net)) end
  if type(tensors) ~= "table" or core.is_tensor(tensors) then
    fail("functional_call: argument 2 must be a table of tensors by name, got %s", options.shown(tensors))
  end
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
  for _, p in ipairs(places) do if instead[p[3]] then rawset(p[1], p[2], instead[p[3]]) end end
  return options.finally(function()
    for _, p in ipairs(places) do rawset(p[1], p[2], p[3]) end
  end, net, ...)
end

return options.told(func, "func")
