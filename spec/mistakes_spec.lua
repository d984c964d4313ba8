-- What users do by mistake: each is refused in words that say what was wrong, and loses nothing.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, data, F = tycho.nn, tycho.optim, tycho.data, tycho.nn.functional
local fails = helper.fails

describe("mistakes", function()
  local net, opt
  before_each(function()
    net = nn.Linear(2, 1)
    opt = optim.SGD(net:parameters(), {lr = 0.1})
  end)

  it("options are told: the nearest, else all; the names of calls' forms are names", function()
    local x, ids = tycho.ones(2, 3), tycho.tensor({1, 2}, {dtype = "int64"})
    fails("conv2d: unknown option 'pad'; did you mean 'padding'?", F.conv2d, tycho.ones(1, 1, 3, 3), tycho.ones(1, 1, 1, 1), {pad = 1})
    fails("cross_entropy: unknown option 'smoothing'; did you mean 'label_smoothing'?", F.cross_entropy, x, ids, {smoothing = 1})
    fails("zeros: unknown option 'grad'; did you mean 'requires_grad'?", tycho.zeros, 2, {grad = true})
    fails("clamp: unknown option 'mx'; did you mean 'max'?", tycho.clamp, x, {mx = 1})
    fails("softmax: unknown option 'axs'; the options are x, dim, dtype", tycho.softmax, x, {axs = 1})
    fails("ones: unknown option 'foo'; the options are size, dtype, device, requires_grad, pin_memory", tycho.ones, 2, {foo = 1})
    assert.equal(4, tycho.one_hot(ids, {classes = 4}).shape[2])
    assert.equal(-0.5, F.leaky_relu(-x, {slope = 0.5}):min():item())
    assert.equal(3, tycho.full({2}, {v = 3}):max():item())
    assert.equal(4, F.linear(x, {w = x, b = tycho.ones(2)})[{1, 1}])
    assert.equal(2, F.max_pool2d(tycho.ones(1, 1, 4, 4), {k = 2}).shape[3])
    assert.equal(5, tycho.randint({lo = 5, hi = 5, size = {2}}):max():item())
    assert.equal(0, select("#", tycho.ones(1, {requires_grad = true}):sum():backward()))
    assert.equal(0, tycho.zero_(x):sum():item())
    fails("zeros: out of memory", tycho.zeros, 2 ^ 45, {device = "cpu"})
    fails("eye: a tensor of size", tycho.eye, 2 ^ 31, {device = "cpu"})
    if not tycho.cuda.is_available() then
      fails("to: device 'cuda' is not available", x.to, x, "cuda")
      for _, name in ipairs {"get_device_name", "memory_summary", "graph"} do fails(name .. ": ", tycho.cuda[name], print) end
    end
  end)

  it("a method's misspelled name is told, and a field that isn't there is nil", function()
    local loader = data.DataLoader(data.TensorDataset(tycho.ones(2)))
    local manager = tycho.checkpoint.Manager {dir = helper.folder()}
    local scheduler = optim.lr_scheduler.StepLR(opt, 1)
    for _, case in ipairs {{opt, "stpe", "step"}, {opt, "zero_gard", "zero_grad"}, {scheduler, "get_lsat_lr", "get_last_lr"},
        {tycho.amp.GradScaler(), "unscle_", "unscale_"}, {loader, "itre", "iter"}, {manager, "restor", "restore"}} do
      local object, name, right = unpack(case)
      fails(("has no method '%s'; did you mean '%s'?"):format(name, right), function() return object[name](object) end)
      assert.is_nil(object.anything_else)
    end
  end)

  it("lists have no holes and no options", function()
    local a, b = net.weight, net.bias
    fails("SGD: item 2 of the list of parameters is nil", optim.SGD, {a, net.typo, b})
    fails("SGD: item 2 of the list of parameters is nil", optim.SGD, {params = {a, nil, b}})
    fails("SGD: item 2 of the list of groups is nil", optim.SGD, {{params = {a}}, nil, {params = {b}}})
    fails("SGD: the list of parameters can't have named fields, got 'lr', which belongs in a second table", optim.SGD, {a, b, lr = 0.5})
    fails("can't have named fields, got 'lr'", optim.SGD, {net:parameters(), lr = 0.5})
    fails("can't have named fields, got 'lr'", optim.SGD, {{params = net:parameters()}, lr = 0.5})
    fails("TensorDataset: argument 2 must be a tensor with dims, got nil", data.TensorDataset, tycho.ones(2), nil, tycho.ones(2))
    local d = data.TensorDataset(tycho.ones(2))
    fails("ConcatDataset: item 2 of argument 1 is nil", data.ConcatDataset, {d, nil, d})
    fails("StackDataset: argument 2 must be a dataset, got nil", data.StackDataset, d, nil, d)
    fails("ModuleList: item 2 of the list is nil", nn.ModuleList, {nn.ReLU(), nil, nn.ReLU()})
    fails("ParameterList: item 2 of the list is nil", nn.ParameterList, {a, nil, b})
    fails("clip_grad_norm_: item 2 of argument 1 is nil", nn.utils.clip_grad_norm_, {a, nil, b}, 1)
    fails("parameters_to_vector: item 2 of argument 1 is nil", nn.utils.parameters_to_vector, {a, nil, b})
    fails("pad_sequence: item 2 of argument 1 is nil", nn.utils.rnn.pad_sequence, {tycho.ones(2), nil, tycho.ones(2)})
    fails("MultiStepLR: item 2 of milestones is nil", optim.lr_scheduler.MultiStepLR, opt, {3, nil, 5})
    local s = optim.lr_scheduler.StepLR(opt, 1)
    fails("ChainedScheduler: item 2 of schedulers is nil", optim.lr_scheduler.ChainedScheduler, {s, nil, s})
  end)

  it("another optimizer's state isn't taken", function()
    local sgd, adam = optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9}), optim.Adam(net:parameters())
    net(tycho.ones(1, 2)):sum():backward()
    adam:step()
    sgd:step()
    fails("has 'exp_avg", sgd.load_state_dict, sgd, adam:state_dict())
    assert.equal(0.1, sgd.param_groups[1].lr)
    sgd:load_state_dict(sgd:state_dict())
  end)

  it("a step looks at all groups before it updates one", function()
    local a, b = nn.Parameter(tycho.ones(2)), nn.Parameter(tycho.ones(2))
    for _, case in ipairs {{"lr", "a", "lr must be a number, got 'a'"}, {"lr", 0 / 0, "lr must be a number, got"},
        {"momentum", false, "momentum must be a number"},
        {"nesterov", 3, "nesterov must be a boolean, got 3"}, {"params", false, "a group needs a list 'params', got false"}} do
      local o = optim.SGD({{params = {a}}, {params = {b}}}, {lr = 1})
      a.grad, b.grad = tycho.ones(2), tycho.ones(2)
      o.param_groups[2][case[1]] = case[2]
      fails(case[3], o.step, o)
      assert.same({1, 1}, a:detach():totable())
    end
    local o = optim.SGD({{params = {a}}, {params = {b}}}, {lr = 1})
    a.grad, b.grad = tycho.ones(2), tycho.ones(2)
    b:free()
    fails("freed", o.step, o)
    assert.same({1, 1}, a:detach():totable())
  end)

  it("what is empty, put there by hand or counted is none", function()
    local p, q = nn.Parameter(tycho.zeros(0, {dtype = "bfloat16"})), nn.Parameter(tycho.zeros(4, 0, 3))
    p.grad, q.grad = tycho.zeros(0, {dtype = "bfloat16"}), tycho.zeros(3, 0, 4):permute(3, 2, 1)
    local o = optim.SGD({n = 2, p, q}, {lr = 1})
    o:step()
    assert.equal(0, nn.utils.clip_grad_norm_({q}, 1):item())
    local a = nn.Parameter(tycho.ones(2))
    o.param_groups[2] = {params = {a}, lr = 1, momentum = 0}
    a.grad = tycho.ones(2)
    o:step()
    assert.same({0, 0}, a:detach():totable())
    assert.equal(2, nn.utils.parameters_to_vector(nn.ParameterList {tycho.ones(2)}):numel())
    local x = tycho.randn(2, 4, 3, 3)
    helper.close(F.group_norm(x, 2, tycho.ones(4, 1, 1), tycho.zeros(4, 1, 1)), F.group_norm(x, 2))
  end)

  it("what failed has counted nothing", function()
    local s = optim.lr_scheduler.LambdaLR(opt, function(epoch) return epoch == 0 and 1 or nil end)
    assert.is_false(pcall(s.step, s))
    assert.equal(0, s.last_epoch)
    local x, n = tycho.ones(2, {dtype = "float64", requires_grad = true}), 0
    local ok = pcall(tycho.autograd.gradcheck, function(v)
      n = n + 1
      if n == 4 then error "bang" end
      return v * 2
    end, x)
    assert.is_false(ok)
    assert.same({1, 1}, x:detach():totable())
  end)

  it("settings are checked where they are given", function()
    fails("Conv2d: kernel_size must be a number or a list of 2, got a list of 3", nn.Conv2d, 3, 8, {3, 3, 3})
    fails("Conv2d: kernel_size must be a number or a list of 2, got a list of 1", nn.Conv2d, 3, 8, {3})
    fails("Conv2d: stride must be a whole number from 1, got 0", nn.Conv2d, 3, 8, 3, {stride = 0})
    fails("Conv1d: dilation must be a whole number from 1, got -1", nn.Conv1d, 3, 8, 3, {dilation = -1})
    fails("Parameter: requires_grad must be true or false, got 'no'", nn.Parameter, tycho.ones(1), "no")
    fails("requires_grad_: argument 1 must be true or false, got 'no'", net.requires_grad_, net, "no")
    local list = nn.Sequential(nn.ReLU())
    list[1] = 3                            -- a raw field, which nothing sees
    fails("Sequential: member 1 must be a module, got 3", list, tycho.ones(1))
    fails("Sequential: member 1 must be a module or a Parameter, got 3", list.parameters, list)
    list[1] = nn.Tanh()
    assert.equal("Tanh()", tostring(list[1]))
    fails("Normalize: mean must be a number or a list of 1 to 4, got a table", tycho.data.transforms.Normalize, {"a"}, {1})
    local planes = tycho.data.transforms.Normalize(tycho.full({2, 1, 1}, 0.5), tycho.ones(2, 1, 1))
    assert.equal("Normalize({0.5, 0.5}, {1, 1})", tostring(planes))
    fails("the dataset's size() must be a whole number from 0, got 'a'", function()
      return data.DataLoader({size = function() return "a" end, get = function() end}):size()
    end)
  end)

  it("a GradScaler is as it was after a setting that it refuses", function()
    local w = nn.Parameter(tycho.ones(2))
    local sgd, scaler = optim.SGD({w}, {lr = 1}), tycho.amp.GradScaler {init_scale = 8}
    scaler:scale((w * tycho.tensor {math.huge, 1}):sum()):backward()
    scaler:step(sgd)
    fails("update: new_scale must be a number or a tensor of one element, got 'bad'", scaler.update, scaler, "bad")
    fails("update: new_scale must be above 0 and within float32, got -1", scaler.update, scaler, -1)
    scaler:update()                                      -- still knows that the step was bad
    assert.equal(4, scaler:get_scale())
    assert.same({1, 1}, w:totable())
    for _, v in ipairs {0, 1, -2, 0 / 0} do fails("growth_factor must be", scaler.set_growth_factor, scaler, v) end
    fails("backoff_factor must be below 1", scaler.set_backoff_factor, scaler, 1)
    fails("growth_interval", scaler.set_growth_interval, scaler, 0)
    fails("scale must be above 0 and within float32, got -1", scaler.load_state_dict, scaler, {scale = -1})
    fails("backoff_factor must be below 1, got 3", scaler.load_state_dict, scaler, {scale = 2, backoff_factor = 3})
    assert.same({scale = 4, growth_factor = 2, backoff_factor = 0.5, growth_interval = 2000, _growth_tracker = 0}, scaler:state_dict())
  end)

  it("what PyTorch's and Torch7's programs ask for is told where it is", function()
    fails("x:data() is a method and gives an FFI pointer; use 'clamp_' of x:detach()", function() net.weight.data:clamp_(-1, 1) end)
    assert.equal(net.weight[{1, 1}], net.weight:detach():cpu():data()[0])
    fails("Linear has no 'evaluate': use eval()", function() net:evaluate() end)
    fails("Sequential has no 'add': use append(module)", function() nn.Sequential():add(net) end)
    assert.is_nil(net.norm)                              -- an optional layer, say
  end)

  it("values are checked before they are used", function()
    local d = tycho.distributions.Categorical(tycho.ones(3))
    for _, v in ipairs {0, 4, 1.5} do
      fails("Categorical: log_prob: a value must be a category, a whole number from 1", d.log_prob, d, v)
    end
    assert.is_true(math.abs(d:log_prob(3):item() + math.log(3)) < 1e-6)
    for _, w in ipairs {{1, -1}, {0, 0}, {1, 0 / 0}} do
      fails("argument 1 (weights) must be numbers from 0 with a finite sum above 0", data.WeightedRandomSampler, w, 3)
    end
    local message = select(2, pcall(tycho.data.transforms.Normalize, {0.5}, {0}))
    assert.equal(1, select(2, message:gsub("Normalize:", "")))
  end)

  it("methods are called with a colon, of what a class makes", function()
    local d = data.TensorDataset(tycho.ones(2))
    fails("TensorDataset: call it with a colon: set:size(...)", d.size)
    fails("TensorDataset: call it with a colon: set:get(...)", d.get, 1)
    fails("call it with a colon", tycho.distributions.Normal(0, 1).sample)
    fails("call it with a colon", tycho.distributions.Normal(0, 1).entropy)
    local f = tycho.autograd.Function {forward = function(ctx, x) ctx.save_for_backward(x) return x * 1 end,
      backward = function(_, g) return g end}
    fails("save_for_backward: call it with a colon", f, tycho.ones(1, {requires_grad = true}))
    local dir = os.tmpname()
    os.remove(dir)
    local m = tycho.checkpoint.Manager {dir = dir, async = false}
    fails("'model' is the class Linear", m.save, m, 1, {model = nn.Linear})
    m:save(1, {model = net})
    fails("was saved by state_dict(); 3 can't load it", m.restore_latest, m, {model = 3})
    os.execute("rm -r " .. dir)
    fails("shape can't be called", function() return tycho.ones(2).shape() end)
    assert.equal("shape 2x3", "shape " .. tycho.ones(2, 3).shape)
    assert.equal("net: " .. tostring(net), "net: " .. net)
    local bare = nn.Module()
    bare.fc = nn.Linear(2, 2)
    assert.equal(2, #bare:parameters())
  end)

  it("functions of the user's return what is needed", function()
    local lbfgs = optim.LBFGS(net:parameters())
    fails("LBFGS: the closure must return the loss, a tensor of one element or a number, got nil", lbfgs.step, lbfgs, function()
      lbfgs:zero_grad()
      net(tycho.ones(1, 2)):sum():backward()
    end)
    local x = tycho.ones(2, 3)
    fails("distance_function must be a function, got 2", F.triplet_margin_with_distance_loss, x, x, x, {distance_function = 2})
    fails("distance_function must return a tensor, got nil", F.triplet_margin_with_distance_loss, x, x, x,
      {distance_function = function() end})
  end)

  it("errors name what was called", function()
    fails("cross_entropy: argument 1 must have a dim of classes", F.cross_entropy, tycho.ones({}), tycho.ones({}), {label_smoothing = 0.1})
    fails("binary_cross_entropy: argument 1 (x) must be floating, got bool", F.binary_cross_entropy, tycho.ones(2):bool(), tycho.ones(2))
    fails("addr: outer:", tycho.addr, tycho.ones(2, 2), tycho.ones(2, 2), tycho.ones(2))
    fails("cosine_similarity: broadcast_tensors:", F.cosine_similarity, tycho.ones(2), tycho.ones(3))
    fails("group_norm: argument 1 has shape 2x3, 3 channels; weight has 6 elements", nn.GroupNorm(3, 6), tycho.ones(2, 3))
    fails("2 to 3 dims are needed", nn.BatchNorm1d(3), tycho.ones(3))
    fails("clone: at most 1 argument, counting a method's tensor, got 2", tycho.ones(1).clone, tycho.ones(1), true)
    fails("must be a tensor, got 1; a method is called with a colon, and v[i] of a vector is a number", tycho.sqrt, tycho.ones(2)[1])
    fails("zeros: size 1 is nil", tycho.zeros, tycho.ones(2).shape[3], 2)
    fails("tycho has no 'sparse_coo_tensor': there are no sparse tensors", function() return tycho.sparse_coo_tensor end)
    fails("data has no 'IterableDataset': any table with iter() is a dataset", function() return tycho.data.IterableDataset end)
    fails("jit has no 'script': use trace(model, example)", function() return tycho.jit.script end)
    fails("a tensor has no field or method '1'", function() return tycho.ones(2)["1"] end)
    fails("a tensor has no method 'parameters'; a module's methods are called with a colon", function() return tycho.ones(2).parameters end)
    fails("use tycho.no_grad(function() x:copy_(y) end)", function() net.weight.data = tycho.ones(1, 2) end)
    local loop = nn.Sequential(nn.ReLU())
    loop:append(loop)
    local ok, e = pcall(loop, tycho.ones(1))
    assert.is_false(ok)
    assert.is_true(#e < 3000)
  end)

  it("files of text and tokens, subsets, schedules, sums of what isn't there", function()
    local set = data.datasets.TextFile{root = "README.md", block_size = 8}
    fails("item 'a' is out of range", function() return set:get("a") end)
    fails("encode: argument 1 must be a string, got 5", function() return set:encode(5) end)
    fails("decode: argument 1 must be a list of ids, got nil", function() return set:decode() end)
    local path = os.tmpname()
    helper.write_file(path, ("\1\0\2\0"):rep(100))
    fails("TokenFile: split must be a number", data.datasets.TokenFile, {root = path, split = "x"})
    fails("TokenFile: split must be a number", data.datasets.TokenFile, {root = path, split = 5})
    os.remove(path)
    local sgd, L = optim.SGD({tycho.zeros(2, {requires_grad = true})}, {lr = 0.1}), optim.lr_scheduler
    fails("ReduceLROnPlateau, which needs a metric", function()
      return L.SequentialLR(sgd, {L.LinearLR(sgd), L.ReduceLROnPlateau(sgd)}, {2})
    end)
    fails("scatter: argument 4 (src) 300 is out of range for uint8", function()
      return tycho.zeros(3, {dtype = "uint8"}):scatter(1, tycho.tensor({1}, {dtype = "int64"}), 300)
    end)
    for message, fn in pairs {
        ["random_split: argument 1 must be a dataset, got 3"] = function() local a = data.random_split(3, {1}) return a end,
        ["collate: a list of items is needed"] = function() local a = data.collate(3) return a end,
        ["save_curve: /nope/c.png: "] = function() tycho.utils.save_curve("/nope/c.png", {1, 2}) end,
        ["utils has no 'data': datasets and loaders are in tycho.data"] = function() local a = tycho.utils.data return a end,
        ["DistributedDataParallel"] = function() local a = nn.DataParallel return a end} do
      local ok, e = pcall(fn)
      assert.is_true(not ok and e:find("^spec/mistakes_spec.lua:%d+: ") ~= nil and e:find(message, 1, true) ~= nil, e)
    end
  end)

  it("a subset's list is what its loader goes by", function()
    local set = data.Subset(data.TensorDataset(tycho.range(1, 10)), {1, 2, 3})
    set.indices = {4, 5}
    assert.equal(4, set:get(1))
    for x in data.DataLoader(set, {batch_size = 2}):iter() do assert.same({4, 5}, x:totable()) end
    set.indices[1] = 9
    for x in data.DataLoader(set, {batch_size = 2}):iter() do assert.same({9, 5}, x:totable()) end
    local beyond = data.Subset(data.TensorDataset(tycho.range(1, 10, 1, {device = "cpu"})), {1})
    beyond.indices = {99}
    helper.fails("position 99 is out of range 1 to 10", function()
      data.DataLoader(data.ConcatDataset {beyond}, {num_workers = 1}):iter()
    end)
  end)

  it("that a port of PyTorch's programs met", function()
    local p, N = {nn.Parameter(tycho.ones(2))}, nn.Module:extend "N"
    function N:init() self.b = 1 end
    fails("CyclicLR: Adagrad has no momentum: set {cycle_momentum = false}", optim.lr_scheduler.CyclicLR, optim.Adagrad(p), 0.1, 0.2)
    local plain = optim.Adagrad(p, {lr = 0.3})
    fails("OneCycleLR: Adagrad has no momentum", optim.lr_scheduler.OneCycleLR, plain, 0.1, {total_steps = 5})
    assert.same({0.3}, {plain.param_groups[1].lr, plain.param_groups[1].initial_lr})
    optim.lr_scheduler.OneCycleLR(optim.Adagrad(p), 0.1, {total_steps = 5, cycle_momentum = false}):step()
    fails("Muon: parameters must be matrices, got shape 2", optim.Muon, p)
    local made = N()
    fails("the N has a field 'b' already", made.register_buffer, made, "b", tycho.ones(1))
    fails("the N's buffer 'c' must be a tensor or nil, got number", made.register_buffer, made, "c", 5)
    local Returns = optim.Optimizer:extend "Returns"
    function Returns:rule(_, w, g) return w - g end
    p[1]:sum():backward()
    local returns = Returns(p)
    fails("rule must call write(p, value) rather than return a value", returns.step, returns)
    fails("the first 2 dims have 4 elements, the others 1", tycho.linalg.tensorinv, tycho.ones(2, 2), 2 ^ 40)
    fails("must be int64 (target:long())", nn.functional.cross_entropy, tycho.ones(2, 3), tycho.ones(2, {dtype = "int32"}))
    fails("did you mean 'roi_align'", function() return tycho.vision.ops.roi_aline end)
    local nan = 0 / 0
    assert.truthy(tycho.tensor({1, 2, nan, 1 / 0}):describe():find("min 1, max 2, mean 1.5, std 0.707107, NaN 1, inf 1", 1, true))
    assert.truthy(tycho.tensor({nan}):describe():find("no finite element, NaN 1, inf 0", 1, true))
  end)

  it("summary of a model of ids", function()
    assert.truthy(nn.summary(nn.Embedding(10, 3), {2, 4}, {dtype = "int64"}):find("2x4x3", 1, true))
  end)

  it("a method called with a dot says so, and labels and matrices that don't fit are named", function()
    local Own = nn.Module:extend("Own")
    function Own:init() self.l = nn.Linear(3, 2) end
    function Own:forward(x) return self.l(x) end
    local own, x = Own(), tycho.ones(1, 3)
    helper.fails("a tensor has no 'l', and self is a tensor here: call forward with a colon",
      function() local y = own.forward(x) return y end)
    helper.fails("a tensor has no 'weight', and self is a tensor here: call methods with a colon", own.l.forward, x)
    helper.fails("forward: call it with a colon: net:forward(x), or net(x)", nn.Sequential(own).forward, x)
    for label = 0, 4, 4 do
      helper.fails(("ctc_loss: argument 2 (targets) has label %d: labels are from 1 to 3"):format(label), function()
        local one = tycho.tensor({label}, {dtype = "int64", device = "cpu"})
        return nn.functional.ctc_loss(tycho.zeros(4, 1, 3, {device = "cpu"}), one:view(1, 1), one * 0 + 4, one * 0 + 1)
      end)
    end
    local zeros = tycho.zeros(2, {device = "cpu"})
    for _, what in ipairs {"covariance_matrix", "precision_matrix"} do
      helper.fails(("MultivariateNormal: %s must be positive definite"):format(what), tycho.distributions.MultivariateNormal, zeros,
        {[what] = tycho.tensor({{1, 2}, {2, 1}}, {device = "cpu"})})
    end
  end)

  it("names of other places, tensors for lists, blanks for labels", function()
    helper.fails("nn has no 'relu': it is tycho.nn.functional.relu", function() return nn.relu end)
    helper.fails("nn has no 'conv2D'; did you mean 'Conv2d'?", function() return nn.conv2D end)
    local x = tycho.ones(2)
    helper.fails("cat: argument 1 (tensors) must be a list of tensors, {a, b}, got tensor", tycho.cat, x, x)
    helper.fails("squeeze_: argument 1 must be a tensor, got number; a method is called with a colon", tycho.squeeze_, 3)
    helper.fails("ctc_loss: argument 2 (targets) has label 1, which is the blank", function()
      local two = tycho.tensor({{1, 2}}, {dtype = "int64", device = "cpu"})
      return nn.functional.ctc_loss(tycho.zeros(4, 1, 3, {device = "cpu"}), two, {4}, {2})
    end)
    local d, seen = nn.ModuleDict {{"a", nn.ReLU()}, {"b", nn.Tanh()}}, {}
    for _ = 1, 2 do for name in d:keys() do seen[#seen + 1] = name end end
    assert.equal("a b a b", table.concat(seen, " "))
    assert.equal("a b", table.concat(d:keys(), " "))
    local names, pairs_of = d:keys(), {}
    for one in names do for other in names do pairs_of[#pairs_of + 1] = one .. other end end
    assert.equal("aa ab ba bb", table.concat(pairs_of, " "))
    assert.same({3, 4, 1, 2}, tycho.fft.fftshift(tycho.range(1, 4)):totable())
    assert.same({{5, 6, 4}, {2, 3, 1}}, tycho.fft.ifftshift(tycho.range(1, 6):view(2, 3)):totable())
  end)

  it("modules for tensors, lists and states; labels of floats; a path that comes second", function()
    local x = tycho.ones(3, 2)
    fails("relu: argument 1 (x) must be a tensor, got module", F.relu, net)
    fails("relu: argument 1 (x) must be a tensor, got module", F.relu, nn.Sequential(net))
    fails("add: argument 2 (b) must be a tensor or a number, got module", function() return x + net end)
    fails("relu: argument 1 (x) must be a tensor, got module", F.relu, tycho.compile(net))
    fails("view: argument 2 (size) must be a list of whole numbers, got 'a'", x.view, x, "a")
    fails("cat: argument 1 (tensors) must be a list of tensors, got module at 2", tycho.cat, {x, net})
    fails("to: argument 1 must be a device, a dtype or a tensor, got a module", net.to, net, net)
    fails("load_state_dict: argument 1 must be a table of tensors, such as state_dict() gives, got a module", net.load_state_dict, net, net)
    fails("SGD: group 1 is a module; give its parameters: SGD({net:parameters(), ...})", optim.SGD, {net}, {lr = 0.1})
    fails("save: argument 1 (path) must be a string, got a table: the path comes first", tycho.save, net:state_dict(), "a.safetensors")
    fails("zeros: argument 1 (size) must be whole numbers, got 'float64'; options have names", tycho.zeros, 3, "float64")
    fails("index: an index tensor must have dtype int64, int32 or bool, got float32: long() makes it int64", function() return x[x] end)
    fails("embedding: argument 1 must hold indices (int64), got float32: long() makes it int64", nn.Embedding(2, 2), x)
    fails("nll_loss: argument 2 (target) has dtype float32: class labels must be int64 (target:long())", F.nll_loss, x, tycho.ones(3))
    local _, e = pcall(net, 5)
    local want = "linear: argument 1 (x) must be a tensor, got 5"          -- and nothing of a dot: it is no such call
    assert.equal(want, e:sub(-#want))
    fails("linalg.inv: the matrix is singular", tycho.linalg.inv, tycho.zeros(2, 2))
    fails("argmax: dim 5 is out of range for shape 3x2", x.argmax, x, 5)
    fails("tycho has no 'solve': use linalg.solve", function() return tycho.solve end)
    fails("a tensor has no 'resize_': use reshape, view or new_empty", function() return x.resize_ end)
    fails("a tensor has no 'short': whole numbers are uint8, int32 or int64", function() return x.short end)
  end)

  it("whole numbers where masks belong, floats where labels do, sizes that are none", function()
    local x, mha, long = tycho.ones(3, 2, 4), nn.MultiheadAttention(4, 2), {dtype = "int64"}
    local must = "must be bool or floating, got "
    fails("MultiheadAttention: key_padding_mask " .. must .. "int64: bool() makes it bool", mha, x,
      {key_padding_mask = tycho.zeros(2, 3, long)})
    fails("MultiheadAttention: attn_mask " .. must .. "uint8", mha, x, {attn_mask = tycho.zeros(3, 3):byte()})
    helper.close(nn.BCELoss()(tycho.full({2}, 0.5), tycho.tensor {true, false}), tycho.tensor(math.log(2)))
    fails("argument 2 (target) must hold indices (int64), got float32", nn.MultiLabelMarginLoss(), tycho.ones(2, 3), tycho.ones(2, 3))
    fails("AdaptiveLogSoftmaxWithLoss: argument 2 (target) must hold indices (int64), got float32",
      nn.AdaptiveLogSoftmaxWithLoss(4, 8, {3, 5}), tycho.ones(2, 4), tycho.tensor {1.5, 4.7})
    fails("multi_margin_loss: argument 3 (p) must be 1 or 2, got -2", nn.MultiMarginLoss {p = -2}, tycho.ones(1, 4),
      tycho.tensor({1}, long))
    fails("im2col: kernel_size must be at least 1, got {0, 0}", nn.Unfold(0), tycho.ones(1, 1, 4, 4))
    fails("im2col: padding must not be negative, got {-1, -1}", nn.Unfold(1, {padding = -1}), tycho.ones(1, 1, 4, 4))
    fails("fuse_conv_bn_eval: the layer has 2 channels, the batch norm 3", nn.utils.fuse_conv_bn_eval, nn.Conv2d(1, 2, 1):eval(),
      nn.BatchNorm2d(3):eval())
    fails("trunc_normal_: a must not be above b, got 2 and -2", nn.init.trunc_normal_, x, 0, 1, 2, -2)
    fails("trunc_normal_: std must be above 0, got 0", nn.init.trunc_normal_, x, 0, 0)
  end)

  it("values that are no probabilities, labels, matrices, counts or parameters of distributions #cpu", function()
    local f, D, long = function(v) return tycho.tensor(v, {dtype = "float64"}) end, tycho.distributions, {dtype = "int64"}
    fails("binary_cross_entropy: argument 2 (y) must lie in 0..1, its elements are from 7 to 7", nn.BCELoss(), tycho.ones(1),
      tycho.tensor {7})
    fails("argument 2 (target) has label 9, but argument 1 has 3 classes", nn.MultiLabelMarginLoss(), tycho.ones(2, 3),
      tycho.full({2, 3}, 9, long))
    local half, zero = f {{2, 1}, {0, 2}}, f {0, 0}
    fails("scale_tril must hold lower triangular matrices with a diagonal above 0", D.MultivariateNormal, zero, {scale_tril = half})
    fails("covariance_matrix must hold symmetric matrices", D.MultivariateNormal, zero, {covariance_matrix = half})
    fails("precision_matrix must hold symmetric matrices", D.MultivariateNormal, zero, {precision_matrix = half})
    fails("Wishart: covariance_matrix must hold symmetric matrices", D.Wishart, 3, {covariance_matrix = half})
    fails("Beta: concentration1 must be above 0", D.Beta, f {-1}, f {2})
    fails("InverseGamma: rate must be above 0", D.InverseGamma, f {1}, f {-1})
    fails("Geometric: probs must be above 0", D.Geometric, {probs = f {0}})
    fails("Categorical: logits must be numbers below inf", D.Categorical, {logits = f {math.huge, 1}})
    fails("Categorical: logits must be numbers below inf, not all -inf", D.Categorical, {logits = f {-math.huge, -math.huge}})
    local counts, one = D.Multinomial {total_count = 3, probs = f {0.2, 0.8}}, D.OneHotCategorical {probs = f {0.2, 0.8}}
    fails("Multinomial: log_prob: a value must be counts that add up to total_count", counts.log_prob, counts, f {5, 5})
    fails("OneHotCategorical: log_prob: a value must be one 1 and 0s", one.log_prob, one, f {0.3, 7})
  end)

  it("lists of a schedule that don't have an item for each group", function()
    local function groups(n)
      local list = {}
      for i = 1, n do list[i] = {params = {nn.Parameter(tycho.ones(2))}} end
      return optim.SGD(list, {lr = 0.1, momentum = 0.9})
    end
    local S, one = optim.lr_scheduler, function() return 1 end
    local short, long = "a list of 2, one for each; got a list of 1", "a list of 1, one for each; got a list of 2"
    fails("OneCycleLR: base_momentum must be one for all groups, or " .. short, S.OneCycleLR, groups(2),
      {max_lr = 1, total_steps = 10, base_momentum = {0.8}})
    fails("CyclicLR: max_momentum must be one for all groups, or " .. short, S.CyclicLR, groups(2),
      {base_lr = 0.1, max_lr = 1, max_momentum = {1}})
    fails("OneCycleLR: max_lr must be one for all groups, or " .. long, S.OneCycleLR, groups(1), {max_lr = {1, 2}, total_steps = 10})
    fails("LambdaLR: lr_lambda must be one for all groups, or " .. long, S.LambdaLR, groups(1), {one, one})
    fails("MultiplicativeLR: lr_lambda must be one for all groups, or " .. short, S.MultiplicativeLR, groups(2), {one})
    fails("SWALR: swa_lr must be one for all groups, or " .. long, S.SWALR, groups(1), {swa_lr = {1, 2}})
    fails("ReduceLROnPlateau: min_lr lists 2 rates, the optimizer has 1 groups", S.ReduceLROnPlateau, groups(1), {min_lr = {0, 0}})
  end)
end)
