-- Training programs ported from PyTorch word by word: arguments by place, steps that return what backward has used, modules beside.
local tycho = require "tycho"
local helper = require "spec.helper"
local fails, close = helper.fails, helper.close
local nn, optim, D = tycho.nn, tycho.optim, tycho.distributions
local F = nn.functional

describe("ported programs", function()
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
      for k in (type(class) == "table" and class.defaults_of and class.places or ""):gmatch "%S+" do
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

  it("tile tensors of many dims within vmap", function()
    local x = tycho.randn(2, 3, 1, 2, 4)
    local got = tycho.vmap(function(a) return a:tile(2, 3, 1, 2) end)(x)
    assert.is_true(got:equal(tycho.stack({x[1]:tile(2, 3, 1, 2), x[2]:tile(2, 3, 1, 2)})))
  end)

  it("are compiled where a result was made of what backward has used", function()
    local x, y = tycho.randn(8, 4), tycho.randint(1, 3, {8})
    local function compare(what, make)
      local pair = {}
      for i = 1, 2 do
        tycho.manual_seed(2)
        local net = nn.Linear(4, 3)
        local opt = optim.SGD(net:parameters(), {lr = 0.1})
        pair[i] = make(net, opt)
      end
      local step = tycho.compile(pair[1])
      for call = 1, 6 do
        local got, want = {step(x, y)}, {pair[2](x, y)}
        for k = 1, #want do close(got[k], want[k], what .. ", call " .. call) end
      end
      return step:report()
    end
    local reports = {
      compare("a scaled loss", function(net, opt) return function(a, b)
        local loss = F.cross_entropy(net(a), b) / 4
        opt:zero_grad()
        loss:backward()
        opt:step()
        return loss * 4
      end end),
      compare("two losses", function(net, opt) return function(a, b)
        local one, two = F.cross_entropy(net(a), b), net(a):pow(2):mean()
        opt:zero_grad()
        one:backward()
        two:backward()
        opt:step()
        return one + two
      end end),
      compare("scores", function(net, opt) return function(a, b)
        local z = net(a)
        local loss = F.cross_entropy(z, b)
        opt:zero_grad()
        loss:backward()
        opt:step()
        return loss, z:softmax(2)
      end end)}
    for i, report in ipairs(reports) do
      assert.equal(1, #report)
      assert.is_true(report[1].compiled, i)
    end
    -- a graph of which nothing that backward has used up was needed still leads to its leaf
    local w = tycho.ones(2, {requires_grad = true})
    local sums = tycho.compile(function(a)
      local z = w + a;
      (z * z):sum():backward()
      return (z * 3):sum()
    end)
    for _ = 1, 5 do
      w.grad = nil
      sums(tycho.ones(2)):backward()
      assert.same({7, 7}, w.grad:totable())
    end
    -- so does one that leads there beside
    local report = compare("half", function(net, opt) return function(a, b)
      local loss = F.cross_entropy(net(a), b)
      opt:zero_grad()
      loss:backward()
      opt:step()
      return loss + net(a):sum()
    end end)
    assert.is_false(report[1].compiled)
  end)

  it("stay compiled whatever happens to other modules and optimizers", function()
    local x, y = tycho.randn(8, 4), tycho.randn(8, 3)
    local net, other = nn.Linear(4, 3), nn.Linear(4, 3)
    local opt, second = optim.SGD(net:parameters(), {lr = 0.01}), optim.SGD(other:parameters(), {lr = 0.01})
    local step = tycho.compile(function(a, b)
      local loss = F.mse_loss(net(a), b)
      opt:zero_grad()
      loss:backward()
      opt:step()
      return loss
    end)
    for _ = 1, 10 do
      step(x, y)
      other:register_forward_hook(function() end):remove()
      second:load_state_dict(second:state_dict())
      second:add_param_group {params = {nn.Parameter(tycho.ones(2))}}
    end
    assert.equal(9, step:report()[1].calls)
    -- but its own are seen
    local seen = 0
    net:register_forward_hook(function(_, _, out) seen = seen + 1 return out * 2 end)
    local want = tycho.no_grad(function() return F.mse_loss(net(x), y) end)
    close(step(x, y), want)
    close(step(x, y):sign(), tycho.ones({}))
    assert.equal(3, seen)
    other:register_full_backward_hook(function() end)
    assert.truthy(tostring(step:report()):find("have changed since it was recorded", 1, true))
  end)

  it("are compiled where they read tensors that they don't compute with", function()
    local x, flag = tycho.randn(3, 4, 3), tycho.tensor({2}, {device = "cpu"})
    local lengths = tycho.tensor({4, 2, 3}, {dtype = "int64", device = "cpu"})
    local net = nn.LSTM(3, 5, {batch_first = true})
    local R = nn.utils.rnn
    local function score(a)
      local packed = net(R.pack_padded_sequence(a, lengths, {batch_first = true, enforce_sorted = false}))
      local y = R.pad_packed_sequence(packed, {batch_first = true}) * flag:item()
      return y:pow(2):mean()
    end
    local opt = optim.SGD(net:parameters(), {lr = 0.1})
    local step = tycho.compile(function(a)
      local loss = score(a)
      opt:zero_grad()
      loss:backward()
      opt:step()
      return loss
    end)
    for call = 1, 9 do
      if call == 4 then flag:fill_(3) end
      if call == 7 then lengths[1] = 2 end
      local want = tycho.no_grad(score, x)
      close(step(x), want, "call " .. call)
    end
    assert.equal(3, #step:report())
    for _, way in ipairs(step:report()) do assert.is_true(way.compiled) end
    -- what the function writes is read when it is written
    local count = tycho.zeros(1, {device = "cpu"})
    for _, first in ipairs {true, false} do
      count:zero_()
      local counted = tycho.compile(function(a)
        local n = first and count:item()
        count:add_(1)
        return a * (n or count:item())
      end)
      for call = 1, 12 do close(counted(x), x * (first and call - 1 or call), "call " .. call) end
    end
    local trusting = tycho.compile(function(a) return a * flag:item() end, {guard = "inputs"})
    for call = 1, 5 do
      flag:fill_(call)
      close(trusting(x), x * call)
    end
  end)
end)
