-- Networks of tycho.vision.models beside torchvision's (spec/golden_vision_models.py): results, losses and norms of gradients with given
-- weights, and the names and shapes in state dicts.
local tycho = require "tycho"
local helper = require "spec.helper"
local models = tycho.vision.models
local golden = tycho.load "spec/golden/vision_models.safetensors"

-- {name, tensor} for each entry of a state dict, in PyTorch's order: a module's parameters, its buffers, then its members.
local function entries(net)
  local list = {}
  for prefix, m in net:named_modules() do
    if prefix ~= "" then prefix = prefix .. "." end
    for name, p in m:named_parameters {recurse = false} do list[#list + 1] = {prefix .. name, p} end
    for name, b in m:named_buffers {recurse = false} do list[#list + 1] = {prefix .. name, b} end
  end
  return list
end

-- As fill in golden_vision_models.py.
local around = {pos_embedding = true, class_token = true, layer_scale = true, relative_position_bias_table = true, logit_scale = true}
local function fill(net)
  for i, entry in ipairs(entries(net)) do
    local name, p = entry[1], entry[2]:detach()
    local last = name:match "[^.]*$"
    if p:is_floating_point() and last ~= "relative_coords_table" then
      local u = (tycho.range(1, p:numel(), 1, {dtype = "float64", device = "cpu"}) * (0.6180339887498949 + 0.001 * i)):remainder(1) - 0.5
      if p:dim() > 1 and not around[last] then u = u * (2 * (3 / (p:numel() / p.shape[1])) ^ 0.5)
      elseif p:dim() == 1 and (last == "weight" or last == "running_var") then u = u * 0.4 + 1
      else u = u * 0.4 end
      p:copy_(u:view(p.shape))
    end
  end
  return net
end

-- As written in golden_vision_models.py.
local function written(net)
  local h = 0
  for _, entry in ipairs(entries(net)) do
    local line = ("%s %s\n"):format(entry[1], entry[2]:dim() == 0 and "" or tostring(entry[2].shape))
    for i = 1, #line do h = (h * 31 + line:byte(i)) % 2147483647 end
  end
  return h
end

local SMALL = {
  ResNet = {64, function()
    return models.ResNet(models.Bottleneck, {1, 1, 2, 1}, {num_classes = 7, groups = 2, width_per_group = 16,
      replace_stride_with_dilation = {false, true, true}})
  end},
  resnet18 = {64}, alexnet = {70}, vgg11_bn = {32}, squeezenet1_0 = {64}, squeezenet1_1 = {64}, efficientnet_b0 = {64},
  mobilenet_v2 = {64, function() return models.mobilenet_v2 {num_classes = 7, width_mult = 0.35} end},
  mobilenet_v3_small = {64},
  mobilenet_v3_large = {64, function()
    return models.mobilenet_v3_large {num_classes = 7, width_mult = 0.5, reduced_tail = true, dilated = true}
  end},
  mnasnet0_5 = {64}, shufflenet_v2_x0_5 = {64}, regnet_y_400mf = {64},
  googlenet = {64, function() return models.googlenet {num_classes = 7, transform_input = true} end},
  inception_v3 = {299, function() return models.inception_v3 {num_classes = 7, transform_input = true} end},
  DenseNet = {64, function() return models.DenseNet(8, {2, 3, 2}, 16, 2, {num_classes = 7}) end},
  ConvNeXt = {64, function() return models.ConvNeXt({8, 16, 32}, {1, 2, 1}, {layer_scale = 0.5, num_classes = 7}) end},
  VisionTransformer = {32, function()
    return models.VisionTransformer(32, 8, 2, 4, 32, 64, {num_classes = 7, representation_size = 12})
  end},
  SwinTransformer = {27, function() return models.SwinTransformer({2, 2}, 8, {2, 2}, {2, 4}, {4, 3}, {num_classes = 7}) end},
  swin_v2 = {27, function() return models.SwinTransformer({2, 2}, 8, {2, 2}, {2, 4}, {4, 3}, {num_classes = 7, version = 2}) end},
}

describe("networks for pictures #cpu", function()
  for name, s in pairs(SMALL) do
    it(name .. " computes what torchvision's does, both ways", function()
      local side, make = s[1], s[2] or function() return models[name] {num_classes = 7} end
      local net = fill(make():double()):eval()
      local x = (tycho.range(0, 6 * side * side - 1, 1, {dtype = "float64"}) * 0.37):sin():view(2, 3, side, side)
      helper.close(tycho.no_grad(net, x), golden[name], name, 1e-9)
      net:train()
      for _, m in ipairs(net:modules()) do
        if m._name == "Dropout" or m._name == "StochasticDepth" then m.p = 0 end
      end
      local loss = 0
      for _, y in ipairs {net(x)} do loss = loss + tycho.cross_entropy(y, tycho.tensor({3, 6}, {dtype = "int64"})) end
      loss:backward()
      helper.close(loss, golden[name .. ".loss"], "loss", 1e-9)
      local norms = {}
      for i, p in ipairs(net:parameters()) do norms[i] = p.grad:norm() end
      helper.close(tycho.stack(norms), golden[name .. ".norms"], "gradients", 1e-6)
    end)
  end

  it("state dicts have torchvision's names and shapes", function()
    local count = 0
    for key, want in pairs(golden) do
      local name = key:match "^names%.(.*)$"
      if name then
        count = count + 1
        local net = models[name]()
        if written(net) ~= want:item() then
          local lines = {}
          for i, entry in ipairs(entries(net)) do lines[i] = entry[1] .. " " .. tostring(entry[2].shape) end
          error(name .. " has\n" .. table.concat(lines, "\n"))
        end
        for _, p in ipairs(net:parameters()) do p:free() end          -- for the next one's
      end
    end
    assert.is_true(count > 30)
  end)

  it("weights come as a state dict or from a file, of older names too", function()
    local folder = helper.folder()
    local net = models.resnet18 {num_classes = 3}
    tycho.save(folder .. "/net.safetensors", net:state_dict())
    local x = tycho.randn(1, 3, 32, 32)
    local want = tycho.no_grad(net:eval(), x)
    for _, weights in ipairs {folder .. "/net.safetensors", net:state_dict()} do
      helper.close(tycho.no_grad(models.resnet18({weights = weights, num_classes = 3}):eval(), x), want, "weights", 0)
    end
    helper.close(tycho.no_grad(models.resnet18(folder .. "/net.safetensors", {num_classes = 3}):eval(), x), want, "by place", 0)
    assert.equal(1000, models.resnet18({}).fc.out_features)
    helper.fails("argument 'weights' is given twice", models.resnet18, "file", {weights = "file"})
    helper.fails("fc.weight", models.resnet18, {weights = net:state_dict()})
    helper.fails("weights must be a state dict or the path of one", models.resnet18, {weights = true})
    helper.fails("ResNet: unknown option 'num_clases'", models.resnet18, {num_clases = 3})
    helper.fails("did you mean 'resnet18'", function() return models.resnet8 end)

    local dense = models.DenseNet(4, {2, 1}, 8, 2, {num_classes = 2})
    local older = {}
    for name, p in pairs(dense:state_dict()) do older[name:gsub("(denselayer%d%.%l+)([12])", "%1.%2")] = p end
    assert.is_truthy(older["features.denseblock1.denselayer1.norm.1.weight"])
    models.DenseNet(4, {2, 1}, 8, 2, {num_classes = 2}):load_state_dict(older)
    local vit = models.VisionTransformer(8, 4, 1, 2, 8, 16, {num_classes = 2})
    older = {}
    for name, p in pairs(vit:state_dict()) do older[name:gsub("mlp%.0", "mlp.linear_1"):gsub("mlp%.3", "mlp.linear_2")] = p end
    assert.is_truthy(older["encoder.layers.encoder_layer_0.mlp.linear_1.weight"])
    models.VisionTransformer(8, 4, 1, 2, 8, 16, {num_classes = 2}):load_state_dict(older)
    helper.fails("(N, 3, 8, 8), got 1x3x8x9", vit, tycho.randn(1, 3, 8, 9))
  end)


  it("the example fine-tunes one on pictures in folders", function()
    local folder = helper.folder()
    for _, part in ipairs {"train", "val"} do
      for class = 1, 2 do
        local at = ("%s/%s/%d"):format(folder, part, class)
        assert(os.execute("mkdir -p " .. at) == 0)
        for i = 1, 4 do tycho.utils.save_image(tycho.rand(3, 8, 8) * 0.2 + (class - 1) * 0.8, ("%s/%d.png"):format(at, i)) end
      end
    end
    local pipe = io.popen(("luajit examples/finetune.lua --data %s --model resnet18 --size 32 --epochs 8 --batch 4 \z
      --workers 0 --lr 0.01 --save %s/best.safetensors 2>&1"):format(folder, folder))
    local printed = pipe:read "*a"
    pipe:close()
    assert.is_truthy(printed:find("best: 1.0000", 1, true), printed)
    assert.equal(2, tycho.load(folder .. "/best.safetensors")["fc.weight"].shape[1])
  end)
end)

describe("networks for pictures", function()
  it("train compiled as they do eagerly, and are traced", function()
    local makers = {function() return models.SwinTransformer({2, 2}, 8, {2}, {2}, {4, 4}, {num_classes = 5}) end}
    if helper.device == "cpu" then
      makers[2] = function() return models.ResNet(models.BasicBlock, {1, 1, 1, 1}, {num_classes = 5}) end
    end
    for _, make in ipairs(makers) do
      local losses = {}
      for _, how in ipairs {"eager", "compiled"} do
        tycho.manual_seed(3)
        local net = make()
        local optimizer = tycho.optim.SGD(net:parameters(), {lr = 0.01})
        local function step(x, y)
          optimizer:zero_grad()
          local loss = tycho.cross_entropy(net(x), y)
          loss:backward()
          optimizer:step()
          return loss:detach()
        end
        if how == "compiled" then step = tycho.compile(step) end
        losses[how] = {}
        for i = 1, 4 do losses[how][i] = step(tycho.randn(2, 3, 16, 16), tycho.randint(1, 5, {2})):item() end
        if how == "compiled" then
          local x = tycho.randn(2, 3, 16, 16)
          net:eval()
          helper.close(tycho.jit.trace(net, x)(x), net(x), "traced", 1e-5)
        end
      end
      for i = 1, 4 do assert.near(losses.eager[i], losses.compiled[i], 1e-4 * losses.eager[i]) end
    end
  end)
end)
