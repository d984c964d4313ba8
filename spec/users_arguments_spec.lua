-- Arguments as PyTorch's users write them, by position or by name; names that there aren't, mistakes, and what their errors say.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim = tycho.nn, tycho.nn.functional, tycho.optim
local close, fails, device = helper.close, helper.fails, helper.device
local cpu = {device = "cpu"}

describe("users' programs", function()
  it("name arguments as PyTorch does", function()
    local x, f64 = tycho.tensor {{3, 0, 4}, {1, 2, 2}}, {dtype = "float64"}
    for _, norm in ipairs {tycho.norm, tycho.linalg.norm, tycho.linalg.vector_norm, tycho.linalg.matrix_norm} do
      local y = norm(x:half(), f64)
      assert.equal("float64", y.dtype)
      close(y, tycho.tensor(math.sqrt(34), f64), "norm", 1e-12)
    end
    close(tycho.linalg.norm(x, 2, {dtype = "float64"}), tycho.linalg.norm(x:double(), 2), "of matrices", 1e-12)
    close(tycho.nanmean(x, {dtype = "float64"}), tycho.tensor(2, f64))
    assert.same({true, false}, tycho.isin(tycho.tensor {1, 5}, tycho.tensor {1, 2}, {assume_unique = true}):totable())
    assert.equal("3x2", tostring(tycho.swapaxes(x, {axis0 = 1, axis1 = 2}).shape))
    assert.equal("3x2", tostring(x:clone():swapaxes_({axis0 = 1, axis1 = 2}).shape))
    assert.is_true(tycho.logspace(0, 1, 5, {requires_grad = true}).requires_grad)
    close(tycho.pinverse(x, {rcond = 1e-6}), tycho.linalg.pinv(x))
    assert.equal("2x3", tostring(F.gumbel_softmax(x, {eps = 1e-10}).shape))
    local w = tycho.ones(2):requires_grad_()
    tycho.autograd.backward {tensors = {w * 2}, grad_tensors = {tycho.ones(2)}}
    assert.same({2, 2}, w.grad:totable())
    assert.is_true(nn.isinstance(nn.LazyLinear(2), nn.Linear) and nn.isinstance(nn.LazyConv2d(2, 3), nn.Module))
    assert.is_false(nn.isinstance(nn.LazyLinear(2), nn.Conv2d))
    fails("vmap: dim 0 for argument 1: dims begin at 1", tycho.vmap(function(v) return v end, 0), x)
  end)

  it("give functions, optimizers and scalers PyTorch's arguments by place", function()
    local function x() return tycho.tensor {-1, 2} end
    for _, case in ipairs {{F.relu, {true}, {0, 2}}, {F.leaky_relu, {0.5, true}, {-0.5, 2}}, {F.hardtanh, {-0.5, 1, true}, {-0.5, 1}},
        {F.dropout, {0.5, false, true}, {-1, 2}}} do
      local a = x()
      assert.is_true(rawequal(a, case[1](a, unpack(case[2]))))
      assert.same(case[3], a:totable())
    end
    local p = nn.Parameter(x())
    local sgd = optim.SGD({p}, 1e-3, 0.9, 0, 1e-4, true).param_groups[1]
    assert.same({1e-3, 0.9, 0, 1e-4, true}, {sgd.lr, sgd.momentum, sgd.dampening, sgd.weight_decay, sgd.nesterov})
    local adam = optim.Adam({p}, 1e-3, {0.8, 0.9}, 1e-7, {amsgrad = true}).param_groups[1]
    assert.same({{0.8, 0.9}, 1e-7, 0, true}, {adam.betas, adam.eps, adam.weight_decay, adam.amsgrad})
    fails("SGD: at most 6 arguments, got 7", optim.SGD, {p}, 1e-3, 0.9, 0, 0, true, 1)
    fails("SGD: argument 'momentum' is given twice", optim.SGD, {p}, 1e-3, 0.9, {momentum = 1})
    assert.equal(7, optim.LBFGS({p}, 1, 7).param_groups[1].max_iter)
    for name, class in pairs(optim) do                   -- every place is a setting of its class
      local is_class = type(class) == "table" and (getmetatable(class) or {}).__call
      for k in (is_class and class.places or ""):gmatch "%S+" do
        assert.is_true(class({nn.Parameter(tycho.ones(2, 2))}).param_groups[1][k] ~= nil, name .. " " .. k)
      end
    end
    local Mine = optim.SGD:extend "Mine"
    assert.equal(0.5, Mine({p}, 1, 0.5).param_groups[1].momentum)
    local w = tycho.ones(2, {requires_grad = true})
    local loss = (w * w):sum()
    loss:backward(nil, true)
    loss:backward()
    assert.same({4, 4}, w.grad:totable())
    assert.equal(128, tycho.amp.GradScaler("cuda", 128):get_scale())
    assert.equal(128, tycho.amp.GradScaler(128, 3):get_scale())
    fails("argument 'init_scale' is given twice", tycho.amp.GradScaler, "cuda", 128, {init_scale = 3})
    local parts = tycho.data.random_split(tycho.data.TensorDataset(tycho.ones(4)), {3, 1}, tycho.Generator())
    assert.same({3, 1}, {parts[1]:size(), parts[2]:size()})
  end)

  it("give attention its masks by place", function()
    local q, m = tycho.randn(4, 2, 8), nn.MultiheadAttention(8, 2)
    local mask = tycho.triu(tycho.ones(4, 4), 1):bool()
    local want, weights = m(q, q, q, {attn_mask = mask})
    close((m(q, q, q, nil, true, mask)), want)
    assert.is_false(tycho.allclose(want, (m(q, q, q))))
    local y, none = m(q, q, q, nil, false, mask)
    close(y, want)
    assert.is_nil(none)
    local padding = tycho.zeros(2, 4):bool()
    padding[{2, 4}] = true
    close((m(q, q, q, padding)), (m(q, q, q, {key_padding_mask = padding})))
    local _, each = m(q, q, q, nil, true, mask, false)
    close(each:mean(2), weights)
    close((m(q, q, q, nil, true, {attn_mask = mask})), want)
    close((m(q, q, q, nil, false, mask, true, true)), want)
    fails("at most 8 arguments, got 9", m, q, q, q, nil, true, nil, true, false, 1)
    fails("argument 'need_weights' is given twice", m, q, q, q, nil, true, {need_weights = false})
    fails("need_weights must be true or false, got a tensor", m, q, q, q, nil, mask)
    fails("key_padding_mask must be a tensor, got true", m, q, q, q, true)
    fails("attn_mask must be a tensor, got 1", m, {query = q, attn_mask = 1})
    fails("key_padding_mask must be a tensor, got a table", m, q, q, q, {attn_mask = mask}, true)
    fails("value must be a tensor, got a table", m, q, q, {attn_mask = mask}, "more")
    fails("no other argument may follow it, got true", m, {query = q}, nil, nil, nil, true)
    fails("query must be a tensor, got a table", m, {q}, q)
    close((m(q, {attn_mask = mask})), want)
    close((m(q, q, {attn_mask = mask})), want)
    close((m(q, nil, nil, nil, true, mask)), want)
  end)

  it("hear of options that a layer's forward doesn't take", function()
    local x = tycho.randn(1, 1, 5, 5)
    fails("Conv2d: takes no options, got 'padding'", nn.Conv2d(1, 1, 3), x, {padding = 1})
    fails("in Sequential: BatchNorm2d: takes no options", nn.Sequential(nn.BatchNorm2d(1)), x, {mask = 1})
    assert.equal(2, nn.Linear(4, 2)(nn.LSTM(5, 4)(x:view(5, 1, 5))):size(-1))            -- further results are no mistake
    local hooked = nn.Linear(5, 2)
    hooked:register_forward_pre_hook(function(_, inputs, o) return {inputs[1] * (o.by or 1)}, {} end, {with_kwargs = true})
    assert.equal(2, hooked(x, {by = 2}):size(-1))
    local own = nn.Linear(5, 2)
    own.forward = function(_, a, o) return a * o.by end
    assert.equal(5, own(x, {by = 2}):size(-1))
    local Own = nn.Linear:extend "Own"
    function Own:forward(a, b) return nn.Linear.forward(self, a) * b end
    assert.equal(2, Own(5, 2)(x, 3):size(-1))
    function Own:forward(a, ...) return nn.Linear.forward(self, a) * select("#", ...) end
    assert.equal(2, Own(5, 2)(x, 3, 4):size(-1))
  end)
end)

