-- L-BFGS: a quasi-Newton method for whole-batch problems. step(closure) evaluates the closure (which clears gradients, computes the
-- loss, runs backward and returns it) up to max_eval times. Defaults, stopping rules and the strong Wolfe search are PyTorch's
-- (Nocedal & Wright 2006, algorithms 3.5, 3.6 and 7.4).
local core = require "tycho.core"
local modes = require "tycho.modes"
local saving = require "tycho.saving"
local flat = require "tycho.nn.flat"
local options = require "tycho.options"
local fail = options.fail
local ops, M = core.ops, core.methods
local new_class = require("tycho.optim.optimizer").new_class
local own_copy = require("tycho.optim.settings").own_copy
local tree = require "tycho.tree"

-- The minimum within lo..hi of the cubic through two points with given slopes.
local function cubic(x1, f1, g1, x2, f2, g2, lo, hi)
  lo, hi = lo or math.min(x1, x2), hi or math.max(x1, x2)
  local d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
  local square = d1 * d1 - g1 * g2
  if square < 0 or square ~= square then return (lo + hi) / 2 end
  local d2 = math.sqrt(square)
  local at = x1 <= x2 and x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2)) or x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
  return math.min(math.max(at, lo), hi)
end

-- The closure's loss as a number.
local function number(loss)
  if core.is_tensor(loss) and M.numel(loss) == 1 then return loss:item() end
  if type(loss) ~= "number" then
    fail("LBFGS: the closure must return the loss, a tensor of one element or a number, got %s", options.shown(loss))
  end
  return loss
end

-- along(t) gives loss, gradient and slope at step t. Returns loss, gradient, t, number of evaluations.
local function strong_wolfe(along, t, d_norm, f, g, slope, c1, c2, tolerance, most)
  local f_new, g_new, slope_new = along(t)
  local evals, done, bracket = 1, false, nil
  local t_old, f_old, g_old, slope_old = 0, f, g, slope
  for i = 0, most - 1 do
    if f_new > f + c1 * t * slope or (i > 1 and f_new >= f_old) then
      bracket = {{t_old, f_old, g_old, slope_old}, {t, f_new, g_new, slope_new}}
      break
    end
    if math.abs(slope_new) <= -c2 * slope then
      bracket, done = {{t, f_new, g_new, slope_new}}, true
      break
    end
    if slope_new >= 0 then
      bracket = {{t_old, f_old, g_old, slope_old}, {t, f_new, g_new, slope_new}}
      break
    end
    local low, high = t + 0.01 * (t - t_old), t * 10
    local before = t
    t = cubic(t_old, f_old, slope_old, t, f_new, slope_new, low, high)
    t_old, f_old, g_old, slope_old = before, f_new, g_new, slope_new
    f_new, g_new, slope_new = along(t)
    evals = evals + 1
  end
  if not bracket then bracket = {{0, f, g, slope}, {t, f_new, g_new, slope_new}} end
  local low, high = 1, 2                             -- the better and the worse end
  if #bracket == 2 and bracket[1][2] > bracket[2][2] then low, high = 2, 1 end
  local stuck = false
  while not done and #bracket == 2 and evals <= most do
    local a, b = bracket[1], bracket[2]
    if math.abs(b[1] - a[1]) * d_norm < tolerance then break end
    t = cubic(a[1], a[2], a[4], b[1], b[2], b[4])
    local left, right = math.min(a[1], b[1]), math.max(a[1], b[1])
    local margin = 0.1 * (right - left)
    if math.min(right - t, t - left) < margin then   -- too near an end: allowed once
      if stuck or t >= right or t <= left then
        t = math.abs(t - right) < math.abs(t - left) and right - margin or left + margin
        stuck = false
      else stuck = true end
    else stuck = false end
    f_new, g_new, slope_new = along(t)
    evals = evals + 1
    if f_new > f + c1 * t * slope or f_new >= bracket[low][2] then
      bracket[high] = {t, f_new, g_new, slope_new}
      low, high = 1, 2
      if bracket[1][2] > bracket[2][2] then low, high = 2, 1 end
    else
      if math.abs(slope_new) <= -c2 * slope then done = true
      elseif slope_new * (bracket[high][1] - bracket[low][1]) >= 0 then bracket[high] = bracket[low] end
      bracket[low] = {t, f_new, g_new, slope_new}
    end
  end
  local best = bracket[low] or bracket[1]
  return best[2], best[3], best[1], evals
