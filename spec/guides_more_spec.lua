-- What ports of PyTorch's guides and recipes have found, on either device.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, func, F = tycho.nn, tycho.optim, tycho.func, tycho.nn.functional
local device = helper.device
local close, fails = helper.close, helper.fails

describe("a checkpoint", function()
  it("within vmap gives the gradients of what it captures, for each example", function()
    tycho.manual_seed(3)
    local net = nn.Sequential(nn.Linear(3, 4), nn.Checkpoint(nn.Sequential(nn.Linear(4, 4), nn.Tanh())), nn.Linear(4, 1)):to(device)
    local x, params = tycho.randn(5, 3, {device = device}), {}
    for name, p in net:named_parameters() do params[name] = p:detach() end
    local function loss(given, row) return func.functional_call(net, given, row:unsqueeze(1)):sum() ^ 2 end
    local each = tycho.vmap(func.grad(loss), {false, 1})(params, x)
    for i = 1, 5 do
      net:zero_grad();
      (net(x[{{i}}]):sum() ^ 2):backward()
      for name, p in net:named_parameters() do close(each[name][{{i}}]:squeeze(1), p.grad, name, 1e-5) end
    end
    local w = tycho.tensor({1, 2}, {device = device, requires_grad = true})
    local rows = tycho.tensor({{1, 1}, {2, 0}, {0, 3}}, {device = device})
    tycho.vmap(function(v, r) return tycho.utils.checkpoint(function(t) return (v * t):sum() ^ 2 end, r) end, {false, 1})(w, rows)
      :sum():backward()
    close(w.grad, tycho.tensor {14, 42})
  end)

  it("updates an InstanceNorm's running statistics once", function()
    tycho.manual_seed(4)
    local plain = nn.InstanceNorm1d(3, {track_running_stats = true}):to(device)
    local again, x = plain:clone(), tycho.randn(2, 3, 5, {device = device, requires_grad = true})
    plain(x):sum():backward()
    tycho.utils.checkpoint(again, x):sum():backward()
    close(again.running_mean, plain.running_mean, "mean", 0)
    close(again.running_var, plain.running_var, "var", 0)
  end)
end)

describe("checkpoints in one another", function()
  it("see what is read, also where gradients are switched on between them", function()
    local l, ck = nn.Linear(2, 2):to(device), tycho.utils.checkpoint
    local function inner(x) return tycho.enable_grad(ck, l, x) end
    local x = tycho.ones(1, 2, {device = device})
    ck(inner, x):sum():backward()
    close(l.weight.grad, tycho.ones(2, 2))
    l:zero_grad()
    tycho.utils.checkpoint_sequential({inner, l}, 2, x):sum():backward()
    local got = l.weight.grad
    l:zero_grad()
    l(l(x)):sum():backward()
    close(got, l.weight.grad, "in a row", 1e-6)
    l:zero_grad()
    ck(function(v) return func.jacrev(function(a) return ck(l, a) end)(v):sum() end, x[1]):backward()
    close(l.weight.grad, tycho.ones(2, 2), "jacrev")
  end)
end)

it("a gradient with a history, through a checkpoint, outlives its scope", function()
  local w = tycho.tensor({1, 2}, {requires_grad = true, device = device})
  local g = tycho.scope(function()
    local y = tycho.utils.checkpoint(function(a) return a:pow(3) end, w):sum()
    return tycho.grad(y, w, {create_graph = true})
  end)
  collectgarbage()
  g:sum():backward()
  close(w.grad, tycho.tensor {6, 12})
end)

