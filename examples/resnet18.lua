-- ResNet-18 (He et al. 2016). Parameters have torchvision's names, so that its weights, saved as safetensors, load by name.
--
--   luajit examples/resnet18.lua [--weights FILE] [--data DIR] [--steps 200] [--batch 64] [--width 16] [--threads N] [--device cpu|cuda]
--
-- Trains a narrow one on Fashion-MNIST for some steps and prints loss, accuracy and images/s. As a module:
--   local resnet18 = require "examples.resnet18"
--   local net = resnet18 {classes = 1000}            -- width = 64: channels of the first stage; channels = 3: of the images
--   net:load_state_dict(tycho.load("resnet18.safetensors"))
local tycho = require "tycho"
local nn = tycho.nn

local function conv3(n_in, n_out, stride) return nn.Conv2d(n_in, n_out, 3, {stride = stride, padding = 1, bias = false}) end

local Block = nn.Module:extend("BasicBlock")
function Block:init(n_in, n_out, stride)
  self.conv1, self.bn1 = conv3(n_in, n_out, stride), nn.BatchNorm2d(n_out)
  self.conv2, self.bn2 = conv3(n_out, n_out, 1), nn.BatchNorm2d(n_out)
  if stride ~= 1 or n_in ~= n_out then
    self.downsample = nn.Sequential(nn.Conv2d(n_in, n_out, 1, {stride = stride, bias = false}), nn.BatchNorm2d(n_out))
  end
end
function Block:forward(x)
  local y = self.bn1(self.conv1(x)):relu()
  y = self.bn2(self.conv2(y))
  return (y + (self.downsample and self.downsample(x) or x)):relu()
end

local ResNet = nn.Module:extend("ResNet")
function ResNet:init(o)
  local w = o.width or 64
  self.conv1 = nn.Conv2d(o.channels or 3, w, 7, {stride = 2, padding = 3, bias = false})
  self.bn1 = nn.BatchNorm2d(w)
  local n_in = w
  for stage = 1, 4 do
    local n_out = w * 2 ^ (stage - 1)
    self["layer" .. stage] = nn.Sequential(Block(n_in, n_out, stage == 1 and 1 or 2), Block(n_out, n_out, 1))
    n_in = n_out
  end
  self.fc = nn.Linear(n_in, o.classes or 1000)
end
function ResNet:forward(x)
  x = self.bn1(self.conv1(x)):relu():max_pool2d(3, 2, 1)
  for stage = 1, 4 do x = self["layer" .. stage](x) end
  return self.fc(x:adaptive_avg_pool2d(1):flatten(2))
end

local function resnet18(o) return ResNet(o or {}) end
if not (arg and arg[0] and arg[0]:match("resnet18%.lua$")) then return resnet18 end

local options = dofile((arg[0]:match "^.*/" or "") .. "arguments.lua") {weights = "", data = "/usr/share/datasets/fashion-mnist",
  steps = 200, batch = 64, width = 16, threads = 0, device = tycho.cuda.is_available() and "cuda" or "cpu"}
if options.threads > 0 then tycho.set_num_threads(options.threads) end
local ok, train = pcall(tycho.data.datasets.FashionMNIST, {root = options.data, train = true})
if not ok then io.stderr:write(train, "\n"); os.exit(1) end

tycho.manual_seed(1)
local net = resnet18 {classes = #train.classes, width = options.width, channels = 1}:to(options.device)
if options.weights ~= "" then
  local found, why = pcall(function() net:load_state_dict(tycho.load(options.weights)) end)
  if not found then io.stderr:write("--weights: ", why, "\n"); os.exit(1) end
end
local optimizer = tycho.optim.SGD(net:parameters(), {lr = 0.05, momentum = 0.9, weight_decay = 5e-4})
local schedule = tycho.optim.lr_scheduler.CosineAnnealingLR(optimizer, {T_max = options.steps})
local loader = tycho.data.DataLoader(train, {batch_size = options.batch, shuffle = true, drop_last = true, seed = 1})
local step, right, seen = 0, 0, 0
local bar = tycho.utils.progress(loader, {desc = "resnet18", unit = "images"})
for x, y in bar do
  x, y = x:to(options.device), y:to(options.device)
  local out = net(x)
  local loss = tycho.cross_entropy(out, y, {label_smoothing = 0.1})
  optimizer:zero_grad()
  loss:backward()
  optimizer:step()
  schedule:step()
  step = step + 1
  if step > options.steps / 2 then right, seen = right + out:argmax(2):eq(y):sum():item(), seen + y:numel() end
  bar:set {loss = loss:item()}
  if step >= options.steps then break end
end
bar:close()
print(("accuracy on the second half of the batches: %.4f"):format(right / seen))
