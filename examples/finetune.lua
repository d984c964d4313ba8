-- Fine-tunes a network that others have trained: one of tycho.vision.models, on pictures in folders.
--
--   luajit examples/finetune.lua --data DIR [--model resnet18] [--weights FILE] [--epochs 5] [--batch 32] [--lr 0.001] [--size 224]
--     [--all] [--seed 1] [--save best.safetensors] [--device cpu|cuda|cuda:N] [--workers 2] [--threads N]
--
-- --data: DIR/train/CLASS/*.jpg and DIR/val/CLASS/*.jpg (or .png). --weights: torchvision's file for the model, such as
-- resnet18-f37072fd.pth, whose last layer is replaced by one for these classes. Only that one is trained; --all trains the others too.
-- --save gets the state dict that classified most of DIR/val correctly.
local tycho = require "tycho"
local nn, optim, data, models = tycho.nn, tycho.optim, tycho.data, tycho.vision.models
local T = data.transforms

local options = dofile((arg[0]:match "^.*/" or "") .. "arguments.lua") {data = "", model = "resnet18", weights = "", epochs = 5, batch = 32,
  lr = 1e-3, size = 224, all = false, seed = 1, save = "best.safetensors", workers = 2, threads = 0,
  device = tycho.cuda.is_available() and "cuda" or "cpu"}
if options.threads > 0 then tycho.set_num_threads(options.threads) end
-- fn(...), or the end of the program with what went wrong
local function try(fn, ...)
  local ok, result = pcall(fn, ...)
  if not ok then io.stderr:write(result, "\n"); os.exit(1) end
  return result
end

---- data: as the networks were trained, with ImageNet's means and deviations ----
local size, normalize = options.size, T.Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})
local function open(train, ...)
  return try(data.datasets.ImageFolder, {root = options.data, train = train, transform = T.Compose {...}})
end
local train = open(true, T.RandomResizedCrop(size, {0.3, 1}), T.RandomHorizontalFlip(), normalize)
local val = open(false, T.Resize(math.floor(size * 256 / 224)), T.CenterCrop(size), normalize)
local function loader(set, o)
  o.batch_size, o.num_workers, o.pin_memory, o.seed = options.batch, options.workers, options.device ~= "cpu", options.seed
  return data.Prefetcher(data.DataLoader(set, o), options.device)
end
local batches, checks = loader(train, {shuffle = true}), loader(val, {})

---- model ----
tycho.manual_seed(options.seed)
local net = try(function() return models[options.model](options.weights ~= "" and options.weights or nil) end)
if not options.all then net:requires_grad_(false) end
local last                                 -- the path of the last linear layer: "fc", "classifier.1", ...
for path, m in net:named_modules() do if nn.isinstance(m, nn.Linear) then last = path end end
try(assert, last, "--model: " .. options.model .. " doesn't end with a linear layer")
net:set_submodule(last, nn.Linear(net:get_submodule(last).in_features, #train.classes))
net:to(options.device)
local trained = {}
for _, p in ipairs(net:parameters()) do if p.requires_grad then trained[#trained + 1] = p end end
local optimizer = optim.AdamW(trained, {lr = options.lr})
local schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, {T_max = options.epochs * batches:size()})

local function accuracy()
  local right = 0
  net:eval()
  tycho.no_grad(function()
    for x, y in checks:iter() do right = right + net(x):argmax(2):eq(y):sum() end
  end)
  return right:item() / val:size()
end

---- training ----
local best, step = 0, 0
for epoch = 1, options.epochs do
  net:train(options.all)                   -- in evaluation, batch norm keeps the statistics that were learned
  local bar = tycho.utils.progress(batches, {desc = ("epoch %d/%d"):format(epoch, options.epochs), unit = "pictures"})
  for x, y in bar do
    local loss = tycho.cross_entropy(net(x), y)
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    schedule:step()
    step = step + 1
    if step % 10 == 0 then bar:set {loss = loss:item()} end            -- reading it waits for the device
  end
  local right = accuracy()
  print(("epoch %d: %.4f of %d pictures right"):format(epoch, right, val:size()))
  if right > best then
    best = right
    tycho.save(options.save, net:state_dict())
  end
end
print(("best: %.4f"):format(best))
