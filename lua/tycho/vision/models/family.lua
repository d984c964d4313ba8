-- What the families of tycho.vision.models share: how a network is registered by its name, first values, and blocks.
--
-- Idea: a family is a class whose settings are all arguments; its networks are lists of such settings. Invariant: names in state dicts,
-- shapes, settings and the distributions of first values are torchvision's (spec/vision_models_spec.lua compares them).
local nn = require "tycho.nn"
local family = {models = {}, networks = {}}     -- what is public, by name; what family.network has been told, by name

-- Registers a network: class with these arguments by name. with_weights: those that have other defaults where weights are given.
function family.network(name, class, settings, with_weights)
  family.networks[name] = {class = class, settings = settings, with_weights = with_weights or {}}
end

-- Calls by[name of its class](module) for net's modules.
function family.first_values(net, by)
  for _, m in ipairs(net:modules()) do
    local fill = by[m._name]
    if fill then fill(m) end
  end
end
local function zero(bias) if bias then nn.init.zeros_(bias) end end
-- What first_values calls: normal numbers by the fan-out; of a standard deviation; of one and within -2..2. Biases are 0, but for
-- weights_within, which leaves them.
function family.fan_out(m)
  nn.init.kaiming_normal_(m.weight, {mode = "fan_out", nonlinearity = "relu"})
  zero(m.bias)
end
function family.normal(std)
  return function(m)
    nn.init.normal_(m.weight, 0, std)
    zero(m.bias)
  end
end
function family.weights_within(std)
  return function(m) nn.init.trunc_normal_(m.weight, {std = std}) end
end
function family.truncated(std)
  local fill = family.weights_within(std)
  return function(m)
    fill(m)
    zero(m.bias)
  end
end

-- The multiple of unit that is nearest to v, but not below 0.9 v.
function family.by(unit, v)
  local near = math.max(unit, math.floor((v + unit / 2) / unit) * unit)
  return near < 0.9 * v and near + unit or near
end

-- class with these options, as norm_layer and activation_layer are called.
function family.with(class, o)
  return function(...)
    local all = {...}
    all[#all + 1] = o
    return class(unpack(all))
  end
end

return family
