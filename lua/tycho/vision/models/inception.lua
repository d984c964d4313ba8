-- Networks whose layers are several chains of convolutions side by side: GoogLeNet (Szegedy et al. 2014) and Inception v3 (Szegedy et al.
-- 2015).
--
-- Idea: a block is a list of chains, a chain a list of steps; mixed() makes a module of them. Training gives further results, of
-- classifiers within the network, which help the first layers to learn.
local options = require "tycho.options"
local nn = require "tycho.nn"
local family = require "tycho.vision.models.family"
local ops = require("tycho.core").ops
local models = family.models

local Conv = nn.Module:extend("BasicConv2d")
-- o: nn.Conv2d's options
function Conv:init(n_in, n_out, kernel, o)
  o.bias = false
  self.conv = nn.Conv2d(n_in, n_out, kernel, o)
  self.bn = nn.BatchNorm2d(n_out, {eps = 0.001})
end
function Conv:forward(x) return self.bn(self.conv(x)):relu() end
-- With padding that keeps the size, or in steps of 2 and without.
local function conv(n_in, n_out, kernel, stride)
  local h, w = kernel, kernel
  if type(kernel) == "table" then h, w = kernel[1], kernel[2] end
  return Conv(n_in, n_out, kernel, stride == 2 and {stride = 2} or {padding = {(h - 1) / 2, (w - 1) / 2}})
end

-- What weights were trained on: pictures in -1..1, made of ones with ImageNet's means and deviations.
local function as_trained(x)
  local o = {dtype = x.dtype, device = x.device}
  local function row(values)
    local all = {}
    for i = 1, 3 do all[i] = ops.full({1, 1, 1}, values[i], o) end
    return ops.cat(all)
  end
  return x * row {0.229 / 0.5, 0.224 / 0.5, 0.225 / 0.5} + row {(0.485 - 0.5) / 0.5, (0.456 - 0.5) / 0.5, (0.406 - 0.5) / 0.5}
end

-- Files have the inner classifiers; a network without them doesn't.
local function drop_inner(net, names)
  net:register_load_state_dict_pre_hook(function(_, state, prefix)
    for name in pairs(state) do
      for _, inner in ipairs(names) do
        if name:sub(1, #prefix + #inner + 1) == prefix .. inner .. "." then state[name] = nil end
      end
    end
  end)
end

---- GoogLeNet ----
local Inception = nn.Module:extend("Inception")
function Inception:init(n_in, n1, before3, n3, before5, n5, pool)
  self.branch1 = conv(n_in, n1, 1)
  self.branch2 = nn.Sequential(conv(n_in, before3, 1), conv(before3, n3, 3))
  self.branch3 = nn.Sequential(conv(n_in, before5, 1), conv(before5, n5, 3))           -- 3x3, as the weights have it, not 5x5
  self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, {ceil_mode = true}), conv(n_in, pool, 1))
end
function Inception:forward(x) return ops.cat({self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)}, 2) end

local Inner = nn.Module:extend("InceptionAux")
function Inner:init(n_in, classes, dropout)
  self.conv = conv(n_in, 128, 1)
  self.fc1 = nn.Linear(2048, 1024)
  self.fc2 = nn.Linear(1024, classes)
  self.dropout = nn.Dropout(dropout)
end
function Inner:forward(x)
  x = self.conv(x:adaptive_avg_pool2d(4)):flatten(2)
  return self.fc2(self.dropout(self.fc1(x):relu()))
end

