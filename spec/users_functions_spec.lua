-- Functions as PyTorch's users call them: reductions, convolutions, losses, lists of tensors, autocast, distributions.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, D = tycho.nn, tycho.nn.functional, tycho.distributions
local close, device = helper.close, helper.device
local DEVICE = tycho.get_default_device()

describe("users' functions", function()
  -- As helper.fails, but for what that has a GPU wait: an error may come late.
  local function fails(text, fn, ...)
    local ok, e = pcall(fn, ...)
    assert.is_false(ok)
    assert.is_truthy(e:find(text, 1, true), e)
  end

  it("keepdim has a place, and what is added up a dtype", function()
    local x = tycho.tensor({{1, 2, 3}, {4, 5, 6}})
    for _, name in ipairs {"sum", "mean", "prod", "amax", "amin", "argmax", "logsumexp", "max", "min", "median"} do
      assert.equal("2x1", tostring((x[name](x, 2, true)).shape), name)
      assert.equal("2", tostring((x[name](x, 2)).shape), name)
    end
    assert.equal("2x1", tostring(x:norm(2, 2, true).shape))
    assert.equal("2x1", tostring(x:quantile(0.5, 2, true).shape))
    assert.equal("float64", x:sum({dtype = "float64"}).dtype)
    assert.equal(21, x:to("uint8"):sum(nil, {dtype = "float32"}):item())
    assert.equal("int64", x:cumsum(1, {dtype = "int64"}).dtype)
    -- 16-bit scores are widened before the exponentials, and the gradient comes back in 16 bits
    local scores = (tycho.randn(3, 5) * 3):half():requires_grad_(true)
    local y = F.softmax(scores, -1, {dtype = "float32"})
    helper.close(y, F.softmax(scores:detach():float(), -1), "softmax", 0)
    F.log_softmax(scores, -1, {dtype = "float32"}):select(2, 1):sum():backward()
    assert.equal("float16", scores.grad.dtype)
    local f = tycho.compile(function(a) return F.softmax(a, -1, {dtype = "float32"}):sum(1, true) end)
    for _ = 1, 3 do helper.close(f(scores:detach()), y:detach():sum(1, true), "compiled", 1e-6) end
    fails("dtype", x.sum, x, 1, {dtype = "float31"})
    -- the dtype asked for is the result's; in place it can only be the tensor's own
    assert.equal("int32", tycho.tensor({1.5, 1.5}):sum(1, {dtype = "int32"}).dtype)
    assert.equal(44, tycho.full({300}, 1):sum({dtype = "uint8"}):item())
    assert.same({1, 3, 6}, tycho.tensor({1, 2, 3}):cumsum_(1, {dtype = "float32"}):totable())
    fails("cumsum: dtype float64 can't be given for a result in place, which stays float32", x.cumsum_, x, 1, {dtype = "float64"})
    fails("any: unknown option 'dtype'", x.any, x, {dtype = "int32"})
    tycho.amp.autocast({dtype = "bfloat16"},
      function() assert.equal("bfloat16", scores:detach():softmax(1, {dtype = "bfloat16"}).dtype) end)
  end)

  it("functions of lists take their tensors also one after the other", function()
    local a, b = tycho.tensor({1, 2}), tycho.tensor({3, 4, 5})
    local one, other = {tycho.meshgrid(a, b, {indexing = "xy"})}, {tycho.meshgrid({a, b}, {indexing = "xy"})}
    for i = 1, 2 do helper.close(one[i], other[i], "grid", 0) end
    helper.close(tycho.cartesian_prod(a, b), tycho.cartesian_prod({a, b}), "product", 0)
    assert.equal("3x5", tostring(tycho.block_diag(tycho.ones(1, 2), tycho.ones(2, 3)).shape))
    assert.equal("2x3", tostring(select(2, tycho.broadcast_tensors(tycho.ones(2, 1), b)).shape))
  end)

  it("convolutions take padding in words, with kernels of any size", function()
    local x, w = tycho.randn(2, 3, 7, 6), tycho.randn(4, 3, 2, 4)
    helper.close(F.conv2d(x, w, {padding = "same"}), F.conv2d(F.pad(x, {1, 2, 0, 1}), w), "same", 0)
    helper.close(F.conv2d(x, w, {padding = "valid"}), F.conv2d(x, w), "valid", 0)
    assert.equal("4x7x6", tostring(F.conv2d(x[1], w, {padding = "same"}).shape))
    local row, taps = tycho.randn(2, 3, 9), tycho.randn(4, 3, 4)
    helper.close(F.conv1d(row, taps, {padding = "same", dilation = 2}), F.conv1d(F.pad(row, {3, 3}), taps, {dilation = 2}), "1-d", 0)
    helper.close(F.conv1d(row, taps, {padding = {1}}), F.conv1d(row, taps, nil, 1, 1), "a list of one", 0)
    local conv, around = nn.Conv2d(3, 4, {2, 4}, {padding = "same"}), nn.Conv2d(3, 4, {2, 4}, {padding = "same", padding_mode = "circular"})
    helper.close(conv(x), F.conv2d(x, conv.weight, conv.bias, {padding = "same"}), "layer", 0)
    helper.close(around(x), F.conv2d(F.pad(x, {1, 2, 0, 1}, {mode = "circular"}), around.weight, around.bias), "layer, around", 0)
    fails("conv2d: padding 'same' needs stride 1", F.conv2d, x, w, {padding = "same", stride = 2})
    fails("conv2d: padding must be whole numbers from 0, 'valid' or 'same', got 'sane'", F.conv2d, x, w, {padding = "sane"})
    assert.equal("Conv2d(3, 4, kernel_size=2x4, stride=1x1, padding=same, padding_mode=circular)", tostring(around))
    fails("conv1d: padding must be whole numbers from 0, 'valid' or 'same', got a table", F.conv1d, row, taps, {padding = {1, 2}})
    fails("Conv2d: padding must be whole numbers from 0, 'valid' or 'same', got 'sane'", nn.Conv2d, 3, 4, 3, {padding = "sane"})
    fails("ConvTranspose2d: padding must be whole numbers, got 'same'", nn.ConvTranspose2d, 3, 4, 3, {padding = "same"})
  end)

  it("pictures are read by a grid", function()
    local x = tycho.randn(2, 3, 5, 4)
    local same = F.affine_grid(tycho.tensor({{1, 0, 0}, {0, 1, 0}}):unsqueeze(1):expand(2, 2, 3), {2, 3, 5, 4})
    helper.close(F.grid_sample(x, same), x, "the identity", 1e-5)
    local flipped = F.affine_grid(tycho.tensor({{-1, 0, 0}, {0, 1, 0}}):unsqueeze(1):expand(2, 2, 3), {2, 3, 5, 4}, {align_corners = true})
    helper.close(F.grid_sample(x, flipped, {align_corners = true}), x:flip({4}), "mirrored", 1e-5)
    local out = same:clone()
    out[{1, 1, 1, 1}] = 0 / 0                            -- counts as -1
    assert.is_false(F.grid_sample(x, out):isnan():any():item())
    local y, places = F.max_pool2d(x, 2, {return_indices = true})
    helper.close(F.max_pool2d(nn.MaxUnpool2d(2)(y, places, {output_size = {5, 4}}), 2), y:clamp(0), "there and back", 0)
    fails("grid_sample: argument 2 has shape 1x5x4x2; it must be (2, height, width, 2)", F.grid_sample, x, same[{{1, 1}}])
    fails("affine_grid: theta has shape 2x3x2", F.affine_grid, tycho.ones(2, 3, 2), {2, 3, 5, 4})
  end)

  it("ctc_loss has its gradient, and says what doesn't fit", function()
    local x = tycho.randn(6, 2, 4, {dtype = "float64", requires_grad = true})
    local y = tycho.tensor({{2, 3}, {4, 1}}, {dtype = "int64"})
    assert.is_true(tycho.autograd.gradcheck(function(z) return F.ctc_loss(F.log_softmax(z, 3), y, {6, 5}, {2, 1}) end, {x}))
    assert.is_true(tycho.autograd.gradcheck(function(z) return F.ctc_loss(z, y, {6, 5}, {2, 1}, {reduction = "sum"}) end, {x}))
    assert.is_true(tycho.autograd.gradgradcheck(function(z) return F.ctc_loss(F.log_softmax(z, 3), y, {6, 5}, {2, 1}) end, {x}))
    local loss = nn.CTCLoss {zero_infinity = true}
    helper.close(loss(F.log_softmax(x, 3), y, {6, 5}, {2, 1}), F.ctc_loss(F.log_softmax(x, 3), y, {6, 5}, {2, 1}), "layer", 1e-12)
    -- a target that doesn't fit into the steps: no gradient, with zero_infinity
    local w = tycho.randn(2, 1, 4, {requires_grad = true})
    loss(F.log_softmax(w, 3), tycho.tensor({{2, 2, 3}}, {dtype = "int64"}), {2}, {3}):backward()
    assert.equal(0, w.grad:abs():max():item())
    local logs = F.log_softmax(x:detach(), 3)
    helper.close(F.ctc_loss(logs:half(), y, {6, 5}, {2, 1}), F.ctc_loss(logs:half():float(), y, {6, 5}, {2, 1}), "16 bits", 1e-6)
    fails("input_lengths: number 2 is 7; it must be whole, from 0 to 6", F.ctc_loss, logs, y, {6, 7}, {2, 1})
    fails("target_lengths must be 2 whole numbers, one for each sequence", F.ctc_loss, logs, y, {6, 6}, {2})
    fails("targets have shape 3; they must be (2, S), or 4 labels one after the other", F.ctc_loss, logs,
      y:view(-1)[{{1, 3}}], {6, 6}, {2, 2})
    fails("blank must be from 1 to 4, got 0", F.ctc_loss, logs, y, {6, 6}, {2, 1}, 0)
  end)

  it("places out of range are refused, and extremes are exact in every dtype", function()
    local i64 = {dtype = "int64"}
    local x = tycho.tensor({{1, 2, 3}, {4, 5, 6}})
    for _, bad in ipairs {0, 4, -1} do
      fails("index " .. bad, function()
        x:scatter_reduce(2, tycho.tensor({{bad}, {1}}, i64), tycho.tensor({{10}, {20}}, {dtype = "float32"}), "sum")
        if helper.device ~= "cpu" then tycho.cuda.synchronize() tycho.ones(1):sum():item() end
      end)
    end
    local u8 = {dtype = "uint8"}
    assert.same({0, 7},
      tycho.tensor({9, 9}, u8):scatter_reduce(1, tycho.tensor({1, 1, 2}, i64), tycho.tensor({0, 5, 7}, u8), "amin"):totable())
    assert.same({0, 9},
      tycho.tensor({9, 9}, u8):scatter_reduce(1, tycho.tensor({1, 1}, i64), tycho.tensor({0, 5}, u8), "amin",
      {include_self = false}):totable())
    assert.equal(0, tycho.zeros(0):unique_consecutive():numel())
    assert.same({1, 1}, {unpack(tycho.randn(2, 3):nanquantile(0.3, nil, true).shape)})
    fails("from 1 to 6", tycho.unravel_index, tycho.tensor({7}, {dtype = "int64", device = "cpu"}), {2, 3})
    fails("stride 0", tycho.conv_transpose3d, tycho.ones(1, 1, 2, 2, 2), tycho.ones(1, 1, 2, 2, 2), {stride = {0, 1, 1}})
    assert.same({1, 1, 6}, {unpack(nn.ConvTranspose1d(1, 1, 3, {stride = 2})(tycho.ones(1, 1, 2), {6}).shape)})
    fails("must be from 5 to 6", nn.ConvTranspose1d(1, 1, 3, {stride = 2}), tycho.ones(1, 1, 2), {7})
    fails("adjust_lr_fn", tycho.optim.Muon, {tycho.ones(2, 2, {requires_grad = true})}, {adjust_lr_fn = "x"})
    fails("etas must be", tycho.optim.Rprop, {tycho.ones(2, {requires_grad = true})}, {etas = {2}})
    tycho.manual_seed(1)
    local a = nn.utils.spectral_norm(nn.Linear(3, 2))
    tycho.manual_seed(1)
    helper.close(nn.utils.spectral_norm(nn.Linear(3, 2)).weight_u, a.weight_u)
  end)

  it("a generator's state is one value, and losses want their target's shape", function()
    local cpu = {device = "cpu"}
    tycho.rand(5, cpu)
    local state = tycho.get_rng_state()
    local a = tycho.rand(3, cpu)
    tycho.set_rng_state(state)
    assert.is_true(a:equal(tycho.rand(3, cpu)))
    fails("set_rng_state: a list", tycho.set_rng_state, "x")
    fails("it must be 4x1 as argument 1's", F.binary_cross_entropy_with_logits, tycho.randn(4, 1), tycho.ones(4))
    fails("it must be 4x1 as argument 1's", F.binary_cross_entropy, tycho.rand(4, 1), tycho.ones(4))
    fails("padding_idx 9 is out of range for 3", F.embedding, tycho.tensor({1, 2}, {dtype = "int64"}), tycho.ones(3, 2), {padding_idx = 9})
    local y = tycho.utils.checkpoint(function(v, more) return v * 2, more end, tycho.ones(2, {requires_grad = true}),
      {use_reentrant = false})
    assert.same({2, 2}, y:totable())
    helper.close(nn.Softmax()(tycho.ones(4, 1, 1)):sum(), tycho.ones({}))
  end)
end)

