-- Bugs that were, of modules and layers, and of layers' functions: losses, convolutions, pools, attention; values are PyTorch's.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, F, func = tycho.nn, tycho.nn.functional, tycho.func
local T, is, fails, close = tycho.tensor, helper.is, helper.fails, helper.close
local i64, f64, inf, nan = {dtype = "int64"}, {dtype = "float64"}, math.huge, 0 / 0

describe("regressions of losses", function()
  it("gives 16-bit scores of a cross-entropy the same gradient where it is recorded", function()
    for _, reduction in ipairs {"mean", "sum"} do
      local x = tycho.tensor({{7, 0, 0}, {0, 6.5, 0}}):to("bfloat16"):requires_grad_()
      local function gradient(recorded)
        return tycho.grad(tycho.cross_entropy(x, tycho.tensor({1, 2}, {dtype = "int64"}),
          {reduction = reduction, weight = tycho.tensor({1, 2, 1}):to("bfloat16")}), x, {create_graph = recorded})
      end
      local g = gradient(true)
      assert.equal("bfloat16", g.dtype)
      assert.same(gradient(false):totable(), g:detach():totable())
    end
  end)

  it("binary cross-entropy has its gradient at logit 0", function()
    local x = tycho.zeros(4, {requires_grad = true})
    tycho.binary_cross_entropy_with_logits(x, tycho.tensor {0, 1, 0, 1}, {reduction = "sum"}):backward()
    assert.same({0.5, -0.5, 0.5, -0.5}, x.grad:totable())
    local big = tycho.tensor {1000, -1000}
    assert.same({0, 1000}, tycho.binary_cross_entropy_with_logits(big, tycho.tensor {1, 1}, {reduction = "none"}):totable())
  end)

  it("cross_entropy's gradient is that of the scores' differences, however large the scores are", function()
    tycho.manual_seed(8)
    local function gradient(x, y, o) return tycho.grad(F.cross_entropy(x, y, o), x) end
    for _, shape in ipairs {{12, 100}, {40, 10}, {3, 9, 20}, {2, 300}} do
      local whole = tycho.randint(-3, 3, shape)
      local y = tycho.randint(1, shape[2], #shape == 3 and {shape[1], shape[3]} or {shape[1]})
      local ignored = {ignore_index = y:reshape(-1)[1]}
      for _, o in ipairs {{}, {label_smoothing = 0.1}, {reduction = "sum", weight = tycho.rand(shape[2])}, ignored} do
        local want = gradient(whole:float():requires_grad_(), y, o)
        for _, by in ipairs {1e3, 1e6, -1e6, 2 ^ 24 - 8} do           -- exact in float32
          local what = ("%d dims, scores by %g"):format(#shape, by)
          helper.close(gradient((whole + by):float():requires_grad_(), y, o), want, what, 1e-6, 1e-6)
        end
      end
    end
  end)

  it("losses want targets of their shape, and skip ignored rows whole", function()
    fails("it must be 2x4x5", tycho.cross_entropy, tycho.ones(2, 3, 4, 5), tycho.ones(2, 5, 4, {dtype = "int64"}))
    fails("it must be 4", tycho.nll_loss, tycho.ones(4, 3), tycho.ones(2, {dtype = "int64"}))
    assert.equal(1, tycho.nll_loss(tycho.tensor {{-math.huge, 0}, {-1, -2}}, tycho.tensor({-100, 1}, {dtype = "int64"})):item())
  end)

  it("nll_loss looks at its weight", function()
    helper.fails("nll_loss: argument 3 (weight) has shape 4; it must be a vector of 3", tycho.nll_loss, tycho.zeros(2, 3), T({1, 2}, i64),
      {weight = tycho.ones(4)})
  end)

  it("linear_cross_entropy of probabilities takes them along the last dim", function()
    local x, w = tycho.randn(2, 6, 4), tycho.randn(5, 4)
    local p = tycho.softmax(tycho.randn(2, 6, 5), -1)
    helper.close(F.linear_cross_entropy(x, w, p), tycho.cross_entropy(tycho.linear(x, w):view(12, 5), p:view(12, 5)))
    assert.same({2, 6}, {unpack(F.linear_cross_entropy(x, w, p, {reduction = "none"}).shape)})
    helper.fails("argument 3 (target) has shape 2x5", F.linear_cross_entropy, x, w, p:select(2, 1))
  end)

  it("ctc_loss of no steps is 0 where nothing is to be spelt, else infinite", function()
    local x, labels = tycho.log_softmax(tycho.randn(3, 3, 4), -1):requires_grad_(), T({{2, 3}, {2, 3}, {2, 2}}, i64)
    local loss = F.ctc_loss(x, labels, {0, 0, 3}, {0, 2, 0}, {reduction = "none"})
    assert.same({0, inf}, {loss[1], loss[2]})
    is({-x[{{}, 3, 1}]:sum():item()}, loss[{ {3} }]:detach(), 1e-6)
    assert.equal(0, tycho.grad(loss[{ {1} }]:sum(), x):abs():sum():item())
  end)
end)

describe("regressions of convolutions, pools and grids", function()
  it("convolution keeps apart the weights of one storage #cpu", function()
    local w, x = tycho.randn(2, 16, 16, 3, 3), tycho.randn(1, 16, 6, 6)
    tycho.conv2d(x, w:select(1, 1))
    helper.close(tycho.conv2d(x, w:select(1, 2)), tycho.conv2d(x, w:select(1, 2):clone()))
    local v = tycho.randn(16, 16, 3, 3)
    local p = v:data()
    tycho.conv2d(x, v)
    for i = 0, v:numel() - 1 do p[i] = 0 end
    assert.equal(0, tycho.conv2d(x, v):abs():max():item())
  end)

  it("convolutions in bfloat16 have their gradients whatever the number of channels and the dilation #cpu", function()
    local function same_gradients(c, o, size, kernel, options)
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
    same_gradients(4, 3, {5, 6}, 1)
    same_gradients(32, 21, {6, 10}, 1)
    same_gradients(5, 7, {1, 30}, 1)
    same_gradients(17, 16, {12, 32}, 3, {dilation = {2, 1}})
    same_gradients(33, 8, {12, 40}, 3, {dilation = 3, padding = 3})
    local x, w = tycho.randn(1, 3, 5, 6):bfloat16(), tycho.randn(3, 2, 1, 1):bfloat16()
    helper.close(tycho.conv_transpose2d(x, w):double(), tycho.conv_transpose2d(x:double(), w:double()), nil, 0.02)
  end)

  it("pools' gradients check their windows, since saved traces may ask for any", function()
    local g, at = tycho.ones(1, 1, 2, 2), tycho.ones(1, 1, 2, 2):long()
    for _, dilation in ipairs {0, -1} do
      helper.fails("dilation " .. dilation, core.ops.max_pool2d_backward, g, at, {1, 1, 4, 4}, 2, 2, 1, false, dilation)
    end
    helper.fails("padding", core.ops.max_pool2d_backward, g, at, {1, 1, 4, 4}, 1, 2, 1)
    helper.fails("these windows", core.ops.max_pool2d_backward, g, at, {1, 1, 9, 9}, 2)
    helper.fails("stride 0", core.ops.avg_pool2d_backward, g, {1, 1, 4, 4}, 2, 0)
    helper.fails("these windows", core.ops.avg_pool2d_backward, g, {1, 1, 4, 4}, 4, 4)
  end)

  it("whole numbers pass through pools, nearest neighbours and linear", function()
    local planes = tycho.range(1, 16, 1, i64):view(1, 1, 4, 4)
    local y, at = F.max_pool2d(planes, 2, 2, 0, 1, false, true)
    assert.same({{{{{6, 8}, {14, 16}}}}, {{{{6, 8}, {14, 16}}}}}, {y:totable(), at:totable()})
    assert.equal("uint8", F.max_pool1d(planes:byte():flatten(2), 2).dtype)
    assert.same({{{1, 1, 2, 2}}}, F.interpolate(T({{{1, 2}}}, {dtype = "uint8"}), {size = 4}):totable())
    assert.same({{{{9007199254740991, 9007199254740991}}}}, F.interpolate(T({{{{2 ^ 53 - 1}}}}, i64), {scale_factor = {1, 2}}):totable())
    assert.same({{12, 18}}, F.linear(T({{1, 2}}, i64), T({{3, 4}, {5, 6}}, i64), T({1, 1}, i64)):totable())
    helper.fails("max_pool2d: argument 1 must hold numbers, got bool", F.max_pool2d, planes:bool(), 2)
    helper.fails("must have a floating dtype", F.interpolate, planes, 8, nil, "bilinear")
  end)

  it("fold says that a window doesn't fit", function()
    helper.fails("fold: the window is larger", function() return tycho.nn.functional.fold(tycho.ones(1, 9, 1), {1, 1}, 3) end)
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

  it("grids may lie in any way", function()
    local x, grid = tycho.randn(1, 1, 4, 4), tycho.rand(1, 2, 3, 2):permute(1, 4, 3, 2)
    helper.close(F.grid_sample(x, grid:contiguous(), {mode = "bicubic"}), F.grid_sample(x, grid, {mode = "bicubic"}))
    local volume, places = tycho.randn(1, 1, 3, 4, 4), tycho.rand(1, 3, 2, 3, 2):permute(1, 5, 4, 3, 2)
    helper.close(F.grid_sample(volume, places:contiguous()), F.grid_sample(volume, places))
  end)

  it("bytes are resized as PyTorch does, other whole numbers are not averaged", function()
    local x = tycho.range(0, 63):view(1, 1, 8, 8):byte()
    local function sized(mode, antialias)
      return F.interpolate(x, {size = {3, 3}, mode = mode, antialias = antialias}):flatten():totable()
    end
    assert.same({10, 13, 15, 29, 32, 34, 48, 51, 53}, sized("bilinear", true))
    assert.same({0, 2, 5, 16, 18, 21, 40, 42, 45}, sized "nearest")
    assert.equal("uint8", F.interpolate(x, {scale_factor = 2}).dtype)
    helper.fails("interpolate: argument 1 must have a floating dtype or be uint8, got int32", F.interpolate, x:int(),
      {size = {3, 3}, mode = "bilinear"})
    helper.fails("affine_grid: argument 1 must have a floating dtype, got int64", F.affine_grid, tycho.ones(1, 2, 3):long(), {1, 1, 4, 4})
    local grid = T {{{{0.1, 0.3}, {-0.4, 0.2}}}}
    local image = tycho.range(0, 15):view(1, 1, 4, 4)
    helper.close(F.grid_sample(image, grid, {mode = "bicubic"}), F.grid_sample(image:long(), grid, {mode = "bicubic"}))
  end)
end)

describe("regressions of attention, norms and activations", function()
  it("attention weights of a row that may attend to nothing are 0, not NaN", function()
    local m = tycho.nn.MultiheadAttention(4, 2, {batch_first = true})
    local x = tycho.randn(1, 3, 4)
    local forbidden = tycho.tensor {{true, true, true}, {false, true, true}, {false, false, true}}
    local y, w = m(x, {attn_mask = forbidden, need_weights = true})
    assert.same({0, 0, 0}, w[1][1]:totable())
    assert.is_true(tycho.allclose(m(x, {attn_mask = forbidden}), y, {atol = 1e-6}))
  end)

  it("attention's dropout scales float64 in float64", function()
    local q = tycho.ones(1, 1, 1, 1, {dtype = "float64"})
    for _ = 1, 20 do
      local y = tycho.scaled_dot_product_attention(q, q, q, nil, 0.1):item()
      assert.is_true(y == 0 or y == 1 / 0.9)
    end
  end)

  it("attention with a learned mask stays finite in 16 bits, and takes masks of float32", function()
    local half = {dtype = "float16"}
    local q = tycho.full({1, 1, 2, 64}, 40, half)
    local k = q * T({1, 0.5}, half):view(1, 1, 2, 1)
    local v = T({{1}, {2}}, half):view(1, 1, 2, 1):expand(1, 1, 2, 64):contiguous()
    for _, dtype in ipairs {"float16", "float32"} do
      local mask = tycho.zeros(2, 2, {dtype = dtype, requires_grad = true})
      local y = F.scaled_dot_product_attention(q, k, v, mask)
      assert.equal("float16", y.dtype)
      is(F.scaled_dot_product_attention(q, k, v, mask:detach()):totable(), y)
      is(F.scaled_dot_product_attention(q, k, v, mask:detach(), {scale = -0.01}):totable(),
        F.scaled_dot_product_attention(q, k, v, mask, {scale = -0.01}), 1e-2)
    end
  end)

  it("layer_norm wants weights of its input's kind", function()
    fails("which doesn't fit an input of float64", tycho.layer_norm, tycho.randn(2, 100, {dtype = "float64"}), {100}, tycho.ones(100))
  end)

  it("batch_norm's running mean and variance have one dtype", function()
    helper.fails("mean has dtype float32, var float64", tycho.batch_norm, tycho.ones(2, 3), tycho.zeros(3), tycho.ones(3, f64))
  end)

  it("prelu's weights are as many as there are channels", function()
    helper.fails("prelu: argument 2 (weight) of shape 4 must have one element, or one for each of 1 channels", F.prelu,
      tycho.ones(2, 1, 3), tycho.ones(4))
    helper.fails("of shape 3 must have one element, or one for each of 1 channels", F.prelu, T {1, -2, 3}, T {1, 2, 3})
    helper.fails("for each of 4 channels", F.prelu, tycho.ones(1, 4, 1), tycho.ones(0))
    assert.same({0, 4, 2}, {unpack(F.prelu(tycho.ones(0, 4, 2), tycho.ones(4)).shape)})
    is({{1, -4}}, F.prelu(T {{1, -2}}, T {1, 2}))
  end)
end)

describe("regressions of modules", function()
  it("Sequential frees only what no user code has seen", function()
    local seen
    local Keep = nn.Module:extend("Keep")
    function Keep:forward(x) seen = x return x * 2 end
    local Mine = nn.Linear:extend("Mine")
    function Mine:forward(x) self.last = nn.Linear.forward(self, x) return self.last end
    local net = nn.Sequential(nn.Linear(2, 2), Keep(), Mine(2, 2), nn.ReLU(), nn.ReLU())
    net(tycho.ones(1, 2))
    assert.equal(2, seen:numel())
    assert.equal(2, net[3].last:numel())
  end)

  it("modules see what takes a placeholder's place", function()
    local Net = nn.Module:extend("Net")
    function Net:init() self.h = false self:register_buffer("m", nil) end
    local net = Net()
    assert.equal(false, net.h)
    net.h = nn.Linear(2, 2)
    net.m = tycho.ones(1)
    assert.equal(2, #net:parameters())
    assert.equal(1, #net:buffers())
    local tied = nn.Sequential(nn.Linear(2, 2, {bias = false}), nn.Linear(2, 2, {bias = false}))
    tied[2].weight = tied[1].weight
    assert.equal(1, #tied:parameters())
    assert.is_truthy(tied:state_dict()["1.weight"])
  end)

  it("containers and clipping take lists, and say so", function()
    fails("one list is needed", nn.ModuleList, nn.Linear(1, 1), nn.Linear(1, 1))
    fails("one list is needed", nn.ParameterList, tycho.ones(1))
    fails("one table is needed", nn.ModuleDict, nn.Linear(1, 1))
    fails("such as net:parameters()", nn.utils.clip_grad_norm_, nn.Linear(1, 1), 1)
    fails("class labels must be int64", tycho.cross_entropy, tycho.zeros(2, 3), tycho.tensor {1, 2})
    fails("must be a dtype such as 'float32' or a device", function() return tycho.ones(1):to("gpu") end)
  end)

  it("a long list of modules grows, whatever else is done to it", function()
    local list = nn.Sequential()
    for _ = 1, 4000 do list:append(nn.ReLU()) end
    local numbers = nn.ParameterList()
    for i = 1, 300 do numbers:append(T {i}) end
    numbers[2] = nil
    numbers:append(T {301})
    assert.same({300, 301}, {#numbers:parameters(), numbers[300]:item()})
    assert.equal(4000, #list)
    table.insert(list, 1, nn.Tanh())
    list:append(nn.Identity())
    assert.equal(4002, #list:children())
  end)

  it("buffers may be left out of the state dict", function()
    local M = nn.Module:extend("M")
    function M:init()
      self:register_buffer("a", tycho.ones(1), {persistent = false})
      self:register_buffer("b", tycho.zeros(1))
    end
    local m = M()
    for _, x in ipairs {m, m:clone()} do
      local names = {}
      for name in pairs(x:state_dict()) do names[#names + 1] = name end
      assert.same({"b"}, names)
      x:load_state_dict {b = tycho.ones(1)}
      assert.equal(1, x.b:item())
    end
    fails("persistant", function() m:register_buffer("c", nil, {persistant = true}) end)
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

  it("a state that doesn't fit leaves lazy layers as they were", function()
    local net = nn.Sequential(nn.LazyLinear(10), nn.Linear(10, 5))
    local state = nn.Sequential(nn.Linear(7, 10), nn.Linear(10, 5)):state_dict()
    helper.fails("missing '1.weight'", net.load_state_dict, net, {["0.weight"] = tycho.ones(10, 784)})
    assert.equal(5, net(tycho.ones(2, 3)):size(2))
    net = nn.Sequential(nn.LazyLinear(10), nn.Linear(10, 5))
    net:check_state_dict(state)
    assert.truthy(tostring(net):find "LazyLinear")
    net:load_state_dict(state)
    assert.is_true(net[1].weight:equal(state["0.weight"]))
  end)

  it("what is assigned where nothing would come of it is an error", function()
    local w = tycho.ones(3)
    helper.fails("data: x:data() is a method and gives an FFI pointer; assign x[1] = v within tycho.no_grad(fn)",
      function() w.data[1] = 3 end)
    helper.fails("compute with x:detach()", function() return w.data * 2 end)
    local A = nn.Module:extend "A"
    function A:init() self.l = nn.Linear(2, 2) end
    local B = A:extend "B"
    function B.init() A:init() end
    helper.fails("A: 'l' is assigned to the class, not to an instance; a subclass's init calls A.init(self, ...), with a dot", B)
    function B:init() B.super.init(self) end
    helper.fails("a class has no 'super'", B)
    helper.fails("A: '__init': the constructor is init", function() A.__init = function() end end)
    function B:init() A.init(self) end
    assert.equal(2, #B():parameters())
  end)

  it("tensors that are called, put into lists of numbers or of modules", function()
    helper.fails("for i, row in x:iter() do", function() for _ in tycho.ones(2) do end end)
    helper.fails("numbers or booleans are needed: use stack(list) to join tensors", T, {tycho.ones(2), tycho.ones(2)})
    for _, wrong in ipairs {3, tycho.ones(2)} do
      local list = nn.ModuleList()
      helper.fails("ModuleList: position 1 must hold a module or a Parameter", function() list[1] = wrong end)
    end
    helper.fails("get_device_name", tycho.cuda.get_device_name, 77)
  end)

  it("layers go by their fields as they are", function()
    local l, p = nn.LeakyReLU(0.1), nn.MaxPool2d(2)
    l.negative_slope, p.kernel_size, p.stride = 0.5, 3, 1
    is({-0.5}, l(T {-1}))
    assert.equal("LeakyReLU(negative_slope=0.5)", tostring(l))
    assert.equal("1x1x3x3", tostring(p(tycho.randn(1, 1, 5, 5)).shape))
    local up = nn.Upsample {scale_factor = 2}
    up.mode = "bilinear"
    is({{{{0, 0.25, 0.75, 1}, {0, 0.25, 0.75, 1}}}}, up(T {{{{0, 1}}}}))
    local bn = nn.BatchNorm1d(2)
    bn.track_running_stats = false
    bn(tycho.randn(8, 2))
    is({0, 0}, bn.running_mean)
    assert.equal(0, bn.num_batches_tracked:item())
  end)
end)

describe("regressions of modules' utilities", function()
  it("a parametrized tensor is set only where there is a way back", function()
    local Twice = nn.Module:extend "Twice"
    function Twice:forward(x) return x * 2 end
    local l = nn.Linear(2, 2)
    nn.utils.parametrize.register_parametrization(l, "weight", Twice())
    local was = l.weight:clone()
    helper.fails("Twice has none", function() l.weight = tycho.ones(2, 2) end)
    helper.close(l.weight, was)
  end)

  it("a parametrization keeps shape and dtype, unless it is told not to", function()
    local Twice = nn.Module:extend("Twice")
    function Twice:forward(x) return tycho.cat {x, x} end
    local register = nn.utils.parametrize.register_parametrization
    local l = nn.Linear(2, 2)
    helper.fails("'weight' has shape 2x2 and dtype float32; the parametrization gives 4x2 of float32", register, l, "weight", Twice())
    assert.is_nil(l.parametrizations)
    register(l, "weight", Twice(), {unsafe = true})
    assert.equal("4x2", tostring(l.weight.shape))
  end)

  it("a convolution joined with its batch norm keeps its dtype and takes options", function()
    local conv, bn = nn.Conv2d(3, 3, 3):half():eval(), nn.BatchNorm2d(3):eval()
    assert.equal("float16", nn.utils.fuse_conv_bn_eval(conv, bn).weight.dtype)
    helper.close(nn.utils.fuse_conv_bn_eval(conv, bn, {transpose = false}).weight, nn.utils.fuse_conv_bn_eval(conv, bn).weight)
  end)

  it("arguments of functions in Lua may be named", function()
    local prune, l = nn.utils.prune, nn.Linear(4, 1)
    prune.random_unstructured(l, "weight", {amount = 0.5})
    prune.remove(l, {name = "weight"})
    assert.equal(2, l.weight:eq(0):sum():item())
    prune.l1_unstructured(l, {name = "weight", amount = 3})
    local a, b = nn.Linear(4, 1, false), nn.Linear(3, 1, false)
    local scores = {tycho.tensor {{-10, 1, 2, 3}}, tycho.tensor {{1, -1, 5}}}
    prune.global_unstructured({{a, "weight"}, {b, "weight"}}, {amount = 3, importance_scores = scores})
    assert.same({{{1, 0, 1, 1}}, {{0, 0, 1}}}, {a.weight_mask:totable(), b.weight_mask:totable()})
    prune.l1_unstructured(nn.Linear(4, 1, false), "weight", 1, scores[1])
    assert.equal(3, l.weight:eq(0):sum():item())
    l.bias.grad = tycho.tensor {5}
    nn.utils.clip_grad_value_({l.bias}, {clip_value = 1})
    assert.equal(1, l.bias.grad[1])
    local parts = tycho.data.random_split(tycho.data.TensorDataset(tycho.ones(4)), {lengths = {3, 1}})
    assert.same({3, 1}, {parts[1]:size(), parts[2]:size()})
    assert.equal(1, nn.init.calculate_gain("leaky_relu", {param = 1}))
    local packed = nn.utils.rnn.pack_padded_sequence(tycho.ones(3, 2, 1), {lengths = {3, 2}})
    assert.equal(5, packed.data:size(1))
  end)
end)

describe("regressions of functional_call", function()
  local Slow = nn.Module:extend("Slow")
  function Slow:init()
    self.l = nn.Linear(2, 2)
    self:register_buffer("calls", tycho.zeros({}))
  end
  function Slow:forward(x)
    if coroutine.running() then coroutine.yield() end
    self.calls = self.calls + 1
    return self.l(x)
  end

  it("leaves what forward assigns", function()
    local net = Slow()
    local thread = coroutine.create(func.functional_call)
    coroutine.resume(thread, net, {["l.bias"] = tycho.zeros(2)}, tycho.ones(1, 2))
    assert(coroutine.resume(thread))
    assert.equal(1, net.calls:item())
  end)

  it("refuses another coroutine while one is within, and restores", function()
    local net = Slow()
    local weight, x = net.l.weight, tycho.ones(1, 2)
    local first = coroutine.create(func.functional_call)
    assert(coroutine.resume(first, net, {["l.weight"] = tycho.zeros(2, 2)}, x))
    local second = coroutine.create(func.functional_call)
    local ok, err = coroutine.resume(second, net, {["l.weight"] = tycho.ones(2, 2)}, x)
    assert.is_false(ok)
    assert.is_truthy(err:find("functional_call: another coroutine is within a functional_call of this Slow", 1, true), err)
    local _, y = coroutine.resume(first)
    close(y, net.l.bias:view(1, 2))
    assert.is_true(rawequal(weight, net.l.weight))
    second = coroutine.create(func.functional_call)
    assert(coroutine.resume(second, net, {["l.weight"] = tycho.ones(2, 2)}, x))
    local _, z = coroutine.resume(second)
    close(z, net.l.bias:view(1, 2) + 2)
  end)

  it("isn't locked by a coroutine that was dropped, or that waits for one it resumes", function()
    local net = Slow()
    local weight, x = net.l.weight, tycho.ones(1, 2)
    local function zero() return func.functional_call(net, {["l.weight"] = tycho.zeros(2, 2)}, x) end
    assert(coroutine.resume(coroutine.create(zero)))       -- waits in forward, and is dropped
    net.l.weight = weight
    for _ = 1, 3 do collectgarbage() end
    local again = coroutine.create(zero)
    assert(coroutine.resume(again))
    close(select(2, assert(coroutine.resume(again))), net.l.bias:view(1, 2))
    local Outer = nn.Module:extend("Outer")
    function Outer:init() self.net = nn.Linear(2, 2, {bias = false}) end
    function Outer:forward(v)
      local inner = coroutine.wrap(function() return func.functional_call(self.net, {weight = tycho.zeros(2, 2)}, v) end)
      return inner(), self.net(v)
    end
    local y, z = func.functional_call(Outer(), {["net.weight"] = tycho.ones(2, 2)}, x)
    close(y, tycho.zeros(1, 2))
    close(z, tycho.full({1, 2}, 2))
  end)

  it("may stand in one another", function()
    local net = nn.Linear(2, 2, {bias = false})
    local Outer = nn.Module:extend("Outer")
    function Outer:init() self.net = net end
    function Outer:forward(x) return func.functional_call(net, {weight = tycho.zeros(2, 2)}, x), net(x) end
    local y, z = func.functional_call(Outer(), {["net.weight"] = tycho.ones(2, 2)}, tycho.ones(1, 2))
    close(y, tycho.zeros(1, 2))
    close(z, tycho.full({1, 2}, 2))
  end)
end)

describe("regressions of Sequential", function()
  it("keeps what a hook has kept that removes itself, or that a clone has", function()
    local net, kept, hook = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), nil, nil
    hook = net[1]:register_forward_hook(function(_, _, y)
      kept = y
      hook.remove()
    end)
    net(tycho.ones(1, 2))
    assert.equal("1x2", tostring(kept.shape))
    hook = net[1]:register_forward_hook(function(_, _, y) kept = y end)
    local copy = net:clone()
    hook.remove()
    tycho.no_grad(copy, tycho.ones(3, 2))
    assert.equal("3x2", tostring(kept.shape))
  end)

  it("keeps what a replaced forward, or a layer of the program's own within an encoder, has kept", function()
    local kept
    local lin = nn.Linear(2, 2)
    function lin:forward(x)
      kept = nn.Linear.forward(self, x)
      return kept
    end
    nn.Sequential(lin, nn.ReLU())(tycho.ones(1, 2))
    assert.equal("1x2", tostring(kept.shape))
    local Layer = nn.Module:extend("Layer")
    function Layer:init() self.l = nn.Linear(4, 4) end
    function Layer:forward(x)
      self.last = self.l(x)
      return self.last
    end
    local encoder = nn.TransformerEncoder(Layer(), 1)
    nn.Sequential(encoder, nn.Linear(4, 4))(tycho.ones(1, 3, 4))
    assert.equal("1x3x4", tostring(encoder.layers[1].last.shape))
  end)

  it("refuses a list with a hole", function()
    fails("Sequential: item 2 of the list is nil", nn.Sequential, {nn.ReLU(), nil, nn.ReLU()})
  end)
end)

describe("regressions of modules: one", function()
  it("that holds its compiled stand-in is collected", function()
    local gone = setmetatable({}, {__mode = "v"})
    do
      local net = nn.Linear(2, 2)
      net.fast = tycho.compile(net)
      gone[1] = net
    end
    for _ = 1, 3 do collectgarbage() end
    assert.is_nil(gone[1])
  end)

  it("keeps a field whose new value is refused", function()
    local m = nn.Module()
    m["a.b"] = 3
    fails("names can't have dots", function() m["a.b"] = nn.ReLU() end)
    assert.equal(3, m["a.b"])
  end)
end)

describe("regressions of state dicts: one that doesn't fit", function()
  it("leaves the module as it was", function()
    local wide = nn.Linear(2, 2)
    wide:register_buffer("b", tycho.ones(1):expand(3))
    local before = wide.weight:clone()
    local state = {weight = tycho.zeros(2, 2), bias = tycho.zeros(2), b = tycho.ones(3)}
    fails("'b' is an expanded tensor, which can't be written to", wide.load_state_dict, wide, state)
    assert.is_true(tycho.equal(before, wide.weight))
  end)

  it("dicts keep their lists' order", function()
    local d = nn.ModuleDict {[2] = {"b", nn.ReLU()}, [1] = {"a", nn.ReLU()}, [3] = {"c", nn.ReLU()}}
    assert.same({"a", "b", "c"}, d:keys())
  end)
end)
