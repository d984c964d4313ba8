-- Single ops beside PyTorch's, forward and backward: luajit bench/ops.lua [--python PYTHON] [--only TEXT] [--threads 2] [--rounds 2]
-- The cases are in ops.txt. A figure is the least time a call took, over some 0.1 s in each of the rounds, which alternate
-- between the two. Results stay until Lua collects them, as in programs, so that large ones go to memory that isn't in cache.
-- Prints what is a tenth slower than PyTorch's, the worst first, and the geometric mean of all ratios.
local here = arg[0]:match "^(.*)/" or "."
local common = dofile(here .. "/common.lua")
local options = common.options {python = os.getenv "PYTHON" or "python3", only = "", threads = 2, rounds = 2}
local t = require "tycho"
local core = require "tycho.core"
t.set_num_threads(options.threads)
t.manual_seed(1)

-- The operands that cases name; ops_peer.py makes the same.
local R = t.randn
local F = t.nn.functional
local square, x = R(256, 256), R(1024, 1024)
local E = {
  t = t, F = F, x = x, y = R(1024, 1024), z = R(1024, 1024), p = t.rand(1024, 1024) + 0.1, u = t.rand(1024, 1024),
  row = R(1024), col = R(1024, 1), yt = R(1024, 1024):t(), m = x:gt(0), xh = x:half(), xb = x:bfloat16(),
  xd = x:double(), xi = t.randint(0, 1000, {1024, 1024}), xi1 = t.randint(0, 9, {128, 128}), xd5 = R(512, 512):double(),
  xu = t.randint(0, 255, {1024, 1024}):byte(), yu = t.randint(0, 255, {1024, 1024}):byte(),
  rh = R(1, 1024):half(), rb = R(1, 1024):bfloat16(), wh = R(4096, 1024):half(), wb = R(4096, 1024):bfloat16(),
  xh5 = R(512, 512):half(), xb5 = R(512, 512):bfloat16(), img = R(32, 64, 28, 28), img8 = R(8, 16, 56, 56),
  cols = R(8, 144, 54 * 54), rgb = R(8, 3, 112, 112), w7 = R(64, 3, 7, 7), ch = R(64), p64 = t.rand(64) + 0.1,
  w3 = R(64, 64, 3, 3), w1 = R(64, 64, 1, 1), wd = R(64, 1, 3, 3), wd7 = R(64, 1, 7, 7), seq = R(32, 64, 256), wc = R(64, 64, 3),
  vol = R(4, 16, 16, 16, 16), wv = R(16, 16, 3, 3, 3), s1 = R(64, 128), s2 = R(128, 128),
  r1 = R(1, 1024), a3 = R(32, 64, 64), b3 = R(32, 64, 64), a4 = R(256, 8, 8), b4 = R(256, 8, 8), q = R(8, 8, 128, 64),
  qb = R(4, 8, 128, 64):bfloat16(), qb5 = R(1, 8, 512, 64):bfloat16(), qb1 = R(1, 8, 1, 64):bfloat16(),
  ids = t.randint(1, 1000, {64, 128}), bag = t.randint(1, 1000, {256, 16}), emb = R(1000, 256), perm = t.randperm(1024),
  gi = t.randint(1, 1024, {1024, 1024}), z0 = t.zeros(1024, 1024), flat = R(1000000), sorted = (R(10000):sort()),
  x2 = R(1024, 1024), xc = x:clone(), lab = t.randint(1, 1024, {1024}), seg = R(4, 21, 64, 64), seglab = t.randint(1, 21, {4, 64, 64}),
  few = R(128, 10), fewlab = t.randint(1, 10, {128}), grid = t.rand(8, 56, 56, 2) * 2 - 1,
  lp = R(50, 16, 30):log_softmax(3), tg = t.randint(2, 30, {16, 20}), il = t.full({16}, 50, {dtype = "int64"}),
  tl = t.full({16}, 20, {dtype = "int64"}), spd = square:mm(square:t()) + t.eye(256) * 10, s3 = R(8, 8), s0 = R(1):sum(), flat4 = R(10000),
  l4 = R(4, 256, 1024), zn = t.zeros(500, 64), es = R(2000, 64), ed = t.randint(1, 500, {2000, 1}):expand(2000, 64)}
E.list = E.flat4:totable()
local FIXED = {ch = true, p64 = true, u = true}            -- these never require grad

local function time(fn)
  fn()
  local last = core.now()
  fn()
  local now, best = core.now(), math.huge
  local per, stop = math.max(1, math.floor(0.01 / (now - last))), now + 0.12
  repeat
    last = core.now()
    for _ = 1, per do fn() end
    now = core.now()
    best = math.min(best, (now - last) / per)
  until now > stop
  return best
end

-- The operands that the code `lua` names and that may require grad.
local function leaves_of(lua)
  local names = {}
  for k, v in pairs(E) do
    if core.is_tensor(v) and not FIXED[k] and v:is_floating_point() and v.is_leaf and lua:find("%f[%w]" .. k .. "%f[%W]") then
      names[#names + 1] = k
    end
  end
  return names
end

local mine, theirs, order = {}, {}, {}
local function note(into, key, seconds)
  if into == mine and not mine[key] then order[#order + 1] = key end
  into[key] = math.min(into[key] or math.huge, seconds)
end
local function round()
  for line in io.lines(here .. "/ops.txt") do
    local name, lua, both = line:match "^([^#|]-) | (.-) | .- |%s*(%w*)$"
    if name and name:find(options.only, 1, true) then
      local fn = setfenv(assert(loadstring("return " .. lua)), setmetatable({}, {__index = function(_, k) return E[k] or _G[k] end}))
      t.no_grad(function() note(mine, name, time(fn)) end)
      if both ~= "" then
        local names = leaves_of(lua)
        for _, k in ipairs(names) do E[k]:requires_grad_() end
        local g = t.ones_like(fn())
        note(mine, name .. ", both ways", time(function()
          local y = fn()
          for _, k in ipairs(names) do E[k].grad = nil end
          y:backward(g)
        end))
        for _, k in ipairs(names) do E[k] = E[k]:detach() end
      end
    end
  end
  local p = io.popen(("%s %s/ops_peer.py %d '%s' 2>/dev/null"):format(options.python, here, options.threads, options.only))
  for line in p:lines() do
    local name, seconds = line:match "^(.-)\t(%S+)$"
    if name then note(theirs, name, tonumber(seconds)) end
  end
  p:close()
end
for _ = 1, options.rounds do round() end

local rows, sum = {}, 0
for _, name in ipairs(order) do
  if theirs[name] then
    rows[#rows + 1] = {name = name, ratio = mine[name] / theirs[name]}
    sum = sum + math.log(mine[name] / theirs[name])
  end
end
table.sort(rows, function(a, b) return a.ratio > b.ratio end)
print "| case | Tycho | PyTorch | ratio |\n|---|---|---|---|"
for _, r in ipairs(rows) do
  if r.ratio > 1.1 or options.only ~= "" then
    print(("| %s | %.1f us | %.1f us | %.2f |"):format(r.name, mine[r.name] * 1e6, theirs[r.name] * 1e6, r.ratio))
  end
end
if #rows > 0 then print(("%d cases, geometric mean %.2f"):format(#rows, math.exp(sum / #rows))) end
