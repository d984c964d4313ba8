-- Compiled functions that don't go the same way in each call: every way has its record, and the calls stay right to the bit.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, optim, amp, F = tycho.nn, tycho.optim, tycho.amp, tycho.nn.functional

local same = helper.compiled_same

-- {calls that went it, for each way}, and whether all of the report is compiled
local function ways(f)
  local calls, all = {}, true
  for i, r in ipairs(f:report()) do calls[i], all = r.calls, all and r.compiled end
  return calls, all
end

local function total(list)
  local n = 0
  for _, x in ipairs(list) do n = n + x end
  return n
end

describe("compile, a function of several ways", function()
  local function accumulation(o)
    return function()
      local net = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3))
      local opt = optim.AdamW(net:parameters(), {lr = 0.01})
      local scaler = o.scaler and amp.GradScaler{init_scale = 64, growth_interval = 2}
      local scheduler = o.schedule and optim.lr_scheduler.CosineAnnealingLR(opt, {T_max = 5})
      local k, log = 0, {}
      return function(x, y)
        k = k + 1
        local loss
        if o.autocast then loss = amp.autocast({dtype = o.autocast}, function() return F.cross_entropy(net(x), y) / o.every end)
        else loss = F.cross_entropy(net(x), y) / o.every end
        if scaler then scaler:scale(loss):backward() else loss:backward() end
        if k % o.every == 0 then
          if scaler then
            scaler:unscale_(opt)
            nn.utils.clip_grad_norm_(net:parameters(), 0.5)
            scaler:step(opt)
            scaler:update()
          else opt:step() end
          opt:zero_grad()
          if scheduler then scheduler:step() end
        end
        if o.reads and k % o.reads == 0 then log[#log + 1] = loss:item() end
        return loss:detach()
      end, function()
        local all = {unpack(log)}
        for _, p in ipairs(net:parameters()) do all[#all + 1] = p:detach() end
        if scaler then all[#all + 1] = scaler:get_scale() end
        return all
      end, function() return {tycho.randn(5, 6), tycho.randint(1, 3, {5})} end
    end
  end

  for name, o in pairs {plain = {every = 4}, ["every second"] = {every = 2}, scheduled = {every = 3, schedule = true},
      autocast = {every = 4, autocast = "bfloat16"}, scaled = {every = 3, scaler = true, autocast = "float16"}} do
    it("gradients that are accumulated within: " .. name, function()
      local n = 30
      local f = same(accumulation(o), n)
      local calls, all = ways(f)
      assert.is_true(all, tostring(f:report()[1].why))
      assert.is_true(total(calls) >= n - 2 * o.every - 3, table.concat(calls, " ") .. " of " .. n .. " calls")
    end)
  end

  it("watches modules for its own calls alone, where coroutines take turns", function()
    local net, seen = nn.Linear(2, 2), 0
    local function slow()
      local f = tycho.compile(function(x)
        coroutine.yield()
        return net(x)
      end)
      return coroutine.wrap(function(x) return f(x) end)
    end
    local a, b = slow(), slow()
    a(tycho.ones(1, 2))
    b(tycho.ones(1, 2))
    a()                                                    -- the one that began first ends first
    b()
    local ended = require("tycho.nn.module").observe(function() seen = seen + 1 end)
    net(tycho.ones(1, 2))
    ended()
    net(tycho.ones(1, 2))
    assert.equal(1, seen)
  end)
  it("knows a mode from its first call on", function()
    local net = nn.Linear(4, 3)
    local opt = optim.SGD(net:parameters(), {lr = 0.1})
    for _, guard in ipairs {"full", "inputs"} do
      local f = tycho.compile(function(x)
        local l = net(x):square():sum()
        if net.training then opt:zero_grad() l:backward() opt:step() end
        return l:detach()
      end, {guard = guard})
      local x = tycho.ones(2, 4)
      for i = 1, 40 do f((i % 5 == 0 and net:eval() or net:train()) and x) end    -- a single call between others
      assert.equal(2, #f:report())
      net:train()
    end
  end)
  it("a value that is read now and then costs the calls that read it", function()
    local n = 40
    local f = same(accumulation{every = 1, reads = 10}, n)
    local calls, all = ways(f)
    assert.is_true(all and total(calls) >= n - 4 - 2, table.concat(calls, " "))
    f = same(accumulation{every = 2, reads = 7}, n)
    assert.is_true(total((ways(f))) >= n - 5 - 6, table.concat((ways(f)), " "))
  end)

  it("an error now and then, too", function()
    local f = same(function()
      local k, w = 0, tycho.randn(4)
      local function fn(x)
        k = k + 1
        local y = (x * w):tanh()
        if k % 5 == 0 then error("planned", 0) end
        return y + 1
      end
      return function(x) local ok, y = pcall(fn, x) return ok, ok and y or y end, nil, function() return {tycho.randn(4)} end
    end, 20)
    assert.is_true(select(2, ways(f)))
    local k = 0
    f = tycho.compile(function(x)
      k = k + 1
      local y = x * 2
      if k % 4 == 0 then error("planned", 0) end
      return y
    end)
    for i = 1, 16 do
      local ok, y = pcall(f, tycho.full({2}, i))
      assert.equal(i % 4 ~= 0, ok)
      if ok then assert.equal(2 * i, y[1]) else assert.equal("planned", y) end
    end
    assert.is_true(f:report()[1].compiled and f:report()[1].calls > 8)
  end)

  it("branches in any order, as parts of one another; what is kept from each stays as it was", function()
    local order, kept = {1, 2, 3, 1, 1, 2, 3, 3, 4, 2, 1, 4, 3, 4, 1, 2, 2, 5, 5, 1, 5, 3, 2, 4, 1, 5, 2, 3}, {}
    local function make()
      kept = {}
      local k, w = 0, nn.Parameter(tycho.randn(4, 4))
      return function(x)
        k = k + 1
        local way = order[(k - 1) % #order + 1]
        w.grad = nil
        local h = x:matmul(w):tanh()
        local first = h * 2
        if way == 2 then h = h + x end
        if way >= 3 then h = h:exp() end
        if way == 4 then kept[#kept + 1] = tycho.keep(h:detach()) end
        if way == 5 then h = h:clone():add_(1) end
        h:square():sum():backward()
        if way == 3 then w.grad:mul_(0.5) end
        return first:detach(), w.grad, h:detach()
      end, function()
        local out = {}
        for i, t in ipairs(kept) do out[i] = t end
        return out
      end, function() return {tycho.randn(3, 4)} end
    end
    local f = same(make, 2 * #order)
    local calls, all = ways(f)
    assert.is_true(all and #calls >= 4 and total(calls) > 2 * #order - 12, table.concat(calls, " "))
  end)

  it("keeps max_variants ways, and forgets those that are not gone any more", function()
    local way = 1
    local function fn(x)
      for _ = 1, way do x = x + 1 end
      return x
    end
    local f = tycho.compile(fn, {max_variants = 3})
    local function go(to) way = to return f(tycho.zeros(2))[1] end
    for _ = 1, 3 do
      for to = 1, 3 do assert.equal(to, go(to)) end
    end
    assert.equal(3, #f:report())
    assert.equal(4, go(4))
    assert.equal(3, #f:report())
    for _ = 1, 300 do go(4) end
    assert.equal(1, #f:report())
    local h = tycho.compile(fn, {max_variants = 3})                -- more ways than that, in turn: none is worth while
    for i = 0, 12 do
      way = i % 5 + 1
      assert.equal(way, h(tycho.zeros(2))[1])
    end
    assert.is_false(h:report()[1].compiled)
    assert.truthy(h:report()[1].why:find "each call differed from the recording")
  end)

  it("ways share the memory of what is used up within", function()
    local w, way = tycho.randn(64, 64) * 0.1, 1
    local function chain(x)
      for _ = 1, 12 do x = (x:matmul(w) + 1):tanh() end
      for _ = 1, way do x = x:matmul(w) end
      return x:sum()
    end
    local function used(ways_of)
      local f = tycho.compile(chain, {fusion = false})
      local x = tycho.randn(64, 64)
      collectgarbage()
      collectgarbage()
      local before = core.allocated()
      for i = 1, 4 * ways_of do
        way = i % ways_of + 1
        f(x)
      end
      collectgarbage()
      collectgarbage()
      assert.equal(ways_of, #f:report())
      return core.allocated() - before
    end
    local one, four = used(1), used(4)
    assert.is_true(four < one + 2 * 64 * 64 * 4, ("%d bytes for one way, %d for four"):format(one, four))
  end)

  it("numbers of the function's own, arguments of one memory, results of a way that is left in the middle", function()
    local k = 0
    local function fn(x, y)
      k = k + 1
      local t = tycho.tensor({1, 2, 3, 4})
      local a = x * t
      if k % 3 == 0 then a = a + y else a = a - y end
      local b = a:view(2, 2)
      if k % 2 == 0 then b = b * tycho.tensor({{1, 0}, {0, 1}}) end
      return a, b:sum(), b
    end
    local plain, f = fn, tycho.compile(fn)
    for i = 1, 30 do
      local x, y = tycho.randn(4), tycho.randn(4)
      k = i
      local a, s, b = f(x, y)
      k = i
      local pa, ps, pb = plain(x, y)
      assert.is_true(a:equal(pa) and s:equal(ps) and b:equal(pb), "call " .. i)
    end
    assert.equal(6 - 2, #f:report())
  end)
end)

-- A function that makes one with a state of its own: plain and compiled, call for call.
local function alike(make, calls, each)
  local a, b = make(), tycho.compile(make(), {fusion = false})
  for i = 1, calls do
    local x, y = a(each(i)), b(each(i))
    assert.same(x:totable(), y:totable(), "call " .. i)
  end
  return b
end

describe("compiled ways", function()
  it("indices before a place where calls part stay what they were", function()
    local f = tycho.compile(function(x, i, more)
      local y = x:select(1, i)
      if more then y = y + 100 end
      return y * 2
    end, {fusion = false})
    local x = tycho.tensor {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}
    for _, c in ipairs {{3}, {3}, {3}, {3, true}, {2}, {1}, {2, true}, {1, true}, {3}, {2}, {1}, {4}, {4}, {4, true}, {3}, {3, true}} do
      assert.equal((c[1] + (c[2] and 100 or 0)) * 2, f(x, c[1], c[2])[1])
    end
    local more, n = false, 0
    local g = tycho.compile(function(v)
      n = n + 1
      local y = v:select(1, 2) * 3
      if more then y = y + 1 end
      return y
    end)
    for i = 1, 12 do
      more = i % 2 == 0
      assert.equal(more and 7 or 6, g(tycho.tensor {1, 2}):item())
    end
    assert.equal(2, #g:report())
    assert.is_true(g:report()[1].compiled)
  end)

  it("a call that didn't come to its end is trusted by none", function()
    local w = nn.Parameter(tycho.zeros(2))
    local opt = optim.SGD({w}, {lr = 0, weight_decay = 0})
    local way, yields = 1, false
    local f = tycho.compile(function(x)
      local y = x + way * 10
      w.grad = nil
      ;(w * x):sum():backward()
      opt:step()
      if yields then coroutine.yield() end
      return y
    end, {guard = "inputs", fusion = false})
    local x = tycho.zeros(2)
    for _ = 1, 3 do f(x) end
    opt.param_groups[1].weight_decay, way = 0.1, 2
    f(x)
    opt.param_groups[1].weight_decay, way, yields = 0.2, 2, true
    coroutine.resume(coroutine.create(function() return f(x) end))
    collectgarbage()
    collectgarbage()
    opt.param_groups[1].weight_decay, way, yields = 0.1, 1, false
    for _ = 1, 3 do assert.equal(10, f(x)[1]) end
  end)

  it("what couldn't be done again is an error, also where the function catches it #cpu", function()
    local more = false
    local f = tycho.compile(function(x)
      local h = x * 2 + 1
      local y = h
      if more then
        local ok = pcall(function() y = h:exp() end)
        if not ok then y = h end
      end
      return y:clone()
    end, {fusion = false})
    for n = 1, 12 do
      more = false
      for i = 1, 3 do f(tycho.full({2}, i)) end
      more = true
      local x = tycho.full({2}, 9)
      core.fail_alloc(n, 1)
      local ok, y = pcall(f, x)
      core.fail_alloc(0)
      y = ok and y[1]
      assert.is_true(not ok or y == 19 or math.abs(y / math.exp(19) - 1) < 1e-5, ("n = %d: %s"):format(n, tostring(y)))
    end
  end)

  it("an argument that the function keeps is its own", function()
    alike(function()
      local prev
      return function(x)
        local y = prev and x - prev or x * 1
        prev = x
        return y
      end
    end, 8, function(i) return tycho.full({2}, i * i) end)
    alike(function()
      local kept = {}
      return function(x)
        kept[#kept + 1] = x[1]
        return x * 2 + kept[1]
      end
    end, 8, function(i) return tycho.full({2}, i * i) end)
  end)

  it("a gradient that is held when the leaf loses it keeps its values", function()
    alike(function()
      local w, prev = nn.Parameter(tycho.ones(3)), nil
      local f = function(x)
        prev = w.grad
        w.grad = nil
        ;(w * x):sum():backward()
        return w.grad * 1
      end
      return function(x)
        f(x)
        return prev or x * 0
      end
    end, 8, function(i) return tycho.full({3}, i) end)
    local w, prev = nn.Parameter(tycho.ones(3)), nil
    local f = tycho.compile(function(x)
      prev = w.grad
      w.grad = nil
      ;(w * x):sum():backward()
    end)
    for i = 1, 8 do
      f(tycho.full({3}, i))
      assert.equal(i > 1 and i - 1 or nil, prev and prev[1])
      assert.equal(i, w.grad[1])
    end
    assert.is_true(f:report()[1].compiled)
  end)

  it("a history from outside is followed in each call", function()
    local w, buf = nn.Parameter(tycho.ones(2)), tycho.zeros(2)
    local f = tycho.compile(function(x)
      w.grad = nil
      local l = (buf * x):sum()
      l:backward()
      return l:detach()
    end, {fusion = false})
    for i = 1, 6 do
      buf = w * i
      assert.equal(2 * i, f(tycho.ones(2)):item())
      assert.equal(i, w.grad[1])
    end
  end)

  it("what a compiled call has left behind isn't passed over in a backward pass outside", function()
    local net, kept = nn.Linear(4, 3), nil
    local f = tycho.compile(function(x)
      kept = net(x)
      return kept:detach() * 1
    end)
    for _ = 1, 4 do f(tycho.rand(5, 4)) end
    helper.fails("was made within a compiled function", function() kept:sum():backward() end)
    helper.fails("was made within a compiled function", function() kept:backward(tycho.ones(5, 3)) end)
    kept:detach():sum()
  end)

  it("a checkpoint's graph is kept where a backward pass is asked to, and its parts don't end what is kept", function()
    local l, way = nn.Linear(3, 3), 1
    local function fn(x)
      l.weight.grad, l.bias.grad = nil, nil
      local h = tycho.utils.checkpoint(l, x)
      local g = tycho.autograd.grad(h:sum(), {l.weight}, {retain_graph = true})[1]
      if way == 2 then h = h:sin() end
      h:mean():backward {retain_graph = true}
      return g + l.weight.grad
    end
    local f = tycho.compile(fn)
    for i = 1, 12 do
      way = i % 3 == 0 and 2 or 1
      local x = tycho.full({2, 3}, i)
      local got = f(x)
      helper.close(got, fn(x), "call " .. i, 0)
    end
    local cache
    local c = tycho.compile(function(x)
      local h = tycho.utils.checkpoint(function(a) return l(a):relu() end, x)
      h:sum():backward()
      l.weight.grad, l.bias.grad = nil, nil
      cache = h:detach() * 1.5
      return cache:sum()
    end)
    for i = 1, 5 do assert.equal(c(tycho.full({2, 3}, i)):item(), cache:sum():item()) end
    local k, kept = 0, nil
    local g = tycho.compile(function(x)                     -- a tensor that no step is for, in some of the calls
      k = k + 1
      if k % 4 == 0 then tycho.tensor({k}) end
      kept = x * 3
      return x + 1
    end, {fusion = false})
    for i = 1, 9 do
      g(tycho.full({2}, i))
      assert.equal(3 * i, kept[1])
    end
  end)

  it("whether gradients are scaled is as it was where calls part", function()
    local function run(compiled)
      tycho.manual_seed(1)
      local net = nn.Linear(3, 2)
      local opt, scaler, k, log = optim.SGD(net:parameters(), {lr = 0.1}), amp.GradScaler {init_scale = 64}, 0, {}
      for _, p in ipairs(net:parameters()) do p.grad = tycho.zeros_like(p) end
      local f = function(x)
        k = k + 1
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        opt:step()
        opt:zero_grad(false)
        local loss = net(x):square():mean()
        scaler:scale(loss):backward()
        if k % 5 == 0 then loss:item() end
        scaler:unscale_(opt)
        scaler:update()
        return loss:detach()
      end
      if compiled then f = tycho.compile(f, {fusion = false}) end
      for i = 1, 11 do
        tycho.manual_seed(i)
        log[i] = f(tycho.randn(4, 3)):item()
      end
      return log
    end
    assert.same(run(false), run(true))
  end)

  it("calls that can't be recorded cost what they would without compile #cpu", function()
    local n, collected = 0, 0
    local f = tycho.compile(function(x)
      n = n + 1
      local y = x * 2 + 1
      if n % 2 == 0 then return y:sum():item() end
      return y
    end)
    local plain = collectgarbage
    for i = 1, 20 do
      if i == 5 then
        rawset(_G, "collectgarbage", function(...)
          collected = collected + 1
          return plain(...)
        end)
      end
      f(tycho.ones(3))
    end
    rawset(_G, "collectgarbage", plain)
    assert.equal(0, collected)
  end)

  it("modules that a later way runs are looked at by guard = inputs", function()
    local m1, m2, lin = nn.Dropout(.5), nn.Dropout(.5), nn.Linear(6, 1)
    local opt, flag = optim.SGD(lin:parameters(), {lr = .1}), true
    local f = tycho.compile(function(x)
      local h = flag and m1(x) + 1 or m2(x) * 10
      lin(h):sum():backward()
      opt:step()
      opt:zero_grad()
      return h
    end, {guard = "inputs"})
    local x = tycho.ones(6)
    for _ = 1, 5 do f(x) end
    flag = false
    opt.param_groups[1].weight_decay = .01
    for _ = 1, 4 do f(x) end
    m2:eval()
    assert.same({10, 10, 10, 10, 10, 10}, f(x):totable())
  end)

  it("a leaf that is given stays the one that it is, and takes other values", function()
    local function gradient(x)
      x.grad = nil
      (x * x):sum():backward()
      return x.grad * 1
    end
    local f = tycho.compile(gradient)
    for _ = 1, 12 do f(tycho.randn(2, 3):requires_grad_()) end
    assert.equal("argument 1 requires a gradient, and is a different tensor in each call", f:report()[1].why)
    local known = tycho.ones(1, {requires_grad = true})                    -- not the leaf that stays is at fault
    local other = tycho.compile(function(w, x) return (w * x):sum():detach() end)
    for n = 1, 9 do other(known, tycho.randn(n)) end
    assert.truthy(other:report()[1].why:find("more than 8 variants", 1, true))
    local leaf, g = tycho.zeros(2, 3, {requires_grad = true}), tycho.compile(gradient)
    for _ = 1, 6 do
      local x = tycho.randn(2, 3)
      tycho.no_grad(leaf.copy_, leaf, x)
      helper.exact(g(leaf), 2 * x)
    end
    assert.is_true(helper.compiled(g))
  end)

  it("which switches the modes of its modules has a way for each", function()
    local net
    local function make(every)
      return function()
        net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        local opt, k = optim.SGD(net:parameters(), {lr = 0.1}), 0
        return function(x)
          k = k + 1
          if k % every == 0 then net:eval() else net:train() end
          local loss = net(x):pow(2):mean()
          opt:zero_grad()
          loss:backward()
          opt:step()
          return loss:detach()
        end, function() return {net[1].weight:detach(), net[2].running_mean} end, function() return {tycho.randn(8, 4)} end
      end
    end
    for every = 2, 3 do
      local calls, all = ways(same(make(every), 24))
      assert.is_true(all)
      assert.equal(2, #calls)
      assert.equal(23, total(calls))
    end
  end)

  it("says which operand is another one from call to call", function()
    local average = tycho.zeros(1)
    local f = tycho.compile(function(x)
      average = average * 0.9 + x:mean() * 0.1
      return average
    end)
    for _ = 1, 20 do f(tycho.ones(3)) end
    assert.is_truthy(f:report()[1].why:find("operand 1 is a different tensor in each call", 1, true))
  end)

  it("says what read a value, and where", function()
    local x, labels = tycho.ones(2, 3), tycho.tensor({2, 3}, {dtype = "int64"})
    for text, fn in pairs {
        ["item() is called (spec/"] = function() return x:sum():item() end,
        ["one_hot: item() is called (spec/"] = function() return nn.functional.one_hot(labels) * 2 end,
        ["ctc_loss: totable() is called (spec/"] = function()
          return nn.functional.ctc_loss(tycho.zeros(4, 2, 3), labels:view(2, 1), labels * 0 + 4, labels * 0 + 1)
        end} do
      local f = tycho.compile(fn)
      for _ = 1, 4 do f() end
      local why = f:report()[1].why
      assert.equal(text, why:sub(1, #text))
    end
  end)
end)
