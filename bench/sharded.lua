-- The memory that each of several training processes holds, and its peak: mpirun -n 2 scripts/run bench/sharded.lua. Eight layers of
-- 1024 x 1024 with AdamW: the whole model in each process, the optimizer's state sharded, and everything sharded.
local tycho = require "tycho"
local core = require "tycho.core"
local dist, nn, optim = tycho.distributed, tycho.nn, tycho.optim
dist.init_process_group()
tycho.set_num_threads(1)

local WIDTH, LAYERS, STEPS = 1024, 8, 10
local function build(how)
  local net = nn.Sequential()
  for _ = 1, LAYERS do net:append(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())) end
  if how == "fully_shard" then
    for i = 1, LAYERS do dist.fsdp.fully_shard(net[i]) end
    return dist.fsdp.fully_shard(net), optim.AdamW(net:parameters(), {lr = 1e-3})
  end
  local model = nn.parallel.DistributedDataParallel(net)
  if how == "DistributedDataParallel" then return model, optim.AdamW(net:parameters(), {lr = 1e-3}) end
  return model, dist.optim.ZeroRedundancyOptimizer(net:parameters(), {optimizer_class = optim.AdamW, lr = 1e-3})
end

for _, how in ipairs {"DistributedDataParallel", "ZeroRedundancyOptimizer", "fully_shard"} do
  local model, opt = build(how)
  local x = tycho.randn(32, WIDTH)
  local function step()
    local loss = model(x):square():mean()
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
  for _ = 1, 3 do step() end
  collectgarbage()
  collectgarbage()
  local held = core.allocated()
  core.max_allocated(true)
  local from = core.now()
  for _ = 1, STEPS do step() end
  local time = (core.now() - from) / STEPS
  if dist.get_rank() == 0 then
    print(("%-24s holds %.0f MB, at most %.0f MB, %.0f ms a step"):format(how, held / 2 ^ 20, core.max_allocated() / 2 ^ 20, time * 1e3))
  end
  model, opt = nil, nil
  collectgarbage()
  collectgarbage()
end
