-- What PyTorch's guides teach, as its users would write it here: copies, memory formats, streams, hooks, checks of gradients, datasets.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, data, cuda, fails, close = tycho.nn, tycho.data, tycho.cuda, helper.fails, helper.close
local DEVICE = tycho.get_default_device()

describe("guides: tensors", function()
  it("take another memory format, and tell", function()
    local x = tycho.randn(2, 3, 4, 5)
    local y = x:to {memory_format = "channels_last"}
    assert.is_true(y:is_contiguous {memory_format = "channels_last"} and not y:is_contiguous())
    assert.same({60, 1, 15, 3}, {unpack(y:stride())})
    close(y, x, "elements", 0)
    assert.is_false(x:is_contiguous "channels_last")
    assert.is_true(y:contiguous():is_contiguous())
    assert.equal(x, x:contiguous())
    assert.equal(y, y:contiguous {memory_format = "channels_last"})
    assert.is_true(nn.functional.max_pool2d(y, 2):is_contiguous "channels_last")
    assert.equal("2x4x2x3", tostring(nn.Conv2d(3, 4, 3):to {memory_format = "channels_last"}(y).shape))
    fails("must be 'contiguous' or 'channels_last'", x.is_contiguous, x, {memory_format = "sideways"})
    fails("4 dims", function() tycho.ones(3):to {memory_format = "channels_last"} end)
    local z = x:detach():requires_grad_()
    ;(z:to {memory_format = "channels_last"} * 2):sum():backward()
    close(z.grad, tycho.full({2, 3, 4, 5}, 2), "gradient", 0)
  end)

  it("keep another memory format where they are joined, padded, moved and pinned", function()
    local CL = {memory_format = "channels_last"}
    local x = tycho.randn(2, 3, 4, 5)
    local y = x:to(CL)
    for _, fn in ipairs {function(v) return tycho.cat({v, v * 2, v + 1}, 2) end, function(v) return tycho.cat({v, v}, 4) end,
        function(v) return nn.functional.pad(v, {1, 2, 0, 1}) end, function(v) return nn.functional.pad(v, {-1, 2, 1, -1, 1, 0}) end} do
      local a, b = x:detach():requires_grad_(), y:detach():requires_grad_()
      local p, q = fn(a), fn(b)
      assert.is_true(q:is_contiguous(CL) and p:is_contiguous())
      assert.is_true(p:equal(q))
      local g = tycho.randn(p.shape)
      assert.is_true(tycho.grad((p * g):sum(), a):equal(tycho.grad((q * g):sum(), b)))
    end
    if not cuda.is_available() then return end
    for _, v in ipairs {y, y:transpose(1, 2), y[{ {}, {}, {2, 3} }], x} do
      v = v:to "cpu"
      local moved = v:to "cuda"
      assert.equal(v:is_contiguous(CL), moved:is_contiguous(CL))
      assert.is_true(moved:cpu():equal(v))
      assert.equal(v:is_contiguous(CL), moved:cpu():is_contiguous(CL))
      assert.is_true(v:pin_memory():equal(v))
      assert.equal(v:is_contiguous(CL), v:pin_memory():is_contiguous(CL))
    end
  end)

  it("go to a dtype, a device, or both, and are copied where that is asked for", function()
    local x = tycho.randn(3)
    assert.equal(x, x:to "float32")
    assert.is_false(rawequal(x, x:to("float32", {copy = true})))
    assert.equal("float16", x:to(DEVICE, "float16").dtype)
    assert.equal("float64", x:to({dtype = "float64"}).dtype)
    assert.equal("int64", x:to(tycho.ones(1, {dtype = "int64"})).dtype)
    assert.equal(x, x:to(DEVICE, true))                    -- non_blocking, as PyTorch's position has it
    fails("did you mean 'float16'", x.to, x, "floot16")
    fails("got nil", x.to, x)
    assert.equal(12, x:nbytes())
    assert.equal("float64", nn.Linear(2, 2):to(DEVICE, {dtype = "float64", non_blocking = true}).weight.dtype)
  end)

  it("are limited by numbers of another kind", function()
    local x = tycho.tensor({1, 2}, {dtype = "int64"})
    assert.same({"float32", 1.5, 2}, {x:clamp(1.5).dtype, unpack(x:clamp(1.5):totable())})
    assert.equal("int64", x:clamp(nil, 1).dtype)
    assert.equal("float32", x:clamp_max(0.5).dtype)
    assert.equal("int64", tycho.tensor({true}):clamp(2).dtype)
    fails("clamp: min or max is needed", x.clamp, x)
  end)

  it("give several results where PyTorch gives a tuple", function()
    local a, b = tycho.meshgrid(tycho.range(1, 2), tycho.range(1, 3), {indexing = "ij"})
    assert.same({{1, 1, 1}, {2, 2, 2}}, a:totable())
    assert.same({{1, 2, 3}, {1, 2, 3}}, b:totable())
    local p, q = tycho.broadcast_tensors(tycho.ones(2, 1), tycho.ones(3))
    assert.equal("2x3 2x3", ("%s %s"):format(tostring(p.shape), tostring(q.shape)))
    assert.equal("5x2x3", tostring(tycho.broadcast_shapes({2, 1}, {3}, {5, 1, 1}, {})))
    assert.equal("300000x300000", tostring(tycho.broadcast_shapes({300000, 1}, {300000})))
    fails("broadcast_shapes: dim 1 has 2 and 3 elements", tycho.broadcast_shapes, {2}, {3})
    fails("broadcast_shapes: argument 2 must be a list of sizes, got 3", tycho.broadcast_shapes, {2}, 3)
    assert.equal(tycho.zeros({}).shape, tycho.broadcast_shapes())
    fails("dim 2 has 2 and 0 elements", tycho.broadcast_tensors, tycho.ones(1, 2), tycho.ones(1, 0))
  end)

  it("stay exact in sums of products under autocast", function()
    local x = tycho.full({70000}, 1)
    tycho.amp.autocast({device = DEVICE, dtype = "float16"}, function()
      for _, y in ipairs {x:dot(x), x:vdot(x), tycho.tensordot(x, x, 1), x:inner(x)} do assert.equal(70000, y:item()) end
      assert.equal("float32", nn.Bilinear(2, 3, 4)(tycho.ones(5, 2), tycho.ones(5, 3)).dtype)
      local half = tycho.ones(5, 2):mm(tycho.ones(2, 2))
      assert.same({"float16", "float32"}, {half.dtype, nn.Bilinear(2, 2, 4)(half, half).dtype})
      assert.equal("float32", half:flatten():dot(tycho.ones(10)).dtype)
    end)
  end)

  it("are printed as they are asked to be", function()
    local x = tycho.tensor {1.23456, 100}
    local function text(v) return tostring(v):match "^(.*)\n" end
    tycho.set_printoptions {precision = 2}
    assert.equal("[  1.23, 100.00]", text(x))
    tycho.set_printoptions {sci_mode = true, precision = 3}
    assert.equal("[1.235e+00, 1.000e+02]", text(x))
    tycho.set_printoptions {profile = "default", threshold = 3, edgeitems = 1}
    assert.equal("[1.,  ..., 5.]", text(tycho.range(1, 5)))
    tycho.set_printoptions {profile = "default"}
    assert.equal("[  1.2346, 100.0000]", text(x))
    fails("unknown option 'precison'; did you mean 'precision'", tycho.set_printoptions, {precison = 2})
    fails("sci_mode must be", tycho.set_printoptions, {sci_mode = 3})
    fails("precision must be a whole number from 0", tycho.set_printoptions, {precision = -1})
  end)

  it("say what dtypes become together", function()
    assert.equal("float32", tycho.promote_types("float16", "bfloat16"))
    assert.equal("float16", tycho.promote_types("int64", "float16"))
  end)

  it("have their random numbers forked", function()
    tycho.manual_seed(5)
    assert.equal(5, tycho.initial_seed())
    local a = tycho.fork_rng(function() return tycho.randn(3) end)
    close(tycho.randn(3), a, "as if the fork hadn't been", 0)
    assert.is_false(pcall(tycho.fork_rng, error, "x"))
  end)
end)

