-- What PyTorch users write: arguments by position or by name, options that are checked, values that PyTorch refuses.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, fails = tycho.nn, tycho.optim, helper.fails

describe("arguments", function()
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
    assert.truthy(e:find("habits_spec.lua:%d+: Linear"), e)                   -- the user's line
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
end)

describe("errors", function()
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
        assert.truthy(e:find "^spec/habits_spec.lua:%d+: %l" or e:find "^spec/habits_spec.lua:%d+: Linear", e)
        assert.is_nil(e:find("tycho/", 1, true), e)
      end
    end
  end)
end)

describe("tensors", function()
  it("have PyTorch's smaller things too", function()
    local x = tycho.ones(2, 3, {requires_grad = true})
    assert.equal(2, x.ndim)
    assert.equal(helper.device ~= "cpu", x.is_cuda)
    local y = x * 2
    y:retain_grad()
    y:square():sum():backward()
    assert.same({{4, 4, 4}, {4, 4, 4}}, y.grad:totable())
    fails("retain_grad: the tensor doesn't require grad", function() tycho.ones(1):retain_grad() end)
    tycho.set_grad_enabled(false)
    local ok = pcall(function() assert(not (x * 2).requires_grad) end)
    tycho.set_grad_enabled(true)
    assert.is_true(ok and (x * 2).requires_grad)
    assert.is_false(tycho.inference_mode(function() return (x * 2).requires_grad end))
  end)
end)

