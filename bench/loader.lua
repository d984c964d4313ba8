-- The loader alone beside PyTorch's: images/s over CIFAR-10's format, with random crop, flip and normalisation.
--   luajit bench/loader.lua [--data DIR] [--python PYTHON] [--workers 2] [--rounds 3]       PYTHON: one with torch and torchvision
-- Without --data, random pictures in the same format. A figure is the median of rounds that alternate between the two; a
-- round's clock starts when its first batch has come.
local here = arg[0]:match "^(.*)/" or "."
local common = dofile(here .. "/common.lua")
local options = common.options {data = false, python = os.getenv "PYTHON" or "python3", workers = 2, rounds = 3}
local tycho = require "tycho"
local core = require "tycho.core"
local data, T = tycho.data, tycho.data.transforms

local dir, made = options.data, false
if not dir then
  dir, made = os.tmpname(), true
  os.remove(dir)
  os.execute("mkdir " .. dir)
  for i = 1, 5 do
    local f = assert(io.open(dir .. "/data_batch_" .. i .. ".bin", "wb"))
    local bytes = tycho.randint(0, 255, {10000, 3073}):to "uint8"
    bytes[{ {}, 1 }] = tycho.randint(0, 9, {10000}):to "uint8"
    f:write(require("ffi").string(bytes:data(), 10000 * 3073))
    f:close()
  end
end

local function ours(workers)
  local set = data.datasets.CIFAR10 {root = dir,
    transform = T.Compose {T.RandomCrop(32, {padding = 4}), T.RandomHorizontalFlip(),
      T.Normalize({0.49, 0.48, 0.45}, {0.25, 0.24, 0.26})}}
  local loader = data.DataLoader(set, {batch_size = 128, shuffle = true, seed = 1, num_workers = workers})
  local n, start = 0, nil
  for x in loader:iter() do
    if start then n = n + #x else start = core.now() end
  end
  return n / (core.now() - start)
end
local function theirs(workers)
  local p = io.popen(("%s %s/loader_peer.py %s %d 2>/dev/null"):format(options.python, here, dir, workers))
  local v = tonumber(p:read "*l" or "")
  p:close()
  return v
end

for _, workers in ipairs {0, options.workers} do
  local a, b = {}, {}
  for k = 1, options.rounds do a[k] = ours(workers); b[k] = theirs(workers) end
  local mine, peer = common.median(a), #b > 0 and common.median(b)
  print(("%d workers: %8.0f images/s%s"):format(workers, mine, peer and (", PyTorch %8.0f: %.1f times"):format(peer, mine / peer) or ""))
end
if made then os.execute("rm -r " .. dir) end
