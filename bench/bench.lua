-- Timings beside PyTorch's, in the same run and with the same threads, where a python3 with torch is found.
--   make bench [ARGS="--threads 2 --python /path/to/python3"]
-- A figure is the median of several rounds that alternate between the two; "ratio" is Tycho's time over PyTorch's.
local options = {threads = 2, python = os.getenv("PYTHON") or "python3", rounds = 5}
for i = 1, #(arg or {}), 2 do
  local k = arg[i]:match("^%-%-(.+)$")
  options[k] = tonumber(arg[i + 1]) or arg[i + 1]
end
local here = arg[0]:match("^(.*)/") or "."

local function median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

-- require, in a fresh process
local function require_ms()
  local list = {}
  for i = 1, 9 do
    local p = io.popen([[luajit -e "local ffi = require 'ffi' ffi.cdef'typedef struct { long s, n; } ts; int clock_gettime(int, ts *);' local t = ffi.new'ts' local function now() ffi.C.clock_gettime(1, t) return tonumber(t.s) * 1e3 + tonumber(t.n) / 1e6 end local a = now() require 'tycho' io.write(now() - a)"]])
    list[i] = tonumber(p:read("*a"))
    p:close()
  end
  return median(list)
end
print(("require: %.1f ms"):format(require_ms()))

local tycho = require "tycho"
local core = require "tycho.core"
local nn, optim = tycho.nn, tycho.optim
tycho.set_num_threads(options.threads)
tycho.manual_seed(1)

local function time(fn, n)
  for _ = 1, math.max(1, n / 10) do fn() end
  local t = core.now()
  for _ = 1, n do fn() end
  return (core.now() - t) / n
end