describe("derivatives of functions", function()
  local function cubes(a) return a:pow(3):sum() end
  it("are the same under no_grad and in a checkpoint", function()
    local x, want = tycho.tensor({1, 2}, {requires_grad = true, device = device}), tycho.tensor {3, 12}
    close(tycho.no_grad(func.grad(cubes), x), want)
    close(tycho.utils.checkpoint(func.grad(cubes), x), want)
    close((tycho.no_grad(func.grad_and_value(cubes), x)), want)
    local _, pull = tycho.no_grad(func.vjp, cubes, x)
    close(tycho.no_grad(pull, tycho.tensor(1, {device = device})), want)
    assert.is_false(tycho.no_grad(func.grad(cubes), x).requires_grad)
    local w, y = tycho.tensor({1, 2}, {requires_grad = true, device = device}), tycho.ones(2, {requires_grad = true, device = device})
    tycho.utils.checkpoint(function(v) return (func.grad(cubes)(w) * v):sum() end, y):backward()
    close(w.grad, tycho.tensor {6, 12}, "captured in a checkpoint")
    close(y.grad, want, "beside it")
  end)

  it("go on where a derivative within them was made in a scope", function()
    local x = tycho.tensor({1, 2}, {device = device})
    local function within(a)
      tycho.scope(function() return func.grad(cubes)(tycho.ones(2, {device = device})) end)
      return (a * a):sum()
    end
    close(func.grad(within)(x), tycho.tensor {2, 4})
    close(func.jacrev(within)(x), tycho.tensor {2, 4})
    close((select(2, func.jvp(within, {x}, {x}))), tycho.tensor(10))
  end)

  it("have a history only where something that needs a gradient is read", function()
    local function h(x, w) return (x * w):pow(3):sum() end
    local mixed = func.grad(function(x, w) return func.grad(h, 1)(x, w):sum() end, 2)
    local function r(needs) return tycho.rand(2, {requires_grad = needs or false, device = device}) end
    assert.is_false(mixed(r(), r()).requires_grad)
    assert.is_true(mixed(r(true), r()).requires_grad)
    assert.is_true(mixed(r(), r(true)).requires_grad)
    assert.is_false(func.jacrev(func.grad(h, 1), 2)(r(), r()).requires_grad)
    assert.is_false(tycho.vmap(mixed)(tycho.rand(3, 2, {device = device}), tycho.rand(3, 2, {device = device})).requires_grad)
    local fixed, p = r(), r(true)
    local _, along = func.jvp(function(w) return func.grad(h, 1)(fixed, w) end, {r()}, {r()})
    assert.is_false(along.requires_grad)
    assert.is_true(func.grad(function(a) return (a * p):sum() ^ 2 end)(r()).requires_grad)
    assert.is_true(func.grad(function(a) return func.grad(function(b) return (a * b * p):sum() ^ 2 end)(r()):sum() end)(r()).requires_grad)
  end)
end)

describe("a pruned weight", function()
  it("has a history before the first forward", function()
    local m = nn.Linear(4, 2):to(device)
    nn.utils.prune.l1_unstructured(m, "weight", 0.5)
    m.weight:abs():sum():backward()
    close(m.weight_orig.grad, tycho.sign(m.weight:detach()) * m.weight_mask)
  end)
end)

