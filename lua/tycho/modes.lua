-- no_grad(fn, ...) and enable_grad(fn, ...): call fn with recording off, or on; give its results; the mode is restored also where fn errs.
local core = require "tycho.core"
local fail = require("tycho.options").fail

local function restore(old, ok, ...)
  core.set_grad_enabled(old)
  if not ok then error((...), 0) end
  return ...
end

-- A function, or what is called like one: a module.
local function callable(fn) return type(fn) == "function" or (type(fn) == "table" and (getmetatable(fn) or {}).__call ~= nil) end

local function under(on, name)
  return function(fn, ...)
    if not callable(fn) then fail(name .. ": argument 1 must be a function, got " .. type(fn)) end
    return restore(core.set_grad_enabled(on), pcall(fn, ...))
  end
end

return {callable = callable, no_grad = under(false, "no_grad"), enable_grad = under(true, "enable_grad")}
