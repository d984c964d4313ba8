-- Mixed precision: what autocast computes in, loss scaling against PyTorch's, masters of 16-bit parameters, and the mistakes that must not
-- pass in silence.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, amp, F = tycho.nn, tycho.optim, tycho.amp, tycho.nn.functional
local device, cuda = helper.device, helper.device ~= "cpu"

local function cast(fn, dtype) return amp.autocast({dtype = dtype or "bfloat16", device = device}, fn) end

describe("autocast", function()
  it("a convolution's filter and its gradient lie as the parameter does, whatever the device works with", function()
    for _, dtype in ipairs {"float16", "bfloat16"} do
      local conv, half = nn.Conv2d(3, 5, 3, {bias = false}), nn.Conv2d(3, 5, 3, {bias = false})
      half:to(dtype)
      local function same() tycho.no_grad(function() half.weight:copy_(conv.weight) end) end
      local x, opt = tycho.randn(2, 3, 8, 8), tycho.optim.SGD(conv:parameters(), {lr = 0.1})
      for _ = 1, 3 do
        same()
        conv:zero_grad()
        half:zero_grad()
        local y = cast(function() return conv(x) end, dtype)
        local z = half(x:to(dtype))
        helper.close(y:float(), z:float(), "the same product", 1e-2)
        y:float():square():mean():backward()
        z:float():square():mean():backward()
        for _, net in ipairs {conv, half} do
          assert.is_true(net.weight.grad:is_contiguous())
          assert.equal(net.weight.dtype, net.weight.grad.dtype)
        end
        helper.close(conv.weight.grad, half.weight.grad:float(), "gradient", 2e-2)
        opt:step()
      end
      local g = tycho.grad(cast(function() return conv(x) end, dtype):float():sum(), conv.weight)
      assert.same({5, 3, 3, 3}, {g:size(1), g:size(2), g:size(3), g:size(4)})
      assert.equal(135, g:view(-1):numel())
    end
  end)

  it("computes each op in its class's dtype", function()
    local x, w = tycho.randn(4, 8), tycho.randn(8, 8)
    local image, kernel = tycho.randn(2, 3, 8, 8), tycho.randn(4, 3, 3, 3)
    local q = tycho.randn(1, 2, 6, 8)
    local labels = tycho.tensor({1, 2, 3, 4}, {dtype = "int64"})
    for _, half in ipairs {"float16", "bfloat16"} do
      local got = {}
      cast(function()
        got.matmul, got.linear, got.einsum, got.bmm = x:matmul(w).dtype, F.linear(x, w).dtype,
          tycho.einsum("ij,jk->ik", x, w).dtype, x:unsqueeze(1):bmm(w:unsqueeze(1)).dtype
        got.conv = F.conv2d(image, kernel).dtype
        got.attention = F.scaled_dot_product_attention(q, q, q).dtype
        local h = x:matmul(w)
        got.relu, got.mixed, got.cat = h:relu().dtype, (h + x).dtype, tycho.cat({h, x}).dtype
        got.softmax, got.sum, got.exp, got.pow, got.layer_norm = h:softmax(2).dtype, h:sum().dtype, h:exp().dtype,
          (h ^ 2).dtype, F.layer_norm(h, {8}).dtype
        got.cross_entropy, got.mse, got.norm = F.cross_entropy(h, labels).dtype, F.mse_loss(h, h).dtype, h:norm().dtype
        got.double, got.whole = x:double():matmul(w:double()).dtype, tycho.ones(3, {dtype = "int64"}):sum().dtype
        got.place = x:clone():add_(h).dtype
        local c = F.conv2d(image, kernel)
        got.batch_norm = F.batch_norm(c, tycho.zeros(4), tycho.ones(4), nil, nil, {training = true}).dtype
      end, half)
      for _, name in ipairs {"matmul", "linear", "einsum", "bmm", "conv", "attention", "relu", "batch_norm"} do
        assert.equal(half, got[name], name)
      end
      for _, name in ipairs {"mixed", "cat", "softmax", "sum", "exp", "pow", "layer_norm", "cross_entropy", "mse",
          "norm", "place"} do
        assert.equal("float32", got[name], name)
      end
      assert.equal("float64", got.double)
      assert.equal("int64", got.whole)
    end
    assert.equal("float32", x:matmul(w).dtype)
  end)

  it("nests, is off for other devices and other coroutines, and ends also where fn errs", function()
    local x = tycho.randn(4, 4)
    local function dtype() return x:matmul(x).dtype end
    local other
    cast(function()
      assert.equal("bfloat16", dtype())
      assert.equal("float16", cast(dtype, "float16"))
      assert.equal("float32", amp.autocast({enabled = false, device = device}, dtype))
      assert.equal("bfloat16", dtype())
      other = coroutine.wrap(dtype)()
      assert.same({true, "bfloat16"}, {amp.is_autocast_enabled(device)})
    end)
    assert.equal("float32", other)
    assert.equal("float32", amp.autocast({dtype = "float16", device = cuda and "cpu" or "cuda"}, dtype))
    pcall(cast, function() error("x") end)
    assert.equal("float32", dtype())
    assert.is_false((amp.is_autocast_enabled()))
    assert.same({1, nil, 3}, {cast(function() return 1, nil, 3 end)})
    helper.fails("dtype must be 'float16' or 'bfloat16', got 'float32'", amp.autocast, {dtype = "float32"}, dtype)
    helper.fails("unknown option 'dtyp'; did you mean 'dtype'?", amp.autocast, {dtyp = "float16"}, dtype)
    helper.fails("device must be 'cpu' or 'cuda', got 'gpu'", amp.autocast, {device = "gpu"}, dtype)
    helper.fails("argument 2 must be a function", amp.autocast, {}, nil)
  end)

  it("gives gradients in the parameters' dtype, as PyTorch's bfloat16 autocast does", function()
    local t = helper.read("spec/golden/amp.safetensors")
    local p = {}
    for _, name in ipairs {"w1", "b1", "g", "b", "w2", "b2"} do p[name] = nn.Parameter(t["mlp." .. name]) end
    local z
    local loss = cast(function()
      local h = F.linear(t["mlp.x"], p.w1, p.b1)
      h = F.layer_norm(F.gelu(h), {48}, p.g, p.b)
      z = F.linear(h, p.w2, p.b2)
      return F.cross_entropy(z, t["mlp.y"])
    end)
    loss:backward()
    helper.close(z, t["mlp.z"])
    helper.close(loss, t["mlp.loss"], "loss", 2e-3)
    for name, v in pairs(p) do
      local want = t["mlp.grad." .. name]
      assert.equal("float32", v.grad.dtype)
      local far = ((v.grad - want):norm() / want:norm()):item()
      assert.is_true(far < 0.01, name .. ": " .. far)
    end
  end)

  it("keeps a parameter's 16-bit copy until the parameter changes", function()
    local w, x = nn.Parameter(tycho.randn(64, 64)), tycho.randn(4, 64)
    local y = cast(function() return x:matmul(w) end)
    local function expected() return x:bfloat16():matmul(w:detach():bfloat16()) end
    helper.close(y, expected(), "first", 0)
    tycho.no_grad(function() w:mul_(2) end)
    helper.close(cast(function() return x:matmul(w) end), expected(), "changed in place", 0)
    y = cast(function() return x:matmul(w) end)
    y:float():sum():backward()
    local opt = optim.SGD({w}, {lr = 0.1})
    opt:step()
    helper.close(cast(function() return x:matmul(w) end), expected(), "after a step", 0)
    helper.close(cast(function() return x:matmul(w) end, "float16"), x:half():matmul(w:detach():half()), "another dtype", 0)
    -- a graph that still needs the old copy gets the old copy
    local v = tycho.randn(4, 64):requires_grad_()
    local before = w:detach():clone()
    local kept = cast(function() return v:matmul(w) end)
    opt:step()
    kept:float():sum():backward()
    helper.close(v.grad, tycho.ones(4, 64):bfloat16():matmul(before:bfloat16():t()):float(), "old copy", 0)
  end)

  it("computes nothing anew for a copy that the optimizer wrote", function()
    local net = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    local copy = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    copy:load_state_dict(net:state_dict())
    local x, y = tycho.randn(8, 32), tycho.randn(8, 4)
    for _, make in ipairs {function(p) return optim.AdamW(p, {lr = 0.01}) end,
                           function(p) return optim.SGD(p, {lr = 0.01, momentum = 0.9}) end,
                           function(p) return optim.RMSprop(p) end, function(p) return optim.Adagrad(p) end,
                           function(p) return optim.NAdam(p) end, function(p) return optim.RAdam(p) end,
                           function(p) return optim.Adamax(p) end, function(p) return optim.Adadelta(p) end} do
      local a, b = make(net:parameters()), make(copy:parameters())
      for _ = 1, 3 do
        a:zero_grad() b:zero_grad()
        cast(function() return F.mse_loss(net(x), y) end):backward()
        for _, p in ipairs(copy:parameters()) do tycho.no_grad(function() p:add_(0) end) end       -- its copies are made anew
        cast(function() return F.mse_loss(copy(x), y) end):backward()
        a:step() b:step()
      end
      for i, p in ipairs(net:parameters()) do helper.close(p, copy:parameters()[i], "parameter " .. i, 0) end
    end
  end)

  it("is off in backward, whose products are of the dtypes that forward chose", function()
    local a, b = tycho.randn(4, 4):requires_grad_(), tycho.randn(4, 4):requires_grad_()
    local y = a:matmul(b)
    cast(function() y:sum():backward() end)
    helper.close(a.grad, tycho.ones(4, 4):matmul(b:detach():t()), "float32 product", 1e-6)
  end)
end)

