-- Trains a small CNN on Fashion-MNIST and tests it.
--
--   luajit examples/fashion_mnist.lua [--data DIR] [--epochs 3] [--batch 128] [--lr 0.01] [--seed 1] [--out runs/fashion_mnist] [--resume]
--     [--threads N] [--device cpu|cuda|cuda:N] [--precision float32|bfloat16|float16|half] [--compile]
--
-- --device: where to train; by default the GPU, if there is one. --precision: bfloat16 and float16 by autocast, float16 with a
-- GradScaler; half: weights in float16, with float32 masters. --compile: records the training step and replays it.
-- --data: a folder with the four IDX files, gzipped or not. --out gets: model.safetensors (weights), checkpoints/
-- (everything needed to go on, even after Ctrl-C) and loss.png.
local tycho = require "tycho"
local nn, optim = tycho.nn, tycho.optim

local options = dofile((arg[0]:match "^.*/" or "") .. "arguments.lua") {data = "/usr/share/datasets/fashion-mnist", epochs = 3,
  batch = 128, lr = 0.01, seed = 1, out = "runs/fashion_mnist", resume = false, threads = 0, precision = "float32", compile = false,
  device = tycho.cuda.is_available() and "cuda" or "cpu"}
if not ({float32 = true, bfloat16 = true, float16 = true, half = true})[options.precision] then
  io.stderr:write("--precision must be float32, bfloat16, float16 or half\n")
  os.exit(2)
end
if options.threads > 0 then tycho.set_num_threads(options.threads) end

local Net = nn.Module:extend("Net")
function Net:init(classes)
  self.features = nn.Sequential(
    nn.Conv2d(1, 32, 3, {padding = 1, bias = false}), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, {padding = 1, bias = false}), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2))
  self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, classes))
end
function Net:forward(x) return self.classifier(self.features(x)) end

local function open(train)
  local ok, set = pcall(tycho.data.datasets.FashionMNIST, {root = options.data, train = train})
  if not ok then io.stderr:write(set, "\n"); os.exit(1) end
  return set
end

local train, test = open(true), open(false)
tycho.manual_seed(options.seed)
local net = Net(#train.classes):to(options.device)
local half, autocast = options.precision == "half", options.precision:match("float16$") and options.precision
if half then net:half() end
if options.epochs < 1 or options.batch > train:size() then
  io.stderr:write("there is nothing to train: --epochs from 1, --batch up to ", train:size(), "\n")
  os.exit(1)
end
local loader = tycho.data.DataLoader(train,
  {batch_size = options.batch, shuffle = true, drop_last = true, seed = options.seed, pin_memory = options.device ~= "cpu"})
local optimizer = optim.AdamW(net:parameters(), {lr = options.lr, weight_decay = 0.05, master_weights = half})
local scaler = tycho.amp.GradScaler{enabled = half or autocast == "float16"}
local schedule = optim.lr_scheduler.OneCycleLR(optimizer, {max_lr = options.lr, total_steps = options.epochs * loader:size()})
local curve, first_epoch = {}, 1

local function to_device(x) return x:to(options.device, {non_blocking = true}) end
local function scores(x)
  if half then return net(x:half()):float() end
  if autocast then return tycho.amp.autocast({dtype = autocast}, net, x) end
  return net(x)
end
local function step(x, y)
  local loss = tycho.cross_entropy(scores(x), y)
  optimizer:zero_grad()
  scaler:scale(loss):backward()
  scaler:step(optimizer)
  scaler:update()
  schedule:step()
  return loss:detach()
end
if options.compile then step = tycho.compile(step) end

local manager = tycho.checkpoint.Manager {dir = options.out .. "/checkpoints", keep = 2}
local function save(steps)
  manager:save(steps, {model = net, optimizer = optimizer, schedule = schedule, scaler = scaler, loader = loader, curve = curve})
end
local steps = 0
if options.resume then
  local at, values = manager:restore_latest {model = net, optimizer = optimizer, schedule = schedule, scaler = scaler, loader = loader}
  if at then
    schedule.total_steps = math.max(schedule.total_steps, options.epochs * loader:size())      -- resumed for more epochs than at first
    steps, curve = at, values.curve
    first_epoch = math.floor(steps / loader:size()) + 1
    io.stderr:write(("going on in epoch %d, after %d batches\n"):format(first_epoch, steps % loader:size()))
  end
end

print(nn.summary(net, {1, 1, 28, 28}))
tycho.utils.catch_interrupt()
for epoch = first_epoch, options.epochs do
  net:train()
  local bar = tycho.utils.progress(loader, {desc = ("epoch %d/%d"):format(epoch, options.epochs), unit = "images"})
  local mean, n = 0, 0
  local pending = {}                                   -- losses left on the device: reading one waits for the device
  local function read_losses()
    for _, v in ipairs(#pending > 0 and tycho.stack(pending):totable() or pending) do
      curve[#curve + 1] = v
      mean, n = mean + v, n + 1
    end
    pending = {}
    if n > 0 then bar:set {loss = mean / n} end
  end
  for x, y in bar do
    pending[#pending + 1] = step(to_device(x), to_device(y))
    steps = steps + 1
    if #pending == 10 then read_losses() end
    if tycho.utils.interrupted() then
      read_losses()
      bar:close()
      save(steps)
      manager:wait()
      io.stderr:write("stopped; --resume goes on from step " .. steps .. "\n")
      os.exit(130)
    end
  end
  read_losses()
  save(steps)
end
manager:wait()

net:eval()
local right = 0
tycho.no_grad(function()
  for x, y in tycho.data.DataLoader(test, {batch_size = 1000}):iter() do
    right = right + scores(to_device(x)):argmax(2):eq(to_device(y)):sum()
  end
end)
tycho.save(options.out .. "/model.safetensors", net:state_dict())
tycho.utils.save_curve(options.out .. "/loss.png", curve)
print(("test accuracy: %.4f; %s has the model, its checkpoints and loss.png"):format(right:item() / test:size(), options.out))
