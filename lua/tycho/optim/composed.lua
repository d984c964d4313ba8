-- Optimizers whose steps are made of ordinary ops, parameter by parameter: Rprop, ASGD, Adafactor, Muon.
--
-- Idea: a class has rule(group, p, g, state, t, write), which computes the new values of the parameter and its state and calls write for
-- each; users' own optimizers (optim.Optimizer:extend) work the same way. Invariant: a step that a GradScaler skips, which is decided on
-- the device, writes nothing and isn't counted; no value goes to the host.
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local options = require "tycho.options"
local fail, shown = options.fail, options.shown
local EPS = require("tycho.functional.lib").EPS
local ops, M = core.ops, core.methods
local base = require "tycho.optim.optimizer"
local new_class, like = base.new_class, base.like

-- The group with these of its numbers as tensors. In a compiled function only an optimizer op reads its rate again at each call, while
-- other numbers are part of the record: so a step of SGD from 0, with gradient -1, produces the tensor.
local function with_tensors(group, names, b)
  local o, values = {dtype = "float64", device = b.params[1].device}, {}
  for _, name in ipairs(names) do
    local value, count = ops.zeros({}, o), ops.zeros({}, {dtype = "int64", device = o.device})
    ops.sgd_step({value}, {ops.full({}, -1, o)}, {step = count, lr = group[name], momentum = 0, dampening = 0, weight_decay = 0,
      nesterov = false, maximize = false})
    values[name] = value
  end
  return setmetatable(values, {__index = group})
end

local function class(name, defaults, own)
  local Class, made = new_class(name, defaults, own)
  Class.of_ops = true
  -- Class.built_rule: the library's rule, which may be given the rate and the numbers that Class.scheduled names as tensors
  function Class:update(group, b)
    no_grad(function()
      if core.program.active() then group = with_tensors(group, self:read_again(group), b) end
      local skip = b.found and ops.ne(b.found, 0)
      local wrote
      local function write(to, new)
        wrote = true
        M.copy_(to, skip and ops.where(skip, to, new) or new)
      end
      local t = M.to(b.step, "float64") + 1
      for i, p in ipairs(b.params) do
        local copy = b.copies and b.copies[i]
        if copy then write(p, ops.where(ops.eq(M.to(p, copy.dtype), copy), p, M.to(copy, p.dtype))) end    -- see ops.def
        local g = M.to(b.grads[i]:detach(), p.dtype)
        if b.scale then g = g / b.scale end
        if group.maximize then g = -g end
        wrote = false
        if self:rule(group, p, g, b.state[i], t, write) ~= nil and not wrote then
          fail("%s: rule must call write(p, value) rather than return a value", self._name)
        end
        if copy then write(copy, M.to(p, copy.dtype)) end
      end
      M.copy_(b.step, skip and ops.where(skip, b.step, b.step + 1) or b.step + 1)
    end)
  end
  return Class, made
end
local function as(x, p) return M.to(x, p.dtype) end

---- Rprop ----
-- A step size for each element, which grows while the gradient's sign stays, and shrinks when it changes (Riedmiller and Braun 1993).
local Rprop = class("Rprop", {lr = 1e-2, etas = {0.5, 1.2}, step_sizes = {1e-6, 50}, maximize = false, master_weights = false})
Rprop.places = "etas step_sizes"
function Rprop:check(group)
  for _, name in ipairs {"etas", "step_sizes"} do
    local v = group[name]
    if type(v) ~= "table" or #v ~= 2 or type(v[1]) ~= "number" or type(v[2]) ~= "number" or v[1] >= v[2] then
      fail("Rprop: %s must be two numbers, the smaller first", name)
    end
  end
  local less, more = unpack(group.etas)
  if less <= 0 or less >= 1 or more <= 1 then fail("Rprop: etas must be a number in 0..1 and one above 1, got {%g, %g}", less, more) end