describe("users' arguments", function()
  it("of layers come by position, as PyTorch's, or by name", function()
    for _, pair in ipairs {
      {nn.Conv2d(4, 6, 3, 2, 1), nn.Conv2d {in_channels = 4, out_channels = 6, kernel_size = 3, stride = 2, padding = 1}},
      {nn.Conv2d(4, 6, {3, 5}, {1, 2}, 0, 1, 2, false), nn.Conv2d(4, 6, {3, 5}, {stride = {1, 2}, groups = 2, bias = false})},
      {nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), nn.ConvTranspose2d(4, 6, 3, {stride = 2, padding = 1, output_padding = 1})},
      {nn.Linear(4, 5, false), nn.Linear {in_features = 4, out_features = 5, bias = false}},
      {nn.BatchNorm2d(3, 1e-3, 0.2), nn.BatchNorm2d(3, {eps = 1e-3, momentum = 0.2})},
      {nn.LayerNorm({3, 4}, 1e-3), nn.LayerNorm {normalized_shape = {3, 4}, eps = 1e-3}},
      {nn.Embedding(10, 3, 1), nn.Embedding(10, 3, {padding_idx = 1})},
      {nn.MultiheadAttention(4, 2, 0.1), nn.MultiheadAttention {embed_dim = 4, num_heads = 2, dropout = 0.1}},
      {nn.LSTM(4, 3, 2, true, true), nn.LSTM {input_size = 4, hidden_size = 3, num_layers = 2, batch_first = true}},
      {nn.RNN(4, 3, 1, "relu"), nn.RNN(4, 3, {nonlinearity = "relu"})},
      {nn.GRUCell(4, 3, false), nn.GRUCell(4, 3, {bias = false})},
      {nn.Dropout(0.2), nn.Dropout {p = 0.2}}, {nn.ReLU(true), nn.ReLU {inplace = true}}, {nn.PReLU(3), nn.PReLU {num_parameters = 3}},
      {nn.TransformerEncoderLayer(8, 2, 16, 0, "gelu"),
        nn.TransformerEncoderLayer(8, 2, {dim_feedforward = 16, dropout = 0, activation = "gelu"})},
    } do
      local a, b = unpack(pair)
      assert.equal(tostring(a), tostring(b))
      local names, shapes = {}, {}
      for n, p in a:named_parameters() do names[#names + 1], shapes[n] = n, tostring(p.shape) end
      for n, p in b:named_parameters() do
        assert.equal(table.remove(names, 1), n)
        assert.equal(shapes[n], tostring(p.shape))
      end
      assert.equal(0, #names)
    end
    fails("Linear: argument 'out_features' is missing", nn.Linear, 3)
    fails("Linear: argument 'bias' is given twice", nn.Linear, 3, 4, true, {bias = true})
    fails("Linear: at most 3 arguments, got 4", nn.Linear, 3, 4, true, 1)
    fails("Linear: unknown option 'bais'; did you mean 'bias'?", nn.Linear, 3, 4, {bais = true})
    fails("Linear: in_features must be a whole number from 0, got '3'", nn.Linear, "3", 4)
    fails("Linear: in_features must be a whole number from 0, got a tensor", nn.Linear, tycho.ones(1), 4)
    fails("BatchNorm1d: momentum must be a number, got 'x'", nn.BatchNorm1d, 2, {momentum = "x"})
    local _, e = pcall(function() local l = nn.Linear(-1, 1) return l end)
    assert.truthy(e:find("users_arguments_spec.lua:%d+: Linear"), e)                   -- the user's line
  end)

  it("of layers without parameters too: PyTorch's orders, nothing dropped", function()
    local x = tycho.ones(1, 1, 6, 6)
    assert.equal("1x1x3x3", tostring(nn.AvgPool2d(3, 2, 0, true)(x).shape))
    assert.equal(2, select("#", nn.AdaptiveMaxPool2d(2, true)(x)))
    assert.equal("1x1x3x3", tostring(nn.MaxPool2d(2, 2, 0, 1)(x).shape))
    assert.equal(20, nn.Softplus(1, 20).threshold)
    assert.is_true(nn.GELU("tanh")(x):equal(nn.functional.gelu(x, {approximate = "tanh"})))
    assert.equal("1x1x12x12", tostring(nn.Upsample(nil, 2)(x).shape))
    fails("Softmax: at most 1 argument, got 2", nn.Softmax, 1, true)
    fails("LeakyReLU: argument 'negative_slope' is given twice", nn.LeakyReLU, 0.1, {negative_slope = 0.5})
    local y = tycho.tensor({1, 2, 3, 1}, {dtype = "int64"})
    assert.equal("4", tostring(nn.CrossEntropyLoss(tycho.ones(3), {reduction = "none"})(tycho.randn(4, 3), y).shape))
    fails("CrossEntropyLoss: takes weight and a table of options, got 1", nn.CrossEntropyLoss, tycho.ones(3), {}, 1)
    fails("'weight' is given twice", nn.CrossEntropyLoss, tycho.ones(3), {weight = tycho.ones(3)})
  end)

  it("may end in nil, or have a metatable", function()
    assert.is_nil(nn.Linear(2, 3, {bias = false}, nil).bias)
    assert.is_nil(nn.Linear(2, 3, setmetatable({bias = false}, {})).bias)
    fails("Linear: bias must be true or false, got 'no'", nn.Linear, 2, 3, "no")
    fails("Conv2d: padding must be whole numbers from 0, 'valid' or 'same', got 'foo'", nn.Conv2d, 3, 4, 3, 1, "foo")
    assert.equal(4, nn.Embedding(5, 3, {padding_idx = -2}).padding_idx)
    local opt = optim.SGD(nn.ParameterList {nn.Parameter(tycho.ones(2))}, {lr = 0.1})
    optim.lr_scheduler.MultiStepLR(opt, {})
    fails("OneCycleLR: anneal_strategy must be one of 'cos', 'linear', got 'linaer'", optim.lr_scheduler.OneCycleLR,
      opt, 0.1, 10, nil, nil, 0.3, "linaer")
    fails("StepLR: gamma must be a number, got 'x'", optim.lr_scheduler.StepLR, opt, 1, "x")
    fails("CyclicLR: mode must be", optim.lr_scheduler.CyclicLR, opt,
      {base_lr = 0.1, max_lr = 1, mode = "trianglar2", cycle_momentum = false})
    fails("SGD: takes parameters, lr and a table of options, and no more", optim.SGD, {nn.Parameter(tycho.ones(1))},
      {lr = 0.1}, {momentum = 0.9})
    local adam = optim.Adam {nn.Parameter(tycho.ones(1))}
    adam.param_groups[1].betas[1] = 0.5
    assert.equal(0.9, optim.Adam {nn.Parameter(tycho.ones(1))}.param_groups[1].betas[1])
  end)

  it("of initialisers, schedulers, losses and optimizers too", function()
    local w = tycho.empty(30, 20)
    assert.is_true(nn.init.normal_(w, {std = 0.02}):abs():amax():item() < 0.2)
    assert.is_true(nn.init.uniform_(w, {a = 2, b = 3}):amin():item() >= 2)
    assert.is_true(nn.init.uniform_(w, -3, -2):amax():item() <= -2)
    assert.equal(3, nn.init.constant_(w, {val = 3}):amax():item())
    local bound = math.sqrt(6 / ((1 + 5) * 20))
    assert.is_true(nn.init.kaiming_uniform_(w, math.sqrt(5)):abs():amax():item() <= bound + 1e-6)
    assert.is_true(nn.init.xavier_uniform_(w, {gain = 2}):abs():amax():item() > math.sqrt(6 / 50))
    helper.close(nn.init.orthogonal_(tycho.empty(3, 3), {gain = 5}):norm(), tycho.tensor(5 * math.sqrt(3)), "gain", 1e-5)
    fails("normal_: unknown option 'stdd'; did you mean 'std'?", nn.init.normal_, w, {stdd = 1})
    fails("zeros_: unknown option 'foo'", nn.init.zeros_, w, {foo = 1})
    fails("normal_: std must be a number, got 'x'", nn.init.normal_, w, 0, "x")
    fails("mode must be 'fan_in' or 'fan_out', got 'fan'", nn.init.kaiming_normal_, w, {mode = "fan"})

    local net = nn.Linear(2, 2)
    local opt = optim.SGD(net:parameters(), 0.5)
    assert.equal(0.5, opt.param_groups[1].lr)
    local s = optim.lr_scheduler.StepLR(opt, 1, 0.5)
    s:step()
    assert.equal(0.25, opt.param_groups[1].lr)
    fails("StepLR: argument 'step_size' is missing", optim.lr_scheduler.StepLR, opt)
    fails("SGD: argument 'lr' is given twice", optim.SGD, net:parameters(), 0.5, {lr = 1})
    fails("SGD: lr must be a number, got '0.1'", optim.SGD, net:parameters(), {lr = "0.1"})
    fails("SGD: nesterov needs momentum above 0", optim.SGD, net:parameters(), {nesterov = true})
    fails("Adam: betas must be two numbers in 0..1, such as {0.9, 0.999}, got {1.5, 0.9}", optim.Adam, net:parameters(),
      {betas = {1.5, 0.9}})
    fails("Adam: betas must be two numbers", optim.Adam, net:parameters(), {betas = 0.9})
    fails("SGD: argument 1 is a module; give its parameters", optim.SGD, net, {lr = 0.1})
    fails("step: argument 1 (closure) must be a function, got 3", opt.step, opt, 3)
    local weight = tycho.tensor {1, 3}
    local x, y = tycho.randn(4, 2), tycho.tensor({1, 2, 2, 1}, {dtype = "int64"})
    helper.close(nn.CrossEntropyLoss(weight)(x, y), tycho.cross_entropy(x, y, {weight = weight}))
    assert.is_true(nn.functional.dropout(x, 0.5, false):equal(x))
  end)

  it("are refused where they would be ignored", function()
    local net = nn.Linear(2, 2)
    local opt = optim.SGD(net:parameters(), {lr = 0.1})
    net(tycho.ones(1, 2)):sum():backward()
    fails("zero_grad: unknown option 'foo'", opt.zero_grad, opt, {foo = 1})
    fails("zero_grad: unknown option 'foo'", net.zero_grad, net, {foo = 1})
    opt:zero_grad {set_to_none = false}
    assert.equal(0, net.weight.grad:abs():sum():item())
    net:zero_grad()
    assert.is_nil(net.weight.grad)
    fails("state_dict: unknown option 'foo'", net.state_dict, net, {foo = 1})
    fails("train: argument 1 must be true or false, got 'no'", net.train, net, "no")
    assert.equal("pre.weight", (net:named_parameters("pre")()))
    assert.is_false(nn.Parameter(tycho.zeros(2), {requires_grad = false}).requires_grad)
    fails("Parameter: unknown option 'grad'", nn.Parameter, tycho.zeros(2), {grad = true})
  end)

  it("arguments have PyTorch's names too", function()
    local x = tycho.range(1, 6):view(2, 3)
    helper.close(x:tril({diagonal = -1}), x:tril(-1))
    helper.close(tycho.full({2}, {fill_value = 3}), tycho.full({2}, 3))
    helper.close(x:roll({shifts = 1, dims = 2}), x:roll(1, 2))
    helper.close(tycho.add(x, {other = x}), x * 2)
    helper.close(tycho.sum({input = x, dim = 1}), x:sum(1))
    helper.close(tycho.group_norm(x:view(1, 6), {num_groups = 2}), tycho.group_norm(x:view(1, 6), 2))
    fails("given twice", x.tril, x, 1, {diagonal = 1})
    helper.close(F.layer_norm(x, {3}, nil, nil, 0.1), F.layer_norm(x, {3}, {eps = 0.1}))
    helper.close(F.pad(x:view(1, 2, 3), {1, 1}, "replicate"), F.pad(x:view(1, 2, 3), {1, 1}, {mode = "replicate"}))
    helper.close((x:topk(2, 2, false)), (x:topk(2, 2, {largest = false})))
    assert.equal(4, tycho.data.WeightedRandomSampler({1, 2}, {num_samples = 4}).n)
    assert.is_false(tycho.data.WeightedRandomSampler({1, 2}, 2, false).replacement)
    assert.is_truthy(nn.Linear(1, 1):load_state_dict({}, false))
    assert.same({3, 2}, {unpack(x.T.shape)})
    assert.same({4, 3, 2}, {unpack(tycho.ones(4, 2, 3).mT.shape)})
    assert.equal("4x3x2 3x2", ("%s %s"):format(tycho.ones(4, 2, 3).mH.shape, tycho.ones(2, 3).H.shape))
  end)

  it("take PyTorch's places, and say what a class needs", function()
    local a = tycho.tensor({1, 2}, {requires_grad = true})
    close(tycho.grad(a * a, a, tycho.tensor {1, 10}), tycho.tensor {2, 40})
    assert.is_true(a:allclose(a + 0.1, 0, 0.2))
    assert.is_false(a:allclose(a + 0.1, 0, 0.05))
    assert.same({{1, 2}, {3, 4.5}}, tycho.tensor({{a[1], tycho.tensor(2)}, {tycho.tensor(3), 4.5}}):totable())
    fails("Sequential: a module is needed, got the class ReLU; make a module with ReLU()", nn.Sequential, nn.Linear(2, 2), nn.ReLU)
  end)

  it("knows devices and dtypes by what PyTorch calls them", function()
    assert.equal("cpu", tycho.device "cpu")
    assert.equal("cuda:1", tycho.device("cuda", 1))
    fails("device: argument 1 must be", tycho.device, "gpu")
    assert.equal("int64", tycho.zeros(1, {dtype = tycho.int64}).dtype)
    fails("'long' is not a dtype; did you mean 'int64'?", tycho.zeros, 1, {dtype = "long"})
    fails("CrossEntropyLoss: unknown option 'label_smothing'; did you mean 'label_smoothing'?", nn.CrossEntropyLoss, {label_smothing = 0.1})
    fails("MSELoss: reduction must be one of none,mean,sum, got 'avg'", nn.MSELoss, {reduction = "avg"})
    assert.equal(65504, tycho.finfo("float16").max)
    assert.equal(2 ^ -23, tycho.finfo().eps)
    assert.equal(2 ^ 31 - 1, tycho.iinfo("int32").max)
  end)
end)

describe("users' functions", function()
  it("take PyTorch's names of arguments", function()
    local x = tycho.randn(2, 3, 4)
    assert.equal("3x4x2", tostring(x:movedim {source = {1, 3}, destination = {-1, 2}}.shape))
    assert.equal("4x2x3", tostring(x:movedim({3, 1}, {1, 2}).shape))
    close(x:unflatten {dim = 3, sizes = {2, 2}}, x:reshape(2, 3, 2, 2))
    close(tycho.zeros(3, 2):scatter_(2, tycho.ones(3, 1, {dtype = "int64"}), {value = 1}), tycho.tensor {{1, 0}, {1, 0}, {1, 0}})
    close(tycho.isin(tycho.tensor {1, 2}, tycho.tensor {2}, {invert = true}), tycho.tensor {true, false})
    close(tycho.diff(tycho.tensor {1, 3, 6}, {prepend = tycho.tensor {0}, append = tycho.tensor {10}}), tycho.tensor {1, 2, 3, 4})
    close(tycho.tensor({3, 4}):norm("fro"), tycho.tensor(5))
    local rows, columns = tycho.where(tycho.tensor {{0, 1}, {1, 0}})
    assert.same({{1, 2}, {2, 1}}, {rows:tolist(), columns:tolist()})
    for _, named in ipairs {{condition = tycho.tensor {true, false}, x = 1, y = 2},
        {condition = tycho.tensor {true, false}, input = 1, other = 2}} do
      assert.same({1, 2}, tycho.where(named):totable())
    end
    assert.same({2, 3}, (tycho.tensor({0, 5, 7}):nonzero {as_tuple = true}):totable())
  end)

  it("name the function that was called, and the place once", function()
    fails("nll_loss: label 0 is not one of 3 classes",
      function() F.nll_loss(tycho.randn(2, 3, cpu), tycho.tensor({0, 1}, {dtype = "int64", device = "cpu"})) end)
    fails("linalg.inv: the matrix is singular", tycho.linalg.inv, tycho.ones(2, 2))
    local ok, e = pcall(function()
      local x = tycho.ones(3, {requires_grad = true})
      local y = x:exp()
      y:add_(1)
      y:sum():backward()
    end)
    assert.is_false(ok)
    assert.equal(1, select(2, e:gsub("arguments_spec.lua:%d+:", "")))
    assert.equal(1, select(2, tostring(select(2, pcall(function() nn.Linear(1, 1):to("gpu") end))):gsub("arguments_spec.lua:%d+:", "")))
    fails("joins strings, not a string with a tensor", function() return "loss " .. tycho.ones(1) end)
  end)

  it("say once that a loss spreads its operands #cpu", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local file = io.popen(
      [[luajit -e 'local t = require "tycho" for _ = 1, 2 do t.nn.functional.mse_loss(t.ones(4, 1), t.ones(4)) end' 2>&1]])
    local text = file:read "*a"
    file:close()
    assert.equal("(command line):1: mse_loss: shapes 4x1 and 4 differ and are broadcast; is that intended?\n", text)
  end)
end)

describe("users' layers", function()
  it("say that they are called with a colon, and that positions begin at 1", function()
    local net = nn.Sequential(nn.Linear(2, 2))
    local opt = optim.SGD(net:parameters(), {lr = 1})
    fails("parameters: call it with a colon: net:parameters(...)", function() net.parameters() end)
    fails("to: call it with a colon", function() net.to("cpu") end)
    fails("step: call it with a colon: opt:step(...)", function() opt.step() end)
    fails("step: call it with a colon", function() optim.lr_scheduler.StepLR(opt, 1).step() end)
    fails("a method is called with a colon", function() tycho.ones(1).backward() end)
    fails("Sequential: position 0", function() return net[0] end)
    fails("{ {1, 2} }", function() return net[{1, 2}] end)
  end)
end)

describe("users' names", function()
  it("that there aren't are told, with the nearest", function()
    for name, fn in pairs {Adagrd = function() return optim.Adagrd end,
        MNISTT = function() return tycho.data.datasets.MNISTT end, is_availble = function() return tycho.cuda.is_availble end,
      xavier_unifrom_ = function() return nn.init.xavier_unifrom_ end,
      StepLr = function() return optim.lr_scheduler.StepLr end,
      RandomCorp = function() return tycho.data.transforms.RandomCorp end} do
      fails("has no '" .. name .. "'; did you mean '", fn)
    end
  end)

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

describe("users' errors", function()
  it("name the user's line, however deep in the library they arise", function()
    for k, fn in ipairs {
      function() local x = tycho.tensor {{1, 2}, {3}} return x end,
      function() local x = tycho.ones(2):backward() return x end,
      function()
        local x = tycho.cross_entropy(tycho.randn(2, 3),
          tycho.tensor({0, 1}, {dtype = "int64", device = "cpu"}):to(helper.device))
        return x
      end,
      function() local x = nn.Sequential(nn.Linear(3, 4))(tycho.ones(2, 5)) return x end,
      function() local x = nn.Linear(-1, 1) return x end} do
      if helper.device == "cpu" or k ~= 3 then
        local _, e = pcall(fn)
        assert.truthy(e:find "^spec/users_arguments_spec.lua:%d+: %l" or e:find "^spec/users_arguments_spec.lua:%d+: Linear", e)
        assert.is_nil(e:find("tycho/", 1, true), e)
      end
    end
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

  it("an FFI integer as a size is named", function()
    for _, f in ipairs {function() return tycho.ones(4):view(2LL, 2LL) end, function() return tycho.randn(3LL, 4LL) end,
        function() return tycho.ones(4):reshape(2, 2LL) end} do
      fails("convert an FFI integer with tonumber(v)", f)
    end
    local ok, e = pcall(tycho.neg, require("ffi").new("double", 2))
    assert.is_false(ok)
    assert.is_nil(e:find "tonumber")
  end)
end)

describe("users' options", function()
  local data = tycho.data
  local L, set = optim.lr_scheduler, data.TensorDataset(tycho.ones(4, 2))
  local function sgd() return optim.SGD({nn.Parameter(tycho.ones(2))}, {lr = 0.1, momentum = 0.9}) end
  local function x() return tycho.ones(2, 3) end

  it("are of the kind of their defaults", function()
    fails("RandomSampler: replacement must be true or false, got 'no'", data.RandomSampler, 4, {replacement = "no"})
    fails("DistributedSampler: shuffle must be true or false, got 0", data.DistributedSampler, 4, {num_replicas = 2, rank = 0, shuffle = 0})
    fails("RandomSampler: seed must be a whole number from 0, got 'x'", data.RandomSampler, 4, {seed = "x"})
    fails("load_state_dict: strict must be true or false, got 'no'", nn.ReLU().load_state_dict, nn.ReLU(), {}, {strict = "no"})
    fails("register_buffer: persistent must be true or false, got 0", nn.ReLU().register_buffer, nn.ReLU(), "b", x(), {persistent = 0})
    fails("backward: retain_graph must be true or false, got 'no'", function()
      x():requires_grad_():sum():backward({retain_graph = "no"})
    end)
    fails("Normal: validate_args must be true or false, got 'x'", tycho.distributions.Normal, 0, 1, {validate_args = "x"})
    fails("MixedPrecisionPolicy: param_dtype must be a floating dtype, got 'zzz'",
      tycho.distributed.fsdp.MixedPrecisionPolicy, {param_dtype = "zzz"})
    fails("fill_diagonal_: wrap must be true or false, got 'no'", function() x():fill_diagonal_(1, "no") end)
    fails("make_grid: value_range must be a list of two numbers, got 5", tycho.utils.make_grid, tycho.ones(1, 3, 2, 2),
      {normalize = true, value_range = 5})
    fails("state_dict: prefix must be a string, got a table", nn.ReLU().state_dict, nn.ReLU(), {prefix = {}})
  end)

  it("of schedules are checked where these are made", function()
    fails("CyclicLR: step_size_down must be a number above 0, got -2", L.CyclicLR, sgd(), 0.1, 1, {step_size_down = -2})
    fails("CyclicLR: base_momentum must be a number from 0, got 'x'", L.CyclicLR, sgd(), 0.1, 1, {base_momentum = "x"})
    fails("OneCycleLR: epochs must be a whole number from 1, got 'x'", L.OneCycleLR, sgd(), 0.1, {epochs = "x", steps_per_epoch = 5})
    fails("OneCycleLR: div_factor must be a number above 0, got 0", L.OneCycleLR, sgd(), 0.1, {total_steps = 10, div_factor = 0})
    fails("ReduceLROnPlateau: patience must be a number from 0, got -1", L.ReduceLROnPlateau, sgd(), {patience = -1})
    fails("LinearLR: total_iters must be a number from 0, got -3", L.LinearLR, sgd(), {total_iters = -3})
    local opt = sgd()
    local s = L.ConstantLR(opt, {factor = 0, total_iters = 2})
    opt:step()
    for _ = 1, 3 do s:step() end
    assert.equal(0.1, opt.param_groups[1].lr)
  end)

  it("that there aren't are refused", function()
    local loader = data.DataLoader(set, {batch_size = 2})
    fails("Prefetcher: unknown option 'zzz'; there are no options", data.Prefetcher, loader, "cpu", {zzz = 1})
    fails("checkpoint: unknown option 'use_reentrnt'; did you mean 'use_reentrant'?", tycho.utils.checkpoint, function(v) return v end,
      x(), {use_reentrnt = false})
    fails("update_bn: unknown option 'devicq'", optim.swa_utils.update_bn, {}, nn.ReLU(), {devicq = "cpu"})
    fails("save_npy: unknown option 'zzz'", tycho.save_npy, "x.npy", x(), {zzz = 1})
    fails("fill_diagonal_: unknown option 'wrp'; did you mean 'wrap'?", function() x():fill_diagonal_(1, {wrp = true}) end)
    fails("geometric_: unknown option 'q'", function() x():geometric_(0.5, {q = 1}) end)
    fails("size: unknown option 'dimq'; the only option is dim", function() x():size({dimq = 1}) end)
    fails("requires_grad_: unknown option 'on'", function() x():requires_grad_({on = true}) end)
  end)

  it("name arguments that may stand by place", function()
    local y = x()
    assert.same({3, 1, true}, {y:size({dim = 2}), y:stride({dim = 2}), y:is_contiguous({memory_format = "contiguous"})})
    assert.is_false(y:requires_grad_({requires_grad = false}).requires_grad)
    y:random_({low = 2, high = 2})
    assert.equal(2, y[{1, 1}])
    y:log_normal_({mean = 0, std = 1e-6})
    assert.near(1, y[{1, 1}], 1e-4)
    y:fill_diagonal_({value = 5})
    assert.equal(5, y[{2, 2}])
    local n = 0
    for i, column in y:iter({dim = 2}) do n = n + i * #column end
    assert.equal(12, n)
    local net = nn.Linear(2, 2)
    assert.is_false(net:train({mode = false}).training)
    assert.equal(2, sgd():step({closure = function() return 2 end}))
    nn.utils.parametrizations.weight_norm(net)
    assert.is_true(nn.utils.parametrize.is_parametrized(net, {name = "weight"}))
  end)
end)

describe("users who call a class's methods", function()
  it("are told to make a module", function()
    for name, fn in pairs {train = function() nn.Linear:train() end, children = function() nn.Linear:children() end,
        clone = function() nn.Linear:clone() end, compile = function() nn.Linear:compile() end,
        buffer = function() nn.Linear:register_buffer("a", tycho.ones(1)) end,
        hook = function() nn.Linear:register_forward_hook(print) end} do
      local ok, err = pcall(fn)
      assert.is_truthy(not ok and err:find("Linear is a class: make a module with Linear(...)", 1, true), name .. ": " .. tostring(err))
    end
  end)
end)

describe("users' arguments by place", function()
  it("stand where PyTorch has them", function()
    local data, T = tycho.data, tycho.data.transforms
    local function p() return {nn.Parameter(tycho.ones(2))} end
    local x = tycho.rand(1, 9, 9, cpu)
    local function same(a, b)
      tycho.manual_seed(1)
      local want = a(x)
      tycho.manual_seed(1)
      helper.exact(b(x), want)
    end
    same(T.Pad(2, {fill = 0.5, padding_mode = "constant"}), T.Pad(2, 0.5, "constant"))
    same(T.RandomAffine(30, {translate = {0.1, 0.2}, scale = {0.8, 1.2}}), T.RandomAffine(30, {0.1, 0.2}, {0.8, 1.2}))
    same(T.Resize(5, {interpolation = "nearest"}), T.Resize(5, "nearest"))
    assert.equal("max", nn.EmbeddingBag(5, 3, nil, 2, false, "max").mode)
    assert.is_true(nn.MultiheadAttention(8, 2, 0, true, false, false, 4, 4, true).batch_first)
    assert.is_true(optim.RAdam(p(), 0.1, {0.9, 0.99}, 1e-8, 0.1, true).param_groups[1].decoupled_weight_decay)
    assert.same({3, 2}, {data.SequentialSampler({1, 2, 3}):size(), data.RandomSampler(tycho.ones(2, 4)):size()})
    assert.same({7, 2}, {data.RandomSampler(5, true, 7):size(), data.DistributedSampler(6, 3, 0):size()})
    local box, target = tycho.tensor {{0, 0, 1, 1}}, tycho.tensor {{0, 0, 1, 2}}
    assert.near(0.5, tycho.vision.ops.generalized_box_iou_loss(box, target, "mean"):item(), 1e-6)
    assert.equal(2, #nn.utils.rnn.unpad_sequence(tycho.ones(2, 3), {1, 2}, true)[2])
    helper.exact(T.functional.rotate(x, 90), T.functional.rotate(x, {angle = 90}))
  end)
end)
