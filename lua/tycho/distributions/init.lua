-- Distributions with the names and meanings of torch.distributions, and kl_divergence(p, q). base.lua says how they are made.
local options = require "tycho.options"
local base = require "tycho.distributions.base"
for _, family in ipairs {"elementary", "gamma", "composed", "relaxed"} do require("tycho.distributions." .. family) end
local fail, distributions, KL = options.fail, base.distributions, base.KL

-- kl_divergence(p, q): the Kullback-Leibler divergence of two distributions of one kind, in nats, for each of the batch.
function distributions.kl_divergence(p, q)
  local a, b = type(p) == "table" and p._name, type(q) == "table" and q._name
  if a and a == b and not KL[a] then fail("kl_divergence: there is none known of %s", a) end
  if not a or a ~= b then
    fail("kl_divergence: two distributions of one kind are needed, got %s and %s", a or options.shown(p), b or options.shown(q))
  end
  return KL[a](p, q)
end

return options.told(distributions, "distributions")
