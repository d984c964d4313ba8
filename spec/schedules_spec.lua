-- Learning-rate schedules that are made anew, saved, or one after another.
local tycho = require "tycho"
local optim = tycho.optim
local L = optim.lr_scheduler
local function parameter() return tycho.zeros(1, {requires_grad = true}) end

describe("schedules", function()
  it("go on from last_epoch as one that was never made anew", function()
    local make = {
      function(o, e) return L.LinearLR(o, {total_iters = 8, last_epoch = e}) end,
      function(o, e) return L.PolynomialLR(o, {total_iters = 8, last_epoch = e}) end,
      function(o, e) return L.ExponentialLR(o, {gamma = 0.9, last_epoch = e}) end,
      function(o, e) return L.MultiplicativeLR(o, {lr_lambda = function(k) return 1 - k / 20 end, last_epoch = e}) end,
      function(o, e) return L.CosineAnnealingLR(o, {T_max = 9, last_epoch = e}) end,
      function(o, e) return L.SWALR(o, {swa_lr = 0.05, anneal_epochs = 9, last_epoch = e}) end,
      function(o, e) return L.StepLR(o, {step_size = 3, last_epoch = e}) end,
      function(o, e) return L.MultiStepLR(o, {milestones = {2, 7}, last_epoch = e}) end,
      function(o, e) return L.ConstantLR(o, {total_iters = 7, last_epoch = e}) end,
      function(o, e) return L.LambdaLR(o, {lr_lambda = function(k) return 1 / (k + 1) end, last_epoch = e}) end,
      function(o, e) return L.OneCycleLR(o, {max_lr = 2, total_steps = 12, last_epoch = e}) end,
      function(o, e) return L.CyclicLR(o, {base_lr = 0.1, max_lr = 1, step_size_up = 4, last_epoch = e}) end}
    for k, schedule in ipairs(make) do
      local opt = optim.SGD({parameter()}, {lr = 1, momentum = 0.9})
      local s = schedule(opt)
      for _ = 1, 5 do s:step() end
      local other = optim.SGD({parameter()}, {lr = 1, momentum = 0.9})
      other:load_state_dict(opt:state_dict())
      local t = schedule(other, 4)
      for e = 5, 9 do
        assert.near(opt.param_groups[1].lr, other.param_groups[1].lr, 1e-12, k .. ", epoch " .. e)
        assert.near(opt.param_groups[1].momentum, other.param_groups[1].momentum, 1e-12, k .. ", epoch " .. e)
        assert.equal(s.last_epoch, t.last_epoch)
        s:step()
        t:step()
      end
    end
  end)

  it("begin with the schedule whose milestone is 0", function()
    local function rates(n, milestones, ...)
      local opt = optim.SGD({parameter()}, {lr = 1})
      local list, out = {}, {}
      for i, make in ipairs {...} do list[i] = make(opt) end
      local s = L.SequentialLR(opt, list, milestones)
      for i = 1, n do
        out[i] = opt.param_groups[1].lr
        s:step()
      end
      return out
    end
    local function linear(o) return L.LinearLR(o, {total_iters = 5}) end
    local function cosine(o) return L.CosineAnnealingLR(o, {T_max = 4}) end
    local function near(want, got) for i, v in ipairs(want) do assert.near(v, got[i], 1e-7, "epoch " .. i - 1) end end
    near({1, 0.85355339, 0.5, 0.14644661, 0}, rates(5, {0}, linear, cosine))                  -- PyTorch 2.15's
    near({1, 0.85355339, 0.5, 0.33333333, 0.46666667}, rates(5, {0, 3}, linear, cosine, linear))
  end)

  it("save the lists that they were given", function()
    local function both(first, second, steps, ...)
      local a, b = optim.SGD({parameter()}, {lr = 1, momentum = 0.9}), optim.SGD({parameter()}, {lr = 1, momentum = 0.9})
      local s, t = first(a), second(b)
      for _ = 1, 2 do s:step(...) end
      b:load_state_dict(a:state_dict())
      t:load_state_dict(s:state_dict())
      for e = 1, steps do
        s:step(...)
        t:step(...)
        assert.near(a.param_groups[1].lr, b.param_groups[1].lr, 1e-12, "step " .. e)
      end
    end
    both(function(o) return L.MultiStepLR(o, {5, 8}) end, function(o) return L.MultiStepLR(o, {100}) end, 9)
    both(function(o) return L.OneCycleLR(o, {max_lr = {2}, total_steps = 20}) end,
      function(o) return L.OneCycleLR(o, {max_lr = 5, total_steps = 20}) end, 12)
    both(function(o) return L.CyclicLR(o, {base_lr = {0.1}, max_lr = {1}, step_size_up = 3}) end,
      function(o) return L.CyclicLR(o, {base_lr = 0.3, max_lr = 3, step_size_up = 3}) end, 9)
    both(function(o) return L.ReduceLROnPlateau(o, {patience = 0, factor = 0.1, min_lr = {0.05}}) end,
      function(o) return L.ReduceLROnPlateau(o, {patience = 0, factor = 0.1}) end, 4, 1)
    local function two(milestones) return function(o)
      return L.SequentialLR(o, {L.ConstantLR(o, {total_iters = 50}), L.ExponentialLR(o, 0.5)}, milestones)
    end end
    both(two {4}, two {30}, 6)
    local opt = optim.SGD({parameter()}, {lr = 1})
    local s = two {4}(opt)
    s:state_dict().milestones[1] = 99                     -- a copy
    assert.same({4}, s.milestones)
    -- no list where a number must stand, and the other way round, nor what else a list holds
    local steps, many = L.StepLR(opt, 2), L.MultiStepLR(opt, {5, 8})
    local d, e = steps:state_dict(), many:state_dict()
    d.step_size, e.milestones = {5}, 5
    steps:load_state_dict(d)
    many:load_state_dict(e)
    assert.equal(2, steps.step_size)
    assert.same({5, 8}, many.milestones)
    local Own = L.LRScheduler:extend("Own", "w=nil")
    function Own:lr_at(_, base) return base end
    assert.is_nil(Own(opt, {w = {tycho.ones(3)}}):state_dict().w)
  end)
end)