describe("names", function()
  it("that there aren't are told, with the nearest", function()
    for name, fn in pairs {Adagrd = function() return optim.Adagrd end,
        MNISTT = function() return tycho.data.datasets.MNISTT end, is_availble = function() return tycho.cuda.is_availble end,
      xavier_unifrom_ = function() return nn.init.xavier_unifrom_ end,
      StepLr = function() return optim.lr_scheduler.StepLr end,
      RandomCorp = function() return tycho.data.transforms.RandomCorp end} do
      fails("has no '" .. name .. "'; did you mean '", fn)
    end
  end)

  it("progress takes what pairs and ipairs give", function()
    local real, out = io.stderr, {}
    io.stderr = {write = function() end, flush = function() end} -- luacheck: ignore 122
    local ok, e = pcall(function()
      for i, v in tycho.utils.progress(ipairs {4, 5}) do out[#out + 1] = i * v end
      for k, v in tycho.utils.progress(pairs {a = 1}) do out[#out + 1] = k .. v end
      for k in tycho.utils.progress(("a b"):gmatch "%a", {desc = "x"}) do out[#out + 1] = k end
    end)
    io.stderr = real -- luacheck: ignore 122
    assert.is_true(ok, e)
    assert.same({4, 10, "a1", "a", "b"}, out)
  end)
end)

describe("clip_grad_norm_", function()
  it("takes other norms, and refuses what isn't finite where that is asked for", function()
    local p, q = nn.Parameter(tycho.zeros(2)), nn.Parameter(tycho.zeros(1))
    local function norm(...)
      p.grad, q.grad = tycho.tensor {3, -4}, tycho.tensor {12}
      return nn.utils.clip_grad_norm_({p, q}, ...):item()
    end
    assert.equal(13, norm(1))
    assert.equal(12, norm(1, {norm_type = math.huge}))
    helper.close(q.grad, tycho.tensor {1}, "clipped", 1e-5)
    assert.equal(19, norm(1, 1))
    assert.is_true(math.abs(norm(100, {norm_type = 3}) - (27 + 64 + 1728) ^ (1 / 3)) < 1e-4)
    assert.equal(-4, p.grad[2])
    fails("clip_grad_norm_: unknown option 'foo'", norm, 1, {foo = 1})
    fails("norm_type must be above 0", norm, 1, 0)
    p.grad = tycho.tensor {0 / 0, 1}
    fails("the norm of the gradients is", nn.utils.clip_grad_norm_, {p}, 1, {error_if_nonfinite = true})
    assert.equal(1, p.grad[2])
  end)
end)

describe("recurrent layers", function()
  it("want both states or none", function()
    local lstm, cell, x = nn.LSTM(2, 3), nn.LSTMCell(2, 3), tycho.randn(4, 1, 2)
    local y, h, c = lstm(x)
    fails("LSTM: give both states, as h, c or {h, c}, or neither", lstm, x, h)
    fails("LSTMCell: give both states", cell, x[1], h[1])
    local a, b = lstm(x, h, c), lstm(x, {h, c})
    assert.is_true(a:equal(b))
    assert.is_false(a:equal(y))
  end)
end)

describe("transformers", function()
  it("take a norm by name, and masks as PyTorch calls them", function()
    local one, x = nn.TransformerEncoderLayer(4, 2, 8, 0), tycho.randn(5, 2, 4)
    local a, b = nn.TransformerEncoder(one, 2, {norm = nn.LayerNorm(4)}), nn.TransformerEncoder(one, 2, nn.LayerNorm(4))
    assert.equal(#a:parameters(), 2 * #one:parameters() + 2)
    assert.is_true(a(x):equal(b(x)))
    local mask = tycho.ones(5, 5, {dtype = "bool"}):triu(1)
    assert.is_true(a(x, mask):equal(a(x, {mask = mask})))
    assert.is_true(a(x, mask):equal(a(x, {src_mask = mask})))
    assert.is_false(a(x, mask):equal(a(x)))
    fails("TransformerEncoder: unknown option 'nrm'; did you mean 'norm'?", nn.TransformerEncoder, one, 2, {nrm = 1})
  end)
end)

describe("values", function()
  it("that PyTorch refuses are refused", function()
    fails("256 is out of range for uint8", tycho.tensor, {256}, {dtype = "uint8"})
    fails("out of range for int64", tycho.tensor, {2 ^ 63}, {dtype = "int64"})
    fails("out of range for int32", tycho.tensor, {0 / 0}, {dtype = "int32"})
    fails("full: argument 2 (value) 300 is out of range for uint8", tycho.full, {1}, 300, {dtype = "uint8"})
    assert.equal(255, tycho.tensor({-1}, {dtype = "uint8"})[1])
    local i, b = tycho.tensor({2, 3}, {dtype = "int64"}), tycho.tensor {true, false}
    fails("pow: argument 2 is -1; whole numbers (int64) have no negative powers", function() return i ^ -1 end)
    fails("sub: bool operands can't be subtracted", function() return b - b end)
    fails("neg: bool operands can't be", function() return -b end)
    assert.same({0, -1}, (b - 1):totable())
  end)

  it("print as they are beyond 2^53", function()
    local x = tycho.tensor({2 ^ 53, -2 ^ 60, 7}, {dtype = "int64"}) + 1
    assert.equal("[ 9007199254740993, -1152921504606846975, 8]", (tostring(x):match "^[^\n]*":gsub("  +", " ")))
    assert.equal("[]", tostring(tycho.zeros(2, 0)):match "^[^\n]*")
    assert.equal("[1.0000e+00, 5.0000e+03]", tostring(tycho.tensor {1, 5000}):match "^[^\n]*")
  end)

  it("of FFI arrays are what their type says", function()
    local ffi = require "ffi"
    pcall(ffi.cdef, "void *malloc(size_t);")
    local d, i, f = ffi.new("double[3]", {1, 2, 3}), ffi.new("int32_t[2]", {4, 5}), ffi.new("float[2][2]", {{1, 2}, {3, 4}})
    assert.same({1, 2, 3}, tycho.from_ffi(d, {3}):totable())
    assert.equal("float64", tycho.from_ffi(d, {3}).dtype)
    assert.same({4, 5}, tycho.from_ffi(i, {2}):totable())
    assert.same({{1, 2}, {3, 4}}, tycho.from_ffi(f, {2, 2}):totable())
    assert.same({1, 2}, tycho.from_ffi(ffi.cast("void *", f), {2}):totable())
    fails("the array has 16 bytes, a tensor of shape 300 in float32 needs 1200", tycho.from_ffi, f, {300})
    fails("elements of type 'double' can't be read as float32", tycho.from_ffi, d, {3}, {dtype = "float32"})
    assert.same({{1, 2}, {3, 4}}, tycho.from_ffi(ffi.cast("float (*)[2]", f), {2, 2}):totable())
    assert.same({1, 2}, tycho.from_ffi(ffi.cast("uint8_t *", f), {2}, {dtype = "float32"}):totable())
    assert.same({7, 8}, tycho.from_ffi(ffi.new("uint64_t[2]", {7, 8}), {2}, {dtype = "int64"}):totable())
    assert.same({1, 2, 3}, tycho.from_ffi(ffi.new("struct { float x, y, z; }[1]", {{1, 2, 3}}), {3}, {dtype = "float32"}):totable())
    assert.equal("uint8", tycho.from_ffi(ffi.new("uint8_t[2]"), {2}).dtype)
    fails("need a dtype", tycho.from_ffi, ffi.new("int8_t[2]"), {2})
    fails("elements of type 'unsigned int' need a dtype", tycho.from_ffi, ffi.new("uint32_t[2]"), {2})
    fails("elements of type 'int' can't be read as float32", tycho.from_ffi, i, {2}, {dtype = "float32"})
    fails("elements of type 'unsigned int' can't be read as int64", tycho.from_ffi, ffi.new("uint32_t[2]"), {1}, {dtype = "int64"})
    for _, cdata in ipairs {ffi.new("float *[4]"), ffi.new("float **"), ffi.new("struct { int a; }"),
        ffi.new("int64_t", 3), ffi.C.malloc} do
      fails("must be an FFI pointer or array of numbers, got", tycho.from_ffi, cdata, {1})
    end
  end)
end)

describe("PyTorch's optimizer states", function()
  local runs = tycho.load("spec/golden/files/optimizers.pt")
  for name, make in pairs {sgd = function(p) return optim.SGD(p, {lr = 0.1, momentum = 0.9}) end,
      adamw = function(p) return optim.AdamW(p, {lr = 0.01, amsgrad = true}) end,
    rmsprop = function(p) return optim.RMSprop(p, {momentum = 0.5}) end} do
    it("go on where they were: " .. name, function()
      local run, params = runs[name], {}
      for i, p in ipairs(run.params) do params[i] = nn.Parameter(p:clone()) end
      local opt = make {{params = {params[1], params[2]}}, {params = {params[3]}}}
      opt:load_state_dict(run.state)
      assert.equal(0.05, opt.param_groups[2].lr)
      for _ = 1, 3 do
        for _, p in ipairs(params) do p.grad = p:detach() * 0.3 + 0.1 end
        opt:step()
      end
      for i, p in ipairs(params) do helper.close(p:detach(), run.after[i], "parameter " .. i, 1e-6) end
      fails("load_state_dict: group 1 has 2 parameters, the optimizer's has 3",
        function() make(params):load_state_dict {state = {}, param_groups = {run.state.param_groups[1]}} end)
    end)
  end
end)

describe("restore", function()
  it("takes every optimizer's state, and models that load in a way of their own", function()
    local dir = helper.folder()
    local m = tycho.checkpoint.Manager {dir = dir}
    for k, name in ipairs {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"} do
      local function run() local net = nn.Linear(3, 2) return net, optim[name](net:parameters(), {lr = 0.1}) end
      local net, opt = run()
      local function step(n, o) o:step(function()
        o:zero_grad()
        local loss = n(tycho.ones(4, 3)):square():sum()
        loss:backward()
        return loss
      end) end
      step(net, opt)
      opt.param_groups[1].name = "decay"
      m:save(k, {model = net, optimizer = opt})
      m:wait()
      local net2, opt2 = run()
      m:restore_latest {model = net2, optimizer = opt2}
      assert.equal("decay", opt2.param_groups[1].name)
      step(net, opt)
      step(net2, opt2)
      helper.close(net2.weight:detach(), net.weight:detach(), name, 1e-6)
    end
    local Net = nn.Module:extend "Net"
    function Net:init()
      nn.Module.init(self)
      self.a = nn.Linear(2, 2)
    end
    function Net:load_state_dict(s) return nn.Module.load_state_dict(self, s, {strict = false}) end
    m:save(9, {model = nn.ModuleDict {a = nn.Linear(2, 2), b = nn.Linear(2, 2)}})
    m:wait()
    assert.equal(9, (m:restore_latest {model = Net()}))
    os.execute("rm -rf " .. dir)
  end)

  it("gives schedulers back what they had where another member errs", function()
    local dir = helper.folder()
    local m, net = tycho.checkpoint.Manager {dir = dir}, nn.Linear(2, 2)
    local function schedule(n)
      local opt, list, at = optim.SGD(net:parameters(), {lr = 1}), {}, {}
      for i = 1, n do list[i] = optim.lr_scheduler.ConstantLR(opt) end
      for i = 1, n - 1 do at[i] = i end
      return optim.lr_scheduler.SequentialLR(opt, list, at)
    end
    m:save(1, {model = net, sched = schedule(2)})
    m:wait()
    local other, three = nn.Linear(2, 2), schedule(3)
    local w = other.weight:clone()
    fails("restore: 'sched' of", m.restore_latest, m, {model = other, sched = three})
    assert.is_true(w:equal(other.weight))
    local own = {state_dict = function() return other:state_dict() end,
      load_state_dict = function(_, s) return other:load_state_dict(s) end}
    fails("restore: 'sched' of", m.restore_latest, m, {model = own, sched = three})      -- which is loaded first
    assert.is_true(w:equal(other.weight))
    os.execute("rm -rf " .. dir)
  end)

  it("changes nothing where one member's state doesn't fit", function()
    local dir = helper.folder()
    local m = tycho.checkpoint.Manager {dir = dir}
    m:save(1, {a = nn.Linear(2, 2), b = nn.Linear(2, 2), t = tycho.ones(3)})
    m:wait()
    for _, other in ipairs {{b = nn.Linear(3, 3)}, {b = optim.SGD(nn.Linear(2, 2):parameters())}, {t = tycho.ones(4)}} do
      local a = nn.Linear(2, 2)
      local w = a.weight:clone()
      other.a = a
      local ok = pcall(m.restore_latest, m, other)
      assert.is_false(ok)
      assert.is_true(w:equal(a.weight))
    end
    os.execute("rm -rf " .. dir)
  end)
end)

describe("habits", function()
  it("checkpointed functions take and give tensors in tables", function()
    local l = nn.Linear(3, 3)
    local x, w = tycho.randn(2, 3, {requires_grad = true}), tycho.randn(2, 3, {requires_grad = true})
    local function f(t, k)
      local h = l(t.x):tanh() * t.list[1]
      return {h, {y = h * 2 + k}, "text", 5}, h:sum()
    end
    local function gradients(run)
      l:zero_grad()
      x.grad, w.grad = nil, nil
      local r, s = run({x = x, list = {w}, name = "n"}, 3)
      assert.same({"text", 5}, {r[3], r[4]})
      local loss = (r[1] * r[2].y):sum() + s
      loss:backward()
      return {x.grad, w.grad, l.weight.grad, l.bias.grad}
    end
    local want = gradients(f)
    for i, g in ipairs(gradients(function(...) return tycho.utils.checkpoint(f, ...) end)) do
      helper.close(g, want[i], "gradient " .. i, 0)
    end
  end)

  it("sequences of schedules go on where they stood", function()
    local function make()
      local opt = tycho.optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = 0.1})
      local S = tycho.optim.lr_scheduler
      return opt,
        S.SequentialLR(opt, {S.LinearLR(opt, {start_factor = 0.1, total_iters = 10}), S.CosineAnnealingLR(opt, {T_max = 90})},
        {milestones = {10}})
    end
    for _, stop in ipairs {0, 4, 9, 10, 30} do
      local opt, s = make()
      for _ = 1, stop do s:step() end
      local opt2, s2 = make()
      opt2:load_state_dict(opt:state_dict())
      s2:load_state_dict(s:state_dict())
      for k = 1, 20 do
        assert.equal(opt.param_groups[1].lr, opt2.param_groups[1].lr, ("stopped at %d, then step %d"):format(stop, k - 1))
        s:step()
        s2:step()
      end
    end
    local opt = tycho.optim.SGD({nn.Parameter(tycho.ones(1))}, {lr = 0.1})
    local w = tycho.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, {T_0 = 10})
    w:step(2.5)
    assert.is_true(math.abs(opt.param_groups[1].lr - 0.08535533905932738) < 1e-15)     -- PyTorch's
    w:step(12.5)
    assert.is_true(math.abs(opt.param_groups[1].lr - 0.08535533905932738) < 1e-15)
  end)

  it("shapes count from the end, modules may hold each other, numbers that a dtype can't hold are refused", function()
    local x = tycho.zeros(2, 3, 5)
    assert.same({5, 3, 2}, {x.shape[-1], x.shape[-2], x.shape[-3]})
    assert.is_nil(x.shape[-4])
    assert.is_nil(x.shape[4])
    local a, b = nn.Linear(2, 2), nn.Linear(2, 3)
    a.b, b.a = b, a
    assert.equal(4, #a:parameters())
    local names = {}
    for name in a:named_parameters() do names[#names + 1] = name end
    assert.same({"weight", "bias", "b.weight", "b.bias"}, names)
    assert.is_truthy(tostring(a):find("(a): Linear(...)", 1, true))
    a:train()
    local n = tycho.zeros(2):long()
    fails("fill: argument 2 (value) is NaN, which int64 can't hold", function() n:fill_(0 / 0) end)
    fails("(src) 1e+30 is out of range for int64", function() n[1] = 1e30 end)
    fails("masked_fill: argument 3 (value) 10000000000 is out of range for int32",
      function() return tycho.zeros(2):int():masked_fill(tycho.ones(2):bool(), 1e10) end)
    assert.same({0, 0}, n:totable())
  end)

  it("tensor({}) is where lists begin to grow", function()
    local a, b = tycho.randn(2, 3, {requires_grad = true}), tycho.randn(2, 3, {requires_grad = true})
    local empty = tycho.zeros(0, {requires_grad = true})
    for dim = 1, 2 do
      for _, list in ipairs {{empty, a, b}, {a, empty, b}, {empty, empty, a, b}, {a, b, empty}} do
        a.grad, b.grad, empty.grad = nil, nil, nil
        local y = tycho.cat(list, dim)
        helper.close(y, tycho.cat({a, b}, dim), "cat", 0)
        local w = tycho.range(1, 12):view(y.shape)
        local loss = (y * w):sum()
        loss:backward()
        helper.close(tycho.cat({a.grad, b.grad}, dim), w, "gradient", 0)
        assert.equal("0", tostring(empty.grad.shape))
      end
    end
    assert.equal("0", tostring(tycho.cat({tycho.zeros(0), tycho.zeros(0)}, 1).shape))
    fails("tensor 3 has shape 2; apart from dim 1 it must match tensor 2 of shape 2x3", tycho.cat, {empty, a, tycho.ones(2)}, 1)
  end)

  it("sequences are padded to one length, and cut again", function()
    local pad, unpad = nn.utils.rnn.pad_sequence, nn.utils.rnn.unpad_sequence
    local list = {tycho.randn(4, 2), tycho.randn(1, 2), tycho.randn(3, 2)}
    local x = pad(list)
    assert.equal("4x3x2", tostring(x.shape))
    for i, y in ipairs(unpad(x, {4, 1, 3})) do helper.close(y, list[i], "item", 0) end
    local left = pad(list, {batch_first = true, padding_value = -1, padding_side = "left"})
    helper.close(left[2], tycho.cat({tycho.full({3, 2}, -1), list[2]}, 1), "left", 0)
    for i, y in ipairs(unpad(pad(list, {batch_first = true}), tycho.tensor({4, 1, 3}, {dtype = "int64"}),
        {batch_first = true})) do
      helper.close(y, list[i], "item", 0)
    end
    fails("pad_sequence: argument 1 must be a list of tensors", pad, {})
    fails("pad_sequence: item 2 must be a tensor of at least 1 dim, got number", pad, {tycho.ones(1), 3})
  end)

  it("embeddings are made of vectors that are there", function()
    local w = tycho.randn(5, 3)
    local e, tuned = nn.Embedding.from_pretrained(w), nn.Embedding.from_pretrained(w:clone(), {freeze = false, padding_idx = 2})
    local ids = tycho.tensor({{1, 5}, {2, 2}}, {dtype = "int64"})
    helper.close(e(ids), w:index_select(1, ids:view(-1)):view(2, 2, 3), "vectors", 0)
    assert.is_false(e.weight.requires_grad)
    local loss = tuned(ids):sum()
    loss:backward()
    assert.same({1, 0, 0, 0, 1}, tuned.weight.grad:select(2, 1):totable())
    fails("Embedding.from_pretrained: argument 1 must be a tensor of 2 dims, got shape 3", nn.Embedding.from_pretrained, tycho.ones(3))
  end)

  it("a progress bar's values may be tensors, which are read when they are shown", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local folder = helper.folder()
    helper.write_file(folder .. "/run.lua", [[
      local tycho = require "tycho"
      local bar = tycho.utils.progress(tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 3))))
      for x in bar do bar:set{loss = x:sum() / 4, grid = tycho.ones(2, 2)} end]])
    os.execute(("luajit %s/run.lua 2>%s/said"):format(folder, folder))
    local said = helper.read_file(folder .. "/said")
    assert.truthy(said:find "loss 0.75  grid of shape 2x2" or said:find "grid of shape 2x2  loss 0.75", said)
    os.execute("rm -r " .. folder)
  end)
end)
