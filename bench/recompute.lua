-- Peak memory and time of a transformer's training step: with all activations kept, and with layers computed again in backward, all of
-- them or without matrix products and attention; eager and compiled.
--   luajit bench/recompute.lua [--layers 16] [--width 256] [--length 128] [--batch 8] [--rounds 3]
local here = arg[0]:match "^(.*)/" or "."
local common = dofile(here .. "/common.lua")
local o = common.options {layers = 16, width = 256, length = 128, batch = 8, rounds = 3}
local tycho = require "tycho"
local core = require "tycho.core"
local nn = tycho.nn

local layers = {}
for i = 1, o.layers do layers[i] = nn.TransformerEncoderLayer(o.width, 8, {dim_feedforward = 4 * o.width, batch_first = true}) end
local net = nn.Sequential(unpack(layers))
local opt = tycho.optim.SGD(net:parameters(), {lr = 1e-3})
local x = tycho.randn(o.batch, o.length, o.width)

local function step_of(model)
  return function(inputs)
    opt:zero_grad()
    model(inputs):square():mean():backward()
    opt:step()
  end
end

print(("%d layers of width %d, %d x %d tokens"):format(o.layers, o.width, o.batch, o.length))
local plain
for _, compiled in ipairs {false, true} do
  for _, way in ipairs {{0}, {4}, {o.layers}, {o.layers, {"linear", "matmul", "attention"}}} do
    local segments, save = unpack(way)
    opt:zero_grad()
    collectgarbage()
    collectgarbage()
    local before = core.allocated()
    local step = step_of(segments == 0 and net or nn.Checkpoint(net, {segments = segments, save = save}))
    local times, peak = {}, 0
    if compiled then step = tycho.compile(step) end
    for _ = 1, compiled and 4 or 1 do step(x) end
    if compiled and not step:report()[1].compiled then error(step:report()[1].why) end
    for k = 1, o.rounds do
      collectgarbage()
      collectgarbage()
      core.max_allocated(true)
      local start = core.now()
      step(x)
      times[k] = core.now() - start
      peak = core.max_allocated() - before
    end
    plain = plain or peak
    local name = (compiled and "compiled, " or "") .. (segments == 0 and "whole" or segments .. " segments")
    print(("%-40s peak %8.1f MiB above parameters (%.2f of whole), %7.1f ms"):format(name .. (save and ", products saved" or ""),
      peak / 2^20, peak / plain, common.median(times) * 1e3))
  end
end
