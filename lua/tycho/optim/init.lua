-- tycho.optim: the optimizers whose step is one call of a fused op for all parameters of a group that share a step count. Optimizers made
-- of ordinary ops are in composed.lua, LBFGS is in lbfgs.lua, and the common base in optimizer.lua.
local core = require "tycho.core"
local ops = core.ops
local options = require "tycho.options"
local fail = options.fail
local base = require "tycho.optim.optimizer"
local optim, new_class, extended, like = base.classes, base.new_class, base.extended, base.like

local function field(list, name)
  local out = {}
  for i, s in ipairs(list) do out[i] = s[name] end
  return out
end
---- SGD ----
-- Gradient descent: v = momentum v + (1 - dampening)(g + weight_decay p); p = p - lr v. nesterov: by g + momentum v.
local SGD = new_class("SGD",
  {lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0, nesterov = false, maximize = false, master_weights = false})
SGD.places = "momentum dampening weight_decay nesterov"
SGD.foreign = {exp_avg = true, exp_inf = true, square_avg = true, sum = true}    -- other optimizers' names: SGD may have no state to check
-- Momentum starts with the first gradient after it was switched on.
function SGD:lacks(s, group) return group.momentum ~= 0 and not s.momentum_buffer end
function SGD:new_state(p, group, s) if group.momentum ~= 0 then s.momentum_buffer = like(p) end end
function SGD:check(group)
  if group.nesterov and (group.momentum <= 0 or (group.dampening or 0) ~= 0) then
    fail "SGD: nesterov needs momentum above 0 and no dampening"
  end
end
function SGD:update(group, b)
  ops.sgd_step(b.params, b.grads, group.momentum ~= 0 and field(b.state, "momentum_buffer") or nil, b.copies or nil,
    b.step, b.lr, b.found, b.scale, group.momentum, group.dampening, group.weight_decay, group.nesterov, group.maximize)
end

---- Adam, AdamW ----
-- Kingma and Ba 2014. Adam adds weight_decay p to the gradient; AdamW (Loshchilov and Hutter 2017), and Adam with decoupled_weight_decay,
-- multiplies p by 1 - lr weight_decay.
for name, decay in pairs {Adam = 0, AdamW = 0.01} do
  local Adam = new_class(name,
    {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = decay, amsgrad = false, decoupled_weight_decay = name == "AdamW",
      maximize = false, master_weights = false})
  Adam.places = "betas eps weight_decay amsgrad"
  Adam.optional = {{name = "max_exp_avg_sq", asked = function(group) return group.amsgrad end}}
  function Adam:new_state(p, _, s)
    s.exp_avg, s.exp_avg_sq = like(p), like(p)
  end
  function Adam:update(group, b)
    ops.adamw_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"),
      group.amsgrad and field(b.state, "max_exp_avg_sq") or nil, b.copies or nil, b.step, b.lr, b.found, b.scale,
      group.betas[1], group.betas[2], group.eps, group.weight_decay, group.decoupled_weight_decay, group.maximize)
  end
end

---- NAdam, RAdam, Adamax, Adadelta ----
-- Adam with Nesterov's momentum (Dozat 2016). Its momentum schedule follows from the step count, momentum_decay and beta1; a state's
-- beta1_seen records changes of beta1.
local NAdam = new_class("NAdam",
  {lr = 2e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3,
    decoupled_weight_decay = false, maximize = false, master_weights = false})
-- Adam without the second moment in the first steps, until that is known well enough (Liu et al. 2019).
local RAdam = new_class("RAdam",
  {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, decoupled_weight_decay = false, maximize = false,
    master_weights = false})
-- Adam with the largest gradient, decayed by the second beta, in place of the second moment (Kingma and Ba 2014).
local Adamax = new_class("Adamax",
  {lr = 2e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, maximize = false, master_weights = false})
-- The gradient times the root mean square of past updates over that of past gradients (Zeiler 2012).
local Adadelta = new_class("Adadelta", {lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0, maximize = false, master_weights = false})
NAdam.places, RAdam.places = "betas eps weight_decay momentum_decay decoupled_weight_decay", "betas eps weight_decay decoupled_weight_decay"
Adamax.places = "betas eps weight_decay"
Adadelta.places = "rho eps weight_decay"
for class, names in pairs {[NAdam] = {"exp_avg", "exp_avg_sq"}, [RAdam] = {"exp_avg", "exp_avg_sq"},
    [Adamax] = {"exp_avg", "exp_inf"}, [Adadelta] = {"square_avg", "acc_delta"}} do
  function class:new_state(p, _, s) s[names[1]], s[names[2]] = like(p), like(p) end
end
-- beta1_seen of a parameter's state is {steps, last beta1, log of (the product of all beta1 / last beta1 ^ steps)}. Steps that a GradScaler
-- skips count here.
local function with_beta(seen, beta)
  local n, last, log = unpack(seen or {0, beta, 0})
  if last > 0 and beta > 0 then log = log + n * (math.log(last) - math.log(beta)) end
  return {n + 1, beta, log}
end
-- Takes over PyTorch's state, which has the product including the schedule's factors. s: the saved state, t: the new one.
function NAdam:took_over(group, s, t)
  local n, beta, product = s.step, group.betas[1], s.mu_product
  if not n or not product or s.beta1_seen or beta <= 0 then return end
  n, product = core.is_tensor(n) and n:item() or n, core.is_tensor(product) and product:item() or product
  local log = math.log(product) - n * math.log(beta)
  for i = 1, n do log = log - math.log(1 - 0.5 * 0.96 ^ (i * group.momentum_decay)) end
  t.beta1_seen = {n, beta, math.abs(log) < 1e-6 * n and 0 or log}            -- float32 in the file
