-- What the library's layers are made with. A layer's class defines its parameters in init and its arithmetic in forward.
local module = require "tycho.nn.module"
local given = require "tycho.options"
local core = require "tycho.core"
local no_grad = require("tycho.modes").no_grad
local entry = require("tycho.functional.lib").entry
local find = require("tycho.functional").find
-- classes: name -> class, tycho.nn's classes; declared: classes made on first use: their maker and its arguments
local lib = {classes = {}, declared = {}}

-- Resets the layer's own parameters and buffers to those of a new layer made with the same arguments.
function lib.reset_parameters(self)
  local args = rawget(self, "_made_with")
  local fresh = getmetatable(self)._class(unpack(args, 1, args.n))
  for _, kind in ipairs {"parameter", "buffer"} do
    for name, is in pairs(self._kinds) do
      local mine, new = self._parts[name], fresh._parts[name]
      if is == kind and mine ~= nil and new ~= nil then no_grad(core.methods.copy_, mine, new) end
    end
  end
end

-- A class of this library. Sequential frees its results as soon as the next layer has used them.
function lib.layer(name)
  local class = module.Module:extend(name)
  class._library, class._builtin = true, true
  class.reset_parameters = lib.reset_parameters
  if rawget(lib.classes, name) == nil then lib.classes[name] = class end         -- a program's own class of that name stays
  return class
end

-- Declares a class that make(name, ...) makes on first use.
function lib.declare(name, make, ...) lib.declared[name] = {make, select("#", ...), ...} end
-- The class of that name, or nil.
function lib.class(name)
  local d = lib.declared[name]
  if d and rawget(lib.classes, name) == nil then
    local ok, err = pcall(d[1], name, unpack(d, 3, 2 + d[2]))
    if not ok then                                           -- drop a half-made class
      lib.classes[name] = nil
      error(err, 0)
    end
  end
  lib.declared[name] = nil
  return rawget(lib.classes, name)
end
-- Makes all declared classes.
function lib.all()
  for name in pairs(lib.declared) do lib.class(name) end
end

function lib.options(name, o, defaults) return given.fill(name, o, defaults) end
-- A constructor's arguments by name, from PyTorch's positions and a last table: see options.lua.
lib.arguments, lib.fail, lib.shown = given.arguments, given.fail, given.shown

function lib.whole(name, what, v) return given.whole(name, what, v, 1) end
function lib.count(name, what, v) return given.whole(name, what, v, 0) end
lib.number = given.number
-- padding_idx as a position from 1; negative ones count from the end; nil if none is given.
function lib.padding_row(name, at, count)
  return at and entry(name, "padding_idx", given.whole(name, "padding_idx", at, -count), count)
end

function lib.text(v)
  if type(v) ~= "table" then return tostring(v) end
  local parts = {}
  for i, part in ipairs(v) do parts[i] = tostring(part) end
  return table.concat(parts, "x")
end

-- Numbers by default that may also be lists, one for each dim.
local SIZES = {padding = true, dilation = true, stride = true}

-- Makes class, which errors call name, a class of layers without parameters: see lib.plain.
function lib.fill_plain(class, name, fn, first, second, inplace)
  local args, order, parts, numbers = {}, {}, {}, {}
  for _, part in ipairs {first, second or "", inplace and "inplace=false" or ""} do
    if part ~= "" then parts[#parts + 1] = part end
  end
  local signature = table.concat(parts, ", ")
  for k in first:gmatch "([%w_]+)[^,]*" do args[#args + 1] = k end
  for k in (second or ""):gmatch "([%w_]+)[^,]*" do order[#order + 1] = k end
  table.sort(order)
  for k, v in signature:gmatch "([%w_]+)=([^,]+)" do if tonumber(v) and not SIZES[k] then numbers[#numbers + 1] = k end end
  function class:init(...)
    local o = lib.arguments(name, signature, ...)
    for k, v in pairs(o) do
      if core.is_tensor(v) and v.dtype ~= "bool" and k ~= "weight" and k ~= "pos_weight" then
        given.fail("%s: %s is a setting, not a tensor; apply the layer to a tensor with %s(...)(x)", name, k, name)
      end
    end
    for _, k in ipairs(numbers) do lib.number(name, k, o[k]) end
    for _, k in ipairs(args) do self[k] = o[k] end
    if self.stride == nil and self.kernel_size ~= nil then self.stride = self.kernel_size end        -- of a pooling layer
    for _, k in ipairs(order) do self[k] = o[k] end
  end
  function class:forward(...)              -- reads the fields, which a program may have assigned
    if type(fn) == "string" then fn = find(fn) end
    local values, n = {...}, select("#", ...)
    for i, k in ipairs(args) do values[n + i] = self[k] end
    n = n + #args
    if second then
      local options = {}
      for _, k in ipairs(order) do options[k] = self[k] end
      n = n + 1
      values[n] = options
    end
    return fn(unpack(values, 1, n))
  end
  function class:extra_repr()
    local out = {}
    for _, list in ipairs {args, order} do
      for _, k in ipairs(list) do if self[k] ~= nil then out[#out + 1] = k .. "=" .. lib.text(self[k]) end end
    end
    return table.concat(out, ", ")
  end
end
local function make_plain(name, ...) lib.fill_plain(lib.layer(name), name, ...) end
-- Declares a layer without parameters. first and second: its arguments in PyTorch's order, as options.lua describes. forward calls fn, a
-- function or its name, with x..., the arguments of first by position, and a table of those of second. inplace: accept PyTorch's inplace as
-- the last argument, without effect: results are always new.
function lib.plain(name, ...) lib.declare(name, make_plain, ...) end

return lib
