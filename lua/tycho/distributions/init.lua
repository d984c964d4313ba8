-- Distributions with the names and meanings of torch.distributions. base.lua says how they are made, divergences.lua how two are compared.
local options = require "tycho.options"
local base = require "tycho.distributions.base"
for _, family in ipairs {"elementary", "gamma", "composed", "vectors", "matrices", "circular", "relaxed", "transforms_vectors",
  "transformed", "divergences", "own"} do require("tycho.distributions." .. family) end
base.distributions.constraints = base.constraints
-- torch.distributions has transforms by their names too
for name, make in pairs(base.distributions.transforms) do
  if type(make) == "function" then base.distributions[name] = make end
end
local registry = require "tycho.distributions.registry"
base.distributions.biject_to, base.distributions.transform_to = registry.biject_to, registry.transform_to

return options.told(base.distributions, "distributions")
