-- What is on several devices: a tensor brought to another one, a list taken apart by device.
local M = require("tycho.core").methods
local devices = {}

-- x on a device; where it is there already, itself. A GPU isn't waited for, unless the host gets the values.
function devices.on(x, device) return x.device == device and x or M.to(x, device, {non_blocking = device ~= "cpu"}) end

-- For each device in the order of its first tensor: the device, and the list's tensors there.
function devices.each(list)
  local lists, order = {}, {}
  for _, x in ipairs(list) do
    local device = x.device
    if not lists[device] then
      lists[device] = {}
      order[#order + 1] = device
    end
    table.insert(lists[device], x)
  end
  local i = 0
  return function()
    i = i + 1
    return order[i], lists[order[i]]
  end
end

return devices
