-- A short training run that saves every few steps and takes up what is there: luajit spec/crash/train.lua FOLDER STEPS RESULT
-- It ends by writing its weights, losses and data order to RESULT.
local tycho = require "tycho"
local nn, data = tycho.nn, tycho.data
local folder, steps, result = arg[1], tonumber(arg[2]), arg[3]
tycho.set_num_threads(1)
tycho.manual_seed(3)
local set = data.TensorDataset(tycho.randn(101, 8), tycho.randint(1, 4, {101}))
local net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
local opt = tycho.optim.Adam(net:parameters(), {lr = 0.01})
local loader = data.DataLoader(set, {batch_size = 7, shuffle = true, seed = 5, num_workers = 2})
local manager = tycho.checkpoint.Manager {dir = folder, keep = 2}
local step, values = manager:restore_latest {model = net, optimizer = opt, loader = loader}
local losses, order = values and values.losses or {}, values and values.order or {}
step = step or 0
while step < steps do
  for x, y in loader:iter() do
    local loss = tycho.cross_entropy(net(x), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
    step = step + 1
    losses[step], order[step] = loss:item(), x[{1, 1}]
    if step % 3 == 0 then manager:save(step, {model = net, optimizer = opt, loader = loader, losses = losses, order = order}) end
    if step == steps then break end
  end
end
manager:wait()
tycho.save(result, {model = net:state_dict(), losses = losses, order = order})
