-- Trains a model in several processes at once, each with a share of every batch: on one GPU each, else on the CPU.
--
--   mpirun -n 2 luajit examples/parallel.lua [--data DIR] [--epochs 2]
--
-- But for the four lines marked "several", it is a program for one process; without mpirun it runs as one.
local tycho = require "tycho"
local nn, optim, dist = tycho.nn, tycho.optim, tycho.distributed

local options = dofile((arg[0]:match "^.*/" or "") .. "arguments.lua") {data = "/usr/share/datasets/fashion-mnist", epochs = 2}

dist.init_process_group()                                                               -- several
local first = dist.get_rank() == 0
local device = tycho.cuda.is_available() and "cuda:" .. dist.get_local_rank() or "cpu"
if device ~= "cpu" then tycho.cuda.set_device(dist.get_local_rank()) end                -- several

local train = tycho.data.datasets.FashionMNIST {root = options.data, train = true}
local test = tycho.data.datasets.FashionMNIST {root = options.data, train = false}
local share = tycho.data.DistributedSampler(train, {seed = 1, drop_last = true})          -- several: a process's own items
local loader = tycho.data.DataLoader(train, {batch_size = 128 / dist.get_world_size(), sampler = share, drop_last = true})

local net = nn.Sequential(
  nn.Conv2d(1, 32, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2),
  nn.Conv2d(32, 64, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2),
  nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10)):to(device)
local model = nn.parallel.DistributedDataParallel(net)                                  -- several: averages gradients
local optimizer = optim.AdamW(model:parameters(), {lr = 2e-3})

for epoch = 1, options.epochs do
  local began = os.time()
  for x, y in loader:iter() do
    local loss = tycho.cross_entropy(model(x:to(device)), y:to(device))
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
  end
  if first then print(("epoch %d: %d s, processes: %d"):format(epoch, os.time() - began, dist.get_world_size())) end
end

if first then
  local right = 0
  tycho.no_grad(function()
    for x, y in tycho.data.DataLoader(test, {batch_size = 500}):iter() do
      right = right + net(x:to(device)):argmax(2):eq(y:to(device)):sum():item()
    end
  end)
  print(("test accuracy %.4f"):format(right / test:size()))
  os.execute "mkdir -p runs"
  tycho.save("runs/parallel.safetensors", net:state_dict())
end
dist.barrier()                                                                          -- no process ends before the file is there
