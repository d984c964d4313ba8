-- Modules, hooks, optimizers and schedules that are changed while they are in use; what belongs to the caller, who may use it again.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, fails = tycho.nn, tycho.optim, helper.fails

describe("what changes in use", function()
  it("layers are replaced by the names that the module gives", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Sequential(nn.ReLU()))
    for name, m in net:named_children() do if nn.isinstance(m, nn.ReLU) then net[name] = nn.Identity() end end
    assert.equal(3, #net:children())
    assert.is_true(nn.isinstance(net[2], nn.Identity))
    assert.equal(net[1], net["0"])
    net:set_submodule("2.0", nn.Tanh())
    assert.is_true(nn.isinstance(net[3][1], nn.Tanh))
    fails("has no module '7'", net.set_submodule, net, "7", nn.ReLU())
    local list = nn.ModuleList {nn.ReLU()}
    list["0"] = nn.Linear(1, 1)
    assert.is_true(nn.isinstance(list[1], nn.Linear))
  end)

  it("to_empty keeps parameters and what they are like, for a state that is loaded", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    local state, first = {}, net[1].weight
    for name, v in pairs(net:state_dict()) do state[name] = v:clone() end
    net(tycho.randn(4, 2)):sum():backward()
    assert.equal(net, net:to_empty {device = net[1].weight.device})
    assert.is_true(rawequal(first, net[1].weight) and first.requires_grad and first.is_leaf and first.grad == nil)
    assert.same({"3x2", "int64"}, {tostring(first.shape), net[2].num_batches_tracked.dtype})
    net:load_state_dict(state)
    for name, v in pairs(net:state_dict()) do assert.is_true(v:equal(state[name]), name) end
    fails("to_empty: argument 1 must be a device, got nil", net.to_empty, net)
    fails("to_empty: argument 1 must be a device, got nil", net.to_empty, net, {})
    net[1].weight.grad = tycho.ones(3, 2)
    fails("to_empty: argument 1 (device) must be a device such as 'cpu' or 'cuda:0', got 'nodevice'", net.to_empty, net, "nodevice")
    assert.is_truthy(net[1].weight.grad)
  end)

  it("a list's members have the names that they are given, in their places", function()
    local net = nn.Sequential()
    for i = 0, 2 do net:add_module(tostring(i), nn.Linear(i + 1, i + 2)) end
    assert.equal(3, #net)
    assert.equal(3, net[3].in_features)
    net:add_module("1", nn.Linear(2, 3, {bias = false}))
    assert.equal(3, #net:children())
    assert.is_nil(net[2].bias)
    for name, m in net:named_children() do net:add_module(name, nn.Sequential(m, nn.ReLU())) end
    assert.same({2, 4}, {unpack(net(tycho.ones(2, 1)).shape)})
    local named = nn.Sequential {{"first", nn.Linear(2, 2)}}
    named:append(nn.Linear(2, 3))                               -- PyTorch names it "1"
    assert.equal(named["1"], named:get_submodule "1")
    named["1"] = nn.Linear(2, 4)
    named:set_submodule("1", nn.Linear(2, 5))
    assert.equal(2, #named:children())
    assert.same({2, 5}, {unpack(named(tycho.ones(2, 2)).shape)})
  end)

  it("a member that stands in a list twice is there twice", function()
    local layer, act = nn.Linear(2, 2), nn.Tanh()
    local net, x = nn.Sequential(layer, act, layer, act), tycho.ones(3, 2)
    local y = net(x)
    assert.is_true(y:equal(nn.Checkpoint(net, {segments = 2})(x)))
    assert.is_true(y:equal(tycho.utils.checkpoint_sequential(net, 3, x)))
    assert.is_true(y:equal(net[{ {1, -1} }](x)))
    net:append(nn.Linear(2, 7))
    assert.equal(5, #net)
    local names = {}
    for name in pairs(net:state_dict()) do names[#names + 1] = name end
    table.sort(names)
    assert.same({"0.bias", "0.weight", "2.bias", "2.weight", "4.bias", "4.weight"}, names)       -- as PyTorch's
    net:insert(1, nn.Linear(4, 2))
    assert.same({3, 7}, {unpack(net(tycho.ones(3, 4)).shape)})
  end)

  it("a module's own train() is called by those around it", function()
    local Frozen = nn.Module:extend "Frozen"
    function Frozen:init() self.bn = nn.BatchNorm1d(2) end
    function Frozen:train(on)
      nn.Module.train(self, on)
      self.bn:eval()
      return self
    end
    function Frozen:forward(x) return self.bn(x) end
    local net = nn.Sequential(nn.Linear(2, 2), Frozen())
    assert.is_true(net:train().training and net[2].training and net[1].training)
    net(tycho.randn(8, 2))
    assert.equal(0, net[2].bn.num_batches_tracked:item())
    assert.is_false(net:eval()[1].training)
    local a, b = nn.Sequential(), nn.Sequential()
    a:append(b)
    b:append(a)                            -- each within the other
    assert.is_false(a:eval()[1].training)
  end)

  it("a copy of a module has nothing in common with it, in plain tables either", function()
    local Net = nn.Module:extend "Net"
    function Net:init()
      self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
      self.order, self.mask = {self.a, {deep = self.b}}, tycho.ones(2)
      self.order.self = self.order
    end
    function Net:forward(x) return self.order[2].deep(self.order[1](x)) * self.mask end
    local net = Net()
    local copy = net:clone()
    tycho.no_grad(function() for _, p in ipairs(copy:parameters()) do p:zero_() end copy.mask:zero_() end)
    assert.equal(0, copy(tycho.randn(3, 2)):abs():sum():item())
    assert.equal(2, net.mask:sum():item())
    assert.equal(copy.a, copy.order[1])
    assert.equal(copy.order, copy.order.self)
    local x = tycho.ones(2, 3)
    local traced = tycho.jit.trace(nn.Linear(3, 3), x)
    assert.is_true(traced(x):equal(nn.Sequential(traced):clone()(x)))
  end)

  it("a parametrized weight is computed once within cached()", function()
    local calls, Twice = 0, nn.Module:extend("Twice")
    function Twice:forward(w)
      calls = calls + 1
      return w * 2
    end
    local parametrize = nn.utils.parametrize
    local net, x = nn.Linear(3, 3), tycho.randn(2, 3)
    parametrize.register_parametrization(net, "weight", Twice())
    local want = net(net(net(x)))
    calls = 0
    local y = parametrize.cached(function()
      assert.is_true(rawequal(net.weight, parametrize.cached(function() return net.weight end)))
      return net(tycho.scope(function() return net(net(x)) end))
    end)
    assert.equal(1, calls)
    helper.close(y, want, nil, 0)
    y:sum():backward()
    local cached = net.parametrizations.weight.original.grad
    net.parametrizations.weight.original.grad = nil
    want:sum():backward()
    helper.close(cached, net.parametrizations.weight.original.grad)
    assert.is_false(rawequal(net.weight, net.weight))
    assert.is_false((pcall(parametrize.cached, error, "no")))
    assert.is_false(rawequal(net.weight, net.weight))
  end)

  it("parameters stay themselves when they are parametrized, and when they no longer are", function()
    local rnn, x = nn.utils, tycho.randn(2, 3)
    local function steps(change)
      local l = nn.Linear(3, 3)
      local opt = change(l)
      local before = l.weight:detach():clone()
      l(x):sum():backward()
      opt:step()
      return not before:equal(l.weight:detach())
    end
    assert.is_true(steps(function(l)
      local opt = optim.SGD(l:parameters(), {lr = 0.1})
      rnn.parametrizations.spectral_norm(l)
      l:eval()
      assert.equal("_SpectralNorm", l.parametrizations.weight[1]._name)
      return opt
    end))
    assert.is_true(steps(function(l)
      rnn.parametrizations.spectral_norm(l)
      l:eval()
      local value, opt = l.weight:detach(), optim.SGD(l:parameters(), {lr = 0.1})
      rnn.parametrize.remove_parametrizations(l, "weight")
      helper.close(l.weight:detach(), value)
      return opt
    end))
  end)

  it("hooks that remove themselves leave the next ones their turn", function()
    local l, seen = nn.Linear(2, 2), {}
    for _, method in ipairs {"register_forward_pre_hook", "register_forward_hook", "register_full_backward_hook"} do
      for k = 1, 3 do
        local h
        h = l[method](l, function() seen[#seen + 1] = k; h.remove() end)
      end
    end
    l(tycho.ones(1, 2, {requires_grad = true})):sum():backward()
    l(tycho.ones(1, 2, {requires_grad = true})):sum():backward()
    assert.same({1, 2, 3, 1, 2, 3, 1, 2, 3}, seen)
  end)

  it("hooks that were removed leave nothing behind on a leaf", function()
    local w, calls = tycho.ones(2, {requires_grad = true}), 0
    local stays = w:register_hook(function() calls = calls + 1 end)
    collectgarbage()
    collectgarbage()
    local before = collectgarbage("count")
    for _ = 1, 5000 do
      local h = w:register_hook(function() calls = calls + 1 end)
      h.remove()
      h.remove()                           -- nothing more, whoever has its place by then
      local other = w:register_post_accumulate_grad_hook(function() calls = calls + 1 end)
      other.remove()
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(collectgarbage("count") - before < 100, collectgarbage("count") - before)
    w:sum():backward()
    assert.equal(1, calls)
    stays.remove()
    w:sum():backward()
    assert.equal(1, calls)
  end)

  it("a compiled step goes on from a state that was loaded into its optimizer", function()
    local function run(compiled)
      tycho.manual_seed(1)
      local net = nn.Linear(4, 3)
      local opt = optim.Adam(net:parameters(), {lr = 0.1})
      local xs, y, kept, losses = tycho.randn(12, 8, 4), tycho.randint(1, 3, {8}), nil, {}
      local step = compiled(function(x)
        opt:zero_grad()
        local loss = tycho.cross_entropy(net(x), y)
        loss:backward()
        opt:step()
        return loss
      end)
      for i = 1, 12 do
        if i == 3 then kept = optim.Adam(net:clone():parameters(), {lr = 0.1}) kept:load_state_dict(opt:state_dict()) end
        if i == 8 then opt:load_state_dict(kept:state_dict()) end
        losses[i] = step(xs[i]):item()
      end
      return losses
    end
    assert.same(run(function(f) return f end), run(function(f) return tycho.compile(f, {guard = "inputs"}) end))
  end)

  it("a rate that is a tensor stays that tensor", function()
    local lr = tycho.tensor(0.1)
    local opt = optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = lr})
    local schedule = optim.lr_scheduler.ExponentialLR(opt, 0.5)
    schedule:step()
    assert.equal(lr, opt.param_groups[1].lr)
    assert.is_true(math.abs(lr:item() - 0.05) < 1e-8)
    assert.is_truthy(tostring(schedule):find("lr 0.05", 1, true))
  end)

  it("a state from before there was a schedule brings its rate", function()
    local opt = optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = 0.03})
    local state = opt:state_dict()
    opt.param_groups[1].lr = 0.042
    optim.lr_scheduler.StepLR(opt, 1)
    opt:load_state_dict(state)
    assert.equal(0.03, optim.lr_scheduler.StepLR(opt, 1).base_lrs[1])
  end)

  it("batch norm takes states that don't count batches", function()
    local bn = nn.BatchNorm1d(2)
    local state = bn:state_dict()
    state.num_batches_tracked = nil
    bn:load_state_dict(state)
    fails("missing 'running_mean'", bn.load_state_dict, bn, {weight = bn.weight, bias = bn.bias, running_var = bn.running_var})
  end)

  it("layers begin anew by reset_parameters, and losses by their fields", function()
    local l, bn = nn.Linear(3, 2), nn.BatchNorm1d(2)
    local before, p = l.weight:detach():clone(), l.weight
    bn(tycho.randn(8, 2))
    nn.Sequential(l, nn.ReLU(), bn):apply(function(m) if m.reset_parameters then m:reset_parameters() end end)
    assert.equal(p, l.weight)
    assert.is_false(before:equal(l.weight:detach()))
    assert.is_true(l.weight:abs():max():item() <= 3 ^ -0.5)
    assert.equal(0, bn.running_mean:abs():sum():item())
    bn(tycho.randn(8, 2))
    bn:reset_running_stats()
    assert.same({0, 0}, bn.running_mean:totable())
    assert.same({1, 1}, bn.running_var:totable())
    assert.equal(0, bn.num_batches_tracked:item())
    local loss, x, y = nn.CrossEntropyLoss {weight = tycho.tensor {1, 2, 3}}, tycho.randn(2, 3), tycho.tensor({1, 2}, {dtype = "int64"})
    assert.same({"mean", -100, 0}, {loss.reduction, loss.ignore_index, loss.label_smoothing})
    loss.reduction = "none"
    helper.close(loss(x, y), tycho.cross_entropy(x, y, {weight = tycho.tensor {1, 2, 3}, reduction = "none"}))
    assert.equal(2, nn.MaxPool2d(2).stride)
    assert.equal(4, nn.MultiheadAttention(8, 2).head_dim)
  end)

  it("a list of items, or a tensor, is a dataset", function()
    local pairs_, seen = {}, {}
    for i = 1, 5 do pairs_[i] = {tycho.full({2}, i, {device = "cpu"}), i * 10} end
    for x, y in tycho.data.DataLoader(pairs_, 2):iter() do seen[#seen + 1] = {x:totable(), y:totable()} end
    assert.same({{{{1, 1}, {2, 2}}, {10, 20}}, {{{3, 3}, {4, 4}}, {30, 40}}, {{{5, 5}}, {50}}}, seen)
    local rows = {}
    for x in tycho.data.DataLoader(tycho.range(1, 5, {device = "cpu"}), 3):iter() do rows[#rows + 1] = x:totable() end
    assert.same({{1, 2, 3}, {4, 5}}, rows)
  end)

  it("a traced module's clone is independent, and a file's older op names are known", function()
    local net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d {2, 3})
    local x = tycho.randn(1, 1, 9, 8)
    local traced = tycho.jit.trace(net, x)
    local twin, want = traced:clone(), net(x)
    helper.close(want, twin(x))
    tycho.no_grad(function() twin:parameters()[1]:zero_() end)
    helper.close(want, traced(x))
    local path = os.tmpname()
    traced:save(path)
    local f = assert(io.open(path, "rb"))
    local bytes = f:read("*a")
    f:close()
    local older, n = bytes:gsub("adaptive_avg_pool2d_windows", "adaptive_avg_pool2d")
    assert.is_true(n > 0)
    local shorter = n * #"_windows"                      -- the header's length comes first, and its padding may grow
    local head = 0
    for i = 8, 1, -1 do head = head * 256 + older:byte(i) end
    older = older:sub(1, 8 + head - shorter) .. (" "):rep(shorter) .. older:sub(9 + head - shorter)
    f = assert(io.open(path, "wb"))
    f:write(older)
    f:close()
    helper.close(want, tycho.jit.load(path)(x))
    os.remove(path)
  end)

  it("groups that share a rate's tensor are each scaled once, and the state is numbers", function()
    local lr = tycho.tensor(0.1)
    local opt = optim.SGD({{params = {nn.Parameter(tycho.ones(1))}}, {params = {nn.Parameter(tycho.ones(1))}}}, {lr = lr})
    local schedule = optim.lr_scheduler.ExponentialLR(opt, 0.5)
    schedule:step()
    schedule:step()
    for _, group in ipairs(opt.param_groups) do assert.is_true(math.abs(group.lr:item() - 0.025) < 1e-8) end
    local state = schedule:state_dict()
    for _, rate in ipairs(state.base_lrs) do assert.equal("number", type(rate)) end
    schedule:load_state_dict(state)
    schedule:step()
    assert.is_true(math.abs(opt.param_groups[1].lr:item() - 0.0125) < 1e-8)
  end)

  it("a subclass is reset, and cloned, as its parent", function()
    local My = nn.Linear:extend("My")
    local m = My(2, 3)
    local before = m.weight:detach():clone()
    m:reset_parameters()
    assert.is_false(before:equal(m.weight:detach()))
    m.table, m.leaf = {1, {2}}, tycho.ones(2):requires_grad_()
    local twin = m:clone()
    twin.table[2][1] = 3
    assert.equal(2, m.table[2][1])
    assert.is_true(twin.leaf.requires_grad)
    assert.not_equal(m.leaf, twin.leaf)
  end)

  it("an anomaly in place is found", function()
    fails("sqrt", tycho.autograd.detect_anomaly, function()
      local x = tycho.tensor({-1, 2}):requires_grad_()
      local y = x * 1
      y:sqrt_()
      y:sum():backward()
    end)
  end)

  it("named members of lists are assigned as other modules' are", function()
    local net = nn.Sequential(nn.Linear(1, 1))
    net.w = nn.Parameter(tycho.ones(1))
    fails("'w' is a parameter and can't be replaced by a tensor", function() net.w = tycho.zeros(3) end)
    fails("'w' is a parameter and can't be replaced by 5", function() net.w = 5 end)
    net:register_buffer("b", tycho.ones(1))
    tycho.scope(function() net.b = net.b * 2 + 1 end)
    assert.equal(3, net.b:item())
    net.w = nn.ReLU()
    assert.equal(2, #net:parameters())
    assert.equal(2, #net:children())
    net = nn.Sequential {{"conv", nn.Linear(1, 1)}, {"relu", nn.ReLU()}}
    net.conv = nil
    assert.equal("Sequential(\n  (relu): ReLU()\n)", tostring(net))
    assert.equal(0, #net:parameters())
    assert.equal(2, net(tycho.full({1}, 2)):item())
    local twin = nn.ModuleList({nn.Linear(1, 1), nn.ReLU()}):clone()
    assert.equal(2, #twin)
    for i, m in ipairs(twin) do assert.equal(i == 1 and "Linear" or "ReLU", m._name) end
  end)

  it("a compiled module is the module to what takes modules", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    local c = tycho.compile(net)
    local y = tycho.func.functional_call(c, {["0.weight"] = tycho.zeros(2, 2), ["0.bias"] = tycho.zeros(2)}, tycho.ones(2, 2))
    assert.equal(0, y:abs():max():item())
    assert.equal(2, nn.Checkpoint(c, {segments = 2}).segments)
    assert.equal(c, nn.SyncBatchNorm.convert_sync_batchnorm(c))
    assert.is_true(nn.isinstance(net[2], nn.SyncBatchNorm))
    local bare = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3, {bias = false}))
    assert.is_true(bare.weight ~= nil and bare.bias == nil and tostring(bare):find("bias=false", 1, true) ~= nil)
  end)

  it("modules are told by a list of classes", function()
    assert.is_true(nn.isinstance(nn.ReLU(), {nn.Tanh, nn.ReLU}))
    assert.is_false(nn.isinstance(nn.ReLU(), {nn.Tanh, nn.GELU}))
    fails("isinstance: argument 2 must be a class of modules, such as nn.Linear, or a list of them, got 'ReLU'", nn.isinstance, nn.ReLU(),
      "ReLU")
  end)

  it("modules say what they were made with", function()
    for text, m in pairs {
      ["Conv2d(4, 8, kernel_size=3x3, stride=1x1, padding=0x0, dilation=2x2, groups=2)"] = nn.Conv2d(4, 8, 3, {groups = 2, dilation = 2}),
      ["ConvTranspose1d(4, 8, kernel_size=3, stride=2, padding=0, output_padding=1)"] =
        nn.ConvTranspose1d(4, 8, 3, {stride = 2, output_padding = 1}),
      ["LSTM(3, 4, num_layers=2, bias=false, batch_first=true, dropout=0.1, bidirectional=true)"] =
        nn.LSTM(3, 4, 2, {bias = false, batch_first = true, dropout = 0.1, bidirectional = true}),
      ["Bilinear(in1_features=2, in2_features=3, out_features=4, bias=true)"] = nn.Bilinear(2, 3, 4),
      ["EmbeddingBag(3, 2, mode=sum, padding_idx=2)"] = nn.EmbeddingBag(3, 2, {mode = "sum", padding_idx = 2}),
      ["Embedding(3, 2, padding_idx=1)"] = nn.Embedding(3, 2, {padding_idx = 1}),
      ["PReLU(num_parameters=1)"] = nn.PReLU(),
      ["LayerNorm(4, eps=1e-05, elementwise_affine=true, bias=false)"] = nn.LayerNorm(4, {bias = false}),
      ["ParameterList(\n  (0): Parameter of size 2x3, float32 on cpu\n)"] = nn.ParameterList {tycho.ones(2, 3, {device = "cpu"})},
      ["ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"] = nn.ModuleList {nn.ReLU(), nn.ReLU(), nn.Tanh()},
    } do assert.equal(text, tostring(m)) end
  end)

  it("an embedding's gradients go by how often an id is there", function()            -- PyTorch's numbers
    local e = nn.Embedding(4, 2, {scale_grad_by_freq = true, sparse = true, padding_idx = 4})
    local y = e(tycho.tensor({{1, 1, 2}, {4, 2, 1}}):long()) * tycho.range(1, 12):view(2, 3, 2)
    y:sum():backward()
    helper.close(e.weight.grad, tycho.tensor {{5, 6}, {7, 8}, {0, 0}, {0, 0}}, "gradient", 1e-6)
    local w = tycho.zeros(2, 1, {dtype = "float16", requires_grad = true})
    local ids = tycho.ones(70000, {dtype = "int64"})        -- more than float16 can count
    tycho.scope(function() return tycho.embedding(ids, w, {scale_grad_by_freq = true}) end):sum():backward()
    assert.near(1, w.grad[{1, 1}], 0.01)
    e = nn.Embedding.from_pretrained(tycho.ones(3, 2) * 5, {max_norm = 1, scale_grad_by_freq = true})
    assert.is_true(e.scale_grad_by_freq)
    assert.near(1, e(tycho.ones(1, {dtype = "int64"})):norm():item(), 1e-5)
  end)

  it("names that PyTorch has in other places too", function()
    assert.is_true(tycho.autocast({device = "cpu"}, function() return (tycho.is_autocast_enabled("cpu")) end))
    assert.equal(tycho.amp.GradScaler, tycho.GradScaler)
    assert.equal(tycho.amp.GradScaler, tycho.cuda.amp.GradScaler)
    assert.equal("float16", tycho.get_autocast_dtype("cuda"))
    assert.same({1, 10, 100}, tycho.logspace(0, 2, 3):totable())
    assert.same({1, 2, 4, 8}, tycho.logspace(0, 3, 4, 2):totable())
    tycho.manual_seed(3)
    local counts = tycho.poisson(tycho.full({2000}, 4))
    assert.near(4, counts:mean():item(), 0.2)
    assert.near(4, counts:var():item(), 0.6)
    local m, x = nn.MultiheadAttention(4, 2), tycho.randn(3, 1, 4)
    assert.is_true(tycho.equal((m(x, x, x, {need_weights = false})), (m {query = x, key = x, value = x, need_weights = false})))
    assert.equal("0x2x4", tostring(m(tycho.ones(0, 2, 4)).shape))
    fails("argument 1 is a table with names; no other argument may follow it, got a table", m, {query = x, key = x, value = x},
      {need_weights = false})
    assert.equal("float32", tycho.get_default_dtype())
    fails("logspace: argument 3 (steps)", tycho.logspace, 0, 1, -1)
  end)

  it("an average begins with the values as they are", function()
    local net = nn.Linear(2, 1, {bias = false})
    net:register_buffer("mask", tycho.tensor {0, -math.huge})
    tycho.no_grad(function() net.weight:fill_(0 / 0) end)
    local mean = optim.swa_utils.AveragedModel(net, {use_buffers = true})
    for v = 2, 4, 2 do
      tycho.no_grad(function() net.weight:fill_(v) end)
      mean:update_parameters(net)
      if v == 2 then assert.same({0, -math.huge}, mean.module.mask:totable()) end
    end
    assert.equal(3, mean.module.weight[{1, 1}])
    local a, b = tycho.randn(100), tycho.randn(100)
    assert.is_true(tycho.equal(b, a:lerp(b, 1)))
    assert.is_true(tycho.equal(a, a:lerp(b, 0)))
  end)

  it("what takes sizes and dims says what is wrong with them", function()
    fails("argument 2 (output_size), size 1, must be a whole number from 0, got a tensor", nn.ConvTranspose2d(1, 1, 2),
      tycho.ones(1, 1, 3, 3), {tycho.ones(2), tycho.ones(2)})
    fails("argument 1 must be a tensor of 3 or 4 dims, got shape ()", nn.ConvTranspose2d(1, 1, 2), tycho.tensor(1), {3, 3})
    fails("var: argument 2 (dim) must list whole numbers, got boolean", tycho.ones(2, 2).var, tycho.ones(2, 2), {false, 1})
    fails("embedding_bag: argument 1 (ids) must have 1 or 2 dims", nn.EmbeddingBag(3, 2), tycho.tensor(1, {dtype = "int64"}))
    fails("remove: argument 'name' is missing", nn.utils.prune.remove, nn.Linear(1, 1))
  end)

  it("lazy layers learn their sizes from a state dict too", function()
    local function made()
      return nn.Sequential(nn.LazyConv2d(4, 3, {groups = 2}), nn.LazyBatchNorm2d(), nn.LazyConv2d(4, 1, 1, 0, 1, 2), nn.Flatten(),
        nn.LazyLinear(3))
    end
    local a, b, x = made(), made(), tycho.randn(2, 2, 5, 5)
    a(x)
    b:load_state_dict(a:state_dict())
    assert.equal("Conv2d(2, 4, kernel_size=3x3, stride=1x1, padding=0x0, groups=2)", tostring(b[1]))
    assert.is_true(tycho.equal(a:eval()(x), b:eval()(x)))
    fails("unexpected 'other'", function() made():load_state_dict({other = tycho.ones(1)}) end)
    local norm = nn.LazyInstanceNorm2d()                       -- as PyTorch's, affine and with statistics, unlike InstanceNorm2d
    norm:load_state_dict(nn.BatchNorm2d(3):state_dict())
    assert.equal("InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)", tostring(norm))
    local bare = nn.LazyInstanceNorm1d {affine = false}
    bare(tycho.randn(2, 4, 3))
    assert.is_true(bare.weight == nil and bare.running_mean ~= nil)
  end)
end)

describe("lists and dicts of the caller's", function()
  it("stay as they are", function()
    local p, size = nn.AdaptiveAvgPool3d({false, 1, 1}), {false, 1, 1}
    assert.equal("1x1x4x1x1", tostring(p(tycho.rand(1, 1, 4, 4, 4)).shape))
    assert.equal("1x1x6x1x1", tostring(p(tycho.rand(1, 1, 6, 4, 4)).shape))
    nn.functional.adaptive_avg_pool3d(tycho.rand(1, 1, 4, 4, 4), size)
    assert.is_false(size[1])
    local m = nn.Linear(1, 1)
    local d = nn.ModuleDict {a = m, b = m}
    assert.same({"a", "b"}, d:keys())
    assert.equal(2, nn.ModuleDict(d):len())
    d:clear()
    assert.equal(0, d:len())
    local w = nn.Parameter(tycho.ones(2))
    assert.equal(2, nn.ParameterDict({a = w, b = w}):len())
  end)

  it("numbers keep their fractions, norms their signs, places their parts beyond 2^24", function()
    assert.equal(3, tycho.bucketize(2.5, tycho.tensor({1, 2, 3}, {dtype = "int64"})):item())
    assert.near(0.5, nn.functional.lp_pool1d(tycho.ones(1, 1, 2), -1, 2):item(), 1e-6)
    fails("p must be finite and not 0", nn.functional.lp_pool1d, tycho.ones(1, 1, 2), 0, 2)
  end)

  it("grid_sample reads what lies beyond 2^24 elements #cpu", function()
    local D, H, W = 258, 256, 257
    local x = tycho.zeros(1, 1, D, H, W)
    for i = 1, 3 do x[{1, 1, 258, 256, 251 + i}] = i end
    local function g(i, n) return (2 * i + 1) / n - 1 end
    for i = 1, 3 do
      local grid = tycho.tensor {{{{{g(250 + i, W), g(255, H), g(257, D)}}}}}
      assert.equal(i, nn.functional.grid_sample(x, grid, {mode = "nearest"}):item())
    end
  end)

  it("states, optimizers and hooks tell what is wrong before it is done", function()
    local m = nn.Linear(2, 2)
    local state = m:state_dict()
    state.weight = tycho.ones(2, 2, {dtype = "int64"})
    fails("'weight' has dtype int64, which has no gradients", m.load_state_dict, m, state, {assign = true})
    fails("has no parameters yet", tycho.optim.Adam, nn.Sequential(nn.Linear(1, 1), nn.LazyLinear(2)):named_parameters())
    m:register_full_backward_pre_hook(function() return 1 end)
    fails("register_full_backward_pre_hook: a hook must return a list", function() m(tycho.ones(1, 2)):sum():backward() end)
  end)

  it("a loader's state is of the loop that goes on", function()
    local data = tycho.data
    local set = data.TensorDataset(tycho.range(1, 40))
    local function loader() return data.DataLoader(set, {batch_size = 4, shuffle = true, seed = 3}) end
    local a, b = loader(), loader()
    local it = a:iter()
    it()
    a:iter()()
    it()
    b:load_state_dict(a:state_dict())
    local on = b:iter()
    for _ = 1, 8 do assert.same(it():totable(), on():totable()) end
  end)
end)