end
function NAdam:update(group, b)
  local seen = with_beta(b.state[1].beta1_seen, group.betas[1])
  for _, s in ipairs(b.state) do s.beta1_seen = seen end
  ops.nadam_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"), b.copies or nil, b.step,
    b.lr, b.found, b.scale, group.betas[1], group.betas[2], group.eps, group.weight_decay,
    group.decoupled_weight_decay, group.momentum_decay, group.maximize, math.exp(seen[3]))
end
function RAdam:update(group, b)
  ops.radam_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_avg_sq"), b.copies or nil, b.step,
    b.lr, b.found, b.scale, group.betas[1], group.betas[2], group.eps, group.weight_decay,
    group.decoupled_weight_decay, group.maximize)
end
function Adamax:update(group, b)
  ops.adamax_step(b.params, b.grads, field(b.state, "exp_avg"), field(b.state, "exp_inf"), b.copies or nil, b.step, b.lr, b.found, b.scale,
    group.betas[1], group.betas[2], group.eps, group.weight_decay, group.maximize)
end
function Adadelta:update(group, b)
  ops.adadelta_step(b.params, b.grads, field(b.state, "square_avg"), field(b.state, "acc_delta"), b.copies or nil,
    b.step, b.lr, b.found, b.scale, group.rho, group.eps, group.weight_decay, group.maximize)
end

---- RMSprop, Adagrad ----
-- The gradient divided by the root of a running mean of its squares (Hinton). centered: by its standard deviation.
local RMSprop = new_class("RMSprop",
  {lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0, centered = false, maximize = false,
    master_weights = false})
RMSprop.places = "alpha eps weight_decay momentum centered"
RMSprop.optional = {{name = "momentum_buffer", asked = function(group) return group.momentum > 0 end},
  {name = "grad_avg", asked = function(group) return group.centered end}}
function RMSprop:new_state(p, _, s) s.square_avg = like(p) end
function RMSprop:update(group, b)
  ops.rmsprop_step(b.params, b.grads, field(b.state, "square_avg"), group.momentum > 0 and field(b.state, "momentum_buffer") or nil,
    group.centered and field(b.state, "grad_avg") or nil, b.copies or nil, b.step, b.lr, b.found, b.scale,
    group.alpha, group.eps, group.weight_decay, group.momentum, group.maximize)
end

-- The gradient divided by the root of the sum of all its past squares (Duchi et al. 2011).
local Adagrad = new_class("Adagrad",
  {lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10, maximize = false,
    master_weights = false})
Adagrad.places = "lr_decay weight_decay initial_accumulator_value eps"
function Adagrad:new_state(p, group, s) s.sum = like(p, group.initial_accumulator_value) end
function Adagrad:update(group, b)
  ops.adagrad_step(b.params, b.grads, field(b.state, "sum"), b.copies or nil, b.step, b.lr, b.found, b.scale,
    group.lr_decay, group.eps, group.weight_decay, group.maximize)
end

local composed = require "tycho.optim.composed"

optim.Optimizer = setmetatable({}, {__index = base.Optimizer})          -- Optimizer.state_dict(self), in a class's own
local OF_ALL = {lr = 1e-3, maximize = false, master_weights = false}          -- the options of every own class
-- A user's own optimizer: local Lion = optim.Optimizer:extend("Lion", {lr = 1e-4, beta = 0.9}), with two methods. Lion:new_state(p, group,
-- s) puts a parameter's state, tensors and numbers, into s at its first step. Lion:rule(group, p, grad, s, t, write) computes the new
-- values of the parameter and its state by ops, and calls write(tensor, new value) for each; t counts steps from 1: a float64 tensor
-- without dims, on the parameters' device, for arithmetic; for what Lua decides, count in the state: s.k = (s.k or 0) + 1. The defaults
-- list all options. Then Lion(net:parameters(), {lr = 1e-3}). A rate that changes while a compiled step runs must be a tensor on that
-- device, {lr = tycho.tensor(1e-3, {device = "cuda"})}, which schedulers write to: as a number each value is recorded anew. A method
-- Lion:init(params, options), if there is one, is called when self has its groups (so Optimizer.init(self, ...), which PyTorch's classes
-- call, does nothing): an optimizer around another makes the inner one there, self.base = optim.SGD(self.param_groups), whose groups are
-- the same tables. Groups, zero_grad, state dicts, schedulers, GradScaler, float32 masters and compiled steps work with it.
-- optim.SGD:extend and so on begin as that class instead: their methods may be replaced, and call the class's as optim.SGD.step(self).
function optim.Optimizer:extend(name, defaults)
  local class, made = composed(name, extended(name, OF_ALL, defaults), true)
  class.generic = true                   -- made of none of the library's optimizers
  class.hands_out = true                 -- a user's rule may keep a gradient
  class.named = base.names_in(nil, defaults, OF_ALL)
  class.lr_unset = not (defaults and defaults.lr ~= nil)  -- an optimizer around another may leave the rate to that one
  getmetatable(made).__newindex = class
  return made
end
-- Optimizer.init(self, params, options): does nothing; a user's init may call it, as PyTorch's do.
function optim.Optimizer.init() end
local ELSEWHERE = {SparseAdam = "embeddings' gradients are dense here: use Adam"}
return options.told(optim, "optim", nil, ELSEWHERE, {LBFGS = "tycho.optim.lbfgs", lr_scheduler = "tycho.optim.lr_scheduler",
  swa_utils = "tycho.optim.swa_utils"})
