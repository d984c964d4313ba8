-- Layers of tycho.vision.ops that have settings, but no parameters.
local options = require "tycho.options"
local module = require "tycho.nn.module"
local text = require("tycho.nn.layer").text

-- A class whose fields are the arguments of signature; forward(...) calls fn(..., fields). check(self): raises if the fields are wrong.
return function(name, signature, fn, check)
  local Layer, names = module.Module:extend(name), options.names(signature)
  function Layer:init(...)
    local o = options.arguments(name, signature, ...)
    for _, k in ipairs(names) do self[k] = o[k] end
    if check then check(self) end
  end
  function Layer:forward(...)
    local values, n = {...}, select("#", ...)
    for i, k in ipairs(names) do values[n + i] = self[k] end
    return fn(unpack(values, 1, n + #names))
  end
  function Layer:extra_repr()
    local shown = {}
    for i, k in ipairs(names) do shown[i] = k .. "=" .. text(self[k]) end
    return table.concat(shown, ", ")
  end
  return Layer
end
