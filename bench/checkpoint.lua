-- A checkpoint of 1 GB, written and read, beside torch.save, torch.load and the safetensors package.
--   luajit bench/checkpoint.lua [--dir DIR] [--python PYTHON] [--mb 1024] [--rounds 3]       PYTHON: one with torch and safetensors
-- Figures are seconds and GB/s, medians of rounds that alternate between the libraries. The others' files are in the page cache when
-- they are read; Tycho's is from the second read on. dd shows the speed of the cache itself. Tycho's times to write include fsync,
-- as do those of the others that are called durable.
local here = arg[0]:match "^(.*)/" or "."
local common = dofile(here .. "/common.lua")
local options = common.options {dir = false, python = os.getenv "PYTHON" or "python3", mb = 1024, rounds = 3}
local tycho = require "tycho"
local core = require "tycho.core"

local dir = options.dir
if not dir then
  dir = os.tmpname()
  os.remove(dir)
end
os.execute("mkdir -p " .. dir)

local state, bytes = {}, 0
for i = 1, options.mb / 16 do
  state["layers." .. i .. ".weight"], state["layers." .. i .. ".bias"] = tycho.randn(2048, 2048 - 2), tycho.randn(2048 * 2)
  bytes = bytes + 4 * 2048 * 2048
end

local function seconds(fn)
  local start = core.now()
  fn()
  return core.now() - start
end

local figures, order = {}, {}
local function note(name, s)
  if not figures[name] then
    figures[name] = {}
    order[#order + 1] = name
  end
  table.insert(figures[name], s)
end

local path = dir .. "/tycho.safetensors"
local function ours()
  collectgarbage()
  note("tycho.save (durable)", seconds(function() tycho.save(path, state) end))
  note("tycho.load, the first time", seconds(function() tycho.load(path) end))
  collectgarbage()
  note("tycho.load, from the page cache", seconds(function() tycho.load(path) end))
  collectgarbage()
  local m = tycho.checkpoint.Manager {dir = dir .. "/manager", keep = 1}
  note("Manager:save, until it returns", seconds(function() m:save(1, {model = state}) end))
  note("Manager:save, until durable",
    figures["Manager:save, until it returns"][#figures["Manager:save, until it returns"]] + seconds(function() m:wait() end))
  note("Manager:restore_latest (verified)", seconds(function() m:restore_latest {} end))
  note("a copy in memory", seconds(function() for _, t in pairs(state) do t:clone() end end))
  note("dd of the file, bs=1M", seconds(function() os.execute("dd if=" .. path .. " of=/dev/null bs=1M 2>/dev/null") end))
  collectgarbage()
end
local function theirs()
  local p = io.popen(("%s %s/checkpoint_peer.py %s %d 2>/dev/null"):format(options.python, here, dir, options.mb))
  for line in p:lines() do
    local name, s = line:match "^(.+): ([%d.]+)$"
    note(name, tonumber(s))
  end
  p:close()
end

for _ = 1, options.rounds do
  ours()
  theirs()
end
for _, name in ipairs(order) do
  local s = common.median(figures[name])
  print(("%-40s %7.3f s %7.2f GB/s"):format(name, s, bytes / s / 1e9))
end
os.execute("rm -rf " .. dir)
