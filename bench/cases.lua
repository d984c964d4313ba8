-- What bench.lua times of Tycho: a list of cases, each a name and a function that makes what is timed. peer.py has the same list in the
-- same order. Run with a case's number it answers each line of its input with the seconds that a call takes:
--   luajit bench/cases.lua THREADS PIPE NUMBER           (NUMBER cnn or gpt: the bytes by which 30 steps of that model grow the process)
local common = dofile(((arg[0] or ""):match("^(.*)/") or "bench") .. "/common.lua")
local tycho = require "tycho"
local core = require "tycho.core"
local nn, optim = tycho.nn, tycho.optim
local R = tycho.randn
local function labels(n, ...) return tycho.randint(1, n, {...}) end

local cases = {}
local function case(name, make) cases[#cases + 1] = {name, make} end
local function drawn(shapes)
  local out = {}
  for i, shape in ipairs(shapes) do out[i] = R(shape) end
  return out
end
-- Makes fn of random tensors of these shapes; both: fn forward and backward.
local function on(fn, ...)
  local shapes = {...}
  return function()
    local inputs = drawn(shapes)
    return function() return fn(unpack(inputs)) end
  end
end
local function both(fn, ...)
  local shapes = {...}
  return function() return common.backward(fn, unpack(drawn(shapes))) end
end

local function training(net, x, y)
  local opt = optim.AdamW(net:parameters(), {lr = 1e-3})
  return function()
    local loss = tycho.cross_entropy(net(x):view(#y, -1), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
end
-- The models whose training steps are timed, and whose peaks of memory are compared.
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

case("add of one element", on(function(a, b) return a + b end, {1}, {1}))
case("add of one element that requires grad", function()
  local a, b = R(1):requires_grad_(), R(1)
  return function() return a + b end
end)
case("training step of an MLP 784-128-10, batch 128", function()
  return training(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), R(128, 784), labels(10, 128))
end)
case("training step of the demo's CNN, batch 128", cnn_step)
case("the same in bfloat16", function() return training(cnn():to("bfloat16"), R(128, 1, 28, 28):bfloat16(), labels(10, 128)) end)
case("training step of char_gpt, 4 layers of 128, 12x64", gpt_step)
case("training step of ResNet-18, 32x3x224x224", function()
  return training(require "examples.resnet18" {classes = 1000}, R(32, 3, 224, 224), labels(1000, 32))
end)
case("LSTM, 2 layers of 128, 64x32x128, both ways", function()
  local lstm = nn.LSTM(128, 128, 2)
  return common.backward(function(x) lstm:zero_grad() return (lstm(x)) end, R(64, 32, 128))
end)
local function product(a, b) return a:matmul(b) end
for _, n in ipairs {64, 256, 512, 1024, 2048} do case(("matmul %dx%d"):format(n, n), on(product, {n, n}, {n, n})) end
case("matmul of 64 batches 32x64x32", on(product, {64, 32, 64}, {64, 64, 32}))
case("bfloat16 matmul 512x512", function()
  local x = R(512, 512):bfloat16()
  return function() return x:matmul(x) end
end)
for _, n in ipairs {1024, 2048} do
  local function sized(name, make) case(("%s, %d MB"):format(name, n * n / 2^18), make) end
  local square, row, column = {n, n}, {n}, {n, 1}
  sized("add", on(function(m) return m + m end, square))
  sized("add of a row", on(function(m, v) return m + v end, square, row))
  sized("mul by a column", on(function(m, v) return m * v end, square, column))
  sized("exp", on(function(m) return m:exp() end, square))
  sized("gelu", on(function(m) return m:gelu() end, square))
  sized("add of a transposed matrix", on(function(m) return m + m:t() end, square))
  sized("copy of a transposed matrix", on(function(m) return m:t():contiguous() end, square))
  sized("sum", on(function(m) return m:sum() end, square))
  sized("sum over dim 1", on(function(m) return m:sum(1) end, square))
  sized("max over dim 2", on(function(m) return m:max(2) end, square))
  sized("cumsum over dim 2", on(function(m) return m:cumsum(2) end, square))
  sized("var over dim 2", on(function(m) return m:var(2) end, square))
  sized("softmax of rows", on(function(m) return m:softmax(2) end, square))
  sized("softmax of rows, both ways", both(function(m) return m:softmax(2) end, square))
  local function norm(m, w, b) return tycho.layer_norm(m, row, w, b) end
  sized("layer_norm of rows", on(norm, square, row, row))
  sized("layer_norm of rows, both ways", both(norm, square, row, row))
end
case("sort of 1024 rows of 1024", on(function(m) return m:sort(2) end, {1024, 1024}))
case("topk 10 of 1024 rows of 1024", on(function(m) return m:topk(10) end, {1024, 1024}))
case("cross_entropy of 512 rows of 5000, both ways", function()
  local y = labels(5000, 512)
  return common.backward(function(x) return tycho.cross_entropy(x, y) end, R(512, 5000))
end)
case("embedding of 4096 ids of 5000x64, both ways", function()
  local ids = labels(5000, 4096)
  return common.backward(function(w) return tycho.embedding(ids, w) end, R(5000, 64))
end)
case("sum of the squares of 64 rows of 64x16384, both ways", both(function(x)
  local sum = 0
  for i = 1, #x do sum = sum + x[i]:square():sum() end
  return sum
end, {64, 16384}))
for _, t in ipairs {256, 1024, 4096} do
  local shape = {t == 256 and 8 or 1, 4, t, 64}
  case(("attention %dx4x%dx64 causal, both ways"):format(shape[1], t),
    both(function(a, b, c) return tycho.scaled_dot_product_attention(a, b, c, nil, 0, true) end, shape, shape, shape))
end
case("conv2d 8x64x28x28, 64 3x3 kernels, both ways",
  both(function(x, w) return tycho.conv2d(x, w, nil, 1, 1) end, {8, 64, 28, 28}, {64, 64, 3, 3}))
case("depthwise conv2d 8x64x28x28, both ways",
  both(function(x, w) return tycho.conv2d(x, w, nil, 1, 1, 1, 64) end, {8, 64, 28, 28}, {64, 1, 3, 3}))
case("max_pool2d 8x64x28x28, both ways", both(function(x) return tycho.max_pool2d(x, 2) end, {8, 64, 28, 28}))
case("avg_pool2d 3x3, stride 2, 32x64x28x28, both ways", both(function(x) return tycho.avg_pool2d(x, 3, 2, 1) end, {32, 64, 28, 28}))
case("batch_norm 64x64x28x28, both ways",
  both(function(x, w, b) return tycho.batch_norm(x, nil, nil, w, b, {training = true}) end, {64, 64, 28, 28}, {64}, {64}))
case("interpolate 8x16x32x32 to twice the size",
  on(function(x) return tycho.interpolate(x, {size = {64, 64}, mode = "bilinear"}) end, {8, 16, 32, 32}))
case("conv3d 2x16x16x32x32, 32 3x3x3 kernels, both ways",
  both(function(x, w) return tycho.conv3d(x, w, nil, 1, 1) end, {2, 16, 16, 32, 32}, {32, 16, 3, 3, 3}))
case("reflection padding of 4x32x64x64, both ways",
  both(function(x) return tycho.nn.functional.pad(x, {1, 1, 1, 1}, "reflect") end, {4, 32, 64, 64}))
-- Makes fn of 1 M random numbers and where others are above 0.
local function masked(fn)
  return function()
    local x, mask = R(1000, 1000), R(1000, 1000):gt(0)
    return function() return fn(x, mask) end
  end
end
case("a number put where a mask of 1 M says", masked(function(x, mask) x[mask] = 0 end))
case("elements taken where a mask of 1 M says", masked(function(x, mask) return x[mask] end))
case("nonzero of 1 M", masked(function(_, mask) return mask:nonzero() end))
case("randn of 1 M", on(function() return R(1000000) end))
case("randperm of 1 M", on(function() return tycho.randperm(1000000) end))
case("cdist of 500 rows of 64, both ways", both(function(a, b) return tycho.cdist(a, b) end, {500, 64}, {500, 64}))
local function adamw()
  local params = {}
  for i = 1, 10 do
    params[i] = R(1000, 1000):requires_grad_()
    params[i].grad = R(1000, 1000)
  end
  local opt = optim.AdamW(params, {lr = 1e-3})
  return function() opt:step() end
end
case("AdamW on 10 M parameters", adamw)
case("the same, beside PyTorch's fused=True", adamw)

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
      case(("compiled MLP step, width %d, guard %s, beside %s"):format(width, guard, peer), function() return mlp(width, guard) end)
    end
  end
  case("MLP with norms whose net alone is compiled, beside " .. peer, net_alone)
  case("compiled CNN step in bfloat16, beside " .. peer, amp_cnn)
  case("compiled gelu-bias-dropout-add-layer_norm, 16 MB, beside " .. peer, chain)
end

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
local function grown_by(step)
  local function kilobytes(what) return tonumber(io.open("/proc/self/status"):read("*a"):match(what .. ":%s*(%d+)")) end
  local forget = io.open("/proc/self/clear_refs", "w")       -- resets the peak
  forget:write("5")
  forget:close()
  local before, fn = kilobytes "VmRSS", step()
  for _ = 1, 30 do fn() end
  return (kilobytes "VmHWM" - before) * 1024
end

if (arg[0] or ""):find("cases%.lua$") then
  local threads, pipe, which = tonumber(arg[1]), io.open(arg[2], "w"), arg[3]
  tycho.set_num_threads(threads)
  tycho.manual_seed(1)
  local steps = {cnn = cnn_step, gpt = gpt_step}
  local fn = not steps[which] and cases[tonumber(which)][2]()
  local began = core.now()
  while fn and core.now() - began < 1 do fn() end            -- memory is touched for the first time
  for _ in io.lines() do
    pipe:write(("%.12g\n"):format(fn and time(fn) or grown_by(steps[which])))
    pipe:flush()
    collectgarbage()
  end
end
return cases