describe("an autograd.Function under autocast", function()
  it("runs its backward as its forward, or both without it", function()
    local seen = {}
    local function see(x) seen[#seen + 1] = x.dtype .. " " .. tostring((amp.is_autocast_enabled())) end
    local Product = tycho.autograd.Function {
      forward = amp.custom_fwd(function(ctx, a, b)
        ctx:save_for_backward(a, b)
        return a:mm(b)
      end),
      backward = amp.custom_bwd(function(ctx, g)
        local a, b = ctx:saved_tensors()
        local da = g:mm(b:t())
        see(da)
        return da, a:t():mm(g)
      end)}
    local Twice = tycho.autograd.Function {
      forward = amp.custom_fwd(function(_, x, k) see(x) return x * k end, {cast_inputs = "float32"}),
      backward = amp.custom_bwd(function(_, g) see(g) return g * 2 end)}
    local a, b = tycho.randn(3, 4, {requires_grad = true}), tycho.randn(4, 2, {requires_grad = true})
    local function run() return Twice(Product(a, b), 2) end
    local y = amp.autocast({dtype = "bfloat16"}, run)
    assert.equal("float32", y.dtype)
    y:sum():backward()
    assert.same({"float32 false", "float32 false", "bfloat16 true"}, seen)
    assert.equal("float32", a.grad.dtype)
    helper.close(a.grad, tycho.grad(a:mm(b):sum() * 2, a), nil, 0.05)
    seen = {}
    run():sum():backward()                                       -- outside of autocast nothing is cast
    assert.same({"float32 false", "float32 false", "float32 false"}, seen)
    helper.fails("forward must be wrapped in custom_fwd", function()
      local G = tycho.autograd.Function {forward = function(_, x) return x * 1 end, backward = amp.custom_bwd(function(_, g) return g end)}
      G(a):sum():backward()
    end)
  end)
end)

describe("GradScaler", function()
  it("gives PyTorch's scales and weights over 10,000 steps of numbers, infinities and NaN", function()
    local t = helper.read("spec/golden/amp.safetensors")
    local steps, scales, counts, weights = t.steps:totable(), t.scales:totable(), t.counts:totable(), t.weights:totable()
    local n = cuda and 1500 or #steps
    local value = {1, math.huge, -math.huge, 0 / 0}
    local w = nn.Parameter(tycho.zeros(3))
    local opt = optim.SGD({w}, {lr = 0.01})
    local scaler = amp.GradScaler{init_scale = 1024, growth_interval = 7}
    local by = tycho.tensor({1, 0.5, 0.25})
    for i = 1, n do
      opt:zero_grad()
      scaler:scale((w * by):sum()):backward()
      if steps[i] ~= 0 then w.grad:copy_(tycho.where(tycho.tensor({1, 2, 3}):eq((i - 1) % 3 + 1), value[steps[i] + 1], w.grad)) end
      scaler:step(opt)
      scaler:update()
      assert.equal(scales[i], scaler:get_scale(), "scale after step " .. i)
      assert.equal(counts[i], scaler:state_dict()._growth_tracker, "count after step " .. i)
      assert.equal(tostring(weights[i]), tostring(w[1]), "weight after step " .. i)     -- NaN in the end, where the scale is 0
    end
  end)

  it("unscales within the step as unscale_ does before it, for every optimizer", function()
    for _, make in ipairs {function(p) return optim.AdamW(p, {lr = 0.01, amsgrad = true}) end,
                           function(p) return optim.Adam(p, {weight_decay = 0.1, maximize = true}) end,
                           function(p) return optim.SGD(p, {lr = 0.01, momentum = 0.9, nesterov = true}) end,
                           function(p) return optim.RMSprop(p, {momentum = 0.5, centered = true}) end,
                           function(p) return optim.Adagrad(p, {lr_decay = 0.1}) end,
                           function(p) return optim.Adam(p, {decoupled_weight_decay = true, weight_decay = 0.1}) end,
                           function(p) return optim.NAdam(p, {decoupled_weight_decay = true, weight_decay = 0.1}) end,
                           function(p) return optim.RAdam(p, {maximize = true}) end,
                           function(p) return optim.Adamax(p, {weight_decay = 0.1}) end,
                           function(p) return optim.Adadelta(p) end} do
      local start = tycho.randn(40)
      local trained = {}
      for way = 1, 3 do
        local w = nn.Parameter(start:clone())
        local opt, scaler = make({w}), amp.GradScaler{init_scale = 4096, enabled = way > 1}
        for i = 1, 5 do
          opt:zero_grad()
          scaler:scale(((w - i) ^ 2):mean()):backward()
          if way == 3 then scaler:unscale_(opt) end
          scaler:step(opt)
          scaler:update()
        end
        trained[way] = w
      end
      helper.close(trained[2], trained[1], "fused", 0)
      helper.close(trained[3], trained[1], "unscale_", 0)
    end
  end)

  it("leaves parameters, state and step count alone where a step is skipped", function()
    for _, make in ipairs {function(p) return optim.AdamW(p) end, function(p) return optim.SGD(p, {momentum = 0.9, dampening = 0.5}) end} do
      local w, v = nn.Parameter(tycho.ones(4)), nn.Parameter(tycho.ones(4))
      local opt, plain, scaler = make({w}), make({v}), amp.GradScaler{}
      for i = 1, 4 do
        opt:zero_grad() plain:zero_grad()
        scaler:scale((w * i):sum()):backward()
        if i % 2 == 1 then w.grad:copy_(w.grad * math.huge)          -- the first one too
        else (v * i):sum():backward() plain:step() end
        scaler:step(opt)
        scaler:update()
      end
      helper.close(w, v, "parameters", 0)
      local a, b = opt:state_dict().state[1], plain:state_dict().state[1]
      for name, x in pairs(a) do helper.close(x, b[name], name, 0) end
      assert.equal(65536 / 4, scaler:get_scale())
    end
  end)

  it("one optimizer's infinity doesn't stop another", function()
    local a, b = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2))
    local oa, ob, scaler = optim.SGD({a}, {lr = 1}), optim.SGD({b}, {lr = 1}), amp.GradScaler{init_scale = 8}
    local losses = scaler:scale {a:sum(), b:sum()}
    losses[1]:backward() losses[2]:backward()
    a.grad:copy_(a.grad * math.huge)
    scaler:step(oa) scaler:step(ob)
    scaler:update()
    assert.same({1, 1}, a:totable())
    assert.same({0, 0}, b:totable())
    assert.equal(4, scaler:get_scale())
  end)

  it("keeps PyTorch's order of calls", function()
    local w = nn.Parameter(tycho.ones(2))
    local opt, scaler = optim.SGD({w}, {lr = 1}), amp.GradScaler{init_scale = 8}
    helper.fails("no loss has been scaled", scaler.step, scaler, opt)
    helper.fails("no loss has been scaled", scaler.unscale_, scaler, opt)
    helper.fails("no loss has been scaled", scaler.update, scaler)
    scaler:scale(w:sum()):backward()
    helper.fails("update: call step() or unscale_() first", scaler.update, scaler)
    scaler:unscale_(opt)
    assert.same({1, 1}, w.grad:totable())
    helper.fails("unscale_: already called for this optimizer since the last update()", scaler.unscale_, scaler, opt)
    scaler:step(opt)
    helper.fails("step: already called for this optimizer since the last update()", scaler.step, scaler, opt)
    helper.fails("must be called before step(), not after it", scaler.unscale_, scaler, opt)
    scaler:update()
    opt:zero_grad()
    helper.fails("none of this optimizer's parameters has a gradient", scaler.step, scaler, opt)
    helper.fails("closures aren't supported", scaler.step, scaler, opt, function() end)
    local inner, outer = nn.Linear(2, 2), nn.Linear(2, 2)                     -- gradients that a pass within the pass gives
    local both = amp.GradScaler {init_scale = 8}
    both:scale(tycho.utils.checkpoint(inner, outer(tycho.ones(1, 2))):sum()):backward()
    local aux, hooked = tycho.ones(2, {requires_grad = true}), outer(tycho.ones(1, 2))
    hooked:register_hook(function() tycho.enable_grad(function() (aux * 3):sum():backward() end) end)
    both:scale(hooked:sum()):backward()
    aux.grad:add_(1)                                                          -- a loss of its own: not scaled
    for _, m in ipairs {inner, outer} do
      helper.fails("gradient 1 is scaled by a GradScaler", function() optim.SGD(m:parameters(), {lr = 1}):step() end)
    end
    helper.fails("growth_factor must be above 1", amp.GradScaler, {growth_factor = 1})
    helper.fails("unknown option 'init'", amp.GradScaler, {init = 1})
  end)

  it("saves and restores its state", function()
    local w = nn.Parameter(tycho.ones(2))
    local function run(scaler, n)
      local opt = optim.SGD({w}, {lr = 0})
      for _ = 1, n do
        opt:zero_grad()
        scaler:scale(w:sum()):backward()
        scaler:step(opt)
        scaler:update()
      end
    end
    local a = amp.GradScaler{init_scale = 4, growth_interval = 3}
    run(a, 4)
    assert.same({scale = 8, growth_factor = 2, backoff_factor = 0.5, growth_interval = 3, _growth_tracker = 1}, a:state_dict())
    local path = os.tmpname()
    tycho.save(path, a:state_dict())
    local b = amp.GradScaler{}
    b:load_state_dict(tycho.load(path))
    os.remove(path)
    run(b, 2)
    run(a, 2)
    assert.same(a:state_dict(), b:state_dict())
    assert.equal(16, b:get_scale())
    a:load_state_dict(b:state_dict())
    a:update(2)
    assert.equal(2, a:get_scale())
    assert.same({}, amp.GradScaler{enabled = false}:state_dict())
    helper.fails("argument 1 must be the state_dict() of an enabled scaler", b.load_state_dict, b, {})
  end)

  if cuda then it("waits for nothing in a training step", function()
    local net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    local opt, scaler = optim.AdamW(net:parameters()), amp.GradScaler{}
    local x, y = tycho.randn(4, 8), tycho.tensor({1, 2, 3, 1}, {dtype = "int64"})
    local function step()
      opt:zero_grad()
      scaler:scale(cast(function() return F.cross_entropy(net(x), y) end, "float16")):backward()
      scaler:unscale_(opt)
      nn.utils.clip_grad_norm_(net:parameters(), 1)
      scaler:step(opt)
      scaler:update()
    end
    step()
    local before = tycho.cuda.sync_count()
    for _ = 1, 3 do step() end
    assert.equal(before, tycho.cuda.sync_count())
  end) end