describe("guides: gradients", function()
  it("are used as soon as they are whole", function()
    local w, v = tycho.randn(3, {requires_grad = true}), tycho.randn(3, {requires_grad = true})
    local before, calls = w:detach():clone(), 0
    local hook = w:register_post_accumulate_grad_hook(function(p)
      calls = calls + 1
      assert.equal(w, p)
      tycho.no_grad(function() p:sub_(p.grad, {alpha = 0.5}) end)
      p.grad = nil
    end)
    local looked
    w:register_hook(function(g) looked = g return g * 2 end)
    ;(w * v):sum():backward()
    close(w:detach(), before - v:detach(), "a step of 0.5 with a doubled gradient", 1e-6)
    close(looked, v:detach(), "the hook before", 0)
    assert.is_true(calls == 1 and w.grad == nil and v.grad ~= nil)
    hook.remove()
    ;(w * 2):sum():backward()
    close(w.grad, tycho.full({3}, 4), "kept again", 0)
    fails("only leaves", function() (w * 2):register_post_accumulate_grad_hook(print) end)
    local bad = tycho.ones(1, {requires_grad = true})
    bad:register_post_accumulate_grad_hook(function() error "stop" end)
    fails("stop", function() (bad * 2):backward() end)
  end)

  it("go to the inputs that are named, come as zeroes where nothing was used, and from several outputs", function()
    local w, v = tycho.randn(3, {requires_grad = true}), tycho.randn(3, {requires_grad = true})
    ;(w * v):sum():backward {inputs = {w}}
    close(w.grad, v:detach(), "w", 0)
    assert.is_nil(v.grad)
    local told = 0
    local hook = w:register_post_accumulate_grad_hook(function() told = told + 1 end)
    ;(w * v):sum():backward {inputs = {w, w}}
    hook:remove()
    close(w.grad, v:detach() * 2, "added up, once", 0)
    assert.equal(1, told)
    ;(tycho.utils.checkpoint(function(x) return x * v end, w) * 1):sum():backward {inputs = {v}}
    close(v.grad, w:detach(), "what a checkpoint uses besides", 0)
    fails("input 1 must be a tensor", function() (w * v):sum():backward {inputs = {3}} end)
    local scaler = tycho.amp.GradScaler {init_scale = 8}
    scaler:scale((w * v):sum()):backward {inputs = w}
    fails("scaled by a GradScaler", function() tycho.optim.SGD({w}, {lr = 1}):step() end)
    close(tycho.grad((w * 2):sum(), {w, v}, {materialize_grads = true})[2], tycho.zeros(3), "zeroes", 0)
    w.grad = nil
    tycho.autograd.backward({(w * 2):sum(), w * 3}, {false, tycho.ones(3)})
    close(w.grad, tycho.full({3}, 5), "both", 0)
    w.grad = nil
    ;(w * 2):backward {gradient = tycho.ones(3)}
    close(w.grad, tycho.full({3}, 2), "by PyTorch's name", 0)
    assert.is_true(tycho.autograd.gradgradcheck(function(x) return x ^ 3 end, {tycho.rand(3, {dtype = "float64", requires_grad = true})}))
  end)

  it("with NaN are found, with the op and its line", function()
    local line = debug.getinfo(1, "l").currentline + 3
    local message = select(2, pcall(tycho.autograd.detect_anomaly, function()
      local x = tycho.zeros(2, {requires_grad = true})
      local y = x:sqrt() * 0
      y:sum():backward()
    end))
    assert.truthy(message:find(("sqrt, called at [^ ]*guides_spec.lua:%d, gave a gradient with NaN for its op"):format(line)), message)
    assert.is_false(tycho.autograd.is_anomaly_enabled())
    local x = tycho.ones(2, {requires_grad = true})
    tycho.autograd.detect_anomaly(function() x:log():sum():backward() end)
    close(x.grad, tycho.ones(2), "nothing to find", 0)
  end)

  it("of functions are written in either of PyTorch's styles", function()
    local F = tycho.autograd.Function {
      forward = function(x, k) return x * k, x:gt(0) end,
      setup_context = function(ctx, inputs, outputs)
        ctx:save_for_backward(inputs[1])
        assert.is_false((inputs[1] * 2).requires_grad)
        ctx.k = inputs[2]
        ctx:mark_non_differentiable(outputs[2])
        ctx:set_materialize_grads(false)
      end,
      backward = function(ctx, g, none)
        assert.is_nil(none)
        return g * ctx.k
      end}
    local x = tycho.randn(3, {requires_grad = true})
    local y, positive = F.apply(x, 3)
    assert.is_false(positive.requires_grad)
    y:sum():backward()
    close(x.grad, tycho.full({3}, 3), "gradient", 0)
    fails("'setup_context' must be a function", tycho.autograd.Function, {forward = print, backward = print, setup_context = 3})
  end)
end)

