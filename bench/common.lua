-- What the benches share: arguments, medians, an op with its gradient. This file doesn't load Tycho.
local common = {}

-- the defaults given, or the values of --name value ...
function common.options(defaults)
  for i = 1, #(arg or {}), 2 do
    local k = arg[i]:match("^%-%-(.+)$")
    defaults[k] = tonumber(arg[i + 1]) or arg[i + 1]
  end
  return defaults
end

function common.median(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

-- A function that runs fn forward and backward.
function common.backward(fn, ...)
  local inputs, g = {...}, nil
  for _, x in ipairs(inputs) do if x:is_floating_point() then x:requires_grad_() end end
  return function()
    local y = fn(unpack(inputs))
    g = g or require("tycho").ones_like(y)
    for _, x in ipairs(inputs) do x.grad = nil end
    y:backward(g)
  end
end

return common