end)

describe("the four mistakes of mixed precision:", function()
  local w, opt, scaler
  before_each(function()
    w = nn.Parameter(tycho.ones(2))
    opt, scaler = optim.SGD({w}, {lr = 1}), amp.GradScaler{init_scale = 8}
  end)

  it("a step with gradients that weren't unscaled", function()
    scaler:scale(w:sum()):backward()
    helper.fails("gradient 1 is scaled by a GradScaler: call scaler:step(optimizer), or scaler:unscale_(optimizer) first", opt.step, opt)
    assert.same({1, 1}, w:totable())
    scaler:unscale_(opt)
    opt:step()
    assert.same({0, 0}, w:totable())
  end)

  it("clipping or regularising gradients that are scaled", function()
    scaler:scale(w:sum()):backward()
    local ask = "call scaler:unscale_(optimizer) before"
    helper.fails(ask, nn.utils.clip_grad_norm_, {w}, 1)
    helper.fails(ask, nn.utils.clip_grad_value_, {w}, 1)
    helper.fails(ask, function() w.grad:add_(w:detach(), {alpha = 0.1}) end)
    helper.fails(ask, function() w.grad:detach():add_(1) end)
    assert.same({8, 8}, w.grad:totable())
    scaler:unscale_(opt)
    nn.utils.clip_grad_norm_({w}, 1)
    w.grad:add_(w:detach(), {alpha = 0.1})
    scaler:step(opt)
    -- by hand is a way too
    opt:zero_grad()
    scaler:scale(w:sum()):backward()
    w.grad:mul_(0.5)                                       -- still scaled
    helper.fails("is scaled by a GradScaler", opt.step, opt)
    w:sum():backward()                                     -- a mixture
    helper.fails("is scaled by a GradScaler", opt.step, opt)
    w.grad = w.grad / 8
    w.grad:add_(1)
    opt:step()
    -- gradients of losses that weren't scaled are nobody's business, also after scaled ones
    opt:zero_grad()
    w:sum():backward()
    nn.utils.clip_grad_norm_({w}, 1)
    opt:step()
  end)

  it("accumulated gradients stay scaled", function()
    for _ = 1, 3 do scaler:scale(w:sum()):backward() end
    assert.same({24, 24}, w.grad:totable())
    helper.fails("is scaled by a GradScaler", opt.step, opt)
    scaler:step(opt)
    assert.same({-2, -2}, w:totable())
  end)

  it("masters that don't follow the parameters", function()
    local p = nn.Parameter(tycho.tensor({1, 2, 3, 4}, {dtype = "float16"}))
    local o = optim.SGD({p}, {lr = 1e-4, master_weights = true})
    local function step()
      o:zero_grad()
      p:float():sum():backward()
      o:step()
    end
    for _ = 1, 3 do step() end
    local master = o:state_dict().state[1].master
    helper.close(master, tycho.tensor({1, 2, 3, 4}) - 3e-4, "master", 1e-6)
    tycho.no_grad(function() p[2] = 10 end)
    step()
    master = o:state_dict().state[1].master
    helper.close(master, tycho.tensor({1 - 4e-4, 10 - 1e-4, 3 - 4e-4, 4 - 4e-4}), "only what was changed is taken over", 1e-6)
    helper.close(p, master:half(), "parameter", 0)
  end)

  it("a loss in 16 bits", function()
    local p = nn.Parameter(tycho.ones(4, {dtype = "float16"}))
    helper.fails("the loss is float16, where multiplying it by the scale overflows", scaler.scale, scaler, (p * p):mean())
    assert.equal("float32", cast(function() return F.mse_loss(p, p) end, "float16").dtype)
    -- 300^2 is past float16's largest number: losses are made of wider steps
    local far = cast(function()
      return F.mse_loss(tycho.full({4}, 300, {dtype = "float16"}), tycho.zeros(4, {dtype = "float16"}))
    end, "float16")
    assert.equal(90000, far:item())
  end)
end)

