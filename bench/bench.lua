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

local cases = {}
do
  local a, b = tycho.ones(1), tycho.ones(1)
  cases[1] = {"eager add of one element (us)", 1e6, function() return time(function() return a + b end, 200000) end}
end
do
  local net = nn.Sequential(nn.Conv2d(1, 32, 3, {padding = 1, bias = false}), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, {padding = 1, bias = false}), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(),
    nn.Dropout(0.3), nn.Linear(128, 10))
  local opt = optim.AdamW(net:parameters(), {lr = 1e-3})
  local x, y = tycho.randn(128, 1, 28, 28), tycho.randint(1, 10, {128})
  cases[2] = {"training step of the demo's CNN, batch 128 (ms)", 1e3, function()
    return time(function()
      local loss = tycho.cross_entropy(net(x), y)
      opt:zero_grad()
      loss:backward()
      opt:step()
    end, 20)
  end}
end
do
  local a, b = tycho.randn(512, 512), tycho.randn(512, 512)
  cases[3] = {"matmul 512x512 (us)", 1e6, function() return time(function() return a:matmul(b) end, 100) end}
end
do
  local x = tycho.randn(1024, 1024)
  cases[4] = {"exp of 2^20 elements (us)", 1e6, function() return time(function() return x:exp() end, 100) end}
  cases[5] = {"sum of 2^20 elements over dim 1 (us)", 1e6, function() return time(function() return x:sum(1) end, 200) end}
  cases[6] = {"softmax of 1024 rows of 1024 (us)", 1e6, function() return time(function() return x:softmax(2) end, 100) end}
end

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
  local m = median(mine)
  print(ask and ("%-50s %10.3f  PyTorch %10.3f  ratio %.2f"):format(c[1], m, median(theirs), m / median(theirs)) or ("%-50s %10.3f"):format(c[1], m))
end
