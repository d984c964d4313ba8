-- GPUs as PyTorch's users use them: pinned memory, streams, graphs, waits, numbers on the CPU beside.
local tycho = require "tycho"
local helper = require "spec.helper"
local nn, F, optim, func = tycho.nn, tycho.nn.functional, tycho.optim, tycho.func
local close, fails, device = helper.close, helper.fails, helper.device

if device ~= "cpu" then
  describe("users' parts with graphs", function()
    local cuda = tycho.cuda
    it("runs another module's parameters without them", function()
      local x = tycho.randn(2, 4, {device = device})
      local l = nn.Linear(4, 4):to(device)
      local g = cuda.make_graphed_callables(l, {x})
      local c, want = g:clone(), F.linear(x, l.weight, l.bias):detach()
      tycho.no_grad(function() l.weight:zero_() l.bias:zero_() end)
      close(c(x), want, "clone", 1e-6)
      c(x):sum():backward()
      assert.is_truthy(c.weight.grad)
      assert.is_nil(l.weight.grad)
      close(g(x), tycho.zeros(2, 4), "its own", 0)
      close(func.functional_call(g, {bias = tycho.ones(4, {device = device})}, x), tycho.ones(2, 4), "functional_call", 0)
      l.bias = nn.Parameter(tycho.full({4}, 2, {device = device}))
      close(g(x), tycho.full({2, 4}, 2), "another parameter", 0)
    end)

    it("outlives the scope in which it was made", function()
      local x = tycho.randn(2, 4, {device = device})
      local g = tycho.scope(function() return cuda.make_graphed_callables(nn.Linear(4, 4):to(device), {tycho.ones_like(x)}) end)
      local y = g(x)
      close(y, F.linear(x, g.weight, g.bias), "forward", 1e-6)
      y:sum():backward()
      close(g.bias.grad, tycho.full({4}, 2))
    end)
  end)

  describe("users' tensors on GPUs", function()
    it("pad_packed_sequence and averages by a function of the program's own make no host sync", function()
      local rnn, cuda = nn.LSTM(3, 4, {batch_first = true}):to(device), tycho.cuda
      local x = tycho.randn(3, 5, 3, {device = device})
      local average = optim.swa_utils.AveragedModel(rnn, {avg_fn = function(a, v, n) return a + (v - a) / (n + 1) end})
      local function step()
        local packed = nn.utils.rnn.pack_padded_sequence(x, {2, 5, 3}, {batch_first = true, enforce_sorted = false})
        local y = nn.utils.rnn.pad_packed_sequence((rnn(packed)), {batch_first = true})
        rnn:zero_grad()
        y:sum():backward()
        average:update_parameters(rnn)
      end
      step()
      step()
      local before = cuda.sync_count()
      step()
      assert.equal(before, cuda.sync_count())
      assert.equal(3, average.n_averaged:item())
    end)

    it("gradients of numbers on the CPU, beside a GPU's tensors, come back", function()
      local x, s = tycho.rand(3, {device = device}), tycho.tensor(0.5, {requires_grad = true, device = "cpu"})
      local c = tycho.rand(3, {requires_grad = true, device = "cpu"})
      for _, f in ipairs {function(a) return x * a end, function(a) return a - x end, function(a) return x / a end,
          function(a) return x ^ a end,
          function(a) return tycho.where(x:gt(0.5), x, a) end, function(a) return x:masked_fill(x:gt(0.5), a) end,
          function(a) return x:lerp(x * 2, a) end, function(a) return tycho.maximum(x, a) end, function(a) return x:clamp(a) end} do
        s.grad, c.grad = nil, nil
        f(s):sum():backward()
        assert.equal("cpu", s.grad.device)
        local at_home = s:detach():to(device):requires_grad_()
        f(at_home):sum():backward()
        close(s.grad, at_home.grad, "leaf", 1e-6)
        f(s):sum():backward()
        f(c:exp():sum()):sum():backward()
        assert.equal("cpu", c.grad.device)
        local moved = c:detach():to(device):requires_grad_()
        f(moved:exp():sum()):sum():backward()
        close(c.grad, moved.grad, "result", 1e-5)
      end
      local before, slope = s:item(), s.grad:item()
      optim.SGD({s}, {lr = 0.1}):step()
      assert.is_true(math.abs(s:item() - (before - 0.1 * slope)) < 1e-5)
      s.grad = nil
      local g = tycho.grad((x * s * s):sum(), s, {create_graph = true})
      g:backward()
      assert.equal("cpu", s.grad.device)
      close(s.grad, 2 * x:sum():cpu(), "of a gradient", 1e-6)
      s.grad = nil
      local step = tycho.compile(function(v) (v * s):sum():backward() end)
      for _ = 1, 4 do
        s.grad = nil
        step(x)
        close(s.grad, x:sum():cpu(), "compiled", 1e-6)
      end
    end)
  end)
end

