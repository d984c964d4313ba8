-- What the forwards of the library's layers take.
--
-- Idea: further results of a call in the last place are no mistake, as in Linear(4, 2)(lstm(x)), and are ignored; options, which a forward
-- with a fixed number of arguments doesn't have, are one.
local options = require "tycho.options"
local fail = options.fail

local takes = {count = setmetatable({}, {__mode = "k"})}          -- forward -> its number of arguments

function takes.note(forward)
  local f = takes.count[forward] == nil and debug.getinfo(forward, "u")
  if f then takes.count[forward] = f.isvararg and math.huge or f.nparams - 1 end
end

-- Raises if there is a table of options behind the first `most` of ..., the arguments of a layer.
function takes.refuse_options(name, most, ...)
  for i = most + 1, select("#", ...) do
    local o = select(i, ...)
    if options.has_names(o) then fail("%s: takes no options, got '%s'", name, (next(o))) end
  end
end

return takes