describe("amp.debug", function()
  it("tells what each layer's activations and gradients would lose in 16 bits", function()
    local net = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.ReLU(), nn.Linear(2, 1, {bias = false}))
    tycho.no_grad(function()
      net[1].weight:copy_(tycho.tensor({{1e5, 0}, {0, 1e-6}}))
      net[3].weight:copy_(tycho.tensor({{1e-5, 2}}))
    end)
    local report, loss = amp.debug(function()
      local l = net(tycho.ones(4, 2)):sum()
      l:backward()
      return l:item()
    end)
    assert.is_true(math.abs(loss - 4 * (1 + 2e-6)) < 1e-4)
    local names = {}
    for i, row in ipairs(report) do names[i] = row.name end
    assert.same({"0", "1", "2"}, names)
    local a, g = report[1].activation, report[1].gradient
    assert.same({0.5, 0.5}, {a.overflow, a.underflow})
    assert.equal(1e5, a.max)
    assert.is_true(math.abs(a.min - 1e-6) < 1e-12)
    assert.same({0, 0.5}, {g.overflow, g.underflow})
    assert.equal(2, g.max)
    assert.same({0, 0}, {report[3].activation.overflow, report[3].activation.underflow})
    assert.is_truthy(tostring(report):find("0 +float32 +| +1e%+05"))
    helper.fails("dtype must be 'float16' or 'bfloat16'", amp.debug, function() end, {dtype = "float32"})
    helper.fails("x", amp.debug, function() error("x", 0) end)
    local Net = nn.Module:extend("Net")                            -- what a module does beside its parts is told too
    function Net:init() self.part = nn.Linear(2, 2) end
    function Net:forward(x) return self.part(x) * 1e6 end
    local rows = amp.debug(function() return Net()(tycho.ones(1, 2)) end)
    assert.same({"part", "Net"}, {rows[1].name, rows[2].name})
    assert.is_true(rows[1].activation.overflow == 0 and rows[2].activation.overflow > 0)
    local quiet = amp.debug(function() return tycho.no_grad(net, tycho.ones(1, 2)) end)
    assert.is_nil(quiet[1].gradient)
  end)
