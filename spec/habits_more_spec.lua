-- More of what users bring along from PyTorch: places of arguments, names, loaders' batches.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, data = tycho.nn, tycho.nn.functional, tycho.data

local function fails(text, fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(e:find(text, 1, true), e)
end

describe("what PyTorch's users write:", function()
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

  it("functions of lists take their tensors also one after the other", function()
    local a, b = tycho.tensor({1, 2}), tycho.tensor({3, 4, 5})
    local one, other = {tycho.meshgrid(a, b, {indexing = "xy"})}, {tycho.meshgrid({a, b}, {indexing = "xy"})}
    for i = 1, 2 do helper.close(one[i], other[i], "grid", 0) end
    helper.close(tycho.cartesian_prod(a, b), tycho.cartesian_prod({a, b}), "product", 0)
    assert.equal("3x5", tostring(tycho.block_diag(tycho.ones(1, 2), tycho.ones(2, 3)).shape))
    assert.equal("2x3", tostring(select(2, tycho.broadcast_tensors(tycho.ones(2, 1), b)).shape))
  end)

  it("modules are asked for their parts by path", function()
    local net = nn.Sequential(nn.Linear(2, 3), nn.ModuleDict {a = nn.ReLU(), b = nn.BatchNorm1d(3)})
    assert.equal(net[2].b, net:get_submodule("1.b"))
    assert.equal(net, net:get_submodule(""))
    assert.equal(net[1].weight, net:get_parameter("0.weight"))
    assert.equal(net[2].b.running_mean, net:get_buffer("1.b.running_mean"))
    local shared = nn.Linear(2, 2)                       -- by each of its paths
    assert.equal(shared, nn.Sequential(shared, shared):get_submodule("1"))
    assert.equal(shared.weight, nn.ModuleDict {x = shared, y = shared}:get_parameter("y.weight"))
    fails("get_parameter: the Sequential has no parameter '0.wait'", net.get_parameter, net, "0.wait")
    local seen = {}
    for name, m in net[2]:items() do seen[#seen + 1] = name .. m._name end
    assert.same({"aReLU", "bBatchNorm1d"}, seen)
    assert.same({"a", "b"}, net[2]:keys())
    assert.equal(2, #net[2]:values())
    helper.close(nn.ChannelShuffle(2)(tycho.range(1, 8):view(1, 4, 2)):flatten(), tycho.tensor({1, 2, 5, 6, 3, 4, 7, 8}), "shuffled", 0)
    local x = tycho.randn(1, 2, 3, 3)
    helper.close(nn.UpsamplingNearest2d({scale_factor = 2})(x), F.interpolate(x, {scale_factor = 2}), "nearest", 0)
    helper.close(nn.UpsamplingBilinear2d({size = {6, 5}})(x),
      F.interpolate(x, {size = {6, 5}, mode = "bilinear", align_corners = true}), "bilinear", 0)
  end)

  it("a Function's backward knows whose gradient is asked for", function()
    local asked
    local mul = tycho.autograd.Function {
      forward = function(ctx, a, b) ctx:save_for_backward(a, b) return a * b end,
      backward = function(ctx, g)
        local a, b = ctx:saved_tensors()
        asked = ctx.needs_input_grad
        return ctx.needs_input_grad[1] and g * b or nil, ctx.needs_input_grad[2] and g * a or nil
      end,
    }
    local a = tycho.tensor({2, 3}, {requires_grad = true})
    mul(a, tycho.tensor({5, 7})):sum():backward()
    assert.same({true, false}, asked)
    assert.same({5, 7}, a.grad:totable())
  end)

  it("a linear layer of which only the weight or the bias learns computes that gradient alone", function()
    local x, target = tycho.randn(4, 3), tycho.randn(4, 2)
    local function gradients(weight, bias)
      tycho.manual_seed(2)
      local l = nn.Linear(3, 2)
      l.weight.requires_grad, l.bias.requires_grad = weight, bias
      F.mse_loss(l(x), target):backward()
      return l.weight.grad, l.bias.grad
    end
    local w, b = gradients(true, true)
    local wa, none_b = gradients(true, false)
    local none_w, ba = gradients(false, true)
    helper.close(wa, w, "weight", 1e-6)
    helper.close(ba, b, "bias", 1e-6)
    assert.is_nil(none_b)
    assert.is_nil(none_w)
    -- the bias alone needs nothing of the input, which may change
    local l, a = nn.Linear(3, 2), tycho.randn(4, 3)
    l.weight.requires_grad = false
    local y = l(a)
    a:add_(1)
    y:sum():backward()
    assert.same({4, 4}, l.bias.grad:totable())
  end)

  it("a Transformer is its encoder and its decoder", function()
    local m = nn.Transformer(16, 2, 2, 1, 32, {dropout = 0, batch_first = true})
    local src, tgt, mask = tycho.randn(2, 5, 16), tycho.randn(2, 3, 16), nn.Transformer.generate_square_subsequent_mask(3)
    assert.same({{0, -math.huge}, {0, 0}}, m:generate_square_subsequent_mask(2):totable())
    local padding = tycho.zeros(2, 5):bool()
    padding[2][5] = true
    local want = m.decoder(tgt, m.encoder(src, {src_key_padding_mask = padding}), {tgt_mask = mask, memory_key_padding_mask = padding})
    helper.close(m(src, tgt, {tgt_mask = mask, src_key_padding_mask = padding, memory_key_padding_mask = padding}), want, "output", 1e-6)
    -- a later target doesn't reach an earlier result
    local changed = tgt:clone()
    changed[{{}, 3}] = 9
    helper.close(m(src, changed, {tgt_mask = mask})[{{}, {1, 2}}], m(src, tgt, {tgt_mask = mask})[{{}, {1, 2}}], "causal", 1e-5)
    fails("src and tgt have shapes 2x5x16 and 2x3x8; both need 2 dims, or 3 with batches, of which the last is 16", m,
      src, tycho.randn(2, 3, 8))
    fails("src and tgt have shapes 2x5x16 and 3x3x16; dim 1, the batch, must be equal", m, src, tycho.randn(3, 3, 16))
    fails("tgt must be a tensor, got nil", m, src)
  end)

  it("a loader takes whole batches from a batch_sampler", function()
    local ds = data.TensorDataset(tycho.range(1, 10):cpu(), tycho.range(1, 10):cpu():long())
    local function batches(o)
      local l, out = data.DataLoader(ds, o), {}
      for x in l:iter() do out[#out + 1] = x:totable() end
      assert.equal(#out, l:size())
      l:close()
      return out
    end
    assert.same({{1, 2}, {3}, {10, 9, 8}}, batches {batch_sampler = {{1, 2}, {3}, {10, 9, 8}}})
    assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10}}, batches {batch_sampler = data.BatchSampler(data.SequentialSampler(ds), 4)})
    assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}},
      batches {batch_sampler = data.BatchSampler(data.SequentialSampler(ds), 4, true), num_workers = 2,
      persistent_workers = true})
    local function random(workers)
      return batches {batch_sampler = data.BatchSampler(data.RandomSampler(ds), 3), seed = 5, num_workers = workers}
    end
    assert.same(random(0), random(2))
    local own = {iter = function()
      local i = 0
      return function()
        i = i + 1
        return i <= 2 and {i, i + 1} or nil
      end
    end}
    assert.same({{1, 2}, {2, 3}}, batches {batch_sampler = own})
    -- an epoch goes on where it was left
    local function loader() return data.DataLoader(ds, {batch_sampler = data.BatchSampler(data.RandomSampler(ds), 3), seed = 7}) end
    local l, again = loader(), loader()
    local it = l:iter()
    it()
    again:load_state_dict(l:state_dict())
    assert.same(it():totable(), again:iter()():totable())
    fails("batch_sampler names item 11, which is out of range for 10 items", data.DataLoader, ds, {batch_sampler = {{1, 11}}})
    -- any object with iter(), which is not asked again when it has ended
    local ten = {iter = function() return coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i) end end) end}
    assert.same({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10}}, batches {batch_sampler = data.BatchSampler(ten, 3)})
    assert.same({{3, 1}, {2}}, batches {batch_sampler = data.BatchSampler({3, 1, 2}, 2)})
    fails("BatchSampler: argument 'batch_size' is missing", data.BatchSampler, ten)
    fails("the state is of a loader without a batch_sampler", again.load_state_dict, again,
      data.DataLoader(ds, {batch_size = 1}):state_dict())
    fails("batch_sampler must give lists of positions, got an empty one", data.DataLoader, ds, {batch_sampler = {{}}})
    fails("batch_sampler and shuffle exclude each other", data.DataLoader, ds, {batch_sampler = {{1}}, shuffle = true})
    fails("batch_sampler and batch_size exclude each other", data.DataLoader, ds, {batch_sampler = {{1}}, batch_size = 2})
  end)

  it("a worker process has all of Tycho, whatever its dataset's module asks for", function()
    if os.getenv "TYCHO_BUILD" == "build-asan" then return end       -- the stock luajit can't open that build
    local loader, got = data.DataLoader(data.Dataset("spec.fixtures.numbers", {n = 4}),
      {num_workers = 1, batch_sampler = {{1, 2}, {4}}}), {}
    for x, even in loader:iter() do got[#got + 1] = {x:totable(), even:totable()} end
    loader:close()
    assert.same({{{10, 20}, {false, true}}, {{40}, {true}}}, got)
  end)

  it("optimizers' options are what they must be", function()
    local p = {nn.Parameter(tycho.ones(2))}
    fails("Adadelta: rho must be in 0..1, got 1.5", tycho.optim.Adadelta, p, {rho = 1.5})
    fails("NAdam: decoupled_weight_decay must be a boolean, got 1", tycho.optim.NAdam, p, {decoupled_weight_decay = 1})
    local adam, delta = tycho.optim.Adam(p), tycho.optim.Adadelta(p)
    p[1].grad = tycho.ones(2)
    adam:step()
    fails("load_state_dict: the state of parameter 1 has no '", delta.load_state_dict, delta, adam:state_dict())
    tycho.optim.AdamW(p):load_state_dict(adam:state_dict())
  end)

  it("the gradient's graph of a loss without labels is 0 too", function()
    local x = tycho.randn(2, 3, {requires_grad = true})
    local g = tycho.grad(F.cross_entropy(x, tycho.full({2}, -100):long()), x, {create_graph = true})
    assert.same({{0, 0, 0}, {0, 0, 0}}, g:totable())
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

  it("recurrent layers take packed sequences: each gets what it would get alone", function()
    local rnn = nn.utils.rnn
    local lengths = {2, 5, 1, 5, 3}
    local x = tycho.randn(5, 5, 3)
    for name, layer in pairs {LSTM = nn.LSTM(3, 4, 2, {bidirectional = true}), GRU = nn.GRU(3, 4),
        RNN = nn.RNN(3, 4, {num_layers = 2, batch_first = true}), ["LSTM one way"] = nn.LSTM(3, 4)} do
      local lstm, ways = name:find "LSTM", layer.bidirectional and 2 or 1
      local h0, c0 = tycho.randn(layer.num_layers * ways, 5, 4), lstm and tycho.randn(layer.num_layers * ways, 5, 4) or nil
      local input = x:clone():requires_grad_(true)
      local p = rnn.pack_padded_sequence(input, lengths, {enforce_sorted = false})
      assert.same({5, 4, 3, 2, 2}, p.batch_sizes)
      local y, h, c = layer(p, h0, c0)
      local out, n = rnn.pad_packed_sequence(y)
      assert.same(lengths, n:totable())
      assert.equal("5x5x" .. 4 * ways, tostring(out.shape))
      local loss = (out * out):sum() + h:sum() + (c and c:sum() or 0)
      loss:backward()
      local got = {input.grad, layer.weight_hh_l0.grad, layer.weight_ih_l0.grad}
      layer:zero_grad()
      local alone = x:clone():requires_grad_(true)
      local sum = 0
      for i, len in ipairs(lengths) do
        local one = alone[{{1, len}, {i, i}}]
        if layer.batch_first then one = one:transpose(1, 2) end
        local yi, hi, ci = layer(one, h0[{{}, {i, i}}], c0 and c0[{{}, {i, i}}])
        if layer.batch_first then yi = yi:transpose(1, 2) end
        helper.close(out[{{1, len}, {i, i}}]:detach(), yi:detach(), name .. " output", 1e-5)
        if len < 5 then assert.equal(0, out[{{len + 1, 5}, i}]:abs():max():item()) end
        helper.close(h[{{}, {i, i}}]:detach(), hi:detach(), name .. " state", 1e-5)
        if ci then helper.close(c[{{}, {i, i}}]:detach(), ci:detach(), name .. " cell", 1e-5) end
        sum = (yi * yi):sum() + hi:sum() + (ci and ci:sum() or 0) + sum
      end
      sum:backward()
      for k, want in ipairs {alone.grad, layer.weight_hh_l0.grad, layer.weight_ih_l0.grad} do
        helper.close(got[k], want, name .. " gradient " .. k, 1e-4)
      end
    end
    local list = {tycho.randn(4, 2), tycho.randn(2, 2), tycho.randn(1, 2)}
    local padded, n = rnn.pad_packed_sequence(rnn.pack_sequence(list), {batch_first = true, padding_value = -1, total_length = 6})
    assert.equal("3x6x2", tostring(padded.shape))
    assert.same({4, 2, 1}, n:totable())
    helper.close(padded[2], tycho.cat({list[2], tycho.full({4, 2}, -1)}, 1), "padded", 0)
    assert.equal("float64", rnn.pack_sequence(list):to("float64").data.dtype)
    fails("the lengths must be sorted, longest first", rnn.pack_padded_sequence, x, lengths)
    fails("length 3 is 6; it must be whole, from 1 to 5", rnn.pack_padded_sequence, x, {5, 5, 6, 1, 1})
    fails("argument 2 (lengths) must be 5 whole numbers", rnn.pack_padded_sequence, x, {5})
    fails("total_length must be at least 4", rnn.pad_packed_sequence, rnn.pack_sequence(list), {total_length = 2})
    fails("argument 1 must be a PackedSequence", rnn.pad_packed_sequence, x)
  end)

  it("shapes change in place where there is no history", function()
    local x = tycho.range(1, 6):view(2, 3)
    assert.equal(x, x:unsqueeze_(1))
    assert.same({1, 2, 3}, {unpack(x.shape)})
    x:squeeze_():t_()
    assert.same({{1, 4}, {2, 5}, {3, 6}}, x:totable())
    x:transpose_(1, 2)
    assert.same({2, 3}, {unpack(x.shape)})
    fails("requires grad", function() tycho.ones(2, {requires_grad = true}):unsqueeze_(1) end)
    assert.same({4}, {unpack(tycho.zeros(2, 2):view(4):type_as(tycho.zeros(1, {dtype = "int64"})).shape)})
    local m = tycho.zeros(3, 3):fill_diagonal_(2)
    assert.same({{2, 0, 0}, {0, 2, 0}, {0, 0, 2}}, m:totable())
    assert.equal(6, tycho.zeros(2, 2, 2):fill_diagonal_(3):sum():item())
  end)

  it("random numbers are drawn in place", function()
    tycho.manual_seed(1)
    local x = tycho.empty(40000):geometric_(0.25)
    assert.is_true(math.abs(x:mean():item() - 4) < 0.1 and x:amin():item() == 1)
    x:log_normal_(0, 0.5)
    assert.is_true(math.abs(x:log():std():item() - 0.5) < 0.02)
    x:cauchy_(3, 2)
    assert.is_true(math.abs(x:median():item() - 3) < 0.1)
    local k = tycho.empty(1000, {dtype = "int64"}):random_(2, 5)
    assert.same({2, 3, 4, 5}, k:unique():totable())
    assert.is_true(tycho.empty(1000, {dtype = "uint8"}):random_():amax():item() > 200)
    fails("p) must lie between", function() x:geometric_(1) end)
  end)

  it("containers are changed with Lua's own list functions", function()
    local list = nn.ModuleList {}
    table.insert(list, nn.Linear(1, 1))
    assert.equal(2, #list:parameters())
    local net = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 3))
    table.insert(net, 2, nn.ReLU())
    assert.same({1, 3}, {unpack(net(tycho.ones(1, 1)).shape)})
    local names = {}
    for name in net:named_parameters() do names[#names + 1] = name end
    assert.same({"0.weight", "0.bias", "2.weight", "2.bias"}, names)
    net[2] = nil
    assert.equal(2, #net:children())
    assert.equal(2, #net)
    table.remove(net)
    net:append(nn.Tanh()):insert(1, nn.Identity()):extend {nn.Linear(2, 4)}
    assert.equal("Linear", net:pop()._name)
    assert.equal("Identity", net[1]._name)
    net.act = nn.ReLU()
    assert.is_truthy(tostring(net):find("(act): ReLU()", 1, true))
    assert.is_true(net(tycho.full({1, 1}, -100)):ge(0):all():item())
    assert.equal(2, #net[{ {1, 2} }])
    assert.equal(2, #net:clone()[{ {1, 2} }]:children())
    table.insert(net, 3)
    fails("member 4 must be a module or a Parameter, got 3", net.parameters, net)
    local named = nn.Sequential {{"conv", nn.Conv2d(1, 2, 3)}, {"act", nn.ReLU()}}
    assert.is_truthy(named:state_dict()["conv.weight"])
    fails("has a parameter 'weight' already", function() nn.Linear(2, 2):register_buffer("weight", tycho.ones(1)) end)
    fails("'train' is a method", nn.ModuleDict, {train = nn.ReLU()})
    local order = {}
    nn.Sequential(nn.Linear(1, 1)):apply(function(m) order[#order + 1] = m._name end)
    assert.same({"Linear", "Sequential"}, order)
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

  it("averages of models are made as asked, and their batch_norms anew", function()
    local swa = tycho.optim.swa_utils
    local net = nn.Linear(2, 1)
    local ema, mean, own = swa.AveragedModel(net, {multi_avg_fn = swa.get_ema_multi_avg_fn(0.9)}),
      swa.AveragedModel(net), swa.AveragedModel(net, {avg_fn = function(a, v, n) return a + v * n end})
    local start = net.weight:detach():clone()
    for k = 0, 2 do
      for _, m in ipairs {ema, mean, own} do m:update_parameters(net) end
      tycho.no_grad(function() net.weight:add_(k + 1) end)
    end
    helper.close(ema.module.weight, start + 0.1 * 0.9 * 1 + 0.1 * 3)
    helper.close(mean.module.weight, start + 4 / 3)
    helper.close(own.module.weight, start + (start + 1) + 2 * (start + 3))
    local there = swa.AveragedModel(net, {device = "cpu", decay = 0.5})         -- wherever the model is
    there:update_parameters(net)
    assert.equal("cpu", there.module:parameters()[1].device)
    assert.is_true(there.module:parameters()[1]:equal(net:parameters()[1]:cpu()))
    fails("only one of decay", swa.AveragedModel, net, {decay = 0.9, avg_fn = function() end})
    local bn = nn.Sequential(nn.BatchNorm1d(2))
    bn:eval()
    local x = tycho.randn(40, 2) * 3 + 1
    swa.update_bn(tycho.data.DataLoader(tycho.data.TensorDataset(x), {batch_size = 20}), bn)
    helper.close(bn[1].running_mean, x:mean(1))
    assert.is_false(bn.training)
    assert.equal(0.1, bn[1].momentum)
  end)

  it("lazy layers take their size from the first input", function()
    local net = nn.Sequential(nn.LazyConv2d(4, 3, {padding = 1}), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    assert.equal(0, #net:parameters())
    local half = nn.Sequential(nn.LazyConv2d(4, 3), nn.Linear(1, 1))
    fails("SGD: 0 (LazyConv2d) has no parameters yet", tycho.optim.SGD, half:parameters(), 0.1)
    assert.same({5, 2}, {unpack(net(tycho.randn(5, 3, 6, 6)).shape)})
    assert.equal(6, #net:parameters())
    assert.is_truthy(tostring(net):find("Linear(in_features=144, out_features=2", 1, true))
    assert.same({7, 2}, {unpack(net:eval()(tycho.randn(7, 3, 6, 6)).shape)})
    assert.is_true(net[2].running_mean:abs():sum():item() > 0)
  end)

  it("hooks see the gradients that pass a module, and may change them", function()
    local net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    local seen, first = {}, nil
    local x = tycho.randn(4, 3)
    net(x):sum():backward()
    local plain = net[1].weight.grad:clone()
    net:zero_grad()
    local h = net[2]:register_full_backward_hook(function(_, inputs, outputs)
      seen = {inputs[1], outputs[1]}
      return {inputs[1] * 2}
    end)
    net[1]:register_full_backward_hook(function(_, inputs, outputs) first = {inputs[1] or false, outputs[1]} end)
    net(x):sum():backward()
    helper.close(net[1].weight.grad, plain * 2)
    helper.close(seen[2], net[3].weight:detach():expand(4, 2))
    helper.close(first[2], seen[1] * 2)
    assert.is_false(first[1])
    h.remove()
    net:zero_grad()
    net(x):sum():backward()
    helper.close(net[1].weight.grad, plain)
  end)

  it("parameters come in dicts, embeddings keep their length, normalized weights are taken apart again", function()
    local d = nn.ParameterDict {b = tycho.ones(2), a = nn.Parameter(tycho.zeros(1))}
    assert.same({"a", "b"}, d:keys())
    assert.equal(2, #d:parameters())
    assert.is_true(d.b.requires_grad)
    local e = nn.Embedding(5, 3, {max_norm = 1})
    e.weight:detach():fill_(2)
    local ids = tycho.tensor({{1, 3}, {3, 3}}, {dtype = "int64"})
    helper.close(e(ids):norm(2, 3), tycho.ones(2, 2))
    helper.close(e.weight:detach():norm(2, 2), tycho.tensor {1, 12 ^ 0.5, 1, 12 ^ 0.5, 12 ^ 0.5})
    local l, x = nn.utils.weight_norm(nn.Linear(3, 2)), tycho.randn(4, 3)
    local y = l(x)
    local copy = l:clone()
    local parametrized = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)))      -- takes the older one's state
    parametrized:load_state_dict(nn.Sequential(l):state_dict())
    assert.is_true(parametrized(x):equal(l(x)))
    parametrized:clone():load_state_dict(parametrized:state_dict())
    nn.utils.remove_weight_norm(l)
    helper.close(l(x), y)
    assert.same({"bias", "weight"}, (function()
      local t = {}
      for k in l:named_parameters() do t[#t + 1] = k end
      table.sort(t)
      return t
    end)())
    tycho.no_grad(function() copy.weight_g:mul_(2) end)
    helper.close(copy(x) - copy.bias, (y - l.bias) * 2)
    fails("is not computed by", nn.utils.remove_spectral_norm, copy)
    fails("has no parameter", nn.utils.weight_norm, nn.ReLU())
  end)

  it("optimizers made of ops skip with a scaler, keep masters, and compile", function()
    for _, name in ipairs {"Rprop", "ASGD", "Adafactor", "Muon"} do
      local start = tycho.randn(4, 3)
      local w, v, h = start:clone():requires_grad_(), start:clone():requires_grad_(), start:half():requires_grad_()
      local scaler = tycho.amp.GradScaler {init_scale = 8}
      local scaled, plain, half = tycho.optim[name]({w}, 0.1), tycho.optim[name]({v}, 0.1),
        tycho.optim[name]({h}, {lr = 0.1, master_weights = true})
      local function step(factor)
        scaled:zero_grad()
        scaler:scale((w * w):sum() * factor):backward()
        scaler:step(scaled)
        scaler:update()
      end
      step(math.huge)
      helper.close(w:detach(), start, name .. ": skipped", 0)
      step(1)
      ;(v * v):sum():backward()
      plain:step()
      helper.close(w:detach(), v:detach(), name)
      ;(h * h):sum():backward()
      half:step()
      helper.close(h:detach():float(), v:detach(), name .. ": 16 bits", 2e-2)
      local u = start:clone():requires_grad_()
      local opt = tycho.optim[name]({u}, 0.1)
      local compiled = tycho.compile(function()
        opt:zero_grad()
        local loss = (u * u):sum()
        loss:backward()
        opt:step()
        return loss
      end)
      for _ = 1, 5 do compiled() end
      plain:zero_grad()
      for _ = 1, 4 do
        plain:zero_grad()
        ;(v * v):sum():backward()
        plain:step()
      end
      helper.close(u:detach(), v:detach(), name .. ": compiled", helper.device == "cpu" and 1e-5 or 5e-2)
    end
  end)

  it("containers keep order, count and kind whatever is done to them", function()
    local named = nn.Sequential {{"a", nn.Linear(2, 3)}}
    named:append(nn.Linear(3, 4))
    assert.same({1, 4}, {unpack(named(tycho.ones(1, 2)).shape)})
    assert.is_truthy(named:state_dict()["1.weight"])
    assert.equal("Linear", named[2]._name)
    assert.equal(1, #named[{ {2, 2} }])
    assert.same({1, 4}, {unpack(nn.Checkpoint(named, {segments = 2})(tycho.ones(1, 2)).shape)})
    local list = nn.ModuleList {nn.Linear(1, 1), nn.ReLU(), nn.Tanh()}
    list[1] = nil
    assert.equal("Tanh", list:pop()._name)
    list[-1] = nn.GELU()
    assert.equal("GELU", list[1]._name)
    fails("is out of range 1 to 2", function() list[0] = nn.ReLU() end)
    list:extend(list)
    assert.equal(2, #list)
    local p = nn.ParameterList {tycho.ones(1), tycho.ones(2)}
    p[2] = tycho.ones(3)
    assert.same({3}, {unpack(p:parameters()[2].shape)})
    local d = nn.ParameterDict {a = tycho.ones(1)}
    d.b = tycho.ones(2)
    assert.equal(2, #d:parameters())
    fails("'items' is a method", nn.ModuleDict, {items = nn.ReLU()})
    local lazy = nn.LazyLinear(3)
    assert.equal("float64", lazy(tycho.randn(2, 4, {dtype = "float64"})).dtype)
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
end)