describe("an optimizer", function()
  local function stepped(opt, net, scaler)
    local x = tycho.ones(2, 3, {device = device})
    net:zero_grad()
    local loss = net(x):sum()
    if scaler then
      scaler:scale(loss):backward()
      scaler:step(opt)
      scaler:update()
    else
      loss:backward()
      opt:step()
    end
  end

  it("around another is stepped by a GradScaler, and skipped", function()
    local Around = optim.Optimizer:extend("Around", {k = 2})
    local calls = 0
    function Around:init() self.base = optim.SGD(self.param_groups, {lr = 0.5}) end
    function Around:step() calls = calls + 1 return self.base:step() end
    local a = nn.Linear(3, 1):to(device)
    local b, scaler = a:clone(), tycho.amp.GradScaler {init_scale = 8}
    local around = Around(a:parameters())
    stepped(around, a, scaler)
    stepped(optim.SGD(b:parameters(), {lr = 0.5}), b)              -- the inner one's rate counts where the outer was given none
    close(a.weight, b.weight)
    assert.equal(1, calls)
    around:register_step_post_hook(function() calls = calls + 10 end)
    stepped(around, a, scaler)
    assert.equal(12, calls)
    stepped(around, a, tycho.amp.GradScaler {init_scale = 2 ^ 127})        -- twice that is too large for float32
    assert.equal(12, calls)
    assert.equal(0.25, Around(a:parameters(), {lr = 0.25}).base.param_groups[1].lr)
    assert.equal(0.125, Around:extend("Further", {lr = 0.125})(a:parameters()).base.param_groups[1].lr)
    local brought = Around(a:parameters())
    assert.equal(0.5, brought.param_groups[1].lr)
    brought:add_param_group {params = {nn.Parameter(tycho.ones(2, {device = device}))}}
    assert.equal(0.5, brought.param_groups[2].lr)
    local late = optim.Optimizer:extend("Late")(a:parameters())
    assert.equal(1e-3, late.param_groups[1].lr)
    late.param_groups[1].lr = 0.75
    assert.equal(0.75, optim.SGD(late.param_groups, {lr = 0.5}).param_groups[1].lr)
  end)

  it("whose step the program has replaced is stepped by that", function()
    local net = nn.Linear(3, 1):to(device)
    local opt, scaler, n = optim.SGD(net:parameters(), {lr = 0.5}), tycho.amp.GradScaler(), 0
    local before, old = net.weight:clone(), opt.step
    opt.step = function(self, ...) n = n + 1 return old(self, ...) end
    stepped(opt, net, scaler)
    assert.equal(1, n)
    close(net.weight, before:detach() - 1)
    opt = optim.SGD(net:parameters(), {lr = 0.5})
    opt:register_step_post_hook(function() n = n + 10 end)
    stepped(opt, net, scaler)
    assert.equal(11, n)
    old = opt.step
    opt.step = function(self, ...) n = n + 100 return old(self, ...) end
    stepped(opt, net, scaler)
    assert.equal(121, n)
  end)

  it("extends another class", function()
    local Mine = optim.AdamW:extend("Mine", {k = 2})
    local steps, a = 0, nn.Linear(3, 1):to(device)
    function Mine:init(_, o) self.twice = 2 * (o.k or self.defaults.k) end
    function Mine:step(closure) steps = steps + self.twice return optim.AdamW.step(self, closure) end
    local b, scaler = a:clone(), tycho.amp.GradScaler {init_scale = 4}
    local mine, plain = Mine(a:parameters(), {lr = 0.1, k = 3}), optim.AdamW(b:parameters(), {lr = 0.1})
    for i = 1, 3 do
      stepped(mine, a, i == 2 and scaler or nil)
      stepped(plain, b)
    end
    assert.equal(18, steps)
    close(a.weight, b.weight, "weight", 1e-6)
    assert.equal(3, mine.param_groups[1].k)
    assert.is_truthy(tostring(mine):find "^Mine %(")
    local again = Mine(a:parameters())
    again:load_state_dict(mine:state_dict())
    assert.equal(3, again.param_groups[1].k)
    fails("Mine: unknown option 'kk'", Mine, a:parameters(), {kk = 1})
    assert.equal(4, Mine:extend("More", {n = 1})(a:parameters()).twice)
    fails("extend: argument 1 (name) must be a string", function() optim.SGD:extend {} end)
  end)

  it("takes a rate that is a tensor on the CPU", function()
    for _, name in ipairs {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"} do
      local a = nn.Linear(3, 1):to(device)
      local b, rate = a:clone(), tycho.tensor(0.25, {device = "cpu"})
      local one = optim[name](a:parameters(), {lr = rate})
      stepped(one, a)
      rate:fill_(0.125)
      stepped(one, a)
      local other = optim[name](b:parameters(), {lr = 0.25})
      stepped(other, b)
      other.param_groups[1].lr = 0.125
      stepped(other, b)
      close(a.weight, b.weight, name, 1e-6)
    end
  end)
end)

describe("functional_call's options", function()
  it("are PyTorch's", function()
    local net = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2, {bias = false})):to(device)
    net[2].weight = net[1].weight
    local x, w = tycho.ones(1, 2, {device = device}), tycho.zeros(2, 2, {device = device})
    close(func.functional_call(net, {["0.weight"] = w}, x), tycho.zeros(1, 2))
    close(func.functional_call(net, {["0.weight"] = w + 1}, x, {tie_weights = false}), net[1](x * 2), "not tied", 1e-6)
    close(func.functional_call(net, {["0.weight"] = w}, x, {strict = true}), tycho.zeros(1, 2))
    fails("functional_call: 'bias' isn't given, and strict = true", func.functional_call, nn.Linear(2, 2), {weight = w:cpu()}, x:cpu(),
      {strict = true})
  end)
