-- Whole training steps on a GPU, eager and compiled, beside PyTorch's: eager, as one CUDA graph captured by hand, and with torch.compile.
--   luajit bench/gpu_steps.lua [--python /path/to/python3 --only TEXT --rounds 3 --small 1 --device cpu]
--     --small: tiny shapes, to see that it runs
-- A figure is the median of rounds that alternate between the two libraries, after 10 calls that warm up. A step alone:
-- the median of 20 calls, each between two events and waited for. Steps in a row: 20 calls between two events, where
-- the host may run ahead of the device. Each case has its own process of PyTorch (gpu_steps_peer.py), which compiles and
-- captures once; Tycho's steps are made anew each round. Measurements go to stderr as they come, tables to stdout. Data
-- are fresh random numbers.
local here = arg[0]:match("^(.*)/") or "."
local common = dofile(here .. "/common.lua")
local median = common.median
local options = common.options {python = os.getenv("PYTHON") or "python3", rounds = 3, only = "", small = 0, device = "cuda"}
local tycho = require "tycho"
local core = require "tycho.core"
local nn, optim, amp, R = tycho.nn, tycho.optim, tycho.amp, tycho.randn
local gpu = options.device ~= "cpu"
if gpu then
  local ok, why = tycho.cuda.is_available()
  if not ok then io.stderr:write("no GPU: ", why, "\n") os.exit(1) end
end
tycho.set_default_device(options.device)
tycho.backends.cudnn.benchmark = true

local small = options.small ~= 0
local function size(n, least) return small and least or n end
local warm, calls = size(10, 4), size(20, 3)
local function labels(n, ...) return tycho.randint(1, n, {...}) end