end
function Rprop:new_state(p, group, s) s.prev, s.step_size = like(p), core.keep(M.mul_(like(p, 1), group.lr)) end
function Rprop:rule(group, p, g, s, _, write)
  local same = g * s.prev
  local turned = ops.lt(same, 0)
  local factor = ops.masked_fill(ops.masked_fill(M.new_ones(p, p.shape), ops.gt(same, 0), group.etas[2]), turned, group.etas[1])
  local size = ops.clamp(s.step_size * factor, group.step_sizes[1], group.step_sizes[2])
  g = ops.where(turned, 0, g)
  write(p, p - ops.sign(g) * size)
  write(s.prev, g)
  write(s.step_size, size)
end

---- ASGD ----
-- Gradient descent; state[p].ax is the average of the parameter's past values (Polyak and Juditsky 1992).
local ASGD = class("ASGD", {lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0, maximize = false, master_weights = false})
ASGD.places, ASGD.scheduled = "lambd alpha t0 weight_decay", {"weight_decay"}
local NUMBER = ops.zeros({}).shape
function ASGD:state_shape(name, p) return (name == "eta" or name == "mu") and NUMBER or p.shape end
function ASGD:new_state(p, group, s)
  local o = {dtype = p.dtype, device = p.device}
  s.ax, s.eta, s.mu = like(p), core.keep(ops.ones({}, o) * group.lr), core.keep(ops.ones({}, o))
end
function ASGD:rule(group, p, g, s, t, write)
  if group.weight_decay ~= 0 then g = g + p * group.weight_decay end
  local new = p * (1 - s.eta * group.lambd) - g * s.eta
  write(s.ax, ops.lerp(s.ax, new, s.mu))
  write(p, new)
  write(s.eta, as(ops.pow(t * (group.lambd * group.lr) + 1, -group.alpha) * group.lr, p))      -- for the next step
  write(s.mu, as(1 / ops.clamp(t - group.t0, 1), p))
end

---- Adafactor ----
-- Adam without momentum; a matrix's second moments are kept for its rows and columns only (Shazeer and Stern 2018).
local Adafactor = class("Adafactor",
  {lr = 1e-2, beta2_decay = -0.8, eps = {false, 1e-3}, d = 1, weight_decay = 0, maximize = false, master_weights = false})
Adafactor.places, Adafactor.scheduled = "beta2_decay eps d weight_decay", {"weight_decay"}
Adafactor.needs_whole = true
function Adafactor:check(group)
  local eps = group.eps
  if group.d < 1 then fail("Adafactor: d must be at least 1, got %g", group.d) end
  if group.beta2_decay > 0 then fail("Adafactor: beta2_decay must be at most 0, got %g", group.beta2_decay) end
  if type(eps) ~= "table" or not (eps[1] == nil or eps[1] == false or type(eps[1]) == "number" and eps[1] >= 0) or
      not (type(eps[2]) == "number" and eps[2] >= 0) then
    fail("Adafactor: eps must be two numbers from 0 (the first may be false), got %s", shown(eps))
  end
end
function Adafactor:state_shape(name, p)
  local n = M.dim(p)
  if name == "row_var" or name == "col_var" then
    local shape = p.shape
    shape[name == "row_var" and n or n - 1] = 1
    return shape
  end
  return p.shape
end
-- the parameter's dims decide which of these there are
function Adafactor:lacks(s) return not (s.variance or s.row_var) end
function Adafactor:new_state(p, _, s)
  local o = {dtype = p.dtype, device = p.device}
  if M.dim(p) < 2 then s.variance = like(p) return end
  for _, name in ipairs {"row_var", "col_var"} do s[name] = core.keep(ops.zeros(self:state_shape(name, p), o)) end
