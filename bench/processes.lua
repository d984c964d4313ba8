-- Exchanges among processes on the CPU, and a step of DistributedDataParallel, beside PyTorch's over gloo (processes_peer.py):
--
--   mpirun -n 2 luajit bench/processes.lua
--   OMP_NUM_THREADS=1 python3 -m torch.distributed.run --nproc-per-node 2 bench/processes_peer.py
--
-- Each process has one thread. A figure is the median of 60 calls, in us; the processes begin each call together.
local tycho = require "tycho"
local core = require "tycho.core"
local dist, nn, optim = tycho.distributed, tycho.nn, tycho.optim
dist.init_process_group()
tycho.set_num_threads(1)
local common = dofile((arg[0]:match "^(.*)/" or ".") .. "/common.lua")

local function measure(name, fn)
  for _ = 1, 5 do fn() end
  local times = {}
  for i = 1, 60 do
    dist.barrier()
    local began = core.now()
    fn()
    times[i] = core.now() - began
  end
  if dist.get_rank() == 0 then print(("%-32s %10.0f"):format(name, common.median(times) * 1e6)) end
end

for _, n in ipairs {1000, 100000, 6000000} do
  local x = tycho.ones(n)
  measure(("all_reduce, mean of %d"):format(n), function() dist.all_reduce(x, "mean") end)
end
local x, y = tycho.randn(64, 784), tycho.randint(1, 10, {64})
local function step(wrap)
  local net = wrap(nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)))
  local opt = optim.AdamW(net:parameters(), {lr = 1e-3})
  return function()
    opt:zero_grad()
    tycho.cross_entropy(net(x), y):backward()
    opt:step()
  end
end
measure("step of an MLP, parallel", step(nn.parallel.DistributedDataParallel))
measure("step of an MLP, alone", step(function(net) return net end))
