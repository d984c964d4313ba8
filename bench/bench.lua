-- Timings beside PyTorch's, in the same run and with the same threads, where a python3 with torch is found.
--   make bench [ARGS="--threads 2 --python /path/to/python3 --only TEXT"]         --only: cases whose names hold the text
-- Each case (cases.lua, peer.py) has a process of its own on either side, which other cases' tensors and garbage don't disturb. A figure is
-- the median of several rounds that alternate between the two; "ratio" is Tycho's time over PyTorch's. A peak of memory is what a process
-- grew by at most, after the library was loaded.
local here = arg[0]:match("^(.*)/") or "."
local common = dofile(here .. "/common.lua")
local median = common.median
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

-- Starts a program that answers each line of its input for a case; gives a function that asks it, and one that ends it.
local function worker(program, which, name)
  local fifo = os.tmpname()
  os.remove(fifo)
  os.execute("mkfifo " .. fifo)
  local to = io.popen(("%s %d %s %s"):format(program, options.threads, fifo, which), "w")
  local from = io.open(fifo)
  os.remove(fifo)
  return function()
    to:write("\n")
    to:flush()
    return tonumber((assert(from:read("*l"), name .. ": no answer from " .. program)))
  end, function()
    to:close()
    from:close()
  end
end
local mine = ("luajit %s/cases.lua"):format(here)
local peer_name, theirs
do
  local probe = io.popen(options.python .. " -c 'import torch; print(torch.__version__)' 2>/dev/null")
  peer_name = probe:read("*l")
  probe:close()
  if peer_name then theirs = ("%s %s/peer.py"):format(options.python, here) end
end

print(("require: %.1f ms"):format(require_ms()))
print(("threads %d, peer: %s"):format(options.threads, peer_name and "PyTorch " .. peer_name or "none found"))
-- spread: the rounds' least and greatest ratio
local function row(name, format, scale, ours, peers, spread)
  print(("| %-50s | "..format.." | "..(peers and format or "%s").." | %s | %s |"):format(name, ours * scale,
    peers and peers * scale or "", peers and ("%.2f"):format(ours / peers) or "", spread or ""))
  io.flush()
end
for k, c in ipairs(dofile(here .. "/cases.lua")) do
  if not options.only or c[1]:find(options.only, 1, true) then
    local ask, finish = worker(mine, k, c[1])
    local ask_peer, finish_peer
    if theirs then ask_peer, finish_peer = worker(theirs, k, c[1]) end
    local a, b, ratios = {}, {}, {}
    for r = 1, options.rounds do
      a[r] = ask()
      os.execute("sleep 0.05")             -- idle threads of either side spin for a while
      b[r] = theirs and ask_peer()
      os.execute("sleep 0.05")
      ratios[r] = theirs and a[r] / b[r]
    end
    finish()
    if theirs then finish_peer() end
    local ours, small = median(a), median(a) < 5e-4
    row(c[1], small and "%.3g us" or "%.3g ms", small and 1e6 or 1e3, ours, theirs and median(b),
      theirs and ("%.2f to %.2f"):format(math.min(unpack(ratios)), math.max(unpack(ratios))))
  end
end
for _, name in ipairs(options.only and {} or {"cnn", "gpt"}) do
  local function grown(program)
    local ask, finish = worker(program, name, name)
    local n = ask()
    finish()
    return n
  end
  row("peak memory of 30 training steps: " .. name, "%.0f MB", 1e-6, grown(mine), theirs and grown(theirs))
end
