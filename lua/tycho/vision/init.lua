-- tycho.vision: tycho.vision.ops, what detectors are built of, is torchvision.ops; tycho.vision.models has networks that classify pictures.
local options = require "tycho.options"
local ops = require "tycho.vision.boxes"
require "tycho.vision.regions"
require "tycho.vision.deform"
require "tycho.vision.layers"

options.told(ops, "vision.ops")
return options.told({ops = ops}, "vision", nil, {transforms = "use tycho.data.transforms", datasets = "use tycho.data.datasets",
  utils = "use tycho.utils.make_grid and save_image", io = "use data.read_image to read a picture, utils.save_image to write one"},
  {models = "tycho.vision.models"})
