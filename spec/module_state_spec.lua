-- What goes along with a module's state: hooks around state dicts, extra state, memory taken over; dicts of modules; packed sequences.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim = tycho.nn, tycho.optim
local fails = helper.fails

describe("state dicts", function()
  local Counted = nn.Module:extend("Counted")
  function Counted:init() self.linear, self.seen = nn.Linear(2, 2), {n = 0} end
  function Counted:forward(x)
    self.seen.n = self.seen.n + 1
    return self.linear(x)
  end
  function Counted:get_extra_state() return {n = self.seen.n, at = tycho.tensor {1, 2}} end
  function Counted:set_extra_state(s) self.seen = {n = s.n} end

  it("hold a module's own extra state, through a file too", function()
    local net = nn.Sequential(Counted(), nn.ReLU(), Counted())
    for _ = 1, 3 do net(tycho.ones(1, 2)) end
    local path = os.tmpname()
    tycho.save(path, net:state_dict())
    local other = nn.Sequential(Counted(), nn.ReLU(), Counted())
    other:load_state_dict(tycho.load(path))
    os.remove(path)
    assert.same({3, 3}, {other[1].seen.n, other[3].seen.n})
    assert.is_true(other[3].linear.weight:equal(net[3].linear.weight))
    local state = net:state_dict()
    assert.same({1, 2}, state["2._extra_state"].at:totable())
    state["0._extra_state"] = nil
    fails("missing '0._extra_state'", function() other:load_state_dict(state) end)
    local _, unfit = other:load_state_dict(state, {strict = false})
    assert.same({"0._extra_state"}, unfit.missing_keys)
    fails("unexpected 'x._extra_state'", function()
      state["0._extra_state"], state["x._extra_state"] = {n = 1}, {n = 1}
      other:load_state_dict(state)
    end)
    assert.equal(3, other[1].seen.n)
  end)

  it("prefix, keep_vars, assign", function()
    local a, b = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    tycho.no_grad(function() a.weight:fill_(2) end)
    local state = a:state_dict{prefix = "net.", keep_vars = true}
    assert.is_true(rawequal(state["net.weight"], a.weight) and state["net.running_mean"] ~= nil and state.weight == nil)
    local own = {}
    for k, v in pairs(a:state_dict()) do own[k] = v:clone() end
    own.weight = own.weight:half()
    local opt = optim.SGD(b:parameters(), {lr = 1})
    b:load_state_dict(own, {assign = true})
    assert.equal("float16", b.weight.dtype)
    own.weight:fill_(5)
    assert.equal(5, b.weight[1])                                   -- the state's memory
    assert.is_true(rawequal(opt.param_groups[1].params[1], b.weight) and b.weight.requires_grad)
    fails("has shape 2", function()
      own.weight = tycho.ones(2)
      b:load_state_dict(own, {assign = true})
    end)
  end)

  it("hooks see and change them", function()
    local said = {}
    local net = nn.Sequential(nn.Linear(2, 2))
    local hooks = {
      net[1]:register_state_dict_pre_hook(function(m, prefix, keep)
        said[#said + 1] = ("pre %s %s %s"):format(m._name, prefix, tostring(keep))
      end),
      net[1]:register_state_dict_post_hook(function(_, state, prefix) state[prefix .. "scale"] = state[prefix .. "weight"] * 2 end),
      net[1]:register_load_state_dict_pre_hook(function(_, state, prefix)
        if state[prefix .. "kernel"] then state[prefix .. "weight"], state[prefix .. "kernel"] = state[prefix .. "kernel"], nil end
        state[prefix .. "scale"] = nil
      end),
      net:register_load_state_dict_post_hook(function(_, unfit)
        said[#said + 1] = "loaded, " .. #unfit.unexpected_keys .. " unexpected"
      end)}
    local state = net:state_dict()
    assert.is_true(state["0.scale"]:equal(state["0.weight"] * 2))
    local old = {["0.kernel"] = tycho.full({2, 2}, 7), ["0.bias"] = tycho.zeros(2)}
    net:load_state_dict(old)
    assert.equal(7, net[1].weight[{1, 1}])
    assert.is_truthy(old["0.kernel"])                              -- the table that was given stays as it was
    net:load_state_dict({["0.kernel"] = tycho.ones(2, 2), ["0.bias"] = tycho.zeros(2), more = tycho.ones(1)}, {strict = false})
    assert.same({"pre Linear 0. false", "loaded, 0 unexpected", "loaded, 1 unexpected"}, said)
    assert.is_true(net(tycho.ones(1, 2)):sum():item() == 4)        -- forward goes as ever
    for _, h in ipairs(hooks) do h.remove() end
    assert.is_nil(net:state_dict()["0.scale"])
    assert.equal(3, #said)
  end)
end)

describe("modules", function()
  it("a hook before backward changes the gradients of the outputs", function()
    local net = nn.Linear(2, 1, {bias = false})
    local order = {}
    net:register_full_backward_pre_hook(function(_, grads)
      order[#order + 1] = "before"
      return {grads[1] * 3}
    end)
    net:register_full_backward_hook(function(_, _, outs)
      order[#order + 1] = outs[1]:item()
    end)
    net(tycho.ones(1, 2, {requires_grad = true})):sum():backward()
    assert.same({{3, 3}}, net.weight.grad:totable())
    assert.same({"before", 3}, order)
  end)

  it("a Buffer is one wherever it is assigned", function()
    local m = nn.Module()
    m.mean, m.cache = nn.Buffer(tycho.zeros(2)), nn.Buffer(tycho.ones(2), {persistent = false})
    m.plain = tycho.ones(2)
    assert.equal(2, #m:buffers())
    local state = m:state_dict()
    assert.is_true(state.mean ~= nil and state.cache == nil and state.plain == nil)
    fails("Buffer: argument 1 must be a tensor", nn.Buffer, 3)
  end)

  it("a clone has no gradients, as PyTorch's deepcopy", function()
    local net = nn.Linear(2, 1)
    net(tycho.ones(1, 2)):sum():backward()
    local copy = net:clone()
    assert.is_true(copy.weight.grad == nil and copy.weight.requires_grad and net.weight.grad ~= nil)
  end)

  it("what is there twice is told twice, where that is asked for", function()
    local shared = nn.Linear(2, 2)
    local net = nn.Sequential(shared, shared)
    local names = {}
    for name in net:named_parameters{remove_duplicate = false} do names[#names + 1] = name end
    assert.same({"0.weight", "0.bias", "1.weight", "1.bias"}, names)
    local n = 0
    for _ in net:named_modules{remove_duplicate = false} do n = n + 1 end
    assert.equal(3, n)
    assert.equal(2, #net:parameters())
  end)

  it("dicts of modules and parameters", function()
    local d = nn.ModuleDict{b = nn.ReLU(), a = nn.Tanh()}
    assert.same({"a", "b"}, d:keys())
    d:update{{"c", nn.Linear(1, 1)}, {"a", nn.Sigmoid()}}
    assert.same({"a", "b", "c"}, d:keys())
    assert.equal("Sigmoid", d.a._name)
    assert.is_true(d:len() == 3 and d:contains "b" and not d:contains "x" and d:get "x" == nil and d:get("x", 4) == 4)
    assert.equal("Linear", d:pop("c")._name)
    assert.equal(0, #d:parameters())
    fails("ModuleDict:pop: there is no member 'c'", function() d:pop "c" end)
    fails("item 1 must be {name, module}", function() d:update{x = 3} end)
    assert.equal(2, nn.ModuleDict(d):len())
    d:clear()
    assert.equal(0, d:len())
    local p = nn.ParameterDict{w = tycho.ones(2)}
    assert.is_true(rawequal(p:setdefault("w", tycho.zeros(3)), p.w) and p:setdefault("v", tycho.zeros(3)):numel() == 3)
    p:update{w = tycho.zeros(4)}
    assert.same({"w", "v"}, p:keys())
    assert.same({4, 3}, {p:values()[1]:numel(), p:values()[2]:numel()})
    assert.is_true(p.w.requires_grad)
  end)

  it("packed sequences are made of their fields, and cut again", function()
    local list = {tycho.randn(2, 3), tycho.randn(4, 3), tycho.randn(1, 3)}
    local p = nn.utils.rnn.pack_sequence(list, {enforce_sorted = false})
    for i, x in ipairs(nn.utils.rnn.unpack_sequence(p)) do assert.is_true(x:equal(list[i])) end
    local linear, lstm = nn.Linear(3, 5), nn.LSTM(5, 4)
    local q = nn.utils.rnn.PackedSequence(linear(p.data), p.batch_sizes, p.sorted_indices, p.unsorted_indices)
    local out, h = lstm(q)
    for i, x in ipairs(nn.utils.rnn.unpack_sequence(out)) do
      local alone, last = lstm(linear(list[i]))
      helper.close(x, alone, "sequence " .. i, 1e-6)
      helper.close(h[{1, i}], last[1], "state " .. i, 1e-6)
    end
    local sorted = nn.utils.rnn.PackedSequence(p.data, tycho.tensor(p.batch_sizes, {dtype = "int64"}), {sorted_indices = p.sorted_indices})
    assert.is_true(sorted.unsorted_indices:equal(p.unsorted_indices))
    fails("dim 1 must be 7", nn.utils.rnn.PackedSequence, tycho.ones(3, 2), {3, 2, 1, 1})
    fails("none larger than the one before; item 2 is 3", nn.utils.rnn.PackedSequence, tycho.ones(5, 2), {2, 3})
  end)

  it("memory_is_causal masks what a decoder sees of the encoder", function()
    local layer = nn.TransformerDecoderLayer(8, 2, {dim_feedforward = 8, dropout = 0}):eval()
    local x, memory = tycho.randn(4, 1, 8), tycho.randn(4, 1, 8)
    local mask = nn.Transformer.generate_square_subsequent_mask(4)
    helper.close(layer(x, memory, {memory_mask = mask, memory_is_causal = true}), layer(x, memory, {memory_mask = mask}), "masked", 1e-6)
    assert.is_false(layer(x, memory):allclose(layer(x, memory, {memory_mask = mask})))
  end)

  it("a softmax of clusters is PyTorch's of the same state", function()
    local t = tycho.load("spec/golden/adaptive_softmax.safetensors", {device = helper.device})
    local net, state = nn.AdaptiveLogSoftmaxWithLoss(8, 20, {5, 12}, {div_value = 2, head_bias = true}):double(), {}
    for name in pairs(net:state_dict()) do state[name] = t[name] end
    net:load_state_dict(state)
    local x = t.x:requires_grad_(true)
    local out, loss = net(x, t.target)
    loss:backward()
    helper.close(out, t.out, "output", 1e-12)
    helper.close(loss, t.loss, "loss", 1e-12)
    helper.close(x.grad, t.x_grad, "x's gradient", 1e-12)
    for name, p in net:named_parameters() do helper.close(p.grad, t[name .. ".grad"], name, 1e-12) end
    helper.close(net:log_prob(x), t.log_prob, "log_prob", 1e-12)
    assert.same(t.predict:totable(), net:predict(x):totable())
    local one = net(x[1], t.target:select(1, 1))
    helper.close(one, t.out:select(1, 1), "one row", 1e-12)
    helper.fails("cutoffs must be whole numbers from 1 to 19 in ascending order; number 2", nn.AdaptiveLogSoftmaxWithLoss, 8, 20, {5, 3})
    helper.fails("argument 1 must have shape (N, 8)", net, tycho.ones(2, 7):double(), t.target)
    helper.fails("targets must be from 1 to 20", net, x, t.target + 1)
  end)

  it("an orthogonal weight is PyTorch's of the same state, and stays orthogonal while it is learned", function()
    local t, names = tycho.load("spec/golden/orthogonal.safetensors", {device = helper.device}), {"matrix_exp", "cayley", "householder",
      "householder", "cayley", "matrix_exp"}
    for i, how in ipairs(names) do
      local function of(name) return t[("w%d.%s"):format(i, name)] end
      local n, k = unpack(of("weight").shape)
      local layer = nn.Linear(k, n, {bias = false}):double()
      local before = layer.weight:detach():clone()
      assert.is_true(rawequal(nn.utils.parametrizations.orthogonal(layer, {orthogonal_map = how}), layer))
      layer:load_state_dict {["parametrizations.weight.original"] = of "original", ["parametrizations.weight.0.base"] = of "base"}
      local w = layer.weight
      helper.close(w, of "weight", how, 1e-12)
      w:backward(tycho.range(0, n * k - 1, 1, {dtype = "float64"}):cos():view(n, k))
      helper.close(layer.parametrizations.weight.original.grad, of "grad", how .. "'s gradient", 1e-12)
      assert.equal(n * k, before:numel())
    end
    local layer = nn.utils.parametrizations.orthogonal(nn.Linear(6, 4))
    local opt, x, y = optim.SGD(layer:parameters(), {lr = 0.3}), tycho.randn(16, 6), tycho.randn(16, 4)
    local first
    for _ = 1, 20 do
      local loss = nn.functional.mse_loss(layer(x), y)
      first = first or loss:item()
      opt:zero_grad()
      loss:backward()
      opt:step()
    end
    assert.is_true(nn.functional.mse_loss(layer(x), y):item() < first)
    helper.close(layer.weight:matmul(layer.weight:t()), tycho.eye(4), "orthonormal rows", 1e-5)
    local q = tycho.linalg.qr(tycho.randn(5, 5))
    local square = nn.utils.parametrizations.orthogonal(nn.Linear(5, 5))
    square.weight = q
    helper.close(square.weight, q, "assigned", 1e-6)
    fails("at least 2 dims, got shape 3", nn.utils.parametrizations.orthogonal, nn.BatchNorm1d(3))
    fails("'householder' needs use_trivialization", nn.utils.parametrizations.orthogonal, nn.Linear(2, 3), {use_trivialization = false})
    local free = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), {orthogonal_map = "cayley", use_trivialization = false})
    helper.close(free.weight:matmul(free.weight:t()), tycho.eye(3), "without a base", 1e-5)
  end)

  it("a convolution and its batch norm become one, sparse weights have so many zeros a column", function()
    for _, case in ipairs {{nn.Conv2d(3, 4, 3, {bias = false}), nn.BatchNorm2d(4), {2, 3, 5, 5}, "fuse_conv_bn_eval"},
        {nn.ConvTranspose2d(3, 4, 3), nn.BatchNorm2d(4, {affine = false}), {2, 3, 5, 5}, "fuse_conv_bn_eval", true},
        {nn.Linear(3, 4), nn.BatchNorm1d(4), {6, 3}, "fuse_linear_bn_eval"}} do
      local net = nn.Sequential(case[1], case[2])
      for _ = 1, 3 do net(tycho.randn(case[3]) * 2 + 1) end
      fails("both must be in eval mode", nn.utils[case[4]], case[1], case[2])
      net:eval()
      local one, x = nn.utils[case[4]](case[1], case[2], case[5]), tycho.randn(case[3])
      helper.close(one(x), net(x), case[4], 1e-5)
    end
    local zeros = nn.init.sparse_(tycho.empty(10, 4), 0.25, 0.5):eq(0):sum(1)
    assert.same({3, 3, 3, 3}, zeros:totable())
    fails("a matrix is needed", nn.init.sparse_, tycho.empty(3), 0.5)
    assert.equal(2, #optim.SGD(nn.Linear(2, 2):named_parameters(), {lr = 1}).param_groups[1].params)
  end)
end)
