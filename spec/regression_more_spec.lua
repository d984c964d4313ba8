-- Bugs that were, continued; values are PyTorch's.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim = tycho.nn, tycho.nn.functional, tycho.optim
local T = tycho.tensor
local i64, f64 = {dtype = "int64"}, {dtype = "float64"}
local inf, nan = math.huge, 0 / 0
local cpu = {device = "cpu"}                     -- where what is in a tensor is looked at at once

describe("regressions", function()
  local function is(want, got, tolerance) helper.close(got, T(want, {dtype = got.dtype}), nil, tolerance) end

  it("ops outlive the operands that finalizers free", function()
    local right, wrong = 0, 0
    for _ = 1, 200 do
      local x = tycho.ones(50)
      getmetatable(newproxy(true)).__gc = function() pcall(x.free, x) end
      for _ = 1, 20 do
        local ok, sum = pcall(function() return (x + x):sum():item() end)
        if ok and sum == 100 then right = right + 1 elseif ok then wrong = wrong + 1 end
      end
    end
    collectgarbage()
    assert.equal(0, wrong)
    assert.is_true(right > 200)
  end)

  it("numbers are searched for as they are", function()
    assert.same({3}, {tycho.searchsorted(T({1, 2, 3}, i64), 2.5):item()})
    assert.same({4}, {tycho.searchsorted(T({1, 2, 3}, i64), inf):item()})
    assert.same({3}, {tycho.searchsorted(T({1, 2}, {dtype = "uint8"}), 300):item()})
    assert.same({1, 2}, {tycho.bucketize(0.1, T({0.1, 0.2}, f64)):item(), tycho.bucketize(16777217, T({16777216, 16777218}, i64)):item()})
  end)

  it("a border that is NaN gives NaN, an infinite one floats", function()
    for _, x in ipairs {T({1, 2}):clamp(nan), T({1, 2}):clamp(nan, 5), T({1, 2}):clamp_min(nan), T({1, 2}):clamp_max(nan),
        T({1, 2}):clamp_(nil, nan)} do
      assert.is_true(x:isnan():all():item())
    end
    local x = T({1, 2}, i64):clamp_max(-inf)
    assert.equal("float32", x.dtype)
    assert.same({-inf, -inf}, x:totable())
    assert.equal("float32", T({1, 2}, i64):clamp(-inf, inf).dtype)
    assert.equal("int64", T({1, 2}, i64):clamp(0, 5).dtype)
  end)

  it("nll_loss looks at its weight", function()
    helper.fails("nll_loss: argument 3 (weight) has shape 4; it must be a vector of 3", tycho.nll_loss, tycho.zeros(2, 3), T({1, 2}, i64),
      {weight = tycho.ones(4)})
  end)

  it("a rounded quotient has gradients of 0", function()
    local x, y = T({1, 2}, {requires_grad = true}), T({0, inf}, {requires_grad = true})
    x:div(y, {rounding_mode = "trunc"}):sum():backward()
    assert.same({{0, 0}, {0, 0}}, {x.grad:totable(), y.grad:totable()})
  end)

  it("a singular matrix has an infinite condition", function()
    for _, p in ipairs {"fro", 1, inf, "nuc"} do assert.equal(inf, tycho.linalg.cond(tycho.ones(3, 3), p):item()) end
    local both = tycho.linalg.cond(tycho.stack {tycho.ones(2, 2), tycho.eye(2) * 2}, 1)
    is({inf, 1}, both)
  end)

  it("gradients in mixed dtypes have the result's digits", function()
    local e = T({1.2691917}, {requires_grad = true})
    T(0.83984375, {dtype = "bfloat16"}):pow(e):sum():backward()
    is({-0.13985786}, e.grad, 1e-6)
    local a = T({2}, {dtype = "float64", requires_grad = true})
    a:xlogy(T({3}, {dtype = "uint8"})):sum():backward()
    is({1.098612288668}, a.grad, 1e-11)
    a = T({2.3}, {dtype = "float64", requires_grad = true})
    tycho.special.xlog1py(a, T({5}, i64)):sum():backward()
    is({1.79175946922805}, a.grad, 1e-12)
    a.grad = nil
    tycho.igamma(T({3}, i64), a):sum():backward()
    is({0.26518464164682}, a.grad, 1e-12)
    a.grad = nil
    tycho.igamma(a, T({0, inf}, f64)):sum():backward()
    is({0}, a.grad)
    a = T({0.5}, {dtype = "float64", requires_grad = true})
    a:atan2(T({0.3}, {dtype = "float16"})):sum():backward()
    is({0.882420511}, a.grad, 1e-8)
  end)

  it("what names places is looked at before it is taken for some", function()
    local z = tycho.zeros(3)
    helper.fails("index_put: argument 2 (indices) must hold indices (int64), got float32", tycho.index_put, z, {T({1.7})}, 5)
    helper.fails("put: argument 2 (index) must hold indices (int64), got float32", tycho.put, z, T({1.7}), T({5}))
    assert.same({0, 5, 0}, z:put(T({2}, {dtype = "int32"}), T({5})):totable())
    assert.same({5, 0, 5}, tycho.index_put(z, {T({1, 0, 1}, {dtype = "uint8"})}, 5):totable())
    for _, at in ipairs {0, 4, -4} do
      helper.fails(("embedding_bag: padding_idx %d is out of range"):format(at), tycho.embedding_bag, T({{1, 2}}, i64), tycho.ones(3, 2),
        {padding_idx = at})
    end
    helper.fails("cosine_similarity: dim 2 is out of range", tycho.cosine_similarity, z, z)
  end)

  it("batch_norm's running mean and variance have one dtype", function()
    helper.fails("mean has dtype float32, var float64", tycho.batch_norm, tycho.ones(2, 3), tycho.zeros(3), tycho.ones(3, f64))
  end)

  it("schedules of no epochs leave the rate", function()
    for name, rate in pairs {LinearLR = 0.25, PolynomialLR = 1} do
      local opt = optim.SGD({tycho.zeros(1, {requires_grad = true})}, {lr = 1})
      local schedule = optim.lr_scheduler[name](opt, {total_iters = 0, start_factor = name == "LinearLR" and 0.25 or nil})
      for _ = 1, 3 do
        assert.equal(rate, opt.param_groups[1].lr)
        opt:step()
        schedule:step()
      end
    end
  end)

  it("optimizers take named parameters as a list, too", function()
    local list, net = {}, nn.Linear(2, 2)
    for name, p in net:named_parameters() do list[#list + 1] = {name, p} end
    for _, given in ipairs {list, {{params = list}}} do
      local opt = optim.SGD(given, {lr = 1})
      assert.is_true(opt.param_groups[1].params[1] == net.weight and opt.param_groups[1].params[2] == net.bias)
    end
  end)

  it("the power 0 of a matrix can be changed", function()
    assert.same({{{2, 1}, {1, 2}}, {{2, 1}, {1, 2}}}, tycho.matrix_power(tycho.ones(2, 2, 2), 0):add_(1):totable())
  end)

  it("linspace of whole numbers is between whole numbers", function()
    assert.same({-1, 0, 2, 3, 5, 7}, tycho.linspace(-1, 7.5, 6, {dtype = "int32"}):totable())
  end)

  it("long sums keep their digits", function()
    assert.is_true(math.abs(tycho.full({1000000}, 0.3):sum():item() / 300000.0119 - 1) < 5e-7)
    assert.is_true(tycho.full({10000}, 4321.7):var():item() < 4e-6)
  end)

  it("grid_sample of volumes reads NaN as -1, and has no gradient at the borders", function()
    local x = tycho.ones(1, 1, 2, 2, 2)
    local grid = tycho.full({1, 1, 1, 3, 3}, nan)
    for _, padding in ipairs {"border", "reflection"} do
      is({1, 1, 1}, F.grid_sample(x, grid, {padding_mode = padding, align_corners = true}):flatten())
    end
    grid:fill_(inf)
    is({0, 0, 0}, F.grid_sample(x, grid):flatten())
    local at = T({{{{{-1, 0.5, 1}}}}}, {requires_grad = true})
    F.grid_sample(tycho.randn(1, 1, 3, 3, 3), at, {padding_mode = "border", align_corners = true}):sum():backward()
    assert.same({0, 0}, {at.grad:flatten()[1], at.grad:flatten()[3]})
    assert.same({0, 1, 1, 1, 1}, {unpack(F.grid_sample(tycho.zeros(0, 1, 2, 2, 2), tycho.zeros(0, 1, 1, 1, 3)).shape)})
  end)

  it("a parametrized tensor is set only where there is a way back", function()
    local Twice = nn.Module:extend "Twice"
    function Twice:forward(x) return x * 2 end
    local l = nn.Linear(2, 2)
    nn.utils.parametrize.register_parametrization(l, "weight", Twice())
    local was = l.weight:clone()
    helper.fails("Twice has none", function() l.weight = tycho.ones(2, 2) end)
    helper.close(l.weight, was)
  end)

  it("linear_cross_entropy of probabilities takes them along the last dim", function()
    local x, w = tycho.randn(2, 6, 4), tycho.randn(5, 4)
    local p = tycho.softmax(tycho.randn(2, 6, 5), -1)
    helper.close(F.linear_cross_entropy(x, w, p), tycho.cross_entropy(tycho.linear(x, w):view(12, 5), p:view(12, 5)))
    assert.same({2, 6}, {unpack(F.linear_cross_entropy(x, w, p, {reduction = "none"}).shape)})
    helper.fails("argument 3 (target) has shape 2x5", F.linear_cross_entropy, x, w, p:select(2, 1))
  end)

  it("a convolution joined with its batch norm keeps its dtype and takes options", function()
    local conv, bn = nn.Conv2d(3, 3, 3):half():eval(), nn.BatchNorm2d(3):eval()
    assert.equal("float16", nn.utils.fuse_conv_bn_eval(conv, bn).weight.dtype)
    helper.close(nn.utils.fuse_conv_bn_eval(conv, bn, {transpose = false}).weight, nn.utils.fuse_conv_bn_eval(conv, bn).weight)
  end)

  it("optimizers' groups take named_parameters, and only what their own class knows", function()
    local net = nn.Linear(2, 2)
    local opt = optim.SGD {{params = net:named_parameters(), lr = 0.1}}
    assert.equal(2, #opt.param_groups[1].params)
    opt = optim.SGD({T({1}, {requires_grad = true})}, {lr = 0.1})
    opt:add_param_group {params = net:named_parameters()}
    assert.equal(2, #opt.param_groups[2].params)
    optim.Optimizer:extend("Labelled", {marked = 1})
    optim.SGD({{params = net:parameters(), marked = 2}}, {lr = 0.1})
    for _, clip in ipairs {nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_} do
      net(tycho.ones(1, 2)):sum():backward()
      clip({net:parameters(), {net.weight}}, 0.1)
    end
    assert.equal(6, nn.utils.parameters_to_vector {net:parameters()}:numel())
  end)

  it("a state that is assigned brings no old gradient", function()
    local net = nn.Linear(2, 2)
    net(tycho.ones(1, 2)):sum():backward()
    net:load_state_dict({weight = tycho.ones(2, 2, f64), bias = tycho.ones(2, f64)}, {assign = true})
    assert.is_nil(net.weight.grad)
    local Own = nn.Module:extend "Own"
    function Own.get_extra_state() end
    function Own.set_extra_state() error "there is none" end
    local own = Own()
    own:load_state_dict(own:state_dict())
  end)

  it("loops that begin together are epochs of their own", function()
    local l = tycho.data.DataLoader(tycho.data.TensorDataset(tycho.range(1, 64)), {shuffle = true, seed = 3, batch_size = 64})
    local a, b = l:iter(), l:iter()
    assert.is_false(a():equal(b()))
    local base = tycho.data.TensorDataset(tycho.range(1, 8))
    local half = {dataset = base, size = function() return 4 end, get = function(self, i) return self.dataset:get(i * 2) end}
    assert.equal(4, tycho.data.DataLoader(half):size())
    local named = tycho.data.DataLoader {dataset = tycho.data.TensorDataset(tycho.range(1, 4)), batch_size = 2}
    assert.equal(2, named:size())
  end)

  it("scatter adds and multiplies", function()
    local index = T({{1}, {2}}, i64)
    assert.same({{7, 0, 0}, {0, 7, 0}}, tycho.zeros(2, 3):scatter_(2, index, 7, {reduce = "add"}):totable())
    assert.same({{8, 1, 1}, {1, 9, 1}}, tycho.ones(2, 3):scatter(2, index, T {{8}, {9}}, {reduce = "multiply"}):totable())
    assert.same({{5, 1, 1}, {1, 5, 1}}, tycho.ones(2, 3):scatter_(2, index, 5):totable())
    for _, reduce in ipairs {"none", "add"} do
      helper.fails("must hold indices (int64), got float32", function() tycho.ones(3):scatter(1, T {1.7, 2}, 5, {reduce = reduce}) end)
    end
  end)

  it("arguments go by PyTorch's names", function()
    assert.same({3, 3}, {tycho.triu_indices(3, 3, {offset = 1}):size(2), tycho.tril_indices {row = 3, col = 3, offset = -1}:size(2)})
    assert.same({2, 6}, {unpack(tycho.ones(2, 3):tile(2).shape)})
    assert.same({2, 3}, {unpack(nn.utils.rnn.pad_sequence({tycho.ones(3), tycho.ones(1)}, true).shape)})
    assert.equal(2, tycho.compile(function(x) return x * 2 end, {mode = "reduce-overhead", fullgraph = true})(tycho.ones(1)):item())
    assert.equal(3, nn.EmbeddingBag.from_pretrained(tycho.ones(3, 2), {max_norm = 1}).weight.shape[1])
    local w = tycho.zeros(20, 4)
    local g = tycho.Generator(w.device):manual_seed(5)
    nn.init.sparse_(w, 0.5, {generator = g})
    assert.equal(40, w:count_nonzero():item())
  end)

  it("gradient gives a list, and says which dim is too short", function()
    assert.same({{1, 2, 3}}, {tycho.gradient(T {1, 2, 5})[1]:totable()})
    assert.same({2, 2}, tycho.gradient(T({1, 2}, i64), {spacing = 0.5})[1]:totable())
    helper.fails("gradient: dim 2 has 1 elements", tycho.gradient, tycho.ones(3, 1))
    helper.fails("gradient: the places along dim 1 must be a vector of 3", tycho.gradient, tycho.ones(3), {spacing = {T {1, 2}}})
    helper.fails("gradient: spacing has 1 items for 2 dims", tycho.gradient, tycho.ones(3, 3), {spacing = {1}})
  end)

  it("statistics and distributions refuse what has no meaning", function()
    helper.fails("cov: fweights must not be negative", tycho.cov, tycho.ones(2, 2, cpu), {fweights = T({1, -1}, i64):cpu()})
    helper.fails("cov: fweights must be whole numbers", tycho.cov, tycho.ones(2, 2), {fweights = T {1, 1}})
    helper.fails("gaussian_nll_loss: argument 3 (var) has elements below 0", F.gaussian_nll_loss, T({1}, cpu), T({1}, cpu), T({-1}, cpu))
    local D = tycho.distributions
    helper.fails("Binomial: total_count must be a whole number", D.Binomial, T(2.5, cpu), {probs = 0.5})
    assert.is_true(D.Beta(2, 3, {validate_args = false}):log_prob(1.5):isnan():item())
    assert.is_true(D.Dirichlet(tycho.ones(2)):log_prob(T({0, 1}, i64)):isfinite():item())
    local m = D.MixtureSameFamily(D.Categorical {probs = tycho.ones(1, 3)}, D.Normal(tycho.zeros(5, 3), 1))
    assert.same({7, 5}, {unpack(m:sample({7}).shape)})
  end)

  it("convolutions in bfloat16 have their gradients whatever the number of channels and the dilation #cpu", function()
    local function close(c, o, size, kernel, options)
      options = options or {groups = 1}
      local x, w = tycho.randn(2, c, unpack(size)):bfloat16(), tycho.randn(o, c, kernel, kernel):bfloat16()
      local g = tycho.randn(F.conv2d(x, w, options).shape):bfloat16()
      local function gradients(a, b)
        a, b = a:detach():requires_grad_(), b:detach():requires_grad_()
        local y = F.conv2d(a, b, options)
        return tycho.grad({y}, {a, b}, {g:to(y.dtype)})
      end
      local want = gradients(x:double(), w:double())
      for i, got in ipairs(gradients(x, w)) do helper.close(got:double(), want[i], "gradient " .. i, 0.02) end
    end
    close(4, 3, {5, 6}, 1)
    close(32, 21, {6, 10}, 1)
    close(5, 7, {1, 30}, 1)
    close(17, 16, {12, 32}, 3, {dilation = {2, 1}})
    close(33, 8, {12, 40}, 3, {dilation = 3, padding = 3})
    local x, w = tycho.randn(1, 3, 5, 6):bfloat16(), tycho.randn(3, 2, 1, 1):bfloat16()
    helper.close(tycho.conv_transpose2d(x, w):double(), tycho.conv_transpose2d(x:double(), w:double()), nil, 0.02)
  end)

  it("ctc_loss of no steps is 0 where nothing is to be spelt, else infinite", function()
    local x, labels = tycho.log_softmax(tycho.randn(3, 3, 4), -1):requires_grad_(), T({{2, 3}, {2, 3}, {2, 2}}, i64)
    local loss = F.ctc_loss(x, labels, {0, 0, 3}, {0, 2, 0}, {reduction = "none"})
    assert.same({0, inf}, {loss[1], loss[2]})
    is({-x[{{}, 3, 1}]:sum():item()}, loss[{ {3} }]:detach(), 1e-6)
    assert.equal(0, tycho.grad(loss[{ {1} }]:sum(), x):abs():sum():item())
  end)

  it("prelu's weights are as many as there are channels", function()
    helper.fails("prelu: argument 2 (weight) of shape 4 must have one element, or one for each of 1 channels", F.prelu,
      tycho.ones(2, 1, 3), tycho.ones(4))
    helper.fails("of shape 3 must have one element, or one for each of 1 channels", F.prelu, T {1, -2, 3}, T {1, 2, 3})
    helper.fails("for each of 4 channels", F.prelu, tycho.ones(1, 4, 1), tycho.ones(0))
    assert.same({0, 4, 2}, {unpack(F.prelu(tycho.ones(0, 4, 2), tycho.ones(4)).shape)})
    is({{1, -4}}, F.prelu(T {{1, -2}}, T {1, 2}))
  end)

  it("unflatten goes by the dim's own size, where others are 0 too", function()
    assert.equal("2x2x0x3", tostring(tycho.zeros(4, 0, 3):unflatten(1, {2, -1}).shape))
    assert.equal("0x3x2", tostring(tycho.zeros(0, 6):unflatten(2, {3, -1}).shape))
    helper.fails("unflatten: sizes 2x2 don't make up the 6 elements of dim 2", tycho.unflatten, tycho.zeros(0, 6), 2, {2, 2})
    helper.fails("unflatten: sizes 4x-1 don't make up the 6 elements of dim 2", tycho.unflatten, tycho.zeros(1, 6), 2, {4, -1})
  end)

  it("random_ draws what the dtype holds", function()
    for dtype, high in pairs {uint8 = 256, int32 = 2 ^ 31, bool = 2} do
      local x = tycho.zeros(3, {dtype = dtype})
      helper.fails(dtype .. " holds", x.random_, x, 0, high)
      assert.equal(x, x:random_(0, high - 1))
    end
    local x = tycho.zeros(3)
    helper.fails("uint8 holds 0 to 255, but -1 to 3 are asked for", x.random_, x:byte(), -1, 3)
    assert.equal(-3, x:random_(-3, -3)[2])
  end)

  it("rot90 turns from one dim to another", function()
    helper.fails("rot90: dims 1 and 1 must differ", tycho.rot90, tycho.ones(2, 2), 1, {1, -2})
    helper.fails("rot90: dim 3 is out of range", tycho.rot90, tycho.ones(2, 2), 0, {1, 3})
    helper.fails("rot90: dims must list two dims, got 3", tycho.rot90, tycho.ones(2, 2, 2), 1, {1, 2, 3})
    assert.same({{3, 1}, {4, 2}}, T({{1, 2}, {3, 4}}):rot90(-1, {-2, -1}):totable())
  end)

  it("dims are whole numbers, variances tensors or numbers", function()
    for _, dim in ipairs {{}, "x", 1.5, tycho.ones(1)} do
      helper.fails("linalg.matrix_norm: a dim must be a whole number, got", tycho.linalg.matrix_norm, tycho.ones(2, 2), 1, {dim, 2})
    end
    is(0.5, F.gaussian_nll_loss(T {1}, T {0}, true))
  end)

  it("draws have sizes that are whole numbers", function()
    local d = tycho.distributions.Categorical(tycho.ones(3))
    for _, shape in ipairs {{1, false}, {1, {}}, {1, -1}, {1, 1.5}} do
      helper.fails("Categorical: sample: size 2 must be a whole number from 0", d.sample, d, shape)
    end
    assert.equal("2x0", tostring(d:sample({2, 0}).shape))
  end)

  it("decimals of 16-bit numbers don't overflow", function()
    local x = T({60000, -700.5}, {dtype = "float16"})
    is({60000, -700.5}, x:round({decimals = 2}))
    assert.equal("float16", x:round({decimals = 2}).dtype)
  end)

  it("a border that no element of the dtype reaches is an error", function()
    local x = T({0, 5, 200}, {dtype = "uint8"})
    helper.fails("clamp: max -1 is below what dtype uint8 holds", x.clamp, x, nil, -1)
    helper.fails("clamp: min 300 is above what dtype uint8 holds", x.clamp_min, x, 300)
    helper.fails("clamp: min 300 is above what dtype uint8 holds", x.clamp_, x, 300)
    assert.same({0, 5, 100}, x:clamp(-1, 100):totable())
    helper.fails("clamp: max -1e+10 is below what dtype int32 holds", x.clamp, x:int(), nil, -1e10)
  end)

  it("values at the edges of what numbers can be", function()
    local x = T({1e-40, -1e-40, 0.5}, {requires_grad = true})
    is({0, 0, -4 / math.pi}, tycho.grad(x:sinc():sum(), x), 1e-5)
    is({1e40, -1e20, -1e10}, tycho.digamma(T({-1e-40, 1e-20, 1e-10}, f64)), 1e-9)
    is({1e30}, T({-1e-15}, f64).polygamma(T({-1e-15}, f64), 1), 1e-9)
    is({0.5, 50}, F.huber_loss(T {1, -10}, T {0, 0}, {delta = inf, reduction = "none"}))
    is({2, 6}, tycho.ldexp(T {1, 3}, true))
    is({0, 2}, tycho.ldexp(T({0, 2 ^ -100}, {dtype = "float32"}), 101))
    is({0, 2}, tycho.ldexp(T({0, 2 ^ -140}, {dtype = "float32"}), T({300, 141}, {dtype = "int64"})))
    assert.equal("float64", tycho.ldexp(T({1}, {dtype = "float32"}), T({1}, {dtype = "float64"})).dtype)
    assert.same({false, true}, tycho.isin(T {1, 3}, 3):totable())
    assert.same({true, false}, T({1, 3}, i64):isin(3, {invert = true}):totable())
    assert.equal("2x0", tostring(tycho.cumulative_trapezoid(tycho.zeros(2, 0)).shape))
    local maxima, places = tycho.max_pool2d(tycho.ones(0, 3, 4, 4), 2, {return_indices = true})
    assert.equal("0x3x4x4", tostring(tycho.max_unpool2d(maxima, places, 2).shape))
    helper.fails("histogram: range 1..inf isn't finite", tycho.histogram, T {1, inf}, 4)
    for _, f in ipairs {tycho.scatter, tycho.scatter_add} do
      helper.fails(": argument 3 has indices into dim 1 of shape 0, which is empty", f, tycho.zeros(0), 1, T({1}, i64), tycho.ones(1))
      assert.equal(0, f(tycho.zeros(0), 1, T({}, i64), tycho.ones(0)):numel())
    end
  end)

  it("traces recurrent layers without a batch, and lengths beside a table of positions that ends", function()
    for _, name in ipairs {"RNN", "GRU", "LSTM"} do
      local layer = nn[name](4, 6, {num_layers = 2, bidirectional = true})
      local traced = tycho.jit.trace(layer, tycho.randn(6, 4))
      for _, length in ipairs {6, 3, 9} do
        local x = tycho.randn(length, 4)
        helper.close((traced(x)), (layer(x)), name, 0)
      end
    end
    local words, positions = nn.Embedding(17, 4), nn.Embedding(32, 4)
    local function model(ids) return words(ids) + positions(tycho.range(1, ids:size(2), {dtype = "int64"})) end
    for _, n in ipairs {4, 5, 16, 31, 32} do
      local traced = tycho.jit.trace(model, tycho.randint(1, 17, {1, n}))
      for _, length in ipairs {1, 9, 32} do
        local ids = tycho.randint(1, 17, {2, length})
        helper.close(traced(ids), model(ids), ("%d of a trace of %d"):format(length, n), 0)
      end
    end
  end)

  it("the gradient of a maximum that is NaN goes to where NaN is; logit's is NaN outside of 0..1", function()
    for _, f in ipairs {tycho.max, tycho.min, tycho.amax, tycho.amin} do
      local x = T({{1, nan, 2}, {nan, nan, 3}}, {requires_grad = true})
      f(x):backward()
      helper.close(x.grad, T {{0, 1, 0}, {1, 1, 0}} / 3, nil, 0)
    end
    local into, from = T({1, 2}, {requires_grad = true}), T({nan}, {requires_grad = true})
    into:scatter_reduce(1, T({1}, i64), from, "amax"):sum():backward()
    is({0, 1}, into.grad, 0)
    is({1}, from.grad, 0)
    local x = T({-1, 0, 0.5, 1, 2}, {requires_grad = true})
    tycho.logit(x):sum():backward()
    is({nan, inf, 4, inf, nan}, x.grad, 0)
    x.grad = nil
    tycho.logit(x, 0.125):sum():backward()
    helper.close(x.grad, T {0, 0, 4, 0, 0}, nil, 0)
    helper.close(tycho.logit(x, 0.125), T {-math.log(7), -math.log(7), 0, math.log(7), math.log(7)}, nil, 1e-6)
  end)

  it("a trace has nothing of an op that failed and was caught", function()
    local traced = tycho.jit.trace(function(x)
      local y = x * 2
      pcall(function() y:add_(tycho.ones(5)) end)
      pcall(function() y[{ {1, 2} }]:copy_(tycho.ones(5)) end)
      return y
    end, tycho.ones(3))
    helper.close(traced(T {1, 2, 3}), T {2, 4, 6}, nil, 0)
    assert.is_nil(tostring(traced:graph()):find("add_", 1, true))
  end)

  it("signs of 16 bits are changed and taken away in any layout", function()
    for _, d in ipairs {"float16", "bfloat16"} do
      local x = T({1, -2, 0, -0.0, inf, -inf, 0.25, -0.75}, {dtype = d})
      is({-1, 2, -0.0, 0, -inf, inf, -0.25, 0.75}, x:neg(), 0)
      is({1, 2, 0, 0, inf, inf, 0.25, 0.75}, x:abs(), 0)
      assert.same({-inf, inf, inf}, {1 / x:neg()[3], 1 / x:abs()[3], 1 / x:abs()[4]})
      assert.same({true, true}, (T({nan, -1}, {dtype = d}):neg():isnan() + T({1, nan}, {dtype = d}):abs():isnan()):totable())
      local y = tycho.randn(40, 64):to(d)
      for _, v in ipairs {y, y:t(), y[{ {}, {3, 60, 2} }], y[{ {5, 20} }], y[1]:expand(30, 64), y:select(2, 3)} do
        helper.close(v:neg():float(), v:float() * -1, d, 0)
        helper.close(v:abs():float(), v:float():abs(), d, 0)
        helper.close(v:clone():neg_():float(), v:float() * -1, d, 0)
      end
    end
  end)

  it("sort is stable, and gives the elements that came, -0 among them, in any dtype and number", function()
    math.randomseed(5)
    local odd = {nan, -0.0, 0, inf, -inf}
    local make = {float32 = function() return odd[math.random(12)] or (math.random() - 0.5) * 2 ^ math.random(-9, 9) end,
      int64 = function() return math.random(-3, 3) * 2 ^ math.random(0, 50) end, uint8 = function() return math.random(0, 255) end,
      bool = function() return math.random(2) == 1 end}
    make.float64, make.int32 = make.float32, function() return math.random(-2 ^ 20, 2 ^ 20) end
    make.float16 = function() return odd[math.random(12)] or math.random(-99, 99) / 8 end
    make.bfloat16 = make.float16
    local function number(v) return v == true and 1 or v == false and 0 or v end
    for dtype, one in pairs(make) do
      for _, n in ipairs {1, 2, 39, 40, 41, 300, 4095, 4097} do
        local given, order = {}, {}
        for i = 1, n do given[i], order[i] = one(), i end
        local x = T(given, {dtype = dtype})
        given = x:totable()                              -- as the dtype holds them
        for _, descending in ipairs {false, true} do
          table.sort(order, function(a, b)
            local p, q = number(given[a]), number(given[b])
            if p ~= p or q ~= q then
              if (p ~= p) == (q ~= q) then return a < b end
              return (p ~= p) == descending
            end
            if p == q then return a < b end
            return (p > q) == descending
          end)
          local values, places = (n % 2 == 0 and tycho.stack({x, x}, 2):select(2, 1) or x):sort(1, {descending = descending})
          assert.same(order, places:totable(), dtype)
          for i, v in ipairs(values:totable()) do
            local p, q = number(v), number(given[order[i]])
            assert.is_true((p ~= p and q ~= q) or (p == q and 1 / p == 1 / q), dtype)
          end
        end
      end
    end
  end)
end)