local cuda = tycho.cuda
if cuda.is_available() then
  local cached = os.getenv "TYCHO_CUDA_CACHE" ~= "0"         -- graphs need it
  describe("users' cuda", function()
    it("copies from and to pinned memory without waiting", function()
      local d, p = tycho.randn(4, {device = "cuda"}), tycho.randn(4, {device = "cpu"}):pin_memory()
      assert.is_true(p:is_pinned() and not tycho.ones(1, {device = "cpu"}):is_pinned())
      assert.is_true(tycho.zeros(3, {device = "cpu", pin_memory = true}):is_pinned() and
        tycho.full({3}, 2, {device = "cpu", pin_memory = true}):is_pinned())
      local q = tycho.empty(4, {device = "cpu", pin_memory = true})
      local before = cuda.sync_count()
      d:copy_(p, {non_blocking = true})
      d:copy_(p, true)
      q:copy_(d, {non_blocking = true})
      assert.equal(before, cuda.sync_count(), "syncs")
      local r = d:to("cpu", {non_blocking = true})
      assert.is_true(r:is_pinned())
      cuda.synchronize()
      close(q, p, "there and back", 0)
      close(r, p, "by to", 0)
      if not cached then return end
      local g = cuda.graph(function() q:copy_(d, true) end)
      d:fill_(7)
      g:replay()
      cuda.synchronize()
      close(q, tycho.full({4}, 7, {device = "cpu"}), "in a graph", 0)
      g:reset()
      fails("has been reset", g.replay, g)
    end)

    it("knows its streams and devices again", function()
      local s = cuda.Stream()
      assert.is_true(cuda.current_stream() == cuda.current_stream() and cuda.default_stream() == cuda.current_stream())
      cuda.stream(s, function() assert.is_true(cuda.current_stream() == s and cuda.current_stream() ~= cuda.default_stream()) end)
      cuda.set_stream(s)
      assert.is_true(cuda.current_stream() == s)
      cuda.set_stream(cuda.default_stream())
      assert.equal(0, tycho.ones(1, {device = "cuda:0"}):get_device())
      assert.equal(0, cuda.device(0, function() return cuda.current_device() end))
      assert.is_false(cuda.is_current_stream_capturing())
      assert.equal(cuda.device_count(), #cuda.get_rng_state_all())
      assert.equal("cuda:0", s.device)
      assert.equal("cuda:0", cuda.Event().device)
      fails("a stream has no 'synchronise'; did you mean 'synchronize'?", function() s:synchronise() end)
      assert.equal(5, cuda.stream(nil, function(v) return v end, 5))
      if cuda.device_count() > 1 then
        local other = cuda.Stream {device = "cuda:1", priority = -1}
        assert.equal(1, cuda.stream(other, cuda.current_device))
        assert.equal(0, cuda.current_device())
      end
    end)

    it("finds hidden waits", function()
      local x, p = tycho.ones(3, {device = "cuda"}), tycho.ones(3, {device = "cpu", pin_memory = true})
      cuda.set_sync_debug_mode "error"
      local refused = {}
      for name, fn in pairs {item = function() return x:sum():item() end, cpu = function() return x:cpu() end,
          nonzero = function() return x:nonzero() end, copy = function() x:copy_(p) end} do
        local ok, e = pcall(fn)
        refused[name] = not ok and tostring(e):find("waits for the device", 1, true) ~= nil
      end
      local fine = pcall(function() return (x * 2 + 1):sum(), x:copy_(p, {non_blocking = true}), x:to("cpu", {non_blocking = true}) end)
      cuda.set_sync_debug_mode "default"
      assert.same({item = true, cpu = true, nonzero = true, copy = true}, refused)
      assert.is_true(fine)
      assert.equal(3, x:sum():item())
      fails("must be 'default', 'warn' or 'error'", cuda.set_sync_debug_mode, "warm")
    end)

    if cached then it("a graph has room where memory was cached for others, and says what capture can't have", function()
      tycho.empty(8, 1024, 1024, {device = "cuda"}):free()
      local x = tycho.ones(8, {device = "cuda"})
      local before = cuda.memory_reserved()
      local g, y = cuda.graph(function() return x * 2 end)
      assert.is_true(cuda.memory_reserved() < before)
      g:replay()
      assert.same(tycho.full({8}, 2):totable(), y:totable())
      local e = cuda.Event()
      e:record()
      fails("query: called while a graph is captured", cuda.graph, function() e:query() end)
      fails("another stream's work isn't joined: call current_stream():wait_stream(s)", cuda.graph, function()
        local s = cuda.Stream()
        s:wait_stream(cuda.current_stream())
        cuda.stream(s, function() return x + 1 end)
      end)
      fails("options come before the function", cuda.graph, function() end, {pool = g})
      local waits
      cuda.graph(function()
        local count = cuda.sync_count()
        cuda.empty_cache()
        waits = cuda.sync_count() - count
      end):replay()
      assert.equal(0, waits)                                         -- left undone while it was recorded, for nothing may wait then
    end) end

    it("one_hot with its classes given waits for nothing", function()
      local ids = tycho.tensor({1, 3}, {dtype = "int64", device = "cuda"})
      local before = cuda.sync_count()
      local y = tycho.one_hot(ids, 4)
      assert.equal(before, cuda.sync_count())
      assert.same({{1, 0, 0, 0}, {0, 0, 1, 0}}, y:totable())
    end)

    it("gets memory that is there, though not for a whole segment", function()
      cuda.empty_cache()
      local _, total = cuda.mem_get_info()
      local megabyte = 2 ^ 20
      cuda.set_per_process_memory_fraction((cuda.memory_reserved() + 60 * megabyte) / total)
      local held = tycho.zeros(48 * megabyte / 4, {device = device})
      local ok, x = pcall(tycho.zeros, 9 * megabyte / 4, {device = device})
      cuda.set_per_process_memory_fraction(1)
      assert.is_true(ok, tostring(x))
      assert.equal(0, (x[1] + held[1]))
    end)
  end)
end