---- cases ----
-- A case's name, and a function that makes a step: it passes the step to wrap, which compiles it or not, and returns what calls it.
local cases = {}
local function case(name, make) cases[#cases + 1] = {name = name, make = make} end
local batch = size(128, 4)

local function mlp(width)
  return function(wrap)
    local net = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
    local opt = optim.SGD(net:parameters(), {lr = 0.01, momentum = 0.9})
    local step = wrap(function(x, y)
      opt:zero_grad()
      local loss = tycho.cross_entropy(net(x), y)
      loss:backward()
      opt:step()
      return loss:detach()
    end)
    local x, y = R(batch, 784), labels(10, batch)
    return function() step(x, y) end
  end
end
for _, width in ipairs {128, 32} do case(("MLP 784-%d-10, batch 128"):format(width), mlp(width)) end

case("gelu-bias-dropout-add-layer_norm, 16 MB", function(wrap)
  local rows, width = size(4096, 16), size(1024, 64)
  local x, b, w, r = R(rows, width), R(width), tycho.ones(width), R(rows, width)
  local fn = wrap(function() return tycho.layer_norm(tycho.dropout(tycho.gelu(x + b), 0.1) + r, {width}, w, b) end)
  return function() tycho.no_grad(fn) end
end)

case("demo's CNN, batch 128, bfloat16 autocast", function(wrap)
  local a, b, c = size(32, 4), size(64, 8), size(128, 16)
  local net = nn.Sequential(nn.Conv2d(1, a, 3, {padding = 1, bias = false}), nn.BatchNorm2d(a), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(a, b, 3, {padding = 1, bias = false}), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(b * 49, c), nn.ReLU(), nn.Dropout(0.3), nn.Linear(c, 10))
  local x, y = R(batch, 1, 28, 28), labels(10, batch)
  local opt = optim.SGD(net:parameters(), {lr = 0.01, momentum = 0.9})
  local function loss() return tycho.cross_entropy(net(x), y) end
  return wrap(function()
    opt:zero_grad()
    amp.autocast({dtype = "bfloat16", device = options.device}, loss):backward()
    opt:step()
  end)
end)

-- A step in float16 with a GradScaler.
local function scaled(wrap, net, opt, x, y)
  local scaler = amp.GradScaler {}
  local function loss_of(ids, truth) return tycho.cross_entropy(net(ids):flatten(1, -2), truth) end
  local step = wrap(function(now, truth)
    opt:zero_grad()
    local loss = amp.autocast({dtype = "float16", device = options.device}, loss_of, now, truth)
    scaler:scale(loss):backward()
    scaler:step(opt)
    scaler:update()
    return loss:detach()
  end)
  return function() step(x, y) end
end

case("CIFAR CNN, batch 128, float16 autocast, GradScaler, Adam", function(wrap)
  local layers, from = {}, 3
  for _, to in ipairs(size({32, 64, 128}, {4, 8, 8})) do
    for _, layer in ipairs {nn.Conv2d(from, to, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2)} do layers[#layers + 1] = layer end
    from = to
  end
  local hidden = size(512, 16)
  for _, layer in ipairs {nn.Flatten(), nn.Linear(from * 16, hidden), nn.ReLU(), nn.Linear(hidden, 10)} do layers[#layers + 1] = layer end
  local net = nn.Sequential(unpack(layers))
  return scaled(wrap, net, optim.Adam(net:parameters(), {lr = 1e-3}), R(batch, 3, 32, 32), labels(10, batch))
end)

local gpt = "GPT-2 124M, batch 8x1024, float16 autocast, AdamW"
local gpt_batch, gpt_length, gpt_tokens, gpt_parameters = size(8, 2), size(1024, 16), size(50304, 100), nil
case(gpt, function(wrap)
  local net = require "examples.char_gpt" {tokens = gpt_tokens, width = size(768, 32), heads = size(12, 2),
    layers = size(12, 2), length = gpt_length, bias = true, dropout = 0}
  gpt_parameters = 0                                   -- that are multiplied; the two embeddings are only read
  for name, p in net:named_parameters() do
    if not (name:match("^token") or name:match("^position")) then gpt_parameters = gpt_parameters + p:numel() end
  end
  return scaled(wrap, net, optim.AdamW(net:parameters(), {lr = 1e-4}), labels(gpt_tokens, gpt_batch, gpt_length),
    labels(gpt_tokens, gpt_batch * gpt_length))
end)

---- measuring ----
-- Milliseconds of n calls, and how often the host waited for the device meanwhile.
local function span(n, fn)
  if not gpu then
    local t = core.now()
    for _ = 1, n do fn() end
    return (core.now() - t) * 1e3, 0
  end
  local from, to = tycho.cuda.Event {enable_timing = true}, tycho.cuda.Event {enable_timing = true}
  tycho.cuda.synchronize()
  local before = tycho.cuda.sync_count()
  from:record()
  for _ = 1, n do fn() end
  to:record()
  local waits = tycho.cuda.sync_count() - before
  to:synchronize()
  return from:elapsed_time(to), waits
end
-- Milliseconds of a call alone and of one in a row, and the host's waits in the latter.
local function measure(fn)
  local list = {}
  for _ = 1, warm do fn() end
  for i = 1, calls do list[i] = span(1, fn) end
  collectgarbage()                         -- else uncollected results make the allocator ask the driver for memory
  collectgarbage()
  local row, waits = span(calls, fn)
  return median(list), row / calls, waits / calls
end
local function clean()
  collectgarbage() collectgarbage()
  if gpu then tycho.cuda.empty_cache() end
end

local variants = {"Tycho eager", "Tycho compiled", "Tycho guard=inputs", "PyTorch eager", "PyTorch graph", "PyTorch compile"}
local guards = {["Tycho compiled"] = "full", ["Tycho guard=inputs"] = "inputs"}
local function note(c, variant, alone, row)
  io.stderr:write(("%s\t%s\t%.5g\t%.5g\n"):format(c.name, variant, alone, row))
  c[variant] = c[variant] or {alone = {}, row = {}}
  table.insert(c[variant].alone, alone)
  table.insert(c[variant].row, row)
end
local function mine(c, variant)
  if c.failed[variant] then return end
  local compiled
  local function wrap(fn)
    if not guards[variant] then return fn end
    compiled = tycho.compile(fn, {guard = guards[variant]})
    return compiled
  end
  local ok, alone, row, waits = pcall(function() return measure(c.make(wrap)) end)
  if ok then note(c, variant, alone, row)
  else
    io.stderr:write(c.name, ", ", variant, ": ", tostring(alone), "\n")
    c.failed[variant] = true
  end
  local r = ok and compiled and compiled:report()[1]
  if r then
    c.report[variant] = r.compiled and
      ("%s nodes of the graph, %d steps in %d kernels, %g host syncs a step"):format(r.nodes or "no", #r.steps,
      #r.kernels, waits)
      or ("not compiled (%s), %g host syncs a step"):format(tostring(r.why), waits)
  end
end

-- PyTorch's process for a case: hear(word) notes its output up to a line that is the word, and returns nil if the process ended.
local version
local function peer_of(c)
  local fifo = os.tmpname()
  os.remove(fifo)
  os.execute("mkfifo " .. fifo)
  -- cat keeps reading: writing to a pipe without a reader would end this process
  local command = ('%s %s/gpu_steps_peer.py --wait 1 --rounds %d --small %d --device %s --only "%s" >%s 2>&1; cat >/dev/null')
  local to = io.popen(command:format(options.python, here, options.rounds, options.small, options.device, c.name, fifo), "w")
  local back, peer = io.open(fifo), {}
  os.remove(fifo)
  function peer.hear(word)
    for line in back:lines() do
      local name, variant, alone, row = line:match("^([^\t]+)\t([^\t]+)\t([%d.e+-]+)\t([%d.e+-]+)$")
      if line == word then return true end
      if name == c.name then note(c, "PyTorch " .. variant, tonumber(alone), tonumber(row))
      elseif line:match("^#\t") then version = line:sub(3)
      elseif not line:find("Warning") then io.stderr:write("peer: ", line, "\n") end
    end
  end
  function peer.go() to:write("\n") to:flush() end
  function peer.close() to:close() back:close() end
  return peer
end

local shown = {}
for _, c in ipairs(cases) do
  if c.name:find(options.only, 1, true) then
    shown[#shown + 1] = c
    c.failed, c.report = {}, {}
    local peer = peer_of(c)
    local there = peer.hear("ready")
    for _ = 1, options.rounds do
      for k = 1, 3 do
        mine(c, variants[k])
        clean()
      end
      if there then
        peer.go()
        there = peer.hear("done")
      end
    end
    peer.close()
  end
end

---- tables ----
local function get(c, variant, how) return c[variant] and median(c[variant][how]) end
local function text(x, format) return x and (format or "%.4g"):format(x) or "-" end
local function print_table(title, how)
  print(("\n%s\n\n| case | %s | compiled / eager | compiled / graph | compiled / compile |\n|---|%s"):format(title,
    table.concat(variants, " | "), ("---|"):rep(9)))
  for _, c in ipairs(shown) do
    local cells, own = {c.name}, get(c, "Tycho compiled", how)
    for _, variant in ipairs(variants) do cells[#cells + 1] = text(get(c, variant, how)) end
    for k = 4, 6 do
      local theirs = get(c, variants[k], how)
      cells[#cells + 1] = text(own and theirs and own / theirs, "%.2f")
    end
    print("| " .. table.concat(cells, " | ") .. " |")
  end
end
print(("# %s, %s, Tycho %s, %s"):format(os.date("%Y-%m-%d"), gpu and tycho.cuda.get_device_name() or "CPU",
  tycho.version, version or "no PyTorch"))
print_table("Milliseconds a step in a row; ratios are of Tycho compiled to PyTorch's", "row")
print_table("Milliseconds a step alone", "alone")
print("\nCompiled functions:\n")
for _, c in ipairs(shown) do
  for _, variant in ipairs(variants) do
    if c.report[variant] then print(("- %s, guard %s: %s"):format(c.name, guards[variant], c.report[variant])) end
  end
end
if gpt_parameters then
  local c, m = cases[#cases], size(4096, 32)
  local a, b = R(m, m):half(), R(m, m):half()
  local _, ms = measure(function() return a:matmul(b) end)
  local rate, tokens = 2 * m ^ 3 / ms / 1e9, gpt_batch * gpt_length          -- TFLOP/s
  local head = "\n%s: %.1f M parameters that are multiplied; 6 FLOPs for each and a token, beside the %.4g TFLOP/s of a \z
    matmul %d of float16 by Tycho\n"
  print(head:format(gpt, gpt_parameters / 1e6, rate, m))
  print("| in a row | tokens/s | TFLOP/s | of the matmul |\n|---|---|---|---|")
  for _, variant in ipairs(variants) do
    local step = get(c, variant, "row")
    local flops = step and 6 * gpt_parameters * tokens / step / 1e9
    print(("| %s | %s | %s | %s |"):format(variant, text(step and tokens / step * 1e3, "%.0f"), text(flops),
      text(flops and flops / rate, "%.3f")))
  end
end