describe("users' calls of functions", function()
  local fails = helper.fails

  it("work in place where that is asked for", function()
    local x = tycho.tensor {-1, 2}
    assert.is_true(rawequal(x, F.relu(x, {inplace = true})))
    assert.same({0, 2}, x:totable())
    assert.same({0, 2}, F.leaky_relu(x, 0.1, {inplace = false}):totable())
    for _, name in ipairs {"relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh"} do
      local w = tycho.randn({5}, {dtype = "float64", requires_grad = true})
      local h = w * 1
      F[name](h, {inplace = true}):sum():backward()
      local g = w.grad
      w.grad = nil
      F[name](w):sum():backward()
      assert.is_true(g:equal(w.grad), name)
    end
  end)

  it("give several results where PyTorch gives a tuple", function()
    local a, b = tycho.meshgrid(tycho.range(1, 2), tycho.range(1, 3), {indexing = "ij"})
    assert.same({{1, 1, 1}, {2, 2, 2}}, a:totable())
    assert.same({{1, 2, 3}, {1, 2, 3}}, b:totable())
    local p, q = tycho.broadcast_tensors(tycho.ones(2, 1), tycho.ones(3))
    assert.equal("2x3 2x3", ("%s %s"):format(tostring(p.shape), tostring(q.shape)))
    assert.equal("5x2x3", tostring(tycho.broadcast_shapes({2, 1}, {3}, {5, 1, 1}, {})))
    assert.equal("300000x300000", tostring(tycho.broadcast_shapes({300000, 1}, {300000})))
    fails("broadcast_shapes: dim 1 has 2 and 3 elements", tycho.broadcast_shapes, {2}, {3})
    fails("broadcast_shapes: argument 2 must be a list of sizes, got 3", tycho.broadcast_shapes, {2}, 3)
    assert.equal(tycho.zeros({}).shape, tycho.broadcast_shapes())
    fails("dim 2 has 2 and 0 elements", tycho.broadcast_tensors, tycho.ones(1, 2), tycho.ones(1, 0))
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

  it("tile tensors of many dims within vmap", function()
    local x = tycho.randn(2, 3, 1, 2, 4)
    local got = tycho.vmap(function(a) return a:tile(2, 3, 1, 2) end)(x)
    assert.is_true(got:equal(tycho.stack({x[1]:tile(2, 3, 1, 2), x[2]:tile(2, 3, 1, 2)})))
  end)

  it("are in 16 bits under autocast where they multiply matrices", function()
    tycho.amp.autocast({dtype = "bfloat16", device = helper.device}, function()
      assert.equal("bfloat16", tycho.addmm(tycho.ones(2), tycho.ones(2, 2), tycho.ones(2, 2)).dtype)
    end)
    local x = tycho.ones(2, 2)
    assert.equal("bfloat16", tycho.autocast(helper.device, tycho.bfloat16, tycho.mm, x, x).dtype)
    assert.equal("bfloat16", tycho.autocast(helper.device, {dtype = tycho.bfloat16}, tycho.mm, x, x).dtype)
    assert.equal("float32", tycho.autocast(helper.device, tycho.bfloat16, {enabled = false}, tycho.mm, x, x).dtype)
    fails("dtype must be 'float16' or 'bfloat16', got 'int64'", tycho.autocast, helper.device, "int64", tycho.mm, x, x)
  end)

  it("stay exact in sums of products under autocast", function()
    local x = tycho.full({70000}, 1)
    tycho.amp.autocast({device = DEVICE, dtype = "float16"}, function()
      for _, y in ipairs {x:dot(x), x:vdot(x), tycho.tensordot(x, x, 1), x:inner(x)} do assert.equal(70000, y:item()) end
      assert.equal("float32", nn.Bilinear(2, 3, 4)(tycho.ones(5, 2), tycho.ones(5, 3)).dtype)
      local half = tycho.ones(5, 2):mm(tycho.ones(2, 2))
      assert.same({"float16", "float32"}, {half.dtype, nn.Bilinear(2, 2, 4)(half, half).dtype})
      assert.equal("float32", half:flatten():dot(tycho.ones(10)).dtype)
    end)
  end)
end)

describe("users' distributions", function()
  local fails = helper.fails

  it("compare distributions, and leave parameters unchecked where asked #cpu", function()
    close(D.kl.kl_divergence(D.Normal(0, 1), D.Normal(1, 1)), tycho.tensor(0.5))
    fails("scale must be above 0", D.Normal, 0, -1)
    assert.equal(-1, D.Normal(0, -1, {validate_args = false}).scale:item())
    D.Distribution.set_default_validate_args(false)
    assert.equal(-1, D.Normal(0, -1).scale:item())
    fails("scale must be above 0", D.Normal, 0, -1, {validate_args = true})
    assert.equal(-1, D.LogNormal(0, -1).scale:item())
    D.Distribution:set_default_validate_args(true)
    fails("scale", D.HalfNormal, -1)
    assert.equal("HalfNormal", D.HalfNormal(-1, {validate_args = false})._name)
    fails("scale must be above 0", D.Normal, 0, -1)
  end)

  it("draw by a probability of their own", function()
    tycho.manual_seed(2)
    local x = tycho.zeros(4000)
    assert.is_true(math.abs(x:clone():bernoulli_():mean():item() - 0.5) < 0.05)
    assert.is_true(math.abs(x:bernoulli_(0.9):mean():item() - 0.9) < 0.05)
    assert.is_true(math.abs(tycho.bernoulli(x, 0.2):mean():item() - 0.2) < 0.05)
    assert.same({1, 0}, tycho.zeros(2):bernoulli_(tycho.tensor {1, 0}):totable())
    fails("argument 2 (p) must be a probability", x.bernoulli_, x, 2)
    assert.equal("3", tostring(D.Normal(0, 1):sample({sample_shape = {3}}).shape))
    fails("a shape must be one list", function() D.Normal(0, 1):sample(2, 3) end)
    fails("unknown option 'size'", function() D.Normal(0, 1):sample {size = 3} end)
    fails("Bernoulli: one of probs and logits is needed, got both", D.Bernoulli, 0.5, 0.5)
  end)

  it("the log of a generalized Pareto distribution's share of draws is that share's log", function()
    for _, c in ipairs {-0.3, 0, 0.4} do
      local d = tycho.distributions.GeneralizedPareto(0.5, 2, c)
      local x = tycho.tensor({0.6, 1, 2.5, 5}, {dtype = "float64", device = device})
      close(d:log_cdf(x), d:cdf(x):log(), c)
    end
  end)
end)