end)

describe("16-bit parameters with float32 masters", function()
  it("train as the float32 parameters would, with a scaler and without", function()
    local start = tycho.randn(16, 8)
    local x, y = tycho.randn(32, 8), tycho.randn(32, 16)
    local function train(dtype, make, scaled)
      local w = nn.Parameter(start:clone():to(dtype))
      local opt, scaler = make({w}), amp.GradScaler{enabled = scaled, init_scale = 1024}
      for _ = 1, 10 do
        opt:zero_grad()
        local loss = F.mse_loss(F.linear(x:to(dtype), w):float(), y)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
      end
      return w, opt
    end
    for _, make in ipairs {function(p) return optim.AdamW(p, {lr = 1e-3, master_weights = true}) end,
        function(p) return optim.SGD(p, {lr = 1e-2, momentum = 0.9, master_weights = true}) end} do
      local wide = train("float32", make, false)
      for _, dtype in ipairs {"float16", "bfloat16"} do
        local w, opt = train(dtype, make, dtype == "float16")
        local master = opt:state_dict().state[1].master
        assert.equal(dtype, w.dtype)
        assert.equal("float32", master.dtype)
        helper.close(w, master:to(dtype), "parameter and master", 0)
        local moved, far = (wide - start):norm():item(), (master - wide):norm():item()
        -- bfloat16 has 3 bits less
        assert.is_true(far < (dtype == "float16" and 0.04 or 0.32) * moved, dtype .. ": " .. far .. " of " .. moved)
      end
    end
  end)

  it("clip and unscale in float32, and resume with the master's digits", function()
    local net = nn.Linear(4, 4):half()
    local opt, scaler = optim.AdamW(net:parameters(), {master_weights = true}), amp.GradScaler{}
    local x = tycho.randn(2, 4):half()
    local function step(model, o, s)
      o:zero_grad()
      s:scale(model(x):float():square():mean()):backward()
      s:unscale_(o)
      assert.equal("float32", model.weight.grad.dtype)
      nn.utils.clip_grad_norm_(model:parameters(), 0.5)
      s:step(o)
      s:update()
    end
    for _ = 1, 3 do step(net, opt, scaler) end
    local again = nn.Linear(4, 4):half()
    local o2, s2 = optim.AdamW(again:parameters(), {master_weights = true}), amp.GradScaler{}
    o2:load_state_dict(opt:state_dict())               -- before the model's, or after: the same
    again:load_state_dict(net:state_dict())
    s2:load_state_dict(scaler:state_dict())
    step(net, opt, scaler)
    step(again, o2, s2)
    helper.close(again.weight, net.weight, "weight", 0)
    helper.close(o2:state_dict().state[1].master, opt:state_dict().state[1].master, "master", 0)
    helper.fails("the gradient of a float16 parameter can't be unscaled", function()
      local plain, s = optim.SGD(again:parameters(), {lr = 0.1}), amp.GradScaler{}
      plain:zero_grad()
      s:scale(again(x):float():sum()):backward()
      s:step(plain)
    end)
  end)
end)

