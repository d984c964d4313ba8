-- Modules, optimizers, schedules, loaders.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim = tycho.nn, tycho.optim
local fails = helper.fails

describe("nn", function()
  it("finds what is assigned, in order, by PyTorch's names", function()
    local Net = nn.Module:extend("Net")
    function Net:init(n)
      self.first = nn.Linear(3, n)
      self.scale = nn.Parameter(tycho.ones(n))
      self:register_buffer("seen", tycho.zeros(1))
      self.rest = nn.Sequential(nn.ReLU(), nn.Linear(n, 2, {bias = false}))
      self.list = nn.ModuleList {nn.Linear(1, 1), nn.Linear(1, 1)}
      self.plain = {nn.Linear(9, 9)}
      self.count = n
    end
    function Net:forward(x) return self.rest(self.first(x) * self.scale) end
    local net = Net(4)
    local names = {}
    for name in net:named_parameters() do names[#names + 1] = name end
    assert.same({"first.weight", "first.bias", "scale", "rest.1.weight", "list.0.weight", "list.0.bias",
      "list.1.weight", "list.1.bias"}, (function()
      local sorted = {}
      for i, n in ipairs(names) do sorted[i] = n end
      return sorted
    end)())
    assert.equal(8, #net:parameters())
    assert.equal("2x2", tostring(net(tycho.randn(2, 3)).shape))
    local state = net:state_dict()
    assert.is_truthy(state["seen"])
    assert.is_nil(state["plain"])
    local n = 0
    for _ in ipairs(net.list) do n = n + 1 end
    assert.equal(2, n)
    assert.equal("Linear", net.rest[2]._name)
    assert.equal(4, net.count)
    net.first = nn.Linear(3, 4)
    assert.equal(8, #net:parameters())
    fails("can't be replaced by 3", function() net.first = 3 end)
    net.scale = nil
    assert.equal(7, #net:parameters())
  end)

  it("lets classes extend classes", function()
    local A = nn.Module:extend("A")
    function A:init(n) self.l = nn.Linear(n, n) end
    function A:twice(x) return self.l(self.l(x)) end
    local B = A:extend("B")
    function B:init(n) A.init(self, n) self.m = nn.Linear(n, 1) end
    function B:forward(x) return self.m(self:twice(x)) end
    assert.equal("5x1", tostring(B(3)(tycho.randn(5, 3)).shape))
    assert.is_truthy(tostring(B(3)):find("(l): Linear(in_features=3, out_features=3, bias=true)", 1, true))
    assert.is_truthy(tostring(nn.Sequential(nn.ReLU(), nn.Linear(1, 2))):find("(1): Linear", 1, true))
  end)

  it("carries the path of modules in errors", function()
    local net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 5), nn.Linear(6, 7)))
    fails("in Sequential > 1 (Sequential) > 1 (Linear): linear: argument 1 has shape 2x5; its last dim must be 6", net, tycho.ones(2, 3))
  end)

  it("trains and evaluates", function()
    local net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    assert.is_true(net[3].training)
    net:eval()
    assert.is_false(net[3].training)
    local x = tycho.randn(6, 3)
    helper.close(net(x), net(x))
    net:train()
    net(x)
    assert.equal(1, net[2].num_batches_tracked:item())
    assert.is_true(net[2].running_mean:abs():sum():item() > 0)
    net:zero_grad()
    local seen = 0
    net:apply(function() seen = seen + 1 end)
    assert.equal(4, seen)
  end)

  it("loads state dicts whole or not at all", function()
    local a, b = nn.Linear(2, 3), nn.Linear(2, 3)
    b:load_state_dict(a:state_dict())
    assert.is_true(a.weight:equal(b.weight))
    local before = b.weight:detach():clone()
    fails("missing 'bias'", function() b:load_state_dict({weight = tycho.zeros(3, 2)}) end)
    fails("'weight' has shape 2x2, the module's is 3x2",
      function() b:load_state_dict({weight = tycho.zeros(2, 2), bias = tycho.zeros(3)}) end)
    fails("unexpected 'x'", function() b:load_state_dict({weight = tycho.zeros(3, 2), bias = tycho.zeros(3), x = tycho.zeros(1)}) end)
    assert.is_true(b.weight:equal(before))
    b:load_state_dict({weight = tycho.zeros(3, 2)}, {strict = false})
    assert.equal(0, b.weight:abs():sum():item())
  end)

  it("converts to other dtypes under the optimizer's hands", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    local w = net[1].weight
    net:double()
    assert.equal("float64", w.dtype)
    assert.is_true(rawequal(w, net[1].weight))
    assert.equal("int64", net[2].num_batches_tracked.dtype)
    assert.equal("float64", net(tycho.randn(3, 2, {dtype = "float64"})).dtype)
    net:half()
    assert.equal("float16", net:eval()(tycho.randn(3, 2, {dtype = "float16"})).dtype)
  end)

  it("refuses bad layers and options", function()
    fails("did you mean 'padding'", nn.Conv2d, 1, 2, 3, {paddin = 1})
    fails("in_features", nn.Linear, -1, 2)
    fails("groups", nn.Conv2d, 3, 4, 1, {groups = 2})
    fails("0..1", nn.Dropout, 2)
    fails("a module is needed", nn.Sequential, 3)
    fails("must be a tensor", nn.Parameter, 3)
    fails("channel", nn.BatchNorm2d(3), tycho.ones(1, 3, 1, 1))
    fails("4 dims", nn.BatchNorm2d(3), tycho.ones(2, 3))
  end)

  it("sums up a model", function()
    local text = nn.summary(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3)), {1, 1, 4, 4})
    assert.is_truthy(text:find("1x2x2x2", 1, true))
    assert.is_truthy(text:find("total parameters%s+47"))
  end)

  it("initialises in place", function()
    tycho.manual_seed(1)
    local w = nn.Parameter(tycho.empty(200, 100))
    nn.init.kaiming_normal_(w, {nonlinearity = "relu"})
    assert.is_true(math.abs(w:std():item() - math.sqrt(2 / 100)) < 0.01)
    nn.init.xavier_uniform_(w)
    assert.is_true(w:abs():max():item() <= math.sqrt(6 / 300) + 1e-6)
    nn.init.constant_(w, 3)
    assert.equal(3, w:mean():item())
    assert.is_true(nn.init.trunc_normal_(w):abs():max():item() <= 2)
    -- mean and deviation of the part a..b, (mean + deviation of the whole, a, b), by integration of the density
    for _, case in ipairs {{0, 1, 0, 0.01, 0.005, 0.0028868}, {0, 1, 3, 5, 3.28269, 0.26419}, {1, 2, -8, -6, -6.47453, 0.41734}} do
      local mean, std, a, b, m, s = unpack(case)
      nn.init.trunc_normal_(w, mean, std, a, b)
      assert.is_true(w:min():item() >= a and w:max():item() <= b and #w:unique() > 19000)
      assert.is_true(math.abs(w:mean():item() - m) < s * 0.03 and math.abs(w:std():item() / s - 1) < 0.03)
    end
    helper.exact(nn.init.trunc_normal_(tycho.empty(3), 0, 1, 40, 41), tycho.full({3}, 40), "far out")
    fails("2 dims", nn.init.xavier_normal_, tycho.empty(3))
  end)

  it("embeds 1-based ids and refuses others", function()
    local e = nn.Embedding(3, 2)
    helper.close(e(tycho.tensor({3, 1}, {dtype = "int64"})), tycho.stack({e.weight[3], e.weight[1]}):detach())
    fails("index 0", e, tycho.tensor({0}, {dtype = "int64"}))
    fails("out of range", e, tycho.tensor({4}, {dtype = "int64"}))
  end)

  it("trains a small transformer block", function()
    tycho.manual_seed(3)
    local Block = nn.Module:extend("Block")
    function Block:init(n, heads)
      self.norm1, self.norm2 = nn.LayerNorm(n), nn.LayerNorm(n)
      self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
      self.mlp = nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))
      self.heads = heads
    end
    function Block:forward(x)
      local b, t, n = x.shape[1], x.shape[2], x.shape[3]
      local parts = self.qkv(self.norm1(x)):chunk(3, -1)
      for i = 1, 3 do parts[i] = parts[i]:view(b, t, self.heads, n / self.heads):transpose(2, 3) end
      local scores = parts[1]:matmul(parts[2]:transpose(-2, -1)) / math.sqrt(n / self.heads)
      local mask = tycho.ones(t, t):tril():eq(0)
      local y = scores:masked_fill(mask, -math.huge):softmax(-1):matmul(parts[3])
      x = x + self.out(y:transpose(2, 3):reshape(b, t, n))
      return x + self.mlp(self.norm2(x))
    end
    local embed, block, head = nn.Embedding(5, 8), Block(8, 2), nn.Linear(8, 5)
    local params = {}
    for _, m in ipairs {embed, block, head} do for _, p in ipairs(m:parameters()) do params[#params + 1] = p end end
    local opt = optim.AdamW(params, {lr = 0.01})
    local x = tycho.randint(1, 5, {4, 6})
    local y = x:roll(1, 2)                -- each token's answer is the one before it
    local first, last
    for _ = 1, 150 do
      local loss = tycho.cross_entropy(head(block(embed(x))):transpose(2, 3), y)
      opt:zero_grad()
      loss:backward()
      opt:step()
      first, last = first or loss:item(), loss:item()
    end
    assert.is_true(first > 1.2 and last < 0.7, ("loss went from %g to %g"):format(first, last))
  end)

  it("lists parameters, and adds groups of them to an optimizer", function()
    local Net = nn.Module:extend("Net")
    function Net:init() self.scales = nn.ParameterList {tycho.ones(2), nn.Parameter(tycho.zeros(3))} end
    local net = Net()
    net.scales:append(tycho.ones(1))
    local names = {}
    for name in net:named_parameters() do names[#names + 1] = name end
    assert.same({"scales.0", "scales.1", "scales.2"}, names)
    assert.equal(3, #net.scales)
    assert.is_true(net.scales[1].requires_grad)
    assert.equal(net.scales[3], net.scales[-1])
    local opt = tycho.optim.SGD({net.scales[1]}, {lr = 0.5, momentum = 0.9})
    opt:add_param_group {params = {net.scales[2]}, lr = 0.1}
    assert.equal(0.9, opt.param_groups[2].momentum)
    net.scales[2].grad = tycho.ones(3)
    opt:step()
    helper.close(net.scales[2], tycho.full({3}, -0.1), "stepped at its group's rate", 1e-6)
    helper.fails("parameter 1 is given twice", function() opt:add_param_group {params = {net.scales[1]}} end)
    helper.fails("unknown option 'dampning'; did you mean 'dampening'?", function()
      opt:add_param_group {params = {net.scales[3]}, dampning = 1}
    end)
    helper.fails("unknown option 'betas'", function() opt:add_param_group {params = {net.scales[3]}, betas = {0.9, 0.9}} end)
    opt:add_param_group {params = {net.scales[3]}, name = "last", lr_scale = 0.5}      -- the program's own
    assert.same({"last", 0.5}, {opt.param_groups[3].name, opt:state_dict().param_groups[3].lr_scale})
    helper.fails("a tensor is needed", function() net.scales:append(1) end)
    helper.close(tycho.einsum("ij,jk->ik", {tycho.ones(2, 3), tycho.ones(3, 2)}), tycho.full({2, 2}, 3), "einsum of a list", 0)
    helper.fails("as a list or one by one", function() tycho.einsum("i,i->", {tycho.ones(2)}, tycho.ones(2)) end)
    helper.fails("operand 2 must be a tensor", function() tycho.einsum("i,i->", {tycho.ones(2), 3}) end)
  end)

  it("schedules take a group that is added later from the rate that it has", function()
    local weights = {nn.Parameter(tycho.ones(1)), nn.Parameter(tycho.ones(1))}
    -- PyTorch's for StepLR; of LambdaLR, CyclicLR, OneCycleLR and warm restarts it has none
    for name, case in pairs {
      StepLR = {{step_size = 2}, 0.01, 0.03}, LambdaLR = {{lr_lambda = function(e) return 1 / (e + 1) end}, 0.1 / 3, 0.1},
      CosineAnnealingWarmRestarts = {{T_0 = 4}, 0.05, 0.15},
      CyclicLR = {{base_lr = 0.1, max_lr = 0.5, step_size_up = 4, cycle_momentum = false}, 0.3, 0.4}} do
      local opt = optim.SGD({weights[1]}, {lr = 0.1})
      local schedule = optim.lr_scheduler[name](opt, case[1])
      schedule:step()
      opt:add_param_group {params = {weights[2]}, lr = 0.3}
      schedule:step()
      assert.near(case[2], opt.param_groups[1].lr, 1e-9, name)
      assert.near(case[3], opt.param_groups[2].lr, 1e-9, name)
    end
  end)

  it("adaptive pools keep a dim for false; weight_norm has one length for dim 0; what is elsewhere is told", function()
    local x = tycho.randn(2, 3, 6, 5)
    for _, size in ipairs {{3, false}, {false, 1}, {false, false}} do
      local whole = {size[1] or 6, size[2] or 5}
      assert.is_true(nn.AdaptiveAvgPool2d(size)(x):equal(nn.AdaptiveAvgPool2d(whole)(x)))
      assert.is_true(nn.AdaptiveMaxPool2d(size)(x):equal(nn.AdaptiveMaxPool2d(whole)(x)))
    end
    helper.fails("got a list of 1", nn.AdaptiveAvgPool2d {3}, x)
    local w = tycho.randn(2, 4)
    for _, dim in ipairs {0, false} do
      for _, norm in ipairs {nn.utils.parametrizations.weight_norm, nn.utils.weight_norm} do
        local layer = nn.Linear(4, 2, {bias = false})
        tycho.no_grad(function() layer.weight:copy_(w) end)
        norm(layer, {dim = dim})
        helper.close(layer(tycho.eye(4)), w:t())
        local least = math.min(layer:parameters()[1]:numel(), layer:parameters()[2]:numel())
        assert.equal(1, least)
      end
    end
    helper.fails("give {dtype =", function() return tycho.set_default_dtype end)
    assert.equal(tycho.zeros(2, 1).shape, tycho.ones(2, 3):sum(2, {keepdims = true}).shape)
  end)

  it("recurrent layers carry their states, and agree with their cells", function()
    tycho.manual_seed(4)
    for _, name in ipairs {"RNN", "LSTM", "GRU"} do
      local rnn, cell = nn[name](3, 4), nn[name .. "Cell"](3, 4)
      for _, k in ipairs {"weight_ih", "weight_hh", "bias_ih", "bias_hh"} do cell[k] = rnn[k .. "_l0"] end
      local x, h0, c0 = tycho.randn(6, 2, 3), tycho.randn(1, 2, 4), name == "LSTM" and tycho.randn(1, 2, 4) or nil
      local y, h, c = rnn(x, h0, c0)
      assert.equal("6x2x4", tostring(y.shape))
      helper.close(h[1], y[6], "the last state is the last result", 0)
      -- in two parts, the second from the first's states; states also as one list
      local y1, h1, c1 = rnn(x[{ {1, 2} }], {h0, c0})
      local y2, h2, c2 = rnn(x[{ {3, 6} }], h1, c1)
      helper.close(tycho.cat({y1, y2}), y, name .. " in two parts", 1e-5)
      helper.close(h2, h, "state", 1e-5)
      if c then helper.close(c2, c, "cell state", 1e-5) end
      local s, d = h0[1], c0 and c0[1]
      for t = 1, 6 do s, d = cell(x[t], s, d) end
      helper.close(s, h[1], name .. "Cell", 1e-5)
      helper.close(rnn(x[{ {}, 1 }], h0[{ {}, 1 }], c0 and c0[{ {}, 1 }]), y[{ {}, 1 }], name .. " without a batch", 1e-5)
      helper.fails("the last of size 3", function() rnn(tycho.zeros(2, 2, 5)) end)
      helper.fails("h0) must be a tensor of shape 1x2x4, got shape 1x2x5", function() rnn(x, tycho.zeros(1, 2, 5), c0) end)
      if c0 then helper.fails("give both states", rnn, x, h0) end
      helper.fails("h0) has dtype float64; it must be float32 as the input's", rnn, x, h0:double(), c0)
      local order = {}
      for n in cell:named_parameters() do order[#order + 1] = n end
      assert.same({"weight_ih", "weight_hh", "bias_ih", "bias_hh"}, order)
    end
    helper.fails("RNN: nonlinearity must be tanh or relu", function() nn.RNN(2, 2, {nonlinearity = "gelu"}) end)
    helper.fails("RNNCell: nonlinearity must be tanh or relu", function() nn.RNNCell(2, 2, {nonlinearity = "gelu"}) end)
    helper.fails("GRUCell: the input must have 1 or 2 dims, the last of size 3, got shape 2x5",
      function() nn.GRUCell(3, 4)(tycho.zeros(2, 5)) end)
    local deep = nn.LSTM(3, 4, 2, {dropout = 1})
    helper.close((deep(tycho.randn(2, 1, 3))), (deep(tycho.randn(2, 1, 3))), "all is dropped between the layers", 0)
  end)

  it("recurrent layers: gradients of both orders, in both directions, with rows for several threads, in 16 bits, of nothing", function()
    tycho.manual_seed(8)
    for _, kind in ipairs {{"RNN", nonlinearity = "tanh"}, {"RNN", nonlinearity = "relu"}, {"LSTM"}, {"GRU"}} do
      local net = nn[kind[1]](2, 3, {bidirectional = true, bias = kind[1] ~= "GRU", nonlinearity = kind.nonlinearity}):double()
      local lstm = kind[1] == "LSTM"
      local function random(...) return tycho.randn(..., {dtype = "float64", requires_grad = true}) end
      local x, h0, c0 = random({3, 2, 2}), random({2, 2, 3}), lstm and random({2, 2, 3}) or nil
      local inputs = net:parameters()
      for _, t in ipairs {x, h0, c0} do inputs[#inputs + 1] = t end
      local function loss()
        local y, h, c = net(x, h0, c0)
        local sum = (y * y:sin()):sum() + h:square():sum()
        return c and sum + (c * c * c):sum() or sum
      end
      for _, check in ipairs {"gradcheck", "gradgradcheck"} do assert.is_true(tycho.autograd[check](loss, inputs)) end
      local plain, graph = tycho.grad(loss(), inputs), tycho.grad(loss(), inputs, {create_graph = true})
      for i = 1, #inputs do helper.close(plain[i], graph[i], kind[1] .. ", input " .. i, 1e-12) end

      local wide = nn[kind[1]](4, 24, {bidirectional = true, nonlinearity = kind.nonlinearity})
      local big = tycho.randn(5, 70, 4)
      local y, h = wide(big)
      for _, n in ipairs {1, 20, 21, 70} do
        local one, last = wide(big[{ {}, {n, n} }])
        helper.close(one, y[{ {}, {n, n} }], "row " .. n, 1e-5)
        helper.close(last, h[{ {}, {n, n} }], "state of row " .. n, 1e-5)
      end
      helper.close(tycho.no_grad(wide, big), y, "without a graph", 0)
      for dtype, near in pairs {float16 = 1e-2, bfloat16 = 6e-2} do
        wide:zero_grad()
        y:square():mean():backward({retain_graph = true})
        local exact = wide.weight_hh_l0.grad:clone()
        wide:zero_grad()
        local half = tycho.amp.autocast({dtype = dtype, device = helper.device}, function() return (wide(big)) end)
        assert.equal(dtype, half.dtype)
        helper.close(half:float(), y, dtype, near)
        half:float():square():mean():backward()
        assert.is_true((wide.weight_hh_l0.grad - exact):norm():item() < 4 * near * exact:norm():item())
      end
      local none = wide(tycho.zeros(5, 0, 4))
      assert.equal("5x0x48", tostring(none.shape))
      none:sum():backward()
    end
  end)
end)

describe("optim", function()
  it("follows PyTorch's losses for 100 steps of a CNN, and SGD's for 20", function()
    local g = tycho.load("spec/golden/cnn.safetensors")
    local net = nn.Sequential(nn.Conv2d(1, 4, 3, {padding = 1}), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
      nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5))
    local state = {}
    for k, v in pairs(g) do if k:match("^net%.") then state[k:sub(5)] = v end end
    net:load_state_dict(state, {strict = false})
    local opt = optim.AdamW(net:parameters(), {lr = 3e-3, weight_decay = 0.05})
    local schedule = optim.lr_scheduler.OneCycleLR(opt, {max_lr = 3e-3, total_steps = 100})
    for step = 1, 100 do
      local loss = tycho.cross_entropy(net(g.x), g.y)
      opt:zero_grad()
      loss:backward()
      nn.utils.clip_grad_norm_(net:parameters(), 1)
      assert.is_true(math.abs(opt.param_groups[1].lr - g.lrs[step]) < 1e-10)
      opt:step()
      schedule:step()
      assert.is_true(math.abs(loss:item() - g.losses[step]) <= 1e-4 * math.max(1, g.losses[step]),
        ("step %d: %.7g, expected %.7g"):format(step, loss:item(), g.losses[step]))
    end
    local lin = nn.Linear(3, 2)
    lin:load_state_dict({weight = g["sgd.weight"], bias = g["sgd.bias"]})
    local sgd = optim.SGD(lin:parameters(), {lr = 0.1, momentum = 0.9, weight_decay = 0.01, nesterov = true})
    for step = 1, 20 do
      local loss = lin(g["sgd.x"]):pow(2):sum()
      sgd:zero_grad()
      loss:backward()
      sgd:step()
      local want = g["sgd.losses"][step]
      assert.is_true(math.abs(loss:item() - want) <= 1e-4 * math.max(1, want))
    end
  end)

  it("has groups, schedules and state that can be saved", function()
    local a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    local opt = optim.AdamW({{params = a:parameters(), lr = 0.1}, {params = b:parameters()}}, {lr = 0.01})
    assert.equal(0.1, opt.param_groups[1].lr)
    assert.equal(0.01, opt.param_groups[2].lr)
    local s = optim.lr_scheduler.StepLR(opt, {step_size = 2})
    s:step()
    assert.equal(0.1, opt.param_groups[1].lr)
    s:step()
    assert.is_true(math.abs(opt.param_groups[1].lr - 0.01) < 1e-12)
    b(a(tycho.ones(1, 2))):sum():backward()
    opt:step()
    local path = os.tmpname()
    tycho.save(path, {opt = opt:state_dict(), s = s:state_dict()})
    local d = tycho.load(path)
    os.remove(path)
    local again = optim.AdamW({{params = a:parameters()}, {params = b:parameters()}})
    again:load_state_dict(d.opt)
    assert.is_true(math.abs(again.param_groups[1].lr - 0.01) < 1e-12)
    assert.same({0.9, 0.999}, again.param_groups[1].betas)
    assert.equal(1, again.state[a.weight].step:item())
    helper.close(again.state[a.weight].exp_avg, opt.state[a.weight].exp_avg)
    fails("groups", function() optim.SGD(a:parameters()):load_state_dict(d.opt) end)
  end)

  it("leaves parameters without gradients alone, and refuses nonsense", function()
    local p, q = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2))
    local opt = optim.SGD({p, q}, {lr = 1})
    p:sum():backward()
    opt:step()
    assert.same({0, 0}, p:totable())
    assert.same({1, 1}, q:totable())
    fails("did you mean 'momentum'", optim.SGD, {p}, {momentun = 1})
    fails("negative", optim.SGD, {p}, {lr = -1})
    fails("not a leaf", optim.SGD, {p * 2})
    fails("twice", optim.SGD, {p, p})
    fails("empty", optim.SGD, {})
    fails("must be a list", optim.SGD, p)
    fails("step_size", optim.lr_scheduler.StepLR, opt)
  end)

  it("updates parameters in any layout and dtype", function()
    for _, dtype in ipairs {"float64", "float16", "bfloat16"} do
      local p = nn.Parameter(tycho.ones(2, 3, {dtype = dtype}):t())
      local opt = optim.AdamW({p}, {lr = 0.5, weight_decay = 0})
      p.grad = tycho.full({3, 2}, 2, {dtype = dtype})
      opt:step()
      helper.close(p:detach():double(), tycho.full({3, 2}, 0.5, {dtype = "float64"}), dtype, 1e-2)
    end
  end)

  it("clips the gradients' norm", function()
    local p, q = nn.Parameter(tycho.zeros(1)), nn.Parameter(tycho.zeros(1))
    p.grad, q.grad = tycho.tensor {3}, tycho.tensor {4}
    assert.equal(5, nn.utils.clip_grad_norm_({p, q}, 1):item())
    assert.is_true(math.abs(p.grad:item() - 0.6) < 1e-5)
    nn.utils.clip_grad_norm_({p, q}, 10)
    assert.is_true(math.abs(q.grad:item() - 0.8) < 1e-5)
  end)
end)

