-- Timings on a GPU, beside PyTorch's on the same one in the same run, where a python3 with torch and CUDA is found.
--   make bench-gpu [ARGS="--python /path/to/python3 --only TEXT --rounds 3 --small 1"]      --small: tiny shapes, to see that it runs
-- A round's figure is the median of 5 stretches of 20 calls, each stretch between two events; the median of several rounds, which
-- alternate between the two, is shown. "ratio" is Tycho's time over PyTorch's, "of copy" the bytes a second over those of a copy on
-- the device in the same run. Data are fresh random numbers.
local here = arg[0]:match("^(.*)/") or "."
local common = dofile(here .. "/common.lua")
local median, backward = common.median, common.backward
local options = common.options {python = os.getenv("PYTHON") or "python3", rounds = 3, only = "", small = 0}
local tycho = require "tycho"
local ok, why = tycho.cuda.is_available()
if not ok then io.stderr:write("no GPU: ", why, "\n") os.exit(1) end
tycho.set_default_device("cuda")

local small = options.small ~= 0
local function size(n, least) return small and (least or math.max(1, math.floor(n / 1024))) or n end
-- Milliseconds a call takes, of 20 in a row: the host may run ahead of the device. Garbage is collected between the stretches.
local function time(fn)
  local list = {}
  for _ = 1, 3 do fn() end
  for i = 1, 5 do
    local from, to = tycho.cuda.Event {enable_timing = true}, tycho.cuda.Event {enable_timing = true}
    collectgarbage()
    collectgarbage()
    tycho.cuda.synchronize()
    from:record()
    for _ = 1, 20 do fn() end
    to:record()
    to:synchronize()
    list[i] = from:elapsed_time(to) / 20
  end
  return median(list)
end