end)

describe("PyTorch's names of layouts", function()
  it("are taken", function()
    local x = tycho.randn(2, 3, 4, 4, {device = device}):contiguous {memory_format = tycho.channels_last}
    assert.is_true(x:is_contiguous {memory_format = "channels_last"})
    assert.same({48, 16, 4, 1}, x:clone({memory_format = tycho.contiguous_format}):stride())
    assert.same(x:stride(), x:clone({memory_format = tycho.preserve_format}):stride())
    fails("must be one of preserve,contiguous,channels_last, got 'contiguous_form'", x.clone, x, {memory_format = "contiguous_form"})
  end)
end)

describe("a picture's options", function()
  it("may follow its step", function()
    local folder = helper.folder()
    local w = tycho.utils.tensorboard.SummaryWriter(folder)
    w:add_image("a", tycho.rand(4, 5), 3, {dataformats = "HW"})
    w:add_scalar("b", 1, 2, {walltime = 5})
    fails("add_image: unknown option", w.add_image, w, "a", tycho.rand(4, 5), 0, {dataformat = "HW"})
    w:close()
    os.execute("rm -r " .. folder)
  end)
end)

if device ~= "cpu" then
  describe("a part with graphs", function()
    local cuda = tycho.cuda
    it("runs another module's parameters without them", function()
      local x = tycho.randn(2, 4, {device = device})
      local l = nn.Linear(4, 4):to(device)
      local g = cuda.make_graphed_callables(l, {x})
      local c, want = g:clone(), F.linear(x, l.weight, l.bias):detach()
      tycho.no_grad(function() l.weight:zero_() l.bias:zero_() end)
      close(c(x), want, "clone", 1e-6)
      c(x):sum():backward()
      assert.is_truthy(c.weight.grad)
      assert.is_nil(l.weight.grad)
      close(g(x), tycho.zeros(2, 4), "its own", 0)
      close(func.functional_call(g, {bias = tycho.ones(4, {device = device})}, x), tycho.ones(2, 4), "functional_call", 0)
      l.bias = nn.Parameter(tycho.full({4}, 2, {device = device}))
      close(g(x), tycho.full({2, 4}, 2), "another parameter", 0)
    end)

    it("outlives the scope in which it was made", function()
      local x = tycho.randn(2, 4, {device = device})
      local g = tycho.scope(function() return cuda.make_graphed_callables(nn.Linear(4, 4):to(device), {tycho.ones_like(x)}) end)
      local y = g(x)
      close(y, F.linear(x, g.weight, g.bias), "forward", 1e-6)
      y:sum():backward()
      close(g.bias.grad, tycho.full({4}, 2))
    end)
  end)

  it("pad_packed_sequence and averages by a function of the program's own make no host sync", function()
    local rnn, cuda = nn.LSTM(3, 4, {batch_first = true}):to(device), tycho.cuda
    local x = tycho.randn(3, 5, 3, {device = device})
    local average = optim.swa_utils.AveragedModel(rnn, {avg_fn = function(a, v, n) return a + (v - a) / (n + 1) end})
    local function step()
      local packed = nn.utils.rnn.pack_padded_sequence(x, {2, 5, 3}, {batch_first = true, enforce_sorted = false})
      local y = nn.utils.rnn.pad_packed_sequence((rnn(packed)), {batch_first = true})
      rnn:zero_grad()
      y:sum():backward()
      average:update_parameters(rnn)
    end
    step()
    step()
    local before = cuda.sync_count()
    step()
    assert.equal(before, cuda.sync_count())
    assert.equal(3, average.n_averaged:item())
  end)