local GoogLeNet = nn.Module:extend("GoogLeNet")
models.GoogLeNet = GoogLeNet
-- GoogLeNet(num_classes=1000, aux_logits=true, transform_input=false, dropout=0.2, dropout_aux=0.7): pictures (N, 3, H, W) give (N,
-- num_classes); in training with aux_logits those of the second and of the first inner classifier, too. transform_input: pictures have
-- ImageNet's means and deviations, and weights were trained on others; true where weights are given.
function GoogLeNet:init(...)
  local o = options.arguments("GoogLeNet", "num_classes=1000, aux_logits=true, transform_input=false, dropout=0.2, dropout_aux=0.7", ...)
  self.transform_input = o.transform_input
  local function half(size) return nn.MaxPool2d(size, 2, {ceil_mode = true}) end
  self.conv1 = Conv(3, 64, 7, {stride = 2, padding = 3})
  self.maxpool1 = half(3)
  self.conv2 = conv(64, 64, 1)
  self.conv3 = conv(64, 192, 3)
  self.maxpool2 = half(3)
  self.inception3a = Inception(192, 64, 96, 128, 16, 32, 32)
  self.inception3b = Inception(256, 128, 128, 192, 32, 96, 64)
  self.maxpool3 = half(3)
  self.inception4a = Inception(480, 192, 96, 208, 16, 48, 64)
  self.inception4b = Inception(512, 160, 112, 224, 24, 64, 64)
  self.inception4c = Inception(512, 128, 128, 256, 24, 64, 64)
  self.inception4d = Inception(512, 112, 144, 288, 32, 64, 64)
  self.inception4e = Inception(528, 256, 160, 320, 32, 128, 128)
  self.maxpool4 = half(2)
  self.inception5a = Inception(832, 256, 160, 320, 32, 128, 128)
  self.inception5b = Inception(832, 384, 192, 384, 48, 128, 128)
  if o.aux_logits then
    self.aux1 = Inner(512, o.num_classes, o.dropout_aux)
    self.aux2 = Inner(528, o.num_classes, o.dropout_aux)
  else drop_inner(self, {"aux1", "aux2"}) end
  self.dropout = nn.Dropout(o.dropout)
  self.fc = nn.Linear(1024, o.num_classes)
  family.first_values(self, {Conv2d = family.weights_within(0.01), Linear = family.weights_within(0.01)})
end
function GoogLeNet:forward(x)
  if self.transform_input then x = as_trained(x) end
  x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
  x = self.maxpool3(self.inception3b(self.inception3a(x)))
  local first = self.inception4a(x)
  local second = self.inception4d(self.inception4c(self.inception4b(first)))
  x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(second))))
  x = self.fc(self.dropout(x:adaptive_avg_pool2d(1):flatten(2)))
  if not (self.training and self.aux1) then return x end
  return x, self.aux2(second), self.aux1(first)
end
family.network("googlenet", GoogLeNet, {}, {transform_input = true})

---- Inception v3 ----
local Mixed = nn.Module:extend("Mixed")
-- chains: lists of steps, each {name, channels, kernel, stride}, a list of two such steps side by side, or a pooling function.
function Mixed:init(n_in, chains)
  self.chains = chains
  for _, chain in ipairs(chains) do
    local n = n_in
    for _, step in ipairs(chain) do
      if type(step) == "table" then
        local out = 0
        for _, s in ipairs(type(step[1]) == "table" and step or {step}) do
          self[s[1]] = conv(n, s[2], s[3], s[4])
          out = out + s[2]
        end
        n = out
      end
    end
  end
end
function Mixed:forward(x)
  local out = {}
  for i, chain in ipairs(self.chains) do
    local y = x
    for _, step in ipairs(chain) do
      if type(step) == "function" then y = step(y)
      elseif type(step[1]) == "table" then y = ops.cat({self[step[1][1]](y), self[step[2][1]](y)}, 2)
      else y = self[step[1]](y) end
    end
    out[i] = y
  end
  return ops.cat(out, 2)
end
local function mean(x) return x:avg_pool2d(3, 1, 1) end
local function max(x) return x:max_pool2d(3, 2) end
local function A(n_in, pool)
  return Mixed(n_in, {{{"branch1x1", 64, 1}}, {{"branch5x5_1", 48, 1}, {"branch5x5_2", 64, 5}},
    {{"branch3x3dbl_1", 64, 1}, {"branch3x3dbl_2", 96, 3}, {"branch3x3dbl_3", 96, 3}}, {mean, {"branch_pool", pool, 1}}})
end
local function B()
  return Mixed(288, {{{"branch3x3", 384, 3, 2}},
    {{"branch3x3dbl_1", 64, 1}, {"branch3x3dbl_2", 96, 3}, {"branch3x3dbl_3", 96, 3, 2}}, {max}})
