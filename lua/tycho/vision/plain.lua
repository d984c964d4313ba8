-- Layers of tycho.vision.ops that have settings, but no parameters. They are made as those of tycho.nn are, and aren't among these.
local layer = require "tycho.nn.layer"
local module = require "tycho.nn.module"

-- A class whose fields are the arguments of signature; forward(...) calls fn(..., fields). check(self): raises if the fields are wrong.
return function(name, signature, fn, check)
  local class = module.Module:extend(name)
  layer.fill_plain(class, name, fn, signature)
  local fill = class.init
  function class:init(...)
    fill(self, ...)
    if check then check(self) end
  end
  return class
end
