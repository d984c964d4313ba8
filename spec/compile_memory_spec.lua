-- Compiled functions where it is delicate: failures, memory that others hold or share, coroutines, modes.
local tycho = require "tycho"
local helper = require "spec.helper"
local core = require "tycho.core"
local nn, optim, amp, F = tycho.nn, tycho.optim, tycho.amp, tycho.nn.functional
local same, compiled = helper.compiled_same, helper.compiled

describe("compile", function()
  it("compares ops that fail and are caught: reshape of what can't be seen so, attention", function()
    assert.is_true(compiled(same(function()
      return function(x) return x:t():reshape(6) end, nil, function() return {tycho.randn(2, 3)} end
    end, 6)))
    local f = same(function()
      local other = tycho.ones(7, 7)
      return function(x) return (pcall(x.matmul, x, other)), x * 2 end, nil, function() return {tycho.randn(2, 3)} end
    end, 6)
    assert.is_true(compiled(f))
    f = same(function()
      local m = nn.MultiheadAttention(8, 2, {batch_first = true})
      m:requires_grad_(false)
      return function(x) return (m(x, x, x)) end, nil, function() return {tycho.randn(2, 5, 8)} end
    end, 6)
    assert.is_true(compiled(f))
    same(function()
      local u, w = nn.Parameter(tycho.ones(3)), nn.Parameter(tycho.ones(3))
      return function(x)
        local l = (x * w):sum()
        return (pcall(tycho.grad, l, {u})), l:detach()
      end, nil, function() return {tycho.randn(3)} end
    end, 6)
  end)

  for _, guard in ipairs {"full", "inputs"} do
    it("arguments may be freed, share memory with others and each other, be returned and changed, guard = " .. guard, function()
      local o = {guard = guard}
      local f = tycho.compile(function(x) return x * 2 end, o)
      for i = 1, 5 do
        local x = tycho.full({3}, i)
        assert.same({2 * i, 2 * i, 2 * i}, f(x):totable())
        x:free()
        tycho.scope(function() f(tycho.ones(3)) end)
      end
      local data = tycho.range(1, 40):view(10, 4)
      f = tycho.compile(function(r) return data:sum() + r:sum() * 0 end, o)
      for i = 1, 8 do assert.equal(820, f(data[i]):item()) end
      f = tycho.compile(function(x, y) y:add_(1) return y, x + y, x:view(3, 1) end, o)
      for i = 1, 6 do
        local x, y = tycho.full({3}, i), tycho.full({3}, 2 * i)
        local a, b, c = f(x, y)
        assert.same({2 * i + 1, 2 * i + 1, 2 * i + 1}, y:totable())
        assert.is_true(rawequal(a, y))
        assert.same({{3 * i + 1}, {i}}, {{b[1]}, {c[{1, 1}]}})
        f(x, x)
        assert.equal(i + 1, x[1])
      end
      local d = tycho.range(1, 8)
      f = tycho.compile(function(a, b) a:add_(b) return a * 1 end, o)
      for _ = 1, 4 do f(tycho.ones(7), tycho.ones(7)) end
      assert.same({3, 5, 7, 9, 11, 13, 15}, f(d[{ {2, 8} }], d[{ {1, 7} }]):totable())
      local kept = {}
      local module = nn.Module:extend("M")()
      f = tycho.compile(function(x) module.last = x return x, x + 1 end, o)
      for i = 1, 5 do kept[i] = {f(tycho.full({2}, i))} end
      for i = 1, 5 do assert.same({i, i}, kept[i][1]:totable()) end
      if guard == "full" then assert.same({5, 5}, module.last:totable()) end
      f = tycho.compile(function(x) x:add_(1) return x, x:sum():item() end, o)             -- never compiled
      for i = 1, 5 do
        local x = tycho.full({2}, i)
        local y, sum = f(x)
        assert.is_true(rawequal(x, y))
        assert.same({i + 1, 2 * i + 2}, {x[1], sum})
      end
    end)
  end

  it("leaves gradients that someone holds, and gives them to the leaf that was used", function()
    local w = nn.Parameter(tycho.ones(2))
    local opt, held = optim.SGD({w}, {lr = 0.1}), {}
    local f = tycho.compile(function(x)
      opt:zero_grad()
      local l = (x * w):sum()
      l:backward()
      return l
    end)
    for i = 1, 6 do
      f(tycho.full({2}, i))
      held[i] = w.grad
    end
    for i = 1, 6 do assert.equal(i, held[i][1]) end
    local net = nn.Linear(2, 1)
    f = tycho.compile(function(x) net(x):sum():backward() end)
    local x = tycho.ones(1, 2)
    for _ = 1, 3 do f(x) end
    local old = net.weight
    net.weight = nn.Parameter(old:detach())
    f(x)
    assert.same({{3, 3}}, old.grad:totable())
    assert.same({{1, 1}}, net.weight.grad:totable())
  end)

  it("sees tensors of numbers changed in place, and memory that others write to", function()
    same(function()
      return function(x)
        local c = tycho.tensor({1, 2, 3})
        c:mul_(x)
        return c
      end, nil, function() return {tycho.randn(3)} end
    end, 6)
    if helper.device == "cpu" then
      local buffer = tycho.zeros(3)
      local p = buffer:data()
      local k = 0
      local f = tycho.compile(function(x)
        k = k + 1
        p[0] = k
        local y = x * buffer
        p[0] = k + 100
        return y
      end)
      for i = 1, 6 do assert.equal(i, f(tycho.ones(3))[1]) end
      assert.is_truthy(f:report()[1].why:find("written from outside"))
    end
  end)

  it("coroutines may come in between, use what is there, and be left", function()
    for _, guard in ipairs {"full", "inputs"} do
      local w = tycho.zeros(2)
      local f = tycho.compile(function(x)
        local h, sum = x * 2, x * 0
        w:add_(x)
        for v in coroutine.wrap(function() coroutine.yield(h * 1) coroutine.yield(x + w) end) do sum = sum + v end
        return sum
      end, {guard = guard})
      for i = 1, 6 do assert.equal(2 * i + i + i * (i + 1) / 2, f(tycho.full({2}, i))[1]) end
      local pause = false
      local g = tycho.compile(function(x)
        local y = x + 1
        if pause then coroutine.yield() end
        return y * 3
      end, {guard = guard})
      local x = tycho.ones(2)
      for i = 1, 7 do
        pause = i == 2 or i == 4
        local threads = {coroutine.create(function(a) return g(a) end)}
        local ok, r = coroutine.resume(threads[1], x)
        assert.is_true(ok, tostring(r))
        if pause then
          pause = false
          assert.same({6, 6}, g(x):totable())              -- the same function again meanwhile
          if i == 2 then
            ok, r = coroutine.resume(threads[1])
            assert.is_true(ok, tostring(r))
          else
            threads[1], r = nil, nil                       -- or never again
            collectgarbage() collectgarbage()
          end
        end
        if r then assert.same({6, 6}, r:totable()) end
      end
    end
  end)

  it("modes, frozen leaves and new hooks are seen also where fn isn't asked", function()
    local w = nn.Parameter(tycho.ones(2))
    local f = tycho.compile(function(x)
      w.grad = nil
      if w.requires_grad then (x * w):sum():backward() end
      return x:matmul(x)
    end, {guard = "inputs"})
    local x = tycho.ones(2, 2)
    for _ = 1, 4 do f(x) end
    assert.equal("bfloat16", amp.autocast({dtype = "bfloat16"}, f, x).dtype)
    assert.equal("float32", f(x).dtype)
    w:requires_grad_(false)
    w.grad = nil
    f(x)
    assert.is_nil(w.grad)
    local net, calls = nn.ReLU(), 0
    local g = tycho.compile(function(y) return net(y) end, {guard = "inputs"})
    for _ = 1, 4 do g(x) end
    net:register_forward_hook(function() calls = calls + 1 end)
    g(x)
    assert.equal(1, calls)
    local step = tycho.compile(function(y) w.grad = nil; (y * w:requires_grad_()):sum():backward() end)
    for _ = 1, 4 do step(x) end
    local other, runs = nn.Parameter(tycho.ones(2)), step:report()[1].calls
    other:register_hook(function() end)                    -- of no one in it
    pcall(w.register_hook, w, 3)
    step(x)
    assert.equal(runs + 1, step:report()[1].calls)
    w:register_hook(function(gradient) return gradient * 10 end)
    step(x)
    helper.close(w.grad, tycho.full({2}, 20))
    local t = tycho.compile(function(b) return b.x * 2 end, {guard = "inputs"})
    for i = 1, 4 do assert.equal(2 * i, t({x = tycho.full({1}, i)}):item()) end
  end)

  it("schedules that step within are asked also where fn isn't", function()
    local schedulers = optim.lr_scheduler
    for name, make in pairs {
        restarts = function(opt) return schedulers.CosineAnnealingWarmRestarts(opt, {T_0 = 3}), true end,
        plateau = function(opt) return schedulers.ReduceLROnPlateau(opt, {patience = 1, factor = 0.5}), true end,
        sequential = function(opt)
          local first, second = schedulers.ConstantLR(opt, {total_iters = 2}), schedulers.ExponentialLR(opt, {gamma = 0.9})
          return schedulers.SequentialLR(opt, {first, second}, {3})
        end,
        chained = function(opt) return schedulers.ChainedScheduler {schedulers.ExponentialLR(opt, {gamma = 0.9})} end} do
      local function run(replayed)
        local w = nn.Parameter(tycho.ones(2))
        local opt = optim.SGD({w}, {lr = 1})
        local scheduler, argument = make(opt)
        local k, rates = 0, {}
        local function step(x)
          opt:zero_grad();
          (x * w):sum():backward()
          opt:step()
          k = k + 1
          if argument then scheduler:step(k / 2) else scheduler:step() end
        end
        local f = replayed and tycho.compile(step, {guard = "inputs"}) or step
        for i = 1, 9 do
          f(tycho.ones(2))
          rates[i] = opt.param_groups[1].lr
        end
        return rates
      end
      assert.same(run(false), run(true), name)
    end
  end)

  it("errors of the steps leave nothing behind, and what fails once is done the next time", function()
    local w = nn.Parameter(tycho.randn(4, 3))
    local f = tycho.compile(function(x, y)
      w.grad = nil
      local l = F.cross_entropy(x:matmul(w:t()), y)
      l:backward()
      return l
    end)
    local x, good, bad = tycho.randn(2, 3), tycho.tensor({1, 2}, {dtype = "int64"}), tycho.tensor({1, 9}, {dtype = "int64"})
    for _ = 1, 4 do f(x, good) end
    helper.fails("9", f, x, bad)
    helper.close(f(x, good):detach(), F.cross_entropy(x:matmul(w:detach():t()), good), "after an error", 1e-6)
    local guarded = tycho.compile(function(a, labels)        -- what fails for its data may go well with others
      local ok, l = pcall(F.cross_entropy, a, labels)
      return ok, ok and l or a:sum()
    end)
    local logits = tycho.randn(2, 3)
    if helper.device == "cpu" then
      guarded(logits, good)
      assert.is_false((guarded(logits, bad)))
      for _ = 1, 3 do assert.is_true((guarded(logits, good))) end
    end
    local cyclic = tycho.compile(function(y) local t = {y * 2} t.self = t return t end)
    for _ = 1, 4 do assert.equal(4, cyclic(tycho.full({1}, 2))[1]:item()) end
    helper.fails("max_variants must be a whole number from 1", tycho.compile, print, {max_variants = 0})
  end)

  it("embedding is compiled, and bad ids are told", function()
    local f = same(function()
      local e = nn.Embedding(10, 4)
      return function(ids)
        e.weight.grad = nil
        local l = e(ids):square():sum()
        l:backward()
        return l, e.weight.grad
      end, nil, function() return {tycho.randint(1, 10, {2, 3})} end
    end, 6)
    assert.is_true(compiled(f))
    helper.fails("-1", F.embedding, tycho.tensor({-1}, {dtype = "int64"}), tycho.ones(3, 2))
    helper.fails("indices begin at 1", F.embedding, tycho.tensor({0}, {dtype = "int64"}), tycho.ones(3, 2))
  end)

  it("guard = \"inputs\" sees settings of optimizers, arguments in one storage, and gives numbers of its own each time", function()
    local function train(compile)
      local w = nn.Parameter(tycho.ones(2))
      local opt = optim.SGD({w}, {lr = 0.1, weight_decay = 0.5})
      local f = function(x)
        opt:zero_grad()
        local l = (w * x):sum()
        l:backward()
        opt:step()
        return l:detach()
      end
      if compile then f = tycho.compile(f, {guard = "inputs"}) end
      for i = 1, 8 do
        if i == 5 then opt.param_groups[1].weight_decay = 0 end
        f(tycho.ones(2))
      end
      return w:detach()
    end
    helper.close(train(true), train(false), "weight decay", 0)
    local f = tycho.compile(function(x, y) x:add_(1) return x * 10 + y end, {guard = "inputs"})
    for _ = 1, 3 do f(tycho.rand(3), tycho.rand(3)) end
    local base = tycho.zeros(300)
    tycho.no_grad(function()
      assert.same({10, 10, 10}, f(base[{ {1, 3} }], base[{ {298, 300} }]):totable())
      assert.same({11, 11, 11}, f(base[{ {295, 297} }], base[{ {1, 3} }]):totable())
    end)
    local g = tycho.compile(function(x) local k = tycho.tensor({1, 2, 3}) return x + k, k end, {guard = "inputs"})
    for _ = 1, 5 do
      local y, k = g(tycho.zeros(3))
      assert.same({6, 6}, {y:sum():item(), k:sum():item()})
      k:add_(1)
    end
    local v = 1
    local h = tycho.compile(function() return tycho.full({2}, v) end)
    for _ = 1, 4 do h() end
    v = true
    assert.equal("bool", h().dtype)
  end)

  it("guard = \"inputs\": what is frozen, made once, or set for an optimizer of ops is seen; gradients unscaled within are so", function()
    local function training(class, o, change)
      return function()
        local net = nn.Linear(4, 4)
        local opt = optim[class](net:parameters(), o)
        return function(x)
          opt:zero_grad()
          local loss = net(x):square():mean()
          loss:backward()
          opt:step()
          return loss:detach()
        end, function() return {net.weight, net.bias, opt:state_dict().state[2].step} end, function(i)
          change(i, net, opt.param_groups[1])
          return {tycho.randn(3, 4)}
        end
      end
    end
    local function freeze(i, net)
      if i == 6 then net.weight:requires_grad_(false) elseif i == 8 then net.weight:requires_grad_(true) end
    end
    local function rate(i, _, group) group.lr = 0.1 / math.ceil(i / 8) end
    for _, case in ipairs {{"Adam", {lr = 0.1}, freeze}, {"SGD", {lr = 0.1, momentum = 0.9}, freeze},
        {"SGD", {lr = 0.1}, function(i, _, group) if i == 5 then group.momentum = 0.5 end end}, {"ASGD", {lr = 0.1}, rate},
        {"Adafactor", {lr = 0.1}, rate}, {"SGD", {lr = 0.1}, rate},
        {"Rprop", {lr = 0.1}, function(i, _, group) if i == 5 then group.etas = {0.3, 1.5} end end}} do
      assert.is_true(compiled(same(training(case[1], case[2], case[3]), 16, {guard = "inputs"})), case[1])
    end
    local net = nn.Linear(4, 4)
    local opt, scaler = optim.SGD(net:parameters(), {lr = 0.1}), amp.GradScaler()
    local f = tycho.compile(function(x)
      opt:zero_grad()
      scaler:scale(net(x):square():mean()):backward()
      scaler:unscale_(opt)
      scaler:step(opt)
      scaler:update()
    end, {guard = "inputs"})
    for _ = 1, 6 do
      f(tycho.randn(3, 4))
      nn.utils.clip_grad_norm_(net:parameters(), 1)
    end
    assert.is_true(compiled(f))
  end)

  it("values that nobody keeps share memory; those kept, in whatever call, are their keeper's", function()
    for _, fusion in ipairs {true, false} do
      local w, keep, kept = tycho.randn(64, 64) * 0.1, {}, {}
      local function chain(x)
        for i = 1, 16 do
          x = x:matmul(w)
          if keep[i] then kept[#kept + 1] = tycho.keep(x) end
          x = x:tanh() + x
          if keep[-i] then kept[#kept + 1] = tycho.keep(x:t()) end
        end
        return x
      end
      local f = tycho.compile(chain, {fusion = fusion})
      local function call()
        local x = tycho.randn(64, 64)
        local y = f(x)
        local first = #kept
        local expected = chain(x)
        assert.is_true(y:equal(expected))
        for i = 1, #kept - first do assert.is_true(kept[first - (#kept - first) + i]:equal(kept[first + i])) end
        for i = #kept, first + 1, -1 do kept[i] = nil end
      end
      collectgarbage()
      local before = core.allocated()
      for _ = 1, 4 do call() end
      collectgarbage()
      collectgarbage()
      assert.is_true(compiled(f))
      local most = 8 * 64 * 64 * 4                        -- of 48 results
      assert.is_true(core.allocated() - before < most, "more than eight results' memory")
      for _, places in ipairs {{3}, {-5, 7}, {}, {1, 2, -2, 16}, {3, -16}} do
        keep = {}
        for _, i in ipairs(places) do keep[i] = true end
        call()
      end
      local values = {}
      for i, x in ipairs(kept) do values[i] = x:clone() end
      keep = {}
      for _ = 1, 3 do call() end
      for i, x in ipairs(kept) do assert.is_true(x:equal(values[i])) end
      assert.equal(9, #kept)
      assert.is_true(compiled(f))
    end
  end)

  it("leaves nothing behind of a call that runs out of memory on another way than the record's", function()
    local w, data = tycho.randn(4, 4, {requires_grad = true}), tycho.randn(8, 4)
    local failures = helper.failing_allocations(2, function()
      local other
      local f = tycho.compile(function(x)
        w.grad = nil
        local h = x:mm(w):relu()
        if other then h = h * 2 end
        local c = h - h:mean(-1, true)
        local loss = (c * c):sum()
        loss:backward()
        return loss:detach(), tycho.grad((x:mm(w) * 3):sum(), {w})[1]
      end)
      for _ = 1, 3 do f(data) end
      other = true
      return function() f(data) end, function() w.grad = nil end
    end)
    assert.is_true(failures > 60, failures .. " failures")
  end)

  it("goes on where there was no memory for values that are kept from one call on", function()
    local fails = 0
    for n = 1, 40 do
      local keep, kept = false, {}
      local function chain(x)
        for i = 1, 4 do
          x = (x * 1.5 + i):tanh()
          if keep then kept[#kept + 1] = tycho.keep(x) end
        end
        return x
      end
      local f, x = tycho.compile(chain), tycho.randn(64, 64)
      for _ = 1, 4 do f(x) end
      keep = true
      core.fail_alloc(n, 6)
      local ok = pcall(f, x)
      core.fail_alloc(0)
      fails = fails + (ok and 0 or 1)
      for _ = 1, 3 do
        for i = #kept, 1, -1 do kept[i] = nil end
        local y = f(x)
        local values = {unpack(kept)}
        assert.is_true(y:equal(chain(x)))
        for i, v in ipairs(values) do assert.is_true(v:equal(kept[#values + i])) end
      end
    end
    assert.is_true(fails > 3)
  end)

  it("keeps what a call puts elsewhere, also where it goes another way than the record's", function()
    local hidden, held, more
    local step = tycho.compile(function(x)
      if not hidden then hidden = x * 0 end
      if more then x = x + tycho.zeros(3) end
      hidden = (hidden + x):detach()
      held = x * 2
      return hidden:sum()
    end)
    for i = 1, 12 do
      if i == 5 or i == 9 then hidden = nil end
      more = i > 7
      step(tycho.ones(3))
      assert.equal(3 * (i < 5 and i or i < 9 and i - 4 or i - 8), hidden:sum():item())
      assert.equal(6, held:sum():item())
    end
  end)

  it("follows what is written into parts of a tensor that had no history", function()
    local function rows() return {tycho.randn(4, 3)} end
    local function trained(fn)
      return same(function()
        local cell = nn.Linear(3, 3)
        return function(x)
          cell:zero_grad()
          local y = fn(cell, x)
          y:square():sum():backward()
          return y:detach(), cell.weight.grad, cell.bias.grad
        end, nil, rows
      end, 8)
    end
    assert.is_true(compiled(trained(function(cell, x)                      -- a recurrent net's outputs, row by row
      local out, h = tycho.zeros(4, 3), tycho.zeros(3)
      for t = 1, 4 do
        h = cell(x[t] + h):tanh()
        out[t] = h
      end
      return out
    end)))
    assert.is_true(compiled(trained(function(cell, x)                      -- parts that are read before and after, through other views
      local out = tycho.ones(4, 3)
      local first, second, all = out[1], out[2], out:view(12)
      local before = first * 2
      first:copy_(cell(x[1]))
      second:add_(first):mul_(2)
      out[{ {}, 3 }] = cell(x)[{ {}, 1 }]
      local read = all[{ {1, 6} }] + first:sum()
      all[{ {10, 12} }]:add_(cell(x[4]))
      return tycho.cat({out:view(12), read, before, second})
    end)))
    assert.is_true(compiled(trained(function(cell, x)                      -- what has no gradient is written over what has one
      local out = tycho.zeros(4, 3)
      out[1] = cell(x[1])
      out[1] = 5
      out[{ {2, 3} }] = cell(x[{ {2, 3} }])
      tycho.no_grad(function() out[4]:fill_(1) end)
      return out
    end)))
    local more = false                                                     -- calls part after such a write
    local cell = nn.Linear(3, 3)
    local function body(x)
      local out = tycho.zeros(4, 3)
      out[2] = cell(x[2])
      local v = out[2]
      if more then out[3] = cell(v * 1) end
      cell:zero_grad()
      out:square():sum():backward()
      return out:detach()
    end
    local f = tycho.compile(body)
    for i = 1, 14 do
      more = i > 6 and i % 3 == 0
      local x = tycho.randn(4, 3)
      local y, g = f(x):clone(), cell.weight.grad:clone()
      assert.is_true(y:equal(body(x)) and g:equal(cell.weight.grad), "call " .. i)
    end
    local buffer = tycho.zeros(4, 3)                                       -- another one's: its history is the caller's
    local g = tycho.compile(function(x) buffer[1] = cell(x[1]) return buffer:sum():detach() end)
    for _ = 1, 4 do
      buffer = tycho.zeros(4, 3)
      local x = tycho.randn(4, 3)
      g(x)
      helper.close(buffer[1], cell(x[1]))
      assert.is_true(buffer.requires_grad)
    end
  end)
end)
