-- Distributions with the names and meanings of torch.distributions. base.lua says how they are made, divergences.lua how two are compared.
local options = require "tycho.options"
local base = require "tycho.distributions.base"
for _, family in ipairs {"elementary", "gamma", "composed", "vectors", "matrices", "circular", "relaxed", "transforms_vectors",
  "transformed", "divergences"} do require("tycho.distributions." .. family) end
base.distributions.constraints = base.constraints

return options.told(base.distributions, "distributions")