end

describe("found by random programs:", function()
  it("a gradient that retain_grad keeps is added once, when backward names its tensor", function()
    local x = tycho.tensor({1, 2, 3}, {requires_grad = true, device = device})
    local y = x * 2
    y:retain_grad()
    y:retain_grad();
    (y * y):sum():backward({inputs = {y}, retain_graph = true})
    close(y.grad, tycho.tensor {4, 8, 12})
    tycho.sum(y * y):backward()
    close(y.grad, tycho.tensor {8, 16, 24})
    assert.is_truthy(x.grad)
    local changed = tycho.tensor({1, 2}, {requires_grad = true, device = device}) * 2
    changed:retain_grad()
    changed:mul_(3);
    (changed * changed):sum():backward({inputs = {changed}})
    close(changed.grad, tycho.tensor {12, 24}, "changed since")
  end)

  it("a result keeps its history when no_grad changes its shape in place", function()
    for _, name in ipairs {"squeeze_", "unsqueeze_", "transpose_"} do
      local x = tycho.ones(1, 3, {requires_grad = true, device = device})
      local y = x * 2
      tycho.no_grad(function()
        if name == "squeeze_" then y:squeeze_() elseif name == "unsqueeze_" then y:unsqueeze_(1) else y:transpose_(1, 2) end
      end)
      assert.is_true(y.requires_grad);
      (y * 3):sum():backward()
      close(x.grad, tycho.full({1, 3}, 6), name)
    end
  end)

  it("masks may be 0-dim", function()
    local x, m = tycho.tensor(2, {device = device}), tycho.ones(2, 3, {device = device})
    assert.same({2}, x[x:gt(0)]:totable())
    assert.same({0}, {unpack(x[x:lt(0)].shape)})
    assert.equal("1x2x3", tostring(m[tycho.tensor(true, {device = device})].shape))
    assert.equal("2x0x3", tostring(m[{{}, tycho.tensor(false, {device = device})}].shape))
    x[x:gt(0)] = 5
    assert.equal(5, x:item())
    m[tycho.tensor(true, {device = device})] = tycho.tensor({7, 8, 9}, {device = device})
    close(m, tycho.tensor {{7, 8, 9}, {7, 8, 9}})
    m[tycho.tensor(false, {device = device})] = 0
    assert.equal(48, m:sum():item())
  end)

  it("a dim of a 0-dim tensor must be 1 or -1", function()
    local x = tycho.tensor(1, {device = device})
    for _, name in ipairs {"median", "nanmedian", "mode"} do
      fails(name .. ": dim 5 is out of range", tycho[name], x, 5)
      assert.equal(1, (tycho[name](x, -1)):item())
    end
    fails("kthvalue: dim 2 is out of range", tycho.kthvalue, x, 1, 2)
    fails("quantile: dim 2 is out of range", tycho.quantile, x, 0.5, 2)
    fails("movedim: dim 2 is out of range", tycho.movedim, x, 1, 2)
    assert.equal(1, tycho.movedim(x, 1, -1):item())
    assert.equal(1, tycho.quantile(x, 0.5, 1):item())
  end)

  it("set_printoptions takes a profile and sci_mode together", function()
    tycho.set_printoptions {profile = "default", sci_mode = true}
    local text = tostring(tycho.tensor {0.901, 3.111})
    tycho.set_printoptions {profile = "default"}
    assert.is_truthy(text:find("[9.0100e-01, 3.1110e+00]", 1, true))
    assert.is_truthy(tostring(tycho.tensor {0.901, 3.111}):find("[0.9010, 3.1110]", 1, true))
  end)

  it("Rprop takes a rate that is a tensor", function()
    local a, b = tycho.ones(2, {requires_grad = true, device = device}), tycho.ones(2, {requires_grad = true, device = device})
    for p, lr in pairs {[a] = 0.1, [b] = tycho.tensor(0.1, {device = "cpu"})} do
      local opt = optim.Rprop({p}, {lr = lr})
      for i = 1, 3 do
        p.grad = tycho.tensor({1, i == 2 and -1 or 1}, {device = device})
        opt:step()
      end
    end
    close(a, b, "parameters", 1e-6)
  end)

  it("an FFI integer as a size is named", function()
    for _, f in ipairs {function() return tycho.ones(4):view(2LL, 2LL) end, function() return tycho.randn(3LL, 4LL) end,
        function() return tycho.ones(4):reshape(2, 2LL) end} do
      fails("convert an FFI integer with tonumber(v)", f)
    end
    local ok, e = pcall(tycho.neg, require("ffi").new("double", 2))
    assert.is_false(ok)
    assert.is_nil(e:find "tonumber")
  end)

  it("errors name the call that the program wrote", function()
    local x = tycho.zeros(3, 4, {device = device})
    local y = tycho.ones(5, {device = device})
    fails("index assignment: a value of shape 5 doesn't broadcast to the indexed shape 4", function() x[1] = y end)
    fails("index assignment: a value of shape 3 doesn't broadcast to the indexed shape 4", function() x[1] = {1, 2, 3} end)
    fails("copy: shape 5 doesn't broadcast to 4", x[1].copy_, x[1], y)
    fails("conv1d: argument 1 has shape 2x5x8, argument 2 4x3x3: 3 channels are needed", nn.Conv1d(3, 4, 3), tycho.zeros(2, 5, 8))
    for _, name in ipairs {"max_pool1d", "avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d"} do
      fails(name .. ": argument 1 must have 2 or 3 dims, got shape 8", F[name], tycho.zeros(8), 2)
    end
    fails("bilinear: argument 2 has shape 2x5; its last dim must be 4", nn.Bilinear(3, 4, 5), tycho.zeros(2, 3), tycho.zeros(2, 5))
  end)
end)