end
local function C(n)
  return Mixed(768, {{{"branch1x1", 192, 1}},
    {{"branch7x7_1", n, 1}, {"branch7x7_2", n, {1, 7}}, {"branch7x7_3", 192, {7, 1}}},
    {{"branch7x7dbl_1", n, 1}, {"branch7x7dbl_2", n, {7, 1}}, {"branch7x7dbl_3", n, {1, 7}}, {"branch7x7dbl_4", n, {7, 1}},
      {"branch7x7dbl_5", 192, {1, 7}}}, {mean, {"branch_pool", 192, 1}}})
end
local function D()
  return Mixed(768, {{{"branch3x3_1", 192, 1}, {"branch3x3_2", 320, 3, 2}},
    {{"branch7x7x3_1", 192, 1}, {"branch7x7x3_2", 192, {1, 7}}, {"branch7x7x3_3", 192, {7, 1}}, {"branch7x7x3_4", 192, 3, 2}}, {max}})
end
local function E(n_in)
  return Mixed(n_in, {{{"branch1x1", 320, 1}},
    {{"branch3x3_1", 384, 1}, {{"branch3x3_2a", 384, {1, 3}}, {"branch3x3_2b", 384, {3, 1}}}},
    {{"branch3x3dbl_1", 448, 1}, {"branch3x3dbl_2", 384, 3}, {{"branch3x3dbl_3a", 384, {1, 3}}, {"branch3x3dbl_3b", 384, {3, 1}}}},
    {mean, {"branch_pool", 192, 1}}})
end

local Inner3 = nn.Module:extend("InceptionAux")
function Inner3:init(n_in, classes)
  self.conv0 = conv(n_in, 128, 1)
  self.conv1 = Conv(128, 768, 5, {})
  self.fc = nn.Linear(768, classes)
end
function Inner3:forward(x)
  x = self.conv1(self.conv0(x:avg_pool2d(5, 3)))
  return self.fc(x:adaptive_avg_pool2d(1):flatten(2))
end

local Inception3 = nn.Module:extend("Inception3")
models.Inception3 = Inception3
-- Inception3(num_classes=1000, aux_logits=true, transform_input=false, dropout=0.5): pictures (N, 3, H, W) of 75x75 or more, usually
-- 299x299, give (N, num_classes); in training with aux_logits those of the inner classifier, too. transform_input: as GoogLeNet's.
function Inception3:init(...)
  local o = options.arguments("Inception3", "num_classes=1000, aux_logits=true, transform_input=false, dropout=0.5", ...)
  self.transform_input = o.transform_input
  self.Conv2d_1a_3x3 = Conv(3, 32, 3, {stride = 2})
  self.Conv2d_2a_3x3 = Conv(32, 32, 3, {})
  self.Conv2d_2b_3x3 = conv(32, 64, 3)
  self.Conv2d_3b_1x1 = conv(64, 80, 1)
  self.Conv2d_4a_3x3 = Conv(80, 192, 3, {})
  self.Mixed_5b = A(192, 32)
  self.Mixed_5c = A(256, 64)
  self.Mixed_5d = A(288, 64)
  self.Mixed_6a = B()
  self.Mixed_6b = C(128)
  self.Mixed_6c = C(160)
  self.Mixed_6d = C(160)
  self.Mixed_6e = C(192)
  if o.aux_logits then self.AuxLogits = Inner3(768, o.num_classes) else drop_inner(self, {"AuxLogits"}) end
  self.Mixed_7a = D()
  self.Mixed_7b = E(1280)
  self.Mixed_7c = E(2048)
  self.dropout = nn.Dropout(o.dropout)
  self.fc = nn.Linear(2048, o.num_classes)
  family.first_values(self, {Conv2d = family.weights_within(0.1), Linear = family.weights_within(0.1)})
  if self.AuxLogits then
    family.weights_within(0.01)(self.AuxLogits.conv1.conv)
    family.weights_within(0.001)(self.AuxLogits.fc)
  end
end
function Inception3:forward(x)
  if self.transform_input then x = as_trained(x) end
  x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))):max_pool2d(3, 2)
  x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)):max_pool2d(3, 2)
  x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
  x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
  local inner = self.training and self.AuxLogits and self.AuxLogits(x)
  x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
  x = self.fc(self.dropout(x:adaptive_avg_pool2d(1)):flatten(2))
  if not inner then return x end
  return x, inner
end
family.network("inception_v3", Inception3, {}, {transform_input = true})
