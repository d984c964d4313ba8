-- no_grad(fn, ...) and enable_grad(fn, ...): call fn with recording off, or on; give its results; the mode is restored also where fn errs.
local core = require "tycho.core"

local function restore(old, ok, ...)
  core.set_grad_enabled(old)
  if not ok then error((...), 0) end
  return ...
end

local function under(on, name)
  return function(fn, ...)
    if type(fn) ~= "function" then error(name .. ": argument 1 must be a function, got " .. type(fn), 2) end
    return restore(core.set_grad_enabled(on), pcall(fn, ...))
  end
end

return {no_grad = under(false, "no_grad"), enable_grad = under(true, "enable_grad")}