-- Cases, in the order of gpu_peer.py: name, a function that makes the one to time, the bytes that it must move at least.
local cases = {}
local function case(name, make, bytes) cases[#cases + 1] = {name = name, make = make, bytes = bytes} end

local N = size(64 * 2 ^ 20)                -- elements of 256 MB of float32
case("copy 256 MB", function() local x, y = tycho.randn(N), tycho.empty(N) return function() y:copy_(x) end end, 8 * N)
case("add 256 MB", function() local x, y = tycho.randn(N), tycho.randn(N) return function() return x + y end end, 12 * N)
case("gelu 256 MB", function() local x = tycho.randn(N) return function() return tycho.gelu(x) end end, 8 * N)
case("add 256 MB float16", function()
  local x, y = tycho.randn(2 * N):half(), tycho.randn(2 * N):half()
  return function() return x + y end
end, 12 * N)
case("sum of 256 MB", function() local x = tycho.randn(N) return function() return x:sum() end end, 4 * N)
case("sum of rows 8192x8192", function()
  local x = tycho.randn(size(8192, 8), size(8192, 64))
  return function() return x:sum(2) end
end, 4 * N)
case("sum of columns 8192x8192", function()
  local x = tycho.randn(size(8192, 8), size(8192, 64))
  return function() return x:sum(1) end
end, 4 * N)
case("softmax 8192x8192 float16", function()
  local x = tycho.randn(size(8192, 8), size(8192, 64)):half()
  return function() return tycho.softmax(x, 2) end
end, 4 * N)
local rows, width = size(32768, 16), size(1024, 32)
local function norm() return tycho.randn(rows, width):half(), tycho.randn(width):half(), tycho.randn(width):half() end
case("layer_norm 32768x1024 float16", function()
  local x, w, b = norm()
  return function() return tycho.layer_norm(x, {width}, w, b) end
end, 4 * rows * width)
case("layer_norm forward and backward", function()
  local x, w, b = norm()
  return backward(function(p, q, r) return tycho.layer_norm(p, {width}, q, r) end, x, w, b)
end, 12 * rows * width)
local many = size(2 ^ 20, 64)                                                -- short rows
case("sum of 1048576 rows of 16", function() local x = tycho.randn(many, 16) return function() return x:sum(2) end end, 68 * many)
case("softmax of 1048576 rows of 32 float16", function()
  local x = tycho.randn(many, 32):half()
  return function() return tycho.softmax(x, 2) end
end, 128 * many)
case("layer_norm of 262144 rows of 96 float16, both", function()
  local function make(...) return tycho.randn(...):half() end
  return backward(function(p, q, r) return tycho.layer_norm(p, {96}, q, r) end, make(size(2 ^ 18, 16), 96), make(96), make(96))
end, 12 * size(2 ^ 18, 16) * 96)
case("cross_entropy of 1048576 rows of 21, both", function()
  local x, y = tycho.randn(many, 21), tycho.randint(1, 21, {many})
  return backward(function(p) return tycho.cross_entropy(p, y) end, x)
end, 12 * many * 21)
case("softmax along the channels of 8x21x512x512", function()
  local x = tycho.randn(size(8, 1), 21, size(512, 8), size(512, 8))
  return function() return tycho.softmax(x, 2) end
end, 8 * size(8, 1) * 21 * size(512, 8) ^ 2)
local classes = size(50304, 100)
case("cross_entropy 8192x50304 float16, both", function()
  local x, y = tycho.randn(size(8192, 8), classes):half(), tycho.randint(1, classes, {size(8192, 8)})
  return backward(function(p) return tycho.cross_entropy(p, y) end, x)
end, 6 * size(8192, 8) * classes)
case("embedding backward 32768 of 50304x768", function()
  local ids, w = tycho.randint(1, classes, {size(32768, 16)}), tycho.randn(classes, size(768, 8))
  return backward(function(p) return tycho.embedding(ids, p) end, w)
end)
local M = size(4096, 32)
case("matmul 4096 float16", function()
  local a, b = tycho.randn(M, M):half(), tycho.randn(M, M):half()
  return function() return a:matmul(b) end
end)
case("matmul 4096 float32", function() local a, b = tycho.randn(M, M), tycho.randn(M, M) return function() return a:matmul(b) end end)
case("linear 8192x1024 by 4096 float16, both", function()
  return backward(tycho.linear, tycho.randn(size(8192, 8), width):half(), tycho.randn(M, width):half(), tycho.randn(M):half())
end)
for _, s in ipairs {{64, 56, 64, 1, 1}, {64, 56, 64, 3, 1}, {256, 56, 128, 1, 2}, {128, 28, 128, 3, 1},
    {256, 14, 256, 3, 1}, {512, 7, 512, 3, 1}, {1024, 14, 2048, 1, 2}} do
  local c, side, o, k, stride = unpack(s)
  local name = ("conv %dx%dx%d to %d, %dx%d/%d, 64 images, float16"):format(c, side, side, o, k, k, stride)
  local function make()
    local function last(x) return tycho.cast(x, "float16", {memory_format = "channels_last"}) end
    return last(tycho.randn(small and 1 or 64, size(c, 4), size(side, 7), size(side, 7))), last(tycho.randn(size(o, 4), size(c, 4), k, k))
  end
  local opt = {stride = stride, padding = (k - 1) / 2}
  case(name, function() local x, w = make() return function() return tycho.conv2d(x, w, nil, opt) end end)
  case(name .. ", both", function() return backward(function(p, q) return tycho.conv2d(p, q, nil, opt) end, make()) end)
end
local L = size(1024, 70)
local function attention(name, dtype, give)
  local function heads()
    local list = {}
    for i = 1, 3 do list[i] = tycho.randn(small and 1 or 16, small and 2 or 16, L, 64):to(dtype) end
    return unpack(list)
  end
  local function run(q, k, v) return tycho.scaled_dot_product_attention(q, k, v, give()) end
  case("attention 16x16x1024x64 " .. name, function()
    local q, k, v = heads()
    return function() return run(q, k, v) end
  end)
  case(("attention %s, both"):format(name), function() return backward(run, heads()) end)
end
attention("causal float16", "float16", function() return nil, {is_causal = true} end)
attention("dropout float16", "float16", function() return nil, 0.1 end)
local sees = tycho.rand(small and 1 or 16, 1, 1, L):gt(0.2)                   -- padding
attention("mask float16", "float16", function() return sees end)
attention("float32", "float32", function() end)
case("attention of one query, 8x32x4096x128 float16", function()
  local function heads(l) return tycho.randn(small and 1 or 8, small and 2 or 32, l, 128):to("float16") end
  local q, k, v = heads(1), heads(size(4096, 70)), heads(size(4096, 70))
  return function() return tycho.scaled_dot_product_attention(q, k, v) end
end)
case("attention of one query, 32 heads of 8, 8x4096x128 float16", function()
  local function heads(h, l) return tycho.randn(small and 1 or 8, h, l, 128):to("float16") end
  local q, k, v = heads(32, 1), heads(8, size(4096, 70)), heads(8, size(4096, 70))
  return function() return tycho.scaled_dot_product_attention(q, k, v, {enable_gqa = true}) end
end)
case("group_norm(32) 8x320x64x64 float16, both", function()
  local function make(...) return tycho.randn(...):to("float16") end
  local x, w, b = make(size(8, 1), 320, size(64, 6), size(64, 6)), make(320), make(320)
  return backward(function(p, q, r) return tycho.group_norm(p, 32, q, r) end, x, w, b)
end)
for _, c in ipairs {{64, 56}, {128, 28}, {512, 7}} do
  local channels, side = size(c[1], 8), size(c[2], 6)
  case(("batch_norm 64x%dx%dx%d float16, channels-last, both"):format(c[1], c[2], c[2]), function()
    local x = tycho.cast(tycho.randn(small and 2 or 64, channels, side, side), "float16", {memory_format = "channels_last"})
    return backward(function(p, w, b) return tycho.batch_norm(p, nil, nil, w, b, {training = true}) end, x, tycho.ones(channels),
      tycho.zeros(channels))
  end)
end
case("sum of columns 131072x64", function()
  local x = tycho.randn(size(131072, 64), 64)
  return function() return x:sum(1) end
end, 4 * size(131072, 64) * 64)
case("AdamW, 124 M parameters", function()
  local list = {}
  local function add(...) list[#list + 1] = tycho.randn(...):requires_grad_() end
  add(classes, size(768, 8))
  for _ = 1, 12 do
    add(size(2304, 24), size(768, 8))
    add(size(768, 8), size(768, 8))
    add(size(3072, 32), size(768, 8))
    add(size(768, 8), size(3072, 32))
    add(size(768, 8))
    add(size(768, 8))
  end
  for _, p in ipairs(list) do p.grad = tycho.randn(p.shape) end
  local opt = tycho.optim.AdamW(list, {lr = 1e-4})
  return function() opt:step() end
end, 28 * 124e6)
case("pinned to device, 256 MB", function()
  local x = tycho.randn(N, {device = "cpu"}):pin_memory()
  return function() return x:to("cuda", {non_blocking = true}) end
end)
case("device to pinned, 256 MB", function()
  local x, y = tycho.randn(N), tycho.empty(N, {device = "cpu"}):pin_memory()
  return function() y:copy_(x) end
end)
case("1000 small adds", function() local x = tycho.randn(100) return function() for _ = 1, 1000 do x:add_(1) end end end)

tycho.backends.cudnn.benchmark = true
local mine, theirs = {}, {}
for _ = 1, options.rounds do
  for _, c in ipairs(cases) do
    if c.name:find(options.only, 1, true) then
      local done, ms = pcall(function() return time(c.make()) end)
      if done then
        mine[c.name] = mine[c.name] or {}
        table.insert(mine[c.name], ms)
      else io.stderr:write(c.name, ": ", tostring(ms), "\n") end
      collectgarbage() collectgarbage()
      tycho.cuda.empty_cache()
    end
  end
  if not small then
    local p = io.popen(("%s %s/gpu_peer.py '%s' 2>&1"):format(options.python, here, options.only))
    for line in p:lines() do
      local name, ms = line:match("^(.-)\t([%d.e+-]+)$")
      if name then
        theirs[name] = theirs[name] or {}
        table.insert(theirs[name], tonumber(ms))
      elseif not line:find("Warning") then io.stderr:write("peer: ", line, "\n") end
    end
    p:close()
  end
end

print(("# %s, %s, Tycho %s"):format(os.date("%Y-%m-%d"), tycho.cuda.get_device_name(), tycho.version))
print("| case | Tycho ms | PyTorch ms | ratio | GB/s | of copy |")
print("|---|---|---|---|---|---|")
local copy
for _, c in ipairs(cases) do
  if mine[c.name] then
    local a, b = median(mine[c.name]), theirs[c.name] and median(theirs[c.name])
    local speed = c.bytes and c.bytes / a / 1e6
    copy = copy or (c.name == "copy 256 MB" and speed)
    print(("| %s | %.4f | %s | %s | %s | %s |"):format(c.name, a, b and ("%.4f"):format(b) or "-",
      b and ("%.2f"):format(a / b) or "-", speed and ("%.0f"):format(speed) or "-",
      speed and copy and ("%.2f"):format(speed / copy) or "-"))
  end
end
