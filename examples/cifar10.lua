-- Trains a CNN on CIFAR-10: augmented images, three convolutions, mixed precision, checkpoints, a traced model at the end.
--
--   luajit examples/cifar10.lua --data DIR [--epochs 3] [--batch 128] [--lr 0.001] [--seed 1] [--out runs/cifar10] [--resume]
--     [--device cpu|cuda|cuda:N] [--amp auto|off|bfloat16|float16] [--compile] [--workers 2] [--threads N]
--
-- --data: the folder of CIFAR-10's binary version (data_batch_1.bin ... test_batch.bin). --amp auto: float16 with a
-- GradScaler on a GPU, bfloat16 on the CPU. --out gets: checkpoints/ (one every 100 steps; --resume goes on from the
-- newest, even within an epoch, to the same bits), model.safetensors (the state dict), traced.safetensors
-- (the model without its source), loss.png.
local tycho = require "tycho"
local nn, optim, data = tycho.nn, tycho.optim, tycho.data
local T = data.transforms

local options = dofile((arg[0]:match "^.*/" or "") .. "arguments.lua") {data = "cifar10", epochs = 3, batch = 128, lr = 1e-3, seed = 1,
  out = "runs/cifar10", resume = false, compile = false, amp = "auto", workers = 2, threads = 0,
  device = tycho.cuda.is_available() and "cuda" or "cpu"}
local amp = options.amp
if amp == "auto" then amp = options.device == "cpu" and "bfloat16" or "float16" end
if not ({off = true, bfloat16 = true, float16 = true})[amp] then
  io.stderr:write("--amp must be auto, off, bfloat16 or float16\n")
  os.exit(2)
end
if options.threads > 0 then tycho.set_num_threads(options.threads) end

---- data ----
local normalize = T.Normalize({0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616})
local function open(train, transform)
  local ok, set = pcall(data.datasets.CIFAR10, {root = options.data, train = train, transform = transform})
  if not ok then io.stderr:write(set, "\n"); os.exit(1) end
  return set
end
local train = open(true, T.Compose {T.RandomCrop(32, {padding = 4}), T.RandomHorizontalFlip(), normalize})
local test = open(false, normalize)
local pin = options.device ~= "cpu"
local loader = data.Prefetcher(data.DataLoader(train,
  {batch_size = options.batch, shuffle = true, drop_last = true, seed = options.seed, num_workers = options.workers,
    pin_memory = pin}),
  options.device)

---- model ----
local Net = nn.Module:extend "Net"
function Net:init(classes)
  local function block(from, to) return nn.Conv2d(from, to, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2) end
  local layers = {}
  for _, sizes in ipairs {{3, 32}, {32, 64}, {64, 128}} do
    for _, layer in ipairs {block(unpack(sizes))} do layers[#layers + 1] = layer end
  end
  self.features = nn.Sequential(unpack(layers))
  self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(128 * 4 * 4, 512), nn.ReLU(), nn.Linear(512, classes))
end
function Net:forward(x) return self.classifier(self.features(x)) end

tycho.manual_seed(options.seed)
local net = Net(#train.classes):to(options.device)
local optimizer = optim.Adam(net:parameters(), {lr = options.lr})
local scaler = tycho.amp.GradScaler {enabled = amp == "float16"}
local function scores(x)
  return tycho.amp.autocast({dtype = amp ~= "off" and amp or "bfloat16", enabled = amp ~= "off",
    device = options.device}, net, x)
end
local function train_step(x, y)
  local loss = tycho.cross_entropy(scores(x), y)
  optimizer:zero_grad()
  scaler:scale(loss):backward()
  scaler:step(optimizer)
  scaler:update()
  return loss:detach()
end
if options.compile then train_step = tycho.compile(train_step) end

local function accuracy()
  local right = 0
  net:eval()
  tycho.no_grad(function()
    for x, y in data.Prefetcher(data.DataLoader(test, {batch_size = 1000, pin_memory = pin}), options.device):iter() do
      right = right + scores(x):argmax(2):eq(y):sum()
    end
  end)
  net:train()
  return right:item() / test:size()
end

---- training ----
local manager = tycho.checkpoint.Manager {dir = options.out .. "/checkpoints", keep = 2}
local members = {model = net, optimizer = optimizer, scaler = scaler, loader = loader}
local step, curve = 0, {}
if options.resume then
  local at, values = manager:restore_latest(members)
  if at then
    step, curve = at, values.curve
    io.stderr:write(("going on after step %d\n"):format(step))
  end
end
local function save() manager:save(step, {model = net, optimizer = optimizer, scaler = scaler, loader = loader, curve = curve}) end

print(nn.summary(net, {1, 3, 32, 32}))
tycho.utils.catch_interrupt()
local steps_each = loader:size()
while step < options.epochs * steps_each do
  local bar = tycho.utils.progress(loader,
    {desc = ("epoch %d/%d"):format(math.floor(step / steps_each) + 1, options.epochs), unit = "images"})
  local pending = {}                       -- losses left on the device: reading one waits for the device
  local function read_losses()
    if #pending == 0 then return end
    for _, v in ipairs(tycho.stack(pending):totable()) do curve[#curve + 1] = v end
    pending = {}
    bar:set {loss = curve[#curve]}
  end
  for x, y in bar do
    pending[#pending + 1] = train_step(x, y)
    step = step + 1
    if #pending == 10 then read_losses() end
    local stopped = tycho.utils.interrupted()
    if stopped or step % 100 == 0 then
      read_losses()
      save()
    end
    if stopped then
      bar:close()
      manager:wait()
      io.stderr:write("stopped; --resume goes on from step ", step, "\n")
      os.exit(130)
    end
  end
  read_losses()
  print(("epoch %d: test accuracy %.4f"):format(step / steps_each, accuracy()))
end
save()
manager:wait()
print(("waited for data: %.2f s"):format(loader.waited))

tycho.save(options.out .. "/model.safetensors", net:state_dict())
net:eval()
tycho.jit.trace(net, tycho.zeros(2, 3, 32, 32, {device = options.device})):save(options.out .. "/traced.safetensors")
tycho.utils.save_curve(options.out .. "/loss.png", curve)
