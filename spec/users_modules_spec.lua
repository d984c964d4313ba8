-- Modules as PyTorch's users write them: containers, hooks, lazy layers, recurrent layers, transformers, embeddings.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F = tycho.nn, tycho.nn.functional
local close, fails, device = helper.close, helper.fails, helper.device

describe("users' modules", function()
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

  it("list a module's own parts, and by prefixes", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert.equal(0, #net:parameters {recurse = false})
    assert.equal(2, #net[1]:parameters(false))
    local names = {}
    for name in net:named_parameters {prefix = "m"} do names[#names + 1] = name end
    for name in net:named_modules {prefix = "m"} do names[#names + 1] = name end
    for name in net:named_parameters("", false) do names[#names + 1] = name end
    assert.same({"m.0.weight", "m.0.bias", "m", "m.0", "m.1"}, names)
    local shared = nn.Module:extend("Shared")()
    shared.inner = net[1]
    shared.w = net[1].weight
    assert.equal(1, #shared:parameters(false))
    assert.equal("Sequential(\n  (0): ReLU()\n)", tostring(nn.Sequential(net[2]:load_state_dict({}))))
    fails("unknown option 'recursive'", net.parameters, net, {recursive = true})
  end)

  it("count once what they share, and themselves", function()
    local Net = nn.Module:extend "Net"
    local a = Net()
    a.x = nn.ReLU()
    a.y = a.x
    assert.equal(1, #a:children())
    local p, q = Net(), Net()
    p.b, q.a = q, p
    assert.equal(2, #p:modules())
    local names = {}
    for name in p:named_modules() do names[#names + 1] = name end
    assert.same({"", "b"}, names)
  end)

  it("are told by their class, made in a dtype, printed with what they say of themselves", function()
    local Net = nn.Linear:extend("Net")
    assert.is_true(nn.isinstance(nn.Linear(1, 1), nn.Linear))
    assert.is_true(nn.isinstance(Net(1, 1), nn.Linear))
    assert.is_true(nn.isinstance(Net(1, 1), nn.Module))
    assert.is_false(nn.isinstance(nn.ReLU(), nn.Linear))
    assert.is_false(nn.isinstance(3, nn.Linear))
    assert.equal("float64", nn.Linear(2, 3, {dtype = "float64"}).bias.dtype)
    assert.is_nil(nn.Conv2d(1, 1, 3, {bias = false, device = "cpu", dtype = "float16"}).bias)
    local Block = nn.Module:extend("Block")
    function Block:init() self.inner = nn.ReLU() end
    function Block.extra_repr() return "wide" end
    assert.equal("Block(\n  wide\n  (inner): ReLU()\n)", tostring(Block()))
  end)

  it("say what a state dict lacks, and what it has too much", function()
    local net = nn.Linear(2, 2)
    local same, unfit = net:load_state_dict({weight = tycho.ones(2, 2), foo = tycho.ones(1)}, {strict = false})
    assert.is_true(rawequal(net, same))
    assert.same({missing_keys = {"bias"}, unexpected_keys = {"foo"}}, unfit)
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

  it("average batch norm's statistics over all batches where momentum is false", function()
    local bn, xs = nn.BatchNorm1d(2, {momentum = false}), {tycho.randn(8, 2), tycho.randn(8, 2), tycho.randn(8, 2)}
    local mean = tycho.zeros(2)
    for _, x in ipairs(xs) do
      bn(x)
      mean = mean + x:mean(1) / 3
    end
    close(bn.running_mean, mean, "mean of means", 1e-6)
    assert.equal("BatchNorm1d(2, eps=1e-05, momentum=false, affine=true, track_running_stats=true)", tostring(bn))
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

  it("FeatureAlphaDropout drops whole channels and keeps mean and variance", function()
    tycho.manual_seed(2)
    local x = tycho.randn(200, 50, 8, {device = device})
    local drop = nn.FeatureAlphaDropout(0.3)
    local y = drop(x)
    assert.is_true(math.abs(y:mean():item()) < 0.05 and math.abs(y:var():item() - 1) < 0.05)
    local flat = (y - y:mean(3, true)):abs():amax(3):lt(1e-6):float():mean():item()           -- the share of channels of one value
    assert.is_true(math.abs(flat - 0.3) < 0.03, flat)
    assert.is_true(drop:eval()(x):equal(x))
    fails("feature_alpha_dropout: argument 1 must have dims (N, C", drop:train(), x[1][1])
  end)

  it("summary takes several inputs", function()
    local Both = nn.Module:extend("Both")
    function Both:init() self.a = nn.Linear(4, 2) end
    function Both:forward(x, y) return self.a(x + y) end
    local both = Both():to(device)
    local text = nn.summary(both, {{3, 4}, {3, 4}})
    assert.is_truthy(text:find("3x2", 1, true) and text:find("total parameters +10"))
    assert.equal(text, nn.summary(both, {tycho.ones(3, 4, {device = device}), {3, 4}}))
    fails("summary: argument 2 must be a list of sizes", nn.summary, both)
    fails("progress: total must be a number from 0, got 'x'", tycho.utils.progress, {1}, {total = "x"})
  end)
end)

describe("users' containers", function()
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
end)

describe("users' hooks", function()
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

  it("hand their inputs to hooks as a list", function()
    local l = nn.Linear(2, 3)
    local x = tycho.randn(4, 2)
    local want = l(x * 2)
    for _, answer in ipairs {function(v) return {v * 2} end, function(v) return v * 2 end} do
      local h = l:register_forward_pre_hook(function(_, inputs) return answer(inputs[1]) end)
      close(l(x), want, "replaced", 1e-6)
      h:remove()
    end
  end)

  it("have hooks in the order that is asked for", function()
    local order, net = {}, nn.ReLU()
    net:register_forward_hook(function() order[#order + 1] = "a" end)
    net:register_forward_hook(function() order[#order + 1] = "b" end, {prepend = true})
    net(tycho.ones(1))
    assert.same({"b", "a"}, order)
    fails("unknown option 'always_cal'", net.register_forward_hook, net, print, {always_cal = true})
  end)
end)

describe("users' recurrent layers", function()
  it("want both states or none", function()
    local lstm, cell, x = nn.LSTM(2, 3), nn.LSTMCell(2, 3), tycho.randn(4, 1, 2)
    local y, h, c = lstm(x)
    fails("LSTM: give both states, as h, c or {h, c}, or neither", lstm, x, h)
    fails("LSTMCell: give both states", cell, x[1], h[1])
    local a, b = lstm(x, h, c), lstm(x, {h, c})
    assert.is_true(a:equal(b))
    assert.is_false(a:equal(y))
  end)

  it("take the states of recurrent layers by name", function()
    local x, h, c = tycho.randn(4, 2, 8), tycho.randn(1, 2, 3), tycho.randn(1, 2, 3)
    local l, g, cell = nn.LSTM(8, 3), nn.GRU(8, 3), nn.GRUCell(8, 3)
    l:flatten_parameters()
    local want = l(x, h, c)
    assert.is_false(want:equal((l(x))))
    for _, states in ipairs {{hx = {h, c}}, {h0 = h, c0 = c}, {h, c}} do assert.is_true(want:equal((l(x, states)))) end
    assert.is_true(g(x, h):equal((g(x, {hx = h}))))
    assert.is_true(cell(x:select(1, 1), h:select(1, 1)):equal((cell(x:select(1, 1), {hx = h:select(1, 1)}))))
    fails("LSTM: unknown option 'foo'", l, x, {foo = 1})
    fails("GRU: takes 1 state, got a list of 2", g, x, {h, c})
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
end)

describe("users' transformers", function()
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
end)

describe("users' embeddings", function()
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

  it("take bags by offsets, with an end, without what pads", function()
    local ids, offsets = tycho.tensor({1, 3, 2, 2, 4, 1}, {dtype = "int64"}), tycho.tensor({1, 3, 3}, {dtype = "int64"})
    for _, mode in ipairs {"sum", "mean", "max"} do
      local bag = nn.EmbeddingBag(4, 3, {mode = mode})
      local rows = bag.weight:detach()
      local function of(...) return rows[tycho.tensor({...}, {dtype = "int64"})] end
      local function put(x) return mode == "sum" and x:sum(1) or mode == "mean" and x:mean(1) or x:amax(1) end
      close(bag(ids, {offsets = offsets}), tycho.stack({put(of(1, 3)), tycho.zeros(3), put(of(2, 2, 4, 1))}), mode)
      local ended = nn.EmbeddingBag.from_pretrained(rows, {mode = mode, include_last_offset = true, padding_idx = 1})
      close(ended(ids, tycho.tensor({1, 4, 7}, {dtype = "int64"})), tycho.stack({put(of(3, 2)), put(of(2, 4))}), mode .. ", padded")
      assert.is_false(ended.weight.requires_grad)
      if mode ~= "max" then
        tycho.autograd.gradcheck(function(w) return F.embedding_bag(ids, w, offsets, {mode = mode}) end,
          {tycho.randn({4, 3}, {dtype = "float64"}):requires_grad_()})
      end
    end
    local half = nn.EmbeddingBag(4, 3, {mode = "sum", dtype = "bfloat16"})
    tycho.no_grad(half.weight.fill_, half.weight, 1)
    assert.equal(1000, half(tycho.ones(1000, {dtype = "int64"}), tycho.tensor({1}, {dtype = "int64"}))[{1, 1}])
    fails("EmbeddingBag: unknown option 'offset'", nn.EmbeddingBag(4, 3), ids, {offset = offsets})
    if helper.device == "cpu" then                                 -- on a GPU that would be a wait
      fails("argument 3 must hold indices (int64), got bool", F.embedding_bag, ids, tycho.ones(4, 3), offsets:bool())
      fails("the last offset must be the end, 7", F.embedding_bag, ids, tycho.ones(4, 3), offsets, {include_last_offset = true})
    end
  end)

  it("add up bags of any width and dtype, weighted, but for what pads", function()
    tycho.manual_seed(3)
    for _, width in ipairs {1, 3, 64, 70, 600} do
      for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
        local weight = tycho.randn(9, width, {dtype = "float64"}):to(dtype)
        weight[4] = 0 / 0
        local ids = tycho.randint(1, 9, {5, 11})
        local scale = tycho.randn(5, 11, {dtype = "float64"}):to(dtype)
        local exact, by = weight:double()[ids], scale:double():unsqueeze(-1)
        exact = exact:masked_fill(ids:eq(4):unsqueeze(-1), 0)
        local short, off = dtype:find("16", 1, true), dtype == "bfloat16" and 0.02 or dtype == "float16" and 2e-3 or 1e-5
        close(F.embedding_bag(ids, weight, {mode = "sum", per_sample_weights = scale, padding_idx = 4}):double(), (exact * by):sum(2),
          ("%s, %d wide"):format(dtype, width), off, short and 1)
        close(F.embedding_bag(ids, weight, {mode = "mean", padding_idx = 4}):double(),
          exact:sum(2) / ids:ne(4):sum(2):clamp(1):unsqueeze(2),
          ("%s, %d wide, mean"):format(dtype, width), off, short and 1)
      end
    end
    local weight, scale = tycho.randn({5, 3}, {dtype = "float64"}):requires_grad_(),
      tycho.randn({2, 4}, {dtype = "float64"}):requires_grad_()
    local ids = tycho.tensor({{1, 3, 3, 5}, {2, 4, 1, 1}}, {dtype = "int64"})
    local function bag(w, s) return F.embedding_bag(ids, w, {mode = "sum", per_sample_weights = s, padding_idx = 3}) end
    tycho.autograd.gradcheck(bag, {weight, scale})
    tycho.autograd.gradgradcheck(bag, {weight, scale})
    for _, dtype in ipairs {"bfloat16", "float64", "int64"} do             -- weights of another dtype, as autocast may make them
      local by = tycho.ones({2, 3}, {dtype = dtype}) * 2
      local y = F.embedding_bag(tycho.tensor({{1, 2, 1}, {2, 2, 2}}, {dtype = "int64"}), tycho.ones(2, 3),
        {mode = "sum", per_sample_weights = by})
      assert.equal("float32", y.dtype)
      assert.is_true(y:equal(tycho.full({2, 3}, 6)))
    end
    assert.equal("0x3", tostring(F.embedding_bag(tycho.zeros({0, 4}, {dtype = "int64"}), weight).shape))
    close(F.embedding_bag(tycho.zeros({2, 0}, {dtype = "int64"}), weight), tycho.zeros({2, 3}, {dtype = "float64"}), "of none")
    for _, id in ipairs {0, -1, 6} do
      fails(helper.device == "cpu" and ("embedding_bag: id %d is out of range 1 to 5"):format(id) or "embedding_bag", F.embedding_bag,
        tycho.tensor({{1, id}}, {dtype = "int64"}), weight)
    end
  end)
end)

describe("users' pruned weight", function()
  it("has a history before the first forward", function()
    local m = nn.Linear(4, 2):to(device)
    nn.utils.prune.l1_unstructured(m, "weight", 0.5)
    m.weight:abs():sum():backward()
    close(m.weight_orig.grad, tycho.sign(m.weight:detach()) * m.weight_mask)
  end)

  it("a compiled function is a hook, but no list of modules", function()
    local twice = tycho.compile(function(g) return g * 2 end)
    local x = tycho.ones(2):requires_grad_()
    x:register_hook(twice)
    x:sum():backward()
    assert.same({2, 2}, x.grad:totable())
    helper.fails("Sequential: a module is needed, got a table", tycho.nn.Sequential, twice)
  end)

  it("a convolution's class may compute its weight", function()
    local Standardised = tycho.nn.Conv2d:extend("Standardised")
    function Standardised:forward(x)
      local w = self.weight
      return self:_conv_forward(x, w - w:mean({2, 3, 4}, {keepdim = true}), self.bias)
    end
    local conv = Standardised(3, 4, 3, {padding = 1, padding_mode = "reflect"})
    local plain = tycho.nn.Conv2d(3, 4, 3, {padding = 1, padding_mode = "reflect"})
    plain:load_state_dict(conv:state_dict())
    tycho.no_grad(function() plain.weight:sub_(plain.weight:mean({2, 3, 4}, {keepdim = true})) end)
    local x = tycho.randn(2, 3, 5, 5)
    close(conv(x), plain(x))
  end)
end)
