-- Compiled functions: whatever a function does, and however it changes from call to call, it does the same compiled, to the bit.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, optim, amp, F = tycho.nn, tycho.optim, tycho.amp, tycho.nn.functional

local same, compiled = helper.compiled_same, helper.compiled

local function trainer(options)
  options = options or {}
  return function()
    local net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 4))
    if options.half then net:half() end
    local opt = (options.optimizer or function(p) return optim.AdamW(p, {lr = 0.01}) end)(net:parameters())
    local schedule = options.cycle and optim.lr_scheduler.OneCycleLR(opt, {max_lr = 0.05, total_steps = 40}) or
      options.schedule and optim.lr_scheduler.ExponentialLR(opt, {gamma = 0.9})
    local scaler = options.scaler and amp.GradScaler{init_scale = 64, growth_interval = 3}
    local function step(x, y)
      opt:zero_grad()
      local loss
      if options.autocast then loss = amp.autocast({dtype = options.autocast}, function() return F.cross_entropy(net(x), y) end)
      else loss = F.cross_entropy(net(options.half and x:half() or x):float(), y) end
      if scaler then
        scaler:scale(loss):backward()
        if options.clip then
          scaler:unscale_(opt)
          nn.utils.clip_grad_norm_(net:parameters(), 0.5)
        end
        scaler:step(opt)
        scaler:update()
      else
        loss:backward()
        if options.clip then nn.utils.clip_grad_norm_(net:parameters(), 0.5) end
        opt:step()
      end
      if schedule and options.schedule == "inside" then schedule:step() end
      return loss
    end
    local x, y = tycho.randn(8, 10, 6), tycho.randint(1, 4, {8, 10})
    return step, function()
      local all = {}
      for _, p in ipairs(net:parameters()) do all[#all + 1] = p:detach() end
      for _, b in ipairs(net:buffers()) do all[#all + 1] = b end
      if scaler then all[#all + 1] = scaler:get_scale() end
      return all
    end, function(i)
      if schedule and options.schedule == "outside" then schedule:step() end
      return {x[(i - 1) % 8 + 1], y[(i - 1) % 8 + 1]}
    end
  end
end

---- random programs of the op table ----
local core = require "tycho.core"
local unary, binary, reduce = {}, {}, {}
require "tycho.grad"                                         -- which says what is differentiable
for _, op in ipairs(core.op_table()) do
  local plain = op.domain == "any" or op.domain == "nonzero"
  if op.class == "pointwise" and plain and op.differentiable and op.results == 1 then
    if op.signature:match("^a:operand, b:operand") and not op.name:find("bitwise") then binary[#binary + 1] = op.name
    elseif op.signature == "x" then unary[#unary + 1] = op.name end
  elseif op.class == "reduce" and (op.name == "sum" or op.name == "mean" or op.name == "amax") then reduce[#reduce + 1] = op.name end
end
table.sort(unary) table.sort(binary) table.sort(reduce)

-- A function of (x, y, w), 6 x 4, 1 x 4 and 4 x 4, that is a chain of random ops; every number it draws comes from its seed.
local function random_program(seed)
  local state = seed * 7919 + 17
  local function draw(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % n + 1
  end
  local lines = {}
  for i = 1, 3 + draw(8) do lines[i] = {draw(11), draw(1000), draw(1000), draw(1000)} end
  local train, places = draw(3) > 1, draw(2) == 1
  return function(x, y, w)
    if train then w.grad = nil end
    local v = {x, y, x:t():contiguous():t(), w}
    local function pick(k) return v[(k - 1) % #v + 1] end
    for _, l in ipairs(lines) do
      local a, b = pick(l[2]), pick(l[3])
      local kind = l[1]
      local z
      if kind <= 3 then z = core.ops[unary[l[4] % #unary + 1]](a)
      elseif kind <= 6 and (a:dim() < 2 or b:dim() < 2 or a.shape[1] == b.shape[1] or a.shape[1] == 1 or b.shape[1] == 1) and
          a:dim() == b:dim() then
        z = core.ops[binary[l[4] % #binary + 1]](a, b)
      elseif kind == 7 then z = a:dim() == 2 and core.ops[reduce[l[4] % #reduce + 1]](a, {l[4] % 2 + 1}, {keepdim = true}) or a * 2
      elseif kind == 8 then z = a:dim() == 2 and a.shape[2] == 4 and a:matmul(w) or a + 1
      elseif kind == 9 then z = a:dim() == 2 and a:softmax(l[4] % 2 + 1) or a:neg()
      elseif kind == 10 then z = places and (a * 1):add_(0.5) or tycho.where(a:gt(0), a, a * 0.1)
      else z = a:dim() == 2 and a:t():clone():t() or a end
      if z.shape[2] == 4 then v[#v + 1] = z end
    end
    local out = v[#v]
    if train and out.requires_grad then
      out:float():mean():backward()
      return out:detach(), w.grad
    end
    return out:detach()
  end
end

describe("compile", function()
  it("gives 1,000 random programs to the bit", function()
    local n = helper.device == "cpu" and 1000 or 60
    local done = 0
    for seed = 1, n do
      local fn = random_program(seed)
      local w1 = nn.Parameter(tycho.randn(4, 4))
      local w2 = nn.Parameter(w1:detach():clone())
      local f = tycho.compile(fn, {guard = seed % 2 == 0 and "inputs" or "full", fusion = seed % 4 < 2})
      for _ = 1, 4 do
        local x, y = tycho.randn(6, 4), tycho.randn(1, 4)
        if seed % 3 == 0 then x = tycho.randn(4, 6):t() end
        local a, b = {fn(x, y, w1)}, {f(x, y, w2)}
        assert.equal(#a, #b)
        for k = 1, #a do helper.close(b[k], a[k], "program " .. seed .. ", result " .. k, 0) end
      end
      done = done + (f:report()[1].compiled and 1 or 0)
    end
    assert.equal(n, done)
  end)

  for _, guard in ipairs {"full", "inputs"} do
    it("gives whole training steps to the bit, guard = " .. guard, function()
      local o = {guard = guard}
      for name, options in pairs {
        adamw = {}, sgd = {optimizer = function(p) return optim.SGD(p, {lr = 0.1, momentum = 0.9}) end}, clip = {clip = true},
        rmsprop = {optimizer = function(p) return optim.RMSprop(p, {momentum = 0.9}) end},
        adagrad = {optimizer = function(p) return optim.Adagrad(p, {lr_decay = 0.1}) end},
        nadam = {optimizer = function(p) return optim.NAdam(p) end}, bfloat16 = {autocast = "bfloat16"},
        float16 = {autocast = "float16", scaler = true}, clipped = {autocast = "float16", scaler = true, clip = true},
        outside = {schedule = "outside"},
        masters = {half = true, scaler = true, optimizer = function(p) return optim.AdamW(p, {master_weights = true}) end}} do
        local f = same(trainer(options), 8, o)
        assert.is_true(compiled(f), name .. ": " .. tostring(f:report()[1].why))
      end
    end)
  end

  it("takes two models with an optimizer each and one scaler", function()
    local f = same(function()
      local a, b = nn.Linear(3, 3), nn.Linear(3, 1)
      local oa, ob, scaler = optim.Adam(a:parameters()), optim.SGD(b:parameters(), {lr = 0.1}),
        amp.GradScaler{init_scale = 8, growth_interval = 2}
      return function(x)
        ob:zero_grad()
        scaler:scale(b(a(x):detach()):square():mean()):backward()
        scaler:step(ob)
        oa:zero_grad()
        scaler:scale(b(a(x)):mean()):backward()
        scaler:step(oa)
        scaler:update()
      end, function() return {a.weight:detach(), b.weight:detach(), scaler:get_scale()} end, function() return {tycho.randn(4, 3)} end
    end, 10)
    assert.is_true(compiled(f))
  end)

  if helper.device ~= "cpu" then it("is captured once, and waits for nothing", function()
    local begin, captures = core.gpu.graph_begin, 0
    core.gpu.graph_begin = function(...) captures = captures + 1 return begin(...) end
    local ok, err = pcall(function()
      for _, guard in ipairs {"full", "inputs"} do
        tycho.manual_seed(7)
        local step, _, arguments = trainer {autocast = "float16", scaler = true, clip = true} ()
        local f, batches = tycho.compile(step, {guard = guard}), {}
        for i = 1, 8 do batches[i] = arguments(i) end
        for i = 1, 3 do f(unpack(batches[i])) end
        captures = 0
        local waits = tycho.cuda.sync_count()
        for _ = 1, 3 do for i = 1, 8 do f(unpack(batches[i])) end end
        assert.same({0, waits}, {captures, tycho.cuda.sync_count()})
        assert.is_true(compiled(f))
      end
    end)
    core.gpu.graph_begin = begin
    if not ok then error(err, 0) end
  end) end

  if helper.device ~= "cpu" and os.getenv "TYCHO_CUDA_CACHE" ~= "0" then
    it("takes learning rates also where there are no graphs", function()
      local p = io.popen([[TYCHO_CUDA_CACHE=0 luajit -e '
      local tycho = require "tycho"
      local w = tycho.nn.Parameter(tycho.ones(4, {device = "cuda"}))
      local opt = tycho.optim.SGD({w}, {lr = 0.5})
      local f = tycho.compile(function() opt:zero_grad() local loss = (w * 2):sum() loss:backward() opt:step() end)
      for i = 1, 4 do opt.param_groups[1].lr = i f() end
      print(f:report()[1].compiled, w:sum():item())' 2>&1]])
      local out = p:read("*a")
      p:close()
      assert.equal("true\t-76\n", out)
    end)
  end

  if helper.device ~= "cpu" and os.getenv "TYCHO_CUDA_CACHE" ~= "0" then it("is part of a graph that is captured around it", function()
    local x = tycho.randn(8)
    local f = tycho.compile(function(a) return a * 2 + 1 end)
    for calls = 0, 3 do
      local g, y = tycho.cuda.graph(function() return f(x) end)
      for i = 1, 2 do
        x:fill_(i + calls)
        g:replay()
        helper.close(y, tycho.full({8}, 2 * (i + calls) + 1))
      end
      f(x)
    end
  end) end

  it("sees the schedule's learning rates, also those set within", function()
    assert.is_true(compiled(same(trainer {schedule = "inside"}, 8)))
    assert.is_true(compiled(same(trainer {schedule = "inside", cycle = true}, 20)))      -- which changes Adam's betas too
  end)

  it("sees a changed shape, dtype, layout and training mode, and keeps a variant of each", function()
    local f = same(function()
      local net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
      net:requires_grad_(false)
      return function(x) return net(x) * 2 end, nil, function(i)
        net:train(i % 3 ~= 0)
        local x = i % 2 == 0 and tycho.randn(3, 4) or i % 5 == 0 and tycho.randn(4, 3):t() or tycho.randn(5, 4)
        return {x}
      end
    end, 40)
    local n = 0
    for _, v in ipairs(f:report()) do n = n + (v.compiled and 1 or 0) end
    assert.is_true(n >= 4, n .. " variants")
  end)

  it("sees changed numbers, branches, values and order in the function", function()
    local f = same(function()
      local k, mode, table_value = 0, 0, {scale = 1}
      return function(x)
        k = k + 1
        if k == 4 then table_value.scale = 3 end
        if k == 8 then mode = 1 end
        local y = x * table_value.scale
        if mode == 1 then y = y:exp() + 1 else y = y:sin() - 1 end
        return y:sum(), y
      end, nil, function() return {tycho.randn(4, 5)} end
    end, 14)
    assert.is_true(compiled(f))
  end)

  it("gives up, and stays right, where each call differs", function()
    local f = same(function()
      local k = 0
      return function(x) k = k + 1; return x * k end, nil, function() return {tycho.randn(4)} end
    end, 20)
    assert.is_false(compiled(f))
    assert.is_truthy(f:report()[1].why:find("each call differed from the recording: mul differs: a number is ", 1, true))
  end)

  it("runs as it is what reads values, depends on data or has hooks", function()
    local function why(make, text)
      local f = same(make, 6)
      assert.is_false(compiled(f))
      assert.is_truthy(f:report()[1].why:find(text, 1, true), f:report()[1].why)
    end
    local function batches() return {tycho.randn(6)} end
    why(function() return function(x) if x:sum():item() > 0 then return x * 2 end; return x - 1 end, nil, batches end, "item() is called")
    why(function() return function(x) return x[1] + x end, nil, batches end, "an element is read")
    why(function() return function(x) return x[x:gt(0)] end, nil, batches end, "depends on data")
    why(function()
      local w = nn.Parameter(tycho.ones(6))
      return function(x)
        w.grad = nil
        local y = x * w
        y:register_hook(function(g) return g * 2 end)
        y:sum():backward()
        return w.grad
      end, nil, batches
    end, "hook")
    why(function() return function(x) tycho.manual_seed(3) return x + tycho.randn(6) end, nil, batches end, "manual_seed() is called")
  end)

  it("does what was asked before the value is read, when reading begins late", function()
    same(function()
      local k, w = 0, nn.Parameter(tycho.ones(4))
      local opt, seen = optim.SGD({w}, {lr = 0.1, momentum = 0.5}), {}
      return function(x)
        k = k + 1
        opt:zero_grad()
        local h = x * w
        local loss = h:square():sum()
        loss:backward()
        local g = w.grad:clone()
        if k > 4 then seen[#seen + 1] = loss:item() end           -- what came before it was only compared
        opt:step()
        return loss, g
      end, function() return {w:detach(), unpack(seen)} end, function() return {tycho.randn(4)} end
    end, 9)
  end)

  it("goes on from the middle of backward and of changes in place", function()
    same(function()
      local k, w, sums = 0, nn.Parameter(tycho.randn(3, 4)), tycho.zeros(3)
      return function(x)
        k = k + 1
        w.grad = nil
        local h = F.linear(x, w)
        h[{ {}, 2 }] = 0
        local z = h:clone()
        z:mul_(2)
        sums:add_(z:detach():sum(1))
        z:square():sum():backward()
        if k % 4 == 0 then z = z:detach():abs_() end
        local g = w.grad * 3
        if k % 5 == 0 then (x:matmul(w:t()) * 2):sum():backward() end          -- adds to the gradient
        return z:detach():sum(), g, w.grad
      end, function() return {sums} end, function() return {tycho.randn(5, 4)} end
    end, 23)
  end)

  it("accumulates gradients over calls", function()
    local f = same(function()
      local net = nn.Linear(3, 2)
      local opt, k = optim.SGD(net:parameters(), {lr = 0.1}), 0
      return function(x)
        net(x):square():mean():backward()
        return net.weight.grad:clone()
      end, function() return {net.weight.grad, net.weight:detach()} end, function()
        k = k + 1
        if k % 3 == 0 then opt:step() opt:zero_grad() end
        return {tycho.randn(4, 3)}
      end
    end, 14)
    assert.is_table(f:report())
  end)

  it("gives tycho.grad's results", function()
    local f = same(function()
      local w, v = nn.Parameter(tycho.randn(4)), nn.Parameter(tycho.randn(4))
      return function(x)
        local a, b = unpack(tycho.grad((x * w * v):sin():sum(), {w, v}))
        return a, b + 1
      end, nil, function() return {tycho.randn(4)} end
    end, 6)
    assert.is_true(compiled(f))
  end)

  it("leaves what was returned, kept, assigned or put into a table as it was", function()
    local kept, module, plain, results = {}, nn.Module:extend("M")(), {}, {}
    local f = tycho.compile(function(x)
      local y = x * 2
      kept[#kept + 1] = tycho.keep(y + 1)
      module.last = y - 1
      plain[#plain + 1] = y * y
      return y, {a = y:exp(), b = "text"}, 5
    end)
    for i = 1, 6 do
      local y, t, n = f(tycho.full({2}, i))
      results[i] = {y, t.a}
      assert.same({"text", 5}, {t.b, n})
      assert.same({2 * i - 1, 2 * i - 1}, module.last:totable())
    end
    for i = 1, 6 do
      assert.same({2 * i, 2 * i}, results[i][1]:totable())
      helper.close(results[i][2], tycho.full({2}, 2 * i):exp(), "result " .. i, 0)
      assert.same({2 * i + 1, 2 * i + 1}, kept[i]:totable())
      assert.same({4 * i * i, 4 * i * i}, plain[i]:totable())
    end
    assert.is_true(compiled(f))
  end)

  it("goes on with what fn keeps for its next call, in upvalues", function()
    same(function()
      local mean = 0
      return function(x)
        local loss = x:square():mean()
        mean = mean * 0.9 + loss:detach() * 0.1
        return loss
      end, function() return {mean} end, function() return {tycho.randn(10)} end
    end, 12)
    same(function()
      local lstm, h, c = nn.LSTM(4, 8), tycho.zeros(1, 2, 8), tycho.zeros(1, 2, 8)
      local opt = optim.SGD(lstm:parameters(), {lr = 0.1})
      return function(x)
        local y, h1, c1 = lstm(x, h, c)
        local loss = y:square():mean()
        opt:zero_grad()
        loss:backward()
        opt:step()
        h, c = h1:detach(), c1:detach()
        return loss
      end, function() return {h, c, unpack(lstm:parameters())} end, function() return {tycho.randn(3, 2, 4)} end
    end, 12)
  end)

  it("sees parameters, hooks and modules that were replaced", function()
    same(function()
      local net, k = nn.Linear(3, 3), 0
      return function(x)
        net.weight.grad = nil
        net(x):sum():backward()
        return net.weight.grad
      end, nil, function()
        k = k + 1
        if k == 4 then net.weight = nn.Parameter(tycho.randn(3, 3)) end
        if k == 7 then net.weight:register_hook(function(g) return g * 2 end) end
        if k == 10 then net:double() net:float() end
        return {tycho.randn(2, 3)}
      end
    end, 13)
  end)

  it("takes tensors of numbers made within, and sees that they change", function()
    local f = same(function()
      local k = 0
      return function(x)
        k = k + 1
        return x * tycho.tensor({1, 2, k > 5 and 4 or 3})
      end, nil, function() return {tycho.randn(3)} end
    end, 10)
    assert.is_true(compiled(f))
  end)

  it("is undone by an error in the function, and works on", function()
    local w, k = nn.Parameter(tycho.ones(2)), 0
    local opt = optim.SGD({w}, {lr = 1})
    local f = tycho.compile(function(x)
      k = k + 1
      opt:zero_grad();
      (x * w):sum():backward()
      opt:step()
      if k == 5 then error("oops", 0) end
      return w:sum()
    end)
    local x = tycho.ones(2)
    for i = 1, 8 do
      if i == 5 then helper.fails("oops", f, x) else f(x) end
      assert.same({1 - i, 1 - i}, w:totable())
    end
  end)

  it("may be nested, take modules, tensors twice, and options", function()
    local inner = tycho.compile(function(x) return x * 2 end)
    local f = tycho.compile(function(x, y) return inner(x) + y end)
    for i = 1, 5 do
      local x = tycho.full({2}, i)
      assert.same({3 * i, 3 * i}, f(x, x):totable())
      assert.same({2 * i + 1, 2 * i + 1}, f(x, tycho.ones(2)):totable())
    end
    local net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net:requires_grad_(false)
    local g = tycho.compile(net)
    for _ = 1, 4 do
      local x = tycho.randn(3, 2)
      helper.close(g(x), net(x), "module", 0)
    end
    assert.is_true(compiled(g))
    helper.fails("argument 1 must be a function or a module, got 3", tycho.compile, 3)
    helper.fails("guard must be 'full' or 'inputs', got 'all'", tycho.compile, print, {guard = "all"})
    helper.fails("unknown option 'gard'; did you mean 'guard'?", tycho.compile, print, {gard = "full"})
  end)

  it("compiles a module where it is, with its hooks, and not its clones", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net:requires_grad_(false)
    assert.equal(net, net:compile({max_variants = 1}))
    local calls, other = 0, net:clone()
    for _ = 1, 4 do
      local x = tycho.randn(3, 2)
      helper.close(net(x), other(x), "module", 0)
    end
    assert.is_true(compiled(rawget(net, "_compiled")))
    assert.is_nil(rawget(other, "_compiled"))
    net:register_forward_hook(function(_, _, y) calls = calls + 1 return y * 2 end)
    local x = tycho.randn(3, 2)
    for i = 1, 3 do
      helper.close(net(x), other(x) * 2, "module", 0)
      assert.equal(i, calls)
    end
    helper.fails("unknown option 'gard'; did you mean 'guard'?", net.compile, net, {gard = "full"})
  end)

  it("several steps in one go do what single steps do: dropout, schedule, scaler, clipping", function()
    for _, o in ipairs {{schedule = "inside"}, {autocast = "bfloat16", scaler = true, clip = true}} do
      local function run(k, go)
        tycho.manual_seed(5)
        local step, state, arguments = trainer(o)()
        local f, losses = go(step), {}
        for i = 1, 24, k do
          local x, y = {}, {}
          for j = 1, k do x[j], y[j] = unpack(arguments(i + j - 1)) end
          losses[#losses + 1] = k == 1 and f(x[1], y[1]) or f(tycho.stack(x, 1), tycho.stack(y, 1))
        end
        return k == 1 and tycho.stack(losses, 1) or tycho.cat(losses, 1), state(), f
      end
      local plain, plain_state = run(1, function(step) return step end)
      local got, got_state, f = run(4, function(step) return tycho.compile(step, {steps = 4}) end)
      assert.is_true(compiled(f))
      assert.equal(24, got:size(1))
      helper.close(got, plain, "losses", 0)
      for i, x in ipairs(plain_state) do
        if tycho.is_tensor(x) then helper.close(got_state[i], x, "value " .. i, 0) else assert.equal(x, got_state[i]) end
      end
    end
  end)

  it("several steps: one step, where asked for, has rows, too", function()
    for k = 1, 2 do
      local f = tycho.compile(function(x) return x:sum() end, {steps = k})
      for i = 1, 4 do helper.close(f(tycho.full({k, 3}, i)), tycho.full({k}, 3 * i)) end
    end
  end)

  it("several steps: what doesn't fit is an error of the call", function()
    local f = tycho.compile(function(x, k) return x * k, x:sum() end, {steps = 3})
    for i = 1, 4 do
      local y, s = f(tycho.full({3, 2}, i), 2)
      helper.close(y, tycho.full({3, 2}, 2 * i), "rows", 0)
      assert.same({2 * i, 2 * i, 2 * i}, s:totable())
    end
    helper.fails("compile: argument 1 has shape 2x2; dim 1 must be 3, a row for each step", f, tycho.ones(2, 2), 2)
    helper.fails("compile: argument 1 has shape (); dim 1", f, tycho.tensor(1), 2)
    helper.fails("argument 1 is a table of tensors; with steps = 3 each must be an argument of its own", f, {x = tycho.ones(3, 2)}, 2)
    assert.is_true(compiled(f))                            -- refused calls leave what was recorded alone
    local n = 0
    local more = tycho.compile(function(x) n = n + 1 if n > 1 then return x, x end return x end, {steps = 2})
    helper.fails("with steps = 2 fn must give the same number of results in each step; it gave 1, then 2", more, tycho.ones(2))
    helper.fails("with steps = 2 fn must give tensors; result 1 is a number",
      tycho.compile(function(x) return x:sum():item() end, {steps = 2}), tycho.ones(2))
    helper.fails("compile: steps must be a whole number from 1, got 1.5", tycho.compile, print, {steps = 1.5})
  end)

  it("inputs may be views of one tensor, at another place each time", function()
    local f = same(function()
      local data = tycho.randn(40, 3)
      return function(a, b) return a:t():matmul(b), a[{ {1, 2} }] * 2 end, nil, function(i)
        return {data[{ {i, i + 3} }], data[{ {i + 10, i + 13} }]}
      end
    end, 8)
    assert.is_true(compiled(f))
  end)

  it("takes tables of tensors apart, and leaves in them what the function leaves", function()
    local function stepper()
      tycho.manual_seed(4)
      local net = nn.Linear(3, 2)
      local opt = tycho.optim.SGD(net:parameters(), {lr = 0.1})
      return function(batch, k)
        local loss = nn.functional.cross_entropy(net(batch.x), batch.meta[1]) * k
        opt:zero_grad()
        loss:backward()
        opt:step()
        batch.loss, batch.meta.seen, batch.name = loss:detach(), true, nil
        return batch.loss
      end
    end
    local plain, fast = stepper(), tycho.compile(stepper())
    for i = 1, 8 do
      local n = i == 6 and 2 or 4
      local x, y = tycho.randn(n, 3), tycho.randint(1, 2, {n})
      local a, b = {x = x, meta = {y}, name = "batch"}, {x = x, meta = {y}, name = "batch"}
      local want, got = plain(a, 2), fast(b, 2)
      assert.is_true(want:equal(got) and b.loss:equal(want))
      assert.is_true(b.meta.seen and b.name == nil and rawequal(b.x, x) and rawequal(b.meta[1], y))
    end
    local report = fast:report()
    assert.same({2, 6}, {#report, report[1].calls})                 -- the first one comes before it
    assert.is_true(report[1].compiled, report[1].why)
    local one = {x = tycho.ones(2)}                                -- one table, whose tensor is another each time
    local twice = tycho.compile(function(t) return t.x * 2 end, {guard = "inputs"})
    for i = 1, 5 do
      one.x = tycho.full({2}, i)
      assert.equal(2 * i, twice(one)[1])
    end
    assert.is_true(twice:report()[1].compiled)
    local kept                                                     -- a result that is put elsewhere too
    local both = tycho.compile(function(x) kept = x * 2 return kept end)
    for i = 1, 5 do
      local y = both(tycho.full({2}, i))
      assert.is_true(rawequal(y, kept) and y[1] == 2 * i)
    end
    local by_number = tycho.compile(function(b) local s = 0 for k, v in pairs(b) do s = s + v * (k - 1e15) end return s end)
    for i = 1, 6 do assert.equal(i, by_number({[1e15 + i] = tycho.ones(2)})[1]) end
    local writes = tycho.compile(function(t) t.y = t.x * 2 return t end, {guard = "inputs"})
    for i = 1, 5 do
      local t = {x = tycho.full({2}, i)}
      assert.is_true(rawequal(writes(t), t) and t.y[1] == 2 * i)
    end
    local failing = tycho.compile(function(t) t.n = 1 error "boom" end)
    for _ = 1, 3 do
      local t = {x = tycho.ones(2)}
      helper.fails("boom", failing, t)
      assert.equal(1, t.n)
    end
    local knot = {x = tycho.ones(2)}
    knot.knot = knot
    for _ = 1, 4 do assert.equal(2, tycho.compile(function(t) return t.knot.x * 2 end)(knot)[1]) end
  end)
end)
