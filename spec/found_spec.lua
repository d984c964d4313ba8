-- Bugs that were, found by adversaries' programs, by ports of PyTorch's, and by readers; values are PyTorch's.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim = tycho.nn, tycho.nn.functional, tycho.optim
local T = tycho.tensor
local i64 = {dtype = "int64"}
local inf, nan = math.huge, 0 / 0
local cpu = {device = "cpu"}                     -- where what is in a tensor is looked at at once

describe("found", function()
  local function is(want, got, tolerance) helper.close(got, T(want, {dtype = got.dtype}), nil, tolerance) end

  it("long errors from a hook, a Function and a saved tensor's hook arrive whole", function()
    local text = ("x"):rep(900) .. " END"
    local function raises() error(text, 0) end
    local x = T({1, 2}, {requires_grad = true})
    local y = (x * x):sum()
    y:register_hook(raises)
    helper.fails(text, y.backward, y)
    local f = tycho.autograd.Function {forward = function(_, v) return v * 2 end, backward = raises}
    local z = f(x):sum()
    helper.fails(text, z.backward, z)
    assert.same({2, 4}, tycho.grad((x * x):sum(), x):totable())
  end)

  it("other processes' math.random after a restore follows from the checkpoint and the rank alone", function()
    local dir = helper.folder()
    local m = tycho.checkpoint.Manager {dir = dir, async = false}
    math.randomseed(7)
    m:save(1, {best = 1})
    local before = package.loaded["tycho.distributed"]
    local seen = {}
    for rank = 1, 2 do
      package.loaded["tycho.distributed"] = {is_initialized = function() return true end, get_rank = function() return rank end}
      for k = 1, 2 do
        math.randomseed(100 * k)
        m:restore_latest()
        seen[#seen + 1] = math.random(2 ^ 30)
      end
    end
    package.loaded["tycho.distributed"] = before
    assert.equal(seen[1], seen[2])
    assert.equal(seen[3], seen[4])
    assert.not_equal(seen[1], seen[3])
  end)

  it("new_full and new_tensor take options as new_zeros does", function()
    local x = T {1.5}
    assert.equal("int64", x:new_full({2}, 3, {dtype = "int64"}).dtype)
    assert.same({3, 3}, x:new_full({2}, 3):totable())
    assert.equal("float64", x:new_tensor({1, 2}, {dtype = "float64", requires_grad = true}).dtype)
    assert.equal("int64", T({1}, i64):new_tensor({1, 2}).dtype)
    helper.fails("unknown option 'dtyp'", x.new_full, x, {2}, 3, {dtyp = "int64"})
  end)

  it("progress goes over a list, with options", function()
    local out = {}
    for i, v in tycho.utils.progress({4, 5}, {desc = "list"}) do out[#out + 1] = i * v end
    assert.same({4, 10}, out)
    helper.fails("progress: with options, argument 1 must be the list itself", tycho.utils.progress, (ipairs {4}), {desc = "x"})
    helper.fails("progress: with options, argument 1 must be the list itself", tycho.utils.progress, (pairs {4}), {desc = "x"})
  end)

  it("errors name what is wrong, by the words of the caller", function()
    helper.fails("ColorJitter: brightness must be a number or a list of two, {least, most} of 0 to 1e+06, got {0, inf}",
      tycho.data.transforms.ColorJitter, inf)
    local w = T({1}, {requires_grad = true, device = "cpu"})
    local scaler = tycho.amp.GradScaler()
    local lbfgs = optim.LBFGS {w}
    scaler:scale(w:sum()):backward()
    helper.fails("step: LBFGS evaluates the loss itself, and can't be used with a GradScaler", scaler.step, scaler, lbfgs)
    local writer = tycho.utils.tensorboard.SummaryWriter(helper.folder())
    helper.fails("add_scalars: argument 2 must have numbers by name, got 1 as a name", writer.add_scalars, writer, "a", {1, 2}, 1)
    helper.fails("add_scalar: walltime must be a number, got 'abc'", writer.add_scalar, writer, "a", 1, 1, "abc")
    helper.fails("SummaryWriter: flush_secs must be a number, got 'x'", tycho.utils.tensorboard.SummaryWriter, "a", {flush_secs = "x"})
    writer:close()
    local path = helper.folder() .. "/long.csv"
    local file = assert(io.open(path, "w"))
    file:write(("n"):rep(300) .. ",b\n1,2\n")
    file:close()
    helper.fails("line 1, field 1: a name has at most 255 bytes, got 'nnn", tycho.data.read_csv, path, {header = true})
  end)

  it("a coroutine keeps the default device that it set", function()
    if tycho.cuda.is_available() then
      local co = coroutine.wrap(function()
        local before = tycho.get_default_device()
        tycho.set_default_device(before == "cpu" and "cuda:0" or "cpu")
        tycho.no_grad(function() end)
        local now = tycho.get_default_device()
        tycho.set_default_device(before)
        return before ~= now
      end)
      assert.is_true(co())
    end
  end)

  it("steps have second derivatives of 0", function()
    local x = T({-0.5, 0.3, 2}, {requires_grad = true})
    for _, f in ipairs {F.relu, F.relu6, F.hardtanh, function(v) return F.leaky_relu(v, 0.1) end,
        function(v) return F.threshold(v, 0.1, 3) end, function(v) return F.prelu(v, T {0.2}) end, function(v) return v:clamp(0, 1) end} do
      local g = tycho.grad(f(x):sum(), x, {create_graph = true})
      assert.is_true(g.requires_grad)
      is({0, 0, 0}, tycho.grad(g:sum(), x))
    end
    tycho.manual_seed(1)                                   -- so that some of the steps are on
    local net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    local g = tycho.grad(net(x):sum(), x, {create_graph = true})
    is({0, 0, 0}, tycho.grad(g[{{1}}]:sum(), x, {retain_graph = true}))
    assert.is_true(tycho.grad(g:square():sum(), net[1].weight):norm():item() > 0)
    helper.fails("grad: input 1 wasn't used", tycho.grad, (net(x)):sum(), T({1}, {requires_grad = true}))
  end)

  it("prelu's gradients have gradients", function()
    local x = T({{-0.5, 0.3}, {2, -1.5}}, {dtype = "float64", requires_grad = true})
    local w = T({0.2, 0.4}, {dtype = "float64", requires_grad = true})
    assert.is_true(tycho.autograd.gradgradcheck(function(a, b) return F.prelu(a:square() - 1, b) end, {x, w}))
  end)

  it("zero_ and fill_ keep the graph", function()
    for _, change in ipairs {function(y) y:zero_() end, function(y) y:fill_(3) end} do
      local w = T({1, 1}, {requires_grad = true})
      local y = w * 2
      change(y)
      assert.is_true(y.requires_grad)
      y:sum():backward()
      is({0, 0}, w.grad)
    end
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

  it("a traced EmbeddingBag takes any number of rows", function()
    for _, mode in ipairs {"sum", "mean", "max"} do
      for _, padding in ipairs {false, 3} do
        local bag = nn.EmbeddingBag(10, 3, {mode = mode, padding_idx = padding or nil})
        local traced, ids = tycho.jit.trace(bag, tycho.randint(1, 10, {2, 4})), tycho.randint(1, 10, {5, 4})
        helper.close(bag(ids), traced(ids))
      end
    end
  end)

  it("the places of extremes with keepdim are those without", function()
    local x = tycho.randn(2, 3, 4, 1, 1, 1, 1, 40):permute(8, 1, 2, 3, 4, 5, 6, 7)
    for _, y in ipairs {x, x:contiguous(), tycho.randn(5, 70, 6), tycho.randn(30, 8):t()} do
      for dim = 1, y:dim() do
        for _, name in ipairs {"max", "min"} do
          local v, at = y[name](y, dim)
          local kept, kept_at = y[name](y, dim, {keepdim = true})
          assert.is_true(kept:squeeze(dim):equal(v) and kept_at:squeeze(dim):equal(at))
          assert.is_true(y["arg" .. name](y, dim, {keepdim = true}):squeeze(dim):equal(at))
        end
      end
    end
  end)

  it("a trace follows no size that the model looks at", function()
    local function refuses(rows, fn)
      local traced = tycho.jit.trace(fn, tycho.ones(rows, 2))
      helper.fails("the trace was made for", traced, tycho.ones(rows + 3, 2))
    end
    refuses(4, function(x) return x * (x:size(1) % 2) end)
    refuses(4, function(x) return x:size(1) > 3 and x * 2 or x * 3 end)
    refuses(1, function(x) return x:size(1) > 2 and x * 2 or x * 3 end)
    refuses(1, function(x) return x * math.max(3, x:size(1)) end)
  end)

  it("traces of recurrent layers and cells take any number of rows", function()
    for _, name in ipairs {"RNN", "GRU", "LSTM"} do
      local cell, layer = nn[name .. "Cell"](6, 3), nn[name](6, 3)
      local x, y = tycho.randn(7, 6), tycho.randn(5, 7, 6)
      helper.close((cell(x)), (tycho.jit.trace(cell, tycho.randn(4, 6))(x)))
      helper.close((layer(y)), (tycho.jit.trace(layer, tycho.randn(4, 2, 6))(y)))
    end
  end)

  it("isin among many values, NaN among them", function()
    local x = T({{1, nan, 3}, {-inf, 5.5, 2}})
    local values = tycho.cat {tycho.range(3, 20), T {nan, -inf}}
    assert.same({{false, false, true}, {true, false, false}}, x:isin(values):totable())
    assert.same({{true, true, false}, {false, true, true}}, x:isin(values, {invert = true}):totable())
    assert.same({true, false}, T({3, 4}, i64):isin(T({1, 3, 9}, i64)):totable())
    assert.same({false, false}, T({3, 4}, i64):isin(tycho.zeros(0)):totable())
    assert.same({true, false}, T({3, 4}, i64):isin(T {{{3}}}):totable())
    assert.same({false, true}, T({true, false}):isin(T {false}):totable())
    assert.is_false(T(0.1):isin(T({0.1}, {dtype = "float64"})):item())            -- in the wider dtype
    local many = tycho.randint(1, 100000, {100000})
    assert.is_true(many:isin(many:flip(1)):all():item())
  end)

  it("nan_to_num's replacements aren't replaced again", function()
    assert.same({inf}, T({nan}):nan_to_num(inf):totable())
    assert.same({-inf}, T({inf}):nan_to_num(0, -inf):totable())
    is({7, 1, 2, 3}, T({nan, inf, -inf, 3}):nan_to_num(7, 1, 2))
    local x = T({nan, inf, -inf, 3}, {requires_grad = true})
    is({0, 0, 0, 1}, tycho.grad(x:nan_to_num():sum(), x))
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

  it("a tensor without a name is saved beside one named as it would be", function()
    local path = helper.folder() .. "/unnamed"
    tycho.save(path, {[""] = tycho.ones(1), tensor = tycho.zeros(2)})
    local back = tycho.load(path)
    assert.same({1}, back[""]:totable())
    assert.same({0, 0}, back.tensor:totable())
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

  it("cuda.amp.autocast is of GPUs alone", function()
    local function dtype() return tycho.mm(tycho.ones(2, 2, cpu), tycho.ones(2, 2, cpu)).dtype end
    assert.equal("float32", tycho.cuda.amp.autocast(dtype))
    assert.equal("float32", (tycho.cuda.amp.autocast({dtype = "bfloat16"}, dtype)))
    assert.equal("bfloat16", tycho.amp.autocast(dtype))
  end)

  it("names of PyTorch's tell what is here instead", function()
    helper.fails("a tensor has no 'grad_fn': is_leaf tells", function() return tycho.ones(1).grad_fn end)
    helper.fails("a tensor has no 'type': use x.dtype for its dtype's name", function() return tycho.ones(1):type() end)
    helper.fails("tycho has no 'Size': a shape is a plain list", function() return tycho.Size end)
    helper.fails("vision has no 'transforms': use tycho.data.transforms", function() return tycho.vision.transforms end)
    helper.fails("cuda has no 'CUDAGraph': use cuda.graph(fn), which records", function() return tycho.cuda.CUDAGraph end)
    assert.is_false(tycho.backends.mps.is_available())
  end)

  it("logic in place on bytes is of truth values", function()
    local u, v = T({4, 0, 2, 1}, {dtype = "uint8"}), T({3, 1, 2, 0}, {dtype = "uint8"})
    for name, want in pairs {logical_and_ = {1, 0, 1, 0}, logical_or_ = {1, 1, 1, 1}, logical_xor_ = {0, 1, 0, 1}} do
      local x = u:clone()
      x[name](x, v)
      assert.same(want, x:totable(), name)
      local b = u:bool()
      b[name](b, v)
      assert.same(want, b:int():totable(), name)
    end
    local x = u:clone()
    x:logical_not_()
    assert.same({0, 1, 0, 0}, x:totable())
    x = u:clone()
    x:bitwise_and_(v)
    assert.same({0, 0, 2, 0}, x:totable())
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

  it("grids may lie in any way", function()
    local x, grid = tycho.randn(1, 1, 4, 4), tycho.rand(1, 2, 3, 2):permute(1, 4, 3, 2)
    helper.close(F.grid_sample(x, grid:contiguous(), {mode = "bicubic"}), F.grid_sample(x, grid, {mode = "bicubic"}))
    local volume, places = tycho.randn(1, 1, 3, 4, 4), tycho.rand(1, 3, 2, 3, 2):permute(1, 5, 4, 3, 2)
    helper.close(F.grid_sample(volume, places:contiguous()), F.grid_sample(volume, places))
  end)

  it("arguments follow one another where PyTorch's may", function()
    local x, y, one = T {1, -2, 4}, T {0.5, 1, -1}, T {1, -1, 1}
    is({9, -3, 6, -4}, x:diff(1, 1, T {-8}, T {0}))
    is({{2, 2}, {2, 3}, {3, 3}}, T({2, 3}):combinations(2, true))
    local planes = tycho.range(1, 16):view(1, 1, 4, 4)
    is({{{{3.5, 5}, {9.5, 11}}}}, F.avg_pool2d(planes, 3, 2, 1, false, false))
    is({{{{-7, -11}, {-23, -27}}}}, F.avg_pool2d(planes, 2, 2, 0, false, true, -2))
    is({{{{{-7, -11}, {-23, -27}}}}}, F.avg_pool3d(planes:unsqueeze(1), {1, 2, 2}, 2, 0, false, true, -2))
    is(0, F.margin_ranking_loss(x, y, one, 0.5))
    is(3, F.hinge_embedding_loss(x, one, 2))
    is(0.2696, F.binary_cross_entropy(T {0.2, 0.9}, T {0, 1}, T {1, 3}), 1e-3)
    is(7.5, F.triplet_margin_loss(x:unsqueeze(1), y:unsqueeze(1), one:unsqueeze(1), 3, 1))
    is(18.3173, F.poisson_nll_loss(x, y:abs(), true, true), 1e-5)
    is(6.6273, F.gaussian_nll_loss(x, y, one:abs(), true), 1e-5)
    is(2.8333, F.multi_margin_loss(T {{1, 2, 3}}, T({1}, i64), 2, 0.5), 1e-4)
    is({0.7062, 1.4072, 2.0979, 2.7735}, F.local_response_norm(planes, 2, 1e-2, 0.5, 2)[{1, 1, 1, {}}]:flatten(), 1e-4)
    is({{{{11}}}}, F.grid_sample(planes, tycho.zeros(1, 1, 1, 2), "nearest", "border", true))
    is({{{{-1, 0}, {1, 0}}}}, F.affine_grid(T {{{1, 0, 0}, {0, 1, 0}}}, {1, 1, 1, 2}, true))
    local var, mean = x:var_mean(false)
    is({6, 1}, tycho.stack {var, mean})
    assert.same({2, 0, 0, 0}, tycho.bincount(T({1, 1}, i64), nil, 4):totable())
    helper.fails("at most 2 arguments", F.mse_loss, x, y, x, x)
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

  it("tensors without dims are vectors of one to functions of indices", function()
    local x, first = T(3), T({1}, i64)
    is(5, x:index_add(1, first, T(2)))
    is(3, x:index_select(1, first))
    is(7, x:index_copy(1, first, T {7}))
    is(7, x:index_fill(1, first, 7))
    is(6, x:index_reduce(1, first, T(2), "prod"))
    is({3, 1}, T({1, 2, 3}):take_along_dim(T({-1, 1}, i64), 1))
    is({3, 1}, T({1, 2, 3}):take_along_dim(T({-1, 1}, i64)))
    helper.fails("must hold indices", x.take_along_dim, T {1, 2}, T {true}, 1)
    helper.fails("out of range", x.index_fill, x, 1, T({5}, i64), T(7, {requires_grad = true}))
    helper.fails("one element must be chosen, got 2", x.index_select, x, 1, T({1, 1}, i64))
  end)

  it("smaller ones of PyTorch's calls", function()
    is({3, -4}, T({7, -7}):div_(2, {rounding_mode = "floor"}))
    is({3, -3}, T({7, -7}):divide_(T {2}, {rounding_mode = "trunc"}))
    local v, at, n = T({{1, 1, 2}, {1, 1, 3}}):unique_consecutive(true, true, 2)
    assert.same({{{1, 2}, {1, 3}}, {1, 1, 2}, {2, 1}}, {v:totable(), at:totable(), n:totable()})
    local rank = tycho.linalg.matrix_rank
    assert.equal(1, rank(tycho.diag(T {1, 1e-3, 0}), {atol = 1e-2}):item())
    assert.same({2, 1}, rank(tycho.stack {tycho.eye(2), tycho.eye(2)} * T({1, 0.1}):diag(), nil, true, {atol = T {0.01, 0.5}}):totable())
    is({{1, 0}, {0, 0}}, tycho.linalg.pinv(T {{1, 0}, {0, 1e-4}}, {atol = 1e-3}))
    local thin = T({{0.1, 0.2}, {0.3, 0.6}}, {dtype = "float64"})
    assert.same({1, 1, 2}, {rank(thin):item(), rank(thin, {atol = 0}):item(), rank(thin, 0):item()})
    is({{0.5, 0}, {0, 1}}, tycho.linalg.pinv(T {{2, 9}, {0, 1}}, {hermitian = true}))
    is({{7, 2}, {1, 8}}, tycho.masked_scatter(T {1, 2}, T {{true, false}, {false, true}}, T {7, 8}))
    assert.equal("2x0", tostring(tycho.linalg.solve(tycho.zeros(2, 0, 0), tycho.zeros(2, 0)).shape))
    local w = tycho.zeros(2, {requires_grad = true})
    is({0, 0}, tycho.grad(tycho.linalg.norm(w, -1), w))
    local two = tycho.atleast_2d {T(1), tycho.zeros(2, 3)}
    assert.same({"1x1", "2x3"}, {tostring(two[1].shape), tostring(two[2].shape)})
    assert.equal("int32", tycho.triu_indices(3, 3, 0, {dtype = "int32"}).dtype)
    assert.same({{0, 1}}, F.one_hot(T({2}, i64), -1):totable())
    assert.equal("0x1x2x2", tostring(F.pixel_shuffle(tycho.zeros(0, 4, 1, 1), 2).shape))
    assert.equal("float64", F.softmin(w, 1, {dtype = "float64"}).dtype)
    assert.equal("1x1x2x2", tostring(F.max_pool2d(tycho.zeros(1, 1, 4, 4), {2}).shape))
  end)
end)

describe("found by a demanding user", function()
  it("a 0-dim index is a number also where a new dim lies between it and others", function()
    local x = tycho.range(1, 24):view(2, 3, 4)
    local y = x[{ {}, tycho.tensor(2, i64), tycho.newaxis, tycho.tensor({1, 3}, i64) }]
    assert.equal("2x1x2", tostring(y.shape))
    assert.same({{{5, 7}}, {{17, 19}}}, y:totable())
  end)

  it("keep keeps all that it is given", function()
    local a, b
    tycho.scope(function()
      a, b = tycho.ones(1), {tycho.ones(2)}
      local c, d = tycho.keep(a, b)
      assert.is_true(rawequal(c, a) and rawequal(d, b))
    end)
    assert.same({1, {1, 1}}, {a:item(), b[1]:totable()})
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

  it("lists stand for vectors where numbers are given", function()
    assert.same({1.75, 2.5}, tycho.tensor({1, 2, 3, 4}):quantile({0.25, 0.5}):totable())
    helper.close(tycho.distributions.Categorical {probs = {1, 3}}.probs, tycho.tensor {0.25, 0.75})
    helper.fails("got an empty one", tycho.data.WeightedRandomSampler, {}, 1)
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

  it("NAdam's momentum follows from all betas that there were", function()
    local f64 = {dtype = "float64"}
    local want = {{0.995877262753, 1.995877262740}, {0.990271287491, 1.990271102699}, {0.978142817340, 1.978141624225},
      {0.955576882217, 1.955570605313}, {0.919563377523, 1.919536685383}, {0.868851697908, 1.868758675283}}      -- PyTorch 2.15's
    local function made(x)
      local p = nn.Parameter(T(x, f64))
      local opt = optim.NAdam({p}, {lr = 0.01})
      return p, opt, optim.lr_scheduler.OneCycleLR(opt, 0.1, {total_steps = 30})
    end
    local function step(p, opt, schedule)
      opt:zero_grad();
      (p ^ 2 * T({1, 3}, f64) + p:sin()):sum():backward()
      opt:step()
      schedule:step()
    end
    local p, opt, schedule = made {1, 2}
    local saved, position
    for i, x in ipairs(want) do
      step(p, opt, schedule)
      helper.close(p:detach(), T(x, f64))
      if i == 3 then saved, position = opt:state_dict(), schedule:state_dict() end
      if i == 3 then for _, s in pairs(saved.state) do for k, v in pairs(s) do s[k] = k ~= "beta1_seen" and v:clone() or v end end end
    end
    local q = nn.Parameter(T({1}, f64))                    -- one that comes later counts for itself
    p = nn.Parameter(T({1, 2}, f64))
    opt = optim.NAdam({p, q}, {lr = 0.01})
    schedule = optim.lr_scheduler.OneCycleLR(opt, 0.1, {total_steps = 30})
    for i, x in ipairs(want) do
      p.grad, q.grad = nil, i > 3 and T({1}, f64) or nil;
      (p ^ 2 * T({1, 3}, f64) + p:sin()):sum():backward()
      opt:step()
      schedule:step()
      helper.close(p:detach(), T(x, f64))
    end
    for _, file in ipairs {"Tycho's", "PyTorch's"} do
      if file == "PyTorch's" then
        saved.state[1].beta1_seen = nil
        saved.state[1].mu_product = T(0.10520000755786896)
      end
      p, opt, schedule = made(want[3])
      opt:load_state_dict(saved)
      schedule:load_state_dict(position)
      for i = 4, 6 do
        step(p, opt, schedule)
        helper.close(p:detach(), T(want[i], f64), file, file == "Tycho's" and 1e-10 or 1e-6)
      end
    end
  end)

  it("an element is read and written alone as by views", function()
    local m = tycho.range(1, 6):view(2, 3)
    assert.same({6, 1, 3}, {m[{2, 3}], m[{-2, -3}], m[{1, -1}]})
    m[{2, 3}], m[{1, -1}] = 0.5, -2
    assert.same({{1, 2, -2}, {4, 5, 0.5}}, m:totable())
    local mask, bytes = T {true, false}, T({1, 2}, {dtype = "uint8"})
    mask[2], bytes[1] = true, 255
    assert.same({{true, true}, {255, 2}}, {mask:totable(), bytes:totable()})
    helper.fails("a field that isn't a position", function() return m[{1, 2, x = 3}] end)
    helper.fails("index 4 is out of range for dim 2", function() m[{1, 4}] = 1 end)
    helper.fails("indices begin at 1", function() return m[{0, 1}] end)
    local w, x = tycho.ones(2, {requires_grad = true}), tycho.ones(2)
    helper.fails("a leaf that requires grad", function() w[1] = 2 end)
    local y = (w * x):sum()
    x[1] = 5                                               -- which the product has saved
    helper.fails("was changed in place", y.backward, y)
    local buffer = tycho.ones(2)                           -- which what is compiled has yet to read
    local f = tycho.compile(function(z)
      local sum = z + buffer
      coroutine.yield()
      return sum * 2
    end)
    local function run(between)
      local co = coroutine.create(function() return f(tycho.ones(2)) end)
      coroutine.resume(co)
      between()
      return select(2, coroutine.resume(co))
    end
    for _ = 1, 4 do run(function() end) end
    helper.close(run(function() buffer[1] = 100 end), T {4, 4})
    local r = w * 2
    r[1] = 7
    assert.same({0, 2}, tycho.grad(r:sum(), w):totable())
  end)

  it("relu hands gradients on where its result is NaN", function()
    local x = T({-1, nan, 2, 0}, {requires_grad = true})
    x:relu():sum():backward()
    assert.same({0, 1, 1, 0}, x.grad:totable())
  end)

  it("what extend doesn't call can't be defined", function()
    local S = tycho.optim.lr_scheduler.LRScheduler:extend("S")
    helper.fails("'init' isn't called", function() function S:init() end end)
  end)

  it("isclose and allclose of whole numbers don't wrap around", function()
    local function I(v, dtype) return T(v, {dtype = dtype}) end
    assert.is_false(tycho.allclose(I({2 ^ 31 - 1}, "int32"), I({-1}, "int32")))
    assert.is_false(tycho.allclose(I({0}, "int32"), I({-2 ^ 31}, "int32")))
    assert.is_false(tycho.allclose(I({2 ^ 62}, "int64"), I({-2 ^ 62}, "int64")))
    assert.is_false(tycho.allclose(I({2 ^ 53}, "int64"), I({2 ^ 53}, "int64") + 1, {rtol = 0, atol = 0}))
    assert.is_true(tycho.allclose(I({7, 200}, "uint8"), I({8, 199}, "uint8"), {atol = 1}))
    assert.is_true(tycho.isclose(I({1000000}, "int64"), I({1000001}, "int64")):item())
  end)

  it("div truncates what is whole by a negative number or a boolean", function()
    local function trunc(a, b) return tycho.div(a, b, {rounding_mode = "trunc"}):totable() end
    assert.same({253, 252}, trunc(T({7, 9}, {dtype = "uint8"}), -2))                  -- -3 and -4, as bytes
    assert.same({-3, 3, 0}, trunc(T({7, -7, 1}, {dtype = "int32"}), -2))
    assert.same({-3, -2}, trunc(-7, T({2, 3}, {dtype = "int64"})))
    assert.same({7, -8}, trunc(T({7, -8}, {dtype = "int32"}), true))
    assert.same({2, -1}, trunc(true, T {0.5, -0.7}))
  end)

  it("take counts negative positions from the end", function()
    assert.same({{3, 1}, {6, 2}}, T({{1, 2, 3}, {4, 5, 6}}):take(T({{3, 1}, {-1, -5}}, {dtype = "int64"})):totable())
  end)

  it("quantile has a gradient by q", function()
    local q = T({0.25, 0.5}, {requires_grad = true})
    tycho.quantile(T {1, 2, 5, 9}, q):sum():backward()
    assert.same({3, 9}, q.grad:totable())
    local x, p = T({{1, 2, 5}, {4, 0, 3}}, {requires_grad = true, dtype = "float64"}), T(0.3, {requires_grad = true, dtype = "float64"})
    assert.is_true(tycho.autograd.gradcheck(function(v, part) return tycho.quantile(v, part, 2) end, {x, p}))
  end)

  it("masked_scatter asks for a mask of booleans", function()
    helper.fails("must be a bool tensor, got float32", tycho.masked_scatter, T {1, 2}, T {1, 0}, T {5, 6})
  end)

  it("whole numbers don't fit in place into booleans", function()
    local x = T({true, false}, {dtype = "bool"})
    helper.fails("clamp_: the result of dtype int64 doesn't fit in place into dtype bool", x.clamp_, x, 2)
    helper.fails("doesn't fit in place into dtype bool", x.clip_, x, 0, T(1, {dtype = "int32"}))
    assert.same({true, false}, x:totable())
  end)

  it("a result with more dims doesn't fit in place", function()
    local x = tycho.ones(2, 2)
    helper.fails("clamp_: the result of shape 1x2x2 doesn't fit in place into shape 2x2", x.clamp_, x, tycho.full({1, 2, 2}, 3), nil)
    assert.same({{1, 1}, {1, 1}}, x:totable())
  end)
end)