describe("data", function()
  local data = tycho.data
  it("loads batches in an order that the seed decides", function()
    local set = data.TensorDataset(tycho.range(1, 10), tycho.range(1, 10, 1, {dtype = "int64"}))
    local function epoch(loader)
      local out = {}
      for x, y in loader:iter() do
        assert.is_true(x:equal(y:float()))
        for _, v in ipairs(x:totable()) do out[#out + 1] = v end
      end
      return out
    end
    local a, b = data.DataLoader(set, {batch_size = 3, shuffle = true, seed = 5}),
      data.DataLoader(set, {batch_size = 3, shuffle = true, seed = 5})
    local one, two = epoch(a), epoch(a)
    assert.equal(10, #one)
    assert.is_false(table.concat(one) == table.concat(two))
    tycho.rand(7)
    assert.same(one, epoch(b))
    assert.equal(4, a:size())
    assert.equal(3, data.DataLoader(set, {batch_size = 3, drop_last = true}):size())
    assert.same({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, epoch(data.DataLoader(set, {batch_size = 4})))
  end)

  it("goes on where its state stood", function()
    local set = data.TensorDataset(tycho.range(1, 10))
    local a = data.DataLoader(set, {batch_size = 2, shuffle = true, seed = 1})
    for _ in a:iter() do end
    local seen, state = {}, nil
    for x in a:iter() do
      seen[#seen + 1] = x:totable()[1]
      if #seen == 2 then state = a:state_dict() end
    end
    local b = data.DataLoader(set, {batch_size = 2, shuffle = true, seed = 9})
    b:load_state_dict(state)
    local rest = {}
    for x in b:iter() do rest[#rest + 1] = x:totable()[1] end
    assert.same({seen[3], seen[4], seen[5]}, rest)
    local whole = 0
    for _ in b:iter() do whole = whole + 1 end
    assert.equal(5, whole)
  end)

  it("collates what datasets in Lua give", function()
    local set = {size = function() return 3 end, get = function(_, i) return i, i / 2, "s" .. i, tycho.full({2}, i), {a = i} end}
    for n, f, s, t, m in data.DataLoader(set, {batch_size = 3}):iter() do
      assert.equal("int64", n.dtype)
      assert.equal("float32", f.dtype)
      assert.same({"s1", "s2", "s3"}, s)
      assert.same({{1, 1}, {2, 2}, {3, 3}}, t:totable())
      assert.same({1, 2, 3}, m.a:totable())
    end
    fails("did you mean 'shuffle'", data.DataLoader, set, {shufle = true})
    fails("batch_size", data.DataLoader, set, {batch_size = 0})
    fails("dataset with size", data.DataLoader, {})
    local parts = data.random_split(data.TensorDataset(tycho.range(1, 5)), {2, 3})
    assert.equal(3, parts[2]:size())
    fails("out of range", data.Subset, set, {4})
  end)

  it("says what brings a missing dataset", function()
    fails("dataset-fashion-mnist", data.datasets.FashionMNIST, {root = "/nowhere"})
    fails("unknown option", data.datasets.FashionMNIST, {path = "/nowhere"})
  end)

  it("nn.init: identities, and rows that are orthogonal", function()
    local init = tycho.nn.init
    assert.same({{1, 0, 0}, {0, 1, 0}}, init.eye_(tycho.empty(2, 3)):totable())
    for _, shape in ipairs {{4, 6}, {6, 4}, {5, 5}, {3, 2, 2}} do
      local w = init.orthogonal_(tycho.empty(shape), 2):view(shape[1], -1):double()
      local square = shape[1] <= w.shape[2] and w:matmul(w:t()) or w:t():matmul(w)
      helper.close(square, tycho.eye(square.shape[1], {dtype = "float64"}) * 4, "square", 1e-5)
    end
    local x = tycho.randn(2, 4, 5, 5)
    helper.close(tycho.conv2d(x, init.dirac_(tycho.empty(4, 4, 3, 3)), nil, {padding = 1}), x, "dirac", 1e-6)
    helper.close(tycho.conv2d(x, init.dirac_(tycho.empty(4, 2, 3, 3), 2), nil, {padding = 1, groups = 2}), x, "dirac in groups", 1e-6)
  end)

  it("clamp takes tensors, div rounds where asked to", function()
    local x = tycho.tensor({-3, 0.5, 7})
    assert.same({-1, 1, 2}, x:clamp(tycho.tensor({-1, 1, 2}), tycho.tensor({0, 5, 2})):totable())
    assert.same({-3, 0.5, 3}, x:clamp(nil, tycho.tensor(3)):totable())
    local y = x:clone()
    assert.is_true(rawequal(y, y:clamp_(tycho.tensor({0, 0, 0}), 1)))
    assert.same({0, 0.5, 1}, y:totable())
    local a, b = tycho.tensor({-7, 7}), tycho.tensor({-7, 7}, {dtype = "int64"})
    assert.same({-3, 3}, a:div(2, {rounding_mode = "trunc"}):totable())
    assert.same({-4, 3}, a:div(2, {rounding_mode = "floor"}):totable())
    assert.same({-3.5, 3.5}, b:div(2):totable())
    for mode, want in pairs {trunc = {-3, 3}, floor = {-4, 3}} do
      local q = tycho.div(b, 2, {rounding_mode = mode})
      assert.equal("int64", q.dtype)
      assert.same(want, q:totable())
    end
    helper.fails("rounding_mode", tycho.div, a, 2, {rounding_mode = "up"})
  end)

  it("skip_init draws no random numbers", function()
    tycho.manual_seed(3)
    local want = tycho.rand(2)
    tycho.manual_seed(3)
    local net = nn.utils.skip_init(nn.Linear, 3, 4, {bias = false})
    helper.close(tycho.rand(2), want, nil, 0)
    assert.equal("4x3", tostring(net.weight.shape))
    helper.fails("skip_init: argument 1 must be a class of modules", nn.utils.skip_init, 3)
  end)

  it("Adam with decoupled_weight_decay is AdamW, whose state it takes", function()
    local function run(class, o, state)
      local w = nn.Parameter(tycho.tensor {1, -2, 3})
      local opt = class({w}, o)
      if state then opt:load_state_dict(state) end
      for i = 1, 3 do
        w.grad = tycho.tensor {i, 1, -i}
        opt:step()
      end
      return w:detach(), opt:state_dict()
    end
    local want, state = run(tycho.optim.AdamW, {lr = 0.1, weight_decay = 0.3})
    helper.close(run(tycho.optim.Adam, {lr = 0.1, weight_decay = 0.3, decoupled_weight_decay = true}), want, nil, 0)
    assert.is_true(state.param_groups[1].decoupled_weight_decay)
    state.param_groups[1].decoupled_weight_decay = nil                   -- of an earlier version
    helper.close(run(tycho.optim.AdamW, {lr = 0.1, weight_decay = 0.3}, state), (run(tycho.optim.AdamW, {lr = 0.1, weight_decay = 0.3},
      (select(2, run(tycho.optim.AdamW, {lr = 0.1, weight_decay = 0.3}))))), nil, 0)
  end)

  it("batch_norm changes its statistics in training alone", function()
    local bn = nn.BatchNorm1d(3):eval()
    local x = tycho.randn(4, 3):requires_grad_()
    local y = x * bn.running_mean + bn.running_var
    bn(x)
    assert.equal(0, bn.running_mean:_version())
    y:sum():backward()
    helper.close(x.grad, tycho.zeros(4, 3))
    y = x * bn.running_mean
    bn:train()(x)
    assert.equal(1, bn.num_batches_tracked:item())
    fails("was changed in place", y:sum().backward, y:sum())
  end)
end)