if device ~= "cpu" then
  it("gradients of numbers on the CPU, beside a GPU's tensors, come back", function()
    local x, s = tycho.rand(3, {device = device}), tycho.tensor(0.5, {requires_grad = true, device = "cpu"})
    local c = tycho.rand(3, {requires_grad = true, device = "cpu"})
    for _, f in ipairs {function(a) return x * a end, function(a) return a - x end, function(a) return x / a end,
        function(a) return x ^ a end,
        function(a) return tycho.where(x:gt(0.5), x, a) end, function(a) return x:masked_fill(x:gt(0.5), a) end,
        function(a) return x:lerp(x * 2, a) end, function(a) return tycho.maximum(x, a) end, function(a) return x:clamp(a) end} do
      s.grad, c.grad = nil, nil
      f(s):sum():backward()
      assert.equal("cpu", s.grad.device)
      local at_home = s:detach():to(device):requires_grad_()
      f(at_home):sum():backward()
      close(s.grad, at_home.grad, "leaf", 1e-6)
      f(s):sum():backward()
      f(c:exp():sum()):sum():backward()
      assert.equal("cpu", c.grad.device)
      local moved = c:detach():to(device):requires_grad_()
      f(moved:exp():sum()):sum():backward()
      close(c.grad, moved.grad, "result", 1e-5)
    end
    local before, slope = s:item(), s.grad:item()
    optim.SGD({s}, {lr = 0.1}):step()
    assert.is_true(math.abs(s:item() - (before - 0.1 * slope)) < 1e-5)
    s.grad = nil
    local g = tycho.grad((x * s * s):sum(), s, {create_graph = true})
    g:backward()
    assert.equal("cpu", s.grad.device)
    close(s.grad, 2 * x:sum():cpu(), "of a gradient", 1e-6)
    s.grad = nil
    local step = tycho.compile(function(v) (v * s):sum():backward() end)
    for _ = 1, 4 do
      s.grad = nil
      step(x)
      close(s.grad, x:sum():cpu(), "compiled", 1e-6)
    end
  end)
