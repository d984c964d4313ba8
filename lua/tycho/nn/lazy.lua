-- Layers that take their number of input features from the first input, and then become the layer that they are named after: LazyLinear(10)
-- becomes a Linear(n, 10). Their parameters exist only from then on, so the optimizer must be made later. Loading a state dict has the same
-- effect.
local core = require "tycho.core"
local lib = require "tycho.nn.layer"
local module = require "tycho.nn.module"
local M = core.methods
local options = require "tycho.options"
local fail, shown = options.fail, options.shown

-- of(x): the features' dim of x; saved: their dim in a saved weight; signature: of the arguments, where defaults aren't the layer's
local function lazy(name, of, saved, signature)
  local Lazy = lib.layer("Lazy" .. name)
  Lazy._is_lazy = true
  function Lazy._becomes() return lib.classes[name] end
  function Lazy:init(...)
    self.arguments = signature and {options.arguments("Lazy" .. name, signature, ...), n = 1} or options.pack(...)
    self:register_buffer("like", core.ops.zeros({0}), {persistent = false})         -- to() changes it as it will the layer
    module.lazy_layers = true
  end
  function Lazy:extra_repr()
    local out, given = {}, self.arguments
    local function is_options(v) return type(v) == "table" and v[1] == nil end
    for i = 1, given.n do
      if not is_options(given[i]) then out[i] = lib.text(given[i]) end
    end
    local named = {}
    for k, v in pairs(is_options(given[given.n]) and given[given.n] or {}) do named[#named + 1] = ("%s=%s"):format(k, lib.text(v)) end
    table.sort(named)
    for _, text in ipairs(named) do out[#out + 1] = text end
    return table.concat(out, ", ")
  end
  local function become(self, features, device, dtype)
    local given = self.arguments
    local real = lib.classes[name](features, unpack(given, 1, given.n)):to(device)
    if dtype then real:to(dtype) end
    for k, v in pairs(real) do if k ~= "training" then rawset(self, k, v) end end
    setmetatable(self, getmetatable(real))
  end
  function Lazy:forward(x, ...)
    if not core.is_tensor(x) then fail("Lazy%s: argument 1 must be a tensor, got %s", name, shown(x)) end
    local own = not core.autocast(x.device ~= "cpu") and M.is_floating_point(x)
    become(self, x.shape[of(x)], x.device, own and x.dtype or nil)
    return self:forward(x, ...)
  end
  -- state: a state dict about to be loaded; prefix: of this layer's names in it. Gives a function that makes the layer lazy again; nil
  -- where the state doesn't have its sizes.
  function Lazy:learn(state, prefix)
    local w, given = state[prefix .. "weight"] or state[prefix .. "running_mean"], self.arguments
    local o = given[given.n]
    local groups = type(o) == "table" and o.groups or tonumber(given[6]) or 1          -- a convolution's sixth argument
    if core.is_tensor(w) and M.dim(w) > 0 and w.shape[saved] then
      local was, class = {}, getmetatable(self)
      for k, v in pairs(self) do was[k] = v end
      become(self, w.shape[saved] * (name:find "^Conv%d" and groups or 1), self.like.device, self.like.dtype)
      return function()
        for k in pairs(self) do rawset(self, k, nil) end
        for k, v in pairs(was) do rawset(self, k, v) end
        setmetatable(self, class)
      end
    end
  end
end

lazy("Linear", function(x) return M.dim(x) end, 2)
for dims = 1, 3 do
  local function channels(x) return M.dim(x) - dims end
  lazy(("Conv%dd"):format(dims), channels, 2)
  lazy(("ConvTranspose%dd"):format(dims), channels, 1)
  lazy(("InstanceNorm%dd"):format(dims), channels, 1, "eps=1e-5, momentum=0.1, affine=true, track_running_stats=true, *, bias=true")
  lazy(("BatchNorm%dd"):format(dims), function() return 2 end, 1)
end
