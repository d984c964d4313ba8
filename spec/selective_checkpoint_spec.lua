-- Checkpoints that keep the results of some ops (option save): the same bits as without a checkpoint, and these ops aren't run again.
local tycho = require "tycho"
local core = require "tycho.core"
local helper = require "spec.helper"
local nn, F, fails = tycho.nn, tycho.nn.functional, helper.fails
local checkpoint = tycho.utils.checkpoint

-- How often an op runs while fn does.
local function runs(name, fn)
  local n = 0
  for _, e in ipairs(tycho.profiler.profile(fn).events) do if e.name == name then n = n + 1 end end
  return n
end

-- A net of many kinds of ops, its input, and what a backward through `way` gives: result, gradients, running statistics, a random number.
local function outcome(way, o)
  tycho.manual_seed(3)
  local body = nn.Sequential(nn.Conv2d(3, 8, 3, {padding = 1}), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3),
    nn.Flatten(), nn.Linear(8 * 16, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16))
  local att = nn.MultiheadAttention(16, 2, {dropout = o.dropout or 0})
  local function fn(x)
    local h = body(x)
    local y = att(h:unsqueeze(1), h:unsqueeze(1), h:unsqueeze(1))
    return F.softmax(y:squeeze(1) * 2 + h, 2)
  end
  local x = tycho.randn(4, 3, 8, 8):requires_grad_()
  local y
  tycho.amp.autocast({dtype = "bfloat16", enabled = o.amp or false, device = helper.device}, function()
    y = way(fn, x)
    if o.twice then y = way(function(z) return F.gelu(z:matmul(z:t())) end, y) end
  end)
  local parts = {y:detach()}
  for _ = 1, o.passes or 1 do y:float():square():sum():backward {retain_graph = (o.passes or 1) > 1} end
  parts[#parts + 1] = x.grad
  for _, m in ipairs {body, att} do for _, p in ipairs(m:parameters()) do parts[#parts + 1] = p.grad end end
  for _, b in ipairs(body:buffers()) do parts[#parts + 1] = b end
  parts[#parts + 1] = tycho.rand(1)
  return parts
end

local function with(save) return function(fn, x) return checkpoint(fn, x, {save = save}) end end
local LISTS = {{"linear"}, {"conv2d", "linear", "attention"}, {"batch_norm", "layer_norm"}, {"max_pool2d"},
  {"gelu", "softmax", "relu", "add", "mul", "matmul"}, "matmul"}

describe("a checkpoint that saves some results", function()
  it("keeps those of max_pool2d, and what comes after, although its first run has no gradient", function()
    local v, w = tycho.randn(4, 3, 3, 3):requires_grad_(), tycho.randn(5, 4, 3, 3):requires_grad_()
    local x = tycho.randn(2, 3, 12, 12):requires_grad_()
    local function fn(z) return F.conv2d(F.max_pool2d(F.conv2d(z, v), 2), w):square() end
    fn(x):sum():backward()
    local want = {x.grad, v.grad, w.grad}
    x.grad, v.grad, w.grad = nil, nil, nil
    local y = checkpoint(fn, x, {save = {"conv2d", "max_pool2d"}}):sum()
    for _, e in ipairs(tycho.profiler.profile(function() y:backward() end).events) do
      assert.is_true(e.name ~= "conv2d" and e.name ~= "max_pool2d", e.name)
    end
    for i, g in ipairs {x.grad, v.grad, w.grad} do helper.exact(g, want[i]) end
  end)

  it("gives the same bits as none", function()
    for _, o in ipairs {{}, {amp = true}, {twice = true}, {passes = 2}, {dropout = 0.3}, {dropout = 0.2, amp = true, twice = true}} do
      local plain = outcome(function(fn, x) return fn(x) end, o)
      for i, save in ipairs(LISTS) do
        local got = outcome(with(save), o)
        assert.equal(#plain, #got)
        for k, v in ipairs(plain) do assert.is_true(v:equal(got[k]), ("list %d, part %d"):format(i, k)) end
      end
      local function nested(fn, x)
        return checkpoint(function(z) return checkpoint(fn, z, {save = {"conv2d", "gelu"}}) * 1 end, x, {save = {"linear", "mul"}})
      end
      local got = outcome(nested, o)
      for k, v in ipairs(plain) do assert.is_true(v:equal(got[k]), k) end
    end
  end)

  it("doesn't run their ops again", function()
    local a, b, x = nn.Linear(4, 4), nn.Linear(4, 4), tycho.randn(2, 4)
    local function step(save)
      return function()
        local y = checkpoint(function(z) return b(F.gelu(a(z))) end, x, {save = save, use_reentrant = false})
        y:sum():backward()
      end
    end
    assert.equal(4, runs("linear", step(nil)))
    assert.equal(2, runs("linear", step {"linear"}))
    assert.equal(4, runs("linear", step {"gelu"}))
    local net = nn.Checkpoint(nn.Sequential(a, nn.GELU(), b), {segments = 2, save = "linear"})
    assert.equal(2, runs("linear", function() net(x):sum():backward() end))
    assert.equal(2, runs("linear", function()
      tycho.utils.checkpoint_sequential(nn.Sequential(a, nn.GELU(), b), 2, x:requires_grad_(), {save = {"linear"}}):sum():backward()
    end))
  end)

  it("has second derivatives", function()
    local x, w = tycho.rand(3, 3):double():requires_grad_(), tycho.rand(3, 3):double():requires_grad_()
    local function f(u, v) return (u:matmul(v):tanh() * u):exp() end
    local function second(way)
      local g = tycho.grad(way(f, x, w):sum(), {x, w}, {create_graph = true})
      return tycho.grad(g[1]:square():sum() + g[2]:sin():sum(), {x, w})
    end
    local plain, got = second(function(fn, ...) return fn(...) end), second(function(fn, u, v)
      return checkpoint(fn, u, v, {save = {"matmul", "tanh"}})
    end)
    for k = 1, 2 do assert.is_true((plain[k] - got[k]):abs():max():item() < 1e-12) end
  end)

  it("goes through saved_tensors_hooks, and its results are freed when backward has run", function()
    local x, packed = tycho.randn(64, 64):requires_grad_(), 0
    local function f(u) return u:matmul(u):tanh():matmul(u) end
    local function pack(t)
      packed = packed + 1
      return t * 1
    end
    local y = tycho.autograd.graph.saved_tensors_hooks(pack, function(t) return t end, function()
      return checkpoint(f, x, {save = {"matmul"}})
    end)
    y:sum():backward()
    assert.equal(3, packed)                                    -- x and two results
    assert.is_true((x.grad - tycho.grad(f(x):sum(), x)):abs():max():item() < 1e-4)
    local function held(save)
      x.grad = nil
      for _ = 1, 2 do collectgarbage() end
      local before = core.allocated()
      local z = checkpoint(f, x, {save = save, use_reentrant = false})
      for _ = 1, 2 do collectgarbage() end
      local during = core.allocated() - before
      z:sum():backward()
      x.grad = nil
      z:free()
      for _ = 1, 2 do collectgarbage() end
      return during, core.allocated() - before
    end
    local none, after = held(nil)
    local some, later = held {"matmul"}
    assert.equal(none + 64 * 64 * 4, some)                     -- the second product is the result
    assert.same({0, 0}, {after, later})
  end)

  it("compiles to the same bits", function()
    for _, save in ipairs {{"linear"}, {"layer_norm", "tanh"}} do
      local f = helper.compiled_same(function()
        local l = {}
        for i = 1, 3 do l[i] = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3), nn.Tanh(), nn.LayerNorm(6)) end
        local net = nn.ModuleList(l)
        local opt = tycho.optim.AdamW(net:parameters(), {lr = 0.05})
        local calls = 0
        return function(x)
          calls = calls + 1
          opt:zero_grad()
          local y = x
          for i = 1, 3 do y = checkpoint(l[i], y, {save = save}) end
          if calls == 5 then y = y * 2 end                       -- goes another way, once
          local loss = F.mse_loss(y, x)
          loss:backward()
          opt:step()
          return loss:detach()
        end, function() return net:parameters() end, function() return {tycho.randn(4, 6)} end
      end, 9, {max_variants = 4})
      assert.is_true(helper.compiled(f), tostring(f:report()[1].why))
    end
  end)

  it("keeps each result once in a compiled function, and what is given to a checkpoint no longer than needed", function()
    local l = {}
    for i = 1, 8 do l[i] = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) end
    local net, x = nn.ModuleList(l), tycho.randn(256, 64)
    local function peak(save)
      net:zero_grad()
      for _ = 1, 2 do collectgarbage() end
      local before = core.allocated()
      local f = tycho.compile(function(y)
        net:zero_grad()
        for i = 1, 8 do y = checkpoint(l[i], y, {save = save, use_reentrant = false}) end
        y:square():mean():backward()
      end)
      for _ = 1, 4 do f(x) end
      assert.is_true(helper.compiled(f))
      for _ = 1, 2 do collectgarbage() end
      core.max_allocated(true)
      f(x)
      return core.max_allocated() - before
    end
    local none = peak(nil)
    assert.is_true(peak {"gelu"} < none + 8.5 * 256 * 256 * 4)
  end)

  it("computes what isn't as it was the first time", function()
    local x = tycho.tensor {{1, 2}, {3, 4}}
    x:requires_grad_()
    local save = {"mul"}
    local y = checkpoint(function(u) return (u * 2 + 1):exp() end, x, {save = save})
    save[1] = "add"                                             -- the user's own list
    y:sum():backward()
    helper.close(x.grad, (x * 2 + 1):exp():detach() * 2, "list", 1e-5)
    for i, fn in ipairs {function(u, k) return k == 1 and u * 2 or u * 2 * 1 end, function(u, k) return k == 1 and u * 2 * 1 or u * 2 end,
        function(u, k) return k == 1 and (u + 5) * 1 or u * 2 end, function(u, k) return k == 1 and (u + 1):mul(7) or (u * 1):mul(2) end} do
      local calls = 0
      x.grad = nil
      checkpoint(function(u)
        calls = calls + 1
        return fn(u, calls)
      end, x, {save = {"mul", "add"}}):sum():backward()
      helper.close(x.grad, tycho.full({2, 2}, 2), i)
    end
    -- functions of the library that go another way where gradients are recorded
    local q, m = tycho.randn(2, 3, 4, 8):requires_grad_(), tycho.randn(4, 4):requires_grad_()
    local function attend(u, v) return F.scaled_dot_product_attention(u, F.scaled_dot_product_attention(u, u, u, v), u) end
    local plain = {tycho.grad(attend(q, m):square():sum(), {q, m})}
    local got = {tycho.grad(checkpoint(attend, q, m, {save = {"attention", "matmul", "softmax"}}):square():sum(), {q, m})}
    for k = 1, 2 do helper.close(got[1][k], plain[1][k], "attention " .. k, 1e-4) end
    assert.is_false(core.recalls())
  end)

  it("leaves nothing in force in a coroutine that ends within", function()
    local x = tycho.randn(3, 3):requires_grad_()
    for _ = 1, 3 do
      local co = coroutine.create(function()
        checkpoint(function(u)
          local y = u * 2
          coroutine.yield()
          return y
        end, x, {save = {"mul"}})
      end)
      assert.is_true(coroutine.resume(co))
    end
    for _ = 1, 3 do collectgarbage() end
    assert.is_false(core.recalls())
    local list = core.recall {"mul"}
    core.recall_begin(list)
    fails("is in use", core.recall_begin, list)
    assert.equal(0, #core.recall_end(list, true))
    fails("1 results are given for a list of 0", core.recall_begin, list, {x})
    coroutine.wrap(function()
      core.recall_begin(core.recall {"mul"})                     -- and never ended: as if an error had come between
      for _ = 1, 2 do collectgarbage() end
      assert.is_true((x * 2):equal(x + x))
      assert.is_true(core.recalls())
    end)()
  end)

  it("says what is wrong", function()
    local x = tycho.randn(3, 3):requires_grad_()
    local function try(save, fn) return function() checkpoint(fn or function(u) return u * 2 end, x, {save = save}):sum():backward() end end
    fails("'save' must name ops, and 'bogus' isn't one", try {"bogus"})
    fails("'save' must name ops, and '' isn't one", try {""})
    fails("must be a list of names of ops, got number", try(3))
    fails("must be a list of names of ops, got table at place 2", try {"mul", {}})
    fails("results of 'rand' can't be saved", try {"rand"})
    fails("results of 'cast' can't be saved", try {"cast"})
    fails("results of 'permute' can't be saved: its result shares its operand's memory", try {"permute"})
    fails("save", nn.Checkpoint, nn.Linear(2, 2), {save = {"bogus"}})
    fails("context_fn isn't supported", checkpoint, function(u) return u end, x, {context_fn = function() end})
    fails("fn changes a result of mul in place, so it can't be saved: leave 'mul' out of save",
      try({"mul"}, function(u) return (u * 2):exp_() end))
    assert.is_false(core.recalls())
  end)
end)
