-- Checks of optimizers' settings.
local core = require "tycho.core"
local options = require "tycho.options"
local M = core.methods
local check, shown, fail = options.check, options.shown, options.fail
local tree = require "tycho.tree"
local settings = {}

-- Whether a parameter has a float32 master where the group's master_weights asks for one.
function settings.is_half(p) return p.dtype == "float16" or p.dtype == "bfloat16" end

-- A setting that is a plain table, such as betas, as a table of its own: else a change of one group's would reach others.
function settings.own_copy(v)
  return tree.is_plain(v) and tree.map(v, function(x) return x end) or v
end

-- A group's options must be of their defaults' kinds; rates and the like must not be negative, betas are two numbers below 1.
local NOT_NEGATIVE = {lr = true, weight_decay = true, momentum = true, eps = true, alpha = true, momentum_decay = true,
  lr_decay = true, lambd = true, initial_accumulator_value = true}
-- Whether option k, whose default is given, which a program's own class has named, may have the value v: where the default is false, which
-- may mean none, any; and a tensor in place of a number.
local function is_free(self, k, default, v)
  return self.named and self.named[k] and k ~= "lr" and (default == false or core.is_tensor(v))
end
local function check_one(self, group, k, default, loaded)
  local name, v = self._name, group[k]
  if is_free(self, k, default, v) then return end
  if k == "betas" then
    local ok = type(v) == "table" and #v == 2
    for i = 1, ok and 2 or 0 do ok = ok and type(v[i]) == "number" and v[i] >= 0 and v[i] < 1 end
    if not ok then
      local listed = type(v) == "table" and ("{%s, %s}"):format(shown(v[1]), shown(v[2]))
      fail("%s: betas must be two numbers in 0..1, such as {0.9, 0.999}, got %s", name, listed or shown(v))
    end
  elseif type(default) == "boolean" and k ~= "line_search_fn" and k ~= "max_eval" then      -- of these, false means none
    if type(v) ~= "boolean" then fail("%s: %s must be a boolean, got %s", name, k, shown(v)) end
  elseif k == "lr" and core.is_tensor(v) then
    if M.numel(v) ~= 1 then fail("%s: lr must be a number or a tensor of one element, got shape %s", name, tostring(v.shape)) end
  elseif type(default) == "number" and (v ~= nil or self.defaults[k] ~= nil) then          -- a rate may come later
    if type(v) ~= "number" then fail("%s: %s must be a number, got %s", name, k, shown(v)) end
    if k == "rho" and not (v >= 0 and v <= 1) then fail("%s: rho must be in 0..1, got %g", name, v) end
    if v ~= v or (NOT_NEGATIVE[k] and v < 0 and not (loaded and k == "lr")) then
      fail("%s: %s must not be negative, got %g", name, k, v)
    end
  end
end
-- loaded: the settings come with a state, in which a schedule may have left a rate just below 0.
function settings.check(self, group, loaded)
  for k, default in pairs(self.defaults_of) do check_one(self, group, k, default, loaded) end
  if self.check then self:check(group) end
end

-- PyTorch's options for how an optimizer computes; accepted without effect.
settings.THEIRS = {foreach = true, fused = true, capturable = true, differentiable = true, decoupled_weight_decay = true}
function settings.without_theirs(name, given, known)
  local out = {}
  if type(given) ~= "table" then check(name, given, known) end
  for k, v in pairs(given) do
    if known[k] ~= nil or not settings.THEIRS[k] then out[k] = v
    elseif v and (k == "differentiable" or k == "decoupled_weight_decay") then
      fail("%s: there is no option %s%s", name, k, k == "differentiable" and "" or "; use AdamW")
    end
  end
  return out
end

return settings