end

-- A quasi-Newton method for losses over the whole data; one group of parameters. line_search_fn: "strong_wolfe".
local LBFGS = new_class("LBFGS",
  {lr = 1, max_iter = 20, max_eval = false, tolerance_grad = 1e-7, tolerance_change = 1e-9, history_size = 100,
    line_search_fn = false})
LBFGS.places = "max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"
LBFGS.needs_whole = true

local function flat_grad(params)
  local list = {}
  for i, p in ipairs(params) do
    list[i] = p.grad or ops.zeros({M.numel(p)}, {dtype = p.dtype, device = p.device})
  end
  return flat.join(list)
end
local function move(params, t, d)                  -- params += t d
  flat.each(d, params, function(i, part) M.add_(params[i], part, {alpha = t}) end)
end
local function dot(a, b) return ops.sum(a * b):item() end
-- Remembers y, the gradient's change over a step, and drops the oldest; not where the curvature is too small to use.
local function remember(s, y, step, history_size)
  local ys = dot(y, step)
  if ys <= 1e-10 then return end
  if #s.dirs == history_size then for _, list in ipairs {s.dirs, s.steps, s.ro} do table.remove(list, 1) end end
  local n = #s.dirs + 1
  s.dirs[n], s.steps[n], s.ro[n] = core.keep(y), core.keep(step), 1 / ys
  s.diag = ys / dot(y, y)
end
-- The direction at the gradient g: -g times the inverse Hessian approximated from remembered steps, by the two-loop recursion.
local function direction(s, g)
  local q, al = -g, {}
  for i = #s.dirs, 1, -1 do
    al[i] = dot(s.steps[i], q) * s.ro[i]
    q = ops.add(q, s.dirs[i], {alpha = -al[i]})
  end
  local d = q * s.diag
  for i = 1, #s.dirs do d = ops.add(d, s.steps[i], {alpha = al[i] - dot(s.dirs[i], d) * s.ro[i]}) end
  return d
end

function LBFGS:check(group)
  if group.line_search_fn and group.line_search_fn ~= "strong_wolfe" then
    fail("LBFGS: line_search_fn must be 'strong_wolfe', got %s", options.shown(group.line_search_fn))
  end
  options.whole("LBFGS", "max_iter", group.max_iter, 1)
  options.whole("LBFGS", "history_size", group.history_size, 1)
  if group.max_eval then options.whole("LBFGS", "max_eval", group.max_eval, 1) end