end

it("numbers written into a bool tensor by index are true unless 0", function()
  local z, i = tycho.zeros(2, {dtype = "bool", device = device}), tycho.tensor({1}, {dtype = "int64", device = device})
  local half = tycho.tensor({0.5}, {device = device})
  local y, w = z:clone(), z:clone()
  y[i] = 0.5
  w[w:logical_not()] = half:select(1, 1)
  for k, x in ipairs {z:index_fill(1, i, 0.5), z:index_put({i}, 0.5), z:scatter(1, i, 0.5), z:index_copy(1, i, half),
      z:index_put({i}, half), y} do
    assert.same({true, false}, x:totable(), k)
  end
  assert.same({true, true}, w:totable())
  assert.same({false, false}, z:index_fill(1, i, 0):totable())
  local edges, values = tycho.rand(2, 3, {device = device}), tycho.rand(3, 1, {device = device})
  fails("searchsorted: argument 1 has shape 2x3", tycho.searchsorted, edges, values)
end)

it("summary takes several inputs", function()
  local Both = nn.Module:extend("Both")
  function Both:init() self.a = nn.Linear(4, 2) end
  function Both:forward(x, y) return self.a(x + y) end
  local both = Both():to(device)
  local text = nn.summary(both, {{3, 4}, {3, 4}})
  assert.is_truthy(text:find("3x2", 1, true) and text:find("total parameters +10"))
  assert.equal(text, nn.summary(both, {tycho.ones(3, 4, {device = device}), {3, 4}}))
  fails("summary: argument 2 must be a list of sizes", nn.summary, both)
  fails("progress: total must be a number from 0, got 'x'", tycho.utils.progress, {1}, {total = "x"})
end)

