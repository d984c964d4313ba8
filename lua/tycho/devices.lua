-- Tensors on several devices: moves a tensor to another device, and splits a list by device.
local M = require("tycho.core").methods
local devices = {}

-- x on a device; x itself if it is there already. Doesn't wait for a GPU, unless the values go to the host.
function devices.on(x, device) return x.device == device and x or M.to(x, device, {non_blocking = device ~= "cpu"}) end

-- Iterates over devices in the order of their first tensor: the device, and the list's tensors there.
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
