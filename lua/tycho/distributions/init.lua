-- Distributions with the names and meanings of torch.distributions. base.lua has their common base, divergences.lua compares two of them.
local options = require "tycho.options"
local base = require "tycho.distributions.base"
for _, family in ipairs {"elementary", "gamma", "composed", "vectors", "matrices", "circular", "relaxed", "transforms_vectors",
  "transformed", "divergences", "own"} do require("tycho.distributions." .. family) end
base.distributions.constraints = base.constraints
-- torch.distributions also has the transforms under their names
for name, make in pairs(base.distributions.transforms) do
  if type(make) == "function" then base.distributions[name] = make end
end
-- torch.distributions.kl
base.distributions.kl = options.told({kl_divergence = base.distributions.kl_divergence, register_kl = base.distributions.register_kl},
  "distributions.kl")
local registry = require "tycho.distributions.registry"
base.distributions.biject_to, base.distributions.transform_to = registry.biject_to, registry.transform_to

return options.told(base.distributions, "distributions")