end
local function mean_square(x, ...) return ops.mean(ops.square(x), ...) end
function Adafactor:rule(group, p, g, s, t, write)
  local fresh = as(ops.pow(t, group.beta2_decay), p)
  local rho = as(ops.minimum(1 / ops.sqrt(t), group.lr), p)
  local alpha = ops.clamp(ops.sqrt(mean_square(p)), group.eps[2]) * rho
  local least = group.eps[1] or EPS[p.dtype]
  local estimate
  if s.row_var then
    local row = ops.lerp(s.row_var, mean_square(g, -1, {keepdim = true}), fresh)
    local col = ops.lerp(s.col_var, mean_square(g, -2, {keepdim = true}), fresh)
    write(s.row_var, row)
    write(s.col_var, col)
    estimate = ops.matmul(row, col) / ops.clamp(ops.mean(row, -2, {keepdim = true}), least)
  else
    estimate = ops.lerp(s.variance, ops.square(g), fresh)
    write(s.variance, estimate)
  end
  local update = ops.rsqrt(ops.clamp(estimate, least * least)) * g
  local step = alpha / ops.clamp(ops.sqrt(mean_square(update)) / group.d, 1)
  write(p, p * (1 - group.lr * group.weight_decay) - update * step)
end

---- Muon ----
-- For matrices only: the momentum made orthogonal by Newton-Schulz iterations, on a GPU in bfloat16 (Jordan et al. 2024).
local Muon = class("Muon",
  {lr = 1e-3, weight_decay = 0.1, momentum = 0.95, nesterov = true, ns_coefficients = {3.4445, -4.7750, 2.0315},
    eps = 1e-7, ns_steps = 5, adjust_lr_fn = "original", maximize = false, master_weights = false})
Muon.places, Muon.scheduled = "weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn", {"weight_decay", "momentum"}
Muon.needs_whole = true
function Muon:check(group)
  if group.adjust_lr_fn ~= "original" and group.adjust_lr_fn ~= "match_rms_adamw" then
    fail("Muon: adjust_lr_fn must be 'original' or 'match_rms_adamw', got %s", shown(group.adjust_lr_fn))
  end
  options.whole("Muon", "ns_steps", group.ns_steps, 0)
  if group.ns_steps >= 100 then fail("Muon: ns_steps must be less than 100, got %d", group.ns_steps) end
  if type(group.ns_coefficients) ~= "table" or #group.ns_coefficients ~= 3 then fail "Muon: ns_coefficients must be three numbers" end
  for _, p in ipairs(group.params) do
    if core.is_tensor(p) and M.dim(p) ~= 2 then          -- a saved group has numbers
      fail("Muon: parameters must be matrices, got shape %s: use AdamW for other parameters", tostring(p.shape))
    end
  end
end
function Muon:lacks(s) return not s.momentum_buffer end
function Muon:new_state(p, _, s) s.momentum_buffer = like(p) end
function Muon:rule(group, p, g, s, _, write)
  local rows, cols = p.shape[1], p.shape[2]
  local buffer = ops.lerp(s.momentum_buffer, g, 1 - group.momentum)
  write(s.momentum_buffer, buffer)
  local x = group.nesterov and ops.lerp(g, buffer, group.momentum) or buffer
  if p.device ~= "cpu" then x = M.to(x, "bfloat16") end
  if rows > cols then x = M.t(x) end
  x = x / ops.clamp(M.norm(x), group.eps)
  local a, b, c = unpack(group.ns_coefficients)
  for _ = 1, group.ns_steps do
    local gram = ops.matmul(x, M.t(x))
    x = x * a + ops.matmul(gram * b + ops.matmul(gram, gram) * c, x)
  end
  if rows > cols then x = M.t(x) end
  local rate = group.adjust_lr_fn == "match_rms_adamw" and 0.2 * math.sqrt(math.max(rows, cols)) or math.sqrt(math.max(1, rows / cols))
  write(p, p * (1 - group.lr * group.weight_decay) - as(x, p) * (group.lr * rate))
end
for _, Class in ipairs {Rprop, ASGD, Adafactor, Muon} do Class.built_rule = Class.rule end

return class
