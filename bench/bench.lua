-- Timings beside PyTorch's, in the same run and with the same threads, where a python3 with torch is found.
--   make bench [ARGS="--threads 2 --python /path/to/python3 --only TEXT"]         --only: cases whose names hold the text
-- A figure is the median of several rounds that alternate between the two; "ratio" is Tycho's time over PyTorch's. A peak of memory is
-- what a fresh process grew by at most, after the library was loaded.
local here = arg[0]:match("^(.*)/") or "."
local common = dofile(here .. "/common.lua")
local median, backward = common.median, common.backward
local options = common.options {threads = 2, python = os.getenv("PYTHON") or "python3", rounds = 5}

-- Milliseconds that require takes in a fresh process.
local function require_ms()
  local list = {}
  for i = 1, 9 do
    local p = io.popen [[luajit -e "local ffi = require 'ffi'
      ffi.cdef'typedef struct { long s, n; } ts; int clock_gettime(int, ts *);'
      local t = ffi.new'ts'
      local function now() ffi.C.clock_gettime(1, t) return tonumber(t.s) * 1e3 + tonumber(t.n) / 1e6 end
      local a = now()
      require 'tycho'
      io.write(now() - a)"]]
    list[i] = tonumber(p:read("*a"))
    p:close()
  end
  return median(list)
end

local tycho = require "tycho"
local core = require "tycho.core"
local nn, optim = tycho.nn, tycho.optim
tycho.set_num_threads(options.threads)
tycho.manual_seed(1)

-- Seconds a call takes, the mean over some 0.2 s.
local function time(fn)
  local t, n = core.now(), 0
  fn()
  local last = core.now()
  local per = math.max(1, math.floor(0.02 / (last - t)))
  t = last
  repeat
    for _ = 1, per do fn() end
    n, last = n + per, core.now()
  until last - t > 0.2
  return (last - t) / n
end

-- Each case: its name and the function to time. peer.py has the same list in the same order.
local cases = {}
local function case(name, fn) cases[#cases + 1] = {name, fn} end
local function training(net, x, y)
  local opt = optim.AdamW(net:parameters(), {lr = 1e-3})
  return function()
    local loss = tycho.cross_entropy(net(x):view(#y, -1), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
end
local function labels(n, ...) return tycho.randint(1, n, {...}) end
local R = tycho.randn

-- The models whose training steps are timed, and whose peaks of memory are compared in processes of their own.
local function cnn()
  return nn.Sequential(nn.Conv2d(1, 32, 3, {padding = 1, bias = false}), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, {padding = 1, bias = false}), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(64 * 49, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
end
local function cnn_step() return training(cnn(), R(128, 1, 28, 28), labels(10, 128)) end
local function gpt_step()
  local net = require "examples.char_gpt" {tokens = 65, width = 128, heads = 4, layers = 4, length = 64, bias = false}
  return training(net, labels(65, 12, 64), labels(65, 768))
end
local memory = {cnn = cnn_step, gpt = gpt_step}
if options.memory then
  local function kilobytes(what) return tonumber(io.open("/proc/self/status"):read("*a"):match(what .. ":%s*(%d+)")) end
  local forget = io.open("/proc/self/clear_refs", "w")       -- resets the peak
  forget:write("5")
  forget:close()
  local before, step = kilobytes "VmRSS", memory[options.memory]()
  for _ = 1, 30 do step() end
  print((kilobytes "VmHWM" - before) * 1024)
  os.exit()
end

local one, two, grown = tycho.ones(1), tycho.ones(1), tycho.ones(1, {requires_grad = true})
case("add of one element", function() return one + two end)
case("add of one element that requires grad", function() return grown + two end)
case("training step of an MLP 784-128-10, batch 128",
  training(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), R(128, 784), labels(10, 128)))
case("training step of the demo's CNN, batch 128", cnn_step())
case("the same in bfloat16", training(cnn():to("bfloat16"), R(128, 1, 28, 28):bfloat16(), labels(10, 128)))
case("training step of char_gpt, 4 layers of 128, 12x64", gpt_step())
case("training step of ResNet-18, 32x3x224x224",
  training(require "examples.resnet18" {classes = 1000}, R(32, 3, 224, 224), labels(1000, 32)))
do
  local lstm = nn.LSTM(128, 128, 2)
  case("LSTM, 2 layers of 128, 64x32x128, both ways", backward(function(x) lstm:zero_grad() return (lstm(x)) end, R(64, 32, 128)))
end
for _, n in ipairs {64, 256, 512, 1024, 2048} do
  local a, b = R(n, n), R(n, n)
  case(("matmul %dx%d"):format(n, n), function() return a:matmul(b) end)
end
local p, q = R(64, 32, 64), R(64, 64, 32)
case("matmul of 64 batches 32x64x32", function() return p:matmul(q) end)
local bf = R(512, 512):bfloat16()
case("bfloat16 matmul 512x512", function() return bf:matmul(bf) end)
for _, n in ipairs {1024, 2048} do
  local m, v, col, mb = R(n, n), R(n), R(n, 1), n * n / 2^18
  local function sized(name, fn) case(("%s, %d MB"):format(name, mb), fn) end
  sized("add", function() return m + m end)
  sized("add of a row", function() return m + v end)
  sized("mul by a column", function() return m * col end)
  sized("exp", function() return m:exp() end)
  sized("gelu", function() return m:gelu() end)
  sized("add of a transposed matrix", function() return m + m:t() end)
  sized("copy of a transposed matrix", function() return m:t():contiguous() end)
  sized("sum", function() return m:sum() end)
  sized("sum over dim 1", function() return m:sum(1) end)
  sized("max over dim 2", function() return m:max(2) end)
  sized("cumsum over dim 2", function() return m:cumsum(2) end)
  sized("var over dim 2", function() return m:var(2) end)
  sized("softmax of rows", function() return m:softmax(2) end)
  sized("softmax of rows, both ways", backward(function(x) return x:softmax(2) end, m:clone()))
  sized("layer_norm of rows", function() return tycho.layer_norm(m, {n}, v, v) end)
  sized("layer_norm of rows, both ways",
    backward(function(x, w, b) return tycho.layer_norm(x, {n}, w, b) end, m:clone(), v:clone(), v:clone()))
end
local m, ids = R(1024, 1024), labels(5000, 4096)
case("sort of 1024 rows of 1024", function() return m:sort(2) end)
case("topk 10 of 1024 rows of 1024", function() return m:topk(10) end)
case("cross_entropy of 512 rows of 5000, both ways",
  backward(function(x) return tycho.cross_entropy(x, ids[{ {1, 512} }]) end, R(512, 5000)))
case("embedding of 4096 ids of 5000x64, both ways", backward(function(w) return tycho.embedding(ids, w) end, R(5000, 64)))
case("sum of the squares of 64 rows of 64x16384, both ways", backward(function(x)
  local sum = 0
  for i = 1, #x do sum = sum + x[i]:square():sum() end
  return sum
end, R(64, 16384)))
for _, t in ipairs {256, 1024, 4096} do
  local shape = {t == 256 and 8 or 1, 4, t, 64}
  case(("attention %dx4x%dx64 causal, both ways"):format(shape[1], t),
    backward(function(a, b, c) return tycho.scaled_dot_product_attention(a, b, c, nil, 0, true) end, R(shape),
    R(shape), R(shape)))
end
case("conv2d 8x64x28x28, 64 3x3 kernels, both ways",
  backward(function(x, w) return tycho.conv2d(x, w, nil, 1, 1) end, R(8, 64, 28, 28), R(64, 64, 3, 3)))
case("depthwise conv2d 8x64x28x28, both ways",
  backward(function(x, w) return tycho.conv2d(x, w, nil, 1, 1, 1, 64) end, R(8, 64, 28, 28), R(64, 1, 3, 3)))
case("max_pool2d 8x64x28x28, both ways", backward(function(x) return tycho.max_pool2d(x, 2) end, R(8, 64, 28, 28)))
case("avg_pool2d 3x3, stride 2, 32x64x28x28, both ways", backward(function(x) return tycho.avg_pool2d(x, 3, 2, 1) end, R(32, 64, 28, 28)))
case("batch_norm 64x64x28x28, both ways",
  backward(function(x, w, b) return tycho.batch_norm(x, nil, nil, w, b, {training = true}) end,
  R(64, 64, 28, 28), R(64), R(64)))
case("interpolate 8x16x32x32 to twice the size",
  function() return tycho.interpolate(p:view(8, 16, 32, 32), {size = {64, 64}, mode = "bilinear"}) end)
case("conv3d 2x16x16x32x32, 32 3x3x3 kernels, both ways",
  backward(function(x, w) return tycho.conv3d(x, w, nil, 1, 1) end, R(2, 16, 16, 32, 32), R(32, 16, 3, 3, 3)))
case("reflection padding of 4x32x64x64, both ways",
  backward(function(x) return tycho.nn.functional.pad(x, {1, 1, 1, 1}, "reflect") end, R(4, 32, 64, 64)))
do
  local x, mask = R(1000, 1000), R(1000, 1000):gt(0)
  case("a number put where a mask of 1 M says", function() x[mask] = 0 end)
  case("elements taken where a mask of 1 M says", function() return x[mask] end)
  case("nonzero of 1 M", function() return mask:nonzero() end)
  case("randn of 1 M", function() return tycho.randn(1000000) end)
  case("randperm of 1 M", function() return tycho.randperm(1000000) end)
  case("cdist of 500 rows of 64, both ways", backward(function(a, b) return tycho.cdist(a, b) end, R(500, 64), R(500, 64)))
end
do
  local params = {}
  for i = 1, 10 do
    params[i] = R(1000, 1000):requires_grad_()
    params[i].grad = R(1000, 1000)
  end
  local opt = optim.AdamW(params, {lr = 1e-3})
  case("AdamW on 10 M parameters", function() opt:step() end)
  case("the same, beside PyTorch's fused=True", function() opt:step() end)
end

-- Compiled steps, once beside PyTorch's eager step and once beside torch.compile of the same step.
local function mlp(width, guard)
  local net = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
  local opt = optim.SGD(net:parameters(), {lr = 0.01, momentum = 0.9})
  local step = tycho.compile(function(x, y)
    opt:zero_grad()
    local loss = tycho.cross_entropy(net(x), y)
    loss:backward()
    opt:step()
    return loss:detach()
  end, {guard = guard})
  local x, y = R(128, 784), labels(10, 128)
  return function() step(x, y) end
end
local function net_alone()
  local net = nn.Sequential(nn.Linear(784, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1),
    nn.Linear(128, 128), nn.LayerNorm(128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 10))
  local opt, run = optim.SGD(net:parameters(), {lr = 0.01, momentum = 0.9}), tycho.compile(net)
  local x, y = R(128, 784), labels(10, 128)
  return function()
    opt:zero_grad()
    tycho.cross_entropy(run(x), y):backward()
    opt:step()
  end
end
local function amp_cnn()
  local net, x, y = cnn(), R(128, 1, 28, 28), labels(10, 128)
  local opt = optim.SGD(net:parameters(), {lr = 0.01, momentum = 0.9})
  local step = tycho.compile(function()
    opt:zero_grad()
    tycho.amp.autocast({dtype = "bfloat16", device = "cpu"}, function() return tycho.cross_entropy(net(x), y) end):backward()
    opt:step()
  end)
  return function() step() end
end
local function chain()
  local x, b, w, r = R(4096, 1024), R(1024), tycho.ones(1024), R(4096, 1024)
  local fn = tycho.compile(function() return tycho.layer_norm(tycho.dropout(tycho.gelu(x + b), 0.1) + r, {1024}, w, b) end)
  return function() return tycho.no_grad(fn) end
end
for _, peer in ipairs {"eager", "torch.compile"} do
  for _, width in ipairs {128, 32} do
    for _, guard in ipairs {"full", "inputs"} do
      case(("compiled MLP step, width %d, guard %s, beside %s"):format(width, guard, peer), mlp(width, guard))
    end
  end
  case("MLP with norms whose net alone is compiled, beside " .. peer, net_alone())
  case("compiled CNN step in bfloat16, beside " .. peer, amp_cnn())
  case("compiled gelu-bias-dropout-add-layer_norm, 16 MB, beside " .. peer, chain())
end

-- ask(k): the peer's seconds for case k. It reads a case's number from a line and answers with a line.
local peer_name, ask
do
  local probe = io.popen(options.python .. " -c 'import torch; print(torch.__version__)' 2>/dev/null")
  peer_name = probe:read("*l")
  probe:close()
  if peer_name then
    local fifo = os.tmpname()
    os.remove(fifo)
    os.execute("mkfifo " .. fifo)
    local out = io.popen(("%s %s/peer.py %d %s"):format(options.python, here, options.threads, fifo), "w")
    local back = io.open(fifo)
    ask = function(k) out:write(k, "\n") out:flush() return tonumber(back:read("*l")) end
    ask(0)
    os.remove(fifo)
  end
end
print(("require: %.1f ms"):format(require_ms()))
print(("threads %d, peer: %s"):format(options.threads, peer_name and "PyTorch " .. peer_name or "none found"))
-- spread: the rounds' least and greatest ratio
local function row(name, format, scale, ours, theirs, spread)
  print(("| %-50s | "..format.." | "..(theirs and format or "%s").." | %s | %s |"):format(name, ours * scale,
    theirs and theirs * scale or "", theirs and ("%.2f"):format(ours / theirs) or "", spread or ""))
end
for k, c in ipairs(cases) do
  if not options.only or c[1]:find(options.only, 1, true) then
    local mine, theirs, ratios = {}, {}, {}
    for r = 1, options.rounds do
      mine[r] = time(c[2])
      collectgarbage()
      os.execute("sleep 0.05")             -- idle threads of either side spin for a while
      theirs[r] = ask and ask(k)
      os.execute("sleep 0.05")
      ratios[r] = ask and mine[r] / theirs[r]
    end
    local ours, small = median(mine), median(mine) < 5e-4
    row(c[1], small and "%.3g us" or "%.3g ms", small and 1e6 or 1e3, ours, ask and median(theirs),
      ask and ("%.2f to %.2f"):format(math.min(unpack(ratios)), math.max(unpack(ratios))))
  end
end
for _, name in ipairs {"cnn", "gpt"} do
  local function read(command)
    local pipe = io.popen(command)
    local n = tonumber(pipe:read("*l"))
    pipe:close()
    return n
  end
  if not options.only then
    row("peak memory of 30 training steps: " .. name, "%.0f MB", 1e-6,
      read(("luajit %s/bench.lua --memory %s --threads %d"):format(here, name, options.threads)),
      peer_name and read(("%s %s/peer.py %d --memory %s"):format(options.python, here, options.threads, name)))
  end
end
