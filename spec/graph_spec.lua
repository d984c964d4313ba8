-- CUDA graphs: what is recorded runs again in its order, keeps its memory, and refuses what can't be recorded. On a
-- real or a simulated GPU.
local tycho = require "tycho"
local helper = require "spec.helper"

describe("graphs", function()
  if not tycho.cuda.is_available() then return end
  setup(function() tycho.set_default_device("cpu") end)
  teardown(function() tycho.set_default_device(helper.device) end)
  if os.getenv("TYCHO_CUDA_CACHE") == "0" then
    it("need the caching allocator", function() helper.fails("caching allocator", tycho.cuda.graph, function() end) end)
    return
  end

  it("a stream that is current, or that a handle names, is nobody else's after a collection", function()
    local inside
    tycho.cuda.stream(tycho.cuda.Stream(), function()
      for _ = 1, 2 do collectgarbage() end
      local x = tycho.ones(5000, {device = "cuda"})
      local g = tycho.cuda.graph(function()
        local double = x * 2
        local more = double + 1
        double:free()
        return more
      end)
      local later = {}
      for i = 1, 8 do later[i] = tycho.zeros(5000, {device = "cuda"}) end
      g:replay()
      for i = 1, 8 do assert.equal(0, later[i]:sum():item()) end
      inside = tycho.cuda.current_stream()
      assert.is_false(tycho.cuda.Stream() == inside)
    end)
    for _ = 1, 2 do collectgarbage() end
    for _ = 1, 3 do assert.is_false(tycho.cuda.Stream() == inside) end
  end)

  it("draw in the order of the capture, in branches too", function()
    local side = tycho.cuda.Stream()
    local function draws()
      local main, list = tycho.cuda.current_stream(), {}
      local function draw(n) return tycho.rand(n, {device = "cuda"}) end
      list[1] = draw(3000)
      side:wait_stream(main)
      list[2] = tycho.cuda.stream(side, draw, 5000)
      list[3] = draw(7000)
      list[4] = tycho.cuda.stream(side, function() return tycho.dropout(tycho.ones(4000, {device = "cuda"}), 0.5) end)
      list[5] = draw(100)
      main:wait_stream(side)
      return list
    end
    tycho.manual_seed(11)
    local want = {}
    for run = 1, 4 do
      want[run] = {}
      for i, t in ipairs(draws()) do want[run][i] = t:cpu() end
    end
    local g, got = tycho.cuda.graph(draws)
    tycho.manual_seed(11)
    for run = 1, 4 do
      g:replay()
      tycho.cuda.synchronize()
      for i, t in ipairs(got) do helper.close(t:cpu(), want[run][i], ("replay %d, draw %d"):format(run, i), 0) end
    end
  end)

  it("give branches memory that no other has used, all of it from few segments", function()
    local side, x = tycho.cuda.Stream(), tycho.ones(1000, {device = "cuda"})
    tycho.cuda.empty_cache()
    local reserved = tycho.cuda.memory_reserved()
    local g, y = tycho.cuda.graph(function()
      local main, a, b = tycho.cuda.current_stream(), x, x
      side:wait_stream(main)
      for _ = 1, 50 do
        a = a + 1
        b = tycho.cuda.stream(side, function() return b * 1.01 end)
      end
      main:wait_stream(side)
      return a + b
    end)
    assert.is_true(tycho.cuda.memory_reserved() - reserved <= 2 ^ 22, tycho.cuda.memory_reserved() - reserved)
    for _ = 1, 3 do
      g:replay()
      helper.close(y:cpu(), tycho.full({1000}, 51 + 1.01 ^ 50), nil, 1e-5)
    end
  end)

  it("may be collected while another is captured", function()
    local x = tycho.ones(3, {device = "cuda"})
    local function used_and_dropped() tycho.cuda.graph(function() x:add_(1) end):replay() end
    used_and_dropped()
    local g, y = tycho.cuda.graph(function()
      collectgarbage()
      collectgarbage()
      return x * 2
    end)
    g:replay()
    helper.close(y:cpu(), tycho.full({3}, 4))
  end)

  it("may be collected while another captures in the stream that they ran on", function()
    local x, side, here = tycho.ones(3, {device = "cuda"}), tycho.cuda.Stream(), tycho.cuda.current_stream()
    local function used_and_dropped()
      local y = tycho.cuda.stream(side, tycho.ones, 3, {device = "cuda"})
      local g = tycho.cuda.graph(function() x:add_(y) end)
      side:wait_stream(here)
      tycho.cuda.stream(side, g.replay, g)
      here:wait_stream(side)
      return g, y                          -- y: of the side's memory, which the graph has used too
    end
    local kept = {used_and_dropped()}
    local weak = setmetatable({kept[1]}, {__mode = "v"})
    local g, y = tycho.cuda.graph(function()
      local outer = tycho.cuda.current_stream()
      side:wait_stream(outer)
      outer:wait_event(side:record_event())
      kept[1], kept[2] = nil, nil
      helper.collected()
      assert.is_nil(weak[1])
      local r = tycho.cuda.stream(side, function() return x * 2 end)
      outer:wait_stream(side)
      return r
    end)
    g:replay()
    helper.close(y:cpu(), tycho.full({3}, 4))
  end)

  it("may be captured on one GPU while another's memory is used", function()
    if tycho.cuda.device_count() < 2 then return end
    local x, side = tycho.ones(1000, {device = "cuda:1"}), tycho.cuda.Stream(1)
    side:wait_stream(tycho.cuda.current_stream(1))
    local there
    local g, y = tycho.cuda.graph(function()
      tycho.cuda.stream(side, function() return x * 2 end)
      x:free()                             -- it waits for the side
      there = tycho.zeros(10, {device = "cuda:1"})
      return tycho.ones(3, {device = "cuda:0"})
    end)
    g:replay()
    helper.close(y:cpu(), tycho.ones(3):cpu())
    helper.close(there:cpu(), tycho.zeros(10):cpu())
  end)

  it("have room where memory is cached for others", function()
    collectgarbage()
    collectgarbage()
    tycho.cuda.empty_cache()
    local free = tycho.cuda.mem_get_info()
    tycho.empty(math.floor(free * 0.7), {dtype = "uint8", device = "cuda"}):free()
    local g, y = tycho.cuda.graph(function() return tycho.zeros(math.floor(free * 0.4), {dtype = "uint8", device = "cuda"}) end)
    g:replay()
    assert.equal(0, y[1])
  end)

  it("run a recorded training step again, with new inputs and new random numbers", function()
    tycho.manual_seed(3)
    local net = tycho.nn.Sequential(tycho.nn.Linear(6, 16), tycho.nn.ReLU(), tycho.nn.Dropout(0.5), tycho.nn.Linear(16, 3)):to("cuda")
    local twin = net:clone()
    local opt, other = tycho.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9}),
      tycho.optim.SGD(twin:parameters(), {lr = 0.1, momentum = 0.9})
    local function step(n, o, x, y)
      o:zero_grad()
      local loss = tycho.cross_entropy(n(x), y)
      loss:backward()
      o:step()
      return loss
    end
    local xs, ys = tycho.randn(12, 8, 6, {device = "cuda"}), tycho.randint(1, 3, {12, 8}, {device = "cuda"})
    local x, y = xs[1]:clone(), ys[1]:clone()
    local rng = {tycho.cuda.get_rng_state()}
    step(net, opt, x, y)
    local g, loss = tycho.cuda.graph(step, net, opt, x, y)
    local syncs, losses = tycho.cuda.sync_count(), {}
    for i = 2, 12 do
      x:copy_(xs[i])
      y:copy_(ys[i])
      g:replay()
      losses[i] = loss:clone()
      tycho.randn(500, {device = "cuda"}):free()                 -- wants memory, but not the graph's
    end
    assert.equal(syncs, tycho.cuda.sync_count())
    tycho.cuda.set_rng_state(unpack(rng))
    step(twin, other, xs[1], ys[1])
    for i = 2, 12 do
      helper.close(losses[i], step(twin, other, xs[i], ys[i]), "loss " .. i, 1e-6)
      tycho.randn(500, {device = "cuda"}):free()
    end
    for i, p in ipairs(net:parameters()) do helper.close(p, twin:parameters()[i], "parameter " .. i, 1e-6) end
  end)

  it("refuse an optimizer's step that can't be done again as it is", function()
    local nn, optim = tycho.nn, tycho.optim
    local function capture(make, steps)
      local net = nn.Linear(2, 1):cuda()
      local opt, x = make(net:parameters()), tycho.ones(3, 2, {device = "cuda"})
      local function step()
        opt:zero_grad()
        net(x):sum():backward()
        opt:step()
      end
      for _ = 1, steps do step() end
      return tycho.cuda.graph(step)
    end
    helper.fails("call step() once before", capture, function(p) return optim.AdamW(p) end, 0)
    helper.fails("call step() once before", capture, function(p) return optim.SGD(p, {momentum = 0.9}) end, 0)
    helper.fails("call step() once before", capture, function(p) return optim.RMSprop(p) end, 0)
    assert.is_truthy(capture(function(p) return optim.SGD(p, {momentum = 0.9}) end, 1))
    assert.is_truthy(capture(function(p) return optim.RMSprop(p) end, 1))
  end)

  it("hold whole steps of mixed precision, whose counts and scale go on from replay to replay", function()
    local nn, optim, amp = tycho.nn, tycho.optim, tycho.amp
    local x, y = tycho.randn(8, 4, {device = "cuda"}), tycho.randn(8, 2, {device = "cuda"})
    local start = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)):cuda():state_dict()
    local function train(captured)
      local net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)):cuda()
      net:load_state_dict(start)
      local opt, scaler = optim.AdamW(net:parameters(), {lr = 0.01}), amp.GradScaler{init_scale = 16, growth_interval = 3}
      local input = x:clone()
      local function step()
        opt:zero_grad()
        local loss = amp.autocast({dtype = "float16"}, function() return nn.functional.mse_loss(net(input), y) end)
        scaler:scale(loss):backward()
        scaler:step(opt)
        scaler:update()
      end
      step()
      local graph
      for i = 1, 7 do
        input:copy_(i == 4 and x * 1e30 or x)              -- one step is skipped
        if captured then
          graph = graph or tycho.cuda.graph(step)
          graph:replay()
        else step() end
      end
      return net, scaler
    end
    local a, sa = train(true)
    local b, sb = train(false)
    for i, p in ipairs(a:parameters()) do helper.close(p, b:parameters()[i], "parameter " .. i, 0) end
    assert.same(sb:state_dict(), sa:state_dict())
  end)

  it("record several streams, and run them in their order", function()
    local side = tycho.cuda.Stream()
    local x = tycho.zeros(100, {device = "cuda"})
    local g, y = tycho.cuda.graph(function()
      local a = x + 1
      side:wait_stream(tycho.cuda.current_stream())
      local b = tycho.cuda.stream(side, function() return a * 3 + x end)
      local c = a * 5
      tycho.cuda.current_stream():wait_stream(side)
      return b + c
    end)
    for i = 1, 20 do
      x:fill_(i)
      g:replay()
      helper.close(y:cpu(), tycho.full({100}, (i + 1) * 8 + i))
    end
  end)

  it("give branches memory of their own", function()
    local side, x = tycho.cuda.Stream(), tycho.ones(3000, {device = "cuda"})
    local g, a, b = tycho.cuda.graph(function()
      side:wait_stream(tycho.cuda.current_stream())
      local t = x * 2
      local u = t + 1
      t:free()
      local z = tycho.cuda.stream(side, function()
        local v = x * 5
        local w = v:sum() + v
        v:free()
        return w
      end)
      local y = (u * 3 + x):sum() + u
      tycho.cuda.current_stream():wait_stream(side)
      return y, z
    end)
    for i = 1, 15 do
      x:fill_(i)
      g:replay()
      helper.close(a:cpu(), tycho.full({3000}, 3000 * (3 * (2 * i + 1) + i) + 2 * i + 1), "one branch", 1e-5)
      helper.close(b:cpu(), tycho.full({3000}, 3000 * 5 * i + 5 * i), "the other", 1e-5)
    end
  end)

  it("may be many over the same tensors", function()
    local w, graphs = tycho.ones(10, {device = "cuda"}), {}
    for i = 1, 7 do graphs[i] = {tycho.cuda.graph(function() return w * i end)} end
    for i = 1, 7 do
      graphs[i][1]:replay()
      helper.close(graphs[i][2]:cpu(), tycho.full({10}, i))
    end
  end)

  it("that were never captured to the end leave the device usable", function()
    local co = coroutine.create(function() tycho.cuda.graph(function() coroutine.yield() end) end)
    coroutine.resume(co)
    co = nil
    collectgarbage() collectgarbage()
    local g, y = tycho.cuda.graph(function() return tycho.ones(3, {device = "cuda"}) + 1 end)
    g:replay()
    helper.close(y:cpu(), tycho.full({3}, 2))
    assert.is_nil(co)
  end)

  it("keep their memory, and give it back", function()
    collectgarbage() collectgarbage()
    local before = tycho.cuda.memory_allocated()
    local x = tycho.ones(1000, {device = "cuda"})
    local held = {tycho.cuda.graph(function() return ((x * 2 + 1) * 3):exp():log() + 1 end)}
    tycho.cuda.empty_cache()
    local others = {}
    for i = 1, 20 do others[i] = tycho.full({1000}, i, {device = "cuda"}) end
    x:free()                                                     -- the graph holds it
    held[1]:replay()
    helper.close(held[2]:cpu(), tycho.full({1000}, 10))
    for i = 1, 20 do helper.close(others[i]:cpu(), tycho.full({1000}, i)) end
    for i = 1, 20 do others[i] = nil end
    held[1], held[2] = nil, nil
    collectgarbage() collectgarbage()
    assert.equal(before, tycho.cuda.memory_allocated())
  end)

  it("keep what they read, though its memory was that of a stream which they use now", function()
    local n = 300000
    local x = tycho.full({n}, 2, {device = "cuda"})
    local function threes()                                      -- on a stream that goes back at once
      local s, w = tycho.cuda.Stream()
      tycho.cuda.stream(s, function() w = tycho.full({n}, 3, {device = "cuda"}) end)
      s:synchronize()
      return w
    end
    local w, pool = threes(), tycho.cuda.graph_pool_handle()
    local first, y = tycho.cuda.graph({pool = pool}, function() return x * w end)
    w = nil
    collectgarbage() collectgarbage()
    local second = tycho.cuda.graph({pool = pool}, function() return x + 100 end)
    second:replay()
    first:replay()
    helper.close(y:cpu(), tycho.full({n}, 6))
    w = threes()
    local third, z = tycho.cuda.graph(function()
      local z = x * w
      w = nil
      collectgarbage() collectgarbage()
      return z, x + 100
    end)
    for _ = 1, 2 do third:replay() end
    helper.close(z:cpu(), tycho.full({n}, 6))
    local old, result = tycho.cuda.graph(function() return x * 5 end)      -- what a graph gave outlives it
    old:replay()
    old = nil                                                    -- luacheck: ignore
    collectgarbage() collectgarbage()
    local last, sum = tycho.cuda.graph(function()
      local sum = x + result
      result = nil
      collectgarbage() collectgarbage()
      return sum, x + 100
    end)
    for _ = 1, 2 do last:replay() end
    helper.close(sum:cpu(), tycho.full({n}, 12))
  end)

  it("have a stream that nobody else works on", function()
    local x, s = tycho.full({300000}, 2, {device = "cuda"})
    local g, y = tycho.cuda.graph(function()
      s = tycho.cuda.current_stream()
      local side = tycho.cuda.Stream()
      side:wait_stream(s)
      local t = tycho.cuda.stream(side, function() return tycho.cuda.stream(s, function() return x * 3 end) end)
      s:wait_stream(side)
      return t + 1
    end)
    helper.fails("must not be a graph's stream", tycho.cuda.stream, s, function() return x + 1 end)
    helper.fails("must not be a graph's stream", tycho.cuda.set_stream, s)
    g:replay()
    s:synchronize()
    helper.close(y:cpu(), tycho.full({300000}, 7))
    g, y = nil, nil                                              -- luacheck: ignore
    collectgarbage() collectgarbage()
    helper.fails("must not be a graph's stream", tycho.cuda.stream, s, function() return x + 1 end)
    local raw = s:cuda_stream()
    s = nil
    collectgarbage() collectgarbage()                            -- nobody has it now; it is handed out to graphs alone
    for _ = 1, 40 do assert.is_false(tycho.cuda.Stream():cuda_stream() == raw) end
  end)

  it("refuse what can't be recorded, and leave everything usable", function()
    local x = tycho.ones(4, {device = "cuda"})
    local stream = tostring(tycho.cuda.current_stream())
    helper.fails("an element's value is needed while a graph is captured", tycho.cuda.graph, function() return x:sum():item() end)
    helper.fails("isn't pinned while a graph is captured", tycho.cuda.graph, function() return tycho.ones(3):cuda() end)
    helper.fails("synchronize: called while a graph is captured", tycho.cuda.graph, tycho.cuda.synchronize)
    helper.fails("captured already", tycho.cuda.graph, function() tycho.cuda.graph(function() end) end)
    helper.fails("boom", tycho.cuda.graph, function() error("boom") end)
    helper.fails("must be a function", tycho.cuda.graph, 3)
    local side = tycho.cuda.Stream()
    helper.fails("graph: capture failed on cuda:0", tycho.cuda.graph, function()
      side:wait_stream(tycho.cuda.current_stream())
      tycho.cuda.stream(side, function() return x + 1 end)       -- nothing waits for it
    end)
    assert.equal(stream, tostring(tycho.cuda.current_stream()))
    helper.close((x + 1):cpu(), tycho.full({4}, 2))
    local g = tycho.cuda.graph(function() x:add_(1) end)
    g:replay()
    helper.close(x:cpu(), tycho.full({4}, 2))
  end)

  it("use one pool where that is asked for", function()
    local x = tycho.ones(300000, {device = "cuda"})
    local function chain(k) return function() return ((x * k + 1) * 3 - 2):exp():log() + 1 end end
    local function reserved(options)
      collectgarbage() collectgarbage()
      tycho.cuda.empty_cache()
      local before, held, results = tycho.cuda.memory_reserved(), {}, {}
      for k = 1, 4 do
        local o = type(options) == "function" and options(held) or options
        held[k], results[k] = tycho.cuda.graph(o, chain(k))
      end
      local bytes = tycho.cuda.memory_reserved() - before
      for round = 1, 2 do
        x:fill_(round)
        for k = 1, 4 do held[k]:replay() end
        for k = 1, 4 do helper.close(results[k]:cpu(), tycho.full({300000}, (round * k + 1) * 3 - 1), 1e-4) end
      end
      held[2] = nil                                              -- the pool stays with the others
      collectgarbage() collectgarbage()
      x:fill_(0)
      held[4]:replay()
      helper.close(results[4]:cpu(), tycho.full({300000}, 2), 1e-4)
      return bytes
    end
    local alone = reserved {}
    assert.is_true(reserved({pool = tycho.cuda.graph_pool_handle()}) < alone)
    assert.is_true(reserved(function(held) return {pool = held[1] and held[#held]:pool() or nil} end) < alone)
    local handle = tycho.cuda.graph_pool_handle()
    local kept = tycho.cuda.graph({pool = handle}, chain(1))
    tycho.cuda.graph({pool = handle}, chain(2)):reset()
    helper.fails("boom", tycho.cuda.graph, {pool = handle}, function() error "boom" end)
    tycho.cuda.graph({pool = handle}, chain(3)):replay()
    kept:replay()
    local g = tycho.cuda.graph(chain(1))
    g:reset()
    helper.fails("the pool's graph has been reset", tycho.cuda.graph, {pool = g:pool()}, chain(2))
    helper.fails("option 'pool' must come from", tycho.cuda.graph, {pool = 3}, chain(2))
    helper.fails("unknown option 'pol'; did you mean 'pool'", tycho.cuda.graph, {pol = 3}, chain(2))
  end)

  it("are replayed within compiled functions as they stand there", function()
    local x, y = tycho.ones(4, {device = "cuda"}), tycho.zeros(4, {device = "cuda"})
    local g = tycho.cuda.graph(function() y:copy_(x * 2) end)
    local f = tycho.compile(function(a) x:copy_(a) g:replay() return y + 1 end)
    local line = debug.getinfo(1, "l").currentline - 1
    for i = 1, 5 do helper.close(f(tycho.full({4}, i, {device = "cuda"})):cpu(), tycho.full({4}, 2 * i + 1)) end
    assert.equal(("a graph is replayed (spec/graph_spec.lua:%d)"):format(line), f:report()[1].why)
  end)

  it("of compiled steps leave to the CPU what is done there, and are on the GPU that has the work", function()
    local nn, count = tycho.nn, tycho.zeros(1)
    local here, there = nn.Linear(2, 1), nn.Linear(2, 1):to("cuda")
    there:load_state_dict(here:state_dict())
    local function optimizer(net) return tycho.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9}) end
    local a, b = optimizer(here), optimizer(there)
    local step = tycho.compile(function(x, y)
      count:add_(1)
      for _, all in ipairs {{here, a, x}, {there, b, y}} do
        all[2]:zero_grad()
        all[1](all[3]):square():mean():backward()
        all[2]:step()
      end
    end)
    local x = tycho.randn(4, 2)
    local y = x:cuda()
    for i = 1, 8 do
      step(x, y)
      if i == 5 then a.param_groups[1].lr, b.param_groups[1].lr = 0.01, 0.01 end
    end
    assert.is_true(step:report()[1].compiled, step:report()[1].why)
    assert.equal(8, count:item())
    helper.close(here.weight, there.weight:cpu(), nil, 1e-5)
    if tycho.cuda.device_count() < 2 then return end
    local p, q = tycho.zeros(1, {device = "cuda:0"}), tycho.zeros(1, {device = "cuda:1"})
    local one, both = tycho.compile(function() q:add_(1) end), tycho.compile(function() p:add_(1) q:add_(1) end)
    for _ = 1, 5 do one() both() end
    assert.same({5, 10}, {p:item(), q:item()})
    assert.is_true(one:report()[1].compiled)
    assert.equal("the function works on several GPUs", both:report()[1].why)
  end)

  local function trained(graphed, wrap)
    local nn, on = tycho.nn, {device = "cuda"}
    tycho.manual_seed(3)
    local body = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.25), nn.Linear(16, 8)):to("cuda")
    local head = nn.Sequential(nn.ReLU(), nn.Linear(8, 3)):to("cuda")
    local opt = tycho.optim.SGD({{params = body:parameters()}, {params = head:parameters()}}, {lr = 0.1, momentum = 0.9})
    tycho.manual_seed(4)
    if graphed then
      local given = tycho.cuda.make_graphed_callables({body, head},
        {{tycho.zeros(5, 6, on)}, {tycho.zeros(5, 8, {device = "cuda", requires_grad = true})}})
      assert.is_true(rawequal(given[1], body) and rawequal(given[2], head))
    end
    tycho.manual_seed(9)
    local losses = {}
    for i = 1, 4 do
      local x, y = tycho.randn(5, 6, on), tycho.randint(1, 3, {5}, on)
      local loss = wrap(function() return tycho.nn.functional.cross_entropy(head(body(x) * i), y) end)     -- between them: as it comes
      opt:zero_grad()
      loss:backward()
      opt:step()
      losses[i] = loss:cpu()
    end
    body:eval()
    losses[5] = body(tycho.ones(2, 6, on)):detach():cpu()        -- another mode, another shape: not by the graphs
    return losses
  end

  it("stand for parts of a model, with what surrounds them free", function()
    local function plain(fn) return fn() end
    local want, got = trained(false, plain), trained(true, plain)
    for i = 1, 5 do assert.is_true(want[i]:equal(got[i])) end
  end)

  it("of parts say what they can't take", function()
    local nn, x = tycho.nn, tycho.ones(2, 3, {device = "cuda"})
    local make = tycho.cuda.make_graphed_callables
    local double = make(function(a, b) return a * 2, b + 1 end, {x:clone(), x:clone()})
    local a, b = double(x, x * 3)
    helper.close(a:cpu(), tycho.full({2, 3}, 2))
    helper.close(b:cpu(), tycho.full({2, 3}, 4))
    helper.fails("argument 2 must be a float32 tensor of shape 2x3 on cuda:0 like the sample, got float32 of shape 3 on cuda:0",
      double, x, x[1])
    helper.fails("2 arguments were recorded, got 1", double, x)
    helper.fails("argument 1 must be a module, a function or a list", make, 3, {x})
    helper.fails("sample argument 1 of callable 1 must be a tensor on a GPU, got one on the cpu", make, nn.Linear(3, 3), {x:cpu()})
    helper.fails("2 callables, but sample arguments for 1", make, {nn.ReLU(), nn.ReLU()}, {{x}})
    helper.fails("sample arguments 1 must be a list of tensors, got 5", make, {nn.ReLU()}, {5})
    local function leaf(v) return tycho.full({2}, v, {device = "cuda", requires_grad = true}) end
    local square = make(function(v) return v * v end, {leaf(1)})
    local x1, x2 = leaf(3), leaf(5)
    local y1 = square(x1)
    local l1 = (y1 * y1):sum()
    local l2 = square(x2):sum()
    helper.fails("was changed in place", l1.backward, l1)        -- by the second call
    l2:backward()
    helper.close(x2.grad:cpu(), tycho.full({2}, 10))
    local first = square(x1)
    square(x2)
    helper.fails("a later forward overwrote what this backward needs", function() first:sum():backward() end)
    helper.fails("no second derivative", function() tycho.grad(square(x1):sum(), x1, {create_graph = true}) end)
    helper.fails("argument 1 requires grad, the sample did not", make(function(v) return v * 2 end, {x1:detach()}), x1)
    helper.fails("result 1 must be a tensor, got 3", make, function() return 3 end, {x})
  end)
end)
