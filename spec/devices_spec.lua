-- Several GPUs in one process: copies between them, what works on parameters of several. Nothing where there is one.
local tycho = require "tycho"
local helper = require "spec.helper"

describe("several devices", function()
  if tycho.cuda.device_count() < 2 then return end
  setup(function() tycho.set_default_device("cpu") end)
  teardown(function() tycho.set_default_device(helper.device) end)

  it("draw the same numbers again for backward, wherever a checkpoint's function draws", function()
    tycho.ones(1, {device = "cuda:1"})
    for _, from in ipairs {"cpu", "cuda:0", "cuda:1"} do
      for _, to in ipairs {"cuda:0", "cuda:1"} do
        local x = tycho.ones(64, {device = from, requires_grad = true})
        local y = tycho.utils.checkpoint(function(q) return tycho.nn.functional.dropout(q:to(to), {p = 0.5}) end, x)
        y:sum():backward()
        assert.is_true(y:detach():cpu():equal(x.grad:cpu()), from .. " to " .. to)
      end
    end
  end)

  it("stay selected while garbage of another is collected within a call", function()
    local scores, labels = tycho.randn(8, 10, {device = "cuda:1"}), tycho.randint(1, 10, {8}, {device = "cuda:1"})
    local x = tycho.ones(100, {device = "cuda:0"})
    local pause = collectgarbage("setpause", 100)
    local ok, e = pcall(function()
      for _ = 1, 3000 do
        local _ = (x + 1):to "cuda:1"          -- cuda:1 reads the block of cuda:0
        tycho.cross_entropy(scores, labels, {reduction = "none"})
        scores:gather(2, labels:view(8, 1))
      end
    end)
    collectgarbage("setpause", pause)
    assert.is_true(ok, e)
  end)

  it("may be waited for while another's work is captured", function()
    local a, b = tycho.ones(4, {device = "cuda:0"}), tycho.ones(4, {device = "cuda:1"})
    tycho.cuda.set_sync_debug(true)
    local d
    local ok, g = pcall(tycho.cuda.graph, function()
      d = b + 1                                -- not captured: runs at once
      return a + 1
    end)
    tycho.cuda.set_sync_debug(false)
    assert.is_true(ok, g)
    helper.close(d:cpu(), tycho.full({4}, 2))
  end)

  it("work beside one another", function()
    local one, two = tycho.cuda.Stream(1), tycho.cuda.Stream(1)
    one:wait_stream(two)
    for i = 1, 20 do                                               -- a copy to another device has read before its source changes
      local from = tycho.full({4000}, i, {device = "cuda:0"})
      local to = from:to("cuda:1")
      from:zero_()
      helper.close(to:cpu(), tycho.full({4000}, i))
    end
    local a = tycho.ones(4, {device = "cuda:1"})
    helper.close((a:to("cuda:0") + tycho.ones(4, {device = "cuda:0"})):cpu(), tycho.full({4}, 2))
    helper.fails("is on cuda:0, argument 1 on cuda:1", function() return a + tycho.ones(4, {device = "cuda:0"}) end)
    helper.fails("is on cuda:0, argument 1 on cuda:1", function() return a + tycho.tensor(1, {device = "cuda:0"}) end)
    tycho.cuda.set_device(1)
    assert.equal("cuda:1", tycho.zeros(1, {device = "cuda"}).device)
    assert.equal(1, tycho.cuda.current_device())
    tycho.cuda.set_device(0)
  end)

  it("are the current one where the default device is cuda", function()
    finally(function() tycho.cuda.set_device(0) tycho.set_default_device("cpu") end)
    tycho.set_default_device("cuda")
    local made = tycho.compile(function(x) return tycho.ones(2) * 3, x end)
    for i = 1, 8 do
      local k = i > 4 and 1 or 0
      tycho.cuda.set_device(k)
      assert.equal("cuda:" .. k, tycho.zeros(1).device)
      assert.equal("cuda:" .. k, tycho.tensor({1, 2}).device)
      assert.equal("cuda:" .. k, made(tycho.zeros(1, {device = "cuda:0"})).device)
      assert.equal("cuda", tycho.get_default_device())
      assert.equal("cuda:" .. k, coroutine.wrap(function() return tycho.zeros(1).device end)())
    end
    tycho.set_default_device("cuda:0")
    assert.equal("cuda:0", tycho.zeros(1).device)
  end)

  if os.getenv("TYCHO_SIM") then
    it("take nothing of a device that isn't used, whose generator is seeded all the same", function()
      local p = io.popen [[luajit -e '
        local tycho, ffi = require "tycho", require "ffi"
        ffi.cdef "int sim_streams(int device);"
        local sim = ffi.load(os.getenv "TYCHO_CUDA_LIBRARY")
        assert(tycho.cuda.is_available())
        tycho.manual_seed(5)
        tycho.cuda.set_device(1)
        local net = tycho.nn.Linear(4, 4):to("cuda")
        local opt = tycho.optim.AdamW(net:parameters())
        net(tycho.ones(2, 4, {device = "cuda", pin_memory = false})):sum():backward()
        opt:step()
        tycho.cuda.empty_cache()
        local kept = tycho.cuda.get_rng_state(0)
        tycho.cuda.set_rng_state(kept, 0)
        tycho.manual_seed(7)
        io.write(sim.sim_streams(0), " ", sim.sim_streams(1) > 0 and "some" or "none", " ")
        io.write(tostring(tycho.rand(3, {device = "cuda:0"}):cpu():equal(tycho.rand(3))), " ", sim.sim_streams(0) > 0 and "some" or "none")
      ' 2>&1]]
      assert.equal("0 some true some", p:read "*a")
      p:close()
    end)
  end

  if os.getenv("TYCHO_SIM") then
    it("stay right where another library chooses a device, or destroys its stream", function()
      local ffi, cuda = require "ffi", tycho.cuda
      ffi.cdef "void *sim_stream(); void sim_destroy(void *stream); void sim_choose(int device);"
      local sim = ffi.load(os.getenv "TYCHO_CUDA_LIBRARY")
      local x = tycho.ones(3, {device = "cuda:0"})
      sim.sim_choose(1)
      assert.same({2, 2, 2}, (x + 1):totable())
      sim.sim_choose(0)
      local raw = sim.sim_stream()
      cuda.stream(cuda.ExternalStream(raw, 0), function() tycho.randn(3, {device = "cuda:0"}):free() end)
      cuda.synchronize(0)
      cuda.empty_cache()
      collectgarbage()
      collectgarbage()
      sim.sim_destroy(raw)
      local before = cuda.sync_count()
      local y = tycho.randn(3, {device = "cuda:0"})
      assert.equal(before, cuda.sync_count())            -- a failed wait makes the host wait
      assert.equal(3, y:numel())
    end)

    it("take no stream that the program captures by itself, nor another device's", function()
      local ffi, cuda = require "ffi", tycho.cuda
      pcall(ffi.cdef, "void *sim_stream();")
      ffi.cdef "void sim_capture(void *stream); void sim_capture_end(void *stream);"
      local sim = ffi.load(os.getenv "TYCHO_CUDA_LIBRARY")
      cuda.set_device(0)
      local x = tycho.ones(3, {device = "cuda:0"})
      cuda.synchronize(0)                                  -- x is made on another stream than reads it
      sim.sim_choose(0)
      local raw = sim.sim_stream()
      helper.fails("ExternalStream failed on cuda:1", cuda.ExternalStream, raw, 1)
      local stream = cuda.ExternalStream(raw, 0)
      local function add() (x + 1):free() end
      local function copy() return x:cpu() end
      cuda.stream(stream, add)                             -- now its cache has memory
      sim.sim_capture(raw)
      for _, f in ipairs {add, copy} do helper.fails("the program is capturing this stream", cuda.stream, stream, f) end
      helper.fails("the program is capturing this stream", cuda.ExternalStream, raw, 0)
      sim.sim_capture_end(raw)
      assert.same({2, 2, 2}, cuda.stream(stream, function() return (x + 1):totable() end))
    end)

    it("open whole pieces of expandable segments to one another, those made before they meet and after", function()
      local function reserved()
        collectgarbage() collectgarbage()
        tycho.cuda.empty_cache()
        return {tycho.cuda.memory_reserved(0), tycho.cuda.memory_reserved(1)}
      end
      local before = reserved()
      local function full(gpu, n, v) return tycho.full({n * 2 ^ 18}, v, {device = "cuda:" .. gpu}) end
      tycho.cuda.set_allocator_settings {expandable_segments = true}
      local a, b, c = full(0, 5, 1), full(1, 20, 2), full(1, 3, 3)
      b:free()
      tycho.cuda.empty_cache()
      local there = a:to("cuda:1")
      local d = full(1, 40, 4)
      assert.equal(5 * 2 ^ 18, there:sum():item())
      assert.equal(9 * 2 ^ 18 + 160 * 2 ^ 18, (c:to("cuda:0"):sum() + d:to("cuda:0"):sum()):item())
      tycho.cuda.set_allocator_settings {expandable_segments = false}
      for _, x in ipairs {a, c, d, there} do x:free() end
      assert.same(before, reserved())
    end)

    it("stay closed for a program on the CPU that saves", function()
      local folder = os.tmpname() .. ".d"
      local p = io.popen(([[luajit -e '
        local tycho, gpu = require "tycho", require("tycho.core").gpu
        local net = tycho.nn.Linear(2, 2)
        local m = tycho.checkpoint.Manager {dir = "%s", async = false}
        m:save(1, {model = net})
        tycho.utils.benchmark.Timer {stmt = function() end}:timeit(3)
        io.write(tostring(gpu.opened()), " ", tycho.checkpoint.Manager {dir = "%s"}:restore_latest {model = net}, " ")
        io.write(tostring(gpu.opened()))
      ' 2>&1; rm -rf %s]]):format(folder, folder, folder))
      assert.equal("false 1 false", p:read "*a")
      p:close()
    end)

    it("are opened also while another one's work is captured", function()
      local p = io.popen [[luajit -e '
        local tycho = require "tycho"
        local x = tycho.ones(4, {device = "cuda:0"})
        local g, y = tycho.cuda.graph(function()
          tycho.ones(3, {device = "cuda:1"})
          return x * 2
        end)
        g:replay()
        io.write(y:sum():item())
      ' 2>&1]]
      assert.equal("8", p:read "*a")
      p:close()
    end)
  end

  it("take a scaler's step together or not at all", function()
    for _, infinite in ipairs {"cuda:0", "cuda:1", "cpu"} do
      for _, unscales in ipairs {false, true} do
        local list = {}
        for i, device in ipairs {"cuda:0", "cuda:1", "cpu"} do list[i] = tycho.nn.Parameter(tycho.ones(1, {device = device})) end
        local opt, scaler = tycho.optim.SGD(list, {lr = 1}), tycho.amp.GradScaler {init_scale = 4}
        local function step(factor)
          local loss = tycho.zeros(1, {device = "cuda:0"})
          for _, p in ipairs(list) do loss = loss + (p * (p.device == infinite and factor or 1)):to("cuda:0") end
          opt:zero_grad()
          scaler:scale(loss:sum()):backward()
          if unscales then scaler:unscale_(opt) end
          scaler:step(opt)
          scaler:update()
          local values = {scaler:get_scale()}
          for i, p in ipairs(list) do values[i + 1] = p:item() end
          return values
        end
        assert.same({2, 1, 1, 1}, step(math.huge))
        assert.same({2, 0, 0, 0}, step(1))
      end
    end
  end)

  it("have norms of gradients together", function()
    local net = tycho.nn.ModuleList {tycho.nn.Linear(2, 2), tycho.nn.Linear(2, 2)}
    local function backward(x)
      net:zero_grad()
      net[2](net[1](x):to(net[2].weight.device)):sum():backward()
      return tycho.nn.utils.clip_grad_norm_(net:parameters(), 0.1):cpu(), tycho.nn.utils.get_total_norm(net:parameters()):cpu()
    end
    local norm, weights = backward(tycho.ones(1, 2))
    local clipped = net[2].weight.grad:clone()
    net[1]:cuda(0)
    net[2]:cuda(1)
    local norm2, weights2 = backward(tycho.ones(1, 2, {device = "cuda:0"}))
    helper.close(norm2, norm)
    helper.close(weights2, weights)
    helper.close(net[2].weight.grad:cpu(), clipped)
  end)

  it("have graphs of modules on any of them, and gradients where the outputs are", function()
    if os.getenv "TYCHO_CUDA_CACHE" == "0" then return end           -- graphs need the cache
    local net = tycho.nn.Linear(4, 2):to("cuda:1")
    local ref, make = net:clone(), tycho.cuda.make_graphed_callables
    make(net, {tycho.zeros(3, 4, {device = "cuda:1"})})
    for _ = 1, 3 do
      local x = tycho.randn(3, 4, {device = "cuda:1"})
      local y, want = net(x), ref(x)
      helper.close(y, want)
      y:sum():backward()
      want:sum():backward()
      helper.close(net.weight.grad, ref.weight.grad)
    end
    assert.equal(0, tycho.cuda.current_device())
    helper.fails("they must be on one GPU", make, tycho.nn.Linear(4, 2):to("cuda:0"), {tycho.zeros(3, 4, {device = "cuda:1"})})
    local leaf = tycho.ones(2, {device = "cuda:0"}):requires_grad_(true)
    helper.fails("the gradient is on cuda:1; it must be on cuda:0", function() (leaf * 2):backward(tycho.ones(2, {device = "cuda:1"})) end)
    local Strays = tycho.autograd.Function {forward = function(_, x) return x * 2 end, backward = function(_, g) return g:cpu() end}
    helper.fails("the gradient of operand 1 is on cpu; it must be on cuda:0", function() Strays(leaf):sum():backward() end)
  end)
end)