-- Each case: what it is, seconds to its unit, how often a round runs it, and what it runs. peer.py has the same list in the same order.
local cases = {}
local function case(name, unit, n, fn) cases[#cases + 1] = {name .. (unit == 1e3 and " (ms)" or " (us)"), unit, function() return time(fn, n) end} end
local function training(net, x, y)
  local opt = optim.AdamW(net:parameters(), {lr = 1e-3})
  return function()
    local loss = tycho.cross_entropy(net(x), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
end
local function backward(fn, ...)           -- forward and backward through one op
  local inputs = {...}
  for _, x in ipairs(inputs) do if x:is_floating_point() then x:requires_grad_() end end
  local g
  return function()
    local y = fn(unpack(inputs))
    g = g or tycho.ones_like(y)
    for _, x in ipairs(inputs) do x.grad = nil end
    y:backward(g)
  end
end

local one, two = tycho.ones(1), tycho.ones(1)
case("eager add of one element", 1e6, 200000, function() return one + two end)
case("training step of the demo's CNN, batch 128", 1e3, 10, training(nn.Sequential(nn.Conv2d(1, 32, 3, {padding = 1, bias = false}), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
  nn.Conv2d(32, 64, 3, {padding = 1, bias = false}), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(),
  nn.Dropout(0.3), nn.Linear(128, 10)), tycho.randn(128, 1, 28, 28), tycho.randint(1, 10, {128})))
case("training step of a transformer layer, 8x64x128", 1e3, 10, training(nn.Sequential(nn.TransformerEncoderLayer(128, 4, {dim_feedforward = 512, dropout = 0, activation = "gelu"}), nn.Flatten(1, 2), nn.Linear(128, 64)),
  tycho.randn(8, 64, 128), tycho.randint(1, 64, {512})))
case("training step of an MLP 784-256-10, batch 64", 1e3, 50, training(nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), tycho.randn(64, 784), tycho.randint(1, 10, {64})))
for _, n in ipairs {64, 512} do
  local a, b = tycho.randn(n, n), tycho.randn(n, n)
  case(("matmul %dx%d"):format(n, n), 1e6, n > 100 and 50 or 2000, function() return a:matmul(b) end)
end
local p, q = tycho.randn(64, 32, 64), tycho.randn(64, 64, 32)
case("matmul of 64 batches 32x64x32", 1e6, 200, function() return p:matmul(q) end)
local m, v = tycho.randn(1024, 1024), tycho.randn(1024)
local col, bf, ids = tycho.randn(1024, 1), tycho.randn(512, 512):bfloat16(), tycho.randint(1, 5000, {4096})
case("exp of 2^20 elements", 1e6, 50, function() return m:exp() end)
case("gelu of 2^20 elements", 1e6, 50, function() return m:gelu() end)
case("add of a row to 2^20 elements", 1e6, 50, function() return m + v end)
case("mul by a column of 2^20 elements", 1e6, 50, function() return m * col end)
case("add of a transposed matrix, 2^20 elements", 1e6, 50, function() return m + m:t() end)
case("copy of a transposed matrix, 2^20 elements", 1e6, 50, function() return m:t():contiguous() end)
case("sum of 2^20 elements", 1e6, 100, function() return m:sum() end)
case("sum of 2^20 elements over dim 1", 1e6, 100, function() return m:sum(1) end)
case("max of 2^20 elements over dim 2", 1e6, 50, function() return m:max(2) end)
case("cumsum of 2^20 elements over dim 2", 1e6, 50, function() return m:cumsum(2) end)
case("var of 2^20 elements over dim 2", 1e6, 50, function() return m:var(2) end)
case("sort of 1024 rows of 1024", 1e3, 5, function() return m:sort(2) end)
case("topk 10 of 1024 rows of 1024", 1e6, 20, function() return m:topk(10) end)
case("softmax of 1024 rows of 1024", 1e6, 50, function() return m:softmax(2) end)
case("layer_norm of 1024 rows of 1024, both ways", 1e6, 20, backward(function(x, w, b) return tycho.layer_norm(x, {1024}, w, b) end, m:clone(), v:clone(), v:clone()))
case("cross_entropy of 512 rows of 5000, both ways", 1e6, 10, backward(function(x) return tycho.cross_entropy(x, ids[{ {1, 512} }]) end, tycho.randn(512, 5000)))
case("embedding of 4096 ids of 5000x64, both ways", 1e6, 50, backward(function(w) return tycho.embedding(ids, w) end, tycho.randn(5000, 64)))
case("attention 8x4x128x32 causal, both ways", 1e6, 10, backward(function(a, b, c) return tycho.scaled_dot_product_attention(a, b, c, nil, 0, true) end, tycho.randn(8, 4, 128, 32), tycho.randn(8, 4, 128, 32), tycho.randn(8, 4, 128, 32)))
case("conv2d 8x64x28x28, 64 3x3 kernels, both ways", 1e3, 5, backward(function(x, w) return tycho.conv2d(x, w, nil, 1, 1) end, tycho.randn(8, 64, 28, 28), tycho.randn(64, 64, 3, 3)))
case("depthwise conv2d 8x64x28x28, both ways", 1e3, 5, backward(function(x, w) return tycho.conv2d(x, w, nil, 1, 1, 1, 64) end, tycho.randn(8, 64, 28, 28), tycho.randn(64, 1, 3, 3)))
case("max_pool2d 8x64x28x28, both ways", 1e6, 10, backward(function(x) return tycho.max_pool2d(x, 2) end, tycho.randn(8, 64, 28, 28)))
case("interpolate 8x16x32x32 to twice the size", 1e6, 10, function() return tycho.interpolate(p:view(8, 16, 32, 32), {size = {64, 64}, mode = "bilinear"}) end)
case("bfloat16 matmul 512x512", 1e6, 20, function() return bf:matmul(bf) end)

-- The peer answers each line with its time for that case.
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
print(("threads %d, peer: %s"):format(options.threads, peer_name and "PyTorch " .. peer_name or "none found"))
for k, c in ipairs(cases) do
  local mine, theirs = {}, {}
  for r = 1, options.rounds do
    mine[r] = c[3]() * c[2]
    theirs[r] = ask and ask(k) * c[2] or nil
    collectgarbage()
  end
  local ours = median(mine)
  print(ask and ("%-52s %10.3f  PyTorch %10.3f  ratio %.2f"):format(c[1], ours, median(theirs), ours / median(theirs)) or ("%-52s %10.3f"):format(c[1], ours))
end
