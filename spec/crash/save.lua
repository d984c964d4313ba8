-- luajit spec/crash/save.lua FOLDER SIZE: one checkpoint, step 2, into a folder that has step 1. Prints "saved", or the error.
local tycho = require "tycho"
local manager = tycho.checkpoint.Manager {dir = arg[1], keep = 1}
manager:save(2, {x = tycho.full({tonumber(arg[2])}, 2), y = {tycho.ones(3), "two"}})
local ok, e = pcall(manager.wait, manager)
print(ok and "saved" or e)
