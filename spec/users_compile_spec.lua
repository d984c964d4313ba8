-- Training steps and modules as PyTorch's users compile them.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim = tycho.nn, tycho.nn.functional, tycho.optim
local close = helper.close

describe("users' modules", function()
  it("stay modules when they are compiled", function()
    local net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    local fast = tycho.compile(net)
    assert.equal(4, #fast:parameters())
    assert.equal(fast, fast:eval())
    assert.is_false(net.training)
    local x = tycho.randn(3, 4)
    tycho.no_grad(function() for _ = 1, 4 do close(fast(x), net(x), "results", 0) end end)
    assert.is_true(fast:report()[1].compiled)
    fast:load_state_dict(fast:state_dict())
    fast.note = 3
    assert.equal(3, net.note)
    assert.equal(net[1], fast[1])
    assert.equal("compiled Sequential(", tostring(fast):match "^[^\n]*")
    net.steps = 5
    assert.equal(5, fast.steps)
    local Outer = nn.Module:extend "Outer"
    function Outer:init() self.inner = tycho.compile(nn.Linear(4, 4)) end
    function Outer:forward(v) return self.inner(v) end
    for _, outer in ipairs {Outer(), nn.Sequential(tycho.compile(nn.Linear(4, 4)))} do
      assert.equal(2, #outer:parameters())
      assert.is_false(outer:eval():children()[1].training)
      local names = {}
      for name in pairs(outer:state_dict()) do names[#names + 1] = name:match "[^.]*$" end
      table.sort(names)
      assert.same({"bias", "weight"}, names)
      tycho.no_grad(function() for _ = 1, 3 do assert.equal("3x4", tostring(outer(x).shape)) end end)
      assert.equal(2, #outer:clone():parameters())
    end
    local holder = Outer()
    tycho.no_grad(function() for _ = 1, 3 do holder(x) end end)
    assert.is_true(holder.inner:report()[1].compiled and nn.isinstance(holder.inner, nn.Linear))
    assert.truthy(tycho.jit.trace(fast:eval(), x))
    assert.equal("compiled function", tostring(tycho.compile(print)))
  end)
end)

describe("users' steps", function()
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

  it("are compiled with a list of quantiles", function()
    local f, x = tycho.compile(function(x) return x:quantile({0.25, 0.5}) end), tycho.tensor {1, 2, 3, 4}
    for _ = 1, 4 do assert.same({1.75, 2.5}, f(x):totable()) end
    assert.equal(3, f:report()[1].calls)           -- after the one that was recorded
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

  it("averages parameters within compiled steps", function()
    local function train(compiled)
      tycho.manual_seed(4)
      local net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
      local ema, opt = optim.swa_utils.AveragedModel(net, {decay = 0.9}), optim.SGD(net:parameters(), {lr = 0.1})
      local function step(a, b)
        local loss = tycho.cross_entropy(net(a), b)
        opt:zero_grad()
        loss:backward()
        opt:step()
        ema:update_parameters(net)
        return loss
      end
      local run = compiled and tycho.compile(step) or step
      for _ = 1, 6 do run(tycho.randn(8, 4), tycho.randint(1, 2, {8})) end
      if compiled then assert.is_true(run:report()[1].compiled) end
      return ema
    end
    local a, b = train(false), train(true)
    assert.equal(6, b.n_averaged:item())
    for name, p in a:named_parameters() do assert.is_true(p:equal(b:get_parameter(name)), name) end
  end)
end)