it("a distributed sampler's order depends on the epoch that set_epoch sets", function()
  local function order(epoch)
    local out = {}
    for rank = 0, 1 do
      local sampler = tycho.data.DistributedSampler(20, {num_replicas = 2, rank = rank, seed = 3})
      sampler:set_epoch(epoch)
      for _, i in ipairs(sampler:order(0, 7):totable()) do out[#out + 1] = i end
    end
    return out
  end
  local first = order(0)
  assert.same(first, order(0))
  assert.is_not.same(first, order(1))
  table.sort(first)
  for i = 1, 20 do assert.equal(i, first[i]) end
end)

it("averages by PyTorch's functions of one tensor are those of all tensors at once", function()
  local swa, net = optim.swa_utils, nn.Linear(3, 2):to(device)
  local pairs_of = {{{avg_fn = swa.get_swa_avg_fn()}, {}},
    {{avg_fn = swa.get_ema_avg_fn(0.75)}, {multi_avg_fn = swa.get_ema_multi_avg_fn(0.75)}}}
  for k, p in ipairs(pairs_of) do
    local a, b = swa.AveragedModel(net, p[1]), swa.AveragedModel(net, p[2])
    for i = 1, 3 do
      tycho.no_grad(function() for _, q in ipairs(net:parameters()) do q:fill_(i * i) end end)
      a:update_parameters(net)
      b:update_parameters(net)
    end
    close(a.module.weight, b.module.weight, k)
    close(a.module.weight, tycho.full({2, 3}, k == 1 and 14 / 3 or 0.75 * (0.75 + 0.25 * 4) + 0.25 * 9, {device = device}), k)
  end
end)

it("a scaler says whether it is enabled, and dtypes which others they can become", function()
  assert.is_true(tycho.amp.GradScaler():is_enabled())
  assert.is_false(tycho.amp.GradScaler{enabled = false}:is_enabled())
  local can = {{"float32", "float16", true}, {"float16", "int64", false}, {"int32", "uint8", true}, {"int64", "bool", false},
    {"bool", "int32", true}, {"uint8", "float64", true}}
  for _, c in ipairs(can) do assert.equal(c[3], tycho.can_cast(c[1], c[2]), c[1] .. " to " .. c[2]) end
end)

it("the log of a generalized Pareto distribution's share of draws is that share's log", function()
  for _, c in ipairs {-0.3, 0, 0.4} do
    local d = tycho.distributions.GeneralizedPareto(0.5, 2, c)
    local x = tycho.tensor({0.6, 1, 2.5, 5}, {dtype = "float64", device = device})
    close(d:log_cdf(x), d:cdf(x):log(), c)
  end
end)

it("gradients are clipped by the largest, by either name", function()
  local function clipped(order)
    local w = tycho.zeros(3, {device = device, requires_grad = true})
    w.grad = tycho.tensor({1, -4, 2}, {device = device})
    local total = nn.utils.clip_grad_norm_({w}, 2, {norm_type = order})
    return {total:item(), unpack(w.grad:totable())}
  end
  for i, v in ipairs(clipped("inf")) do assert.is_true(math.abs(v - ({4, 0.5, -2, 1})[i]) < 1e-5) end
  assert.same(clipped(math.huge), clipped("inf"))
  assert.equal(4, nn.utils.get_total_norm({tycho.tensor({1, -4}, {device = device})}, "inf"):item())
end)

it("nonzero_static gives as many rows as asked for, the first of nonzero's", function()
  local x = tycho.rand(3, 4, 2, {device = device}):gt(0.6)
  local rows = x:nonzero()
  for _, n in ipairs {0, 3, rows.shape[1], rows.shape[1] + 2} do
    local got = x:nonzero_static(n, {fill_value = -7})
    local k = math.min(n, rows.shape[1])
    assert.same({n, 3}, {got.shape[1], got.shape[2]})
    assert.is_true(got[{{1, k}}]:equal(rows[{{1, k}}]))
    assert.is_true(n == k or got[{{k + 1, n}}]:eq(-7):all():item())
  end
  assert.same({{0}, {0}}, tycho.zeros(0, {device = device}):nonzero_static(2):totable())
  fails("nonzero_static: size must be at least 0", x.nonzero_static, x, -1)
end)

it("FeatureAlphaDropout drops whole channels and keeps mean and variance", function()
  tycho.manual_seed(2)
  local x = tycho.randn(200, 50, 8, {device = device})
  local drop = nn.FeatureAlphaDropout(0.3)
  local y = drop(x)
  assert.is_true(math.abs(y:mean():item()) < 0.05 and math.abs(y:var():item() - 1) < 0.05)
  local flat = (y - y:mean(3, true)):abs():amax(3):lt(1e-6):float():mean():item()           -- the share of channels of one value
  assert.is_true(math.abs(flat - 0.3) < 0.03, flat)
  assert.is_true(drop:eval()(x):equal(x))
  fails("feature_alpha_dropout: argument 1 must have dims (N, C", drop:train(), x[1][1])
end)

-- not beside PyTorch 2.15's, which gives x the gradient of exactly those elements that are written over
it("as_strided_scatter writes where as_strided reads, and passes on the gradient of what stays", function()
  local o = {dtype = "float64", device = device}
  local x, src = tycho.randn(2, 4, o), tycho.randn(2, 2, o)
  local y = x:as_strided_scatter(src, {2, 2}, {3, 2}, 1)
  assert.is_true(y:as_strided({2, 2}, {3, 2}, 1):equal(src))
  assert.same({true, false, true, false, false, true, false, true}, y:eq(x):flatten():totable())
  assert.is_true(tycho.autograd.gradcheck(function(a, b) return a:as_strided_scatter(b, {2, 2}, {3, 2}, 1) end,
    {x:clone():requires_grad_(), src:clone():requires_grad_()}))
end)
