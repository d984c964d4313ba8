-- tycho.vision: what detectors are built of; tycho.vision.ops is torchvision.ops.
local options = require "tycho.options"
local ops = require "tycho.vision.boxes"
require "tycho.vision.regions"
require "tycho.vision.deform"
require "tycho.vision.layers"

options.told(ops, "vision.ops")
return options.told({ops = ops}, "vision", nil, {transforms = "use tycho.data.transforms", datasets = "use tycho.data.datasets",
  utils = "use tycho.utils.make_grid and save_image", models = "see examples/resnet18.lua",
  io = "use data.read_image to read a picture, utils.save_image to write one"})