describe("guides: modules", function()
  it("count once what they share, and themselves", function()
    local Net = nn.Module:extend "Net"
    local a = Net()
    a.x = nn.ReLU()
    a.y = a.x
    assert.equal(1, #a:children())
    local p, q = Net(), Net()
    p.b, q.a = q, p
    assert.equal(2, #p:modules())
    local names = {}
    for name in p:named_modules() do names[#names + 1] = name end
    assert.same({"", "b"}, names)
  end)

  it("hand their inputs to hooks as a list", function()
    local l = nn.Linear(2, 3)
    local x = tycho.randn(4, 2)
    local want = l(x * 2)
    for _, answer in ipairs {function(v) return {v * 2} end, function(v) return v * 2 end} do
      local h = l:register_forward_pre_hook(function(_, inputs) return answer(inputs[1]) end)
      close(l(x), want, "replaced", 1e-6)
      h:remove()
    end
  end)

  it("average batch norm's statistics over all batches where momentum is false", function()
    local bn, xs = nn.BatchNorm1d(2, {momentum = false}), {tycho.randn(8, 2), tycho.randn(8, 2), tycho.randn(8, 2)}
    local mean = tycho.zeros(2)
    for _, x in ipairs(xs) do
      bn(x)
      mean = mean + x:mean(1) / 3
    end
    close(bn.running_mean, mean, "mean of means", 1e-6)
    assert.equal("BatchNorm1d(2, eps=1e-05, momentum=false, affine=true, track_running_stats=true)", tostring(bn))
  end)

  it("stay modules when they are compiled", function()
    local net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    local fast = tycho.compile(net)
    assert.equal(4, #fast:parameters())
    assert.equal(fast, fast:eval())
    assert.is_false(net.training)
    local x = tycho.randn(3, 4)
    tycho.no_grad(function() for _ = 1, 4 do close(fast(x), net(x), "results", 0) end end)
    assert.is_true(fast:report()[1].compiled)
    fast:load_state_dict(fast:state_dict())
    fast.note = 3
    assert.equal(3, net.note)
    assert.equal(net[1], fast[1])
    assert.equal("compiled Sequential(", tostring(fast):match "^[^\n]*")
    net.steps = 5
    assert.equal(5, fast.steps)
    local Outer = nn.Module:extend "Outer"
    function Outer:init() self.inner = tycho.compile(nn.Linear(4, 4)) end
    function Outer:forward(v) return self.inner(v) end
    for _, outer in ipairs {Outer(), nn.Sequential(tycho.compile(nn.Linear(4, 4)))} do
      assert.equal(2, #outer:parameters())
      assert.is_false(outer:eval():children()[1].training)
      local names = {}
      for name in pairs(outer:state_dict()) do names[#names + 1] = name:match "[^.]*$" end
      table.sort(names)
      assert.same({"bias", "weight"}, names)
      tycho.no_grad(function() for _ = 1, 3 do assert.equal("3x4", tostring(outer(x).shape)) end end)
      assert.equal(2, #outer:clone():parameters())
    end
    local holder = Outer()
    tycho.no_grad(function() for _ = 1, 3 do holder(x) end end)
    assert.is_true(holder.inner:report()[1].compiled and nn.isinstance(holder.inner, nn.Linear))
    assert.truthy(tycho.jit.trace(fast:eval(), x))
    assert.equal("compiled function", tostring(tycho.compile(print)))
  end)
end)

describe("guides: training", function()
  local Lion = tycho.optim.Optimizer:extend("Lion", {lr = 1e-4, betas = {0.9, 0.99}, weight_decay = 0})
  function Lion:new_state(p, _, s) s.exp_avg = tycho.zeros_like(p) end
  function Lion:rule(group, p, g, s, t, write) -- luacheck: ignore
    local b1, b2 = unpack(group.betas)
    write(p, p * (1 - group.lr * group.weight_decay) - (s.exp_avg * b1 + g * (1 - b1)):sign() * group.lr)
    write(s.exp_avg, s.exp_avg * b2 + g * (1 - b2))
  end
  -- the same in plain Lua, of one number
  local function plain(p, grads, lr)
    local m = 0
    for _, g in ipairs(grads) do
      local u = 0.9 * m + 0.1 * g
      p, m = p - lr * (u > 0 and 1 or u < 0 and -1 or 0), 0.99 * m + 0.01 * g
    end
    return p, m
  end

  it("steps with an optimizer of one's own: groups, state dicts, master weights, scalers, compiled steps", function()
    local grads = {1, -2, 0.5, -0.25, 3}
    local want, want_m = plain(0.75, grads, 0.01)
    local function train(step_of, dtype, o)
      local p = tycho.full({1}, 0.75, {dtype = dtype}):requires_grad_()
      local opt = Lion({{params = {p}, lr = 0.01}}, o)
      local step = step_of(p, opt)
      for _, g in ipairs(grads) do step(tycho.full({1}, g)) end
      return p, opt
    end
    local function usual(p, opt)
      return function(g)
        opt:zero_grad()
        ;(p * g):sum():backward()
        opt:step()
      end
    end
    local p, opt = train(usual)
    assert.is_true(math.abs(p:item() - want) < 1e-6)
    local saved = opt:state_dict()
    assert.is_true(math.abs(saved.state[1].exp_avg:item() - want_m) < 1e-6)
    assert.equal(5, saved.state[1].step:item())
    local other = Lion({p})
    other:load_state_dict(saved)
    assert.equal(0.01, other.param_groups[1].lr)
    p = train(function(q, o) return tycho.compile(usual(q, o)) end)
    assert.is_true(math.abs(p:item() - want) < 1e-6)
    local scaler = tycho.amp.GradScaler {init_scale = 8}
    p = train(function(q, o)
      return function(g)
        o:zero_grad()
        scaler:scale((q * g):sum()):backward()
        scaler:step(o)
        scaler:update()
      end
    end)
    assert.is_true(math.abs(p:item() - want) < 1e-6)
    p, opt = train(usual, "float16", {master_weights = true})
    assert.is_true(math.abs(opt:state_dict().state[1].master:item() - want) < 1e-6 and p.dtype == "float16")
    fails("Lion: unknown option 'betaz'; did you mean 'betas'?", Lion, {p}, {betaz = 1})
    fails("a method rule(", function()
      local q = tycho.ones(1, {requires_grad = true})
      q:sum():backward()
      tycho.optim.Optimizer:extend "Bare" ({q}):step()
    end)
    assert.is_nil(rawget(tycho.optim, "Lion"))
  end)

  it("follows a schedule of one's own", function()
    local Halved = tycho.optim.lr_scheduler.LRScheduler:extend("Halved", "every=10")
    function Halved:lr_at(epoch, base) return base * 0.5 ^ math.floor(epoch / self.every) end
    local opt = tycho.optim.SGD({tycho.ones(1, {requires_grad = true})}, {lr = 8})
    local s, seen = Halved(opt, {every = 2}), {}
    for i = 1, 6 do
      seen[i] = opt.param_groups[1].lr
      s:step()
    end
    assert.same({8, 8, 4, 4, 2, 2}, seen)
    assert.equal("Halved(epoch 6, lr 1)", tostring(s))
    fails("a method lr_at(", tycho.optim.lr_scheduler.LRScheduler:extend "Bare", opt)
  end)
end)

describe("guides: data", function()
  it("comes from chosen positions, several datasets, and lists in items", function()
    local numbers = data.TensorDataset(tycho.range(1, 10, 1, {device = "cpu"}))
    local seen = {}
    for x in data.DataLoader(numbers, {sampler = data.SubsetRandomSampler {3, 5, 7}, batch_size = 2, seed = 1}):iter() do
      for _, v in ipairs(x:totable()) do seen[#seen + 1] = v end
    end
    table.sort(seen)
    assert.same({3, 5, 7}, seen)
    local both = data.StackDataset(numbers, numbers)
    assert.same({4, 4}, {both:get(4)})
    local gap = {size = function() return 10 end, get = function(_, i) return i, nil end}
    assert.equal(4, select("#", data.StackDataset(gap, gap):get(1)))
    fails("argument 2 has 3 items, argument 1 has 10", data.StackDataset, numbers, data.TensorDataset(tycho.ones(3, {device = "cpu"})))
    local lists = {size = function() return 2 end, get = function(_, i) return {i, 2, 7.5}, i end}
    for a in data.DataLoader(lists, {batch_size = 2}):iter() do
      assert.equal(3, #a)
      assert.same({1, 2}, a[1]:totable())
      assert.equal("float32", a[3].dtype)
    end
    local uneven = {size = function() return 2 end, get = function(_, i) return i == 1 and {1, 2} or {1} end}
    fails("is a list of 1, item 1 is a list of 2", function() for _ in data.DataLoader(uneven, {batch_size = 2}):iter() do end end)
  end)
end)

describe("guides: streams of data", function()
  local function numbers(n)
    return {iter = function()
      local i = 0
      return function()
        i = i + 1
        if i <= n then return tycho.full({2}, i, {device = "cpu"}), i, math.random() end
      end
    end}
  end
  local function epoch(l)
    local seen = {}
    for x, i, r in l:iter() do
      assert.equal(#i, #x)
      for k = 1, #i do seen[#seen + 1] = ("%d %.6f"):format(i[k], r[k]) end
    end
    return seen
  end

  it("come in their own order, in batches, with draws that the seed decides", function()
    local l = data.DataLoader(numbers(7), {batch_size = 3, seed = 4})
    local first, second = epoch(l), epoch(l)
    assert.equal(7, #first)
    assert.is_true(first[1] ~= second[1])
    local again = data.DataLoader(numbers(7), {batch_size = 3, seed = 4})
    assert.same({first, second}, {epoch(again), epoch(again)})
    assert.equal(6, #epoch(data.DataLoader(numbers(7), {batch_size = 3, drop_last = true})))
    assert.equal("DataLoader(a stream, batches of 3)", tostring(l))
    for x in data.DataLoader(numbers(2),
        {batch_size = 2, collate_fn = function(items) return #items + items[1][2] end}):iter() do
      assert.equal(3, x)
    end
    for x in data.Prefetcher(data.DataLoader(numbers(2), {batch_size = 2}), DEVICE):iter() do
      assert.equal(tycho.ones(1):to(DEVICE).device, x.device)
    end
  end)

  it("go on where they stood", function()
    local l = data.DataLoader(numbers(10), {batch_size = 3, seed = 4})
    local whole, state = {}, nil
    for _, i in l:iter() do
      whole[#whole + 1] = i[1]
      if #whole == 2 then state = l:state_dict() end
    end
    local other, rest = data.DataLoader(numbers(10), {batch_size = 3}), {}
    other:load_state_dict(state)
    for _, i in other:iter() do rest[#rest + 1] = i[1] end
    assert.same({whole[3], whole[4]}, rest)
    assert.equal(1, other:state_dict().epoch)
    fails("batches of 3", data.DataLoader(numbers(1), {batch_size = 2}).load_state_dict,
      data.DataLoader(numbers(1), {batch_size = 2}), state)
  end)

  it("say what they can't have", function()
    fails("shuffle can't be used with it", data.DataLoader, numbers(3), {shuffle = true})
    fails("workers can't read this dataset with iter()", data.DataLoader, numbers(3), {num_workers = 1})
    fails("doesn't say how many items", data.DataLoader(numbers(3)).size, data.DataLoader(numbers(3)))
    fails("must return an iterator", function() for _ in data.DataLoader({iter = function() return 3 end}):iter() do end end)
    fails("with size() and get(i), or with iter()", data.DataLoader, {})
  end)
end)

describe("guides: names", function()
  it("are told also where letters are swapped or the end is missing", function()
    fails("did you mean 'label_smoothing'", nn.CrossEntropyLoss, {label_smooth = 0.1})
    fails("did you mean 'dir'", tycho.checkpoint.Manager, {dri = "x"})
    fails("backends.cudnn has no 'benchmrk'; did you mean 'benchmark'?", function() tycho.backends.cudnn.benchmrk = true end)
    fails("did you mean 'allow_tf32'", function() return tycho.backends.cuda.allow_tf23 end)
    fails("backends has no 'cudnnn'; did you mean 'cudnn'?", function() tycho.backends.cudnnn = 1 end)
  end)
  it("of options come before a function that arguments follow", function()
    for who, fn in pairs {autocast = tycho.amp.autocast, profile = tycho.profiler.profile} do
      fails(who .. ": options come before the function: " .. who .. "({...}, fn, ...)", fn, function() end,
        who == "autocast" and {dtype = "bfloat16"} or {record_shapes = true})
    end
    assert.equal(2, tycho.amp.autocast(function(t) return #t end, {1, 2}))
    assert.equal(3, tycho.inference_mode(false, function(v) return v end, 3))
    fails("inference_mode: argument 2 must be a function", tycho.inference_mode, false, 3)
    fails("argument 2 (index) must be a whole number", tycho.device, "cuda", print)
    local x = tycho.ones(2, {requires_grad = true, dtype = "float64"})
    fails("gives different values each time", tycho.autograd.gradcheck, function(v) return v * tycho.rand(1, {dtype = "float64"}) end, {x})
    local n = 0
    fails("checkpoint: computed again, result 1 has shape 2, not ()", function()
      tycho.utils.checkpoint(function(v) n = n + 1 return n == 1 and v:sum() or v * 2 end, x):backward()
    end)
  end)
end)

if cuda.is_available() then
  local cached = os.getenv "TYCHO_CUDA_CACHE" ~= "0"         -- graphs need it
  describe("guides: cuda", function()
    it("copies from and to pinned memory without waiting", function()
      local d, p = tycho.randn(4, {device = "cuda"}), tycho.randn(4, {device = "cpu"}):pin_memory()
      assert.is_true(p:is_pinned() and not tycho.ones(1, {device = "cpu"}):is_pinned())
      assert.is_true(tycho.zeros(3, {device = "cpu", pin_memory = true}):is_pinned() and
        tycho.full({3}, 2, {device = "cpu", pin_memory = true}):is_pinned())
      local q = tycho.empty(4, {device = "cpu", pin_memory = true})
      local before = cuda.sync_count()
      d:copy_(p, {non_blocking = true})
      d:copy_(p, true)
      q:copy_(d, {non_blocking = true})
      assert.equal(before, cuda.sync_count(), "syncs")
      local r = d:to("cpu", {non_blocking = true})
      assert.is_true(r:is_pinned())
      cuda.synchronize()
      close(q, p, "there and back", 0)
      close(r, p, "by to", 0)
      if not cached then return end
      local g = cuda.graph(function() q:copy_(d, true) end)
      d:fill_(7)
      g:replay()
      cuda.synchronize()
      close(q, tycho.full({4}, 7, {device = "cpu"}), "in a graph", 0)
      g:reset()
      fails("has been reset", g.replay, g)
    end)

    it("knows its streams and devices again", function()
      local s = cuda.Stream()
      assert.is_true(cuda.current_stream() == cuda.current_stream() and cuda.default_stream() == cuda.current_stream())
      cuda.stream(s, function() assert.is_true(cuda.current_stream() == s and cuda.current_stream() ~= cuda.default_stream()) end)
      cuda.set_stream(s)
      assert.is_true(cuda.current_stream() == s)
      cuda.set_stream(cuda.default_stream())
      assert.equal(0, tycho.ones(1, {device = "cuda:0"}):get_device())
      assert.equal(0, cuda.device(0, function() return cuda.current_device() end))
      assert.is_false(cuda.is_current_stream_capturing())
      assert.equal(cuda.device_count(), #cuda.get_rng_state_all())
      assert.equal("cuda:0", s.device)
      assert.equal("cuda:0", cuda.Event().device)
      fails("a stream has no 'synchronise'; did you mean 'synchronize'?", function() s:synchronise() end)
      assert.equal(5, cuda.stream(nil, function(v) return v end, 5))
      if cuda.device_count() > 1 then
        local other = cuda.Stream {device = "cuda:1", priority = -1}
        assert.equal(1, cuda.stream(other, cuda.current_device))
        assert.equal(0, cuda.current_device())
      end
    end)

    it("finds hidden waits", function()
      local x, p = tycho.ones(3, {device = "cuda"}), tycho.ones(3, {device = "cpu", pin_memory = true})
      cuda.set_sync_debug_mode "error"
      local refused = {}
      for name, fn in pairs {item = function() return x:sum():item() end, cpu = function() return x:cpu() end,
          nonzero = function() return x:nonzero() end, copy = function() x:copy_(p) end} do
        local ok, e = pcall(fn)
        refused[name] = not ok and tostring(e):find("waits for the device", 1, true) ~= nil
      end
      local fine = pcall(function() return (x * 2 + 1):sum(), x:copy_(p, {non_blocking = true}), x:to("cpu", {non_blocking = true}) end)
      cuda.set_sync_debug_mode "default"
      assert.same({item = true, cpu = true, nonzero = true, copy = true}, refused)
      assert.is_true(fine)
      assert.equal(3, x:sum():item())
      fails("must be 'default', 'warn' or 'error'", cuda.set_sync_debug_mode, "warm")
    end)

    if cached then it("a graph has room where memory was cached for others, and says what capture can't have", function()
      tycho.empty(8, 1024, 1024, {device = "cuda"}):free()
      local x = tycho.ones(8, {device = "cuda"})
      local before = cuda.memory_reserved()
      local g, y = cuda.graph(function() return x * 2 end)
      assert.is_true(cuda.memory_reserved() < before)
      g:replay()
      assert.same(tycho.full({8}, 2):totable(), y:totable())
      local e = cuda.Event()
      e:record()
      fails("query: called while a graph is captured", cuda.graph, function() e:query() end)
      fails("another stream's work isn't joined: call current_stream():wait_stream(s)", cuda.graph, function()
        local s = cuda.Stream()
        s:wait_stream(cuda.current_stream())
        cuda.stream(s, function() return x + 1 end)
      end)
      fails("options come before the function", cuda.graph, function() end, {pool = g})
      local waits
      cuda.graph(function()
        local count = cuda.sync_count()
        cuda.empty_cache()
        waits = cuda.sync_count() - count
      end):replay()
      assert.equal(0, waits)                                         -- left undone while it was recorded, for nothing may wait then
    end) end

    it("one_hot with its classes given waits for nothing", function()
      local ids = tycho.tensor({1, 3}, {dtype = "int64", device = "cuda"})
      local before = cuda.sync_count()
      local y = tycho.one_hot(ids, 4)
      assert.equal(before, cuda.sync_count())
      assert.same({{1, 0, 0, 0}, {0, 0, 1, 0}}, y:totable())
    end)
  end)
end
