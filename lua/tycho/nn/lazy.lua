-- Layers that learn from their first input how many features it has, and are then what they are named after:
-- LazyLinear(10) becomes a Linear(n, 10). Their parameters are there from that moment on, so an optimizer is made after
-- it.
local core = require "tycho.core"
local lib = require "tycho.nn.layer"
local module = require "tycho.nn.module"
local M = core.methods
local fail, shown = require("tycho.options").fail, require("tycho.options").shown

-- of(x): the dim of x that has the features
local function lazy(name, of)
  local Lazy = lib.layer("Lazy" .. name)
  Lazy._is_lazy = true
  function Lazy:init(...)
    self.arguments = {n = select("#", ...), ...}
    module.lazy_layers = true
  end
  function Lazy:forward(x, ...)
    local given = self.arguments
    if not core.is_tensor(x) then fail("Lazy%s: argument 1 must be a tensor, got %s", name, shown(x)) end
    local real = lib.classes[name](x.shape[of(x)], unpack(given, 1, given.n)):to(x.device)
    if not core.autocast(x.device ~= "cpu") and M.is_floating_point(x) then real:to(x.dtype) end
    for k, v in pairs(real) do if k ~= "training" then rawset(self, k, v) end end
    setmetatable(self, getmetatable(real))
    return self:forward(x, ...)
  end
end

lazy("Linear", function(x) return M.dim(x) end)
for dims = 1, 3 do
  local function channels(x) return M.dim(x) - dims end
  for _, kind in ipairs {"Conv%dd", "ConvTranspose%dd", "InstanceNorm%dd"} do lazy(kind:format(dims), channels) end
  lazy(("BatchNorm%dd"):format(dims), function() return 2 end)
end