describe("optimizers' step counts", function()
  it("are each parameter's own, as PyTorch's, and survive saving", function()
    local a, b = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2))
    local c, d = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2))
    local both, oc, od = optim.Adam({a, b}, {lr = 0.1}), optim.Adam({c}, {lr = 0.1}), optim.Adam({d}, {lr = 0.1})
    for i = 1, 6 do
      both:zero_grad() oc:zero_grad() od:zero_grad();
      (a * i):sum():backward();
      (c * i):sum():backward()
      if i % 3 ~= 0 then
        (b * i):sum():backward();
        (d * i):sum():backward()
      end
      both:step() oc:step()
      if i % 3 ~= 0 then od:step() end
      if i == 4 then
        local path = os.tmpname()
        tycho.save(path, both:state_dict())
        both = optim.Adam({a, b}, {lr = 0.1})
        both:load_state_dict(tycho.load(path))
        os.remove(path)
      end
    end
    helper.close(a, c, "in every step", 0)
    helper.close(b, d, "in some", 0)
    local s = both:state_dict().state
    assert.same({6, 4}, {s[1].step:item(), s[2].step:item()})
  end)

  it("take a learning rate in a tensor", function()
    local a, b = nn.Parameter(tycho.ones(3)), nn.Parameter(tycho.ones(3))
    local lr = tycho.tensor(0.1)
    local oa, ob = optim.AdamW({a}, {lr = lr}), optim.AdamW({b}, {lr = 0.1})
    for i = 1, 3 do
      oa:zero_grad() ob:zero_grad();
      (a * a):sum():backward();
      (b * b):sum():backward()
      lr:fill_(0.1 / i)
      ob.param_groups[1].lr = lr:item()
      oa:step() ob:step()
    end
    helper.close(a, b, "parameters", 0)
  end)
end)
