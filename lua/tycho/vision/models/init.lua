-- tycho.vision.models: networks that classify pictures, as in torchvision.models.
--
-- Idea: the lists say which family's file has a name; a file is read when one of its names is first used.
local options = require "tycho.options"
local later = require "tycho.later"
local saving = require "tycho.saving"
local family = require "tycho.vision.models.family"
local fail = options.fail
local models = family.models

local function made(name, file, weights, o)
  if o == nil and (options.has_names(weights) or type(weights) == "table" and next(weights) == nil) then weights, o = nil, weights end
  if o ~= nil and type(o) ~= "table" then fail("%s: options must be a table, got %s", name, options.shown(o)) end
  later.require(file)
  local network, all = family.networks[name], {}
  if o and o.weights ~= nil then
    if weights ~= nil then fail("%s: argument 'weights' is given twice", name) end
    weights = o.weights
  end
  for _, settings in ipairs {network.settings, weights ~= nil and network.with_weights or {}, o} do
    for k, v in pairs(settings) do all[k] = v end
  end
  all.weights = nil
  local state = weights
  if type(state) == "string" then state = saving.load(state, {device = "cpu"}) end
  if state ~= nil and type(state) ~= "table" then
    fail("%s: weights must be a state dict or the path of one, got %s", name, options.shown(weights))
  end
  local net = network.class(all)
  if state then net:load_state_dict(state) end
  return net
end

local classes = {}
for file, names in pairs {
  resnet = [[ResNet BasicBlock Bottleneck resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d resnext101_32x8d resnext101_64x4d
    wide_resnet50_2 wide_resnet101_2]],
  vgg = [[AlexNet alexnet VGG vgg11 vgg13 vgg16 vgg19 vgg11_bn vgg13_bn vgg16_bn vgg19_bn SqueezeNet squeezenet1_0 squeezenet1_1]],
  densenet = "DenseNet densenet121 densenet161 densenet169 densenet201",
  mobilenet = [[MNASNet mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3 MobileNetV2 mobilenet_v2 MobileNetV3 mobilenet_v3_large
    mobilenet_v3_small EfficientNet efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5
    efficientnet_b6 efficientnet_b7 efficientnet_v2_s efficientnet_v2_m efficientnet_v2_l]],
  inception = "GoogLeNet googlenet Inception3 inception_v3",
  shufflenet = "ShuffleNetV2 shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0",
  regnet = [[RegNet regnet_y_400mf regnet_y_800mf regnet_y_1_6gf regnet_y_3_2gf regnet_y_8gf regnet_y_16gf regnet_y_32gf regnet_y_128gf
    regnet_x_400mf regnet_x_800mf regnet_x_1_6gf regnet_x_3_2gf regnet_x_8gf regnet_x_16gf regnet_x_32gf]],
  convnext = "ConvNeXt convnext_tiny convnext_small convnext_base convnext_large",
  vit = "VisionTransformer vit_b_16 vit_b_32 vit_l_16 vit_l_32 vit_h_14",
  swin = "SwinTransformer swin_t swin_s swin_b swin_v2_t swin_v2_s swin_v2_b",
} do
  file = "tycho.vision.models." .. file
  for name in names:gmatch "%S+" do
    -- resnet18(weights=nil, {num_classes=1000, ...}): a network of that name. weights: a state dict or the path of one, as torchvision's
    -- are: a file of PyTorch (.pth) or safetensors. Options are the arguments of the family's class, here ResNet.
    if name:find "^%l" then models[name] = function(weights, o) return made(name, file, weights, o) end
    else classes[name] = {file} end
  end
end

return options.told(models, "vision.models", nil, nil, classes)
