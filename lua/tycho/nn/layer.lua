-- What the library's layers are made with. A layer's class names its parameters in init, its arithmetic in forward.
local core = require "tycho.core"
local module = require "tycho.nn.module"
local given = require "tycho.options"
local lib = {classes = {}}              -- name -> class: what tycho.nn hands out

-- A class of this library. Sequential releases its results as soon as the next layer has used them.
function lib.layer(name)
  local class = module.Module:extend(name)
  class._library, class._builtin = true, true
  lib.classes[name] = class
  return class
end

function lib.options(name, o, defaults) return given.fill(name, o, defaults, 3) end
-- A constructor's arguments by name, from PyTorch's positions and a last table: see tycho.options.
function lib.arguments(name, signature, ...) return given.arguments(name, signature, 3, ...) end

function lib.whole(name, what, v) return given.whole(name, what, v, 1, 3) end
function lib.number(name, what, v, least)
  if type(v) ~= "number" or v ~= v or (least and v < least) then error(("%s: %s must be a number%s, got %s"):format(name, what, least and " from " .. least or "", given.shown(v)), 3) end
  return v
end

function lib.pair(v) return type(v) == "table" and v or {v, v} end
function lib.text(v) return type(v) == "table" and table.concat(v, "x") or tostring(v) end

-- A layer without parameters: args are what its constructor takes in order, as {name, default} (no default: needed; false: nil),
-- or by name, as the options. forward is fn(x..., args..., options).
function lib.plain(name, fn, args, defaults)
  local class = lib.layer(name)
  local known, order = {}, {}
  for k, v in pairs(defaults or {}) do known[k] = v; order[#order + 1] = k end
  for _, a in ipairs(args) do known[a[1]] = a[2] or false end
  known.inplace = false                    -- PyTorch's; taken, and of no effect: results are always fresh
  table.sort(order)
  function class:init(...)
    local n, o = select("#", ...), nil
    local last = n > 0 and select(n, ...)
    if type(last) == "table" and not core.is_tensor(last) and (next(last) == nil or type(next(last)) == "string") then o, n = last, n - 1 end
    if n == #args + 1 and type(select(n, ...)) == "boolean" then n = n - 1 end      -- inplace, at its position
    if n > #args then error(("%s: at most %d arguments, got %d"):format(name, #args, n), 3) end
    o = lib.options(name, o, known)
    self._args, self._options = {}, defaults and {} or nil
    for i, a in ipairs(args) do
      local v = i <= n and select(i, ...) or o[a[1]] or nil
      if v == nil and a[2] == nil then error(("%s: argument %d (%s) is missing"):format(name, i, a[1]), 3) end
      self._args[i] = v
      self[a[1]] = v
    end
    for _, k in ipairs(order) do
      if o[k] ~= false or defaults[k] ~= false then self._options[k] = o[k] end
      self[k] = o[k] or nil
    end
  end
  function class:forward(...)
    local values, n = {...}, select("#", ...)
    for i = 1, #args do values[n + i] = self._args[i] end
    n = n + #args
    if self._options then
      n = n + 1
      values[n] = self._options
    end
    return fn(unpack(values, 1, n))
  end
  function class:extra_repr()
    local out = {}
    for i, a in ipairs(args) do if self._args[i] ~= nil then out[#out + 1] = a[1] .. "=" .. lib.text(self._args[i]) end end
    for _, k in ipairs(order) do if self._options[k] ~= nil then out[#out + 1] = k .. "=" .. lib.text(self._options[k]) end end
    return table.concat(out, ", ")
  end
  return class
end

return lib
