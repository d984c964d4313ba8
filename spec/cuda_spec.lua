-- The GPU backend: devices, copies, streams and events, random numbers. On a real or a simulated GPU; nothing without one.
local tycho = require "tycho"
local helper = require "spec.helper"

describe("cuda", function()
  if not tycho.cuda.is_available() then
    it("says why there is no GPU", function()
      local ok, why = tycho.cuda.is_available()
      assert.is_false(ok)
      assert.is_string(why)
      helper.fails("cuda", tycho.zeros, 2, {device = "cuda"})
      helper.fails("cuda", function() return tycho.zeros(2):cuda() end)
      helper.fails(why, tycho.cuda.Stream)
      assert.equal(0, tycho.cuda.device_count())
    end)
    return
  end

  setup(function() tycho.set_default_device("cpu") end)
  teardown(function() tycho.set_default_device(helper.device) end)
  local function several() return tycho.cuda.device_count() > 1 end

  local stock = os.getenv "TYCHO_BUILD" == nil               -- else a build with sanitizers, which another interpreter can't load
  if stock then it("opens by whatever function is called first", function()
    local names = {}                       -- what asks for memory; a process each
    for name, f in pairs(tycho.cuda) do if type(f) == "function" and name:find "mem" then names[#names + 1] = name end end
    table.sort(names)
    assert.is_true(#names > 5)
    for _, name in ipairs(names) do
      local p = io.popen(("luajit -e 'pcall(require(\"tycho\").cuda.%s) io.write \"alive\"' 2>&1"):format(name))
      assert.equal("alive", p:read "*a", name)
      p:close()
    end
  end) end

  it("multiplies batches that lie in any order, and repeated ones", function()
    local function same(a, b)
      helper.close(a:cuda():matmul(b:cuda()):cpu(), a:clone({memory_format = "contiguous"}):matmul(b:clone({memory_format = "contiguous"})))
    end
    local x, y = tycho.randn(2, 5, 3, 4), tycho.randn(2, 6, 3, 4)              -- heads, as attention permutes them
    local q, k = x:permute(1, 3, 2, 4), y:permute(1, 3, 2, 4)
    local function device(t) return t:cuda():permute(1, 3, 2, 4) end
    helper.close(device(x):matmul(device(y):transpose(3, 4)):cpu(), q:contiguous():matmul(k:contiguous():transpose(3, 4)))
    same(tycho.randn(70000, 2, 1), tycho.randn(70000, 1, 2))                   -- more than the library counts at once
    same(tycho.randn(2, 3, 5, 4), tycho.randn(3, 4, 6))                        -- one batch meets several
    same(tycho.randn(3, 5, 4), tycho.randn(2, 3, 4, 6))
    same(tycho.randn(4, 1, 5, 4), tycho.randn(3, 4, 2))
    same(tycho.randn(1, 3, 5, 4), tycho.randn(4, 1, 4, 2))
    same(tycho.randn(2, 1, 3, 2, 4), tycho.randn(2, 3, 4, 5))
    same(tycho.randn(5, 4):expand(2, 3, 5, 4), tycho.randn(2, 3, 4, 6))
    same(tycho.zeros(2, 3, 0, 4), tycho.randn(2, 3, 4, 6))
    same(tycho.zeros(2, 3, 5, 0), tycho.zeros(3, 0, 6))
  end)

  it("drops the same weights of attention as the CPU, whatever the length", function()
    for _, l in ipairs {9, 68, 70} do
      local q, k, v, seed = tycho.randn(2, 2, 5, 4), tycho.randn(2, 2, l, 4), tycho.randn(2, 2, l, 4), tycho.randn(2, 2, 5, 4)
      local function run(device)
        local leaves = {}
        for i, t in ipairs {q, k, v} do leaves[i] = t:to(device):detach():requires_grad_() end
        tycho.manual_seed(11)
        local y = tycho.scaled_dot_product_attention(leaves[1], leaves[2], leaves[3], nil, 0.3)
        return y, tycho.grad(y, leaves, {grad_outputs = seed:to(device)})
      end
      local y, gradients = run("cpu")
      local there, theirs = run("cuda")
      helper.close(there:cpu(), y, "output", 1e-5)
      for i = 1, 3 do helper.close(theirs[i]:cpu(), gradients[i], "gradient " .. i, 1e-5) end
    end
  end)

  if stock then it("tells where it is waited for", function()
    local p = io.popen [[luajit -e '
      local t = require "tycho"
      local x = t.ones(2, {device = "cuda"})
      t.cuda.set_sync_debug_mode(1)
      local y = (x * 2):sum()
      y:item()
      print(t.cuda.get_sync_debug_mode())' 2>&1]]
    assert.equal("(command line):6: warning: this waits for the device\n1\n", p:read "*a")
    p:close()
  end) end

  it("tells of a bad index when it is waited for", function()
    local x, i = tycho.ones(3, {device = "cuda"}), tycho.tensor({9}, {dtype = "int64", device = "cuda"})
    local event = tycho.cuda.Event()
    for _, wait in ipairs {tycho.cuda.synchronize, function() tycho.cuda.current_stream():synchronize() end,
        function() event:record() event:synchronize() end} do
      x:gather(1, i)
      helper.fails("): index 9 is out of range 1 to 3", wait)
      wait()
    end
  end)

  it("takes operands that don't lie at multiples of 16 bytes", function()
    for _, dtype in ipairs {"float32", "float16"} do
      local b, w, x = tycho.randn(9), tycho.randn(8, 6), tycho.randn(5, 6)
      local image, filter = tycho.randn(1 + 2 * 4 * 6 * 6), tycho.randn(1 + 8 * 4 * 3 * 3)
      local function on(t) return t:cuda():to(dtype) end
      local tolerance = dtype == "float16" and 2e-2 or nil
      helper.close(tycho.linear(on(x), on(w), on(b)[{ {2, 9} }]):float():cpu(), tycho.linear(x, w, b[{ {2, 9} }]), nil, tolerance)
      local function cut(t, ...) return t[{ {2, -1} }]:view(...) end
      helper.close(tycho.conv2d(cut(on(image), 2, 4, 6, 6), cut(on(filter), 8, 4, 3, 3), on(b)[{ {2, 9} }]):float():cpu(),
        tycho.conv2d(cut(image, 2, 4, 6, 6), cut(filter, 8, 4, 3, 3), b[{ {2, 9} }]), nil, tolerance)
    end
  end)

  it("takes the norm of many gradients, and scales them", function()
    local params, copies = {}, {}
    for _, size in ipairs {1, 3, 4096, 4097, 10000, 0, 7, 64, 128} do
      for k, dtype in ipairs {"float32", "float64", "float16"} do
        local g = tycho.randn(size):to(dtype)
        local p, c = tycho.zeros(size, {dtype = dtype, device = "cuda"}), tycho.zeros(size, {dtype = dtype})
        p.grad, c.grad = g:cuda(), g
        if size == 64 and k == 1 then p.grad = tycho.stack({g, g}, 2):cuda():select(2, 1) end         -- with gaps
        params[#params + 1], copies[#copies + 1] = p, c
      end
    end
    local clip = tycho.nn.utils.clip_grad_norm_
    assert.is_true(math.abs(clip(params, 2):item() / clip(copies, 2):item() - 1) < 1e-5)
    for i, p in ipairs(params) do helper.close(p.grad:double():cpu(), copies[i].grad:double(), nil, 1e-3) end
    params[3].grad[1] = 0 / 0
    assert.is_true(clip(params, 2):isnan():item())
  end)

  it("moves tensors of any dtype and layout there and back", function()
    for _, dtype in ipairs {"float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8", "bool"} do
      local x = tycho.randint(0, 100, {5, 7}):to(dtype)
      helper.close(x:cuda():cpu(), x)
      helper.close(x:t():cuda():cpu(), x:t())
      helper.close(x:cuda():t():cpu(), x:t())
      helper.close(x:cuda()[{ {2, 4}, {1, 7, 2} }]:cpu(), x[{ {2, 4}, {1, 7, 2} }])
      assert.same(x:totable(), x:cuda():totable())
    end
    local x = tycho.randn(3, 4)
    local y = tycho.zeros(4, 3, {device = "cuda"})
    y:t():copy_(x)
    helper.close(y:cpu(), x:t())
    assert.equal("cuda:0", y.device)
    assert.equal(x[{2, 3}], y[{3, 2}])
    assert.equal(y, y:to("cuda"))
    assert.equal(y, y:to("cuda:0"))
  end)

  it("names both devices where they are mixed, and takes numbers from the CPU", function()
    local x = tycho.ones(2, 3, {device = "cuda"})
    helper.fails("add: argument 2 is on cpu, argument 1 on cuda:0", function() return x + tycho.ones(2, 3) end)
    helper.fails("add: argument 2 is on cuda:0, argument 1 on cpu", function() return tycho.ones(2, 3) + x end)
    for _, other in ipairs {3, "x", {}, x} do
      helper.fails("wait_stream: argument 1 must be a stream, got", function() tycho.cuda.Stream():wait_stream(other) end)
    end
    local here = tycho.ones(2, 3)
    helper.fails("cat: tensor 2 of argument 1 is on cuda:0, tensor 1 of argument 1 on cpu", tycho.cat, {here, x}, 1)
    helper.fails("stack: tensor 11 of argument 1 is on cpu", tycho.stack, {x, x, x, x, x, x, x, x, x, x, here})
    helper.fails("gather: argument 3 is on cpu, argument 1 on cuda:0", tycho.gather, x, 1, tycho.ones(2, 3, {dtype = "int64"}))
    helper.close((x + tycho.tensor(2)):cpu(), tycho.full({2, 3}, 3))
    helper.close((tycho.tensor(2) * x):cpu(), tycho.full({2, 3}, 2))
    local y = tycho.zeros(4, {device = "cuda"})
    y[tycho.tensor({2, 4}, {dtype = "int64", device = "cuda"})] = tycho.tensor(7)
    y[{ {3, 3} }] = tycho.tensor(5)
    helper.close(y:cpu(), tycho.tensor({0, 7, 5, 7}))
    helper.fails("the result on cuda:0 doesn't fit in place into a tensor on cpu",
      function() tycho.tensor(1):add_(tycho.tensor(2, {device = "cuda"})) end)
    local scalar = tycho.tensor(1, {requires_grad = true})
    helper.fails("it must be on cpu", function() scalar.grad = tycho.tensor(1, {device = "cuda"}) end)
    helper.fails("enable_timing", tycho.cuda.Event, {enable_timings = true})
    helper.fails("there are", tycho.zeros, 1, {device = "cuda:15"})
    helper.fails("device", tycho.zeros, 1, {device = "cuda:x"})
    helper.fails("data: the tensor is on cuda:0", function() return x:data() end)
  end)

  it("lets gradients flow between devices", function()
    local w = tycho.randn(4, {requires_grad = true})
    local loss = (w:cuda() * 3):square():sum():cpu()
    loss:backward()
    helper.close(w.grad, w:detach() * 18)
    assert.equal("cpu", w.grad.device)
    local v = tycho.zeros(4, {device = "cuda"})
    v:copy_(w)
    v:sum():backward()
    helper.close(w.grad, w:detach() * 18 + 1)
  end)

  it("saves tensors of a GPU, and loads onto one", function()
    local path = os.tmpname()
    local x = tycho.randn(3, 4)
    tycho.save(path, {w = x:cuda(), t = x:cuda():t(), deep = {n = 3, v = x[1]:cuda()}})
    helper.close(tycho.load(path).w, x)
    helper.close(tycho.load(path).t, x:t())
    local there = tycho.load(path, {device = "cuda"})
    assert.equal("cuda:0", there.deep.v.device)
    helper.close(there.deep.v:cpu(), x[1])
    os.remove(path)
  end)

  it("prints with one copy", function()
    local x = tycho.randn(5, 5)
    local y, syncs = x:cuda(), tycho.cuda.sync_count()
    assert.equal((tostring(x):gsub("on cpu", "on cuda:0")), tostring(y))
    assert.equal(syncs + 1, tycho.cuda.sync_count())
  end)

  it("gives the CPU's random numbers for the same seed", function()
    for _, draw in ipairs {function(o) return tycho.randn(1001, o) end, function(o) return tycho.rand(30, 33, o) end,
                           function(o) return tycho.randint(-5, 900, {777}, o) end,
                           function(o) return tycho.zeros(999, o):uniform_(-2, 3) end,
                           function(o) return tycho.zeros(999, o):normal_(1, 2) end,
                           function(o) return tycho.bernoulli(tycho.full({500}, 0.3, o)) end,
                           function(o) return tycho.zeros(500, o):exponential_(2) end,
                           function(o) return tycho.dropout(tycho.ones(40, 25, o), 0.4) end} do
      tycho.manual_seed(11)
      local a, b = draw {device = "cuda"}, draw {device = "cuda"}
      tycho.manual_seed(11)
      helper.close(a:cpu(), draw {}, "first", 1e-6)
      helper.close(b:cpu(), draw {}, "second", 1e-6)
    end
  end)

  it("draws other numbers on each stream", function()
    local side = tycho.cuda.Stream()
    for _ = 1, 20 do
      local a = tycho.rand(2000, {device = "cuda"})
      local b = tycho.cuda.stream(side, function() return tycho.rand(2000, {device = "cuda"}) end)
      local c = tycho.rand(2000, {device = "cuda"})
      tycho.cuda.synchronize()
      a, b, c = a:cpu(), b:cpu(), c:cpu()
      assert.is_false(a:equal(b))
      assert.is_false(b:equal(c))
      assert.is_false(a:equal(c))
    end
  end)

  it("tells profilers outside, and other libraries, what they need", function()
    local x = tycho.ones(3, {device = "cuda"})
    assert.equal(4, tycho.cuda.nvtx.range("step", function(a) tycho.cuda.nvtx.mark("half") return a + 1 end, 3))
    tycho.cuda.nvtx.range_push("outer")
    tycho.cuda.nvtx.range_pop()
    helper.fails("boom", tycho.cuda.nvtx.range, "step", function() error("boom") end)
    tycho.cuda.profiler.start()
    tycho.cuda.profiler.stop()
    helper.fails("argument 1 must be a string", tycho.cuda.nvtx.mark, 3)
    local major, minor = tycho.cuda.get_device_capability()
    assert.equal(tycho.cuda.get_device_properties().major, major)
    assert.equal(tycho.cuda.get_device_properties().minor, minor)
    assert.equal(32, tycho.cuda.get_device_properties().warp_size)
    assert.equal(major >= 8, tycho.cuda.is_bf16_supported())
    local s = tycho.cuda.Stream({priority = -1})
    s:wait_stream(tycho.cuda.current_stream())
    local y = tycho.cuda.stream(s, function() return x + 1 end)
    tycho.cuda.current_stream():wait_stream(s)
    helper.close(y:cpu(), tycho.full({3}, 2))
    assert.equal("userdata", type(s:cuda_stream()))
    assert.same({-1, 0, 0}, {s.priority, tycho.cuda.Stream().priority, tycho.cuda.current_stream().priority})
    assert.is_true(tycho.cuda.is_initialized())
    local waited = tycho.cuda.Event {enable_timing = true, blocking = true}
    waited:record()
    waited:synchronize()
    assert.is_true(waited:query())
    -- a stream by its handle, whoever made it
    local ffi, cuda = require "ffi", tycho.cuda
    local outer = cuda.ExternalStream(s:cuda_stream())
    assert.is_true(outer == cuda.ExternalStream(ffi.cast("void *", s:cuda_stream()), 0) and outer:cuda_stream() == s:cuda_stream())
    local z = cuda.stream(outer, function() return x * 3 end)
    cuda.current_stream():wait_stream(outer)
    helper.close(z:cpu(), tycho.full({3}, 3))
    outer:synchronize()
    for _ = 1, 40 do assert.is_false(cuda.Stream():cuda_stream() == outer:cuda_stream()) end
    helper.fails("argument 1 is NULL", cuda.ExternalStream, ffi.cast("void *", 0))
    helper.fails("must be a cudaStream_t", cuda.ExternalStream, "a")
    assert.is_false(cuda.can_device_access_peer(0, 0))
    if cuda.device_count() > 1 then assert.equal("boolean", type(cuda.can_device_access_peer(0, 1))) end
    helper.fails("argument 2 must be a GPU's number", cuda.can_device_access_peer, 0, 99)
    local p = tycho.ones(3, {device = "cuda"}):data_ptr()
    assert.is_true(require("ffi").istype("void *", p) and p ~= nil)
    helper.fails("call cpu() first", function() return tycho.ones(3, {device = "cuda"}):data() end)
    assert.equal(tycho.cuda.default_stream():cuda_stream(), tycho.cuda.current_stream():cuda_stream())
  end)

  it("orders streams by events, and restores the stream also after an error", function()
    local default = tostring(tycho.cuda.current_stream())
    local s, e = tycho.cuda.Stream(), tycho.cuda.Event {enable_timing = true}
    local f = tycho.cuda.Event {enable_timing = true}
    helper.fails("boom", tycho.cuda.stream, s, function() error("boom") end)
    assert.equal(default, tostring(tycho.cuda.current_stream()))
    local x = tycho.ones(100, {device = "cuda"})
    e:record()
    s:wait_event(e)
    local y = tycho.cuda.stream(s, function() return x + 1 end)
    s:record_event(f)
    f:synchronize()
    assert.is_true(f:query())
    assert.is_true(e:elapsed_time(f) >= 0)
    helper.close(tycho.cuda.stream(s, function() return y:cpu() end), tycho.full({100}, 2))
    assert.is_true(s:query())
    helper.fails("enable_timing", function() return tycho.cuda.Event():elapsed_time(f) end)
    tycho.cuda.synchronize()
  end)

  it("goes to the GPU that is named", function()
    if not several() then return pending("one device") end
    assert.equal("cuda:1", tycho.ones(1):cuda(1).device)
    assert.equal("cuda:1", tycho.nn.Linear(1, 1):cuda(1).weight.device)
    assert.equal("cuda:1", tycho.ones(1):to("cuda:1", "float64").device)
    helper.fails("there are", function() return tycho.ones(1):cuda(14) end)
  end)

  it("resumes an optimizer on the device of its parameters", function()
    local path = os.tmpname()
    local net = tycho.nn.Linear(2, 1)
    local function step(n, o)
      o:zero_grad()
      n(tycho.ones(3, 2, {device = n.weight.device})):sum():backward()
      o:step()
    end
    local opt = tycho.optim.AdamW(net:parameters(), {lr = 0.1})
    step(net, opt)
    local twin = net:clone():cuda()
    tycho.save(path, opt:state_dict())
    local other = tycho.optim.AdamW(twin:parameters(), {lr = 0.1})
    other:load_state_dict(tycho.load(path))
    step(net, opt)
    step(twin, other)
    helper.close(twin.weight:cpu(), net.weight:detach())
    os.remove(path)
  end)

  it("moves a module's gradients with it", function()
    local net = tycho.nn.Linear(3, 2)
    net(tycho.ones(1, 3)):sum():backward()
    net:cuda()
    assert.equal("cuda:0", net.weight.grad.device)
    helper.close(net.weight.grad:cpu(), tycho.ones(2, 3))
    net:cpu()
    assert.equal("cpu", net.weight.grad.device)
  end)

  it("limits whole numbers from one side", function()
    local x = tycho.tensor({-5, 0, 7}, {dtype = "int64", device = "cuda"})
    assert.same({1, 1, 7}, x:clamp(1):totable())
    assert.same({-5, 0, 3}, x:clamp(nil, 3):totable())
  end)

  it("keeps its generator where data are shuffled and split under a seed", function()
    tycho.manual_seed(5)
    local a = {tycho.cuda.get_rng_state()}
    tycho.data.random_split(tycho.data.TensorDataset(tycho.zeros(10)), {4, 6}, {seed = 3})
    assert.same(a, {tycho.cuda.get_rng_state()})
  end)

  it("gives the same bits where determinism is asked for, and the same sums as the CPU", function()
    tycho.use_deterministic_algorithms(true)
    local at, rows = tycho.randint(1, 7, {300}), tycho.randn(300, 5)
    local first
    for _ = 1, 5 do
      local y = tycho.zeros(7, 5, {device = "cuda"}):index_add(1, at:cuda(), rows:cuda())
      local z = tycho.zeros(7, {device = "cuda"}):scatter(1, at:cuda(), rows:select(2, 1):cuda())
      if first then
        helper.close(y, first[1], "sums", 0)
        helper.close(z, first[2], "the last of those that meet", 0)
      else
        first = {y, z}
        helper.close(y:cpu(), tycho.zeros(7, 5):index_add(1, at, rows))
        helper.close(z:cpu(), tycho.zeros(7):scatter(1, at, rows:select(2, 1)))
      end
    end
    tycho.use_deterministic_algorithms(false)
    assert.is_false(tycho.are_deterministic_algorithms_enabled())
  end)

  it("names the function and the line that a bad index was given at", function()
    local at = tycho.tensor({1, 9}, {dtype = "int64", device = "cuda"})
    local x, rows = tycho.zeros(4, 3, {device = "cuda"}), tycho.ones(2, 3, {device = "cuda"})
    local layer = tycho.nn.Embedding(4, 3):to("cuda")
    for name, fn in pairs {
      gather = function() local _ = x:gather(1, at:view(2, 1)) end,
      one_hot = function() local _ = tycho.one_hot(at, 4) end,
      embedding = function() local _ = layer(at) end,
      index_select = function() local _ = x:index_select(1, at) end,
      index_add = function() local _ = x:index_add(1, at, rows) end,
      nll_loss = function() local _ = tycho.nll_loss(rows, at) end,
      cross_entropy = function() local _ = tycho.cross_entropy(rows, at) end,
      index = function() local _ = x[at] end,
    } do
      local at_line = debug.getinfo(fn, "S")
      local text = (": %s (an earlier call on cuda:0, %s:%d): "):format(name, at_line.short_src, at_line.linedefined)
      for _, later in ipairs {tycho.cuda.synchronize, function() return tycho.one_hot(at:clamp(1, 4), 4):cpu() end} do
        local ok, err = pcall(function() fn() later() end)
        assert.is_truthy(not ok and err:find(text, 1, true), err)
      end
    end
  end)

  it("reports a bad index later, or at once where that is asked for", function()
    local x = tycho.zeros(4, {device = "cuda"})
    local at = tycho.tensor({9}, {dtype = "int64", device = "cuda"})
    local y = x:index_select(1, at)
    while not tycho.cuda.current_stream():query() do end
    helper.fails("): index 9 is out of range 1 to 4", function() return x + 1 end)
    helper.close((x + 1):cpu(), tycho.ones(4))
    tycho.cuda.set_sync_debug(true)
    local ok, err = pcall(x.index_select, x, 1, at)
    tycho.cuda.set_sync_debug(false)
    assert.is_false(ok)
    assert.is_nil(err:find("earlier", 1, true))
    assert.is_truthy(err:find("index 9 is out of range 1 to 4", 1, true))
    assert.is_truthy(y)
  end)

  it("scans, sorts, selects and reduces long lines as the CPU does", function()
    tycho.manual_seed(12)
    local nan = 0 / 0
    local x = tycho.randn(3, 5000)
    x[{2, 700}] = nan
    x[{2, 4100}] = nan
    local whole, equal = tycho.randint(-9, 9, {3, 5000}), tycho.randint(1, 40, {2, 3000}):float()
    local function same(name, fn, tolerance)
      for _, v in ipairs {x, x:t():contiguous():t(), whole, equal} do
        local want, got = {fn(v)}, {fn(v:cuda())}
        for k = 1, #want do helper.close(got[k]:cpu(), want[k], name .. " of " .. v.dtype .. ", result " .. k, tolerance) end
      end
    end
    same("cumsum", function(v) return v:cumsum(2) end, 1e-4)
    same("cumprod", function(v) return (v * 0.01 + 1):cumprod(2) end, 1e-4)
    same("cummax", function(v) return v:cummax(2) end)
    same("cummin", function(v) return v:cummin(2) end)
    same("max", function(v) return v:max(2) end)
    same("min", function(v) return v:min(2) end)
    same("sort", function(v) return v:sort(2) end)
    same("sort, descending, along dim 1", function(v) return v:sort(1, {descending = true}) end)
    same("sort of one long line", function(v) return v:flatten():sort() end)
    same("topk, few", function(v) return v:topk(7, 2) end)
    same("topk, many", function(v) return v:topk(1500, 2) end)
    same("topk, smallest", function(v) return v:topk(200, 2, {largest = false}) end)
    same("unique", function(v) return v:unique({return_inverse = true, return_counts = true}) end)
    same("nonzero", function(v) return v:nonzero() end)
    helper.close(x:logcumsumexp(2)[1], x:cuda():logcumsumexp(2)[1]:cpu(), "logcumsumexp", 1e-4)
    helper.close(equal:flatten():long():bincount(), equal:cuda():flatten():long():bincount():cpu())
    tycho.manual_seed(3)
    local order, draws = tycho.randperm(5000, {device = "cuda"}), tycho.rand(4, 3000):cuda():multinomial(500)
    tycho.manual_seed(3)
    helper.close(order:cpu(), tycho.randperm(5000))
    assert.same({4, 500}, {draws:size(1), draws:size(2)})
    for i = 1, 4 do assert.equal(500, draws[i]:unique():numel()) end
  end)

  it("cuts lines into sections where they are few, in any layout", function()
    tycho.manual_seed(13)
    for _, case in ipairs {{{20003}, 1}, {{2, 9001}, 2}, {{2, 9000}, 2}, {{2, 5001, 3}, 2}, {{3, 300, 20}, 2}, {{40, 33}, 2}} do
      local shape, dim = case[1], case[2]
      local x, whole = tycho.randn(shape), tycho.randint(1, 50, shape)
      local broken, half = x:clone(), tycho.randint(-20, 20, shape):half()
      broken:flatten()[7001 % x:numel()] = 0 / 0
      local function same(name, v)
        local want, got = {v[name](v, dim)}, {v:cuda()[name](v:cuda(), dim)}
        for k = 1, #want do
          helper.close(got[k]:cpu(), want[k], ("%s of %s %s, result %d"):format(name, v.dtype, v.shape, k), 1e-5)
        end
      end
      for _, name in ipairs {"max", "min", "cummax", "cummin"} do
        for _, v in ipairs {x, whole, broken, half, whole:to("uint8")} do same(name, v) end
      end
      for _, v in ipairs {x:double(), whole, whole:to("uint8")} do same("cumsum", v) end
      same("cumprod", x:double() * 1e-4 + 1)
      same("cumprod", (whole % 2) * 2 - 1)
      same("logcumsumexp", x)
    end
  end)

  it("says of a value that its index was bad, not the next op", function()
    local at = tycho.tensor({9}, {dtype = "int64", device = "cuda"})
    helper.fails("index 9 is out of range 1 to 4", function() return tycho.zeros(4, {device = "cuda"}):index_select(1, at):item() end)
    helper.fails("index 9 is out of range 1 to 4",
      function() return tycho.zeros(4, 3000, {device = "cuda"}):index_select(1, at:expand(50)):cpu() end)
    tycho.cuda.synchronize()
    helper.close((tycho.zeros(2, {device = "cuda"}) + 1):cpu(), tycho.ones(2))     -- once is enough
  end)

  it("has switches for the libraries underneath", function()
    assert.is_false(tycho.backends.cudnn.benchmark)
    tycho.backends.cudnn.benchmark = true
    assert.is_true(tycho.backends.cudnn.benchmark)
    tycho.backends.cudnn.benchmark = false
    helper.fails("has no 'benchmrk'", function() tycho.backends.cudnn.benchmrk = true end)
    helper.fails("must be a boolean", function() tycho.backends.cuda.allow_tf32 = 1 end)
  end)

  it("trains without waiting for the device", function()
    tycho.manual_seed(2)
    local x, y = tycho.randn(32, 10, {device = "cuda"}), tycho.randn(32, 1, {device = "cuda"})
    local w, b = tycho.randn(10, 1, {device = "cuda", requires_grad = true}), tycho.zeros(1, {device = "cuda", requires_grad = true})
    local first = ((x:matmul(w) + b - y):square():mean()):item()
    local syncs = tycho.cuda.sync_count()
    for _ = 1, 40 do
      local loss = (x:matmul(w) + b - y):square():mean()
      loss:backward()
      tycho.no_grad(function()
        w:sub_(w.grad * 0.1)
        b:sub_(b.grad * 0.1)
      end)
      w.grad, b.grad = nil, nil
    end
    assert.equal(syncs, tycho.cuda.sync_count())
    assert.is_true((x:matmul(w) + b - y):square():mean():item() < first / 2)
  end)

  it("trains a CNN without waiting for the device, and as the CPU does", function()
    local nn = tycho.nn
    tycho.manual_seed(4)
    local net = nn.Sequential(nn.Conv2d(1, 4, 3, {padding = 1, bias = false}), nn.BatchNorm2d(4), nn.ReLU(),
      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    local x, y = tycho.randn(12, 1, 8, 8), tycho.randint(1, 3, {12})
    local function train(n, a, b)
      tycho.manual_seed(6)
      local opt = tycho.optim.AdamW(n:parameters(), {lr = 0.01})
      local schedule = tycho.optim.lr_scheduler.OneCycleLR(opt, {max_lr = 0.01, total_steps = 10})
      local losses, syncs = {}, tycho.cuda.sync_count()
      for i = 1, 10 do
        losses[i] = tycho.cross_entropy(n(a), b)
        opt:zero_grad()
        losses[i]:backward()
        nn.utils.clip_grad_norm_(n:parameters(), 1)
        opt:step()
        schedule:step()
        losses[i] = losses[i]:detach()
      end
      assert.equal(syncs, tycho.cuda.sync_count())
      return tycho.stack(losses):cpu()
    end
    local twin = net:clone():cuda()
    helper.close(train(twin, x:cuda(), y:cuda()), train(net, x, y), "losses", 1e-4)
  end)
end)