end
-- step(closure): up to max_iter updates. closure clears the gradients, computes the loss, runs backward and returns the loss; it is called
-- up to max_eval times (max_iter * 5 / 4 unless given). Gives the first loss.
function LBFGS:step(closure)
  closure = options.named("step", "closure", closure)
  if not modes.callable(closure) then fail("LBFGS: step needs a closure that computes the loss, runs backward and returns the loss") end
  if #self.param_groups ~= 1 then fail("LBFGS: only one group of parameters is supported") end
  local o = self.param_groups[1]
  local params, s = o.params, self.state[o.params[1]] or {evals = 0, iters = 0}
  if self.stepping then fail "LBFGS: the closure must not call step" end
  self.state[params[1]] = s
  local most = o.max_eval or math.floor(o.max_iter * 5 / 4)
  local function evaluate()
    self.stepping = true
    return (options.finally(function() self.stepping = nil end, modes.enable_grad, closure))
  end
  local first = evaluate()
  modes.no_grad(function()
    local loss, evals = number(first), 1
    s.evals = s.evals + 1
    local g = flat_grad(params)
    if ops.amax(ops.abs(g)):item() <= o.tolerance_grad then return end
    local d, t, g_old, loss_old = s.d, s.t, s.g_old, s.loss_old
    s.d = nil                                      -- if an error interrupts, no direction is left, and the next step starts afresh
    local n = 0
    while n < o.max_iter do
      n = n + 1
      s.iters = s.iters + 1
      local anew = not d
      if anew then s.dirs, s.steps, s.ro, s.diag = {}, {}, {}, 1
      else remember(s, g - g_old, d * t, o.history_size) end
      d = direction(s, g)
      g_old, loss_old = g, loss
      local lr = core.is_tensor(o.lr) and o.lr:item() or o.lr
      t = anew and math.min(1, 1 / ops.sum(ops.abs(g)):item()) * lr or lr
      local slope = dot(g, d)
      if slope > -o.tolerance_change then break end
      local used = 0
      if o.line_search_fn then
        local start = {}
        for i, p in ipairs(params) do start[i] = ops.clone(p) end
        local function at(k)
          for i, p in ipairs(params) do M.copy_(p, start[i]) end
          move(params, k, d)
        end
        loss, g, t, used = strong_wolfe(function(k)
          at(k)
          local f = number(evaluate())
          local grad = flat_grad(params)
          return f, grad, dot(grad, d)
        end, t, ops.amax(ops.abs(d)):item(), loss, g, slope, 1e-4, 0.9, 1e-9, most - evals)
        at(t)
      else
        move(params, t, d)
        if n ~= o.max_iter then
          loss = number(evaluate())
          g = flat_grad(params)
          used = 1
        end
      end
      evals = evals + used
      s.evals = s.evals + used
      if n == o.max_iter or evals >= most or ops.amax(ops.abs(g)):item() <= o.tolerance_grad then break end
      if ops.amax(ops.abs(d)):item() * t <= o.tolerance_change or math.abs(loss - loss_old) < o.tolerance_change then break end
    end
    s.d, s.t, s.g_old, s.loss_old = core.keep(d), t, core.keep(g_old), loss_old
  end)
  return first
end

-- Its state, which contains lists of tensors, belongs to all parameters together.
LBFGS.apply_gradients = false                       -- it evaluates the loss itself, so a GradScaler can't take part
function LBFGS:state_dict()
  local o, copy = self.param_groups[1], {params = {}}
  for k, v in pairs(o) do if k ~= "params" then copy[k] = own_copy(v) end end
  for i = 1, #o.params do copy.params[i] = i end
  local s, saved = self.state[o.params[1]], {}
  for k, v in pairs(s or {}) do saved[k] = tree.is_plain(v) and {unpack(v)} or v end         -- lists, to which steps add
  return {state = saved.d and {saved} or {}, param_groups = {copy}}
end
function LBFGS:check_state_dict(d)
  if type(d) ~= "table" or type(d.param_groups) ~= "table" or type(d.state) ~= "table" then
    fail "load_state_dict: a table with state and param_groups is needed"
  end
  local g, s = d.param_groups[1], d.state[1]
  if #d.param_groups ~= 1 or type(g) ~= "table" or type(g.params) ~= "table" or #g.params ~= #self.param_groups[1].params then
    fail "load_state_dict: the state has another number of parameters"
  end
  if d.state[0] ~= nil or (s ~= nil and (type(s) ~= "table" or not core.is_tensor(s.d))) then
    fail "load_state_dict: not a state of Tycho's L-BFGS; PyTorch's can't be loaded"
  end
  local n = 0
  for _, p in ipairs(self.param_groups[1].params) do n = n + M.numel(p) end
  if s and M.numel(s.d) ~= n then fail("load_state_dict: the state's direction has %d elements, the parameters %d", M.numel(s.d), n) end
end
function LBFGS:load_state_dict(d)
  self:check_state_dict(d)
  local o = self.param_groups[1]
  for k, v in pairs(d.param_groups[1]) do if k ~= "params" then o[k] = own_copy(v) end end
  self.state = {}
  if d.state[1] then self.state[o.params[1]] = saving.copied(d.state[1], o.params[1].device) end
end
LBFGS._loads = LBFGS.load_state_dict
